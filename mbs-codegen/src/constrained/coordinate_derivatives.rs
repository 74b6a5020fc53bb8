//! Derivatives of the equations in coordinate form: of the residual by z, zd, zdd apart, of the projections, and
//! of all of them by what the model is differentiated by, ρ.
//!
//! A projection moves velocities or accelerations by x, with multipliers y: M x + Φ_zᵀ y + Aᵀ y' = 0. The left side is the
//! residual of a mechanism at rest without forces and gravity, accelerated by x; its derivatives come from the same
//! recursion. In z they are in closed form on pairs of a joint and an ancestor, in ρ by differentiation of the graph.

use super::coordinate_form::{add_balls, joint_to_coordinate_form, split, transpose_times};
use super::{CoordinateForm, Rows, Sections};
use crate::derivatives::constraints::{SparseRow, jacobian, rate_jacobian};
use crate::derivatives::direction::{Weights, coordinate_directions};
use crate::derivatives::{Linearisation, Square};
use crate::dynamics::Symmetric;
use crate::elements::{Element, Mechanism, constraint_elements, loads};
use crate::graph::{ExprId, Graph, Tangents, gradient};
use crate::symbols::Group;
use hashbrown::HashMap;
use std::collections::BTreeMap;

/// Places of nonzero entries (row, column), sorted, and the entries.
#[derive(Clone, Debug, Default)]
pub struct Sparse {
    /// Where.
    pub places: Vec<(u32, u32)>,
    /// What.
    pub entries: Vec<ExprId>,
}

/// Seeds from which on it pays to look for rows that are better differentiated backward.
const MANY: usize = 32;
/// Seeds for each row from which on backward differentiation is cheaper: a sweep for each row instead of one for each seed.
const PER_ROW: usize = 8;

impl Sparse {
    /// The nonzero derivatives of expressions by each of the seeds: forward for each seed, or backward for each row where many seeds, such as
    /// the values of a spline, act on few rows.
    pub fn by(g: &mut Graph, expressions: &[ExprId], seeds: &[ExprId]) -> Sparse {
        let mut found: BTreeMap<(u32, u32), ExprId> = BTreeMap::new();
        let backward = backward_groups(g, expressions, seeds);
        let mut done = vec![false; seeds.len()];
        for (rows, group) in &backward {
            let symbols: Vec<ExprId> = group.iter().map(|&k| seeds[k]).collect();
            for &i in rows {
                let one = g.one();
                let entries = gradient(g, &[(expressions[i], one)], &symbols);
                for (&k, entry) in group.iter().zip(entries) {
                    if !g.is(entry, 0.0) {
                        found.insert((i as u32, k as u32), entry);
                    }
                }
            }
            group.iter().for_each(|&k| done[k] = true);
        }
        for (k, &seed) in seeds.iter().enumerate().filter(|(k, _)| !done[*k]) {
            let mut tangents = Tangents::with_respect_to(g, seed);
            for (i, &expression) in expressions.iter().enumerate() {
                let entry = tangents.of(g, expression);
                if !g.is(entry, 0.0) {
                    found.insert((i as u32, k as u32), entry);
                }
            }
        }
        let (places, entries) = found.into_iter().unzip();
        Sparse { places, entries }
    }
}

/// Groups of seeds that are better differentiated by backward, and the rows that each group acts on.
fn backward_groups(g: &Graph, expressions: &[ExprId], seeds: &[ExprId]) -> Vec<(Vec<usize>, Vec<usize>)> {
    if seeds.len() < MANY {
        return Vec::new();
    }
    let number: HashMap<ExprId, usize> = seeds.iter().enumerate().map(|(k, &seed)| (seed, k)).collect();
    let mut rows = vec![Vec::new(); seeds.len()];
    for (i, &expression) in expressions.iter().enumerate() {
        for id in g.reachable(&[expression]) {
            if let Some(&k) = number.get(&id) {
                rows[k].push(i);
            }
        }
    }
    let mut groups: BTreeMap<Vec<usize>, Vec<usize>> = BTreeMap::new();
    for (k, rows) in rows.into_iter().enumerate() {
        groups.entry(rows).or_default().push(k);
    }
    let pays = |(rows, group): &(Vec<usize>, Vec<usize>)| group.len() >= MANY.max(PER_ROW * rows.len());
    groups.into_iter().filter(pays).collect()
}

/// What the runtime's `Sensitivities` want.
#[derive(Clone, Debug)]
pub struct CoordinateDerivatives {
    /// Of residual and constraints.
    pub newton: Sections,
    /// Of the projections.
    pub projections: Sections,
    /// Places of the derivatives by ρ.
    pub places: ParameterPlaces,
    /// M d + Φ_zᵀ σ + Aᵀ σ' and M e + Φ_zᵀ κ + Aᵀ κ'.
    pub impulses: [Vec<ExprId>; 2],
}

/// Places of the derivatives by ρ: (row, number of the parameter).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParameterPlaces {
    /// Of r_ρ.
    pub residual: Vec<(u32, u32)>,
    /// Of Φ_ρ, Ψ_ρ.
    pub constraints: Vec<(u32, u32)>,
    /// Of (M x + Φ_zᵀ y + Aᵀ y')_ρ.
    pub impulse: Vec<(u32, u32)>,
    /// Of Φd_ρ, Ψ_ρ.
    pub rates: Vec<(u32, u32)>,
    /// Of Φdd_ρ, Ψd_ρ.
    pub accelerations: Vec<(u32, u32)>,
}

impl CoordinateDerivatives {
    /// Of a mechanism referred to the origin and its equations.
    pub fn new(
        g: &mut Graph,
        mechanism: &mut Mechanism<'_>,
        inertias: &[(ExprId, Symmetric)],
        forces: &[Element<'_>],
        rows: &Rows,
        form: &CoordinateForm,
        seeds: &[ExprId],
    ) -> CoordinateDerivatives {
        let tree = mechanism.tree;
        let to_coordinates = joint_to_coordinate_form(g, tree);
        let constraints = constraint_elements(g, mechanism, &rows.kept, |row| rows.place(row));
        let elements: Vec<&Element<'_>> =
            forces.iter().chain(constraints.iter().map(|constraint| &constraint.element)).collect();
        let loads = loads(g, mechanism, &elements);
        let unit = [Weights::by_acceleration(g), Weights::by_velocity(g), Weights::by_position(g)];
        let directions = unit.map(|w| coordinate_directions(g, tree, w));
        let [_, by_velocity, by_position] = &directions;
        let impulse = impulse(g, mechanism, inertias, rows);

        let mut linearisation = Linearisation::new(g, mechanism, inertias);
        let tau = linearisation.forces(g, &loads);
        let mut tangents = linearisation.tangents(g, &elements, by_position, &directions, &tau);
        let position = g.one();
        let mut residual = transpose_times(g, by_position, &tau);
        add_balls(g, tree, rows, &tau, position, &mut residual, &mut tangents[2]);

        let (holonomic, nonholonomic) = split(constraints, rows);
        let pattern = &form.pattern;
        let mut newton = Sections::default();
        for (name, tangent) in ["mass", "by_velocity", "by_position"].into_iter().zip(&tangents) {
            newton.push(name, in_pattern(tangent, &pattern.tangent));
        }
        let normalised = |g: &mut Graph, mut all: Vec<SparseRow>, group: Group| {
            for &first in &rows.blocks {
                all.push((first..first + 4).map(|z| (z, g.symbol(group, z as u32))).collect());
            }
            all
        };
        let phi_z = jacobian(g, &mut linearisation, &holonomic, by_position);
        let phi_z = normalised(g, phi_z, Group::Z);
        newton.push("holonomic", entries(g, &phi_z, &pattern.holonomic));
        let psi_z = jacobian(g, &mut linearisation, &nonholonomic, by_position);
        let a = jacobian(g, &mut linearisation, &nonholonomic, by_velocity);
        newton.push("nonholonomic", entries(g, &a, &pattern.nonholonomic));
        newton.push("nonholonomic_z", entries(g, &psi_z, &pattern.nonholonomic));
        newton.substitute(g, &to_coordinates);
        let residual = Sparse::by(g, &form.residual, seeds);
        let constraints = Sparse::by(g, &form.constraints, seeds);
        newton.push("residual", residual.entries);
        newton.push("constraints", constraints.entries);

        let mut rate = |g: &mut Graph, rows, directions| {
            rate_jacobian(g, &mut linearisation, rows, directions, |_, row| row.rate)
        };
        let phid_z = rate(g, &holonomic, by_position);
        let psid_z = rate(g, &nonholonomic, by_position);
        let psid_zd = rate(g, &nonholonomic, by_velocity);
        let phidd_z =
            rate_jacobian(g, &mut linearisation, &holonomic, by_position, |_, row| row.acceleration);
        let phid_z = normalised(g, phid_z, Group::Zd);
        let phidd_z = normalised(g, phidd_z, Group::Zdd);
        let mut motion = Sections::default();
        for (name, rows, places) in [
            ("rates_z", &phid_z, &pattern.holonomic),
            ("nonholonomic_z", &psi_z, &pattern.nonholonomic),
            ("accelerations_z", &phidd_z, &pattern.holonomic),
            ("nonholonomic_rates_z", &psid_z, &pattern.nonholonomic),
            ("nonholonomic_rates_zd", &psid_zd, &pattern.nonholonomic),
        ] {
            motion.push(name, entries(g, rows, places));
        }
        motion.substitute(g, &to_coordinates);

        let mut places = ParameterPlaces {
            residual: residual.places,
            constraints: constraints.places,
            ..ParameterPlaces::default()
        };
        let (projections, impulses) = impulse.projections(g, rows, form, motion, seeds, &mut places);
        CoordinateDerivatives { newton, projections, places, impulses }
    }
}

/// M x + Φ_zᵀ y + Aᵀ y' and its derivative by z, x in the place of zdd and y in that of λ, and what still has to be put in.
struct Impulse {
    residual: Vec<ExprId>,
    tangent: Square,
    /// v = 0, vd = L x
    at_rest: HashMap<ExprId, ExprId>,
}

impl Impulse {
    /// Derivatives of both projections, by z, by the `motion` of their right-hand sides and by ρ, and their left-hand sides. Adds the places
    /// of the derivatives by ρ.
    fn projections(
        &self,
        g: &mut Graph,
        rows: &Rows,
        form: &CoordinateForm,
        motion: Sections,
        seeds: &[ExprId],
        places: &mut ParameterPlaces,
    ) -> (Sections, [Vec<ExprId>; 2]) {
        let by_z = in_pattern(&self.tangent, &form.pattern.tangent);
        let by_z = g.substitute(&by_z, &self.at_rest);
        let left = g.substitute(&self.residual, &self.at_rest);
        let by_rho = Sparse::by(g, &left, seeds);
        let rates = Sparse::by(g, &form.rates, seeds);
        let accelerations = Sparse::by(g, &form.accelerations, seeds);
        let nq = self.residual.len();
        let renamed = [
            impulse_arguments(g, rows, nq, Group::VelocityImpulse, Group::VelocityMultipliers),
            impulse_arguments(g, rows, nq, Group::AccelerationImpulse, Group::AccelerationMultipliers),
        ];
        let mut projections = Sections::default();
        for (name, renamed) in ["velocity_impulse", "acceleration_impulse"].into_iter().zip(&renamed) {
            projections.push(name, g.substitute(&by_z, renamed));
        }
        projections.append(motion);
        for (name, renamed) in ["velocity_impulse_rho", "acceleration_impulse_rho"].into_iter().zip(&renamed)
        {
            projections.push(name, g.substitute(&by_rho.entries, renamed));
        }
        projections.push("rates", rates.entries);
        projections.push("accelerations", accelerations.entries);
        (places.impulse, places.rates, places.accelerations) =
            (by_rho.places, rates.places, accelerations.places);
        (projections, renamed.each_ref().map(|renamed| g.substitute(&left, renamed)))
    }
}

fn impulse(
    g: &mut Graph,
    mechanism: &mut Mechanism<'_>,
    inertias: &[(ExprId, Symmetric)],
    rows: &Rows,
) -> Impulse {
    let tree = mechanism.tree;
    let gravity = std::mem::replace(&mut mechanism.gravity, g.zero_vector());
    let constraints = constraint_elements(g, mechanism, &rows.kept, |row| rows.place(row));
    let elements: Vec<&Element<'_>> = constraints.iter().map(|constraint| &constraint.element).collect();
    let loads = loads(g, mechanism, &elements);
    let by_position = Weights::by_position(g);
    let along = [coordinate_directions(g, tree, by_position)];
    let mut linearisation = Linearisation::new(g, mechanism, inertias);
    let tau = linearisation.forces(g, &loads);
    let [mut tangent] = linearisation.tangents(g, &elements, &along[0], &along, &tau);
    let mut residual = transpose_times(g, &along[0], &tau);
    add_balls(g, tree, rows, &tau, by_position.position, &mut residual, &mut tangent);
    mechanism.gravity = gravity;
    let zero = g.zero();
    let still: HashMap<ExprId, ExprId> =
        (0..tree.nq as u32).map(|z| (g.symbol(Group::Zd, z), zero)).collect();
    let moving = joint_to_coordinate_form(g, tree);
    let mut at_rest: HashMap<ExprId, ExprId> = still.clone();
    for (symbol, expression) in moving {
        let expression = g.substitute(&[expression], &still)[0];
        at_rest.insert(symbol, expression);
    }
    Impulse { residual, tangent, at_rest }
}

/// The arguments x, y of one projection in the place of zdd and λ.
fn impulse_arguments(g: &mut Graph, rows: &Rows, nq: usize, x: Group, y: Group) -> HashMap<ExprId, ExprId> {
    let mut renamed = HashMap::new();
    for (from, to, count) in [(Group::Zdd, x, nq), (Group::Lambda, y, rows.in_coordinate_form())] {
        renamed.extend((0..count as u32).map(|i| (g.symbol(from, i), g.symbol(to, i))));
    }
    renamed
}

/// The entries of a square matrix at the places of a pattern. Those elsewhere vanish, whether the graph sees it or not: the
/// residual does not depend on that coordinate.
fn in_pattern(square: &Square, places: &[(u32, u32)]) -> Vec<ExprId> {
    places.iter().map(|&(i, j)| square.get(i as usize, j as usize)).collect()
}

/// The entries of sparse rows at the places of a pattern. Those elsewhere vanish: where a row does not depend on a coordinate
/// its time derivatives do not either.
fn entries(g: &mut Graph, rows: &[SparseRow], places: &[(u32, u32)]) -> Vec<ExprId> {
    let zero = g.zero();
    let at = |&(k, j): &(u32, u32)| rows[k as usize].get(&(j as usize)).copied().unwrap_or(zero);
    places.iter().map(at).collect()
}
