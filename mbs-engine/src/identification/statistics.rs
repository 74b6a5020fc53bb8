//! What data say of parameters, from the Jacobian of the residuals at the fit.

use nalgebra::DMatrix;

/// What data say of parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Statistics {
    /// s: standard deviation of a measurement of weight one.
    pub deviation: f64,
    /// Standard deviation of each parameter, in its unit; infinite where the data do not determine it.
    pub deviations: Vec<f64>,
    /// Correlations, row by row; NaN where a parameter is not determined.
    pub correlations: Vec<Vec<f64>>,
    /// Singular values of the scaled Jacobian, largest first.
    pub singular_values: Vec<f64>,
    /// Directions that the data do not determine.
    pub undetermined: Vec<Direction>,
}

/// A direction of the scaled unknowns.
#[derive(Clone, Debug, PartialEq)]
pub struct Direction {
    /// Its singular value, relative to the largest.
    pub relative: f64,
    /// The parameters that take part, by place, with their parts; largest first.
    pub parts: Vec<(usize, f64)>,
}

/// Singular values below this part of the largest carry no information: differences of runs are known to about 1e-9.
const UNDETERMINED: f64 = 1e-7;
/// Components of a direction below this part do not name it.
const PART: f64 = 0.05;

/// From J by the scaled unknowns, the residuals and the slopes dx/dy.
pub(super) fn statistics(jacobian: &DMatrix<f64>, residuals: &[f64], slopes: &[f64]) -> Statistics {
    let (m, n) = jacobian.shape();
    let freedom = m.saturating_sub(n).max(1) as f64;
    let variance = residuals.iter().map(|r| r * r).sum::<f64>() / freedom;
    // Rows of zeros make V square where there are fewer data than unknowns.
    let padded = DMatrix::from_fn(m.max(n), n, |i, k| if i < m { jacobian[(i, k)] } else { 0.0 });
    let svd = padded.svd(false, true);
    let v_t = svd.v_t.unwrap_or_else(|| DMatrix::identity(n, n));
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|a, b| svd.singular_values[*b].total_cmp(&svd.singular_values[*a]));
    let singular_values: Vec<f64> = order.iter().map(|i| svd.singular_values[*i]).collect();
    let largest = singular_values.first().copied().unwrap_or(0.0);
    let is_open = |i: usize| svd.singular_values[i] <= UNDETERMINED * largest;
    let mut undetermined = Vec::new();
    let mut open = vec![false; n];
    for &i in order.iter().filter(|i| is_open(**i)) {
        let mut parts: Vec<(usize, f64)> = (0..n).map(|k| (k, v_t[(i, k)])).collect();
        parts.retain(|(_, part)| part.abs() >= PART);
        parts.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
        parts.iter().for_each(|(k, _)| open[*k] = true);
        undetermined
            .push(Direction { relative: svd.singular_values[i] / largest.max(f64::MIN_POSITIVE), parts });
    }
    // C = s² V Σ⁻² Vᵀ of what is determined.
    let covariance = |a: usize, b: usize| -> f64 {
        let determined = (0..n).filter(|i| !is_open(*i));
        variance * determined.map(|i| v_t[(i, a)] * v_t[(i, b)] / svd.singular_values[i].powi(2)).sum::<f64>()
    };
    let scaled: Vec<f64> = (0..n).map(|k| covariance(k, k).sqrt()).collect();
    let deviations =
        (0..n).map(|k| if open[k] { f64::INFINITY } else { scaled[k] * slopes[k].abs() }).collect();
    let correlation = |a: usize, b: usize| match a == b {
        true => 1.0,
        false if open[a] || open[b] => f64::NAN,
        false => covariance(a, b) / (scaled[a] * scaled[b]),
    };
    let correlations = (0..n).map(|a| (0..n).map(|b| correlation(a, b)).collect()).collect();
    Statistics { deviation: variance.sqrt(), deviations, correlations, singular_values, undetermined }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_that_acts_as_one_is_named() {
        // r depends on a + b and on c.
        let jacobian = DMatrix::from_fn(6, 3, |i, k| if k < 2 { i as f64 } else { (i * i) as f64 });
        let found = statistics(&jacobian, &[0.1; 6], &[1.0, 1.0, 2.0]);
        assert_eq!(found.undetermined.len(), 1);
        let mut places: Vec<usize> = found.undetermined[0].parts.iter().map(|(k, _)| *k).collect();
        places.sort_unstable();
        assert_eq!(places, [0, 1]);
        assert!(found.deviations[0].is_infinite() && found.deviations[1].is_infinite());
        assert!(found.deviations[2].is_finite() && found.correlations[0][2].is_nan());
    }

    /// A straight line: var(slope) = s² / Σ(t − t̄)².
    #[test]
    fn the_deviation_of_a_slope() {
        let n = 5;
        let jacobian = DMatrix::from_fn(n, 2, |i, k| if k == 0 { 1.0 } else { i as f64 });
        let residuals = [0.1, -0.2, 0.1, 0.1, -0.1];
        let s2 = residuals.iter().map(|r| r * r).sum::<f64>() / 3.0;
        let found = statistics(&jacobian, &residuals, &[1.0, 1.0]);
        assert!((found.deviations[1] - (s2 / 10.0).sqrt()).abs() < 1e-14);
        // cov = −s² t̄ / Σ(t − t̄)²
        let expected = -2.0 / ((1.0 / 5.0 + 4.0 / 10.0) * 10.0_f64).sqrt() / 1.0_f64;
        assert!((found.correlations[0][1] - expected).abs() < 1e-12, "{}", found.correlations[0][1]);
    }
}
