//! The scenario on a microcontroller.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod firmware {
    #[cfg(target_arch = "arm")]
    use cortex_m_rt::entry;
    use mbs_embedded::board::Board;
    #[cfg(target_arch = "riscv64")]
    use riscv_rt::entry;

    #[entry]
    fn main() -> ! {
        loop {
            if let Some(mut board) = Board::take() {
                let success = mbs_embedded::scenario::run(&mut board);
                board.exit(success);
            }
        }
    }

    /// The period has passed.
    #[cfg(target_arch = "arm")]
    #[cortex_m_rt::exception]
    fn SysTick() {
        mbs_embedded::board::TICKS.fetch_add(1, core::sync::atomic::Ordering::SeqCst);
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    println!("for microcontrollers: see README.md");
}
