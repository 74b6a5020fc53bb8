//! Checks what must hold of every bundle; run on each one that is built.

use super::{Bundle, Loop, Memory, Operand, Operation, Run, Segment, Statement};
use crate::symbols::Group;
use hashbrown::HashSet;

/// Values are assigned once and before they are read within their segment, slots are written before they
/// are read, arguments and tables are long enough, every result is written exactly once. Where there are loops, arrays and results are
/// written at most once before them, and a loop stays within its memory.
pub fn verify(bundle: &Bundle) -> Result<(), String> {
    Checker {
        bundle,
        written: HashSet::new(),
        results: HashSet::new(),
        assigned: HashSet::new(),
        here: HashSet::new(),
    }
    .run()
    .map_err(|what| format!("bundle `{}`: {what}", bundle.name))
}

struct Checker<'a> {
    bundle: &'a Bundle,
    written: HashSet<u32>,
    results: HashSet<(u32, u32)>,
    assigned: HashSet<u32>,
    here: HashSet<u32>,
}

impl Checker<'_> {
    fn run(mut self) -> Result<(), String> {
        if !self.bundle.loops.is_empty() {
            self.written.extend(0..self.bundle.array_slots() as u32);
        }
        for segment in &self.bundle.segments {
            match segment {
                Segment::Flat(statements) => {
                    self.here.clear();
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
        for (result, group) in self.bundle.results.iter().enumerate() {
            for index in 0..group.len {
                if !self.results.contains(&(result as u32, index)) {
                    return Err(format!("result {}[{index}] is never written", group.name));
                }
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
                Operand::Value(value) => self.here.contains(&value.0),
            };
            if !fine {
                problem = Err(format!("{operand:?} cannot be read"));
            }
        });
        problem?;
        match *statement {
            Statement::Load(value, slot) => {
                if !self.written.contains(&slot) {
                    return Err(format!("slot {slot} is read before it is written"));
                }
                self.here.insert(value.0);
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
                let known = self.bundle.results.get(result as usize).is_some_and(|r| index < r.len);
                if !known || !self.results.insert((result, index)) {
                    return Err(format!("result {result}[{index}] does not exist or is written twice"));
                }
            }
        }
        Ok(())
    }

    fn assign(&mut self, value: u32) -> Result<(), String> {
        self.here.insert(value);
        if value >= self.bundle.values || !self.assigned.insert(value) {
            return Err(format!("value {value} is assigned twice or out of range"));
        }
        Ok(())
    }

    fn write(&mut self, slot: u32) -> Result<(), String> {
        self.written.insert(slot);
        if slot < self.bundle.slots { Ok(()) } else { Err(format!("no slot {slot}")) }
    }

    fn read_run(&self, run: Run) -> Result<(), String> {
        let fine = match run {
            Run::Table { table, len } => {
                self.bundle.tables.get(table as usize).is_some_and(|t| t.len() == len as usize)
            }
            Run::Argument { group, start, len } => len == 0 || self.has_argument(group, start + len - 1),
            Run::Slots { start, len } => (start..start + len).all(|slot| self.written.contains(&slot)),
        };
        if fine { Ok(()) } else { Err(format!("{run:?} cannot be read")) }
    }

    fn has_argument(&self, group: Group, index: u32) -> bool {
        self.bundle.arguments.iter().any(|&(g, len)| g == group && index < len)
    }
}

fn run_len(run: Run) -> u32 {
    match run {
        Run::Table { len, .. } | Run::Argument { len, .. } | Run::Slots { len, .. } => len,
    }
}
