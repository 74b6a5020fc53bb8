//! Reads machine code again, byte by byte, before it is run.
//!
//! Input: the bytes of a function and the lengths of its slices. Output: nothing, or an error with its place.
//! Holds afterwards, whatever wrote the bytes: the function saves and restores what the caller keeps, runs straight from its first
//! instruction to its return, reads only scalars of its slices, writes only scalars of its memory and its results, and calls only
//! functions of the table, none of which takes an address. [`crate::machine`] rests on this, and on nothing else of this crate.
//!
//! The reader knows no more instructions than the table below and is written against the manual (volume 2, §2.3), not against
//! [`crate::encode`], of which it takes the names of registers and the frame of a function alone.

use crate::encode::{BIAS, CHANGED_BY_CALLS, CLEAR_UPPER, EPILOGUE, PROLOGUE, ROTATING};
use crate::encode::{CONSTANTS_REGISTER, FUNCTIONS, MEMORY_REGISTER, TABLE};
use crate::straight::{CONSTANTS, MEMORY};

/// What a function may touch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slices {
    /// Scalars of each slice, in the order of the table.
    pub lengths: Vec<usize>,
    /// The first slice that is a result; it and all later ones may be written, and the memory.
    pub first_result: usize,
    /// How many functions the table has.
    pub functions: usize,
    /// Whether the processor has fused operations.
    pub fused: bool,
}

/// What is wrong with machine code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// At which byte.
    pub at: usize,
    /// What.
    pub what: &'static str,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "byte {} of the machine code: {}", self.at, self.what)
    }
}

impl std::error::Error for Fault {}

/// Whether an instruction has its operand in registers alone, or may read or write memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
    RegistersOnly,
}

/// An instruction: map, prefix, W, opcode; how it treats memory, whether it takes lanes of 256 bits, whether a byte follows.
/// Operand sizes: a scalar instruction 8 bytes, a packed one 16 or 32, by its width; a broadcast 8.
struct Known {
    key: [u8; 4],
    access: Access,
    immediate: bool,
}

const fn known(key: [u8; 4], access: Access, immediate: bool) -> Known {
    Known { key, access, immediate }
}

const fn reads(key: [u8; 4]) -> Known {
    known(key, Access::Read, false)
}

/// The packed form has the prefix 1 (66), the scalar form 3 (F2).
const INSTRUCTIONS: [Known; 43] = [
    reads([1, 1, 0, 0x10]), // vmovupd
    reads([1, 3, 0, 0x10]), // vmovsd
    known([1, 1, 0, 0x11], Access::Write, false),
    known([1, 3, 0, 0x11], Access::Write, false),
    known([1, 1, 0, 0x28], Access::RegistersOnly, false), // vmovapd
    reads([1, 1, 0, 0x51]),                               // vsqrt
    reads([1, 3, 0, 0x51]),
    reads([1, 1, 0, 0x54]), // vandpd
    reads([1, 1, 0, 0x57]), // vxorpd
    reads([1, 1, 0, 0x58]), // vadd
    reads([1, 3, 0, 0x58]),
    reads([1, 1, 0, 0x59]), // vmul
    reads([1, 3, 0, 0x59]),
    reads([1, 1, 0, 0x5c]), // vsub
    reads([1, 3, 0, 0x5c]),
    reads([1, 1, 0, 0x5d]), // vmin
    reads([1, 3, 0, 0x5d]),
    reads([1, 1, 0, 0x5e]), // vdiv
    reads([1, 3, 0, 0x5e]),
    reads([1, 1, 0, 0x5f]), // vmax
    reads([1, 3, 0, 0x5f]),
    known([1, 1, 0, 0xc2], Access::Read, true), // vcmp
    known([1, 3, 0, 0xc2], Access::Read, true),
    reads([2, 1, 0, 0x19]),                              // vbroadcastsd
    known([3, 1, 0, 0x4b], Access::RegistersOnly, true), // vblendvpd
    // vfmadd, vfmsub, vfnmadd in their forms 132, 213, 231, packed and scalar
    reads([2, 1, 1, 0x98]),
    reads([2, 1, 1, 0x99]),
    reads([2, 1, 1, 0x9a]),
    reads([2, 1, 1, 0x9b]),
    reads([2, 1, 1, 0x9c]),
    reads([2, 1, 1, 0x9d]),
    reads([2, 1, 1, 0xa8]),
    reads([2, 1, 1, 0xa9]),
    reads([2, 1, 1, 0xaa]),
    reads([2, 1, 1, 0xab]),
    reads([2, 1, 1, 0xac]),
    reads([2, 1, 1, 0xad]),
    reads([2, 1, 1, 0xb8]),
    reads([2, 1, 1, 0xb9]),
    reads([2, 1, 1, 0xba]),
    reads([2, 1, 1, 0xbb]),
    reads([2, 1, 1, 0xbc]),
    reads([2, 1, 1, 0xbd]),
];

/// Checks a function.
pub(crate) fn check(code: &[u8], slices: &Slices) -> Result<(), Fault> {
    let fault = |at, what| Err(Fault { at, what });
    let Some(body) = code.strip_prefix(&PROLOGUE) else {
        return fault(0, "a function does not begin as one");
    };
    let Some(body) = body.strip_suffix(&EPILOGUE) else {
        return fault(code.len(), "a function does not end as one");
    };
    let end = PROLOGUE.len() + body.len();
    let mut reader = Reader { code, at: PROLOGUE.len(), end, bases: [None; 16], slices };
    reader.bases[MEMORY_REGISTER as usize] = Some(MEMORY as usize);
    reader.bases[CONSTANTS_REGISTER as usize] = Some(CONSTANTS as usize);
    while reader.at < end {
        let at = reader.at;
        reader.instruction().map_err(|what| Fault { at, what })?;
    }
    Ok(())
}

struct Reader<'a> {
    code: &'a [u8],
    at: usize,
    end: usize,
    /// Which slice a register of addresses points to.
    bases: [Option<usize>; 16],
    slices: &'a Slices,
}

/// The operand of a ModRM byte.
enum Operand {
    Register,
    Memory { base: u8, displacement: i32 },
}

impl Reader<'_> {
    fn byte(&mut self) -> Result<u8, &'static str> {
        if self.at >= self.end {
            return Err("an instruction is cut short");
        }
        let byte = self.code[self.at];
        self.at += 1;
        Ok(byte)
    }

    /// ModRM, SIB and displacement: the register field and the operand. `b` extends the operand's register.
    fn modrm(&mut self, b: u8) -> Result<(u8, Operand), &'static str> {
        let modrm = self.byte()?;
        let (mode, reg, rm) = (modrm >> 6, modrm >> 3 & 7, modrm & 7);
        if mode == 3 {
            return Ok((reg, Operand::Register));
        }
        if rm == 4 && self.byte()? != 0x24 {
            return Err("an address with an index");
        }
        let displacement = match mode {
            1 => i32::from(self.byte()? as i8),
            2 => {
                let mut bytes = [0; 4];
                for byte in &mut bytes {
                    *byte = self.byte()?;
                }
                i32::from_le_bytes(bytes)
            }
            _ => return Err("an address without displacement, or relative to the instruction"),
        };
        Ok((reg, Operand::Memory { base: rm | b << 3, displacement }))
    }

    fn instruction(&mut self) -> Result<(), &'static str> {
        if self.code[self.at..self.end].starts_with(&CLEAR_UPPER) {
            self.at += CLEAR_UPPER.len();
            return Ok(());
        }
        match self.byte()? {
            0xc5 => {
                let x = self.byte()?;
                self.vex(1, 0, 0, x)
            }
            0xc4 => {
                let (x, y) = (self.byte()?, self.byte()?);
                if x & 0x40 == 0 {
                    return Err("an index register");
                }
                self.vex(x & 0x1f, x >> 5 & 1 ^ 1, y >> 7, y)
            }
            // REX.W, with or without R: the address of a slice, from the table.
            rex @ (0x48 | 0x4c) => {
                if self.byte()? != 0x8b {
                    return Err("an unknown instruction on addresses");
                }
                let (reg, operand) = self.modrm(0)?;
                let to = reg | (rex >> 2 & 1) << 3;
                let Operand::Memory { base: TABLE, displacement } = operand else {
                    return Err("an address from elsewhere than the table");
                };
                if !ROTATING.contains(&to) {
                    return Err("an address to a register that is not for it");
                }
                let slice = entry(displacement, self.slices.lengths.len()).ok_or("no such slice")?;
                self.bases[to as usize] = Some(slice);
                Ok(())
            }
            // REX.B: a call through the table of functions.
            0x41 => {
                if self.byte()? != 0xff {
                    return Err("an unknown instruction");
                }
                let (kind, operand) = self.modrm(1)?;
                let Operand::Memory { base: FUNCTIONS, displacement } = operand else {
                    return Err("a call to elsewhere than the table");
                };
                if kind != 2 || entry(displacement, self.slices.functions).is_none() {
                    return Err("no call of a function of the table");
                }
                for register in &ROTATING[..CHANGED_BY_CALLS] {
                    self.bases[*register as usize] = None;
                }
                Ok(())
            }
            _ => Err("an unknown instruction"),
        }
    }

    /// After the prefix: `last` holds the length bit and the prefix of the operand.
    fn vex(&mut self, map: u8, b: u8, w: u8, last: u8) -> Result<(), &'static str> {
        let (wide, pp) = (last >> 2 & 1 == 1, last & 3);
        let key = [map, pp, w, self.byte()?];
        let known = INSTRUCTIONS.iter().find(|known| known.key == key).ok_or("an unknown instruction")?;
        let broadcast = key == [2, 1, 0, 0x19];
        // A fused instruction is scalar where its opcode is odd.
        let scalar = pp == 3 || (map == 2 && !broadcast && key[3] & 1 == 1);
        if scalar && wide || broadcast && !wide {
            return Err("a width that the instruction has not");
        }
        if w == 1 && !self.slices.fused {
            return Err("a fused operation on a processor without");
        }
        let one_source = matches!(key, [1, _, 0, 0x10 | 0x11] | [1, 1, 0, 0x28 | 0x51] | [2, 1, 0, 0x19]);
        if one_source && last >> 3 & 15 != 15 {
            return Err("a second source where the instruction has none");
        }
        let bytes = match (scalar || broadcast, wide) {
            (true, _) => 8,
            (false, false) => 16,
            (false, true) => 32,
        };
        if let (_, Operand::Memory { base, displacement }) = self.modrm(b)? {
            if known.access == Access::RegistersOnly {
                return Err("memory where the instruction has none");
            }
            let slice = self.bases[base as usize].ok_or("an address that is not known")?;
            let first = displacement.checked_add(BIAS).and_then(|x| usize::try_from(x).ok());
            let first = first.ok_or("an address before its slice")?;
            if first % 8 != 0 || first + bytes > self.slices.lengths[slice].saturating_mul(8) {
                return Err("an address outside of its slice");
            }
            let writable = slice == MEMORY as usize || slice >= self.slices.first_result;
            if known.access == Access::Write && !writable {
                return Err("a write to what is read only");
            }
        }
        if known.immediate {
            self.byte()?;
        }
        Ok(())
    }
}

/// The number of the entry at a displacement of a table of addresses.
fn entry(displacement: i32, len: usize) -> Option<usize> {
    let displacement = usize::try_from(displacement).ok()?;
    (displacement % 8 == 0 && displacement / 8 < len).then_some(displacement / 8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::{ADD, Code, MOVE, Rm, Width};
    use crate::functions;

    /// Slice 0 is the memory, 1 the constants, 2 an argument, 3 a result.
    fn slices() -> Slices {
        Slices { lengths: vec![4, 2, 3, 2], first_result: 3, functions: functions::COUNT, fused: false }
    }

    fn function(body: &[u8]) -> Vec<u8> {
        [&PROLOGUE[..], body, &EPILOGUE].concat()
    }

    fn checked(body: &[u8]) -> Result<(), &'static str> {
        check(&function(body), &slices()).map_err(|fault| fault.what)
    }

    fn code(write: impl FnOnce(&mut Code)) -> Vec<u8> {
        let mut code = Code::default();
        write(&mut code);
        code.bytes
    }

    /// Scalar `index` of the slice in a register.
    fn at(base: u8, index: i32) -> Rm {
        Rm::Memory { base, displacement: 8 * index - BIAS }
    }

    const RCX: u8 = 1;
    const R15: u8 = 15;

    #[test]
    fn what_stays_in_its_slices_passes() {
        let body = code(|code| {
            code.load(Width::One, 0, at(MEMORY_REGISTER, 3));
            code.load(Width::Four, 9, at(MEMORY_REGISTER, 0));
            code.arithmetic(Width::One, ADD, 1, 0, at(CONSTANTS_REGISTER, 1));
            code.load_base(RCX, 2);
            code.arithmetic(Width::One, ADD, 1, 1, at(RCX, 2));
            code.load_base(R15, 3);
            code.call(0);
            code.store(Width::One, 0, at(R15, 1));
            code.store(Width::One, 0, at(MEMORY_REGISTER, 0));
        });
        assert_eq!(checked(&body), Ok(()));
        assert_eq!(checked(&[]), Ok(()));
    }

    #[test]
    fn addresses_outside_are_refused() {
        let outside = "an address outside of its slice";
        let read = |width, base, index| code(|code| code.load(width, 0, at(base, index)));
        assert_eq!(checked(&read(Width::One, MEMORY_REGISTER, 4)), Err(outside));
        assert_eq!(checked(&read(Width::One, CONSTANTS_REGISTER, 2)), Err(outside));
        // Four scalars from the second on, of four.
        assert_eq!(checked(&read(Width::Four, MEMORY_REGISTER, 1)), Err(outside));
        assert_eq!(checked(&read(Width::One, MEMORY_REGISTER, 100_000)), Err(outside));
        assert_eq!(checked(&read(Width::One, MEMORY_REGISTER, -1)), Err("an address before its slice"));
        let displacement = i32::MAX;
        let far = code(|code| code.load(Width::One, 0, Rm::Memory { base: MEMORY_REGISTER, displacement }));
        assert_eq!(checked(&far), Err("an address before its slice"));
        // Half of one scalar and half of the next.
        let displacement = 4 - BIAS;
        let between =
            code(|code| code.load(Width::One, 0, Rm::Memory { base: MEMORY_REGISTER, displacement }));
        assert_eq!(checked(&between), Err(outside));
        // Masks of 16 bytes at the last scalar.
        let mask = code(|code| code.bits(Width::One, 0x54, 0, 0, at(CONSTANTS_REGISTER, 1)));
        assert_eq!(checked(&mask), Err(outside));
    }

    #[test]
    fn only_memory_and_results_are_written() {
        let write = |slice: u8| {
            checked(&code(|code| {
                code.load_base(RCX, slice);
                code.store(Width::One, 0, at(RCX, 0));
            }))
        };
        let refused = Err("a write to what is read only");
        assert_eq!([write(0), write(1), write(2), write(3)], [Ok(()), refused, refused, Ok(())]);
        let constants = code(|code| code.store(Width::One, 0, at(CONSTANTS_REGISTER, 0)));
        assert_eq!(checked(&constants), refused);
    }

    #[test]
    fn addresses_come_from_the_table_alone() {
        assert_eq!(
            checked(&code(|code| code.load(Width::One, 0, at(RCX, 0)))),
            Err("an address that is not known")
        );
        // The stack, the table of slices, that of functions.
        for base in [4, TABLE, FUNCTIONS] {
            let found = checked(&code(|code| code.load(Width::One, 0, at(base, 0))));
            assert_eq!(found, Err("an address that is not known"), "{base}");
        }
        assert_eq!(checked(&code(|code| code.load_base(RCX, 4))), Err("no such slice"));
        for to in [0, 4, TABLE, MEMORY_REGISTER, FUNCTIONS, CONSTANTS_REGISTER] {
            let found = checked(&code(|code| code.load_base(to, 2)));
            assert_eq!(found, Err("an address to a register that is not for it"), "{to}");
        }
        // mov rcx, [rcx + 8] and mov rcx, rdx
        assert_eq!(checked(&[0x48, 0x8b, 0x49, 0x08]), Err("an address from elsewhere than the table"));
        assert_eq!(checked(&[0x48, 0x8b, 0xca]), Err("an address from elsewhere than the table"));
        // Between two entries of the table.
        assert_eq!(checked(&[0x48, 0x8b, 0x4b, 0x04]), Err("no such slice"));
        // A call changes the register.
        let after = |base: u8| {
            checked(&code(|code| {
                code.load_base(base, 2);
                code.call(0);
                code.load(Width::One, 0, at(base, 0));
            }))
        };
        assert_eq!([after(RCX), after(R15)], [Err("an address that is not known"), Ok(())]);
    }

    #[test]
    fn calls_go_to_the_table_alone() {
        let none = Err("no call of a function of the table");
        assert_eq!(checked(&code(|code| code.call(functions::COUNT as u8))), none);
        assert_eq!(checked(&code(|code| code.call(functions::COUNT as u8 - 1))), Ok(()));
        // jmp [r13 + 8]; call [r9 + 8]; call r13
        assert_eq!(checked(&[0x41, 0xff, 0x65, 0x08]), none);
        let elsewhere = Err("a call to elsewhere than the table");
        assert_eq!([checked(&[0x41, 0xff, 0x51, 0x08]), checked(&[0x41, 0xff, 0xd5])], [elsewhere; 2]);
    }

    #[test]
    fn branches_and_unknown_instructions_are_refused() {
        let refused: [(&str, &[u8]); 26] = [
            ("jmp rel8", &[0xeb, 0x00]),
            ("jmp rel32", &[0xe9, 0, 0, 0, 0]),
            ("je rel8", &[0x74, 0x00]),
            ("je rel32", &[0x0f, 0x84, 0, 0, 0, 0]),
            ("call rel32", &[0xe8, 0, 0, 0, 0]),
            ("jmp rax", &[0xff, 0xe0]),
            ("ret", &[0xc3]),
            ("loop", &[0xe2, 0x00]),
            ("syscall", &[0x0f, 0x05]),
            ("int3", &[0xcc]),
            ("hlt", &[0xf4]),
            ("cpuid", &[0x0f, 0xa2]),
            ("push rax", &[0x50]),
            ("pop rsp", &[0x5c]),
            ("nop", &[0x90]),
            ("mov rax, rbx", &[0x48, 0x89, 0xd8]),
            ("mov [rbx + 8], rcx", &[0x48, 0x89, 0x4b, 0x08]),
            ("lea rcx, [rbx + 8]", &[0x48, 0x8d, 0x4b, 0x08]),
            ("add rsp, 8", &[0x48, 0x83, 0xc4, 0x08]),
            ("movsd xmm0, [r12 - 128], without VEX", &[0xf2, 0x41, 0x0f, 0x10, 0x44, 0x24, 0x80]),
            ("vmovntpd [r12 - 128], ymm0", &[0xc4, 0xc1, 0x7d, 0x2b, 0x44, 0x24, 0x80]),
            ("vmaskmovpd [r12 - 128], ymm0, ymm0", &[0xc4, 0xc2, 0x7d, 0x2f, 0x44, 0x24, 0x80]),
            ("vgatherdpd", &[0xc4, 0xe2, 0xf5, 0x92, 0x04, 0x23]),
            ("vzeroall", &[0xc5, 0xfc, 0x77]),
            ("an EVEX prefix", &[0x62, 0xf1, 0xfd, 0x48, 0x28, 0xc1]),
            ("vaddsd of the map 0F 3A", &[0xc4, 0xe3, 0x7b, 0x58, 0xc1]),
        ];
        for (name, body) in refused {
            assert!(checked(body).is_err(), "{name}");
            // After a valid instruction, too.
            let fine = code(|code| code.load(Width::One, 0, at(MEMORY_REGISTER, 0)));
            assert!(checked(&[&fine, body].concat()).is_err(), "{name}");
        }
    }

    #[test]
    fn forms_of_addresses_that_are_not_used_are_refused() {
        // vmovsd xmm0, [r12 + rax + disp8]: an index
        assert_eq!(checked(&[0xc4, 0xc1, 0x7b, 0x10, 0x44, 0x04, 0x80]), Err("an address with an index"));
        // The same with the bit X: r8 as an index
        assert_eq!(checked(&[0xc4, 0x81, 0x7b, 0x10, 0x44, 0x04, 0x80]), Err("an index register"));
        // vmovsd xmm0, [rip + 0] and [rcx]
        let without = Err("an address without displacement, or relative to the instruction");
        assert_eq!(checked(&[0xc5, 0xfb, 0x10, 0x05, 0, 0, 0, 0]), without);
        assert_eq!(checked(&[0xc5, 0xfb, 0x10, 0x01]), without);
        // vmovapd and vblendvpd have registers alone.
        let none = Err("memory where the instruction has none");
        let aligned = code(|code| code.bits(Width::Four, MOVE, 0, 0, at(MEMORY_REGISTER, 0)));
        assert_eq!(checked(&aligned), none);
        assert_eq!(checked(&[0xc4, 0xc3, 0x7d, 0x4b, 0x44, 0x24, 0x80, 0x10]), none);
    }

    #[test]
    fn widths_and_sources_are_those_of_the_manual() {
        // vaddsd with the bit for 256 bits; vbroadcastsd to 128 bits
        let width = Err("a width that the instruction has not");
        assert_eq!(checked(&[0xc5, 0xff, 0x58, 0xc1]), width);
        assert_eq!(checked(&[0xc4, 0xc2, 0x79, 0x19, 0x44, 0x24, 0x80]), width);
        // vmovupd ymm0, ymm1 with a second source
        assert_eq!(checked(&[0xc5, 0xf5, 0x10, 0xc1]), Err("a second source where the instruction has none"));
    }

    #[test]
    fn fused_operations_need_a_processor_that_has_them() {
        let body = code(|code| code.fused(Width::One, 0xa8, 0, 1, Rm::Register(2)));
        assert_eq!(checked(&body), Err("a fused operation on a processor without"));
        assert_eq!(check(&function(&body), &Slices { fused: true, ..slices() }), Ok(()));
    }

    #[test]
    fn a_function_has_its_frame_and_whole_instructions() {
        let fine = function(&code(|code| code.load(Width::One, 0, at(MEMORY_REGISTER, 0))));
        assert_eq!(check(&fine, &slices()), Ok(()));
        // Any other byte in the frame.
        let body = PROLOGUE.len()..fine.len() - EPILOGUE.len();
        for at in (0..fine.len()).filter(|at| !body.contains(at)) {
            let mut other = fine.clone();
            other[at] ^= 0x01;
            assert!(check(&other, &slices()).is_err(), "byte {at}");
        }
        // Cut short: the end of the instruction would be taken from the epilogue.
        for len in 1..body.len() {
            let cut = [&fine[..body.start + len], &EPILOGUE].concat();
            assert!(check(&cut, &slices()).is_err(), "{len} bytes");
        }
        assert!(check(&[], &slices()).is_err());
        assert!(check(&PROLOGUE, &slices()).is_err());
    }

    /// Bytes from anywhere: the checker neither panics nor lets much pass.
    #[test]
    fn any_bytes_can_be_checked() {
        let mut state = 7_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u8
        };
        let mut passed = 0;
        for _ in 0..20_000 {
            let mut body: Vec<u8> = (0..1 + random() % 16).map(|_| random()).collect();
            // Half of them begin as our instructions do.
            if random() % 2 == 0 {
                body[0] = if random() % 2 == 0 { 0xc4 } else { 0xc5 };
            }
            passed += usize::from(checked(&body).is_ok());
        }
        assert!(passed < 200, "{passed}");
    }
}
