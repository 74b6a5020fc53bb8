//! Loops of bundles: their constant tables, and calls of the runtime's functions.

use crate::bundle::{Bundle, Loop, Memory};
use std::fmt::Write;

/// The tables of a bundle's loops; equal tables are printed once.
pub(super) fn print_tables(bundle: &Bundle, out: &mut String) {
    for (i, each) in bundle.loops.iter().enumerate() {
        if first_like(bundle, i) != i {
            continue;
        }
        let _ = match each {
            Loop::Products { table, .. } => print_table(&name(bundle, i), table, out),
            Loop::MinusProduct { starts, table, .. } => {
                let name = name(bundle, i);
                writeln!(out, "    static {name}_STARTS: [u32; {}] = {starts:?};", starts.len())
                    .and_then(|()| writeln!(out, "    static {name}: [u32; {}] = {table:?};", table.len()))
            }
            Loop::Inverse { tree, .. } => print_table(&name(bundle, i), tree, out),
        };
    }
}

fn print_table<const N: usize>(name: &str, table: &[[u32; N]], out: &mut String) -> std::fmt::Result {
    let rows: Vec<String> = table.iter().map(|row| format!("{row:?}")).collect();
    writeln!(out, "    static {name}: [[u32; {N}]; {}] = [{}];", table.len(), rows.join(", "))
}

/// Initialises the memory of a bundle with loops with zeros.
pub(super) fn print_zeros(bundle: &Bundle, zero: &str, out: &mut String) {
    if bundle.loops.is_empty() {
        return;
    }
    let _ = writeln!(out, "        w[..{}].fill({zero});", bundle.array_slots());
    for result in &bundle.results {
        let _ = writeln!(out, "        out_{}.fill({zero});", result.name);
    }
}

/// The calls; `path` is the path to the tables.
pub(super) fn print_calls(bundle: &Bundle, path: &str, out: &mut String) {
    for (i, each) in bundle.loops.iter().enumerate() {
        let table = format!("&{path}{}", name(bundle, first_like(bundle, i)));
        // Memory before the written part may be read at the same time.
        let (slots, to) = match each.writes() {
            Memory::Array(array) => {
                let range = bundle.array(array);
                let _ = writeln!(
                    out,
                    "        let (before, to) = w[..{}].split_at_mut({});",
                    range.end, range.start
                );
                ("before", "to".to_owned())
            }
            Memory::Result(result) => ("w", format!("out_{}", bundle.results[result as usize].name)),
        };
        let read = |memory: Memory| match memory {
            Memory::Array(array) => {
                let range = bundle.array(array);
                format!("&{slots}[{}..{}]", range.start, range.end)
            }
            Memory::Result(result) => format!("&*out_{}", bundle.results[result as usize].name),
        };
        let array = |array: &u32| read(Memory::Array(*array));
        let fused = bundle.fused;
        let _ = match each {
            Loop::Products { left, right, width, stride, .. } => {
                let (left, right) = (array(left), array(right));
                writeln!(
                    out,
                    "        r::products::<{fused}, _>({table}, {left}, {right}, {width}, {stride}, {to});"
                )
            }
            Loop::MinusProduct { a, b, rows, .. } => {
                let (a, b) = (read(*a), array(b));
                writeln!(
                    out,
                    "        r::minus_product::<{fused}, _>({table}_STARTS, {table}, {a}, {b}, {rows}, {to});"
                )
            }
            Loop::Inverse { s, u, d, scratch, .. } => {
                let range = bundle.array(*scratch);
                let slots = |array: &u32| {
                    let range = bundle.array(*array);
                    format!("&before[{}..{}]", range.start, range.end)
                };
                let (s, u, d) = (slots(s), slots(u), slots(d));
                writeln!(
                    out,
                    "        let (before, scratch) = w[..{}].split_at_mut({});\n        \
                     r::inverse::<{fused}, _>({table}, {s}, {u}, {d}, scratch, {to});",
                    range.end, range.start
                )
            }
        };
    }
}

/// The first loop with the same table.
fn first_like(bundle: &Bundle, i: usize) -> usize {
    let same = |other: &Loop| match (other, &bundle.loops[i]) {
        (Loop::Products { table: a, .. }, Loop::Products { table: b, .. }) => a == b,
        (Loop::MinusProduct { starts: a, table: x, .. }, Loop::MinusProduct { starts: b, table: y, .. }) => {
            (a, x) == (b, y)
        }
        (Loop::Inverse { tree: a, .. }, Loop::Inverse { tree: b, .. }) => a == b,
        _ => false,
    };
    bundle.loops.iter().position(same).unwrap_or(i)
}

fn name(bundle: &Bundle, i: usize) -> String {
    format!("{}_LOOP_{i}", bundle.name.to_ascii_uppercase())
}
