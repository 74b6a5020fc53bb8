//! Meshes of bodies and joints: shapes of the model, or rods between the points of a body, plates, spheres and ellipsoids of
//! inertia; supports of ground, pins and rails. Only the positions of points are to scale; thickness is chosen for visibility.

use super::anchors::distance_to_segment;
use super::{FAR, Geometry, Paint, Solid};
use crate::shapes::{Mesh, P, add, cross, dot, length, scale, sub, unit};
use mbs_codegen::model::JointKind;

/// The shapes of a body, except those whose size is not positive under the current parameters.
pub(super) fn shapes(solids: &[(Paint, Solid)]) -> Vec<(Paint, Mesh)> {
    let mesh = |solid: &Solid| match *solid {
        Solid::Box { at, size } => has_size(size).then(|| Mesh::cuboid(at, scale(0.5, size))),
        Solid::Ellipsoid { at, size } => has_size(size).then(|| Mesh::ellipsoid(at, scale(0.5, size))),
        Solid::Cylinder { ends: [from, to], radius } => {
            has_size([radius, length(sub(to, from)), 1.0]).then(|| Mesh::rod(from, to, radius, 28))
        }
        Solid::Capsule { ends: [from, to], radius } => {
            has_size([radius, length(sub(to, from)), 1.0]).then(|| Mesh::capsule(from, to, radius))
        }
    };
    solids.iter().filter_map(|(paint, solid)| Some((*paint, mesh(solid)?))).collect()
}

fn has_size(lengths: P) -> bool {
    lengths.iter().all(|&length| length > 0.0)
}

/// Supports under the points of ground.
pub(super) fn ground_mesh(anchors: &[P], up: P, radius: f64) -> Mesh {
    let mut mesh = Mesh::default();
    for &p in anchors {
        mesh.join(Mesh::support(p, scale(-1.0, up), 4.0 * radius));
    }
    mesh
}

/// A body: rods between its points, a plate if there are three, and its mass if it is not on a rod.
pub(super) fn body_mesh(geometry: &Geometry<'_>, b: usize, anchors: &[P], radius: f64) -> Mesh {
    let (mass, com, moments) = geometry.masses[b];
    let mut mesh = Mesh::default();
    let mut edges: Vec<[P; 2]> = Vec::new();
    for (i, &p) in anchors.iter().enumerate() {
        for &q in &anchors[..i] {
            // Not across a point between the two; with many points only a chain.
            let between =
                anchors.iter().any(|&r| r != p && r != q && distance_to_segment(r, [p, q]) < 0.5 * radius);
            if !between && (anchors.len() <= 4 || is_nearest(anchors, i, q)) {
                edges.push([p, q]);
            }
        }
    }
    if let [a, b, c] = *anchors
        && length(cross(sub(b, a), sub(c, a))) > radius * length(sub(b, a))
    {
        // Two sides of a thin plate.
        let n = scale(0.3 * radius, unit(cross(sub(b, a), sub(c, a)), [0.0; 3]));
        let corners = [a, b, c].into_iter().flat_map(|p| [add(p, n), sub(p, n)]).collect();
        mesh.join(Mesh { corners, triangles: vec![[0, 2, 4], [1, 5, 3]] });
    }
    if mass > 0.0 && edges.iter().all(|edge| distance_to_segment(com, *edge) > 2.0 * radius) {
        let nearest = anchors.iter().min_by(|p, q| length(sub(**p, com)).total_cmp(&length(sub(**q, com))));
        if let Some(&p) = nearest
            && length(sub(p, com)) > 0.5 * radius
        {
            edges.push([p, com]);
        }
        let moments = (anchors.len() < 2).then_some(moments);
        mesh.join(mass_mesh(mass, com, moments, radius));
    }
    for [p, q] in edges {
        mesh.join(Mesh::rod(p, q, radius, 10));
    }
    mesh
}

/// Whether q is the nearest of the points before the i-th.
fn is_nearest(anchors: &[P], i: usize, q: P) -> bool {
    let far = |q: P| length(sub(anchors[i], q));
    anchors[..i].iter().all(|&other| far(q) <= far(other))
}

/// The uniform ellipsoid of this mass and these moments, a² = 5/(2m) (J_y + J_z − J_x); a sphere if no ellipsoid has these moments, as in
/// planar models, or if it is thin.
fn mass_mesh(mass: f64, com: P, moments: Option<P>, radius: f64) -> Mesh {
    let [x, y, z] = moments.unwrap_or_default();
    let mut squares = [y + z - x, z + x - y, x + y - z].map(|sum| 2.5 * sum / mass);
    let half = squares.map(|square| square.max(0.0).sqrt().max(0.6 * radius));
    squares.sort_by(f64::total_cmp);
    let [thin, middle, long] = squares;
    if thin >= -1e-9 * long
        && thin + middle > 2.0 * radius * radius
        && long < (40.0 * radius).powi(2)
        && x > 0.0
        && y > 0.0
    {
        Mesh::ellipsoid(com, half)
    } else {
        Mesh::ball(com, 2.2 * radius)
    }
}

/// A joint, on the side of its child.
pub(super) fn joint_mesh(kind: JointKind, (point, axis): (P, Option<P>), radius: f64) -> Mesh {
    let axis = axis.map(|axis| unit(axis, [0.0, 0.0, 1.0]));
    let pin = |axis: P, half: f64| {
        let half = scale(half * radius, axis);
        Mesh::rod(sub(point, half), add(point, half), 1.5 * radius, 14)
    };
    match (kind, axis) {
        (JointKind::Revolute, Some(axis)) => pin(axis, 1.6),
        (JointKind::Cylindrical, Some(axis)) => pin(axis, 3.0),
        (JointKind::Prismatic, Some(axis)) => Mesh::block(point, axis, 3.0 * radius, 1.8 * radius),
        (JointKind::Spherical | JointKind::Cardan, _) => Mesh::ball(point, 1.7 * radius),
        _ => Mesh::default(),
    }
}

/// The rail of a prismatic joint, over the range of its motion.
pub(super) fn rail(
    geometry: &Geometry<'_>,
    [parent, child]: [usize; 2],
    points: [P; 2],
    axis: P,
    radius: f64,
    reach: f64,
) -> Mesh {
    let axis = unit(axis, [0.0, 0.0, 1.0]);
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for frames in &geometry.frames {
        let p = frames[parent].to_body(frames[child].to_world(points[1]));
        let s = dot(axis, sub(p, points[0]));
        (low, high) = (low.min(s), high.max(s));
    }
    // No rail if the mechanism travels far.
    if high - low > FAR * reach {
        return Mesh::default();
    }
    let end = |s: f64| add(points[0], scale(s, axis));
    Mesh::rod(end(low - 5.0 * radius), end(high + 5.0 * radius), 0.5 * radius, 8)
}
