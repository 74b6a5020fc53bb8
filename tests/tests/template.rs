#![allow(
    dead_code,
    unreachable_pub,
    reason = "the program of a crate that `mbs new` makes, compiled as it is"
)]
//! Runs the model of `models/my_robot.yaml`, for which the macro below writes a solver while this crate is compiled.

mbs_macros::model_solver! { pub mod my_robot = "../mbs-cli/src/commands/template/model.yaml.in"; }
use my_robot::{Error, Parameters, Simulation};

/// Runs the model and gives the angle every second.
fn angles(parameters: Parameters, seconds: u32) -> Result<Vec<f64>, Error> {
    let mut sim = Simulation::new(parameters)?;
    let mut angles = vec![sim.z().hinge];
    for second in 1..=seconds {
        sim.run_to(f64::from(second))?;
        angles.push(sim.z().hinge);
    }
    Ok(angles)
}

fn main() -> Result<(), Error> {
    for (t, angle) in angles(Parameters::default(), 10)?.iter().enumerate() {
        println!("{t:2} s: {angle:+.6} rad");
    }
    let found = my_robot::gradient(&Parameters::default())?;
    println!("swing = {:.6} rad² s, by c {:.6}", found.swing.value, found.swing.by.c);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn friction_takes_the_swing_away() {
        let free = angles(Parameters { c: 0.0, ..Default::default() }, 20).expect("a small step");
        let damped = angles(Parameters::default(), 20).expect("a small step");
        let largest = |angles: &[f64]| angles.iter().fold(0.0_f64, |largest, angle| largest.max(angle.abs()));
        assert!(largest(&free[10..]) > 0.4);
        assert!(largest(&damped[10..]) < 0.35);
    }
}

/// This file is the template.
#[test]
fn the_template_is_what_is_tested_here() {
    let template = include_str!("../../mbs-cli/src/commands/template/main.rs.in");
    let model = "\"../mbs-cli/src/commands/template/model.yaml.in\";";
    let expected = template.replace("\"models/MODULE.yaml\";", model).replace("MODULE", "my_robot");
    assert!(
        include_str!("template.rs").contains(&expected),
        "write the template into tests/tests/template.rs"
    );
}
