//! The expression language of model files.
//!
//! Input: the text of a scalar. [`parse`] turns it into [`Syntax`], without names or types resolved;
//! [`resolve`] gives it meaning. Each expression yields at most one [`Problem`].

mod lexer;
mod parser;
mod reactions;
pub(super) mod resolve;

pub(super) use parser::parse;

/// What is wrong with an expression, and where: bytes of its text.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) message: String,
    pub(super) help: String,
}

impl Problem {
    pub(super) fn new(at: (usize, usize), message: impl Into<String>) -> Self {
        Problem { start: at.0, end: at.1, message: message.into(), help: String::new() }
    }

    /// A problem that is already reported.
    fn reported() -> Self {
        Problem::new((0, 0), "")
    }

    /// Whether it is already reported.
    pub(super) fn is_reported(&self) -> bool {
        self.message.is_empty()
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = help.into();
        self
    }
}

/// An expression before names are looked up.
#[derive(Debug)]
pub(super) struct Syntax {
    /// Bytes of the text it covers.
    pub(super) at: (usize, usize),
    /// Height of its tree, which bounds every recursion over it.
    depth: usize,
    pub(super) kind: SyntaxKind,
}

impl Syntax {
    /// Height of its tree.
    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    /// Calls `f` for every name that stands by itself, before a dot or before a bracket.
    pub(super) fn for_each_name<'s>(&'s self, f: &mut dyn FnMut(&'s str)) {
        match &self.kind {
            SyntaxKind::Number(_) => {}
            SyntaxKind::Name(name) | SyntaxKind::Path(name, _) => f(name),
            SyntaxKind::Index(name, index) => {
                f(name);
                index.for_each_name(f);
            }
            SyntaxKind::Call(_, items) | SyntaxKind::List(items) => {
                items.iter().for_each(|item| item.for_each_name(f));
            }
            SyntaxKind::Negate(a) | SyntaxKind::Component(a, _) => a.for_each_name(f),
            SyntaxKind::Binary(_, a, b) | SyntaxKind::Compare(_, a, b) => {
                a.for_each_name(f);
                b.for_each_name(f);
            }
        }
    }
}

#[derive(Debug)]
pub(super) enum SyntaxKind {
    Number(f64),
    Name(String),
    /// `a.b`
    Path(String, String),
    /// `a[i]`
    Index(String, Box<Syntax>),
    Call(String, Vec<Syntax>),
    Negate(Box<Syntax>),
    Binary(Operator, Box<Syntax>, Box<Syntax>),
    Compare(Relation, Box<Syntax>, Box<Syntax>),
    /// `[a, b, c]`
    List(Vec<Syntax>),
    /// `v.x`, `v.y`, `v.z`
    Component(Box<Syntax>, u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Power,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
}
