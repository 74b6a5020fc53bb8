//! What two bodies share says which joint connects them: all combinations, with what says nothing new and with what contradicts itself.

use mbs_codegen::diagnostics::Severity;
use mbs_codegen::model::Model;
use mbs_codegen::yaml;

const MODEL: &str = "
mbs: 1
parameters: {w: 0.1, v: 0.1, L: 0.4}
bodies:
  ground: {points: {P: [0, 0, 0], Q: [0, 0, w], R: [0, 0, 0.3], S: [w, 0, 0], T: [0, w, 0], U: [w, w, 0.2], F: [0.3, 0, 0], G: [0.1 + 0.2, 0, 0]}, vectors: {z: [0, 0, 1], m: [0, 0, 2], n: [0, 0, -1], x: [1, 0, 0], y: [0, 1, 0], d: [0, 0, w]}}
  body: {mass: 1, inertia: [1, 1, 1], points: {P: [0, 0, 0], Q: [0, 0, w], R: [0, 0, 0.3], S: [w, 0, 0], T: [0, w, 0], U: [w, w, 0.2], V: [w, w, -0.2], F: [0.3, 0, 0], G: [0.3, 0, 0]}, vectors: {z: [0, 0, 1], m: [0, 0, 2], n: [0, 0, -1], x: [1, 0, 0], y: [0, 1, 0], d: [0, 0, v]}}
joints:
  hinge: {type: shared, parent: ground, child: body, LIST}
";

/// The model, and whether there are warnings, or all messages.
fn read(list: &str) -> Result<(Model, usize), String> {
    let text = MODEL.replace("LIST", list);
    let (model, diagnostics) = yaml::read("model.yaml", &text);
    let rendered = diagnostics.render("model.yaml", &text);
    let warnings = diagnostics.iter().filter(|d| d.severity == Severity::Warning).count();
    model.map(|model| (model, warnings)).ok_or(rendered)
}

#[test]
fn geometry_says_which_joint_it_is() {
    // What is listed, the joint, and how much of it says nothing new.
    for (list, joint, idle) in [
        ("points: []", "floating", 0),
        ("points: [P]", "spherical", 0),
        ("points: [P, Q]", "revolute", 0),
        ("points: [P, Q, R]", "revolute", 1),
        ("points: [P, Q], vectors: [z]", "revolute", 1),
        ("points: [P], vectors: [z]", "revolute", 0),
        ("points: [P], vectors: [z, m]", "revolute", 1),
        ("points: [P], vectors: [z, n, m]", "revolute", 2),
        ("points: [P], vectors: [[z, n]], zero: [x, x]", "revolute", 0),
        ("points: [P, Q, S]", "fixed", 0),
        ("points: [P, Q, R, S]", "fixed", 1),
        ("points: [P, S, T, U]", "fixed", 1),
        ("points: [P, Q], vectors: [x]", "fixed", 0),
        ("points: [P, Q], vectors: [z, x]", "fixed", 1),
        ("points: [P], vectors: [x, y, z]", "fixed", 1),
        ("vectors: [z], aligned: [P, P]", "cylindrical", 0),
        ("vectors: [z, m], aligned: [P, S]", "cylindrical", 1),
        ("vectors: [z, x], aligned: [P, P]", "prismatic", 0),
        ("vectors: [z, m, x, y], aligned: [P, P]", "prismatic", 2),
        ("vectors: [z], coplanar: [P, S], zero: [x, x]", "planar", 0),
        ("vectors: [z, n], coplanar: [P, S], zero: [x, x]", "planar", 1),
        ("points: [P], perpendicular: [x, y]", "cardan", 0),
        // The axis is the same on both bodies, though rounding or other lengths tell it differently.
        ("points: [[[0, 0, 0.1], P], [[0, 0, 0.3], [0, 0, 0.2]]]", "revolute", 0),
        ("points: [[P, P], [Q, [0, 0, 0.1]]]", "revolute", 0),
    ] {
        let (model, warnings) = read(list).unwrap_or_else(|said| panic!("{list}\n{said}"));
        assert_eq!((model.joints[0].kind.keyword(), warnings), (joint, idle), "{list}");
    }
}

#[test]
fn what_cannot_be_shared_is_refused_by_name() {
    for (list, words) in [
        ("vectors: []", "share nothing"),
        ("points: P", "expected a list"),
        ("points: [P, P]", "coincides with the first one"),
        ("points: [F, G]", "coincides with the first one"),
        ("points: [P, [Q, R]]", "0.1 m apart on `ground` and 0.3 m on `body`"),
        ("points: [P, Q, [R, [0, 0, -0.3]]]", "angle between the shared directions"),
        ("points: [P], vectors: [z, [m, n]]", "angle between the shared directions"),
        ("points: [P], vectors: [z, [x, [1, 0, 1]]]", "angle between the shared directions"),
        (
            "points: [P], vectors: [z, [[1e-8, 0, 1], [1e-8, 0, 1]]]",
            "too small for two directions, too large for one",
        ),
        ("points: [P, S, T, [U, V]]", "seen in a mirror"),
        ("vectors: [z]", "1 vector alone leaves all translations free"),
        ("vectors: [z, x]", "2 vectors alone leave all translations free"),
        ("aligned: [P, P]", "along a shared vector, and there is none"),
        ("coplanar: [P, P]", "normal to a shared vector, and there is none"),
        ("vectors: [z, x], coplanar: [P, P]", "two translations and no rotation"),
        ("vectors: [z], aligned: [P, P], coplanar: [P, S]", "which makes a revolute joint"),
        ("vectors: [z, x], aligned: [P, P], coplanar: [P, S]", "which makes a fixed joint"),
        ("points: [P], vectors: [z], aligned: [P, P]", "already make a revolute joint"),
        ("points: [P], vectors: [z], perpendicular: [x, y]", "already make a revolute joint"),
        ("points: [P], coplanar: [P, P]", "already make a spherical joint"),
        ("perpendicular: [x, y]", "without a shared point"),
        ("points: [P, Q, S], zero: [x, x]", "a fixed joint, which needs no `zero`"),
        ("vectors: [z, x], aligned: [P, P], zero: [x, x]", "a prismatic joint, which needs no `zero`"),
        ("points: [P], vectors: [[z, x]]", "where its angle is zero"),
    ] {
        let said = read(list).err().unwrap_or_else(|| panic!("{list} is accepted"));
        assert!(said.contains(words), "{list}\n{said}");
    }
    // Three digits are not enough to say that directions are parallel; then it is said that they count as two.
    let text = MODEL.replace("LIST", "points: [P], vectors: [z, [[1e-4, 0, 1], [1e-4, 0, 1]]]");
    let (model, diagnostics) = yaml::read("model.yaml", &text);
    assert_eq!(model.expect("a model").joints[0].kind.keyword(), "fixed");
    assert!(diagnostics.render("model.yaml", &text).contains("rad from parallel and count as two"));
}
