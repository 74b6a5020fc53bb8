//! The points of a sweep: a list that depends on axes, design, number and seed alone.

use super::axis::Axis;
use super::sampling::{self, SOBOL_DIMENSIONS};
use std::fmt;
use std::ops::Range;

/// How points are chosen where axes are no lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Design {
    /// A Latin hypercube.
    #[default]
    LatinHypercube,
    /// Sobol's sequence.
    Sobol,
    /// Independent points.
    Random,
    /// Two independent samples A and B, and A with each column of B in turn: for the indices of Sobol (Saltelli et al. 2010).
    Saltelli,
    /// Trajectories that move one axis at a time: for Morris' elementary effects.
    Morris,
}

/// The points of a sweep.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What is varied.
    pub axes: Vec<Axis>,
    /// How points are chosen.
    pub design: Design,
    /// Samples: N of the design.
    pub samples: usize,
    /// The seed.
    pub seed: u64,
    /// Points of the unit cube of the axes that are sampled.
    units: Vec<Vec<f64>>,
    /// Combinations of the lists.
    combinations: usize,
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanError {
    /// Nothing is varied.
    Empty,
    /// A parameter is named twice.
    Twice(String),
    /// Sampled axes without a number of samples.
    Samples(String),
    /// Samples without an axis that is sampled.
    Idle,
    /// A list where indices need a distribution.
    Listed(String),
    /// More points than can be run.
    TooMany,
    /// More directions than the sequence has.
    Dimensions,
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanError::Empty => f.write_str("nothing is varied"),
            PlanError::Twice(name) => write!(f, "`{name}` is varied twice"),
            PlanError::Samples(name) => {
                write!(
                    f,
                    "`{name}` is sampled and needs a number of samples; `{name}=LOW:HIGH:N` is a grid of N values"
                )
            }
            PlanError::Idle => f.write_str("all axes are lists, so there is nothing to sample"),
            PlanError::Listed(name) => {
                write!(f, "indices need a distribution of `{name}`, not a list: write `{name}=LOW:HIGH`")
            }
            PlanError::TooMany => write!(f, "more than {POINTS} runs"),
            PlanError::Dimensions => {
                write!(f, "Sobol's sequence has at most {SOBOL_DIMENSIONS} directions here")
            }
        }
    }
}

impl std::error::Error for PlanError {}

/// Most points of a plan.
const POINTS: usize = 100_000_000;
/// Levels of Morris' grid.
const LEVELS: usize = 4;

impl Plan {
    /// Makes a plan. Lists combine with each other and with every sample.
    pub fn new(
        axes: Vec<Axis>,
        design: Design,
        samples: Option<usize>,
        seed: u64,
    ) -> Result<Plan, PlanError> {
        if axes.is_empty() {
            return Err(PlanError::Empty);
        }
        if let Some(i) = (1..axes.len()).find(|&i| axes[..i].iter().any(|axis| axis.name == axes[i].name)) {
            return Err(PlanError::Twice(axes[i].name.clone()));
        }
        let sampled: Vec<&Axis> = axes.iter().filter(|axis| !axis.is_listed()).collect();
        let d = sampled.len();
        let global = matches!(design, Design::Saltelli | Design::Morris);
        if let Some(listed) = axes.iter().find(|axis| axis.is_listed()).filter(|_| global) {
            return Err(PlanError::Listed(listed.name.clone()));
        }
        let n = match (samples, sampled.first()) {
            (Some(n), Some(_)) => n,
            (None, Some(axis)) => return Err(PlanError::Samples(axis.name.clone())),
            (Some(_), None) => return Err(PlanError::Idle),
            (None, None) => 0,
        };
        let lists = axes.iter().filter_map(|axis| match &axis.values {
            super::Values::List(values) => Some(values.len()),
            _ => None,
        });
        let combinations = lists.fold(1_usize, usize::saturating_mul);
        let blocks = match design {
            Design::Saltelli => d + 2,
            Design::Morris => d + 1,
            _ => 1,
        };
        if n.saturating_mul(blocks).max(1).saturating_mul(combinations) > POINTS {
            return Err(PlanError::TooMany);
        }
        let units = match design {
            _ if d == 0 => Vec::new(),
            Design::Sobol if d > SOBOL_DIMENSIONS => return Err(PlanError::Dimensions),
            Design::Saltelli if 2 * d > SOBOL_DIMENSIONS => return Err(PlanError::Dimensions),
            Design::LatinHypercube => sampling::latin_hypercube(n, d, seed),
            Design::Random => sampling::random(n, d, seed),
            Design::Sobol => sampling::sobol(n, d, seed),
            Design::Saltelli => saltelli(n, d, seed),
            Design::Morris => morris(n, d, seed),
        };
        Ok(Plan { axes, design, samples: n, seed, units, combinations })
    }

    /// How many points it has.
    pub fn len(&self) -> usize {
        self.units.len().max(1) * self.combinations
    }

    /// Whether it has none; it never does.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values of a point, in the order of the axes. Samples change faster than lists.
    pub fn point(&self, i: usize) -> Vec<f64> {
        let samples = self.units.len().max(1);
        let (mut rest, sample) = (i / samples, self.units.get(i % samples));
        let mut unit = sample.map_or(&[][..], Vec::as_slice).iter();
        let mut point = vec![0.0; self.axes.len()];
        // The last list changes fastest.
        for (axis, x) in self.axes.iter().zip(&mut point).rev() {
            if let super::Values::List(values) = &axis.values {
                *x = values[rest % values.len()];
                rest /= values.len();
            }
        }
        for (axis, x) in self.axes.iter().zip(&mut point) {
            if !axis.is_listed() {
                *x = axis.quantile(unit.next().copied().unwrap_or(0.5));
            }
        }
        point
    }

    /// A point in the unit cube, of a plan without lists.
    pub(super) fn unit(&self, i: usize) -> &[f64] {
        self.units.get(i).map_or(&[], Vec::as_slice)
    }

    /// The points of shard i of n, counted from 1: disjoint, together all.
    pub fn shard(&self, i: usize, n: usize) -> Range<usize> {
        let n = n.max(1);
        let at = |k: usize| (self.len() as u128 * k as u128 / n as u128) as usize;
        at(i.saturating_sub(1))..at(i)
    }
}

/// A, B, then A with column k of B, for all k: each of n points.
fn saltelli(n: usize, d: usize, seed: u64) -> Vec<Vec<f64>> {
    let both = sampling::sobol(n, 2 * d, seed);
    let mut points: Vec<Vec<f64>> = both.iter().map(|point| point[..d].to_vec()).collect();
    points.extend(both.iter().map(|point| point[d..].to_vec()));
    for k in 0..d {
        points.extend(both.iter().map(|point| {
            let mut mixed = point[..d].to_vec();
            mixed[k] = point[d + k];
            mixed
        }));
    }
    points
}

/// n trajectories of d + 1 points, each of which moves one axis by Δ = p/(2(p − 1)) on a grid of p levels, in random order.
fn morris(n: usize, d: usize, seed: u64) -> Vec<Vec<f64>> {
    let delta = LEVELS as f64 / (2.0 * (LEVELS as f64 - 1.0));
    let random = sampling::random(n, 3 * d, seed);
    let mut points = Vec::new();
    for numbers in random {
        // Cells are in the middle of the levels' slices, so that quantiles of unbounded distributions stay finite.
        let mut base: Vec<f64> =
            numbers[..d].iter().map(|u| (u * (LEVELS / 2) as f64).floor() / (LEVELS as f64 - 1.0)).collect();
        let up: Vec<bool> = numbers[d..2 * d].iter().map(|u| *u < 0.5).collect();
        base.iter_mut().zip(&up).for_each(|(x, up)| *x += if *up { 0.0 } else { delta });
        let mut order: Vec<usize> = (0..d).collect();
        order.sort_by(|a, b| numbers[2 * d + a].total_cmp(&numbers[2 * d + b]));
        points.push(base.clone());
        for k in order {
            base[k] += if up[k] { delta } else { -delta };
            points.push(base.clone());
        }
    }
    points.iter_mut().flatten().for_each(|u| *u = 0.005 + 0.99 * *u);
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axes(texts: &[&str]) -> Vec<Axis> {
        texts.iter().map(|text| Axis::parse(text).unwrap()).collect()
    }

    #[test]
    fn lists_combine_and_samples_fill_them() {
        let plan = Plan::new(axes(&["a=1,2", "b=0:1", "c=1:3:3"]), Design::Sobol, Some(4), 0).unwrap();
        assert_eq!(plan.len(), 24);
        let first: Vec<(f64, f64)> = (0..24).map(|i| (plan.point(i)[0], plan.point(i)[2])).collect();
        assert_eq!(&first[..5], &[(1.0, 1.0), (1.0, 1.0), (1.0, 1.0), (1.0, 1.0), (1.0, 2.0)]);
        assert_eq!(plan.point(0)[1], plan.point(20)[1]);
        let parts: Vec<usize> = (1..=7).flat_map(|i| plan.shard(i, 7)).collect();
        assert_eq!(parts, (0..24).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_no_plan_is_named() {
        let wrong = |texts: &[&str], design, samples| Plan::new(axes(texts), design, samples, 0).unwrap_err();
        assert_eq!(wrong(&[], Design::Sobol, None), PlanError::Empty);
        assert_eq!(wrong(&["a=1", "a=2"], Design::Sobol, None), PlanError::Twice("a".into()));
        assert_eq!(wrong(&["a=1:2"], Design::Sobol, None), PlanError::Samples("a".into()));
        assert_eq!(wrong(&["a=1:2:3"], Design::Sobol, Some(3)), PlanError::Idle);
        assert_eq!(wrong(&["a=1,2"], Design::Morris, Some(3)), PlanError::Listed("a".into()));
        assert_eq!(wrong(&["a=1:2:1000000", "b=1:2:1000000"], Design::Sobol, None), PlanError::TooMany);
    }

    #[test]
    fn trajectories_of_morris_move_one_axis_at_a_time() {
        let plan = Plan::new(axes(&["a=0:1", "b=0:1", "c=0:1"]), Design::Morris, Some(5), 3).unwrap();
        assert_eq!(plan.len(), 20);
        for trajectory in 0..5 {
            let mut moved = Vec::new();
            for step in 0..3 {
                let (p, q) = (plan.point(4 * trajectory + step), plan.point(4 * trajectory + step + 1));
                let changed: Vec<usize> = (0..3).filter(|&k| p[k] != q[k]).collect();
                assert_eq!(changed.len(), 1);
                assert!(((p[changed[0]] - q[changed[0]]).abs() - 0.99 * 2.0 / 3.0).abs() < 1e-12);
                moved.extend(changed);
            }
            moved.sort_unstable();
            assert_eq!(moved, [0, 1, 2]);
        }
    }
}
