//! What a gradient costs beyond the run itself: the five-bar linkage over 5 s in steps of 1 ms, ALI3-P, three objectives.

use mbs_benches::{PARAMETERS, Timing, five_bar, five_bar_by_1, five_bar_by_20, five_bar_by_100, per_call};
use mbs_runtime::formulation::{Ali3p, Assembly, State};
use mbs_runtime::inputs::NoInputs;
use mbs_runtime::sensitivity::{Differentiated, Gradient, StateDerivatives};
use mbs_runtime::{
    Fixed, Impulses, Motion, ObjectiveDerivatives, Output, Sensitivities, Span, StartDerivatives,
};
use std::hint::black_box;
use std::ops::ControlFlow;

const STEPS: usize = 5000;
const H: f64 = 1e-3;
const SPAN: Span<f64> = Span { start: 0.0, end: STEPS as f64 * H, output: Output::Every(5.0) };

trait Model: Sensitivities<S = f64> + StartDerivatives + ObjectiveDerivatives {}
impl<M: Sensitivities<S = f64> + StartDerivatives + ObjectiveDerivatives> Model for M {}

/// A consistent start and its derivatives.
fn started(model: &impl Model) -> [Vec<f64>; 2] {
    let dims = model.dims();
    let mut state = vec![0.0; State::<f64>::len(&dims)];
    let mut derivatives = vec![0.0; StateDerivatives::<f64>::len(&dims)];
    let mut scratch = vec![0.0; Assembly::differentiated_scratch_len(&dims)];
    Assembly::guess_differentiated(model, 0.0, &mut state, &mut derivatives, &mut scratch).expect("lengths");
    Assembly::DEFAULT
        .start_differentiated(model, &mut NoInputs, &mut state, &mut derivatives, &mut scratch)
        .expect("assembles");
    [state, derivatives]
}

fn dynamics(model: &impl Model) -> Timing {
    let dims = model.dims();
    let [start, _] = started(model);
    let mut scratch = vec![0.0; Ali3p::scratch_len(&dims)];
    per_call(STEPS, || {
        let mut state = start.clone();
        for _ in 0..STEPS {
            Ali3p::DEFAULT.step(model, &mut NoInputs, &mut state, H, &mut scratch).expect("converges");
        }
        black_box(&state);
    })
}

fn gradient(model: &impl Model) -> Timing {
    let dims = model.dims();
    let [start, start_derivatives] = started(model);
    let run = Differentiated(Fixed { method: Ali3p::DEFAULT, h: H });
    let mut scratch = vec![0.0; run.scratch_len(&dims)];
    let mut gradient = vec![0.0; Gradient::<f64>::len(&dims)];
    per_call(STEPS, || {
        let (mut state, mut derivatives) = (start.clone(), start_derivatives.clone());
        let watch = |_: mbs_runtime::sensitivity::DifferentiatedNode<'_, f64>| ControlFlow::Continue(());
        let inputs = &mut NoInputs;
        run.run(model, inputs, &mut state, &mut derivatives, &SPAN, &mut gradient, &mut scratch, watch)
            .expect("converges");
        black_box(&gradient);
    })
}

fn show(what: &str, timing: Timing, against: Timing) {
    let ratio = timing.best / against.best;
    println!("  {what:<44} {:>8.0} ns {:>8.0} ns {ratio:>6.2}", timing.best, timing.median);
}

fn bundles(model: &impl Model) {
    let dims = model.dims();
    let [mut state, _] = started(model);
    let view = State::of(&dims, &mut state).expect("length");
    let at = Motion { t: 0.0, z: view.z, zd: view.zd, zdd: view.zdd, u: &[] };
    let (lambda, mut w) = (&*view.lambda, vec![0.0; dims.workspace]);
    let s = dims.sensitivity;
    const CALLS: usize = 1000;
    let mut time = |what: &str, len: usize, call: &mut dyn FnMut(&mut [f64], &mut [f64])| {
        let mut values = vec![0.0; len];
        let timing = per_call(CALLS, || (0..CALLS).for_each(|_| call(&mut w, &mut values)));
        println!("  {what:<44} {:>8.0} ns {:>8.0} ns", timing.best, timing.median);
    };
    time("linearise", s.newton, &mut |w, values| {
        model.linearise(black_box(at), lambda, w, values).expect("lengths");
    });
    let impulses = Impulses {
        velocity: at.zd,
        velocity_multipliers: lambda,
        acceleration: at.zdd,
        acceleration_multipliers: lambda,
    };
    time("linearise_projections", s.projections, &mut |w, values| {
        model.linearise_projections(black_box(at), impulses, w, values).expect("lengths");
    });
    time("integrand_derivatives", s.integrands, &mut |w, values| {
        model.integrand_derivatives(black_box(at), lambda, w, values).expect("lengths");
    });
}

fn main() {
    let model = five_bar::Model::default();
    println!("five_bar, h = 1 ms, per step                        best   median  ratio");
    let alone = dynamics(&model);
    show("ALI3-P alone", alone, alone);
    show("with the gradient by 5 parameters", gradient(&model), alone);
    println!("five_bar, per call");
    bundles(&model);
    println!("five_bar by parameters that all change one stiffness, per step");
    let times = [
        gradient(&five_bar_by_1::Model::default()),
        gradient(&five_bar_by_20::Model::default()),
        gradient(&five_bar_by_100::Model::default()),
    ];
    for (i, (count, timing)) in PARAMETERS.iter().zip(times).enumerate() {
        show(&format!("by {count}"), timing, alone);
        if i > 0 {
            let further = (timing.best - times[i - 1].best) / (count - PARAMETERS[i - 1]) as f64;
            println!("  {:>44} {further:>8.0} ns per further parameter", "");
        }
    }
}
