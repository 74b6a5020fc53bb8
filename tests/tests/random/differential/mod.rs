//! Random closed mechanisms against an oracle that shares nothing with the generator: Newton and Euler in coordinates of every body.
//!
//! One description is written as a model file, and read by the oracle. `MBS_DIFFERENTIAL=10000` tries more than the few hundred of every
//! run; `MBS_DIFFERENTIAL_FIRST=n` begins at another seed.

mod description;
mod draw;
mod file;
mod oracle;
mod scales;
mod vector;

use draw::{Drawn, draw};
use mbs_codegen::program::BundleKind;
use mbs_engine::Interpreted;
use mbs_runtime::formulation::State;
use mbs_runtime::{
    Adaptive, Ali3p, At, ConstrainedDynamics, Energy, Fixed, ImplicitIndex1, Index1, Outputs, Reactions, Rk4,
    Stabilisation, System, euler_parameters,
};
use mbs_tests::closed;
use mbs_tests::gradient::implicit;
use oracle::Oracle;
use vector::{V3, dot, scale, sub, unit};

/// Which mechanisms are tried.
fn seeds(few: u64) -> std::ops::Range<u64> {
    let setting =
        |name, otherwise| std::env::var(name).map_or(otherwise, |text| text.parse().expect("a whole number"));
    let first = setting("MBS_DIFFERENTIAL_FIRST", 0);
    first..first + setting("MBS_DIFFERENTIAL", few)
}

/// What is needed of an instant, and of a run.
const INSTANT: [BundleKind; 4] =
    [BundleKind::ConstrainedDynamics, BundleKind::Reactions, BundleKind::Outputs, BundleKind::Energy];
const RUN: [BundleKind; 2] = [BundleKind::ConstraintCorrection, BundleKind::Objectives];
/// How long runs take.
const END: f64 = 0.1;
/// Errors of the methods and of the oracle at their steps.
const TOLERANCE: f64 = 1e-5;

fn largest(x: &[f64]) -> f64 {
    x.iter().fold(0.0, |m, x| m.max(x.abs()))
}

/// Whether an error is too large, or not a number.
fn exceeds(error: f64, tolerance: f64) -> bool {
    error.is_nan() || error > tolerance
}

/// Largest difference, in units of the largest number.
fn apart(a: &[f64], b: &[f64]) -> f64 {
    closed::distance(a, b) / largest(b).max(f64::MIN_POSITIVE)
}

/// All that the engine says of an instant.
struct Said {
    outputs: Vec<f64>,
    reactions: Vec<f64>,
    energy: [f64; 3],
}

fn said(model: &Interpreted, t: f64, z: &[f64], v: &[f64], vd: &[f64], lambda: &[f64]) -> Said {
    let d = model.dims();
    let at = At { t, z, v, x: &[], u: &[] };
    let mut w = vec![0.0; d.workspace];
    let (mut outputs, mut reactions) = (vec![0.0; d.n_outputs], vec![0.0; 6 * d.n_joints]);
    let mut energy = [0.0; 3];
    model.outputs(at, vd, &mut w, &mut outputs).expect("outputs");
    model.reactions(at, vd, lambda, &mut w, &mut reactions).expect("reactions");
    model.energy(at, &mut w, &mut energy).expect("energy");
    Said { outputs, reactions, energy }
}

/// The start by both forms of the equations.
fn starts(model: &Interpreted) -> Result<[Said; 2], String> {
    let d = model.dims();
    let (mut state, _) = closed::start(model, 0.0).map_err(|error| closed::said(model, error))?;
    let view = State::of(&d, &mut state).expect("length");
    let (mut v, mut vd) = (vec![0.0; d.nv], vec![0.0; d.nv]);
    euler_parameters::velocities(model, view.z, view.zd, &mut v).expect("lengths");
    euler_parameters::accelerations(model, view.z, view.zd, view.zdd, &mut vd).expect("lengths");
    let lambda = closed::joint_multipliers(model, view.lambda);
    let coordinate_form = said(model, 0.0, view.z, &v, &vd, &lambda);
    let (mut zd, mut lambda) = (vec![0.0; d.nq], lambda);
    let at = At { t: 0.0, z: view.z, v: &v, x: &[], u: &[] };
    let mut w = vec![0.0; d.workspace];
    model
        .constrained_dynamics(at, EXACT, &mut w, &mut zd, &mut vd, &mut [], &mut lambda)
        .map_err(|error| format!("{error:?}"))?;
    Ok([coordinate_form, said(model, 0.0, view.z, &v, &vd, &lambda)])
}

fn model(text: &str) -> Interpreted {
    closed::with_bundles(text, &[&BundleKind::COORDINATE_FORM[..], &INSTANT].concat())
}

fn running(text: &str) -> Interpreted {
    closed::with_bundles(text, &[&BundleKind::COORDINATE_FORM[..], &INSTANT, &RUN].concat())
}

const EXACT: Stabilisation<f64> = Stabilisation { rate: 0.0, value: 0.0, compliance: 0.0 };

/// What every watched point does at the end of a run by each method, in steps of `h`: those of order four and more first.
fn runs(model: &Interpreted, h: f64, end: f64) -> Result<Vec<(&'static str, Vec<f64>)>, String> {
    let fail = |error| closed::said(model, error);
    let explicit = |projected| {
        let rk4 = Fixed { method: Rk4, h };
        closed::run_explicit(model, &rk4, Index1::new(model), projected, end).map_err(fail)
    };
    Ok(vec![
        ("rk4", explicit(false)?.outputs),
        ("rk4 on the constraints", explicit(true)?.outputs),
        ("ali3p", closed::run(model, Ali3p::DEFAULT, h, end, |_| ()).map_err(fail)?.outputs),
        ("index 1", closed::run(model, ImplicitIndex1::new(EXACT), h, end, |_| ()).map_err(fail)?.outputs),
    ])
}

/// What is wrong, or nothing.
fn none(wrong: &[String]) {
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn accelerations_reactions_and_energies_are_those_of_newton_and_euler() {
    let (mut wrong, mut redundant, mut unique, mut all) = (Vec::new(), 0, 0, 0);
    for seed in seeds(240) {
        let Drawn { mechanism, at, redundant: more } = draw(seed);
        redundant += usize::from(more > 0);
        let oracle = Oracle { mechanism: &mechanism };
        let solution = oracle.solve(0.0, &at);
        let watched = oracle.watched(&at, &solution.accelerations);
        let text = mechanism.file();
        let [energy, potential] = oracle.energy(0.0, &at);
        let both = match starts(&model(&text)) {
            Ok(both) => both,
            Err(error) => {
                wrong.push(format!("seed {seed}: {error}"));
                continue;
            }
        };
        for (form, said) in ["coordinate", "joint"].into_iter().zip(&both) {
            let outputs = apart(&said.outputs, &watched);
            let energies = apart(&said.energy[..2], &[energy, potential]);
            if exceeds(outputs, 1e-10) || exceeds(energies, 1e-12) {
                wrong.push(format!("seed {seed}, {form} form: motion {outputs:e}, energy {energies:e}"));
            }
            let size = solution.reactions.iter().flatten().flatten().fold(0.0f64, |m, x| m.max(x.abs()));
            for (j, wrench) in solution.reactions.iter().enumerate() {
                all += 1;
                if let Some(wrench) = wrench {
                    unique += 1;
                    let difference = closed::distance(&said.reactions[6 * j..6 * j + 6], wrench);
                    if exceeds(difference, 1e-9 * size.max(1.0)) {
                        wrong.push(format!(
                            "seed {seed}, {form} form: reaction of j{j} {difference:e} of {size:e}"
                        ));
                    }
                }
            }
        }
    }
    println!("{redundant} with redundant rows, {unique} of {all} reactions unique");
    none(&wrong);
    assert!(redundant > 20 && 3 * unique > all, "{redundant} redundant, {unique} of {all} unique");
}

/// Steps are 1 and 2 ms, those of the oracle 2.5 ms: of methods of order two the difference of both tells the leading error. What is left of all of them is
/// below 1e−5 of accelerations for the fastest of these mechanisms.
#[test]
fn runs_by_all_methods_are_those_of_newton_and_euler() {
    let (mut wrong, mut left_out, seeds) = (Vec::new(), 0, seeds(40));
    let all = seeds.end - seeds.start;
    for seed in seeds {
        let seed = 100_000 + seed;
        let Drawn { mechanism, at, .. } = draw(seed);
        let oracle = Oracle { mechanism: &mechanism };
        let Some(there) = oracle.run(&at, END, 40) else {
            left_out += 1;
            continue;
        };
        let expected = oracle.watched(&there, &oracle.solve(END, &there).accelerations);
        let model = running(&mechanism.file());
        let both = runs(&model, 2e-3, END).and_then(|coarse| Ok((coarse, runs(&model, 1e-3, END)?)));
        let (coarse, fine) = match both {
            Ok(both) => both,
            Err(error) => {
                wrong.push(format!("seed {seed}: {error}"));
                continue;
            }
        };
        for (k, ((method, coarse), (_, fine))) in coarse.iter().zip(&fine).enumerate() {
            let best = match k {
                0 | 1 => fine.clone(),
                _ => coarse.iter().zip(fine).map(|(c, f)| f + (f - c) / 3.0).collect(),
            };
            let difference = apart(&best, &expected);
            if exceeds(difference, TOLERANCE) {
                wrong.push(format!("seed {seed}, {method}: {difference:e}"));
            }
        }
        let adaptive = Adaptive::new(1e-9, 1e-10);
        match closed::run_explicit(&model, &adaptive, Index1::new(&model), true, END) {
            Err(error) => wrong.push(format!("seed {seed}, adaptive: {}", closed::said(&model, error))),
            Ok(outcome) => {
                let difference = apart(&outcome.outputs, &expected);
                if exceeds(difference, TOLERANCE) {
                    wrong.push(format!("seed {seed}, adaptive: {difference:e}"));
                }
            }
        }
    }
    println!("{left_out} of {all} come near to a singular position");
    none(&wrong);
    assert!(8 * left_out < all, "{left_out} of {all} are not compared");
}

/// By the mass and the inertia of the first body. Differences of the oracle's runs are exact to 1e−7 of the square of its change.
#[test]
fn gradients_are_differences_of_the_oracle() {
    let (mut wrong, mut left_out, seeds) = (Vec::new(), 0, seeds(16));
    let all = seeds.end - seeds.start;
    for seed in seeds {
        let seed = 200_000 + seed;
        let Drawn { mechanism, at, .. } = draw(seed);
        let miss = |more: f64| {
            let mut changed = mechanism.clone();
            changed.bodies[0].mass *= more;
            changed.bodies[0].inertia = changed.bodies[0].inertia.map(|row| row.map(|x| x * more));
            let oracle = Oracle { mechanism: &changed };
            let there = oracle.run(&at, END, 40)?;
            let still = vec![[[0.0; 3]; 2]; there.len()];
            let watched = oracle.watched(&there, &still);
            let tip: V3 = std::array::from_fn(|i| watched[27 * (there.len() - 1) + i]);
            // Where the oracle itself diverges, there is nothing to compare.
            Some(dot(tip, tip)).filter(|miss| miss.is_finite())
        };
        let change = 1e-3;
        let (Some(more), Some(less)) = (miss(1.0 + change), miss(1.0 - change)) else {
            left_out += 1;
            continue;
        };
        let expected = (more - less) / (2.0 * change);
        let bundles = [
            &BundleKind::COORDINATE_FORM[..],
            &BundleKind::SENSITIVITIES,
            &[BundleKind::Objectives, BundleKind::Outputs],
        ];
        let model = closed::with_bundles(&mechanism.file(), &bundles.concat());
        let found = |h: f64| {
            let outcome = implicit(&model, &mut model.input_signals(), Ali3p::DEFAULT, h, END);
            outcome.map(|outcome| outcome.gradient[0][0]).map_err(|error| closed::said(&model, error))
        };
        match found(2e-3).and_then(|coarse| Ok((coarse, found(1e-3)?))) {
            Err(error) => wrong.push(format!("seed {seed}: {error}")),
            Ok((coarse, fine)) => {
                let best = fine + (fine - coarse) / 3.0;
                let tolerance = 1e-4 * expected.abs() + 1e-8;
                if exceeds((best - expected).abs(), tolerance) {
                    wrong.push(format!("seed {seed}: {best:e} is not {expected:e}"));
                }
            }
        }
    }
    none(&wrong);
    assert!(4 * left_out < all, "{left_out} of {all} are not compared");
}

#[test]
fn mirror_images_move_as_mirror_images() {
    let mut wrong = Vec::new();
    for seed in seeds(40) {
        let seed = 300_000 + seed;
        let Drawn { mechanism, .. } = draw(seed);
        let normal = unit([0.3, -0.7, 0.5]);
        let [here, there] =
            [&mechanism, &mechanism.mirrored(normal)].map(|m| runs(&running(&m.file()), 2e-3, END / 2.0));
        let (here, there) = match (here, there) {
            (Ok(here), Ok(there)) => (here, there),
            (here, there) => {
                wrong.push(format!("seed {seed}: {:?} {:?}", here.err(), there.err()));
                continue;
            }
        };
        for ((method, here), (_, there)) in here.iter().zip(&there) {
            let image: Vec<f64> = here
                .chunks_exact(3)
                .flat_map(|v| {
                    let v: V3 = std::array::from_fn(|i| v[i]);
                    sub(v, scale(2.0 * dot(normal, v), normal))
                })
                .collect();
            let difference = apart(there, &image);
            if exceeds(difference, 1e-9) {
                wrong.push(format!("seed {seed}, {method}: {difference:e}"));
            }
        }
    }
    none(&wrong);
}
