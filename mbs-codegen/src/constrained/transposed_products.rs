//! Transposed products Jᵀ y by reverse accumulation: derivatives of the one number yᵀ f by everything that f depends on, without the matrix
//! J = f_x.
//!
//! Input: residual, constraints and their time derivatives in coordinate form, and the impulses of the projections. Output: expressions of
//! the products. The sweep goes back over the joint-wise recursion, so that a product costs a small multiple of f, whatever the number
//! of unknowns and parameters.
//!
//! Values of tables and splines are read at one place at a time, but a spline's depend on all of its parameters. So the products stop at
//! the values s(ρ) that are read: their weights s̄ are summed over the run, and one product s_ρᵀ s̄ at its end takes them to the parameters.
//!
//! A list costs all of its entries once, and a loop over its places for each column; a product costs the same for each column. So products
//! are for few columns, that is for few objectives, and [`TransposedProducts::columns`] says for how many.

use super::{CoordinateDerivatives, CoordinateForm};
use crate::graph::{ArrayId, ExprId, Graph, Node, gradient};
use crate::symbols::Group;
use std::collections::{BTreeMap, BTreeSet};

/// Operations that an entry of a list takes in a loop over its places, and those that each column adds: estimated from
/// the loops of the runtime, not measured.
const PER_PLACE: usize = 6;
const PER_COLUMN: usize = 2;

/// The products that take an implicit step back.
#[derive(Clone, Debug)]
pub struct TransposedProducts {
    /// Of yᵀ (r; Φ; Ψ) by z, zd, ρ and values of tables, and the places of these.
    pub newton: [Vec<ExprId>; 5],
    /// Of ydd_rowsᵀ (Φdd; Ψd) by zd.
    pub acceleration: Vec<ExprId>,
    /// Of ydᵀ (M d + Bᵀσ; Φd; Ψ) + yddᵀ (M e + Bᵀκ; Φdd; Ψd) by z, ρ and values of tables, and the places of these.
    pub projection: [Vec<ExprId>; 4],
    /// Of the values of tables with their weights, by ρ.
    pub table: Vec<ExprId>,
    /// How many values of tables there are.
    pub table_values: usize,
}

/// Tables whose values depend on parameters alone, one after the other.
struct Tables {
    seeds: BTreeSet<ExprId>,
    /// Whether a table has been looked at, and where its values begin if they depend on seeds.
    first: BTreeMap<ArrayId, Option<usize>>,
    /// All values.
    values: Vec<ExprId>,
}

impl Tables {
    /// Where the values of a table begin; none if they do not depend on seeds, or not on parameters alone.
    fn first(&mut self, g: &Graph, array: ArrayId) -> Option<usize> {
        if let Some(&first) = self.first.get(&array) {
            return first;
        }
        let values = g.array(array);
        let plain = g.depends_of_all(values).is_parameters_only()
            && g.reachable(values).iter().any(|id| self.seeds.contains(id));
        let first = plain.then_some(self.values.len());
        if plain {
            self.values.extend(values);
        }
        self.first.insert(array, first);
        first
    }

    /// The values that these expressions read from tables, and the place of each among all values.
    fn read(&mut self, g: &mut Graph, roots: &[ExprId]) -> [Vec<ExprId>; 2] {
        let mut found = [vec![], vec![]];
        for id in g.reachable(roots) {
            let Node::Gather(array, index) = g.node(id) else { continue };
            // What does not change along a run is a parameter's own.
            if g.depends(id).is_parameters_only() {
                continue;
            }
            let Some(first) = self.first(g, array) else { continue };
            let count = g.array(array).len();
            let numbers: Vec<ExprId> = (0..count).map(|i| g.constant(i as f64)).collect();
            let numbers = g.new_array(numbers);
            let (number, first) = (g.gather(numbers, index), g.constant(first as f64));
            let place = g.add(number, first);
            found[0].push(id);
            found[1].push(place);
        }
        found
    }
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

        let mut tables =
            Tables { seeds: seeds.iter().copied().collect(), first: BTreeMap::new(), values: Vec::new() };
        let weighted = weigh(g, Group::Costate, 0, &[&form.residual, &form.constraints]);
        let [read, places] = tables.read(g, &roots(&weighted));
        let all = gradient(g, &weighted, &[&z[..], &zd, seeds, &read].concat());
        let [by_z, by_zd, rho, by_read] = split(all, [nq, nq, seeds.len(), read.len()]);
        let newton = [by_z, by_zd, rho, by_read, places];

        let weighted = weigh(g, Group::AccelerationCostate, nq, &[&form.accelerations]);
        let of_acceleration = gradient(g, &weighted, &zd);

        let mut weighted = weigh(g, Group::VelocityCostate, 0, &[velocity, &form.rates]);
        weighted.extend(weigh(g, Group::AccelerationCostate, 0, &[acceleration, &form.accelerations]));
        let [read, places] = tables.read(g, &roots(&weighted));
        let all = gradient(g, &weighted, &[&z[..], seeds, &read].concat());
        let [by_z, rho, by_read] = split(all, [nq, seeds.len(), read.len()]);
        let projection = [by_z, rho, by_read, places];

        let weighted = weigh(g, Group::TableCostate, 0, &[&tables.values]);
        let table = gradient(g, &weighted, seeds);
        let table_values = tables.values.len();
        TransposedProducts { newton, acceleration: of_acceleration, projection, table, table_values }
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
        most_columns(once.saturating_sub(matrices), each.saturating_sub(PER_COLUMN * entries))
    }

    /// For how many columns the products of the projections take fewer operations than their list.
    pub fn projection_columns(&self, g: &Graph, lists: &CoordinateDerivatives) -> usize {
        let count = |roots: &[ExprId]| g.operations_per_call(roots);
        let entries = lists.projections.expressions.len();
        let once = count(&lists.projections.expressions) + PER_PLACE * entries;
        let each = count(&self.acceleration) + count(&self.projection.concat());
        most_columns(once, each.saturating_sub(PER_COLUMN * entries))
    }
}

/// For how many columns something pays that saves operations once and adds some for each column.
fn most_columns(saved: usize, more: usize) -> usize {
    match more {
        0 if saved > 0 => TransposedProducts::MOST,
        0 => 0,
        more => (saved / more).min(TransposedProducts::MOST),
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

fn roots(weighted: &[(ExprId, ExprId)]) -> Vec<ExprId> {
    weighted.iter().map(|&(expression, _)| expression).collect()
}

/// Parts of these lengths.
fn split<const N: usize>(all: Vec<ExprId>, lengths: [usize; N]) -> [Vec<ExprId>; N] {
    let mut all = all.into_iter();
    lengths.map(|len| all.by_ref().take(len).collect())
}
