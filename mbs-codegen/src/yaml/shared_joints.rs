//! Joints of `type: shared`: what two bodies have in common says which joint connects them.
//!
//! Input: pairs of points and vectors of parent and child that coincide, pairs of points on a common line along a shared vector or in a common
//! plane normal to it, pairs of vectors at right angles. Output: the kind of the joint and its sides, as if they had been written.
//!
//! Directions are the vectors from the first shared point to the others, then the shared vectors. At the default parameters they have a rank:
//! 0 if there are none, 1 if all are parallel, 2 otherwise.
//!
//! | shared place | rank | joint |
//! |---|---|---|
//! | a point | 0 | spherical; with vectors at right angles cardan |
//! | a point | 1 | revolute |
//! | a point | 2 | fixed |
//! | a line along the first vector | 1 | cylindrical |
//! | a line along the first vector | 2 | prismatic |
//! | a plane normal to the vector | 1 | planar |
//! | none: `points: []` | 0 | floating |
//!
//! Holds afterwards: at the default parameters distances and angles between what is shared are the same on both bodies; for other parameters that
//! is a condition, and so is that the directions keep their rank, see [`SharedParts`]. Directions that say nothing new are warnings.

use super::bodies::are_parallel;
use super::fields::Fields;
use super::joints::{Placed, Side};
use super::limits;
use super::mirror::mirror;
use super::node::{Kind, Node};
use super::reader::Reader;
use super::scope::Scope;
use crate::diagnostics::Span;
use crate::model::evaluate::{cross, dot, norm};
use crate::model::{BinaryOp, BodyId, JointKind, JointPoint, PointRef, Scalar, SharedParts, Vector};

/// The word of the model file.
pub(super) const SHARED: &str = "shared";
/// Keys that belong to it alone.
pub(super) const KEYS: [&str; 6] = ["points", "vectors", "aligned", "coplanar", "perpendicular", "zero"];
/// Keys of other joints that it has no use for.
const FOREIGN: [&str; 4] = ["axis", "axes", "reference", "dh"];
/// How well distances and angles of both bodies agree, relative: nine digits, which people write.
const AGREE: f64 = 1e-9;
/// Directions at a smaller angle were perhaps meant to be parallel, rad.
const NEARLY_PARALLEL: f64 = 1e-3;

/// What both bodies have, in their own frames.
struct Pair<T> {
    span: Span,
    parent: T,
    child: T,
}

type Direction = Pair<Vector>;

/// What a joint lists.
struct Shared {
    points: Vec<Pair<JointPoint>>,
    vectors: Vec<Direction>,
    aligned: Option<Pair<JointPoint>>,
    coplanar: Option<Pair<JointPoint>>,
    perpendicular: Option<Direction>,
    zero: Option<Direction>,
    /// Whether `points` is a list, perhaps an empty one.
    lists_points: bool,
}

impl Shared {
    /// The joint that this is, if its directions have this rank; otherwise what is wrong, and what to do.
    fn kind(&self, rank: usize) -> Result<JointKind, (String, &'static str)> {
        let point = !self.points.is_empty();
        match (point, self.aligned.is_some(), self.coplanar.is_some(), self.perpendicular.is_some(), rank) {
            (true, false, false, false, 0) => Ok(JointKind::Spherical),
            (true, false, false, false, 1) => Ok(JointKind::Revolute),
            (true, false, false, false, _) => Ok(JointKind::Fixed),
            (true, false, false, true, 0) => Ok(JointKind::Cardan),
            (false, true, false, false, 1) => Ok(JointKind::Cylindrical),
            (false, true, false, false, 2) => Ok(JointKind::Prismatic),
            (false, false, true, false, 1) => Ok(JointKind::Planar),
            (false, false, false, false, 0) if self.lists_points => Ok(JointKind::Floating),
            _ => Err(self.no_joint(rank)),
        }
    }

    /// Why this is no joint, and what to do.
    fn no_joint(&self, rank: usize) -> (String, &'static str) {
        let words = self.words();
        let leaves = if self.vectors.len() == 1 { "leaves" } else { "leave" };
        if !self.points.is_empty() {
            let joint = ["spherical", "revolute", "fixed"][rank.min(2)];
            let message =
                format!("{words} are too much: the shared points and vectors already make a {joint} joint");
            return (message, "leave out what is beside `points` and `vectors`");
        }
        match (self.aligned.is_some(), self.coplanar.is_some(), self.perpendicular.is_some()) {
            (false, false, false) if rank == 0 => (
                "the bodies share nothing".into(),
                "list `points` or `vectors` that they share, or say so for a floating joint: `points: []`",
            ),
            (.., true) => (
                format!("{words} without a shared point make no joint"),
                "add `points: [[of the parent, of the child]]` for a cardan joint, and leave out the rest",
            ),
            (true, ..) if rank == 0 => (
                "aligned points lie on a line along a shared vector, and there is none".into(),
                "add `vectors: [[of the parent, of the child]]`",
            ),
            (_, true, _) if rank == 0 => (
                "coplanar points lie in a plane normal to a shared vector, and there is none".into(),
                "add `vectors: [[of the parent, of the child]]`",
            ),
            (true, true, _) => (
                format!(
                    "{words}: a line and a plane across it have a point in common, which makes a {} joint",
                    if rank == 1 { "revolute" } else { "fixed" }
                ),
                "list that point under `points` instead of `aligned` and `coplanar`",
            ),
            (false, true, _) => (
                format!("{words} {leaves} two translations and no rotation, which no joint does"),
                "leave out all vectors but the normal for a planar joint, or write `aligned` instead of `coplanar` for a prismatic one",
            ),
            _ => (
                format!("{words} alone {leaves} all translations free, which no joint does"),
                "add `aligned: [point of the parent, point of the child]` for a cylindrical or prismatic joint, `coplanar` for a planar one, or a shared point",
            ),
        }
    }

    /// In words: `2 points, 1 vector`.
    fn words(&self) -> String {
        let count = |n: usize, one: &str| match n {
            0 => None,
            1 => Some(format!("1 {one}")),
            n => Some(format!("{n} {one}s")),
        };
        let given = |is: bool, what: &str| is.then(|| what.to_string());
        let all: Vec<String> = [
            count(self.points.len(), "point"),
            count(self.vectors.len(), "vector"),
            given(self.aligned.is_some(), "aligned points"),
            given(self.coplanar.is_some(), "coplanar points"),
            given(self.perpendicular.is_some(), "perpendicular vectors"),
        ]
        .into_iter()
        .flatten()
        .collect();
        if all.is_empty() { "nothing".into() } else { all.join(", ") }
    }
}

/// The directions that a joint is made of, and what the bodies must keep for it.
#[derive(Default)]
struct Directions {
    /// The first.
    axis: Option<Direction>,
    /// The first that is not parallel to it.
    reference: Option<Direction>,
    /// The others, which follow from these.
    idle: Vec<Span>,
    equal: Vec<[Scalar; 2]>,
}

impl Directions {
    fn rank(&self) -> usize {
        usize::from(self.axis.is_some()) + usize::from(self.reference.is_some())
    }
}

impl<'t> Reader<'t> {
    /// Refuses keys of shared joints at another one.
    pub(super) fn refuse_shared_keys(&mut self, fields: &Fields<'t>, kind: JointKind) {
        for entry in KEYS.iter().filter_map(|key| fields.get(key)) {
            let message = format!("a {} joint has no `{}`", kind.keyword(), entry.key);
            self.diagnostics
                .error(entry.key_span, message)
                .help("`type: shared` lists what bodies share, and the joint is recognised from it");
        }
    }

    /// Recognises a joint, whose name is at `span`, and places its sides where the shared points and vectors put them.
    pub(super) fn read_shared(
        &mut self,
        span: Span,
        fields: &Fields<'t>,
        (parent, child): (&mut Side, &mut Side),
        scope: &Scope,
    ) -> Option<(JointKind, SharedParts)> {
        let mut right = true;
        for entry in FOREIGN.iter().filter_map(|key| fields.get(key)) {
            let message = format!("a shared joint has no `{}`", entry.key);
            self.diagnostics
                .error(entry.key_span, message)
                .help("its directions are `vectors` that the bodies share");
            right = false;
        }
        for side in [&*parent, &*child] {
            let bare = side.point == JointPoint::Point(PointRef::Origin)
                && side.axis.is_none()
                && side.reference.is_none();
            if !bare {
                self.diagnostics
                    .error(side.span, "the sides of a shared joint are bodies alone")
                    .help("list the point under `points`");
                right = false;
            }
        }
        let bodies = (parent.body, child.body);
        let shared = self.read_parts_of(fields, bodies, scope)?;
        right.then_some(())?;
        let directions = self.shared_directions(&shared, bodies, scope)?;
        let kind = match shared.kind(directions.rank()) {
            Ok(kind) => kind,
            Err((message, help)) => {
                self.diagnostics.error(span, message).help(help);
                return None;
            }
        };
        let joint = kind.keyword();
        for &span in &directions.idle {
            let message = format!("recognised a {joint} joint, of which this says nothing new");
            self.diagnostics.warning(span, message).help(match kind {
                JointKind::Revolute => "leave it out; or, for a fixed joint, share a direction that is not parallel to the others",
                JointKind::Cylindrical => "leave it out; or, for a prismatic joint, share a vector that is not parallel to the others",
                _ => "leave it out",
            });
        }
        let what = shared.words();
        let Shared { points, aligned, coplanar, perpendicular, zero, .. } = shared;
        if let Some(place) = points.into_iter().next().or(aligned).or(coplanar) {
            (parent.point, child.point) = (place.parent, place.child);
        }
        let mut equal = directions.equal;
        let two = directions.axis.as_ref().zip(directions.reference.as_ref());
        let apart = two.map(|(axis, reference)| [axis.parent.clone(), reference.parent.clone()]);
        match (perpendicular, directions.axis) {
            (Some(crossed), _) => self.place_cardan(crossed, zero, (parent, child), &mut equal)?,
            (None, None) => self.refuse_zero(kind, zero)?,
            (None, Some(axis)) => {
                let reference = match directions.reference {
                    Some(reference) => {
                        self.refuse_zero(kind, zero)?;
                        Some(reference)
                    }
                    None => zero,
                };
                self.place_directions(kind, axis, reference, (parent, child), &mut equal)?;
            }
        }
        Some((kind, SharedParts { what, equal, apart }))
    }

    /// All that is listed.
    fn read_parts_of(
        &mut self,
        fields: &Fields<'t>,
        bodies: (BodyId, BodyId),
        scope: &Scope,
    ) -> Option<Shared> {
        let point = |reader: &mut Self, node: &'t Node, body| reader.read_point_of(node, body, scope);
        let vector = |reader: &mut Self, node: &'t Node, body| {
            reader.read_direction(node, Some(body), scope).map(|(_, v)| v)
        };
        let listed = fields.value("points");
        let points = self.read_shared_pairs(listed, bodies, point);
        let vectors = self.read_shared_pairs(fields.value("vectors"), bodies, vector);
        let [aligned, coplanar] = ["aligned", "coplanar"]
            .map(|key| fields.value(key).map(|node| self.read_shared_pair(node, bodies, point)));
        let [perpendicular, zero] = ["perpendicular", "zero"]
            .map(|key| fields.value(key).map(|node| self.read_shared_pair(node, bodies, vector)));
        // Of each what is absent is `None`, what could not be read `Some(None)`.
        Some(Shared {
            points: points?,
            vectors: vectors?,
            aligned: transposed(aligned)?,
            coplanar: transposed(coplanar)?,
            perpendicular: transposed(perpendicular)?,
            zero: transposed(zero)?,
            lists_points: listed.is_some(),
        })
    }

    /// Directions from the first point to each other one, then the vectors, once they are the same on both bodies.
    fn shared_directions(
        &mut self,
        shared: &Shared,
        bodies: (BodyId, BodyId),
        scope: &Scope,
    ) -> Option<Directions> {
        let mut found = Directions::default();
        let mut all = Vec::new();
        for other in shared.points.iter().skip(1) {
            let along = |body: BodyId, of: fn(&Pair<JointPoint>) -> &JointPoint| {
                let [from, to] =
                    [&shared.points[0], other].map(|pair| self.coordinates(body, of(pair), scope));
                Some((from?, to?))
            };
            let ends = [along(bodies.0, |pair| &pair.parent)?, along(bodies.1, |pair| &pair.child)?];
            self.check_distances(other.span, &ends, bodies)?;
            let [of_parent, of_child] = ends.map(|(from, to)| difference(&to, &from));
            let pair = Pair { span: other.span, parent: of_parent, child: of_child };
            found.equal.push(lengths(&pair));
            all.push(pair);
        }
        for Pair { span, parent, child } in &shared.vectors {
            all.push(Pair { span: *span, parent: parent.clone(), child: child.clone() });
        }
        for pair in all {
            self.add_direction(&mut found, pair, bodies)?;
        }
        Some(found)
    }

    /// Adds a direction if its angles to those before it are the same on both bodies.
    fn add_direction(
        &mut self,
        found: &mut Directions,
        pair: Direction,
        bodies: (BodyId, BodyId),
    ) -> Option<()> {
        let values = |reader: &mut Self, pair: &Direction| {
            let a = reader.check_direction(pair.span, &pair.parent, "the direction")?;
            let b = reader.check_direction(pair.span, &pair.child, "the direction")?;
            Some([a, b])
        };
        let own = values(self, &pair)?;
        let Some(axis) = &found.axis else {
            found.axis = Some(pair);
            return Some(());
        };
        let first = values(self, axis)?;
        self.check_angles(pair.span, [0, 1].map(|side| angle(first[side], own[side])), bodies)?;
        found.equal.push(cosines(axis, &pair));
        // The smaller angle between the lines.
        let aside = norm(cross(first[0], own[0])) / (norm(first[0]) * norm(own[0]));
        if are_parallel(first[0], own[0]) {
            if aside > AGREE {
                let message = format!(
                    "the angle between the shared directions is {aside} rad: too small for two directions, too large for one"
                );
                self.diagnostics
                    .error(pair.span, message)
                    .help("at the default parameters; give them more digits if they are parallel");
                return None;
            }
            found.equal.extend(parallel(axis, &pair));
            found.idle.push(pair.span);
            return Some(());
        }
        let Some(reference) = &found.reference else {
            if aside < NEARLY_PARALLEL {
                let message = format!("the shared directions are {aside} rad from parallel and count as two");
                self.diagnostics
                    .warning(pair.span, message)
                    .help("give them more digits if they are parallel: then the joint has one more degree of freedom");
            }
            found.reference = Some(pair);
            return Some(());
        };
        let second = values(self, reference)?;
        self.check_angles(pair.span, [0, 1].map(|side| angle(second[side], own[side])), bodies)?;
        let [of_parent, of_child] =
            [0, 1].map(|side| volume(unit_of(first[side]), unit_of(second[side]), unit_of(own[side])));
        if (of_parent - of_child).abs() > AGREE {
            let names = (self.name_of(bodies.0), self.name_of(bodies.1));
            let message = format!(
                "the shared directions of `{}` are those of `{}` seen in a mirror: not all of them can be shared",
                names.0, names.1
            );
            self.diagnostics
                .error(pair.span, message)
                .help("at the default parameters; look for the wrong point or vector");
            return None;
        }
        found.equal.extend([cosines(reference, &pair), volumes(axis, reference, &pair)]);
        found.idle.push(pair.span);
        Some(())
    }

    fn refuse_zero(&mut self, kind: JointKind, zero: Option<Direction>) -> Option<()> {
        let Some(zero) = zero else { return Some(()) };
        let message = format!("recognised a {} joint, which needs no `zero`", kind.keyword());
        self.diagnostics.error(zero.span, message).help("leave `zero` out");
        None
    }

    /// Gives both sides the axis and, where it is needed, the reference.
    fn place_directions(
        &mut self,
        kind: JointKind,
        mut axis: Direction,
        reference: Option<Direction>,
        (parent, child): (&mut Side, &mut Side),
        equal: &mut Vec<[Scalar; 2]>,
    ) -> Option<()> {
        if kind == JointKind::Planar && reference.is_none() {
            let message = "recognised a planar joint: nothing says along which direction its x lies";
            self.diagnostics.error(axis.span, message).help(
                "add `zero: [vector of the parent, vector of the child]`, directions in the plane that are parallel where the angle is zero",
            );
            return None;
        }
        let same_axis = self.is_same(&axis);
        let same = same_axis && reference.as_ref().is_none_or(|reference| self.is_same(reference));
        if reference.is_none() && !same {
            let (a, b) = (self.name_of(parent.body), self.name_of(child.body));
            let message = format!(
                "recognised a {} joint whose axis has other components in `{a}` than in `{b}`: nothing says where its angle is zero",
                kind.keyword()
            );
            self.diagnostics.error(axis.span, message).help(
                "add `zero: [vector of the parent, vector of the child]`, which are parallel there; or give the axis the same components",
            );
            return None;
        }
        // No sign changes alone.
        if same {
            let placed = [Some(&axis), reference.as_ref()].into_iter().flatten();
            equal.extend(placed.map(|pair| [Scalar::Dot(unit(&pair.parent), unit(&pair.child)), one()]));
        }
        // With the same components on both sides the frames are parallel at zero, and a fixed joint needs nothing else.
        if same && kind == JointKind::Fixed {
            return Some(());
        }
        if same_axis {
            axis.child = axis.parent.clone();
        }
        put(parent, child, axis, |side| &mut side.axis);
        if let Some(mut reference) = reference.filter(|_| !same || kind == JointKind::Planar) {
            if same {
                reference.child = reference.parent.clone();
            }
            put(parent, child, reference, |side| &mut side.reference);
        }
        Some(())
    }

    /// Whether a direction has the same components on both bodies, whatever the parameters are: the same expressions, numbers, or lengths along the same
    /// axis of both frames.
    fn is_same(&self, pair: &Direction) -> bool {
        if pair.parent == pair.child {
            return true;
        }
        let (Vector::Components(a), Vector::Components(b)) = (&pair.parent, &pair.child) else {
            return false;
        };
        let is_number = |x: &Scalar| matches!(x, Scalar::Number(_));
        let along = |of: &[Scalar; 3]| {
            let mut nonzero = (0..3).filter(|&i| of[i] != Scalar::Number(0.0));
            nonzero.next().filter(|_| nonzero.next().is_none())
        };
        let numbers = a.iter().chain(b.iter()).all(is_number);
        let one_axis = along(a).is_some() && along(a) == along(b);
        let (Ok(a), Ok(b)) = (self.values.vector(&pair.parent), self.values.vector(&pair.child)) else {
            return false;
        };
        (numbers || one_axis) && angle(a, b) <= AGREE
    }

    /// The axes of a cardan joint, at right angles whatever its angles are. Without `zero` frames are parallel where both angles are zero.
    fn place_cardan(
        &mut self,
        crossed: Direction,
        zero: Option<Direction>,
        (parent, child): (&mut Side, &mut Side),
        equal: &mut Vec<[Scalar; 2]>,
    ) -> Option<()> {
        match zero {
            Some(zero) => put(parent, child, zero, |side| &mut side.reference),
            None => {
                let a = self.check_direction(crossed.span, &crossed.parent, "the first axis")?;
                let b = self.check_direction(crossed.span, &crossed.child, "the second axis")?;
                let cosine: f64 = dot(a, b) / (norm(a) * norm(b));
                if cosine.abs() > AGREE {
                    let angle = cosine.acos();
                    let message = format!(
                        "recognised a cardan joint whose axes make {angle} rad with parallel frames, not a right angle: nothing says where its angles are zero"
                    );
                    self.diagnostics.error(crossed.span, message).help(
                        "add `zero: [vector of the parent, vector of the child]`: the first is along the child's axis, the second along the parent's axis, where both angles are zero",
                    );
                    return None;
                }
                equal.push([Scalar::Dot(unit(&crossed.parent), unit(&crossed.child)), Scalar::Number(0.0)]);
            }
        }
        put(parent, child, crossed, |side| &mut side.axis);
        Some(())
    }

    fn name_of(&self, body: BodyId) -> String {
        self.symbols.bodies[body.index()].name.clone()
    }

    /// A list of pairs.
    fn read_shared_pairs<T>(
        &mut self,
        node: Option<&'t Node>,
        bodies: (BodyId, BodyId),
        read: impl Fn(&mut Self, &'t Node, BodyId) -> Option<T>,
    ) -> Option<Vec<Pair<T>>> {
        let Some(node) = node else { return Some(Vec::new()) };
        let Kind::Sequence(items) = &node.kind else {
            self.diagnostics
                .error(node.span, format!("expected a list, found {}", node.describe()))
                .help("each entry is a name that both bodies have, or [of the parent, of the child]");
            return None;
        };
        if items.len() > limits::SHARED {
            let (n, limit) = (items.len(), limits::SHARED);
            self.diagnostics.error(node.span, format!("a joint shares at most {limit} of a kind, not {n}"));
            return None;
        }
        // All of them, so that every mistake is reported.
        let pairs: Vec<Option<Pair<T>>> =
            items.iter().map(|item| self.read_shared_pair(item, bodies, &read)).collect();
        pairs.into_iter().collect()
    }

    /// A pair: two entries of a list, or one thing that both bodies have.
    fn read_shared_pair<T>(
        &mut self,
        node: &'t Node,
        (parent, child): (BodyId, BodyId),
        read: impl Fn(&mut Self, &'t Node, BodyId) -> Option<T>,
    ) -> Option<Pair<T>> {
        let (of_parent, of_child) = match &node.kind {
            Kind::Sequence(items) => match items.as_slice() {
                [first, second] => (&**first, &**second),
                _ => (node, node),
            },
            _ => (node, node),
        };
        let (a, b) = (read(self, of_parent, parent), read(self, of_child, child));
        Some(Pair { span: node.span, parent: a?, child: b? })
    }

    /// Coordinates of a point in its body's frame, as they are in an element that is not mirrored.
    fn coordinates(&self, body: BodyId, point: &JointPoint, scope: &Scope) -> Option<Vector> {
        let of = self.bodies.get(body.index())?;
        let real = match point {
            JointPoint::At(v) => return Some(v.clone()),
            JointPoint::Point(PointRef::Origin) => Vector::constant([0.0; 3]),
            JointPoint::Point(PointRef::Com) => of.com.clone(),
            JointPoint::Point(PointRef::Named(index)) => of.points.get(*index as usize)?.1.clone(),
        };
        Some(match scope.mirror {
            Some(normal) => mirror(real, normal, false),
            None => real,
        })
    }

    /// The distance of two points, given by their ends on parent and child.
    fn check_distances(
        &mut self,
        span: Span,
        ends: &[(Vector, Vector); 2],
        bodies: (BodyId, BodyId),
    ) -> Option<()> {
        let names = [bodies.0, bodies.1].map(|body| self.name_of(body));
        let mut distances = [0.0; 2];
        for ((distance, (from, to)), name) in distances.iter_mut().zip(ends).zip(&names) {
            let from = self.default_vector(span, from, "the point")?;
            let to = self.default_vector(span, to, "the point")?;
            *distance = norm([0, 1, 2].map(|i| to[i] - from[i]));
            if *distance <= AGREE * norm(from).max(norm(to)) {
                let message =
                    format!("this shared point coincides with the first one on `{name}`: they are one");
                self.diagnostics
                    .error(span, message)
                    .help("at the default parameters; leave it out, or look for the wrong point");
                return None;
            }
        }
        let [a, b] = distances;
        if (a - b).abs() > AGREE * a.max(b) {
            let message = format!(
                "the points are {a} m apart on `{}` and {b} m on `{}`: both cannot be shared",
                names[0], names[1]
            );
            self.diagnostics.error(span, message).help("at the default parameters; look for the wrong point");
            return None;
        }
        Some(())
    }

    /// An angle between directions, on parent and child.
    fn check_angles(&mut self, span: Span, [a, b]: [f64; 2], bodies: (BodyId, BodyId)) -> Option<()> {
        if (a - b).abs() <= AGREE {
            return Some(());
        }
        let names = (self.name_of(bodies.0), self.name_of(bodies.1));
        let message = format!(
            "the angle between the shared directions is {a} rad on `{}` and {b} rad on `{}`: both cannot be shared",
            names.0, names.1
        );
        self.diagnostics
            .error(span, message)
            .help("at the default parameters; look for the wrong point or vector");
        None
    }
}

/// `None` if something could not be read, `Some(None)` if it is absent.
fn transposed<T>(read: Option<Option<T>>) -> Option<Option<T>> {
    match read {
        None => Some(None),
        Some(read) => read.map(Some),
    }
}

/// Gives both sides their part of a direction.
fn put(parent: &mut Side, child: &mut Side, pair: Direction, to: fn(&mut Side) -> &mut Option<Placed>) {
    *to(parent) = Some((pair.span, pair.parent));
    *to(child) = Some((pair.span, pair.child));
}

/// a − b, with zeros where components are the same.
fn difference(a: &Vector, b: &Vector) -> Vector {
    let (Vector::Components(of_a), Vector::Components(of_b)) = (a, b) else {
        return Vector::Subtract(Box::new(a.clone()), Box::new(b.clone()));
    };
    Vector::Components(Box::new([0, 1, 2].map(|i| match (&of_a[i], &of_b[i]) {
        (a, b) if a == b => Scalar::Number(0.0),
        (Scalar::Number(a), Scalar::Number(b)) => Scalar::Number(a - b),
        (a, Scalar::Number(0.0)) => a.clone(),
        (Scalar::Number(0.0), b) => Scalar::Negate(Box::new(b.clone())),
        (a, b) => Scalar::Binary(BinaryOp::Subtract, Box::new(a.clone()), Box::new(b.clone())),
    })))
}

/// The ratio of the lengths, and one.
fn lengths(pair: &Direction) -> [Scalar; 2] {
    if pair.parent == pair.child {
        return [one(), one()];
    }
    let [a, b] = [&pair.parent, &pair.child].map(|v| Box::new(Scalar::Norm(Box::new(v.clone()))));
    [Scalar::Binary(BinaryOp::Divide, a, b), one()]
}

/// On both bodies, u₁ · u₂ of unit vectors.
fn cosines(first: &Direction, second: &Direction) -> [Scalar; 2] {
    [(&first.parent, &second.parent), (&first.child, &second.child)]
        .map(|(a, b)| Scalar::Dot(unit(a), unit(b)))
}

/// On both bodies, (u₁ × u₂) · u₃.
fn volumes(first: &Direction, second: &Direction, third: &Direction) -> [Scalar; 2] {
    [(&first.parent, &second.parent, &third.parent), (&first.child, &second.child, &third.child)]
        .map(|(a, b, c)| Scalar::Dot(Box::new(Vector::Cross(unit(a), unit(b))), unit(c)))
}

/// The components of u₁ × u₂ on both bodies, and zero.
fn parallel(first: &Direction, second: &Direction) -> Vec<[Scalar; 2]> {
    let mut pairs = Vec::new();
    for (a, b) in [(&first.parent, &second.parent), (&first.child, &second.child)] {
        for axis in [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]] {
            let across = Box::new(Vector::Cross(unit(a), unit(b)));
            pairs.push([Scalar::Dot(across, Box::new(Vector::constant(axis))), Scalar::Number(0.0)]);
        }
    }
    pairs
}

fn unit(v: &Vector) -> Box<Vector> {
    Box::new(Vector::Unit(Box::new(v.clone())))
}

fn one() -> Scalar {
    Scalar::Number(1.0)
}

/// The angle between two directions, to rounding also where it is small.
fn angle(a: [f64; 3], b: [f64; 3]) -> f64 {
    norm(cross(a, b)).atan2(dot(a, b))
}

fn unit_of(a: [f64; 3]) -> [f64; 3] {
    let length = norm(a);
    a.map(|x| x / length)
}

/// (a × b) · c
fn volume(a: [f64; 3], b: [f64; 3], c: [f64; 3]) -> f64 {
    dot(cross(a, b), c)
}
