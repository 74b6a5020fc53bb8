//! The motion of each joint type as a short list of elementary motions.
//!
//! Every joint consists of translations along directions fixed in the parent, then rotations at the joint's point (by angles or by
//! Euler parameters). This is the only place that depends on the joint type; velocities,
//! accelerations, mass matrix and derivatives use columns only.

use crate::graph::{ExprId, Graph, Mat3, Vec3};
use crate::model::{Joint, JointKind};

/// An elementary motion of a joint, with directions in the frame before it (the parent's axes for translations).
pub(crate) enum Motion {
    /// Along a unit direction by one coordinate.
    Translation(Vec3, ExprId),
    /// About a unit direction by one coordinate.
    Rotation(Vec3, ExprId),
    /// A constant rotation: frame after → frame before.
    ConstantRotation(Mat3),
    /// A rotation by Euler parameters.
    EulerParameters([ExprId; 4]),
}

/// Directions of one side of a joint, in its body's axes.
pub(crate) struct Side {
    pub axis: Option<Vec3>,
    pub reference: Option<Vec3>,
}

impl Side {
    fn frame(&self, g: &mut Graph) -> Option<Mat3> {
        Some(g.frame(self.axis?, self.reference?))
    }
}

/// The motions of a joint, parent to child. `z` are its coordinates.
///
/// At zero the child's joint frame coincides with the parent's: A_child = A_parent C_p C_cᵀ. Sides
/// without a reference direction have parallel body frames at zero: C_p C_cᵀ = I.
pub(crate) fn motions(
    g: &mut Graph,
    joint: &Joint,
    parent: &Side,
    child: &Side,
    z: &[ExprId],
) -> Vec<Motion> {
    let axis = parent.axis.map(|a| g.unit3(a));
    let frames = match joint.kind {
        // The child's first direction is its own axis, the second the parent's axis seen from it.
        JointKind::Cardan => parent.frame(g).zip(cardan_child_frame(g, child)),
        _ => parent.frame(g).zip(child.frame(g)),
    };
    // K = C_p C_cᵀ
    let offset = frames.map(|(cp, cc)| g.product(cp, cc.transposed()));
    let unit_x = g.vector([1.0, 0.0, 0.0]);
    let unit_y = g.vector([0.0, 1.0, 0.0]);
    let unit_z = g.vector([0.0, 0.0, 1.0]);
    let axis_or_z = axis.unwrap_or(unit_z);
    let mut motions = match (joint.kind, z) {
        (JointKind::Revolute, &[angle]) => vec![Motion::Rotation(axis_or_z, angle)],
        (JointKind::Prismatic, &[displacement]) => vec![Motion::Translation(axis_or_z, displacement)],
        (JointKind::Cylindrical, &[displacement, angle]) => {
            let axis = if joint.left_handed { g.neg3(axis_or_z) } else { axis_or_z };
            vec![Motion::Translation(axis_or_z, displacement), Motion::Rotation(axis, angle)]
        }
        (JointKind::Planar, &[x, y, angle]) => {
            let frame = parent.frame(g).unwrap_or_else(|| g.identity());
            vec![
                Motion::Translation(frame.column(0), x),
                Motion::Translation(frame.column(1), y),
                Motion::Rotation(frame.column(2), angle),
            ]
        }
        (JointKind::Cardan, &[angle1, angle2]) => {
            // R1(axis 1 in parent) K R2(axis 2 in child)
            let second = child.axis.map(|a| g.unit3(a)).unwrap_or(unit_y);
            let mut motions = vec![Motion::Rotation(axis.unwrap_or(unit_x), angle1)];
            motions.extend(offset.map(Motion::ConstantRotation));
            motions.push(Motion::Rotation(second, angle2));
            return motions;
        }
        (JointKind::Spherical, &[e0, e1, e2, e3]) => return spherical(frames, [e0, e1, e2, e3]),
        (JointKind::Floating, &[x, y, z, e0, e1, e2, e3]) => {
            let directions = match frames {
                Some((cp, _)) => [cp.column(0), cp.column(1), cp.column(2)],
                None => [unit_x, unit_y, unit_z],
            };
            let mut motions: Vec<Motion> =
                directions.into_iter().zip([x, y, z]).map(|(d, q)| Motion::Translation(d, q)).collect();
            motions.extend(spherical(frames, [e0, e1, e2, e3]));
            return motions;
        }
        _ => Vec::new(),
    };
    motions.extend(offset.map(Motion::ConstantRotation));
    motions
}

/// C_p A(p) C_cᵀ
fn spherical(frames: Option<(Mat3, Mat3)>, p: [ExprId; 4]) -> Vec<Motion> {
    match frames {
        None => vec![Motion::EulerParameters(p)],
        Some((cp, cc)) => {
            vec![
                Motion::ConstantRotation(cp),
                Motion::EulerParameters(p),
                Motion::ConstantRotation(cc.transposed()),
            ]
        }
    }
}

/// The child's frame of a cardan joint: x along its axis (the parent's reference at zero), z along its
/// reference (the parent's axis at zero), made orthogonal.
fn cardan_child_frame(g: &mut Graph, child: &Side) -> Option<Mat3> {
    let x = g.unit3(child.axis?);
    let reference = child.reference?;
    let along = g.dot3(reference, x);
    let parallel = g.scale3(along, x);
    let across = g.sub3(reference, parallel);
    let z = g.unit3(across);
    let y = g.cross3(z, x);
    Some(Mat3::from_columns([x, y, z]))
}
