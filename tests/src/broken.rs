//! Programs with a wrong derivative, for tests that must see it.

use mbs_codegen::bundle::{Operand, Operation, Segment, Statement, ValueId};
use mbs_codegen::graph::BinaryOp;
use mbs_codegen::program::Program;

/// The program with the last computed number of a bundle's derivatives off by a tenth.
pub fn broken(program: &Program, name: &str) -> Program {
    let mut program = program.clone();
    let bundle = program.bundles.iter_mut().find(|bundle| bundle.name == name).expect("the bundle");
    let last = bundle.results.iter().position(|r| {
        let derivatives = [
            "values",
            "matrix",
            "jacobians",
            "m",
            "com_jacobian",
            "vd_z",
            "multipliers",
            "zdd_rho",
            "vd_rho",
            "v_rho",
            "rho_bar",
        ];
        derivatives.contains(&r.name)
    });
    let last = last.expect("a result of derivatives") as u32;
    let mut place = None;
    for (s, segment) in bundle.segments.iter().enumerate() {
        let Segment::Flat(statements) = segment else { continue };
        for (i, statement) in statements.iter().enumerate() {
            if let Statement::Result { result, value: Operand::Value(_) | Operand::Argument(..), .. } =
                statement
                && *result == last
            {
                place = Some((s, i));
            }
        }
    }
    let (s, i) = place.expect("something computed");
    let Segment::Flat(statements) = &mut bundle.segments[s] else { unreachable!() };
    let Statement::Result { result, index, value } = statements[i] else { unreachable!() };
    let wrong = ValueId(bundle.values);
    bundle.values += 1;
    let moved = Operation::Binary(BinaryOp::Add, Operand::Constant(0.1), value);
    statements[i] = Statement::Result { result, index, value: Operand::Value(wrong) };
    statements.insert(i, Statement::Compute(wrong, moved));
    program
}
