//! The method that a model's `simulation` names, as the runtime's integrators take it.
//!
//! Input: settings as a file or a command line gives them. Output: a [`Method`] in which every number is fixed, so that all
//! runs made with it, differentiated ones and those they are compared with, are the same map.

use mbs_codegen::model::{self, Formulation, Simulation};
use mbs_runtime::simulation::{Enforcement, damping_frequency};
use mbs_runtime::{
    Adaptive, Ali3p, Dop853, DormandPrince, Implicit, ImplicitIndex1, Penalty, ProjectionMatrix, Sdirk4,
    Stabilisation, Tangent,
};

/// How a run is made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Method {
    /// Augmented Lagrangian of index 3 with projections; of an open tree, its implicit integrator alone.
    Ali3p(Ali3p),
    /// Index 1 or penalty, with an implicit integrator.
    Index1(ImplicitIndex1),
    /// Classical Runge–Kutta; under constraints, of index 1 or penalty, each step ends on them.
    Rk4(Option<Damping>),
    /// Dormand–Prince with step control, likewise.
    DormandPrince(Adaptive, Option<Damping>),
    /// Its relative of order 8, likewise.
    Dop853(Adaptive<Dop853>, Option<Damping>),
    /// The implicit Runge–Kutta method of order 4 with step control, likewise.
    Sdirk4(Adaptive<Sdirk4>, Option<Damping>),
    /// The trapezoidal rule in independent coordinates, Newmark's formulas and generalized-alpha.
    Trapezoidal(Option<Damping>),
}

/// How `index1` and `penalty` answer a violation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Damping {
    /// With which frequency it is damped, critically, rad/s; zero where steps end on the constraints.
    pub frequency: f64,
    /// The penalty; none for exact accelerations.
    pub penalty: Option<f64>,
    /// Where independent coordinates are integrated, so that there is nothing to answer: the formulas of the trapezoidal rule and its kin.
    pub matrix_r: Option<Implicit>,
}

/// How `index1` and `penalty` answer a violation, before the scale of the rows is known.
pub(crate) fn enforcement(simulation: &Simulation) -> Enforcement {
    match (simulation.formulation, simulation.penalty) {
        (Formulation::Penalty, Some(penalty)) => Enforcement::Penalty(penalty),
        (Formulation::Penalty, None) => Enforcement::ScaledPenalty,
        _ => Enforcement::Exact,
    }
}

impl Damping {
    /// Φdd + 2ω Φd + ω² Φ = λ/α
    pub fn stabilisation(&self) -> Stabilisation<f64> {
        Stabilisation {
            rate: 2.0 * self.frequency,
            value: self.frequency * self.frequency,
            compliance: self.penalty.map_or(0.0, |penalty| 1.0 / penalty),
        }
    }

    /// As [`Method::of`]; none where positions satisfy the constraints, or there are none.
    pub fn of(simulation: &Simulation, constrained: bool, scale: &[f64]) -> Option<Damping> {
        if !constrained || simulation.formulation == Formulation::Ali3p {
            return None;
        }
        Some(Damping {
            frequency: if simulation.is_in_joint_form(constrained) {
                0.0
            } else {
                damping_frequency(simulation.step)
            },
            penalty: enforcement(simulation).penalty(scale),
            matrix_r: (simulation.formulation == Formulation::MatrixR).then(|| formulas(simulation)),
        })
    }
}

/// The formulas of an implicit integrator; those of the trapezoidal rule for others.
fn formulas(simulation: &Simulation) -> Implicit {
    match simulation.integrator {
        model::Integrator::Newmark { beta, gamma } => Implicit::Newmark { beta, gamma },
        model::Integrator::GeneralizedAlpha { spectral_radius } => {
            Implicit::GeneralizedAlpha { spectral_radius }
        }
        _ => Implicit::TRAPEZOIDAL,
    }
}

/// Step control of a method.
fn control<T>(method: T, simulation: &Simulation) -> Adaptive<T> {
    Adaptive {
        h_first: Some(simulation.step),
        h_max: simulation.max_step.unwrap_or(f64::INFINITY),
        max_steps: usize::try_from(simulation.max_steps).unwrap_or(usize::MAX),
        max_rejected: simulation.max_rejected as usize,
        objectives: simulation.objectives_in_error,
        ..Adaptive::of(method, simulation.relative_tolerance, simulation.absolute_tolerance)
    }
}

impl Method {
    /// What the settings mean for a model with constraints or without; `scale` is that of the rows at the start,
    /// [`State::scale`](mbs_runtime::State).
    pub fn of(simulation: &Simulation, constrained: bool, scale: &[f64]) -> Method {
        let damping = Damping::of(simulation, constrained, scale);
        let integrator = match simulation.integrator {
            model::Integrator::Rk4 => return Method::Rk4(damping),
            model::Integrator::DormandPrince => {
                return Method::DormandPrince(control(DormandPrince, simulation), damping);
            }
            model::Integrator::Dop853 => return Method::Dop853(control(Dop853, simulation), damping),
            model::Integrator::Sdirk4 => return Method::Sdirk4(control(Sdirk4, simulation), damping),
            _ if simulation.is_in_joint_form(constrained) => return Method::Trapezoidal(damping),
            model::Integrator::Trapezoidal
            | model::Integrator::Newmark { .. }
            | model::Integrator::GeneralizedAlpha { .. } => formulas(simulation),
        };
        let (tolerance, max_iterations) =
            (simulation.newton_tolerance, simulation.newton_iterations as usize);
        let tangent = match simulation.newton_tangent {
            model::Tangent::Exact => Tangent::Exact,
            model::Tangent::Reused => Tangent::Reused,
            model::Tangent::Carried => Tangent::Carried,
        };
        if let Some(damping) = damping {
            let base = ImplicitIndex1::new(damping.stabilisation());
            // Unless the file says otherwise, the default of the formulation, as in generated code.
            let tangent = if tangent == Tangent::Reused { base.tangent } else { tangent };
            return Method::Index1(ImplicitIndex1 { integrator, tolerance, max_iterations, tangent, ..base });
        }
        let projection = match simulation.projection {
            model::Projection::Mass | model::Projection::None => ProjectionMatrix::Mass,
            model::Projection::Tangent => ProjectionMatrix::Tangent,
        };
        let penalty = simulation.penalty.map_or(Penalty::DEFAULT, Penalty::Given);
        let mut base = Ali3p::DEFAULT;
        if simulation.projection == model::Projection::None {
            base.max_projections = 0;
        }
        Method::Ali3p(Ali3p { integrator, tolerance, max_iterations, tangent, penalty, projection, ..base })
    }

    /// Whether it integrates accelerations in joint form.
    pub fn is_runge_kutta(&self) -> bool {
        !matches!(self, Method::Ali3p(_) | Method::Index1(_))
    }

    /// How it answers violated constraints, if it integrates accelerations in joint form and there are any.
    pub(crate) fn damping(&self) -> Option<Damping> {
        match *self {
            Method::Ali3p(_) | Method::Index1(_) => None,
            Method::Rk4(damping) | Method::Trapezoidal(damping) => damping,
            Method::DormandPrince(_, damping) | Method::Dop853(_, damping) | Method::Sdirk4(_, damping) => {
                damping
            }
        }
    }

    /// The same method, iterated until rounding, so that imaginary parts and small differences converge too.
    pub(crate) fn iterated_to_rounding(&self, redundant: bool) -> Method {
        match *self {
            Method::Ali3p(method) => Method::Ali3p(Ali3p {
                tolerance: TO_ROUNDING,
                max_iterations: PATIENT,
                // The solution is that of any penalty; a large one is found at once. Where rows depend on each other it means nothing.
                penalty: if redundant { method.penalty } else { Penalty::Given(LARGE) },
                ..method
            }),
            Method::Index1(method) => {
                Method::Index1(ImplicitIndex1 { tolerance: TO_ROUNDING, max_iterations: PATIENT, ..method })
            }
            method => method,
        }
    }
}

const TO_ROUNDING: f64 = 1e-30;
const PATIENT: usize = 100;
const LARGE: f64 = 1e18;
