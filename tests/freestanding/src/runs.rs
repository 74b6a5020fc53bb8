//! Runs with fixed and with adaptive steps: energy is kept, and the end is where it was before.
//!
//! The stored values were computed by the same methods with the elementary functions of std; those of libm differ in
//! the last bits, which `CLOSE` allows for.

use core::hint::black_box;
use core::ops::ControlFlow;

use mbs_generated::{pendulum, spinning_top};
use mbs_runtime::inputs::NoInputs;
use mbs_runtime::system::Recursive;
use mbs_runtime::{
    Adaptive, At, DormandPrince, Energy, Fixed, ForwardDynamics, Integrator, Output, Rk4, Span, System,
};

use crate::models::{mirrored, torque_free_top};

/// Relative to one, the size of what is compared: rounding of a thousand steps.
const CLOSE: f64 = 1e-11;

fn near(a: f64, b: f64, tolerance: f64) -> Option<()> {
    ((a - b).abs() <= tolerance).then_some(())
}

/// Runs over `seconds`; the largest change of kinetic plus potential energy relative to the largest kinetic one.
fn run<M>(
    model: &M,
    system: &impl ForwardDynamics<S = f64>,
    integrator: &impl Integrator,
    y: &mut [f64],
    seconds: f64,
    scratch: &mut [f64],
    w: &mut [f64],
) -> Option<f64>
where
    M: System<S = f64> + Energy,
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
    let statistics = integrator.run(system, &mut NoInputs, y, &span, scratch, observe).ok()?;
    (!statistics.stopped).then_some(change / kinetic)
}

/// RK4: the error of the energy is of order 5 in the step.
pub(crate) fn pendulum_keeps_its_energy() -> Option<()> {
    let model = pendulum::Model::default();
    let mut y = black_box(model.start_state());
    let mut scratch = [0.0; Rk4::scratch_len(&pendulum::DIMS)];
    let rk4 = Fixed { method: Rk4, h: 1e-3 };
    let change = run(&model, &model, &rk4, &mut y, 1.0, &mut scratch, &mut [0.0; pendulum::WORKSPACE])?;
    near(change, 0.0, 1e-12)?;
    y.iter().zip(PENDULUM).try_for_each(|(&y, end)| near(y, end, CLOSE))
}

const PENDULUM: [f64; pendulum::NY] = [-0.954629047809861, 1.5142444887082087];

/// Adaptive steps with Euler parameters.
pub(crate) fn spinning_top_keeps_its_energy() -> Option<()> {
    let model = spinning_top::Model::default();
    let mut y = black_box(model.start_state());
    let mut scratch = [0.0; Adaptive::scratch_len(&spinning_top::DIMS)];
    let adaptive = Adaptive::new(1e-10, 1e-10);
    let change =
        run(&model, &model, &adaptive, &mut y, 0.5, &mut scratch, &mut [0.0; spinning_top::WORKSPACE])?;
    near(change, 0.0, 1e-9)?;
    y.iter().zip(TOP).try_for_each(|(&y, end)| near(y, end, 1e-8))
}

const TOP: [f64; spinning_top::NY] = [
    0.7273253008573063,
    -0.37441335228825817,
    0.044893750457011654,
    0.5734083183308394,
    -0.8978755031727597,
    -6.043138802332301,
    150.0,
];

/// The recursive forward dynamics, by Dormand and Prince with fixed steps.
pub(crate) fn tumbling_keeps_its_energy() -> Option<()> {
    let model = torque_free_top::Model::default();
    let mut y = black_box(model.start_state());
    let mut scratch = [0.0; DormandPrince::scratch_len(&torque_free_top::DIMS)];
    let fixed = Fixed { method: DormandPrince, h: 1e-3 };
    let mut w = [0.0; torque_free_top::WORKSPACE];
    let change = run(&model, &Recursive(&model), &fixed, &mut y, 1.0, &mut scratch, &mut w)?;
    near(change, 0.0, 1e-12)
}

/// Splines whose coefficients are solved for at run time; the step that a parameter changes needs them anew.
pub(crate) fn mirrored_follows_the_road() -> Option<()> {
    let parameters = black_box(mirrored::Parameters::default());
    let model = mirrored::Model::new(parameters);
    let mut y = black_box(model.start_state());
    let mut scratch = [0.0; Rk4::scratch_len(&mirrored::DIMS)];
    let rk4 = Fixed { method: Rk4, h: 1e-3 };
    run(&model, &model, &rk4, &mut y, 1.0, &mut scratch, &mut [0.0; mirrored::WORKSPACE])?;
    y.iter().zip(MIRRORED).try_for_each(|(&y, end)| near(y, end, CLOSE))
}

const MIRRORED: [f64; mirrored::NY] = [
    0.00010602340877562636,
    0.49266681372289195,
    -0.005442642658879335,
    -0.033518734150977274,
    -0.03298127737198069,
    0.002568056300596301,
    0.046341771286544875,
    -0.1386383348963497,
    -0.10888019936866025,
    -0.1548167872806301,
];
