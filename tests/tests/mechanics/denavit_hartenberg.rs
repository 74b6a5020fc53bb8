//! Joints given by Denavit–Hartenberg parameters: frames are the product of their matrices, for every place of the
//! variable and for parameters changed at run time.

use mbs_codegen::program::{BundleKind, Options, Program};
use mbs_engine::Interpreted;
use mbs_runtime::{At, Markers, System};
use std::fmt::Write;

type Mat4 = [[f64; 4]; 4];

fn product(a: Mat4, b: Mat4) -> Mat4 {
    std::array::from_fn(|i| std::array::from_fn(|j| (0..4).map(|k| a[i][k] * b[k][j]).sum()))
}

/// A = R_z(θ) T_z(d) T_x(a) R_x(α), written out [Zhakatayev2023, Eq. 4].
fn matrix([theta, d, a, alpha]: [f64; 4]) -> Mat4 {
    let ((st, ct), (sa, ca)) = (theta.sin_cos(), alpha.sin_cos());
    [[ct, -ca * st, sa * st, a * ct], [st, ca * ct, -sa * ct, a * st], [0.0, sa, ca, d], [0.0, 0.0, 0.0, 1.0]]
}

fn random(seed: &mut u64) -> f64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    (*seed >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

/// Type, the four entries as the file has them, and their values from q and the parameters L and w.
type Case = (&'static str, &'static str, fn(f64, f64, f64) -> [f64; 4]);

const CASES: [Case; 10] = [
    ("revolute", "[q, L, 0.3, pi/2]", |q, l, _| [q, l, 0.3, std::f64::consts::FRAC_PI_2]),
    ("revolute", "[q + pi/2, 0, L, -pi/2]", |q, l, _| {
        [q + std::f64::consts::FRAC_PI_2, 0.0, l, -std::f64::consts::FRAC_PI_2]
    }),
    ("revolute", "[-q, -L, 2*L, w]", |q, l, w| [-q, -l, 2.0 * l, w]),
    ("revolute", "{theta: w - q, a: L, alpha: w^2}", |q, l, w| [w - q, 0.0, l, w * w]),
    ("revolute", "{theta: 0.1 + q - w - 0.3}", |q, _, w| [0.1 + q - w - 0.3, 0.0, 0.0, 0.0]),
    ("revolute", "[q, 0, 0, pi]", |q, _, _| [q, 0.0, 0.0, std::f64::consts::PI]),
    ("prismatic", "[0, q, 0, 0]", |q, _, _| [0.0, q, 0.0, 0.0]),
    ("prismatic", "[pi/2, -q, L, 0.7]", |q, l, _| [std::f64::consts::FRAC_PI_2, -q, l, 0.7]),
    ("prismatic", "{theta: w, d: L - (q - w), a: 0.1, alpha: w}", |q, l, w| [w, l - (q - w), 0.1, w]),
    ("prismatic", "{d: -(0.2 + q), alpha: -pi/2}", |q, _, _| {
        [0.0, -(0.2 + q), 0.0, -std::f64::consts::FRAC_PI_2]
    }),
];

#[test]
fn frames_are_products_of_matrices() {
    let mut text = String::from("mbs: 1\nparameters: {L: 0.5, w: 0.3}\nbodies:\n");
    for i in 1..=CASES.len() {
        let points = "points: {x: [1, 0, 0], y: [0, 1, 0]}";
        let _ = writeln!(text, "  b{i}: {{mass: 1, inertia: [1, 1, 1], {points}}}");
    }
    text.push_str("joints:\n");
    for (i, (kind, entries, _)) in CASES.iter().enumerate() {
        let parent = if i == 0 { "ground".into() } else { format!("b{i}") };
        let _ =
            writeln!(text, "  j{i}: {{type: {kind}, parent: {parent}, child: b{}, dh: {entries}}}", i + 1);
    }
    text.push_str("outputs:\n");
    for i in 1..=CASES.len() {
        let _ = writeln!(text, "  o{i}: pos(b{i})");
    }
    let (model, _) =
        mbs_codegen::read("dh.yaml", &text).unwrap_or_else(|e| panic!("{}", e.render("dh.yaml", &text)));
    let bundles = vec![BundleKind::Markers];
    let program =
        Program::new(&model, None, &Options { bundles, ..Options::default() }).expect("a small program");
    let names = program.markers.clone();
    let mut system: Interpreted = Interpreted::new(program);
    let dims = system.dims();
    let mut seed = 0x0bad_5eed_1234_5678;
    for _ in 0..10 {
        let (l, w) = (random(&mut seed), random(&mut seed));
        system.set_parameter("L", l).expect("a parameter");
        system.set_parameter("w", w).expect("a parameter");
        let z: Vec<f64> = (0..dims.nq).map(|_| 2.0 * random(&mut seed)).collect();
        let v = vec![0.0; dims.nv];
        let mut motion = vec![vec![0.0; 3 * dims.n_markers]; 3];
        let [positions, velocities, accelerations] = motion.as_mut_slice() else { panic!("three") };
        let at = At { t: 0.0, z: &z, v: &v, x: &[], u: &[] };
        system
            .markers(at, &v, &mut vec![0.0; dims.workspace], positions, velocities, accelerations)
            .expect("markers");
        let mut frame = matrix([0.0; 4]);
        for (i, (_, entries, values)) in CASES.iter().enumerate() {
            frame = product(frame, matrix(values(z[i], l, w)));
            for (point, local) in [("x", [1.0, 0.0, 0.0, 1.0]), ("y", [0.0, 1.0, 0.0, 1.0])] {
                let marker = format!("b{}.{point}", i + 1);
                let m = names.iter().position(|name| *name == marker).unwrap_or_else(|| panic!("{marker}"));
                for k in 0..3 {
                    let expected: f64 = (0..4).map(|j| frame[k][j] * local[j]).sum();
                    // Ten joints of lengths about one: a few units in the last place each.
                    assert!((positions[3 * m + k] - expected).abs() < 1e-13, "{entries}: {marker}");
                }
            }
        }
    }
}

/// `dh` is a way of writing: the same joint with frames written out is the same, also in the mirror.
#[test]
fn a_mirror_image_is_that_of_the_frames_written_out() {
    let part = |joints: &str| {
        format!(
            "mbs: 1\nparameters: {{L: 0.5}}\nelements:\n  arm:\n    arguments: {{base: body}}\n    bodies: {{link: {{mass: 1, \
             inertia: [1, 1, 1]}}, rod: {{mass: 1, inertia: [1, 1, 1]}}}}\n    joints:\n{joints}\ninstances:\n  left: {{element: arm, \
             arguments: {{base: ground}}}}\n  right: {{element: arm, arguments: {{base: ground}}, mirror: y}}\n"
        )
    };
    let short = part(
        "      turn: {type: revolute, parent: base, child: link, dh: [q, L, 2*L, -pi/2]}\n      \
         slide: {type: prismatic, parent: link, child: rod, dh: [pi/2, -q, 0, pi]}",
    );
    let long = part(
        "      turn: {type: revolute, parent: {body: base, point: [0, 0, L], axis: [0, 0, 1], reference: [1, 0, 0]}, \
         child: {body: link, point: [-(2*L), 0, 0], axis: [0, -1, 0], reference: [1, 0, 0]}}\n      \
         slide: {type: prismatic, parent: {body: link, point: [0, 0, 0], axis: [0, 0, -1], reference: [0, 1, 0]}, \
         child: {body: rod, point: [0, 0, 0], axis: [0, 0, 1], reference: [1, 0, 0]}}",
    );
    let [short, long] = [short, long].map(|text| {
        let (model, _) =
            mbs_codegen::read("m.yaml", &text).unwrap_or_else(|e| panic!("{}", e.render("m.yaml", &text)));
        model
    });
    for (a, b) in short.joints.iter().zip(&long.joints) {
        assert_eq!((&a.name, &a.parent, &a.child), (&b.name, &b.parent, &b.child));
    }
    assert_eq!(short.joints.len(), 4);
}
