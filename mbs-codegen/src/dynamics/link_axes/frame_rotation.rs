//! Rotations between a frame and its parent, as products of factors that are cheap to apply.

use crate::dynamics::Symmetric;
use crate::dynamics::inertia::rotate_inertia;
use crate::graph::{ExprId, Graph, Mat3, Vec3};

/// A factor of a rotation, from child to parent.
#[derive(Clone, Copy, Debug)]
pub(super) enum Factor {
    /// Rotation about a coordinate axis: four products for a vector, none for multiples of π/2.
    AboutAxis { axis: usize, sine: ExprId, cosine: ExprId },
    /// Any other rotation.
    Matrix(Mat3),
}

/// Rotation from a frame's axes to its parent's: factors from parent to child.
#[derive(Clone, Debug)]
pub(super) struct FrameRotation(pub Vec<Factor>);

impl FrameRotation {
    /// R v: from the frame's axes to the parent's.
    pub(super) fn to_parent(&self, g: &mut Graph, v: Vec3) -> Vec3 {
        self.0.iter().rev().fold(v, |v, factor| factor.to_parent(g, v))
    }

    /// Rᵀ v: from the parent's axes to the frame's.
    pub(super) fn to_child(&self, g: &mut Graph, v: Vec3) -> Vec3 {
        self.0.iter().fold(v, |v, factor| factor.to_child(g, v))
    }

    /// R J Rᵀ: a symmetric tensor from the frame's axes to the parent's.
    pub(super) fn tensor_to_parent(&self, g: &mut Graph, j: Symmetric) -> Symmetric {
        self.0.iter().rev().fold(j, |j, factor| factor.tensor_to_parent(g, j))
    }
}

impl Factor {
    fn to_parent(self, g: &mut Graph, v: Vec3) -> Vec3 {
        match self {
            Factor::AboutAxis { axis, sine, cosine } => rotate_about_axis(g, axis, sine, cosine, v),
            Factor::Matrix(r) => g.apply(r, v),
        }
    }

    fn to_child(self, g: &mut Graph, v: Vec3) -> Vec3 {
        match self {
            Factor::AboutAxis { axis, sine, cosine } => {
                let back = g.neg(sine);
                rotate_about_axis(g, axis, back, cosine, v)
            }
            Factor::Matrix(r) => g.apply_transposed(r, v),
        }
    }

    /// About z: with y = s (J_xx − J_yy) + 2 c J_xy, J_xx − s y, J_yy + s y, c y − J_xy; (J_xz, J_yz) rotate as a vector.
    fn tensor_to_parent(&self, g: &mut Graph, j: Symmetric) -> Symmetric {
        let (axis, sine, cosine) = match *self {
            Factor::AboutAxis { axis, sine, cosine } => (axis, sine, cosine),
            Factor::Matrix(r) => return rotate_inertia(g, r, j),
        };
        let mut m = j.matrix().0;
        let (x, y) = ((axis + 1) % 3, (axis + 2) % 3);
        let carried = rotate_about_axis(g, axis, sine, cosine, Vec3(m[axis]));
        if g.is(cosine, 0.0) {
            // Rotation by ±π/2.
            let across = g.neg(m[x][y]);
            (m[x][x], m[y][y], m[x][y]) = (m[y][y], m[x][x], across);
        } else if !g.is(sine, 0.0) {
            let difference = g.sub(m[x][x], m[y][y]);
            let two = g.constant(2.0);
            let twice = g.mul(two, m[x][y]);
            let [first, second] = [g.mul(sine, difference), g.mul(cosine, twice)];
            let both = g.add(first, second);
            let change = g.mul(sine, both);
            m[x][x] = g.sub(m[x][x], change);
            m[y][y] = g.add(m[y][y], change);
            let turned = g.mul(cosine, both);
            m[x][y] = g.sub(turned, m[x][y]);
        }
        (m[x][axis], m[y][axis]) = (carried[x], carried[y]);
        (m[axis][x], m[axis][y], m[y][x]) = (carried[x], carried[y], m[x][y]);
        Symmetric::upper(Mat3(m))
    }
}

/// v rotated about a coordinate axis.
fn rotate_about_axis(g: &mut Graph, axis: usize, sine: ExprId, cosine: ExprId, v: Vec3) -> Vec3 {
    let (x, y) = ((axis + 1) % 3, (axis + 2) % 3);
    let [cx, sy, sx, cy] = [g.mul(cosine, v[x]), g.mul(sine, v[y]), g.mul(sine, v[x]), g.mul(cosine, v[y])];
    let mut turned = v.0;
    turned[x] = g.sub(cx, sy);
    turned[y] = g.add(sx, cy);
    Vec3(turned)
}

/// A constant rotation as rotations about z, x and z: sines and cosines of γ, α, θ with R = R_z(γ) R_x(α) R_z(θ).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct EulerAngles {
    pub gamma: [f64; 2],
    pub alpha: [f64; 2],
    pub theta: [f64; 2],
}

/// Entries of a rotation matrix below this are rounding errors.
const ROUNDING: f64 = 4e-16;

/// Below this sine of the angle α between axes, θ is computed from γ. Entries of a rotation matrix have the rounding error ε; an angle
/// computed from entries proportional to sin α has the error ε/sin α. Above this limit at most two digits are lost.
const NEARLY_PARALLEL: f64 = 1e-2;

impl EulerAngles {
    pub(super) fn of(r: [[f64; 3]; 3]) -> EulerAngles {
        let r = r.map(|row| row.map(|x| if x.abs() < ROUNDING { 0.0 } else { x }));
        // R_z(γ) R_x(α) R_z(θ) has the last column (sin γ sin α, −cos γ sin α, cos α) and the last row
        // (sin α sin θ, sin α cos θ, cos α).
        let sine = r[0][2].hypot(r[1][2]);
        if sine == 0.0 {
            // Parallel axes: a rotation about z, after one by π about x if they point in opposite directions.
            let flip = r[2][2].signum();
            return EulerAngles {
                gamma: [0.0, 1.0],
                alpha: [0.0, flip],
                theta: unit(flip * r[1][0], r[0][0]),
            };
        }
        let gamma = unit(r[0][2], -r[1][2]);
        // Of nearly parallel axes γ and θ are known badly, their sum well: R_z(γ)ᵀ R has the first row (cos θ, −sin θ, 0).
        let [s, c] = gamma;
        let theta = if sine < NEARLY_PARALLEL {
            unit(-(c * r[0][1] + s * r[1][1]), c * r[0][0] + s * r[1][0])
        } else {
            unit(r[2][0], r[2][1])
        };
        EulerAngles { gamma, alpha: unit(sine, r[2][2]), theta }
    }
}

fn unit(sine: f64, cosine: f64) -> [f64; 2] {
    let length = sine.hypot(cosine);
    [sine / length, cosine / length]
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::f64::consts::{FRAC_PI_2, PI};

    fn about(axis: usize, [s, c]: [f64; 2]) -> [[f64; 3]; 3] {
        let mut r = [[0.0; 3]; 3];
        let (x, y) = ((axis + 1) % 3, (axis + 2) % 3);
        (r[axis][axis], r[x][x], r[y][y], r[x][y], r[y][x]) = (1.0, c, c, -s, s);
        r
    }

    fn times(a: [[f64; 3]; 3], b: [[f64; 3]; 3]) -> [[f64; 3]; 3] {
        std::array::from_fn(|i| std::array::from_fn(|j| (0..3).map(|k| a[i][k] * b[k][j]).sum()))
    }

    /// Axes that are parallel except for the limited digits of a file: rounding errors of the small entries must not affect the other angles.
    #[test]
    fn nearly_parallel_axes_turn_by_the_right_angle() {
        for alpha in [1e-15_f64, 1e-12, 3e-10, 1e-6, 1e-3] {
            let [gamma, theta] = [0.7_f64, -1.9].map(|angle| [angle.sin(), angle.cos()]);
            let mut r = times(times(about(2, gamma), about(0, [alpha.sin(), alpha.cos()])), about(2, theta));
            for ((i, j), small) in
                [(0, 2), (1, 2), (2, 0), (2, 1)].into_iter().zip([1e-16, -2e-16, 2e-16, -1e-16])
            {
                r[i][j] += small;
            }
            let EulerAngles { gamma, alpha: turn, theta } = EulerAngles::of(r);
            let again = times(times(about(2, gamma), about(0, turn)), about(2, theta));
            for (a, b) in r.iter().flatten().zip(again.iter().flatten()) {
                assert!((a - b).abs() < 2e-15, "{alpha:e}: {r:?} {again:?}");
            }
        }
    }

    /// General, parallel, opposite and nearly parallel axes; signed permutations stay exact.
    #[test]
    fn euler_angles_make_the_rotation() {
        let angle = |a: f64| [a.sin(), a.cos()];
        let mut all = Vec::new();
        for gamma in [0.0, 0.4, 2.9, -1.2] {
            for alpha in [0.0, 1e-9, 1.0, PI, FRAC_PI_2 - 7e-9] {
                for theta in [0.0, 0.7, -2.8] {
                    all.push(times(
                        times(about(2, angle(gamma)), about(0, angle(alpha))),
                        about(2, angle(theta)),
                    ));
                }
            }
        }
        let quarter = about(1, [1.0, 0.0]);
        all.push(quarter);
        for r in all {
            let e = EulerAngles::of(r);
            let again = times(times(about(2, e.gamma), about(0, e.alpha)), about(2, e.theta));
            for (a, b) in r.iter().flatten().zip(again.iter().flatten()) {
                assert!((a - b).abs() < 2e-15, "{r:?} {again:?}");
            }
        }
        let exact = EulerAngles::of(quarter);
        for x in [exact.gamma, exact.alpha, exact.theta].concat() {
            assert!(x == 0.0 || x.abs() == 1.0);
        }
    }
}
