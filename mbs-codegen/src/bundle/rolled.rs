//! Loops over constant tables: the part of a bundle that grows with the square of the number of joints, if flat code would be too long.
//!
//! A bundle with loops begins with arrays and results full of zeros; its statements write what is not zero; then its loops run, one after
//! the other. Arrays are the first slots of the workspace. Matrices are by columns.
//!
//! The runtime's functions of the same names do the same operations in the same order, so that both give the same bits.

use crate::graph::ExprId;
use crate::graph::number::Number;

/// The part of a bundle that is computed in loops.
#[derive(Clone, Debug, Default)]
pub struct Rolled {
    /// Arrays that loops read, as expressions; zeros are not written.
    pub arrays: Vec<Vec<ExprId>>,
    /// The loops, which run last.
    pub loops: Vec<Loop>,
}

impl Rolled {
    /// Adds an array; returns its index.
    pub fn array(&mut self, expressions: Vec<ExprId>) -> u32 {
        self.arrays.push(expressions);
        self.arrays.len() as u32 - 1
    }
}

/// Memory that a loop writes, or that it reads from earlier loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// An array of the bundle.
    Array(u32),
    /// A result.
    Result(u32),
}

/// A loop. Arrays are counted in the order of the bundle.
#[derive(Clone, Debug, PartialEq)]
pub enum Loop {
    /// to += left · right for runs of entries.
    Products {
        /// Array of factors, `width` side by side for each row.
        left: u32,
        /// Array of factors, `stride` side by side for each of the `width`; then [`BLOCK`] zeros.
        right: u32,
        /// How many factors each.
        width: u32,
        /// Distance in `right` from a factor to the next.
        stride: u32,
        /// [row, from, len, at]: for i < len, to[at + i] += Σ_k left[row·width + k] right[k·stride + from + i].
        table: Vec<[u32; 4]>,
        /// What is added to.
        to: Memory,
    },
    /// to = −a b.
    MinusProduct {
        /// Matrix of `rows` rows.
        a: Memory,
        /// Array, matrix of `rows` rows.
        b: u32,
        /// Rows of all three.
        rows: u32,
        /// For each column of b, the first of its entries in the table; then the end.
        starts: Vec<u32>,
        /// Rows of the entries of b that are not zero, column by column.
        table: Vec<u32>,
        /// The result.
        to: u32,
    },
    /// to = M⁻¹ of a tree, from what articulated bodies leave behind.
    Inverse {
        /// Array of columns S, six numbers each.
        s: u32,
        /// Array of U = M^A S.
        u: u32,
        /// Array of 1/D, D = Sᵀ U.
        d: u32,
        /// Array of zeros, [`inverse_scratch`] long.
        scratch: u32,
        /// [1 + the velocity before it on the way to ground or 0, end of those it moves], for each velocity.
        tree: Vec<[u32; 2]>,
        /// The result.
        to: u32,
    },
}

/// How many values the runtime sums at once: it reads whole blocks.
pub const BLOCK: usize = 8;

/// How many columns of an inverse the runtime finishes at once.
const COLUMNS: usize = 8;

/// Length of the scratch of [`Loop::Inverse`].
pub const fn inverse_scratch(n: usize) -> usize {
    6 * n + BLOCK + 6 * COLUMNS * n
}

impl Loop {
    /// The function's name in the runtime.
    pub fn name(&self) -> &'static str {
        match self {
            Loop::Products { .. } => "products",
            Loop::MinusProduct { .. } => "minus_product",
            Loop::Inverse { .. } => "inverse",
        }
    }

    /// How many products are added up.
    pub fn operations(&self) -> usize {
        match self {
            Loop::Products { width, table, .. } => {
                table.iter().map(|&[_, _, len, _]| (len * width) as usize).sum()
            }
            Loop::MinusProduct { rows, table, .. } => table.len() * *rows as usize,
            Loop::Inverse { tree, .. } => {
                let inward =
                    tree.iter().zip(0..).map(|(&[_, end], i)| 12 * (end as usize - i)).sum::<usize>();
                inward + 12 * tree.len() * (tree.len() + 1) / 2
            }
        }
    }

    /// The arrays it reads, the scratch included.
    pub fn reads(&self) -> Vec<Memory> {
        match *self {
            Loop::Products { left, right, .. } => vec![Memory::Array(left), Memory::Array(right)],
            Loop::MinusProduct { a, b, .. } => vec![a, Memory::Array(b)],
            Loop::Inverse { s, u, d, scratch, .. } => [s, u, d, scratch].map(Memory::Array).to_vec(),
        }
    }

    /// Where it writes.
    pub fn writes(&self) -> Memory {
        match *self {
            Loop::Products { to, .. } => to,
            Loop::MinusProduct { to, .. } | Loop::Inverse { to, .. } => Memory::Result(to),
        }
    }

    /// Whether all places lie within memory of these lengths.
    pub(super) fn fits(&self, len: impl Fn(Memory) -> Option<usize>) -> bool {
        let array = |array: u32| len(Memory::Array(array)).unwrap_or(0);
        let target = len(self.writes()).unwrap_or(0);
        match self {
            Loop::Products { left, right, width, stride, table, .. } => {
                let (width, stride) = (*width as usize, *stride as usize);
                table.iter().map(|run| run.map(|x| x as usize)).all(|[row, from, count, at]| {
                    (row + 1) * width <= array(*left)
                        && (width.max(1) - 1) * stride + from + count.next_multiple_of(BLOCK) <= array(*right)
                        && at + count <= target
                })
            }
            Loop::MinusProduct { a, b, rows, starts, table, .. } => {
                let (rows, columns) = (*rows as usize, starts.len().saturating_sub(1));
                starts.is_sorted()
                    && starts.last().is_none_or(|&end| end as usize <= table.len())
                    && table.iter().all(|&k| (k as usize) < rows)
                    && rows * rows <= len(*a).unwrap_or(0)
                    && columns * rows <= array(*b).min(target)
            }
            Loop::Inverse { s, u, d, scratch, tree, .. } => {
                let n = tree.len();
                let sizes = [array(*s) / 6, array(*u) / 6, array(*d)];
                sizes.iter().all(|&size| size >= n)
                    && array(*scratch) >= inverse_scratch(n)
                    && target >= n * n
                    && tree.iter().enumerate().all(|(i, &[before, end])| {
                        before as usize <= i && (i + 1..=n).contains(&(end as usize))
                    })
            }
        }
    }

    /// Runs it. What it writes is apart from what it reads.
    pub(super) fn run<N: Number>(&self, read: impl Fn(Memory) -> Vec<N>, to: &mut [N]) {
        match self {
            Loop::Products { left, right, width, stride, table, .. } => {
                let (left, right) = (read(Memory::Array(*left)), read(Memory::Array(*right)));
                let (width, stride) = (*width as usize, *stride as usize);
                for [row, from, len, at] in table.iter().map(|run| run.map(|x| x as usize)) {
                    for i in 0..len {
                        let product = |k: usize| left[row * width + k] * right[k * stride + from + i];
                        to[at + i] =
                            to[at + i] + (0..width).fold(N::constant(0.0), |sum, k| product(k) + sum);
                    }
                }
            }
            Loop::MinusProduct { a, b, rows, starts, table, .. } => {
                let (a, b) = (read(*a), read(Memory::Array(*b)));
                let rows = *rows as usize;
                for (column, ends) in starts.windows(2).enumerate() {
                    let entries = &table[ends[0] as usize..ends[1] as usize];
                    for i in 0..rows {
                        let minus =
                            |sum, &k: &u32| (-b[column * rows + k as usize]) * a[k as usize * rows + i] + sum;
                        to[column * rows + i] = entries.iter().fold(N::constant(0.0), minus);
                    }
                }
            }
            Loop::Inverse { s, u, d, tree, .. } => {
                let [s, u, d] = [s, u, d].map(|&array| read(Memory::Array(array)));
                inverse(tree, &s, &u, &d, to);
            }
        }
    }
}

/// X = M⁻¹; the equations stand at the runtime's function.
fn inverse<N: Number>(tree: &[[u32; 2]], s: &[N], u: &[N], d: &[N], x: &mut [N]) {
    let n = tree.len();
    let zero = N::constant(0.0);
    let mut f = vec![zero; 6 * n];
    for (i, &[_, end]) in tree.iter().enumerate().rev() {
        x[i * n + i] = d[i];
        for j in i + 1..end as usize {
            let sum = (0..6).fold(zero, |sum, k| (-(d[i] * s[6 * i + k])) * f[k * n + j] + sum);
            x[i * n + j] = x[i * n + j] + sum;
        }
        for k in 0..6 {
            for j in i..end as usize {
                f[k * n + j] = u[6 * i + k] * x[i * n + j] + f[k * n + j];
            }
        }
    }
    for j in 0..n {
        let mut a = vec![[zero; 6]; n];
        for i in 0..=j {
            let carried = tree[i][0].checked_sub(1).map_or([zero; 6], |parent| a[parent as usize]);
            let along = |k: [usize; 3]| k.iter().fold(zero, |sum, &k| u[6 * i + k] * carried[k] + sum);
            let value = (-d[i]) * along([0, 1, 2]) + x[i * n + j];
            let value = (-d[i]) * along([3, 4, 5]) + value;
            a[i] = std::array::from_fn(|k| s[6 * i + k] * value + carried[k]);
            x[i * n + j] = value;
            x[j * n + i] = value;
        }
    }
}
