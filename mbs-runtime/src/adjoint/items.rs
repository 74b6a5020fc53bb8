//! What a run is made of, for those who go back over it: steps, and what events do between them.
//!
//! A run with events is first made once and leaves its log: for each item the time at its end, its size, and what it is. On the way back
//! sizes are read from the log, and nothing is located again: items that are made again give the same bits.
//!
//! The time of a node is a quantity like the state. With t′ its derivative and h′ that of the size of the step to the next node,
//!
//! | step that ends | h′ | t′ after it |
//! |---|---|---|
//! | where the plan wanted it | −t′ | 0 |
//! | elsewhere | 0 | t′ |
//! | in an event | −(g_x (s_x x′ + s_ρ ρ′) + g_t t′ + g_ρ ρ′)/(g_x s_h + g_t) | t′ + h′ |
//!
//! and transposed, with h̄ = s_hᵀ x̄ + ψ_hᵀ ψ̄ and γ = −(h̄ + t̄)/(g_x s_h + g_t),
//!
//! | step that ends | x̄ at its end becomes | t̄ before it |
//! |---|---|---|
//! | where the plan wanted it | x̄ | −h̄ |
//! | elsewhere | x̄ | t̄ |
//! | in an event | x̄ + g_xᵀ γ | t̄ + g_t γ |
//!
//! Laws that name the time name t + clock. What a step, a restart or an objective makes of the clock's row of ρ̄ is a weight of the time of the law, which
//! is t + c h in a step: t̄ takes all of it, h̄ the part c.

use crate::error::StepError;
use crate::integrator::Nodes;
use crate::scalar::Scalar;
use crate::system::At;

/// A part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    /// A step.
    Step(End),
    /// An event acts.
    Act(usize),
    /// The switch of an event gets the value that stands in the place of the size.
    Switch(usize),
    /// Accelerations and multipliers are found anew, after events.
    Restart,
}

/// Where a step ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// At a node of the plan.
    Planned,
    /// Before it.
    Free,
    /// In an event.
    Located(usize),
}

impl Item {
    /// Its number in the log.
    fn code(self) -> usize {
        match self {
            Item::Step(End::Planned) => 0,
            Item::Step(End::Free) => 1,
            Item::Restart => 2,
            Item::Step(End::Located(event)) => 3 + 3 * event,
            Item::Act(event) => 4 + 3 * event,
            Item::Switch(event) => 5 + 3 * event,
        }
    }

    fn of_code(code: usize) -> Item {
        match code {
            0 => Item::Step(End::Planned),
            1 => Item::Step(End::Free),
            2 => Item::Restart,
            code if code % 3 == 0 => Item::Step(End::Located((code - 3) / 3)),
            code if code % 3 == 1 => Item::Act((code - 4) / 3),
            code => Item::Switch((code - 5) / 3),
        }
    }
}

/// When the items of a run begin and end, and what they are.
pub(crate) trait Times<S> {
    /// How many.
    fn steps(&self) -> usize;
    /// Time of a node.
    fn time(&self, number: usize) -> S;
    /// Size of an item, from 1.
    fn size(&self, number: usize) -> S;
    /// What an item is, from 1.
    #[inline(always)]
    fn item(&self, _number: usize) -> Item {
        Item::Step(End::Planned)
    }
}

impl<S: Scalar> Times<S> for Nodes<S> {
    #[inline(always)]
    fn steps(&self) -> usize {
        self.steps
    }

    #[inline(always)]
    fn time(&self, number: usize) -> S {
        self.time(number)
    }

    #[inline(always)]
    fn size(&self, number: usize) -> S {
        self.size(number, self.time(number.saturating_sub(1)))
    }
}

/// Numbers of an item in the log.
const NUMBERS: usize = 3;

/// The log of a run under way, in memory of the caller.
pub(crate) struct Log<'a, S> {
    list: &'a mut [S],
    items: usize,
    /// How the step that was just made ends.
    pub(crate) end: End,
}

impl<'a, S: Scalar> Log<'a, S> {
    pub(crate) fn new(list: &'a mut [S]) -> Self {
        Self { list, items: 0, end: End::Planned }
    }

    /// Items so far.
    pub(crate) fn items(&self) -> usize {
        self.items
    }

    /// Adds an item that ends at `t`. Where the memory is too small items are counted alone, so that an error can say how much they need.
    pub(crate) fn add(&mut self, t: S, h: S, item: Item) {
        let first = self.items * NUMBERS;
        if let Some(place) = self.list.get_mut(first..first + NUMBERS) {
            crate::linear::copy(place, &[t, h, S::from_f64(item.code() as f64)]);
        }
        self.items += 1;
    }

    /// Numbers of this many items.
    pub(crate) const fn len(items: usize) -> usize {
        items * NUMBERS
    }
}

/// A run of which there is a log.
pub(crate) struct Logged<'a, S> {
    pub(crate) start: S,
    pub(crate) list: &'a [S],
}

impl<S: Scalar> Logged<'_, S> {
    fn number(&self, number: usize, place: usize) -> Option<S> {
        number.checked_sub(1).and_then(|item| self.list.get(item * NUMBERS + place)).copied()
    }
}

impl<S: Scalar> Times<S> for Logged<'_, S> {
    fn steps(&self) -> usize {
        self.list.len() / NUMBERS
    }

    fn time(&self, number: usize) -> S {
        self.number(number, 0).unwrap_or(self.start)
    }

    fn size(&self, number: usize) -> S {
        self.number(number, 1).unwrap_or(S::ZERO)
    }

    fn item(&self, number: usize) -> Item {
        self.number(number, 2).map_or(Item::Step(End::Planned), |code| Item::of_code(code.real() as usize))
    }
}

/// What events do, for the way forward and back. Weights are matrices of the way's columns.
pub(crate) trait Actions<S> {
    /// How many values events change beside the state: inputs that they set.
    fn latches(&self) -> usize;

    /// Writes them.
    fn save(&self, to: &mut [S]);

    /// Reads them back.
    fn load(&mut self, from: &[S]);

    /// The switch of an event gets a value.
    fn switch(&mut self, event: usize, value: S);

    /// An event acts at an instant: finds v⁺ − v⁻ and sets inputs.
    fn act(&mut self, event: usize, at: At<'_, S>) -> Result<&[S], StepError>;

    /// Puts coordinates where an event wants them that has acted last.
    fn place(&self, event: usize, z: &mut [S]);

    /// From weights of z and v⁺ to those of z, v⁻, t and ρ, all added to but v⁻, which takes the place of v⁺. Inputs that the event sets have
    /// weights in `rho` and in `later`, of all that comes later; they are taken from there. The event must have acted at this instant last.
    #[allow(clippy::too_many_arguments, reason = "an instant and weights")]
    fn transpose(
        &mut self,
        at: At<'_, S>,
        columns: usize,
        z: &mut [S],
        v: &mut [S],
        t: &mut [S],
        rho: &mut [S],
        later: [&mut [S]; 2],
    ) -> Result<(), StepError>;

    /// Derivatives of an event's function by z, v, vd, λ, t, ρ.
    fn function(
        &mut self,
        event: usize,
        at: At<'_, S>,
        vd: &[S],
        lambda: &[S],
        to: &mut [S],
    ) -> Result<(), StepError>;

    /// The row of ρ̄ that is that of the clock, if laws name the time.
    fn clock(&self) -> Option<usize>;

    /// The error of an event that is met tangentially.
    fn tangential(&self, t: S, event: usize) -> StepError;
}

/// The rate of a function, relative to the sum of its parts' sizes, below which an event is met tangentially.
pub(crate) const TANGENTIAL: f64 = 1e-9;

/// What the way back knows of events.
pub(crate) struct Around<'a, S> {
    pub(crate) actions: &'a mut (dyn Actions<S> + 'a),
    /// t̄ at the node the way back has reached.
    pub(crate) time: &'a mut [S],
    /// h̄ of the step that was reversed last.
    pub(crate) size: &'a mut [S],
    /// Derivatives of an event's function by z, v, vd, λ, t, ρ.
    pub(crate) function: &'a mut [S],
    /// One column: of the state, ρ, h, and of objectives, which are not weighed.
    pub(crate) bar: &'a mut [S],
    pub(crate) rho: &'a mut [S],
    pub(crate) one: &'a mut [S],
    pub(crate) nothing: &'a mut [S],
}

impl<'a, S: Scalar> Around<'a, S> {
    /// Length of its memory.
    pub(crate) const fn len(dims: &crate::Dims, states: usize, columns: usize) -> usize {
        2 * columns + function_len(dims) + states + dims.sensitivity.parameters + 1 + dims.n_objectives
    }

    pub(crate) fn new(
        actions: &'a mut (dyn Actions<S> + 'a),
        dims: &crate::Dims,
        states: usize,
        columns: usize,
        pieces: &mut crate::pieces::Pieces<'a, S>,
    ) -> Result<Self, StepError> {
        let (time, size) = (pieces.next(columns)?, pieces.next(columns)?);
        time.fill(S::ZERO);
        let around = Self {
            actions,
            time,
            size,
            function: pieces.next(function_len(dims))?,
            bar: pieces.next(states)?,
            rho: pieces.next(dims.sensitivity.parameters)?,
            one: pieces.next(1)?,
            nothing: pieces.next(dims.n_objectives)?,
        };
        around.nothing.fill(S::ZERO);
        Ok(around)
    }

    /// g_t of the function that was differentiated last.
    pub(crate) fn function_t(&self, dims: &crate::Dims) -> S {
        self.function.get(dims.nq + 2 * dims.nv + dims.joint_rows()).copied().unwrap_or(S::ZERO)
    }

    /// The row of the clock in ρ̄; nothing without one.
    pub(crate) fn clock<'r>(&self, rho: &'r [S], columns: usize) -> &'r [S] {
        self.actions.clock().and_then(|row| rho.get(row * columns..)?.get(..columns)).unwrap_or_default()
    }

    /// h̄ takes the part `c` of what ρ̄ makes of the clock.
    pub(crate) fn add_size(&mut self, c: S, rho: &[S]) {
        let row = self.clock(rho, self.size.len());
        crate::linear::add_scaled(self.size, c, row);
    }

    /// t̄ takes what ρ̄ makes of the clock.
    pub(crate) fn add_time(&mut self, rho: &[S]) {
        let row = self.clock(rho, self.time.len());
        crate::linear::add_scaled(self.time, S::ONE, row);
    }

    /// ρ̄ takes what g makes of the clock itself, after t̄ has taken what it makes of the time.
    pub(crate) fn add_clock(&self, g_t: S, rho: &mut [S]) {
        let columns = self.size.len();
        if let Some(row) =
            self.actions.clock().and_then(|row| rho.get_mut(row * columns..)?.get_mut(..columns))
        {
            crate::linear::add_scaled(row, g_t, self.size);
        }
    }

    /// γ, in the place of h̄, from it and g_h = g_x s_h + g_t; `scale`: the sum of the sizes of the parts of the function's rate.
    pub(crate) fn gamma(&mut self, slope: S, scale: f64, t: S, event: usize) -> Result<(), StepError> {
        // A slope that is not a number is none.
        let crosses = slope.real().abs() > TANGENTIAL * scale;
        if !crosses {
            return Err(self.actions.tangential(t, event));
        }
        for (size, &time) in self.size.iter_mut().zip(self.time.iter()) {
            *size = -(*size + time) / slope;
        }
        Ok(())
    }
}

/// Derivatives of an event's function: by z, v, vd, λ, t, ρ.
pub(crate) const fn function_len(dims: &crate::Dims) -> usize {
    dims.nq + 2 * dims.nv + dims.joint_rows() + 1 + dims.sensitivity.parameters
}

/// to = to + x γᵀ for a column x and a matrix with as many columns as γ.
pub(crate) fn add_outer<S: Scalar>(to: &mut [S], x: &[S], gamma: &[S]) {
    for (row, &x) in to.chunks_exact_mut(gamma.len().max(1)).zip(x) {
        crate::linear::add_scaled(row, x, gamma);
    }
}
