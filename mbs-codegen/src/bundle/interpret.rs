//! Interprets a bundle: the same statements as the printed code, in the same order unless that is packed.

use super::{Bundle, Memory, Operand, Operation, Run, Segment, Statement};
use crate::graph::UnaryOp;
use crate::graph::number::{self, Number};
use crate::symbols::Group;

/// The arguments of a bundle, one slice per group (empty where not taken).
#[derive(Clone, Copy, Debug)]
pub struct Arguments<'a, N> {
    groups: [&'a [N]; Group::ALL.len()],
}

impl<'a, N> Arguments<'a, N> {
    /// No arguments.
    pub fn new() -> Self {
        Arguments { groups: [&[]; Group::ALL.len()] }
    }

    /// Adds the values of one group.
    pub fn with(mut self, group: Group, values: &'a [N]) -> Self {
        self.groups[group as usize] = values;
        self
    }
}

impl<N> Default for Arguments<'_, N> {
    fn default() -> Self {
        Self::new()
    }
}

/// Why a bundle was not run: a slice is too short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooShort {
    /// Name of the slice.
    pub what: &'static str,
    /// Required length.
    pub expected: usize,
    /// Actual length.
    pub found: usize,
}

impl std::fmt::Display for TooShort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` has {} numbers where {} are needed", self.what, self.found, self.expected)
    }
}

impl std::error::Error for TooShort {}

/// Length of the scratch of [`run`].
pub fn scratch_len(bundle: &Bundle) -> usize {
    (bundle.values + bundle.slots) as usize
}

/// Runs a bundle; allocates nothing unless it has kernels or loops.
pub fn run<N: Number>(
    bundle: &Bundle,
    arguments: &Arguments<'_, N>,
    scratch: &mut [N],
    results: &mut [&mut [N]],
) -> Result<(), TooShort> {
    let require = |what, expected: usize, found: usize| {
        if found < expected { Err(TooShort { what, expected, found }) } else { Ok(()) }
    };
    for &(group, len) in &bundle.arguments {
        require(group.identifier(), len as usize, arguments.groups[group as usize].len())?;
    }
    require("results", bundle.results.len(), results.len())?;
    for (result, given) in bundle.results.iter().zip(results.iter()) {
        require(result.name, result.len as usize, given.len())?;
    }
    require("scratch", scratch_len(bundle), scratch.len())?;
    let (values, slots) = scratch.split_at_mut(bundle.values as usize);
    if !bundle.loops.is_empty() {
        slots[..bundle.array_slots()].fill(N::constant(0.0));
        results.iter_mut().for_each(|result| result.fill(N::constant(0.0)));
    }
    let mut machine = Machine { bundle, arguments, values, slots };
    for segment in &bundle.segments {
        match segment {
            Segment::Flat(statements) => {
                for statement in statements {
                    machine.statement(statement, results);
                }
            }
            Segment::Kernel { kernel, inputs, output } => {
                let inputs: Vec<N> = inputs
                    .iter()
                    .flat_map(|&run| (0..machine.run_len(run)).map(move |i| (run, i)))
                    .map(|(run, i)| machine.run_element(run, i))
                    .collect();
                let output = *output as usize;
                kernel.evaluate(&inputs, &mut machine.slots[output..output + kernel.outputs()]);
            }
        }
    }
    for each in &bundle.loops {
        let read = |memory: Memory| match memory {
            Memory::Array(array) => machine.slots[bundle.array(array)].to_vec(),
            Memory::Result(result) => results[result as usize].to_vec(),
        };
        // A loop writes to separate memory, since it may read neighbouring entries.
        let mut to = read(each.writes());
        each.run(read, &mut to);
        match each.writes() {
            Memory::Array(array) => machine.slots[bundle.array(array)].copy_from_slice(&to),
            Memory::Result(result) => results[result as usize].copy_from_slice(&to),
        }
    }
    Ok(())
}

struct Machine<'a, N> {
    bundle: &'a Bundle,
    arguments: &'a Arguments<'a, N>,
    values: &'a mut [N],
    slots: &'a mut [N],
}

impl<N: Number> Machine<'_, N> {
    fn read(&self, operand: Operand) -> N {
        match operand {
            Operand::Constant(value) => N::constant(value),
            Operand::Argument(group, index) => self.arguments.groups[group as usize][index as usize],
            Operand::Value(value) => self.values[value.0 as usize],
        }
    }

    fn run_len(&self, run: Run) -> usize {
        match run {
            Run::Table { len, .. } | Run::Argument { len, .. } | Run::Slots { len, .. } => len as usize,
        }
    }

    fn run_element(&self, run: Run, i: usize) -> N {
        match run {
            Run::Table { table, .. } => N::constant(self.bundle.tables[table as usize][i]),
            Run::Argument { group, start, .. } => self.arguments.groups[group as usize][start as usize + i],
            Run::Slots { start, .. } => self.slots[start as usize + i],
        }
    }

    /// The interval of x in a run of knots: bisection on the real part.
    fn locate(&self, run: Run, x: N) -> N {
        let last = self.run_len(run).saturating_sub(1);
        let (mut low, mut high) = (1, last.max(1));
        while low < high {
            let middle = (low + high) / 2;
            if self.run_element(run, middle).real() <= x.real() {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        N::constant((low - 1) as f64)
    }

    fn operation(&self, operation: &Operation) -> N {
        match *operation {
            Operation::Unary(op, a) => N::unary(op, self.read(a)),
            Operation::Binary(op, a, b) => N::binary(op, self.read(a), self.read(b)),
            Operation::MulAdd(a, b, c) => self.read(a) * self.read(b) + self.read(c),
            Operation::MulSub(a, b, c) => self.read(a) * self.read(b) - self.read(c),
            Operation::NegMulAdd(a, b, c) => self.read(c) - self.read(a) * self.read(b),
            Operation::Select(comparison, [a, b, x, y]) => {
                if number::compare(comparison, self.read(a), self.read(b)) {
                    self.read(x)
                } else {
                    self.read(y)
                }
            }
            Operation::Gather(run, index) => {
                self.run_element(run, number::gather_index(self.read(index).real(), self.run_len(run)))
            }
            Operation::Locate(run, x) => self.locate(run, self.read(x)),
        }
    }

    fn statement(&mut self, statement: &Statement, results: &mut [&mut [N]]) {
        match *statement {
            Statement::Load(value, slot) => self.values[value.0 as usize] = self.slots[slot as usize],
            Statement::Compute(value, ref operation) => {
                self.values[value.0 as usize] = self.operation(operation);
            }
            Statement::SinCos(sine, cosine, angle) => {
                let angle = self.read(angle);
                self.values[sine.0 as usize] = N::unary(UnaryOp::Sin, angle);
                self.values[cosine.0 as usize] = N::unary(UnaryOp::Cos, angle);
            }
            Statement::Store(slot, operand) => self.slots[slot as usize] = self.read(operand),
            Statement::Result { result, index, value } => {
                results[result as usize][index as usize] = self.read(value);
            }
        }
    }
}
