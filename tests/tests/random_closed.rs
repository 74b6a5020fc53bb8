//! Random mechanisms with loops and constraints through the engine: every matrix against complex steps of the
//! residual and of the constraints, solves against products, the two forms against each other.

use mbs_codegen::kinematics::ReferencePoint;
use mbs_codegen::program::{BundleKind, Options, Program};
use mbs_engine::Interpreted;
use mbs_runtime::{Complex64, Constrained, Motion, Scalar, System, Weights};
use mbs_tests::random_closed::{CONSTRAINTS, Shape, random_closed};
use mbs_tests::random_model::Random;

const MECHANISMS: u64 = 120;
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

fn program(text: &str, reference: ReferencePoint) -> Program {
    let (model, _) = mbs_codegen::read("random.yaml", text)
        .unwrap_or_else(|problems| panic!("{}\n{text}", problems.render("random.yaml", text)));
    let options = Options { reference, freeze: false, bundles: BundleKind::ALL.to_vec() };
    let program = Program::new(&model, None, &options).unwrap_or_else(|error| panic!("{error}\n{text}"));
    for bundle in &program.bundles {
        mbs_codegen::bundle::verify::verify(bundle).expect("a valid bundle");
    }
    program
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

/// Both are one block; they agree to a part of its largest entry.
fn assert_same(what: &str, seed: u64, text: &str, a: &[f64], b: &[f64]) {
    assert_eq!(a.len(), b.len(), "{what}");
    let size = largest(a).max(largest(b));
    for (k, (x, y)) in a.iter().zip(b).enumerate() {
        assert!(
            (x - y).abs() <= 1e-12 * size,
            "seed {seed}, {what}, entry {k}: {x:e} is not {y:e} ({:e} of {size:e})\n{text}",
            (x - y).abs()
        );
    }
}

fn unit(n: usize) -> impl Iterator<Item = usize> {
    0..n
}

#[test]
fn the_leading_matrix_is_exact() {
    let mut kinds = vec![0; CONSTRAINTS];
    let _ = &mut kinds;
    for seed in 0..MECHANISMS {
        let text = random_closed(seed, shape(seed));
        let program = program(&text, ReferencePoint::Origin);
        let model = Interpreted::<f64>::new(program.clone());
        let complex = Interpreted::<Complex64>::new(program);
        let at = Instant::random(&model, &mut Random::new(seed));
        let d = model.dims();
        let holonomic = d.n_holonomic + d.n_normalisation;
        let weights = Weights { velocity: 0.37, position: 0.21, ratio: 0.53 };
        let mut w = vec![0.0; d.workspace];
        let (mut r, mut phi) = (vec![0.0; d.nq], vec![0.0; d.rows()]);
        let mut matrix = vec![0.0; d.n_matrix];
        model
            .newton(at.motion(), &at.lambda, weights, &mut w, &mut r, &mut phi, &mut matrix)
            .expect("newton");
        let (r0, phi0) = at.residual(&model);
        assert_same("r", seed, &text, &r, &r0);
        assert_same("phi", seed, &text, &phi, &phi0);
        let newton = dense(&model, &matrix);
        model.projection(at.t, &at.z, &at.u, &mut w, &mut matrix).expect("projection");
        let projection = dense(&model, &matrix);

        for &(i, j) in model.pattern().tangent {
            assert!(
                model.pattern().tangent.binary_search(&(j, i)).is_ok(),
                "seed {seed}: W has ({i}, {j}) only"
            );
        }
        let (mut tangent, mut mass) = (Vec::new(), Vec::new());
        let (mut phi_z, mut a, mut a_newton) = (Vec::new(), Vec::new(), Vec::new());
        for b in unit(d.nq) {
            let along = |x: &mut Instant<Complex64>| {
                add(&mut x.z[b], weights.position);
                add(&mut x.zd[b], weights.velocity);
                add(&mut x.zdd[b], 1.0);
            };
            tangent.extend(imaginary(&derivative(&at, along, |x| x.residual(&complex)).0));
            let by = |x: &mut Instant<Complex64>| add(&mut x.zdd[b], 1.0);
            let (r, phi) = derivative(&at, by, |x| x.residual(&complex));
            mass.extend(imaginary(&r));
            assert_eq!(largest(&imaginary(&phi)), 0.0, "constraints do not read accelerations");
            let (_, phi) = derivative(&at, |x| add(&mut x.z[b], 1.0), |x| x.residual(&complex));
            let by_z = imaginary(&phi);
            let (_, phi) = derivative(&at, |x| add(&mut x.zd[b], 1.0), |x| x.residual(&complex));
            let by_zd = imaginary(&phi);
            assert_eq!(largest(&by_zd[..holonomic]), 0.0, "holonomic rows do not read velocities");
            phi_z.extend(&by_z[..holonomic]);
            a.extend(&by_zd[holonomic..]);
            a_newton.extend(
                by_zd[holonomic..].iter().zip(&by_z[holonomic..]).map(|(a, x)| a + weights.ratio * x),
            );
        }
        assert_same("W", seed, &text, &newton.w, &tangent);
        assert_same("M", seed, &text, &projection.w, &mass);
        assert_same("Φ_z", seed, &text, &newton.phi_z, &phi_z);
        assert_same("Φ_z of the projection", seed, &text, &projection.phi_z, &phi_z);
        assert_same("A", seed, &text, &newton.a, &a);
        assert_same("A of the projection", seed, &text, &projection.a, &a);
        assert_same("A' of the projection", seed, &text, &projection.a_newton, &a);
        assert_same("A'", seed, &text, &newton.a_newton, &a_newton);

        // ∂r/∂λ is the transpose of the rows
        for k in unit(d.rows()) {
            let along = |x: &mut Instant<Complex64>| add(&mut x.lambda[k], 1.0);
            let force = imaginary(&derivative(&at, along, |x| x.residual(&complex)).0);
            let row: Vec<f64> = (0..d.nq)
                .map(|j| match k.checked_sub(holonomic) {
                    None => phi_z[j * holonomic + k],
                    Some(k) => a[j * d.n_nonholonomic + k],
                })
                .collect();
            assert_same(&format!("force of row {k}"), seed, &text, &force, &row);
        }
    }
}

#[test]
fn constraints_are_differentiated_in_time() {
    for seed in 0..MECHANISMS {
        let text = random_closed(seed, shape(seed));
        let program = program(&text, ReferencePoint::Origin);
        let model = Interpreted::<f64>::new(program.clone());
        let complex = Interpreted::<Complex64>::new(program);
        let at = Instant::random(&model, &mut Random::new(seed + 7));
        let d = model.dims();
        let holonomic = d.n_holonomic + d.n_normalisation;
        let moving = |x: &mut Instant<Complex64>| {
            add(&mut x.t, 1.0);
            for j in 0..d.nq {
                add(&mut x.z[j], at.zd[j]);
                add(&mut x.zd[j], at.zdd[j]);
            }
        };
        let (_, phi) = at.residual(&model);
        let rates = at.rates(&model);
        let (_, phid) = derivative(&at, moving, |x| x.residual(&complex));
        assert_same("Φd", seed, &text, &rates[..holonomic], &imaginary(&phid)[..holonomic]);
        assert_same("Ψ", seed, &text, &rates[holonomic..], &phi[holonomic..]);
        let phidd = imaginary(&derivative(&at, moving, |x| x.rates(&complex)));
        assert_same("Φdd and Ψd", seed, &text, &at.accelerations(&model), &phidd);
    }
}
