//! The module's face: constants, parameters, the model and its trait implementations.

use super::free_text::prose;
use super::names::fields;
use super::{cases, named, simulation};
use crate::model::Hold;
use crate::program::{Fma, Program};
use crate::symbols::Group;
use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{ToTokens, format_ident, quote};

/// The module without the bodies of its bundles.
pub(super) fn print(program: &Program, module: &str, visibility: &str) -> String {
    let module = ident(module);
    let visibility = match visibility {
        "" => quote!(),
        "pub(crate)" => quote!(pub(crate)),
        _ => quote!(pub),
    };
    let doc = module_doc(program);
    let scalar = ident(program.options.scalar.name());
    let functions = ident(super::functions(program));
    let constants = constants_of(program);
    let names = names_of(program);
    let parameters = parameters_of(program);
    let check = super::conditions::print(program);
    let cases = cases::print(program);
    let model = model_of(program);
    let simulation = simulation::print(program);
    let bundles = super::glue::implementations(program);
    let products = products_of(program);
    let tokens = quote! {
        #[doc = #doc]
        #[allow(
            clippy::all,
            clippy::pedantic,
            dead_code,
            non_snake_case,
            unused_imports,
            unused_parens,
            unused_variables,
            reason = "generated code"
        )]
        #visibility mod #module {
            use ::mbs_runtime as rt;
            use ::mbs_runtime::lanes as l;
            use ::mbs_runtime::#functions as m;
            use ::mbs_runtime::pack as p;
            use ::mbs_runtime::rolled as r;

            /// The scalar the model is printed for.
            pub type S = #scalar;
            type L = l::Lanes<S>;

            #constants
            #names
            #parameters
            #cases
            #check
            #model
            #simulation
            #bundles

            /// An entry of an array whose length the caller knows.
            #[inline(always)]
            fn ld(values: &[S], index: usize) -> S {
                values[index]
            }

            /// Writes an entry of such an array.
            #[inline(always)]
            fn st(values: &mut [S], index: usize, value: S) {
                values[index] = value;
            }
            #products
        }
    };
    format(tokens)
}

/// Products with sums as functions that are not generic, which a compiler checks quickest; without fused operations the operators say it.
fn products_of(program: &Program) -> Option<TokenStream> {
    (program.options.fma == Fma::Target).then(|| {
        quote! {
            /// a b + c, rounded once where the target can.
            #[inline(always)]
            fn mul_add(a: S, b: S, c: S) -> S {
                m::mul_add(a, b, c)
            }

            /// a b − c, rounded once where the target can.
            #[inline(always)]
            fn mul_sub(a: S, b: S, c: S) -> S {
                m::mul_add(a, b, -c)
            }

            /// c − a b, rounded once where the target can.
            #[inline(always)]
            fn neg_mul_add(a: S, b: S, c: S) -> S {
                m::mul_add(-a, b, c)
            }
        }
    })
}

#[cfg(feature = "formatted")]
fn format(tokens: TokenStream) -> String {
    match syn::parse2(tokens.clone()) {
        Ok(file) => prettyplease::unparse(&file),
        // Unformatted rather than not at all; a test shows that it does not come to this.
        Err(_) => tokens.to_string(),
    }
}

#[cfg(not(feature = "formatted"))]
fn format(tokens: TokenStream) -> String {
    tokens.to_string()
}

pub(super) fn ident(name: &str) -> Ident {
    Ident::new(name, Span::call_site())
}

pub(super) fn number(value: f64) -> TokenStream {
    // A negative literal is two tokens.
    let literal = Literal::f64_unsuffixed(value.abs());
    if value.is_sign_negative() && value != 0.0 { quote!(-#literal) } else { quote!(#literal) }
}

pub(super) fn count(value: usize) -> Literal {
    Literal::usize_unsuffixed(value)
}

fn module_doc(program: &Program) -> String {
    let mut doc = format!(" Solver of the model `{}`.\n", program.name);
    if !program.description.is_empty() {
        doc.push_str("\n ");
        doc.push_str(&prose(&program.description));
        doc.push('\n');
    }
    doc.push_str("\n | bundle | operations | workspace |\n |---|---|---|\n");
    for bundle in &program.bundles {
        doc.push_str(&format!(" | `{}` | {} | {} |\n", bundle.name, bundle.counts.total(), bundle.slots));
    }
    doc
}

fn constants_of(program: &Program) -> TokenStream {
    let np: usize = program.parameters.iter().map(|p| p.defaults.len()).sum();
    let workspace = program.bundles.iter().map(|b| b.slots as usize).max().unwrap_or(0);
    let prepared = program.bundle("prepare").map_or(0, |b| b.results[0].len as usize);
    let [nq, nv, nu, np, nc, workspace] =
        [program.coordinates.len(), program.velocities.len(), program.inputs.len(), np, prepared, workspace]
            .map(count);
    let dims = super::glue::dims(program);
    quote! {
        /// Number of coordinates z.
        pub const NQ: usize = #nq;
        /// Number of velocities v.
        pub const NV: usize = #nv;
        /// Length of the state y = [z, v].
        pub const NY: usize = NQ + NV;
        /// Number of inputs u.
        pub const NU: usize = #nu;
        /// Number of independent parameters, arrays flattened.
        pub const NP: usize = #np;
        /// Number of prepared values.
        pub const NC: usize = #nc;
        /// Scratch that suffices for every bundle.
        pub const WORKSPACE: usize = #workspace;
        /// Sizes.
        pub const DIMS: rt::Dims = #dims;
    }
}

fn names_of(program: &Program) -> TokenStream {
    let parameters = program.parameter_names();
    let named = |list: &[(String, String)]| list.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    let inputs: Vec<String> = program.inputs.iter().map(|input| input.name.clone()).collect();
    let (outputs, objectives) = (named(&program.outputs), named(&program.objectives));
    let lists = [
        ("coordinates", &program.coordinates),
        ("velocities", &program.velocities),
        ("inputs", &inputs),
        ("parameters", &parameters),
        ("markers", &program.markers),
        ("outputs", &outputs),
        ("joints", &program.joints),
        ("bodies", &program.bodies),
        ("objectives", &objectives),
        ("sensitivities", &program.sensitivity),
        ("holonomic", &program.holonomic),
        ("normalised", &program.normalised),
        ("nonholonomic", &program.nonholonomic),
    ];
    let lists = lists.map(|(list, names)| {
        let list = ident(list);
        quote!(#list: &[#(#names),*])
    });
    quote! {
        /// The model's names, each list in the order of its slices.
        pub const NAMES: rt::named::NameTable = rt::named::NameTable { #(#lists),* };
    }
}

fn parameters_of(program: &Program) -> TokenStream {
    let names = fields(program.parameters.iter().map(|p| p.name.as_str()));
    let defaults = program.parameters.iter().zip(&names).map(|(parameter, field)| {
        let field = ident(field);
        let values = parameter.defaults.iter().map(|&v| number(v));
        if parameter.is_array { quote!(#field: [#(#values),*]) } else { quote!(#field: #(#values)*) }
    });
    let (definition, bounds) = (named::parameters(program), bounds_of(program));
    quote! {
        #definition

        impl Default for Parameters {
            fn default() -> Self {
                Self { #(#defaults,)* }
            }
        }

        impl Parameters {
            /// Smallest and largest allowed value of each, arrays flattened.
            pub const BOUNDS: [(S, S); NP] = #bounds;
        }
    }
}

/// The bounds of the parameters: a list, or a loop over each array that has some.
fn bounds_of(program: &Program) -> TokenStream {
    let pair = |(low, high): (Option<f64>, Option<f64>)| {
        let low = low.map_or(quote!(S::NEG_INFINITY), number);
        let high = high.map_or(quote!(S::INFINITY), number);
        quote!((#low, #high))
    };
    if program.parameters.iter().all(|p| !p.is_array) {
        let pairs = program.parameters.iter().map(|p| pair(p.bounds));
        return quote! { [#(#pairs),*] };
    }
    let mut place = 0;
    let mut set = Vec::new();
    for parameter in &program.parameters {
        let (from, to) = (count(place), count(place + parameter.defaults.len()));
        place += parameter.defaults.len();
        if parameter.bounds == (None, None) {
            continue;
        }
        let pair = pair(parameter.bounds);
        set.push(if parameter.is_array {
            quote! {
                let mut i = #from;
                while i < #to {
                    bounds[i] = #pair;
                    i += 1;
                }
            }
        } else {
            quote! { bounds[#from] = #pair; }
        });
    }
    let mutable = (!set.is_empty()).then(|| quote!(mut));
    quote! { {
        let #mutable bounds = [(S::NEG_INFINITY, S::INFINITY); NP];
        #(#set)*
        bounds
    } }
}

/// Natural scales, unless all of them are one.
fn units_of(program: &Program) -> Option<TokenStream> {
    let (coordinates, rows) = (&program.coordinate_units, &program.row_units);
    (!coordinates.is_empty() || !rows.is_empty()).then(|| {
        quote! {
            #[inline(always)]
            fn units(&self) -> rt::Units<'_> {
                rt::Units { coordinates: &[#(#coordinates),*], rows: &[#(#rows),*] }
            }
        }
    })
}

/// Rows that do not act in every state, if there are any.
fn resting_rows_of(program: &Program) -> Option<TokenStream> {
    let resting = super::glue::places(&program.resting_rows);
    (!program.resting_rows.is_empty()).then(|| {
        quote! {
            #[inline(always)]
            fn resting_rows(&self) -> &[(u32, u32)] {
                #resting
            }
        }
    })
}

/// The model and its implementations of `System`, `Names` and `Start`.
fn model_of(program: &Program) -> TokenStream {
    let (model, system, start) = (model_struct(program), system_of(program), start_of(program));
    quote! {
        #model
        #system

        impl rt::Names for Model {
            fn name(&self, quantity: rt::Quantity, index: usize) -> Option<&str> {
                NAMES.get(quantity, index)
            }
        }
        #start
    }
}

/// Slots of a bundle's workspace; none without the bundle.
fn workspace_len(program: &Program, name: &str) -> Literal {
    count(program.bundle(name).map_or(0, |b| b.slots as usize))
}

/// Whether parameters are checked by conditions, beside their bounds.
fn has_conditions(program: &Program) -> bool {
    program.bundle("conditions").is_some()
}

/// The struct `Model` and its methods.
fn model_struct(program: &Program) -> TokenStream {
    let prepare = call(program, "prepare", quote!(&p), quote!(&mut w), &[quote!(&mut prepared)]);
    let signals = call(program, "input_signals", quote!(), quote!(&mut w), &[quote!(u)]);
    let [prepare_len, signals_len] = ["prepare", "input_signals"].map(|name| workspace_len(program, name));
    let unset = if has_conditions(program) { quote!(S::NAN) } else { quote!(0.0) };
    quote! {
        /// The model with its parameters and whatever depends on them alone.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Model {
            case: Option<Case>,
            parameters: Parameters,
            prepared: [S; NC],
        }

        impl Default for Model {
            fn default() -> Self {
                Self::new(Parameters::default())
            }
        }

        impl Model {
            /// With the given parameters.
            pub fn new(parameters: Parameters) -> Self {
                Self::of_case(None, parameters)
            }

            /// With the given parameters, and the start values and inputs of a case.
            pub fn of_case(case: Option<Case>, parameters: Parameters) -> Self {
                let p = parameters.to_array();
                let mut prepared = [0.0; NC];
                let mut w = [0.0; #prepare_len];
                #prepare
                Self { case, parameters, prepared }
            }

            /// The parameters.
            pub fn parameters(&self) -> &Parameters {
                &self.parameters
            }

            /// The start state y = [z, v].
            pub fn start_state(&self) -> [S; NY] {
                let mut y = [#unset; NY];
                let (z, v) = y.split_at_mut(NQ);
                // The lengths are right, so that only parameters that no mechanism has can fail: then it is not a number.
                let _ = rt::Start::start(self, z, v, &mut []);
                y
            }

            /// The inputs where nobody else sets them, for the integrators: the model's defaults, or what its
            /// case prescribes.
            pub fn signals(&self) -> impl rt::Inputs<S> + '_ {
                rt::inputs::from_fn(|t: S, u: &mut [S]| {
                    if let Ok(u) = u.try_into() {
                        self.input_signals(t, u);
                    }
                })
            }

            /// The inputs where nobody else sets them, at a time.
            pub fn input_signals(&self, t: S, u: &mut [S; NU]) {
                let mut w = [0.0; #signals_len];
                #signals
            }
        }
    }
}

fn system_of(program: &Program) -> TokenStream {
    let euler = program.euler_parameters.iter().map(|&i| count(i));
    let holds = program.inputs.iter().map(|input| match input.hold {
        Hold::Zero => quote!(rt::Hold::Zero),
        Hold::Linear => quote!(rt::Hold::Linear),
        Hold::Signal => quote!(rt::Hold::Signal),
    });
    let (units, resting_rows) = (units_of(program), resting_rows_of(program));
    quote! {
        impl rt::System for Model {
            type S = S;

            #[inline(always)]
            fn dims(&self) -> rt::Dims {
                DIMS
            }

            #[inline(always)]
            fn euler_parameters(&self) -> &[usize] {
                &[#(#euler),*]
            }

            #[inline(always)]
            fn holds(&self) -> &[rt::Hold] {
                &[#(#holds),*]
            }
            #units
            #resting_rows
        }
    }
}

/// The start state; parameters that violate a condition are refused.
fn start_of(program: &Program) -> TokenStream {
    let start = call(
        program,
        "start",
        quote!(&self.parameters.to_array()),
        quote!(&mut w),
        &[quote!(rt::system::array_mut("z", z)?), quote!(rt::system::array_mut("v", v)?)],
    );
    let start_len = workspace_len(program, "start");
    let refused = has_conditions(program).then(|| {
        quote! {
            if let Err(rt::simulation::ParameterError::Condition { message, .. }) = self.parameters.check_under(self.case) {
                return Err(rt::EvalError::Refused { message });
            }
        }
    });
    quote! {
        impl rt::Start for Model {
            fn start(&self, z: &mut [S], v: &mut [S], x: &mut [S]) -> Result<(), rt::EvalError> {
                let _: &mut [S; 0] = rt::system::array_mut("x", x)?;
                #refused
                let mut w = [0.0; #start_len];
                #start
                Ok(())
            }
        }
    }
}

/// The call of a bundle's function, its arguments in the order in which they are printed.
pub(super) fn call(
    program: &Program,
    name: &str,
    parameters: TokenStream,
    workspace: TokenStream,
    results: &[TokenStream],
) -> TokenStream {
    let Some(bundle) = program.bundle(name) else {
        return quote!();
    };
    let function = format_ident!("{}", name);
    let given = |&(group, _): &(Group, u32)| match group {
        Group::Parameters => parameters.clone(),
        Group::Prepared => quote!(&self.prepared),
        Group::Case => cases::number(&quote!(self.case)),
        other => ident(other.identifier()).into_token_stream(),
    };
    let mut taken = bundle.arguments.clone();
    taken.sort_by_key(|&(group, _)| group);
    let arguments = taken.iter().map(given).chain([workspace]).chain(results.iter().cloned());
    quote! { #function(#(#arguments),*); }
}
