//! Checks the invariants of a graph; runs after building or parsing one.

use super::{ExprId, Graph, Node};
use crate::symbols::GroupSet;

/// Why a graph is not valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation(pub String);

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Violation {}

/// Operands come before users, constants are finite, equal nodes are shared, arrays and kernel calls have the
/// right lengths, and the recorded dependences are correct.
pub fn verify(graph: &Graph) -> Result<(), Violation> {
    let fail = |id: ExprId, what: &str| Err(Violation(format!("node %{}: {what}", id.index())));
    for (id, node) in graph.nodes() {
        // Of two equal nodes, only one can be found.
        if graph.find(node) != Some(id) {
            return fail(id, "the same node stands elsewhere");
        }
        match node {
            Node::Constant(bits) if !f64::from_bits(bits).is_finite() => {
                return fail(id, "constant is not finite");
            }
            Node::Gather(array, _) | Node::Locate(array, _) if array.index() >= graph.array_count() => {
                return fail(id, "no such array");
            }
            Node::Gather(array, _) | Node::Locate(array, _) if graph.array(array).is_empty() => {
                return fail(id, "array is empty");
            }
            Node::Output(call, index) => {
                if call.index() >= graph.call_count() {
                    return fail(id, "no such kernel call");
                }
                let call = graph.call(call);
                if call.arguments.len() != call.kernel.inputs() {
                    return fail(id, "wrong number of kernel arguments");
                }
                if index as usize >= call.kernel.outputs() {
                    return fail(id, "no such kernel output");
                }
            }
            _ => {}
        }
        let mut depends = match node {
            Node::Symbol(group, _) => GroupSet::of(group),
            _ => GroupSet::NONE,
        };
        let mut ordered = true;
        graph.operands(id, |operand| {
            if operand < id {
                depends = depends.union(graph.depends(operand));
            } else {
                ordered = false;
            }
        });
        if !ordered {
            return fail(id, "an operand does not come before its user");
        }
        if depends != graph.depends(id) {
            return fail(id, "recorded dependences are not the true ones");
        }
    }
    Ok(())
}
