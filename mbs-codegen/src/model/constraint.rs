//! What binds coordinates together, what they are asked to minimise, and coordinates that belong to no joint.

use super::expression::{Multiplier, Scalar, Vector};
use super::ids::RowRef;
use super::mode::Activity;
use super::walk::Part;
use super::{Formulation, Simulation};
use crate::diagnostics::Span;

/// A constraint of the model file: rows that must vanish.
#[derive(Clone, Debug, PartialEq)]
pub struct Constraint {
    /// Name as written.
    pub name: String,
    /// What the rows depend on.
    pub kind: ConstraintKind,
    /// The rows; at least one.
    pub rows: Vec<ConstraintRow>,
    /// In which states they act.
    pub activity: Activity,
    /// Where the file declares it.
    pub span: Span,
}

/// What the rows of a constraint depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConstraintKind {
    /// Φ(z, t) = 0
    Holonomic,
    /// Ψ(z, zd, t) = A(z, t) zd + b(z, t) = 0
    Nonholonomic,
}

/// One equation.
#[derive(Clone, Debug, PartialEq)]
pub struct ConstraintRow {
    /// Full name: that of the constraint, with a suffix such as `.x` where there are several rows.
    pub name: String,
    /// What vanishes.
    pub value: Scalar,
}

/// A coordinate that belongs to no joint and moves no mass: a length, an angle, an auxiliary quantity.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    /// Name as written.
    pub name: String,
    /// Free text, may be empty.
    pub description: String,
    /// Unit as written, may be empty; not interpreted.
    pub unit: String,
    /// Its value at the beginning, an expression of parameters; a guess unless held.
    pub value: Scalar,
    /// Its rate at the beginning.
    pub rate: Scalar,
    /// Held during assembly.
    pub hold: bool,
    /// Whether it is the coordinate of a point, so that its start follows from the others.
    pub tied: bool,
    /// Where the file declares it.
    pub span: Span,
}

/// The start of a variable in a case.
#[derive(Clone, Debug, PartialEq)]
pub struct VariableStart {
    /// Its value at the beginning.
    pub value: Scalar,
    /// Its rate at the beginning.
    pub rate: Scalar,
    /// Held during assembly.
    pub hold: bool,
}

impl VariableStart {
    /// The variable's own.
    pub fn of(variable: &Variable) -> VariableStart {
        VariableStart { value: variable.value.clone(), rate: variable.rate.clone(), hold: variable.hold }
    }
}

/// What an objective that names multipliers of projections needs.
pub const PROJECTED: &str =
    "take `formulation: ali3p` with an implicit integrator and `projection: mass` or `tangent`";

/// ψ = w(t_F) + ∫ g dt + Σ a(t_e)
#[derive(Clone, Debug, PartialEq)]
pub struct Objective {
    /// Name as written.
    pub name: String,
    /// Free text, may be empty.
    pub description: String,
    /// Unit as written, may be empty; not interpreted.
    pub unit: String,
    /// g, integrated over the run.
    pub integrand: Scalar,
    /// w, taken at its end.
    pub terminal: Scalar,
    /// a, taken at events. The terminal term names the inputs that keep their values.
    pub at_events: Vec<EventTerm>,
    /// Where the file declares it.
    pub span: Span,
}

/// A term of an objective that is taken at an event, before the event acts.
#[derive(Clone, Debug, PartialEq)]
pub struct EventTerm {
    /// The name of the event.
    pub event: String,
    /// A function of positions, velocities, time, inputs and parameters.
    pub value: Scalar,
    /// At which occurrences.
    pub which: Which,
    /// Where the file names the event.
    pub span: Span,
}

/// At which occurrences of an event something is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The first.
    First,
    /// The last.
    Last,
    /// The sum over all of them.
    Each,
}

impl Which {
    /// The words for them in a model file.
    pub const WORDS: [(&'static str, Which); 3] =
        [("first", Which::First), ("last", Which::Last), ("each", Which::Each)];
}

impl Objective {
    /// Calls `f` for every part of integrand and terminal term.
    pub fn for_each_part<'e>(&'e self, f: &mut dyn FnMut(Part<'e>)) {
        self.integrand.for_each_part(f);
        self.terminal.for_each_part(f);
    }

    /// The multipliers that it names, and of which equations, as often as it names them.
    pub fn multipliers(&self) -> Vec<(Multiplier, RowRef)> {
        let mut rows = Vec::new();
        self.for_each_part(&mut |part| {
            if let Part::Scalar(Scalar::Multiplier(which, row)) = part {
                rows.push((*which, *row));
            }
        });
        rows
    }

    /// A multiplier of a projection that it names, if there is one.
    pub fn projection_multiplier(&self) -> Option<(Multiplier, RowRef)> {
        self.multipliers().into_iter().find(|(which, _)| which.is_of_projection())
    }

    /// What is wrong, if it names a multiplier of a projection and a run under these settings has no projections.
    pub fn refuses(&self, simulation: &Simulation, constrained: bool) -> Option<String> {
        let (which, _) = self.projection_multiplier().filter(|_| !simulation.projects(constrained))?;
        let run = match (simulation.is_in_joint_form(constrained), simulation.formulation) {
            (true, Formulation::Ali3p | Formulation::Penalty | Formulation::Index1) => {
                simulation.integrator.keyword()
            }
            (_, Formulation::Ali3p) => "projection: none",
            (_, formulation) => formulation.keyword(),
        };
        let (name, function) = (&self.name, which.function());
        Some(format!("objective `{name}` names `{function}(…)`, but there are no projections under `{run}`"))
    }

    /// Whether it names what a joint transmits.
    pub fn names_reactions(&self) -> bool {
        let mut found = false;
        self.for_each_part(&mut |part| {
            found |= matches!(part, Part::Vector(Vector::ReactionForce(_) | Vector::ReactionTorque(_)));
        });
        found
    }

    /// Whether it depends on multipliers, by name or through what joints transmit. Where equations follow from each
    /// other these are not unique: their values are those of the multipliers of least norm.
    pub fn depends_on_multipliers(&self) -> bool {
        self.names_reactions() || !self.multipliers().is_empty()
    }
}
