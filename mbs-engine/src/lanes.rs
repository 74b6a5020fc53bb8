//! A bundle over four samples at a time, for sweeps: one model under four sets of parameters, states or inputs.
//!
//! Input: four copies of a model, each with its parameters, and arguments side by side: scalar i of sample k is at
//! `i * LANES + k`. Output: results in the same order.
//! Holds afterwards: every sample has the bits that its model alone gives. Bundles with gathers, kernels or loops, and all bundles where there
//! is no machine code, are run sample by sample.

use crate::Interpreted;
use crate::tape::Arguments;
use mbs_codegen::bundle::Bundle;
use mbs_codegen::program::BundleKind;
use mbs_codegen::symbols::Group;
use mbs_jit::{Compiled, LANES};
use mbs_runtime::EvalError;

/// Four copies of a model, evaluated together.
#[derive(Debug)]
pub struct Lanes {
    models: [Interpreted; LANES],
    /// What depends on the parameters alone, side by side.
    prepared: Vec<f64>,
    /// In the order of [`BundleKind::ALL`]; inside, none where a bundle has no code over lanes.
    codes: [Option<Option<Compiled>>; BundleKind::ALL.len()],
    memory: Vec<f64>,
}

impl Lanes {
    /// Of copies of one model, whose parameters may differ. None if they do not come from the same program.
    pub fn new(models: [Interpreted; LANES]) -> Option<Lanes> {
        if !models.iter().all(|model| model.is_copy_of(&models[0])) {
            return None;
        }
        let count = models[0].prepared().len();
        let prepared = (0..count).flat_map(|i| models.each_ref().map(|model| model.prepared()[i])).collect();
        Some(Lanes { models, prepared, codes: [const { None }; BundleKind::ALL.len()], memory: Vec::new() })
    }

    /// The models, to read their parameters.
    pub fn models(&self) -> &[Interpreted; LANES] {
        &self.models
    }

    /// Writes the machine code of a bundle and reserves its memory: [`Lanes::run`] does it at its first call otherwise. Whether there is
    /// code.
    pub fn prepare(&mut self, kind: BundleKind) -> bool {
        let model = &self.models[0];
        let code = self.codes[kind as usize].get_or_insert_with(|| model.lanes_code(kind));
        let needed = code.as_ref().map_or(0, Compiled::memory);
        if self.memory.len() < needed {
            self.memory.resize(needed, 0.0);
        }
        code.is_some()
    }

    /// Evaluates a bundle. `arguments` by group, beside prepared values; all results, pivots among them as the bundle has them.
    pub fn run(
        &mut self,
        kind: BundleKind,
        arguments: Arguments<'_, f64>,
        results: &mut [&mut [f64]],
    ) -> Result<(), EvalError> {
        self.prepare(kind);
        let Lanes { models, prepared, codes, memory } = self;
        let bundle = models[0].program().bundle(kind.name());
        let bundle = bundle.ok_or(EvalError::Absent { bundle: kind.name() })?;
        let mut arguments = arguments;
        arguments[Group::Prepared as usize] = prepared;
        check_lengths(bundle, &arguments, results)?;
        let Some(Some(code)) = &codes[kind as usize] else {
            return one_by_one(models, kind, bundle, &arguments, results);
        };
        let mut given: [&[f64]; Group::ALL.len()] = [&[]; Group::ALL.len()];
        let mut count = 0;
        for (group, slice) in arguments.into_iter().enumerate() {
            if bundle.arguments.iter().any(|&(taken, _)| taken as usize == group) {
                given[count] = slice;
                count += 1;
            }
        }
        let (expected, found) = (code.memory(), memory.len());
        let ran = code.run(&given[..count], memory, results);
        ran.map_err(|_| EvalError::Length { what: "w", expected, found })
    }
}

fn check_lengths(
    bundle: &Bundle,
    arguments: &Arguments<'_, f64>,
    results: &[&mut [f64]],
) -> Result<(), EvalError> {
    let exactly = |what, expected: u32, found: usize| match expected as usize * LANES {
        expected if expected == found => Ok(()),
        expected => Err(EvalError::Length { what, expected, found }),
    };
    for &(group, len) in &bundle.arguments {
        exactly(group.identifier(), len, arguments[group as usize].len())?;
    }
    if bundle.results.len() != results.len() {
        let (expected, found) = (bundle.results.len(), results.len());
        return Err(EvalError::Length { what: "results", expected, found });
    }
    bundle
        .results
        .iter()
        .zip(results)
        .try_for_each(|(result, slice)| exactly(result.name, result.len, slice.len()))
}

/// Each sample by its model.
fn one_by_one(
    models: &[Interpreted; LANES],
    kind: BundleKind,
    bundle: &Bundle,
    arguments: &Arguments<'_, f64>,
    results: &mut [&mut [f64]],
) -> Result<(), EvalError> {
    let mut w = vec![0.0; models[0].bundle(kind)?.memory()];
    for (k, model) in models.iter().enumerate() {
        let of = |slice: &[f64]| -> Vec<f64> { slice.iter().skip(k).step_by(LANES).copied().collect() };
        let given: Vec<(Group, Vec<f64>)> =
            bundle.arguments.iter().map(|&(group, _)| (group, of(arguments[group as usize]))).collect();
        let mut alone: Arguments<'_, f64> = [&[]; Group::ALL.len()];
        given.iter().for_each(|(group, slice)| alone[*group as usize] = slice);
        let mut found: Vec<Vec<f64>> = results.iter().map(|slice| of(slice)).collect();
        let mut slices: Vec<&mut [f64]> = found.iter_mut().map(Vec::as_mut_slice).collect();
        model.run_bundle(kind, alone, &mut w, &mut slices)?;
        for (result, found) in results.iter_mut().zip(&found) {
            result.iter_mut().skip(k).step_by(LANES).zip(found).for_each(|(to, &from)| *to = from);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Engine, Fusing};
    use mbs_codegen::program::{Options, Program};

    fn model(text: &str) -> Interpreted {
        let (model, _) = mbs_codegen::read("model.yaml", text).expect("a valid model");
        let options = Options { bundles: BundleKind::ALL.to_vec(), ..Options::default() };
        Interpreted::new(Program::new(&model, None, &options).expect("a program"))
    }

    #[test]
    fn every_lane_has_the_bits_of_its_model() {
        let text = include_str!("../../models/five_bar.yaml");
        for engine in [Engine::Jit, Engine::Tape] {
            let mut first = model(text);
            first.set_engine(engine, None, Fusing::AsCompiled);
            let mut models = std::array::from_fn(|_| first.clone());
            for (k, model) in models.iter_mut().enumerate() {
                let mut values = model.parameters().to_vec();
                values.iter_mut().for_each(|value| *value *= 1.0 + 0.01 * k as f64);
                model.set_parameters(&values).expect("near the defaults");
            }
            let mut lanes = Lanes::new(models.clone()).expect("copies of one model");
            let mut seed = 1.0_f64;
            let mut number = || {
                seed = (seed * 997.0 + 0.37).fract();
                2.0 * seed - 1.0
            };
            let (mut compared, mut compiled) = (0, 0);
            for kind in BundleKind::ALL {
                let Some(bundle) = first.program().bundle(kind.name()) else { continue };
                let mut numbers =
                    |len: u32| (0..LANES * len as usize).map(|_| number()).collect::<Vec<f64>>();
                let taken = bundle.arguments.iter().filter(|&&(group, _)| group != Group::Prepared);
                let given: Vec<(Group, Vec<f64>)> =
                    taken.map(|&(group, len)| (group, numbers(len))).collect();
                let mut arguments: Arguments<'_, f64> = [&[]; Group::ALL.len()];
                given.iter().for_each(|(group, slice)| arguments[*group as usize] = slice);
                let mut results: Vec<Vec<f64>> =
                    bundle.results.iter().map(|r| vec![f64::NAN; LANES * r.len as usize]).collect();
                let mut slices: Vec<&mut [f64]> = results.iter_mut().map(Vec::as_mut_slice).collect();
                compiled += usize::from(lanes.prepare(kind));
                lanes.run(kind, arguments, &mut slices).expect("right lengths");
                for (k, model) in models.iter().enumerate() {
                    let given: Vec<(Group, Vec<f64>)> = given
                        .iter()
                        .map(|(group, slice)| {
                            (*group, slice.iter().skip(k).step_by(LANES).copied().collect())
                        })
                        .collect();
                    let mut alone: Arguments<'_, f64> = [&[]; Group::ALL.len()];
                    given.iter().for_each(|(group, slice)| alone[*group as usize] = slice);
                    let mut w = vec![f64::NAN; model.bundle(kind).expect("the bundle").memory()];
                    let mut expected: Vec<Vec<f64>> =
                        bundle.results.iter().map(|r| vec![f64::NAN; r.len as usize]).collect();
                    let mut slices: Vec<&mut [f64]> = expected.iter_mut().map(Vec::as_mut_slice).collect();
                    model.run_bundle(kind, alone, &mut w, &mut slices).expect("right lengths");
                    for (found, expected) in results.iter().zip(&expected) {
                        for (found, expected) in found.iter().skip(k).step_by(LANES).zip(expected) {
                            let same = found.to_bits() == expected.to_bits()
                                || (found.is_nan() && expected.is_nan());
                            assert!(same, "{}, lane {k}: {found:?}, not {expected:?}", kind.name());
                            compared += 1;
                        }
                    }
                }
            }
            assert!(compared > 1000, "{compared}");
            let expected = engine == Engine::Jit && mbs_jit::availability(Fusing::AsCompiled).is_ok();
            assert_eq!(compiled > 10, expected, "{compiled}");
        }
    }

    #[test]
    fn models_of_different_programs_are_refused() {
        let text = include_str!("../../models/five_bar.yaml");
        let (a, b) = (model(text), model(text));
        assert!(Lanes::new([a.clone(), a.clone(), a.clone(), b]).is_none());
        assert!(Lanes::new([a.clone(), a.clone(), a.clone(), a]).is_some());
    }
}
