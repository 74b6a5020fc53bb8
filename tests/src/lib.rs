//! What the cross-crate tests share.

pub mod random_model;
