//! Evaluates expressions node by node: every test's oracle.
//!
//! Enters: values of the symbols. Leaves: values of expressions. It reads the graph itself; bundles have
//! their own interpreter in [`crate::bundle`].

use super::number::{self, Number};
use super::{CallId, ExprId, Graph, Node, UnaryOp};
use crate::symbols::Group;
use std::collections::HashMap;

/// Values of the symbols of a graph.
#[derive(Clone, Debug, Default)]
pub struct Interpreter<N> {
    symbols: HashMap<(Group, u32), N>,
}

impl<N: Number> Interpreter<N> {
    /// No symbol has a value yet.
    pub fn new() -> Self {
        Interpreter { symbols: HashMap::new() }
    }

    /// Gives a symbol its value.
    pub fn set(&mut self, group: Group, index: u32, value: N) {
        self.symbols.insert((group, index), value);
    }

    /// Gives the first symbols of a group their values.
    pub fn set_all(&mut self, group: Group, values: &[N]) {
        for (i, &value) in values.iter().enumerate() {
            self.set(group, i as u32, value);
        }
    }

    /// The values of expressions. A symbol without a value is zero.
    pub fn evaluate(&self, graph: &Graph, roots: &[ExprId]) -> Vec<N> {
        let order = graph.reachable(roots);
        let mut values: HashMap<ExprId, N> = HashMap::with_capacity(order.len());
        let mut calls: HashMap<CallId, Vec<N>> = HashMap::new();
        for id in order {
            let value = match graph.node(id) {
                Node::Constant(bits) => N::constant(f64::from_bits(bits)),
                Node::Symbol(group, index) => self.symbols.get(&(group, index)).copied().unwrap_or_default(),
                Node::Unary(op, a) => N::unary(op, values[&a]),
                Node::Binary(op, a, b) => N::binary(op, values[&a], values[&b]),
                Node::Select(comparison, [a, b, x, y]) => {
                    if number::compare(comparison, values[&a], values[&b]) { values[&x] } else { values[&y] }
                }
                Node::Gather(array, index) => {
                    let elements = graph.array(array);
                    values[&elements[number::gather_index(values[&index].real(), elements.len())]]
                }
                Node::Locate(knots, x) => {
                    let knots: Vec<N> = graph.array(knots).iter().map(|k| values[k]).collect();
                    N::constant(number::locate(&knots, values[&x]) as f64)
                }
                Node::Output(call, index) => {
                    let outputs = calls.entry(call).or_insert_with(|| {
                        let call = graph.call(call);
                        let inputs: Vec<N> = call.arguments.iter().map(|a| values[a]).collect();
                        let mut outputs = vec![N::default(); call.kernel.outputs()];
                        call.kernel.evaluate(&inputs, &mut outputs);
                        outputs
                    });
                    outputs[index as usize]
                }
            };
            values.insert(id, value);
        }
        roots.iter().map(|root| values[root]).collect()
    }
}

impl Graph {
    /// Everything the roots need, operands first.
    pub fn reachable(&self, roots: &[ExprId]) -> Vec<ExprId> {
        let mut seen = vec![false; self.len()];
        let mut stack: Vec<ExprId> = roots.to_vec();
        while let Some(id) = stack.pop() {
            if !std::mem::replace(&mut seen[id.index()], true) {
                self.operands(id, |operand| stack.push(operand));
            }
        }
        (0..self.len() as u32).map(ExprId).filter(|id| seen[id.index()]).collect()
    }

    /// The node op(a), if it exists.
    pub fn find_unary(&self, op: UnaryOp, a: ExprId) -> Option<ExprId> {
        self.ids.get(&Node::Unary(op, a)).copied()
    }
}
