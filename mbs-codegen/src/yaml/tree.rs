//! Whether the joints form a tree with `ground` at its root.
//!
//! Reports: closed loops, joints whose parent and child are the wrong way round, bodies no joint connects to ground.

use std::collections::VecDeque;

use super::expression::resolve::list;
use super::reader::Reader;
use crate::model::Joint;

impl Reader<'_> {
    /// Checks the joints.
    pub(super) fn check_tree(&mut self, joints: &[Joint]) {
        let n = self.bodies.len();
        let mut forest = Forest { groups: (0..n).collect(), edges: vec![Vec::new(); n] };
        for (j, joint) in joints.iter().enumerate() {
            let (a, b) = (joint.parent.body.index(), joint.child.body.index());
            if a == b || b == 0 || a >= n || b >= n {
                continue; // reported where the joint is read
            }
            if forest.join(a, b) {
                forest.edges[a].push((b, j));
                forest.edges[b].push((a, j));
            } else {
                self.report_loop(joints, &forest, j);
            }
        }
        self.check_directions_of_joints(joints, &forest);
    }

    fn report_loop(&mut self, joints: &[Joint], forest: &Forest, closing: usize) {
        let joint = &joints[closing];
        let (a, b) = (joint.parent.body.index(), joint.child.body.index());
        let path = forest.path(a, b);
        let mut text = format!("`{}`", self.bodies[a].name);
        for (i, (body, j)) in path.iter().enumerate() {
            if i >= 20 {
                text.push_str(" – …");
                break;
            }
            text.push_str(&format!(" – {} – `{}`", joints[*j].name, self.bodies[*body].name));
        }
        self.diagnostics
            .error(
                joint.span,
                format!(
                    "joint `{}` closes a loop: {text} – {} – `{}`; closed loops are not yet supported",
                    joint.name, joint.name, self.bodies[a].name
                ),
            )
            .help("each body needs exactly one joint whose child it is; remove one joint of the loop");
    }

    fn check_directions_of_joints(&mut self, joints: &[Joint], forest: &Forest) {
        let mut reached = vec![false; self.bodies.len()];
        let mut queue = VecDeque::from([0]);
        reached[0] = true;
        while let Some(body) = queue.pop_front() {
            for &(next, j) in &forest.edges[body] {
                if reached[next] {
                    continue;
                }
                reached[next] = true;
                queue.push_back(next);
                let joint = &joints[j];
                if joint.child.body.index() != next {
                    let (near, far) = (&self.bodies[body].name, &self.bodies[next].name);
                    let message = format!(
                        "joint `{}` has `{far}` as parent, but `{near}` is the one connected to ground",
                        joint.name
                    );
                    self.diagnostics.error(joint.span, message).help("swap `parent` and `child`");
                }
            }
        }
        if self.joints_incomplete {
            return; // a joint that could not be read may be what connects them
        }
        // One message for each group of bodies that hang together.
        for body in 1..self.bodies.len() {
            if reached[body] {
                continue;
            }
            let mut group = vec![body];
            reached[body] = true;
            let mut next = 0;
            while next < group.len() {
                for &(other, _) in &forest.edges[group[next]] {
                    if !reached[other] {
                        reached[other] = true;
                        group.push(other);
                    }
                }
                next += 1;
            }
            group.sort_unstable();
            let names = list(group.iter().map(|b| self.bodies[*b].name.as_str()));
            let message = if group.len() == 1 {
                format!("body {names} is not connected to `ground`")
            } else {
                format!("the bodies {names} are not connected to `ground`")
            };
            let span = self.bodies[body].span;
            self.diagnostics
                .error(span, message)
                .help("connect with a joint, for example one of type `floating` with `parent: ground`");
        }
    }
}

/// Bodies joined so far, without loops.
struct Forest {
    /// Union-find: a body's way to the representative of its group.
    groups: Vec<usize>,
    /// Neighbours of each body and the joints that lead there.
    edges: Vec<Vec<(usize, usize)>>,
}

impl Forest {
    fn group(&mut self, mut body: usize) -> usize {
        while self.groups[body] != body {
            self.groups[body] = self.groups[self.groups[body]];
            body = self.groups[body];
        }
        body
    }

    /// Joins two groups; `false` if they are one already.
    fn join(&mut self, a: usize, b: usize) -> bool {
        let (a, b) = (self.group(a), self.group(b));
        self.groups[b] = a;
        a != b
    }

    /// The way from one body to another: the bodies after the first, and the joints that lead to them.
    fn path(&self, from: usize, to: usize) -> Vec<(usize, usize)> {
        let mut came: Vec<Option<(usize, usize)>> = vec![None; self.edges.len()];
        let mut queue = VecDeque::from([from]);
        while let Some(body) = queue.pop_front() {
            if body == to {
                break;
            }
            for &(next, j) in &self.edges[body] {
                if next != from && came[next].is_none() {
                    came[next] = Some((body, j));
                    queue.push_back(next);
                }
            }
        }
        let mut path = Vec::new();
        let mut body = to;
        while let Some((before, j)) = came[body] {
            path.push((body, j));
            body = before;
        }
        path.reverse();
        path
    }
}
