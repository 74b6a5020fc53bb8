//! `definitions`: named expressions of the file or of an element.
//!
//! Input: the entries of one unit and the names it sees. Output: the same scope with a symbol for each. A definition
//! may name later ones, so they are read in the order of their dependencies; cycles are reported. The
//! expression is substituted wherever its name is used, and its dependencies are checked there.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use super::expression::parse;
use super::expression::resolve::{Context, Typed, list};
use super::node::{Entry, Kind, Node};
use super::reader::Reader;
use super::scope::{Named, Scope, Symbol, Thing};

impl<'t> Reader<'t> {
    /// Puts the definitions into the scope they are seen through; whether all could be read.
    pub(super) fn read_definitions(&mut self, entries: &[&'t Entry], scope: &mut Scope) -> bool {
        let (order, circular) = reading_order(entries);
        if let Some(&first) = circular.first() {
            let names = list(circular.iter().map(|&i| &*entries[i].key));
            let message = match circular.len() {
                1 => format!("definition `{}` names itself", entries[first].key),
                _ => format!("these definitions name each other in a circle: {names}"),
            };
            self.diagnostics.error(entries[first].key_span, message);
        }
        let mut complete = order.len() == entries.len();
        for entry in entries {
            scope.things.insert(entry.key.to_string(), Thing::Broken);
        }
        for i in order {
            let entry = entries[i];
            match self.read_definition(&entry.value, scope) {
                Some(symbol) => {
                    scope.things.remove(&*entry.key);
                    scope.symbols.insert(entry.key.to_string(), symbol);
                }
                None => complete = false,
            }
        }
        complete
    }

    fn read_definition(&mut self, node: &Node, scope: &Scope) -> Option<Symbol> {
        let what = "definition";
        let resolved = self.either(node, scope, Context::Objective)?;
        let (uses, extent) = (resolved.uses, resolved.extent);
        Some(match resolved.value {
            Typed::Scalar(value) => Symbol::Scalar(Rc::new(Named { what, value, uses, extent })),
            Typed::Vector(value) => Symbol::Vector(Rc::new(Named { what, value, uses, extent })),
        })
    }
}

/// The entries in the order of their dependencies; and those of a cycle, if there is one.
fn reading_order(entries: &[&Entry]) -> (Vec<usize>, Vec<usize>) {
    let places: HashMap<&str, usize> = entries.iter().enumerate().map(|(i, e)| (&*e.key, i)).collect();
    let needs: Vec<BTreeSet<usize>> = entries.iter().map(|e| named(&e.value, &places)).collect();
    let mut users = vec![Vec::new(); entries.len()];
    let mut left: Vec<usize> = needs.iter().map(BTreeSet::len).collect();
    for (i, needs) in needs.iter().enumerate() {
        needs.iter().for_each(|&n| users[n].push(i));
    }
    let mut ready: BTreeSet<usize> = (0..entries.len()).filter(|&i| left[i] == 0).collect();
    let mut order = Vec::new();
    while let Some(i) = ready.pop_first() {
        order.push(i);
        for &user in &users[i] {
            left[user] -= 1;
            if left[user] == 0 {
                ready.insert(user);
            }
        }
    }
    let Some(first) = (0..entries.len()).find(|&i| left[i] > 0) else {
        return (order, Vec::new());
    };
    // Every entry that is left depends on one that is left: following dependencies ends in a cycle.
    let mut way = vec![first];
    loop {
        let last = way[way.len() - 1];
        let Some(next) = needs[last].iter().copied().find(|&n| left[n] > 0) else {
            return (order, way);
        };
        if let Some(start) = way.iter().position(|&w| w == next) {
            return (order, way.split_off(start));
        }
        way.push(next);
    }
}

/// Which of the entries an expression, or a list of them, names.
fn named(node: &Node, places: &HashMap<&str, usize>) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut look = |node: &Node| {
        if let Kind::Scalar(text) = &node.kind
            && let Ok(syntax) = parse(&text.value)
        {
            syntax.for_each_name(&mut |name| found.extend(places.get(name)));
        }
    };
    match &node.kind {
        Kind::Sequence(items) => items.iter().for_each(|item| look(item)),
        _ => look(node),
    }
    found
}
