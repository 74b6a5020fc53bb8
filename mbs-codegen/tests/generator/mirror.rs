//! A mirrored element moves as the mirror image of the element: with mirrored states, the accelerations of every
//! joint type mirror too, and outputs inside the element, which are seen in the mirror, are equal.

use mbs_codegen::bundle::interpret::{Arguments, run, scratch_len};
use mbs_codegen::program::{BundleKind, Options, Program};
use mbs_codegen::symbols::Group;

const ELEMENT: &str = "
elements:
  limb:
    arguments: {base: body, hook: point, k: scalar, offset: vector, sway: coordinate}
    bodies:
      b1: {mass: 2, com: [0.1, -0.2, 0.3], inertia: [1, 1.2, 1.4, 0.1, -0.2, 0.15], points: {p: [0.3, 0.2, -0.5]}, vectors: {n: [1, 2, 3]}}
      b2: {mass: 1.5, com: offset, inertia: {xx: 0.5, yy: 0.6, zz: 0.7, xy: 0.05, xz: 0.02, yz: -0.04, frame: {axis: [1, 2, 0.5], reference: [0, 1, -1]}}}
      b3: {mass: 1, com: 'cross([1, 0.2, 0], [0, 0.3, 0.1])', inertia: [0.3, 0.4, 0.5]}
      b4: {mass: 1.2, com: [0.1, 0, 0.1], inertia: [0.3, 0.4, 0.5, 0.01, 0.02, 0.03], vectors: {n: [0.3, -1, 0.4]}}
      b5: {mass: 1.1, com: [0, 0.2, 0.1], inertia: [0.3, 0.4, 0.5]}
      b6: {mass: 0.9, com: [0.2, 0.1, 0], inertia: [0.3, 0.4, 0.5, 0.01, 0.02, 0.03], points: {p: [0.2, -0.1, 0.3]}}
      b7: {mass: 1.3, com: [0.1, 0.1, 0.1], inertia: [0.3, 0.4, 0.5]}
      b8: {mass: 0.7, com: [-0.1, 0.3, 0.1], inertia: [0.3, 0.4, 0.5], points: {p: [0.1, 0.2, 0.3]}}
      b9: {mass: 0.8, com: [0.1, 0.1, -0.1], inertia: [0.3, 0.4, 0.5], points: {p: [0.1, -0.2, 0.3]}}
      b10: {mass: 0.6, com: [0.1, 0.1, -0.1], inertia: [0.3, 0.4, 0.5]}
    joints:
      j1: {type: revolute, parent: {body: base, point: [0.5, 0.7, -0.2], axis: [1, 2, 3], reference: [1, 0, 0.3]}, child: {body: b1, point: [0.1, 0.2, 0.3], axis: [0, 1, 0.2], reference: [1, 0.3, 0]}, start: 0.2}
      j2: {type: prismatic, parent: {body: b1, point: p, axis: n, reference: [0, 1, 0]}, child: {body: b2, axis: [0.3, 0.1, 1], reference: [0, 1, 0.2]}, start: {value: 0.1, rate: 2}}
      j3: {type: cardan, parent: b2, child: b3.com, axes: [[1, 0.2, 0], [0, 1, 0.3]], start: {angle1: 0.1, angle2: {rate: 0.3}}}
      j4: {type: cylindrical, parent: {body: b3, axis: [1, 1, 0.5], reference: [0, 0, 1]}, child: {body: b4, axis: [0.2, 0, 1], reference: [1, 0, 0]}}
      j5: {type: spherical, parent: {body: b4, axis: n, reference: [0.2, 0, 1]}, child: {body: b5, axis: [0, 0.1, 1], reference: [1, 0.5, 0]}, start: {orientation: [1, 0.1, 0.2, 0.3], angular_velocity: [0.1, 0.2, 0.3]}}
      j6: {type: planar, parent: b5, child: b6.p, axis: [0.2, 0.3, 1], reference: [1, 0.2, 0], start: {x: 0.1, y: 0.2, angle: 0.3}}
      j7: {type: floating, parent: {body: base, axis: [0.1, 0.2, 1], reference: [1, 0.3, 0]}, child: {body: b7, axis: [0.1, 0.5, 1], reference: [1, 0.7, 0]}, start: {position: [0.1, 0.2, 0.3], orientation: [1, 0.1, 0.2, 0.3], velocity: [1, 2, 3], angular_velocity: [0.1, 0.2, 0.3], x: 0.5}}
      j8: {type: cardan, parent: {body: b7, axis: [0.1, 0.2, 1], reference: [1, 0.3, 0]}, child: {body: b8, axis: [0.1, 0.5, 1], reference: [1, 0.7, 0]}}
      j9: {type: fixed, parent: {body: b8, point: p, axis: [0.1, 0.2, 1], reference: [1, 0.3, 0]}, child: {body: b9, axis: [0.1, 0.5, 1], reference: [1, 0.7, 0]}}
      j10: {type: spherical, parent: b9.p, child: b10}
    forces:
      spring: {type: spring, from: hook, to: b1.p, law: k*(length - 0.3) + rate*pos(b1.p).y + vel(b1.p).x}
      push: {type: force, at: b6.p, reaction: hook, value: '3*cross(omega(b4), vel(b1.p)) + k*pos(b6.p) + offset + 2*dir(b4.n) - 5*unit(vel(b6.p))'}
      pull: {type: force, at: b6.p, frame: b4, value: [1, 2 + t, '3*in(b1, pos(b6.p)).y']}
      twist: {type: torque, on: b6, reaction: b1, frame: b5, value: [0.3, -0.2, 'in(b5, omega(b6)).z']}
      turn: {type: torque, on: b5, value: '2*omega(b1) + cross(pos(b1), vel(b6)) + from(b1, [1, 2, 3]) + omega(b7)'}
      hold_y: {type: torsional_spring, coordinate: j7.y, stiffness: 5, damping: 0.3, natural_angle: 0.2}
      hold_x: {type: torsional_spring, coordinate: j7.x, law: 3*length^2 + rate + j7.y*j7.wx + rate(j7.e1)}
      drive_z: {type: joint_force, coordinate: j7.z, value: 3 + j7.x + j5.e2 + j5.wy + rate(j6.y)}
      drive_angle: {type: joint_force, coordinate: j4.angle, value: 1 + j4.displacement + j3.angle1 + sway}
    outputs:
      o1: pos(b6.p)
      o2: vel(b6.p)
      o3: acc(b6.p)
      o4: omega(b6)
      o5: alpha(b6)
      o6: dir(b1.n)
      o7: in(b4, acc(b9))
      o8: from(b4, [1, 2, 3])
      o9: '[j7.x, j7.e2, j7.wz]'
      o10: '[rate(j7.e3), accel(j7.y), accel(j5.e1)]'
      o11: '[j1.angle, accel(j4.angle), rate(j6.x)]'
";

/// Signs of the mirrored coordinates and velocities, from their names alone: positions are polar, Euler
/// parameters and angular velocities axial, everything else keeps its value.
fn sign(joint: &str, name: &str, normal: usize) -> f64 {
    let axis = |c: char| "xyz".find(c).unwrap_or(0);
    let polar = |i: usize| if i == normal { -1.0 } else { 1.0 };
    match name {
        "x" | "y" | "z" | "x_rate" | "y_rate" | "z_rate" if joint.ends_with("j7") => {
            polar(axis(name.chars().next().unwrap()))
        }
        "e1" | "e2" | "e3" => -polar(name[1..].parse::<usize>().unwrap() - 1),
        "wx" | "wy" | "wz" => -polar(axis(name.chars().nth(1).unwrap())),
        _ => 1.0,
    }
}

/// Runs a bundle of a frozen program; the results one after the other.
fn evaluate(program: &Program, name: &str, groups: &[(Group, &[f64])]) -> Vec<Vec<f64>> {
    let bundle = program.bundle(name).unwrap();
    let mut arguments = Arguments::new();
    let prepared = if name == "prepare" { Vec::new() } else { evaluate(program, "prepare", &[]).concat() };
    for (group, values) in groups {
        arguments = arguments.with(*group, values);
    }
    arguments = arguments.with(Group::Prepared, &prepared);
    let mut results: Vec<Vec<f64>> = bundle.results.iter().map(|r| vec![0.0; r.len as usize]).collect();
    let mut slices: Vec<&mut [f64]> = results.iter_mut().map(Vec::as_mut_slice).collect();
    run(bundle, &arguments, &mut vec![0.0; scratch_len(bundle)], &mut slices).unwrap();
    results
}

#[test]
fn the_mirror_image_of_every_joint_and_force_moves_as_the_original() {
    for (normal, letter) in ["x", "y", "z"].iter().enumerate() {
        let s: Vec<f64> = (0..3).map(|i| if i == normal { -1.0 } else { 1.0 }).collect();
        // Gravity has no component across the mirror: it would pull the two sides apart.
        let g: Vec<f64> = (0..3).map(|i| if i == normal { 0.0 } else { 3.0 - 5.0 * i as f64 }).collect();
        let text = format!(
            "mbs: 1\ngravity: {g:?}\n{ELEMENT}
bodies:
  ground: {{points: {{left: [0.2, 0.4, 1.1], right: [{}, {}, {}]}}}}
  extra: {{mass: 1, inertia: [1, 1, 1]}}
joints:
  swing: {{type: revolute, parent: ground, child: extra, axis: [1, 0, 0]}}
instances:
  a: {{element: limb, arguments: {{base: ground, hook: ground.left, k: 40, offset: [0.1, 0.2, 0.3], sway: swing}}}}
  b: {{element: limb, mirror: {letter}, arguments: {{base: ground, hook: ground.right, k: 40, offset: [0.1, 0.2, 0.3], sway: swing}}}}
",
            0.2 * s[0],
            0.4 * s[1],
            1.1 * s[2]
        );
        let (model, diagnostics) = mbs_codegen::yaml::read("mirror.yaml", &text);
        let model = model.unwrap_or_else(|| panic!("{}", diagnostics.render("mirror.yaml", &text)));
        let options = Options {
            freeze: true,
            bundles: vec![BundleKind::ForwardDynamics, BundleKind::Outputs],
            ..Options::default()
        };
        let program = Program::new(&model, None, &options).expect("a program of moderate size");

        // States of the left, and their images on the right.
        let mut seed = 7u64;
        let mut random = || {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 11) as f64 / (1u64 << 53) as f64 - 0.5
        };
        let mut fill = |names: &[String]| {
            let mut values = vec![0.0; names.len()];
            for i in 0..names.len() {
                if names[i].starts_with("b_") {
                    continue;
                }
                values[i] = random() + if names[i].ends_with(".e0") { 1.5 } else { 0.0 };
                if let Some(rest) = names[i].strip_prefix("a_") {
                    let twin = names.iter().position(|n| *n == format!("b_{rest}")).unwrap();
                    let (joint, name) = rest.split_once('.').unwrap();
                    values[twin] = sign(joint, name, normal) * values[i];
                }
            }
            values
        };
        let z = fill(&program.coordinates);
        let v = fill(&program.velocities);
        let state = [(Group::Time, [0.7].as_slice()), (Group::Z, z.as_slice()), (Group::V, v.as_slice())];

        // The start values are images of each other too.
        let start = evaluate(&program, "start", &[]);
        check_images(&program.coordinates, &start[0], normal, "start values");
        check_images(&program.velocities, &start[1], normal, "start rates");

        let dynamics = program.bundle("forward_dynamics").unwrap();
        let vd_index = dynamics.results.iter().position(|r| r.name == "vd").unwrap();
        let vd = evaluate(&program, "forward_dynamics", &state)[vd_index].clone();
        assert!(vd.iter().all(|x| x.is_finite()));
        check_images(&program.velocities, &vd, normal, "accelerations");

        let with_vd = [state.as_slice(), &[(Group::Vd, vd.as_slice())]].concat();
        let outputs = evaluate(&program, "outputs", &with_vd).concat();
        let mut compared = 0;
        for (i, (name, _)) in program.outputs.iter().enumerate() {
            if let Some(rest) = name.strip_prefix("a_") {
                let twin = program.outputs.iter().position(|(n, _)| *n == format!("b_{rest}")).unwrap();
                let scale = outputs[i].abs().max(1.0);
                assert!(
                    (outputs[i] - outputs[twin]).abs() < 1e-9 * scale,
                    "mirror {letter}, output {rest}: {} and {}",
                    outputs[i],
                    outputs[twin]
                );
                compared += 1;
            }
        }
        assert_eq!(compared, 33);
    }
}

fn check_images(names: &[String], values: &[f64], normal: usize, what: &str) {
    let scale = values.iter().fold(1.0f64, |m, x| m.max(x.abs()));
    for (i, full) in names.iter().enumerate() {
        let Some(rest) = full.strip_prefix("a_") else {
            continue;
        };
        let twin = names.iter().position(|n| *n == format!("b_{rest}")).unwrap();
        let (joint, name) = rest.split_once('.').unwrap();
        let image = sign(joint, name, normal) * values[i];
        assert!(
            (values[twin] - image).abs() < 1e-10 * scale,
            "mirror {normal}, {what} of {rest}: {} and {}",
            values[i],
            values[twin]
        );
    }
}
