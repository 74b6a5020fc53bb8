//! Better parameters: minimises objectives of runs over parameters, within bounds and under constraints.
//!
//! Input: a model and one of its [`Optimisation`](mbs_codegen::model::Optimisation) problems. Output: an [`Outcome`] with the best parameters, active bounds and
//! multipliers by name, and what it took. Gradients are those of the discrete solution, direct or by the adjoint, whichever costs less.
//! The optimisers are those of the crate `basin`; a run that fails inside is a step that was too long.
//!
//! ```
//! use mbs_engine::optimisation::{Problem, Setup, Unwatched, solve};
//! use mbs_engine::simulation::{Analysis, Overrides};
//!
//! let text = "
//! mbs: 1
//! name: mount
//! parameters: {k: {value: 20, min: 1, max: 100}, c: {value: 1, min: 0.1, max: 50}}
//! bodies: {block: {mass: 1}}
//! joints: {rail: {type: prismatic, parent: ground, child: block, axis: [1, 0, 0], start: 0.1}}
//! forces: {mount: {type: torsional_spring, coordinate: rail, stiffness: k, damping: c}}
//! objectives: {travel: {integrand: 100*rail.displacement^2}}
//! simulation: {end: 2, step: 0.01}
//! optimisation: {quiet: {minimise: travel, over: [c]}}
//! ";
//! let (model, _) = mbs_codegen::analyse("mount.yaml", text).unwrap();
//! let setup = Setup { case: None, set: &[], analysis: Analysis::Dynamics, overrides: &Overrides::default(), engine: Default::default(), fusing: Default::default() };
//! let mut problem = Problem::new(&model, &model.optimisation[0], &setup).unwrap();
//! let outcome = solve(&mut problem, &mut Unwatched).unwrap();
//! // Over a long time, ∫x² is least at c = sqrt(k m).
//! assert!((outcome.best().x[0] - 20_f64.sqrt()).abs() < 0.05);
//! ```

mod evaluation;
mod extremes;
mod histories;
mod optimality;
mod problem;
mod request;
mod scaling;
mod search;

pub use evaluation::{Evaluation, Failed, Motion};
pub use histories::VariedInput;
pub use optimality::{ActiveBound, ActiveRow, Optimality};
pub(crate) use problem::variables;
pub use problem::{Problem, ProblemError, Row, Setup, TrueExtreme, Variable};
pub use request::{Request, unknowns};
pub use search::{Iteration, Outcome, Search, SearchError, Status, Unwatched, Watch, solve};
