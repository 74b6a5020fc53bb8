//! Derivatives of the state over time as a CSV file.
//!
//! Enters: nodes of a differentiated run. Leaves: a row a result, see [`columns`].

use crate::csv::Csv;
use mbs_codegen::program::Program;
use mbs_engine::gradient::Node;
use std::io;

/// Names of the columns; with those of multipliers, or without.
pub(crate) fn columns(program: &Program, multipliers: bool) -> Vec<String> {
    let mut names = vec![String::from("t")];
    let mut add = |of: String| names.extend(program.sensitivity.iter().map(|by| format!("d({of})/d({by})")));
    program.coordinates.iter().for_each(|name| add(name.clone()));
    program.coordinates.iter().for_each(|name| add(format!("rate({name})")));
    program.coordinates.iter().for_each(|name| add(format!("acceleration({name})")));
    let rows = program.holonomic.iter().chain(&program.nonholonomic);
    rows.filter(|_| multipliers).for_each(|row| add(format!("lambda.{row}")));
    names
}

/// Writes a node; of the multipliers, those of the holonomic and the nonholonomic rows.
pub(crate) fn write(csv: &mut Csv, program: &Program, node: &Node<'_>) -> io::Result<()> {
    let parameters = program.sensitivity.len();
    let lambda = node.lambda_derivatives;
    let (holonomic, rest) = lambda.split_at((program.holonomic.len() * parameters).min(lambda.len()));
    let nonholonomic = rest.get(program.normalised.len() * parameters..).unwrap_or_default();
    csv.row(node.motion.t, &[node.z, node.zd, node.zdd, holonomic, nonholonomic])
}
