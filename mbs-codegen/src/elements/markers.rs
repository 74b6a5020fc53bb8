//! Named points: positions, velocities, accelerations and Jacobians.
//!
//! A marker's Jacobian is its velocity per joint velocity: column j is w_j × (r − r_j) for a turn and w_j
//! for a slide, for the joints between it and ground   [LopezVarela2023, §8].

use super::Mechanism;
use crate::graph::{ExprId, Graph, Vec3};
use crate::lowering::Environment;
use crate::model::{BodyId, MarkerRef, Model, PointRef};

/// All named points of all bodies, with their full names, in the order of the model.
pub fn named(model: &Model) -> Vec<(String, MarkerRef)> {
    let mut markers = Vec::new();
    for (b, body) in model.bodies.iter().enumerate() {
        for (i, (name, _)) in body.points.iter().enumerate() {
            let marker = MarkerRef { body: BodyId(b as u32), point: PointRef::Named(i as u32) };
            markers.push((format!("{}.{name}", body.name), marker));
        }
    }
    markers
}

/// ∂(velocity of a marker)/∂v: one column per joint velocity.
pub fn jacobian(g: &mut Graph, mechanism: &mut Mechanism<'_>, marker: MarkerRef) -> Vec<Vec3> {
    let zero = g.zero_vector();
    let mut columns = vec![zero; mechanism.tree.nv];
    let at = mechanism.position(g, marker);
    let mut link = mechanism.tree.link_of_body[marker.body.index()];
    while let Some(i) = link {
        let here = &mechanism.positions.links[i];
        let arm = g.sub3(at, here.joint_point);
        for (column, j) in here.columns.iter().zip(mechanism.tree.links[i].v_range()) {
            columns[j] = if column.is_rotation { g.cross3(column.axis, arm) } else { column.axis };
        }
        link = mechanism.tree.links[i].parent;
    }
    columns
}

/// The Jacobians of many markers as one matrix of 3·markers rows and nv columns, by columns.
pub fn jacobians(
    g: &mut Graph,
    mechanism: &mut Mechanism<'_>,
    markers: &[(String, MarkerRef)],
) -> Vec<ExprId> {
    let blocks: Vec<Vec<Vec3>> = markers.iter().map(|(_, marker)| jacobian(g, mechanism, *marker)).collect();
    (0..mechanism.tree.nv).flat_map(|j| blocks.iter().flat_map(move |block| block[j].0)).collect()
}
