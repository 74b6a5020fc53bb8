//! External forces: a wrench on every body, a force along every joint velocity.

use crate::elements::{Loads, Mechanism};
use crate::graph::{Graph, Vec3};
use crate::kinematics::Spatial;
use crate::model::BodyId;
use crate::symbols::Group;

/// The loads plus, on each body, the force and torque of [`Group::Wrenches`]: world axes, the force at the origin of the body's
/// frame. (F, T) at r adds (F, T + (r − o) × F).
pub fn with_wrenches(g: &mut Graph, mechanism: &Mechanism<'_>, loads: &Loads) -> Loads {
    let mut loads = loads.clone();
    let bodies = mechanism.tree.link_of_body.iter().skip(BodyId::GROUND.index() + 1);
    for (body, link) in bodies.enumerate() {
        let Some(link) = *link else { continue };
        let mut part =
            |first| Vec3(std::array::from_fn(|k| g.symbol(Group::Wrenches, (6 * body + first + k) as u32)));
        let wrench = Spatial { linear: part(0), angular: part(3) };
        let position = &mechanism.positions.links[link];
        let arm = g.sub3(position.origin, position.reference);
        let shifted = g.shift_force(wrench, arm);
        loads.links[link] = g.add6(loads.links[link], shifted);
    }
    loads
}

/// The loads plus, along each joint velocity, the force of [`Group::Tau`].
pub fn with_joint_forces(g: &mut Graph, loads: &Loads) -> Loads {
    let mut loads = loads.clone();
    for (j, force) in loads.generalized.iter_mut().enumerate() {
        let tau = g.symbol(Group::Tau, j as u32);
        *force = g.add(*force, tau);
    }
    loads
}
