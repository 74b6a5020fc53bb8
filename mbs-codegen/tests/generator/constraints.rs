//! Constraints of the file: what their rows are worth in known positions, and in the mirror.

use mbs_codegen::elements::Mechanism;
use mbs_codegen::graph::{ExprId, Graph, Interpreter};
use mbs_codegen::kinematics::ReferencePoint;
use mbs_codegen::lowering::{Lowering, Parameters};
use mbs_codegen::model::{ConstraintKind, Formulation, Integrator, Model, Projection, Scalar};
use mbs_codegen::symbols::Group;
use mbs_codegen::topology;
use mbs_codegen::yaml::read;

fn model(text: &str) -> Model {
    let (model, diagnostics) = read("constraints.yaml", text);
    assert!(diagnostics.is_empty(), "{}", diagnostics.render("constraints.yaml", text));
    model.unwrap()
}

/// The rows by name, at a time and in a state.
fn rows(model: &Model, t: f64, z: &[f64], v: &[f64]) -> Vec<(String, f64)> {
    let tree = topology::span(model);
    let rows = topology::rows(model, &tree);
    let mut g = Graph::new();
    let parameters = Parameters::lower(&mut g, model, true);
    let mut mechanism = Mechanism::new(&mut g, model, &tree, &parameters, ReferencePoint::Origin);
    let wanted: Vec<ExprId> = rows
        .iter()
        .map(|row| Lowering::new(&mut g, &parameters, &mut mechanism).scalar(&row.value))
        .collect();
    let mut interpreter = Interpreter::new();
    interpreter.set(Group::Time, 0, t);
    interpreter.set_all(Group::Z, z);
    interpreter.set_all(Group::V, v);
    let values = interpreter.evaluate(&g, &wanted);
    rows.into_iter().map(|row| row.name).zip(values).collect()
}

/// Two free bodies, `a` where it is put and `b` turned by a quarter about z besides.
const FREE: &str = "
mbs: 1
parameters: {L: 2, w: 3}
bodies:
  ground: {points: {o: [1, 0, 0]}, vectors: {up: [0, 0, 5]}}
  a: {points: {p: [1, 2, 3], q: [1, 2, 7]}, vectors: {n: [0, 0, 2]}}
  b: {points: {p: [1, 0, 0]}, vectors: {n: [3, 0, 0]}}
joints:
  fa: {type: floating, parent: ground, child: a}
  fb: {type: floating, parent: ground, child: b}
variables: {s: {value: 0.1, rate: L, hold: true, unit: m, description: a length}, q: L/4}
";

/// `a` at (1, 1, 1); `b` at (2, 0, 0), turned by a quarter; s and q.
const STATE: [f64; 16] = [1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.25, 0.75];

#[test]
fn rows_have_the_values_of_their_formulas() {
    let m = model(&format!(
        "{FREE}
constraints:
  far: {{type: distance, from: a.p, to: b.p, value: L}}
  near: {{type: distance, from: '[0, 0, t]', to: a, value: s}}
  turn: {{type: angle, from: a.n, to: b.n, value: pi/3}}
  slope: {{type: angle, from: b.n, to: [1, 1, 0], value: q}}
  pin: {{type: coincident, from: a.p, to: b.p}}
  rail: {{type: point_on_line, point: b.p, line: {{point: ground.o, direction: ground.up}}}}
  rail2: {{type: point_on_line, point: b.p, line: {{point: a, direction: b.n, reference: [0, 0, 1]}}}}
  table: {{type: point_on_plane, point: a.p, plane: {{point: ground.o, normal: ground.up}}}}
  row: {{type: aligned, points: [a.p, a.q, b.p, ground.o]}}
  row2: {{type: aligned, points: [ground, b, a], reference: [0, 0, 1]}}
  gear: {{type: coupling, value: fa.x - 2*fb.x + s}}
  drive: {{type: motion, coordinate: fa.y, value: w*t}}
  slide: {{type: motion, coordinate: s, value: 'spline(t, [0, 1, 2], [0, 0, 1])'}}
  carry: {{type: motion, point: a.p, value: [t, 2*t, 3*t]}}
  carry2: {{type: motion, point: a.p, value: [t, 2*t, 3*t], axes: [z, x]}}
  any: {{type: equation, value: 'dot(pos(a.p), pos(b.p)) - L*q'}}
  any3: {{type: equation, value: 'in(b, pos(b.p) - pos(b)) + [s, 0, 0]'}}
  roll: {{type: nonholonomic, value: vel(a.p) - 0.5*omega(b)}}
  skate: {{type: nonholonomic, value: 'dot(vel(b), dir(b.n)) + rate(s)'}}
"
    ));
    assert_eq!((m.variables[0].name.as_str(), m.variables[0].unit.as_str()), ("s", "m"));
    assert!(m.variables[0].hold && !m.variables[1].hold);
    let t = 0.5;
    // a moves by (1, 2, 3) and does not turn; b turns about z by 4 and moves by (5, 6, 7); s grows by 8.
    let v = [1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 5.0, 6.0, 7.0, 0.0, 0.0, 4.0, 8.0, 0.0];
    let found = rows(&m, t, &STATE, &v);
    // a.p = (2, 3, 4), a.q = (2, 3, 8), b.p = (2, 1, 0); a.n = (0, 0, 1), b.n = (0, 1, 0) in the world.
    let expected = [
        ("far", 20f64.sqrt() - 2.0),
        ("near", 2.25f64.sqrt() - 0.25),
        ("turn", -0.5),
        ("slope", 0.5f64.sqrt() - 0.75f64.cos()),
        ("pin.x", 0.0),
        ("pin.y", -2.0),
        ("pin.z", -4.0),
        // (1, 1, 0) across z, first along x.
        ("rail.across1", 1.0),
        ("rail.across2", 1.0),
        // (1, 0, −1) across y: along z, and along y × z = x.
        ("rail2.across1", -1.0),
        ("rail2.across2", 1.0),
        ("table", 4.0),
        // (0, −2, −4) and (−1, −3, −4) across z, first along x.
        ("row.across1", 0.0),
        ("row.across2", -2.0),
        ("row.across3", -1.0),
        ("row.across4", -3.0),
        // (1, 1, 1) across x: along z, and along x × z = −y.
        ("row2.across1", 1.0),
        ("row2.across2", -1.0),
        ("gear", 1.0 - 4.0 + 0.25),
        ("drive", 1.0 - 1.5),
        // Natural spline through (0, 0), (1, 0), (2, 1): −0.09375 at 0.5.
        ("slide", 0.25 + 0.09375),
        ("carry.x", 1.5),
        ("carry.y", 2.0),
        ("carry.z", 2.5),
        ("carry2.x", 1.5),
        ("carry2.z", 2.5),
        ("any", 7.0 - 1.5),
        ("any3.x", 1.25),
        ("any3.y", 0.0),
        ("any3.z", 0.0),
        ("roll.x", 1.0),
        ("roll.y", 2.0),
        ("roll.z", 3.0 - 2.0),
        ("skate", 6.0 + 8.0),
    ];
    assert_eq!(found.len(), expected.len());
    for ((name, value), (expected_name, expected)) in found.iter().zip(expected) {
        assert_eq!(name, expected_name);
        assert!((value - expected).abs() < 1e-14, "{name}: {value}, not {expected}");
    }
    let kinds: Vec<ConstraintKind> = m.constraints.iter().map(|c| c.kind).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == ConstraintKind::Nonholonomic).count(), 2);
}

#[test]
fn a_mirrored_constraint_vanishes_where_its_image_does() {
    for (normal, letter) in ["x", "y", "z"].into_iter().enumerate() {
        let text = format!(
            "mbs: 1
elements:
  limb:
    arguments: {{hook: point, offset: vector}}
    variables: {{s: 0.2}}
    bodies:
      a: {{points: {{p: [1, 2, 3], q: [0.3, -2, 0.7]}}, vectors: {{n: [0.2, 0.5, -1]}}}}
      b: {{points: {{p: [1, 0, 0.4]}}, vectors: {{n: [3, 0.1, 0.2]}}}}
    joints:
      fa: {{type: floating, parent: ground, child: a}}
      fb: {{type: floating, parent: a, child: b}}
      back:
        type: revolute
        parent: {{body: a, point: [0.1, 0.2, 0.3], axis: [1, 2, 3], reference: [0, 1, 0.3]}}
        child: {{body: b, point: [0.2, -0.3, 0.1], axis: [0.1, 0, 1], reference: [1, 1, 0]}}
      other: {{type: prismatic, parent: ground, child: b, axis: [0.1, 0.5, 0.7]}}
      third: {{type: cardan, parent: a, child: b, axes: [[1, 0.2, 0], [0, 1, 0.3]]}}
      last: {{type: cylindrical, parent: a, child: b, axis: [0.3, -0.2, 1]}}
    constraints:
      far: {{type: distance, from: hook, to: b.p, value: s}}
      turn: {{type: angle, from: a.n, to: [1, 2, 3], value: 0.4}}
      pin: {{type: coincident, from: a.p, to: offset}}
      rail: {{type: point_on_line, point: b.p, line: {{point: hook, direction: a.n}}}}
      rail2: {{type: point_on_line, point: b.p, line: {{point: hook, direction: 'from(a, [1, 2, 3])'}}}}
      rail3: {{type: point_on_line, point: b.p, line: {{point: hook, direction: [0.2, 0.3, 0.4], reference: b.n}}}}
      table: {{type: point_on_plane, point: a.p, plane: {{point: hook, normal: [1, 2, 3]}}}}
      row: {{type: aligned, points: [a.p, a.q, b.p]}}
      gear: {{type: coupling, value: fa.x - 2*fb.y + fa.e1 + s}}
      drive: {{type: motion, coordinate: fa.y, value: 3*t}}
      carry: {{type: motion, point: a.p, value: [t, 2*t, 3*t]}}
      any: {{type: equation, value: 'cross(pos(a.p), pos(b.p)) - in(b, pos(hook))'}}
      roll: {{type: nonholonomic, value: 'vel(a.p) - 0.5*cross(omega(b), pos(b.p))'}}
bodies:
  ground: {{points: {{left: [0.2, 0.4, 1.1], right: [{}, {}, {}]}}}}
instances:
  l: {{element: limb, arguments: {{hook: ground.left, offset: [0.1, 0.2, 0.3]}}}}
  r: {{element: limb, mirror: {letter}, arguments: {{hook: ground.right, offset: [0.1, 0.2, 0.3]}}}}
",
            if normal == 0 { -0.2 } else { 0.2 },
            if normal == 1 { -0.4 } else { 0.4 },
            if normal == 2 { -1.1 } else { 1.1 },
        );
        let m = model(&text);
        let tree = topology::span(&m);
        let sign = |name: &str| {
            let polar = |axis: usize| if axis == normal { -1.0 } else { 1.0 };
            let part = name.rsplit('.').next().unwrap_or("");
            let axis = |c: char| "xyz".find(c).unwrap_or(0);
            match part.as_bytes() {
                [c @ b'x'..=b'z'] => polar(axis(*c as char)),
                [c @ b'x'..=b'z', b'_', ..] => polar(axis(*c as char)),
                [b'e', n @ b'1'..=b'3'] => -polar(usize::from(n - b'1')),
                [b'w', c] => -polar(axis(*c as char)),
                _ => 1.0,
            }
        };
        let mut seed = 3u64;
        let mut fill = |names: &[String]| -> Vec<f64> {
            let mut values = vec![0.0; names.len()];
            for i in 0..names.len() {
                let Some(rest) = names[i].strip_prefix("l_") else { continue };
                seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                values[i] = (seed >> 11) as f64 / (1u64 << 53) as f64 + 0.1;
                let twin = names.iter().position(|n| *n == format!("r_{rest}")).expect("a twin");
                values[twin] = sign(rest) * values[i];
            }
            values
        };
        let z = fill(&tree.coordinate_names(&m));
        let v = fill(&tree.velocity_names(&m));
        let found = rows(&m, 0.7, &z, &v);
        let mut compared = 0;
        for (name, value) in &found {
            let Some(rest) = name.strip_prefix("l_") else { continue };
            let (_, image) = found.iter().find(|(n, _)| *n == format!("r_{rest}")).expect("a twin");
            // A reference direction may have been taken the other way round.
            assert!(
                (value.abs() - image.abs()).abs() < 1e-12,
                "mirror {letter}, {rest}: {value} and {image}"
            );
            assert!(value.abs() > 1e-3, "{rest} vanishes by accident");
            compared += 1;
        }
        // 5 + 5 + 4 + 4 rows of cut joints, and those of the constraints.
        assert_eq!(compared, 18 + 1 + 1 + 3 + 2 + 2 + 2 + 1 + 2 + 1 + 1 + 3 + 3 + 3, "mirror {letter}");
    }
}

#[test]
fn constraints_choose_the_formulation() {
    let free = FREE.replace(
        "variables: {s: {value: 0.1, rate: L, hold: true, unit: m, description: a length}, q: L/4}",
        "",
    );
    let with = |more: &str| model(&format!("{free}{more}")).simulation;
    assert_eq!(with("").integrator, Integrator::Rk4);
    assert_eq!(with("simulation: {integrator: trapezoidal}").integrator, Integrator::Trapezoidal);
    let bound = "constraints: {c: {type: coincident, from: a, to: b}}\n";
    let chosen = |more: &str| {
        let simulation = with(&format!("{bound}{more}"));
        (simulation.formulation, simulation.integrator)
    };
    assert_eq!(chosen(""), (Formulation::Ali3p, Integrator::Trapezoidal));
    assert_eq!(chosen("simulation: {integrator: rk4}"), (Formulation::Index1, Integrator::Rk4));
    assert_eq!(chosen("simulation: {formulation: index1}"), (Formulation::Index1, Integrator::Rk4));
    assert_eq!(chosen("simulation: {formulation: penalty}"), (Formulation::Penalty, Integrator::Trapezoidal));
    assert_eq!(
        chosen("simulation: {integrator: newmark, gamma: 0.6, beta: 0.4}"),
        (Formulation::Ali3p, Integrator::Newmark { beta: 0.4, gamma: 0.6 })
    );
    let simulation = with(
        "simulation: {integrator: generalized_alpha, spectral_radius: 0.6, penalty: 1e9, projection: tangent, newton: {tolerance: 1e-8, iterations: 7}}",
    );
    assert_eq!(simulation.integrator, Integrator::GeneralizedAlpha { spectral_radius: 0.6 });
    assert_eq!((simulation.penalty, simulation.projection), (Some(1e9), Projection::Tangent));
    assert_eq!((simulation.newton_tolerance, simulation.newton_iterations), (1e-8, 7));

    // A case changes one thing; what the file leaves open follows.
    let m = model(&format!(
        "{free}{bound}simulation: {{spectral_radius: 0.9, integrator: generalized_alpha}}
cases:
  damped: {{simulation: {{spectral_radius: 0.5}}}}
  same: {{simulation: {{integrator: generalized_alpha}}}}
  explicit: {{simulation: {{integrator: dormand_prince}}}}
"
    ));
    let of = |i: usize| (m.cases[i].simulation.formulation, m.cases[i].simulation.integrator);
    assert_eq!(of(0), (Formulation::Ali3p, Integrator::GeneralizedAlpha { spectral_radius: 0.5 }));
    assert_eq!(of(1), (Formulation::Ali3p, Integrator::GeneralizedAlpha { spectral_radius: 0.9 }));
    assert_eq!(of(2), (Formulation::Index1, Integrator::DormandPrince));
}

#[test]
fn objectives_and_starts_of_variables() {
    let m = model(&format!(
        "{FREE}inputs: {{u: 0}}
constraints: {{c: {{type: distance, from: a, to: b, value: s + q}}}}
forces: {{f: {{type: torsional_spring, coordinate: s, stiffness: 3, natural_angle: L}}}}
objectives:
  effort: u^2 + accel(s)^2
  miss: {{terminal: norm(pos(a.p) - pos(b.p)), unit: m, description: how far}}
  both: {{integrand: rate(s), terminal: s}}
cases:
  one: {{start: {{s: {{value: L, hold: false}}, q: 3}}}}
"
    ));
    let names: Vec<&str> = m.objectives.iter().map(|o| o.name.as_str()).collect();
    assert_eq!(names, ["effort", "miss", "both"]);
    assert_eq!(m.objectives[0].terminal, Scalar::Number(0.0));
    assert_eq!(
        (m.objectives[1].integrand.clone(), m.objectives[1].unit.as_str()),
        (Scalar::Number(0.0), "m")
    );
    assert!(matches!(m.objectives[2].terminal, Scalar::Coordinate(_)));
    let starts = &m.cases[0].variables;
    assert_eq!(starts.len(), 2);
    assert!(!starts[0].1.hold && matches!(starts[0].1.value, Scalar::Parameter(_)));
    assert_eq!(starts[0].1.rate, m.variables[0].rate);
    assert_eq!(starts[1].1.value, Scalar::Number(3.0));
    let tree = topology::span(&m);
    assert_eq!(&tree.coordinate_names(&m)[14..], ["s", "q"]);
}
