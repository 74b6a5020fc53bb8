//! The expression graph: hash-consed, acyclic, scalar.
//!
//! Input: symbols and constants. Output: expressions by [`ExprId`], each structurally unique.
//! Holds always: a node's operands have smaller ids than the node; no constant is NaN or infinite; equal
//! nodes are one node. Nodes are created only by constructors, which fold, order and share.
//!
//! Beside scalar operations the graph knows two things, and no more: arrays with run-time gather, and
//! kernels, named functions of many outputs that declare their own exact derivatives.

pub mod algebra;
pub mod count;
mod fold;
mod forward;
pub mod interpret;
pub mod kernel;
mod node;
mod node_map;
pub mod number;
mod reverse;
mod rounding;
mod substitute;
pub mod text;
pub mod verify;
mod visited;

pub use algebra::{Mat3, Vec3};
pub use count::OperationCounts;
pub use forward::Tangents;
pub use interpret::Interpreter;
pub use kernel::Kernel;
pub use node::{ArrayId, BinaryOp, Call, CallId, Comparison, ExprId, Node, UnaryOp};
pub(crate) use node_map::NodeMap;
pub use number::{Complex, Number};
pub use reverse::gradient;
pub use rounding::ROUNDING;
pub(crate) use visited::Visited;

use crate::symbols::{Group, GroupSet};
use hashbrown::{DefaultHashBuilder, HashMap, HashTable};
use std::hash::BuildHasher;

/// All expressions of one model.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    nodes: Vec<Node>,
    depends: Vec<GroupSet>,
    /// By the hash of their nodes.
    ids: HashTable<ExprId>,
    hasher: DefaultHashBuilder,
    arrays: Vec<Vec<ExprId>>,
    array_ids: HashMap<Vec<ExprId>, ArrayId>,
    calls: Vec<Call>,
    call_ids: HashMap<Call, CallId>,
    /// What each array and the arguments of each call depend on: their readers are many.
    array_depends: Vec<GroupSet>,
    call_depends: Vec<GroupSet>,
}

impl Graph {
    /// An empty graph.
    pub fn new() -> Graph {
        Graph::default()
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The node behind an id.
    #[inline]
    pub fn node(&self, id: ExprId) -> Node {
        self.nodes[id.index()]
    }

    /// All nodes with their ids, operands first.
    pub fn nodes(&self) -> impl Iterator<Item = (ExprId, Node)> + '_ {
        self.nodes.iter().enumerate().map(|(i, n)| (ExprId(i as u32), *n))
    }

    /// The groups an expression depends on.
    #[inline]
    pub fn depends(&self, id: ExprId) -> GroupSet {
        self.depends[id.index()]
    }

    /// The groups that expressions depend on, taken together.
    pub fn depends_of_all<'a>(&self, expressions: impl IntoIterator<Item = &'a ExprId>) -> GroupSet {
        let all = expressions.into_iter().map(|&e| self.depends(e));
        all.fold(GroupSet::NONE, GroupSet::union)
    }

    /// The groups the elements of an array depend on.
    pub fn array_depends(&self, id: ArrayId) -> GroupSet {
        self.array_depends[id.index()]
    }

    /// The elements of an array.
    pub fn array(&self, id: ArrayId) -> &[ExprId] {
        &self.arrays[id.index()]
    }

    /// How many arrays there are.
    pub fn array_count(&self) -> usize {
        self.arrays.len()
    }

    /// A kernel call.
    pub fn call(&self, id: CallId) -> &Call {
        &self.calls[id.index()]
    }

    /// How many kernel calls there are.
    pub fn call_count(&self) -> usize {
        self.calls.len()
    }

    /// The value of a constant node.
    #[inline]
    pub fn constant_value(&self, id: ExprId) -> Option<f64> {
        match self.node(id) {
            Node::Constant(bits) => Some(f64::from_bits(bits)),
            _ => None,
        }
    }

    /// Whether the expression is the constant `value`.
    #[inline]
    pub fn is(&self, id: ExprId, value: f64) -> bool {
        self.constant_value(id) == Some(value)
    }

    /// A symbol.
    pub fn symbol(&mut self, group: Group, index: u32) -> ExprId {
        self.intern(Node::Symbol(group, index))
    }

    /// An array of expressions; never empty.
    pub fn new_array(&mut self, elements: Vec<ExprId>) -> ArrayId {
        assert!(!elements.is_empty(), "an array has at least one element");
        if let Some(&id) = self.array_ids.get(&elements) {
            return id;
        }
        let id = ArrayId(self.arrays.len() as u32);
        self.array_ids.insert(elements.clone(), id);
        self.array_depends.push(self.depends_of_all(&elements));
        self.arrays.push(elements);
        id
    }

    /// The outputs of a kernel applied to arguments.
    pub fn call_kernel(&mut self, kernel: Kernel, arguments: Vec<ExprId>) -> Vec<ExprId> {
        assert_eq!(arguments.len(), kernel.inputs(), "kernel `{}`", kernel.name());
        if let Some(outputs) = self.fold_kernel(kernel, &arguments) {
            return outputs;
        }
        let call = Call { kernel, arguments };
        let id = match self.call_ids.get(&call) {
            Some(&id) => id,
            None => {
                let id = CallId(self.calls.len() as u32);
                self.call_ids.insert(call.clone(), id);
                self.push_call(call);
                id
            }
        };
        (0..kernel.outputs() as u32).map(|i| self.intern(Node::Output(id, i))).collect()
    }

    fn push_call(&mut self, call: Call) {
        self.call_depends.push(self.depends_of_all(&call.arguments));
        self.calls.push(call);
    }

    /// The operands of a node, in order. Array elements and kernel arguments count as operands.
    #[inline]
    pub fn operands(&self, id: ExprId, mut visit: impl FnMut(ExprId)) {
        match self.node(id) {
            Node::Constant(_) | Node::Symbol(..) => {}
            Node::Unary(_, a) => visit(a),
            Node::Binary(_, a, b) => {
                visit(a);
                visit(b);
            }
            Node::Select(_, abxy) => abxy.into_iter().for_each(visit),
            Node::Gather(array, index) | Node::Locate(array, index) => {
                visit(index);
                self.array(array).iter().copied().for_each(visit);
            }
            Node::Output(call, _) => self.call(call).arguments.iter().copied().for_each(visit),
        }
    }

    /// The id of a node, if it exists.
    pub(crate) fn find(&self, node: Node) -> Option<ExprId> {
        let hash = self.hasher.hash_one(node);
        self.ids.find(hash, |id| self.nodes[id.index()] == node).copied()
    }

    /// The id of a node that is already folded and ordered. Only constructors call it.
    fn intern(&mut self, node: Node) -> ExprId {
        let hash = self.hasher.hash_one(node);
        if let Some(&id) = self.ids.find(hash, |id| self.nodes[id.index()] == node) {
            return id;
        }
        let id = ExprId(self.nodes.len() as u32);
        self.nodes.push(node);
        let depends = match node {
            Node::Symbol(group, _) => GroupSet::of(group),
            Node::Output(call, _) => self.call_depends[call.index()],
            Node::Gather(array, x) | Node::Locate(array, x) => {
                self.array_depends[array.index()].union(self.depends[x.index()])
            }
            _ => {
                let mut depends = GroupSet::NONE;
                self.operands(id, |operand| depends = depends.union(self.depends[operand.index()]));
                depends
            }
        };
        self.depends.push(depends);
        let (nodes, hasher) = (&self.nodes, &self.hasher);
        self.ids.insert_unique(hash, id, |id| hasher.hash_one(nodes[id.index()]));
        id
    }
}
