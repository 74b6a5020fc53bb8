//! Mirror images.
//!
//! S is the reflection at the plane normal to one axis. A mirrored body frame would be left-handed, so it is made
//! right-handed again: A' = S A S. Then polar vectors (positions, velocities, forces) have components S v, axial
//! ones (angular velocities, torques, the vector part of Euler parameters) −S w, and inertia S J S. Force laws of
//! a mirrored element are evaluated as seen in the mirror: what is measured is reflected first, and the resulting
//! force is reflected back.

use crate::model::{JointKind, Scalar, Vector};

/// S v, or −S v if the vector is axial.
pub(super) fn mirror(v: Vector, normal: u8, axial: bool) -> Vector {
    match v {
        Vector::Components(c) => {
            let mut i = 0;
            Vector::Components(Box::new(c.map(|x| {
                let x = if flips(i, normal, axial) { negate(x) } else { x };
                i += 1;
                x
            })))
        }
        // S S = I; a change of kind leaves the sign.
        Vector::Mirror { normal: n, axial: a, of } if n == normal => {
            if a == axial {
                *of
            } else {
                Vector::Negate(of)
            }
        }
        v => Vector::Mirror { normal, axial, of: Box::new(v) },
    }
}

/// Whether component `i` of a vector changes its sign.
pub(super) fn flips(i: usize, normal: u8, axial: bool) -> bool {
    (i == usize::from(normal)) != axial
}

/// −a, with numbers folded.
pub(super) fn negate(a: Scalar) -> Scalar {
    match a {
        Scalar::Number(x) => Scalar::Number(if x == 0.0 { 0.0 } else { -x }),
        Scalar::Negate(a) => *a,
        a => Scalar::Negate(Box::new(a)),
    }
}

/// Whether a coordinate changes its sign. Angles and displacements along an axis keep theirs, since their axes
/// are reflected; positions (polar) and Euler parameters (axial) are components.
pub(super) fn coordinate_flips(kind: JointKind, index: usize, normal: u8) -> bool {
    match (kind, index) {
        (JointKind::Spherical, 1..=3) => flips(index - 1, normal, true),
        (JointKind::Floating, 0..=2) => flips(index, normal, false),
        (JointKind::Floating, 4..=6) => flips(index - 4, normal, true),
        _ => false,
    }
}

/// Whether a velocity changes its sign.
pub(super) fn velocity_flips(kind: JointKind, index: usize, normal: u8) -> bool {
    match (kind, index) {
        (JointKind::Spherical, 0..=2) => flips(index, normal, true),
        (JointKind::Floating, 0..=2) => flips(index, normal, false),
        (JointKind::Floating, 3..=5) => flips(index - 3, normal, true),
        _ => false,
    }
}

/// A direction of a joint on one of its bodies.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Axis,
    Reference,
}

/// The image of a joint's axis or reference direction.
///
/// With joint frames F = [reference, axis × reference, axis], the image of the joint's rotation R is S R S. Writing
/// F' = S F D with a diagonal D of determinant −1 (so that F' is right-handed), F_p' R' F_c'ᵀ = S F_p (D R' D) F_cᵀ S,
/// hence R' = D R D:
/// - revolute, planar: D = diag(1, 1, −1), R' = R about the axial axis; displacements in the plane keep;
/// - cardan: D = −I, both axes and both references are axial (its frames only give the constant rotation between
///   the two turns, and K' = S K S);
/// - prismatic, fixed: D = diag(1, −1, 1), nothing turns and the displacement along the polar axis keeps;
/// - cylindrical: D = diag(1, −1, 1), R' = R with the opposite angle: the joint becomes left-handed;
/// - spherical, floating: D = S, R' = S R S, whose Euler parameters have an axial vector part.
pub(super) fn mirror_direction(v: Vector, kind: JointKind, which: Direction, normal: u8) -> Vector {
    let axial = match (kind, which) {
        (JointKind::Revolute | JointKind::Planar, Direction::Axis) | (JointKind::Cardan, _) => true,
        (JointKind::Spherical | JointKind::Floating, Direction::Axis) => normal == 2,
        (JointKind::Spherical | JointKind::Floating, Direction::Reference) => normal == 0,
        _ => false,
    };
    mirror(v, normal, axial)
}
