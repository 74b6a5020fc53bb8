//! Reverse differentiation: the exact gradient of one expression by many symbols, in one sweep.

use super::{CallId, Comparison, ExprId, Graph, Node, NodeMap};
use hashbrown::HashMap;
use std::collections::BTreeMap;

/// The derivatives of Σ adjointₖ · outputₖ by each of `symbols`.
pub fn gradient(graph: &mut Graph, outputs: &[(ExprId, ExprId)], symbols: &[ExprId]) -> Vec<ExprId> {
    let roots: Vec<ExprId> = outputs.iter().map(|&(output, _)| output).collect();
    let mut sweep =
        Sweep { adjoints: NodeMap::new(graph), calls: HashMap::new(), relevant: NodeMap::new(graph) };
    let order = sweep.mark_relevant(graph, &roots, symbols);
    for &(output, adjoint) in outputs {
        sweep.add(graph, output, adjoint);
    }
    // Ids fall from outputs to symbols, so an adjoint is complete when its node is the last one left.
    for id in order.into_iter().rev() {
        if let Some(adjoint) = sweep.adjoints.get(id) {
            sweep.node(graph, id, adjoint);
        }
    }
    let zero = graph.zero();
    symbols.iter().map(|&symbol| sweep.adjoints.get(symbol).unwrap_or(zero)).collect()
}

/// Arrays longer than this have no table of weights for each element: those would take the square of the length.
const LONG: usize = 32;

/// One if an index, cut off to whole numbers, means element k of n; otherwise zero.
fn chosen(graph: &mut Graph, index: ExprId, k: usize, n: usize) -> ExprId {
    let (zero, one) = (graph.zero(), graph.one());
    let next = graph.constant((k + 1) as f64);
    let below = if k + 1 < n { graph.select(Comparison::Less, index, next, one, zero) } else { one };
    let this = graph.constant(k as f64);
    if k > 0 { graph.select(Comparison::Less, index, this, zero, below) } else { below }
}

struct Sweep {
    adjoints: NodeMap,
    /// Calls: the first of their outputs that is relevant, which has the smallest id, and the adjoints of the outputs.
    calls: HashMap<CallId, (ExprId, BTreeMap<u32, ExprId>)>,
    /// Nodes that depend on one of the symbols: nothing else needs an adjoint.
    relevant: NodeMap,
}

impl Sweep {
    /// The relevant nodes, operands first, without the symbols.
    fn mark_relevant(&mut self, graph: &Graph, roots: &[ExprId], symbols: &[ExprId]) -> Vec<ExprId> {
        let mut is_symbol = NodeMap::new(graph);
        for &symbol in symbols {
            self.relevant.mark(symbol);
            is_symbol.mark(symbol);
        }
        let groups = graph.depends_of_all(symbols);
        let mut order = Vec::new();
        for id in graph.reachable(roots) {
            if !graph.depends(id).intersects(groups) {
                continue;
            }
            let mut depends = false;
            graph.operands(id, |operand| depends |= self.is_relevant(operand));
            if !depends {
                continue;
            }
            self.relevant.mark(id);
            if is_symbol.get(id).is_none() {
                order.push(id);
                if let Node::Output(call, _) = graph.node(id) {
                    self.calls.entry(call).or_insert((id, BTreeMap::new()));
                }
            }
        }
        order
    }

    fn is_relevant(&self, id: ExprId) -> bool {
        self.relevant.get(id).is_some()
    }

    fn add(&mut self, graph: &mut Graph, id: ExprId, adjoint: ExprId) {
        if !self.is_relevant(id) || graph.is(adjoint, 0.0) {
            return;
        }
        let sum = match self.adjoints.get(id) {
            Some(before) => graph.add(before, adjoint),
            None => adjoint,
        };
        self.adjoints.set(id, sum);
    }

    fn node(&mut self, graph: &mut Graph, id: ExprId, adjoint: ExprId) {
        match graph.node(id) {
            Node::Constant(_) | Node::Symbol(..) | Node::Locate(..) => {}
            Node::Unary(op, a) => {
                let slope = graph.unary_slope(op, a, id);
                let share = graph.mul(slope, adjoint);
                self.add(graph, a, share);
            }
            Node::Binary(op, a, b) => {
                for (place, operand) in [a, b].into_iter().enumerate() {
                    if self.is_relevant(operand) {
                        let slope = graph.binary_slope(op, [a, b], id, place);
                        let share = graph.mul(slope, adjoint);
                        self.add(graph, operand, share);
                    }
                }
            }
            Node::Select(comparison, [a, b, x, y]) => {
                let zero = graph.zero();
                let to_x = graph.select(comparison, a, b, adjoint, zero);
                let to_y = graph.select(comparison, a, b, zero, adjoint);
                self.add(graph, x, to_x);
                self.add(graph, y, to_y);
            }
            Node::Gather(array, index) => {
                let elements = graph.array(array).to_vec();
                let (zero, one) = (graph.zero(), graph.one());
                if elements.len() > LONG {
                    for (k, element) in elements.iter().enumerate() {
                        if self.is_relevant(*element) {
                            let weight = chosen(graph, index, k, elements.len());
                            let share = graph.mul(weight, adjoint);
                            self.add(graph, *element, share);
                        }
                    }
                    return;
                }
                // An element may stand in the array more than once: its weight is a table over the index.
                let mut places: BTreeMap<ExprId, Vec<ExprId>> = BTreeMap::new();
                for (k, &element) in elements.iter().enumerate() {
                    if self.is_relevant(element) {
                        places.entry(element).or_insert_with(|| vec![zero; elements.len()])[k] = one;
                    }
                }
                for (element, weights) in places {
                    let weights = graph.new_array(weights);
                    let weight = graph.gather(weights, index);
                    let share = graph.mul(weight, adjoint);
                    self.add(graph, element, share);
                }
            }
            Node::Output(call_id, index) => {
                let Some((first, adjoints)) = self.calls.get_mut(&call_id) else { return };
                adjoints.insert(index, adjoint);
                let zero = graph.zero();
                if *first != id {
                    // The whole call waits for its first output.
                    if self.adjoints.get(*first).is_none() {
                        self.adjoints.set(*first, zero);
                    }
                    return;
                }
                let parts = std::mem::take(adjoints);
                let call = graph.call(call_id).clone();
                let outputs = graph.call_kernel(call.kernel, call.arguments.clone());
                let adjoints: Vec<ExprId> =
                    (0..outputs.len() as u32).map(|i| parts.get(&i).copied().unwrap_or(zero)).collect();
                let shares = call.kernel.reverse(graph, &call.arguments, &outputs, &adjoints);
                for (argument, share) in call.arguments.into_iter().zip(shares) {
                    self.add(graph, argument, share);
                }
            }
        }
    }
}
