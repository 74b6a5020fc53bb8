//! One run of a model, from its settings to a record of everything that was seen: what every front end needs, and none of
//! what one alone does.
//!
//! Input: a model, what a person asks for ([`Overrides`]), an observer of the run ([`Follower`]). Output: a [`Record`]. Nothing
//! here prints, reads a file or ends the program.
//!
//! ```
//! use mbs_engine::simulation::{self, Instance, Overrides, Silent};
//!
//! let text = "
//! mbs: 1
//! name: pendulum
//! gravity: [0, 0, -9.81]
//! parameters: {m: 1.0, L: 1.0}
//! bodies:
//!   rod: {mass: m, com: [0, 0, -L/2], inertia: [m*L^2/12, m*L^2/12, 0]}
//! joints:
//!   hinge: {type: revolute, parent: ground, child: rod, axis: [0, 1, 0], start: 0.3}
//! simulation: {end: 1, integrator: rk4}
//! ";
//! let (model, _) = mbs_codegen::analyse("pendulum.yaml", text).expect("a valid model");
//! let overrides = Overrides { step: Some(1e-3), ..Overrides::default() };
//! let set = [(String::from("L"), 0.5)];
//! let pendulum = Instance::of_dynamics(&model, None, &set, &overrides).expect("settings that go together");
//! let record = simulation::run(&pendulum.model, &pendulum.settings, &mut Silent);
//! assert!(record.failure.is_none());
//! assert!(record.seen.balance.relative_error().is_some_and(|drift| drift < 1e-9));
//! ```

mod curves;
mod energy_balance;
mod failure;
mod follower;
mod settings;

mod columns;
mod driven;
mod start;

mod observer;

mod run;

mod instance;
mod judged;

pub use columns::{Column, WRENCH, columns};
pub use curves::Curves;
pub use driven::Driven;
pub use energy_balance::EnergyBalance;
pub use failure::RunFailure;
pub use follower::{Follower, Silent};
pub use instance::{
    Instance, InstanceError, independent, interpret, open_objectives, refuse_unfit, simulation,
};
pub use observer::{EventSeen, Norms, Now, Seen, history_columns, warning_of_projections};
pub use run::{Effort, Record, run, stride, undefined, undefined_along};
pub(crate) use run::{refused_choice, refused_with_events};
pub use settings::{Analysis, Overrides, Setting, SettingError, Settings};
pub use start::{Start, assemble, held};
