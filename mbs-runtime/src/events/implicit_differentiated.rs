//! Implicit runs with events together with their derivatives by the parameters.
//!
//! The size of a step is differentiated through the integrator's formulas
//! ([`DifferentiatedRun::h_rho`](crate::sensitivity::run::DifferentiatedRun)), see [`times`](super::times). Events act in joint form:
//! v' = (L zd)', then the derivative of the equations that velocities after the event solve, then zd' = (N v)'. Accelerations and multipliers
//! after it, and their derivatives, are those of a start.

use core::cell::{Cell, RefCell};
use core::ops::ControlFlow;

use super::explicit::look;
use super::implicit::ImplicitDriver;
use super::jump::Jump;
use super::latches::Latched;
use super::locate::{self, Driver, Functions, Located};
use super::times::{AtEvent, Times, directions_len, first_directions, refuse};
use super::{EventDerivatives, Occurrence, Sight};
use crate::adjoint::implicit::NO_ACCELERATIONS;
use crate::error::{EvalError, StepError};
use crate::euler_parameters::{rates, velocities_change};
use crate::formulation::run::check_start;
use crate::formulation::{Assembly, Node, Record, State};
use crate::inputs::Inputs;
use crate::integrator::{Fixed, Nodes, Planned, Span, Statistics, drive};
use crate::linear::copy;
use crate::pieces::Pieces;
use crate::scalar::Scalar;
use crate::sensitivity::objectives::Integrals;
use crate::sensitivity::run::{DifferentiatedRun, Judge, directions, judges_multipliers, scratch_len_of_run};
use crate::sensitivity::{
    DifferentiableStep, Differentiated, ObjectiveDerivatives, Sensitivities, StateDerivatives,
};
use crate::system::At;

/// How a differentiated run answers questions of events.
struct DifferentiatedDriver<'a, M: EventDerivatives> {
    plain: ImplicitDriver<'a, M>,
    columns: usize,
    times: Times<'a, M::S>,
    partials: &'a mut [M::S],
    jumps: &'a mut [M::S],
    v_rho: &'a mut [M::S],
    /// Derivatives of inputs that events set.
    changes: &'a mut [M::S],
}

impl<'a, M: EventDerivatives> DifferentiatedDriver<'a, M> {
    fn len(system: &M) -> usize {
        let dims = system.dims();
        let (p, restart) = (dims.sensitivity.parameters, Assembly::differentiated_scratch_len(&dims));
        let lists = system.event_places().len() + system.jump_places().len();
        let settings = system.event_table().inputs.len() * p;
        ImplicitDriver::len(system, restart) + Times::<M::S>::len(p) + lists + dims.nv * p + settings
    }

    fn new(
        system: &'a M,
        latches: &'a [Cell<M::S>],
        pieces: &mut Pieces<'a, M::S>,
    ) -> Result<Self, StepError> {
        let dims = system.dims();
        let columns = dims.sensitivity.parameters;
        let restart = Assembly::differentiated_scratch_len(&dims);
        Ok(Self {
            plain: ImplicitDriver::new(system, latches, restart, pieces)?,
            columns,
            times: Times::new(columns, pieces)?,
            partials: pieces.next(system.event_places().len())?,
            jumps: pieces.next(system.jump_places().len())?,
            v_rho: pieces.next(dims.nv * columns)?,
            changes: pieces.next(system.event_table().inputs.len() * columns)?,
        })
    }

    /// g' of an event at the end of a step. Gives the sum of the sizes of the parts of its rate.
    fn slopes<T, I>(
        &mut self,
        run: &mut DifferentiatedRun<'_, T, M, I>,
        t: M::S,
        event: usize,
        pass: usize,
    ) -> Result<f64, StepError>
    where
        M: Sensitivities,
        I: Inputs<M::S>,
    {
        let fail = |error: EvalError| error.in_step(t.real(), 0.0);
        let (dims, p) = (self.plain.dims, self.columns);
        let (nq, nv, rows) = (dims.nq, dims.nv, dims.joint_rows());
        // After the last pass t' has all of it.
        let h_rho = if pass < 2 { run.h_rho.first().copied().unwrap_or(M::S::ZERO) } else { M::S::ZERO };
        if !self.plain.u.is_empty() {
            run.inputs.at(t, self.plain.u);
        }
        let state = State::of(&dims, run.state)?;
        self.plain.joint_form(&state).map_err(fail)?;
        let change = StateDerivatives::of(&dims, run.derivatives)?;
        let ImplicitDriver { system, u, v, vd, lambda, scratch, .. } = &mut self.plain;
        velocities_change(*system, state.z, state.zd, p, change.z, change.zd, self.v_rho).map_err(fail)?;
        let at = At { t, z: state.z, v, x: &[], u };
        system.event_function_derivatives(at, vd, lambda, scratch, self.partials).map_err(fail)?;
        let along = AtEvent { columns: p, rho: run.rho, clock: run.clock };
        let (mut to, t_rho) = self.times.slopes(pass);
        let mut scale = 0.0;
        for (&(k, j), &slope) in system.event_places().iter().zip(self.partials.iter()) {
            if k as usize != event {
                continue;
            }
            let j = j as usize;
            let size =
                |rates: &[M::S], i: usize| rates.get(i).map_or(0.0, |rate| (slope * *rate).real().abs());
            if j < nq {
                scale += size(state.zd, j);
                to.add_row(slope, change.z, j);
            } else if j < nq + nv {
                scale += size(vd, j - nq);
                to.add_row(slope, self.v_rho, j - nq);
            } else if j < nq + 2 * nv {
                if nq != nv {
                    return Err(StepError::Unsupported { what: NO_ACCELERATIONS });
                }
                to.add_row(slope, change.zdd, j - nq - nv);
            } else if j < nq + 2 * nv + rows {
                // Normalisation rows stand between the two kinds of others.
                let row = j - nq - 2 * nv;
                let row = if row < dims.n_holonomic { row } else { row + dims.n_normalisation };
                to.add_row(slope, change.lambda, row);
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

impl<T, M, I> Driver<DifferentiatedRun<'_, T, M, I>> for DifferentiatedDriver<'_, M>
where
    T: DifferentiableStep,
    M: Sensitivities + EventDerivatives,
    I: Inputs<M::S>,
{
    fn evaluate(
        &mut self,
        run: &mut DifferentiatedRun<'_, T, M, I>,
        t: M::S,
        _: bool,
        to: &mut Functions<'_, M::S>,
    ) -> Result<(), StepError> {
        self.plain.functions(run.inputs, run.state, t, to)
    }

    fn sides(
        &mut self,
        run: &mut DifferentiatedRun<'_, T, M, I>,
        t: M::S,
        curvatures: &mut [M::S],
        sizes: &mut [M::S],
    ) -> Result<(), StepError> {
        self.plain.zero_sides(run.state, t, curvatures, sizes)
    }

    fn act(
        &mut self,
        run: &mut DifferentiatedRun<'_, T, M, I>,
        t: M::S,
        event: usize,
    ) -> Result<(), StepError> {
        let fail = |error: EvalError| error.in_step(t.real(), 0.0);
        // The quadrature has seen it.
        run.h_rho.fill(M::S::ZERO);
        let (dims, columns) = (self.plain.dims, self.columns);
        let change = StateDerivatives::of(&dims, run.derivatives)?;
        {
            self.plain.before(run.inputs, run.state, t)?;
            let state = State::of(&dims, run.state)?;
            let ImplicitDriver { system, u, v, jump, scratch, .. } = &mut self.plain;
            velocities_change(*system, state.z, state.zd, columns, change.z, change.zd, self.v_rho)
                .map_err(fail)?;
            let (at, rho) = (At { t, z: state.z, v, x: &[], u }, &mut *run.rho);
            let (changes, jumps) = (&mut *self.changes, &mut *self.jumps);
            let by = [&*change.z, self.v_rho, self.times.t_rho];
            jump.differentiate_settings(*system, event, at, by, columns, rho, changes, jumps, scratch)?;
            Jump::place_changes(&dims, &system.event_table(), event, columns, self.changes, change.z);
        }
        self.plain.solve(run.inputs, run.state, t, event)?;
        {
            let state = State::of(&dims, run.state)?;
            let ImplicitDriver { system, u, v, jump, scratch, .. } = &mut self.plain;
            let at = At { t, z: state.z, v, x: &[], u };
            let along = AtEvent { columns, rho: run.rho, clock: run.clock };
            let t_rho = &*self.times.t_rho;
            jump.differentiate(*system, at, change.z, self.v_rho, t_rho, along, self.jumps, scratch)?;
        }
        let p = columns;
        self.plain.apply(run.state, t)?;
        let state = State::of(&dims, run.state)?;
        rates(self.plain.system, state.z, self.plain.v, p, change.z, self.v_rho, change.zd).map_err(fail)
    }

    fn coincides(
        &mut self,
        run: &mut DifferentiatedRun<'_, T, M, I>,
        t: M::S,
        event: usize,
        other: usize,
    ) -> Result<(), StepError> {
        let scale = self.slopes(run, t, event, 2)?;
        self.times.check_coincidence(scale, t, event, other)
    }

    fn restart(&mut self, run: &mut DifferentiatedRun<'_, T, M, I>, _: M::S) -> Result<(), StepError> {
        // The clock is that of the node where the last step ended.
        let DifferentiatedRun { system, inputs, state, derivatives, rho, .. } = run;
        let (along, scratch) = (directions(rho), &mut *self.plain.scratch);
        Assembly::DEFAULT.start_along(*system, *inputs, state, derivatives, along, scratch).map(|_| ())
    }

    fn latch(&mut self, input: u32, value: M::S) -> bool {
        self.plain.set_latch(input, value)
    }

    fn acted(&self) -> [&[M::S]; 3] {
        [self.plain.impulses(), self.plain.jump.row_impulses(), self.times.t_rho]
    }

    fn inputs_jump(&self) -> bool {
        self.plain.dims.nu > 0
    }

    fn begin(
        &mut self,
        run: &mut DifferentiatedRun<'_, T, M, I>,
        _: &Planned<M::S>,
    ) -> Result<(), StepError> {
        run.h_rho.fill(M::S::ZERO);
        copy(run.t_rho, self.times.t_rho);
        Ok(())
    }

    fn ended(&mut self, run: &mut DifferentiatedRun<'_, T, M, I>, planned: bool) -> Result<bool, StepError> {
        Ok(self.times.ended(run.h_rho, planned))
    }

    fn located(
        &mut self,
        run: &mut DifferentiatedRun<'_, T, M, I>,
        t: M::S,
        event: usize,
        pass: usize,
    ) -> Result<bool, StepError> {
        if self.columns == 0 {
            return Ok(false);
        }
        let scale = if pass < 2 { self.slopes(run, t, event, pass)? } else { 0.0 };
        self.times.located(run.h_rho, scale, t, event, pass)
    }
}

impl<T: DifferentiableStep> Differentiated<Fixed<T>> {
    /// Length of the scratch that [`Differentiated::run_implicit_with_events`] needs, at least.
    pub fn implicit_event_scratch_len<M: EventDerivatives>(&self, system: &M) -> usize {
        let dims = system.dims();
        let saved = State::<M::S>::len(&dims) + StateDerivatives::<M::S>::len(&dims);
        let located = locate::memory_len(&system.event_table(), saved);
        let run = scratch_len_of_run(&dims, self.0.method.scratch_len(&dims));
        let directions = directions_len(&system.event_table(), dims.sensitivity.parameters);
        run + DifferentiatedDriver::len(system) + located + directions + dims.sensitivity.parameters
    }

    /// [`Differentiated::run`] for a model with events: to the end of the span, or to an event that stops the run.
    #[allow(clippy::too_many_arguments, reason = "what a run reads and writes")]
    pub fn run_implicit_with_events<M, I, O>(
        &self,
        system: &M,
        inputs: &mut I,
        state: &mut [M::S],
        derivatives: &mut [M::S],
        span: &Span<M::S>,
        gradient: &mut [M::S],
        scratch: &mut [M::S],
        observe: O,
    ) -> Result<Statistics, StepError>
    where
        M: Sensitivities + ObjectiveDerivatives + EventDerivatives,
        I: Inputs<M::S>,
        O: FnMut(Sight<'_, Node<'_, M::S>, M::S>) -> ControlFlow<()>,
    {
        refuse(system)?;
        let Fixed { method, h } = &self.0;
        let mut nodes = Nodes::new(span, *h)?;
        let dims = system.dims();
        check_start(&dims, state, span)?;
        StateDerivatives::of(&dims, derivatives)?;
        let table = system.event_table();
        let mut pieces = Pieces::of(scratch, self.implicit_event_scratch_len(system));
        let mut inputs = Latched::new(inputs, table.inputs, span.start, pieces.next(dims.nu)?);
        let driver = DifferentiatedDriver::new(system, inputs.values, &mut pieces)?;
        let [rho, t_rho] = first_directions(&table, dims.sensitivity.parameters, &mut pieces)?;
        let (eyes, own) = (RefCell::new(observe), Cell::new(true));
        let node = |node: Node<'_, M::S>| look(&eyes, Sight::Node(node, own.get()));
        let event = |occurrence: Occurrence<'_, M::S>| look(&eyes, Sight::Event(occurrence));
        let integrals = Integrals::new(&dims, gradient, &mut pieces)?;
        let inner = Judge { integrals, observe: node };
        let saved = state.len() + derivatives.len();
        let mut hooks = Located::new(table, driver, inner, event, &own, saved, &mut pieces)?;
        let h_rho = pieces.next(dims.sensitivity.parameters)?;
        h_rho.fill(M::S::ZERO);
        let mut run = DifferentiatedRun {
            method,
            system,
            dims,
            inputs: &mut inputs,
            state,
            derivatives,
            u: pieces.next(dims.nu)?,
            record: pieces.next(Record::<M::S>::len(&dims))?,
            kept: pieces.next(State::<M::S>::len(&dims))?,
            next: pieces.next(StateDerivatives::<M::S>::len(&dims))?,
            h_rho,
            t_rho,
            clock: table.clock.map(|column| column as usize),
            rho,
            shows_multipliers: true,
            judges_multipliers: judges_multipliers(system),
            scratch: pieces.rest(),
        };
        drive(&mut run, &mut nodes, &mut hooks)
    }
}
