//! Derivatives of what identification, control and optimisation ask for.

use super::joint_form::{BY_ACCELERATION, BY_POSITION, BY_VELOCITY, Numbers, inverse_dynamics, zeros};
use super::point::Point;
use super::{By, Checks, Columns, Of, matrix};
use crate::Interpreted;
use mbs_runtime::{
    AccelerationDerivatives, Centroid, Centroidal, Complex64, ForwardDynamics, ForwardDynamicsDerivatives,
    InverseDynamicsParameters, MassMatrixInverseAction, System,
};

fn forward_dynamics(model: &Interpreted<Complex64>, at: &Point<Complex64>) -> Numbers {
    let dims = model.dims();
    let (mut w, mut zd, mut vd) = (zeros(dims.workspace), zeros(dims.nq), zeros(dims.nv));
    model.forward_dynamics(at.at(), &mut w, &mut zd, &mut vd, &mut []).ok()?;
    Some(vd)
}

/// M⁻¹ times the accelerations of the point, taken as forces.
fn inverse_action(model: &Interpreted<Complex64>, at: &Point<Complex64>) -> Numbers {
    let dims = model.dims();
    let (mut w, mut x) = (zeros(dims.workspace), zeros(dims.nv));
    model.mass_matrix_inverse_action(at.at(), &at.vd, &mut w, &mut x).ok()?;
    Some(x)
}

fn centre_of_mass(model: &Interpreted<Complex64>, at: &Point<Complex64>) -> Numbers {
    let dims = model.dims();
    let mut all = [3, 3, 3 * dims.nv, 6, 6 * dims.nv, 6].map(zeros);
    let [com, com_velocity, com_jacobian, momentum, momentum_matrix, momentum_bias] = &mut all;
    let centroid = Centroid { com, com_velocity, com_jacobian, momentum, momentum_matrix, momentum_bias };
    model.centroidal(at.at(), &mut zeros(dims.workspace), centroid).ok()?;
    let [com, ..] = all;
    Some(com)
}

fn dense(values: &[f64], rows: usize) -> Columns {
    if rows == 0 { Vec::new() } else { values.chunks(rows).map(<[f64]>::to_vec).collect() }
}

/// All of these derivatives that the model has.
pub(super) fn check(checks: &mut Checks, point: &Point<f64>) {
    let (model, dims) = (&checks.model, checks.model.dims());
    let (nv, p) = (dims.nv, dims.sensitivity.parameters);
    let mut w = vec![0.0; dims.workspace];

    let places = model.inverse_dynamics_parameter_places();
    let mut values = vec![0.0; places.len()];
    if p > 0 && model.inverse_dynamics_parameters(point.at(), &point.vd, &mut w, &mut values).is_ok() {
        let written = matrix(&values, places, nv, p);
        let name = "inverse_dynamics_parameters";
        checks.compare((name, "tau_ρ"), (Of::Velocities, By::Parameters), point, &written, &inverse_dynamics);
    }

    let mut all = [nv, nv * nv, nv * nv, nv * nv, nv * p].map(|len| vec![0.0; len]);
    let [vd, vd_z, vd_v, vd_tau, vd_rho] = &mut all;
    let derivatives = AccelerationDerivatives { vd, vd_z, vd_v, vd_tau, vd_rho };
    let (model, tau) = (&checks.model, vec![0.0; nv]);
    if model.forward_dynamics_derivatives(point.at(), &tau, &mut w, derivatives).is_ok() {
        let name = "forward_dynamics_derivatives";
        let parts = [("vd_z", BY_POSITION), ("vd_v", BY_VELOCITY), ("vd_ρ", By::Parameters)];
        for ((what, by), values) in parts.into_iter().zip([&all[1], &all[2], &all[4]]) {
            let written = dense(values, nv);
            checks.compare((name, what), (Of::Velocities, by), point, &written, &forward_dynamics);
        }
        let of = (Of::Velocities, BY_ACCELERATION);
        checks.compare((name, "M⁻¹"), of, point, &dense(&all[3], nv), &inverse_action);
    }

    let mut all = [3, 3, 3 * nv, 6, 6 * nv, 6].map(|len| vec![0.0; len]);
    let [com, com_velocity, com_jacobian, momentum, momentum_matrix, momentum_bias] = &mut all;
    let centroid = Centroid { com, com_velocity, com_jacobian, momentum, momentum_matrix, momentum_bias };
    if checks.model.centroidal(point.at(), &mut w, centroid).is_ok() {
        let (of, written) = ((Of::CentreOfMass, BY_POSITION), dense(&all[2], 3));
        checks.compare(("centroidal", "J"), of, point, &written, &centre_of_mass);
    }
}
