//! The parameters' expressions: a symbol for each independent one (or its value, when parameters are
//! frozen), a formula for each derived one.

use super::{Lowering, ParametersOnly};
use crate::graph::{ArrayId, ExprId, Graph};
use crate::model::{Model, ParameterId, ParameterValue};
use crate::symbols::Group;

/// A parameter as an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterExpr {
    /// One number.
    Scalar(ExprId),
    /// Many.
    Array(ArrayId, ExprId),
}

/// The expressions of all parameters of a model.
#[derive(Clone, Debug, Default)]
pub struct Parameters {
    expressions: Vec<Option<ParameterExpr>>,
    zero: Option<ExprId>,
}

impl Parameters {
    /// Symbols for independent parameters, in the order of the model, arrays flattened; constants instead
    /// when `frozen`. Derived ones follow, each after what it refers to.
    pub fn lower(graph: &mut Graph, model: &Model, frozen: bool) -> Parameters {
        let mut parameters =
            Parameters { expressions: vec![None; model.parameters.len()], zero: Some(graph.zero()) };
        let mut next = 0;
        let mut symbol = |graph: &mut Graph, value: f64| {
            next += 1;
            if frozen { graph.constant(value) } else { graph.symbol(Group::Parameters, next - 1) }
        };
        let mut derived = Vec::new();
        for (i, parameter) in model.parameters.iter().enumerate() {
            parameters.expressions[i] = match &parameter.value {
                ParameterValue::Number(value) => Some(ParameterExpr::Scalar(symbol(graph, *value))),
                ParameterValue::Array(values) => {
                    let elements: Vec<ExprId> = values.iter().map(|&v| symbol(graph, v)).collect();
                    let first = elements.first().copied().unwrap_or_else(|| graph.zero());
                    let elements = if elements.is_empty() { vec![first] } else { elements };
                    Some(ParameterExpr::Array(graph.new_array(elements), first))
                }
                ParameterValue::Derived(definition) => {
                    derived.push((i, definition));
                    None
                }
            };
        }
        // The reader has refused cycles, so every round settles at least one.
        while !derived.is_empty() {
            let before = derived.len();
            derived.retain(|&(i, definition)| {
                let mut ready = true;
                definition.for_each_parameter(&mut |p| ready &= parameters.expressions[p.index()].is_some());
                if ready {
                    let value = Lowering::new(graph, &parameters, &mut ParametersOnly).scalar(definition);
                    parameters.expressions[i] = Some(ParameterExpr::Scalar(value));
                }
                !ready
            });
            if derived.len() == before {
                break;
            }
        }
        parameters
    }

    /// The expression of a scalar parameter (of an array, its first element).
    pub fn scalar(&self, id: ParameterId) -> ExprId {
        match self.expressions.get(id.index()).copied().flatten() {
            Some(ParameterExpr::Scalar(value) | ParameterExpr::Array(_, value)) => value,
            None => self.zero.unwrap_or(ExprId(0)),
        }
    }

    /// The array behind an array parameter.
    pub fn array(&self, id: ParameterId) -> Option<ArrayId> {
        match self.expressions.get(id.index()).copied().flatten() {
            Some(ParameterExpr::Array(array, _)) => Some(array),
            _ => None,
        }
    }
}
