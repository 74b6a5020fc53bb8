//! What bodies look like: read by drawings, never by equations.
//!
//! Sizes and places are expressions of parameters in the body's frame.

use super::{Scalar, Vector};
use crate::diagnostics::Span;

/// A shape fixed to a body.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// Its form and place.
    pub kind: ShapeKind,
    /// Red, green and blue; the drawing chooses if absent.
    pub colour: Option<[u8; 3]>,
    /// Where the file describes it.
    pub span: Span,
}

/// The form of a shape, and where it is in the frame of its body.
#[derive(Clone, Debug, PartialEq)]
pub enum ShapeKind {
    /// A box with edges along the axes of the body.
    Box {
        /// Its middle.
        at: Vector,
        /// Lengths of its edges.
        size: Vector,
    },
    /// An ellipsoid with axes along those of the body.
    Ellipsoid {
        /// Its middle.
        at: Vector,
        /// Its lengths along the axes.
        size: Vector,
    },
    /// A ball.
    Sphere {
        /// Its middle.
        at: Vector,
        /// Its radius.
        radius: Scalar,
    },
    /// A round rod or disc.
    Cylinder {
        /// The middles of its two faces.
        ends: [Vector; 2],
        /// Its radius.
        radius: Scalar,
    },
    /// A round rod with a half ball beyond either end.
    Capsule {
        /// The middles of its half balls.
        ends: [Vector; 2],
        /// Its radius.
        radius: Scalar,
    },
}

/// Named colours.
pub const COLOURS: [(&str, [u8; 3]); 12] = [
    ("black", [0x20, 0x22, 0x26]),
    ("grey", [0x86, 0x8e, 0x96]),
    ("silver", [0xc4, 0xca, 0xd1]),
    ("white", [0xf4, 0xf5, 0xf7]),
    ("red", [0xd6, 0x33, 0x3b]),
    ("orange", [0xe8, 0x77, 0x1e]),
    ("yellow", [0xe8, 0xb9, 0x1e]),
    ("green", [0x2f, 0x9e, 0x44]),
    ("blue", [0x2b, 0x6c, 0xd9]),
    ("purple", [0x8e, 0x44, 0xc2]),
    ("brown", [0x8a, 0x5a, 0x33]),
    ("pink", [0xe6, 0x6a, 0x9c]),
];
