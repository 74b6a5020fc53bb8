//! Orders the operations of a bundle: as they were written into the graph, body by body; fuses products into
//! sums; makes sin and cos of one angle one operation.
//!
//! What was written together is used together. Depth first from the results, which would seem to keep lives
//! of values short, makes code a fifth to a third larger and slower (a tenth to a third with fused operations):
//! the first result pulls in half of the mechanism, and what the others read of it waits in memory.
//!
//! Enters: a specification. Leaves: one long list of steps, not yet cut into segments.
//! Holds afterwards: every value is assigned before it is read.

use super::{Hoisted, Operand, Operation, Run, Specification, Statement, ValueId};
use crate::graph::{ArrayId, BinaryOp, CallId, ExprId, Graph, Kernel, Node, OperationCounts, UnaryOp};
use crate::symbols::Group;
use std::collections::{HashMap, HashSet};

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

pub(super) fn schedule(graph: &Graph, specification: &Specification, hoisted: &Hoisted) -> Schedule {
    let mut scheduler = Scheduler {
        graph,
        hoisted,
        uses: HashMap::new(),
        done: HashMap::new(),
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
    let mut places: HashMap<ExprId, Vec<(u32, u32)>> = HashMap::new();
    for (wanted, result) in specification.results.iter().zip(0..) {
        scheduler.count_uses(&wanted.expressions);
        for (&expression, index) in wanted.expressions.iter().zip(0..) {
            places.entry(expression).or_default().push((result, index));
        }
    }
    // A node is written after its operands, so the order of writing is one in which they are ready.
    let mut nodes: Vec<ExprId> = scheduler.uses.keys().copied().collect();
    nodes.sort();
    let absorbed: HashSet<ExprId> =
        nodes.iter().filter_map(|&id| scheduler.fused(id)).map(|fused| fused.product).collect();
    for id in nodes {
        if scheduler.leaf(id).is_none() && !scheduler.done.contains_key(&id) && !absorbed.contains(&id) {
            scheduler.finish(id);
        }
        for (result, index) in places.remove(&id).unwrap_or_default() {
            let value = scheduler.operand(id);
            scheduler.push(Statement::Result { result, index, value });
        }
    }
    scheduler.out
}

struct Scheduler<'a> {
    graph: &'a Graph,
    hoisted: &'a Hoisted,
    /// How many operations read a node; results count as readers.
    uses: HashMap<ExprId, u32>,
    done: HashMap<ExprId, Operand>,
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
        self.leaf(id).unwrap_or_else(|| self.done[&id])
    }

    /// The operands a node really needs: arrays that stand ready somewhere need nothing.
    fn needs(&self, id: ExprId) -> Vec<ExprId> {
        let mut needs = Vec::new();
        match self.graph.node(id) {
            Node::Gather(array, index) | Node::Locate(array, index) => {
                needs.push(index);
                if self.hoisted.array_place(array).is_none() {
                    needs.extend(self.graph.array(array));
                }
            }
            _ => self.graph.operands(id, |operand| needs.push(operand)),
        }
        needs
    }

    fn count_uses(&mut self, roots: &[ExprId]) {
        let mut stack = roots.to_vec();
        while let Some(id) = stack.pop() {
            let uses = self.uses.entry(id).or_default();
            *uses += 1;
            if *uses == 1 && self.leaf(id).is_none() {
                stack.extend(self.needs(id));
            }
        }
    }

    /// A product that only this sum reads: it is fused into the sum.
    fn fusible_product(&self, id: ExprId) -> Option<(ExprId, ExprId)> {
        match self.graph.node(id) {
            Node::Binary(BinaryOp::Mul, a, b) if self.uses[&id] == 1 && self.leaf(id).is_none() => {
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
                self.done.insert(id, Operand::Value(value));
            }
        }
    }

    fn compute(&mut self, id: ExprId, operation: Operation) {
        self.out.counts.add(operation.kind());
        let value = self.new_value();
        self.push(Statement::Compute(value, operation));
        self.done.insert(id, Operand::Value(value));
    }

    /// Where sin and cos of the angle are both wanted, one operation makes both.
    fn sine_or_cosine(&mut self, id: ExprId, op: UnaryOp, angle: ExprId) {
        let other_op = if op == UnaryOp::Sin { UnaryOp::Cos } else { UnaryOp::Sin };
        let other = self.graph.find_unary(other_op, angle).filter(|other| {
            self.uses.contains_key(other) && self.leaf(*other).is_none() && !self.done.contains_key(other)
        });
        let angle = self.operand(angle);
        let Some(other) = other else {
            return self.compute(id, Operation::Unary(op, angle));
        };
        self.out.counts.add("sin_cos");
        let (sine, cosine) = (self.new_value(), self.new_value());
        self.push(Statement::SinCos(sine, cosine, angle));
        let (mine, its) = if op == UnaryOp::Sin { (sine, cosine) } else { (cosine, sine) };
        self.done.insert(id, Operand::Value(mine));
        self.done.insert(other, Operand::Value(its));
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
