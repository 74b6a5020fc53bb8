//! Objectives of explicit runs that read multipliers of constraints which depend on each other: refused, there is no telling how those
//! move.

use super::derivatives::{JointObjectiveDerivatives, JointSensitivities};
use super::joint_dynamics::JointDynamics;
use super::joint_values::JointValues;
use crate::constrained::Stabilisation;
use crate::error::{EvalError, StepError};
use crate::formulation::refuse_projection_multipliers;
use crate::linear::rank::rank;
use crate::pieces::cut_mut;
use crate::scalar::{Scalar, sqrt};
use crate::system::{At, Dims, rests};

/// Rows of θ, v, vd, λ: the columns of an objective's derivatives before those of ρ.
pub(crate) const fn objective_rows(dims: &Dims) -> usize {
    3 * dims.nv + dims.joint_judged_rows()
}

/// Length of the memory of a check.
#[inline(always)]
pub(crate) const fn len(dims: &Dims) -> usize {
    let (rows, nv) = (dims.joint_rows(), dims.nv);
    let lists = 2 * dims.sensitivity.joint + dims.sensitivity.joint_factors;
    lists + (nv + rows) + rows * nv + rows + nv
}

/// An error if objectives read multipliers of constraints that depend on each other, at the start of a run.
pub(crate) fn refuse_redundant_multipliers<D: JointDynamics>(
    system: &D,
    at: At<'_, D::S>,
    memory: &mut [D::S],
    w: &mut [D::S],
) -> Result<(), StepError>
where
    D::Model: JointObjectiveDerivatives,
{
    let dims = system.dims();
    refuse_projection_multipliers(&dims)?;
    let multipliers = 3 * dims.nv..objective_rows(&dims);
    let read = |place: &(u32, u32)| multipliers.contains(&(place.1 as usize));
    let places = system.model().joint_objective_places();
    let penalised = system.stabilisation().compliance != D::S::ZERO;
    if penalised || !places.into_iter().any(|places| places.iter().any(read)) {
        return Ok(());
    }
    if is_redundant(system, &dims, at, memory, w).map_err(|error| error.in_step(at.t.real(), 0.0))? {
        let what = "there are no derivatives of multipliers of constraints that depend on each other under explicit \
                    integrators: take an implicit one, or an objective without reactions";
        return Err(StepError::NotDifferentiable { what });
    }
    Ok(())
}

/// Whether rows depend on each other: the rank of B = c_v with a = 1, minus the same with a = 0.
fn is_redundant<D: JointDynamics>(
    system: &D,
    dims: &Dims,
    at: At<'_, D::S>,
    memory: &mut [D::S],
    w: &mut [D::S],
) -> Result<bool, EvalError> {
    let (model, rows, nv) = (system.model(), dims.joint_rows(), dims.nv);
    let (base, rest) = cut_mut("memory", memory, dims.sensitivity.joint)?;
    let (other, rest) = cut_mut("memory", rest, dims.sensitivity.joint)?;
    let (factors, rest) = cut_mut("memory", rest, dims.sensitivity.joint_factors)?;
    let (still, rest) = cut_mut("memory", rest, nv + rows)?;
    let (dense, used) = cut_mut("memory", rest, rows * nv)?;
    still.fill(D::S::ZERO);
    let (vd, lambda) = cut_mut("memory", still, nv)?;
    let exact = Stabilisation { rate: D::S::ZERO, value: D::S::ZERO, compliance: D::S::ZERO };
    let rate = Stabilisation { rate: D::S::ONE, ..exact };
    model.joint_linearise(at, vd, lambda, exact, w, base, factors)?;
    model.joint_linearise(at, vd, lambda, rate, w, other, factors)?;
    let places = model.joint_places();
    let (base, other) = (JointValues::of(&places, base)?, JointValues::of(&places, other)?);
    dense.fill(D::S::ZERO);
    let values = other.rows_v.iter().zip(base.rows_v);
    for (&(k, j), (&with, &without)) in places.rows.iter().zip(values) {
        if let Some(entry) = dense.get_mut(k as usize * nv + j as usize) {
            *entry = with - without;
        }
    }
    // A row that does not act in the states that hold binds nothing.
    let acting = (0..rows).filter(|&k| !rests(model, k, at.u)).count();
    Ok(rank(nv, dense, used, sqrt(D::S::EPSILON))?.rank < acting)
}
