//! Transposed products Jᵀ y by reverse accumulation: derivatives of the one number yᵀ f by everything that f depends on, without the matrix
//! J = f_x.
//!
//! Input: residual, constraints and their time derivatives in coordinate form, and the impulses of the projections. Output: expressions of
//! the products. The sweep goes back over the joint-wise recursion, so that a product costs a small multiple of f, whatever the number
//! of unknowns and parameters.
//!
//! A list costs all of its entries once, and a loop over its places for each column; a product costs the same for each column. So products
//! are for few columns, that is for few objectives, and [`TransposedProducts::columns`] says for how many.

use super::{CoordinateDerivatives, CoordinateForm};
use crate::graph::{ExprId, Graph, gradient};
use crate::symbols::Group;

/// Operations that an entry of a list takes in a loop over its places, and those that each column adds: estimated from
/// the loops of the runtime, not measured.
const PER_PLACE: usize = 6;
const PER_COLUMN: usize = 2;

/// The products that take an implicit step back.
#[derive(Clone, Debug)]
pub struct TransposedProducts {
    /// Of yᵀ (r; Φ; Ψ) by z, zd and ρ.
    pub newton: [Vec<ExprId>; 3],
    /// Of ydd_rowsᵀ (Φdd; Ψd) by zd.
    pub acceleration: Vec<ExprId>,
    /// Of ydᵀ (M d + Bᵀσ; Φd; Ψ) + yddᵀ (M e + Bᵀκ; Φdd; Ψd) by z and ρ.
    pub projection: [Vec<ExprId>; 2],
}

impl TransposedProducts {
    /// The most columns that products are ever used for.
    pub const MOST: usize = 64;

    /// Of the equations of a mechanism; `impulses` are M d + Bᵀσ and M e + Bᵀκ.
    pub fn new(
        g: &mut Graph,
        form: &CoordinateForm,
        impulses: &[Vec<ExprId>; 2],
        seeds: &[ExprId],
    ) -> TransposedProducts {
        let nq = form.residual.len();
        let symbols = |g: &mut Graph, group| (0..nq as u32).map(|i| g.symbol(group, i)).collect::<Vec<_>>();
        let (z, zd) = (symbols(g, Group::Z), symbols(g, Group::Zd));
        let [velocity, acceleration] = impulses;

        let weighted = weigh(g, Group::Costate, 0, &[&form.residual, &form.constraints]);
        let mut by_z = gradient(g, &weighted, &[&z[..], &zd, seeds].concat());
        let mut by_zd = by_z.split_off(nq);
        let rho = by_zd.split_off(nq);
        let newton = [by_z, by_zd, rho];

        let weighted = weigh(g, Group::AccelerationCostate, nq, &[&form.accelerations]);
        let of_acceleration = gradient(g, &weighted, &zd);

        let mut weighted = weigh(g, Group::VelocityCostate, 0, &[velocity, &form.rates]);
        weighted.extend(weigh(g, Group::AccelerationCostate, 0, &[acceleration, &form.accelerations]));
        let mut by_z = gradient(g, &weighted, &[&z[..], seeds].concat());
        let rho = by_z.split_off(nq);
        TransposedProducts { newton, acceleration: of_acceleration, projection: [by_z, rho] }
    }

    /// For how many columns products and the matrices of `newton` and `projection` take fewer operations than the lists.
    pub fn columns(&self, g: &Graph, form: &CoordinateForm, lists: &CoordinateDerivatives) -> usize {
        let count = |roots: &[ExprId]| g.operations_per_call(roots);
        let entries = lists.newton.expressions.len() + lists.projections.expressions.len();
        let once =
            count(&lists.newton.expressions) + count(&lists.projections.expressions) + PER_PLACE * entries;
        let matrices =
            count(&[&form.residual[..], &form.constraints, &form.newton].concat()) + count(&form.projection);
        let each =
            count(&self.newton.concat()) + count(&self.acceleration) + count(&self.projection.concat());
        let saved = once.saturating_sub(matrices);
        match each.saturating_sub(PER_COLUMN * entries) {
            0 if saved > 0 => Self::MOST,
            0 => 0,
            more => (saved / more).min(Self::MOST),
        }
    }
}

/// Derivatives of ydᵀ P d + yddᵀ P e by z, zd, zdd, λ and ρ. P is the symmetric part of W, so that the weight of W_ij is
/// (yd_i d_j + yd_j d_i + ydd_i e_j + ydd_j e_i)/2.
pub fn tangent_product(
    g: &mut Graph,
    form: &CoordinateForm,
    rows: usize,
    seeds: &[ExprId],
) -> [Vec<ExprId>; 5] {
    let half = g.constant(0.5);
    let pairs = [
        (Group::VelocityCostate, Group::VelocityImpulse),
        (Group::AccelerationCostate, Group::AccelerationImpulse),
    ];
    let mut weighted = Vec::with_capacity(form.pattern.tangent.len());
    for (&(i, j), &entry) in form.pattern.tangent.iter().zip(&form.newton) {
        let mut terms = Vec::with_capacity(4);
        for (costate, impulse) in pairs {
            for (i, j) in [(i, j), (j, i)] {
                let (y, x) = (g.symbol(costate, i), g.symbol(impulse, j));
                terms.push(g.mul(y, x));
            }
        }
        let sum = g.sum(&terms);
        weighted.push((entry, g.mul(half, sum)));
    }
    let nq = form.residual.len();
    let sections = [(Group::Z, nq), (Group::Zd, nq), (Group::Zdd, nq), (Group::Lambda, rows)];
    let mut symbols = Vec::new();
    for (group, count) in sections {
        symbols.extend((0..count as u32).map(|i| g.symbol(group, i)));
    }
    symbols.extend(seeds);
    let mut rest = gradient(g, &weighted, &symbols).into_iter();
    let parts = sections.map(|(_, count)| rest.by_ref().take(count).collect::<Vec<_>>());
    let [z, zd, zdd, lambda] = parts;
    [z, zd, zdd, lambda, rest.collect()]
}

/// Expressions with their weights, the symbols of a group from `first` on.
fn weigh(g: &mut Graph, group: Group, first: usize, expressions: &[&[ExprId]]) -> Vec<(ExprId, ExprId)> {
    let all = expressions.iter().flat_map(|part| part.iter().copied());
    all.enumerate().map(|(i, expression)| (expression, g.symbol(group, (first + i) as u32))).collect()
}
