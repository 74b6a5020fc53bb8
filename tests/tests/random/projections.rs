//! Multipliers of the projections as objectives: by hand, their order in the step, and gradients of random mechanisms; gradients past events
//! whose projections have the matrix of the tangent; and that the number of solutions of a projection changes nothing.

use crate::mechanisms;
use mbs_codegen::model::{Formulation, Integrator, Model, Projection, Simulation};
use mbs_codegen::program::{Options, Program};
use mbs_engine::Interpreted;
use mbs_engine::gradient::{self, Found, adjoint, hessians};
use mbs_engine::verify::{self, Failure, Report};
use mbs_runtime::named::Fields;
use mbs_runtime::simulation::GradientMethod;
use mbs_runtime::{Ali3p, Complex64, Implicit, Penalty, ProjectionMatrix, Scalar, StepError, System};
use mbs_tests::differentiated::{everything, parametrised};
use mbs_tests::gradient::implicit;
use mbs_tests::random_closed::{Shape, random_closed};
use mbs_tests::random_model::Random;
use std::fmt::Write;
use std::ops::ControlFlow;

const MEMORY: usize = 1 << 24;

fn read(text: &str) -> Model {
    let read = mbs_codegen::read("model.yaml", text);
    read.unwrap_or_else(|problems| panic!("{}\n{text}", problems.render("model.yaml", text))).0
}

fn program(model: &Model) -> Program {
    let options = Options { bundles: verify::bundles(&model.simulation, true), ..Options::default() };
    Program::new(model, None, &options).expect("a program")
}

/// Direct gradient and adjoint.
fn gradients(model: &Interpreted, simulation: &Simulation) -> Result<[Found; 2], StepError> {
    let start = gradient::start(model, simulation)?;
    let method = start.method(model, simulation);
    let direct = gradient::run(model, &method, simulation, start.clone(), |_| ControlFlow::Continue(()))?;
    let back = adjoint::run(model, &method, simulation, start, MEMORY, |_| ControlFlow::Continue(()))?;
    Ok([direct, back])
}

fn told(report: &Report) -> String {
    let derivatives =
        report.derivatives.iter().filter(|check| !check.passed()).map(|check| format!("{check:?}"));
    let runs = report.runs.iter().filter(|check| !check.passed()).map(|check| format!("{check:?}"));
    let adjoints = report.adjoints.iter().map(|check| format!("{check:?}"));
    let unseen = report.unseen.iter().map(|bundle| format!("unseen {bundle}"));
    derivatives.chain(runs).chain(adjoints).chain(unseen).collect::<Vec<_>>().join("\n")
}

mbs_macros::model_solver! { mod generated = "models/circle.yaml"; }

/// A point mass on a circle, for a run to `end` in steps of h.
fn circle(end: f64, h: f64) -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/models/circle.yaml");
    let text = std::fs::read_to_string(path).expect("a model");
    text.replace("end: 1, step: 1e-2", &format!("end: {end}, step: {h}"))
}

/// σ, κ, λ* and the integral of σκ + λ after one step of the trapezoidal rule from (L, 0) at the speed V:
///
/// ```text
/// z = L w/|w|, w = z0 + h v0 + h²/4 (a0 + g)        λ* = 4m/h² (|w|/L − 1)        a* = g − λ* z/m, v* = v0 + h/2 (a0 + a*)
/// σ = m z·v*/L²    v = v* − σ z/m    κ = m (z·a* + v·v)/L²    λ = λ* + κ
/// ```
fn one_step([m, speed, l]: [Complex64; 3], h: f64) -> [Complex64; 4] {
    let number = |x: f64| Complex64::new(x, 0.0);
    let dot = |a: [Complex64; 2], b: [Complex64; 2]| a[0] * b[0] + a[1] * b[1];
    let g = [number(0.0), number(-9.81)];
    let (z0, v0, a0) = ([l, number(0.0)], [number(0.0), speed], [-speed * speed / l, g[1]]);
    let w = [0, 1].map(|i| z0[i] + number(h) * v0[i] + number(h * h / 4.0) * (a0[i] + g[i]));
    let length = dot(w, w).sqrt();
    let z = w.map(|w| l * w / length);
    let star = number(4.0 / (h * h)) * m * (length / l - number(1.0));
    let a = [0, 1].map(|i| g[i] - star * z[i] / m);
    let v_star = [0, 1].map(|i| v0[i] + number(h / 2.0) * (a0[i] + a[i]));
    let sigma = m * dot(z, v_star) / (l * l);
    let v = [0, 1].map(|i| v_star[i] - sigma * z[i] / m);
    let kappa = m * (dot(z, a) + dot(v, v)) / (l * l);
    let first = m * speed * speed / (l * l);
    let integral = number(h / 2.0) * (first + star + kappa + sigma * kappa);
    [sigma, kappa, star, integral]
}

#[test]
fn one_step_on_a_circle_is_that_by_hand() {
    let h = 0.1;
    let model = read(&circle(h, h));
    let interpreted = Interpreted::new(program(&model));
    let [direct, back] = gradients(&interpreted, &model.simulation).expect("it runs");
    let (at, step) = ([2.5, 1.7, 0.8], 1e-30);
    let value = one_step(at.map(|x| Complex64::new(x, 0.0)), h);
    println!("{:?}", direct.objectives);
    for (i, (found, value)) in direct.objectives.iter().zip(value).enumerate() {
        assert!((found - value.re).abs() < 1e-10, "objective {i}: {found} is not {}", value.re);
        assert!(value.re.abs() > 1e-3, "objective {i} says nothing: {}", value.re);
        assert!((back.objectives[i] - found).abs() < 1e-13 * (1.0 + found.abs()));
    }
    for k in 0..3 {
        let moved = [0, 1, 2].map(|j| Complex64::new(at[j], if j == k { step } else { 0.0 }));
        for (i, value) in one_step(moved, h).into_iter().enumerate() {
            let exact = value.im / step;
            for (name, found) in [("direct", &direct), ("adjoint", &back)] {
                let found = found.of_objective(i)[k];
                assert!(
                    (found - exact).abs() < 1e-9 * (1.0 + exact.abs()),
                    "{name} {i} {k}: {found} {exact}"
                );
            }
        }
    }
}

/// A generated module has the bits of the interpreter, which runs the command, by both methods.
#[test]
fn generated_modules_have_the_bits_of_the_interpreter() {
    let model = read(&circle(1.0, 1e-2));
    let bundles = gradient::bundles(&model.simulation, true);
    let options = Options { bundles, ..Options::default() };
    let interpreted = Interpreted::new(Program::new(&model, None, &options).expect("a program"));
    let found = gradients(&interpreted, &model.simulation).expect("it runs");
    let setup = generated::Setup::new(generated::Parameters::default());
    for (method, found) in [GradientMethod::Direct, GradientMethod::Adjoint].into_iter().zip(found) {
        let mut memory = vec![f64::NAN; 1 << 16];
        let (gradient, _) = generated::gradient_by(&setup, method, &mut memory).expect("it runs");
        let values = gradient.to_values().to_vec();
        let rows = (0..4).map(|i| [&found.objectives[i..=i], found.of_objective(i)].concat());
        let (a, b): (Vec<u64>, Vec<u64>) =
            (values.iter().map(|x| x.to_bits()).collect(), rows.flatten().map(|x| x.to_bits()).collect());
        assert_eq!(a, b, "{method:?}: {values:?}");
    }
}

/// σ vanishes with h², κ with h.
#[test]
fn projections_vanish_with_the_step() {
    let values = [2e-2, 1e-2, 5e-3].map(|h| {
        let model = read(&circle(1.0, h));
        let interpreted = Interpreted::new(program(&model));
        gradients(&interpreted, &model.simulation).expect("it runs")[0].objectives.clone()
    });
    for (i, name) in ["sigma", "kappa"].into_iter().enumerate() {
        let ratios = [values[0][i] / values[1][i], values[1][i] / values[2][i]];
        println!("{name}: {:?}, ratios {ratios:?}", values.each_ref().map(|all| all[i]));
        let power = [4.0, 2.0][i];
        assert!(ratios.iter().all(|ratio| (ratio / power - 1.0).abs() < 0.02), "{name}: {ratios:?}");
    }
}

/// Second derivatives along a direction, by the adjoint in complex numbers, are differences of the gradient by the closed form.
#[test]
fn second_derivatives_of_projections() {
    let h = 0.1;
    let model = read(&circle(h, h));
    let (interpreted, simulation) = (Interpreted::new(program(&model)), &model.simulation);
    let start = gradient::start(&interpreted, simulation).expect("a start");
    let (method, redundant) = (start.method(&interpreted, simulation), start.redundant());
    let found = hessians(&interpreted, &method, simulation, redundant, MEMORY).expect("it runs");
    let (at, by, step) = ([2.5, 1.7, 0.8], 1e-5, 1e-30);
    // ∂/∂ρ_j by complex steps, of which the fourth-order difference by ρ_k
    let slope = |j: usize, k: usize, part: f64| {
        let at = [0, 1, 2].map(|i| at[i] + if i == k { part * by } else { 0.0 });
        let at = [0, 1, 2].map(|i| Complex64::new(at[i], if i == j { step } else { 0.0 }));
        one_step(at, h).map(|value| value.im / step)
    };
    for j in 0..3 {
        for k in 0..3 {
            let [a, b, c, d] = [-2.0, -1.0, 1.0, 2.0].map(|part| slope(j, k, part));
            let expected = [0, 1, 2, 3].map(|i| (a[i] - 8.0 * b[i] + 8.0 * c[i] - d[i]) / (12.0 * by));
            for (i, expected) in expected.into_iter().enumerate() {
                let found = found.products[(i * 3 + j) * 3 + k];
                let error = (found - expected).abs();
                assert!(error < 1e-7 * (1.0 + expected.abs()), "{i} {j} {k}: {found} is not {expected}");
            }
        }
    }
}

/// Puts objectives on the multipliers of the projections of all rows.
fn with_projections(text: &str) -> Option<String> {
    let model = read(text);
    let program = program(&model);
    let mut lines = String::new();
    for (k, row) in program.holonomic.iter().chain(&program.nonholonomic).enumerate() {
        let _ = write!(
            lines,
            "{}projection_impulse({row}) - {}*projection_force({row})^2",
            if k == 0 { "" } else { " + " },
            k + 2
        );
    }
    if lines.is_empty() {
        return None;
    }
    let own = format!("\nobjectives:\n  kicks: {{integrand: \"{lines}\", terminal: \"{lines}\"}}\n");
    Some(text.replacen("\nobjectives:\n", &own, 1))
}

/// Gradients of σ and κ of random mechanisms, with redundant rows, both matrices of the projections: direct against runs in complex numbers, the
/// adjoint against the direct one, the bundles against complex steps.
#[test]
fn gradients_of_projections_of_random_mechanisms() {
    let (mut passed, mut refused, mut redundant) = (0, 0, 0);
    for seed in 0..mechanisms(14) {
        let shape = Shape {
            bodies: 2 + (seed % 3) as usize,
            closures: (seed % 2) as usize,
            constraints: 1 + (seed / 2 % 2) as usize,
            nonholonomic: seed % 3 == 1,
            runs: true,
        };
        let text = parametrised(&random_closed(9000 + seed, shape), 5, &mut Random::new(seed));
        let integrator = match seed % 3 {
            2 => Integrator::GeneralizedAlpha { spectral_radius: 0.7 },
            _ => Integrator::Trapezoidal,
        };
        let projection = if seed % 4 == 3 { Projection::Tangent } else { Projection::Mass };
        let settings = "simulation: {formulation: ali3p, integrator: trapezoidal}\n";
        let text = if text.contains("\nsimulation:") { text } else { format!("{text}{settings}") };
        let Some(text) = with_projections(&text) else { continue };
        let mut model = read(&text);
        model.sensitivity = everything(&model);
        model.simulation = Simulation {
            // Rounding of positions enters κ divided by h².
            end: 0.08,
            step: 1e-2,
            formulation: Formulation::Ali3p,
            integrator,
            projection,
            ..model.simulation.clone()
        };
        let program = program(&model);
        match verify::report(&program, &model.simulation, false, |_| {}) {
            Ok(report) => {
                // Rows that lock two bodies to each other bind no motion, and nothing is projected.
                if report.found.objectives[0].abs() < 1e-9 {
                    continue;
                }
                assert!(report.passed(), "seed {seed}\n{}\n{text}", told(&report));
                assert!(report.derivatives.iter().any(|check| check.bundle == "integrand_derivatives"));
                passed += 1;
                redundant += usize::from(report.start.rank < report.start.rows);
            }
            // It cannot be put together, or not moved.
            Err(Failure::Start(_) | Failure::Run(StepError::Incompatible { .. })) => refused += 1,
            Err(error) => panic!("seed {seed}: {error:?}\n{text}"),
        }
    }
    println!("{passed} passed, {redundant} of them redundant, {refused} refused");
    assert!(passed >= 6, "{passed} passed, {refused} refused");
}

/// Two loops that say the same: σ and κ are those of least norm, and so are their derivatives.
#[test]
fn redundant_rows_have_projections_of_least_norm() {
    let text = circle(0.3, 1e-2).replace(
        "\nobjectives:\n",
        "  again: {type: equation, value: x.displacement^2 + y.displacement^2 - L^2}
objectives:
  twice: {integrand: 1e3*projection_impulse(again) + projection_force(again)^2, terminal: projection_impulse(again)}
",
    );
    let model = read(&text);
    let program = program(&model);
    let report = verify::report(&program, &model.simulation, false, |_| {}).expect("a run");
    assert!(report.passed() && report.start.rank < report.start.rows, "{}", told(&report));
    // Φ_z of the second is twice that of the first: of least norm, so are its multipliers, and together they are five times the first.
    let [found, _] = gradients(&Interpreted::new(program), &model.simulation).expect("it runs");
    let single = read(&circle(0.3, 1e-2));
    let [alone, _] =
        gradients(&Interpreted::new(self::program(&single)), &single.simulation).expect("it runs");
    let place =
        |model: &Model, name: &str| model.objectives.iter().position(|o| o.name == name).expect("its name");
    let (sigma, alone_sigma) = (place(&model, "sigma"), place(&single, "sigma"));
    let (a, b) = (found.objectives[sigma], alone.objectives[alone_sigma]);
    assert!((5.0 * a - b).abs() < 1e-9 * b.abs(), "{a} is not a fifth of {b}");
    for (a, b) in found.of_objective(sigma).iter().zip(alone.of_objective(alone_sigma)) {
        assert!((5.0 * a - b).abs() < 1e-8 * (b.abs() + 1e-3), "{a} is not a fifth of {b}");
    }
}

/// Past events accelerations and multipliers are those of a start, without projections; and the matrix of the tangent depends on the size of the step,
/// which an event changes. Direct and adjoint gradients against runs in complex numbers, whose events move by imaginary parts.
#[test]
fn projections_past_events() {
    let path = format!("{}/../models/five_bar_bouncing.yaml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("a shipped model");
    let text =
        text.replace("integrator: rk4, formulation: index1", "integrator: trapezoidal, formulation: ali3p");
    let text = text.replace(
        "objectives:\n",
        "objectives:\n  kicks: {integrand: 1e3*projection_impulse(P2.x)*t + projection_force(P2.y), terminal: projection_force(P2.x)}\n",
    );
    let mut model = read(&text);
    for integrator in [Integrator::Trapezoidal, Integrator::GeneralizedAlpha { spectral_radius: 0.7 }] {
        for projection in [Projection::Mass, Projection::Tangent] {
            let own = model.simulation.clone();
            model.simulation = Simulation { end: 2.1, step: 1e-2, integrator, projection, ..own };
            let report = verify::report(&program(&model), &model.simulation, false, |_| {}).expect("a run");
            assert!(report.passed(), "{integrator:?} {projection:?}\n{}", told(&report));
            assert!(!report.found.events.is_empty(), "{integrator:?} {projection:?}: nothing bounces");
            let motion = report.runs.iter().filter(|check| check.what.starts_with("psi"));
            let motion = motion.map(|check| check.error).fold(0.0, f64::max);
            // What the projections leave is divided by h² in κ, but not in the motion.
            assert!(motion < 1e-11, "{integrator:?} {projection:?}: {motion:.1e}");
            let worst = report.runs.iter().map(|check| check.error).fold(0.0, f64::max);
            println!(
                "{integrator:?} {projection:?}: {} events, {motion:.1e}, {worst:.1e}",
                report.found.events.len()
            );
        }
    }
}

/// Projections are solved to rounding, whatever number of solutions they begin with, and the penalty of the constraints is no weight of theirs.
#[test]
fn number_and_weight_of_projections_change_nothing() {
    let model = mbs_tests::closed::shipped("five_bar");
    for projection in [ProjectionMatrix::Mass, ProjectionMatrix::Tangent] {
        if projection == ProjectionMatrix::Tangent && model.dims().sensitivity.tangent_product == 0 {
            continue;
        }
        let exact = Ali3p { projection, tolerance: 1e-14, max_projections: 50, ..Ali3p::DEFAULT };
        let exact = Ali3p { integrator: Implicit::TRAPEZOIDAL, ..exact };
        let run = |method| implicit(&model, &mut model.input_signals(), method, 1e-2, 0.5).expect("it runs");
        let best = run(exact);
        for other in [
            Ali3p { max_projections: 1, ..exact },
            Ali3p { max_projections: 2, ..exact },
            Ali3p { max_projections: 3, penalty: Penalty::Given(1e11), ..exact },
        ] {
            let found = run(other);
            for (a, b) in found.gradient.iter().flatten().zip(best.gradient.iter().flatten()) {
                assert!((a - b).abs() <= 1e-10 * (1.0 + b.abs()), "{other:?}: {a} is not {b}");
            }
            for (a, b) in found.psi.iter().zip(&best.psi) {
                assert!((a - b).abs() <= 1e-11 * (1.0 + b.abs()), "{other:?}: {a} is not {b}");
            }
        }
    }
}

/// Where there are no projections such objectives are refused by name: as the file's own method, and in a run by another.
#[test]
fn runs_without_projections_are_refused() {
    let (own, text) = ("integrator: trapezoidal, formulation: ali3p", circle(0.1, 1e-2));
    for (method, name) in [
        ("integrator: rk4, formulation: index1", "rk4"),
        ("integrator: sdirk4, formulation: index1", "sdirk4"),
        ("integrator: trapezoidal, formulation: index1", "index1"),
        ("integrator: trapezoidal, formulation: penalty", "penalty"),
        ("integrator: trapezoidal, formulation: matrix_r", "matrix_r"),
        ("integrator: generalized_alpha, formulation: ali3p, projection: none", "projection: none"),
    ] {
        let text = text.replace(own, method);
        let Err(problems) = mbs_codegen::read("model.yaml", &text) else { panic!("{method}") };
        let said = problems.render("model.yaml", &text);
        let wanted = format!(
            "objective `sigma` names `projection_impulse(…)`, but there are no projections under `{name}`"
        );
        assert!(said.contains(&wanted) && said.contains("take `formulation: ali3p`"), "{said}");
    }
    let model = read(&text);
    let interpreted = Interpreted::new(program(&model));
    let simulation = Simulation {
        integrator: Integrator::Rk4,
        formulation: Formulation::Index1,
        ..model.simulation.clone()
    };
    let start = gradient::start(&interpreted, &simulation).expect("a start");
    let method = start.method(&interpreted, &simulation);
    let go_on = |_: gradient::Moment<'_>| ControlFlow::Continue(());
    let direct = gradient::run(&interpreted, &method, &simulation, start.clone(), go_on).map(|_| ());
    let back = adjoint::run(&interpreted, &method, &simulation, start, MEMORY, |_| ControlFlow::Continue(()));
    for found in [direct, back.map(|_| ())] {
        assert!(matches!(found, Err(StepError::Unsupported { .. })), "{found:?}");
    }
}
