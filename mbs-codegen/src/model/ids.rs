//! Typed ids: an index that knows which table it belongs to.

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// The index into the table.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id! {
    /// A body of a [`crate::model::Model`]; 0 is `ground`.
    BodyId
}
id! {
    /// A joint of a [`crate::model::Model`].
    JointId
}
id! {
    /// A parameter of a [`crate::model::Model`].
    ParameterId
}
id! {
    /// An input of a [`crate::model::Model`].
    InputId
}

id! {
    /// A constraint of a [`crate::model::Model`].
    ConstraintId
}

id! {
    /// A variable of a [`crate::model::Model`].
    VariableId
}

impl BodyId {
    /// The root of every tree.
    pub const GROUND: BodyId = BodyId(0);
}

/// A point on a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MarkerRef {
    /// The body.
    pub body: BodyId,
    /// Which point of it.
    pub point: PointRef,
}

/// Which point of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PointRef {
    /// The origin of the body frame.
    Origin,
    /// The centre of mass.
    Com,
    /// An entry of [`crate::model::Body::points`].
    Named(u32),
}

/// One coordinate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CoordinateRef {
    /// Of a joint.
    Joint {
        /// The joint.
        joint: JointId,
        /// Its place among [`crate::model::Joint::coordinates`].
        index: u32,
    },
    /// A declared variable.
    Variable(VariableId),
}

/// One equation that has a Lagrange multiplier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowRef {
    /// Of a constraint.
    Constraint {
        /// The constraint.
        constraint: ConstraintId,
        /// Its place among [`crate::model::Constraint::rows`].
        row: u32,
    },
    /// Of a joint that is cut.
    Joint {
        /// The joint.
        joint: JointId,
        /// Its place among [`crate::model::JointKind::closure_rows`].
        row: u32,
    },
}

/// One velocity of a joint (joint form), by its place among the joint's velocities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VelocityRef {
    /// The joint.
    pub joint: JointId,
    /// Its place among [`crate::model::Joint::velocities`].
    pub index: u32,
}
