//! Orders the operations of a bundle: as they were written into the graph, body by body; fuses products into
//! sums; makes sin and cos of one angle one operation.
//!
//! What was written together is used together. Depth first from the results, which would seem to keep lives
//! of values short, makes code a fifth to a third larger and slower (a tenth to a third with fused operations):
//! the first result pulls in half of the mechanism, and what the others read of it waits in memory.
//!
//! Input: a specification. Output: one list of steps, not yet split into segments.
//! Holds afterwards: every value is assigned before it is read.

use super::{Hoisted, Operand, Operation, Run, Specification, Statement, ValueId};
use crate::graph::{
    ArrayId, BinaryOp, CallId, ExprId, Graph, Kernel, Node, OperationCounts, UnaryOp, Visited,
};
use crate::symbols::Group;
use hashbrown::HashMap;

pub(super) struct Schedule {
    pub steps: Vec<Step>,
    pub tables: Vec<Vec<f64>>,
    pub values: u32,
    /// Slots with a fixed place: runs that gathers and kernels read.
    pub slots: u32,
    pub counts: OperationCounts,
}

pub(super) enum Step {
    Statement(Statement),
    Kernel { kernel: Kernel, inputs: Vec<Run>, output: u32 },
}

/// What is known of every node of the graph while a bundle is scheduled; nothing between bundles.
pub(super) struct Scratch {
    uses: Vec<u32>,
    done: Vec<Option<ValueId>>,
    absorbed: Vec<bool>,
}

impl Scratch {
    pub(super) fn new(graph: &Graph) -> Scratch {
        let n = graph.len();
        Scratch { uses: vec![0; n], done: vec![None; n], absorbed: vec![false; n] }
    }
}

pub(super) fn schedule(
    graph: &Graph,
    specification: &Specification,
    hoisted: &Hoisted,
    Scratch { uses, done, absorbed }: &mut Scratch,
) -> Schedule {
    let mut scheduler = Scheduler {
        graph,
        hoisted,
        uses,
        done,
        runs: HashMap::new(),
        calls: HashMap::new(),
        out: Schedule {
            steps: Vec::new(),
            tables: Vec::new(),
            values: 0,
            slots: 0,
            counts: OperationCounts::default(),
        },
    };
    let mut places: Vec<(ExprId, Place)> = Vec::new();
    let mut visited = Visited::new(graph);
    // Loops find zeros where nothing is written.
    let written = |&(expression, _): &(ExprId, Place)| {
        specification.rolled.loops.is_empty() || graph.constant_value(expression) != Some(0.0)
    };
    for array in &specification.rolled.arrays {
        scheduler.count_uses(array, &mut visited);
        let slots = scheduler.out.slots..;
        scheduler.out.slots += array.len() as u32;
        let places_of = array.iter().zip(slots).map(|(&expression, slot)| (expression, Place::Slot(slot)));
        places.extend(places_of.filter(written));
    }
    for (wanted, result) in specification.results.iter().zip(0..) {
        scheduler.count_uses(&wanted.expressions, &mut visited);
        let places_of = wanted.expressions.iter().zip(0..);
        let places_of = places_of.map(|(&expression, index)| (expression, Place::Result(result, index)));
        places.extend(places_of.filter(written));
    }
    places.sort_unstable();
    for each in &specification.rolled.loops {
        scheduler.out.counts.add_many("rolled", each.operations());
    }
    // A node is written after its operands, so the order of writing is one in which they are ready.
    let nodes: Vec<ExprId> = visited.nodes().collect();
    for fused in nodes.iter().filter_map(|&id| scheduler.fused(id)) {
        absorbed[fused.product.index()] = true;
    }
    let operations = nodes.iter().filter(|id| !absorbed[id.index()] && scheduler.leaf(**id).is_none());
    scheduler.out.steps.reserve_exact(operations.count() + places.len());
    let mut places = places.into_iter().peekable();
    for &id in &nodes {
        if scheduler.leaf(id).is_none() && scheduler.done[id.index()].is_none() && !absorbed[id.index()] {
            scheduler.finish(id);
        }
        while let Some((_, place)) = places.next_if(|&(wanted, _)| wanted == id) {
            let value = scheduler.operand(id);
            scheduler.push(match place {
                Place::Slot(slot) => Statement::Store(slot, value),
                Place::Result(result, index) => Statement::Result { result, index, value },
            });
        }
    }
    let Scheduler { uses, done, out, .. } = scheduler;
    for id in nodes {
        uses[id.index()] = 0;
        done[id.index()] = None;
        absorbed[id.index()] = false;
    }
    out
}

/// Where a wanted expression goes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Result(u32, u32),
    Slot(u32),
}

struct Scheduler<'a> {
    graph: &'a Graph,
    hoisted: &'a Hoisted,
    /// How many operations read a node; results count as readers, all readers of an array or a kernel's results as
    /// one.
    uses: &'a mut [u32],
    done: &'a mut [Option<ValueId>],
    runs: HashMap<ArrayId, Run>,
    calls: HashMap<CallId, u32>,
    out: Schedule,
}

impl Scheduler<'_> {
    fn push(&mut self, statement: Statement) {
        self.out.steps.push(Step::Statement(statement));
    }

    fn new_value(&mut self) -> ValueId {
        self.out.values += 1;
        ValueId(self.out.values - 1)
    }

    /// A node that needs no operation of its own.
    #[inline]
    fn leaf(&self, id: ExprId) -> Option<Operand> {
        if let Some(place) = self.hoisted.place(id) {
            return Some(Operand::Argument(Group::Prepared, place));
        }
        match self.graph.node(id) {
            Node::Constant(bits) => Some(Operand::Constant(f64::from_bits(bits))),
            Node::Symbol(group, index) => Some(Operand::Argument(group, index)),
            _ => None,
        }
    }

    fn operand(&self, id: ExprId) -> Operand {
        self.leaf(id).unwrap_or_else(|| {
            Operand::Value(self.done[id.index()].expect("operands are written before their readers"))
        })
    }

    /// Walks from the results to what they need; arrays that stand ready somewhere need nothing.
    fn count_uses(&mut self, roots: &[ExprId], visited: &mut Visited) {
        let mut stack = roots.to_vec();
        while let Some(id) = stack.pop() {
            self.uses[id.index()] += 1;
            if !visited.enter(id) || self.leaf(id).is_some() {
                continue;
            }
            match self.graph.node(id) {
                Node::Gather(array, index) | Node::Locate(array, index)
                    if self.hoisted.array_place(array).is_some() =>
                {
                    stack.push(index);
                }
                _ => visited.operands(self.graph, id, |operand| stack.push(operand)),
            }
        }
    }

    /// A product that only this sum reads: it is fused into the sum.
    fn fusible_product(&self, id: ExprId) -> Option<(ExprId, ExprId)> {
        match self.graph.node(id) {
            Node::Binary(BinaryOp::Mul, a, b) if self.uses[id.index()] == 1 && self.leaf(id).is_none() => {
                Some((a, b))
            }
            _ => None,
        }
    }

    /// The sum with a product in it as one operation.
    fn fused(&self, id: ExprId) -> Option<Fused> {
        if self.leaf(id).is_some() {
            return None;
        }
        let absorb = |pattern, product, other| {
            let factors = self.fusible_product(product)?;
            Some(Fused { pattern, product, factors, other })
        };
        match self.graph.node(id) {
            Node::Binary(BinaryOp::Add, a, b) => {
                absorb(Pattern::MulAdd, b, a).or_else(|| absorb(Pattern::MulAdd, a, b))
            }
            Node::Binary(BinaryOp::Sub, a, b) => {
                absorb(Pattern::NegMulAdd, b, a).or_else(|| absorb(Pattern::MulSub, a, b))
            }
            _ => None,
        }
    }

    /// Schedules a node whose operands are ready.
    fn finish(&mut self, id: ExprId) {
        if let Some(Fused { pattern, factors, other, .. }) = self.fused(id) {
            let (a, b, c) = (self.operand(factors.0), self.operand(factors.1), self.operand(other));
            self.compute(
                id,
                match pattern {
                    Pattern::MulAdd => Operation::MulAdd(a, b, c),
                    Pattern::MulSub => Operation::MulSub(a, b, c),
                    Pattern::NegMulAdd => Operation::NegMulAdd(a, b, c),
                },
            );
            return;
        }
        match self.graph.node(id) {
            Node::Constant(_) | Node::Symbol(..) => {}
            Node::Unary(op @ (UnaryOp::Sin | UnaryOp::Cos), angle) => self.sine_or_cosine(id, op, angle),
            Node::Unary(op, a) => {
                let a = self.operand(a);
                self.compute(id, Operation::Unary(op, a));
            }
            Node::Binary(op, a, b) => {
                let (a, b) = (self.operand(a), self.operand(b));
                self.compute(id, Operation::Binary(op, a, b));
            }
            Node::Select(comparison, operands) => {
                let operands = operands.map(|o| self.operand(o));
                self.compute(id, Operation::Select(comparison, operands));
            }
            Node::Gather(array, index) => {
                let (run, index) = (self.array_run(array), self.operand(index));
                self.compute(id, Operation::Gather(run, index));
            }
            Node::Locate(array, x) => {
                let (run, x) = (self.array_run(array), self.operand(x));
                self.compute(id, Operation::Locate(run, x));
            }
            Node::Output(call, index) => {
                let first = self.call(call);
                let value = self.new_value();
                self.push(Statement::Load(value, first + index));
                self.done[id.index()] = Some(value);
            }
        }
    }

    fn compute(&mut self, id: ExprId, operation: Operation) {
        self.out.counts.add(operation.kind());
        let value = self.new_value();
        self.push(Statement::Compute(value, operation));
        self.done[id.index()] = Some(value);
    }

    /// Where sin and cos of the angle are both wanted, one operation makes both.
    fn sine_or_cosine(&mut self, id: ExprId, op: UnaryOp, angle: ExprId) {
        let other_op = if op == UnaryOp::Sin { UnaryOp::Cos } else { UnaryOp::Sin };
        let other = self.graph.find_unary(other_op, angle).filter(|other| {
            self.uses[other.index()] > 0 && self.leaf(*other).is_none() && self.done[other.index()].is_none()
        });
        let angle = self.operand(angle);
        let Some(other) = other else {
            return self.compute(id, Operation::Unary(op, angle));
        };
        self.out.counts.add("sin_cos");
        let (sine, cosine) = (self.new_value(), self.new_value());
        self.push(Statement::SinCos(sine, cosine, angle));
        let (mine, its) = if op == UnaryOp::Sin { (sine, cosine) } else { (cosine, sine) };
        self.done[id.index()] = Some(mine);
        self.done[other.index()] = Some(its);
    }

    fn array_run(&mut self, array: ArrayId) -> Run {
        if let Some(start) = self.hoisted.array_place(array) {
            return Run::Argument {
                group: Group::Prepared,
                start,
                len: self.graph.array(array).len() as u32,
            };
        }
        if let Some(&run) = self.runs.get(&array) {
            return run;
        }
        let elements = self.graph.array(array).to_vec();
        let run = self.run(&elements);
        self.runs.insert(array, run);
        run
    }

    /// A place where the (already scheduled) expressions stand side by side.
    fn run(&mut self, elements: &[ExprId]) -> Run {
        let len = elements.len() as u32;
        let operands: Vec<Operand> = elements.iter().map(|&e| self.operand(e)).collect();
        let constants: Option<Vec<f64>> = operands
            .iter()
            .map(|o| match o {
                Operand::Constant(value) => Some(*value),
                _ => None,
            })
            .collect();
        if let Some(values) = constants {
            let table = self.out.tables.iter().position(|t| *t == values).unwrap_or_else(|| {
                self.out.tables.push(values);
                self.out.tables.len() - 1
            });
            return Run::Table { table: table as u32, len };
        }
        if let Some(&Operand::Argument(group, start)) = operands.first()
            && operands.iter().zip(start..).all(|(&o, i)| o == Operand::Argument(group, i))
        {
            return Run::Argument { group, start, len };
        }
        let start = self.out.slots;
        self.out.slots += len;
        for (operand, slot) in operands.into_iter().zip(start..) {
            self.push(Statement::Store(slot, operand));
        }
        Run::Slots { start, len }
    }

    /// The first output slot of a kernel call.
    fn call(&mut self, id: CallId) -> u32 {
        if let Some(&first) = self.calls.get(&id) {
            return first;
        }
        let call = self.graph.call(id).clone();
        let mut inputs = Vec::new();
        let mut rest = &call.arguments[..];
        for len in call.kernel.input_runs() {
            let (run, after) = rest.split_at(len);
            inputs.push(self.run(run));
            rest = after;
        }
        let output = self.out.slots;
        self.out.slots += (call.kernel.outputs() + call.kernel.scratch()) as u32;
        self.out.counts.add(call.kernel.name());
        self.out.steps.push(Step::Kernel { kernel: call.kernel, inputs, output });
        self.calls.insert(id, output);
        output
    }
}

/// A sum that takes in one of its terms.
struct Fused {
    pattern: Pattern,
    /// The term, which needs no operation of its own.
    product: ExprId,
    factors: (ExprId, ExprId),
    /// The other term.
    other: ExprId,
}

#[derive(Clone, Copy)]
enum Pattern {
    /// a b + c
    MulAdd,
    /// a b − c
    MulSub,
    /// c − a b
    NegMulAdd,
}
