//! The machines of QEMU as platforms.

#[cfg(target_arch = "arm")]
#[path = "board/cortex_m.rs"]
mod machine;
#[cfg(target_arch = "riscv64")]
#[path = "board/riscv.rs"]
mod machine;

pub use machine::{Board, TICKS};

/// Never reached, and therefore not in the firmware: `check.sh` looks for it.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        core::hint::black_box("mbs-embedded: the panic handler is reachable");
    }
}
