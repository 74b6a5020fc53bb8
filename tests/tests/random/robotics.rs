//! What identification, control and optimisation ask for, on random trees of all joint types: against inverse dynamics, sums over
//! bodies, forces written in the model, and complex steps.

use mbs_codegen::bundle::interpret::Arguments;
use mbs_codegen::graph::Complex;
use mbs_codegen::kinematics::ReferencePoint;
use mbs_codegen::model::Model;
use mbs_codegen::program::{BundleKind, Options, Pairs, Program};
use mbs_codegen::symbols::Group;
use mbs_tests::differentiated::{everything, parametrised};
use mbs_tests::instant::{Instant, STEP, call, complex, condition, derivative, error, largest};
use mbs_tests::random_model::{Random, Shape, random_model};

const TREES: u64 = 80;

/// Rounding of what is summed over a tree, relative to the block.
const EXACT: f64 = 1e-12;

fn read(text: &str) -> Model {
    let read = mbs_codegen::read("random.yaml", text);
    read.unwrap_or_else(|d| panic!("{}\n{text}", d.render("random.yaml", text))).0
}

fn with(model: &Model, reference: ReferencePoint, freeze: bool, bundles: &[BundleKind]) -> Program {
    with_options(model, Options { reference, freeze, bundles: bundles.to_vec(), ..Options::default() })
}

fn with_options(model: &Model, options: Options) -> Program {
    let program = Program::new(model, None, &options).expect("a program of moderate size");
    for bundle in &program.bundles {
        mbs_codegen::bundle::verify::verify(bundle).expect("a valid bundle");
    }
    program
}

fn program(text: &str, bundles: &[BundleKind]) -> Program {
    with(&read(text), ReferencePoint::Origin, false, bundles)
}

fn tree(seed: u64) -> String {
    random_model(seed, Shape { bodies: 1 + (seed % 7) as usize, dissipative: true })
}

/// The model without its forces.
fn unforced(text: &str) -> String {
    let (before, rest) = text.split_once("forces:\n").expect("forces");
    let (_, after) = rest.split_once("outputs:\n").expect("outputs");
    format!("{before}outputs:\n{after}")
}

/// The references and kinds of parameters in turn.
fn choices(seed: u64) -> (ReferencePoint, bool) {
    let reference =
        if seed.is_multiple_of(2) { ReferencePoint::Origin } else { ReferencePoint::CentreOfMass };
    (reference, (seed / 2).is_multiple_of(2))
}

/// A x for a matrix by columns.
fn times(a: &[f64], x: &[f64]) -> Vec<f64> {
    let rows = a.len() / x.len().max(1);
    (0..rows).map(|i| x.iter().enumerate().map(|(j, x)| a[j * rows + i] * x).sum()).collect()
}

fn sum(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    std::array::from_fn(|i| a[(i + 1) % 3] * b[(i + 2) % 3] - a[(i + 2) % 3] * b[(i + 1) % 3])
}

fn three(values: &[f64], i: usize) -> [f64; 3] {
    std::array::from_fn(|k| values[3 * i + k])
}

fn close(what: &str, seed: u64, a: &[f64], b: &[f64], tolerance: f64) {
    let e = error(a, b);
    assert!(e < tolerance, "seed {seed}, {what}: {e:e}\n{a:?}\n{b:?}");
}

/// dz along the tangent of each velocity: N e_j.
fn tangents(at: &Instant<'_, f64>) -> Vec<Vec<f64>> {
    let n = at.nv();
    let rates = |j: usize| {
        let mut moving = at.clone();
        moving.v = (0..n).map(|i| f64::from(u8::from(i == j))).collect();
        moving.call("forward_dynamics").remove(0)
    };
    (0..n).map(rates).collect()
}

#[test]
fn inverse_dynamics_is_linear_in_the_inertial_parameters() {
    let mut pairs = 0;
    for seed in 0..TREES {
        let (reference, freeze) = choices(seed);
        let bundles = [BundleKind::Regressor, BundleKind::InertialParameters, BundleKind::InverseDynamics];
        let program = with(&read(&unforced(&tree(seed))), reference, freeze, &bundles);
        let at = Instant::<f64>::new(&program, &mut Random::new(seed));
        let (y, pi) = (at.call("regressor").remove(0), at.call("inertial_parameters").remove(0));
        let mut product = vec![0.0; at.nv()];
        let places = &program.structure.regressor;
        assert_eq!((y.len(), pi.len()), (10 * places.len(), 10 * program.bodies.len()));
        for (block, &(j, body)) in y.chunks(10).zip(places) {
            let own = &pi[10 * body as usize..][..10];
            product[j as usize] += block.iter().zip(own).map(|(y, p)| y * p).sum::<f64>();
        }
        close("Y π", seed, &at.call("inverse_dynamics")[0], &product, EXACT);
        pairs += places.len();
        // A velocity stands once with each body.
        let mut sorted = places.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), places.len());
    }
    assert!(pairs > 500, "{pairs}");
}

#[test]
fn gravity_and_velocity_terms_are_parts_of_inverse_dynamics() {
    for seed in 0..TREES {
        let (reference, freeze) = choices(seed);
        let bundles = [
            BundleKind::GravityTerms,
            BundleKind::CoriolisTerms,
            BundleKind::InverseDynamics,
            BundleKind::MassMatrix,
            BundleKind::Energy,
            BundleKind::ForwardDynamics,
        ];
        let program = with(&read(&unforced(&tree(seed))), reference, freeze, &bundles);
        let at = Instant::<f64>::new(&program, &mut Random::new(seed));
        let [gravity, coriolis, tau] =
            ["gravity_terms", "coriolis_terms", "inverse_dynamics"].map(|name| at.call(name).remove(0));
        let mut still = at.clone();
        still.vd.fill(0.0);
        let moving = still.call("inverse_dynamics").remove(0);
        still.v.fill(0.0);
        close("g", seed, &gravity, &still.call("inverse_dynamics")[0], EXACT);
        let scale = largest(&moving).max(largest(&gravity));
        for ((c, g), both) in coriolis.iter().zip(&gravity).zip(&moving) {
            assert!((c + g - both).abs() < EXACT * scale, "seed {seed}: {c} {g} {both}");
        }
        let inertia = times(&at.call("mass_matrix")[0], &at.vd);
        close("M vd + c + g", seed, &sum(&sum(&inertia, &coriolis), &gravity), &tau, EXACT);
        // g = ∂V/∂θ
        let rest = vec![0.0; at.nv()];
        let slope = |along: Vec<f64>| derivative(&complex(&at, &along, &rest).call("energy")[0])[1];
        let slopes: Vec<f64> = tangents(&at).into_iter().map(slope).collect();
        close("V_θ", seed, &gravity, &slopes, EXACT);
    }
}

/// The model with a point `c` at each centre of mass, and the axes and angular velocities of the bodies as outputs.
fn observed(text: &str) -> String {
    let (mut out, mut com, mut bodies) = (String::new(), String::new(), 0);
    for line in text.lines() {
        if let Some(at) = line.trim_start().strip_prefix("com: ") {
            com = at.into();
        }
        let line = line.replace("points: {tip:", &format!("points: {{c: {com}, tip:"));
        if line.contains("mark: [") {
            bodies += 1;
        }
        out += &line.replace("{mark:", "{ex: [1, 0, 0], ey: [0, 1, 0], ez: [0, 0, 1], mark:");
        out.push('\n');
    }
    let (before, _) = out.split_once("outputs:\n").expect("outputs");
    let mut out = format!("{before}outputs:\n");
    for i in 0..bodies {
        out += &format!(
            "  x{i}: dir(b{i}.ex)\n  y{i}: dir(b{i}.ey)\n  z{i}: dir(b{i}.ez)\n  w{i}: omega(b{i})\n"
        );
    }
    out
}

/// Σ over the bodies: m, m r, m v, and Σ (r × m v + J ω) about the world's origin.
fn sums(at: &Instant<'_, f64>) -> (f64, [f64; 3], [f64; 3], [f64; 3]) {
    let [pi, outputs] = ["inertial_parameters", "outputs"].map(|name| at.call(name).remove(0));
    let markers = at.call("markers");
    let (mut mass, mut moment, mut linear, mut angular) = (0.0, [0.0; 3], [0.0; 3], [0.0; 3]);
    let names = &at.program.markers;
    for (i, pi) in pi.chunks(10).enumerate() {
        let point = names.iter().position(|name| *name == format!("b{i}.c")).expect("the centre of mass");
        let (r, v) = (three(&markers[0], point), three(&markers[1], point));
        let axes: [[f64; 3]; 3] = std::array::from_fn(|k| three(&outputs, 4 * i + k));
        let omega = three(&outputs, 4 * i + 3);
        // J about the centre of mass: that about the origin less m (c·c I − c cᵀ)
        let (m, c) = (pi[0], [1, 2, 3].map(|k| pi[k] / pi[0]));
        let square: f64 = c.iter().map(|c| c * c).sum();
        let own: [f64; 3] = std::array::from_fn(|k| (0..3).map(|i| axes[k][i] * omega[i]).sum());
        let element = |k: usize, l: usize| {
            let place = if k == l { 4 + k } else { 6 + k + l };
            pi[place] - m * (if k == l { square } else { 0.0 } - c[k] * c[l])
        };
        let spin: [f64; 3] = std::array::from_fn(|k| (0..3).map(|l| element(k, l) * own[l]).sum());
        let orbit = cross(r, v);
        mass += m;
        for i in 0..3 {
            moment[i] += m * r[i];
            linear[i] += m * v[i];
            angular[i] += m * orbit[i] + (0..3).map(|k| axes[k][i] * spin[k]).sum::<f64>();
        }
    }
    (mass, moment, linear, angular)
}

#[test]
fn momentum_about_the_centre_of_mass() {
    for seed in 0..TREES {
        let (reference, _) = choices(seed);
        let bundles = [
            BundleKind::Centroidal,
            BundleKind::InertialParameters,
            BundleKind::Markers,
            BundleKind::Outputs,
            BundleKind::ForwardDynamics,
        ];
        let program = with(&read(&observed(&tree(seed))), reference, false, &bundles);
        let at = Instant::<f64>::new(&program, &mut Random::new(seed));
        let (mass, moment, linear, angular) = sums(&at);
        let all = at.call("centroidal");
        let [com, com_velocity, com_jacobian, momentum, matrix, bias] = &all[..] else {
            panic!("six results")
        };
        let expected = moment.map(|x| x / mass);
        close("centre of mass", seed, com, &expected, EXACT);
        let orbit = cross(expected, linear);
        let about: [f64; 3] = std::array::from_fn(|i| angular[i] - orbit[i]);
        let scale = largest(&angular).max(largest(&orbit)).max(largest(&linear));
        if scale == 0.0 {
            continue;
        }
        for (ours, theirs) in momentum.iter().zip(linear.iter().chain(&about)) {
            assert!(
                (ours - theirs).abs() < EXACT * scale,
                "seed {seed}: {momentum:?}, {linear:?}, {about:?}"
            );
        }
        // p = m v_com, v_com = J v, h = A v
        let carried: Vec<f64> = com_velocity.iter().map(|v| mass * v).collect();
        close("p = m v", seed, &carried, &momentum[..3], EXACT);
        close("J v", seed, com_velocity, &times(com_jacobian, &at.v), EXACT);
        close("A v", seed, momentum, &times(matrix, &at.v), EXACT);
        // in time, along the motion
        let zd = at.call("forward_dynamics").remove(0);
        let moved = complex(&at, &zd, &at.vd).call("centroidal");
        close("d/dt com", seed, com_velocity, &derivative(&moved[0]), EXACT);
        let rate = sum(&times(matrix, &at.vd), bias);
        close("dh/dt", seed, &rate, &derivative(&moved[3]), EXACT);
    }
}

#[test]
fn jacobians_of_markers_change_as_their_rates_say() {
    for seed in 0..TREES {
        let (reference, freeze) = choices(seed);
        let bundles = [
            BundleKind::MarkerJacobianRates,
            BundleKind::MarkerJacobians,
            BundleKind::Markers,
            BundleKind::ForwardDynamics,
        ];
        let program = with(&read(&tree(seed)), reference, freeze, &bundles);
        let at = Instant::<f64>::new(&program, &mut Random::new(seed));
        let (zd, jacobians) = (at.call("forward_dynamics").remove(0), at.call("marker_jacobians").remove(0));
        let results = at.call("marker_jacobian_rates");
        let (rates, bias) = (&results[0], &results[1]);
        let moved = derivative(&complex(&at, &zd, &at.vd).call("marker_jacobians")[0]);
        close("dJ/dt", seed, rates, &moved, EXACT);
        if at.nv() == 0 {
            continue;
        }
        close("Jd v", seed, bias, &times(rates, &at.v), EXACT);
        let markers = at.call("markers");
        close("J v", seed, &markers[1], &times(&jacobians, &at.v), EXACT);
        close("J vd + Jd v", seed, &markers[2], &sum(&times(&jacobians, &at.vd), bias), EXACT);
    }
}

#[test]
fn wrenches_are_forces_and_torques_of_the_model() {
    let both = [
        BundleKind::InverseDynamics,
        BundleKind::ForwardDynamics,
        BundleKind::InverseDynamicsExternal,
        BundleKind::ForwardDynamicsExternal,
        BundleKind::MassMatrix,
    ];
    for seed in 0..TREES {
        let (reference, freeze) = choices(seed);
        let text = tree(seed).replace("points: {tip:", "points: {o: [0, 0, 0], tip:");
        let bare = with(&read(&text), reference, freeze, &both);
        let mut at = Instant::<f64>::new(&bare, &mut Random::new(seed));
        let mut written = String::new();
        for (i, w) in at.wrenches.chunks(6).enumerate() {
            let list = |w: &[f64]| format!("[{}, {}, {}]", w[0], w[1], w[2]);
            let (force, torque) = (list(&w[..3]), list(&w[3..]));
            written += &format!("  f{i}: {{type: force, at: b{i}.o, value: {force}}}\n");
            written += &format!("  t{i}: {{type: torque, on: b{i}, value: {torque}}}\n");
        }
        let loaded = text.replace("forces:\n", &format!("forces:\n{written}"));
        let loaded = with(&read(&loaded), reference, freeze, &both[..2]);
        let there = Instant { program: &loaded, ..Instant::<f64>::new(&loaded, &mut Random::new(seed)) };
        let there = Instant { vd: at.vd.clone(), t: at.t, u: at.u.clone(), ..there };
        assert_eq!((&at.z, &at.v), (&there.z, &there.v));
        if at.nv() == 0 {
            continue;
        }
        let tau = at.call("inverse_dynamics_external").remove(0);
        let expected = there.call("inverse_dynamics").remove(0);
        close("inverse dynamics", seed, &tau, &expected, EXACT);
        // Not what it is without them.
        assert!(error(&tau, &at.call("inverse_dynamics")[0]) > 1e-6, "seed {seed}");
        let tolerance = 1e-13 * condition(&at.call("mass_matrix")[0], at.nv()).max(10.0);
        let (tau_before, vd_before) = (std::mem::replace(&mut at.tau, vec![0.0; tau.len()]), at.vd.clone());
        let (ours, theirs) = (at.call("forward_dynamics_external"), there.call("forward_dynamics"));
        assert_eq!(ours[0], theirs[0]);
        close("forward dynamics", seed, &ours[1], &theirs[1], tolerance);
        // One undoes the other.
        at.tau = tau;
        close("vd", seed, &at.call("forward_dynamics_external")[1], &vd_before, 10.0 * tolerance);
        at.tau = tau_before;
        at.vd = at.call("forward_dynamics_external").remove(1);
        let again = at.call("inverse_dynamics_external").remove(0);
        at.vd.fill(0.0);
        let scale = largest(&at.call("inverse_dynamics_external")[0]).max(largest(&at.tau));
        let difference = again.iter().zip(&at.tau).fold(0.0f64, |m, (a, b)| m.max((a - b).abs()));
        assert!(difference < tolerance * scale, "seed {seed}: {difference:e} of {scale:e}");
    }
}

/// All that the model is differentiated by, as a displaced instant each.
fn displaced<'a>(at: &Instant<'a, f64>, model: &Model) -> Vec<Instant<'a, Complex>> {
    let program = at.program;
    let none = (vec![0.0; at.z.len()], vec![0.0; at.nv()]);
    assert_eq!(program.seeds.len(), model.sensitivity.len());
    let one = |&(group, place): &(Group, u32)| {
        let mut moved = complex(at, &none.0, &none.1);
        let mut parameters: Vec<Complex> =
            program.defaults().into_iter().map(|p| Complex::new(p, 0.0)).collect();
        match group {
            Group::U => moved.u[place as usize].im = STEP,
            _ => parameters[place as usize].im = STEP,
        }
        let arguments = Arguments::new().with(Group::Parameters, &parameters);
        moved.prepared = call(program, "prepare", &arguments).remove(0);
        moved
    };
    program.seeds.iter().map(one).collect()
}

#[test]
fn derivatives_by_parameters_and_of_accelerations_are_exact() {
    let bundles = [
        BundleKind::InverseDynamics,
        BundleKind::InverseDynamicsParameters,
        BundleKind::ForwardDynamics,
        BundleKind::ForwardDynamicsExternal,
        BundleKind::ForwardDynamicsDerivatives,
        BundleKind::MassMatrixInverseAction,
        BundleKind::MassMatrix,
    ];
    let mut compared = 0;
    for seed in 0..TREES / 2 {
        let (reference, _) = choices(seed);
        let mut random = Random::new(seed);
        let text = random_model(seed, Shape { bodies: 1 + (seed % 5) as usize, dissipative: true });
        let mut model = read(&parametrised(&text, 6, &mut random));
        model.sensitivity = everything(&model);
        let pairs = if (seed / 2).is_multiple_of(2) { Pairs::Flat } else { Pairs::Rolled };
        let options = Options { reference, bundles: bundles.to_vec(), pairs, ..Options::default() };
        let program = with_options(&model, options);
        let mut at = Instant::<f64>::new(&program, &mut random);
        let n = at.nv();
        if n == 0 {
            continue;
        }
        let moved = displaced(&at, &model);
        // ∂tau/∂ρ
        let mut by_parameters = vec![0.0; n * moved.len()];
        let values = at.call("inverse_dynamics_parameters").remove(0);
        let places = &program.structure.derivatives.inverse_dynamics;
        assert_eq!(values.len(), places.len());
        for (value, &(i, k)) in values.iter().zip(places) {
            by_parameters[k as usize * n + i as usize] = *value;
        }
        let of = |bundle: &str, result: usize, moved: &[Instant<'_, Complex>]| -> Vec<f64> {
            moved.iter().flat_map(|moved| derivative(&moved.call(bundle)[result])).collect()
        };
        close("tau_ρ", seed, &by_parameters, &of("inverse_dynamics", 0, &moved), EXACT);

        // ∂vd/∂(θ, v, tau, ρ)
        at.wrenches.fill(0.0);
        let m = at.call("mass_matrix").remove(0);
        let tolerance = 1e-13 * condition(&m, n).max(10.0);
        let all = at.call("forward_dynamics_derivatives");
        let [vd, vd_z, vd_v, vd_tau, vd_rho, pivots] = &all[..] else { panic!("six results") };
        assert!(pivots.iter().all(|pivot| *pivot > 0.0));
        close("vd", seed, vd, &at.call("forward_dynamics_external")[1], tolerance);
        let unit = |j: usize| (0..n).map(|i| f64::from(u8::from(i == j))).collect::<Vec<_>>();
        let (still_z, still) = (vec![0.0; at.z.len()], vec![0.0; n]);
        let name = "forward_dynamics_external";
        let along: Vec<_> = tangents(&at).iter().map(|dz| complex(&at, dz, &still)).collect();
        close("vd_z", seed, vd_z, &of(name, 1, &along), tolerance);
        let faster: Vec<_> = (0..n).map(|j| complex(&at, &still_z, &unit(j))).collect();
        close("vd_v", seed, vd_v, &of(name, 1, &faster), tolerance);
        let pushed: Vec<_> = (0..n)
            .map(|j| {
                let mut pushed = complex(&at, &still_z, &still);
                pushed.tau[j].im = STEP;
                pushed
            })
            .collect();
        close("vd_tau", seed, vd_tau, &of(name, 1, &pushed), tolerance);
        let changed: Vec<_> = displaced(&at, &model);
        close("vd_ρ", seed, vd_rho, &of(name, 1, &changed), tolerance);
        compared += vd_rho.len();

        // M⁻¹ is symmetric, and M x = tau
        for i in 0..n {
            for j in 0..i {
                assert_eq!(vd_tau[i * n + j], vd_tau[j * n + i], "seed {seed}");
            }
        }
        let x = at.call("mass_matrix_inverse_action").remove(0);
        close("M x", seed, &times(&m, &x), &at.tau, tolerance);
        close("M⁻¹ tau", seed, &times(vd_tau, &at.tau), &x, tolerance);
    }
    assert!(compared > 1000, "{compared}");
}

/// What solves with the tree's mass matrix has no meaning under constraints and does not exist there; the rest does.
#[test]
fn constrained_mechanisms_have_what_has_a_meaning() {
    let text = std::fs::read_to_string(format!("{}/../models/crank_rocker.yaml", env!("CARGO_MANIFEST_DIR")));
    let text = text.expect("a shipped model");
    let program = program(&text, &BundleKind::ROBOTICS);
    let gone = BundleKind::UNCONSTRAINED;
    assert_eq!(program.absent(), gone);
    for kind in BundleKind::ROBOTICS {
        assert_eq!(program.bundle(kind.name()).is_none(), gone.contains(&kind), "{}", kind.name());
    }
}

#[test]
fn loops_compute_what_flat_code_computes() {
    let bundles = [
        BundleKind::MassMatrix,
        BundleKind::InverseDynamicsDerivatives,
        BundleKind::ForwardDynamicsDerivatives,
    ];
    let mut pairs_of = 0;
    for seed in 0..TREES / 2 {
        let mut random = Random::new(seed);
        // Some larger than a block of the loops.
        let text = random_model(seed, Shape { bodies: 1 + (seed % 12) as usize, dissipative: true });
        let mut model = read(&parametrised(&text, 6, &mut random));
        model.sensitivity = everything(&model);
        let [flat, rolled] = [Pairs::Flat, Pairs::Rolled].map(|pairs| {
            with_options(&model, Options { bundles: bundles.to_vec(), pairs, ..Options::default() })
        });
        let at = Instant::<f64>::new(&flat, &mut Random::new(seed));
        let again = Instant::<f64>::new(&rolled, &mut Random::new(seed));
        if at.nv() == 0 {
            continue;
        }
        let m = at.call("mass_matrix").remove(0);
        close("mass_matrix", seed, &again.call("mass_matrix")[0], &m, EXACT);
        for kind in &bundles[1..] {
            let solved = *kind == BundleKind::ForwardDynamicsDerivatives;
            let tolerance = if solved { 1e-13 * condition(&m, at.nv()).max(10.0) } else { EXACT };
            let (expected, found) = (at.call(kind.name()), again.call(kind.name()));
            for (result, (expected, found)) in expected.iter().zip(&found).enumerate() {
                close(&format!("{} {result}", kind.name()), seed, found, expected, tolerance);
            }
        }
        pairs_of = pairs_of.max(at.nv());
    }
    assert!(pairs_of > 16, "{pairs_of} velocities at most");
}
