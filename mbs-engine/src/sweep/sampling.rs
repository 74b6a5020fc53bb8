//! Points of the unit cube: random, Latin hypercubes, Sobol's sequence. The same seed gives the same points everywhere.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use sobol::Sobol;
use sobol::params::JoeKuoD6;

/// A number of [0, 1) with 53 random bits.
fn unit(random: &mut ChaCha8Rng) -> f64 {
    (random.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
}

/// n points of a Latin hypercube: in every direction one in each of n slices.
pub fn latin_hypercube(n: usize, dimensions: usize, seed: u64) -> Vec<Vec<f64>> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut points = vec![vec![0.0; dimensions]; n];
    for k in 0..dimensions {
        let mut slices: Vec<usize> = (0..n).collect();
        for i in (1..n).rev() {
            // Fisher and Yates.
            let j = (unit(&mut random) * (i + 1) as f64) as usize;
            slices.swap(i, j.min(i));
        }
        for (point, slice) in points.iter_mut().zip(slices) {
            point[k] = (slice as f64 + unit(&mut random)) / n as f64;
        }
    }
    points
}

/// n independent points.
pub fn random(n: usize, dimensions: usize, seed: u64) -> Vec<Vec<f64>> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    (0..n).map(|_| (0..dimensions).map(|_| unit(&mut random)).collect()).collect()
}

/// Most directions of Sobol's sequence.
pub const SOBOL_DIMENSIONS: usize = 1000;

/// The first n points of Sobol's sequence after its origin, shifted modulo one by a random vector if the seed is not zero: estimates stay
/// unbiased, and other seeds give other points.
pub fn sobol(n: usize, dimensions: usize, seed: u64) -> Vec<Vec<f64>> {
    let shift = match seed {
        0 => vec![0.0; dimensions],
        seed => random(1, dimensions, seed).pop().unwrap_or_default(),
    };
    let points = Sobol::<f64>::new(dimensions.clamp(1, SOBOL_DIMENSIONS), &JoeKuoD6::standard());
    let shifted = |point: Vec<f64>| point.iter().zip(&shift).map(|(u, s)| (u + s).fract()).collect();
    points.skip(1).take(n).map(shifted).collect()
}

/// The x with Φ(x) = u, of the standard normal distribution Φ. Probabilities beyond 1e-300 are cut there.
pub fn normal_quantile(u: f64) -> f64 {
    if u > 0.5 {
        // 1 − u has all digits that u has.
        return -normal_quantile(1.0 - u);
    }
    let u = u.max(1e-300);
    // Φ grows: bisection from an interval that has the solution, then Newton's method with Φ′ = exp(−x²/2)/√(2π).
    let distribution = |x: f64| 0.5 * libm::erfc(-x / core::f64::consts::SQRT_2);
    let (mut low, mut high) = (-40.0, 0.0);
    for _ in 0..12 {
        let middle = 0.5 * (low + high);
        if distribution(middle) < u { low = middle } else { high = middle }
    }
    let mut x = 0.5 * (low + high);
    for _ in 0..8 {
        let density = (-0.5 * x * x).exp() / (2.0 * core::f64::consts::PI).sqrt();
        // Newton's method for ln Φ, which is nearly a parabola far out.
        let value = distribution(x);
        x -= (value / u).ln() * value / density;
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_the_normal_distribution() {
        // Tables.
        for (u, x) in [
            (0.5, 0.0),
            (0.975, 1.959963984540054),
            (0.025, -1.959963984540054),
            (0.999, 3.090232306167813),
            (1e-10, -6.361340902404056),
        ] {
            assert!(
                (normal_quantile(u) - x).abs() < 1e-12 * (1.0 + f64::abs(x)),
                "{u}: {}",
                normal_quantile(u)
            );
        }
        assert!(normal_quantile(0.0).is_finite() && normal_quantile(1.0).is_finite());
    }

    #[test]
    fn a_latin_hypercube_has_one_point_in_every_slice() {
        let points = latin_hypercube(50, 3, 7);
        for k in 0..3 {
            let mut slices: Vec<usize> = points.iter().map(|point| (point[k] * 50.0) as usize).collect();
            slices.sort_unstable();
            assert_eq!(slices, (0..50).collect::<Vec<_>>());
        }
        assert_eq!(points, latin_hypercube(50, 3, 7));
        assert_ne!(points, latin_hypercube(50, 3, 8));
    }

    #[test]
    fn sobols_sequence_fills_the_cube_evenly() {
        // The first 2^k points with the origin have one in every dyadic slice.
        let points = sobol(63, 4, 0);
        for k in 0..4 {
            let mut slices: Vec<usize> = points.iter().map(|point| (point[k] * 64.0) as usize).collect();
            slices.push(0);
            slices.sort_unstable();
            assert_eq!(slices, (0..64).collect::<Vec<_>>());
        }
        assert!(sobol(10, 4, 3).iter().flatten().all(|u| (0.0..1.0).contains(u)));
    }
}
