//! A bundle as a tape: instructions over one stretch of memory.
//!
//! Enters: a verified [`Bundle`]. Leaves: a [`Tape`], whose operands are plain indices.
//! Holds afterwards: the tape computes what the bundle computes, operation by operation, in the same order, with
//! the runtime's functions. Loads and stores between segments are gone where an index can stand for them, and
//! the place of a value is used again once nothing reads it.
//!
//! The memory, which is the caller's scratch:
//!
//! | part | content |
//! |---|---|
//! | constants | numbers and tables, copied in at every run |
//! | arguments | copied in at every run, group by group |
//! | slots | those that are read as runs or belong to kernels |
//! | places | values |

use mbs_codegen::bundle::{Bundle, Operand, Operation, Run, Segment, Statement};
use mbs_codegen::graph::{BinaryOp, Comparison, Kernel, UnaryOp};
use mbs_codegen::symbols::Group;
use mbs_runtime::{EvalError, Scalar, math};
use std::collections::{HashMap, HashSet};

/// An index into the memory.
type Place = u32;

/// A stretch of the memory: first place and length.
type Stretch = (u32, u32);

/// What a tape does. The frequent operations have their own variant, so that they are decided upon once.
#[derive(Clone, Copy, Debug)]
enum Instruction {
    Add([Place; 3]),
    Sub([Place; 3]),
    Mul([Place; 3]),
    Div([Place; 3]),
    Neg([Place; 2]),
    MulAdd([Place; 4]),
    MulSub([Place; 4]),
    NegMulAdd([Place; 4]),
    /// sine, cosine, angle
    SinCos([Place; 3]),
    Copy([Place; 2]),
    Unary(UnaryOp, [Place; 2]),
    Binary(BinaryOp, [Place; 3]),
    /// to, and which of the selects
    Select(Comparison, [Place; 2]),
    /// to, which stretch, index
    Gather([Place; 3]),
    /// to, which stretch, x
    Locate([Place; 3]),
    /// which call
    Kernel(u32),
}

/// A kernel's call.
#[derive(Clone, Debug)]
struct Call {
    kernel: Kernel,
    inputs: Vec<Stretch>,
    /// Outputs, then scratch; after all inputs that lie in slots.
    output: u32,
}

/// A bundle, ready to run.
#[derive(Clone, Debug)]
pub(crate) struct Tape<S> {
    constants: Vec<S>,
    arguments: Vec<(Group, usize)>,
    instructions: Vec<Instruction>,
    selects: Vec<[Place; 4]>,
    stretches: Vec<Stretch>,
    calls: Vec<Call>,
    results: Vec<(&'static str, Vec<Place>)>,
    memory: usize,
}

/// The arguments of a bundle, a slice per group (empty where not taken).
pub(crate) type Arguments<'a, S> = [&'a [S]; Group::ALL.len()];

/// An error where a slice has not exactly the expected length.
fn exactly(what: &'static str, expected: usize, found: usize) -> Result<(), EvalError> {
    if expected == found {
        Ok(())
    } else {
        Err(EvalError::Length {
            what,
            expected,
            found,
        })
    }
}

impl<S: Scalar> Tape<S> {
    /// The tape of a bundle.
    pub(crate) fn new(bundle: &Bundle) -> Tape<S> {
        Assembler::new(bundle).assemble(bundle)
    }

    /// The tape that does nothing.
    pub(crate) fn empty() -> Tape<S> {
        Tape {
            constants: Vec::new(),
            arguments: Vec::new(),
            instructions: Vec::new(),
            selects: Vec::new(),
            stretches: Vec::new(),
            calls: Vec::new(),
            results: Vec::new(),
            memory: 0,
        }
    }

    /// How many scalars a result has.
    pub(crate) fn result_len(&self, result: usize) -> usize {
        self.results.get(result).map_or(0, |(_, places)| places.len())
    }

    /// How long the scratch of a run is.
    pub(crate) fn memory(&self) -> usize {
        self.memory
    }

    /// Runs the tape. Arguments and results must have exactly their lengths; the scratch may be longer than needed.
    pub(crate) fn run(
        &self,
        arguments: &Arguments<'_, S>,
        w: &mut [S],
        results: &mut [&mut [S]],
    ) -> Result<(), EvalError> {
        for &(group, len) in &self.arguments {
            exactly(group.identifier(), len, arguments[group as usize].len())?;
        }
        let (expected, found) = (self.memory, w.len());
        let w = w.get_mut(..expected).ok_or(EvalError::Length {
            what: "w",
            expected,
            found,
        })?;
        exactly("results", self.results.len(), results.len())?;
        for ((what, places), given) in self.results.iter().zip(results.iter()) {
            exactly(what, places.len(), given.len())?;
        }

        w[..self.constants.len()].copy_from_slice(&self.constants);
        let mut start = self.constants.len();
        for &(group, len) in &self.arguments {
            w[start..start + len].copy_from_slice(arguments[group as usize]);
            start += len;
        }
        for &instruction in &self.instructions {
            self.execute(instruction, w);
        }
        for ((_, places), out) in self.results.iter().zip(results) {
            for (out, &place) in out.iter_mut().zip(places) {
                *out = w[place as usize];
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn execute(&self, instruction: Instruction, w: &mut [S]) {
        let at = |place: Place| place as usize;
        match instruction {
            Instruction::Add([to, a, b]) => w[at(to)] = w[at(a)] + w[at(b)],
            Instruction::Sub([to, a, b]) => w[at(to)] = w[at(a)] - w[at(b)],
            Instruction::Mul([to, a, b]) => w[at(to)] = w[at(a)] * w[at(b)],
            Instruction::Div([to, a, b]) => w[at(to)] = w[at(a)] / w[at(b)],
            Instruction::Neg([to, a]) => w[at(to)] = -w[at(a)],
            Instruction::MulAdd([to, a, b, c]) => w[at(to)] = math::mul_add(w[at(a)], w[at(b)], w[at(c)]),
            Instruction::MulSub([to, a, b, c]) => w[at(to)] = math::mul_add(w[at(a)], w[at(b)], -w[at(c)]),
            Instruction::NegMulAdd([to, a, b, c]) => w[at(to)] = math::mul_add(-w[at(a)], w[at(b)], w[at(c)]),
            Instruction::SinCos([sine, cosine, angle]) => {
                (w[at(sine)], w[at(cosine)]) = math::sin_cos(w[at(angle)]);
            }
            Instruction::Copy([to, a]) => w[at(to)] = w[at(a)],
            Instruction::Unary(op, [to, a]) => w[at(to)] = unary(op, w[at(a)]),
            Instruction::Binary(op, [to, a, b]) => w[at(to)] = binary(op, w[at(a)], w[at(b)]),
            Instruction::Select(comparison, [to, which]) => {
                let [a, b, x, y] = self.selects[at(which)].map(|place| w[at(place)]);
                w[at(to)] = match comparison {
                    Comparison::Less => math::select_lt(a, b, x, y),
                    Comparison::LessEqual => math::select_le(a, b, x, y),
                    Comparison::Equal => math::select_eq(a, b, x, y),
                };
            }
            Instruction::Gather([to, which, index]) => {
                w[at(to)] = math::gather(stretch(w, self.stretches[at(which)]), w[at(index)]);
            }
            Instruction::Locate([to, which, x]) => {
                w[at(to)] = math::locate(stretch(w, self.stretches[at(which)]), w[at(x)]);
            }
            Instruction::Kernel(which) => call(&self.calls[at(which)], w),
        }
    }
}

fn stretch<S>(w: &[S], (start, len): Stretch) -> &[S] {
    &w[start as usize..(start + len) as usize]
}

#[inline(never)]
fn unary<S: Scalar>(op: UnaryOp, a: S) -> S {
    match op {
        UnaryOp::Neg => -a,
        UnaryOp::Sqrt => math::sqrt(a),
        UnaryOp::Sin => math::sin(a),
        UnaryOp::Cos => math::cos(a),
        UnaryOp::Tan => math::tan(a),
        UnaryOp::Asin => math::asin(a),
        UnaryOp::Acos => math::acos(a),
        UnaryOp::Atan => math::atan(a),
        UnaryOp::Exp => math::exp(a),
        UnaryOp::Ln => math::ln(a),
        UnaryOp::Sinh => math::sinh(a),
        UnaryOp::Cosh => math::cosh(a),
        UnaryOp::Tanh => math::tanh(a),
        UnaryOp::Abs => math::abs(a),
        UnaryOp::Sign => math::sign(a),
    }
}

#[inline(never)]
fn binary<S: Scalar>(op: BinaryOp, a: S, b: S) -> S {
    match op {
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a * b,
        BinaryOp::Div => a / b,
        BinaryOp::Pow => math::powf(a, b),
        BinaryOp::Atan2 => math::atan2(a, b),
        BinaryOp::Min => math::min(a, b),
        BinaryOp::Max => math::max(a, b),
    }
}

#[inline(never)]
fn call<S: Scalar>(call: &Call, w: &mut [S]) {
    let (before, after) = w.split_at_mut(call.output as usize);
    let (results, rest) = after.split_at_mut(call.kernel.outputs());
    match (call.kernel, call.inputs.as_slice()) {
        (Kernel::SolveTridiagonal { n }, &[lower, diagonal, upper, rhs]) => {
            let [lower, diagonal, upper, rhs] = [lower, diagonal, upper, rhs].map(|run| stretch(before, run));
            math::solve_tridiagonal(lower, diagonal, upper, rhs, &mut rest[..n as usize], results);
        }
        // A verified bundle gives a kernel the runs it declares.
        (Kernel::SolveTridiagonal { .. }, _) => {}
    }
}

/// Where a value is found while the tape is put together: at a place that is known already, or at a place for a
/// value that is still to be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Fixed(Place),
    Value(u32),
}

/// Turns statements into instructions; places of values are chosen as they come and go.
struct Assembler<S> {
    constants: Vec<S>,
    constant_places: HashMap<u64, Place>,
    tables: Vec<u32>,
    arguments: Vec<(Group, usize)>,
    argument_starts: [u32; Group::ALL.len()],
    /// Slots that must be memory: first place of each.
    slots: u32,
    slot_places: HashMap<u32, Place>,
    /// What stands for each value: itself, or what a slot that it was loaded from held.
    values: HashMap<u32, Source>,
    /// What each other slot holds.
    held: HashMap<u32, Source>,
    steps: Vec<(Step, Vec<Source>)>,
    results: Vec<(&'static str, Vec<Source>)>,
    stretches: Vec<Stretch>,
    calls: Vec<Call>,
}

/// An instruction without its operands.
#[derive(Clone, Copy, Debug)]
enum Step {
    Unary(UnaryOp, u32),
    Binary(BinaryOp, u32),
    MulAdd(u32),
    MulSub(u32),
    NegMulAdd(u32),
    SinCos(u32, u32),
    Select(Comparison, u32),
    Gather(u32, u32),
    Locate(u32, u32),
    /// From a slot that is memory.
    Load(u32),
    /// To a slot that is memory.
    Store(Place),
    Kernel(u32),
}

impl<S: Scalar> Assembler<S> {
    fn new(bundle: &Bundle) -> Self {
        let mut this = Assembler {
            constants: Vec::new(),
            constant_places: HashMap::new(),
            tables: Vec::new(),
            arguments: Vec::new(),
            argument_starts: [0; Group::ALL.len()],
            slots: 0,
            slot_places: HashMap::new(),
            values: HashMap::new(),
            held: HashMap::new(),
            steps: Vec::new(),
            results: Vec::new(),
            stretches: Vec::new(),
            calls: Vec::new(),
        };
        this.lay_out(bundle);
        this
    }

    /// Gives constants, arguments and slots that are memory their places.
    fn lay_out(&mut self, bundle: &Bundle) {
        for table in &bundle.tables {
            self.tables.push(self.constants.len() as u32);
            self.constants
                .extend(table.iter().map(|&value| S::from_f64(value)));
        }
        for segment in &bundle.segments {
            let Segment::Flat(statements) = segment else {
                continue;
            };
            for statement in statements {
                statement.operands(|operand| {
                    if let Operand::Constant(value) = operand {
                        self.constant_places.entry(value.to_bits()).or_insert_with(|| {
                            self.constants.push(S::from_f64(value));
                            self.constants.len() as u32 - 1
                        });
                    }
                });
            }
        }
        self.arguments = bundle
            .arguments
            .iter()
            .map(|&(group, len)| (group, len as usize))
            .collect();
        self.arguments.sort();
        let mut start = self.constants.len() as u32;
        for &(group, len) in &self.arguments {
            self.argument_starts[group as usize] = start;
            start += len as u32;
        }
        // Slots keep their order, so that runs of them stay runs.
        let mut addressed: Vec<u32> = addressed_slots(bundle).into_iter().collect();
        addressed.sort_unstable();
        self.slots = start;
        self.slot_places = addressed
            .iter()
            .zip(start..)
            .map(|(&slot, place)| (slot, place))
            .collect();
    }

    fn operand(&self, operand: Operand) -> Source {
        match operand {
            Operand::Constant(value) => Source::Fixed(self.constant_places[&value.to_bits()]),
            Operand::Argument(group, index) => Source::Fixed(self.argument_starts[group as usize] + index),
            Operand::Value(value) => self.values[&value.0],
        }
    }

    fn stretch(&self, run: Run) -> Stretch {
        match run {
            Run::Table { table, len } => (self.tables[table as usize], len),
            Run::Argument { group, start, len } => (self.argument_starts[group as usize] + start, len),
            Run::Slots { start, len } => (self.slot_places.get(&start).copied().unwrap_or(self.slots), len),
        }
    }

    fn assemble(mut self, bundle: &Bundle) -> Tape<S> {
        self.results = bundle
            .results
            .iter()
            .map(|result| (result.name, vec![Source::Fixed(0); result.len as usize]))
            .collect();
        for segment in &bundle.segments {
            match segment {
                Segment::Flat(statements) => statements.iter().for_each(|s| self.statement(s)),
                Segment::Kernel {
                    kernel,
                    inputs,
                    output,
                } => {
                    let inputs = inputs.iter().map(|&run| self.stretch(run)).collect();
                    let output = self.slot_places[output];
                    self.steps
                        .push((Step::Kernel(self.calls.len() as u32), Vec::new()));
                    self.calls.push(Call {
                        kernel: *kernel,
                        inputs,
                        output,
                    });
                }
            }
        }
        self.choose_places()
    }

    /// A new value.
    fn assign(&mut self, value: u32) -> u32 {
        self.values.insert(value, Source::Value(value));
        value
    }

    fn statement(&mut self, statement: &Statement) {
        match *statement {
            Statement::Load(value, slot) => match self.slot_places.get(&slot) {
                Some(&place) => {
                    let to = self.assign(value.0);
                    self.steps.push((Step::Load(to), vec![Source::Fixed(place)]));
                }
                None => {
                    self.values.insert(value.0, self.held[&slot]);
                }
            },
            Statement::Store(slot, operand) => {
                let operand = self.operand(operand);
                match self.slot_places.get(&slot) {
                    Some(&place) => self.steps.push((Step::Store(place), vec![operand])),
                    None => {
                        self.held.insert(slot, operand);
                    }
                }
            }
            Statement::Result { result, index, value } => {
                self.results[result as usize].1[index as usize] = self.operand(value);
            }
            Statement::SinCos(sine, cosine, angle) => {
                let angle = self.operand(angle);
                let step = Step::SinCos(self.assign(sine.0), self.assign(cosine.0));
                self.steps.push((step, vec![angle]));
            }
            Statement::Compute(value, operation) => {
                let mut operands = Vec::new();
                operation.operands(|operand| operands.push(self.operand(operand)));
                let to = self.assign(value.0);
                let step = match operation {
                    Operation::Unary(op, _) => Step::Unary(op, to),
                    Operation::Binary(op, ..) => Step::Binary(op, to),
                    Operation::MulAdd(..) => Step::MulAdd(to),
                    Operation::MulSub(..) => Step::MulSub(to),
                    Operation::NegMulAdd(..) => Step::NegMulAdd(to),
                    Operation::Select(comparison, _) => Step::Select(comparison, to),
                    Operation::Gather(run, _) => Step::Gather(to, self.add_stretch(run)),
                    Operation::Locate(run, _) => Step::Locate(to, self.add_stretch(run)),
                };
                self.steps.push((step, operands));
            }
        }
    }

    fn add_stretch(&mut self, run: Run) -> u32 {
        self.stretches.push(self.stretch(run));
        self.stretches.len() as u32 - 1
    }

    /// Gives every value a place, from its assignment to its last use.
    fn choose_places(self) -> Tape<S> {
        let mut last_use: HashMap<u32, usize> = HashMap::new();
        for (i, (_, operands)) in self.steps.iter().enumerate() {
            for operand in operands {
                if let Source::Value(value) = operand {
                    last_use.insert(*value, i);
                }
            }
        }
        for operand in self.results.iter().flat_map(|(_, operands)| operands) {
            if let Source::Value(value) = operand {
                last_use.insert(*value, usize::MAX);
            }
        }

        let mut places = Places {
            of: HashMap::new(),
            free: Vec::new(),
            end: self.slots + self.slot_places.len() as u32,
        };
        let mut instructions = Vec::with_capacity(self.steps.len());
        let mut selects = Vec::new();
        for (i, (step, operands)) in self.steps.iter().enumerate() {
            let operands: Vec<(Source, Place)> = operands.iter().map(|&o| (o, places.find(o))).collect();
            // Operands are read before the result is written, so a place that ends here may be the result's.
            for &(operand, _) in &operands {
                if let Source::Value(value) = operand
                    && last_use[&value] == i
                {
                    places.release(value);
                }
            }
            let x = |k: usize| operands.get(k).map_or(0, |&(_, place)| place);
            instructions.push(match *step {
                Step::Unary(UnaryOp::Neg, to) => Instruction::Neg([places.take(to), x(0)]),
                Step::Unary(op, to) => Instruction::Unary(op, [places.take(to), x(0)]),
                Step::Binary(op, to) => {
                    let all = [places.take(to), x(0), x(1)];
                    match op {
                        BinaryOp::Add => Instruction::Add(all),
                        BinaryOp::Sub => Instruction::Sub(all),
                        BinaryOp::Mul => Instruction::Mul(all),
                        BinaryOp::Div => Instruction::Div(all),
                        op => Instruction::Binary(op, all),
                    }
                }
                Step::MulAdd(to) => Instruction::MulAdd([places.take(to), x(0), x(1), x(2)]),
                Step::MulSub(to) => Instruction::MulSub([places.take(to), x(0), x(1), x(2)]),
                Step::NegMulAdd(to) => Instruction::NegMulAdd([places.take(to), x(0), x(1), x(2)]),
                Step::SinCos(sine, cosine) => {
                    Instruction::SinCos([places.take(sine), places.take(cosine), x(0)])
                }
                Step::Select(comparison, to) => {
                    selects.push([x(0), x(1), x(2), x(3)]);
                    Instruction::Select(comparison, [places.take(to), selects.len() as u32 - 1])
                }
                Step::Gather(to, run) => Instruction::Gather([places.take(to), run, x(0)]),
                Step::Locate(to, run) => Instruction::Locate([places.take(to), run, x(0)]),
                Step::Load(to) => Instruction::Copy([places.take(to), x(0)]),
                Step::Store(to) => Instruction::Copy([to, x(0)]),
                Step::Kernel(which) => Instruction::Kernel(which),
            });
            // What nobody reads gives its place back at once.
            for value in step.assigns().into_iter().flatten() {
                if !last_use.contains_key(&value) {
                    places.release(value);
                }
            }
        }
        let results = self
            .results
            .iter()
            .map(|(name, operands)| (*name, operands.iter().map(|&o| places.find(o)).collect()))
            .collect();
        Tape {
            constants: self.constants,
            arguments: self.arguments,
            instructions,
            selects,
            stretches: self.stretches,
            calls: self.calls,
            results,
            memory: places.end as usize,
        }
    }
}

impl Step {
    /// The values it assigns.
    fn assigns(self) -> [Option<u32>; 2] {
        match self {
            Step::Unary(_, to)
            | Step::Binary(_, to)
            | Step::MulAdd(to)
            | Step::MulSub(to)
            | Step::NegMulAdd(to)
            | Step::Select(_, to)
            | Step::Gather(to, _)
            | Step::Locate(to, _)
            | Step::Load(to) => [Some(to), None],
            Step::SinCos(sine, cosine) => [Some(sine), Some(cosine)],
            Step::Store(_) | Step::Kernel(_) => [None, None],
        }
    }
}

/// Places of values.
struct Places {
    of: HashMap<u32, Place>,
    free: Vec<Place>,
    end: Place,
}

impl Places {
    fn find(&self, operand: Source) -> Place {
        match operand {
            Source::Fixed(place) => place,
            Source::Value(value) => self.of[&value],
        }
    }

    /// A place for a value; the one that became free last, which is likely still in the cache.
    fn take(&mut self, value: u32) -> Place {
        let place = self.free.pop().unwrap_or_else(|| {
            self.end += 1;
            self.end - 1
        });
        self.of.insert(value, place);
        place
    }

    /// Gives the place of a value back; once, even where an operation reads the value twice.
    fn release(&mut self, value: u32) {
        if let Some(place) = self.of.remove(&value) {
            self.free.push(place);
        }
    }
}

/// Slots that are read as runs, or that kernels read and write.
fn addressed_slots(bundle: &Bundle) -> HashSet<u32> {
    let mut slots = HashSet::new();
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
            Segment::Kernel {
                kernel,
                inputs,
                output,
            } => {
                inputs.iter().for_each(|&run| add(run));
                let len = (kernel.outputs() + kernel.scratch()) as u32;
                add(Run::Slots { start: *output, len });
            }
        }
    }
    slots
}
