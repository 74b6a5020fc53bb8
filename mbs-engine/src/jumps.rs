//! Jumps that a run goes through: where a branch of a force, a constraint or an objective changes over and its two sides differ.
//!
//! Enters: the nodes of a run in the order of time. Leaves: a [`Jump`] for each branch that jumped, the first time it did. The
//! gradient of a run lacks what a jump brings: a parameter moves the time at which it happens.

use crate::Interpreted;
use crate::tape::{Arguments, Tape};
use mbs_codegen::symbols::Group;
use mbs_codegen::watch::Sides;
use mbs_runtime::{Motion, euler_parameters};
use std::fmt;

/// Against the largest value of its subject that was seen, a difference of the two sides is a jump and not rounding. The time of the
/// change is known to rounding, so both sides of a kink differ by rounding only.
const JUMP: f64 = 1e-9;
/// Steps shorter than this, against one and the time, cross a corner in time: in them Δz/h is rounding.
const SHORT: f64 = 1e-9;
/// Bisections of the time between two nodes.
const BISECTIONS: usize = 60;

/// A branch that changed over while its two sides differed.
#[derive(Clone, Debug, PartialEq)]
pub struct Jump {
    /// What jumped: "force `stop` (line 12)".
    pub subject: String,
    /// When.
    pub t: f64,
    /// By how much: the sum over its components.
    pub by: f64,
}

impl fmt::Display for Jump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Jump { subject, t, by } = self;
        write!(
            f,
            "{subject} jumps by {by:.3e} at t = {t:.6}: the gradient lacks what a change of that time brings; let it change over \
             within a short interval, by `step(…)` or `tanh(…)`, or meet in value where it changes"
        )
    }
}

/// Looks for jumps.
#[derive(Clone, Debug)]
pub struct Jumps {
    tape: Tape<f64>,
    prepared: Vec<f64>,
    branches: Vec<Branch>,
    w: Vec<f64>,
    /// Switching functions, sizes and differences at the last evaluation.
    seen: [Vec<f64>; 3],
    /// Switching functions at the last two nodes.
    functions: [Vec<f64>; 2],
    before: Sample,
    now: Sample,
    nodes: usize,
}

#[derive(Clone, Debug)]
struct Branch {
    subject: String,
    sides: Sides,
    terminal: bool,
    side: Option<f64>,
    largest: f64,
    jump: Option<(f64, f64)>,
}

/// The motion at a node: t, z, v, vd, u.
#[derive(Clone, Debug, Default)]
struct Sample {
    t: [f64; 1],
    z: Vec<f64>,
    v: Vec<f64>,
    vd: Vec<f64>,
    u: Vec<f64>,
}

impl Sample {
    /// A point between two nodes. Where velocities are rates of coordinates, coordinates are the cubic of both ends and velocities its
    /// rate; everything else is on straight lines.
    fn set_between(&mut self, a: &Sample, b: &Sample, s: f64) {
        let mix = |to: &mut [f64], a: &[f64], b: &[f64]| {
            for ((to, a), b) in to.iter_mut().zip(a).zip(b) {
                *to = a + s * (b - a);
            }
        };
        mix(&mut self.t, &a.t, &b.t);
        mix(&mut self.z, &a.z, &b.z);
        mix(&mut self.v, &a.v, &b.v);
        mix(&mut self.vd, &a.vd, &b.vd);
        mix(&mut self.u, &a.u, &b.u);
        let h = b.t[0] - a.t[0];
        let is_long = h > SHORT * (1.0 + b.t[0].abs());
        if self.z.len() != self.v.len() || !is_long {
            return;
        }
        for (i, (z, v)) in self.z.iter_mut().zip(&mut self.v).enumerate() {
            let (rise, va, vb) = (b.z[i] - a.z[i], a.v[i], b.v[i]);
            // z = z_a + s² (3 − 2s) Δz + h s (1 − s) ((1 − s) v_a − s v_b)      v = dz/ds / h
            *z = a.z[i] + s * s * (3.0 - 2.0 * s) * rise + h * s * (1.0 - s) * ((1.0 - s) * va - s * vb);
            *v = 6.0 * s * (1.0 - s) * rise / h + (1.0 - s) * (1.0 - 3.0 * s) * va + s * (3.0 * s - 2.0) * vb;
        }
    }
}

impl Jumps {
    /// Of a model with its parameters; none if it has no branches.
    pub fn new(model: &Interpreted) -> Option<Jumps> {
        let watch = model.program().watch.as_ref()?;
        let [prepare, tape] = ["prepare", "watch"].map(|name| {
            let bundle = watch.bundles.iter().find(|bundle| bundle.name == name);
            bundle.map_or_else(Tape::empty, Tape::new)
        });
        let mut prepared = vec![0.0; prepare.result_len(0)];
        let mut arguments: Arguments<'_, f64> = [&[]; Group::ALL.len()];
        arguments[Group::Parameters as usize] = model.parameters();
        prepare.run(&arguments, &mut vec![0.0; prepare.memory()], &mut [&mut prepared]).ok()?;
        let branch = |switch: &mbs_codegen::watch::Switch| Branch {
            subject: switch.subject.clone(),
            sides: switch.sides,
            terminal: switch.terminal,
            side: None,
            largest: 0.0,
            jump: None,
        };
        Some(Jumps {
            branches: watch.switches.iter().map(branch).collect(),
            w: vec![0.0; tape.memory()],
            seen: std::array::from_fn(|result| vec![0.0; tape.result_len(result)]),
            functions: std::array::from_fn(|_| vec![0.0; tape.result_len(0)]),
            tape,
            prepared,
            before: Sample::default(),
            now: Sample::default(),
            nodes: 0,
        })
    }

    /// Looks at a node: coordinates, velocities, accelerations if they are known, inputs.
    pub fn see(&mut self, t: f64, z: &[f64], v: &[f64], vd: &[f64], u: &[f64]) {
        std::mem::swap(&mut self.before, &mut self.now);
        let node = &mut self.now;
        node.t = [t];
        for (to, from) in [(&mut node.z, z), (&mut node.v, v), (&mut node.vd, vd), (&mut node.u, u)] {
            to.clear();
            to.extend_from_slice(from);
        }
        node.vd.resize(v.len(), 0.0);
        self.look();
    }

    /// The same without accelerations: with velocities, or with rates of coordinates.
    pub(crate) fn see_state(
        &mut self,
        model: &Interpreted,
        velocities: bool,
        t: f64,
        z: &[f64],
        rates: &[f64],
        u: &[f64],
    ) {
        match velocities {
            true => self.see(t, z, rates, &[], u),
            false => {
                let zdd = vec![0.0; z.len()];
                self.see_motion(model, &Motion { t, z, zd: rates, zdd: &zdd, u });
            }
        }
    }

    /// Time of the last node.
    pub(crate) fn time(&self) -> f64 {
        if self.nodes == 0 { f64::NEG_INFINITY } else { self.now.t[0] }
    }

    /// The same in coordinate form.
    pub fn see_motion(&mut self, model: &Interpreted, at: &Motion<'_, f64>) {
        std::mem::swap(&mut self.before, &mut self.now);
        let n = model.program().velocities.len();
        let node = &mut self.now;
        node.t = [at.t];
        node.z = at.z.to_vec();
        node.u = at.u.to_vec();
        node.v = vec![0.0; n];
        node.vd = vec![0.0; n];
        // The lengths are right, so these cannot fail.
        let _ = euler_parameters::velocities(model, at.z, at.zd, &mut node.v);
        let _ = euler_parameters::accelerations(model, at.z, at.zd, at.zdd, &mut node.vd);
        self.look();
    }

    /// The jumps so far, in the order of time.
    pub fn found(&self) -> Vec<Jump> {
        let mut found: Vec<Jump> = Vec::new();
        for branch in &self.branches {
            let Some((t, by)) = branch.jump else { continue };
            // What counts at the end alone jumps only if a change of a parameter moves the end over it: here, within a step.
            if branch.terminal && t < self.before.t[0] {
                continue;
            }
            // One for all components and branches of a subject: the first.
            match found.iter_mut().find(|jump| jump.subject == branch.subject) {
                Some(first) if t < first.t => (first.t, first.by) = (t, by),
                Some(_) => {}
                None => found.push(Jump { subject: branch.subject.clone(), t, by }),
            }
        }
        found.sort_by(|a, b| a.t.total_cmp(&b.t));
        found
    }

    fn look(&mut self) {
        let now = std::mem::take(&mut self.now);
        self.evaluate(&now);
        let changed: Vec<(usize, f64, f64)> = self
            .branches
            .iter_mut()
            .enumerate()
            .filter_map(|(i, branch)| {
                branch.largest = branch.largest.max(self.seen[1][i]);
                let side = side(branch.sides, self.seen[0][i]);
                let before = branch.side;
                branch.side = side.or(before);
                let (before, side) = (before?, side?);
                let open = self.nodes > 0 && (branch.terminal || branch.jump.is_none());
                (before != side && open).then_some((i, before, side))
            })
            .collect();
        let turning = self.turning();
        self.functions.swap(0, 1);
        self.functions[1].copy_from_slice(&self.seen[0]);
        let earlier = std::mem::take(&mut self.before);
        for (i, before, _) in changed {
            self.locate(i, before, &earlier, &now, 1.0);
        }
        for (i, side) in turning {
            self.look_between(i, side, &earlier, &now);
        }
        (self.before, self.now) = (earlier, now);
        self.nodes += 1;
    }

    /// Branches that are on the same side at both ends of a step, and may have been on the other between: of the parabola
    /// through the last three nodes, a part of the second difference reaches zero.
    fn turning(&self) -> Vec<(usize, f64)> {
        let known =
            |branch: &Branch| branch.sides == Sides::Sign && branch.jump.is_none() && !branch.terminal;
        let branches = self.branches.iter().enumerate().filter(|(_, branch)| known(branch) && self.nodes > 0);
        branches
            .filter_map(|(i, branch)| {
                let (first, last, now) = (self.functions[0][i], self.functions[1][i], self.seen[0][i]);
                let bend = if self.nodes > 1 { (now - 2.0 * last + first).abs() } else { (now - last).abs() };
                let near = last.abs().min(now.abs());
                (last * now > 0.0 && near < bend).then_some((i, branch.side?))
            })
            .collect()
    }

    /// Looks for two changes within one step: where the switching function is nearest to zero.
    fn look_between(&mut self, i: usize, side: f64, earlier: &Sample, now: &Sample) {
        let mut between = now.clone();
        let mut signed = |jumps: &mut Self, s: f64| {
            between.set_between(earlier, now, s);
            jumps.evaluate(&between);
            jumps.seen[0][i] * side
        };
        let points = [0.0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0];
        let values = points.map(|s| signed(self, s));
        let lowest = (1..points.len() - 1).min_by(|&a, &b| values[a].total_cmp(&values[b])).unwrap_or(1);
        let (mut low, mut middle, mut high) = (points[lowest - 1], points[lowest], points[lowest + 1]);
        let mut least = values[lowest];
        // Thirds of the longer part: the minimum is bracketed.
        for _ in 0..24 {
            if least < 0.0 {
                break;
            }
            let left = middle - low > high - middle;
            let trial = if left { middle - (middle - low) / 3.0 } else { middle + (high - middle) / 3.0 };
            let value = signed(self, trial);
            match (value < least, left) {
                (true, true) => (high, middle, least) = (middle, trial, value),
                (true, false) => (low, middle, least) = (middle, trial, value),
                (false, true) => low = trial,
                (false, false) => high = trial,
            }
        }
        if least < 0.0 {
            self.locate(i, side, earlier, now, middle);
        }
    }

    /// Finds where between a node and the part `high` of the way to the next a branch changes over, and how far apart its sides are there.
    fn locate(&mut self, i: usize, before: f64, earlier: &Sample, now: &Sample, mut high: f64) {
        let mut between = now.clone();
        let mut low = 0.0;
        for _ in 0..BISECTIONS {
            let middle = 0.5 * (low + high);
            between.set_between(earlier, now, middle);
            self.evaluate(&between);
            let same = side(self.branches[i].sides, self.seen[0][i]).is_none_or(|side| side == before);
            if same { low = middle } else { high = middle }
        }
        between.set_between(earlier, now, high);
        self.evaluate(&between);
        let (size, apart) = (self.seen[1][i], self.seen[2][i]);
        let branch = &mut self.branches[i];
        branch.largest = branch.largest.max(size);
        if apart > JUMP * branch.largest {
            branch.jump = Some((between.t[0], apart));
        }
    }

    fn evaluate(&mut self, at: &Sample) {
        let mut arguments: Arguments<'_, f64> = [&[]; Group::ALL.len()];
        for (group, values) in [
            (Group::Time, at.t.as_slice()),
            (Group::Z, &at.z),
            (Group::V, &at.v),
            (Group::Vd, &at.vd),
            (Group::U, &at.u),
            (Group::Prepared, &self.prepared),
        ] {
            arguments[group as usize] = values;
        }
        let [functions, sizes, apart] = &mut self.seen;
        // The lengths are right, so this cannot fail.
        let _ = self.tape.run(&arguments, &mut self.w, &mut [functions, sizes, apart]);
    }
}

/// The side of a branch; none on the border.
fn side(sides: Sides, function: f64) -> Option<f64> {
    match sides {
        Sides::Floor => Some(function.floor()),
        Sides::Sign if function == 0.0 || function.is_nan() => None,
        Sides::Sign => Some(function.signum()),
    }
}
