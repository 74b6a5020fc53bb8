//! The face of what identification, control and optimisation ask for: implementations of the runtime's traits of `tree`.

use super::constrained::places;
use super::face::{arguments, ident};
use crate::program::{BundleKind, Program};
use proc_macro2::TokenStream;
use quote::quote;

/// The implementation to which a bundle belongs.
pub(super) fn implementation(program: &Program, kind: BundleKind) -> TokenStream {
    let Some(bundle) = program.bundle(kind.name()) else {
        return quote!();
    };
    let function = ident(kind.name());
    let given = arguments(bundle, &quote!(at.t), &quote!());
    let out = |name: &str| {
        let field = ident(name);
        quote!(rt::system::array_mut(#name, #field)?)
    };
    let at = quote!(&self, at: rt::At<'_, S>);
    let scratch = quote!(w: &mut [S]);
    let result = quote!(Result<(), rt::EvalError>);
    match kind {
        BundleKind::InertialParameters => {
            let pi = out("pi");
            quote! {
                impl rt::InertialParameters for Model {
                    #[inline]
                    fn #function(&self, #scratch, pi: &mut [S]) -> #result {
                        #function(#(#given,)* rt::system::scratch(w)?, #pi);
                        Ok(())
                    }
                }
            }
        }
        BundleKind::Regressor => {
            let (values, places) = (out("values"), places(&program.structure.regressor));
            quote! {
                impl rt::Regressor for Model {
                    #[inline(always)]
                    fn regressor_places(&self) -> rt::sensitivity::Places<'_> {
                        #places
                    }

                    #[inline]
                    fn #function(#at, vd: &[S], #scratch, values: &mut [S]) -> #result {
                        #function(#(#given,)* rt::system::scratch(w)?, #values);
                        Ok(())
                    }
                }
            }
        }
        _ => quote!(),
    }
}
