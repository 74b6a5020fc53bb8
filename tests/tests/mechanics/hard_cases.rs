//! Mechanics at its edges: nothing moves, nothing has mass, lengths vanish, numbers are extreme. Every run ends in an
//! error value that can be printed, or in finite numbers; nothing panics and nothing is NaN in silence.

use mbs_codegen::program::{BundleKind, Options, Program};
use mbs_engine::{Interpreted, ParameterError};
use mbs_runtime::{Adaptive, Fixed, Integrator, Output, Rk4, Span, StepError, System};
use std::ops::ControlFlow;

/// The model, or the first line of why there is none.
fn model(text: &str) -> Result<Interpreted, String> {
    let text = format!("mbs: 1\n{text}");
    let (model, _) = mbs_codegen::read("hard.yaml", &text)
        .map_err(|d| d.render("hard.yaml", &text).lines().next().unwrap_or_default().to_string())?;
    let options = Options { bundles: BundleKind::TREE.to_vec(), ..Options::default() };
    let program = Program::new(&model, None, &options).map_err(|e| e.to_string())?;
    Ok(Interpreted::new(program))
}

fn accepted(text: &str) -> Interpreted {
    model(text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn refused(text: &str) -> String {
    match model(text) {
        Err(message) => message,
        Ok(_) => panic!("accepted:\n{text}"),
    }
}

/// A run with fixed steps; its state is finite if it ended well.
fn run(model: &Interpreted, start: f64, end: f64, h: f64) -> Result<Vec<f64>, StepError> {
    run_with(&Fixed { method: Rk4, h }, model, Span { start, end, output: Output::Steps })
}

fn run_with(method: &impl Integrator, model: &Interpreted, span: Span<f64>) -> Result<Vec<f64>, StepError> {
    let mut y = model.start_state();
    let mut scratch = vec![0.0; method.scratch_len(&model.dims())];
    let mut steps = 0;
    let result = method.run(model, &mut model.input_signals(), &mut y, &span, &mut scratch, |_| {
        steps += 1;
        if steps > 100 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    match result {
        Ok(_) => {
            assert!(y.iter().all(|y| y.is_finite()), "{y:?}");
            Ok(y)
        }
        Err(error) => {
            assert!(!error.describe(model).to_string().is_empty());
            Err(error)
        }
    }
}

const SLIDER: &str = "bodies:\n  b: {mass: m, points: {tip: [0, 0, l]}}\njoints:\n  j: {type: prismatic, parent: ground, child: b, axis: [0, 0, 1], start: s}\n";

#[test]
fn nothing_moves() {
    let fixed = accepted(
        "bodies: {a: {}, b: {mass: 2}}\njoints:\n  j: {type: fixed, parent: ground, child: a}\n  k: {type: fixed, parent: a, child: b}\noutputs: {where: pos(b)}\n",
    );
    assert_eq!(fixed.dims().state(), 0);
    assert_eq!(run(&fixed, 0.0, 1.0, 0.1), Ok(vec![]));
    let adaptive = Adaptive::new(1e-6, 1e-9);
    assert_eq!(
        run_with(&adaptive, &fixed, Span { start: 0.0, end: 1.0, output: Output::Every(0.3) }),
        Ok(vec![])
    );
    assert!(refused("bodies: {}\n").contains("no bodies"));
}

#[test]
fn nothing_has_mass() {
    let joint = |kind: &str| {
        format!("bodies: {{b: {{}}}}\njoints: {{j: {{type: {kind}, parent: ground, child: b}}}}\n")
    };
    for kind in ["spherical", "floating", "revolute, axis: [0, 0, 1]", "prismatic, axis: [0, 0, 1]"] {
        assert!(refused(&joint(kind)).contains("singular"), "{kind}");
    }
    // A point mass does not turn about itself.
    assert!(refused("bodies: {b: {mass: 1}}\njoints: {j: {type: revolute, parent: ground, child: b, axis: [0, 0, 1]}}\n").contains("singular"));
}

#[test]
fn masses_are_extreme() {
    for mass in ["1e-300", "1e300", "5e-324", "1.7e308"] {
        let text = format!("gravity: [0, 0, -9.81]\nparameters: {{m: {mass}, l: 1, s: 0}}\n{SLIDER}");
        let Ok(model) = model(&text) else { continue };
        match run(&model, 0.0, 0.1, 0.01) {
            Ok(y) => assert!((y[0] + 0.5 * 9.81 * 0.01).abs() < 1e-6, "{mass}: {y:?}"),
            Err(error) => println!("mass {mass}: {}", error.describe(&model)),
        }
    }
    let refused = refused(
        "parameters: {m: -1, l: 1, s: 0}\nbodies: {b: {mass: m}}\njoints: {j: {type: prismatic, parent: ground, child: b, axis: [0, 0, 1]}}\n",
    );
    assert!(refused.contains("negative"), "{refused}");
}

#[test]
fn the_ends_of_a_spring_meet() {
    let text = |law: &str| {
        format!(
            "parameters: {{m: 1, l: 0, s: 0}}\n{SLIDER}forces: {{f: {{type: spring, from: ground, to: b.tip, {law}}}}}\n"
        )
    };
    // The force of a linear spring without natural length is −k d, whatever the direction of d.
    assert_eq!(run(&accepted(&text("stiffness: 10")), 0.0, 1.0, 0.1), Ok(vec![0.0, 0.0]));
    for law in ["stiffness: 10, natural_length: 1", "law: length^2 + rate", "law: 1/length"] {
        let model = accepted(&text(law));
        assert!(run(&model, 0.0, 1.0, 0.1).is_err(), "{law}: there is no direction to pull in");
    }
    // Apart they pull, and meet later or never.
    for s in ["1e-300", "-1e-200", "1e-9", "0.5"] {
        let text = text("stiffness: 10, damping: 1").replace("s: 0}", &format!("s: {s}}}"));
        let _ = run(&accepted(&text), 0.0, 1.0, 0.1);
    }
}

#[test]
fn parameters_become_zero_or_extreme_while_it_runs() {
    let text = "gravity: [0, 0, -9.81]\nparameters: {m: 1, L: 1, k: 10, x: [0, 1, 2], y: [0, 1, 0]}\n\
                bodies:\n  ground: {points: {top: [0, 0, L]}}\n  b: {mass: m, com: [L, 0, 0], inertia: [m*L^2, m*L^2, m*L^2], points: {tip: [L, 0, 0]}}\n\
                joints: {j: {type: revolute, parent: ground, child: b, axis: [0, L, 0], start: 1/L}}\n\
                forces:\n  s: {type: spring, from: ground.top, to: b.tip, stiffness: k/L, damping: sqrt(k*m)}\n  d: {type: joint_force, coordinate: j, value: \"spline(t, x, y)*ln(m)\"}\n";
    let mut model = accepted(text);
    assert!(run(&model, 0.0, 1.0, 0.01).is_ok());
    let defaults = model.parameters().to_vec();
    for name in ["m", "L", "k", "x[0]", "x[1]", "x[2]", "y[1]"] {
        for value in [0.0, -0.0, -1.0, 1e-300, 1e300, 1.7e308, 5e-324] {
            // What no body can have is refused; the rest may run into an error, not into a panic.
            match model.set_parameter(name, value) {
                Ok(()) => drop(run(&model, 0.0, 0.1, 0.01)),
                Err(error) => {
                    let refused =
                        matches!(error, ParameterError::Condition { .. } | ParameterError::Scale { .. });
                    assert!(refused, "{name} = {value}: {error}")
                }
            }
            model.set_parameters(&defaults).expect("the defaults");
        }
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(model.set_parameter(name, value).is_err());
        }
    }
    assert!(run(&model, 0.0, 1.0, 0.01).is_ok());
    model.set_parameter("m", 0.0).expect("no bounds");
    let error = run(&model, 0.0, 0.1, 0.01).expect_err("no mass");
    assert!(error.describe(&model).to_string().contains("j.angle"), "{}", error.describe(&model));
}

#[test]
fn times_and_steps_are_extreme() {
    let model = accepted(&format!(
        "gravity: [0, 0, -1]\nparameters: {{m: 1, l: 1, s: 0}}\n{SLIDER}forces: {{f: {{type: joint_force, coordinate: j, value: sin(t)}}}}\n"
    ));
    assert!(matches!(run(&model, 1.0, 0.0, 0.1), Err(StepError::Setting { .. })));
    assert_eq!(run(&model, 1.0, 1.0, 0.1), Ok(model.start_state()));
    for h in [0.0, -0.1, f64::NAN, f64::INFINITY] {
        assert!(matches!(run(&model, 0.0, 1.0, h), Err(StepError::Setting { .. })), "{h}");
    }
    for end in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert!(matches!(run(&model, 0.0, end, 0.1), Err(StepError::Setting { .. })), "{end}");
    }
    // Steps that time cannot count: refused, since such a run would never end.
    for (start, end, h) in
        [(1e300, 1.1e300, 1e-3), (1e9, 1e9 + 1.0, 1e-9), (0.0, 1e300, 1e-300), (-1e20, 1e20, 1.0)]
    {
        assert!(matches!(run(&model, start, end, h), Err(StepError::Setting { .. })), "{start} {end} {h}");
    }
    // Small steps that it can count, and large ones.
    for (start, end, h) in
        [(0.0, 1e-300, 1e-302), (0.0, 5e-324, 5e-324), (1e300, 2e300, 1e299), (-1e9, 1e9, 1e7)]
    {
        let _ = run(&model, start, end, h);
    }
    let adaptive = Adaptive { max_steps: 1000, ..Adaptive::new(1e-9, 1e-12) };
    for (start, end) in [(1e300, 2e300), (0.0, 1e-320), (-1e15, 1e15), (1e15, 1e15 + 1.0)] {
        for output in [
            Output::Steps,
            Output::Every((end - start) / 3.0),
            Output::Every(5e-324),
            Output::Every(f64::NAN),
        ] {
            let _ = run_with(&adaptive, &model, Span { start, end, output });
        }
    }
    for (rtol, atol) in [(0.0, 1e-9), (1e-300, 1e-300), (f64::NAN, 1.0), (1.0, 0.0), (1e300, 1e300)] {
        let _ = run_with(
            &Adaptive { max_steps: 1000, ..Adaptive::new(rtol, atol) },
            &model,
            Span { start: 0.0, end: 1.0, output: Output::Steps },
        );
    }
}

#[test]
fn files_of_impossible_times_are_refused() {
    let text = |simulation: &str| {
        format!("parameters: {{m: 1, l: 1, s: 0}}\n{SLIDER}simulation: {{{simulation}}}\n")
    };
    for simulation in [
        "begin: 1, end: 0",
        "end: 0",
        "end: -1",
        "step: 0",
        "step: -1e-3",
        "end: 1e999",
        "step: .nan",
        "begin: 1e300, end: 1e300",
    ] {
        refused(&text(simulation));
    }
}

#[test]
fn orientations_have_no_length() {
    let text = |e: &str| {
        format!(
            "bodies: {{b: {{mass: 1, inertia: [1, 1, 1]}}}}\njoints: {{j: {{type: spherical, parent: ground, child: b, start: {{orientation: {e}, angular_velocity: [1, 2, 3]}}}}}}\n"
        )
    };
    for e in
        ["[0, 0, 0, 0]", "[1e-300, 0, 0, 0]", "[1e300, 0, 0, 0]", "[1e200, 1e200, 0, 0]", "[5e-324, 0, 0, 0]"]
    {
        if let Ok(model) = model(&text(e)) {
            let _ = run(&model, 0.0, 0.1, 0.01);
        }
    }
}

#[test]
fn directions_vanish_by_parameters() {
    let text = "parameters: {a: 1}\nbodies: {b: {mass: 1, inertia: [1, 1, 1], vectors: {n: [a, 0, 0]}}}\n\
                joints: {j: {type: revolute, parent: ground, child: b, axis: [a, 0, 0]}}\n\
                forces: {f: {type: force, at: b, value: \"dir(b.n) + unit([a, 0, t])\"}}\noutputs: {o: dir(b.n)}\n";
    let mut model = accepted(text);
    assert!(run(&model, 0.0, 0.1, 0.01).is_ok());
    let refused = model.set_parameter("a", 0.0).expect_err("an axis without a direction");
    assert!(refused.to_string().contains("direction of joint `j`"), "{refused}");
    assert!(run(&model, 0.0, 0.1, 0.01).is_ok(), "the parameters are those before");
}
