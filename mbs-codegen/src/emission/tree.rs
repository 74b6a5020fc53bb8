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
        BundleKind::GravityTerms | BundleKind::CoriolisTerms => {
            let (name, field) = match kind {
                BundleKind::GravityTerms => (ident("GravityTerms"), "gravity"),
                _ => (ident("CoriolisTerms"), "coriolis"),
            };
            let (terms, field) = (out(field), ident(field));
            quote! {
                impl rt::#name for Model {
                    #[inline]
                    fn #function(#at, #scratch, #field: &mut [S]) -> #result {
                        #function(#(#given,)* rt::system::scratch(w)?, #terms);
                        Ok(())
                    }
                }
            }
        }
        BundleKind::Centroidal => {
            let written = fields(
                "centroid",
                &["com", "com_velocity", "com_jacobian", "momentum", "momentum_matrix", "momentum_bias"],
            );
            quote! {
                impl rt::Centroidal for Model {
                    #[inline]
                    fn #function(#at, #scratch, centroid: rt::Centroid<'_, S>) -> #result {
                        #function(#(#given,)* rt::system::scratch(w)?, #(#written),*);
                        Ok(())
                    }
                }
            }
        }
        BundleKind::MarkerJacobianRates => {
            let (rates, bias) = (out("rates"), out("bias"));
            quote! {
                impl rt::MarkerJacobianRates for Model {
                    #[inline]
                    fn #function(#at, #scratch, rates: &mut [S], bias: &mut [S]) -> #result {
                        #function(#(#given,)* rt::system::scratch(w)?, #rates, #bias);
                        Ok(())
                    }
                }
            }
        }
        BundleKind::InverseDynamicsExternal => {
            let tau = out("tau");
            quote! {
                impl rt::InverseDynamicsExternal for Model {
                    #[inline]
                    fn #function(
                        #at, vd: &[S], wrenches: &[S], #scratch, tau: &mut [S]
                    ) -> #result {
                        #function(#(#given,)* rt::system::scratch(w)?, #tau);
                        Ok(())
                    }
                }
            }
        }
        BundleKind::ForwardDynamicsExternal => {
            let (zd, vd) = (out("zd"), out("vd"));
            quote! {
                impl rt::ForwardDynamicsExternal for Model {
                    #[inline]
                    fn #function(
                        #at,
                        tau: &[S],
                        wrenches: &[S],
                        #scratch,
                        zd: &mut [S],
                        vd: &mut [S],
                        xd: &mut [S],
                    ) -> #result {
                        let _: &mut [S; 0] = rt::system::array_mut("xd", xd)?;
                        let mut pivots = [0.0; NV];
                        #function(#(#given,)* rt::system::scratch(w)?, #zd, #vd, &mut pivots);
                        rt::system::check_pivots(&pivots)
                    }
                }
            }
        }
        BundleKind::MassMatrixInverseAction => {
            let x = out("x");
            quote! {
                impl rt::MassMatrixInverseAction for Model {
                    #[inline]
                    fn #function(#at, tau: &[S], #scratch, x: &mut [S]) -> #result {
                        let mut pivots = [0.0; NV];
                        #function(#(#given,)* rt::system::scratch(w)?, #x, &mut pivots);
                        rt::system::check_pivots(&pivots)
                    }
                }
            }
        }
        BundleKind::ForwardDynamicsDerivatives => {
            let written = fields("derivatives", &["vd", "vd_z", "vd_v", "vd_tau", "vd_rho"]);
            quote! {
                impl rt::ForwardDynamicsDerivatives for Model {
                    #[inline]
                    fn #function(
                        #at,
                        tau: &[S],
                        #scratch,
                        derivatives: rt::AccelerationDerivatives<'_, S>,
                    ) -> #result {
                        let mut pivots = [0.0; NV];
                        #function(#(#given,)* rt::system::scratch(w)?, #(#written,)* &mut pivots);
                        rt::system::check_pivots(&pivots)
                    }
                }
            }
        }
        BundleKind::InverseDynamicsParameters => {
            let (values, places) = (out("values"), places(&program.structure.derivatives.inverse_dynamics));
            quote! {
                impl rt::InverseDynamicsParameters for Model {
                    #[inline(always)]
                    fn inverse_dynamics_parameter_places(&self) -> rt::sensitivity::Places<'_> {
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

/// The slices of a struct of results.
fn fields(of: &str, names: &[&str]) -> Vec<TokenStream> {
    let of = ident(of);
    let field = |name: &&str| {
        let field = ident(name);
        quote!(rt::system::array_mut(#name, #of.#field)?)
    };
    names.iter().map(field).collect()
}
