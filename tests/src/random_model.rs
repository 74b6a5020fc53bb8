//! Random mechanisms as model files: every joint type, every kind of force, geometry in general position.
//!
//! Masses and lengths stay within a factor of 100 of each other, so that condition numbers stay moderate.
//! A seed gives the same text on every machine.

use std::fmt::Write;

/// SplitMix64: small, well mixed, the same everywhere.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// From a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    /// Sixty-four bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// Uniform in [low, high).
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// One of 0..n.
    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() % n as u64) as usize
    }

    /// True with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.uniform(0.0, 1.0) < probability
    }

    pub(crate) fn vector(&mut self, size: f64) -> [f64; 3] {
        std::array::from_fn(|_| self.uniform(-size, size))
    }

    /// A direction: often along an axis, as real models have it, otherwise anywhere.
    pub(crate) fn direction(&mut self) -> [f64; 3] {
        if self.chance(0.4) {
            let mut v = [0.0; 3];
            v[self.below(3)] = if self.chance(0.5) { 1.0 } else { -1.0 };
            return v;
        }
        loop {
            let v = self.vector(1.0);
            if v.iter().map(|x| x * x).sum::<f64>() > 0.1 {
                return v;
            }
        }
    }

    /// A direction well away from another.
    pub(crate) fn direction_across(&mut self, axis: [f64; 3]) -> [f64; 3] {
        loop {
            let v = self.direction();
            let dot: f64 = v.iter().zip(axis).map(|(a, b)| a * b).sum();
            let norm = |v: [f64; 3]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
            if (dot / (norm(v) * norm(axis))).abs() < 0.8 {
                return v;
            }
        }
    }
}

/// What a random mechanism contains.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Number of bodies.
    pub bodies: usize,
    /// Forces that have no potential: dampers, laws, applied forces, inputs.
    pub dissipative: bool,
}

const JOINTS: [&str; 8] =
    ["revolute", "prismatic", "cardan", "cylindrical", "spherical", "planar", "floating", "fixed"];

fn list(v: [f64; 3]) -> String {
    format!("[{:.6}, {:.6}, {:.6}]", v[0], v[1], v[2])
}

/// The model file of a random mechanism.
pub fn random_model(seed: u64, shape: Shape) -> String {
    let mut r = Random::new(seed);
    let mut bodies = String::new();
    let mut joints = String::new();
    let mut parameters = String::new();
    // (joint, scalar coordinate) pairs that a torque or spring may act on
    let mut coordinates: Vec<String> = Vec::new();
    for i in 0..shape.bodies {
        let parent = if i == 0 || r.chance(0.15) { None } else { Some(r.below(i)) };
        // A body that moves freely in itself hangs on ground now and then; a chain of only such bodies is dull.
        let kind = match r.below(JOINTS.len()) {
            6 if parent.is_some() => 0,
            k => k,
        };
        random_body(&mut r, i, &mut bodies, &mut parameters);
        random_joint(&mut r, i, parent, JOINTS[kind], &mut joints, &mut coordinates);
    }
    let mut out = String::new();
    let _ = writeln!(out, "mbs: 1\nname: random_{seed}\ngravity: {}", list(r.vector(10.0)));
    let _ = writeln!(out, "parameters:\n{parameters}  stiff: 40.0\n  curve: [0.5, -0.3, 0.8, 0.2]");
    if shape.dissipative {
        out.push_str("inputs:\n  push: 0.7\n  pull: {default: -0.2, hold: linear}\n");
    }
    let _ = writeln!(
        out,
        "bodies:\n  ground: {{points: {{home: {}}}}}\n{bodies}joints:\n{joints}forces:",
        list(r.vector(1.0))
    );
    random_forces(&mut r, shape, &coordinates, &mut out);
    let last = shape.bodies - 1;
    let _ = writeln!(out, "outputs:\n  tip: pos(b{last}.tip)\n  speed: norm(vel(b{last}.tip))");
    let _ = writeln!(
        out,
        "  felt: in(b{last}, acc(b{last}.tip))\n  spin: dot(omega(b{last}), dir(b{last}.mark))"
    );
    out
}

/// Principal moments of a solid box, so that the inertia is one a body can have.
fn random_body(r: &mut Random, i: usize, bodies: &mut String, parameters: &mut String) {
    let mass = r.uniform(0.3, 5.0);
    let [a, b, c] = [r.uniform(0.1, 0.8), r.uniform(0.1, 0.8), r.uniform(0.1, 0.8)];
    let _ = writeln!(parameters, "  m{i}: {mass:.4}\n  l{i}: {:.4}", r.uniform(0.2, 0.9));
    let (x, y, z) = ((b * b + c * c) / 12.0, (a * a + c * c) / 12.0, (a * a + b * b) / 12.0);
    let inertia = match r.below(3) {
        0 => format!("[m{i}*{x:.5}, m{i}*{y:.5}, m{i}*{z:.5}]"),
        1 => {
            let axis = r.direction();
            let reference = r.direction_across(axis);
            format!(
                "{{xx: {:.5}, yy: {:.5}, zz: {:.5}, frame: {{axis: {}, reference: {}}}}}",
                mass * x,
                mass * y,
                mass * z,
                list(axis),
                list(reference)
            )
        }
        // Products below a tenth of the smallest moment keep the tensor positive and possible.
        _ => {
            let s = 0.1 * mass * x.min(y).min(z);
            let p = r.vector(s);
            format!(
                "[{:.6}, {:.6}, {:.6}, {:.6}, {:.6}, {:.6}]",
                mass * (x + 0.1),
                mass * (y + 0.1),
                mass * (z + 0.1),
                p[0],
                p[1],
                p[2]
            )
        }
    };
    let com = r.vector(0.3);
    let _ = writeln!(
        bodies,
        "  b{i}:\n    mass: m{i}\n    com: [l{i}*{:.4}, {:.4}, {:.4}]",
        com[0], com[1], com[2]
    );
    let _ = writeln!(bodies, "    inertia: {inertia}");
    let _ = writeln!(
        bodies,
        "    points: {{tip: [l{i}, {:.4}, 0.1], side: {}}}",
        r.uniform(-0.3, 0.3),
        list(r.vector(0.5))
    );
    let _ = writeln!(bodies, "    vectors: {{mark: {}}}", list(r.direction()));
}

fn random_joint(
    r: &mut Random,
    i: usize,
    parent: Option<usize>,
    kind: &str,
    joints: &mut String,
    coordinates: &mut Vec<String>,
) {
    let body = parent.map_or("ground".into(), |p| format!("b{p}"));
    let point = match (parent, r.below(3)) {
        (Some(p), 0) => format!("[l{p}, 0, {:.4}]", r.uniform(-0.2, 0.2)),
        (Some(_), 1) => "tip".into(),
        _ => list(r.vector(0.8)),
    };
    let child_point = list(r.vector(0.3));
    let axis = r.direction();
    let across = r.direction_across(axis);
    // Half of the joints give a frame on each side.
    let framed = r.chance(0.5) || kind == "planar";
    let needs_axis = !matches!(kind, "spherical" | "floating" | "fixed");
    let side_axes = |r: &mut Random| {
        let axis = r.direction();
        let reference = r.direction_across(axis);
        format!(", axis: {}, reference: {}", list(axis), list(reference))
    };
    let (on_parent, on_child, on_joint) = if framed {
        (side_axes(r), side_axes(r), String::new())
    } else if kind == "cardan" {
        (String::new(), String::new(), format!("    axes: [{}, {}]\n", list(axis), list(across)))
    } else if needs_axis {
        (String::new(), String::new(), format!("    axis: {}\n", list(axis)))
    } else {
        Default::default()
    };
    let _ = writeln!(joints, "  j{i}:\n    type: {kind}");
    let _ = writeln!(joints, "    parent: {{body: {body}, point: {point}{on_parent}}}");
    let _ = writeln!(joints, "    child: {{body: b{i}, point: {child_point}{on_child}}}");
    joints.push_str(&on_joint);
    let single: &[&str] = match kind {
        "revolute" => &["angle"],
        "prismatic" => &["displacement"],
        "cardan" => &["angle1", "angle2"],
        "cylindrical" => &["displacement", "angle"],
        "planar" => &["x", "y", "angle"],
        "floating" => &["x", "y", "z"],
        _ => &[],
    };
    let mut start: Vec<String> = single
        .iter()
        .map(|c| format!("{c}: {{value: {:.4}, rate: {:.4}}}", r.uniform(-1.5, 1.5), r.uniform(-2.0, 2.0)))
        .collect();
    if matches!(kind, "spherical" | "floating") {
        let mut e: [f64; 4] = std::array::from_fn(|_| r.uniform(-1.0, 1.0));
        e[r.below(4)] += 1.2;
        start.push(format!("orientation: [{:.4}, {:.4}, {:.4}, {:.4}]", e[0], e[1], e[2], e[3]));
        start.push(format!("angular_velocity: {}", list(r.vector(2.0))));
    }
    if let [only] = single {
        let _ = writeln!(
            joints,
            "    start: {{{}}}",
            start[0].trim_start_matches(&format!("{only}: {{")).trim_end_matches('}')
        );
    } else if !start.is_empty() {
        let _ = writeln!(joints, "    start: {{{}}}", start.join(", "));
    }
    coordinates.extend(single.iter().map(|c| format!("j{i}.{c}")));
}

fn random_forces(r: &mut Random, shape: Shape, coordinates: &[String], out: &mut String) {
    let body = |r: &mut Random| format!("b{}", r.below(shape.bodies));
    let damping = |r: &mut Random| {
        if shape.dissipative { r.uniform(0.1, 2.0) } else { 0.0 }
    };
    let (a, c) = (body(r), damping(r));
    let _ = writeln!(
        out,
        "  coil: {{type: spring, from: ground.home, to: {a}.tip, stiffness: stiff, damping: {c:.4}, natural_length: 0.4}}"
    );
    if let Some(coordinate) = coordinates.first() {
        let c = damping(r);
        let _ = writeln!(
            out,
            "  twist: {{type: torsional_spring, coordinate: {coordinate}, stiffness: 12.0, damping: {c:.4}, natural_angle: 0.2}}"
        );
    }
    if !shape.dissipative {
        return;
    }
    let (a, b) = (body(r), body(r));
    let _ = writeln!(
        out,
        "  strut: {{type: spring, from: ground.home, to: {a}.side, law: 30*(length - 0.3) + 5*tanh(rate/0.2)}}"
    );
    let _ = writeln!(
        out,
        "  wind: {{type: force, at: {b}.side, value: \"-0.3*norm(vel({b}.side))*vel({b}.side) + [push, 0, sin(2*t)]\"}}"
    );
    let _ = writeln!(
        out,
        "  motor: {{type: torque, on: {a}, frame: {a}, value: \"[pull, 0.4*cos(t), spline(t, [0, 1, 2, 3], curve)]\", reaction: {b}}}"
    );
    // Springs that others move: by time, by inputs, by other coordinates and speeds.
    let other = coordinates.get(coordinates.len() / 2);
    let (by_place, by_speed) =
        other.map_or(("t".into(), "t".into()), |other| (format!("({other})^2"), format!("rate({other})")));
    let _ = writeln!(
        out,
        "  pump: {{type: spring, from: ground.home, to: {b}.tip, stiffness: 20 + 5*sin(t)*{by_place}, damping: 0.2, natural_length: 0.3 + 0.1*sin(3*t)}}"
    );
    let _ = writeln!(
        out,
        "  valve: {{type: spring, from: ground.home, to: {a}.side, stiffness: 10 + push, natural_length: 0.2 + 0.1*tanh({by_speed})}}"
    );
    let _ = writeln!(
        out,
        "  band: {{type: spring, from: ground.home, to: {b}.side, stiffness: 8 + cos(t), damping: 0.1}}"
    );
    if let Some(coordinate) = coordinates.first() {
        let _ = writeln!(
            out,
            "  muscle: {{type: torsional_spring, coordinate: {coordinate}, stiffness: 6 + cos(4*t), natural_angle: 0.1*sin(5*t) + 0.2*sin({by_place})}}"
        );
    }
    if let Some(coordinate) = coordinates.last() {
        let _ = writeln!(
            out,
            "  stop: {{type: joint_force, coordinate: {coordinate}, value: \"if({coordinate} > 0.5, -20*({coordinate} - 0.5)^1.5, 0) - step(rate({coordinate}), 0, 0, 3, 1)\"}}"
        );
    }
}

/// The mechanisms that the build script compiles: what stands where.
pub mod compiled {
    use super::{Shape, random_model};
    use mbs_codegen::program::{BundleKind, Pairs};

    /// How many.
    pub const COUNT: u64 = 30;

    /// The model file.
    pub fn text(index: u64) -> String {
        // Small ones, so that all bundles of all of them compile in seconds, and a larger last one.
        let bodies = if index + 1 == COUNT { 5 } else { [1, 2, 1, 2, 3][(index % 5) as usize] };
        let text = random_model(1000 + index, Shape { bodies, dissipative: index % 7 != 4 });
        if robotics(index) { text + "sensitivity: [m0, l0, stiff]\n" } else { text }
    }

    /// Whether it has the derivatives of inverse dynamics, the largest bundle.
    pub fn differentiated(index: u64) -> bool {
        index % 6 == 2
    }

    /// Whether it has what identification, control and optimisation ask for.
    pub fn robotics(index: u64) -> bool {
        index % 10 == 1
    }

    /// Its bundles.
    pub fn bundles(index: u64) -> Vec<BundleKind> {
        let mut bundles = BundleKind::TREE.to_vec();
        if !differentiated(index) {
            bundles.retain(|&kind| kind != BundleKind::InverseDynamicsDerivatives);
        }
        if robotics(index) {
            bundles.extend(BundleKind::ROBOTICS);
        }
        bundles
    }

    /// Whether its parameters are constants.
    pub fn frozen(index: u64) -> bool {
        index % 4 == 3
    }

    /// Whether bodies are referred to their centres of mass.
    pub fn about_com(index: u64) -> bool {
        index % 3 == 1
    }

    /// Whether pairs of joints are looped over.
    pub fn pairs(index: u64) -> Pairs {
        if index % 4 < 2 { Pairs::Rolled } else { Pairs::Auto }
    }
}
