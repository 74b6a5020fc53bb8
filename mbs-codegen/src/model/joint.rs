//! Joints as the model file gives them.

use super::expression::{Scalar, Vector};
use super::ids::{BodyId, PointRef};
use crate::diagnostics::Span;

/// A joint between a parent and a child body.
#[derive(Clone, Debug, PartialEq)]
pub struct Joint {
    /// Name as written.
    pub name: String,
    /// What motion it allows.
    pub kind: JointKind,
    /// The parent's side.
    pub parent: JointSide,
    /// The child's side.
    pub child: JointSide,
    /// Names of the coordinates z, in their order ([`JointKind::coordinates`] unless renamed).
    pub coordinates: Vec<String>,
    /// Names of the velocities v, in their order.
    pub velocities: Vec<String>,
    /// Start values.
    pub start: Start,
    /// Cylindrical joints only: the angle turns about the axis (false) or about its opposite (true), which
    /// is what a mirror image needs for both coordinates to keep their signs.
    pub left_handed: bool,
    /// Whether the file wants this joint cut (true) or kept in the tree (false) where it is part of a loop.
    pub cut: Option<bool>,
    /// Floating joints from ground only: the body on which its child lies. Its coordinates follow from those of others; at the
    /// start they are the place and the Euler parameters of that body.
    pub follows: Option<BodyId>,
    /// What it was recognised from, if the file lists what its bodies share.
    pub shared: Option<SharedParts>,
    /// Where the file declares it.
    pub span: Span,
}

/// What a joint was recognised from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SharedParts {
    /// In words: `2 points`.
    pub what: String,
    /// Ratios of lengths and one, cosines of angles on both bodies: pairs that are equal if all of it can be shared.
    pub equal: Vec<[Scalar; 2]>,
    /// Directions on the parent that are not parallel, if it was recognised from two.
    pub apart: Option<[Vector; 2]>,
}

/// One side of a joint.
#[derive(Clone, Debug, PartialEq)]
pub struct JointSide {
    /// The body.
    pub body: BodyId,
    /// Where on it.
    pub point: JointPoint,
    /// Along what on it, in the body frame. `None`: the joint has no direction here.
    pub axis: Option<Vector>,
    /// Second direction, made orthogonal to the first. `None` on both sides: the body frames are parallel
    /// at zero. Both sides give it or neither does.
    pub reference: Option<Vector>,
}

/// Where a joint sits on a body.
#[derive(Clone, Debug, PartialEq)]
pub enum JointPoint {
    /// A point of the body.
    Point(PointRef),
    /// Coordinates in the body frame.
    At(Vector),
}

/// The motion a joint allows. Coordinates and velocities stand in the order given here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum JointKind {
    /// No motion.
    Fixed,
    /// angle about the axis
    Revolute,
    /// displacement along the axis
    Prismatic,
    /// angle1 about the parent's axis, angle2 about the child's axis
    Cardan,
    /// displacement along and angle about the axis
    Cylindrical,
    /// Euler parameters e0 e1 e2 e3; velocities wx wy wz in the joint's frame on the child
    Spherical,
    /// x along the reference, y along axis × reference, angle about the axis
    Planar,
    /// x y z in the parent's joint frame, e0 e1 e2 e3; velocities x_rate y_rate z_rate wx wy wz
    Floating,
}

impl JointKind {
    /// All kinds.
    pub const ALL: [JointKind; 8] = [
        JointKind::Fixed,
        JointKind::Revolute,
        JointKind::Prismatic,
        JointKind::Cardan,
        JointKind::Cylindrical,
        JointKind::Spherical,
        JointKind::Planar,
        JointKind::Floating,
    ];

    /// The word in the model file.
    pub fn keyword(self) -> &'static str {
        match self {
            JointKind::Fixed => "fixed",
            JointKind::Revolute => "revolute",
            JointKind::Prismatic => "prismatic",
            JointKind::Cardan => "cardan",
            JointKind::Cylindrical => "cylindrical",
            JointKind::Spherical => "spherical",
            JointKind::Planar => "planar",
            JointKind::Floating => "floating",
        }
    }

    /// Default names of the coordinates z.
    pub fn coordinates(self) -> &'static [&'static str] {
        match self {
            JointKind::Fixed => &[],
            JointKind::Revolute => &["angle"],
            JointKind::Prismatic => &["displacement"],
            JointKind::Cardan => &["angle1", "angle2"],
            JointKind::Cylindrical => &["displacement", "angle"],
            JointKind::Spherical => &["e0", "e1", "e2", "e3"],
            JointKind::Planar => &["x", "y", "angle"],
            JointKind::Floating => &["x", "y", "z", "e0", "e1", "e2", "e3"],
        }
    }

    /// Names of the equations that close a loop at this joint when it is cut.
    pub fn closure_rows(self) -> &'static [&'static str] {
        match self {
            JointKind::Fixed => &["x", "y", "z", "tilt1", "tilt2", "twist"],
            JointKind::Revolute => &["x", "y", "z", "tilt1", "tilt2"],
            JointKind::Prismatic => &["across1", "across2", "tilt1", "tilt2", "twist"],
            JointKind::Cardan => &["x", "y", "z", "axes"],
            JointKind::Cylindrical => &["across1", "across2", "tilt1", "tilt2"],
            JointKind::Spherical => &["x", "y", "z"],
            JointKind::Planar => &["normal", "tilt1", "tilt2"],
            JointKind::Floating => &[],
        }
    }

    /// How many equations close a loop at this joint when it is cut.
    pub fn closure_equations(self) -> usize {
        6 - self.velocities().len()
    }

    /// Default names of the velocities v (joint form).
    pub fn velocities(self) -> &'static [&'static str] {
        match self {
            JointKind::Fixed => &[],
            JointKind::Revolute => &["angle_rate"],
            JointKind::Prismatic => &["displacement_rate"],
            JointKind::Cardan => &["angle1_rate", "angle2_rate"],
            JointKind::Cylindrical => &["displacement_rate", "angle_rate"],
            JointKind::Spherical => &["wx", "wy", "wz"],
            JointKind::Planar => &["x_rate", "y_rate", "angle_rate"],
            JointKind::Floating => &["x_rate", "y_rate", "z_rate", "wx", "wy", "wz"],
        }
    }
}

/// Start values of a joint: expressions of parameters, one per coordinate and per velocity.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    /// z at the beginning.
    pub values: Vec<Scalar>,
    /// v at the beginning.
    pub rates: Vec<Scalar>,
    /// Coordinates held during assembly of closed loops.
    pub hold: Vec<bool>,
}
