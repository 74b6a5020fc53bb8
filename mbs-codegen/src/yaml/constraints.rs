//! `constraints`.
//!
//! Every type becomes rows that must vanish. Inside a mirrored element everything is seen in the mirror, also
//! points and directions of bodies: a row vanishes in the mirror where it vanishes in reality.
//!
//! Rows across a line need two directions normal to it. They come from a reference direction: the one the file
//! gives, or, where the line is fixed in a body, the axis of that body least aligned with it.

use super::declare::{Declarations, Declared};
use super::expression::SyntaxKind;
use super::expression::resolve::{Context, Resolver, Typed};
use super::fields::Fields;
use super::keys::{self, Keys};
use super::limits;
use super::node::{Entry, Kind, Node};
use super::reader::Reader;
use super::scope::{RowNames, Scope, Thing, Uses};
use crate::diagnostics::Span;
use crate::model::evaluate::EvaluateError;
use crate::model::{
    BodyId, Constraint, ConstraintId, ConstraintKind, ConstraintRow, Function, MarkerRef, PointRef, Scalar,
    Vector,
};
use crate::topology::least_aligned;

#[derive(Clone, Copy, PartialEq)]
enum Type {
    Distance,
    Angle,
    Coincident,
    PointOnLine,
    PointOnPlane,
    Aligned,
    Coupling,
    Motion,
    Equation,
    Nonholonomic,
}

const TYPES: [(&str, Type); 10] = [
    ("distance", Type::Distance),
    ("angle", Type::Angle),
    ("coincident", Type::Coincident),
    ("point_on_line", Type::PointOnLine),
    ("point_on_plane", Type::PointOnPlane),
    ("aligned", Type::Aligned),
    ("coupling", Type::Coupling),
    ("motion", Type::Motion),
    ("equation", Type::Equation),
    ("nonholonomic", Type::Nonholonomic),
];

impl Type {
    fn keys(self) -> &'static Keys {
        match self {
            Type::Distance => &keys::DISTANCE,
            Type::Angle => &keys::ANGLE,
            Type::Coincident => &keys::COINCIDENT,
            Type::PointOnLine => &keys::POINT_ON_LINE,
            Type::PointOnPlane => &keys::POINT_ON_PLANE,
            Type::Aligned => &keys::ALIGNED,
            Type::Coupling => &keys::COUPLING,
            Type::Motion => &keys::MOTION,
            Type::Equation => &keys::EQUATION,
            Type::Nonholonomic => &keys::NONHOLONOMIC,
        }
    }
}

/// A row with the suffix of its name, empty for a single row.
type Rows = Vec<(String, Scalar)>;

/// Directions parallel to less than this sine are taken for parallel: the cosine of their angle is flat.
const PARALLEL: f64 = 1e-6;

/// A point or direction as the scope sees it.
struct Operand {
    vector: Vector,
    /// The body it is fixed to, if it is one body's point or vector; ground for constants.
    on: Option<BodyId>,
    span: Span,
}

impl<'t> Reader<'t> {
    /// Reads all constraints.
    pub(super) fn read_constraints(&mut self, declarations: &Declarations<'t>) -> Vec<Constraint> {
        let mut constraints = Vec::new();
        for unit in &declarations.units {
            for declared in &unit.constraints {
                let read = self.read_constraint(declared, &unit.scope);
                let read = read.filter(|(_, rows)| !rows.is_empty());
                let activity = self.activity_of(declared.entry, &unit.scope).unwrap_or_default();
                let names = match &read {
                    Some((_, rows)) => {
                        RowNames::Known(rows.iter().map(|(suffix, _)| suffix.clone()).collect())
                    }
                    None => RowNames::Broken,
                };
                if let Some(rows) = self.symbols.rows.get_mut(declared.id.index()) {
                    *rows = names;
                }
                let Some((kind, rows)) = read else {
                    self.constraints_incomplete = true;
                    continue;
                };
                let row = |(suffix, value): (String, Scalar)| ConstraintRow {
                    name: if suffix.is_empty() {
                        declared.name.clone()
                    } else {
                        format!("{}.{suffix}", declared.name)
                    },
                    value,
                };
                constraints.push(Constraint {
                    name: declared.name.clone(),
                    kind,
                    rows: rows.into_iter().map(row).collect(),
                    activity,
                    span: declared.entry.key_span,
                });
            }
        }
        constraints
    }

    fn read_constraint(
        &mut self,
        declared: &Declared<'t, ConstraintId>,
        scope: &Scope,
    ) -> Option<(ConstraintKind, Rows)> {
        let entry = declared.entry;
        let Kind::Mapping(entries) = &entry.value.kind else {
            let what = entry.value.describe();
            self.diagnostics
                .error(entry.key_span, format!("expected a constraint as a mapping, found {what}"))
                .help("it starts with its `type`");
            return None;
        };
        let kind = self.read_type(entries, entry.key_span, "constraint", &TYPES)?;
        let fields = self.fields(&entry.value, entry.key_span, kind.keys())?;
        if let Some(description) = fields.value("description") {
            self.string(description);
        }
        let rows = match kind {
            Type::Distance => self.read_distance(&fields, scope)?,
            Type::Angle => self.read_angle(&fields, scope)?,
            Type::Coincident => {
                let (from, to) = self.read_pair(&fields, scope)?;
                components(&to.vector.minus(from.vector))
            }
            Type::PointOnLine => self.read_point_on_line(&fields, scope)?,
            Type::PointOnPlane => self.read_point_on_plane(&fields, scope)?,
            Type::Aligned => self.read_aligned(&fields, scope)?,
            Type::Motion => self.read_motion(&fields, scope)?,
            Type::Coupling | Type::Equation | Type::Nonholonomic => {
                self.read_equation(&fields, kind, scope)?
            }
        };
        let kind = match kind {
            Type::Nonholonomic => ConstraintKind::Nonholonomic,
            _ => ConstraintKind::Holonomic,
        };
        Some((kind, rows))
    }

    /// |r_to − r_from| − value
    fn read_distance(&mut self, fields: &Fields<'t>, scope: &Scope) -> Option<Rows> {
        let pair = self.read_pair(fields, scope);
        let entry = fields.require("value", self)?;
        let value = self.scalar(&entry.value, scope, Context::Holonomic)?;
        if let Some(x) = self.default_scalar(entry.value.span, &value, "the distance")
            && x <= 0.0
        {
            let (message, help) = if x == 0.0 {
                ("a distance of zero has no direction".into(), "two points in one place are `coincident`")
            } else {
                (format!("a distance cannot be negative, but this one is {x}"), "give a positive length")
            };
            self.diagnostics.error(entry.value.span, message).help(help);
            return None;
        }
        let (from, to) = pair?;
        Some(single(to.vector.minus(from.vector).norm().minus(value)))
    }

    /// a · b − cos(value)
    fn read_angle(&mut self, fields: &Fields<'t>, scope: &Scope) -> Option<Rows> {
        let from = fields.require("from", self).and_then(|e| self.read_direction_operand(e, scope));
        let to = fields.require("to", self).and_then(|e| self.read_direction_operand(e, scope));
        let entry = fields.require("value", self)?;
        let value = self.scalar(&entry.value, scope, Context::Holonomic)?;
        if let Some(x) = self.default_scalar(entry.value.span, &value, "the angle")
            && x.sin().abs() < PARALLEL
        {
            self.diagnostics
                .error(entry.value.span, format!("with an angle of {x} the directions are parallel"))
                .help("their cosine has no slope there; two constraints with the angle pi/2 make directions parallel");
            return None;
        }
        let (from, to) = (from?, to?);
        self.check_relative(&[&from, &to], "both directions are")?;
        let cosine = Scalar::Call(Function::Cos, vec![value]);
        Some(single(from.vector.dot(to.vector).minus(cosine)))
    }

    /// (r − r_0) across the direction, twice
    fn read_point_on_line(&mut self, fields: &Fields<'t>, scope: &Scope) -> Option<Rows> {
        let point = fields.require("point", self).and_then(|e| self.read_point_operand(e, scope));
        let line = fields.require("line", self)?;
        let inner = self.fields(&line.value, line.key_span, &keys::LINE)?;
        let start = inner.require("point", self).and_then(|e| self.read_point_operand(e, scope));
        let direction = inner.require("direction", self).and_then(|e| self.read_direction_operand(e, scope));
        let reference = inner.get("reference").map(|e| self.read_direction_operand(e, scope));
        let (point, start, direction) = (point?, start?, direction?);
        let reference = reference.map_or(Some(None), |r| r.map(Some))?;
        self.check_relative(&[&point, &start, &direction], "the point and the line are")?;
        let normals = self.normals(&direction, reference, direction.span)?;
        self.spend(point.span, 2 * (point.vector.size() + start.vector.size()));
        Some(across(&[point.vector.minus(start.vector)], normals))
    }

    /// (r − r_0) · n
    fn read_point_on_plane(&mut self, fields: &Fields<'t>, scope: &Scope) -> Option<Rows> {
        let point = fields.require("point", self).and_then(|e| self.read_point_operand(e, scope));
        let plane = fields.require("plane", self)?;
        let inner = self.fields(&plane.value, plane.key_span, &keys::PLANE)?;
        let start = inner.require("point", self).and_then(|e| self.read_point_operand(e, scope));
        let normal = inner.require("normal", self).and_then(|e| self.read_direction_operand(e, scope));
        let (point, start, normal) = (point?, start?, normal?);
        self.check_relative(&[&point, &start, &normal], "the point and the plane are")?;
        Some(single(point.vector.minus(start.vector).dot(normal.vector)))
    }

    /// (r_k − r_1) across r_2 − r_1, twice for each further point
    fn read_aligned(&mut self, fields: &Fields<'t>, scope: &Scope) -> Option<Rows> {
        let entry = fields.require("points", self)?;
        let Kind::Sequence(items) = &entry.value.kind else {
            self.expected(&entry.value, "a list of points");
            return None;
        };
        if items.len() < 3 || items.len() > limits::PARTS {
            let (n, limit) = (items.len(), limits::PARTS);
            self.diagnostics
                .error(entry.value.span, format!("expected a list of 3 to {limit} points, found {n}"))
                .help("every further point lies on the line through the first two");
            return None;
        }
        let points: Vec<Option<Operand>> =
            items.iter().map(|item| self.read_point(item, item.span, scope)).collect();
        let reference = fields.get("reference").map(|e| self.read_direction_operand(e, scope));
        let points: Vec<Operand> = points.into_iter().collect::<Option<_>>()?;
        let reference = reference.map_or(Some(None), |r| r.map(Some))?;
        self.check_relative(&points.iter().collect::<Vec<_>>(), "all points are")?;
        let (first, second) = (&points[0], &points[1]);
        if first.vector == second.vector {
            self.diagnostics.error(second.span, "the first two points are the same: they give no line");
            return None;
        }
        let line = second.vector.clone().minus(first.vector.clone());
        let direction = Operand { vector: line.unit(), on: None, span: entry.value.span };
        let normals = self.normals(&direction, reference, entry.value.span)?;
        let each = 2 * (first.vector.size() + normals.iter().map(Vector::size).sum::<usize>());
        let further = &points[2..];
        self.spend(entry.value.span, each.saturating_mul(further.len()));
        if self.is_exhausted() {
            return None;
        }
        let arms: Vec<Vector> =
            further.iter().map(|point| point.vector.clone().minus(first.vector.clone())).collect();
        Some(across(&arms, normals))
    }

    /// z − value, or the chosen components of r − value
    fn read_motion(&mut self, fields: &Fields<'t>, scope: &Scope) -> Option<Rows> {
        match (fields.get("coordinate"), fields.get("point")) {
            (Some(coordinate), None) => {
                if let Some(axes) = fields.get("axes") {
                    self.diagnostics.error(axes.key_span, "`axes` belongs to the motion of a point");
                }
                let wanted = "a coordinate `joint.coordinate`";
                let found = self
                    .resolve(&coordinate.value, scope, Context::Holonomic, wanted, |r, e| r.coordinate(e));
                let entry = fields.require("value", self)?;
                let value = self.scalar(&entry.value, scope, Context::Motion)?;
                let (c, ..) = found?;
                let resolver = Resolver::new(&self.symbols, scope, Context::Holonomic, false);
                Some(single(resolver.signed(Scalar::Coordinate(c), c).minus(value)))
            }
            (None, Some(point)) => {
                let operand = self.read_point_operand(point, scope);
                let axes = self.read_axes(fields);
                let entry = fields.require("value", self)?;
                let value = self.vector(&entry.value, scope, Context::Motion)?;
                let (operand, axes) = (operand?, axes?);
                if operand.on == Some(BodyId::GROUND) {
                    self.diagnostics.error(operand.span, "a point of `ground` does not move");
                    return None;
                }
                self.spend(entry.value.span, 2 * value.size());
                Some(
                    axes.into_iter()
                        .map(|axis| {
                            let row = operand.vector.clone().component(axis).minus(component(&value, axis));
                            (XYZ[usize::from(axis)].into(), row)
                        })
                        .collect(),
                )
            }
            (Some(_), Some(point)) => {
                self.diagnostics
                    .error(point.key_span, "a motion is that of a `coordinate` or of a `point`, not both");
                None
            }
            (None, None) => {
                if !fields.is_misspelt("coordinate") && !fields.is_misspelt("point") {
                    self.diagnostics
                        .error(
                            fields.at,
                            "the motion says neither of what `coordinate` nor of what `point` it is",
                        )
                        .help("give `coordinate: joint.coordinate` or `point: body.point`");
                }
                None
            }
        }
    }

    /// Which components of a point are prescribed: all, or those of a list.
    fn read_axes(&mut self, fields: &Fields<'t>) -> Option<Vec<u8>> {
        let Some(entry) = fields.get("axes") else { return Some(vec![0, 1, 2]) };
        let Kind::Sequence(items) = &entry.value.kind else {
            self.expected(&entry.value, "a list of axes such as [x, y]");
            return None;
        };
        let words = [("x", 0u8), ("y", 1), ("z", 2)];
        let mut axes = Vec::new();
        for item in items.iter().take(4) {
            let axis = self.word(item, "an axis", &words)?;
            if axes.contains(&axis) {
                self.diagnostics.error(item.span, "this axis is given twice");
                return None;
            }
            axes.push(axis);
        }
        if axes.is_empty() {
            self.diagnostics.error(entry.value.span, "expected a list of axes such as [x, y], found none");
            return None;
        }
        axes.sort_unstable();
        Some(axes)
    }

    /// Any expression that vanishes.
    fn read_equation(&mut self, fields: &Fields<'t>, kind: Type, scope: &Scope) -> Option<Rows> {
        let entry = fields.require("value", self)?;
        let node: &Node = &entry.value;
        let context = if kind == Type::Nonholonomic { Context::Nonholonomic } else { Context::Holonomic };
        let resolved = self.either(node, scope, context)?;
        let Uses { state, velocities, .. } = resolved.uses;
        if kind == Type::Nonholonomic && !velocities {
            self.diagnostics
                .error(node.span, "the constraint names no velocity")
                .help("a constraint on positions has the type `equation`");
            return None;
        }
        if !state {
            self.diagnostics
                .error(node.span, "nothing in this constraint moves")
                .help("it must name a position, a direction, a coordinate or a variable");
            return None;
        }
        match resolved.value {
            Typed::Scalar(value) => {
                let mut coordinates = false;
                value.for_each_reference(&mut |_| coordinates = true);
                if kind == Type::Coupling && !coordinates {
                    self.diagnostics
                        .error(node.span, "a coupling names coordinates, this one names none")
                        .help("a constraint on points and directions has the type `equation`");
                    return None;
                }
                Some(single(value))
            }
            Typed::Vector(_) if kind == Type::Coupling => {
                self.diagnostics
                    .error(node.span, "a number is expected here, but this is a vector")
                    .help("three equations at once have the type `equation`");
                None
            }
            Typed::Vector(value) => {
                self.spend(node.span, 2 * resolved.extent.size);
                Some(components(&value))
            }
        }
    }

    /// The two points `from` and `to`.
    fn read_pair(&mut self, fields: &Fields<'t>, scope: &Scope) -> Option<(Operand, Operand)> {
        let from = fields.require("from", self).and_then(|e| self.read_point_operand(e, scope));
        let to = fields.require("to", self).and_then(|e| self.read_point_operand(e, scope));
        let (from, to) = (from?, to?);
        self.check_relative(&[&from, &to], "both points are")?;
        Some((from, to))
    }

    /// Reports operands that never move against each other.
    fn check_relative(&mut self, operands: &[&Operand], what: &str) -> Option<()> {
        let body = operands.first()?.on;
        if body.is_none() || operands.iter().any(|operand| operand.on != body) {
            return Some(());
        }
        let name = body.and_then(|id| self.symbols.bodies.get(id.index())).map_or("", |body| &body.name);
        let message = format!("{what} on body `{name}`: nothing moves here");
        self.diagnostics.error(operands[operands.len() - 1].span, message);
        None
    }

    fn read_point_operand(&mut self, entry: &'t Entry, scope: &Scope) -> Option<Operand> {
        self.read_point(&entry.value, entry.value.span, scope)
    }

    /// A point of a body, or a position in the world as three numbers or a vector expression.
    fn read_point(&mut self, node: &Node, span: Span, scope: &Scope) -> Option<Operand> {
        if self.is_address(node, scope) {
            let wanted = "a point `body.point`, or a position";
            let (marker, ..) = self.resolve(node, scope, Context::Holonomic, wanted, |r, e| r.marker(e))?;
            let vector = scope.seen(Vector::Position(marker), false);
            return Some(Operand { vector, on: Some(marker.body), span });
        }
        let vector = self.vector(node, scope, Context::Holonomic)?;
        let on = self.fixed_in_world(&vector);
        Some(Operand { vector, on, span })
    }

    /// A vector of a body, or a direction in the world as three numbers or a vector expression; of unit length.
    fn read_direction_operand(&mut self, entry: &'t Entry, scope: &Scope) -> Option<Operand> {
        let (node, span) = (&*entry.value, entry.value.span);
        if let Kind::Scalar(text) = &node.kind
            && let Ok(syntax) = super::expression::parse(&text.value)
            && let SyntaxKind::Path(head, _) = &syntax.kind
            && matches!(scope.thing(head), Some(Thing::Body(_) | Thing::Broken) | None)
            && scope.symbol(head).is_none()
        {
            let wanted = "a vector `body.vector`, or a direction";
            let ((body, index), ..) =
                self.resolve(node, scope, Context::Holonomic, wanted, |r, e| r.body_vector(e))?;
            let vector = scope.seen(Vector::Direction(body, index), false);
            return Some(Operand { vector, on: Some(body), span });
        }
        let vector = self.vector(node, scope, Context::Holonomic)?;
        if let Some(v) = self.default_vector(span, &vector, "the direction")
            && v == [0.0; 3]
        {
            self.diagnostics.error(span, "the direction is zero at the default parameters");
            return None;
        }
        let on = self.fixed_in_world(&vector);
        Some(Operand { vector: vector.unit(), on, span })
    }

    /// Whether a node is an address, `name` or `name.part`, and not a value.
    fn is_address(&self, node: &Node, scope: &Scope) -> bool {
        let Kind::Scalar(text) = &node.kind else { return false };
        match super::expression::parse(&text.value).map(|syntax| syntax.kind) {
            Ok(SyntaxKind::Name(head) | SyntaxKind::Path(head, _)) => scope.symbol(&head).is_none(),
            _ => false,
        }
    }

    fn fixed_in_world(&self, v: &Vector) -> Option<BodyId> {
        match self.values.vector(v) {
            Err(EvaluateError::NotConstant) => None,
            _ => Some(BodyId::GROUND),
        }
    }

    /// Two unit vectors normal to a direction and to each other, which move smoothly with it:
    /// n1 along the reference, n2 = direction × n1.
    fn normals(
        &mut self,
        direction: &Operand,
        reference: Option<Operand>,
        span: Span,
    ) -> Option<[Vector; 2]> {
        let a = &direction.vector;
        let reference = match reference {
            Some(reference) => reference.vector,
            None => match self.fixed_reference(a) {
                Some(reference) => reference,
                None => {
                    self.diagnostics
                        .error(span, "the line moves against every body, so it needs a `reference`")
                        .help("give a direction that the line is never parallel to, such as the normal of the plane it moves in");
                    return None;
                }
            },
        };
        // Three copies of the direction in n1, four in n2, two of the reference in each; each stands in a row.
        self.spend(span, 7 * a.size() + 4 * reference.size());
        if self.is_exhausted() {
            return None;
        }
        let n1 = reference.across(a.clone());
        let n2 = a.clone().cross(n1.clone());
        Some([n1, n2])
    }

    /// A direction fixed in the same body as `v`, never parallel to it: the body's axis least aligned with it at
    /// the default parameters. `None` if `v` is fixed in no body.
    fn fixed_reference(&self, v: &Vector) -> Option<Vector> {
        let values = &self.values;
        if !matches!(values.vector(v), Err(EvaluateError::NotConstant)) {
            return Some(least_aligned(v, values));
        }
        let in_body = |body: BodyId, local: &Vector| match values.vector(local) {
            Err(EvaluateError::NotConstant) => None,
            _ => Some(least_aligned(local, values).from_frame(body)),
        };
        match v {
            Vector::Direction(body, index) => {
                let (_, local) = self.bodies.get(body.index())?.vectors.get(*index as usize)?;
                in_body(*body, local)
            }
            Vector::FromFrame(body, local) => in_body(*body, local),
            Vector::Subtract(a, b) => match (&**a, &**b) {
                (Vector::Position(a), Vector::Position(b)) if a.body == b.body => {
                    in_body(a.body, &self.local_point(*a)?.minus(self.local_point(*b)?))
                }
                (
                    Vector::Mirror { normal, axial: false, of: a },
                    Vector::Mirror { normal: other, of: b, .. },
                ) if normal == other => {
                    let real = self.fixed_reference(&Vector::Subtract(a.clone(), b.clone()))?;
                    Some(Vector::Mirror { normal: *normal, axial: false, of: Box::new(real) })
                }
                _ => None,
            },
            Vector::Negate(a) | Vector::Unit(a) => self.fixed_reference(a),
            Vector::Mirror { normal, axial, of } => {
                let of = Box::new(self.fixed_reference(of)?);
                Some(Vector::Mirror { normal: *normal, axial: *axial, of })
            }
            _ => None,
        }
    }

    /// A point in its body's frame.
    fn local_point(&self, marker: MarkerRef) -> Option<Vector> {
        let body = self.bodies.get(marker.body.index())?;
        Some(match marker.point {
            PointRef::Origin => Vector::constant([0.0; 3]),
            PointRef::Com => body.com.clone(),
            PointRef::Named(i) => body.points.get(i as usize)?.1.clone(),
        })
    }
}

const XYZ: [&str; 3] = ["x", "y", "z"];

fn single(value: Scalar) -> Rows {
    vec![(String::new(), value)]
}

/// The three components of a vector, each a row.
fn components(v: &Vector) -> Rows {
    (0..3).map(|i| (XYZ[usize::from(i)].into(), component(v, i))).collect()
}

fn component(v: &Vector, i: u8) -> Scalar {
    match v {
        Vector::Components(c) => c[usize::from(i)].clone(),
        v => v.clone().component(i),
    }
}

/// Arms that must have no part along two normals.
fn across(arms: &[Vector], normals: [Vector; 2]) -> Rows {
    let pairs = arms.iter().flat_map(|arm| normals.iter().map(move |n| arm.clone().dot(n.clone())));
    pairs.enumerate().map(|(i, row)| (format!("across{}", i + 1), row)).collect()
}
