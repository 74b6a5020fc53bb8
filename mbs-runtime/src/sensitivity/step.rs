//! The derivative of an implicit step, as a value with a product and a transposed product.
//!
//! Input: the [`Record`] of a step. Output: the derivative of the map
//!
//! (z, zd, zdd, a) at t, ρ  ↦  (z, zd, zdd, a, λ) at t + h,
//!
//! of the whole discrete step with both projections, exact at the accepted instant: Newton's method and the projections are what
//! they converge to. The product with the derivatives at t gives those at t + h; the transposed one gives adjoints.
//!
//! | symbol | meaning |
//! |---|---|
//! | M, C, K | r_zdd, r_zd, r_z at the instant before the projections, with all of λ* in K |
//! | B | (Φ_z; A) |
//! | p, q | positions and velocities of the integrator's formulas with zdd_next = 0 |
//! | δ | derivative of zdd* |
//! | d, σ; e, κ | what the projections added to zd* and zdd*, and their multipliers |
//! | ′ | a derivative |
//!
//! ```text
//! z′ = p + βh² δ    zd*′ = q + γh δ      (β, γ scaled as in the integrator)
//! [ W    Φ_zᵀ  Aᵀ ] [δ  ]   [−K p − C q − r_ρ              ]
//! [ Φ_z           ] [λ*′] = [−(Φ_z p + Φ_ρ)/(βh²)          ]          [Dopico2018, Eqs. 25, 35, with μ_ρ]
//! [ A′            ]         [−(A q + Ψ_z p + Ψ_ρ)/(γh)     ]
//!
//! [ M  Bᵀ ] [zd′ ]   [M zd*′ − (M d + Bᵀσ)_z z′ − (M d + Bᵀσ)_ρ                 ]
//! [ B     ] [σ′  ] = [−(Φd; Ψ)_z z′ − (Φd; Ψ)_ρ                                 ]
//!
//! [ M  Bᵀ ] [zdd′]   [M zdd*′ − (M e + Bᵀκ)_z z′ − (M e + Bᵀκ)_ρ                ]
//! [ B     ] [κ′  ] = [−(Φdd; Ψd)_z z′ − (Φdd; Ψd)_zd zd′ − (Φdd; Ψd)_ρ          ]     λ′ = λ*′ + κ′
//! ```
//!
//! With the matrix of the tangent P stands for M in the projections; for what that adds see `tangent_projection`.
//!
//! Under [`ImplicitIndex1`](crate::ImplicitIndex1) rows are those of accelerations, c = Φdd + a Φd + b Φ − e λ, and there are no
//! projections:
//!
//! ```text
//! [ W                          Bᵀ ] [δ ]   [−K p − C q − r_ρ       ]
//! [ c_zdd + γh c_zd + βh² c_z  −e ] [λ′] = [−c_z p − c_zd q − c_ρ  ]
//! ```
//!
//! K, C and what belongs to them are never divided by h. Where rows depend on each other, λ′ is the derivative of the
//! multipliers of least norm, see `least_norm`.

use super::at_once;
use super::bordered::{Bordered, Lower, Memory};
use super::derivatives::{Impulses, Sensitivities};
use super::products;
use super::stages::Lists;
use super::state::rows as rows_of_state;
use super::tangent_projection::TangentImpulses;
use super::values::{MotionValues, ProjectionValues};
use crate::constrained::Stabilisation;
use crate::error::{EvalError, StepError};
use crate::formulation::compliance::{write_least, write_negligible};
use crate::formulation::newton::Failure;
use crate::formulation::{Ali3p, ImplicitIndex1, ProjectionMatrix, Record, depend};
use crate::integrator::{Formulas, Implicit};
use crate::linear::blocks::{Blocks, BlocksMut, holonomic_rows};
use crate::linear::{Leading, copy, leading};
use crate::pieces::{Pieces, cut, cut_mut};
use crate::scalar::Scalar;
use crate::system::{Dims, Units};

/// What the rows of Newton's method say, and what follows it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Enforcement<S> {
    /// Φ = 0 and Ψ = 0; with projections, or without.
    Positions {
        /// Norm of the projections of velocities and accelerations, if there are any.
        projection: Option<ProjectionMatrix>,
    },
    /// Φdd + a Φd + b Φ − e λ = 0 and Ψd + a Ψ − e μ = 0.
    Accelerations(Stabilisation<S>),
}

/// Whether projections have the matrix of the tangent; of a model without its derivatives a constant.
#[cfg_attr(not(feature = "small"), inline(always))]
fn projects_with_tangent<S: Scalar>(dims: &Dims, enforcement: Enforcement<S>) -> bool {
    dims.sensitivity.tangent_product > 0
        && enforcement == (Enforcement::Positions { projection: Some(ProjectionMatrix::Tangent) })
}

/// What a linearisation is for, and what it finds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Purpose {
    /// λ′ is wanted as the derivative of multipliers of least norm, where rows depend on each other; if not, it is that of some that give
    /// the same forces.
    pub(crate) multipliers: bool,
    /// The scratch begins with the matrix of the projections and its factors, as the step left them.
    pub(crate) kept: bool,
    /// Columns of transposed products, if these alone are wanted: where they take fewer operations by bundles of their own.
    pub(crate) transposed: Option<usize>,
}

/// Which transposed products are bundles of their own, in the place of lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ByProducts {
    /// None.
    Nothing,
    /// Those of the projections. Newton's equations have lists, whose sections make up its matrix, too.
    Projections,
    /// All.
    Everything,
}

impl Purpose {
    /// Everything, from the record alone.
    pub(crate) const WHOLE: Self = Self { multipliers: true, kept: false, transposed: None };

    /// Transposed products alone, of this many columns.
    pub(crate) const fn transposed(columns: usize, multipliers: bool) -> Self {
        Self { multipliers, kept: false, transposed: Some(columns) }
    }
}

/// What B x may be besides λ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turned {
    LambdaStar,
    Sigma,
}

/// The derivative of a step.
pub struct LinearisedStep<'a, M: Sensitivities> {
    pub(super) system: &'a M,
    pub(crate) formulas: Formulas<M::S>,
    pub(super) enforcement: Enforcement<M::S>,
    pub(super) failure: Failure,
    /// Activity of the rows, if some are not.
    pub(super) active: Option<&'a [M::S]>,
    pub(super) redundant: bool,
    /// Whether λ′ is made that of the multipliers of least norm.
    pub(super) least_norm: bool,
    /// Transposed products by bundles of their own, for which there are no lists.
    pub(super) products: ByProducts,
    /// Largest |z|, |zd|, |zdd|, if rows depend on each other.
    pub(super) sizes: [f64; 3],
    pub(super) lists: Lists<'a, M::S>,
    pub(super) newton: Bordered<'a, M>,
    pub(super) projection: Bordered<'a, M>,
    pub(super) b: &'a mut [M::S],
    pub(super) x: &'a mut [M::S],
    /// Of transposed products: weights of the projection of accelerations, and a column of all they read and write.
    pub(super) costates: &'a mut [M::S],
    pub(super) column: &'a mut [M::S],
    /// Weights of the state at the end, on their way to the start.
    pub(super) bar: &'a mut [M::S],
    pub(super) tangent: TangentImpulses<'a, M::S>,
    /// Derivatives of B x as in [`Lists::turned`], with B x = λ* and with B x = σ.
    other_turned: [&'a mut [M::S]; 2],
    pub(super) memory: Memory<'a, M::S>,
    /// nq, nq, rows values.
    pub(super) spare: [&'a mut [M::S]; 3],
    pub(super) w: &'a mut [M::S],
}

/// Columns that a product may have.
pub(crate) const fn max_columns(dims: &Dims) -> usize {
    let p = dims.sensitivity.parameters;
    let most = if p > dims.n_objectives { p } else { dims.n_objectives };
    if most > 1 { most } else { 1 }
}

/// Length of the scratch of a [`LinearisedStep`], or of a derivative without one.
#[inline(always)]
pub(crate) const fn scratch_len(dims: &Dims) -> usize {
    let (by_lists, at_once) = (scratch_len_by_lists(dims), at_once::scratch_len(dims));
    if by_lists > at_once { by_lists } else { at_once }
}

/// Lengths of the derivatives of B x with B x = λ* and with B x = σ.
#[inline(always)]
const fn other_turned_len(dims: &Dims) -> [usize; 2] {
    let (tangent, judged) = (dims.sensitivity.tangent_product > 0, dims.n_projected > 0);
    let len = dims.sensitivity.projections;
    [if tangent || judged { len } else { 0 }, if judged { len } else { 0 }]
}

const fn scratch_len_by_lists(dims: &Dims) -> usize {
    let (n, columns) = (dims.nq + dims.rows(), max_columns(dims));
    let [star, sigma] = other_turned_len(dims);
    let lists = dims.sensitivity.newton + 2 * dims.sensitivity.projections + 3 * dims.n_matrix;
    let solutions = (3 * n + rows_of_state(dims)) * columns + Memory::<f64>::len(dims, columns);
    let solutions = solutions + products::column_len(dims) + TangentImpulses::<f64>::len(dims) + star + sigma;
    dims.rows() + lists + 2 * leading::scratch_len(dims) + solutions + dims.nq + n + dims.workspace
}

impl Ali3p {
    /// Length of the scratch that [`Ali3p::linearise`] needs, at least; a constant for generated models.
    #[inline(always)]
    pub const fn linearised_scratch_len(dims: &Dims) -> usize {
        scratch_len(dims)
    }

    /// The integrator, where velocities and accelerations are projected in the norm of M.
    #[inline(always)]
    pub(super) fn projects(&self) -> Option<Implicit> {
        let projected = self.max_projections > 0 && self.projection == ProjectionMatrix::Mass;
        projected.then_some(self.integrator)
    }

    /// The derivative of the recorded step. It lives in the scratch.
    #[cfg_attr(not(feature = "small"), inline(always))]
    pub fn linearise<'a, M: Sensitivities>(
        &self,
        system: &'a M,
        record: &mut [M::S],
        scratch: &'a mut [M::S],
    ) -> Result<LinearisedStep<'a, M>, StepError> {
        self.linearise_for(Purpose::WHOLE, system, record, scratch)
    }

    #[cfg_attr(not(feature = "small"), inline(always))]
    pub(crate) fn linearise_for<'a, M: Sensitivities>(
        &self,
        purpose: Purpose,
        system: &'a M,
        record: &mut [M::S],
        scratch: &'a mut [M::S],
    ) -> Result<LinearisedStep<'a, M>, StepError> {
        let record = Record::of(&system.dims(), record)?;
        let formulas = self.integrator.formulas(*record.h)?;
        let projection = (self.max_projections > 0).then_some(self.projection);
        let enforcement = Enforcement::Positions { projection };
        LinearisedStep::new(system, formulas, enforcement, purpose, &record, scratch)
    }
}

impl ImplicitIndex1 {
    /// Length of the scratch that [`ImplicitIndex1::linearise`] needs, at least; a constant for generated models.
    #[inline(always)]
    pub const fn linearised_scratch_len(dims: &Dims) -> usize {
        scratch_len(dims)
    }

    /// There are no projections.
    #[inline(always)]
    pub(super) fn projects(&self) -> Option<Implicit> {
        None
    }

    /// The derivative of the recorded step. It lives in the scratch.
    #[cfg_attr(not(feature = "small"), inline(always))]
    pub fn linearise<'a, M: Sensitivities>(
        &self,
        system: &'a M,
        record: &mut [M::S],
        scratch: &'a mut [M::S],
    ) -> Result<LinearisedStep<'a, M>, StepError> {
        self.linearise_for(Purpose::WHOLE, system, record, scratch)
    }

    #[cfg_attr(not(feature = "small"), inline(always))]
    pub(crate) fn linearise_for<'a, M: Sensitivities>(
        &self,
        purpose: Purpose,
        system: &'a M,
        record: &mut [M::S],
        scratch: &'a mut [M::S],
    ) -> Result<LinearisedStep<'a, M>, StepError> {
        let record = Record::of(&system.dims(), record)?;
        let formulas = self.integrator.formulas(*record.h)?;
        let Stabilisation { rate, value, compliance } = self.stabilisation;
        let number = M::S::from_f64;
        let stabilisation =
            Stabilisation { rate: number(rate), value: number(value), compliance: number(compliance) };
        let enforcement = Enforcement::Accelerations(stabilisation);
        LinearisedStep::new(system, formulas, enforcement, purpose, &record, scratch)
    }
}

impl<'a, M: Sensitivities> LinearisedStep<'a, M> {
    #[cfg_attr(not(feature = "small"), inline(always))]
    pub(crate) fn new(
        system: &'a M,
        formulas: Formulas<M::S>,
        enforcement: Enforcement<M::S>,
        purpose: Purpose,
        record: &Record<'_, M::S>,
        scratch: &'a mut [M::S],
    ) -> Result<Self, StepError> {
        let dims = system.dims();
        let (nq, rows, columns) = (dims.nq, dims.rows(), max_columns(&dims));
        let n = nq + rows;
        let mut pieces = Pieces::of(scratch, scratch_len(&dims));
        // First, where a step has it.
        let projection = Leading::new(system, &dims, &mut pieces)?;
        let masked = record.active.contains(&M::S::ZERO);
        let active = pieces.next(rows)?;
        copy(active, record.active);
        let redundant = depend(*record.redundant != M::S::ZERO);
        let tangent = projects_with_tangent(&dims, enforcement);
        if !tangent && enforcement == (Enforcement::Positions { projection: Some(ProjectionMatrix::Tangent) })
        {
            let what = "the model has no derivatives of projections with the tangent: generate it with `projection: tangent`, or choose the mass matrix";
            return Err(StepError::NotDifferentiable { what });
        }
        let lower = pieces.next(dims.n_matrix)?;
        let lower = match enforcement {
            Enforcement::Positions { .. } => None,
            Enforcement::Accelerations(Stabilisation { rate, value, compliance }) => {
                let by_velocity = M::S::ONE + rate * formulas.weights.velocity;
                let by_position = by_velocity + value * formulas.weights.position;
                Some(Lower { values: lower, scales: [by_position, by_velocity], compliance })
            }
        };
        let least_norm = redundant && (purpose.multipliers || tangent);
        let products = match purpose.transposed {
            Some(_) if lower.is_some() || tangent => ByProducts::Nothing,
            Some(columns) if !redundant && columns <= dims.sensitivity.product_columns => {
                ByProducts::Everything
            }
            // The multipliers of least norm are differentiated by the lists.
            Some(columns) if !least_norm && columns <= system.projection_columns() => ByProducts::Projections,
            _ => ByProducts::Nothing,
        };
        let mut step = Self {
            system,
            formulas,
            enforcement,
            failure: Failure { t: (*record.t - *record.h).real(), h: record.h.real() },
            active: masked.then_some(&*active),
            redundant,
            least_norm,
            products,
            sizes: match redundant {
                true => [&record.z, &record.zd, &record.zdd].map(|part| system.units().largest(part)),
                false => [0.0; 3],
            },
            lists: Lists {
                motion: pieces.next(dims.sensitivity.newton)?,
                projections: pieces.next(dims.sensitivity.projections)?,
                rows_z: pieces.next(dims.n_matrix)?,
                rows_zd: pieces.next(dims.n_matrix)?,
                turned: pieces.next(dims.sensitivity.projections)?,
            },
            newton: Bordered {
                leading: Leading::new(system, &dims, &mut pieces)?,
                lower,
                symmetric: false,
                redundant,
                trusted: false,
            },
            projection: Bordered {
                leading: projection,
                lower: None,
                symmetric: true,
                redundant,
                trusted: false,
            },
            b: pieces.next(n * columns)?,
            x: pieces.next(n * columns)?,
            costates: pieces.next(n * columns)?,
            column: pieces.next(products::column_len(&dims))?,
            bar: pieces.next(rows_of_state(&dims) * columns)?,
            tangent: TangentImpulses::new(&dims, &mut pieces)?,
            other_turned: [
                pieces.next(other_turned_len(&dims)[0])?,
                pieces.next(other_turned_len(&dims)[1])?,
            ],
            memory: Memory::new(&dims, columns, &mut pieces)?,
            spare: [pieces.next(nq)?, pieces.next(nq)?, pieces.next(rows)?],
            w: pieces.next(dims.workspace)?,
        };
        let failure = step.failure;
        step.evaluate(purpose.kept, record).map_err(|error| failure.of(error))?;
        if depend(step.least_norm) {
            if step.splits_multipliers() {
                step.differentiate_rows(record, record.lambda_star)?;
                step.exchange_turned(Turned::LambdaStar);
            }
            if dims.n_projected > 0 {
                step.differentiate_rows(record, record.sigma)?;
                step.exchange_turned(Turned::Sigma);
            }
            step.differentiate_rows(record, record.lambda)?;
        }
        if tangent {
            step.differentiate_tangent(record).map_err(|error| failure.of(error))?;
        }
        Ok(step)
    }

    /// Whether something follows Newton's method.
    #[cfg_attr(not(feature = "small"), inline(always))]
    pub(super) fn projected(&self) -> bool {
        matches!(self.enforcement, Enforcement::Positions { projection: Some(_) })
    }

    /// Whether λ*′ and κ′ are told apart: the tangent reads λ*, objectives may read κ.
    pub(super) fn splits_multipliers(&self) -> bool {
        self.projects_with_tangent() || self.system.dims().n_projected > 0
    }

    /// Products move along these derivatives of the size of the step, too, as far as the projections depend on it.
    pub(crate) fn along_size(&mut self, h_rho: &'a [M::S]) {
        self.tangent.size = h_rho;
    }

    /// Adds what the last transposed product makes of the weight of the size of the step, as far as the projections depend on it.
    pub(crate) fn add_size_weights(&self, to: &mut [M::S]) {
        self.tangent.add_size_weights(to);
    }

    /// Exchanges the derivatives of B x with B x = λ for others, and back.
    pub(super) fn exchange_turned(&mut self, which: Turned) {
        let [star, sigma] = &mut self.other_turned;
        let other = match which {
            Turned::LambdaStar => star,
            Turned::Sigma => sigma,
        };
        core::mem::swap(&mut self.lists.turned, other);
    }

    /// Whether the projections have the matrix of the tangent.
    #[cfg_attr(not(feature = "small"), inline(always))]
    pub(super) fn projects_with_tangent(&self) -> bool {
        projects_with_tangent(&self.system.dims(), self.enforcement)
    }

    /// Evaluates and factors everything at the accepted instant.
    #[cfg_attr(not(feature = "small"), inline(always))]
    fn evaluate(&mut self, kept: bool, record: &Record<'_, M::S>) -> Result<(), EvalError> {
        if self.products == ByProducts::Everything {
            return self.evaluate_matrices(record);
        }
        let (dims, pattern, places) =
            (self.system.dims(), self.system.pattern(), self.system.parameter_places());
        self.system.linearise(record.motion(), record.lambda_star, self.w, self.lists.motion)?;
        let stabilised = matches!(self.enforcement, Enforcement::Accelerations(_));
        // `differentiate_rows` writes the list over, and then again.
        if self.products == ByProducts::Projections {
            self.differ(record);
        } else if stabilised || (self.projected() && !self.least_norm) {
            self.evaluate_projections(record)?;
        }

        // W = M + γh C + βh² K, A′ = A + (βh/γ) Ψ_z
        let values = MotionValues::of(&pattern, &places, self.lists.motion)?;
        let weights = self.formulas.weights;
        let mut blocks = BlocksMut::of(&dims, &pattern, self.newton.leading.matrix)?;
        let parts = values.mass.iter().zip(values.by_velocity.iter().zip(values.by_position));
        for (entry, (&m, (&c, &k))) in blocks.tangent.iter_mut().zip(parts) {
            *entry = m + weights.velocity * c + weights.position * k;
        }
        copy(blocks.holonomic, values.holonomic);
        copy(blocks.nonholonomic, values.nonholonomic);
        let ratio = if stabilised { M::S::ZERO } else { weights.ratio };
        let parts = values.nonholonomic.iter().zip(values.nonholonomic_z);
        for (entry, (&a, &by_z)) in blocks.nonholonomic_newton.iter_mut().zip(parts) {
            *entry = a + ratio * by_z;
        }
        write_compliance(record.scale, self.system.units(), depend(self.redundant), blocks.compliance);
        if let Some(active) = self.active {
            blocks.mask(&dims, &pattern, active)?;
        }
        if stabilised {
            self.evaluate_rows()?;
        }
        self.newton.leading.factor(self.w, false)?;

        // Where rows depend on each other E is the one of the step, too: then its matrix can be kept.
        let kept = kept && depend(self.redundant) && self.projected() && !self.projects_with_tangent();
        if self.projects_with_tangent() {
            self.take_tangent()?;
        }
        if (self.projected() || self.least_norm) && !kept {
            let values = MotionValues::of(&pattern, &places, self.lists.motion)?;
            let mut blocks = BlocksMut::of(&dims, &pattern, self.projection.leading.matrix)?;
            copy(blocks.tangent, values.mass);
            copy(blocks.holonomic, values.holonomic);
            copy(blocks.nonholonomic, values.nonholonomic);
            copy(blocks.nonholonomic_newton, values.nonholonomic);
            write_compliance(record.scale, self.system.units(), depend(self.redundant), blocks.compliance);
            if let Some(active) = self.active {
                blocks.mask(&dims, &pattern, active)?;
            }
            self.projection.leading.factor(self.w, false)?;
        }
        Ok(())
    }

    /// What the projections did: d, e and κ in `spare`.
    pub(super) fn differ(&mut self, record: &Record<'_, M::S>) {
        let [d, e, kappa] = &mut self.spare;
        differences(record, d, e, kappa);
    }

    /// P in the place of M, in the list of the motion, too: nothing reads M once Newton's matrix is there.
    #[cold]
    fn take_tangent(&mut self) -> Result<(), EvalError> {
        let (dims, pattern) = (self.system.dims(), self.system.pattern());
        let tangent = Blocks::of(&dims, &pattern, self.newton.leading.matrix)?.tangent;
        let mut blocks = BlocksMut::of(&dims, &pattern, self.projection.leading.matrix)?;
        copy(blocks.tangent, tangent);
        blocks.symmetrise(&pattern);
        let (mass, _) = cut_mut("values", self.lists.motion, pattern.tangent.len())?;
        copy(mass, blocks.tangent);
        Ok(())
    }

    /// `linearise_projections` at the end of the step; of M where M is the matrix of the projections.
    #[cfg_attr(not(feature = "small"), inline(always))]
    pub(super) fn evaluate_projections(&mut self, record: &Record<'_, M::S>) -> Result<(), EvalError> {
        self.differ(record);
        let [d, e, kappa] = &self.spare;
        let (zero, _) = cut_mut("column", self.column, self.system.dims().nq)?;
        let (velocity, acceleration): (&[M::S], &[M::S]) =
            if projects_with_tangent(&self.system.dims(), self.enforcement) {
                zero.fill(M::S::ZERO);
                (zero, zero)
            } else {
                (d, e)
            };
        let impulses = Impulses {
            velocity,
            velocity_multipliers: record.sigma,
            acceleration,
            acceleration_multipliers: kappa,
        };
        self.system.linearise_projections(record.projected(), impulses, self.w, self.lists.projections)
    }

    /// c_z, c_zd, and the rows of Newton's matrix that they make.
    fn evaluate_rows(&mut self) -> Result<(), EvalError> {
        let Enforcement::Accelerations(Stabilisation { rate, value, compliance }) = self.enforcement else {
            return Ok(());
        };
        let (dims, pattern, places) =
            (self.system.dims(), self.system.pattern(), self.system.parameter_places());
        let motion = MotionValues::of(&pattern, &places, self.lists.motion)?;
        let values = ProjectionValues::of(&pattern, &places, self.lists.projections)?;
        let two = M::S::from_f64(2.0);
        // Φdd_z + a Φd_z + b Φ_z, 2 Φd_z + a Φ_z
        let n = pattern.holonomic.len();
        let rows = self.lists.rows_z.iter_mut().zip(self.lists.rows_zd.iter_mut());
        let parts = values.accelerations_z.iter().zip(values.rates_z).zip(motion.holonomic);
        for ((row_z, row_zd), ((&phidd_z, &phid_z), &phi_z)) in rows.zip(parts) {
            *row_z = phidd_z + rate * phid_z + value * phi_z;
            *row_zd = two * phid_z + rate * phi_z;
        }
        // Ψd_z + a Ψ_z, Ψd_zd + a A
        let rows = self.lists.rows_z.iter_mut().zip(self.lists.rows_zd.iter_mut()).skip(n);
        let derivatives = values.nonholonomic_rates_z.iter().zip(values.nonholonomic_z);
        let parts = derivatives.zip(values.nonholonomic_rates_zd.iter().zip(motion.nonholonomic));
        for ((row_z, row_zd), ((&psid_z, &psi_z), (&psid_zd, &a))) in rows.zip(parts) {
            *row_z = psid_z + rate * psi_z;
            *row_zd = psid_zd + rate * a;
        }

        let Some(lower) = &mut self.newton.lower else { return Ok(()) };
        let weights = self.formulas.weights;
        let first = motion.holonomic.iter().chain(motion.nonholonomic);
        let parts = first.zip(self.lists.rows_zd.iter().zip(self.lists.rows_z.iter()));
        for (entry, (&row, (&row_zd, &row_z))) in lower.values.iter_mut().zip(parts) {
            *entry = row + weights.velocity * row_zd + weights.position * row_z;
        }
        let mut blocks = BlocksMut::of(&dims, &pattern, self.newton.leading.matrix)?;
        if compliance != M::S::ZERO {
            // E = e/s
            let holonomic = holonomic_rows(&dims);
            for (k, entry) in blocks.compliance.iter_mut().enumerate() {
                let [by_position, by_velocity] = lower.scales;
                *entry = compliance / if k < holonomic { by_position } else { by_velocity };
            }
        }
        if let Some(active) = self.active {
            blocks.mask(&dims, &pattern, active)?;
            let (holonomic, nonholonomic) = cut_mut("values", lower.values, n)?;
            let (first, second) = cut("active", active, holonomic_rows(&dims))?;
            for (active, places, values) in
                [(first, pattern.holonomic, holonomic), (second, pattern.nonholonomic, nonholonomic)]
            {
                for (&(row, _), value) in places.iter().zip(values) {
                    if active.get(row as usize).is_some_and(|active| *active == M::S::ZERO) {
                        *value = M::S::ZERO;
                    }
                }
            }
        }
        Ok(())
    }
}

/// What the projections did: d = zd − zd*, e = zdd − zdd*, κ = λ − λ*, so that λ* and κ make up the λ that is kept.
#[cfg_attr(not(feature = "small"), inline(always))]
pub(super) fn differences<S: Scalar>(record: &Record<'_, S>, d: &mut [S], e: &mut [S], kappa: &mut [S]) {
    let differences = [
        (d, &*record.zd, &*record.zd_star),
        (e, &*record.zdd, &*record.zdd_star),
        (kappa, &*record.lambda, &*record.lambda_star),
    ];
    for (to, a, b) in differences {
        for (to, (&a, &b)) in to.iter_mut().zip(a.iter().zip(b)) {
            *to = a - b;
        }
    }
}

/// E that leaves nothing but rounding; where rows depend on each other the same for all.
#[cfg_attr(not(feature = "small"), inline(always))]
pub(super) fn write_compliance<S: Scalar>(
    scale: &[S],
    units: Units<'_>,
    redundant: bool,
    compliance: &mut [S],
) {
    if redundant {
        write_least(scale, units, true, compliance);
    } else {
        write_negligible(scale, compliance);
    }
}
