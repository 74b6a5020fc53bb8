//! The bundles of a model, each described once.
//!
//! A bundle is one function of a generated module, and a method of a trait of `mbs-runtime`. [`bundles!`] is the table: for each
//! bundle its documentation, its trait, what it takes and reads, what it writes with which shape and in which sections, which
//! pivots tell whether it succeeded, when it exists, and what it costs. From the table follow
//!
//! | what | where |
//! |---|---|
//! | names, families, entries as constants | [`BundleKind`], [`Entry`] |
//! | specifications, estimates, sizes | `mbs-codegen/src/program/` |
//! | trait implementations of generated modules | `mbs-codegen/src/emission/glue.rs` |
//! | trait implementations of interpreted models | `mbs-engine/src/bundles.rs`, by [`for_each_trait!`] |
//! | lists cut into their sections | `mbs-runtime/src/sensitivity/values.rs`, by [`for_each_list!`] |
//! | the systems of the runtime's tests | `mbs-runtime/tests/systems/erased.rs`, by [`for_each_trait!`] |
//! | `docs/bundles.md` | `tests/page.rs` |
//!
//! No dependencies, no heap, no code: generator and runtime know each other by this crate alone.
#![no_std]
#![forbid(unsafe_code)]

mod entry;
mod event;
mod group;
mod kind;
mod size;
mod table;

pub use entry::{
    Argument, Entry, Exists, Family, Form, Measure, Pivots, ResultEntry, Section, Sections, Shape, Written,
};
pub use event::{Direction, EventEntry, EventTable, ImpactLaw};
pub use group::Group;
pub use kind::BundleKind;
pub use size::Size;
