//! Checks that a packed bundle computes what the bundle computes: what each slot and each lane holds is followed from step to step.

use super::partners::{exchanged, operands};
use super::{Lane, PackId, PackOperation, Packed, Step, VectorOp, flat};
use crate::bundle::{Bundle, Operand, Operation, Segment, Statement, ValueId};

/// A value is ready in the segment that reads it, a slot is written before it is read and read as what it holds, every value is computed by
/// the bundle's own operation on the bundle's own operands, up to the order of factors and summands, and every result is written once,
/// with what the bundle writes.
pub fn verify(bundle: &Bundle, packed: &Packed) -> Result<(), String> {
    if flat(bundle).is_none() {
        return Err(format!(
            "bundle `{}` has kernels, loops or runs of slots and cannot be packed",
            bundle.name
        ));
    }
    let mut checker = Checker {
        definitions: vec![None; bundle.values as usize],
        results: bundle.results.iter().map(|result| vec![None; result.len as usize]).collect(),
        values: vec![0; bundle.values as usize],
        packs: Vec::new(),
        slots: vec![None; packed.slots as usize],
        segment: 0,
    };
    checker.read(bundle);
    for segment in &packed.segments {
        checker.segment += 1;
        for step in segment {
            let sound = checker.step(step);
            sound.ok_or_else(|| {
                format!("bundle `{}`, packed: {step:?} is not what it computes", bundle.name)
            })?;
        }
    }
    match checker.results.iter().flatten().any(Option::is_some) {
        true => Err(format!("bundle `{}`, packed, leaves a result unwritten", bundle.name)),
        false => Ok(()),
    }
}

/// What a slot or a lane holds: a value of the bundle, an argument or a constant.
type Held = Option<Operand>;

struct Checker {
    /// The bundle's statement for each value.
    definitions: Vec<Option<Statement>>,
    /// What is still to be written.
    results: Vec<Vec<Held>>,
    /// The last segment in which a value is ready, counted from one.
    values: Vec<u32>,
    /// The same of packs, with what both lanes hold.
    packs: Vec<(u32, [Held; 2])>,
    slots: Vec<Held>,
    segment: u32,
}

impl Checker {
    fn read(&mut self, bundle: &Bundle) {
        for segment in &bundle.segments {
            let Segment::Flat(statements) = segment else { continue };
            for &statement in statements {
                match statement {
                    Statement::Compute(..) | Statement::SinCos(..) => {
                        statement.assigns(|value| self.definitions[value.0 as usize] = Some(statement));
                    }
                    Statement::Result { result, index, value } => {
                        self.results[result as usize][index as usize] = Some(value);
                    }
                    Statement::Load(..) | Statement::Store(..) => {}
                }
            }
        }
    }

    /// `Some` if the step is sound.
    fn step(&mut self, step: &Step) -> Option<()> {
        match *step {
            Step::One(statement) => self.statement(&statement),
            Step::Load(pack, slot) => {
                let both = [self.slot(slot)?, self.slot(slot + 1)?];
                self.assign(pack, both.map(Some))
            }
            Step::Store(slot, pack) => {
                for (slot, held) in (slot..).zip(self.pack(pack)?) {
                    *self.slots.get_mut(slot as usize)? = Some(held);
                }
                Some(())
            }
            Step::Join(pack, both) => {
                both.into_iter().try_for_each(|operand| self.ready(operand))?;
                self.assign(pack, both.map(Some))
            }
            Step::Compute(pack, values, operation) => {
                for (lane, value) in [Lane::First, Lane::Second].into_iter().zip(values) {
                    self.computes(value, &operation, lane)?;
                }
                self.assign(pack, values.map(|value| Some(Operand::Value(value))))
            }
            Step::Extract(value, pack, lane) => {
                let held = self.pack(pack)?[lane as usize];
                same(held, Operand::Value(value)).then_some(())?;
                *self.values.get_mut(value.0 as usize)? = self.segment;
                Some(())
            }
        }
    }

    fn statement(&mut self, statement: &Statement) -> Option<()> {
        let mut sound = Some(());
        statement.operands(|operand| sound = sound.and(self.ready(operand)));
        sound?;
        match *statement {
            Statement::Load(value, slot) => same(self.slot(slot)?, Operand::Value(value)).then_some(())?,
            Statement::Store(slot, operand) => *self.slots.get_mut(slot as usize)? = Some(operand),
            Statement::Result { result, index, value } => {
                let wanted = self.results.get_mut(result as usize)?.get_mut(index as usize)?.take()?;
                same(wanted, value).then_some(())?;
            }
            Statement::Compute(value, _) | Statement::SinCos(value, ..) => {
                let own = self.definitions.get(value.0 as usize)?.as_ref()?;
                (own == statement && read(own).into_iter().zip(read(statement)).all(|(a, b)| same(a, b)))
                    .then_some(())?;
            }
        }
        statement.assigns(|value| {
            if let Some(ready) = self.values.get_mut(value.0 as usize) {
                *ready = self.segment;
            }
        });
        Some(())
    }

    /// The operation, read in one lane, is the bundle's for this value.
    fn computes(&self, value: ValueId, operation: &PackOperation, lane: Lane) -> Option<()> {
        let Some(Statement::Compute(_, own)) = self.definitions.get(value.0 as usize)? else { return None };
        (VectorOp::of(own) == Some(operation.op)).then_some(())?;
        let mut found = Vec::new();
        for &pack in operation.operands() {
            found.push(self.pack(pack)?[lane as usize]);
        }
        let fits = |own: &Operation| operands(own).zip(&found).all(|(a, &b)| same(a, b));
        (fits(own) || exchanged(own).is_some_and(|exchanged| fits(&exchanged))).then_some(())
    }

    /// An operand that can be read in this segment.
    fn ready(&self, operand: Operand) -> Option<()> {
        match operand {
            Operand::Value(value) => (self.values.get(value.0 as usize)? == &self.segment).then_some(()),
            Operand::Constant(_) | Operand::Argument(..) => Some(()),
        }
    }

    /// What a written slot holds.
    fn slot(&self, slot: u32) -> Option<Operand> {
        *self.slots.get(slot as usize)?
    }

    /// What the lanes of a pack that is ready in this segment hold.
    fn pack(&self, pack: PackId) -> Option<[Operand; 2]> {
        let (segment, [Some(first), Some(second)]) = *self.packs.get(pack.0 as usize)? else { return None };
        (segment == self.segment).then_some([first, second])
    }

    fn assign(&mut self, pack: PackId, both: [Held; 2]) -> Option<()> {
        let index = pack.0 as usize;
        if self.packs.len() <= index {
            self.packs.resize(index + 1, (0, [None; 2]));
        }
        self.packs[index] = (self.segment, both);
        Some(())
    }
}

/// The operands of a statement.
fn read(statement: &Statement) -> Vec<Operand> {
    let mut all = Vec::new();
    statement.operands(|operand| all.push(operand));
    all
}

/// The same operand, constants to the bit.
fn same(a: Operand, b: Operand) -> bool {
    match (a, b) {
        (Operand::Constant(a), Operand::Constant(b)) => a.to_bits() == b.to_bits(),
        _ => a == b,
    }
}
