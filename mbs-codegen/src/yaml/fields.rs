//! Mappings with known keys: unknown keys are reported with the nearest valid one.

use super::keys::Keys;
use super::load::shorten;
use super::node::{Entry, Kind, Node};
use super::reader::Reader;
use crate::diagnostics::Span;

/// The fields of a mapping whose keys have been checked.
#[derive(Clone)]
pub(super) struct Fields<'t> {
    /// Where the thing described is named.
    pub(super) at: Span,
    what: &'static str,
    /// Valid keys nearest to misspelt ones; reported already.
    misspelt: Vec<&'static str>,
    entries: &'t [Entry],
}

impl<'t> Fields<'t> {
    pub(super) fn get(&self, key: &str) -> Option<&'t Entry> {
        self.entries.iter().find(|e| &*e.key == key)
    }

    /// The field's value.
    pub(super) fn value(&self, key: &str) -> Option<&'t Node> {
        self.get(key).map(|e| &*e.value)
    }

    /// Whether another key was probably meant to be this one.
    pub(super) fn is_misspelt(&self, key: &str) -> bool {
        self.misspelt.contains(&key)
    }

    /// The field; its absence is reported.
    pub(super) fn require(&self, key: &str, reader: &mut Reader<'t>) -> Option<&'t Entry> {
        let entry = self.get(key);
        if entry.is_none() && !self.is_misspelt(key) {
            let what = self.what;
            reader
                .diagnostics
                .error(self.at, format!("missing key `{key}`"))
                .help(format!("{what} needs `{key}: …`"));
        }
        entry
    }
}

impl<'t> Reader<'t> {
    /// The fields of a mapping. `at` is where the thing is named.
    pub(super) fn fields(&mut self, node: &'t Node, at: Span, keys: &Keys) -> Option<Fields<'t>> {
        let Kind::Mapping(entries) = &node.kind else {
            if node.is_broken() {
                return None;
            }
            let span = if node.is_null() { at } else { node.span };
            self.diagnostics
                .error(span, format!("expected {} as a mapping, found {}", keys.what, node.describe()))
                .help(format!(
                    "its keys are {}",
                    super::expression::resolve::list(keys.keys.iter().copied())
                ));
            return None;
        };
        let mut misspelt = Vec::new();
        for entry in entries {
            if !self.check_key(entry, keys, &[]) {
                misspelt.extend(self.nearest(&entry.key, keys.keys.iter().copied()));
            }
        }
        Some(Fields { at, what: keys.what, misspelt, entries })
    }

    /// The type of a thing whose keys depend on it, so that it is read before them.
    pub(super) fn read_type<T: Copy>(
        &mut self,
        entries: &[Entry],
        at: Span,
        what: &str,
        types: &[(&str, T)],
    ) -> Option<T> {
        if let Some(entry) = entries.iter().find(|entry| &*entry.key == "type") {
            return self.word(&entry.value, &format!("a type of {what}"), types);
        }
        match entries.iter().find(|entry| self.nearest(&entry.key, ["type"]).is_some()) {
            Some(entry) => {
                let message = format!("unknown key `{}` in a {what}", shorten(&entry.key));
                self.diagnostics.error(entry.key_span, message).help("did you mean `type`?");
            }
            None => {
                let words = super::expression::resolve::list(types.iter().map(|(word, _)| *word));
                let help = format!("the types of {what}s are {words}");
                self.diagnostics.error(at, "missing key `type`").help(help);
            }
        }
        None
    }

    /// Reports a key that is not in the table (nor among `more`).
    pub(super) fn check_key(&mut self, entry: &Entry, keys: &Keys, more: &[String]) -> bool {
        let key = &*entry.key;
        if keys.keys.contains(&key) || more.iter().any(|m| m == key) {
            return true;
        }
        if keys.later.contains(&key) {
            self.diagnostics
                .error(entry.key_span, format!("`{key}` is not yet supported"))
                .help("the key is kept for a later version");
            return false;
        }
        if let Some((_, hint)) = keys.hints.iter().find(|(name, _)| *name == key) {
            let message = format!("unknown key `{key}` in {}", keys.what);
            self.diagnostics.error(entry.key_span, message).help(*hint);
            return false;
        }
        let candidates = keys.keys.iter().copied().chain(more.iter().map(String::as_str));
        let message = format!("unknown key `{}` in {}", shorten(key), keys.what);
        let help = match self.nearest(key, candidates.clone()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the keys are {}", super::expression::resolve::list(candidates)),
        };
        self.diagnostics.error(entry.key_span, message).help(help);
        false
    }

    /// The entries of a mapping whose keys are names the user chose. Nothing written is an empty mapping.
    pub(super) fn entries(&mut self, node: &'t Node, what: &str) -> &'t [Entry] {
        match &node.kind {
            Kind::Mapping(entries) => entries,
            _ if node.is_null() || node.is_broken() => &[],
            _ => {
                self.diagnostics
                    .error(node.span, format!("expected a mapping of {what}, found {}", node.describe()))
                    .help("write one `name: …` per line");
                &[]
            }
        }
    }
}
