//! The table of all bundles.

/// Calls `macro!` with `more` and the table: `bundles! { [macro] more }`. [`for_each_trait!`](crate::for_each_trait) and
/// [`for_each_list!`](crate::for_each_list) hand out the parts of it that others need.
///
/// ```text
/// trait TRAIT in FAMILY {
///     places { METHOD: TYPE, … }                  what the trait tells of the structure, beside its bundles
///     /// The sentence above the generated function.
///     KIND = METHOD(ARGUMENT: WHAT, …) reads [GROUPS]
///         -> FORM(RESULT: [SHAPE] "what it is", …)
///         { pivots: PIVOTS, exists: WHEN, cost: [TERMS], sections: SECTIONS }
/// }
/// ```
///
/// *Arguments* stand in the order of the method, before the scratch `w`; WHAT is `At`, `Motion`, `Impulses`, `Weights`,
/// `Stabilisation`, `Time` or the [`Group`](crate::Group) of a slice. *Groups* are the arguments of the generated function, in their order.
///
/// *Forms* of results: `slices`; `array` of constant length; `in_place`, which is also the right-hand side; the fields of a
/// struct, `(name: Struct)`. *Shapes* are products of a number and of [`Size`](crate::Size)s, matrices by columns. Results `[nx]` are not
/// computed, since no model has first-order states yet; results `[entries]` are the first part of a longer slice.
///
/// *Sections* of a long list: `RESULT as STRUCT(FROM: TYPE, …) { SECTION: LENGTH, "what it is"; … }`, in order; lengths are expressions over
/// what they come from.
#[macro_export]
macro_rules! bundles {
    ([$($callback:tt)*] $($more:tt)*) => { $($callback)*! { $($more)*
        trait ForwardDynamics in Tree {
            places {}
            /// Accelerations from M vd = Q, factored for the tree's sparsity.
            ForwardDynamics = forward_dynamics(at: At) reads [Time Z V U]
                -> slices(zd: [nq] "time derivatives of the coordinates", vd: [nv] "accelerations", xd: [nx] "rates of first-order states")
                { pivots: Positive, exists: Replaced, cost: [1 link, 1 solve], sections: none }
        }
        trait ForwardDynamicsRecursive in Tree {
            places {}
            /// Accelerations by the articulated-body recursion.
            ForwardDynamicsRecursive = forward_dynamics_recursive(at: At) reads [Time Z V U]
                -> slices(zd: [nq] "time derivatives of the coordinates", vd: [nv] "accelerations", xd: [nx] "rates of first-order states")
                { pivots: Positive, exists: Replaced, cost: [1 link], sections: none }
        }
        trait MassMatrix in Tree {
            places {}
            /// Mass matrix in joint form.
            MassMatrix = mass_matrix(at: At) reads [Z]
                -> slices(m: [nv nv] "mass matrix, by columns")
                { pivots: None, exists: Always, cost: [1 link, 1 entry, 1 nv nv], sections: none }
        }
        trait MassMatrixCoordinates in Tree {
            places {}
            /// Mass matrix in coordinate form, singular along Euler parameters.
            MassMatrixCoordinates = mass_matrix_coordinates(at: At) reads [Z]
                -> slices(m: [nq nq] "mass matrix, by columns")
                { pivots: None, exists: Always, cost: [1 link, 1 entry, 4 nq nq], sections: none }
        }
        trait InverseDynamics in Tree {
            places {}
            /// Inverse dynamics: tau = M vd − Q.
            InverseDynamics = inverse_dynamics(at: At, vd: Vd) reads [Time Z V Vd U]
                -> slices(tau: [nv] "generalised forces along the velocities")
                { pivots: None, exists: Always, cost: [1 link], sections: none }
        }
        trait InverseDynamicsDerivatives in Tree {
            places {}
            /// Derivatives of inverse dynamics.
            InverseDynamicsDerivatives = inverse_dynamics_derivatives(at: At, vd: Vd) reads [Time Z V Vd U]
                -> slices(
                    tau_z: [nv nv] "derivatives by position, along the tangent, by columns",
                    tau_v: [nv nv] "derivatives by velocity, by columns",
                    m: [nv nv] "mass matrix: derivatives by acceleration, by columns",
                )
                { pivots: None, exists: Always, cost: [2 link, 5 entry, 3 nv nv], sections: none }
        }
        trait Energy in Tree {
            places {}
            /// Energies and the power that changes them.
            Energy = energy(at: At) reads [Time Z V U]
                -> array(out: [3] "kinetic, potential, power of non-conservative forces")
                { pivots: None, exists: Always, cost: [1 link], sections: none }
        }
        trait Markers in Tree {
            places {}
            /// Positions, velocities and accelerations of the markers.
            Markers = markers(at: At, vd: Vd) reads [Z V Vd]
                -> slices(
                    positions: [3 n_markers] "world positions",
                    velocities: [3 n_markers] "world velocities",
                    accelerations: [3 n_markers] "world accelerations",
                )
                { pivots: None, exists: Always, cost: [1 link, 60 points], sections: none }
        }
        trait MarkerJacobians in Tree {
            places {}
            /// Jacobians of the markers.
            MarkerJacobians = marker_jacobians(at: At) reads [Z]
                -> slices(jacobians: [3 n_markers nv] "velocities of the markers per joint velocity, by columns")
                { pivots: None, exists: Always, cost: [1 link, 3 points nv], sections: none }
        }
        trait Outputs in Tree {
            places {}
            /// The model's outputs.
            Outputs = outputs(at: At, vd: Vd) reads [Time Z V Vd U]
                -> slices(out: [n_outputs] "outputs")
                { pivots: None, exists: Always, cost: [1 link], sections: none }
        }
        trait Constrained in CoordinateForm {
            places { pattern: Pattern<'_>, held: &[bool], dependent: &[bool] }
            /// Residual of the equations of motion, and the constraints.
            Residual = residual(at: Motion, lambda: Lambda) reads [Time Z Zd Zdd U Lambda]
                -> slices(
                    r: [nq] "residual of the equations of motion",
                    phi: [rows] "constraints: holonomic, normalisation, nonholonomic",
                )
                { pivots: None, exists: Always, cost: [1 link], sections: none }
            /// Residual, constraints, and the entries of the leading matrix.
            Newton = newton(at: Motion, lambda: Lambda, weights: Weights) reads [Time Z Zd Zdd U Lambda Weights]
                -> slices(
                    r: [nq] "residual of the equations of motion",
                    phi: [rows] "constraints: holonomic, normalisation, nonholonomic",
                    matrix: [entries] "W, Φ_z, A, A'",
                )
                { pivots: None, exists: Always, cost: [2 link, 3 entry, 1 nq nq], sections: none }
            /// Entries of the projection matrix.
            Projection = projection(t: Time, z: Z, u: U) reads [Time Z U]
                -> slices(matrix: [entries] "M, Φ_z, A, A")
                { pivots: None, exists: Always, cost: [1 link, 1 entry, 4 nq nq], sections: none }
            /// Constraints at the level of velocities.
            ConstraintRates = constraint_rates(at: Motion) reads [Time Z Zd U]
                -> slices(phid: [rows] "Φd, Ψ")
                { pivots: None, exists: Always, cost: [1 link], sections: none }
            /// Constraints at the level of accelerations.
            ConstraintAccelerations = constraint_accelerations(at: Motion) reads [Time Z Zd Zdd U]
                -> slices(phidd: [rows] "Φdd, Ψd")
                { pivots: None, exists: Always, cost: [1 link], sections: none }
            // What the fill of factors will be is known only once it is there: the limit on the finished graph holds.
            /// Factors of the leading matrix, in an order chosen for its sparsity.
            Factor = factor(matrix: Matrix) reads [Matrix]
                -> slices(factors: [n_factors] "1/pivot, column of L, row of U, for each pivot")
                { pivots: Leading, exists: Always, cost: [], sections: none }
            /// Solves with the factors.
            Solve = solve(factors: Factors) reads [Factors Rhs]
                -> in_place(x: [unknowns] "solution")
                { pivots: None, exists: Always, cost: [], sections: none }
            /// Solves the transposed system with the factors.
            SolveTransposed = solve_transposed(factors: Factors) reads [Factors Rhs]
                -> in_place(x: [unknowns] "solution")
                { pivots: None, exists: Always, cost: [], sections: none }
        }
        trait FusedSteps in FusedSteps {
            places { fuses_steps: bool }
            /// Newton's first correction: residual, leading matrix, factors and solution at once.
            NewtonStep = newton_step(at: Motion, lambda: Lambda, weights: Weights, compliance: Compliance)
                reads [Time Z Zd Zdd U Lambda Weights Compliance]
                -> slices(
                    phi: [rows] "constraints: holonomic, normalisation, nonholonomic",
                    matrix: [entries] "W, Φ_z, A, A'",
                    factors: [n_factors] "1/pivot, column of L, row of U, for each pivot",
                    x: [unknowns] "correction of accelerations and multipliers",
                )
                { pivots: Leading, exists: Fused, cost: [], sections: none }
            /// Newton's next correction, with factors that are there.
            CorrectStep = correct_step(at: Motion, lambda: Lambda, weights: Weights, factors: Factors)
                reads [Time Z Zd Zdd U Lambda Weights Factors]
                -> slices(
                    phi: [rows] "constraints: holonomic, normalisation, nonholonomic",
                    x: [unknowns] "correction of accelerations and multipliers",
                )
                { pivots: None, exists: Fused, cost: [], sections: none }
            /// Both projections at once.
            ProjectStep = project_step(at: Motion, compliance: Compliance) reads [Time Z Zd Zdd U Compliance]
                -> slices(
                    velocity: [unknowns] "d, σ",
                    acceleration: [unknowns] "e, κ",
                    phid: [rows] "what is left of Φd, Ψ",
                    phidd: [rows] "what is left of Φdd, Ψd",
                )
                { pivots: Leading, exists: Fused, cost: [], sections: none }
        }
        trait ConstrainedDynamics in JointForm {
            places {}
            /// Accelerations and multipliers under the constraints.
            ConstrainedDynamics = constrained_dynamics(at: At, stabilisation: Stabilisation) reads [Time Z V U Stabilisation]
                -> slices(
                    zd: [nq] "time derivatives of the coordinates",
                    vd: [nv] "accelerations",
                    xd: [nx] "rates of first-order states",
                    lambda: [joint_rows] "multipliers",
                )
                { pivots: Joint, exists: Always, cost: [1 link, 1 entry, 1 eliminations], sections: none }
        }
        trait ConstraintCorrection in JointForm {
            places {}
            /// Corrections of the state onto the constraints.
            ConstraintCorrection = constraint_correction(at: At) reads [Time Z V U]
                -> slices(
                    dz: [nq] "correction of the coordinates",
                    dv: [nv] "correction of the velocities",
                    phi: [n_holonomic] "holonomic rows",
                    phid: [joint_rows] "their rates, and the nonholonomic rows",
                )
                { pivots: None, exists: Always, cost: [1 link, 1 entry, 1 eliminations], sections: none }
        }
        trait ConstraintRows in MatrixR {
            places { independent: &[bool] }
            /// Constraints, their rates and how velocities change them, in joint form.
            ConstraintRows = constraint_rows(at: At) reads [Time Z V U]
                -> slices(
                    phi: [n_holonomic] "holonomic rows",
                    phid: [joint_rows] "their rates, and the nonholonomic rows",
                    jacobian: [joint_rows nv] "their derivatives by the velocities, by columns",
                )
                { pivots: None, exists: Always, cost: [1 link, 1 entry], sections: none }
        }
        trait Reactions in JointForm {
            places {}
            /// Reactions of the joints.
            Reactions = reactions(at: At, vd: Vd, lambda: Lambda) reads [Time Z V Vd U Lambda]
                -> slices(reactions: [6 n_joints] "force and torque on each joint's child")
                { pivots: None, exists: Always, cost: [1 link], sections: none }
        }
        trait Objectives in Judged {
            places {}
            /// The model's objectives.
            Objectives = objectives(at: At, vd: Vd, lambda: Lambda) reads [Time Z V Vd U Lambda]
                -> slices(
                    integrands: [n_objectives] "integrands of the objectives",
                    terminals: [n_objectives] "terminal terms of the objectives",
                )
                { pivots: None, exists: Always, cost: [1 link], sections: none }
        }
        trait StartDerivatives in Start {
            places { start_places: [Places<'_>; 2] }
            /// Derivatives of the start values.
            StartDerivatives = start_derivatives() reads []
                -> slices(values: [start] "of coordinates, then of velocities, by the parameters")
                { pivots: None, exists: Always, cost: [], sections: values as StartValues(z_places: Places, v_places: Places) {
                    z: z_places.len(), "z_ρ";
                    v: v_places.len(), "v_ρ";
                } }
        }
        trait Sensitivities in Sensitivities {
            places { parameter_places: ParameterPlaces<'_>, product_places: [Places<'_>; 2], projection_columns: usize, fuses_derivatives: bool, fuses_transposed: bool }
            /// Derivatives of the residual and the constraints.
            Linearise = linearise(at: Motion, lambda: Lambda) reads [Time Z Zd Zdd U Lambda]
                -> slices(values: [newton] "M, C, K, Φ_z, A, Ψ_z, and the derivatives of r, Φ, Ψ by the parameters")
                { pivots: None, exists: Always, cost: [2 link, 1 parameters link, 5 entry, 3 nq nq],
                sections: values as MotionValues(pattern: Pattern, places: ParameterPlaces) {
                    mass: pattern.tangent.len(), "M = r_zdd";
                    by_velocity: pattern.tangent.len(), "C = r_zd";
                    by_position: pattern.tangent.len(), "K = r_z, with all of λ";
                    holonomic: pattern.holonomic.len(), "Φ_z";
                    nonholonomic: pattern.nonholonomic.len(), "A = Ψ_zd";
                    nonholonomic_z: pattern.nonholonomic.len(), "Ψ_z";
                    residual: places.residual.len(), "r_ρ";
                    constraints: places.constraints.len(), "Φ_ρ, Ψ_ρ";
                } }
            /// Derivatives of the projections.
            LineariseProjections = linearise_projections(at: Motion, impulses: Impulses)
                reads [Time Z Zd Zdd U VelocityImpulse VelocityMultipliers AccelerationImpulse AccelerationMultipliers]
                -> slices(values: [projections] "of both impulses, of rates and accelerations of the constraints, by z and by the parameters")
                { pivots: None, exists: Always, cost: [3 link, 1 parameters link, 5 entry, 2 nq nq],
                sections: values as ProjectionValues(pattern: Pattern, places: ParameterPlaces) {
                    velocity_impulse: pattern.tangent.len(), "(M d + Φ_zᵀ σ + Aᵀ σ')_z";
                    acceleration_impulse: pattern.tangent.len(), "(M e + Φ_zᵀ κ + Aᵀ κ')_z";
                    rates_z: pattern.holonomic.len(), "Φd_z";
                    nonholonomic_z: pattern.nonholonomic.len(), "Ψ_z";
                    accelerations_z: pattern.holonomic.len(), "Φdd_z";
                    nonholonomic_rates_z: pattern.nonholonomic.len(), "Ψd_z";
                    nonholonomic_rates_zd: pattern.nonholonomic.len(), "Ψd_zd";
                    velocity_impulse_rho: places.impulse.len(), "(M d + …)_ρ";
                    acceleration_impulse_rho: places.impulse.len(), "(M e + …)_ρ";
                    rates: places.rates.len(), "Φd_ρ, Ψ_ρ";
                    accelerations: places.accelerations.len(), "Φdd_ρ, Ψd_ρ";
                } }
            // After the lists, which it has in it.
            /// The derivative of a step with both projections: lists, factors, and solutions for all parameters at once.
            DifferentiateStep = differentiate_step(
                    at: Motion, lambda: Lambda, impulses: Impulses, weights: Weights, compliance: Compliance,
                    p_rho: PositionColumns, q_rho: VelocityColumns
                )
                reads [Time Z Zd Zdd U Lambda Weights Compliance VelocityImpulse VelocityMultipliers AccelerationImpulse
                    AccelerationMultipliers PositionColumns VelocityColumns]
                -> slices(
                    z_rho: [nq parameters] "of z",
                    zd_rho: [nq parameters] "of zd",
                    zdd_rho: [nq parameters] "of zdd",
                    lambda_rho: [rows parameters] "of λ",
                    delta_rho: [nq parameters] "of zdd before its projection",
                    left: [2 unknowns] "residuals of Newton's system and of the first projection's, columns added up",
                    sizes: [2 unknowns] "sizes of what they sum",
                )
                { pivots: Leading, exists: Fused, cost: [], sections: none }
            /// The transposed derivative of a step with both projections: lists, factors, and solutions for the weights of all objectives at once.
            TransposeStep = transpose_step(
                    at: Motion, lambda: Lambda, impulses: Impulses, weights: Weights, compliance: Compliance,
                    z_bar: PositionWeights, zd_bar: VelocityWeights, a_bar: AccelerationWeights, lambda_bar: MultiplierWeights,
                    delta_bar: CorrectionWeights
                )
                reads [Time Z Zd Zdd U Lambda Weights Compliance VelocityImpulse VelocityMultipliers AccelerationImpulse
                    AccelerationMultipliers PositionWeights VelocityWeights AccelerationWeights MultiplierWeights CorrectionWeights]
                -> slices(
                    p_bar: [nq n_objectives] "weights of positions before the correction of accelerations",
                    q_bar: [nq n_objectives] "weights of velocities before it",
                    rho_bar: [parameters n_objectives] "weights of the parameters",
                    left: [2 unknowns] "residuals of Newton's transposed system and of the projections', columns added up",
                    sizes: [2 unknowns] "sizes of what they sum",
                )
                { pivots: Leading, exists: Fused, cost: [], sections: none }
            /// Transposed product with the derivatives of residual and constraints: those of yᵀ (r; Φ; Ψ).
            NewtonProduct = newton_product(at: Motion, lambda: Lambda, y: Costate) reads [Time Z Zd Zdd U Lambda Costate]
                -> slices(
                    z: [nq] "by z",
                    zd: [nq] "by zd",
                    rho: [newton_parameters] "by parameters, but for what tables pass on",
                    read: [newton_reads] "by values read from tables of parameters",
                    places: [newton_reads] "their places among all values of tables",
                )
                { pivots: None, exists: Cheaper, cost: [4 link], sections: none }
            /// Transposed product with the derivatives of the constraints' accelerations by velocities.
            AccelerationProduct = acceleration_product(at: Motion, ydd: AccelerationCostate)
                reads [Time Z Zd Zdd U AccelerationCostate]
                -> slices(zd: [nq] "derivatives of ydd_rowsᵀ (Φdd; Ψd) by zd")
                { pivots: None, exists: Cheaper, cost: [4 link], sections: none }
            /// Transposed product with the derivatives of both projections: those of ydᵀ (M d + Bᵀσ; Φd; Ψ) + yddᵀ (M e + Bᵀκ; Φdd; Ψd).
            ProjectionProduct = projection_product(at: Motion, impulses: Impulses, yd: VelocityCostate, ydd: AccelerationCostate)
                reads [Time Z Zd Zdd U VelocityImpulse VelocityMultipliers AccelerationImpulse AccelerationMultipliers
                    VelocityCostate AccelerationCostate]
                -> slices(
                    z: [nq] "by z",
                    rho: [projection_parameters] "by parameters, but for what tables pass on",
                    read: [projection_reads] "by values read from tables of parameters",
                    places: [projection_reads] "their places among all values of tables",
                )
                { pivots: None, exists: Cheaper, cost: [8 link], sections: none }
            /// Derivatives of ydᵀ P d + yddᵀ P e, where P is the symmetric part of the leading matrix W.
            TangentProduct = tangent_product(
                at: Motion, lambda: Lambda, weights: Weights, impulses: Impulses, yd: VelocityCostate, ydd: AccelerationCostate
            )
                reads [Time Z Zd Zdd U Lambda Weights VelocityImpulse AccelerationImpulse VelocityCostate AccelerationCostate]
                -> slices(
                    z: [nq] "by z",
                    zd: [nq] "by zd",
                    zdd: [nq] "by zdd",
                    multipliers: [rows] "by λ",
                    rho: [parameters] "by the parameters",
                )
                { pivots: None, exists: Tangent, cost: [8 link, 12 entry, 4 nq nq], sections: none }
            /// Transposed product with the derivatives of all values of tables by the parameters.
            TableProduct = table_product(yt: TableCostate) reads [TableCostate]
                -> slices(rho: [parameters] "by the parameters")
                { pivots: None, exists: Cheaper, cost: [], sections: none }
        }
        trait ObjectiveDerivatives in Sensitivities {
            places { objective_places: [Places<'_>; 2] }
            /// Integrands of the objectives and their derivatives.
            IntegrandDerivatives = integrand_derivatives(at: Motion, lambda: Lambda) reads [Time Z Zd Zdd U Lambda]
                -> slices(values: [integrands] "values, then derivatives by motion, multipliers and parameters")
                { pivots: None, exists: Always, cost: [4 link], sections: values as ObjectiveValues(dims: Dims, places: Places) {
                    values: dims.n_objectives, "of the objectives";
                    derivatives: places.len(), "by z, zd, zdd, λ, ρ; in joint form by θ, v, vd, λ, ρ";
                } }
            /// Terminal terms of the objectives and their derivatives.
            TerminalDerivatives = terminal_derivatives(at: Motion, lambda: Lambda) reads [Time Z Zd Zdd U Lambda]
                -> slices(values: [terminals] "values, then derivatives by motion, multipliers and parameters")
                { pivots: None, exists: Always, cost: [4 link], sections: like IntegrandDerivatives }
        }
        trait JointSensitivities in JointSensitivities {
            places { joint_places: JointPlaces<'_>, fuses_corrections: bool, fuses_transposed_corrections: bool }
            /// Derivatives of accelerations and multipliers, in joint form.
            JointLinearise = joint_linearise(at: At, vd: Vd, lambda: Lambda, stabilisation: Stabilisation)
                reads [Time Z V Vd U Lambda Stabilisation]
                -> slices(
                    values: [joint] "M, tau_θ, tau_v, c_θ, c_v, and those by the parameters",
                    factors: [joint_factors] "1/pivot, column of L, row of U, for each pivot",
                )
                { pivots: Joint, exists: Always, cost: [2 link, 1 parameters link, 5 entry, 1 eliminations],
                sections: values as JointValues(places: JointPlaces) {
                    mass: places.tangent.len(), "M";
                    force_theta: places.tangent.len(), "tau_θ";
                    force_v: places.tangent.len(), "tau_v";
                    rows_theta: places.rows.len(), "c_θ";
                    rows_v: places.rows.len(), "c_v";
                    force_rho: places.force.len(), "tau_ρ";
                    rows_rho: places.row.len(), "c_ρ";
                } }
            /// Solves for derivatives of accelerations and multipliers.
            JointSolve = joint_solve(factors: Factors) reads [Factors Rhs]
                -> in_place(x: [joint_unknowns] "solution")
                { pivots: None, exists: Always, cost: [], sections: none }
            /// A correction onto the constraints and its derivatives for all parameters at once.
            DifferentiateCorrection = differentiate_correction(at: At, p_rho: PositionColumns, q_rho: VelocityColumns)
                reads [Time Z V U PositionColumns VelocityColumns]
                -> slices(
                    dz: [nq] "correction of the coordinates",
                    dv: [nv] "correction of the velocities",
                    phi: [n_holonomic] "holonomic rows",
                    phid: [joint_rows] "their rates, and the nonholonomic rows",
                    theta_rho: [nv parameters] "of the correction of positions, along the tangent",
                    v_rho: [nv parameters] "of the correction of velocities",
                    left: [2 joint_unknowns] "what solutions leave of both systems beyond rounding: none of it is positive where they are solved",
                )
                { pivots: Joint, exists: Fused, cost: [], sections: none }
            /// Transposed derivatives of a correction onto the constraints, for all objectives at once.
            TransposeCorrection = transpose_correction(at: At, z_bar: PositionWeights, zd_bar: VelocityWeights)
                reads [Time Z V U PositionWeights VelocityWeights]
                -> slices(
                    theta_bar: [nv n_objectives] "what the weights of positions change by, along the tangent",
                    v_bar: [nv n_objectives] "what the weights of velocities change by",
                    rho_bar: [parameters n_objectives] "weights of the parameters",
                    left: [2 joint_unknowns] "what solutions leave of both systems beyond rounding: none of it is positive where they are solved",
                )
                { pivots: Joint, exists: Fused, cost: [], sections: none }
        }
        trait JointObjectiveDerivatives in JointSensitivities {
            places { joint_objective_places: [Places<'_>; 2], fuses_rates: bool, fuses_transposed_rates: bool }
            /// Integrands of the objectives and their derivatives, in joint form.
            JointIntegrandDerivatives = joint_integrand_derivatives(at: At, vd: Vd, lambda: Lambda) reads [Time Z V Vd U Lambda]
                -> slices(values: [joint_integrands] "values, then derivatives by motion, multipliers and parameters")
                { pivots: None, exists: Always, cost: [4 link], sections: like IntegrandDerivatives }
            /// Accelerations, integrands, and the derivatives of both for all parameters at once.
            DifferentiateRate = differentiate_rate(
                    at: At, stabilisation: Stabilisation, p_rho: PositionColumns, q_rho: VelocityColumns
                )
                reads [Time Z V U Stabilisation PositionColumns VelocityColumns]
                -> slices(
                    zd: [nq] "time derivatives of the coordinates",
                    vd: [nv] "accelerations",
                    lambda: [joint_rows] "multipliers",
                    vd_rho: [nv parameters] "derivatives of the accelerations",
                    integrands: [n_objectives] "integrands of the objectives",
                    integrands_rho: [n_objectives parameters] "their derivatives",
                )
                { pivots: Joint, exists: Fused, cost: [], sections: none }
            /// Integrands, and the weights of state and parameters from those of accelerations and integrands, for all objectives at once.
            TransposeRate = transpose_rate(
                    at: At, vd: Vd, lambda: Lambda, stabilisation: Stabilisation, a_bar: AccelerationWeights, psi_bar: ObjectiveWeights
                )
                reads [Time Z V Vd U Lambda Stabilisation AccelerationWeights ObjectiveWeights]
                -> slices(
                    integrands: [n_objectives] "integrands of the objectives",
                    theta_bar: [nv n_objectives] "weights of positions, along the tangent",
                    v_bar: [nv n_objectives] "weights of velocities",
                    rho_bar: [parameters n_objectives] "weights of the parameters",
                )
                { pivots: Joint, exists: Fused, cost: [], sections: none }
            /// Terminal terms of the objectives and their derivatives, in joint form.
            JointTerminalDerivatives = joint_terminal_derivatives(at: At, vd: Vd, lambda: Lambda) reads [Time Z V Vd U Lambda]
                -> slices(values: [joint_terminals] "values, then derivatives by motion, multipliers and parameters")
                { pivots: None, exists: Always, cost: [4 link], sections: like IntegrandDerivatives }
        }
        trait InertialParameters in Robotics {
            places {}
            /// Inertial parameters of the bodies.
            InertialParameters = inertial_parameters() reads []
                -> slices(pi: [10 n_bodies] "m, m c, xx, yy, zz, xy, xz, yz about the frame's origin, body by body")
                { pivots: None, exists: Always, cost: [], sections: none }
        }
        trait Regressor in Robotics {
            places { regressor_places: Places<'_> }
            /// Inverse dynamics as a linear function of inertial parameters.
            Regressor = regressor(at: At, vd: Vd) reads [Time Z V Vd U]
                -> slices(values: [regressor] "derivatives of tau by inertial parameters, ten for each velocity and body it moves")
                { pivots: None, exists: Always, cost: [1 link, 60 moved], sections: none }
        }
        trait GravityTerms in Robotics {
            places {}
            /// Gravity terms of inverse dynamics.
            GravityTerms = gravity_terms(at: At) reads [Z]
                -> slices(gravity: [nv] "gravity terms g(z)")
                { pivots: None, exists: Always, cost: [1 link], sections: none }
        }
        trait CoriolisTerms in Robotics {
            places {}
            /// Coriolis and centrifugal terms of inverse dynamics.
            CoriolisTerms = coriolis_terms(at: At) reads [Z V]
                -> slices(coriolis: [nv] "velocity terms c(z, v)")
                { pivots: None, exists: Always, cost: [1 link], sections: none }
        }
        trait Centroidal in Robotics {
            places {}
            /// Centre of mass and momentum about it.
            Centroidal = centroidal(at: At) reads [Z V]
                -> (centroid: Centroid)(
                    com: [3] "centre of mass",
                    com_velocity: [3] "its velocity",
                    com_jacobian: [3 nv] "its velocity per joint velocity, by columns",
                    momentum: [6] "linear momentum, angular momentum about the centre of mass",
                    momentum_matrix: [6 nv] "momentum per joint velocity, by columns",
                    momentum_bias: [6] "rate of the momentum without accelerations",
                )
                { pivots: None, exists: Always, cost: [1 link, 40 nv], sections: none }
        }
        trait MarkerJacobianRates in Robotics {
            places {}
            /// Time derivatives of the Jacobians of the markers.
            MarkerJacobianRates = marker_jacobian_rates(at: At) reads [Z V]
                -> slices(
                    rates: [3 n_markers nv] "time derivatives of the Jacobians, by columns",
                    bias: [3 n_markers] "accelerations of the markers at zero joint accelerations",
                )
                { pivots: None, exists: Always, cost: [1 link, 30 points nv], sections: none }
        }
        trait InverseDynamicsExternal in Robotics {
            places {}
            /// Inverse dynamics under external wrenches on the bodies.
            InverseDynamicsExternal = inverse_dynamics_external(at: At, vd: Vd, wrenches: Wrenches) reads [Time Z V Vd U Wrenches]
                -> slices(tau: [nv] "generalised forces along the velocities")
                { pivots: None, exists: Always, cost: [1 link], sections: none }
        }
        trait ForwardDynamicsExternal in Robotics {
            places {}
            /// Accelerations under external forces along the velocities and wrenches on the bodies.
            ForwardDynamicsExternal = forward_dynamics_external(at: At, tau: Tau, wrenches: Wrenches) reads [Time Z V U Tau Wrenches]
                -> slices(zd: [nq] "time derivatives of the coordinates", vd: [nv] "accelerations", xd: [nx] "rates of first-order states")
                { pivots: Positive, exists: Unconstrained, cost: [1 link, 1 solve], sections: none }
        }
        trait MassMatrixInverseAction in Robotics {
            places {}
            /// Solves M x = tau.
            MassMatrixInverseAction = mass_matrix_inverse_action(at: At, tau: Tau) reads [Z Tau]
                -> slices(x: [nv] "solution")
                { pivots: Positive, exists: Unconstrained, cost: [1 link, 1 entry, 1 eliminations], sections: none }
        }
        trait ForwardDynamicsDerivatives in Robotics {
            places {}
            // Two solves and the inverse, each a column per velocity.
            /// Accelerations under forces along the velocities, and their derivatives.
            ForwardDynamicsDerivatives = forward_dynamics_derivatives(at: At, tau: Tau) reads [Time Z V U Tau]
                -> (derivatives: AccelerationDerivatives)(
                    vd: [nv] "accelerations",
                    vd_z: [nv nv] "their derivatives by position, along the tangent, by columns",
                    vd_v: [nv nv] "by velocity, by columns",
                    vd_tau: [nv nv] "by forces along the velocities: the inverse mass matrix",
                    vd_rho: [nv parameters] "by the sensitivity list, by columns",
                )
                { pivots: Positive, exists: Unconstrained,
                cost: [2 link, 1 parameters link, 5 entry, 1 eliminations, 5 nv pairs, 2 parameters pairs], sections: none }
        }
        trait InverseDynamicsParameters in Robotics {
            places { inverse_dynamics_parameter_places: Places<'_> }
            /// Derivatives of inverse dynamics by the parameters.
            InverseDynamicsParameters = inverse_dynamics_parameters(at: At, vd: Vd) reads [Time Z V Vd U]
                -> slices(values: [tau_rho] "derivatives of tau that are not zero")
                { pivots: None, exists: Always, cost: [1 link, 1 parameters link], sections: none }
        }
        trait Events in Events {
            places { event_table: EventTable<'_> }
            /// Functions of the events, their rates, and whether they are armed.
            EventFunctions = event_functions(at: At, vd: Vd, lambda: Lambda) reads [Time Z V Vd U Lambda]
                -> slices(
                    values: [n_events] "functions of the events",
                    rates: [n_events] "their time derivatives",
                    armed: [n_events] "positive while an event is armed",
                )
                { pivots: None, exists: Events, cost: [1 link], sections: none }
            /// On which side functions of events are that are zero.
            EventSides = event_sides(at: At, vd: Vd, lambda: Lambda) reads [Time Z V Vd U Lambda]
                -> slices(
                    curvatures: [n_events] "second time derivatives of those that depend on positions and time only",
                    sizes: [3 n_events] "sizes of the terms of functions, rates and second derivatives",
                )
                { pivots: None, exists: Events, cost: [3 link], sections: none }
            /// What events do to velocities and to inputs.
            EventJumps = event_jumps(at: At) reads [Time Z V U]
                -> slices(
                    mass: [nv nv] "mass matrix, by columns",
                    rows: [joint_rows nv] "constraints per velocity, by columns",
                    row_rates: [joint_rows] "rates of the constraints",
                    row_values: [joint_rows] "holonomic constraints; zero for the others",
                    directions: [n_conditions nv] "conditions per velocity, by columns",
                    condition_rates: [n_conditions] "rates that events set, before them",
                    targets: [n_conditions] "the same, after them; restitution and friction of impacts with friction",
                    settings: [n_settings] "values that events give to inputs",
                )
                { pivots: None, exists: Events, cost: [1 link, 1 entry, 1 nv nv], sections: none }
        }
        trait EventDerivatives in EventSensitivities {
            places { event_places: Places<'_>, jump_places: Places<'_> }
            /// Derivatives of the functions of the events.
            EventFunctionDerivatives = event_function_derivatives(at: At, vd: Vd, lambda: Lambda) reads [Time Z V Vd U Lambda]
                -> slices(values: [event_partials] "by z, v, vd, λ, t and the parameters")
                { pivots: None, exists: Events, cost: [4 link], sections: none }
            /// Derivatives of the equations of the jumps.
            EventJumpDerivatives = event_jump_derivatives(at: At, vd: Vd, lambda: Lambda, mu: EventImpulses)
                reads [Time Z V Vd U Lambda EventImpulses]
                -> slices(values: [jump_partials] "of M d + Φ_vᵀ Λ + Cᵀ μ, Φd(v + d), c(v + d) − target, Φ by z, v, t and the parameters; vd is d")
                { pivots: None, exists: Events, cost: [1 link, 1 parameters link, 3 entry], sections: none }
        }
    } };
}

/// Calls `callback!` with all traits and the methods of their bundles:
///
/// ```text
/// trait TRAIT { places { METHOD: TYPE, … } KIND = METHOD(ARGUMENT: WHAT, …) -> FORM(RESULT: SHAPE, …); … } …
/// ```
///
/// [`argument_type!`](crate::argument_type) gives the type of an argument.
#[macro_export]
macro_rules! for_each_trait {
    ($callback:ident) => {
        $crate::bundles! { [$crate::project_traits] $callback }
    };
}

/// Calls `callback!` with all lists that have sections:
///
/// ```text
/// list STRUCT(FROM: TYPE, …) of METHOD { SECTION: LENGTH, "what it is"; … } …
/// ```
#[macro_export]
macro_rules! for_each_list {
    ($callback:ident) => {
        $crate::bundles! { [$crate::project_lists] $callback }
    };
}

/// The type of an argument in a method's signature: `argument_type!(WHAT, S)`. Structs are those in scope.
#[macro_export]
macro_rules! argument_type {
    (At, $S:ty) => { At<'_, $S> };
    (Motion, $S:ty) => { Motion<'_, $S> };
    (Impulses, $S:ty) => { Impulses<'_, $S> };
    (Weights, $S:ty) => { Weights<$S> };
    (Stabilisation, $S:ty) => { Stabilisation<$S> };
    (Time, $S:ty) => { $S };
    ($Group:ident, $S:ty) => { &[$S] };
}

#[doc(hidden)]
#[macro_export]
macro_rules! project_traits {
    ($callback:ident $(trait $Trait:ident in $Family:ident {
        places { $($places:ident: $Places:ty),* }
        $(#[doc = $doc:literal]
        $Kind:ident = $method:ident($($argument:ident: $Argument:ident),*) reads [$($group:ident)*]
            -> $form:tt($($result:ident: $shape:tt $what:literal),* $(,)?)
            { pivots: $pivots:ident, exists: $exists:ident, cost: $cost:tt, sections: $($sections:tt)* })*
    })*) => {
        $callback! { $(trait $Trait {
            places { $($places: $Places),* }
            $($Kind = $method($($argument: $Argument),*) -> $form($($result: $shape),*);)*
        })* }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! project_lists {
    ($callback:ident $(trait $Trait:ident in $Family:ident {
        places $places:tt
        $(#[doc = $doc:literal]
        $Kind:ident = $method:ident $arguments:tt reads $groups:tt -> $form:tt $results:tt $attributes:tt)*
    })*) => {
        $crate::project_lists! { @ $callback [] $($($method $attributes)*)* }
    };
    (@ $callback:ident [$($lists:tt)*]) => { $callback! { $($lists)* } };
    (@ $callback:ident [$($lists:tt)*] $method:ident {
        pivots: $pivots:ident, exists: $exists:ident, cost: $cost:tt, sections: $result:ident as $List:ident $from:tt $sections:tt
    } $($rest:tt)*) => {
        $crate::project_lists! { @ $callback [$($lists)* list $List $from of $method $sections] $($rest)* }
    };
    (@ $callback:ident $lists:tt $method:ident $attributes:tt $($rest:tt)*) => {
        $crate::project_lists! { @ $callback $lists $($rest)* }
    };
}
