//! Problems of a model file, each with its place and, where there is one, its remedy.
//!
//! Input: messages from any stage, in any order. Output: the same, sorted by place, and their printed form.
//! Holds afterwards: printing is deterministic, bounded in length and never fails.

mod nearest;
mod render;
mod span;

pub use nearest::nearest;
pub use span::Span;

/// How bad a problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The model has no meaning.
    Error,
    /// The model has a meaning, but perhaps not the intended one.
    Warning,
}

/// One problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// Where it is.
    pub span: Span,
    /// What is wrong; one line, without a full stop.
    pub message: String,
    /// What to do about it; empty if there is nothing to say.
    pub help: String,
}

impl Diagnostic {
    /// Adds the remedy.
    pub fn help(&mut self, help: impl Into<String>) -> &mut Self {
        self.help = help.into();
        self
    }
}

/// More problems than this are counted but not kept.
const KEPT: usize = 1000;

/// All problems found so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    errors: usize,
    overflow: Option<Box<Diagnostic>>,
}

impl Default for Diagnostic {
    fn default() -> Self {
        Diagnostic {
            severity: Severity::Error,
            span: Span::default(),
            message: String::new(),
            help: String::new(),
        }
    }
}

impl Diagnostics {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes an error. Chain `.help("…")` to say what to do.
    pub fn error(&mut self, span: Span, message: impl Into<String>) -> &mut Diagnostic {
        self.errors += 1;
        self.push(Severity::Error, span, message.into())
    }

    /// Notes a warning. Chain `.help("…")` to say what to do.
    pub fn warning(&mut self, span: Span, message: impl Into<String>) -> &mut Diagnostic {
        self.push(Severity::Warning, span, message.into())
    }

    fn push(&mut self, severity: Severity, span: Span, message: String) -> &mut Diagnostic {
        let diagnostic = Diagnostic { severity, span, message, help: String::new() };
        if self.list.len() >= KEPT {
            // Kept nowhere, but the caller may still chain `.help`.
            return self.overflow.insert(Box::new(diagnostic));
        }
        self.list.push(diagnostic);
        let last = self.list.len() - 1;
        &mut self.list[last]
    }

    /// Whether any problem is an error.
    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// How many errors were noted, including repeated ones and those not kept.
    pub fn error_count(&self) -> usize {
        self.errors
    }

    /// Whether there is no problem at all.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The problems, in the order of their places (in the order they were found at the same place).
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.sorted().into_iter()
    }

    /// Takes all problems of another stage.
    pub fn append(&mut self, other: Diagnostics) {
        self.errors += other.errors;
        self.list.extend(other.list);
        self.overflow = self.overflow.take().or(other.overflow);
        if self.list.len() > KEPT {
            self.overflow = self.list.drain(KEPT..).next().map(Box::new);
        }
    }

    /// The printed form of all problems, as a person reads them: place, message, source line, remedy.
    ///
    /// `file_name` is printed as given; `text` is the file's text, from which the source lines are taken.
    pub fn render(&self, file_name: &str, text: &str) -> String {
        render::render(self, file_name, text)
    }

    /// Whether some problems are not kept.
    fn is_full(&self) -> bool {
        self.overflow.is_some()
    }

    fn sorted(&self) -> Vec<&Diagnostic> {
        let mut list: Vec<&Diagnostic> = self.list.iter().collect();
        list.sort_by_key(|d| (!d.span.is_known(), d.span.offset));
        // An element used twice has its problems twice.
        list.dedup_by(|a, b| a.span.is_known() && a == b);
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(offset: usize, len: usize, line: u32, column: u32) -> Span {
        Span { offset, len, line, column }
    }

    #[test]
    fn prints_in_the_order_of_places() {
        let text = "mbs: 1\nbodeis:\n  arm: {}\n";
        let mut d = Diagnostics::new();
        d.warning(at(17, 3, 3, 3), "body `arm` is lonely");
        d.error(at(7, 6, 2, 1), "unknown key `bodeis`").help("did you mean `bodies`?");
        d.error(Span::default(), "everything is wrong");
        let expected = "\
m.yaml:2:1: error: unknown key `bodeis`
  2 | bodeis:
    | ^^^^^^
    = help: did you mean `bodies`?
m.yaml:3:3: warning: body `arm` is lonely
  3 |   arm: {}
    |   ^^^
m.yaml: error: everything is wrong
2 errors, 1 warning
";
        assert_eq!(d.render("m.yaml", text), expected);
    }

    #[test]
    fn a_flood_is_bounded() {
        let mut d = Diagnostics::new();
        for i in 0..5000 {
            d.error(Span::default(), format!("problem {i}")).help("none");
        }
        assert_eq!(d.error_count(), 5000);
        assert!(d.render("m.yaml", "").lines().count() < 300);
        assert!(d.render("m.yaml", "").ends_with("5000 errors\n"));
    }

    #[test]
    fn odd_spans_do_not_panic() {
        let text = "é\tx\r\nα";
        let mut d = Diagnostics::new();
        for offset in 0..12 {
            for len in 0..12 {
                d.error(at(offset, len, 1, 1), "odd");
            }
        }
        d.error(at(usize::MAX, usize::MAX, 7, u32::MAX), "far");
        assert!(!d.render("m.yaml", text).is_empty());
    }
}
