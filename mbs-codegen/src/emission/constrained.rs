//! The face of constrained mechanisms: implementations of the runtime's traits for them.

use super::face::{arguments, count, ident};
use crate::program::{BundleKind, Program};
use proc_macro2::TokenStream;
use quote::quote;

/// The implementation to which a bundle belongs; all bundles of the coordinate form make one, printed with the first.
pub(super) fn implementation(program: &Program, kind: BundleKind) -> TokenStream {
    let given = |kind: BundleKind| {
        let bundle = program.bundle(kind.name());
        bundle.map_or_else(Vec::new, |bundle| arguments(bundle, &quote!(at.t), &quote!()))
    };
    let out = |name: &str| {
        let field = ident(name);
        quote!(rt::system::array_mut(#name, #field)?)
    };
    let lambda = quote!(lambda: &[S]);
    let scratch = quote!(w: &mut [S]);
    let result = quote!(Result<(), rt::EvalError>);
    match kind {
        BundleKind::Residual => coordinate_form(program),
        BundleKind::ConstrainedDynamics => {
            let given = given(kind);
            let (zd, vd, multipliers) = (out("zd"), out("vd"), out("lambda"));
            let columns = program.structure.joint_columns.iter().map(|&c| count(c as usize));
            let pivots = count(program.structure.joint_columns.len());
            quote! {
                impl rt::ConstrainedDynamics for Model {
                    #[inline]
                    fn constrained_dynamics(
                        &self,
                        at: rt::At<'_, S>,
                        stabilisation: rt::Stabilisation<S>,
                        #scratch,
                        zd: &mut [S],
                        vd: &mut [S],
                        xd: &mut [S],
                        lambda: &mut [S],
                    ) -> #result {
                        static COLUMNS: [u32; #pivots] = [#(#columns),*];
                        let _: &mut [S; 0] = rt::system::array_mut("xd", xd)?;
                        let mut pivots = [0.0; #pivots];
                        constrained_dynamics(
                            #(#given,)* rt::system::scratch(w)?, #zd, #vd, #multipliers, &mut pivots
                        );
                        rt::constrained::check_solution(&DIMS, &pivots, &COLUMNS)
                    }
                }
            }
        }
        BundleKind::ConstraintCorrection => {
            let given = given(kind);
            let (dz, dv, phi, phid) = (out("dz"), out("dv"), out("phi"), out("phid"));
            quote! {
                impl rt::ConstraintCorrection for Model {
                    #[inline]
                    fn constraint_correction(
                        &self,
                        at: rt::At<'_, S>,
                        #scratch,
                        dz: &mut [S],
                        dv: &mut [S],
                        phi: &mut [S],
                        phid: &mut [S],
                    ) -> #result {
                        constraint_correction(#(#given,)* rt::system::scratch(w)?, #dz, #dv, #phi, #phid);
                        Ok(())
                    }
                }
            }
        }
        BundleKind::Reactions => {
            let (given, reactions) = (given(kind), out("reactions"));
            quote! {
                impl rt::Reactions for Model {
                    #[inline]
                    fn reactions(
                        &self,
                        at: rt::At<'_, S>,
                        vd: &[S],
                        #lambda,
                        #scratch,
                        reactions: &mut [S],
                    ) -> #result {
                        self::reactions(#(#given,)* rt::system::scratch(w)?, #reactions);
                        Ok(())
                    }
                }
            }
        }
        BundleKind::Objectives => {
            let (given, integrands, terminals) = (given(kind), out("integrands"), out("terminals"));
            quote! {
                impl rt::Objectives for Model {
                    #[inline]
                    fn objectives(
                        &self,
                        at: rt::At<'_, S>,
                        vd: &[S],
                        #lambda,
                        #scratch,
                        integrands: &mut [S],
                        terminals: &mut [S],
                    ) -> #result {
                        objectives(#(#given,)* rt::system::scratch(w)?, #integrands, #terminals);
                        Ok(())
                    }
                }
            }
        }
        _ => quote!(),
    }
}

pub(super) fn places(entries: &[(u32, u32)]) -> TokenStream {
    let pairs = entries.iter().map(|&(i, j)| {
        let (i, j) = (count(i as usize), count(j as usize));
        quote!((#i, #j))
    });
    quote!(&[#(#pairs),*])
}

fn coordinate_form(program: &Program) -> TokenStream {
    let given = |kind: BundleKind, time: TokenStream| {
        let bundle = program.bundle(kind.name());
        bundle.map_or_else(Vec::new, |bundle| arguments(bundle, &time, &quote!()))
    };
    let at = quote!(at.t);
    let residual = given(BundleKind::Residual, at.clone());
    let newton = given(BundleKind::Newton, at.clone());
    let rates = given(BundleKind::ConstraintRates, at.clone());
    let accelerations = given(BundleKind::ConstraintAccelerations, at);
    let structure = &program.structure;
    let tangent = places(&structure.pattern.tangent);
    let holonomic = places(&structure.pattern.holonomic);
    let nonholonomic = places(&structure.pattern.nonholonomic);
    let held = &program.held;
    let columns = structure.columns.iter().map(|&c| count(c as usize));
    let size = count(structure.columns.len());
    let lambda = quote!(lambda: &[S]);
    let scratch = quote!(w: &mut [S]);
    let result = quote!(Result<(), rt::EvalError>);
    let many =
        super::many_columns(program).and_then(|_| program.bundle(BundleKind::Solve.name())).map(|solve| {
            let (function, slots) = (ident(&super::lanes::name(solve)), count(solve.slots as usize));
            quote! {
                #[inline]
                fn solve_many(
                    &self,
                    factors: &[S],
                    columns: usize,
                    #scratch,
                    column: &mut [S],
                    x: &mut [S],
                ) -> #result {
                    let numbers = rt::system::array("factors", factors)?;
                    let four = |x: &mut [l::Lanes<S>; #size]| {
                        let rhs = *x;
                        let mut w = [[0.0; l::WIDTH]; #slots];
                        #function(numbers, &rhs, &mut w, x);
                    };
                    l::for_each(columns, x, four, |x| self.solve(factors, w, x))
                }
            }
        });
    quote! {
        impl rt::Constrained for Model {
            #[inline(always)]
            fn pattern(&self) -> rt::Pattern<'_> {
                rt::Pattern { tangent: #tangent, holonomic: #holonomic, nonholonomic: #nonholonomic }
            }

            #[inline(always)]
            fn held(&self) -> &[bool] {
                &[#(#held),*]
            }

            #[inline]
            fn residual(
                &self,
                at: rt::Motion<'_, S>,
                #lambda,
                #scratch,
                r: &mut [S],
                phi: &mut [S],
            ) -> #result {
                residual(
                    #(#residual,)*
                    rt::system::scratch(w)?,
                    rt::system::array_mut("r", r)?,
                    rt::system::array_mut("phi", phi)?,
                );
                Ok(())
            }

            #[inline]
            fn newton(
                &self,
                at: rt::Motion<'_, S>,
                #lambda,
                weights: rt::Weights<S>,
                #scratch,
                r: &mut [S],
                phi: &mut [S],
                matrix: &mut [S],
            ) -> #result {
                newton(
                    #(#newton,)*
                    rt::system::scratch(w)?,
                    rt::system::array_mut("r", r)?,
                    rt::system::array_mut("phi", phi)?,
                    rt::system::first_mut("matrix", matrix)?,
                );
                Ok(())
            }

            #[inline]
            fn projection(&self, t: S, z: &[S], u: &[S], #scratch, matrix: &mut [S]) -> #result {
                projection(
                    t,
                    rt::system::array("z", z)?,
                    rt::system::array("u", u)?,
                    &self.prepared,
                    rt::system::scratch(w)?,
                    rt::system::first_mut("matrix", matrix)?,
                );
                Ok(())
            }

            #[inline]
            fn constraint_rates(&self, at: rt::Motion<'_, S>, #scratch, phid: &mut [S]) -> #result {
                constraint_rates(#(#rates,)* rt::system::scratch(w)?, rt::system::array_mut("phid", phid)?);
                Ok(())
            }

            #[inline]
            fn constraint_accelerations(&self, at: rt::Motion<'_, S>, #scratch, phidd: &mut [S]) -> #result {
                constraint_accelerations(
                    #(#accelerations,)*
                    rt::system::scratch(w)?,
                    rt::system::array_mut("phidd", phidd)?,
                );
                Ok(())
            }

            #[inline]
            fn factor(&self, matrix: &[S], #scratch, factors: &mut [S]) -> #result {
                static COLUMNS: [u32; #size] = [#(#columns),*];
                let mut pivots = [0.0; #size];
                factor(
                    rt::system::array("matrix", matrix)?,
                    &self.prepared,
                    rt::system::scratch(w)?,
                    rt::system::array_mut("factors", factors)?,
                    &mut pivots,
                );
                rt::constrained::check_factors(&DIMS, &pivots, &COLUMNS)
            }

            #[inline]
            fn solve(&self, factors: &[S], #scratch, x: &mut [S]) -> #result {
                let x: &mut [S; #size] = rt::system::array_mut("x", x)?;
                let rhs = *x;
                solve(
                    rt::system::array("factors", factors)?,
                    &rhs,
                    &self.prepared,
                    rt::system::scratch(w)?,
                    x,
                );
                Ok(())
            }

            #many

            #[inline]
            fn solve_transposed(&self, factors: &[S], #scratch, x: &mut [S]) -> #result {
                let x: &mut [S; #size] = rt::system::array_mut("x", x)?;
                let rhs = *x;
                solve_transposed(
                    rt::system::array("factors", factors)?,
                    &rhs,
                    &self.prepared,
                    rt::system::scratch(w)?,
                    x,
                );
                Ok(())
            }
        }
    }
}
