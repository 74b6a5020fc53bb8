//! Bundles whose entries for pairs of joints are looped over: which arrays they need, which tables say where entries go.
//!
//! Velocities are numbered depth first, so what a velocity moves is one run of rows, and what moves it a few runs, one per branch.

use super::BundleKind;
use super::equations::{Equations, Results, at_origin};
use super::estimate::rolls;
use crate::bundle::rolled::{BLOCK, inverse_scratch};
use crate::bundle::{Loop, Memory, Rolled};
use crate::constrained::Sparse;
use crate::derivatives::direction::{Weights, joint_directions};
use crate::derivatives::{Linearisation, PairFactors, Square};
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
    /// For each velocity, [1 + the one before it or 0, end of those it moves].
    tree: Vec<[u32; 2]>,
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
        let tree = (0..n).map(|k| [parents[k].map_or(0, |p| p + 1), ends[k]].map(|x| x as u32)).collect();
        PairTables { n, moved: small(moved), before: small(before), tree }
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
    let (mut starts, mut table) = (vec![0], Vec::new());
    for column in there.chunks(rows.max(1)) {
        table.extend((0..).zip(column).filter(|&(_, there)| *there).map(|(k, _)| k));
        starts.push(table.len() as u32);
    }
    Loop::MinusProduct { a, b, rows: rows as u32, starts, table, to }
}

/// The first `width` numbers of each, side by side.
fn by_rows<const K: usize>(factors: &[[ExprId; K]], width: usize) -> Vec<ExprId> {
    factors.iter().flat_map(|row| row.iter().take(width).copied()).collect()
}

/// The first `width` numbers of all, one number of all after the other, and a block of zeros.
fn by_numbers<const K: usize>(g: &mut Graph, factors: &[[ExprId; K]], width: usize) -> Vec<ExprId> {
    let numbers = (0..width).flat_map(|k| factors.iter().map(move |row| row[k]));
    numbers.chain([g.zero(); BLOCK]).collect()
}

/// Length without the trailing entries that are zero in all of either.
fn width<const K: usize>(g: &Graph, left: &[[ExprId; K]], right: &[[ExprId; K]]) -> usize {
    let vanish = |factors: &[[ExprId; K]], k: usize| factors.iter().all(|row| g.is(row[k], 0.0));
    (0..K).rev().find(|&k| !vanish(left, k) && !vanish(right, k)).map_or(0, |k| k + 1)
}

/// Writes tangents as loops. What all share is stored once.
struct Tangents<'t> {
    tables: &'t PairTables,
    /// Arrays of what is carried and of the columns, one number of all velocities after the other.
    carried: u32,
    columns: u32,
}

impl Tangents<'_> {
    fn new<'t>(
        rolled: &mut Rolled,
        g: &mut Graph,
        tables: &'t PairTables,
        all: &[PairFactors],
    ) -> Tangents<'t> {
        let first = &all[0];
        let widest = all.iter().map(|one| width(g, &one.moving, &first.carried)).max().unwrap_or(0);
        Tangents {
            tables,
            carried: rolled.array(by_numbers(g, &first.carried, widest)),
            columns: rolled.array(by_numbers(g, &first.columns, 6)),
        }
    }

    /// Adds one to memory in which its loads are already, and which comes after its factors.
    fn add(
        &self,
        rolled: &mut Rolled,
        g: &Graph,
        factors: &PairFactors,
        memory: impl FnOnce(&mut Rolled) -> Memory,
    ) {
        let stride = self.tables.n as u32;
        let width = width(g, &factors.moving, &factors.carried);
        let moving = rolled.array(by_rows(&factors.moving, width));
        let turned = rolled.array(by_rows(&factors.turned, 6));
        let to = memory(rolled);
        let sides = [
            (moving, self.carried, width as u32, &self.tables.moved),
            (turned, self.columns, 6, &self.tables.before),
        ];
        for (left, right, width, table) in sides.into_iter().filter(|&(_, _, width, _)| width > 0) {
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
        let (mut columns, mut carried) = (Vec::new(), Vec::new());
        for (position, &inertia) in mechanism.positions.links.iter().zip(&composites) {
            for column in &position.columns {
                let force = g.apply_inertia(inertia, column.motion);
                columns.push(column.motion.numbers());
                carried.push(force.numbers());
            }
        }
        // M_ab = (I S_a)ᵀ S_b for b at or before a: each column downward from its own entry, then upward
        let tree = mechanism.tree;
        let tables = PairTables::new(tree, &(0..columns.len()).collect::<Vec<_>>());
        let zero = g.zero();
        columns.resize(tree.nv, [zero; 6]);
        carried.resize(tree.nv, [zero; 6]);
        let (stride, to) = (tree.nv as u32, Memory::Result(0));
        let rolled = &mut self.rolled;
        let sides = [(&columns, &carried, tables.moved), (&carried, &columns, tables.before)];
        for (left, right, table) in sides {
            let (left, right) = (rolled.array(by_rows(left, 6)), rolled.array(by_numbers(g, right, 6)));
            rolled.loops.push(Loop::Products { left, right, width: 6, stride, table, to });
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
        let tangents = Tangents::new(&mut self.rolled, g, &tables, &all);
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
        let (tree, n) = (mechanism.tree, mechanism.tree.nv);
        let pushed = with_joint_forces(g, &loads);
        let bodies = articulated_body(g, &mechanism, &inertias, &pushed);

        let unit = [Weights::by_position(g), Weights::by_velocity(g)];
        let mut linearisation = Linearisation::new(g, &mut mechanism, &inertias);
        let tau = linearisation.forces(g, &loads);
        let sparse = Sparse::by(g, &tau, self.seeds);
        let mut by_parameters = vec![g.zero(); n * self.seeds.len()];
        for (&(i, k), &entry) in sparse.places.iter().zip(&sparse.entries) {
            by_parameters[k as usize * n + i as usize] = entry;
        }
        let rows = joint_directions(g, tree, unit[0]);
        let tables = PairTables::new(tree, &linearisation.groups());
        let rolled = &mut self.rolled;
        let columns: Vec<[ExprId; 6]> = linearisation.column_numbers();
        let s = rolled.array(by_rows(&columns, 6));
        let u: Vec<[ExprId; 6]> = bodies.columns.iter().map(|column| column.numbers()).collect();
        let (u, d) = (rolled.array(by_rows(&u, 6)), rolled.array(bodies.inverse));
        let scratch = rolled.array(vec![g.zero(); inverse_scratch(n)]);
        rolled.loops.push(Loop::Inverse { s, u, d, scratch, tree: tables.tree.clone(), to: VD_TAU });
        let inverse = Memory::Result(VD_TAU);
        if rolls(BundleKind::InverseDynamicsDerivatives, self.pairs, tree) {
            let all = unit.map(|weights| linearisation.pair_factors(g, &forces, weights));
            let tangents = Tangents::new(rolled, g, &tables, &all);
            for (factors, to) in all.into_iter().zip([VD_Z, VD_V]) {
                let there = tables.entries(g, factors.loads.entries());
                let mut b = 0;
                tangents.add(rolled, g, &factors, |rolled| {
                    b = rolled.array(factors.loads.entries().to_vec());
                    Memory::Array(b)
                });
                rolled.loops.push(minus_product(inverse, b, &there, n, to));
            }
        } else {
            let directions = unit.map(|weights| joint_directions(g, tree, weights));
            let tangents = linearisation.tangents(g, &forces, &rows, &directions, &[]);
            for (tangent, to) in tangents.map(Square::dense).into_iter().zip([VD_Z, VD_V]) {
                let there: Vec<bool> = tangent.iter().map(|&entry| !g.is(entry, 0.0)).collect();
                let b = rolled.array(tangent);
                rolled.loops.push(minus_product(inverse, b, &there, n, to));
            }
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
