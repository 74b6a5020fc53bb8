//! An input replaced by an expression, wherever the model names it.
//!
//! Input: a model, one of its inputs, an expression of time and parameters. Holds afterwards: no force, constraint, event, output or objective names
//! the input. Unlike a signal of a case, such an expression is part of the equations, so its parameters have derivatives.

use super::{InputId, Model, OutputValue, Scalar};

impl Model {
    /// Puts an expression in place of an input.
    pub fn replace_input(&mut self, input: InputId, by: &Scalar) {
        let mut replace = |scalar: &mut Scalar| {
            if matches!(scalar, Scalar::Input(id) if *id == input) {
                *scalar = by.clone();
            }
        };
        let f: &mut dyn FnMut(&mut Scalar) = &mut replace;
        self.for_each_law_scalar_mut(f);
        for event in &mut self.events {
            event.when.for_each_scalar_mut(f);
            event.armed.iter_mut().for_each(|armed| armed.for_each_scalar_mut(f));
            for condition in &mut event.conditions {
                condition.expressions_mut().into_iter().for_each(|part| part.for_each_scalar_mut(f));
            }
            event.settings.iter_mut().for_each(|(_, value)| value.for_each_scalar_mut(f));
            event.placements.iter_mut().for_each(|(_, value)| value.for_each_scalar_mut(f));
        }
        for output in &mut self.outputs {
            match &mut output.value {
                OutputValue::Scalar(value) => value.for_each_scalar_mut(f),
                OutputValue::Vector(value) => value.for_each_scalar_mut(f),
            }
        }
    }
}
