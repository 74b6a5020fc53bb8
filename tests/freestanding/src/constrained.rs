//! A closed loop: implicit steps by the augmented Lagrangian formulation, explicit ones on the constraints.

use core::hint::black_box;
use core::ops::ControlFlow;

use mbs_runtime::formulation::{Ali3p, Assembly, Index1, OnConstraints, State};
use mbs_runtime::inputs::NoInputs;
use mbs_runtime::{Constrained, Fixed, Integrator, Motion, Output, Rk4, Span, System};

use crate::models::five_bar::{self, DIMS, Model, NQ, NV};

/// Lengths of what a step needs.
const STATE: usize = State::<f64>::len(&DIMS);
const START: usize = Assembly::scratch_len(&DIMS);
const STEP: usize = Ali3p::scratch_len(&DIMS);
const ROWS: usize = DIMS.rows();

/// Where both ways must meet after a tenth of a second: the trapezoidal rule's error at a millisecond.
const CLOSE: f64 = 1e-4;

fn assembled(model: &Model) -> Option<[f64; STATE]> {
    let mut state = [0.0; STATE];
    Assembly::DEFAULT.begin(model, &mut NoInputs, black_box(0.0), &mut state, &mut [0.0; START]).ok()?;
    Some(state)
}

/// Largest |Φ|, |Φd|, |Φdd|.
fn violation(model: &Model, at: Motion<'_, f64>) -> Option<f64> {
    let (mut r, mut rows, mut w) = ([0.0; NQ], [0.0; ROWS], [0.0; five_bar::WORKSPACE]);
    let mut worst: f64 = 0.0;
    model.residual(at, &[0.0; ROWS], &mut w, &mut r, &mut rows).ok()?;
    worst = rows.iter().fold(worst, |worst, row| row.abs().max(worst));
    model.constraint_rates(at, &mut w, &mut rows).ok()?;
    worst = rows.iter().fold(worst, |worst, row| row.abs().max(worst));
    model.constraint_accelerations(at, &mut w, &mut rows).ok()?;
    Some(rows.iter().fold(worst, |worst, row| row.abs().max(worst)))
}

/// A hundred implicit steps; coordinates at the end.
fn implicit(model: &Model) -> Option<[f64; NQ]> {
    let mut state = black_box(assembled(model)?);
    let mut scratch = [0.0; STEP];
    for _ in 0..100 {
        Ali3p::DEFAULT.step(model, &mut NoInputs, &mut state, black_box(1e-3), &mut scratch).ok()?;
    }
    let view = State::of(&DIMS, &mut state).ok()?;
    (violation(model, view.motion(&[]))? < 1e-9).then_some(())?;
    view.z.first_chunk().copied()
}

pub(crate) fn five_bar_by_ali3p() -> Option<()> {
    let model = Model::default();
    let z = implicit(&model)?;
    // It fell: gravity and springs moved the crank by more than a hundredth.
    let mut state = assembled(&model)?;
    let start = State::of(&DIMS, &mut state).ok()?;
    let moved = z.iter().zip(&*start.z).any(|(z, start)| (z - start).abs() > 1e-2);
    // A step of no length, and slices that are too short, are errors.
    let mut scratch = [0.0; STEP];
    let wrong = [
        Ali3p::DEFAULT.step(&model, &mut NoInputs, &mut state, black_box(0.0), &mut scratch).is_err(),
        Ali3p::DEFAULT.step(&model, &mut NoInputs, &mut [0.0; 3], 1e-3, &mut scratch).is_err(),
        Ali3p::DEFAULT.step(&model, &mut NoInputs, &mut state, 1e-3, &mut [0.0; 3]).is_err(),
    ];
    (moved && wrong.iter().all(|wrong| *wrong)).then_some(())
}

pub(crate) fn five_bar_by_index1() -> Option<()> {
    let model = Model::default();
    let mut state = assembled(&model)?;
    let start = State::of(&DIMS, &mut state).ok()?;
    let mut y = [0.0; NQ + NV];
    start.joint_form(&model, &mut y).ok()?;
    let system = OnConstraints(Index1::new(&model));
    let mut scratch = [0.0; Rk4::scratch_len(&DIMS) + 64];
    let length = Rk4::scratch_len(&system.dims());
    let span = Span { start: 0.0, end: black_box(0.1), output: Output::Steps };
    let rk4 = Fixed { method: Rk4, h: 1e-3 };
    let scratch = scratch.get_mut(..length)?;
    rk4.run(&system, &mut NoInputs, &mut y, &span, scratch, |_| ControlFlow::Continue(())).ok()?;
    let z = implicit(&model)?;
    y.iter().zip(z).all(|(y, z)| (y - z).abs() < CLOSE).then_some(())
}
