//! Newton and Euler for every body, constraints of every joint, dense: nothing of the generator is in it.
//!
//! Input: a description and where its bodies are and how they move. Output: accelerations of all bodies, what joints transmit, energies,
//! whole runs by the classical Runge–Kutta method.
//!
//! | symbol | meaning |
//! |---|---|
//! | ν | velocity of the centre of mass and angular velocity, world axes, of each body: 6 n |
//! | C ν̇ = c | all constraints, differentiated to the level of accelerations |
//! | L | M = L Lᵀ |
//! | B | C L⁻ᵀ, rows of unit length |
//!
//! Constraints are written for positions alone, as Taylor series in time. What they say of accelerations is linear in them: C is
//! found by unit accelerations. M ν̇ = f + Cᵀ λ is solved by Gauss' principle: Lᵀ ν̇ is nearest to L⁻¹ f among all with B Lᵀ ν̇ = c. Dependent rows
//! are found by Gram–Schmidt orthogonalisation with pivoting; of them λ is zero.

#![allow(clippy::needless_range_loop, reason = "indices of vectors and matrices")]

use super::description::{BodyId, Constraint, Coordinate, Force, Kind, Mark, Mechanism, Side, Signal};
use super::vector::*;

/// A pivot of unit rows below this is zero.
const ZERO: f64 = 1e-9;
/// A run is not compared where pivots come below this.
const NEARLY_ZERO: f64 = 5e-3;

/// Where a body is and how it moves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moving {
    /// Of the centre of mass.
    pub x: V3,
    pub r: M3,
    pub v: V3,
    pub w: V3,
}

/// Position of the centre of mass and rotation as series.
#[derive(Clone, Copy)]
struct Pose {
    x: V3<Series>,
    r: M3<Series>,
    w: V3<Series>,
    com: V3,
}

struct Row {
    value: Series,
    nonholonomic: bool,
    /// Joint that it belongs to, and what it is of the coordinates of joints: a factor each.
    joint: Option<usize>,
    along: Vec<(Coordinate, f64)>,
}

impl Row {
    fn plain(value: Series) -> Row {
        Row { value, nonholonomic: false, joint: None, along: Vec::new() }
    }

    fn velocity(&self) -> f64 {
        if self.nonholonomic { self.value.0[0] } else { self.value.0[1] }
    }

    fn acceleration(&self) -> f64 {
        if self.nonholonomic { self.value.0[1] } else { 2.0 * self.value.0[2] }
    }
}

/// What the oracle knows of an instant.
pub(super) struct Solution {
    /// Of each body: of its centre of mass, angular.
    pub accelerations: Vec<[V3; 2]>,
    /// Force and torque of the parent on the child at the child's joint point, where they are unique.
    pub reactions: Vec<Option<[f64; 6]>>,
    pub freedoms: usize,
    pub redundant: usize,
    /// The smallest pivot that is not zero, and what dependent rows miss.
    pub least_pivot: f64,
    pub contradiction: f64,
}

pub(super) struct Oracle<'a> {
    pub mechanism: &'a Mechanism,
}

impl Signal {
    fn at(&self, t: f64) -> Series {
        let time = Series([t, 1.0, 0.0]);
        let of = Series::of;
        of(self.constant) + of(self.slope) * time + of(self.amplitude) * (of(self.frequency) * time).sin()
    }
}

/// The pose of a body with these accelerations.
fn pose(com: V3, m: &Moving, a: V3, alpha: V3) -> Pose {
    let series = |c0: f64, c1: f64, c2: f64| Series([c0, c1, 0.5 * c2]);
    let spin = skew(m.w);
    let twice = product(spin, spin);
    let curve: M3 = std::array::from_fn(|i| std::array::from_fn(|j| skew(alpha)[i][j] + twice[i][j]));
    let (first, second) = (product(spin, m.r), product(curve, m.r));
    Pose {
        x: std::array::from_fn(|i| series(m.x[i], m.v[i], a[i])),
        r: std::array::from_fn(|i| std::array::from_fn(|j| series(m.r[i][j], first[i][j], second[i][j]))),
        w: std::array::from_fn(|i| Series([m.w[i], alpha[i], 0.0])),
        com,
    }
}

const STILL: Moving =
    Moving { x: [0.0; 3], r: [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], v: [0.0; 3], w: [0.0; 3] };

/// All poses of an instant; ground is the last.
struct Instant {
    poses: Vec<Pose>,
    t: f64,
}

impl Instant {
    fn of(&self, body: BodyId) -> &Pose {
        &self.poses[body.unwrap_or(self.poses.len() - 1)]
    }

    fn point(&self, m: Mark) -> V3<Series> {
        let pose = self.of(m.body);
        add(pose.x, apply(pose.r, lift(sub(m.at, pose.com))))
    }

    fn arrow(&self, a: super::description::Arrow) -> V3<Series> {
        apply(self.of(a.body).r, lift(unit(a.along)))
    }

    fn frame(&self, s: &Side) -> M3<Series> {
        product(self.of(s.body).r, lift_matrix(s.frame()))
    }

    /// Displacement and rotation of a joint's child frame in its parent frame.
    fn joint(&self, mechanism: &Mechanism, j: usize) -> (V3<Series>, M3<Series>) {
        let joint = &mechanism.joints[j];
        let parent = transposed(self.frame(&joint.parent));
        let [p, c] = [&joint.parent, &joint.child].map(|s| self.point(Mark { body: s.body, at: s.point }));
        (apply(parent, sub(c, p)), product(parent, self.frame(&joint.child)))
    }

    fn coordinate(&self, mechanism: &Mechanism, c: Coordinate) -> Series {
        let (t, g) = self.joint(mechanism, c.joint);
        let turn = g[0][0].angle_to(g[1][0]);
        match (mechanism.joints[c.joint].kind, c.index) {
            (Kind::Revolute, _) | (Kind::Cylindrical, 1) | (Kind::Planar, 2) => turn,
            (Kind::Prismatic | Kind::Cylindrical, _) => t[2],
            (Kind::Cardan, 0) => g[0][2].angle_to(g[1][2]),
            (Kind::Cardan, _) => g[2][0].angle_to(-g[2][1]),
            (_, i) => t[i],
        }
    }

    fn rows(&self, mechanism: &Mechanism) -> Vec<Row> {
        let mut rows = Vec::new();
        for (j, joint) in mechanism.joints.iter().enumerate() {
            let (t, g) = self.joint(mechanism, j);
            let axes = [g[0][2], g[1][2]];
            let values: Vec<Series> = match joint.kind {
                Kind::Fixed => vec![t[0], t[1], t[2], axes[0], axes[1], g[1][0]],
                Kind::Revolute => vec![t[0], t[1], t[2], axes[0], axes[1]],
                Kind::Prismatic => vec![t[0], t[1], axes[0], axes[1], g[1][0]],
                Kind::Cardan => vec![t[0], t[1], t[2], g[2][2]],
                Kind::Cylindrical => vec![t[0], t[1], axes[0], axes[1]],
                Kind::Spherical => t.to_vec(),
                Kind::Planar => vec![t[2], axes[0], axes[1]],
                Kind::Floating => Vec::new(),
            };
            rows.extend(values.into_iter().map(|value| Row { joint: Some(j), ..Row::plain(value) }));
        }
        mechanism.constraints.iter().for_each(|c| self.constraint(mechanism, c, &mut rows));
        rows
    }

    fn constraint(&self, mechanism: &Mechanism, c: &Constraint, rows: &mut Vec<Row>) {
        use Constraint::*;
        let apart = |from: &Mark, to: &Mark| sub(self.point(*to), self.point(*from));
        let velocity = |m: &Mark| self.point(*m).map(Series::rate);
        match c {
            Distance { from, to, value } => {
                let d = apart(from, to);
                rows.push(Row::plain(dot(d, d).sqrt() - value.at(self.t)));
            }
            Square { from, to, square } => {
                let d = apart(from, to);
                rows.push(Row::plain(dot(d, d) - Series::of(*square)));
            }
            Angle { from, to, value } => {
                let half_turn = Series::of(std::f64::consts::FRAC_PI_2);
                let cosine = (half_turn - value.at(self.t)).sin();
                rows.push(Row::plain(dot(self.arrow(*from), self.arrow(*to)) - cosine));
            }
            Coincident { from, to } => rows.extend(apart(from, to).map(Row::plain)),
            OnPlane { point, at, normal } => {
                rows.push(Row::plain(dot(apart(at, point), self.arrow(*normal))));
            }
            OnLine { point, at, along } => {
                // In the body of the line, across it.
                let n = unit(along.along);
                let least = (0..3).min_by(|&i, &j| n[i].abs().total_cmp(&n[j].abs())).unwrap_or(0);
                let mut e = [0.0; 3];
                e[least] = 1.0;
                let first = unit(cross(n, e));
                for across in [first, cross(n, first)] {
                    let across = apply(self.of(along.body).r, lift(across));
                    rows.push(Row::plain(dot(apart(at, point), across)));
                }
            }
            Coupling { terms, value } => {
                let sum = terms.iter().fold(-value.at(self.t), |sum, (c, factor)| {
                    sum + Series::of(*factor) * self.coordinate(mechanism, *c)
                });
                rows.push(Row { along: terms.clone(), ..Row::plain(sum) });
            }
            Motion { coordinate, value } => {
                let missing = self.coordinate(mechanism, *coordinate) - value.at(self.t);
                rows.push(Row { along: vec![(*coordinate, 1.0)], ..Row::plain(missing) });
            }
            Curved { from, to, along, bend, value } => {
                let d = apart(from, to);
                let bent = Series::of(*bend) * dot(d, d);
                rows.push(Row::plain(dot(d, self.arrow(*along)) + bent - value.at(self.t)));
            }
            Blade { point, along, value } => {
                let value = dot(velocity(point), self.arrow(*along)) - value.at(self.t);
                rows.push(Row { nonholonomic: true, ..Row::plain(value) });
            }
            Spin { body, about, point, along, factor } => {
                let slip = Series::of(*factor) * dot(velocity(point), self.arrow(*along));
                let value = dot(self.poses[*body].w, self.arrow(*about)) - slip;
                rows.push(Row { nonholonomic: true, ..Row::plain(value) });
            }
        }
    }
}

/// Rows of unit length, orthogonalised: B_k = Σ_i part_ki Q_i.
struct Orthogonal {
    q: Vec<Vec<f64>>,
    parts: Vec<Vec<f64>>,
    pivots: Vec<usize>,
    least: f64,
}

fn inner(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn orthogonalise(rows: &[Vec<f64>]) -> Orthogonal {
    let mut rest = rows.to_vec();
    let mut parts = vec![Vec::new(); rows.len()];
    let (mut q, mut pivots, mut least) = (Vec::<Vec<f64>>::new(), Vec::new(), 1.0f64);
    loop {
        let open = (0..rows.len()).filter(|k| !pivots.contains(k));
        let next = open.map(|k| (k, inner(&rest[k], &rest[k]).sqrt())).max_by(|a, b| a.1.total_cmp(&b.1));
        let Some((k, size)) = next.filter(|(_, size)| *size > ZERO) else { break };
        least = least.min(size);
        let mut direction: Vec<f64> = rest[k].iter().map(|x| x / size).collect();
        // Once more, so that it is orthogonal to rounding.
        for before in &q {
            let part = inner(&direction, before);
            direction.iter_mut().zip(before).for_each(|(d, b)| *d -= part * b);
        }
        for (row, parts) in rest.iter_mut().zip(&mut parts) {
            let part = inner(row, &direction);
            row.iter_mut().zip(&direction).for_each(|(r, d)| *r -= part * d);
            parts.push(part);
        }
        pivots.push(k);
        q.push(direction);
    }
    Orthogonal { q, parts, pivots, least }
}

impl Orthogonal {
    /// The change of w, of least length, after which rows times w are `wanted`; and the part of each direction in it.
    fn change(&self, rows: &[Vec<f64>], w: &[f64], wanted: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let mut c: Vec<f64> = Vec::new();
        for (i, &k) in self.pivots.iter().enumerate() {
            let known: f64 = (0..i).map(|j| self.parts[k][j] * c[j]).sum();
            c.push((wanted[k] - inner(&rows[k], w) - known) / self.parts[k][i]);
        }
        let mut change = vec![0.0; w.len()];
        for (part, q) in c.iter().zip(&self.q) {
            change.iter_mut().zip(q).for_each(|(x, q)| *x += part * q);
        }
        (change, c)
    }

    /// x with Σ_p x_p B_p = Σ_i c_i Q_i over the pivot rows.
    fn combination(&self, c: &[f64]) -> Vec<f64> {
        let n = self.pivots.len();
        let mut x = vec![0.0; n];
        for i in (0..n).rev() {
            let known: f64 = (i + 1..n).map(|j| self.parts[self.pivots[j]][i] * x[j]).sum();
            x[i] = (c[i] - known) / self.parts[self.pivots[i]][i];
        }
        x
    }
}

/// L with L Lᵀ = A
fn cholesky(a: M3) -> M3 {
    let mut l = [[0.0; 3]; 3];
    for i in 0..3 {
        for j in 0..=i {
            let sum: f64 = (0..j).map(|k| l[i][k] * l[j][k]).sum();
            l[i][j] = if i == j { (a[i][i] - sum).sqrt() } else { (a[i][j] - sum) / l[j][j] };
        }
    }
    l
}

/// L⁻¹ b
fn forward(l: M3, b: V3) -> V3 {
    let mut x = b;
    for i in 0..3 {
        let known: f64 = (0..i).map(|k| l[i][k] * x[k]).sum();
        x[i] = (b[i] - known) / l[i][i];
    }
    x
}

/// L⁻ᵀ b
fn backward(l: M3, b: V3) -> V3 {
    let mut x = b;
    for i in (0..3).rev() {
        let known: f64 = (i + 1..3).map(|k| l[k][i] * x[k]).sum();
        x[i] = (b[i] - known) / l[i][i];
    }
    x
}

fn part(all: &[f64], body: usize, half: usize) -> V3 {
    std::array::from_fn(|i| all[6 * body + 3 * half + i])
}

/// Turns each body's two vectors by functions of its mass and of the factors of its inertia.
fn by_bodies(factors: &[(f64, M3)], all: &[f64], turn: fn(M3, V3) -> V3) -> Vec<f64> {
    let each = factors.iter().enumerate().flat_map(|(i, &(mass, l))| {
        let root = mass.sqrt();
        [part(all, i, 0).map(|x| x / root), turn(l, part(all, i, 1))].concat()
    });
    each.collect()
}

impl<'a> Oracle<'a> {
    /// Bodies at the start values, at rest.
    pub(super) fn at_rest(&self) -> Vec<Moving> {
        let bodies = self.mechanism.places().into_iter().zip(&self.mechanism.bodies);
        bodies.map(|(p, b)| Moving { x: p.point(b.com), r: p.rotation, ..STILL }).collect()
    }

    fn instant(&self, t: f64, at: &[Moving], acceleration: &[f64]) -> Instant {
        let bodies = self.mechanism.bodies.iter().zip(at).enumerate();
        let mut poses: Vec<Pose> = bodies
            .map(|(i, (b, m))| pose(b.com, m, part(acceleration, i, 0), part(acceleration, i, 1)))
            .collect();
        poses.push(pose([0.0; 3], &STILL, [0.0; 3], [0.0; 3]));
        Instant { poses, t }
    }

    fn still(&self) -> Vec<f64> {
        vec![0.0; 6 * self.mechanism.bodies.len()]
    }

    /// The mass of each body, and L of its inertia in world axes.
    fn factors(&self, at: &[Moving]) -> Vec<(f64, M3)> {
        let bodies = self.mechanism.bodies.iter().zip(at);
        bodies.map(|(b, m)| (b.mass, cholesky(self.inertia(b.inertia, m)))).collect()
    }

    fn inertia(&self, inertia: M3, m: &Moving) -> M3 {
        product(product(m.r, inertia), transposed(m.r))
    }

    /// C by rows, from what unit accelerations change in some series.
    fn jacobian(&self, t: f64, at: &[Moving], of: impl Fn(&Instant) -> Vec<f64>) -> Vec<Vec<f64>> {
        let mut unit = self.still();
        let base = of(&self.instant(t, at, &unit));
        let mut rows = vec![unit.clone(); base.len()];
        for j in 0..unit.len() {
            unit[j] = 1.0;
            for (k, value) in of(&self.instant(t, at, &unit)).into_iter().enumerate() {
                rows[k][j] = value - base[k];
            }
            unit[j] = 0.0;
        }
        rows
    }

    /// C L⁻ᵀ with rows of unit length, and the lengths.
    fn scaled(&self, factors: &[(f64, M3)], c: &[Vec<f64>]) -> (Vec<Vec<f64>>, Vec<f64>) {
        let rows = c.iter().map(|row| {
            let row = by_bodies(factors, row, forward);
            let length = inner(&row, &row).sqrt();
            (row.iter().map(|x| x / length).collect(), length)
        });
        rows.unzip()
    }

    fn constraints(&self, t: f64, at: &[Moving]) -> Vec<Vec<f64>> {
        self.jacobian(t, at, |i| i.rows(self.mechanism).iter().map(Row::acceleration).collect())
    }

    /// Changes velocities by as little as possible so that all constraints hold; what they miss then, in units of the largest velocity.
    pub(super) fn project(&self, t: f64, at: &mut [Moving]) -> f64 {
        let factors = self.factors(at);
        let (rows, lengths) = self.scaled(&factors, &self.constraints(t, at));
        let orthogonal = orthogonalise(&rows);
        let missing = |at: &[Moving]| -> Vec<f64> {
            let rows = self.instant(t, at, &self.still()).rows(self.mechanism);
            rows.iter().zip(&lengths).map(|(row, length)| -row.velocity() / length).collect()
        };
        let zero = self.still();
        let (change, _) = orthogonal.change(&rows, &zero, &missing(at));
        let change = by_bodies(&factors, &change, backward);
        for (i, m) in at.iter_mut().enumerate() {
            m.v = add(m.v, part(&change, i, 0));
            m.w = add(m.w, part(&change, i, 1));
        }
        missing(at).iter().fold(0.0, |m: f64, x| m.max(x.abs()))
    }

    /// Writes rates of the tree's joints into their start values.
    pub(super) fn rates(mechanism: &mut Mechanism, at: &[Moving]) {
        let rates: Vec<(Vec<f64>, V3)> = {
            let oracle = Oracle { mechanism };
            let now = oracle.instant(0.0, at, &oracle.still());
            let tree = 0..mechanism.bodies.len();
            tree.map(|joint| {
                let child = &mechanism.joints[joint].child;
                let spin = |body: BodyId| body.map_or([0.0; 3], |i| at[i].w);
                let turn = sub(spin(child.body), spin(mechanism.joints[joint].parent.body));
                let axes = product(child.body.map_or(STILL.r, |i| at[i].r), child.frame());
                let count = mechanism.joints[joint].start.len();
                let rate = |index| now.coordinate(mechanism, Coordinate { joint, index }).0[1];
                ((0..count).map(rate).collect(), apply(transposed(axes), turn))
            })
            .collect()
        };
        for (joint, (rates, turn)) in mechanism.joints.iter_mut().zip(rates) {
            joint.start.iter_mut().zip(rates).for_each(|(q, rate)| q[1] = rate);
            joint.turn.1 = turn;
        }
    }

    /// Forces that are not those of constraints; and those along coordinates, one for each force of the description.
    fn forces(&self, t: f64, at: &[Moving]) -> (Vec<f64>, Vec<(Coordinate, f64)>) {
        use Force::*;
        let now = self.instant(t, at, &self.still());
        let mut total = self.still();
        let mut along = Vec::new();
        for (i, (b, m)) in self.mechanism.bodies.iter().zip(at).enumerate() {
            let inertia = self.inertia(b.inertia, m);
            let gyroscopic = cross(m.w, apply(inertia, m.w));
            for k in 0..3 {
                total[6 * i + k] += b.mass * self.mechanism.gravity[k];
                total[6 * i + 3 + k] -= gyroscopic[k];
            }
        }
        let value = |v: V3<Series>| v.map(|x| x.0[0]);
        let rate = |v: V3<Series>| v.map(|x| x.0[1]);
        let mut push = |m: Mark, force: V3| {
            if let Some(i) = m.body {
                let torque = cross(sub(value(now.point(m)), at[i].x), force);
                for k in 0..3 {
                    total[6 * i + k] += force[k];
                    total[6 * i + 3 + k] += torque[k];
                }
            }
        };
        let turned = |frame: BodyId, v: V3| frame.map_or(v, |i| apply(at[i].r, v));
        for f in &self.mechanism.forces {
            match *f {
                Spring { from, to, .. } | Law { from, to, .. } => {
                    let d = sub(now.point(to), now.point(from));
                    let length = dot(d, d).sqrt();
                    let pull = match *f {
                        Spring { stiffness, damping, natural, .. } => {
                            let stretch = length.0[0] - natural.at(t).0[0];
                            stiffness.at(t).0[0] * stretch + damping * length.0[1]
                        }
                        Law { linear, cubic, natural, damping, .. } => {
                            let stretch = length.0[0] - natural;
                            linear * stretch + cubic * stretch.powi(3) + damping * length.0[1]
                        }
                        _ => 0.0,
                    };
                    let force = scale(-pull / length.0[0], value(d));
                    push(to, force);
                    push(from, scale(-1.0, force));
                }
                Torsional { coordinate, stiffness, damping, natural } => {
                    let q = now.coordinate(self.mechanism, coordinate);
                    let moment = stiffness * (q.0[0] - natural.at(t).0[0]) + damping * q.0[1];
                    along.push((coordinate, -moment));
                }
                Push { at: point, value: steady, amplitude, frequency, drag, frame, reaction } => {
                    let wave = scale((frequency * t).sin(), amplitude);
                    let v = rate(now.point(point));
                    let force = sub(turned(frame, add(steady, wave)), scale(drag * norm(v), v));
                    push(point, force);
                    if let Some(reaction) = reaction {
                        push(reaction, scale(-1.0, force));
                    }
                }
                Torque { .. } => {}
                Along { coordinate, value: given, cubic } => {
                    let q = now.coordinate(self.mechanism, coordinate).0[0];
                    along.push((coordinate, given.at(t).0[0] - cubic * q.powi(3)));
                }
            }
        }
        for f in &self.mechanism.forces {
            if let Torque { on, value, damping, frame, reaction } = *f {
                let torque = sub(turned(frame, value), scale(damping, at[on].w));
                for k in 0..3 {
                    total[6 * on + 3 + k] += torque[k];
                    if let Some(Some(other)) = reaction {
                        total[6 * other + 3 + k] -= torque[k];
                    }
                }
            }
        }
        (total, along)
    }

    /// Force and torque on the child of a joint, at its point there, from the parts of generalised forces on child or parent.
    fn on_child(&self, at: &[Moving], joint: usize, forces: &[f64]) -> [f64; 6] {
        let Side { body, point, .. } = self.mechanism.joints[joint].child;
        let parent = self.mechanism.joints[joint].parent.body;
        let place = match body {
            None => point,
            Some(i) => add(at[i].x, apply(at[i].r, sub(point, self.mechanism.bodies[i].com))),
        };
        let (Some(i), sign) = body.map_or((parent, -1.0), |i| (Some(i), 1.0)) else { return [0.0; 6] };
        let (force, torque) = (part(forces, i, 0), part(forces, i, 1));
        let torque = add(torque, cross(sub(at[i].x, place), force));
        let all = [force, torque].concat();
        std::array::from_fn(|k| sign * all[k])
    }

    /// Accelerations and reactions.
    pub(super) fn solve(&self, t: f64, at: &[Moving]) -> Solution {
        let factors = self.factors(at);
        let c = self.constraints(t, at);
        let rows = self.instant(t, at, &self.still()).rows(self.mechanism);
        let (b, lengths) = self.scaled(&factors, &c);
        let wanted: Vec<f64> = rows.iter().zip(&lengths).map(|(row, l)| -row.acceleration() / l).collect();
        let (mut f, along) = self.forces(t, at);
        let slope = |c: Coordinate| {
            let row = self.jacobian(t, at, |i| vec![2.0 * i.coordinate(self.mechanism, c).0[2]]);
            row.into_iter().next().unwrap_or_default()
        };
        let along: Vec<(Coordinate, Vec<f64>)> =
            along.into_iter().map(|(c, f)| (c, slope(c).iter().map(|x| f * x).collect())).collect();
        for (_, force) in &along {
            f.iter_mut().zip(force).for_each(|(f, x)| *f += x);
        }
        let w = by_bodies(&factors, &f, forward);
        let orthogonal = orthogonalise(&b);
        let (change, parts) = orthogonal.change(&b, &w, &wanted);
        let w: Vec<f64> = w.iter().zip(&change).map(|(w, d)| w + d).collect();
        let missing = b.iter().zip(&wanted).map(|(row, x)| (inner(row, &w) - x).abs());
        let contradiction = missing.fold(0.0, f64::max);
        let a = by_bodies(&factors, &w, backward);
        let accelerations = (0..at.len()).map(|i| [part(&a, i, 0), part(&a, i, 1)]).collect();

        // λ of unit rows; and every combination of them that is zero.
        let pivots = &orthogonal.pivots;
        let with = |c: &[f64]| {
            let mut all = vec![0.0; rows.len()];
            pivots.iter().zip(orthogonal.combination(c)).for_each(|(&k, x)| all[k] = x);
            all
        };
        let lambda = with(&parts);
        let dependent = (0..rows.len()).filter(|k| !pivots.contains(k));
        let nothing: Vec<Vec<f64>> = dependent
            .map(|k| {
                let mut null = with(&orthogonal.parts[k]);
                null[k] -= 1.0;
                null
            })
            .collect();
        let reactions = (0..self.mechanism.joints.len()).map(|joint| {
            // What each row does on the child.
            let each: Vec<[f64; 6]> = (0..rows.len())
                .map(|k| {
                    let mut force = self.still();
                    if rows[k].joint == Some(joint) {
                        force.clone_from(&c[k]);
                    }
                    for (coordinate, factor) in rows[k].along.iter().filter(|(c, _)| c.joint == joint) {
                        force.iter_mut().zip(slope(*coordinate)).for_each(|(f, x)| *f += factor * x);
                    }
                    self.on_child(at, joint, &force).map(|x| x / lengths[k])
                })
                .collect();
            let sum = |weights: &[f64]| -> [f64; 6] {
                std::array::from_fn(|i| each.iter().zip(weights).map(|(w, x)| w[i] * x).sum())
            };
            let size = each.iter().flatten().fold(0.0f64, |m, x| m.max(x.abs()));
            let unique = nothing.iter().all(|null| sum(null).iter().all(|x| x.abs() <= 1e-6 * size));
            let mut wrench = sum(&lambda);
            for (_, force) in along.iter().filter(|(c, _)| c.joint == joint) {
                wrench.iter_mut().zip(self.on_child(at, joint, force)).for_each(|(w, x)| *w += x);
            }
            unique.then_some(wrench)
        });
        Solution {
            accelerations,
            reactions: reactions.collect(),
            freedoms: 6 * at.len() - pivots.len(),
            redundant: rows.len() - pivots.len(),
            least_pivot: orthogonal.least,
            contradiction,
        }
    }

    /// Kinetic and potential energy.
    pub(super) fn energy(&self, t: f64, at: &[Moving]) -> [f64; 2] {
        let now = self.instant(t, at, &self.still());
        let bodies = self.mechanism.bodies.iter().zip(at);
        let [mut kinetic, mut potential] = [0.0; 2];
        for (b, m) in bodies {
            let turn = dot(m.w, apply(self.inertia(b.inertia, m), m.w));
            kinetic += 0.5 * (b.mass * dot(m.v, m.v) + turn);
            potential -= b.mass * dot(self.mechanism.gravity, m.x);
        }
        for f in &self.mechanism.forces {
            potential += match *f {
                Force::Spring { from, to, stiffness, natural, .. } => {
                    let d = sub(now.point(to), now.point(from));
                    0.5 * stiffness.at(t).0[0] * (dot(d, d).sqrt().0[0] - natural.at(t).0[0]).powi(2)
                }
                Force::Torsional { coordinate, stiffness, natural, .. } => {
                    let q = now.coordinate(self.mechanism, coordinate).0[0];
                    0.5 * stiffness * (q - natural.at(t).0[0]).powi(2)
                }
                _ => 0.0,
            };
        }
        [kinetic, potential]
    }

    /// Position, velocity and acceleration of every watched point.
    pub(super) fn watched(&self, at: &[Moving], accelerations: &[[V3; 2]]) -> Vec<f64> {
        let mut out = Vec::new();
        for ((b, m), [a, alpha]) in self.mechanism.bodies.iter().zip(at).zip(accelerations) {
            for p in b.points {
                let arm = apply(m.r, sub(p, b.com));
                let turn = cross(m.w, arm);
                let curve = add(cross(*alpha, arm), cross(m.w, turn));
                out.extend([add(m.x, arm), add(m.v, turn), add(*a, curve)].concat());
            }
        }
        out
    }

    /// Where bodies are after `steps` steps of the classical Runge–Kutta method; none if constraints come near to depend on each other on the way.
    pub(super) fn run(&self, start: &[Moving], end: f64, steps: usize) -> Option<Vec<Moving>> {
        let h = end / steps as f64;
        let mut at = start.to_vec();
        let rate = |t: f64, at: &[Moving]| -> Vec<Moving> {
            let accelerations = self.solve(t, at).accelerations;
            let each = at.iter().zip(accelerations);
            each.map(|(m, [a, alpha])| Moving { x: m.v, r: product(skew(m.w), m.r), v: a, w: alpha })
                .collect()
        };
        let moved = |at: &[Moving], k: &[Moving], h: f64| -> Vec<Moving> {
            let along = |x: V3, d: V3| add(x, scale(h, d));
            let each = at.iter().zip(k).map(|(m, k)| Moving {
                x: along(m.x, k.x),
                r: std::array::from_fn(|i| along(m.r[i], k.r[i])),
                v: along(m.v, k.v),
                w: along(m.w, k.w),
            });
            each.collect()
        };
        for step in 0..steps {
            let t = step as f64 * h;
            let k1 = rate(t, &at);
            let k2 = rate(t + 0.5 * h, &moved(&at, &k1, 0.5 * h));
            let k3 = rate(t + 0.5 * h, &moved(&at, &k2, 0.5 * h));
            let k4 = rate(t + h, &moved(&at, &k3, h));
            for (k, weight) in [(k1, 1.0), (k2, 2.0), (k3, 2.0), (k4, 1.0)] {
                at = moved(&at, &k, h * weight / 6.0);
            }
        }
        let end = self.solve(end, &at);
        (end.least_pivot > NEARLY_ZERO && end.contradiction < 1e-6).then_some(at)
    }
}
