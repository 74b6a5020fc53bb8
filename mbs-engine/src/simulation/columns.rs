//! Results as a table: names and units of the columns of a run. Everything is in SI units and radians.

use super::settings::{Analysis, Settings};
use mbs_codegen::model::Model;
use mbs_codegen::program::Program;

/// A column of a table of results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its unit; empty where it has none, or none is known.
    pub unit: String,
}

impl Column {
    /// A column.
    pub fn new(name: impl Into<String>, unit: impl Into<String>) -> Column {
        Column { name: name.into(), unit: unit.into() }
    }
}

/// The parts of what a joint transmits.
pub const WRENCH: [&str; 6] = ["fx", "fy", "fz", "tx", "ty", "tz"];

/// The columns of a run: time, coordinates, velocities, inputs, outputs; of a motion under forces, energies, multipliers and, where
/// they are asked for, reactions.
pub fn columns(model: &Model, program: &Program, settings: &Settings) -> Vec<Column> {
    let mut columns = vec![Column::new("t", "s")];
    columns.extend(states(model, program));
    columns.extend(program.inputs.iter().map(|input| Column::new(&input.name, &input.unit)));
    columns.extend(program.outputs.iter().map(|(name, unit)| Column::new(name, unit)));
    if settings.analysis == Analysis::Kinematics {
        return columns;
    }
    let energies = [("kinetic", "J"), ("potential", "J"), ("power", "W")];
    columns.extend(energies.map(|(name, unit)| Column::new(format!("energy.{name}"), unit)));
    columns.extend(settings.constrained.then(|| Column::new("energy.drives", "W")));
    // What multiplies an equation has the unit of energy over that of the equation, which may be any.
    let rows = program.holonomic.iter().chain(&program.nonholonomic);
    columns.extend(rows.map(|row| Column::new(format!("lambda.{row}"), "")));
    if settings.reactions {
        let wrench = |joint: &String| {
            WRENCH.map(|part| {
                let unit = if part.starts_with('f') { "N" } else { "N m" };
                Column::new(format!("reaction.{joint}.{part}"), unit)
            })
        };
        columns.extend(program.joints.iter().flat_map(wrench));
    }
    columns
}

/// The unit of a coordinate by the name its kind of joint gives it; Euler parameters have none.
fn of_coordinate(kind: &str) -> &'static str {
    match kind {
        "angle" | "angle1" | "angle2" => "rad",
        "displacement" | "x" | "y" | "z" => "m",
        _ => "",
    }
}

/// The same of a velocity.
fn of_velocity(kind: &str) -> &'static str {
    match kind {
        "displacement_rate" | "x_rate" | "y_rate" | "z_rate" => "m/s",
        _ => "rad/s",
    }
}

/// All coordinates, then all velocities.
fn states(model: &Model, program: &Program) -> Vec<Column> {
    let (mut z, mut v) = (Vec::new(), Vec::new());
    for joint in &model.joints {
        let kinds = joint.coordinates.iter().zip(joint.kind.coordinates());
        z.extend(kinds.map(|(name, kind)| (format!("{}.{name}", joint.name), of_coordinate(kind))));
        let kinds = joint.velocities.iter().zip(joint.kind.velocities());
        v.extend(kinds.map(|(name, kind)| (format!("{}.{name}", joint.name), of_velocity(kind))));
    }
    let unit = |name: &str, known: &[(String, &'static str)], rate: bool| {
        let variable = || model.variables.iter().find(|v| name.starts_with(v.name.as_str()));
        match known.iter().find(|(own, _)| own == name) {
            Some((_, unit)) => (*unit).into(),
            None => match variable().map(|v| v.unit.as_str()) {
                None | Some("") => String::new(),
                Some(unit) if rate => format!("{unit}/s"),
                Some(unit) => unit.into(),
            },
        }
    };
    let coordinates = program.coordinates.iter().map(|name| Column::new(name, unit(name, &z, false)));
    let velocities = program.velocities.iter().map(|name| Column::new(name, unit(name, &v, true)));
    coordinates.chain(velocities).collect()
}
