//! Orders single operations, packs and joins; splits them into segments; assigns slots to what more than one segment reads.
//!
//! A pack stands where the later of its two operations was written, a join before its first reader.

use super::partners::{Partners, operands};
use super::{Lane, PackId, PackOperation, Packed, Step, VectorOp};
use crate::bundle::{Bundle, CHUNK, Operand, Operation, Statement, ValueId};
use hashbrown::HashMap;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// What becomes one step.
#[derive(Clone, Copy)]
enum Unit {
    /// A statement that assigns.
    One(Statement),
    /// The operation that computes two values; its operands are units.
    Pack([ValueId; 2], PackOperation),
    /// Two numbers put together.
    Join([Operand; 2]),
}

impl Unit {
    /// A pack of constants: made again wherever it is read, which costs as much as a load.
    fn is_constant(&self) -> bool {
        matches!(self, Unit::Join([Operand::Constant(_), Operand::Constant(_)]))
    }
}

/// All units and how they depend on each other.
struct Units {
    all: Vec<Unit>,
    /// What each reads.
    needs: Vec<Vec<usize>>,
    /// The unit that assigns a value.
    of: Vec<usize>,
    /// The statement of the bundle at which it would stand; of a pack the later one.
    places: Vec<usize>,
}

impl Units {
    fn new(bundle: &Bundle, flat: &[Statement], partners: &Partners) -> Units {
        let n = bundle.values as usize;
        let mut operations: Vec<Option<(Operation, usize)>> = vec![None; n];
        for (place, statement) in flat.iter().enumerate() {
            if let Statement::Compute(value, operation) = *statement {
                operations[value.0 as usize] = Some((operation, place));
            }
        }
        let none = usize::MAX;
        let mut units = Units { all: Vec::new(), needs: Vec::new(), of: vec![none; n], places: Vec::new() };
        // The two operations of each pack, whose operands are known when all packs have their numbers.
        let mut packs = Vec::new();
        for (place, &statement) in flat.iter().enumerate() {
            let paired = match statement {
                Statement::Compute(value, _) => partners.of(value).map(|partner| (value, partner)),
                Statement::SinCos(..) => None,
                _ => continue,
            };
            let unit = units.all.len();
            let Some((value, (partner, lane))) = paired else {
                statement.assigns(|value| units.of[value.0 as usize] = unit);
                units.add(Unit::One(statement), place);
                continue;
            };
            if units.of[value.0 as usize] != none {
                continue;
            }
            let both = if lane == Lane::First { [value, partner] } else { [partner, value] };
            let [Some((x, at_x)), Some((y, at_y))] = both.map(|value| operations[value.0 as usize]) else {
                continue;
            };
            let Some(op) = VectorOp::of(&x) else { continue };
            both.into_iter().for_each(|value| units.of[value.0 as usize] = unit);
            packs.push((unit, both, op, x, partners.in_order(&x, &y)));
            units.add(Unit::Pack(both, PackOperation { op, operands: [PackId(0); 3] }), at_x.max(at_y));
        }
        for unit in 0..units.all.len() {
            if let Unit::One(statement) = units.all[unit] {
                statement.operands(|operand| units.need(unit, operand));
            }
        }
        let mut joins = HashMap::new();
        for (unit, both, op, x, y) in packs {
            let mut together = [PackId(0); 3];
            for (pack, (a, b)) in together.iter_mut().zip(operands(&x).zip(operands(&y))) {
                let needed = units.together(a, b, &mut joins);
                units.needs[unit].push(needed);
                *pack = PackId(needed as u32);
            }
            units.all[unit] = Unit::Pack(both, PackOperation { op, operands: together });
        }
        for needs in &mut units.needs {
            needs.sort_unstable();
            needs.dedup();
        }
        units
    }

    fn add(&mut self, unit: Unit, place: usize) -> usize {
        self.all.push(unit);
        self.needs.push(Vec::new());
        self.places.push(place);
        self.all.len() - 1
    }

    fn need(&mut self, unit: usize, operand: Operand) {
        if let Operand::Value(value) = operand {
            self.needs[unit].push(self.of[value.0 as usize]);
        }
    }

    /// The unit with these two side by side: a pack, or a join.
    fn together(&mut self, a: Operand, b: Operand, joins: &mut HashMap<[(u8, u64); 2], usize>) -> usize {
        if let (Operand::Value(x), Operand::Value(y)) = (a, b)
            && let unit = self.of[x.0 as usize]
            && matches!(self.all[unit], Unit::Pack(both, _) if both == [x, y])
        {
            return unit;
        }
        let key = |operand| match operand {
            Operand::Constant(value) => (0, f64::to_bits(value)),
            Operand::Argument(group, index) => (1, (group as u64) << 32 | u64::from(index)),
            Operand::Value(value) => (2, u64::from(value.0)),
        };
        *joins.entry([key(a), key(b)]).or_insert_with(|| {
            let unit = self.add(Unit::Join([a, b]), usize::MAX);
            self.need(unit, a);
            self.need(unit, b);
            unit
        })
    }

    /// The units in order, and what reads each.
    fn order(&mut self) -> (Vec<usize>, Vec<Vec<usize>>) {
        let n = self.all.len();
        let mut readers = vec![Vec::new(); n];
        for (unit, needs) in self.needs.iter().enumerate() {
            for &other in needs {
                readers[other].push(unit);
            }
        }
        // A join stands before its first reader.
        let place = |unit: usize| match self.all[unit] {
            Unit::Join(_) => {
                readers[unit].iter().map(|&reader: &usize| 2 * self.places[reader]).min().unwrap_or(0)
            }
            _ => 2 * self.places[unit] + 1,
        };
        let mut waiting: Vec<usize> = self.needs.iter().map(Vec::len).collect();
        let mut ready: BinaryHeap<Reverse<(usize, usize)>> =
            (0..n).filter(|&unit| waiting[unit] == 0).map(|unit| Reverse((place(unit), unit))).collect();
        let mut order = Vec::with_capacity(n);
        while let Some(Reverse((_, unit))) = ready.pop() {
            order.push(unit);
            for &reader in &readers[unit] {
                waiting[reader] -= 1;
                if waiting[reader] == 0 {
                    ready.push(Reverse((place(reader), reader)));
                }
            }
        }
        (order, readers)
    }

    /// The last segment in which a single number is read, given the segment of each unit.
    fn last_reads(&self, bundle: &Bundle, segment_of: &[u32]) -> Vec<u32> {
        let mut last = vec![0; bundle.values as usize];
        for (unit, &segment) in self.all.iter().zip(segment_of) {
            let mut read = |operand| {
                if let Operand::Value(value) = operand {
                    let last: &mut u32 = &mut last[value.0 as usize];
                    *last = segment.max(*last);
                }
            };
            match unit {
                Unit::One(statement) => statement.operands(read),
                Unit::Join(both) => both.iter().for_each(|&operand| read(operand)),
                Unit::Pack(..) => {}
            }
        }
        last
    }
}

/// The segments and slots.
pub(super) fn schedule(bundle: &Bundle, flat: &[Statement], partners: &Partners) -> Packed {
    let mut units = Units::new(bundle, flat, partners);
    let (order, readers) = units.order();
    let mut segment_of = vec![0; units.all.len()];
    for (k, &unit) in order.iter().enumerate() {
        segment_of[unit] = (k / CHUNK) as u32;
    }
    let mut results: Vec<Vec<Statement>> = vec![Vec::new(); units.all.len()];
    let mut constants = Vec::new();
    for &statement in flat {
        if let Statement::Result { value, .. } = statement {
            match value {
                Operand::Value(value) => results[units.of[value.0 as usize]].push(statement),
                _ => constants.push(Step::One(statement)),
            }
        }
    }
    let mut writer = Writer {
        units: &units,
        last_reads: units.last_reads(bundle, &segment_of),
        slots: vec![None; units.all.len()],
        packs: vec![u32::MAX; units.all.len()],
        values: vec![u32::MAX; bundle.values as usize],
        segment: 0,
        steps: Vec::new(),
    };
    let mut free = [Vec::new(), Vec::new()];
    let mut expiring: BTreeMap<u32, Vec<(usize, u32)>> = BTreeMap::new();
    let (mut segments, mut slots) = (Vec::new(), 0);
    for &unit in &order {
        if segment_of[unit] != writer.segment {
            for (width, slot) in expiring.remove(&writer.segment).unwrap_or_default() {
                free[width].push(slot);
            }
            segments.push(std::mem::take(&mut writer.steps));
            writer.segment = segment_of[unit];
        }
        if units.all[unit].is_constant() {
            continue;
        }
        writer.compute(unit);
        for &result in &results[unit] {
            result.operands(|operand| writer.read(operand));
            writer.steps.push(Step::One(result));
        }
        let last = readers[unit].iter().map(|&reader| segment_of[reader]).max().unwrap_or(0);
        if last > writer.segment {
            let width = writer.width(unit);
            let slot = free[width - 1].pop().unwrap_or_else(|| {
                slots += width as u32;
                slots - width as u32
            });
            expiring.entry(last).or_default().push((width - 1, slot));
            writer.store(unit, slot);
        }
    }
    writer.steps.extend(constants);
    segments.push(writer.steps);
    let paired = 2 * units.all.iter().filter(|unit| matches!(unit, Unit::Pack(..))).count();
    Packed { segments, slots, paired }
}

/// Writes the steps of one segment after the other.
struct Writer<'a> {
    units: &'a Units,
    /// The last segment that reads a value by itself.
    last_reads: Vec<u32>,
    /// The slot of each unit that a later segment reads.
    slots: Vec<Option<u32>>,
    /// The last segment in which the pack of a unit is ready.
    packs: Vec<u32>,
    /// The last segment in which a value is ready.
    values: Vec<u32>,
    segment: u32,
    steps: Vec<Step>,
}

impl Writer<'_> {
    /// How many slots it needs.
    fn width(&self, unit: usize) -> usize {
        match self.units.all[unit] {
            Unit::One(Statement::SinCos(..)) | Unit::Pack(..) | Unit::Join(_) => 2,
            Unit::One(_) => 1,
        }
    }

    fn compute(&mut self, unit: usize) {
        let pack = PackId(unit as u32);
        match self.units.all[unit] {
            Unit::One(statement) => {
                statement.operands(|operand| self.read(operand));
                self.steps.push(Step::One(statement));
                statement.assigns(|value| self.values[value.0 as usize] = self.segment);
                return;
            }
            Unit::Pack(values, operation) => {
                operation.operands().iter().for_each(|&pack| self.read_pack(pack));
                self.steps.push(Step::Compute(pack, values, operation));
            }
            Unit::Join(both) => {
                both.into_iter().for_each(|operand| self.read(operand));
                self.steps.push(Step::Join(pack, both));
            }
        }
        self.packs[unit] = self.segment;
    }

    fn store(&mut self, unit: usize, slot: u32) {
        self.slots[unit] = Some(slot);
        let mut one = |slot, value: ValueId| {
            if self.last_reads[value.0 as usize] > self.segment {
                self.steps.push(Step::One(Statement::Store(slot, Operand::Value(value))));
            }
        };
        match self.units.all[unit] {
            Unit::One(Statement::SinCos(sine, cosine, _)) => {
                one(slot, sine);
                one(slot + 1, cosine);
            }
            Unit::One(statement) => statement.assigns(|value| one(slot, value)),
            Unit::Pack(..) | Unit::Join(_) => self.steps.push(Step::Store(slot, PackId(unit as u32))),
        }
    }

    /// Makes an operand ready in this segment.
    fn read(&mut self, operand: Operand) {
        let Operand::Value(value) = operand else { return };
        if std::mem::replace(&mut self.values[value.0 as usize], self.segment) == self.segment {
            return;
        }
        let unit = self.units.of[value.0 as usize];
        let lane = match self.units.all[unit] {
            Unit::Pack([_, second], _) if second == value => Lane::Second,
            Unit::One(Statement::SinCos(_, cosine, _)) if cosine == value => Lane::Second,
            _ => Lane::First,
        };
        self.steps.push(match self.slots[unit] {
            Some(slot) if self.packs[unit] != self.segment => {
                Step::One(Statement::Load(value, if lane == Lane::First { slot } else { slot + 1 }))
            }
            _ => Step::Extract(value, PackId(unit as u32), lane),
        });
    }

    /// Makes a pack ready in this segment.
    fn read_pack(&mut self, pack: PackId) {
        let unit = pack.0 as usize;
        if std::mem::replace(&mut self.packs[unit], self.segment) == self.segment {
            return;
        }
        if let Some(slot) = self.slots[unit] {
            self.steps.push(Step::Load(pack, slot));
        } else if let Unit::Join(both) = self.units.all[unit] {
            self.steps.push(Step::Join(pack, both));
        }
    }
}
