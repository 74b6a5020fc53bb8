//! Evaluates a model at states from outside: mass matrix, inverse and forward dynamics with their derivatives, regressor, centroidal
//! momentum, rates of the Jacobians of the bodies' origins, in joint form.
//!
//! `cargo run --release -p mbs-engine --example evaluate -- MODEL.yaml < STATES`
//!
//! Input: one state a line on standard input, the numbers z, v, vd one after another. Output: one line of JSON that names
//! coordinates, velocities, the joint that carries each body and the regressor's blocks (velocity, body), then one for each state,
//! matrices by columns, derivatives by position along the tangent. Forward dynamics is that under the forces `tau` which inverse dynamics
//! found. Other programs are compared with it.

use mbs_codegen::model::{BodyId, Scalar, Vector};
use mbs_codegen::program::{BundleKind, Options, Program};
use mbs_codegen::topology;
use mbs_engine::Interpreted;
use mbs_runtime::{
    AccelerationDerivatives, At, Centroid, Centroidal, ForwardDynamicsDerivatives, InverseDynamics,
    InverseDynamicsDerivatives, MarkerJacobianRates, MassMatrix, Regressor, System,
};
use std::error::Error;
use std::io::{BufRead, Write};

/// A point at the origin of each body.
const ORIGIN: &str = "evaluated_origin";

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("name a model")?;
    let text = std::fs::read_to_string(&file)?;
    let (mut model, _) = mbs_codegen::read(&file, &text).map_err(|d| d.render(&file, &text))?;
    for body in model.bodies.iter_mut().skip(BodyId::GROUND.index() + 1) {
        let zero = [(); 3].map(|()| Scalar::Number(0.0));
        body.points.push((ORIGIN.into(), Vector::Components(Box::new(zero))));
    }
    let bundles = vec![
        BundleKind::MassMatrix,
        BundleKind::InverseDynamics,
        BundleKind::InverseDynamicsDerivatives,
        BundleKind::ForwardDynamicsDerivatives,
        BundleKind::Centroidal,
        BundleKind::Regressor,
        BundleKind::MarkerJacobianRates,
    ];
    let program = Program::new(&model, None, &Options { bundles, ..Options::default() })?;
    let system: Interpreted = Interpreted::new(program);
    let (names, d) = (system.program(), system.dims());
    let tree = topology::span(&model);
    let carrier = |body: usize| {
        let link = tree.link_of_body.get(BodyId::GROUND.index() + 1 + body).copied().flatten();
        link.map_or("", |link| model.joints[tree.links[link].joint.index()].name.as_str())
    };
    let carriers: Vec<&str> = (0..d.n_bodies).map(carrier).collect();

    let mut out = std::io::stdout().lock();
    // Names are letters, digits and dots: their debug form is JSON. So is that of finite numbers.
    writeln!(
        out,
        "{{\"coordinates\": {:?}, \"velocities\": {:?}, \"carriers\": {carriers:?}, \"blocks\": {:?}}}",
        names.coordinates,
        names.velocities,
        system.regressor_places().iter().map(|&(v, body)| [v, body]).collect::<Vec<_>>()
    )?;
    let mut w = vec![0.0; d.workspace];
    let u = vec![0.0; d.nu];
    let [mut m, mut tau_z, mut tau_v, mut m_again] = [(); 4].map(|()| vec![0.0; d.nv * d.nv]);
    let mut tau = vec![0.0; d.nv];
    let rows = names.markers.iter().enumerate().filter(|(_, name)| name.ends_with(ORIGIN));
    let rows: Vec<usize> = rows.flat_map(|(marker, _)| 3 * marker..3 * marker + 3).collect();
    let (mut rates, mut bias) = (vec![0.0; 3 * d.n_markers * d.nv], vec![0.0; 3 * d.n_markers]);
    let mut regressor = vec![0.0; 10 * system.regressor_places().len()];
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
        let square = d.nv * d.nv;
        let mut solved =
            [d.nv, square, square, square, d.nv * d.sensitivity.parameters].map(|n| vec![0.0; n]);
        let [vd, vd_z, vd_v, vd_tau, vd_rho] = &mut solved;
        let derivatives = AccelerationDerivatives { vd, vd_z, vd_v, vd_tau, vd_rho };
        system.forward_dynamics_derivatives(at, &tau, &mut w, derivatives).map_err(|e| e.to_string())?;
        let mut whole = [3, 3, 3 * d.nv, 6, 6 * d.nv, 6].map(|n| vec![0.0; n]);
        let [com, com_velocity, com_jacobian, momentum, momentum_matrix, momentum_bias] = &mut whole;
        let centroid = Centroid { com, com_velocity, com_jacobian, momentum, momentum_matrix, momentum_bias };
        system.centroidal(at, &mut w, centroid).map_err(|e| e.to_string())?;
        system.regressor(at, &state[d.nq + d.nv..], &mut w, &mut regressor).map_err(|e| e.to_string())?;
        system.marker_jacobian_rates(at, &mut w, &mut rates, &mut bias).map_err(|e| e.to_string())?;
        let columns = rates.chunks(3 * d.n_markers).flat_map(|column| rows.iter().map(|&row| column[row]));
        let rates: Vec<f64> = columns.collect();
        let parts: [(&str, &[f64]); 15] = [
            ("mass_matrix", &m),
            ("tau", &tau),
            ("tau_z", &tau_z),
            ("tau_v", &tau_v),
            ("vd", &solved[0]),
            ("vd_z", &solved[1]),
            ("vd_v", &solved[2]),
            ("vd_tau", &solved[3]),
            ("com", &whole[0]),
            ("com_jacobian", &whole[2]),
            ("momentum", &whole[3]),
            ("momentum_matrix", &whole[4]),
            ("momentum_bias", &whole[5]),
            ("regressor", &regressor),
            ("marker_jacobian_rates", &rates),
        ];
        let fields: Vec<String> =
            parts.iter().map(|(name, values)| format!("\"{name}\": {values:?}")).collect();
        writeln!(out, "{{{}}}", fields.join(", "))?;
    }
    Ok(())
}
