//! Bundles: schedules as data, for the emitter and the interpreters.
//!
//! Input: a [`Specification`] (requested expressions and their names) and the graph.
//! Output: a [`Bundle`], a list of segments, each a sequence of single-assignment statements or the call
//! of a kernel; then loops over constant tables, if there are any ([`rolled`]).
//! Holds afterwards: a value is assigned before it is read, and read only in the segment that assigns or
//! loads it; a slot is written before it is read; every result is written exactly once ([`verify`]).

mod chunk;
mod hoist;
pub mod interpret;
pub mod packing;
pub mod rolled;
mod schedule;
pub mod verify;

pub use hoist::Hoisted;
pub use packing::Packed;
pub use rolled::{Loop, Memory, Rolled};

use crate::graph::{BinaryOp, Comparison, ExprId, Graph, Kernel, OperationCounts, UnaryOp};
use crate::symbols::Group;

/// The expressions that a bundle computes.
#[derive(Clone, Debug)]
pub struct Specification {
    /// The function's name.
    pub name: &'static str,
    /// One sentence for its documentation.
    pub doc: &'static str,
    /// Its arguments, beside the prepared values, and how many scalars each has.
    pub arguments: Vec<(Group, u32)>,
    /// Its results.
    pub results: Vec<Wanted>,
    /// The part that is computed in loops.
    pub rolled: Rolled,
}

impl Specification {
    /// All requested expressions.
    pub fn expressions(&self) -> impl Iterator<Item = ExprId> + '_ {
        let results = self.results.iter().flat_map(|wanted| &wanted.expressions);
        results.chain(self.rolled.arrays.iter().flatten()).copied()
    }
}

/// A named list of expressions to compute.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Name of the result.
    pub name: &'static str,
    /// One sentence for its documentation.
    pub doc: &'static str,
    /// The expressions; matrices by columns.
    pub expressions: Vec<ExprId>,
}

/// A schedule.
#[derive(Clone, Debug, PartialEq)]
pub struct Bundle {
    /// The function's name.
    pub name: &'static str,
    /// One sentence for its documentation.
    pub doc: &'static str,
    /// Its arguments and how many scalars each has.
    pub arguments: Vec<(Group, u32)>,
    /// Its results.
    pub results: Vec<BundleResult>,
    /// Its segments, in order.
    pub segments: Vec<Segment>,
    /// Lengths of the arrays of its loops, which are its first slots, one after the other.
    pub arrays: Vec<u32>,
    /// Loops after the segments. A bundle with loops begins with arrays and results of zeros.
    pub loops: Vec<Loop>,
    /// Constant tables that gathers and kernels read.
    pub tables: Vec<Vec<f64>>,
    /// Number of values.
    pub values: u32,
    /// Number of workspace slots.
    pub slots: u32,
    /// Operations by kind.
    pub counts: OperationCounts,
    /// Whether generated code rounds a b + c once where the target can; otherwise twice everywhere.
    pub fused: bool,
    /// The same operations two at a time, where generated code has vectors of two numbers; the slots suffice for both forms.
    pub packed: Option<Packed>,
}

impl Bundle {
    /// Number of statements, including those that move values between segments.
    pub fn statements(&self) -> usize {
        let flat = |segment: &Segment| match segment {
            Segment::Flat(statements) => statements.len(),
            Segment::Kernel { .. } => 1,
        };
        self.segments.iter().map(flat).sum()
    }

    /// Packs the bundle: `form` is [`Packed::of`] or [`Packed::of_any`].
    pub fn pack(&mut self, form: fn(&Bundle) -> Option<Packed>) -> Result<(), String> {
        self.packed = form(self);
        if let Some(packed) = &self.packed {
            packing::verify::verify(self, packed)?;
            self.slots = self.slots.max(packed.slots);
        }
        Ok(())
    }

    /// The slots of an array.
    pub fn array(&self, array: u32) -> std::ops::Range<usize> {
        let before = self.arrays.iter().take(array as usize).sum::<u32>() as usize;
        before..before + self.arrays.get(array as usize).map_or(0, |&len| len as usize)
    }

    /// Number of slots of all arrays.
    pub fn array_slots(&self) -> usize {
        self.arrays.iter().sum::<u32>() as usize
    }
}

/// A named run of results.
#[derive(Clone, Debug, PartialEq)]
pub struct BundleResult {
    /// Name.
    pub name: &'static str,
    /// One sentence for its documentation.
    pub doc: &'static str,
    /// How many scalars.
    pub len: u32,
}

/// A part of a schedule.
#[derive(Clone, Debug, PartialEq)]
pub enum Segment {
    /// Statements, one after the other; printed as one function.
    Flat(Vec<Statement>),
    /// A kernel over runs of memory.
    Kernel {
        /// Which.
        kernel: Kernel,
        /// Its inputs, a run each.
        inputs: Vec<Run>,
        /// The first slot of its outputs; its scratch follows them. All input slots come before.
        output: u32,
    },
}

/// A value of a schedule: assigned once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(pub u32);

/// An operand of a statement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operand {
    /// A constant.
    Constant(f64),
    /// A scalar of an argument.
    Argument(Group, u32),
    /// A value of this segment.
    Value(ValueId),
}

/// A run of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Run {
    /// A constant table of the bundle.
    Table {
        /// Which.
        table: u32,
        /// How long it is.
        len: u32,
    },
    /// Part of an argument.
    Argument {
        /// Which argument.
        group: Group,
        /// First scalar.
        start: u32,
        /// How many.
        len: u32,
    },
    /// Workspace slots.
    Slots {
        /// First slot.
        start: u32,
        /// How many.
        len: u32,
    },
}

/// A statement of a flat segment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Statement {
    /// value = slot
    Load(ValueId, u32),
    /// value = operation
    Compute(ValueId, Operation),
    /// (sine, cosine) = sin_cos(angle); the two values are distinct
    SinCos(ValueId, ValueId, Operand),
    /// slot = operand
    Store(u32, Operand),
    /// `result[index]` = operand
    Result {
        /// Which result.
        result: u32,
        /// Which scalar of it.
        index: u32,
        /// What it is.
        value: Operand,
    },
}

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operation {
    /// f(a)
    Unary(UnaryOp, Operand),
    /// f(a, b)
    Binary(BinaryOp, Operand, Operand),
    /// a b + c
    MulAdd(Operand, Operand, Operand),
    /// a b − c
    MulSub(Operand, Operand, Operand),
    /// c − a b
    NegMulAdd(Operand, Operand, Operand),
    /// `if a CMP b { x } else { y }`
    Select(Comparison, [Operand; 4]),
    /// `run[index]`
    Gather(Run, Operand),
    /// interval of x in the run
    Locate(Run, Operand),
}

impl Operation {
    /// The name under which it is counted.
    pub fn kind(&self) -> &'static str {
        match self {
            Operation::Unary(op, _) => op.name(),
            Operation::Binary(op, ..) => op.name(),
            Operation::MulAdd(..) | Operation::MulSub(..) | Operation::NegMulAdd(..) => "mul_add",
            Operation::Select(..) => "select",
            Operation::Gather(..) => "gather",
            Operation::Locate(..) => "locate",
        }
    }

    /// Its operands, without runs.
    pub fn operands(&self, mut visit: impl FnMut(Operand)) {
        match *self {
            Operation::Unary(_, a) | Operation::Gather(_, a) | Operation::Locate(_, a) => visit(a),
            Operation::Binary(_, a, b) => [a, b].into_iter().for_each(visit),
            Operation::MulAdd(a, b, c) | Operation::MulSub(a, b, c) | Operation::NegMulAdd(a, b, c) => {
                [a, b, c].into_iter().for_each(visit);
            }
            Operation::Select(_, operands) => operands.into_iter().for_each(visit),
        }
    }
}

impl Statement {
    /// Its operands, without runs and slots.
    pub fn operands(&self, mut visit: impl FnMut(Operand)) {
        match self {
            Statement::Load(..) => {}
            Statement::Compute(_, operation) => operation.operands(visit),
            Statement::SinCos(_, _, operand)
            | Statement::Store(_, operand)
            | Statement::Result { value: operand, .. } => visit(*operand),
        }
    }

    /// The values it assigns.
    pub fn assigns(&self, mut visit: impl FnMut(ValueId)) {
        match *self {
            Statement::Load(value, _) | Statement::Compute(value, _) => visit(value),
            Statement::SinCos(sine, cosine, _) => {
                visit(sine);
                visit(cosine);
            }
            Statement::Store(..) | Statement::Result { .. } => {}
        }
    }
}

/// Statements per flat segment: 125 to 500 cost the same to compile and to run, others more; `figures/` measures it.
pub const CHUNK: usize = 250;

/// The bundles for the specifications, the `prepare` bundle first. A specification that takes the parameters
/// themselves reads them directly; every other reads the prepared values.
///
/// `parameters`: how many independent parameters there are. `fused`: see [`Bundle::fused`].
pub fn build(graph: &Graph, specifications: &[Specification], parameters: u32, fused: bool) -> Vec<Bundle> {
    let (direct, stepping): (Vec<_>, Vec<_>) =
        specifications.iter().partition(|s| s.arguments.iter().any(|&(group, _)| group == Group::Parameters));
    let hoisted = Hoisted::collect(graph, &stepping);
    let prepare = Specification {
        name: "prepare",
        doc: "Computes whatever depends on the parameters alone.",
        arguments: vec![(Group::Parameters, parameters)],
        results: vec![Wanted {
            name: "c",
            doc: "prepared values",
            expressions: hoisted.expressions().to_vec(),
        }],
        rolled: Rolled::default(),
    };
    let prepared = hoisted.expressions().len() as u32;
    let mut scratch = schedule::Scratch::new(graph);
    let mut build_one = |specification: &Specification, hoisted: &Hoisted| {
        let bundle = build_one(graph, specification, hoisted, &mut scratch);
        Bundle { fused, ..bundle }
    };
    let mut bundles = vec![build_one(&prepare, &Hoisted::default())];
    for specification in direct {
        bundles.push(build_one(specification, &Hoisted::default()));
    }
    for specification in stepping {
        let mut specification = specification.clone();
        specification.arguments.push((Group::Prepared, prepared));
        bundles.push(build_one(&specification, &hoisted));
    }
    bundles
}

fn build_one(
    graph: &Graph,
    specification: &Specification,
    hoisted: &Hoisted,
    scratch: &mut schedule::Scratch,
) -> Bundle {
    let schedule = schedule::schedule(graph, specification, hoisted, scratch);
    // A bundle of little more than one chunk is not split, which avoids moving values between segments.
    let size = if schedule.steps.len() <= 2 * CHUNK { 2 * CHUNK } else { CHUNK };
    let (segments, slots) = chunk::split_into_chunks(schedule.steps, schedule.values, schedule.slots, size);
    Bundle {
        name: specification.name,
        doc: specification.doc,
        arguments: specification.arguments.clone(),
        results: specification
            .results
            .iter()
            .map(|w| BundleResult { name: w.name, doc: w.doc, len: w.expressions.len() as u32 })
            .collect(),
        segments,
        arrays: specification.rolled.arrays.iter().map(|array| array.len() as u32).collect(),
        loops: specification.rolled.loops.clone(),
        tables: schedule.tables,
        values: schedule.values,
        slots,
        counts: schedule.counts,
        fused: true,
        packed: None,
    }
}
