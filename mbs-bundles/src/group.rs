//! The one place that maps a quantity → its identifier in generated code → LaTeX → meaning.

macro_rules! groups {
    ($($(#[$doc:meta])* $Group:ident $identifier:literal $latex:literal $meaning:literal;)*) => {
        /// A named run of scalars that bundles take as an argument.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Group { $($(#[$doc])* $Group,)* }

        impl Group {
            /// All groups, in the order in which bundles take them.
            pub const ALL: [Group; [$($identifier),*].len()] = [$(Group::$Group),*];

            /// Identifier in generated code and in the graph's textual form.
            pub const fn identifier(self) -> &'static str {
                match self { $(Group::$Group => $identifier,)* }
            }

            /// LaTeX, for the guide.
            pub const fn latex(self) -> &'static str {
                match self { $(Group::$Group => $latex,)* }
            }

            /// What it is, for generated documentation.
            pub const fn meaning(self) -> &'static str {
                match self { $(Group::$Group => $meaning,)* }
            }

            /// The group with this identifier.
            pub fn from_identifier(text: &str) -> Option<Group> {
                Group::ALL.into_iter().find(|group| group.identifier() == text)
            }
        }
    };
}

groups! {
    /// Time.
    Time "t" "t" "time";
    /// Coordinates z (nq).
    Z "z" "z" "coordinates";
    /// Velocities v in joint form (nv).
    V "v" "v" "velocities (joint form)";
    /// Accelerations vd in joint form (nv).
    Vd "vd" r"\dot v" "accelerations (joint form)";
    /// Time derivatives zd in coordinate form (nq).
    Zd "zd" r"\dot z" "time derivatives of the coordinates";
    /// Second time derivatives zdd in coordinate form (nq).
    Zdd "zdd" r"\ddot z" "second time derivatives of the coordinates";
    /// First-order states (nx).
    X "x" "x" "first-order states";
    /// Inputs (nu).
    U "u" "u" "inputs";
    /// Multipliers of constraint rows.
    Lambda "lambda" r"\lambda" "multipliers";
    /// Forces along the joint velocities, from outside the model (nv).
    Tau "tau" r"\tau" "external forces along the velocities";
    /// Wrenches on the bodies, from outside the model: force at the frame's origin, torque, world axes (6 per body).
    Wrenches "wrenches" "f" "external wrenches on the bodies";
    /// An implicit integrator's weights: dzd/dzdd, dz/dzdd, dz/dzd.
    Weights "weights" r"(\gamma h, \beta h^2, \beta h/\gamma)" "weights of the integrator";
    /// How accelerations answer a violated constraint: 2ξω, ω², 1/α.
    Stabilisation "stabilisation" r"(2\xi\omega, \omega^2, 1/\alpha)" "stabilisation of constraints";
    /// Entries of the leading matrix.
    Matrix "matrix" "a" "entries of the leading matrix";
    /// The small numbers on its diagonal (rows).
    Compliance "compliance" "e" "small numbers on the diagonal of the leading matrix";
    /// Its factors.
    Factors "factors" "f" "factors of the leading matrix";
    /// A right-hand side.
    Rhs "rhs" "b" "right-hand side";
    /// What the projection of velocities adds to them: d (nq).
    VelocityImpulse "d" "d" "change of the velocities by the projection";
    /// Its multipliers σ.
    VelocityMultipliers "sigma" r"\sigma" "multipliers of the projection of velocities";
    /// What the projection of accelerations adds to them: e (nq).
    AccelerationImpulse "e" "e" "change of the accelerations by the projection";
    /// Its multipliers κ.
    AccelerationMultipliers "kappa" r"\kappa" "multipliers of the projection of accelerations";
    /// Weights of the equations of motion and of the constraints, on the way back of an adjoint (nq and rows).
    Costate "y" "y" "weights of residual and constraints";
    /// Weights of the projection of velocities.
    VelocityCostate "yd" r"y_{\dot z}" "weights of the projection of velocities";
    /// Weights of the projection of accelerations.
    AccelerationCostate "ydd" r"y_{\ddot z}" "weights of the projection of accelerations";
    /// Weights of all values of tables that depend on parameters alone, on the way back of an adjoint.
    TableCostate "yt" r"y_s" "weights of the values of tables";
    /// Derivatives of positions by what a model is differentiated by, a column for each: of an implicit step with its acceleration held, or of
    /// an explicit stage along the tangent.
    PositionColumns "p_rho" r"p_\rho" "derivatives of positions, a column for each parameter";
    /// The same of velocities.
    VelocityColumns "q_rho" r"q_\rho" "derivatives of velocities, a column for each parameter";
    /// Weights of positions on the way back of an adjoint, a column for each objective.
    PositionWeights "z_bar" r"\bar z" "weights of positions, a column for each objective";
    /// The same of velocities.
    VelocityWeights "zd_bar" r"\bar{\dot z}" "weights of velocities, a column for each objective";
    /// The same of accelerations.
    AccelerationWeights "a_bar" r"\bar a" "weights of accelerations, a column for each objective";
    /// The same of multipliers.
    MultiplierWeights "lambda_bar" r"\bar\lambda" "weights of multipliers, a column for each objective";
    /// The same of the accelerations of a step before their projection.
    CorrectionWeights "delta_bar" r"\bar\delta" "weights of accelerations before their projection, a column for each objective";
    /// Weights of the objectives, each in a column of its own.
    ObjectiveWeights "psi_bar" r"\bar\psi" "weights of the objectives";
    /// Impulses of the conditions that an event sets on velocities.
    EventImpulses "mu" r"\mu" "impulses of the conditions of an event";
    /// Independent parameters, arrays flattened (np).
    Parameters "p" r"\rho" "independent parameters";
    /// What depends on parameters alone, computed once by `prepare`.
    Prepared "c" r"c(\rho)" "values that depend on parameters alone";
    /// Number of the case that a module runs: zero for the model's own start values and inputs, which are followed by its cases.
    Case "case" "k" "number of the case";
    /// Free symbols of a graph that is not a model's (tests, small tools).
    Free "a" "a" "free symbols";
}
