//! Finds the expressions of parameters alone, which are computed once per change of parameters instead of once
//! per step.
//!
//! Input: the graph and all specifications. Output: the expressions that `prepare` computes, with their
//! indices. Holds afterwards: no bundle except `prepare` reads a parameter.

use super::Specification;
use crate::graph::{ArrayId, ExprId, Graph, Node, Visited};
use hashbrown::HashMap;

/// The expressions `prepare` computes.
#[derive(Clone, Debug, Default)]
pub struct Hoisted {
    expressions: Vec<ExprId>,
    /// By node of the graph; empty if nothing is hoisted.
    places: Vec<Option<u32>>,
    arrays: HashMap<ArrayId, u32>,
}

impl Hoisted {
    /// Traverses the graph from the requested results down to the first expressions that depend on parameters alone.
    pub(super) fn collect(graph: &Graph, specifications: &[&Specification]) -> Hoisted {
        let mut hoisted = Hoisted { places: vec![None; graph.len()], ..Hoisted::default() };
        let mut seen = Visited::new(graph);
        for specification in specifications {
            let results = specification.results.iter().map(|wanted| &wanted.expressions);
            for expressions in results.chain(&specification.rolled.arrays) {
                // Last in, first out: reversed so that indices follow the order of the results.
                let mut stack: Vec<ExprId> = expressions.iter().rev().copied().collect();
                while let Some(id) = stack.pop() {
                    if !seen.enter(id) {
                        continue;
                    }
                    if graph.depends(id).is_parameters_only() {
                        hoisted.scalar(id);
                        continue;
                    }
                    let mut operands = Vec::new();
                    match graph.node(id) {
                        Node::Gather(array, index) | Node::Locate(array, index) if is_known(graph, array) => {
                            operands.push(index);
                            if seen.enter_array(array) {
                                hoisted.array(graph, array);
                            }
                        }
                        _ => seen.operands(graph, id, |operand| operands.push(operand)),
                    }
                    stack.extend(operands.into_iter().rev());
                }
            }
        }
        hoisted
    }

    /// The expressions that `prepare` computes, in order.
    pub fn expressions(&self) -> &[ExprId] {
        &self.expressions
    }

    /// Index of an expression in the prepared values.
    #[inline]
    pub(super) fn place(&self, id: ExprId) -> Option<u32> {
        self.places.get(id.index()).copied().flatten()
    }

    /// Index of an array's first element in the prepared values.
    pub(super) fn array_place(&self, id: ArrayId) -> Option<u32> {
        self.arrays.get(&id).copied()
    }

    fn scalar(&mut self, id: ExprId) {
        let place = &mut self.places[id.index()];
        if place.is_none() {
            *place = Some(self.expressions.len() as u32);
            self.expressions.push(id);
        }
    }

    fn array(&mut self, graph: &Graph, array: ArrayId) {
        if graph.array_depends(array).is_empty() {
            return;
        }
        self.arrays.insert(array, self.expressions.len() as u32);
        // A gather needs contiguous elements, so they may occur here a second time.
        for &element in graph.array(array) {
            // Elsewhere constants are not hoisted.
            if graph.constant_value(element).is_none() {
                self.places[element.index()].get_or_insert(self.expressions.len() as u32);
            }
            self.expressions.push(element);
        }
    }
}

/// Whether all elements are constants or depend on parameters alone.
fn is_known(graph: &Graph, array: ArrayId) -> bool {
    let depends = graph.array_depends(array);
    depends.is_empty() || depends.is_parameters_only()
}
