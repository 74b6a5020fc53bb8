//! Failures as values. They carry indices, not names, so that they cost nothing unless they are shown;
//! `describe` renders them with the model's [`Names`].

use core::fmt;

use crate::dims::{Names, Quantity};
use crate::readable::{Count, short, time};

/// Why a bundle gave no result.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum EvalError {
    /// A slice has a wrong length.
    Length {
        /// The argument.
        what: &'static str,
        /// Length it must have (for scratch: at least).
        expected: usize,
        /// Length it has.
        found: usize,
    },
    /// A pivot of the mass matrix is not positive: the model has no inertia along this velocity.
    Singular {
        /// Index of the velocity.
        velocity: usize,
    },
    /// A value is infinite or NaN.
    NotFinite {
        /// What it is.
        quantity: Quantity,
        /// Its index.
        index: usize,
    },
    /// The leading matrix is singular: neither inertia nor constraints determine this unknown.
    SingularLeading {
        /// What the unknown is: a coordinate, or the multiplier of a constraint.
        quantity: Quantity,
        /// Its index.
        index: usize,
    },
    /// A constraint is violated and corrections do not help.
    Violated {
        /// What kind of constraint.
        quantity: Quantity,
        /// Its index.
        index: usize,
        /// Its value, which should be zero.
        violation: f64,
    },
    /// An implicit stage was not solved.
    NotConverged {
        /// Iterations made.
        iterations: usize,
        /// The last correction of a coordinate.
        increment: f64,
        /// Where it is worst.
        quantity: Quantity,
        /// Its index.
        index: usize,
    },
    /// Independent coordinates do not determine the others.
    Independent {
        /// Why.
        failure: IndependentFailure,
        /// What is not determined: a velocity, or a row that depends on others.
        quantity: Quantity,
        /// Its index.
        index: usize,
    },
    /// Parameters that no such mechanism has.
    Refused {
        /// What is wrong.
        message: &'static str,
    },
    /// A model that is put together at run time was made without this bundle. (In generated code that is a compile
    /// error at the call.)
    Absent {
        /// The bundle.
        bundle: &'static str,
    },
}

/// Why a step was not taken. The state is then the one before the step.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum StepError {
    /// A slice has a wrong length.
    Length {
        /// The argument.
        what: &'static str,
        /// Length it must have (for scratch: at least).
        expected: usize,
        /// Length it has.
        found: usize,
    },
    /// A setting is out of its range.
    Setting {
        /// The setting, and what it must be.
        what: &'static str,
        /// Its value.
        value: f64,
    },
    /// The equations could not be evaluated.
    Eval {
        /// Time at the start of the step.
        t: f64,
        /// Step size, the smallest that was tried.
        h: f64,
        /// Why.
        error: EvalError,
    },
    /// The rate of a state, or its value after the step, is infinite or NaN.
    NotFinite {
        /// Time at the start of the step.
        t: f64,
        /// Step size, the smallest that was tried.
        h: f64,
        /// Which state.
        quantity: Quantity,
        /// Its index.
        index: usize,
    },
    /// The tolerance asks for a step below the smallest allowed.
    StepTooSmall {
        /// Time at the start of the step.
        t: f64,
        /// Step size, the smallest that was tried.
        h: f64,
        /// Its estimated error in units of the tolerance.
        error: f64,
        /// The state with the largest part in it.
        quantity: Quantity,
        /// Its index.
        index: usize,
    },
    /// The iteration of an implicit step did not converge.
    NotConverged {
        /// Time at the start of the step.
        t: f64,
        /// Step size.
        h: f64,
        /// Iterations made.
        iterations: usize,
        /// The last correction of a coordinate.
        increment: f64,
        /// Where it is worst: a constraint that is still violated, or else a coordinate that still moves.
        quantity: Quantity,
        /// Its index.
        index: usize,
    },
    /// A step's velocities or accelerations could not be brought onto the constraints.
    NotProjected {
        /// Time at the start of the step.
        t: f64,
        /// Step size.
        h: f64,
        /// Velocities or accelerations.
        level: Level,
        /// What is left of the constraint's violation.
        violation: f64,
        /// The worst constraint.
        quantity: Quantity,
        /// Its index.
        index: usize,
    },
    /// No position was found in which all constraints hold.
    NotAssembled {
        /// Time.
        t: f64,
        /// Iterations made.
        iterations: usize,
        /// What is left of the constraint's violation.
        violation: f64,
        /// The worst constraint.
        quantity: Quantity,
        /// Its index.
        index: usize,
    },
    /// No velocities, or no accelerations, satisfy all constraints in the position that was found.
    Inconsistent {
        /// Time.
        t: f64,
        /// Velocities or accelerations.
        level: Level,
        /// What is left of the constraint's violation.
        violation: f64,
        /// The worst constraint.
        quantity: Quantity,
        /// Its index.
        index: usize,
    },
    /// Constraints and drives do not determine the position of a mechanism that is to be analysed without its dynamics.
    NotDriven {
        /// Time.
        t: f64,
        /// Index of a coordinate that is free.
        coordinate: usize,
    },
    /// A change of a parameter contradicts constraints that depend on each other: there is no derivative.
    Incompatible {
        /// Time at the start of the step.
        t: f64,
        /// Step size; zero at the start of a run.
        h: f64,
        /// Index among the differentiated parameters.
        parameter: usize,
        /// A constraint that would be violated.
        quantity: Quantity,
        /// Its index.
        index: usize,
    },
    /// There is no derivative of this choice.
    NotDifferentiable {
        /// The choice, and what to take instead.
        what: &'static str,
    },
    /// An event cannot happen as it should.
    Event {
        /// When.
        t: f64,
        /// Its place in the table.
        event: usize,
        /// What is wrong.
        failure: EventFailure,
    },
    /// Things that do not go together yet.
    Unsupported {
        /// Which, and what to do instead.
        what: &'static str,
    },
    /// The allowed number of steps did not reach the end.
    TooManySteps {
        /// Time that was reached.
        t: f64,
        /// Last step size.
        h: f64,
        /// Steps tried.
        steps: usize,
    },
    /// Step control tried one step too often.
    TooManyRejected {
        /// Time at the start of the step.
        t: f64,
        /// Step size, the last that was tried.
        h: f64,
        /// Trials that were rejected.
        rejected: usize,
        /// The state with the largest part in the error.
        quantity: Quantity,
        /// Its index.
        index: usize,
    },
}

/// Why independent coordinates do not determine the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IndependentFailure {
    /// The step goes over a position in which they do not.
    Lost,
    /// No choice does in this position: a dead point of a drive, or a bifurcation.
    Singular,
    /// Those that were named do not.
    Named,
}

impl IndependentFailure {
    /// What is wrong, and what to do.
    const fn words(self) -> &'static str {
        match self {
            Self::Lost => {
                "is not determined by the independent coordinates along this step: they were lost on the way, at a dead point or a bifurcation; \
                 have them chosen if they were named, take a smaller step, or the formulation `ali3p` to go through"
            }
            Self::Singular => {
                "is not determined in this position, a dead point or a bifurcation, whatever coordinates are independent: start elsewhere, \
                 or take the formulation `ali3p`"
            }
            Self::Named => {
                "cannot be independent together with the others that are named as such: name other coordinates, or none, to have them chosen"
            }
        }
    }
}

/// Why an event cannot happen as it should.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum EventFailure {
    /// Its function is beyond zero at the start.
    Past,
    /// Its function is beyond zero as soon as it counts.
    Late,
    /// It has not happened, and an objective has no value without it.
    Missing,
    /// Restitution is not from zero to one, or friction is negative.
    Coefficients,
    /// It lies between sticking and slipping, or between two ways to slip.
    Between,
    /// Both branches of its switch lead back to the other.
    Slides,
    /// Its function is zero, with rate zero, and then crosses.
    AtRest,
    /// It comes ever faster.
    Accumulates,
    /// There are more events than a run may have.
    TooMany,
    /// Neither inertia nor constraints determine the velocities after it.
    Singular,
    /// No velocities satisfy its conditions and all constraints.
    Contradicts,
    /// Its function meets zero without crossing it: its time has no derivative.
    Tangential,
    /// A constraint that acts after it does not hold where it happens.
    Violates {
        /// The row, in joint form.
        row: usize,
        /// Its value.
        by: f64,
    },
    /// A constraint that acts after it holds where it happens, but not where it happens for other parameters.
    Leaves {
        /// The row, in joint form.
        row: usize,
        /// The parameter.
        parameter: usize,
    },
    /// A constraint that acts after it holds where it happens, but its function does not tell that it does for other parameters.
    Unseen {
        /// The row, in joint form.
        row: usize,
    },
    /// It is an impact that happens together with another event, which moves its gap, too.
    Together {
        /// The other one.
        other: usize,
    },
    /// It is an impact whose gap closes again before its least time is over.
    Passes,
    /// It happens together with another one, but not for other parameters.
    Parts {
        /// The other one.
        other: usize,
        /// The parameter.
        parameter: usize,
    },
    /// It puts coordinates where a constraint holds, but does not hold for other parameters.
    Displaces {
        /// The row, in joint form.
        row: usize,
        /// The parameter; none where it may be any.
        parameter: Option<usize>,
    },
}

impl EventFailure {
    /// What is wrong, and what to do.
    const fn words(self) -> &'static str {
        match self {
            Self::Past => {
                "has happened before the start: its function is beyond zero there; change the start, or its `direction`"
            }
            Self::Late => {
                "is past its threshold as soon as it begins to count: another event has led to where its function is beyond zero; \
                 let that event lead elsewhere"
            }
            Self::Coefficients => "has a restitution that is not from 0 to 1, or a friction below 0, here",
            Self::Between => {
                "lies between sticking and slipping, or between two ways to slip: it has no derivative there; change a parameter a little"
            }
            Self::Missing => {
                "has not happened by the end of the run, and an objective is taken at it: let the run end later, or take `at` from the objective"
            }
            Self::Slides => {
                "does not let go of zero: on either side the motion leads back to the other one, it sticks or slides there; make sticking a \
                 state of a mode with its constraint, or smooth the law"
            }
            Self::AtRest => {
                "is at rest: its function is zero there with rate zero, and crosses zero without having been on the other side; \
                 let the event stop the run, start away from it, or let contact that stays be a state of a mode with its constraint"
            }
            Self::Accumulates => {
                "comes ever faster and never ends: it accumulates here; let it stop the run, end the run before, or \
                 let contact that stays be a state of a mode with its constraint"
            }
            Self::TooMany => "is one event too many: a run may have a million",
            Self::Singular => "leaves velocities undetermined: give inertia to what moves along it",
            Self::Contradicts => "asks for velocities that the constraints do not allow",
            Self::Tangential => {
                "is met tangentially: its function touches zero without crossing it, and its time has no derivative"
            }
            Self::Violates { .. } => "enters a state whose constraints do not hold there",
            Self::Unseen { .. } => "enters a state whose constraints may not hold there for other parameters",
            Self::Leaves { .. } => "enters a state whose constraints do not hold there for other parameters",
            Self::Together { .. } => "is an impact that happens together with another event",
            Self::Passes => {
                "closes its gap again before its `minimum_interval` is over, so that nothing would stop it; leave `minimum_interval` out, \
                 let the event stop the run, or let contact that stays be a state of a mode with its constraint"
            }
            Self::Parts { .. } => "happens together with another one, but not for other parameters",
            Self::Displaces { .. } => {
                "resets positions to where constraints do not hold for other parameters"
            }
        }
    }
}

/// A level at which constraints hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Φ = 0
    Position,
    /// Φd = 0 and Ψ = 0
    Velocity,
    /// Φdd = 0 and Ψd = 0
    Acceleration,
}

impl Level {
    /// "positions", "velocities", "accelerations".
    pub const fn words(self) -> &'static str {
        match self {
            Self::Position => "positions",
            Self::Velocity => "velocities",
            Self::Acceleration => "accelerations",
        }
    }
}

/// An error together with the names that make it readable; made by `describe`.
#[derive(Clone, Copy, Debug)]
pub struct Described<'a, E, N: ?Sized> {
    error: E,
    names: &'a N,
}

impl EvalError {
    /// The error with the model's names, for display.
    pub fn describe<N: Names + ?Sized>(self, names: &N) -> Described<'_, Self, N> {
        Described { error: self, names }
    }
}

impl EvalError {
    /// The error of the step from `t` with size `h` in which this one happened.
    #[cold]
    #[inline(never)]
    pub fn in_step(self, t: f64, h: f64) -> StepError {
        match self {
            Self::Length { what, expected, found } => StepError::Length { what, expected, found },
            Self::NotFinite { quantity, index } => StepError::NotFinite { t, h, quantity, index },
            Self::NotConverged { iterations, increment, quantity, index } => {
                StepError::NotConverged { t, h, iterations, increment, quantity, index }
            }
            error => StepError::Eval { t, h, error },
        }
    }
}

impl StepError {
    /// The error with the model's names, for display.
    pub fn describe<N: Names + ?Sized>(self, names: &N) -> Described<'_, Self, N> {
        Described { error: self, names }
    }
}

/// Names of nothing: indices alone.
struct Unnamed;

impl Names for Unnamed {
    fn name(&self, _: Quantity, _: usize) -> Option<&str> {
        None
    }
}

/// "velocity `crank.angle`", or "velocity 3" where it has no name.
struct Entry<'a, N: ?Sized>(&'a N, Quantity, usize);

impl<N: Names + ?Sized> fmt::Display for Entry<'_, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(names, quantity, index) = self;
        match names.name(*quantity, *index) {
            Some(name) => write!(f, "{} `{name}`", quantity.word()),
            None => write!(f, "{} {index}", quantity.word()),
        }
    }
}

/// "at t = 0.5 with step 0.001", and the time alone where no step is made.
struct Step(f64, f64);

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at t = {}", time(self.0))?;
        if self.1 == 0.0 { Ok(()) } else { write!(f, " with step {}", time(self.1)) }
    }
}

fn length(f: &mut fmt::Formatter<'_>, what: &str, expected: usize, found: usize) -> fmt::Result {
    let (found, is) = (Count(found, "value"), if expected == 1 { "is" } else { "are" });
    write!(f, "`{what}` has {found}, {expected} {is} needed")
}

impl<N: Names + ?Sized> fmt::Display for Described<'_, EvalError, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entry = |quantity, index| Entry(self.names, quantity, index);
        match self.error {
            EvalError::Length { what, expected, found } => length(f, what, expected, found),
            EvalError::Singular { velocity } => {
                let entry = entry(Quantity::Velocity, velocity);
                write!(f, "the mass matrix is singular: no inertia along {entry}")
            }
            EvalError::NotFinite { quantity, index } => {
                write!(f, "{} is not finite", entry(quantity, index))
            }
            EvalError::SingularLeading { quantity, index } => {
                let entry = entry(quantity, index);
                write!(
                    f,
                    "the leading matrix is singular at {entry}: give inertia to what moves there, or a constraint that \
                     determines it"
                )
            }
            EvalError::Violated { quantity, index, violation } => {
                let entry = entry(quantity, index);
                write!(f, "{entry} is violated by {}, and corrections do not reduce it", short(violation))
            }
            EvalError::NotConverged { iterations, increment, quantity, index } => {
                let (entry, increment) = (entry(quantity, index), short(increment));
                let iterations = Count(iterations, "iteration");
                write!(
                    f,
                    "no convergence in {iterations}, worst is {entry}; the last correction was {increment}"
                )
            }
            EvalError::Independent { failure, quantity, index } => {
                write!(f, "{} {}", entry(quantity, index), failure.words())
            }
            EvalError::Refused { message } => write!(f, "no such mechanism has these parameters: {message}"),
            EvalError::Absent { bundle } => write!(f, "the model was made without the bundle `{bundle}`"),
        }
    }
}

impl<N: Names + ?Sized> fmt::Display for Described<'_, StepError, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entry = |quantity, index| Entry(self.names, quantity, index);
        match self.error {
            StepError::Length { what, expected, found } => length(f, what, expected, found),
            StepError::Setting { what, value } => write!(f, "{what}, not {}", short(value)),
            StepError::Eval { t, h, error } => {
                write!(f, "{}: {}", Step(t, h), error.describe(self.names))?;
                match error {
                    EvalError::Violated { .. } if h != 0.0 => f.write_str("; take a smaller step"),
                    _ => Ok(()),
                }
            }
            StepError::NotFinite { t, quantity: quantity @ Quantity::Objective, index, .. } => {
                let (t, entry) = (time(t), entry(quantity, index));
                write!(
                    f,
                    "at t = {t}: {entry}, or a derivative of it, is not finite: it is not differentiable there"
                )
            }
            StepError::NotFinite { t, h, quantity: quantity @ Quantity::Sensitivity, index } => {
                let (step, entry) = (Step(t, h), entry(quantity, index));
                write!(f, "{step}: the derivative by {entry} is not finite")
            }
            StepError::NotFinite { t, h, quantity, index } => {
                let (step, entry) = (Step(t, h), entry(quantity, index));
                write!(f, "{step}: {entry} or its rate is not finite")?;
                if h == 0.0 {
                    Ok(())
                } else {
                    f.write_str("; a smaller step helps, unless a law has no value there")
                }
            }
            StepError::StepTooSmall { t, h, error, quantity, index } => {
                let (t, h, error, entry) = (time(t), time(h), short(error), entry(quantity, index));
                write!(
                    f,
                    "at t = {t} the smallest step, {h}, has an error of {error} times the tolerance, most of it in \
                     {entry}"
                )
            }
            StepError::NotConverged { t, h, iterations, increment, quantity, index } => {
                let contradicts = match quantity {
                    Quantity::Coordinate => "",
                    _ => ", or remove a constraint that contradicts it",
                };
                let (step, entry, increment) = (Step(t, h), entry(quantity, index), short(increment));
                let iterations = Count(iterations, "iteration");
                write!(
                    f,
                    "{step}: no convergence in {iterations}, worst is {entry}; the last \
                     correction was {increment}; take a smaller step, or a larger penalty if it was given{contradicts}"
                )
            }
            StepError::NotProjected { t, h, level, violation, quantity, index } => {
                let (step, entry, words) = (Step(t, h), entry(quantity, index), level.words());
                let violation = short(violation);
                write!(
                    f,
                    "{step}: no {words} satisfy {entry}, which stays violated by {violation}; \
                     constraints contradict each other there, the position is singular, or the step is too large"
                )
            }
            StepError::NotAssembled { t, iterations, violation, quantity, index } => {
                let (t, entry, violation) = (time(t), entry(quantity, index), short(violation));
                let iterations = Count(iterations, "iteration");
                write!(
                    f,
                    "at t = {t} the mechanism cannot be assembled: after {iterations} {entry} is violated by \
                     {violation}; release a held coordinate or change the guesses"
                )
            }
            StepError::Inconsistent { t, level, violation, quantity, index } => {
                let (t, entry, words) = (time(t), entry(quantity, index), level.words());
                let violation = short(violation);
                write!(
                    f,
                    "at t = {t} no {words} satisfy all constraints: {entry} stays violated by {violation}; release a \
                     held coordinate, or remove a drive or a constraint that contradicts it"
                )
            }
            StepError::NotDriven { t, coordinate } => {
                let (t, entry) = (time(t), entry(Quantity::Coordinate, coordinate));
                write!(
                    f,
                    "at t = {t} {entry} is free to move: without dynamics every degree of freedom needs a drive"
                )
            }
            StepError::Incompatible { t, h, parameter, quantity, index } => {
                let step = Step(t, h);
                let (parameter, row) = (entry(Quantity::Sensitivity, parameter), entry(quantity, index));
                write!(
                    f,
                    "{step}: {parameter} is incompatible with constraints that depend on each other: a change \
                     of it violates {row}, which the others leave no freedom; remove that constraint, or do not \
                     differentiate by the parameter"
                )
            }
            StepError::NotDifferentiable { what } | StepError::Unsupported { what } => write!(f, "{what}"),
            StepError::Event { t, event, failure: EventFailure::Violates { row, by } } => {
                let (t, event, row) =
                    (time(t), entry(Quantity::Event, event), entry(Quantity::Holonomic, row));
                write!(
                    f,
                    "at t = {t}: {event} adds {row}, which is violated by {by:e} there: let the event happen where all constraints \
                     hold that it adds"
                )
            }
            StepError::Event { t, event, failure: EventFailure::Leaves { row, parameter } } => {
                let (t, event, row) =
                    (time(t), entry(Quantity::Event, event), entry(Quantity::Holonomic, row));
                let parameter = entry(Quantity::Sensitivity, parameter);
                write!(
                    f,
                    "at t = {t}: {event} adds {row}, which holds there, but not where the event happens after a change of \
                     {parameter}: there is no gradient; let the event happen where all constraints hold that it adds"
                )
            }
            StepError::Event { t, event, failure: EventFailure::Together { other } } => {
                let (t, event, other) =
                    (time(t), entry(Quantity::Event, event), entry(Quantity::Event, other));
                write!(
                    f,
                    "at t = {t}: {event} is an impact that happens together with {other}, and one undoes what the other does: impacts at one time \
                     have no definite result; change a parameter or the start a little so that one comes first"
                )
            }
            StepError::Event { t, event, failure: EventFailure::Parts { other, parameter } } => {
                let (t, event, other) =
                    (time(t), entry(Quantity::Event, event), entry(Quantity::Event, other));
                let parameter = entry(Quantity::Sensitivity, parameter);
                write!(
                    f,
                    "at t = {t}: {event} happens together with {other}, but not after a change of {parameter}: there is no gradient where events \
                     meet; change a parameter or the start a little so that one comes first"
                )
            }
            StepError::Event { t, event, failure: EventFailure::Displaces { row, parameter } } => {
                let (t, event, row) =
                    (time(t), entry(Quantity::Event, event), entry(Quantity::Holonomic, row));
                write!(
                    f,
                    "at t = {t}: {event} resets positions to where {row} holds, but not after a change of "
                )?;
                match parameter {
                    Some(parameter) => write!(f, "{}", entry(Quantity::Sensitivity, parameter))?,
                    None => write!(f, "some parameter")?,
                }
                write!(
                    f,
                    ": there is no gradient; reset all coordinates of the constraint by expressions that keep it"
                )
            }
            StepError::Event { t, event, failure: EventFailure::Unseen { row } } => {
                let (t, event, row) =
                    (time(t), entry(Quantity::Event, event), entry(Quantity::Holonomic, row));
                write!(
                    f,
                    "at t = {t}: {event} adds {row}, which holds there, but the function of the event does not tell the adjoint that it \
                     does after a change of parameters: take the direct method, or let the event happen where the constraint holds"
                )
            }
            StepError::Event { t, event, failure } => {
                write!(f, "at t = {}: {} {}", time(t), entry(Quantity::Event, event), failure.words())
            }
            StepError::TooManySteps { t, h, steps } => {
                let (t, h, steps) = (time(t), time(h), Count(steps, "step"));
                write!(
                    f,
                    "at t = {t}: {steps} reached no further, the last of {h}: a law chatters between two values there, or the motion is \
                     stiff; smooth what jumps, choose an implicit integrator, or allow more by `max_steps`"
                )
            }
            StepError::TooManyRejected { t, h, rejected, quantity, index } => {
                let (t, h, entry) = (time(t), time(h), entry(quantity, index));
                write!(
                    f,
                    "at t = {t} step control rejected {rejected} steps in a row, the last of {h}: {entry} chatters there; smooth \
                     what jumps, or allow more by `max_rejected`"
                )
            }
        }
    }
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.describe(&Unnamed).fmt(f)
    }
}

impl fmt::Display for StepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.describe(&Unnamed).fmt(f)
    }
}

impl core::error::Error for EvalError {}

impl core::error::Error for StepError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Eval { error, .. } => Some(error),
            _ => None,
        }
    }
}
