//! Bundles over several samples at once: every scalar except the prepared values becomes one value per sample.
//!
//! The module `batch` has a function per bundle with the bundle's statements in the same order, so that each lane is bit for bit equal to the scalar
//! function.

use super::body::{Argument, Text, argument_name, arguments_of, parameters, print_number_tables, table_name};
use super::rolled;
use super::statement::{Values, print_statements};
use crate::bundle::{Bundle, Operand, Operation, Run, Segment};
use crate::program::{BundleKind, Program};
use crate::symbols::Group;
use mbs_bundles::Pivots;
use std::collections::BTreeSet;
use std::fmt::{Display, Write};

/// Bundles that do not depend on a sample.
const ONCE: [&str; 4] = ["prepare", "start", "input_signals", crate::corners::NAME];

/// The module `batch`.
pub(super) fn print(program: &Program, width: usize) -> String {
    let functions = super::functions(program);
    let mut out = format!(
        "\n    /// The bundles over {width} samples at once, with one set of parameters.\n    \
         ///\n    \
         /// Every function takes the model, the samples side by side, a workspace and where to write. Functions with pivots tell \
         for\n    /// which samples they are good: where not, accelerations mean nothing.\n    \
         pub mod batch {{\n    \
         use super::{{Model, S}};\n    \
         use ::mbs_runtime::batch as b;\n    \
         use ::mbs_runtime::batch::Lane as _;\n    \
         use ::mbs_runtime::{functions} as m;\n    \
         use ::mbs_runtime::rolled as r;\n\n    \
         /// How many samples.\n    \
         pub const WIDTH: usize = {width};\n    \
         /// A value of each sample.\n    \
         pub type L = b::Lanes<S, WIDTH>;\n"
    );
    for bundle in program.bundles.iter().filter(|bundle| !ONCE.contains(&bundle.name)) {
        print_bundle(bundle, &mut out);
    }
    out.push_str("    }\n");
    out
}

fn print_bundle(bundle: &Bundle, out: &mut String) {
    print_number_tables(bundle, out);
    let all: BTreeSet<Argument> = bundle
        .arguments
        .iter()
        .filter(|(group, _)| *group != Group::Prepared)
        .map(|&(group, _)| Argument::Group(group))
        .chain([Argument::Workspace])
        .chain((0..bundle.results.len() as u32).map(Argument::Result))
        .collect();
    let pivots = bundle.results.iter().find(|result| result.name == "pivots");
    let good = if pivots.is_some() { " -> [bool; WIDTH]" } else { "" };
    let _ = writeln!(out, "\n    /// {} Workspace: {} slots.", bundle.doc, bundle.slots);
    let _ = writeln!(
        out,
        "    #[allow(clippy::too_many_arguments)]\n    pub fn {}(model: &Model, {}){good} {{\n        let c = &model.prepared;",
        bundle.name,
        parameters(bundle, &all, 'L')
    );
    rolled::print_zeros(bundle, "L::ZERO", out);
    let used: Vec<BTreeSet<Argument>> = bundle.segments.iter().map(arguments_of).collect();
    for (i, segment) in bundle.segments.iter().enumerate() {
        match segment {
            Segment::Flat(_) => {
                let names: Vec<String> = used[i].iter().map(|&a| argument_name(bundle, a)).collect();
                let _ = writeln!(out, "        {}_{i}({});", bundle.name, names.join(", "));
            }
            Segment::Kernel { kernel, inputs, output } => {
                let _ = writeln!(out, "        for k in 0..WIDTH {{");
                for (number, run) in inputs.iter().enumerate() {
                    let (text, len) = (run_text(bundle, *run), run_len(*run));
                    let _ = writeln!(
                        out,
                        "            let mut i{number} = [0.0; {len}];\n            \
                         for (to, from) in i{number}.iter_mut().zip(&{text}) {{ *to = from.lane(k); }}"
                    );
                }
                let inputs: Vec<String> = (0..inputs.len()).map(|number| format!("&i{number}")).collect();
                let _ = writeln!(
                    out,
                    "            let (mut scratch, mut results) = ([0.0; {}], [0.0; {}]);\n            \
                     m::{}({}, &mut scratch, &mut results);\n            \
                     for (to, from) in w[{output}..].iter_mut().zip(results) {{ to.0[k] = from; }}\n        }}",
                    kernel.scratch(),
                    kernel.outputs(),
                    kernel.name(),
                    inputs.join(", ")
                );
            }
        }
    }
    rolled::print_calls(bundle, "super::", out);
    if pivots.is_some() {
        let kind = BundleKind::from_name(bundle.name);
        let positive = kind.is_some_and(|kind| kind.entry().pivots == Pivots::Positive);
        let test = if positive { "positive" } else { "regular" };
        let _ = writeln!(out, "        b::{test}(out_pivots)");
    }
    out.push_str("    }\n");
    for (i, segment) in bundle.segments.iter().enumerate() {
        if let Segment::Flat(statements) = segment {
            let _ = writeln!(
                out,
                "\n    #[inline(never)]\n    fn {}_{i}({}) {{",
                bundle.name,
                parameters(bundle, &used[i], 'L')
            );
            print_statements::<Lanes>(bundle, statements, out);
            out.push_str("    }\n");
        }
    }
}

fn run_text(bundle: &Bundle, run: Run) -> String {
    match run {
        Run::Table { table, .. } => table_name(bundle, table as usize),
        Run::Argument { group, start, len } => format!("{}[{start}..{}]", group.identifier(), start + len),
        Run::Slots { start, len } => format!("w[{start}..{}]", start + len),
    }
}

fn run_len(run: Run) -> u32 {
    match run {
        Run::Table { len, .. } | Run::Argument { len, .. } | Run::Slots { len, .. } => len,
    }
}

/// An operand as one value per sample.
struct Value(Operand);

impl Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Operand::Constant(value) => write!(f, "L::of({value:?})"),
            Operand::Argument(Group::Prepared, index) => write!(f, "L::of(c[{index}])"),
            operand => Text(operand).fmt(f),
        }
    }
}

/// Values of several samples.
struct Lanes;

impl Values for Lanes {
    const LOAD: [&'static str; 2] = ["w[", "]"];
    const STORE: [&'static str; 4] = ["", "[", "] = ", ""];
    const SIN_COS: [&'static str; 2] = ["b::sin_cos(", ", m::sin_cos)"];

    fn operand(operand: Operand) -> impl Display {
        Value(operand)
    }

    fn typed(operand: Operand) -> impl Display {
        Value(operand)
    }

    fn print_call(bundle: &Bundle, operation: Operation, out: &mut String) {
        let _ = match operation {
            Operation::Unary(op, a) => write!(out, "b::unary({}, m::{})", Value(a), op.name()),
            Operation::Binary(op, a, b) => {
                write!(out, "b::binary({}, {}, m::{})", Value(a), Value(b), op.name())
            }
            Operation::MulAdd(a, b, c) if !bundle.fused => {
                write!(out, "{} * {} + {}", Value(a), Value(b), Value(c))
            }
            Operation::MulSub(a, b, c) if !bundle.fused => {
                write!(out, "{} * {} - {}", Value(a), Value(b), Value(c))
            }
            Operation::NegMulAdd(a, b, c) if !bundle.fused => {
                write!(out, "{} - {} * {}", Value(c), Value(a), Value(b))
            }
            Operation::MulAdd(a, b, c) => write!(out, "b::mul_add({}, {}, {})", Value(a), Value(b), Value(c)),
            Operation::MulSub(a, b, c) => {
                write!(out, "b::mul_add({}, {}, -{})", Value(a), Value(b), Value(c))
            }
            Operation::NegMulAdd(a, b, c) => {
                write!(out, "b::mul_add(-{}, {}, {})", Value(a), Value(b), Value(c))
            }
            Operation::Select(comparison, [a, b, x, y]) => {
                let name = comparison.name();
                write!(out, "b::select({}, {}, {}, {}, m::{name})", Value(a), Value(b), Value(x), Value(y))
            }
            Operation::Gather(run, index) => {
                write!(out, "b::gather(&{}, {})", run_text(bundle, run), Value(index))
            }
            Operation::Locate(run, x) => write!(out, "b::locate(&{}, {})", run_text(bundle, run), Value(x)),
        };
    }
}
