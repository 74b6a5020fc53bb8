//! Walks from ground through the joints of the tree: depth first, joints of one body in the order of the file.

use super::arborescence::arborescence;
use super::{Link, Tree};
use crate::model::{BodyId, JointId, Model};

/// The tree of a model, by the same choice of cut joints that the reader has checked. Bodies that nothing
/// reaches are left out: the reader has reported them.
pub fn span(model: &Model) -> Tree {
    let mut tree = Tree {
        links: Vec::new(),
        link_of_body: vec![None; model.bodies.len()],
        link_of_joint: vec![None; model.joints.len()],
        cuts: Vec::new(),
        variables_z: 0,
        variables_v: 0,
        nq: 0,
        nv: 0,
    };
    let carriers = arborescence(model).joint_of_body;
    let mut joints_of: Vec<Vec<JointId>> = vec![Vec::new(); model.bodies.len()];
    for (i, joint) in model.joints.iter().enumerate() {
        let id = JointId(i as u32);
        if carriers[joint.child.body.index()] == Some(id) {
            joints_of[joint.parent.body.index()].push(id);
        } else {
            tree.cuts.push(id);
        }
    }
    // Last in, first out: reversed so that joints are visited in the order of the file.
    let mut stack: Vec<JointId> = joints_of[BodyId::GROUND.index()].iter().rev().copied().collect();
    while let Some(id) = stack.pop() {
        let joint = &model.joints[id.index()];
        let body = joint.child.body;
        tree.link_of_body[body.index()] = Some(tree.links.len());
        tree.link_of_joint[id.index()] = Some(tree.links.len());
        tree.links.push(Link {
            joint: id,
            kind: joint.kind,
            body,
            parent: tree.link_of_body[joint.parent.body.index()],
            z: tree.nq,
            v: tree.nv,
        });
        tree.nq += joint.kind.coordinates().len();
        tree.nv += joint.kind.velocities().len();
        stack.extend(joints_of[body.index()].iter().rev());
    }
    (tree.variables_z, tree.variables_v) = (tree.nq, tree.nv);
    tree.nq += model.variables.len();
    tree.nv += model.variables.len();
    tree
}
