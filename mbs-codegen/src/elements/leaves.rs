//! What an element sees of the mechanism: a handful of placeholders.
//!
//! An element (a force, a constraint) is lowered over placeholders for the positions,
//! velocities and axes it asks for. Its explicit derivatives come from the graph in these few symbols; how
//! the placeholders move with the joints comes from closed forms ([`crate::derivatives`]). Substituting the
//! mechanism's own expressions gives the value. Folding cannot reach across a placeholder, so no derivative
//! is lost in a shared expression.

use super::Mechanism;
use crate::graph::{ExprId, Graph, Mat3, Vec3, gradient};
use crate::lowering::{Environment, Lowering, Parameters, ParametersOnly};
use crate::model::{BodyId, CoordinateRef, MarkerRef, Model, VelocityRef};
use crate::symbols::Group;
use crate::topology::Tree;
use hashbrown::HashMap;

/// A quantity of the mechanism that an element may ask for: one scalar or three.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Leaf {
    /// World position of a point.
    Position(MarkerRef),
    /// World velocity of a point.
    PointVelocity(MarkerRef),
    /// World acceleration of a point.
    PointAcceleration(MarkerRef),
    /// World angular velocity of a body.
    AngularVelocity(BodyId),
    /// World angular acceleration of a body.
    AngularAcceleration(BodyId),
    /// World direction of axis 0, 1 or 2 of a body's frame.
    Axis(BodyId, u8),
    /// A coordinate, by its place among z; Euler parameters at unit length, so that no element depends on |p|.
    Coordinate(usize),
    /// Its rate.
    Rate(usize),
    /// The rate of its rate.
    Acceleration(usize),
    /// A joint velocity, by its place among v.
    JointVelocity(usize),
    /// A joint acceleration, by its place among vd.
    JointAcceleration(usize),
}

impl Leaf {
    /// Whether it is a velocity.
    pub fn is_velocity(self) -> bool {
        matches!(
            self,
            Leaf::PointVelocity(_) | Leaf::AngularVelocity(_) | Leaf::Rate(_) | Leaf::JointVelocity(_)
        )
    }

    /// How many scalars it has.
    fn count(self) -> u32 {
        match self {
            Leaf::Coordinate(_)
            | Leaf::Rate(_)
            | Leaf::Acceleration(_)
            | Leaf::JointVelocity(_)
            | Leaf::JointAcceleration(_) => 1,
            Leaf::Position(_)
            | Leaf::PointVelocity(_)
            | Leaf::PointAcceleration(_)
            | Leaf::AngularVelocity(_)
            | Leaf::AngularAcceleration(_)
            | Leaf::Axis(..) => 3,
        }
    }
}

/// The placeholders of one element.
#[derive(Clone, Debug)]
pub struct Leaves<'a> {
    model: &'a Model,
    tree: &'a Tree,
    parameters: &'a Parameters,
    /// Length and rate of the spring whose law is being lowered.
    pub(super) spring: Option<(ExprId, ExprId)>,
    seen: Vec<(Leaf, Vec<ExprId>)>,
    next: u32,
}

impl<'a> Leaves<'a> {
    /// Nothing asked for yet.
    pub fn new(model: &'a Model, tree: &'a Tree, parameters: &'a Parameters) -> Self {
        Leaves { model, tree, parameters, spring: None, seen: Vec::new(), next: 0 }
    }

    /// What was asked for, with its placeholders.
    pub fn seen(&self) -> &[(Leaf, Vec<ExprId>)] {
        &self.seen
    }

    /// The replacements that put a mechanism's expressions in place of the placeholders.
    pub fn replacements(&self, g: &mut Graph, mechanism: &mut Mechanism<'_>) -> HashMap<ExprId, ExprId> {
        let mut replacements = HashMap::new();
        for (leaf, placeholders) in &self.seen {
            replacements.extend(placeholders.iter().copied().zip(mechanism.leaf(g, *leaf)));
        }
        replacements
    }

    /// The placeholders of a leaf, asked for now if not before.
    pub(super) fn ask(&mut self, g: &mut Graph, leaf: Leaf) -> Vec<ExprId> {
        self.placeholders(g, leaf, leaf.count()).to_vec()
    }

    /// The rate of a leaf's scalars, over placeholders; none for accelerations.
    pub(super) fn rate_of(&mut self, g: &mut Graph, leaf: Leaf) -> Option<Vec<ExprId>> {
        Some(match leaf {
            Leaf::Position(marker) => self.ask(g, Leaf::PointVelocity(marker)),
            Leaf::PointVelocity(marker) => self.ask(g, Leaf::PointAcceleration(marker)),
            Leaf::AngularVelocity(body) => self.ask(g, Leaf::AngularAcceleration(body)),
            // ω × a
            Leaf::Axis(body, _) => {
                let axis = self.vector(g, leaf);
                let omega = self.vector(g, Leaf::AngularVelocity(body));
                g.cross3(omega, axis).0.to_vec()
            }
            Leaf::Coordinate(z) => self.ask(g, Leaf::Rate(z)),
            Leaf::Rate(z) => self.ask(g, Leaf::Acceleration(z)),
            Leaf::JointVelocity(v) => self.ask(g, Leaf::JointAcceleration(v)),
            Leaf::PointAcceleration(_)
            | Leaf::AngularAcceleration(_)
            | Leaf::Acceleration(_)
            | Leaf::JointAcceleration(_) => return None,
        })
    }

    /// The model they belong to.
    pub(super) fn model(&self) -> &'a Model {
        self.model
    }

    /// The rate of an expression of positions and time; none if it follows inputs or velocities.
    pub(super) fn known_rate(&mut self, g: &mut Graph, value: ExprId) -> Option<ExprId> {
        let one = g.one();
        let velocities: Vec<ExprId> = self
            .seen
            .iter()
            .filter(|(leaf, _)| leaf.is_velocity())
            .flat_map(|(_, symbols)| symbols.iter().copied())
            .collect();
        let moves = gradient(g, &[(value, one)], &velocities).into_iter().any(|slope| !g.is(slope, 0.0));
        (!moves && !g.depends(value).contains(Group::U)).then(|| self.time_derivative(g, value))
    }

    fn placeholders(&mut self, g: &mut Graph, leaf: Leaf, count: u32) -> &[ExprId] {
        let place = self.seen.iter().position(|(l, _)| *l == leaf).unwrap_or_else(|| {
            let symbols = (self.next..self.next + count).map(|i| g.symbol(Group::Free, i)).collect();
            self.next += count;
            self.seen.push((leaf, symbols));
            self.seen.len() - 1
        });
        &self.seen[place].1
    }

    fn scalar(&mut self, g: &mut Graph, leaf: Leaf) -> ExprId {
        self.placeholders(g, leaf, 1)[0]
    }

    fn vector(&mut self, g: &mut Graph, leaf: Leaf) -> Vec3 {
        let symbols = self.placeholders(g, leaf, 3);
        Vec3([symbols[0], symbols[1], symbols[2]])
    }

    /// The rotation of a body; ground does not turn.
    fn rotation(&mut self, g: &mut Graph, body: BodyId) -> Mat3 {
        if body == BodyId::GROUND {
            return g.identity();
        }
        Mat3::from_columns(std::array::from_fn(|k| self.vector(g, Leaf::Axis(body, k as u8))))
    }
}

impl Environment for Leaves<'_> {
    /// By the chain rule Φ_q qd + Φ_t.
    fn time_derivative(&mut self, g: &mut Graph, value: ExprId) -> ExprId {
        let (one, time) = (g.one(), g.symbol(Group::Time, 0));
        let mut terms = gradient(g, &[(value, one)], &[time]);
        for (leaf, symbols) in self.seen.clone() {
            let slopes = gradient(g, &[(value, one)], &symbols);
            if slopes.iter().all(|&slope| g.is(slope, 0.0)) {
                continue;
            }
            let rates = self.rate_of(g, leaf).unwrap_or_default();
            terms.extend(slopes.iter().zip(rates).map(|(&slope, rate)| g.mul(slope, rate)));
        }
        g.sum(&terms)
    }

    fn coordinate(&mut self, g: &mut Graph, coordinate: CoordinateRef) -> ExprId {
        match self.tree.z_of(coordinate) {
            Some(z) => self.scalar(g, Leaf::Coordinate(z)),
            None => g.zero(),
        }
    }

    fn rate(&mut self, g: &mut Graph, coordinate: CoordinateRef) -> ExprId {
        match self.tree.z_of(coordinate) {
            Some(z) => self.scalar(g, Leaf::Rate(z)),
            None => g.zero(),
        }
    }

    fn velocity(&mut self, g: &mut Graph, velocity: VelocityRef) -> ExprId {
        match self.tree.v_of(velocity) {
            Some(v) => self.scalar(g, Leaf::JointVelocity(v)),
            None => g.zero(),
        }
    }

    fn length(&mut self, g: &mut Graph) -> ExprId {
        self.spring.map_or_else(|| g.zero(), |(length, _)| length)
    }

    fn length_rate(&mut self, g: &mut Graph) -> ExprId {
        self.spring.map_or_else(|| g.zero(), |(_, rate)| rate)
    }

    fn position(&mut self, g: &mut Graph, marker: MarkerRef) -> Vec3 {
        self.vector(g, Leaf::Position(marker))
    }

    fn point_velocity(&mut self, g: &mut Graph, marker: MarkerRef) -> Vec3 {
        self.vector(g, Leaf::PointVelocity(marker))
    }

    fn direction(&mut self, g: &mut Graph, body: BodyId, vector: u32) -> Vec3 {
        match self.model.bodies[body.index()].vectors.get(vector as usize) {
            Some((_, v)) => Lowering::new(g, self.parameters, &mut ParametersOnly).vector(v),
            None => g.zero_vector(),
        }
    }

    fn angular_velocity(&mut self, g: &mut Graph, body: BodyId) -> Vec3 {
        self.vector(g, Leaf::AngularVelocity(body))
    }

    fn to_world(&mut self, g: &mut Graph, body: BodyId, v: Vec3) -> Vec3 {
        let rotation = self.rotation(g, body);
        g.apply(rotation, v)
    }

    fn to_body(&mut self, g: &mut Graph, body: BodyId, v: Vec3) -> Vec3 {
        let rotation = self.rotation(g, body);
        g.apply_transposed(rotation, v)
    }
}
