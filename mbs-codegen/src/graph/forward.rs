//! Forward differentiation: the exact derivative of expressions along one direction.

use super::{BinaryOp, CallId, Comparison, ExprId, Graph, Node, NodeMap, UnaryOp};
use crate::symbols::GroupSet;
use hashbrown::HashMap;

/// Derivatives along one direction, each node's computed once.
#[derive(Clone, Debug)]
pub struct Tangents {
    of: HashMap<ExprId, ExprId>,
    calls: HashMap<CallId, Vec<ExprId>>,
    /// The expressions taken as independent.
    independent: Vec<ExprId>,
}

impl Tangents {
    /// The direction: symbols (or any expressions taken as independent) and their tangents. All other
    /// symbols are constant.
    pub fn along(direction: &[(ExprId, ExprId)]) -> Tangents {
        Tangents {
            of: direction.iter().copied().collect(),
            calls: HashMap::new(),
            independent: direction.iter().map(|&(symbol, _)| symbol).collect(),
        }
    }

    /// ∂/∂symbol.
    pub fn with_respect_to(graph: &mut Graph, symbol: ExprId) -> Tangents {
        let one = graph.one();
        Tangents::along(&[(symbol, one)])
    }

    /// The derivative of an expression.
    pub fn of(&mut self, graph: &mut Graph, expr: ExprId) -> ExprId {
        let groups = graph.depends_of_all(&self.independent);
        for id in self.pending(graph, expr, groups) {
            let tangent = self.node(graph, id, groups);
            self.of.insert(id, tangent);
        }
        self.get(graph, expr)
    }

    /// The tangent of a node, or zero if it does not depend on the direction.
    fn get(&self, graph: &mut Graph, id: ExprId) -> ExprId {
        self.of.get(&id).copied().unwrap_or_else(|| graph.zero())
    }

    /// The nodes below `expr` that still need a tangent, operands first: those that depend on a group of the direction.
    fn pending(&self, graph: &Graph, expr: ExprId, groups: GroupSet) -> Vec<ExprId> {
        let mut entered = NodeMap::new(graph);
        let mut found = Vec::new();
        let mut stack = vec![expr];
        while let Some(id) = stack.pop() {
            if graph.depends(id).intersects(groups) && !self.of.contains_key(&id) && entered.mark(id) {
                found.push(id);
                graph.operands(id, |operand| stack.push(operand));
            }
        }
        found.sort_unstable();
        found
    }

    fn node(&mut self, graph: &mut Graph, id: ExprId, groups: GroupSet) -> ExprId {
        match graph.node(id) {
            Node::Constant(_) | Node::Symbol(..) | Node::Locate(..) => graph.zero(),
            Node::Unary(op, a) => {
                let da = self.get(graph, a);
                if graph.is(da, 0.0) {
                    return da;
                }
                let slope = graph.unary_slope(op, a, id);
                graph.mul(slope, da)
            }
            Node::Binary(op, a, b) => {
                let tangents = [a, b].map(|x| self.get(graph, x));
                graph.binary_tangent(op, [a, b], id, tangents)
            }
            Node::Select(comparison, [a, b, x, y]) => {
                let (dx, dy) = (self.get(graph, x), self.get(graph, y));
                graph.select(comparison, a, b, dx, dy)
            }
            Node::Gather(array, _) if !graph.array_depends(array).intersects(groups) => graph.zero(),
            Node::Gather(array, index) => {
                let elements = graph.array(array).to_vec();
                let tangents = elements.into_iter().map(|e| self.get(graph, e)).collect();
                let tangents = graph.new_array(tangents);
                graph.gather(tangents, index)
            }
            Node::Output(call_id, index) => {
                if !self.calls.contains_key(&call_id) {
                    let call = graph.call(call_id).clone();
                    let d: Vec<ExprId> = call.arguments.iter().map(|&a| self.get(graph, a)).collect();
                    let outputs = graph.call_kernel(call.kernel, call.arguments.clone());
                    let tangents = call.kernel.forward(graph, &call.arguments, &outputs, &d);
                    self.calls.insert(call_id, tangents);
                }
                self.calls[&call_id][index as usize]
            }
        }
    }
}

impl Graph {
    /// f'(a) for f(a) = `value`.
    pub(super) fn unary_slope(&mut self, op: UnaryOp, a: ExprId, value: ExprId) -> ExprId {
        let one = self.one();
        match op {
            UnaryOp::Neg => self.constant(-1.0),
            // 1/(2√a)
            UnaryOp::Sqrt => {
                // One reciprocal serves all derivatives that divide by the same root.
                let half = self.constant(0.5);
                let inverse = self.div(one, value);
                self.mul(half, inverse)
            }
            UnaryOp::Sin => self.cos(a),
            UnaryOp::Cos => {
                let sine = self.sin(a);
                self.neg(sine)
            }
            // 1 + tan²
            UnaryOp::Tan => {
                let square = self.square(value);
                self.add(one, square)
            }
            // ±1/√(1 − a²)
            UnaryOp::Asin | UnaryOp::Acos => {
                let square = self.square(a);
                let rest = self.sub(one, square);
                let root = self.sqrt(rest);
                let slope = self.div(one, root);
                if op == UnaryOp::Asin { slope } else { self.neg(slope) }
            }
            // 1/(1 + a²)
            UnaryOp::Atan => {
                let square = self.square(a);
                let sum = self.add(one, square);
                self.div(one, sum)
            }
            UnaryOp::Exp => value,
            UnaryOp::Ln => self.div(one, a),
            UnaryOp::Sinh => self.unary(UnaryOp::Cosh, a),
            UnaryOp::Cosh => self.unary(UnaryOp::Sinh, a),
            // 1 − tanh²
            UnaryOp::Tanh => {
                let square = self.square(value);
                self.sub(one, square)
            }
            UnaryOp::Abs => self.unary(UnaryOp::Sign, a),
            UnaryOp::Sign => self.zero(),
        }
    }

    /// The tangent of a node of two operands.
    fn binary_tangent(
        &mut self,
        op: BinaryOp,
        [a, b]: [ExprId; 2],
        value: ExprId,
        [da, db]: [ExprId; 2],
    ) -> ExprId {
        match op {
            BinaryOp::Add => self.add(da, db),
            BinaryOp::Sub => self.sub(da, db),
            // The comparison that selects the value also selects the branch of the derivative.
            BinaryOp::Min => self.select(Comparison::Less, b, a, db, da),
            BinaryOp::Max => self.select(Comparison::Less, a, b, db, da),
            _ => {
                let mut terms = Vec::new();
                for (place, d) in [da, db].into_iter().enumerate() {
                    if !self.is(d, 0.0) {
                        let slope = self.binary_slope(op, [a, b], value, place);
                        terms.push(self.mul(slope, d));
                    }
                }
                self.sum(&terms)
            }
        }
    }

    /// ∂f/∂(operand `place`) for f(a, b) = `value`.
    pub(super) fn binary_slope(
        &mut self,
        op: BinaryOp,
        [a, b]: [ExprId; 2],
        value: ExprId,
        place: usize,
    ) -> ExprId {
        let one = self.one();
        let first = place == 0;
        match op {
            BinaryOp::Add => one,
            BinaryOp::Sub => self.constant(if first { 1.0 } else { -1.0 }),
            BinaryOp::Mul => {
                if first {
                    b
                } else {
                    a
                }
            }
            // 1/b, −(a/b) (1/b)
            BinaryOp::Div => {
                let inverse = self.div(one, b);
                if first {
                    inverse
                } else {
                    let quotient = self.mul(value, inverse);
                    self.neg(quotient)
                }
            }
            // b a^(b−1), a^b ln a; the latter is 0 where a^b is, as at a = 0
            BinaryOp::Pow => {
                if first {
                    let less = self.sub(b, one);
                    let power = self.pow(a, less);
                    self.mul(b, power)
                } else {
                    let zero = self.zero();
                    let logarithm = self.unary(UnaryOp::Ln, a);
                    let slope = self.mul(value, logarithm);
                    self.select(Comparison::Equal, value, zero, zero, slope)
                }
            }
            // atan2(y, x): x/(x² + y²), −y/(x² + y²)
            BinaryOp::Atan2 => {
                let (y2, x2) = (self.square(a), self.square(b));
                let square = self.add(x2, y2);
                if first {
                    self.div(b, square)
                } else {
                    let slope = self.div(a, square);
                    self.neg(slope)
                }
            }
            BinaryOp::Min => {
                let zero = self.zero();
                let (x, y) = if first { (zero, one) } else { (one, zero) };
                self.select(Comparison::Less, b, a, x, y)
            }
            BinaryOp::Max => {
                let zero = self.zero();
                let (x, y) = if first { (zero, one) } else { (one, zero) };
                self.select(Comparison::Less, a, b, x, y)
            }
        }
    }
}
