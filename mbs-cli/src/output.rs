//! How results look: numbers, tables, curves and pictures; a run as text, as JSON, as a page and as a file of results.

pub(crate) mod csv;
pub(crate) mod number;
#[cfg(feature = "parquet")]
pub(crate) mod parquet;

pub(crate) mod picture;
pub(crate) mod plot;
pub(crate) mod sweep_page;
pub(crate) mod table;
pub(crate) mod tree;

pub(crate) mod shown;

pub(crate) mod gradient;
pub(crate) mod text;

pub(crate) mod json;
pub(crate) mod optimum_page;
pub(crate) mod page;
