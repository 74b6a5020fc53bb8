//! The loops of a bundle, run on a tape's memory by the runtime's functions.

use core::ops::Range;
use mbs_codegen::bundle::{Loop, Memory};
use mbs_runtime::{Scalar, rolled};

/// Runs a loop. `arrays` says where each array lies in `w`; what a loop reads lies before what it writes. A loop of a verified bundle finds
/// all of its memory.
pub(crate) fn run<S: Scalar>(each: &Loop, arrays: &[(u32, u32)], w: &mut [S], results: &mut [&mut [S]]) {
    let place = |array: u32| {
        let (start, len) = arrays[array as usize];
        start as usize..(start + len) as usize
    };
    match *each {
        Loop::Products { left, right, width, stride, ref table, to } => {
            let (read, to) = apart(to, place, w, results);
            let (left, right) = (&read[place(left)], &read[place(right)]);
            rolled::products::<true, _>(table, left, right, width as usize, stride as usize, to);
        }
        Loop::Bilinear { a, b, blocks, ref rows, ref terms, to } => {
            let (read, to) = apart(Memory::Array(to), place, w, results);
            let (a, b) = (&read[place(a)], &read[place(b)]);
            rolled::bilinear::<true, _>(rows, terms, a, b, blocks as usize, to);
        }
        Loop::MinusProduct { a, b, rows, ref groups, ref table, to } => {
            let (b, rows) = (&w[place(b)], rows as usize);
            match a {
                Memory::Array(a) => {
                    rolled::minus_product::<true, _>(
                        groups,
                        table,
                        &w[place(a)],
                        b,
                        rows,
                        results[to as usize],
                    );
                }
                Memory::Result(a) => {
                    if let Ok([a, to]) = results.get_disjoint_mut([a as usize, to as usize]) {
                        rolled::minus_product::<true, _>(groups, table, a, b, rows, to);
                    }
                }
            }
        }
        Loop::Inverse { s, u, d, scratch, ref tree, ref groups, ref table, to } => {
            let range = place(scratch);
            let (before, scratch) = w[..range.end].split_at_mut(range.start);
            let [s, u, d] = [s, u, d].map(|array| &before[place(array)]);
            let to = &mut *results[to as usize];
            rolled::inverse::<true, _>(tree, groups, table, s, u, d, scratch, to);
        }
    }
}

/// The slots that may be read, and what is written.
fn apart<'a, S>(
    to: Memory,
    place: impl Fn(u32) -> Range<usize>,
    w: &'a mut [S],
    results: &'a mut [&mut [S]],
) -> (&'a [S], &'a mut [S]) {
    match to {
        Memory::Array(array) => {
            let range = place(array);
            let (before, to) = w[..range.end].split_at_mut(range.start);
            (before, to)
        }
        Memory::Result(result) => (w, &mut *results[result as usize]),
    }
}
