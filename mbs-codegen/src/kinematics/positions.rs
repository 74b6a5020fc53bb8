//! Rotations, positions and the columns b_i of every link.

use super::joint_motion::{Motion, Side, motions};
use super::{ReferencePoint, Spatial, euler_parameters};
use crate::graph::{ExprId, Graph, Mat3, Vec3};
use crate::lowering::{Lowering, Parameters, ParametersOnly};
use crate::model::{Body, BodyId, JointPoint, JointSide, MarkerRef, Model, PointRef, Vector};
use crate::symbols::Group;
use crate::topology::{Link, Tree};

/// One column of b_i: the motion per unit of one joint velocity.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Unit direction in world axes.
    pub axis: Vec3,
    /// Whether it is a rotation about `axis` through the joint's point, or a translation along `axis`.
    pub is_rotation: bool,
    /// The column at the link's reference point: (axis × (o_i − r_C), axis) or (axis, 0).
    pub motion: Spatial,
}

/// Position and orientation of a link.
#[derive(Clone, Debug)]
pub struct LinkPosition {
    /// A_i
    pub rotation: Mat3,
    /// r_i, origin of the body frame
    pub origin: Vec3,
    /// g_i
    pub com: Vec3,
    /// o_i
    pub reference: Vec3,
    /// o_i − o_parent
    pub shift: Vec3,
    /// r_C, the child's joint point
    pub joint_point: Vec3,
    /// b_i
    pub columns: Vec<Column>,
}

/// Positions of all links.
#[derive(Clone, Debug)]
pub struct Positions {
    /// By link.
    pub links: Vec<LinkPosition>,
}

/// Lowers a vector that depends on parameters alone.
pub(crate) fn constant_vector(g: &mut Graph, parameters: &Parameters, v: &Vector) -> Vec3 {
    Lowering::new(g, parameters, &mut ParametersOnly).vector(v)
}

/// A point of a body in its own frame.
pub(crate) fn local_point(g: &mut Graph, parameters: &Parameters, body: &Body, point: PointRef) -> Vec3 {
    match point {
        PointRef::Origin => g.zero_vector(),
        PointRef::Com => constant_vector(g, parameters, &body.com),
        PointRef::Named(i) => match body.points.get(i as usize) {
            Some((_, at)) => constant_vector(g, parameters, at),
            None => g.zero_vector(),
        },
    }
}

/// Forward recursion for positions, from ground to the leaves.
pub fn positions(
    g: &mut Graph,
    model: &Model,
    tree: &Tree,
    parameters: &Parameters,
    reference: ReferencePoint,
) -> Positions {
    let mut links: Vec<LinkPosition> = Vec::with_capacity(tree.links.len());
    for link in &tree.links {
        let position = link_position(g, model, link, parameters, reference, &links);
        links.push(position);
    }
    Positions { links }
}

fn link_position(
    g: &mut Graph,
    model: &Model,
    link: &Link,
    parameters: &Parameters,
    reference: ReferencePoint,
    before: &[LinkPosition],
) -> LinkPosition {
    let zero = g.zero_vector();
    let (parent_rotation, parent_origin, parent_reference) = match link.parent {
        Some(p) => (before[p].rotation, before[p].origin, before[p].reference),
        None => (g.identity(), zero, zero),
    };
    let ([parent_point, child_point], motions) = joint_of(g, model, link, parameters);

    // r_C = r_parent + A_parent (P + Σ translations); A_i = A_parent Π rotations
    let mut local = parent_point;
    let mut rotation = parent_rotation;
    let mut axes: Vec<(Vec3, bool)> = Vec::new();
    for motion in motions {
        match motion {
            Motion::Translation(direction, coordinate) => {
                let displacement = g.scale3(coordinate, direction);
                local = g.add3(local, displacement);
                axes.push((g.apply(parent_rotation, direction), false));
            }
            Motion::Rotation(direction, angle) => {
                axes.push((g.apply(rotation, direction), true));
                let relative = rotation_about(g, direction, angle);
                rotation = g.product(rotation, relative);
            }
            Motion::ConstantRotation(offset) => rotation = g.product(rotation, offset),
            Motion::EulerParameters(p) => {
                let relative = euler_parameters::rotation(g, p);
                rotation = g.product(rotation, relative);
                // v is the angular velocity in the frame after this rotation.
                axes.extend((0..3).map(|k| (rotation.column(k), true)));
            }
        }
    }
    let arm = g.apply(parent_rotation, local);
    let joint_point = g.add3(parent_origin, arm);
    // r_i = r_C − A_i C
    let arm = g.apply(rotation, child_point);
    let origin = g.sub3(joint_point, arm);
    let body = &model.bodies[link.body.index()];
    let com_local = local_point(g, parameters, body, PointRef::Com);
    let com = {
        let from_joint = g.sub3(com_local, child_point);
        let arm = g.apply(rotation, from_joint);
        g.add3(joint_point, arm)
    };
    let reference = match reference {
        ReferencePoint::CentreOfMass => com,
        ReferencePoint::Origin => zero,
    };
    let shift = g.sub3(reference, parent_reference);
    // b = (w × (o − r_C), w) for a rotation, (w, 0) for a translation   [LopezVarela2023, Table 11]
    let arm = g.sub3(reference, joint_point);
    let columns = axes
        .into_iter()
        .map(|(axis, is_rotation)| Column {
            axis,
            is_rotation,
            motion: if is_rotation {
                Spatial { linear: g.cross3(axis, arm), angular: axis }
            } else {
                Spatial { linear: axis, angular: zero }
            },
        })
        .collect();
    LinkPosition { rotation, origin, com, reference, shift, joint_point, columns }
}

/// A link's joint: its points on parent and child, each in the body's frame, and its motions.
pub(crate) fn joint_of(
    g: &mut Graph,
    model: &Model,
    link: &Link,
    parameters: &Parameters,
) -> ([Vec3; 2], Vec<Motion>) {
    let joint = &model.joints[link.joint.index()];
    let z: Vec<ExprId> = link.z_range().map(|i| g.symbol(Group::Z, i as u32)).collect();
    let [parent, child] = [&joint.parent, &joint.child].map(|side| Side {
        axis: side.axis.as_ref().map(|a| constant_vector(g, parameters, a)),
        reference: side.reference.as_ref().map(|r| constant_vector(g, parameters, r)),
    });
    let points = [&joint.parent, &joint.child].map(|side| side_point(g, model, parameters, side));
    (points, motions(g, joint, &parent, &child, &z))
}

/// A joint's point on one of its sides, in the body's frame.
pub(crate) fn side_point(g: &mut Graph, model: &Model, parameters: &Parameters, side: &JointSide) -> Vec3 {
    match &side.point {
        JointPoint::Point(point) => local_point(g, parameters, &model.bodies[side.body.index()], *point),
        JointPoint::At(v) => constant_vector(g, parameters, v),
    }
}

/// R = u uᵀ + cos q (I − u uᵀ) + sin q ũ   [LopezVarela2023, Table 11]
pub(crate) fn rotation_about(g: &mut Graph, u: Vec3, q: ExprId) -> Mat3 {
    let (sine, cosine) = (g.sin(q), g.cos(q));
    let skew = g.skew(u);
    let one = g.one();
    Mat3(std::array::from_fn(|i| {
        std::array::from_fn(|j| {
            let uu = g.mul(u[i], u[j]);
            let rest = if i == j { g.sub(one, uu) } else { g.neg(uu) };
            let even = g.mul(cosine, rest);
            let odd = g.mul(sine, skew.0[i][j]);
            let sum = g.add(uu, even);
            g.add(sum, odd)
        })
    }))
}

impl Positions {
    /// A_i of a body; the unit matrix for ground.
    pub fn rotation(&self, g: &mut Graph, tree: &Tree, body: BodyId) -> Mat3 {
        match tree.link_of_body[body.index()] {
            Some(link) => self.links[link].rotation,
            None => g.identity(),
        }
    }

    /// World position of a point: r = r_i + A_i r̄
    pub fn point(
        &self,
        g: &mut Graph,
        model: &Model,
        tree: &Tree,
        parameters: &Parameters,
        marker: MarkerRef,
    ) -> Vec3 {
        let link = tree.link_of_body[marker.body.index()].map(|link| &self.links[link]);
        let local = local_point(g, parameters, &model.bodies[marker.body.index()], marker.point);
        match link {
            None => local,
            Some(link) if marker.point == PointRef::Com => link.com,
            Some(link) => {
                let arm = g.apply(link.rotation, local);
                g.add3(link.origin, arm)
            }
        }
    }
}
