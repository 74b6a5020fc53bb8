//! Corners in time: conditions that time and parameters alone decide, at which steps of controlled size end.
//!
//! Enters: the expressions of forces, constraints, integrands and inputs. Leaves: [`Corners`], a bundle that tells at a time for every
//! condition (of `if`, `sign`, `abs`, `min`, `max`, the knots of tables and splines, an index into an array) its function, the rate of
//! that and its side. Smooth functions that may be short pulses (`exp(-((t - 3)/w)^2)`, `1/(1 + (t/w)^2)`, `tanh`) have a condition that changes at their peak or
//! where they are steepest: a step that ends there sees them.

use crate::bundle::{self, Bundle, Rolled, Specification, Wanted};
use crate::graph::{ArrayId, BinaryOp, Comparison, ExprId, Graph, Node, Tangents, UnaryOp};
use crate::symbols::Group;
use core::slice::from_ref;
use hashbrown::{HashMap, HashSet};

/// A condition of time and parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corner {
    /// Whether it changes where its function passes any of several values, not only zero.
    pub levels: bool,
    /// Whether steps keep off it: something jumps there, or it moves with a parameter of a derivative.
    pub apart: bool,
}

/// The conditions of a model that time alone decides.
#[derive(Clone, Debug, PartialEq)]
pub struct Corners {
    /// The conditions.
    pub all: Vec<Corner>,
    /// `prepare`, and `corners`: results are the function of each condition, its rate and its side.
    pub bundles: Vec<Bundle>,
}

/// Name of the bundle.
pub const NAME: &str = "corners";

/// Conditions under way: functions, rates, sides.
#[derive(Default)]
struct Found {
    all: Vec<Corner>,
    functions: Vec<ExprId>,
    rates: Vec<ExprId>,
    sides: Vec<ExprId>,
}

/// What decides a branch, as a function of time.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Decision {
    Compare(Comparison, ExprId, ExprId),
    Sign(ExprId),
    /// A kink where a passes b.
    Meet(ExprId, ExprId),
    Knots(ArrayId, ExprId),
    Index(ArrayId, ExprId),
    /// What is steepest where a is zero.
    Steep(ExprId),
    /// What has its peak where a turns: da/dt = 0. If a has a constant rate, what is steepest where a is zero, or nothing.
    Peak(ExprId, bool),
}

impl Corners {
    /// Of expressions, in which inputs are the signals they follow, and the bundle for a module; none without conditions. `seeds` are what the model is
    /// differentiated by.
    pub(crate) fn new(
        g: &mut Graph,
        expressions: &[ExprId],
        signals: &[ExprId],
        seeds: &[ExprId],
        parameters: u32,
    ) -> Option<(Corners, Specification)> {
        let Found { all, functions, rates, sides } = Found::of(g, expressions, signals, seeds);
        if all.is_empty() {
            return None;
        }
        let wanted = |name, doc, expressions| Wanted { name, doc, expressions };
        let results = vec![
            wanted("functions", "functions of the conditions", functions),
            wanted("rates", "their rates", rates),
            wanted("sides", "their sides", sides),
        ];
        let doc = "Conditions that time alone decides.";
        let mut arguments = vec![(Group::Time, 1)];
        let expressions: Vec<ExprId> = results.iter().flat_map(|wanted| wanted.expressions.clone()).collect();
        if g.depends_of_all(&expressions).contains(Group::Case) {
            arguments.push((Group::Case, 1));
        }
        let specification = Specification { name: NAME, doc, arguments, results, rolled: Rolled::default() };
        Some((
            Corners { all, bundles: bundle::build(g, from_ref(&specification), parameters, true) },
            specification,
        ))
    }
}

impl Found {
    fn of(g: &mut Graph, expressions: &[ExprId], signals: &[ExprId], seeds: &[ExprId]) -> Found {
        let roots: Vec<ExprId> = expressions.iter().chain(signals).copied().collect();
        let inputs: Vec<ExprId> = (0..signals.len() as u32).map(|i| g.symbol(Group::U, i)).collect();
        let signals: HashMap<ExprId, ExprId> = inputs.into_iter().zip(signals.iter().copied()).collect();
        let zero = g.zero();
        let (mut decisions, mut known): (Vec<Decision>, HashSet<Decision>) = Default::default();
        for id in g.reachable(&roots) {
            let decision = match g.node(id) {
                Node::Select(comparison, [a, b, ..]) if comparison != Comparison::Equal => {
                    Decision::Compare(comparison, a, b)
                }
                Node::Unary(UnaryOp::Sign, a) => Decision::Sign(a),
                Node::Unary(UnaryOp::Abs, a) => Decision::Meet(a, zero),
                Node::Binary(BinaryOp::Min | BinaryOp::Max, a, b) => Decision::Meet(a, b),
                Node::Locate(knots, x) => Decision::Knots(knots, x),
                Node::Gather(array, index)
                    if follows_time(g, index)
                        && !g.reachable(&[index]).iter().any(|&i| matches!(g.node(i), Node::Locate(..))) =>
                {
                    Decision::Index(array, index)
                }
                Node::Unary(UnaryOp::Tanh | UnaryOp::Atan | UnaryOp::Cosh, a) => Decision::Steep(a),
                Node::Unary(UnaryOp::Exp, a) => Decision::Peak(a, true),
                // a^b with a constant a is exp(b ln a).
                Node::Binary(BinaryOp::Pow, a, b) if !g.depends(a).contains(Group::Time) => {
                    Decision::Peak(b, true)
                }
                Node::Binary(BinaryOp::Div, _, a) | Node::Binary(BinaryOp::Pow, a, _) => {
                    Decision::Peak(a, false)
                }
                _ => continue,
            };
            if known.insert(decision) {
                decisions.push(decision);
            }
        }
        let mut found = Found::default();
        for decision in decisions {
            found.add(g, decision, &signals, seeds);
        }
        found
    }

    /// A condition, if it follows from time and parameters.
    fn add(
        &mut self,
        g: &mut Graph,
        decision: Decision,
        signals: &HashMap<ExprId, ExprId>,
        seeds: &[ExprId],
    ) {
        let (one, zero) = (g.one(), g.zero());
        let (function, side) = match decision {
            Decision::Compare(comparison, a, b) => (g.sub(a, b), g.select(comparison, a, b, one, zero)),
            Decision::Sign(a) => (a, g.unary(UnaryOp::Sign, a)),
            Decision::Meet(a, b) => (g.sub(a, b), g.select(Comparison::Less, a, b, one, zero)),
            // What they do beyond their ends has conditions of its own.
            Decision::Knots(knots, x) => (x, g.locate(knots, x)),
            Decision::Index(array, index) => {
                let places = (0..g.array(array).len()).map(|place| g.constant(place as f64)).collect();
                let places = g.new_array(places);
                (index, g.gather(places, index))
            }
            Decision::Steep(a) => (a, g.select(Comparison::Less, a, zero, one, zero)),
            Decision::Peak(a, steep) => {
                if !follows_time(g, a) || overflows(g, a) {
                    return;
                }
                let a = g.substitute(&[a], signals)[0];
                let time = g.symbol(Group::Time, 0);
                let rate = Tangents::with_respect_to(g, time).of(g, a);
                let turns = g.depends(rate).contains(Group::Time);
                if !turns && !steep {
                    return;
                }
                let function = if turns { rate } else { a };
                (function, g.select(Comparison::Less, function, zero, one, zero))
            }
        };
        if !follows_time(g, function) || !follows_time(g, side) {
            return;
        }
        let actual = g.substitute(&[function, side], signals);
        let depends = g.depends_of_all(&actual);
        if depends.contains(Group::U) || !depends.contains(Group::Time) {
            return;
        }
        let time = g.symbol(Group::Time, 0);
        let rate = Tangents::with_respect_to(g, time).of(g, actual[0]);
        let moves = g.reachable(&actual).iter().any(|id| seeds.contains(id));
        self.all.push(Corner {
            levels: matches!(decision, Decision::Knots(..) | Decision::Index(..)),
            apart: match decision {
                Decision::Compare(..) | Decision::Sign(_) | Decision::Index(..) => true,
                Decision::Meet(..) | Decision::Knots(..) => moves,
                // Nothing has a corner there.
                Decision::Steep(_) | Decision::Peak(..) => false,
            },
        });
        self.functions.push(actual[0]);
        self.rates.push(rate);
        self.sides.push(actual[1]);
    }
}

/// Whether an expression has exponentials, which leave the range of numbers, and with them its rate.
fn overflows(g: &Graph, id: ExprId) -> bool {
    let grows =
        |&id: &ExprId| matches!(g.node(id), Node::Unary(UnaryOp::Exp | UnaryOp::Cosh | UnaryOp::Sinh, _));
    g.reachable(&[id]).iter().any(grows)
}

/// Whether an expression is one of time, parameters and inputs.
fn follows_time(g: &Graph, id: ExprId) -> bool {
    let depends = g.depends(id);
    let others =
        |&&group: &&Group| !matches!(group, Group::Time | Group::Parameters | Group::Case | Group::U);
    !Group::ALL.iter().filter(others).any(|&group| depends.contains(group))
}
