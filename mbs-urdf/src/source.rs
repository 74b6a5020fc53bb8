//! Places in the text, and checks before parsing.
//!
//! The parser is `roxmltree`: it does not recurse, refuses document types (so there are no entities to expand) and
//! bounds its nodes. Attributes of one tag and nested namespaces cost more than linear time; both are bounded here.

use crate::limits;
use mbs_codegen::diagnostics::{Diagnostics, Span};
use roxmltree::{Document, Error, ParsingOptions, TextPos};
use std::borrow::Cow;
use std::ops::Range;

/// A text, the offsets of its lines, and the number of characters before every [`BLOCK`] bytes, since lines may be long.
pub(crate) struct Source<'t> {
    text: &'t str,
    lines: Vec<usize>,
    blocks: Vec<usize>,
}

const BLOCK: usize = 256;

impl<'t> Source<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        let after = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        let mut blocks = vec![0];
        for block in text.as_bytes().chunks(BLOCK) {
            blocks.push(blocks.last().copied().unwrap_or(0) + characters(block));
        }
        Source { text, lines: std::iter::once(0).chain(after).collect(), blocks }
    }

    /// Number of characters that begin before an offset.
    fn characters_before(&self, offset: usize) -> usize {
        let block = offset / BLOCK;
        self.blocks[block] + characters(&self.text.as_bytes()[block * BLOCK..offset])
    }

    /// The place of some bytes.
    pub(crate) fn span(&self, bytes: Range<usize>) -> Span {
        let offset = bytes.start.min(self.text.len());
        let line = self.lines.partition_point(|&start| start <= offset).max(1);
        let start = self.lines[line - 1];
        let before = self.characters_before(offset) - self.characters_before(start);
        let len = bytes.end.saturating_sub(offset);
        Span { offset, len, line: line as u32, column: before as u32 + 1 }
    }

    /// The place of the parser's row and column.
    fn span_at(&self, at: TextPos) -> Span {
        let start = self.lines.get((at.row as usize).saturating_sub(1)).copied().unwrap_or(self.text.len());
        let column = (at.col as usize).saturating_sub(1);
        let within =
            self.text[start..].char_indices().nth(column).map_or(self.text.len(), |(at, _)| start + at);
        self.span(within..within + 1)
    }

    fn end(&self) -> Span {
        self.span(self.text.trim_end().len()..self.text.len())
    }
}

/// Number of characters that begin in a piece of UTF-8.
fn characters(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0xc0 != 0x80).count()
}

fn options<'i>() -> ParsingOptions<'i> {
    ParsingOptions { allow_dtd: false, nodes_limit: limits::NODES, ..ParsingOptions::default() }
}

/// The text as [`parse`] accepts it. Undeclared prefixes are ignored, as in other URDF readers: their
/// colons become `_`, which changes no place.
pub(crate) fn readable<'t>(text: &'t str, diagnostics: &mut Diagnostics) -> Option<Cow<'t, str>> {
    let source = Source::new(text);
    if !is_bounded(&source, diagnostics) {
        return None;
    }
    let mut readable = Cow::Borrowed(text);
    for _ in 0..limits::PREFIXES {
        let parsed = Document::parse_with_options(&readable, options()).map(drop);
        let (prefix, at) = match parsed {
            Err(Error::UnknownNamespace(prefix, at)) if !prefix.is_empty() => (prefix, at),
            Err(error) => {
                report(&source, &error, diagnostics);
                return None;
            }
            Ok(()) => return Some(readable),
        };
        if prefix == "xacro" {
            report_xacro(source.span_at(at), diagnostics);
            return None;
        }
        readable = Cow::Owned(without_prefix(&readable, &prefix));
    }
    diagnostics
        .error(Span::default(), "there are too many prefixes that no `xmlns:…` declares")
        .help("declare them at `<robot>`");
    None
}

/// The tree of a text that is [`readable`].
pub(crate) fn parse(text: &str) -> Option<Document<'_>> {
    Document::parse_with_options(text, options()).ok()
}

/// Reports that the file has macros.
pub(crate) fn report_xacro(span: Span, diagnostics: &mut Diagnostics) {
    diagnostics
        .error(span, "this is a xacro file, not a URDF file")
        .help("expand it first: `xacro FILE.xacro > ROBOT.urdf`");
}

/// `prefix:name` → `prefix_name`, where it begins an element or an attribute.
fn without_prefix(text: &str, prefix: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(prefix) {
        let (before, from) = rest.split_at(at);
        let after = &from[prefix.len()..];
        out.push_str(before);
        out.push_str(prefix);
        let begins = out[..out.len() - prefix.len()].ends_with(['<', '/', ' ', '\t', '\n', '\r']);
        rest = match after.strip_prefix(':') {
            Some(after) if begins => {
                out.push('_');
                after
            }
            _ => after,
        };
    }
    out.push_str(rest);
    out
}

/// Whether the parser's time and memory for this text are proportional to its length.
fn is_bounded(source: &Source<'_>, diagnostics: &mut Diagnostics) -> bool {
    let text = source.text;
    if text.len() > limits::FILE_BYTES {
        let limit = limits::FILE_BYTES >> 20;
        diagnostics.error(Span::default(), format!("the file is larger than {limit} MiB"));
        return false;
    }
    if text.matches("xmlns").count() > limits::NAMESPACES {
        diagnostics.error(Span::default(), "the file declares too many name spaces");
        return false;
    }
    match oversized_tag(text) {
        Some(at) => {
            let message = format!("this tag has more than {} attributes", limits::ATTRIBUTES);
            diagnostics.error(source.span(at..at + 1), message);
            false
        }
        None => true,
    }
}

/// The offset of a tag with too many attributes; the same tags as for the parser.
fn oversized_tag(text: &str) -> Option<usize> {
    let mut at = 0;
    while let Some(found) = text[at..].find('<') {
        let begin = at + found;
        let rest = &text[begin..];
        let skip = |open: &str, close: &str| {
            let inside = rest.strip_prefix(open)?;
            Some(inside.find(close).map_or(text.len(), |end| begin + open.len() + end + close.len()))
        };
        if let Some(end) = skip("<!--", "-->").or(skip("<![CDATA[", "]]>")).or(skip("<?", "?>")) {
            at = end;
            continue;
        }
        let mut quote = None;
        let mut attributes = 0;
        at = text.len();
        for (i, byte) in rest.bytes().enumerate().skip(1) {
            match (byte, quote) {
                (b'"' | b'\'', None) => {
                    quote = Some(byte);
                    attributes += 1;
                }
                (_, Some(open)) if byte == open => quote = None,
                (b'>', None) => {
                    at = begin + i;
                    break;
                }
                _ => {}
            }
            if attributes > limits::ATTRIBUTES {
                return Some(begin);
            }
        }
    }
    None
}

fn report(source: &Source<'_>, error: &Error, diagnostics: &mut Diagnostics) {
    let (span, help) = match error {
        Error::DtdDetected => {
            let at = source.text.find("<!DOCTYPE").unwrap_or(0);
            let message = "document types (`<!DOCTYPE …>`) are not read";
            diagnostics.error(source.span(at..at + 9), message).help("remove it, and write its entities out");
            return;
        }
        Error::NodesLimitReached => {
            diagnostics.error(Span::default(), "the file has too many elements");
            return;
        }
        Error::NoRootNode => (source.span(0..1), "a URDF file starts with `<robot name=\"…\">`"),
        Error::UnclosedRootNode | Error::UnexpectedEndOfStream => {
            (source.end(), "the file ends too early: an element is not closed")
        }
        Error::UnexpectedCloseTag(..) => {
            (source.span_at(error.pos()), "an element before this place is not closed")
        }
        Error::InvalidAttributeValue(_) => (source.span_at(error.pos()), "write `<` as `&lt;`"),
        _ => (source.span_at(error.pos()), "the file must be well-formed XML"),
    };
    // The place is reported already.
    let message = error.to_string().replace(&format!(" at {}", error.pos()), "");
    diagnostics.error(span, format!("not valid XML: {}", one_line(&message))).help(help);
}

/// A message on one line, of bounded length.
pub(crate) fn one_line(text: &str) -> String {
    let shown: String = text.chars().take(80).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(80).is_some() { shown + "…" } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_lines_and_characters() {
        let source = Source::new("<a>\n é<b/>\n");
        let span = source.span(7..11);
        assert_eq!((span.line, span.column, span.len), (2, 3, 4));
        assert_eq!(source.span(99..120).line, 3);
        assert_eq!(source.span_at(TextPos::new(2, 3)), source.span(7..8));
        let long = format!("\n{}", "aé".repeat(1000));
        let source = Source::new(&long);
        for (number, (at, _)) in long.char_indices().enumerate().skip(1) {
            assert_eq!(source.span(at..at).column as usize, number);
        }
    }

    #[test]
    fn prefixes_are_overlooked() {
        let text = "<robot><a:b a:c='a:d'/><ba:b/></robot>";
        assert_eq!(without_prefix(text, "a"), "<robot><a_b a_c='a:d'/><ba:b/></robot>");
        let mut diagnostics = Diagnostics::new();
        let found = readable(text, &mut diagnostics).map(Cow::into_owned);
        assert_eq!(found.as_deref(), Some("<robot><a_b a_c='a:d'/><ba_b/></robot>"));
        assert!(diagnostics.is_empty());
    }

    #[test]
    fn oversized_tags_are_found_where_they_are() {
        let many = " a='>'".repeat(limits::ATTRIBUTES + 1);
        let text = format!("<r><!-- <x{many}> --><?x {many}?><b{many}/></r>");
        assert_eq!(oversized_tag(&text), text.find("<b"));
        assert_eq!(
            oversized_tag(&format!("<r><!-- {many} --><b a='{}'/></r>", many.replace('\'', ""))),
            None
        );
        assert_eq!(oversized_tag("<r a='"), None);
    }
}
