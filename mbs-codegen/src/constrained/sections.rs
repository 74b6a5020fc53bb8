//! Lists that bundles write: named runs of expressions, one after the other.

use crate::graph::{ExprId, Graph};
use hashbrown::HashMap;

/// A list by its sections, in order; `mbs-bundles` has their names.
#[derive(Clone, Debug, Default)]
pub struct Sections {
    /// Names and lengths.
    pub names: Vec<(&'static str, usize)>,
    /// All expressions.
    pub expressions: Vec<ExprId>,
}

impl Sections {
    /// Adds a section.
    pub(crate) fn push(&mut self, name: &'static str, entries: impl IntoIterator<Item = ExprId>) {
        let before = self.expressions.len();
        self.expressions.extend(entries);
        self.names.push((name, self.expressions.len() - before));
    }

    /// Adds the sections of another list.
    pub(crate) fn append(&mut self, other: Sections) {
        self.names.extend(other.names);
        self.expressions.extend(other.expressions);
    }

    /// A section; nothing of a name that the list does not have.
    pub(crate) fn of(&self, name: &str) -> &[ExprId] {
        let mut first = 0;
        for &(other, len) in &self.names {
            if other == name {
                return &self.expressions[first..first + len];
            }
            first += len;
        }
        &[]
    }

    /// The same list with expressions in the place of symbols.
    pub(crate) fn substitute(&mut self, g: &mut Graph, replacements: &HashMap<ExprId, ExprId>) {
        self.expressions = g.substitute(&self.expressions, replacements);
    }
}
