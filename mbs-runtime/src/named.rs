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
//! mbs_runtime::fields!(Inputs[f64; 4] { push, wind });
//!
//! let inputs = Inputs { push: 1.0, wind: [2.0, 3.0, 4.0] };
//! assert_eq!(inputs.to_array(), [1.0, 2.0, 3.0, 4.0]);
//! assert_eq!(Inputs::from_array(&inputs.to_array()), inputs);
//! ```

use crate::scalar::Scalar;
use crate::system::{Names, Quantity};

/// An array of numbers: memory of constant size.
pub trait Memory: Copy {
    /// The numbers.
    type S: Scalar;

    /// Nothing but zeros.
    const ZERO: Self;

    /// A square matrix with as many rows.
    #[cfg(feature = "nalgebra")]
    type Square;

    /// Its values.
    fn values(&self) -> &[Self::S];

    /// Its values, to be changed.
    fn values_mut(&mut self) -> &mut [Self::S];

    /// The square matrix whose columns `write` fills one after the other.
    #[cfg(feature = "nalgebra")]
    fn square(write: impl FnOnce(&mut [Self::S])) -> Self::Square;
}

impl<S: Scalar, const N: usize> Memory for [S; N] {
    type S = S;

    const ZERO: Self = [S::ZERO; N];

    #[cfg(feature = "nalgebra")]
    type Square = nalgebra::SMatrix<S, N, N>;

    #[inline(always)]
    fn values(&self) -> &[S] {
        self
    }

    #[inline(always)]
    fn values_mut(&mut self) -> &mut [S] {
        self
    }

    #[cfg(feature = "nalgebra")]
    fn square(write: impl FnOnce(&mut [S])) -> Self::Square {
        let mut matrix = Self::Square::from_element(S::ZERO);
        write(matrix.as_mut_slice());
        matrix
    }
}

/// A struct of values by name, whatever their scalar.
pub trait Named: Copy {}

/// A struct whose fields are the values of an array, in its order. Implemented by [`fields!`](crate::fields).
pub trait Fields<S: Scalar>: Named {
    /// The array.
    type Array: Memory<S = S>;

    /// From all values.
    fn from_values(values: &Self::Array) -> Self;

    /// All values.
    fn to_values(&self) -> Self::Array;
}

/// What a field may be: a number, an array of such, or a struct of them.
pub trait Field<S: Scalar> {
    /// Takes its values from the front.
    fn read(values: &mut Reader<'_, S>) -> Self;

    /// Puts its values to the front.
    fn write(&self, values: &mut Writer<'_, S>);
}

/// Values that are still to be read.
#[derive(Debug)]
pub struct Reader<'a, S>(core::slice::Iter<'a, S>);

impl<'a, S: Scalar> Reader<'a, S> {
    /// Of all these.
    #[inline(always)]
    pub fn new(values: &'a [S]) -> Self {
        Self(values.iter())
    }

    /// The next field. Beyond the end there is nothing but NaN; arrays have the right length by construction.
    #[inline(always)]
    pub fn field<T: Field<S>>(&mut self) -> T {
        T::read(self)
    }
}

/// Values that are still to be written.
#[derive(Debug)]
pub struct Writer<'a, S>(core::slice::IterMut<'a, S>);

impl<'a, S: Scalar> Writer<'a, S> {
    /// To all these.
    #[inline(always)]
    pub fn new(values: &'a mut [S]) -> Self {
        Self(values.iter_mut())
    }
}

impl<S: Scalar> Field<S> for S {
    #[inline(always)]
    fn read(values: &mut Reader<'_, S>) -> Self {
        values.0.next().copied().unwrap_or(S::from_f64(f64::NAN))
    }

    #[inline(always)]
    fn write(&self, values: &mut Writer<'_, S>) {
        if let Some(value) = values.0.next() {
            *value = *self;
        }
    }
}

impl<S: Scalar, T: Field<S>, const N: usize> Field<S> for [T; N] {
    #[inline(always)]
    fn read(values: &mut Reader<'_, S>) -> Self {
        core::array::from_fn(|_| T::read(values))
    }

    #[inline(always)]
    fn write(&self, values: &mut Writer<'_, S>) {
        for one in self {
            one.write(values);
        }
    }
}

/// Connects the fields of a struct with an array: `fields!(Struct[f64; length] { first, second })` gives it `to_array`, `from_array` and
/// [`Fields`](crate::named::Fields). The length is the number of all values.
#[macro_export]
macro_rules! fields {
    ($name:ident[$scalar:ty; $len:expr] { $($field:ident),* $(,)? }) => {
        $crate::fields!(@[] $name, [$scalar; $len] { $($field),* });
    };
    (@[$($generics:tt)*] $name:ty, [$scalar:ty; $len:expr] { $($field:ident),* }) => {
        impl $($generics)* $name {
            /// All values, arrays flattened, in the order of the fields.
            #[allow(unused_mut, unused_variables, reason = "there may be no fields")]
            pub fn to_array(&self) -> [$scalar; $len] {
                let mut values = [<$scalar as $crate::Scalar>::ZERO; $len];
                let mut to = $crate::named::Writer::new(&mut values);
                $($crate::named::Field::write(&self.$field, &mut to);)*
                values
            }

            /// From all values, arrays flattened, in the order of the fields.
            #[allow(unused_mut, unused_variables, reason = "there may be no fields")]
            pub fn from_array(values: &[$scalar; $len]) -> Self {
                let mut from = $crate::named::Reader::new(values);
                Self { $($field: from.field()),* }
            }
        }

        impl $($generics)* $crate::named::Named for $name {}

        impl $($generics)* $crate::named::Fields<$scalar> for $name {
            type Array = [$scalar; $len];

            #[inline(always)]
            fn from_values(values: &[$scalar; $len]) -> Self {
                Self::from_array(values)
            }

            #[inline(always)]
            fn to_values(&self) -> [$scalar; $len] {
                self.to_array()
            }
        }

        impl $($generics)* $crate::named::Field<$scalar> for $name {
            #[inline(always)]
            #[allow(unused_variables, reason = "there may be no fields")]
            fn read(values: &mut $crate::named::Reader<'_, $scalar>) -> Self {
                Self { $($field: values.field()),* }
            }

            #[inline(always)]
            #[allow(unused_variables, reason = "there may be no fields")]
            fn write(&self, values: &mut $crate::named::Writer<'_, $scalar>) {
                $($crate::named::Field::write(&self.$field, values);)*
            }
        }
    };
}

/// No values: of a model that has none of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nothing;

impl Named for Nothing {}

impl<S: Scalar> Fields<S> for Nothing {
    type Array = [S; 0];

    fn from_values(_: &[S; 0]) -> Self {
        Self
    }

    fn to_values(&self) -> [S; 0] {
        []
    }
}

/// What a joint transmits from its parent to its child, at the child's joint point, world axes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Wrench<S = f64> {
    /// The force.
    pub force: [S; 3],
    /// The torque.
    pub torque: [S; 3],
}
crate::fields!(@[<S: Scalar>] Wrench<S>, [S; 6] { force, torque });

/// Energies, and the power of the forces that have no potential.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Energies<S = f64> {
    /// Kinetic energy.
    pub kinetic: S,
    /// Potential energy.
    pub potential: S,
    /// Power of the forces that have no potential.
    pub power: S,
}
crate::fields!(@[<S: Scalar>] Energies<S>, [S; 3] { kinetic, potential, power });

impl<S: Scalar> Energies<S> {
    /// Kinetic and potential energy.
    pub fn total(&self) -> S {
        self.kinetic + self.potential
    }
}

/// An objective and its derivatives by what the model is differentiated by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Objective<D, S = f64> {
    /// Its value.
    pub value: S,
    /// Its derivatives.
    pub by: D,
}

impl<S: Scalar, D: Field<S>> Field<S> for Objective<D, S> {
    fn read(values: &mut Reader<'_, S>) -> Self {
        Self { value: values.field(), by: values.field() }
    }

    fn write(&self, values: &mut Writer<'_, S>) {
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
        self.of(quantity).get(index).copied()
    }

    /// The place of a name among the values of its slice, for those who work on slices:
    /// `const A: usize = NAMES.index(Quantity::Coordinate, "A.angle").unwrap();`
    pub const fn index(&self, quantity: Quantity, name: &str) -> Option<usize> {
        let names = self.of(quantity);
        let mut i = 0;
        while i < names.len() {
            if is_same(names[i].as_bytes(), name.as_bytes()) {
                return Some(i);
            }
            i += 1;
        }
        None
    }

    /// All names of a quantity.
    pub const fn of(&self, quantity: Quantity) -> &'static [&'static str] {
        match quantity {
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
        }
    }
}

/// Whether two names are the same.
const fn is_same(a: &[u8], b: &[u8]) -> bool {
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}

impl Names for NameTable {
    fn name(&self, quantity: Quantity, index: usize) -> Option<&str> {
        self.get(quantity, index)
    }
}
