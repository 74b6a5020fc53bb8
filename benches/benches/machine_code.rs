//! The engine's machine code against compiled code: a step of the buggy on the step descent, alone and with its gradient, round by round in turn; and how
//! long it takes from the text of the model to the first step.

use mbs_benches::{buggy, in_turn};
use mbs_codegen::program::{Options, Program};
use mbs_engine::{Engine, Fusing, Interpreted};
use mbs_runtime::formulation::{Ali3p, Assembly, Node, State};
use mbs_runtime::inputs::NoInputs;
use mbs_runtime::sensitivity::StateDerivatives;
use mbs_runtime::{
    Constrained, Differentiated, Fixed, Gradient, ObjectiveDerivatives, Output, Sensitivities, Span,
    StartDerivatives,
};
use std::hint::black_box;
use std::ops::ControlFlow;
use std::time::Instant;

const H: f64 = 1e-3;
const END: f64 = 1.0;
const STEPS: usize = 1000;

/// A consistent start and its derivatives.
fn started<M: Sensitivities<S = f64> + StartDerivatives>(model: &M) -> [Vec<f64>; 2] {
    let dims = model.dims();
    let mut state = vec![0.0; State::<f64>::len(&dims)];
    let mut derivatives = vec![0.0; StateDerivatives::<f64>::len(&dims)];
    let mut scratch = vec![0.0; Assembly::differentiated_scratch_len(&dims)];
    Assembly::DEFAULT
        .begin_differentiated(model, &mut NoInputs, 0.0, &mut state, &mut derivatives, &mut scratch)
        .expect("assembles");
    [state, derivatives]
}

/// Steps alone.
fn steps<M: Constrained<S = f64>>(model: &M, start: Vec<f64>) -> impl FnMut() {
    let mut scratch = vec![0.0; Ali3p::scratch_len(&model.dims())];
    move || {
        let mut state = start.clone();
        for _ in 0..STEPS {
            Ali3p::DEFAULT.step(model, &mut NoInputs, &mut state, H, &mut scratch).expect("converges");
        }
        black_box(&state);
    }
}

/// Steps with the gradient.
fn gradient<M>(model: &M, [state, derivatives]: [Vec<f64>; 2]) -> impl FnMut()
where
    M: Sensitivities<S = f64> + ObjectiveDerivatives,
{
    let dims = model.dims();
    let run = Differentiated(Fixed { method: Ali3p::DEFAULT, h: H });
    let mut scratch = vec![0.0; run.scratch_len(&dims)];
    let mut gradient = vec![0.0; Gradient::<f64>::len(&dims)];
    let span = Span { start: 0.0, end: END, output: Output::Every(END) };
    move || {
        let (mut state, mut derivatives) = (state.clone(), derivatives.clone());
        let watch = |_: Node<'_, f64>| ControlFlow::Continue(());
        run.run(
            model,
            &mut NoInputs,
            &mut state,
            &mut derivatives,
            &span,
            &mut gradient,
            &mut scratch,
            watch,
        )
        .expect("converges");
        black_box(&gradient);
    }
}

fn main() {
    let begin = Instant::now();
    let text = include_str!("../../models/buggy.yaml");
    let (source, _) = mbs_codegen::analyse("buggy.yaml", text).expect("a shipped model");
    let case = source.cases.iter().find(|case| case.name == "step_descent").expect("a case");
    let bundles = mbs_engine::gradient::bundles(&case.simulation, true);
    let options = Options { bundles, ..Options::default() };
    let program = Program::of(&source, Some(case), &options).expect("a program");
    let mut machine: Interpreted = Interpreted::new(program);
    machine.set_engine(Engine::Jit, None, Fusing::AsCompiled);
    let bundles = machine.compile();
    println!(
        "buggy with its gradient: {bundles} bundles as machine code after {:.0} ms",
        1e3 * begin.elapsed().as_secs_f64()
    );

    let compiled = buggy::Model::default();
    let of_machine = started(&machine);
    let of_compiled = started(&compiled);
    let show = |what: &str, [compiled, machine]: [mbs_benches::Timing; 2]| {
        println!(
            "  {what:<20} compiled {:>6.1} µs, machine code {:>6.1} µs, best of rounds: {:.2}; medians {:.2}",
            compiled.best / 1e3,
            machine.best / 1e3,
            machine.best / compiled.best,
            machine.median / compiled.median
        );
    };
    let (mut a, mut b) = (steps(&compiled, of_compiled[0].clone()), steps(&machine, of_machine[0].clone()));
    show("step", in_turn(STEPS, [&mut a, &mut b]));
    let (mut a, mut b) = (gradient(&compiled, of_compiled), gradient(&machine, of_machine));
    show("step with gradient", in_turn(STEPS, [&mut a, &mut b]));
}
