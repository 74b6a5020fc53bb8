//! A mechanism that passes singular positions.

use crate::systems;
use crate::systems::distance;
use crate::systems::lagrangian::{Lagrangian, Mechanism};
use crate::systems::mechanisms::Windows;
use mbs_runtime::Ali3p;

/// Where all bars lie flat the mechanism could also fold. Rows depend on each other there and nearly so around it: neither
/// multipliers nor accelerations are determined, yet the motion goes through, eight times in ten seconds.
#[test]
fn two_windows_pass_their_singular_positions() {
    let system = Lagrangian::<_, f64>::new(Windows);
    let (z, zd) = Windows::start();
    let energy = |state: &mut [f64]| {
        let view = system.view(state);
        system.mechanism.kinetic(&[], view.z, view.zd) + 9.81 * (view.z[1] + 1.5 * view.z[3] + view.z[5])
    };
    // The first upper joint at 10 s, by the one equation of a parallelogram: (0.3284581115, 0.9445185382).
    let [angle, _] = Windows::angle(10.0);
    let exact = [angle.cos(), angle.sin()];
    assert!(distance(&exact, &[0.3284581115, 0.9445185382]) < 1e-10);
    let errors = |steps: usize| {
        let mut state = system.start(0.0, &z, &zd);
        let at_start = energy(&mut state);
        let (mut worst, mut fallbacks) = (0.0_f64, 0);
        for step in 0..steps {
            let statistics = system.steps(&Ali3p::DEFAULT, &mut state, 10.0 / steps as f64, 1);
            let statistics = statistics.unwrap_or_else(|error| panic!("step {step} of {steps}: {error}"));
            let [phi, phid, _] = system.violations(&mut state);
            assert!(phi < 1e-13 && phid < 1e-12, "{step} {statistics:?} {phi:e} {phid:e}");
            fallbacks += statistics.fallbacks;
            worst = worst.max((energy(&mut state) - at_start).abs());
        }
        let [phi, phid, phidd] = system.violations(&mut state);
        assert!(phi < 1e-14 && phid < 1e-13 && phidd < 1e-12, "{phi:e} {phid:e} {phidd:e}");
        assert!(fallbacks == 0, "{fallbacks}");
        [distance(&system.view(&mut state).z[..2], &exact), worst]
    };
    for steps in [500, 1000, 3000] {
        errors(steps);
    }
    // Ten seconds of a motion that all but stops at its highest point magnify the error; its order shows late.
    let (coarse, fine) = (errors(10_000), errors(20_000));
    assert!(coarse[0] < 1e-4 && coarse[1] < 1e-3, "{coarse:?}");
    for (coarse, fine) in coarse.iter().zip(fine) {
        let measured = systems::order(*coarse, fine);
        assert!((measured - 2.0).abs() < 0.2, "{measured} {coarse} {fine}");
    }
}
