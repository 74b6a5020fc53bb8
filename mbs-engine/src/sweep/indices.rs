//! Global sensitivity from the rows of a sweep: Sobol's indices, Morris' elementary effects.
//!
//! | symbol | meaning |
//! |---|---|
//! | f_A, f_B, f_k | results at A, at B, at A with column k of B |
//! | S_k | part of the variance that axis k alone causes: mean f_B (f_k − f_A) / V [Saltelli2010, Table 2 (b)] |
//! | T_k | part of the variance in which axis k takes part: mean (f_A − f_k)² / 2V [Saltelli2010, Table 2 (f)] |
//! | μ*, σ | mean size and standard deviation of the effects of an axis, of steps over its whole range |

use super::plan::{Design, Plan};

/// The indices of one result.
#[derive(Clone, Debug, PartialEq)]
pub struct Indices {
    /// The result.
    pub name: String,
    /// Of each axis; none if the result does not vary, so that there are no parts of its variance.
    pub axes: Vec<Index>,
    /// Samples or trajectories without a failed run.
    pub used: usize,
}

/// The index of one axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Index {
    /// Sobol's, with standard errors of both.
    Sobol {
        /// S
        first: f64,
        /// Its standard error.
        first_error: f64,
        /// T
        total: f64,
        /// Its standard error.
        total_error: f64,
    },
    /// Morris'.
    Morris {
        /// Mean effect.
        mean: f64,
        /// μ*
        size: f64,
        /// σ
        deviation: f64,
    },
}

/// The indices of a result, of which there is one value a point, none where the run failed. None if the plan has no such design.
pub fn indices(plan: &Plan, name: &str, values: &[Option<f64>]) -> Option<Indices> {
    let d = plan.axes.len();
    let n = plan.samples;
    let (axes, used) = match plan.design {
        Design::Saltelli => sobol(values, n, d),
        Design::Morris => morris(plan, values, n, d),
        _ => return None,
    };
    Some(Indices { name: name.into(), axes, used })
}

fn sobol(values: &[Option<f64>], n: usize, d: usize) -> (Vec<Index>, usize) {
    let at = |block: usize, i: usize| {
        values.get(block * n + i).copied().flatten().filter(|value| value.is_finite())
    };
    let whole: Vec<usize> = (0..n).filter(|&i| (0..d + 2).all(|block| at(block, i).is_some())).collect();
    let value = |block: usize, i: usize| at(block, i).unwrap_or(f64::NAN);
    let both: Vec<f64> = whole.iter().flat_map(|&i| [value(0, i), value(1, i)]).collect();
    let (centre, variance) = moments(&both);
    // 0/0: a result that varies by roundings only has no parts of its variance.
    if whole.is_empty() || !(variance.sqrt() > ROUNDING * centre.abs()) {
        return (Vec::new(), whole.len());
    }
    let axis = |k: usize| {
        // Centred: the estimate of S has less variance, the same mean.
        let first: Vec<f64> = whole
            .iter()
            .map(|&i| (value(1, i) - centre) * (value(2 + k, i) - value(0, i)) / variance)
            .collect();
        let total: Vec<f64> =
            whole.iter().map(|&i| 0.5 * (value(0, i) - value(2 + k, i)).powi(2) / variance).collect();
        let ((first, v1), (total, v2)) = (moments(&first), moments(&total));
        let error = |v: f64| (v / whole.len().max(1) as f64).sqrt();
        Index::Sobol { first, first_error: error(v1), total, total_error: error(v2) }
    };
    ((0..d).map(axis).collect(), whole.len())
}

fn morris(plan: &Plan, values: &[Option<f64>], n: usize, d: usize) -> (Vec<Index>, usize) {
    let mut effects = vec![Vec::new(); d];
    let mut used = 0;
    for trajectory in 0..n {
        let place = |step: usize| trajectory * (d + 1) + step;
        if (0..=d).any(|step| values.get(place(step)).copied().flatten().is_none()) {
            continue;
        }
        used += 1;
        for step in 0..d {
            let (p, q) = (plan.unit(place(step)), plan.unit(place(step + 1)));
            let Some(k) = (0..d).find(|&k| p[k] != q[k]) else { continue };
            let (Some(f), Some(g)) = (values[place(step)], values[place(step + 1)]) else { continue };
            effects[k].push((g - f) / (q[k] - p[k]));
        }
    }
    let axis = |effects: &Vec<f64>| {
        let (mean, variance) = moments(effects);
        let sizes: Vec<f64> = effects.iter().map(|effect| effect.abs()).collect();
        Index::Morris { mean, size: moments(&sizes).0, deviation: variance.sqrt() }
    };
    (effects.iter().map(axis).collect(), used)
}

/// Deviation, as a part of the mean, below which a result does not vary: sums over a run carry some dozens of roundings.
const ROUNDING: f64 = 64.0 * f64::EPSILON;

/// Mean and variance.
fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::Axis;
    use std::f64::consts::PI;

    /// Ishigami's function, whose indices are known: S = 0.3139, 0.4424, 0; T = 0.5576, 0.4424, 0.2437.
    #[test]
    fn indices_of_a_known_function() {
        let axes = [
            "x=-3.141592653589793:3.141592653589793",
            "y=-3.141592653589793:3.141592653589793",
            "z=-3.141592653589793:3.141592653589793",
        ];
        let axes: Vec<Axis> = axes.iter().map(|text| Axis::parse(text).unwrap()).collect();
        let f = |x: &[f64]| x[0].sin() + 7.0 * x[1].sin().powi(2) + 0.1 * x[2].powi(4) * x[0].sin();
        let plan = Plan::new(axes.clone(), Design::Saltelli, Some(4096), 1).unwrap();
        let mut values: Vec<Option<f64>> = (0..plan.len()).map(|i| Some(f(&plan.point(i)))).collect();
        values[17] = None;
        let found = indices(&plan, "f", &values).unwrap();
        assert_eq!(found.used, 4095);
        // V = 7²/8 + b π⁴/5 + b² π⁸/18 + 1/2
        let (a, b) = (7.0_f64, 0.1_f64);
        let v1 = 0.5 * (1.0 + b * PI.powi(4) / 5.0).powi(2);
        let v2 = a * a / 8.0;
        let v13 = b * b * PI.powi(8) * (1.0 / 18.0 - 1.0 / 50.0);
        let v = v1 + v2 + v13;
        for (index, (s, t)) in
            found.axes.iter().zip([(v1 / v, (v1 + v13) / v), (v2 / v, v2 / v), (0.0, v13 / v)])
        {
            let Index::Sobol { first, total, first_error, total_error } = index else { panic!() };
            assert!((first - s).abs() < 0.01 && (total - t).abs() < 0.01, "{index:?}, {s}, {t}");
            assert!(*first_error < 0.05 && *total_error < 0.05);
        }
        let still = indices(&plan, "still", &vec![Some(0.1 + 0.2); plan.len()]).unwrap();
        assert!(still.axes.is_empty() && still.used == 4096);
        // Of a linear function every effect is its slope times the range.
        let plan = Plan::new(axes, Design::Morris, Some(6), 1).unwrap();
        let values: Vec<Option<f64>> =
            (0..plan.len()).map(|i| Some(3.0 * plan.point(i)[0] - plan.point(i)[2])).collect();
        let found = indices(&plan, "f", &values).unwrap();
        for (index, slope) in found.axes.iter().zip([3.0, 0.0, -1.0]) {
            let Index::Morris { mean, size, deviation } = index else { panic!() };
            let expected = 2.0 * PI * slope;
            assert!(
                (mean - expected).abs() < 1e-9 && (size - expected.abs()).abs() < 1e-9 && *deviation < 1e-9
            );
        }
    }
}
