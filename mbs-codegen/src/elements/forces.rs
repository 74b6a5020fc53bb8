//! Forces of the model: what each puts on links and coordinates, what it stores, what power it brings.
//!
//! A force is first written over placeholders ([`Element`]), then put into the mechanism ([`loads`]).

use super::Mechanism;
use super::leaves::Leaves;
use crate::graph::{Comparison, ExprId, Graph, Vec3};
use crate::kinematics::Spatial;
use crate::lowering::{Environment, Lowering, Parameters};
use crate::model::evaluate::Values;
use crate::model::{BodyId, CoordinateRef, Force, ForceKind, MarkerRef, Model, Scalar, SpringLaw};
use crate::topology::Tree;

/// One action of a force.
#[derive(Clone, Copy, Debug)]
pub enum Load {
    /// A force at a point, world axes.
    Force(MarkerRef, Vec3),
    /// A torque on a body, world axes.
    Torque(BodyId, Vec3),
    /// A generalised force along a joint velocity, by its place among v.
    Generalized(usize, ExprId),
}

impl Load {
    /// Its one or three expressions.
    pub fn values(&self) -> Vec<ExprId> {
        match self {
            Load::Force(_, value) | Load::Torque(_, value) => value.0.to_vec(),
            Load::Generalized(_, value) => vec![*value],
        }
    }

    /// The same action with other expressions.
    pub fn with(&self, values: &[ExprId]) -> Load {
        match *self {
            Load::Force(at, _) => Load::Force(at, Vec3([values[0], values[1], values[2]])),
            Load::Torque(on, _) => Load::Torque(on, Vec3([values[0], values[1], values[2]])),
            Load::Generalized(v, _) => Load::Generalized(v, values[0]),
        }
    }
}

/// A force, or the forces of constraints, over placeholders.
#[derive(Debug)]
pub struct Element<'a> {
    /// What it asks of the mechanism.
    pub leaves: Leaves<'a>,
    /// What it does.
    pub loads: Vec<Load>,
    pub(super) potential: ExprId,
    pub(super) power: ExprId,
}

/// The forces of the model.
pub fn forces<'a>(g: &mut Graph, mechanism: &Mechanism<'a>) -> Vec<Element<'a>> {
    let Mechanism { model, tree, parameters, .. } = *mechanism;
    let element =
        |force: &Force| Element::new(g, model, tree, parameters, force).acting(g, parameters, force);
    model.forces.iter().map(element).collect()
}

/// All forces but gravity.
#[derive(Clone, Debug)]
pub struct Loads {
    /// Force and moment about o_i on every link.
    pub links: Vec<Spatial>,
    /// Generalised force along every joint velocity.
    pub generalized: Vec<ExprId>,
    /// Potential energy stored in linear springs.
    pub potential: ExprId,
    /// Power of everything that is not the gradient of `potential`: dampers, laws, applied forces.
    pub power: ExprId,
}

/// Sums what elements do.
pub fn loads(g: &mut Graph, mechanism: &mut Mechanism<'_>, elements: &[&Element<'_>]) -> Loads {
    let (links, nv) = (mechanism.tree.links.len(), mechanism.tree.nv);
    let zero = g.zero();
    let none = g.zero_spatial();
    let mut loads =
        Loads { links: vec![none; links], generalized: vec![zero; nv], potential: zero, power: zero };
    for element in elements {
        let replacements = element.leaves.replacements(g, mechanism);
        for load in &element.loads {
            let load = load.with(&g.substitute(&load.values(), &replacements));
            apply(g, mechanism, &mut loads, load);
        }
        let sums = g.substitute(&[element.potential, element.power], &replacements);
        loads.potential = g.add(loads.potential, sums[0]);
        loads.power = g.add(loads.power, sums[1]);
    }
    loads
}

fn apply(g: &mut Graph, mechanism: &mut Mechanism<'_>, loads: &mut Loads, load: Load) {
    match load {
        // F at r adds (F, (r − o) × F) to its link
        Load::Force(at, force) => {
            if let Some(link) = mechanism.tree.link_of_body[at.body.index()] {
                let r = mechanism.position(g, at);
                let arm = g.sub3(r, mechanism.positions.links[link].reference);
                let moment = g.cross3(arm, force);
                loads.links[link] = g.add6(loads.links[link], Spatial { linear: force, angular: moment });
            }
        }
        Load::Torque(on, torque) => {
            if let Some(link) = mechanism.tree.link_of_body[on.index()] {
                loads.links[link].angular = g.add3(loads.links[link].angular, torque);
            }
        }
        Load::Generalized(v, force) => loads.generalized[v] = g.add(loads.generalized[v], force),
    }
}

impl<'a> Element<'a> {
    /// The element in the states in which the force acts.
    fn acting(mut self, g: &mut Graph, parameters: &Parameters, force: &Force) -> Self {
        let Some(factor) = force.activity.factor() else { return self };
        let factor = self.lower(g, parameters, &factor);
        for load in &mut self.loads {
            let values: Vec<ExprId> = load.values().into_iter().map(|value| g.mul(factor, value)).collect();
            *load = load.with(&values);
        }
        (self.potential, self.power) = (g.mul(factor, self.potential), g.mul(factor, self.power));
        self
    }

    /// Lowers one force of the model.
    pub fn new(
        g: &mut Graph,
        model: &'a Model,
        tree: &'a Tree,
        parameters: &'a Parameters,
        force: &Force,
    ) -> Element<'a> {
        let zero = g.zero();
        let mut element = Element {
            leaves: Leaves::new(model, tree, parameters),
            loads: Vec::new(),
            potential: zero,
            power: zero,
        };
        match &force.kind {
            ForceKind::Spring { from, to, law } => element.spring(g, parameters, [*from, *to], law),
            ForceKind::TorsionalSpring { coordinate, law } => {
                element.torsional_spring(g, parameters, tree, *coordinate, law);
            }
            ForceKind::Force { at, reaction, value } => {
                let value = Lowering::new(g, parameters, &mut element.leaves).vector(value);
                element.loads.push(Load::Force(*at, value));
                let mut relative = element.leaves.point_velocity(g, *at);
                if let Some(reaction) = reaction {
                    element.loads.push(Load::Force(*reaction, g.neg3(value)));
                    let there = element.leaves.point_velocity(g, *reaction);
                    relative = g.sub3(relative, there);
                }
                element.power = g.dot3(value, relative);
            }
            ForceKind::Torque { on, reaction, value } => {
                let value = Lowering::new(g, parameters, &mut element.leaves).vector(value);
                element.loads.push(Load::Torque(*on, value));
                let mut relative = element.leaves.angular_velocity(g, *on);
                if let Some(reaction) = reaction {
                    element.loads.push(Load::Torque(*reaction, g.neg3(value)));
                    let there = element.leaves.angular_velocity(g, *reaction);
                    relative = g.sub3(relative, there);
                }
                element.power = g.dot3(value, relative);
            }
            ForceKind::JointForce { coordinate, value } => {
                let value = element.lower(g, parameters, value);
                element.push(tree, *coordinate, value);
                let rate = element.leaves.rate(g, *coordinate);
                element.power = g.mul(value, rate);
            }
        }
        element
    }

    fn lower(&mut self, g: &mut Graph, parameters: &Parameters, value: &Scalar) -> ExprId {
        Lowering::new(g, parameters, &mut self.leaves).scalar(value)
    }

    /// A generalised force along one coordinate. Euler parameters take none: the reader refuses it.
    fn push(&mut self, tree: &Tree, at: CoordinateRef, force: ExprId) {
        if let Some(v) = tree.v_of_coordinate(at) {
            self.loads.push(Load::Generalized(v, force));
        }
    }

    /// The force of a law at a length and rate; its stored energy and its other power are noted.
    fn law_force(
        &mut self,
        g: &mut Graph,
        parameters: &Parameters,
        law: &SpringLaw,
        length: ExprId,
        rate: ExprId,
    ) -> ExprId {
        match law {
            SpringLaw::Linear { stiffness, damping, natural } => {
                let [k, c, l0] = [stiffness, damping, natural].map(|s| self.lower(g, parameters, s));
                // f = k (l − l0) + c ld
                let stretch = g.sub(length, l0);
                let elastic = g.mul(k, stretch);
                let viscous = g.mul(c, rate);
                let half = g.constant(0.5);
                let half_stretch = g.mul(half, stretch);
                let stored = g.mul(half_stretch, elastic);
                self.book(g, [k, l0], [stored, stretch, elastic], rate);
                self.lose(g, viscous, rate);
                g.add(elastic, viscous)
            }
            SpringLaw::Expression(expression) => {
                self.leaves.spring = Some((length, rate));
                let force = self.lower(g, parameters, expression);
                self.leaves.spring = None;
                self.lose(g, force, rate);
                force
            }
        }
    }

    /// A force takes this power from the mechanism and stores none of it.
    fn lose(&mut self, g: &mut Graph, force: ExprId, rate: ExprId) {
        let lost = g.mul(force, rate);
        self.power = g.sub(self.power, lost);
    }

    /// Books the work of k (l − l0): stored as V = ½ k (l − l0)², whose explicit change
    /// V_k kd + V_l0 l0d = ½ kd (l − l0)² − k (l − l0) l0d comes from outside, from whatever moves k and l0. Where
    /// their rates are not known, since they follow inputs or velocities, nothing is stored.
    fn book(
        &mut self,
        g: &mut Graph,
        [k, l0]: [ExprId; 2],
        [stored, stretch, elastic]: [ExprId; 3],
        rate: ExprId,
    ) {
        let rates = [k, l0].map(|moved| self.leaves.known_rate(g, moved));
        let [Some(kd), Some(l0d)] = rates else {
            self.lose(g, elastic, rate);
            return;
        };
        self.potential = g.add(self.potential, stored);
        let half = g.constant(0.5);
        let square = g.square(stretch);
        let half_square = g.mul(half, square);
        let (by_stiffness, by_natural) = (g.mul(kd, half_square), g.mul(elastic, l0d));
        let explicit = g.sub(by_stiffness, by_natural);
        self.power = g.add(self.power, explicit);
    }

    /// With n the unit vector from the first point to the second, l their distance and ld = n · (v₂ − v₁),
    /// the tension f pulls the first point along n and the second against it.
    fn spring(
        &mut self,
        g: &mut Graph,
        parameters: &Parameters,
        [from, to]: [MarkerRef; 2],
        law: &SpringLaw,
    ) {
        let [r1, r2] = [from, to].map(|m| self.leaves.position(g, m));
        let [v1, v2] = [from, to].map(|m| self.leaves.point_velocity(g, m));
        let (d, dv) = (g.sub3(r2, r1), g.sub3(v2, v1));
        let pull = match law {
            SpringLaw::Linear { stiffness, damping, natural } if self.is_zero_by_default(natural) => {
                let constants = [stiffness, damping, natural].map(|s| self.lower(g, parameters, s));
                self.zero_length_spring(g, constants, d, dv)
            }
            _ => {
                let length = g.norm3(d);
                let one = g.one();
                let inverse = g.div(one, length);
                let n = g.scale3(inverse, d);
                let rate = g.dot3(n, dv);
                let tension = self.law_force(g, parameters, law, length, rate);
                g.scale3(tension, n)
            }
        };
        self.loads.push(Load::Force(from, pull));
        self.loads.push(Load::Force(to, g.neg3(pull)));
    }

    fn is_zero_by_default(&self, natural: &Scalar) -> bool {
        Values::defaults(self.leaves.model()).scalar(natural) == Ok(0.0)
    }

    /// A spring whose natural length is zero, or may be: its pull k d − k l0 n + c (n · dv) n is smooth at d = 0 where l0 = 0
    /// and c = 0. There a damper pulls with c dv: that is the limit along the motion, on which n is ±dv/|dv|. At d = 0 with
    /// l0 ≠ 0 the direction means nothing, and the force is not a number.
    fn zero_length_spring(&mut self, g: &mut Graph, [k, c, l0]: [ExprId; 3], d: Vec3, dv: Vec3) -> Vec3 {
        let (zero, one) = (g.zero(), g.one());
        let square = g.dot3(d, d);
        let magnitude = g.abs(l0);
        let both = g.add(square, magnitude);
        // l and 1/l; at l = l0 = 0, where neither has a slope, 0 and 1
        let guarded = g.select(Comparison::Equal, both, zero, one, square);
        let root = g.sqrt(guarded);
        let length = g.select(Comparison::Equal, both, zero, zero, root);
        let inverse = g.div(one, root);
        let n = g.scale3(inverse, d);
        let rate = g.dot3(n, dv);
        let half = g.constant(0.5);
        let half_k = g.mul(half, k);
        if g.is(l0, 0.0) {
            // k l ld = k d · dv, stored ½ k d²
            let stored = g.mul(half_k, square);
            match self.leaves.known_rate(g, k) {
                Some(kd) => {
                    let half_square = g.mul(half, square);
                    let explicit = g.mul(kd, half_square);
                    self.potential = g.add(self.potential, stored);
                    self.power = g.add(self.power, explicit);
                }
                None => {
                    let rate = g.dot3(d, dv);
                    self.lose(g, k, rate);
                }
            }
        } else {
            let stretch = g.sub(length, l0);
            let (elastic, half_stretch) = (g.mul(k, stretch), g.mul(half_k, stretch));
            let stored = g.mul(half_stretch, stretch);
            self.book(g, [k, l0], [stored, stretch, elastic], rate);
        }
        let (elastic, missing) = (g.scale3(k, d), g.mul(k, l0));
        let missing = g.scale3(missing, n);
        let along = g.scale3(rate, n);
        let damped =
            Vec3(std::array::from_fn(|i| g.select(Comparison::Equal, square, zero, dv.0[i], along.0[i])));
        let viscous = g.scale3(c, damped);
        let lost = g.dot3(viscous, dv);
        self.power = g.sub(self.power, lost);
        let pull = g.sub3(elastic, missing);
        g.add3(pull, viscous)
    }

    /// The law's force acts against the growth of the coordinate.
    fn torsional_spring(
        &mut self,
        g: &mut Graph,
        parameters: &Parameters,
        tree: &Tree,
        coordinate: CoordinateRef,
        law: &SpringLaw,
    ) {
        let (angle, rate) = (self.leaves.coordinate(g, coordinate), self.leaves.rate(g, coordinate));
        let force = self.law_force(g, parameters, law, angle, rate);
        let opposite = g.neg(force);
        self.push(tree, coordinate, opposite);
    }
}
