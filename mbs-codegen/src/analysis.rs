//! What is found of a model once: its tree and its constraint rows.
//!
//! Input: a [`Model`] that the reader accepts. Output: [`Analysed`], from which checks, programs and front ends start.

use crate::constrained::Rows;
use crate::model::{Case, Model, ParameterValue};
use crate::topology::{self, Tree};
use std::borrow::Cow;
use std::ops::Deref;

/// A model with its tree and its rows. Objectives and what the model is differentiated by may change afterwards; joints, constraints,
/// parameters and start values may not.
#[derive(Clone, Debug)]
pub struct Analysed {
    /// The model.
    pub model: Model,
    /// Its tree.
    pub tree: Tree,
    /// Its constraint rows.
    pub rows: Rows,
}

impl Analysed {
    /// Spans the tree of a model and finds its rows.
    pub fn of(model: Model) -> Analysed {
        let tree = topology::span(&model);
        let rows = Rows::of(&model, &tree);
        Analysed { model, tree, rows }
    }

    /// Whether the model moves under equations beside those of motion. Rows that vanish identically are none.
    pub fn is_constrained(&self) -> bool {
        !self.rows.kept.is_empty() || !self.model.variables.is_empty()
    }

    /// The model with a case's parameters and start values in place of its own, on which both tree and rows depend.
    pub fn under(&self, case: Option<&Case>) -> Cow<'_, Analysed> {
        let Some(case) = case else { return Cow::Borrowed(self) };
        let mut model = self.model.clone();
        model.sensitivity = model.sensitivity_under(Some(case)).to_vec();
        for (id, value) in &case.parameters {
            model.parameters[id.index()].value = value.clone();
        }
        for (id, start) in &case.start {
            model.joints[id.index()].start = start.clone();
        }
        for (id, start) in &case.variables {
            let variable = &mut model.variables[id.index()];
            (variable.value, variable.rate, variable.hold) =
                (start.value.clone(), start.rate.clone(), start.hold);
        }
        Cow::Owned(match case.parameters.is_empty() && case.start.is_empty() {
            true => Analysed { model, tree: self.tree.clone(), rows: self.rows.clone() },
            false => Analysed::of(model),
        })
    }

    /// The model with other values of its independent parameters as defaults, arrays flattened, from which scales are and samples are taken. The tree
    /// stays; rows are found again, with their scales.
    pub fn with_defaults(&self, values: &[f64]) -> Analysed {
        let mut model = self.model.clone();
        let mut values = values.iter();
        for parameter in &mut model.parameters {
            let own: &mut [f64] = match &mut parameter.value {
                ParameterValue::Number(x) => std::slice::from_mut(x),
                ParameterValue::Array(x) => x,
                ParameterValue::Derived(_) => &mut [],
            };
            own.iter_mut().zip(&mut values).for_each(|(own, value)| *own = *value);
        }
        let rows = Rows::of(&model, &self.tree);
        Analysed { model, tree: self.tree.clone(), rows }
    }
}

impl Deref for Analysed {
    type Target = Model;

    fn deref(&self) -> &Model {
        &self.model
    }
}
