//! The factors of the tangent's entries, for multiplication in a loop.
//!
//! In joint form an unknown is one joint velocity. The entry in row a and column b of the tangent (see `tangent`) is the product of a factor of a
//! and a factor of b, with 15 numbers if b is a or an ancestor of a, with 6 if b is a descendant. `pair_terms` has the inertial part of those that
//! composites have a part in; here is the rest.

use super::Square;
use super::direction::{Weights, joint_directions};
use super::loads::load_tangent;
use super::tangent::Linearisation;
use crate::elements::Element;
use crate::graph::{ExprId, Graph, Vec3};
use crate::kinematics::Spatial;

/// Factors, one list per joint velocity.
#[derive(Clone, Debug)]
pub struct PairFactors {
    /// I S, the angular part of (2B)ᵀ S, −S ×* W: factors of row a. Of the first nine numbers the loads' part.
    pub carried: Vec<[ExprId; 15]>,
    /// X, the angular part of Y, Z: factors of column b.
    pub moving: Vec<[ExprId; 15]>,
    /// I X + 2B Y + Z ×* f: factors of column b. The loads' part.
    pub turned: Vec<[ExprId; 6]>,
    /// S: factors of row a.
    pub columns: Vec<[ExprId; 6]>,
    /// Contributions of forces, by entry.
    pub loads: Square,
}

impl Linearisation<'_, '_> {
    /// The factors of the tangent of tau along every joint velocity.
    pub fn pair_factors(
        &mut self,
        g: &mut Graph,
        elements: &[&Element<'_>],
        weights: Weights,
    ) -> PairFactors {
        let unit = Weights::by_position(g);
        let rows = joint_directions(g, self.tree(), unit);
        let directions = joint_directions(g, self.tree(), weights);
        let unknowns = self.unknowns(g, &directions);
        let (mechanism, data) = self.parts();
        let loads = load_tangent(g, mechanism, elements, data, &unknowns, false);
        let (zero, n) = (g.zero(), directions.len());
        let mut out = PairFactors {
            carried: vec![[zero; 15]; n],
            moving: vec![[zero; 15]; n],
            turned: vec![[zero; 6]; n],
            columns: vec![[zero; 6]; n],
            loads: Square::zero(g, n),
        };
        let of_rows = self.rows(g, &rows);
        for (a, (unknown, &s)) in unknowns.motions.iter().zip(&of_rows).enumerate() {
            let Some(unknown) = unknown else { continue };
            let load = self.load_factors(g, &loads, s, unknown);
            let [by_x, by_y, by_z, column] =
                [load.by_x, load.by_y, load.by_z, load.column].map(|factor| g.neg6(factor));
            out.carried[a] = join(by_x, by_y.angular, by_z);
            out.moving[a] = join(unknown.x, unknown.y.angular, unknown.z);
            out.turned[a] = column.numbers();
            out.columns[a] = s.numbers();
        }
        let row = |a: usize| unknowns.motions[a].as_ref().map(|unknown| (unknown.link, of_rows[a]));
        loads.subtract(g, &mut out.loads, &rows, row);
        out
    }

    /// S of each joint velocity.
    pub fn column_numbers(&self) -> Vec<[ExprId; 6]> {
        self.columns().iter().map(|column| column.s.numbers()).collect()
    }

    /// For each joint velocity the first of its group.
    pub fn groups(&self) -> Vec<usize> {
        self.columns().iter().map(|column| column.group).collect()
    }
}

/// Concatenates the three.
fn join(a: Spatial, b: Vec3, c: Spatial) -> [ExprId; 15] {
    let ([a, c], b) = ([a, c].map(Spatial::numbers), b.0);
    std::array::from_fn(|k| {
        if k < 6 {
            a[k]
        } else if k < 9 {
            b[k - 6]
        } else {
            c[k - 9]
        }
    })
}
