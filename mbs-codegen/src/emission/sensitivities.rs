//! The face of differentiated models: implementations of the runtime's traits for derivatives.

use super::constrained::places;
use super::face::{arguments, count, ident};
use crate::program::{BundleKind, Program};
use proc_macro2::TokenStream;
use quote::quote;

/// Sizes of what the model knows of its derivatives.
pub(super) fn dims(program: &Program) -> TokenStream {
    let values = |kind: BundleKind, result: usize| count(program.result_len(kind, result));
    let parameters = count(program.sensitivity.len());
    let [start, newton, projections, integrands, terminals, joint, joint_integrands, joint_terminals] = [
        BundleKind::StartDerivatives,
        BundleKind::Linearise,
        BundleKind::LineariseProjections,
        BundleKind::IntegrandDerivatives,
        BundleKind::TerminalDerivatives,
        BundleKind::JointLinearise,
        BundleKind::JointIntegrandDerivatives,
        BundleKind::JointTerminalDerivatives,
    ]
    .map(|kind| values(kind, 0));
    let joint_factors = values(BundleKind::JointLinearise, 1);
    quote! {
        rt::SensitivityDims {
            parameters: #parameters,
            start: #start,
            newton: #newton,
            projections: #projections,
            integrands: #integrands,
            terminals: #terminals,
            joint: #joint,
            joint_factors: #joint_factors,
            joint_integrands: #joint_integrands,
            joint_terminals: #joint_terminals,
        }
    }
}

/// The implementations to which a bundle belongs; those of one family are printed with its first.
pub(super) fn implementation(program: &Program, kind: BundleKind) -> TokenStream {
    let derivatives = &program.structure.derivatives;
    match kind {
        BundleKind::StartDerivatives => {
            let [z, v] = derivatives.start.each_ref().map(|of| places(of));
            let body = body(program, kind);
            quote! {
                impl rt::StartDerivatives for Model {
                    #[inline(always)]
                    fn start_places(&self) -> [rt::sensitivity::Places<'_>; 2] {
                        [#z, #v]
                    }

                    #[inline]
                    fn start_derivatives(&self, w: &mut [S], values: &mut [S]) -> Result<(), rt::EvalError> {
                        #body
                    }
                }
            }
        }
        BundleKind::Linearise => coordinate_form(program),
        BundleKind::JointLinearise => joint_form(program),
        _ => quote!(),
    }
}

/// The call of a bundle whose one result is `values`.
fn body(program: &Program, kind: BundleKind) -> TokenStream {
    let Some(bundle) = program.bundle(kind.name()) else {
        return quote!();
    };
    let (function, given) = (ident(kind.name()), arguments(bundle, &quote!(at.t), &quote!()));
    quote! {
        #function(
            #(#given,)*
            rt::system::scratch(w)?,
            rt::system::array_mut("values", values)?,
        );
        Ok(())
    }
}

fn coordinate_form(program: &Program) -> TokenStream {
    let derivatives = &program.structure.derivatives;
    let of = &derivatives.parameters;
    let [residual, constraints, impulse, rates, accelerations] =
        [&of.residual, &of.constraints, &of.impulse, &of.rates, &of.accelerations].map(|of| places(of));
    let [integrands, terminals] = derivatives.objectives.each_ref().map(|of| places(of));
    let [newton, projections, integrand, terminal] = [
        BundleKind::Linearise,
        BundleKind::LineariseProjections,
        BundleKind::IntegrandDerivatives,
        BundleKind::TerminalDerivatives,
    ]
    .map(|kind| body(program, kind));
    let at = quote!(&self, at: rt::Motion<'_, S>);
    let written = quote!(w: &mut [S], values: &mut [S]);
    let result = quote!(Result<(), rt::EvalError>);
    quote! {
        impl rt::Sensitivities for Model {
            #[inline(always)]
            fn parameter_places(&self) -> rt::ParameterPlaces<'_> {
                rt::ParameterPlaces {
                    residual: #residual,
                    constraints: #constraints,
                    impulse: #impulse,
                    rates: #rates,
                    accelerations: #accelerations,
                }
            }

            #[inline]
            fn linearise(#at, lambda: &[S], #written) -> #result {
                #newton
            }

            #[inline]
            fn linearise_projections(#at, impulses: rt::Impulses<'_, S>, #written) -> #result {
                #projections
            }
        }

        impl rt::ObjectiveDerivatives for Model {
            #[inline(always)]
            fn objective_places(&self) -> [rt::sensitivity::Places<'_>; 2] {
                [#integrands, #terminals]
            }

            #[inline]
            fn integrand_derivatives(#at, lambda: &[S], #written) -> #result {
                #integrand
            }

            #[inline]
            fn terminal_derivatives(#at, lambda: &[S], #written) -> #result {
                #terminal
            }
        }
    }
}

fn joint_form(program: &Program) -> TokenStream {
    let derivatives = &program.structure.derivatives;
    let of = &derivatives.joint;
    let [tangent, rows, force, row] = [&of.tangent, &of.rows, &of.force, &of.row].map(|of| places(of));
    let [integrands, terminals] = derivatives.joint_objectives.each_ref().map(|of| places(of));
    let [integrand, terminal] = [BundleKind::JointIntegrandDerivatives, BundleKind::JointTerminalDerivatives]
        .map(|kind| body(program, kind));
    let given = program
        .bundle(BundleKind::JointLinearise.name())
        .map_or_else(Vec::new, |bundle| arguments(bundle, &quote!(at.t), &quote!()));
    let columns = program.structure.joint_columns.iter().map(|&c| count(c as usize));
    let size = count(program.structure.joint_columns.len());
    let at = quote!(&self, at: rt::At<'_, S>, vd: &[S], lambda: &[S]);
    let written = quote!(w: &mut [S], values: &mut [S]);
    let result = quote!(Result<(), rt::EvalError>);
    quote! {
        impl rt::JointSensitivities for Model {
            #[inline(always)]
            fn joint_places(&self) -> rt::JointPlaces<'_> {
                rt::JointPlaces { tangent: #tangent, rows: #rows, force: #force, row: #row }
            }

            #[inline]
            fn joint_linearise(
                #at,
                stabilisation: rt::Stabilisation<S>,
                #written,
                factors: &mut [S],
            ) -> #result {
                static COLUMNS: [u32; #size] = [#(#columns),*];
                let mut pivots = [0.0; #size];
                joint_linearise(
                    #(#given,)*
                    rt::system::scratch(w)?,
                    rt::system::array_mut("values", values)?,
                    rt::system::array_mut("factors", factors)?,
                    &mut pivots,
                );
                rt::constrained::check_solution(&DIMS, &pivots, &COLUMNS)
            }

            #[inline]
            fn joint_solve(&self, factors: &[S], w: &mut [S], x: &mut [S]) -> #result {
                let x: &mut [S; #size] = rt::system::array_mut("x", x)?;
                let rhs = *x;
                joint_solve(
                    rt::system::array("factors", factors)?,
                    &rhs,
                    &self.prepared,
                    rt::system::scratch(w)?,
                    x,
                );
                Ok(())
            }
        }

        impl rt::JointObjectiveDerivatives for Model {
            #[inline(always)]
            fn joint_objective_places(&self) -> [rt::sensitivity::Places<'_>; 2] {
                [#integrands, #terminals]
            }

            #[inline]
            fn joint_integrand_derivatives(#at, #written) -> #result {
                #integrand
            }

            #[inline]
            fn joint_terminal_derivatives(#at, #written) -> #result {
                #terminal
            }
        }
    }
}
