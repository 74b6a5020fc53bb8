//! Executable memory, and the one call of its code.
//!
//! Enters: bytes and what they may touch. Leaves: a [`Machine`], whose functions can be called safely.
//! Holds afterwards: memory was writable first and is executable since, never both; every function passed [`check`], as it lies in that
//! memory; the processor has the instructions.
#![allow(
    unsafe_code,
    reason = "machine code can be called in no other way; the proof stands beside the call"
)]

use crate::Refusal;
use crate::check::{Slices, check};
use std::cell::Cell;
use std::ops::Range;

/// Machine code that was checked.
#[derive(Debug)]
pub(crate) struct Machine {
    #[cfg(target_arch = "x86_64")]
    code: memmap2::Mmap,
    #[cfg(target_arch = "x86_64")]
    functions: Vec<Range<usize>>,
    slices: Slices,
}

/// What this processor has, and what runs it lets be used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Processor {
    pub avx: bool,
    pub fma: bool,
}

impl Processor {
    /// Whether code may be written for it.
    pub(crate) fn allow(self, fused: bool) -> Result<(), Refusal> {
        match self {
            Processor { avx: false, .. } => Err(Refusal::Processor),
            Processor { fma: false, .. } if fused => Err(Refusal::Fusing),
            _ => Ok(()),
        }
    }
}

pub(crate) fn processor() -> Processor {
    #[cfg(target_arch = "x86_64")]
    let (avx, fma) = (std::is_x86_feature_detected!("avx"), std::is_x86_feature_detected!("fma"));
    #[cfg(not(target_arch = "x86_64"))]
    let (avx, fma) = (false, false);
    let lacks = |what| LACKING.get() == Some(what);
    Processor { avx: avx && !lacks(Lacking::Avx), fma: fma && !lacks(Lacking::Avx) && !lacks(Lacking::Fma) }
}

/// What a machine may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lacking {
    /// The instructions that all machine code needs.
    Avx,
    /// Fused operations.
    Fma,
    /// Memory that can be executed.
    ExecutableMemory,
}

thread_local! {
    static LACKING: Cell<Option<Lacking>> = const { Cell::new(None) };
}

/// Has this thread believe that the machine lacks something, for tests of what happens then. Nothing can be added in this way.
pub fn pretend(lacking: Option<Lacking>) {
    LACKING.set(lacking);
}

impl Machine {
    /// What the functions may touch.
    pub(crate) fn slices(&self) -> &Slices {
        &self.slices
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl Machine {
    pub(crate) fn new(
        bytes: &[u8],
        functions: Vec<Range<usize>>,
        slices: Slices,
    ) -> Result<Machine, Refusal> {
        let _ = (bytes, functions, slices, check);
        Err(Refusal::Processor)
    }

    pub(crate) fn call(
        &self,
        _: usize,
        _: &mut [f64],
        _: &[f64],
        _: &[&[f64]],
        _: &mut [&mut [f64]],
    ) -> Option<()> {
        None
    }
}

#[cfg(target_arch = "x86_64")]
impl Machine {
    /// Makes bytes executable and checks them there.
    pub(crate) fn new(
        bytes: &[u8],
        functions: Vec<Range<usize>>,
        slices: Slices,
    ) -> Result<Machine, Refusal> {
        processor().allow(slices.fused)?;
        let forbidden = |error: std::io::Error| Refusal::Memory(error.to_string());
        let mut memory = memmap2::MmapMut::map_anon(bytes.len().max(1)).map_err(forbidden)?;
        memory[..bytes.len()].copy_from_slice(bytes);
        let code = match LACKING.get() {
            Some(Lacking::ExecutableMemory) => Err(std::io::ErrorKind::PermissionDenied.into()),
            _ => memory.make_exec(),
        };
        let code = code.map_err(forbidden)?;
        for function in &functions {
            let bytes = code.get(function.clone()).ok_or(Refusal::Size)?;
            check(bytes, &slices).map_err(Refusal::Fault)?;
        }
        Ok(Machine { code, functions, slices })
    }

    /// Calls a function with its slices; nothing happens where there is no such function or a length is not what the code was checked for.
    pub(crate) fn call(
        &self,
        function: usize,
        memory: &mut [f64],
        constants: &[f64],
        arguments: &[&[f64]],
        results: &mut [&mut [f64]],
    ) -> Option<()> {
        type Function = unsafe extern "sysv64" fn(*const *mut f64, *const crate::functions::Address);

        let mut table = [std::ptr::null_mut::<f64>(); crate::BASES];
        let lengths = self.slices.lengths.as_slice();
        if lengths.len() != 2 + arguments.len() + results.len() || lengths.len() > table.len() {
            return None;
        }
        // The slice of a number: memory, constants, arguments, results.
        let mut put = |number: usize, first: *mut f64, len: usize| {
            if len < lengths[number] {
                return None;
            }
            table[number] = first.wrapping_byte_add(crate::encode::BIAS as usize);
            Some(())
        };
        put(0, memory.as_mut_ptr(), memory.len())?;
        put(1, constants.as_ptr().cast_mut(), constants.len())?;
        for (i, slice) in arguments.iter().enumerate() {
            put(2 + i, slice.as_ptr().cast_mut(), slice.len())?;
        }
        for (i, slice) in results.iter_mut().enumerate() {
            put(2 + arguments.len() + i, slice.as_mut_ptr(), slice.len())?;
        }
        let start = self.code.get(self.functions.get(function)?.clone())?.as_ptr();

        // SAFETY: `start` is the first byte of a function that `Machine::new` has checked in this very memory, which has been
        // executable and not writable since before the check, and stays mapped while `self` lives. By that check the function
        //   - keeps the convention of `Function`: it begins and ends with the frame that saves and restores all registers which a callee
        //     must keep, aligns the stack for calls and touches it nowhere else;
        //   - has no jumps, so that it runs once through and returns;
        //   - reads and writes 8, 16 or 32 bytes only at constant distances from the entries of `table`, inside of the first
        //     `lengths[k]` scalars of slice k. `put` has compared each length, and has put the slice's address, moved by the
        //     distance that the check assumes, into the entry of its number; `table` has all entries that the check allows;
        //   - writes only to slices 0 and `first_result` on. Slice 0 is `memory`, those are `results`: they are borrowed exclusively for
        //     the call, and `constants` and `arguments`, which it reads, are borrowed too, so that no two overlap where one is written;
        //   - calls only entries of `functions::TABLE`, which take numbers in registers and return normally.
        // Numbers of any bits are valid `f64`. `Machine::new` has asked the processor for the instructions that the check lets pass.
        unsafe {
            let function = std::mem::transmute::<*const u8, Function>(start);
            function(table.as_ptr(), crate::functions::TABLE.as_ptr());
        }
        Some(())
    }
}
