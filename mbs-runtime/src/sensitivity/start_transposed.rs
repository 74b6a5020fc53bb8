//! The transpose of [`Assembly::start_differentiated`]: from weights of a consistent start to weights of its guesses. All levels in reverse,
//! with the transposed matrices and the same lists.

use super::derivatives::Sensitivities;
use super::driven::standstill;
use super::start::{Work, of_level};
use super::state::{StateDerivatives, rows as state_rows};
use super::step;
use super::values::{MotionValues, ProjectionValues};
use crate::error::{EvalError, Level, StepError};
use crate::euler_parameters::normalised;
use crate::formulation::newton::size_of;
use crate::formulation::start::weight;
use crate::formulation::{Assembly, Record, State};
use crate::inputs::Inputs;
use crate::integrator::renormalise;
use crate::linear::blocks::holonomic_rows;
use crate::linear::copy;
use crate::pieces::{Pieces, cut};
use crate::scalar::Scalar;
use crate::system::Dims;

impl Assembly {
    /// Length of the scratch that [`Assembly::start_transposed`] needs for this many columns, at least.
    #[inline(always)]
    pub(crate) const fn transposed_scratch_len(dims: &Dims, columns: usize) -> usize {
        let (start, step, own) =
            (Self::scratch_len(dims), step::scratch_len(dims), super::start::work_len(dims));
        let most = if start > step { start } else { step };
        let most = if most > own { most } else { own };
        let held = State::<f64>::len(dims) + 2 * dims.nq + dims.nu + Record::<f64>::len(dims);
        most + held + state_rows(dims) * columns
    }

    /// `guess`: the state before the start. `bar`: weights of the state that the start made of it, as [`StateDerivatives`] with these columns;
    /// leaves those of z and zd of the guess. Adds those of the parameters to `rho`.
    #[allow(clippy::too_many_arguments, reason = "a start and its weights")]
    pub(crate) fn start_transposed<M: Sensitivities, I: Inputs<M::S>>(
        &self,
        system: &M,
        inputs: &mut I,
        guess: &[M::S],
        columns: usize,
        bar: &mut [M::S],
        rho: &mut [M::S],
        scratch: &mut [M::S],
    ) -> Result<(), StepError> {
        let dims = system.dims();
        let mut pieces = Pieces::of(scratch, Self::transposed_scratch_len(&dims, columns));
        let state = pieces.next(State::<M::S>::len(&dims))?;
        let (z0, zd0) = (pieces.next(dims.nq)?, pieces.next(dims.nq)?);
        let u = pieces.next(dims.nu)?;
        let record = pieces.next(Record::<M::S>::len(&dims))?;
        let next = pieces.next(state_rows(&dims) * columns)?;
        let scratch = pieces.rest();
        copy(state, guess);
        let view = State::of(&dims, state)?;
        let t = *view.t;
        copy(z0, view.z);
        copy(zd0, view.zd);
        renormalise(system, z0);
        self.start(system, inputs, state, scratch)?;
        if !u.is_empty() {
            inputs.at(t, u);
        }
        let view = State::of(&dims, state)?;

        standstill(system, &view, u, record, scratch)?.add_transposed(columns, bar, next, rho)?;
        copy(bar, next);

        let fail = |error: EvalError| error.in_step(t.real(), 0.0);
        let mut work = Work::new(system, system.held(), &view, u, scratch)?;
        work.evaluate(z0, zd0)?;
        let mut change = StateDerivatives::with_columns(&dims, columns, bar)?;
        change.clear_forces();
        let mut weights = [change.z, change.zd, change.zdd];
        for level in [Level::Velocity, Level::Position] {
            work.transpose(level, columns, &mut weights, rho).map_err(fail)?;
        }
        // p′/|p| − p (p·p′)/|p|³ is its own transpose, with p before it has unit length.
        copy(z0, cut("guess", guess, 1).map_err(fail)?.1);
        normalised(system, z0, columns, weights[0]).map_err(fail)
    }
}

impl<M: Sensitivities> Work<'_, M> {
    /// From weights of z, zd or zdd to those of the guess, in their place; adds to those of the levels below and of ρ.
    pub(super) fn transpose(
        &mut self,
        level: Level,
        columns: usize,
        weights: &mut [&mut [M::S]; 3],
        rho: &mut [M::S],
    ) -> Result<(), EvalError> {
        let (nq, n) = (self.dims.nq, self.dims.nq + self.dims.rows());
        self.fill(level, true)?;
        for j in 0..n {
            for i in 0..j {
                if j * n + i < self.matrix.len() {
                    self.matrix.swap(j * n + i, i * n + j);
                }
            }
        }
        self.factor(level)?;
        for k in 0..columns {
            self.b.fill(M::S::ZERO);
            let from = of_level(level, weights);
            for (j, b) in self.b.iter_mut().enumerate().take(nq) {
                let unit = M::S::from_f64(self.system.units().coordinate(j));
                *b = unit * from.get(j * columns + k).copied().unwrap_or(M::S::ZERO);
            }
            self.solve(1)?;
            for (j, x) in self.x.iter_mut().enumerate().take(n) {
                if j < nq {
                    let unit = M::S::from_f64(self.system.units().coordinate(j));
                    if let Some(guess) = from.get_mut(j * columns + k) {
                        // Guesses of dependent coordinates count for nothing.
                        *guess = weight(self.system, j) * *x / unit;
                    }
                    let held = self.held.get(j).is_some_and(|held| *held);
                    *x = if held { M::S::ZERO } else { *x * unit };
                } else {
                    let row = j - nq;
                    let active = self.active.get(row).is_some_and(|active| *active != M::S::ZERO);
                    let counts = active && (level != Level::Position || row < holonomic_rows(&self.dims));
                    let size = M::S::from_f64(self.sizes.get(row).map_or(1.0, |size| size_of(*size)));
                    *x = if counts { *x / size } else { M::S::ZERO };
                }
            }
            let (pattern, places) = (self.system.pattern(), self.system.parameter_places());
            let motion = MotionValues::of(&pattern, &places, self.motion)?;
            let values = ProjectionValues::of(&pattern, &places, self.projections)?;
            let x = &*self.x;
            let holonomic = nq + holonomic_rows(&self.dims);
            let subtract = |first: usize, places: &[(u32, u32)], values: &[M::S], to: &mut [M::S]| {
                for (&(i, j), &value) in places.iter().zip(values) {
                    if let (Some(to), Some(&x)) =
                        (to.get_mut(j as usize * columns + k), x.get(first + i as usize))
                    {
                        *to -= value * x;
                    }
                }
            };
            let [z, zd, _] = weights;
            match level {
                Level::Position => {
                    subtract(0, places.impulse, values.acceleration_impulse_rho, rho);
                    subtract(nq, places.constraints, motion.constraints, rho);
                }
                Level::Velocity => {
                    subtract(0, places.impulse, values.velocity_impulse_rho, rho);
                    subtract(0, pattern.tangent, values.velocity_impulse, z);
                    subtract(nq, places.rates, values.rates, rho);
                    subtract(nq, pattern.holonomic, values.rates_z, z);
                    subtract(holonomic, pattern.nonholonomic, values.nonholonomic_z, z);
                }
                Level::Acceleration => {
                    subtract(nq, places.accelerations, values.accelerations, rho);
                    subtract(nq, pattern.holonomic, values.accelerations_z, z);
                    // Φdd_zd = 2 Φd_z
                    subtract(nq, pattern.holonomic, values.rates_z, zd);
                    subtract(nq, pattern.holonomic, values.rates_z, zd);
                    subtract(holonomic, pattern.nonholonomic, values.nonholonomic_rates_z, z);
                    subtract(holonomic, pattern.nonholonomic, values.nonholonomic_rates_zd, zd);
                }
            }
        }
        Ok(())
    }
}
