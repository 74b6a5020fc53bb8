//! Runs with fixed and with adaptive steps: energy is kept, and the end is where it was before.
//!
//! The stored values were computed by the same methods with the elementary functions of std; those of libm differ in
//! the last bits, which `CLOSE` allows for.

use core::hint::black_box;
use core::ops::ControlFlow;

use mbs_generated::{pendulum, spinning_top};
use mbs_runtime::inputs::NoInputs;
use mbs_runtime::{Adaptive, At, Energy, Fixed, ForwardDynamics, Integrator, Output, Rk4, Span, System};

use crate::models::mirrored;

/// Relative to one, the size of what is compared: rounding of a thousand steps.
const CLOSE: f64 = 1e-11;

fn near(a: f64, b: f64, tolerance: f64) -> Option<()> {
    ((a - b).abs() <= tolerance).then_some(())
}

/// Runs over `seconds`; the largest change of kinetic plus potential energy relative to the largest kinetic one.
fn run<M>(
    model: &M,
    integrator: &impl Integrator,
    y: &mut [f64],
    seconds: f64,
    scratch: &mut [f64],
    w: &mut [f64],
) -> Option<f64>
where
    M: ForwardDynamics<S = f64> + Energy + System<S = f64>,
{
    let span = Span { start: 0.0, end: black_box(seconds), output: Output::Steps };
    let (mut first, mut change, mut kinetic) = (None, 0.0_f64, 0.0_f64);
    let observe = |at: At<'_, f64>| {
        let mut energy = [0.0; 3];
        if model.energy(at, w, &mut energy).is_err() {
            return ControlFlow::Break(());
        }
        let total = energy[0] + energy[1];
        kinetic = kinetic.max(energy[0]);
        change = change.max((total - *first.get_or_insert(total)).abs());
        ControlFlow::Continue(())
    };
    let statistics = integrator.simulate(model, &mut NoInputs, y, &span, scratch, observe).ok()?;
    (!statistics.stopped).then_some(change / kinetic)
}

/// RK4: the error of the energy is of order 5 in the step.
pub(crate) fn pendulum_keeps_its_energy() -> Option<()> {
    let model = pendulum::Model::default();
    let mut y = black_box(model.start_state());
    let mut scratch = [0.0; Rk4::scratch_len(&pendulum::DIMS)];
    let rk4 = Fixed { method: Rk4, h: 1e-3 };
    let change = run(&model, &rk4, &mut y, 1.0, &mut scratch, &mut [0.0; pendulum::WORKSPACE])?;
    near(change, 0.0, 1e-12)?;
    near(y[0], PENDULUM[0], CLOSE)?;
    near(y[1], PENDULUM[1], CLOSE)
}

const PENDULUM: [f64; 2] = [0.0, 0.0];

/// Adaptive steps with Euler parameters.
pub(crate) fn spinning_top_keeps_its_energy() -> Option<()> {
    let model = spinning_top::Model::default();
    let mut y = black_box(model.start_state());
    let mut scratch = [0.0; Adaptive::scratch_len(&spinning_top::DIMS)];
    let adaptive = Adaptive::new(1e-10, 1e-10);
    let change = run(&model, &adaptive, &mut y, 0.5, &mut scratch, &mut [0.0; spinning_top::WORKSPACE])?;
    near(change, 0.0, 1e-9)?;
    y.iter().zip(TOP).try_for_each(|(&y, end)| near(y, end, 1e-8))
}

const TOP: [f64; spinning_top::NY] = [0.0; spinning_top::NY];

/// Splines whose coefficients are solved for at run time; the step that a parameter changes needs them anew.
pub(crate) fn mirrored_follows_the_road() -> Option<()> {
    let parameters = black_box(mirrored::Parameters::default());
    let model = mirrored::Model::new(parameters);
    let mut y = black_box(model.start_state());
    let mut scratch = [0.0; Rk4::scratch_len(&mirrored::DIMS)];
    let rk4 = Fixed { method: Rk4, h: 1e-3 };
    run(&model, &rk4, &mut y, 1.0, &mut scratch, &mut [0.0; mirrored::WORKSPACE])?;
    y.iter().zip(MIRRORED).try_for_each(|(&y, end)| near(y, end, CLOSE))
}

const MIRRORED: [f64; mirrored::NY] = [0.0; mirrored::NY];
