//! The README's example; tests compare its text with the README, and what it prints with the command.
include!("readme.rs.in");
