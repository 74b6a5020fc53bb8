//! Replaces symbols in expressions, folding again on the way.

use super::{ExprId, Graph, Node, NodeMap};
use hashbrown::HashMap;

impl Graph {
    /// Substitutes `replacements` in the expressions; expressions without any of them are unchanged.
    pub fn substitute(&mut self, roots: &[ExprId], replacements: &HashMap<ExprId, ExprId>) -> Vec<ExprId> {
        // An expression that does not depend on the group of a replaced symbol cannot contain it.
        let groups = self.depends_of_all(replacements.keys());
        let mut new = NodeMap::new(self);
        let mut found = Vec::new();
        let mut stack = roots.to_vec();
        while let Some(id) = stack.pop() {
            if !self.depends(id).intersects(groups) {
                continue;
            }
            let replacement = replacements.get(&id);
            if new.set(id, replacement.copied().unwrap_or(id)) && replacement.is_none() {
                found.push(id);
                self.operands(id, |operand| stack.push(operand));
            }
        }
        // Operands first.
        found.sort_unstable();
        for id in found {
            let replaced = self.rebuild(id, &new);
            new.set(id, replaced);
        }
        roots.iter().map(|root| new.get(*root).unwrap_or(*root)).collect()
    }

    fn rebuild(&mut self, id: ExprId, new: &NodeMap) -> ExprId {
        let new = |id: ExprId| new.get(id).unwrap_or(id);
        let mut changed = false;
        self.operands(id, |operand| changed |= new(operand) != operand);
        if !changed {
            return id;
        }
        match self.node(id) {
            Node::Constant(_) | Node::Symbol(..) => id,
            Node::Unary(op, a) => self.unary(op, new(a)),
            Node::Binary(op, a, b) => self.binary(op, new(a), new(b)),
            Node::Select(comparison, [a, b, x, y]) => self.select(comparison, new(a), new(b), new(x), new(y)),
            Node::Gather(array, index) => {
                let elements = self.array(array).iter().map(|&e| new(e)).collect();
                let array = self.new_array(elements);
                self.gather(array, new(index))
            }
            Node::Locate(array, x) => {
                let elements = self.array(array).iter().map(|&e| new(e)).collect();
                let array = self.new_array(elements);
                self.locate(array, new(x))
            }
            Node::Output(call, index) => {
                let call = self.call(call);
                let kernel = call.kernel;
                let arguments = call.arguments.iter().map(|&a| new(a)).collect();
                self.call_kernel(kernel, arguments)[index as usize]
            }
        }
    }
}
