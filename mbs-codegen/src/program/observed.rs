//! The mechanism as objectives and events see it: multipliers of equations and what joints transmit, beside its motion.
//!
//! Multipliers are symbols λ in the numbering of the joint form, kept rows only; those of rows that vanish identically are
//! zero. Where objectives name multipliers of the projections, all σ and then all κ follow the λ. Reactions are the expressions of [`reactions`], over z, v, vd, u and λ, written only if an objective or an event names them.

use crate::constrained::{Rows, reactions};
use crate::dynamics::Symmetric;
use crate::elements::{Element, Mechanism};
use crate::graph::{ExprId, Graph, Vec3};
use crate::lowering::Environment;
use crate::model::{
    BodyId, CoordinateRef, Event, JointId, MarkerRef, Multiplier, Objective, RowRef, VelocityRef,
};
use crate::symbols::Group;
use hashbrown::HashMap;

/// A mechanism that knows its multipliers and reactions.
pub(super) struct Observed<'m, 'a> {
    mechanism: &'m mut Mechanism<'a>,
    /// Places of the kept rows, by name.
    places: HashMap<&'m str, u32>,
    /// Six expressions per joint; none if no objective asks.
    reactions: Vec<ExprId>,
}

impl<'m, 'a> Observed<'m, 'a> {
    /// Of a mechanism with its inertias, forces and rows.
    pub(super) fn new(
        g: &mut Graph,
        mechanism: &'m mut Mechanism<'a>,
        inertias: &[(ExprId, Symmetric)],
        forces: &[Element<'_>],
        rows: &'m Rows,
    ) -> Self {
        let model = mechanism.model;
        let named = model.objectives.iter().any(Objective::names_reactions)
            || model.events.iter().any(Event::names_reactions);
        let reactions = match named {
            true => reactions(g, mechanism, inertias, forces, rows),
            false => Vec::new(),
        };
        let places = rows.kept.iter().enumerate().map(|(i, row)| (row.name.as_str(), i as u32)).collect();
        Observed { mechanism, places, reactions }
    }
}

impl Environment for Observed<'_, '_> {
    fn multiplier(&mut self, g: &mut Graph, which: Multiplier, row: RowRef) -> ExprId {
        let rows = self.places.len() as u32;
        match self.places.get(self.mechanism.model.row_name(row).as_str()) {
            Some(&place) => g.symbol(Group::Lambda, which as u32 * rows + place),
            None => g.zero(),
        }
    }

    fn reaction(&mut self, g: &mut Graph, joint: JointId) -> [Vec3; 2] {
        match self.reactions.chunks_exact(6).nth(joint.index()) {
            Some(&[fx, fy, fz, tx, ty, tz]) => [Vec3([fx, fy, fz]), Vec3([tx, ty, tz])],
            _ => [g.zero_vector(), g.zero_vector()],
        }
    }

    fn time_derivative(&mut self, g: &mut Graph, value: ExprId) -> ExprId {
        self.mechanism.time_derivative(g, value)
    }

    fn coordinate(&mut self, g: &mut Graph, coordinate: CoordinateRef) -> ExprId {
        self.mechanism.coordinate(g, coordinate)
    }

    fn rate(&mut self, g: &mut Graph, coordinate: CoordinateRef) -> ExprId {
        self.mechanism.rate(g, coordinate)
    }

    fn acceleration(&mut self, g: &mut Graph, coordinate: CoordinateRef) -> ExprId {
        self.mechanism.acceleration(g, coordinate)
    }

    fn velocity(&mut self, g: &mut Graph, velocity: VelocityRef) -> ExprId {
        self.mechanism.velocity(g, velocity)
    }

    fn position(&mut self, g: &mut Graph, marker: MarkerRef) -> Vec3 {
        self.mechanism.position(g, marker)
    }

    fn point_velocity(&mut self, g: &mut Graph, marker: MarkerRef) -> Vec3 {
        self.mechanism.point_velocity(g, marker)
    }

    fn point_acceleration(&mut self, g: &mut Graph, marker: MarkerRef) -> Vec3 {
        self.mechanism.point_acceleration(g, marker)
    }

    fn direction(&mut self, g: &mut Graph, body: BodyId, vector: u32) -> Vec3 {
        self.mechanism.direction(g, body, vector)
    }

    fn angular_velocity(&mut self, g: &mut Graph, body: BodyId) -> Vec3 {
        self.mechanism.angular_velocity(g, body)
    }

    fn angular_acceleration(&mut self, g: &mut Graph, body: BodyId) -> Vec3 {
        self.mechanism.angular_acceleration(g, body)
    }

    fn to_world(&mut self, g: &mut Graph, body: BodyId, v: Vec3) -> Vec3 {
        self.mechanism.to_world(g, body, v)
    }

    fn to_body(&mut self, g: &mut Graph, body: BodyId, v: Vec3) -> Vec3 {
        self.mechanism.to_body(g, body, v)
    }
}
