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
        /// Array of factors, `stride` side by side for each of the `width`.
        left: u32,
        /// The same; then [`BLOCK`] zeros.
        right: u32,
        /// How many factors each, one of [`WIDTHS`].
        width: u32,
        /// Distance from a factor to the next.
        stride: u32,
        /// [row, from, len, at]: for i < len, to[at + i] += Σ_k left[k·stride + row] right[k·stride + from + i].
        table: Vec<[u32; 4]>,
        /// What is added to.
        to: Memory,
    },
    /// to += Σ ± a b, the same sums of products for all numbers of rows.
    Bilinear {
        /// Array of rows.
        a: u32,
        /// Array of rows.
        b: u32,
        /// Numbers of a row over [`BLOCK`].
        blocks: u32,
        /// [row, from, middle, end]: to_row += Σ a_j b_k over the terms from `from` to `middle`, less those from there to `end`.
        rows: Vec<[u32; 4]>,
        /// [j, k]
        terms: Vec<[u32; 2]>,
        /// Array that is added to.
        to: u32,
    },
    /// to = −a b.
    MinusProduct {
        /// Matrix of `rows` rows.
        a: Memory,
        /// Array, matrix of `rows` rows.
        b: u32,
        /// Rows of all three.
        rows: u32,
        /// [first, count, from, end]: `count` columns of b from `first` on, with entries in the rows `table[from..end]`. Each column once.
        groups: Vec<[u32; 4]>,
        /// Rows of the entries of b that are not zero in all columns of a group, group by group.
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
        /// For each velocity the end of those it moves, itself the first.
        tree: Vec<u32>,
        /// As those of [`Loop::MinusProduct`], for a matrix with entries where the row moves the column.
        groups: Vec<[u32; 4]>,
        /// See `groups`.
        table: Vec<u32>,
        /// The result.
        to: u32,
    },
}

/// How many values the runtime sums at once: it reads whole blocks.
pub const BLOCK: usize = 8;

/// How many factors an entry may have.
pub const WIDTHS: [usize; 3] = [6, 9, 15];

/// Length of the scratch of [`Loop::Inverse`].
pub const fn inverse_scratch(n: usize) -> usize {
    6 * n + BLOCK + 2 * (n * n + BLOCK)
}

/// Groups and table of columns with entries where `there` says so. Columns side by side are one group if that adds no more than a third to
/// their entries.
pub fn column_groups(there: &[bool], rows: usize) -> (Vec<[u32; 4]>, Vec<u32>) {
    let (mut groups, mut table): (Vec<[u32; 4]>, Vec<u32>) = (Vec::new(), Vec::new());
    let columns: Vec<&[bool]> = there.chunks(rows.max(1)).collect();
    let count = |column: &[bool]| column.iter().filter(|&&there| there).count();
    let mut first = 0;
    while first < columns.len() {
        let mut union = columns[first].to_vec();
        let (mut entries, mut len) = (count(&union), 1);
        while let Some(next) = columns.get(first + len) {
            let wider: Vec<bool> = union.iter().zip(*next).map(|(&a, &b)| a || b).collect();
            let more = entries + count(next);
            if 3 * count(&wider) * (len + 1) > 4 * more {
                break;
            }
            (union, entries, len) = (wider, more, len + 1);
        }
        let from = table.len() as u32;
        table.extend((0..).zip(&union).filter(|&(_, &there)| there).map(|(k, _)| k));
        groups.push([first as u32, len as u32, from, table.len() as u32]);
        first += len;
    }
    (groups, table)
}

/// How many products of entries groups add up to, per row.
fn entries(groups: &[[u32; 4]]) -> usize {
    groups.iter().map(|&[_, count, from, end]| (count * (end - from)) as usize).sum()
}

/// Whether groups have each of the columns once, and their entries lie within a table of rows below `rows`.
fn fit(groups: &[[u32; 4]], table: &[u32], rows: usize, columns: usize) -> bool {
    let mut next = 0;
    let inside = groups.iter().all(|&[first, count, from, end]| {
        let follows = first as usize == next && count > 0;
        next += count as usize;
        follows && from <= end && end as usize <= table.len()
    });
    inside && next == columns && table.iter().all(|&k| (k as usize) < rows)
}

/// to = −a b; a is by columns.
fn minus_product<N: Number>(groups: &[[u32; 4]], table: &[u32], a: &[N], b: &[N], rows: usize, to: &mut [N]) {
    for &[first, count, from, end] in groups {
        let entries = &table[from as usize..end as usize];
        for column in first as usize..(first + count) as usize {
            for i in 0..rows {
                let minus = |sum, &k: &u32| (-b[column * rows + k as usize]) * a[k as usize * rows + i] + sum;
                to[column * rows + i] = entries.iter().fold(N::constant(0.0), minus);
            }
        }
    }
}

impl Loop {
    /// The function's name in the runtime.
    pub fn name(&self) -> &'static str {
        match self {
            Loop::Products { .. } => "products",
            Loop::Bilinear { .. } => "bilinear",
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
            Loop::Bilinear { blocks, terms, .. } => terms.len() * *blocks as usize * BLOCK,
            Loop::MinusProduct { rows, groups, .. } => entries(groups) * *rows as usize,
            Loop::Inverse { tree, groups, .. } => {
                let inward = tree.iter().zip(0..).map(|(&end, i)| 12 * (end as usize - i)).sum::<usize>();
                inward + entries(groups) * tree.len()
            }
        }
    }

    /// The arrays it reads, the scratch included.
    pub fn reads(&self) -> Vec<Memory> {
        match *self {
            Loop::Products { left: a, right: b, .. } | Loop::Bilinear { a, b, .. } => {
                vec![Memory::Array(a), Memory::Array(b)]
            }
            Loop::MinusProduct { a, b, .. } => vec![a, Memory::Array(b)],
            Loop::Inverse { s, u, d, scratch, .. } => [s, u, d, scratch].map(Memory::Array).to_vec(),
        }
    }

    /// Where it writes.
    pub fn writes(&self) -> Memory {
        match *self {
            Loop::Products { to, .. } => to,
            Loop::Bilinear { to, .. } => Memory::Array(to),
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
                let last = (width.max(1) - 1) * stride;
                let inside = |[row, from, count, at]: [usize; 4]| {
                    last + row < array(*left)
                        && last + from + count.next_multiple_of(BLOCK) <= array(*right)
                        && at + count <= target
                };
                WIDTHS.contains(&width) && table.iter().map(|run| run.map(|x| x as usize)).all(inside)
            }
            Loop::Bilinear { a, b, blocks, rows, terms, .. } => {
                let inside = |row: u32, len: usize| (row as usize + 1) * *blocks as usize * BLOCK <= len;
                let sums = |&[row, from, middle, end]: &[u32; 4]| {
                    inside(row, target) && from <= middle && middle <= end && end as usize <= terms.len()
                };
                rows.iter().all(sums)
                    && terms.iter().all(|&[j, k]| inside(j, array(*a)) && inside(k, array(*b)))
            }
            Loop::MinusProduct { a, b, rows, groups, table, .. } => {
                let rows = *rows as usize;
                let columns = target / rows.max(1);
                fit(groups, table, rows, columns)
                    && rows * rows <= len(*a).unwrap_or(0)
                    && columns * rows <= array(*b)
            }
            Loop::Inverse { s, u, d, scratch, tree, groups, table, .. } => {
                let n = tree.len();
                let sizes = [array(*s) / 6, array(*u) / 6, array(*d)];
                sizes.iter().all(|&size| size >= n)
                    && array(*scratch) >= inverse_scratch(n)
                    && target == n * n
                    && fit(groups, table, n, n)
                    && tree.iter().enumerate().all(|(i, &end)| (i + 1..=n).contains(&(end as usize)))
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
                        let product = |k: usize| left[k * stride + row] * right[k * stride + from + i];
                        to[at + i] =
                            to[at + i] + (0..width).fold(N::constant(0.0), |sum, k| product(k) + sum);
                    }
                }
            }
            Loop::Bilinear { a, b, blocks, rows, terms, .. } => {
                let (a, b) = (read(Memory::Array(*a)), read(Memory::Array(*b)));
                let stride = *blocks as usize * BLOCK;
                for &[row, from, middle, end] in rows {
                    for (i, to) in to[row as usize * stride..][..stride].iter_mut().enumerate() {
                        let factors =
                            |&[j, k]: &[u32; 2]| (a[j as usize * stride + i], b[k as usize * stride + i]);
                        let [from, middle, end] = [from, middle, end].map(|x| x as usize);
                        for (a, b) in terms[from..middle].iter().map(factors) {
                            *to = a * b + *to;
                        }
                        for (a, b) in terms[middle..end].iter().map(factors) {
                            *to = (-a) * b + *to;
                        }
                    }
                }
            }
            Loop::MinusProduct { a, b, rows, groups, table, .. } => {
                let (a, b) = (read(*a), read(Memory::Array(*b)));
                minus_product(groups, table, &a, &b, *rows as usize, to);
            }
            Loop::Inverse { s, u, d, tree, groups, table, .. } => {
                let [s, u, d] = [s, u, d].map(|&array| read(Memory::Array(array)));
                let (scaled, back) = inverse_factors(tree, &s, &u, &d);
                let n = tree.len();
                minus_product(groups, table, &scaled, &back, n, to);
                (0..n).for_each(|j| (0..j).for_each(|i| to[j * n + i] = to[i * n + j]));
            }
        }
    }
}

/// W D⁻¹ and −Wᵀ by columns; the equations stand at the runtime's `inverse`.
fn inverse_factors<N: Number>(tree: &[u32], s: &[N], u: &[N], d: &[N]) -> (Vec<N>, Vec<N>) {
    let n = tree.len();
    let zero = N::constant(0.0);
    let (mut f, mut scaled, mut back) = (vec![zero; 6 * n], vec![zero; n * n], vec![zero; n * n]);
    for (i, &end) in tree.iter().enumerate().rev() {
        for j in i..end as usize {
            let along = |k: [usize; 3]| k.iter().fold(zero, |sum, &k| s[6 * i + k] * f[k * n + j] + sum);
            let minus = if i == j { -N::constant(1.0) } else { along([0, 1, 2]) + along([3, 4, 5]) };
            let share = -(d[i] * minus);
            for k in 0..6 {
                f[k * n + j] = u[6 * i + k] * share + f[k * n + j];
            }
            scaled[i * n + j] = share;
            back[j * n + i] = minus;
        }
    }
    (scaled, back)
}
