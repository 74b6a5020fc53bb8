//! The standard elements, which every model may use by name.
//!
//! Input: the tree of a file. Output: the tree with those standard elements added that an instance names and the
//! file does not declare. Their places are those of the instance's `element:`, so that errors in their arguments
//! are reported there.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::load::load;
use super::node::{Entry, Kind, Node, Text};
use crate::diagnostics::{Diagnostics, Span};

/// The text of the standard elements: a mapping of their names.
pub const STANDARD_ELEMENTS: &str = include_str!("standard_elements.yaml");

/// Adds the standard elements that the file uses.
pub(super) fn add_standard_elements(root: Rc<Node>) -> Rc<Node> {
    let Kind::Mapping(entries) = &root.kind else { return root };
    let section = |key: &str| entries.iter().find(|e| &*e.key == key).map(|e| &e.value);
    let own: &[Entry] = match section("elements").map(|node| &node.kind) {
        Some(Kind::Mapping(own)) => own,
        None => &[],
        Some(_) if section("elements").is_some_and(|node| node.is_null()) => &[],
        Some(_) => return root,
    };
    let mut wanted = BTreeMap::new();
    if let Some(instances) = section("instances") {
        named_elements(instances, &mut wanted);
    }
    for element in own {
        inner_elements(&element.value, &mut wanted);
    }
    wanted.retain(|name, _| !own.iter().any(|e| &e.key == name));
    if wanted.is_empty() {
        return root;
    }
    let library = load(STANDARD_ELEMENTS, &mut Diagnostics::new());
    let Some(Kind::Mapping(library)) = library.as_ref().map(|node| &node.kind) else { return root };
    let used: Vec<Entry> =
        library.iter().filter_map(|e| wanted.get(&e.key).map(|&at| moved_entry(e, at))).collect();
    if used.is_empty() {
        return root;
    }
    let elements = Entry {
        key: "elements".into(),
        key_span: section("elements").map_or(root.span, |node| node.span),
        value: Rc::new(Node {
            span: section("elements").map_or(root.span, |node| node.span),
            kind: Kind::Mapping(own.iter().map(same).chain(used).collect()),
        }),
    };
    let others = entries.iter().filter(|e| &*e.key != "elements").map(same);
    Rc::new(Node { span: root.span, kind: Kind::Mapping(others.chain([elements]).collect()) })
}

/// What the instances of a section are instances of, and where they say so first.
fn named_elements(instances: &Node, wanted: &mut BTreeMap<Rc<str>, Span>) {
    let Kind::Mapping(instances) = &instances.kind else { return };
    for instance in instances {
        if let Kind::Mapping(fields) = &instance.value.kind
            && let Some(field) = fields.iter().find(|f| &*f.key == "element")
            && let Kind::Scalar(text) = &field.value.kind
        {
            wanted.entry(Rc::clone(&text.value)).or_insert(field.value.span);
        }
    }
}

/// The same for the instances inside an element.
fn inner_elements(element: &Node, wanted: &mut BTreeMap<Rc<str>, Span>) {
    if let Kind::Mapping(fields) = &element.kind
        && let Some(instances) = fields.iter().find(|f| &*f.key == "instances")
    {
        named_elements(&instances.value, wanted);
    }
}

fn same(entry: &Entry) -> Entry {
    Entry { key: Rc::clone(&entry.key), key_span: entry.key_span, value: Rc::clone(&entry.value) }
}

/// The entry with all its places moved to one.
fn moved_entry(entry: &Entry, at: Span) -> Entry {
    Entry { key: Rc::clone(&entry.key), key_span: at, value: Rc::new(moved(&entry.value, at)) }
}

fn moved(node: &Node, at: Span) -> Node {
    let kind = match &node.kind {
        Kind::Scalar(text) => Kind::Scalar(Text { value: Rc::clone(&text.value), ..*text }),
        Kind::Broken => Kind::Broken,
        Kind::Sequence(items) => Kind::Sequence(items.iter().map(|i| Rc::new(moved(i, at))).collect()),
        Kind::Mapping(entries) => Kind::Mapping(entries.iter().map(|e| moved_entry(e, at)).collect()),
    };
    Node { span: at, kind }
}
