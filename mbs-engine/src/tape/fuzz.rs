//! Machine code against the tape, on random straight-line programs of all operations: same bits, whatever the pressure on registers.
//!
//! `MBS_FUZZ_PROGRAMS` says how many programs; the long run does a million.

use super::{Arguments, RESULTS, Tape};
use mbs_codegen::bundle::{
    Bundle, BundleResult, Operand, Operation, Run, Segment, Statement, ValueId, verify,
};
use mbs_codegen::graph::{BinaryOp, Comparison, Kernel, OperationCounts, UnaryOp};
use mbs_codegen::symbols::Group;
use mbs_jit::{Fusing, LANES};
use mbs_runtime::math;

const UNARY: [UnaryOp; 15] = [
    UnaryOp::Neg,
    UnaryOp::Sqrt,
    UnaryOp::Sin,
    UnaryOp::Cos,
    UnaryOp::Tan,
    UnaryOp::Asin,
    UnaryOp::Acos,
    UnaryOp::Atan,
    UnaryOp::Exp,
    UnaryOp::Ln,
    UnaryOp::Sinh,
    UnaryOp::Cosh,
    UnaryOp::Tanh,
    UnaryOp::Abs,
    UnaryOp::Sign,
];
const BINARY: [BinaryOp; 8] = [
    BinaryOp::Add,
    BinaryOp::Sub,
    BinaryOp::Mul,
    BinaryOp::Div,
    BinaryOp::Pow,
    BinaryOp::Atan2,
    BinaryOp::Min,
    BinaryOp::Max,
];
const COMPARISONS: [Comparison; 3] = [Comparison::Less, Comparison::LessEqual, Comparison::Equal];
const GROUPS: [Group; 14] = [
    Group::Time,
    Group::Z,
    Group::V,
    Group::Vd,
    Group::Zd,
    Group::Zdd,
    Group::U,
    Group::Lambda,
    Group::Weights,
    Group::Matrix,
    Group::Factors,
    Group::Rhs,
    Group::Prepared,
    Group::Free,
];
const NAMES: [&str; 4] = ["r0", "r1", "r2", "r3"];

/// Numbers by the method of splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// Mostly ordinary numbers; sometimes those at which arithmetic has corners.
    fn number(&mut self) -> f64 {
        const CORNERS: [f64; 10] = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::MAX,
            f64::MIN_POSITIVE,
            5e-324,
        ];
        match self.below(12) {
            0 => self.pick(&CORNERS),
            1 => f64::from_bits(self.next()),
            _ => (self.next() >> 11) as f64 / (1_u64 << 50) as f64 - 4.0,
        }
    }
}

/// What a random program contains.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Shape {
    /// Gathers, locates and kernels.
    addressed: bool,
    /// One operation in so many is a function that is called.
    calls: usize,
    /// Operands are among so many of the last values; all of them, if larger than there are.
    reach: usize,
    statements: usize,
}

struct Maker {
    r: Random,
    shape: Shape,
    arguments: Vec<(Group, u32)>,
    tables: Vec<Vec<f64>>,
    /// Values that the present segment knows, as operands.
    here: Vec<Operand>,
    /// Slots that were written.
    stored: Vec<u32>,
    values: u32,
    slots: u32,
}

impl Maker {
    fn operand(&mut self) -> Operand {
        match self.r.below(10) {
            0 => {
                let x = self.r.number();
                Operand::Constant(if x.is_finite() { x } else { 0.5 })
            }
            1 | 2 => {
                let (group, len) = self.r.pick(&self.arguments);
                Operand::Argument(group, self.r.below(len as usize) as u32)
            }
            _ if self.here.is_empty() => Operand::Constant(1.25),
            _ => {
                let reach = self.shape.reach.min(self.here.len());
                self.here[self.here.len() - 1 - self.r.below(reach)]
            }
        }
    }

    fn value(&mut self) -> ValueId {
        self.values += 1;
        ValueId(self.values - 1)
    }

    fn run(&mut self, stored: &[u32]) -> Run {
        // A run of slots that were all written, if there is one.
        let slot = stored.first().copied().filter(|_| self.r.one_in(2));
        if let Some(start) = slot {
            let len = (start..).zip(stored).take_while(|(a, b)| a == *b).count();
            return Run::Slots { start, len: 1 + self.r.below(len) as u32 };
        }
        if !self.tables.is_empty() && self.r.one_in(2) {
            let table = self.r.below(self.tables.len());
            return Run::Table { table: table as u32, len: self.tables[table].len() as u32 };
        }
        let (group, len) = self.r.pick(&self.arguments);
        let start = self.r.below(len as usize) as u32;
        Run::Argument { group, start, len: 1 + self.r.below((len - start) as usize) as u32 }
    }

    fn statement(&mut self, out: &mut Vec<Statement>) {
        if self.r.one_in(self.shape.calls) && self.r.one_in(3) {
            let angle = self.operand();
            let (sine, cosine) = (self.value(), self.value());
            out.push(Statement::SinCos(sine, cosine, angle));
            self.here.extend([Operand::Value(sine), Operand::Value(cosine)]);
            return;
        }
        let calls = self.r.one_in(self.shape.calls);
        let operation = match self.r.below(12) {
            0 | 1 => loop {
                let op = self.r.pick(&UNARY);
                let called = !matches!(op, UnaryOp::Neg | UnaryOp::Sqrt | UnaryOp::Abs);
                if called == calls {
                    break Operation::Unary(op, self.operand());
                }
            },
            2..=6 => loop {
                let op = self.r.pick(&BINARY);
                if matches!(op, BinaryOp::Pow | BinaryOp::Atan2) == calls {
                    break Operation::Binary(op, self.operand(), self.operand());
                }
            },
            7 => Operation::MulSub(self.operand(), self.operand(), self.operand()),
            8 => Operation::NegMulAdd(self.operand(), self.operand(), self.operand()),
            9 => {
                let four = [(); 4].map(|()| self.operand());
                Operation::Select(self.r.pick(&COMPARISONS), four)
            }
            10 if self.shape.addressed => {
                let mut stored = self.stored.clone();
                stored.sort_unstable();
                stored.dedup();
                let run = self.run(&stored);
                if self.r.one_in(2) {
                    Operation::Gather(run, self.operand())
                } else {
                    Operation::Locate(run, self.operand())
                }
            }
            _ => Operation::MulAdd(self.operand(), self.operand(), self.operand()),
        };
        let value = self.value();
        out.push(Statement::Compute(value, operation));
        self.here.push(Operand::Value(value));
    }

    fn store(&mut self, out: &mut Vec<Statement>) {
        let operand = self.operand();
        let again = self.r.one_in(3) && !self.stored.is_empty();
        let slot = if again { self.r.pick(&self.stored) } else { self.slots };
        if !again {
            self.slots += 1;
            self.stored.push(slot);
        }
        out.push(Statement::Store(slot, operand));
    }

    fn kernel(&mut self, segments: &mut Vec<Segment>) {
        let n = 1 + self.r.below(4) as u32;
        let kernel = Kernel::SolveTridiagonal { n };
        let mut statements = Vec::new();
        let mut inputs = Vec::new();
        self.here.clear();
        for len in kernel.input_runs() {
            let start = self.slots;
            for _ in 0..len {
                statements.push(Statement::Store(self.slots, self.operand()));
                self.stored.push(self.slots);
                self.slots += 1;
            }
            inputs.push(Run::Slots { start, len: len as u32 });
        }
        let output = self.slots;
        self.slots += (kernel.outputs() + kernel.scratch()) as u32;
        self.stored.extend(output..self.slots);
        segments.extend([Segment::Flat(statements), Segment::Kernel { kernel, inputs, output }]);
    }
}

/// A random program that passes the verifier.
fn program(seed: u64) -> (Bundle, Shape) {
    let mut r = Random(seed);
    let most = if r.one_in(8) { 400 } else { 60 };
    let shape = Shape {
        addressed: r.one_in(4),
        calls: r.pick(&[2, 8, 40, 1000]),
        reach: r.pick(&[2, 12, 17, 40, 200, 100_000]),
        statements: 1 + r.below(most),
    };
    let mut arguments: Vec<(Group, u32)> = Vec::new();
    let most = if r.one_in(3) { GROUPS.len() } else { 3 };
    for _ in 0..1 + r.below(most) {
        let group = r.pick(&GROUPS);
        if arguments.iter().all(|&(other, _)| other != group) {
            arguments.push((group, 1 + r.below(40) as u32));
        }
    }
    let tables = (0..r.below(3)).map(|_| (0..1 + r.below(6)).map(|i| i as f64 - 1.5).collect()).collect();
    let mut maker =
        Maker { r, shape, arguments, tables, here: Vec::new(), stored: Vec::new(), values: 0, slots: 0 };
    let results: Vec<BundleResult> = (0..1 + maker.r.below(NAMES.len()))
        .map(|i| BundleResult { name: NAMES[i], doc: "", len: 1 + maker.r.below(12) as u32 })
        .collect();
    let mut pending: Vec<(u32, u32)> =
        (0..).zip(&results).flat_map(|(i, result)| (0..result.len).map(move |index| (i, index))).collect();
    let mut segments = Vec::new();
    let count = 1 + maker.r.below(4);
    for segment in 0..count {
        if shape.addressed && maker.r.one_in(3) {
            maker.kernel(&mut segments);
        }
        let mut statements = Vec::new();
        maker.here.clear();
        for slot in maker.stored.clone() {
            if maker.r.one_in(2) {
                let value = maker.value();
                statements.push(Statement::Load(value, slot));
                maker.here.push(Operand::Value(value));
            }
        }
        for _ in 0..shape.statements {
            maker.statement(&mut statements);
            if maker.r.one_in(6) {
                maker.store(&mut statements);
            }
            if maker.r.one_in(6)
                && let Some((result, index)) = pending.pop()
            {
                statements.push(Statement::Result { result, index, value: maker.operand() });
            }
        }
        if segment + 1 == count {
            for (result, index) in pending.drain(..) {
                statements.push(Statement::Result { result, index, value: maker.operand() });
            }
        }
        segments.push(Segment::Flat(statements));
    }
    let bundle = Bundle {
        name: "random",
        doc: "",
        arguments: maker.arguments,
        results,
        segments,
        arrays: Vec::new(),
        loops: Vec::new(),
        tables: maker.tables,
        values: maker.values,
        slots: maker.slots,
        counts: OperationCounts::default(),
        fused: true,
        packed: None,
    };
    if let Err(why) = verify::verify(&bundle) {
        panic!("program {seed} is not valid: {why}");
    }
    (bundle, shape)
}

fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
}

fn run_tape(tape: &Tape<f64>, bundle: &Bundle, values: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let mut arguments: Arguments<'_, f64> = [&[]; Group::ALL.len()];
    for (&(group, _), values) in bundle.arguments.iter().zip(values) {
        arguments[group as usize] = values;
    }
    let mut w = vec![f64::NAN; tape.memory()];
    let mut results: Vec<Vec<f64>> = bundle.results.iter().map(|r| vec![f64::NAN; r.len as usize]).collect();
    let mut slices: Vec<&mut [f64]> = results.iter_mut().map(Vec::as_mut_slice).collect();
    tape.run(&arguments, &mut w, &mut slices).expect("right lengths");
    results
}

/// The arguments in the order of their groups, as machine code takes them.
fn sorted<'v>(bundle: &Bundle, values: &'v [Vec<f64>]) -> Vec<(Group, &'v [f64])> {
    let groups = bundle.arguments.iter().map(|&(group, _)| group);
    let mut sorted: Vec<(Group, &[f64])> = groups.zip(values.iter().map(Vec::as_slice)).collect();
    sorted.sort_by_key(|&(group, _)| group);
    sorted
}

/// The program statement by statement, with fused operations; there are no runs.
fn run_fused(bundle: &Bundle, arguments: &[(Group, &[f64])]) -> Vec<Vec<f64>> {
    let mut values = vec![0.0_f64; bundle.values as usize];
    let mut slots = vec![0.0_f64; bundle.slots as usize];
    let mut results: Vec<Vec<f64>> = bundle.results.iter().map(|r| vec![0.0; r.len as usize]).collect();
    for segment in &bundle.segments {
        let Segment::Flat(statements) = segment else { panic!("a kernel") };
        for statement in statements {
            let read = |operand: Operand| match operand {
                Operand::Constant(x) => x,
                Operand::Argument(group, i) => {
                    let (_, slice) = arguments.iter().find(|&&(g, _)| g == group).expect("the argument");
                    slice[i as usize]
                }
                Operand::Value(value) => values[value.0 as usize],
            };
            match *statement {
                Statement::Load(value, slot) => values[value.0 as usize] = slots[slot as usize],
                Statement::Store(slot, x) => slots[slot as usize] = read(x),
                Statement::Result { result, index, value } => {
                    results[result as usize][index as usize] = read(value);
                }
                Statement::SinCos(s, c, x) => {
                    let (sine, cosine) = math::sin_cos(read(x));
                    (values[s.0 as usize], values[c.0 as usize]) = (sine, cosine);
                }
                Statement::Compute(value, operation) => {
                    values[value.0 as usize] = match operation {
                        Operation::Unary(op, a) => super::unary(op, read(a)),
                        Operation::Binary(op, a, b) => super::binary(op, read(a), read(b)),
                        Operation::MulAdd(a, b, c) => f64::mul_add(read(a), read(b), read(c)),
                        Operation::MulSub(a, b, c) => f64::mul_add(read(a), read(b), -read(c)),
                        Operation::NegMulAdd(a, b, c) => f64::mul_add(-read(a), read(b), read(c)),
                        Operation::Select(comparison, [a, b, x, y]) => {
                            let (a, b) = (read(a), read(b));
                            let holds = match comparison {
                                Comparison::Less => a < b,
                                Comparison::LessEqual => a <= b,
                                Comparison::Equal => a == b,
                            };
                            if holds { read(x) } else { read(y) }
                        }
                        Operation::Gather(..) | Operation::Locate(..) => panic!("a run"),
                    };
                }
            }
        }
    }
    results
}

fn compare(seed: u64, what: &str, shape: Shape, found: &[Vec<f64>], expected: &[Vec<f64>]) {
    for (k, (found, expected)) in found.iter().zip(expected).enumerate() {
        for (i, (&a, &b)) in found.iter().zip(expected).enumerate() {
            assert!(same(a, b), "program {seed}, {what}, {shape:?}: result {k}[{i}] is {a:?}, not {b:?}");
        }
    }
}

fn check(seed: u64) {
    let (bundle, shape) = program(seed);
    let mut r = Random(seed ^ 0xabcd);
    let mut samples: Vec<Vec<Vec<f64>>> = Vec::new();
    for _ in 0..LANES {
        let sample =
            bundle.arguments.iter().map(|&(_, len)| (0..len).map(|_| r.number()).collect()).collect();
        samples.push(sample);
    }
    // One argument that all samples share, for the code over lanes.
    let shared = r.below(bundle.arguments.len());
    for k in 1..LANES {
        samples[k][shared] = samples[0][shared].clone();
    }
    let tape: Tape<f64> = Tape::new(&bundle);
    let expected: Vec<Vec<Vec<f64>>> =
        samples.iter().map(|sample| run_tape(&tape, &bundle, sample)).collect();

    let code = mbs_jit::compile(&bundle, Fusing::AsCompiled).expect("machine code");
    assert!(code.memory() <= tape.memory(), "program {seed}: {} of {}", code.memory(), tape.memory());
    let run = |code: &mbs_jit::Compiled, sample: &[Vec<f64>]| {
        let arguments = sorted(&bundle, sample);
        let arguments: Vec<&[f64]> = arguments.iter().map(|&(_, slice)| slice).collect();
        let mut memory = vec![f64::NAN; code.memory()];
        let mut results: Vec<Vec<f64>> =
            bundle.results.iter().map(|r| vec![f64::NAN; r.len as usize]).collect();
        let mut slices: Vec<&mut [f64]> = results.iter_mut().map(Vec::as_mut_slice).collect();
        code.run(&arguments, &mut memory, &mut slices).expect("right lengths");
        results
    };
    compare(seed, "one sample", shape, &run(&code, &samples[0]), &expected[0]);
    if shape.addressed {
        return;
    }

    // Over lanes: scalar i of sample k at 4 i + k.
    let common = bundle.arguments[shared].0;
    let code =
        mbs_jit::compile_lanes(&bundle, &[common], Fusing::AsCompiled).expect("machine code over lanes");
    let interleaved: Vec<Vec<f64>> = (0..bundle.arguments.len())
        .map(|g| match g {
            _ if g == shared => samples[0][g].clone(),
            _ => (0..samples[0][g].len()).flat_map(|i| samples.iter().map(move |s| s[g][i])).collect(),
        })
        .collect();
    let arguments = sorted(&bundle, &interleaved);
    let arguments: Vec<&[f64]> = arguments.iter().map(|&(_, slice)| slice).collect();
    let mut memory = vec![f64::NAN; code.memory()];
    let mut results: Vec<Vec<f64>> =
        bundle.results.iter().map(|r| vec![f64::NAN; LANES * r.len as usize]).collect();
    let mut slices: Vec<&mut [f64]> = results.iter_mut().map(Vec::as_mut_slice).collect();
    code.run(&arguments, &mut memory, &mut slices).expect("right lengths");
    for (k, expected) in expected.iter().enumerate() {
        let found: Vec<Vec<f64>> =
            results.iter().map(|result| result.iter().skip(k).step_by(LANES).copied().collect()).collect();
        compare(seed, "a lane", shape, &found, expected);
    }

    if std::is_x86_feature_detected!("fma") {
        let code = mbs_jit::compile(&bundle, Fusing::Fused).expect("fused machine code");
        let expected = run_fused(&bundle, &sorted(&bundle, &samples[0]));
        compare(seed, "fused", shape, &run(&code, &samples[0]), &expected);
    }
}

#[test]
fn random_programs_have_the_bits_of_the_tape() {
    assert!(NAMES.len() <= RESULTS);
    if let Err(why) = mbs_jit::availability(Fusing::AsCompiled) {
        println!("skipped: {why}");
        return;
    }
    let programs = std::env::var("MBS_FUZZ_PROGRAMS").ok().and_then(|n| n.parse().ok()).unwrap_or(10_000);
    for seed in 0..programs {
        check(seed);
    }
}

/// Many right-hand sides at once, for any number of columns, against the tape column by column.
#[test]
fn many_columns_have_the_bits_of_each() {
    use crate::{Engine, Interpreted};
    use mbs_codegen::program::{BundleKind, Options, Program};
    use mbs_runtime::{Constrained, JointSensitivities, System};

    let text = include_str!("../../../models/five_bar.yaml");
    let (model, _) = mbs_codegen::read("five_bar.yaml", text).expect("a valid model");
    let options = Options { bundles: BundleKind::ALL.to_vec(), ..Options::default() };
    let program = Program::new(&model, None, &options).expect("a program");
    let mut tape: Interpreted = Interpreted::new(program);
    let mut code = tape.clone();
    tape.set_engine(Engine::Tape, None, Fusing::AsCompiled);
    code.set_engine(Engine::Jit, None, Fusing::AsCompiled);
    let mut r = Random(3);
    let mut w = vec![f64::NAN; code.dims().workspace];
    for kind in [BundleKind::Solve, BundleKind::JointSolve] {
        let bundle = code.program().bundle(kind.name()).expect("the bundle");
        let of = |group: Group| {
            bundle.arguments.iter().find(|&&(g, _)| g == group).map_or(0, |&(_, len)| len as usize)
        };
        let (n, factors) = (bundle.results[0].len as usize, of(Group::Factors));
        let factors: Vec<f64> = (0..factors).map(|_| r.number()).collect();
        for columns in 0..=9 {
            let x: Vec<f64> = (0..n * columns).map(|_| r.number()).collect();
            let (mut found, mut column) = (x.clone(), vec![0.0; n]);
            let solved = match kind {
                BundleKind::Solve => code.solve_many(&factors, columns, &mut w, &mut column, &mut found),
                _ => code.joint_solve_many(&factors, columns, &mut w, &mut column, &mut found),
            };
            solved.expect("right lengths");
            for k in 0..columns {
                let mut expected: Vec<f64> = (0..n).map(|i| x[i * columns + k]).collect();
                let solved = match kind {
                    BundleKind::Solve => tape.solve(&factors, &mut w, &mut expected),
                    _ => tape.joint_solve(&factors, &mut w, &mut expected),
                };
                solved.expect("right lengths");
                for (i, &expected) in expected.iter().enumerate() {
                    let found = found[i * columns + k];
                    assert!(
                        same(found, expected),
                        "{}, {columns} columns: {found:?}, not {expected:?}",
                        kind.name()
                    );
                }
            }
        }
        let compiled = code.bundle(kind).expect("the bundle").lanes.get().is_some();
        assert_eq!(compiled, mbs_jit::availability(Fusing::AsCompiled).is_ok(), "{}", kind.name());
    }
}
