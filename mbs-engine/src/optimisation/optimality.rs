//! How near a point is to an optimum, from gradients alone: independent of the optimiser.
//!
//! | symbol | meaning |
//! |---|---|
//! | g | gradient of the scaled cost by the scaled unknowns |
//! | C | Jacobian of the active constraints, scaled |
//! | λ | multipliers of constraints: min ‖g + Cᵀλ‖ over unknowns that are not at a bound |
//! | r | g + Cᵀλ, zero at an optimum but at active bounds, where it is the bound's multiplier |

use super::evaluation::Evaluation;
use super::problem::Problem;
use nalgebra::{DMatrix, DVector};

/// A bound that holds an unknown back.
#[derive(Clone, Debug, PartialEq)]
pub struct ActiveBound {
    /// The unknown.
    pub name: String,
    /// The bound.
    pub value: f64,
    /// Whether it is the upper one.
    pub is_upper: bool,
    /// By how much the cost would fall if the bound gave way by one unit.
    pub multiplier: f64,
}

/// A constraint that holds the cost back.
#[derive(Clone, Debug, PartialEq)]
pub struct ActiveRow {
    /// The objective.
    pub name: String,
    /// Its value.
    pub value: f64,
    /// By how much the cost would fall if the constraint gave way by one unit.
    pub multiplier: f64,
}

/// How near a point is to an optimum.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Optimality {
    /// ‖r‖∞ of what bounds do not hold back, scaled.
    pub projected_gradient: f64,
    /// Active bounds.
    pub bounds: Vec<ActiveBound>,
    /// Active constraints.
    pub rows: Vec<ActiveRow>,
}

/// Scales of the functions of a problem: of the cost, of each constraint.
#[derive(Clone, Debug)]
pub(super) struct FunctionScales {
    pub(super) cost: f64,
    pub(super) rows: Vec<f64>,
}

/// Part of a scaled bound's size within which an unknown is at it: optimisers put it there to rounding.
const AT_BOUND: f64 = 1e-12;
/// Scaled distance within which a constraint is active: what sequential programming leaves of it.
const ACTIVE: f64 = 1e-6;

impl Problem {
    /// The optimality of an evaluated point.
    pub(super) fn optimality(
        &self,
        x: &[f64],
        evaluation: &Evaluation,
        scales: &FunctionScales,
    ) -> Optimality {
        let n = self.variables.len();
        let slopes: Vec<f64> = self.variables.iter().zip(x).map(|(v, x)| v.slope(*x)).collect();
        let scaled = |d: &[f64], s: f64| -> Vec<f64> {
            d.iter().zip(&slopes).map(|(d, slope)| d * slope / s).collect()
        };
        let g = scaled(&self.cost_gradient(evaluation), scales.cost);
        let values = self.row_values(evaluation);
        // (place of the row, +1 at the upper bound and −1 at the lower one)
        let mut active: Vec<(usize, f64)> = Vec::new();
        for (i, (row, value)) in self.rows.iter().zip(&values).enumerate() {
            let near = |bound: f64| (value - bound).abs() <= ACTIVE * scales.rows[i];
            if near(row.upper) || *value > row.upper {
                active.push((i, 1.0));
            } else if near(row.lower) || *value < row.lower {
                active.push((i, -1.0));
            }
        }
        let at =
            |bound: f64, x: f64| bound.is_finite() && (x - bound).abs() <= AT_BOUND * bound.abs().max(1.0);
        let side = |(v, x): (&super::problem::Variable, &f64)| match (at(v.lower, *x), at(v.upper, *x)) {
            (true, _) => -1.0,
            (_, true) => 1.0,
            _ => 0.0,
        };
        let sides: Vec<f64> = self.variables.iter().zip(x).map(side).collect();
        let (lambda, r) = loop {
            let rows: Vec<Vec<f64>> = active
                .iter()
                .map(|&(i, sign)| {
                    let row = &self.rows[i];
                    let d = self.derivative(evaluation, row.run, row.objective);
                    scaled(d, sign * scales.rows[i])
                })
                .collect();
            let lambda = multipliers(&g, &rows, &sides);
            // An inequality pulls one way only.
            let wrong =
                active.iter().zip(&lambda).position(|((i, _), l)| *l < 0.0 && !self.rows[*i].is_equation());
            if let Some(wrong) = wrong {
                active.remove(wrong);
                continue;
            }
            let mut r = g.clone();
            for (row, l) in rows.iter().zip(&lambda) {
                r.iter_mut().zip(row).for_each(|(r, c)| *r += l * c);
            }
            break (lambda, r);
        };
        let mut found = Optimality::default();
        for k in 0..n {
            let variable = &self.variables[k];
            // At a lower bound the cost may rise inward, at an upper one fall.
            let held = sides[k] * r[k] < 0.0 || (sides[k] != 0.0 && variable.lower == variable.upper);
            if held {
                found.bounds.push(ActiveBound {
                    name: variable.name.clone(),
                    value: x[k],
                    is_upper: sides[k] > 0.0,
                    multiplier: (r[k] * scales.cost / slopes[k]).abs(),
                });
            } else {
                found.projected_gradient = found.projected_gradient.max(r[k].abs());
            }
        }
        for (&(i, sign), l) in active.iter().zip(&lambda) {
            found.rows.push(ActiveRow {
                name: self.rows[i].name.clone(),
                value: values[i],
                multiplier: sign * l * scales.cost / scales.rows[i],
            });
        }
        found
    }
}

/// min ‖g + Cᵀλ‖ over the unknowns away from bounds.
fn multipliers(g: &[f64], rows: &[Vec<f64>], sides: &[f64]) -> Vec<f64> {
    if rows.is_empty() {
        return Vec::new();
    }
    let free: Vec<usize> = (0..g.len()).filter(|&k| sides[k] == 0.0).collect();
    // In a corner of the bounds nothing is free, and nothing is asked of the constraints.
    if free.is_empty() {
        return vec![0.0; rows.len()];
    }
    let c = DMatrix::from_fn(free.len(), rows.len(), |k, j| rows[j][free[k]]);
    let right = DVector::from_fn(free.len(), |k, _| -g[free[k]]);
    // Dependent constraints share what acts on them: the solution of least norm.
    let solved = c.svd(true, true).solve(&right, 1e-10);
    solved.map_or_else(|_| vec![0.0; rows.len()], |lambda| lambda.iter().copied().collect())
}
