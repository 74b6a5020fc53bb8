//! Which expressions the bundles want that identification, control and optimisation ask for.

use super::equations::{Equations, INSTANT, MOTION, Parts, at_origin, wanted};
use crate::constrained::Sparse;
use crate::derivatives::direction::{Weights, joint_directions};
use crate::derivatives::{Linearisation, Square, marker_rates};
use crate::dynamics::{
    Solved, TreeEquations, TreeFactors, body_inertias, centroidal, coriolis_terms, gravity_terms,
    inertial_parameters, inverse_dynamics, mass_matrix, regressor, right_hand_side, with_joint_forces,
    with_wrenches,
};
use crate::elements::{Element, loads, markers};
use crate::graph::{ExprId, Vec3};
use crate::kinematics::Spatial;
use crate::symbols::Group;
use hashbrown::HashMap;

pub(super) const PIVOTS: &str = "pivots of the mass matrix; all are positive where it is regular";

impl Equations<'_, '_, '_> {
    pub(super) fn inertial_parameters(&mut self) -> Parts {
        let all = inertial_parameters(self.g, self.mechanism);
        let doc = "m, m c, xx, yy, zz, xy, xz, yz about the frame's origin, body by body";
        ("Inertial parameters of the bodies.", Vec::new(), vec![wanted("pi", doc, all)])
    }

    pub(super) fn regressor(&mut self) -> Parts {
        let y = regressor(self.g, self.mechanism);
        self.structure.regressor = y.places;
        let doc = "derivatives of tau by inertial parameters, ten for each velocity and body it moves";
        let results = vec![wanted("values", doc, y.entries)];
        ("Inverse dynamics as a linear function of inertial parameters.", MOTION.to_vec(), results)
    }

    pub(super) fn gravity_terms(&mut self) -> Parts {
        let terms = gravity_terms(self.g, self.mechanism, &self.inertias);
        let results = vec![wanted("gravity", "forces along the velocities that gravity needs", terms)];
        ("What inverse dynamics needs against gravity.", vec![Group::Z], results)
    }

    pub(super) fn coriolis_terms(&mut self) -> Parts {
        let terms = coriolis_terms(self.g, self.mechanism, &self.inertias);
        let results = vec![wanted("coriolis", "forces along the velocities that velocities need", terms)];
        ("What inverse dynamics needs for velocities alone.", vec![Group::Z, Group::V], results)
    }

    pub(super) fn centroidal(&mut self) -> Parts {
        let c = centroidal(self.g, self.mechanism, &self.inertias);
        let three = |v: Vec3| v.0.to_vec();
        let six = |s: Spatial| [s.linear.0, s.angular.0].concat();
        let columns = c.momentum_matrix.iter().flat_map(|&column| six(column)).collect();
        let results = vec![
            wanted("com", "centre of mass", three(c.com)),
            wanted("com_velocity", "its velocity", three(c.com_velocity)),
            wanted("com_jacobian", "its velocity per joint velocity, by columns", {
                c.com_jacobian.iter().flat_map(|&column| column.0).collect()
            }),
            wanted("momentum", "linear momentum, angular momentum about the centre of mass", six(c.momentum)),
            wanted("momentum_matrix", "momentum per joint velocity, by columns", columns),
            wanted("momentum_bias", "rate of the momentum without accelerations", six(c.momentum_bias)),
        ];
        ("Centre of mass and momentum about it.", vec![Group::Z, Group::V], results)
    }

    pub(super) fn marker_jacobian_rates(&mut self) -> Parts {
        let mut mechanism = at_origin(self.g, self.mechanism);
        let named = markers::named(mechanism.model);
        let rates = marker_rates(self.g, &mut mechanism, &named);
        let results = vec![
            wanted("rates", "time derivatives of the Jacobians, by columns", rates.jacobian_rates),
            wanted("bias", "accelerations of the named points without those of the joints", rates.bias),
        ];
        ("Time derivatives of the Jacobians of the named points.", vec![Group::Z, Group::V], results)
    }

    pub(super) fn inverse_dynamics_external(&mut self) -> Parts {
        let loads = with_wrenches(self.g, self.mechanism, &self.loads);
        let tau = TreeEquations::new(self.g, self.mechanism, &self.inertias, &loads);
        let tau = tau.inverse_dynamics(self.g);
        let results = vec![wanted("tau", "forces along the velocities that the motion needs", tau)];
        let mut arguments = MOTION.to_vec();
        arguments.push(Group::Wrenches);
        ("Forces that the joints must supply under wrenches on the bodies.", arguments, results)
    }

    pub(super) fn forward_dynamics_external(&mut self) -> Parts {
        let (g, mechanism) = (&mut *self.g, &*self.mechanism);
        let loads = with_wrenches(g, mechanism, &self.loads);
        let loads = with_joint_forces(g, &loads);
        let equations = TreeEquations::new(g, mechanism, &self.inertias, &loads);
        let Solved { vd, pivots } = equations.forward_dynamics(g);
        let zd = (0..mechanism.tree.nq).map(|z| mechanism.rate_of(g, z)).collect();
        let results = vec![
            wanted("zd", "time derivatives of the coordinates", zd),
            wanted("vd", "accelerations", vd),
            wanted("pivots", PIVOTS, pivots),
        ];
        let arguments = [&INSTANT[..], &[Group::Tau, Group::Wrenches]].concat();
        ("Accelerations under forces along the velocities and wrenches on the bodies.", arguments, results)
    }

    pub(super) fn mass_matrix_inverse_action(&mut self) -> Parts {
        let (g, mechanism) = (&mut *self.g, &*self.mechanism);
        let m = TreeEquations::new(g, mechanism, &self.inertias, &self.loads).mass_matrix(g);
        let factors = TreeFactors::new(g, &mechanism.tree.v_parents(), m);
        let tau = (0..mechanism.tree.nv as u32).map(|j| g.symbol(Group::Tau, j)).collect();
        let results =
            vec![wanted("x", "solution", factors.solve(g, tau)), wanted("pivots", PIVOTS, factors.pivots)];
        ("Solves M x = tau.", vec![Group::Z, Group::Tau], results)
    }

    pub(super) fn inverse_dynamics_parameters(&mut self) -> Parts {
        let tau = inverse_dynamics(self.g, self.mechanism, &self.inertias, &self.loads);
        let sparse = Sparse::by(self.g, &tau, self.seeds);
        self.structure.derivatives.inverse_dynamics = sparse.places;
        let results = vec![wanted("values", "derivatives of tau that are not zero", sparse.entries)];
        ("Derivatives of inverse dynamics by the parameters.", MOTION.to_vec(), results)
    }

    /// With tau(z, v, vd, ρ) the inverse dynamics: M vd_x = −tau_x for x = θ, v, ρ, and vd_tau = M⁻¹.
    pub(super) fn forward_dynamics_derivatives(&mut self) -> Parts {
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
        let directions = unit.map(|weights| joint_directions(tree, weights));
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
        let results = vec![
            wanted("vd", "accelerations", vd),
            wanted("vd_z", "their derivatives by position, along the tangent, by columns", vd_z),
            wanted("vd_v", "by velocity, by columns", vd_v),
            wanted("vd_tau", "by forces along the velocities: the inverse mass matrix", vd_tau),
            wanted("vd_rho", "by what the model is differentiated by, by columns", vd_rho),
            wanted("pivots", PIVOTS, factors.pivots),
        ];
        let arguments = [&INSTANT[..], &[Group::Tau]].concat();
        ("Accelerations under forces along the velocities, and their derivatives.", arguments, results)
    }
}
