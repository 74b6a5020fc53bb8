//! Operations → machine code, registers chosen on the way.
//!
//! Input: [`Straight`]. Output: [`Written`], pieces of machine code and between them gathers and kernels, which are not
//! compiled. Holds afterwards: each live item is in a register or in its home slot, a scalar of a slice.
//!
//! A register is taken from the item whose next use is furthest (Belady's rule, which is optimal where dropping costs nothing), except that
//! an item without home must be stored first and so counts as nearer. Values never change, so an item is stored at most once.

use crate::Refusal;
use crate::check::Slices;
use crate::encode::{self, BIAS, CHANGED_BY_CALLS, Code, ROTATING, Rm, Width};
use crate::functions;
use crate::straight::{
    Arithmetic, CONSTANTS, FIRST, Item, KernelCall, MEMORY, Op, Place, Product, Straight, Stretch,
};
use mbs_codegen::graph::Comparison;
use std::ops::Range;

/// What is written for a bundle.
#[derive(Clone, Debug)]
pub(crate) struct Written {
    pub bytes: Vec<u8>,
    pub parts: Vec<Part>,
    pub slices: Slices,
}

/// A part of what a bundle does.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    /// A function: its bytes.
    Code(Range<usize>),
    /// A scalar of a stretch to a place in memory.
    Gather {
        from: Stretch,
        index: Place,
        to: u32,
    },
    /// The number of an interval to a place in memory.
    Locate {
        knots: Stretch,
        x: Place,
        to: u32,
    },
    Kernel(KernelCall),
}

/// Writes the code. `uniform` says of each slice whether all lanes share it.
pub(crate) fn write(
    straight: Straight,
    width: Width,
    fused: bool,
    uniform: &dyn Fn(u8) -> bool,
) -> Result<Written, Refusal> {
    let results = FIRST as usize + straight.arguments.len();
    let is_argument = |base: u8| base >= FIRST && usize::from(base) < results;
    let uses = Uses::of(&straight);
    let mut writer = Writer {
        code: Code { bytes: Vec::with_capacity(8 * straight.ops.len()) },
        parts: Vec::new(),
        begun: None,
        register: vec![NONE; straight.homes.len()],
        next: uses.first,
        homes: straight.homes,
        held: [None; 16],
        pinned: 0,
        bases: [(NONE, 0); ROTATING.len()],
        clock: 0,
        free: Vec::new(),
        fixed: straight.fixed,
        memory: straight.fixed,
        width,
        fused,
        uniform: (0..=u8::MAX)
            .map(|base| width == Width::One || base == CONSTANTS || (is_argument(base) && uniform(base)))
            .collect(),
    };
    for (op, &start) in straight.ops.iter().zip(&uses.starts) {
        let mut later = uses.later[start as usize..].iter();
        op.reads(|item| {
            if let Some(&next) = later.next() {
                writer.next[item as usize] = next;
            }
        });
        writer.pinned = 0;
        writer.op(op, &straight.kernels)?;
        op.reads(|item| writer.release(item));
    }
    writer.end();
    let lanes = |base: u8, len: u32| len as usize * if writer.uniform[base as usize] { 1 } else { 4 };
    let stride = |len: u32| len as usize * width.lanes() as usize;
    let mut lengths = vec![stride(writer.memory), straight.constants.len()];
    let arguments = straight.arguments.iter().map(|&(_, len)| len);
    lengths.extend((FIRST..).zip(arguments).map(|(base, len)| lanes(base, len)));
    let first_result = lengths.len();
    lengths.extend(straight.results.iter().map(|&len| stride(len)));
    let slices = Slices { lengths, first_result, functions: functions::COUNT, fused };
    Ok(Written { bytes: writer.code.bytes, parts: writer.parts, slices })
}

/// For a register of an item: none. For a next use: never.
const NONE: u8 = u8::MAX;
const NEVER: u32 = u32::MAX;

/// Which operation reads an item next.
struct Uses {
    /// Of each item, before anything runs.
    first: Vec<u32>,
    /// Of what each operation reads, in the order in which it reads, afterwards.
    later: Vec<u32>,
    /// Where the entries of each operation begin in `later`.
    starts: Vec<u32>,
}

impl Uses {
    fn of(straight: &Straight) -> Uses {
        let mut first = vec![NEVER; straight.homes.len()];
        let mut later = Vec::with_capacity(2 * straight.ops.len());
        let mut starts = vec![0; straight.ops.len()];
        for (i, op) in straight.ops.iter().enumerate().rev() {
            starts[i] = later.len() as u32;
            op.reads(|item| later.push(first[item as usize]));
            op.reads(|item| first[item as usize] = i as u32);
        }
        Uses { first, later, starts }
    }
}

struct Writer {
    code: Code,
    parts: Vec<Part>,
    /// Where the present function began.
    begun: Option<usize>,
    homes: Vec<Option<Place>>,
    register: Vec<u8>,
    next: Vec<u32>,
    held: [Option<Item>; 16],
    /// Registers that the present operation needs, as bits.
    pinned: u16,
    /// Slices in the rotating registers, and when each was used.
    bases: [(u8, u32); ROTATING.len()],
    clock: u32,
    /// Free slots in memory.
    free: Vec<u32>,
    fixed: u32,
    memory: u32,
    width: Width,
    fused: bool,
    uniform: Vec<bool>,
}

impl Writer {
    /// The bytes of the present function; begins one where there is none.
    fn code(&mut self) -> &mut Code {
        if self.begun.is_none() {
            self.begun = Some(self.code.bytes.len());
            self.code.bytes.extend(encode::PROLOGUE);
        }
        &mut self.code
    }

    /// Ends the present function. Every live item must be in its home slot.
    fn end(&mut self) {
        if let Some(begun) = self.begun.take() {
            self.code.bytes.extend(encode::EPILOGUE);
            self.parts.push(Part::Code(begun..self.code.bytes.len()));
            self.bases = [(NONE, 0); ROTATING.len()];
        }
    }

    /// The register that points to a slice.
    fn base(&mut self, base: u8) -> u8 {
        match base {
            MEMORY => return encode::MEMORY_REGISTER,
            CONSTANTS => return encode::CONSTANTS_REGISTER,
            _ => {}
        }
        self.clock += 1;
        if let Some(i) = self.bases.iter().position(|&(other, _)| other == base) {
            self.bases[i].1 = self.clock;
            return ROTATING[i];
        }
        let oldest = (0..ROTATING.len()).min_by_key(|&i| self.bases[i].1).unwrap_or(0);
        self.bases[oldest] = (base, self.clock);
        self.code().load_base(ROTATING[oldest], base);
        ROTATING[oldest]
    }

    /// The address of a lane of a place.
    fn address(&mut self, place: Place, lane: u32) -> Result<Rm, Refusal> {
        let stride = if self.uniform[place.base as usize] { 1 } else { self.width.lanes() };
        let lane = if stride == 1 { 0 } else { lane };
        let byte = 8 * (u64::from(place.index) * u64::from(stride) + u64::from(lane));
        let displacement = i32::try_from(byte).map_err(|_| Refusal::Size)? - BIAS;
        Ok(Rm::Memory { base: self.base(place.base), displacement })
    }

    /// A place in memory that is free.
    fn slot(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.memory += 1;
            self.memory - 1
        })
    }

    /// Where an item lies beside its register.
    fn home(&self, item: Item) -> Result<Place, Refusal> {
        self.homes[item as usize].ok_or(Refusal::Bundle)
    }

    /// Gives an item that is in a register a home, too.
    fn bring_home(&mut self, item: Item) -> Result<(), Refusal> {
        if self.homes[item as usize].is_none() {
            let place = Place { base: MEMORY, index: self.slot() };
            self.homes[item as usize] = Some(place);
            let (width, from) = (self.width, self.register[item as usize]);
            if from == NONE {
                return Err(Refusal::Bundle);
            }
            let to = self.address(place, 0)?;
            self.code().store(width, from, to);
        }
        Ok(())
    }

    fn is_dead(&self, item: Item) -> bool {
        self.next[item as usize] == NEVER
    }

    /// The register to spill, and the next use of its item.
    fn victim(&self) -> (u8, u32) {
        let (mut best, mut furthest, mut next) = (0, 0, 0);
        for register in (0..16).filter(|register| self.pinned >> register & 1 == 0) {
            let Some(item) = self.held[register as usize] else {
                return (register, NEVER);
            };
            let use_ = self.next[item as usize];
            if use_ == NEVER {
                return (register, NEVER);
            }
            // To store an item costs about as much as to load what is read within the next few operations.
            let distance = if self.homes[item as usize].is_none() { use_ } else { use_.saturating_add(8) };
            if distance >= furthest {
                (best, furthest, next) = (register, distance, use_);
            }
        }
        (best, next)
    }

    fn pin(&mut self, item: Item) {
        let register = self.register[item as usize];
        if register != NONE {
            self.pinned |= 1 << register;
        }
    }

    /// A register without a live item.
    fn take(&mut self) -> Result<u8, Refusal> {
        let (register, _) = self.victim();
        if let Some(item) = self.held[register as usize] {
            if !self.is_dead(item) {
                self.bring_home(item)?;
            }
            self.vacate(register);
        }
        self.pinned |= 1 << register;
        Ok(register)
    }

    fn vacate(&mut self, register: u8) {
        if let Some(item) = self.held[register as usize].take() {
            self.register[item as usize] = NONE;
        }
    }

    fn put(&mut self, register: u8, item: Item) {
        self.vacate(register);
        self.held[register as usize] = Some(item);
        self.register[item as usize] = register;
    }

    /// Loads an item from its home.
    fn load(&mut self, register: u8, place: Place) -> Result<(), Refusal> {
        let (width, from) = (self.width, self.address(place, 0)?);
        if width == Width::Four && self.uniform[place.base as usize] {
            self.code().broadcast(register, from);
        } else {
            self.code().load(width, register, from);
        }
        Ok(())
    }

    /// An item in a register.
    fn in_register(&mut self, item: Item) -> Result<u8, Refusal> {
        self.pin(item);
        let register = self.register[item as usize];
        if register != NONE {
            return Ok(register);
        }
        let (register, home) = (self.take()?, self.home(item)?);
        self.load(register, home)?;
        self.put(register, item);
        Ok(register)
    }

    /// An item in a register, or where it lies if it is not worth one.
    fn operand(&mut self, item: Item) -> Result<Rm, Refusal> {
        self.pin(item);
        let register = self.register[item as usize];
        if register != NONE {
            return Ok(Rm::Register(register));
        }
        let home = self.home(item)?;
        let shared = self.width == Width::Four && self.uniform[home.base as usize];
        if shared || self.next[item as usize] < self.victim().1 {
            return Ok(Rm::Register(self.in_register(item)?));
        }
        self.address(home, 0)
    }

    /// The register of a result: that of an operand that nothing else reads, or another.
    fn result(&mut self, to: Item, operands: &[Item]) -> Result<u8, Refusal> {
        let reused = operands
            .iter()
            .find(|&&item| self.is_dead(item) && self.register[item as usize] != NONE)
            .map(|&item| self.register[item as usize]);
        let register = match reused {
            Some(register) => register,
            None => self.take()?,
        };
        self.put(register, to);
        Ok(register)
    }

    /// After an operation: dead items free their registers and slots.
    fn release(&mut self, item: Item) {
        if !self.is_dead(item) {
            return;
        }
        if let Some(Place { base: MEMORY, index }) = self.homes[item as usize]
            && index >= self.fixed
        {
            self.free.push(index);
            self.homes[item as usize] = None;
        }
        let register = self.register[item as usize];
        if register != NONE {
            self.vacate(register);
        }
    }

    /// Before a call: stores live items to their home slots; registers keep their values until the call.
    fn all_home(&mut self) -> Result<(), Refusal> {
        for register in 0..16 {
            if let Some(item) = self.held[register]
                && !self.is_dead(item)
            {
                self.bring_home(item)?;
            }
        }
        Ok(())
    }

    fn vacate_all(&mut self) {
        (0..16).for_each(|register| self.vacate(register));
    }

    fn call(&mut self, function: u8) {
        self.code().call(function);
        self.bases[..CHANGED_BY_CALLS].fill((NONE, 0));
    }

    /// One lane of an item to a register, whatever that held.
    fn move_to(&mut self, to: u8, item: Item) -> Result<(), Refusal> {
        match self.register[item as usize] {
            NONE => {
                let home = self.home(item)?;
                self.load(to, home)?;
            }
            from if from == to => {}
            from => self.code().load(Width::One, to, Rm::Register(from)),
        }
        Ok(())
    }

    /// Calls a function of up to two arguments and up to two results; with four lanes once a lane, through memory.
    fn call_with(&mut self, function: u8, arguments: &[Item], results: &[Item]) -> Result<(), Refusal> {
        self.all_home()?;
        if self.width == Width::One {
            match *arguments {
                [a, b] => {
                    // By way of a register that neither is in, so that nothing is lost.
                    let way = if self.register[a as usize] == 2 { 3 } else { 2 };
                    self.move_to(way, b)?;
                    self.move_to(0, a)?;
                    self.code().load(Width::One, 1, Rm::Register(way));
                }
                [a] => self.move_to(0, a)?,
                _ => return Err(Refusal::Bundle),
            }
            self.vacate_all();
            self.call(function);
            for (register, &item) in (0..).zip(results) {
                self.put(register, item);
            }
            return Ok(());
        }
        for &item in arguments {
            self.bring_home(item)?;
        }
        self.vacate_all();
        let to: Vec<Place> = results.iter().map(|_| Place { base: MEMORY, index: self.slot() }).collect();
        self.code().bytes.extend(encode::CLEAR_UPPER);
        for lane in 0..self.width.lanes() {
            for (register, &item) in (0..).zip(arguments) {
                let from = self.home(item)?;
                let from = self.address(from, lane)?;
                self.code().load(Width::One, register, from);
            }
            self.call(function);
            for (register, &place) in (0..).zip(&to) {
                let to = self.address(place, lane)?;
                self.code().store(Width::One, register, to);
            }
        }
        for (&item, place) in results.iter().zip(to) {
            self.settle(item, place.index);
        }
        Ok(())
    }

    /// A value that was written to memory: it is at home there, if anything reads it.
    fn settle(&mut self, item: Item, index: u32) {
        if self.is_dead(item) {
            self.free.push(index);
        } else {
            self.homes[item as usize] = Some(Place { base: MEMORY, index });
        }
    }

    /// A part that is not compiled: live items are stored, the function ends, the part runs before the next function.
    fn interrupt(&mut self, index: Option<Item>) -> Result<(), Refusal> {
        if self.width != Width::One {
            return Err(Refusal::Lanes);
        }
        self.all_home()?;
        if let Some(index) = index {
            self.bring_home(index)?;
        }
        self.vacate_all();
        self.end();
        Ok(())
    }

    fn op(&mut self, op: &Op, kernels: &[KernelCall]) -> Result<(), Refusal> {
        let width = self.width;
        match *op {
            Op::Arithmetic(kind, two, to) => self.arithmetic(kind, two, to)?,
            Op::MulAdd(kind, three, to) if self.fused => self.fused_product(kind, three, to)?,
            Op::MulAdd(kind, three, to) => self.product(kind, three, to)?,
            Op::Neg(a, to) => self.masked(encode::XOR, 0, a, to)?,
            Op::Abs(a, to) => self.masked(encode::AND, 4, a, to)?,
            Op::Sqrt(a, to) => {
                let from = self.in_register(a)?;
                let result = self.result(to, &[a])?;
                // The scalar form merges the upper half from a second source; the packed form has none.
                let second = if width == Width::One { from } else { 0 };
                self.code().arithmetic(width, encode::SQRT, result, second, Rm::Register(from));
            }
            Op::Select(comparison, [a, b, x, y], to) => {
                [a, b, x, y].into_iter().for_each(|item| self.pin(item));
                let left = self.in_register(a)?;
                let right = self.operand(b)?;
                let mask = self.take()?;
                // LT_OS, LE_OS, EQ_OQ
                let predicate = match comparison {
                    Comparison::Less => 1,
                    Comparison::LessEqual => 2,
                    Comparison::Equal => 0,
                };
                self.code().compare(width, predicate, mask, left, right);
                let (x, y) = (self.in_register(x)?, self.in_register(y)?);
                self.code().blend(width, mask, y, x, mask);
                self.put(mask, to);
            }
            Op::Call(function, a, to) => {
                self.call_with(functions::of_one(function).ok_or(Refusal::Bundle)?, &[a], &[to])?;
            }
            Op::CallTwo(function, two, to) => {
                self.call_with(functions::of_two(function).ok_or(Refusal::Bundle)?, &two, &[to])?;
            }
            Op::SinCos(a, two) => self.call_with(functions::SIN_COS, &[a], &two)?,
            Op::Load(place, to) => {
                let register = self.take()?;
                self.load(register, Place { base: MEMORY, index: place })?;
                self.put(register, to);
            }
            Op::Store(a, place) => {
                let from = self.in_register(a)?;
                let to = self.address(Place { base: MEMORY, index: place }, 0)?;
                self.code().store(width, from, to);
            }
            Op::Result(a, place) => {
                let from = self.in_register(a)?;
                let to = self.address(place, 0)?;
                self.code().store(width, from, to);
            }
            Op::Gather(from, index, to) => {
                self.interrupt(Some(index))?;
                let (index, place) = (self.home(index)?, self.slot());
                self.parts.push(Part::Gather { from, index, to: place });
                self.settle(to, place);
            }
            Op::Locate(knots, x, to) => {
                self.interrupt(Some(x))?;
                let (x, place) = (self.home(x)?, self.slot());
                self.parts.push(Part::Locate { knots, x, to: place });
                self.settle(to, place);
            }
            Op::Kernel(which) => {
                self.interrupt(None)?;
                self.parts.push(Part::Kernel(kernels[which as usize].clone()));
            }
        }
        Ok(())
    }

    /// Of two factors or summands, the one that should be in a register first.
    fn order(&self, [a, b]: [Item; 2]) -> [Item; 2] {
        let absent = |item: Item| self.register[item as usize] == NONE;
        if absent(a) && (!absent(b) || self.next[b as usize] < self.next[a as usize]) {
            [b, a]
        } else {
            [a, b]
        }
    }

    fn arithmetic(&mut self, kind: Arithmetic, two: [Item; 2], to: Item) -> Result<(), Refusal> {
        let (opcode, commutes) = match kind {
            Arithmetic::Add => (encode::ADD, true),
            Arithmetic::Sub => (encode::SUB, false),
            Arithmetic::Mul => (encode::MUL, true),
            Arithmetic::Div => (encode::DIV, false),
            Arithmetic::Min => (encode::MIN, false),
            Arithmetic::Max => (encode::MAX, false),
        };
        let [a, b] = if commutes { self.order(two) } else { two };
        self.pin(b);
        let left = self.in_register(a)?;
        let right = self.operand(b)?;
        let result = self.result(to, &[a, b])?;
        let width = self.width;
        self.code().arithmetic(width, opcode, result, left, right);
        Ok(())
    }

    /// to = a op mask, the mask being constants.
    fn masked(&mut self, opcode: u8, mask: u32, a: Item, to: Item) -> Result<(), Refusal> {
        let from = self.in_register(a)?;
        let result = self.result(to, &[a])?;
        let (width, mask) = (self.width, self.address(Place { base: CONSTANTS, index: mask }, 0)?);
        self.code().bits(width, opcode, result, from, mask);
        Ok(())
    }

    /// a b ± c in two operations.
    fn product(&mut self, kind: Product, [a, b, c]: [Item; 3], to: Item) -> Result<(), Refusal> {
        let width = self.width;
        let [a, b] = self.order([a, b]);
        self.pin(b);
        self.pin(c);
        let left = self.in_register(a)?;
        let right = self.operand(b)?;
        // The product goes where a factor was that nothing else reads, not even the sum.
        let reused = [a, b]
            .into_iter()
            .find(|&item| item != c && self.is_dead(item) && self.register[item as usize] != NONE);
        let product = match reused {
            Some(item) => self.register[item as usize],
            None => self.take()?,
        };
        self.code().arithmetic(width, encode::MUL, product, left, right);
        self.vacate(product);
        self.pinned |= 1 << product;
        match kind {
            Product::Add | Product::Sub => {
                let opcode = if kind == Product::Add { encode::ADD } else { encode::SUB };
                let third = self.operand(c)?;
                self.code().arithmetic(width, opcode, product, product, third);
            }
            Product::NegAdd => {
                let third = self.in_register(c)?;
                self.code().arithmetic(width, encode::SUB, product, third, Rm::Register(product));
            }
        }
        self.put(product, to);
        Ok(())
    }

    /// a b ± c in one operation, which overwrites one of its sources. Form 231: r = v m + r; form 213: r = v r + m.
    fn fused_product(&mut self, kind: Product, [a, b, c]: [Item; 3], to: Item) -> Result<(), Refusal> {
        let (width, low) = (
            self.width,
            match kind {
                Product::Add => 0x8,
                Product::Sub => 0xa,
                Product::NegAdd => 0xc,
            },
        );
        [a, b, c].into_iter().for_each(|item| self.pin(item));
        let alone = |writer: &Self, item: Item, others: [Item; 2]| {
            writer.is_dead(item) && writer.register[item as usize] != NONE && !others.contains(&item)
        };
        let [a, b] = self.order([a, b]);
        if alone(self, c, [a, b]) {
            let left = self.in_register(a)?;
            let right = self.operand(b)?;
            let result = self.register[c as usize];
            self.code().fused(width, 0xb0 | low, result, left, right);
            self.put(result, to);
            return Ok(());
        }
        let [a, b] = if alone(self, b, [a, c]) { [b, a] } else { [a, b] };
        let left = self.in_register(b)?;
        let result = if alone(self, a, [b, c]) {
            self.register[a as usize]
        } else {
            let register = self.take()?;
            match self.register[a as usize] {
                NONE => {
                    let home = self.home(a)?;
                    self.load(register, home)?;
                }
                from => self.code().load(width, register, Rm::Register(from)),
            }
            register
        };
        self.pinned |= 1 << result;
        let third = self.operand(c)?;
        self.code().fused(width, 0xa0 | low, result, left, third);
        self.put(result, to);
        Ok(())
    }
}
