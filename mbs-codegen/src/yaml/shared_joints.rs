//! Joints of `type: shared`: what two bodies have in common says which joint connects them.
//!
//! Input: pairs of points and vectors of parent and child that coincide, pairs of points on a common line along a shared vector or in a common
//! plane normal to it, pairs of vectors at right angles. Output: the sides of the joint that this is, as if it had been written.
//!
//! | shared | joint |
//! |---|---|
//! | a point | spherical |
//! | two points, or a point and a vector | revolute |
//! | three points, two points and a vector, or a point and two vectors | fixed |
//! | a vector, and points on a line along it | cylindrical |
//! | two vectors, and points on a line along the first | prismatic |
//! | a vector, and points in a plane normal to it | planar |
//! | a point, and vectors at right angles | cardan |
//! | nothing: `points: []` | floating |
//!
//! Holds afterwards: at the default parameters nothing is shared twice, and distances and angles between what is shared are the same on both
//! bodies; for other parameters that is a condition, see [`SharedParts::equal`].

use super::bodies::are_parallel;
use super::fields::Fields;
use super::joints::{Placed, Side};
use super::mirror::mirror;
use super::node::{Kind, Node};
use super::reader::Reader;
use super::scope::Scope;
use crate::diagnostics::Span;
use crate::model::evaluate::{cross, norm};
use crate::model::{BinaryOp, BodyId, JointKind, JointPoint, PointRef, Scalar, SharedParts, Vector};

/// The word of the model file.
pub(super) const SHARED: &str = "shared";
/// Keys that belong to it alone.
pub(super) const KEYS: [&str; 6] = ["points", "vectors", "aligned", "coplanar", "perpendicular", "zero"];
/// Keys of other joints that it has no use for.
const FOREIGN: [&str; 4] = ["axis", "axes", "reference", "dh"];
/// How well distances and cosines of both bodies agree, relative: nine digits, which people write.
const AGREE: f64 = 1e-9;

/// How many points, vectors, and pairs of aligned and coplanar points and of perpendicular vectors are shared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    points: usize,
    vectors: usize,
    aligned: usize,
    coplanar: usize,
    perpendicular: usize,
    /// Whether a list says that there is nothing.
    empty: bool,
}

impl Counts {
    /// As the entries of a joint have them; `field` gives a value by its key.
    pub(super) fn of<'n>(field: impl Fn(&str) -> Option<&'n Node>) -> Counts {
        let items = |key: &str| match field(key).map(|node| &node.kind) {
            Some(Kind::Sequence(items)) => items.len(),
            _ => 0,
        };
        let is_empty = |key: &str| match field(key).map(|node| &node.kind) {
            Some(Kind::Sequence(items)) => items.is_empty(),
            _ => false,
        };
        let given = |key: &str| usize::from(field(key).is_some());
        Counts {
            points: items("points"),
            vectors: items("vectors"),
            aligned: given("aligned"),
            coplanar: given("coplanar"),
            perpendicular: given("perpendicular"),
            empty: is_empty("points"),
        }
    }

    /// The joint that this is, if it is one.
    fn kind(self) -> Option<JointKind> {
        let Counts { points, vectors, aligned, coplanar, perpendicular, empty } = self;
        match (points, vectors, [aligned, coplanar, perpendicular]) {
            (1, 0, [0, 0, 0]) => Some(JointKind::Spherical),
            (2, 0, [0, 0, 0]) | (1, 1, [0, 0, 0]) => Some(JointKind::Revolute),
            (3, 0, [0, 0, 0]) | (2, 1, [0, 0, 0]) | (1, 2, [0, 0, 0]) => Some(JointKind::Fixed),
            (0, 1, [1, 0, 0]) => Some(JointKind::Cylindrical),
            (0, 2, [1, 0, 0]) => Some(JointKind::Prismatic),
            (0, 1, [0, 1, 0]) => Some(JointKind::Planar),
            (1, 0, [0, 0, 1]) => Some(JointKind::Cardan),
            (0, 0, [0, 0, 0]) if empty => Some(JointKind::Floating),
            _ => None,
        }
    }

    /// The joint that this is; otherwise what is wrong, and what to do.
    pub(super) fn recognise(self) -> Result<JointKind, (String, &'static str)> {
        if let Some(kind) = self.kind() {
            return Ok(kind);
        }
        let Counts { points, vectors, aligned, coplanar, perpendicular, .. } = self;
        Err(match (points, vectors, [aligned, coplanar, perpendicular]) {
            (0, 0, [0, 0, 0]) => (
                "the bodies share nothing".into(),
                "list `points` or `vectors` that they share, or say so for a floating joint: `points: []`",
            ),
            (0, _, [_, _, 1]) => (
                format!("{} without a shared point make no joint", self.words()),
                "add `points: [[of the parent, of the child]]` for a cardan joint",
            ),
            (0, 0, [_, 0, 0]) => (
                "aligned points lie on a line along a shared vector, and there is none".into(),
                "add `vectors: [[of the parent, of the child]]`",
            ),
            (0, 0, [0, _, 0]) => (
                "coplanar points lie in a plane normal to a shared vector, and there is none".into(),
                "add `vectors: [[of the parent, of the child]]`",
            ),
            (0, _, [0, 0, 0]) => (
                format!("{} alone leaves all translations free, which no joint does", self.words()),
                "add `aligned: [point of the parent, point of the child]` for a cylindrical or prismatic joint, `coplanar` for a planar one, or a shared point",
            ),
            (0, 2.., [0, 1, 0]) => (
                format!("{} leave two translations and no rotation, which no joint does", self.words()),
                "leave out all vectors but the normal for a planar joint, or write `aligned` instead of `coplanar` for a prismatic one",
            ),
            _ => (
                format!("{} are too much: {}", self.words(), self.enough()),
                "leave out what says nothing new",
            ),
        })
    }

    /// What of too much is enough: the part that is the stiffest joint, with as many points as possible.
    fn enough(self) -> String {
        let mut best: Option<(usize, usize, Counts, JointKind)> = None;
        for points in (0..=self.points.min(3)).rev() {
            for vectors in (0..=self.vectors.min(2)).rev() {
                for kept in 0..8_usize {
                    let [aligned, coplanar, perpendicular] =
                        [1, 2, 4].map(|bit| usize::from(kept & bit != 0));
                    let less = Counts { points, vectors, aligned, coplanar, perpendicular, empty: false };
                    let there = aligned <= self.aligned
                        && coplanar <= self.coplanar
                        && perpendicular <= self.perpendicular;
                    if let Some(kind) = less.kind().filter(|_| there) {
                        let freedom = kind.velocities().len();
                        if best.is_none_or(|(least, most, ..)| {
                            freedom < least || (freedom == least && points > most)
                        }) {
                            best = Some((freedom, points, less, kind));
                        }
                    }
                }
            }
        }
        match best {
            Some((_, points, less, kind)) => {
                let verb =
                    if points + less.vectors == 1 && less.words() == "1 point" { "makes" } else { "make" };
                format!("{} already {verb} a {} joint", less.words(), kind.keyword())
            }
            None => "a few of them make a joint".into(),
        }
    }

    /// In words: `2 points, 1 vector`.
    pub(super) fn words(self) -> String {
        let Counts { points, vectors, aligned, coplanar, perpendicular, .. } = self;
        let count = |n: usize, one: &str| match n {
            0 => None,
            1 => Some(format!("1 {one}")),
            n => Some(format!("{n} {one}s")),
        };
        let given = |n: usize, what: &str| (n > 0).then(|| what.to_string());
        let all: Vec<String> = [
            count(points, "point"),
            count(vectors, "vector"),
            given(aligned, "aligned points"),
            given(coplanar, "coplanar points"),
            given(perpendicular, "perpendicular vectors"),
        ]
        .into_iter()
        .flatten()
        .collect();
        if all.is_empty() { "nothing".into() } else { all.join(", ") }
    }
}

/// What both bodies have, in their own frames.
struct Pair<T> {
    span: Span,
    parent: T,
    child: T,
}

type Direction = Pair<Vector>;

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

    /// Places the sides where shared points and vectors put them.
    pub(super) fn read_shared(
        &mut self,
        fields: &Fields<'t>,
        kind: JointKind,
        (parent, child): (&mut Side, &mut Side),
        scope: &Scope,
    ) -> Option<SharedParts> {
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
        let points = self.read_shared_pairs(fields.value("points"), bodies, |reader, node, body| {
            reader.read_point_of(node, body, scope)
        })?;
        let vectors = self.read_shared_pairs(fields.value("vectors"), bodies, |reader, node, body| {
            reader.read_direction(node, Some(body), scope).map(|(_, v)| v)
        })?;
        let mut placed = None;
        for node in ["aligned", "coplanar"].into_iter().filter_map(|key| fields.value(key)) {
            placed = Some(self.read_shared_pair(node, bodies, |r, n, body| r.read_point_of(n, body, scope))?);
        }
        let [mut zero, mut crossed] = [None, None];
        for (key, to) in [("zero", &mut zero), ("perpendicular", &mut crossed)] {
            if let Some(node) = fields.value(key) {
                *to = Some(self.read_shared_pair(node, bodies, |reader, node, body| {
                    reader.read_direction(node, Some(body), scope).map(|(_, v)| v)
                })?);
            }
        }
        right.then_some(())?;

        // Directions: from the first point to each other one, then the vectors.
        let mut equal = Vec::new();
        let mut directions = Vec::new();
        for other in points.iter().skip(1) {
            let along = |body: BodyId, of: fn(&Pair<JointPoint>) -> &JointPoint| {
                let [from, to] = [&points[0], other].map(|pair| self.coordinates(body, of(pair), scope));
                Some(difference(&to?, &from?))
            };
            let pair = Pair {
                span: other.span,
                parent: along(bodies.0, |pair| &pair.parent)?,
                child: along(bodies.1, |pair| &pair.child)?,
            };
            self.check_distances(&pair, bodies)?;
            equal.push(lengths(&pair));
            directions.push(pair);
        }
        directions.extend(vectors);
        if let [first, second] = directions.as_slice() {
            self.check_angles(first, second, kind, bodies)?;
            equal.push(cosines(first, second));
        }
        let place = points.into_iter().next().or(placed);
        if let Some(place) = place {
            (parent.point, child.point) = (place.parent, place.child);
        }
        if let Some(crossed) = crossed {
            return self.place_cardan(crossed, zero, (parent, child));
        }
        let mut directions = directions.into_iter();
        let axis = directions.next();
        let reference = directions.next();
        if let (Some(zero), None) = (&zero, axis.as_ref().filter(|_| reference.is_none())) {
            let message = format!("recognised a {} joint, which needs no `zero`", kind.keyword());
            self.diagnostics.error(zero.span, message).help("leave `zero` out");
            return None;
        }
        let (Some(axis), reference) = (axis, reference.or(zero)) else {
            return Some(SharedParts { equal, ..SharedParts::default() });
        };
        if kind == JointKind::Planar && reference.is_none() {
            let message = "recognised a planar joint: nothing says along which direction its x lies";
            self.diagnostics.error(axis.span, message).help(
                "add `zero: [vector of the parent, vector of the child]`, directions in the plane that are parallel where the angle is zero",
            );
            return None;
        }
        let same = axis.parent == axis.child
            && reference.as_ref().is_none_or(|reference| reference.parent == reference.child);
        if reference.is_none() && !same {
            let (a, b) = (self.name_of(bodies.0), self.name_of(bodies.1));
            let message = format!(
                "recognised a {} joint whose axis has other components in `{a}` than in `{b}`: nothing says where its angle is zero",
                kind.keyword()
            );
            self.diagnostics.error(axis.span, message).help(
                "add `zero: [vector of the parent, vector of the child]`, which are parallel there; or give the axis the same components",
            );
            return None;
        }
        // With the same components on both sides the frames are parallel at zero, and a fixed joint needs nothing else.
        if same && kind == JointKind::Fixed {
            return Some(SharedParts { equal, ..SharedParts::default() });
        }
        put(parent, child, axis, |side| &mut side.axis);
        if let Some(reference) = reference.filter(|_| !same || kind == JointKind::Planar) {
            put(parent, child, reference, |side| &mut side.reference);
        }
        Some(SharedParts { equal, ..SharedParts::default() })
    }

    /// The axes of a cardan joint, at right angles whatever its angles are. Without `zero` frames are parallel where both angles are zero.
    fn place_cardan(
        &mut self,
        crossed: Direction,
        zero: Option<Direction>,
        (parent, child): (&mut Side, &mut Side),
    ) -> Option<SharedParts> {
        let mut equal = Vec::new();
        match zero {
            Some(zero) => put(parent, child, zero, |side| &mut side.reference),
            None => {
                let a = self.check_direction(crossed.span, &crossed.parent, "the first axis")?;
                let b = self.check_direction(crossed.span, &crossed.child, "the second axis")?;
                let cosine: f64 = a.iter().zip(&b).map(|(a, b)| a * b).sum::<f64>() / (norm(a) * norm(b));
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
                let unit = |v: &Vector| Box::new(Vector::Unit(Box::new(v.clone())));
                let cosine = Scalar::Dot(unit(&crossed.parent), unit(&crossed.child));
                let one = Scalar::Number(1.0);
                let sum = Scalar::Binary(BinaryOp::Add, Box::new(one.clone()), Box::new(cosine));
                equal.push([sum, one]);
            }
        }
        put(parent, child, crossed, |side| &mut side.axis);
        Some(SharedParts { equal, ..SharedParts::default() })
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

    fn check_distances(&mut self, pair: &Direction, bodies: (BodyId, BodyId)) -> Option<()> {
        let a = self.default_vector(pair.span, &pair.parent, "the distance of the points")?;
        let b = self.default_vector(pair.span, &pair.child, "the distance of the points")?;
        let [a, b] = [a, b].map(norm);
        let names = (self.name_of(bodies.0), self.name_of(bodies.1));
        let message = if a == 0.0 || b == 0.0 {
            let on = if a == 0.0 { names.0 } else { names.1 };
            format!("the shared points coincide on `{on}`: two of them are one")
        } else if (a - b).abs() > AGREE * a.max(b) {
            format!(
                "the points are {a} m apart on `{}` and {b} m on `{}`: both cannot be shared",
                names.0, names.1
            )
        } else {
            return Some(());
        };
        self.diagnostics
            .error(pair.span, message)
            .help("at the default parameters; look for the wrong point");
        None
    }

    fn check_angles(
        &mut self,
        first: &Direction,
        second: &Direction,
        kind: JointKind,
        bodies: (BodyId, BodyId),
    ) -> Option<()> {
        let mut angles = [0.0; 2];
        let sides = [(&first.parent, &second.parent), (&first.child, &second.child)];
        for (angle, (a, b)) in angles.iter_mut().zip(sides) {
            let a = self.check_direction(first.span, a, "the direction")?;
            let b = self.check_direction(second.span, b, "the direction")?;
            if are_parallel(a, b) {
                let fewer =
                    if kind == JointKind::Prismatic { JointKind::Cylindrical } else { JointKind::Revolute };
                let message = format!(
                    "this direction is parallel to the one before it: recognised a {} joint, of which it says nothing new",
                    fewer.keyword()
                );
                let help = format!(
                    "leave it out for a {} joint, or choose another for a {} one",
                    fewer.keyword(),
                    kind.keyword()
                );
                self.diagnostics.error(second.span, message).help(help);
                return None;
            }
            *angle = norm(cross(a, b)).atan2(a.iter().zip(&b).map(|(a, b)| a * b).sum());
        }
        let [a, b] = angles;
        if (a - b).abs() > AGREE {
            let names = (self.name_of(bodies.0), self.name_of(bodies.1));
            let message = format!(
                "the angle between the shared directions is {a} rad on `{}` and {b} rad on `{}`: both cannot be shared",
                names.0, names.1
            );
            self.diagnostics
                .error(second.span, message)
                .help("at the default parameters; look for the wrong point or vector");
            return None;
        }
        Some(())
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
    let one = Scalar::Number(1.0);
    if pair.parent == pair.child {
        return [one.clone(), one];
    }
    let [a, b] = [&pair.parent, &pair.child].map(|v| Box::new(Scalar::Norm(Box::new(v.clone()))));
    [Scalar::Binary(BinaryOp::Divide, a, b), one]
}

fn cosines(first: &Direction, second: &Direction) -> [Scalar; 2] {
    let unit = |v: &Vector| Box::new(Vector::Unit(Box::new(v.clone())));
    [(&first.parent, &second.parent), (&first.child, &second.child)]
        .map(|(a, b)| Scalar::Dot(unit(a), unit(b)))
}
