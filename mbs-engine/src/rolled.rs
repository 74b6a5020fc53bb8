//! The loops of a bundle, run on a tape's memory by the runtime's functions.

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
            let (read, to) = match to {
                Memory::Array(array) => {
                    let range = place(array);
                    let (before, to) = w[..range.end].split_at_mut(range.start);
                    (&*before, to)
                }
                Memory::Result(result) => (&*w, &mut *results[result as usize]),
            };
            let (left, right) = (&read[place(left)], &read[place(right)]);
            rolled::products::<true, _>(table, left, right, width as usize, stride as usize, to);
        }
        Loop::MinusProduct { a, b, rows, ref starts, ref table, to } => {
            let (b, rows) = (&w[place(b)], rows as usize);
            match a {
                Memory::Array(a) => {
                    rolled::minus_product::<true, _>(
                        starts,
                        table,
                        &w[place(a)],
                        b,
                        rows,
                        results[to as usize],
                    );
                }
                Memory::Result(a) => {
                    if let Ok([a, to]) = results.get_disjoint_mut([a as usize, to as usize]) {
                        rolled::minus_product::<true, _>(starts, table, a, b, rows, to);
                    }
                }
            }
        }
        Loop::Inverse { s, u, d, scratch, ref tree, to } => {
            let range = place(scratch);
            let (before, scratch) = w[..range.end].split_at_mut(range.start);
            let [s, u, d] = [s, u, d].map(|array| &before[place(array)]);
            rolled::inverse::<true, _>(tree, s, u, d, scratch, results[to as usize]);
        }
    }
}
