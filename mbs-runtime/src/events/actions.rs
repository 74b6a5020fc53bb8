//! What events do on the way forward and back of an adjoint run, see [`items`](crate::adjoint::items).
//!
//! With A the matrix of the equations that d = v⁺ − v⁻ and its impulses solve, which is symmetric, and b their derivative with d, Λ and μ
//! held: A (d′, Λ′, μ′) = −b_x x′. Transposed, with w from A w = (v̄⁺, 0, 0),
//!
//! ```text
//! v̄⁻ = v̄⁺ − b_vᵀ w      z̄⁻ = z̄⁺ − b_zᵀ w      t̄⁻ = t̄⁺ − b_tᵀ w      ρ̄ = ρ̄ − b_ρᵀ w
//! ```

use core::cell::{Cell, RefCell};
use core::ops::ControlFlow;

use super::EventDerivatives;
use super::jump::{Jump, moved_by};
use super::locate::{Driver, Functions};
use super::span::Gradients;
use crate::adjoint::AdjointNode;
use crate::adjoint::items::{Actions, End, Item, Log};
use crate::error::{EvalError, EventFailure, StepError};
use crate::integrator::{ExplicitRun, Hooks, Next, Planned, Rates, Stepper, Taken, Verdict};
use crate::linear::copy;
use crate::pieces::{Pieces, cut};
use crate::scalar::Scalar;
use crate::system::{At, Dims};

/// What the events of a model do.
pub(crate) struct Acts<'a, M: EventDerivatives> {
    model: &'a M,
    jump: Jump<'a, M::S>,
    latches: &'a [Cell<M::S>],
    /// Inputs after the event.
    u: &'a mut [M::S],
    partials: &'a mut [M::S],
    jumps: &'a mut [M::S],
    /// Weights of inputs that events set.
    changes: &'a mut [M::S],
    gradients: Gradients<'a, M::S>,
    /// Coordinates after the event.
    z: &'a mut [M::S],
    w: &'a mut [M::S],
}

impl<'a, M: EventDerivatives> Acts<'a, M> {
    /// Length of its memory.
    pub(crate) fn len(model: &M, columns: usize) -> usize {
        let lists = model.event_places().len() + model.jump_places().len();
        let (dims, table) = (model.dims(), model.event_table());
        let settings = table.inputs.len() * columns;
        let gradients = Gradients::<M::S>::len(&dims, &table);
        Jump::len(model) + lists + settings + dims.nu + gradients + dims.nq + dims.workspace
    }

    pub(crate) fn new(
        model: &'a M,
        latches: &'a [Cell<M::S>],
        columns: usize,
        pieces: &mut Pieces<'a, M::S>,
    ) -> Result<Self, StepError> {
        Ok(Self {
            model,
            jump: Jump::new(model, pieces)?,
            latches,
            u: pieces.next(model.dims().nu)?,
            partials: pieces.next(model.event_places().len())?,
            jumps: pieces.next(model.jump_places().len())?,
            changes: pieces.next(model.event_table().inputs.len() * columns)?,
            gradients: Gradients::new(&model.dims(), &model.event_table(), pieces)?,
            z: pieces.next(model.dims().nq)?,
            w: pieces.next(model.dims().workspace)?,
        })
    }
}

impl<M: EventDerivatives> Actions<M::S> for Acts<'_, M> {
    fn latches(&self) -> usize {
        self.latches.len()
    }

    fn save(&self, to: &mut [M::S]) {
        for (to, latch) in to.iter_mut().zip(self.latches) {
            *to = latch.get();
        }
    }

    fn load(&mut self, from: &[M::S]) {
        for (latch, &from) in self.latches.iter().zip(from) {
            latch.set(from);
        }
    }

    fn switch(&mut self, event: usize, value: M::S) {
        let table = self.model.event_table();
        let input = table.events.get(event).and_then(|entry| entry.switch);
        if let Some(latch) = input.and_then(|input| self.latches.get(input as usize)) {
            latch.set(value);
        }
    }

    fn act(&mut self, event: usize, at: At<'_, M::S>) -> Result<&[M::S], StepError> {
        self.jump.settle(self.model, event, at, self.latches, self.w)?;
        copy(self.u, at.u);
        for &input in self.model.event_table().inputs {
            if let (Some(u), Some(latch)) = (self.u.get_mut(input as usize), self.latches.get(input as usize))
            {
                *u = latch.get();
            }
        }
        self.jump.solve(self.model, event, At { u: self.u, ..at }, self.w)?;
        Ok(self.jump.d)
    }

    fn place(&self, event: usize, z: &mut [M::S]) {
        self.jump.place(self.model.dims().nu, &self.model.event_table(), event, z);
    }

    fn transpose(
        &mut self,
        at: At<'_, M::S>,
        columns: usize,
        z: &mut [M::S],
        v: &mut [M::S],
        t: &mut [M::S],
        rho: &mut [M::S],
        later: [&mut [M::S]; 2],
    ) -> Result<(), StepError> {
        let before = at;
        let at = At { u: self.u, ..at };
        let weights = [&mut *z, v, t, rho];
        self.jump.transpose(self.model, at, columns, weights, self.jumps, self.w)?;
        if self.jump.adds_rows {
            let event = self.jump.event;
            self.gradients.check(self.model, &self.jump, event, at, self.jumps, self.partials, self.w)?;
        }
        let dims = self.model.dims();
        if dims.joint_rows() > 0 && moved_by(&self.model.event_table(), &dims, self.jump.event).1 {
            copy(self.z, at.z);
            self.jump.place(dims.nu, &self.model.event_table(), self.jump.event, self.z);
            let after = At { z: self.z, ..at };
            let (model, jump, partials) = (self.model, &self.jump, &mut *self.partials);
            self.gradients.check_placed(model, jump, before, after, self.jumps, partials, self.w)?;
        }
        let (weights, changes) = ([z, v, t, rho], &mut *self.changes);
        let (model, jumps, w) = (self.model, &mut *self.jumps, &mut *self.w);
        self.jump.transpose_settings(model, before, columns, weights, later, changes, jumps, w)
    }

    fn function(
        &mut self,
        event: usize,
        at: At<'_, M::S>,
        vd: &[M::S],
        lambda: &[M::S],
        to: &mut [M::S],
    ) -> Result<(), StepError> {
        let evaluated = self.model.event_function_derivatives(at, vd, lambda, self.w, self.partials);
        evaluated.map_err(|error: EvalError| error.in_step(at.t.real(), 0.0))?;
        to.fill(M::S::ZERO);
        for (&(k, j), &slope) in self.model.event_places().iter().zip(self.partials.iter()) {
            if let Some(to) = to.get_mut(j as usize).filter(|_| k as usize == event) {
                *to = slope;
            }
        }
        // By the clock it is g_t, which stands for itself.
        let dims = self.model.dims();
        let first = dims.nq + 2 * dims.nv + dims.joint_rows() + 1;
        if let Some(by_clock) = self.clock().and_then(|row| to.get_mut(first + row)) {
            *by_clock = M::S::ZERO;
        }
        Ok(())
    }

    fn clock(&self) -> Option<usize> {
        self.model.event_table().clock.map(|row| row as usize)
    }

    fn tangential(&self, t: M::S, event: usize) -> StepError {
        StepError::Event { t: t.real(), event, failure: EventFailure::Tangential }
    }
}

/// A driver that notes what happens.
pub(crate) struct Noting<'a, 'l, S, E> {
    pub(crate) driver: E,
    pub(crate) log: &'a RefCell<Log<'l, S>>,
    /// Whether accelerations and multipliers are found anew after events.
    pub(crate) restarts: bool,
}

impl<S: Scalar, E> Noting<'_, '_, S, E> {
    fn add_sized(&self, t: S, h: S, item: Item) -> Result<(), StepError> {
        if let Ok(mut log) = self.log.try_borrow_mut() {
            log.add(t, h, item);
        }
        Ok(())
    }

    fn add(&self, t: S, item: Item) -> Result<(), StepError> {
        self.add_sized(t, S::ZERO, item)
    }

    fn ends(&self, end: End) {
        if let Ok(mut log) = self.log.try_borrow_mut() {
            log.end = end;
        }
    }
}

impl<W: Stepper, E: Driver<W>> Driver<W> for Noting<'_, '_, W::S, E> {
    fn evaluate(
        &mut self,
        run: &mut W,
        t: W::S,
        ended: bool,
        to: &mut Functions<'_, W::S>,
    ) -> Result<(), StepError> {
        self.driver.evaluate(run, t, ended, to)
    }

    fn act(&mut self, run: &mut W, t: W::S, event: usize) -> Result<(), StepError> {
        self.driver.act(run, t, event)?;
        self.add(t, Item::Act(event))
    }

    fn restart(&mut self, run: &mut W, t: W::S) -> Result<(), StepError> {
        self.driver.restart(run, t)?;
        if self.restarts { self.add(t, Item::Restart) } else { Ok(()) }
    }

    fn sides(
        &mut self,
        run: &mut W,
        t: W::S,
        curvatures: &mut [W::S],
        sizes: &mut [W::S],
    ) -> Result<(), StepError> {
        self.driver.sides(run, t, curvatures, sizes)
    }

    fn latch(&mut self, input: u32, value: W::S) -> bool {
        self.driver.latch(input, value)
    }

    fn switched(&mut self, t: W::S, event: usize, value: W::S) -> Result<(), StepError> {
        self.add_sized(t, value, Item::Switch(event))
    }

    fn acted(&self) -> [&[W::S]; 3] {
        self.driver.acted()
    }

    fn inputs_jump(&self) -> bool {
        self.driver.inputs_jump()
    }

    fn begin(&mut self, run: &mut W, planned: &Planned<W::S>) -> Result<(), StepError> {
        self.driver.begin(run, planned)
    }

    fn ended(&mut self, run: &mut W, planned: bool) -> Result<bool, StepError> {
        self.ends(if planned { End::Planned } else { End::Free });
        self.driver.ended(run, planned)
    }

    fn located(&mut self, run: &mut W, t: W::S, event: usize, pass: usize) -> Result<bool, StepError> {
        self.ends(End::Located(event));
        self.driver.located(run, t, event, pass)
    }
}

/// Notes steps of the first run, and shows them.
pub(crate) struct Steps<'a, 'l, S, O> {
    pub(crate) log: &'a RefCell<Log<'l, S>>,
    pub(crate) eyes: &'a RefCell<O>,
    pub(crate) stopped: bool,
}

impl<S, O> Steps<'_, '_, S, O>
where
    S: Scalar,
    O: FnMut(AdjointNode<'_, S>) -> ControlFlow<()>,
{
    /// Whether the run goes on.
    pub(crate) fn next(&self) -> Next {
        if self.stopped { Next::Stop } else { Next::Continue }
    }

    /// Notes a step that stands.
    pub(crate) fn note(&mut self, step: &Taken<S>, z: &[S], rates: &[S]) -> Result<Verdict<S>, StepError> {
        let (Ok(mut log), Ok(mut see)) = (self.log.try_borrow_mut(), self.eyes.try_borrow_mut()) else {
            return Ok(Verdict::Accept);
        };
        let item = Item::Step(log.end);
        log.add(step.end, step.h, item);
        let node = AdjointNode::Forward { number: log.items(), t: step.end, again: false, z, rates };
        self.stopped |= see(node).is_break();
        Ok(Verdict::Accept)
    }
}

impl<W: ExplicitRun, O: FnMut(AdjointNode<'_, W::S>) -> ControlFlow<()>> Hooks<W> for Steps<'_, '_, W::S, O> {
    fn node(&mut self, _: &mut W, _: &Taken<W::S>, _: bool) -> Result<Next, StepError> {
        Ok(self.next())
    }

    fn after(&mut self, run: &mut W, step: &Taken<W::S>) -> Result<Verdict<W::S>, StepError> {
        let (field, y) = run.parts();
        let Dims { nq, nv, .. } = field.dims();
        let fail = |error: EvalError| error.in_step(step.end.real(), 0.0);
        let (z, rest) = cut("y", y, nq).map_err(fail)?;
        self.note(step, z, cut("y", rest, nv).map_err(fail)?.0)
    }
}
