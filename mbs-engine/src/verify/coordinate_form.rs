//! Derivatives in coordinate form: the leading matrix, the matrix of projections, and what sensitivities need.

use super::point::Point;
use super::{By, Checks, Of, matrix};
use crate::Interpreted;
use mbs_runtime::linear::blocks::{Blocks, holonomic_rows};
use mbs_runtime::sensitivity::{MotionValues, ObjectiveValues, ProjectionValues};
use mbs_runtime::{
    At, Complex64, Constrained, Impulses, ObjectiveDerivatives, Objectives, Scalar, Sensitivities, System,
    Weights,
};

const BY_Z: By = By::Motion([1.0, 0.0, 0.0]);
const BY_ZD: By = By::Motion([0.0, 1.0, 0.0]);
const BY_ZDD: By = By::Motion([0.0, 0.0, 1.0]);

type Numbers<S> = Option<Vec<S>>;

fn residual<S: Scalar>(model: &Interpreted<S>, at: &Point<S>) -> Option<(Vec<S>, Vec<S>)> {
    let dims = model.dims();
    let (mut r, mut phi) = (vec![S::ZERO; dims.nq], vec![S::ZERO; dims.rows()]);
    let mut w = vec![S::ZERO; dims.workspace];
    model.residual(at.motion(), &at.lambda, &mut w, &mut r, &mut phi).ok()?;
    Some((r, phi))
}

fn forces(model: &Interpreted<Complex64>, at: &Point<Complex64>) -> Numbers<Complex64> {
    residual(model, at).map(|(r, _)| r)
}

/// Φ alone.
fn holonomic(model: &Interpreted<Complex64>, at: &Point<Complex64>) -> Numbers<Complex64> {
    let (_, mut phi) = residual(model, at)?;
    phi.truncate(holonomic_rows(&model.dims()));
    Some(phi)
}

/// Ψ alone.
fn nonholonomic(model: &Interpreted<Complex64>, at: &Point<Complex64>) -> Numbers<Complex64> {
    let (_, mut phi) = residual(model, at)?;
    Some(phi.split_off(holonomic_rows(&model.dims())))
}

fn rows(model: &Interpreted<Complex64>, at: &Point<Complex64>) -> Numbers<Complex64> {
    residual(model, at).map(|(_, phi)| phi)
}

fn rates(model: &Interpreted<Complex64>, at: &Point<Complex64>) -> Numbers<Complex64> {
    let dims = model.dims();
    let (mut phid, mut w) = (vec![Complex64::ZERO; dims.rows()], vec![Complex64::ZERO; dims.workspace]);
    model.constraint_rates(at.motion(), &mut w, &mut phid).ok()?;
    Some(phid)
}

fn accelerations(model: &Interpreted<Complex64>, at: &Point<Complex64>) -> Numbers<Complex64> {
    let dims = model.dims();
    let (mut phidd, mut w) = (vec![Complex64::ZERO; dims.rows()], vec![Complex64::ZERO; dims.workspace]);
    model.constraint_accelerations(at.motion(), &mut w, &mut phidd).ok()?;
    Some(phidd)
}

/// M x + (Φ_zᵀ, Aᵀ) y: the residual at rest, linear in accelerations and multipliers, less its constant part.
fn impulse(
    model: &Interpreted<Complex64>,
    at: &Point<Complex64>,
    x: &[f64],
    y: &[f64],
) -> Numbers<Complex64> {
    let lift = |values: &[f64]| values.iter().map(|&x| Complex64::new(x, 0.0)).collect::<Vec<_>>();
    let mut still = at.clone();
    still.zd.fill(Complex64::ZERO);
    (still.zdd, still.lambda) = (lift(x), lift(y));
    let pushed = forces(model, &still)?;
    still.zdd.fill(Complex64::ZERO);
    still.lambda.fill(Complex64::ZERO);
    let rest = forces(model, &still)?;
    Some(pushed.into_iter().zip(rest).map(|(a, b)| a - b).collect())
}

/// Integrands, or terminal terms.
fn objectives(model: &Interpreted<Complex64>, at: &Point<Complex64>, terminal: bool) -> Numbers<Complex64> {
    let dims = model.dims();
    let (v, vd) = at.in_joint_form(model).ok()?;
    let lambda: Vec<_> = dims.in_joint_form(&at.lambda).chain(dims.in_joint_form(&at.projections)).collect();
    let mut w = vec![Complex64::ZERO; dims.workspace];
    let mut values = [vec![Complex64::ZERO; dims.n_objectives], vec![Complex64::ZERO; dims.n_objectives]];
    let [integrands, terminals] = &mut values;
    let instant = At { t: at.t, z: &at.z, v: &v, x: &[], u: &at.u };
    model.objectives(instant, &vd, &lambda, &mut w, integrands, terminals).ok()?;
    let [integrands, terminals] = values;
    Some(if terminal { terminals } else { integrands })
}

/// All derivatives in coordinate form that the model has.
pub(super) fn check(checks: &mut Checks, point: &Point<f64>) {
    newton(checks, point);
    linearise(checks, point);
    projections(checks, point);
    products(checks, point);
    tangent_product(checks, point);
    objective_derivatives(checks, point);
}

/// The leading matrices of Newton's method and of the projections.
fn newton(checks: &mut Checks, point: &Point<f64>) {
    let model = &checks.model;
    let dims = model.dims();
    let (nq, first) = (dims.nq, holonomic_rows(&dims));
    let mut w = vec![0.0; dims.workspace];
    let (mut r, mut phi) = (vec![0.0; nq], vec![0.0; dims.rows()]);
    let mut values = vec![0.0; dims.n_matrix];
    let weights = Weights { velocity: 0.3, position: 0.2, ratio: 0.7 };
    let pattern = model.pattern();
    let [tangent, holonomic_places, nonholonomic_places] =
        [pattern.tangent, pattern.holonomic, pattern.nonholonomic].map(<[_]>::to_vec);
    if model.newton(point.motion(), &point.lambda, weights, &mut w, &mut r, &mut phi, &mut values).is_ok() {
        let Ok(list) = Blocks::of(&dims, &model.pattern(), &values) else {
            return checks.unreadable("newton");
        };
        let leading = matrix(list.tangent, &tangent, nq, nq);
        let phi_z = matrix(list.holonomic, &holonomic_places, first, nq);
        let [a, a_newton] = [list.nonholonomic, list.nonholonomic_newton]
            .map(|values| matrix(values, &nonholonomic_places, dims.n_nonholonomic, nq));
        let mixed = By::Motion([0.2, 0.3, 1.0]);
        checks.compare(("newton", "W"), (Of::Coordinates, mixed), point, &leading, &forces);
        checks.compare(("newton", "Φ_z"), (Of::Rows, BY_Z), point, &phi_z, &holonomic);
        let of = Of::Nonholonomic;
        checks.compare(("newton", "A"), (of, BY_ZD), point, &a, &nonholonomic);
        let mixed = By::Motion([0.7, 1.0, 0.0]);
        checks.compare(("newton", "A'"), (of, mixed), point, &a_newton, &nonholonomic);
    }
    let model = &checks.model;
    if model.projection(point.t, &point.z, &point.u, &mut w, &mut values).is_ok() {
        let list = Blocks::of(&dims, &model.pattern(), &values);
        let Ok(list) = list else { return checks.unreadable("projection") };
        let mass = matrix(list.tangent, &tangent, nq, nq);
        let phi_z = matrix(list.holonomic, &holonomic_places, first, nq);
        let a = matrix(list.nonholonomic, &nonholonomic_places, dims.n_nonholonomic, nq);
        checks.compare(("projection", "M"), (Of::Coordinates, BY_ZDD), point, &mass, &forces);
        checks.compare(("projection", "Φ_z"), (Of::Rows, BY_Z), point, &phi_z, &holonomic);
        checks.compare(("projection", "A"), (Of::Nonholonomic, BY_ZD), point, &a, &nonholonomic);
    }
}

fn linearise(checks: &mut Checks, point: &Point<f64>) {
    let model = &checks.model;
    let dims = model.dims();
    let (nq, p) = (dims.nq, dims.sensitivity.parameters);
    let (mut w, mut values) = (vec![0.0; dims.workspace], vec![0.0; dims.sensitivity.newton]);
    if values.is_empty() || model.linearise(point.motion(), &point.lambda, &mut w, &mut values).is_err() {
        return;
    }
    let (pattern, places) = (model.pattern(), model.parameter_places());
    let name = "linearise";
    let Ok(list) = MotionValues::of(&pattern, &places, &values) else { return checks.unreadable(name) };
    let square = |values| matrix(values, pattern.tangent, nq, nq);
    let [m, c, k] = [list.mass, list.by_velocity, list.by_position].map(square);
    let phi_z = matrix(list.holonomic, pattern.holonomic, holonomic_rows(&dims), nq);
    let of_psi = |values| matrix(values, pattern.nonholonomic, dims.n_nonholonomic, nq);
    let [a, psi_z] = [list.nonholonomic, list.nonholonomic_z].map(of_psi);
    let r_rho = matrix(list.residual, places.residual, nq, p);
    let phi_rho = matrix(list.constraints, places.constraints, dims.rows(), p);
    for (what, by, written) in [("r_zdd", BY_ZDD, &m), ("r_zd", BY_ZD, &c), ("r_z", BY_Z, &k)] {
        checks.compare((name, what), (Of::Coordinates, by), point, written, &forces);
    }
    checks.compare((name, "Φ_z"), (Of::Rows, BY_Z), point, &phi_z, &holonomic);
    checks.compare((name, "Ψ_zd"), (Of::Nonholonomic, BY_ZD), point, &a, &nonholonomic);
    checks.compare((name, "Ψ_z"), (Of::Nonholonomic, BY_Z), point, &psi_z, &nonholonomic);
    checks.compare((name, "r_ρ"), (Of::Coordinates, By::Parameters), point, &r_rho, &forces);
    checks.compare((name, "Φ_ρ"), (Of::Rows, By::Parameters), point, &phi_rho, &rows);
}

fn projections(checks: &mut Checks, point: &Point<f64>) {
    let model = &checks.model;
    let dims = model.dims();
    let (nq, p, first) = (dims.nq, dims.sensitivity.parameters, holonomic_rows(&dims));
    let (mut w, mut values) = (vec![0.0; dims.workspace], vec![0.0; dims.sensitivity.projections]);
    // Any impulses will do: here the instant's own motion and multipliers.
    let reversed: Vec<f64> = point.lambda.iter().rev().copied().collect();
    let impulses = Impulses {
        velocity: &point.zd,
        velocity_multipliers: &point.lambda,
        acceleration: &point.zdd,
        acceleration_multipliers: &reversed,
    };
    if values.is_empty()
        || model.linearise_projections(point.motion(), impulses, &mut w, &mut values).is_err()
    {
        return;
    }
    let (pattern, places) = (model.pattern(), model.parameter_places());
    let name = "linearise_projections";
    let Ok(list) = ProjectionValues::of(&pattern, &places, &values) else { return checks.unreadable(name) };
    let [velocity_z, acceleration_z] = [list.velocity_impulse, list.acceleration_impulse]
        .map(|values| matrix(values, pattern.tangent, nq, nq));
    let [phid_z, phidd_z] =
        [list.rates_z, list.accelerations_z].map(|values| matrix(values, pattern.holonomic, first, nq));
    let [psi_z, psid_z, psid_zd] =
        [list.nonholonomic_z, list.nonholonomic_rates_z, list.nonholonomic_rates_zd]
            .map(|values| matrix(values, pattern.nonholonomic, dims.n_nonholonomic, nq));
    let [velocity_rho, acceleration_rho] = [list.velocity_impulse_rho, list.acceleration_impulse_rho]
        .map(|values| matrix(values, places.impulse, nq, p));
    let rates_rho = matrix(list.rates, places.rates, dims.rows(), p);
    let accelerations_rho = matrix(list.accelerations, places.accelerations, dims.rows(), p);
    let twice: Vec<Vec<f64>> = phid_z.iter().map(|c| c.iter().map(|x| 2.0 * x).collect()).collect();

    let by_velocity = |model: &_, at: &_| impulse(model, at, &point.zd, &point.lambda);
    let by_acceleration = |model: &_, at: &_| impulse(model, at, &point.zdd, &reversed);
    let of = Of::Coordinates;
    checks.compare((name, "(M d + Φ_zᵀ σ)_z"), (of, BY_Z), point, &velocity_z, &by_velocity);
    checks.compare((name, "(M e + Φ_zᵀ κ)_z"), (of, BY_Z), point, &acceleration_z, &by_acceleration);
    checks.compare((name, "(M d + Φ_zᵀ σ)_ρ"), (of, By::Parameters), point, &velocity_rho, &by_velocity);
    checks.compare(
        (name, "(M e + Φ_zᵀ κ)_ρ"),
        (of, By::Parameters),
        point,
        &acceleration_rho,
        &by_acceleration,
    );
    let of_phi = |values: Option<Vec<Complex64>>| {
        let mut values = values?;
        values.truncate(first);
        Some(values)
    };
    let of_psi = |values: Option<Vec<Complex64>>| Some(values?.split_off(first));
    let phid = |model: &_, at: &_| of_phi(rates(model, at));
    let phidd = |model: &_, at: &_| of_phi(accelerations(model, at));
    let psi = |model: &_, at: &_| of_psi(rates(model, at));
    let psid = |model: &_, at: &_| of_psi(accelerations(model, at));
    checks.compare((name, "Φd_z"), (Of::Rows, BY_Z), point, &phid_z, &phid);
    checks.compare((name, "Φdd_z"), (Of::Rows, BY_Z), point, &phidd_z, &phidd);
    checks.compare((name, "Φdd_zd"), (Of::Rows, BY_ZD), point, &twice, &phidd);
    checks.compare((name, "Ψ_z"), (Of::Nonholonomic, BY_Z), point, &psi_z, &psi);
    checks.compare((name, "Ψd_z"), (Of::Nonholonomic, BY_Z), point, &psid_z, &psid);
    checks.compare((name, "Ψd_zd"), (Of::Nonholonomic, BY_ZD), point, &psid_zd, &psid);
    checks.compare((name, "Φd_ρ"), (Of::Rows, By::Parameters), point, &rates_rho, &rates);
    checks.compare((name, "Φdd_ρ"), (Of::Rows, By::Parameters), point, &accelerations_rho, &accelerations);
}

/// Transposed products: derivatives of sums of equations with weights.
fn products(checks: &mut Checks, point: &Point<f64>) {
    let dims = checks.model.dims();
    let n = dims.nq + dims.rows();
    let weights =
        |first: usize| (0..n).map(|i| ((first + 7 * i) % 11) as f64 / 5.0 - 1.0).collect::<Vec<f64>>();
    let [y, yd, ydd] = [1, 2, 3].map(weights);
    if dims.sensitivity.product_columns > 0 {
        newton_product(checks, point, &y);
    }
    if dims.sensitivity.product_columns > 0 || checks.model.projection_columns() > 0 {
        projection_products(checks, point, &yd, &ydd);
    }
}

/// yᵀ x
fn weighed(y: &[f64], x: &[Complex64]) -> Complex64 {
    y.iter().zip(x).fold(Complex64::ZERO, |sum, (&y, &x)| sum + Complex64::new(y, 0.0) * x)
}

/// A value for each row.
fn rows_of(values: &[f64]) -> Vec<Vec<f64>> {
    values.iter().map(|&x| vec![x]).collect()
}

/// By the parameters, from the derivatives by some of them and by values of tables.
fn by_parameters(
    checks: &Checks,
    which: usize,
    rho: &[f64],
    [read, places]: [&[f64]; 2],
) -> Option<Vec<f64>> {
    let dims = checks.model.dims();
    let sizes = dims.sensitivity;
    let (mut table, mut all) = (vec![0.0; sizes.table_values], vec![0.0; sizes.parameters]);
    for (&place, &weight) in places.iter().zip(read) {
        table[place as usize] += weight;
    }
    checks.model.table_product(&table, &mut vec![0.0; dims.workspace], &mut all).ok()?;
    for (&(_, parameter), &weight) in checks.model.product_places()[which].iter().zip(rho) {
        all[parameter as usize] += weight;
    }
    Some(all)
}

fn newton_product(checks: &mut Checks, point: &Point<f64>, y: &[f64]) {
    let dims = checks.model.dims();
    let (nq, sizes, mut w) = (dims.nq, dims.sensitivity, vec![0.0; dims.workspace]);
    let [mut z, mut zd, mut rho] = [nq, nq, sizes.newton_parameters].map(|len| vec![0.0; len]);
    let [mut read, mut places] = [(); 2].map(|()| vec![0.0; sizes.newton_reads]);
    let (at, lambda, model) = (point.motion(), &point.lambda, &checks.model);
    let found = model
        .newton_product(at, lambda, y, &mut w, &mut z, &mut zd, &mut rho, &mut read, &mut places)
        .is_ok()
        .then(|| by_parameters(checks, 0, &rho, [&read, &places]));
    let Some(Some(rho)) = found else { return checks.unreadable("newton_product") };
    let (of, name) = (Of::Product, "newton_product");
    let residual = |model: &_, at: &_| {
        let (r, phi) = residual(model, at)?;
        Some(vec![weighed(y, &[r, phi].concat())])
    };
    checks.compare((name, "(yᵀ(r; Φ; Ψ))_z"), (of, BY_Z), point, &rows_of(&z), &residual);
    checks.compare((name, "(yᵀ(r; Φ; Ψ))_zd"), (of, BY_ZD), point, &rows_of(&zd), &residual);
    checks.compare((name, "(yᵀ(r; Φ; Ψ))_ρ"), (of, By::Parameters), point, &rows_of(&rho), &residual);
}

fn projection_products(checks: &mut Checks, point: &Point<f64>, yd: &[f64], ydd: &[f64]) {
    let dims = checks.model.dims();
    let (nq, sizes, mut w) = (dims.nq, dims.sensitivity, vec![0.0; dims.workspace]);
    let reversed: Vec<f64> = point.lambda.iter().rev().copied().collect();
    let impulses = Impulses {
        velocity: &point.zd,
        velocity_multipliers: &point.lambda,
        acceleration: &point.zdd,
        acceleration_multipliers: &reversed,
    };
    let [mut zd, mut z, mut rho] = [nq, nq, sizes.projection_parameters].map(|len| vec![0.0; len]);
    let [mut read, mut places] = [(); 2].map(|()| vec![0.0; sizes.projection_reads]);
    let (at, model) = (point.motion(), &checks.model);
    let found = model
        .projection_product(at, impulses, yd, ydd, &mut w, &mut z, &mut rho, &mut read, &mut places)
        .and_then(|()| model.acceleration_product(at, ydd, &mut w, &mut zd))
        .is_ok()
        .then(|| by_parameters(checks, 1, &rho, [&read, &places]));
    let Some(Some(rho)) = found else { return checks.unreadable("projection_product") };
    let of = Of::Product;
    let accelerated = |model: &_, at: &_| Some(vec![weighed(&ydd[nq..], &accelerations(model, at)?)]);
    let name = "acceleration_product";
    checks.compare((name, "(yᵀ(Φdd; Ψd))_zd"), (of, BY_ZD), point, &rows_of(&zd), &accelerated);
    let projected = |model: &_, at: &_| {
        let velocity = [impulse(model, at, &point.zd, &point.lambda)?, rates(model, at)?].concat();
        let acceleration = [impulse(model, at, &point.zdd, &reversed)?, accelerations(model, at)?].concat();
        Some(vec![weighed(yd, &velocity) + weighed(ydd, &acceleration)])
    };
    let name = "projection_product";
    let label = "(yᵀ(M d + Bᵀσ; Φd) + …)_z";
    checks.compare((name, label), (of, BY_Z), point, &rows_of(&z), &projected);
    let label = "(yᵀ(M d + Bᵀσ; Φd) + …)_ρ";
    checks.compare((name, label), (of, By::Parameters), point, &rows_of(&rho), &projected);
}

/// Derivatives of ydᵀ P d + yddᵀ P e, where P is the symmetric part of the leading matrix.
fn tangent_product(checks: &mut Checks, point: &Point<f64>) {
    let dims = checks.model.dims();
    if dims.sensitivity.tangent_product == 0 {
        return;
    }
    let (nq, rows, p) = (dims.nq, dims.rows(), dims.sensitivity.parameters);
    let numbers = |first: usize, len: usize| {
        (0..len).map(|i| ((first + 7 * i) % 11) as f64 / 5.0 - 1.0).collect::<Vec<f64>>()
    };
    let [yd, ydd] = [2, 3].map(|first| numbers(first, nq + rows));
    let [d, e] = [4, 5].map(|first| numbers(first, nq));
    let impulses = Impulses {
        velocity: &d,
        velocity_multipliers: &point.lambda,
        acceleration: &e,
        acceleration_multipliers: &point.lambda,
    };
    let weights = |[velocity, position, ratio]: [f64; 3]| Weights { velocity, position, ratio };
    let tangent = [0.7, 0.3, 0.2];
    let model = &checks.model;
    let mut w = vec![0.0; dims.workspace];
    let [mut z, mut zd, mut zdd, mut lambda, mut rho] = [nq, nq, nq, rows, p].map(|len| vec![0.0; len]);
    let written = model.tangent_product(
        point.motion(),
        &point.lambda,
        weights(tangent),
        impulses,
        &yd,
        &ydd,
        &mut w,
        &mut z,
        &mut zd,
        &mut zdd,
        &mut lambda,
        &mut rho,
    );
    let name = "tangent_product";
    if written.is_err() {
        return checks.unreadable(name);
    }
    let product = |model: &Interpreted<Complex64>, at: &Point<Complex64>| {
        let lift = |x: f64| Complex64::new(x, 0.0);
        let [velocity, position, ratio] = tangent.map(lift);
        let weights = Weights { velocity, position, ratio };
        let (mut r, mut phi) = (vec![Complex64::ZERO; nq], vec![Complex64::ZERO; rows]);
        let mut w = vec![Complex64::ZERO; dims.workspace];
        let mut matrix = vec![Complex64::ZERO; dims.n_matrix];
        model.newton(at.motion(), &at.lambda, weights, &mut w, &mut r, &mut phi, &mut matrix).ok()?;
        let pattern = model.pattern();
        let blocks = Blocks::of(&dims, &pattern, &matrix).ok()?;
        let mut sum = Complex64::ZERO;
        for (&(i, j), &entry) in pattern.tangent.iter().zip(blocks.tangent) {
            let (i, j) = (i as usize, j as usize);
            let weight = yd[i] * d[j] + yd[j] * d[i] + ydd[i] * e[j] + ydd[j] * e[i];
            sum += entry * lift(0.5 * weight);
        }
        Some(vec![sum])
    };
    let row = |values: &[f64]| values.iter().map(|&x| vec![x]).collect::<Vec<_>>();
    for (what, by, values) in [
        ("(yᵀ P d)_z", BY_Z, &z),
        ("(yᵀ P d)_zd", BY_ZD, &zd),
        ("(yᵀ P d)_zdd", BY_ZDD, &zdd),
        ("(yᵀ P d)_λ", By::Multipliers, &lambda),
        ("(yᵀ P d)_ρ", By::Parameters, &rho),
    ] {
        checks.compare((name, what), (Of::Product, by), point, &row(values), &product);
    }
}

fn objective_derivatives(checks: &mut Checks, point: &Point<f64>) {
    let dims = checks.model.dims();
    let (n, nq, p) = (dims.n_objectives, dims.nq, dims.sensitivity.parameters);
    let mut w = vec![0.0; dims.workspace];
    let lambda = [&point.lambda[..], &point.projections].concat();
    for (terminal, len) in [(false, dims.sensitivity.integrands), (true, dims.sensitivity.terminals)] {
        let model = &checks.model;
        let mut values = vec![0.0; len];
        let written = if terminal {
            model.terminal_derivatives(point.motion(), &lambda, &mut w, &mut values)
        } else {
            model.integrand_derivatives(point.motion(), &lambda, &mut w, &mut values)
        };
        if len == 0 || written.is_err() {
            continue;
        }
        let columns = 3 * nq + dims.judged_rows() + p;
        let places = model.objective_places()[usize::from(terminal)];
        let name = if terminal { "terminal_derivatives" } else { "integrand_derivatives" };
        let list = ObjectiveValues::of(&dims, places, &values);
        let Ok(list) = list else { return checks.unreadable(name) };
        let mut rest = matrix(list.derivatives, places, n, columns);
        let value = |model: &_, at: &_| objectives(model, at, terminal);
        checks.compare_values(name, Of::Objectives, point, list.values, &value);
        for (what, by, count) in [
            ("by z", BY_Z, nq),
            ("by zd", BY_ZD, nq),
            ("by zdd", BY_ZDD, nq),
            ("by λ", By::Multipliers, dims.rows()),
            ("by σ, κ", By::Projections, 2 * dims.n_projected),
            ("by ρ", By::Parameters, p),
        ] {
            let later = rest.split_off(count);
            // Few models read any.
            if by != By::Projections || count > 0 {
                checks.compare((name, what), (Of::Objectives, by), point, &rest, &value);
            }
            rest = later;
        }
    }
}
