//! Closure rows: they vanish on the joint's own motion, and each forbids one motion the joint does not allow.

use mbs_codegen::elements::Mechanism;
use mbs_codegen::graph::{ExprId, Graph, Interpreter};
use mbs_codegen::kinematics::ReferencePoint;
use mbs_codegen::lowering::{Lowering, Parameters};
use mbs_codegen::model::{ConstraintKind, JointKind, Model};
use mbs_codegen::symbols::Group;
use mbs_codegen::topology::{self, Row, Tree};

/// Numbers that look random and are always the same.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    fn vector(&mut self) -> String {
        format!("[{}, {}, {}]", self.next(), self.next(), self.next())
    }
}

fn read(text: &str) -> Model {
    let (model, diagnostics) = mbs_codegen::yaml::read("closure.yaml", text);
    model.unwrap_or_else(|| panic!("{}", diagnostics.render("closure.yaml", text)))
}

/// The rows of a model at given coordinates.
fn evaluate(model: &Model, tree: &Tree, rows: &[Row], z: &[f64]) -> Vec<f64> {
    let mut g = Graph::new();
    let parameters = Parameters::lower(&mut g, model, true);
    let mut mechanism = Mechanism::new(&mut g, model, tree, &parameters, ReferencePoint::Origin);
    let wanted: Vec<ExprId> = rows
        .iter()
        .map(|row| Lowering::new(&mut g, &parameters, &mut mechanism).scalar(&row.value))
        .collect();
    let mut interpreter = Interpreter::new();
    interpreter.set_all(Group::Z, z);
    interpreter.evaluate(&g, &wanted)
}

/// Arbitrary coordinates; Euler parameters away from zero, of any length.
fn coordinates(random: &mut Random, names: &[String]) -> Vec<f64> {
    names.iter().map(|name| random.next() + if name.ends_with(".e0") { 2.0 } else { 0.0 }).collect()
}

/// `a` moves freely, `way` is the joint in question in the tree, `free` lets `b` leave the body it carries, and `cut`
/// is the same joint between `a` and `b`.
fn twice(kind: JointKind, references: bool, random: &mut Random) -> String {
    let mut side = |body: &str| {
        let directions = format!("axis: {}, reference: {}", random.vector(), random.vector());
        let point = format!("{{body: {body}, point: {}", random.vector());
        if references { format!("{point}, {directions}}}") } else { format!("{point}}}") }
    };
    let (parent, child) = (side("a"), side("CHILD"));
    let own = match kind {
        _ if references => String::new(),
        JointKind::Fixed | JointKind::Spherical | JointKind::Floating => String::new(),
        JointKind::Cardan => format!(", axes: [{}, {}]", random.vector(), random.vector()),
        JointKind::Planar => format!(", axis: {}, reference: {}", random.vector(), random.vector()),
        _ => format!(", axis: {}", random.vector()),
    };
    let joint = |child_body: &str| {
        let child = child.replace("CHILD", child_body);
        format!("type: {}, parent: {parent}, child: {child}{own}", kind.keyword())
    };
    format!(
        "mbs: 1
bodies: {{a: {{}}, m: {{}}, b: {{}}}}
joints:
  ride: {{type: floating, parent: ground, child: a}}
  way: {{{}}}
  free: {{type: floating, parent: m, child: b}}
  cut: {{{}, cut: true}}
",
        joint("m"),
        joint("b")
    )
}

#[test]
fn closure_rows_forbid_what_the_joint_forbids_and_nothing_else() {
    let mut random = Random(11);
    for kind in JointKind::ALL {
        for references in [false, true] {
            for _ in 0..4 {
                let text = twice(kind, references, &mut random);
                let model = read(&text);
                let tree = topology::span(&model);
                assert_eq!(tree.cuts.len(), 1);
                let rows = topology::rows(&model, &tree);
                assert_eq!(rows.len(), kind.closure_equations(), "{kind:?}");
                let names: Vec<String> = kind.closure_rows().iter().map(|end| format!("cut.{end}")).collect();
                assert_eq!(
                    rows.iter().map(|row| &row.name).collect::<Vec<_>>(),
                    names.iter().collect::<Vec<_>>()
                );
                let names = tree.coordinate_names(&model);
                let first = names.iter().position(|n| n == "free.x").expect("the free joint");
                let mut z = coordinates(&mut random, &names);
                z[first..first + 7].copy_from_slice(&[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]);
                // Sums of a dozen terms of size ten at most: a few hundred units in the last place.
                let tolerance = 1e-13;
                for (row, value) in rows.iter().zip(evaluate(&model, &tree, &rows, &z)) {
                    assert!(value.abs() < tolerance, "{kind:?} {references}: {} = {value}\n{text}", row.name);
                }
                // ∂rows/∂(x, y, z, e1, e2, e3) of the free joint, by central differences.
                let h = 1e-5;
                let columns: Vec<Vec<f64>> = [0, 1, 2, 4, 5, 6]
                    .into_iter()
                    .map(|k| {
                        let at = |step: f64| {
                            let mut z = z.clone();
                            z[first + k] += step;
                            evaluate(&model, &tree, &rows, &z)
                        };
                        at(h).iter().zip(at(-h)).map(|(p, m)| (p - m) / (2.0 * h)).collect()
                    })
                    .collect();
                assert_eq!(rank(columns), rows.len(), "{kind:?} {references}\n{text}");
            }
        }
    }
}

/// The rank of a matrix given by columns, by elimination with full pivoting.
fn rank(mut columns: Vec<Vec<f64>>) -> usize {
    let mut rank = 0;
    while rank < columns.len() && !columns[rank].is_empty() {
        let (mut best, mut at) = (0.0, (0, 0));
        for (j, column) in columns.iter().enumerate().skip(rank) {
            for (i, x) in column.iter().enumerate() {
                if x.abs() > best {
                    (best, at) = (x.abs(), (i, j));
                }
            }
        }
        // Entries are of size one; differences have errors of 1e-10.
        if best < 1e-4 {
            break;
        }
        columns.swap(rank, at.1);
        let pivot = columns[rank].clone();
        for column in columns.iter_mut().skip(rank + 1) {
            let factor = column[at.0] / pivot[at.0];
            column.iter_mut().zip(&pivot).for_each(|(x, p)| *x -= factor * p);
        }
        rank += 1;
    }
    rank
}

#[test]
fn holonomic_rows_stand_first_and_names_are_unique() {
    let model = read(
        "mbs: 1
bodies: {crank: {points: {p: [1, 0, 0]}}, rod: {points: {p: [2, 0, 0]}}, slider: {}}
joints:
  a: {type: revolute, parent: ground, child: crank, axis: [0, 0, 1]}
  b: {type: revolute, parent: crank.p, child: rod, axis: [0, 0, 1]}
  c: {type: revolute, parent: rod.p, child: slider, axis: [0, 0, 1]}
  d: {type: prismatic, parent: ground, child: slider, axis: [1, 0, 0]}
constraints:
  roll: {type: nonholonomic, value: rate(d) - 0.1*rate(a)}
  apart: {type: coincident, from: rod.p, to: slider.origin}
",
    );
    let tree = topology::span(&model);
    let names: Vec<String> = topology::rows(&model, &tree).into_iter().map(|row| row.name).collect();
    // `d` and `a` are used, so of the two joints of the slider `c` is cut.
    let expected = ["c.x", "c.y", "c.z", "c.tilt1", "c.tilt2", "apart.x", "apart.y", "apart.z", "roll"];
    assert_eq!(names, expected);
    let rows = topology::rows(&model, &tree);
    assert_eq!(rows.iter().filter(|row| row.kind == ConstraintKind::Nonholonomic).count(), 1);
}
