//! Good files damaged in a few places.

use super::FREE_TEXTS;
use super::numbers::{EXTREMES, number};
use crate::random_model::Random;
use std::ops::Range;

/// What is put in the place of a word: keys, words and signs of the format.
const WORDS: [&str; 78] = [
    "{",
    "}",
    "[",
    "]",
    ": ",
    ", ",
    "- ",
    "\n",
    "\n  ",
    "\"",
    "'",
    "|",
    ">-",
    "&a ",
    "*a",
    "!!str ",
    "? ",
    " #",
    "<<: *a",
    "---\n",
    "(",
    ")",
    "^",
    "*",
    "/",
    "-",
    ".",
    "t",
    "~",
    "\t",
    "\u{0}",
    "\u{202e}",
    "mirror: y",
    "ground",
    "origin",
    "com",
    "angle",
    "rate",
    "if(t < 1, ",
    "==",
    "spline(t, [0, 1, 2], [0, 1, 0])",
    "pos(",
    ".x",
    "e0",
    "arguments",
    "names: [type, fn, self, Self]",
    "floating",
    "spherical",
    "fixed",
    "prismatic",
    "revolute",
    "planar",
    "cardan",
    "cylindrical",
    "value",
    "mass",
    "1e308*1e308",
    "0/0",
    "ln(-1)",
    "true",
    "null",
    "hold: signal",
    "cut: true",
    "cut: false",
    "child: ground",
    "hold: true",
    "constraints",
    "variables",
    "objectives",
    "sensitivity",
    "multiplier(",
    "reaction_force(",
    "reaction_torque(",
    "type: coincident",
    "type: equation",
    "type: nonholonomic",
    "type: motion",
    "type: aligned",
];

/// Damages the text in one to four places, mostly in one.
pub fn mutate(r: &mut Random, text: &str) -> String {
    let mut text = text.to_string();
    for _ in 0..[1, 1, 1, 1, 2, 4][r.below(6)] {
        match r.below(12) {
            0 => flip_byte(r, &mut text),
            1 => double_line(r, &mut text),
            2 => delete_line(r, &mut text),
            3 => swap_lines(r, &mut text),
            4 => swap_words(r, &mut text),
            5 => insert(r, &mut text),
            6 => cut(r, &mut text),
            7 => free_text(r, &mut text),
            8 => nest(r, &mut text),
            _ => replace_number(r, &mut text),
        }
    }
    text
}

/// The nearest place at or below `at` where a character begins.
fn place(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0)
}

fn flip_byte(r: &mut Random, text: &mut String) {
    let mut bytes = std::mem::take(text).into_bytes();
    if !bytes.is_empty() {
        let at = r.below(bytes.len());
        bytes[at] ^= 1 << r.below(8);
    }
    *text = String::from_utf8_lossy(&bytes).into_owned();
}

fn edit_lines(text: &mut String, edit: impl FnOnce(&mut Vec<&str>)) {
    let mut lines: Vec<&str> = text.lines().collect();
    edit(&mut lines);
    *text = lines.join("\n") + "\n";
}

fn double_line(r: &mut Random, text: &mut String) {
    edit_lines(text, |lines| {
        if !lines.is_empty() {
            let (from, to) = (r.below(lines.len()), r.below(lines.len() + 1));
            lines.insert(to, lines[from]);
        }
    });
}

fn delete_line(r: &mut Random, text: &mut String) {
    edit_lines(text, |lines| {
        if !lines.is_empty() {
            lines.remove(r.below(lines.len()));
        }
    });
}

fn swap_lines(r: &mut Random, text: &mut String) {
    edit_lines(text, |lines| {
        if !lines.is_empty() {
            let (a, b) = (r.below(lines.len()), r.below(lines.len()));
            lines.swap(a, b);
        }
    });
}

/// The runs of characters that `belongs` accepts.
fn runs(text: &str, belongs: impl Fn(char) -> bool) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (at, c) in text.char_indices() {
        if !belongs(c) {
            continue;
        }
        match runs.last_mut() {
            Some(run) if run.end == at => run.end += c.len_utf8(),
            _ => runs.push(at..at + c.len_utf8()),
        }
    }
    runs
}

/// Puts another word of the file, or of the format, in the place of one.
fn swap_words(r: &mut Random, text: &mut String) {
    let words = runs(text, |c| c.is_alphanumeric() || c == '_');
    if words.is_empty() {
        return;
    }
    let target = words[r.below(words.len())].clone();
    let word = if r.chance(0.7) {
        text[words[r.below(words.len())].clone()].to_string()
    } else {
        WORDS[r.below(WORDS.len())].into()
    };
    text.replace_range(target, &word);
}

fn insert(r: &mut Random, text: &mut String) {
    let at = place(text, r.below(text.len() + 1));
    text.insert_str(at, WORDS[r.below(WORDS.len())]);
}

fn cut(r: &mut Random, text: &mut String) {
    let from = place(text, r.below(text.len() + 1));
    let to = place(text, from + r.below(30));
    text.replace_range(from..to, "");
}

fn free_text(r: &mut Random, text: &mut String) {
    let hostile = FREE_TEXTS[r.below(FREE_TEXTS.len())];
    let key = ["description", "name", "unit"][r.below(3)];
    // As JSON writes it, which YAML reads too: so all of it arrives.
    text.push_str(&format!("\n{key}: {}\n", super::tree::quoted(hostile)));
}

fn nest(r: &mut Random, text: &mut String) {
    let at = place(text, r.below(text.len() + 1));
    let depth = [3, 20, 60, 400][r.below(4)];
    let open = ["(", "[", "{a: ", "-", "sin(", "- ", "2^", "if(t<1,"][r.below(8)];
    text.insert_str(at, &open.repeat(depth));
}

fn replace_number(r: &mut Random, text: &mut String) {
    let numbers: Vec<_> = runs(text, |c| c.is_ascii_digit() || c == '.')
        .into_iter()
        .filter(|run| text[run.clone()].parse::<f64>().is_ok())
        .collect();
    if numbers.is_empty() {
        return;
    }
    let with = if r.chance(0.5) { EXTREMES[r.below(EXTREMES.len())].into() } else { number(r, 0.0) };
    text.replace_range(numbers[r.below(numbers.len())].clone(), &with);
}
