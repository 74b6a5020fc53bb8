//! The trait implementations of a module, all from the table of bundles: slices become arrays, the function is called, pivots are
//! judged.

use super::face::{count, ident};
use crate::program::{BundleKind, CaseInfo, Program};
use crate::symbols::Group;
use mbs_bundles::{Argument, Entry, EventEntry, Family, Pivots, ResultEntry, Size, Written};
use proc_macro2::TokenStream;
use quote::quote;

/// The sizes.
pub(super) fn dims(program: &Program) -> TokenStream {
    let fields = |sizes: &[Size]| {
        let field = |&size: &Size| {
            let (name, value) = (ident(size.name()), count(program.size(size)));
            quote!(#name: #value)
        };
        // Few models have any.
        let rare = |size: &&Size| **size != Size::n_projected || program.size(**size) > 0;
        sizes.iter().filter(rare).map(field).collect::<Vec<_>>()
    };
    let (dims, sensitivity) = (fields(Size::DIMS), fields(Size::SENSITIVITY));
    quote! {
        rt::Dims {
            #(#dims,)*
            sensitivity: rt::SensitivityDims { #(#sensitivity),* },
            workspace: WORKSPACE,
            ..rt::Dims::ZERO
        }
    }
}

/// One implementation for each trait of the program's bundles.
pub(super) fn implementations(program: &Program) -> TokenStream {
    let same = |a: &BundleKind, b: &BundleKind| a.entry().of_trait == b.entry().of_trait;
    let of_trait = |kinds: &[BundleKind]| {
        let name = kinds[0].entry().of_trait;
        let (places, methods) = (places_of(program, name), kinds.iter().map(|&kind| method(program, kind)));
        let name = ident(name);
        quote! {
            impl rt::#name for Model {
                #(#places)*
                #(#methods)*
            }
        }
    };
    // Implicit steps ask whether they are fused.
    let fused = |kind: &BundleKind| kind.entry().family == Family::FusedSteps;
    let separate = program.kinds.contains(&BundleKind::Residual) && !program.kinds.iter().any(fused);
    let separate = separate.then(|| quote!(impl rt::FusedSteps for Model {}));
    program.kinds.chunk_by(same).map(of_trait).chain(separate).collect()
}

/// A bundle as a method.
fn method(program: &Program, kind: BundleKind) -> TokenStream {
    let Some(bundle) = program.bundle(kind.name()) else {
        return quote!();
    };
    let entry = kind.entry();
    let function = ident(entry.name);
    let arguments = entry.arguments.iter().map(|&(name, what)| {
        let (name, of) = (ident(name), argument_type(what));
        quote!(#name: #of)
    });
    let written = written(entry);
    let before = before(program, entry);
    let mut groups: Vec<Group> = bundle.arguments.iter().map(|&(group, _)| group).collect();
    groups.sort();
    let given = groups.into_iter().map(|group| given(entry, group));
    let results = entry.results.iter().filter(|result| result.is_computed());
    let pivots = (entry.pivots != Pivots::None).then(|| quote!(&mut pivots));
    let results = results.map(|result| target(entry, result)).chain(pivots);
    let judged = judged(entry.pivots);
    let many = solve_many(program, kind);
    quote! {
        #[inline]
        fn #function(&self, #(#arguments,)* w: &mut [S], #(#written),*) -> Result<(), rt::EvalError> {
            #before
            self::#function(#(#given,)* rt::system::scratch(w)?, #(#results),*);
            #judged
        }
        #many
    }
}

fn argument_type(argument: Argument) -> TokenStream {
    match argument {
        Argument::At => quote!(rt::At<'_, S>),
        Argument::Motion => quote!(rt::Motion<'_, S>),
        Argument::Impulses => quote!(rt::Impulses<'_, S>),
        Argument::Weights => quote!(rt::Weights<S>),
        Argument::Stabilisation => quote!(rt::Stabilisation<S>),
        Argument::Time => quote!(S),
        Argument::Slice(_) => quote!(&[S]),
    }
}

/// Where a method writes.
fn written(entry: &Entry) -> Vec<TokenStream> {
    match entry.written {
        Written::Fields { name, of } => {
            let (name, of) = (ident(name), ident(of));
            vec![quote!(#name: rt::#of<'_, S>)]
        }
        form => {
            let slice = |result: &ResultEntry| {
                let (name, len) = (ident(result.name), count(result.shape.factor));
                if form == Written::Array { quote!(#name: &mut [S; #len]) } else { quote!(#name: &mut [S]) }
            };
            entry.results.iter().map(slice).collect()
        }
    }
}

/// What a method does before it calls the function.
fn before(program: &Program, entry: &Entry) -> TokenStream {
    let results = entry.results.iter().map(|result| {
        let (name, text) = (ident(result.name), result.name);
        if !result.is_computed() {
            quote!(let _: &mut [S; 0] = rt::system::array_mut(#text, #name)?;)
        } else if entry.written == Written::InPlace {
            let len = count(result.shape.len(|size| program.size(size)));
            quote! {
                let #name: &mut [S; #len] = rt::system::array_mut(#text, #name)?;
                let rhs = *#name;
            }
        } else {
            quote!()
        }
    });
    let pivots = columns(program, entry.pivots).map(|(size, columns)| {
        let len = count(size);
        let places = columns.map(|columns| {
            let columns = columns.iter().map(|&column| count(column as usize));
            quote!(static COLUMNS: [u32; #len] = [#(#columns),*];)
        });
        quote! {
            #places
            let mut pivots = [0.0; #len];
        }
    });
    quote! {
        #(#results)*
        #pivots
    }
}

/// How many pivots there are, and the unknowns they belong to where they are not in order.
fn columns(program: &Program, pivots: Pivots) -> Option<(usize, Option<&[u32]>)> {
    let structure = &program.structure;
    match pivots {
        Pivots::None => None,
        Pivots::Positive => Some((program.velocities.len(), None)),
        Pivots::Leading => Some((structure.columns.len(), Some(&structure.columns))),
        Pivots::Joint => Some((structure.joint_columns.len(), Some(&structure.joint_columns))),
    }
}

/// The value that a method returns.
fn judged(pivots: Pivots) -> TokenStream {
    match pivots {
        Pivots::None => quote!(Ok(())),
        Pivots::Positive => quote!(rt::system::check_pivots(&pivots)),
        Pivots::Leading => quote!(rt::constrained::check_factors(&DIMS, &pivots, &COLUMNS)),
        Pivots::Joint => quote!(rt::constrained::check_solution(&DIMS, &pivots, &COLUMNS)),
    }
}

/// A group of arguments as the function takes it.
fn given(entry: &Entry, group: Group) -> TokenStream {
    let text = group.identifier();
    let name = ident(text);
    let alone = entry.arguments.iter().any(|&(_, what)| what == Argument::Slice(group));
    match group {
        Group::Prepared => quote!(&self.prepared),
        Group::Case => super::cases::number(&quote!(self.case)),
        Group::Rhs => quote!(&rhs),
        Group::Time if entry.arguments.iter().any(|&(_, what)| what == Argument::Time) => quote!(t),
        Group::Time => quote!(at.t),
        Group::Weights => quote!(&[weights.velocity, weights.position, weights.ratio]),
        Group::Stabilisation => {
            quote!(&[stabilisation.rate, stabilisation.value, stabilisation.compliance])
        }
        Group::VelocityImpulse => quote!(rt::system::array(#text, impulses.velocity)?),
        Group::VelocityMultipliers => quote!(rt::system::array(#text, impulses.velocity_multipliers)?),
        Group::AccelerationImpulse => quote!(rt::system::array(#text, impulses.acceleration)?),
        Group::AccelerationMultipliers => {
            quote!(rt::system::array(#text, impulses.acceleration_multipliers)?)
        }
        _ if alone => quote!(rt::system::array(#text, #name)?),
        _ => quote!(rt::system::array(#text, at.#name)?),
    }
}

/// A result as the function writes it.
fn target(entry: &Entry, result: &ResultEntry) -> TokenStream {
    let (text, name) = (result.name, ident(result.name));
    match entry.written {
        Written::Array | Written::InPlace => quote!(#name),
        Written::Fields { name: of, .. } => {
            let of = ident(of);
            quote!(rt::system::array_mut(#text, #of.#name)?)
        }
        Written::Slices if result.is_first_part() => quote!(rt::system::first_mut(#text, #name)?),
        Written::Slices => quote!(rt::system::array_mut(#text, #name)?),
    }
}

/// A solve for many right-hand sides, four columns at a time where the module has that function.
fn solve_many(program: &Program, kind: BundleKind) -> Option<TokenStream> {
    super::many_columns(program, kind)?;
    let solve = program.bundle(kind.name())?;
    let (function, slots) = (ident(&super::lanes::name(solve)), count(solve.slots as usize));
    let (one, many) = (ident(solve.name), ident(&format!("{}_many", solve.name)));
    let size = count(solve.results.first()?.len as usize);
    Some(quote! {
        #[inline]
        fn #many(
            &self,
            factors: &[S],
            columns: usize,
            w: &mut [S],
            column: &mut [S],
            x: &mut [S],
        ) -> Result<(), rt::EvalError> {
            let numbers = rt::system::array("factors", factors)?;
            let four = |x: &mut [l::Lanes<S>; #size]| {
                let rhs = *x;
                let mut w = [[0.0; l::WIDTH]; #slots];
                #function(numbers, &rhs, &mut w, x);
            };
            l::for_each(columns, x, four, |x| self.#one(factors, w, x))
        }
    })
}

/// Methods of a trait that give the structure, beside its bundles.
fn places_of(program: &Program, of_trait: &str) -> Vec<TokenStream> {
    let structure = &program.structure;
    let (pattern, derivatives) = (&structure.pattern, &structure.derivatives);
    let one = quote!(rt::sensitivity::Places<'_>);
    let two = quote!([rt::sensitivity::Places<'_>; 2]);
    let pair = |of: &[Vec<(u32, u32)>; 2]| {
        let [first, second] = of.each_ref().map(|of| places(of));
        quote!([#first, #second])
    };
    let named = |of: &str, fields: &[(&str, &Vec<(u32, u32)>)]| {
        let of = ident(of);
        let fields = fields.iter().map(|&(name, of)| {
            let (name, of) = (ident(name), places(of));
            quote!(#name: #of)
        });
        (quote!(rt::#of<'_>), quote!(rt::#of { #(#fields),* }))
    };
    let methods = match of_trait {
        "Constrained" => {
            let fields = [
                ("tangent", &pattern.tangent),
                ("holonomic", &pattern.holonomic),
                ("nonholonomic", &pattern.nonholonomic),
            ];
            let mut methods = vec![
                ("pattern", named("Pattern", &fields)),
                ("held", (quote!(&[bool]), by_case(program, &program.held, |case| &case.held))),
            ];
            let dependent = &program.dependent;
            if !dependent.is_empty() {
                methods.push(("dependent", (quote!(&[bool]), quote!(&[#(#dependent),*]))));
            }
            methods
        }
        "ConstraintRows" => vec![(
            "independent",
            (quote!(&[bool]), by_case(program, &program.independent, |case| &case.independent)),
        )],
        "FusedSteps" => vec![("fuses_steps", (quote!(bool), quote!(true)))],
        "StartDerivatives" => vec![("start_places", (two, pair(&derivatives.start)))],
        "Sensitivities" => {
            let of = &derivatives.parameters;
            let fields = [
                ("residual", &of.residual),
                ("constraints", &of.constraints),
                ("impulse", &of.impulse),
                ("rates", &of.rates),
                ("accelerations", &of.accelerations),
            ];
            let mut methods = vec![("parameter_places", named("ParameterPlaces", &fields))];
            if derivatives.product_columns > 0 || derivatives.projection_columns > 0 {
                methods.push(("product_places", (two, pair(&derivatives.products))));
            }
            if derivatives.projection_columns > 0 {
                let columns = count(derivatives.projection_columns);
                methods.push(("projection_columns", (quote!(usize), quote!(#columns))));
            }
            if program.kinds.contains(&BundleKind::DifferentiateStep) {
                methods.push(("fuses_derivatives", (quote!(bool), quote!(true))));
            }
            if program.kinds.contains(&BundleKind::TransposeStep) {
                methods.push(("fuses_transposed", (quote!(bool), quote!(true))));
            }
            methods
        }
        "ObjectiveDerivatives" => vec![("objective_places", (two, pair(&derivatives.objectives)))],
        "JointSensitivities" => {
            let of = &derivatives.joint;
            let fields =
                [("tangent", &of.tangent), ("rows", &of.rows), ("force", &of.force), ("row", &of.row)];
            let mut methods = vec![("joint_places", named("JointPlaces", &fields))];
            let fused = [
                (BundleKind::DifferentiateCorrection, "fuses_corrections"),
                (BundleKind::TransposeCorrection, "fuses_transposed_corrections"),
            ];
            for (_, name) in fused.into_iter().filter(|(kind, _)| program.kinds.contains(kind)) {
                methods.push((name, (quote!(bool), quote!(true))));
            }
            methods
        }
        "JointObjectiveDerivatives" => {
            let mut methods = vec![("joint_objective_places", (two, pair(&derivatives.joint_objectives)))];
            let fused = [
                (BundleKind::DifferentiateRate, "fuses_rates"),
                (BundleKind::TransposeRate, "fuses_transposed_rates"),
            ];
            for (_, name) in fused.into_iter().filter(|(kind, _)| program.kinds.contains(kind)) {
                methods.push((name, (quote!(bool), quote!(true))));
            }
            methods
        }
        "Events" => vec![("event_table", (quote!(rt::EventTable<'_>), event_table(program)))],
        "EventDerivatives" => vec![
            ("event_places", (one.clone(), places(&derivatives.events))),
            ("jump_places", (one, places(&derivatives.jumps))),
        ],
        "Regressor" => vec![("regressor_places", (one, places(&structure.regressor)))],
        "InverseDynamicsParameters" => {
            vec![("inverse_dynamics_parameter_places", (one, places(&derivatives.inverse_dynamics)))]
        }
        _ => Vec::new(),
    };
    let method = |(name, (of, value)): (&str, (TokenStream, TokenStream))| {
        let name = ident(name);
        quote! {
            #[inline(always)]
            fn #name(&self) -> #of {
                #value
            }
        }
    };
    methods.into_iter().map(method).collect()
}

/// Truth values that cases may have of their own.
fn by_case(program: &Program, own: &[bool], of: impl Fn(&CaseInfo) -> &Vec<bool>) -> TokenStream {
    let cases = super::cases::offered(program);
    let others = cases.iter().filter(|(case, _)| of(case) != own).map(|(case, variant)| {
        let values = of(case);
        quote!(Some(Case::#variant) => &[#(#values),*],)
    });
    let others: Vec<TokenStream> = others.collect();
    if others.is_empty() {
        return quote!(&[#(#own),*]);
    }
    quote!(match self.case { #(#others)* _ => &[#(#own),*] })
}

pub(super) fn places(entries: &[(u32, u32)]) -> TokenStream {
    let pairs = entries.iter().map(|&(i, j)| {
        let (i, j) = (count(i as usize), count(j as usize));
        quote!((#i, #j))
    });
    quote!(&[#(#pairs),*])
}

fn place(place: Option<u32>) -> TokenStream {
    match place {
        Some(place) => {
            let place = count(place as usize);
            quote!(Some(#place))
        }
        None => quote!(None),
    }
}

fn event_table(program: &Program) -> TokenStream {
    let events = &program.events;
    let entry = |entry: &EventEntry| {
        let direction = ident(entry.direction.name());
        let EventEntry { minimum_interval, stop, has_rate, impact, stops, adds_rows, .. } = *entry;
        let range = |(first, end): (usize, usize)| {
            let (first, end) = (count(first), count(end));
            quote!((#first, #end))
        };
        let (conditions, settings) = (range(entry.conditions), range(entry.settings));
        let (switch, judged, law) = (place(entry.switch), entry.judged, ident(entry.law.name()));
        quote! {
            rt::EventEntry {
                direction: rt::Direction::#direction,
                minimum_interval: #minimum_interval,
                stop: #stop,
                has_rate: #has_rate,
                conditions: #conditions,
                impact: #impact,
                stops: #stops,
                law: rt::ImpactLaw::#law,
                adds_rows: #adds_rows,
                switch: #switch,
                settings: #settings,
                judged: #judged,
            }
        }
    };
    let entries = events.entries.iter().map(entry);
    let (conditions, autonomous) = (count(events.conditions.len()), events.autonomous);
    let inputs = events.inputs.iter().map(|&input| count(input as usize));
    let columns = events.columns.iter().map(|&column| place(column));
    let clock = place(events.clock);
    quote! {
        rt::EventTable {
            events: &[#(#entries),*],
            conditions: #conditions,
            inputs: &[#(#inputs),*],
            columns: &[#(#columns),*],
            clock: #clock,
            autonomous: #autonomous,
        }
    }
}
