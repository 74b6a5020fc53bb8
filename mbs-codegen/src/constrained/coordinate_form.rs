//! Residual, tangent and constraints in coordinate form.
//!
//! r = Lᵀ tau(z, v = L zd, vd = L zdd + h) + pλ for every block of Euler parameters p. Its derivatives along the
//! directions of [`crate::derivatives::direction`] are Lᵀ ∂tau + (∂L)ᵀ tau + λ ∂p; constraint forces are loads, so
//! that (Φ_zᵀ λ)_z is among ∂tau.

use super::rows::vanishing;
use super::{Rows, States};
use crate::derivatives::constraints::jacobian;
use crate::derivatives::direction::{Direction, Weights, coordinate_directions, euler_parameter_velocities};
use crate::derivatives::{Linearisation, Square};
use crate::dynamics::{Symmetric, coordinate_form, mass_matrix};
use crate::elements::{ConstraintElement, Element, Mechanism, constraint_elements, loads};
use crate::graph::{ExprId, Graph, gradient};
use crate::kinematics::velocity_map;
use crate::sparse::{Factors, Order, Sample, SparseMatrix, choose_order, factor};
use crate::symbols::Group;
use crate::topology::Tree;
use hashbrown::HashMap;
use std::collections::{BTreeMap, BTreeSet};

/// The equations over t, z, zd, zdd, u, λ and the integrator's weights.
#[derive(Clone, Debug)]
pub struct CoordinateForm {
    /// r
    pub residual: Vec<ExprId>,
    /// Φ of all holonomic rows, of the normalisation rows, then Ψ.
    pub constraints: Vec<ExprId>,
    /// Φd and Ψ
    pub rates: Vec<ExprId>,
    /// Φdd and Ψd
    pub accelerations: Vec<ExprId>,
    /// Where the entries of the leading matrix stand.
    pub pattern: Pattern,
    /// W, Φ_z, A, A' at these places.
    pub newton: Vec<ExprId>,
    /// M, Φ_z, A, A at these places.
    pub projection: Vec<ExprId>,
    /// How the leading matrix is eliminated; `None` if no order works at the sampled states.
    pub leading: Option<LeadingMatrix>,
}

/// Places of the entries (row, column), sorted; the runtime's documentation has the layout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pattern {
    /// Of W, symmetric in its structure.
    pub tangent: Vec<(u32, u32)>,
    /// Of Φ_z, normalisation rows included.
    pub holonomic: Vec<(u32, u32)>,
    /// Of A and A'.
    pub nonholonomic: Vec<(u32, u32)>,
}

impl Pattern {
    /// Entries that bundles write; the diagonal of small numbers follows them.
    pub fn entries(&self) -> usize {
        self.tangent.len() + self.holonomic.len() + 2 * self.nonholonomic.len()
    }
}

/// Factors of the leading matrix over [`Group::Matrix`], and solves over [`Group::Factors`] and [`Group::Rhs`].
#[derive(Clone, Debug)]
pub struct LeadingMatrix {
    /// The factors' numbers.
    pub factors: Vec<ExprId>,
    /// Pivots, in order.
    pub pivots: Vec<ExprId>,
    /// The unknowns they belong to.
    pub columns: Vec<u32>,
    /// x of A x = rhs
    pub solution: Vec<ExprId>,
    /// x of Aᵀ x = rhs
    pub transposed: Vec<ExprId>,
    /// The factors over [`Group::Factors`].
    pub again: Factors,
    /// Where each entry stands in the whole matrix.
    places: Vec<Vec<(usize, usize)>>,
    order: Order,
}

impl LeadingMatrix {
    /// Factors of the matrix with these entries at the places of the pattern, and minus these small numbers on the diagonal of the rows:
    /// the same elimination, and the same order of their values.
    pub fn factor(&self, g: &mut Graph, entries: &[ExprId], small: &[ExprId]) -> Factors {
        let matrix = bordered(g, self.solution.len(), &self.places, entries, small);
        factor(g, &matrix, &self.order)
    }
}

impl CoordinateForm {
    /// Of a mechanism referred to the origin, under its forces and rows.
    pub fn new(
        g: &mut Graph,
        mechanism: &mut Mechanism<'_>,
        inertias: &[(ExprId, Symmetric)],
        forces: &[Element<'_>],
        rows: &Rows,
        states: &States,
    ) -> CoordinateForm {
        let tree = mechanism.tree;
        let constraints = constraint_elements(g, mechanism, &rows.kept, |row| rows.place(row));
        let elements: Vec<&Element<'_>> =
            forces.iter().chain(constraints.iter().map(|constraint| &constraint.element)).collect();
        let loads = loads(g, mechanism, &elements);

        let (mut values, mut rates, mut accelerations) = (Vec::new(), Vec::new(), Vec::new());
        for row in constraints.iter().flat_map(|c| c.rates(g, mechanism)) {
            values.push(row.value);
            rates.push(row.rate);
            accelerations.push(row.acceleration);
        }
        // Ψ is itself a rate.
        for k in rows.holonomic()..rows.kept.len() {
            accelerations[k] = std::mem::replace(&mut rates[k], values[k]);
        }

        let m = mass_matrix(g, mechanism, inertias);
        let mass = coordinate_form(g, mechanism, &m);
        let by_position = Weights::by_position(g);
        let by_velocity = Weights::by_velocity(g);
        let along = coordinate_directions(g, tree, by_position);
        let weights = integrator_weights(g);
        let directions = [coordinate_directions(g, tree, weights.newton)];
        let mut linearisation = Linearisation::new(g, mechanism, inertias);
        let tau = linearisation.forces(g, &loads);
        let [mut tangent] = linearisation.tangents(g, &elements, &along, &directions, &tau);
        let mut residual = transpose_times(g, &along, &tau);
        add_balls(g, tree, rows, &tau, weights.newton.position, &mut residual, &mut tangent);

        let (holonomic, nonholonomic) = split(constraints, rows);
        let mut phi_z = jacobian(g, &mut linearisation, &holonomic, &along);
        let all: Vec<ExprId> = phi_z.iter().flat_map(|row| row.values()).copied().collect();
        let mut vanishing = vanishing(g, linearisation.mechanism(), &all).into_iter();
        for row in &mut phi_z {
            row.retain(|_, _| vanishing.next() != Some(true));
        }
        for &first in &rows.blocks {
            phi_z.push((first..first + 4).map(|z| (z, g.symbol(Group::Z, z as u32))).collect());
        }
        let slopes = coordinate_directions(g, tree, by_velocity);
        let a = jacobian(g, &mut linearisation, &nonholonomic, &slopes);
        let both = coordinate_directions(g, tree, weights.nonholonomic);
        let a_newton = jacobian(g, &mut linearisation, &nonholonomic, &both);
        let normalise = |all: Vec<ExprId>, normalised: Vec<ExprId>| {
            let mut all = all;
            all.splice(rows.holonomic()..rows.holonomic(), normalised);
            all
        };
        let [value, rate, acceleration] = normalisation(g, rows);
        let mut form = CoordinateForm {
            residual,
            constraints: normalise(values, value),
            rates: normalise(rates, rate),
            accelerations: normalise(accelerations, acceleration),
            pattern: Pattern::default(),
            newton: Vec::new(),
            projection: Vec::new(),
            leading: None,
        };
        form.write_matrices(g, &tangent, &mass, &phi_z, [&a, &a_newton]);
        form.in_coordinates(g, tree);
        form.leading = form.order(g, mechanism, rows, states);
        form
    }

    fn write_matrices(
        &mut self,
        g: &mut Graph,
        tangent: &Square,
        mass: &[ExprId],
        phi_z: &[BTreeMap<usize, ExprId>],
        [a, a_newton]: [&[BTreeMap<usize, ExprId>]; 2],
    ) {
        let n = self.residual.len();
        let none = g.zero();
        let zero = |id: ExprId| id == none;
        for i in 0..n {
            for j in 0..n {
                let [there, back] =
                    [(i, j), (j, i)].map(|(i, j)| zero(tangent.get(i, j)) && zero(mass[j * n + i]));
                if !there || !back {
                    self.pattern.tangent.push((i as u32, j as u32));
                    self.newton.push(tangent.get(i, j));
                    self.projection.push(mass[j * n + i]);
                }
            }
        }
        for (k, row) in phi_z.iter().enumerate() {
            for (&j, &entry) in row {
                self.pattern.holonomic.push((k as u32, j as u32));
                self.newton.push(entry);
                self.projection.push(entry);
            }
        }
        let (mut upper, mut lower) = (Vec::new(), Vec::new());
        for (k, (row, row_newton)) in a.iter().zip(a_newton).enumerate() {
            let columns: BTreeSet<usize> = row.keys().chain(row_newton.keys()).copied().collect();
            for j in columns {
                self.pattern.nonholonomic.push((k as u32, j as u32));
                upper.push(row.get(&j).copied().unwrap_or(none));
                lower.push(row_newton.get(&j).copied().unwrap_or(none));
            }
        }
        self.newton.extend(upper.iter().chain(&lower));
        self.projection.extend(upper.iter().chain(&upper));
    }

    /// v = L zd, vd = L zdd + h in place of the joint velocities.
    fn in_coordinates(&mut self, g: &mut Graph, tree: &Tree) {
        let replacements = joint_to_coordinate_form(g, tree);
        for expressions in [
            &mut self.residual,
            &mut self.constraints,
            &mut self.rates,
            &mut self.accelerations,
            &mut self.newton,
            &mut self.projection,
        ] {
            *expressions = g.substitute(expressions, &replacements);
        }
    }

    /// Chooses an order of elimination by samples, and factors by it. Newton's method and the projections share it.
    fn order(
        &self,
        g: &mut Graph,
        mechanism: &Mechanism<'_>,
        rows: &Rows,
        states: &States,
    ) -> Option<LeadingMatrix> {
        let (n, m) = (self.residual.len(), rows.in_coordinate_form());
        let places = self.places(rows);
        let mut samples: Vec<Sample> = Vec::new();
        for (matrix, small) in [(&self.newton, 1e-6), (&self.projection, 1e-9)] {
            for values in states.evaluate(g, mechanism, matrix) {
                let mut sample = Sample::new();
                for (&value, places) in values.iter().zip(&places) {
                    sample.extend(places.iter().map(|&place| (place, value)));
                }
                for k in 0..m {
                    // Small against Σ Φ²/M, whatever the units.
                    let reached: f64 = (0..n)
                        .filter_map(|j| Some(sample.get(&(n + k, j))?.powi(2) / sample.get(&(j, j))?.abs()))
                        .filter(|x| x.is_finite())
                        .sum();
                    sample.insert((n + k, n + k), -small * if reached > 0.0 { reached } else { 1.0 });
                }
                samples.push(sample);
            }
        }
        let mut pattern: BTreeSet<(usize, usize)> = places.concat().into_iter().collect();
        pattern.extend((0..m).map(|k| (n + k, n + k)));
        let order = choose_order(n + m, &pattern, &samples)?;
        Some(leading_matrix(g, n + m, places, m, order))
    }

    /// Where each entry stands in the whole matrix: entries of Φ_z stand twice.
    fn places(&self, rows: &Rows) -> Vec<Vec<(usize, usize)>> {
        let n = self.residual.len();
        let first = n + rows.in_coordinate_form() - rows.nonholonomic();
        let of = |&(i, j): &(u32, u32)| (i as usize, j as usize);
        let mut places: Vec<Vec<(usize, usize)>> = Vec::with_capacity(self.pattern.entries());
        places.extend(self.pattern.tangent.iter().map(of).map(|place| vec![place]));
        places.extend(self.pattern.holonomic.iter().map(of).map(|(k, j)| vec![(n + k, j), (j, n + k)]));
        places.extend(self.pattern.nonholonomic.iter().map(of).map(|(k, j)| vec![(j, first + k)]));
        places.extend(self.pattern.nonholonomic.iter().map(of).map(|(k, j)| vec![(first + k, j)]));
        places
    }
}

/// A matrix with these entries at their places, and minus the small numbers at the end of its diagonal.
fn bordered(
    g: &mut Graph,
    size: usize,
    places: &[Vec<(usize, usize)>],
    entries: &[ExprId],
    small: &[ExprId],
) -> SparseMatrix {
    let mut matrix = SparseMatrix { n: size, entries: BTreeMap::new() };
    for (&entry, places) in entries.iter().zip(places) {
        matrix.entries.extend(places.iter().map(|&place| (place, entry)));
    }
    for (&small, place) in small.iter().zip(size - small.len()..) {
        matrix.entries.insert((place, place), g.neg(small));
    }
    matrix
}

/// The factors' expressions over the symbols of the matrix.
fn leading_matrix(
    g: &mut Graph,
    size: usize,
    places: Vec<Vec<(usize, usize)>>,
    rows: usize,
    order: Order,
) -> LeadingMatrix {
    let symbols = |g: &mut Graph, group: Group, first: usize, count: usize| -> Vec<ExprId> {
        (first..first + count).map(|i| g.symbol(group, i as u32)).collect()
    };
    let entries = symbols(g, Group::Matrix, 0, places.len());
    let small = symbols(g, Group::Matrix, places.len(), rows);
    let matrix = bordered(g, size, &places, &entries, &small);
    let factors = factor(g, &matrix, &order);
    let values = factors.values();
    let again = factors.with_values(&symbols(g, Group::Factors, 0, values.len()));
    let rhs = symbols(g, Group::Rhs, 0, size);
    LeadingMatrix {
        pivots: factors.pivots(),
        columns: factors.columns(),
        factors: values,
        solution: again.solve(g, rhs.clone()),
        transposed: again.solve_transposed(g, rhs),
        again,
        places,
        order,
    }
}

/// Weights of Newton's method: dz = βh² δ, dzd = γh δ, dzdd = δ; and those of A', which is per dzd.
struct IntegratorWeights {
    newton: Weights,
    nonholonomic: Weights,
}

fn integrator_weights(g: &mut Graph) -> IntegratorWeights {
    let [velocity, position, ratio] = [0, 1, 2].map(|i| g.symbol(Group::Weights, i));
    let (zero, one) = (g.zero(), g.one());
    IntegratorWeights {
        newton: Weights { position, velocity, acceleration: one },
        nonholonomic: Weights { position: ratio, velocity: one, acceleration: zero },
    }
}

/// Lᵀ tau, L given by the position weights of the directions.
pub(super) fn transpose_times(g: &mut Graph, along: &[Direction], tau: &[ExprId]) -> Vec<ExprId> {
    let row = |direction: &Direction| {
        let terms: Vec<ExprId> =
            direction.terms.iter().map(|term| g.mul(term.weights.position, tau[term.j])).collect();
        g.sum(&terms)
    };
    along.iter().map(row).collect()
}

/// What Euler parameters add beyond Lᵀ ∂tau: (∂L)ᵀ tau in the tangent, and the normalisation row's force λp.
pub(super) fn add_balls(
    g: &mut Graph,
    tree: &Tree,
    rows: &Rows,
    tau: &[ExprId],
    position: ExprId,
    residual: &mut [ExprId],
    tangent: &mut Square,
) {
    let balls = tree.links.iter().filter_map(|link| link.euler_parameters());
    for (k, (first, v)) in balls.enumerate() {
        let lambda = g.symbol(Group::Lambda, (rows.holonomic() + k) as u32);
        let p: [ExprId; 4] = std::array::from_fn(|i| g.symbol(Group::Z, (first + i) as u32));
        let map = velocity_map(g, p);
        // Placeholders: tau depends on p, but is held here.
        let held: [ExprId; 3] = std::array::from_fn(|i| g.symbol(Group::Free, i as u32));
        let replacements: HashMap<ExprId, ExprId> = (0..3).map(|i| (held[i], tau[v + i])).collect();
        for a in 0..4 {
            let terms: [ExprId; 3] = std::array::from_fn(|i| g.mul(map[i][a], held[i]));
            let row = g.sum(&terms);
            let one = g.one();
            let slopes = gradient(g, &[(row, one)], &p);
            let slopes = g.substitute(&slopes, &replacements);
            for (b, slope) in slopes.into_iter().enumerate() {
                let slope = if a == b { g.add(slope, lambda) } else { slope };
                let share = g.mul(position, slope);
                tangent.add(g, first + a, first + b, share);
            }
            let share = g.mul(lambda, p[a]);
            residual[first + a] = g.add(residual[first + a], share);
        }
    }
}

/// (pᵀp − 1)/2 and its time derivatives pᵀpd, pdᵀpd + pᵀpdd, for every block of Euler parameters.
fn normalisation(g: &mut Graph, rows: &Rows) -> [Vec<ExprId>; 3] {
    let mut all = [Vec::new(), Vec::new(), Vec::new()];
    for &first in &rows.blocks {
        let [p, pd, pdd] = [Group::Z, Group::Zd, Group::Zdd]
            .map(|group| -> [ExprId; 4] { std::array::from_fn(|i| g.symbol(group, (first + i) as u32)) });
        let mut dot = |a: [ExprId; 4], b: [ExprId; 4]| {
            let products: [ExprId; 4] = std::array::from_fn(|i| g.mul(a[i], b[i]));
            g.sum(&products)
        };
        let (square, rate, squared_rate, along) = (dot(p, p), dot(p, pd), dot(pd, pd), dot(p, pdd));
        let (one, half) = (g.one(), g.constant(0.5));
        let rest = g.sub(square, one);
        all[0].push(g.mul(half, rest));
        all[1].push(rate);
        all[2].push(g.add(squared_rate, along));
    }
    all
}

/// The elements of holonomic rows and those of nonholonomic ones.
pub(super) fn split<'a>(
    elements: Vec<ConstraintElement<'a>>,
    rows: &Rows,
) -> (Vec<ConstraintElement<'a>>, Vec<ConstraintElement<'a>>) {
    let holonomic = rows.holonomic();
    elements.into_iter().partition(|element| element.rows.iter().all(|row| row.row < holonomic))
}

/// v = L zd and vd = L zdd + h, symbol by symbol.
pub(crate) fn joint_to_coordinate_form(g: &mut Graph, tree: &Tree) -> HashMap<ExprId, ExprId> {
    let mut replacements = HashMap::new();
    let mut rename = |g: &mut Graph, v: usize, z: usize| {
        for (joint, coordinate) in [(Group::V, Group::Zd), (Group::Vd, Group::Zdd)] {
            replacements.insert(g.symbol(joint, v as u32), g.symbol(coordinate, z as u32));
        }
    };
    for link in &tree.links {
        let euler = link.euler_parameters();
        for z in link.z_range().filter(|&z| euler.is_none_or(|(first, _)| z < first)) {
            rename(g, link.v + z - link.z, z);
        }
    }
    for k in 0..tree.nq - tree.variables_z {
        rename(g, tree.variables_v + k, tree.variables_z + k);
    }
    for (first, v) in tree.links.iter().filter_map(|link| link.euler_parameters()) {
        let [omega, acceleration] = euler_parameter_velocities(g, first);
        for k in 0..3 {
            replacements.insert(g.symbol(Group::V, (v + k) as u32), omega[k]);
            replacements.insert(g.symbol(Group::Vd, (v + k) as u32), acceleration[k]);
        }
    }
    replacements
}
