//! The repository itself: what is committed is fresh and true, and crates and modules keep their order.

mod generated_is_fresh;
mod layering;
mod readme;
