//! Derivatives of events: of their functions, and of the equations that velocities after them solve.

use super::joint_form::{BY_ACCELERATION, BY_VELOCITY, Numbers, zeros};
use super::point::Point;
use super::{By, Checks, Columns, Of, matrix};
use crate::Interpreted;
use mbs_runtime::{Complex64, EventDerivatives, Events, ImpactLaw, Scalar, System};

/// Positions alone, with velocities held.
const BY_COORDINATE: By = By::Motion([1.0, 0.0, 0.0]);

fn functions(model: &Interpreted<Complex64>, at: &Point<Complex64>) -> Numbers {
    let (dims, n) = (model.dims(), model.event_table().events.len());
    let (mut w, mut values, mut rates, mut armed) = (zeros(dims.workspace), zeros(n), zeros(n), zeros(n));
    let (values_to, rates_to, armed_to) = (&mut values, &mut rates, &mut armed);
    model.event_functions(at.at(), &at.vd, &at.joint_lambda, &mut w, values_to, rates_to, armed_to).ok()?;
    Some(values)
}

/// M d + Φ_vᵀ Λ + Cᵀ μ, Φd(v + d), c(v + d) − target(v), Φ, settings, restitution and friction: accelerations stand for d, multipliers for Λ, numbers for μ.
fn equations(model: &Interpreted<Complex64>, at: &Point<Complex64>) -> Numbers {
    let (dims, table) = (model.dims(), model.event_table());
    let (nv, rows, c) = (dims.nv, dims.joint_rows(), table.conditions);
    let mut w = zeros(dims.workspace);
    let (mut mass, mut by_row) = (zeros(nv * nv), zeros(rows * nv));
    let (mut row_rates, mut row_values) = (zeros(rows), zeros(rows));
    let (mut directions, mut rates, mut targets) = (zeros(c * nv), zeros(c), zeros(c));
    let mut settings = zeros(table.inputs.len());
    model
        .event_jumps(
            at.at(),
            &mut w,
            &mut mass,
            &mut by_row,
            &mut row_rates,
            &mut row_values,
            &mut directions,
            &mut rates,
            &mut targets,
            &mut settings,
        )
        .ok()?;
    let (d, mu) = (&at.vd, impulses::<Complex64>(c));
    let mut all = zeros(nv + rows + c);
    for j in 0..nv {
        for i in 0..nv {
            all[i] += mass[j * nv + i] * d[j];
        }
        for k in 0..rows {
            all[j] += by_row[j * rows + k] * at.joint_lambda[k];
            all[nv + k] += by_row[j * rows + k] * d[j];
        }
        for k in 0..c {
            all[j] += directions[j * c + k] * mu[k];
            all[nv + rows + k] += directions[j * c + k] * d[j];
        }
    }
    for k in 0..rows {
        all[nv + k] += row_rates[k];
    }
    let mut coefficients = zeros(c);
    for entry in table.events {
        let (first, end) = entry.conditions;
        for k in first..end {
            all[nv + rows + k] += rates[k];
            match entry.law {
                ImpactLaw::Plain => all[nv + rows + k] -= targets[k],
                ImpactLaw::Stronge | ImpactLaw::Newton => coefficients[k] = targets[k],
            }
        }
    }
    all.extend(row_values);
    all.extend(settings);
    all.extend(coefficients);
    Some(all)
}

/// Impulses of conditions, all different.
fn impulses<S: Scalar>(count: usize) -> Vec<S> {
    (0..count).map(|k| S::from_f64(0.5 + 0.25 * k as f64)).collect()
}

/// All derivatives of events that the model has.
pub(super) fn check(checks: &mut Checks, point: &Point<f64>) {
    let (model, dims) = (&checks.model, checks.model.dims());
    if model.event_table().events.is_empty() {
        return;
    }
    let (nq, nv, rows, p) = (dims.nq, dims.nv, dims.joint_rows(), dims.sensitivity.parameters);
    let (n, conditions) = (model.event_table().events.len(), model.event_table().conditions);
    let mut w = vec![0.0; dims.workspace];

    let places = model.event_places();
    let mut values = vec![0.0; places.len()];
    let (vd, lambda) = (&point.vd, &point.joint_lambda);
    if model.event_function_derivatives(point.at(), vd, lambda, &mut w, &mut values).is_ok() {
        let written = matrix(&values, places, n, nq + 2 * nv + rows + 1 + p);
        let parts: [(&str, By, usize); 6] = [
            ("g_z", BY_COORDINATE, nq),
            ("g_v", BY_VELOCITY, nv),
            ("g_vd", BY_ACCELERATION, nv),
            ("g_λ", By::JointMultipliers, rows),
            ("g_t", By::Time, 1),
            ("g_ρ", By::Parameters, p),
        ];
        compare(checks, "event_function_derivatives", Of::Events, parts, point, written, &functions);
    }

    let model = &checks.model;
    let places = model.jump_places();
    let mut values = vec![0.0; places.len()];
    let mu = impulses::<f64>(conditions);
    if model.event_jump_derivatives(point.at(), vd, lambda, &mu, &mut w, &mut values).is_ok() {
        let written = matrix(
            &values,
            places,
            nv + 2 * (rows + conditions) + model.event_table().inputs.len(),
            nq + nv + 1 + p,
        );
        let parts = [
            ("by z", BY_COORDINATE, nq),
            ("by v", BY_VELOCITY, nv),
            ("by t", By::Time, 1),
            ("by ρ", By::Parameters, p),
        ];
        compare(checks, "event_jump_derivatives", Of::Jumps, parts, point, written, &equations);
    }
}

/// Compares a matrix whose columns stand one kind after the other.
fn compare<const N: usize>(
    checks: &mut Checks,
    bundle: &'static str,
    of: Of,
    parts: [(&'static str, By, usize); N],
    point: &Point<f64>,
    mut written: Columns,
    value: super::Value<'_>,
) {
    for (what, by, columns) in parts {
        let rest = written.split_off(columns);
        if columns > 0 {
            checks.compare((bundle, what), (of, by), point, &written, value);
        }
        written = rest;
    }
}
