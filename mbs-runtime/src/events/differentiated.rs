//! Explicit runs with events together with their derivatives by the parameters.
//!
//! A step that ends in an event has a size that depends on the parameters: with x_e = step(x_n, h) and g(x_e) = 0,
//!
//! ```text
//! h' = −(g_x X + g_t t_n' + g_ρ)/(g_x step_h + g_t),   x_e' = X + step_h h',   t_e' = t_n' + h'
//! ```
//!
//! where X is the derivative of the step with its size held. The step after the event ends at a node that does not move: its size has
//! the derivative −t_e'. Both are steps over the augmented field with h' in its rates ([`Augmented::h_rho`]), so that nothing is
//! approximated: it is the derivative of the discrete run, integrals included. Velocities after the event follow from the derivative of the
//! equations that they solve ([`Jump::differentiate`]).
//!
//! | pass | the step is made with | leaves |
//! |---|---|---|
//! | 0 | h' = 0 | g' at the event |
//! | 1 | h' = 1 | g' + g_h |
//! | 2 | h' = −g'/g_h | the derivatives |
//!
//! The equations of motion must not name the time: its derivative is in no bundle.

use core::cell::{Cell, RefCell};
use core::ops::ControlFlow;

use super::explicit::{ExplicitDriver, look, memory_len, state_at};
use super::latches::Latched;
use super::locate::{Driver, Functions, Located};
use super::{EventDerivatives, Events, Occurrence, Sight, WithEvents};
use crate::error::{EvalError, EventFailure, StepError};
use crate::inputs::Inputs;
use crate::euler_parameters::coordinate_rates;
use crate::integrator::{
    Adaptive, AdaptiveRun, ExplicitRun, Fixed, FixedRun, FixedStep, Limits, Nodes, Observe, ObserveDense, Rates,
    Span, Stages, Statistics, drive,
};
use crate::linear::add_scaled;
use crate::pieces::{Pieces, cut};
use crate::scalar::Scalar;
use crate::sensitivity::augmented::{Augmented, len as augmented_len};
use crate::sensitivity::explicit_run::{Augment, Terminals, seen};
use crate::sensitivity::{
    DifferentiableIntegrator, Differentiated, DifferentiatedAt, JointDynamics, JointObjectiveDerivatives,
};
use crate::system::At;

/// An explicit integrator whose differentiated runs have events.
pub trait DifferentiableEventIntegrator: DifferentiableIntegrator {
    /// Length of the scratch that a run with events needs, at least.
    fn event_scratch_len<D>(&self, system: &D) -> usize
    where
        D: JointDynamics + WithEvents,
        <D as WithEvents>::Model: EventDerivatives,
    {
        let dims = system.dims();
        let (model, p) = (system.events(), dims.sensitivity.parameters);
        let lists = model.event_places().len() + model.jump_places().len();
        self.scratch_len(system) + memory_len(system, augmented_len(&dims) + 2) + 4 * p + lists
    }

    /// [`DifferentiableIntegrator::run`] for a model with events: to the end of the span, or to an event that stops the run.
    #[allow(clippy::too_many_arguments, reason = "what a run reads and writes")]
    fn run_with_events<D, I, O>(
        &self,
        system: &D,
        inputs: &mut I,
        y: &mut [D::S],
        derivatives: &mut [D::S],
        span: &Span<D::S>,
        gradient: &mut [D::S],
        scratch: &mut [D::S],
        observe: O,
    ) -> Result<Statistics, StepError>
    where
        D: JointDynamics + WithEvents,
        <D as JointDynamics>::Model: JointObjectiveDerivatives,
        <D as WithEvents>::Model: EventDerivatives,
        I: Inputs<D::S>,
        O: FnMut(Sight<'_, DifferentiatedAt<'_, D::S>, D::S>) -> ControlFlow<()>;
}

/// How a differentiated run answers questions of events.
struct DifferentiatedDriver<'a, D: WithEvents> {
    plain: ExplicitDriver<'a, D>,
    columns: usize,
    /// Of the time of the last node.
    t_rho: &'a mut [D::S],
    /// Of the function of the event, with the size of the step held.
    g_rho: &'a mut [D::S],
    again: &'a mut [D::S],
    partials: &'a mut [D::S],
    jumps: &'a mut [D::S],
    /// The step is made again so that its end does not move.
    closing: bool,
}

impl<'a, D: WithEvents> DifferentiatedDriver<'a, D>
where
    D::Model: EventDerivatives,
{
    fn new(
        system: &'a D,
        latches: &'a [Cell<D::S>],
        pieces: &mut Pieces<'a, D::S>,
    ) -> Result<Self, StepError> {
        let (model, columns) = (system.events(), system.dims().sensitivity.parameters);
        let t_rho = pieces.next(columns)?;
        t_rho.fill(D::S::ZERO);
        Ok(Self {
            plain: ExplicitDriver::new(system, latches, pieces)?,
            columns,
            t_rho,
            g_rho: pieces.next(columns)?,
            again: pieces.next(columns)?,
            partials: pieces.next(model.event_places().len())?,
            jumps: pieces.next(model.jump_places().len())?,
            closing: false,
        })
    }
}

impl<'a, 'b, W, D, I> Driver<W> for DifferentiatedDriver<'a, D>
where
    W: ExplicitRun<S = D::S, Field = Augmented<'b, D, I>>,
    D: JointDynamics + WithEvents + 'b,
    <D as JointDynamics>::Model: JointObjectiveDerivatives,
    <D as WithEvents>::Model: EventDerivatives,
    I: Inputs<D::S> + 'b,
{
    fn evaluate(
        &mut self,
        run: &mut W,
        t: D::S,
        ended: bool,
        to: &mut Functions<'_, D::S>,
    ) -> Result<(), StepError> {
        self.plain.evaluate(run, t, ended, to)
    }

    fn act(&mut self, run: &mut W, t: D::S, event: usize) -> Result<(), StepError> {
        let dims = self.plain.dims;
        let (field, y) = run.parts();
        let u = field.at_node(t);
        let wrong = StepError::Length { what: "y", expected: dims.state(), found: y.len() };
        let (state, rest) = y.split_at_mut_checked(dims.state()).ok_or(wrong)?;
        self.plain.solve(event, state_at(&dims, t, state, u)?)?;
        let at = state_at(&dims, t, state, u)?;
        let (z_rho, rest) = rest.split_at_mut_checked(dims.nq * self.columns).ok_or(wrong)?;
        let v_rho = rest.get_mut(..dims.nv * self.columns).ok_or(wrong)?;
        let ExplicitDriver { system, jump, w, .. } = &mut self.plain;
        let changed = jump.differentiate(
            system.events(),
            at,
            self.columns,
            z_rho,
            v_rho,
            self.t_rho,
            self.jumps,
            w,
        );
        changed.map_err(|error| error.in_step(t.real(), 0.0))?;
        let velocities = state.get_mut(dims.nq..dims.nq + dims.nv);
        self.plain.jump.apply(velocities.unwrap_or(&mut []));
        Ok(())
    }

    fn restart(&mut self, _: &mut W, _: D::S) -> Result<(), StepError> {
        Ok(())
    }

    fn acted(&self) -> (&[D::S], &[D::S]) {
        (self.plain.impulses(), self.t_rho)
    }

    fn inputs_jump(&self) -> bool {
        self.plain.dims.nu > 0
    }

    /// The end of a step that follows an event does not move with it.
    fn ended(&mut self, run: &mut W, planned: bool) -> Result<bool, StepError> {
        let (field, _) = run.parts();
        if self.closing {
            self.closing = false;
            self.t_rho.fill(D::S::ZERO);
            field.h_rho.fill(D::S::ZERO);
            return Ok(false);
        }
        if !planned || self.t_rho.iter().all(|t| *t == D::S::ZERO) {
            return Ok(false);
        }
        for (h, &t) in field.h_rho.iter_mut().zip(self.t_rho.iter()) {
            *h = -t;
        }
        self.closing = true;
        Ok(true)
    }

    fn located(&mut self, run: &mut W, t: D::S, event: usize, pass: usize) -> Result<bool, StepError> {
        if self.columns == 0 {
            return Ok(false);
        }
        let fail = |error: EvalError| error.in_step(t.real(), 0.0);
        match pass {
            0 => {
                self.slopes(run, t, event, false).map_err(fail)?;
                run.parts().0.h_rho.fill(D::S::ONE);
                Ok(true)
            }
            1 => {
                let scale = self.slopes(run, t, event, true).map_err(fail)?;
                // g_h is the same in every column; that with the smallest g' has most of its digits.
                let pairs = self.g_rho.iter().zip(self.again.iter());
                let smallest = pairs.min_by(|a, b| a.0.real().abs().total_cmp(&b.0.real().abs()));
                let slope = smallest.map_or(D::S::ZERO, |(&g, &again)| again - g);
                if !(slope.real().abs() > TANGENTIAL * scale) {
                    let (t, failure) = (t.real(), EventFailure::Tangential);
                    return Err(StepError::Event { t, event, failure });
                }
                for (h, &g) in run.parts().0.h_rho.iter_mut().zip(self.g_rho.iter()) {
                    *h = -g / slope;
                }
                Ok(true)
            }
            _ => {
                let (field, _) = run.parts();
                for (t, h) in self.t_rho.iter_mut().zip(field.h_rho.iter_mut()) {
                    *t += *h;
                    *h = D::S::ZERO;
                }
                Ok(false)
            }
        }
    }
}

/// The rate of a function, relative to the sum of its parts' sizes, below which an event is met tangentially.
const TANGENTIAL: f64 = 1e-9;

impl<D: WithEvents> DifferentiatedDriver<'_, D> {
    /// g' of an event at the end of a step, into `g_rho` or `again`. Gives the sum of the sizes of the parts of its rate.
    fn slopes<'b, W, I>(
        &mut self,
        run: &mut W,
        t: D::S,
        event: usize,
        again: bool,
    ) -> Result<f64, EvalError>
    where
        W: ExplicitRun<S = D::S, Field = Augmented<'b, D, I>>,
        D: JointDynamics + 'b,
        <D as JointDynamics>::Model: JointObjectiveDerivatives,
        <D as WithEvents>::Model: EventDerivatives,
        I: Inputs<D::S> + 'b,
    {
        let (dims, p) = (self.plain.dims, self.columns);
        let (nq, nv, rows) = (dims.nq, dims.nv, dims.joint_rows());
        let (field, y) = run.parts();
        let h_rho = field.h_rho.first().copied().unwrap_or(D::S::ZERO);
        let y: &[D::S] = y;
        let [u, vd, lambda, changes] = field.changes_at(t, y)?;
        let ExplicitDriver { system, w, zd, .. } = &mut self.plain;
        let model = system.events();
        let (state, z_rho) = cut("y", y, dims.state())?;
        let at = At::of_state(&dims, t, state, u)?;
        model.event_function_derivatives(at, vd, lambda, w, self.partials)?;
        coordinate_rates(*system, at.z, at.v, zd)?;
        // The functions are differentiated by z, not along θ.
        let (_, of_motion) = cut("changes", changes, nv * p)?;
        let to = if again { &mut *self.again } else { &mut *self.g_rho };
        to.fill(D::S::ZERO);
        let mut scale = 0.0;
        for (&(k, j), &slope) in model.event_places().iter().zip(self.partials.iter()) {
            if k as usize != event {
                continue;
            }
            let j = j as usize;
            let size = |rates: &[D::S], i: usize| rates.get(i).map_or(0.0, |rate| (slope * *rate).real().abs());
            if j < nq {
                scale += size(zd, j);
                add_row(to, slope, z_rho, j);
            } else if j < nq + 2 * nv + rows {
                if j < nq + nv {
                    scale += size(vd, j - nq);
                }
                add_row(to, slope, of_motion, j - nq);
            } else if j == nq + 2 * nv + rows {
                scale += slope.real().abs();
                for (to, &t) in to.iter_mut().zip(self.t_rho.iter()) {
                    *to += slope * (t + h_rho);
                }
            } else if let Some(to) = to.get_mut(j - nq - 2 * nv - rows - 1) {
                *to += slope;
            }
        }
        Ok(scale)
    }
}

/// to = to + slope (row `i` of a matrix with as many columns)
fn add_row<S: Scalar>(to: &mut [S], slope: S, rows: &[S], i: usize) {
    if let Some(row) = rows.chunks_exact(to.len().max(1)).nth(i) {
        add_scaled(to, slope, row);
    }
}

/// What the derivative of a run with events does not know.
fn refuse<M: Events>(model: &M) -> Result<(), StepError> {
    let table = model.event_table();
    if !table.autonomous {
        let what = "there is no gradient of a run with events if forces, constraints, objectives or signals name the time `t` yet";
        return Err(StepError::Unsupported { what });
    }
    if !table.constant_settings {
        let what = "there is no gradient of a run in which an event sets an input to a value that follows motion or parameters yet: set it to a number";
        return Err(StepError::Unsupported { what });
    }
    Ok(())
}

impl<T: FixedStep> DifferentiableEventIntegrator for Differentiated<Fixed<T>> {
    fn run_with_events<D, I, O>(
        &self,
        system: &D,
        inputs: &mut I,
        y: &mut [D::S],
        derivatives: &mut [D::S],
        span: &Span<D::S>,
        gradient: &mut [D::S],
        scratch: &mut [D::S],
        observe: O,
    ) -> Result<Statistics, StepError>
    where
        D: JointDynamics + WithEvents,
        <D as JointDynamics>::Model: JointObjectiveDerivatives,
        <D as WithEvents>::Model: EventDerivatives,
        I: Inputs<D::S>,
        O: FnMut(Sight<'_, DifferentiatedAt<'_, D::S>, D::S>) -> ControlFlow<()>,
    {
        refuse(system.events())?;
        let mut nodes = Nodes::new(span, self.0.h)?;
        let dims = system.dims();
        let n = augmented_len(&dims);
        let mut augment = Augment::new(&dims, y, derivatives, gradient)?;
        let table = system.events().event_table();
        let mut pieces = Pieces::of(scratch, self.event_scratch_len(system));
        let all = pieces.next(n)?;
        let mut inputs = Latched::new(inputs, table.inputs, span.start, pieces.next(dims.nu)?);
        let driver = DifferentiatedDriver::new(system, inputs.values, &mut pieces)?;
        let (eyes, own) = (RefCell::new(observe), Cell::new(true));
        let node = |t, y: &[D::S], u: &[D::S]| Ok(look(&eyes, Sight::Node(seen(&dims, t, y, u)?, own.get())));
        let event = |occurrence: Occurrence<'_, D::S>| look(&eyes, Sight::Event(occurrence));
        let inner = (Observe(node), Terminals);
        let mut hooks = Located::new(table, driver, inner, event, &own, n, &mut pieces)?;
        let h_rho = pieces.next(dims.sensitivity.parameters)?;
        h_rho.fill(D::S::ZERO);
        let mut field = Augmented::new(system, &mut inputs, &mut pieces)?;
        field.h_rho = h_rho;
        augment.write(all);
        field.check_multipliers(span.start, all)?;
        let mut run = FixedRun::<T, _>::new(&mut field, n, &mut pieces, all)?;
        let outcome = drive(&mut run, &mut nodes, &mut hooks);
        augment.read(run.parts().1);
        outcome
    }
}

impl DifferentiableEventIntegrator for Differentiated<Adaptive> {
    fn run_with_events<D, I, O>(
        &self,
        system: &D,
        inputs: &mut I,
        y: &mut [D::S],
        derivatives: &mut [D::S],
        span: &Span<D::S>,
        gradient: &mut [D::S],
        scratch: &mut [D::S],
        observe: O,
    ) -> Result<Statistics, StepError>
    where
        D: JointDynamics + WithEvents,
        <D as JointDynamics>::Model: JointObjectiveDerivatives,
        <D as WithEvents>::Model: EventDerivatives,
        I: Inputs<D::S>,
        O: FnMut(Sight<'_, DifferentiatedAt<'_, D::S>, D::S>) -> ControlFlow<()>,
    {
        refuse(system.events())?;
        let mut limits = Limits::new(&self.0, span)?;
        let dims = system.dims();
        let n = augmented_len(&dims);
        let mut augment = Augment::new(&dims, y, derivatives, gradient)?;
        let table = system.events().event_table();
        let mut pieces = Pieces::of(scratch, self.event_scratch_len(system));
        let all = pieces.next(n)?;
        let mut inputs = Latched::new(inputs, table.inputs, span.start, pieces.next(dims.nu)?);
        let driver = DifferentiatedDriver::new(system, inputs.values, &mut pieces)?;
        let (eyes, own) = (RefCell::new(observe), Cell::new(true));
        let node = |t, y: &[D::S], u: &[D::S]| Ok(look(&eyes, Sight::Node(seen(&dims, t, y, u)?, own.get())));
        let event = |occurrence: Occurrence<'_, D::S>| look(&eyes, Sight::Event(occurrence));
        let inner = (ObserveDense::new(span, node)?, Terminals);
        let mut hooks = Located::new(table, driver, inner, event, &own, n + 2, &mut pieces)?;
        let h_rho = pieces.next(dims.sensitivity.parameters)?;
        h_rho.fill(D::S::ZERO);
        let mut stages = Stages::new(n, &mut pieces)?;
        let mut field = Augmented::new(system, &mut inputs, &mut pieces)?;
        field.h_rho = h_rho;
        augment.write(all);
        field.check_multipliers(span.start, all)?;
        let mut run = AdaptiveRun::new(&self.0, &mut field, &mut stages, span.start, all);
        let outcome = drive(&mut run, &mut limits, &mut hooks);
        augment.read(run.parts().1);
        outcome
    }
}
