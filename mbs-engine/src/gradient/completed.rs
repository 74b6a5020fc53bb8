//! Quantities of a node that an explicit run does not compute: rates, accelerations and multipliers, and their derivatives.
//!
//! Input: positions, velocities and their derivatives by the parameters. Output: a [`Node`] in coordinate form. With θ_ρ = L(z) z_ρ,
//!
//! ```text
//! [ M    Φ_vᵀ ] [vd_ρ]     [ tau_θ θ_ρ + tau_v v_ρ + tau_ρ ]
//! [ Φ_v  −e   ] [λ_ρ ] = − [ c_θ θ_ρ + c_v v_ρ + c_ρ       ]
//! ```
//!
//! zd = N(z) v and zdd = N(z) vd + Nd v are differentiated by complex steps, which are exact.

use super::Node;
use crate::Interpreted;
use crate::method::Damping;
use mbs_runtime::sensitivity::{DifferentiatedAt, JointValues, Places};
use mbs_runtime::{
    At, Complex64, ConstrainedDynamics, Dims, EvalError, ForwardDynamics, JointSensitivities, Motion,
    Stabilisation, System, euler_parameters,
};

/// The imaginary step: its square vanishes beside any number.
const STEP: f64 = 1e-40;

/// Memory for a node.
pub(super) struct Completion {
    /// None of an open tree.
    stabilisation: Option<Stabilisation<f64>>,
    /// Whether multipliers have derivatives.
    multipliers: bool,
    zd: Vec<f64>,
    zdd: Vec<f64>,
    vd: Vec<f64>,
    joint_lambda: Vec<f64>,
    /// Of all rows.
    lambda: Vec<f64>,
    zd_rho: Vec<f64>,
    zdd_rho: Vec<f64>,
    lambda_rho: Vec<f64>,
    values: Vec<f64>,
    factors: Vec<f64>,
    w: Vec<f64>,
}

impl Completion {
    pub(super) fn new(model: &Interpreted, damping: Option<Damping>, multipliers: bool) -> Self {
        let (dims, zeros) = (model.dims(), |n: usize| vec![0.0; n]);
        let p = dims.sensitivity.parameters;
        Completion {
            stabilisation: damping.map(|damping| damping.stabilisation()),
            multipliers,
            zd: zeros(dims.nq),
            zdd: zeros(dims.nq),
            vd: zeros(dims.nv),
            joint_lambda: zeros(dims.joint_rows()),
            lambda: zeros(dims.rows()),
            zd_rho: zeros(dims.nq * p),
            zdd_rho: zeros(dims.nq * p),
            lambda_rho: zeros(if multipliers { dims.rows() * p } else { 0 }),
            values: zeros(dims.sensitivity.joint),
            factors: zeros(dims.sensitivity.joint_factors),
            w: zeros(dims.workspace),
        }
    }

    /// Computes them at a node.
    pub(super) fn complete(
        &mut self,
        model: &Interpreted,
        seen: &DifferentiatedAt<'_, f64>,
    ) -> Result<(), EvalError> {
        let (dims, at) = (model.dims(), seen.at);
        let none = Stabilisation { rate: 0.0, value: 0.0, compliance: 0.0 };
        let stabilisation = self.stabilisation.unwrap_or(none);
        let Self { zd, zdd, vd, joint_lambda, w, .. } = self;
        match self.stabilisation {
            Some(gains) => model.constrained_dynamics(at, gains, w, zd, vd, &mut [], joint_lambda)?,
            None => model.forward_dynamics(at, w, zd, vd, &mut [])?,
        }
        euler_parameters::coordinate_accelerations(model, at.z, at.v, vd, zdd)?;
        for (i, &lambda) in joint_lambda.iter().enumerate() {
            self.lambda[row(&dims, i)] = lambda;
        }
        let (values, factors) = (&mut self.values, &mut self.factors);
        model.joint_linearise(at, vd, joint_lambda, stabilisation, w, values, factors)?;
        for k in 0..dims.sensitivity.parameters {
            self.complete_column(model, seen, k)?;
        }
        Ok(())
    }

    fn complete_column(
        &mut self,
        model: &Interpreted,
        seen: &DifferentiatedAt<'_, f64>,
        k: usize,
    ) -> Result<(), EvalError> {
        let (dims, p, at) = (model.dims(), model.dims().sensitivity.parameters, seen.at);
        let column = |first: usize, n: usize| -> Vec<f64> {
            (first..first + n).map(|i| seen.derivatives.get(i * p + k).copied().unwrap_or(0.0)).collect()
        };
        let (z_rho, v_rho) = (column(0, dims.nq), column(dims.nq, dims.nv));
        let mut theta = vec![0.0; dims.nv];
        euler_parameters::velocities(model, at.z, &z_rho, &mut theta)?;
        let mut solution = right_hand_side(model, &self.values, k, &theta, &v_rho)?;
        model.joint_solve(&self.factors, &mut self.w, &mut solution)?;
        let (vd_rho, joint_lambda_rho) = solution.split_at(dims.nv);
        if self.multipliers {
            for (i, &change) in joint_lambda_rho.iter().enumerate() {
                self.lambda_rho[row(&dims, i) * p + k] = change;
            }
        }

        let moved = |x: &[f64], change: &[f64]| -> Vec<Complex64> {
            x.iter().zip(change).map(|(&x, &change)| Complex64::new(x, STEP * change)).collect()
        };
        let (z, v, vd) = (moved(at.z, &z_rho), moved(at.v, &v_rho), moved(&self.vd, vd_rho));
        let shape = Shape(model);
        let mut change = vec![Complex64::default(); dims.nq];
        euler_parameters::coordinate_rates(&shape, &z, &v, &mut change)?;
        put(&mut self.zd_rho, p, k, &change);
        euler_parameters::coordinate_accelerations(&shape, &z, &v, &vd, &mut change)?;
        put(&mut self.zdd_rho, p, k, &change);
        Ok(())
    }

    /// The node with the computed quantities.
    pub(super) fn node<'a>(&'a self, seen: &DifferentiatedAt<'a, f64>) -> Result<Node<'a>, EvalError> {
        let At { t, z, u, .. } = seen.at;
        let (expected, found) = (self.zd_rho.len(), seen.derivatives.len());
        let short = EvalError::Length { what: "derivatives of the state", expected, found };
        Ok(Node {
            motion: Motion { t, z, zd: &self.zd, zdd: &self.zdd, u },
            lambda: &self.lambda,
            z: seen.derivatives.get(..expected).ok_or(short)?,
            zd: &self.zd_rho,
            zdd: &self.zdd_rho,
            lambda_derivatives: &self.lambda_rho,
        })
    }
}

/// −(tau_θ θ' + tau_v v' + tau_ρ), −(c_θ θ' + c_v v' + c_ρ)
fn right_hand_side(
    model: &Interpreted,
    values: &[f64],
    k: usize,
    theta: &[f64],
    v: &[f64],
) -> Result<Vec<f64>, EvalError> {
    let places = model.joint_places();
    let (nv, rows) = (model.dims().nv, model.dims().joint_rows());
    let list = JointValues::of(&places, values)?;
    let mut b = vec![0.0; nv + rows];
    let mut subtract = |first: usize, places: Places<'_>, values: &[f64], x: &dyn Fn(usize) -> f64| {
        for (&(i, j), value) in places.iter().zip(values) {
            b[first + i as usize] -= value * x(j as usize);
        }
    };
    let one = |parameter: usize| if parameter == k { 1.0 } else { 0.0 };
    subtract(0, places.tangent, list.force_theta, &|j| theta[j]);
    subtract(0, places.tangent, list.force_v, &|j| v[j]);
    subtract(0, places.force, list.force_rho, &one);
    subtract(nv, places.rows, list.rows_theta, &|j| theta[j]);
    subtract(nv, places.rows, list.rows_v, &|j| v[j]);
    subtract(nv, places.row, list.rows_rho, &one);
    Ok(b)
}

/// Index of a row of the joint form among all rows: normalisation rows lie between holonomic and nonholonomic ones.
fn row(dims: &Dims, i: usize) -> usize {
    if i < dims.n_holonomic { i } else { i + dims.n_normalisation }
}

fn put(matrix: &mut [f64], p: usize, k: usize, column: &[Complex64]) {
    for (row, change) in matrix.chunks_exact_mut(p).zip(column) {
        row[k] = change.im / STEP;
    }
}

/// Coordinates and velocities of a model, in complex numbers.
struct Shape<'a>(&'a Interpreted);

impl System for Shape<'_> {
    type S = Complex64;

    fn dims(&self) -> Dims {
        self.0.dims()
    }

    fn euler_parameters(&self) -> &[usize] {
        self.0.euler_parameters()
    }
}
