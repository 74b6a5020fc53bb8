//! What a gradient costs beyond the run itself: the five-bar linkage over 5 s in steps of 1 ms, ALI3-P, three objectives. And
//! work against precision: the error of its fifteen derivatives against the time of the run, for every formulation and integrator.

use mbs_benches::{PARAMETERS, Timing, five_bar, five_bar_by_1, five_bar_by_20, five_bar_by_100, per_call};
use mbs_runtime::formulation::{Ali3p, Assembly, State};
use mbs_runtime::inputs::NoInputs;
use mbs_runtime::sensitivity::{
    DifferentiableIntegrator, DifferentiableStep, Differentiated, Gradient, JointDerivatives, JointDynamics,
    StateDerivatives,
};
use mbs_runtime::{
    Adaptive, DormandPrince, Fixed, Implicit, ImplicitIndex1, Impulses, Index1, JointObjectiveDerivatives,
    Motion, ObjectiveDerivatives, OnConstraints, Output, Rk4, Sensitivities, Span, Stabilisation,
    StartDerivatives,
};
use std::hint::black_box;
use std::ops::ControlFlow;

const STEPS: usize = 5000;
const H: f64 = 1e-3;
const END: f64 = STEPS as f64 * H;
const SPAN: Span<f64> = Span { start: 0.0, end: END, output: Output::Every(END) };

trait Model: Sensitivities<S = f64> + StartDerivatives + ObjectiveDerivatives {}
impl<M: Sensitivities<S = f64> + StartDerivatives + ObjectiveDerivatives> Model for M {}

/// A consistent start and its derivatives.
fn started(model: &impl Model) -> [Vec<f64>; 2] {
    let dims = model.dims();
    let mut state = vec![0.0; State::<f64>::len(&dims)];
    let mut derivatives = vec![0.0; StateDerivatives::<f64>::len(&dims)];
    let mut scratch = vec![0.0; Assembly::differentiated_scratch_len(&dims)];
    Assembly::DEFAULT
        .begin_differentiated(model, &mut NoInputs, 0.0, &mut state, &mut derivatives, &mut scratch)
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
        let watch = |_: mbs_runtime::formulation::Node<'_, f64>| ControlFlow::Continue(());
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

/// A way to a gradient at a step (or a tolerance): all fifteen derivatives.
type Way<'a> = (&'a str, [f64; 4], &'a dyn Fn(f64) -> Vec<f64>);

fn implicitly(model: &impl Model, method: impl DifferentiableStep, h: f64) -> Vec<f64> {
    let dims = model.dims();
    let [mut state, mut derivatives] = started(model);
    let run = Differentiated(Fixed { method, h });
    let mut scratch = vec![0.0; run.scratch_len(&dims)];
    let mut gradient = vec![0.0; Gradient::<f64>::len(&dims)];
    let span = Span { output: Output::Every(END), ..SPAN };
    let watch = |_: mbs_runtime::formulation::Node<'_, f64>| ControlFlow::Continue(());
    let inputs = &mut NoInputs;
    run.run(model, inputs, &mut state, &mut derivatives, &span, &mut gradient, &mut scratch, watch)
        .expect("converges");
    gradient.split_off(dims.n_objectives)
}

fn explicitly<D>(
    system: &D,
    model: &(impl Model + mbs_runtime::System),
    run: impl DifferentiableIntegrator,
) -> Vec<f64>
where
    D: JointDynamics<S = f64>,
    D::Model: JointObjectiveDerivatives,
{
    let dims = model.dims();
    let [mut state, mut state_derivatives] = started(model);
    let mut y = vec![0.0; dims.state()];
    let mut derivatives = vec![0.0; JointDerivatives::<f64>::len(&dims)];
    JointDerivatives::of_state(model, &mut state, &mut state_derivatives, &mut y, &mut derivatives)
        .expect("lengths");
    let mut scratch = vec![0.0; run.scratch_len(system)];
    let mut gradient = vec![0.0; Gradient::<f64>::len(&dims)];
    let span = Span { output: Output::Every(END), ..SPAN };
    let watch = |_: mbs_runtime::sensitivity::DifferentiatedAt<'_, f64>| ControlFlow::Continue(());
    run.run(system, &mut NoInputs, &mut y, &mut derivatives, &span, &mut gradient, &mut scratch, watch)
        .expect("regular");
    gradient.split_off(dims.n_objectives)
}

/// Time and error of each way at each step, and the time at which its worst derivative is right to 1e-6 of itself.
fn work_and_precision(model: &five_bar::Model) {
    let index1 = Index1::new(model);
    let projected = OnConstraints(Index1::new(model));
    let exact = explicitly(&index1, model, Differentiated(Fixed { method: Rk4, h: 1e-4 }));
    let alpha = Ali3p { integrator: Implicit::GeneralizedAlpha { spectral_radius: 0.8 }, ..Ali3p::DEFAULT };
    let stiff = Stabilisation { rate: 20.0, value: 100.0, compliance: 0.0 };
    let steps = [5e-3, 1e-3, 2e-4, 1e-4];
    let longer = [2e-2, 1e-2, 5e-3, 2.5e-3];
    let ways: [Way<'_>; 7] = [
        ("ALI3-P, trapezoidal", steps, &|h| implicitly(model, Ali3p::DEFAULT, h)),
        ("ALI3-P, generalized-alpha 0.8", steps, &|h| implicitly(model, alpha, h)),
        ("implicit index 1", steps, &|h| implicitly(model, ImplicitIndex1::new(stiff), h)),
        ("RK4 on index 1", longer, &|h| explicitly(&index1, model, Differentiated(Fixed { method: Rk4, h }))),
        ("RK4 on index 1, projected", longer, &|h| {
            explicitly(&projected, model, Differentiated(Fixed { method: Rk4, h }))
        }),
        ("Dormand-Prince on index 1", longer, &|h| {
            explicitly(&index1, model, Differentiated(Fixed { method: DormandPrince, h }))
        }),
        ("Dormand-Prince, adaptive", [1e-4, 1e-6, 1e-8, 1e-10], &|tolerance| {
            let run = Adaptive::new(tolerance, tolerance);
            explicitly(&index1, model, Differentiated(run))
        }),
    ];
    println!(
        "five_bar, work and precision: step or tolerance, milliseconds, worst relative error of fifteen derivatives"
    );
    for (name, steps, way) in ways {
        let mut points = Vec::new();
        for step in steps {
            let found = way(step);
            let error = found.iter().zip(&exact).map(|(x, y)| ((x - y) / y).abs()).fold(0.0, f64::max);
            let time = per_call(1, || {
                black_box(way(step));
            });
            points.push((time.best * 1e-6, error));
            println!("  {name:<34} {step:>8.0e} {:>10.3} ms {error:>10.1e}", time.best * 1e-6);
        }
        // Straight between the points on logarithmic axes, or beyond the last two.
        let [.., (t0, e0), (t1, e1)] = points[..] else { continue };
        let pair = points.windows(2).find(|p| p[1].1 <= 1e-6).map_or([(t0, e0), (t1, e1)], |p| [p[0], p[1]]);
        let [(t0, e0), (t1, e1)] = pair;
        let part = (1e-6f64 / e0).ln() / (e1 / e0).ln();
        println!("  {name:<34} to 1e-6 {:>11.3} ms", t0 * (t1 / t0).powf(part));
    }
}

fn main() {
    let model = five_bar::Model::default();
    println!("five_bar, h = 1 ms, per step                        best   median  ratio");
    let alone = dynamics(&model);
    show("ALI3-P alone", alone, alone);
    show("with the gradient by 5 parameters", gradient(&model), alone);
    println!("five_bar, per call");
    bundles(&model);
    work_and_precision(&model);
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
