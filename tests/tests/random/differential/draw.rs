//! Random mechanisms with loops, constraints of every kind, redundant and nonholonomic ones, springs of every kind and drives, that stand
//! and move as their constraints say.

#![allow(clippy::needless_range_loop, reason = "indices of matrices")]

use super::description::*;
use super::oracle::{Moving, Oracle};
use super::vector::{M3, V3, add, apply, dot, norm, of_quaternion, product, scale, sub, transposed, unit};
use mbs_tests::random_model::Random;

/// Rows of unit length that are nearer to dependent than this would cost digits of the comparison.
const DOUBTFUL: f64 = 0.02;

const KINDS: [Kind; 8] = [
    Kind::Revolute,
    Kind::Prismatic,
    Kind::Cardan,
    Kind::Cylindrical,
    Kind::Spherical,
    Kind::Planar,
    Kind::Floating,
    Kind::Fixed,
];

/// A mechanism and the motion of its bodies at the start.
pub(super) struct Drawn {
    pub mechanism: Mechanism,
    pub at: Vec<Moving>,
    /// Rows beyond those that are independent.
    pub redundant: usize,
}

/// A mechanism that moves.
pub(super) fn draw(seed: u64) -> Drawn {
    let mut random = Random::new(seed ^ 0x0d1f_f000);
    loop {
        let mut draft = Draft::new(&mut random, seed);
        draft.closures();
        draft.constraints();
        draft.forces();
        let mut mechanism = draft.mechanism;
        let oracle = Oracle { mechanism: &mechanism };
        let mut at = oracle.at_rest();
        for m in &mut at {
            (m.v, m.w) = (vector(&mut random, 1.0), vector(&mut random, 1.0));
        }
        let missing = oracle.project(0.0, &mut at);
        let solution = oracle.solve(0.0, &at);
        let fast = at.iter().any(|m| norm(m.v) > 4.0 || norm(m.w) > 6.0);
        let moves = solution.freedoms > 0 && solution.contradiction < 1e-9 && missing < 1e-9;
        if fast || !moves || solution.least_pivot < DOUBTFUL {
            continue;
        }
        Oracle::rates(&mut mechanism, &at);
        return Drawn { mechanism, at, redundant: solution.redundant };
    }
}

fn vector(r: &mut Random, size: f64) -> V3 {
    std::array::from_fn(|_| r.uniform(-size, size))
}

/// A direction: often along an axis, as real models have it.
fn direction(r: &mut Random) -> V3 {
    if r.chance(0.4) {
        let mut v = [0.0; 3];
        v[r.below(3)] = if r.chance(0.5) { 1.0 } else { -1.0 };
        return v;
    }
    loop {
        let v = vector(r, 1.0);
        if norm(v) > 0.3 {
            return v;
        }
    }
}

fn axes(r: &mut Random) -> (V3, V3) {
    loop {
        let (axis, reference) = (direction(r), direction(r));
        if dot(unit(axis), unit(reference)).abs() < 0.8 {
            return (axis, reference);
        }
    }
}

fn quaternion(r: &mut Random) -> [f64; 4] {
    loop {
        let e: [f64; 4] = std::array::from_fn(|_| r.uniform(-1.0, 1.0));
        let length = e.iter().map(|x| x * x).sum::<f64>().sqrt();
        if length > 0.3 {
            return e.map(|x| x / length);
        }
    }
}

fn constant(constant: f64) -> Signal {
    Signal { constant, slope: 0.0, amplitude: 0.0, frequency: 0.0 }
}

struct Draft<'a> {
    r: &'a mut Random,
    mechanism: Mechanism,
    places: Vec<Place>,
    /// All axes along z.
    flat: bool,
}

impl<'a> Draft<'a> {
    fn new(r: &'a mut Random, seed: u64) -> Self {
        let flat = seed % 5 == 4;
        let count = if flat { 3 } else { 1 + (seed % 3) as usize };
        let gravity = vector(r, 10.0);
        let mechanism = Mechanism {
            gravity,
            bodies: Vec::new(),
            joints: Vec::new(),
            constraints: Vec::new(),
            forces: Vec::new(),
        };
        let mut draft = Draft { r, mechanism, places: Vec::new(), flat };
        for i in 0..count {
            draft.body(i, seed);
        }
        draft.places = draft.mechanism.places();
        draft
    }

    fn body(&mut self, i: usize, seed: u64) {
        let r = &mut *self.r;
        let mass = r.uniform(0.3, 5.0);
        // A solid box in any axes.
        let [a, b, c] = [(); 3].map(|()| r.uniform(0.2, 0.8));
        let moments = [b * b + c * c, a * a + c * c, a * a + b * b].map(|x| mass * x / 12.0);
        let turn: M3 = of_quaternion(quaternion(r));
        let diagonal: M3 =
            std::array::from_fn(|i| std::array::from_fn(|j| if i == j { moments[i] } else { 0.0 }));
        let mut inertia = product(product(turn, diagonal), transposed(turn));
        for i in 0..3 {
            for j in 0..i {
                inertia[i][j] = inertia[j][i];
            }
        }
        let points = [(); 3].map(|()| vector(r, 0.6));
        self.mechanism.bodies.push(Body { mass, com: vector(r, 0.3), inertia, points });

        let parent = if i == 0 || r.chance(0.2) { None } else { Some(r.below(i)) };
        let kind = match KINDS[(seed as usize + 3 * i + r.below(3)) % KINDS.len()] {
            _ if self.flat => {
                if r.chance(0.2) {
                    Kind::Planar
                } else {
                    Kind::Revolute
                }
            }
            Kind::Fixed if i == 0 => Kind::Spherical,
            Kind::Floating if parent.is_some() => Kind::Revolute,
            kind => kind,
        };
        let mut side = |body| {
            let (axis, reference) = if self.flat { ([0.0, 0.0, 1.0], [1.0, 0.0, 0.0]) } else { axes(r) };
            Side { body, point: vector(r, 0.6), axis, reference }
        };
        let (parent, child) = (side(parent), side(Some(i)));
        let start = kind.coordinates().iter().map(|_| [r.uniform(-1.0, 1.0), 0.0]).collect();
        let turn = (quaternion(r), [0.0; 3]);
        self.mechanism.joints.push(Joint { kind, parent, child, start, turn });
    }

    fn place(&self, body: BodyId) -> Place {
        body.map_or(GROUND, |i| self.places[i])
    }

    /// Two that may move against each other.
    fn pair(&mut self) -> (BodyId, BodyId) {
        let count = self.mechanism.bodies.len();
        let a = self.r.below(count);
        let b = match self.r.below(count + 1) {
            b if b == a || b == count => None,
            b => Some(b),
        };
        if self.r.chance(0.5) { (Some(a), b) } else { (b, Some(a)) }
    }

    fn mark(&mut self, body: BodyId) -> Mark {
        Mark { body, at: vector(self.r, 0.6) }
    }

    fn arrow(&mut self, body: BodyId) -> Arrow {
        let along = if self.flat { add(vector(self.r, 0.1), [0.0, 1.0, 0.0]) } else { vector(self.r, 1.0) };
        Arrow { body, along: if norm(along) < 0.2 { [1.0, 0.2, 0.3] } else { along } }
    }

    fn world(&self, m: Mark) -> V3 {
        self.place(m.body).point(m.at)
    }

    fn pointing(&self, a: Arrow) -> V3 {
        apply(self.place(a.body).rotation, unit(a.along))
    }

    /// The point of a body that is somewhere in the world.
    fn at(&self, body: BodyId, world: V3) -> Mark {
        let place = self.place(body);
        Mark { body, at: apply(transposed(place.rotation), sub(world, place.origin)) }
    }

    fn signal(&mut self, value: f64, size: f64) -> Signal {
        if self.r.chance(0.5) {
            return constant(value);
        }
        let slope = if self.r.chance(0.3) { self.r.uniform(-size, size) } else { 0.0 };
        Signal {
            constant: value,
            slope,
            amplitude: self.r.uniform(-size, size),
            frequency: self.r.uniform(0.5, 4.0),
        }
    }

    fn coordinate(&mut self) -> Option<Coordinate> {
        let joints = self.mechanism.joints.iter().take(self.mechanism.bodies.len()).enumerate();
        let all: Vec<Coordinate> = joints
            .flat_map(|(joint, j)| (0..j.start.len()).map(move |index| Coordinate { joint, index }))
            .collect();
        if all.is_empty() { None } else { Some(all[self.r.below(all.len())]) }
    }

    fn value(&self, c: Coordinate) -> f64 {
        self.mechanism.joints[c.joint].start[c.index][0]
    }

    /// Joints beyond the tree; sometimes a second hinge on the axis of the first, which adds nothing.
    fn closures(&mut self) {
        for _ in 0..self.r.below(3) {
            let (parent, child) = self.pair();
            let kind =
                if self.flat { Kind::Revolute } else { KINDS[[0, 2, 2, 3, 4, 4, 5, 1][self.r.below(8)]] };
            let (axis, reference) = if self.flat { ([0.0, 0.0, 1.0], [1.0, 0.0, 0.0]) } else { axes(self.r) };
            let on = Side { body: parent, point: vector(self.r, 0.6), axis, reference };
            let world = product(self.place(parent).rotation, on.frame());
            let in_child = product(transposed(self.place(child).rotation), world);
            let column = |k: usize| -> V3 { std::array::from_fn(|i| in_child[i][k]) };
            let (axis, reference) =
                if kind == Kind::Cardan { (column(0), column(2)) } else { (column(2), column(0)) };
            let point = self.at(child, self.place(parent).point(on.point)).at;
            let to = Side { body: child, point, axis, reference };
            let joint = Joint {
                kind,
                parent: on,
                child: to,
                start: Vec::new(),
                turn: ([1.0, 0.0, 0.0, 0.0], [0.0; 3]),
            };
            self.mechanism.joints.push(joint);
            if kind == Kind::Revolute && self.r.chance(0.5) {
                let along = self.r.uniform(0.1, 0.4);
                let mut second = self.mechanism.joints[self.mechanism.joints.len() - 1].clone();
                for side in [&mut second.parent, &mut second.child] {
                    side.point = add(side.point, scale(along, unit(side.axis)));
                }
                self.mechanism.joints.push(second);
            }
        }
    }

    fn constraints(&mut self) {
        for _ in 0..self.r.below(3) {
            let kind = self.r.below(11);
            self.constraint(kind);
        }
    }

    fn constraint(&mut self, kind: usize) {
        let (a, b) = self.pair();
        let (from, to) = (self.mark(a), self.mark(b));
        let (along, other) = (self.arrow(a), self.arrow(b));
        let apart = sub(self.world(to), self.world(from));
        let added = match kind {
            0 => {
                let value = self.signal(norm(apart), 0.2);
                Constraint::Distance { from, to, value }
            }
            1 => {
                // The same twice, in different words.
                let distance = Constraint::Distance { from, to, value: constant(norm(apart)) };
                self.mechanism.constraints.push(distance);
                Constraint::Square { from, to, square: dot(apart, apart) }
            }
            2 => {
                let cosine = dot(self.pointing(along), self.pointing(other));
                if cosine.abs() > 0.9 {
                    return;
                }
                let value = self.signal(cosine.acos(), 0.1);
                Constraint::Angle { from: along, to: other, value }
            }
            3 => Constraint::Coincident { from, to: self.at(b, self.world(from)) },
            4 => {
                let n = self.pointing(along);
                let aside = vector(self.r, 0.5);
                let across = sub(aside, scale(dot(aside, n), n));
                Constraint::OnPlane { point: to, at: self.at(a, add(self.world(to), across)), normal: along }
            }
            5 => {
                let back = scale(self.r.uniform(-0.5, 0.5), self.pointing(along));
                Constraint::OnLine { point: to, at: self.at(a, add(self.world(to), back)), along }
            }
            6 => {
                let (Some(first), Some(second)) = (self.coordinate(), self.coordinate()) else { return };
                let factors = [1.0, self.r.uniform(-1.5, 1.5)];
                let sum = factors[0] * self.value(first) + factors[1] * self.value(second);
                let value = self.signal(sum, 0.1);
                Constraint::Coupling { terms: vec![(first, factors[0]), (second, factors[1])], value }
            }
            7 => {
                let Some(coordinate) = self.coordinate() else { return };
                let value = self.signal(self.value(coordinate), 0.5);
                Constraint::Motion { coordinate, value }
            }
            8 => {
                let bend = self.r.uniform(-0.5, 0.5);
                let value = dot(apart, self.pointing(along)) + bend * dot(apart, apart);
                let value = self.signal(value, 0.1);
                Constraint::Curved { from, to, along, bend, value }
            }
            9 => {
                let point = Mark { body: a.or(b), ..from };
                let value = self.signal(0.0, 0.3);
                Constraint::Blade { point, along, value }
            }
            _ => {
                let Some(body) = a.or(b) else { return };
                let factor = self.r.uniform(-1.5, 1.5);
                Constraint::Spin {
                    body,
                    about: other,
                    point: Mark { body: Some(body), ..from },
                    along,
                    factor,
                }
            }
        };
        self.mechanism.constraints.push(added);
    }

    fn forces(&mut self) {
        for _ in 0..2 + self.r.below(4) {
            let (a, b) = self.pair();
            let (from, to) = (self.mark(a), self.mark(b));
            let force = match self.r.below(6) {
                0 => {
                    let length = norm(sub(self.world(to), self.world(from)));
                    if length < 0.1 {
                        continue;
                    }
                    let (stiffness, natural) = (self.signal(40.0, 5.0), self.signal(0.7 * length, 0.1));
                    Force::Spring { from, to, stiffness, damping: self.r.uniform(0.0, 2.0), natural }
                }
                1 => {
                    let length = norm(sub(self.world(to), self.world(from)));
                    if length < 0.1 {
                        continue;
                    }
                    Force::Law { from, to, linear: 20.0, cubic: 30.0, natural: 0.8 * length, damping: 0.5 }
                }
                2 => {
                    let Some(coordinate) = self.coordinate() else { continue };
                    let natural = self.signal(0.2, 0.3);
                    Force::Torsional {
                        coordinate,
                        stiffness: self.r.uniform(1.0, 20.0),
                        damping: 0.3,
                        natural,
                    }
                }
                3 => Force::Push {
                    at: from,
                    value: vector(self.r, 5.0),
                    amplitude: vector(self.r, 2.0),
                    frequency: self.r.uniform(0.5, 5.0),
                    drag: self.r.uniform(0.0, 0.5),
                    frame: if self.r.chance(0.5) { b } else { None },
                    reaction: self.r.chance(0.5).then_some(to),
                },
                4 => {
                    let Some(on) = a.or(b) else { continue };
                    let other = if a == Some(on) { b } else { a };
                    Force::Torque {
                        on,
                        value: vector(self.r, 2.0),
                        damping: self.r.uniform(0.0, 0.3),
                        frame: if self.r.chance(0.5) { other } else { None },
                        reaction: self.r.chance(0.5).then_some(other),
                    }
                }
                _ => {
                    let Some(coordinate) = self.coordinate() else { continue };
                    let value = self.signal(1.0, 2.0);
                    Force::Along { coordinate, value, cubic: self.r.uniform(0.0, 3.0) }
                }
            };
            self.mechanism.forces.push(force);
        }
    }
}
