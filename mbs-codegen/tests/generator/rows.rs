//! Which rows a model keeps, drops or checks, and what every set of parameters must keep.

use mbs_codegen::bundle::interpret::{Arguments, run, scratch_len};
use mbs_codegen::conditions::Conditions;
use mbs_codegen::program::{BundleKind, Options, Program, ProgramError};
use mbs_codegen::symbols::Group;

fn program(text: &str) -> Result<Program, ProgramError> {
    let (model, _) = mbs_codegen::read("model.yaml", text)
        .unwrap_or_else(|diagnostics| panic!("{}\n{text}", diagnostics.render("model.yaml", text)));
    let options = Options { bundles: BundleKind::COORDINATE_FORM.to_vec(), ..Options::default() };
    Program::new(&model, None, &options)
}

fn problems(text: &str) -> String {
    match mbs_codegen::read("model.yaml", text) {
        Ok(_) => String::new(),
        Err(diagnostics) => diagnostics.render("model.yaml", text),
    }
}

/// What is wrong with parameters, by name; the others keep their defaults.
fn broken(program: &Program, set: &[(&str, f64)]) -> Option<String> {
    let mut parameters = program.defaults();
    let names = program.parameter_names();
    for (name, value) in set {
        parameters[names.iter().position(|own| own == name).expect("a parameter")] = *value;
    }
    let bundle = program.bundle("conditions").expect("parameters that can be wrong");
    let n = program.conditions.len();
    let arguments = Arguments::new().with(Group::Parameters, &parameters);
    let mut w = vec![0.0; scratch_len(bundle)];
    let (mut margins, mut shown) = (vec![0.0; n], vec![0.0; n]);
    run(bundle, &arguments, &mut w, &mut [&mut margins, &mut shown]).expect("right lengths");
    Conditions::broken(&program.conditions, &margins, &shown).map(|(_, broken)| broken)
}

/// A planar four-bar linkage of a size, about an axis, whose second pivot is lifted by `h` out of the plane.
fn four_bar(size: f64, axis: &str, more: &str) -> String {
    format!(
        "
mbs: 1
name: four_bar
parameters: {{a: {}, b: {}, c: {}, base: {}, h: 0, tilt: 0, m: 1, j: 0.1}}
gravity: [0, -9.81, 0]
bodies:
  ground: {{points: {{B: [base, 0, h]}}}}
  crank: {{mass: m, com: [a/2, 0, 0], inertia: [j, 0.1, 0.1], points: {{end: [a, 0, 0]}}}}
  coupler: {{mass: 1, com: [b/2, 0, 0], inertia: [0.1, 0.1, 0.1], points: {{end: [b, 0, 0]}}}}
  rocker: {{mass: 1, com: [c/2, 0, 0], inertia: [0.1, 0.1, 0.1], points: {{end: [c, 0, 0]}}}}
joints:
  A: {{type: revolute, parent: ground, child: crank, axis: {axis}, start: {{value: 1, hold: true}}}}
  P: {{type: revolute, parent: crank.end, child: coupler, axis: {axis}, start: -0.8}}
  B: {{type: revolute, parent: ground.B, child: rocker, axis: {axis}, start: 1.6}}
  Q: {{type: revolute, parent: coupler.end, child: rocker.end, axis: {axis}, cut: true}}
simulation: {{end: 5, step: 0.01}}
{more}",
        0.4 * size,
        1.1 * size,
        0.9 * size,
        1.3 * size
    )
}

#[test]
fn a_row_that_parameters_alone_change_is_checked_for_all_of_them() {
    let text = four_bar(1.0, "[0, 0, 1]", "");
    let program = program(&text).expect("a program");
    assert_eq!(program.holonomic, ["Q.x", "Q.y"]);
    assert_eq!(program.dropped_rows, ["Q.z", "Q.tilt1", "Q.tilt2"]);
    assert_eq!(broken(&program, &[]), None);
    assert_eq!(broken(&program, &[("a", 0.5), ("m", 2.0), ("h", 1e-15)]), None);
    for h in [0.5, -1e-3, 1e-6] {
        let said = broken(&program, &[("h", h)]).expect("a gap that nothing closes");
        assert!(said.contains("`Q.z`") && said.contains(&h.to_string()), "{said}");
    }
    assert!(problems(&text.replace("h: 0,", "h: 0.5,")).contains("constraint `Q.z` can never be met"));
    // The size of the mechanism is the measure.
    let text = four_bar(1e-7, "[0, 0, 1]", "");
    let small = self::program(&text).expect("a program");
    assert!(broken(&small, &[("h", 1e-9)]).is_some());
}

#[test]
fn a_derivative_by_what_violates_a_row_is_refused() {
    let text = four_bar(1.0, "[0, 0, 1]", "sensitivity: [a, h]\n");
    let error = program(&text).expect_err("no derivative by h");
    assert_eq!(error, ProgramError::Violating { row: "Q.z".into(), parameter: "h".into() });
    assert!(program(&four_bar(1.0, "[0, 0, 1]", "sensitivity: [a, tilt]\n")).is_ok());
}

/// In a tilted plane the gap across it depends on coordinates; with the default tilt of zero it does not.
#[test]
fn a_row_that_wakes_with_a_parameter_stays() {
    let program = program(&four_bar(1.0, "[0, sin(tilt), cos(tilt)]", "")).expect("a program");
    assert_eq!(program.holonomic, ["Q.x", "Q.y", "Q.z"]);
    assert_eq!(program.dropped_rows, ["Q.tilt1", "Q.tilt2"]);
}

#[test]
fn a_row_that_sleeps_at_some_times_inputs_or_scales_stays() {
    for (size, row) in [
        (1.0, "exp(60*(t - 3))*(A.angle - 1)"),
        (1.0, "tilt*(A.angle - 1)"),
        (1e-7, "dot(pos(crank.end), pos(crank.end)) - dot(pos(rocker.end), pos(rocker.end))"),
    ] {
        let more = format!("constraints:\n  own: {{type: equation, value: \"{row}\"}}\n");
        let program = program(&four_bar(size, "[0, 0, 1]", &more)).expect("a program");
        assert_eq!(program.holonomic, ["Q.x", "Q.y", "own"], "{row}");
    }
    // And one that is zero at all of them goes.
    let row = "(sin(A.angle)^2 + cos(A.angle)^2 - 1)*1e9 + a - a*1.0";
    let more = format!("constraints:\n  own: {{type: equation, value: \"{row}\"}}\n");
    let program = program(&four_bar(1.0, "[0, 0, 1]", &more)).expect("a program");
    assert!(program.dropped_rows.contains(&"own".to_string()), "{:?}", program.dropped_rows);
}

#[test]
fn parameters_that_no_body_has_are_refused_by_name() {
    let text = four_bar(
        1.0,
        "[0, 0, 1]",
        "forces: {push: {type: joint_force, coordinate: A.angle, value: \"table(t, [0, a, b], [0, 1, 0])\"}}\n",
    );
    let program = program(&text).expect("a program");
    for (set, said) in [
        (("m", -0.5), "the mass of body `crank` is negative: -0.5"),
        (("j", -0.1), "body `crank` has a negative principal moment of inertia: -0.1"),
        (("j", 0.3), "the largest principal moment of inertia of body `crank` exceeds"),
        (("a", 1.2), "knots of a table or spline must increase"),
        (("m", f64::NAN), "the mass of body `crank` is negative: NaN"),
    ] {
        let found = broken(&program, &[set]).unwrap_or_default();
        assert!(found.contains(said), "{set:?}: {found}");
    }
    assert_eq!(broken(&program, &[("m", 0.0), ("j", 0.2)]), None);
    // Cases are sets, too.
    let case = |parameters: &str| format!("{text}cases: {{odd: {{parameters: {{{parameters}}}}}}}\n");
    assert!(problems(&case("m: -1")).contains("case `odd`: the mass of body `crank` is negative"));
    assert!(problems(&case("h: 0.2")).contains("case `odd`: constraint `Q.z` can never be met"));
    assert_eq!(problems(&case("m: 2, a: 0.3")), "");
}

/// The distance of two points does not depend on what moves both; a component of their difference does, and so does a distance at one value of a parameter only.
#[test]
fn entries_that_vanish_identically_are_left_out() {
    let text = |value: &str| {
        format!(
            "
mbs: 1
name: carried
parameters: {{off: 0}}
gravity: [0, 0, -9.81]
bodies:
  base: &body {{mass: 2, com: [0.1, 0.2, 0], inertia: [1, 1.5, 2], points: {{p: [0.5, 0.2, 0.1], q: [-0.4, 0.1, 0.3]}}}}
  left: *body
  right: *body
joints:
  ride: {{type: floating, parent: ground, child: base}}
  first: {{type: revolute, parent: base.p, child: left, axis: [1, 2, 0.5], start: 0.3}}
  second: {{type: revolute, parent: base.q, child: right, axis: [0, 1, -0.4], start: {{value: 0.2, hold: true}}}}
constraints:
  rope: {{type: equation, value: \"{value}\"}}
simulation: {{end: 1, step: 0.01}}
"
        )
    };
    let columns = |value: &str| {
        let program = program(&text(value)).expect("regular");
        let rope = program.structure.pattern.holonomic.iter().filter(|(row, _)| *row == 0);
        rope.map(|&(_, column)| column).collect::<Vec<_>>()
    };
    let difference = "(pos(left.q) - pos(right.p))";
    // x, y, z and four Euler parameters of the base, then the two angles.
    assert_eq!(columns(&format!("dot({difference}, {difference}) - 1")), [7, 8]);
    assert_eq!(columns(&format!("{difference}.x")), [3, 4, 5, 6, 7, 8]);
    let seen = columns(&format!("dot({difference}, {difference}) + off*pos(left.q).z - 1"));
    assert_eq!(seen, [2, 3, 4, 5, 6, 7, 8]);
}

/// Points in a line make a hinge, others a fixed joint; no parameters make one of the other, and there is no derivative that tears both bodies apart.
#[test]
fn what_bodies_share_keeps_its_joint() {
    let text = |third: &str, depth: &str, more: &str| {
        format!(
            "
mbs: 1
parameters: {{v: 0.1, w: 0.1}}
bodies:
  ground: {{points: {{P: [0, 0, 0], Q: [0, 0, w], R: {third}}}}}
  arm: {{mass: 1, com: [1, 0, 0], inertia: [1, 1, 1], points: {{P: [0, 0, 0], Q: [0, 0, {depth}], R: {third}}}}}
  tip: {{mass: 1, com: [1, 0, 0], inertia: [1, 1, 1]}}
joints:
  root: {{type: shared, parent: ground, child: arm, points: [P, Q, R]}}
  knee: {{type: revolute, parent: arm, child: tip, axis: [0, 1, 0]}}
{more}"
        )
    };
    let hinge = program(&text("[v - 0.1, 0, 3*w]", "w", "")).expect("a hinge");
    assert_eq!(hinge.coordinates, ["root.angle", "knee.angle"]);
    assert_eq!(broken(&hinge, &[("w", 0.3)]), None);
    let said = broken(&hinge, &[("v", 0.11)]).expect("no line");
    assert!(said.contains("bodies of joint `root` share"), "{said}");

    let weld = program(&text("[v, 0, 3*w]", "w", "")).expect("a weld");
    assert_eq!(weld.coordinates, ["knee.angle"]);
    assert_eq!(broken(&weld, &[("v", -0.2), ("w", 0.3)]), None);
    let said = broken(&weld, &[("v", 0.0)]).expect("a line");
    assert!(said.contains("bodies of joint `root` share are all parallel"), "{said}");

    let by = |depth, more| program(&text("[0, 0, 3*w]", depth, more));
    let more = "objectives: {o: {terminal: pos(tip).x}}\nsensitivity: [w]\n";
    assert!(by("w", more).is_ok());
    let error = by("0.1", more).err();
    assert_eq!(error, Some(ProgramError::Tearing { joint: "root".into(), parameter: "w".into() }));
}

/// A reference that parameters turn along its axis leaves a frame without a direction.
#[test]
fn a_reference_stays_across_its_axis() {
    let text = "
mbs: 1
parameters: {w: 0.1}
bodies:
  arm: {mass: 1, com: [1, 0, 0], inertia: [1, 1, 1]}
joints:
  hinge:
    type: revolute
    parent: {body: ground, axis: [0, 0, 1], reference: [0, w, 0.2]}
    child: {body: arm, axis: [0, 0, 1], reference: [1, 0, 0]}
";
    let program = program(text).expect("a program");
    assert_eq!(broken(&program, &[("w", 1e-3)]), None);
    for w in [0.0, 1e-9] {
        let said = broken(&program, &[("w", w)]).expect("no frame");
        assert!(said.contains("the reference of joint `hinge` is parallel to its axis"), "{said}");
    }
}
