//! Consistent starts, and fully driven mechanisms.

use crate::systems::lagrangian::{Lagrangian, Mechanism};
use crate::systems::mechanisms::{Contradiction, Forgotten, Pendulum, Pursuit, SliderCrank};
use crate::systems::{bits, distance};
use mbs_runtime::formulation::StartStatistics;
use mbs_runtime::inputs::NoInputs;
use mbs_runtime::{Ali3p, Assembly, Complex64, EvalError, Level, Quantity, Scalar, StepError};

/// A pendulum some of whose coordinates are held.
#[derive(Clone, Copy)]
struct Held<const COPIES: usize> {
    pendulum: Pendulum<COPIES>,
    held: [bool; 2],
}

impl<const COPIES: usize> Held<COPIES> {
    const LENGTH: f64 = 1.3;

    fn new(held: [bool; 2]) -> Self {
        Self { pendulum: Pendulum { mass: 2.0, length: Self::LENGTH }, held }
    }
}

impl<const COPIES: usize> Mechanism for Held<COPIES> {
    const NQ: usize = 2;
    const HOLONOMIC: usize = COPIES;

    fn kinetic<S: Scalar>(&self, rho: &[S], z: &[S], zd: &[S]) -> S {
        self.pendulum.kinetic(rho, z, zd)
    }
    fn force<S: Scalar>(&self, rho: &[S], t: S, z: &[S], zd: &[S], u: &[S], q: &mut [S]) {
        self.pendulum.force(rho, t, z, zd, u, q);
    }
    fn phi<S: Scalar>(&self, rho: &[S], t: S, z: &[S], phi: &mut [S]) {
        self.pendulum.phi(rho, t, z, phi);
    }
    fn held(&self) -> &[bool] {
        &self.held
    }
    fn names(&self) -> &[&str] {
        &["rod", "second_rod"]
    }
}

fn start<T: Mechanism>(system: &Lagrangian<T, f64>, state: &mut [f64]) -> Result<StartStatistics, StepError> {
    let mut scratch = vec![f64::NAN; Assembly::scratch_len(&Lagrangian::<T, f64>::DIMS)];
    Assembly::DEFAULT.start(system, &mut NoInputs, state, &mut scratch)
}

fn driven<T: Mechanism>(
    system: &Lagrangian<T, f64>,
    state: &mut [f64],
) -> Result<StartStatistics, StepError> {
    let mut scratch = vec![f64::NAN; Assembly::scratch_len(&Lagrangian::<T, f64>::DIMS)];
    Assembly::DEFAULT.driven(system, &mut NoInputs, state, &mut scratch)
}

#[test]
fn positions_move_as_little_as_possible() {
    // Along the radius.
    let system = Lagrangian::new(Held::<1>::new([false, false]));
    let mut state = system.guess(0.0, &[0.3, -0.4], &[0.0, 0.0]);
    let statistics = start(&system, &mut state).unwrap();
    assert!(statistics.phi < 1e-15 && statistics.iterations < 12, "{statistics:?}");
    assert!(distance(system.view(&mut state).z, &[0.6 * 1.3, -0.8 * 1.3]) < 1e-14);

    // Along y, if x is held; downwards, where the guess is.
    let system = Lagrangian::new(Held::<1>::new([true, false]));
    for guess in [-0.1, -0.4, -2.0, -100.0] {
        let mut state = system.guess(0.0, &[0.5, guess], &[0.0, 0.0]);
        start(&system, &mut state).unwrap();
        assert!(distance(system.view(&mut state).z, &[0.5, -1.2]) < 1e-14, "{guess}");
    }
}

/// A point on an ellipse with half axes 2 and 1, in two rows or one.
#[derive(Clone, Copy)]
struct Ellipse<const COPIES: usize>;

impl<const COPIES: usize> Mechanism for Ellipse<COPIES> {
    const NQ: usize = 2;
    const HOLONOMIC: usize = COPIES;

    fn kinetic<S: Scalar>(&self, _: &[S], _: &[S], zd: &[S]) -> S {
        zd[0] * zd[0] + zd[1] * zd[1]
    }
    fn phi<S: Scalar>(&self, _: &[S], _: S, z: &[S], phi: &mut [S]) {
        let square = S::from_f64(0.25) * z[0] * z[0] + z[1] * z[1];
        phi[0] = square - S::ONE;
        if COPIES > 1 {
            phi[1] = S::from_f64(3.0) * (square.sqrt() - S::ONE);
        }
    }
}

/// Of all positions the nearest one, not where the shortest steps happen to lead.
#[test]
fn the_nearest_position_is_found() {
    fn check<const COPIES: usize>() {
        let system = Lagrangian::<_, f64>::new(Ellipse::<COPIES>);
        for k in 0..60 {
            // Clear of the segment between the centres of curvature, from where two positions are as near.
            let angle = 0.31 + 0.1047 * f64::from(k);
            let radius = 1.8 + 0.3 * f64::from(k % 7);
            let guess = [radius * angle.cos(), radius * angle.sin()];
            let mut state = system.guess(0.0, &guess, &[0.0, 0.0]);
            let statistics = start(&system, &mut state).unwrap();
            assert!(statistics.phi < 1e-14 && statistics.iterations < 40, "{guess:?} {statistics:?}");
            let found = system.view(&mut state).z.to_vec();
            // By a search over the ellipse, and Newton's method on (z − guess)·z' = 0.
            let at = |s: f64| [2.0 * s.cos() - guess[0], s.sin() - guess[1], -2.0 * s.sin(), s.cos()];
            let distance_at = |s: &f64| at(*s)[0].hypot(at(*s)[1]);
            let angles = (0..720).map(|i| f64::from(i) * std::f64::consts::PI / 360.0);
            let mut s = angles.min_by(|a, b| distance_at(a).total_cmp(&distance_at(b))).unwrap();
            for _ in 0..20 {
                let [x, y, dx, dy] = at(s);
                let slope = dx * dx + dy * dy - x * 2.0 * s.cos() - y * s.sin();
                s -= (x * dx + y * dy) / slope;
            }
            let expected = [2.0 * s.cos(), s.sin()];
            assert!(distance(&found, &expected) < 1e-13, "{guess:?}: {found:?} {expected:?}");
        }
    }
    check::<1>();
    check::<2>();
}

#[test]
fn rates_keep_what_is_held_and_change_the_rest_as_little_as_possible() {
    // z = (0.5, −1.2): tangent (12, 5)/13.
    let z = [0.5, -1.2];
    let system = Lagrangian::new(Held::<1>::new([false, false]));
    let mut state = system.guess(0.0, &z, &[1.0, 0.0]);
    start(&system, &mut state).unwrap();
    assert!(distance(system.view(&mut state).zd, &[144.0 / 169.0, 60.0 / 169.0]) < 1e-14);

    let system = Lagrangian::new(Held::<1>::new([true, false]));
    let mut state = system.guess(0.0, &z, &[1.0, 7.0]);
    start(&system, &mut state).unwrap();
    assert!(distance(system.view(&mut state).zd, &[1.0, 5.0 / 12.0]) < 1e-14);
}

#[test]
fn accelerations_and_multipliers_are_those_of_the_motion() {
    let once = Lagrangian::new(Held::<1>::new([true, false]));
    let twice = Lagrangian::new(Held::<2>::new([true, false]));
    let (z, zd) = ([0.5, -1.2], [1.0, 5.0 / 12.0]);
    let (mut a, mut b) = (once.guess(0.0, &z, &zd), twice.guess(0.0, &z, &zd));
    let (alone, redundant) = (start(&once, &mut a).unwrap(), start(&twice, &mut b).unwrap());
    assert_eq!((alone.rows, alone.rank, redundant.rows, redundant.rank), (1, 1, 2, 1));
    // m zdd + λ z = (0, −m g) with z·zdd = −|zd|²
    let (a, b) = (once.view(&mut a), twice.view(&mut b));
    let speed = 1.0 + 25.0 / 144.0;
    let lambda = (2.0 * speed + 2.0 * 9.81 * 1.2) / 1.69;
    assert!((a.lambda[0] - lambda).abs() < 1e-13, "{:?} {lambda}", a.lambda);
    let zdd = [-0.5 * lambda * 0.5, -9.81 + 0.5 * lambda * 1.2];
    assert!(distance(a.zdd, &zdd) < 1e-13 && distance(b.zdd, &zdd) < 1e-13);
    // Of least norm: along (1, 1/L).
    let part = lambda / (1.0 + 1.0 / 1.69);
    assert!(distance(b.lambda, &[part, part / 1.3]) < 1e-13, "{:?}", b.lambda);
    // S = |z|²/m, and |z/L|²/m.
    assert!(distance(b.scale, &[0.845, 0.5]) < 1e-14);
    assert_eq!((*a.redundant, *b.redundant), (0.0, 1.0));
}

#[test]
fn what_cannot_be_assembled_is_named() {
    let system = Lagrangian::new(Held::<1>::new([true, false]));
    let mut state = system.guess(0.25, &[2.0, -0.4], &[0.0, 0.0]);
    let before = bits(&state);
    let error = start(&system, &mut state).unwrap_err();
    let StepError::NotAssembled { t: 0.25, violation, quantity: Quantity::Holonomic, index: 0, .. } = error
    else {
        panic!("{error:?}")
    };
    // The best that can be: y = 0.
    assert!((violation - 0.5 * (4.0 - 1.69)).abs() < 1e-6, "{violation}");
    let text = error.describe(&system).to_string();
    assert!(text.starts_with("at t = 0.25 the mechanism cannot be assembled"), "{text}");
    assert!(
        text.contains("`rod`") && text.ends_with("release a held coordinate or change the guesses"),
        "{text}"
    );
    assert_eq!(bits(&state), before);

    // Nothing is free.
    let system = Lagrangian::new(Held::<1>::new([true, true]));
    let mut state = system.guess(0.0, &[0.3, -0.4], &[0.0, 0.0]);
    assert!(matches!(start(&system, &mut state), Err(StepError::NotAssembled { .. })));
    // Nothing is free, but it fits; its rates do not.
    let mut state = system.guess(0.0, &[0.5, -1.2], &[1.0, 1.0]);
    let error = start(&system, &mut state).unwrap_err();
    assert!(matches!(error, StepError::Inconsistent { level: Level::Velocity, .. }), "{error:?}");
}

#[test]
fn contradicting_drives_are_named() {
    for (power, level) in [(1, Level::Velocity), (2, Level::Acceleration)] {
        let system = Lagrangian::new(Contradiction { power });
        let mut state = system.guess(0.0, &[0.1], &[0.0]);
        let error = start(&system, &mut state).unwrap_err();
        let StepError::Inconsistent { level: found, quantity: Quantity::Holonomic, .. } = error else {
            panic!("{error:?}")
        };
        assert_eq!(found, level);
        let text = error.describe(&system).to_string();
        assert!(text.contains("`wall`") || text.contains("`motor`"), "{text}");
        assert!(text.contains(level.words()), "{text}");
    }
    // A cube contradicts nothing at t = 0.
    let system = Lagrangian::new(Contradiction { power: 3 });
    let statistics = start(&system, &mut system.guess(0.0, &[0.1], &[0.0])).unwrap();
    assert_eq!((statistics.rows, statistics.rank), (2, 1));
    // Later it does, and the step says so.
    let mut state = system.start(0.0, &[0.0], &[0.0]);
    let error = system.steps(&Ali3p::DEFAULT, &mut state, 0.1, 1).unwrap_err();
    assert!(matches!(error, StepError::NotConverged { quantity: Quantity::Holonomic, .. }), "{error:?}");
}

#[test]
fn a_variable_without_inertia_or_constraint_is_named() {
    let system = Lagrangian::new(Forgotten);
    let error = start(&system, &mut system.guess(0.0, &[0.0; 2], &[0.0; 2])).unwrap_err();
    let expected = EvalError::SingularLeading { quantity: Quantity::Coordinate, index: 1 };
    assert_eq!(error, StepError::Eval { t: 0.0, h: 0.0, error: expected });
    assert!(error.to_string().contains("coordinate 1"), "{error}");
    // With a constraint it is fine: the angle of the pursuit has no mass.
    let pursuit = Lagrangian::new(Pursuit { force: 5.0 });
    let (z, zd) = Pursuit::start();
    let statistics = start(&pursuit, &mut pursuit.guess(0.0, &z, &zd)).unwrap();
    assert_eq!((statistics.rows, statistics.rank), (2, 2));
}

#[test]
fn a_guess_that_is_not_finite_is_an_error() {
    let system = Lagrangian::new(Held::<1>::new([false, false]));
    let error = start(&system, &mut system.guess(0.0, &[0.0, f64::NAN], &[0.0, 0.0])).unwrap_err();
    assert!(matches!(error, StepError::NotFinite { quantity: Quantity::Coordinate, index: 1, .. }));
    // In the centre of the circle there is no way out.
    let error = start(&system, &mut system.guess(0.0, &[0.0, 0.0], &[0.0, 0.0])).unwrap_err();
    assert!(matches!(error, StepError::NotAssembled { .. }), "{error:?}");
}

/// From anywhere it ends on the circle, near the guess's direction.
#[test]
fn far_guesses_are_assembled() {
    let system = Lagrangian::new(Held::<2>::new([false, false]));
    for k in 0..200 {
        let angle = 0.1 * f64::from(k);
        let radius = 1e-3 * 1.08_f64.powi(k);
        let guess = [radius * angle.cos(), radius * angle.sin()];
        let mut state = system.guess(0.0, &guess, &[0.0, 0.0]);
        let statistics = start(&system, &mut state).unwrap();
        assert!(statistics.phi < 1e-14, "{radius:e} {statistics:?}");
        let expected = [1.3 * angle.cos(), 1.3 * angle.sin()];
        // Far from the circle the two rows want different steps: their multipliers are large, and rounding of them turns
        // the way a little.
        assert!(distance(system.view(&mut state).z, &expected) < 1e-6, "{radius:e}");
    }
}

#[test]
fn a_complex_guess_carries_its_derivative() {
    let system = Lagrangian::<_, Complex64>::new(Held::<2>::new([true, false]));
    let mut state = system.guess(0.0, &[0.5, -1.2], &[1.0, 0.0]);
    system.view(&mut state).z[0].im = 1e-30;
    let mut scratch = vec![Complex64::ZERO; Assembly::scratch_len(&Lagrangian::<Held<2>, f64>::DIMS)];
    Assembly::DEFAULT.start(&system, &mut NoInputs, &mut state, &mut scratch).unwrap();
    let view = system.view(&mut state);
    // y = −√(L² − x²), yd = −x xd/y
    assert!((view.z[1].im / 1e-30 - 0.5 / 1.2).abs() < 1e-8);
    let slope = -(1.0 / -1.2) + 0.5 / (1.2 * 1.2) * (0.5 / 1.2);
    assert!((view.zd[1].im / 1e-30 - slope).abs() < 1e-8, "{:e} {slope}", view.zd[1].im);
}

#[test]
fn a_driven_mechanism_needs_no_dynamics() {
    let system = Lagrangian::new(SliderCrank { driven: true });
    let mut state = system.guess(0.0, &[0.0, 2.0], &[9.0, 9.0]);
    for k in 0..=100 {
        let t = 0.05 * f64::from(k);
        *system.view(&mut state).t = t;
        let statistics = driven(&system, &mut state).unwrap();
        assert_eq!((statistics.rank, statistics.rows), (2, 2));
        let view = system.view(&mut state);
        let [z, zd, zdd] = SliderCrank::exact(t);
        assert!(distance(view.z, &z) < 1e-13 && distance(view.zd, &zd) < 1e-12, "{t}");
        assert!(distance(view.zdd, &zdd) < 1e-11, "{t}: {:e}", distance(view.zdd, &zdd));
    }

    let system = Lagrangian::new(SliderCrank { driven: false });
    let mut state = system.guess(0.0, &[0.5, 1.0], &[0.0, 0.0]);
    let before = bits(&state);
    let error = driven(&system, &mut state).unwrap_err();
    assert!(matches!(error, StepError::NotDriven { t: 0.0, .. }), "{error:?}");
    assert!(error.to_string().contains("needs a drive"), "{error}");
    assert_eq!(bits(&state), before);
}
