//! The printed form of problems.

use std::fmt::Write;

use super::{Diagnostic, Diagnostics, Severity};

/// More problems than this are counted, not printed.
const SHOWN: usize = 100;
/// Source lines are cut this many characters before and after the place.
const WIDTH: usize = 110;

pub(super) fn render(diagnostics: &Diagnostics, file_name: &str, text: &str) -> String {
    let mut out = String::new();
    let sorted = diagnostics.sorted();
    for d in sorted.iter().take(SHOWN) {
        render_one(&mut out, d, file_name, text);
    }
    if sorted.len() > SHOWN {
        out.push_str("further problems are not shown\n");
    }
    let warnings = sorted.iter().filter(|d| d.severity == Severity::Warning).count();
    let errors = if diagnostics.is_full() { diagnostics.error_count() } else { sorted.len() - warnings };
    out.push_str(&summary(errors, warnings));
    out
}

fn summary(errors: usize, warnings: usize) -> String {
    let count = |n: usize, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
    match (errors, warnings) {
        (0, 0) => String::new(),
        (e, 0) => count(e, "error") + "\n",
        (0, w) => count(w, "warning") + "\n",
        (e, w) => format!("{}, {}\n", count(e, "error"), count(w, "warning")),
    }
}

fn render_one(out: &mut String, d: &Diagnostic, file_name: &str, text: &str) {
    let word = match d.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    // Writing to a string cannot fail.
    if d.span.is_known() {
        let _ = writeln!(out, "{file_name}:{}:{}: {word}: {}", d.span.line, d.span.column, d.message);
    } else {
        let _ = writeln!(out, "{file_name}: {word}: {}", d.message);
    }
    let number = if d.span.is_known() { d.span.line.to_string() } else { String::new() };
    let margin = " ".repeat(number.len() + 2);
    if d.span.is_known()
        && let Some((line, caret, width)) = excerpt(text, d.span.offset, d.span.len)
    {
        let _ = writeln!(out, "  {number} | {line}");
        let _ = writeln!(out, "{margin} | {}{}", " ".repeat(caret), "^".repeat(width));
    }
    if !d.help.is_empty() {
        let _ = writeln!(out, "{margin} = help: {}", clean(&d.help));
    }
}

/// The source line at `offset`, how many characters stand before the place in it, and how many belong to it.
fn excerpt(text: &str, offset: usize, len: usize) -> Option<(String, usize, usize)> {
    if offset > text.len() || !text.is_char_boundary(offset) {
        return None;
    }
    let is_break = |c: char| c == '\n' || c == '\r';
    let mut before: Vec<char> = Vec::new();
    let mut cut_before = false;
    for c in text[..offset].chars().rev() {
        if is_break(c) {
            break;
        }
        if before.len() == WIDTH {
            cut_before = true;
            break;
        }
        before.push(c);
    }
    let mut line = String::from(if cut_before { "…" } else { "" });
    line.extend(before.iter().rev().map(|&c| printable(c)));
    let caret = before.len() + usize::from(cut_before);

    let end = offset.saturating_add(len);
    let mut width = 0;
    for (taken, (i, c)) in text[offset..].char_indices().enumerate() {
        if is_break(c) {
            break;
        }
        if taken == WIDTH {
            line.push('…');
            break;
        }
        line.push(printable(c));
        if offset + i < end {
            width += 1;
        }
    }
    let trimmed = line.trim_end().len();
    line.truncate(trimmed);
    Some((line, caret, width.max(1)))
}

fn clean(text: &str) -> String {
    text.chars().map(printable).collect()
}

/// Terminal control characters of a hostile file must not reach the terminal.
fn printable(c: char) -> char {
    if c == '\t' {
        ' '
    } else if c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    {
        '\u{fffd}'
    } else {
        c
    }
}
