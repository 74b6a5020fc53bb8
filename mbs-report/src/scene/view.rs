//! Direction of view and bounding box.

use super::{DrawnBody, FAR, Frame, Geometry};
use crate::shapes::{P, across, add, cross, dot, scale, sub, unit};
use mbs_codegen::model::JointKind;

/// The common direction of all axes, if the mechanism is planar.
pub(super) fn plane_normal(geometry: &Geometry<'_>) -> Option<P> {
    let model = geometry.model;
    let mut common: Option<P> = None;
    for (joint, sides) in model.joints.iter().zip(&geometry.joints) {
        match (joint.kind, sides[1].1) {
            (JointKind::Fixed | JointKind::Prismatic, _) => {}
            (JointKind::Revolute | JointKind::Planar, Some(axis)) => {
                for frames in geometry.frames.iter().step_by(geometry.frames.len().div_ceil(8).max(1)) {
                    let axis =
                        unit(frames[joint.child.body.index()].direction_to_world(axis), [0.0, 0.0, 1.0]);
                    let known = *common.get_or_insert(axis);
                    if dot(known, axis).abs() < 1.0 - 1e-6 {
                        return None;
                    }
                }
            }
            _ => return None,
        }
    }
    common
}

/// Direction of view: close to the normal of a planar mechanism, otherwise oblique.
pub(super) fn view_direction(up: P, normal: Option<P>) -> P {
    match normal.filter(|n| dot(*n, up).abs() < 0.5) {
        Some(normal) => {
            let right = unit(cross(up, normal), [1.0, 0.0, 0.0]);
            // From the side on which coordinates increase to the right.
            let side = if right.iter().sum::<f64>() < 0.0 { -1.0 } else { 1.0 };
            add(scale(side, add(normal, scale(0.12, right))), scale(0.1, up))
        }
        None => {
            let [a, b] = across(up);
            add(add(scale(0.75, a), scale(-0.5, b)), scale(0.35, up))
        }
    }
}

/// Bounding box of everything at all times, with a margin; relative to the centre of mass if the mechanism travels far.
pub(super) fn bounds(
    geometry: &Geometry<'_>,
    anchors: &[Vec<P>],
    bodies: &[DrawnBody],
    radius: f64,
    reach: f64,
) -> (Option<Vec<P>>, [P; 2]) {
    let way = extent(geometry, anchors, None);
    let travels = (0..3).any(|k| way[1][k] - way[0][k] > FAR * reach);
    let centres = travels
        .then(|| geometry.frames.iter().map(|frames| centre_of_mass(geometry, frames)).collect::<Vec<P>>());
    // Shapes may extend beyond the attachment points.
    let outlines = anchors.iter().zip(bodies).map(|(anchors, body)| {
        let corners = body.shapes.iter().flat_map(|(_, mesh)| &mesh.corners);
        anchors.iter().chain(corners).copied().collect()
    });
    let outlines: Vec<Vec<P>> = outlines.collect();
    let [mut low, mut high] = extent(geometry, &outlines, centres.as_deref());
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

/// Centre of mass of the mechanism.
fn centre_of_mass(geometry: &Geometry<'_>, frames: &[Frame]) -> P {
    let (mut sum, mut all) = ([0.0; 3], 0.0);
    for (frame, &(mass, com, _)) in frames.iter().zip(&geometry.masses).skip(1) {
        sum = add(sum, scale(mass, frame.to_world(com)));
        all += mass;
    }
    if all > 0.0 { scale(1.0 / all, sum) } else { sum }
}

/// The smallest box around all points at all times; relative to centres, without ground.
fn extent(geometry: &Geometry<'_>, anchors: &[Vec<P>], centres: Option<&[P]>) -> [P; 2] {
    let (mut low, mut high) = ([f64::INFINITY; 3], [f64::NEG_INFINITY; 3]);
    for (i, frames) in geometry.frames.iter().enumerate() {
        let centre = centres.map_or([0.0; 3], |centres| centres[i]);
        for (b, frame) in frames.iter().enumerate().skip(usize::from(centres.is_some())) {
            let (mass, com, _) = geometry.masses[b];
            // Bodies without mass may stay in place while the mechanism travels.
            if centres.is_some() && mass <= 0.0 {
                continue;
            }
            for p in anchors[b].iter().copied().chain((mass > 0.0).then_some(com)) {
                extend_box(&mut low, &mut high, sub(frame.to_world(p), centre));
            }
        }
    }
    [low, high]
}

/// Extends a box to contain a point.
pub(super) fn extend_box(low: &mut P, high: &mut P, p: P) {
    for k in 0..3 {
        low[k] = low[k].min(p[k]);
        high[k] = high[k].max(p[k]);
    }
}
