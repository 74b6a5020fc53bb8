//! Expressions of the bundles for identification, control and optimisation.

use super::equations::{Equations, Results, at_origin};
use crate::constrained::Sparse;
use crate::derivatives::direction::{Weights, joint_directions};
use crate::derivatives::{Linearisation, Square, marker_rates};
use crate::dynamics::{
    Solved, TreeEquations, TreeFactors, body_inertias, centroidal, inverse_dynamics, mass_matrix, regressor,
    right_hand_side, with_joint_forces, with_wrenches,
};
use crate::elements::{Element, loads, markers};
use crate::graph::ExprId;
use crate::kinematics::Spatial;
use crate::symbols::Group;
use hashbrown::HashMap;

impl Equations<'_, '_, '_> {
    pub(super) fn regressor(&mut self) -> Results {
        let y = regressor(self.g, self.mechanism);
        self.structure.regressor = y.places;
        vec![y.entries]
    }

    pub(super) fn centroidal(&mut self) -> Results {
        let c = centroidal(self.g, self.mechanism, &self.inertias);
        let six = |s: Spatial| [s.linear.0, s.angular.0].concat();
        vec![
            c.com.0.to_vec(),
            c.com_velocity.0.to_vec(),
            c.com_jacobian.iter().flat_map(|&column| column.0).collect(),
            six(c.momentum),
            c.momentum_matrix.iter().flat_map(|&column| six(column)).collect(),
            six(c.momentum_bias),
        ]
    }

    pub(super) fn marker_jacobian_rates(&mut self) -> Results {
        let mut mechanism = at_origin(self.g, self.mechanism);
        let named = markers::named(mechanism.model);
        let rates = marker_rates(self.g, &mut mechanism, &named);
        vec![rates.jacobian_rates, rates.bias]
    }

    pub(super) fn inverse_dynamics_external(&mut self) -> Results {
        let loads = with_wrenches(self.g, self.mechanism, &self.loads);
        let tau = TreeEquations::new(self.g, self.mechanism, &self.inertias, &loads);
        vec![tau.inverse_dynamics(self.g)]
    }

    pub(super) fn forward_dynamics_external(&mut self) -> Results {
        let loads = with_wrenches(self.g, self.mechanism, &self.loads);
        let loads = with_joint_forces(self.g, &loads);
        let equations = TreeEquations::new(self.g, self.mechanism, &self.inertias, &loads);
        let Solved { vd, pivots } = equations.forward_dynamics(self.g);
        vec![self.coordinate_rates(), vd, pivots]
    }

    pub(super) fn mass_matrix_inverse_action(&mut self) -> Results {
        let (g, mechanism) = (&mut *self.g, &*self.mechanism);
        let m = TreeEquations::new(g, mechanism, &self.inertias, &self.loads).mass_matrix(g);
        let factors = TreeFactors::new(g, &mechanism.tree.v_parents(), m);
        let tau = (0..mechanism.tree.nv as u32).map(|j| g.symbol(Group::Tau, j)).collect();
        vec![factors.solve(g, tau), factors.pivots]
    }

    pub(super) fn inverse_dynamics_parameters(&mut self) -> Results {
        let tau = inverse_dynamics(self.g, self.mechanism, &self.inertias, &self.loads);
        let sparse = Sparse::by(self.g, &tau, self.seeds);
        self.structure.derivatives.inverse_dynamics = sparse.places;
        vec![sparse.entries]
    }

    /// With tau(z, v, vd, ρ) the inverse dynamics: M vd_x = −tau_x for x = θ, v, ρ, and vd_tau = M⁻¹.
    pub(super) fn forward_dynamics_derivatives(&mut self) -> Results {
        let g = &mut *self.g;
        let mut mechanism = at_origin(g, self.mechanism);
        let inertias = body_inertias(g, &mechanism);
        let forces: Vec<&Element<'_>> = self.forces.iter().collect();
        let loads = loads(g, &mut mechanism, &forces);
        let tree = mechanism.tree;
        let m = mass_matrix(g, &mechanism, &inertias);
        let factors = TreeFactors::new(g, &tree.v_parents(), m);
        let pushed = with_joint_forces(g, &loads);
        let rhs = right_hand_side(g, &mechanism, &inertias, &pushed);
        let vd = factors.solve(g, rhs);

        let unit = [Weights::by_position(g), Weights::by_velocity(g)];
        let directions = unit.map(|weights| joint_directions(g, tree, weights));
        let mut linearisation = Linearisation::new(g, &mut mechanism, &inertias);
        let tau = linearisation.forces(g, &loads);
        let tangents =
            linearisation.tangents(g, &forces, &directions[0], &directions, &tau).map(Square::dense);
        let sparse = Sparse::by(g, &tau, self.seeds);
        let mut by_parameters = vec![g.zero(); tree.nv * self.seeds.len()];
        for (&(i, k), &entry) in sparse.places.iter().zip(&sparse.entries) {
            by_parameters[k as usize * tree.nv + i as usize] = entry;
        }
        let here: HashMap<ExprId, ExprId> =
            vd.iter().enumerate().map(|(j, &value)| (g.symbol(Group::Vd, j as u32), value)).collect();
        let [position, velocity] = tangents;
        let [vd_z, vd_v, vd_rho] = [position, velocity, by_parameters].map(|matrix| {
            let negative: Vec<ExprId> = matrix.into_iter().map(|entry| g.neg(entry)).collect();
            let columns = g.substitute(&negative, &here);
            columns.chunks(tree.nv.max(1)).flat_map(|column| factors.solve(g, column.to_vec())).collect()
        });
        let vd_tau = factors.inverse(g);
        vec![vd, vd_z, vd_v, vd_tau, vd_rho, factors.pivots]
    }
}
