//! What steps and runs take and leave.

/// What a step took and what it left. An explicit step has evaluations and trials, an implicit one the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StepStatistics {
    /// Evaluations of the forward dynamics.
    pub evaluations: usize,
    /// Trials that were rejected before it.
    pub rejected: usize,
    /// Iterations of Newton's method.
    pub iterations: usize,
    /// Tangents evaluated and factored in them.
    pub tangents: usize,
    /// The last correction of a coordinate.
    pub increment: f64,
    /// Largest |Φ|, before the last correction.
    pub phi: f64,
    /// Largest |Ψ|, before the last correction.
    pub psi: f64,
    /// Solutions for the projection of velocities.
    pub velocity_projections: usize,
    /// Largest |Φd| or |Ψ| that it left.
    pub phid: f64,
    /// Solutions for the projection of accelerations.
    pub acceleration_projections: usize,
    /// Largest |Φdd| or |Ψd| that it left.
    pub phidd: f64,
    /// Projections that ended well above rounding.
    pub short_projections: usize,
    /// Factorisations for which the dense LU had to help.
    pub fallbacks: usize,
}

/// What a run took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Statistics {
    /// Time of the final state.
    pub t: f64,
    /// Size of the last step.
    pub h: f64,
    /// Steps taken.
    pub steps: usize,
    /// Steps tried and rejected.
    pub rejected: usize,
    /// Evaluations of the forward dynamics.
    pub evaluations: usize,
    /// Iterations of Newton's method in all.
    pub iterations: usize,
    /// Most iterations of a step.
    pub max_iterations: usize,
    /// Tangents evaluated and factored.
    pub tangents: usize,
    /// Solutions for projections, of velocities and of accelerations.
    pub projections: usize,
    /// Projections that ended well above rounding: at singular positions, or because rows nearly depend on each other.
    pub short_projections: usize,
    /// Factorisations for which the dense LU had to help.
    pub fallbacks: usize,
    /// Largest |Φd| or |Ψ| that a projection left.
    pub max_phid: f64,
    /// Largest |Φdd| or |Ψd| that a projection left.
    pub max_phidd: f64,
    /// Whether the observer ended the run.
    pub stopped: bool,
}

impl Statistics {
    /// Counts a step of size `h` that ended at `t`.
    #[inline(always)]
    pub(crate) fn add(&mut self, t: f64, h: f64, step: &StepStatistics) {
        (self.t, self.h) = (t, h);
        self.steps += 1;
        self.rejected += step.rejected;
        self.evaluations += step.evaluations;
        self.iterations += step.iterations;
        self.max_iterations = self.max_iterations.max(step.iterations);
        self.tangents += step.tangents;
        self.projections += step.velocity_projections + step.acceleration_projections;
        self.short_projections += step.short_projections;
        self.fallbacks += step.fallbacks;
        self.max_phid = self.max_phid.max(step.phid);
        self.max_phidd = self.max_phidd.max(step.phidd);
    }

    /// Counts the steps of a run that went on from here.
    pub(crate) fn join(&mut self, other: &Self) {
        (self.t, self.h, self.stopped) = (other.t, other.h, other.stopped);
        self.steps += other.steps;
        self.rejected += other.rejected;
        self.evaluations += other.evaluations;
        self.iterations += other.iterations;
        self.max_iterations = self.max_iterations.max(other.max_iterations);
        self.tangents += other.tangents;
        self.projections += other.projections;
        self.short_projections += other.short_projections;
        self.fallbacks += other.fallbacks;
        self.max_phid = self.max_phid.max(other.max_phid);
        self.max_phidd = self.max_phidd.max(other.max_phidd);
    }
}
