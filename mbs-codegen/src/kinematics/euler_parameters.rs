//! Euler parameters p = (e0, e), scalar first, of any length.
//!
//! | symbol | meaning | shape |
//! |---|---|---|
//! | p | Euler parameters, \|p\| arbitrary but not zero | 4 |
//! | Ē, Ḡ | [−e, e0 I + ẽ], [−e, e0 I − ẽ] | 3×4 |
//! | A | Ē Ḡᵀ/\|p\|², child frame into parent frame | 3×3 |
//! | ω | angular velocity in the child frame | 3 |
//!
//! The division by |p|² makes every closed form exact for any |p|, and p the exact null vector of the mass
//! matrix in coordinate form. [LopezVarela2023, Table 11] gives it for |p| = 1.

use crate::graph::Comparison;
use crate::graph::{ExprId, Graph, Mat3, Vec3};

fn square_length(g: &mut Graph, p: [ExprId; 4]) -> ExprId {
    let squares = p.map(|e| g.square(e));
    g.sum(&squares)
}

/// A(p) = Ē Ḡᵀ/|p|²: with s = 2/|p|²,
/// A = I + s [[−e2²−e3², e1e2−e0e3, e1e3+e0e2], [e1e2+e0e3, −e1²−e3², e2e3−e0e1], [e1e3−e0e2, e2e3+e0e1, −e1²−e2²]]
pub fn rotation(g: &mut Graph, p: [ExprId; 4]) -> Mat3 {
    let [e0, e1, e2, e3] = p;
    let square = square_length(g, p);
    let two = g.constant(2.0);
    let s = g.div(two, square);
    let [s1, s2, s3] = [e1, e2, e3].map(|e| g.mul(s, e));
    let [x1, x2, x3] = [g.mul(s1, e1), g.mul(s2, e2), g.mul(s3, e3)];
    let [p12, p13, p23] = [g.mul(s1, e2), g.mul(s1, e3), g.mul(s2, e3)];
    let [w1, w2, w3] = [s1, s2, s3].map(|se| g.mul(e0, se));
    let one = g.one();
    let mut diagonal = |a, b| {
        let sum = g.add(a, b);
        g.sub(one, sum)
    };
    let [d1, d2, d3] = [diagonal(x2, x3), diagonal(x1, x3), diagonal(x1, x2)];
    Mat3([
        [d1, g.sub(p12, w3), g.add(p13, w2)],
        [g.add(p12, w3), d2, g.sub(p23, w1)],
        [g.sub(p13, w2), g.add(p23, w1), d3],
    ])
}

/// Euler parameters of a rotation, of unit length. With t_i = 4 e_i² from the diagonal and the products 4 e_i e_j from the rest,
/// p = (4 e_i e_j)_j/(2 √t_i) for the i of the largest t_i, which is at least 1 [Shepperd, J. Guidance and Control, 1978].
pub fn of_rotation(g: &mut Graph, a: Mat3) -> [ExprId; 4] {
    let [[a11, a12, a13], [a21, a22, a23], [a31, a32, a33]] = a.0;
    let one = g.one();
    // t_i = 1 ± a11 ± a22 ± a33
    let mut square = |signs: [bool; 3]| {
        [a11, a22, a33].into_iter().zip(signs).fold(one, |sum, (entry, plus)| match plus {
            true => g.add(sum, entry),
            false => g.sub(sum, entry),
        })
    };
    let t = [[true; 3], [true, false, false], [false, true, false], [false, false, true]].map(&mut square);
    let products = [
        [t[0], g.sub(a32, a23), g.sub(a13, a31), g.sub(a21, a12)],
        [g.sub(a32, a23), t[1], g.add(a12, a21), g.add(a13, a31)],
        [g.sub(a13, a31), g.add(a12, a21), t[2], g.add(a23, a32)],
        [g.sub(a21, a12), g.add(a13, a31), g.add(a23, a32), t[3]],
    ];
    let (mut largest, mut row) = (t[0], products[0]);
    for (t, products) in t.into_iter().zip(products).skip(1) {
        row = std::array::from_fn(|j| g.select(Comparison::Less, largest, t, products[j], row[j]));
        largest = g.select(Comparison::Less, largest, t, t, largest);
    }
    let root = g.sqrt(largest);
    let half = g.constant(0.5);
    let scale = g.div(half, root);
    row.map(|product| g.mul(scale, product))
}

/// pd = N(p) ω = ½ Ḡᵀ ω: the rates, linear in p and in ω.
pub fn rates(g: &mut Graph, p: [ExprId; 4], omega: Vec3) -> [ExprId; 4] {
    let half = g.constant(0.5);
    let [e0, e1, e2, e3] = p;
    let e = Vec3([e1, e2, e3]);
    // ed0 = −½ e·ω
    let along = g.dot3(e, omega);
    // ed = ½ (e0 ω + e × ω)
    let scaled = g.scale3(e0, omega);
    let turned = g.cross3(e, omega);
    let sum = g.add3(scaled, turned);
    let along = g.neg(along);
    [along, sum[0], sum[1], sum[2]].map(|x| g.mul(half, x))
}

/// L(p) = 2 Ḡ/|p|²: ω = L pd, by rows. L N = I.
pub fn velocity_map(g: &mut Graph, p: [ExprId; 4]) -> [[ExprId; 4]; 3] {
    let square = square_length(g, p);
    let two = g.constant(2.0);
    let s = g.div(two, square);
    let [s0, s1, s2, s3] = p.map(|e| g.mul(s, e));
    let [n1, n2, n3] = [s1, s2, s3].map(|e| g.neg(e));
    [[n1, s0, s3, n2], [n2, n3, s0, s1], [n3, s2, n1, s0]]
}
