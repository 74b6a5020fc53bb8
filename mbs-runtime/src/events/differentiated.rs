//! Explicit runs with events together with their derivatives by the parameters.
//!
//! The size of a step is differentiated as part of the augmented field ([`Augmented::h_rho`]), see [`times`](super::times). Velocities
//! after an event follow from the derivative of the equations that they solve ([`Jump::differentiate`](super::jump::Jump)).
//!
//! Where laws name the time, and where events set inputs to values that have derivatives, the directions of the parameters move with them
//! ([`Augmented::let_directions_change`]).

use core::cell::{Cell, RefCell};
use core::ops::ControlFlow;

use super::explicit::{ExplicitDriver, look, memory_len, state_at};
use super::jump::Jump;
use super::latches::Latched;
use super::locate::{Driver, Functions, Located};
use super::times::{AtEvent, Times, directions_len, first_directions, refuse};
use super::{EventDerivatives, Events, Occurrence, Sight, WithEvents};
use crate::error::{EvalError, StepError};
use crate::euler_parameters::coordinate_rates;
use crate::inputs::Inputs;
use crate::integrator::{
    Adaptive, AdaptiveRun, Controlled, ExplicitRun, Fixed, FixedRun, FixedStep, Limits, Nodes, Observe,
    ObserveDense, Planned, Span, Statistics, drive,
};
use crate::linear::copy;
use crate::pieces::{Pieces, cut};
use crate::scalar::Scalar;
use crate::sensitivity::augmented::{Augmented, len as augmented_len};
use crate::sensitivity::columns::Directions;
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
        self.scratch_len(system)
            + memory_len(system, augmented_len(&dims) + 2)
            + Times::<D::S>::len(p)
            + directions_len(&model.event_table(), p)
            + p
            + lists
            + model.event_table().inputs.len() * p
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
    times: Times<'a, D::S>,
    partials: &'a mut [D::S],
    jumps: &'a mut [D::S],
    /// Derivatives of inputs that events set.
    changes: &'a mut [D::S],
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
        Ok(Self {
            plain: ExplicitDriver::new(system, latches, pieces)?,
            columns,
            times: Times::new(columns, pieces)?,
            partials: pieces.next(model.event_places().len())?,
            jumps: pieces.next(model.jump_places().len())?,
            changes: pieces.next(model.event_table().inputs.len() * columns)?,
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

    fn sides(
        &mut self,
        run: &mut W,
        t: D::S,
        curvatures: &mut [D::S],
        sizes: &mut [D::S],
    ) -> Result<(), StepError> {
        self.plain.sides(run, t, curvatures, sizes)
    }

    fn act(&mut self, run: &mut W, t: D::S, event: usize) -> Result<(), StepError> {
        let dims = self.plain.dims;
        let (field, y) = run.parts();
        let wrong = StepError::Length { what: "y", expected: dims.state(), found: y.len() };
        let (state, rest) = y.split_at_mut_checked(dims.state()).ok_or(wrong)?;
        let (z_rho, rest) = rest.split_at_mut_checked(dims.nq * self.columns).ok_or(wrong)?;
        let v_rho = rest.get_mut(..dims.nv * self.columns).ok_or(wrong)?;
        let (u, rho) = field.at_node_along(t);
        let at = state_at(&dims, t, state, u)?;
        let ExplicitDriver { system, jump, w, .. } = &mut self.plain;
        let (model, changes, columns) = (system.events(), [&*z_rho, v_rho, self.times.t_rho], self.columns);
        jump.differentiate_settings(model, event, at, changes, columns, rho, self.changes, self.jumps, w)?;
        self.plain.settle(event, at)?;
        Jump::place_changes(&dims, &model.event_table(), event, columns, self.changes, z_rho);
        let clock = field.clock;
        let (u, rho) = field.at_node_along(t);
        self.plain.place(event, t, state, u)?;
        let at = state_at(&dims, t, state, u)?;
        self.plain.solve(event, at)?;
        let along = AtEvent { columns, rho, clock };
        let ExplicitDriver { system, jump, w, .. } = &mut self.plain;
        jump.differentiate(system.events(), at, z_rho, v_rho, self.times.t_rho, along, self.jumps, w)?;
        self.plain.jump.apply_to(&dims, t, state)
    }

    fn coincides(&mut self, run: &mut W, t: D::S, event: usize, other: usize) -> Result<(), StepError> {
        let scale = self.slopes(run, t, event, 2).map_err(|error| error.in_step(t.real(), 0.0))?;
        self.times.check_coincidence(scale, t, event, other)
    }

    fn restart(&mut self, _: &mut W, _: D::S) -> Result<(), StepError> {
        Ok(())
    }

    fn latch(&mut self, input: u32, value: D::S) -> bool {
        self.plain.set_latch(input, value)
    }

    fn acted(&self) -> [&[D::S]; 3] {
        [self.plain.impulses(), self.plain.jump.row_impulses(), self.times.t_rho]
    }

    fn inputs_jump(&self) -> bool {
        self.plain.dims.nu > 0
    }

    fn begin(&mut self, run: &mut W, _: &Planned<D::S>) -> Result<(), StepError> {
        let (field, _) = run.parts();
        field.h_rho.fill(D::S::ZERO);
        copy(field.t_rho, self.times.t_rho);
        Ok(())
    }

    fn ended(&mut self, run: &mut W, planned: bool) -> Result<bool, StepError> {
        let moves = run.parts().0.h_rho.iter().any(|h| *h != D::S::ZERO);
        let again = self.times.ended(run.parts().0.h_rho, planned);
        if moves && !again {
            // The rate at the end of a step whose size has a derivative is not that at the start of the next one.
            run.restart();
        }
        Ok(again)
    }

    fn located(&mut self, run: &mut W, t: D::S, event: usize, pass: usize) -> Result<bool, StepError> {
        if self.columns == 0 {
            return Ok(false);
        }
        let scale = match pass {
            0 | 1 => self.slopes(run, t, event, pass).map_err(|error| error.in_step(t.real(), 0.0))?,
            _ => 0.0,
        };
        self.times.located(run.parts().0.h_rho, scale, t, event, pass)
    }
}

impl<D: WithEvents> DifferentiatedDriver<'_, D> {
    /// g' of an event at the end of a step. Gives the sum of the sizes of the parts of its rate.
    fn slopes<'b, W, I>(&mut self, run: &mut W, t: D::S, event: usize, pass: usize) -> Result<f64, EvalError>
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
        // After the last pass t' has all of it.
        let h_rho = if pass < 2 { field.h_rho.first().copied().unwrap_or(D::S::ZERO) } else { D::S::ZERO };
        let y: &[D::S] = y;
        let clock = field.clock;
        let [u, vd, lambda, changes, rho] = field.changes_at(t, y)?;
        let along = AtEvent { columns: p, rho, clock };
        let ExplicitDriver { system, w, zd, .. } = &mut self.plain;
        let model = system.events();
        let (state, z_rho) = cut("y", y, dims.state())?;
        let at = At::of_state(&dims, t, state, u)?;
        model.event_function_derivatives(at, vd, lambda, w, self.partials)?;
        coordinate_rates(*system, at.z, at.v, zd)?;
        // The functions are differentiated by z, not along θ.
        let (_, of_motion) = cut("changes", changes, nv * p)?;
        let (mut to, t_rho) = self.times.slopes(pass);
        let mut scale = 0.0;
        for (&(k, j), &slope) in model.event_places().iter().zip(self.partials.iter()) {
            if k as usize != event {
                continue;
            }
            let j = j as usize;
            let size =
                |rates: &[D::S], i: usize| rates.get(i).map_or(0.0, |rate| (slope * *rate).real().abs());
            if j < nq {
                scale += size(zd, j);
                to.add_row(slope, z_rho, j);
            } else if j < nq + 2 * nv + rows {
                if j < nq + nv {
                    scale += size(vd, j - nq);
                }
                to.add_row(slope, of_motion, j - nq);
            } else if j == nq + 2 * nv + rows {
                scale += slope.real().abs();
                to.add(slope, t_rho.iter().map(|&t| t + h_rho));
            } else {
                to.add_along(slope, along, j - nq - 2 * nv - rows - 1);
            }
        }
        Ok(scale)
    }
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
        let [rho, t_rho] = first_directions(&table, dims.sensitivity.parameters, &mut pieces)?;
        let (eyes, own) = (RefCell::new(observe), Cell::new(true));
        let node = |t, y: &[D::S], u: &[D::S]| Ok(look(&eyes, Sight::Node(seen(&dims, t, y, u)?, own.get())));
        let event = |occurrence: Occurrence<'_, D::S>| look(&eyes, Sight::Event(occurrence));
        let inner = (Observe(node), Terminals);
        let mut hooks = Located::new(table, driver, inner, event, &own, n, &mut pieces)?;
        let h_rho = pieces.next(dims.sensitivity.parameters)?;
        h_rho.fill(D::S::ZERO);
        let mut field = Augmented::new(system, dims, Directions::Each, &mut inputs, &mut pieces)?;
        (field.h_rho, field.t_rho) = (h_rho, t_rho);
        field.clock = table.clock.map(|column| column as usize);
        field.let_directions_change(rho);
        augment.write(all);
        field.check_multipliers(span.start, all)?;
        let mut run = FixedRun::<T, _>::new(&mut field, n, &mut pieces, all)?;
        let outcome = drive(&mut run, &mut nodes, &mut hooks);
        augment.read(run.parts().1);
        outcome
    }
}

impl<T: Controlled> DifferentiableEventIntegrator for Differentiated<Adaptive<T>> {
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
        let [rho, t_rho] = first_directions(&table, dims.sensitivity.parameters, &mut pieces)?;
        let (eyes, own) = (RefCell::new(observe), Cell::new(true));
        let node = |t, y: &[D::S], u: &[D::S]| Ok(look(&eyes, Sight::Node(seen(&dims, t, y, u)?, own.get())));
        let event = |occurrence: Occurrence<'_, D::S>| look(&eyes, Sight::Event(occurrence));
        let inner = (ObserveDense::new(span, node)?, Terminals);
        let mut hooks = Located::new(table, driver, inner, event, &own, n + 2, &mut pieces)?;
        let h_rho = pieces.next(dims.sensitivity.parameters)?;
        h_rho.fill(D::S::ZERO);
        let mut stages = T::stages(n, &mut pieces)?;
        let mut field = Augmented::new(system, dims, Directions::Each, &mut inputs, &mut pieces)?;
        (field.h_rho, field.t_rho) = (h_rho, t_rho);
        field.clock = table.clock.map(|column| column as usize);
        field.let_directions_change(rho);
        augment.write(all);
        field.check_multipliers(span.start, all)?;
        let mut run = AdaptiveRun::new(&self.0, &mut field, &mut stages, span.start, all);
        let outcome = drive(&mut run, &mut limits, &mut hooks);
        augment.read(run.parts().1);
        outcome
    }
}
