//! What commands have in common: files, failures, interrupts and progress; models as they are read; runs as they are asked for.

pub(crate) mod failure;
pub(crate) mod files;

pub(crate) mod choices;
pub(crate) mod interrupt;
pub(crate) mod journal;
pub(crate) mod model;
pub(crate) mod progress;
pub(crate) mod saved_case;

pub(crate) mod differentiated;
pub(crate) mod repeated;
pub(crate) mod results;
pub(crate) mod rows;
pub(crate) mod settings;

pub(crate) mod execution;
