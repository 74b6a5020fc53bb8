//! Integrators, formulations, starts and gradients on systems written by hand. One program: what they run of the runtime is compiled once for
//! each system.

#[path = "../systems/mod.rs"]
mod systems;

mod adaptive;
mod adjoint;
mod ali3p;
mod explicit_gradient;
mod five_bar;
mod fixed;
mod gradient;
mod index1;
mod linearised;
mod singular;
mod start;
