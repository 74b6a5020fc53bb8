//! What happens at instants that the motion itself determines.

use super::expression::{Scalar, Vector};
use super::ids::{CoordinateRef, InputId};
use super::mode::Activity;
use super::walk::Part;
use crate::diagnostics::Span;
pub use mbs_bundles::{Direction, ImpactLaw};

/// An event: where its function crosses zero, its actions are taken.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Name as written.
    pub name: String,
    /// Free text, may be empty.
    pub description: String,
    /// g(t, z, v, vd, λ, u), which crosses zero.
    pub when: Scalar,
    /// Which crossings count.
    pub direction: Direction,
    /// In which states it counts.
    pub activity: Activity,
    /// It counts only while this is positive at the beginning of a step.
    pub armed: Option<Scalar>,
    /// Least time from one occurrence to the next that counts, s.
    pub minimum_interval: f64,
    /// Of events at the same instant the one with the larger number acts first; then the order of the file decides.
    pub priority: i32,
    /// The run ends here.
    pub stop: bool,
    /// What velocities keep and take.
    pub conditions: Vec<EventCondition>,
    /// With friction its conditions are an impact and the slip along which friction acts.
    pub law: ImpactLaw,
    /// Inputs that get another value, which they keep until an event sets them again.
    pub settings: Vec<(InputId, Scalar)>,
    /// Coordinates that get another value.
    pub placements: Vec<(CoordinateRef, Scalar)>,
    /// The states that it enters: its settings of their inputs are among the others.
    pub enters: Vec<InputId>,
    /// The input that always is the side of its function, if it is the switch of a branch.
    pub switch: Option<InputId>,
    /// Whether an objective has no value unless it happens.
    pub judged: bool,
    /// Where the file declares it.
    pub span: Span,
}

/// A condition on velocities after an event. An impulse along the condition's own direction makes it hold, together with all constraints:
/// M Δv + Φ_vᵀ Λ + Cᵀ μ = 0.
#[derive(Clone, Debug, PartialEq)]
pub enum EventCondition {
    /// The rate of a gap is reversed: γ⁺ = −e γ⁻ (Newton's law).
    Impact {
        /// A function of positions and time.
        gap: Scalar,
        /// e
        restitution: Scalar,
    },
    /// Friction acts along a rate, linear in velocities.
    Slip {
        /// The rate.
        rate: Scalar,
        /// μ
        friction: Scalar,
    },
    /// A rate, linear in velocities, gets a value.
    Reset {
        /// The rate.
        rate: Scalar,
        /// Its value after the event, from the state before it.
        to: Scalar,
    },
}

impl EventCondition {
    /// The two expressions it has, to be changed.
    pub(crate) fn expressions_mut(&mut self) -> [&mut Scalar; 2] {
        match self {
            EventCondition::Impact { gap, restitution } => [gap, restitution],
            EventCondition::Slip { rate, friction } => [rate, friction],
            EventCondition::Reset { rate, to } => [rate, to],
        }
    }

    /// The two expressions it has.
    pub fn expressions(&self) -> [&Scalar; 2] {
        match self {
            EventCondition::Impact { gap, restitution } => [gap, restitution],
            EventCondition::Slip { rate, friction } => [rate, friction],
            EventCondition::Reset { rate, to } => [rate, to],
        }
    }
}

impl Event {
    /// All its expressions.
    pub fn expressions(&self) -> impl Iterator<Item = &Scalar> {
        let conditions = self.conditions.iter().flat_map(EventCondition::expressions);
        let settings = self.settings.iter().map(|(_, value)| value);
        let placements = self.placements.iter().map(|(_, value)| value);
        std::iter::once(&self.when).chain(&self.armed).chain(conditions).chain(settings).chain(placements)
    }

    /// Whether its function names what a joint transmits.
    pub fn names_reactions(&self) -> bool {
        let mut found = false;
        self.when.for_each_part(&mut |part| {
            found |= matches!(part, Part::Vector(Vector::ReactionForce(_) | Vector::ReactionTorque(_)));
        });
        found
    }
}
