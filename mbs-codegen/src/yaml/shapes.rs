//! `shape` of a body: one shape or a list of them.
//!
//! Holds afterwards: at the default parameters every size is finite and greater than zero, and no cylinder or capsule has
//! its ends in one point.

use super::bodies::{mirrored, zero};
use super::expression::resolve::{Context, list};
use super::fields::Fields;
use super::keys::{self, Keys};
use super::limits;
use super::node::{Entry, Kind, Node};
use super::reader::Reader;
use super::scope::Scope;
use crate::diagnostics::Span;
use crate::model::evaluate::norm;
use crate::model::shape::COLOURS;
use crate::model::{BinaryOp, Body, BodyId, JointPoint, PointRef, Scalar, Shape, ShapeKind, Vector};

#[derive(Clone, Copy)]
enum Type {
    Box,
    Ellipsoid,
    Sphere,
    Cylinder,
    Capsule,
}

const TYPES: [(&str, Type); 5] = [
    ("box", Type::Box),
    ("ellipsoid", Type::Ellipsoid),
    ("sphere", Type::Sphere),
    ("cylinder", Type::Cylinder),
    ("capsule", Type::Capsule),
];

impl Type {
    fn keys(self) -> &'static Keys {
        match self {
            Type::Box => &keys::BOX,
            Type::Ellipsoid => &keys::ELLIPSOID,
            Type::Sphere => &keys::SPHERE,
            Type::Cylinder => &keys::CYLINDER,
            Type::Capsule => &keys::CAPSULE,
        }
    }
}

/// The body whose shapes are read: its number, and its parts as far as they are read.
#[derive(Clone, Copy)]
struct Of<'b> {
    id: BodyId,
    body: &'b Body,
}

impl<'t> Reader<'t> {
    /// The shapes of a body whose points and vectors are read.
    pub(super) fn read_shapes(
        &mut self,
        fields: &Fields<'t>,
        id: BodyId,
        body: &Body,
        scope: &Scope,
    ) -> Vec<Shape> {
        let Some(entry) = fields.get("shape") else { return Vec::new() };
        let of = Of { id, body };
        match &entry.value.kind {
            Kind::Sequence(items) if items.len() > limits::PARTS => {
                let (n, limit) = (items.len(), limits::PARTS);
                self.diagnostics.error(entry.key_span, format!("{n} shapes; the limit is {limit}"));
                Vec::new()
            }
            Kind::Sequence(items) => {
                items.iter().filter_map(|item| self.read_shape(item, item.span, of, scope)).collect()
            }
            _ => self.read_shape(&entry.value, entry.key_span, of, scope).into_iter().collect(),
        }
    }

    fn read_shape(&mut self, node: &'t Node, at: Span, of: Of<'_>, scope: &Scope) -> Option<Shape> {
        let Kind::Mapping(entries) = &node.kind else {
            if !node.is_broken() {
                self.diagnostics
                    .error(if node.is_null() { at } else { node.span }, {
                        format!("expected a shape as a mapping or a list of them, found {}", node.describe())
                    })
                    .help("for example {type: sphere, radius: 0.1}");
            }
            return None;
        };
        let kind = self.read_type(entries, at, "shape", &TYPES)?;
        let fields = self.fields(node, at, kind.keys())?;
        let colour = fields.value("colour").and_then(|node| self.read_colour(node));
        let kind = match kind {
            Type::Box => {
                let (at, size) = self.read_block(&fields, of, scope)?;
                ShapeKind::Box { at, size }
            }
            Type::Ellipsoid => {
                let (at, size) = self.read_block(&fields, of, scope)?;
                ShapeKind::Ellipsoid { at, size }
            }
            Type::Sphere => {
                let radius = self.read_size(&fields, "radius", scope);
                let at = self.read_place(fields.get("at"), of, scope);
                ShapeKind::Sphere { at: at?, radius: radius? }
            }
            Type::Cylinder => {
                let (ends, radius) = self.read_round(&fields, of, scope)?;
                ShapeKind::Cylinder { ends, radius }
            }
            Type::Capsule => {
                let (ends, radius) = self.read_round(&fields, of, scope)?;
                ShapeKind::Capsule { ends, radius }
            }
        };
        Some(Shape { kind, colour, span: at })
    }

    /// The middle and the three lengths of a box or an ellipsoid.
    fn read_block(&mut self, fields: &Fields<'t>, of: Of<'_>, scope: &Scope) -> Option<(Vector, Vector)> {
        let at = self.read_place(fields.get("at"), of, scope);
        let entry = fields.require("size", self)?;
        let size = self.vector(&entry.value, scope, Context::Parameters)?;
        let values = self.default_vector(entry.value.span, &size, "the size")?;
        if let Some(&x) = values.iter().find(|x| **x <= 0.0) {
            self.refuse_size(entry.value.span, "the size", x);
            return None;
        }
        Some((at?, size))
    }

    /// The ends and the radius of a cylinder or a capsule: `from` and `to`, or `length` along `axis` about `at`.
    fn read_round(
        &mut self,
        fields: &Fields<'t>,
        of: Of<'_>,
        scope: &Scope,
    ) -> Option<([Vector; 2], Scalar)> {
        let radius = self.read_size(fields, "radius", scope);
        let ends = ["from", "to"].map(|key| fields.get(key));
        let along = ["axis", "length", "at"].map(|key| fields.get(key));
        let one_of_each = ends.iter().flatten().next().zip(along.iter().flatten().next());
        if let Some((end, other)) = one_of_each {
            let (end, other) = (&end.key, &other.key);
            self.diagnostics
                .error(fields.at, format!("both `{end}` and `{other}`"))
                .help("give the ends, `from` and `to`, or an `axis` and a `length`");
            return None;
        }
        if ends.iter().any(Option::is_some) {
            let ends = ["from", "to"].map(|key| {
                let entry = fields.require(key, self)?;
                let place = self.read_place(Some(entry), of, scope)?;
                let value = self.default_vector(entry.value.span, &place, "the end")?;
                Some((place, value, entry.value.span))
            });
            let [from, to] = ends;
            let ((from, a, _), (to, b, span)) = (from?, to?);
            if norm([b[0] - a[0], b[1] - a[1], b[2] - a[2]]) <= 0.0 {
                self.diagnostics
                    .error(span, "both ends are in one point at the default parameters")
                    .help("a ball is {type: sphere, radius: …}");
                return None;
            }
            return Some(([from, to], radius?));
        }
        let axis = fields.require("axis", self).and_then(|entry| self.read_axis(&entry.value, of, scope));
        let length = self.read_size(fields, "length", scope);
        let at = self.read_place(fields.get("at"), of, scope);
        // at ± length/2 axis
        let (axis, length, at) = (axis?, length?, at?);
        let half = Scalar::Binary(BinaryOp::Multiply, Box::new(Scalar::Number(0.5)), Box::new(length));
        let offset = Vector::Scale(Box::new(half), Box::new(Vector::Unit(Box::new(axis))));
        let from = Vector::Subtract(Box::new(at.clone()), Box::new(offset.clone()));
        let to = Vector::Add(Box::new(at), Box::new(offset));
        Some(([from, to], radius?))
    }

    /// A place on the body: the name of one of its points or coordinates; the centre of mass where nothing is written.
    fn read_place(&mut self, entry: Option<&'t Entry>, of: Of<'_>, scope: &Scope) -> Option<Vector> {
        let Some(entry) = entry else { return Some(of.body.com.clone()) };
        match self.read_point_of(&entry.value, of.id, scope)? {
            JointPoint::Point(PointRef::Origin) => Some(zero()),
            JointPoint::Point(PointRef::Com) => Some(of.body.com.clone()),
            JointPoint::Point(PointRef::Named(i)) => of.body.points.get(i as usize).map(|p| p.1.clone()),
            JointPoint::At(at) => Some(mirrored(at, scope)),
        }
    }

    /// A direction on the body: three numbers, an expression, or the name of one of its vectors.
    fn read_axis(&mut self, node: &Node, of: Of<'_>, scope: &Scope) -> Option<Vector> {
        let axis = match self.named_direction(node, Some(of.id), scope)? {
            None => mirrored(self.vector(node, scope, Context::Parameters)?, scope),
            Some((id, index)) if id == of.id => of.body.vectors.get(index as usize)?.1.clone(),
            Some((id, _)) => {
                let other = &self.symbols.bodies[id.index()].name;
                let message = format!("the axis of a shape of `{}` is on body `{other}`", of.body.name);
                self.diagnostics.error(node.span, message).help("give a direction on the shape's own body");
                return None;
            }
        };
        self.check_direction(node.span, &axis, "the axis").map(|_| axis)
    }

    /// A length greater than zero.
    fn read_size(&mut self, fields: &Fields<'t>, key: &str, scope: &Scope) -> Option<Scalar> {
        let entry = fields.require(key, self)?;
        let size = self.scalar(&entry.value, scope, Context::Parameters)?;
        let what = format!("the {key}");
        let value = self.default_scalar(entry.value.span, &size, &what)?;
        if value > 0.0 {
            return Some(size);
        }
        self.refuse_size(entry.value.span, &what, value);
        None
    }

    fn refuse_size(&mut self, span: Span, what: &str, value: f64) {
        self.diagnostics
            .error(span, format!("{what} of a shape must be greater than zero, not {value}"))
            .help("sizes are lengths in metres");
    }

    /// The name of a colour, or `'#rrggbb'`.
    fn read_colour(&mut self, node: &Node) -> Option<[u8; 3]> {
        if let Kind::Scalar(text) = &node.kind
            && let Some(digits) = text.value.strip_prefix('#')
            && digits.len() == 6
            && let Ok(number) = u32::from_str_radix(digits, 16)
        {
            let [_, red, green, blue] = number.to_be_bytes();
            return Some([red, green, blue]);
        }
        if node.is_null() || matches!(&node.kind, Kind::Scalar(text) if text.value.starts_with('#')) {
            let names = list(COLOURS.iter().map(|(name, _)| *name));
            self.diagnostics.error(node.span, "expected a colour").help(format!(
                "write six hexadecimal digits in quotes, '#1f6feb' (without them # begins a comment), or one of {names}"
            ));
            return None;
        }
        self.word(node, "a colour", &COLOURS)
    }
}
