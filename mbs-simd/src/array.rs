//! Packs as arrays.

/// Two numbers.
#[derive(Clone, Copy, Debug)]
pub struct Pack([f64; 2]);

/// (a, b)
#[inline(always)]
pub fn join(a: f64, b: f64) -> Pack {
    Pack([a, b])
}

/// The first number.
#[inline(always)]
pub fn first(x: Pack) -> f64 {
    x.0[0]
}

/// The second number.
#[inline(always)]
pub fn second(x: Pack) -> f64 {
    x.0[1]
}

/// Two neighbouring entries.
#[inline(always)]
pub fn load(values: &[f64], index: usize) -> Pack {
    assert!(index < values.len() && values.len() - index > 1, "a pack out of bounds");
    Pack([values[index], values[index + 1]])
}

/// Writes two neighbouring entries.
#[inline(always)]
pub fn store(values: &mut [f64], index: usize, x: Pack) {
    assert!(index < values.len() && values.len() - index > 1, "a pack out of bounds");
    [values[index], values[index + 1]] = x.0;
}

macro_rules! lanes {
    ($($(#[$doc:meta])* $name:ident($($argument:ident),+) = $value:expr;)+) => {
        $(
            $(#[$doc])*
            #[inline(always)]
            pub fn $name($($argument: super::Pack),+) -> super::Pack {
                let lane = |$($argument: f64),+| $value;
                super::Pack([lane($($argument.0[0]),+), lane($($argument.0[1]),+)])
            }
        )+
    };
}

/// What every processor has.
pub(crate) mod operations {
    lanes! {
        /// −x
        neg(x) = -x;
        /// a + b
        add(a, b) = a + b;
        /// a − b
        sub(a, b) = a - b;
        /// a b
        mul(a, b) = a * b;
        /// a / b
        div(a, b) = a / b;
    }
}

/// Products and sums, each rounded.
pub mod rounded_twice {
    lanes! {
        /// a b + c
        mul_add(a, b, c) = a * b + c;
        /// a b − c
        mul_sub(a, b, c) = a * b - c;
        /// c − a b
        neg_mul_add(a, b, c) = c - a * b;
    }
}
