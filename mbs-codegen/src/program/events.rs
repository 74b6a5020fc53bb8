//! Which expressions the bundles of events want.
//!
//! | symbol | meaning |
//! |---|---|
//! | g | function of an event |
//! | C, c | conditions on velocities: c = C v + c_t, of an impact the rate of its gap |
//! | d | v⁺ − v⁻ |
//! | Λ, μ | impulses of constraints and conditions |
//!
//! An event changes velocities by
//!
//! ```text
//! M d + Φ_vᵀ Λ + Cᵀ μ = 0,   Φd(v + d) = 0,   c(v + d) = target(v)
//! ```

use super::equations::{Equations, Results};
use super::observed::Observed;
use super::sensitivities::{gradients, sparse_rows, symbols};
use super::{BundleKind, ProgramError};
use crate::bundle::Specification;
use crate::constrained::row_values;
use crate::graph::{BinaryOp, ExprId, Graph, gradient};
use crate::lowering::{Environment, Lowering};
use crate::model::{
    Constraint, ConstraintKind, Event, EventCondition, ImpactLaw, InputId, Model, SensitivityRef,
};
use crate::symbols::Group;
use crate::topology::Tree;
use hashbrown::HashMap;
use mbs_bundles::EventEntry;

/// What a program says of its events beside their equations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Events {
    /// Their names.
    pub names: Vec<String>,
    /// The states that each of them enters, `mode.state`.
    pub enters: Vec<Vec<String>>,
    /// One for each.
    pub entries: Vec<EventEntry>,
    /// Names of the conditions on velocities.
    pub conditions: Vec<String>,
    /// The inputs that they set, one for each setting.
    pub inputs: Vec<u32>,
    /// For each setting the column of derivatives by its input, if there is one.
    pub columns: Vec<Option<u32>>,
    /// Whether constraints come and go.
    pub changes_rows: bool,
    /// Whether they reset positions.
    pub moves: bool,
    /// The column of derivatives by the clock.
    pub clock: Option<u32>,
    /// Whether signals of inputs do not name the time.
    pub autonomous: bool,
}

impl Events {
    /// Of a model; rates are not yet known.
    pub(super) fn of(model: &Model, tree: &Tree) -> Events {
        let mut events = Events { autonomous: true, ..Events::default() };
        events.changes_rows = model.constraints.iter().any(|constraint| !constraint.activity.is_always());
        let column = |id: InputId| {
            let place = model.sensitivity.iter().position(|one| *one == SensitivityRef::Input(id));
            place.map(|place| place as u32)
        };
        events.clock = model.clock.and_then(column);
        for event in &model.events {
            let (conditions, settings) = (events.conditions.len(), events.inputs.len());
            for (k, condition) in event.conditions.iter().enumerate() {
                events.conditions.push(match condition {
                    EventCondition::Impact { .. } => event.name.clone(),
                    EventCondition::Slip { .. } => format!("{}.slip", event.name),
                    EventCondition::Reset { .. } => format!("{}.{k}", event.name),
                });
            }
            events.columns.extend(event.settings.iter().map(|&(id, _)| column(id)));
            events.inputs.extend(event.settings.iter().map(|(id, _)| id.index() as u32));
            // A coordinate that is none is refused with the equations of the jumps.
            let places = event.placements.iter().map(|&(coordinate, _)| tree.z_of(coordinate).unwrap_or(0));
            events.inputs.extend(places.map(|z| (model.inputs.len() + z) as u32));
            events.columns.resize(events.inputs.len(), None);
            events.moves |= !event.placements.is_empty();
            events.names.push(event.name.clone());
            let entered = event.enters.iter().filter_map(|id| model.inputs.get(id.index()));
            events.enters.push(entered.map(|input| input.name.clone()).collect());
            events.entries.push(EventEntry {
                direction: event.direction,
                minimum_interval: event.minimum_interval,
                stop: event.stop,
                has_rate: false,
                conditions: (conditions, events.conditions.len()),
                impact: matches!(event.conditions.first(), Some(EventCondition::Impact { .. })),
                stops: matches!(event.conditions.first(), Some(EventCondition::Impact { gap, .. }) if *gap == event.when),
                law: event.law,
                adds_rows: {
                    let entered = |id| move |constraint: &Constraint| constraint.activity.names(id);
                    event.enters.iter().any(|&id| model.constraints.iter().any(entered(id)))
                },
                switch: event.switch.map(|id| id.index() as u32),
                settings: (settings, events.inputs.len()),
                judged: event.judged,
            });
        }
        events
    }
}

/// The equations of the jumps.
struct Jumps {
    /// By columns.
    mass: Vec<ExprId>,
    /// Φ_v, row by row.
    rows: Vec<Vec<ExprId>>,
    row_rates: Vec<ExprId>,
    /// Φ of holonomic rows, zero for the others.
    row_values: Vec<ExprId>,
    /// C, row by row.
    directions: Vec<Vec<ExprId>>,
    condition_rates: Vec<ExprId>,
    targets: Vec<ExprId>,
    /// Whether a condition belongs to an impact with friction: its target is restitution or friction.
    of_friction: Vec<bool>,
}

impl Equations<'_, '_, '_> {
    /// Functions, their rates, and what arms them.
    pub(super) fn event_functions(&mut self) -> Results {
        let (model, parameters) = (self.mechanism.model, self.mechanism.parameters);
        let (mut values, mut armed) = (Vec::new(), Vec::new());
        {
            let mut observed = Observed::new(self.g, self.mechanism, &self.inertias, &self.forces, self.rows);
            for event in &model.events {
                let mut lowering = Lowering::new(self.g, parameters, &mut observed);
                values.push(lowering.scalar(&event.when));
                let Event { activity, armed: condition, .. } = event;
                armed.push(match (condition, activity.factor()) {
                    (Some(condition), _) => lowering.scalar(&activity.times(condition.clone())),
                    (None, Some(factor)) => lowering.scalar(&factor),
                    (None, None) => self.g.one(),
                });
            }
        }
        let mut rates = Vec::new();
        for (k, &value) in values.iter().enumerate() {
            let depends = self.g.depends(value);
            let known = !(depends.contains(Group::Vd) || depends.contains(Group::Lambda));
            self.structure.event_rates.resize(model.events.len(), false);
            self.structure.event_rates[k] = known;
            rates.push(if known { self.total_derivative(value) } else { self.g.zero() });
        }
        vec![values, rates, armed]
    }

    /// Second derivatives; sizes of the terms of functions, rates and second derivatives, at least the smaller of one and the model's length
    /// in its time.
    pub(super) fn event_sides(&mut self) -> Results {
        let mut functions = self.event_functions();
        let (rates, values) = (functions.swap_remove(1), functions.swap_remove(0));
        let mut curvatures = Vec::new();
        for (&value, &rate) in values.iter().zip(&rates) {
            let others = [Group::V, Group::Vd, Group::Lambda];
            let of_positions = !others.iter().any(|&group| self.g.depends(value).contains(group));
            curvatures.push(if of_positions { self.total_derivative(rate) } else { self.g.zero() });
        }
        let mut sizes = self.g.sizes(&[&values[..], &rates, &curvatures].concat(), &HashMap::new());
        // A single symbol would be compared with itself.
        let (length, time) = (self.rows.scales.length.min(1.0), self.rows.scales.time);
        let least = [length, length / time, length / (time * time)].map(|least| self.g.constant(least));
        for (sizes, least) in sizes.chunks_exact_mut(values.len().max(1)).zip(least) {
            for size in sizes {
                *size = self.g.binary(BinaryOp::Max, *size, least);
            }
        }
        vec![curvatures, sizes]
    }

    /// g_z zd + g_v vd + g_t
    fn total_derivative(&mut self, value: ExprId) -> ExprId {
        let by_position = self.mechanism.time_derivative(self.g, value);
        let nv = self.mechanism.tree.nv;
        let velocities: Vec<ExprId> = (0..nv as u32).map(|i| self.g.symbol(Group::V, i)).collect();
        let one = self.g.one();
        let slopes = gradient(self.g, &[(value, one)], &velocities);
        let mut terms = vec![by_position];
        for (j, slope) in slopes.into_iter().enumerate() {
            let vd = self.g.symbol(Group::Vd, j as u32);
            terms.push(self.g.mul(slope, vd));
        }
        self.g.sum(&terms)
    }

    fn jumps(&mut self) -> Result<Jumps, ProgramError> {
        let (model, parameters, nv) =
            (self.mechanism.model, self.mechanism.parameters, self.mechanism.tree.nv);
        let cut = |event: &&Event| {
            event.placements.iter().any(|&(coordinate, _)| self.mechanism.tree.z_of(coordinate).is_none())
        };
        if let Some(event) = model.events.iter().find(cut) {
            let what = "resets a coordinate of a joint that is cut";
            return Err(ProgramError::Event { event: event.name.clone(), what });
        }
        let mass = self.mass_matrix().dense();
        let velocities: Vec<ExprId> = (0..nv as u32).map(|i| self.g.symbol(Group::V, i)).collect();
        let values = row_values(self.g, self.mechanism, &self.rows.kept);
        let (mut row_rates, mut row_values) = (Vec::new(), Vec::new());
        for (row, value) in self.rows.kept.iter().zip(values) {
            let (rate, value) = match row.kind {
                ConstraintKind::Holonomic => {
                    (self.mechanism.time_derivative(self.g, value.value), value.value)
                }
                ConstraintKind::Nonholonomic => (value.value, self.g.zero()),
            };
            row_rates.push(rate);
            row_values.push(value);
        }
        let rows = gradients(self.g, &row_rates, &velocities);
        let (mut condition_rates, mut targets, mut owners) = (Vec::new(), Vec::new(), Vec::new());
        let mut of_friction = Vec::new();
        for event in &model.events {
            for condition in &event.conditions {
                let [a, b] = condition.expressions();
                let a = Lowering::new(self.g, parameters, self.mechanism).scalar(a);
                let b = Lowering::new(self.g, parameters, self.mechanism).scalar(b);
                let (rate, target) = match condition {
                    EventCondition::Impact { .. } if event.law != ImpactLaw::Plain => {
                        (self.mechanism.time_derivative(self.g, a), b)
                    }
                    // γ⁺ = −e γ⁻
                    EventCondition::Impact { .. } => {
                        let rate = self.mechanism.time_derivative(self.g, a);
                        let product = self.g.mul(b, rate);
                        (rate, self.g.neg(product))
                    }
                    EventCondition::Slip { .. } | EventCondition::Reset { .. } => (a, b),
                };
                condition_rates.push(rate);
                targets.push(target);
                owners.push(&event.name);
                of_friction.push(event.law != ImpactLaw::Plain);
            }
        }
        let directions = gradients(self.g, &condition_rates, &velocities);
        for (direction, owner) in directions.iter().zip(owners) {
            if direction.iter().all(|&entry| self.g.is(entry, 0.0)) {
                let what = "acts along something that no velocity changes";
                return Err(ProgramError::Event { event: owner.clone(), what });
            }
            if direction.iter().any(|&entry| self.g.depends(entry).contains(Group::V)) {
                let what = "sets a rate that is not linear in velocities";
                return Err(ProgramError::Event { event: owner.clone(), what });
            }
        }
        Ok(Jumps { mass, rows, row_rates, row_values, directions, condition_rates, targets, of_friction })
    }

    pub(super) fn event_jumps(&mut self) -> Result<Results, ProgramError> {
        let (jumps, settings) = (self.jumps()?, self.settings());
        let nv = self.mechanism.tree.nv;
        let (rows, directions) = (by_columns(nv, &jumps.rows), by_columns(nv, &jumps.directions));
        Ok(vec![
            jumps.mass,
            rows,
            jumps.row_rates,
            jumps.row_values,
            directions,
            jumps.condition_rates,
            jumps.targets,
            settings,
        ])
    }

    /// Both bundles of derivatives.
    pub(super) fn event_derivatives(&mut self) -> Result<Vec<Specification>, ProgramError> {
        let (nq, nv, rows) = (self.mechanism.tree.nq, self.mechanism.tree.nv, self.rows.kept.len());
        let time = self.g.symbol(Group::Time, 0);
        let seeds: Vec<ExprId> = std::iter::once(time).chain(self.seeds.iter().copied()).collect();
        let sections = [(Group::Z, nq), (Group::V, nv), (Group::Vd, nv), (Group::Lambda, rows)];
        let unknowns = symbols(self.g, &sections, &seeds);
        let values = self.event_functions().swap_remove(0);
        let slopes = gradients(self.g, &values, &unknowns);
        let functions = sparse_rows(self.g, &slopes);
        self.structure.derivatives.events = functions.places;

        let unknowns = symbols(self.g, &[(Group::Z, nq), (Group::V, nv)], &seeds);
        let equations = self.jump_equations()?;
        let slopes = gradients(self.g, &equations, &unknowns);
        let jumps = sparse_rows(self.g, &slopes);
        self.structure.derivatives.jumps = jumps.places;
        Ok(vec![
            self.specify(BundleKind::EventFunctionDerivatives, vec![functions.entries])?,
            self.specify(BundleKind::EventJumpDerivatives, vec![jumps.entries])?,
        ])
    }

    /// Values that events give to inputs, from the state and the inputs before them.
    fn settings(&mut self) -> Vec<ExprId> {
        let (model, parameters) = (self.mechanism.model, self.mechanism.parameters);
        let values = model.events.iter().flat_map(|event| {
            let placements = event.placements.iter().map(|(_, value)| value);
            event.settings.iter().map(|(_, value)| value).chain(placements)
        });
        values.map(|value| Lowering::new(self.g, parameters, self.mechanism).scalar(value)).collect()
    }

    /// M d + Φ_vᵀ Λ + Cᵀ μ, Φd(v + d), c(v + d) − target(v), Φ, settings, coefficients, in which d, Λ and μ are symbols. Impacts with friction have c(v + d)
    /// alone, and restitution and friction in the places of their conditions among the coefficients, which are zero elsewhere.
    fn jump_equations(&mut self) -> Result<Vec<ExprId>, ProgramError> {
        let Jumps { mass, rows, row_rates, row_values, directions, condition_rates, targets, of_friction } =
            self.jumps()?;
        let settings = self.settings();
        let nv = self.mechanism.tree.nv;
        let g = &mut *self.g;
        let d: Vec<ExprId> = (0..nv as u32).map(|j| g.symbol(Group::Vd, j)).collect();
        let mut equations = Vec::new();
        for i in 0..nv {
            let mut terms: Vec<ExprId> = (0..nv).map(|j| g.mul(mass[j * nv + i], d[j])).collect();
            for (group, matrix) in [(Group::Lambda, &rows), (Group::EventImpulses, &directions)] {
                for (k, row) in matrix.iter().enumerate() {
                    let impulse = g.symbol(group, k as u32);
                    terms.push(g.mul(row[i], impulse));
                }
            }
            equations.push(g.sum(&terms));
        }
        let zero = g.zero();
        let parts = || of_friction.iter().zip(&targets);
        let coefficients: Vec<ExprId> =
            parts().map(|(&of_friction, &target)| if of_friction { target } else { zero }).collect();
        let targets = parts().map(|(&of_friction, &target)| if of_friction { zero } else { target });
        let targets = row_rates.iter().map(|_| zero).chain(targets).collect::<Vec<_>>();
        let rates = row_rates.iter().chain(&condition_rates);
        for ((&rate, row), target) in rates.zip(rows.iter().chain(&directions)).zip(targets) {
            let mut terms: Vec<ExprId> = row.iter().zip(&d).map(|(&slope, &d)| g.mul(slope, d)).collect();
            terms.push(rate);
            terms.push(g.neg(target));
            equations.push(g.sum(&terms));
        }
        equations.extend(row_values);
        equations.extend(settings);
        equations.extend(coefficients);
        Ok(equations)
    }
}

fn by_columns(columns: usize, rows: &[Vec<ExprId>]) -> Vec<ExprId> {
    (0..columns).flat_map(|j| rows.iter().map(move |row| row[j])).collect()
}

/// Whether something names the time whose derivative by it is not known: signals of inputs, and laws without a clock.
pub(super) fn names_time(g: &Graph, events: &Events, specifications: &[Specification]) -> bool {
    let judged = |specification: &&Specification| {
        let event = BundleKind::from_name(specification.name).is_some_and(|kind| {
            BundleKind::EVENTS.contains(&kind) || BundleKind::EVENT_SENSITIVITIES.contains(&kind)
        });
        let is_law = !event && !["outputs", "energy", "markers"].contains(&specification.name);
        if events.clock.is_some() { specification.name == "input_signals" } else { is_law }
    };
    let mut expressions = specifications.iter().filter(judged).flat_map(Specification::expressions);
    expressions.any(|expression| g.depends(expression).contains(Group::Time))
}
