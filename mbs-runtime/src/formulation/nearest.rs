//! The position nearest to a guess in which all constraints hold.
//!
//! Input: a position z near the guess z0 in which they hold. Output: the one that makes Σ D_j (z_j − z0_j)²/c_j² over free coordinates
//! smallest, with the natural scales c_j of coordinates (the model's length, or one for angles), so that a start is a function of its guess, with derivatives, and not of the way there.
//!
//! | symbol | meaning |
//! |---|---|
//! | f | free coordinates |
//! | B | Φ_z times c_j, rows divided by their largest entries; z, g and d are in units of the coordinates |
//! | D | 1, and 0 for dependent coordinates |
//! | g | D (z0 − z) without its part in the range of Bᵀ: the way to go along the constraints |
//! | y | that part: D (z0 − z) = D g + Bᵀ y on f |
//! | H | D + (Bᵀ y)_z, the curvature |
//!
//! ```text
//! [ D_f  Bᵀ ] [g]   [D (z0 − z)]    [ H_f  Bᵀ ] [d]   [D g]
//! [ B    0  ] [y] = [0         ]    [ B    0  ] [·] = [−Φ ]
//! ```
//!
//! Newton's step d is taken where it leads down, g elsewhere; each is cut short until it does, and followed by a way back onto
//! the constraints. Where constraints and held coordinates determine all others, g is zero from the beginning.

use super::newton::size_of;
use super::start::{Assembly, Work, least_damping, weight};
use crate::constrained::{Constrained, Motion, Weights};
use crate::error::{EvalError, Level, StepError};
use crate::linear::blocks::{Blocks, add_product, add_transposed_product};
use crate::linear::{add_scaled, copy, largest, lu};
use crate::pieces::{cut, cut_mut};
use crate::scalar::{Scalar, sqrt};

/// Maximum number of steps, and of halvings in the line search of each.
const MAX_STEPS: usize = 50;
const MAX_CUTS: usize = 30;
/// A descent direction no longer than the rounding of positions, in units of ε max(1, ‖z‖).
const ROUNDING: f64 = 16.0;
/// The line search accepts a decrease of at least this fraction of the predicted one (Armijo).
const GAIN: f64 = 1e-4;
/// Largest step, in units of max(1, ‖z‖).
const LONGEST: f64 = 0.5;
/// Each refinement leaves about 1e−9 of the error.
const REFINEMENTS: usize = 3;

impl<M: Constrained> Work<'_, M> {
    /// Moves to the nearest position.
    pub(super) fn find_nearest(&mut self, settings: &Assembly, held: &[bool]) -> Result<(), StepError> {
        let mut before = f64::INFINITY;
        for step in 0..MAX_STEPS {
            let size = self.size(self.z).max(1.0);
            let descent = self.find_descent(held).map_err(|error| self.failed(error))?;
            // Steps that no longer reduce it have reached rounding.
            let arrived = descent <= ROUNDING * M::S::EPSILON * size
                || (descent <= sqrt(M::S::EPSILON) * size && descent > 0.5 * before);
            if arrived && step == 0 {
                return Ok(());
            }
            let (length, slope) = self.find_newton_step(held).map_err(|error| self.failed(error))?;
            if arrived {
                // One more step, for imaginary parts, which convergence checks do not see.
                if length <= sqrt(M::S::EPSILON) * size {
                    self.move_by(M::S::ONE);
                }
                return self.positions(false).map_err(|error| self.failed(error));
            }
            before = descent;
            if !self.line_search(settings, held, size, length, slope)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Computes into `kept` the descent direction g, the part of z0 − z along the constraints, and y into `scale`. Returns the largest entry of g.
    fn find_descent(&mut self, held: &[bool]) -> Result<f64, EvalError> {
        self.evaluate_matrix()?;
        self.factor_smallest_change(held, least_damping::<M::S>(), Level::Position)?;
        let nq = self.dims.nq;
        self.b.fill(M::S::ZERO);
        for (j, (b, (&guess, &z))) in self.b.iter_mut().zip(self.guess.iter().zip(self.z.iter())).enumerate()
        {
            if !held.get(j).is_some_and(|held| *held) {
                let unit = M::S::from_f64(self.system.units().coordinate(j));
                *b = weight(self.system, j) * (guess - z) / unit;
            }
        }
        self.solve_refined(held, false)?;
        let (g, y) = cut("x", self.x, nq)?;
        copy(self.kept, g);
        let descent = largest(g);
        for (to, (&y, n)) in self.scale.iter_mut().zip(y.iter().zip(self.sizes.iter())) {
            *to = y / M::S::from_f64(size_of(*n));
        }
        Ok(descent)
    }

    /// Computes into x the Newton step from g and y if it is a descent direction, otherwise g itself. Returns its length and slope.
    fn find_newton_step(&mut self, held: &[bool]) -> Result<(f64, f64), EvalError> {
        let nq = self.dims.nq;
        // W(y) − W(0) = (Φ_zᵀ y)_z where the weights are those of positions alone
        let weights = Weights { velocity: M::S::ZERO, position: M::S::ONE, ratio: M::S::ZERO };
        let at = Motion { t: self.t, z: self.z, zd: self.zd, zdd: self.zdd, u: self.u };
        let (g, _) = cut("kept", self.kept, nq)?;
        copy(self.b, g);
        for (j, b) in self.b.iter_mut().take(nq).enumerate() {
            *b *= weight(self.system, j);
        }
        let (r, phi) = (&mut *self.r, &mut *self.phi);
        self.system.newton(at, self.scale, weights, self.w, r, phi, self.curved)?;
        self.system.newton(at, self.lambda, weights, self.w, r, phi, self.flat)?;
        for (curved, &flat) in self.curved.iter_mut().zip(self.flat.iter()) {
            *curved -= flat;
        }
        self.positions(false)?;
        let solved = self.add_curvature(held) && {
            let (_, b) = cut_mut("b", self.b, nq)?;
            for (b, (&phi, size)) in b.iter_mut().zip(self.phi.iter().zip(self.sizes.iter())) {
                *b = -phi / M::S::from_f64(size_of(*size));
            }
            self.solve_refined(held, true).is_ok()
        };
        let (g, _) = cut("kept", self.kept, nq)?;
        let weighted = |j: usize, d: &M::S| weight(self.system, j).real() * d.real();
        let steep = |d: &[M::S]| {
            d.iter().zip(g).enumerate().map(|(j, (d, g))| weighted(j, d) * g.real()).sum::<f64>()
        };
        let finite = self.x.iter().all(|x| x.is_finite());
        if !(solved && finite && steep(self.x) > 0.0) {
            copy(self.x, g);
        }
        let (d, _) = cut("x", self.x, nq)?;
        Ok((largest(d), steep(d)))
    }

    /// Adds (Bᵀ y)_z to the dense matrix of the smallest change and factors it; whether that was possible.
    fn add_curvature(&mut self, held: &[bool]) -> bool {
        let n = self.dims.nq + self.dims.rows();
        if self.fill_smallest_change(held, least_damping::<M::S>(), Level::Position).is_err() {
            return false;
        }
        let units = self.system.units();
        for (&(i, j), &value) in self.system.pattern().tangent.iter().zip(self.curved.iter()) {
            let free = |k: u32| !held.get(k as usize).is_some_and(|held| *held);
            if let Some(entry) =
                self.dense.get_mut(j as usize * n + i as usize).filter(|_| free(i) && free(j))
            {
                *entry += value * M::S::from_f64(units.coordinate(i as usize) * units.coordinate(j as usize));
            }
        }
        lu::factor(n, self.dense, self.pivots).is_ok()
    }

    /// x from b with the matrix without its damping; with (Bᵀ y)_z in it, if `curved`.
    fn solve_refined(&mut self, held: &[bool], curved: bool) -> Result<(), EvalError> {
        let (nq, n) = (self.dims.nq, self.dims.nq + self.dims.rows());
        let (pattern, units) = (self.system.pattern(), self.system.units());
        self.x.fill(M::S::ZERO);
        for _ in 0..=REFINEMENTS {
            // residual = b − [H Bᵀ; B 0] x, in the place of the trial and the constraints
            let blocks = Blocks::of(&self.dims, &pattern, self.matrix)?;
            let free = |k: usize| !held.get(k).is_some_and(|held| *held);
            copy(self.spare, self.b);
            let (top, bottom) = cut_mut("spare", self.spare, nq)?;
            let (x, y) = cut("x", self.x, nq)?;
            for (j, (top, &x)) in top.iter_mut().zip(x).enumerate() {
                *top -= weight(self.system, j) * x;
            }
            for (&(k, j), &value) in pattern.holonomic.iter().zip(blocks.holonomic) {
                let size = self.sizes.get(k as usize).map_or(1.0, |size| size_of(*size));
                let value = value * M::S::from_f64(units.coordinate(j as usize)) / M::S::from_f64(-size);
                if free(j as usize) {
                    add_product(&[(k, j)], &[value], x, bottom);
                    add_transposed_product(&[(k, j)], &[value], y, top);
                }
            }
            for (&(i, j), &value) in pattern.tangent.iter().zip(self.curved.iter()) {
                if curved && free(i as usize) && free(j as usize) {
                    let unit = units.coordinate(i as usize) * units.coordinate(j as usize);
                    add_product(&[(i, j)], &[-value * M::S::from_f64(unit)], x, top);
                }
            }
            lu::solve(n, self.dense, self.pivots, self.spare);
            add_scaled(self.x, M::S::ONE, self.spare);
        }
        Ok(())
    }

    /// z += part x, which is in units of the coordinates.
    fn move_by(&mut self, part: M::S) {
        let units = self.system.units();
        for (j, (z, &x)) in self.z.iter_mut().zip(self.x.iter()).enumerate() {
            *z += part * x * M::S::from_f64(units.coordinate(j));
        }
    }

    /// Σ D_j (z_j − z0_j)²/c_j² over free coordinates.
    fn distance(&self, held: &[bool]) -> f64 {
        let changes = self.z.iter().zip(self.guess.iter()).enumerate();
        let free = changes.filter(|(j, _)| !held.get(*j).is_some_and(|held| *held));
        let units = self.system.units();
        let change = |(j, (z, guess)): (usize, (&M::S, &M::S))| {
            weight(self.system, j).real() * (z.real() - guess.real()) / units.coordinate(j)
        };
        free.map(change).map(|change| change * change).sum()
    }

    /// Line search along the step in x; returns whether it found a nearer position.
    fn line_search(
        &mut self,
        settings: &Assembly,
        held: &[bool],
        size: f64,
        length: f64,
        slope: f64,
    ) -> Result<bool, StepError> {
        let nq = self.dims.nq;
        let (from, step) = (self.distance(held), sqrt(M::S::EPSILON) * size);
        let t = self.t.real();
        let fail = |error: EvalError| error.in_step(t, 0.0);
        let (z, d) = cut_mut("kept", self.kept, nq).map_err(fail)?;
        copy(z, self.z);
        copy(d, self.x);
        let mut part = if length > LONGEST * size { LONGEST * size / length } else { 1.0 };
        for _ in 0..MAX_CUTS {
            let (z, d) = cut("kept", self.kept, nq).map_err(fail)?;
            copy(self.z, z);
            copy(self.x, d);
            self.move_by(M::S::from_f64(part));
            let known = self.positions(false).is_ok();
            let assembled = known && self.assemble(settings, held).is_ok();
            // The distance has no precision for steps smaller than half the digits.
            let nearer = part * length <= step || self.distance(held) < from - GAIN * part * slope;
            if assembled && nearer {
                return Ok(true);
            }
            part *= 0.5;
        }
        let (z, _) = cut("kept", self.kept, nq).map_err(fail)?;
        copy(self.z, z);
        self.positions(false).map_err(|error| self.failed(error))?;
        Ok(false)
    }
}
