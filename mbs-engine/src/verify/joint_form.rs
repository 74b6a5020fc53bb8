//! Derivatives in joint form: of start values, inverse dynamics, accelerations and multipliers, markers, objectives.

use super::point::Point;
use super::{Along, By, Checks, Columns, Of, admissible, matrix};
use crate::Interpreted;
use mbs_codegen::program::BundleKind;
use mbs_runtime::sensitivity::{JointValues, ObjectiveValues, StartValues};
use mbs_runtime::{
    Complex64, ConstrainedDynamics, ConstraintRows, ForwardDynamics, InverseDynamics,
    InverseDynamicsDerivatives, JointObjectiveDerivatives, JointSensitivities, MarkerJacobians, Markers,
    Objectives, Scalar, Stabilisation, Start, StartDerivatives, System,
};
use std::ops::Range;

pub(super) const BY_POSITION: By = By::Joints([1.0, 0.0, 0.0]);
pub(super) const BY_VELOCITY: By = By::Joints([0.0, 1.0, 0.0]);
pub(super) const BY_ACCELERATION: By = By::Joints([0.0, 0.0, 1.0]);

/// Gains as a user may choose them.
const GAINS: [f64; 3] = [2.0, 3.0, 0.0];

pub(super) type Numbers = Option<Vec<Complex64>>;

pub(super) fn zeros(n: usize) -> Vec<Complex64> {
    vec![Complex64::ZERO; n]
}

pub(super) fn inverse_dynamics(model: &Interpreted<Complex64>, at: &Point<Complex64>) -> Numbers {
    let dims = model.dims();
    let (mut w, mut tau) = (zeros(dims.workspace), zeros(dims.nv));
    model.inverse_dynamics(at.at(), &at.vd, &mut w, &mut tau).ok()?;
    Some(tau)
}

/// Accelerations, then multipliers.
fn dynamics(model: &Interpreted<Complex64>, at: &Point<Complex64>) -> Numbers {
    let dims = model.dims();
    let (mut w, mut zd, mut vd) = (zeros(dims.workspace), zeros(dims.nq), zeros(dims.nv));
    let mut lambda = zeros(dims.joint_rows());
    if model.program().kinds.contains(&BundleKind::ConstrainedDynamics) {
        let [rate, value, compliance] = GAINS.map(|gain| Complex64::new(gain, 0.0));
        let gains = Stabilisation { rate, value, compliance };
        model.constrained_dynamics(at.at(), gains, &mut w, &mut zd, &mut vd, &mut [], &mut lambda).ok()?;
    } else {
        model.forward_dynamics(at.at(), &mut w, &mut zd, &mut vd, &mut []).ok()?;
    }
    Some([vd, lambda].concat())
}

fn marker_velocities(model: &Interpreted<Complex64>, at: &Point<Complex64>) -> Numbers {
    let dims = model.dims();
    let mut all = [(); 3].map(|()| zeros(3 * dims.n_markers));
    let [positions, velocities, accelerations] = &mut all;
    let mut w = zeros(dims.workspace);
    model.markers(at.at(), &at.vd, &mut w, positions, velocities, accelerations).ok()?;
    let [_, velocities, _] = all;
    Some(velocities)
}

fn objectives(model: &Interpreted<Complex64>, at: &Point<Complex64>, terminal: bool) -> Numbers {
    let dims = model.dims();
    let mut w = zeros(dims.workspace);
    let (mut integrands, mut terminals) = (zeros(dims.n_objectives), zeros(dims.n_objectives));
    let lambda = [&at.joint_lambda[..], &at.joint_projections].concat();
    model.objectives(at.at(), &at.vd, &lambda, &mut w, &mut integrands, &mut terminals).ok()?;
    Some(if terminal { terminals } else { integrands })
}

/// Derivatives of the start values.
pub(super) fn start(checks: &mut Checks) {
    let model = &checks.model;
    let dims = model.dims();
    let p = dims.sensitivity.parameters;
    let (mut w, mut values) = (vec![0.0; dims.workspace], vec![0.0; dims.sensitivity.start]);
    if model.start_derivatives(&mut w, &mut values).is_err() {
        return;
    }
    let [z, v] = model.start_places();
    let name = "start_derivatives";
    let Ok(list) = StartValues::of(z, v, &values) else { return checks.unreadable(name) };
    let (z_rho, v_rho) = (matrix(list.z, z, dims.nq, p), matrix(list.v, v, dims.nv, p));
    let begin = |model: &Interpreted<Complex64>| {
        let (mut z, mut v) = (zeros(dims.nq), zeros(dims.nv));
        model.start(&mut z, &mut v, &mut []).ok()?;
        Some([z, v])
    };
    let point = Point {
        t: 0.0,
        z: vec![0.0; dims.nq],
        zd: vec![0.0; dims.nq],
        zdd: vec![0.0; dims.nq],
        v: vec![0.0; dims.nv],
        vd: vec![0.0; dims.nv],
        u: vec![0.0; dims.nu],
        lambda: vec![0.0; dims.rows()],
        joint_lambda: vec![0.0; dims.joint_rows()],
        projections: Vec::new(),
        joint_projections: Vec::new(),
    };
    let positions = |model: &_, _: &_| begin(model).map(|[z, _]| z);
    let velocities = |model: &_, _: &_| begin(model).map(|[_, v]| v);
    checks.compare((name, "z_ρ"), (Of::Coordinates, By::Parameters), &point, &z_rho, &positions);
    checks.compare((name, "v_ρ"), (Of::Velocities, By::Parameters), &point, &v_rho, &velocities);
}

/// All derivatives in joint form that the model has.
pub(super) fn check(checks: &mut Checks, point: &Point<f64>) {
    let (model, dims) = (&checks.model, checks.model.dims());
    let nv = dims.nv;
    let mut w = vec![0.0; dims.workspace];
    let dense = |values: &[f64], rows: usize| -> Columns {
        if rows == 0 { Vec::new() } else { values.chunks(rows).map(<[f64]>::to_vec).collect() }
    };
    let mut all = [(); 3].map(|()| vec![0.0; nv * nv]);
    let [by_position, by_velocity, mass] = &mut all;
    if model
        .inverse_dynamics_derivatives(point.at(), &point.vd, &mut w, by_position, by_velocity, mass)
        .is_ok()
    {
        let name = "inverse_dynamics_derivatives";
        let matrices = all.each_ref().map(|values| dense(values, nv));
        let parts = [("tau_z", BY_POSITION), ("tau_v", BY_VELOCITY), ("M", BY_ACCELERATION)];
        for ((what, by), written) in parts.into_iter().zip(&matrices) {
            checks.compare((name, what), (Of::Velocities, by), point, written, &inverse_dynamics);
        }
    }
    let mut jacobians = vec![0.0; 3 * dims.n_markers * nv];
    if checks.model.marker_jacobians(point.at(), &mut w, &mut jacobians).is_ok() {
        let written = dense(&jacobians, 3 * dims.n_markers);
        let of = (Of::Markers, BY_VELOCITY);
        checks.compare(("marker_jacobians", "J"), of, point, &written, &marker_velocities);
    }
    let rows = dims.joint_rows();
    let (mut phi, mut phid, mut jacobian) =
        (vec![0.0; dims.n_holonomic], vec![0.0; rows], vec![0.0; rows * nv]);
    if checks.model.constraint_rows(point.at(), &mut w, &mut phi, &mut phid, &mut jacobian).is_ok() {
        let name = "constraint_rows";
        let of_rows = |range: Range<usize>| {
            jacobian.chunks(rows.max(1)).map(|column| column[range.clone()].to_vec()).collect::<Columns>()
        };
        let (holonomic, nonholonomic) = (of_rows(0..dims.n_holonomic), of_rows(dims.n_holonomic..rows));
        checks.compare((name, "Φ_v"), (Of::Rows, BY_POSITION), point, &holonomic, &holonomic_rows);
        let of = (Of::Nonholonomic, BY_VELOCITY);
        checks.compare((name, "A"), of, point, &nonholonomic, &nonholonomic_rows);
    }
    joint_linearise(checks, point);
    objective_derivatives(checks, point);
}

/// Φ, and (Φd; Ψ).
fn constraint_rows(model: &Interpreted<Complex64>, at: &Point<Complex64>) -> Option<[Vec<Complex64>; 2]> {
    let dims = model.dims();
    let (mut w, mut jacobian) = (zeros(dims.workspace), zeros(dims.joint_rows() * dims.nv));
    let (mut phi, mut phid) = (zeros(dims.n_holonomic), zeros(dims.joint_rows()));
    model.constraint_rows(at.at(), &mut w, &mut phi, &mut phid, &mut jacobian).ok()?;
    Some([phi, phid])
}

fn holonomic_rows(model: &Interpreted<Complex64>, at: &Point<Complex64>) -> Numbers {
    constraint_rows(model, at).map(|[phi, _]| phi)
}

fn nonholonomic_rows(model: &Interpreted<Complex64>, at: &Point<Complex64>) -> Numbers {
    constraint_rows(model, at).map(|[phi, phid]| phid[phi.len()..].to_vec())
}

/// Derivatives of accelerations and multipliers: solutions with the factors, against the dynamics themselves.
fn joint_linearise(checks: &mut Checks, point: &Point<f64>) {
    let (model, dims) = (&checks.model, checks.model.dims());
    let (nv, rows, p) = (dims.nv, dims.joint_rows(), dims.sensitivity.parameters);
    if dims.sensitivity.joint == 0 {
        return;
    }
    // The instant's own accelerations.
    let Some(solution) = dynamics(&checks.complex, &point.complex()) else { return };
    let (vd, lambda): (Vec<f64>, Vec<f64>) =
        (solution[..nv].iter().map(|x| x.re).collect(), solution[nv..].iter().map(|x| x.re).collect());
    let [rate, value, compliance] = GAINS;
    let gains = Stabilisation { rate, value, compliance };
    let mut w = vec![0.0; dims.workspace];
    let mut values = vec![0.0; dims.sensitivity.joint];
    let mut factors = vec![0.0; dims.sensitivity.joint_factors];
    let written = model.joint_linearise(point.at(), &vd, &lambda, gains, &mut w, &mut values, &mut factors);
    if written.is_err() {
        return;
    }
    let places = model.joint_places();
    let name = "joint_linearise";
    let Ok(list) = JointValues::of(&places, &values) else { return checks.unreadable(name) };
    let [tau_position, tau_velocity] =
        [list.force_theta, list.force_v].map(|values| matrix(values, places.tangent, nv, nv));
    let [c_position, c_velocity] =
        [list.rows_theta, list.rows_v].map(|values| matrix(values, places.rows, rows, nv));
    let (tau_rho, c_rho) =
        (matrix(list.force_rho, places.force, nv, p), matrix(list.rows_rho, places.row, rows, p));
    let mut solved = |top: Columns, bottom: Columns| -> Columns {
        let columns = top.into_iter().zip(bottom).map(|(top, bottom)| {
            let mut x: Vec<f64> = top.iter().chain(&bottom).map(|x| -x).collect();
            let done = model.joint_solve(&factors, &mut w, &mut x);
            if done.is_ok() { x } else { vec![f64::NAN; nv + rows] }
        });
        columns.collect()
    };
    let Some(admissible) = admissible::admissible(model, &checks.complex, point) else {
        let parts = [
            ("(vd, λ)_z", BY_POSITION, solved(tau_position, c_position)),
            ("(vd, λ)_v", BY_VELOCITY, solved(tau_velocity, c_velocity)),
            ("(vd, λ)_ρ", By::Parameters, solved(tau_rho, c_rho)),
        ];
        for (what, by, written) in parts {
            checks.compare((name, what), (Of::JointSolution, by), point, &written, &dynamics);
        }
        return;
    };
    // Constraints depend on each other.
    let top = admissible::combine(&admissible.directions, [&tau_position, &tau_velocity, &tau_rho]);
    let bottom = admissible::combine(&admissible.directions, [&c_position, &c_velocity, &c_rho]);
    let written = top.into_iter().zip(bottom).map(|(top, bottom)| -> Columns {
        solved(top, bottom).iter().map(|column| admissible.forces(column)).collect()
    });
    let written: Vec<Columns> = written.collect();
    checks.directions = admissible.directions.clone();
    let names = ["(vd, Φᵀλ)_z", "(vd, Φᵀλ)_v", "(vd, Φᵀλ)_ρ"];
    let along = [Along::Positions, Along::Velocities, Along::Parameters];
    let forces = |model: &_, at: &_| Some(admissible.forces(&dynamics(model, at)?));
    for ((what, along), written) in names.into_iter().zip(along).zip(&written) {
        checks.compare((name, what), (Of::JointForces, By::Along(along)), point, written, &forces);
    }
}

fn objective_derivatives(checks: &mut Checks, point: &Point<f64>) {
    let dims = checks.model.dims();
    let (n, nv, p) = (dims.n_objectives, dims.nv, dims.sensitivity.parameters);
    let mut w = vec![0.0; dims.workspace];
    let lens = [dims.sensitivity.joint_integrands, dims.sensitivity.joint_terminals];
    for (terminal, len) in [false, true].into_iter().zip(lens) {
        let model = &checks.model;
        let mut values = vec![0.0; len];
        let lambda = &[&point.joint_lambda[..], &point.joint_projections].concat();
        let written = if terminal {
            model.joint_terminal_derivatives(point.at(), &point.vd, lambda, &mut w, &mut values)
        } else {
            model.joint_integrand_derivatives(point.at(), &point.vd, lambda, &mut w, &mut values)
        };
        if len == 0 || written.is_err() {
            continue;
        }
        let places = model.joint_objective_places()[usize::from(terminal)];
        let name = if terminal { "joint_terminal_derivatives" } else { "joint_integrand_derivatives" };
        let list = ObjectiveValues::of(&dims, places, &values);
        let Ok(list) = list else { return checks.unreadable(name) };
        let mut rest = matrix(list.derivatives, places, n, 3 * nv + dims.joint_judged_rows() + p);
        let value = |model: &_, at: &_| objectives(model, at, terminal);
        checks.compare_values(name, Of::Objectives, point, list.values, &value);
        for (what, by, count) in [
            ("by z", BY_POSITION, nv),
            ("by v", BY_VELOCITY, nv),
            ("by vd", BY_ACCELERATION, nv),
            ("by λ", By::JointMultipliers, dims.joint_rows()),
            ("by σ, κ", By::JointProjections, point.joint_projections.len()),
            ("by ρ", By::Parameters, p),
        ] {
            let later = rest.split_off(count);
            // Few models read any.
            if by != By::JointProjections || count > 0 {
                checks.compare((name, what), (Of::Objectives, by), point, &rest, &value);
            }
            rest = later;
        }
    }
}
