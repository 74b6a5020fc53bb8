//! Interpreted mechanisms whose motion is known otherwise. One program: the interpreter is compiled for it once.

mod denavit_hartenberg;
mod exact_cases;
mod hard_cases;
mod human43;
mod urdf;
