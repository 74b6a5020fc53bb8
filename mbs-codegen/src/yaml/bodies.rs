//! `bodies`.

use super::declare::{Declarations, Declared};
use super::expression::resolve::Context;
use super::fields::Fields;
use super::keys;
use super::mirror::{flips, mirror, negate};
use super::node::{Entry, Kind, Node};
use super::reader::Reader;
use super::scope::Scope;
use crate::diagnostics::Span;
use crate::model::evaluate::{cross, norm};
use crate::model::moments::impossible;
use crate::model::{Body, BodyId, Inertia, Scalar, Vector};

impl<'t> Reader<'t> {
    /// Reads all bodies into [`Reader::bodies`].
    pub(super) fn read_bodies(&mut self, declarations: &Declarations<'t>) {
        let mut ground = empty_body("ground", Span::default());
        if let Some(entry) = declarations.ground {
            ground.span = entry.key_span;
            if !entry.value.is_null()
                && let Some(fields) = self.fields(&entry.value, entry.key_span, &keys::GROUND)
                && let Some(root) = declarations.units.first()
            {
                self.read_parts(&fields, BodyId(0), &root.scope, &mut ground);
            }
        }
        self.bodies.push(ground);
        for unit in &declarations.units {
            for declared in &unit.bodies {
                let body = self.read_body(declared, &unit.scope);
                self.bodies.push(body);
            }
        }
    }

    fn read_body(&mut self, declared: &Declared<'t, BodyId>, scope: &Scope) -> Body {
        let entry = declared.entry;
        let mut body = empty_body(&declared.name, entry.key_span);
        if entry.value.is_null() {
            return body;
        }
        let Some(fields) = self.fields(&entry.value, entry.key_span, &keys::BODY) else {
            return body;
        };
        if let Some(kind) = fields.get("kind")
            && let Some(word) = self.string(&kind.value)
            && word != "rigid"
        {
            self.diagnostics
                .error(kind.value.span, "body kinds other than `rigid` are not yet supported")
                .help("leave the key out, or write `kind: rigid`");
        }
        if let Some(description) = fields.value("description") {
            self.string(description);
        }
        if let Some(node) = fields.value("mass")
            && let Some(mass) = self.scalar(node, scope, Context::Parameters)
        {
            if let Some(m) = self.default_scalar(node.span, &mass, "the mass")
                && m < 0.0
            {
                self.diagnostics
                    .error(node.span, format!("the mass of body `{}` is negative: {m}", declared.name));
            }
            body.mass = mass;
        }
        if let Some(node) = fields.value("com")
            && let Some(com) = self.vector(node, scope, Context::Parameters)
        {
            self.default_vector(node.span, &com, "the centre of mass");
            body.com = mirrored(com, scope);
        }
        if let Some(node) = fields.get("inertia")
            && let Some(inertia) = self.read_inertia(node, &declared.name, scope)
        {
            body.inertia = inertia;
        }
        self.read_parts(&fields, declared.id, scope, &mut body);
        body
    }

    /// Points and vectors, as many as were declared, and shapes.
    fn read_parts(&mut self, fields: &Fields<'t>, id: BodyId, scope: &Scope, body: &mut Body) {
        for entry in self.part_entries(fields, "points") {
            let point = self.vector(&entry.value, scope, Context::Parameters);
            if let Some(point) = &point {
                self.default_vector(entry.value.span, point, "the point");
            }
            body.points.push((entry.key.to_string(), mirrored(point.unwrap_or_else(zero), scope)));
        }
        for entry in self.part_entries(fields, "vectors") {
            let vector = self.vector(&entry.value, scope, Context::Parameters);
            if let Some(vector) = &vector {
                self.check_direction(entry.value.span, vector, &format!("vector `{}`", entry.key));
            }
            body.vectors.push((entry.key.to_string(), mirrored(vector.unwrap_or_else(zero), scope)));
        }
        body.shapes = self.read_shapes(fields, id, body, scope);
    }

    fn part_entries(&mut self, fields: &Fields<'t>, key: &str) -> &'t [Entry] {
        match fields.value(key) {
            Some(node) => {
                let entries = self.entries(node, key);
                if entries.len() > super::limits::PARTS { &[] } else { entries }
            }
            None => &[],
        }
    }

    /// The value of a direction at the default parameters; one of no length is reported.
    pub(super) fn check_direction(&mut self, span: Span, v: &Vector, what: &str) -> Option<[f64; 3]> {
        let value = self.default_vector(span, v, what)?;
        if norm(value) > 0.0 {
            return Some(value);
        }
        self.diagnostics
            .error(span, format!("{what} is zero at the default parameters"))
            .help("give it a direction");
        None
    }

    /// The values of an axis and a reference direction; parallel ones are reported.
    pub(super) fn check_directions(&mut self, axis: (Span, &Vector), reference: (Span, &Vector)) {
        let a = self.check_direction(axis.0, axis.1, "the axis");
        let r = self.check_direction(reference.0, reference.1, "the reference direction");
        if let (Some(a), Some(r)) = (a, r)
            && are_parallel(a, r)
        {
            self.diagnostics
                .error(reference.0, "the reference direction is parallel to the axis")
                .help("choose a direction across the axis; only its part normal to the axis counts");
        }
    }

    fn read_inertia(&mut self, entry: &'t Entry, body: &str, scope: &Scope) -> Option<Inertia> {
        let node: &'t Node = &entry.value;
        let context = Context::Parameters;
        let mut inertia = empty_inertia();
        let mut unphysical = false;
        match &node.kind {
            Kind::Sequence(items) if items.len() == 3 => {
                let ([xx, yy, zz], ..) = self.list_of::<3>(node, scope, context)?;
                inertia = Inertia { xx, yy, zz, ..inertia };
            }
            Kind::Sequence(items) if items.len() == 6 => {
                let ([xx, yy, zz, xy, xz, yz], ..) = self.list_of::<6>(node, scope, context)?;
                inertia = Inertia { xx, yy, zz, xy, xz, yz, frame: None };
            }
            Kind::Sequence(items) => {
                self.diagnostics
                    .error(node.span, format!("an inertia has 3 or 6 numbers, not {}", items.len()))
                    .help("write [xx, yy, zz] or [xx, yy, zz, xy, xz, yz]");
                return None;
            }
            Kind::Scalar(_) if !node.is_null() => {
                self.diagnostics
                    .error(node.span, format!("expected an inertia, found {}", node.describe()))
                    .help("write [xx, yy, zz] or [xx, yy, zz, xy, xz, yz], or a mapping of them");
                return None;
            }
            _ => {
                let fields = self.fields(node, entry.key_span, &keys::INERTIA)?;
                let slots = [
                    ("xx", &mut inertia.xx),
                    ("yy", &mut inertia.yy),
                    ("zz", &mut inertia.zz),
                    ("xy", &mut inertia.xy),
                    ("xz", &mut inertia.xz),
                    ("yz", &mut inertia.yz),
                ];
                let mut ok = true;
                for (key, slot) in slots {
                    let Some(node) = fields.value(key) else { continue };
                    match self.scalar(node, scope, context) {
                        Some(e) => *slot = e,
                        None => ok = false,
                    }
                }
                if let Some(frame) = fields.get("frame") {
                    inertia.frame = Some(self.read_frame(frame, scope)?);
                }
                if !ok {
                    return None;
                }
                unphysical = fields.value("unphysical").and_then(|n| self.boolean(n)).unwrap_or(false);
            }
        }
        self.check_inertia(node.span, body, &inertia, unphysical);
        Some(mirrored_inertia(inertia, scope))
    }

    fn read_frame(&mut self, entry: &'t Entry, scope: &Scope) -> Option<(Vector, Vector)> {
        let fields = self.fields(&entry.value, entry.key_span, &keys::FRAME)?;
        let axis = fields.require("axis", self);
        let reference = fields.require("reference", self);
        let (axis, reference) = (axis?, reference?);
        let a = self.vector(&axis.value, scope, Context::Parameters);
        let r = self.vector(&reference.value, scope, Context::Parameters);
        let (a, r) = (a?, r?);
        self.check_directions((axis.value.span, &a), (reference.value.span, &r));
        Some((a, r))
    }

    /// Reports an inertia that is not finite or, unless it may be `unphysical`, that no body can have. A frame does
    /// not change the principal moments.
    fn check_inertia(&mut self, span: Span, body: &str, inertia: &Inertia, unphysical: bool) {
        let Inertia { xx, yy, zz, xy, xz, yz, .. } = inertia;
        let mut j = [0.0; 6];
        for (slot, e) in j.iter_mut().zip([xx, yy, zz, xy, xz, yz]) {
            let Some(x) = self.default_scalar(span, e, "the inertia") else {
                return;
            };
            *slot = x;
        }
        if let Some(why) = impossible(j).filter(|_| !unphysical) {
            self.diagnostics
                .error(span, format!("no body has the inertia of `{body}`: {why}"))
                .help(format!("{}; in a mapping, `unphysical: true` accepts any", why.help()));
        }
    }
}

/// Whether two directions are parallel, to within a microradian.
pub(super) fn are_parallel(a: [f64; 3], b: [f64; 3]) -> bool {
    norm(cross(a, b)) <= 1e-6 * norm(a) * norm(b)
}

pub(super) fn zero() -> Vector {
    Vector::Components(Box::new([Scalar::Number(0.0), Scalar::Number(0.0), Scalar::Number(0.0)]))
}

/// S v in a mirrored element.
pub(super) fn mirrored(v: Vector, scope: &Scope) -> Vector {
    match scope.mirror {
        Some(normal) => mirror(v, normal, false),
        None => v,
    }
}

/// S J S: the products with the mirrored axis change their signs. In a frame F (axis → z, reference → x, both
/// polar) the image is F' = S F diag(1, −1, 1), so there the products with y do.
fn mirrored_inertia(mut j: Inertia, scope: &Scope) -> Inertia {
    let Some(normal) = scope.mirror else { return j };
    let normal_in_frame = if j.frame.is_some() { 1 } else { normal };
    let change = |e: Scalar, a: usize, b: usize| {
        let odd = flips(a, normal_in_frame, false) != flips(b, normal_in_frame, false);
        if odd { negate(e) } else { e }
    };
    j.xy = change(j.xy, 0, 1);
    j.xz = change(j.xz, 0, 2);
    j.yz = change(j.yz, 1, 2);
    j.frame =
        j.frame.map(|(axis, reference)| (mirror(axis, normal, false), mirror(reference, normal, false)));
    j
}

fn empty_inertia() -> Inertia {
    let zero = || Scalar::Number(0.0);
    Inertia { xx: zero(), yy: zero(), zz: zero(), xy: zero(), xz: zero(), yz: zero(), frame: None }
}

fn empty_body(name: &str, span: Span) -> Body {
    Body {
        name: name.to_string(),
        mass: Scalar::Number(0.0),
        com: zero(),
        inertia: empty_inertia(),
        points: Vec::new(),
        vectors: Vec::new(),
        shapes: Vec::new(),
        span,
    }
}
