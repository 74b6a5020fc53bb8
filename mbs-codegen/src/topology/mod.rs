//! The tree of a mechanism: which body hangs on which, through which joint, with which coordinates.
//!
//! Enters: a [`Model`] without closed loops. Leaves: a [`Tree`].
//! Holds afterwards: links stand parents first; coordinates z and velocities v are numbered along the
//! links; every body but ground has exactly one link.

mod spanning_tree;

pub use spanning_tree::span;

use crate::model::{BodyId, CoordinateRef, JointId, JointKind, Model, VelocityRef};

/// A joint of the tree with the body it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The joint.
    pub joint: JointId,
    /// What it allows.
    pub kind: JointKind,
    /// The body it carries.
    pub body: BodyId,
    /// The link of the parent body; `None` on ground.
    pub parent: Option<usize>,
    /// First coordinate.
    pub z: usize,
    /// First velocity.
    pub v: usize,
}

impl Link {
    /// Its coordinates.
    pub fn z_range(&self) -> std::ops::Range<usize> {
        self.z..self.z + self.kind.coordinates().len()
    }

    /// Its velocities.
    pub fn v_range(&self) -> std::ops::Range<usize> {
        self.v..self.v + self.kind.velocities().len()
    }

    /// Place of its four Euler parameters among z and of its angular velocity among v.
    pub fn euler_parameters(&self) -> Option<(usize, usize)> {
        match self.kind {
            JointKind::Spherical => Some((self.z, self.v)),
            JointKind::Floating => Some((self.z + 3, self.v + 3)),
            _ => None,
        }
    }
}

/// The tree, parents first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// The links.
    pub links: Vec<Link>,
    /// The link that carries each body; `None` for ground.
    pub link_of_body: Vec<Option<usize>>,
    /// Number of coordinates.
    pub nq: usize,
    /// Number of velocities.
    pub nv: usize,
}

impl Tree {
    /// The place of a coordinate among z.
    pub fn z_of(&self, coordinate: CoordinateRef) -> Option<usize> {
        Some(self.link_of_joint(coordinate.joint)?.z + coordinate.index as usize)
    }

    /// The place of a velocity among v.
    pub fn v_of(&self, velocity: VelocityRef) -> Option<usize> {
        Some(self.link_of_joint(velocity.joint)?.v + velocity.index as usize)
    }

    /// The link of a joint.
    pub fn link_of_joint(&self, joint: JointId) -> Option<&Link> {
        self.links.iter().find(|link| link.joint == joint)
    }

    /// The link to which a velocity belongs.
    pub fn link_of_v(&self, v: usize) -> Option<&Link> {
        self.links.iter().find(|link| link.v_range().contains(&v))
    }

    /// For each velocity the one before it on the way to ground: the tree of the mass matrix.
    pub fn v_parents(&self) -> Vec<Option<usize>> {
        let mut parents = vec![None; self.nv];
        for link in &self.links {
            let mut before = self.last_v(link.parent);
            for v in link.v_range() {
                parents[v] = before;
                before = Some(v);
            }
        }
        parents
    }

    /// The last velocity on the way from ground to a link, itself included.
    fn last_v(&self, mut link: Option<usize>) -> Option<usize> {
        while let Some(i) = link {
            let range = self.links[i].v_range();
            if !range.is_empty() {
                return Some(range.end - 1);
            }
            link = self.links[i].parent;
        }
        None
    }

    /// Full names of the coordinates, `joint.coordinate`, in the order of z.
    pub fn coordinate_names(&self, model: &Model) -> Vec<String> {
        self.names(model, |joint| &joint.coordinates)
    }

    /// Full names of the velocities, `joint.velocity`, in the order of v.
    pub fn velocity_names(&self, model: &Model) -> Vec<String> {
        self.names(model, |joint| &joint.velocities)
    }

    fn names(&self, model: &Model, of: impl Fn(&crate::model::Joint) -> &Vec<String>) -> Vec<String> {
        let joints = self.links.iter().map(|link| &model.joints[link.joint.index()]);
        joints.flat_map(|j| of(j).iter().map(move |name| format!("{}.{name}", j.name))).collect()
    }
}
