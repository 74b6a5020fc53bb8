//! From text to the spanned tree.
//!
//! The events come from `granit-parser`: a YAML 1.2 parser without unsafe code that is fuzzed, gives byte
//! offsets for every event, bounds its own nesting and can go on after an unknown alias. A serde reader would
//! stop at the first problem and lose the places; `serde_yaml` is abandoned; `saphyr-parser`, which granit
//! descends from, has neither byte offsets nor a bound on block nesting.
//!
//! Holds afterwards: one document, keys are texts and unique, no tags, no merge keys, no directives; height and
//! size are within [`limits`], also after aliases are followed.

use std::collections::HashMap;
use std::rc::Rc;

use granit_parser::{Event, Marker, Parser, ScalarStyle, Span as RawSpan, StructureStyle};

use super::limits;
use super::node::{Entry, Kind, Node, Style, Text};
use crate::diagnostics::{Diagnostics, Span};

/// The document's root, or `None` after a problem that leaves no tree to look at.
pub(super) fn load(text: &str, diagnostics: &mut Diagnostics) -> Option<Rc<Node>> {
    if text.len() > limits::FILE_BYTES {
        let limit = limits::FILE_BYTES >> 20;
        diagnostics.error(Span::default(), format!("the file is larger than {limit} MiB"));
        return None;
    }
    Loader { text, diagnostics, stack: Vec::new(), anchors: HashMap::new(), weight: 0, root: None }.run()
}

/// A list or mapping still open.
struct Open {
    start: Span,
    flow: bool,
    anchor: usize,
    /// Weight of the document before it, so that its own weight is known at its end.
    weight_before: usize,
    /// Height of the tallest child so far.
    height: usize,
    content: Content,
}

enum Content {
    Sequence(Vec<Rc<Node>>),
    Mapping { entries: Vec<Entry>, places: HashMap<Rc<str>, Span>, key: Option<(Rc<str>, Span, Use)> },
}

/// Where a key's value goes.
#[derive(PartialEq)]
enum Use {
    Keep,
    Drop,
}

/// A finished node an alias may stand for.
struct Anchored {
    node: Rc<Node>,
    weight: usize,
    height: usize,
}

struct Loader<'t, 'd> {
    text: &'t str,
    diagnostics: &'d mut Diagnostics,
    stack: Vec<Open>,
    anchors: HashMap<usize, Anchored>,
    weight: usize,
    root: Option<Rc<Node>>,
}

impl Loader<'_, '_> {
    fn run(mut self) -> Option<Rc<Node>> {
        let options = granit_parser::options! {
            emit_comments: false,
            emit_unresolved_aliases: true,
            flow_nesting_limit: limits::NESTING,
            block_nesting_limit: limits::NESTING,
        };
        let mut documents = 0;
        for event in Parser::new_from_str_with_options(self.text, options) {
            let (event, raw) = match event {
                Ok(event) => event,
                Err(error) => {
                    let span = self.span_at(error.marker());
                    let message = error.kind().to_string();
                    let in_flow = message.contains("flow");
                    let problem = self.diagnostics.error(span, format!("not valid YAML: {message}"));
                    if in_flow {
                        problem.help("inside `[…]` and `{…}` an expression that contains a comma or a bracket must be quoted");
                    }
                    return None;
                }
            };
            let span = self.span(&raw);
            match event {
                Event::DocumentStart(..) => {
                    documents += 1;
                    if documents > 1 {
                        self.diagnostics
                            .error(span, "a second document starts here")
                            .help("a model file holds one document: remove what follows `---` or `...`");
                        return self.root;
                    }
                }
                Event::Scalar(value, style, anchor, tag) => {
                    self.refuse_tag(tag.is_some(), &raw);
                    let style = match style {
                        ScalarStyle::Plain => Style::Plain,
                        ScalarStyle::SingleQuoted => Style::SingleQuoted,
                        ScalarStyle::DoubleQuoted => Style::DoubleQuoted,
                        ScalarStyle::Literal | ScalarStyle::Folded => Style::Block,
                    };
                    let weight = 1 + value.len() / 16;
                    let in_flow = self.stack.last().is_some_and(|open| open.flow);
                    let kind = Kind::Scalar(Text { value: Rc::from(&*value), style, in_flow });
                    let node = Rc::new(Node { span, kind });
                    self.weight += weight;
                    self.anchor(anchor, &node, weight, 1);
                    self.attach(node, 1);
                }
                Event::SequenceStart(style, anchor, tag) => {
                    self.refuse_tag(tag.is_some(), &raw);
                    self.open(span, style, anchor, Content::Sequence(Vec::new()));
                }
                Event::MappingStart(style, anchor, tag) => {
                    self.refuse_tag(tag.is_some(), &raw);
                    let content = Content::Mapping { entries: Vec::new(), places: HashMap::new(), key: None };
                    self.open(span, style, anchor, content);
                }
                Event::SequenceEnd | Event::MappingEnd => self.close(span),
                Event::Alias(id) => match self.anchors.get(&id) {
                    Some(a) => {
                        let (node, height) = (Rc::clone(&a.node), a.height);
                        self.weight = self.weight.saturating_add(a.weight);
                        self.attach(node, height);
                    }
                    None => {
                        self.diagnostics.error(span, "this alias stands inside what it stands for");
                        self.attach_nothing(span);
                    }
                },
                Event::UnresolvedAlias(name) => {
                    self.diagnostics
                        .error(span, format!("unknown alias `*{}`", shorten(&name)))
                        .help("an alias must come after its anchor `&name`");
                    self.attach_nothing(span);
                }
                _ => {}
            }
            if self.weight > limits::NODES {
                self.diagnostics
                    .error(span, "the document is too large")
                    .help("what aliases stand for counts every time it is used");
                return None;
            }
            let height = self.stack.iter().map(|open| open.height).max().unwrap_or(0);
            if self.stack.len() + height > limits::NESTING {
                let limit = limits::NESTING;
                self.diagnostics.error(span, format!("lists and mappings are nested more than {limit} deep"));
                return None;
            }
        }
        self.root
    }

    fn refuse_tag(&mut self, present: bool, raw: &RawSpan) {
        if present {
            let span = raw.tag_span().map_or_else(|| self.span(raw), |tag| self.span(&tag));
            self.diagnostics.error(span, "tags are not supported").help("remove the `!…` before the value");
        }
    }

    fn open(&mut self, start: Span, style: StructureStyle, anchor: usize, content: Content) {
        let flow = style == StructureStyle::Flow;
        self.stack.push(Open { start, flow, anchor, weight_before: self.weight, height: 0, content });
        self.weight += 1;
    }

    fn close(&mut self, end: Span) {
        let Some(open) = self.stack.pop() else { return };
        let end_offset = end.offset + end.len;
        let span = Span { len: end_offset.saturating_sub(open.start.offset), ..open.start };
        let kind = match open.content {
            Content::Sequence(items) => Kind::Sequence(items),
            Content::Mapping { entries, .. } => Kind::Mapping(entries),
        };
        let height = open.height + 1;
        let node = Rc::new(Node { span, kind });
        self.anchor(open.anchor, &node, self.weight - open.weight_before, height);
        self.attach(node, height);
    }

    fn anchor(&mut self, id: usize, node: &Rc<Node>, weight: usize, height: usize) {
        if id != 0 {
            self.anchors.insert(id, Anchored { node: Rc::clone(node), weight, height });
        }
    }

    fn attach_nothing(&mut self, span: Span) {
        self.weight += 1;
        self.attach(Rc::new(Node { span, kind: Kind::Broken }), 1);
    }

    /// Adds a finished node to its list or mapping.
    fn attach(&mut self, node: Rc<Node>, height: usize) {
        let Some(open) = self.stack.last_mut() else {
            self.root.get_or_insert(node);
            return;
        };
        open.height = open.height.max(height);
        let (entries, places, key) = match &mut open.content {
            Content::Sequence(items) => {
                items.push(node);
                return;
            }
            Content::Mapping { entries, places, key } => (entries, places, key),
        };
        if let Some((name, key_span, what)) = key.take() {
            if what == Use::Keep {
                entries.push(Entry { key: name, key_span, value: node });
            }
            return;
        }
        // The node is a key.
        let span = node.span;
        let Kind::Scalar(text) = &node.kind else {
            self.diagnostics.error(span, "a key must be a name, not a list or a mapping");
            *key = Some((Rc::from(""), span, Use::Drop));
            return;
        };
        let name = Rc::clone(&text.value);
        if &*name == "<<" && text.style == Style::Plain {
            self.diagnostics
                .error(span, "merge keys `<<` are not supported")
                .help("use `elements` and `instances` to write something once and use it twice");
            *key = Some((name, span, Use::Drop));
            return;
        }
        if let Some(first) = places.get(&name) {
            let message = format!(
                "duplicate key `{}`; the first is at line {}, column {}",
                shorten(&name),
                first.line,
                first.column
            );
            self.diagnostics.error(span, message);
            *key = Some((name, span, Use::Drop));
            return;
        }
        places.insert(Rc::clone(&name), span);
        *key = Some((name, span, Use::Keep));
    }

    fn span(&self, raw: &RawSpan) -> Span {
        let range = raw.byte_range().unwrap_or(0..0);
        Span { len: range.end.saturating_sub(range.start), ..self.span_at(&raw.start) }
    }

    fn span_at(&self, marker: &Marker) -> Span {
        let narrow = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let offset = marker.byte_offset().unwrap_or(0).min(self.text.len());
        Span { offset, len: 0, line: narrow(marker.line()), column: narrow(marker.col()).saturating_add(1) }
    }
}

/// A name for a message.
pub(super) fn shorten(name: &str) -> String {
    let mut out: String =
        name.chars().take(limits::NAME_CHARS).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if name.chars().nth(limits::NAME_CHARS).is_some() {
        out.push('…');
    }
    out
}
