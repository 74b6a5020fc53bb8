//! The model in numbers at a few states, from which orders of elimination and scales are taken.

use super::rows::Random;
use crate::elements::Mechanism;
use crate::graph::{ExprId, Graph, Interpreter};
use crate::symbols::Group;

/// States tried: the start and two near it.
const STATES: usize = 3;
/// A step in the middle of what people choose.
const STEP: f64 = 1e-3;

/// The values of expressions at each state, with the weights of the trapezoidal rule at a step of a millisecond.
pub(super) fn evaluate(g: &mut Graph, mechanism: &Mechanism<'_>, expressions: &[ExprId]) -> Vec<Vec<f64>> {
    let (model, tree) = (mechanism.model, mechanism.tree);
    let [start, _] = mechanism.start(g);
    let parameters = model.default_parameters();
    (0..STATES)
        .map(|state| {
            let mut random = Random(17 + state as u64);
            let mut interpreter = Interpreter::<f64>::new();
            for (i, &value) in parameters.iter().enumerate() {
                interpreter.set(Group::Parameters, i as u32, value);
            }
            for (i, input) in model.inputs.iter().enumerate() {
                interpreter.set(Group::U, i as u32, input.default);
            }
            let start = interpreter.evaluate(g, &start);
            for (i, value) in start.into_iter().enumerate() {
                interpreter.set(Group::Z, i as u32, value + 0.1 * state as f64 * random.next());
            }
            for group in [Group::V, Group::Vd, Group::Zd, Group::Zdd, Group::Lambda] {
                for i in 0..tree.nq + tree.nv {
                    interpreter.set(group, i as u32, 0.1 * state as f64 * random.next());
                }
            }
            for (i, weight) in [STEP / 2.0, STEP * STEP / 4.0, STEP / 2.0].into_iter().enumerate() {
                interpreter.set(Group::Weights, i as u32, weight);
            }
            interpreter.evaluate(g, expressions)
        })
        .collect()
}
