//! `dh` of a joint: Denavit–Hartenberg parameters, in the distal (standard) convention.
//!
//! Input: `theta`, `d`, `a`, `alpha`, expressions of parameters, one of them with the joint's variable `q` in place.
//! Output: points, axes and references on both sides of the joint, so that
//!
//! A_child = A_parent R_z(θ) T_z(d) T_x(a) R_x(α)        [Zhakatayev2023, Eq. 4]
//!
//! carries the frame of the parent body into that of the child, which stands at the far end of the link. The joint
//! turns about, or slides along, the parent's z axis. Constant angles at multiples of π/2 have exact sines and cosines.

use super::expression::resolve::{Context, Resolver};
use super::expression::{Operator, Problem, Syntax, SyntaxKind};
use super::fields::Fields;
use super::joints::Side;
use super::keys;
use super::mirror::negate;
use super::node::{Entry, Kind, Node};
use super::reader::Reader;
use super::scope::{Scope, Thing};
use crate::diagnostics::Span;
use crate::model::{BinaryOp, Function, JointKind, JointPoint, PointRef, Scalar, Vector};
use std::f64::consts::FRAC_PI_2;

/// The name of the joint's variable inside `dh`.
const VARIABLE: &str = "q";

/// One of the four: ±q + rest, or the rest alone.
struct DhEntry {
    /// Whether it contains the variable, and whether with a minus sign.
    variable: Option<Sign>,
    rest: Scalar,
    /// Whether the rest depends on no parameter.
    constant: bool,
    span: Span,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    Plus,
    Minus,
}

impl Sign {
    fn flipped(self) -> Sign {
        if self == Sign::Plus { Sign::Minus } else { Sign::Plus }
    }

    /// e or −e
    fn of(self, e: Scalar) -> Scalar {
        if self == Sign::Plus { e } else { negate(e) }
    }
}

impl<'t> Reader<'t> {
    /// Gives both sides of a joint what its `dh` says. The sides name bodies alone.
    pub(super) fn read_dh(
        &mut self,
        dh: &'t Entry,
        fields: &Fields<'t>,
        kind: JointKind,
        (parent, child): (&mut Side, &mut Side),
        scope: &Scope,
    ) -> Option<()> {
        let place = match kind {
            JointKind::Revolute => 0,
            JointKind::Prismatic => 1,
            _ => {
                self.diagnostics
                    .error(dh.key_span, format!("a {} joint has no `dh`", kind.keyword()))
                    .help("Denavit–Hartenberg parameters describe revolute and prismatic joints");
                return None;
            }
        };
        let mut beside = false;
        for entry in ["axis", "axes", "reference"].into_iter().filter_map(|key| fields.get(key)) {
            self.diagnostics
                .error(entry.key_span, format!("`{}` is given beside `dh`", entry.key))
                .help("the joint moves about or along the parent's z axis; leave it out");
            beside = true;
        }
        for side in [&*parent, &*child] {
            if side.axis.is_some()
                || side.reference.is_some()
                || side.point != JointPoint::Point(PointRef::Origin)
            {
                self.diagnostics
                    .error(side.span, "with `dh` a joint connects the frames of its bodies")
                    .help("name the body alone; a `fixed` joint gives a frame elsewhere");
                beside = true;
            }
        }
        let parameters = self.read_dh_entries(dh, scope);
        let [theta, d, a, alpha] = parameters?;
        let sign = self.find_variable(dh, kind, place, [&theta, &d, &a, &alpha])?;
        if beside {
            return None;
        }

        let zero = || Scalar::Number(0.0);
        let one = Scalar::Number(1.0);
        let [cos_theta, sin_theta] = self.turn(&theta);
        let [cos_alpha, sin_alpha] = self.turn(&alpha);
        let place = |x: Scalar, y: Scalar, z: Scalar| Vector::Components(Box::new([x, y, z]));
        // Parent: d along z, the child's x at q = 0 turned by θ.
        parent.point = JointPoint::At(place(zero(), zero(), d.rest));
        parent.axis = Some((dh.value.span, place(zero(), zero(), sign.of(one.clone()))));
        parent.reference = Some((theta.span, place(cos_theta, sin_theta, zero())));
        // Child: R_x(α)ᵀ applied to −a x, to z and to x.
        child.point = JointPoint::At(place(negate(a.rest), zero(), zero()));
        child.axis = Some((alpha.span, place(zero(), sign.of(sin_alpha), sign.of(cos_alpha))));
        child.reference = Some((dh.value.span, place(one, zero(), zero())));
        Some(())
    }

    /// θ, d, a, α from a list of four or a mapping.
    fn read_dh_entries(&mut self, dh: &'t Entry, scope: &Scope) -> Option<[DhEntry; 4]> {
        let node: &'t Node = &dh.value;
        let nodes: [Option<&Node>; 4] = match &node.kind {
            Kind::Sequence(items) => {
                let [theta, d, a, alpha] = items.as_slice() else {
                    let n = items.len();
                    self.diagnostics
                        .error(node.span, format!("`dh` has four entries, this list has {n}"))
                        .help("write [theta, d, a, alpha], with `q` in place of the joint's variable");
                    return None;
                };
                [Some(theta), Some(d), Some(a), Some(alpha)]
            }
            _ => {
                let fields = self.fields(node, dh.key_span, &keys::DH)?;
                ["theta", "d", "a", "alpha"].map(|key| fields.value(key))
            }
        };
        let all = nodes.map(|entry| match entry {
            Some(entry) => self.read_dh_entry(entry, scope),
            None => {
                Some(DhEntry { variable: None, rest: Scalar::Number(0.0), constant: true, span: node.span })
            }
        });
        let [theta, d, a, alpha] = all;
        Some([theta?, d?, a?, alpha?])
    }

    fn read_dh_entry(&mut self, node: &Node, scope: &Scope) -> Option<DhEntry> {
        let wanted = "a number or an expression";
        let ((variable, rest), uses, extent) =
            self.resolve(node, scope, Context::Parameters, wanted, split)?;
        // Sine and cosine repeat it.
        self.spend(node.span, extent.size);
        self.default_scalar(node.span, &rest, "the entry")?;
        Some(DhEntry { variable, rest, constant: !uses.parameters, span: node.span })
    }

    /// The sign of the variable, which must stand in its place and nowhere else.
    fn find_variable(
        &mut self,
        dh: &Entry,
        kind: JointKind,
        place: usize,
        all: [&DhEntry; 4],
    ) -> Option<Sign> {
        let names = ["theta", "d", "a", "alpha"];
        let (word, right) = (kind.keyword(), names[place]);
        let mut elsewhere = false;
        for (i, parameter) in all.iter().enumerate().filter(|(i, p)| *i != place && p.variable.is_some()) {
            self.diagnostics
                .error(parameter.span, format!("`q` stands in `{}` of a {word} joint", names[i]))
                .help("the variable of a revolute joint is `theta`, that of a prismatic joint `d`");
            elsewhere = true;
        }
        let found = all[place].variable;
        if found.is_none() && !elsewhere {
            let span = if all[place].span.is_known() { all[place].span } else { dh.key_span };
            self.diagnostics
                .error(span, format!("`{right}` of a {word} joint lacks `q`, the joint's variable"))
                .help("write `q` in its place, or `q + offset`");
        }
        found.filter(|_| !elsewhere)
    }

    /// Cosine and sine of an angle.
    fn turn(&self, angle: &DhEntry) -> [Scalar; 2] {
        if angle.constant
            && let Ok(value) = self.values.scalar(&angle.rest)
        {
            return cos_sin(value).map(Scalar::Number);
        }
        [Function::Cos, Function::Sin].map(|f| Scalar::Call(f, vec![angle.rest.clone()]))
    }
}

/// Cosine and sine, exact where the angle is a multiple of π/2 but for rounding.
fn cos_sin(angle: f64) -> [f64; 2] {
    let quarters = (angle / FRAC_PI_2).round();
    // Rounding of an expression of a few operations at a few turns.
    if (angle - quarters * FRAC_PI_2).abs() > 1e-14 || quarters.abs() > 100.0 {
        return [angle.cos(), angle.sin()];
    }
    match quarters.rem_euclid(4.0) as u8 {
        0 => [1.0, 0.0],
        1 => [0.0, 1.0],
        2 => [-1.0, 0.0],
        _ => [0.0, -1.0],
    }
}

/// ±q + rest. Sums are taken apart; everywhere else the variable may not stand.
fn split(resolver: &mut Resolver<'_>, e: &Syntax) -> Result<(Option<Sign>, Scalar), Problem> {
    let mut variable = None;
    let mut rest = None;
    // The terms from left to right, each with its sign.
    let mut waiting = vec![(Sign::Plus, e)];
    while let Some((sign, e)) = waiting.pop() {
        match &e.kind {
            SyntaxKind::Negate(a) if mentions(a) => waiting.push((sign.flipped(), a)),
            SyntaxKind::Binary(Operator::Add, a, b) if mentions(e) => {
                waiting.extend([(sign, &**b), (sign, &**a)])
            }
            SyntaxKind::Binary(Operator::Subtract, a, b) if mentions(e) => {
                waiting.extend([(sign.flipped(), &**b), (sign, &**a)]);
            }
            SyntaxKind::Name(name) if name == VARIABLE => {
                let named = matches!(resolver.scope.thing(name), Some(Thing::Coordinate(_)));
                if named || resolver.scope.symbol(name).is_some() {
                    let message =
                        "`q` is ambiguous here: the joint's variable, or what the model gives that name";
                    return Err(Problem::new(e.at, message).help("rename the latter"));
                }
                if variable.replace(sign).is_some() {
                    return Err(Problem::new(e.at, "`q` stands here a second time"));
                }
            }
            _ if mentions(e) => {
                return Err(Problem::new(e.at, "`q` may only stand in a sum")
                    .help("write `q`, `-q`, `q + offset` or `offset - q`"));
            }
            _ => {
                let term = resolver.scalar(e)?;
                rest = Some(match rest {
                    None => sign.of(term),
                    Some(sum) => {
                        let operation = if sign == Sign::Plus { BinaryOp::Add } else { BinaryOp::Subtract };
                        Scalar::Binary(operation, Box::new(sum), Box::new(term))
                    }
                });
            }
        }
    }
    Ok((variable, rest.unwrap_or(Scalar::Number(0.0))))
}

/// Whether an expression contains the variable. Its height is bounded.
fn mentions(e: &Syntax) -> bool {
    match &e.kind {
        SyntaxKind::Name(name) => name == VARIABLE,
        SyntaxKind::Number(_) => false,
        // `q[i]` and `q.x` are not the variable.
        SyntaxKind::Path(..) => false,
        SyntaxKind::Index(_, a) | SyntaxKind::Negate(a) | SyntaxKind::Component(a, _) => mentions(a),
        SyntaxKind::Call(_, all) | SyntaxKind::List(all) => all.iter().any(mentions),
        SyntaxKind::Binary(_, a, b) | SyntaxKind::Compare(_, a, b) => mentions(a) || mentions(b),
    }
}

#[cfg(test)]
mod tests {
    use super::cos_sin;
    use std::f64::consts::PI;

    #[test]
    fn quarter_turns_are_exact() {
        for k in -9..9 {
            let [c, s] = cos_sin(f64::from(k) * PI / 2.0);
            assert_eq!((c.abs() + s.abs(), c * s), (1.0, 0.0));
            assert!((c - (f64::from(k) * PI / 2.0).cos()).abs() < 1e-14);
            assert!((s - (f64::from(k) * PI / 2.0).sin()).abs() < 1e-14);
        }
        assert_eq!(cos_sin(0.3), [0.3f64.cos(), 0.3f64.sin()]);
        assert_eq!(cos_sin(PI / 2.0 + 1e-12), [(PI / 2.0 + 1e-12).cos(), (PI / 2.0 + 1e-12).sin()]);
    }
}
