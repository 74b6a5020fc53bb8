//! Instructions as bytes: the few of x86-64 that straight-line code over slices needs, in their VEX form (AVX, FMA).
//!
//! Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, §2.3 (VEX prefix) and the pages of the instructions.
//! A function has the System V convention on every system, which the compiler offers under its name ("sysv64").
//!
//! | register | content |
//! |---|---|
//! | rbx | table of the slices |
//! | r13 | table of the functions |
//! | r12 | the memory |
//! | r14 | the constants |
//! | [`ROTATING`] | other slices, loaded from the table where they are needed |
//!
//! A slice is addressed by a base [`BIAS`] bytes after its first scalar: displacements of one byte then reach 32 scalars.

/// Lanes of a number: one sample, or four of them side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    One,
    Four,
}

impl Width {
    /// How many samples.
    pub(crate) fn lanes(self) -> u32 {
        match self {
            Width::One => 1,
            Width::Four => 4,
        }
    }
}

/// Offset of a slice's base register from its first scalar, bytes.
pub(crate) const BIAS: i32 = 128;

pub(crate) const TABLE: u8 = 3;
pub(crate) const FUNCTIONS: u8 = 13;
pub(crate) const MEMORY_REGISTER: u8 = 12;
pub(crate) const CONSTANTS_REGISTER: u8 = 14;
/// rcx, rdx, rsi, rdi, r8 to r11, which a call changes; rbp and r15, which it keeps.
pub(crate) const ROTATING: [u8; 10] = [1, 2, 6, 7, 8, 9, 10, 11, 5, 15];
/// How many of the rotating registers a call changes.
pub(crate) const CHANGED_BY_CALLS: usize = 8;

/// Saves what the caller keeps in registers, aligns the stack to 16 bytes, fills the fixed registers.
pub(crate) const PROLOGUE: [u8; 28] = [
    0x53, // push rbx
    0x55, // push rbp
    0x41, 0x54, // push r12
    0x41, 0x55, // push r13
    0x41, 0x56, // push r14
    0x41, 0x57, // push r15
    0x48, 0x83, 0xec, 0x08, // sub rsp, 8
    0x48, 0x89, 0xfb, // mov rbx, rdi
    0x49, 0x89, 0xf5, // mov r13, rsi
    0x4c, 0x8b, 0x23, // mov r12, [rbx]
    0x4c, 0x8b, 0x73, 0x08, // mov r14, [rbx + 8]
    0x90, // nop
];

/// The epilogue: restores registers and stack, and returns.
pub(crate) const EPILOGUE: [u8; 18] = [
    0xc5, 0xf8, 0x77, // vzeroupper
    0x48, 0x83, 0xc4, 0x08, // add rsp, 8
    0x41, 0x5f, // pop r15
    0x41, 0x5e, // pop r14
    0x41, 0x5d, // pop r13
    0x41, 0x5c, // pop r12
    0x5d, // pop rbp
    0x5b, // pop rbx
    0xc3, // ret
];

/// Clears the upper halves of all registers, without which a called function would be slow.
pub(crate) const CLEAR_UPPER: [u8; 3] = [0xc5, 0xf8, 0x77];

/// Opcode maps of the VEX prefix.
pub(crate) const MAP_0F: u8 = 1;
pub(crate) const MAP_0F38: u8 = 2;
pub(crate) const MAP_0F3A: u8 = 3;
/// What the prefix says of the operand: packed doubles, one double.
pub(crate) const PACKED: u8 = 1;
pub(crate) const SCALAR: u8 = 3;

pub(crate) const LOAD: u8 = 0x10;
pub(crate) const STORE: u8 = 0x11;
pub(crate) const MOVE: u8 = 0x28;
pub(crate) const SQRT: u8 = 0x51;
pub(crate) const AND: u8 = 0x54;
pub(crate) const XOR: u8 = 0x57;
pub(crate) const ADD: u8 = 0x58;
pub(crate) const MUL: u8 = 0x59;
pub(crate) const SUB: u8 = 0x5c;
pub(crate) const MIN: u8 = 0x5d;
pub(crate) const DIV: u8 = 0x5e;
pub(crate) const MAX: u8 = 0x5f;
pub(crate) const COMPARE: u8 = 0xc2;
/// of map 0F 38
pub(crate) const BROADCAST: u8 = 0x19;
/// of map 0F 3A
pub(crate) const BLEND: u8 = 0x4b;

/// An operand: a register of numbers, or a scalar at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rm {
    Register(u8),
    Memory { base: u8, displacement: i32 },
}

/// Bytes as they are written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Code {
    pub bytes: Vec<u8>,
}

impl Code {
    /// The ModRM byte, with SIB and displacement where there is an address.
    fn operand(&mut self, reg: u8, rm: Rm) {
        let reg = (reg & 7) << 3;
        match rm {
            Rm::Register(x) => self.bytes.push(0xc0 | reg | (x & 7)),
            Rm::Memory { base, displacement } => {
                let short = i8::try_from(displacement).ok();
                let mode = if short.is_some() { 0x40 } else { 0x80 };
                self.bytes.push(mode | reg | (base & 7));
                if base & 7 == 4 {
                    self.bytes.push(0x24);
                }
                match short {
                    Some(short) => self.bytes.push(short as u8),
                    None => self.bytes.extend(displacement.to_le_bytes()),
                }
            }
        }
    }

    /// The VEX prefix, in two bytes where they say all, and the opcode. `wide`: 256 bits; `w`: the bit W; `v`: the second source, 0 if there is none.
    #[allow(clippy::too_many_arguments, reason = "the fields of the prefix")]
    fn vex(&mut self, [map, pp, w]: [u8; 3], wide: bool, opcode: u8, reg: u8, v: u8, rm: Rm) {
        let b = match rm {
            Rm::Register(x) | Rm::Memory { base: x, .. } => x >> 3,
        };
        let r = (reg >> 3 ^ 1) << 7;
        let last = (!v & 15) << 3 | u8::from(wide) << 2 | pp;
        if map == MAP_0F && w == 0 && b == 0 {
            self.bytes.extend([0xc5, r | last]);
        } else {
            self.bytes.extend([0xc4, r | 0x40 | (b ^ 1) << 5 | map, w << 7 | last]);
        }
        self.bytes.push(opcode);
        self.operand(reg, rm);
    }

    /// An operation of map 0F on doubles of a width: to = v op rm.
    pub(crate) fn arithmetic(&mut self, width: Width, opcode: u8, to: u8, v: u8, rm: Rm) {
        match width {
            Width::One => self.vex([MAP_0F, SCALAR, 0], false, opcode, to, v, rm),
            Width::Four => self.vex([MAP_0F, PACKED, 0], true, opcode, to, v, rm),
        }
    }

    /// An operation on all bits of a register, with masks in memory of 16 or 32 bytes.
    pub(crate) fn bits(&mut self, width: Width, opcode: u8, to: u8, v: u8, rm: Rm) {
        self.vex([MAP_0F, PACKED, 0], width == Width::Four, opcode, to, v, rm);
    }

    pub(crate) fn load(&mut self, width: Width, to: u8, rm: Rm) {
        match rm {
            Rm::Register(_) => self.bits(width, MOVE, to, 0, rm),
            Rm::Memory { .. } => self.arithmetic(width, LOAD, to, 0, rm),
        }
    }

    pub(crate) fn store(&mut self, width: Width, from: u8, rm: Rm) {
        self.arithmetic(width, STORE, from, 0, rm);
    }

    /// One scalar from memory to all four lanes.
    pub(crate) fn broadcast(&mut self, to: u8, rm: Rm) {
        self.vex([MAP_0F38, PACKED, 0], true, BROADCAST, to, 0, rm);
    }

    /// A fused operation; `opcode` is that of the packed form.
    pub(crate) fn fused(&mut self, width: Width, opcode: u8, to: u8, v: u8, rm: Rm) {
        let wide = width == Width::Four;
        self.vex([MAP_0F38, PACKED, 1], wide, opcode | u8::from(!wide), to, v, rm);
    }

    /// All bits of a lane set where v CMP rm holds; NaN compares false.
    pub(crate) fn compare(&mut self, width: Width, predicate: u8, to: u8, v: u8, rm: Rm) {
        self.arithmetic(width, COMPARE, to, v, rm);
        self.bytes.push(predicate);
    }

    /// In each lane `x` where the mask is set, else `v`.
    pub(crate) fn blend(&mut self, width: Width, to: u8, v: u8, x: u8, mask: u8) {
        self.vex([MAP_0F3A, PACKED, 0], width == Width::Four, BLEND, to, v, Rm::Register(x));
        self.bytes.push(mask << 4);
    }

    /// Brings the address of a slice from the table to a register.
    pub(crate) fn load_base(&mut self, to: u8, base: u8) {
        self.bytes.extend([0x48 | to >> 3 << 2, 0x8b]);
        self.operand(to, Rm::Memory { base: TABLE, displacement: i32::from(base) * 8 });
    }

    /// Calls a function of the table.
    pub(crate) fn call(&mut self, function: u8) {
        self.bytes.extend([0x41, 0xff]);
        self.operand(2, Rm::Memory { base: FUNCTIONS, displacement: i32::from(function) * 8 });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;
    use std::process::Command;

    const GENERAL: [&str; 16] = [
        "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
        "r14", "r15",
    ];

    fn register(width: Width, x: u8) -> String {
        format!("{}{x}", if width == Width::Four { "ymm" } else { "xmm" })
    }

    /// An operand as the disassembler writes it; `size` is that of memory.
    fn text(width: Width, size: &str, rm: Rm) -> String {
        match rm {
            Rm::Register(x) => register(width, x),
            Rm::Memory { base, displacement } => {
                let sign = if displacement < 0 { '-' } else { '+' };
                format!("{size} PTR [{}{sign}{:#x}]", GENERAL[base as usize], displacement.unsigned_abs())
            }
        }
    }

    /// All kinds of instructions with all registers and both lengths of displacements, and their texts.
    fn all() -> (Code, Vec<String>) {
        let mut code = Code::default();
        let mut texts = Vec::new();
        let mut memory = Vec::new();
        for base in ROTATING.into_iter().chain([MEMORY_REGISTER, CONSTANTS_REGISTER]) {
            memory.extend([-128, 0, 120, 128, 65_536].map(|displacement| Rm::Memory { base, displacement }));
        }
        for (n, to) in (0..16).cycle().take(16 * 9).enumerate() {
            let (v, x) = ((to + 5 + n as u8 / 16) % 16, (to + 11 * (n as u8 / 16)) % 16);
            let operands =
                [Rm::Register(x), memory[(7 * n) % memory.len()], memory[(7 * n + 3) % memory.len()]];
            for width in [Width::One, Width::Four] {
                let (kind, size) = if width == Width::Four { ("pd", "YMMWORD") } else { ("sd", "QWORD") };
                let names = |x: u8| register(width, x);
                for rm in operands {
                    for (opcode, name) in [
                        (ADD, "vadd"),
                        (MUL, "vmul"),
                        (SUB, "vsub"),
                        (DIV, "vdiv"),
                        (MIN, "vmin"),
                        (MAX, "vmax"),
                    ] {
                        code.arithmetic(width, opcode, to, v, rm);
                        texts.push(format!(
                            "{name}{kind} {},{},{}",
                            names(to),
                            names(v),
                            text(width, size, rm)
                        ));
                    }
                    for (predicate, name) in [(0, "vcmpeq"), (1, "vcmplt"), (2, "vcmple")] {
                        code.compare(width, predicate, to, v, rm);
                        texts.push(format!(
                            "{name}{kind} {},{},{}",
                            names(to),
                            names(v),
                            text(width, size, rm)
                        ));
                    }
                    for (opcode, name) in [(AND, "vandpd"), (XOR, "vxorpd")] {
                        let size = if width == Width::Four { "YMMWORD" } else { "XMMWORD" };
                        code.bits(width, opcode, to, v, rm);
                        texts.push(format!("{name} {},{},{}", names(to), names(v), text(width, size, rm)));
                    }
                    for (low, name) in [(0x8, "vfmadd"), (0xa, "vfmsub"), (0xc, "vfnmadd")] {
                        for (high, order) in [(0x90, "132"), (0xa0, "213"), (0xb0, "231")] {
                            code.fused(width, high | low, to, v, rm);
                            texts.push(format!(
                                "{name}{order}{kind} {},{},{}",
                                names(to),
                                names(v),
                                text(width, size, rm)
                            ));
                        }
                    }
                    code.load(width, to, rm);
                    texts.push(match (rm, width) {
                        (Rm::Register(x), _) => format!("vmovapd {},{}", names(to), names(x)),
                        (_, Width::One) => format!("vmovsd {},{}", names(to), text(width, size, rm)),
                        (_, Width::Four) => format!("vmovupd {},{}", names(to), text(width, size, rm)),
                    });
                    if let Rm::Memory { .. } = rm {
                        code.store(width, to, rm);
                        let name = if width == Width::Four { "vmovupd" } else { "vmovsd" };
                        texts.push(format!("{name} {},{}", text(width, size, rm), names(to)));
                        code.broadcast(to, rm);
                        texts.push(format!("vbroadcastsd ymm{to},{}", text(width, "QWORD", rm)));
                    }
                }
                let second = if width == Width::One { v } else { 0 };
                code.arithmetic(width, SQRT, to, second, Rm::Register(x));
                texts.push(match width {
                    Width::One => format!("vsqrtsd {},{},{}", names(to), names(v), names(x)),
                    Width::Four => format!("vsqrtpd {},{}", names(to), names(x)),
                });
                code.blend(width, to, v, x, (x + 3) % 16);
                let mask = (x + 3) % 16;
                texts.push(format!("vblendvpd {},{},{},{}", names(to), names(v), names(x), names(mask)));
            }
        }
        for (to, base) in ROTATING.into_iter().zip([0, 1, 2, 15, 16, 17, 40, 47, 3, 9]) {
            code.load_base(to, base);
            let displacement = i32::from(base) * 8;
            let from = text(Width::One, "QWORD", Rm::Memory { base: TABLE, displacement });
            texts.push(format!("mov {},{from}", GENERAL[to as usize]));
        }
        for function in [0, 1, 14] {
            code.call(function);
            texts.push(format!("call QWORD PTR [r13+{:#x}]", 8 * function));
        }
        (code, texts)
    }

    /// Every encoding as binutils reads it.
    #[test]
    fn a_disassembler_reads_what_was_written() {
        let (mut code, mut expected) = all();
        for (bytes, texts) in [
            (
                &PROLOGUE[..],
                "push rbx;push rbp;push r12;push r13;push r14;push r15;sub rsp,0x8;mov rbx,rdi;mov r13,rsi;\
                 mov r12,QWORD PTR [rbx];mov r14,QWORD PTR [rbx+0x8];nop",
            ),
            (&EPILOGUE, "vzeroupper;add rsp,0x8;pop r15;pop r14;pop r13;pop r12;pop rbp;pop rbx;ret"),
            (&CLEAR_UPPER, "vzeroupper"),
        ] {
            code.bytes.extend(bytes);
            expected.extend(texts.split(';').map(String::from));
        }
        let file = std::env::temp_dir().join(format!("mbs-jit-{}.bin", std::process::id()));
        std::fs::write(&file, &code.bytes).expect("a file for the disassembler");
        let mut objdump = Command::new("objdump");
        objdump.args(["-D", "-b", "binary", "-m", "i386:x86-64", "-M", "intel", "--no-show-raw-insn"]);
        let run = objdump.arg(&file).output();
        std::fs::remove_file(&file).expect("the file is ours");
        let Ok(output) = run else {
            println!("skipped: objdump (binutils) is not installed");
            return;
        };
        let listing = String::from_utf8_lossy(&output.stdout);
        let instructions = listing.lines().filter_map(|line| {
            let (address, text) = line.trim().split_once(":\t")?;
            u64::from_str_radix(address, 16).ok()?;
            Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
        });
        let found: Vec<String> = instructions.collect();
        let mut wrong = String::new();
        for (found, expected) in
            found.iter().zip(&expected).filter(|(found, expected)| found != expected).take(5)
        {
            let _ = writeln!(wrong, "{found} instead of {expected}");
        }
        assert!(wrong.is_empty(), "{wrong}");
        assert_eq!(found.len(), expected.len());
        assert!(found.len() > 5000, "{}", found.len());
    }
}
