//! Estimated instructions of a bundle and of its packed form.
//!
//! The weights are a least-squares fit to compiled code: 48 bundles of six models in both forms, x86-64 without flags; the ratio of the
//! two forms is met to 0.05 in most (`benches/packing.py`). Code is straight, so that instructions in memory are instructions executed.

use super::{Packed, Step};
use crate::bundle::{Bundle, Segment, Statement};

/// Hundredths of an instruction.
const OPERATION: usize = 272;
const MOVE: usize = 38;
const RESULT: usize = 65;
const PACK_OPERATION: usize = 189;
const PACK_MOVE: usize = 115;
const JOIN: usize = 182;
const EXTRACT: usize = 72;

fn of_statement(statement: &Statement) -> usize {
    match statement {
        Statement::Compute(..) | Statement::SinCos(..) => OPERATION,
        Statement::Load(..) | Statement::Store(..) => MOVE,
        Statement::Result { .. } => RESULT,
    }
}

/// Of the bundle as it is.
pub(super) fn of_bundle(bundle: &Bundle) -> usize {
    let flat = |segment: &Segment| match segment {
        Segment::Flat(statements) => statements.iter().map(of_statement).sum(),
        Segment::Kernel { .. } => 0,
    };
    bundle.segments.iter().map(flat).sum()
}

/// Of its packed form.
pub(super) fn of_packed(packed: &Packed) -> usize {
    let of_step = |step: &Step| match step {
        Step::One(statement) => of_statement(statement),
        Step::Load(..) | Step::Store(..) => PACK_MOVE,
        Step::Join(..) => JOIN,
        Step::Compute(..) => PACK_OPERATION,
        Step::Extract(..) => EXTRACT,
    };
    packed.segments.iter().flatten().map(of_step).sum()
}
