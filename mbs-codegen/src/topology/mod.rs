//! The tree of a mechanism: which body hangs on which, through which joint, with which coordinates.
//!
//! Input: a [`Model`]. Output: a [`Tree`], the joints cut to get it, and the rows that close the loops again.
//! Holds afterwards: links stand parents first; coordinates z and velocities v are numbered along the
//! links; every body but ground has exactly one link; every joint is in the tree or cut.

mod arborescence;
mod branches;
mod closure;
mod loops;
mod obstacles;
mod spanning_tree;

pub use arborescence::{Arborescence, Keep, arborescence};
pub use branches::{Branch, are_coupled, branches};
pub(crate) use closure::least_aligned;
pub use closure::{Row, RowSource, closure, rows};
pub use loops::{Loop, loops};
pub use obstacles::{Obstacle, loop_through};
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
    /// The link of each joint; `None` for one that is not in the tree.
    pub link_of_joint: Vec<Option<usize>>,
    /// The joints that are not in the tree, in the order of the file: each closes a loop.
    pub cuts: Vec<JointId>,
    /// Offset of the variables in z, after the coordinates of the joints.
    pub variables_z: usize,
    /// Offset of their rates in v.
    pub variables_v: usize,
    /// Number of coordinates.
    pub nq: usize,
    /// Number of velocities.
    pub nv: usize,
}

impl Tree {
    /// The place of a coordinate among z.
    pub fn z_of(&self, coordinate: CoordinateRef) -> Option<usize> {
        match coordinate {
            CoordinateRef::Joint { joint, index } => Some(self.link_of_joint(joint)?.z + index as usize),
            CoordinateRef::Variable(id) => Some(self.variables_z + id.index()),
        }
    }

    /// The place of a velocity among v.
    pub fn v_of(&self, velocity: VelocityRef) -> Option<usize> {
        Some(self.link_of_joint(velocity.joint)?.v + velocity.index as usize)
    }

    /// The place among v of a coordinate's own rate; `None` for Euler parameters, which have none.
    pub fn v_of_coordinate(&self, coordinate: CoordinateRef) -> Option<usize> {
        match coordinate {
            CoordinateRef::Joint { joint, index } => {
                let link = self.link_of_joint(joint)?;
                let (z, v) = (link.z + index as usize, link.v + index as usize);
                link.euler_parameters().is_none_or(|(first, _)| z < first).then_some(v)
            }
            CoordinateRef::Variable(id) => Some(self.variables_v + id.index()),
        }
    }

    /// The link to which a coordinate belongs; `None` for a variable.
    pub fn link_of_z(&self, z: usize) -> Option<&Link> {
        // Links without coordinates begin where the next one does.
        let after = self.links.partition_point(|link| link.z <= z);
        self.links[..after].iter().rev().find(|link| link.z_range().contains(&z))
    }

    /// The link of a joint.
    pub fn link_of_joint(&self, joint: JointId) -> Option<&Link> {
        self.links.get((*self.link_of_joint.get(joint.index())?)?)
    }

    /// The link to which a velocity belongs.
    pub fn link_of_v(&self, v: usize) -> Option<&Link> {
        // Links without velocities begin where the next one does.
        let after = self.links.partition_point(|link| link.v <= v);
        self.links[..after].iter().rev().find(|link| link.v_range().contains(&v))
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

    /// For each velocity how many there are from ground to it, itself included.
    pub fn v_depths(&self) -> Vec<usize> {
        let mut depths: Vec<usize> = Vec::with_capacity(self.nv);
        for parent in self.v_parents() {
            depths.push(parent.map_or(0, |p| depths[p]) + 1);
        }
        depths
    }

    /// How many pairs there are of a velocity and one on its way to ground, itself included: the entries of a triangle of M.
    pub fn v_pairs(&self) -> usize {
        self.v_depths().into_iter().sum()
    }

    /// Number of products that factoring M subtracts: for each velocity the depths 1, …, d − 1 of its ancestors.
    pub fn eliminations(&self) -> usize {
        self.v_depths().into_iter().map(|d| d * (d - 1) / 2).sum()
    }

    /// For each link the number of velocities between it and ground, its own included.
    pub fn depths(&self) -> Vec<usize> {
        let mut depths: Vec<usize> = Vec::with_capacity(self.links.len());
        for link in &self.links {
            depths.push(link.parent.map_or(0, |p| depths[p]) + link.v_range().len());
        }
        depths
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
        let mut names = self.names(model, |joint| &joint.coordinates);
        names.extend(model.variables.iter().map(|variable| variable.name.clone()));
        names
    }

    /// The coordinates beside Euler parameters: places in z and in v, full names.
    pub fn single_coordinates(&self, model: &Model) -> Vec<(usize, usize, String)> {
        let (mut z, mut v, mut all) = (0, 0, Vec::new());
        for link in &self.links {
            let joint = &model.joints[link.joint.index()];
            // Euler parameters are the last of a joint's coordinates.
            let turned = joint.coordinates.len() > joint.velocities.len();
            let single = joint.coordinates.len() - if turned { 4 } else { 0 };
            for (i, name) in joint.coordinates.iter().take(single).enumerate() {
                all.push((z + i, v + i, format!("{}.{name}", joint.name)));
            }
            z += joint.coordinates.len();
            v += joint.velocities.len();
        }
        for (i, variable) in model.variables.iter().enumerate() {
            all.push((z + i, v + i, variable.name.clone()));
        }
        all
    }

    /// Full names of the velocities, `joint.velocity`, in the order of v.
    pub fn velocity_names(&self, model: &Model) -> Vec<String> {
        let mut names = self.names(model, |joint| &joint.velocities);
        names.extend(model.variables.iter().map(|variable| format!("{}_rate", variable.name)));
        names
    }

    fn names(&self, model: &Model, of: impl Fn(&crate::model::Joint) -> &Vec<String>) -> Vec<String> {
        let joints = self.links.iter().map(|link| &model.joints[link.joint.index()]);
        joints.flat_map(|j| of(j).iter().map(move |name| format!("{}.{name}", j.name))).collect()
    }
}
