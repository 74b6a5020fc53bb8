//! The face for people: `Simulation`, with the memory and the method of the model file as constants.
//!
//! What is printed are names and sizes; the work is the runtime's.

use super::face::number;
use super::named;
use crate::model::{Formulation, Integrator, Projection, Simulation};
use crate::program::{BundleKind, Program};
use proc_macro2::{Literal, TokenStream};
use quote::quote;

/// The simulation, or nothing where the bundles that its method needs were not asked for.
pub(super) fn print(program: &Program) -> TokenStream {
    let Some(Method { kind, value, memory, differentiated }) = method(program) else {
        return quote!();
    };
    let gradient = differentiated.then(|| gradient(program, &memory.gradient_len()));
    let (memory, scratch) = memory.lengths();
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
    let Simulation { begin, end, step, .. } = program.simulation;
    let [begin, end, step] = [begin, end, step].map(number);
    quote! {
        #(#structs)*

        /// Begin, end and step of the file's simulation.
        pub const SETTINGS: rt::simulation::Settings =
            rt::simulation::Settings { begin: #begin, end: #end, step: #step };
        /// A run of the model by the method of its file, with all its memory.
        pub type Simulation = rt::Simulation<Model, #given>;
        /// Why a simulation does not start or go on.
        pub type Error = rt::simulation::Error<Model>;

        impl rt::Simulated for Model {
            type Parameters = Parameters;
            type Coordinates = #coordinates;
            type Velocities = #velocities;
            type Inputs = #inputs;
            type Multipliers = #multipliers;
            type Outputs = #outputs;
            type Markers = #markers;
            type Reactions = #reactions;
            type State = [S; rt::simulation::#memory::state_len(&DIMS)];
            type Scratch = [S; rt::simulation::#memory::#scratch(&DIMS)];
            type Workspace = [S; WORKSPACE];
            type Method = #kind;

            const SETTINGS: rt::simulation::Settings = SETTINGS;
            const METHOD: Self::Method = #value;
            const NAMES: rt::named::NameTable = NAMES;

            fn check(parameters: &Parameters) -> Result<(), rt::simulation::ParameterError> {
                parameters.check()
            }

            fn with(parameters: Parameters) -> Self {
                Self::new(parameters)
            }

            fn parameters(&self) -> &Parameters {
                &self.parameters
            }

            fn signals(&self, t: S, u: &mut [S]) {
                if let Ok(u) = u.try_into() {
                    self.input_signals(t, u);
                }
            }
        }
        #gradient
    }
}

/// Objectives and their gradient.
fn gradient(program: &Program, len: &TokenStream) -> TokenStream {
    let structs = [named::derivatives(program), named::gradient(program)].map(|named| named.definition);
    quote! {
        #(#structs)*

        /// All memory of a differentiated run.
        pub type GradientMemory = [S; rt::simulation::GradientMemory::#len(&DIMS)];

        impl rt::simulation::Differentiable for Model {
            type Gradient = Gradient;
            type Memory = GradientMemory;
        }

        /// Objectives of the file's simulation with these parameters, and their gradient. Takes [`GradientMemory`] on the stack.
        pub fn gradient(parameters: &Parameters) -> Result<Gradient, Error> {
            rt::simulation::gradient::<Model>(parameters)
        }

        /// The same with other times and another step, in memory of the caller; what it holds before does not matter.
        pub fn gradient_with(
            parameters: &Parameters,
            settings: rt::simulation::Settings,
            memory: &mut GradientMemory,
        ) -> Result<Gradient, Error> {
            rt::simulation::gradient_with::<Model>(parameters, settings, memory)
        }
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
}

impl MemoryKind {
    /// The runtime's type, and its function for the length of the scratch.
    fn lengths(self) -> (TokenStream, TokenStream) {
        match self {
            MemoryKind::Implicit => (quote!(ImplicitMemory), quote!(scratch_len)),
            MemoryKind::Tree => (quote!(ExplicitMemory), quote!(tree_scratch_len)),
            MemoryKind::Projected => (quote!(ExplicitMemory), quote!(projected_scratch_len)),
        }
    }

    /// The runtime's function for the memory of a differentiated run.
    fn gradient_len(self) -> TokenStream {
        match self {
            MemoryKind::Implicit => quote!(implicit_len),
            MemoryKind::Tree => quote!(tree_len),
            MemoryKind::Projected => quote!(projected_len),
        }
    }
}

/// Which memory the simulation of a module takes, and whether its runs are differentiated; none if it has no simulation.
pub fn memory(program: &Program) -> Option<(MemoryKind, bool)> {
    method(program).map(|method| (method.memory, method.differentiated))
}

/// A method of the runtime.
struct Method {
    kind: TokenStream,
    value: TokenStream,
    memory: MemoryKind,
    /// Whether the model is differentiated.
    differentiated: bool,
}

/// The method that the file names, if its bundles are there.
fn method(program: &Program) -> Option<Method> {
    let has = |kinds: &[BundleKind]| kinds.iter().all(|kind| program.kinds.contains(kind));
    let judged = !program.objectives.is_empty() && !program.sensitivity.is_empty();
    let differentiated = |families: &[[BundleKind; 5]]| judged && families.iter().all(|family| has(family));
    let simulation = &program.simulation_of_scalar();
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
        Integrator::Rk4 | Integrator::DormandPrince => {
            let (kind, value) = explicit(simulation);
            if has(&[BundleKind::ForwardDynamics]) {
                return Some(Method {
                    kind: quote!(rt::simulation::Tree<#kind>),
                    value: quote!(rt::simulation::Tree(#value)),
                    memory: MemoryKind::Tree,
                    differentiated: differentiated(&[BundleKind::JOINT_SENSITIVITIES]),
                });
            }
            let needed = [BundleKind::ConstrainedDynamics, BundleKind::ConstraintCorrection];
            return (has(&needed) && has(&BundleKind::COORDINATE_FORM)).then(|| Method {
                kind: quote!(rt::simulation::Projected<#kind>),
                value: quote!(rt::simulation::Projected { integrator: #value, enforcement: #enforcement }),
                memory: MemoryKind::Projected,
                differentiated: differentiated(&[BundleKind::SENSITIVITIES, BundleKind::JOINT_SENSITIVITIES]),
            });
        }
        Integrator::Trapezoidal => quote!(rt::Implicit::TRAPEZOIDAL),
        Integrator::Newmark { beta, gamma } => {
            let (beta, gamma) = (number(beta), number(gamma));
            quote!(rt::Implicit::Newmark { beta: #beta, gamma: #gamma })
        }
        Integrator::GeneralizedAlpha { spectral_radius } => {
            let spectral_radius = number(spectral_radius);
            quote!(rt::Implicit::GeneralizedAlpha { spectral_radius: #spectral_radius })
        }
    };
    if !has(&BundleKind::COORDINATE_FORM) || program.coordinates.is_empty() {
        return None;
    }
    let tolerance = number(simulation.newton_tolerance);
    let iterations = Literal::u32_unsuffixed(simulation.newton_iterations);
    let (kind, value) = if constrained && simulation.formulation != Formulation::Ali3p {
        let value = quote! {
            rt::simulation::Stabilised {
                method: rt::ImplicitIndex1 {
                    integrator: #implicit,
                    tolerance: #tolerance,
                    max_iterations: #iterations,
                    ..rt::ImplicitIndex1::new(rt::Stabilisation { rate: 0.0, value: 0.0, compliance: 0.0 })
                },
                enforcement: #enforcement,
            }
        };
        (quote!(rt::simulation::Stabilised), value)
    } else {
        let projection = match simulation.projection {
            Projection::Mass => quote!(rt::ProjectionMatrix::Mass),
            Projection::Tangent => quote!(rt::ProjectionMatrix::Tangent),
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
                penalty: #penalty,
                projection: #projection,
                ..rt::Ali3p::DEFAULT
            }
        };
        (quote!(rt::Ali3p), value)
    };
    Some(Method {
        kind,
        value,
        memory: MemoryKind::Implicit,
        differentiated: differentiated(&[BundleKind::SENSITIVITIES]),
    })
}

/// An explicit integrator: type and value.
fn explicit(simulation: &Simulation) -> (TokenStream, TokenStream) {
    if simulation.integrator == Integrator::Rk4 {
        return (quote!(rt::Rk4), quote!(rt::Rk4));
    }
    let [first, relative, absolute] =
        [simulation.step, simulation.relative_tolerance, simulation.absolute_tolerance].map(number);
    let value = quote! {
        rt::Adaptive { h_first: Some(#first), max_steps: usize::MAX, ..rt::Adaptive::new(#relative, #absolute) }
    };
    (quote!(rt::Adaptive), value)
}
