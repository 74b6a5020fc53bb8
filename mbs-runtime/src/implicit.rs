//! Implicit integrators of second-order equations, by their coefficients: what systems and settings name. Their formulas: `integrator/newmark.rs`.

/// An implicit integrator for second-order equations.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Implicit {
    /// Newmark's formulas. Order 2 if γ = 1/2.
    Newmark {
        /// Weight of the new acceleration in the position, positive.
        beta: f64,
        /// Weight of the new acceleration in the velocity, positive.
        gamma: f64,
    },
    /// The generalized-alpha method, of order 2, with damping of high frequencies.
    GeneralizedAlpha {
        /// Damping: 1 none, 0 all in one step.
        spectral_radius: f64,
    },
}

impl Implicit {
    /// The trapezoidal rule: Newmark's formulas with β = 1/4, γ = 1/2.
    pub const TRAPEZOIDAL: Self = Self::Newmark { beta: 0.25, gamma: 0.5 };
}
