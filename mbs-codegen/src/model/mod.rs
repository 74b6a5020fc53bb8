//! The typed model: what a YAML file means, with every name resolved.
//!
//! Input: nothing but values built by [`crate::yaml`] (or by a test).
//! Output: [`Model`], in which bodies, joints, parameters and inputs are addressed by typed ids and every
//! expression is typed (scalar or vector) and free of unknown symbols.
//! Holds afterwards: names are unique; every id points into its table; elements and mirrored assemblies are
//! expanded; `bodies[0]` is `ground`.

pub mod clock;
pub mod constraint;
pub mod dependencies;
pub mod evaluate;
pub mod event;
pub mod expression;
pub mod ids;
mod independent_points;
pub mod joint;
pub mod knots;
pub mod mode;
pub mod moments;
pub mod optimisation;
pub mod references;
mod replace;
pub mod sensitivity;
pub mod shape;
pub mod switches;
pub mod walk;

pub use constraint::{
    Constraint, ConstraintKind, ConstraintRow, EventTerm, Objective, PROJECTED, Variable, VariableStart,
    Which,
};
pub use event::{Direction, Event, EventCondition, ImpactLaw};
pub use expression::{ArrayRef, BinaryOp, Comparison, Function, Multiplier, Outside, Scalar, Vector};
pub use ids::{
    BodyId, ConstraintId, CoordinateRef, InputId, JointId, MarkerRef, ParameterId, PointRef, RowRef,
    VariableId, VelocityRef,
};
pub use joint::{Joint, JointKind, JointPoint, JointSide, SharedParts, Start};
pub use mode::{Activity, Mode};
pub use optimisation::Optimisation;
pub use references::{Reference, User};
pub use sensitivity::SensitivityRef;
pub use shape::{Shape, ShapeKind};

use crate::diagnostics::Span;

/// A mechanism, its parameters and how it is usually run.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// The model's name, a valid identifier.
    pub name: String,
    /// Free text.
    pub description: String,
    /// In which coordinates its equations are wanted.
    pub coordinates: Coordinates,
    /// Acceleration of gravity in the ground frame, m/s².
    pub gravity: Vector,
    /// Parameters, independent and derived.
    pub parameters: Vec<Parameter>,
    /// Inputs set from outside at every step.
    pub inputs: Vec<Input>,
    /// Named expressions reported with the results.
    pub outputs: Vec<Output>,
    /// Bodies; the first is `ground`.
    pub bodies: Vec<Body>,
    /// Joints, in the order of the file.
    pub joints: Vec<Joint>,
    /// Coordinates that belong to no joint.
    pub variables: Vec<Variable>,
    /// Forces other than gravity.
    pub forces: Vec<Force>,
    /// States of which one holds at a time.
    pub modes: Vec<Mode>,
    /// The input that is added to the time in laws that name it, if there are events to be differentiated.
    pub clock: Option<InputId>,
    /// Constraints beside the joints.
    pub constraints: Vec<Constraint>,
    /// What happens at instants that the motion determines, in the order in which simultaneous ones act.
    pub events: Vec<Event>,
    /// What a run is judged by.
    pub objectives: Vec<Objective>,
    /// What the model is differentiated by, arrays flattened; no two are the same.
    pub sensitivity: Vec<SensitivityRef>,
    /// Defaults for a simulation.
    pub simulation: Simulation,
    /// Named overlays of parameters, start values, inputs and simulation.
    pub cases: Vec<Case>,
    /// Problems that vary parameters.
    pub optimisation: Vec<Optimisation>,
    /// Knots of tables and splines outside of cases that follow parameters: they increase at the defaults and in every case.
    pub knots: Vec<ArrayRef>,
}

impl Model {
    /// Defaults of the independent parameters, arrays flattened.
    pub fn default_parameters(&self) -> Vec<f64> {
        let mut defaults = Vec::new();
        for parameter in &self.parameters {
            match &parameter.value {
                ParameterValue::Number(value) => defaults.push(*value),
                ParameterValue::Array(values) => defaults.extend(values),
                ParameterValue::Derived(_) => {}
            }
        }
        defaults
    }

    /// The model with a case's parameters and start values in place of its own.
    pub fn under_case(&self, case: Option<&Case>) -> Model {
        let mut model = self.clone();
        if let Some(case) = case {
            for (id, value) in &case.parameters {
                model.parameters[id.index()].value = value.clone();
            }
            model.sensitivity = model.sensitivity_under(Some(case)).to_vec();
            for (id, start) in &case.start {
                model.joints[id.index()].start = start.clone();
            }
            for (id, start) in &case.variables {
                let variable = &mut model.variables[id.index()];
                (variable.value, variable.rate, variable.hold) =
                    (start.value.clone(), start.rate.clone(), start.hold);
            }
        }
        model
    }

    /// The full name of an equation.
    pub fn row_name(&self, row: RowRef) -> String {
        let name = match row {
            RowRef::Constraint { constraint, row } => self
                .constraints
                .get(constraint.index())
                .and_then(|constraint| constraint.rows.get(row as usize))
                .map(|row| row.name.clone()),
            RowRef::Joint { joint, row } => self.joints.get(joint.index()).and_then(|joint| {
                let suffix = joint.kind.closure_rows().get(row as usize)?;
                Some(format!("{}.{suffix}", joint.name))
            }),
        };
        name.unwrap_or_default()
    }
}

/// In which coordinates the equations of a model are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Coordinates {
    /// Of the joints of a spanning tree.
    #[default]
    Joint,
    /// Of every body, with every joint as constraints.
    Absolute,
}

impl Coordinates {
    /// All of them.
    pub const ALL: [Coordinates; 2] = [Coordinates::Joint, Coordinates::Absolute];

    /// The word in the model file.
    pub fn keyword(self) -> &'static str {
        match self {
            Coordinates::Joint => "joint",
            Coordinates::Absolute => "absolute",
        }
    }
}

/// A named number, or array of numbers, that stays a run-time value.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Name as written.
    pub name: String,
    /// Free text, may be empty.
    pub description: String,
    /// Unit as written, may be empty; not interpreted.
    pub unit: String,
    /// What gives the value.
    pub value: ParameterValue,
    /// Smallest allowed value.
    pub min: Option<f64>,
    /// Largest allowed value.
    pub max: Option<f64>,
    /// Where the file declares it.
    pub span: Span,
}

/// What gives a parameter its value.
#[derive(Clone, Debug, PartialEq)]
pub enum ParameterValue {
    /// Independent scalar with its default.
    Number(f64),
    /// Independent array with its defaults; never empty.
    Array(Vec<f64>),
    /// Follows other parameters; not a field of its own.
    Derived(Scalar),
}

/// A signal set from outside.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// Name as written.
    pub name: String,
    /// Free text, may be empty.
    pub description: String,
    /// Unit as written, may be empty; not interpreted.
    pub unit: String,
    /// Value where nobody sets one.
    pub default: f64,
    /// How the value is held over a step.
    pub hold: Hold,
    /// Where the file declares it.
    pub span: Span,
}

impl Input {
    /// Why its signal and step control do not go together.
    pub fn unseen_by_step_control(&self, integrator: Integrator) -> String {
        format!(
            "input `{}` follows a signal but is held over every step (`hold: {}`), which the step control of `{}` does not see",
            self.name,
            self.hold.keyword(),
            integrator.keyword()
        )
    }
}

/// How an input is held over a step: part of the discrete map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// The value at the step's beginning.
    Zero,
    /// Linear between the values at the step's two ends.
    Linear,
    /// Evaluated at every stage time.
    Signal,
}

impl Hold {
    /// The word for it in a model file.
    pub fn keyword(self) -> &'static str {
        match self {
            Hold::Zero => "zero",
            Hold::Linear => "linear",
            Hold::Signal => "signal",
        }
    }
}

/// A named expression reported with the results.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// Name as written.
    pub name: String,
    /// Unit as written, may be empty; not interpreted.
    pub unit: String,
    /// The expression.
    pub value: OutputValue,
    /// Where the file declares it.
    pub span: Span,
}

/// An output is one number or three.
#[derive(Clone, Debug, PartialEq)]
pub enum OutputValue {
    /// One column.
    Scalar(Scalar),
    /// Three columns: `.x`, `.y`, `.z`.
    Vector(Vector),
}

/// A rigid body. Its frame's origin is the point `origin`.
#[derive(Clone, Debug, PartialEq)]
pub struct Body {
    /// Name as written (flattened if it came from an element).
    pub name: String,
    /// Mass, kg; an expression of parameters.
    pub mass: Scalar,
    /// Centre of mass in the body frame.
    pub com: Vector,
    /// Tensor elements about the centre of mass, in the body frame.
    pub inertia: Inertia,
    /// Named points, body frame.
    pub points: Vec<(String, Vector)>,
    /// Named unit directions, body frame, normalised on use.
    pub vectors: Vec<(String, Vector)>,
    /// What it looks like; the drawing chooses where there are none.
    pub shapes: Vec<Shape>,
    /// Where the file declares it.
    pub span: Span,
}

/// Elements of the inertia tensor about the centre of mass: `xy` is −∫xy dm.
#[derive(Clone, Debug, PartialEq)]
pub struct Inertia {
    /// J_xx
    pub xx: Scalar,
    /// J_yy
    pub yy: Scalar,
    /// J_zz
    pub zz: Scalar,
    /// J_xy = −∫xy dm
    pub xy: Scalar,
    /// J_xz = −∫xz dm
    pub xz: Scalar,
    /// J_yz = −∫yz dm
    pub yz: Scalar,
    /// Two directions (axis → z, reference → x, made orthogonal) of the frame the elements are given in,
    /// in the body frame; the body frame itself when absent.
    pub frame: Option<(Vector, Vector)>,
}

/// A force element.
#[derive(Clone, Debug, PartialEq)]
pub struct Force {
    /// Name as written.
    pub name: String,
    /// What it does.
    pub kind: ForceKind,
    /// In which states it acts.
    pub activity: Activity,
    /// Where the file declares it.
    pub span: Span,
}

/// What a force element does.
#[derive(Clone, Debug, PartialEq)]
pub enum ForceKind {
    /// Acts along the line between two points; positive in tension.
    Spring {
        /// First point.
        from: MarkerRef,
        /// Second point.
        to: MarkerRef,
        /// Its law.
        law: SpringLaw,
    },
    /// Acts on one coordinate of a joint, against its growth.
    TorsionalSpring {
        /// The coordinate.
        coordinate: CoordinateRef,
        /// Its law.
        law: SpringLaw,
    },
    /// A force vector at a point.
    Force {
        /// Where it acts.
        at: MarkerRef,
        /// Its opposite acts here, if given.
        reaction: Option<MarkerRef>,
        /// World components.
        value: Vector,
    },
    /// A torque vector on a body.
    Torque {
        /// On what it acts.
        on: BodyId,
        /// Its opposite acts on this body, if given.
        reaction: Option<BodyId>,
        /// World components.
        value: Vector,
    },
    /// A generalised force on one coordinate of a joint.
    JointForce {
        /// The coordinate.
        coordinate: CoordinateRef,
        /// The force or torque along it.
        value: Scalar,
    },
}

/// The law of a spring: force as a function of its length (or angle) and rate.
#[derive(Clone, Debug, PartialEq)]
pub enum SpringLaw {
    /// f = stiffness (length − natural) + damping rate
    Linear {
        /// N/m or N m/rad
        stiffness: Scalar,
        /// N s/m or N m s/rad
        damping: Scalar,
        /// m or rad
        natural: Scalar,
    },
    /// Any expression of [`Scalar::Length`] and [`Scalar::LengthRate`].
    Expression(Scalar),
}

/// Defaults for a simulation; the command line overrides them.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulation {
    /// First time.
    pub begin: f64,
    /// Last time.
    pub end: f64,
    /// Step (fixed step), or first step (with step control).
    pub step: f64,
    /// Time between reported results; every step when absent.
    pub output_step: Option<f64>,
    /// The integrator.
    pub integrator: Integrator,
    /// How constraints are enforced; without meaning for a model that has none.
    pub formulation: Formulation,
    /// Coordinates that `matrix_r` integrates, by name, and where the file names them; none lets it choose.
    pub independent: Vec<(String, Span)>,
    /// Penalty of every constraint; scaled by step and inertia when absent.
    pub penalty: Option<f64>,
    /// The matrix of the projections.
    pub projection: Projection,
    /// Relative increment at which the Newton iteration ends.
    pub newton_tolerance: f64,
    /// Most Newton iterations of a step.
    pub newton_iterations: u32,
    /// The tangent of the Newton iteration.
    pub newton_tangent: Tangent,
    /// Relative tolerance of step control.
    pub relative_tolerance: f64,
    /// Absolute tolerance of step control.
    pub absolute_tolerance: f64,
    /// Largest step of step control; none without a limit.
    pub max_step: Option<f64>,
    /// Steps that step control may try in a run.
    pub max_steps: u64,
    /// Trials of one step that step control may reject.
    pub max_rejected: u32,
    /// Whether integrands of objectives count for the error of step control.
    pub objectives_in_error: bool,
    /// How gradients are computed.
    pub gradient: GradientMethod,
}

impl Simulation {
    /// Whether steps are projected with the matrix of the tangent.
    pub fn projects_with_tangent(&self) -> bool {
        !self.integrator.is_runge_kutta()
            && self.formulation == Formulation::Ali3p
            && self.projection == Projection::Tangent
    }
}

/// How the gradient of a run is computed. All agree to rounding, but for the continuous adjoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GradientMethod {
    /// Forward, with a column for each parameter.
    #[default]
    Direct,
    /// Backward, with a column for each objective.
    Adjoint,
    /// Backward by the adjoint of the continuous equations of ALI3-P: the same but for the error of the method, for comparison.
    ContinuousAdjoint,
    /// Whichever is expected to be quicker.
    Auto,
}

impl GradientMethod {
    /// All of them.
    pub const ALL: [GradientMethod; 4] = [
        GradientMethod::Direct,
        GradientMethod::Adjoint,
        GradientMethod::ContinuousAdjoint,
        GradientMethod::Auto,
    ];

    /// Its word in a model file.
    pub fn keyword(self) -> &'static str {
        match self {
            GradientMethod::Direct => "direct",
            GradientMethod::Adjoint => "adjoint",
            GradientMethod::ContinuousAdjoint => "continuous_adjoint",
            GradientMethod::Auto => "auto",
        }
    }
}

impl Default for Simulation {
    fn default() -> Self {
        Simulation {
            begin: 0.0,
            end: 10.0,
            step: 1e-3,
            output_step: None,
            integrator: Integrator::Rk4,
            formulation: Formulation::Ali3p,
            independent: Vec::new(),
            penalty: None,
            projection: Projection::Mass,
            newton_tolerance: 1e-10,
            newton_iterations: 20,
            newton_tangent: Tangent::Reused,
            relative_tolerance: 1e-8,
            absolute_tolerance: 1e-10,
            max_step: None,
            max_steps: 1_000_000,
            max_rejected: 50,
            objectives_in_error: true,
            gradient: GradientMethod::default(),
        }
    }
}

impl Simulation {
    /// Whether accelerations are integrated in joint form: by Runge–Kutta methods, and in independent coordinates by all.
    pub fn is_in_joint_form(&self, constrained: bool) -> bool {
        self.integrator.is_runge_kutta() || constrained && self.formulation == Formulation::MatrixR
    }

    /// Whether its steps end with projections of velocities and accelerations.
    pub fn projects(&self, constrained: bool) -> bool {
        let ali3p = self.formulation == Formulation::Ali3p && !self.integrator.is_runge_kutta();
        constrained && ali3p && self.projection != Projection::None
    }

    /// Whether its steps have implicit stages in joint form, which are solved with derivatives of accelerations.
    pub fn solves_stages(&self, constrained: bool) -> bool {
        self.is_in_joint_form(constrained) && !self.integrator.is_explicit()
    }
}

/// The integrators a model file may name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Integrator {
    /// Classical Runge–Kutta, fixed step.
    Rk4,
    /// Dormand–Prince 5(4) with step control.
    DormandPrince,
    /// Dormand–Prince 8(5,3) with step control.
    Dop853,
    /// Implicit Runge–Kutta 4(3), stiffly accurate, with step control.
    Sdirk4,
    /// The trapezoidal rule: Newmark with β = 1/4, γ = 1/2. Fixed step, implicit.
    Trapezoidal,
    /// Newmark's family. Fixed step, implicit.
    Newmark {
        /// β
        beta: f64,
        /// γ
        gamma: f64,
    },
    /// Generalized-α. Fixed step, implicit.
    GeneralizedAlpha {
        /// Spectral radius at infinite frequency, 0 to 1.
        spectral_radius: f64,
    },
}

impl Integrator {
    /// All integrators, with the coefficients that they have if a file does not say.
    pub const ALL: [Integrator; 7] = [
        Integrator::Rk4,
        Integrator::DormandPrince,
        Integrator::Dop853,
        Integrator::Sdirk4,
        Integrator::Trapezoidal,
        Integrator::Newmark { beta: 0.25, gamma: 0.5 },
        Integrator::GeneralizedAlpha { spectral_radius: 0.8 },
    ];

    /// Whether its steps solve no equations.
    pub fn is_explicit(self) -> bool {
        matches!(self, Integrator::Rk4 | Integrator::DormandPrince | Integrator::Dop853)
    }

    /// Whether it integrates accelerations in joint form: Runge–Kutta methods do, explicit and implicit.
    pub fn is_runge_kutta(self) -> bool {
        self.is_explicit() || self.controls_steps()
    }

    /// Whether it chooses its steps by their error.
    pub fn controls_steps(self) -> bool {
        matches!(self, Integrator::DormandPrince | Integrator::Dop853 | Integrator::Sdirk4)
    }

    /// The word in the model file.
    pub fn keyword(self) -> &'static str {
        match self {
            Integrator::Rk4 => "rk4",
            Integrator::DormandPrince => "dormand_prince",
            Integrator::Dop853 => "dop853",
            Integrator::Sdirk4 => "sdirk4",
            Integrator::Trapezoidal => "trapezoidal",
            Integrator::Newmark { .. } => "newmark",
            Integrator::GeneralizedAlpha { .. } => "generalized_alpha",
        }
    }

    /// What it is, in a line.
    pub fn summary(self) -> &'static str {
        match self {
            Integrator::Rk4 => "Classical Runge-Kutta, fixed step",
            Integrator::DormandPrince => "Dormand-Prince 5(4), step control",
            Integrator::Dop853 => "Dormand-Prince 8(5,3), step control, for six digits and more",
            Integrator::Sdirk4 => "Implicit Runge-Kutta 4(3) for stiff motion, step control",
            Integrator::Trapezoidal => "The trapezoidal rule, implicit, fixed step",
            Integrator::Newmark { .. } => "Newmark's formulas, implicit, fixed step",
            Integrator::GeneralizedAlpha { .. } => "Generalized-alpha, implicit, fixed step",
        }
    }

    /// The words of some integrators: "`a`, `b` and `c`", with this word before the last.
    pub fn words(some: impl Fn(Integrator) -> bool, last: &str) -> String {
        let words: Vec<String> = Integrator::ALL
            .into_iter()
            .filter(|integrator| some(*integrator))
            .map(|integrator| format!("`{}`", integrator.keyword()))
            .collect();
        match words.split_last() {
            Some((one, [])) => one.clone(),
            Some((end, others)) => format!("{} {last} {end}", others.join(", ")),
            None => String::new(),
        }
    }
}

/// How constraints are enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Formulation {
    /// Augmented Lagrangian, index 3, with projections of velocities and accelerations.
    Ali3p,
    /// Penalty (Bayo).
    Penalty,
    /// Accelerations with Baumgarte's stabilisation; projected onto the constraints after explicit steps.
    Index1,
    /// Independent coordinates are integrated, the others follow from the constraints.
    MatrixR,
}

impl Formulation {
    /// All formulations.
    pub const ALL: [Formulation; 4] =
        [Formulation::Ali3p, Formulation::Penalty, Formulation::Index1, Formulation::MatrixR];

    /// The word in the model file.
    pub fn keyword(self) -> &'static str {
        match self {
            Formulation::Ali3p => "ali3p",
            Formulation::Penalty => "penalty",
            Formulation::Index1 => "index1",
            Formulation::MatrixR => "matrix_r",
        }
    }
}

/// The matrix in whose metric velocities and accelerations are projected, if they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Projection {
    /// M
    Mass,
    /// The symmetric part of M + γh C + βh² K.
    Tangent,
    /// They are not projected.
    None,
}

impl Projection {
    /// All of them.
    pub const ALL: [Projection; 3] = [Projection::Mass, Projection::Tangent, Projection::None];

    /// The word in the model file.
    pub fn keyword(self) -> &'static str {
        match self {
            Projection::Mass => "mass",
            Projection::Tangent => "tangent",
            Projection::None => "none",
        }
    }
}

/// The tangent with which Newton's method iterates. It decides how fast steps converge, not where to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tangent {
    /// That of each iterate.
    Exact,
    /// That of a step's first iterate.
    Reused,
    /// That of a step before.
    Carried,
}

impl Tangent {
    /// All of them.
    pub const ALL: [Tangent; 3] = [Tangent::Exact, Tangent::Reused, Tangent::Carried];

    /// The word in the model file.
    pub fn keyword(self) -> &'static str {
        match self {
            Tangent::Exact => "exact",
            Tangent::Reused => "reused",
            Tangent::Carried => "carried",
        }
    }
}

/// A manoeuvre: a named overlay over the model's defaults. Absent fields keep the default.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Name as written.
    pub name: String,
    /// Free text, may be empty.
    pub description: String,
    /// New defaults of independent parameters.
    pub parameters: Vec<(ParameterId, ParameterValue)>,
    /// Start values of coordinates.
    pub start: Vec<(JointId, Start)>,
    /// Start values of variables.
    pub variables: Vec<(VariableId, VariableStart)>,
    /// Inputs as expressions of time and parameters.
    pub inputs: Vec<(InputId, Scalar)>,
    /// What the model is differentiated by, in place of its own list.
    pub sensitivity: Option<Vec<SensitivityRef>>,
    /// Simulation defaults, complete (already merged with the model's).
    pub simulation: Simulation,
    /// Knots in its own expressions that follow parameters.
    pub knots: Vec<ArrayRef>,
    /// Where the file declares it.
    pub span: Span,
}

impl Case {
    /// Inputs that follow a signal in time but are held over a step: right for fixed steps, unseen by step control.
    pub fn held_signals<'m>(&self, inputs: &'m [Input]) -> impl Iterator<Item = &'m Input> {
        self.inputs
            .iter()
            .filter(|(_, signal)| signal.depends_on_time())
            .filter_map(|(id, _)| inputs.get(id.index()))
            .filter(|input| input.hold != Hold::Signal)
    }
}
