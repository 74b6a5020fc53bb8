//! An implicit Runge–Kutta method of order 4 for stiff motion: ESDIRK4(3)6L\[2\]SA [Kennedy, Carpenter, *Additive Runge–Kutta schemes for
//! convection–diffusion–reaction equations*, Applied Numerical Mathematics 44, 2003, the implicit part of ARK4(3)6L\[2\]SA].
//!
//! Six stages, the first explicit, all others with the same γ = 1/4 on the diagonal; stiffly accurate, L-stable, stages of order 2; an embedded
//! estimate of order 3.
//!
//! Input: t, y, h. Output: y after the step, with the stages kept in the scratch for error and dense output.
//!
//! Dense output of order 4, with the weights b_i(θ) = Σ d_ij θ^j that satisfy all conditions of order 4 at every θ and have b_2 = 0; they follow from
//! the others (a test derives them):
//!
//! ```text
//! y(θ) = y0 + θ (y1 − y0) + h Σ (b_i(θ) − θ b_i) k_i
//! ```
//!
//! which runs to y1 as the step ends, on the constraints: they move it by its local error, so that no order is lost.

use super::controlled::{Controlled, Ends, Estimated};
use super::explicit::Tableau;
use super::field::{self, Rates};
use super::fixed::FixedStep;
use super::stage::{Iteration, solve_stages};
use super::{RungeKutta, copy};
use crate::error::{EvalError, StepError};
use crate::pieces::Pieces;
use crate::scalar::Scalar;
use crate::system::Dims;

/// The implicit method of order 4. It steps systems that know the derivatives of their rates: [`Stiff`](crate::Stiff).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sdirk4;

const STAGES: usize = 6;

/// γ, the diagonal of all stages but the first.
const GAMMA: f64 = 0.25;

/// Rows of the matrix a, without the diagonal.
const A: [&[f64]; STAGES] = [
    &[],
    &[1.0 / 4.0],
    &[8611.0 / 62500.0, -1743.0 / 31250.0],
    &[5012029.0 / 34652500.0, -654441.0 / 2922500.0, 174375.0 / 388108.0],
    &[
        15267082809.0 / 155376265600.0,
        -71443401.0 / 120774400.0,
        730878875.0 / 902184768.0,
        2285395.0 / 8070912.0,
    ],
    &[B[0], B[1], B[2], B[3], B[4]],
];

/// Weights b, the last row of a with its diagonal.
const B: [f64; STAGES] =
    [82889.0 / 524892.0, 0.0, 15625.0 / 83664.0, 69875.0 / 102672.0, -2260.0 / 8211.0, GAMMA];

/// Nodes c: sums of the rows of a.
const C: [f64; STAGES] = [0.0, 1.0 / 2.0, 83.0 / 250.0, 31.0 / 50.0, 17.0 / 20.0, 1.0];

/// b minus the weights of order 3.
const E: [f64; STAGES] = [
    31666707.0 / 9881966720.0,
    0.0,
    -256875.0 / 105007616.0,
    -2768025.0 / 128864768.0,
    169839.0 / 3864644.0,
    -5247.0 / 225920.0,
];

/// d_ij of the dense output, for θ, θ², θ³, θ⁴.
const D: [[f64; 4]; STAGES] = [
    [1.0, -2160447887.0 / 743597000.0, 123861731.0 / 35980500.0, -1025532137.0 / 743597000.0],
    [0.0; 4],
    [0.0, 362724125.0 / 67863456.0, -2361631375.0 / 237522096.0, 2272912625.0 / 475044192.0],
    [0.0, -12177073.0 / 3490848.0, 546083.0 / 56304.0, -19304323.0 / 3490848.0],
    [0.0, 177862.0 / 166175.0, -11312204.0 / 3489675.0, 2205534.0 / 1163225.0],
    [0.0, -61191.0 / 2839000.0, 61191.0 / 1419500.0, 648559.0 / 2839000.0],
];

/// A step in the scratch.
pub(crate) struct ImplicitStages<'a, S> {
    y0: &'a mut [S],
    y1: &'a mut [S],
    k: [&'a mut [S]; STAGES],
    spare: &'a mut [S],
    iteration: Iteration<'a, S>,
}

impl Sdirk4 {
    /// Length of the scratch a step needs, at least; a constant for generated models. `dims` are those of [`Stiff`](crate::Stiff).
    #[inline(always)]
    pub const fn scratch_len(dims: &Dims) -> usize {
        Self::MEMORY * dims.state() + field::scratch_len(dims)
    }
}

impl FixedStep for Sdirk4 {}

impl RungeKutta for Sdirk4 {
    const TABLEAU: Tableau = Tableau { a: &A, b: &B, c: &C, gamma: GAMMA };

    const MEMORY: usize = STAGES + 5;

    type Stages<'a, S: Scalar> = ImplicitStages<'a, S>;

    #[inline(always)]
    fn stages<'a, S: Scalar>(n: usize, pieces: &mut Pieces<'a, S>) -> Result<Self::Stages<'a, S>, StepError> {
        let mut k: [&'a mut [S]; STAGES] = Default::default();
        for k in &mut k {
            *k = pieces.next(n)?;
        }
        let (base, r) = (pieces.next(n)?, pieces.next(n)?);
        Ok(ImplicitStages {
            y0: pieces.next(n)?,
            y1: pieces.next(n)?,
            k,
            spare: pieces.next(n)?,
            iteration: Iteration { base, r, linearised: false },
        })
    }

    fn advance<F: Rates>(
        field: &mut F,
        mut stages: Self::Stages<'_, F::S>,
        t: F::S,
        y: &mut [F::S],
        h: F::S,
    ) -> Result<(), EvalError> {
        copy(stages.y0, y);
        field.begin_step(t, t + h);
        let [first, ..] = &mut stages.k;
        field.rate(t, C[0], stages.y0, first)?;
        <Self as Estimated>::solve(&mut stages, field, t, h, t + h)?;
        copy(y, stages.y1);
        Ok(())
    }
}

impl Controlled for Sdirk4 {}

impl Estimated for Sdirk4 {
    const EXPONENT: f64 = 0.25;

    const PREVIOUS: f64 = 0.04;

    #[inline(always)]
    fn ends<'s, S: Scalar>(stages: &'s mut Self::Stages<'_, S>) -> Ends<'s, S> {
        let ImplicitStages { y0, y1, k: [first, ..], spare, .. } = stages;
        Ends { y0, y1, first, spare, second: None }
    }

    #[inline(always)]
    fn hand_on<S: Scalar>(_: &mut Self::Stages<'_, S>) -> bool {
        // The last stage belongs to the end before its corrections.
        false
    }

    fn solve<F: Rates>(
        stages: &mut Self::Stages<'_, F::S>,
        field: &mut F,
        t: F::S,
        h: F::S,
        t1: F::S,
    ) -> Result<(), EvalError> {
        let ImplicitStages { y0, y1, k, iteration, .. } = stages;
        solve_stages(field, &Self::TABLEAU, iteration, (t, h), y0, k, y1)?;
        field.finish(t1, y1)
    }

    #[inline(always)]
    fn error<S: Scalar>(stages: &mut Self::Stages<'_, S>, h: S) {
        let ImplicitStages { spare, k, .. } = stages;
        spare.fill(S::ZERO);
        for (&e, k) in E.iter().zip(k) {
            crate::linear::add_scaled(spare, S::from_f64(e) * h, k);
        }
    }

    #[inline(always)]
    fn dense<'s, S: Scalar>(stages: &'s mut Self::Stages<'_, S>, h: S, theta: S) -> Option<&'s mut [S]> {
        let ImplicitStages { y0, y1, spare, k, .. } = stages;
        for (y, (&y0, &y1)) in spare.iter_mut().zip(y0.iter().zip(y1.iter())) {
            *y = y0 + theta * (y1 - y0);
        }
        for (([d1, d2, d3, d4], b), k) in D.iter().zip(B).zip(k) {
            let [d1, d2, d3, d4] = [d1 - b, *d2, *d3, *d4].map(S::from_f64);
            crate::linear::add_scaled(spare, h * theta * (d1 + theta * (d2 + theta * (d3 + theta * d4))), k);
        }
        Some(spare)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// a with its diagonal.
    fn a(i: usize, j: usize) -> f64 {
        match i {
            0 => 0.0,
            _ if i == j => GAMMA,
            _ => A[i].get(j).copied().unwrap_or(0.0),
        }
    }

    fn sum(of: impl Fn(usize) -> f64) -> f64 {
        (0..STAGES).map(of).sum()
    }

    /// What weights leave of the conditions of order 1, 2, 3, 3, 4, 4, 4, 4 [Hairer, Nørsett, Wanner, Solving ODEs I, Table II.2.1], for the part θ of a step.
    fn conditions(b: [f64; STAGES], theta: f64) -> [f64; 8] {
        let ac = |i: usize| sum(|j| a(i, j) * C[j]);
        let ac2 = |i: usize| sum(|j| a(i, j) * C[j] * C[j]);
        let aac = |i: usize| sum(|j| a(i, j) * ac(j));
        let [t2, t3, t4] = [theta * theta, theta * theta * theta, theta * theta * theta * theta];
        [
            sum(|i| b[i]) - theta,
            sum(|i| b[i] * C[i]) - t2 / 2.0,
            sum(|i| b[i] * C[i] * C[i]) - t3 / 3.0,
            sum(|i| b[i] * ac(i)) - t3 / 6.0,
            sum(|i| b[i] * C[i] * C[i] * C[i]) - t4 / 4.0,
            sum(|i| b[i] * C[i] * ac(i)) - t4 / 8.0,
            sum(|i| b[i] * ac2(i)) - t4 / 12.0,
            sum(|i| b[i] * aac(i)) - t4 / 24.0,
        ]
    }

    #[test]
    fn the_conditions_of_order_4_hold() {
        assert!(conditions(B, 1.0).iter().all(|left| left.abs() < 1e-15), "{:?}", conditions(B, 1.0));
        for i in 0..STAGES {
            // c_i = Σ a_ij and Σ a_ij c_j = c_i²/2: stages have order 2.
            assert!((sum(|j| a(i, j)) - C[i]).abs() < 1e-15);
            assert!((sum(|j| a(i, j) * C[j]) - C[i] * C[i] / 2.0).abs() < 1e-15);
            // Stiffly accurate.
            assert_eq!(a(STAGES - 1, i), B[i]);
        }
        // The embedded weights have order 3 and not 4.
        let mut embedded = B;
        for (b, e) in embedded.iter_mut().zip(E) {
            *b -= e;
        }
        let left = conditions(embedded, 1.0);
        assert!(left[..4].iter().all(|left| left.abs() < 1e-15) && left[4].abs() > 1e-3, "{left:?}");
        // The weights of the dense output have order 4 everywhere, and are b at the end.
        for theta in [0.1, 0.37, 0.5, 0.9, 1.0] {
            let weights = D.map(|[d1, d2, d3, d4]| theta * (d1 + theta * (d2 + theta * (d3 + theta * d4))));
            let left = conditions(weights, theta);
            assert!(left.iter().all(|left| left.abs() < 1e-14), "{theta}: {left:?}");
        }
    }

    /// |R(iω)| ≤ 1 and R(−∞) = 0, with the stability function R of y' = λ y.
    #[test]
    fn it_is_l_stable() {
        use crate::Complex64;
        let number = Complex64::from_f64;
        let r = |z: Complex64| {
            let mut k = [Complex64::ZERO; STAGES];
            for i in 0..STAGES {
                let stage = (0..i).fold(Complex64::ONE, |sum, j| sum + z * number(a(i, j)) * k[j]);
                k[i] = stage / (Complex64::ONE - z * number(a(i, i)));
            }
            (0..STAGES).fold(Complex64::ONE, |sum, i| sum + z * number(B[i]) * k[i])
        };
        for i in 1..4000 {
            let r = r(Complex64 { re: 0.0, im: 0.05 * f64::from(i) });
            assert!(r.re * r.re + r.im * r.im <= 1.0 + 1e-12, "{i}: {r:?}");
        }
        assert!(r(number(-1e9)).re.abs() < 1e-7);
    }
}
