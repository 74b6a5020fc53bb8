//! Which joints carry the tree, and which are cut.
//!
//! Input: a [`Model`]. Output: for each body the joint of the tree of which it is the child, and what keeps
//! the joints from having such a tree.
//!
//! A joint of the tree is walked from parent to child only. Among the trees that keep every joint that must
//! stay and leave out every joint that must be cut, the one with the fewest closure equations is wanted, then
//! the one with the shortest chains (the sum of the links' depths), then the one whose joints stand first in
//! the file. The search starts from the breadth-first tree and exchanges, for one body at a time, its joint
//! for a cut one with the same child as long as that is better: every exchange is a strict improvement, so
//! the search ends; its work is bounded besides.

use super::obstacles::{self, Obstacle};
use crate::model::{BodyId, JointId, Model, Reference, User};
use std::collections::VecDeque;

/// Steps of the search for a better tree: candidates tried, links walked or renumbered. A model of a thousand
/// bodies and loops needs about a million.
const SEARCH: usize = 20_000_000;

/// Why a joint may not be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// `cut: false`
    File,
    /// One of its coordinates or velocities is named.
    Used(User),
    /// A start value is held.
    Held,
    /// A start value is held in a case, by its place.
    HeldInCase(usize),
}

/// Whether a joint may or must be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// In the tree or cut, as the search finds.
    Free,
    /// In the tree.
    Kept(Keep),
    /// Cut.
    Cut,
}

/// A choice of tree joints.
#[derive(Clone, Debug, PartialEq)]
pub struct Arborescence {
    /// The joint that carries each body; `None` for ground and for bodies that nothing reaches.
    pub joint_of_body: Vec<Option<JointId>>,
    /// Why there is no such tree; empty if there is one.
    pub obstacles: Vec<Obstacle>,
}

/// Chooses the joints of the tree.
pub fn arborescence(model: &Model) -> Arborescence {
    let mut obstacles = Vec::new();
    let roles = roles(model, &mut obstacles);
    let carriers = carriers(model, &roles);
    let joint_of_body = breadth_first(model, &carriers);
    obstacles::of_unreached(model, &roles, &carriers, &joint_of_body, &mut obstacles);
    let mut search = Search::new(model, carriers, joint_of_body);
    search.run();
    Arborescence { joint_of_body: search.joint_of_body, obstacles }
}

/// For each joint why it may not be cut, if so.
fn keeps(model: &Model) -> Vec<Option<Keep>> {
    let mut keeps: Vec<Option<Keep>> =
        model.joints.iter().map(|joint| (joint.cut == Some(false)).then_some(Keep::File)).collect();
    let mut keep = |joint: JointId, why| {
        if let Some(slot) = keeps.get_mut(joint.index()) {
            slot.get_or_insert(why);
        }
    };
    model.for_each_reference(&mut |reference: Reference, user| {
        if let Some(joint) = reference.joint() {
            keep(joint, Keep::Used(user));
        }
    });
    for (i, joint) in model.joints.iter().enumerate() {
        if joint.start.hold.contains(&true) {
            keep(JointId(i as u32), Keep::Held);
        }
    }
    for (i, case) in model.cases.iter().enumerate() {
        for (joint, start) in &case.start {
            if start.hold.contains(&true) {
                keep(*joint, Keep::HeldInCase(i));
            }
        }
    }
    keeps
}

/// Whether each joint may or must be cut, after requirements that cannot be met are noted and dropped.
fn roles(model: &Model, obstacles: &mut Vec<Obstacle>) -> Vec<Role> {
    let in_loop = obstacles::joints_in_loops(model);
    let mut kept_of_body: Vec<Option<(JointId, Keep)>> = vec![None; model.bodies.len()];
    let mut roles = Vec::with_capacity(model.joints.len());
    for (i, (joint, keep)) in model.joints.iter().zip(keeps(model)).enumerate() {
        let id = JointId(i as u32);
        let child = joint.child.body;
        let role = match (joint.cut, keep) {
            (Some(true), _) if !in_loop[i] => {
                obstacles.push(Obstacle::NoLoop { joint: id });
                Role::Free
            }
            (Some(true), Some(keep)) => {
                obstacles.push(Obstacle::CutButNeeded { joint: id, keep });
                Role::Cut
            }
            (Some(true), None) => Role::Cut,
            (_, None) => Role::Free,
            (_, Some(keep)) if child == BodyId::GROUND => {
                // Ground has no joint of the tree. Without a loop the joint is the wrong way round, which is reported.
                if in_loop[i] {
                    obstacles.push(Obstacle::KeptOnGround { joint: id, keep });
                }
                Role::Free
            }
            (_, Some(keep)) => match kept_of_body.get_mut(child.index()) {
                Some(Some(first)) => {
                    obstacles.push(Obstacle::BothKept { kept: [*first, (id, keep)] });
                    Role::Free
                }
                Some(slot) => {
                    *slot = Some((id, keep));
                    Role::Kept(keep)
                }
                None => Role::Free,
            },
        };
        roles.push(role);
    }
    roles
}

/// For each body the joints that may carry it, in the order of the file.
fn carriers(model: &Model, roles: &[Role]) -> Vec<Vec<JointId>> {
    let mut carriers: Vec<Vec<JointId>> = vec![Vec::new(); model.bodies.len()];
    let mut fixed = vec![false; model.bodies.len()];
    for (i, (joint, role)) in model.joints.iter().zip(roles).enumerate() {
        let (parent, child) = (joint.parent.body, joint.child.body);
        if child == BodyId::GROUND || child == parent || *role == Role::Cut {
            continue;
        }
        let c = child.index();
        if matches!(role, Role::Kept(_)) {
            carriers[c] = vec![JointId(i as u32)];
            fixed[c] = true;
        } else if !fixed[c] {
            carriers[c].push(JointId(i as u32));
        }
    }
    carriers
}

/// The tree that reaches every body by the fewest joints.
fn breadth_first(model: &Model, carriers: &[Vec<JointId>]) -> Vec<Option<JointId>> {
    let mut leaving: Vec<Vec<JointId>> = vec![Vec::new(); model.bodies.len()];
    let mut usable: Vec<JointId> = carriers.iter().flatten().copied().collect();
    usable.sort_unstable();
    for id in usable {
        leaving[model.joints[id.index()].parent.body.index()].push(id);
    }
    let mut joint_of_body = vec![None; model.bodies.len()];
    let mut queue = VecDeque::from([BodyId::GROUND]);
    while let Some(body) = queue.pop_front() {
        for &id in &leaving[body.index()] {
            let child = model.joints[id.index()].child.body;
            if joint_of_body[child.index()].is_none() {
                joint_of_body[child.index()] = Some(id);
                queue.push_back(child);
            }
        }
    }
    joint_of_body
}

/// A tree that is made better step by step.
struct Search<'a> {
    model: &'a Model,
    carriers: Vec<Vec<JointId>>,
    joint_of_body: Vec<Option<JointId>>,
    children: Vec<Vec<BodyId>>,
    /// Links between a body and ground.
    depth: Vec<i64>,
    /// Bodies carried by a body, itself included.
    size: Vec<i64>,
    work: usize,
}

impl<'a> Search<'a> {
    fn new(model: &'a Model, carriers: Vec<Vec<JointId>>, joint_of_body: Vec<Option<JointId>>) -> Self {
        let n = model.bodies.len();
        let mut search = Search {
            model,
            carriers,
            joint_of_body,
            children: vec![Vec::new(); n],
            depth: vec![0; n],
            size: vec![1; n],
            work: SEARCH,
        };
        for body in (1..n as u32).map(BodyId) {
            if let Some(parent) = search.parent(body) {
                search.children[parent.index()].push(body);
            }
        }
        for body in search.renumber(BodyId::GROUND).into_iter().rev() {
            if let Some(parent) = search.parent(body) {
                search.size[parent.index()] += search.size[body.index()];
            }
        }
        search.work = SEARCH;
        search
    }

    fn parent(&self, body: BodyId) -> Option<BodyId> {
        self.joint_of_body[body.index()].map(|id| self.model.joints[id.index()].parent.body)
    }

    /// Sets the depths of what a body carries; these bodies, itself first and each after its parent.
    fn renumber(&mut self, body: BodyId) -> Vec<BodyId> {
        let mut order = vec![body];
        let mut next = 0;
        while next < order.len() {
            let body = order[next];
            next += 1;
            self.work = self.work.saturating_sub(1);
            for &child in &self.children[body.index()] {
                self.depth[child.index()] = self.depth[body.index()] + 1;
                order.push(child);
            }
        }
        order
    }

    /// Adds to the sizes of a body and of all that carry it.
    fn grow(&mut self, mut body: Option<BodyId>, by: i64) {
        while let Some(b) = body {
            self.work = self.work.saturating_sub(1);
            self.size[b.index()] += by;
            body = self.parent(b);
        }
    }

    fn run(&mut self) {
        let choices: Vec<(BodyId, JointId)> = (1..self.carriers.len() as u32)
            .map(BodyId)
            .filter(|body| self.carriers[body.index()].len() > 1)
            .flat_map(|body| self.carriers[body.index()].iter().map(move |id| (body, *id)))
            .collect();
        let mut changed = true;
        while changed && self.work > 0 {
            changed = false;
            for &(body, candidate) in &choices {
                if self.is_better(body, candidate) {
                    self.exchange(body, candidate);
                    changed = true;
                }
            }
        }
    }

    /// Whether the tree is better if `candidate` carries the body.
    fn is_better(&mut self, body: BodyId, candidate: JointId) -> bool {
        self.work = self.work.saturating_sub(1);
        let Some(current) = self.joint_of_body[body.index()] else { return false };
        let [old, new] = [current, candidate].map(|id| &self.model.joints[id.index()]);
        let equations = old.kind.closure_equations() as i64 - new.kind.closure_equations() as i64;
        let [from, to] = [old, new].map(|joint| self.depth[joint.parent.body.index()]);
        let depths = self.size[body.index()].saturating_mul(to - from);
        if (equations, depths, candidate.index()) >= (0, 0, current.index()) {
            return false;
        }
        // The new parent must hang on ground, and not on the body itself.
        let mut above = new.parent.body;
        loop {
            self.work = self.work.saturating_sub(1);
            if above == body || self.work == 0 {
                return false;
            }
            match self.parent(above) {
                Some(next) => above = next,
                None => return above == BodyId::GROUND,
            }
        }
    }

    fn exchange(&mut self, body: BodyId, joint: JointId) {
        let size = self.size[body.index()];
        if let Some(parent) = self.parent(body) {
            self.work = self.work.saturating_sub(self.children[parent.index()].len());
            self.children[parent.index()].retain(|child| *child != body);
            self.grow(Some(parent), -size);
        }
        self.joint_of_body[body.index()] = Some(joint);
        let parent = self.model.joints[joint.index()].parent.body;
        self.children[parent.index()].push(body);
        self.grow(Some(parent), size);
        self.depth[body.index()] = self.depth[parent.index()] + 1;
        self.renumber(body);
    }
}
