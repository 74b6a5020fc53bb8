//! A generated module as a problem that an optimiser of another crate solves.

use basin::{
    BoxBounds, ConstraintDescription, ConstraintSet, Constraints, CostFunction, Executor, FirstOrderState,
    Gradient, Lbfgs, State, StepOutcome,
};
use mbs_generated::five_bar::{Error, GradientMemory, Model, Parameters, Setup};
use mbs_runtime::simulation::Problem;

/// The springs of the five-bar linkage: what is to be small, and between which bounds.
struct Springs {
    problem: Problem<Model>,
    objective: usize,
    lower: Vec<f64>,
    upper: Vec<f64>,
}

impl Springs {
    fn value_and_gradient(&self, x: &[f64]) -> Result<(f64, Vec<f64>), Error> {
        let mut memory: GradientMemory = [0.0; _];
        let mut gradient = vec![0.0; x.len()];
        let value = self.problem.value_and_gradient(self.objective, x, &mut memory, &mut gradient)?;
        Ok((value, gradient))
    }
}

impl CostFunction for Springs {
    type Param = Vec<f64>;
    type Output = f64;
    type Error = Error;

    fn cost(&self, x: &Vec<f64>) -> Result<f64, Error> {
        Ok(self.value_and_gradient(x)?.0)
    }
}

impl Gradient for Springs {
    type Gradient = Vec<f64>;

    fn gradient(&self, x: &Vec<f64>) -> Result<Vec<f64>, Error> {
        Ok(self.value_and_gradient(x)?.1)
    }
}

impl Constraints for Springs {
    type Set = ConstraintSet<BoxBounds<Vec<f64>>>;

    fn constraints(&self) -> <Self::Set as ConstraintDescription>::Borrowed<'_> {
        ConstraintSet::new().with_bounds(BoxBounds::new(Some(&self.lower), Some(&self.upper)))
    }
}

/// The springs for which the start is nearest to an equilibrium, of which one cannot be longer than 2.4 m: as `mbs optimise` has it.
#[test]
fn an_optimiser_of_another_crate_takes_a_generated_module() {
    let mut setup = Setup::new(Parameters::default());
    setup.settings.step = 5e-3;
    let problem = Problem::new(setup, &Parameters::BOUNDS);
    let unknowns: Vec<_> = problem.unknowns().collect();
    let names: Vec<&str> = unknowns.iter().map(|unknown| unknown.name).collect();
    assert_eq!(names, ["L_s1", "L_s2", "m_A1", "x_G", "L_A1"]);
    // What is not to vary has equal bounds.
    let bounds = |name: &str, value: f64| match name {
        "L_s1" => (2.0, 2.4),
        "L_s2" => (1.7, 2.2),
        _ => (value, value),
    };
    let bounds: Vec<(f64, f64)> = unknowns.iter().map(|u| bounds(u.name, u.value)).collect();
    let springs = Springs {
        problem,
        objective: problem.objective("psi1").expect("an objective"),
        lower: bounds.iter().map(|(lower, _)| *lower).collect(),
        upper: bounds.iter().map(|(_, upper)| *upper).collect(),
    };
    let start: Vec<f64> = unknowns.iter().map(|unknown| unknown.value).collect();
    let solver = Lbfgs::new().with_absolute_projected_gradient_tolerance(1e-8);
    let Ok(mut stepper) =
        Executor::new(springs, solver, FirstOrderState::new(start)).max_iter(100).into_stepper()
    else {
        panic!("the start cannot be run")
    };
    loop {
        match stepper.step() {
            Err(_) => panic!("a run failed"),
            Ok(StepOutcome::Stopped(_)) => break,
            Ok(_) => {}
        }
    }
    let x = stepper.state().param();
    // By independent code; the trapezoidal rule at this step is 5e-5 off.
    assert_eq!(x[0], 2.4);
    assert!((x[1] - 1.8441615744).abs() < 1e-4, "{x:?}");
    assert!(stepper.iter() < 30);
}

/// Values and derivatives are those of `gradient`; lengths are checked; inputs of the list are no unknowns.
#[test]
fn slices_have_the_numbers_of_the_module() {
    let mut setup = Setup::new(Parameters::default());
    setup.settings.end = 0.1;
    let problem = Problem::new(setup, &Parameters::BOUNDS);
    let n = problem.len();
    let x: Vec<f64> = problem.unknowns().map(|unknown| 1.01 * unknown.value).collect();
    let mut memory: GradientMemory = [0.0; _];
    let (mut values, mut jacobian) = (vec![0.0; 3], vec![0.0; 3 * n]);
    problem.evaluate(&x, &mut memory, &mut values, &mut jacobian).expect("a run");
    let found = mbs_generated::five_bar::gradient_of(&problem.setup_at(&x).expect("lengths")).expect("a run");
    assert_eq!(values, [found.psi1.value, found.psi2.value, found.psi3.value]);
    assert_eq!(jacobian[..n], found.psi1.by.to_array());
    assert_eq!(jacobian[2 * n..], found.psi3.by.to_array());
    let mut gradient = vec![0.0; n];
    let value = problem.value_and_gradient(1, &x, &mut memory, &mut gradient).expect("a run");
    assert_eq!((value, &gradient[..]), (values[1], &jacobian[n..2 * n]));
    assert!(problem.value_and_gradient(3, &x, &mut memory, &mut gradient).is_err());
    assert!(problem.evaluate(&x[1..], &mut memory, &mut values, &mut jacobian).is_err());
    let negative: Vec<f64> = x.iter().map(|x| -x).collect();
    assert!(problem.evaluate(&negative, &mut memory, &mut values, &mut jacobian).is_err());

    use mbs_generated::cart_pole;
    let cart = Problem::new(cart_pole::Setup::new(Default::default()), &cart_pole::Parameters::BOUNDS);
    assert!(cart.unknowns().all(|unknown| unknown.name != "push") && cart.len() == 6);
}
