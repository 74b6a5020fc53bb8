//! The observer of a run: evaluates at every node the quantities of reports and tables.
//!
//! Input: the nodes of a run in the order of time, as [`Now`]. Output: rows of results for a [`Follower`], and sums and extremes over all
//! nodes. A node is a *result* if it is the first, the last, or one of those the output interval asks for.

use super::columns::{Column, columns};
use super::curves::Curves;
use super::energy_balance::EnergyBalance;
use super::failure::RunFailure;
use super::follower::Follower;
use super::settings::{Analysis, Settings};
use crate::Interpreted;
use crate::jumps::{Jump, Jumps};
use mbs_codegen::model::Model;
use mbs_codegen::program::Program;
use mbs_runtime::formulation::Node;
use mbs_runtime::{
    At, Constrained, Dims, Energy, EvalError, ForwardDynamics, Hold, Index1, Motion, Objectives, Occurrence,
    Outputs, Quantity, Reactions, System, euler_parameters,
};
use std::ops::ControlFlow;
use std::time::Instant;

/// The instant of a node, with the quantities known of it.
#[derive(Clone, Debug)]
pub struct Now {
    /// Time, s.
    pub t: f64,
    /// Coordinates.
    pub z: Vec<f64>,
    /// Velocities.
    pub v: Vec<f64>,
    /// Inputs.
    pub u: Vec<f64>,
    /// Rates of coordinates; these and the following are known where constraints, objectives, outputs or reactions need them.
    pub zd: Vec<f64>,
    /// Accelerations.
    pub vd: Vec<f64>,
    /// Second derivatives of coordinates.
    pub zdd: Vec<f64>,
    /// Multipliers of the holonomic and the nonholonomic rows.
    pub lambda: Vec<f64>,
    /// Those that objectives read, in runs that know them all: λ, and where objectives name them σ and κ of the projections.
    judged: Vec<f64>,
    /// Integrals of the objectives up to here, where the integrator knows them.
    pub integrals: Vec<f64>,
}

impl Now {
    fn new(dims: &Dims, t: f64, y: &[f64]) -> Now {
        let (z, v) = y.split_at(dims.nq);
        Now {
            t,
            z: z.into(),
            v: v.into(),
            u: vec![0.0; dims.nu],
            zd: vec![0.0; dims.nq],
            vd: vec![0.0; dims.nv],
            zdd: vec![0.0; dims.nq],
            lambda: vec![0.0; dims.joint_rows()],
            judged: Vec::new(),
            integrals: Vec::new(),
        }
    }

    /// Of a node of an explicit run.
    pub(super) fn set(&mut self, at: At<'_, f64>) {
        self.t = at.t;
        self.z.copy_from_slice(at.z);
        self.v.copy_from_slice(at.v);
        self.u.copy_from_slice(at.u);
        self.integrals.clear();
        self.integrals.extend_from_slice(at.x);
    }

    /// Of a node of an implicit run.
    pub(super) fn set_node(&mut self, model: &Interpreted, node: &Node<'_, f64>) -> Result<(), EvalError> {
        let Motion { t, z, zd, zdd, u } = node.motion;
        self.t = t;
        for (to, from) in [(&mut self.z, z), (&mut self.zd, zd), (&mut self.zdd, zdd), (&mut self.u, u)] {
            to.copy_from_slice(from);
        }
        euler_parameters::velocities(model, z, zd, &mut self.v)?;
        euler_parameters::accelerations(model, z, zd, zdd, &mut self.vd)?;
        let dims = model.dims();
        self.judged.clear();
        self.judged.extend(dims.in_joint_form(node.lambda));
        self.lambda.clear();
        self.lambda.extend(self.judged.iter().take(dims.joint_rows()));
        Ok(())
    }

    fn at(&self) -> At<'_, f64> {
        At { t: self.t, z: &self.z, v: &self.v, x: &[], u: &self.u }
    }
}

/// Where accelerations and multipliers of a node come from.
pub(super) enum Accelerations<'a> {
    /// From forward dynamics of an open tree.
    OfTree,
    /// From the constraints of accelerations.
    OfConstraints(Index1<'a, Interpreted>),
    /// They are part of the node.
    Known,
}

impl Accelerations<'_> {
    /// Fills in accelerations and multipliers.
    fn complete(&self, model: &Interpreted, now: &mut Now, w: &mut [f64]) -> Result<(), EvalError> {
        let Now { t, z, v, u, zd, vd, zdd, lambda, .. } = now;
        let at = At { t: *t, z, v, x: &[], u };
        match self {
            Accelerations::OfTree => model.forward_dynamics(at, w, zd, vd, &mut []),
            Accelerations::OfConstraints(dynamics) => {
                dynamics.multipliers(at, w, zd, vd, lambda)?;
                euler_parameters::coordinate_accelerations(model, z, v, vd, zdd)
            }
            Accelerations::Known => Ok(()),
        }
    }
}

/// Largest violations of the constraints over a run: Φ; Φd and Ψ; Φdd and Ψd.
#[derive(Clone, Copy, Debug, Default)]
pub struct Norms {
    /// Of positions.
    pub position: f64,
    /// Of velocities.
    pub velocity: f64,
    /// Of accelerations.
    pub acceleration: f64,
}

/// What looks at the run.
pub(super) struct Observer<'a> {
    model: &'a Interpreted,
    settings: &'a Settings,
    accelerations: Accelerations<'a>,
    follower: &'a mut dyn Follower,
    /// Every how many nodes is a result.
    stride: usize,
    nodes: usize,
    w: Vec<f64>,
    rows: Rows,
    integrands: Vec<f64>,
    integrands_before: Vec<f64>,
    pub(super) seen: Seen,
    /// The node before, or memory for the next.
    other: Now,
    jumps: Option<Jumps>,
    /// Whether an event has happened since the last node.
    after_event: bool,
    begin: Instant,
    pub(super) failure: Option<RunFailure>,
}

/// Memory for the rows of the coordinate form.
struct Rows {
    r: Vec<f64>,
    zero: Vec<f64>,
    lambda: Vec<f64>,
    values: Vec<f64>,
}

/// What was seen of a run.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The last good node.
    pub now: Now,
    /// Outputs there.
    pub outputs: Vec<f64>,
    /// When each output was first seen not to be finite.
    undefined: Vec<Option<f64>>,
    /// Kinetic, potential, power.
    pub energy: [f64; 3],
    /// Power of the constraints: of prescribed motions. None without constraints.
    pub drives: Option<f64>,
    /// Six values a joint; empty if not asked for.
    pub reactions: Vec<f64>,
    /// Largest force and torque of each joint.
    pub largest_reactions: Vec<(f64, f64)>,
    /// Largest size of each multiplier.
    pub largest_multipliers: Vec<f64>,
    /// The balance of energy.
    pub balance: EnergyBalance,
    /// Largest violations; none without constraints.
    pub norms: Option<Norms>,
    /// Violations at this node.
    pub norms_now: Option<Norms>,
    integrals: Vec<f64>,
    terminals: Vec<f64>,
    /// Smallest and largest value of the integrand of each objective at a node.
    pub ranges: Vec<(f64, f64)>,
    /// Jumps it went through.
    pub jumps: Vec<Jump>,
    /// Events that happened, in the order of time.
    pub events: Vec<EventSeen>,
    /// Curves of the coordinates.
    pub curves: Curves,
    /// Curves of everything, as [`history_columns`] names them; none if not asked for, or before the first result.
    pub history: Option<Curves>,
    /// Projections that ended well above rounding.
    pub short_projections: usize,
}

/// An event that happened.
#[derive(Clone, Debug, PartialEq)]
pub struct EventSeen {
    /// Its place among the events of the program.
    pub event: usize,
    /// When, s.
    pub t: f64,
    /// Impulses of its conditions on velocities.
    pub impulses: Vec<f64>,
    /// Impulses of the constraints, in joint form; none if velocities have not jumped.
    pub row_impulses: Vec<f64>,
    /// Steps that were made to find it, the one that ends in it among them.
    pub steps: usize,
}

/// Norms of constraints, after the columns of a history.
const NORMS: [&str; 3] = ["position", "velocity", "acceleration"];

/// The curves of a history: the [`columns`] of the run but time, then norms of constraints.
pub fn history_columns(model: &Model, program: &Program, settings: &Settings) -> Vec<Column> {
    let norms = NORMS.iter().filter(|_| settings.constrained);
    let norms = norms.map(|level| Column::new(format!("norm.{level}"), ""));
    columns(model, program, settings).into_iter().skip(1).chain(norms).collect()
}

/// What to say of a run in which this many projections ended well above rounding.
pub fn warning_of_projections(short: usize) -> Option<String> {
    let what = "projections ended short of rounding: velocities or accelerations do not keep the constraints to their last digits, while gradients \
                take them as kept; the mechanism passes a singular position, or constraints nearly depend on each other";
    (short > 0).then(|| format!("{short} {what}"))
}

impl Seen {
    /// The objectives at the last node.
    pub fn objectives(&self) -> Vec<f64> {
        self.integrals.iter().zip(&self.terminals).map(|(integral, terminal)| integral + terminal).collect()
    }

    /// What is wrong with a run that came to its end all the same.
    pub fn warnings(&self, model: &Interpreted) -> Vec<String> {
        let outputs = model.program().outputs.iter().zip(&self.undefined);
        outputs
            .filter_map(|((name, _), first)| first.map(|t| (name, t)))
            .map(|(name, t)| {
                format!(
                    "output `{name}` is not finite at t = {t}; look for a division by zero, or a root or logarithm of a negative \
                     number"
                )
            })
            .chain(self.jumps.iter().map(Jump::to_string))
            .chain(self.balance.large_drift().map(|drift| {
                format!(
                    "no force has power, yet the energy drifts by {drift:.1e} of the largest kinetic energy: this is not the motion of \
                     the model; choose a shorter step or a smaller tolerance"
                )
            }))
            .chain(warning_of_projections(self.short_projections))
            .collect()
    }

    pub(super) fn new(model: &Interpreted, settings: &Settings, y: &[f64]) -> Seen {
        let dims = model.dims();
        Seen {
            now: Now::new(&dims, settings.simulation.begin, y),
            outputs: vec![0.0; dims.n_outputs],
            undefined: vec![None; dims.n_outputs],
            energy: [0.0; 3],
            drives: settings.constrained.then_some(0.0),
            reactions: vec![0.0; if settings.reactions { 6 * dims.n_joints } else { 0 }],
            largest_reactions: vec![(0.0, 0.0); if settings.reactions { dims.n_joints } else { 0 }],
            largest_multipliers: vec![0.0; dims.joint_rows()],
            balance: EnergyBalance::default(),
            norms: settings.constrained.then(Norms::default),
            norms_now: settings.constrained.then(Norms::default),
            integrals: vec![0.0; dims.n_objectives],
            ranges: vec![(f64::INFINITY, f64::NEG_INFINITY); dims.n_objectives],
            terminals: vec![0.0; dims.n_objectives],
            jumps: Vec::new(),
            events: Vec::new(),
            curves: Curves::new(dims.nq),
            history: None,
            short_projections: 0,
        }
    }
}

impl<'a> Observer<'a> {
    pub(super) fn new(
        model: &'a Interpreted,
        settings: &'a Settings,
        accelerations: Accelerations<'a>,
        y: &[f64],
        stride: usize,
        follower: &'a mut dyn Follower,
    ) -> Self {
        let dims = model.dims();
        let seen = Seen::new(model, settings, y);
        Observer {
            model,
            settings,
            accelerations,
            follower,
            stride,
            nodes: 0,
            w: vec![0.0; dims.workspace],
            rows: Rows {
                r: vec![0.0; dims.nq],
                zero: vec![0.0; dims.nq],
                lambda: vec![0.0; dims.rows()],
                values: vec![0.0; dims.rows()],
            },
            integrands: vec![0.0; dims.n_objectives],
            integrands_before: vec![0.0; dims.n_objectives],
            other: seen.now.clone(),
            seen,
            jumps: Jumps::new(model),
            after_event: false,
            begin: Instant::now(),
            failure: None,
        }
    }

    /// Notes an event; the next node is the one after it.
    pub(super) fn event(&mut self, occurrence: &Occurrence<'_, f64>) {
        let Occurrence { event, t, impulses, row_impulses, steps, .. } = *occurrence;
        // What acts on the mechanism is the opposite of the multiplier.
        let impulses = impulses.iter().map(|mu| -mu).collect();
        let row_impulses = row_impulses.iter().map(|lambda| -lambda).collect();
        self.seen.events.push(EventSeen { event, t, impulses, row_impulses, steps });
        self.after_event = true;
    }

    /// Looks at a node, which `set` writes down; `own`: one that the run has without events.
    pub(super) fn observe(
        &mut self,
        own: bool,
        set: impl FnOnce(&mut Now) -> Result<(), EvalError>,
    ) -> Result<(), RunFailure> {
        std::mem::swap(&mut self.seen.now, &mut self.other);
        let set = set(&mut self.seen.now);
        let t = self.seen.now.t;
        let result = !own || self.nodes.is_multiple_of(self.stride) || t == self.settings.simulation.end;
        let wanted = result && (self.follower.wants_rows() || self.settings.keeps_history);
        if let Err(error) = set.and_then(|()| self.evaluate(wanted)) {
            // The last good node is the one before.
            std::mem::swap(&mut self.seen.now, &mut self.other);
            return Err(RunFailure::Observe(t, error));
        }
        self.nodes += usize::from(own);
        self.after_event = false;
        let goes_on = if wanted { self.keep() } else { ControlFlow::Continue(()) };
        match goes_on.is_break() || self.follower.reached(t).is_break() {
            true => Err(RunFailure::Stopped(t)),
            false => Ok(()),
        }
    }

    /// A row of results and a sample of the curves.
    fn keep(&mut self) -> ControlFlow<()> {
        let Seen { now, outputs, energy, drives, reactions, history, norms_now, .. } = &mut self.seen;
        let mut parts: Vec<&[f64]> = vec![&now.z, &now.v, &now.u, outputs];
        if self.settings.analysis == Analysis::Dynamics {
            parts.extend([energy.as_slice(), drives.as_slice(), &now.lambda, reactions]);
        }
        if self.settings.keeps_history {
            let norms = norms_now.map(|norms| [norms.position, norms.velocity, norms.acceleration]);
            let values = parts.iter().copied().flatten().chain(norms.iter().flatten());
            let values: Vec<f64> = values.copied().collect();
            // As `history_columns` names them.
            history.get_or_insert_with(|| Curves::new(values.len())).sample(now.t, &values);
        }
        if self.follower.wants_rows() { self.follower.row(now.t, &parts) } else { ControlFlow::Continue(()) }
    }

    /// Everything that is summed up, and outputs where they are written.
    fn evaluate(&mut self, outputs: bool) -> Result<(), EvalError> {
        let objectives = !self.seen.integrals.is_empty();
        let dynamics = self.settings.constrained || objectives || self.settings.reactions;
        if dynamics || (outputs && !self.seen.outputs.is_empty()) {
            self.accelerations.complete(self.model, &mut self.seen.now, &mut self.w)?;
        }
        if outputs {
            self.evaluate_outputs()?;
        }
        if objectives {
            self.add_objectives()?;
        }
        if self.settings.constrained {
            self.measure_constraints()?;
        }
        if self.settings.reactions {
            self.evaluate_reactions()?;
        }
        if self.settings.analysis == Analysis::Dynamics {
            self.add_energy()?;
        }
        let now = &self.seen.now;
        if let Some(jumps) = &mut self.jumps {
            jumps.see(now.t, &now.z, &now.v, &now.vd, &now.u);
        }
        self.seen.curves.sample(now.t, &now.z);
        Ok(())
    }

    fn evaluate_outputs(&mut self) -> Result<(), EvalError> {
        let Seen { now, outputs, undefined, .. } = &mut self.seen;
        if outputs.is_empty() {
            return Ok(());
        }
        self.model.outputs(now.at(), &now.vd, &mut self.w, outputs)?;
        for (first, _) in undefined.iter_mut().zip(&*outputs).filter(|(_, value)| !value.is_finite()) {
            first.get_or_insert(now.t);
        }
        Ok(())
    }

    /// ∫ g dt by the integrator's own weights, or by the trapezoidal rule over the nodes where it has none; and w at this one.
    fn add_objectives(&mut self) -> Result<(), EvalError> {
        let Seen { now, integrals, terminals, ranges, .. } = &mut self.seen;
        let g = &mut self.integrands;
        let projected = self.model.dims().n_projected > 0;
        let lambda = if projected { &now.judged } else { &now.lambda };
        self.model.objectives(now.at(), &now.vd, lambda, &mut self.w, g, terminals)?;
        refuse_undefined(g)?;
        for (range, &g) in ranges.iter_mut().zip(&*g) {
            *range = (range.0.min(g), range.1.max(g));
        }
        if now.integrals.len() == integrals.len() {
            integrals.copy_from_slice(&now.integrals);
            return Ok(());
        }
        let half = if self.nodes == 0 { 0.0 } else { 0.5 * (now.t - self.other.t) };
        for ((sum, last), &g) in integrals.iter_mut().zip(&mut self.integrands_before).zip(&*g) {
            *sum += half * (*last + g);
            *last = g;
        }
        Ok(())
    }

    fn measure_constraints(&mut self) -> Result<(), EvalError> {
        let Seen { now, norms, norms_now, drives, largest_multipliers, .. } = &mut self.seen;
        let (Some(norms), Some(here)) = (norms, norms_now) else { return Ok(()) };
        let Rows { r, zero, lambda, values } = &mut self.rows;
        let at = Motion { t: now.t, z: &now.z, zd: &now.zd, zdd: &now.zdd, u: &now.u };
        let n = self.model.dims();
        let positions = n.n_holonomic + n.n_normalisation;
        self.model.residual(at, lambda, &mut self.w, r, values)?;
        here.position = largest(&values[..positions]);
        self.model.constraint_rates(at, &mut self.w, values)?;
        here.velocity = largest(values);
        self.model.constraint_accelerations(at, &mut self.w, values)?;
        here.acceleration = largest(values);
        norms.position = norms.position.max(here.position);
        norms.velocity = norms.velocity.max(here.velocity);
        norms.acceleration = norms.acceleration.max(here.acceleration);
        for (largest, lambda) in largest_multipliers.iter_mut().zip(&now.lambda) {
            *largest = largest.max(lambda.abs());
        }
        // The constraint forces −Φ_zᵀ λ − Aᵀ μ have the power λᵀ Φ_t + μᵀ b. What multiplies is Φd and Ψ at rest: exactly zero
        // unless a constraint prescribes a motion.
        self.model.constraint_rates(Motion { zd: zero, ..at }, &mut self.w, values)?;
        let (holonomic, rest) = values.split_at(n.n_holonomic);
        let prescribed = holonomic.iter().chain(&rest[n.n_normalisation..]);
        *drives = Some(prescribed.zip(&now.lambda).map(|(rate, lambda)| rate * lambda).sum());
        Ok(())
    }

    fn evaluate_reactions(&mut self) -> Result<(), EvalError> {
        let Seen { now, reactions, largest_reactions, .. } = &mut self.seen;
        self.model.reactions(now.at(), &now.vd, &now.lambda, &mut self.w, reactions)?;
        for ((force, torque), wrench) in largest_reactions.iter_mut().zip(reactions.chunks_exact(6)) {
            *force = force.max(length(&wrench[..3]));
            *torque = torque.max(length(&wrench[3..]));
        }
        Ok(())
    }

    fn add_energy(&mut self) -> Result<(), EvalError> {
        let Seen { now, energy, drives, balance, .. } = &mut self.seen;
        self.model.energy(now.at(), &mut self.w, energy)?;
        let holds = self.model.holds();
        let held = now.u.iter().zip(holds).filter(|(_, hold)| **hold == Hold::Zero).map(|(&u, _)| u);
        match self.after_event {
            true => balance.sample_after_event(now.t, *energy, drives.unwrap_or(0.0), held),
            false => balance.sample(now.t, *energy, drives.unwrap_or(0.0), held),
        }
        Ok(())
    }

    /// Ends the run with the outputs at the last node. Gives the wall time, s.
    pub(super) fn finish(&mut self) -> f64 {
        let seconds = self.begin.elapsed().as_secs_f64();
        self.seen.jumps = self.jumps.as_ref().map_or_else(Vec::new, Jumps::found);
        if self.nodes > 0 && !self.seen.outputs.is_empty() {
            let accelerated = self.accelerations.complete(self.model, &mut self.seen.now, &mut self.w);
            if let Err(error) = accelerated.and_then(|()| self.evaluate_outputs()) {
                self.failure.get_or_insert(RunFailure::Observe(self.seen.now.t, error));
            }
        }
        if self.nodes > 0
            && let Err(error) = refuse_undefined(&self.seen.terminals)
        {
            self.failure.get_or_insert(RunFailure::Observe(self.seen.now.t, error));
        }
        seconds
    }
}

/// Values of objectives must be finite: what a run is judged by is nothing otherwise.
fn refuse_undefined(objectives: &[f64]) -> Result<(), EvalError> {
    match objectives.iter().position(|value| !value.is_finite()) {
        Some(index) => Err(EvalError::NotFinite { quantity: Quantity::Objective, index }),
        None => Ok(()),
    }
}

fn largest(values: &[f64]) -> f64 {
    // A value that is not a number is the largest.
    values.iter().fold(0.0, |largest, value| if value.abs() <= largest { largest } else { value.abs() })
}

fn length(vector: &[f64]) -> f64 {
    vector.iter().map(|x| x * x).sum::<f64>().sqrt()
}
