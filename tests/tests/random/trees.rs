//! Random trees through the interpreter: the formulations against each other and against independent
//! derivations (polarised kinetic energy, Lagrange's equations by complex step, energy balance).

use mbs_codegen::graph::Complex;
use mbs_codegen::kinematics::ReferencePoint;
use mbs_codegen::program::{BundleKind, Options, Pairs, Program};
use mbs_tests::instant::{Instant, STEP, complex, condition, derivative, error, largest};
use mbs_tests::random_model::{Random, Shape, random_model};

const TREES: u64 = 300;

fn program(text: &str, reference: ReferencePoint) -> Program {
    with_pairs(text, reference, Pairs::Auto)
}

fn with_pairs(text: &str, reference: ReferencePoint, pairs: Pairs) -> Program {
    let (model, _) = mbs_codegen::read("random.yaml", text)
        .unwrap_or_else(|diagnostics| panic!("{}\n{text}", diagnostics.render("random.yaml", text)));
    let options = Options { reference, bundles: BundleKind::TREE.to_vec(), pairs, ..Options::default() };
    let program = Program::new(&model, None, &options).expect("a program of moderate size");
    for bundle in &program.bundles {
        mbs_codegen::bundle::verify::verify(bundle).expect("a valid bundle");
    }
    program
}

fn shape(seed: u64, dissipative: bool) -> Shape {
    Shape { bodies: 1 + (seed % 9) as usize, dissipative }
}

#[test]
fn both_reference_points_and_both_recursions_agree() {
    for seed in 0..TREES {
        let text = random_model(seed, shape(seed, true));
        let programs = [ReferencePoint::Origin, ReferencePoint::CentreOfMass].map(|r| program(&text, r));
        let [a, b] = [0, 1].map(|i| Instant::<f64>::new(&programs[i], &mut Random::new(seed)));
        let n = a.nv();
        if n == 0 {
            continue;
        }
        let m = a.call("mass_matrix").remove(0);
        let cond = condition(&m, n);
        let tolerance = 1e-13 * cond.max(10.0);
        for bundle in [
            "mass_matrix",
            "mass_matrix_coordinates",
            "inverse_dynamics",
            "energy",
            "markers",
            "marker_jacobians",
            "outputs",
        ] {
            for (x, y) in a.call(bundle).iter().zip(&b.call(bundle)) {
                // tau = M vd − Q: where the two cancel, rounding is that of M vd.
                let terms = if bundle == "inverse_dynamics" { largest(&m) * largest(&a.vd) } else { 0.0 };
                let cancelled = (terms / largest(x).max(f64::MIN_POSITIVE)).max(1.0);
                assert!(error(x, y) < 1e-12 * cancelled, "seed {seed}, {bundle}: {:e}", error(x, y));
            }
        }
        let semi = a.call("forward_dynamics");
        for (who, other) in [
            ("com", b.call("forward_dynamics")),
            ("recursive", a.call("forward_dynamics_recursive")),
            ("com recursive", b.call("forward_dynamics_recursive")),
        ] {
            assert_eq!(semi[0], other[0], "zd");
            let e = error(&semi[1], &other[1]);
            assert!(e < tolerance, "seed {seed}, {who}: {e:e}, condition {cond:e}\n{text}");
        }
        // inverse dynamics of forward dynamics is zero
        let mut moving = a.clone();
        moving.vd = semi[1].clone();
        let tau = moving.call("inverse_dynamics").remove(0);
        moving.vd = vec![0.0; n];
        let scale = largest(&moving.call("inverse_dynamics")[0]);
        assert!(largest(&tau) < tolerance * scale, "seed {seed}: {:e} of {scale:e}", largest(&tau));
    }
}

#[test]
fn mass_matrix_is_the_kinetic_energy() {
    for seed in 0..TREES {
        let text = random_model(seed, shape(seed, true));
        let program = program(&text, ReferencePoint::Origin);
        let mut at = Instant::<f64>::new(&program, &mut Random::new(seed));
        let (n, nq) = (at.nv(), at.z.len());
        let m = at.call("mass_matrix").remove(0);
        for i in 0..n {
            for j in 0..i {
                assert_eq!(m[i * n + j], m[j * n + i], "seed {seed}: not symmetric");
            }
        }
        if n > 0 {
            condition(&m, n);
        }
        // T = ½ v·M v = ½ zd·M_z zd, for Euler parameters of any length
        let kinetic = at.call("energy")[0][0];
        let half = |m: &[f64], v: &[f64]| -> f64 {
            let n = v.len();
            0.5 * (0..n * n).map(|k| v[k / n] * m[k] * v[k % n]).sum::<f64>()
        };
        let zd = at.call("forward_dynamics").remove(0);
        let mz = at.call("mass_matrix_coordinates").remove(0);
        for other in [half(&m, &at.v), half(&mz, &zd)] {
            assert!((kinetic - other).abs() <= 1e-12 * kinetic.abs(), "seed {seed}: {kinetic} {other}");
        }
        // M_ij = T(e_i + e_j) − T(e_i) − T(e_j): the velocities of the bodies alone
        let mut energy_of = |v: Vec<f64>| {
            at.v = v;
            at.call("energy")[0][0]
        };
        let unit = |i: usize| (0..n).map(|k| f64::from(u8::from(k == i))).collect::<Vec<_>>();
        let singles: Vec<f64> = (0..n).map(|i| energy_of(unit(i))).collect();
        let mut polarised = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..n {
                let both: Vec<f64> = unit(i).iter().zip(unit(j)).map(|(a, b)| a + b).collect();
                polarised[i * n + j] = energy_of(both) - singles[i] - singles[j];
            }
        }
        if n > 0 {
            assert!(error(&m, &polarised) < 1e-13, "seed {seed}: {:e}", error(&m, &polarised));
        }
        // Euler parameters are null vectors of M in coordinate form
        for &first in &program.euler_parameters {
            for row in 0..nq {
                let product: f64 = (0..4).map(|k| mz[(first + k) * nq + row] * at.z[first + k]).sum();
                assert!(product.abs() < 1e-12 * largest(&mz), "seed {seed}: M p = {product:e}");
            }
        }
    }
}

#[test]
fn energy_changes_by_the_power_of_the_other_forces() {
    for seed in 0..TREES {
        let text = random_model(seed, shape(seed, true));
        let program = program(&text, ReferencePoint::Origin);
        let at = Instant::<f64>::new(&program, &mut Random::new(seed));
        let rates = at.call("forward_dynamics");
        let mut moving = complex(&at, &rates[0], &rates[1]);
        moving.t = Complex::new(at.t, STEP);
        let energy = moving.call("energy").remove(0);
        let change = derivative(&energy[..2]);
        let power = energy[2].re;
        let scale = change[0].abs() + change[1].abs() + power.abs();
        let m = at.call("mass_matrix").remove(0);
        let cond = if at.nv() > 0 { condition(&m, at.nv()) } else { 1.0 };
        let e = (change[0] + change[1] - power).abs() / scale.max(1e-300);
        assert!(
            e < 1e-13 * cond.max(10.0),
            "seed {seed}: {change:?} {power}, {e:e}, condition {cond:e}\n{text}"
        );
    }
}

#[test]
fn markers_move_as_their_positions_say() {
    for seed in 0..TREES {
        let text = random_model(seed, shape(seed, true));
        let program = program(&text, ReferencePoint::Origin);
        let at = Instant::<f64>::new(&program, &mut Random::new(seed));
        let zd = at.call("forward_dynamics").remove(0);
        let markers = at.call("markers");
        let moved = complex(&at, &zd, &at.vd).call("markers");
        assert!(error(&markers[1], &derivative(&moved[0])) < 1e-13, "seed {seed}: velocities");
        assert!(error(&markers[2], &derivative(&moved[1])) < 1e-12, "seed {seed}: accelerations");
        let jacobians = at.call("marker_jacobians").remove(0);
        let rows = markers[0].len();
        let product: Vec<f64> = (0..rows)
            .map(|i| at.v.iter().enumerate().map(|(j, v)| jacobians[j * rows + i] * v).sum())
            .collect();
        assert!(error(&markers[1], &product) < 1e-13, "seed {seed}: Jacobians");
    }
}

/// M_z zdd + d/dt(M_z) zd − ½ ∂(zd·M_z zd)/∂z + ∂V/∂z = Lᵀ tau, every derivative by complex step: an
/// independent derivation of all velocity terms, with Euler parameters of any length.
#[test]
fn inverse_dynamics_satisfies_lagranges_equations() {
    for seed in 0..TREES {
        let text = random_model(seed, shape(seed, false));
        let program = program(&text, ReferencePoint::Origin);
        let at = Instant::<f64>::new(&program, &mut Random::new(seed));
        let nq = at.z.len();
        if nq == 0 {
            continue;
        }
        let zd = at.call("forward_dynamics").remove(0);
        // zdd = N vd + d/dt(N) v: the rate of zd along the motion
        let zdd = derivative(&complex(&at, &zd, &at.vd).call("forward_dynamics")[0]);
        let mz = at.call("mass_matrix_coordinates").remove(0);
        let still = vec![0.0; at.nv()];
        let mz_rate = derivative(&complex(&at, &zd, &still).call("mass_matrix_coordinates")[0]);
        let times = |m: &[f64], x: &[f64]| -> Vec<f64> {
            (0..nq).map(|i| (0..nq).map(|j| m[j * nq + i] * x[j]).sum()).collect()
        };
        let (inertia, carried) = (times(&mz, &zdd), times(&mz_rate, &zd));
        let mut lagrange = vec![0.0; nq];
        let mut size: f64 = 0.0;
        for k in 0..nq {
            let unit: Vec<f64> = (0..nq).map(|i| f64::from(u8::from(i == k))).collect();
            let shifted = complex(&at, &unit, &still);
            let slope = derivative(&shifted.call("mass_matrix_coordinates")[0]);
            let centrifugal: f64 = 0.5 * times(&slope, &zd).iter().zip(&zd).map(|(a, b)| a * b).sum::<f64>();
            let conservative = derivative(&shifted.call("energy")[0])[1];
            lagrange[k] = inertia[k] + carried[k] - centrifugal + conservative;
            size = size.max(inertia[k].abs() + carried[k].abs() + centrifugal.abs() + conservative.abs());
        }
        // Lᵀ tau by virtual power: v = L zd, so (Lᵀ tau)_k = ∂(tau·v)/∂zd_k; L from zd = N v by columns
        let tau = at.call("inverse_dynamics").remove(0);
        let expected = transposed_velocity_map(&program, &at.z, &tau);
        let difference = lagrange.iter().zip(&expected).fold(0.0f64, |m, (a, b)| m.max((a - b).abs()));
        assert!(
            difference < 1e-12 * size,
            "seed {seed}: {difference:e} of {size:e}\n{lagrange:?}\n{expected:?}\n{text}"
        );
    }
}

/// ∂tau/∂θ, ∂tau/∂v and M by closed forms, against complex steps of tau.
#[test]
fn inverse_dynamics_derivatives_are_exact() {
    for seed in 0..TREES {
        let text = random_model(seed, shape(seed, true));
        let pairs = if seed.is_multiple_of(2) { Pairs::Flat } else { Pairs::Rolled };
        let program = with_pairs(&text, ReferencePoint::Origin, pairs);
        let at = Instant::<f64>::new(&program, &mut Random::new(seed));
        let n = at.nv();
        if n == 0 {
            continue;
        }
        let derivatives = at.call("inverse_dynamics_derivatives");
        let mut expected = [vec![0.0; n * n], vec![0.0; n * n], vec![0.0; n * n]];
        let still_z = vec![0.0; at.z.len()];
        for j in 0..n {
            let unit: Vec<f64> = (0..n).map(|i| f64::from(u8::from(i == j))).collect();
            // dz = N e_j: the rates at v = e_j
            let mut moving = at.clone();
            moving.v = unit.clone();
            let along = moving.call("forward_dynamics").remove(0);
            let still = vec![0.0; n];
            let column = |instant: Instant<'_, Complex>| derivative(&instant.call("inverse_dynamics")[0]);
            let by_position = column(complex(&at, &along, &still));
            let by_velocity = column(complex(&at, &still_z, &unit));
            let mut pushed = complex(&at, &still_z, &still);
            pushed.vd[j].im = STEP;
            let by_acceleration = column(pushed);
            for (block, column) in expected.iter_mut().zip([by_position, by_velocity, by_acceleration]) {
                block[j * n..(j + 1) * n].copy_from_slice(&column);
            }
        }
        for (name, (a, b)) in ["tau_z", "tau_v", "m"].iter().zip(derivatives.iter().zip(&expected)) {
            assert!(error(a, b) < 1e-12, "seed {seed}, {name}: {:e}\n{a:?}\n{b:?}\n{text}", error(a, b));
        }
    }
}

/// Lᵀ tau with ω = 2 Ḡ pd/|p|², written out independently of the generator.
fn transposed_velocity_map(program: &Program, z: &[f64], tau: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; z.len()];
    let (mut i, mut j) = (0, 0);
    while i < z.len() {
        if program.euler_parameters.contains(&i) {
            let [e0, e1, e2, e3] = [z[i], z[i + 1], z[i + 2], z[i + 3]];
            let s = 2.0 / (e0 * e0 + e1 * e1 + e2 * e2 + e3 * e3);
            let g = [[-e1, e0, e3, -e2], [-e2, -e3, e0, e1], [-e3, e2, -e1, e0]];
            for k in 0..4 {
                out[i + k] = (0..3).map(|r| s * g[r][k] * tau[j + r]).sum();
            }
            i += 4;
            j += 3;
        } else {
            out[i] = tau[j];
            i += 1;
            j += 1;
        }
    }
    out
}
