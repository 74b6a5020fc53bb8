//! Elimination in a given order, on the graph.
//!
//! A = L U with the pivots (r_k, c_k): l_ik = a_ic / a_rc, a_ij −= l_ik a_rj. Solves are forward substitution with
//! L and back-substitution with U; transposed solves use Uᵀ and Lᵀ.

use super::{Order, SparseMatrix};
use crate::graph::{ExprId, Graph};
use std::collections::{BTreeMap, BTreeSet};

/// One step of the elimination.
#[derive(Clone, Debug)]
struct Step {
    row: usize,
    column: usize,
    pivot: ExprId,
    /// 1/a_rc
    inverse: ExprId,
    /// l by row
    lower: Vec<(usize, ExprId)>,
    /// a_rj by column
    upper: Vec<(usize, ExprId)>,
}

/// A factored matrix.
#[derive(Clone, Debug)]
pub struct Factors {
    steps: Vec<Step>,
}

/// Factors a matrix.
pub fn factor(g: &mut Graph, matrix: &SparseMatrix, order: &Order) -> Factors {
    let mut entries = matrix.entries.clone();
    let symmetric =
        order.is_diagonal() && entries.iter().all(|(&(i, j), entry)| entries.get(&(j, i)) == Some(entry));
    let mut rows: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); matrix.n];
    let mut columns: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); matrix.n];
    for &(i, j) in entries.keys() {
        rows[i].insert(j);
        columns[j].insert(i);
    }
    let mut steps = Vec::with_capacity(matrix.n);
    for &(r, c) in &order.pivots {
        rows[r].remove(&c);
        columns[c].remove(&r);
        let pivot = entries.remove(&(r, c)).unwrap_or_else(|| g.zero());
        let one = g.one();
        let inverse = g.div(one, pivot);
        let upper: Vec<(usize, ExprId)> =
            rows[r].iter().filter_map(|&j| entries.remove(&(r, j)).map(|u| (j, u))).collect();
        let mut lower = Vec::with_capacity(columns[c].len());
        for &i in &columns[c] {
            let Some(entry) = entries.remove(&(i, c)) else { continue };
            lower.push((i, g.mul(entry, inverse)));
        }
        for &(i, l) in &lower {
            rows[i].remove(&c);
            for &(j, u) in &upper {
                if symmetric && j > i {
                    continue;
                }
                let change = g.mul(l, u);
                let entry = match entries.get(&(i, j)) {
                    Some(&before) => g.sub(before, change),
                    None => g.neg(change),
                };
                entries.insert((i, j), entry);
                rows[i].insert(j);
                columns[j].insert(i);
                if symmetric {
                    entries.insert((j, i), entry);
                    rows[j].insert(i);
                    columns[i].insert(j);
                }
            }
        }
        for &(j, _) in &upper {
            columns[j].remove(&r);
        }
        steps.push(Step { row: r, column: c, pivot, inverse, lower, upper });
    }
    Factors { steps }
}

impl Factors {
    /// How many unknowns there are.
    pub fn size(&self) -> usize {
        self.steps.len()
    }

    /// The pivots, in order.
    pub fn pivots(&self) -> Vec<ExprId> {
        self.steps.iter().map(|step| step.pivot).collect()
    }

    /// The columns of the pivots, in order.
    pub fn columns(&self) -> Vec<u32> {
        self.steps.iter().map(|step| step.column as u32).collect()
    }

    /// All values of the factors: for each step 1/pivot, then l, then u.
    pub fn values(&self) -> Vec<ExprId> {
        let mut values = Vec::new();
        for step in &self.steps {
            values.push(step.inverse);
            values.extend(step.lower.iter().map(|&(_, l)| l));
            values.extend(step.upper.iter().map(|&(_, u)| u));
        }
        values
    }

    /// The same factors with other numbers, in the order of [`Factors::values`].
    pub fn with_values(&self, values: &[ExprId]) -> Factors {
        let mut next = values.iter().copied();
        let mut take = |old: ExprId| next.next().unwrap_or(old);
        let mut steps = self.steps.clone();
        for step in &mut steps {
            step.inverse = take(step.inverse);
            step.lower.iter_mut().for_each(|(_, l)| *l = take(*l));
            step.upper.iter_mut().for_each(|(_, u)| *u = take(*u));
        }
        Factors { steps }
    }

    /// A x = rhs
    pub fn solve(&self, g: &mut Graph, rhs: Vec<ExprId>) -> Vec<ExprId> {
        let x = self.solve_columns(g, rhs.into_iter().map(|value| vec![value]).collect());
        x.into_iter().flatten().collect()
    }

    /// A X = rhs by rows: a row has a value for each column. The same operation stands side by side for all columns, so that they run side by
    /// side.
    pub fn solve_columns(&self, g: &mut Graph, mut rhs: Vec<Vec<ExprId>>) -> Vec<Vec<ExprId>> {
        // L Y = rhs
        for step in &self.steps {
            for &(i, l) in &step.lower {
                for column in 0..rhs[i].len() {
                    let change = g.mul(l, rhs[step.row][column]);
                    rhs[i][column] = g.sub(rhs[i][column], change);
                }
            }
        }
        // U X = Y
        let mut x = vec![Vec::new(); rhs.len()];
        for step in self.steps.iter().rev() {
            let mut sums = std::mem::take(&mut rhs[step.row]);
            for &(j, u) in &step.upper {
                for (sum, &x) in sums.iter_mut().zip(&x[j]) {
                    let change = g.mul(u, x);
                    *sum = g.sub(*sum, change);
                }
            }
            x[step.column] = sums.into_iter().map(|sum| g.mul(sum, step.inverse)).collect();
        }
        x
    }

    /// Aᵀ x = rhs
    pub fn solve_transposed(&self, g: &mut Graph, rhs: Vec<ExprId>) -> Vec<ExprId> {
        let x = self.solve_transposed_columns(g, rhs.into_iter().map(|value| vec![value]).collect());
        x.into_iter().flatten().collect()
    }

    /// Aᵀ X = rhs by rows, as [`Factors::solve_columns`].
    pub fn solve_transposed_columns(&self, g: &mut Graph, mut rhs: Vec<Vec<ExprId>>) -> Vec<Vec<ExprId>> {
        // Uᵀ Y = rhs
        let mut y = BTreeMap::new();
        for step in &self.steps {
            let values = std::mem::take(&mut rhs[step.column]).into_iter();
            let values: Vec<ExprId> = values.map(|value| g.mul(value, step.inverse)).collect();
            for &(j, u) in &step.upper {
                for (sum, &value) in rhs[j].iter_mut().zip(&values) {
                    let change = g.mul(u, value);
                    *sum = g.sub(*sum, change);
                }
            }
            y.insert(step.row, values);
        }
        // Lᵀ X = Y
        let mut x = vec![Vec::new(); rhs.len()];
        for step in self.steps.iter().rev() {
            let mut sums = y.remove(&step.row).unwrap_or_default();
            for &(i, l) in &step.lower {
                for (sum, &x) in sums.iter_mut().zip(&x[i]) {
                    let change = g.mul(l, x);
                    *sum = g.sub(*sum, change);
                }
            }
            x[step.row] = sums;
        }
        x
    }
}

#[cfg(test)]
mod tests {
    use super::super::choose_order;
    use super::*;
    use crate::graph::Interpreter;

    /// A sparse matrix of pseudorandom numbers; solutions and transposed solutions are compared with products.
    fn check(n: usize, symmetric: bool) {
        let mut g = Graph::new();
        let mut numbers: BTreeMap<(usize, usize), f64> = BTreeMap::new();
        for i in 0..n {
            numbers.insert((i, i), if i % 3 == 2 { -0.01 } else { 1.0 + i as f64 * 0.1 });
            for j in [(i * 5 + 1) % n, (i * 3 + 2) % n] {
                if i != j {
                    numbers.insert((i, j), ((i * 7 + j * 13) % 11) as f64 * 0.1 - 0.45);
                    if symmetric {
                        let entry = numbers[&(i, j)];
                        numbers.insert((j, i), entry);
                    }
                }
            }
        }
        let order = choose_order(n, &numbers.keys().copied().collect(), &[numbers.clone()]).expect("regular");
        let symbols: BTreeMap<(usize, usize), u32> =
            numbers.keys().enumerate().map(|(k, &place)| (place, k as u32)).collect();
        let entries = numbers.keys().map(|&(i, j)| {
            let place = if symmetric && i > j { (j, i) } else { (i, j) };
            ((i, j), g.symbol(crate::symbols::Group::Free, symbols[&place]))
        });
        let matrix = SparseMatrix { n, entries: entries.collect() };
        let factors = factor(&mut g, &matrix, &order);
        let rhs: Vec<ExprId> = (0..n).map(|k| g.constant(1.0 + k as f64)).collect();
        let (x, y) = (factors.solve(&mut g, rhs.clone()), factors.solve_transposed(&mut g, rhs));
        let mut interpreter = Interpreter::<f64>::new();
        for (place, &k) in &symbols {
            interpreter.set(crate::symbols::Group::Free, k, numbers[place]);
        }
        let (x, y) = (interpreter.evaluate(&g, &x), interpreter.evaluate(&g, &y));
        for i in 0..n {
            let across: f64 = (0..n).map(|j| numbers.get(&(i, j)).unwrap_or(&0.0) * x[j]).sum();
            let down: f64 = (0..n).map(|j| numbers.get(&(j, i)).unwrap_or(&0.0) * y[j]).sum();
            // A few thousand units in the last place: pivots may be a hundredth of their column.
            assert!((across - 1.0 - i as f64).abs() < 1e-11 * n as f64, "row {i}: {across}");
            assert!((down - 1.0 - i as f64).abs() < 1e-11 * n as f64, "column {i}: {down}");
        }
    }

    #[test]
    fn solutions_solve() {
        for n in [1, 2, 5, 12, 30] {
            check(n, false);
            check(n, true);
        }
    }

    #[test]
    fn symmetry_halves_the_work() {
        let count = |same: bool| {
            let mut g = Graph::new();
            let n = 6;
            let entries = (0..n).flat_map(|i| (0..n).map(move |j| (i, j)));
            let entries: Vec<_> = entries
                .map(|(i, j)| {
                    let (a, b) = if same && i > j { (j, i) } else { (i, j) };
                    ((i, j), g.symbol(crate::symbols::Group::Free, (a * n + b) as u32))
                })
                .collect();
            let matrix = SparseMatrix { n, entries: entries.into_iter().collect() };
            let order = Order { pivots: (0..n).map(|k| (k, k)).collect() };
            let before = g.len();
            factor(&mut g, &matrix, &order);
            g.len() - before
        };
        assert!(count(true) * 10 < count(false) * 7);
    }
}
