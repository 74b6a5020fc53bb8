//! Bodies of bundles: one function per segment, one operation per line.

use super::statement::{Values, print_statements};
use super::{packed, rolled};
use crate::bundle::packing::Step;
use crate::bundle::{Bundle, Operand, Operation, Run, Segment, Statement};
use crate::symbols::Group;
use std::collections::BTreeSet;
use std::fmt::{Display, Write};

/// An argument of a printed function.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Argument {
    Group(Group),
    Workspace,
    Result(u32),
}

/// Prints the function of a bundle and those of its segments.
pub(super) fn print(bundle: &Bundle, out: &mut String) {
    print_number_tables(bundle, out);
    rolled::print_tables(bundle, out);
    let all: BTreeSet<Argument> = bundle
        .arguments
        .iter()
        .map(|&(group, _)| Argument::Group(group))
        .chain([Argument::Workspace])
        .chain((0..bundle.results.len() as u32).map(Argument::Result))
        .collect();
    let _ = writeln!(out, "\n    /// {}\n    ///", bundle.doc);
    let _ = writeln!(out, "    /// Operations: {}. Workspace: {} slots.", bundle.counts, bundle.slots);
    let _ = writeln!(out, "    fn {}({}) {{", bundle.name, parameters(bundle, &all, 'S'));
    rolled::print_zeros(bundle, "0.0", out);
    let parts: Vec<Part<'_>> = match &bundle.packed {
        Some(packed) => packed.segments.iter().map(|steps| Part::Packed(steps)).collect(),
        None => bundle.segments.iter().map(Part::Plain).collect(),
    };
    let used: Vec<BTreeSet<Argument>> = parts.iter().map(Part::arguments).collect();
    let single = parts.len() == 1;
    for (i, part) in parts.iter().enumerate() {
        match part {
            Part::Plain(Segment::Kernel { kernel, inputs, output }) => {
                let (n, end) = (kernel.outputs(), *output as usize + kernel.outputs() + kernel.scratch());
                let runs: Vec<String> = inputs.iter().map(|&run| run_text(bundle, run, "before")).collect();
                let _ = writeln!(
                    out,
                    "        let (before, after) = w[..{end}].split_at_mut({output});\n        \
                     let (results, scratch) = after.split_at_mut({n});\n        \
                     m::{}({}, scratch, results);",
                    kernel.name(),
                    runs.join(", ")
                );
            }
            _ if single => print_block(bundle, &used[i], part, out),
            _ => {
                let names: Vec<String> = used[i].iter().map(|&a| argument_name(bundle, a)).collect();
                let _ = writeln!(out, "        {}_{i}({});", bundle.name, names.join(", "));
            }
        }
    }
    rolled::print_calls(bundle, "", out);
    out.push_str("    }\n");
    if single {
        return;
    }
    for (i, part) in parts.iter().enumerate() {
        if matches!(part, Part::Plain(Segment::Kernel { .. })) {
            continue;
        }
        let _ = writeln!(
            out,
            "\n    #[inline(never)]\n    fn {}_{i}({}) {{",
            bundle.name,
            parameters(bundle, &used[i], 'S')
        );
        print_block(bundle, &used[i], part, out);
        out.push_str("    }\n");
    }
}

/// A part of a bundle as it is printed.
enum Part<'a> {
    Plain(&'a Segment),
    Packed(&'a [Step]),
}

impl Part<'_> {
    /// The arguments that it reads and writes.
    fn arguments(&self) -> BTreeSet<Argument> {
        match self {
            Part::Plain(segment) => arguments_of(segment),
            Part::Packed(steps) => packed::arguments_of(steps),
        }
    }
}

/// Prints a part, which reads and writes these arguments. Arrays are read and written as slices: a compiler takes much longer to check
/// an indexed expression than a call of a function that is not generic, and a coercion for each call would take as long. Products and sums
/// are such functions, too.
fn print_block(bundle: &Bundle, used: &BTreeSet<Argument>, part: &Part<'_>, out: &mut String) {
    // The loops that follow take arrays.
    let scoped = !bundle.loops.is_empty();
    if scoped {
        out.push_str("        {\n");
    }
    for &argument in used {
        let name = argument_name(bundle, argument);
        let _ = match argument {
            Argument::Group(Group::Time) => Ok(()),
            Argument::Group(_) => writeln!(out, "        let {name}: &[S] = {name};"),
            Argument::Workspace | Argument::Result(_) => {
                writeln!(out, "        let {name}: &mut [S] = {name};")
            }
        };
    }
    match part {
        Part::Plain(Segment::Flat(statements)) => print_statements::<One>(bundle, statements, out),
        Part::Packed(steps) => packed::print(bundle, steps, out),
        Part::Plain(Segment::Kernel { .. }) => {}
    }
    if scoped {
        out.push_str("        }\n");
    }
}

/// The arguments that a segment reads and writes.
pub(super) fn arguments_of(segment: &Segment) -> BTreeSet<Argument> {
    let mut used = BTreeSet::new();
    if let Segment::Flat(statements) = segment {
        statements.iter().for_each(|statement| add_arguments(statement, &mut used));
    }
    used
}

/// Adds the arguments that a statement reads and writes.
pub(super) fn add_arguments(statement: &Statement, used: &mut BTreeSet<Argument>) {
    statement.operands(|operand| used.extend(argument_of(operand)));
    used.extend(match *statement {
        Statement::Load(..) | Statement::Store(..) => Some(Argument::Workspace),
        Statement::Result { result, .. } => Some(Argument::Result(result)),
        Statement::Compute(_, Operation::Gather(run, _) | Operation::Locate(run, _)) => match run {
            Run::Table { .. } => None,
            Run::Argument { group, .. } => Some(Argument::Group(group)),
            Run::Slots { .. } => Some(Argument::Workspace),
        },
        Statement::Compute(..) | Statement::SinCos(..) => None,
    });
}

/// The argument that an operand is part of.
pub(super) fn argument_of(operand: Operand) -> Option<Argument> {
    match operand {
        Operand::Argument(group, _) => Some(Argument::Group(group)),
        Operand::Constant(_) | Operand::Value(_) => None,
    }
}

/// The constant arrays of a bundle.
pub(super) fn print_number_tables(bundle: &Bundle, out: &mut String) {
    for (i, table) in bundle.tables.iter().enumerate() {
        let values: Vec<String> = table.iter().map(|v| format!("{v:?}")).collect();
        let (name, len) = (table_name(bundle, i), table.len());
        let _ = writeln!(out, "    static {name}: [S; {len}] = [{}];", values.join(", "));
    }
}

pub(super) fn argument_name(bundle: &Bundle, argument: Argument) -> String {
    match argument {
        Argument::Group(group) => group.identifier().into(),
        Argument::Workspace => "w".into(),
        Argument::Result(i) => format!("out_{}", bundle.results[i as usize].name),
    }
}

/// The parameters of a function over values of type `of`; prepared values are common to all samples.
pub(super) fn parameters(bundle: &Bundle, arguments: &BTreeSet<Argument>, of: char) -> String {
    let list = arguments.iter().map(|&argument| {
        let name = argument_name(bundle, argument);
        let length = |group| bundle.arguments.iter().find(|(g, _)| *g == group).map_or(0, |(_, len)| *len);
        match argument {
            Argument::Group(Group::Time) => format!("{name}: {of}"),
            Argument::Group(Group::Prepared) => format!("{name}: &[S; {}]", length(Group::Prepared)),
            Argument::Group(group) => format!("{name}: &[{of}; {}]", length(group)),
            Argument::Workspace => format!("{name}: &mut [{of}; {}]", bundle.slots),
            Argument::Result(i) => format!("{name}: &mut [{of}; {}]", bundle.results[i as usize].len),
        }
    });
    list.collect::<Vec<_>>().join(", ")
}

pub(super) fn table_name(bundle: &Bundle, table: usize) -> String {
    format!("{}_TABLE_{table}", bundle.name.to_ascii_uppercase())
}

fn run_text(bundle: &Bundle, run: Run, slots: &str) -> String {
    match run {
        Run::Table { table, .. } => format!("&{}", table_name(bundle, table as usize)),
        Run::Argument { group, start, len } => format!("&{}[{start}..{}]", group.identifier(), start + len),
        Run::Slots { start, len } => format!("&{slots}[{start}..{}]", start + len),
    }
}

pub(super) struct Text(pub(super) Operand);

impl Display for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Operand::Constant(value) => write!(f, "{value:?}"),
            Operand::Argument(Group::Time, _) => f.write_str("t"),
            Operand::Argument(group, index) => write!(f, "{}[{index}]", group.identifier()),
            Operand::Value(value) => write!(f, "v{}", value.0),
        }
    }
}

/// An operand of a function over one sample.
pub(super) struct Read(pub(super) Operand);

impl Display for Read {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Operand::Argument(group, index) if group != Group::Time => {
                write!(f, "ld({}, {index})", group.identifier())
            }
            operand => Text(operand).fmt(f),
        }
    }
}

/// An operand of a function that is generic over the scalar: constants have an explicit type.
pub(super) struct Scalar(pub(super) Operand);

impl Display for Scalar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Operand::Constant(value) => write!(f, "({value:?} as S)"),
            operand => Read(operand).fmt(f),
        }
    }
}

/// Values of one sample.
pub(super) struct One;

impl Values for One {
    const LOAD: [&'static str; 2] = ["ld(w, ", ")"];
    const STORE: [&'static str; 4] = ["st(", ", ", ", ", ")"];
    const SIN_COS: [&'static str; 2] = ["m::sin_cos(", ")"];

    fn operand(operand: Operand) -> impl Display {
        Read(operand)
    }

    fn typed(operand: Operand) -> impl Display {
        Scalar(operand)
    }

    fn print_call(bundle: &Bundle, operation: Operation, out: &mut String) {
        let _ = match operation {
            Operation::Unary(op, a) => write!(out, "m::{}({})", op.name(), Scalar(a)),
            Operation::Binary(op, a, b) => write!(out, "m::{}({}, {})", op.name(), Scalar(a), Scalar(b)),
            Operation::MulAdd(a, b, c) if !bundle.fused => {
                write!(out, "{} * {} + {}", Read(a), Read(b), Read(c))
            }
            Operation::MulSub(a, b, c) if !bundle.fused => {
                write!(out, "{} * {} - {}", Read(a), Read(b), Read(c))
            }
            Operation::NegMulAdd(a, b, c) if !bundle.fused => {
                write!(out, "{} - {} * {}", Read(c), Read(a), Read(b))
            }
            Operation::MulAdd(a, b, c) => write!(out, "mul_add({}, {}, {})", Read(a), Read(b), Read(c)),
            Operation::MulSub(a, b, c) => write!(out, "mul_sub({}, {}, {})", Read(a), Read(b), Read(c)),
            Operation::NegMulAdd(a, b, c) => {
                write!(out, "neg_mul_add({}, {}, {})", Read(a), Read(b), Read(c))
            }
            Operation::Select(comparison, [a, b, x, y]) => {
                let name = comparison.name();
                write!(out, "m::{name}({}, {}, {}, {})", Scalar(a), Read(b), Read(x), Read(y))
            }
            Operation::Gather(run, index) => {
                write!(out, "m::gather({}, {})", run_text(bundle, run, "w"), Scalar(index))
            }
            Operation::Locate(run, x) => {
                write!(out, "m::locate({}, {})", run_text(bundle, run, "w"), Scalar(x))
            }
        };
    }
}
