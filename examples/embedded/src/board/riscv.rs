//! RV64GC: the processor counts its instructions, output goes to the debugger. Nothing gives a period here: the loop runs freely.

use crate::platform::Platform;
use semihosting::io::{self, Write};

/// Nobody counts periods.
pub static TICKS: () = ();

/// The board.
pub struct Board;

impl Board {
    /// Nothing has to be started.
    pub fn take() -> Option<Self> {
        Some(Self)
    }

    /// Ends the emulation.
    pub fn exit(&mut self, success: bool) -> ! {
        semihosting::process::exit(i32::from(!success))
    }
}

impl Platform for Board {
    fn print(&mut self, text: &str) {
        // Opened for each line: a handle that was kept is asserted to be none that failed, which would be a panic in the program.
        if let Ok(mut output) = io::stdout() {
            let _ = output.write_all(text.as_bytes());
        }
    }

    fn instructions(&mut self) -> Option<u64> {
        Some(riscv::register::minstret::read64())
    }

    fn wait(&mut self) -> bool {
        true
    }

    fn paint_stack(&mut self) {}

    fn stack(&mut self) -> Option<usize> {
        None
    }
}
