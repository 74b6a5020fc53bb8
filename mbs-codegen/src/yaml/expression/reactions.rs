//! Multipliers of equations and what joints transmit, by name.

use super::resolve::{Resolver, list};
use super::{Problem, Syntax, SyntaxKind};
use crate::diagnostics::nearest;
use crate::model::{JointId, Multiplier, RowRef, Scalar};
use crate::yaml::load::shorten;
use crate::yaml::scope::{RowNames, Thing, Uses};

type Found<T> = Result<T, Problem>;

const REACTIONS: Uses = Uses {
    parameters: false,
    time: false,
    inputs: false,
    state: false,
    velocities: false,
    accelerations: false,
    reactions: true,
    projections: false,
    bends: false,
    jumps: false,
};

impl Resolver<'_> {
    /// `multiplier(constraint)`, `multiplier(constraint.row)` or `multiplier(joint.row)`, and alike those of projections. A multiplier
    /// belongs to its equation as it is, so no mirror changes it.
    pub(super) fn multiplier(&mut self, e: &Syntax, which: Multiplier, of: &Syntax) -> Found<Scalar> {
        let uses = Uses { projections: which.is_of_projection(), ..REACTIONS };
        self.allow(e, uses, &format!("`{}(…)`", which.function()))?;
        let (head, member) = match &of.kind {
            SyntaxKind::Name(name) => (name, None),
            SyntaxKind::Path(head, member) => (head, Some(member.as_str())),
            _ => {
                return Err(Problem::new(of.at, "an equation is expected here")
                    .help("write `constraint`, `constraint.equation` or `joint.equation`"));
            }
        };
        match self.scope.thing(head) {
            Some(Thing::Constraint(constraint)) => {
                let rows = match &self.symbols.rows[constraint.index()] {
                    RowNames::Known(rows) => rows,
                    RowNames::Broken => return Err(Problem::reported()),
                    RowNames::Unread => {
                        return Err(Problem::new(
                            e.at,
                            "the multiplier of a constraint may not be an argument",
                        )
                        .help("name it in the objective itself"));
                    }
                };
                let names: Vec<&str> = rows.iter().map(String::as_str).collect();
                let row = row(of, &format!("constraint `{head}`"), head, member, &names)?;
                Ok(Scalar::Multiplier(which, RowRef::Constraint { constraint, row }))
            }
            Some(Thing::Joint(joint)) => {
                let Some(kind) = self.symbols.joints[joint.index()].kind else {
                    return Err(Problem::reported());
                };
                let row = row(of, &format!("joint `{head}`"), head, member, kind.closure_rows())?;
                self.cuts.push((of.at, joint));
                Ok(Scalar::Multiplier(which, RowRef::Joint { joint, row }))
            }
            Some(Thing::Broken) => Err(Problem::reported()),
            Some(_) => Err(Problem::new(of.at, format!("`{head}` is neither a constraint nor a joint"))),
            None => Err(self.unknown_thing(of, head, "constraint", |thing| {
                matches!(thing, Thing::Constraint(_) | Thing::Joint(_))
            })),
        }
    }

    /// The joint of `reaction_force(joint)` or `reaction_torque(joint)`.
    pub(super) fn reacting_joint(&mut self, e: &Syntax, function: &str, of: &Syntax) -> Found<JointId> {
        self.allow(e, REACTIONS, &format!("`{function}(…)`"))?;
        let SyntaxKind::Name(name) = &of.kind else {
            return Err(Problem::new(of.at, "the name of a joint is expected here"));
        };
        match self.scope.thing(name) {
            Some(Thing::Joint(id)) => Ok(id),
            Some(Thing::Broken) => Err(Problem::reported()),
            Some(Thing::Constraint(_)) => {
                Err(Problem::new(of.at, format!("`{name}` is a constraint, not a joint"))
                    .help("the multipliers of a constraint are `multiplier(…)`"))
            }
            Some(_) => Err(Problem::new(of.at, format!("`{name}` is not a joint"))),
            None => Err(self.unknown_thing(of, name, "joint", |thing| matches!(thing, Thing::Joint(_)))),
        }
    }
}

/// The place of an equation among those of a constraint or joint.
fn row(of: &Syntax, what: &str, head: &str, member: Option<&str>, rows: &[&str]) -> Found<u32> {
    let full = |suffix: &&str| match suffix.is_empty() {
        true => head.to_string(),
        false => format!("{head}.{suffix}"),
    };
    let found = match member {
        None if rows.len() == 1 => Some(0),
        None => None,
        Some(member) => rows.iter().position(|row| !row.is_empty() && *row == member),
    };
    if let Some(row) = found {
        return Ok(row as u32);
    }
    let names: Vec<String> = rows.iter().map(full).collect();
    let problem = match member {
        Some(member) => Problem::new(of.at, format!("{what} has no equation `{}`", shorten(member))),
        None => Problem::new(of.at, format!("{what} has {} equations", rows.len())),
    };
    let near = member.and_then(|member| nearest(member, rows.iter().copied()));
    Err(match (near, member) {
        _ if rows.is_empty() => problem.help("nothing binds a floating joint"),
        (Some(near), _) => problem.help(format!("did you mean `{head}.{near}`?")),
        (None, Some(_)) if rows.len() == 1 => problem.help(format!("its only one is `{}`", full(&rows[0]))),
        _ => problem.help(format!("name one of {}", list(names.iter().map(String::as_str)))),
    })
}
