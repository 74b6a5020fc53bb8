//! The derivative of a step, as a value with a product and a transposed product.
//!
//! Here stands the part of Newton's method: the map
//!
//! (z, zd, zdd, a) at t  ↦  (z, zd*, zdd*, a, λ*) at t + h,  before the projections,
//!
//! exact at the accepted instant of a [`Record`]. The projections' part needs derivatives of M d and Φ_zᵀ σ and will follow it
//! as a factor of its own.
//!
//! | symbol | meaning |
//! |---|---|
//! | M, C, K | r_zdd, r_zd, r_z at the accepted instant, with all of λ* in K |
//! | p, q | positions and velocities of the integrator's formulas with zdd_next = 0 |
//! | δ | dzdd* |
//! | s, τ | solution with the transposed leading matrix |
//!
//! ```text
//! dz = p + βh² δ    dzd* = q + γh δ      (β, γ scaled as in the integrator)
//! [ W    Φ_zᵀ  Aᵀ ] [δ ]   [−K p − C q              ]
//! [ Φ_z  0        ] [dλ] = [−Φ_z p/(βh²)            ]          [Dopico2018, Eqs. 25, 35, with μ_ρ]
//! [ A'         0  ] [dμ]   [−(A q + Ψ_z p)/(γh)     ]
//! ```
//!
//! The zeros stand for E, whose effect is taken back by refinement: (x)_next from b − (0, E x). The same number of refinements
//! with the transposed matrix is the transpose of it, to the last bit but rounding.
//!
//! C and K come from the tangent, which is linear in its weights: M + C with weights (1, 0), M + K with (0, 1). They are known to
//! ε M, and are never divided by h.

use super::ali3p::Ali3p;
use super::compliance::write_least;
use super::record::Record;
use crate::constrained::{Constrained, Weights};
use crate::error::{EvalError, StepError};
use crate::integrator::Formulas;
use crate::linear::blocks::{Blocks, BlocksMut, add_product, add_transposed_product, holonomic_rows};
use crate::linear::{Leading, copy, leading};
use crate::pieces::Pieces;
use crate::scalar::Scalar;
use crate::system::Dims;

/// Refinements of each solution: E leaves about 1e−9 of it, twice refined nothing.
const REFINEMENTS: usize = 2;

/// The derivative of the part of a step that Newton's method makes.
pub struct LinearisedNewton<'a, M: Constrained> {
    system: &'a M,
    dims: Dims,
    formulas: Formulas<M::S>,
    leading: Leading<'a, M>,
    /// M, Φ_z, A, and A again.
    plain: &'a mut [M::S],
    /// C in the place of M, Ψ_z in that of A'.
    by_velocity: &'a mut [M::S],
    /// K in the place of M.
    by_position: &'a mut [M::S],
    p: &'a mut [M::S],
    q: &'a mut [M::S],
    x: &'a mut [M::S],
    b: &'a mut [M::S],
    w: &'a mut [M::S],
}

impl Ali3p {
    /// Length of the scratch that [`Ali3p::linearise_newton`] needs, at least.
    pub const fn linearised_scratch_len(dims: &Dims) -> usize {
        let n = dims.nq + dims.rows();
        leading::scratch_len(dims) + 3 * dims.n_matrix + 3 * dims.nq + dims.rows() + 2 * n + dims.workspace
    }

    /// The derivative of the part of the recorded step that Newton's method makes. It lives in the scratch.
    pub fn linearise_newton<'a, M: Constrained>(
        &self,
        system: &'a M,
        record: &mut [M::S],
        scratch: &'a mut [M::S],
    ) -> Result<LinearisedNewton<'a, M>, StepError> {
        let dims = system.dims();
        let record = Record::of(&dims, record)?;
        let formulas = self.integrator.formulas(*record.h)?;
        let (nq, rows) = (dims.nq, dims.rows());
        let mut pieces = Pieces::of(scratch, Self::linearised_scratch_len(&dims));
        let mut linearised = LinearisedNewton {
            system,
            dims,
            formulas,
            leading: Leading::new(system, &dims, &mut pieces)?,
            plain: pieces.next(dims.n_matrix)?,
            by_velocity: pieces.next(dims.n_matrix)?,
            by_position: pieces.next(dims.n_matrix)?,
            p: pieces.next(nq)?,
            q: pieces.next(nq)?,
            x: pieces.next(nq + rows)?,
            b: pieces.next(nq + rows)?,
            w: pieces.next(dims.workspace)?,
        };
        let (r, phi) = (pieces.next(nq)?, pieces.next(rows)?);
        let prepared = linearised.prepare(&record, r, phi);
        prepared.map_err(|error| error.in_step((*record.t - *record.h).real(), record.h.real()))?;
        Ok(linearised)
    }
}

impl<M: Constrained> LinearisedNewton<'_, M> {
    /// Values of a perturbation of the state: (z, zd, zdd, a).
    pub const fn input_len(dims: &Dims) -> usize {
        4 * dims.nq
    }

    /// Values of a perturbation of the result: (z, zd*, zdd*, a, λ*).
    pub const fn output_len(dims: &Dims) -> usize {
        4 * dims.nq + dims.rows()
    }

    fn prepare(
        &mut self,
        record: &Record<'_, M::S>,
        r: &mut [M::S],
        phi: &mut [M::S],
    ) -> Result<(), EvalError> {
        let (zero, one) = (M::S::ZERO, M::S::ONE);
        let pattern = self.system.pattern();
        let tangents = [
            (&mut *self.plain, zero, zero),
            (&mut *self.by_velocity, one, zero),
            (&mut *self.by_position, zero, one),
        ];
        for (matrix, velocity, position) in tangents {
            // A' = A + Ψ_z beside M + C
            let weights = Weights { velocity, position, ratio: velocity };
            self.system.newton(record.motion(), record.lambda_star, weights, self.w, r, phi, matrix)?;
            BlocksMut::of(&self.dims, &pattern, matrix)?.mask(&self.dims, &pattern, record.active);
        }
        let plain = Blocks::of(&self.dims, &pattern, self.plain)?;
        let mut by_velocity = BlocksMut::of(&self.dims, &pattern, self.by_velocity)?;
        let mut by_position = BlocksMut::of(&self.dims, &pattern, self.by_position)?;
        for derivative in [&mut by_velocity, &mut by_position] {
            for (entry, &m) in derivative.tangent.iter_mut().zip(plain.tangent) {
                *entry -= m;
            }
        }
        for (entry, &a) in by_velocity.nonholonomic_newton.iter_mut().zip(plain.nonholonomic) {
            *entry -= a;
        }

        // W = M + γh C + βh² K, A' = A + (βh/γ) Ψ_z
        let weights = self.formulas.weights;
        copy(self.leading.matrix, self.plain);
        let mut blocks = BlocksMut::of(&self.dims, &pattern, self.leading.matrix)?;
        let derivatives = by_velocity.tangent.iter().zip(by_position.tangent.iter());
        for (entry, (&c, &k)) in blocks.tangent.iter_mut().zip(derivatives) {
            *entry += weights.velocity * c + weights.position * k;
        }
        let by_z = by_velocity.nonholonomic_newton.iter();
        for (entry, &by_z) in blocks.nonholonomic_newton.iter_mut().zip(by_z) {
            *entry += weights.ratio * by_z;
        }
        write_least(record.scale, false, blocks.compliance);
        blocks.mask(&self.dims, &pattern, record.active);
        self.leading.factor(self.w, false)
    }

    /// Writes the perturbation of the result by the perturbation `input` of the state.
    pub fn apply(&mut self, input: &[M::S], output: &mut [M::S]) -> Result<(), EvalError> {
        let (dims, nq) = (self.dims, self.dims.nq);
        let ([dz, dzd, dzdd, da], _) = parts(&dims, "input", input, Self::input_len(&dims))?;
        let f = self.formulas;
        let (position, velocity) = (f.weights.position, f.weights.velocity);
        // a_next = a_zdd dzdd + a_a da + (…) δ; p and q take it as it is without δ.
        let zero_increment = |dzdd: M::S, da: M::S| f.a_zdd * dzdd + f.a_a * da;
        let acceleration = if f.keeps_acceleration { da } else { dzdd };
        let state = dz.iter().zip(dzd).zip(dzdd.iter().zip(da).zip(acceleration));
        let predicted = self.p.iter_mut().zip(self.q.iter_mut());
        for ((p, q), ((&dz, &dzd), ((&dzdd, &da), &a))) in predicted.zip(state) {
            let a_next = zero_increment(dzdd, da);
            *p = dz + f.h * dzd + f.position * a + f.position_next * a_next;
            *q = dzd + f.velocity * a + f.velocity_next * a_next;
        }

        let pattern = self.system.pattern();
        let plain = Blocks::of(&dims, &pattern, self.plain)?;
        let by_velocity = Blocks::of(&dims, &pattern, self.by_velocity)?;
        let by_position = Blocks::of(&dims, &pattern, self.by_position)?;
        self.b.fill(M::S::ZERO);
        let (top, rows) = self.b.split_at_mut_checked(nq).unwrap_or_default();
        let (holonomic, nonholonomic) = rows.split_at_mut_checked(holonomic_rows(&dims)).unwrap_or_default();
        add_product(pattern.tangent, by_position.tangent, self.p, top);
        add_product(pattern.tangent, by_velocity.tangent, self.q, top);
        add_product(pattern.holonomic, plain.holonomic, self.p, holonomic);
        add_product(pattern.nonholonomic, plain.nonholonomic, self.q, nonholonomic);
        add_product(pattern.nonholonomic, by_velocity.nonholonomic_newton, self.p, nonholonomic);
        for b in top {
            *b = -*b;
        }
        for b in holonomic {
            *b = -*b / position;
        }
        for b in nonholonomic {
            *b = -*b / velocity;
        }
        self.solve(false)?;

        let (delta, dlambda) = self.x.split_at_checked(nq).unwrap_or_default();
        let ([z, zd, zdd, a], lambda) = parts_mut(&dims, "output", output, Self::output_len(&dims))?;
        let results = z.iter_mut().zip(zd).zip(zdd.iter_mut().zip(a));
        let state = self.p.iter().zip(self.q.iter()).zip(dzdd.iter().zip(da));
        for ((((z, zd), (zdd, a)), ((&p, &q), (&dzdd, &da))), &delta) in results.zip(state).zip(delta) {
            *z = p + position * delta;
            *zd = q + velocity * delta;
            *zdd = delta;
            *a = zero_increment(dzdd, da) + f.a_zdd_next * delta;
        }
        copy(lambda, dlambda);
        Ok(())
    }

    /// Writes into `input` the transposed product with `output`: ⟨apply(x), y⟩ = ⟨x, apply_transpose(y)⟩.
    pub fn apply_transpose(&mut self, output: &[M::S], input: &mut [M::S]) -> Result<(), EvalError> {
        let (dims, nq) = (self.dims, self.dims.nq);
        let ([z, zd, zdd, a], lambda) = parts(&dims, "output", output, Self::output_len(&dims))?;
        let f = self.formulas;
        let (position, velocity) = (f.weights.position, f.weights.velocity);
        // b = (βh² z + γh zd + zdd + a, λ)
        let (top, rows) = self.b.split_at_mut_checked(nq).unwrap_or_default();
        let results = z.iter().zip(zd).zip(zdd.iter().zip(a));
        for (b, ((&z, &zd), (&zdd, &a))) in top.iter_mut().zip(results) {
            *b = position * z + velocity * zd + zdd + f.a_zdd_next * a;
        }
        copy(rows, lambda);
        self.solve(true)?;

        // p = z − Kᵀ s − Φ_zᵀ τ/(βh²) − Ψ_zᵀ τ'/(γh),  q = zd − Cᵀ s − Aᵀ τ'/(γh)
        let (s, tau) = self.x.split_at_mut_checked(nq).unwrap_or_default();
        let (holonomic, nonholonomic) = tau.split_at_mut_checked(holonomic_rows(&dims)).unwrap_or_default();
        for tau in holonomic.iter_mut() {
            *tau /= position;
        }
        for tau in nonholonomic.iter_mut() {
            *tau /= velocity;
        }
        let pattern = self.system.pattern();
        let plain = Blocks::of(&dims, &pattern, self.plain)?;
        let by_velocity = Blocks::of(&dims, &pattern, self.by_velocity)?;
        let by_position = Blocks::of(&dims, &pattern, self.by_position)?;
        self.p.fill(M::S::ZERO);
        self.q.fill(M::S::ZERO);
        add_transposed_product(pattern.tangent, by_position.tangent, s, self.p);
        add_transposed_product(pattern.tangent, by_velocity.tangent, s, self.q);
        add_transposed_product(pattern.holonomic, plain.holonomic, holonomic, self.p);
        add_transposed_product(pattern.nonholonomic, plain.nonholonomic, nonholonomic, self.q);
        add_transposed_product(pattern.nonholonomic, by_velocity.nonholonomic_newton, nonholonomic, self.p);
        let ([dz, dzd, dzdd, da], _) = parts_mut(&dims, "input", input, Self::input_len(&dims))?;
        let sums = self.p.iter().zip(self.q.iter()).zip(z.iter().zip(zd).zip(a));
        let state = dz.iter_mut().zip(dzd).zip(dzdd.iter_mut().zip(da));
        for (((dz, dzd), (dzdd, da)), ((&p, &q), ((&z, &zd), &a))) in state.zip(sums) {
            let (p, q) = (z - p, zd - q);
            *dz = p;
            *dzd = f.h * p + q;
            let acceleration = f.position * p + f.velocity * q;
            let a_next = f.position_next * p + f.velocity_next * q + a;
            *dzdd = f.a_zdd * a_next;
            *da = f.a_a * a_next;
            if f.keeps_acceleration {
                *da += acceleration;
            } else {
                *dzdd += acceleration;
            }
        }
        Ok(())
    }

    /// x from b, refined so that E has no part in it.
    fn solve(&mut self, transposed: bool) -> Result<(), EvalError> {
        let nq = self.dims.nq;
        self.x.fill(M::S::ZERO);
        for _ in 0..=REFINEMENTS {
            let pattern = self.system.pattern();
            let compliance = Blocks::of(&self.dims, &pattern, self.leading.matrix)?.compliance;
            let (top, bottom) = self.x.split_at_mut_checked(nq).unwrap_or_default();
            copy(top, self.b);
            let b = self.b.get(nq..).unwrap_or_default();
            for ((x, &b), &e) in bottom.iter_mut().zip(b).zip(compliance) {
                *x = b - e * *x;
            }
            if transposed {
                self.leading.solve_transposed(self.w, self.x)?;
            } else {
                self.leading.solve(self.w, self.x)?;
            }
        }
        Ok(())
    }
}

/// Four pieces of nq values, and the rest.
type Parts<'a, S> = ([&'a [S]; 4], &'a [S]);
type PartsMut<'a, S> = ([&'a mut [S]; 4], &'a mut [S]);

fn parts<'a, S>(
    dims: &Dims,
    what: &'static str,
    values: &'a [S],
    expected: usize,
) -> Result<Parts<'a, S>, EvalError> {
    let wrong = EvalError::Length { what, expected, found: values.len() };
    let (a, rest) = values.split_at_checked(dims.nq).ok_or(wrong)?;
    let (b, rest) = rest.split_at_checked(dims.nq).ok_or(wrong)?;
    let (c, rest) = rest.split_at_checked(dims.nq).ok_or(wrong)?;
    let (d, rest) = rest.split_at_checked(dims.nq).ok_or(wrong)?;
    if values.len() == expected { Ok(([a, b, c, d], rest)) } else { Err(wrong) }
}

fn parts_mut<'a, S>(
    dims: &Dims,
    what: &'static str,
    values: &'a mut [S],
    expected: usize,
) -> Result<PartsMut<'a, S>, EvalError> {
    let found = values.len();
    let wrong = EvalError::Length { what, expected, found };
    let (a, rest) = values.split_at_mut_checked(dims.nq).ok_or(wrong)?;
    let (b, rest) = rest.split_at_mut_checked(dims.nq).ok_or(wrong)?;
    let (c, rest) = rest.split_at_mut_checked(dims.nq).ok_or(wrong)?;
    let (d, rest) = rest.split_at_mut_checked(dims.nq).ok_or(wrong)?;
    if found == expected { Ok(([a, b, c, d], rest)) } else { Err(wrong) }
}
