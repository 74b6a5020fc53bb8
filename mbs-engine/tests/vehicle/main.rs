//! The buggy and the bicycles: topology, accelerations, both manoeuvres, order, symmetry, energy, equilibrium, gradients, modes, and
//! what happens at the edge of what they can do.

mod bicycles;
mod elements;
mod extremes;
mod reference;
mod statics;

use mbs_codegen::model::Model;
use mbs_codegen::program::{BundleKind, Options, Program};
use mbs_engine::Interpreted;
use mbs_runtime::formulation::{ImplicitStep, Node, StartStatistics};
use mbs_runtime::quadrature::Trapezoid;
use mbs_runtime::{
    Ali3p, Assembly, At, Energy, Fixed, Names, Objectives, Output, Outputs, Quantity, Span, State,
    Statistics, StepError, System, euler_parameters,
};
use std::ops::ControlFlow;

/// Whether the long runs are wanted: the environment variable `MBS_LONG`.
fn long_runs() -> bool {
    std::env::var_os("MBS_LONG").is_some()
}

fn text(name: &str) -> String {
    let path = format!("{}/../models/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn read(text: &str) -> Model {
    let found = mbs_codegen::read("model.yaml", text);
    found.unwrap_or_else(|problems| panic!("{}", problems.render("model.yaml", text))).0
}

/// A model under a case, with the bundles implicit runs need.
fn load(text: &str, case: Option<&str>) -> Interpreted {
    let bundles = [BundleKind::Energy, BundleKind::Outputs, BundleKind::Objectives];
    with_bundles(text, case, [&BundleKind::COORDINATE_FORM[..], &bundles].concat())
}

fn with_bundles(text: &str, case: Option<&str>, bundles: Vec<BundleKind>) -> Interpreted {
    let model = read(text);
    let case = case.map(|name| model.cases.iter().find(|case| case.name == name).expect("a case"));
    let options = Options { bundles, ..Options::default() };
    Interpreted::new(Program::new(&model, case, &options).expect("a program"))
}

fn place(model: &Interpreted, quantity: Quantity, name: &str) -> usize {
    (0..)
        .map_while(|i| model.name(quantity, i))
        .position(|n| n == name)
        .unwrap_or_else(|| panic!("no {name}"))
}

fn coordinate(model: &Interpreted, name: &str) -> usize {
    place(model, Quantity::Coordinate, name)
}

/// The consistent start.
fn start(model: &Interpreted) -> Result<(Vec<f64>, StartStatistics), StepError> {
    let y = model.start_state();
    let (z, v) = y.split_at(model.dims().nq);
    let mut zd = vec![0.0; z.len()];
    euler_parameters::coordinate_rates(model, z, v, &mut zd).expect("lengths");
    consistent(model, 0.0, z, &zd)
}

/// The consistent state nearest to this one.
fn consistent(
    model: &Interpreted,
    t: f64,
    z: &[f64],
    zd: &[f64],
) -> Result<(Vec<f64>, StartStatistics), StepError> {
    let dims = model.dims();
    let mut state = vec![0.0; State::<f64>::len(&dims)];
    let mut view = State::of(&dims, &mut state).expect("its length");
    view.reset(t);
    view.z.copy_from_slice(z);
    view.zd.copy_from_slice(zd);
    let mut scratch = vec![0.0; Assembly::scratch_len(&dims)];
    let statistics = Assembly::DEFAULT.start(model, &mut model.input_signals(), &mut state, &mut scratch)?;
    Ok((state, statistics))
}

/// What is seen at a node.
struct Seen<'a> {
    t: f64,
    z: &'a [f64],
    zd: &'a [f64],
    lambda: &'a [f64],
    outputs: &'a [f64],
    /// Integrals of the objectives so far.
    psi: &'a [f64],
    /// Kinetic and potential energy less the work of all other forces.
    energy: f64,
}

/// A run by ALI3-P from the model's start; energies count if asked for.
fn run(
    model: &Interpreted,
    h: f64,
    end: f64,
    mut observe: impl FnMut(Seen<'_>),
) -> Result<(Vec<f64>, Statistics), StepError> {
    let method = Ali3p::DEFAULT;
    let (mut state, _) = start(model)?;
    let dims = model.dims();
    let mut scratch = vec![0.0; method.scratch_len(&dims)];
    let (mut v, mut vd) = (vec![0.0; dims.nv], vec![0.0; dims.nv]);
    let mut w = vec![0.0; dims.workspace];
    let (mut g, mut terminal) = (vec![0.0; dims.n_objectives], vec![0.0; dims.n_objectives]);
    let mut outputs = vec![0.0; dims.n_outputs];
    let (mut sums, mut work) = (vec![0.0; 2 * dims.n_objectives], [0.0; 2]);
    let (mut sums, mut work) = (Trapezoid::new(&mut sums), Trapezoid::new(&mut work));
    let mut inputs = model.input_signals();
    let span = Span { start: 0.0, end, output: Output::Steps };
    let statistics = Fixed { method, h }.run(
        model,
        &mut inputs,
        &mut state,
        &span,
        &mut scratch,
        |node: Node<'_, f64>| {
            let m = node.motion;
            euler_parameters::velocities(model, m.z, m.zd, &mut v).expect("lengths");
            euler_parameters::accelerations(model, m.z, m.zd, m.zdd, &mut vd).expect("lengths");
            let behind = dims.n_holonomic + dims.n_normalisation;
            let lambda = [&node.lambda[..dims.n_holonomic], &node.lambda[behind..]].concat();
            let at = At { t: m.t, z: m.z, v: &v, x: &[], u: m.u };
            model.objectives(at, &vd, &lambda, &mut w, &mut g, &mut terminal).expect("objectives");
            model.outputs(at, &vd, &mut w, &mut outputs).expect("outputs");
            let mut energy = [0.0; 3];
            model.energy(at, &mut w, &mut energy).expect("energy");
            sums.add(m.t, &g);
            work.add(m.t, &[energy[2]]);
            observe(Seen {
                t: m.t,
                z: m.z,
                zd: m.zd,
                lambda: node.lambda,
                outputs: &outputs,
                psi: sums.integrals(),
                energy: energy[0] + energy[1] - work.integrals()[0],
            });
            ControlFlow::Continue(())
        },
    )?;
    Ok((sums.integrals().to_vec(), statistics))
}

fn objective(model: &Interpreted, name: &str) -> usize {
    place(model, Quantity::Objective, name)
}

/// ψ of a run.
fn psi(model: &Interpreted, name: &str, h: f64, end: f64) -> f64 {
    let (psi, statistics) = run(model, h, end, |_| ()).unwrap_or_else(|e| panic!("{}", e.describe(model)));
    let found = psi[objective(model, name)];
    println!(
        "{name}, h = {h}: {found:.10}, {:.2} iterations a step",
        statistics.iterations as f64 / statistics.steps as f64
    );
    found
}

#[test]
fn topology() {
    let model = load(&text("buggy"), Some("step_descent"));
    let dims = model.dims();
    assert_eq!(read(&text("buggy")).bodies.len(), 19, "18 and the ground");
    assert_eq!(dims.nq, 36);
    assert_eq!(dims.rows(), 26);
    let (_, statistics) = start(&model).unwrap();
    assert_eq!((statistics.rows, statistics.rank), (26, 22));
    // The start is consistent as it is given.
    assert!(statistics.phi < 1e-15, "{statistics:?}");
}

/// Accelerations of one instant of the lane change.
#[test]
fn accelerations() {
    let model = load(&text("buggy"), Some("double_lane_change"));
    let (mut z, mut zd) = (vec![0.0; 36], vec![0.0; 36]);
    // The angles of the right side turn about mirrored axes.
    let sign = |name: &str| match name.strip_prefix("right_") {
        Some(name) if name.contains("angle") && !name.contains("hub") => -1.0,
        _ => 1.0,
    };
    for (name, z_i, zd_i, _) in reference::INSTANT {
        let i = coordinate(&model, name);
        (z[i], zd[i]) = (sign(name) * z_i, sign(name) * zd_i);
    }
    let (mut state, _) = consistent(&model, 2.4, &z, &zd).unwrap();
    let view = State::of(&model.dims(), &mut state).unwrap();
    let mut worst = 0.0f64;
    for (name, _, _, zdd) in reference::INSTANT {
        let found = sign(name) * view.zdd[coordinate(&model, name)];
        // Ten digits are printed.
        worst = worst.max(((found - zdd) / zdd).abs());
        assert!((found - zdd).abs() < 1e-9 * zdd.abs(), "{name}: {found:.12e} and {zdd:e}");
    }
    println!("worst relative difference of accelerations {worst:.1e}");
}

#[test]
fn step_descent() {
    let model = load(&text("buggy"), Some("step_descent"));
    let names = ["ride.x", "ride.z", "ride.e2", "left_front_length", "left_rear_length"];
    let columns = [1, 2, 4, 6, 7];
    let places = names.map(|name| coordinate(&model, name));
    let loads = ["left_front_tyre_load", "left_rear_tyre_load"].map(|n| place(&model, Quantity::Output, n));
    let pairs: Vec<(usize, usize)> = ["front_length", "rear_length", "front_hub.angle", "rear_hub.angle"]
        .map(|name| {
            (coordinate(&model, &format!("left_{name}")), coordinate(&model, &format!("right_{name}")))
        })
        .into();
    let [y, e1, e3] = ["ride.y", "ride.e1", "ride.e3"].map(|name| coordinate(&model, name));
    let a = objective(&model, "psi_a");
    let (mut asymmetry, mut energies) = (0.0f64, Vec::new());
    let [coarse, fine] = [1e-3, 5e-4].map(|h| {
        let (mut rows, mut first, mut drift) = (Vec::new(), None, 0.0f64);
        let (psi, statistics) = run(&model, h, 4.5, |seen| {
            if reference::STEP_DESCENT.iter().any(|row| (row[0] - seen.t).abs() < 0.1 * h) {
                let z = places.map(|i| seen.z[i]);
                rows.push((z, loads.map(|i| seen.outputs[i]), seen.psi[a], seen.zd[places[0]]));
            }
            for (left, right) in &pairs {
                asymmetry = asymmetry.max((seen.z[*left] - seen.z[*right]).abs());
            }
            asymmetry = [y, e1, e3].iter().fold(asymmetry, |m, &i| m.max(seen.z[i].abs()));
            drift = drift.max((seen.energy - *first.get_or_insert(seen.energy)).abs());
        })
        .unwrap_or_else(|error| panic!("{}", error.describe(&model)));
        println!(
            "psi_a, h = {h}: {:.10}, {:.2} iterations a step, energy {drift:.1e} J",
            psi[a],
            statistics.iterations as f64 / statistics.steps as f64
        );
        energies.push(drift);
        (psi[a], rows)
    });
    let exact = reference::STEP_DESCENT[13][10];
    let errors = [coarse.0, fine.0].map(|psi| (psi - exact) / exact);
    println!("relative errors {errors:?}, ratio {:.3}; asymmetry {asymmetry:.1e}", errors[0] / errors[1]);
    assert!(errors[0].abs() < 3e-5 && errors[1].abs() < 1e-5, "{errors:?}");
    assert!((errors[0] / errors[1] - 4.0).abs() < 0.3);
    assert!(asymmetry < 1e-9);
    // Of 5065 J. The work of tyres and dampers is summed by the trapezoidal rule, so the balance is of order 2 too.
    assert!((energies[0] / energies[1] - 4.0).abs() < 0.5 && energies[1] < 1e-2, "{energies:?}");
    // Extrapolated, errors of order 2 are gone, and the reference prints eleven digits, of loads nine; what is left is of order 4.
    let mut worst = [0.0f64; 4];
    for ((row, coarse), fine) in reference::STEP_DESCENT.iter().zip(&coarse.1).zip(&fine.1) {
        let exact = |coarse: f64, fine: f64| fine + (fine - coarse) / 3.0;
        let mut compare = |what: usize, coarse: f64, fine: f64, expected: f64, allowed: f64| {
            let found = exact(coarse, fine);
            worst[what] = worst[what].max((found - expected).abs());
            assert!((found - expected).abs() < allowed, "t = {}: {found} and {expected}", row[0]);
        };
        for (k, column) in columns.iter().enumerate() {
            compare(0, coarse.0[k], fine.0[k], row[*column], 2e-9);
        }
        compare(1, coarse.3, fine.3, row[3], 1e-8);
        for k in 0..2 {
            compare(2, coarse.1[k], fine.1[k], row[8 + k], 3e-4);
        }
        compare(3, coarse.2, fine.2, row[10], 1e-7);
    }
    println!(
        "extrapolated: positions {:.1e}, speed {:.1e}, loads {:.1e}, psi_a {:.1e}",
        worst[0], worst[1], worst[2], worst[3]
    );
}

#[test]
fn double_lane_change() {
    let model = load(&text("buggy"), Some("double_lane_change"));
    let names = ["ride.x", "ride.y", "ride.z", "ride.e0", "ride.e1", "ride.e2", "ride.e3"];
    let places = names.map(|name| coordinate(&model, name));
    let b = objective(&model, "psi_b");
    let rack = coordinate(&model, "rack_guide.displacement");
    let steering = place(&model, Quantity::Holonomic, "steering");
    let mut energies = Vec::new();
    let [coarse, middle, fine] = [1e-2, 5e-3, 2.5e-3].map(|h| {
        let (mut rows, mut first, mut drift) = (Vec::new(), None, 0.0f64);
        let mut work = [0.0; 2];
        let mut work = Trapezoid::new(&mut work);
        let (psi, statistics) = run(&model, h, 12.0, |seen| {
            if reference::LANE_CHANGE.iter().any(|row| (row[0] - seen.t).abs() < 0.1 * h) {
                rows.push(places.map(|i| seen.z[i]));
            }
            // Φ = s − s(t), and the rack is moved by −Φ_zᵀ λ.
            work.add(seen.t, &[-seen.lambda[steering] * seen.zd[rack]]);
            let energy = seen.energy - work.integrals()[0];
            drift = drift.max((energy - *first.get_or_insert(energy)).abs());
        })
        .unwrap_or_else(|error| panic!("{}", error.describe(&model)));
        let each = statistics.iterations as f64 / statistics.steps as f64;
        println!("psi_b, h = {h}: {:.12}, {each:.2} iterations a step, energy {drift:.1e} J", psi[b]);
        energies.push(drift);
        (psi[b], rows)
    });
    // Of 32 237 J, as in the descent.
    assert!((energies[1] / energies[2] - 4.0).abs() < 0.5 && energies[2] < 0.2, "{energies:?}");
    let exact = reference::LANE_CHANGE[reference::LANE_CHANGE.len() - 1][9];
    let errors = [coarse.0, middle.0, fine.0].map(|psi| (psi - exact) / exact);
    println!("relative errors {errors:?}, ratios {:.3}, {:.3}", errors[0] / errors[1], errors[1] / errors[2]);
    assert!(errors[2].abs() < 3e-5, "{errors:?}");
    assert!((errors[1] / errors[2] - 4.0).abs() < 0.3);
    let mut worst = [0.0f64; 2];
    for ((row, coarse), fine) in reference::LANE_CHANGE.iter().zip(&middle.1).zip(&fine.1) {
        for k in 0..7 {
            let found = fine[k] + (fine[k] - coarse[k]) / 3.0;
            let worst = &mut worst[usize::from(k >= 2)];
            *worst = worst.max((found - row[1 + k]).abs());
            // Order 4 of what is left.
            assert!((found - row[1 + k]).abs() < 1e-8, "t = {}, {}: {found}", row[0], names[k]);
        }
    }
    println!("extrapolated: {:.1e} m along the ground, {:.1e} in height and turn", worst[0], worst[1]);
}
