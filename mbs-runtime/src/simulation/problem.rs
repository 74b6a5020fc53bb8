//! Objectives of a run as functions of plain slices, as optimisers take them.
//!
//! Input: a [`Setup`] and the bounds that the module has for its parameters. Output: for values of what the model is differentiated by, all objectives
//! and their gradients; names, bounds and start values of these unknowns. Inputs of the `sensitivity` list are no unknowns. Nothing is allocated.

use super::gradient::{Differentiable, DifferentiableMethod, gradient_with};
use super::{Error, Setup};
use crate::error::StepError;
use crate::named::{Fields, Memory};
use crate::system::Quantity;
use core::fmt;

/// Objectives as functions of the parameters by which a model is differentiated.
pub struct Problem<M: Differentiable>
where
    M::Method: DifferentiableMethod<M>,
{
    setup: Setup<M>,
    bounds: &'static [(M::S, M::S)],
}

/// A parameter that varies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unknown<S> {
    /// Its name, `name` or `name[i]`.
    pub name: &'static str,
    /// Its value in the setup.
    pub value: S,
    /// Smallest value, or −∞.
    pub lower: S,
    /// Largest value, or ∞.
    pub upper: S,
    /// Its place among the parameters.
    pub parameter: usize,
    /// Its place among what the model is differentiated by.
    pub derivative: usize,
}

impl<M: Differentiable> Problem<M>
where
    M::Method: DifferentiableMethod<M>,
{
    /// Over a setup. `bounds`: those of the module, `&Parameters::BOUNDS`.
    pub fn new(setup: Setup<M>, bounds: &'static [(M::S, M::S)]) -> Self {
        Self { setup, bounds }
    }

    /// What varies, in the order of x.
    pub fn unknowns(&self) -> impl Iterator<Item = Unknown<M::S>> + use<'_, M> {
        let values = self.setup.parameters.to_values();
        M::NAMES.sensitivities.iter().enumerate().filter_map(move |(derivative, name)| {
            let parameter = M::NAMES.index(Quantity::Parameter, name)?;
            let (lower, upper) = *self.bounds.get(parameter)?;
            let value = *values.values().get(parameter)?;
            Some(Unknown { name, value, lower, upper, parameter, derivative })
        })
    }

    /// How many vary.
    pub fn len(&self) -> usize {
        self.unknowns().count()
    }

    /// Whether none varies.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Names of the objectives.
    pub fn objectives(&self) -> &'static [&'static str] {
        M::NAMES.objectives
    }

    /// The place of an objective.
    pub fn objective(&self, name: &str) -> Option<usize> {
        M::NAMES.index(Quantity::Objective, name)
    }

    /// The setup at x.
    pub fn setup_at(&self, x: &[M::S]) -> Result<Setup<M>, Error<M>> {
        let mut values = self.setup.parameters.to_values();
        check("x", self.len(), x.len())?;
        for (unknown, &x) in self.unknowns().zip(x) {
            if let Some(value) = values.values_mut().get_mut(unknown.parameter) {
                *value = x;
            }
        }
        Ok(Setup { parameters: M::Parameters::from_values(&values), ..self.setup })
    }

    /// All objectives at x, and the derivative of objective i by unknown k of n at `i * n + k`.
    pub fn evaluate(
        &self,
        x: &[M::S],
        memory: &mut M::Memory,
        values: &mut [M::S],
        jacobian: &mut [M::S],
    ) -> Result<(), Error<M>> {
        let (n, objectives) = (self.len(), M::NAMES.objectives.len());
        check("values", objectives, values.len())?;
        check("jacobian", objectives * n, jacobian.len())?;
        let found = gradient_with(&self.setup_at(x)?, memory)?.to_values();
        for (i, value) in values.iter_mut().enumerate() {
            *value = self.read(found.values(), i, n, jacobian);
        }
        Ok(())
    }

    /// One objective at x, and its gradient.
    pub fn value_and_gradient(
        &self,
        objective: usize,
        x: &[M::S],
        memory: &mut M::Memory,
        gradient: &mut [M::S],
    ) -> Result<M::S, Error<M>> {
        let n = self.len();
        check("gradient", n, gradient.len())?;
        if objective >= M::NAMES.objectives.len() {
            let (expected, found) = (M::NAMES.objectives.len(), objective);
            return Err(StepError::Length { what: "objective", expected, found }.into());
        }
        let found = gradient_with(&self.setup_at(x)?, memory)?.to_values();
        let row = 1 + M::NAMES.sensitivities.len();
        let own = found.values().get(objective * row..).unwrap_or_default();
        Ok(self.read(own, 0, n, gradient))
    }

    /// The value of objective i of all, and its derivatives by the unknowns into row i.
    fn read(&self, found: &[M::S], i: usize, n: usize, rows: &mut [M::S]) -> M::S {
        // A value, then a derivative for each entry of the list.
        let at = i * (1 + M::NAMES.sensitivities.len());
        for (k, unknown) in self.unknowns().enumerate() {
            if let (Some(to), Some(&from)) = (rows.get_mut(i * n + k), found.get(at + 1 + unknown.derivative))
            {
                *to = from;
            }
        }
        found.get(at).copied().unwrap_or_default()
    }
}

fn check(what: &'static str, expected: usize, found: usize) -> Result<(), StepError> {
    if expected == found { Ok(()) } else { Err(StepError::Length { what, expected, found }) }
}

impl<M: Differentiable> Clone for Problem<M>
where
    M::Method: DifferentiableMethod<M>,
{
    fn clone(&self) -> Self {
        *self
    }
}

impl<M: Differentiable> Copy for Problem<M> where M::Method: DifferentiableMethod<M> {}

impl<M: Differentiable> fmt::Debug for Problem<M>
where
    M::Method: DifferentiableMethod<M>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Problem").field("setup", &self.setup).finish_non_exhaustive()
    }
}
