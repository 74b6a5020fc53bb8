//! Merges links that do not move relative to each other into one body.
//!
//! Input: a robot and its tree. Output: [`Bodies`]. Holds afterwards: every link is part of a body or of ground;
//! mass, centre of mass and inertia of a body are those of all its links; every remaining joint moves
//! mass, directly or through joints that mimic it.

use crate::frame::{Frame, Vec3, product, transposed};
use crate::robot::{Inertial, JointId, Kind, LinkId, Robot};
use crate::tree::Tree;

/// A body, or ground.
#[derive(Debug, Default)]
pub(crate) struct Body {
    /// Its links with their frames in the body's frame, which is that of the first link. Ground has the
    /// frame of the root.
    pub(crate) links: Vec<(LinkId, Frame)>,
    pub(crate) mass: f64,
    pub(crate) com: Vec3,
    /// xx, yy, zz, xy, xz, yz about the centre of mass, in the frame with these axes, or in the body's.
    pub(crate) inertia: [f64; 6],
    pub(crate) axes: Option<Frame>,
}

/// Bodies and the joints that move them.
#[derive(Debug)]
pub(crate) struct Bodies {
    /// Ground first.
    pub(crate) bodies: Vec<Body>,
    /// By link: its body, and its frame in that body.
    pub(crate) place: Vec<(usize, Frame)>,
    /// Joints that move, parents first. The child's body has the frame of the child link.
    pub(crate) joints: Vec<JointId>,
    /// Joints locked at zero because they move no mass.
    pub(crate) locked: Vec<JointId>,
    /// Whether the root link is a floating body.
    pub(crate) floats: bool,
}

/// Merges links.
pub(crate) fn merge(robot: &Robot, tree: &Tree, floats: bool) -> Bodies {
    let moves = moving_joints(robot, tree);
    let mut bodies = vec![Body::default()];
    if floats {
        bodies.push(Body::default());
    }
    let root = bodies.len() - 1;
    bodies[root].links.push((tree.root, Frame::IDENTITY));
    let mut place = vec![(root, Frame::IDENTITY); robot.links.len()];
    let (mut joints, mut locked) = (Vec::new(), Vec::new());
    for &id in &tree.order {
        let joint = &robot.joints[id.0];
        let (body, frame) = if moves[id.0] {
            bodies.push(Body::default());
            joints.push(id);
            (bodies.len() - 1, Frame::IDENTITY)
        } else {
            if joint.kind != Kind::Fixed {
                locked.push(id);
            }
            let (body, parent) = &place[joint.parent.0];
            (*body, parent.compose(&joint.origin))
        };
        place[joint.child.0] = (body, frame);
        bodies[body].links.push((joint.child, frame));
    }
    for body in &mut bodies {
        body.sum_inertia(robot);
    }
    Bodies { bodies, place, joints, locked, floats }
}

/// Whether each joint moves mass: its own, or that of a joint coupled to it by `mimic`.
fn moving_joints(robot: &Robot, tree: &Tree) -> Vec<bool> {
    let has_mass = |link: LinkId| robot.links[link.0].inertial.is_some_and(|i| has_mass(&i));
    let mut below: Vec<bool> = (0..robot.links.len()).map(|link| has_mass(LinkId(link))).collect();
    for &id in tree.order.iter().rev() {
        let joint = &robot.joints[id.0];
        below[joint.parent.0] |= below[joint.child.0];
    }
    let mut moves: Vec<bool> =
        robot.joints.iter().map(|joint| joint.kind != Kind::Fixed && below[joint.child.0]).collect();
    // A joint that mimics, or is mimicked by, a joint that moves mass, moves it too.
    let leader = |mut joint: usize| {
        while let Some(mimic) = robot.joints[joint].mimic {
            joint = mimic.joint.0;
        }
        joint
    };
    let leaders: Vec<usize> = (0..robot.joints.len()).map(leader).collect();
    let mut heavy = vec![false; robot.joints.len()];
    for (joint, &leader) in leaders.iter().enumerate() {
        heavy[leader] |= moves[joint];
    }
    for (joint, &leader) in leaders.iter().enumerate() {
        moves[joint] |= heavy[leader] && robot.joints[joint].kind != Kind::Fixed;
    }
    moves
}

fn has_mass(inertial: &Inertial) -> bool {
    inertial.mass > 0.0 || inertial.inertia.iter().any(|x| *x != 0.0)
}

impl Body {
    /// Sums mass, centre of mass and inertia of the links. A single link with mass keeps the numbers of the file.
    fn sum_inertia(&mut self, robot: &Robot) {
        let parts: Vec<(Frame, Inertial)> = self
            .links
            .iter()
            .filter_map(|(link, frame)| Some((frame, robot.links[link.0].inertial.filter(has_mass)?)))
            .map(|(frame, inertial)| (frame.compose(&inertial.frame), inertial))
            .collect();
        if let [(frame, only)] = parts.as_slice() {
            self.mass = only.mass;
            self.com = frame.origin;
            self.inertia = only.inertia;
            let [xx, yy, zz, xy, xz, yz] = only.inertia;
            let same_everywhere = xx == yy && yy == zz && [xy, xz, yz] == [0.0; 3];
            self.axes = Some(*frame).filter(|frame| frame.is_rotated() && !same_everywhere);
            return;
        }
        // m = Σ m_i,  c = Σ m_i c_i / m
        self.mass = parts.iter().map(|(_, part)| part.mass).sum();
        if self.mass > 0.0 {
            self.com = std::array::from_fn(|k| {
                parts.iter().map(|(frame, part)| part.mass * frame.origin[k]).sum::<f64>() / self.mass
            });
        }
        // J = Σ R_i J_i R_iᵀ + m_i (d·d I − d dᵀ),  d = c_i − c
        let mut sum = [[0.0; 3]; 3];
        for (frame, part) in &parts {
            let [xx, yy, zz, xy, xz, yz] = part.inertia;
            let own = [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]];
            let turned = product(&product(&frame.rotation, &own), &transposed(&frame.rotation));
            let d: Vec3 = std::array::from_fn(|k| frame.origin[k] - self.com[k]);
            let square = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
            for (i, row) in sum.iter_mut().enumerate() {
                for (j, entry) in row.iter_mut().enumerate() {
                    let unit = if i == j { square } else { 0.0 };
                    *entry += turned[i][j] + part.mass * (unit - d[i] * d[j]);
                }
            }
        }
        let s = sum;
        self.inertia = [s[0][0], s[1][1], s[2][2], s[0][1], s[0][2], s[1][2]];
    }

    /// Whether all its numbers are finite.
    pub(crate) fn is_finite(&self) -> bool {
        let frames = self.links.iter().map(|(_, frame)| frame).chain(&self.axes);
        frames.into_iter().all(Frame::is_finite)
            && self.inertia.iter().chain(&self.com).chain([&self.mass]).all(|x| x.is_finite())
    }
}
