//! An imported robot has the energies of the file: kinetic and potential energy at random states, computed here from
//! the XML link by link, without merging, determine its motion.

use mbs_codegen::model::evaluate::Values;
use mbs_codegen::program::{BundleKind, Options, Program};
use mbs_engine::Interpreted;
use mbs_runtime::{At, Energy, Markers, System};
use std::collections::HashMap;
use std::path::Path;

type Vec3 = [f64; 3];
type Mat3 = [[f64; 3]; 3];

fn robot(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("urdf").join(name)).expect("a robot")
}

fn import(text: &str, options: &mbs_urdf::Options) -> mbs_urdf::Imported {
    mbs_urdf::import("robot.urdf", text, options)
        .unwrap_or_else(|e| panic!("{}", e.render("robot.urdf", text)))
}

fn model(yaml: &str) -> mbs_codegen::model::Model {
    let (model, warnings) =
        mbs_codegen::read("robot.yaml", yaml).unwrap_or_else(|e| panic!("{}", e.render("robot.yaml", yaml)));
    assert!(warnings.is_empty(), "{}", warnings.render("robot.yaml", yaml));
    model
}

/// A number in −1 … 1.
fn random(seed: &mut u64) -> f64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    (*seed >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

fn product(a: Mat3, b: Mat3) -> Mat3 {
    std::array::from_fn(|i| std::array::from_fn(|j| (0..3).map(|k| a[i][k] * b[k][j]).sum()))
}

fn apply(a: Mat3, v: Vec3) -> Vec3 {
    a.map(|row| row[0] * v[0] + row[1] * v[1] + row[2] * v[2])
}

fn add(a: Vec3, b: Vec3) -> Vec3 {
    std::array::from_fn(|i| a[i] + b[i])
}

fn cross(a: Vec3, b: Vec3) -> Vec3 {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

/// The rotation by Euler parameters of any length.
fn ball(p: [f64; 4]) -> Mat3 {
    let n = p.iter().map(|x| x * x).sum::<f64>();
    let [w, x, y, z] = p;
    let r = [
        [w * w + x * x - y * y - z * z, 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)],
        [2.0 * (x * y + w * z), w * w - x * x + y * y - z * z, 2.0 * (y * z - w * x)],
        [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), w * w - x * x - y * y + z * z],
    ];
    r.map(|row| row.map(|x| x / n))
}

fn about(axis: Vec3, angle: f64) -> Mat3 {
    let n = (axis[0] * axis[0] + axis[1] * axis[1] + axis[2] * axis[2]).sqrt();
    let (s, c) = (angle / 2.0).sin_cos();
    ball([c, s * axis[0] / n, s * axis[1] / n, s * axis[2] / n])
}

fn numbers(node: Option<roxmltree::Node<'_, '_>>, name: &str, absent: Vec3) -> Vec3 {
    let Some(text) = node.and_then(|n| n.attribute(name)) else { return absent };
    let mut words = text.split_whitespace().map(|w| w.parse::<f64>().expect("a number"));
    std::array::from_fn(|_| words.next().expect("three numbers"))
}

/// A rotation and an origin.
type Pose = (Mat3, Vec3);

fn then((r, o): Pose, (inner_r, inner_o): Pose) -> Pose {
    (product(r, inner_r), add(o, apply(r, inner_o)))
}

fn origin(node: roxmltree::Node<'_, '_>) -> Pose {
    let origin = node.children().find(|n| n.has_tag_name("origin"));
    let [roll, pitch, yaw] = numbers(origin, "rpy", [0.0; 3]);
    let turn = product(about([0.0, 0.0, 1.0], yaw), about([0.0, 1.0, 0.0], pitch));
    (product(turn, about([1.0, 0.0, 0.0], roll)), numbers(origin, "xyz", [0.0; 3]))
}

/// Values of coordinates or velocities by name.
type State = HashMap<String, f64>;

/// The robot as the file has it.
struct Naive<'d> {
    document: &'d roxmltree::Document<'d>,
    root: &'d str,
}

impl<'d> Naive<'d> {
    /// Poses of all links.
    fn poses(&self, z: &State) -> HashMap<&'d str, Pose> {
        let value =
            |joint: &str, coordinate: &str| z.get(&format!("{joint}.{coordinate}")).copied().unwrap_or(0.0);
        let free = |joint: &str| -> Pose {
            let p = ["e0", "e1", "e2", "e3"].map(|c| value(joint, c));
            let p = if p == [0.0; 4] { [1.0, 0.0, 0.0, 0.0] } else { p };
            (ball(p), ["x", "y", "z"].map(|c| value(joint, c)))
        };
        let mut poses = HashMap::from([(self.root, free("floating_base"))]);
        let joints: Vec<_> =
            self.document.root_element().children().filter(|n| n.has_tag_name("joint")).collect();
        // As often as the tree is deep.
        for _ in 0..joints.len() {
            for joint in &joints {
                let link =
                    |side| joint.children().find(|n| n.has_tag_name(side)).and_then(|n| n.attribute("link"));
                let (Some(parent), Some(child)) = (link("parent"), link("child")) else {
                    panic!("two links")
                };
                let Some(&from) = poses.get(parent) else { continue };
                let axis = numbers(joint.children().find(|n| n.has_tag_name("axis")), "xyz", [1.0, 0.0, 0.0]);
                let name = joint.attribute("name").expect("a name");
                let length = axis.iter().map(|x| x * x).sum::<f64>().sqrt();
                let motion: Pose = match joint.attribute("type").expect("a type") {
                    "revolute" | "continuous" => (about(axis, value(name, "angle")), [0.0; 3]),
                    "prismatic" => (about(axis, 0.0), axis.map(|x| x / length * value(name, "displacement"))),
                    "planar" => {
                        // The only one has the normal y: x along z, y along y × z.
                        assert_eq!(axis, [0.0, 1.0, 0.0]);
                        let y = cross(axis, [0.0, 0.0, 1.0]).map(|e| e * value(name, "y"));
                        (about(axis, value(name, "angle")), add([0.0, 0.0, value(name, "x")], y))
                    }
                    "floating" => free(name),
                    "fixed" => (about(axis, 0.0), [0.0; 3]),
                    other => panic!("{other}"),
                };
                poses.insert(child, then(then(from, origin(*joint)), motion));
            }
        }
        poses
    }

    /// Kinetic and potential energy; `z_at` gives the coordinates near time zero.
    fn energies(&self, z_at: &dyn Fn(f64) -> State, counts: &dyn Fn(&str) -> bool) -> (f64, f64) {
        // Fourth-order differences at h = 1e-3: h⁴ and rounding/h are both about 1e-12.
        let h = 1e-3;
        let [a, b, now, c, d] = [-2.0, -1.0, 0.0, 1.0, 2.0].map(|k| self.poses(&z_at(k * h)));
        let slope = |f: &dyn Fn(&HashMap<&'d str, Pose>) -> f64| {
            (f(&a) - 8.0 * f(&b) + 8.0 * f(&c) - f(&d)) / (12.0 * h)
        };
        let (mut kinetic, mut potential) = (0.0, 0.0);
        for link in self.document.root_element().children().filter(|n| n.has_tag_name("link")) {
            let name = link.attribute("name").expect("a name");
            let Some(inertial) = link.children().find(|n| n.has_tag_name("inertial")) else { continue };
            if !counts(name) {
                continue;
            }
            let child = |tag: &str| inertial.children().find(|n| n.has_tag_name(tag)).expect("an element");
            let number = |tag: &str, name: &str| {
                child(tag).attribute(name).expect("a number").parse::<f64>().expect("a number")
            };
            let (mass, i) = (number("mass", "value"), |name: &str| number("inertia", name));
            let local = origin(inertial);
            let com = |poses: &HashMap<&'d str, Pose>| then(poses[name], local).1;
            let turn = |poses: &HashMap<&'d str, Pose>| then(poses[name], local).0;
            let v: Vec3 = std::array::from_fn(|k| slope(&|poses| com(poses)[k]));
            // ω̃ = Rᵀ Ṙ, in the inertia's own frame
            let (r, rd): (Mat3, Mat3) = (
                turn(&now),
                std::array::from_fn(|j| std::array::from_fn(|k| slope(&|poses| turn(poses)[j][k]))),
            );
            let spin = |j: usize, k: usize| (0..3).map(|l| r[l][j] * rd[l][k]).sum::<f64>();
            let omega = [spin(2, 1), spin(0, 2), spin(1, 0)];
            let inertia = [
                [i("ixx"), i("ixy"), i("ixz")],
                [i("ixy"), i("iyy"), i("iyz")],
                [i("ixz"), i("iyz"), i("izz")],
            ];
            let dot = |a: Vec3, b: Vec3| a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
            kinetic += 0.5 * mass * dot(v, v) + 0.5 * dot(omega, apply(inertia, omega));
            potential += 9.81 * mass * com(&now)[2];
        }
        (kinetic, potential)
    }
}

fn compare(options: &mbs_urdf::Options) {
    let text = robot("every_joint.urdf");
    let document = roxmltree::Document::parse(&text).expect("XML");
    let naive = Naive { document: &document, root: "base" };
    let imported = import(&text, options);
    let model = model(&imported.yaml);
    let bundles = vec![BundleKind::Energy, BundleKind::Markers];
    let program =
        Program::new(&model, None, &Options { bundles, ..Options::default() }).expect("a small program");
    let system: Interpreted = Interpreted::new(program.clone());
    let dims = system.dims();
    assert_eq!(dims.nv, 5 + 3 + 6 + if options.floating_base { 6 } else { 0 });
    // The masses of ground do not count.
    let counts = |link: &str| options.floating_base || !["base", "battery"].contains(&link);

    let mut seed = 0x1234_5678_9abc_def1;
    for _ in 0..20 {
        let mut z: Vec<f64> = (0..dims.nq).map(|_| random(&mut seed)).collect();
        let v: Vec<f64> = (0..dims.nv).map(|_| random(&mut seed)).collect();
        let number = |names: &[String], name: &str| names.iter().position(|n| n == name);
        let mut rates = vec![0.0; dims.nq];
        for (name, rate) in program.velocities.iter().zip(&v) {
            if let Some(i) = name.strip_suffix("_rate").and_then(|name| number(&program.coordinates, name)) {
                rates[i] = *rate;
            }
        }
        for e0 in (0..dims.nq).filter(|&i| program.coordinates[i].ends_with(".e0")) {
            let joint = program.coordinates[e0].trim_end_matches("e0");
            let w = number(&program.velocities, &format!("{joint}wx")).expect("an angular velocity");
            let length = z[e0..e0 + 4].iter().map(|p| p * p).sum::<f64>().sqrt();
            z[e0..e0 + 4].iter_mut().for_each(|p| *p /= length);
            // ṗ = ½ p ω
            let (p0, p, omega) = (z[e0], [z[e0 + 1], z[e0 + 2], z[e0 + 3]], [v[w], v[w + 1], v[w + 2]]);
            let turn = cross(p, omega);
            rates[e0] = -0.5 * (p[0] * omega[0] + p[1] * omega[1] + p[2] * omega[2]);
            for k in 0..3 {
                rates[e0 + 1 + k] = 0.5 * (p0 * omega[k] + turn[k]);
            }
        }
        let z_at = |t: f64| -> State {
            let values = z.iter().zip(&rates).map(|(z, zd)| z + t * zd);
            program.coordinates.iter().cloned().zip(values).collect()
        };
        let (kinetic, potential) = naive.energies(&z_at, &counts);
        let at = At { t: 0.0, z: &z, v: &v, x: &[], u: &[] };
        let mut w = vec![0.0; dims.workspace];
        let mut energy = [0.0; 3];
        system.energy(at, &mut w, &mut energy).expect("energies");
        // 1.57079632679 is π/2 to 5e-12; differences are good to 1e-11.
        assert!((energy[0] - kinetic).abs() < 1e-9 * kinetic, "{} {kinetic}", energy[0]);
        assert!((energy[1] - potential).abs() < 1e-9 * potential.abs().max(1.0), "{} {potential}", energy[1]);

        // Power of damping and friction.
        let rate = |name: &str| v[number(&program.velocities, name).expect("a velocity")];
        let (slew, lift, elbow) =
            (rate("slew.angle_rate"), rate("lift.displacement_rate"), rate("elbow.angle_rate"));
        let power = if options.dissipation {
            -0.7 * slew * slew
                - 12.0 * lift * lift
                - 0.1 * elbow * elbow
                - 4.0 * lift * (lift / 1e-3).tanh()
                - 0.3 * elbow * (elbow / 1e-2).tanh()
        } else {
            0.0
        };
        assert!((energy[2] - power).abs() < 1e-12 * power.abs().max(1.0), "{} {power}", energy[2]);

        // Merged links leave their frames.
        let poses = naive.poses(&z_at(0.0));
        let mut motion = vec![vec![0.0; 3 * dims.n_markers]; 3];
        let [positions, velocities, accelerations] = motion.as_mut_slice() else { panic!("three") };
        system
            .markers(at, &vec![0.0; dims.nv], &mut w, positions, velocities, accelerations)
            .expect("markers");
        for (marker, link) in
            [("fore_arm.flange", "flange"), ("fore_arm.tool", "tool"), ("turret.antenna", "antenna")]
        {
            let i = program.markers.iter().position(|m| m == marker).unwrap_or_else(|| panic!("{marker}"));
            for k in 0..3 {
                assert!((positions[3 * i + k] - poses[link].1[k]).abs() < 1e-11, "{marker}");
            }
        }
    }
}

#[test]
fn energies_of_a_robot_on_the_ground() {
    compare(&mbs_urdf::Options::default());
}

#[test]
fn energies_of_a_robot_that_floats() {
    compare(&mbs_urdf::Options { floating_base: true, dissipation: false, ..Default::default() });
}

/// What stands in the model beside the equations.
#[test]
fn names_limits_and_couplings_are_kept() {
    let text = robot("every_joint.urdf");
    let imported = import(&text, &Default::default());
    let (yaml, report) = (&imported.yaml, &imported.report);
    for line in [
        "name: every_joint",
        "description: \"every joint\"",
        "description: \"link fore-arm\"",
        "description: \"from -0.2 to 0.4 m, at most 1 m/s, at most 300 N\"",
        "grip_mimic: {type: coupling, value: grip.displacement + 2*Finger1.displacement - 0.01}",
        "  finger1_link:",
        "      tool_z: [0.9689124217106447, 0.24740395925452294, 0]",
    ] {
        assert!(yaml.contains(line), "no `{line}` in\n{yaml}");
    }
    assert!(!yaml.contains("dangle"));
    assert_eq!(report.locked, ["dangle"]);
    assert_eq!((report.links, report.bodies, report.joints, report.couplings), (12, 7, 7, 1));
    assert!((report.mass - 7.8).abs() < 1e-12 && (report.grounded - 7.75).abs() < 1e-12, "{report}");
    let renamed: Vec<&str> = report.renamed.iter().map(|(_, _, to)| to.as_str()).collect();
    assert_eq!(renamed, ["fore_arm", "finger1_link"]);
    let skipped: Vec<(&str, usize)> = report.skipped.iter().map(|(what, n)| (what.as_str(), *n)).collect();
    assert_eq!(
        skipped,
        [("collision", 1), ("gazebo", 2), ("material", 1), ("transmission", 1), ("visual", 1)]
    );
    let printed = report.to_string();
    assert!(printed.contains("link `fore-arm` → fore_arm") && printed.contains("2 gazebo"), "{printed}");

    let free = import(&text, &mbs_urdf::Options { mimicry: false, ..Default::default() });
    assert!(!free.yaml.contains("coupling"));
    assert_eq!(free.report.skipped.get("mimic"), Some(&1));
}

/// Every number of the file stands in the model as it is, where nothing is merged.
#[test]
fn numbers_round_trip() {
    let text = robot("every_joint.urdf");
    let model = model(&import(&text, &Default::default()).yaml);
    let values = Values::defaults(&model);
    let mast = model.bodies.iter().find(|b| b.name == "mast").expect("a body");
    assert_eq!(values.scalar(&mast.mass).ok(), Some(1.5));
    assert_eq!(values.vector(&mast.com).ok(), Some([0.0, 0.03, 0.2]));
    assert_eq!(values.scalar(&mast.inertia.zz).ok(), Some(0.004));
    let (axis, reference) = mast.inertia.frame.as_ref().expect("a frame of its own");
    assert_eq!(values.vector(axis).ok(), Some([1.0, 0.0, 0.0]));
    assert_eq!(values.vector(reference).ok(), Some([0.0, 0.0, -1.0]));
}

/// A loop beside the file: one degree of freedom is left, and the ends meet.
#[test]
fn loops_are_closed() {
    let text = robot("four_bar.urdf");
    let close = |text: &str| text.parse::<mbs_urdf::Loop>().expect("a loop");
    let options = mbs_urdf::Options {
        loops: vec![close("C=revolute:coupler@0.5,0,0:rocker_end:0,0,1")],
        ..Default::default()
    };
    let imported = import(&text, &options);
    assert_eq!(imported.report.loops, 1);
    let model = model(&imported.yaml);
    let program = Program::new(&model, None, &Options::default()).expect("a small program");
    let system: Interpreted = Interpreted::new(program);
    assert_eq!(
        (system.dims().nv, system.dims().n_holonomic),
        (3, 2),
        "out of the plane the equations are 0 = 0"
    );

    let fails = |loops: &[&str], words: &[&str]| {
        let options =
            mbs_urdf::Options { loops: loops.iter().map(|text| close(text)).collect(), ..Default::default() };
        let errors =
            mbs_urdf::import("r.urdf", &text, &options).expect_err("a problem").render("r.urdf", &text);
        for word in words {
            assert!(errors.contains(word), "{errors}");
        }
    };
    fails(
        &["C=revolute:couple:rocker:0,0,1", "E=fixed:rocker:rocker_end"],
        &[
            "no link `couple` for the loop `C`",
            "did you mean `coupler`?",
            "`rocker` and `rocker_end`, which are parts of one body",
        ],
    );
}

/// Turned frames on both sides, and every type of joint that can close a loop.
#[test]
fn loops_of_every_type() {
    let text = robot("every_joint.urdf");
    for kind in ["fixed", "revolute", "prismatic", "cylindrical", "spherical", "planar"] {
        let closing: mbs_urdf::Loop =
            format!("l={kind}:sledge@0.1,0,0,0.3,0,0:kite@0,0,1:0,2,1").parse().expect("a loop");
        let imported = import(&text, &mbs_urdf::Options { loops: vec![closing], ..Default::default() });
        let model = model(&imported.yaml);
        assert_eq!(model.joints.last().map(|joint| joint.cut), Some(Some(true)), "{}", imported.yaml);
    }
}
