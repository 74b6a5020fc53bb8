//! What a model is differentiated by, and whether that changes anything.
//!
//! A derivative by an input is one by a constant added to it, whatever signal it follows.

use std::collections::HashSet;

use super::dependencies::evaluation_order;
use super::walk::Part;
use super::{
    ArrayRef, Case, ForceKind, InputId, JointId, JointPoint, JointSide, Model, ParameterId, ParameterValue,
    Scalar, SpringLaw, Start, VariableId,
};

/// One thing a model is differentiated by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SensitivityRef {
    /// An independent parameter.
    Parameter {
        /// Which.
        id: ParameterId,
        /// Which of its values: 0 for a scalar.
        element: usize,
    },
    /// An input: a constant added to it.
    Input(InputId),
}

impl Model {
    /// What the model is differentiated by under a case: the case's own list, or else the model's.
    pub fn sensitivity_under<'m>(&'m self, case: Option<&'m Case>) -> &'m [SensitivityRef] {
        case.and_then(|case| case.sensitivity.as_deref()).unwrap_or(&self.sensitivity)
    }

    /// The names of what a list holds, elements of arrays as `name[i]`.
    pub fn sensitivity_names(&self, list: &[SensitivityRef]) -> Vec<String> {
        list.iter().map(|&one| self.sensitivity_name(one)).collect()
    }

    /// The name of one thing the model is differentiated by: `k`, `knots[3]`, `steer`.
    pub fn sensitivity_name(&self, one: SensitivityRef) -> String {
        match one {
            SensitivityRef::Parameter { id, element } => match self.parameters.get(id.index()) {
                Some(parameter) if matches!(parameter.value, ParameterValue::Array(_)) => {
                    format!("{}[{element}]", parameter.name)
                }
                Some(parameter) => parameter.name.clone(),
                None => String::new(),
            },
            SensitivityRef::Input(id) => {
                self.inputs.get(id.index()).map(|input| input.name.clone()).unwrap_or_default()
            }
        }
    }

    /// The place of a parameter's value among all values of independent parameters, arrays flattened; `None` for
    /// inputs, and for parameters that follow others.
    pub fn sensitivity_parameter(&self, one: SensitivityRef) -> Option<usize> {
        let SensitivityRef::Parameter { id, element } = one else { return None };
        let count = |value: &ParameterValue| match value {
            ParameterValue::Number(_) => 1,
            ParameterValue::Array(values) => values.len(),
            ParameterValue::Derived(_) => 0,
        };
        let before: usize = self.parameters.get(..id.index())?.iter().map(|p| count(&p.value)).sum();
        (element < count(&self.parameters.get(id.index())?.value)).then_some(before + element)
    }
}

/// Which parameters and inputs change the motion or an objective. Outputs do not count.
#[derive(Clone, Debug)]
pub struct Influence {
    /// By parameter and element.
    parameters: Vec<Vec<bool>>,
    inputs: Vec<bool>,
}

/// A model's [`Influence`]s: what they have in common is found once.
pub struct Influences<'m> {
    model: &'m Model,
    /// Without start values and signals.
    mechanism: Influence,
    /// Parameters, each after all it follows.
    order: Vec<ParameterId>,
}

impl<'m> Influences<'m> {
    /// Of a model.
    pub fn new(model: &'m Model) -> Influences<'m> {
        let elements = |value: &ParameterValue| match value {
            ParameterValue::Array(values) => values.len(),
            _ => 1,
        };
        let mut mechanism = Influence {
            parameters: model.parameters.iter().map(|p| vec![false; elements(&p.value)]).collect(),
            inputs: vec![false; model.inputs.len()],
        };
        mechanism.mark_mechanism(model);
        Influences { model, mechanism, order: evaluation_order(&model.parameters).unwrap_or_default() }
    }

    /// Under the model's own settings or any of its cases.
    pub fn of_model(&self) -> Influence {
        self.with(&self.model.cases, |_| true, |_| true)
    }

    /// Under one case, whose start values stand in place of the model's.
    pub fn of_case(&self, case: &Case) -> Influence {
        let joints: HashSet<JointId> = case.start.iter().map(|(id, _)| *id).collect();
        let variables: HashSet<VariableId> = case.variables.iter().map(|(id, _)| *id).collect();
        self.with(std::slice::from_ref(case), |id| !joints.contains(&id), |id| !variables.contains(&id))
    }

    fn with(
        &self,
        cases: &[Case],
        own_joint: impl Fn(JointId) -> bool,
        own_variable: impl Fn(VariableId) -> bool,
    ) -> Influence {
        let model = self.model;
        let mut found = self.mechanism.clone();
        let mut mark = |part: Part<'_>| found.mark(part);
        for (i, joint) in model.joints.iter().enumerate() {
            if own_joint(JointId(i as u32)) {
                for_each_part_of_start(&joint.start, &mut mark);
            }
        }
        for (i, variable) in model.variables.iter().enumerate() {
            if own_variable(VariableId(i as u32)) {
                variable.value.for_each_part(&mut mark);
                variable.rate.for_each_part(&mut mark);
            }
        }
        for case in cases {
            case.start.iter().for_each(|(_, start)| for_each_part_of_start(start, &mut mark));
            for (_, start) in &case.variables {
                start.value.for_each_part(&mut mark);
                start.rate.for_each_part(&mut mark);
            }
        }
        // A signal counts where its input does.
        for (id, signal) in cases.iter().flat_map(|case| &case.inputs) {
            if found.inputs.get(id.index()) == Some(&true) {
                signal.for_each_part(&mut |part| found.mark(part));
            }
        }
        // What a parameter follows counts where it does: users before what they use.
        for id in self.order.iter().rev() {
            if let ParameterValue::Derived(value) = &model.parameters[id.index()].value
                && found.parameters[id.index()].contains(&true)
            {
                value.for_each_part(&mut |part| found.mark(part));
            }
        }
        found
    }
}

impl Influence {
    /// Bodies, joints, forces, constraints and objectives; no start values.
    fn mark_mechanism(&mut self, model: &Model) {
        let mark = &mut |part: Part<'_>| self.mark(part);
        model.gravity.for_each_part(mark);
        for body in &model.bodies {
            let inertia = &body.inertia;
            body.mass.for_each_part(mark);
            body.com.for_each_part(mark);
            for entry in [&inertia.xx, &inertia.yy, &inertia.zz, &inertia.xy, &inertia.xz, &inertia.yz] {
                entry.for_each_part(mark);
            }
            let frame = inertia.frame.iter().flat_map(|(axis, reference)| [axis, reference]);
            let named = body.points.iter().chain(&body.vectors).map(|(_, v)| v);
            frame.chain(named).for_each(|v| v.for_each_part(mark));
        }
        for JointSide { point, axis, reference, .. } in
            model.joints.iter().flat_map(|joint| [&joint.parent, &joint.child])
        {
            let at = match point {
                JointPoint::At(at) => Some(at),
                JointPoint::Point(_) => None,
            };
            at.into_iter().chain(axis).chain(reference).for_each(|v| v.for_each_part(mark));
        }
        for force in &model.forces {
            match &force.kind {
                ForceKind::Spring { law, .. } | ForceKind::TorsionalSpring { law, .. } => match law {
                    SpringLaw::Linear { stiffness, damping, natural } => {
                        [stiffness, damping, natural].into_iter().for_each(|e| e.for_each_part(mark));
                    }
                    SpringLaw::Expression(e) => e.for_each_part(mark),
                },
                ForceKind::Force { value, .. } | ForceKind::Torque { value, .. } => value.for_each_part(mark),
                ForceKind::JointForce { value, .. } => value.for_each_part(mark),
            }
        }
        for row in model.constraints.iter().flat_map(|constraint| &constraint.rows) {
            row.value.for_each_part(mark);
        }
        for objective in &model.objectives {
            objective.for_each_part(mark);
        }
        for value in model.events.iter().flat_map(|event| event.expressions()) {
            value.for_each_part(mark);
        }
    }

    fn mark(&mut self, part: Part<'_>) {
        let Part::Scalar(part) = part else { return };
        match part {
            Scalar::Parameter(id) => self.mark_parameter(*id, None),
            Scalar::Element(id, index) => match **index {
                Scalar::Number(i) => self.mark_parameter(*id, Some(i as usize)),
                _ => self.mark_parameter(*id, None),
            },
            Scalar::Table { knots, values, .. } | Scalar::Spline { knots, values, .. } => {
                for array in [knots, values] {
                    if let ArrayRef::Parameter(id) = array {
                        self.mark_parameter(*id, None);
                    }
                }
            }
            Scalar::Input(id) => {
                if let Some(input) = self.inputs.get_mut(id.index()) {
                    *input = true;
                }
            }
            _ => {}
        }
    }

    /// One element, or all.
    fn mark_parameter(&mut self, id: ParameterId, element: Option<usize>) {
        let Some(elements) = self.parameters.get_mut(id.index()) else { return };
        match element {
            Some(i) => elements.iter_mut().skip(i).take(1).for_each(|e| *e = true),
            None => elements.fill(true),
        }
    }

    /// Whether a change of it changes anything.
    pub fn has(&self, one: SensitivityRef) -> bool {
        match one {
            SensitivityRef::Parameter { id, element } => {
                self.parameters.get(id.index()).and_then(|p| p.get(element)).copied().unwrap_or(false)
            }
            SensitivityRef::Input(id) => self.inputs.get(id.index()).copied().unwrap_or(false),
        }
    }
}

fn for_each_part_of_start<'e>(start: &'e Start, f: &mut dyn FnMut(Part<'e>)) {
    start.values.iter().chain(&start.rates).for_each(|e| e.for_each_part(f));
}
