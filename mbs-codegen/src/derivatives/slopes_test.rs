//! Accumulated slopes and separate changes agree to rounding.

use super::constraints::{accumulated_changes, changes};
use super::direction::{Weights, coordinate_directions, joint_directions};
use super::tangent::Linearisation;
use crate::constrained::Rows;
use crate::dynamics::body_inertias;
use crate::elements::{Element, Mechanism, constraint_elements, forces};
use crate::graph::interpret::Interpreter;
use crate::graph::{ExprId, Graph};
use crate::kinematics::ReferencePoint;
use crate::lowering::Parameters;
use crate::symbols::Group;

/// Branched chains, one with a fixed body; forces that depend on position, velocity and direction of their own body, of an ancestor, of a descendant and of
/// a body in another branch; loops of several joints, a sliding contact, a nonholonomic row.
const MODEL: &str = "
mbs: 1
name: slopes_test
gravity: [0.3, -1.2, -9.81]
bodies:
  a: &body {mass: 1.3, com: [0.1, -0.2, 0.3], inertia: [0.5, 0.6, 0.4], points: {p: [0.3, 0.7, -0.2], q: [-0.1, 0.2, 0.5]}, vectors: {n: [0.2, 0.9, -0.4]}}
  b: *body
  c: *body
  d: *body
  e: *body
  f: *body
joints:
  ride: {type: floating, parent: ground, child: a}
  arm: {type: revolute, parent: a.p, child: b, axis: [0.3, -0.5, 0.8]}
  bolt: {type: fixed, parent: b.p, child: c.q}
  ball: {type: spherical, parent: c.p, child: d}
  rail: {type: prismatic, parent: a.q, child: e, axis: [0, 0.6, 0.8]}
  cross: {type: cardan, parent: e.p, child: f, axes: [[0, 0, 1], [1, 0.2, 0]]}
  pin: {type: revolute, parent: d.p, child: f.p, axis: [0.2, 0.3, 1], cut: true}
constraints:
  line: {type: equation, value: \"dot(cross(pos(f.q) - pos(a), dir(b.n)), pos(d.q))\"}
  blade: {type: nonholonomic, value: \"dot(vel(d.p), dir(f.n)) + dot(omega(c), dir(a.n))\"}
forces:
  spring: {type: spring, from: d.p, to: f.q, stiffness: 30, damping: 4, natural_length: 0.3}
  strut: {type: spring, from: a.q, to: d.q, stiffness: 20, damping: 3, natural_length: 0.2}
  drag: {type: force, at: d.q, value: \"-0.3*norm(vel(d.q))*vel(d.q) + cross(omega(b), pos(d.p))\"}
  ahead: {type: force, at: b.q, value: \"2*cross(vel(d.p), dir(f.n)) - rate(arm)*pos(f.p)\"}
  twist: {type: torque, on: d, reaction: a, value: \"cross(omega(d), omega(a)) + dir(d.n)*norm(vel(e.p))\"}
  motor: {type: joint_force, coordinate: arm, value: \"-3*rate(arm) + pos(d.q).x*vel(f.p).z\"}
";

#[test]
fn accumulated_slopes_give_the_separate_changes() {
    let (model, _) = crate::read("slopes_test", MODEL).unwrap_or_else(|e| panic!("{}", e.render("", MODEL)));
    let tree = crate::topology::span(&model);
    let rows = Rows::of(&model, &tree);
    let mut g = Graph::new();
    let parameters = Parameters::lower(&mut g, &model, true);
    let mut mechanism = Mechanism::new(&mut g, &model, &tree, &parameters, ReferencePoint::Origin);
    let pushed = forces(&mut g, &mechanism);
    let constraints = constraint_elements(&mut g, &mechanism, &rows.kept, |row| row);
    let elements: Vec<&Element<'_>> =
        pushed.iter().chain(constraints.iter().map(|constraint| &constraint.element)).collect();
    let inertias = body_inertias(&mut g, &mechanism);
    // All three weights at once, so that no term is multiplied by zero.
    let [position, velocity, acceleration] = [0.7, -1.3, 0.4].map(|weight| g.constant(weight));
    let weights = Weights { position, velocity, acceleration };
    let mixed = [coordinate_directions(&mut g, &tree, weights), joint_directions(&mut g, &tree, weights)];
    let unit = Weights::by_position(&mut g);
    let along = [coordinate_directions(&mut g, &tree, unit), joint_directions(&mut g, &tree, unit)];
    let mut linearisation = Linearisation::new(&mut g, &mut mechanism, &inertias);
    for (rows_along, directions) in along.iter().zip(&mixed) {
        let [(first, is_accumulated), (second, _)] = [true, false]
            .map(|gather| linearisation.tangent_by(&mut g, &elements, rows_along, directions, gather));
        assert!(is_accumulated);
        compare(&g, "tangent", first.entries(), second.entries(), &rows, tree.nq, tree.nv);
        for element in &constraints {
            for choose in 0..3 {
                let of = |row: &crate::elements::RowRates| [row.value, row.rate, row.acceleration][choose];
                let values: Vec<ExprId> = element.rates.iter().map(of).collect();
                let leaves = &element.rate_leaves;
                let first = accumulated_changes(&mut g, &mut linearisation, leaves, &values, directions);
                let second = changes(&mut g, &mut linearisation, leaves, &values, directions);
                let zero = g.zero();
                let dense = |rows: &[super::constraints::SparseRow]| -> Vec<ExprId> {
                    let at = |row: &super::constraints::SparseRow, b: usize| row.get(&b).copied();
                    rows.iter()
                        .flat_map(|row| (0..directions.len()).map(|b| at(row, b).unwrap_or(zero)))
                        .collect()
                };
                let what = format!("{:?}, {choose} times differentiated", element.source);
                compare(&g, &what, &dense(&first), &dense(&second), &rows, tree.nq, tree.nv);
            }
        }
    }
}

/// Both lists at a few states: equal to rounding of the largest entry.
fn compare(g: &Graph, what: &str, a: &[ExprId], b: &[ExprId], rows: &Rows, nq: usize, nv: usize) {
    for seed in 0..3 {
        let mut at = Interpreter::new();
        let wave = |k: usize, scale: f64| ((k as f64 + 1.7 * f64::from(seed) + 0.3) * 12.9898 * scale).sin();
        for k in 0..nq {
            at.set(Group::Z, k as u32, 0.8 * wave(k, 1.0) + 0.1);
            at.set(Group::Zd, k as u32, 1.5 * wave(k, 1.9));
            at.set(Group::Zdd, k as u32, 2.5 * wave(k, 2.7));
        }
        for k in 0..nv {
            at.set(Group::V, k as u32, 2.0 * wave(k, 2.3));
            at.set(Group::Vd, k as u32, 5.0 * wave(k, 3.1));
        }
        for k in 0..rows.kept.len() {
            at.set(Group::Lambda, k as u32, 3.0 * wave(k, 3.7));
        }
        at.set(Group::Time, 0, 0.3);
        let [a, b] = [a, b].map(|roots| at.evaluate(g, roots));
        let size = b.iter().fold(0.0, |m: f64, x: &f64| m.max(x.abs()));
        for (k, (a, b)) in a.iter().zip(&b).enumerate() {
            assert!((a - b).abs() <= 1e-13 * size, "{what}: entry {k} is {a}, one by one {b}, of {size}");
        }
    }
}
