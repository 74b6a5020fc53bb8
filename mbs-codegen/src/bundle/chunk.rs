//! Cuts a schedule into segments of a few hundred statements and gives every value that crosses from one
//! segment into another a workspace slot, reused when its last reader is done.
//!
//! Holds afterwards: a segment loads what it did not assign, at its first use.

use super::schedule::Step;
use super::{Operand, Segment, Statement, ValueId};
use std::collections::{BTreeMap, HashMap, HashSet};

/// The segments and the number of slots in all. `fixed` slots have a place already.
pub(super) fn split_into_chunks(steps: Vec<Step>, fixed: u32, size: usize) -> (Vec<Segment>, u32) {
    let chunks = cut(steps, size);
    let (assigned, last_read) = lifetimes(&chunks);

    let mut free: Vec<u32> = Vec::new();
    let mut slots = fixed;
    let mut slot_of: HashMap<ValueId, u32> = HashMap::new();
    // Slots to free after a segment: the values whose last reader it is.
    let mut expiring: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
    let mut segments = Vec::with_capacity(chunks.len());
    for (place, chunk) in chunks.into_iter().enumerate() {
        let statements = match chunk {
            Chunk::Kernel(segment) => {
                segments.push(segment);
                continue;
            }
            Chunk::Flat(statements) => statements,
        };
        let mut present: HashSet<ValueId> = HashSet::new();
        let mut out = Vec::with_capacity(statements.len() + 16);
        for statement in statements {
            statement.operands(|operand| {
                if let Operand::Value(value) = operand
                    && present.insert(value)
                {
                    out.push(Statement::Load(value, slot_of[&value]));
                }
            });
            out.push(statement);
            statement.assigns(|value| {
                present.insert(value);
                let last = last_read.get(&value).copied().unwrap_or(place);
                if last > assigned[&value] {
                    let slot = free.pop().unwrap_or_else(|| {
                        slots += 1;
                        slots - 1
                    });
                    slot_of.insert(value, slot);
                    expiring.entry(last).or_default().push(slot);
                    out.push(Statement::Store(slot, Operand::Value(value)));
                }
            });
        }
        segments.push(Segment::Flat(out));
        if let Some(slots) = expiring.remove(&place) {
            free.extend(slots);
        }
    }
    (segments, slots)
}

enum Chunk {
    Flat(Vec<Statement>),
    Kernel(Segment),
}

fn cut(steps: Vec<Step>, size: usize) -> Vec<Chunk> {
    let mut chunks = Vec::new();
    let mut current = Vec::new();
    for step in steps {
        match step {
            Step::Statement(statement) => {
                current.push(statement);
                if current.len() >= size {
                    chunks.push(Chunk::Flat(std::mem::take(&mut current)));
                }
            }
            Step::Kernel { kernel, inputs, output } => {
                if !current.is_empty() {
                    chunks.push(Chunk::Flat(std::mem::take(&mut current)));
                }
                chunks.push(Chunk::Kernel(Segment::Kernel { kernel, inputs, output }));
            }
        }
    }
    if !current.is_empty() {
        chunks.push(Chunk::Flat(current));
    }
    chunks
}

/// For every value, the segment that assigns it and the last one that reads it.
fn lifetimes(chunks: &[Chunk]) -> (HashMap<ValueId, usize>, HashMap<ValueId, usize>) {
    let (mut assigned, mut last_read) = (HashMap::new(), HashMap::new());
    for (place, chunk) in chunks.iter().enumerate() {
        if let Chunk::Flat(statements) = chunk {
            for statement in statements {
                statement.assigns(|value| {
                    assigned.insert(value, place);
                });
                statement.operands(|operand| {
                    if let Operand::Value(value) = operand {
                        last_read.insert(value, place);
                    }
                });
            }
        }
    }
    (assigned, last_read)
}
