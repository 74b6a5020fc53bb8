//! Sizes of a model, what its indices count, and its natural scales: what every other module speaks of.

use crate::scalar::Scalar;

/// Sizes of a system; any may be zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dims {
    /// Coordinates z.
    pub nq: usize,
    /// Velocities v.
    pub nv: usize,
    /// First-order states x.
    pub nx: usize,
    /// Inputs u.
    pub nu: usize,
    /// Independent parameters, arrays flattened.
    pub np: usize,
    /// Markers.
    pub n_markers: usize,
    /// Outputs.
    pub n_outputs: usize,
    /// Holonomic constraint rows.
    pub n_holonomic: usize,
    /// Normalisation rows, one per block of Euler parameters; in coordinate form only.
    pub n_normalisation: usize,
    /// Nonholonomic constraint rows.
    pub n_nonholonomic: usize,
    /// Joints.
    pub n_joints: usize,
    /// Bodies beside ground.
    pub n_bodies: usize,
    /// Numbers of the leading matrix, its diagonal of small numbers included.
    pub n_matrix: usize,
    /// Numbers of its factors.
    pub n_factors: usize,
    /// Numbers of the tangent that an implicit step hands to the next: [`Dims::tangent_len`], or none.
    pub n_carried: usize,
    /// Objectives.
    pub n_objectives: usize,
    /// Rows of which objectives read the multipliers of the projections: all, or none.
    pub n_projected: usize,
    /// Event functions.
    pub n_events: usize,
    /// Numbers of a choice of independent coordinates, which is a part of the state; none in most dynamics.
    pub n_choice: usize,
    /// Numbers that a method carries from step to step after the state, see [`Dims::stepped`]; none in most dynamics.
    pub n_excess: usize,
    /// Sizes of what it knows of its derivatives.
    pub sensitivity: SensitivityDims,
    /// Scratch that suffices for every bundle.
    pub workspace: usize,
}

impl Dims {
    /// No coordinates, no anything: for `Dims { nq: 2, nv: 2, ..Dims::ZERO }` in constants.
    pub const ZERO: Self = Self {
        nq: 0,
        nv: 0,
        nx: 0,
        nu: 0,
        np: 0,
        n_markers: 0,
        n_outputs: 0,
        n_holonomic: 0,
        n_normalisation: 0,
        n_nonholonomic: 0,
        n_joints: 0,
        n_bodies: 0,
        n_matrix: 0,
        n_factors: 0,
        n_carried: 0,
        n_objectives: 0,
        n_projected: 0,
        n_events: 0,
        n_choice: 0,
        n_excess: 0,
        sensitivity: SensitivityDims::ZERO,
        workspace: 0,
    };

    /// Length of the state y = \[z, v, x\].
    #[inline(always)]
    pub const fn state(&self) -> usize {
        self.nq + self.nv + self.nx
    }

    /// Length of what a step takes further: the state, and by how much algorithmic accelerations exceed the accelerations, if a method carries them.
    #[inline(always)]
    pub const fn stepped(&self) -> usize {
        self.state() + self.n_excess
    }

    /// Constraint rows in coordinate form: holonomic, normalisation, nonholonomic.
    #[inline(always)]
    pub const fn rows(&self) -> usize {
        self.n_holonomic + self.n_normalisation + self.n_nonholonomic
    }

    /// Multipliers that objectives read, in coordinate form: λ, and where they name them σ and κ of the projections.
    #[inline(always)]
    pub const fn judged_rows(&self) -> usize {
        self.rows() + 2 * self.n_projected
    }

    /// Numbers of a tangent that steps carry: age and step size, the sizes of the rows, its factors; and zdd and λ at the start of the last step.
    #[inline(always)]
    pub const fn tangent_len(&self) -> usize {
        2 + self.rows() + self.n_factors + self.nq + self.rows()
    }

    /// Constraint rows in joint form: holonomic, nonholonomic.
    #[inline(always)]
    pub const fn joint_rows(&self) -> usize {
        self.n_holonomic + self.n_nonholonomic
    }

    /// Multipliers in joint form, from those in coordinate form: without those of the normalisation rows, which lie between holonomic and
    /// nonholonomic ones. Of λ, and of σ and κ if they follow.
    pub fn in_joint_form<S: Copy>(&self, multipliers: &[S]) -> impl Iterator<Item = S> {
        let (rows, first) = (self.rows().max(1), self.n_holonomic);
        let normalisation = first..first + self.n_normalisation;
        let kept = move |(place, _): &(usize, &S)| !normalisation.contains(&(place % rows));
        multipliers.iter().enumerate().filter(kept).map(|(_, &multiplier)| multiplier)
    }

    /// Multipliers that objectives read, in joint form: λ, and where they name them σ and κ of the projections.
    #[inline(always)]
    pub const fn joint_judged_rows(&self) -> usize {
        self.joint_rows() * if self.n_projected > 0 { 3 } else { 1 }
    }
}

/// Sizes of what a model knows of its derivatives; all zero for a model that is not differentiated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SensitivityDims {
    /// Differentiated parameters and inputs, p.
    pub parameters: usize,
    /// Values of [`StartDerivatives::start_derivatives`](crate::StartDerivatives::start_derivatives).
    pub start: usize,
    /// Values of [`Sensitivities::linearise`](crate::Sensitivities::linearise).
    pub newton: usize,
    /// Values of [`Sensitivities::linearise_projections`](crate::Sensitivities::linearise_projections).
    pub projections: usize,
    /// Values of [`ObjectiveDerivatives::integrand_derivatives`](crate::ObjectiveDerivatives::integrand_derivatives).
    pub integrands: usize,
    /// Values of [`ObjectiveDerivatives::terminal_derivatives`](crate::ObjectiveDerivatives::terminal_derivatives).
    pub terminals: usize,
    /// Values of [`JointSensitivities::joint_linearise`](crate::JointSensitivities::joint_linearise).
    pub joint: usize,
    /// Numbers of the factors it writes.
    pub joint_factors: usize,
    /// Values of [`JointObjectiveDerivatives::joint_integrand_derivatives`](crate::JointObjectiveDerivatives::joint_integrand_derivatives).
    pub joint_integrands: usize,
    /// Values of [`JointObjectiveDerivatives::joint_terminal_derivatives`](crate::JointObjectiveDerivatives::joint_terminal_derivatives).
    pub joint_terminals: usize,
    /// Columns up to which transposed products by [`Sensitivities::newton_product`](crate::Sensitivities::newton_product) and its like take
    /// fewer operations than products with the lists; zero if they are not there.
    pub product_columns: usize,
    /// Rows of P where [`Sensitivities::tangent_product`](crate::Sensitivities::tangent_product) is there, nq; otherwise zero.
    pub tangent_product: usize,
    /// Parameters that [`Sensitivities::newton_product`](crate::Sensitivities::newton_product) has derivatives by.
    pub newton_parameters: usize,
    /// The same of [`Sensitivities::projection_product`](crate::Sensitivities::projection_product).
    pub projection_parameters: usize,
    /// Values that [`Sensitivities::newton_product`](crate::Sensitivities::newton_product) finds read from tables of parameters.
    pub newton_reads: usize,
    /// The same of [`Sensitivities::projection_product`](crate::Sensitivities::projection_product).
    pub projection_reads: usize,
    /// Values of these tables, all of them.
    pub table_values: usize,
}

impl SensitivityDims {
    /// Of a model that is not differentiated.
    pub const ZERO: Self = Self {
        parameters: 0,
        start: 0,
        newton: 0,
        projections: 0,
        integrands: 0,
        terminals: 0,
        joint: 0,
        joint_factors: 0,
        joint_integrands: 0,
        joint_terminals: 0,
        product_columns: 0,
        tangent_product: 0,
        newton_parameters: 0,
        projection_parameters: 0,
        newton_reads: 0,
        projection_reads: 0,
        table_values: 0,
    };
}

/// A list of places.
pub type Places<'a> = &'a [(u32, u32)];

/// What an index counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Quantity {
    /// Coordinate z.
    Coordinate,
    /// Velocity v.
    Velocity,
    /// First-order state x.
    State,
    /// Input u.
    Input,
    /// Independent parameter, arrays flattened.
    Parameter,
    /// Marker.
    Marker,
    /// Output.
    Output,
    /// Holonomic constraint row.
    Holonomic,
    /// Normalisation row of a joint with Euler parameters.
    Normalisation,
    /// Joint.
    Joint,
    /// Body beside ground.
    Body,
    /// Nonholonomic constraint row.
    Nonholonomic,
    /// Objective.
    Objective,
    /// Parameter or input by which the model is differentiated.
    Sensitivity,
    /// Event function.
    Event,
}

impl Quantity {
    /// The word for it in messages.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Coordinate => "coordinate",
            Self::Velocity => "velocity",
            Self::State => "state",
            Self::Input => "input",
            Self::Parameter => "parameter",
            Self::Marker => "marker",
            Self::Output => "output",
            Self::Holonomic => "holonomic constraint",
            Self::Normalisation => "normalisation of Euler parameters",
            Self::Joint => "joint",
            Self::Body => "body",
            Self::Nonholonomic => "nonholonomic constraint",
            Self::Objective => "objective",
            Self::Sensitivity => "differentiated parameter",
            Self::Event => "event",
        }
    }
}

/// Names of what indices count, for messages and tables.
pub trait Names {
    /// The name of entry `index`, as the model addresses it; none where there is no such entry.
    fn name(&self, quantity: Quantity, index: usize) -> Option<&str>;
}

/// Natural scales of a model: what its numbers are large or small against. Powers of two, fixed for a model, never differentiated; all are one where
/// a slice is empty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Units<'a> {
    /// Of each coordinate: the model's length, or one for angles and Euler parameters.
    pub coordinates: &'a [f64],
    /// Of each row of constraints, in coordinate form: the size of the terms of its equation.
    pub rows: &'a [f64],
}

impl Units<'_> {
    /// All are one.
    pub const ONE: Self = Self { coordinates: &[], rows: &[] };

    /// Of a coordinate.
    #[inline(always)]
    pub fn coordinate(&self, index: usize) -> f64 {
        self.coordinates.get(index).copied().unwrap_or(1.0)
    }

    /// Of a row.
    #[inline(always)]
    pub fn row(&self, index: usize) -> f64 {
        self.rows.get(index).copied().unwrap_or(1.0)
    }

    /// Largest magnitude of coordinates, or of their rates or accelerations, in their units.
    #[inline(always)]
    pub(crate) fn largest<S: Scalar>(&self, values: &[S]) -> f64 {
        largest_in(values, |index| self.coordinate(index))
    }

    /// Largest magnitude of numbers of rows, in their units.
    #[inline(always)]
    pub(crate) fn largest_row<S: Scalar>(&self, values: &[S]) -> f64 {
        largest_in(values, |index| self.row(index))
    }
}

#[inline(always)]
fn largest_in<S: Scalar>(values: &[S], unit: impl Fn(usize) -> f64) -> f64 {
    values.iter().enumerate().fold(0.0, |largest, (index, value)| {
        let size = value.real().abs() / unit(index);
        if size > largest { size } else { largest }
    })
}
