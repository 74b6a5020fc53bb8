//! Values by name: what generated structs have in common, and the tables of names.
//!
//! A generated module prints a struct for its coordinates, one for its velocities, and so on, with a field for each name. The order of
//! the fields is that of the slices that bundles read and write; [`fields!`](crate::fields) connects the two.
//!
//! ```
//! #[derive(Clone, Copy, Debug, PartialEq)]
//! pub struct Inputs {
//!     pub push: f64,
//!     pub wind: [f64; 3],
//! }
//! mbs_runtime::fields!(Inputs[4] { push, wind });
//!
//! let inputs = Inputs { push: 1.0, wind: [2.0, 3.0, 4.0] };
//! assert_eq!(inputs.to_array(), [1.0, 2.0, 3.0, 4.0]);
//! assert_eq!(Inputs::from_array(&inputs.to_array()), inputs);
//! ```

use crate::system::{Names, Quantity};

/// An array of numbers: memory of constant size.
pub trait Memory: Copy {
    /// Nothing but zeros.
    const ZERO: Self;

    /// A square matrix with as many rows.
    #[cfg(feature = "nalgebra")]
    type Square;

    /// Its values.
    fn values(&self) -> &[f64];

    /// Its values, to be changed.
    fn values_mut(&mut self) -> &mut [f64];

    /// The square matrix whose columns `write` fills one after the other.
    #[cfg(feature = "nalgebra")]
    fn square(write: impl FnOnce(&mut [f64])) -> Self::Square;
}

impl<const N: usize> Memory for [f64; N] {
    const ZERO: Self = [0.0; N];

    #[cfg(feature = "nalgebra")]
    type Square = nalgebra::SMatrix<f64, N, N>;

    #[inline(always)]
    fn values(&self) -> &[f64] {
        self
    }

    #[inline(always)]
    fn values_mut(&mut self) -> &mut [f64] {
        self
    }

    #[cfg(feature = "nalgebra")]
    fn square(write: impl FnOnce(&mut [f64])) -> Self::Square {
        let mut matrix = Self::Square::zeros();
        write(matrix.as_mut_slice());
        matrix
    }
}

/// A struct whose fields are the values of an array, in its order. Implemented by [`fields!`](crate::fields).
pub trait Fields: Copy {
    /// The array.
    type Array: Memory;

    /// From all values.
    fn from_values(values: &Self::Array) -> Self;

    /// All values.
    fn to_values(&self) -> Self::Array;
}

/// What a field may be: a number, an array of such, or a struct of them.
pub trait Field {
    /// Takes its values from the front.
    fn read(values: &mut Reader<'_>) -> Self;

    /// Puts its values to the front.
    fn write(&self, values: &mut Writer<'_>);
}

/// Values that are still to be read.
#[derive(Debug)]
pub struct Reader<'a>(core::slice::Iter<'a, f64>);

impl<'a> Reader<'a> {
    /// Of all these.
    #[inline(always)]
    pub fn new(values: &'a [f64]) -> Self {
        Self(values.iter())
    }

    /// The next field. Beyond the end there is nothing but NaN; arrays have the right length by construction.
    #[inline(always)]
    pub fn field<T: Field>(&mut self) -> T {
        T::read(self)
    }
}

/// Values that are still to be written.
#[derive(Debug)]
pub struct Writer<'a>(core::slice::IterMut<'a, f64>);

impl<'a> Writer<'a> {
    /// To all these.
    #[inline(always)]
    pub fn new(values: &'a mut [f64]) -> Self {
        Self(values.iter_mut())
    }
}

impl Field for f64 {
    #[inline(always)]
    fn read(values: &mut Reader<'_>) -> Self {
        values.0.next().copied().unwrap_or(f64::NAN)
    }

    #[inline(always)]
    fn write(&self, values: &mut Writer<'_>) {
        if let Some(value) = values.0.next() {
            *value = *self;
        }
    }
}

impl<T: Field, const N: usize> Field for [T; N] {
    #[inline(always)]
    fn read(values: &mut Reader<'_>) -> Self {
        core::array::from_fn(|_| T::read(values))
    }

    #[inline(always)]
    fn write(&self, values: &mut Writer<'_>) {
        for one in self {
            one.write(values);
        }
    }
}

/// Connects the fields of a struct with an array: `fields!(Struct[length] { first, second })` gives it `to_array`, `from_array` and
/// [`Fields`](crate::named::Fields). The length is the number of all values.
#[macro_export]
macro_rules! fields {
    ($name:ident[$len:expr] { $($field:ident),* $(,)? }) => {
        impl $name {
            /// All values, arrays flattened, in the order of the fields.
            #[allow(unused_mut, unused_variables, reason = "there may be no fields")]
            pub fn to_array(&self) -> [f64; $len] {
                let mut values = [0.0; $len];
                let mut to = $crate::named::Writer::new(&mut values);
                $($crate::named::Field::write(&self.$field, &mut to);)*
                values
            }

            /// From all values, arrays flattened, in the order of the fields.
            #[allow(unused_mut, unused_variables, reason = "there may be no fields")]
            pub fn from_array(values: &[f64; $len]) -> Self {
                let mut from = $crate::named::Reader::new(values);
                Self { $($field: from.field()),* }
            }
        }

        impl $crate::named::Fields for $name {
            type Array = [f64; $len];

            #[inline(always)]
            fn from_values(values: &[f64; $len]) -> Self {
                Self::from_array(values)
            }

            #[inline(always)]
            fn to_values(&self) -> [f64; $len] {
                self.to_array()
            }
        }

        impl $crate::named::Field for $name {
            #[inline(always)]
            #[allow(unused_variables, reason = "there may be no fields")]
            fn read(values: &mut $crate::named::Reader<'_>) -> Self {
                Self { $($field: values.field()),* }
            }

            #[inline(always)]
            #[allow(unused_variables, reason = "there may be no fields")]
            fn write(&self, values: &mut $crate::named::Writer<'_>) {
                $($crate::named::Field::write(&self.$field, values);)*
            }
        }
    };
}

/// No values: of a model that has none of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nothing;

impl Fields for Nothing {
    type Array = [f64; 0];

    fn from_values(_: &[f64; 0]) -> Self {
        Self
    }

    fn to_values(&self) -> [f64; 0] {
        []
    }
}

/// What a joint transmits from its parent to its child, at the child's joint point, world axes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Wrench {
    /// The force.
    pub force: [f64; 3],
    /// The torque.
    pub torque: [f64; 3],
}
crate::fields!(Wrench[6] { force, torque });

/// Energies, and the power of the forces that have no potential.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Energies {
    /// Kinetic energy.
    pub kinetic: f64,
    /// Potential energy.
    pub potential: f64,
    /// Power of the forces that have no potential.
    pub power: f64,
}
crate::fields!(Energies[3] { kinetic, potential, power });

impl Energies {
    /// Kinetic and potential energy.
    pub fn total(&self) -> f64 {
        self.kinetic + self.potential
    }
}

/// An objective and its derivatives by what the model is differentiated by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Objective<D> {
    /// Its value.
    pub value: f64,
    /// Its derivatives.
    pub by: D,
}

impl<D: Field> Field for Objective<D> {
    fn read(values: &mut Reader<'_>) -> Self {
        Self { value: f64::read(values), by: D::read(values) }
    }

    fn write(&self, values: &mut Writer<'_>) {
        self.value.write(values);
        self.by.write(values);
    }
}

/// The names of a model, each list in the order of its slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameTable {
    /// Of coordinates.
    pub coordinates: &'static [&'static str],
    /// Of velocities.
    pub velocities: &'static [&'static str],
    /// Of inputs.
    pub inputs: &'static [&'static str],
    /// Of independent parameters, arrays flattened.
    pub parameters: &'static [&'static str],
    /// Of markers.
    pub markers: &'static [&'static str],
    /// Of outputs.
    pub outputs: &'static [&'static str],
    /// Of joints.
    pub joints: &'static [&'static str],
    /// Of bodies beside ground.
    pub bodies: &'static [&'static str],
    /// Of objectives.
    pub objectives: &'static [&'static str],
    /// Of what the model is differentiated by.
    pub sensitivities: &'static [&'static str],
    /// Of holonomic constraint rows.
    pub holonomic: &'static [&'static str],
    /// Of joints with Euler parameters.
    pub normalised: &'static [&'static str],
    /// Of nonholonomic constraint rows.
    pub nonholonomic: &'static [&'static str],
}

impl NameTable {
    /// The name of entry `index`; none where there is no such entry.
    pub fn get(&self, quantity: Quantity, index: usize) -> Option<&'static str> {
        let names = match quantity {
            Quantity::Coordinate => self.coordinates,
            Quantity::Velocity => self.velocities,
            Quantity::Input => self.inputs,
            Quantity::Parameter => self.parameters,
            Quantity::Marker => self.markers,
            Quantity::Output => self.outputs,
            Quantity::Joint => self.joints,
            Quantity::Body => self.bodies,
            Quantity::Objective => self.objectives,
            Quantity::Sensitivity => self.sensitivities,
            Quantity::Holonomic => self.holonomic,
            Quantity::Normalisation => self.normalised,
            Quantity::Nonholonomic => self.nonholonomic,
            Quantity::State | Quantity::Event => &[],
        };
        names.get(index).copied()
    }
}

impl Names for NameTable {
    fn name(&self, quantity: Quantity, index: usize) -> Option<&str> {
        self.get(quantity, index)
    }
}
