//! Random mechanisms with loops and constraints through the engine: every matrix against complex steps of the
//! residual and of the constraints, solves against products, the two forms against each other.

mod coordinate_form;
mod joint_form;
mod linkages;
mod runs;

use crate::mechanisms;
use mbs_codegen::kinematics::ReferencePoint;
use mbs_codegen::program::{BundleKind, Options, Program};
use mbs_codegen::{Request, generate};
use mbs_engine::{Interpreted, verify};
use mbs_runtime::formulation::State;
use mbs_runtime::{
    At, Complex64, Constrained, ConstrainedDynamics, Motion, Objectives, Reactions, Scalar, Stabilisation,
    System, Weights,
};
use mbs_tests::fuzz::mutate::mutate;
use mbs_tests::instant::largest;
use mbs_tests::random_closed::{Shape, random_closed};
use mbs_tests::random_model::Random;

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
    fn random(model: &Interpreted, random: &mut Random) -> Self {
        let verify::Instant { t, z, zd, zdd, u, lambda } = crate::instant(model, random);
        Instant { t, z, zd, zdd, u, lambda }
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
