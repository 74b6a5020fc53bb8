//! Derivatives of the state over time as a table.
//!
//! Input: nodes of a differentiated run. Output: a row a result, under [`trajectory_columns`].

use super::Node;
use mbs_codegen::program::Program;

/// Names of the columns; with those of multipliers, or without.
pub fn trajectory_columns(program: &Program, multipliers: bool) -> Vec<String> {
    let mut names = vec![String::from("t")];
    let mut add = |of: String| names.extend(program.sensitivity.iter().map(|by| format!("d({of})/d({by})")));
    program.coordinates.iter().for_each(|name| add(name.clone()));
    program.coordinates.iter().for_each(|name| add(format!("rate({name})")));
    program.coordinates.iter().for_each(|name| add(format!("acceleration({name})")));
    let rows = program.holonomic.iter().chain(&program.nonholonomic);
    rows.filter(|_| multipliers).for_each(|row| add(format!("lambda.{row}")));
    names
}

/// A row of the table in parts, after the time; multipliers of the holonomic and the nonholonomic rows.
pub fn trajectory_row<'a>(program: &Program, node: &Node<'a>) -> [&'a [f64]; 5] {
    let parameters = program.sensitivity.len();
    let lambda = node.lambda_derivatives;
    let (holonomic, rest) = lambda.split_at((program.holonomic.len() * parameters).min(lambda.len()));
    let nonholonomic = rest.get(program.normalised.len() * parameters..).unwrap_or_default();
    [node.z, node.zd, node.zdd, holonomic, nonholonomic]
}
