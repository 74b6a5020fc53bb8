//! The steps of a packed bundle as lines of Rust: packs are `p1`, `p2`, …; single values are printed as everywhere.

use super::body::{Argument, One, Read, add_arguments, argument_of};
use super::statement::print_statements;
use crate::bundle::Bundle;
use crate::bundle::packing::{Lane, PackOperation, Step, VectorOp};
use std::collections::BTreeSet;
use std::fmt::Write;

/// The arguments that these steps read and write.
pub(super) fn arguments_of(steps: &[Step]) -> BTreeSet<Argument> {
    let mut used = BTreeSet::new();
    for step in steps {
        match step {
            Step::One(statement) => add_arguments(statement, &mut used),
            Step::Load(..) | Step::Store(..) => {
                used.insert(Argument::Workspace);
            }
            Step::Join(_, both) => used.extend(both.iter().copied().filter_map(argument_of)),
            Step::Compute(..) | Step::Extract(..) => {}
        }
    }
    used
}

/// A line each.
pub(super) fn print(bundle: &Bundle, steps: &[Step], out: &mut String) {
    for step in steps {
        let _ = match *step {
            Step::One(statement) => {
                print_statements::<One>(bundle, &[statement], out);
                continue;
            }
            Step::Load(pack, slot) => write!(out, "        let p{} = p::load(w, {slot})", pack.0),
            Step::Store(slot, pack) => write!(out, "        p::store(w, {slot}, p{})", pack.0),
            Step::Join(pack, [a, b]) => {
                write!(out, "        let p{} = p::join({}, {})", pack.0, Read(a), Read(b))
            }
            Step::Compute(pack, _, operation) => {
                let _ = write!(out, "        let p{} = ", pack.0);
                print_operation(bundle, &operation, out)
            }
            Step::Extract(value, pack, lane) => {
                let function = match lane {
                    Lane::First => "first",
                    Lane::Second => "second",
                };
                write!(out, "        let v{} = p::{function}(p{})", value.0, pack.0)
            }
        };
        out.push_str(";\n");
    }
}

fn print_operation(bundle: &Bundle, operation: &PackOperation, out: &mut String) -> std::fmt::Result {
    let [a, b, c] = operation.operands.map(|pack| pack.0);
    match operation.op {
        VectorOp::Neg => write!(out, "p::neg(p{a})"),
        VectorOp::Add => write!(out, "p::add(p{a}, p{b})"),
        VectorOp::Sub => write!(out, "p::sub(p{a}, p{b})"),
        VectorOp::Mul => write!(out, "p::mul(p{a}, p{b})"),
        VectorOp::Div => write!(out, "p::div(p{a}, p{b})"),
        VectorOp::MulAdd if !bundle.fused => write!(out, "p::add(p::mul(p{a}, p{b}), p{c})"),
        VectorOp::MulSub if !bundle.fused => write!(out, "p::sub(p::mul(p{a}, p{b}), p{c})"),
        VectorOp::NegMulAdd if !bundle.fused => write!(out, "p::sub(p{c}, p::mul(p{a}, p{b}))"),
        VectorOp::MulAdd => write!(out, "p::mul_add(p{a}, p{b}, p{c})"),
        VectorOp::MulSub => write!(out, "p::mul_sub(p{a}, p{b}, p{c})"),
        VectorOp::NegMulAdd => write!(out, "p::neg_mul_add(p{a}, p{b}, p{c})"),
    }
}
