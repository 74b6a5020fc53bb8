//! The cases of a module: an enum of their names.

use super::face::{ident, number as literal};
use super::free_text::prose;
use super::names::fields;
use super::simulation;
use crate::program::{CaseInfo, Program};
use proc_macro2::{Ident, Literal, TokenStream};
use quote::quote;

/// The cases that a module has, with their variants. A case whose method lacks its bundles needs a module of its own.
pub(super) fn offered(program: &Program) -> Vec<(&CaseInfo, Ident)> {
    let runs = simulation::has_method(program, &program.simulation);
    let is_offered = |case: &&CaseInfo| !runs || simulation::has_method(program, &case.simulation);
    let cases: Vec<&CaseInfo> = program.cases.iter().filter(is_offered).collect();
    let variants = fields(cases.iter().map(|case| case.name.as_str()));
    cases.into_iter().zip(variants.iter().map(|name| ident(name))).collect()
}

/// `Case`, with the parameters of each.
pub(super) fn print(program: &Program) -> TokenStream {
    let (cases, variants): (Vec<&CaseInfo>, Vec<Ident>) = offered(program).into_iter().unzip();
    let separate = separate(program, &cases);
    if cases.is_empty() {
        let doc = format!(" Cases of the model that share its equations: none.{separate}");
        return quote! {
            #[doc = #doc]
            pub type Case = ::core::convert::Infallible;
        };
    }
    let declared = cases.iter().zip(&variants).map(|(case, variant)| {
        let described = if case.description.is_empty() { String::new() } else { prose(&case.description) };
        let doc = format!(" `{}`. {described}", case.name);
        let doc = doc.trim_end();
        let number = Literal::u32_unsuffixed(case.number);
        quote! { #[doc = #doc] #variant = #number }
    });
    let names = cases.iter().map(|case| &case.name);
    let changed = cases.iter().zip(&variants).filter_map(|(case, variant)| {
        let parameters = parameters(program, case)?;
        Some(quote!(Case::#variant => #parameters,))
    });
    let mut changed: Vec<TokenStream> = changed.collect();
    if changed.len() < cases.len() {
        changed.push(quote!(_ => Parameters::default(),));
    }
    let doc = format!(
        " Cases of the model: their parameters, start values, inputs and settings. Pass one to `Simulation::of_case`.{separate}"
    );
    quote! {
        #[doc = #doc]
        #[allow(non_camel_case_types, reason = "spelt as in the model")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Case { #(#declared,)* }

        /// All cases.
        pub const CASES: &[Case] = &[#(Case::#variants),*];

        impl Case {
            /// The name of the case, as the model spells it.
            pub const fn name(self) -> &'static str {
                match self { #(Case::#variants => #names,)* }
            }

            /// Its parameters.
            pub fn parameters(self) -> Parameters {
                match self { #(#changed)* }
            }
        }
    }
}

/// Documentation of the cases that need a module of their own.
fn separate(program: &Program, offered: &[&CaseInfo]) -> String {
    let others = program.cases.iter().filter(|case| offered.iter().all(|one| one.number != case.number));
    let names = program.separate_cases.iter().chain(others.map(|case| &case.name));
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    if names.is_empty() {
        return String::new();
    }
    format!(
        " Other cases of the model need a module of their own, generated with `case`: {}.",
        names.join(", ")
    )
}

/// Parameters that the case changes, and the model's for the others; nothing if it changes none.
fn parameters(program: &Program, case: &CaseInfo) -> Option<TokenStream> {
    let names = fields(program.parameters.iter().map(|parameter| parameter.name.as_str()));
    let all = program.parameters.iter().zip(&case.parameters).zip(&names);
    let changed: Vec<TokenStream> = all
        .filter(|((parameter, values), _)| parameter.defaults != **values)
        .map(|((parameter, values), name)| {
            let (name, values) = (ident(name), values.iter().map(|&value| literal(value)));
            if parameter.is_array { quote!(#name: [#(#values),*]) } else { quote!(#name: #(#values)*) }
        })
        .collect();
    (!changed.is_empty()).then(|| quote!(Parameters { #(#changed,)* ..Parameters::default() }))
}

/// The number of a case, as bundles take it.
pub(super) fn number(case: &TokenStream) -> TokenStream {
    quote!(&[#case.map_or(0.0, |case| case as u32 as S)])
}
