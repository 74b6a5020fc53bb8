//! Evaluates expressions node by node, as the reference of all tests.
//!
//! Input: values of the symbols. Output: values of expressions. It reads the graph itself; bundles have
//! their own interpreter in [`crate::bundle`].

use super::number::{self, Number};
use super::{CallId, ExprId, Graph, Node, UnaryOp, Visited};
use crate::symbols::Group;
use hashbrown::HashMap;

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
        let mut values = vec![N::default(); graph.len()];
        let mut calls: HashMap<CallId, Vec<N>> = HashMap::new();
        for id in order {
            let value = match graph.node(id) {
                Node::Constant(bits) => N::constant(f64::from_bits(bits)),
                Node::Symbol(group, index) => self.symbols.get(&(group, index)).copied().unwrap_or_default(),
                Node::Unary(op, a) => N::unary(op, values[a.index()]),
                Node::Binary(op, a, b) => N::binary(op, values[a.index()], values[b.index()]),
                Node::Select(comparison, [a, b, x, y]) => {
                    if number::compare(comparison, values[a.index()], values[b.index()]) {
                        values[x.index()]
                    } else {
                        values[y.index()]
                    }
                }
                Node::Gather(array, index) => {
                    let elements = graph.array(array);
                    values
                        [elements[number::gather_index(values[index.index()].real(), elements.len())].index()]
                }
                Node::Locate(knots, x) => {
                    let knots: Vec<N> = graph.array(knots).iter().map(|k| values[k.index()]).collect();
                    N::constant(number::locate(&knots, values[x.index()]) as f64)
                }
                Node::Output(call, index) => {
                    let outputs = calls.entry(call).or_insert_with(|| {
                        let call = graph.call(call);
                        let inputs: Vec<N> = call.arguments.iter().map(|a| values[a.index()]).collect();
                        let mut outputs = vec![N::default(); call.kernel.outputs()];
                        call.kernel.evaluate(&inputs, &mut outputs);
                        outputs
                    });
                    outputs[index as usize]
                }
            };
            values[id.index()] = value;
        }
        roots.iter().map(|root| values[root.index()]).collect()
    }
}

impl Graph {
    /// All nodes that the roots depend on, operands first.
    pub fn reachable(&self, roots: &[ExprId]) -> Vec<ExprId> {
        let mut visited = Visited::new(self);
        let mut stack: Vec<ExprId> = roots.to_vec();
        let mut entered = Vec::new();
        while let Some(id) = stack.pop() {
            if visited.enter(id) {
                entered.push(id);
                visited.operands(self, id, |operand| stack.push(operand));
            }
        }
        // Of a large part of the graph, a look at every node is faster than sorting.
        if entered.len() > self.len() / 8 {
            return visited.nodes().collect();
        }
        entered.sort_unstable();
        entered
    }

    /// The node op(a), if it exists.
    pub fn find_unary(&self, op: UnaryOp, a: ExprId) -> Option<ExprId> {
        self.find(Node::Unary(op, a))
    }
}
