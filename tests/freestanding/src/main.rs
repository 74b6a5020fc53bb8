//! Integrates generated models without std, heap or panic, checks the results and says by its exit code how it went:
//! 0 if everything holds, otherwise the number of the first check that does not.
//!
//! `cargo run --release --manifest-path tests/freestanding/Cargo.toml`. The test `freestanding` of the workspace builds
//! and runs it, and looks into the program for symbols of panics, of the heap and of the C library.
#![no_std]
#![no_main]

mod constrained;
mod every_bundle;
mod face;
mod functions;
mod robotics;
mod runs;

/// Models with every bundle, by the build script.
#[allow(missing_docs, unreachable_pub, reason = "a program includes what a crate would publish")]
mod models {
    include!(concat!(env!("OUT_DIR"), "/mirrored.rs"));
    include!(concat!(env!("OUT_DIR"), "/torque_free_top.rs"));
    include!(concat!(env!("OUT_DIR"), "/cart_pole.rs"));
    include!(concat!(env!("OUT_DIR"), "/arm7.rs"));
    include!(concat!(env!("OUT_DIR"), "/arm7_rolled.rs"));
    include!(concat!(env!("OUT_DIR"), "/five_bar.rs"));
}

use core::ffi::{c_char, c_int};
use core::hint::black_box;

use mbs_runtime::Complex64;

/// The checks, in the order of their numbers, from 1.
const CHECKS: [fn() -> Option<()>; 23] = [
    runs::pendulum_keeps_its_energy,
    runs::spinning_top_keeps_its_energy,
    runs::mirrored_follows_the_road,
    runs::tumbling_keeps_its_energy,
    || every_bundle::agree(&models::mirrored::Model::default()),
    || every_bundle::agree(&models::torque_free_top::Model::default()),
    || every_bundle::agree(&models::cart_pole::Model::default()),
    || every_bundle::agree(&models::arm7::Model::default()),
    functions::satisfy_identities::<f64>,
    functions::satisfy_identities::<f32>,
    functions::satisfy_identities::<Complex64>,
    functions::answer_any_question,
    functions::survive_nan,
    constrained::five_bar_by_ali3p,
    constrained::five_bar_by_index1,
    || robotics::agree(&models::torque_free_top::Model::default()),
    || robotics::agree(&models::cart_pole::Model::default()),
    || every_bundle::agree(&models::arm7_rolled::Model::default()),
    || robotics::agree(&models::arm7_rolled::Model::default()),
    face::the_cart_follows_its_push,
    face::the_cart_swings_up,
    face::the_top_can_be_set_back,
    face::the_five_bar_knows_its_gradient,
];

/// Entered by the C runtime.
// The program must start somewhere, and without std the only ways are this symbol, which the C runtime calls, or one's
// own `_start`, which would need assembly as well. The attribute is all that is unsafe: the name must be unique in the
// program, and the linker refuses it if it is not.
#[allow(unsafe_code, reason = "a program without std has no other way to begin")]
#[unsafe(no_mangle)]
extern "C" fn main(arguments: c_int, _: *const *const c_char) -> c_int {
    if let Some(failed) = (1..).zip(CHECKS).find(|(_, check)| check().is_none()) {
        return failed.0;
    }
    if cfg!(feature = "panics") {
        // Not known to the compiler to be below 4.
        return [0, 0, 0, 0][black_box(arguments as usize)];
    }
    0
}

/// Never reached, and therefore not in the program: the test looks for this text in it.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        black_box("mbs-freestanding: the panic handler is reachable");
    }
}
