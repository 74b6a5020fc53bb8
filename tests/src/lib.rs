//! What the cross-crate tests share.

pub mod fuzz;
pub mod bicycle;
pub mod four_bar;
pub mod hostile_names;
pub mod instant;
pub mod random_model;
pub mod random_closed;
pub mod closed;
pub mod gradient;
pub mod broken;
pub mod differentiated;
