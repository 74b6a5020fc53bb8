//! Coordinates of points that a simulation names as independent.
//!
//! Input: `body.point.x`. Output: a variable of this name, and the constraint s − pos(body.point).x = 0 that ties it to the point, so that B = dz^i/dz is
//! that of the point (and not constant) and nothing after the model knows of it. The variable's start follows from the
//! position of the mechanism: it counts for nothing when the start is assembled.

use super::mode::Activity;
use super::{
    BinaryOp, BodyId, Constraint, ConstraintKind, ConstraintRow, CoordinateRef, MarkerRef, Model, PointRef,
    Scalar, Variable, VariableId, Vector,
};
use crate::diagnostics::Span;

impl Model {
    /// The point and the axis that a name such as `body.point.x` means.
    pub fn point_coordinate(&self, name: &str) -> Option<(MarkerRef, u8)> {
        let (of, axis) = name.rsplit_once('.')?;
        let axis = ["x", "y", "z"].iter().position(|one| *one == axis)? as u8;
        self.bodies.iter().enumerate().find_map(|(i, body)| {
            let point = match of.strip_prefix(&body.name)?.strip_prefix('.')? {
                "origin" => PointRef::Origin,
                "com" => PointRef::Com,
                point => {
                    let place = body.points.iter().position(|(own, _)| own == point)?;
                    PointRef::Named(place as u32)
                }
            };
            // Points of ground do not move.
            (i > 0).then_some((MarkerRef { body: BodyId(i as u32), point }, axis))
        })
    }

    /// Names of all coordinates of points that move.
    pub fn point_coordinates(&self) -> Vec<String> {
        let mut names = Vec::new();
        for body in self.bodies.iter().skip(1) {
            let points = body.points.iter().map(|(point, _)| point.as_str());
            for point in points.chain(["origin", "com"]) {
                names.extend(["x", "y", "z"].map(|axis| format!("{}.{point}.{axis}", body.name)));
            }
        }
        names
    }

    /// Makes the coordinate of a point a coordinate of the mechanism. Whether the name means one.
    pub fn tie_point(&mut self, name: &str, span: Span) -> bool {
        if self.variables.iter().any(|variable| variable.name == name) {
            return true;
        }
        let Some((marker, axis)) = self.point_coordinate(name) else { return false };
        let variable = CoordinateRef::Variable(VariableId(self.variables.len() as u32));
        let position = Scalar::Component(Box::new(Vector::Position(marker)), axis);
        // s − pos(body.point).x = 0
        let value =
            Scalar::Binary(BinaryOp::Subtract, Box::new(Scalar::Coordinate(variable)), Box::new(position));
        self.variables.push(Variable {
            name: name.into(),
            description: format!("coordinate of a point that is independent, {name}"),
            unit: "m".into(),
            value: Scalar::Number(0.0),
            rate: Scalar::Number(0.0),
            hold: false,
            tied: true,
            span,
        });
        self.constraints.push(Constraint {
            name: name.into(),
            kind: ConstraintKind::Holonomic,
            rows: vec![ConstraintRow { name: name.into(), value }],
            activity: Activity::default(),
            span,
        });
        true
    }
}
