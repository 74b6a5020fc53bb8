//! The tape, and machine code in its place, compute the very bits of the generator's own interpreter, for every bundle of every shipped model.

mod common;

use common::{all_shipped, noise, program, shipped};
use mbs_codegen::bundle::interpret;
use mbs_codegen::symbols::Group;
use mbs_engine::{Engine, Fusing, Interpreted};
use mbs_runtime::{
    At, ConstrainedDynamics, ConstraintCorrection, Energy, ForwardDynamics, ForwardDynamicsRecursive,
    InverseDynamics, MarkerJacobians, Markers, MassMatrix, MassMatrixCoordinates, Outputs, Stabilisation,
    System,
};

/// Rate, value and compliance of stabilised constraints.
const STABILISATION: [f64; 3] = [3.0, 7.0, 0.01];

/// Results of a bundle by the generator's interpreter, one after the other.
fn oracle(model: &Interpreted, name: &str, at: &At<'_, f64>, vd: &[f64], prepared: &[f64]) -> Vec<f64> {
    let bundle = model.program().bundle(name).expect("the bundle");
    let time = [at.t];
    let arguments = interpret::Arguments::new()
        .with(Group::Time, &time)
        .with(Group::Z, at.z)
        .with(Group::V, at.v)
        .with(Group::Vd, vd)
        .with(Group::U, at.u)
        .with(Group::Parameters, model.parameters())
        .with(Group::Stabilisation, &STABILISATION)
        .with(Group::Prepared, prepared);
    let mut results: Vec<Vec<f64>> = bundle.results.iter().map(|r| vec![0.0; r.len as usize]).collect();
    let mut slices: Vec<&mut [f64]> = results.iter_mut().map(Vec::as_mut_slice).collect();
    let mut scratch = vec![0.0; interpret::scratch_len(bundle)];
    interpret::run(bundle, &arguments, &mut scratch, &mut slices).expect("right lengths");
    results.concat()
}

fn assert_same(what: &str, ours: &[f64], oracle: &[f64]) {
    assert_eq!(ours.len(), oracle.len(), "{what}");
    for (i, (a, b)) in ours.iter().zip(oracle).enumerate() {
        assert_eq!(a.to_bits(), b.to_bits(), "{what}[{i}]: {a} against {b}");
    }
}

/// With FMA the runtime fuses what the generator's interpreter does not.
#[test]
#[cfg(not(target_feature = "fma"))]
fn every_bundle_has_the_bits_of_the_generators_interpreter() {
    let mut seed = 7;
    for (name, engine) in
        all_shipped().into_iter().flat_map(|n| [(n.clone(), Engine::Tape), (n, Engine::Jit)])
    {
        let text = shipped(&name);
        let mut model = Interpreted::<f64>::new(program(&text, None));
        model.set_engine(engine, None, Fusing::AsCompiled);
        let d = model.dims();
        let mut w = vec![f64::NAN; d.workspace];
        for round in 0..4 {
            let mut state = model.start_state();
            if round > 0 {
                state.iter_mut().for_each(|y| *y += 0.3 * noise(&mut seed));
            }
            let mut random = |n: usize| (0..n).map(|_| noise(&mut seed)).collect::<Vec<f64>>();
            let (u, vd) = (random(d.nu), random(d.nv));
            let at = At::of_state(&d, 0.37 * f64::from(round), &state, &u).expect("the state");
            let prepared = oracle(&model, "prepare", &at, &vd, &[]);
            let check = |bundle: &str, ours: &[f64]| {
                assert_same(&format!("{name}: {bundle}"), ours, &oracle(&model, bundle, &at, &vd, &prepared));
            };
            let pivots = |bundle: &str| {
                let all = oracle(&model, bundle, &at, &vd, &prepared);
                all[d.nq + d.nv..].to_vec()
            };

            if d.joint_rows() > 0 {
                let [mut zd, mut dz] = [(); 2].map(|()| vec![0.0; d.nq]);
                let [mut acc, mut dv] = [(); 2].map(|()| vec![0.0; d.nv]);
                let [mut lambda, mut phid] = [(); 2].map(|()| vec![0.0; d.joint_rows()]);
                let mut phi = vec![0.0; d.n_holonomic];
                let [rate, value, compliance] = STABILISATION;
                let gains = Stabilisation { rate, value, compliance };
                model
                    .constrained_dynamics(at, gains, &mut w, &mut zd, &mut acc, &mut [], &mut lambda)
                    .expect("regular");
                let all = oracle(&model, "constrained_dynamics", &at, &vd, &prepared);
                let p = all[d.nq + d.nv + d.joint_rows()..].to_vec();
                check("constrained_dynamics", &[zd, acc, lambda, p].concat());
                model
                    .constraint_correction(at, &mut w, &mut dz, &mut dv, &mut phi, &mut phid)
                    .expect("lengths");
                check("constraint_correction", &[dz, dv, phi, phid].concat());
            } else {
                let (mut zd, mut acc) = (vec![0.0; d.nq], vec![0.0; d.nv]);
                model.forward_dynamics(at, &mut w, &mut zd, &mut acc, &mut []).expect("regular");
                let p = pivots("forward_dynamics");
                check("forward_dynamics", &[zd.clone(), acc.clone(), p].concat());
                model.forward_dynamics_recursive(at, &mut w, &mut zd, &mut acc, &mut []).expect("regular");
                let p = pivots("forward_dynamics_recursive");
                check("forward_dynamics_recursive", &[zd, acc, p].concat());
            }
            let mut m = vec![0.0; d.nv * d.nv];
            model.mass_matrix(at, &mut w, &mut m).expect("lengths");
            check("mass_matrix", &m);
            let mut m = vec![0.0; d.nq * d.nq];
            model.mass_matrix_coordinates(at, &mut w, &mut m).expect("lengths");
            check("mass_matrix_coordinates", &m);
            let mut tau = vec![0.0; d.nv];
            model.inverse_dynamics(at, &vd, &mut w, &mut tau).expect("lengths");
            check("inverse_dynamics", &tau);
            let mut energy = [0.0; 3];
            model.energy(at, &mut w, &mut energy).expect("lengths");
            check("energy", &energy);
            let mut points = [(); 3].map(|()| vec![0.0; 3 * d.n_markers]);
            let [r, v, a] = &mut points;
            model.markers(at, &vd, &mut w, r, v, a).expect("lengths");
            check("markers", &points.concat());
            let mut jacobians = vec![0.0; 3 * d.n_markers * d.nv];
            model.marker_jacobians(at, &mut w, &mut jacobians).expect("lengths");
            check("marker_jacobians", &jacobians);
            let mut out = vec![0.0; d.n_outputs];
            model.outputs(at, &vd, &mut w, &mut out).expect("lengths");
            check("outputs", &out);
        }
        assert_same(
            &format!("{name}: start"),
            &model.start_state(),
            &oracle(&model, "start", &At { t: 0.0, z: &[], v: &[], x: &[], u: &[] }, &[], &[]),
        );
    }
}
