//! What all sections need: reading numbers, texts, words, expressions and vectors at a node.

use std::collections::HashSet;
use std::rc::Rc;

use super::expression::resolve::{Context, Resolver, Typed, list};
use super::expression::{Problem, Syntax, parse};
use super::limits;
use super::load::shorten;
use super::node::{Kind, Node, Style, Text};
use super::place::place;
use super::scope::{Extent, Scope, Symbols, Uses};
use super::sensitivity::Listed;
use crate::diagnostics::{Diagnostics, Span, nearest};
use crate::model::evaluate::Values;
use crate::model::knots::FallingKnot;
use crate::model::{ArrayRef, Body, JointId, Scalar, Vector};

/// The state of reading one file.
pub(super) struct Reader<'t> {
    pub(super) text: &'t str,
    /// The names of the file, once they are declared.
    pub(super) global: Rc<Scope>,
    pub(super) diagnostics: Diagnostics,
    pub(super) symbols: Symbols,
    /// Default values of the parameters; known once the parameters are read.
    pub(super) values: Values,
    /// The bodies, once they are read: joints look up vectors there.
    pub(super) bodies: Vec<Body>,
    /// Whether a joint could not be read, so that what it connects is not known.
    pub(super) joints_incomplete: bool,
    /// Whether a constraint could not be read, so that what it names is not known.
    pub(super) constraints_incomplete: bool,
    /// Operations of all expressions so far.
    pub(super) operations: usize,
    /// Knots to be checked once the parameters have values.
    pub(super) knots: Vec<(Span, ArrayRef)>,
    /// Joints that must turn out to be cut, since their multipliers are named.
    pub(super) cuts: Vec<(Span, JointId)>,
    /// What the model is differentiated by, to be looked at once the model is complete.
    pub(super) listed: Vec<Listed>,
}

/// The extent of a number.
const LITERAL: Extent = Extent { size: 1, depth: 1 };

/// A resolved expression and what it depends on.
pub(super) struct Resolved {
    pub(super) value: Typed,
    pub(super) uses: Uses,
    pub(super) extent: Extent,
}

impl<'t> Reader<'t> {
    /// Reports what is wrong with an expression, at its place in the file.
    pub(super) fn report(&mut self, node: &Node, text: &Text, problem: Problem) {
        if problem.is_reported() {
            return;
        }
        let span = place(self.text, node.span, text, problem.start, problem.end);
        let mut help = problem.help;
        if text.style == Style::Plain && text.in_flow && !is_balanced(text) {
            help = "inside `[…]` and `{…}` an expression that contains a comma or a bracket must be quoted"
                .into();
        }
        self.diagnostics.error(span, problem.message).help(help);
    }

    /// The syntax of the expression at a node.
    pub(super) fn syntax<'n>(&mut self, node: &'n Node, wanted: &str) -> Option<(Syntax, &'n Text)> {
        let text = match &node.kind {
            Kind::Scalar(text) if !text.is_null() && text.as_bool().is_none() => text,
            _ => {
                self.expected(node, wanted);
                return None;
            }
        };
        match parse(&text.value) {
            Ok(syntax) => Some((syntax, text)),
            Err(problem) => {
                self.report(node, text, problem);
                None
            }
        }
    }

    pub(super) fn expected(&mut self, node: &Node, wanted: &str) {
        if node.is_broken() {
            return;
        }
        self.diagnostics.error(node.span, format!("expected {wanted}, found {}", node.describe()));
    }

    /// Resolves something in the text of a node by a function of the resolver.
    pub(super) fn resolve<T>(
        &mut self,
        node: &Node,
        scope: &Scope,
        context: Context,
        wanted: &str,
        f: impl FnOnce(&mut Resolver<'_>, &Syntax) -> Result<T, Problem>,
    ) -> Option<(T, Uses, Extent)> {
        if self.is_exhausted() {
            return None;
        }
        let (syntax, text) = self.syntax(node, wanted)?;
        let mut resolver = Resolver::new(&self.symbols, scope, context, self.suggests());
        let found = f(&mut resolver, &syntax);
        let (uses, knots, cuts) = (resolver.uses, resolver.knots, resolver.cuts);
        let extent = Extent { size: resolver.size, depth: syntax.depth() + resolver.inserted };
        for ((start, end), array) in knots {
            self.knots.push((place(self.text, node.span, text, start, end), array));
        }
        for ((start, end), joint) in cuts {
            self.cuts.push((place(self.text, node.span, text, start, end), joint));
        }
        self.spend(node.span, extent.size);
        match found {
            Ok(_) if extent.depth > limits::TREE_DEPTH => {
                let message = "the expression becomes too deeply nested when its names are put in";
                self.report(node, text, Problem::new(syntax.at, message));
                None
            }
            Ok(value) => Some((value, uses, extent)),
            Err(problem) => {
                self.report(node, text, problem);
                None
            }
        }
    }

    /// Counts operations; the first excess is reported.
    pub(super) fn spend(&mut self, span: Span, size: usize) {
        let before = self.operations;
        self.operations = before.saturating_add(size);
        if before <= limits::OPERATIONS && self.operations > limits::OPERATIONS {
            self.diagnostics.error(span, "the model's expressions are too large together");
        }
    }

    /// The nearest valid name, unless the file already has many errors.
    pub(super) fn nearest<'n>(
        &self,
        name: &str,
        names: impl IntoIterator<Item = &'n str>,
    ) -> Option<&'n str> {
        if self.suggests() { nearest(name, names) } else { None }
    }

    pub(super) fn suggests(&self) -> bool {
        self.diagnostics.error_count() < limits::SUGGESTIONS
    }

    /// Whether the model grew beyond its limits, so that reading on makes no sense.
    pub(super) fn is_exhausted(&self) -> bool {
        self.operations > limits::OPERATIONS
    }

    /// A number or expression.
    pub(super) fn scalar(&mut self, node: &Node, scope: &Scope, context: Context) -> Option<Scalar> {
        self.scalar_used(node, scope, context).map(|(s, ..)| s)
    }

    fn scalar_used(
        &mut self,
        node: &Node,
        scope: &Scope,
        context: Context,
    ) -> Option<(Scalar, Uses, Extent)> {
        if let Some(x) = self.special_number(node) {
            return x.map(|x| (Scalar::Number(x), Uses::default(), LITERAL));
        }
        self.resolve(node, scope, context, "a number or an expression", |r, e| r.scalar(e))
    }

    /// YAML's own number forms that are not expressions: `0x1F`, `0o17`, `.inf`, `.nan`.
    fn special_number(&mut self, node: &Node) -> Option<Option<f64>> {
        let Kind::Scalar(text) = &node.kind else {
            return None;
        };
        if text.style != Style::Plain {
            return None;
        }
        let v = &*text.value;
        let unsigned = v.trim_start_matches(['+', '-']);
        if matches!(unsigned, ".inf" | ".Inf" | ".INF" | ".nan" | ".NaN" | ".NAN") {
            self.diagnostics.error(node.span, format!("`{v}` is not a finite number"));
            return Some(None);
        }
        let whole = |digits: &str, base| u64::from_str_radix(digits, base).ok().map(|n| Some(n as f64));
        if let Some(digits) = v.strip_prefix("0x") {
            return whole(digits, 16);
        }
        if let Some(digits) = v.strip_prefix("0o") {
            return whole(digits, 8);
        }
        None
    }

    /// Three numbers or expressions in a list, or an expression of vector type.
    pub(super) fn vector(&mut self, node: &Node, scope: &Scope, context: Context) -> Option<Vector> {
        if let Kind::Sequence(_) = &node.kind {
            let (c, ..) = self.list_of::<3>(node, scope, context)?;
            return Some(Vector::Components(Box::new(c)));
        }
        let wanted = "a list of three numbers, or an expression";
        self.resolve(node, scope, context, wanted, |r, e| r.vector(e)).map(|(v, ..)| v)
    }

    /// A list of exactly `N` numbers or expressions; every wrong one is reported.
    pub(super) fn list_of<const N: usize>(
        &mut self,
        node: &Node,
        scope: &Scope,
        context: Context,
    ) -> Option<([Scalar; N], Uses, Extent)> {
        let Kind::Sequence(items) = &node.kind else {
            self.expected(node, &format!("a list of {N} numbers"));
            return None;
        };
        if items.len() != N {
            let n = items.len();
            let message = format!("expected a list of {N} numbers, found {n}");
            let split = items.iter().any(|i| matches!(&i.kind, Kind::Scalar(t) if !is_balanced(t)));
            let d = self.diagnostics.error(node.span, message);
            if split {
                d.help(
                    "inside `[…]` and `{…}` an expression that contains a comma or a bracket must be quoted",
                );
            }
            return None;
        }
        let all: Vec<_> = items.iter().map(|i| self.scalar_used(i, scope, context)).collect();
        let mut uses = Uses::default();
        let mut extent = LITERAL;
        let mut scalars = Vec::with_capacity(N);
        for (scalar, u, n) in all.into_iter().collect::<Option<Vec<_>>>()? {
            uses = uses.and(u);
            extent = Extent { size: extent.size + n.size, depth: extent.depth.max(n.depth + 1) };
            scalars.push(scalar);
        }
        scalars.try_into().ok().map(|scalars| (scalars, uses, extent))
    }

    /// A scalar or a vector.
    pub(super) fn either(&mut self, node: &Node, scope: &Scope, context: Context) -> Option<Resolved> {
        if let Kind::Sequence(_) = &node.kind {
            let (c, uses, extent) = self.list_of::<3>(node, scope, context)?;
            return Some(Resolved { value: Typed::Vector(Vector::Components(Box::new(c))), uses, extent });
        }
        if let Some(x) = self.special_number(node) {
            let value = Typed::Scalar(Scalar::Number(x?));
            return Some(Resolved { value, uses: Uses::default(), extent: LITERAL });
        }
        self.resolve(node, scope, context, "an expression", |r, e| r.typed(e))
            .map(|(value, uses, extent)| Resolved { value, uses, extent })
    }

    /// A number: a literal or a constant expression.
    pub(super) fn number(&mut self, node: &Node) -> Option<f64> {
        let e = self.scalar(node, &Rc::clone(&self.global), Context::Constant)?;
        match self.values.scalar(&e) {
            Ok(x) if x.is_finite() => Some(x),
            Ok(x) => {
                self.not_finite(node.span, "the value", x);
                None
            }
            Err(_) => None,
        }
    }

    /// A number that must be greater than zero.
    pub(super) fn positive(&mut self, node: &Node, what: &str) -> Option<f64> {
        let x = self.number(node)?;
        if x > 0.0 {
            return Some(x);
        }
        self.diagnostics.error(node.span, format!("{what} must be greater than zero, not {x}"));
        None
    }

    /// The value of a scalar at the default parameters; a value that is not finite is reported.
    pub(super) fn default_scalar(&mut self, span: Span, e: &Scalar, what: &str) -> Option<f64> {
        match self.values.scalar(e) {
            Ok(x) if x.is_finite() => Some(x),
            Ok(x) => {
                self.not_finite(span, what, x);
                None
            }
            Err(_) => None,
        }
    }

    /// The value of a vector at the default parameters; a value that is not finite is reported.
    pub(super) fn default_vector(&mut self, span: Span, e: &Vector, what: &str) -> Option<[f64; 3]> {
        match self.values.vector(e) {
            Ok(v) => match v.iter().find(|x| !x.is_finite()) {
                None => Some(v),
                Some(x) => {
                    self.not_finite(span, what, *x);
                    None
                }
            },
            Err(_) => None,
        }
    }

    pub(super) fn not_finite(&mut self, span: Span, what: &str, x: f64) {
        let x = if x.is_nan() { "not a number" } else { "infinite" };
        self.diagnostics
            .error(span, format!("{what} is {x} at the default parameters"))
            .help("look for a division by zero, or a root or logarithm of a negative number");
    }

    /// A text of any kind.
    pub(super) fn string(&mut self, node: &Node) -> Option<String> {
        match &node.kind {
            Kind::Scalar(t) if t.is_null() => Some(String::new()),
            Kind::Scalar(t) => Some(t.value.to_string()),
            _ => {
                self.expected(node, "a text");
                None
            }
        }
    }

    /// `true` or `false`.
    pub(super) fn boolean(&mut self, node: &Node) -> Option<bool> {
        if let Kind::Scalar(t) = &node.kind
            && let Some(b) = t.as_bool()
        {
            return Some(b);
        }
        self.expected(node, "`true` or `false`");
        None
    }

    /// One of a few words.
    pub(super) fn word<T: Copy>(&mut self, node: &Node, what: &str, words: &[(&str, T)]) -> Option<T> {
        let Kind::Scalar(text) = &node.kind else {
            self.expected(node, what);
            return None;
        };
        if let Some((_, t)) = words.iter().find(|(w, _)| *w == &*text.value) {
            return Some(*t);
        }
        let names = || words.iter().map(|(w, _)| *w);
        let help = match self.nearest(&text.value, names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("choose from {}", list(names())),
        };
        let span = node.span;
        let shown = if text.is_null() { "nothing".into() } else { format!("`{}`", shorten(&text.value)) };
        self.diagnostics.error(span, format!("expected {what}, found {shown}")).help(help);
        None
    }

    /// Checks that the knots of tables and splines read so far increase; leaves those that follow parameters.
    pub(super) fn check_knots(&mut self, values: &Values) -> Vec<ArrayRef> {
        let mut following = Vec::new();
        let mut seen = HashSet::new();
        for (span, array) in std::mem::take(&mut self.knots) {
            if let Some(falling) = FallingKnot::find(&array, values) {
                self.diagnostics.error(span, falling.to_string());
            }
            let new = match &array {
                ArrayRef::Parameter(id) => seen.insert(*id),
                ArrayRef::Literal(_) => array.follows_parameters(),
            };
            if new {
                following.push(array);
            }
        }
        following
    }
}

/// Whether as many parentheses close as open: an unquoted comma in a list cuts a call in two.
fn is_balanced(text: &Text) -> bool {
    text.value.matches('(').count() == text.value.matches(')').count()
}
