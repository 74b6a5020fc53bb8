//! Operation counts per kind.

use super::{ExprId, Graph, Node, UnaryOp, Visited};
use std::collections::BTreeMap;
use std::fmt;

/// How many operations of each kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperationCounts {
    by_kind: BTreeMap<&'static str, usize>,
}

impl OperationCounts {
    /// Counts one operation.
    pub fn add(&mut self, kind: &'static str) {
        self.add_many(kind, 1);
    }

    /// Counts several.
    pub fn add_many(&mut self, kind: &'static str, count: usize) {
        *self.by_kind.entry(kind).or_default() += count;
    }

    /// How many of one kind.
    pub fn of(&self, kind: &str) -> usize {
        self.by_kind.get(kind).copied().unwrap_or(0)
    }

    /// All kinds with their counts, by name.
    pub fn kinds(&self) -> impl Iterator<Item = (&'static str, usize)> + '_ {
        self.by_kind.iter().map(|(&kind, &count)| (kind, count))
    }

    /// How many in all.
    pub fn total(&self) -> usize {
        self.by_kind.values().sum()
    }
}

impl fmt::Display for OperationCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.total())?;
        for (i, (kind, count)) in self.kinds().enumerate() {
            write!(f, "{}{count} {kind}", if i == 0 { " (" } else { ", " })?;
        }
        if self.total() > 0 { f.write_str(")") } else { Ok(()) }
    }
}

impl Graph {
    /// The operations of the roots; shared ones count once, and sin and cos of one argument are
    /// one operation.
    pub fn count(&self, roots: &[ExprId]) -> OperationCounts {
        let mut counts = OperationCounts::default();
        let mut angles = hashbrown::HashSet::new();
        let mut calls = hashbrown::HashSet::new();
        for id in self.reachable(roots) {
            match self.node(id) {
                Node::Constant(_) | Node::Symbol(..) => {}
                Node::Unary(UnaryOp::Sin | UnaryOp::Cos, angle) => {
                    if angles.insert(angle) {
                        counts.add("sin_cos");
                    }
                }
                Node::Unary(op, _) => counts.add(op.name()),
                Node::Binary(op, ..) => counts.add(op.name()),
                Node::Select(..) => counts.add("select"),
                Node::Gather(..) => counts.add("gather"),
                Node::Locate(..) => counts.add("locate"),
                Node::Output(call, _) => {
                    if calls.insert(call) {
                        counts.add(self.call(call).kernel.name());
                    }
                }
            }
        }
        counts
    }

    /// Number of nodes that must be computed in every call: those that do not depend on parameters alone. Half of the sums are assumed to be fused with
    /// products.
    pub fn operations_per_call(&self, roots: &[ExprId]) -> usize {
        let mut visited = Visited::new(self);
        let mut stack = roots.to_vec();
        let mut count = 0;
        while let Some(id) = stack.pop() {
            // What depends on parameters alone has no operands that do not.
            if !self.depends(id).is_parameters_only() && visited.enter(id) {
                count += usize::from(!matches!(self.node(id), Node::Constant(_) | Node::Symbol(..)));
                visited.operands(self, id, |operand| stack.push(operand));
            }
        }
        count
    }
}
