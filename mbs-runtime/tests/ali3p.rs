//! The augmented Lagrangian formulation of index 3 with projections.

mod systems;

use mbs_runtime::inputs::NoInputs;
use mbs_runtime::{Ali3p, Constrained, Implicit, Scalar, State, StepStatistics};
use systems::lagrangian::{Lagrangian, Mechanism};
use systems::mechanisms::{Pendulum, pendulum_angle, pendulum_motion};
use systems::order;

const PENDULUM: Pendulum<1> = Pendulum { mass: 2.0, length: 1.3 };
const START: [f64; 2] = [1.1, -0.7];

fn state_of<M: Constrained>(system: &M) -> Vec<M::S> {
    let dims = system.dims();
    let mut state = vec![M::S::ZERO; State::<M::S>::len(&dims)];
    State::of(&dims, &mut state).unwrap().reset(M::S::ZERO);
    state
}

fn start_pendulum() -> Vec<f64> {
    let system = Lagrangian::<_, f64>::new(PENDULUM);
    let mut state = state_of(&system);
    let exact = pendulum_motion(&PENDULUM, START);
    let view = State::of(&system.dims_of(), &mut state).unwrap();
    view.z.copy_from_slice(&exact[0..2]);
    view.zd.copy_from_slice(&exact[2..4]);
    view.zdd.copy_from_slice(&exact[4..6]);
    view.a.copy_from_slice(&exact[4..6]);
    view.lambda[0] = exact[6];
    view.scale[0] = PENDULUM.length * PENDULUM.length / PENDULUM.mass;
    state
}

trait DimsOf {
    fn dims_of(&self) -> mbs_runtime::Dims;
}
impl<T: Mechanism, S: Scalar> DimsOf for Lagrangian<T, S> {
    fn dims_of(&self) -> mbs_runtime::Dims {
        Self::DIMS
    }
}

/// Errors of z, zd, zdd, λ at time 1.
fn pendulum_errors(settings: &Ali3p, steps: usize) -> ([f64; 4], usize, StepStatistics) {
    let system = Lagrangian::<_, f64>::new(PENDULUM);
    let dims = system.dims_of();
    let mut state = start_pendulum();
    let mut scratch = vec![0.0; Ali3p::scratch_len(&dims)];
    let h = 1.0 / steps as f64;
    let mut iterations = 0;
    let mut last = StepStatistics::default();
    for _ in 0..steps {
        last = settings.step(&system, &mut NoInputs, &mut state, h, &mut scratch).unwrap();
        iterations = iterations.max(last.iterations);
    }
    let exact = pendulum_motion(&PENDULUM, pendulum_angle(PENDULUM.length, START, 1.0));
    let view = State::of(&dims, &mut state).unwrap();
    let error = |found: &[f64], exact: &[f64]| systems::distance(found, exact);
    (
        [
            error(view.z, &exact[0..2]),
            error(view.zd, &exact[2..4]),
            error(view.zdd, &exact[4..6]),
            error(view.lambda, &exact[6..7]),
        ],
        iterations,
        last,
    )
}

#[test]
fn pendulum_has_order_2() {
    let alpha = |spectral_radius| Implicit::GeneralizedAlpha { spectral_radius };
    for integrator in [
        Implicit::TRAPEZOIDAL,
        Implicit::Newmark { beta: 0.3, gamma: 0.5 },
        alpha(1.0),
        alpha(0.8),
        alpha(0.5),
        alpha(0.0),
    ] {
        let settings = Ali3p { integrator, ..Ali3p::DEFAULT };
        for steps in [100, 1000, 10_000] {
            let (coarse, _, _) = pendulum_errors(&settings, steps);
            let (fine, iterations, _) = pendulum_errors(&settings, 2 * steps);
            for (coarse, fine) in coarse.iter().zip(fine) {
                // The error's next term is of relative size h, more so with strong damping.
                let measured = order(*coarse, fine);
                let allowed = 20.0 / steps as f64;
                assert!((measured - 2.0).abs() < allowed, "{integrator:?} {steps}: {measured}");
            }
            assert!(iterations <= 3);
        }
    }
}
