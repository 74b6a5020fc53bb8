//! The lists that bundles of derivatives write, cut into their sections. Names, order and lengths are those of the table of bundles.

use super::derivatives::{JointPlaces, ParameterPlaces, Places};
use crate::constrained::Pattern;
use crate::error::EvalError;
use crate::system::Dims;
use mbs_bundles::for_each_list;

/// Cuts a list; a part that is not there is an error.
struct Cut<'a, S> {
    rest: &'a [S],
    wrong: EvalError,
}

impl<'a, S> Cut<'a, S> {
    #[inline(always)]
    fn next(&mut self, n: usize) -> Result<&'a [S], EvalError> {
        let (part, rest) = self.rest.split_at_checked(n).ok_or(self.wrong)?;
        self.rest = rest;
        Ok(part)
    }
}

/// What lengths come from, as an argument.
macro_rules! source {
    (Dims) => { &Dims };
    (Places) => { Places<'_> };
    ($From:ident) => { &$From<'_> };
}

macro_rules! lists {
    ($(list $List:ident($($from:ident: $From:ident),*) of $method:ident {
        $($section:ident: $len:expr, $what:literal;)*
    })*) => {
        $(
            #[doc = concat!("What `", stringify!($method), "` writes.")]
            #[derive(Clone, Copy, Debug)]
            pub struct $List<'a, S> {
                $(#[doc = $what] pub $section: &'a [S],)*
            }

            impl<'a, S> $List<'a, S> {
                /// The sections of a list; one of another length is an error.
                #[inline(always)]
                pub fn of($($from: source!($From),)* values: &'a [S]) -> Result<Self, EvalError> {
                    let expected = 0 $(+ $len)*;
                    let wrong = EvalError::Length { what: "values", expected, found: values.len() };
                    let mut cut = Cut { rest: values, wrong };
                    let list = Self { $($section: cut.next($len)?),* };
                    if cut.rest.is_empty() { Ok(list) } else { Err(wrong) }
                }
            }
        )*
    };
}

for_each_list!(lists);
