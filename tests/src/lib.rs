//! What the cross-crate tests share.

pub mod fuzz;
pub mod random_model;
