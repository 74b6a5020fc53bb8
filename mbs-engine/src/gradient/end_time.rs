//! Derivatives of objectives by the time at which a run ends.
//!
//! ```text
//! dψ/dt_F = g(t_F) + w_t + w_z zd + w_zd zdd + w_zdd zddd + w_λ λd + w_u ud
//! ```
//!
//! with the integrand g and the terminal term w. zddd and λd are the rates of what the equations of motion say of accelerations and multipliers,
//! along the motion. All of it is one evaluation in complex numbers at t_F + iε. It is the derivative of the motion, not of the
//! discrete solution, whose steps would all change with t_F: it has the order of the method.

use crate::Interpreted;
use crate::dynamics::Dynamics;
use crate::method::Method;
use mbs_codegen::model::Simulation;
use mbs_runtime::sensitivity::JointDynamics;
use mbs_runtime::{
    Assembly, At, Complex64, EvalError, Events, Inputs, JointObjectiveDerivatives, Motion,
    ObjectiveDerivatives, State, StepError, System,
};

const STEP: f64 = 1e-30;

/// Derivatives of the objectives by t_F. `end`: the state at the end, as a gradient leaves it ([`Found::end`](super::Found::end)).
pub fn by_end_time(
    model: &Interpreted,
    method: &Method,
    simulation: &Simulation,
    end: &[f64],
) -> Result<Vec<f64>, StepError> {
    let what = "there is no derivative by the end time of a run in which events set inputs yet";
    if !model.event_table().inputs.is_empty() {
        return Err(StepError::Unsupported { what });
    }
    if model.dims().n_projected > 0 {
        let what = "there is no derivative by the end time of objectives that name multipliers of projections: these belong to steps, not to times";
        return Err(StepError::NotDifferentiable { what });
    }
    let complex = Interpreted::<Complex64>::new(model.program_as_set());
    let t = Complex64::new(simulation.end, STEP);
    let mut u = vec![Complex64::new(0.0, 0.0); model.dims().nu];
    let at_end = Instant { model: &complex, t, u: &mut u };
    if !method.is_runge_kutta() {
        return at_end.in_coordinates(end);
    }
    let mut choice = complex.no_choice();
    let dynamics = &Dynamics::new(&complex, method.damping(), &mut choice);
    at_end.in_joints(dynamics, end).map_err(|error| StepError::Eval { t: simulation.end, h: 0.0, error })
}

/// The end of a run, at t_F + iε.
struct Instant<'a> {
    model: &'a Interpreted<Complex64>,
    t: Complex64,
    u: &'a mut [Complex64],
}

/// x + iε x′
fn moved(x: &[f64], rate: &[f64]) -> Vec<Complex64> {
    x.iter().zip(rate).map(|(&x, &rate)| Complex64::new(x, STEP * rate)).collect()
}

/// The real part of `x`, the imaginary part of `rate`.
fn with_rate(x: &[f64], rate: &[Complex64]) -> Vec<Complex64> {
    x.iter().zip(rate).map(|(&x, rate)| Complex64::new(x, rate.im)).collect()
}

impl Instant<'_> {
    fn in_coordinates(self, end: &[f64]) -> Result<Vec<f64>, StepError> {
        let Instant { model, t, u } = self;
        let (dims, zero) = (model.dims(), Complex64::new(0.0, 0.0));
        let mut end = end.to_vec();
        let real = State::of(&dims, &mut end)?;
        let mut state: Vec<Complex64> = Vec::new();
        {
            let (z, zd) = (moved(real.z, real.zd), moved(real.zd, real.zdd));
            state.resize(State::<Complex64>::len(&dims), zero);
            let view = State::of(&dims, &mut state)?;
            *view.t = t;
            view.z.copy_from_slice(&z);
            view.zd.copy_from_slice(&zd);
            view.active.iter_mut().zip(real.active.iter()).for_each(|(to, &from)| to.re = from);
            view.scale.iter_mut().zip(real.scale.iter()).for_each(|(to, &from)| to.re = from);
        }
        // zdd and λ of the equations of motion along the motion; positions and rates are on the constraints already.
        let mut inputs = model.input_signals();
        let mut scratch = vec![zero; Assembly::scratch_len(&dims)];
        Assembly::DEFAULT.start(model, &mut inputs, &mut state, &mut scratch)?;
        let view = State::of(&dims, &mut state)?;
        let (z, zd) = (moved(real.z, real.zd), moved(real.zd, real.zdd));
        let (zdd, lambda) = (with_rate(real.zdd, view.zdd), with_rate(real.lambda, view.lambda));
        inputs.at(t, u);
        let at = Motion { t, z: &z, zd: &zd, zdd: &zdd, u };
        let mut w = vec![zero; dims.workspace];
        let mut integrands = vec![zero; dims.sensitivity.integrands];
        let mut terminals = vec![zero; dims.sensitivity.terminals];
        let evaluated = model
            .integrand_derivatives(at, &lambda, &mut w, &mut integrands)
            .and_then(|()| model.terminal_derivatives(at, &lambda, &mut w, &mut terminals));
        evaluated.map_err(|error| StepError::Eval { t: t.re, h: 0.0, error })?;
        Ok(sum(dims.n_objectives, &integrands, &terminals))
    }

    fn in_joints<D>(self, dynamics: &D, end: &[f64]) -> Result<Vec<f64>, EvalError>
    where
        D: JointDynamics<S = Complex64, Model = Interpreted<Complex64>>,
    {
        let Instant { model, t, u } = self;
        let (dims, zero) = (model.dims(), Complex64::new(0.0, 0.0));
        let zeros = |n: usize| vec![zero; n];
        let mut inputs = model.input_signals();
        let (mut zd, mut vd) = (zeros(dims.nq), zeros(dims.nv));
        let (mut lambda, mut w) = (zeros(dims.joint_rows()), zeros(dynamics.dims().workspace));
        // Twice: the first time for the rates of z and v alone.
        let mut y: Vec<Complex64> = end.iter().map(|&x| Complex64::new(x, 0.0)).collect();
        for time in [Complex64::new(t.re, 0.0), t] {
            inputs.at(time, u);
            let at = At::of_state(&dims, time, &y, u)?;
            dynamics.accelerate(at, &mut w, &mut zd, &mut vd, &mut lambda)?;
            if time != t {
                let rates = zd.iter().chain(&vd);
                y.iter_mut().zip(rates).for_each(|(y, rate)| y.im = STEP * rate.re);
            }
        }
        let at = At::of_state(&dims, t, &y, u)?;
        let mut integrands = zeros(dims.sensitivity.joint_integrands);
        let mut terminals = zeros(dims.sensitivity.joint_terminals);
        model.joint_integrand_derivatives(at, &vd, &lambda, &mut w, &mut integrands)?;
        model.joint_terminal_derivatives(at, &vd, &lambda, &mut w, &mut terminals)?;
        Ok(sum(dims.n_objectives, &integrands, &terminals))
    }
}

/// g + dw/dt from values of both.
fn sum(objectives: usize, integrands: &[Complex64], terminals: &[Complex64]) -> Vec<f64> {
    integrands.iter().zip(terminals).take(objectives).map(|(g, w)| g.re + w.im / STEP).collect()
}
