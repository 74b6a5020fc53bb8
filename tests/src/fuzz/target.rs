//! The way of one input: through the whole generator and, if it is accepted, through the interpreter.
//!
//! What must hold: a refusal has a reason and prints; an accepted model gives text that is Rust, the same every time,
//! with nothing of the file's free texts in it but literals and comments; whatever runs ends in an error value or
//! in a finite state.

use super::input::Input;
use super::{CANARY, lexical};
use mbs_codegen::{Generated, generate};
use mbs_engine::Interpreted;
use mbs_runtime::{
    AccelerationDerivatives, Adaptive, At, Centroid, Centroidal, CoriolisTerms, Energy, EvalError, Fixed,
    ForwardDynamics, ForwardDynamicsDerivatives, ForwardDynamicsExternal, ForwardDynamicsRecursive,
    GravityTerms, InertialParameters, Integrator, InverseDynamics, InverseDynamicsExternal,
    InverseDynamicsParameters, MarkerJacobianRates, MarkerJacobians, Markers, MassMatrix,
    MassMatrixCoordinates, MassMatrixInverseAction, Objectives, Output, Outputs, Regressor, Rk4, Span,
    System,
};
use std::ops::ControlFlow;

/// How far an input came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Whether the generator accepted it.
    pub accepted: bool,
    /// Runs that ended well.
    pub ran: usize,
    /// Runs that ended in an error value.
    pub failed: usize,
}

/// Steps of each run.
const STEPS: usize = 3;

/// Takes an input the whole way; an error says which promise it breaks.
pub fn whole_way(input: &Input) -> Result<Outcome, String> {
    let generated = match generate(&input.file, &input.text, &input.request) {
        Ok(generated) => generated,
        Err(diagnostics) => {
            if !diagnostics.has_errors() {
                return Err("refused without a reason".into());
            }
            let printed = diagnostics.render(&input.file, &input.text);
            if printed.len() > 1 << 20 {
                return Err(format!("the refusal has {} bytes", printed.len()));
            }
            return Ok(Outcome::default());
        }
    };
    check_text(input, &generated)?;
    if input.twice {
        let again = generate(&input.file, &input.text, &input.request).map(|g| g.code);
        if again.as_ref().ok() != Some(&generated.code) {
            return Err("generated twice, the text differs".into());
        }
    }
    let mut outcome = Outcome { accepted: true, ..Outcome::default() };
    run(generated, input.seed, &mut outcome)?;
    Ok(outcome)
}

fn check_text(input: &Input, generated: &Generated) -> Result<(), String> {
    let code = &generated.code;
    lexical::check(code, CANARY)?;
    // Large modules take seconds to parse and have nothing that small ones have not.
    if input.parse && code.len() < 1 << 20 {
        syn::parse_file(code).map_err(|e| format!("the code does not parse: {e}"))?;
    }
    let _ = generated.warnings.render(&input.file, &input.text);
    Ok(())
}

/// Runs the model as it is, then with parameters at their edges.
fn run(generated: Generated, seed: u64, outcome: &mut Outcome) -> Result<(), String> {
    let mut model: Interpreted = Interpreted::new(generated.program);
    evaluate(&model)?;
    simulate(&model, outcome)?;
    let names: Vec<String> = model.program().parameter_names();
    for (i, name) in names.iter().enumerate().take(2) {
        let value = [0.0, -1.0, 1e300, 1e-300, -1e160][(seed as usize + i) % 5];
        // A value beyond the bounds is refused, and that is right.
        if model.set_parameter(name, value).is_ok() {
            simulate(&model, outcome)?;
        }
    }
    Ok(())
}

/// Every bundle once: a wrong length or an absent bundle that was asked for is a mistake of ours.
fn evaluate(model: &Interpreted) -> Result<(), String> {
    let d = model.dims();
    let y = model.start_state();
    let (z, v) = y.split_at(d.nq);
    let u = vec![0.5; d.nu];
    let at = At { t: model.program().simulation.begin, z, v, x: &[], u: &u };
    let mut w = vec![f64::NAN; d.workspace];
    let out = |n: usize| vec![0.0; n];
    let (mut zd, mut vd) = (out(d.nq), out(d.nv));
    let (mut p, mut pd, mut pdd) = (out(3 * d.n_markers), out(3 * d.n_markers), out(3 * d.n_markers));
    let results = [
        model.forward_dynamics_recursive(at, &mut w, &mut zd, &mut vd, &mut []),
        model.forward_dynamics(at, &mut w, &mut zd, &mut vd, &mut []),
        model.mass_matrix(at, &mut w, &mut out(d.nv * d.nv)),
        model.mass_matrix_coordinates(at, &mut w, &mut out(d.nq * d.nq)),
        model.inverse_dynamics(at, &vd, &mut w, &mut out(d.nv)),
        model.energy(at, &mut w, &mut [0.0; 3]),
        model.markers(at, &vd, &mut w, &mut p, &mut pd, &mut pdd),
        model.marker_jacobians(at, &mut w, &mut out(3 * d.n_markers * d.nv)),
        model.outputs(at, &vd, &mut w, &mut out(d.n_outputs)),
        model.objectives(
            at,
            &vd,
            &vec![0.5; d.joint_rows()],
            &mut w,
            &mut out(d.n_objectives),
            &mut out(d.n_objectives),
        ),
    ];
    for result in results.into_iter().chain(robotics(model, at, &vd)) {
        match result {
            Err(EvalError::Length { .. }) => return Err(format!("{result:?}")),
            Err(EvalError::Absent { bundle }) if model.program().bundle(bundle).is_some() => {
                return Err(format!("`{bundle}` is absent though it is there"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// What identification, control and optimisation ask for.
fn robotics(model: &Interpreted, at: At<'_, f64>, vd: &[f64]) -> [Result<(), EvalError>; 11] {
    let d = model.dims();
    let mut w = vec![f64::NAN; d.workspace];
    let out = |n: usize| vec![0.0; n];
    let (tau, wrenches, square) = (out(d.nv), out(6 * d.n_bodies), d.nv * d.nv);
    let mut whole = [3, 3, 3 * d.nv, 6, 6 * d.nv, 6].map(out);
    let [com, com_velocity, com_jacobian, momentum, momentum_matrix, momentum_bias] = &mut whole;
    let centroid = Centroid { com, com_velocity, com_jacobian, momentum, momentum_matrix, momentum_bias };
    let mut solved = [d.nv, square, square, square, d.nv * d.sensitivity.parameters].map(out);
    let [vd_here, vd_z, vd_v, vd_tau, vd_rho] = &mut solved;
    let derivatives = AccelerationDerivatives { vd: vd_here, vd_z, vd_v, vd_tau, vd_rho };
    let markers = 3 * d.n_markers;
    let (places, zd) = (model.inverse_dynamics_parameter_places().len(), &mut out(d.nq));
    [
        model.inertial_parameters(&mut w, &mut out(10 * d.n_bodies)),
        model.regressor(at, vd, &mut w, &mut out(10 * model.regressor_places().len())),
        model.gravity_terms(at, &mut w, &mut out(d.nv)),
        model.coriolis_terms(at, &mut w, &mut out(d.nv)),
        model.centroidal(at, &mut w, centroid),
        model.marker_jacobian_rates(at, &mut w, &mut out(markers * d.nv), &mut out(markers)),
        model.inverse_dynamics_external(at, vd, &wrenches, &mut w, &mut out(d.nv)),
        model.forward_dynamics_external(at, &tau, &wrenches, &mut w, zd, &mut out(d.nv), &mut []),
        model.mass_matrix_inverse_action(at, &tau, &mut w, &mut out(d.nv)),
        model.forward_dynamics_derivatives(at, &tau, &mut w, derivatives),
        model.inverse_dynamics_parameters(at, vd, &mut w, &mut out(places)),
    ]
}

/// A few steps with either kind of integrator, as the file asks for them.
fn simulate(model: &Interpreted, outcome: &mut Outcome) -> Result<(), String> {
    let simulation = &model.program().simulation;
    let fixed = Fixed { method: Rk4, h: simulation.step };
    let adaptive = Adaptive {
        h_first: Some(simulation.step),
        max_steps: 2 * STEPS,
        ..Adaptive::new(simulation.relative_tolerance, simulation.absolute_tolerance)
    };
    let output = simulation.output_step.map_or(Output::Steps, Output::Every);
    let span = Span { start: simulation.begin, end: simulation.end, output };
    run_with(&fixed, model, Span { output: Output::Steps, ..span }, outcome)?;
    run_with(&adaptive, model, span, outcome)
}

fn run_with(
    method: &impl Integrator,
    model: &Interpreted,
    span: Span<f64>,
    outcome: &mut Outcome,
) -> Result<(), String> {
    let mut y = model.start_state();
    let mut scratch = vec![0.0; method.scratch_len(&model.dims())];
    let mut seen = 0;
    let result = method.run(model, &mut model.input_signals(), &mut y, &span, &mut scratch, |_| {
        seen += 1;
        if seen > STEPS { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    match result {
        Ok(_) => {
            outcome.ran += 1;
            match y.iter().position(|y| !y.is_finite()) {
                Some(i) => Err(format!("a run ended well with y[{i}] = {}", y[i])),
                None => Ok(()),
            }
        }
        Err(error) => {
            outcome.failed += 1;
            // It must print, too.
            let _ = error.describe(model).to_string();
            Ok(())
        }
    }
}
