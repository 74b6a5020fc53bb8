//! The model in numbers at a few states, from which orders of elimination and scales are taken.
//!
//! Some entries of Φ_z vanish where the constraints hold, and only there: a joint that carries both sides of a cut
//! moves the gap d between them by ω × d. Start values are guesses, so the states are assembled first: positions go
//! by the smallest change d with Φ_z d = −Φ, repeatedly.
//!
//! | symbol | meaning |
//! |---|---|
//! | B | rows of Φ_z by coordinates in their units, each divided by its largest entry |
//! | φ | Φ, divided by the same |

use super::Rows;
use super::rows::Random;
use super::scales::Scales;
use crate::derivatives::Linearisation;
use crate::derivatives::constraints::jacobian;
use crate::derivatives::direction::{Weights, coordinate_directions};
use crate::dynamics::Symmetric;
use crate::elements::{Mechanism, constraint_elements};
use crate::graph::{ExprId, Graph, Interpreter};
use crate::model::{Mode, Model};
use crate::symbols::Group;
use std::collections::BTreeMap;

/// States tried: the start and two near it.
const STATES: usize = 3;
/// A step in the middle of what people choose, in units of the model's time.
const STEP: f64 = 1e-3;
/// More rows than this are not assembled: the solve is dense.
const MAX_ROWS: usize = 400;
/// Steps of an assembly; from a good guess it takes five.
const STEPS: usize = 20;
/// Where it ends, against the entries of Φ_z: a pivot is a hundredth of its column or more.
const CLOSED: f64 = 1e-9;
/// Damps what dependent rows would amplify.
const DAMPING: f64 = 1e-8;
/// The longest step, in units of the coordinates, or of ‖z‖ in them if that is more: half a radian, or half a length.
const LONGEST: f64 = 0.5;

/// Coordinates at which the model is sampled.
#[derive(Clone, Debug)]
pub struct States {
    z: Vec<Vec<f64>>,
    pub(super) scales: Scales,
}

impl States {
    /// The start and states near it, on the constraints if assembly finds the way.
    pub fn new(
        g: &mut Graph,
        mechanism: &mut Mechanism<'_>,
        inertias: &[(ExprId, Symmetric)],
        rows: &Rows,
    ) -> States {
        let positions = Positions::new(g, mechanism, inertias, rows);
        let [start, _] = mechanism.start(g);
        let mut interpreter = defaults(mechanism);
        let start = interpreter.evaluate(g, &start);
        let mut assembled = |state: usize| {
            let mut random = Random(17 + state as u64);
            let moved = |(z, value): (usize, &f64)| {
                value + 0.1 * state as f64 * random.next() * rows.scales.coordinate(z)
            };
            let guess = start.iter().enumerate().map(moved).collect();
            positions.assemble(g, &mut interpreter, guess)
        };
        States { z: (0..STATES).map(&mut assembled).collect(), scales: rows.scales.clone() }
    }

    /// The values of expressions at each state, with the weights of the trapezoidal rule at a thousandth of the model's time.
    /// Everything moves a little: much is not smooth at rest. All rows act at first, then those of each state of every mode.
    pub(super) fn evaluate(
        &self,
        g: &Graph,
        mechanism: &Mechanism<'_>,
        expressions: &[ExprId],
    ) -> Vec<Vec<f64>> {
        let tree = mechanism.tree;
        let modes = mode_samples(mechanism.model);
        let at = |(state, z, states): (usize, &Vec<f64>, &Vec<(u32, f64)>)| {
            let mut random = Random(41 + state as u64);
            let mut interpreter = defaults(mechanism);
            states.iter().for_each(|&(input, value)| interpreter.set(Group::U, input, value));
            interpreter.set_all(Group::Z, z);
            let scales = &self.scales;
            for group in [Group::V, Group::Vd, Group::Zd, Group::Zdd, Group::Lambda] {
                for i in 0..tree.nq + tree.nv {
                    let unit = match group {
                        Group::Lambda => scales.multiplier(i),
                        Group::V => scales.velocity(i) / scales.time,
                        Group::Vd => scales.velocity(i) / (scales.time * scales.time),
                        Group::Zd => scales.coordinate(i) / scales.time,
                        _ => scales.coordinate(i) / (scales.time * scales.time),
                    };
                    interpreter.set(group, i as u32, 0.1 * random.next() * unit);
                }
            }
            let h = STEP * scales.time;
            interpreter.set_all(Group::Weights, &[h / 2.0, h * h / 4.0, h / 2.0]);
            interpreter.evaluate(g, expressions)
        };
        let all = modes.iter().flat_map(|states| self.z.iter().enumerate().map(move |(k, z)| (k, z, states)));
        all.map(at).collect()
    }
}

/// Inputs of states: all of them one, then every state of each mode, with the others in their first; nothing without modes.
fn mode_samples(model: &Model) -> Vec<Vec<(u32, f64)>> {
    let mut samples = vec![model.modes.iter().flat_map(Mode::inputs).map(|state| (state.0, 1.0)).collect()];
    for mode in &model.modes {
        for held in mode.inputs() {
            samples
                .push(mode.inputs().map(|state| (state.0, if state == held { 1.0 } else { 0.0 })).collect());
        }
    }
    samples
}

/// Parameters and inputs at their defaults.
fn defaults(mechanism: &Mechanism<'_>) -> Interpreter<f64> {
    let mut interpreter = Interpreter::new();
    interpreter.set_all(Group::Parameters, &mechanism.model.default_parameters());
    for (i, input) in mechanism.model.inputs.iter().enumerate() {
        interpreter.set(Group::U, i as u32, input.default);
    }
    interpreter
}

/// Φ and Φ_z, normalisation rows included.
struct Positions {
    /// Φ, then the entries of Φ_z row by row.
    wanted: Vec<ExprId>,
    /// The coordinates of each row's entries.
    columns: Vec<Vec<usize>>,
    scales: Scales,
}

impl Positions {
    fn new(
        g: &mut Graph,
        mechanism: &mut Mechanism<'_>,
        inertias: &[(ExprId, Symmetric)],
        rows: &Rows,
    ) -> Positions {
        let tree = mechanism.tree;
        let elements = constraint_elements(g, mechanism, &rows.kept[..rows.holonomic()], |row| row);
        let mut wanted = Vec::new();
        for element in &elements {
            let replacements = element.element.leaves.replacements(g, mechanism);
            let over: Vec<ExprId> = element.rows.iter().map(|row| row.value).collect();
            wanted.extend(g.substitute(&over, &replacements));
        }
        let by_position = Weights::by_position(g);
        let along = coordinate_directions(g, tree, by_position);
        let mut linearisation = Linearisation::new(g, mechanism, inertias);
        let mut phi_z = jacobian(g, &mut linearisation, &elements, &along);
        for &first in &rows.blocks {
            let p: Vec<ExprId> = (first..first + 4).map(|z| g.symbol(Group::Z, z as u32)).collect();
            let squares: Vec<ExprId> = p.iter().map(|&e| g.square(e)).collect();
            let (sum, one, half) = (g.sum(&squares), g.one(), g.constant(0.5));
            let rest = g.sub(sum, one);
            wanted.push(g.mul(half, rest));
            phi_z.push(p.into_iter().enumerate().map(|(k, e)| (first + k, e)).collect::<BTreeMap<_, _>>());
        }
        wanted.extend(phi_z.iter().flat_map(|row| row.values().copied()));
        let columns = phi_z.iter().map(|row| row.keys().copied().collect()).collect();
        Positions { wanted, columns, scales: rows.scales.clone() }
    }

    /// Positions near a guess where Φ = 0; the best that was found.
    fn assemble(&self, g: &Graph, interpreter: &mut Interpreter<f64>, guess: Vec<f64>) -> Vec<f64> {
        let m = self.columns.len();
        let mut z = guess.clone();
        let mut best = (f64::INFINITY, guess);
        for _ in 0..if m > MAX_ROWS { 0 } else { STEPS } {
            interpreter.set_all(Group::Z, &z);
            let values = interpreter.evaluate(g, &self.wanted);
            let Some((phi, b)) = self.scaled(&values) else { break };
            let worst = phi.iter().fold(0.0, |worst: f64, x| worst.max(x.abs()));
            if worst < best.0 {
                best = (worst, z.clone());
            }
            if worst < CLOSED {
                break;
            }
            // d = −Bᵀ (B Bᵀ + μ)⁻¹ φ, in units of the coordinates
            let Some(y) = least(&b, phi, z.len()) else { break };
            let mut d = vec![0.0; z.len()];
            for (row, y) in b.iter().zip(&y) {
                row.iter().for_each(|&(j, entry)| d[j] -= entry * y);
            }
            let unit = |j: usize| self.scales.coordinate(j);
            let size = z.iter().enumerate().fold(1.0, |size: f64, (j, z)| size.max(z.abs() / unit(j)));
            let longest = d.iter().fold(0.0, |size: f64, d| size.max(d.abs()));
            let shorter = (LONGEST * size / longest).min(1.0);
            z.iter_mut().zip(&d).enumerate().for_each(|(j, (z, d))| *z += shorter * d * unit(j));
        }
        best.1
    }

    /// φ and B by its entries; `None` where they have no value.
    #[allow(clippy::type_complexity, reason = "a vector and a sparse matrix")]
    fn scaled(&self, values: &[f64]) -> Option<(Vec<f64>, Vec<Vec<(usize, f64)>>)> {
        if values.iter().any(|x| !x.is_finite()) {
            return None;
        }
        let (phi, mut entries) = values.split_at(self.columns.len());
        let mut scaled = (Vec::new(), Vec::new());
        for (&phi, columns) in phi.iter().zip(&self.columns) {
            let (own, rest) = entries.split_at(columns.len());
            entries = rest;
            let entry = |(&j, entry): (&usize, &f64)| (j, entry * self.scales.coordinate(j));
            let own: Vec<(usize, f64)> = columns.iter().zip(own).map(entry).collect();
            let size = own.iter().fold(0.0, |size: f64, (_, x)| size.max(x.abs()));
            let size = if size > 0.0 { size } else { 1.0 };
            scaled.0.push(phi / size);
            scaled.1.push(own.into_iter().map(|(j, entry)| (j, entry / size)).collect());
        }
        Some(scaled)
    }
}

/// (B Bᵀ + μ)⁻¹ φ by Cholesky's factors.
fn least(b: &[Vec<(usize, f64)>], mut phi: Vec<f64>, n: usize) -> Option<Vec<f64>> {
    let m = b.len();
    let mut s = vec![vec![0.0; m]; m];
    let mut row = vec![0.0; n];
    for i in 0..m {
        b[i].iter().for_each(|&(j, entry)| row[j] = entry);
        for k in 0..=i {
            s[i][k] = b[k].iter().map(|&(j, entry)| entry * row[j]).sum();
        }
        b[i].iter().for_each(|&(j, _)| row[j] = 0.0);
        s[i][i] += DAMPING;
    }
    for k in 0..m {
        let (before, from) = s.split_at_mut(k);
        let own = from.first_mut()?;
        for (j, row) in before.iter().enumerate() {
            let sum: f64 = (0..j).map(|i| own[i] * row[i]).sum();
            own[j] = (own[j] - sum) / row[j];
        }
        let rest = own[k] - own[..k].iter().map(|x| x * x).sum::<f64>();
        if rest.is_nan() || rest <= 0.0 {
            return None;
        }
        own[k] = rest.sqrt();
    }
    for k in 0..m {
        let sum: f64 = (0..k).map(|i| s[k][i] * phi[i]).sum();
        phi[k] = (phi[k] - sum) / s[k][k];
    }
    for k in (0..m).rev() {
        let sum: f64 = (k + 1..m).map(|i| s[i][k] * phi[i]).sum();
        phi[k] = (phi[k] - sum) / s[k][k];
    }
    Some(phi)
}
