//! Joints that close loops. URDF has none, so they are given as options.
//!
//! `NAME=TYPE:PARENT:CHILD[:AXIS]`, where a side is `LINK` or `LINK@X,Y,Z` or `LINK@X,Y,Z,ROLL,PITCH,YAW` and the axis
//! is `X,Y,Z`. As in URDF, a joint is a frame on the parent and one on the child that coincide when the joint is at
//! zero: each side's frame is that of its link, translated and rotated as given. The axis, by default `1,0,0`, has
//! the same components in both.

use crate::frame::{Angles, Frame, Vec3};
use crate::source::one_line;
use mbs_codegen::diagnostics::nearest;
use mbs_codegen::model::JointKind;
use std::str::FromStr;

/// A joint that closes a loop.
#[derive(Clone, Debug, PartialEq)]
pub struct Loop {
    pub(crate) name: String,
    pub(crate) kind: JointKind,
    pub(crate) parent: Side,
    pub(crate) child: Side,
    pub(crate) axis: Vec3,
}

/// One side of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Side {
    /// The link's name in the file.
    pub(crate) link: String,
    xyz: Vec3,
    rpy: Vec3,
}

impl Side {
    /// The joint's frame in the link's.
    pub(crate) fn frame(&self, angles: &mut Angles) -> Frame {
        Frame::new(self.xyz, self.rpy, angles)
    }
}

/// The types of joints that can close a loop.
const KINDS: [JointKind; 6] = [
    JointKind::Fixed,
    JointKind::Revolute,
    JointKind::Prismatic,
    JointKind::Cylindrical,
    JointKind::Spherical,
    JointKind::Planar,
];

impl FromStr for Loop {
    type Err = String;

    /// Reads `NAME=TYPE:PARENT:CHILD[:AXIS]`.
    fn from_str(text: &str) -> Result<Loop, String> {
        const FORM: &str = "write it as NAME=TYPE:PARENT[@X,Y,Z[,R,P,Y]]:CHILD[@X,Y,Z[,R,P,Y]][:AXIS]";
        let (name, rest) = text.split_once('=').ok_or(FORM)?;
        let parts: Vec<&str> = rest.split(':').collect();
        let (word, parent, child, axis) = match parts.as_slice() {
            [word, parent, child] => (word, parent, child, None),
            [word, parent, child, axis] => (word, parent, child, Some(axis)),
            _ => return Err(FORM.into()),
        };
        let name = name.trim();
        if name.is_empty() {
            return Err(FORM.into());
        }
        let words = KINDS.map(JointKind::keyword);
        let Some(&kind) = KINDS.iter().find(|kind| kind.keyword() == word.trim()) else {
            let help = match nearest(word.trim(), words) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the types are {}", words.join(", ")),
            };
            return Err(format!("unknown type of joint `{}`; {help}", one_line(word)));
        };
        let axis = axis.map_or(Ok([1.0, 0.0, 0.0]), |axis| {
            let axis = numbers(axis)?;
            <Vec3>::try_from(axis).map_err(|_| "an axis has three numbers: X,Y,Z".to_string())
        })?;
        if axis == [0.0; 3] {
            return Err("the axis is zero".into());
        }
        Ok(Loop { name: name.into(), kind, parent: side(parent)?, child: side(child)?, axis })
    }
}

fn side(text: &str) -> Result<Side, String> {
    // The last `@`: a name may contain others.
    let Some((link, place)) = text.rsplit_once('@') else {
        return Ok(Side { link: text.trim().into(), xyz: [0.0; 3], rpy: [0.0; 3] });
    };
    let link = link.trim().to_string();
    match *numbers(place)?.as_slice() {
        [x, y, z] => Ok(Side { link, xyz: [x, y, z], rpy: [0.0; 3] }),
        [x, y, z, roll, pitch, yaw] => Ok(Side { link, xyz: [x, y, z], rpy: [roll, pitch, yaw] }),
        _ => Err(format!("`{}` is neither X,Y,Z nor X,Y,Z,ROLL,PITCH,YAW", one_line(place))),
    }
}

fn numbers(text: &str) -> Result<Vec<f64>, String> {
    let number = |word: &str| match word.trim().parse::<f64>() {
        Ok(x) if x.abs() < 1e9 => Ok(x),
        _ => Err(format!("`{}` is not a number", one_line(word))),
    };
    text.split(',').take(8).map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_is_read() {
        let l: Loop = "close=revolute:crank_end:rod@0.3,0,-1e-2,0,0,1.5:0,0,1".parse().expect("a loop");
        assert_eq!((l.name.as_str(), l.kind, l.axis), ("close", JointKind::Revolute, [0.0, 0.0, 1.0]));
        assert_eq!((l.parent.link.as_str(), l.parent.xyz), ("crank_end", [0.0; 3]));
        assert_eq!(
            (l.child.link.as_str(), l.child.xyz, l.child.rpy),
            ("rod", [0.3, 0.0, -0.01], [0.0, 0.0, 1.5])
        );
        let l: Loop = "b=spherical:a@b@1,2,3:c".parse().expect("a loop");
        assert_eq!((l.parent.link.as_str(), l.axis), ("a@b", [1.0, 0.0, 0.0]));
    }

    #[test]
    fn errors_are_reported() {
        let problem = |text: &str| text.parse::<Loop>().expect_err("a problem");
        assert!(problem("revolute:a:b").contains("NAME=TYPE"));
        assert!(problem("x=revolute:a").contains("NAME=TYPE"));
        assert!(problem("=revolute:a:b").contains("NAME=TYPE"));
        assert!(problem("x=revolut:a:b").contains("did you mean `revolute`?"));
        assert!(problem("x=floating:a:b").contains("the types are fixed"));
        assert!(problem("x=revolute:a:b:0,0,0").contains("zero"));
        assert!(problem("x=revolute:a:b:0,1").contains("three numbers"));
        assert!(problem("x=revolute:a@1,2:b").contains("neither"));
        assert!(problem("x=revolute:a@1,2,nan:b").contains("not a number"));
        assert!(problem("x=revolute:a@1,2,1e99:b").contains("not a number"));
    }
}
