//! Finds what depends on parameters alone, so that it is computed once per parameter change and not once
//! per step.
//!
//! Enters: the graph and all specifications. Leaves: the expressions `prepare` computes, each with its
//! place. Holds afterwards: no bundle but `prepare` reads a parameter.

use super::Specification;
use crate::graph::{ArrayId, ExprId, Graph, Node};
use crate::symbols::GroupSet;
use std::collections::{HashMap, HashSet};

/// The expressions `prepare` computes.
#[derive(Clone, Debug, Default)]
pub struct Hoisted {
    expressions: Vec<ExprId>,
    places: HashMap<ExprId, u32>,
    arrays: HashMap<ArrayId, u32>,
}

impl Hoisted {
    /// Walks from the wanted results down to the first expressions that depend on parameters alone.
    pub(super) fn collect(graph: &Graph, specifications: &[&Specification]) -> Hoisted {
        let mut hoisted = Hoisted::default();
        let mut seen = HashSet::new();
        for specification in specifications {
            for wanted in &specification.results {
                // Last in, first out: reversed so that places follow the order of the results.
                let mut stack: Vec<ExprId> = wanted.expressions.iter().rev().copied().collect();
                while let Some(id) = stack.pop() {
                    if !seen.insert(id) {
                        continue;
                    }
                    if graph.depends(id).is_parameters_only() {
                        hoisted.scalar(id);
                        continue;
                    }
                    let mut operands = Vec::new();
                    match graph.node(id) {
                        Node::Gather(array, index) | Node::Locate(array, index) => {
                            operands.push(index);
                            if is_known(graph, array) {
                                hoisted.array(graph, array);
                            } else {
                                operands.extend(graph.array(array));
                            }
                        }
                        _ => graph.operands(id, |operand| operands.push(operand)),
                    }
                    stack.extend(operands.into_iter().rev());
                }
            }
        }
        hoisted
    }

    /// What `prepare` computes, in order.
    pub fn expressions(&self) -> &[ExprId] {
        &self.expressions
    }

    /// The place of an expression among the prepared values.
    pub(super) fn place(&self, id: ExprId) -> Option<u32> {
        self.places.get(&id).copied()
    }

    /// The place of an array's first element among the prepared values.
    pub(super) fn array_place(&self, id: ArrayId) -> Option<u32> {
        self.arrays.get(&id).copied()
    }

    fn scalar(&mut self, id: ExprId) {
        if !self.places.contains_key(&id) {
            self.places.insert(id, self.expressions.len() as u32);
            self.expressions.push(id);
        }
    }

    fn array(&mut self, graph: &Graph, array: ArrayId) {
        if self.arrays.contains_key(&array)
            || graph.array(array).iter().all(|&e| graph.constant_value(e).is_some())
        {
            return;
        }
        self.arrays.insert(array, self.expressions.len() as u32);
        // A gather needs its elements side by side, so they may stand here a second time.
        for &element in graph.array(array) {
            self.places.entry(element).or_insert(self.expressions.len() as u32);
            self.expressions.push(element);
        }
    }
}

/// Whether all elements are constants or depend on parameters alone.
fn is_known(graph: &Graph, array: ArrayId) -> bool {
    graph
        .array(array)
        .iter()
        .all(|&e| graph.depends(e) == GroupSet::NONE || graph.depends(e).is_parameters_only())
}
