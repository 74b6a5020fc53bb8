//! The moving mechanism as expressions ask about it.

use super::Leaf;
use crate::graph::{ExprId, Graph, Mat3, Vec3, gradient};
use crate::kinematics::accelerations::point_acceleration;
use crate::kinematics::positions::side_point;
use crate::kinematics::{
    Accelerations, Positions, ReferencePoint, Velocities, accelerations, euler_parameter_rates,
    euler_parameters_of_rotation, positions, velocities,
};
use crate::lowering::{Environment, Lowering, Parameters, ParametersOnly};
use crate::model::{BodyId, CoordinateRef, JointSide, MarkerRef, Model, VelocityRef};
use crate::symbols::Group;
use crate::topology::Tree;
use hashbrown::HashMap;

/// A model with its tree and the expressions of its motion.
pub struct Mechanism<'a> {
    /// The model.
    pub model: &'a Model,
    /// Its tree.
    pub tree: &'a Tree,
    /// Its parameters.
    pub parameters: &'a Parameters,
    /// Where the links are.
    pub positions: Positions,
    /// How they move.
    pub velocities: Velocities,
    /// How they accelerate for the vd of [`Group::Vd`].
    pub accelerations: Accelerations,
    /// Gravity in world axes.
    pub gravity: Vec3,
}

impl<'a> Mechanism<'a> {
    /// All kinematics of a model. Quantities that no bundle requests are never scheduled, so they cost nothing.
    pub fn new(
        g: &mut Graph,
        model: &'a Model,
        tree: &'a Tree,
        parameters: &'a Parameters,
        reference: ReferencePoint,
    ) -> Self {
        let positions = positions(g, model, tree, parameters, reference);
        let velocities = velocities(g, tree, &positions, reference);
        let vd: Vec<ExprId> = (0..tree.nv as u32).map(|j| g.symbol(Group::Vd, j)).collect();
        let still = g.zero_vector();
        let accelerations = accelerations(g, tree, &positions, &velocities, still, Some(&vd));
        let gravity = Lowering::new(g, parameters, &mut ParametersOnly).vector(&model.gravity);
        Mechanism { model, tree, parameters, positions, velocities, accelerations, gravity }
    }

    /// World velocity of a point: v = v_o + ω × (r − o)
    pub fn velocity_at(&self, g: &mut Graph, link: usize, at: Vec3) -> Vec3 {
        let arm = g.sub3(at, self.positions.links[link].reference);
        g.shift_motion(self.velocities.links[link].motion, arm).linear
    }

    /// Start values of coordinates and of velocities, expressions of parameters.
    pub fn start(&self, g: &mut Graph) -> [Vec<ExprId>; 2] {
        self.start_under(g, self.model)
    }

    /// The same with the start values of `model`, which is this mechanism's under a case.
    pub fn start_under(&self, g: &mut Graph, model: &Model) -> [Vec<ExprId>; 2] {
        let mut lower = |value| Lowering::new(g, self.parameters, &mut ParametersOnly).scalar(value);
        let (mut z, mut v) = (Vec::new(), Vec::new());
        for link in &self.tree.links {
            let start = &model.joints[link.joint.index()].start;
            z.extend(start.values.iter().map(&mut lower));
            v.extend(start.rates.iter().map(&mut lower));
        }
        for variable in &model.variables {
            z.push(lower(&variable.value));
            v.push(lower(&variable.rate));
        }
        for link in &self.tree.links {
            let followed = model.joints[link.joint.index()].follows;
            if let Some(on) = followed.and_then(|body| self.tree.link_of_body[body.index()]) {
                let place = self.place_at(g, on, &z);
                z[link.z_range()].copy_from_slice(&place);
            }
        }
        [z, v]
    }

    /// Origin and Euler parameters of a link at coordinates z.
    fn place_at(&self, g: &mut Graph, link: usize, z: &[ExprId]) -> [ExprId; 7] {
        let at = &self.positions.links[link];
        let roots: Vec<ExprId> = at.origin.0.into_iter().chain(at.rotation.0.concat()).collect();
        let symbols = (0..z.len() as u32).map(|j| g.symbol(Group::Z, j)).collect::<Vec<_>>();
        let replacements: HashMap<ExprId, ExprId> = symbols.into_iter().zip(z.iter().copied()).collect();
        let found = g.substitute(&roots, &replacements);
        let rotation = Mat3(std::array::from_fn(|i| std::array::from_fn(|j| found[3 + 3 * i + j])));
        let [e0, e1, e2, e3] = euler_parameters_of_rotation(g, rotation);
        [found[0], found[1], found[2], e0, e1, e2, e3]
    }

    /// World position of a joint's point on one of its sides.
    pub fn joint_side_point(&self, g: &mut Graph, side: &JointSide) -> Vec3 {
        let local = side_point(g, self.model, self.parameters, side);
        match self.tree.link_of_body[side.body.index()] {
            None => local,
            Some(link) => {
                let link = &self.positions.links[link];
                let arm = g.apply(link.rotation, local);
                g.add3(link.origin, arm)
            }
        }
    }

    /// The expressions that a placeholder stands for.
    pub fn leaf(&mut self, g: &mut Graph, leaf: Leaf) -> Vec<ExprId> {
        match leaf {
            Leaf::Position(marker) => self.position(g, marker).0.to_vec(),
            Leaf::PointVelocity(marker) => self.point_velocity(g, marker).0.to_vec(),
            Leaf::PointAcceleration(marker) => self.point_acceleration(g, marker).0.to_vec(),
            Leaf::AngularVelocity(body) => self.angular_velocity(g, body).0.to_vec(),
            Leaf::AngularAcceleration(body) => self.angular_acceleration(g, body).0.to_vec(),
            Leaf::Axis(body, k) => self.positions.rotation(g, self.tree, body).column(k.into()).0.to_vec(),
            Leaf::Coordinate(z) => vec![self.unit_coordinate(g, z)],
            Leaf::Rate(z) => vec![self.unit_rate(g, z)],
            Leaf::Acceleration(z) => vec![self.unit_acceleration(g, z)],
            Leaf::JointVelocity(v) => vec![g.symbol(Group::V, v as u32)],
            Leaf::JointAcceleration(v) => vec![g.symbol(Group::Vd, v as u32)],
        }
    }

    /// p/|p| of the block of Euler parameters that begins at a place among z.
    pub fn unit_euler_parameters(&self, g: &mut Graph, first: usize) -> [ExprId; 4] {
        let p: [ExprId; 4] = std::array::from_fn(|k| g.symbol(Group::Z, (first + k) as u32));
        let squares = p.map(|e| g.square(e));
        let square = g.sum(&squares);
        let length = g.sqrt(square);
        p.map(|e| g.div(e, length))
    }

    /// The first of a block of Euler parameters and of its angular velocity, if the coordinate belongs to one.
    fn block_of(&self, z: usize) -> Option<(usize, usize)> {
        self.tree.link_of_z(z)?.euler_parameters().filter(|&(first, _)| z >= first)
    }

    fn unit_coordinate(&self, g: &mut Graph, z: usize) -> ExprId {
        match self.block_of(z) {
            Some((first, _)) => self.unit_euler_parameters(g, first)[z - first],
            None => g.symbol(Group::Z, z as u32),
        }
    }

    /// zd, or N(p/|p|) ω
    fn unit_rate(&self, g: &mut Graph, z: usize) -> ExprId {
        match self.block_of(z) {
            Some((first, v)) => {
                let p = self.unit_euler_parameters(g, first);
                let omega = Vec3(std::array::from_fn(|k| g.symbol(Group::V, (v + k) as u32)));
                euler_parameter_rates(g, p, omega)[z - first]
            }
            None => self.rate_of(g, z),
        }
    }

    /// zdd, or N(p/|p|) ωd + N(its rate) ω
    fn unit_acceleration(&self, g: &mut Graph, z: usize) -> ExprId {
        match self.block_of(z) {
            Some((first, v)) => {
                let p = self.unit_euler_parameters(g, first);
                let [omega, alpha] = [Group::V, Group::Vd]
                    .map(|group| Vec3(std::array::from_fn(|k| g.symbol(group, (v + k) as u32))));
                let pd = euler_parameter_rates(g, p, omega);
                let (pushed, turned) =
                    (euler_parameter_rates(g, p, alpha), euler_parameter_rates(g, pd, omega));
                g.add(pushed[z - first], turned[z - first])
            }
            None => self.coordinate_derivative(g, z, Group::Vd),
        }
    }

    /// zd_i for a place among z.
    pub fn rate_of(&self, g: &mut Graph, z: usize) -> ExprId {
        self.coordinate_derivative(g, z, Group::V)
    }

    /// The coordinates' rates for the velocities of a group: N(z) · group.
    fn coordinate_derivative(&self, g: &mut Graph, z: usize, group: Group) -> ExprId {
        let Some(link) = self.tree.link_of_z(z) else {
            return g.symbol(group, (self.tree.variables_v + z - self.tree.variables_z) as u32);
        };
        match link.euler_parameters() {
            Some((first, v)) if z >= first => {
                let p = std::array::from_fn(|k| g.symbol(Group::Z, (first + k) as u32));
                let omega = Vec3(std::array::from_fn(|k| g.symbol(group, (v + k) as u32)));
                euler_parameter_rates(g, p, omega)[z - first]
            }
            _ => g.symbol(group, (link.v + z - link.z) as u32),
        }
    }
}

impl Environment for Mechanism<'_> {
    /// Σ ∂/∂z_i zd_i + ∂/∂t
    fn time_derivative(&mut self, g: &mut Graph, value: ExprId) -> ExprId {
        let mut symbols: Vec<ExprId> = (0..self.tree.nq as u32).map(|i| g.symbol(Group::Z, i)).collect();
        symbols.push(g.symbol(Group::Time, 0));
        let one = g.one();
        let slopes = gradient(g, &[(value, one)], &symbols);
        let mut terms = vec![slopes[self.tree.nq]];
        for (z, &slope) in slopes[..self.tree.nq].iter().enumerate() {
            if !g.is(slope, 0.0) {
                let rate = self.rate_of(g, z);
                terms.push(g.mul(slope, rate));
            }
        }
        g.sum(&terms)
    }

    fn coordinate(&mut self, g: &mut Graph, coordinate: CoordinateRef) -> ExprId {
        match self.tree.z_of(coordinate) {
            Some(z) => g.symbol(Group::Z, z as u32),
            None => g.zero(),
        }
    }

    fn rate(&mut self, g: &mut Graph, coordinate: CoordinateRef) -> ExprId {
        match self.tree.z_of(coordinate) {
            Some(z) => self.rate_of(g, z),
            None => g.zero(),
        }
    }

    /// zdd = N(z) vd + N(zd) v
    fn acceleration(&mut self, g: &mut Graph, coordinate: CoordinateRef) -> ExprId {
        let Some(z) = self.tree.z_of(coordinate) else {
            return g.zero();
        };
        let linear = self.coordinate_derivative(g, z, Group::Vd);
        let euler = self.tree.link_of_z(z).and_then(|link| link.euler_parameters());
        match euler {
            Some((first, v)) if z >= first => {
                let pd = std::array::from_fn(|k| self.rate_of(g, first + k));
                let omega = Vec3(std::array::from_fn(|k| g.symbol(Group::V, (v + k) as u32)));
                let turning = euler_parameter_rates(g, pd, omega)[z - first];
                g.add(linear, turning)
            }
            _ => linear,
        }
    }

    fn velocity(&mut self, g: &mut Graph, velocity: VelocityRef) -> ExprId {
        match self.tree.v_of(velocity) {
            Some(v) => g.symbol(Group::V, v as u32),
            None => g.zero(),
        }
    }

    fn position(&mut self, g: &mut Graph, marker: MarkerRef) -> Vec3 {
        self.positions.point(g, self.model, self.tree, self.parameters, marker)
    }

    fn point_velocity(&mut self, g: &mut Graph, marker: MarkerRef) -> Vec3 {
        match self.tree.link_of_body[marker.body.index()] {
            None => g.zero_vector(),
            Some(link) => {
                let at = self.position(g, marker);
                self.velocity_at(g, link, at)
            }
        }
    }

    fn point_acceleration(&mut self, g: &mut Graph, marker: MarkerRef) -> Vec3 {
        let Some(link) = self.tree.link_of_body[marker.body.index()] else {
            return g.zero_vector();
        };
        let at = self.position(g, marker);
        let velocity = self.velocity_at(g, link, at);
        let arm = g.sub3(at, self.positions.links[link].reference);
        let moving = &self.velocities.links[link];
        let acceleration = self.accelerations.links[link];
        point_acceleration(g, acceleration, moving.motion.angular, arm, velocity, moving.reference_rate)
    }

    fn direction(&mut self, g: &mut Graph, body: BodyId, vector: u32) -> Vec3 {
        match self.model.bodies[body.index()].vectors.get(vector as usize) {
            Some((_, v)) => Lowering::new(g, self.parameters, &mut ParametersOnly).vector(v),
            None => g.zero_vector(),
        }
    }

    fn angular_velocity(&mut self, g: &mut Graph, body: BodyId) -> Vec3 {
        match self.tree.link_of_body[body.index()] {
            Some(link) => self.velocities.links[link].motion.angular,
            None => g.zero_vector(),
        }
    }

    fn angular_acceleration(&mut self, g: &mut Graph, body: BodyId) -> Vec3 {
        match self.tree.link_of_body[body.index()] {
            Some(link) => self.accelerations.links[link].angular,
            None => g.zero_vector(),
        }
    }

    fn to_world(&mut self, g: &mut Graph, body: BodyId, v: Vec3) -> Vec3 {
        let rotation = self.positions.rotation(g, self.tree, body);
        g.apply(rotation, v)
    }

    fn to_body(&mut self, g: &mut Graph, body: BodyId, v: Vec3) -> Vec3 {
        let rotation = self.positions.rotation(g, self.tree, body);
        g.apply_transposed(rotation, v)
    }
}
