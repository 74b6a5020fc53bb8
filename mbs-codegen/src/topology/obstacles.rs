//! What keeps the joints of a model from having a tree.
//!
//! Input: the joints and whether each may be cut. Output: [`Obstacle`]s, which the reader turns into messages.

use super::arborescence::{Keep, Role};
use super::loops::Loop;
use crate::model::{BodyId, JointId, Model};
use std::collections::VecDeque;

/// Why the joints have no tree that meets all requirements.
#[derive(Clone, Debug, PartialEq)]
pub enum Obstacle {
    /// `cut: true` at a joint that is part of no loop.
    NoLoop {
        /// The joint.
        joint: JointId,
    },
    /// `cut: true` at a joint whose coordinates are needed.
    CutButNeeded {
        /// The joint.
        joint: JointId,
        /// Why.
        keep: Keep,
    },
    /// A joint of a loop has ground as its child, so it must be cut, and its coordinates are needed.
    KeptOnGround {
        /// The joint.
        joint: JointId,
        /// Why.
        keep: Keep,
    },
    /// Two joints with the same child must both stay.
    BothKept {
        /// The joints, in the order of the file, and why each must stay.
        kept: [(JointId, Keep); 2],
    },
    /// With this joint cut, as the file wants, nothing leads from ground to its child.
    CutStrands {
        /// The joint.
        joint: JointId,
    },
    /// Because one joint must stay another one is cut, and nothing leads from ground to their child.
    KeptStrands {
        /// The joint that stays.
        joint: JointId,
        /// Why.
        keep: Keep,
        /// The joint that would lead there.
        other: JointId,
    },
    /// The only way to a body leads through a joint from child to parent.
    Backwards {
        /// The joint.
        joint: JointId,
    },
    /// No joints connect these bodies to ground.
    Unconnected {
        /// The bodies, in the order of the file.
        bodies: Vec<BodyId>,
    },
}

/// The joints at each body: the other body and the joint, in the order of the file.
pub(super) fn neighbours(model: &Model) -> Vec<Vec<(BodyId, JointId)>> {
    let mut neighbours = vec![Vec::new(); model.bodies.len()];
    for (i, joint) in model.joints.iter().enumerate() {
        let (parent, child) = (joint.parent.body, joint.child.body);
        if parent != child {
            neighbours[parent.index()].push((child, JointId(i as u32)));
            neighbours[child.index()].push((parent, JointId(i as u32)));
        }
    }
    neighbours
}

/// For each joint whether it is part of a loop, whatever its direction.
pub(super) fn joints_in_loops(model: &Model) -> Vec<bool> {
    let mut in_loop = vec![false; model.joints.len()];
    if model.joints.len() < model.bodies.len() && !model.joints.iter().any(|joint| joint.cut == Some(true)) {
        // At most as many joints as bodies: if all are connected, there are no loops; if not, that is reported.
        return in_loop;
    }
    let neighbours = neighbours(model);
    let n = model.bodies.len();
    let mut came: Vec<Option<(usize, JointId)>> = vec![None; n];
    let mut depth = vec![usize::MAX; n];
    let mut order = Vec::with_capacity(n);
    for root in 0..n {
        if depth[root] != usize::MAX {
            continue;
        }
        depth[root] = 0;
        let mut next = order.len();
        order.push(root);
        while next < order.len() {
            let body = order[next];
            next += 1;
            for &(other, joint) in &neighbours[body] {
                let other = other.index();
                if depth[other] == usize::MAX {
                    depth[other] = depth[body] + 1;
                    came[other] = Some((body, joint));
                    order.push(other);
                }
            }
        }
    }
    // A joint of this forest is in a loop if another joint leads over it. Each joint outside the forest adds
    // one at its two ends and takes two where their ways to the root meet, so that the sum over all bodies
    // beyond a joint counts the joints that lead over it.
    let mut over = vec![0_i64; n];
    for (i, joint) in model.joints.iter().enumerate() {
        let (a, b) = (joint.parent.body.index(), joint.child.body.index());
        let id = JointId(i as u32);
        let of_forest = [a, b].iter().any(|body| came[*body].is_some_and(|(_, carrier)| carrier == id));
        if a == b || of_forest {
            continue;
        }
        in_loop[i] = true;
        over[a] += 1;
        over[b] += 1;
        let (mut a, mut b) = (a, b);
        while a != b {
            let deeper = if depth[a] >= depth[b] { &mut a } else { &mut b };
            match came[*deeper] {
                Some((before, _)) => *deeper = before,
                None => break,
            }
        }
        over[a] -= 2;
    }
    for &body in order.iter().rev() {
        if let Some((before, joint)) = came[body] {
            in_loop[joint.index()] = over[body] > 0;
            over[before] += over[body];
        }
    }
    in_loop
}

/// Why some bodies are not reached.
pub(super) fn of_unreached(
    model: &Model,
    roles: &[Role],
    carriers: &[Vec<JointId>],
    joint_of_body: &[Option<JointId>],
    obstacles: &mut Vec<Obstacle>,
) {
    let mut reached: Vec<bool> = joint_of_body.iter().map(Option::is_some).collect();
    if let Some(ground) = reached.first_mut() {
        *ground = true;
    }
    if reached.iter().all(|r| *r) {
        return;
    }
    let neighbours = neighbours(model);
    let mut queue: VecDeque<BodyId> =
        (0..reached.len()).filter(|b| reached[*b]).map(|b| BodyId(b as u32)).collect();
    // First the bodies that could be reached if joints were free, then those behind joints the wrong way
    // round; behind the wrong joint everything that follows in the right direction is no further problem.
    let mut backwards: VecDeque<(JointId, BodyId)> = VecDeque::new();
    loop {
        while let Some(body) = queue.pop_front() {
            for &(other, id) in &neighbours[body.index()] {
                if reached[other.index()] {
                    continue;
                }
                if model.joints[id.index()].child.body != other {
                    backwards.push_back((id, other));
                    continue;
                }
                reached[other.index()] = true;
                queue.push_back(other);
                match roles[id.index()] {
                    Role::Cut => obstacles.push(Obstacle::CutStrands { joint: id }),
                    _ => {
                        let kept = carriers[other.index()].first().copied();
                        if let Some(kept) = kept.filter(|kept| *kept != id)
                            && let Role::Kept(keep) = roles[kept.index()]
                        {
                            obstacles.push(Obstacle::KeptStrands { joint: kept, keep, other: id });
                        }
                    }
                }
            }
        }
        let Some((joint, body)) = backwards.pop_front() else { break };
        if !reached[body.index()] {
            reached[body.index()] = true;
            obstacles.push(Obstacle::Backwards { joint });
            queue.push_back(body);
        }
    }
    for body in 0..reached.len() {
        if reached[body] {
            continue;
        }
        reached[body] = true;
        let mut bodies = vec![BodyId(body as u32)];
        let mut next = 0;
        while next < bodies.len() {
            for &(other, _) in &neighbours[bodies[next].index()] {
                if !reached[other.index()] {
                    reached[other.index()] = true;
                    bodies.push(other);
                }
            }
            next += 1;
        }
        bodies.sort_unstable();
        obstacles.push(Obstacle::Unconnected { bodies });
    }
}

/// A shortest loop through a joint, whatever the directions of its joints.
pub fn loop_through(model: &Model, joint: JointId) -> Option<Loop> {
    let neighbours = neighbours(model);
    let closing = model.joints.get(joint.index())?;
    let (from, to) = (closing.parent.body, closing.child.body);
    let mut came: Vec<Option<(BodyId, JointId)>> = vec![None; model.bodies.len()];
    let mut queue = VecDeque::from([from]);
    while let Some(body) = queue.pop_front() {
        if body == to {
            break;
        }
        for &(next, id) in &neighbours[body.index()] {
            if id != joint && next != from && came[next.index()].is_none() {
                came[next.index()] = Some((body, id));
                queue.push_back(next);
            }
        }
    }
    let (mut bodies, mut joints) = (Vec::new(), vec![joint]);
    let mut body = to;
    while body != from {
        let (before, id) = came[body.index()]?;
        bodies.push(body);
        joints.push(id);
        body = before;
    }
    bodies.push(from);
    bodies.reverse();
    joints.reverse();
    Some(Loop { cut: joint, bodies, joints })
}
