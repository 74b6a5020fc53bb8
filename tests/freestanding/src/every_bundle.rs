//! Calls every bundle of a model: they agree with each other, and refuse slices that are too short.

use core::hint::black_box;

use mbs_runtime::{
    At, Dims, Energy, EvalError, ForwardDynamics, ForwardDynamicsRecursive, InverseDynamics,
    InverseDynamicsDerivatives, MarkerJacobians, Markers, MassMatrix, MassMatrixCoordinates, Outputs, Start,
    System,
};

/// Room for the largest result of the models here.
pub(crate) const ROOM: usize = 2048;

/// Rounding, relative to the largest entry, times the condition of the mass matrix, below 1e4 here.
const CLOSE: f64 = 1e-11;

pub(crate) struct Buffer(pub(crate) [f64; ROOM]);

impl Buffer {
    fn new() -> Buffer {
        Buffer([0.0; ROOM])
    }

    /// The first `n` values; the compiler does not know how many there are.
    pub(crate) fn first(&mut self, n: usize) -> Option<&mut [f64]> {
        self.0.get_mut(..black_box(n))
    }
}

fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |largest, value| value.abs().max(largest))
}

pub(crate) fn equal(a: &[f64], b: &[f64]) -> Option<()> {
    let scale = largest(a).max(largest(b));
    let same = a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() <= CLOSE * scale);
    same.then_some(())
}

pub(crate) fn finite(values: &[f64]) -> Option<()> {
    values.iter().all(|value| value.is_finite()).then_some(())
}

/// The answer to a slice of a wrong length.
pub(crate) fn refused(result: Result<(), EvalError>) -> Option<()> {
    matches!(result, Err(EvalError::Length { .. })).then_some(())
}

pub(crate) fn agree<M>(model: &M) -> Option<()>
where
    M: System<S = f64>
        + Start
        + ForwardDynamics
        + ForwardDynamicsRecursive
        + MassMatrix
        + MassMatrixCoordinates
        + InverseDynamics
        + InverseDynamicsDerivatives
        + Energy
        + Markers
        + MarkerJacobians
        + Outputs,
{
    let Dims { nq, nv, nu, n_markers, n_outputs, workspace, .. } = model.dims();
    let [mut z, mut v, mut u, mut w] = [const { Buffer([0.0; ROOM]) }; 4];
    let (z, v, u, w) = (z.first(nq)?, v.first(nv)?, u.first(nu)?, w.first(workspace)?);
    model.start(z, v, &mut []).ok()?;
    // Somewhere else than at the start, where much may vanish.
    for (i, value) in z.iter_mut().chain(&mut *v).chain(&mut *u).enumerate() {
        *value += 0.1 + 0.03 * i as f64;
    }
    let at = At { t: black_box(0.6), z, v, x: &[], u };

    let [mut zd, mut vd, mut zd_too, mut vd_too] = [const { Buffer([0.0; ROOM]) }; 4];
    let (zd, vd) = (zd.first(nq)?, vd.first(nv)?);
    let (zd_too, vd_too) = (zd_too.first(nq)?, vd_too.first(nv)?);
    model.forward_dynamics(at, w, zd, vd, &mut []).ok()?;
    model.forward_dynamics_recursive(at, w, zd_too, vd_too, &mut []).ok()?;
    equal(zd, zd_too)?;
    equal(vd, vd_too)?;

    // tau(vd + e) − tau(vd) = M e with e all ones, and tau(vd) = 0.
    let [mut tau, mut tau_too, mut m, mut sums] = [const { Buffer([0.0; ROOM]) }; 4];
    let (tau, tau_too) = (tau.first(nv)?, tau_too.first(nv)?);
    let (m, sums) = (m.first(nv * nv)?, sums.first(nv)?);
    model.inverse_dynamics(at, vd, w, tau).ok()?;
    vd_too.iter_mut().for_each(|vd| *vd += 1.0);
    model.inverse_dynamics(at, vd_too, w, tau_too).ok()?;
    model.mass_matrix(at, w, m).ok()?;
    for column in m.chunks_exact(nv.max(1)) {
        for (sum, entry) in sums.iter_mut().zip(column) {
            *sum += entry;
        }
    }
    equal(tau_too, sums)?;
    (largest(tau) <= CLOSE * largest(tau_too)).then_some(())?;

    let [mut tau_z, mut tau_v, mut m_too] = [const { Buffer([0.0; ROOM]) }; 3];
    let (tau_z, tau_v, m_too) = (tau_z.first(nv * nv)?, tau_v.first(nv * nv)?, m_too.first(nv * nv)?);
    model.inverse_dynamics_derivatives(at, vd, w, tau_z, tau_v, m_too).ok()?;
    equal(m, m_too)?;
    finite(tau_z)?;
    finite(tau_v)?;

    // 2 T = vᵀ M v = zdᵀ M_z zd, for Euler parameters too.
    let mut m_z = Buffer::new();
    let m_z = m_z.first(nq * nq)?;
    model.mass_matrix_coordinates(at, w, m_z).ok()?;
    let mut energy = [0.0; 3];
    model.energy(at, w, &mut energy).ok()?;
    let twice = 2.0 * energy[0];
    equal(&[twice, twice], &[quadratic(m, v), quadratic(m_z, zd)])?;

    // Velocities of markers are J v: no marker here moves with time alone.
    let [mut positions, mut velocities, mut accelerations, mut product, mut jacobians] =
        [const { Buffer([0.0; ROOM]) }; 5];
    let n = 3 * n_markers;
    let (positions, velocities) = (positions.first(n)?, velocities.first(n)?);
    let (accelerations, product) = (accelerations.first(n)?, product.first(n)?);
    let jacobians = jacobians.first(n * nv)?;
    model.markers(at, vd, w, positions, velocities, accelerations).ok()?;
    model.marker_jacobians(at, w, jacobians).ok()?;
    for (column, &v) in jacobians.chunks_exact(n.max(1)).zip(at.v) {
        for (sum, entry) in product.iter_mut().zip(column) {
            *sum += entry * v;
        }
    }
    equal(velocities, product)?;
    finite(positions)?;
    finite(accelerations)?;

    let mut outputs = Buffer::new();
    let outputs = outputs.first(n_outputs)?;
    model.outputs(at, vd, w, outputs).ok()?;
    finite(outputs)?;

    // A value more than there are.
    refused(model.forward_dynamics(at, w, zd, vd, &mut [0.0]))?;
    refused(model.start(&mut [], &mut [], &mut []))?;
    refused(model.mass_matrix(At { z: &[], ..at }, w, m))
}

/// xᵀ A x
fn quadratic(a: &[f64], x: &[f64]) -> f64 {
    let columns = a.chunks_exact(x.len().max(1));
    columns.zip(x).map(|(column, &xj)| column.iter().zip(x).map(|(a, &xi)| a * xi * xj).sum::<f64>()).sum()
}
