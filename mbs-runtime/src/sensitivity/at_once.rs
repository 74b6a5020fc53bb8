//! The derivative of a usual step by one bundle, [`Sensitivities::differentiate_step`]: from derivatives at its start to those at its end, for all
//! parameters; and its transpose by another, [`Sensitivities::transpose_step`]: from weights at its end to those at its start, for all
//! objectives.
//!
//! Input: the [`Record`] of a step whose rows are all active and independent, and which was projected in the norm of M. Output: what `forward`
//! and `transposed` make of lists and factors, but for rounding; or nothing where an elimination fails or a solution is not at rounding: then they
//! are asked.

use super::derivatives::{Impulses, Sensitivities};
use super::residual::ROUNDING;
use super::run::DifferentiableStep;
use super::state::{Parts, StateDerivatives};
use super::step::{differences, write_compliance};
use crate::error::StepError;
use crate::formulation::{Record, depend};
use crate::integrator::Formulas;
use crate::linear::{add_scaled, copy};
use crate::pieces::Pieces;
use crate::scalar::Scalar;
use crate::system::Dims;

/// Length of the scratch.
#[inline(always)]
pub(super) const fn scratch_len(dims: &Dims) -> usize {
    let (p, objectives) = (3 * dims.sensitivity.parameters, 4 * dims.n_objectives);
    dims.nq * (if p > objectives { p } else { objectives }) + Usual::<f64>::len(dims)
}

/// What both bundles read of a usual step, and what they say of their solutions.
struct Usual<'a, S> {
    formulas: Formulas<S>,
    d: &'a mut [S],
    e: &'a mut [S],
    kappa: &'a mut [S],
    compliance: &'a mut [S],
    left: &'a mut [S],
    sizes: &'a mut [S],
    w: &'a mut [S],
}

impl<'a, S: Scalar> Usual<'a, S> {
    #[inline(always)]
    const fn len(dims: &Dims) -> usize {
        6 * dims.nq + 6 * dims.rows() + dims.workspace
    }

    /// None if the step is not a usual one.
    #[inline(always)]
    fn of<T: DifferentiableStep, M: Sensitivities<S = S>>(
        method: &T,
        system: &M,
        record: &Record<'_, S>,
        pieces: &mut Pieces<'a, S>,
    ) -> Result<Option<Self>, StepError> {
        let Some(integrator) = method.projects() else { return Ok(None) };
        if depend(*record.redundant != S::ZERO) || record.active.contains(&S::ZERO) {
            return Ok(None);
        }
        let dims = system.dims();
        let (nq, rows) = (dims.nq, dims.rows());
        let usual = Self {
            formulas: integrator.formulas(*record.h)?,
            d: pieces.next(nq)?,
            e: pieces.next(nq)?,
            kappa: pieces.next(rows)?,
            compliance: pieces.next(rows)?,
            left: pieces.next(2 * (nq + rows))?,
            sizes: pieces.next(2 * (nq + rows))?,
            w: pieces.next(dims.workspace)?,
        };
        differences(record, usual.d, usual.e, usual.kappa);
        write_compliance(record.scale, system.units(), false, usual.compliance);
        Ok(Some(usual))
    }

    /// As solutions by lists are judged; not a number is not small.
    #[inline(always)]
    fn is_solved(&self) -> bool {
        let limit = ROUNDING * S::EPSILON;
        let rows = self.left.iter().zip(self.sizes.iter());
        rows.fold(true, |small, (left, size)| small & (left.real().abs() <= limit * size.real()))
    }
}

/// What the projections of a usual step did; a macro, since it borrows some fields only.
macro_rules! impulses {
    ($usual:expr, $record:expr) => {
        Impulses {
            velocity: $usual.d,
            velocity_multipliers: $record.sigma,
            acceleration: $usual.e,
            acceleration_multipliers: $usual.kappa,
        }
    };
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
    if !system.fuses_derivatives() {
        return Ok(false);
    }
    let dims = system.dims();
    let record = Record::of(&dims, record)?;
    let mut pieces = Pieces::of(scratch, scratch_len(&dims));
    let Some(usual) = Usual::of(method, system, &record, &mut pieces)? else { return Ok(false) };
    let (formulas, columns) = (usual.formulas, dims.sensitivity.parameters);
    let n = dims.nq * columns;
    let (p, q, delta) = (pieces.next(n)?, pieces.next(n)?, pieces.next(n)?);

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
    let solved = system.differentiate_step(
        record.motion(),
        record.lambda_star,
        impulses!(usual, record),
        formulas.weights,
        usual.compliance,
        p,
        q,
        usual.w,
        end.z,
        end.zd,
        end.zdd,
        end.lambda,
        delta,
        usual.left,
        usual.sizes,
    );
    if solved.is_err() || !usual.is_solved() {
        return Ok(false);
    }
    if formulas.keeps_acceleration {
        add_scaled(end.a, formulas.a_zdd_next, delta);
    } else {
        copy(end.a, end.zdd);
    }
    Ok(true)
}

/// Into `start` and `rho`: the weights of the state before the recorded step and of the parameters, from those after it. False, and nothing that
/// counts is written, if the step is not a usual one or there is not a column for each objective.
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "a step and weights")]
pub(crate) fn transpose<T: DifferentiableStep, M: Sensitivities>(
    method: &T,
    system: &M,
    record: &mut [M::S],
    columns: usize,
    end: &mut [M::S],
    start: &mut [M::S],
    rho: &mut [M::S],
    scratch: &mut [M::S],
) -> Result<bool, StepError> {
    let dims = system.dims();
    if !system.fuses_transposed() || columns != dims.n_objectives {
        return Ok(false);
    }
    let record = Record::of(&dims, record)?;
    let mut pieces = Pieces::of(scratch, scratch_len(&dims));
    let Some(usual) = Usual::of(method, system, &record, &mut pieces)? else { return Ok(false) };
    let (formulas, n) = (usual.formulas, dims.nq * columns);
    let [zdd, delta, p, q] = [pieces.next(n)?, pieces.next(n)?, pieces.next(n)?, pieces.next(n)?];

    let end = StateDerivatives::with_columns(&dims, columns, end)?;
    copy(zdd, end.zdd);
    delta.fill(M::S::ZERO);
    if formulas.keeps_acceleration {
        add_scaled(delta, formulas.a_zdd_next, end.a);
    } else {
        add_scaled(zdd, M::S::ONE, end.a);
    }
    let solved = system.transpose_step(
        record.motion(),
        record.lambda_star,
        impulses!(usual, record),
        formulas.weights,
        usual.compliance,
        end.z,
        end.zd,
        zdd,
        end.lambda,
        delta,
        usual.w,
        p,
        q,
        rho,
        usual.left,
        usual.sizes,
    );
    if solved.is_err() || !usual.is_solved() {
        return Ok(false);
    }
    let mut start = StateDerivatives::with_columns(&dims, columns, start)?;
    copy(start.z, p);
    copy(start.zd, q);
    start.clear_forces();
    // The prediction does not write zdd.
    let (y, mut x): ([&[M::S]; 4], _) = ([p, q, &[], end.a], start.kinematics_mut());
    formulas.read_prediction(|row, part, factor| add_scaled(part.of_mut(&mut x), factor, row.of(y)));
    Ok(true)
}
