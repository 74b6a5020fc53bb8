//! The robot as the file describes it: links in a tree of joints, all names resolved.

use crate::frame::{Frame, Vec3};
use mbs_codegen::diagnostics::Span;

/// A link, by its index in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LinkId(pub(crate) usize);

/// A joint, by its index in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct JointId(pub(crate) usize);

/// `<robot>`
#[derive(Debug)]
pub(crate) struct Robot {
    pub(crate) name: Option<String>,
    pub(crate) span: Span,
    pub(crate) links: Vec<Link>,
    pub(crate) joints: Vec<Joint>,
}

/// `<link>`
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) name: String,
    pub(crate) span: Span,
    pub(crate) inertial: Option<Inertial>,
}

/// `<inertial>`
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inertial {
    /// Its frame in the link's; its origin is the centre of mass.
    pub(crate) frame: Frame,
    pub(crate) mass: f64,
    /// xx, yy, zz, xy, xz, yz in this frame.
    pub(crate) inertia: [f64; 6],
    pub(crate) span: Span,
}

/// `<joint>`
#[derive(Debug)]
pub(crate) struct Joint {
    pub(crate) name: String,
    pub(crate) span: Span,
    pub(crate) kind: Kind,
    pub(crate) parent: LinkId,
    pub(crate) child: LinkId,
    /// The joint's frame in the parent link's; when the joint is at zero, it is the child link's frame.
    pub(crate) origin: Frame,
    /// In the joint's frame.
    pub(crate) axis: Vec3,
    pub(crate) limits: Limits,
    /// N m s/rad or N s/m.
    pub(crate) damping: f64,
    /// N m or N.
    pub(crate) friction: f64,
    pub(crate) mimic: Option<Mimic>,
}

/// The types of joints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Revolute,
    Continuous,
    Prismatic,
    Fixed,
    Floating,
    Planar,
}

impl Kind {
    pub(crate) const ALL: [(&'static str, Kind); 6] = [
        ("revolute", Kind::Revolute),
        ("continuous", Kind::Continuous),
        ("prismatic", Kind::Prismatic),
        ("fixed", Kind::Fixed),
        ("floating", Kind::Floating),
        ("planar", Kind::Planar),
    ];

    /// Whether it has exactly one coordinate: revolute, continuous or prismatic.
    pub(crate) fn has_one_coordinate(self) -> bool {
        matches!(self, Kind::Revolute | Kind::Continuous | Kind::Prismatic)
    }
}

/// `<limit>`; absent values are unlimited.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limits {
    pub(crate) lower: Option<f64>,
    pub(crate) upper: Option<f64>,
    pub(crate) velocity: Option<f64>,
    pub(crate) effort: Option<f64>,
}

/// `<mimic>`: the joint's position is multiplier · (position of `joint`) + offset.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mimic {
    pub(crate) joint: JointId,
    pub(crate) multiplier: f64,
    pub(crate) offset: f64,
}
