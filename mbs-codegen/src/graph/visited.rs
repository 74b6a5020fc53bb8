//! The nodes visited by a traversal of the graph. The elements of an array and the arguments of a kernel call are
//! visited once, regardless of how many gathers or outputs read them: a spline of n knots has n outputs of 4n arguments.

use super::{ArrayId, ExprId, Graph, Node, NodeMap};

/// Nodes, arrays and calls that were entered.
pub(crate) struct Visited {
    nodes: NodeMap,
    arrays: Vec<bool>,
    calls: Vec<bool>,
}

impl Visited {
    /// Nothing yet.
    pub(crate) fn new(graph: &Graph) -> Visited {
        Visited {
            nodes: NodeMap::new(graph),
            arrays: vec![false; graph.array_count()],
            calls: vec![false; graph.call_count()],
        }
    }

    /// Enters a node; false if it was entered before.
    #[inline]
    pub(crate) fn enter(&mut self, id: ExprId) -> bool {
        self.nodes.mark(id)
    }

    /// Enters an array; false if it was entered before.
    pub(crate) fn enter_array(&mut self, id: ArrayId) -> bool {
        !std::mem::replace(&mut self.arrays[id.index()], true)
    }

    /// The nodes that were entered, operands first.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = ExprId> + '_ {
        self.nodes.nodes()
    }

    /// The operands of a node, without those of arrays and calls that were visited before.
    #[inline]
    pub(crate) fn operands(&mut self, graph: &Graph, id: ExprId, mut visit: impl FnMut(ExprId)) {
        let again = match graph.node(id) {
            Node::Gather(array, index) | Node::Locate(array, index) => {
                let again = !self.enter_array(array);
                if again {
                    visit(index);
                }
                again
            }
            Node::Output(call, _) => std::mem::replace(&mut self.calls[call.index()], true),
            _ => false,
        };
        if !again {
            graph.operands(id, visit);
        }
    }
}
