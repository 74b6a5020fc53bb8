//! A mechanism as typed numbers: what the model file and the oracle are both written from.
//!
//! Every number is known by what it measures. So a description can be told in other units, and seen in a mirror.

use super::vector::{
    M3, V3, about_z, add, apply, cross, dot, of_quaternion, product, scale, sub, transposed, unit,
};

/// None is ground.
pub(super) type BodyId = Option<usize>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Fixed,
    Revolute,
    Prismatic,
    Cardan,
    Cylindrical,
    Spherical,
    Planar,
    Floating,
}

impl Kind {
    /// Its coordinates: name, whether it is a length, its sign in a mirror.
    pub(super) fn coordinates(self) -> &'static [(&'static str, bool, f64)] {
        match self {
            Kind::Fixed => &[],
            Kind::Revolute => &[("angle", false, -1.0)],
            Kind::Prismatic => &[("displacement", true, 1.0)],
            Kind::Cardan => &[("angle1", false, -1.0), ("angle2", false, -1.0)],
            Kind::Cylindrical => &[("displacement", true, 1.0), ("angle", false, -1.0)],
            Kind::Planar => &[("x", true, 1.0), ("y", true, -1.0), ("angle", false, -1.0)],
            Kind::Spherical => &[],
            Kind::Floating => &[("x", true, 1.0), ("y", true, -1.0), ("z", true, 1.0)],
        }
    }

    /// Whether it has Euler parameters.
    pub(super) fn turns_freely(self) -> bool {
        matches!(self, Kind::Spherical | Kind::Floating)
    }
}

/// A joint's frame on a body: z along the axis, x along the reference.
#[derive(Clone, Copy, Debug)]
pub(super) struct Side {
    pub body: BodyId,
    pub point: V3,
    pub axis: V3,
    pub reference: V3,
}

impl Side {
    pub(super) fn frame(&self) -> M3 {
        let z = unit(self.axis);
        let x = unit(sub(self.reference, scale(dot(self.reference, z), z)));
        transposed([x, cross(z, x), z])
    }
}

#[derive(Clone, Debug)]
pub(super) struct Joint {
    pub kind: Kind,
    pub parent: Side,
    pub child: Side,
    /// Coordinates at the start, and their rates.
    pub start: Vec<[f64; 2]>,
    /// Orientation and angular velocity in the child's joint frame.
    pub turn: ([f64; 4], V3),
}

/// What Rz(0) and Rz(0) leave of a cardan joint: the child's z along the parent's x, and the other way round.
pub(super) const CARDAN: M3 = [[0.0, 0.0, 1.0], [0.0, -1.0, 0.0], [1.0, 0.0, 0.0]];

impl Joint {
    /// Displacement and rotation of the child's joint frame in that of the parent.
    pub(super) fn motion(&self) -> (V3, M3) {
        let q = |i: usize| self.start.get(i).map_or(0.0, |q| q[0]);
        let one = about_z(0.0);
        match self.kind {
            Kind::Fixed => ([0.0; 3], one),
            Kind::Revolute => ([0.0; 3], about_z(q(0))),
            Kind::Prismatic => ([0.0, 0.0, q(0)], one),
            Kind::Cardan => ([0.0; 3], product(product(about_z(q(0)), CARDAN), about_z(q(1)))),
            Kind::Cylindrical => ([0.0, 0.0, q(0)], about_z(q(1))),
            Kind::Planar => ([q(0), q(1), 0.0], about_z(q(2))),
            Kind::Spherical => ([0.0; 3], of_quaternion(self.turn.0)),
            Kind::Floating => ([q(0), q(1), q(2)], of_quaternion(self.turn.0)),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Body {
    pub mass: f64,
    pub com: V3,
    /// About the centre of mass, body axes.
    pub inertia: M3,
    /// What is watched.
    pub points: [V3; 3],
}

/// A point of a body.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    pub body: BodyId,
    pub at: V3,
}

/// A direction of a body, of any length.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrow {
    pub body: BodyId,
    pub along: V3,
}

/// A coordinate of a joint of the tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Coordinate {
    pub joint: usize,
    pub index: usize,
}

/// constant + slope t + amplitude sin(frequency t)
#[derive(Clone, Copy, Debug)]
pub(super) struct Signal {
    pub constant: f64,
    pub slope: f64,
    pub amplitude: f64,
    pub frequency: f64,
}

#[derive(Clone, Debug)]
pub(super) enum Constraint {
    Distance {
        from: Mark,
        to: Mark,
        value: Signal,
    },
    /// |to − from|² = square
    Square {
        from: Mark,
        to: Mark,
        square: f64,
    },
    /// a · b = cos(value)
    Angle {
        from: Arrow,
        to: Arrow,
        value: Signal,
    },
    Coincident {
        from: Mark,
        to: Mark,
    },
    OnPlane {
        point: Mark,
        at: Mark,
        normal: Arrow,
    },
    OnLine {
        point: Mark,
        at: Mark,
        along: Arrow,
    },
    /// Σ factor q = value
    Coupling {
        terms: Vec<(Coordinate, f64)>,
        value: Signal,
    },
    Motion {
        coordinate: Coordinate,
        value: Signal,
    },
    /// d · a + bend d · d = value, d = to − from
    Curved {
        from: Mark,
        to: Mark,
        along: Arrow,
        bend: f64,
        value: Signal,
    },
    /// velocity · a = value
    Blade {
        point: Mark,
        along: Arrow,
        value: Signal,
    },
    /// ω · a = factor velocity · b
    Spin {
        body: usize,
        about: Arrow,
        point: Mark,
        along: Arrow,
        factor: f64,
    },
}

#[derive(Clone, Debug)]
pub(super) enum Force {
    Spring {
        from: Mark,
        to: Mark,
        stiffness: Signal,
        damping: f64,
        natural: Signal,
    },
    /// linear (l − natural) + cubic (l − natural)³ + damping ldot
    Law {
        from: Mark,
        to: Mark,
        linear: f64,
        cubic: f64,
        natural: f64,
        damping: f64,
    },
    Torsional {
        coordinate: Coordinate,
        stiffness: f64,
        damping: f64,
        natural: Signal,
    },
    /// value + amplitude sin(frequency t), in the axes of `frame`, less drag |v| v
    Push {
        at: Mark,
        value: V3,
        amplitude: V3,
        frequency: f64,
        drag: f64,
        frame: BodyId,
        reaction: Option<Mark>,
    },
    /// value in the axes of `frame`, less damping (ω of `on` in these axes)
    Torque {
        on: usize,
        value: V3,
        damping: f64,
        frame: BodyId,
        reaction: Option<BodyId>,
    },
    /// value − cubic q³
    Along {
        coordinate: Coordinate,
        value: Signal,
        cubic: f64,
    },
}

/// Joint i < bodies.len() carries body i; the others close loops.
#[derive(Clone, Debug)]
pub(super) struct Mechanism {
    pub gravity: V3,
    pub bodies: Vec<Body>,
    pub joints: Vec<Joint>,
    pub constraints: Vec<Constraint>,
    pub forces: Vec<Force>,
}

/// Where a body's frame is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub origin: V3,
    pub rotation: M3,
}

pub(super) const GROUND: Place =
    Place { origin: [0.0; 3], rotation: [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]] };

impl Place {
    pub(super) fn point(&self, at: V3) -> V3 {
        add(self.origin, apply(self.rotation, at))
    }
}

/// In how many metres, kilograms and seconds the numbers of a unit model are meant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Units {
    pub length: f64,
    pub mass: f64,
    pub time: f64,
}

/// What a change of description does to numbers: the unit of each, and the reflection of the world.
struct Change {
    units: Units,
    mirror: Option<V3>,
}

impl Change {
    fn of(&self, x: f64, length: i32, mass: i32, time: i32) -> f64 {
        let Units { length: l, mass: m, time: t } = self.units;
        x * l.powi(length) * m.powi(mass) * t.powi(time)
    }

    fn polar(&self, v: V3) -> V3 {
        match self.mirror {
            None => v,
            Some(n) => sub(v, scale(2.0 * dot(n, v), n)),
        }
    }

    fn axial(&self, v: V3) -> V3 {
        if self.mirror.is_some() { scale(-1.0, self.polar(v)) } else { v }
    }

    fn sign(&self) -> f64 {
        if self.mirror.is_some() { -1.0 } else { 1.0 }
    }

    fn vector(&self, v: V3, length: i32, mass: i32, time: i32) -> V3 {
        self.polar(v).map(|x| self.of(x, length, mass, time))
    }

    fn mark(&self, m: Mark) -> Mark {
        Mark { at: self.vector(m.at, 1, 0, 0), ..m }
    }

    fn arrow(&self, a: Arrow) -> Arrow {
        Arrow { along: self.polar(a.along), ..a }
    }

    fn signal(&self, s: Signal, length: i32, mass: i32, time: i32) -> Signal {
        Signal {
            constant: self.of(s.constant, length, mass, time),
            slope: self.of(s.slope, length, mass, time - 1),
            amplitude: self.of(s.amplitude, length, mass, time),
            frequency: self.of(s.frequency, 0, 0, -1),
        }
    }

    /// Of something along a coordinate: its sign and its power of length.
    fn along(&self, mechanism: &Mechanism, c: Coordinate) -> (f64, i32) {
        let (_, length, sign) = mechanism.joints[c.joint].kind.coordinates()[c.index];
        (if self.mirror.is_some() { sign } else { 1.0 }, i32::from(length))
    }

    fn side(&self, s: Side) -> Side {
        Side {
            point: self.vector(s.point, 1, 0, 0),
            axis: self.polar(s.axis),
            reference: self.polar(s.reference),
            ..s
        }
    }

    fn joint(&self, j: &Joint) -> Joint {
        let start = j.start.iter().zip(j.kind.coordinates()).map(|(q, &(_, length, sign))| {
            let sign = if self.mirror.is_some() { sign } else { 1.0 };
            let length = i32::from(length);
            [sign * self.of(q[0], length, 0, 0), sign * self.of(q[1], length, 0, -1)]
        });
        let turned = |v: V3| if self.mirror.is_some() { [-v[0], v[1], -v[2]] } else { v };
        let ([e0, e1, e2, e3], w) = j.turn;
        let [e1, e2, e3] = turned([e1, e2, e3]);
        Joint {
            kind: j.kind,
            parent: self.side(j.parent),
            child: self.side(j.child),
            start: start.collect(),
            turn: ([e0, e1, e2, e3], turned(w).map(|x| self.of(x, 0, 0, -1))),
        }
    }

    fn body(&self, b: &Body) -> Body {
        // S I S, column by column
        let rows = b.inertia.map(|row| self.polar(row));
        let inertia = transposed(transposed(rows).map(|column| self.polar(column)));
        Body {
            mass: self.of(b.mass, 0, 1, 0),
            com: self.vector(b.com, 1, 0, 0),
            inertia: inertia.map(|row| row.map(|x| self.of(x, 2, 1, 0))),
            points: b.points.map(|p| self.vector(p, 1, 0, 0)),
        }
    }

    fn signed(signal: Signal, sign: f64) -> Signal {
        Signal {
            constant: sign * signal.constant,
            slope: sign * signal.slope,
            amplitude: sign * signal.amplitude,
            ..signal
        }
    }

    fn constraint(&self, mechanism: &Mechanism, c: &Constraint) -> Constraint {
        use Constraint::*;
        match c.clone() {
            Distance { from, to, value } => {
                Distance { from: self.mark(from), to: self.mark(to), value: self.signal(value, 1, 0, 0) }
            }
            Square { from, to, square } => {
                Square { from: self.mark(from), to: self.mark(to), square: self.of(square, 2, 0, 0) }
            }
            Angle { from, to, value } => {
                Angle { from: self.arrow(from), to: self.arrow(to), value: self.signal(value, 0, 0, 0) }
            }
            Coincident { from, to } => Coincident { from: self.mark(from), to: self.mark(to) },
            OnPlane { point, at, normal } => {
                OnPlane { point: self.mark(point), at: self.mark(at), normal: self.arrow(normal) }
            }
            OnLine { point, at, along } => {
                OnLine { point: self.mark(point), at: self.mark(at), along: self.arrow(along) }
            }
            Coupling { terms, value } => {
                // In the unit of its first coordinate.
                let whole = terms.first().map_or(0, |(c, _)| self.along(mechanism, *c).1);
                let factor = |&(c, factor): &(Coordinate, f64)| {
                    let (sign, length) = self.along(mechanism, c);
                    (c, sign * self.of(factor, whole - length, 0, 0))
                };
                Coupling { terms: terms.iter().map(factor).collect(), value: self.signal(value, whole, 0, 0) }
            }
            Motion { coordinate, value } => {
                let (sign, length) = self.along(mechanism, coordinate);
                Motion { coordinate, value: Self::signed(self.signal(value, length, 0, 0), sign) }
            }
            Curved { from, to, along, bend, value } => Curved {
                from: self.mark(from),
                to: self.mark(to),
                along: self.arrow(along),
                bend: self.of(bend, -1, 0, 0),
                value: self.signal(value, 1, 0, 0),
            },
            Blade { point, along, value } => Blade {
                point: self.mark(point),
                along: self.arrow(along),
                value: self.signal(value, 1, 0, -1),
            },
            Spin { body, about, point, along, factor } => Spin {
                body,
                about: self.arrow(about),
                point: self.mark(point),
                along: self.arrow(along),
                factor: self.sign() * self.of(factor, -1, 0, 0),
            },
        }
    }

    fn force(&self, mechanism: &Mechanism, f: &Force) -> Force {
        use Force::*;
        match f.clone() {
            Spring { from, to, stiffness, damping, natural } => Spring {
                from: self.mark(from),
                to: self.mark(to),
                stiffness: self.signal(stiffness, 0, 1, -2),
                damping: self.of(damping, 0, 1, -1),
                natural: self.signal(natural, 1, 0, 0),
            },
            Law { from, to, linear, cubic, natural, damping } => Law {
                from: self.mark(from),
                to: self.mark(to),
                linear: self.of(linear, 0, 1, -2),
                cubic: self.of(cubic, -2, 1, -2),
                natural: self.of(natural, 1, 0, 0),
                damping: self.of(damping, 0, 1, -1),
            },
            Torsional { coordinate, stiffness, damping, natural } => {
                let (sign, length) = self.along(mechanism, coordinate);
                // A moment per angle, or a force per length.
                let moment = 2 - 2 * length;
                Torsional {
                    coordinate,
                    stiffness: self.of(stiffness, moment, 1, -2),
                    damping: self.of(damping, moment, 1, -1),
                    natural: Self::signed(self.signal(natural, length, 0, 0), sign),
                }
            }
            Push { at, value, amplitude, frequency, drag, frame, reaction } => Push {
                at: self.mark(at),
                value: self.vector(value, 1, 1, -2),
                amplitude: self.vector(amplitude, 1, 1, -2),
                frequency: self.of(frequency, 0, 0, -1),
                drag: self.of(drag, -1, 1, 0),
                frame,
                reaction: reaction.map(|r| self.mark(r)),
            },
            Torque { on, value, damping, frame, reaction } => Torque {
                on,
                value: self.axial(value).map(|x| self.of(x, 2, 1, -2)),
                damping: self.of(damping, 2, 1, -1),
                frame,
                reaction,
            },
            Along { coordinate, value, cubic } => {
                let (sign, length) = self.along(mechanism, coordinate);
                Along {
                    coordinate,
                    value: Self::signed(self.signal(value, 2 - length, 1, -2), sign),
                    cubic: self.of(cubic, 2 - 4 * length, 1, -2),
                }
            }
        }
    }

    fn mechanism(&self, m: &Mechanism) -> Mechanism {
        Mechanism {
            gravity: self.vector(m.gravity, 1, 0, -2),
            bodies: m.bodies.iter().map(|b| self.body(b)).collect(),
            joints: m.joints.iter().map(|j| self.joint(j)).collect(),
            constraints: m.constraints.iter().map(|c| self.constraint(m, c)).collect(),
            forces: m.forces.iter().map(|f| self.force(m, f)).collect(),
        }
    }
}

impl Mechanism {
    /// The same mechanism, told in metres, kilograms and seconds if its numbers are meant in `units`.
    pub(super) fn scaled(&self, units: Units) -> Mechanism {
        Change { units, mirror: None }.mechanism(self)
    }

    /// Its image in a mirror through the origin with this unit normal. Body frames are mirrored, and stay right-handed: R′ = S R S. So do
    /// joint frames, of which y turns round: F′ = S F diag(1, −1, 1).
    pub(super) fn mirrored(&self, normal: V3) -> Mechanism {
        let units = Units { length: 1.0, mass: 1.0, time: 1.0 };
        Change { units, mirror: Some(normal) }.mechanism(self)
    }

    /// Where bodies are at the start values of the tree's joints.
    pub(super) fn places(&self) -> Vec<Place> {
        let mut places: Vec<Place> = Vec::new();
        for joint in &self.joints[..self.bodies.len().min(self.joints.len())] {
            let parent = joint.parent.body.map_or(GROUND, |i| places[i]);
            let (t, turn) = joint.motion();
            let (a, b) = (joint.parent.frame(), joint.child.frame());
            let rotation = product(product(product(parent.rotation, a), turn), transposed(b));
            let at = parent.point(add(joint.parent.point, apply(a, t)));
            places.push(Place { origin: sub(at, apply(rotation, joint.child.point)), rotation });
        }
        places
    }
}
