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
            Loop::Bilinear { rows, terms, .. } => {
                let name = name(bundle, i);
                print_table(&format!("{name}_ROWS"), rows, out).and_then(|()| print_table(&name, terms, out))
            }
            Loop::MinusProduct { groups, table, .. } => print_groups(&name(bundle, i), groups, table, out),
            Loop::Inverse { tree, groups, table, .. } => {
                let name = name(bundle, i);
                print_groups(&name, groups, table, out)
                    .and_then(|()| writeln!(out, "    static {name}_TREE: [u32; {}] = {tree:?};", tree.len()))
            }
        };
    }
}

fn print_groups(name: &str, groups: &[[u32; 4]], table: &[u32], out: &mut String) -> std::fmt::Result {
    print_table(&format!("{name}_GROUPS"), groups, out)?;
    writeln!(out, "    static {name}: [u32; {}] = {table:?};", table.len())
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
    // Some loops write all of their result.
    let whole = |each: &&Loop| matches!(each, Loop::MinusProduct { .. } | Loop::Inverse { .. });
    let written: Vec<Memory> = bundle.loops.iter().filter(whole).map(Loop::writes).collect();
    for (result, i) in bundle.results.iter().zip(0..) {
        if written.contains(&Memory::Result(i)) {
            continue;
        }
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
            Loop::Bilinear { a, b, blocks, .. } => {
                let (a, b) = (array(a), array(b));
                writeln!(
                    out,
                    "        r::bilinear::<{fused}, _>({table}_ROWS, {table}, {a}, {b}, {blocks}, {to});"
                )
            }
            Loop::MinusProduct { a, b, rows, .. } => {
                let (a, b) = (read(*a), array(b));
                writeln!(
                    out,
                    "        r::minus_product::<{fused}, _>({table}_GROUPS, {table}, {a}, {b}, {rows}, {to});"
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
                     r::inverse::<{fused}, _>({table}_TREE, {table}_GROUPS, {table}, {s}, {u}, {d}, scratch, {to});",
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
        (Loop::Bilinear { rows: a, terms: x, .. }, Loop::Bilinear { rows: b, terms: y, .. }) => {
            (a, x) == (b, y)
        }
        (Loop::MinusProduct { groups: a, table: x, .. }, Loop::MinusProduct { groups: b, table: y, .. }) => {
            (a, x) == (b, y)
        }
        _ => false,
    };
    bundle.loops.iter().position(same).unwrap_or(i)
}

fn name(bundle: &Bundle, i: usize) -> String {
    format!("{}_LOOP_{i}", bundle.name.to_ascii_uppercase())
}
