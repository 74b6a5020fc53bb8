//! The rates of a state together with those of its derivatives and of the objectives' integrals.
//!
//! Input: forward dynamics whose model knows its derivatives. Output: rates of
//!
//! | part of y | rate | length |
//! |---|---|---|
//! | z, v | N(z) v, vd | nq, nv |
//! | z_ρ | N(z) v_ρ + N(z_ρ) v | nq × p |
//! | v_ρ | vd_ρ | nv × p |
//! | ∫ g dt | g | objectives |
//! | ∫ g_ρ dt | g_θ θ_ρ + g_v v_ρ + g_vd vd_ρ + g_λ λ_ρ + g_ρ | objectives × p |
//! | c, c_ρ | what a method carries, see `weighted` | n_excess, n_excess × p |
//!
//! with θ_ρ = L(z) z_ρ and, from the equations of [`JointSensitivities`],
//!
//! ```text
//! [ M    Φ_vᵀ ] [vd_ρ]     [ tau_θ θ_ρ + tau_v v_ρ + tau_ρ ]
//! [ Φ_v  −e   ] [λ_ρ ] = − [ c_θ θ_ρ + c_v v_ρ + c_ρ       ]
//! ```
//!
//! Instead of the parameters themselves there may be any directions ρ′ among them: every ·_ρ then is a derivative along those.
//!
//! An explicit method is linear in y and its rates, so that its step over all of this is its step over z and v, the derivative of
//! that step, and the objectives by its own weights. What ends a step is differentiated too.

use core::ops::Range;

use super::blocks::Product;
use super::columns::Directions;
use super::completion::Completion;
use super::correction::{Correction, Differentiating};
use super::derivatives::{JointObjectiveDerivatives, JointSensitivities};
use super::joint_dynamics::JointDynamics;
use super::joint_values::JointValues;
use super::objectives::{Gradient, add_chain, chain, check};
use super::redundancy::{self, objective_rows, refuse_redundant_multipliers};
use super::stage_tangent::{Linear, StageMatrix, StageTangent};
use crate::error::{EvalError, StepError};
use crate::euler_parameters::{normalised, rates, tangents};
use crate::inputs::{Held, Inputs, Stop};
use crate::integrator::{Implicit, Rates, StepWeights, Three, alphas, check_finite, renormalise};
use crate::linear::{add_scaled, all_finite, copy};
use crate::pieces::{Pieces, cut, cut_mut};
use crate::scalar::Scalar;
use crate::system::{At, Dims, Quantity};

/// Length of y.
#[inline(always)]
pub(crate) const fn len(dims: &Dims) -> usize {
    let derivatives = (dims.nq + dims.nv) * dims.sensitivity.parameters;
    dims.state() + derivatives + Gradient::<f64>::len(dims) + excess_len(dims)
}

/// Length of what a method carries, and of its derivatives.
#[inline(always)]
const fn excess_len(dims: &Dims) -> usize {
    dims.n_excess * (1 + dims.sensitivity.parameters)
}

/// Length of the scratch of an [`Augmented`] field; `dims` are those of the dynamics.
#[inline(always)]
pub(crate) const fn scratch_len(dims: &Dims, corrects: bool, completes: bool, implicit: bool) -> usize {
    let (n, p) = (dims.nv + dims.joint_rows(), dims.sensitivity.parameters);
    let lists = dims.sensitivity.joint
        + dims.sensitivity.joint_factors
        + dims.sensitivity.joint_integrands
        + dims.sensitivity.joint_terminals;
    let own = 3 * dims.nu + dims.nq + 2 * n + objective_rows(dims) * p + redundancy::len(dims);
    let correction = if corrects { Correction::<f64>::len(dims, dims.sensitivity.parameters) } else { 0 };
    let completion =
        if completes { Completion::<f64>::len(dims, p) + len(dims) + dims.nq * (1 + p) } else { 0 };
    let stage = StageMatrix::<f64>::len(dims, p) + StageTangent::<f64>::len(dims, 1);
    let stage = if implicit { stage } else { 0 };
    own + lists + correction + completion + stage + dims.workspace
}

/// The same for given dynamics.
pub(crate) fn scratch_len_of<D: JointDynamics>(system: &D, dims: &Dims) -> usize {
    scratch_len(dims, system.corrects_steps(), system.completes(), system.solves_stages())
}

/// The augmented field.
pub(crate) struct Augmented<'a, D: JointDynamics, I> {
    inputs: Held<'a, D::S, I>,
    tangent: Tangent<'a, D>,
    evaluations: usize,
    h: D::S,
    weights: Option<StepWeights<D::S>>,
    /// Derivatives of the size of the step by the parameters; empty where it has none.
    pub(crate) h_rho: &'a mut [D::S],
    /// Those of the time of the last node.
    pub(crate) t_rho: &'a mut [D::S],
    /// The column of derivatives by the clock, if laws name the time.
    pub(crate) clock: Option<usize>,
}

/// What it evaluates.
struct Tangent<'a, D: JointDynamics> {
    system: &'a D,
    /// With as many parameters as there are columns.
    dims: Dims,
    directions: Directions<'a, D::S>,
    /// Directions that change along the run, in place of these; or nothing.
    rho: &'a mut [D::S],
    zd: &'a mut [D::S],
    vd: &'a mut [D::S],
    lambda: &'a mut [D::S],
    values: &'a mut [D::S],
    factors: &'a mut [D::S],
    /// θ_ρ, v_ρ, vd_ρ, λ_ρ
    changes: &'a mut [D::S],
    column: &'a mut [D::S],
    /// For what the bundles of objectives write.
    objectives: &'a mut [D::S],
    correction: Correction<'a, D::S>,
    /// The derivative of an implicit stage where it is solved, and where it iterates.
    solved: StageMatrix<'a, D::S>,
    iterated: StageTangent<'a, D::S>,
    completion: Completion<'a, D::S>,
    /// The parts of y at a completed stage.
    stage: &'a mut [D::S],
    /// The second rate of coordinates, and its derivatives.
    second: &'a mut [D::S],
    second_rho: &'a mut [D::S],
    spare: &'a mut [D::S],
    w: &'a mut [D::S],
}

/// The parts of y.
struct Parts<'a, S> {
    z: &'a [S],
    v: &'a [S],
    z_rho: &'a [S],
    v_rho: &'a [S],
    /// What a method carries, and its derivatives.
    c: &'a [S],
    c_rho: &'a [S],
}

impl<'a, S> Parts<'a, S> {
    #[inline(always)]
    fn of(dims: &Dims, y: &'a [S]) -> Result<Self, EvalError> {
        let wrong = EvalError::Length { what: "y", expected: len(dims), found: y.len() };
        let p = dims.sensitivity.parameters;
        let (z, rest) = y.split_at_checked(dims.nq).ok_or(wrong)?;
        let (v, rest) = rest.split_at_checked(dims.nv).ok_or(wrong)?;
        let (z_rho, rest) = rest.split_at_checked(dims.nq * p).ok_or(wrong)?;
        let (v_rho, rest) = rest.split_at_checked(dims.nv * p).ok_or(wrong)?;
        let (_, excess) = rest.split_at_checked(Gradient::<S>::len(dims)).ok_or(wrong)?;
        let (c, c_rho) = excess.split_at_checked(dims.n_excess).ok_or(wrong)?;
        Ok(Self { z, v, z_rho, v_rho, c, c_rho })
    }
}

/// The parts of y, or of its rate, to be changed; last the objectives.
struct PartsMut<'a, S> {
    z: &'a mut [S],
    v: &'a mut [S],
    z_rho: &'a mut [S],
    v_rho: &'a mut [S],
    gradient: &'a mut [S],
    c: &'a mut [S],
    c_rho: &'a mut [S],
}

impl<'a, S> PartsMut<'a, S> {
    #[inline(always)]
    fn of(dims: &Dims, y: &'a mut [S]) -> Result<Self, EvalError> {
        let wrong = EvalError::Length { what: "y", expected: len(dims), found: y.len() };
        let p = dims.sensitivity.parameters;
        let (z, rest) = y.split_at_mut_checked(dims.nq).ok_or(wrong)?;
        let (v, rest) = rest.split_at_mut_checked(dims.nv).ok_or(wrong)?;
        let (z_rho, rest) = rest.split_at_mut_checked(dims.nq * p).ok_or(wrong)?;
        let (v_rho, rest) = rest.split_at_mut_checked(dims.nv * p).ok_or(wrong)?;
        let (gradient, excess) = rest.split_at_mut_checked(Gradient::<S>::len(dims)).ok_or(wrong)?;
        let (c, c_rho) = excess.split_at_mut_checked(dims.n_excess).ok_or(wrong)?;
        Ok(Self { z, v, z_rho, v_rho, gradient, c, c_rho })
    }
}

impl<'a, D: JointDynamics, I: Inputs<D::S>> Augmented<'a, D, I> {
    /// Takes its scratch from `pieces`. `dims`: those of the system, with as many parameters as there are directions.
    pub(crate) fn new(
        system: &'a D,
        dims: Dims,
        directions: Directions<'a, D::S>,
        inputs: &'a mut I,
        pieces: &mut Pieces<'a, D::S>,
    ) -> Result<Self, StepError> {
        let (rows, p) = (dims.joint_rows(), dims.sensitivity.parameters);
        let held = [pieces.next(dims.nu)?, pieces.next(dims.nu)?, pieces.next(dims.nu)?];
        let lists = dims.sensitivity;
        let tangent = Tangent {
            system,
            dims,
            directions,
            rho: &mut [],
            zd: pieces.next(dims.nq)?,
            vd: pieces.next(dims.nv)?,
            lambda: pieces.next(rows)?,
            values: pieces.next(lists.joint)?,
            factors: pieces.next(lists.joint_factors)?,
            changes: pieces.next(objective_rows(&dims) * p)?,
            column: pieces.next(dims.nv + rows)?,
            objectives: pieces.next(lists.joint_integrands + lists.joint_terminals)?,
            correction: match system.corrects_steps() {
                true => Correction::new(&dims, p, pieces)?,
                false => Correction::none(),
            },
            solved: match system.solves_stages() {
                true => StageMatrix::new(&dims, p, pieces)?,
                false => StageMatrix::none(),
            },
            iterated: match system.solves_stages() {
                true => StageTangent::new(&dims, 1, pieces)?,
                false => StageTangent::none(),
            },
            completion: match system.completes() {
                true => Completion::new(&dims, p, pieces)?,
                false => Completion::none(),
            },
            stage: pieces.next(if system.completes() { len(&dims) } else { 0 })?,
            second: pieces.next(if system.completes() { dims.nq } else { 0 })?,
            second_rho: pieces.next(if system.completes() { dims.nq * p } else { 0 })?,
            spare: pieces.next(redundancy::len(&dims))?,
            w: pieces.next(dims.workspace)?,
        };
        let inputs = Held::new(inputs, system.holds(), held);
        Ok(Self {
            inputs,
            tangent,
            evaluations: 0,
            h: D::S::ONE,
            weights: None,
            h_rho: &mut [],
            t_rho: &mut [],
            clock: None,
        })
    }
}

impl<'a, D: JointDynamics, I: Inputs<D::S>> Augmented<'a, D, I>
where
    D::Model: JointObjectiveDerivatives,
{
    /// An error if objectives read multipliers of constraints that depend on each other, at the start `t` of a run: there is no
    /// telling how those move.
    pub(crate) fn check_multipliers(&mut self, t: D::S, y: &[D::S]) -> Result<(), StepError> {
        let fail = |error: EvalError| error.in_step(t.real(), 0.0);
        let u = self.inputs.at_node(t);
        let parts = Parts::of(&self.tangent.dims, y).map_err(fail)?;
        let at = At { t, z: parts.z, v: parts.v, x: &[], u };
        let Tangent { system, spare, w, .. } = &mut self.tangent;
        refuse_redundant_multipliers(*system, at, spare, w)
    }

    /// Lets directions of the parameters change along the run: `rho` has a row for each.
    pub(crate) fn let_directions_change(&mut self, rho: &'a mut [D::S]) {
        self.tangent.rho = rho;
    }

    /// The clock of laws at the part c of the step.
    #[inline(always)]
    fn set_clock(&mut self, c: D::S) {
        if let Some(clock) = self.clock {
            write_clock(self.tangent.rho, clock, self.t_rho, c, self.h_rho);
        }
    }

    /// Inputs at a node, and directions that change along the run.
    pub(crate) fn at_node_along(&mut self, t: D::S) -> (&[D::S], &mut [D::S]) {
        (self.inputs.at_node(t), self.tangent.rho)
    }

    /// Inputs, accelerations, multipliers, the derivatives θ_ρ, v_ρ, vd_ρ, λ_ρ, and directions that change, at the end `t` of a step.
    pub(crate) fn changes_at(&mut self, t: D::S, y: &[D::S]) -> Result<[&[D::S]; 5], EvalError> {
        self.set_clock(D::S::ONE);
        let u = self.inputs.during_step(t, D::S::ONE);
        let tangent = &mut self.tangent;
        let parts = Parts::of(&tangent.dims, y)?;
        let at = At { t, z: parts.z, v: parts.v, x: &[], u };
        tangent.system.accelerate(at, tangent.w, tangent.zd, tangent.vd, tangent.lambda)?;
        tangent.differentiate(at, &parts)?;
        Ok([u, tangent.vd, tangent.lambda, tangent.changes, tangent.rho])
    }

    /// The rate at an instant, completed where that is needed.
    fn rate_at(&mut self, t: D::S, c: f64, y: &[D::S], yd: &mut [D::S]) -> Result<(), EvalError> {
        self.set_clock(D::S::from_f64(c));
        let u = self.inputs.during_step(t, D::S::from_f64(c));
        let tangent = &mut self.tangent;
        let dims = tangent.dims;
        let parts = Parts::of(&dims, y)?;
        let at = At { t, z: parts.z, v: parts.v, x: &[], u };
        self.evaluations += 1;
        let mut out = PartsMut::of(&dims, yd)?;
        let columns = dims.sensitivity.parameters;
        let usual = matches!(along(tangent.directions, tangent.rho), Directions::Each);
        if usual && tangent.system.model().fuses_rates() {
            tangent.rate_at_once(at, &parts, &mut out)?;
        } else {
            tangent.system.accelerate(at, tangent.w, out.z, out.v, tangent.lambda)?;
            copy(tangent.vd, out.v);
            check_finite(&dims, out.z)?;
            check_velocities(out.v)?;
            tangent.differentiate(at, &parts)?;
            copy(out.v_rho, cut("changes", tangent.changes, 2 * dims.nv * columns)?.1);
            tangent.integrands(at, out.gradient)?;
        }
        rates(tangent.system, parts.z, parts.v, columns, parts.z_rho, parts.v_rho, out.z_rho)?;
        if let Some(weights) = self.weights.as_ref().filter(|_| c != 0.0) {
            weights.last(Three { z: &mut *out.z, v: &mut *out.v, c: &mut *out.c });
            weights.last(Three { z: &mut *out.z_rho, v: &mut *out.v_rho, c: &mut *out.c_rho });
        } else if let Some(weights) = &self.weights {
            copy(tangent.vd, out.v);
            let rate = Three { z: &mut *out.z, v: &mut *out.v, c: &mut *out.c };
            weights.first(tangent.system, [parts.z, parts.v, parts.c], rate, tangent.second)?;
            let rate = Three { z: &mut *out.z_rho, v: &mut *out.v_rho, c: &mut *out.c_rho };
            weights.first_change(
                tangent.system,
                columns,
                [parts.z, parts.v, parts.c, tangent.vd, tangent.second],
                [parts.z_rho, parts.v_rho, parts.c_rho],
                rate,
                self.h_rho,
                tangent.second_rho,
            )?;
        }
        if !self.h_rho.is_empty() {
            // With y_i = y + h Σ a_ij k_j: y_i' = y' + Σ a_ij (h k_j' + h' k_j), as if k_j' had the part (h'/h) k_j.
            let (objectives, gradient) = cut_mut("gradient", out.gradient, dims.n_objectives)?;
            let parts = [(&*out.z, out.z_rho), (&*out.v, out.v_rho), (&*objectives, gradient)];
            for (rates, changes) in parts {
                for (&rate, changes) in rates.iter().zip(changes.chunks_exact_mut(columns.max(1))) {
                    add_scaled(changes, rate / self.h, self.h_rho);
                }
            }
        }
        Ok(())
    }

    /// Derivatives of a stage that was solved, from those of its base; its state is `z`, `v`.
    fn solve_closed(
        &mut self,
        t: D::S,
        c: f64,
        alpha: D::S,
        [z, v]: [&[D::S]; 2],
        z_rho: &mut [D::S],
        v_rho: &mut [D::S],
    ) -> Result<(), EvalError> {
        self.set_clock(D::S::from_f64(c));
        let u = self.inputs.during_step(t, D::S::from_f64(c));
        let at = At { t, z, v, x: &[], u };
        let tangent = &mut self.tangent;
        let (dims, columns) = (tangent.dims, tangent.dims.sensitivity.parameters);
        let alpha = alphas(&self.weights, alpha);
        tangent.linearise_stage(at, alpha)?;
        add_resized(columns, tangent.zd, alpha[0] / self.h, self.h_rho, z_rho);
        add_resized(columns, tangent.vd, alpha[1] / self.h, self.h_rho, v_rho);
        let Tangent { system, solved, values, factors, column, w, directions, rho, .. } = &mut *tangent;
        let linear = Linear { values, factors, column, w };
        let along = Some(along(*directions, rho));
        solved.solve(*system, &dims, at, alpha, linear, columns, along, z_rho, v_rho)
    }

    /// Into `gradient`: the integrands of the objectives at a stage that was solved, and their derivatives.
    fn judge_closed(
        &mut self,
        t: D::S,
        c: f64,
        stage: &Parts<'_, D::S>,
        gradient: &mut [D::S],
    ) -> Result<(), EvalError> {
        let u = self.inputs.during_step(t, D::S::from_f64(c));
        let tangent = &mut self.tangent;
        let (objectives, columns) = (tangent.dims.n_objectives, tangent.dims.sensitivity.parameters);
        tangent.changes(stage)?;
        tangent.integrands(At { t, z: stage.z, v: stage.v, x: &[], u }, gradient)?;
        let (objectives, changes) = cut_mut("gradient", gradient, objectives)?;
        add_resized(columns, objectives, D::S::ONE / self.h, self.h_rho, changes);
        Ok(())
    }

    /// Both, of dynamics that complete the state; `stage` is a copy of `y`.
    fn close_completed(
        &mut self,
        t: D::S,
        c: f64,
        alpha: D::S,
        y: &mut [D::S],
        stage: &mut [D::S],
        gradient: &mut [D::S],
    ) -> Result<(), EvalError> {
        let dims = self.tangent.dims;
        let PartsMut { z, v, z_rho, v_rho, .. } = PartsMut::of(&dims, stage)?;
        let u = self.inputs.during_step(t, D::S::from_f64(c));
        self.tangent.system.complete(t, u, self.tangent.w, z, v)?;
        let raw = PartsMut::of(&dims, y)?;
        self.solve_closed(t, c, alpha, [z, v], raw.z_rho, raw.v_rho)?;
        copy(z_rho, raw.z_rho);
        copy(v_rho, raw.v_rho);
        let u = self.inputs.during_step(t, D::S::from_f64(c));
        let Tangent { system, directions, rho, completion, w, .. } = &mut self.tangent;
        let (at, directions) = (At { t, z, v, x: &[], u }, along(*directions, rho));
        completion.differentiate(*system, &dims, at, z_rho, v_rho, directions, w)?;
        self.judge_closed(t, c, &Parts { z, v, z_rho, v_rho, c: &[], c_rho: &[] }, gradient)
    }

    /// Adds the terminal terms of the objectives, and their derivatives, to the integrals in `y`: at the end `t` of a run.
    pub(crate) fn add_terminals(&mut self, t: D::S, y: &mut [D::S]) -> Result<(), EvalError> {
        let dims = self.tangent.dims;
        if dims.n_objectives == 0 {
            return Ok(());
        }
        self.set_clock(D::S::ONE);
        let u = self.inputs.at_node(t);
        let tangent = &mut self.tangent;
        let parts = Parts::of(&dims, y)?;
        let at = At { t, z: parts.z, v: parts.v, x: &[], u };
        tangent.system.accelerate(at, tangent.w, tangent.zd, tangent.vd, tangent.lambda)?;
        tangent.differentiate(at, &parts)?;
        let model = tangent.system.model();
        let [_, places] = model.joint_objective_places();
        let values = cut_mut("terminals", tangent.objectives, dims.sensitivity.joint_terminals)?.0;
        model.joint_terminal_derivatives(at, tangent.vd, tangent.lambda, tangent.w, values)?;
        let gradient = PartsMut::of(&dims, y)?.gradient;
        add_chain(
            &dims,
            objective_rows(&dims),
            places,
            values,
            tangent.changes,
            along(tangent.directions, tangent.rho),
            gradient,
        )?;
        check(&dims, gradient)
    }
}

impl<D: JointDynamics> Tangent<'_, D> {
    /// Derivatives of accelerations at an instant whose vd and λ are known.
    fn linearise(&mut self, at: At<'_, D::S>) -> Result<(), EvalError> {
        let Self { system, vd, lambda, w, values, factors, .. } = self;
        system.model().joint_linearise(at, vd, lambda, system.stabilisation(), w, values, factors)
    }

    /// θ_ρ, v_ρ, vd_ρ, λ_ρ at an instant whose vd and λ are known.
    fn differentiate(&mut self, at: At<'_, D::S>, y: &Parts<'_, D::S>) -> Result<(), EvalError> {
        self.linearise(at)?;
        self.changes(y)
    }

    /// The same where the model is linearised.
    fn changes(&mut self, y: &Parts<'_, D::S>) -> Result<(), EvalError> {
        let (dims, columns) = (self.dims, self.dims.sensitivity.parameters);
        let model = self.system.model();
        let places = model.joint_places();
        let values = JointValues::of(&places, self.values)?;
        let (theta, rest) = cut_mut("changes", self.changes, dims.nv * columns)?;
        let (v_rho, solution) = cut_mut("changes", rest, dims.nv * columns)?;
        tangents(self.system, y.z, columns, y.z_rho, theta)?;
        copy(v_rho, y.v_rho);
        solution.fill(D::S::ZERO);
        let (x, directions) = ([&*theta, v_rho, &[], &[]], along(self.directions, self.rho));
        values.read(&dims, &places, &mut Product { columns, x, directions, y: solution })?;
        model.joint_solve_many(self.factors, columns, self.w, self.column, solution)?;
        check_columns(columns, solution)
    }

    /// Rates of z, v, v_ρ and the objectives by one bundle.
    fn rate_at_once(
        &mut self,
        at: At<'_, D::S>,
        y: &Parts<'_, D::S>,
        out: &mut PartsMut<'_, D::S>,
    ) -> Result<(), EvalError>
    where
        D::Model: JointObjectiveDerivatives,
    {
        let (dims, columns) = (self.dims, self.dims.sensitivity.parameters);
        // Without Euler parameters θ_ρ is z_ρ.
        let theta = if self.system.euler_parameters().is_empty() {
            y.z_rho
        } else {
            let (theta, _) = cut_mut("changes", self.changes, dims.nv * columns)?;
            tangents(self.system, y.z, columns, y.z_rho, theta)?;
            theta
        };
        let (model, stabilisation) = (self.system.model(), self.system.stabilisation());
        let (g, g_rho) = cut_mut("gradient", &mut *out.gradient, dims.n_objectives)?;
        let (w, lambda) = (&mut *self.w, &mut *self.lambda);
        model.differentiate_rate(
            at,
            stabilisation,
            theta,
            y.v_rho,
            w,
            out.z,
            out.v,
            lambda,
            out.v_rho,
            g,
            g_rho,
        )?;
        check_finite(&dims, out.z)?;
        check_velocities(out.v)?;
        check_columns(columns, out.v_rho)?;
        check(&dims, out.gradient)
    }

    /// The integrands of the objectives and their derivatives, from the changes.
    fn integrands(&mut self, at: At<'_, D::S>, gradient: &mut [D::S]) -> Result<(), EvalError>
    where
        D::Model: JointObjectiveDerivatives,
    {
        let dims = self.dims;
        if dims.n_objectives == 0 {
            return Ok(());
        }
        let model = self.system.model();
        let [places, _] = model.joint_objective_places();
        let values = cut_mut("integrands", self.objectives, dims.sensitivity.joint_integrands)?.0;
        model.joint_integrand_derivatives(at, self.vd, self.lambda, self.w, values)?;
        let directions = along(self.directions, self.rho);
        chain(&dims, objective_rows(&dims), places, values, self.changes, directions, gradient)?;
        check(&dims, gradient)
    }

    /// The model linearised at an instant, with its accelerations, and the derivative of a stage there.
    fn linearise_stage(&mut self, at: At<'_, D::S>, alpha: [D::S; 2]) -> Result<(), EvalError> {
        self.system.accelerate(at, self.w, self.zd, self.vd, self.lambda)?;
        self.linearise(at)?;
        let Self { system, dims, solved, values, factors, column, w, .. } = self;
        solved.factor(*system, dims, at, alpha, Linear { values, factors, column, w })
    }

    /// Completes a state with its derivatives.
    fn complete(&mut self, t: D::S, u: &[D::S], y: PartsMut<'_, D::S>) -> Result<(), EvalError> {
        let Self { system, dims, directions, rho, completion, w, .. } = self;
        let directions = along(*directions, rho);
        let PartsMut { z, v, z_rho, v_rho, .. } = y;
        system.complete(t, u, w, z, v)?;
        let at = At { t, z, v, x: &[], u };
        completion.differentiate(*system, dims, at, z_rho, v_rho, directions, w)
    }

    /// Brings the derivatives along when the state is brought onto the constraints.
    fn correct(&mut self, t: D::S, u: &[D::S], y: PartsMut<'_, D::S>) -> Result<(), EvalError> {
        let Self { system, dims, directions, rho, correction, w, .. } = self;
        let directions = along(*directions, rho);
        let PartsMut { z, v, z_rho, v_rho, .. } = y;
        let at = At { t, z: &[], v: &[], x: &[], u };
        let (system, known) = (*system, false);
        system.correct(
            at,
            w,
            z,
            v,
            Differentiating { system, dims, correction, directions, z_rho, v_rho, known },
        )
    }
}

impl<D: JointDynamics, I: Inputs<D::S>> Rates for Augmented<'_, D, I>
where
    D::Model: JointObjectiveDerivatives,
{
    type S = D::S;

    #[inline(always)]
    fn begin_step(&mut self, t0: D::S, t1: D::S) {
        self.inputs.begin_step(t0, t1);
        self.h = t1 - t0;
        self.weights = None;
    }

    #[inline(always)]
    fn newmark(&self) -> Implicit {
        self.tangent.system.newmark()
    }

    #[inline(always)]
    fn weigh_step(&mut self, h: D::S) {
        self.weights = self.tangent.system.newmark().weights(h);
    }

    fn prepare_step(&mut self, t: D::S, y: &[D::S]) -> Result<(), EvalError> {
        if !self.tangent.system.completes() {
            return Ok(());
        }
        let u = self.inputs.at_node(t);
        let Parts { z, v, .. } = Parts::of(&self.tangent.dims, y)?;
        self.tangent.system.prepare_step(At { t, z, v, x: &[], u }, self.tangent.w)
    }

    fn rate(&mut self, t: D::S, c: f64, y: &[D::S], yd: &mut [D::S]) -> Result<(), EvalError> {
        if !self.tangent.system.completes() {
            return self.rate_at(t, c, y, yd);
        }
        self.set_clock(D::S::from_f64(c));
        let stage = core::mem::take(&mut self.tangent.stage);
        copy(stage, y);
        let u = self.inputs.during_step(t, D::S::from_f64(c));
        let parts = PartsMut::of(&self.tangent.dims, stage);
        let completed = parts.and_then(|parts| self.tangent.complete(t, u, parts));
        let found = completed.and_then(|()| self.rate_at(t, c, stage, yd));
        self.tangent.stage = stage;
        found
    }

    fn state_rate(&mut self, t: D::S, c: f64, y: &[D::S], yd: &mut [D::S]) -> Result<(), EvalError> {
        let u = self.inputs.during_step(t, D::S::from_f64(c));
        let Tangent { system, dims, stage, lambda, w, .. } = &mut self.tangent;
        if system.completes() {
            copy(stage, y);
            let PartsMut { z, v, .. } = PartsMut::of(dims, stage)?;
            system.complete(t, u, w, z, v)?;
        }
        let parts = Parts::of(dims, if system.completes() { stage } else { y })?;
        let at = At { t, z: parts.z, v: parts.v, x: &[], u };
        self.evaluations += 1;
        let out = PartsMut::of(dims, yd)?;
        system.accelerate(at, w, out.z, out.v, lambda)?;
        check_finite(dims, out.z)?;
        check_velocities(out.v)?;
        if let Some(weights) = &self.weights {
            weights.last(Three { z: out.z, v: out.v, c: out.c });
        }
        Ok(())
    }

    fn linearise(&mut self, t: D::S, c: f64, y: &[D::S], alpha: D::S) -> Result<(), EvalError> {
        let u = self.inputs.during_step(t, D::S::from_f64(c));
        let Tangent { system, dims, iterated, stage, w, .. } = &mut self.tangent;
        let parts = Parts::of(dims, if system.completes() { stage } else { y })?;
        let (at, alpha) = (At { t, z: parts.z, v: parts.v, x: &[], u }, alphas(&self.weights, alpha));
        iterated.linearise(*system, dims, at, alpha, w)
    }

    fn solve(&mut self, t: D::S, c: f64, y: &[D::S], alpha: D::S, r: &mut [D::S]) -> Result<(), EvalError> {
        let u = self.inputs.during_step(t, D::S::from_f64(c));
        let Tangent { system, dims, iterated, stage, w, .. } = &mut self.tangent;
        let parts = Parts::of(dims, if system.completes() { stage } else { y })?;
        let at = At { t, z: parts.z, v: parts.v, x: &[], u };
        let PartsMut { z, v, .. } = PartsMut::of(dims, r)?;
        iterated.solve(*system, dims, at, alphas(&self.weights, alpha), w, z, v)
    }

    /// The derivatives of Y are those of its converged iteration: (1 − α f_y) Y′ = base′ + α f_ρ, with f_y at Y; where the size of the step has
    /// derivatives, (h′/h) k is a part of f_ρ. Where states are completed, f is that of the completed one, and so are the integrands.
    fn close_stage(
        &mut self,
        t: D::S,
        c: f64,
        alpha: D::S,
        base: &[D::S],
        y: &mut [D::S],
        k: &mut [D::S],
    ) -> Result<(), EvalError> {
        let (dims, completes) = (self.tangent.dims, self.tangent.system.completes());
        let gradient = PartsMut::of(&dims, k)?.gradient;
        if completes {
            let stage = core::mem::take(&mut self.tangent.stage);
            copy(stage, y);
            let closed = self.close_completed(t, c, alpha, y, stage, gradient);
            self.tangent.stage = stage;
            closed?;
        } else {
            let PartsMut { z, v, z_rho, v_rho, .. } = PartsMut::of(&dims, y)?;
            self.solve_closed(t, c, alpha, [z, v], z_rho, v_rho)?;
            self.judge_closed(t, c, &Parts { z, v, z_rho, v_rho, c: &[], c_rho: &[] }, gradient)?;
        }
        let (moving, _) =
            cut_mut("k", &mut *k, len(&dims) - Gradient::<D::S>::len(&dims) - excess_len(&dims))?;
        for ((k, &y), &base) in moving.iter_mut().zip(&*y).zip(base) {
            *k = (y - base) / alpha;
        }
        if let Some(weights) = &self.weights {
            let PartsMut { v, v_rho, c, c_rho, .. } = PartsMut::of(&dims, k)?;
            let columns = dims.sensitivity.parameters;
            weights.close(1, v, None, c);
            let resized = (!self.h_rho.is_empty()).then_some((&*v, &*self.h_rho));
            weights.close(columns, v_rho, resized, c_rho);
        }
        Ok(())
    }

    #[inline(always)]
    fn size(&self, y: &[D::S]) -> f64 {
        let Tangent { system, dims, .. } = &self.tangent;
        system.units().largest(y.get(..dims.nq).unwrap_or_default())
    }

    fn finish(&mut self, t: D::S, y: &mut [D::S]) -> Result<(), EvalError> {
        self.normalise(y)?;
        self.set_clock(D::S::ONE);
        if self.tangent.system.corrects_steps() {
            let u = self.inputs.during_step(t, D::S::ONE);
            let parts = PartsMut::of(&self.tangent.dims, y)?;
            self.tangent.correct(t, u, parts)?;
        }
        if self.tangent.system.completes() {
            let u = self.inputs.during_step(t, D::S::ONE);
            let parts = PartsMut::of(&self.tangent.dims, y)?;
            self.tangent.complete(t, u, parts)?;
        }
        check_finite(&self.tangent.dims, y)
    }

    fn normalise(&self, y: &mut [D::S]) -> Result<(), EvalError> {
        let Tangent { system, dims, .. } = &self.tangent;
        let parts = PartsMut::of(dims, y)?;
        normalised(*system, parts.z, dims.sensitivity.parameters, parts.z_rho)?;
        renormalise(*system, parts.z);
        Ok(())
    }

    #[inline(always)]
    fn dims(&self) -> Dims {
        self.tangent.dims
    }

    #[inline(always)]
    fn integrals(&self) -> Range<usize> {
        let dims = &self.tangent.dims;
        let start = len(dims) - Gradient::<D::S>::len(dims) - excess_len(dims);
        start..start + dims.n_objectives
    }

    #[inline(always)]
    fn next_stop(&mut self, from: f64, to: f64) -> Option<Stop> {
        self.inputs.next_stop(from, to)
    }

    #[inline(always)]
    fn evaluations(&self) -> usize {
        self.evaluations
    }

    #[inline(always)]
    fn jumps_between_steps(&self) -> bool {
        self.inputs.jumps_between_steps()
    }

    #[inline(always)]
    fn at_node(&mut self, t: D::S) -> &[D::S] {
        self.inputs.at_node(t)
    }

    #[inline(always)]
    fn during_step(&mut self, t: D::S, c: D::S) -> &[D::S] {
        self.inputs.during_step(t, c)
    }
}

/// The directions that change, if there are.
#[inline(always)]
fn along<'s, S>(directions: Directions<'s, S>, rho: &'s [S]) -> Directions<'s, S> {
    if rho.is_empty() { directions } else { Directions::Along(rho) }
}

/// The row of the clock: it is itself, and moves with the time, which is t_n' + c h' at the part c of a step.
#[inline(always)]
pub(crate) fn write_clock<S: Scalar>(rho: &mut [S], clock: usize, t_rho: &[S], c: S, h_rho: &[S]) {
    let Some(row) = super::columns::row_mut(rho, clock, t_rho.len()) else { return };
    for (j, (to, (&t, &h))) in row.iter_mut().zip(t_rho.iter().zip(h_rho)).enumerate() {
        let own = if j == clock { S::ONE } else { S::ZERO };
        *to = own + t + c * h;
    }
}

/// changes = changes + a rates h_ρ, a row for each rate; nothing where h has no derivatives.
#[inline(always)]
fn add_resized<S: Scalar>(columns: usize, rates: &[S], a: S, h_rho: &[S], changes: &mut [S]) {
    if h_rho.is_empty() {
        return;
    }
    for (&rate, changes) in rates.iter().zip(changes.chunks_exact_mut(columns.max(1))) {
        add_scaled(changes, a * rate, h_rho);
    }
}

#[inline(always)]
fn check_columns<S: Scalar>(columns: usize, solution: &[S]) -> Result<(), EvalError> {
    if all_finite(solution) {
        return Ok(());
    }
    let bad = solution.iter().position(|x| !x.is_finite()).unwrap_or(0);
    Err(EvalError::NotFinite { quantity: Quantity::Sensitivity, index: bad % columns.max(1) })
}

#[inline(always)]
fn check_velocities<S: Scalar>(vd: &[S]) -> Result<(), EvalError> {
    if all_finite(vd) {
        return Ok(());
    }
    let index = vd.iter().position(|vd| !vd.is_finite()).unwrap_or(0);
    Err(EvalError::NotFinite { quantity: Quantity::Velocity, index })
}
