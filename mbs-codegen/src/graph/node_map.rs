//! A value for some nodes of a graph, during one traversal.
//!
//! There are thousands of small traversals of a large graph: the cost of one must not grow with the graph. So the memory is
//! as long as the graph, but it is taken over from the traversal before, and an entry counts only with the number of this one.

use super::{ExprId, Graph};
use std::cell::RefCell;

thread_local! {
    /// Memory that no traversal of this thread uses at the moment.
    static UNUSED: RefCell<Vec<Entries>> = const { RefCell::new(Vec::new()) };
}

#[derive(Debug, Default)]
struct Entries {
    /// The traversal that wrote each value, and the value.
    all: Vec<(u32, ExprId)>,
    traversal: u32,
}

/// Values of the nodes that a graph had when the traversal began.
#[derive(Debug)]
pub(crate) struct NodeMap {
    entries: Entries,
    len: usize,
}

impl NodeMap {
    /// No node has a value.
    pub(crate) fn new(graph: &Graph) -> NodeMap {
        let unused = UNUSED.with(|unused| unused.try_borrow_mut().ok()?.pop());
        let mut entries = unused.unwrap_or_default();
        if entries.traversal == u32::MAX {
            entries = Entries::default();
        }
        entries.traversal += 1;
        if entries.all.len() < graph.len() {
            // A growing graph: twice as much, so that the next traversals find enough.
            entries.all.resize(2 * graph.len(), (0, ExprId(0)));
        }
        NodeMap { entries, len: graph.len() }
    }

    /// The value of a node, if it has one.
    #[inline]
    pub(crate) fn get(&self, id: ExprId) -> Option<ExprId> {
        let &(traversal, value) = self.entries.all[..self.len].get(id.index())?;
        (traversal == self.entries.traversal).then_some(value)
    }

    /// Gives a node a value; false if it had one before.
    #[inline]
    pub(crate) fn set(&mut self, id: ExprId, value: ExprId) -> bool {
        let entry = &mut self.entries.all[..self.len][id.index()];
        let is_new = entry.0 != self.entries.traversal;
        *entry = (self.entries.traversal, value);
        is_new
    }

    /// Marks a node, where the value does not matter; false if it was marked before.
    #[inline]
    pub(crate) fn mark(&mut self, id: ExprId) -> bool {
        self.set(id, id)
    }

    /// The nodes that have a value, operands first.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = ExprId> + '_ {
        let these = self.entries.all[..self.len].iter().zip(0..);
        these.filter(|((traversal, _), _)| *traversal == self.entries.traversal).map(|(_, i)| ExprId(i))
    }
}

impl Drop for NodeMap {
    fn drop(&mut self) {
        let entries = std::mem::take(&mut self.entries);
        // While a thread ends there may be nothing left to put it to.
        let _ = UNUSED.try_with(|unused| unused.try_borrow_mut().map(|mut unused| unused.push(entries)));
    }
}
