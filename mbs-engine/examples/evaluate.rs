//! Evaluates a model at states from outside: mass matrix, inverse dynamics and its derivatives, in joint form.
//!
//! `cargo run --release -p mbs-engine --example evaluate -- MODEL.yaml < STATES`
//!
//! Enters: one state a line on standard input, the numbers z, v, vd one after another. Leaves: one line of JSON that names
//! coordinates and velocities, then one for each state with `mass_matrix`, `tau`, `tau_z` (along the tangent) and `tau_v`,
//! matrices by columns. Other programs are compared with it.

use mbs_codegen::program::{BundleKind, Options, Program};
use mbs_engine::Interpreted;
use mbs_runtime::{At, InverseDynamics, InverseDynamicsDerivatives, MassMatrix, System};
use std::error::Error;
use std::io::{BufRead, Write};

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("name a model")?;
    let text = std::fs::read_to_string(&file)?;
    let (model, _) = mbs_codegen::read(&file, &text).map_err(|d| d.render(&file, &text))?;
    let bundles =
        vec![BundleKind::MassMatrix, BundleKind::InverseDynamics, BundleKind::InverseDynamicsDerivatives];
    let program = Program::new(&model, None, &Options { bundles, ..Options::default() })?;
    let system: Interpreted = Interpreted::new(program);
    let (names, d) = (system.program(), system.dims());

    let mut out = std::io::stdout().lock();
    // Names are letters, digits and dots: their debug form is JSON. So is that of finite numbers.
    writeln!(out, "{{\"coordinates\": {:?}, \"velocities\": {:?}}}", names.coordinates, names.velocities)?;
    let mut w = vec![0.0; d.workspace];
    let u = vec![0.0; d.nu];
    let [mut m, mut tau_z, mut tau_v, mut m_again] = [(); 4].map(|()| vec![0.0; d.nv * d.nv]);
    let mut tau = vec![0.0; d.nv];
    for line in std::io::stdin().lock().lines() {
        let state: Vec<f64> = line?
            .split_ascii_whitespace()
            .map(str::parse)
            .collect::<Result<_, std::num::ParseFloatError>>()?;
        if state.len() != d.nq + 2 * d.nv {
            return Err(format!("a state has {} numbers, not {}", d.nq + 2 * d.nv, state.len()).into());
        }
        let (z, rest) = state.split_at(d.nq);
        let (v, vd) = rest.split_at(d.nv);
        let at = At { t: 0.0, z, v, x: &[], u: &u };
        system.mass_matrix(at, &mut w, &mut m).map_err(|e| e.to_string())?;
        system.inverse_dynamics(at, vd, &mut w, &mut tau).map_err(|e| e.to_string())?;
        system
            .inverse_dynamics_derivatives(at, vd, &mut w, &mut tau_z, &mut tau_v, &mut m_again)
            .map_err(|e| e.to_string())?;
        writeln!(
            out,
            "{{\"mass_matrix\": {m:?}, \"tau\": {tau:?}, \"tau_z\": {tau_z:?}, \"tau_v\": {tau_v:?}}}"
        )?;
    }
    Ok(())
}
