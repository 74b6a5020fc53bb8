//! Derivatives of accelerations and multipliers in joint form.
//!
//! With tau = M vd + Φ_vᵀ λ + Aᵀ μ − Q = 0 and c = Φdd + a Φd + b Φ = e λ (Ψd + a Ψ for nonholonomic rows):
//!
//! ```text
//! [ M    Φ_vᵀ ] [vd']     [ tau_θ θ' + tau_v v' + tau_ρ ]
//! [ Φ_v  −e   ] [λ' ] = − [ c_θ θ' + c_v v' + c_ρ       ]
//! ```
//!
//! The matrix is that of the accelerations themselves, with its order of elimination and its refinement ([`JointForm`]).

use super::coordinate_derivatives::Sparse;
use super::coordinate_form::split;
use super::{JointForm, Rows, Sections};
use crate::derivatives::Linearisation;
use crate::derivatives::constraints::{SparseRow, rate_jacobian};
use crate::derivatives::direction::{Weights, joint_directions};
use crate::dynamics::Symmetric;
use crate::elements::{Element, Mechanism, RowRates, constraint_elements, loads};
use crate::graph::{ExprId, Graph};
use crate::model::ConstraintKind;
use crate::symbols::Group;
use std::collections::BTreeSet;

/// What the runtime's `JointSensitivities` want.
#[derive(Clone, Debug)]
pub struct JointDerivatives {
    /// M, and derivatives of tau and c.
    pub values: Sections,
    /// Where they stand.
    pub places: JointPlaces,
    /// Factors of the matrix.
    pub factors: Vec<ExprId>,
    /// Its pivots.
    pub pivots: Vec<ExprId>,
    /// The unknowns they belong to.
    pub columns: Vec<u32>,
    /// A solution, over [`Group::Factors`] and [`Group::Rhs`].
    pub solution: Vec<ExprId>,
}

/// Places of the derivatives in joint form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JointPlaces {
    /// Of M, tau_θ, tau_v: (velocity, velocity).
    pub tangent: Vec<(u32, u32)>,
    /// Of c_θ, c_v: (row, velocity).
    pub rows: Vec<(u32, u32)>,
    /// Of tau_ρ: (velocity, parameter).
    pub force: Vec<(u32, u32)>,
    /// Of c_ρ: (row, parameter).
    pub row: Vec<(u32, u32)>,
}

impl JointDerivatives {
    /// Of a mechanism referred to the origin and its joint form.
    pub fn new(
        g: &mut Graph,
        mechanism: &mut Mechanism<'_>,
        inertias: &[(ExprId, Symmetric)],
        forces: &[Element<'_>],
        rows: &Rows,
        form: &JointForm,
        seeds: &[ExprId],
    ) -> JointDerivatives {
        let (tree, zero) = (mechanism.tree, g.zero());
        let constraints = constraint_elements(g, mechanism, &rows.kept, |row| row);
        let elements: Vec<&Element<'_>> =
            forces.iter().chain(constraints.iter().map(|constraint| &constraint.element)).collect();
        let loads = loads(g, mechanism, &elements);
        let mut conditions = Vec::new();
        for element in &constraints {
            let kinds = element.rows.iter().map(|row| row.kind);
            for (kind, row) in kinds.zip(element.rates(g, mechanism)) {
                conditions.push(condition(g, kind, &row));
            }
        }
        let unit = [Weights::by_acceleration(g), Weights::by_position(g), Weights::by_velocity(g)];
        let directions = unit.map(|w| joint_directions(g, tree, w));
        let [_, by_position, by_velocity] = &directions;
        let mut linearisation = Linearisation::new(g, mechanism, inertias);
        let tau = linearisation.forces(g, &loads);
        let tangents = linearisation.tangents(g, &elements, by_position, &directions, &tau);
        let (holonomic, nonholonomic) = split(constraints, rows);
        let mut of_rows = |g: &mut Graph, directions| {
            let mut all = Vec::new();
            for (elements, kind) in
                [(&holonomic, ConstraintKind::Holonomic), (&nonholonomic, ConstraintKind::Nonholonomic)]
            {
                let over = |g: &mut Graph, row: &RowRates| condition(g, kind, row);
                all.extend(rate_jacobian(g, &mut linearisation, elements, directions, over));
            }
            all
        };
        let row_tangents: [Vec<SparseRow>; 2] =
            [by_position, by_velocity].map(|directions| of_rows(g, directions));

        let mut places = JointPlaces::default();
        for i in 0..tree.nv {
            for j in 0..tree.nv {
                if tangents.iter().any(|tangent| tangent.get(i, j) != zero) {
                    places.tangent.push((i as u32, j as u32));
                }
            }
        }
        for k in 0..rows.kept.len() {
            let columns: BTreeSet<usize> =
                row_tangents.iter().flat_map(|rows| rows[k].keys().copied()).collect();
            places.rows.extend(columns.into_iter().map(|j| (k as u32, j as u32)));
        }
        let mut values = Sections::default();
        for (name, tangent) in ["mass", "force_theta", "force_v"].into_iter().zip(&tangents) {
            values.push(name, places.tangent.iter().map(|&(i, j)| tangent.get(i as usize, j as usize)));
        }
        for (name, rows) in ["rows_theta", "rows_v"].into_iter().zip(&row_tangents) {
            let at = |&(k, j): &(u32, u32)| rows[k as usize].get(&(j as usize)).copied().unwrap_or(zero);
            values.push(name, places.rows.iter().map(at));
        }
        let force = Sparse::by(g, &tau, seeds);
        let row = Sparse::by(g, &conditions, seeds);
        values.push("force_rho", force.entries);
        values.push("rows_rho", row.entries);
        (places.force, places.row) = (force.places, row.places);

        let factors = form.factors.values();
        let given: Vec<ExprId> = (0..factors.len() as u32).map(|i| g.symbol(Group::Factors, i)).collect();
        let size = tree.nv + rows.kept.len();
        let rhs = (0..size as u32).map(|i| g.symbol(Group::Rhs, i)).collect();
        let solution = form.solve(g, &form.factors.with_values(&given), rhs);
        JointDerivatives {
            values,
            places,
            factors,
            pivots: form.factors.pivots(),
            columns: form.factors.columns(),
            solution,
        }
    }
}

/// c = Φdd + a Φd + b Φ, or Ψd + a Ψ
fn condition(g: &mut Graph, kind: ConstraintKind, row: &RowRates) -> ExprId {
    let [rate_gain, value_gain] = [0, 1].map(|i| g.symbol(Group::Stabilisation, i));
    let (top, rate, value) = match kind {
        ConstraintKind::Holonomic => (row.acceleration, row.rate, Some(row.value)),
        ConstraintKind::Nonholonomic => (row.rate, row.value, None),
    };
    let damped = g.mul(rate_gain, rate);
    let sum = g.add(top, damped);
    match value {
        Some(value) => {
            let sprung = g.mul(value_gain, value);
            g.add(sum, sprung)
        }
        None => sum,
    }
}
