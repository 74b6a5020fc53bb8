//! Machine code for bundles, written in milliseconds.
//!
//! Enters: a verified [`Bundle`]. Leaves: [`Compiled`], which computes what the bundle computes.
//! Holds afterwards: without fused operations the same operations on the same operands by the same functions as the engine's tape, so to
//! the same bits (of a NaN, that it is one). A run allocates nothing.
//!
//! | module | enters → leaves |
//! |---|---|
//! | `straight` | bundle → operations on items, without segments and slots |
//! | `functions` | the table of functions that machine code calls |
//! | `encode` | instructions → bytes |
//! | `registers` | operations → machine code, registers chosen on the way |
//! | `check` | machine code → whether it stays in its slices; run on all of it |
//! | `machine` | executable memory and the one call |
//!
//! Code is for x86-64 with AVX, on every system: inside, functions have the convention of System V. On other processors, and where a
//! system forbids executable memory, [`compile`] says why not. Gathers and kernels, which choose addresses by values, stand between pieces
//! of machine code as calls of the runtime; loops are the caller's, behind it.

mod straight;

mod functions;

mod encode;

mod check;

mod registers;

mod machine;

pub use check::Fault;

use encode::Width;
#[doc(hidden)]
pub use machine::{Lacking, pretend};
use machine::{Machine, processor};
use mbs_codegen::bundle::Bundle;
use mbs_codegen::graph::Kernel;
use mbs_codegen::symbols::Group;
use mbs_runtime::math;
use registers::Part;
use straight::{CONSTANTS, FIRST, KernelCall, MEMORY, Place, Stretch};

/// How many slices a function may have: memory, constants, arguments, results.
const BASES: usize = 48;

/// How many samples a bundle over lanes computes at a time.
pub const LANES: usize = 4;

/// Why there is no machine code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The processor is not x86-64 with AVX.
    Processor,
    /// The processor lacks the fused operations that were asked for.
    Fusing,
    /// The system does not give executable memory: what it says.
    Memory(String),
    /// The bundle is too large for its addresses.
    Size,
    /// The bundle needs more memory than was offered.
    Scratch,
    /// Gathers, kernels and loops have no code over lanes.
    Lanes,
    /// The bundle would not pass its verifier.
    Bundle,
    /// The machine code did not pass its check: a defect of this crate.
    Fault(Fault),
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refusal::Processor => f.write_str("machine code is written for x86-64 with AVX only"),
            Refusal::Fusing => f.write_str("the processor has no fused operations (FMA)"),
            Refusal::Memory(why) => write!(f, "the system gives no executable memory: {why}"),
            Refusal::Size => f.write_str("a bundle is too large for machine code"),
            Refusal::Scratch => f.write_str("a bundle needs more memory as machine code than was offered"),
            Refusal::Lanes => f.write_str("a bundle with gathers, kernels or loops has no code over lanes"),
            Refusal::Bundle => f.write_str("a bundle is not valid"),
            Refusal::Fault(fault) => write!(f, "{fault}; please report this"),
        }
    }
}

impl std::error::Error for Refusal {}

/// Whether products are fused with the sum they go into.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fusing {
    /// As compiled code of this build does: the bits are then the tape's.
    #[default]
    AsCompiled,
    /// One rounding instead of two. There is no code on processors that cannot.
    Fused,
}

impl Fusing {
    fn is_fused(self) -> bool {
        // What `mbs_runtime::math::mul_add` does.
        cfg!(target_feature = "fma") || self == Fusing::Fused
    }
}

/// Whether machine code can be run here: the processor is right, and the system gives executable memory.
pub fn availability(fusing: Fusing) -> Result<(), Refusal> {
    if fusing == Fusing::Fused && !processor().fma {
        return Err(Refusal::Fusing);
    }
    let nothing = check::Slices { lengths: vec![0, 0], first_result: 2, functions: 0, fused: false };
    let code = [&encode::PROLOGUE[..], &encode::EPILOGUE].concat();
    let all = 0..code.len();
    Machine::new(&code, vec![all], nothing).map(|_| ())
}

/// A bundle as machine code.
#[derive(Debug)]
pub struct Compiled {
    machine: Machine,
    parts: Vec<Step>,
    constants: Vec<f64>,
    /// Where the arrays of the loops lie in the memory; none if there are no loops.
    arrays: Vec<(u32, u32)>,
    has_loops: bool,
    bytes: usize,
}

/// What is done one after the other.
#[derive(Debug)]
enum Step {
    /// The number of a function.
    Code(usize),
    Gather {
        from: Stretch,
        index: Place,
        to: u32,
    },
    Locate {
        knots: Stretch,
        x: Place,
        to: u32,
    },
    Kernel(KernelCall),
}

/// A slice that has not the length it should have: its number among memory, arguments and results is not known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongLength;

/// Machine code for a bundle.
pub fn compile(bundle: &Bundle, fusing: Fusing) -> Result<Compiled, Refusal> {
    translate(bundle, Width::One, fusing, &|_| true)
}

/// Machine code for a bundle over [`LANES`] samples at a time: scalar i of sample k is at `i * LANES + k`, in the memory, in all results, and in
/// all arguments but those that the samples share.
pub fn compile_lanes(bundle: &Bundle, shared: &[Group], fusing: Fusing) -> Result<Compiled, Refusal> {
    if !bundle.loops.is_empty() {
        return Err(Refusal::Lanes);
    }
    let mut groups: Vec<Group> = bundle.arguments.iter().map(|&(group, _)| group).collect();
    groups.sort();
    let is_shared =
        |base: u8| groups.get(usize::from(base - FIRST)).is_some_and(|group| shared.contains(group));
    translate(bundle, Width::Four, fusing, &is_shared)
}

fn translate(
    bundle: &Bundle,
    width: Width,
    fusing: Fusing,
    is_shared: &dyn Fn(u8) -> bool,
) -> Result<Compiled, Refusal> {
    processor().allow(fusing.is_fused())?;
    let mut straight = straight::straighten(bundle)?;
    let constants = straight.constants.clone();
    let arrays = std::mem::take(&mut straight.arrays);
    let written = registers::write(straight, width, fusing.is_fused(), is_shared)?;
    let mut functions = Vec::new();
    let mut parts = Vec::new();
    for part in written.parts {
        parts.push(match part {
            Part::Code(range) => {
                functions.push(range);
                Step::Code(functions.len() - 1)
            }
            Part::Gather { from, index, to } => Step::Gather { from, index, to },
            Part::Locate { knots, x, to } => Step::Locate { knots, x, to },
            Part::Kernel(call) => Step::Kernel(call),
        });
    }
    let machine = Machine::new(&written.bytes, functions, written.slices)?;
    let (has_loops, bytes) = (!bundle.loops.is_empty(), written.bytes.len());
    Ok(Compiled { machine, parts, constants, arrays, has_loops, bytes })
}

impl Compiled {
    /// How long the memory of a run is.
    pub fn memory(&self) -> usize {
        self.machine.slices().lengths[MEMORY as usize]
    }

    /// Bytes of machine code.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Where the arrays of the bundle's loops lie in the memory: first scalar and length. The loops are the caller's to run, afterwards.
    pub fn arrays(&self) -> &[(u32, u32)] {
        &self.arrays
    }

    /// Runs it, on the bundle's arguments in the order of their [`Group`]s. Slices may be longer than needed.
    #[inline]
    pub fn run(
        &self,
        arguments: &[&[f64]],
        memory: &mut [f64],
        results: &mut [&mut [f64]],
    ) -> Result<(), WrongLength> {
        if self.has_loops {
            let arrays = self.arrays.last().map_or(0, |&(start, len)| (start + len) as usize);
            memory.get_mut(..arrays).ok_or(WrongLength)?.fill(0.0);
            results.iter_mut().for_each(|result| result.fill(0.0));
        }
        for part in &self.parts {
            match part {
                Step::Code(function) => {
                    let called = self.machine.call(*function, memory, &self.constants, arguments, results);
                    called.ok_or(WrongLength)?;
                }
                &Step::Gather { from, index, to } => {
                    let slices = Readable { memory, constants: &self.constants, arguments };
                    let value = math::gather(slices.stretch(from)?, slices.scalar(index)?);
                    *memory.get_mut(to as usize).ok_or(WrongLength)? = value;
                }
                &Step::Locate { knots, x, to } => {
                    let slices = Readable { memory, constants: &self.constants, arguments };
                    let value = math::locate(slices.stretch(knots)?, slices.scalar(x)?);
                    *memory.get_mut(to as usize).ok_or(WrongLength)? = value;
                }
                Step::Kernel(call) => self.kernel(call, memory, arguments)?,
            }
        }
        Ok(())
    }

    fn kernel(&self, call: &KernelCall, memory: &mut [f64], arguments: &[&[f64]]) -> Result<(), WrongLength> {
        let (before, after) = memory.split_at_mut_checked(call.output as usize).ok_or(WrongLength)?;
        let (results, scratch) = after.split_at_mut_checked(call.kernel.outputs()).ok_or(WrongLength)?;
        let slices = Readable { memory: before, constants: &self.constants, arguments };
        match (call.kernel, call.inputs.as_slice()) {
            (Kernel::SolveTridiagonal { n }, &[lower, diagonal, upper, rhs]) => {
                let scratch = scratch.get_mut(..n as usize).ok_or(WrongLength)?;
                math::solve_tridiagonal(
                    slices.stretch(lower)?,
                    slices.stretch(diagonal)?,
                    slices.stretch(upper)?,
                    slices.stretch(rhs)?,
                    scratch,
                    results,
                );
                Ok(())
            }
            (Kernel::SolveTridiagonal { .. }, _) => Err(WrongLength),
        }
    }
}

/// What gathers and kernels read.
struct Readable<'a> {
    memory: &'a [f64],
    constants: &'a [f64],
    arguments: &'a [&'a [f64]],
}

impl<'a> Readable<'a> {
    fn slice(&self, base: u8) -> Result<&'a [f64], WrongLength> {
        match base {
            MEMORY => Ok(self.memory),
            CONSTANTS => Ok(self.constants),
            _ => self.arguments.get(usize::from(base - FIRST)).copied().ok_or(WrongLength),
        }
    }

    fn stretch(&self, of: Stretch) -> Result<&'a [f64], WrongLength> {
        let start = of.first.index as usize;
        self.slice(of.first.base)?.get(start..start + of.len as usize).ok_or(WrongLength)
    }

    fn scalar(&self, at: Place) -> Result<f64, WrongLength> {
        self.slice(at.base)?.get(at.index as usize).copied().ok_or(WrongLength)
    }
}
