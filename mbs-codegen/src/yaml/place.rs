//! From a place inside a scalar's value back to the place in the file.
//!
//! Quotes, escapes and folding change the blanks of a scalar and drop characters, but the non-blank characters
//! of the value stand in the file in the same order: counting them finds the place in every style.

use super::node::{Style, Text};
use crate::diagnostics::Span;

/// The place in `source` of the bytes `start..end` of a scalar's value; `whole` is the scalar's own place.
pub(super) fn place(source: &str, whole: Span, text: &Text, start: usize, end: usize) -> Span {
    let visible = |upto: usize| {
        let upto = upto.min(text.value.len());
        text.value.char_indices().take_while(|(i, _)| *i < upto).filter(|(_, c)| !c.is_whitespace()).count()
    };
    let (first, last) = (visible(start), visible(end));
    let at_end = text.value.get(start..).is_none_or(|rest| rest.trim_start().is_empty());
    let mut walk = Walk::new(source, whole, text.style);
    let mut begin = walk.here();
    let mut count = 0;
    while let Some((before, c)) = walk.step() {
        if c.is_whitespace() {
            continue;
        }
        if count == first && !at_end {
            begin = before;
        }
        count += 1;
        if count == first && at_end {
            begin = walk.here();
        }
        if count >= last && count > first {
            break;
        }
    }
    let len = if last > first { walk.here().offset.saturating_sub(begin.offset) } else { 0 };
    Span { len, ..begin }
}

/// Walks over the characters of a scalar as it stands in the file.
struct Walk<'s> {
    rest: &'s str,
    offset: usize,
    line: u32,
    column: u32,
    style: Style,
}

impl<'s> Walk<'s> {
    fn new(source: &'s str, whole: Span, style: Style) -> Self {
        let end = whole.offset.saturating_add(whole.len).min(source.len());
        let rest = source.get(whole.offset..end).unwrap_or("");
        let mut walk = Walk { rest, offset: whole.offset, line: whole.line, column: whole.column, style };
        if matches!(style, Style::SingleQuoted | Style::DoubleQuoted) {
            walk.bump();
        }
        walk
    }

    fn here(&self) -> Span {
        Span { offset: self.offset, len: 0, line: self.line, column: self.column }
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        self.offset += c.len_utf8();
        if c == '\n' {
            self.line += 1;
            self.column = 1;
        } else {
            self.column += 1;
        }
        Some(c)
    }

    /// The next character of the value and its place; blanks need not be those of the value.
    fn step(&mut self) -> Option<(Span, char)> {
        let before = self.here();
        let c = self.bump()?;
        let c = match (self.style, c) {
            (Style::SingleQuoted, '\'') if self.rest.starts_with('\'') => {
                self.bump();
                c
            }
            (Style::SingleQuoted, '\'') | (Style::DoubleQuoted, '"') => return None,
            (Style::DoubleQuoted, '\\') => self.escape()?,
            _ => c,
        };
        Some((before, c))
    }

    fn escape(&mut self) -> Option<char> {
        let digits = match self.bump()? {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            'n' | 't' | 'r' | 'f' | 'v' | ' ' | '\n' | '\r' | '\t' | 'N' | 'L' | 'P' | '_' => {
                return Some(' ');
            }
            c => return Some(c),
        };
        let mut code = 0;
        for _ in 0..digits {
            code = code * 16 + self.bump()?.to_digit(16)?;
        }
        char::from_u32(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostics::Diagnostics;
    use crate::yaml::load::load;
    use crate::yaml::node::Kind;

    /// The source text of `needle` in the value of the only key.
    fn found(source: &str, needle: &str) -> (String, u32, u32) {
        let mut d = Diagnostics::new();
        let root = load(source, &mut d).expect("a tree");
        let Kind::Mapping(entries) = &root.kind else { panic!("a mapping") };
        let node = &entries[0].value;
        let Kind::Scalar(text) = &node.kind else { panic!("a scalar") };
        let start = text.value.find(needle).expect("the needle");
        let s = place(source, node.span, text, start, start + needle.len());
        (source[s.offset..s.offset + s.len].to_string(), s.line, s.column)
    }

    #[test]
    fn every_style_finds_its_place() {
        assert_eq!(found("a: x + bad*2", "bad"), ("bad".into(), 1, 8));
        assert_eq!(found("a: 'x''y bad'", "bad"), ("bad".into(), 1, 10));
        assert_eq!(found("a: \"x\\n \\u0062 bad\"", "bad"), ("bad".into(), 1, 16));
        assert_eq!(found("a: |\n  x +\n  bad * 2\n", "bad"), ("bad".into(), 3, 3));
        assert_eq!(found("a: >-\n  x +\n  bad * 2\n", "bad"), ("bad".into(), 3, 3));
        assert_eq!(found("a: x +\n   bad", "bad"), ("bad".into(), 2, 4));
        assert_eq!(found("a: é + bad", "bad"), ("bad".into(), 1, 8));
    }
}
