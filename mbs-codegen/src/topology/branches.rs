//! The tree as branches: maximal chains of links between forks.
//!
//! Input: a [`Tree`]. Output: its branches, parents first, and which of them share entries of the mass matrix.
//! Holds afterwards: every link is in exactly one branch; ground is a fork.

use super::Tree;

/// A chain of links, each the only one on the one before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// The branch it grows on; `None` on ground.
    pub parent: Option<usize>,
    /// Its links, from ground outward.
    pub links: Vec<usize>,
    /// How many velocities they have.
    pub velocities: usize,
}

/// The branches of a tree, in the order of their first links.
pub fn branches(tree: &Tree) -> Vec<Branch> {
    let mut children = vec![0usize; tree.links.len()];
    for parent in tree.links.iter().filter_map(|link| link.parent) {
        children[parent] += 1;
    }
    let mut branches: Vec<Branch> = Vec::new();
    let mut branch_of: Vec<usize> = Vec::with_capacity(tree.links.len());
    for (i, link) in tree.links.iter().enumerate() {
        let place = match link.parent {
            Some(p) if children[p] == 1 => branch_of[p],
            parent => {
                let parent = parent.map(|p| branch_of[p]);
                branches.push(Branch { parent, links: Vec::new(), velocities: 0 });
                branches.len() - 1
            }
        };
        branches[place].links.push(i);
        branches[place].velocities += link.v_range().len();
        branch_of.push(place);
    }
    branches
}

/// Whether velocities of two branches share entries of the mass matrix: one branch is an ancestor of the other.
pub fn are_coupled(branches: &[Branch], a: usize, b: usize) -> bool {
    let (inner, outer) = (a.min(b), a.max(b));
    let mut way = std::iter::successors(Some(outer), |&branch| branches[branch].parent);
    way.any(|branch| branch == inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forks_end_branches() {
        let text = "
mbs: 1
name: fork
bodies: {a: {mass: 1}, b: {mass: 1}, c: {mass: 1}, d: {mass: 1}, e: {mass: 1}}
joints:
  ja: {type: floating, parent: ground, child: a}
  jb: {type: spherical, parent: a, child: b}
  jc: {type: prismatic, parent: b, child: c, axis: [1, 0, 0]}
  jd: {type: prismatic, parent: b, child: d, axis: [1, 0, 0]}
  je: {type: prismatic, parent: d, child: e, axis: [1, 0, 0]}
";
        let (model, _) = crate::yaml::read("fork.yaml", text);
        let tree = super::super::span(&model.expect("a model"));
        let branches = branches(&tree);
        let shape: Vec<_> = branches.iter().map(|b| (b.parent, b.links.len(), b.velocities)).collect();
        assert_eq!(shape, [(None, 2, 9), (Some(0), 1, 1), (Some(0), 2, 2)]);
        assert!(are_coupled(&branches, 0, 2) && are_coupled(&branches, 1, 1));
        assert!(!are_coupled(&branches, 1, 2) && !are_coupled(&branches, 2, 1));
    }
}
