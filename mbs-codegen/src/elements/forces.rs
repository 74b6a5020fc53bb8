//! Forces of the model: what each puts on links and coordinates, what it stores, what power it brings.

use super::Mechanism;
use crate::graph::{ExprId, Graph, Vec3};
use crate::kinematics::Spatial;
use crate::lowering::{Environment, Lowering};
use crate::model::{BodyId, CoordinateRef, ForceKind, MarkerRef, Scalar, SpringLaw};

/// All forces but gravity.
#[derive(Clone, Debug)]
pub struct Loads {
    /// Force and moment about o_i on every link.
    pub links: Vec<Spatial>,
    /// Generalised force along every joint velocity.
    pub generalized: Vec<ExprId>,
    /// Potential energy stored in linear springs.
    pub potential: ExprId,
    /// Power of everything that is not the gradient of `potential`: dampers, laws, applied forces.
    pub power: ExprId,
}

/// Sums the forces of the model.
pub fn loads(g: &mut Graph, mechanism: &mut Mechanism<'_>) -> Loads {
    let (links, nv) = (mechanism.tree.links.len(), mechanism.tree.nv);
    let zero = g.zero();
    let none = g.zero_spatial();
    let mut loads =
        Loads { links: vec![none; links], generalized: vec![zero; nv], potential: zero, power: zero };
    for force in &mechanism.model.forces {
        match &force.kind {
            ForceKind::Spring { from, to, law } => spring(g, mechanism, &mut loads, [*from, *to], law),
            ForceKind::TorsionalSpring { coordinate, law } => {
                torsional_spring(g, mechanism, &mut loads, *coordinate, law);
            }
            ForceKind::Force { at, reaction, value } => {
                let value = Lowering::new(g, mechanism.parameters, mechanism).vector(value);
                apply_force(g, mechanism, &mut loads, *at, value);
                let mut relative = mechanism.point_velocity(g, *at);
                if let Some(reaction) = reaction {
                    let opposite = g.neg3(value);
                    apply_force(g, mechanism, &mut loads, *reaction, opposite);
                    let there = mechanism.point_velocity(g, *reaction);
                    relative = g.sub3(relative, there);
                }
                let power = g.dot3(value, relative);
                loads.power = g.add(loads.power, power);
            }
            ForceKind::Torque { on, reaction, value } => {
                let value = Lowering::new(g, mechanism.parameters, mechanism).vector(value);
                apply_torque(g, mechanism, &mut loads, *on, value);
                let mut relative = mechanism.angular_velocity(g, *on);
                if let Some(reaction) = reaction {
                    let opposite = g.neg3(value);
                    apply_torque(g, mechanism, &mut loads, *reaction, opposite);
                    let there = mechanism.angular_velocity(g, *reaction);
                    relative = g.sub3(relative, there);
                }
                let power = g.dot3(value, relative);
                loads.power = g.add(loads.power, power);
            }
            ForceKind::JointForce { coordinate, value } => {
                let value = lower(g, mechanism, value);
                push(g, mechanism, &mut loads, *coordinate, value);
                let rate = mechanism.rate(g, *coordinate);
                let power = g.mul(value, rate);
                loads.power = g.add(loads.power, power);
            }
        }
    }
    loads
}

fn lower(g: &mut Graph, mechanism: &mut Mechanism<'_>, value: &Scalar) -> ExprId {
    Lowering::new(g, mechanism.parameters, mechanism).scalar(value)
}

/// F at r adds (F, (r − o) × F) to its link.
fn apply_force(g: &mut Graph, mechanism: &mut Mechanism<'_>, loads: &mut Loads, at: MarkerRef, force: Vec3) {
    if let Some(link) = mechanism.tree.link_of_body[at.body.index()] {
        let r = mechanism.position(g, at);
        let arm = g.sub3(r, mechanism.positions.links[link].reference);
        let moment = g.cross3(arm, force);
        loads.links[link] = g.add6(loads.links[link], Spatial { linear: force, angular: moment });
    }
}

fn apply_torque(g: &mut Graph, mechanism: &Mechanism<'_>, loads: &mut Loads, on: BodyId, torque: Vec3) {
    if let Some(link) = mechanism.tree.link_of_body[on.index()] {
        loads.links[link].angular = g.add3(loads.links[link].angular, torque);
    }
}

/// A generalised force along one coordinate. Euler parameters take none: the reader refuses it.
fn push(g: &mut Graph, mechanism: &Mechanism<'_>, loads: &mut Loads, at: CoordinateRef, force: ExprId) {
    if let Some(link) = mechanism.tree.link_of_joint(at.joint) {
        let v = link.v + at.index as usize;
        loads.generalized[v] = g.add(loads.generalized[v], force);
    }
}

/// The force of a law at a length and rate; its stored energy and its other power go to the sums.
fn law_force(
    g: &mut Graph,
    mechanism: &mut Mechanism<'_>,
    loads: &mut Loads,
    law: &SpringLaw,
    length: ExprId,
    rate: ExprId,
) -> ExprId {
    match law {
        SpringLaw::Linear { stiffness, damping, natural } => {
            let [k, c, l0] = [stiffness, damping, natural].map(|s| lower(g, mechanism, s));
            // f = k (l − l0) + c ld, stored ½ k (l − l0)², lost c ld²
            let stretch = g.sub(length, l0);
            let elastic = g.mul(k, stretch);
            let viscous = g.mul(c, rate);
            let half = g.constant(0.5);
            let half_stretch = g.mul(half, stretch);
            let stored = g.mul(half_stretch, elastic);
            let lost = g.mul(viscous, rate);
            loads.potential = g.add(loads.potential, stored);
            loads.power = g.sub(loads.power, lost);
            g.add(elastic, viscous)
        }
        SpringLaw::Expression(expression) => {
            let outer = mechanism.spring.replace((length, rate));
            let force = lower(g, mechanism, expression);
            mechanism.spring = outer;
            let lost = g.mul(force, rate);
            loads.power = g.sub(loads.power, lost);
            force
        }
    }
}

/// With n the unit vector from the first point to the second, l their distance and ld = n · (v₂ − v₁), the
/// tension f pulls the first point along n and the second against it.
fn spring(
    g: &mut Graph,
    mechanism: &mut Mechanism<'_>,
    loads: &mut Loads,
    [from, to]: [MarkerRef; 2],
    law: &SpringLaw,
) {
    let [r1, r2] = [from, to].map(|m| mechanism.position(g, m));
    let [v1, v2] = [from, to].map(|m| mechanism.point_velocity(g, m));
    let (d, dv) = (g.sub3(r2, r1), g.sub3(v2, v1));
    let length = g.norm3(d);
    let n = Vec3(d.0.map(|x| g.div(x, length)));
    let rate = g.dot3(n, dv);
    let tension = law_force(g, mechanism, loads, law, length, rate);
    let pull = g.scale3(tension, n);
    let opposite = g.neg3(pull);
    apply_force(g, mechanism, loads, from, pull);
    apply_force(g, mechanism, loads, to, opposite);
}

/// The law's force acts against the growth of the coordinate.
fn torsional_spring(
    g: &mut Graph,
    mechanism: &mut Mechanism<'_>,
    loads: &mut Loads,
    coordinate: CoordinateRef,
    law: &SpringLaw,
) {
    let (angle, rate) = (mechanism.coordinate(g, coordinate), mechanism.rate(g, coordinate));
    let force = law_force(g, mechanism, loads, law, angle, rate);
    let opposite = g.neg(force);
    push(g, mechanism, loads, coordinate, opposite);
}
