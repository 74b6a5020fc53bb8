//! A bundle for four columns at once: solves with many right-hand sides.
//!
//! Every operation of a solve is a product with a factor, a sum or a negation. Factors and prepared values are scalars, everything
//! else are lanes. A bundle with other operations has no such form.

use super::body::{Scalar, Text};
use crate::bundle::{Bundle, Operand, Operation, Segment, Statement};
use crate::graph::{BinaryOp, UnaryOp};
use crate::symbols::Group;
use std::fmt::Write;

/// Name of the function.
pub(super) fn name(bundle: &Bundle) -> String {
    format!("{}_lanes", bundle.name)
}

/// The function and those of its segments, if the bundle has this form.
pub(super) fn print(bundle: &Bundle) -> Option<String> {
    let len = |group| bundle.arguments.iter().find(|(g, _)| *g == group).map_or(0, |&(_, len)| len);
    let [result] = &bundle.results[..] else { return None };
    let parameters = format!(
        "factors: &[S; {}], rhs: &[L; {}], w: &mut [L; {}], out_{}: &mut [L; {}]",
        len(Group::Factors),
        len(Group::Rhs),
        bundle.slots,
        result.name,
        result.len
    );
    let name = name(bundle);
    let mut out = format!("\n    /// {} Four columns at once.\n    fn {name}({parameters}) {{\n", bundle.doc);
    let segments: Option<Vec<String>> = bundle.segments.iter().map(|s| statements(bundle, s)).collect();
    let segments = segments?;
    if let [only] = &segments[..] {
        let _ = writeln!(out, "{only}    }}");
        return Some(out);
    }
    for i in 0..segments.len() {
        let _ = writeln!(out, "        {name}_{i}(factors, rhs, w, out_{});", result.name);
    }
    out.push_str("    }\n");
    for (i, body) in segments.iter().enumerate() {
        let _ = writeln!(out, "\n    #[inline(never)]\n    fn {name}_{i}({parameters}) {{\n{body}    }}");
    }
    Some(out)
}

fn statements(bundle: &Bundle, segment: &Segment) -> Option<String> {
    let Segment::Flat(statements) = segment else { return None };
    let mut out = String::from("        let _ = (&rhs, &w);\n        let factors: &[S] = factors;\n");
    for statement in statements {
        let text = match *statement {
            Statement::Load(value, slot) => format!("let v{} = w[{slot}]", value.0),
            Statement::Store(slot, operand) => format!("w[{slot}] = {}", lanes(operand)?),
            Statement::Result { index, value, .. } => {
                format!("out_{}[{index}] = {}", bundle.results[0].name, lanes(value)?)
            }
            Statement::Compute(value, operation) => {
                format!("let v{} = {}", value.0, compute(operation, bundle.fused)?)
            }
            Statement::SinCos(..) => return None,
        };
        let _ = writeln!(out, "        {text};");
    }
    Some(out)
}

/// A number: the same for all columns.
fn number(operand: Operand) -> Option<String> {
    match operand {
        Operand::Constant(_) | Operand::Argument(Group::Factors, _) => Some(Scalar(operand).to_string()),
        _ => None,
    }
}

/// One value per column.
fn lanes(operand: Operand) -> Option<String> {
    match operand {
        Operand::Argument(Group::Rhs, _) | Operand::Value(_) => Some(Text(operand).to_string()),
        _ => None,
    }
}

/// A number and a value of each column, in whichever order.
fn product(a: Operand, b: Operand) -> Option<(String, String)> {
    number(a).zip(lanes(b)).or_else(|| number(b).zip(lanes(a)))
}

fn compute(operation: Operation, fused: bool) -> Option<String> {
    Some(match operation {
        Operation::Unary(UnaryOp::Neg, a) => format!("l::neg({})", lanes(a)?),
        Operation::Binary(BinaryOp::Add, a, b) => format!("l::add({}, {})", lanes(a)?, lanes(b)?),
        Operation::Binary(BinaryOp::Sub, a, b) => format!("l::sub({}, {})", lanes(a)?, lanes(b)?),
        Operation::Binary(BinaryOp::Mul, a, b) => {
            let (number, x) = product(a, b)?;
            format!("l::mul({number}, {x})")
        }
        Operation::MulAdd(a, b, c) if !fused => {
            let (number, x) = product(a, b)?;
            format!("l::add(l::mul({number}, {x}), {})", lanes(c)?)
        }
        Operation::MulSub(a, b, c) if !fused => {
            let (number, x) = product(a, b)?;
            format!("l::sub(l::mul({number}, {x}), {})", lanes(c)?)
        }
        Operation::NegMulAdd(a, b, c) if !fused => {
            let (number, x) = product(a, b)?;
            format!("l::sub({}, l::mul({number}, {x}))", lanes(c)?)
        }
        Operation::MulAdd(a, b, c) => {
            let (number, x) = product(a, b)?;
            format!("l::mul_add({number}, {x}, {})", lanes(c)?)
        }
        Operation::MulSub(a, b, c) => {
            let (number, x) = product(a, b)?;
            format!("l::mul_add({number}, {x}, l::neg({}))", lanes(c)?)
        }
        Operation::NegMulAdd(a, b, c) => {
            let (number, x) = product(a, b)?;
            format!("l::mul_add(-{number}, {x}, {})", lanes(c)?)
        }
        _ => return None,
    })
}
