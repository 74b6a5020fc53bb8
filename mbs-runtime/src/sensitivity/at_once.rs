//! The derivative of a usual step by one bundle, [`Sensitivities::differentiate_step`]: from derivatives at its start to those at its end, for all
//! parameters.
//!
//! Input: the [`Record`] of a step whose rows are all active and independent, and which was projected in the norm of M. Output: what `forward`
//! makes of lists and factors, but for rounding; or nothing where an elimination fails or a solution is not at rounding: then `forward` is asked.

use super::derivatives::{Impulses, Sensitivities};
use super::residual::ROUNDING;
use super::run::DifferentiableStep;
use super::state::{Parts, StateDerivatives};
use super::step::{differences, write_compliance};
use crate::error::StepError;
use crate::formulation::{Record, depend};
use crate::linear::{add_scaled, copy};
use crate::pieces::Pieces;
use crate::scalar::Scalar;
use crate::system::Dims;

/// Length of the scratch.
pub(super) const fn scratch_len(dims: &Dims) -> usize {
    let n = dims.nq + dims.rows();
    3 * dims.nq * dims.sensitivity.parameters + dims.nq + n + dims.rows() + 4 * n + dims.workspace
}

/// Into `end`: the derivatives after the recorded step, from those before it. False, and nothing that counts is written, if the step is not a usual
/// one. Where rows depend on each other, `scratch` has what the step left for `linearise_made`: it stays.
#[inline(always)]
pub(super) fn differentiate<T: DifferentiableStep, M: Sensitivities>(
    method: &T,
    system: &M,
    record: &mut [M::S],
    start: &[M::S],
    end: &mut [M::S],
    scratch: &mut [M::S],
) -> Result<bool, StepError> {
    let dims = system.dims();
    let Some(integrator) = method.projects().filter(|_| system.fuses_derivatives()) else {
        return Ok(false);
    };
    let record = Record::of(&dims, record)?;
    if depend(*record.redundant != M::S::ZERO) || record.active.contains(&M::S::ZERO) {
        return Ok(false);
    }
    let formulas = integrator.formulas(*record.h)?;
    let (nq, rows, columns) = (dims.nq, dims.rows(), dims.sensitivity.parameters);
    let mut pieces = Pieces::of(scratch, scratch_len(&dims));
    let (p, q) = (pieces.next(nq * columns)?, pieces.next(nq * columns)?);
    let delta = pieces.next(nq * columns)?;
    let (d, e, kappa) = (pieces.next(nq)?, pieces.next(nq)?, pieces.next(rows)?);
    let compliance = pieces.next(rows)?;
    let (left, sizes) = (pieces.next(2 * (nq + rows))?, pieces.next(2 * (nq + rows))?);
    let w = pieces.next(dims.workspace)?;

    let start = Parts::of(&dims, columns, start)?;
    let end = StateDerivatives::of(&dims, end)?;
    copy(p, start.z);
    copy(q, start.zd);
    if formulas.keeps_acceleration {
        end.a.fill(M::S::ZERO);
    }
    // The prediction does not write zdd.
    let (x, mut y) = (start.kinematics(), [&mut *p, &mut *q, &mut [], &mut *end.a]);
    formulas.read_prediction(|row, part, factor| add_scaled(row.of_mut(&mut y), factor, part.of(x)));
    differences(&record, d, e, kappa);
    let impulses = Impulses {
        velocity: d,
        velocity_multipliers: record.sigma,
        acceleration: e,
        acceleration_multipliers: kappa,
    };
    write_compliance(record.scale, system.units(), false, compliance);
    let solved = system.differentiate_step(
        record.motion(),
        record.lambda_star,
        impulses,
        formulas.weights,
        compliance,
        p,
        q,
        w,
        end.z,
        end.zd,
        end.zdd,
        end.lambda,
        delta,
        left,
        sizes,
    );
    if solved.is_err() {
        return Ok(false);
    }
    // As solutions by lists are judged; not a number is not small.
    let limit = ROUNDING * M::S::EPSILON;
    let rows = left.iter().zip(sizes.iter());
    if !rows.fold(true, |small, (left, size)| small & (left.real().abs() <= limit * size.real())) {
        return Ok(false);
    }
    if formulas.keeps_acceleration {
        add_scaled(end.a, formulas.a_zdd_next, delta);
    } else {
        copy(end.a, end.zdd);
    }
    Ok(true)
}
