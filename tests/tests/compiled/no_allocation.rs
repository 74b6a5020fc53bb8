//! Runs allocate nothing: of compiled random models, of committed modules, of interpreted ones.

use crate::closed::five_bar;
use crate::{random_0, random_11, random_29};
use mbs_codegen::program::{BundleKind, Options, Program};
use mbs_engine::Interpreted;
use mbs_runtime::formulation::{Ali3p, Assembly, ImplicitIndex1, ImplicitStep, State};
use mbs_runtime::inputs::Constant;
use mbs_runtime::{
    Adaptive, At, Constrained, Dop853, DormandPrince, Energy, Fixed, ForwardDynamics, Integrator, Markers,
    Output, Outputs, Rk4, Span, Stabilisation, Start, System,
};
use mbs_tests::random_model::compiled;
use std::ops::ControlFlow;

/// Allocations while a model runs and is observed, and how many steps it took.
fn allocations<M>(model: &M, integrator: &impl Integrator) -> (u64, usize)
where
    M: System<S = f64> + Start + ForwardDynamics + Energy + Markers + Outputs,
{
    let d = model.dims();
    let buffer = |n: usize| vec![0.0; n];
    let (mut z, mut v, u) = (buffer(d.nq), buffer(d.nv), vec![0.1; d.nu]);
    model.start(&mut z, &mut v, &mut []).expect("lengths");
    let mut y = [z, v].concat();
    let (mut scratch, mut w) = (buffer(integrator.scratch_len(&d)), buffer(d.workspace));
    let (vd, mut out) = (buffer(d.nv), buffer(d.n_outputs));
    let [mut r, mut rd, mut rdd] = [0; 3].map(|_| buffer(3 * d.n_markers));
    let span = Span { start: 0.0, end: 0.02, output: Output::Steps };
    let mut steps = 0;
    let counted = allocation_counter::measure(|| {
        let observe = |at: At<'_, f64>| {
            model.energy(at, &mut w, &mut [0.0; 3]).expect("lengths");
            model.markers(at, &vd, &mut w, &mut r, &mut rd, &mut rdd).expect("lengths");
            model.outputs(at, &vd, &mut w, &mut out).expect("lengths");
            ControlFlow::Continue(())
        };
        let run = integrator.run(model, &mut Constant(&u), &mut y, &span, &mut scratch, observe);
        steps = run.expect("regular").steps;
    });
    (counted.count_total, steps)
}

fn check<M>(name: &str, model: &M)
where
    M: System<S = f64> + Start + ForwardDynamics + Energy + Markers + Outputs,
{
    let counted = [
        allocations(model, &Fixed { method: Rk4, h: 1e-3 }),
        allocations(model, &Fixed { method: DormandPrince, h: 1e-3 }),
        allocations(model, &Adaptive::new(1e-6, 1e-6)),
        allocations(model, &Adaptive::of(Dop853, 1e-6, 1e-6)),
    ];
    for (count, steps) in counted {
        assert_eq!(count, 0, "{name}");
        assert!(steps > 0, "{name} ran");
    }
}

#[test]
fn the_counter_counts() {
    let counted = allocation_counter::measure(|| drop(std::hint::black_box(Box::new(1))));
    assert_eq!(counted.count_total, 1);
}

#[test]
fn compiled_random_models_do_not_allocate() {
    // Integrators are compiled for each; three of thirty: the largest, one with frozen parameters (11).
    check("random_0", &random_0::Model::default());
    check("random_11", &random_11::Model::default());
    check("random_29", &random_29::Model::default());
}

/// Simulations of modules, made, stepped, read and differentiated.
#[test]
fn simulations_do_not_allocate() {
    use mbs_generated::{cart_pole, five_bar, spinning_top};
    let mut moved = 0.0;
    let counted = allocation_counter::measure(|| {
        let mut cart = cart_pole::Simulation::new(Default::default()).expect("a start");
        cart.step(&cart_pole::Inputs { push: 1.0 }).expect("a step");
        let mut top = spinning_top::Simulation::new(Default::default()).expect("a start");
        top.run_to(0.01).expect("small steps");
        let mut bars = five_bar::Simulation::new(Default::default()).expect("a start");
        let state = bars.state();
        bars.run_to(0.01).expect("small steps");
        bars.restore(state);
        let end = five_bar::SETTINGS.begin + 0.01;
        let mut setup = five_bar::Setup::new(Default::default());
        setup.settings.end = end;
        let mut memory: five_bar::GradientMemory = [0.0; _];
        let found = five_bar::gradient_with(&setup, &mut memory).expect("small steps");
        let problem = mbs_runtime::simulation::Problem::new(setup, &five_bar::Parameters::BOUNDS);
        let (mut x, mut gradient) = ([0.0; 5], [0.0; 5]);
        x.iter_mut().zip(problem.unknowns()).for_each(|(x, unknown)| *x = unknown.value);
        let value = problem.value_and_gradient(0, &x, &mut memory, &mut gradient).expect("small steps");
        moved = value - found.psi1.value;
        moved +=
            cart.output().position + top.energy().kinetic + bars.reactions().A.force[1] + found.psi1.value;
    });
    assert_eq!(counted.count_total, 0);
    assert!(moved != 0.0 && f64::is_finite(moved));
}

#[test]
fn committed_modules_do_not_allocate() {
    use mbs_generated::{cart_pole, double_pendulum, mirrored, pendulum, spinning_top, torque_free_top};
    check("pendulum", &pendulum::Model::default());
    check("double_pendulum", &double_pendulum::Model::default());
    check("cart_pole", &cart_pole::Model::default());
    check("spinning_top", &spinning_top::Model::default());
    check("torque_free_top", &torque_free_top::Model::default());
    check("mirrored", &mirrored::Model::default());
    // New parameters, new prepared values: on the stack.
    let counted = allocation_counter::measure(|| {
        std::hint::black_box(mirrored::Model::new(mirrored::Parameters { tyre: 5e4, ..Default::default() }));
    });
    assert_eq!(counted.count_total, 0);
}

/// An interpreted model whose machine code is there before it runs: writing it allocates, running it does not.
fn compiled_at_once(program: Program) -> Interpreted {
    let model = Interpreted::new(program);
    model.compile();
    model
}

#[test]
fn interpreted_models_do_not_allocate() {
    for index in 0..compiled::COUNT {
        let text = compiled::text(index);
        let (model, _) = mbs_codegen::read("random.yaml", &text).expect("a valid model");
        let options = Options { bundles: BundleKind::TREE.to_vec(), ..Options::default() };
        let program = Program::new(&model, None, &options).expect("small");
        check(&format!("random_{index}"), &compiled_at_once(program));
    }
}

/// Allocations of the start and of a run by an implicit formulation.
fn constrained_allocations<M: Constrained<S = f64> + Start>(
    name: &str,
    model: &M,
    method: impl ImplicitStep,
    expected: u64,
) {
    let d = model.dims();
    let u = vec![0.1; d.nu];
    let mut state = vec![0.0; State::<f64>::len(&d)];
    let mut scratch = vec![0.0; Assembly::scratch_len(&d).max(method.scratch_len(&d))];
    let span = Span { start: 0.0, end: 0.05, output: Output::Steps };
    let mut steps = 0;
    let counted = allocation_counter::measure(|| {
        let mut inputs = Constant(&u);
        Assembly::DEFAULT.begin(model, &mut inputs, 0.0, &mut state, &mut scratch).expect("a start");
        let run =
            Fixed { method, h: 1e-3 }.run(model, &mut Constant(&u), &mut state, &span, &mut scratch, |_| {
                ControlFlow::Continue(())
            });
        steps = run.expect("a run").steps;
    });
    assert_eq!(counted.count_total, expected, "{name}");
    assert_eq!(steps, 50, "{name}");
}

#[test]
fn constrained_models_do_not_allocate() {
    let compiled = five_bar::Model::default();
    constrained_allocations("five_bar", &compiled, Ali3p::DEFAULT, 0);
    let stabilisation = Stabilisation { rate: 20.0, value: 100.0, compliance: 0.0 };
    constrained_allocations("five_bar by index 1", &compiled, ImplicitIndex1::new(stabilisation), 0);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/five_bar.yaml");
    let text = std::fs::read_to_string(path).expect("a shipped model");
    let (model, _) = mbs_codegen::read("five_bar.yaml", &text).expect("a valid model");
    let options = Options { bundles: BundleKind::COORDINATE_FORM.to_vec(), ..Options::default() };
    let program = Program::new(&model, None, &options).expect("small");
    // Start values of an interpreted model are computed once, in memory of their own.
    constrained_allocations("five_bar, interpreted", &compiled_at_once(program), Ali3p::DEFAULT, 1);
}
