//! The one place that maps a quantity → its identifier in generated code → LaTeX → meaning.
//!
//! A [`Group`] is an argument of a bundle: a run of scalars handed over together.

/// A named run of scalars that bundles take as arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Group {
    /// Time.
    Time,
    /// Coordinates z (nq).
    Z,
    /// Velocities v in joint form (nv).
    V,
    /// Accelerations vd in joint form (nv).
    Vd,
    /// Time derivatives zd in coordinate form (nq).
    Zd,
    /// Second time derivatives zdd in coordinate form (nq).
    Zdd,
    /// First-order states (nx).
    X,
    /// Inputs (nu).
    U,
    /// Multipliers of constraint rows.
    Lambda,
    /// Forces along the joint velocities, from outside the model (nv).
    Tau,
    /// Wrenches on the bodies, from outside the model: force at the frame's origin, torque, world axes (6 per body).
    Wrenches,
    /// An implicit integrator's weights: dzd/dzdd, dz/dzdd, dz/dzd.
    Weights,
    /// How accelerations answer a violated constraint: 2ξω, ω², 1/α.
    Stabilisation,
    /// Entries of the leading matrix.
    Matrix,
    /// Its factors.
    Factors,
    /// A right-hand side.
    Rhs,
    /// What the projection of velocities adds to them: d (nq).
    VelocityImpulse,
    /// Its multipliers σ.
    VelocityMultipliers,
    /// What the projection of accelerations adds to them: e (nq).
    AccelerationImpulse,
    /// Its multipliers κ.
    AccelerationMultipliers,
    /// Independent parameters, arrays flattened (np).
    Parameters,
    /// What depends on parameters alone, computed once by `prepare`.
    Prepared,
    /// Free symbols of a graph that is not a model's (tests, small tools).
    Free,
}

impl Group {
    /// All groups, in the order in which bundles take them.
    pub const ALL: [Group; 23] = [
        Group::Time,
        Group::Z,
        Group::V,
        Group::Vd,
        Group::Zd,
        Group::Zdd,
        Group::X,
        Group::U,
        Group::Lambda,
        Group::Tau,
        Group::Wrenches,
        Group::Weights,
        Group::Stabilisation,
        Group::Matrix,
        Group::Factors,
        Group::Rhs,
        Group::VelocityImpulse,
        Group::VelocityMultipliers,
        Group::AccelerationImpulse,
        Group::AccelerationMultipliers,
        Group::Parameters,
        Group::Prepared,
        Group::Free,
    ];

    /// Identifier in generated code and in the graph's textual form.
    pub fn identifier(self) -> &'static str {
        match self {
            Group::Time => "t",
            Group::Z => "z",
            Group::V => "v",
            Group::Vd => "vd",
            Group::Zd => "zd",
            Group::Zdd => "zdd",
            Group::X => "x",
            Group::U => "u",
            Group::Lambda => "lambda",
            Group::Tau => "tau",
            Group::Wrenches => "wrenches",
            Group::Weights => "weights",
            Group::Stabilisation => "stabilisation",
            Group::Matrix => "matrix",
            Group::Factors => "factors",
            Group::Rhs => "rhs",
            Group::VelocityImpulse => "d",
            Group::VelocityMultipliers => "sigma",
            Group::AccelerationImpulse => "e",
            Group::AccelerationMultipliers => "kappa",
            Group::Parameters => "p",
            Group::Prepared => "c",
            Group::Free => "a",
        }
    }

    /// LaTeX, for the guide.
    pub fn latex(self) -> &'static str {
        match self {
            Group::Time => "t",
            Group::Z => "z",
            Group::V => "v",
            Group::Vd => r"\dot v",
            Group::Zd => r"\dot z",
            Group::Zdd => r"\ddot z",
            Group::X => "x",
            Group::U => "u",
            Group::Lambda => r"\lambda",
            Group::Tau => r"\tau",
            Group::Wrenches => "f",
            Group::Weights => r"(\gamma h, \beta h^2, \beta h/\gamma)",
            Group::Stabilisation => r"(2\xi\omega, \omega^2, 1/\alpha)",
            Group::Matrix => "a",
            Group::Factors => "f",
            Group::Rhs => "b",
            Group::VelocityImpulse => "d",
            Group::VelocityMultipliers => r"\sigma",
            Group::AccelerationImpulse => "e",
            Group::AccelerationMultipliers => r"\kappa",
            Group::Parameters => r"\rho",
            Group::Prepared => r"c(\rho)",
            Group::Free => "a",
        }
    }

    /// What it is, for generated documentation.
    pub fn meaning(self) -> &'static str {
        match self {
            Group::Time => "time",
            Group::Z => "coordinates",
            Group::V => "velocities (joint form)",
            Group::Vd => "accelerations (joint form)",
            Group::Zd => "time derivatives of the coordinates",
            Group::Zdd => "second time derivatives of the coordinates",
            Group::X => "first-order states",
            Group::U => "inputs",
            Group::Lambda => "multipliers",
            Group::Tau => "forces along the velocities, from outside",
            Group::Wrenches => "wrenches on the bodies, from outside",
            Group::Weights => "weights of the integrator",
            Group::Stabilisation => "answer to a violated constraint",
            Group::Matrix => "entries of the leading matrix",
            Group::Factors => "factors of the leading matrix",
            Group::Rhs => "right-hand side",
            Group::VelocityImpulse => "what the projection adds to velocities",
            Group::VelocityMultipliers => "multipliers of the projection of velocities",
            Group::AccelerationImpulse => "what the projection adds to accelerations",
            Group::AccelerationMultipliers => "multipliers of the projection of accelerations",
            Group::Parameters => "independent parameters",
            Group::Prepared => "values that depend on parameters alone",
            Group::Free => "free symbols",
        }
    }

    /// The group with this identifier.
    pub fn from_identifier(text: &str) -> Option<Group> {
        Group::ALL.into_iter().find(|g| g.identifier() == text)
    }
}

/// A set of groups: what an expression depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupSet(u32);

impl GroupSet {
    /// The empty set: a constant's.
    pub const NONE: GroupSet = GroupSet(0);

    /// The set of one group.
    pub fn of(group: Group) -> GroupSet {
        GroupSet(1 << group as u8)
    }

    /// Union.
    pub fn union(self, other: GroupSet) -> GroupSet {
        GroupSet(self.0 | other.0)
    }

    /// Whether some group is in both.
    pub fn intersects(self, other: GroupSet) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether the group is in the set.
    pub fn contains(self, group: Group) -> bool {
        self.0 & (1 << group as u8) != 0
    }

    /// Whether nothing is in the set.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the set is exactly the parameters: what `prepare` computes.
    pub fn is_parameters_only(self) -> bool {
        self == GroupSet::of(Group::Parameters)
    }
}
