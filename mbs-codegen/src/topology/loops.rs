//! The closed loops of a mechanism, one for each cut joint.

use super::Tree;
use crate::model::{BodyId, JointId, Model};

/// A closed loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// The joint that closes it; the last of `joints` or one between.
    pub cut: JointId,
    /// Its bodies, in the order in which one walks around.
    pub bodies: Vec<BodyId>,
    /// Its joints: the one at a place leads from the body there to the next, the last back to the first.
    pub joints: Vec<JointId>,
}

impl Loop {
    /// The loop as one walks around: "`ground` – hinge – `crank` – … – `ground`".
    pub fn describe(&self, model: &Model) -> String {
        let body = |id: BodyId| format!("`{}`", model.bodies[id.index()].name);
        let mut text = self.bodies.first().map(|id| body(*id)).unwrap_or_default();
        for (i, joint) in self.joints.iter().enumerate() {
            if i >= 20 {
                text.push_str(" – …");
                break;
            }
            let next = self.bodies[(i + 1) % self.bodies.len()];
            text.push_str(&format!(" – {} – {}", model.joints[joint.index()].name, body(next)));
        }
        text
    }
}

/// The loops, in the order of the cut joints: from the last common body of the two chains to the parent of
/// the cut joint, over it, and back from its child.
pub fn loops(model: &Model, tree: &Tree) -> Vec<Loop> {
    tree.cuts.iter().map(|cut| loop_of(model, tree, *cut)).collect()
}

fn loop_of(model: &Model, tree: &Tree, cut: JointId) -> Loop {
    let joint = &model.joints[cut.index()];
    // From each side to ground: links from the body inwards.
    let chain = |body: BodyId| {
        let mut chain = Vec::new();
        let mut link = tree.link_of_body[body.index()];
        while let Some(i) = link {
            chain.push(i);
            link = tree.links[i].parent;
        }
        chain
    };
    let (mut out, mut back) = (chain(joint.parent.body), chain(joint.child.body));
    let mut common = BodyId::GROUND;
    while let (Some(a), Some(b)) = (out.last(), back.last())
        && a == b
    {
        common = tree.links[*a].body;
        out.pop();
        back.pop();
    }
    let mut bodies = vec![common];
    let mut joints = Vec::new();
    for &i in out.iter().rev() {
        joints.push(tree.links[i].joint);
        bodies.push(tree.links[i].body);
    }
    joints.push(cut);
    for &i in &back {
        bodies.push(tree.links[i].body);
        joints.push(tree.links[i].joint);
    }
    Loop { cut, bodies, joints }
}
