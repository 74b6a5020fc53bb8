//! How much of an expression's value may be rounding: a running error bound, as an expression.
//!
//! Every operation adds half a unit in its last place, and passes on what its operands bring:
//! size(f) = |f| + Σ |∂f/∂a| size(a), size(x) = |x| for symbols and constants. The value differs from the exact one by
//! at most [`ROUNDING`] times its size, to first order.

use super::{ExprId, Graph, Node, UnaryOp};
use hashbrown::HashMap;

/// One unit in the last place per operation: half for arithmetic, up to one for elementary functions.
pub const ROUNDING: f64 = f64::EPSILON;

impl Graph {
    /// The sizes of expressions: see the module. Symbols may have larger sizes than their values; of branches the one
    /// that is taken counts.
    pub fn sizes(&mut self, roots: &[ExprId], of_symbols: &HashMap<ExprId, ExprId>) -> Vec<ExprId> {
        let mut sizes = of_symbols.clone();
        for id in self.reachable(roots) {
            if sizes.contains_key(&id) {
                continue;
            }
            let magnitude = self.abs(id);
            let size = match self.node(id) {
                Node::Unary(UnaryOp::Neg | UnaryOp::Abs, a) => sizes[&a],
                Node::Unary(op, a) => {
                    let slope = self.unary_slope(op, a, id);
                    let passed = self.passed(slope, sizes[&a]);
                    self.add(magnitude, passed)
                }
                Node::Binary(op, a, b) => {
                    let passed = [(a, 0), (b, 1)].map(|(operand, place)| {
                        let slope = self.binary_slope(op, [a, b], id, place);
                        self.passed(slope, sizes[&operand])
                    });
                    let passed = self.add(passed[0], passed[1]);
                    self.add(magnitude, passed)
                }
                Node::Select(comparison, [a, b, x, y]) => self.select(comparison, a, b, sizes[&x], sizes[&y]),
                Node::Gather(array, index) => {
                    let elements = self.array(array).iter().map(|e| sizes[e]).collect();
                    let elements = self.new_array(elements);
                    self.gather(elements, index)
                }
                Node::Constant(_) | Node::Symbol(..) | Node::Locate(..) | Node::Output(..) => magnitude,
            };
            sizes.insert(id, size);
        }
        roots.iter().map(|root| sizes[root]).collect()
    }

    fn passed(&mut self, slope: ExprId, size: ExprId) -> ExprId {
        let slope = self.abs(slope);
        self.mul(slope, size)
    }
}
