//! Which parameters follow which.

use super::{ArrayRef, Parameter, ParameterId, ParameterValue, Scalar, Vector};

impl Scalar {
    /// Calls `f` for every parameter the expression names, as often as it names it.
    pub fn for_each_parameter(&self, f: &mut dyn FnMut(ParameterId)) {
        match self {
            Scalar::Number(_)
            | Scalar::Time
            | Scalar::Input(_)
            | Scalar::Coordinate(_)
            | Scalar::Rate(_)
            | Scalar::Acceleration(_)
            | Scalar::Velocity(_)
            | Scalar::Length
            | Scalar::LengthRate => {}
            Scalar::Parameter(p) => f(*p),
            Scalar::Element(p, index) => {
                f(*p);
                index.for_each_parameter(f);
            }
            Scalar::Negate(a) => a.for_each_parameter(f),
            Scalar::Binary(_, a, b) => {
                a.for_each_parameter(f);
                b.for_each_parameter(f);
            }
            Scalar::Call(_, arguments) => arguments.iter().for_each(|a| a.for_each_parameter(f)),
            Scalar::Select(_, parts) => parts.iter().for_each(|a| a.for_each_parameter(f)),
            Scalar::Table { at, knots, values } | Scalar::Spline { at, knots, values } => {
                at.for_each_parameter(f);
                for array in [knots, values] {
                    match array {
                        ArrayRef::Parameter(p) => f(*p),
                        ArrayRef::Literal(items) => items.iter().for_each(|a| a.for_each_parameter(f)),
                    }
                }
            }
            Scalar::Dot(a, b) => {
                a.for_each_parameter(f);
                b.for_each_parameter(f);
            }
            Scalar::Norm(a) | Scalar::Component(a, _) => a.for_each_parameter(f),
        }
    }
}

impl Vector {
    /// Calls `f` for every parameter the expression names, as often as it names it.
    pub fn for_each_parameter(&self, f: &mut dyn FnMut(ParameterId)) {
        match self {
            Vector::Components(c) => c.iter().for_each(|a| a.for_each_parameter(f)),
            Vector::Position(_)
            | Vector::PointVelocity(_)
            | Vector::PointAcceleration(_)
            | Vector::Direction(..)
            | Vector::AngularVelocity(_)
            | Vector::AngularAcceleration(_) => {}
            Vector::FromFrame(_, a)
            | Vector::InFrame(_, a)
            | Vector::Negate(a)
            | Vector::Unit(a)
            | Vector::Mirror { of: a, .. } => a.for_each_parameter(f),
            Vector::Add(a, b) | Vector::Subtract(a, b) | Vector::Cross(a, b) => {
                a.for_each_parameter(f);
                b.for_each_parameter(f);
            }
            Vector::Scale(s, a) | Vector::Divide(a, s) => {
                s.for_each_parameter(f);
                a.for_each_parameter(f);
            }
        }
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
