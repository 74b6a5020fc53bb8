//! The scene from the evaluated geometry and the frames of the bodies over time: bodies, joints, springs, distances, paths.

use super::anchors::{anchors, mechanism_size, thickness};
use super::bodies::{body_mesh, ground_mesh, joint_mesh, rail, shapes};
use super::view::{bounds, plane_normal, view_direction};
use super::{DrawnBody, Geometry, Link, Scene, up_direction};
use crate::shapes::Mesh;
use mbs_codegen::model::walk::Part;
use mbs_codegen::model::{ForceKind, JointKind, MarkerRef, OutputValue, Vector};

/// Draws everything.
pub(super) fn draw(geometry: &Geometry<'_>, times: Vec<f64>) -> Scene {
    let anchors = anchors(geometry);
    let reach = mechanism_size(geometry, &anchors);
    let radius = thickness(geometry, &anchors, reach);
    let normal = plane_normal(geometry);
    let up = up_direction(geometry.gravity, normal);

    let model = geometry.model;
    let mut bodies: Vec<DrawnBody> = model
        .bodies
        .iter()
        .enumerate()
        .map(|(b, body)| {
            let mesh = match (b, geometry.shapes[b].is_empty()) {
                (0, _) => ground_mesh(&anchors[0], up, radius),
                (_, true) => body_mesh(geometry, b, &anchors[b], radius),
                (_, false) => Mesh::default(),
            };
            DrawnBody {
                name: body.name.clone(),
                mesh,
                shapes: shapes(&geometry.shapes[b]),
                joints: Mesh::default(),
            }
        })
        .collect();
    for (joint, sides) in model.joints.iter().zip(&geometry.joints) {
        let [parent, child] = [joint.parent.body.index(), joint.child.body.index()];
        bodies[child].joints.join(joint_mesh(joint.kind, sides[1], radius));
        if let (JointKind::Prismatic | JointKind::Cylindrical, Some(axis)) = (joint.kind, sides[0].1) {
            let points = [sides[0].0, sides[1].0];
            bodies[parent].mesh.join(rail(geometry, [parent, child], points, axis, radius, reach));
        }
    }
    // Bodies without a mesh are not drawn.
    let named = named_markers(geometry);
    let drawn: Vec<usize> = (0..bodies.len())
        .filter(|&b| {
            let body = &bodies[b];
            let has_parts = body.parts().any(|(_, mesh)| !mesh.triangles.is_empty());
            b == 0 || has_parts || named.iter().any(|marker| marker.body.index() == b)
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
    let eye = view_direction(up, normal);
    let (centres, bounds) = bounds(geometry, &anchors, &bodies, radius, reach);
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

/// Markers used by springs, distances and paths.
pub(super) fn named_markers(geometry: &Geometry<'_>) -> Vec<MarkerRef> {
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
