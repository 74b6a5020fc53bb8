//! Committed output of the generator for the small models in `models/`: what generated code looks like, and
//! what a change of the generator changes in it. A test fails when a file is stale; `MBS_UPDATE=1` renews
//! them.
#![no_std]

#[cfg(test)]
extern crate std;

include!("pendulum.rs");
include!("double_pendulum.rs");
include!("cart_pole.rs");
include!("spinning_top.rs");
include!("torque_free_top.rs");
include!("mirrored.rs");
include!("five_bar.rs");
include!("five_bar_bouncing.rs");
include!("slider_crank.rs");

/// In single precision.
pub mod single {
    include!("single/pendulum.rs");
    include!("single/cart_pole.rs");
    include!("single/five_bar.rs");
}

#[cfg(test)]
mod single_precision;
