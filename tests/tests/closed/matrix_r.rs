//! Independent coordinates: a crank over full turns, through changes of the choice; and a choice that is named and lost at a dead point.

use mbs_runtime::{EvalError, Fixed, Rk4, Sdirk4, StepError, Trapezoidal};
use mbs_tests::closed::{
    Outcome, distance, model, reference, run_independent, run_independent_implicit, said,
};

/// A four-bar linkage whose crank turns freely round and round.
fn crank(simulation: &str) -> String {
    format!(
        "
mbs: 1
name: crank
gravity: [0, -9.81, 0]
bodies:
  ground: {{points: {{Q: [4, 0, 0]}}}}
  crank: {{mass: 1, com: [0.5, 0, 0], inertia: [0, 0, 20], points: {{pin: [1, 0, 0]}}}}
  coupler: {{mass: 1, com: [2, 0, 0], inertia: [0, 0, 1], points: {{pin: [4, 0, 0]}}}}
  rocker: {{mass: 1, com: [1.5, 0, 0], inertia: [0, 0, 1], points: {{pin: [3, 0, 0]}}}}
joints:
  O: {{type: revolute, parent: ground, child: crank, axis: [0, 0, 1], start: {{value: 0.3, rate: 6, hold: true}}}}
  P: {{type: revolute, parent: crank.pin, child: coupler, axis: [0, 0, 1], start: 0.4}}
  Q: {{type: revolute, parent: ground.Q, child: rocker, axis: [0, 0, 1], start: 1.7}}
  R: {{type: revolute, parent: coupler.pin, child: rocker.pin, axis: [0, 0, 1]}}
simulation: {{{simulation}}}
"
    )
}

#[test]
fn a_crank_turns_round_and_round() {
    let (model, end) = (model(&crank("end: 3")), 3.0);
    let exact = reference(&model, end);
    let errors = [1e-2, 5e-3].map(|h| {
        let (outcome, choices) = run_independent(&model, &Fixed { method: Rk4, h }, end)
            .unwrap_or_else(|error| panic!("{}", said(&model, error)));
        let error = distance(&outcome.z, &exact.z).max(distance(&outcome.zd, &exact.zd));
        println!("{h}: {error:.2e}, {choices} choices, energy {:.1e}", outcome.energy_drift);
        assert!(outcome.violation.iter().all(|&left| left < 1e-9), "{:?}", outcome.violation);
        assert!(outcome.z[0] > 12.0, "more than one turn: {}", outcome.z[0]);
        error
    });
    assert!(errors[1] < 1e-4 && errors[0] / errors[1] > 9.0, "{errors:?}");
    // By implicit stages.
    let error = |found: Result<(Outcome, usize), StepError>| {
        let (outcome, _) = found.unwrap_or_else(|error| panic!("{}", said(&model, error)));
        assert!(outcome.violation.iter().all(|&left| left < 1e-9), "{:?}", outcome.violation);
        distance(&outcome.z, &exact.z).max(distance(&outcome.zd, &exact.zd))
    };
    let sdirk =
        [1e-2, 5e-3].map(|h| error(run_independent_implicit(&model, &Fixed { method: Sdirk4, h }, end)));
    let rule =
        [2e-3, 1e-3].map(|h| error(run_independent_implicit(&model, &Fixed { method: Trapezoidal, h }, end)));
    println!("sdirk4 {sdirk:?}, trapezoidal {rule:?}");
    assert!(sdirk[1] < 1e-4 && sdirk[0] / sdirk[1] > 9.0, "{sdirk:?}");
    assert!(rule[1] < 1e-2 && (rule[0] / rule[1] - 4.0).abs() < 0.8, "{rule:?}");
}

/// The rocker turns back twice a turn, and says nothing of the crank there.
#[test]
fn a_named_choice_is_lost_at_a_dead_point() {
    for h in [1e-2, 3.3e-3, 1e-3] {
        let model = model(&crank("end: 3, formulation: matrix_r, independent: [Q.angle]"));
        let found = run_independent(&model, &Fixed { method: Rk4, h }, 3.0).map(|_| ());
        let Err(error @ StepError::Eval { error: EvalError::Independent { .. }, .. }) = found else {
            panic!("{h}: {found:?}")
        };
        let said = said(&model, error);
        println!("{said}");
        assert!(said.contains("at t = ") && said.contains("independent"), "{said}");
    }
    // The crank serves all the way.
    let model = model(&crank("end: 3, formulation: matrix_r, independent: [O.angle]"));
    let (outcome, choices) = run_independent(&model, &Fixed { method: Rk4, h: 5e-3 }, 3.0).expect("it runs");
    let error = distance(&outcome.z, &reference(&model, 3.0).z);
    assert!(error < 1e-4 && choices >= 1, "{error:e}");
}
