//! What a gradient costs beyond the run itself: the five-bar linkage over 5 s in steps of 1 ms, ALI3-P, three objectives. And
//! work against precision: the time of a run whose fifteen derivatives are right to 1e-6, for every formulation and integrator. With the word
//! `precision` after `--`, that alone.

use mbs_benches::{PARAMETERS, Timing, five_bar, five_bar_by_1, five_bar_by_20, five_bar_by_100, per_call};
use mbs_runtime::formulation::{Ali3p, Assembly, State};
use mbs_runtime::inputs::NoInputs;
use mbs_runtime::sensitivity::{
    DifferentiableIntegrator, DifferentiableStep, Differentiated, Gradient, JointDerivatives, JointDynamics,
    StateDerivatives,
};
use mbs_runtime::{
    Adaptive, Dop853, DormandPrince, Fixed, Implicit, ImplicitIndex1, Impulses, Index1,
    JointObjectiveDerivatives, Motion, ObjectiveDerivatives, OnConstraints, Output, Rk4, Sensitivities, Span,
    Stabilisation, StartDerivatives, System,
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

/// A way to a gradient at a step or a tolerance: all fifteen derivatives.
type Way<'a> = (&'a str, Effort, &'a dyn Fn(f64) -> Vec<f64>);

/// What a way is given, from coarse to fine.
#[derive(Clone, Copy)]
enum Effort {
    /// Equal steps: this many at first.
    Steps(usize),
    /// Step control: this tolerance at first.
    Tolerance(f64),
}

impl Effort {
    /// The step or the tolerance, finer by 10 % of the number of steps, or an eighth of a decade, for each `k`.
    fn value(self, k: i32) -> f64 {
        match self {
            Self::Steps(first) => END / (first as f64 * 1.1f64.powi(k)).round(),
            Self::Tolerance(first) => first * 10f64.powf(-0.125 * f64::from(k)),
        }
    }
}

/// Largest error of the rows of two gradients, each relative to the largest entry of its row (one of the objectives).
fn error(found: &[f64], exact: &[f64], parameters: usize) -> f64 {
    found.chunks(parameters).zip(exact.chunks(parameters)).fold(0.0, |worst, (found, exact)| {
        let size = exact.iter().fold(0.0, |size: f64, x| size.max(x.abs()));
        found.iter().zip(exact).fold(worst, |worst: f64, (x, y)| worst.max(((x - y) / size).abs()))
    })
}

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

fn explicitly<D>(system: &D, model: &(impl Model + System), run: impl DifferentiableIntegrator) -> Vec<f64>
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

/// The least effort of each way at which every row of the gradient has an error below 1e-6 of its largest entry, and its time.
fn work_and_precision(model: &five_bar::Model) {
    let index1 = Index1::new(model);
    let projected = OnConstraints(Index1::new(model));
    let exact = explicitly(&index1, model, Differentiated(Fixed { method: Dop853, h: 1e-3 }));
    let alpha = Ali3p { integrator: Implicit::GeneralizedAlpha { spectral_radius: 0.8 }, ..Ali3p::DEFAULT };
    let stiff = Stabilisation { rate: 20.0, value: 100.0, compliance: 0.0 };
    let ways: [Way<'_>; 10] = [
        ("ALI3-P, trapezoidal", Effort::Steps(10_000), &|h| implicitly(model, Ali3p::DEFAULT, h)),
        ("ALI3-P, generalized-alpha 0.8", Effort::Steps(10_000), &|h| implicitly(model, alpha, h)),
        ("implicit index 1", Effort::Steps(10_000), &|h| implicitly(model, ImplicitIndex1::new(stiff), h)),
        ("RK4", Effort::Steps(250), &|h| {
            explicitly(&index1, model, Differentiated(Fixed { method: Rk4, h }))
        }),
        ("RK4, projected", Effort::Steps(250), &|h| {
            explicitly(&projected, model, Differentiated(Fixed { method: Rk4, h }))
        }),
        ("Dormand-Prince", Effort::Steps(100), &|h| {
            explicitly(&index1, model, Differentiated(Fixed { method: DormandPrince, h }))
        }),
        ("Dormand-Prince, step control", Effort::Tolerance(1e-6), &|tolerance| {
            explicitly(&index1, model, Differentiated(Adaptive::new(tolerance, tolerance)))
        }),
        ("Dop853", Effort::Steps(20), &|h| {
            explicitly(&index1, model, Differentiated(Fixed { method: Dop853, h }))
        }),
        ("Dop853, projected", Effort::Steps(20), &|h| {
            explicitly(&projected, model, Differentiated(Fixed { method: Dop853, h }))
        }),
        ("Dop853, step control", Effort::Tolerance(1e-5), &|tolerance| {
            explicitly(&index1, model, Differentiated(Adaptive::of(Dop853, tolerance, tolerance)))
        }),
    ];
    println!(
        "five_bar on index 1 (but ALI3-P), 5 s: where each row of the gradient is right to 1e-6 of its largest entry"
    );
    for (name, effort, way) in ways {
        let found = (0..60).map(|k| effort.value(k)).find_map(|value| {
            let error = error(&way(value), &exact, model.dims().sensitivity.parameters);
            (error <= 1e-6).then_some((value, error))
        });
        let Some((value, error)) = found else {
            println!("  {name:<34} not reached");
            continue;
        };
        let time = per_call(1, || {
            black_box(way(value));
        });
        let what = match effort {
            Effort::Steps(_) => format!("{:.0} steps", END / value),
            Effort::Tolerance(_) => format!("tolerance {value:.1e}"),
        };
        println!("  {name:<34} {what:<18} {:>10.3} ms {error:>10.1e}", time.best * 1e-6);
    }
}

fn main() {
    let model = five_bar::Model::default();
    if std::env::args().any(|word| word == "precision") {
        return work_and_precision(&model);
    }
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
