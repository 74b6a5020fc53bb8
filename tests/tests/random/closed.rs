//! Random mechanisms with loops and constraints through the engine: every matrix against complex steps of the
//! residual and of the constraints, solves against products, the two forms against each other.

#![allow(clippy::needless_range_loop, reason = "matrices are indexed as in their formulas")]

use mbs_codegen::kinematics::ReferencePoint;
use mbs_codegen::program::{BundleKind, Options, Program};
use mbs_codegen::{Request, generate};
use mbs_engine::Interpreted;

use mbs_runtime::formulation::{Ali3p, State};
use mbs_runtime::system::Dims;
use mbs_runtime::{
    At, Complex64, Constrained, ConstrainedDynamics, ConstraintCorrection, InverseDynamics, MassMatrix,
    Motion, Objectives, Outputs, Reactions, Scalar, Stabilisation, StepError, System, Weights,
    euler_parameters,
};
use mbs_tests::closed;
use mbs_tests::fuzz::mutate::mutate;
use mbs_tests::random_closed::{Shape, random_closed};
use mbs_tests::random_model::Random;

/// How many mechanisms are tried; `MBS_RANDOM_CLOSED=1000` tries more.
fn mechanisms(few: u64) -> u64 {
    std::env::var("MBS_RANDOM_CLOSED").map_or(few, |text| text.parse().expect("a whole number"))
}

/// Of complex steps: its square is nothing.
const STEP: f64 = 1e-40;

fn shape(seed: u64) -> Shape {
    Shape {
        bodies: 1 + (seed % 5) as usize,
        closures: (seed / 2 % 3) as usize,
        constraints: 1 + (seed / 3 % 4) as usize,
        nonholonomic: seed % 3 == 1,
        runs: false,
    }
}

fn program(text: &str, reference: ReferencePoint, bundles: &[BundleKind]) -> Program {
    let (model, _) = mbs_codegen::read("random.yaml", text)
        .unwrap_or_else(|problems| panic!("{}\n{text}", problems.render("random.yaml", text)));
    let options = Options { reference, bundles: bundles.to_vec(), ..Options::default() };
    let program = Program::new(&model, None, &options).unwrap_or_else(|error| panic!("{error}\n{text}"));
    for bundle in &program.bundles {
        mbs_codegen::bundle::verify::verify(bundle).expect("a valid bundle");
    }
    program
}

/// A random mechanism, in two kinds of numbers.
struct Mechanism {
    seed: u64,
    text: String,
    model: Interpreted,
    complex: Interpreted<Complex64>,
}

impl Mechanism {
    fn new(seed: u64, bundles: &[BundleKind]) -> Self {
        let text = random_closed(seed, shape(seed));
        let program = program(&text, ReferencePoint::Origin, bundles);
        let (model, complex) = (Interpreted::new(program.clone()), Interpreted::new(program));
        Mechanism { seed, text, model, complex }
    }

    /// Both are one block; they agree to a part of its largest entry.
    fn same(&self, what: &str, a: &[f64], b: &[f64]) {
        self.close(what, a, b, 1e-12 * largest(a).max(largest(b)));
    }

    fn close(&self, what: &str, a: &[f64], b: &[f64], tolerance: f64) {
        let Mechanism { seed, text, .. } = self;
        assert_eq!(a.len(), b.len(), "{what}");
        for (k, (x, y)) in a.iter().zip(b).enumerate() {
            assert!(
                (x - y).abs() <= tolerance,
                "seed {seed}, {what}, entry {k}: {x:e} is not {y:e} ({:e} of {tolerance:e})\n{text}",
                (x - y).abs()
            );
        }
    }
}

/// Anything of an instant that a derivative may be taken by.
#[derive(Clone)]
struct Instant<S> {
    t: S,
    z: Vec<S>,
    zd: Vec<S>,
    zdd: Vec<S>,
    u: Vec<S>,
    lambda: Vec<S>,
}

impl Instant<f64> {
    /// Away from the start and from every constraint, Euler parameters not of unit length.
    fn random(model: &Interpreted, random: &mut Random) -> Self {
        let d = model.dims();
        let mut z = model.start_state()[..d.nq].to_vec();
        for z in &mut z {
            *z += random.uniform(-0.2, 0.2);
        }
        for &first in model.euler_parameters() {
            let length = random.uniform(0.6, 1.7);
            z[first..first + 4].iter_mut().for_each(|e| *e *= length);
        }
        let mut some = |n: usize, size: f64| (0..n).map(|_| random.uniform(-size, size)).collect::<Vec<_>>();
        let (zd, zdd, u, lambda) = (some(d.nq, 1.0), some(d.nq, 3.0), some(d.nu, 1.0), some(d.rows(), 2.0));
        Instant { t: random.uniform(0.2, 2.8), z, zd, zdd, u, lambda }
    }

    fn complex(&self) -> Instant<Complex64> {
        let lift = |x: &[f64]| x.iter().map(|&x| Complex64::new(x, 0.0)).collect::<Vec<_>>();
        Instant {
            t: Complex64::new(self.t, 0.0),
            z: lift(&self.z),
            zd: lift(&self.zd),
            zdd: lift(&self.zdd),
            u: lift(&self.u),
            lambda: lift(&self.lambda),
        }
    }
}

impl<S: Scalar> Instant<S> {
    fn motion(&self) -> Motion<'_, S> {
        Motion { t: self.t, z: &self.z, zd: &self.zd, zdd: &self.zdd, u: &self.u }
    }

    fn residual(&self, model: &Interpreted<S>) -> (Vec<S>, Vec<S>) {
        let d = model.dims();
        let (mut r, mut phi) = (vec![S::ZERO; d.nq], vec![S::ZERO; d.rows()]);
        let mut w = vec![S::ZERO; d.workspace];
        model.residual(self.motion(), &self.lambda, &mut w, &mut r, &mut phi).expect("residual");
        (r, phi)
    }

    fn rates(&self, model: &Interpreted<S>) -> Vec<S> {
        let d = model.dims();
        let (mut phid, mut w) = (vec![S::ZERO; d.rows()], vec![S::ZERO; d.workspace]);
        model.constraint_rates(self.motion(), &mut w, &mut phid).expect("rates");
        phid
    }

    fn accelerations(&self, model: &Interpreted<S>) -> Vec<S> {
        let d = model.dims();
        let (mut phidd, mut w) = (vec![S::ZERO; d.rows()], vec![S::ZERO; d.workspace]);
        model.constraint_accelerations(self.motion(), &mut w, &mut phidd).expect("accelerations");
        phidd
    }
}

/// The derivative of what `of` returns when an instant moves as `along` says.
fn derivative<T>(
    at: &Instant<f64>,
    along: impl Fn(&mut Instant<Complex64>),
    of: impl Fn(&Instant<Complex64>) -> T,
) -> T {
    let mut moved = at.complex();
    along(&mut moved);
    of(&moved)
}

fn imaginary(x: &[Complex64]) -> Vec<f64> {
    x.iter().map(|x| x.im / STEP).collect()
}

fn add(to: &mut Complex64, x: f64) {
    to.im += x * STEP;
}

/// The blocks of the leading matrix, dense by columns.
struct Dense {
    w: Vec<f64>,
    phi_z: Vec<f64>,
    a: Vec<f64>,
    a_newton: Vec<f64>,
}

fn dense(model: &Interpreted, matrix: &[f64]) -> Dense {
    let d = model.dims();
    let pattern = model.pattern();
    let (h, n) = (d.n_holonomic + d.n_normalisation, d.n_nonholonomic);
    assert_eq!(
        matrix.len(),
        pattern.tangent.len() + pattern.holonomic.len() + 2 * pattern.nonholonomic.len() + d.rows()
    );
    let mut entries = matrix.iter();
    let mut fill = |places: &[(u32, u32)], rows: usize| {
        assert!(places.windows(2).all(|pair| pair[0] < pair[1]), "sorted, and no place twice");
        let mut block = vec![0.0; rows * d.nq];
        for &(i, j) in places {
            block[j as usize * rows + i as usize] = *entries.next().expect("an entry");
        }
        block
    };
    Dense {
        w: fill(pattern.tangent, d.nq),
        phi_z: fill(pattern.holonomic, h),
        a: fill(pattern.nonholonomic, n),
        a_newton: fill(pattern.nonholonomic, n),
    }
}

fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |m, x| m.max(x.abs()))
}

/// The whole leading matrix by rows, with the diagonal of its small numbers.
fn whole(d: &Dims, blocks: &Dense, small: &[f64]) -> Vec<Vec<f64>> {
    let (n, h) = (d.nq, d.n_holonomic + d.n_normalisation);
    let mut full = vec![vec![0.0; n + d.rows()]; n + d.rows()];
    for j in 0..n {
        for i in 0..n {
            full[i][j] = blocks.w[j * n + i];
        }
        for k in 0..h {
            full[n + k][j] = blocks.phi_z[j * h + k];
            full[j][n + k] = blocks.phi_z[j * h + k];
        }
        for k in 0..d.n_nonholonomic {
            full[n + h + k][j] = blocks.a_newton[j * d.n_nonholonomic + k];
            full[j][n + h + k] = blocks.a[j * d.n_nonholonomic + k];
        }
    }
    for (k, small) in small.iter().enumerate() {
        full[n + k][n + k] = -small;
    }
    full
}

/// The leading matrix against complex steps of the residual and of the constraints.
fn leading_matrix_is_exact(m: &Mechanism) {
    let (model, complex) = (&m.model, &m.complex);
    let at = Instant::random(model, &mut Random::new(m.seed));
    let d = model.dims();
    let holonomic = d.n_holonomic + d.n_normalisation;
    let weights = Weights { velocity: 0.37, position: 0.21, ratio: 0.53 };
    let mut w = vec![0.0; d.workspace];
    let (mut r, mut phi) = (vec![0.0; d.nq], vec![0.0; d.rows()]);
    let mut matrix = vec![0.0; d.n_matrix];
    model.newton(at.motion(), &at.lambda, weights, &mut w, &mut r, &mut phi, &mut matrix).expect("newton");
    let (r0, phi0) = at.residual(model);
    m.same("r", &r, &r0);
    m.same("phi", &phi, &phi0);
    let newton = dense(model, &matrix);
    model.projection(at.t, &at.z, &at.u, &mut w, &mut matrix).expect("projection");
    let projection = dense(model, &matrix);

    let places = model.pattern().tangent;
    for &(i, j) in places {
        assert!(places.binary_search(&(j, i)).is_ok(), "seed {}: W has ({i}, {j}) only", m.seed);
    }
    let (mut tangent, mut mass) = (Vec::new(), Vec::new());
    let (mut phi_z, mut a, mut a_newton) = (Vec::new(), Vec::new(), Vec::new());
    for b in 0..d.nq {
        let along = |x: &mut Instant<Complex64>| {
            add(&mut x.z[b], weights.position);
            add(&mut x.zd[b], weights.velocity);
            add(&mut x.zdd[b], 1.0);
        };
        tangent.extend(imaginary(&derivative(&at, along, |x| x.residual(complex)).0));
        let (r, phi) = derivative(&at, |x| add(&mut x.zdd[b], 1.0), |x| x.residual(complex));
        mass.extend(imaginary(&r));
        assert_eq!(largest(&imaginary(&phi)), 0.0, "constraints do not read accelerations");
        let (_, phi) = derivative(&at, |x| add(&mut x.z[b], 1.0), |x| x.residual(complex));
        let by_z = imaginary(&phi);
        let (_, phi) = derivative(&at, |x| add(&mut x.zd[b], 1.0), |x| x.residual(complex));
        let by_zd = imaginary(&phi);
        assert_eq!(largest(&by_zd[..holonomic]), 0.0, "holonomic rows do not read velocities");
        phi_z.extend(&by_z[..holonomic]);
        a.extend(&by_zd[holonomic..]);
        a_newton
            .extend(by_zd[holonomic..].iter().zip(&by_z[holonomic..]).map(|(a, x)| a + weights.ratio * x));
    }
    m.same("W", &newton.w, &tangent);
    m.same("M", &projection.w, &mass);
    m.same("Φ_z", &newton.phi_z, &phi_z);
    m.same("Φ_z of the projection", &projection.phi_z, &phi_z);
    m.same("A", &newton.a, &a);
    m.same("A of the projection", &projection.a, &a);
    m.same("A' of the projection", &projection.a_newton, &a);
    m.same("A'", &newton.a_newton, &a_newton);

    // ∂r/∂λ is the transpose of the rows
    for k in 0..d.rows() {
        let force = derivative(&at, |x| add(&mut x.lambda[k], 1.0), |x| x.residual(complex)).0;
        let row: Vec<f64> = (0..d.nq)
            .map(|j| match k.checked_sub(holonomic) {
                None => phi_z[j * holonomic + k],
                Some(k) => a[j * d.n_nonholonomic + k],
            })
            .collect();
        m.close(
            &format!("force of row {k}"),
            &imaginary(&force),
            &row,
            1e-12 * largest(&phi_z).max(largest(&a)),
        );
    }
}

/// Φd, Φdd and Ψd against complex steps along the motion.
fn rates_are_exact(m: &Mechanism) {
    let (model, complex) = (&m.model, &m.complex);
    let at = Instant::random(model, &mut Random::new(m.seed + 7));
    let d = model.dims();
    let holonomic = d.n_holonomic + d.n_normalisation;
    let moving = |x: &mut Instant<Complex64>| {
        add(&mut x.t, 1.0);
        for j in 0..d.nq {
            add(&mut x.z[j], at.zd[j]);
            add(&mut x.zd[j], at.zdd[j]);
        }
    };
    let (_, phi) = at.residual(model);
    let rates = at.rates(model);
    let (_, phid) = derivative(&at, moving, |x| x.residual(complex));
    m.same("Φd", &rates[..holonomic], &imaginary(&phid)[..holonomic]);
    m.same("Ψ", &rates[holonomic..], &phi[holonomic..]);
    let phidd = imaginary(&derivative(&at, moving, |x| x.rates(complex)));
    m.same("Φdd and Ψd", &at.accelerations(model), &phidd);
}

/// Solutions against products with the matrix, both ways: of Newton's matrix and of the projections', where all
/// constraints hold and where they do not. Gives the worst backward error of each.
fn solves_solve(m: &Mechanism) -> [f64; 4] {
    let (model, d) = (&m.model, m.model.dims());
    let mut random = Random::new(m.seed + 13);
    let start = model.start_state();
    let (mut w, h) = (vec![f64::NAN; d.workspace], 1e-3);
    let weights = Weights { velocity: h / 2.0, position: h * h / 4.0, ratio: h / 2.0 };
    let (mut r, mut phi) = (vec![0.0; d.nq], vec![0.0; d.rows()]);
    let (mut matrix, mut factors) = (vec![0.0; d.n_matrix], vec![f64::NAN; d.n_factors]);
    let first = d.n_matrix - d.rows();
    let mut worst = [0.0f64; 4];
    for (case, worst) in worst.iter_mut().enumerate() {
        let (newton, consistent) = (case % 2 == 0, case / 2 == 0);
        let mut at = Instant::random(model, &mut random);
        for (z, start) in at.z.iter_mut().zip(&start) {
            *z = start + if consistent { 0.0 } else { random.uniform(-0.05, 0.05) };
        }
        at.t = if consistent { 0.0 } else { at.t };
        model.projection(at.t, &at.z, &at.u, &mut w, &mut matrix).expect("projection");
        let plain = whole(&d, &dense(model, &matrix), &[]);
        if newton {
            model
                .newton(at.motion(), &at.lambda, weights, &mut w, &mut r, &mut phi, &mut matrix)
                .expect("newton");
        }
        for k in 0..d.rows() {
            // S/c of the runtime, S = Σ Φ²/M.
            let row = &plain[d.nq + k];
            let heavy = (0..d.nq).filter(|&j| plain[j][j] > 0.0);
            let s: f64 = heavy.map(|j| row[j].powi(2) / plain[j][j]).sum();
            matrix[first + k] = if newton { 1e-6 } else { 1e-9 } * if s > 0.0 { s } else { 1.0 };
        }
        let full = whole(&d, &dense(model, &matrix), &matrix[first..]);
        if let Err(error) = model.factor(&matrix, &mut w, &mut factors) {
            println!("seed {}, case {case}: {error:?}", m.seed);
            *worst = 1.0;
            continue;
        }
        let n = full.len();
        let mut vector = || (0..n).map(|_| random.uniform(-1.0, 1.0)).collect::<Vec<f64>>();
        // Of solutions of moderate size: dependent rows contradict each other in other right-hand sides.
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let (x, y) = (vector(), vector());
        let b: Vec<f64> = full.iter().map(|row| dot(row, &x)).collect();
        let c: Vec<f64> = (0..n).map(|i| (0..n).map(|k| full[k][i] * y[k]).sum()).collect();
        let (mut x, mut y) = (b.clone(), c.clone());
        model.solve(&factors, &mut w, &mut x).expect("solve");
        model.solve_transposed(&factors, &mut w, &mut y).expect("solve");
        for i in 0..n {
            let column: Vec<f64> = full.iter().map(|row| row[i]).collect();
            for (along, x, b) in [(&full[i], &x, b[i]), (&column, &y, c[i])] {
                let size: f64 = along.iter().zip(x).map(|(a, x)| (a * x).abs()).sum::<f64>() + b.abs();
                let error = (dot(along, x) - b).abs() / size;
                *worst = if error <= *worst { *worst } else { error };
            }
        }
        // ⟨A⁻¹ b, c⟩ = ⟨b, A⁻ᵀ c⟩
        let size: f64 = x.iter().zip(&c).chain(b.iter().zip(&y)).map(|(a, b)| (a * b).abs()).sum();
        *worst = worst.max((dot(&x, &c) - dot(&b, &y)).abs() / size);
    }
    worst
}

#[test]
fn coordinate_form_is_exact() {
    let (mut holonomic, mut normalisation, mut nonholonomic) = (0, 0, 0);
    let mut backward: Vec<([f64; 4], u64)> = Vec::new();
    for seed in 0..mechanisms(100) {
        let m = Mechanism::new(seed, &BundleKind::COORDINATE_FORM);
        let d = m.model.dims();
        holonomic += d.n_holonomic;
        normalisation += d.n_normalisation;
        nonholonomic += d.n_nonholonomic;
        leading_matrix_is_exact(&m);
        rates_are_exact(&m);
        backward.push((solves_solve(&m), seed));
    }
    assert!(
        holonomic > 6 * backward.len()
            && normalisation > backward.len() / 2
            && nonholonomic > backward.len() / 3
    );
    println!("rows: {holonomic} {normalisation} {nonholonomic}");
    // Where constraints hold the order is a good one. Elsewhere dependent rows become almost independent.
    for (case, tolerance) in [1e-9, 1e-9, 1e-8, 1e-6].into_iter().enumerate() {
        backward.sort_by(|a, b| b.0[case].total_cmp(&a.0[case]));
        let (worst, seed) = (backward[0].0[case], backward[0].1);
        println!("case {case}: backward error {worst:e} of seed {seed}");
        assert!(worst < tolerance, "case {case}, seed {seed}: backward error {worst:e}");
    }
}

/// A mechanism in joint form at an instant: [M Φ_vᵀ; Φ_v 0] dense, from the mass matrix and the coordinate form.
struct Bordered {
    nv: usize,
    /// M
    mass: Vec<Vec<f64>>,
    /// Φ_v, rows of A last
    rows: Vec<Vec<f64>>,
}

impl Bordered {
    fn of(model: &Interpreted, t: f64, z: &[f64], u: &[f64]) -> Self {
        let d = model.dims();
        let (mut w, mut matrix) = (vec![0.0; d.workspace], vec![0.0; d.n_matrix]);
        model.projection(t, z, u, &mut w, &mut matrix).expect("projection");
        let blocks = dense(model, &matrix);
        let h = d.n_holonomic + d.n_normalisation;
        let mut rows = vec![vec![0.0; d.nv]; d.n_holonomic + d.n_nonholonomic];
        for j in 0..d.nv {
            let (mut v, mut zd) = (vec![0.0; d.nv], vec![0.0; d.nq]);
            v[j] = 1.0;
            euler_parameters::coordinate_rates(model, z, &v, &mut zd).expect("lengths");
            for (i, zd) in zd.iter().enumerate() {
                for k in 0..d.n_holonomic {
                    rows[k][j] += blocks.phi_z[i * h + k] * zd;
                }
                for k in 0..d.n_nonholonomic {
                    rows[d.n_holonomic + k][j] += blocks.a[i * d.n_nonholonomic + k] * zd;
                }
            }
        }
        let v = vec![0.0; d.nv];
        let mut m = vec![0.0; d.nv * d.nv];
        model.mass_matrix(At { t, z, v: &v, x: &[], u }, &mut w, &mut m).expect("mass matrix");
        let mass = m.chunks(d.nv).map(<[f64]>::to_vec).collect();
        Bordered { nv: d.nv, mass, rows }
    }

    /// The solution of [M Φ_vᵀ; Φ_v −e] x = rhs by elimination with pivots from everywhere; `None` where a pivot is
    /// small against the matrix with rows and columns scaled.
    fn solve(&self, e: f64, rhs: &[f64]) -> Option<Vec<f64>> {
        let (nv, n) = (self.nv, self.nv + self.rows.len());
        let mut a = vec![vec![0.0; n + 1]; n];
        for i in 0..nv {
            a[i][..nv].copy_from_slice(&self.mass[i]);
        }
        for (k, row) in self.rows.iter().enumerate() {
            for (j, &entry) in row.iter().enumerate() {
                (a[nv + k][j], a[j][nv + k]) = (entry, entry);
            }
            a[nv + k][nv + k] = -e;
        }
        // By the square root of the mass, and of what elimination of masses puts into the rows.
        let mut scale: Vec<f64> = (0..nv).map(|i| self.mass[i][i]).collect();
        scale.iter_mut().for_each(|s| *s = if *s > 0.0 { s.sqrt().recip() } else { 1.0 });
        for row in &self.rows {
            let size: f64 = row.iter().zip(&scale).map(|(x, s)| (x * s).powi(2)).sum();
            scale.push(if size > 0.0 { size.sqrt().recip() } else { 1.0 });
        }
        for i in 0..n {
            for j in 0..n {
                a[i][j] *= scale[i] * scale[j];
            }
            a[i][n] = rhs[i] * scale[i];
        }
        let mut columns: Vec<usize> = (0..n).collect();
        for k in 0..n {
            let places = (k..n).flat_map(|i| (k..n).map(move |j| (i, j)));
            let (i, j) = places.max_by(|&(i, j), &(p, q)| a[i][j].abs().total_cmp(&a[p][q].abs()))?;
            if a[i][j].abs() < 1e-3 {
                return None;
            }
            a.swap(k, i);
            columns.swap(k, j);
            a.iter_mut().for_each(|row| row.swap(k, j));
            let pivot = a[k].clone();
            for row in &mut a[k + 1..] {
                let factor = row[k] / pivot[k];
                row.iter_mut().zip(&pivot).skip(k).for_each(|(x, p)| *x -= factor * p);
            }
        }
        let mut x = vec![0.0; n];
        for k in (0..n).rev() {
            let sum: f64 = (k + 1..n).map(|j| a[k][j] * x[columns[j]]).sum();
            x[columns[k]] = (a[k][n] - sum) / a[k][k];
        }
        Some(x.iter().zip(&scale).map(|(x, s)| x * s).collect())
    }
}

const JOINT_FORM: [BundleKind; 6] = [
    BundleKind::Residual,
    BundleKind::ConstrainedDynamics,
    BundleKind::ConstraintCorrection,
    BundleKind::MassMatrix,
    BundleKind::InverseDynamics,
    BundleKind::Reactions,
];

/// vd and λ satisfy the equations of motion, by inverse dynamics and by the coordinate form, and the constraints'.
/// Gives whether the rows are independent here.
fn accelerations_satisfy_the_equations(m: &Mechanism) -> bool {
    let (model, d) = (&m.model, m.model.dims());
    let mut random = Random::new(m.seed + 23);
    let at = Instant::random(model, &mut random);
    let (t, z, u) = (at.t, &at.z, &at.u);
    let v: Vec<f64> = (0..d.nv).map(|_| random.uniform(-1.0, 1.0)).collect();
    let here = At { t, z, v: &v, x: &[], u };
    let bordered = Bordered::of(model, t, z, u);
    let rows = bordered.rows.len();
    let mut w = vec![f64::NAN; d.workspace];
    let mut independent = false;
    for compliance in [0.0, 0.05] {
        let stabilisation = Stabilisation { rate: 3.1, value: 7.7, compliance };
        let (mut zd, mut vd, mut lambda) = (vec![0.0; d.nq], vec![0.0; d.nv], vec![0.0; rows]);
        let rhs = vec![1.0; d.nv + rows];
        if bordered.solve(compliance, &rhs).is_none() {
            continue;
        }
        independent |= compliance == 0.0;
        model
            .constrained_dynamics(here, stabilisation, &mut w, &mut zd, &mut vd, &mut [], &mut lambda)
            .unwrap_or_else(|error| panic!("seed {}: {error:?}\n{}", m.seed, m.text));
        let mut expected = vec![0.0; d.nq];
        euler_parameters::coordinate_rates(model, z, &v, &mut expected).expect("lengths");
        m.same("zd", &zd, &expected);

        // tau(vd) + Φ_vᵀ λ = 0
        let mut tau = vec![0.0; d.nv];
        model.inverse_dynamics(here, &vd, &mut w, &mut tau).expect("tau");
        let mut pushed = vec![0.0; d.nv];
        let mut size = largest(&tau);
        for (row, &lambda) in bordered.rows.iter().zip(&lambda) {
            for (j, &entry) in row.iter().enumerate() {
                pushed[j] -= entry * lambda;
                size = size.max((entry * lambda).abs());
            }
        }
        // What elimination loses: pivots above 1e-3 of a scaled matrix.
        m.close("tau", &tau, &pushed, 1e-9 * size);

        // the same in coordinate form, where normalisation rows have no force
        let mut instant = at.clone();
        instant.zd = zd;
        euler_parameters::coordinate_accelerations(model, z, &v, &vd, &mut instant.zdd).expect("lengths");
        instant.lambda = vec![0.0; d.rows()];
        instant.lambda[..d.n_holonomic].copy_from_slice(&lambda[..d.n_holonomic]);
        instant.lambda[d.n_holonomic + d.n_normalisation..].copy_from_slice(&lambda[d.n_holonomic..]);
        let (r, phi) = instant.residual(model);
        m.close("r", &r, &vec![0.0; d.nq], 1e-8 * size);

        // Φdd = −a Φd − b Φ + e λ, Ψd = −a Ψ + e λ
        let (rates, accelerations) = (instant.rates(model), instant.accelerations(model));
        let (mut left, mut right) = (Vec::new(), Vec::new());
        for k in (0..d.rows()).filter(|k| !(d.n_holonomic..d.n_holonomic + d.n_normalisation).contains(k)) {
            left.push(accelerations[k]);
            let value = if k < d.n_holonomic { 7.7 * phi[k] } else { 0.0 };
            right.push(compliance * instant.lambda[k] - 3.1 * rates[k] - value);
        }
        let size = largest(&left).max(largest(&right)).max(largest(&vd));
        m.close("Φdd", &left, &right, 1e-8 * size);
    }
    independent
}

/// Corrections are the smallest that do it in the metric of M: what a dense elimination finds. Positions come back
/// quadratically.
fn corrections_correct(m: &Mechanism) -> bool {
    let (model, d) = (&m.model, m.model.dims());
    let mut random = Random::new(m.seed + 29);
    let start = model.start_state();
    let u = vec![0.0; d.nu];
    let v: Vec<f64> = (0..d.nv).map(|_| random.uniform(-1.0, 1.0)).collect();
    let away: Vec<f64> = (0..d.nv).map(|_| random.uniform(-1.0, 1.0)).collect();
    let mut w = vec![f64::NAN; d.workspace];
    let mut left = Vec::new();
    for distance in [1e-2, 1e-3] {
        let mut z = start[..d.nq].to_vec();
        let mut moved = vec![0.0; d.nq];
        euler_parameters::coordinate_rates(model, &z, &away, &mut moved).expect("lengths");
        z.iter_mut().zip(&moved).for_each(|(z, moved)| *z += distance * moved);
        let bordered = Bordered::of(model, 0.0, &z, &u);
        let (mut dz, mut dv) = (vec![0.0; d.nq], vec![0.0; d.nv]);
        let (mut phi, mut phid) = (vec![0.0; d.n_holonomic], vec![0.0; bordered.rows.len()]);
        let at = At { t: 0.0, z: &z, v: &v, x: &[], u: &u };
        model.constraint_correction(at, &mut w, &mut dz, &mut dv, &mut phi, &mut phid).expect("correction");
        // the reference
        let mut rhs = vec![0.0; d.nv];
        rhs.extend(phid.iter().map(|x| -x));
        let Some(expected) = bordered.solve(0.0, &rhs) else { return false };
        // ε = 1e-10 of the rows' own scale stays in corrections, and pivots above 1e-3 magnify it.
        m.close("dv", &dv, &expected[..d.nv], 1e-6 * largest(&expected[..d.nv]).max(1e-300));
        let mut rhs = vec![0.0; d.nv];
        rhs.extend(phi.iter().map(|x| -x));
        rhs.resize(d.nv + bordered.rows.len(), 0.0);
        let expected = bordered.solve(0.0, &rhs).expect("regular as before");
        let mut expected_dz = vec![0.0; d.nq];
        euler_parameters::coordinate_rates(model, &z, &expected[..d.nv], &mut expected_dz).expect("lengths");
        m.close("dz", &dz, &expected_dz, 1e-6 * largest(&expected_dz).max(1e-300));

        let corrected: Vec<f64> = z.iter().zip(&dz).map(|(z, dz)| z + dz).collect();
        let mut instant = Instant::random(model, &mut random);
        (instant.t, instant.z) = (0.0, corrected);
        let (_, after) = instant.residual(model);
        left.push((largest(&phi), largest(&after[..d.n_holonomic])));
    }
    // A tenth of the distance leaves a hundredth, almost; 1e-9 of Φ is the part of ε.
    let [(before, after), (before_near, after_near)] = left[..] else { unreachable!() };
    assert!(before_near <= before * 0.2 + 1e-12, "seed {}: the start is consistent: {before_near:e}", m.seed);
    assert!(
        after_near <= after / 25.0 + 1e-6 * before_near + 1e-14,
        "seed {}: {after:e} of {before:e}, then {after_near:e} of {before_near:e}\n{}",
        m.seed,
        m.text
    );
    true
}

#[test]
fn joint_form_is_exact() {
    let (mut independent, mut corrected) = (0, 0);
    for seed in 0..mechanisms(100) {
        let m = Mechanism::new(seed, &JOINT_FORM);
        independent += usize::from(accelerations_satisfy_the_equations(&m));
        corrected += usize::from(corrections_correct(&m));
    }
    println!("{independent} with independent rows, {corrected} at the start");
    assert!(independent > 20 && corrected > 20, "{independent} {corrected}");
}

/// Every bundle of a program, called at one instant by the interpreter of the generator.
fn all_bundles(program: &Program, random: &mut Random) -> Vec<(String, Vec<f64>)> {
    let model = Interpreted::<f64>::new(program.clone());
    let d = model.dims();
    let at = Instant::random(&model, random);
    let mut some = |n: usize, size: f64| (0..n).map(|_| random.uniform(-size, size)).collect::<Vec<_>>();
    let (v, vd) = (some(d.nv, 1.0), some(d.nv, 3.0));
    let multipliers = some(d.n_holonomic + d.n_nonholonomic, 2.0);
    let weights = Weights { velocity: 0.37, position: 0.21, ratio: 0.53 };
    let here = At { t: at.t, z: &at.z, v: &v, x: &[], u: &at.u };
    let mut w = vec![f64::NAN; d.workspace];
    let (r, phi) = at.residual(&model);
    let mut out = vec![
        ("r", r),
        ("phi", phi),
        ("rates", at.rates(&model)),
        ("accelerations", at.accelerations(&model)),
    ];
    let (mut r, mut phi, mut matrix) = (vec![0.0; d.nq], vec![0.0; d.rows()], vec![1.0; d.n_matrix]);
    model.newton(at.motion(), &at.lambda, weights, &mut w, &mut r, &mut phi, &mut matrix).expect("newton");
    out.push(("newton", matrix.clone()));
    model.projection(at.t, &at.z, &at.u, &mut w, &mut matrix).expect("projection");
    out.push(("projection", matrix));
    let mut wrenches = vec![0.0; 6 * d.n_joints];
    model.reactions(here, &vd, &multipliers, &mut w, &mut wrenches).expect("reactions");
    out.push(("reactions", wrenches));
    let (mut g, mut terminal) = (vec![0.0; d.n_objectives], vec![0.0; d.n_objectives]);
    model.objectives(here, &vd, &multipliers, &mut w, &mut g, &mut terminal).expect("objectives");
    out.push(("objectives", [g, terminal].concat()));
    let (mut zd, mut vd, mut lambda) = (vec![0.0; d.nq], vec![0.0; d.nv], multipliers);
    let stabilisation = Stabilisation { rate: 3.0, value: 9.0, compliance: 0.3 };
    let solved =
        model.constrained_dynamics(here, stabilisation, &mut w, &mut zd, &mut vd, &mut [], &mut lambda);
    solved.expect("compliant rows are independent");
    out.push(("constrained dynamics", [zd, vd, lambda].concat()));
    out.into_iter().map(|(name, values)| (name.to_owned(), values)).collect()
}

#[test]
fn both_reference_points_agree() {
    for seed in 0..mechanisms(30) {
        let text = random_closed(seed, shape(seed));
        let bundles = [
            &BundleKind::COORDINATE_FORM[..],
            &[BundleKind::ConstrainedDynamics, BundleKind::Reactions, BundleKind::Objectives],
        ]
        .concat();
        let [a, b] = [ReferencePoint::Origin, ReferencePoint::CentreOfMass]
            .map(|reference| all_bundles(&program(&text, reference, &bundles), &mut Random::new(seed)));
        for ((name, x), (_, y)) in a.iter().zip(&b) {
            let difference = x.iter().zip(y).fold(0.0f64, |m, (x, y)| m.max((x - y).abs()));
            // The solve loses digits by its condition; all else by rounding.
            let tolerance = if name.starts_with("constrained") { 1e-9 } else { 1e-12 } * largest(x);
            assert!(
                difference <= tolerance,
                "seed {seed}, {name}: {difference:e} of {:e}\n{text}",
                largest(x)
            );
        }
    }
}

/// A spatial four-bar, bodies parallel to the world at the start: crank, coupler, rocker, by revolute, spherical, cardan
/// and revolute joints. `cut` is the joint that is cut.
fn spatial_four_bar(cut: usize) -> String {
    let joints = [
        ("revolute", "axis: [0, 0.2, 1]", "[0, 0, 0]"),
        ("spherical", "", "[0.3, 0.1, 0.2]"),
        ("cardan", "axes: [[1, 0.3, 0], [-0.3, 1, 0.4]]", "[1.1, 0.5, -0.1]"),
        ("revolute", "axis: [0.3, 1, 0.1]", "[0.9, -0.4, 0.1]"),
    ];
    let bodies = ["ground", "crank", "coupler", "rocker", "ground"];
    let mut text = "
mbs: 1
gravity: [0.3, 0, -9.81]
bodies:
  crank: {mass: 1.1, com: [0.1, 0.1, 0], inertia: [0.02, 0.03, 0.04], points: {p: [0.2, 0, 0.1]}}
  coupler: {mass: 2.3, com: [0.7, 0.3, 0], inertia: [0.1, 0.3, 0.25], points: {p: [0.6, 0.4, 0.1]}}
  rocker: {mass: 0.9, com: [1, 0, 0], inertia: [0.05, 0.04, 0.03], points: {p: [1, 0.1, 0]}}
forces:
  push: {type: force, at: coupler.p, value: [3, \"5*vel(rocker.p).z\", -2]}
  spring: {type: spring, from: ground, to: coupler.p, stiffness: 50, damping: 2, natural_length: 0.3}
outputs: {a: acc(coupler.p), b: alpha(coupler), c: acc(rocker.p), d: acc(crank.p)}
joints:
"
    .to_string();
    for (i, (kind, axes, point)) in joints.into_iter().enumerate() {
        // Walked from ground on both sides of the cut.
        let (parent, child) = if i <= cut { (bodies[i], bodies[i + 1]) } else { (bodies[i + 1], bodies[i]) };
        let axes = if i > cut && kind == "cardan" { "axes: [[-0.3, 1, 0.4], [1, 0.3, 0]]" } else { axes };
        let comma = if axes.is_empty() { "" } else { ", " };
        let start = if i == 0 { ", start: {rate: 1.5, hold: true}" } else { "" };
        text += &format!(
            "  j{i}: {{type: {kind}, parent: {{body: {parent}, point: {point}}}, child: {{body: {child}, point: {point}}}{comma}{axes}, cut: {}{start}}}\n",
            i == cut
        );
    }
    text
}

/// Motion and reactions do not depend on the joint that is cut.
#[test]
fn reactions_do_not_depend_on_the_cut() {
    let mut first: Option<(Vec<f64>, Vec<f64>)> = None;
    for cut in 1..4 {
        let model = closed::model(&spatial_four_bar(cut));
        let d = model.dims();
        let (mut state, _) = closed::start(&model, 0.0).expect("assembled as given");
        let (z, zd) = {
            let view = State::of(&d, &mut state).expect("length");
            (view.z.to_vec(), view.zd.to_vec())
        };
        let mut v = vec![0.0; d.nv];
        euler_parameters::velocities(&model, &z, &zd, &mut v).expect("lengths");
        let at = At { t: 0.0, z: &z, v: &v, x: &[], u: &[] };
        let mut w = vec![0.0; d.workspace];
        let (mut zd, mut vd) = (vec![0.0; d.nq], vec![0.0; d.nv]);
        let mut lambda = vec![0.0; d.n_holonomic];
        let exact = Stabilisation { rate: 0.0, value: 0.0, compliance: 0.0 };
        model
            .constrained_dynamics(at, exact, &mut w, &mut zd, &mut vd, &mut [], &mut lambda)
            .expect("regular");
        let (mut wrenches, mut out) = (vec![0.0; 6 * d.n_joints], vec![0.0; d.n_outputs]);
        model.reactions(at, &vd, &lambda, &mut w, &mut wrenches).expect("reactions");
        model.outputs(at, &vd, &mut w, &mut out).expect("outputs");
        // On the body after the joint, whichever is the child.
        for (j, wrench) in wrenches.chunks_mut(6).enumerate() {
            if j > cut {
                wrench.iter_mut().for_each(|x| *x = -*x);
            }
        }
        let (a, b) = first.get_or_insert((out.clone(), wrenches.clone()));
        assert!(closed::distance(a, &out) < 1e-10 * largest(a), "cut {cut}: {a:?} {out:?}");
        assert!(closed::distance(b, &wrenches) < 1e-10 * largest(b), "cut {cut}: {b:?} {wrenches:?}");
        // Axes transmit no torque along themselves, a ball none at all.
        let [rx, ry, rz] = [0.0, 0.2, 1.0];
        let torque = &wrenches[3..6];
        assert!((torque[0] * rx + torque[1] * ry + torque[2] * rz).abs() < 1e-10 * largest(&wrenches));
        assert!(largest(&wrenches[9..12]) < 1e-10 * largest(&wrenches), "{:?}", &wrenches[9..12]);
    }
}

/// A planar four-bar turned out of the plane by `tilt` about x, an expression of parameters; its closing joint is cut.
fn planar_four_bar(tilt: &str, closing: &str) -> String {
    let turned = |x: &str, y: &str| format!("[\"{x}\", \"({y})*cos({tilt})\", \"({y})*sin({tilt})\"]");
    let axis = format!("[0, \"-sin({tilt})\", \"cos({tilt})\"]");
    let end = |l: &str| turned(l, "0");
    format!(
        "
mbs: 1
parameters: {{a: 0.4, b: 1.1, c: 0.9, base: 1.3, lift: 0.1, angle: 0.7}}
gravity: [0, -9.81, 0]
bodies:
  ground: {{points: {{B: {base}}}}}
  crank: {{mass: 1, com: {half}, inertia: [0.1, 0.1, 0.1], points: {{end: {a}}}}}
  coupler: {{mass: 1, com: {half}, inertia: [0.1, 0.1, 0.1], points: {{end: {b}}}}}
  rocker: {{mass: 1, com: {half}, inertia: [0.1, 0.1, 0.1], points: {{end: {c}}}}}
joints:
  A: {{type: revolute, parent: ground, child: crank, axis: {axis}, start: {{value: 1, hold: true}}}}
  P: {{type: revolute, parent: crank.end, child: coupler, axis: {axis}, start: -0.8}}
  B: {{type: revolute, parent: ground.B, child: rocker, axis: {axis}, start: 1.6}}
  Q: {{type: {closing}, parent: coupler.end, child: rocker.end, axis: {axis}, cut: true}}
",
        base = turned("base", "lift"),
        half = end("a/2"),
        a = end("a"),
        b = end("b"),
        c = end("c")
    )
}

#[test]
fn rows_that_vanish_are_dropped_and_no_others() {
    let rows = |text: &str| {
        let program = program(text, ReferencePoint::Origin, &BundleKind::COORDINATE_FORM);
        (program.holonomic, program.dropped_rows)
    };
    let named = |names: &[&str]| names.iter().map(|name| format!("Q.{name}")).collect::<Vec<_>>();
    for (tilt, closing, kept, dropped) in [
        ("0", "revolute", &["x", "y"][..], &["z", "tilt1", "tilt2"][..]),
        // In a tilted plane the three components of the gap are dependent; none of them vanishes.
        ("0.6", "revolute", &["x", "y", "z"], &["tilt1", "tilt2"]),
        ("angle", "revolute", &["x", "y", "z"], &["tilt1", "tilt2"]),
        ("angle*base", "cylindrical", &["across1", "across2"], &["tilt1", "tilt2"]),
        ("angle", "prismatic", &["across1", "across2", "twist"], &["tilt1", "tilt2"]),
        ("0", "prismatic", &["across1", "across2", "twist"], &["tilt1", "tilt2"]),
    ] {
        let text = planar_four_bar(tilt, closing);
        assert_eq!(rows(&text), (named(kept), named(dropped)), "{tilt} {closing}");
    }
    // A planar joint in its own plane closes nothing.
    let text = planar_four_bar("angle", "planar").replace("cut: true", "reference: [1, 0, 0], cut: true");
    assert_eq!(rows(&text), (named(&[]), named(&["normal", "tilt1", "tilt2"])));
    // Planes of the links that meet by their parameters: nothing moves the row.
    let offset = |other: &str| {
        planar_four_bar("0", "revolute")
            .replace("angle: 0.7}", &format!("angle: 0.7, here: 0.2, there: {other}}}"))
            .replace("cut: true", "cut: true, parent: {body: coupler, point: [b, 0, here]}, child: {body: rocker, point: [c, 0, there]}")
            .replace("parent: coupler.end, child: rocker.end, ", "")
    };
    assert_eq!(rows(&offset("0.2")), (named(&["x", "y"]), named(&["z", "tilt1", "tilt2"])));
    let refused = mbs_codegen::read("offset.yaml", &offset("0.3")).expect_err("planes that do not meet");
    let said = refused.render("offset.yaml", "");
    assert!(said.contains("constraint `Q.z` can never be met") && refused.error_count() == 1, "{said}");
    // A row that begins later is zero at first, and still a row.
    let later = planar_four_bar("0", "revolute")
        + "constraints: {late: {type: equation, value: \"step(t, 5, 0, 6, 1)*A.angle\"}}\n";
    assert_eq!(rows(&later).0, ["Q.x", "Q.y", "late"]);
}

/// A parallelogram of three cranks, Bennett's linkage: dependent rows stay, and the mechanisms move.
#[test]
fn dependent_rows_stay() {
    // Three parallel cranks carry one bar: two loops, of which the second repeats the first.
    let cranks = "
mbs: 1
gravity: [0, -9.81, 0]
bodies:
  ground: {points: {A: [0, 0, 0], B: [1, 0, 0], C: [2, 0, 0]}}
  one: &crank {mass: 1, com: [0, 0.25, 0], inertia: [0.1, 0.1, 0.1], points: {end: [0, 0.5, 0]}}
  two: *crank
  three: *crank
  bar: {mass: 2, com: [1, 0, 0], inertia: [0.2, 0.2, 0.2], points: {B: [1, 0, 0], C: [2, 0, 0]}}
joints:
  A: {type: revolute, parent: ground.A, child: one, axis: [0, 0, 1], start: {value: 0.4, rate: 1, hold: true}}
  B: {type: revolute, parent: ground.B, child: two, axis: [0, 0, 1], start: 0.4}
  C: {type: revolute, parent: ground.C, child: three, axis: [0, 0, 1], start: 0.4}
  P: {type: revolute, parent: one.end, child: bar, axis: [0, 0, 1], start: -0.4}
  Q: {type: revolute, parent: two.end, child: bar.B, axis: [0, 0, 1], cut: true}
  R: {type: revolute, parent: three.end, child: bar.C, axis: [0, 0, 1], cut: true}
";
    // Four revolute joints in space; sin(twist)/length is the same on neighbouring links. Denavit–Hartenberg: every link
    // goes along its x by its length and turns the next axis about x by its twist.
    let bennett = "
mbs: 1
gravity: [1, -2, -9.81]
parameters: {la: 1, lb: 0.6, ta: 1.1, tb: asin(lb/la*sin(ta))}
bodies:
  ground: {points: {end: [la, 0, 0]}}
  one: {mass: 1, com: [lb/2, 0, 0], inertia: [0.1, 0.1, 0.1], points: {end: [lb, 0, 0]}}
  two: {mass: 1, com: [la/2, 0, 0], inertia: [0.1, 0.1, 0.1], points: {end: [la, 0, 0]}}
  three: {mass: 1, com: [lb/2, 0, 0], inertia: [0.1, 0.1, 0.1], points: {end: [lb, 0, 0]}}
joints:
  j1:
    type: revolute
    parent: {body: ground, point: end, axis: [0, -sin(ta), cos(ta)], reference: [1, 0, 0]}
    child: {body: one, point: origin, axis: [0, 0, 1], reference: [1, 0, 0]}
    start: {value: 2, hold: true, rate: 0.7}
  j2:
    type: revolute
    parent: {body: one, point: end, axis: [0, -sin(tb), cos(tb)], reference: [1, 0, 0]}
    child: {body: two, point: origin, axis: [0, 0, 1], reference: [1, 0, 0]}
    start: 1.0
  j3:
    type: revolute
    parent: {body: two, point: end, axis: [0, -sin(ta), cos(ta)], reference: [1, 0, 0]}
    child: {body: three, point: origin, axis: [0, 0, 1], reference: [1, 0, 0]}
    start: 2.0
  j4:
    type: revolute
    parent: {body: three, point: end, axis: [0, -sin(tb), cos(tb)], reference: [1, 0, 0]}
    child: {body: ground, point: origin, axis: [0, 0, 1], reference: [1, 0, 0]}
";
    for (what, text, kept, rank) in [("cranks", cranks, 4, 3), ("Bennett", bennett, 5, 2)] {
        let model = closed::model(text);
        let d = model.dims();
        assert_eq!(d.n_holonomic, kept, "{what}: {:?}", model.program().holonomic);
        let (mut state, statistics) = closed::start(&model, 0.0)
            .unwrap_or_else(|error| panic!("{what}: {}", closed::said(&model, error)));
        println!("{what}: {statistics:?}");
        assert_eq!(statistics.rank, rank, "{what}");
        let mut scratch = vec![0.0; Ali3p::scratch_len(&d)];
        for _ in 0..100 {
            Ali3p::DEFAULT
                .step(&model, &mut model.input_signals(), &mut state, 1e-3, &mut scratch)
                .unwrap_or_else(|error| panic!("{what}: {}", closed::said(&model, error)));
        }
        let violation = violation(&model, &mut state);
        assert!(violation < 1e-9, "{what}: {violation:e}");
    }
}

/// The largest constraint of a state on three levels.
fn violation(model: &Interpreted, state: &mut [f64]) -> f64 {
    let d = model.dims();
    let view = State::of(&d, state).expect("length");
    let instant = Instant {
        t: *view.t,
        z: view.z.to_vec(),
        zd: view.zd.to_vec(),
        zdd: view.zdd.to_vec(),
        u: vec![0.0; d.nu],
        lambda: view.lambda.to_vec(),
    };
    let (_, phi) = instant.residual(model);
    largest(&phi).max(largest(&instant.rates(model))).max(largest(&instant.accelerations(model)))
}

/// What 0.2 s by ALI3-P come to.
fn run(model: &Interpreted, start: &[f64], h: f64) -> Result<Vec<f64>, String> {
    let d = model.dims();
    let mut state = start.to_vec();
    let mut scratch = vec![0.0; Ali3p::scratch_len(&d)];
    let mut worst = violation(model, &mut state);
    for step in 1..=(0.2 / h).round() as usize {
        Ali3p::DEFAULT
            .step(model, &mut model.input_signals(), &mut state, h, &mut scratch)
            .map_err(|error| closed::said(model, error))?;
        if step % 20 == 0 {
            worst = worst.max(violation(model, &mut state));
        }
    }
    if worst > 1e-9 {
        return Err(format!("constraints at {worst:e}"));
    }
    let view = State::of(&d, &mut state).expect("length");
    Ok([&*view.z, view.zd].concat())
}

#[test]
fn random_mechanisms_run_with_second_order() {
    let (mut ran, mut rows) = (0, 0);
    for seed in 0..mechanisms(20) {
        let shape = Shape {
            bodies: 2 + (seed % 3) as usize,
            closures: 1,
            constraints: (seed / 2 % 3) as usize,
            nonholonomic: false,
            runs: true,
        };
        let text = random_closed(5000 + seed, shape);
        let model = closed::with_bundles(&text, &BundleKind::COORDINATE_FORM);
        // Nothing is to be seen of a mechanism that cannot move, whether or not it is driven against its constraints.
        let (start, statistics) = match closed::start(&model, 0.0) {
            Err(StepError::Inconsistent { .. }) => continue,
            started => {
                started.unwrap_or_else(|error| panic!("seed {seed}: {}\n{text}", closed::said(&model, error)))
            }
        };
        if statistics.rank == model.dims().nq {
            continue;
        }
        let h = 1e-3;
        let [a, b, c] = [h, h / 2.0, h / 4.0].map(|h| {
            run(&model, &start, h).unwrap_or_else(|error| panic!("seed {seed}, h = {h}: {error}\n{text}"))
        });
        let change = [closed::distance(&a, &b), closed::distance(&b, &c)];
        let ratio = change[0] / change[1];
        println!(
            "seed {seed}: {} of {} rows, {change:?}, ratio {ratio:.3}",
            statistics.rank, statistics.rows
        );
        assert!((ratio - 4.0).abs() < 1.0, "seed {seed}: {change:?}\n{text}");
        (ran, rows) = (ran + 1, rows + statistics.rank);
        if ran == mechanisms(10) {
            break;
        }
    }
    assert!(ran >= 10 && rows > 20, "{ran} ran, with {rows} rows");
}

/// Damaged files: diagnostics or code, never a panic.
#[test]
fn damaged_mechanisms_do_not_panic() {
    let mut request = Request::default();
    request.options.bundles = BundleKind::ALL.to_vec();
    let (mut accepted, mut refused) = (0, 0);
    for seed in 0..mechanisms(12) {
        let shape =
            Shape { bodies: 2, closures: 1, constraints: 3, nonholonomic: seed % 2 == 0, runs: false };
        let text = random_closed(9000 + seed, shape);
        let mut random = Random::new(seed);
        for _ in 0..25 {
            match generate("random.yaml", &mutate(&mut random, &text), &request) {
                Ok(_) => accepted += 1,
                Err(_) => refused += 1,
            }
        }
    }
    println!("{accepted} accepted, {refused} refused");
    assert!(accepted > 10 && refused > 10);
}
