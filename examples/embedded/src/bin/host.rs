//! The scenario on the host: prints the numbers that every target must have.

use mbs_embedded::{Platform, run};
use std::process::ExitCode;

struct Host;

impl Platform for Host {
    fn print(&mut self, text: &str) {
        if !text.starts_with('#') {
            print!("{text}");
        }
    }

    fn instructions(&mut self) -> Option<u64> {
        None
    }

    fn wait(&mut self) -> bool {
        true
    }

    fn paint_stack(&mut self) {}

    fn stack(&mut self) -> Option<usize> {
        None
    }
}

fn main() -> ExitCode {
    if run(&mut Host) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
