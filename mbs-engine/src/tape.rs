//! A bundle as a tape: operations over one stretch of memory.
//!
//! Input: a verified [`Bundle`]. Output: a [`Tape`], whose operands are plain indices.
//! Holds afterwards: the tape computes what the bundle computes, with the same operations on the same operands and
//! the runtime's functions, so to the same bits. Operations that do not wait for each other may have changed
//! places: those of one kind stand together in batches, so that the kind is decided upon once a batch and not
//! once an operation. Loads and stores between segments are gone where an index can stand for them, and the
//! place of a value is used again once nothing reads it.
//!
//! The memory, which is the caller's scratch:
//!
//! | part | content |
//! |---|---|
//! | constants | numbers and tables, copied in at every run |
//! | arguments | copied in at every run, group by group |
//! | slots | those that are read as runs or belong to kernels or loops |
//! | places | values |

use crate::machine_code::{Native, Policy};
use crate::rolled;
use mbs_codegen::bundle::{Bundle, Loop, Operand, Operation, Run, Segment, Statement};
use mbs_codegen::graph::{BinaryOp, Comparison, Kernel, UnaryOp};
use mbs_codegen::symbols::Group;
use mbs_jit::LANES;
use mbs_runtime::{EvalError, Scalar, math};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// An index into the memory.
type Place = u32;

/// A stretch of the memory: first place and length.
type Stretch = (u32, u32);

/// What the operations of a batch do. Operands follow the place of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Add,
    Sub,
    Mul,
    Div,
    Neg,
    MulAdd,
    MulSub,
    NegMulAdd,
    /// sine, cosine, angle
    SinCos,
    Copy,
    Unary(UnaryOp),
    Binary(BinaryOp),
    /// to, which of the selects
    Select(Comparison),
    /// to, which stretch, index
    Gather,
    /// to, which stretch, x
    Locate,
    /// which call
    Kernel,
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
    batches: Vec<(Kind, usize)>,
    operations: Vec<[Place; 4]>,
    selects: Vec<[Place; 4]>,
    stretches: Vec<Stretch>,
    calls: Vec<Call>,
    results: Vec<(&'static str, Vec<Place>)>,
    loops: Vec<Loop>,
    /// The arrays of the loops.
    arrays: Vec<Stretch>,
    memory: usize,
    /// The same as machine code, if there is some; and over four columns, for solves.
    /// Copies of a tape share it.
    native: Arc<Native>,
    lanes: Arc<Native>,
    /// How much memory machine code needs at most.
    native_memory: usize,
}

/// The most results of a bundle that is compiled.
const RESULTS: usize = 8;

/// The arguments of a bundle, a slice per group (empty where not taken).
pub type Arguments<'a, S> = [&'a [S]; Group::ALL.len()];

/// An error where a slice has not exactly the expected length.
fn exactly(what: &'static str, expected: usize, found: usize) -> Result<(), EvalError> {
    if expected == found { Ok(()) } else { Err(EvalError::Length { what, expected, found }) }
}

impl<S: Scalar> Tape<S> {
    /// The tape of a bundle.
    pub(crate) fn new(bundle: &Bundle) -> Tape<S> {
        Assembler::new(bundle).assemble(bundle)
    }

    /// The empty tape.
    pub(crate) fn empty() -> Tape<S> {
        Tape {
            constants: Vec::new(),
            arguments: Vec::new(),
            batches: Vec::new(),
            operations: Vec::new(),
            selects: Vec::new(),
            stretches: Vec::new(),
            calls: Vec::new(),
            results: Vec::new(),
            loops: Vec::new(),
            arrays: Vec::new(),
            memory: 0,
            native: Arc::default(),
            lanes: Arc::default(),
            native_memory: 0,
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

    /// Says that an evaluation comes: compiles the bundle, from which the tape was made, if it is time.
    #[inline]
    pub(crate) fn expect_run<'b>(&self, policy: Policy, bundle: impl FnOnce() -> Option<&'b Bundle>) {
        if S::doubles(&[]).is_some() && self.results.len() <= RESULTS {
            self.native.count(policy, self.memory, |fusing| Some(mbs_jit::compile(bundle()?, fusing)));
        }
    }

    /// Announces a solve of several columns: as [`Tape::expect_run`], for code over four columns, which share everything but the
    /// right-hand side.
    pub(crate) fn expect_columns<'b>(&self, policy: Policy, bundle: impl FnOnce() -> Option<&'b Bundle>) {
        const SHARED: [Group; 2] = [Group::Factors, Group::Prepared];
        if S::doubles(&[]).is_some() && self.results.len() == 1 {
            let memory = LANES * self.native_memory;
            let compile = |fusing| Some(mbs_jit::compile_lanes(bundle()?, &SHARED, fusing));
            self.lanes.count(policy, memory, compile);
        }
    }

    /// How long the scratch of [`Tape::run_columns`] is.
    pub(crate) fn columns_memory(&self) -> usize {
        LANES * (self.native_memory + 2 * self.result_len(0))
    }

    /// Solves for up to four columns from `first` on: row i of column k is `x[i * columns + k]`. None where there is no machine code for it.
    pub(crate) fn run_columns(
        &self,
        arguments: &Arguments<'_, S>,
        [first, columns]: [usize; 2],
        w: &mut [S],
        x: &mut [S],
    ) -> Option<()> {
        let lanes = self.lanes.get()?;
        let n = self.result_len(0);
        let (memory, rest) = S::doubles_mut(w)?.split_at_mut_checked(lanes.memory())?;
        let (rhs, rest) = rest.split_at_mut_checked(LANES * n)?;
        let solution = rest.get_mut(..LANES * n)?;
        let x = S::doubles_mut(x)?.get_mut(..n * columns)?;
        let these = first..columns.min(first + LANES);
        // Columns that are not there are zero.
        rhs.fill(0.0);
        for (rhs, row) in rhs.chunks_exact_mut(LANES).zip(x.chunks_exact(columns)) {
            rhs.iter_mut().zip(row.get(these.clone())?).for_each(|(to, &from)| *to = from);
        }
        let mut given: [&[f64]; Group::ALL.len()] = [&[]; Group::ALL.len()];
        for (given, &(group, len)) in given.iter_mut().zip(&self.arguments) {
            *given = match group {
                Group::Rhs => rhs,
                _ => S::doubles(arguments[group as usize]).filter(|slice| slice.len() == len)?,
            };
        }
        lanes.run(&given[..self.arguments.len()], memory, &mut [&mut *solution]).ok()?;
        for (solution, row) in solution.chunks_exact(LANES).zip(x.chunks_exact_mut(columns)) {
            row.get_mut(these.clone())?.iter_mut().zip(solution).for_each(|(to, &from)| *to = from);
        }
        Some(())
    }

    /// Forgets machine code and evaluations.
    pub(crate) fn reset(&mut self) {
        (self.native, self.lanes) = Default::default();
    }

    /// Whether machine code runs in its place.
    pub(crate) fn is_compiled(&self) -> bool {
        self.native.get().is_some()
    }

    /// Runs machine code, where there is some: its loops are left.
    #[inline]
    fn run_native(
        &self,
        arguments: &Arguments<'_, S>,
        w: &mut [S],
        results: &mut [&mut [S]],
    ) -> Option<&[Stretch]> {
        let native = self.native.get()?;
        let mut given: [&[f64]; Group::ALL.len()] = [&[]; Group::ALL.len()];
        // Counted, not zipped: a few loops as short as these are a good part of a small bundle.
        for (i, &(group, _)) in self.arguments.iter().enumerate() {
            given[i] = S::doubles(arguments[group as usize])?;
        }
        let mut written: [&mut [f64]; RESULTS] = Default::default();
        for (i, result) in results.iter_mut().enumerate() {
            *written.get_mut(i)? = S::doubles_mut(result)?;
        }
        let (given, written) = (&given[..self.arguments.len()], &mut written[..self.results.len()]);
        native.run(given, S::doubles_mut(w)?, written).ok()?;
        Some(native.arrays())
    }

    /// Runs the tape, or the machine code in its place. Arguments and results must have exactly their lengths; the scratch may be longer than needed.
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
        let w = w.get_mut(..expected).ok_or(EvalError::Length { what: "w", expected, found })?;
        exactly("results", self.results.len(), results.len())?;
        for (i, (what, places)) in self.results.iter().enumerate() {
            exactly(what, places.len(), results[i].len())?;
        }

        if let Some(arrays) = self.run_native(arguments, w, results) {
            self.loops.iter().for_each(|each| rolled::run(each, arrays, w, results));
            return Ok(());
        }
        w[..self.constants.len()].copy_from_slice(&self.constants);
        let mut start = self.constants.len();
        for &(group, len) in &self.arguments {
            w[start..start + len].copy_from_slice(arguments[group as usize]);
            start += len;
        }
        for &(start, len) in &self.arrays {
            w[start as usize..(start + len) as usize].fill(S::ZERO);
        }
        let mut rest = self.operations.as_slice();
        for &(kind, len) in &self.batches {
            let (batch, after) = rest.split_at(len);
            self.execute(kind, batch, w);
            rest = after;
        }
        for ((_, places), out) in self.results.iter().zip(results.iter_mut()) {
            for (out, &place) in out.iter_mut().zip(places) {
                *out = w[place as usize];
            }
        }
        self.loops.iter().for_each(|each| rolled::run(each, &self.arrays, w, results));
        Ok(())
    }

    #[inline(always)]
    fn execute(&self, kind: Kind, batch: &[[Place; 4]], w: &mut [S]) {
        let at = |place: Place| place as usize;
        match kind {
            Kind::Add => batch.iter().for_each(|&[to, a, b, _]| w[at(to)] = w[at(a)] + w[at(b)]),
            Kind::Sub => batch.iter().for_each(|&[to, a, b, _]| w[at(to)] = w[at(a)] - w[at(b)]),
            Kind::Mul => batch.iter().for_each(|&[to, a, b, _]| w[at(to)] = w[at(a)] * w[at(b)]),
            Kind::Div => batch.iter().for_each(|&[to, a, b, _]| w[at(to)] = w[at(a)] / w[at(b)]),
            Kind::Neg => batch.iter().for_each(|&[to, a, ..]| w[at(to)] = -w[at(a)]),
            Kind::MulAdd => {
                batch
                    .iter()
                    .for_each(|&[to, a, b, c]| w[at(to)] = math::mul_add(w[at(a)], w[at(b)], w[at(c)]));
            }
            Kind::MulSub => {
                batch
                    .iter()
                    .for_each(|&[to, a, b, c]| w[at(to)] = math::mul_add(w[at(a)], w[at(b)], -w[at(c)]));
            }
            Kind::NegMulAdd => {
                batch
                    .iter()
                    .for_each(|&[to, a, b, c]| w[at(to)] = math::mul_add(-w[at(a)], w[at(b)], w[at(c)]));
            }
            Kind::SinCos => batch.iter().for_each(|&[sine, cosine, angle, _]| {
                (w[at(sine)], w[at(cosine)]) = math::sin_cos(w[at(angle)]);
            }),
            Kind::Copy => batch.iter().for_each(|&[to, a, ..]| w[at(to)] = w[at(a)]),
            Kind::Unary(op) => batch.iter().for_each(|&[to, a, ..]| w[at(to)] = unary(op, w[at(a)])),
            Kind::Binary(op) => {
                batch.iter().for_each(|&[to, a, b, _]| w[at(to)] = binary(op, w[at(a)], w[at(b)]));
            }
            Kind::Select(comparison) => batch.iter().for_each(|&[to, which, ..]| {
                let [a, b, x, y] = self.selects[at(which)].map(|place| w[at(place)]);
                w[at(to)] = match comparison {
                    Comparison::Less => math::select_lt(a, b, x, y),
                    Comparison::LessEqual => math::select_le(a, b, x, y),
                    Comparison::Equal => math::select_eq(a, b, x, y),
                };
            }),
            Kind::Gather => batch.iter().for_each(|&[to, which, index, _]| {
                w[at(to)] = math::gather(stretch(w, self.stretches[at(which)]), w[at(index)]);
            }),
            Kind::Locate => batch.iter().for_each(|&[to, which, x, _]| {
                w[at(to)] = math::locate(stretch(w, self.stretches[at(which)]), w[at(x)]);
            }),
            Kind::Kernel => batch.iter().for_each(|&[which, ..]| call(&self.calls[at(which)], w)),
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

impl Source {
    fn value(self) -> Option<u32> {
        match self {
            Source::Fixed(_) => None,
            Source::Value(value) => Some(value),
        }
    }
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
    /// How many they are, and the place of each; none of other slots.
    addressed: u32,
    slot_places: Vec<Option<Place>>,
    /// The replacement of each value: itself, or the value stored in the slot it was loaded from.
    values: Vec<Source>,
    /// What each other slot holds.
    held: Vec<Source>,
    steps: Vec<Step>,
    results: Vec<(&'static str, Vec<Source>)>,
    stretches: Vec<Stretch>,
    calls: Vec<Call>,
    /// Index of zero, the value of slots that are never written.
    zero: Place,
}

/// An operation whose places are not chosen yet.
#[derive(Clone, Copy, Debug)]
struct Step {
    kind: Kind,
    to: To,
    operands: Operands,
    /// Of a gather or locate its stretch, of a kernel its call.
    which: u32,
}

/// What a step reads: four sources at most.
#[derive(Clone, Copy, Debug)]
struct Operands {
    sources: [Source; 4],
    len: u8,
}

impl Operands {
    const NONE: Operands = Operands { sources: [Source::Fixed(0); 4], len: 0 };

    fn one(source: Source) -> Operands {
        Operands { sources: [source; 4], len: 1 }
    }

    fn push(&mut self, source: Source) {
        if let Some(free) = self.sources.get_mut(self.len as usize) {
            *free = source;
            self.len += 1;
        }
    }

    fn iter(&self) -> impl Iterator<Item = Source> + '_ {
        self.sources.iter().copied().take(self.len as usize)
    }

    fn values(&self) -> impl Iterator<Item = u32> + '_ {
        self.iter().filter_map(Source::value)
    }
}

/// Where a result goes.
#[derive(Clone, Copy, Debug)]
enum To {
    Nowhere,
    Value(u32),
    Values(u32, u32),
    /// A slot that is memory.
    Slot(Place),
}

impl To {
    fn values(self) -> impl Iterator<Item = u32> {
        let (first, second) = match self {
            To::Nowhere | To::Slot(_) => (None, None),
            To::Value(value) => (Some(value), None),
            To::Values(first, second) => (Some(first), Some(second)),
        };
        first.into_iter().chain(second)
    }
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
            addressed: 0,
            slot_places: vec![None; bundle.slots as usize],
            values: (0..bundle.values).map(Source::Value).collect(),
            held: vec![Source::Fixed(0); bundle.slots as usize],
            steps: Vec::with_capacity(bundle.statements()),
            results: Vec::new(),
            stretches: Vec::new(),
            calls: Vec::new(),
            zero: 0,
        };
        this.lay_out(bundle);
        this
    }

    /// Gives constants, arguments and slots that are memory their places.
    fn lay_out(&mut self, bundle: &Bundle) {
        for table in &bundle.tables {
            self.tables.push(self.constants.len() as u32);
            self.constants.extend(table.iter().map(|&value| S::from_f64(value)));
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
        if !bundle.loops.is_empty() {
            self.zero = self.constants.len() as u32;
            self.constants.push(S::ZERO);
        }
        self.arguments = bundle.arguments.iter().map(|&(group, len)| (group, len as usize)).collect();
        self.arguments.sort();
        let mut start = self.constants.len() as u32;
        for &(group, len) in &self.arguments {
            self.argument_starts[group as usize] = start;
            start += len as u32;
        }
        // Slots keep their order, so that runs of them stay runs.
        self.slots = start;
        let addressed = addressed_slots(bundle);
        for (place, _) in self.slot_places.iter_mut().zip(&addressed).filter(|&(_, &is_memory)| is_memory) {
            *place = Some(start + self.addressed);
            self.addressed += 1;
        }
    }

    fn operand(&self, operand: Operand) -> Source {
        match operand {
            Operand::Constant(value) => Source::Fixed(self.constant_places[&value.to_bits()]),
            Operand::Argument(group, index) => Source::Fixed(self.argument_starts[group as usize] + index),
            Operand::Value(value) => self.values[value.0 as usize],
        }
    }

    fn slot_place(&self, slot: u32) -> Option<Place> {
        self.slot_places.get(slot as usize).copied().flatten()
    }

    fn stretch(&self, run: Run) -> Stretch {
        match run {
            Run::Table { table, len } => (self.tables[table as usize], len),
            Run::Argument { group, start, len } => (self.argument_starts[group as usize] + start, len),
            Run::Slots { start, len } => (self.slot_place(start).unwrap_or(self.slots), len),
        }
    }

    fn assemble(mut self, bundle: &Bundle) -> Tape<S> {
        self.results = bundle
            .results
            .iter()
            .map(|result| (result.name, vec![Source::Fixed(self.zero); result.len as usize]))
            .collect();
        for segment in &bundle.segments {
            match segment {
                Segment::Flat(statements) => statements.iter().for_each(|s| self.statement(s)),
                Segment::Kernel { kernel, inputs, output } => {
                    let inputs = inputs.iter().map(|&run| self.stretch(run)).collect();
                    let output = self.slot_place(*output).unwrap_or(self.slots);
                    self.push(Kind::Kernel, To::Nowhere, Operands::NONE, self.calls.len() as u32);
                    self.calls.push(Call { kernel: *kernel, inputs, output });
                }
            }
        }
        // Machine code keeps this order, and needs room for what it reads as memory, for every value, and for the results of a call.
        let native = self.addressed as usize + self.most_values() + 2;
        self.group();
        // Arrays are the first of the slots.
        let first = self.slots;
        let mut tape = self.choose_places();
        tape.native_memory = native;
        tape.memory = tape.memory.max(native);
        tape.loops = bundle.loops.clone();
        tape.arrays = (0..bundle.arrays.len() as u32)
            .map(|array| bundle.array(array))
            .map(|range| (first + range.start as u32, range.len() as u32))
            .collect();
        tape
    }

    fn push(&mut self, kind: Kind, to: To, operands: Operands, which: u32) {
        self.steps.push(Step { kind, to, operands, which });
    }

    fn statement(&mut self, statement: &Statement) {
        match *statement {
            Statement::Load(value, slot) => match self.slot_place(slot) {
                Some(place) => {
                    self.push(Kind::Copy, To::Value(value.0), Operands::one(Source::Fixed(place)), 0);
                }
                None => self.values[value.0 as usize] = self.held[slot as usize],
            },
            Statement::Store(slot, operand) => {
                let operand = self.operand(operand);
                match self.slot_place(slot) {
                    Some(place) => self.push(Kind::Copy, To::Slot(place), Operands::one(operand), 0),
                    None => self.held[slot as usize] = operand,
                }
            }
            Statement::Result { result, index, value } => {
                self.results[result as usize].1[index as usize] = self.operand(value);
            }
            Statement::SinCos(sine, cosine, angle) => {
                let angle = self.operand(angle);
                self.push(Kind::SinCos, To::Values(sine.0, cosine.0), Operands::one(angle), 0);
            }
            Statement::Compute(value, operation) => {
                let mut operands = Operands::NONE;
                operation.operands(|operand| operands.push(self.operand(operand)));
                let (kind, which) = match operation {
                    Operation::Unary(UnaryOp::Neg, _) => (Kind::Neg, 0),
                    Operation::Unary(op, _) => (Kind::Unary(op), 0),
                    Operation::Binary(BinaryOp::Add, ..) => (Kind::Add, 0),
                    Operation::Binary(BinaryOp::Sub, ..) => (Kind::Sub, 0),
                    Operation::Binary(BinaryOp::Mul, ..) => (Kind::Mul, 0),
                    Operation::Binary(BinaryOp::Div, ..) => (Kind::Div, 0),
                    Operation::Binary(op, ..) => (Kind::Binary(op), 0),
                    Operation::MulAdd(..) => (Kind::MulAdd, 0),
                    Operation::MulSub(..) => (Kind::MulSub, 0),
                    Operation::NegMulAdd(..) => (Kind::NegMulAdd, 0),
                    Operation::Select(comparison, _) => (Kind::Select(comparison), 0),
                    Operation::Gather(run, _) => (Kind::Gather, self.add_stretch(run)),
                    Operation::Locate(run, _) => (Kind::Locate, self.add_stretch(run)),
                };
                self.push(kind, To::Value(value.0), operands, which);
            }
        }
    }

    fn add_stretch(&mut self, run: Run) -> u32 {
        self.stretches.push(self.stretch(run));
        self.stretches.len() as u32 - 1
    }

    /// Whether a step reads or writes slots that are memory: it keeps its place among its neighbours.
    fn is_bound(&self, step: &Step) -> bool {
        let slots = self.slots..self.slots + self.addressed;
        let in_slots = |source: Source| matches!(source, Source::Fixed(place) if slots.contains(&place));
        match step.kind {
            Kind::Kernel => true,
            Kind::Gather | Kind::Locate => slots.contains(&self.stretches[step.which as usize].0),
            _ => matches!(step.to, To::Slot(_)) || step.operands.iter().any(in_slots),
        }
    }

    /// Brings steps of one kind together where they do not wait for each other.
    fn group(&mut self) {
        let mut grouped = Vec::with_capacity(self.steps.len());
        let mut maker = vec![NOBODY; self.values.len()];
        let mut free = Vec::new();
        for step in std::mem::take(&mut self.steps) {
            if self.is_bound(&step) {
                group_by_kind(&free, &mut maker, &mut grouped);
                free.clear();
                grouped.push(step);
            } else {
                free.push(step);
            }
        }
        group_by_kind(&free, &mut maker, &mut grouped);
        self.steps = grouped;
    }

    /// The last step that reads each value; results are read after all steps. A value that is never read has [`NOBODY`].
    fn last_uses(&self) -> Vec<usize> {
        let mut last_use = vec![NOBODY; self.values.len()];
        for (i, step) in self.steps.iter().enumerate() {
            step.operands.values().for_each(|value| last_use[value as usize] = i);
        }
        let results = self.results.iter().flat_map(|(_, operands)| operands);
        results
            .filter_map(|operand| operand.value())
            .for_each(|value| last_use[value as usize] = self.steps.len());
        last_use
    }

    /// How many values there are at most at a time, in the present order of steps.
    fn most_values(&self) -> usize {
        let last_use = self.last_uses();
        let (mut now, mut most) = (0_usize, 0);
        for (i, step) in self.steps.iter().enumerate() {
            now += step.to.values().count();
            most = most.max(now);
            now -= step.to.values().filter(|&value| last_use[value as usize] == NOBODY).count();
            let mut seen = [None; 4];
            for (k, value) in step.operands.values().enumerate() {
                if last_use[value as usize] == i && !seen.contains(&Some(value)) {
                    now = now.saturating_sub(1);
                }
                seen[k] = Some(value);
            }
        }
        most
    }

    /// Gives every value a place, from its assignment to its last use.
    fn choose_places(self) -> Tape<S> {
        let last_use = self.last_uses();
        let mut places =
            Places { of: vec![None; self.values.len()], free: Vec::new(), end: self.slots + self.addressed };
        let mut batches: Vec<(Kind, usize)> = Vec::new();
        let mut operations = Vec::with_capacity(self.steps.len());
        let mut selects = Vec::new();
        for (i, step) in self.steps.iter().enumerate() {
            let mut x = [0; 4];
            for (x, operand) in x.iter_mut().zip(step.operands.iter()) {
                *x = places.find(operand);
            }
            // Operands are read before the result is written, so a place that ends here may be the result's.
            for value in step.operands.values() {
                if last_use[value as usize] == i {
                    places.release(value);
                }
            }
            let [to, second] = match step.to {
                To::Nowhere => [0, 0],
                To::Value(value) => [places.take(value), 0],
                To::Values(first, second) => [places.take(first), places.take(second)],
                To::Slot(place) => [place, 0],
            };
            operations.push(match step.kind {
                Kind::SinCos => [to, second, x[0], 0],
                Kind::Select(_) => {
                    selects.push(x);
                    [to, selects.len() as u32 - 1, 0, 0]
                }
                Kind::Gather | Kind::Locate => [to, step.which, x[0], 0],
                Kind::Kernel => [step.which, 0, 0, 0],
                _ => [to, x[0], x[1], x[2]],
            });
            match batches.last_mut() {
                Some((kind, len)) if *kind == step.kind => *len += 1,
                _ => batches.push((step.kind, 1)),
            }
            // A value that is never read frees its slot at once.
            for value in step.to.values().filter(|&value| last_use[value as usize] == NOBODY) {
                places.release(value);
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
            batches,
            operations,
            selects,
            stretches: self.stretches,
            calls: self.calls,
            results,
            loops: Vec::new(),
            arrays: Vec::new(),
            memory: places.end as usize,
            native: Arc::default(),
            lanes: Arc::default(),
            native_memory: 0,
        }
    }
}

impl Kind {
    /// One of [`KINDS`] numbers, another for every kind.
    fn number(self) -> usize {
        match self {
            Kind::Add => 0,
            Kind::Sub => 1,
            Kind::Mul => 2,
            Kind::Div => 3,
            Kind::Neg => 4,
            Kind::MulAdd => 5,
            Kind::MulSub => 6,
            Kind::NegMulAdd => 7,
            Kind::SinCos => 8,
            Kind::Copy => 9,
            Kind::Gather => 10,
            Kind::Locate => 11,
            Kind::Kernel => 12,
            Kind::Select(comparison) => 16 + comparison as usize,
            Kind::Binary(op) => 24 + op as usize,
            Kind::Unary(op) => 40 + op as usize,
        }
    }
}

/// More than there are kinds of operations.
const KINDS: usize = 128;

/// No step.
const NOBODY: usize = usize::MAX;

/// Adds the steps in an order in which those of one kind stand together: always all of the kind of which most are ready. `maker` is scratch, and
/// says of no value who makes it, before and after.
fn group_by_kind(steps: &[Step], maker: &mut [usize], grouped: &mut Vec<Step>) {
    for (i, step) in steps.iter().enumerate() {
        step.to.values().for_each(|value| maker[value as usize] = i);
    }
    // Readers of the values of step i: `readers[starts[i]..starts[i + 1]]`.
    let mut waits = vec![0_usize; steps.len()];
    let mut starts = vec![0_usize; steps.len() + 1];
    let makers = |step: &Step| {
        let sources =
            step.operands.sources.map(|source| source.value().map_or(NOBODY, |v| maker[v as usize]));
        sources.into_iter().take(step.operands.len as usize).filter(|&made_by| made_by != NOBODY)
    };
    for (i, step) in steps.iter().enumerate() {
        for made_by in makers(step) {
            starts[made_by] += 1;
            waits[i] += 1;
        }
    }
    let mut end = 0;
    for start in &mut starts {
        end += *start;
        *start = end;
    }
    let mut readers = vec![0; end];
    for (i, step) in steps.iter().enumerate().rev() {
        for made_by in makers(step) {
            starts[made_by] -= 1;
            readers[starts[made_by]] = i;
        }
    }
    // Kinds in the order in which they are first seen, so that the same bundle always gives the same tape.
    let mut ready: Vec<VecDeque<usize>> = Vec::new();
    let mut queue_of = [NOBODY; KINDS];
    let mut add = |ready: &mut Vec<VecDeque<usize>>, i: usize| {
        let queue = &mut queue_of[steps[i].kind.number()];
        if *queue == NOBODY {
            *queue = ready.len();
            ready.push(VecDeque::new());
        }
        ready[*queue].push_back(i);
    };
    (0..steps.len()).filter(|&i| waits[i] == 0).for_each(|i| add(&mut ready, i));
    while let Some(most) = (0..ready.len()).max_by_key(|&k| (ready[k].len(), usize::MAX - k)) {
        if ready[most].is_empty() {
            break;
        }
        while let Some(i) = ready[most].pop_front() {
            grouped.push(steps[i]);
            for &reader in &readers[starts[i]..starts[i + 1]] {
                waits[reader] -= 1;
                if waits[reader] == 0 {
                    add(&mut ready, reader);
                }
            }
        }
    }
    for step in steps {
        step.to.values().for_each(|value| maker[value as usize] = NOBODY);
    }
}

/// Places of values.
struct Places {
    of: Vec<Option<Place>>,
    free: Vec<Place>,
    end: Place,
}

impl Places {
    fn find(&self, operand: Source) -> Place {
        match operand {
            Source::Fixed(place) => place,
            // A verified bundle reads only what it has assigned.
            Source::Value(value) => self.of[value as usize].unwrap_or(0),
        }
    }

    /// A place for a value; the one that became free last, which is likely still in the cache.
    fn take(&mut self, value: u32) -> Place {
        let place = self.free.pop().unwrap_or_else(|| {
            self.end += 1;
            self.end - 1
        });
        self.of[value as usize] = Some(place);
        place
    }

    /// Gives the place of a value back; once, even where an operation reads the value twice.
    fn release(&mut self, value: u32) {
        if let Some(place) = self.of[value as usize].take() {
            self.free.push(place);
        }
    }
}

/// Of each slot, whether it is read as part of a run, or by kernels or loops.
fn addressed_slots(bundle: &Bundle) -> Vec<bool> {
    let mut slots = vec![false; bundle.slots as usize];
    let mut add = |run: Run| {
        if let Run::Slots { start, len } = run {
            slots.iter_mut().skip(start as usize).take(len as usize).for_each(|slot| *slot = true);
        }
    };
    // The arrays of loops come first.
    add(Run::Slots { start: 0, len: bundle.array_slots() as u32 });
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
                let len = (kernel.outputs() + kernel.scratch()) as u32;
                add(Run::Slots { start: *output, len });
            }
        }
    }
    slots
}

#[cfg(all(test, target_arch = "x86_64"))]
mod fuzz;
