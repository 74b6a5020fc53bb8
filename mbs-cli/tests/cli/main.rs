//! The command as a user meets it. One program: each would link what it needs again.

mod c_library;
mod check;
mod closed_loops;
mod command;
mod corners;
mod face;
mod generate;
mod gradient;
mod guide;
mod import;
mod mistakes;
mod optimise;
mod readme;
mod report;
mod simulate;
mod tools;
mod verify;
