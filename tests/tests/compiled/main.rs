//! Thirty compiled random trees and some closed mechanisms against the interpreters: bit for bit where nothing is
//! fused, to rounding of the block where the target fuses multiplication and addition.
#![allow(unreachable_pub, reason = "a test includes what a crate would publish")]

use mbs_codegen::bundle::interpret::{Arguments, run, scratch_len};
use mbs_codegen::kinematics::ReferencePoint;
use mbs_codegen::program::{BundleKind, Options, Program};
use mbs_codegen::symbols::Group;
use mbs_engine::Interpreted;
use mbs_runtime::{
    AccelerationDerivatives, At, Centroid, Centroidal, CoriolisTerms, Energy, ForwardDynamics,
    ForwardDynamicsDerivatives, ForwardDynamicsExternal, ForwardDynamicsRecursive, GravityTerms,
    InertialParameters, InverseDynamics, InverseDynamicsDerivatives, InverseDynamicsExternal,
    InverseDynamicsParameters, MarkerJacobianRates, MarkerJacobians, Markers, MassMatrix,
    MassMatrixCoordinates, MassMatrixInverseAction, Names, Outputs, Quantity, Regressor, Start, System,
};
use mbs_tests::random_model::{Random, compiled};

mod closed;
mod embedded;
mod no_allocation;
mod problem;

#[cfg(not(clippy))]
include!(concat!(env!("OUT_DIR"), "/random_models.rs"));
#[cfg(clippy)]
include!(concat!(env!("OUT_DIR"), "/random_models_linted.rs"));

const FUSED: bool = mbs_runtime::math::FUSED;

/// Every bundle a model can have.
trait Complete:
    System<S = f64>
    + Start
    + ForwardDynamics
    + ForwardDynamicsRecursive
    + MassMatrix
    + MassMatrixCoordinates
    + InverseDynamics
    + Energy
    + Markers
    + MarkerJacobians
    + Outputs
{
}

impl<M> Complete for M where
    M: System<S = f64>
        + Start
        + ForwardDynamics
        + ForwardDynamicsRecursive
        + MassMatrix
        + MassMatrixCoordinates
        + InverseDynamics
        + Energy
        + Markers
        + MarkerJacobians
        + Outputs
{
}

/// The results of every bundle, by name.
type Results = Vec<(&'static str, Vec<f64>)>;

struct State {
    t: f64,
    z: Vec<f64>,
    v: Vec<f64>,
    vd: Vec<f64>,
    u: Vec<f64>,
}

fn evaluate(model: &impl Complete, state: &State) -> Results {
    let d = model.dims();
    let mut w = vec![f64::NAN; d.workspace];
    let at = At { t: state.t, z: &state.z, v: &state.v, x: &[], u: &state.u };
    let out = |n: usize| vec![f64::NAN; n];
    let (mut zd, mut vd, mut m, mut mz) = (out(d.nq), out(d.nv), out(d.nv * d.nv), out(d.nq * d.nq));
    let (mut tau, mut energy, mut outputs) = (out(d.nv), [f64::NAN; 3], out(d.n_outputs));
    let [mut r, mut rd, mut rdd] = [0; 3].map(|_| out(3 * d.n_markers));
    let mut jacobians = out(3 * d.n_markers * d.nv);
    let mut results = Results::new();
    model.forward_dynamics(at, &mut w, &mut zd, &mut vd, &mut []).expect("regular");
    results.push(("forward_dynamics", [&zd[..], &vd[..]].concat()));
    model.forward_dynamics_recursive(at, &mut w, &mut zd, &mut vd, &mut []).expect("regular");
    results.push(("forward_dynamics_recursive", [&zd[..], &vd[..]].concat()));
    model.mass_matrix(at, &mut w, &mut m).expect("lengths");
    results.push(("mass_matrix", m));
    model.mass_matrix_coordinates(at, &mut w, &mut mz).expect("lengths");
    results.push(("mass_matrix_coordinates", mz));
    model.inverse_dynamics(at, &state.vd, &mut w, &mut tau).expect("lengths");
    results.push(("inverse_dynamics", tau));
    model.energy(at, &mut w, &mut energy).expect("lengths");
    results.push(("energy", energy.to_vec()));
    model.markers(at, &state.vd, &mut w, &mut r, &mut rd, &mut rdd).expect("lengths");
    results.push(("markers", [r, rd, rdd].concat()));
    model.marker_jacobians(at, &mut w, &mut jacobians).expect("lengths");
    results.push(("marker_jacobians", jacobians));
    model.outputs(at, &state.vd, &mut w, &mut outputs).expect("lengths");
    results.push(("outputs", outputs));
    results
}

/// The same by the generator's own interpreter, which never fuses.
fn interpret(program: &Program, state: &State) -> Results {
    let parameters = program.defaults();
    let call = |name: &str, arguments: &Arguments<'_, f64>| {
        let bundle = program.bundle(name).expect("an emitted bundle");
        let mut scratch = vec![f64::NAN; scratch_len(bundle)];
        let mut results: Vec<Vec<f64>> =
            bundle.results.iter().map(|r| vec![f64::NAN; r.len as usize]).collect();
        let mut slices: Vec<&mut [f64]> = results.iter_mut().map(|r| &mut r[..]).collect();
        run(bundle, arguments, &mut scratch, &mut slices).expect("lengths");
        results
    };
    let prepared = call("prepare", &Arguments::new().with(Group::Parameters, &parameters)).remove(0);
    let t = [state.t];
    let arguments = Arguments::new()
        .with(Group::Time, &t)
        .with(Group::Z, &state.z)
        .with(Group::V, &state.v)
        .with(Group::Vd, &state.vd)
        .with(Group::U, &state.u)
        .with(Group::Prepared, &prepared);
    BundleKind::TREE
        .into_iter()
        .filter(|&kind| kind != BundleKind::InverseDynamicsDerivatives)
        .map(|kind| {
            let mut results = call(kind.name(), &arguments);
            // The pivots are for the caller, not a result.
            results.truncate(if kind.name().starts_with("forward") { 2 } else { 3 });
            (kind.name(), results.concat())
        })
        .collect()
}

fn program(index: u64) -> Program {
    let text = compiled::text(index);
    let (model, _) = mbs_codegen::read("random.yaml", &text).expect("a valid model");
    let options = Options {
        reference: if compiled::about_com(index) {
            ReferencePoint::CentreOfMass
        } else {
            ReferencePoint::Origin
        },
        freeze: compiled::frozen(index),
        bundles: compiled::bundles(index),
        pairs: compiled::pairs(index),
        ..Options::default()
    };
    Program::new(&model, None, &options).expect("a program of moderate size")
}

fn same(index: u64, who: &str, a: &Results, b: &Results, exact: bool) {
    for ((bundle, x), (other, y)) in a.iter().zip(b) {
        assert_eq!(bundle, other);
        assert_eq!(x.len(), y.len(), "{bundle}");
        let largest = x.iter().fold(0.0f64, |m, v| m.max(v.abs()));
        for (p, q) in x.iter().zip(y) {
            assert!(p.is_finite(), "random_{index}, {bundle}, {who}: {p}");
            if exact {
                // 0 and −0 differ in their bits and in nothing else.
                assert!(p == q, "random_{index}, {bundle}, {who}: {p:e} is not {q:e}");
            } else {
                // Solves lose digits by the condition of the mass matrix, below 1e4 in this sample.
                let solved = bundle.starts_with("forward");
                let tolerance = if solved { 1e-10 } else { 1e-13 } * largest;
                assert!((p - q).abs() <= tolerance, "random_{index}, {bundle}, {who}: {p:e} is not {q:e}");
            }
        }
    }
}

#[test]
fn compiled_code_equals_both_interpreters() {
    let mut compared = 0;
    fn check<M: Complete>(index: u64, model: M) -> usize {
        let program = program(index);
        let engine: Interpreted = Interpreted::new(program.clone());
        let d = model.dims();
        let mut random = Random::new(index);
        let mut compared = 0;
        for _ in 0..10 {
            let mut state = State {
                t: random.uniform(0.0, 3.0),
                z: vec![0.0; d.nq],
                v: vec![0.0; d.nv],
                vd: (0..d.nv).map(|_| random.uniform(-5.0, 5.0)).collect(),
                u: (0..d.nu).map(|_| random.uniform(-1.0, 1.0)).collect(),
            };
            model.start(&mut state.z, &mut state.v, &mut []).expect("lengths");
            let (mut z, mut v) = (state.z.clone(), state.v.clone());
            engine.start(&mut z, &mut v, &mut []).expect("lengths");
            assert_eq!((&z, &v), (&state.z, &state.v), "random_{index}: start");
            for x in state.z.iter_mut().chain(&mut state.v) {
                *x += random.uniform(-0.3, 0.3);
            }
            let results = evaluate(&model, &state);
            same(index, "engine", &results, &evaluate(&engine, &state), true);
            same(index, "interpreter", &results, &interpret(&program, &state), !FUSED);
            compared += results.iter().map(|(_, r)| r.len()).sum::<usize>();
        }
        compared
    }
    macro_rules! visit {
        ($index:expr, $model:expr) => {
            compared += check($index, $model);
        };
    }
    for_each_compiled!(visit);
    assert!(compared > 10_000, "{compared}");
    println!("{compared} numbers compared, fused: {FUSED}");
}

/// The three blocks of the derivatives, one after the other.
fn derivatives(model: &impl InverseDynamicsDerivatives<S = f64>, at: At<'_, f64>, vd: &[f64]) -> Vec<f64> {
    let d = model.dims();
    let mut w = vec![f64::NAN; d.workspace];
    let [mut a, mut b, mut c] = [0; 3].map(|_| vec![f64::NAN; d.nv * d.nv]);
    model.inverse_dynamics_derivatives(at, vd, &mut w, &mut a, &mut b, &mut c).expect("lengths");
    [a, b, c].concat()
}

#[test]
fn compiled_derivatives_equal_the_engine() {
    let mut compared = 0;
    fn check<M: Complete + InverseDynamicsDerivatives>(index: u64, model: M) -> usize {
        let engine: Interpreted = Interpreted::new(program(index));
        let d = model.dims();
        let (mut z, mut v) = (vec![0.0; d.nq], vec![0.0; d.nv]);
        model.start(&mut z, &mut v, &mut []).expect("lengths");
        let (vd, u) = (vec![0.7; d.nv], vec![0.2; d.nu]);
        let at = At { t: 0.4, z: &z, v: &v, x: &[], u: &u };
        let (compiled, interpreted) = (derivatives(&model, at, &vd), derivatives(&engine, at, &vd));
        for (p, q) in compiled.iter().zip(&interpreted) {
            assert!(p == q, "random_{index}: {p:e} is not {q:e}");
        }
        compiled.len()
    }
    macro_rules! visit {
        ($index:expr, $model:expr) => {
            compared += check($index, $model);
        };
    }
    for_each_differentiated!(visit);
    assert!(compared > 100, "{compared}");
}

/// What identification, control and optimisation ask for.
trait Robotic:
    InertialParameters
    + Regressor
    + GravityTerms
    + CoriolisTerms
    + Centroidal
    + MarkerJacobianRates
    + InverseDynamicsExternal
    + ForwardDynamicsExternal
    + MassMatrixInverseAction
    + ForwardDynamicsDerivatives
    + InverseDynamicsParameters
    + Names
{
}

impl<M> Robotic for M where
    M: InertialParameters
        + Regressor
        + GravityTerms
        + CoriolisTerms
        + Centroidal
        + MarkerJacobianRates
        + InverseDynamicsExternal
        + ForwardDynamicsExternal
        + MassMatrixInverseAction
        + ForwardDynamicsDerivatives
        + InverseDynamicsParameters
        + Names
{
}

/// The results of all its bundles.
fn robotics(model: &(impl Robotic + System<S = f64>), at: At<'_, f64>, vd: &[f64]) -> Results {
    let d = model.dims();
    let (nv, p) = (d.nv, d.sensitivity.parameters);
    let mut w = vec![f64::NAN; d.workspace];
    let out = |n: usize| vec![f64::NAN; n];
    let wrenches: Vec<f64> = (0..6 * d.n_bodies).map(|i| (i as f64).sin()).collect();
    let tau: Vec<f64> = (0..nv).map(|i| (i as f64).cos()).collect();
    let mut results = Results::new();
    let mut pi = out(10 * d.n_bodies);
    model.inertial_parameters(&mut w, &mut pi).expect("lengths");
    results.push(("inertial_parameters", pi));
    let mut values = out(10 * model.regressor_places().len());
    model.regressor(at, vd, &mut w, &mut values).expect("lengths");
    results.push(("regressor", values));
    let (mut gravity, mut coriolis, mut x) = (out(nv), out(nv), out(nv));
    model.gravity_terms(at, &mut w, &mut gravity).expect("lengths");
    results.push(("gravity_terms", gravity));
    model.coriolis_terms(at, &mut w, &mut coriolis).expect("lengths");
    results.push(("coriolis_terms", coriolis));
    let mut all = [3, 3, 3 * nv, 6, 6 * nv, 6].map(out);
    let [com, com_velocity, com_jacobian, momentum, momentum_matrix, momentum_bias] = &mut all;
    let centroid = Centroid { com, com_velocity, com_jacobian, momentum, momentum_matrix, momentum_bias };
    model.centroidal(at, &mut w, centroid).expect("lengths");
    results.push(("centroidal", all.concat()));
    let (mut rates, mut bias) = (out(3 * d.n_markers * nv), out(3 * d.n_markers));
    model.marker_jacobian_rates(at, &mut w, &mut rates, &mut bias).expect("lengths");
    results.push(("marker_jacobian_rates", [rates, bias].concat()));
    let mut needed = out(nv);
    model.inverse_dynamics_external(at, vd, &wrenches, &mut w, &mut needed).expect("lengths");
    results.push(("inverse_dynamics_external", needed));
    let (mut zd, mut pushed) = (out(d.nq), out(nv));
    let none = &mut [];
    model
        .forward_dynamics_external(at, &tau, &wrenches, &mut w, &mut zd, &mut pushed, none)
        .expect("regular");
    results.push(("forward_dynamics_external", [zd, pushed].concat()));
    model.mass_matrix_inverse_action(at, &tau, &mut w, &mut x).expect("regular");
    results.push(("mass_matrix_inverse_action", x));
    let mut all = [nv, nv * nv, nv * nv, nv * nv, nv * p].map(out);
    let [vd_here, vd_z, vd_v, vd_tau, vd_rho] = &mut all;
    let derivatives = AccelerationDerivatives { vd: vd_here, vd_z, vd_v, vd_tau, vd_rho };
    model.forward_dynamics_derivatives(at, &tau, &mut w, derivatives).expect("regular");
    results.push(("forward_dynamics_derivatives", all.concat()));
    let mut values = out(model.inverse_dynamics_parameter_places().len());
    model.inverse_dynamics_parameters(at, vd, &mut w, &mut values).expect("lengths");
    results.push(("inverse_dynamics_parameters", values));
    results
}

#[test]
fn compiled_robotics_equals_the_engine() {
    let (mut compared, mut frozen) = (0, 0);
    fn check<M: Complete + Robotic>(index: u64, model: M) -> usize {
        let engine: Interpreted = Interpreted::new(program(index));
        let d = model.dims();
        assert_eq!(d.n_bodies, engine.dims().n_bodies);
        assert_eq!(model.regressor_places(), engine.regressor_places());
        assert_eq!(model.inverse_dynamics_parameter_places(), engine.inverse_dynamics_parameter_places());
        for body in 0..=d.n_bodies {
            assert_eq!(model.name(Quantity::Body, body), engine.name(Quantity::Body, body));
        }
        let (mut z, mut v) = (vec![0.0; d.nq], vec![0.0; d.nv]);
        model.start(&mut z, &mut v, &mut []).expect("lengths");
        let (vd, u) = (vec![0.7; d.nv], vec![0.2; d.nu]);
        let at = At { t: 0.4, z: &z, v: &v, x: &[], u: &u };
        let results = robotics(&model, at, &vd);
        same(index, "engine", &results, &robotics(&engine, at, &vd), true);
        results.iter().map(|(_, values)| values.len()).sum()
    }
    macro_rules! visit {
        ($index:expr, $model:expr) => {
            compared += check($index, $model);
            frozen += usize::from(compiled::frozen($index));
        };
    }
    for_each_robotic!(visit);
    assert!(compared > 500 && frozen == 1, "{compared}, {frozen} frozen");
}

#[test]
fn wrong_lengths_are_errors() {
    let model = random_29::Model::default();
    let d = model.dims();
    let (z, v, u) = (vec![1.0; d.nq], vec![1.0; d.nv], vec![0.0; d.nu]);
    let mut w = vec![0.0; d.workspace];
    let (mut zd, mut vd) = (vec![0.0; d.nq], vec![0.0; d.nv]);
    let at = At { t: 0.0, z: &z, v: &v, x: &[], u: &u };
    assert!(model.forward_dynamics(at, &mut w, &mut zd, &mut vd, &mut []).is_ok());
    let long = vec![1.0; d.nq + 1];
    let wrong = At { z: &long, ..at };
    assert!(model.forward_dynamics(wrong, &mut w, &mut zd, &mut vd, &mut []).is_err());
    assert!(model.forward_dynamics(at, &mut w, &mut zd[1..], &mut vd, &mut []).is_err());
    assert!(model.forward_dynamics(at, &mut w, &mut zd, &mut vd, &mut [0.0]).is_err());
    assert!(model.forward_dynamics(at, &mut [], &mut zd, &mut vd, &mut []).is_err());
}
