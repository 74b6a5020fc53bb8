//! The joints as a tree.
//!
//! Input: a robot with resolved names. Output: its root and its joints, parents first. Holds afterwards: every
//! link except the root is the child of exactly one joint and is connected to the root.

use crate::robot::{JointId, LinkId, Robot};
use crate::source::one_line;
use mbs_codegen::diagnostics::Diagnostics;

/// The root and the joints in order.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) root: LinkId,
    /// The joints, depth first, siblings in the order of the file.
    pub(crate) order: Vec<JointId>,
}

impl Tree {
    /// The tree, or every reason why there is none.
    pub(crate) fn of(robot: &Robot, diagnostics: &mut Diagnostics) -> Option<Tree> {
        let before = diagnostics.error_count();
        let mut above: Vec<Option<JointId>> = vec![None; robot.links.len()];
        let mut below: Vec<Vec<JointId>> = vec![Vec::new(); robot.links.len()];
        for (number, joint) in robot.joints.iter().enumerate() {
            let id = JointId(number);
            if let Some(other) = above[joint.child.0] {
                let (link, other) = (&robot.links[joint.child.0], &robot.joints[other.0]);
                let message = format!(
                    "link `{}` is the child of two joints, `{}` and `{}`",
                    one_line(&link.name),
                    one_line(&other.name),
                    one_line(&joint.name)
                );
                let help = "a link has one parent; take the joint that closes a loop out of the file and give it by `--loop`";
                diagnostics.error(joint.span, message).help(help);
                continue;
            }
            above[joint.child.0] = Some(id);
            below[joint.parent.0].push(id);
        }
        report_cycles(robot, &above, diagnostics);
        let root = find_root(robot, &above, diagnostics);
        if diagnostics.error_count() > before {
            return None;
        }
        let root = root?;
        let mut order = Vec::with_capacity(robot.joints.len());
        let mut waiting: Vec<JointId> = below[root.0].iter().rev().copied().collect();
        while let Some(joint) = waiting.pop() {
            order.push(joint);
            waiting.extend(below[robot.joints[joint.0].child.0].iter().rev());
        }
        Some(Tree { root, order })
    }
}

/// The link that is no joint's child; several are an error.
fn find_root(robot: &Robot, above: &[Option<JointId>], diagnostics: &mut Diagnostics) -> Option<LinkId> {
    let roots: Vec<LinkId> =
        (0..robot.links.len()).filter(|&link| above[link].is_none()).map(LinkId).collect();
    let name = |link: &LinkId| format!("`{}`", one_line(&robot.links[link.0].name));
    if let [first, second, ..] = roots.as_slice() {
        let shown: Vec<String> = roots.iter().take(5).map(name).collect();
        let more = if roots.len() > 5 { ", …" } else { "" };
        let message = format!("the robot has {} root links: {}{more}", roots.len(), shown.join(", "));
        let help = format!(
            "every link but one must be the child of a joint: connect {} to {}",
            name(second),
            name(first)
        );
        diagnostics.error(robot.links[second.0].span, message).help(help);
    }
    // Without a root there is a cycle, which is reported.
    roots.first().copied()
}

/// Reports every cycle of joints once.
fn report_cycles(robot: &Robot, above: &[Option<JointId>], diagnostics: &mut Diagnostics) {
    let mut seen: Vec<Option<usize>> = vec![None; robot.links.len()];
    for walk in 0..robot.links.len() {
        let mut at = walk;
        while seen[at].is_none() {
            seen[at] = Some(walk);
            let Some(joint) = above[at] else { break };
            at = robot.joints[joint.0].parent.0;
        }
        // A cycle was found: traverse it again to name the joints.
        if seen[at] != Some(walk) || above[at].is_none() {
            continue;
        }
        let mut names = Vec::new();
        let mut place = None;
        let mut link = at;
        while let Some(joint) = above[link] {
            let joint = &robot.joints[joint.0];
            names.push(format!("`{}`", one_line(&joint.name)));
            place = place.max(Some(joint.span));
            link = joint.parent.0;
            if link == at {
                break;
            }
        }
        names.reverse();
        names.truncate(8);
        let message = format!("the joints {} go round in a circle", names.join(", "));
        let help =
            "a robot is a tree; take the joint that closes a loop out of the file and give it by `--loop`";
        diagnostics.error(place.unwrap_or_default(), message).help(help);
    }
}
