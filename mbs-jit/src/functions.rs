//! The functions that machine code calls: those of the runtime, which the tape calls too, so that both have the same bits.
//!
//! All take numbers in registers and return numbers in registers. None takes an address, none returns otherwise than normally: the runtime's
//! functions do not panic, and a panic would end the process at this boundary.

use mbs_codegen::graph::{BinaryOp, UnaryOp};

/// Those of one argument, in the order of the table.
const OF_ONE: [UnaryOp; 12] = [
    UnaryOp::Sin,
    UnaryOp::Cos,
    UnaryOp::Tan,
    UnaryOp::Asin,
    UnaryOp::Acos,
    UnaryOp::Atan,
    UnaryOp::Exp,
    UnaryOp::Ln,
    UnaryOp::Sinh,
    UnaryOp::Cosh,
    UnaryOp::Tanh,
    UnaryOp::Sign,
];

/// Those of two, after them.
const OF_TWO: [BinaryOp; 2] = [BinaryOp::Pow, BinaryOp::Atan2];

/// The last entry, of two results.
pub(crate) const SIN_COS: u8 = (OF_ONE.len() + OF_TWO.len()) as u8;

/// How many entries the table has.
pub(crate) const COUNT: usize = SIN_COS as usize + 1;

/// The entry of a function of one argument.
pub(crate) fn of_one(function: UnaryOp) -> Option<u8> {
    OF_ONE.iter().position(|&other| other == function).map(|entry| entry as u8)
}

/// The entry of a function of two arguments.
pub(crate) fn of_two(function: BinaryOp) -> Option<u8> {
    OF_TWO.iter().position(|&other| other == function).map(|entry| (OF_ONE.len() + entry) as u8)
}

#[cfg(target_arch = "x86_64")]
pub(crate) use native::{Address, TABLE};

#[cfg(target_arch = "x86_64")]
mod native {
    use super::COUNT;
    use mbs_runtime::math;

    /// A function's address, of whichever kind.
    #[derive(Clone, Copy)]
    #[repr(C)]
    pub(crate) union Address {
        one: extern "sysv64" fn(f64) -> f64,
        two: extern "sysv64" fn(f64, f64) -> f64,
        pair: extern "sysv64" fn(f64) -> Pair,
    }

    /// Two numbers, which this convention returns in xmm0 and xmm1.
    #[repr(C)]
    pub(crate) struct Pair {
        sine: f64,
        cosine: f64,
    }

    macro_rules! of_one {
        ($($name:ident)+) => { $(extern "sysv64" fn $name(x: f64) -> f64 { math::$name(x) })+ };
    }

    macro_rules! of_two {
        ($($name:ident)+) => { $(extern "sysv64" fn $name(a: f64, b: f64) -> f64 { math::$name(a, b) })+ };
    }

    of_one!(sin cos tan asin acos atan exp ln sinh cosh tanh sign);
    of_two!(powf atan2);

    extern "sysv64" fn sin_cos(x: f64) -> Pair {
        let (sine, cosine) = math::sin_cos(x);
        Pair { sine, cosine }
    }

    /// Addresses, in the order that the numbers of this module say.
    pub(crate) static TABLE: [Address; COUNT] = [
        Address { one: sin },
        Address { one: cos },
        Address { one: tan },
        Address { one: asin },
        Address { one: acos },
        Address { one: atan },
        Address { one: exp },
        Address { one: ln },
        Address { one: sinh },
        Address { one: cosh },
        Address { one: tanh },
        Address { one: sign },
        Address { two: powf },
        Address { two: atan2 },
        Address { pair: sin_cos },
    ];
}
