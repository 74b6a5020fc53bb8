//! How large a bundle will be, before it is built.

use super::{BundleKind, Pairs};
use crate::model::{Model, ParameterId, SensitivityRef};
use crate::topology::Tree;
use mbs_bundles::Measure;
use std::collections::BTreeMap;

/// What the cost of bundles is counted in, from the tree alone: known before anything is built, so that no model takes memory
/// without bound.
pub(super) struct Measured<'a> {
    tree: &'a Tree,
    points: usize,
    parameters: usize,
}

impl Measured<'_> {
    /// Of a model and its tree.
    pub(super) fn new<'a>(model: &Model, tree: &'a Tree) -> Measured<'a> {
        let points = model.bodies.iter().map(|b| b.points.len()).sum();
        Measured { tree, points, parameters: weighty(model) }
    }

    fn of(&self, measure: Measure) -> usize {
        let tree = self.tree;
        match measure {
            // A link's kinematics and inertia, and an entry of M, in operations.
            Measure::link => 600 * tree.links.len(),
            Measure::entry => 11 * tree.v_pairs(),
            Measure::pairs => tree.v_pairs(),
            Measure::eliminations => tree.eliminations(),
            // Articulated bodies cost no more than the links themselves.
            Measure::solve => {
                let factored = self.of(Measure::entry) + self.of(Measure::eliminations);
                factored.min(self.of(Measure::link))
            }
            Measure::moved => tree.depths().iter().sum(),
            Measure::points => self.points,
            Measure::nq => tree.nq,
            Measure::nv => tree.nv,
            Measure::parameters => self.parameters,
        }
    }

    /// About how many operations (or results) a bundle needs.
    pub(super) fn estimate(&self, kind: BundleKind, pairs: Pairs) -> usize {
        if rolls(kind, pairs, self.tree) {
            // Statements of links alone: on chains of 5 to 200 hinges 0.6, 1.7 and 2.5 `link` were counted, and a parameter that moves all
            // adds one. Tables have nv² numbers; eight of them take less memory than an operation.
            let times = match kind {
                BundleKind::MassMatrix => 1,
                BundleKind::InverseDynamicsDerivatives => 2,
                _ => 3 + self.parameters,
            };
            return times * self.of(Measure::link) + self.tree.nv * self.tree.nv / 8;
        }
        let product = |number: usize, measures: &[Measure]| {
            measures.iter().fold(number, |product, &measure| product.saturating_mul(self.of(measure)))
        };
        let terms = kind.entry().cost.iter().map(|&(number, measures)| product(number, measures));
        terms.fold(0, usize::saturating_add)
    }
}

/// Elements of one array from which on most act on few rows, as the values of a spline do; one in as many counts then.
const LONG: usize = 32;

/// How many parameters a model is differentiated by, the elements of long arrays but for some of them. What is built is counted again.
fn weighty(model: &Model) -> usize {
    let mut elements: BTreeMap<ParameterId, usize> = BTreeMap::new();
    let mut inputs = 0;
    for one in &model.sensitivity {
        match one {
            SensitivityRef::Parameter { id, .. } => *elements.entry(*id).or_default() += 1,
            SensitivityRef::Input(_) => inputs += 1,
        }
    }
    let some = elements.values().map(|&n| n.min(LONG) + n.saturating_sub(LONG) / LONG);
    inputs + some.sum::<usize>()
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
