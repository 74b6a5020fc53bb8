//! The bundles one can ask for: their names, their families, and what a request means for a model.

/// The bundles one can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BundleKind {
    /// zd, vd from M vd = Q.
    ForwardDynamics,
    /// zd, vd by articulated bodies.
    ForwardDynamicsRecursive,
    /// M in joint form.
    MassMatrix,
    /// M in coordinate form.
    MassMatrixCoordinates,
    /// tau = M vd − Q.
    InverseDynamics,
    /// Its derivatives by position, velocity and acceleration.
    InverseDynamicsDerivatives,
    /// Kinetic and potential energy, power.
    Energy,
    /// Positions, velocities and accelerations of all named points.
    Markers,
    /// Their Jacobians.
    MarkerJacobians,
    /// The model's outputs.
    Outputs,
    /// r and the constraints, in coordinate form. This and the next seven come together.
    Residual,
    /// r, the constraints and the leading matrix.
    Newton,
    /// M and the constraints' Jacobians.
    Projection,
    /// Φd and Ψ.
    ConstraintRates,
    /// Φdd and Ψd.
    ConstraintAccelerations,
    /// Factors of the leading matrix.
    Factor,
    /// A solution with them.
    Solve,
    /// A solution with the transposed matrix.
    SolveTransposed,
    /// Accelerations and multipliers, in joint form.
    ConstrainedDynamics,
    /// The way back onto the constraints, in joint form.
    ConstraintCorrection,
    /// What the joints transmit.
    Reactions,
    /// The model's objectives.
    Objectives,
    /// Derivatives of the start values.
    StartDerivatives,
    /// Derivatives of the residual and the constraints, in coordinate form. This and the next three come together.
    Linearise,
    /// Derivatives of the projections.
    LineariseProjections,
    /// Integrands of the objectives and their derivatives.
    IntegrandDerivatives,
    /// Terminal terms of the objectives and their derivatives.
    TerminalDerivatives,
    /// Derivatives of accelerations and multipliers, in joint form. This and the next three come together.
    JointLinearise,
    /// A solution with the factors it writes.
    JointSolve,
    /// Integrands of the objectives and their derivatives, in joint form.
    JointIntegrandDerivatives,
    /// Terminal terms of the objectives and their derivatives, in joint form.
    JointTerminalDerivatives,
    /// Inertial parameters of the bodies.
    InertialParameters,
    /// Inverse dynamics as a linear function of them.
    Regressor,
    /// Forces that gravity needs along the velocities.
    GravityTerms,
    /// Forces that velocities alone need.
    CoriolisTerms,
    /// Centre of mass, and momentum about it.
    Centroidal,
    /// Time derivatives of the Jacobians of the named points.
    MarkerJacobianRates,
    /// tau = M vd − Q − (wrenches on the bodies).
    InverseDynamicsExternal,
    /// zd, vd from M vd = Q + tau + (wrenches on the bodies). This and the next two are for models without constraints.
    ForwardDynamicsExternal,
    /// x from M x = tau.
    MassMatrixInverseAction,
    /// Derivatives of vd from M vd = Q + tau by position, velocity, tau and parameters.
    ForwardDynamicsDerivatives,
    /// Derivatives of inverse dynamics by parameters.
    InverseDynamicsParameters,
}

impl BundleKind {
    /// All of them.
    pub const ALL: [BundleKind; 42] = [
        BundleKind::ForwardDynamics,
        BundleKind::ForwardDynamicsRecursive,
        BundleKind::MassMatrix,
        BundleKind::MassMatrixCoordinates,
        BundleKind::InverseDynamics,
        BundleKind::InverseDynamicsDerivatives,
        BundleKind::Energy,
        BundleKind::Markers,
        BundleKind::MarkerJacobians,
        BundleKind::Outputs,
        BundleKind::Residual,
        BundleKind::Newton,
        BundleKind::Projection,
        BundleKind::ConstraintRates,
        BundleKind::ConstraintAccelerations,
        BundleKind::Factor,
        BundleKind::Solve,
        BundleKind::SolveTransposed,
        BundleKind::ConstrainedDynamics,
        BundleKind::ConstraintCorrection,
        BundleKind::Reactions,
        BundleKind::Objectives,
        BundleKind::StartDerivatives,
        BundleKind::Linearise,
        BundleKind::LineariseProjections,
        BundleKind::IntegrandDerivatives,
        BundleKind::TerminalDerivatives,
        BundleKind::JointLinearise,
        BundleKind::JointSolve,
        BundleKind::JointIntegrandDerivatives,
        BundleKind::JointTerminalDerivatives,
        BundleKind::InertialParameters,
        BundleKind::Regressor,
        BundleKind::GravityTerms,
        BundleKind::CoriolisTerms,
        BundleKind::Centroidal,
        BundleKind::MarkerJacobianRates,
        BundleKind::InverseDynamicsExternal,
        BundleKind::ForwardDynamicsExternal,
        BundleKind::MassMatrixInverseAction,
        BundleKind::ForwardDynamicsDerivatives,
        BundleKind::InverseDynamicsParameters,
    ];

    /// What sensitivities of implicit runs need beside [`BundleKind::COORDINATE_FORM`], one family.
    pub const SENSITIVITIES: [BundleKind; 5] = [
        BundleKind::StartDerivatives,
        BundleKind::Linearise,
        BundleKind::LineariseProjections,
        BundleKind::IntegrandDerivatives,
        BundleKind::TerminalDerivatives,
    ];

    /// What sensitivities of explicit runs need beside forward dynamics, one family.
    pub const JOINT_SENSITIVITIES: [BundleKind; 5] = [
        BundleKind::StartDerivatives,
        BundleKind::JointLinearise,
        BundleKind::JointSolve,
        BundleKind::JointIntegrandDerivatives,
        BundleKind::JointTerminalDerivatives,
    ];

    /// Those in coordinate form, one family: implicit integrators need them all.
    pub const COORDINATE_FORM: [BundleKind; 8] = [
        BundleKind::Residual,
        BundleKind::Newton,
        BundleKind::Projection,
        BundleKind::ConstraintRates,
        BundleKind::ConstraintAccelerations,
        BundleKind::Factor,
        BundleKind::Solve,
        BundleKind::SolveTransposed,
    ];

    /// Those of joint form that know no constraints.
    pub const TREE: [BundleKind; 10] = [
        BundleKind::ForwardDynamics,
        BundleKind::ForwardDynamicsRecursive,
        BundleKind::MassMatrix,
        BundleKind::MassMatrixCoordinates,
        BundleKind::InverseDynamics,
        BundleKind::InverseDynamicsDerivatives,
        BundleKind::Energy,
        BundleKind::Markers,
        BundleKind::MarkerJacobians,
        BundleKind::Outputs,
    ];

    /// What identification, control and optimisation ask for beside [`BundleKind::TREE`].
    pub const ROBOTICS: [BundleKind; 11] = [
        BundleKind::InertialParameters,
        BundleKind::Regressor,
        BundleKind::GravityTerms,
        BundleKind::CoriolisTerms,
        BundleKind::Centroidal,
        BundleKind::MarkerJacobianRates,
        BundleKind::InverseDynamicsExternal,
        BundleKind::ForwardDynamicsExternal,
        BundleKind::MassMatrixInverseAction,
        BundleKind::ForwardDynamicsDerivatives,
        BundleKind::InverseDynamicsParameters,
    ];

    /// Those that solve with the mass matrix of a tree alone: they do not exist for models with constraints.
    pub const UNCONSTRAINED: [BundleKind; 3] = [
        BundleKind::ForwardDynamicsExternal,
        BundleKind::MassMatrixInverseAction,
        BundleKind::ForwardDynamicsDerivatives,
    ];

    /// What simulation and its results need; of a model that is differentiated, gradients too.
    pub const STANDARD: [BundleKind; 5] = [
        BundleKind::ForwardDynamics,
        BundleKind::Energy,
        BundleKind::Markers,
        BundleKind::Outputs,
        BundleKind::Objectives,
    ];

    /// What a request means for a model: forward dynamics under constraints is the constrained families, what solves with the
    /// tree's mass matrix alone does not exist there, all of
    /// [`BundleKind::STANDARD`] of a model that is differentiated brings the derivatives of its dynamics, and one bundle of a
    /// family brings the others.
    pub(super) fn resolve(
        requested: &[BundleKind],
        constrained: bool,
        differentiated: bool,
    ) -> Vec<BundleKind> {
        let mut kinds = Vec::new();
        for &kind in requested {
            match kind {
                BundleKind::ForwardDynamics | BundleKind::ForwardDynamicsRecursive if constrained => {
                    kinds.extend(BundleKind::COORDINATE_FORM);
                    kinds.extend([
                        BundleKind::ConstrainedDynamics,
                        BundleKind::ConstraintCorrection,
                        BundleKind::Reactions,
                    ]);
                }
                kind if constrained && BundleKind::UNCONSTRAINED.contains(&kind) => {}
                kind => kinds.push(kind),
            }
        }
        if differentiated && BundleKind::STANDARD.iter().all(|kind| requested.contains(kind)) {
            kinds.extend(if constrained {
                BundleKind::SENSITIVITIES
            } else {
                BundleKind::JOINT_SENSITIVITIES
            });
        }
        let of = |family: &[BundleKind], kinds: &[BundleKind]| {
            let mut own = family.iter().filter(|&&kind| kind != BundleKind::StartDerivatives);
            own.any(|kind| kinds.contains(kind))
        };
        for family in [BundleKind::SENSITIVITIES, BundleKind::JOINT_SENSITIVITIES] {
            if of(&family, &kinds) {
                kinds.extend(family);
            }
        }
        if of(&BundleKind::COORDINATE_FORM, &kinds) || of(&BundleKind::SENSITIVITIES, &kinds) {
            kinds.extend(BundleKind::COORDINATE_FORM);
        }
        // The order in which bundles are asked for, or how often, changes nothing.
        kinds.sort();
        kinds.dedup();
        kinds
    }

    /// The function's name.
    pub fn name(self) -> &'static str {
        match self {
            BundleKind::ForwardDynamics => "forward_dynamics",
            BundleKind::ForwardDynamicsRecursive => "forward_dynamics_recursive",
            BundleKind::MassMatrix => "mass_matrix",
            BundleKind::MassMatrixCoordinates => "mass_matrix_coordinates",
            BundleKind::InverseDynamics => "inverse_dynamics",
            BundleKind::InverseDynamicsDerivatives => "inverse_dynamics_derivatives",
            BundleKind::Energy => "energy",
            BundleKind::Markers => "markers",
            BundleKind::MarkerJacobians => "marker_jacobians",
            BundleKind::Outputs => "outputs",
            BundleKind::Residual => "residual",
            BundleKind::Newton => "newton",
            BundleKind::Projection => "projection",
            BundleKind::ConstraintRates => "constraint_rates",
            BundleKind::ConstraintAccelerations => "constraint_accelerations",
            BundleKind::Factor => "factor",
            BundleKind::Solve => "solve",
            BundleKind::SolveTransposed => "solve_transposed",
            BundleKind::ConstrainedDynamics => "constrained_dynamics",
            BundleKind::ConstraintCorrection => "constraint_correction",
            BundleKind::Reactions => "reactions",
            BundleKind::Objectives => "objectives",
            BundleKind::StartDerivatives => "start_derivatives",
            BundleKind::Linearise => "linearise",
            BundleKind::LineariseProjections => "linearise_projections",
            BundleKind::IntegrandDerivatives => "integrand_derivatives",
            BundleKind::TerminalDerivatives => "terminal_derivatives",
            BundleKind::JointLinearise => "joint_linearise",
            BundleKind::JointSolve => "joint_solve",
            BundleKind::JointIntegrandDerivatives => "joint_integrand_derivatives",
            BundleKind::JointTerminalDerivatives => "joint_terminal_derivatives",
            BundleKind::InertialParameters => "inertial_parameters",
            BundleKind::Regressor => "regressor",
            BundleKind::GravityTerms => "gravity_terms",
            BundleKind::CoriolisTerms => "coriolis_terms",
            BundleKind::Centroidal => "centroidal",
            BundleKind::MarkerJacobianRates => "marker_jacobian_rates",
            BundleKind::InverseDynamicsExternal => "inverse_dynamics_external",
            BundleKind::ForwardDynamicsExternal => "forward_dynamics_external",
            BundleKind::MassMatrixInverseAction => "mass_matrix_inverse_action",
            BundleKind::ForwardDynamicsDerivatives => "forward_dynamics_derivatives",
            BundleKind::InverseDynamicsParameters => "inverse_dynamics_parameters",
        }
    }

    /// The bundle with this name.
    pub fn from_name(name: &str) -> Option<BundleKind> {
        BundleKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}
