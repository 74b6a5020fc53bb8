//! Statements as lines of Rust. The same lines serve one sample and several samples, so that each sample is bit for bit equal to
//! the scalar function.

use crate::bundle::{Bundle, Operand, Operation, Statement};
use crate::graph::{BinaryOp, UnaryOp};
use std::fmt::{Display, Write};

/// How values of one kind are written.
pub(super) trait Values {
    /// Prefix and suffix of the slot of a value that is loaded.
    const LOAD: [&'static str; 2];

    /// Prefixes of array, index and value of an entry that is stored, and the suffix.
    const STORE: [&'static str; 4];

    /// Prefix and suffix of the angle of a sine and cosine.
    const SIN_COS: [&'static str; 2];

    /// An operand whose type follows from the context.
    fn operand(operand: Operand) -> impl Display;

    /// An operand with an explicit type.
    fn typed(operand: Operand) -> impl Display;

    /// An operation that is a function call.
    fn print_call(bundle: &Bundle, operation: Operation, out: &mut String);
}

/// A line each.
pub(super) fn print_statements<V: Values>(bundle: &Bundle, statements: &[Statement], out: &mut String) {
    for statement in statements {
        out.push_str("        ");
        let _ = match *statement {
            Statement::Load(value, slot) => {
                let [before, behind] = V::LOAD;
                write!(out, "let v{} = {before}{slot}{behind}", value.0)
            }
            Statement::Store(slot, operand) => {
                let [before, index, value, behind] = V::STORE;
                write!(out, "{before}w{index}{slot}{value}{}{behind}", V::operand(operand))
            }
            Statement::Result { result, index: place, value: operand } => {
                let [before, index, value, behind] = V::STORE;
                let name = bundle.results[result as usize].name;
                write!(out, "{before}out_{name}{index}{place}{value}{}{behind}", V::operand(operand))
            }
            Statement::SinCos(sine, cosine, angle) => {
                let [before, behind] = V::SIN_COS;
                write!(out, "let (v{}, v{}) = {before}{}{behind}", sine.0, cosine.0, V::typed(angle))
            }
            Statement::Compute(value, operation) => {
                let _ = write!(out, "let v{} = ", value.0);
                print_operation::<V>(bundle, operation, out)
            }
        };
        out.push_str(";\n");
    }
}

fn print_operation<V: Values>(bundle: &Bundle, operation: Operation, out: &mut String) -> std::fmt::Result {
    let (operator, a, b) = match operation {
        Operation::Unary(UnaryOp::Neg, a) => return write!(out, "-{}", V::operand(a)),
        Operation::Binary(BinaryOp::Add, a, b) => ('+', a, b),
        Operation::Binary(BinaryOp::Sub, a, b) => ('-', a, b),
        Operation::Binary(BinaryOp::Mul, a, b) => ('*', a, b),
        Operation::Binary(BinaryOp::Div, a, b) => ('/', a, b),
        _ => {
            V::print_call(bundle, operation, out);
            return Ok(());
        }
    };
    write!(out, "{} {operator} {}", V::operand(a), V::operand(b))
}
