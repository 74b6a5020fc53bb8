//! What to watch along a run: where a force, a constraint or an objective jumps, and where it has no value.
//!
//! A branch (`if`, `sign`, an element of an array by a moving index) makes a *kink* if both of its sides have the same value where
//! it changes over, and a *jump* otherwise. A gradient sees through a kink. It does not see how a parameter moves the time of a jump.
//!
//! Enters: a mechanism and its rows. Leaves: a [`Watch`], a bundle that tells for every branch of every subject on which side it is
//! and how far apart the two sides are; [`undefined`], which names what is not finite at an instant.

use crate::bundle::{self, Bundle, Rolled, Specification, Wanted};
use crate::constrained::Rows;
use crate::diagnostics::Span;
use crate::elements::{Element, Mechanism, constraint_elements, forces};
use crate::graph::{BinaryOp, Comparison, ExprId, Graph, Interpreter, Node, UnaryOp};
use crate::kinematics::ReferencePoint;
use crate::lowering::{Lowering, Parameters};
use crate::model::{Case, Model};
use crate::symbols::Group;
use crate::topology;
use hashbrown::HashMap;

/// How the switching function of a branch distinguishes its sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sides {
    /// By its sign.
    Sign,
    /// By its floor.
    Floor,
}

/// A branch of a subject.
#[derive(Clone, Debug, PartialEq)]
pub struct Switch {
    /// What it is a branch of, with its place: "force `stop` (line 12)".
    pub subject: String,
    /// How its sides are distinguished.
    pub sides: Sides,
    /// Whether it counts at the end of a run alone.
    pub terminal: bool,
}

/// The branches of a model that motion or differentiated parameters change over.
#[derive(Clone, Debug, PartialEq)]
pub struct Watch {
    /// The branches.
    pub switches: Vec<Switch>,
    /// `prepare`, and `watch`: results are the switching function of each branch, the size of its subject, and how far the subject
    /// is apart on both sides.
    pub bundles: Vec<Bundle>,
}

/// Switching functions, sizes, differences.
#[derive(Default)]
struct Found {
    switches: Vec<Switch>,
    functions: Vec<ExprId>,
    sizes: Vec<ExprId>,
    apart: Vec<ExprId>,
}

/// What names the place of an expression.
fn named(kind: &str, name: &str, span: Span) -> String {
    if span.is_known() { format!("{kind} `{name}` (line {})", span.line) } else { format!("{kind} `{name}`") }
}

impl Watch {
    /// Of a mechanism; none if it has no branches. `seeds` are what it is differentiated by.
    pub(crate) fn new(
        g: &mut Graph,
        mechanism: &Mechanism<'_>,
        subjects: &[Subject],
        seeds: &[ExprId],
        parameters: u32,
    ) -> Option<Watch> {
        let mut found = Found::default();
        for subject in subjects {
            found.add(g, subject, seeds);
        }
        if found.switches.is_empty() {
            return None;
        }
        let [nq, nv, nu] =
            [mechanism.tree.nq, mechanism.tree.nv, mechanism.model.inputs.len()].map(|n| n as u32);
        let wanted = |name, doc, expressions| Wanted { name, doc, expressions };
        let specification = Specification {
            name: "watch",
            doc: "Branches: where they are, and how far apart their sides.",
            arguments: vec![
                (Group::Time, 1),
                (Group::Z, nq),
                (Group::V, nv),
                (Group::Vd, nv),
                (Group::U, nu),
            ],
            results: vec![
                wanted("functions", "switching functions", found.functions),
                wanted("sizes", "sizes of the subjects", found.sizes),
                wanted("apart", "how far apart the subjects are on both sides", found.apart),
            ],
            rolled: Rolled::default(),
        };
        Some(Watch {
            switches: found.switches,
            bundles: bundle::build(g, &[specification], parameters, true),
        })
    }
}

/// A force, a row or an integrand: over placeholders, and what stands for these.
pub(crate) struct Subject {
    name: String,
    /// Whether it counts at the end of a run alone.
    pub(crate) terminal: bool,
    pub(crate) values: Vec<ExprId>,
    replacements: HashMap<ExprId, ExprId>,
}

/// All of a mechanism.
pub(crate) fn subjects(g: &mut Graph, mechanism: &mut Mechanism<'_>, rows: &Rows) -> Vec<Subject> {
    let model = mechanism.model;
    let mut subjects = Vec::new();
    let elements: Vec<Element<'_>> = forces(g, mechanism);
    for (element, force) in elements.iter().zip(&model.forces) {
        let replacements = element.leaves.replacements(g, mechanism);
        // The reaction is the opposite.
        let values = element.loads.first().map(|load| load.values()).unwrap_or_default();
        let name = named("force", &force.name, force.span);
        subjects.push(Subject { name, terminal: false, values, replacements });
    }
    for element in constraint_elements(g, mechanism, &rows.kept, |k| k) {
        let replacements = element.element.leaves.replacements(g, mechanism);
        for row in &element.rows {
            let kept = &rows.kept[row.row];
            let name = named("constraint", &kept.name, kept.span(model));
            let (values, replacements) = (vec![row.value], replacements.clone());
            subjects.push(Subject { name, terminal: false, values, replacements });
        }
    }
    for objective in &model.objectives {
        let parameters = mechanism.parameters;
        for (terminal, kind, of) in [
            (false, "objective", &objective.integrand),
            (true, "the terminal term of objective", &objective.terminal),
        ] {
            let values = vec![Lowering::new(g, parameters, mechanism).scalar(of)];
            let name = named(kind, &objective.name, objective.span);
            subjects.push(Subject { name, terminal, values, replacements: HashMap::new() });
        }
    }
    subjects
}

/// What decides a branch.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Decision {
    /// a against b
    Compare(Comparison, ExprId, ExprId),
    /// sign a
    Sign(ExprId),
    /// An element of an array by this index.
    Index(ExprId),
}

impl Found {
    /// The branches of a subject that motion or seeds change over.
    fn add(&mut self, g: &mut Graph, subject: &Subject, seeds: &[ExprId]) {
        let mut decisions: Vec<(Decision, Vec<ExprId>)> = Vec::new();
        for id in g.reachable(&subject.values) {
            let decision = match g.node(id) {
                Node::Select(comparison, [a, b, ..]) if comparison != Comparison::Equal => {
                    Decision::Compare(comparison, a, b)
                }
                Node::Unary(UnaryOp::Sign, a) => Decision::Sign(a),
                // Tables and splines locate the interval, and are continuous.
                Node::Gather(_, index)
                    if !g.reachable(&[index]).iter().any(|&i| matches!(g.node(i), Node::Locate(..))) =>
                {
                    Decision::Index(index)
                }
                _ => continue,
            };
            match decisions.iter_mut().find(|(own, _)| *own == decision) {
                Some((_, nodes)) => nodes.push(id),
                None => decisions.push((decision, vec![id])),
            }
        }
        for (decision, nodes) in decisions {
            let (function, sides) = match decision {
                Decision::Compare(_, a, b) => (g.sub(a, b), Sides::Sign),
                Decision::Sign(a) => (a, Sides::Sign),
                Decision::Index(index) => (index, Sides::Floor),
            };
            let depends = g.depends(function);
            let moves =
                [Group::Z, Group::V, Group::Vd, Group::Free].iter().any(|&group| depends.contains(group));
            if !moves && !g.reachable(&[function]).iter().any(|id| seeds.contains(id)) {
                continue;
            }
            let [first, second] = [true, false].map(|first| {
                let sides: HashMap<ExprId, ExprId> =
                    nodes.iter().map(|&node| (node, side(g, node, first))).collect();
                g.substitute(&subject.values, &sides)
            });
            let differences: Vec<ExprId> = first
                .iter()
                .zip(&second)
                .map(|(&a, &b)| {
                    let difference = g.sub(a, b);
                    g.abs(difference)
                })
                .collect();
            let apart = g.sum(&differences);
            if g.is(apart, 0.0) {
                continue;
            }
            let sizes: Vec<ExprId> = subject.values.iter().map(|&value| g.abs(value)).collect();
            let size = g.sum(&sizes);
            let actual = g.substitute(&[function, size, apart], &subject.replacements);
            let (name, terminal) = (subject.name.clone(), subject.terminal);
            self.switches.push(Switch { subject: name, sides, terminal });
            self.functions.push(actual[0]);
            self.sizes.push(actual[1]);
            self.apart.push(actual[2]);
        }
    }
}

/// A branch on one of its sides.
fn side(g: &mut Graph, node: ExprId, first: bool) -> ExprId {
    match g.node(node) {
        Node::Select(_, [_, _, x, y]) => {
            if first {
                x
            } else {
                y
            }
        }
        Node::Gather(array, index) => {
            let half = g.constant(if first { -0.5 } else { 0.5 });
            let index = g.add(index, half);
            g.gather(array, index)
        }
        _ => g.constant(if first { -1.0 } else { 1.0 }),
    }
}

/// An instant of a run.
#[derive(Clone, Copy, Debug)]
pub struct Instant<'a> {
    /// Values of the independent parameters.
    pub parameters: &'a [f64],
    /// Time.
    pub t: f64,
    /// Coordinates.
    pub z: &'a [f64],
    /// Velocities.
    pub v: &'a [f64],
    /// Inputs.
    pub u: &'a [f64],
}

/// The force or constraint that is not finite at an instant, and the operation that made it so: "force `pull` (line 9) is not finite:
/// ln(-0.2)".
pub fn undefined(model: &Model, case: Option<&Case>, at: Instant<'_>) -> Option<String> {
    let model = &model.under_case(case);
    let tree = topology::span(model);
    let rows = Rows::of(model, &tree);
    let mut g = Graph::new();
    let parameters = Parameters::lower(&mut g, model, false);
    let mut mechanism = Mechanism::new(&mut g, model, &tree, &parameters, ReferencePoint::Origin);
    let mut interpreter = Interpreter::new();
    interpreter.set(Group::Time, 0, at.t);
    for (group, values) in
        [(Group::Parameters, at.parameters), (Group::Z, at.z), (Group::V, at.v), (Group::U, at.u)]
    {
        interpreter.set_all(group, values);
    }
    for Subject { name, values, replacements, .. } in subjects(&mut g, &mut mechanism, &rows) {
        let actual = g.substitute(&values, &replacements);
        let all = g.reachable(&actual);
        let numbers: HashMap<ExprId, f64> = all.iter().copied().zip(interpreter.evaluate(&g, &all)).collect();
        if actual.iter().all(|value| numbers[value].is_finite()) {
            continue;
        }
        let made = all.iter().find(|id| {
            let mut finite = true;
            g.operands(**id, |operand| finite &= numbers[&operand].is_finite());
            finite && !numbers[*id].is_finite()
        });
        let operation = made.map_or(String::new(), |&id| format!(": {}", describe(&g, id, &numbers)));
        return Some(format!("{name} is not finite{operation}"));
    }
    None
}

/// An operation with the numbers it takes.
fn describe(g: &Graph, id: ExprId, numbers: &HashMap<ExprId, f64>) -> String {
    match g.node(id) {
        Node::Unary(op, a) => format!("{}({})", op.name(), numbers[&a]),
        Node::Binary(BinaryOp::Div, a, b) => format!("{} divided by {}", numbers[&a], numbers[&b]),
        Node::Binary(BinaryOp::Pow, a, b) => format!("{} to the power {}", numbers[&a], numbers[&b]),
        Node::Binary(op, a, b) => format!("{}({}, {})", op.name(), numbers[&a], numbers[&b]),
        _ => format!("{}", numbers[&id]),
    }
}
