//! What joints transmit: the wrench that the parent puts on the child, at the child's joint point.
//!
//! Through a joint of the tree goes whatever its subtree's motion needs beyond the loads on it:
//! R_i = Σ (m a, …) − loads − constraint forces, over everything that i carries. Through a cut joint go the forces of
//! its multipliers. Springs and forces along a joint's own coordinate act inside the joint and are part of R.

use super::Rows;
use crate::dynamics::{Symmetric, link_wrenches};
use crate::elements::{Element, Load, Mechanism, constraint_elements, loads};
use crate::graph::{ExprId, Graph};
use crate::kinematics::Spatial;
use crate::lowering::Environment;
use crate::model::{BodyId, JointId};
use crate::topology::RowSource;

/// Force and torque, six expressions per joint of the model, over z, v, vd, u and the multipliers of the kept rows.
pub fn reactions(
    g: &mut Graph,
    mechanism: &mut Mechanism<'_>,
    inertias: &[(ExprId, Symmetric)],
    forces: &[Element<'_>],
    rows: &Rows,
) -> Vec<ExprId> {
    let constraints = constraint_elements(g, mechanism, &rows.kept, |row| row);
    let elements: Vec<&Element<'_>> =
        forces.iter().chain(constraints.iter().map(|constraint| &constraint.element)).collect();
    let loads = loads(g, mechanism, &elements);
    let mut wrenches = link_wrenches(g, mechanism, inertias, &loads);
    let tree = mechanism.tree;
    for (i, link) in tree.links.iter().enumerate().rev() {
        if let Some(p) = link.parent {
            let shifted = g.shift_force(wrenches[i], mechanism.positions.links[i].shift);
            wrenches[p] = g.add6(wrenches[p], shifted);
        }
    }
    let mut all = Vec::with_capacity(6 * mechanism.model.joints.len());
    for j in 0..mechanism.model.joints.len() {
        let joint = JointId(j as u32);
        let wrench = match tree.link_of_joint[j] {
            Some(i) => {
                let position = &mechanism.positions.links[i];
                let arm = g.sub3(position.reference, position.joint_point);
                g.shift_force(wrenches[i], arm)
            }
            None => {
                let found = constraints.iter().find(|c| c.source == RowSource::Cut(joint));
                match found {
                    Some(constraint) => cut_wrench(g, mechanism, &constraint.element, joint),
                    None => g.zero_spatial(),
                }
            }
        };
        all.extend(wrench.linear.0);
        all.extend(wrench.angular.0);
    }
    all
}

/// The loads of a cut joint's multipliers on the child, or the opposite of those on the parent where the child is
/// ground; about the child's joint point.
fn cut_wrench(
    g: &mut Graph,
    mechanism: &mut Mechanism<'_>,
    element: &Element<'_>,
    joint: JointId,
) -> Spatial {
    let side = &mechanism.model.joints[joint.index()];
    let (body, negative) = match side.child.body {
        BodyId::GROUND => (side.parent.body, true),
        body => (body, false),
    };
    let about = mechanism.joint_side_point(g, &side.child);
    let replacements = element.leaves.replacements(g, mechanism);
    let mut sum = g.zero_spatial();
    for load in &element.loads {
        let load = load.with(&g.substitute(&load.values(), &replacements));
        match load {
            Load::Force(at, force) if at.body == body => {
                let r = mechanism.position(g, at);
                let arm = g.sub3(r, about);
                let moment = g.cross3(arm, force);
                sum = g.add6(sum, Spatial { linear: force, angular: moment });
            }
            Load::Torque(on, torque) if on == body => sum.angular = g.add3(sum.angular, torque),
            _ => {}
        }
    }
    if negative { Spatial { linear: g.neg3(sum.linear), angular: g.neg3(sum.angular) } } else { sum }
}
