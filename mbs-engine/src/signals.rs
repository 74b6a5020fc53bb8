//! The inputs where nobody else sets them: the model's defaults, or what its case prescribes.

use crate::Interpreted;
use crate::tape::{Arguments, Tape};
use mbs_codegen::symbols::Group;
use mbs_runtime::corners::{self, Corner, Sides};
use mbs_runtime::{Inputs, Scalar, Stop, System};

/// Inputs from the program's own signals; made by [`Interpreted::input_signals`].
#[derive(Clone, Debug)]
pub struct Signals<'a, S: Scalar> {
    model: &'a Interpreted<S>,
    u: Vec<S>,
    w: Vec<S>,
    corners: Option<Corners>,
    /// Values instead of the signals.
    given: Option<&'a [S]>,
    /// Places of inputs, and by what each is moved.
    by: Vec<(usize, S)>,
}

impl<'a, S: Scalar> Signals<'a, S> {
    /// These values instead of the signals; corners in time remain those of the model.
    pub(crate) fn given(self, u: &'a [S]) -> Self {
        Self { given: Some(u), ..self }
    }

    /// Inputs at these places, moved by constants.
    pub(crate) fn moved(self, by: Vec<(usize, S)>) -> Self {
        Self { by, ..self }
    }
}

/// Where something that time and the parameters alone decide has a corner.
#[derive(Clone, Debug)]
pub(crate) struct Corners {
    tape: Tape<f64>,
    prepared: Vec<f64>,
    all: Vec<Corner>,
    memory: Vec<f64>,
    w: Vec<f64>,
}

impl Corners {
    /// Of a model with its parameters; none without corners.
    fn new<S: Scalar>(model: &Interpreted<S>) -> Option<Corners> {
        let found = model.program().corners.as_ref()?;
        let [prepare, tape] = ["prepare", mbs_codegen::corners::NAME].map(|name| {
            let bundle = found.bundles.iter().find(|bundle| bundle.name == name);
            bundle.map_or_else(Tape::empty, Tape::new)
        });
        let mut prepared = vec![0.0; prepare.result_len(0)];
        let parameters: Vec<f64> = model.parameters().iter().map(|value| value.real()).collect();
        let mut arguments: Arguments<'_, f64> = [&[]; Group::ALL.len()];
        arguments[Group::Parameters as usize] = &parameters;
        prepare.run(&arguments, &mut vec![0.0; prepare.memory()], &mut [&mut prepared]).ok()?;
        let corner = |corner: &mbs_codegen::corners::Corner| Corner {
            sides: if corner.levels { Sides::Levels } else { Sides::Sign },
            apart: corner.apart,
        };
        Some(Corners {
            w: vec![0.0; tape.memory()],
            memory: vec![0.0; corners::memory_len(found.all.len())],
            all: found.all.iter().map(corner).collect(),
            tape,
            prepared,
        })
    }

    fn next_stop(&mut self, from: f64, to: f64) -> Option<Stop> {
        let Corners { tape, prepared, all, memory, w } = self;
        corners::next_stop(all, from, to, memory, |t, out| {
            let t = [t];
            let mut arguments: Arguments<'_, f64> = [&[]; Group::ALL.len()];
            arguments[Group::Time as usize] = &t;
            arguments[Group::Prepared as usize] = prepared;
            let (functions, rest) = out.split_at_mut(all.len());
            let (rates, sides) = rest.split_at_mut(all.len());
            // The lengths are right, so this cannot fail.
            let _ = tape.run(&arguments, w, &mut [functions, rates, sides]);
        })
    }
}

impl<S: Scalar> Interpreted<S> {
    /// The inputs where nobody else sets them: the model's defaults, or what its case prescribes.
    pub fn input_signals(&self) -> Signals<'_, S> {
        let (u, w) = (vec![S::ZERO; self.dims().nu], vec![S::ZERO; self.signals_memory()]);
        Signals { model: self, u, w, corners: Corners::new(self), given: None, by: Vec::new() }
    }
}

impl<S: Scalar> Inputs<S> for Signals<'_, S> {
    fn at(&mut self, t: S, u: &mut [S]) {
        let values = match self.given {
            Some(given) => given,
            None => {
                // The lengths are right by construction, so this cannot fail.
                let _ = self.model.evaluate_signals(t, &mut self.w, &mut self.u);
                &self.u
            }
        };
        for (to, from) in u.iter_mut().zip(values.iter().copied().chain(std::iter::repeat(S::ZERO))) {
            *to = from;
        }
        for &(place, by) in &self.by {
            if let Some(u) = u.get_mut(place) {
                *u += by;
            }
        }
    }

    fn next_stop(&mut self, from: f64, to: f64) -> Option<Stop> {
        self.corners.as_mut()?.next_stop(from, to)
    }
}
