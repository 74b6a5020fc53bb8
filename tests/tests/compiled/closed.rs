//! Compiled closed mechanisms: every bundle of both forms, solves included.

use super::FUSED;
use mbs_codegen::bundle::interpret::{Arguments, run, scratch_len};
use mbs_codegen::kinematics::ReferencePoint;
use mbs_codegen::program::{Options, Products, Program};
use mbs_codegen::symbols::Group;
use mbs_engine::Interpreted;
use mbs_runtime::{
    At, Constrained, ConstrainedDynamics, ConstraintCorrection, Impulses, JointObjectiveDerivatives,
    JointSensitivities, Motion, ObjectiveDerivatives, Objectives, Reactions, Sensitivities, Stabilisation,
    Start, StartDerivatives, System, Weights,
};
use mbs_tests::random_closed::compiled;
use mbs_tests::random_model::Random;

#[cfg(not(clippy))]
include!(concat!(env!("OUT_DIR"), "/closed_models.rs"));
#[cfg(clippy)]
include!(concat!(env!("OUT_DIR"), "/closed_models_linted.rs"));
include!(concat!(env!("OUT_DIR"), "/five_bar.rs"));

/// Every bundle of a constrained mechanism but the derivatives.
trait Closed:
    System<S = f64> + Start + Constrained + ConstrainedDynamics + ConstraintCorrection + Reactions + Objectives
{
}

impl<M> Closed for M where
    M: System<S = f64>
        + Start
        + Constrained
        + ConstrainedDynamics
        + ConstraintCorrection
        + Reactions
        + Objectives
{
}

/// Every bundle of derivatives.
trait Differentiated:
    Closed
    + StartDerivatives
    + Sensitivities
    + ObjectiveDerivatives
    + JointSensitivities
    + JointObjectiveDerivatives
{
}

impl<M> Differentiated for M where
    M: Closed
        + StartDerivatives
        + Sensitivities
        + ObjectiveDerivatives
        + JointSensitivities
        + JointObjectiveDerivatives
{
}

/// Everything that some bundle takes.
struct Given {
    t: f64,
    z: Vec<f64>,
    zd: Vec<f64>,
    zdd: Vec<f64>,
    v: Vec<f64>,
    vd: Vec<f64>,
    u: Vec<f64>,
    lambda: Vec<f64>,
    multipliers: Vec<f64>,
    rhs: Vec<f64>,
}

const WEIGHTS: [f64; 3] = [5e-4, 2.5e-7, 5e-4];
const STABILISATION: [f64; 3] = [20.0, 100.0, 1e-3];
/// The diagonal that is the solver's, far above rounding: what dependent rows amplify differs with fused operations.
const SMALL: f64 = 1e-3;

/// The results of every bundle, by name.
fn evaluate(model: &impl Closed, given: &Given) -> Vec<(&'static str, Vec<f64>)> {
    let d = model.dims();
    let Given { t, z, zd, zdd, v, vd, u, lambda, multipliers, rhs } = given;
    let (at, here) = (Motion { t: *t, z, zd, zdd, u }, At { t: *t, z, v, x: &[], u });
    let mut w = vec![f64::NAN; d.workspace];
    let out = |n: usize| vec![f64::NAN; n];
    let rows = multipliers.len();
    let mut all = Vec::new();
    let (mut r, mut phi, mut matrix) = (out(d.nq), out(d.rows()), out(d.n_matrix));
    let small = d.n_matrix - d.rows();
    model.residual(at, lambda, &mut w, &mut r, &mut phi).expect("lengths");
    all.push(("residual", [&r[..], &phi].concat()));
    let [velocity, position, ratio] = WEIGHTS;
    let weights = Weights { velocity, position, ratio };
    model.newton(at, lambda, weights, &mut w, &mut r, &mut phi, &mut matrix).expect("lengths");
    all.push(("newton", [&r[..], &phi, &matrix[..small]].concat()));
    matrix[small..].fill(SMALL);
    let mut factors = out(d.n_factors);
    model.factor(&matrix, &mut w, &mut factors).expect("regular");
    all.push(("factor", factors.clone()));
    let mut x = rhs.clone();
    model.solve(&factors, &mut w, &mut x).expect("lengths");
    all.push(("solve", x.clone()));
    x.clone_from(rhs);
    model.solve_transposed(&factors, &mut w, &mut x).expect("lengths");
    all.push(("solve_transposed", x));
    model.projection(*t, z, u, &mut w, &mut matrix).expect("lengths");
    all.push(("projection", matrix[..small].to_vec()));
    model.constraint_rates(at, &mut w, &mut phi).expect("lengths");
    all.push(("constraint_rates", phi.clone()));
    model.constraint_accelerations(at, &mut w, &mut phi).expect("lengths");
    all.push(("constraint_accelerations", phi));
    let (mut a, mut b, mut c, mut e) = (out(d.nq), out(d.nv), out(d.n_holonomic), out(rows));
    let [rate, value, compliance] = STABILISATION;
    let stabilisation = Stabilisation { rate, value, compliance };
    model
        .constrained_dynamics(here, stabilisation, &mut w, &mut a, &mut b, &mut [], &mut e)
        .expect("regular");
    all.push(("constrained_dynamics", [&a[..], &b, &e].concat()));
    model.constraint_correction(here, &mut w, &mut a, &mut b, &mut c, &mut e).expect("lengths");
    all.push(("constraint_correction", [a, b, c, e].concat()));
    let mut wrenches = out(6 * d.n_joints);
    model.reactions(here, vd, multipliers, &mut w, &mut wrenches).expect("lengths");
    all.push(("reactions", wrenches));
    let (mut g, mut terminals) = (out(d.n_objectives), out(d.n_objectives));
    model.objectives(here, vd, multipliers, &mut w, &mut g, &mut terminals).expect("lengths");
    all.push(("objectives", [g, terminals].concat()));
    all
}

/// The results of every bundle of derivatives.
fn derivatives(model: &impl Differentiated, given: &Given) -> Vec<(&'static str, Vec<f64>)> {
    let d = model.dims();
    let Given { t, z, zd, zdd, v, vd, u, lambda, multipliers, rhs } = given;
    let (at, here) = (Motion { t: *t, z, zd, zdd, u }, At { t: *t, z, v, x: &[], u });
    let mut w = vec![f64::NAN; d.workspace];
    let s = d.sensitivity;
    let mut all = Vec::new();
    let mut values = vec![f64::NAN; s.start];
    model.start_derivatives(&mut w, &mut values).expect("lengths");
    all.push(("start_derivatives", values));
    let mut values = vec![f64::NAN; s.newton];
    model.linearise(at, lambda, &mut w, &mut values).expect("lengths");
    all.push(("linearise", values));
    let mut values = vec![f64::NAN; s.projections];
    let impulses = Impulses {
        velocity: zd,
        velocity_multipliers: lambda,
        acceleration: zdd,
        acceleration_multipliers: lambda,
    };
    model.linearise_projections(at, impulses, &mut w, &mut values).expect("lengths");
    all.push(("linearise_projections", values));
    let mut values = vec![f64::NAN; s.integrands];
    model.integrand_derivatives(at, lambda, &mut w, &mut values).expect("lengths");
    all.push(("integrand_derivatives", values));
    let mut values = vec![f64::NAN; s.terminals];
    model.terminal_derivatives(at, lambda, &mut w, &mut values).expect("lengths");
    all.push(("terminal_derivatives", values));
    let (mut values, mut factors) = (vec![f64::NAN; s.joint], vec![f64::NAN; s.joint_factors]);
    let [rate, value, compliance] = STABILISATION;
    let stabilisation = Stabilisation { rate, value, compliance };
    model
        .joint_linearise(here, vd, multipliers, stabilisation, &mut w, &mut values, &mut factors)
        .expect("regular");
    all.push(("joint_linearise", [&values[..], &factors].concat()));
    let mut x = rhs[..d.nv + multipliers.len()].to_vec();
    model.joint_solve(&factors, &mut w, &mut x).expect("lengths");
    all.push(("joint_solve", x));
    let mut values = vec![f64::NAN; s.joint_integrands];
    model.joint_integrand_derivatives(here, vd, multipliers, &mut w, &mut values).expect("lengths");
    all.push(("joint_integrand_derivatives", values));
    let mut values = vec![f64::NAN; s.joint_terminals];
    model.joint_terminal_derivatives(here, vd, multipliers, &mut w, &mut values).expect("lengths");
    all.push(("joint_terminal_derivatives", values));
    if s.product_columns > 0 {
        let out = |n: usize| vec![f64::NAN; n];
        let (mut by_z, mut by_zd, mut rho) = (out(d.nq), out(d.nq), out(s.newton_parameters));
        let [mut read, mut places] = [out(s.newton_reads), out(s.newton_reads)];
        model
            .newton_product(at, lambda, rhs, &mut w, &mut by_z, &mut by_zd, &mut rho, &mut read, &mut places)
            .expect("lengths");
        all.push(("newton_product", [&by_z[..], &by_zd, &rho, &read, &places].concat()));
        model.acceleration_product(at, rhs, &mut w, &mut by_zd).expect("lengths");
        all.push(("acceleration_product", by_zd));
        let [mut read, mut places] = [out(s.projection_reads), out(s.projection_reads)];
        let mut rho = out(s.projection_parameters);
        model
            .projection_product(at, impulses, rhs, rhs, &mut w, &mut by_z, &mut rho, &mut read, &mut places)
            .expect("lengths");
        all.push(("projection_product", [by_z, rho, read, places].concat()));
        let mut rho = out(s.parameters);
        let y: Vec<f64> = (0..s.table_values).map(|i| (i % 7) as f64 - 3.0).collect();
        model.table_product(&y, &mut w, &mut rho).expect("lengths");
        all.push(("table_product", rho));
    }
    let out = |n: usize| vec![f64::NAN; n];
    let columns = columns(rhs, s.parameters);
    if model.fuses_derivatives() {
        let n = d.nq * s.parameters;
        let [velocity, position, ratio] = WEIGHTS;
        let weights = Weights { velocity, position, ratio };
        let small = vec![SMALL; d.rows()];
        let (mut z, mut zd, mut zdd, mut delta) = (out(n), out(n), out(n), out(n));
        let mut lambda_rho = out(d.rows() * s.parameters);
        let (mut left, mut sizes) = (out(2 * rhs.len()), out(2 * rhs.len()));
        let (p, q) = (&columns[..n], &columns[1..=n]);
        let to = (&mut z, &mut zd, &mut zdd, &mut lambda_rho, &mut delta, &mut left, &mut sizes);
        model
            .differentiate_step(
                at, lambda, impulses, weights, &small, p, q, &mut w, to.0, to.1, to.2, to.3, to.4, to.5, to.6,
            )
            .expect("regular");
        all.push(("differentiate_step", [z, zd, zdd, lambda_rho, delta, left, sizes].concat()));
    }
    if model.fuses_rates() {
        let n = d.nv * s.parameters;
        let (mut zd, mut vd, mut lambda) = (out(d.nq), out(d.nv), out(multipliers.len()));
        let (mut vd_rho, mut g, mut g_rho) =
            (out(n), out(d.n_objectives), out(d.n_objectives * s.parameters));
        let (p, q) = (&columns[..n], &columns[1..=n]);
        let to = (&mut zd, &mut vd, &mut lambda, &mut vd_rho, &mut g, &mut g_rho);
        model
            .differentiate_rate(here, stabilisation, p, q, &mut w, to.0, to.1, to.2, to.3, to.4, to.5)
            .expect("regular");
        all.push(("differentiate_rate", [zd, vd, lambda, vd_rho, g, g_rho].concat()));
    }
    let joint_unknowns = d.nv + d.joint_rows();
    if model.fuses_corrections() {
        let n = d.nv * s.parameters;
        let [mut dz, mut dv, mut phi, mut phid] =
            [out(d.nq), out(d.nv), out(d.n_holonomic), out(d.joint_rows())];
        let (mut theta, mut v, mut left) = (out(n), out(n), out(2 * joint_unknowns));
        let (p, q) = (&columns[..n], &columns[1..=n]);
        let to = (&mut dz, &mut dv, &mut phi, &mut phid, &mut theta, &mut v, &mut left);
        model
            .differentiate_correction(here, p, q, &mut w, to.0, to.1, to.2, to.3, to.4, to.5, to.6)
            .expect("regular");
        all.push(("differentiate_correction", [dz, dv, phi, phid, theta, v, left].concat()));
    }
    let bars = self::columns(rhs, d.n_objectives);
    let rho_len = s.parameters * d.n_objectives;
    if model.fuses_transposed() {
        let (n, rows) = (d.nq * d.n_objectives, d.rows() * d.n_objectives);
        let [velocity, position, ratio] = WEIGHTS;
        let weights = Weights { velocity, position, ratio };
        let small = vec![SMALL; d.rows()];
        let (mut p, mut q, mut rho) = (out(n), out(n), out(rho_len));
        let (mut left, mut sizes) = (out(2 * rhs.len()), out(2 * rhs.len()));
        let (z, zd, lambda_bar) = (&bars[..n], &bars[1..=n], &bars[..rows]);
        let to = (&mut p, &mut q, &mut rho, &mut left, &mut sizes);
        model
            .transpose_step(
                at, lambda, impulses, weights, &small, z, zd, zd, lambda_bar, z, &mut w, to.0, to.1, to.2,
                to.3, to.4,
            )
            .expect("regular");
        all.push(("transpose_step", [p, q, rho, left, sizes].concat()));
    }
    if model.fuses_transposed_rates() {
        let n = d.nv * d.n_objectives;
        let (mut g, mut theta, mut v, mut rho) = (out(d.n_objectives), out(n), out(n), out(rho_len));
        let (a, psi) = (&bars[..n], &bars[..d.n_objectives]);
        let to = (&mut g, &mut theta, &mut v, &mut rho);
        model
            .transpose_rate(here, vd, multipliers, stabilisation, a, psi, &mut w, to.0, to.1, to.2, to.3)
            .expect("regular");
        all.push(("transpose_rate", [g, theta, v, rho].concat()));
    }
    if model.fuses_transposed_corrections() {
        let n = d.nv * d.n_objectives;
        let (mut theta, mut v, mut rho, mut left) = (out(n), out(n), out(rho_len), out(2 * joint_unknowns));
        let to = (&mut theta, &mut v, &mut rho, &mut left);
        model
            .transpose_correction(here, &bars[..n], &bars[1..=n], &mut w, to.0, to.1, to.2, to.3)
            .expect("regular");
        all.push(("transpose_correction", [theta, v, rho, left].concat()));
    }
    all
}

/// Numbers for derivatives that come in, and one more.
fn columns(numbers: &[f64], parameters: usize) -> Vec<f64> {
    numbers.iter().cycle().take(numbers.len() * parameters + 1).copied().collect()
}

/// The same by the generator's own interpreter, which never fuses. Pivots are for the caller, not results.
fn interpret(
    program: &Program,
    given: &Given,
    engine: &Interpreted,
    differentiated: bool,
) -> Vec<(&'static str, Vec<f64>)> {
    let call = |name: &str, arguments: &Arguments<'_, f64>| {
        let bundle = program.bundle(name).expect("an emitted bundle");
        let mut scratch = vec![f64::NAN; scratch_len(bundle)];
        let mut results: Vec<Vec<f64>> =
            bundle.results.iter().map(|r| vec![f64::NAN; r.len as usize]).collect();
        let mut slices: Vec<&mut [f64]> = results.iter_mut().map(|r| &mut r[..]).collect();
        run(bundle, arguments, &mut scratch, &mut slices).expect("lengths");
        results.truncate(bundle.results.iter().take_while(|r| r.name != "pivots").count());
        results.concat()
    };
    let parameters = program.defaults();
    let prepared = call("prepare", &Arguments::new().with(Group::Parameters, &parameters));
    let t = [given.t];
    let motion = Arguments::new()
        .with(Group::Time, &t)
        .with(Group::Z, &given.z)
        .with(Group::Zd, &given.zd)
        .with(Group::Zdd, &given.zdd)
        .with(Group::V, &given.v)
        .with(Group::Vd, &given.vd)
        .with(Group::U, &given.u)
        .with(Group::Weights, &WEIGHTS)
        .with(Group::Stabilisation, &STABILISATION)
        .with(Group::VelocityImpulse, &given.zd)
        .with(Group::VelocityMultipliers, &given.lambda)
        .with(Group::AccelerationImpulse, &given.zdd)
        .with(Group::AccelerationMultipliers, &given.lambda)
        .with(Group::Prepared, &prepared);
    let (in_coordinates, in_joints) =
        (motion.with(Group::Lambda, &given.lambda), motion.with(Group::Lambda, &given.multipliers));
    let d = engine.dims();
    let newton = call("newton", &in_coordinates);
    let mut matrix = newton[d.nq + d.rows()..].to_vec();
    matrix.resize(d.n_matrix, SMALL);
    let factors =
        call("factor", &Arguments::new().with(Group::Matrix, &matrix).with(Group::Prepared, &prepared));
    let solving = Arguments::new()
        .with(Group::Factors, &factors)
        .with(Group::Rhs, &given.rhs)
        .with(Group::Prepared, &prepared);
    let named = |name: &'static str, arguments: &Arguments<'_, f64>| (name, call(name, arguments));
    if !differentiated {
        return vec![
            named("residual", &in_coordinates),
            ("newton", newton.clone()),
            ("factor", factors.clone()),
            named("solve", &solving),
            named("solve_transposed", &solving),
            named("projection", &in_coordinates),
            named("constraint_rates", &in_coordinates),
            named("constraint_accelerations", &in_coordinates),
            named("constrained_dynamics", &in_joints),
            named("constraint_correction", &in_joints),
            named("reactions", &in_joints),
            named("objectives", &in_joints),
        ];
    }
    let joint = call("joint_linearise", &in_joints);
    let joint_factors = &joint[d.sensitivity.joint..];
    let joint_solving = Arguments::new()
        .with(Group::Factors, joint_factors)
        .with(Group::Rhs, &given.rhs[..d.nv + d.joint_rows()])
        .with(Group::Prepared, &prepared);
    let mut all = vec![
        named("start_derivatives", &motion),
        named("linearise", &in_coordinates),
        named("linearise_projections", &in_coordinates),
        named("integrand_derivatives", &in_coordinates),
        named("terminal_derivatives", &in_coordinates),
        ("joint_linearise", joint.clone()),
        named("joint_solve", &joint_solving),
        named("joint_integrand_derivatives", &in_joints),
        named("joint_terminal_derivatives", &in_joints),
    ];
    if d.sensitivity.product_columns > 0 {
        let weighed = in_coordinates
            .with(Group::Costate, &given.rhs)
            .with(Group::VelocityCostate, &given.rhs)
            .with(Group::AccelerationCostate, &given.rhs);
        let names = ["newton_product", "acceleration_product", "projection_product", "table_product"];
        let y: Vec<f64> = (0..d.sensitivity.table_values).map(|i| (i % 7) as f64 - 3.0).collect();
        let weighed = weighed.with(Group::TableCostate, &y);
        all.extend(names.map(|name| named(name, &weighed)));
    }
    let columns = columns(&given.rhs, d.sensitivity.parameters);
    let small = vec![SMALL; d.rows()];
    for (name, arguments, n) in [
        ("differentiate_step", &in_coordinates, d.nq),
        ("differentiate_rate", &in_joints, d.nv),
        ("differentiate_correction", &in_joints, d.nv),
    ] {
        if program.bundle(name).is_some() {
            let n = n * d.sensitivity.parameters;
            let arguments = arguments
                .with(Group::Compliance, &small)
                .with(Group::PositionColumns, &columns[..n])
                .with(Group::VelocityColumns, &columns[1..=n]);
            all.push(named(name, &arguments));
        }
    }
    let bars = self::columns(&given.rhs, d.n_objectives);
    for (name, arguments, n) in [
        ("transpose_step", &in_coordinates, d.nq),
        ("transpose_rate", &in_joints, d.nv),
        ("transpose_correction", &in_joints, d.nv),
    ] {
        if program.bundle(name).is_some() {
            let n = n * d.n_objectives;
            let arguments = arguments
                .with(Group::Compliance, &small)
                .with(Group::PositionWeights, &bars[..n])
                .with(Group::VelocityWeights, &bars[1..=n])
                .with(
                    Group::AccelerationWeights,
                    if name == "transpose_step" { &bars[1..=n] } else { &bars[..n] },
                )
                .with(Group::MultiplierWeights, &bars[..d.rows() * d.n_objectives])
                .with(Group::CorrectionWeights, &bars[..n])
                .with(Group::ObjectiveWeights, &bars[..d.n_objectives]);
            all.push(named(name, &arguments));
        }
    }
    all
}

fn program(index: Option<u64>) -> Program {
    let differentiated = index.is_none_or(compiled::differentiated);
    let (text, about_com, freeze) = match index {
        Some(index) => (compiled::text(index), compiled::about_com(index), compiled::frozen(index)),
        None => {
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/five_bar.yaml");
            (std::fs::read_to_string(path).expect("a shipped model"), false, false)
        }
    };
    let (model, _) = mbs_codegen::read("closed.yaml", &text).expect("a valid model");
    let reference = if about_com { ReferencePoint::CentreOfMass } else { ReferencePoint::Origin };
    let bundles = compiled::bundles(differentiated);
    let options = Options { reference, freeze, bundles, products: Products::Always, ..Options::default() };
    Program::new(&model, None, &options).expect("a program of moderate size")
}

fn same(name: &str, who: &str, a: &[(&str, Vec<f64>)], b: &[(&str, Vec<f64>)], exact: bool) {
    assert_eq!(a.len(), b.len(), "{name}, {who}");
    for ((bundle, x), (other, y)) in a.iter().zip(b) {
        assert_eq!(bundle, other);
        assert_eq!(x.len(), y.len(), "{name}, {bundle}, {who}");
        let largest = x.iter().fold(0.0f64, |m, v| m.max(v.abs()));
        let solved = [
            "factor",
            "solve",
            "solve_transposed",
            "constrained_dynamics",
            "constraint_correction",
            "differentiate_correction",
            "transpose_correction",
            "joint_linearise",
            "joint_solve",
        ];
        // Fused or not, solves differ by the condition of what they solve with, below 1e9 by SMALL.
        let tolerance = if solved.contains(bundle) { 1e-6 } else { 1e-13 } * largest;
        for (p, q) in x.iter().zip(y) {
            assert!(p.is_finite(), "{name}, {bundle}, {who}: {p}");
            let near = if exact { p == q } else { (p - q).abs() <= tolerance };
            assert!(near, "{name}, {bundle}, {who}: {p:e} is not {q:e}");
        }
    }
}

/// The numbers compared of all bundles but the derivatives.
fn check(index: Option<u64>, model: &impl Closed) -> usize {
    compare(index, model, evaluate, evaluate, false)
}

/// The numbers compared of the derivatives.
fn check_derivatives(index: Option<u64>, model: &impl Differentiated) -> usize {
    compare(index, model, derivatives, derivatives, true)
}

type Results = Vec<(&'static str, Vec<f64>)>;

fn compare<M: Closed>(
    index: Option<u64>,
    model: &M,
    of_model: impl Fn(&M, &Given) -> Results,
    of_engine: impl Fn(&Interpreted, &Given) -> Results,
    differentiated: bool,
) -> usize {
    let name = index.map_or("five_bar".into(), |index| format!("closed_{index}"));
    let program = program(index);
    let engine = Interpreted::<f64>::new(program.clone());
    let d = model.dims();
    assert_eq!(d.n_factors, engine.dims().n_factors, "{name}");
    assert_eq!(
        (model.pattern(), model.held(), model.euler_parameters()),
        (engine.pattern(), engine.held(), engine.euler_parameters()),
        "{name}"
    );
    let mut random = Random::new(index.unwrap_or(99));
    let mut compared = 0;
    for _ in 0..10 {
        let mut some = |n: usize, size: f64| (0..n).map(|_| random.uniform(-size, size)).collect::<Vec<_>>();
        let mut given = Given {
            t: some(1, 1.5)[0] + 1.5,
            z: vec![0.0; d.nq],
            zd: some(d.nq, 1.0),
            zdd: some(d.nq, 5.0),
            v: vec![0.0; d.nv],
            vd: some(d.nv, 5.0),
            u: some(d.nu, 1.0),
            lambda: some(d.rows(), 3.0),
            multipliers: some(d.n_holonomic + d.n_nonholonomic, 3.0),
            rhs: some(d.nq + d.rows(), 1.0),
        };
        let away = [some(d.nq, 0.2), some(d.nv, 0.3)];
        model.start(&mut given.z, &mut given.v, &mut []).expect("lengths");
        let (mut z, mut v) = (given.z.clone(), given.v.clone());
        engine.start(&mut z, &mut v, &mut []).expect("lengths");
        assert_eq!((&z, &v), (&given.z, &given.v), "{name}: start");
        given.z.iter_mut().zip(&away[0]).for_each(|(z, away)| *z += away);
        given.v.iter_mut().zip(&away[1]).for_each(|(v, away)| *v += away);
        let results = of_model(model, &given);
        same(&name, "engine", &results, &of_engine(&engine, &given), true);
        let interpreted = interpret(&program, &given, &engine, differentiated);
        same(&name, "interpreter", &results, &interpreted, !FUSED);
        compared += results.iter().map(|(_, r)| r.len()).sum::<usize>();
    }
    compared
}

#[test]
fn compiled_closed_mechanisms_equal_both_interpreters() {
    let mut compared = check(None, &five_bar::Model::default());
    macro_rules! visit {
        ($index:expr, $model:expr) => {
            compared += check(Some($index), &$model);
        };
    }
    for_each_closed!(visit);
    assert!(compared > 10_000, "{compared}");
    println!("{compared} numbers compared, fused: {FUSED}");
}

#[test]
fn compiled_derivatives_of_closed_mechanisms_equal_both_interpreters() {
    let mut compared = check_derivatives(None, &five_bar::Model::default());
    macro_rules! visit {
        ($index:expr, $model:expr) => {
            compared += check_derivatives(Some($index), &$model);
        };
    }
    for_each_differentiated_closed!(visit);
    assert!(compared > 5_000, "{compared}");
}

#[test]
fn wrong_lengths_are_errors() {
    let model = five_bar::Model::default();
    let d = model.dims();
    let (z, lambda) = (vec![0.3; d.nq], vec![0.0; d.rows()]);
    let at = Motion { t: 0.0, z: &z, zd: &z, zdd: &z, u: &[] };
    let mut w = vec![0.0; d.workspace];
    let (mut r, mut phi, mut matrix) = (vec![0.0; d.nq], vec![0.0; d.rows()], vec![1.0; d.n_matrix]);
    assert!(model.residual(at, &lambda, &mut w, &mut r, &mut phi).is_ok());
    assert!(model.residual(at, &lambda[1..], &mut w, &mut r, &mut phi).is_err());
    assert!(model.residual(at, &lambda, &mut w, &mut r[1..], &mut phi).is_err());
    assert!(model.residual(Motion { zd: &z[1..], ..at }, &lambda, &mut w, &mut r, &mut phi).is_err());
    let weights = Weights { velocity: 1e-3, position: 1e-6, ratio: 1e-3 };
    assert!(model.newton(at, &lambda, weights, &mut w, &mut r, &mut phi, &mut matrix).is_ok());
    assert!(model.projection(0.0, &z, &[], &mut w, &mut matrix).is_ok());
    assert!(model.projection(0.0, &z, &[], &mut w, &mut matrix[..1]).is_err());
    let mut factors = vec![0.0; d.n_factors];
    assert!(model.factor(&matrix, &mut w, &mut factors[1..]).is_err());
    assert!(model.factor(&matrix[1..], &mut w, &mut factors).is_err());
    let mut x = vec![1.0; d.nq + d.rows()];
    assert!(model.solve(&factors, &mut w, &mut x[1..]).is_err());
    assert!(model.solve_transposed(&factors[1..], &mut w, &mut x).is_err());
}
