//! A bundle as straight-line operations on items.
//!
//! Enters: a verified [`Bundle`]. Leaves: [`Straight`], operations in the bundle's order.
//! Holds afterwards: what crosses from one segment to the next is an item like any other. Only slots that are read as runs, or that
//! belong to kernels or loops, are memory; they are the first of the memory, in their order.

use crate::Refusal;
use mbs_codegen::bundle::{Bundle, Operand, Operation, Run, Segment, Statement, ValueId};
use mbs_codegen::graph::{BinaryOp, Comparison, Kernel, UnaryOp};
use mbs_codegen::symbols::Group;
use std::collections::HashMap;

/// A value, an argument's scalar or a constant.
pub(crate) type Item = u32;

/// The base of the memory.
pub(crate) const MEMORY: u8 = 0;
/// The base of the constants.
pub(crate) const CONSTANTS: u8 = 1;
/// The base of the first argument; results follow the arguments.
pub(crate) const FIRST: u8 = 2;
/// The sign bit four times, then all other bits four times: what negation and absolute value read.
pub(crate) const MASKS: [u64; 8] =
    [1 << 63, 1 << 63, 1 << 63, 1 << 63, !(1 << 63), !(1 << 63), !(1 << 63), !(1 << 63)];

/// A scalar that is read from, or written to, a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub base: u8,
    pub index: u32,
}

/// Consecutive scalars of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub first: Place,
    pub len: u32,
}

/// Operations of two operands and one instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Add,
    Sub,
    Mul,
    Div,
    Min,
    Max,
}

/// What is done with a product and a third operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Product {
    /// a b + c
    Add,
    /// a b − c
    Sub,
    /// c − a b
    NegAdd,
}

/// An operation. Items that it makes come last.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    Arithmetic(Arithmetic, [Item; 2], Item),
    MulAdd(Product, [Item; 3], Item),
    Neg(Item, Item),
    Abs(Item, Item),
    Sqrt(Item, Item),
    /// if a CMP b { x } else { y }
    Select(Comparison, [Item; 4], Item),
    Call(UnaryOp, Item, Item),
    CallTwo(BinaryOp, [Item; 2], Item),
    SinCos(Item, [Item; 2]),
    Load(u32, Item),
    Store(Item, u32),
    Result(Item, Place),
    Gather(Stretch, Item, Item),
    Locate(Stretch, Item, Item),
    Kernel(u32),
}

impl Op {
    /// What it reads.
    pub(crate) fn reads(&self, mut visit: impl FnMut(Item)) {
        match *self {
            Op::Arithmetic(_, two, _) | Op::CallTwo(_, two, _) => two.into_iter().for_each(visit),
            Op::MulAdd(_, three, _) => three.into_iter().for_each(visit),
            Op::Select(_, four, _) => four.into_iter().for_each(visit),
            Op::Neg(a, _)
            | Op::Abs(a, _)
            | Op::Sqrt(a, _)
            | Op::Call(_, a, _)
            | Op::SinCos(a, _)
            | Op::Store(a, _)
            | Op::Result(a, _)
            | Op::Gather(_, a, _)
            | Op::Locate(_, a, _) => visit(a),
            Op::Load(..) | Op::Kernel(_) => {}
        }
    }
}

/// A kernel's call.
#[derive(Clone, Debug)]
pub(crate) struct KernelCall {
    pub kernel: Kernel,
    pub inputs: Vec<Stretch>,
    /// The place in memory of its outputs; its scratch follows them. Inputs in memory lie before.
    pub output: u32,
}

/// A bundle as operations.
#[derive(Clone, Debug)]
pub(crate) struct Straight {
    pub ops: Vec<Op>,
    /// Where each item lies before anything is computed: nowhere, if it is computed.
    pub homes: Vec<Option<Place>>,
    /// How many scalars of memory have a fixed meaning.
    pub fixed: u32,
    /// Masks, then constants and tables.
    pub constants: Vec<f64>,
    /// Lengths of the arguments, in the order of their bases.
    pub arguments: Vec<(Group, u32)>,
    /// Lengths of the results.
    pub results: Vec<u32>,
    pub kernels: Vec<KernelCall>,
    /// Where the arrays of the loops lie in memory.
    pub arrays: Vec<(u32, u32)>,
}

/// The operations of a bundle.
pub(crate) fn straighten(bundle: &Bundle) -> Result<Straight, Refusal> {
    let mut arguments = bundle.arguments.clone();
    arguments.sort();
    if FIRST as usize + arguments.len() + bundle.results.len() > crate::BASES {
        return Err(Refusal::Size);
    }
    let mut addressed = addressed_slots(bundle);
    addressed.sort_unstable();
    addressed.dedup();
    let mut slot_places = vec![None; bundle.slots as usize];
    for (place, &slot) in addressed.iter().enumerate() {
        *slot_places.get_mut(slot as usize).ok_or(Refusal::Bundle)? = Some(place as u32);
    }
    let mut straightener = Straightener {
        values: vec![None; bundle.values as usize],
        held: vec![None; bundle.slots as usize],
        argument_items: arguments.iter().map(|&(_, len)| vec![None; len as usize]).collect(),
        constant_items: HashMap::new(),
        tables: Vec::new(),
        slot_places,
        out: Straight {
            ops: Vec::with_capacity(bundle.statements()),
            homes: Vec::with_capacity(bundle.statements()),
            fixed: addressed.len() as u32,
            constants: MASKS.iter().map(|&bits| f64::from_bits(bits)).collect(),
            arguments,
            results: bundle.results.iter().map(|result| result.len).collect(),
            kernels: Vec::new(),
            arrays: Vec::new(),
        },
    };
    straightener.run(bundle)?;
    Ok(straightener.out)
}

struct Straightener {
    values: Vec<Option<Item>>,
    /// What each slot that is not memory holds.
    held: Vec<Option<Item>>,
    argument_items: Vec<Vec<Option<Item>>>,
    constant_items: HashMap<u64, Item>,
    tables: Vec<u32>,
    slot_places: Vec<Option<u32>>,
    out: Straight,
}

impl Straightener {
    fn run(&mut self, bundle: &Bundle) -> Result<(), Refusal> {
        for table in &bundle.tables {
            self.tables.push(self.out.constants.len() as u32);
            self.out.constants.extend(table);
        }
        // Arrays are the first slots, and memory.
        self.out.arrays = (0..bundle.arrays.len() as u32)
            .map(|array| bundle.array(array))
            .map(|range| (range.start as u32, range.len() as u32))
            .collect();
        for segment in &bundle.segments {
            match segment {
                Segment::Flat(statements) => {
                    statements.iter().try_for_each(|statement| self.statement(statement))?;
                }
                Segment::Kernel { kernel, inputs, output } => {
                    let inputs =
                        inputs.iter().map(|&run| self.stretch(run)).collect::<Result<Vec<_>, _>>()?;
                    let output = self.slot(*output)?;
                    self.out.ops.push(Op::Kernel(self.out.kernels.len() as u32));
                    self.out.kernels.push(KernelCall { kernel: *kernel, inputs, output });
                }
            }
        }
        Ok(())
    }

    fn fresh(&mut self, home: Option<Place>) -> Item {
        self.out.homes.push(home);
        self.out.homes.len() as u32 - 1
    }

    fn assign(&mut self, value: ValueId) -> Result<Item, Refusal> {
        let item = self.fresh(None);
        *self.values.get_mut(value.0 as usize).ok_or(Refusal::Bundle)? = Some(item);
        Ok(item)
    }

    fn base_of(&self, group: Group) -> Result<usize, Refusal> {
        self.out.arguments.iter().position(|&(g, _)| g == group).ok_or(Refusal::Bundle)
    }

    fn slot(&self, slot: u32) -> Result<u32, Refusal> {
        self.slot_places.get(slot as usize).copied().flatten().ok_or(Refusal::Bundle)
    }

    fn read(&mut self, operand: Operand) -> Result<Item, Refusal> {
        match operand {
            Operand::Value(value) => {
                self.values.get(value.0 as usize).copied().flatten().ok_or(Refusal::Bundle)
            }
            Operand::Argument(group, index) => {
                let base = self.base_of(group)?;
                let known = self.argument_items[base].get(index as usize).ok_or(Refusal::Bundle)?;
                if let Some(item) = *known {
                    return Ok(item);
                }
                let item = self.fresh(Some(Place { base: FIRST + base as u8, index }));
                self.argument_items[base][index as usize] = Some(item);
                Ok(item)
            }
            Operand::Constant(value) => {
                if let Some(&item) = self.constant_items.get(&value.to_bits()) {
                    return Ok(item);
                }
                let index = self.out.constants.len() as u32;
                self.out.constants.push(value);
                let item = self.fresh(Some(Place { base: CONSTANTS, index }));
                self.constant_items.insert(value.to_bits(), item);
                Ok(item)
            }
        }
    }

    fn read_all<const N: usize>(&mut self, operands: [Operand; N]) -> Result<[Item; N], Refusal> {
        let mut items = [0; N];
        for (item, operand) in items.iter_mut().zip(operands) {
            *item = self.read(operand)?;
        }
        Ok(items)
    }

    fn stretch(&self, run: Run) -> Result<Stretch, Refusal> {
        let (base, index, len) = match run {
            Run::Table { table, len } => {
                (CONSTANTS, *self.tables.get(table as usize).ok_or(Refusal::Bundle)?, len)
            }
            Run::Argument { group, start, len } => (FIRST + self.base_of(group)? as u8, start, len),
            Run::Slots { len: 0, .. } => (MEMORY, 0, 0),
            Run::Slots { start, len } => (MEMORY, self.slot(start)?, len),
        };
        Ok(Stretch { first: Place { base, index }, len })
    }

    fn statement(&mut self, statement: &Statement) -> Result<(), Refusal> {
        let op = match *statement {
            Statement::Load(value, slot) => match self.slot_places.get(slot as usize).copied().flatten() {
                Some(place) => Op::Load(place, self.assign(value)?),
                None => {
                    let held = self.held.get(slot as usize).copied().flatten();
                    let held = held.ok_or(Refusal::Bundle)?;
                    *self.values.get_mut(value.0 as usize).ok_or(Refusal::Bundle)? = Some(held);
                    return Ok(());
                }
            },
            Statement::Store(slot, operand) => {
                let item = self.read(operand)?;
                match self.slot_places.get(slot as usize).copied().flatten() {
                    Some(place) => Op::Store(item, place),
                    None => {
                        *self.held.get_mut(slot as usize).ok_or(Refusal::Bundle)? = Some(item);
                        return Ok(());
                    }
                }
            }
            Statement::Result { result, index, value } => {
                let base = FIRST + (self.out.arguments.len() + result as usize) as u8;
                Op::Result(self.read(value)?, Place { base, index })
            }
            Statement::SinCos(sine, cosine, angle) => {
                let angle = self.read(angle)?;
                Op::SinCos(angle, [self.assign(sine)?, self.assign(cosine)?])
            }
            Statement::Compute(value, operation) => self.compute(value, operation)?,
        };
        self.out.ops.push(op);
        Ok(())
    }

    fn compute(&mut self, value: ValueId, operation: Operation) -> Result<Op, Refusal> {
        Ok(match operation {
            Operation::Unary(op, a) => {
                let (a, to) = (self.read(a)?, self.assign(value)?);
                match op {
                    UnaryOp::Neg => Op::Neg(a, to),
                    UnaryOp::Abs => Op::Abs(a, to),
                    UnaryOp::Sqrt => Op::Sqrt(a, to),
                    _ => Op::Call(op, a, to),
                }
            }
            Operation::Binary(op, a, b) => {
                let (two, to) = (self.read_all([a, b])?, self.assign(value)?);
                match op {
                    BinaryOp::Add => Op::Arithmetic(Arithmetic::Add, two, to),
                    BinaryOp::Sub => Op::Arithmetic(Arithmetic::Sub, two, to),
                    BinaryOp::Mul => Op::Arithmetic(Arithmetic::Mul, two, to),
                    BinaryOp::Div => Op::Arithmetic(Arithmetic::Div, two, to),
                    // The runtime's `if b < a { b } else { a }` is the instruction with its operands exchanged.
                    BinaryOp::Min => Op::Arithmetic(Arithmetic::Min, [two[1], two[0]], to),
                    BinaryOp::Max => Op::Arithmetic(Arithmetic::Max, [two[1], two[0]], to),
                    BinaryOp::Pow | BinaryOp::Atan2 => Op::CallTwo(op, two, to),
                }
            }
            Operation::MulAdd(a, b, c) => {
                Op::MulAdd(Product::Add, self.read_all([a, b, c])?, self.assign(value)?)
            }
            Operation::MulSub(a, b, c) => {
                Op::MulAdd(Product::Sub, self.read_all([a, b, c])?, self.assign(value)?)
            }
            Operation::NegMulAdd(a, b, c) => {
                Op::MulAdd(Product::NegAdd, self.read_all([a, b, c])?, self.assign(value)?)
            }
            Operation::Select(comparison, four) => {
                Op::Select(comparison, self.read_all(four)?, self.assign(value)?)
            }
            Operation::Gather(run, index) => {
                Op::Gather(self.stretch(run)?, self.read(index)?, self.assign(value)?)
            }
            Operation::Locate(run, x) => Op::Locate(self.stretch(run)?, self.read(x)?, self.assign(value)?),
        })
    }
}

/// Slots that are read as runs, or that kernels or loops read and write.
fn addressed_slots(bundle: &Bundle) -> Vec<u32> {
    let mut slots: Vec<u32> = (0..bundle.array_slots() as u32).collect();
    let mut add = |run: Run| {
        if let Run::Slots { start, len } = run {
            slots.extend(start..start + len);
        }
    };
    for segment in &bundle.segments {
        match segment {
            Segment::Flat(statements) => {
                for statement in statements {
                    if let Statement::Compute(_, Operation::Gather(run, _) | Operation::Locate(run, _)) =
                        *statement
                    {
                        add(run);
                    }
                }
            }
            Segment::Kernel { kernel, inputs, output } => {
                inputs.iter().for_each(|&run| add(run));
                add(Run::Slots { start: *output, len: (kernel.outputs() + kernel.scratch()) as u32 });
            }
        }
    }
    slots
}
