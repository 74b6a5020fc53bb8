//! Whether the joints have a tree with `ground` at its root, once the joints that close loops are cut.
//!
//! Reports: loops that cannot be cut as the file wants, joints whose parent and child are the wrong way round,
//! bodies no joint connects to ground, start values without effect.

use super::expression::resolve::list;
use super::limits;
use super::load::shorten;
use super::reader::Reader;
use super::start::zero_start;
use crate::diagnostics::{Span, nearest};
use crate::model::{BodyId, Joint, JointId, JointPoint, Model, Vector};
use crate::topology::{self, Keep, Obstacle};

impl Reader<'_> {
    /// Checks the joints.
    pub(super) fn check_tree(&mut self, model: &Model) {
        if self.joints_incomplete {
            return; // a joint that could not be read may be what connects the others
        }
        let obstacles = topology::arborescence(model).obstacles;
        for obstacle in &obstacles {
            self.report_obstacle(model, obstacle);
        }
        if obstacles.is_empty() && !self.diagnostics.has_errors() {
            self.check_cuts(model);
            self.check_independent(model);
        }
    }

    /// Coordinates that are named as independent exist, and are single numbers.
    fn check_independent(&mut self, model: &Model) {
        let simulations =
            [&model.simulation].into_iter().chain(model.cases.iter().map(|case| &case.simulation));
        let mut named: Vec<&(String, Span)> =
            simulations.flat_map(|simulation| &simulation.independent).collect();
        named.sort();
        named.dedup();
        if named.is_empty() {
            return;
        }
        let single = topology::span(model).single_coordinates(model);
        for (name, at) in named {
            if single.iter().any(|(_, _, coordinate)| coordinate == name) {
                continue;
            }
            let message = format!("there is no coordinate `{}` to be independent", shorten(name));
            let points = model.point_coordinates();
            let all = single.iter().map(|(_, _, coordinate)| coordinate).chain(&points);
            let near = nearest(name, all.map(String::as_str));
            self.diagnostics.error(*at, message).help(match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => "name coordinates as `joint.coordinate`, of points as `body.point.x`, or variables; the joint must not be cut \
                         (`cut: false`), nor have Euler parameters"
                    .into(),
            });
        }
    }

    fn report_obstacle(&mut self, model: &Model, obstacle: &Obstacle) {
        let joint = |id: &JointId| &model.joints[id.index()];
        let body = |id: BodyId| &model.bodies[id.index()].name;
        let around = |id: &JointId| self.loop_text(model, *id);
        let (span, message, help) = match obstacle {
            Obstacle::NoLoop { joint: id } => (
                joint(id).span,
                format!("joint `{}` is part of no loop, so it cannot be cut", joint(id).name),
                "remove `cut: true`".into(),
            ),
            Obstacle::CutButNeeded { joint: id, keep } => (
                joint(id).span,
                format!("joint `{}` cannot be cut: {}", joint(id).name, reason(model, *id, *keep)),
                format!("a cut joint has no coordinates; cut another joint of the loop {}", around(id)),
            ),
            Obstacle::KeptOnGround { joint: id, keep } => (
                joint(id).span,
                format!(
                    "joint `{}` has `ground` as child and closes a loop, so it must be cut, but {}",
                    joint(id).name,
                    reason(model, *id, *keep)
                ),
                format!(
                    "swap its `parent` and `child`, so that another joint of the loop {} can be cut",
                    around(id)
                ),
            ),
            Obstacle::BothKept { kept: [(first, why_first), (second, why_second)] } => {
                let message = format!(
                    "neither `{}` nor `{}`, which both carry `{}`, can be cut to open the loop {}: {}, and {}",
                    joint(first).name,
                    joint(second).name,
                    body(joint(second).child.body),
                    around(second),
                    reason(model, *first, *why_first),
                    reason(model, *second, *why_second)
                );
                let help = "write `cut: true` at one of the two and use its coordinates nowhere, or swap `parent` and `child` of one so that another joint of the loop can be cut";
                (joint(second).span, message, help.into())
            }
            Obstacle::CutStrands { joint: id } => (
                joint(id).span,
                format!(
                    "with joint `{}` cut, no joint leads from ground to `{}`",
                    joint(id).name,
                    body(joint(id).child.body)
                ),
                format!(
                    "cut another joint, or swap `parent` and `child` of others, of the loop {}",
                    around(id)
                ),
            ),
            Obstacle::KeptStrands { joint: id, keep, other } => (
                joint(id).span,
                format!(
                    "joint `{}` cannot be cut, since {}; but with `{}` cut no joint leads from ground to `{}`",
                    joint(id).name,
                    reason(model, *id, *keep),
                    joint(other).name,
                    body(joint(id).child.body)
                ),
                format!("say by `cut: true` where to cut the loop {}", around(id)),
            ),
            Obstacle::Backwards { joint: id } => {
                let (near, far) = (joint(id).child.body, body(joint(id).parent.body));
                let name = &joint(id).name;
                let message = if near == BodyId::GROUND {
                    format!("joint `{name}` has `ground` as child, but no other joint carries `{far}`")
                } else {
                    let near = body(near);
                    format!(
                        "joint `{name}` has `{far}` as parent, but `{near}` is the one connected to ground"
                    )
                };
                (joint(id).span, message, "swap `parent` and `child`".into())
            }
            Obstacle::Unconnected { bodies } => {
                let names = list(bodies.iter().map(|id| body(*id).as_str()));
                let message = if bodies.len() == 1 {
                    format!("body {names} is not connected to `ground`")
                } else {
                    format!("the bodies {names} are not connected to `ground`")
                };
                let span = bodies.first().map(|id| model.bodies[id.index()].span).unwrap_or_default();
                let help = "connect with a joint, for example one of type `floating` with `parent: ground`";
                (span, message, help.into())
            }
        };
        self.diagnostics.error(span, message).help(help);
    }

    /// A loop through a joint, for a message.
    fn loop_text(&self, model: &Model, joint: JointId) -> String {
        // Finding it walks through the whole model.
        if self.diagnostics.error_count() > limits::SUGGESTIONS {
            return "…".into();
        }
        topology::loop_through(model, joint).map(|found| found.describe(model)).unwrap_or_default()
    }

    /// What is lost where a joint is cut, and what its closure costs.
    fn check_cuts(&mut self, model: &Model) {
        let tree = topology::span(model);
        for (at, id) in std::mem::take(&mut self.cuts) {
            if tree.link_of_joint[id.index()].is_some() {
                let name = &model.joints[id.index()].name;
                self.diagnostics
                    .error(at, format!("joint `{name}` is not cut, so it has no multipliers"))
                    .help(format!(
                        "what it transmits is `reaction_force({name})` and `reaction_torque({name})`"
                    ));
            }
        }
        if tree.cuts.is_empty() {
            return;
        }
        let mut started: Vec<bool> =
            model.joints.iter().map(|joint| joint.start != zero_start(joint.kind)).collect();
        for (joint, _) in model.cases.iter().flat_map(|case| &case.start) {
            started[joint.index()] = true;
        }
        let mut of_child: Vec<Vec<&str>> = vec![Vec::new(); model.bodies.len()];
        for joint in &model.joints {
            of_child[joint.child.body.index()].push(&joint.name);
        }
        for id in tree.cuts {
            let joint = &model.joints[id.index()];
            self.spend(joint.span, CLOSURE_COPIES * size(joint));
            if !started[id.index()] {
                continue;
            }
            // Only a joint with the same child can take its place without swapping sides.
            let others =
                of_child[joint.child.body.index()].iter().copied().filter(|name| *name != joint.name);
            let others: Vec<&str> = others.take(4).collect();
            let others = match others.is_empty() || joint.child.body == BodyId::GROUND {
                true => "another joint of the loop".into(),
                false => list(others),
            };
            let message =
                format!("joint `{}` is cut to open a loop: its start values have no effect", joint.name);
            self.diagnostics
                .warning(joint.span, message)
                .help(format!("remove them, or cut {others} (`cut: true`)"));
        }
    }
}

/// How often the directions of a joint stand in its closure rows, at most.
const CLOSURE_COPIES: usize = 20;

/// Operations of a joint's own expressions.
fn size(joint: &Joint) -> usize {
    let vectors = [&joint.parent, &joint.child].into_iter().flat_map(|side| {
        let at = match &side.point {
            JointPoint::At(at) => Some(at),
            JointPoint::Point(_) => None,
        };
        [side.axis.as_ref(), side.reference.as_ref(), at]
    });
    vectors.flatten().map(Vector::size).sum()
}

/// Why a joint may not be cut.
fn reason(model: &Model, joint: JointId, keep: Keep) -> String {
    let joint = &model.joints[joint.index()].name;
    match keep {
        Keep::File => format!("`{joint}` has `cut: false`"),
        Keep::Used(user) => format!("the coordinates of `{joint}` are used by {}", user.describe(model)),
        Keep::Held => format!("the start of `{joint}` is held"),
        Keep::HeldInCase(i) => format!("the start of `{joint}` is held in case `{}`", model.cases[i].name),
    }
}
