//! How large a bundle will be, before it is built.

use super::{BundleKind, Pairs};
use crate::model::Model;
use crate::topology::Tree;

/// About how many operations (or results) a bundle needs, from the tree alone: known before anything is
/// built, so that no model takes memory without bound.
pub(super) fn estimate(kind: BundleKind, model: &Model, tree: &Tree, pairs: Pairs) -> usize {
    let (entries, eliminations) = (tree.v_pairs(), tree.eliminations());
    let markers: usize = model.bodies.iter().map(|b| b.points.len()).sum();
    // Pairs of a velocity and a body it moves.
    let moved: usize = tree.depths().iter().sum();
    let parameters = model.sensitivity.len();
    // A link's kinematics and inertia, and an entry of M, in operations.
    let (link, entry) = (600 * tree.links.len(), 11 * entries);
    if rolls(kind, pairs, tree) {
        // Statements of links alone: on chains of 5 to 200 hinges 0.6, 1.7 and 2.5 `link` were counted, and a parameter that moves all adds
        // one. Tables have nv² numbers; eight of them take less memory than an operation.
        let times = match kind {
            BundleKind::MassMatrix => 1,
            BundleKind::InverseDynamicsDerivatives => 2,
            _ => 3 + parameters,
        };
        return times * link + tree.nv * tree.nv / 8;
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
        Pairs::Auto => tree.v_pairs() > many,
    }
}
