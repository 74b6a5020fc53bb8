//! Attachment points of bodies, and the size of the mechanism and its rods.

use super::Geometry;
use super::drawing::named_markers;
use super::view::extend_box;
use crate::shapes::{P, add, dot, length, scale, sub};
use mbs_codegen::model::JointKind;

/// Points closer than this fraction of the mechanism's size coincide.
const SAME: f64 = 1e-6;

/// The distinct attachment points of every body.
pub(super) fn anchors(geometry: &Geometry<'_>) -> Vec<Vec<P>> {
    let model = geometry.model;
    let mut anchors: Vec<Vec<P>> = vec![Vec::new(); model.bodies.len()];
    for (joint, sides) in model.joints.iter().zip(&geometry.joints) {
        // Floating joints have no attachment point.
        if joint.kind != JointKind::Floating {
            anchors[joint.parent.body.index()].push(sides[0].0);
            anchors[joint.child.body.index()].push(sides[1].0);
        }
    }
    for marker in named_markers(geometry) {
        anchors[marker.body.index()].push(geometry.marker(marker));
    }
    // Unused points are still part of a body's shape.
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
        // A rod whose frame is at its far end.
        let (mass, com, _) = geometry.masses[b];
        if let ([p], true) = (distinct.as_slice(), mass > 0.0)
            && length(*p) > SAME * size
            && distance_to_segment(com, [*p, [0.0; 3]]) < SAME * size.max(1e-12)
            && length(sub(com, *p)) < length(*p)
        {
            distinct.push([0.0; 3]);
        }
        *anchors = distinct;
    }
    anchors
}

/// Size of the mechanism at the first time.
pub(super) fn mechanism_size(geometry: &Geometry<'_>, anchors: &[Vec<P>]) -> f64 {
    let Some(frames) = geometry.frames.first() else { return 1.0 };
    let (mut low, mut high) = ([f64::INFINITY; 3], [f64::NEG_INFINITY; 3]);
    for ((frame, anchors), &(mass, com, _)) in frames.iter().zip(anchors).zip(&geometry.masses) {
        for p in anchors.iter().copied().chain((mass > 0.0).then_some(com)) {
            extend_box(&mut low, &mut high, frame.to_world(p));
        }
    }
    let size = length(sub(high, low));
    if size.is_finite() && size > 0.0 { size } else { 1.0 }
}

/// Radius of a rod: a fraction of the median length of the bodies.
pub(super) fn thickness(geometry: &Geometry<'_>, anchors: &[Vec<P>], reach: f64) -> f64 {
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
pub(super) fn distance_to_segment(p: P, [a, b]: [P; 2]) -> f64 {
    let along = sub(b, a);
    let s = (dot(sub(p, a), along) / dot(along, along)).clamp(0.0, 1.0);
    length(sub(p, add(a, scale(if s.is_finite() { s } else { 0.0 }, along))))
}
