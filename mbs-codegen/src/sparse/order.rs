//! Elimination order: pivots of least fill (Markowitz) among those that are large enough in every sample.
//!
//! The samples are scaled first so that entries of different units compare: row and column k by 1/√a_kk, and
//! where the diagonal is not positive (the rows of constraints, coordinates without inertia) by the entry that elimination of
//! the others would produce. A pivot must reach a fraction [`THRESHOLD`] of the largest entry left in its column, in
//! every sample. Ties go to the diagonal, then to the first in order.

use std::collections::{BTreeMap, BTreeSet};

/// A matrix in numbers.
pub type Sample = BTreeMap<(usize, usize), f64>;

/// The smallest accepted pivot, relative to the largest entry of its column.
const THRESHOLD: f64 = 1e-2;

/// Pivots (row, column), in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The pivots.
    pub pivots: Vec<(usize, usize)>,
}

impl Order {
    /// Whether every pivot is on the diagonal.
    pub fn is_diagonal(&self) -> bool {
        self.pivots.iter().all(|&(row, column)| row == column)
    }
}

/// The order for a matrix of n rows. `None` if all samples are singular: all remaining pivots
/// are zero.
pub fn choose_order(n: usize, pattern: &BTreeSet<(usize, usize)>, samples: &[Sample]) -> Option<Order> {
    // Samples that are not finite are ignored; without any sample the pattern alone decides.
    let finite = samples.iter().filter(|sample| sample.values().all(|x| x.is_finite()));
    let mut samples: Vec<Numeric> = finite.map(|s| Numeric::scaled(n, pattern, s)).collect();
    let mut rows: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); n];
    let mut columns: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); n];
    for &(i, j) in pattern {
        rows[i].insert(j);
        columns[j].insert(i);
    }
    let mut open: BTreeSet<usize> = (0..n).collect(); // columns without a pivot yet
    let mut pivots = Vec::with_capacity(n);
    while !open.is_empty() {
        let Some((r, c)) = best(&open, &rows, &columns, &samples) else {
            // Rounding, or a singular position, left nothing of a sample: the others decide.
            let all = samples.len();
            samples.retain(|s| open.iter().any(|&c| columns[c].iter().any(|&r| s.size(r, c) > 0.0)));
            if samples.is_empty() || samples.len() == all {
                return None;
            }
            continue;
        };
        pivots.push((r, c));
        let (across, down): (Vec<usize>, Vec<usize>) = (
            rows[r].iter().copied().filter(|&j| j != c).collect(),
            columns[c].iter().copied().filter(|&i| i != r).collect(),
        );
        for sample in &mut samples {
            sample.eliminate((r, c), &down, &across);
        }
        for &i in &down {
            rows[i].remove(&c);
            for &j in &across {
                rows[i].insert(j);
                columns[j].insert(i);
            }
        }
        for &j in &across {
            columns[j].remove(&r);
        }
        rows[r].clear();
        columns[c].clear();
        open.remove(&c);
    }
    Some(Order { pivots })
}

/// The pivot of least (row count − 1)(column count − 1) that is large enough; if there is none, the largest.
fn best(
    open: &BTreeSet<usize>,
    rows: &[BTreeSet<usize>],
    columns: &[BTreeSet<usize>],
    samples: &[Numeric],
) -> Option<(usize, usize)> {
    // (cost, off the diagonal, column, row)
    let mut found: Option<(usize, bool, usize, usize)> = None;
    let mut largest: Option<(f64, (usize, usize))> = None;
    for &c in open {
        let peaks: Vec<f64> =
            samples.iter().map(|s| columns[c].iter().map(|&r| s.size(r, c)).fold(0.0, f64::max)).collect();
        for &r in &columns[c] {
            let ratio = samples
                .iter()
                .zip(&peaks)
                .map(|(s, &peak)| if peak > 0.0 { s.size(r, c) / peak } else { 0.0 })
                .fold(f64::INFINITY, f64::min);
            if ratio >= THRESHOLD {
                let cost = (rows[r].len() - 1) * (columns[c].len() - 1);
                let key = (cost, r != c, c, r);
                if found.is_none_or(|best| key < best) {
                    found = Some(key);
                }
            } else if ratio > 0.0 && largest.is_none_or(|(best, _)| ratio > best) {
                largest = Some((ratio, (r, c)));
            }
        }
    }
    found.map(|(_, _, c, r)| (r, c)).or(largest.map(|(_, pivot)| pivot))
}

/// A scaled sample under elimination.
struct Numeric {
    entries: BTreeMap<(usize, usize), f64>,
}

impl Numeric {
    fn scaled(n: usize, pattern: &BTreeSet<(usize, usize)>, sample: &Sample) -> Numeric {
        let value = |i: usize, j: usize| sample.get(&(i, j)).copied().unwrap_or(0.0);
        // Infinite for coordinates without inertia.
        let inertial: Vec<f64> = (0..n).map(|k| value(k, k).max(0.0).sqrt().recip()).collect();
        let mut scale = inertial.clone();
        for k in (0..n).filter(|&k| !inertial[k].is_finite()) {
            let reached: f64 = pattern
                .range((k, 0)..(k + 1, 0))
                .filter(|&&(_, j)| inertial[j].is_finite())
                .map(|&(_, j)| (value(k, j) * inertial[j]).powi(2))
                .sum();
            scale[k] = reached.sqrt().recip();
        }
        // Of the others, from neighbours whose scale is known; no number without a unit takes part.
        loop {
            let unknown: Vec<usize> = (0..n).filter(|&k| !scale[k].is_finite()).collect();
            let mut found = false;
            for &k in &unknown {
                let largest = pattern
                    .range((k, 0)..(k + 1, 0))
                    .filter(|&&(_, j)| scale[j].is_finite())
                    .map(|&(_, j)| (value(k, j) * scale[j]).abs())
                    .fold(0.0, f64::max);
                if largest > 0.0 {
                    scale[k] = largest.recip();
                    found |= scale[k].is_finite();
                }
            }
            if !found {
                unknown.into_iter().for_each(|k| scale[k] = 1.0);
                break;
            }
        }
        let entries = pattern.iter().map(|&(i, j)| ((i, j), value(i, j) * scale[i] * scale[j])).collect();
        Numeric { entries }
    }

    fn size(&self, i: usize, j: usize) -> f64 {
        self.entries.get(&(i, j)).map_or(0.0, |x| x.abs())
    }

    fn eliminate(&mut self, (r, c): (usize, usize), down: &[usize], across: &[usize]) {
        let pivot = self.entries.get(&(r, c)).copied().unwrap_or(0.0);
        for &i in down {
            let factor = self.entries.remove(&(i, c)).unwrap_or(0.0) / pivot;
            for &j in across {
                let change = factor * self.entries.get(&(r, j)).copied().unwrap_or(0.0);
                *self.entries.entry((i, j)).or_insert(0.0) -= change;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order_of(n: usize, entries: &[((usize, usize), f64)]) -> Order {
        let sample: Sample = entries.iter().copied().collect();
        choose_order(n, &sample.keys().copied().collect(), &[sample]).expect("regular")
    }

    #[test]
    fn an_arrow_is_eliminated_from_its_shaft() {
        let mut entries = vec![((0, 0), 4.0)];
        for k in 1..6 {
            entries.extend([((k, k), 2.0), ((0, k), 1.0), ((k, 0), 1.0)]);
        }
        let order = order_of(6, &entries);
        assert!(order.is_diagonal());
        // The point comes when its elimination fills nothing.
        assert!(order.pivots.iter().position(|&p| p == (0, 0)) >= Some(4));
    }

    #[test]
    fn a_coordinate_without_inertia_pivots_on_its_constraint() {
        // [[1, 0, 1], [0, 0, 1], [1, 1, −ε]]: the middle coordinate has no mass
        let order = order_of(
            3,
            &[((0, 0), 1.0), ((0, 2), 1.0), ((1, 2), 1.0), ((2, 0), 1.0), ((2, 1), 1.0), ((2, 2), -1e-9)],
        );
        assert!(order.pivots.contains(&(2, 1)) && order.pivots.contains(&(1, 2)), "{order:?}");
    }

    #[test]
    fn inertias_are_pivots_however_small_the_diagonal_of_rows() {
        // Two masses on one row, the second light.
        for small in [1e-6, 1e-9] {
            let (m, e) = ([1.0, 1e-4], -small * (1.0 + 1e4));
            let order = order_of(
                3,
                &[
                    ((0, 0), m[0]),
                    ((1, 1), m[1]),
                    ((0, 2), 1.0),
                    ((2, 0), 1.0),
                    ((1, 2), 1.0),
                    ((2, 1), 1.0),
                    ((2, 2), e),
                ],
            );
            assert!(order.is_diagonal() && order.pivots[2] == (2, 2), "{order:?}");
        }
    }

    #[test]
    fn a_singular_sample_does_not_decide() {
        let matrix =
            |last: f64| -> Sample { [((0, 0), 1.0), ((0, 1), 1.0), ((1, 0), 1.0), ((1, 1), last)].into() };
        let pattern: BTreeSet<(usize, usize)> = matrix(2.0).keys().copied().collect();
        assert!(choose_order(2, &pattern, &[matrix(1.0), matrix(2.0)]).is_some());
        assert_eq!(choose_order(2, &pattern, &[matrix(1.0), matrix(1.0)]), None);
    }

    #[test]
    fn a_zero_matrix_has_no_order() {
        let sample: Sample = [((0, 0), 0.0)].into();
        assert_eq!(choose_order(1, &[(0, 0)].into(), &[sample]), None);
    }
}
