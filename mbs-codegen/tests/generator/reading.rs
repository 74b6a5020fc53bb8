//! What good files mean: the typed model behind the text.

use mbs_codegen::model::evaluate::{Value, Values};
use mbs_codegen::model::{
    BodyId, ForceKind, InputId, JointKind, JointPoint, Model, OutputValue, ParameterId, ParameterValue,
    PointRef, Scalar, SensitivityRef, Vector,
};
use mbs_codegen::program::{Options, Program};
use mbs_codegen::yaml::read;

fn model(text: &str) -> Model {
    let (model, diagnostics) = read("dir/some-file.v2.yaml", text);
    assert!(diagnostics.is_empty(), "{}", diagnostics.render("some-file.yaml", text));
    model.unwrap()
}

const ARM: &str = "
bodies: {arm: {mass: 1, points: {tip: [1, 0, 0]}, vectors: {n: [0, 0, 2]}}}
joints: {hinge: {type: revolute, parent: ground, child: arm, axis: [0, 1, 0]}}
";

#[test]
fn yaml_words_and_numbers() {
    let m = model(&format!(
        "mbs: 1{ARM}parameters: {{no: 1e-3, y: +5, on: 0x1F, off: .5, yes: '2*3', n: 0o17, e: 1., f: -1.5E+3}}\n"
    ));
    let values: Vec<f64> = m
        .parameters
        .iter()
        .map(|p| match p.value {
            ParameterValue::Number(x) => x,
            _ => f64::NAN,
        })
        .collect();
    assert_eq!(values, [1e-3, 5.0, 31.0, 0.5, 6.0, 15.0, 1.0, -1500.0]);
    assert_eq!(m.name, "some_file");
    assert_eq!((m.parameters[1].span.line, m.parameters[1].span.column), (4, 24));
}

#[test]
fn parameters_follow_each_other_in_any_order() {
    let m = model(&format!("mbs: 1{ARM}parameters: {{c: a + b, b: 2*a, a: 3, y: [1, 2], d: 'y[1]*c'}}\n"));
    assert!(matches!(m.parameters[0].value, ParameterValue::Derived(_)));
    let values = Values::defaults(&m);
    let numbers: Vec<Option<&Value>> = (0..5).map(|i| values.parameter(ParameterId(i))).collect();
    assert_eq!(numbers[0], Some(&Value::Number(9.0)));
    assert_eq!(numbers[1], Some(&Value::Number(6.0)));
    assert_eq!(numbers[4], Some(&Value::Number(18.0)));
}

#[test]
fn joints_have_both_sides() {
    let m = model(&format!(
        "mbs: 1{ARM}  ball: {{type: floating, parent: arm.tip, child: {{body: leg, point: [0, 0, 1]}}, names: [a, b, c], start: {{a: 2, velocity: [1, 2, 3], hold: true}}}}\n"
    )
    .replace("bodies: {", "bodies: {leg: {}, ")
    .replace("joints: {hinge: {type: revolute, parent: ground, child: arm, axis: [0, 1, 0]}}", "joints:\n  hinge: {type: revolute, parent: ground, child: arm, axis: arm.n, start: {angle: {rate: 3}}}"));
    let hinge = &m.joints[0];
    assert_eq!(hinge.parent.axis, hinge.child.axis);
    let n = Vector::Components(Box::new([Scalar::Number(0.0), Scalar::Number(0.0), Scalar::Number(2.0)]));
    assert_eq!(hinge.parent.axis, Some(n));
    assert_eq!(hinge.start.rates, [Scalar::Number(3.0)]);
    let ball = &m.joints[1];
    assert_eq!(ball.kind, JointKind::Floating);
    assert_eq!(ball.coordinates, ["a", "b", "c", "e0", "e1", "e2", "e3"]);
    assert_eq!(ball.velocities, ["a_rate", "b_rate", "c_rate", "wx", "wy", "wz"]);
    assert_eq!(ball.parent.point, JointPoint::Point(PointRef::Named(0)));
    assert!(matches!(ball.child.point, JointPoint::At(_)));
    assert_eq!(ball.start.values[0], Scalar::Number(2.0));
    assert_eq!(ball.start.values[3], Scalar::Number(1.0));
    assert_eq!(ball.start.rates[2], Scalar::Number(3.0));
    assert_eq!(ball.start.hold, [true; 7]);
}

#[test]
fn elements_are_flattened_and_see_their_own_names_first() {
    let m = model(&format!(
        "mbs: 1{ARM}parameters: {{k: 1}}
elements:
  part:
    arguments: {{at: point, stiff: scalar}}
    parameters: {{k: 2*stiff}}
    bodies: {{arm: {{mass: k}}}}
    joints: {{j: {{type: fixed, parent: at, child: arm}}}}
    forces: {{f: {{type: spring, from: at, to: ground, stiffness: k}}}}
    outputs: {{o: pos(arm)}}
instances:
  one: {{element: part, arguments: {{at: arm.tip, stiff: k}}}}
  two: {{element: part, arguments: {{at: one_arm, stiff: 5}}, mirror: z}}
"
    ));
    let names: Vec<&str> = m.bodies.iter().map(|b| b.name.as_str()).collect();
    assert_eq!(names, ["ground", "arm", "one_arm", "two_arm"]);
    let names: Vec<&str> = m.parameters.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["k", "one_k", "two_k"]);
    assert_eq!(m.bodies[2].mass, Scalar::Parameter(ParameterId(1)));
    let values = Values::defaults(&m);
    assert_eq!(values.parameter(ParameterId(1)), Some(&Value::Number(2.0)));
    assert_eq!(values.parameter(ParameterId(2)), Some(&Value::Number(10.0)));
    let ForceKind::Spring { from, .. } = &m.forces[1].kind else { panic!() };
    assert_eq!(from.body, BodyId(2));
    assert!(matches!(m.outputs[0].value, OutputValue::Vector(Vector::Position(_))));
    assert!(matches!(
        m.outputs[1].value,
        OutputValue::Vector(Vector::Mirror { normal: 2, axial: false, .. })
    ));
}

#[test]
fn cases_lie_over_the_model() {
    let m = model(&format!(
        "mbs: 1{ARM}parameters: {{a: 1, b: 2*a}}
inputs: {{u: 0}}
simulation: {{end: 3, step: 0.1}}
cases:
  one: {{parameters: {{a: 4}}, start: {{hinge: {{rate: b}}}}, inputs: {{u: b*t}}, simulation: {{end: 5}}}}
"
    ));
    let case = &m.cases[0];
    assert_eq!((case.simulation.end, case.simulation.step), (5.0, 0.1));
    let values = Values::of_case(&m, case).at_time(2.0);
    assert_eq!(values.scalar(&case.start[0].1.rates[0]), Ok(8.0));
    assert_eq!(values.scalar(&case.inputs[0].1), Ok(16.0));
}

#[test]
fn aliases_stand_for_what_they_name() {
    let m = model(
        "mbs: 1\nbodies:\n  a: &link {mass: 2, points: {p: &up [0, 0, 1]}}\n  b: *link\n  ground: {points: {q: *up}}\njoints:\n  j: {type: fixed, parent: ground.q, child: a}\n  k: {type: fixed, parent: a.p, child: b}\n",
    );
    assert_eq!(m.bodies[1].points, m.bodies[2].points);
    assert_eq!(m.bodies[0].points[0].1, m.bodies[1].points[0].1);
}

#[test]
fn sensitivity_lists_are_flattened() {
    let m = model(&format!(
        "mbs: 1{ARM}parameters: {{d: a + 1, a: 1, k: [1, 2, 3], b: 2, one: [5]}}
inputs: {{v: 0, u: 0}}
forces:
  f: {{type: joint_force, coordinate: hinge, value: 'd + b*k[0] + k[1] + k[2] + one[0] + u + v'}}
sensitivity: [u, k, b, 'one[0]']
cases:
  same: {{}}
  other: {{sensitivity: ['k[2]', a]}}
  none: {{sensitivity: []}}
  empty: {{sensitivity: }}
"
    ));
    let names = |case: usize| m.sensitivity_names(m.sensitivity_under(Some(&m.cases[case])));
    let all = ["u", "k[0]", "k[1]", "k[2]", "b", "one[0]"];
    assert_eq!(m.sensitivity_names(&m.sensitivity), all);
    assert_eq!(m.sensitivity_names(m.sensitivity_under(None)), all);
    assert_eq!(names(0), all);
    assert_eq!(names(1), ["k[2]", "a"]);
    assert_eq!((names(2).len(), names(3).len()), (0, 0));
    assert_eq!(m.sensitivity[0], SensitivityRef::Input(InputId(1)));
    assert_eq!(m.sensitivity[3], SensitivityRef::Parameter { id: ParameterId(2), element: 2 });
    // Places among the independent parameters a, k, b, one.
    let places: Vec<_> = m.sensitivity.iter().map(|one| m.sensitivity_parameter(*one)).collect();
    assert_eq!(places, [None, Some(1), Some(2), Some(3), Some(4), Some(5)]);
    assert_eq!(m.sensitivity_parameter(SensitivityRef::Parameter { id: ParameterId(0), element: 0 }), None);
    assert_eq!(m.sensitivity_parameter(SensitivityRef::Parameter { id: ParameterId(1), element: 1 }), None);
    // Its arm has no mass: there is no dynamics to ask for.
    let options = Options { bundles: Vec::new(), ..Options::default() };
    let program = Program::new(&m, Some(&m.cases[1]), &options).unwrap();
    assert_eq!(program.parameter_names()[m.sensitivity_parameter(m.sensitivity[3]).unwrap()], "k[2]");
}

/// Three values are a vector wherever one is wanted, and the model can be differentiated by each.
#[test]
fn an_array_of_three_is_a_vector() {
    let text = |point: &str, push: &str| {
        format!(
            "mbs: 1\nname: hardpoints\nparameters: {{A: [0.1, 0.2, 0.3], four: [1, 2, 3, 4]}}\n\
             bodies: {{arm: {{mass: 1, com: {point}, inertia: [1, 1, 1], points: {{A: {point}}}}}}}\n\
             joints: {{j: {{type: spherical, parent: ground, child: arm}}}}\n\
             forces: {{push: {{type: force, at: arm.A, value: \"{push}\"}}}}\n\
             outputs: {{far: \"norm(A)\"}}\nsensitivity: [A]\n"
        )
    };
    let (by_name, _) = mbs_codegen::read("a.yaml", &text("A", "2*A - [0, 1, 0]")).expect("a vector");
    let (written, _) = mbs_codegen::read(
        "a.yaml",
        &text("[\"A[0]\", \"A[1]\", \"A[2]\"]", "2*[A[0], A[1], A[2]] - [0, 1, 0]"),
    )
    .expect("three numbers");
    assert_eq!(by_name.bodies, written.bodies);
    assert_eq!(by_name.forces[0].kind, written.forces[0].kind);
    assert_eq!(by_name.sensitivity_names(&by_name.sensitivity), ["A[0]", "A[1]", "A[2]"]);
    assert!(mbs_codegen::read("a.yaml", &text("four", "A")).is_err());
}
