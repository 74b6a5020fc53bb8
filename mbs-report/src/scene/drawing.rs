//! What is drawn of a mechanism: rods between the points of a body, plates, balls and ellipsoids of inertia, joints, springs.
//!
//! Enters: numbers of the model and the frames of its bodies over time. Leaves: the scene. Nothing here is to scale but the places of
//! points: thickness is chosen to be seen.

use super::{Drawn, Geometry, Link, Scene, upward};
use crate::shapes::{Mesh, P, across, add, cross, dot, length, scale, sub, unit};
use mbs_codegen::model::walk::Part;
use mbs_codegen::model::{ForceKind, JointKind, MarkerRef, OutputValue, Vector};

/// Points nearer than this part of the mechanism's size are one.
const SAME: f64 = 1e-6;
/// A way longer than so many sizes of the mechanism is travel.
const FAR: f64 = 4.0;

/// Draws everything.
pub(super) fn draw(geometry: &Geometry<'_>, times: Vec<f64>) -> Scene {
    let anchors = anchors(geometry);
    let reach = reach(geometry, &anchors);
    let radius = thickness(geometry, &anchors, reach);
    let normal = common_normal(geometry);
    let up = upward(geometry.gravity, normal);

    let model = geometry.model;
    let mut bodies: Vec<Drawn> = model
        .bodies
        .iter()
        .enumerate()
        .map(|(b, body)| {
            let mesh =
                if b == 0 { ground(&anchors[0], up, radius) } else { rods(geometry, b, &anchors[b], radius) };
            Drawn { name: body.name.clone(), mesh, joints: Mesh::default() }
        })
        .collect();
    for (joint, sides) in model.joints.iter().zip(&geometry.joints) {
        let [parent, child] = [joint.parent.body.index(), joint.child.body.index()];
        bodies[child].joints.join(knuckle(joint.kind, sides[1], radius));
        if let (JointKind::Prismatic | JointKind::Cylindrical, Some(axis)) = (joint.kind, sides[0].1) {
            let points = [sides[0].0, sides[1].0];
            bodies[parent].mesh.join(rail(geometry, [parent, child], points, axis, radius, reach));
        }
    }
    // Frames without substance need no place.
    let named = named_markers(geometry);
    let drawn: Vec<usize> = (0..bodies.len())
        .filter(|&b| {
            let body = &bodies[b];
            let empty = body.mesh.triangles.is_empty() && body.joints.triangles.is_empty();
            b == 0 || !empty || named.iter().any(|marker| marker.body.index() == b)
        })
        .collect();
    let place = |marker: &MarkerRef| {
        let place = drawn.iter().position(|&b| b == marker.body.index()).unwrap_or(0);
        (place, geometry.marker(*marker))
    };
    let springs = model.forces.iter().filter_map(|force| match &force.kind {
        ForceKind::Spring { from, to, .. } => {
            Some(Link { name: force.name.clone(), ends: [place(from), place(to)] })
        }
        _ => None,
    });
    let springs = springs.collect();
    let links =
        distances(geometry).map(|(name, [a, b])| Link { name, ends: [place(&a), place(&b)] }).collect();
    let paths = paths(geometry).map(|(name, marker)| (name, place(&marker).0, place(&marker).1)).collect();
    let poses = geometry.frames.iter().flat_map(|frames| {
        drawn.iter().map(|&b| {
            let [w, x, y, z] = frames[b].quaternion();
            let o = frames[b].origin;
            [o[0], o[1], o[2], w, x, y, z]
        })
    });
    let poses = poses.collect();
    let eye = eye(up, normal);
    let (centres, bounds) = bounds(geometry, &anchors, radius, reach);
    Scene {
        springs,
        links,
        paths,
        times,
        poses,
        centres,
        bounds,
        up,
        eye,
        radius,
        bodies: drawn.iter().map(|&b| std::mem::take(&mut bodies[b])).collect(),
    }
}

/// Markers that something beside a body's own shape is drawn to.
fn named_markers(geometry: &Geometry<'_>) -> Vec<MarkerRef> {
    let mut markers: Vec<MarkerRef> = distances(geometry).flat_map(|(_, ends)| ends).collect();
    markers.extend(paths(geometry).map(|(_, marker)| marker));
    for force in &geometry.model.forces {
        if let ForceKind::Spring { from, to, .. } = force.kind {
            markers.extend([from, to]);
        }
    }
    markers
}

/// Constraints of one equation between two points: their distance, most often.
fn distances<'a>(geometry: &'a Geometry<'_>) -> impl Iterator<Item = (String, [MarkerRef; 2])> + 'a {
    geometry.model.constraints.iter().filter_map(|constraint| {
        let [row] = constraint.rows.as_slice() else { return None };
        let mut ends: Vec<MarkerRef> = Vec::new();
        row.value.for_each_part(&mut |part| {
            if let Part::Vector(Vector::Position(marker)) = part
                && !ends.contains(marker)
            {
                ends.push(*marker);
            }
        });
        <[MarkerRef; 2]>::try_from(ends).ok().map(|ends| (constraint.name.clone(), ends))
    })
}

/// Outputs that are the position of a point.
fn paths<'a>(geometry: &'a Geometry<'_>) -> impl Iterator<Item = (String, MarkerRef)> + 'a {
    geometry.model.outputs.iter().filter_map(|output| match &output.value {
        OutputValue::Vector(Vector::Position(marker)) => Some((output.name.clone(), *marker)),
        _ => None,
    })
}

/// The distinct points of every body at which something is fixed.
fn anchors(geometry: &Geometry<'_>) -> Vec<Vec<P>> {
    let model = geometry.model;
    let mut anchors: Vec<Vec<P>> = vec![Vec::new(); model.bodies.len()];
    for (joint, sides) in model.joints.iter().zip(&geometry.joints) {
        // What floats is fixed nowhere.
        if joint.kind != JointKind::Floating {
            anchors[joint.parent.body.index()].push(sides[0].0);
            anchors[joint.child.body.index()].push(sides[1].0);
        }
    }
    for marker in named_markers(geometry) {
        anchors[marker.body.index()].push(geometry.marker(marker));
    }
    // Points that nothing uses are still part of a body's shape.
    for (anchors, points) in anchors.iter_mut().zip(&geometry.points).skip(1) {
        anchors.extend(points);
    }
    for (b, anchors) in anchors.iter_mut().enumerate() {
        let size = anchors.iter().chain([&geometry.masses[b].1]).map(|p| length(*p)).fold(0.0, f64::max);
        let mut distinct: Vec<P> = Vec::new();
        for p in anchors.drain(..) {
            if distinct.iter().all(|q| length(sub(p, *q)) > SAME * size) {
                distinct.push(p);
            }
        }
        // A rod that is described from its far end.
        let (mass, com, _) = geometry.masses[b];
        if let ([p], true) = (distinct.as_slice(), mass > 0.0)
            && length(*p) > SAME * size
            && off_segment(com, [*p, [0.0; 3]]) < SAME * size.max(1e-12)
            && length(sub(com, *p)) < length(*p)
        {
            distinct.push([0.0; 3]);
        }
        *anchors = distinct;
    }
    anchors
}

/// The size of the mechanism at its first instant.
fn reach(geometry: &Geometry<'_>, anchors: &[Vec<P>]) -> f64 {
    let Some(frames) = geometry.frames.first() else { return 1.0 };
    let (mut low, mut high) = ([f64::INFINITY; 3], [f64::NEG_INFINITY; 3]);
    for ((frame, anchors), &(mass, com, _)) in frames.iter().zip(anchors).zip(&geometry.masses) {
        for p in anchors.iter().copied().chain((mass > 0.0).then_some(com)) {
            widen(&mut low, &mut high, frame.to_world(p));
        }
    }
    let size = length(sub(high, low));
    if size.is_finite() && size > 0.0 { size } else { 1.0 }
}

fn widen(low: &mut P, high: &mut P, p: P) {
    for k in 0..3 {
        low[k] = low[k].min(p[k]);
        high[k] = high[k].max(p[k]);
    }
}

/// Radius of a rod: a part of the middle one of all bodies' lengths.
fn thickness(geometry: &Geometry<'_>, anchors: &[Vec<P>], reach: f64) -> f64 {
    let mut lengths: Vec<f64> = Vec::new();
    for (anchors, &(_, com, _)) in anchors.iter().zip(&geometry.masses).skip(1) {
        let Some(&first) = anchors.first() else { continue };
        let far = anchors.iter().chain([&com]).map(|p| length(sub(*p, first))).fold(0.0, f64::max);
        if far > SAME * reach {
            lengths.push(far);
        }
    }
    lengths.sort_by(f64::total_cmp);
    let middle = lengths.get(lengths.len() / 2).copied().unwrap_or(reach);
    (0.045 * middle).clamp(0.004 * reach, 0.03 * reach)
}

/// Distance of a point from a segment.
fn off_segment(p: P, [a, b]: [P; 2]) -> f64 {
    let along = sub(b, a);
    let s = (dot(sub(p, a), along) / dot(along, along)).clamp(0.0, 1.0);
    length(sub(p, add(a, scale(if s.is_finite() { s } else { 0.0 }, along))))
}

/// Feet under the points of ground.
fn ground(anchors: &[P], up: P, radius: f64) -> Mesh {
    let mut mesh = Mesh::default();
    for &p in anchors {
        mesh.join(Mesh::foot(p, scale(-1.0, up), 4.0 * radius));
    }
    mesh
}

/// A body: rods between its points, a plate if they are three, and its mass where no rod has it.
fn rods(geometry: &Geometry<'_>, b: usize, anchors: &[P], radius: f64) -> Mesh {
    let (mass, com, moments) = geometry.masses[b];
    let mut mesh = Mesh::default();
    let mut edges: Vec<[P; 2]> = Vec::new();
    for (i, &p) in anchors.iter().enumerate() {
        for &q in &anchors[..i] {
            // Not past a point between the two, and of many points only a chain.
            let between = anchors.iter().any(|&r| r != p && r != q && off_segment(r, [p, q]) < 0.5 * radius);
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
    if mass > 0.0 && edges.iter().all(|edge| off_segment(com, *edge) > 2.0 * radius) {
        let nearest = anchors.iter().min_by(|p, q| length(sub(**p, com)).total_cmp(&length(sub(**q, com))));
        if let Some(&p) = nearest
            && length(sub(p, com)) > 0.5 * radius
        {
            edges.push([p, com]);
        }
        let moments = (anchors.len() < 2).then_some(moments);
        mesh.join(lump(mass, com, moments, radius));
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

/// The uniform ellipsoid of this mass and these moments, a² = 5/(2m) (J_y + J_z − J_x); a ball where no ellipsoid has them, as in
/// a plane, or where it is thin.
fn lump(mass: f64, com: P, moments: Option<P>, radius: f64) -> Mesh {
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
fn knuckle(kind: JointKind, (point, axis): (P, Option<P>), radius: f64) -> Mesh {
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

/// The rod on which something slides, as far as it does.
fn rail(
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
    // What travels far slides on nothing that could be seen.
    if high - low > FAR * reach {
        return Mesh::default();
    }
    let end = |s: f64| add(points[0], scale(s, axis));
    Mesh::rod(end(low - 5.0 * radius), end(high + 5.0 * radius), 0.5 * radius, 8)
}

/// The direction of all axes, if the mechanism moves in a plane.
fn common_normal(geometry: &Geometry<'_>) -> Option<P> {
    let model = geometry.model;
    let mut common: Option<P> = None;
    for (joint, sides) in model.joints.iter().zip(&geometry.joints) {
        match (joint.kind, sides[1].1) {
            (JointKind::Fixed | JointKind::Prismatic, _) => {}
            (JointKind::Revolute | JointKind::Planar, Some(axis)) => {
                for frames in geometry.frames.iter().step_by(geometry.frames.len().div_ceil(8).max(1)) {
                    let axis = unit(frames[joint.child.body.index()].turn(axis), [0.0, 0.0, 1.0]);
                    let known = *common.get_or_insert(axis);
                    if dot(known, axis).abs() < 1.0 - 1e-6 {
                        return None;
                    }
                }
            }
            _ => return None,
        }
    }
    // Towards the reader: axes point out of the page.
    common.map(|n| if n.iter().sum::<f64>() < 0.0 { scale(-1.0, n) } else { n })
}

/// Where to look from: a little beside the normal of a plane, or across a corner.
fn eye(up: P, normal: Option<P>) -> P {
    match normal.filter(|n| dot(*n, up).abs() < 0.5) {
        Some(normal) => {
            let right = unit(cross(up, normal), [1.0, 0.0, 0.0]);
            add(add(scale(1.0, normal), scale(0.12, right)), scale(0.1, up))
        }
        None => {
            let [a, b] = across(up);
            add(add(scale(0.75, a), scale(-0.5, b)), scale(0.35, up))
        }
    }
}

/// The box that holds everything at all times, with room around it; around the middle of the mechanism where it travels far.
fn bounds(geometry: &Geometry<'_>, anchors: &[Vec<P>], radius: f64, reach: f64) -> (Option<Vec<P>>, [P; 2]) {
    let all = extent(geometry, anchors, None);
    let travels = (0..3).any(|k| all[1][k] - all[0][k] > FAR * reach);
    let centres =
        travels.then(|| geometry.frames.iter().map(|frames| middle(geometry, frames)).collect::<Vec<P>>());
    let [mut low, mut high] = match &centres {
        Some(centres) => extent(geometry, anchors, Some(centres)),
        None => all,
    };
    if !low.iter().chain(&high).all(|x| x.is_finite()) {
        return (None, [[-1.0; 3], [1.0; 3]]);
    }
    let largest = (0..3).map(|k| high[k] - low[k]).fold(8.0 * radius, f64::max);
    for k in 0..3 {
        let middle = 0.5 * (low[k] + high[k]);
        let half = (0.5 * (high[k] - low[k]) + 6.0 * radius).max(0.12 * largest);
        (low[k], high[k]) = (middle - half, middle + half);
    }
    (centres, [low, high])
}

/// The centre of all mass.
fn middle(geometry: &Geometry<'_>, frames: &[super::Frame]) -> P {
    let (mut sum, mut all) = ([0.0; 3], 0.0);
    for (frame, &(mass, com, _)) in frames.iter().zip(&geometry.masses).skip(1) {
        sum = add(sum, scale(mass, frame.to_world(com)));
        all += mass;
    }
    if all > 0.0 { scale(1.0 / all, sum) } else { sum }
}

/// The smallest box around all points at all times; from centres, ground does not count.
fn extent(geometry: &Geometry<'_>, anchors: &[Vec<P>], centres: Option<&[P]>) -> [P; 2] {
    let (mut low, mut high) = ([f64::INFINITY; 3], [f64::NEG_INFINITY; 3]);
    for (i, frames) in geometry.frames.iter().enumerate() {
        let centre = centres.map_or([0.0; 3], |centres| centres[i]);
        for (b, frame) in frames.iter().enumerate().skip(usize::from(centres.is_some())) {
            let (mass, com, _) = geometry.masses[b];
            // Frames without mass may stay behind, on the rails of what travels.
            if centres.is_some() && mass <= 0.0 {
                continue;
            }
            for p in anchors[b].iter().copied().chain((mass > 0.0).then_some(com)) {
                widen(&mut low, &mut high, sub(frame.to_world(p), centre));
            }
        }
    }
    [low, high]
}
