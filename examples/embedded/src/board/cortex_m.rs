//! A Cortex-M: SysTick gives the period, output goes to the debugger.
//!
//! QEMU with `-icount shift=3` executes an instruction every eight nanoseconds, and SysTick counts at 25 MHz: a tick is 5 instructions.

use crate::platform::Platform;
use core::sync::atomic::{AtomicU32, Ordering};
use cortex_m::peripheral::syst::SystClkSource;
use cortex_m::peripheral::{SCB, SYST};
use cortex_m::register::msp;
use cortex_m_semihosting::debug::{self, EXIT_FAILURE, EXIT_SUCCESS};
use cortex_m_semihosting::hio::{self, HostStream};

/// Ticks of a period: 1 ms at 25 MHz.
const PERIOD: u32 = 25_000;
/// Instructions of a tick.
const INSTRUCTIONS: u64 = 5;
/// What unused stack holds.
const PAINT: u32 = 0xcccc_cccc;
/// Below the stack pointer this is left alone: what the function that paints may call.
const MARGIN: usize = 32;

/// Periods since the start; the handler of SysTick counts them.
pub static TICKS: AtomicU32 = AtomicU32::new(0);

/// The board.
pub struct Board {
    output: Option<HostStream>,
    period: u32,
    top: usize,
    /// The deepest stack of what has been painted over.
    deepest: usize,
}

impl Board {
    /// Starts the timer. None if the peripherals are taken.
    pub fn take() -> Option<Self> {
        let mut timer = cortex_m::Peripherals::take()?.SYST;
        timer.set_clock_source(SystClkSource::Core);
        timer.set_reload(PERIOD - 1);
        timer.clear_current();
        timer.enable_counter();
        timer.enable_interrupt();
        Some(Self { output: hio::hstdout().ok(), period: 0, top: 0, deepest: usize::MAX })
    }

    /// Ends the emulation.
    pub fn exit(&mut self, success: bool) -> ! {
        debug::exit(if success { EXIT_SUCCESS } else { EXIT_FAILURE });
        loop {
            cortex_m::asm::wfi();
        }
    }

    /// The stack that may be painted: from the end of static memory to below what is in use.
    fn stack_pointer() -> usize {
        (msp::read() as usize).saturating_sub(MARGIN)
    }

    /// The lowest address that has been written to since the stack was painted.
    #[allow(unsafe_code, reason = "nobody else may read unused stack")]
    fn lowest() -> usize {
        let (mut at, end) = (cortex_m_rt::heap_start(), Self::stack_pointer());
        // Sound: the addresses are between the end of static memory and the stack pointer: RAM, aligned, of no value, since there is no heap. Every one of these
        // words was written by the start-up code, which paints all of it, by `paint_stack`, or by the program since.
        while (at as usize) < end && unsafe { at.read_volatile() } == PAINT {
            at = at.wrapping_add(1);
        }
        at as usize
    }
}

impl Platform for Board {
    fn print(&mut self, text: &str) {
        if let Some(output) = &mut self.output {
            let _ = output.write_all(text.as_bytes());
        }
    }

    fn instructions(&mut self) -> Option<u64> {
        loop {
            let periods = TICKS.load(Ordering::SeqCst);
            let left = SYST::get_current();
            // Where the timer has begun again and its handler has not run yet, the two do not belong together.
            if !SCB::is_pendst_pending() && periods == TICKS.load(Ordering::SeqCst) {
                let ticks =
                    u64::from(periods) * u64::from(PERIOD) + u64::from(PERIOD - 1 - left.min(PERIOD - 1));
                return Some(ticks * INSTRUCTIONS);
            }
        }
    }

    fn wait(&mut self) -> bool {
        let now = TICKS.load(Ordering::SeqCst);
        // The first period begins with the first call.
        let in_time = self.period == 0 || now <= self.period;
        // Awake, so that QEMU's clock follows the instructions alone and every run is the same: asleep, one of five runs missed a deadline,
        // for a reason that was not found. Hardware would sleep here.
        while TICKS.load(Ordering::SeqCst) == now {
            core::hint::spin_loop();
        }
        self.period = TICKS.load(Ordering::SeqCst);
        in_time
    }

    #[allow(unsafe_code, reason = "nobody else may write to unused stack")]
    fn paint_stack(&mut self) {
        self.deepest = self.deepest.min(Self::lowest());
        let (mut at, end) = (cortex_m_rt::heap_start(), Self::stack_pointer());
        self.top = msp::read() as usize;
        while (at as usize) < end {
            // Sound: the addresses are between the end of static memory and the stack pointer less a margin for what this
            // function may call; interrupts return before the next word is written. They are RAM, aligned, and belong to no value: there is no heap.
            unsafe { at.write_volatile(PAINT) };
            at = at.wrapping_add(1);
        }
    }

    fn stack(&mut self) -> Option<usize> {
        Some(self.top.saturating_sub(Self::lowest()))
    }

    #[allow(unsafe_code, reason = "a symbol of the linker")]
    fn deepest_stack(&mut self) -> Option<usize> {
        // Sound: its address alone is used, the end of RAM.
        unsafe extern "C" {
            static _stack_start: u32;
        }
        Some((&raw const _stack_start as usize).saturating_sub(self.deepest.min(Self::lowest())))
    }
}
