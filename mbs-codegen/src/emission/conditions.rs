//! `Parameters::check`: whether values are allowed, beside their types.

use super::cases;
use super::face::{count, ident};
use crate::program::Program;
use crate::symbols::Group;
use proc_macro2::TokenStream;
use quote::quote;

/// The implementation.
pub(super) fn print(program: &Program) -> TokenStream {
    let judged = match program.bundle("conditions") {
        None => quote!(Ok(())),
        Some(bundle) => {
            let (function, slots, len) =
                (ident(bundle.name), count(bundle.slots as usize), count(program.conditions.len()));
            let conditions = program.conditions.iter().map(|condition| {
                let (message, strict) = (&condition.message, condition.strict);
                quote!(rt::simulation::Condition { message: #message, strict: #strict })
            });
            let by_case = bundle.arguments.iter().any(|&(group, _)| group == Group::Case);
            let case = by_case.then(|| cases::number(&quote!(case))).map(|number| quote!(#number,));
            quote! {
                const CONDITIONS: [rt::simulation::Condition; #len] = [#(#conditions),*];
                let (mut margins, mut shown) = ([0.0; #len], [0.0; #len]);
                let mut w = [0.0; #slots];
                #function(&values, #case &mut w, &mut margins, &mut shown);
                rt::simulation::ParameterError::check_conditions(&CONDITIONS, &margins, &shown)
            }
        }
    };
    quote! {
        impl Parameters {
            /// Whether a mechanism can have these values: all are finite and within their bounds, no mass is negative, inertias
            /// are those of bodies, knots increase, and constraints that no coordinate can correct hold.
            pub fn check(&self) -> Result<(), rt::simulation::ParameterError> {
                self.check_under(None)
            }

            /// The same under a case, whose inputs may have conditions of their own.
            pub fn check_under(&self, case: Option<Case>) -> Result<(), rt::simulation::ParameterError> {
                let values = self.to_array();
                rt::simulation::ParameterError::check_bounds(&values, &Self::BOUNDS)?;
                #judged
            }
        }
    }
}
