//! What joints transmit against the motion of each body alone: the forces on it, those of its joints included, give m a, their
//! moments J α + ω × J ω. And through a joint goes nothing along its own motion but what acts there.

use mbs_codegen::model::evaluate::Values;
use mbs_codegen::model::{
    BodyId, CoordinateRef, ForceKind, Inertia, JointKind, JointPoint, MarkerRef, Model, Output, OutputValue,
    PointRef, Scalar, SpringLaw, Vector,
};
use mbs_codegen::program::{BundleKind, Options, Program};
use mbs_engine::Interpreted;
use mbs_runtime::formulation::State;
use mbs_runtime::{Ali3p, At, Constrained, Index1, Motion, Outputs, Reactions, System};
use mbs_tests::closed::{model, run, start};

type V = [f64; 3];

fn add(a: V, b: V) -> V {
    std::array::from_fn(|i| a[i] + b[i])
}
fn sub(a: V, b: V) -> V {
    std::array::from_fn(|i| a[i] - b[i])
}
fn scale(s: f64, a: V) -> V {
    a.map(|a| s * a)
}
fn dot(a: V, b: V) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}
fn cross(a: V, b: V) -> V {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}
fn norm(a: V) -> f64 {
    dot(a, a).sqrt()
}

/// A model whose outputs are what the free bodies need, in the order in which they are asked for.
struct Free {
    typed: Model,
    asked: Vec<Vector>,
}

impl Free {
    fn ask(&mut self, vector: Vector) -> usize {
        self.asked.push(vector);
        self.asked.len() - 1
    }

    fn point(&mut self, body: BodyId, point: PointRef) -> usize {
        self.ask(Vector::Position(MarkerRef { body, point }))
    }
}

/// Places of a body's quantities among the outputs.
struct Body {
    com: usize,
    acceleration: usize,
    omega: usize,
    alpha: usize,
    axes: [usize; 3],
}

/// The tensor of a body in the world, times a vector.
fn times(values: &Values, inertia: &Inertia, axes: [V; 3], v: V) -> V {
    assert!(inertia.frame.is_none());
    let at = |e: &Scalar| values.scalar(e).unwrap();
    let (xx, yy, zz) = (at(&inertia.xx), at(&inertia.yy), at(&inertia.zz));
    let (xy, xz, yz) = (at(&inertia.xy), at(&inertia.xz), at(&inertia.yz));
    let [x, y, z] = axes.map(|axis| dot(axis, v));
    let own = [xx * x + xy * y + xz * z, xy * x + yy * y + yz * z, xz * x + yz * y + zz * z];
    add(add(scale(own[0], axes[0]), scale(own[1], axes[1])), scale(own[2], axes[2]))
}

/// The largest imbalance of any body, and of any joint along its own motion, in parts of the largest force (or moment).
fn imbalance(text: &str, end: f64, h: f64) -> [f64; 3] {
    let (typed, _) =
        mbs_codegen::read("model.yaml", text).unwrap_or_else(|p| panic!("{}", p.render("model.yaml", text)));
    let mut free = Free { typed, asked: Vec::new() };
    let values = Values::defaults(&free.typed);
    let bodies: Vec<Body> = (1..free.typed.bodies.len() as u32)
        .map(BodyId)
        .map(|body| Body {
            com: free.point(body, PointRef::Com),
            acceleration: free.ask(Vector::PointAcceleration(MarkerRef { body, point: PointRef::Com })),
            omega: free.ask(Vector::AngularVelocity(body)),
            alpha: free.ask(Vector::AngularAcceleration(body)),
            axes: [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
                .map(|e| free.ask(Vector::FromFrame(body, Box::new(Vector::constant(e))))),
        })
        .collect();
    let joints = free.typed.joints.clone();
    let sides: Vec<(usize, usize)> = joints
        .iter()
        .map(|joint| {
            let point = match &joint.child.point {
                JointPoint::Point(point) => free.point(joint.child.body, *point),
                JointPoint::At(_) => panic!("a joint at coordinates"),
            };
            let axis = joint.parent.axis.clone().expect("an axis");
            (point, free.ask(Vector::FromFrame(joint.parent.body, Box::new(axis))))
        })
        .collect();
    let forces = free.typed.forces.clone();
    let places: Vec<Vec<usize>> = forces
        .iter()
        .map(|force| match &force.kind {
            ForceKind::Spring { from, to, .. } => vec![
                free.ask(Vector::Position(*from)),
                free.ask(Vector::Position(*to)),
                free.ask(Vector::PointVelocity(*from)),
                free.ask(Vector::PointVelocity(*to)),
            ],
            ForceKind::Force { at, value, .. } => {
                vec![free.ask(Vector::Position(*at)), free.ask(value.clone())]
            }
            ForceKind::JointForce { .. } => Vec::new(),
            other => panic!("{other:?}"),
        })
        .collect();
    let outputs = free.asked.iter().enumerate().map(|(i, vector)| Output {
        name: format!("v{i}"),
        unit: String::new(),
        value: OutputValue::Vector(vector.clone()),
        span: free.typed.bodies[0].span,
    });
    let mut typed = free.typed.clone();
    typed.outputs = outputs.collect();
    let options = Options { bundles: BundleKind::ALL.to_vec(), ..Options::default() };
    let model: Interpreted = Interpreted::new(Program::new(&typed, None, &options).unwrap());

    // Ten states on the way, with the accelerations and multipliers of the instant.
    let mut states: Vec<(f64, Vec<f64>, Vec<f64>)> = Vec::new();
    let mut number = 0;
    let steps = (end / h).round() as usize;
    let mut left_at_nodes: f64 = 0.0;
    let dims = model.dims();
    assert_eq!(dims.nq, dims.nv);
    let mut w = vec![0.0; dims.workspace + dims.joint_rows()];
    run(&model, Ali3p::DEFAULT, h, end, |node| {
        if number % (steps / 10).max(1) == 0 {
            states.push((node.motion.t, node.motion.z.to_vec(), node.motion.zd.to_vec()));
        }
        // What the node leaves of the equations of motion, of the largest term in them.
        let mut phi = vec![0.0; dims.rows()];
        let [all, without] = [node.lambda.to_vec(), vec![0.0; dims.rows()]].map(|lambda| {
            let mut r = vec![0.0; dims.nq];
            model.residual(node.motion, &lambda, &mut w, &mut r, &mut phi).unwrap();
            r.iter().fold(0.0, |most: f64, r| most.max(r.abs()))
        });
        left_at_nodes = left_at_nodes.max(all / without.max(1e-3));
        number += 1;
    })
    .unwrap_or_else(|error| panic!("{}: {error}", typed.name));

    let gravity = values.vector(&typed.gravity).unwrap();
    let (mut by_bodies, mut by_joints) = (0.0, 0.0);
    for (t, z, v) in &states {
        let at = At { t: *t, z, v, x: &[], u: &[] };
        let (mut zd, mut vd) = (vec![0.0; dims.nq], vec![0.0; dims.nv]);
        let mut lambda = vec![0.0; dims.joint_rows()];
        Index1::new(&model).multipliers(at, &mut w, &mut zd, &mut vd, &mut lambda).unwrap();
        let mut out = vec![0.0; dims.n_outputs];
        model.outputs(at, &vd, &mut w, &mut out).unwrap();
        let out = |place: usize| -> V { std::array::from_fn(|i| out[3 * place + i]) };
        let mut reactions = vec![0.0; 6 * dims.n_joints];
        model.reactions(at, &vd, &lambda, &mut w, &mut reactions).unwrap();
        let reaction = |joint: usize| -> [V; 2] {
            [0, 3].map(|part| std::array::from_fn(|i| reactions[6 * joint + part + i]))
        };

        // Force and moment about the centre of mass of each body, ground included.
        let mut sums = vec![[[0.0; 3]; 2]; bodies.len() + 1];
        let mut largest = [0.0; 2];
        let mut put = |body: BodyId, force: V, moment: V, point: V| {
            if body == BodyId::GROUND {
                return;
            }
            let arm = sub(point, out(bodies[body.index() - 1].com));
            let moment = add(moment, cross(arm, force));
            largest = [f64::max(largest[0], norm(force)), f64::max(largest[1], norm(moment))];
            let [f, m] = sums[body.index()];
            sums[body.index()] = [add(f, force), add(m, moment)];
        };
        for (j, (joint, (point, _))) in joints.iter().zip(&sides).enumerate() {
            let [force, torque] = reaction(j);
            put(joint.child.body, force, torque, out(*point));
            put(joint.parent.body, scale(-1.0, force), scale(-1.0, torque), out(*point));
        }
        for (force, places) in forces.iter().zip(&places) {
            match &force.kind {
                ForceKind::Spring { from, to, law: SpringLaw::Linear { stiffness, damping, natural } } => {
                    let [a, b, va, vb] = [0, 1, 2, 3].map(|i| out(places[i]));
                    let length = norm(sub(b, a));
                    let along = scale(1.0 / length, sub(b, a));
                    let number = |e: &Scalar| values.scalar(e).unwrap();
                    let pull = number(stiffness) * (length - number(natural))
                        + number(damping) * dot(along, sub(vb, va));
                    put(from.body, scale(pull, along), [0.0; 3], a);
                    put(to.body, scale(-pull, along), [0.0; 3], b);
                }
                ForceKind::Force { at, .. } => put(at.body, out(places[1]), [0.0; 3], out(places[0])),
                _ => {}
            }
        }
        for (i, body) in typed.bodies.iter().enumerate().skip(1) {
            let places = &bodies[i - 1];
            let mass = values.scalar(&body.mass).unwrap();
            let axes = places.axes.map(out);
            let (omega, alpha) = (out(places.omega), out(places.alpha));
            let spun = times(&values, &body.inertia, axes, omega);
            let moment = add(times(&values, &body.inertia, axes, alpha), cross(omega, spun));
            let force = scale(mass, sub(out(places.acceleration), gravity));
            largest = [f64::max(largest[0], norm(force)), f64::max(largest[1], norm(moment))];
            let [f, m] = sums[i];
            for (left, largest) in [sub(f, force), sub(m, moment)].into_iter().zip(largest) {
                by_bodies = f64::max(by_bodies, norm(left) / largest.max(1e-12));
            }
        }

        // Forces of the file's constraints along coordinates: those of their multipliers alone.
        let own = |name: &str| !name.contains('.');
        let names = model.program().holonomic.iter().chain(&model.program().nonholonomic);
        let of_file: Vec<f64> =
            names.zip(&lambda).map(|(name, &lambda)| if own(name) { lambda } else { 0.0 }).collect();
        let motion = Motion { t: *t, z, zd: v, zdd: &vd, u: &[] };
        let mut phi = vec![0.0; dims.rows()];
        let [with, without] = [of_file, vec![0.0; dims.rows()]].map(|lambda| {
            let mut r = vec![0.0; dims.nq];
            model.residual(motion, &lambda, &mut w, &mut r, &mut phi).unwrap();
            r
        });
        for (j, (joint, (_, axis))) in joints.iter().zip(&sides).enumerate() {
            let [force, torque] = reaction(j);
            let (through, largest) = match joint.kind {
                JointKind::Revolute => (dot(torque, out(*axis)), largest[1]),
                JointKind::Prismatic => (dot(force, out(*axis)), largest[0]),
                other => panic!("{other:?}"),
            };
            let coordinate = format!("{}.{}", joint.name, joint.coordinates[0]);
            let acting = match model.program().coordinates.iter().position(|name| *name == coordinate) {
                // A cut joint has no coordinate, and nothing acts along it.
                None => 0.0,
                Some(place) => {
                    let applied = forces.iter().filter_map(|force| match &force.kind {
                        ForceKind::JointForce { coordinate: CoordinateRef::Joint { joint, .. }, value }
                            if joint.index() == j =>
                        {
                            Some(values.scalar(value).unwrap())
                        }
                        _ => None,
                    });
                    applied.sum::<f64>() - (with[place] - without[place])
                }
            };
            by_joints = f64::max(by_joints, (through - acting).abs() / largest.max(1e-12));
        }
    }
    [by_bodies, by_joints, left_at_nodes]
}

#[test]
fn every_body_is_in_balance_with_its_joints() {
    println!(
        "largest imbalance of bodies, of joints along their motion, and of the equations of motion at nodes at h and h/2"
    );
    for (name, end, h) in [
        ("andrews", 0.01, 1e-5),
        ("bricard", 2.0, 4e-3),
        ("crank_rocker", 1.0, 4e-3),
        ("five_bar", 2.0, 4e-3),
        ("four_bar_2", 0.6, 4e-3),
        ("governor", 0.5, 1e-3),
        ("slider_crank", 3.0, 1e-2),
        ("two_point_masses", 3.0, 1e-2),
    ] {
        let path = format!("{}/../models/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).unwrap();
        let [bodies, joints, coarse] = imbalance(&text, end, h);
        let [_, _, fine] = imbalance(&text, end, 0.5 * h);
        println!("{name:18} {bodies:.1e}  {joints:.1e}  {coarse:.1e} {fine:.1e}");
        assert!(bodies < 1e-11, "{name}: {bodies:e}");
        assert!(joints < 1e-9, "{name}: {joints:e}");
        // The velocities of a node were projected after the equations of motion were solved: order 2. The governor has no
        // constraints, but dampers that make 1e−7 of the forces of 1e−10 of the motion, the tolerance of a step.
        assert!(fine < coarse / 3.5 + 2e-7, "{name}: {coarse:e} {fine:e}");
    }
}

/// An arch of three hinges under its own weight: spans 6, rises 4, bars of 5 with 1 kg each. By symmetry the crown carries the thrust
/// H alone; moments about a foot: 4 H = 1.5 m g.
#[test]
fn a_three_hinged_arch_stands() {
    let model = model(
        "
mbs: 1
name: arch
gravity: [0, -9.81, 0]
bodies:
  ground: {points: {left: [-3, 0, 0], right: [3, 0, 0]}}
  one: {mass: 1, com: [2.5, 0, 0], inertia: [0, 0, 2], points: {end: [5, 0, 0]}}
  two: {mass: 1, com: [2.5, 0, 0], inertia: [0, 0, 2], points: {end: [5, 0, 0]}}
joints:
  left: {type: revolute, parent: ground.left, child: one, axis: [0, 0, 1], start: 0.9}
  right: {type: revolute, parent: ground.right, child: two, axis: [0, 0, 1], start: 2.2}
  crown: {type: revolute, parent: one.end, child: two.end, axis: [0, 0, 1]}
",
    );
    let dims = model.dims();
    let (mut state, _) = start(&model, 0.0).unwrap();
    let view = State::of(&dims, &mut state).unwrap();
    assert!(view.zdd.iter().all(|zdd| zdd.abs() < 1e-13), "{:?}", view.zdd);
    let at = At { t: 0.0, z: view.z, v: view.zd, x: &[], u: &[] };
    let mut reactions = vec![0.0; 18];
    let mut w = vec![0.0; dims.workspace];
    model.reactions(at, view.zdd, view.lambda, &mut w, &mut reactions).unwrap();
    let (weight, thrust) = (9.81, 9.81 * 1.5 / 4.0);
    // On the children: on bar one at the left foot, on bar two at the right foot, on bar two at the crown.
    let expected = [[thrust, weight], [-thrust, weight], [thrust, 0.0]];
    for (joint, [x, y]) in expected.into_iter().enumerate() {
        let found = &reactions[6 * joint..6 * joint + 6];
        println!("{found:?}");
        let wanted = [x, y, 0.0, 0.0, 0.0, 0.0];
        assert!(found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?}, not {wanted:?}");
    }
}
