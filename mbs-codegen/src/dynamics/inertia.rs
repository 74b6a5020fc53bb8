//! Inertia of bodies in world axes, about a reference point.

use crate::elements::Mechanism;
use crate::graph::{ExprId, Graph, Mat3, Vec3};
use crate::kinematics::Spatial;
use crate::lowering::{Lowering, ParametersOnly};
use crate::topology::Link;

/// A symmetric matrix: xx, yy, zz, xy, xz, yz.
#[derive(Clone, Copy, Debug)]
pub struct Symmetric(pub [ExprId; 6]);

impl Symmetric {
    /// Rows and columns of the six entries.
    pub const PLACES: [(usize, usize); 6] = [(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)];

    /// The full matrix.
    pub fn matrix(self) -> Mat3 {
        let [xx, yy, zz, xy, xz, yz] = self.0;
        Mat3([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    }

    /// The upper triangle of a symmetric matrix.
    pub fn upper(m: Mat3) -> Symmetric {
        let m = m.0;
        Symmetric([m[0][0], m[1][1], m[2][2], m[0][1], m[0][2], m[1][2]])
    }
}

/// Mass, first moment m e and inertia about a reference point o, e = g − o.
#[derive(Clone, Copy, Debug)]
pub struct BodyInertia {
    /// m
    pub mass: ExprId,
    /// h = m (g − o)
    pub moment: Vec3,
    /// J about o
    pub inertia: Symmetric,
}

impl BodyInertia {
    /// m, h, J as xx, yy, zz, xy, xz, yz
    pub fn numbers(self) -> [ExprId; 10] {
        let ([x, y, z], [xx, yy, zz, xy, xz, yz]) = (self.moment.0, self.inertia.0);
        [self.mass, x, y, z, xx, yy, zz, xy, xz, yz]
    }
}

impl Graph {
    /// A + B
    pub fn add_symmetric(&mut self, a: Symmetric, b: Symmetric) -> Symmetric {
        Symmetric(std::array::from_fn(|i| self.add(a.0[i], b.0[i])))
    }

    /// (a·b) I − ½ (a bᵀ + b aᵀ): the parallel-axis term of a first moment a at a distance b.
    fn parallel_axis(&mut self, a: Vec3, b: Vec3) -> Symmetric {
        let half = self.constant(0.5);
        let p = self.axis_products(a, b);
        let mut mixed = |i: usize, j: usize, product: ExprId| {
            let other = self.mul(a[j], b[i]);
            let sum = self.add(product, other);
            let mean = self.mul(half, sum);
            self.neg(mean)
        };
        let [xy, xz, yz] = [mixed(0, 1, p[3]), mixed(0, 2, p[4]), mixed(1, 2, p[5])];
        Symmetric([self.add(p[1], p[2]), self.add(p[0], p[2]), self.add(p[0], p[1]), xy, xz, yz])
    }

    /// m (s·s I − s sᵀ) from m s and s: the same for a parallel to b, with half the products.
    fn point_inertia(&mut self, ms: Vec3, s: Vec3) -> Symmetric {
        let p = self.axis_products(ms, s);
        let [xy, xz, yz] = [p[3], p[4], p[5]].map(|product| self.neg(product));
        Symmetric([self.add(p[1], p[2]), self.add(p[0], p[2]), self.add(p[0], p[1]), xy, xz, yz])
    }

    /// a_x b_x, a_y b_y, a_z b_z, a_x b_y, a_x b_z, a_y b_z
    fn axis_products(&mut self, a: Vec3, b: Vec3) -> [ExprId; 6] {
        Symmetric::PLACES.map(|(i, j)| self.mul(a[i], b[j]))
    }

    /// Sum of two inertias about the same point.
    pub fn add_inertia(&mut self, a: BodyInertia, b: BodyInertia) -> BodyInertia {
        BodyInertia {
            mass: self.add(a.mass, b.mass),
            moment: self.add3(a.moment, b.moment),
            inertia: self.add_symmetric(a.inertia, b.inertia),
        }
    }

    /// The inertia about o − shift: h' = h + m s, J' = J + 2(h·s) I − h sᵀ − s hᵀ + m (s·s I − s sᵀ)
    pub fn shift_inertia(&mut self, a: BodyInertia, shift: Vec3) -> BodyInertia {
        let ms = self.scale3(a.mass, shift);
        let term = if self.is_zero_vector(a.moment) {
            self.point_inertia(ms, shift)
        } else {
            // 2h + m s combines both terms.
            let two = self.constant(2.0);
            let twice = self.scale3(two, a.moment);
            let carried = self.add3(twice, ms);
            self.parallel_axis(carried, shift)
        };
        BodyInertia {
            mass: a.mass,
            moment: self.add3(a.moment, ms),
            inertia: self.add_symmetric(a.inertia, term),
        }
    }

    /// Force and moment about o for an acceleration: (m a + α × h, J α + h × a)
    pub fn apply_inertia(&mut self, inertia: BodyInertia, motion: Spatial) -> Spatial {
        let ma = self.scale3(inertia.mass, motion.linear);
        let turned = self.cross3(motion.angular, inertia.moment);
        let ja = self.apply(inertia.inertia.matrix(), motion.angular);
        let moved = self.cross3(inertia.moment, motion.linear);
        Spatial { linear: self.add3(ma, turned), angular: self.add3(ja, moved) }
    }
}

/// Inertia of every link's body about its centre of mass, in world axes: mass and A J̄ Aᵀ.
pub fn body_inertias(g: &mut Graph, mechanism: &Mechanism<'_>) -> Vec<(ExprId, Symmetric)> {
    let mut inertias = Vec::with_capacity(mechanism.tree.links.len());
    for (link, position) in mechanism.tree.links.iter().zip(&mechanism.positions.links) {
        let (mass, _, local) = local_inertia(g, mechanism, link);
        inertias.push((mass, rotate_inertia(g, position.rotation, local)));
    }
    inertias
}

/// Mass, centre of mass and inertia about it of a link's body, in its own axes.
pub(super) fn local_inertia(
    g: &mut Graph,
    mechanism: &Mechanism<'_>,
    link: &Link,
) -> (ExprId, Vec3, Symmetric) {
    let body = &mechanism.model.bodies[link.body.index()];
    let mut nothing_moves = ParametersOnly;
    let mut lower = Lowering::new(g, mechanism.parameters, &mut nothing_moves);
    let (mass, com) = (lower.scalar(&body.mass), lower.vector(&body.com));
    let j = &body.inertia;
    let elements = [&j.xx, &j.yy, &j.zz, &j.xy, &j.xz, &j.yz].map(|e| lower.scalar(e));
    let frame = j.frame.as_ref().map(|(axis, reference)| (lower.vector(axis), lower.vector(reference)));
    let mut local = Symmetric(elements);
    if let Some((axis, reference)) = frame {
        let frame = g.frame(axis, reference);
        local = rotate_inertia(g, frame, local);
    }
    (mass, com, local)
}

/// A J Aᵀ. A spherical inertia is unchanged.
pub(super) fn rotate_inertia(g: &mut Graph, a: Mat3, j: Symmetric) -> Symmetric {
    let [xx, yy, zz, xy, xz, yz] = j.0;
    if xx == yy && yy == zz && [xy, xz, yz].iter().all(|&e| g.is(e, 0.0)) {
        return j;
    }
    let aj = g.product(a, j.matrix());
    let mut entry = |i: usize, k: usize| g.dot3(Vec3(aj.0[i]), Vec3(a.0[k]));
    Symmetric([entry(0, 0), entry(1, 1), entry(2, 2), entry(0, 1), entry(0, 2), entry(1, 2)])
}

/// The inertias about the links' reference points.
pub(crate) fn reference_inertias(
    g: &mut Graph,
    mechanism: &Mechanism<'_>,
    inertias: &[(ExprId, Symmetric)],
) -> Vec<BodyInertia> {
    let links = mechanism.positions.links.iter().zip(inertias);
    links
        .map(|(position, &(mass, inertia))| {
            let zero = g.zero_vector();
            let e = g.sub3(position.com, position.reference);
            g.shift_inertia(BodyInertia { mass, moment: zero, inertia }, e)
        })
        .collect()
}
