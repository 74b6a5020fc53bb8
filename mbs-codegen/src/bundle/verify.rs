//! Checks what must hold of every bundle; run on each one that is built.

use super::{Bundle, Loop, Memory, Operand, Operation, Run, Segment, Statement};
use crate::symbols::Group;

/// Values are assigned once and before they are read within their segment, slots are written before they
/// are read, arguments and tables are long enough, every result is written exactly once. Where there are loops, arrays and results are
/// written at most once before them, and a loop stays within its memory.
pub fn verify(bundle: &Bundle) -> Result<(), String> {
    Checker::new(bundle).run().map_err(|what| format!("bundle `{}`: {what}", bundle.name))
}

struct Checker<'a> {
    bundle: &'a Bundle,
    /// How many scalars each group of arguments has.
    arguments: [u32; Group::ALL.len()],
    /// Which slots are written.
    written: Vec<bool>,
    /// Which scalars of each result are written.
    results: Vec<Vec<bool>>,
    /// Which values are assigned.
    assigned: Vec<bool>,
    /// The last segment that assigned or loaded each value, counted from one.
    known: Vec<u32>,
    /// The segment being checked.
    segment: u32,
}

impl Checker<'_> {
    fn new(bundle: &Bundle) -> Checker<'_> {
        let mut arguments = [0; Group::ALL.len()];
        for &(group, len) in &bundle.arguments {
            arguments[group as usize] = len;
        }
        Checker {
            bundle,
            arguments,
            written: vec![false; bundle.slots as usize],
            results: bundle.results.iter().map(|result| vec![false; result.len as usize]).collect(),
            assigned: vec![false; bundle.values as usize],
            known: vec![0; bundle.values as usize],
            segment: 0,
        }
    }

    fn run(mut self) -> Result<(), String> {
        if !self.bundle.loops.is_empty() {
            let arrays = self.written.get_mut(..self.bundle.array_slots());
            arrays.ok_or("arrays lie beyond the slots")?.fill(true);
        }
        for segment in &self.bundle.segments {
            self.segment += 1;
            match segment {
                Segment::Flat(statements) => {
                    for statement in statements {
                        self.statement(statement)?;
                    }
                }
                Segment::Kernel { kernel, inputs, output } => {
                    let lengths: Vec<usize> = inputs.iter().map(|run| run_len(*run) as usize).collect();
                    if lengths != kernel.input_runs() {
                        return Err(format!("kernel `{}` has wrong input runs", kernel.name()));
                    }
                    for &run in inputs {
                        self.read_run(run)?;
                        if matches!(run, Run::Slots { start, len } if start + len > *output) {
                            return Err(format!("kernel `{}`: inputs after outputs", kernel.name()));
                        }
                    }
                    for slot in *output..*output + (kernel.outputs() + kernel.scratch()) as u32 {
                        self.write(slot)?;
                    }
                }
            }
        }
        if !self.bundle.loops.is_empty() {
            return self.bundle.loops.iter().try_for_each(|each| self.rolled(each));
        }
        for (result, written) in self.bundle.results.iter().zip(&self.results) {
            if let Some(index) = written.iter().position(|written| !written) {
                return Err(format!("result {}[{index}] is never written", result.name));
            }
        }
        Ok(())
    }

    /// A loop reads what stands before what it writes, so that printed code can tell them apart.
    fn rolled(&self, each: &Loop) -> Result<(), String> {
        let len = |memory| match memory {
            Memory::Array(array) => self.bundle.arrays.get(array as usize).map(|&len| len as usize),
            Memory::Result(result) => self.bundle.results.get(result as usize).map(|r| r.len as usize),
        };
        let apart = |read: Memory| match (read, each.writes()) {
            (Memory::Array(from), Memory::Array(to)) => from < to,
            (read, write) => read != write,
        };
        let arrays = self.bundle.array_slots() <= self.bundle.slots as usize;
        if arrays && each.fits(len) && each.reads().into_iter().all(apart) {
            Ok(())
        } else {
            Err(format!("loop `{}` leaves its memory", each.name()))
        }
    }

    fn statement(&mut self, statement: &Statement) -> Result<(), String> {
        let mut problem = Ok(());
        statement.operands(|operand| {
            let fine = match operand {
                Operand::Constant(value) => value.is_finite(),
                Operand::Argument(group, index) => self.has_argument(group, index),
                Operand::Value(value) => self.known.get(value.0 as usize) == Some(&self.segment),
            };
            if !fine {
                problem = Err(format!("{operand:?} cannot be read"));
            }
        });
        problem?;
        match *statement {
            Statement::Load(value, slot) => {
                if !self.is_written(slot) {
                    return Err(format!("slot {slot} is read before it is written"));
                }
                self.know(value.0)?;
            }
            Statement::Compute(value, operation) => {
                if let Operation::Gather(run, _) | Operation::Locate(run, _) = operation {
                    self.read_run(run)?;
                }
                self.assign(value.0)?;
            }
            Statement::SinCos(sine, cosine, _) => {
                self.assign(sine.0)?;
                self.assign(cosine.0)?;
            }
            Statement::Store(slot, _) => self.write(slot)?,
            Statement::Result { result, index, .. } => {
                let place = self.results.get_mut(result as usize).and_then(|r| r.get_mut(index as usize));
                match place {
                    Some(written) if !*written => *written = true,
                    _ => return Err(format!("result {result}[{index}] does not exist or is written twice")),
                }
            }
        }
        Ok(())
    }

    fn assign(&mut self, value: u32) -> Result<(), String> {
        match self.assigned.get_mut(value as usize) {
            Some(assigned) if !*assigned => *assigned = true,
            _ => return Err(format!("value {value} is assigned twice or out of range")),
        }
        self.know(value)
    }

    /// The value can be read in this segment.
    fn know(&mut self, value: u32) -> Result<(), String> {
        let known = self.known.get_mut(value as usize);
        *known.ok_or_else(|| format!("value {value} is out of range"))? = self.segment;
        Ok(())
    }

    fn write(&mut self, slot: u32) -> Result<(), String> {
        let written = self.written.get_mut(slot as usize);
        *written.ok_or_else(|| format!("no slot {slot}"))? = true;
        Ok(())
    }

    fn is_written(&self, slot: u32) -> bool {
        self.written.get(slot as usize) == Some(&true)
    }

    fn read_run(&self, run: Run) -> Result<(), String> {
        let fine = match run {
            Run::Table { table, len } => {
                self.bundle.tables.get(table as usize).is_some_and(|t| t.len() == len as usize)
            }
            Run::Argument { group, start, len } => len == 0 || self.has_argument(group, start + len - 1),
            Run::Slots { start, len } => (start..start + len).all(|slot| self.is_written(slot)),
        };
        if fine { Ok(()) } else { Err(format!("{run:?} cannot be read")) }
    }

    fn has_argument(&self, group: Group, index: u32) -> bool {
        index < self.arguments[group as usize]
    }
}

fn run_len(run: Run) -> u32 {
    match run {
        Run::Table { len, .. } | Run::Argument { len, .. } | Run::Slots { len, .. } => len,
    }
}
