//! Bundles whose entries for pairs of joints are looped over: which arrays they need, which tables say where entries go.
//!
//! Velocities are numbered depth first, so what a velocity moves is one run of rows, and what moves it a few runs, one per branch.

use super::equations::{Equations, Results, at_origin};
use crate::bundle::rolled::{BLOCK, WIDTHS, column_groups, inverse_scratch};
use crate::bundle::{Loop, Memory, Rolled};
use crate::constrained::Sparse;
use crate::derivatives::direction::Weights;
use crate::derivatives::{Linearisation, PairFactors, PairTerms, Zeros};
use crate::dynamics::{articulated_body, body_inertias, composite_inertias, with_joint_forces};
use crate::elements::{Element, loads};
use crate::graph::{ExprId, Graph};
use crate::symbols::Group;
use crate::topology::Tree;
use hashbrown::HashMap;

/// Where entries for pairs lie in an n × n matrix.
struct PairTables {
    n: usize,
    /// Column b, rows of all a that b's group moves: [b, first, how many, place].
    moved: Vec<[u32; 4]>,
    /// Column a, rows of all b before a's group: the same for each run of them.
    before: Vec<[u32; 4]>,
    /// For each velocity the end of those it moves.
    ends: Vec<u32>,
}

impl PairTables {
    /// `groups` has for each velocity of a joint the first of those that move at once.
    fn new(tree: &Tree, groups: &[usize]) -> PairTables {
        let (n, parents) = (tree.nv, tree.v_parents());
        let mut ends: Vec<usize> = (1..=n).collect();
        for k in (0..n).rev() {
            if let Some(p) = parents[k] {
                ends[p] = ends[p].max(ends[k]);
            }
        }
        let (mut moved, mut before) = (Vec::new(), Vec::new());
        for (j, &first) in groups.iter().enumerate() {
            moved.push([j, first, ends[j] - first, j * n + first]);
            let ancestors: Vec<usize> = std::iter::successors(parents[first], |&k| parents[k]).collect();
            before.extend(runs(ancestors.into_iter().rev()).map(|(from, len)| [j, from, len, j * n + from]));
        }
        let small = |table: Vec<[usize; 4]>| table.into_iter().map(|run| run.map(|x| x as u32)).collect();
        let ends = ends.into_iter().map(|end| end as u32).collect();
        PairTables { n, moved: small(moved), before: small(before), ends }
    }

    /// Which entries have a row that moves the column.
    fn above(&self) -> Vec<bool> {
        let mut there = vec![false; self.n * self.n];
        for (i, &end) in self.ends.iter().enumerate() {
            (i..end as usize).for_each(|j| there[j * self.n + i] = true);
        }
        there
    }

    /// Which entries pairs have, or are not zero.
    fn entries(&self, g: &Graph, more: &[ExprId]) -> Vec<bool> {
        let mut there: Vec<bool> = more.iter().map(|&entry| !g.is(entry, 0.0)).collect();
        for &[.., len, at] in self.moved.iter().chain(&self.before) {
            there[at as usize..(at + len) as usize].fill(true);
        }
        there
    }
}

/// Runs of consecutive numbers among increasing ones: (first, how many).
fn runs(numbers: impl Iterator<Item = usize>) -> impl Iterator<Item = (usize, usize)> {
    let mut out: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match out.last_mut() {
            Some((first, len)) if *first + *len == number => *len += 1,
            _ => out.push((number, 1)),
        }
    }
    out.into_iter()
}

/// to = −a b with the entries of b that are there.
fn minus_product(a: Memory, b: u32, there: &[bool], rows: usize, to: u32) -> Loop {
    let (groups, table) = column_groups(there, rows);
    Loop::MinusProduct { a, b, rows: rows as u32, groups, table, to }
}

/// The first `width` numbers of each, side by side.
fn by_rows<const K: usize>(factors: &[[ExprId; K]], width: usize) -> Vec<ExprId> {
    factors.iter().flat_map(|row| row.iter().take(width).copied()).collect()
}

/// Numbers of a row of n values: whole blocks.
fn stride(n: usize) -> usize {
    n.next_multiple_of(BLOCK)
}

/// The first `width` numbers of all n, one number of all after the other in rows of [`stride`], and a block of zeros.
fn by_numbers<F: AsRef<[ExprId]>>(g: &mut Graph, factors: &[F], n: usize, width: usize) -> Vec<ExprId> {
    let zero = g.zero();
    let row = |k: usize| {
        let numbers = factors.iter().map(move |row| row.as_ref()[k]);
        numbers.chain(std::iter::repeat(zero)).take(stride(n))
    };
    (0..width).flat_map(row).chain([zero; BLOCK]).collect()
}

/// Whether a number is zero in all.
fn vanishes<F: AsRef<[ExprId]>>(g: &Graph, factors: &[F], k: usize) -> bool {
    factors.iter().all(|row| g.is(row.as_ref()[k], 0.0))
}

/// Length of the factors of entries with ancestors. Of what is carried, the first nine numbers have an inertial part.
fn width(g: &Graph, factors: &PairFactors) -> usize {
    let there = |&k: &usize| !vanishes(g, &factors.moving, k) && (k < 9 || !vanishes(g, &factors.carried, k));
    let least = (0..FACTORS).rev().find(there).map_or(0, |k| k + 1);
    WIDTHS.into_iter().find(|&width| width >= least).unwrap_or(FACTORS)
}

/// How many numbers the factors of entries with ancestors have.
const FACTORS: usize = WIDTHS[2];

/// Adds the inertial part of factors to an array that has the loads' part.
fn add_inertial(rolled: &mut Rolled, composites: u32, motions: u32, n: usize, terms: PairTerms, to: u32) {
    let PairTerms { rows, terms } = terms;
    let blocks = (stride(n) / BLOCK) as u32;
    rolled.loops.push(Loop::Bilinear { a: composites, b: motions, blocks, rows, terms, to });
}

/// Writes tangents as loops. What all share is stored once.
struct Tangents<'t> {
    tables: &'t PairTables,
    numbers: Vec<Vec<ExprId>>,
    /// Arrays of composites, of what is carried and of the columns.
    composites: u32,
    carried: u32,
    columns: u32,
}

impl Tangents<'_> {
    fn new<'t>(
        rolled: &mut Rolled,
        g: &mut Graph,
        tables: &'t PairTables,
        numbers: Vec<Vec<ExprId>>,
        all: &[PairFactors],
    ) -> Tangents<'t> {
        let (first, n) = (&all[0], tables.n);
        let widest = all.iter().map(|one| width(g, one)).max().unwrap_or(0).max(9);
        let composites = rolled.array(by_numbers(g, &numbers, n, numbers.first().map_or(0, Vec::len)));
        let columns = rolled.array(by_numbers(g, &first.columns, n, 6));
        let carried = rolled.array(by_numbers(g, &first.carried, n, widest));
        let zeros =
            Zeros { composites: &|k| vanishes(g, &numbers, k), motions: &|k| vanishes(g, &first.columns, k) };
        add_inertial(rolled, composites, columns, n, PairTerms::carried(&zeros), carried);
        Tangents { tables, numbers, composites, carried, columns }
    }

    /// Adds one to memory in which its loads are already, and which comes after its factors.
    fn add(
        &self,
        rolled: &mut Rolled,
        g: &mut Graph,
        factors: &PairFactors,
        memory: impl FnOnce(&mut Rolled) -> Memory,
    ) {
        let n = self.tables.n;
        let width = width(g, factors);
        let moves =
            (width..FACTORS).rev().find(|&k| !vanishes(g, &factors.moving, k)).map_or(width, |k| k + 1);
        let moving = rolled.array(by_numbers(g, &factors.moving, n, moves));
        let turned = rolled.array(by_numbers(g, &factors.turned, n, 6));
        let zeros = Zeros {
            composites: &|k| vanishes(g, &self.numbers, k),
            motions: &|k| vanishes(g, &factors.moving, k),
        };
        add_inertial(rolled, self.composites, moving, n, PairTerms::turned(&zeros), turned);
        let to = memory(rolled);
        let sides = [
            (moving, self.carried, width, &self.tables.moved),
            (turned, self.columns, 6, &self.tables.before),
        ];
        for (left, right, width, table) in sides {
            let (width, stride) = (width as u32, stride(n) as u32);
            rolled.loops.push(Loop::Products { left, right, width, stride, table: table.clone(), to });
        }
    }
}

impl Equations<'_, '_, '_> {
    pub(super) fn rolled_mass_matrix(&mut self) -> Results {
        let g = &mut *self.g;
        let mechanism = at_origin(g, self.mechanism);
        let inertias = body_inertias(g, &mechanism);
        let composites = composite_inertias(g, &mechanism, &inertias);
        let (mut columns, mut numbers) = (Vec::new(), Vec::new());
        for (position, &inertia) in mechanism.positions.links.iter().zip(&composites) {
            for column in &position.columns {
                columns.push(column.motion.numbers());
                numbers.push(inertia.numbers());
            }
        }
        // M_ab = (I S_a)ᵀ S_b for b at or before a: each column downward from its own entry, then upward
        let (tree, n) = (mechanism.tree, mechanism.tree.nv);
        let tables = PairTables::new(tree, &(0..columns.len()).collect::<Vec<_>>());
        let zero = g.zero();
        let (width, to) = (6, Memory::Result(0));
        let rolled = &mut self.rolled;
        let composites = rolled.array(by_numbers(g, &numbers, n, 10));
        let motions = rolled.array(by_numbers(g, &columns, n, 6));
        let carried = rolled.array(by_numbers(g, &vec![[zero; 6]; n], n, 6));
        let zeros =
            Zeros { composites: &|k| vanishes(g, &numbers, k), motions: &|k| vanishes(g, &columns, k) };
        add_inertial(rolled, composites, motions, n, PairTerms::inertia(&zeros), carried);
        let sides = [(motions, carried, tables.moved), (carried, motions, tables.before)];
        for (left, right, table) in sides {
            rolled.loops.push(Loop::Products { left, right, width, stride: stride(n) as u32, table, to });
        }
        vec![vec![zero; tree.nv * tree.nv]]
    }

    pub(super) fn rolled_inverse_dynamics_derivatives(&mut self) -> Results {
        let g = &mut *self.g;
        let mut mechanism = at_origin(g, self.mechanism);
        let inertias = body_inertias(g, &mechanism);
        let forces: Vec<&Element<'_>> = self.forces.iter().collect();
        let tree = mechanism.tree;
        let unit = [Weights::by_position(g), Weights::by_velocity(g), Weights::by_acceleration(g)];
        let mut linearisation = Linearisation::new(g, &mut mechanism, &inertias);
        let all = unit.map(|weights| linearisation.pair_factors(g, &forces, weights));
        let tables = PairTables::new(tree, &linearisation.groups());
        let numbers = linearisation.composite_numbers(g);
        let tangents = Tangents::new(&mut self.rolled, g, &tables, numbers, &all);
        for (factors, result) in all.iter().zip(0..) {
            tangents.add(&mut self.rolled, g, factors, |_| Memory::Result(result));
        }
        all.map(|factors| factors.loads.dense()).to_vec()
    }

    /// With tau(z, v, vd, ρ) the inverse dynamics: vd_x = −M⁻¹ tau_x for x = θ, v, ρ, and vd_tau = M⁻¹.
    pub(super) fn rolled_forward_dynamics_derivatives(&mut self) -> Results {
        let g = &mut *self.g;
        let mut mechanism = at_origin(g, self.mechanism);
        let inertias = body_inertias(g, &mechanism);
        let forces: Vec<&Element<'_>> = self.forces.iter().collect();
        let loads = loads(g, &mut mechanism, &forces);
        let n = mechanism.tree.nv;
        let pushed = with_joint_forces(g, &loads);
        let unit = [Weights::by_position(g), Weights::by_velocity(g)];
        let mut linearisation = Linearisation::new(g, &mut mechanism, &inertias);
        // Articulated bodies share what the tangent knows of the links.
        let resting = linearisation.resting_wrenches(g);
        let bodies = articulated_body(g, linearisation.mechanism(), &inertias, &pushed, &resting);
        let tau = linearisation.forces(g, &loads);
        let sparse = Sparse::by(g, &tau, self.seeds);
        let mut by_parameters = vec![g.zero(); n * self.seeds.len()];
        for (&(i, k), &entry) in sparse.places.iter().zip(&sparse.entries) {
            by_parameters[k as usize * n + i as usize] = entry;
        }
        let tables = PairTables::new(linearisation.tree(), &linearisation.groups());
        let rolled = &mut self.rolled;
        let columns: Vec<[ExprId; 6]> = linearisation.column_numbers();
        let s = rolled.array(by_rows(&columns, 6));
        let u: Vec<[ExprId; 6]> = bodies.columns.iter().map(|column| column.numbers()).collect();
        let (u, d) = (rolled.array(by_rows(&u, 6)), rolled.array(bodies.inverse));
        let scratch = rolled.array(vec![g.zero(); inverse_scratch(n)]);
        let (groups, table) = column_groups(&tables.above(), n);
        rolled.loops.push(Loop::Inverse {
            s,
            u,
            d,
            scratch,
            tree: tables.ends.clone(),
            groups,
            table,
            to: VD_TAU,
        });
        let inverse = Memory::Result(VD_TAU);
        let all = unit.map(|weights| linearisation.pair_factors(g, &forces, weights));
        let numbers = linearisation.composite_numbers(g);
        let tangents = Tangents::new(rolled, g, &tables, numbers, &all);
        for (factors, to) in all.into_iter().zip([VD_Z, VD_V]) {
            let there = tables.entries(g, factors.loads.entries());
            let mut b = 0;
            tangents.add(rolled, g, &factors, |rolled| {
                b = rolled.array(factors.loads.entries().to_vec());
                Memory::Array(b)
            });
            rolled.loops.push(minus_product(inverse, b, &there, n, to));
        }
        let there: Vec<bool> = by_parameters.iter().map(|&entry| !g.is(entry, 0.0)).collect();
        let b = rolled.array(by_parameters);
        rolled.loops.push(minus_product(inverse, b, &there, n, VD_RHO));

        // The accelerations are those of these forces.
        let vd = bodies.solved.vd;
        let here: HashMap<ExprId, ExprId> =
            vd.iter().enumerate().map(|(j, &value)| (g.symbol(Group::Vd, j as u32), value)).collect();
        for array in &mut rolled.arrays {
            *array = g.substitute(array, &here);
        }
        let zero = g.zero();
        let square = vec![zero; n * n];
        let by_parameters = vec![zero; n * self.seeds.len()];
        vec![vd, square.clone(), square.clone(), square, by_parameters, bodies.solved.pivots]
    }
}

/// Results of the derivatives of forward dynamics, by place.
const VD_Z: u32 = 1;
const VD_V: u32 = 2;
const VD_TAU: u32 = 3;
const VD_RHO: u32 = 4;
