//! Calls the bundles for identification, control and optimisation: they agree with each other, and refuse slices of wrong lengths.

use crate::every_bundle::{Buffer, ROOM, equal, finite, refused};
use mbs_runtime::{
    AccelerationDerivatives, At, Centroid, Centroidal, CoriolisTerms, Dims, ForwardDynamicsDerivatives,
    ForwardDynamicsExternal, GravityTerms, InertialParameters, InverseDynamicsExternal,
    InverseDynamicsParameters, MarkerJacobianRates, MassMatrix, MassMatrixInverseAction, Regressor, Start,
    System,
};

/// sum += A x for a matrix by columns.
fn add_product(a: &[f64], x: &[f64], sum: &mut [f64]) {
    for (column, x) in a.chunks_exact(sum.len().max(1)).zip(x) {
        for (sum, entry) in sum.iter_mut().zip(column) {
            *sum += entry * x;
        }
    }
}

pub(crate) fn agree<M>(model: &M) -> Option<()>
where
    M: System<S = f64>
        + Start
        + MassMatrix
        + InertialParameters
        + Regressor
        + GravityTerms
        + CoriolisTerms
        + Centroidal
        + MarkerJacobianRates
        + InverseDynamicsExternal
        + ForwardDynamicsExternal
        + MassMatrixInverseAction
        + ForwardDynamicsDerivatives
        + InverseDynamicsParameters,
{
    let Dims { nq, nv, nu, n_bodies, n_markers, workspace, sensitivity, .. } = model.dims();
    let [mut z, mut v, mut u, mut w, mut m, mut given] = [const { Buffer([0.0; ROOM]) }; 6];
    let (z, v, u, w) = (z.first(nq)?, v.first(nv)?, u.first(nu)?, w.first(workspace)?);
    let (m, vd) = (m.first(nv * nv)?, given.first(nv)?);
    model.start(z, v, &mut []).ok()?;
    for (i, value) in z.iter_mut().chain(&mut *v).chain(&mut *u).chain(&mut *vd).enumerate() {
        *value += 0.1 + 0.03 * i as f64;
    }
    let at = At { t: 0.6, z, v, x: &[], u };
    model.mass_matrix(at, w, m).ok()?;

    // M vd + c + g = Y π
    let [mut gravity, mut sum, mut product, mut pi, mut values] = [const { Buffer([0.0; ROOM]) }; 5];
    let (gravity, sum, product) = (gravity.first(nv)?, sum.first(nv)?, product.first(nv)?);
    model.gravity_terms(at, w, gravity).ok()?;
    model.coriolis_terms(at, w, sum).ok()?;
    add_product(m, vd, sum);
    sum.iter_mut().zip(&*gravity).for_each(|(sum, g)| *sum += g);
    let pi = pi.first(10 * n_bodies)?;
    let places = model.regressor_places();
    let values = values.first(10 * places.len())?;
    model.inertial_parameters(w, pi).ok()?;
    model.regressor(at, vd, w, values).ok()?;
    for (block, &(j, body)) in values.chunks_exact(10).zip(places) {
        let own = pi.chunks_exact(10).nth(body as usize)?;
        let share: f64 = block.iter().zip(own).map(|(y, p)| y * p).sum();
        *product.get_mut(j as usize)? += share;
    }
    equal(sum, product)?;

    // tau of vd, and back; M x = tau
    let [mut wrenches, mut tau, mut zd, mut back] = [const { Buffer([0.0; ROOM]) }; 4];
    let (wrenches, tau) = (wrenches.first(6 * n_bodies)?, tau.first(nv)?);
    let (zd, back) = (zd.first(nq)?, back.first(nv)?);
    wrenches.iter_mut().enumerate().for_each(|(i, f)| *f = 0.2 - 0.05 * i as f64);
    model.inverse_dynamics_external(at, vd, wrenches, w, tau).ok()?;
    model.forward_dynamics_external(at, tau, wrenches, w, zd, back, &mut []).ok()?;
    equal(vd, back)?;
    model.mass_matrix_inverse_action(at, tau, w, back).ok()?;
    product.fill(0.0);
    add_product(m, back, product);
    equal(tau, product)?;

    // M⁻¹ tau, and everything is a number
    let [mut vd_here, mut vd_z, mut vd_v, mut vd_tau, mut vd_rho] = [const { Buffer([0.0; ROOM]) }; 5];
    let square = nv * nv;
    let (vd_here, vd_z, vd_v) = (vd_here.first(nv)?, vd_z.first(square)?, vd_v.first(square)?);
    let (vd_tau, vd_rho) = (vd_tau.first(square)?, vd_rho.first(nv * sensitivity.parameters)?);
    let derivatives = AccelerationDerivatives { vd: vd_here, vd_z, vd_v, vd_tau, vd_rho };
    model.forward_dynamics_derivatives(at, tau, w, derivatives).ok()?;
    product.fill(0.0);
    add_product(vd_tau, tau, product);
    equal(back, product)?;
    [&*vd_z, vd_v, vd_rho].into_iter().try_for_each(finite)?;
    let mut by_parameters = Buffer([0.0; ROOM]);
    let by_parameters = by_parameters.first(model.inverse_dynamics_parameter_places().len())?;
    model.inverse_dynamics_parameters(at, vd, w, by_parameters).ok()?;
    finite(by_parameters)?;

    // h = A v, and (dJ/dt) v
    let [mut jacobian, mut matrix, mut rates, mut bias] = [const { Buffer([0.0; ROOM]) }; 4];
    let [mut com, mut com_velocity] = [[0.0; 3]; 2];
    let [mut momentum, mut momentum_bias, mut carried] = [[0.0; 6]; 3];
    let (com_jacobian, momentum_matrix) = (jacobian.first(3 * nv)?, matrix.first(6 * nv)?);
    let centroid = Centroid {
        com: &mut com,
        com_velocity: &mut com_velocity,
        com_jacobian: &mut *com_jacobian,
        momentum: &mut momentum,
        momentum_matrix: &mut *momentum_matrix,
        momentum_bias: &mut momentum_bias,
    };
    model.centroidal(at, w, centroid).ok()?;
    add_product(momentum_matrix, at.v, &mut carried);
    equal(&momentum, &carried)?;
    let mut moved = [0.0; 3];
    add_product(com_jacobian, at.v, &mut moved);
    equal(&com_velocity, &moved)?;
    finite(&com)?;
    finite(&momentum_bias)?;
    let (rates, bias) = (rates.first(3 * n_markers * nv)?, bias.first(3 * n_markers)?);
    model.marker_jacobian_rates(at, w, rates, bias).ok()?;
    let mut turned = Buffer([0.0; ROOM]);
    let turned = turned.first(3 * n_markers)?;
    add_product(rates, at.v, turned);
    equal(bias, turned)?;

    refused(model.inverse_dynamics_external(at, vd, &[], w, tau))?;
    refused(model.mass_matrix_inverse_action(at, &[], w, tau))
}
