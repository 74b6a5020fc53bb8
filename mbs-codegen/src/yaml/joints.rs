//! `joints`.
//!
//! Holds afterwards: both sides of a joint have an axis where its kind needs one, and both or neither a reference
//! direction; at the default parameters no direction is zero and no reference is parallel to its axis.

use super::bodies::are_parallel;
use super::declare::{Declarations, Declared};
use super::expression::SyntaxKind;
use super::expression::resolve::Context;
use super::fields::Fields;
use super::keys;
use super::mirror::{Direction, mirror, mirror_direction};
use super::node::{Entry, Kind, Node};
use super::reader::Reader;
use super::scope::{Scope, Thing};
use super::shared_joints::SHARED;
use crate::diagnostics::Span;
use crate::model::{BodyId, Joint, JointId, JointKind, JointPoint, JointSide, MarkerRef, PointRef, Vector};

/// A direction and where it is written.
pub(super) type Placed = (Span, Vector);

/// A side as written.
pub(super) struct Side {
    pub(super) body: BodyId,
    pub(super) point: JointPoint,
    pub(super) axis: Option<Placed>,
    pub(super) reference: Option<Placed>,
    pub(super) span: Span,
}

impl<'t> Reader<'t> {
    /// Reads all joints. Those that could not be read are left out.
    pub(super) fn read_joints(&mut self, declarations: &Declarations<'t>) -> Vec<Joint> {
        let mut joints = Vec::new();
        for unit in &declarations.units {
            for declared in &unit.joints {
                match self.read_joint(declared, &unit.scope) {
                    Some(joint) => joints.push(joint),
                    None => self.joints_incomplete = true,
                }
            }
        }
        joints
    }

    fn read_joint(&mut self, declared: &Declared<'t, JointId>, scope: &Scope) -> Option<Joint> {
        let entry = declared.entry;
        let fields = self.fields(&entry.value, entry.key_span, &keys::JOINT)?;
        if let Some(description) = fields.value("description") {
            self.string(description);
        }
        let known = JointKind::ALL.map(|kind| (kind.keyword(), Some(kind)));
        let kinds: Vec<_> = known.into_iter().chain([(SHARED, None)]).collect();
        let kind = fields.require("type", self).and_then(|e| self.word(&e.value, "a type of joint", &kinds));
        let parent = fields.require("parent", self).and_then(|e| self.read_side(e, scope));
        let child = fields.require("child", self).and_then(|e| self.read_side(e, scope));
        let cut = fields.value("cut").and_then(|n| self.boolean(n));
        let kind = kind?;
        let mut shared = None;
        let (kind, start, mut parent, mut child) = match kind {
            Some(kind) => {
                let start = self.read_start(fields.value("start"), declared.id, kind, scope);
                (kind, start, parent?, child?)
            }
            None => {
                let (mut parent, mut child) = (parent?, child?);
                let sides = (&mut parent, &mut child);
                let (kind, parts) = self.read_shared(entry.key_span, &fields, sides, scope)?;
                let mut symbol = self.symbols.joints.get(declared.id.index())?.clone();
                self.name_coordinates(kind, fields.value("names"), &mut symbol);
                self.symbols.joints[declared.id.index()] = symbol;
                shared = Some(parts);
                let start = self.read_start(fields.value("start"), declared.id, kind, scope);
                (kind, start, parent, child)
            }
        };
        self.check_bodies(&parent, &child);
        if shared.is_none() {
            match fields.get("dh") {
                Some(dh) => self.read_dh(dh, &fields, kind, (&mut parent, &mut child), scope)?,
                None => self.read_directions(&fields, kind, &mut parent, &mut child, scope)?,
            }
            self.refuse_shared_keys(&fields, kind);
        }
        self.check_sides(kind, &parent, &child);

        let symbol = self.symbols.joints.get(declared.id.index())?;
        let (coordinates, velocities) = (symbol.coordinates.clone(), symbol.velocities.clone());
        Some(Joint {
            name: declared.name.clone(),
            kind,
            parent: finish(parent, kind, scope),
            child: finish(child, kind, scope),
            coordinates,
            velocities,
            start,
            left_handed: kind == JointKind::Cylindrical && scope.mirror.is_some(),
            cut,
            follows: None,
            shared,
            span: entry.key_span,
        })
    }

    fn check_bodies(&mut self, parent: &Side, child: &Side) {
        if parent.body == child.body {
            let name = &self.symbols.bodies[child.body.index()].name;
            let message = format!("the joint connects body `{name}` to itself");
            self.diagnostics.error(child.span, message);
            self.joints_incomplete = true;
        }
    }

    /// `body`, `body.point`, or a mapping.
    fn read_side(&mut self, entry: &'t Entry, scope: &Scope) -> Option<Side> {
        let node: &'t Node = &entry.value;
        let Kind::Mapping(_) = &node.kind else {
            let wanted = "a body, `body.point` or a mapping";
            let (marker, ..) = self.resolve(node, scope, Context::Parameters, wanted, |r, e| r.marker(e))?;
            let MarkerRef { body, point } = marker;
            return Some(Side {
                body,
                point: JointPoint::Point(point),
                axis: None,
                reference: None,
                span: node.span,
            });
        };
        let fields = self.fields(node, entry.key_span, &keys::SIDE)?;
        let body_entry = fields.require("body", self)?;
        let (marker, ..) =
            self.resolve(&body_entry.value, scope, Context::Parameters, "the name of a body", |r, e| {
                r.marker(e)
            })?;
        let body = marker.body;
        let mut point = JointPoint::Point(marker.point);
        if let Some(node) = fields.value("point") {
            if marker.point != PointRef::Origin {
                self.diagnostics.error(node.span, "the point is given twice").help("leave out one of them");
            }
            point = self.read_point_of(node, body, scope)?;
        }
        let axis = fields.value("axis").map(|n| self.read_direction(n, Some(body), scope));
        let reference = fields.value("reference").map(|n| self.read_direction(n, Some(body), scope));
        Some(Side {
            body,
            point,
            axis: axis.map_or(Some(None), |a| a.map(Some))?,
            reference: reference.map_or(Some(None), |r| r.map(Some))?,
            span: body_entry.value.span,
        })
    }

    /// A point of a body: its name, three numbers or an expression.
    pub(super) fn read_point_of(&mut self, node: &Node, body: BodyId, scope: &Scope) -> Option<JointPoint> {
        let symbol = &self.symbols.bodies[body.index()];
        if let Kind::Scalar(text) = &node.kind {
            if let Some(point) = symbol.point(&text.value) {
                return Some(JointPoint::Point(point));
            }
            if super::names::is_name(&text.value) && scope.symbol(&text.value).is_none() {
                let names = ["origin", "com"].into_iter().chain(symbol.points.iter().map(String::as_str));
                let help = match self.nearest(&text.value, names) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => {
                        format!("declare it under `points` of `{}`, or give its coordinates", symbol.name)
                    }
                };
                let message = format!("body `{}` has no point `{}`", symbol.name, text.value);
                self.diagnostics.error(node.span, message).help(help);
                return None;
            }
        }
        let v = self.vector(node, scope, Context::Parameters)?;
        self.default_vector(node.span, &v, "the point");
        Some(JointPoint::At(v))
    }

    /// A direction in a body's frame: three numbers, an expression, or the name of a vector: `body.vector`, or
    /// `vector` where the body is known.
    pub(super) fn read_direction(
        &mut self,
        node: &Node,
        body: Option<BodyId>,
        scope: &Scope,
    ) -> Option<Placed> {
        let Some((id, index)) = self.named_direction(node, body, scope)? else {
            return self.vector(node, scope, Context::Parameters).map(|v| (node.span, v));
        };
        let v = self.bodies.get(id.index())?.vectors.get(index as usize)?.1.clone();
        // The body's vector is a real one: seen in the mirror it is reflected.
        let v = match scope.mirror {
            Some(normal) => mirror(v, normal, false),
            None => v,
        };
        Some((node.span, v))
    }

    /// The vector a node names, `Some(None)` if it names none, `None` if it names one that does not exist.
    pub(super) fn named_direction(
        &mut self,
        node: &Node,
        body: Option<BodyId>,
        scope: &Scope,
    ) -> Option<Option<(BodyId, u32)>> {
        let Kind::Scalar(text) = &node.kind else {
            return Some(None);
        };
        let Ok(syntax) = super::expression::parse(&text.value) else {
            return Some(None);
        };
        match &syntax.kind {
            SyntaxKind::Path(head, _) if matches!(scope.thing(head), Some(Thing::Body(_))) => {
                let wanted = "a vector `body.vector`";
                let found =
                    self.resolve(node, scope, Context::Parameters, wanted, |r, e| r.body_vector(e))?;
                Some(Some(found.0))
            }
            SyntaxKind::Name(name) if scope.symbol(name).is_none() && scope.thing(name).is_none() => {
                let Some(id) = body else { return Some(None) };
                let symbol = &self.symbols.bodies[id.index()];
                if let Some(index) = symbol.vector(name) {
                    return Some(Some((id, index)));
                }
                let help = match self.nearest(name, symbol.vectors.iter().map(String::as_str)) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => {
                        format!("declare it under `vectors` of `{}`, or give its components", symbol.name)
                    }
                };
                let message = format!("body `{}` has no vector `{name}`", symbol.name);
                self.diagnostics.error(node.span, message).help(help);
                None
            }
            _ => Some(None),
        }
    }

    /// Gives both sides the directions of the joint's entry, and refuses keys that the kind does not have.
    fn read_directions(
        &mut self,
        fields: &Fields<'t>,
        kind: JointKind,
        parent: &mut Side,
        child: &mut Side,
        scope: &Scope,
    ) -> Option<()> {
        let word = kind.keyword();
        let needs_axis = !matches!(kind, JointKind::Fixed | JointKind::Spherical | JointKind::Floating);
        let joint_axis = needs_axis && kind != JointKind::Cardan;
        for (key, allowed) in [
            ("axis", joint_axis),
            ("axes", kind == JointKind::Cardan),
            ("reference", kind == JointKind::Planar),
        ] {
            if let Some(entry) = fields.get(key)
                && !allowed
            {
                let help = match (key, kind) {
                    ("axis", JointKind::Cardan) => "write `axes: [first, second]`",
                    ("axes", _) if joint_axis => "write `axis: […]`",
                    ("reference", _) if needs_axis => "give `axis` and `reference` on both sides instead",
                    _ => "to orient the joint's frames, give `axis` and `reference` on both sides",
                };
                self.diagnostics
                    .error(entry.key_span, format!("a {word} joint has no `{key}` of its own"))
                    .help(help);
                return None;
            }
        }
        let on_sides = [&*parent, &*child].iter().any(|s| s.axis.is_some() || s.reference.is_some());
        let own = fields.get("axis").or(fields.get("axes"));
        if let (true, Some(own)) = (on_sides, own) {
            self.diagnostics
                .error(own.key_span, format!("`{}` is given at the joint and on its sides", own.key))
                .help("give it in one of the two places");
            return None;
        }
        if on_sides {
            return Some(());
        }
        if kind == JointKind::Cardan {
            let axes = fields.require("axes", self)?;
            let Kind::Sequence(items) = &axes.value.kind else {
                self.diagnostics.error(
                    axes.value.span,
                    format!("expected a list of two axes, found {}", axes.value.describe()),
                );
                return None;
            };
            let [first, second] = items.as_slice() else {
                let n = items.len();
                self.diagnostics
                    .error(axes.value.span, format!("a cardan joint has two axes, this list has {n}"))
                    .help("write axes: [[1, 0, 0], [0, 1, 0]]: the first in the parent, the second in the child");
                return None;
            };
            parent.axis = self.read_direction(first, Some(parent.body), scope);
            child.axis = self.read_direction(second, Some(child.body), scope);
            (parent.axis.is_some() && child.axis.is_some()).then_some(())?;
        } else if needs_axis {
            let axis = fields.require("axis", self)?;
            let axis = self.read_direction(&axis.value, None, scope)?;
            parent.axis = Some(axis.clone());
            child.axis = Some(axis);
        }
        if kind == JointKind::Planar {
            let reference = fields.require("reference", self)?;
            let reference = self.read_direction(&reference.value, None, scope)?;
            parent.reference = Some(reference.clone());
            child.reference = Some(reference);
        }
        Some(())
    }

    /// Checks the two axes of a cardan joint without reference directions.
    fn check_axes(&mut self, parent: &Side, child: &Side) {
        let (Some((first_span, first)), Some((second_span, second))) = (&parent.axis, &child.axis) else {
            self.diagnostics
                .error(parent.span, "both sides of a cardan joint need an axis")
                .help("give `axis` on both sides, or `axes: [first, second]` at the joint");
            return;
        };
        let a = self.check_direction(*first_span, first, "the first axis");
        let b = self.check_direction(*second_span, second, "the second axis");
        if let (Some(a), Some(b)) = (a, b)
            && are_parallel(a, b)
        {
            self.diagnostics
                .error(*second_span, "the two axes of the cardan joint are parallel")
                .help("a revolute joint turns about one axis");
        }
    }

    /// Checks the directions at the default parameters.
    fn check_sides(&mut self, kind: JointKind, parent: &Side, child: &Side) {
        let has = |s: &Side| (s.axis.is_some(), s.reference.is_some());
        if kind == JointKind::Cardan && !parent.has_reference() && !child.has_reference() {
            self.check_axes(parent, child);
            return;
        }
        // Without references the same axis on both sides is the joint's own.
        let same = parent.axis == child.axis;
        if has(parent) == (true, false) && has(child) == (true, false) && same {
            if let Some((span, axis)) = &parent.axis {
                self.check_direction(*span, axis, "the axis");
            }
            return;
        }
        if has(parent) == (false, false) && has(child) == (false, false) {
            return;
        }
        if has(parent) != (true, true) || has(child) != (true, true) {
            let at = if has(parent) == (true, true) { child.span } else { parent.span };
            self.diagnostics
                .error(at, "directions on the sides of a joint need `axis` and `reference`, on both sides")
                .help("or give one `axis` at the joint: the same components in both body frames");
            return;
        }
        let sides = if kind == JointKind::Planar && same { vec![parent] } else { vec![parent, child] };
        for side in sides {
            if let (Some(axis), Some(reference)) = (&side.axis, &side.reference) {
                self.check_directions((axis.0, &axis.1), (reference.0, &reference.1));
            }
        }
    }
}

impl Side {
    fn has_reference(&self) -> bool {
        self.reference.is_some()
    }
}

/// The side as the model has it, mirrored if its element is.
fn finish(side: Side, kind: JointKind, scope: &Scope) -> JointSide {
    let axis = side.axis.map(|a| a.1);
    let reference = side.reference.map(|r| r.1);
    let Some(normal) = scope.mirror else {
        return JointSide { body: side.body, point: side.point, axis, reference };
    };
    let point = match side.point {
        JointPoint::At(v) => JointPoint::At(mirror(v, normal, false)),
        point => point,
    };
    JointSide {
        body: side.body,
        point,
        axis: axis.map(|a| mirror_direction(a, kind, Direction::Axis, normal)),
        reference: reference.map(|r| mirror_direction(r, kind, Direction::Reference, normal)),
    }
}
