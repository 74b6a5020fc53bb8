//! Accelerations and multipliers in joint form, by one flat solve.
//!
//! ```text
//! [ M    Φ_vᵀ  ] [vd]   [ Q                    ]
//! [ Φ_v  −e−ε  ] [λ ] = [ −c − a Φd − b Φ      ]
//! ```
//!
//! with c what Φdd is for vd = 0 (rows of A and Ψd likewise, without the term b). The ε, tiny against Φ_v M⁻¹ Φ_vᵀ,
//! keeps redundant rows solvable. One refinement takes it out again: the correction of a solution with multipliers λ
//! has the right-hand side (0, −ε λ). Multipliers so found have no part along the rows' dependencies, which makes them
//! those of least norm.

use super::scales::Scales;
use super::{Rows, States};
use crate::derivatives::Linearisation;
use crate::derivatives::constraints::jacobian;
use crate::derivatives::direction::{Weights, joint_directions};
use crate::dynamics::{Symmetric, mass_matrix, right_hand_side};
use crate::elements::{ConstraintElement, Element, Mechanism, constraint_elements, loads};
use crate::graph::{ExprId, Graph};
use crate::sparse::{Factors, SparseMatrix, choose_order, factor};
use crate::symbols::Group;
use hashbrown::HashMap;
use std::collections::BTreeMap;

/// The equations over t, z, v, u and the stabilisation.
#[derive(Clone, Debug)]
pub struct JointForm {
    /// Accelerations and multipliers.
    pub solution: Solution,
    /// Corrections of the state onto the constraints.
    pub correction: Correction,
    /// (Φ_v; A), by columns.
    pub jacobian: Vec<ExprId>,
    /// Factors of the matrix above, and of that of the corrections, which has no e.
    pub(super) factors: Factors,
    correcting: Factors,
    /// ε of the rows.
    small: Vec<ExprId>,
}

/// vd, λ and the pivots they came by.
#[derive(Clone, Debug)]
pub struct Solution {
    /// vd
    pub accelerations: Vec<ExprId>,
    /// λ of the holonomic and the nonholonomic rows
    pub multipliers: Vec<ExprId>,
    /// Pivots of the elimination.
    pub pivots: Vec<ExprId>,
    /// The unknowns they belong to.
    pub columns: Vec<u32>,
}

/// Smallest corrections in the metric of M.
#[derive(Clone, Debug)]
pub struct Correction {
    /// dz = N dθ with Φ_v dθ = −Φ, A dθ = 0
    pub position: Vec<ExprId>,
    /// dv with Φ_v dv = −Φd, A dv = −Ψ
    pub velocity: Vec<ExprId>,
    /// dθ, and its multipliers; dv, and its multipliers
    pub impulses: [Vec<ExprId>; 2],
    /// Φ
    pub values: Vec<ExprId>,
    /// Φd, Ψ
    pub rates: Vec<ExprId>,
}

/// ε against Σ Φ²/M at the start, where rows depend on each other there: its square root is above the rounding of a solve, itself above that of a
/// residual.
const REGULARISATION: f64 = 1e-10;
/// The same where they do not: it keeps pivots in singular positions. The refined solution has the part (ε/σ)² of the error, with σ the least of
/// Φ M⁻¹ Φᵀ against its diagonal: 1e−8 where that is 1e−6 with the number above, 1e−10 with this one.
const INDEPENDENT: f64 = 1e-11;
/// Not less than this many units of rounding: in single precision.
const LEAST_REGULARISATION: f64 = 200.0;

/// Inertias below this part of the largest, in natural scales, are the rounding of none.
const MASSLESS: f64 = 1e-14;

/// Rows of unit length that elimination reduces below this depend on each other.
const DEPENDENT: f64 = 1e-6;

impl JointForm {
    /// Of a mechanism referred to the origin, under its forces and rows. `None` if no order of elimination works at
    /// the sampled states. `epsilon` is the rounding of the numbers it is evaluated with.
    pub fn new(
        g: &mut Graph,
        mechanism: &mut Mechanism<'_>,
        inertias: &[(ExprId, Symmetric)],
        forces: &[Element<'_>],
        rows: &Rows,
        states: &States,
        epsilon: f64,
    ) -> Option<JointForm> {
        let n = mechanism.tree.nv;
        let elements: Vec<&Element<'_>> = forces.iter().collect();
        let loads = loads(g, mechanism, &elements);
        let rhs = right_hand_side(g, mechanism, inertias, &loads);
        let constraints = constraint_elements(g, mechanism, &rows.kept, |row| row);
        let rates: Vec<_> = constraints.iter().flat_map(|c| c.rates(g, mechanism)).collect();
        let matrix = bordered_matrix(g, mechanism, inertias, constraints, rows);
        let places = (0..n).flat_map(|j| (0..rates.len()).map(move |k| (n + k, j)));
        let jacobian = places.map(|place| matrix.entries.get(&place).copied().unwrap_or(g.zero())).collect();
        let small = small_numbers(g, mechanism, states, &matrix, LEAST_REGULARISATION * epsilon);
        let (solved, corrected) = (
            factor_with(g, mechanism, states, &matrix, &small, true)?,
            factor_with(g, mechanism, states, &matrix, &small, false)?,
        );

        let [rate_gain, value_gain] = [0, 1].map(|i| g.symbol(Group::Stabilisation, i));
        let still: HashMap<ExprId, ExprId> =
            (0..n as u32).map(|j| (g.symbol(Group::Vd, j), g.zero())).collect();
        let (mut answer, mut position, mut velocity) = (rhs, vec![g.zero(); n], vec![g.zero(); n]);
        let (mut values, mut all_rates) = (Vec::new(), Vec::new());
        for (k, row) in rates.iter().enumerate() {
            let holonomic = k < rows.holonomic();
            // Φd and Φdd at vd = 0, or Ψ and Ψd
            let (rate, acceleration) =
                if holonomic { (row.rate, row.acceleration) } else { (row.value, row.rate) };
            let bias = g.substitute(&[acceleration], &still)[0];
            let damped = g.mul(rate_gain, rate);
            let mut sum = g.add(bias, damped);
            if holonomic {
                let sprung = g.mul(value_gain, row.value);
                sum = g.add(sum, sprung);
                values.push(row.value);
            }
            answer.push(g.neg(sum));
            position.push(if holonomic { g.neg(row.value) } else { g.zero() });
            velocity.push(g.neg(rate));
            all_rates.push(rate);
        }
        let mut x = refined_one(g, &solved, &small, answer);
        let moved = corrected.solve(g, position);
        let pushed = corrected.solve(g, velocity);
        let multipliers = x.split_off(n);
        let turned: HashMap<ExprId, ExprId> =
            (0..n).map(|j| (g.symbol(Group::V, j as u32), moved[j])).collect();
        let rates_of: Vec<ExprId> = (0..mechanism.tree.nq).map(|z| mechanism.rate_of(g, z)).collect();
        Some(JointForm {
            solution: Solution {
                accelerations: x,
                multipliers,
                pivots: solved.pivots(),
                columns: solved.columns(),
            },
            correction: Correction {
                // dz = N(z) dθ
                position: g.substitute(&rates_of, &turned),
                velocity: pushed[..n].to_vec(),
                impulses: [moved, pushed],
                values,
                rates: all_rates,
            },
            jacobian,
            factors: solved,
            correcting: corrected,
            small,
        })
    }

    /// Refined solutions by the factors, by rows.
    pub fn solve_columns(&self, g: &mut Graph, rhs: Vec<Vec<ExprId>>) -> Vec<Vec<ExprId>> {
        refined(g, &self.factors, &self.small, rhs)
    }

    /// The same with the matrix of the corrections.
    pub fn correct_columns(&self, g: &mut Graph, rhs: Vec<Vec<ExprId>>) -> Vec<Vec<ExprId>> {
        refined(g, &self.correcting, &self.small, rhs)
    }

    /// Pivots of that matrix.
    pub fn correcting_pivots(&self) -> Vec<ExprId> {
        self.correcting.pivots()
    }

    /// A refined solution by the factors, or by others in their place.
    pub(super) fn solve(&self, g: &mut Graph, factors: &Factors, rhs: Vec<ExprId>) -> Vec<ExprId> {
        refined_one(g, factors, &self.small, rhs)
    }
}

/// A refined solution.
fn refined_one(g: &mut Graph, factors: &Factors, small: &[ExprId], rhs: Vec<ExprId>) -> Vec<ExprId> {
    let x = refined(g, factors, small, rhs.into_iter().map(|value| vec![value]).collect());
    x.into_iter().flatten().collect()
}

/// Solutions x by rows, a value for each column, and their corrections for the right-hand sides (0, −ε λ).
fn refined(g: &mut Graph, factors: &Factors, small: &[ExprId], rhs: Vec<Vec<ExprId>>) -> Vec<Vec<ExprId>> {
    let n = rhs.len() - small.len();
    let columns = rhs.first().map_or(0, Vec::len);
    let mut x = factors.solve_columns(g, rhs);
    if small.is_empty() {
        return x;
    }
    let mut rest = vec![vec![g.zero(); columns]; n];
    for (lambda, &small) in x[n..].iter().zip(small) {
        let row = lambda.iter().map(|&lambda| {
            let product = g.mul(small, lambda);
            g.neg(product)
        });
        rest.push(row.collect());
    }
    for (x, changes) in x.iter_mut().zip(factors.solve_columns(g, rest)) {
        for (x, change) in x.iter_mut().zip(changes) {
            *x = g.add(*x, change);
        }
    }
    x
}

/// [M Φ_vᵀ; Φ_v 0] by its nonzero entries, rows of A among those of Φ_v.
pub(crate) fn bordered_matrix(
    g: &mut Graph,
    mechanism: &mut Mechanism<'_>,
    inertias: &[(ExprId, Symmetric)],
    constraints: Vec<ConstraintElement<'_>>,
    rows: &Rows,
) -> SparseMatrix {
    let (n, m) = (mechanism.tree.nv, rows.kept.len());
    let mass = mass_matrix(g, mechanism, inertias);
    let mut linearisation = Linearisation::new(g, mechanism, inertias);
    let (holonomic, nonholonomic): (Vec<_>, Vec<_>) =
        constraints.into_iter().partition(|c| c.rows.iter().all(|row| row.row < rows.holonomic()));
    let (by_position, by_velocity) = (Weights::by_position(g), Weights::by_velocity(g));
    let tree = linearisation.tree();
    let [by_position, by_velocity] =
        [by_position, by_velocity].map(|weights| joint_directions(g, tree, weights));
    let mut border = jacobian(g, &mut linearisation, &holonomic, &by_position);
    border.extend(jacobian(g, &mut linearisation, &nonholonomic, &by_velocity));

    let mut matrix = SparseMatrix { n: n + m, entries: BTreeMap::new() };
    for i in 0..n {
        for j in 0..n {
            let entry = mass.get(i, j);
            if !g.is(entry, 0.0) {
                matrix.entries.insert((i, j), entry);
            }
        }
    }
    for (k, row) in border.iter().enumerate() {
        for (&j, &entry) in row {
            matrix.entries.insert((n + k, j), entry);
            matrix.entries.insert((j, n + k), entry);
        }
    }
    matrix
}

/// ε for every row, at least `least`: powers of two, so that no rounding of the samples reaches generated code. The same for all, in the units of
/// the rows, where rows depend on each other at the start: only then are the multipliers those of least Euclidean norm.
fn small_numbers(
    g: &mut Graph,
    mechanism: &Mechanism<'_>,
    states: &States,
    matrix: &SparseMatrix,
    least: f64,
) -> Vec<ExprId> {
    let Scales { velocities, rows: units, .. } = &states.scales;
    let (m, n) = (units.len(), mechanism.tree.nv);
    let (places, expressions): (Vec<_>, Vec<_>) = matrix.entries.iter().map(|(&p, &e)| (p, e)).unzip();
    let sampled = states.evaluate(g, mechanism, &expressions);
    let sample: BTreeMap<(usize, usize), f64> =
        places.into_iter().zip(sampled.first().into_iter().flatten().copied()).collect();
    // Φ_v M^(−1/2), without what has no inertia: it moves others that have.
    let inertias = inertias_of(&sample, velocities);
    let mut rows: Vec<BTreeMap<usize, f64>> = vec![BTreeMap::new(); m];
    for (&(k, j), &value) in sample.iter().filter(|&(&(k, j), _)| k >= n && j < n) {
        let value = value / inertias[j].sqrt();
        if value.is_finite() {
            rows[k - n].insert(j, value);
        }
    }
    let reached = |row: &BTreeMap<usize, f64>| Some(row.values().map(|x| x * x).sum()).filter(|x| *x > 0.0);
    let known: Vec<Option<f64>> = rows.iter().map(reached).collect();
    // A row that reaches no inertia goes with the others.
    let weights =
        known.iter().zip(units).filter_map(|(scale, unit)| scale.map(|scale| scale / (unit * unit)));
    let (sum, count) = weights.fold((0.0, 0), |(sum, count), weight| (sum + weight, count + 1));
    let mean = if count > 0 { sum / count as f64 } else { 1.0 };
    let mut scales: Vec<f64> =
        known.iter().zip(units).map(|(scale, unit)| scale.unwrap_or(mean * unit * unit)).collect();
    for (row, scale) in rows.iter_mut().zip(&scales) {
        row.values_mut().for_each(|x| *x /= scale.sqrt());
    }
    let dependent = are_dependent(rows);
    let part = least.max(if dependent { REGULARISATION } else { INDEPENDENT });
    if dependent {
        scales.iter_mut().zip(units).for_each(|(scale, unit)| *scale = mean * unit * unit);
    }
    // Within the range of numbers, whatever the samples.
    let small =
        |scale: &f64| g.constant(2f64.powi((part * scale).log2().round().clamp(-1000.0, 1000.0) as i32));
    scales.iter().map(small).collect()
}

/// The diagonal of M; zero where it is the rounding of none.
fn inertias_of(sample: &BTreeMap<(usize, usize), f64>, velocities: &[f64]) -> Vec<f64> {
    let inertia = |j: usize| sample.get(&(j, j)).map_or(0.0, |m| m.abs());
    let energy = |j: usize| inertia(j) * velocities[j] * velocities[j];
    let largest = (0..velocities.len()).map(energy).fold(0.0, f64::max);
    let heavy = |j: usize| if energy(j) > MASSLESS * largest { inertia(j) } else { 0.0 };
    (0..velocities.len()).map(heavy).collect()
}

/// Whether rows of unit length depend on each other: one is left without a pivot when the others are eliminated.
fn are_dependent(mut rows: Vec<BTreeMap<usize, f64>>) -> bool {
    while let Some(row) = rows.pop() {
        let largest = row.iter().max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()));
        let Some((&column, &pivot)) = largest.filter(|(_, x)| x.abs() > DEPENDENT) else { return true };
        for other in &mut rows {
            let Some(factor) = other.get(&column).map(|x| x / pivot) else { continue };
            for (&j, x) in &row {
                *other.entry(j).or_insert(0.0) -= factor * x;
            }
            other.remove(&column);
        }
    }
    false
}

/// Factors with −ε, or −e − ε, on the diagonal of the rows.
fn factor_with(
    g: &mut Graph,
    mechanism: &Mechanism<'_>,
    states: &States,
    matrix: &SparseMatrix,
    small: &[ExprId],
    compliant: bool,
) -> Option<Factors> {
    let mut matrix = matrix.clone();
    let n = matrix.n - small.len();
    for (k, &small) in small.iter().enumerate() {
        let compliance = g.symbol(Group::Stabilisation, 2);
        let sum = if compliant { g.add(compliance, small) } else { small };
        matrix.entries.insert((n + k, n + k), g.neg(sum));
    }
    let (places, expressions): (Vec<_>, Vec<_>) = matrix.entries.iter().map(|(&p, &e)| (p, e)).unzip();
    let sampled = states.evaluate(g, mechanism, &expressions);
    let mut samples: Vec<BTreeMap<(usize, usize), f64>> =
        sampled.iter().map(|values| places.iter().copied().zip(values.iter().copied()).collect()).collect();
    for sample in &mut samples {
        for (j, inertia) in inertias_of(sample, &states.scales.velocities).into_iter().enumerate() {
            sample.entry((j, j)).and_modify(|entry| *entry = inertia);
        }
    }
    let order = choose_order(matrix.n, &places.iter().copied().collect(), &samples)?;
    Some(factor(g, &matrix, &order))
}
