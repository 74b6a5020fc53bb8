//! From a model to the consistent start of a run.
//!
//! Input: a model whose start values are guesses, and a time. [`Start::start`](crate::Start::start) is the only source of both positions
//! and velocities; copying its coordinates alone would lose the velocities. Output:
//!
//! | run | function | leaves |
//! |---|---|---|
//! | implicit, of any mechanism | [`Assembly::begin`] | a [`State`]: assembled positions, projected rates, accelerations, multipliers |
//! | the same, driven, without dynamics | [`Assembly::begin_driven`] | the same, multipliers zero |
//! | the same, with derivatives | [`Assembly::begin_differentiated`] | also its [`StateDerivatives`](crate::StateDerivatives) |
//! | explicit, under constraints | [`Assembly::begin`], then [`State::joint_form`] | y = \[z, v\] |
//! | explicit, of an open tree | [`Assembly::begin_tree`] | y = \[z, v, x\] and its rate |

use super::start::{Assembly, StartStatistics};
use super::state::State;
use crate::constrained::Constrained;
use crate::error::{EvalError, StepError};
use crate::euler_parameters::{coordinate_rates, velocities};
use crate::inputs::Inputs;
use crate::integrator::{check_finite, renormalise};
use crate::linear::copy;
use crate::pieces::Pieces;
use crate::scalar::Scalar;
use crate::system::{At, Dims, ForwardDynamics, Start, System};

impl Assembly {
    /// Writes the model's start values into the [`State`] as its guesses at time `t`: z as the model has it, zd = N(z) v, so that joints
    /// with Euler parameters start with their angular velocity. All rows are active.
    pub fn guess<M: Start>(system: &M, t: M::S, state: &mut [M::S]) -> Result<(), StepError> {
        let dims = system.dims();
        super::refuse_first_order_states(&dims)?;
        let mut view = State::of(&dims, state)?;
        view.reset(t);
        let fail = |error: EvalError| error.in_step(t.real(), 0.0);
        // There are at most as many velocities as coordinates: v stands where accelerations will.
        let wrong = StepError::Length { what: "v", expected: dims.nv, found: view.zdd.len() };
        let v = view.zdd.get_mut(..dims.nv).ok_or(wrong)?;
        system.start(view.z, v, &mut []).map_err(fail)?;
        coordinate_rates(system, view.z, v, view.zd).map_err(fail)?;
        v.fill(M::S::ZERO);
        Ok(())
    }

    /// The model's consistent start at time `t`: [`Assembly::guess`], then [`Assembly::start`]. `scratch`: of [`Assembly::scratch_len`].
    ///
    /// ```
    /// # use mbs_runtime::constrained::{Motion, Pattern, Weights};
    /// # use mbs_runtime::system::{array, array_mut};
    /// # use mbs_runtime::{Constrained, Dims, EvalError, FusedSteps, Start, System};
    /// # struct Slide;
    /// # const DIMS: Dims = Dims { nq: 1, nv: 1, n_matrix: 1, n_factors: 1, ..Dims::ZERO };
    /// # impl System for Slide {
    /// #     type S = f64;
    /// #     fn dims(&self) -> Dims {
    /// #         DIMS
    /// #     }
    /// # }
    /// # impl FusedSteps for Slide {}
    /// # impl Constrained for Slide {
    /// #     fn pattern(&self) -> Pattern<'_> {
    /// #         Pattern { tangent: &[(0, 0)], holonomic: &[], nonholonomic: &[] }
    /// #     }
    /// #     fn held(&self) -> &[bool] {
    /// #         &[false]
    /// #     }
    /// #     fn residual(&self, at: Motion<'_, f64>, _: &[f64], _: &mut [f64], r: &mut [f64], _: &mut [f64]) -> Result<(), EvalError> {
    /// #         *array_mut("r", r)? = [at.zdd[0] - 4.0];
    /// #         Ok(())
    /// #     }
    /// #     fn newton(&self, at: Motion<'_, f64>, l: &[f64], _: Weights<f64>, w: &mut [f64], r: &mut [f64], phi: &mut [f64], matrix: &mut [f64]) -> Result<(), EvalError> {
    /// #         matrix[0] = 1.0;
    /// #         self.residual(at, l, w, r, phi)
    /// #     }
    /// #     fn projection(&self, _: f64, _: &[f64], _: &[f64], _: &mut [f64], matrix: &mut [f64]) -> Result<(), EvalError> {
    /// #         *array_mut("matrix", matrix)? = [1.0];
    /// #         Ok(())
    /// #     }
    /// #     fn constraint_rates(&self, _: Motion<'_, f64>, _: &mut [f64], _: &mut [f64]) -> Result<(), EvalError> {
    /// #         Ok(())
    /// #     }
    /// #     fn constraint_accelerations(&self, _: Motion<'_, f64>, _: &mut [f64], _: &mut [f64]) -> Result<(), EvalError> {
    /// #         Ok(())
    /// #     }
    /// #     fn factor(&self, matrix: &[f64], _: &mut [f64], factors: &mut [f64]) -> Result<(), EvalError> {
    /// #         factors[0] = matrix[0];
    /// #         Ok(())
    /// #     }
    /// #     fn solve(&self, factors: &[f64], _: &mut [f64], x: &mut [f64]) -> Result<(), EvalError> {
    /// #         x[0] /= factors[0];
    /// #         Ok(())
    /// #     }
    /// #     fn solve_transposed(&self, factors: &[f64], w: &mut [f64], x: &mut [f64]) -> Result<(), EvalError> {
    /// #         self.solve(factors, w, x)
    /// #     }
    /// # }
    /// use mbs_runtime::inputs::NoInputs;
    /// use mbs_runtime::{Ali3p, Assembly, State};
    ///
    /// // A unit mass on rails under 4 N, which starts at 0.5 m with 3 m/s.
    /// impl Start for Slide {
    ///     fn start(&self, z: &mut [f64], v: &mut [f64], _: &mut [f64]) -> Result<(), EvalError> {
    ///         (*array_mut("z", z)?, *array_mut("v", v)?) = ([0.5], [3.0]);
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let mut state = [0.0; State::<f64>::len(&DIMS)];
    /// let mut scratch = [0.0; Assembly::scratch_len(&DIMS)];
    /// Assembly::DEFAULT.begin(&Slide, &mut NoInputs, 0.0, &mut state, &mut scratch)?;
    /// let start = State::of(&DIMS, &mut state)?;
    /// assert_eq!((start.z[0], start.zd[0], start.zdd[0]), (0.5, 3.0, 4.0));
    ///
    /// let mut scratch = [0.0; Ali3p::scratch_len(&DIMS)];
    /// Ali3p::DEFAULT.step(&Slide, &mut NoInputs, &mut state, 0.1, &mut scratch)?;
    /// assert!((State::of(&DIMS, &mut state)?.z[0] - 0.82).abs() < 1e-15);
    /// # Ok::<(), mbs_runtime::StepError>(())
    /// ```
    pub fn begin<M: Constrained + Start, I: Inputs<M::S>>(
        &self,
        system: &M,
        inputs: &mut I,
        t: M::S,
        state: &mut [M::S],
        scratch: &mut [M::S],
    ) -> Result<StartStatistics, StepError> {
        Self::guess(system, t, state)?;
        self.start(system, inputs, state, scratch)
    }

    /// The same for a mechanism whose constraints and drives determine its motion: [`Assembly::guess`], then [`Assembly::driven`].
    pub fn begin_driven<M: Constrained + Start, I: Inputs<M::S>>(
        &self,
        system: &M,
        inputs: &mut I,
        t: M::S,
        state: &mut [M::S],
        scratch: &mut [M::S],
    ) -> Result<StartStatistics, StepError> {
        Self::guess(system, t, state)?;
        self.driven(system, inputs, state, scratch)
    }

    /// Length of the scratch that [`Assembly::begin_tree`] needs, at least; a constant for generated models.
    #[inline(always)]
    pub const fn tree_scratch_len(dims: &Dims) -> usize {
        dims.nu + dims.workspace
    }

    /// The start of an open tree at time `t` for explicit integrators: y = \[z, v, x\] of the model with Euler parameters of unit norm, and
    /// its rate yd = \[N(z) v, vd, xd\].
    pub fn begin_tree<M: ForwardDynamics + Start, I: Inputs<M::S>>(
        system: &M,
        inputs: &mut I,
        t: M::S,
        y: &mut [M::S],
        yd: &mut [M::S],
        scratch: &mut [M::S],
    ) -> Result<(), StepError> {
        let dims = system.dims();
        let mut pieces = Pieces::of(scratch, Self::tree_scratch_len(&dims));
        let (u, w) = (pieces.next(dims.nu)?, pieces.rest());
        if !u.is_empty() {
            inputs.at(t, u);
        }
        let [z, v, x] = parts("y", &dims, y)?;
        let [zd, vd, xd] = parts("yd", &dims, yd)?;
        let fail = |error: EvalError| error.in_step(t.real(), 0.0);
        system.start(z, v, x).map_err(fail)?;
        renormalise(system, z);
        system.forward_dynamics(At { t, z, v, x, u }, w, zd, vd, xd).map_err(fail)?;
        check_finite(&dims, y).and_then(|()| check_finite(&dims, yd)).map_err(fail)
    }
}

impl<S: Scalar> State<'_, S> {
    /// Writes y = \[z, v\] for explicit integrators, v = L(z) zd.
    pub fn joint_form<M: System<S = S>>(&self, system: &M, y: &mut [S]) -> Result<(), StepError> {
        let [z, v, _] = parts("y", &system.dims(), y)?;
        copy(z, self.z);
        velocities(system, self.z, self.zd, v).map_err(|error| error.in_step(self.t.real(), 0.0))
    }
}

/// z, v and x of a state y, or of its rate.
fn parts<'a, S>(what: &'static str, dims: &Dims, y: &'a mut [S]) -> Result<[&'a mut [S]; 3], StepError> {
    let mut pieces = Pieces::named(what, y, dims.state());
    let parts = [pieces.next(dims.nq)?, pieces.next(dims.nv)?, pieces.next(dims.nx)?];
    pieces.end()?;
    Ok(parts)
}
