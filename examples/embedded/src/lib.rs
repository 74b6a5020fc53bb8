//! What runs on the microcontroller: `scenario`, the solvers, the boards.
#![no_std]

#[cfg(target_os = "none")]
pub mod board;
pub mod platform;
#[cfg(not(feature = "smallest"))]
pub mod scenario;

/// Committed output of the generator, `generated/`: the same bits on every target (`fma: never`). With the feature `smallest` only what
/// that program needs.
#[allow(missing_docs, reason = "generated code")]
pub mod models {
    #[cfg(not(feature = "smallest"))]
    include!("../../../generated/src/pendulum.rs");
    #[cfg(not(feature = "smallest"))]
    include!("../../../generated/src/cart_pole.rs");
    #[cfg(any(feature = "double", not(feature = "smallest")))]
    include!("../../../generated/src/five_bar.rs");
    #[cfg(not(feature = "smallest"))]
    include!("../../../generated/src/five_bar_bouncing.rs");

    /// In single precision.
    pub mod single {
        #[cfg(not(feature = "smallest"))]
        include!("../../../generated/src/single/pendulum.rs");
        #[cfg(not(feature = "smallest"))]
        include!("../../../generated/src/single/cart_pole.rs");
        #[cfg(not(feature = "double"))]
        include!("../../../generated/src/single/five_bar.rs");
    }
}
