//! Runs so many steps of a model and nothing else, for `instructions.sh` to count instructions: `instructions MODEL RUN STEPS`.

use mbs_benches::{bicycle_by_32, bicycle_by_1000, buggy, five_bar, four_bar_40, human43, slider_crank, ur5};
use mbs_runtime::formulation::{Ali3p, Assembly, Node, Record, State};
use mbs_runtime::inputs::NoInputs;
use mbs_runtime::integrator::FixedStep;
use mbs_runtime::sensitivity::{DifferentiableIntegrator, DifferentiatedAt, JointDerivatives, JointDynamics};
use mbs_runtime::{
    Adjoint, AdjointIntegrator, AdjointNode, Constrained, Differentiated, Dop853, Fixed, ForwardDynamics,
    Gradient, Index1, JointObjectiveDerivatives, ObjectiveDerivatives, OnConstraints, Output, Rk4,
    Sensitivities, Span, StartDerivatives, StateDerivatives, VectorJacobian,
};
use std::hint::black_box;
use std::ops::ControlFlow;

const H: f64 = 1e-3;

/// A consistent start and its derivatives.
fn start_differentiated<M: Sensitivities<S = f64> + StartDerivatives>(model: &M) -> [Vec<f64>; 2] {
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

fn step<M: Sensitivities<S = f64> + StartDerivatives>(model: &M, method: Ali3p, steps: usize) {
    let [state, _] = start_differentiated(model);
    step_from(model, method, state, steps);
}

fn step_from<M: Constrained<S = f64>>(model: &M, method: Ali3p, mut state: Vec<f64>, steps: usize) {
    let mut scratch = vec![0.0; Ali3p::scratch_len(&model.dims())];
    for _ in 0..steps {
        method.step(model, &mut NoInputs, &mut state, H, &mut scratch).expect("converges");
    }
    black_box(&state);
}

fn gradient<M>(model: &M, method: Ali3p, steps: usize)
where
    M: Sensitivities<S = f64> + StartDerivatives + ObjectiveDerivatives,
{
    let [mut state, mut derivatives] = start_differentiated(model);
    let run = Differentiated(Fixed { method, h: H });
    let mut scratch = vec![0.0; run.scratch_len(&model.dims())];
    let mut gradient = vec![0.0; Gradient::<f64>::len(&model.dims())];
    let end = steps as f64 * H;
    let span = Span { start: 0.0, end, output: Output::Every(end) };
    let inputs = &mut NoInputs;
    let observe = |_: Node<'_, f64>| ControlFlow::Continue(());
    run.run(model, inputs, &mut state, &mut derivatives, &span, &mut gradient, &mut scratch, observe)
        .expect("converges");
    black_box(&gradient);
}

/// The gradient of the first objectives by the adjoint, forward run included.
fn adjoint<M>(model: &M, method: Ali3p, steps: usize, columns: usize)
where
    M: Sensitivities<S = f64> + StartDerivatives + ObjectiveDerivatives,
{
    let [mut state, _] = start_differentiated(model);
    let (dims, run) = (model.dims(), Adjoint(Fixed { method, h: H }));
    let end = steps as f64 * H;
    let span = Span { start: 0.0, end, output: Output::Every(end) };
    let mut memory = vec![0.0; steps * Record::<f64>::len(&dims) + 2 * (State::<f64>::len(&dims) + 1)];
    let mut scratch = vec![0.0; run.scratch_len(&dims, columns)];
    let mut weights = vec![0.0; dims.n_objectives * columns];
    weights.iter_mut().step_by(columns + 1).take(columns).for_each(|weight| *weight = 1.0);
    let mut objectives = vec![0.0; dims.n_objectives];
    let mut start = vec![0.0; mbs_runtime::adjoint::state_rows(&dims) * columns];
    let mut rho = vec![0.0; dims.sensitivity.parameters * columns];
    let product = VectorJacobian {
        columns,
        objective_weights: &weights,
        end_weights: &[],
        objectives: &mut objectives,
        start: &mut start,
        rho: &mut rho,
    };
    let go_on = |_: AdjointNode<'_, f64>| ControlFlow::Continue(());
    let found = run.run(model, &mut NoInputs, &mut state, &span, product, &mut memory, &mut scratch, go_on);
    assert_eq!(found.expect("converges").recomputed, 0);
    black_box(&rho);
}

/// Steps that end on the constraints.
fn projected(model: &five_bar::Model) -> OnConstraints<Index1<'_, five_bar::Model>> {
    OnConstraints(Index1::new(model))
}

fn explicit_step<'a, D: ForwardDynamics<S = f64>>(
    model: &'a five_bar::Model,
    dynamics: impl Fn(&'a five_bar::Model) -> D,
    steps: usize,
) {
    let [mut state, mut derivatives] = start_differentiated(model);
    let dims = five_bar::DIMS;
    let (mut y, mut joint) = (vec![0.0; dims.state()], vec![0.0; JointDerivatives::<f64>::len(&dims)]);
    JointDerivatives::of_state(model, &mut state, &mut derivatives, &mut y, &mut joint).expect("lengths");
    let (system, mut t) = (dynamics(model), 0.0);
    let mut scratch = vec![0.0; Rk4::scratch_len(&system.dims())];
    for _ in 0..steps {
        Rk4.step(&system, &mut NoInputs, &mut t, &mut y, H, &mut scratch).expect("regular");
    }
    black_box(&y);
}

fn explicit_gradient<'a, D: JointDynamics<S = f64>>(
    model: &'a five_bar::Model,
    dynamics: impl Fn(&'a five_bar::Model) -> D,
    method: impl FixedStep,
    steps: usize,
) where
    D::Model: JointObjectiveDerivatives,
{
    let [mut state, mut derivatives] = start_differentiated(model);
    let dims = five_bar::DIMS;
    let (mut y, mut joint) = (vec![0.0; dims.state()], vec![0.0; JointDerivatives::<f64>::len(&dims)]);
    JointDerivatives::of_state(model, &mut state, &mut derivatives, &mut y, &mut joint).expect("lengths");
    let (system, run) = (dynamics(model), Differentiated(Fixed { method, h: H }));
    let mut scratch = vec![0.0; run.scratch_len(&system)];
    let mut gradient = vec![0.0; Gradient::<f64>::len(&dims)];
    let end = steps as f64 * H;
    let span = Span { start: 0.0, end, output: Output::Every(end) };
    let inputs = &mut NoInputs;
    let observe = |_: DifferentiatedAt<'_, f64>| ControlFlow::Continue(());
    run.run(&system, inputs, &mut y, &mut joint, &span, &mut gradient, &mut scratch, observe)
        .expect("regular");
    black_box(&gradient);
}

/// The gradient by the adjoint of an explicit run, forward run included.
fn explicit_adjoint<'a, D: JointDynamics<S = f64>>(
    model: &'a five_bar::Model,
    dynamics: impl Fn(&'a five_bar::Model) -> D,
    method: impl FixedStep,
    steps: usize,
) where
    D::Model: JointObjectiveDerivatives,
{
    let [mut state, mut derivatives] = start_differentiated(model);
    let dims = five_bar::DIMS;
    let (mut y, mut joint) = (vec![0.0; dims.state()], vec![0.0; JointDerivatives::<f64>::len(&dims)]);
    JointDerivatives::of_state(model, &mut state, &mut derivatives, &mut y, &mut joint).expect("lengths");
    let (system, run) = (dynamics(model), Adjoint(Fixed { method, h: H }));
    let mut scratch = vec![0.0; AdjointIntegrator::gradient_scratch_len(&run, &system)];
    let mut gradient = vec![0.0; Gradient::<f64>::len(&dims)];
    let end = steps as f64 * H;
    let span = Span { start: 0.0, end, output: Output::Every(end) };
    let plan =
        AdjointIntegrator::schedule(&run, &dims, &span, usize::MAX).expect("steps").expect("fixed ones");
    let (mut memory, inputs) = (vec![0.0; plan.memory_len()], &mut NoInputs);
    let go_on = |_: AdjointNode<'_, f64>| ControlFlow::Continue(());
    let (state, start) = (&mut y, &joint);
    AdjointIntegrator::gradient(
        &run,
        &system,
        inputs,
        state,
        start,
        &span,
        &mut gradient,
        &mut memory,
        &mut scratch,
        go_on,
    )
    .expect("regular");
    black_box(&gradient);
}

/// Steps of a module's own simulation, and its own gradient: an open tree by RK4.
macro_rules! by_face {
    ($model:ident, $run:expr, $steps:expr) => {
        if $run == "step" {
            let mut sim = $model::Simulation::new($model::Parameters::default()).expect("starts");
            for _ in 0..$steps {
                black_box(sim.step().expect("regular"));
            }
        } else {
            let mut setup = $model::Setup::new($model::Parameters::default());
            setup.settings.end = $steps as f64 * setup.settings.step;
            black_box($model::gradient_of(&setup).expect("regular").haste.value);
        }
    };
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, run, steps] = &arguments[..] else { panic!("instructions MODEL RUN STEPS") };
    let steps: usize = steps.parse().expect("a number of steps");
    let (usual, carried) =
        (Ali3p::DEFAULT, Ali3p { tangent: mbs_runtime::Tangent::Carried, ..Ali3p::DEFAULT });
    match (model.as_str(), run.as_str()) {
        ("five_bar", "step") => step(&five_bar::Model::default(), usual, steps),
        ("five_bar", "gradient") => gradient(&five_bar::Model::default(), usual, steps),
        ("five_bar", "adjoint") => adjoint(&five_bar::Model::default(), usual, steps, 3),
        ("five_bar", "adjoint_of_one") => adjoint(&five_bar::Model::default(), usual, steps, 1),
        ("five_bar", "rk4") => explicit_step(&five_bar::Model::default(), Index1::new, steps),
        ("five_bar", "rk4_gradient") => {
            explicit_gradient(&five_bar::Model::default(), Index1::new, Rk4, steps)
        }
        ("five_bar", "rk4_adjoint") => explicit_adjoint(&five_bar::Model::default(), Index1::new, Rk4, steps),
        ("five_bar", "dop853_gradient") => {
            explicit_gradient(&five_bar::Model::default(), Index1::new, Dop853, steps);
        }
        ("five_bar", "rk4_projected") => explicit_step(&five_bar::Model::default(), projected, steps),
        ("five_bar", "rk4_projected_gradient") => {
            explicit_gradient(&five_bar::Model::default(), projected, Rk4, steps);
        }
        ("five_bar", "rk4_projected_adjoint") => {
            explicit_adjoint(&five_bar::Model::default(), projected, Rk4, steps);
        }
        ("five_bar", "dop853_projected_gradient") => {
            explicit_gradient(&five_bar::Model::default(), projected, Dop853, steps);
        }
        ("four_bar_40", "step") => step(&four_bar_40::Model::default(), usual, steps),
        ("four_bar_40", "gradient") => gradient(&four_bar_40::Model::default(), usual, steps),
        ("slider_crank", "step") => step(&slider_crank::Model::default(), usual, steps),
        ("slider_crank", "gradient") => gradient(&slider_crank::Model::default(), usual, steps),
        ("ur5", "step" | "gradient") => by_face!(ur5, run, steps),
        ("human43", "step" | "gradient") => by_face!(human43, run, steps),
        ("buggy", "step") => step(&buggy::Model::default(), usual, steps),
        ("buggy", "gradient") => gradient(&buggy::Model::default(), usual, steps),
        ("buggy", "carried") => step(&buggy::Model::default(), carried, steps),
        ("buggy", "carried_gradient") => gradient(&buggy::Model::default(), carried, steps),
        ("buggy", "adjoint") => adjoint(&buggy::Model::default(), usual, steps, 1),
        ("buggy", "carried_adjoint_of_two") => adjoint(&buggy::Model::default(), carried, steps, 2),
        ("buggy", "adjoint_of_two") => adjoint(&buggy::Model::default(), usual, steps, 2),
        ("bicycle_by_32", "step") => step(&bicycle_by_32::Model::default(), usual, steps),
        ("bicycle_by_32", "gradient") => gradient(&bicycle_by_32::Model::default(), usual, steps),
        ("bicycle_by_32", "adjoint") => adjoint(&bicycle_by_32::Model::default(), usual, steps, 1),
        ("bicycle_by_1000", "step") => step(&bicycle_by_1000::Model::default(), usual, steps),
        ("bicycle_by_1000", "adjoint") => adjoint(&bicycle_by_1000::Model::default(), usual, steps, 1),
        _ => panic!("no run {run} of {model}"),
    }
}
