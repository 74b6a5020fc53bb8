//! Which parameters follow which.

use super::walk::Part;
use super::{ArrayRef, Parameter, ParameterId, ParameterValue, Scalar};

impl Scalar {
    /// Calls `f` for every parameter the expression names, as often as it names it.
    pub fn for_each_parameter(&self, f: &mut dyn FnMut(ParameterId)) {
        self.for_each_part(&mut |part| match part {
            Part::Scalar(Scalar::Parameter(p) | Scalar::Element(p, _)) => f(*p),
            Part::Scalar(Scalar::Table { knots, values, .. } | Scalar::Spline { knots, values, .. }) => {
                for array in [knots, values] {
                    if let ArrayRef::Parameter(p) = array {
                        f(*p);
                    }
                }
            }
            _ => {}
        });
    }
}

/// The parameters in an order in which each comes after all it follows; where there is a choice, in the
/// order of the table. A cycle is the error: its parameters, each following the next, the last the first.
pub fn evaluation_order(parameters: &[Parameter]) -> Result<Vec<ParameterId>, Vec<ParameterId>> {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        New,
        Open,
        Done,
    }
    let follows: Vec<Vec<ParameterId>> = parameters
        .iter()
        .map(|p| {
            let mut list = Vec::new();
            if let ParameterValue::Derived(e) = &p.value {
                e.for_each_parameter(&mut |q| {
                    if q.index() < parameters.len() && !list.contains(&q) {
                        list.push(q);
                    }
                });
            }
            list
        })
        .collect();
    let mut state = vec![State::New; parameters.len()];
    let mut order = Vec::with_capacity(parameters.len());
    for root in (0..parameters.len() as u32).map(ParameterId) {
        if state[root.index()] != State::New {
            continue;
        }
        // Depth-first with an explicit path of (parameter, how many of its dependencies are done).
        let mut path = vec![(root, 0)];
        state[root.index()] = State::Open;
        while let Some((p, done)) = path.last_mut() {
            let p = *p;
            match follows[p.index()].get(*done) {
                Some(&q) => {
                    *done += 1;
                    match state[q.index()] {
                        State::New => {
                            state[q.index()] = State::Open;
                            path.push((q, 0));
                        }
                        State::Open => {
                            let start = path.iter().position(|(r, _)| *r == q).unwrap_or(0);
                            return Err(path[start..].iter().map(|(r, _)| *r).collect());
                        }
                        State::Done => {}
                    }
                }
                None => {
                    state[p.index()] = State::Done;
                    order.push(p);
                    path.pop();
                }
            }
        }
    }
    Ok(order)
}
