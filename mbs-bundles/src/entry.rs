//! An entry of the table as data.

use crate::{BundleKind, Group, Size};
use core::fmt;

/// All that is said of a bundle.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Which.
    pub kind: BundleKind,
    /// The method, and the generated function.
    pub name: &'static str,
    /// One sentence.
    pub doc: &'static str,
    /// The runtime's trait.
    pub of_trait: &'static str,
    /// The bundles it belongs to.
    pub family: Family,
    /// Arguments of the method, in order.
    pub arguments: &'static [(&'static str, Argument)],
    /// Arguments of the generated function, beside prepared values.
    pub reads: &'static [Group],
    /// How results are handed over.
    pub written: Written,
    /// Results of the method, in order.
    pub results: &'static [ResultEntry],
    /// The function's last result, by which its success is judged.
    pub pivots: Pivots,
    /// For which models.
    pub exists: Exists,
    /// Operations: sums of a number times measures.
    pub cost: &'static [(usize, &'static [Measure])],
    /// The parts of its long list.
    pub sections: Sections,
}

/// A family of bundles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Those of joint form that know no constraints.
    Tree,
    /// Those in coordinate form: implicit integrators need them all.
    CoordinateForm,
    /// Parts of an implicit step, each at once: with the coordinate form of models for which that is less work.
    FusedSteps,
    /// Those of joint form that know constraints.
    JointForm,
    /// What runs in independent coordinates need beside it.
    MatrixR,
    /// Objectives.
    Judged,
    /// Derivatives of the start values: with both families of sensitivities.
    Start,
    /// What sensitivities of implicit runs need beside the coordinate form.
    Sensitivities,
    /// What sensitivities of explicit runs need beside forward dynamics.
    JointSensitivities,
    /// What identification, control and optimisation ask for beside the tree.
    Robotics,
    /// Events: with every run of a model that has some.
    Events,
    /// Their derivatives: with both families of sensitivities.
    EventSensitivities,
}

/// In which velocities equations are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// v, with multipliers of holonomic and nonholonomic rows.
    Joint,
    /// zd, with multipliers of all rows.
    Coordinate,
}

impl Family {
    /// The form of all its bundles.
    pub const fn form(self) -> Form {
        match self {
            Family::CoordinateForm | Family::FusedSteps | Family::Sensitivities => Form::Coordinate,
            _ => Form::Joint,
        }
    }

    /// Whether its bundles come all together.
    pub const fn is_whole(self) -> bool {
        matches!(
            self,
            Family::CoordinateForm | Family::FusedSteps | Family::Sensitivities | Family::JointSensitivities
        )
    }
}

/// What an argument of a method is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// An instant in joint form.
    At,
    /// An instant in coordinate form.
    Motion,
    /// What the projections of a step did.
    Impulses,
    /// How an implicit integrator weighs the tangent.
    Weights,
    /// How accelerations answer a violated constraint.
    Stabilisation,
    /// Time alone.
    Time,
    /// A slice.
    Slice(Group),
}

/// How results are handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// A slice each.
    Slices,
    /// An array of constant length.
    Array,
    /// A slice that held the right-hand side.
    InPlace,
    /// A struct of slices.
    Fields {
        /// Name of the argument.
        name: &'static str,
        /// Its type.
        of: &'static str,
    },
}

/// A result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResultEntry {
    /// Name.
    pub name: &'static str,
    /// How many scalars.
    pub shape: Shape,
    /// What it is.
    pub doc: &'static str,
}

impl ResultEntry {
    /// Whether the bundle computes it: no model has first-order states yet.
    #[inline]
    pub fn is_computed(&self) -> bool {
        !matches!(self.shape.sizes, [Size::nx])
    }

    /// Whether it is the first part of a longer slice: behind the entries of the leading matrix stands a diagonal of the solver's.
    #[inline]
    pub fn is_first_part(&self) -> bool {
        matches!(self.shape.sizes, [Size::entries])
    }
}

/// A number times sizes; of a matrix rows, then columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The number.
    pub factor: usize,
    /// The sizes.
    pub sizes: &'static [Size],
}

impl Shape {
    /// How many scalars.
    pub fn len(&self, size: impl Fn(Size) -> usize) -> usize {
        self.factor * self.sizes.iter().map(|&one| size(one)).product::<usize>()
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.factor != 1 || self.sizes.is_empty() {
            write!(f, "{}", self.factor)?;
        }
        for (i, size) in self.sizes.iter().enumerate() {
            let before = match (i, self.factor) {
                (0, 1) => "",
                (0, _) => " ",
                _ => " × ",
            };
            write!(f, "{before}{}", size.name())?;
        }
        Ok(())
    }
}

/// Which pivots a bundle leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pivots {
    /// None.
    None,
    /// Of the mass matrix of a tree, one per velocity: all positive.
    Positive,
    /// Of the leading matrix: none is zero.
    Leading,
    /// Of the elimination in joint form: none is zero.
    Joint,
}

impl Pivots {
    /// What they are.
    pub const fn doc(self) -> &'static str {
        match self {
            Pivots::None => "",
            Pivots::Positive => "pivots of the mass matrix; all are positive where it is regular",
            Pivots::Leading | Pivots::Joint => "pivots; none is zero where the factors are right",
        }
    }
}

/// For which models a bundle exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exists {
    /// For all.
    Always,
    /// For models without constraints.
    Unconstrained,
    /// For models without constraints; in others the coordinate form and the joint form with constraints stand in its place.
    Replaced,
    /// For models with events.
    Events,
    /// Where it takes fewer operations than what it replaces.
    Cheaper,
    /// With the bundles it is made of, where the generator chooses it.
    Fused,
    /// For gradients of steps whose projections have the matrix of the tangent.
    Tangent,
}

/// What the cost of a bundle is counted in.
#[allow(non_camel_case_types, reason = "as the table writes them")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Kinematics and inertia of all links.
    link,
    /// All entries of a mass matrix.
    entry,
    /// Pairs of a velocity and an ancestor.
    pairs,
    /// Elimination of a mass matrix.
    eliminations,
    /// Accelerations, the cheaper way.
    solve,
    /// Pairs of a velocity and a body it moves.
    moved,
    /// Named points.
    points,
    /// Coordinates.
    nq,
    /// Velocities.
    nv,
    /// What the model is differentiated by.
    parameters,
}

/// A part of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section {
    /// Name.
    pub name: &'static str,
    /// How its length is found.
    pub len: &'static str,
    /// What it is.
    pub doc: &'static str,
}

/// The parts of a long list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sections {
    /// No list.
    None,
    /// Those of another bundle.
    Like(BundleKind),
    /// Its own.
    Of {
        /// The result that has them.
        result: &'static str,
        /// The runtime's struct.
        list: &'static str,
        /// In order.
        sections: &'static [Section],
    },
}
