//! `simulation` and `cases`.

use super::declare::Unit;
use super::expression::resolve::Context;
use super::fields::Fields;
use super::keys;
use super::limits;
use super::load::shorten;
use super::names::{Unique, check_name};
use super::node::{Entry, Kind, Node};
use super::reader::Reader;
use super::scope::{Scope, Symbol, Thing};
use super::sensitivity::Choices;
use crate::model::dependencies::evaluation_order;
use crate::model::evaluate::{Value, Values};
use crate::model::knots::FallingKnot;
use crate::model::{
    ArrayRef, Case, CoordinateRef, Formulation, GradientMethod, Input, InputId, Integrator, Joint, JointId,
    Parameter, ParameterId, ParameterValue, Projection, Scalar, Simulation, Start, Tangent, Variable,
    VariableId, VariableStart,
};

/// Most iterations a file may ask for: a step that has not converged by then never does.
const NEWTON_ITERATIONS: u32 = 1000;
/// Most steps of step control: days of work.
const MAX_STEPS: u64 = 10_000_000_000;
/// Most trials of one step: from any size to rounding it takes fewer.
const MAX_REJECTED: u64 = 10_000;

/// A simulation, and which of its settings the file gives; defaults of the others follow from these.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) simulation: Simulation,
    /// Whether the model has constraints or closed loops.
    constrained: bool,
    integrator: Option<Integrator>,
    formulation: Option<Formulation>,
}

impl Settings {
    pub(super) fn new(constrained: bool) -> Settings {
        let mut settings =
            Settings { simulation: Simulation::default(), constrained, integrator: None, formulation: None };
        settings.choose();
        settings
    }

    /// Integrator and formulation where the file leaves them open: constraints want an implicit integrator
    /// and the formulation that goes with it, explicit integrators want accelerations.
    fn choose(&mut self) {
        let explicit = self.integrator.is_some_and(Integrator::is_runge_kutta);
        self.simulation.formulation = match self.formulation {
            Some(formulation) => formulation,
            None if self.constrained && explicit => Formulation::Index1,
            None => Formulation::Ali3p,
        };
        let explicit = matches!(self.simulation.formulation, Formulation::Index1 | Formulation::MatrixR);
        let implicit = self.constrained && !explicit;
        self.simulation.integrator = match self.integrator {
            Some(integrator) => integrator,
            None if implicit => Integrator::Trapezoidal,
            None => Integrator::Rk4,
        };
    }
}

/// What a case may name.
pub(super) struct Around<'m> {
    pub(super) parameters: &'m [Parameter],
    pub(super) inputs: &'m [Input],
    pub(super) joints: &'m [Joint],
    pub(super) variables: &'m [Variable],
}

impl<'t> Reader<'t> {
    /// Overrides a simulation by an entry.
    pub(super) fn read_simulation(&mut self, entry: Option<&'t Entry>, mut settings: Settings) -> Settings {
        let Some(entry) = entry else { return settings };
        let Some(fields) = self.fields(&entry.value, entry.key_span, &keys::SIMULATION) else {
            return settings;
        };
        self.read_methods(&fields, &mut settings);
        let simulation = &mut settings.simulation;
        let number = |reader: &mut Self, key: &str, slot: &mut f64| {
            if let Some(x) = fields.value(key).and_then(|n| reader.number(n)) {
                *slot = x;
            }
        };
        number(self, "begin", &mut simulation.begin);
        number(self, "end", &mut simulation.end);
        if let Some(step) = fields.value("step").and_then(|n| self.positive(n, "the step")) {
            simulation.step = step;
        }
        if let Some(step) = fields.value("output_step").and_then(|n| self.positive(n, "the output step")) {
            simulation.output_step = Some(step);
        }
        if let Some(entry) = fields.get("tolerance")
            && let Some(fields) = self.fields(&entry.value, entry.key_span, &keys::TOLERANCE)
        {
            if let Some(x) = fields.value("relative").and_then(|n| self.positive(n, "the relative tolerance"))
            {
                simulation.relative_tolerance = x;
            }
            if let Some(x) = fields.value("absolute").and_then(|n| self.positive(n, "the absolute tolerance"))
            {
                simulation.absolute_tolerance = x;
            }
        }
        if let Some(step) = fields.value("max_step").and_then(|n| self.positive(n, "the largest step")) {
            simulation.max_step = Some(step);
        }
        if let Some(n) = fields.value("max_steps").and_then(|n| self.whole(n, "steps", MAX_STEPS)) {
            simulation.max_steps = n;
        }
        if let Some(n) =
            fields.value("max_rejected").and_then(|n| self.whole(n, "rejected steps", MAX_REJECTED))
        {
            simulation.max_rejected = n as u32;
        }
        if let Some(counts) = fields.value("objectives_in_error").and_then(|n| self.boolean(n)) {
            simulation.objectives_in_error = counts;
        }
        if simulation.end <= simulation.begin {
            let at = fields.get("end").or(fields.get("begin")).map_or(entry.key_span, |e| e.value.span);
            let (begin, end) = (simulation.begin, simulation.end);
            self.diagnostics
                .error(at, format!("the simulation ends at {end}, which is not after its begin {begin}"));
        }
        settings
    }

    /// Formulation, integrator and their settings.
    fn read_methods(&mut self, fields: &Fields<'t>, settings: &mut Settings) {
        if let Some(node) = fields.value("formulation") {
            let words = Formulation::ALL.map(|formulation| (formulation.keyword(), formulation));
            settings.formulation = self.word(node, "a formulation", &words).or(settings.formulation);
        }
        if let Some(node) = fields.value("integrator") {
            let words = Integrator::ALL.map(|integrator| (integrator.keyword(), integrator));
            // A case that names the same integrator keeps its settings.
            if let Some(new) = self.word(node, "an integrator", &words)
                && settings.integrator.is_none_or(|old| old.keyword() != new.keyword())
            {
                settings.integrator = Some(new);
            }
        }
        settings.choose();
        self.read_coefficients(fields, settings);
        settings.choose();
        let (formulation, integrator) = (settings.simulation.formulation, settings.simulation.integrator);
        if settings.constrained && formulation == Formulation::Ali3p && integrator.is_runge_kutta() {
            let at =
                fields.get("integrator").or(fields.get("formulation")).map_or(fields.at, |e| e.value.span);
            let what = match integrator.is_explicit() {
                false => "integrates accelerations, and `ali3p` needs an integrator of positions",
                true => "is explicit, and `ali3p` needs an implicit integrator",
            };
            let message = format!("`{}` {what}", integrator.keyword());
            self.diagnostics.error(at, message).help(
                "choose `trapezoidal`, `newmark` or `generalized_alpha`, or the formulation `index1` or `penalty`",
            );
        }
        if let Some(entry) = fields.get("independent") {
            if formulation != Formulation::MatrixR {
                let message =
                    format!("`independent` belongs to `matrix_r`, not to `{}`", formulation.keyword());
                self.diagnostics.error(entry.key_span, message).help("write `formulation: matrix_r`");
            }
            let names = self.names(&entry.value, "names of coordinates");
            settings.simulation.independent =
                names.into_iter().map(|(name, at, _)| (name.to_string(), at)).collect();
        }
        let simulation = &mut settings.simulation;
        if let Some(penalty) = fields.value("penalty").and_then(|n| self.positive(n, "the penalty")) {
            simulation.penalty = Some(penalty);
        }
        if let Some(node) = fields.value("projection") {
            let words = Projection::ALL.map(|projection| (projection.keyword(), projection));
            if let Some(projection) = self.word(node, "a matrix of the projections", &words) {
                simulation.projection = projection;
            }
        }
        if let Some(node) = fields.value("gradient") {
            let words = GradientMethod::ALL.map(|method| (method.keyword(), method));
            if let Some(method) = self.word(node, "a method for gradients", &words) {
                simulation.gradient = method;
            }
        }
        if let Some(entry) = fields.get("newton")
            && let Some(fields) = self.fields(&entry.value, entry.key_span, &keys::NEWTON)
        {
            let tolerance = fields.value("tolerance").and_then(|n| self.positive(n, "the Newton tolerance"));
            if let Some(tolerance) = tolerance {
                simulation.newton_tolerance = tolerance;
            }
            let iterations = fields.value("iterations");
            if let Some(n) =
                iterations.and_then(|n| self.whole(n, "iterations", u64::from(NEWTON_ITERATIONS)))
            {
                simulation.newton_iterations = n as u32;
            }
            if let Some(node) = fields.value("tangent") {
                let words = Tangent::ALL.map(|tangent| (tangent.keyword(), tangent));
                if let Some(tangent) = self.word(node, "a tangent", &words) {
                    simulation.newton_tangent = tangent;
                    if tangent == Tangent::Carried && simulation.is_in_joint_form(settings.constrained) {
                        let steps = match formulation {
                            Formulation::MatrixR => format!("of `{}`", formulation.keyword()),
                            _ => format!("by `{}`", integrator.keyword()),
                        };
                        let message = format!("steps {steps} carry no tangent: this has no effect");
                        self.diagnostics.warning(node.span, message).help(
                            "implicit steps of `ali3p`, `index1` and `penalty` do, by `trapezoidal`, `newmark` or `generalized_alpha`",
                        );
                    }
                }
            }
        }
    }

    /// A count from 1 to `most`.
    fn whole(&mut self, node: &Node, what: &str, most: u64) -> Option<u64> {
        let n = self.number(node)?;
        if n >= 1.0 && n <= most as f64 && n.fract() == 0.0 {
            return Some(n as u64);
        }
        let message = format!("the number of {what} must be a whole number from 1 to {most}, not {n}");
        self.diagnostics.error(node.span, message);
        None
    }

    /// Settings of Newmark's family and of generalized-α.
    fn read_coefficients(&mut self, fields: &Fields<'t>, settings: &mut Settings) {
        let mut integrator = settings.simulation.integrator;
        for (key, owner, low, high) in [
            ("beta", "newmark", 0.0, 1.0),
            ("gamma", "newmark", 0.5, 1.0),
            ("spectral_radius", "generalized_alpha", 0.0, 1.0),
        ] {
            let Some(entry) = fields.get(key) else { continue };
            let slot = match (&mut integrator, key) {
                (Integrator::Newmark { beta, .. }, "beta") => beta,
                (Integrator::Newmark { gamma, .. }, "gamma") => gamma,
                (Integrator::GeneralizedAlpha { spectral_radius }, "spectral_radius") => spectral_radius,
                (other, _) => {
                    let message = format!("`{key}` belongs to `{owner}`, not to `{}`", other.keyword());
                    self.diagnostics
                        .error(entry.key_span, message)
                        .help(format!("write `integrator: {owner}`"));
                    continue;
                }
            };
            let Some(x) = self.number(&entry.value) else { continue };
            if x < low || x > high || (key == "beta" && x == 0.0) {
                let from = if key == "beta" {
                    "above 0 and at most 1".into()
                } else {
                    format!("from {low} to {high}")
                };
                self.diagnostics.error(entry.value.span, format!("`{key}` must be {from}, not {x}"));
                continue;
            }
            *slot = x;
        }
        if let Integrator::Newmark { beta, gamma } = integrator
            && beta < 0.5 * gamma
            && let Some(at) = fields.get("beta").or(fields.get("gamma"))
        {
            self.diagnostics
                .warning(
                    at.value.span,
                    format!("with beta = {beta} and gamma = {gamma} large steps are unstable"),
                )
                .help("Newmark's method is stable for every step if 2 beta >= gamma >= 1/2");
        }
        if settings.integrator.is_some() {
            settings.integrator = Some(integrator);
        }
    }

    /// Reads all cases.
    pub(super) fn read_cases(
        &mut self,
        file: &Fields<'t>,
        root: &Unit<'t>,
        around: &Around<'_>,
        settings: &Settings,
        knots: &[ArrayRef],
    ) -> Vec<Case> {
        let Around { parameters, inputs, joints, .. } = *around;
        let simulation = &settings.simulation;
        let mut cases = Vec::new();
        let Some(node) = file.value("cases") else {
            return cases;
        };
        let clean = !self.diagnostics.has_errors();
        let order = evaluation_order(parameters).unwrap_or_default();
        let mut names = Unique::default();
        for (count, entry) in self.entries(node, "cases").iter().enumerate() {
            if count >= limits::CASES {
                self.diagnostics.error(entry.key_span, format!("more than {} cases", limits::CASES));
                break;
            }
            let diagnostics = &mut self.diagnostics;
            if !check_name(&entry.key, entry.key_span, "a case", diagnostics)
                || !names.add(&entry.key, entry.key_span, "case", diagnostics)
            {
                continue;
            }
            let mut case = Case {
                name: entry.key.to_string(),
                description: String::new(),
                parameters: Vec::new(),
                start: Vec::new(),
                variables: Vec::new(),
                inputs: Vec::new(),
                sensitivity: None,
                simulation: simulation.clone(),
                knots: Vec::new(),
                span: entry.key_span,
            };
            if !entry.value.is_null() {
                let Some(fields) = self.fields(&entry.value, entry.key_span, &keys::CASE) else {
                    continue;
                };
                case.description =
                    fields.value("description").and_then(|n| self.string(n)).unwrap_or_default();
                case.parameters = self.case_parameters(&fields, &root.scope, parameters);
                (case.start, case.variables) =
                    self.case_start(&fields, &root.scope, joints, around.variables);
                case.inputs = self.case_inputs(&fields, &root.scope, inputs);
                if let Some(node) = fields.value("modes") {
                    let modes = self.case_modes(node, &root.scope);
                    case.inputs.extend(modes);
                }
                let choices = Choices { scope: &root.scope, parameters, inputs };
                case.sensitivity =
                    fields.value("sensitivity").map(|n| self.read_sensitivity(n, choices, Some(cases.len())));
                case.simulation = self.read_simulation(fields.get("simulation"), settings.clone()).simulation;
                self.check_holds(&case, &fields, inputs);
            }
            let values = match case.parameters.is_empty() {
                true => self.values.clone(),
                false => Values::in_order(parameters, &order, &case.parameters),
            };
            case.knots = self.check_knots(&values);
            if clean {
                self.check_case(&case, parameters, values, knots);
            }
            cases.push(case);
        }
        cases
    }

    fn case_parameters(
        &mut self,
        fields: &Fields<'t>,
        scope: &Scope,
        parameters: &[Parameter],
    ) -> Vec<(ParameterId, ParameterValue)> {
        let mut out = Vec::new();
        let Some(node) = fields.value("parameters") else {
            return out;
        };
        for entry in self.entries(node, "parameters") {
            let Some(Symbol::Parameter(id)) = scope.symbol(&entry.key) else {
                self.unknown(entry, "parameter", parameters.iter().map(|p| p.name.as_str()));
                continue;
            };
            let Some(parameter) = parameters.get(id.index()) else {
                continue;
            };
            let value = match &parameter.value {
                ParameterValue::Derived(_) => {
                    self.diagnostics
                        .error(
                            entry.key_span,
                            format!("parameter `{}` follows others and cannot be set", entry.key),
                        )
                        .help("set the parameters it follows");
                    continue;
                }
                ParameterValue::Number(_) => self.number(&entry.value).map(Value::Number),
                ParameterValue::Array(old) => {
                    let Some(new) = self.numbers(&entry.value) else {
                        continue;
                    };
                    if new.len() != old.len() {
                        let (n, m) = (old.len(), new.len());
                        let (s, are) = (if n == 1 { "" } else { "s" }, if m == 1 { "is" } else { "are" });
                        let message = format!("array `{}` has {n} value{s}, but {m} {are} given", entry.key);
                        self.diagnostics.error(entry.value.span, message);
                        continue;
                    }
                    Some(Value::Array(new))
                }
            };
            let Some(value) = value else { continue };
            self.check_bounds(entry.value.span, parameter, &value);
            out.push((
                *id,
                match value {
                    Value::Number(x) => ParameterValue::Number(x),
                    Value::Array(x) => ParameterValue::Array(x),
                },
            ));
        }
        out
    }

    #[allow(clippy::type_complexity, reason = "the two fields of a case the one caller fills")]
    fn case_start(
        &mut self,
        fields: &Fields<'t>,
        scope: &Scope,
        joints: &[Joint],
        variables: &[Variable],
    ) -> (Vec<(JointId, Start)>, Vec<(VariableId, VariableStart)>) {
        let (mut out, mut of_variables) = (Vec::new(), Vec::new());
        let Some(node) = fields.value("start") else {
            return (out, of_variables);
        };
        for entry in self.entries(node, "joints") {
            let id = match scope.thing(&entry.key) {
                Some(Thing::Joint(id)) => id,
                Some(Thing::Coordinate(CoordinateRef::Variable(id))) => {
                    if let Some(variable) = variables.get(id.index()) {
                        let mut start = VariableStart::of(variable);
                        self.variable_start(&entry.value, scope, &mut start);
                        of_variables.push((id, start));
                    }
                    continue;
                }
                _ => {
                    let names = joints.iter().map(|j| &j.name).chain(variables.iter().map(|v| &v.name));
                    self.unknown(entry, "joint", names.map(String::as_str));
                    continue;
                }
            };
            // Absent if the joint itself could not be read, which is reported there.
            let Some(symbol) = self.symbols.joints.get(id.index()) else {
                continue;
            };
            let Some(joint) = joints.iter().find(|j| j.name == symbol.name) else {
                continue;
            };
            let mut start = joint.start.clone();
            self.start_over(&entry.value, id, joint.kind, scope, &mut start);
            out.push((id, start));
        }
        (out, of_variables)
    }

    fn case_inputs(
        &mut self,
        fields: &Fields<'t>,
        scope: &Scope,
        inputs: &[Input],
    ) -> Vec<(InputId, Scalar)> {
        let mut out = Vec::new();
        let Some(node) = fields.value("inputs") else {
            return out;
        };
        for entry in self.entries(node, "inputs") {
            let Some(Symbol::Input(id)) = scope.symbol(&entry.key) else {
                self.unknown(entry, "input", inputs.iter().map(|i| i.name.as_str()));
                continue;
            };
            if let Some(e) = self.scalar(&entry.value, scope, Context::Signal) {
                out.push((*id, e));
            }
        }
        out
    }

    /// Step control cannot see a signal that is held over its steps.
    fn check_holds(&mut self, case: &Case, fields: &Fields<'t>, inputs: &[Input]) {
        if !case.simulation.integrator.controls_steps() {
            return;
        }
        let entries = match fields.value("inputs").map(|node| &node.kind) {
            Some(Kind::Mapping(entries)) => entries.as_slice(),
            _ => &[],
        };
        for input in case.held_signals(inputs) {
            let entry = entries.iter().find(|entry| *entry.key == *input.name);
            let at = entry.map_or(case.span, |entry| entry.value.span);
            self.diagnostics
                .error(at, input.unseen_by_step_control(case.simulation.integrator))
                .help("write `hold: signal` for the input, or choose an integrator of fixed steps");
        }
    }

    fn unknown<'n>(&mut self, entry: &Entry, what: &str, names: impl Iterator<Item = &'n str>) {
        let help = match self.nearest(&entry.key, names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the model has no {what} of that name"),
        };
        self.diagnostics
            .error(entry.key_span, format!("unknown {what} `{}`", shorten(&entry.key)))
            .help(help);
    }

    /// Checks that everything the case gives is finite under its own parameters, and that knots of the model increase.
    fn check_case(&mut self, case: &Case, parameters: &[Parameter], values: Values, knots: &[ArrayRef]) {
        for (i, parameter) in parameters.iter().enumerate() {
            if let Some(Value::Number(x)) = values.parameter(ParameterId(i as u32))
                && !x.is_finite()
            {
                let message = format!("parameter `{}` is {x} in this case", parameter.name);
                self.diagnostics.error(case.span, message);
            }
        }
        let moved = !case.parameters.is_empty();
        for falling in knots.iter().filter(|_| moved).filter_map(|array| FallingKnot::find(array, &values)) {
            let message = format!("{} in this case", falling.describe(parameters));
            self.diagnostics.error(case.span, message);
        }
        let values = values.at_time(case.simulation.begin);
        for (id, e) in &case.inputs {
            if let Ok(x) = values.scalar(e)
                && !x.is_finite()
            {
                let input = self.symbols.inputs.get(id.index()).cloned().unwrap_or_default();
                let message = format!("input `{input}` is {x} at the begin of this case");
                self.diagnostics.error(case.span, message);
            }
        }
    }
}
