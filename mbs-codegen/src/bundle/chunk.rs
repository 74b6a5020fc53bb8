//! Splits a schedule into segments of a few hundred statements, and assigns a workspace slot to every value that
//! more than one segment uses; a slot is reused after its last reader.
//!
//! Holds afterwards: a segment loads every value that it does not assign, at its first use.

use super::schedule::Step;
use super::{Operand, Segment, Statement};
use std::collections::BTreeMap;

/// The segments and the total number of slots. `fixed` slots are assigned already.
pub(super) fn split_into_chunks(
    steps: Vec<Step>,
    values: u32,
    fixed: u32,
    size: usize,
) -> (Vec<Segment>, u32) {
    let (assigned, last_read) = lifetimes(&steps, values as usize, size);

    let mut free: Vec<u32> = Vec::new();
    let mut slots = fixed;
    let mut slot_of = vec![0; values as usize];
    // The last segment in which each value is loaded, plus one.
    let mut ready = vec![0; values as usize];
    // Slots to free after a segment: the values whose last reader it is.
    let mut expiring: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let mut segments = Vec::new();
    let mut cut = Cut::new(size);
    let (mut place, mut out) = (0, Vec::new());
    for step in steps {
        let its_place = cut.place(&step);
        if its_place != place {
            finish(&mut segments, &mut out);
            free.extend(expiring.remove(&place).unwrap_or_default());
            place = its_place;
        }
        let statement = match step {
            Step::Kernel { kernel, inputs, output } => {
                segments.push(Segment::Kernel { kernel, inputs, output });
                continue;
            }
            Step::Statement(statement) => statement,
        };
        statement.operands(|operand| {
            if let Operand::Value(value) = operand
                && std::mem::replace(&mut ready[value.0 as usize], place + 1) != place + 1
            {
                out.push(Statement::Load(value, slot_of[value.0 as usize]));
            }
        });
        out.push(statement);
        statement.assigns(|value| {
            let index = value.0 as usize;
            ready[index] = place + 1;
            let last = last_read[index];
            if last > assigned[index] {
                let slot = free.pop().unwrap_or_else(|| {
                    slots += 1;
                    slots - 1
                });
                slot_of[index] = slot;
                expiring.entry(last).or_default().push(slot);
                out.push(Statement::Store(slot, Operand::Value(value)));
            }
        });
    }
    finish(&mut segments, &mut out);
    (segments, slots)
}

/// Closes a flat segment, if there is one.
fn finish(segments: &mut Vec<Segment>, out: &mut Vec<Statement>) {
    if !out.is_empty() {
        let mut statements = std::mem::take(out);
        statements.shrink_to_fit();
        segments.push(Segment::Flat(statements));
    }
}

/// Assigns steps to segments, in order: a given number of statements per segment, kernels separately.
struct Cut {
    place: u32,
    filled: usize,
    size: usize,
}

impl Cut {
    fn new(size: usize) -> Cut {
        Cut { place: 0, filled: 0, size }
    }

    fn place(&mut self, step: &Step) -> u32 {
        let alone = matches!(step, Step::Kernel { .. });
        if self.filled >= self.size || (alone && self.filled > 0) {
            self.place += 1;
            self.filled = 0;
        }
        self.filled += if alone { self.size } else { 1 };
        self.place
    }
}

/// For every value, the segment that assigns it and the last one that reads it (or the same if none does).
fn lifetimes(steps: &[Step], values: usize, size: usize) -> (Vec<u32>, Vec<u32>) {
    let (mut assigned, mut last_read) = (vec![0; values], vec![0; values]);
    let mut cut = Cut::new(size);
    for step in steps {
        let place = cut.place(step);
        if let Step::Statement(statement) = step {
            statement.assigns(|value| assigned[value.0 as usize] = place);
            statement.operands(|operand| {
                if let Operand::Value(value) = operand {
                    last_read[value.0 as usize] = place;
                }
            });
        }
    }
    (assigned, last_read)
}
