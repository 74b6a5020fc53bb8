//! Constraints over placeholders: values, time derivatives, and the forces of their multipliers.
//!
//! The rows of one source (a cut joint, an entry of the file) are one element. A row's multiplier λ acts like
//! the force −Φ_qᵀ λ on whatever the row reads: at a point −λ Φ_r; on an axis a of a body the torque
//! −λ a × Φ_a; along a coordinate −λ Φ_z. For a nonholonomic row Ψ, linear in velocities, the same with the
//! slopes by velocities. So constraint forces are loads, and everything that loads have (residual, tangent,
//! reactions) they have too.

use super::Mechanism;
use super::forces::{Element, Load};
use super::leaves::{Leaf, Leaves};
use crate::graph::{ExprId, Graph, Vec3, gradient};
use crate::kinematics::euler_parameter_rates;
use crate::lowering::{Environment, Lowering};
use crate::model::{BodyId, ConstraintKind};
use crate::symbols::Group;
use crate::topology::{Row, RowSource};

/// A row over placeholders.
#[derive(Clone, Copy, Debug)]
pub struct RowOver {
    /// Its place among the rows.
    pub row: usize,
    /// What it depends on.
    pub kind: ConstraintKind,
    /// What vanishes.
    pub value: ExprId,
}

/// The rows of one source, and the forces of their multipliers.
#[derive(Debug)]
pub struct ConstraintElement<'a> {
    /// Placeholders and loads.
    pub element: Element<'a>,
    /// The rows.
    pub rows: Vec<RowOver>,
    /// Their values and time derivatives, over the placeholders of `rate_leaves`.
    pub rates: Vec<RowRates>,
    /// The element's placeholders, and those of the rates of what they stand for.
    pub rate_leaves: Leaves<'a>,
    /// Where they come from.
    pub source: RowSource,
}

/// Value and time derivatives of a row.
#[derive(Clone, Copy, Debug)]
pub struct RowRates {
    /// Φ or Ψ
    pub value: ExprId,
    /// Φd, or Ψd
    pub rate: ExprId,
    /// Φdd; zero for a nonholonomic row
    pub acceleration: ExprId,
}

/// The elements of the rows, which stand holonomic first. Multiplier k of a row is symbol
/// `multiplier(k)` of [`Group::Lambda`].
pub fn constraint_elements<'a>(
    g: &mut Graph,
    mechanism: &Mechanism<'a>,
    rows: &[Row],
    multiplier: impl Fn(usize) -> usize,
) -> Vec<ConstraintElement<'a>> {
    let mut elements: Vec<ConstraintElement<'a>> = Vec::new();
    for (k, row) in rows.iter().enumerate() {
        if elements.last().is_none_or(|e| e.source != row.source) {
            let Mechanism { model, tree, parameters, .. } = *mechanism;
            let zero = g.zero();
            elements.push(ConstraintElement {
                element: Element {
                    leaves: Leaves::new(model, tree, parameters),
                    loads: Vec::new(),
                    potential: zero,
                    power: zero,
                },
                rows: Vec::new(),
                rates: Vec::new(),
                rate_leaves: Leaves::new(model, tree, parameters),
                source: row.source,
            });
        }
        let Some(last) = elements.last_mut() else { continue };
        let value = Lowering::new(g, mechanism.parameters, &mut last.element.leaves).scalar(&row.value);
        last.rows.push(RowOver { row: k, kind: row.kind, value });
    }
    for element in &mut elements {
        element.write_loads(g, mechanism, &multiplier);
        element.write_rates(g);
    }
    elements
}

impl ConstraintElement<'_> {
    /// −Σ λ (slope by leaf), as the load that belongs to the leaf.
    fn write_loads(
        &mut self,
        g: &mut Graph,
        mechanism: &Mechanism<'_>,
        multiplier: &impl Fn(usize) -> usize,
    ) {
        let minus_one = g.constant(-1.0);
        let seeds: Vec<(ExprId, ExprId)> = self
            .rows
            .iter()
            .map(|row| {
                let lambda = g.symbol(Group::Lambda, multiplier(row.row) as u32);
                (row.value, g.mul(minus_one, lambda))
            })
            .collect();
        // Rows of one source are of one kind.
        let nonholonomic = self.rows.iter().any(|row| row.kind == ConstraintKind::Nonholonomic);
        for (leaf, symbols) in self.element.leaves.seen().to_vec() {
            if leaf.is_velocity() != nonholonomic {
                continue;
            }
            let slopes = gradient(g, &seeds, &symbols);
            if slopes.iter().all(|&slope| g.is(slope, 0.0)) {
                continue;
            }
            let vector = |x: &[ExprId]| Vec3([x[0], x[1], x[2]]);
            match leaf {
                Leaf::Position(marker) | Leaf::PointVelocity(marker) => {
                    self.push(Load::Force(marker, vector(&slopes)), marker.body);
                }
                Leaf::AngularVelocity(body) => self.push(Load::Torque(body, vector(&slopes)), body),
                Leaf::Axis(body, _) => {
                    let torque = g.cross3(vector(&symbols), vector(&slopes));
                    self.push(Load::Torque(body, torque), body);
                }
                Leaf::Coordinate(z) | Leaf::Rate(z) => self.along_coordinate(g, mechanism, z, slopes[0]),
                Leaf::JointVelocity(v) => self.element.loads.push(Load::Generalized(v, slopes[0])),
                // Rows read no accelerations.
                Leaf::PointAcceleration(_)
                | Leaf::AngularAcceleration(_)
                | Leaf::Acceleration(_)
                | Leaf::JointAcceleration(_) => {}
            }
        }
    }

    /// Nothing acts on ground.
    fn push(&mut self, load: Load, body: BodyId) {
        if body != BodyId::GROUND {
            self.element.loads.push(load);
        }
    }

    /// A force along a coordinate: along its own velocity, or for an Euler parameter Nᵀ(p/|p|) of it.
    fn along_coordinate(&mut self, g: &mut Graph, mechanism: &Mechanism<'_>, z: usize, force: ExprId) {
        let tree = mechanism.tree;
        match tree.link_of_z(z).map(|link| (link, link.euler_parameters())) {
            Some((_, Some((first, v)))) if z >= first => {
                let p = std::array::from_fn(|k| self.element.leaves.ask(g, Leaf::Coordinate(first + k))[0]);
                for k in 0..3 {
                    let mut unit = g.zero_vector();
                    unit.0[k] = g.one();
                    let slope = euler_parameter_rates(g, p, unit)[z - first];
                    let share = g.mul(slope, force);
                    self.element.loads.push(Load::Generalized(v + k, share));
                }
            }
            Some((link, _)) => self.element.loads.push(Load::Generalized(link.v + z - link.z, force)),
            None => {
                let v = tree.variables_v + z - tree.variables_z;
                self.element.loads.push(Load::Generalized(v, force));
            }
        }
    }

    /// Values and time derivatives of the rows over placeholders. By the chain rule Φd = Φ_q qd + Φ_t, and again for Φdd.
    fn write_rates(&mut self, g: &mut Graph) {
        self.rate_leaves = self.element.leaves.clone();
        let rows: Vec<RowOver> = self.rows.clone();
        self.rates = rows
            .iter()
            .map(|row| {
                let rate = self.rate_leaves.time_derivative(g, row.value);
                let acceleration = match row.kind {
                    ConstraintKind::Holonomic => self.rate_leaves.time_derivative(g, rate),
                    ConstraintKind::Nonholonomic => g.zero(),
                };
                RowRates { value: row.value, rate, acceleration }
            })
            .collect();
    }

    /// Values and time derivatives of the rows, the mechanism in place of the placeholders.
    pub fn rates(&self, g: &mut Graph, mechanism: &mut Mechanism<'_>) -> Vec<RowRates> {
        let replacements = self.rate_leaves.replacements(g, mechanism);
        let rates = self.rates.iter().map(|row| {
            let all = g.substitute(&[row.value, row.rate, row.acceleration], &replacements);
            RowRates { value: all[0], rate: all[1], acceleration: all[2] }
        });
        rates.collect()
    }

    /// The rows that are not linear in velocities, or holonomic rows that read one: what the reader cannot see.
    pub fn nonlinear_rows(&self, g: &mut Graph) -> Vec<usize> {
        let velocities: Vec<ExprId> = self
            .element
            .leaves
            .seen()
            .iter()
            .filter(|(leaf, _)| leaf.is_velocity())
            .flat_map(|(_, symbols)| symbols.clone())
            .collect();
        let one = g.one();
        let mut found = Vec::new();
        for row in self.rows.iter().filter(|row| row.kind == ConstraintKind::Nonholonomic) {
            let slopes = gradient(g, &[(row.value, one)], &velocities);
            let linear = slopes.iter().all(|&slope| {
                let curvature = gradient(g, &[(slope, one)], &velocities);
                curvature.iter().all(|&c| g.is(c, 0.0))
            });
            if !linear {
                found.push(row.row);
            }
        }
        found
    }
}
