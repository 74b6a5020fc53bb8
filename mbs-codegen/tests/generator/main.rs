//! The generator through its public interface. One program: each would link the generator again.

mod closure;
mod constraints;
mod diagnostics;
mod graph;
mod hostile;
mod loops;
mod mirror;
mod observed;
mod packing;
mod reading;
mod reference;
mod rows;
mod shared_joints;
mod shipped_models;
mod singular_mass;
