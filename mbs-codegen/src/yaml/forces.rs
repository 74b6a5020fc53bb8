//! `forces`.

use super::declare::{Declarations, Declared};
use super::expression::resolve::{Context, Resolver};
use super::fields::Fields;
use super::keys::{self, Keys};
use super::mirror::{coordinate_flips, mirror, negate};
use super::node::{Entry, Kind};
use super::reader::Reader;
use super::scope::Scope;
use crate::model::{CoordinateRef, Force, ForceKind, JointKind, MarkerRef, Scalar, SpringLaw, Vector};

#[derive(Clone, Copy)]
enum Type {
    Spring,
    TorsionalSpring,
    Force,
    Torque,
    JointForce,
}

const TYPES: [(&str, Type); 5] = [
    ("spring", Type::Spring),
    ("torsional_spring", Type::TorsionalSpring),
    ("force", Type::Force),
    ("torque", Type::Torque),
    ("joint_force", Type::JointForce),
];

impl Type {
    fn keys(self) -> &'static Keys {
        match self {
            Type::Spring => &keys::SPRING,
            Type::TorsionalSpring => &keys::TORSIONAL_SPRING,
            Type::Force => &keys::FORCE,
            Type::Torque => &keys::TORQUE,
            Type::JointForce => &keys::JOINT_FORCE,
        }
    }
}

impl<'t> Reader<'t> {
    /// Reads all forces.
    pub(super) fn read_forces(&mut self, declarations: &Declarations<'t>) -> Vec<Force> {
        let mut forces = Vec::new();
        for unit in &declarations.units {
            for declared in &unit.forces {
                let activity = self.activity_of(declared.entry, &unit.scope);
                if let (Some(kind), Some(activity)) = (self.read_force(declared, &unit.scope), activity) {
                    let (name, span) = (declared.name.clone(), declared.entry.key_span);
                    forces.push(Force { name, kind, activity, span });
                }
            }
        }
        forces
    }

    fn read_force(&mut self, declared: &Declared<'t, ()>, scope: &Scope) -> Option<ForceKind> {
        let entry = declared.entry;
        let Kind::Mapping(entries) = &entry.value.kind else {
            let what = entry.value.describe();
            self.diagnostics
                .error(entry.key_span, format!("expected a force as a mapping, found {what}"))
                .help("it starts with its `type`");
            return None;
        };
        let kind = self.read_type(entries, entry.key_span, "force", &TYPES)?;
        let fields = self.fields(&entry.value, entry.key_span, kind.keys())?;
        if let Some(description) = fields.value("description") {
            self.string(description);
        }
        match kind {
            Type::Spring => self.read_spring(&fields, scope),
            Type::TorsionalSpring => {
                let coordinate = self.force_coordinate(&fields, scope);
                let law = self.read_law(&fields, "natural_angle", scope);
                let (coordinate, law) = (coordinate?, law?);
                let law = if self.flipped(coordinate, scope) { flipped_law(law) } else { law };
                Some(ForceKind::TorsionalSpring { coordinate, law })
            }
            Type::Force => {
                let at = fields.require("at", self).and_then(|e| self.read_marker(e, scope));
                let reaction = fields.get("reaction").map(|e| self.read_marker(e, scope));
                let value = self.read_force_vector(&fields, scope, false);
                let reaction = reaction.map_or(Some(None), |r| r.map(Some));
                Some(ForceKind::Force { at: at?, reaction: reaction?, value: value? })
            }
            Type::Torque => {
                let on = fields.require("on", self).and_then(|e| self.read_body_name(e, scope));
                let reaction = fields.get("reaction").map(|e| self.read_body_name(e, scope));
                let value = self.read_force_vector(&fields, scope, true);
                let reaction = reaction.map_or(Some(None), |r| r.map(Some));
                Some(ForceKind::Torque { on: on?, reaction: reaction?, value: value? })
            }
            Type::JointForce => {
                let coordinate = self.force_coordinate(&fields, scope);
                let value =
                    fields.require("value", self).and_then(|e| self.scalar(&e.value, scope, Context::Force));
                let (coordinate, value) = (coordinate?, value?);
                let value = if self.flipped(coordinate, scope) { negate(value) } else { value };
                Some(ForceKind::JointForce { coordinate, value })
            }
        }
    }

    fn read_spring(&mut self, fields: &Fields<'t>, scope: &Scope) -> Option<ForceKind> {
        let from = fields.require("from", self).and_then(|e| self.read_marker(e, scope));
        let to = fields.require("to", self).and_then(|e| self.read_marker(e, scope));
        let law = self.read_law(fields, "natural_length", scope);
        let (from, to) = (from?, to?);
        if from.body == to.body {
            let body = &self.symbols.bodies[from.body.index()].name;
            let at = fields.get("to").map_or(fields.at, |e| e.value.span);
            if from == to {
                self.diagnostics.error(at, "the spring connects a point to itself");
            } else {
                let message = format!("both ends of the spring are on body `{body}`: it does nothing");
                self.diagnostics.warning(at, message);
            }
        }
        Some(ForceKind::Spring { from, to, law: law? })
    }

    fn read_law(&mut self, fields: &Fields<'t>, natural_key: &str, scope: &Scope) -> Option<SpringLaw> {
        if let Some(law) = fields.get("law") {
            for key in ["stiffness", "damping", natural_key] {
                if let Some(extra) = fields.get(key) {
                    let message = format!("`{key}` and `law` exclude each other");
                    self.diagnostics
                        .error(extra.key_span, message)
                        .help("write the whole force into the law");
                    return None;
                }
            }
            return self.scalar(&law.value, scope, Context::Law).map(SpringLaw::Expression);
        }
        if ["stiffness", "damping", "law"].iter().any(|key| fields.is_misspelt(key)) {
            return None;
        }
        if fields.get("stiffness").is_none() && fields.get("damping").is_none() {
            self.diagnostics
                .error(fields.at, "the spring has neither `stiffness` nor `damping` nor `law`")
                .help("give at least one of them");
            return None;
        }
        let mut ok = true;
        let mut part = |reader: &mut Self, key: &str| {
            let Some(node) = fields.value(key) else {
                return Scalar::Number(0.0);
            };
            let value = reader.scalar(node, scope, Context::Force);
            if let Some(e) = &value {
                reader.default_scalar(node.span, e, &format!("`{key}`"));
            }
            ok &= value.is_some();
            value.unwrap_or(Scalar::Number(0.0))
        };
        let stiffness = part(self, "stiffness");
        let damping = part(self, "damping");
        let natural = part(self, natural_key);
        ok.then_some(SpringLaw::Linear { stiffness, damping, natural })
    }

    fn read_marker(&mut self, entry: &'t Entry, scope: &Scope) -> Option<MarkerRef> {
        let wanted = "a point `body.point`";
        self.resolve(&entry.value, scope, Context::Force, wanted, |r, e| r.marker(e)).map(|(m, ..)| m)
    }

    fn read_body_name(&mut self, entry: &'t Entry, scope: &Scope) -> Option<crate::model::BodyId> {
        let wanted = "the name of a body";
        self.resolve(&entry.value, scope, Context::Force, wanted, |r, e| r.body(e)).map(|(b, ..)| b)
    }

    fn force_coordinate(&mut self, fields: &Fields<'t>, scope: &Scope) -> Option<CoordinateRef> {
        let entry = fields.require("coordinate", self)?;
        self.plain_coordinate(
            entry,
            scope,
            ["no force can act along an Euler parameter", "use a torque on the body instead"],
        )
    }

    /// The coordinate whose position an event resets.
    pub(super) fn reset_coordinate(&mut self, entry: &'t Entry, scope: &Scope) -> Option<CoordinateRef> {
        self.plain_coordinate(
            entry,
            scope,
            [
                "no event resets one of the Euler parameters of a rotation",
                "reset coordinates of other joints",
            ],
        )
    }

    /// A coordinate that is no Euler parameter; `refusal`: the message for one.
    fn plain_coordinate(
        &mut self,
        entry: &'t Entry,
        scope: &Scope,
        refusal: [&str; 2],
    ) -> Option<CoordinateRef> {
        let wanted = "a coordinate `joint.coordinate`";
        let (c, ..) = self.resolve(&entry.value, scope, Context::Force, wanted, |r, e| r.coordinate(e))?;
        let CoordinateRef::Joint { joint, index } = c else { return Some(c) };
        let joint = self.symbols.joints.get(joint.index())?;
        let euler = match joint.kind? {
            JointKind::Spherical => true,
            JointKind::Floating => index >= 3,
            _ => false,
        };
        if euler {
            self.diagnostics.error(entry.value.span, refusal[0]).help(refusal[1]);
            return None;
        }
        Some(c)
    }

    /// The value of a force or torque: components in the world, or in the frame of a body.
    fn read_force_vector(&mut self, fields: &Fields<'t>, scope: &Scope, axial: bool) -> Option<Vector> {
        let frame = fields.get("frame").map(|e| self.read_body_name(e, scope));
        let value = fields.require("value", self).and_then(|e| self.vector(&e.value, scope, Context::Force));
        let mut value = value?;
        if let Some(frame) = frame {
            let resolver = Resolver::new(&self.symbols, scope, Context::Force, false);
            value = resolver.turned(frame?, value, false);
        }
        Some(match scope.mirror {
            Some(normal) => mirror(value, normal, axial),
            None => value,
        })
    }

    /// Whether the mirror turns the coordinate's sense.
    pub(super) fn flipped(&self, c: CoordinateRef, scope: &Scope) -> bool {
        let CoordinateRef::Joint { joint, index } = c else { return false };
        let kind = self.symbols.joints.get(joint.index()).and_then(|j| j.kind);
        match (scope.mirror, kind) {
            (Some(normal), Some(kind)) => coordinate_flips(kind, index as usize, normal),
            _ => false,
        }
    }
}

/// The law of the same spring measured along the opposite direction: f'(x, v) = −f(−x, −v).
fn flipped_law(law: SpringLaw) -> SpringLaw {
    match law {
        SpringLaw::Linear { stiffness, damping, natural } => {
            SpringLaw::Linear { stiffness, damping, natural: negate(natural) }
        }
        SpringLaw::Expression(mut e) => {
            e.for_each_scalar_mut(&mut |part| {
                if matches!(part, Scalar::Length | Scalar::LengthRate) {
                    *part = negate(part.clone());
                }
            });
            SpringLaw::Expression(negate(e))
        }
    }
}
