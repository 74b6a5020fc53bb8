//! The human of 43 degrees of freedom against the recursion of the paper it comes from: 4 × 4 matrices along the
//! Denavit–Hartenberg table, typed here once more [Zhakatayev2023, Eqs. 4–9, Tables 1–2].

use mbs_codegen::kinematics::ReferencePoint;
use mbs_codegen::program::{BundleKind, Options, Program};
use mbs_engine::Interpreted;
use mbs_runtime::{At, InverseDynamics, MassMatrix, System};
use std::f64::consts::{FRAC_PI_2 as Q, PI};
use std::path::Path;

type Mat4 = [[f64; 4]; 4];
const ZERO: Mat4 = [[0.0; 4]; 4];

/// What the variable is.
#[derive(Clone, Copy, PartialEq)]
enum Variable {
    /// d = q
    Slide,
    /// d = −q
    SlideBack,
    /// θ = q + θ0
    Turn,
}
use Variable::{Slide, SlideBack, Turn};

/// Variable, θ0, d and a as multiples of a length, α, and the link with that length; 0: no link.
type Row = (Variable, f64, f64, f64, f64, usize);

const TABLE: [Row; 43] = [
    (Slide, 0.0, 0.0, 0.0, -Q, 0),
    (Slide, Q, 0.0, 0.0, -Q, 0),
    (SlideBack, 0.0, 0.0, 0.0, 0.0, 0),
    (Turn, Q, 0.0, 0.0, -Q, 0),
    (Turn, Q, 0.0, 0.0, -Q, 0),
    // legs
    (Turn, 0.0, 0.0, 1.0, Q, 1),
    (Turn, 0.0, 0.0, 0.0, -Q, 0),
    (Turn, Q, 0.0, 0.0, -Q, 0),
    (Turn, 0.0, 0.0, 1.0, 0.0, 2),
    (Turn, 0.0, 0.0, 1.0, 0.0, 3),
    (Turn, 0.0, 0.0, 0.0, Q, 0),
    (Turn, 0.0, 1.0, 0.0, -Q, 4),
    (Turn, -Q, 0.0, 1.0, 0.0, 5),
    (Turn, 0.0, 0.0, -1.0, Q, 6),
    (Turn, 0.0, 0.0, 0.0, -Q, 0),
    (Turn, Q, 0.0, 0.0, -Q, 0),
    (Turn, 0.0, 0.0, 1.0, 0.0, 7),
    (Turn, 0.0, 0.0, 1.0, 0.0, 8),
    (Turn, 0.0, 0.0, 0.0, Q, 0),
    (Turn, 0.0, 1.0, 0.0, -Q, 9),
    (Turn, -Q, 0.0, 1.0, 0.0, 10),
    // trunk
    (Turn, Q, 0.0, -1.0, 0.0, 11),
    // arms
    (Turn, -Q, 0.0, 0.0, Q, 0),
    (Turn, 0.0, 0.0, 1.0, 0.0, 12),
    (Turn, 0.0, 0.0, 0.0, -Q, 0),
    (Turn, Q, 0.0, 0.0, -Q, 0),
    (Turn, 0.0, 0.0, 1.0, 0.0, 13),
    (Turn, -Q, 0.0, 0.0, -Q, 0),
    (Turn, 0.0, 1.0, 0.0, Q, 14),
    (Turn, Q, 0.0, 0.0, Q, 0),
    (Turn, 0.0, 0.0, 1.0, 0.0, 15),
    (Turn, -Q, 0.0, 0.0, Q, 0),
    (Turn, 0.0, 0.0, -1.0, 0.0, 16),
    (Turn, 0.0, 0.0, 0.0, -Q, 0),
    (Turn, Q, 0.0, 0.0, -Q, 0),
    (Turn, 0.0, 0.0, 1.0, 0.0, 17),
    (Turn, -Q, 0.0, 0.0, -Q, 0),
    (Turn, 0.0, 1.0, 0.0, Q, 18),
    (Turn, Q, 0.0, 0.0, Q, 0),
    (Turn, 0.0, 0.0, 1.0, 0.0, 19),
    // head
    (Turn, -Q, 0.0, 0.0, Q, 0),
    (Turn, Q, 0.0, 0.0, -Q, 0),
    (Turn, Q, 0.0, -1.0, 0.0, 20),
];

/// Mass, kg, and length, cm, of links 0 (none) to 20.
const LINKS: [(f64, f64); 21] = [
    (0.0, 0.0),
    (4.5, 9.0),
    (9.5, 44.0),
    (3.7, 43.0),
    (1.2, 16.0),
    (0.2, 6.0),
    (4.5, 9.0),
    (9.5, 44.0),
    (3.7, 43.0),
    (1.2, 16.0),
    (0.2, 6.0),
    (12.3, 49.0),
    (5.8, 17.0),
    (1.9, 28.0),
    (1.3, 26.0),
    (0.5, 19.0),
    (5.8, 17.0),
    (1.9, 28.0),
    (1.3, 26.0),
    (0.5, 19.0),
    (8.0, 35.0),
];

/// The joint before joint i, both from 1; 0 is the ground (Eq. 18).
fn parent(i: usize) -> usize {
    match i {
        14 | 22 => 5,
        32 | 41 => 22,
        i => i - 1,
    }
}

fn product(a: Mat4, b: Mat4) -> Mat4 {
    std::array::from_fn(|i| std::array::from_fn(|j| (0..4).map(|k| a[i][k] * b[k][j]).sum()))
}

fn combine(terms: &[(f64, Mat4)]) -> Mat4 {
    std::array::from_fn(|i| std::array::from_fn(|j| terms.iter().map(|(c, m)| c * m[i][j]).sum()))
}

fn transposed(a: Mat4) -> Mat4 {
    std::array::from_fn(|i| std::array::from_fn(|j| a[j][i]))
}

fn trace(a: Mat4) -> f64 {
    (0..4).map(|i| a[i][i]).sum()
}

/// A_i and its first and second derivative by q_i (Eq. 4).
fn local(row: &Row, q: f64) -> [Mat4; 3] {
    let (variable, theta0, d, a, alpha, link) = *row;
    let length = LINKS[link].1 / 100.0;
    let theta = if variable == Turn { q + theta0 } else { theta0 };
    let d = match variable {
        Slide => q,
        SlideBack => -q,
        Turn => d * length,
    };
    let a = a * length;
    let ((st, ct), (sa, ca)) = (theta.sin_cos(), alpha.sin_cos());
    let value = [
        [ct, -ca * st, sa * st, a * ct],
        [st, ca * ct, -sa * ct, a * st],
        [0.0, sa, ca, d],
        [0.0, 0.0, 0.0, 1.0],
    ];
    // ∂A/∂θ = D A,  ∂A/∂d = D A with a constant D
    let mut slope = ZERO;
    match variable {
        Turn => (slope[0][1], slope[1][0]) = (-1.0, 1.0),
        Slide => slope[2][3] = 1.0,
        SlideBack => slope[2][3] = -1.0,
    }
    let first = product(slope, value);
    [value, first, product(slope, first)]
}

/// J_i of Eq. 7 for a round rod along x (of length a) or along the z axis before the joint (of length d), and m_i c_i.
fn inertia(row: &Row) -> (Mat4, [f64; 4]) {
    let (_, _, d, a, alpha, link) = *row;
    let (m, length) = (LINKS[link].0, LINKS[link].1 / 100.0);
    // From the near end of the rod to the frame, in the frame.
    let along = if d != 0.0 { [0.0, d * alpha.sin(), d * alpha.cos()] } else { [a, 0.0, 0.0] };
    // ∫ r rᵀ dm about the frame's origin: second moments of a rod of radius L/10, and m c cᵀ.
    let (thick, long) = (m * (0.1 * length) * (0.1 * length) / 4.0, m * length * length / 12.0);
    let c = along.map(|x| -x * length / 2.0);
    let mut j = ZERO;
    for i in 0..3 {
        for k in 0..3 {
            let unit = if i == k { 1.0 } else { 0.0 };
            j[i][k] = thick * (unit - along[i] * along[k]) + long * along[i] * along[k] + m * c[i] * c[k];
        }
        j[i][3] = m * c[i];
        j[3][i] = m * c[i];
    }
    j[3][3] = m;
    (if m > 0.0 { j } else { ZERO }, [m * c[0], m * c[1], m * c[2], m])
}

/// Q of Eqs. 5, 8 and 9 without external forces.
fn torques(q: &[f64], qd: &[f64], qdd: &[f64]) -> Vec<f64> {
    let n = TABLE.len();
    let unit: Mat4 = std::array::from_fn(|i| std::array::from_fn(|j| if i == j { 1.0 } else { 0.0 }));
    let (mut t, mut s, mut r) = (vec![unit; n + 1], vec![ZERO; n + 1], vec![ZERO; n + 1]);
    let locals: Vec<[Mat4; 3]> = TABLE.iter().zip(q).map(|(row, q)| local(row, *q)).collect();
    for i in 1..=n {
        let ([a, b, c], p) = (locals[i - 1], parent(i));
        let (v, w) = (qd[i - 1], qdd[i - 1]);
        t[i] = product(t[p], a);
        s[i] = combine(&[(1.0, product(s[p], a)), (v, product(t[p], b))]);
        r[i] = combine(&[
            (1.0, product(r[p], a)),
            (2.0 * v, product(s[p], b)),
            (v * v, product(t[p], c)),
            (w, product(t[p], b)),
        ]);
    }
    let (mut h, mut e) = (vec![ZERO; n + 1], vec![[0.0; 4]; n + 1]);
    let mut torques = vec![0.0; n];
    for i in (1..=n).rev() {
        let (j, mc) = inertia(&TABLE[i - 1]);
        h[i] = combine(&[(1.0, h[i]), (1.0, product(j, transposed(r[i])))]);
        for k in 0..4 {
            e[i][k] += mc[k];
        }
        let ([a, b, _], p) = (locals[i - 1], parent(i));
        let slope = product(t[p], b);
        // g = (0, 0, −9.81, 0): −gᵀ ∂T E is 9.81 times the third row.
        let weight: f64 = (0..4).map(|k| slope[2][k] * e[i][k]).sum();
        torques[i - 1] = trace(product(slope, h[i])) + 9.81 * weight;
        // H and E of the parent, seen in its frame.
        h[p] = combine(&[(1.0, h[p]), (1.0, product(a, h[i]))]);
        for k in 0..4 {
            e[p][k] += (0..4).map(|l| a[k][l] * e[i][l]).sum::<f64>();
        }
    }
    torques
}

fn human(reference: ReferencePoint) -> Interpreted {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../models/human43.yaml");
    let text = std::fs::read_to_string(path).expect("the model");
    let (model, warnings) = mbs_codegen::read("human43.yaml", &text).expect("a valid model");
    assert!(warnings.is_empty());
    let bundles = vec![BundleKind::InverseDynamics, BundleKind::MassMatrix];
    Interpreted::new(
        Program::new(&model, None, &Options { reference, bundles, ..Options::default() }).expect("a program"),
    )
}

#[test]
fn inverse_dynamics_is_that_of_the_paper_for_both_reference_points() {
    let systems = [ReferencePoint::CentreOfMass, ReferencePoint::Origin].map(human);
    let dims = systems[0].dims();
    assert_eq!((dims.nq, dims.nv), (43, 43));
    // The paper's motion q_i = sin 2πt, and the same with another phase in every joint.
    for (sample, spread) in [(0, 0.0), (7, 0.0), (31, 0.0), (90, 0.0), (13, 0.37), (57, 1.1), (77, 2.3)] {
        let phase = |i: usize| 2.0 * PI * f64::from(sample) * 0.01 + spread * i as f64;
        let q: Vec<f64> = (0..43).map(|i| phase(i).sin()).collect();
        let qd: Vec<f64> = (0..43).map(|i| 2.0 * PI * phase(i).cos()).collect();
        let qdd: Vec<f64> = (0..43).map(|i| -4.0 * PI * PI * phase(i).sin()).collect();
        let expected = torques(&q, &qd, &qdd);
        let scale = expected.iter().fold(0.0, |a: f64, x| a.max(x.abs()));
        for system in &systems {
            let mut tau = vec![0.0; 43];
            let mut w = vec![0.0; system.dims().workspace];
            let at = At { t: 0.0, z: &q, v: &qd, x: &[], u: &[] };
            system.inverse_dynamics(at, &qdd, &mut w, &mut tau).expect("torques");
            for (i, (a, b)) in tau.iter().zip(&expected).enumerate() {
                // 43 joints, each a few units in the last place of the block.
                assert!((a - b).abs() < 1e-13 * scale, "joint {}: {a} {b} of {scale}", i + 1);
            }
        }
    }
}

/// 77.5 kg stand upright: the force that holds the pelvis up is their weight, and no other coordinate needs one to keep
/// left and right in balance.
#[test]
fn the_human_stands_upright_at_zero() {
    let system = human(ReferencePoint::Origin);
    let (zero, mut w) = (vec![0.0; 43], vec![0.0; system.dims().workspace]);
    let at = At { t: 0.0, z: &zero, v: &zero, x: &[], u: &[] };
    let mut tau = vec![0.0; 43];
    system.inverse_dynamics(at, &zero, &mut w, &mut tau).expect("torques");
    assert!((tau[0] - 77.5 * 9.81).abs() < 1e-10, "{}", tau[0]);
    // Translations along the ground, and the turns about the vertical and about the axis ahead.
    for i in [1, 2, 4] {
        assert!(tau[i].abs() < 1e-12, "q{}: {}", i + 1, tau[i]);
    }
    let mut m = vec![0.0; 43 * 43];
    system.mass_matrix(at, &mut w, &mut m).expect("a mass matrix");
    assert!((m[0] - 77.5).abs() < 1e-12 && (m[44] - 77.5).abs() < 1e-12 && (m[88] - 77.5).abs() < 1e-12);
}
