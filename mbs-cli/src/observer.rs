//! What looks at a run: at every node it evaluates what the report and the file need.
//!
//! Enters: the nodes of a run in the order of time, as [`Now`]. Leaves: rows of the file, and sums and extremes over all
//! nodes. A node is a *result* if it is the first, the last, or one of those the output interval asks for; only results
//! go to the file.

use crate::csv::Csv;
use crate::energy_balance::EnergyBalance;
use crate::interrupt;
use crate::plot::Curves;
use crate::progress::Progress;
use crate::run::RunFailure;
use crate::settings::{Analysis, Settings};
use mbs_engine::Interpreted;
use mbs_runtime::formulation::Node;
use mbs_runtime::{
    At, Constrained, Dims, Energy, EvalError, ForwardDynamics, Hold, Index1, Motion, Objectives, Outputs,
    Quantity, Reactions, System, euler_parameters,
};

/// The instant of a node, with whatever is known of it.
#[derive(Clone, Debug)]
pub(crate) struct Now {
    pub(crate) t: f64,
    pub(crate) z: Vec<f64>,
    pub(crate) v: Vec<f64>,
    pub(crate) u: Vec<f64>,
    /// Filled by [`Accelerate`].
    pub(crate) zd: Vec<f64>,
    pub(crate) vd: Vec<f64>,
    pub(crate) zdd: Vec<f64>,
    /// Multipliers of the holonomic and the nonholonomic rows.
    pub(crate) lambda: Vec<f64>,
}

impl Now {
    pub(crate) fn new(dims: &Dims, t: f64, y: &[f64]) -> Now {
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
        }
    }

    /// Of a node of an explicit run.
    pub(crate) fn set(&mut self, at: At<'_, f64>) {
        self.t = at.t;
        self.z.copy_from_slice(at.z);
        self.v.copy_from_slice(at.v);
        self.u.copy_from_slice(at.u);
    }

    /// Of a node of an implicit run.
    pub(crate) fn set_node(&mut self, model: &Interpreted, node: &Node<'_, f64>) -> Result<(), EvalError> {
        let Motion { t, z, zd, zdd, u } = node.motion;
        self.t = t;
        for (to, from) in [(&mut self.z, z), (&mut self.zd, zd), (&mut self.zdd, zdd), (&mut self.u, u)] {
            to.copy_from_slice(from);
        }
        euler_parameters::velocities(model, z, zd, &mut self.v)?;
        euler_parameters::accelerations(model, z, zd, zdd, &mut self.vd)?;
        // Normalisation rows stand between the two kinds of others.
        let dims = model.dims();
        let (holonomic, rest) = node.lambda.split_at(dims.n_holonomic);
        self.lambda.clear();
        self.lambda.extend_from_slice(holonomic);
        self.lambda.extend_from_slice(&rest[dims.n_normalisation..]);
        Ok(())
    }

    fn at(&self) -> At<'_, f64> {
        At { t: self.t, z: &self.z, v: &self.v, x: &[], u: &self.u }
    }
}

/// Where accelerations and multipliers of a node come from.
pub(crate) trait Accelerate {
    /// Fills in what positions and velocities do not tell.
    fn accelerate(&self, now: &mut Now, w: &mut [f64]) -> Result<(), EvalError>;
}

/// From forward dynamics of an open tree.
pub(crate) struct OfTree<'a, M>(pub(crate) &'a M);

impl<M: ForwardDynamics<S = f64>> Accelerate for OfTree<'_, M> {
    fn accelerate(&self, now: &mut Now, w: &mut [f64]) -> Result<(), EvalError> {
        let Now { t, z, v, u, zd, vd, .. } = now;
        self.0.forward_dynamics(At { t: *t, z, v, x: &[], u }, w, zd, vd, &mut [])
    }
}

/// From the constraints of accelerations.
pub(crate) struct OfConstraints<'a>(pub(crate) &'a Interpreted, pub(crate) Index1<'a, Interpreted>);

impl Accelerate for OfConstraints<'_> {
    fn accelerate(&self, now: &mut Now, w: &mut [f64]) -> Result<(), EvalError> {
        let Now { t, z, v, u, zd, vd, zdd, lambda } = now;
        self.1.multipliers(At { t: *t, z, v, x: &[], u }, w, zd, vd, lambda)?;
        euler_parameters::coordinate_accelerations(self.0, z, v, vd, zdd)
    }
}

/// They are part of the node.
pub(crate) struct Known;

impl Accelerate for Known {
    fn accelerate(&self, _: &mut Now, _: &mut [f64]) -> Result<(), EvalError> {
        Ok(())
    }
}

/// Largest violations of the constraints over a run: Φ; Φd and Ψ; Φdd and Ψd.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Norms {
    pub(crate) position: f64,
    pub(crate) velocity: f64,
    pub(crate) acceleration: f64,
}

/// What looks at the run.
pub(crate) struct Observer<'a, A> {
    model: &'a Interpreted,
    settings: &'a Settings,
    accelerate: A,
    csv: Option<&'a mut Csv>,
    /// Every how many nodes is a result.
    stride: usize,
    nodes: usize,
    w: Vec<f64>,
    rows: Rows,
    integrands: Vec<f64>,
    integrands_before: Vec<f64>,
    pub(crate) seen: Seen,
    /// The node before, or memory for the next.
    other: Now,
    pub(crate) progress: Progress,
    pub(crate) failure: Option<RunFailure>,
}

/// Memory for the rows of the coordinate form.
struct Rows {
    r: Vec<f64>,
    zero: Vec<f64>,
    lambda: Vec<f64>,
    values: Vec<f64>,
}

/// What was seen of the run.
pub(crate) struct Seen {
    /// The last node.
    pub(crate) now: Now,
    pub(crate) outputs: Vec<f64>,
    /// When each output was first seen not to be finite.
    undefined: Vec<Option<f64>>,
    /// Kinetic, potential, power.
    pub(crate) energy: [f64; 3],
    /// Power of the constraints: of prescribed motions. None without constraints.
    pub(crate) drives: Option<f64>,
    /// Six values a joint; empty if not asked for.
    pub(crate) reactions: Vec<f64>,
    /// Largest force and torque of each joint.
    pub(crate) largest_reactions: Vec<(f64, f64)>,
    pub(crate) largest_multipliers: Vec<f64>,
    pub(crate) balance: EnergyBalance,
    /// None without constraints.
    pub(crate) norms: Option<Norms>,
    /// Violations at this node.
    pub(crate) norms_now: Option<Norms>,
    pub(crate) integrals: Vec<f64>,
    pub(crate) terminals: Vec<f64>,
    pub(crate) curves: Curves,
    /// Everything over time, where a page wants it.
    pub(crate) history: Option<Curves>,
}

/// Names of the curves of a history: the columns of the file but time, then norms of constraints.
pub(crate) fn history_columns(model: &Interpreted, settings: &Settings) -> Vec<String> {
    let mut names = crate::csv::columns(model.program(), settings);
    names.remove(0);
    if settings.constrained {
        names.extend(["position", "velocity", "acceleration"].map(|level| format!("norm.{level}")));
    }
    names
}

impl Seen {
    /// The objectives at the last node.
    pub(crate) fn objectives(&self) -> Vec<f64> {
        self.integrals.iter().zip(&self.terminals).map(|(integral, terminal)| integral + terminal).collect()
    }

    /// What is wrong with a run that came to its end all the same.
    pub(crate) fn warnings(&self, model: &Interpreted) -> Vec<String> {
        let outputs = model.program().outputs.iter().zip(&self.undefined);
        outputs
            .filter_map(|((name, _), first)| first.map(|t| (name, t)))
            .map(|(name, t)| {
                format!(
                    "output `{name}` is not finite at t = {t}; look for a division by zero, or a root or logarithm of a negative \
                     number"
                )
            })
            .collect()
    }

    pub(crate) fn new(model: &Interpreted, settings: &Settings, y: &[f64]) -> Seen {
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
            terminals: vec![0.0; dims.n_objectives],
            curves: Curves::new(dims.nq),
            // As `history_columns` names them.
            history: settings.keeps_history.then(|| Curves::new(history_columns(model, settings).len())),
        }
    }
}

impl<'a, A: Accelerate> Observer<'a, A> {
    pub(crate) fn new(
        model: &'a Interpreted,
        settings: &'a Settings,
        accelerate: A,
        y: &[f64],
        stride: usize,
        csv: Option<&'a mut Csv>,
    ) -> Self {
        let dims = model.dims();
        let seen = Seen::new(model, settings, y);
        Observer {
            model,
            settings,
            accelerate,
            csv,
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
            progress: Progress::new((settings.simulation.begin, settings.simulation.end)),
            failure: None,
        }
    }

    /// Looks at a node, which `set` writes down.
    pub(crate) fn observe(
        &mut self,
        set: impl FnOnce(&mut Now) -> Result<(), EvalError>,
    ) -> Result<(), RunFailure> {
        std::mem::swap(&mut self.seen.now, &mut self.other);
        let set = set(&mut self.seen.now);
        let t = self.seen.now.t;
        self.progress.reached(t);
        let result = self.nodes.is_multiple_of(self.stride) || t == self.settings.simulation.end;
        let wanted = result && (self.csv.is_some() || self.seen.history.is_some());
        if let Err(error) = set.and_then(|()| self.evaluate(wanted)) {
            // The last good node is the one before.
            std::mem::swap(&mut self.seen.now, &mut self.other);
            return Err(RunFailure::Observe(t, error));
        }
        self.nodes += 1;
        if wanted {
            self.keep().map_err(RunFailure::Write)?;
        }
        if interrupt::is_wanted() { Err(RunFailure::Interrupted(t)) } else { Ok(()) }
    }

    /// A row of the file and a sample of the curves.
    fn keep(&mut self) -> std::io::Result<()> {
        let Seen { now, outputs, energy, drives, reactions, history, norms_now, .. } = &mut self.seen;
        let mut parts: Vec<&[f64]> = vec![&now.z, &now.v, &now.u, outputs];
        if self.settings.analysis == Analysis::Dynamics {
            parts.extend([energy.as_slice(), drives.as_slice(), &now.lambda, reactions]);
        }
        if let Some(history) = history {
            let norms = norms_now.map(|norms| [norms.position, norms.velocity, norms.acceleration]);
            let norms = norms.iter().flatten();
            history
                .sample(now.t, &parts.iter().copied().flatten().chain(norms).copied().collect::<Vec<f64>>());
        }
        self.csv.as_mut().map_or(Ok(()), |csv| csv.row(now.t, &parts))
    }

    /// Everything that is summed up, and outputs where they are written.
    fn evaluate(&mut self, outputs: bool) -> Result<(), EvalError> {
        let objectives = !self.seen.integrals.is_empty();
        let dynamics = self.settings.constrained || objectives || self.settings.reactions;
        if dynamics || (outputs && !self.seen.outputs.is_empty()) {
            self.accelerate.accelerate(&mut self.seen.now, &mut self.w)?;
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
        self.seen.curves.sample(self.seen.now.t, &self.seen.now.z);
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

    /// ∫ g dt by the trapezoidal rule over the nodes, and w at this one.
    fn add_objectives(&mut self) -> Result<(), EvalError> {
        let Seen { now, integrals, terminals, .. } = &mut self.seen;
        let g = &mut self.integrands;
        self.model.objectives(now.at(), &now.vd, &now.lambda, &mut self.w, g, terminals)?;
        refuse_undefined(g)?;
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
        balance.sample(now.t, *energy, drives.unwrap_or(0.0), held);
        Ok(())
    }

    /// Ends the run: outputs at the last node, and everything written reaches the file. Gives the wall time, s.
    pub(crate) fn finish(&mut self) -> f64 {
        let seconds = self.progress.finish();
        if let Some(csv) = &mut self.csv
            && let Err(error) = csv.flush()
        {
            self.failure.get_or_insert(RunFailure::Write(error));
        }
        if self.nodes > 0 && !self.seen.outputs.is_empty() {
            let accelerated = self.accelerate.accelerate(&mut self.seen.now, &mut self.w);
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
