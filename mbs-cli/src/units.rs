//! Units of what a run gives, by the names of its columns. Everything is in SI units and radians.

use crate::csv::WRENCH;
use crate::settings::{Analysis, Settings};
use mbs_codegen::model::Model;
use mbs_codegen::program::Program;

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

/// Units of all coordinates, then of all velocities.
pub(crate) fn of_states(model: &Model, program: &Program) -> [Vec<String>; 2] {
    let (mut z, mut v) = (Vec::new(), Vec::new());
    for joint in &model.joints {
        let kinds = joint.coordinates.iter().zip(joint.kind.coordinates());
        z.extend(kinds.map(|(name, kind)| (format!("{}.{name}", joint.name), of_coordinate(kind))));
        let kinds = joint.velocities.iter().zip(joint.kind.velocities());
        v.extend(kinds.map(|(name, kind)| (format!("{}.{name}", joint.name), of_velocity(kind))));
    }
    let find = |names: &[String], known: &[(String, &'static str)], rate: bool| -> Vec<String> {
        let variable = |name: &str| model.variables.iter().find(|v| name.starts_with(v.name.as_str()));
        let unit = |name: &String| match known.iter().find(|(own, _)| own == name) {
            Some((_, unit)) => (*unit).into(),
            None => match variable(name).map(|v| v.unit.as_str()) {
                None | Some("") => String::new(),
                Some(unit) if rate => format!("{unit}/s"),
                Some(unit) => unit.into(),
            },
        };
        names.iter().map(unit).collect()
    };
    [find(&program.coordinates, &z, false), find(&program.velocities, &v, true)]
}

/// Units of the columns that `csv::columns` names.
pub(crate) fn of_columns(model: &Model, program: &Program, settings: &Settings) -> Vec<String> {
    let [z, v] = of_states(model, program);
    let mut units = vec![String::from("s")];
    units.extend(z);
    units.extend(v);
    units.extend(program.inputs.iter().map(|input| input.unit.clone()));
    units.extend(program.outputs.iter().map(|(_, unit)| unit.clone()));
    if settings.analysis == Analysis::Kinematics {
        return units;
    }
    units.extend(["J", "J", "W"].map(String::from));
    units.extend(settings.constrained.then(|| "W".into()));
    // What multiplies an equation has the unit of energy over that of the equation, which may be any.
    units.extend(program.holonomic.iter().chain(&program.nonholonomic).map(|_| String::new()));
    if settings.reactions {
        let wrench = WRENCH.map(|part| if part.starts_with('f') { "N" } else { "N m" });
        units.extend(program.joints.iter().flat_map(|_| wrench).map(String::from));
    }
    units
}
