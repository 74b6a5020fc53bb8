//! The face for people: `Simulation`, with the memory and the method of the model file as constants.
//!
//! What is printed are names and sizes; the work is the runtime's.

use super::face::{self, ident, number};
use super::names::fields;
use super::{cases, named};
use crate::corners;
use crate::model::{Formulation, GradientMethod, Integrator, Projection, Simulation, Tangent};
use crate::program::{BundleKind, Program};
use mbs_bundles::Size;
use proc_macro2::{Literal, TokenStream};
use quote::quote;

/// The simulation, or nothing where the bundles that its method needs were not asked for.
pub(super) fn print(program: &Program) -> TokenStream {
    let Some(own) = method(program, &program.simulation) else {
        return settings(program);
    };
    let of_cases = cases::offered(program).into_iter().map(|(case, _)| &case.simulation);
    let of_cases = of_cases.filter_map(|simulation| method(program, simulation));
    let methods: Vec<Method> = [own].into_iter().chain(of_cases).collect();
    let kinds = Kinds::of(&methods);
    let gradient = kinds.gradient.as_ref().map(|memory| gradient(program, memory));
    let (kind, values) = (kinds.kind(), methods.iter().map(|method| kinds.value(method)));
    let (state, scratch) = (kinds.len(|method| &method.state), kinds.len(|method| &method.scratch));
    let (setup, method) = (setup(program), by_case(program, values.collect()));
    let settings = settings(program);
    let has = |kind: BundleKind| program.kinds.contains(&kind);
    let nothing = || named::Named { kind: quote!(rt::named::Nothing), definition: quote!() };
    let when = |kind: BundleKind, of: fn(&Program) -> named::Named| {
        if has(kind) { of(program) } else { nothing() }
    };
    let coordinates = named::coordinates(program);
    let velocities = named::velocities(program);
    let inputs = named::inputs(program);
    let multipliers = named::multipliers(program);
    let outputs = when(BundleKind::Outputs, named::outputs);
    let markers = when(BundleKind::Markers, named::markers);
    let reactions = when(BundleKind::Reactions, named::reactions);
    let structs = [&coordinates, &velocities, &inputs, &multipliers, &outputs, &markers, &reactions]
        .map(|n| &n.definition);
    let [coordinates, velocities, inputs, multipliers, outputs, markers, reactions] =
        [&coordinates, &velocities, &inputs, &multipliers, &outputs, &markers, &reactions].map(|n| &n.kind);
    let given = if program.inputs.is_empty() { quote!(rt::inputs::NoInputs) } else { quote!(Inputs) };
    let (next_stop, events) = (next_stop(program), events(program));
    quote! {
        #(#structs)*
        #settings
        #events
        /// A run of the model by the method of its file, with all its memory.
        pub type Simulation = rt::Simulation<Model, #given>;
        /// Why a simulation does not start or go on.
        pub type Error = rt::simulation::Error<Model>;

        /// What a simulation begins with: a case or none, parameters, times and step.
        pub type Setup = rt::simulation::Setup<Model>;

        impl rt::Simulated for Model {
            type Case = Case;
            type Parameters = Parameters;
            type Coordinates = #coordinates;
            type Velocities = #velocities;
            type Inputs = #inputs;
            type Multipliers = #multipliers;
            type Outputs = #outputs;
            type Markers = #markers;
            type Reactions = #reactions;
            type State = [S; #state];
            type Scratch = [S; #scratch];
            type Workspace = [S; WORKSPACE];
            type Method = #kind;

            const NAMES: rt::named::NameTable = NAMES;

            fn setup(case: Option<Case>) -> Setup {
                #setup
            }

            fn method(case: Option<Case>) -> Self::Method {
                #method
            }

            fn check(case: Option<Case>, parameters: &Parameters) -> Result<(), rt::simulation::ParameterError> {
                parameters.check_under(case)
            }

            fn with(case: Option<Case>, parameters: Parameters) -> Self {
                Self::of_case(case, parameters)
            }

            fn case(&self) -> Option<Case> {
                self.case
            }

            fn parameters(&self) -> &Parameters {
                &self.parameters
            }

            fn signals(&self, t: S, u: &mut [S]) {
                if let Ok(u) = u.try_into() {
                    self.input_signals(t, u);
                }
            }

            #next_stop
        }
        #gradient
    }
}

/// Times and step of a simulation.
fn settings_of(simulation: &Simulation) -> TokenStream {
    let Simulation { begin, end, step, output_step, .. } = simulation;
    let [begin, end, step] = [*begin, *end, *step].map(number);
    let output = match output_step.map(number) {
        Some(interval) => quote!(Some(#interval)),
        None => quote!(None),
    };
    quote!(rt::simulation::Settings { begin: #begin, end: #end, step: #step, output: #output })
}

fn settings(program: &Program) -> TokenStream {
    let settings = settings_of(&program.simulation);
    quote! {
        /// Times and step of the file's simulation.
        pub const SETTINGS: rt::simulation::Settings = #settings;
    }
}

/// The value for the model itself, then those for its cases.
fn by_case(program: &Program, mut values: Vec<TokenStream>) -> TokenStream {
    let own = values.remove(0);
    let (cases, own_text) = (cases::offered(program), own.to_string());
    let all = cases
        .iter()
        .map(|(_, variant)| variant)
        .zip(&values)
        .filter(|(_, value)| value.to_string() != own_text);
    let others: Vec<TokenStream> =
        all.map(|(variant, value)| quote!(Some(Case::#variant) => #value,)).collect();
    if others.is_empty() { own } else { quote!(match case { #(#others)* _ => #own }) }
}

/// Parameters and settings by case.
fn setup(program: &Program) -> TokenStream {
    let cases = cases::offered(program);
    let parameters = match cases.is_empty() {
        true => quote!(Parameters::default()),
        false => quote!(case.map_or_else(Parameters::default, |case| case.parameters())),
    };
    let of_cases = cases.iter().map(|(case, _)| settings_of(&case.simulation));
    let own = settings_of(&program.simulation);
    let settings = by_case(program, [own].into_iter().chain(of_cases).collect());
    quote!(Setup { case, parameters: #parameters, settings: #settings })
}

/// Where steps of controlled size end; nothing for a model without corners in time.
fn next_stop(program: &Program) -> TokenStream {
    let (Some(corners), Some(bundle)) = (&program.corners, program.bundle(corners::NAME)) else {
        return quote!();
    };
    let [n, slots] = [corners.all.len(), bundle.slots as usize].map(Literal::usize_unsuffixed);
    let all = corners.all.iter().map(|corner| {
        let sides = if corner.levels { quote!(Levels) } else { quote!(Sign) };
        let apart = corner.apart;
        quote!(rt::corners::Corner { sides: rt::corners::Sides::#sides, apart: #apart })
    });
    let arguments = quote!(&mut w, &mut functions, &mut rates, &mut sides);
    let call = face::call(program, corners::NAME, quote!(), arguments, &[]);
    quote! {
        fn next_stop(&self, from: f64, to: f64) -> Option<rt::Stop> {
            const CORNERS: [rt::corners::Corner; #n] = [#(#all),*];
            let mut memory = [0.0; rt::corners::memory_len(#n)];
            rt::corners::next_stop(&CORNERS, from, to, &mut memory, |t, values| {
                let (t, mut w): (S, _) = (rt::Scalar::from_f64(t), [0.0; #slots]);
                let (mut functions, mut rates, mut sides) = ([0.0; #n], [0.0; #n], [0.0; #n]);
                #call
                let all = functions.into_iter().chain(rates).chain(sides);
                for (to, from) in values.iter_mut().zip(all) {
                    *to = rt::Scalar::real(from);
                }
            })
        }
    }
}

/// Objectives and their gradient.
fn gradient(program: &Program, len: &TokenStream) -> TokenStream {
    let structs = [named::derivatives(program), named::gradient(program)].map(|named| named.definition);
    let by = gradient_by(program);
    quote! {
        #(#structs)*

        /// All memory of a differentiated run.
        pub type GradientMemory = [S; #len];

        impl rt::simulation::Differentiable for Model {
            type Gradient = Gradient;
            type Memory = GradientMemory;
        }

        /// Objectives of the file's simulation with these parameters, and their gradient. Takes [`GradientMemory`] on the stack.
        pub fn gradient(parameters: &Parameters) -> Result<Gradient, Error> {
            rt::simulation::gradient(&Setup::new(*parameters))
        }

        /// The same of a case, or with other times and another step.
        pub fn gradient_of(setup: &Setup) -> Result<Gradient, Error> {
            rt::simulation::gradient(setup)
        }

        /// The same in memory of the caller; what it holds before does not matter.
        pub fn gradient_with(setup: &Setup, memory: &mut GradientMemory) -> Result<Gradient, Error> {
            rt::simulation::gradient_with(setup, memory)
        }

        #by
    }
}

/// The gradient by the method of the caller or of the file.
fn gradient_by(program: &Program) -> TokenStream {
    let method = match program.simulation.gradient {
        GradientMethod::Direct => quote!(Direct),
        // Modules have the exact one of the steps alone.
        GradientMethod::Adjoint | GradientMethod::ContinuousAdjoint => quote!(Adjoint),
        GradientMethod::Auto => quote!(Auto),
    };
    quote! {
        /// How the file computes its gradient.
        pub const GRADIENT_METHOD: rt::simulation::GradientMethod = rt::simulation::GradientMethod::#method;

        /// The same by this method, in memory of any length: [`GradientMemory`] has the direct one's,
        /// [`adjoint_memory_len`](rt::simulation::adjoint_memory_len) that in which the adjoint makes no step twice.
        #[inline]
        pub fn gradient_by(
            setup: &Setup,
            method: rt::simulation::GradientMethod,
            memory: &mut [S],
        ) -> Result<(Gradient, Option<rt::AdjointStatistics>), Error> {
            rt::simulation::gradient_by(setup, method, memory)
        }
    }
}

/// A method of the runtime: its type and value, lengths of its state, its scratch and the memory of its gradient, if the model is
/// differentiated.
struct Method {
    kind: TokenStream,
    value: TokenStream,
    state: TokenStream,
    scratch: TokenStream,
    gradient: Option<TokenStream>,
}

impl Method {
    /// `integrator`: the type of one that integrates accelerations.
    fn new(
        (kind, value): (TokenStream, TokenStream),
        integrator: Option<&TokenStream>,
        memory: &str,
        scratch: &str,
        gradient: Option<&str>,
    ) -> Method {
        let (memory, scratch) = (ident(memory), ident(scratch));
        let gradient = gradient.map(ident);
        let by = integrator.map(|integrator| quote!(::<#integrator>));
        Method {
            kind,
            value,
            state: quote!(rt::simulation::#memory::state_len(&DIMS)),
            scratch: quote!(rt::simulation::#memory::#scratch #by (&DIMS)),
            gradient: gradient.map(|len| quote!(rt::simulation::GradientMemory::#len #by (&DIMS))),
        }
    }
}

/// The distinct types of methods among the model and its cases.
struct Kinds<'a> {
    methods: Vec<&'a Method>,
    /// Length of the memory of a gradient, if all of them have one.
    gradient: Option<TokenStream>,
}

impl<'a> Kinds<'a> {
    fn of(all: &'a [Method]) -> Kinds<'a> {
        let mut methods: Vec<&Method> = Vec::new();
        for method in all {
            if !methods.iter().any(|known| is_same(known, method)) {
                methods.push(method);
            }
        }
        let lens: Option<Vec<&TokenStream>> = methods.iter().map(|method| method.gradient.as_ref()).collect();
        Kinds { gradient: lens.map(|lens| largest(&lens)), methods }
    }

    /// A, or Either<A, Either<B, C>>.
    fn kind(&self) -> TokenStream {
        let kinds = self.methods.iter().rev().map(|method| method.kind.clone());
        let nested = kinds.reduce(|others, kind| quote!(rt::simulation::Either<#kind, #others>));
        nested.unwrap_or_default()
    }

    /// The value of a method as one of that type.
    fn value(&self, method: &Method) -> TokenStream {
        let place = self.methods.iter().position(|known| is_same(known, method)).unwrap_or(0);
        let value = &method.value;
        let is_last = place + 1 == self.methods.len();
        let innermost = if is_last { quote!(#value) } else { quote!(rt::simulation::Either::First(#value)) };
        (0..place).fold(innermost, |value, _| quote!(rt::simulation::Either::Second(#value)))
    }

    fn len(&self, of: impl Fn(&Method) -> &TokenStream) -> TokenStream {
        largest(&self.methods.iter().map(|method| of(method)).collect::<Vec<_>>())
    }
}

fn is_same(a: &Method, b: &Method) -> bool {
    a.kind.to_string() == b.kind.to_string()
}

/// The largest of some lengths.
fn largest(lens: &[&TokenStream]) -> TokenStream {
    let mut distinct: Vec<&TokenStream> = Vec::new();
    for len in lens {
        if !distinct.iter().any(|known| known.to_string() == len.to_string()) {
            distinct.push(len);
        }
    }
    match distinct.as_slice() {
        [one] => quote!(#one),
        all => quote!(rt::simulation::largest(&[#(#all),*])),
    }
}

/// Which memory a simulation takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryKind {
    /// That of implicit methods.
    Implicit,
    /// That of explicit methods, of an open tree.
    Tree,
    /// That of explicit methods, under constraints.
    Projected,
    /// That of implicit Runge–Kutta methods, of an open tree.
    StiffTree,
    /// The same under constraints.
    StiffProjected,
    /// That of explicit methods, in independent coordinates.
    Independent,
    /// That of implicit Runge–Kutta methods, in independent coordinates.
    StiffIndependent,
}

/// Which memory the simulation of a module takes, for the file's method and those of its cases, by which integrators, and whether its runs are
/// differentiated; none if it has no simulation. What events need besides is that of [`event_counts`].
pub fn memory(program: &Program) -> Option<(Vec<(MemoryKind, Integrator)>, bool)> {
    method(program, &program.simulation)?;
    let of_cases = cases::offered(program).into_iter().map(|(case, _)| &case.simulation);
    let all = [&program.simulation].into_iter().chain(of_cases);
    let methods: Vec<(Method, Integrator)> =
        all.filter_map(|simulation| Some((method(program, simulation)?, simulation.integrator))).collect();
    let kind = |method: &Method| match method.scratch.to_string() {
        scratch if scratch.contains("stiff_tree_scratch_len") => MemoryKind::StiffTree,
        scratch if scratch.contains("stiff_projected_scratch_len") => MemoryKind::StiffProjected,
        scratch if scratch.contains("stiff_scratch_len") => MemoryKind::StiffIndependent,
        scratch if scratch.contains("tree_scratch_len") => MemoryKind::Tree,
        scratch if scratch.contains("projected_scratch_len") => MemoryKind::Projected,
        scratch if scratch.contains("IndependentMemory") => MemoryKind::Independent,
        _ => MemoryKind::Implicit,
    };
    let kinds = methods.iter().map(|(method, integrator)| (kind(method), *integrator)).collect();
    Some((kinds, methods.iter().all(|(method, _)| method.gradient.is_some())))
}

/// Whether the bundles of a simulation's method are there.
pub(super) fn has_method(program: &Program, simulation: &Simulation) -> bool {
    method(program, simulation).is_some()
}

/// The method that a simulation of the file names, if its bundles are there.
fn method(program: &Program, simulation: &Simulation) -> Option<Method> {
    let method = method_between_events(program, simulation)?;
    if program.events.names.is_empty() {
        return Some(method);
    }
    let has = |kinds: &[BundleKind]| kinds.iter().all(|kind| program.kinds.contains(kind));
    // Independent coordinates are those of rows that all act, at positions that do not jump.
    let constrained = !program.holonomic.is_empty() || !program.nonholonomic.is_empty();
    let independent = simulation.formulation == Formulation::MatrixR && constrained;
    let jumps = program.events.changes_rows || program.events.moves;
    if !has(&BundleKind::EVENTS) || (independent && jumps) {
        return None;
    }
    let dims = match (simulation.solves_stages(constrained), independent) {
        (true, true) => quote!(&rt::simulation::in_independent_stages(&DIMS)),
        (true, false) => quote!(&rt::simulation::in_stages(&DIMS)),
        (false, true) => quote!(&rt::simulation::in_independent(&DIMS)),
        (false, false) => quote!(&DIMS),
    };
    let Method { kind, value, state, scratch, gradient } = method;
    let gradient = gradient.filter(|_| has(&BundleKind::EVENT_SENSITIVITIES));
    Some(Method {
        kind: quote!(rt::simulation::Eventful<#kind, Event>),
        value: quote!(rt::simulation::Eventful::new(#value)),
        state: quote!(EVENT_MEMORY.state_len(#state, &DIMS)),
        scratch: quote!(EVENT_MEMORY.scratch_len(#scratch, #dims)),
        gradient: gradient.map(|len| quote!(EVENT_MEMORY.gradient_len(#len, #dims))),
    })
}

/// How many events, conditions, settings and derivatives there are; the memory of events follows from them.
pub fn event_counts(program: &Program) -> [usize; 4] {
    let events = &program.events;
    let partials = program.size(Size::event_partials) + program.size(Size::jump_partials);
    [events.names.len(), events.conditions.len(), events.inputs.len(), partials]
}

/// The events of a model by name, and the memory that they need; nothing for a model without any.
fn events(program: &Program) -> TokenStream {
    let events = &program.events;
    if events.names.is_empty() {
        return quote!();
    }
    let variants = fields(events.names.iter().map(String::as_str));
    let variants: Vec<_> = variants.iter().map(|name| ident(name)).collect();
    let docs = events.names.iter().map(|name| format!(" `{name}`."));
    let names = &events.names;
    let places = (0..variants.len()).map(Literal::usize_unsuffixed);
    let [count, conditions, settings, partials] = event_counts(program).map(Literal::usize_unsuffixed);
    quote! {
        /// Events of the model.
        #[allow(non_camel_case_types, reason = "spelt as in the model")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Event { #(#[doc = #docs] #variants,)* }

        impl Event {
            /// The name of the event, as the model spells it.
            pub const fn name(self) -> &'static str {
                match self { #(Event::#variants => #names,)* }
            }
        }

        impl rt::simulation::EventName for Event {
            const COUNT: usize = #count;

            fn of_place(place: usize) -> Option<Self> {
                match place { #(#places => Some(Event::#variants),)* _ => None }
            }
        }

        const EVENT_MEMORY: rt::simulation::EventMemory = rt::simulation::EventMemory {
            events: #count,
            conditions: #conditions,
            settings: #settings,
            partials: #partials,
        };
    }
}

/// The method without events.
fn method_between_events(program: &Program, simulation: &Simulation) -> Option<Method> {
    let has = |kinds: &[BundleKind]| kinds.iter().all(|kind| program.kinds.contains(kind));
    let judged = !program.objectives.is_empty() && !program.sensitivity.is_empty();
    let differentiated = |families: &[[BundleKind; 5]], len: &'static str| {
        (judged && families.iter().all(|family| has(family))).then_some(len)
    };
    let simulation = &program.in_scalar(simulation);
    let constrained = !program.holonomic.is_empty() || !program.nonholonomic.is_empty();
    let enforcement = match (simulation.formulation, simulation.penalty) {
        (Formulation::Penalty, Some(penalty)) => {
            let penalty = number(penalty);
            quote!(rt::simulation::Enforcement::Penalty(#penalty))
        }
        (Formulation::Penalty, None) => quote!(rt::simulation::Enforcement::ScaledPenalty),
        _ => quote!(rt::simulation::Enforcement::Exact),
    };
    let implicit = match simulation.integrator {
        _ if simulation.solves_stages(constrained) => {
            return stiff(simulation, has, differentiated, &enforcement);
        }
        Integrator::Rk4 | Integrator::DormandPrince | Integrator::Dop853 | Integrator::Sdirk4 => {
            let (kind, value) = explicit(simulation);
            let by = Some(&kind);
            if has(&[BundleKind::ForwardDynamics]) {
                let tree = (quote!(rt::simulation::Tree<#kind>), quote!(rt::simulation::Tree(#value)));
                let gradient = differentiated(&[BundleKind::JOINT_SENSITIVITIES], "tree_len");
                return Some(Method::new(tree, by, "ExplicitMemory", "tree_scratch_len", gradient));
            }
            let families = [BundleKind::SENSITIVITIES, BundleKind::JOINT_SENSITIVITIES];
            if simulation.formulation == Formulation::MatrixR {
                let needed = [BundleKind::ConstrainedDynamics, BundleKind::ConstraintRows];
                if !has(&needed) || !has(&BundleKind::COORDINATE_FORM) {
                    return None;
                }
                let independent =
                    (quote!(rt::simulation::Independent<#kind>), quote!(rt::simulation::Independent(#value)));
                let gradient = differentiated(&families, "independent_len");
                return Some(Method::new(independent, by, "IndependentMemory", "scratch_len", gradient));
            }
            let needed = [BundleKind::ConstrainedDynamics, BundleKind::ConstraintCorrection];
            if !has(&needed) || !has(&BundleKind::COORDINATE_FORM) {
                return None;
            }
            let projected = (
                quote!(rt::simulation::Projected<#kind>),
                quote!(rt::simulation::Projected { integrator: #value, enforcement: #enforcement }),
            );
            let gradient = differentiated(&families, "projected_len");
            return Some(Method::new(projected, by, "ExplicitMemory", "projected_scratch_len", gradient));
        }
        Integrator::Trapezoidal | Integrator::Newmark { .. } | Integrator::GeneralizedAlpha { .. } => {
            formulas(simulation)
        }
    };
    if !has(&BundleKind::COORDINATE_FORM) || program.coordinates.is_empty() {
        return None;
    }
    let tolerance = number(simulation.newton_tolerance);
    let iterations = Literal::u32_unsuffixed(simulation.newton_iterations);
    let tangent = match simulation.newton_tangent {
        Tangent::Exact => Some(quote!(tangent: rt::Tangent::Exact,)),
        Tangent::Reused => None,
        Tangent::Carried => Some(quote!(tangent: rt::Tangent::Carried,)),
    };
    let (kind, value) = if constrained && simulation.formulation != Formulation::Ali3p {
        let value = quote! {
            rt::simulation::Stabilised {
                method: rt::ImplicitIndex1 {
                    integrator: #implicit,
                    tolerance: #tolerance,
                    max_iterations: #iterations,
                    #tangent
                    ..rt::ImplicitIndex1::new(rt::Stabilisation { rate: 0.0, value: 0.0, compliance: 0.0 })
                },
                enforcement: #enforcement,
            }
        };
        (quote!(rt::simulation::Stabilised), value)
    } else {
        let projection = match simulation.projection {
            Projection::Mass => quote!(projection: rt::ProjectionMatrix::Mass),
            Projection::Tangent => quote!(projection: rt::ProjectionMatrix::Tangent),
            Projection::None => quote!(max_projections: 0),
        };
        let penalty = match simulation.penalty.map(number) {
            Some(penalty) => quote!(rt::Penalty::Given(#penalty)),
            None => quote!(rt::Penalty::DEFAULT),
        };
        let value = quote! {
            rt::Ali3p {
                integrator: #implicit,
                tolerance: #tolerance,
                max_iterations: #iterations,
                #tangent
                penalty: #penalty,
                #projection,
                ..rt::Ali3p::DEFAULT
            }
        };
        (quote!(rt::Ali3p), value)
    };
    let gradient = differentiated(&[BundleKind::SENSITIVITIES], "implicit_len");
    Some(Method::new((kind, value), None, "ImplicitMemory", "scratch_len", gradient))
}

/// The formulas of an implicit integrator of positions; those of the trapezoidal rule for others.
fn formulas(simulation: &Simulation) -> TokenStream {
    match simulation.integrator {
        Integrator::Newmark { beta, gamma } => {
            let (beta, gamma) = (number(beta), number(gamma));
            quote!(rt::Implicit::Newmark { beta: #beta, gamma: #gamma })
        }
        Integrator::GeneralizedAlpha { spectral_radius } => {
            let spectral_radius = number(spectral_radius);
            quote!(rt::Implicit::GeneralizedAlpha { spectral_radius: #spectral_radius })
        }
        _ => quote!(rt::Implicit::TRAPEZOIDAL),
    }
}

/// An implicit Runge–Kutta method.
fn stiff(
    simulation: &Simulation,
    has: impl Fn(&[BundleKind]) -> bool,
    differentiated: impl Fn(&[[BundleKind; 5]], &'static str) -> Option<&'static str>,
    enforcement: &TokenStream,
) -> Option<Method> {
    let (kind, value) = explicit(simulation);
    let by = Some(&kind);
    if !has(&BundleKind::JOINT_SENSITIVITIES) {
        return None;
    }
    if has(&[BundleKind::ForwardDynamics]) {
        let tree = (quote!(rt::simulation::StiffTree<#kind>), quote!(rt::simulation::StiffTree(#value)));
        let gradient = differentiated(&[BundleKind::JOINT_SENSITIVITIES], "stiff_tree_len");
        return Some(Method::new(tree, by, "ExplicitMemory", "stiff_tree_scratch_len", gradient));
    }
    let families = [BundleKind::SENSITIVITIES, BundleKind::JOINT_SENSITIVITIES];
    if simulation.formulation == Formulation::MatrixR {
        let needed = [BundleKind::ConstrainedDynamics, BundleKind::ConstraintRows];
        if !has(&needed) || !has(&BundleKind::COORDINATE_FORM) {
            return None;
        }
        let independent = (
            quote!(rt::simulation::StiffIndependent<#kind>),
            quote!(rt::simulation::StiffIndependent(#value)),
        );
        let gradient = differentiated(&families, "stiff_independent_len");
        return Some(Method::new(independent, by, "StiffIndependentMemory", "stiff_scratch_len", gradient));
    }
    let needed = [BundleKind::ConstrainedDynamics, BundleKind::ConstraintCorrection];
    if !has(&needed) || !has(&BundleKind::COORDINATE_FORM) {
        return None;
    }
    let projected = (
        quote!(rt::simulation::StiffProjected<#kind>),
        quote! {
            rt::simulation::StiffProjected(rt::simulation::Projected { integrator: #value, enforcement: #enforcement })
        },
    );
    let gradient = differentiated(&families, "stiff_projected_len");
    Some(Method::new(projected, by, "ExplicitMemory", "stiff_projected_scratch_len", gradient))
}

/// An integrator of accelerations: type and value.
fn explicit(simulation: &Simulation) -> (TokenStream, TokenStream) {
    match simulation.integrator {
        Integrator::Rk4 => return (quote!(rt::Rk4), quote!(rt::Rk4)),
        Integrator::DormandPrince | Integrator::Dop853 | Integrator::Sdirk4 => {}
        Integrator::Trapezoidal | Integrator::Newmark { .. } | Integrator::GeneralizedAlpha { .. } => {
            let formulas = formulas(simulation);
            return (quote!(rt::simulation::Newmark), quote!(rt::simulation::Newmark(#formulas)));
        }
    }
    let [first, relative, absolute] =
        [simulation.step, simulation.relative_tolerance, simulation.absolute_tolerance].map(number);
    let largest = match simulation.max_step.map(number) {
        Some(step) => quote!(#step),
        None => quote!(f64::INFINITY),
    };
    let (steps, rejected) =
        (Literal::u64_unsuffixed(simulation.max_steps), Literal::u32_unsuffixed(simulation.max_rejected));
    let objectives = simulation.objectives_in_error;
    let (kind, base) = match simulation.integrator {
        Integrator::DormandPrince => (quote!(rt::Adaptive), quote!(rt::Adaptive::new(#relative, #absolute))),
        integrator => {
            let method =
                if integrator == Integrator::Dop853 { quote!(rt::Dop853) } else { quote!(rt::Sdirk4) };
            (quote!(rt::Adaptive<#method>), quote!(rt::Adaptive::of(#method, #relative, #absolute)))
        }
    };
    let value = quote! {
        rt::Adaptive {
            h_first: Some(#first),
            h_max: #largest,
            max_steps: #steps,
            max_rejected: #rejected,
            objectives: #objectives,
            ..#base
        }
    };
    (kind, value)
}
