//! How large a bundle will be, before it is built.

use super::{BundleKind, Pairs};
use crate::model::Model;
use crate::topology::Tree;

/// About how many operations (or results) a bundle needs, from the tree alone: known before anything is
/// built, so that no model takes memory without bound.
pub(super) fn estimate(kind: BundleKind, model: &Model, tree: &Tree, pairs: Pairs) -> usize {
    let parents = tree.v_parents();
    // depth[k]: velocities from ground to k, itself included
    let mut depth = vec![0usize; tree.nv];
    let (mut entries, mut eliminations) = (0usize, 0usize);
    // below[k]: Σ depth over k and the velocities between it and ground
    let mut below = vec![0usize; tree.nv];
    for k in 0..tree.nv {
        let (d, b) = parents[k].map_or((0, 0), |p| (depth[p], below[p]));
        depth[k] = d + 1;
        below[k] = b + depth[k];
        entries += depth[k];
        eliminations += b;
    }
    let markers: usize = model.bodies.iter().map(|b| b.points.len()).sum();
    // Pairs of a velocity and a body it moves.
    let moved: usize = tree.depths().iter().sum();
    let parameters = model.sensitivity.len();
    // A link's kinematics and inertia, and an entry of M, in operations.
    let (link, entry) = (600 * tree.links.len(), 11 * entries);
    if rolls(kind, pairs, tree) {
        return (2 + parameters) * link + tree.nv * tree.nv / 8;
    }
    match kind {
        BundleKind::ForwardDynamics => link + (entry + eliminations).min(link),
        BundleKind::ForwardDynamicsRecursive | BundleKind::InverseDynamics => link,
        BundleKind::Energy | BundleKind::Outputs => link,
        BundleKind::InverseDynamicsDerivatives => 2 * link + 5 * entry + 3 * tree.nv * tree.nv,
        BundleKind::MassMatrix => link + entry + tree.nv * tree.nv,
        BundleKind::MassMatrixCoordinates => link + entry + 4 * tree.nq * tree.nq,
        BundleKind::Markers => link + 60 * markers,
        BundleKind::MarkerJacobians => link + 3 * markers.saturating_mul(tree.nv),
        BundleKind::Newton => 2 * link + 3 * entry + tree.nq * tree.nq,
        BundleKind::Projection => link + entry + 4 * tree.nq * tree.nq,
        // What the fill will be is known only once it is there: the limit on the finished graph holds.
        BundleKind::Factor | BundleKind::Solve | BundleKind::SolveTransposed => 0,
        BundleKind::ConstrainedDynamics | BundleKind::ConstraintCorrection => link + entry + eliminations,
        BundleKind::Residual | BundleKind::ConstraintRates | BundleKind::ConstraintAccelerations => link,
        BundleKind::Reactions | BundleKind::Objectives => link,
        BundleKind::StartDerivatives | BundleKind::JointSolve => 0,
        BundleKind::Linearise => (2 + parameters) * link + 5 * entry + 3 * tree.nq * tree.nq,
        BundleKind::JointLinearise => (2 + parameters) * link + 5 * entry + eliminations,
        BundleKind::LineariseProjections => (3 + parameters) * link + 5 * entry + 2 * tree.nq * tree.nq,
        BundleKind::IntegrandDerivatives
        | BundleKind::TerminalDerivatives
        | BundleKind::JointIntegrandDerivatives
        | BundleKind::JointTerminalDerivatives => 4 * link,
        BundleKind::InertialParameters => 0,
        BundleKind::Regressor => link + 60 * moved,
        BundleKind::GravityTerms | BundleKind::CoriolisTerms => link,
        BundleKind::Centroidal => link + 40 * tree.nv,
        BundleKind::MarkerJacobianRates => link + 30 * markers.saturating_mul(tree.nv),
        BundleKind::InverseDynamicsExternal => link,
        BundleKind::ForwardDynamicsExternal => link + (entry + eliminations).min(link),
        BundleKind::MassMatrixInverseAction => link + entry + eliminations,
        BundleKind::InverseDynamicsParameters => (1 + parameters) * link,
        // Two solves and the inverse, each a column per velocity.
        BundleKind::ForwardDynamicsDerivatives => {
            let columns = 5 * tree.nv + 2 * parameters;
            (2 + parameters) * link + 5 * entry + eliminations + columns.saturating_mul(entries)
        }
    }
}

/// Whether a bundle loops over pairs of a joint and an ancestor: where asked for, or where there are so many that flat code would be slower.
/// `benches/peers/trees.sh --compare-pairs` measures both ways.
pub(super) fn rolls(kind: BundleKind, pairs: Pairs, tree: &Tree) -> bool {
    let many = match kind {
        BundleKind::MassMatrix => 2000,
        BundleKind::InverseDynamicsDerivatives => 600,
        BundleKind::ForwardDynamicsDerivatives => 150,
        _ => return false,
    };
    match pairs {
        Pairs::Flat => false,
        Pairs::Rolled => true,
        Pairs::Auto => {
            let parents = tree.v_parents();
            let mut depth = vec![0usize; tree.nv];
            for k in 0..tree.nv {
                depth[k] = parents[k].map_or(0, |p| depth[p]) + 1;
            }
            depth.iter().sum::<usize>() > many
        }
    }
}
