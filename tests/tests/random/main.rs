//! Random mechanisms: trees and closed ones, their values and every derivative against independent ones. One program, since
//! each would compile the runtime for the interpreter again.

mod closed;
mod derivatives;
mod gradients;
mod robotics;
mod trees;
mod verify;
