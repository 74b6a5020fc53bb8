//! Triangle meshes of simple bodies, in the frame that they are fixed to.

use std::f64::consts::TAU;

/// A point or a direction.
pub(crate) type P = [f64; 3];

/// Vertices and triangles.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mesh {
    /// Vertices.
    pub corners: Vec<P>,
    /// Indices of three vertices each.
    pub triangles: Vec<[usize; 3]>,
}

pub(crate) fn add(a: P, b: P) -> P {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

pub(crate) fn sub(a: P, b: P) -> P {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

pub(crate) fn scale(s: f64, a: P) -> P {
    a.map(|x| s * x)
}

pub(crate) fn dot(a: P, b: P) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

pub(crate) fn cross(a: P, b: P) -> P {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

pub(crate) fn length(a: P) -> f64 {
    dot(a, a).sqrt()
}

/// The unit vector along a; `otherwise` if a is zero.
pub(crate) fn unit(a: P, otherwise: P) -> P {
    let n = length(a);
    if n > 0.0 && n.is_finite() { scale(1.0 / n, a) } else { otherwise }
}

/// Two unit vectors normal to a unit vector and to each other.
pub(crate) fn across(axis: P) -> [P; 2] {
    // The coordinate axis with the largest angle to it.
    let mut far = [0.0; 3];
    let k = (0..3).min_by(|&i, &j| axis[i].abs().total_cmp(&axis[j].abs())).unwrap_or(0);
    far[k] = 1.0;
    let u = unit(cross(axis, far), far);
    [u, cross(axis, u)]
}

impl Mesh {
    /// Adds another mesh.
    pub(crate) fn join(&mut self, other: Mesh) {
        let n = self.corners.len();
        self.corners.extend(other.corners);
        self.triangles.extend(other.triangles.into_iter().map(|triangle| triangle.map(|i| i + n)));
    }

    /// A round rod between two points, closed at both ends.
    pub(crate) fn rod(from: P, to: P, radius: f64, sides: usize) -> Mesh {
        let axis = unit(sub(to, from), [0.0, 0.0, 1.0]);
        let [u, v] = across(axis);
        let mut mesh = Mesh::default();
        for end in [from, to] {
            for k in 0..sides {
                let (s, c) = (TAU * k as f64 / sides as f64).sin_cos();
                mesh.corners.push(add(end, add(scale(radius * c, u), scale(radius * s, v))));
            }
        }
        for k in 0..sides {
            let next = (k + 1) % sides;
            mesh.triangles.extend([[k, next, sides + next], [k, sides + next, sides + k]]);
            if k >= 2 {
                mesh.triangles.extend([[0, k, k - 1], [sides, sides + k - 1, sides + k]]);
            }
        }
        mesh
    }

    /// An ellipsoid with these half axes along the frame's.
    pub(crate) fn ellipsoid(centre: P, half: P) -> Mesh {
        const RINGS: usize = 7;
        const SIDES: usize = 12;
        let mut mesh = Mesh::default();
        let at = |x: f64, y: f64, z: f64| add(centre, [half[0] * x, half[1] * y, half[2] * z]);
        mesh.corners.push(at(0.0, 0.0, 1.0));
        for ring in 1..=RINGS {
            let (s, c) = (0.5 * TAU * ring as f64 / (RINGS + 1) as f64).sin_cos();
            for k in 0..SIDES {
                let (y, x) = (TAU * k as f64 / SIDES as f64).sin_cos();
                mesh.corners.push(at(s * x, s * y, c));
            }
        }
        mesh.corners.push(at(0.0, 0.0, -1.0));
        let last = mesh.corners.len() - 1;
        for k in 0..SIDES {
            let next = (k + 1) % SIDES;
            mesh.triangles.push([0, 1 + k, 1 + next]);
            for ring in 0..RINGS - 1 {
                let (a, b) = (1 + ring * SIDES, 1 + (ring + 1) * SIDES);
                mesh.triangles.extend([[a + k, b + k, b + next], [a + k, b + next, a + next]]);
            }
            mesh.triangles.push([last - SIDES + next, last - SIDES + k, last]);
        }
        mesh
    }

    /// A box with these half lengths along the frame's axes.
    pub(crate) fn cuboid(centre: P, half: P) -> Mesh {
        let mut mesh = Mesh::block([0.0; 3], [0.0, 0.0, 1.0], 1.0, 1.0);
        for corner in &mut mesh.corners {
            *corner = add(centre, [half[0] * corner[0], half[1] * corner[1], half[2] * corner[2]]);
        }
        mesh
    }

    /// A round rod with a half sphere beyond each end.
    pub(crate) fn capsule(from: P, to: P, radius: f64) -> Mesh {
        const RINGS: usize = 5;
        const SIDES: usize = 20;
        let axis = unit(sub(to, from), [0.0, 0.0, 1.0]);
        let [u, v] = across(axis);
        let mut mesh = Mesh::default();
        mesh.corners.push(sub(from, scale(radius, axis)));
        // From pole to pole; the last ring of the first end and the first ring of the second form the wall.
        for (end, first) in [(from, 1), (to, RINGS)] {
            for ring in first..first + RINGS {
                let (s, c) = (0.25 * TAU * ring as f64 / RINGS as f64).sin_cos();
                for k in 0..SIDES {
                    let (y, x) = (TAU * k as f64 / SIDES as f64).sin_cos();
                    let out = add(scale(radius * s * x, u), scale(radius * s * y, v));
                    mesh.corners.push(add(end, sub(out, scale(radius * c, axis))));
                }
            }
        }
        mesh.corners.push(add(to, scale(radius, axis)));
        let (last, rings) = (mesh.corners.len() - 1, 2 * RINGS);
        for k in 0..SIDES {
            let next = (k + 1) % SIDES;
            mesh.triangles.push([0, 1 + next, 1 + k]);
            for ring in 0..rings - 1 {
                let (a, b) = (1 + ring * SIDES, 1 + (ring + 1) * SIDES);
                mesh.triangles.extend([[a + k, b + next, b + k], [a + k, a + next, b + next]]);
            }
            mesh.triangles.push([last - SIDES + k, last - SIDES + next, last]);
        }
        mesh
    }

    /// A sphere.
    pub(crate) fn ball(centre: P, radius: f64) -> Mesh {
        Mesh::ellipsoid(centre, [radius; 3])
    }

    /// A block along an axis: half its length along it, half its width across.
    pub(crate) fn block(centre: P, axis: P, half_length: f64, half_width: f64) -> Mesh {
        let [u, v] = across(axis);
        let mut mesh = Mesh::default();
        for k in 0..8 {
            let sign = |bit: usize| if k & bit == 0 { -1.0 } else { 1.0 };
            let corner = add(scale(sign(1) * half_width, u), scale(sign(2) * half_width, v));
            mesh.corners.push(add(centre, add(corner, scale(sign(4) * half_length, axis))));
        }
        for [a, b, c, d] in
            [[0, 2, 3, 1], [4, 5, 7, 6], [0, 1, 5, 4], [2, 6, 7, 3], [0, 4, 6, 2], [1, 3, 7, 5]]
        {
            mesh.triangles.extend([[a, b, c], [a, c, d]]);
        }
        mesh
    }

    /// A support symbol: a pyramid with four sides under a point, along `down`.
    pub(crate) fn support(top: P, down: P, size: f64) -> Mesh {
        let [u, v] = across(down);
        let base = add(top, scale(size, down));
        let corner = |a: f64, b: f64| add(base, add(scale(a * size, u), scale(b * size, v)));
        Mesh {
            corners: vec![top, corner(-0.7, -0.7), corner(0.7, -0.7), corner(0.7, 0.7), corner(-0.7, 0.7)],
            triangles: vec![[0, 2, 1], [0, 3, 2], [0, 4, 3], [0, 1, 4], [1, 2, 3], [1, 3, 4]],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Six times the enclosed volume, positive if the triangles face outward.
    fn volume(mesh: &Mesh) -> f64 {
        let of = |t: &[usize; 3]| {
            let [a, b, c] = t.map(|i| mesh.corners[i]);
            dot(a, cross(b, c))
        };
        mesh.triangles.iter().map(of).sum::<f64>() / 6.0
    }

    /// Whether every edge occurs once in each direction, so that the surface has no hole.
    fn is_closed(mesh: &Mesh) -> bool {
        let mut edges = std::collections::BTreeMap::new();
        for t in &mesh.triangles {
            for (a, b) in [(t[0], t[1]), (t[1], t[2]), (t[2], t[0])] {
                *edges.entry((a.min(b), a.max(b))).or_insert(0) += if a < b { 1 } else { -1 };
            }
        }
        edges.values().all(|&sum| sum == 0)
    }

    #[test]
    fn shapes_are_closed_and_as_large_as_they_should_be() {
        let axis = unit([1.0, 2.0, -0.5], [0.0; 3]);
        let [u, v] = across(axis);
        assert!(dot(u, v).abs() + dot(u, axis).abs() + dot(v, axis).abs() < 1e-15);
        let rod = Mesh::rod([1.0, 0.0, 0.0], [1.0, 0.0, 2.0], 0.5, 8);
        // A prism over a regular octagon: 2 √2 r² times its length.
        assert!((volume(&rod) - 8.0_f64.sqrt() * 0.25 * 2.0).abs() < 1e-12);
        let block = Mesh::block([3.0, 0.0, 1.0], axis, 2.0, 0.5);
        assert!((volume(&block) - 4.0).abs() < 1e-12);
        let ellipsoid = Mesh::ellipsoid([0.0, 5.0, 0.0], [1.0, 2.0, 3.0]);
        let round = volume(&ellipsoid) / (8.0 * std::f64::consts::PI);
        assert!((0.85..1.0).contains(&round), "inscribed: {round}");
        let support = Mesh::support([0.0; 3], [0.0, 0.0, -1.0], 1.0);
        assert!((volume(&support) - 1.4 * 1.4 / 3.0).abs() < 1e-12, "{}", volume(&support));
        let cuboid = Mesh::cuboid([1.0, 2.0, 3.0], [0.5, 1.0, 1.5]);
        assert!((volume(&cuboid) - 6.0).abs() < 1e-12);
        let capsule = Mesh::capsule([0.0, 1.0, 0.0], [2.0, 1.0, 1.0], 0.5);
        // A cylinder and a ball, inscribed.
        let round = volume(&capsule) / (std::f64::consts::PI * (0.25 * 5.0_f64.sqrt() + 0.5 / 3.0));
        assert!((0.94..1.0).contains(&round), "{round}");
        for mesh in [rod, block, ellipsoid, support, cuboid, capsule] {
            assert!(is_closed(&mesh));
        }
    }
}
