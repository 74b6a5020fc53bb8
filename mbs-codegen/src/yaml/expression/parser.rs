//! From tokens to syntax, by recursive descent of bounded depth.
//!
//! ```text
//! sum      = product { ("+" | "-") product }
//! product  = factor { ("*" | "/") factor }
//! factor   = ("-" | "+") factor | power
//! power    = postfix [ "^" factor ]
//! postfix  = primary { "." ("x" | "y" | "z") }
//! primary  = number | name | name "." name | name "[" sum "]" | name "(" arguments ")" | "(" sum ")" | "[" list "]"
//! ```
//! A comparison may stand only as the first argument of `if`.

use super::lexer::{MISSING_OPERATOR, Placed, Token, tokens};
use super::{Operator, Problem, Syntax, SyntaxKind};
use crate::yaml::limits;

/// The syntax of an expression.
pub(in crate::yaml) fn parse(text: &str) -> Result<Syntax, Problem> {
    if text.len() > limits::EXPRESSION_BYTES {
        let limit = limits::EXPRESSION_BYTES;
        return Err(Problem::new((0, 0), format!("the expression is longer than {limit} bytes"))
            .help("split it: derived parameters can name its parts"));
    }
    let mut parser = Parser { tokens: tokens(text)?, next: 0, nesting: 0 };
    if parser.peek() == &Token::End {
        return Err(Problem::new((0, 0), "the expression is empty"));
    }
    let syntax = parser.sum()?;
    if parser.peek() == &Token::End {
        return Ok(syntax);
    }
    Err(match parser.peek() {
        Token::Relation(_) => parser
            .unexpected("an operator")
            .help("a comparison may stand only as the first argument of `if(a < b, x, y)`"),
        Token::Name(_) => parser.unexpected("an operator or the end").help(MISSING_OPERATOR),
        _ => parser.unexpected("an operator or the end"),
    })
}

struct Parser<'s> {
    tokens: Vec<Placed<'s>>,
    next: usize,
    nesting: usize,
}

impl<'s> Parser<'s> {
    fn peek(&self) -> &Token<'s> {
        self.tokens.get(self.next).map_or(&Token::End, |t| &t.0)
    }

    fn place(&self) -> (usize, usize) {
        self.tokens.get(self.next).or(self.tokens.last()).map_or((0, 0), |t| t.1)
    }

    /// Where the last taken token ends.
    fn last_end(&self) -> usize {
        self.next.checked_sub(1).and_then(|i| self.tokens.get(i)).map_or(0, |t| t.1.1)
    }

    fn take(&mut self, sign: char) -> bool {
        let found = self.peek() == &Token::Sign(sign);
        self.next += usize::from(found);
        found
    }

    fn expect(&mut self, sign: char) -> Result<(), Problem> {
        if self.take(sign) { Ok(()) } else { Err(self.unexpected(&format!("`{sign}`"))) }
    }

    fn unexpected(&self, wanted: &str) -> Problem {
        let found = match self.peek() {
            Token::End => {
                return Problem::new(self.place(), format!("the expression ends where {wanted} is expected"));
            }
            Token::Number(x) => format!("the number {x}"),
            Token::Name(n) => format!("`{}`", crate::yaml::load::shorten(n)),
            Token::Relation(_) => "a comparison".into(),
            Token::Sign(c) => format!("`{c}`"),
        };
        Problem::new(self.place(), format!("expected {wanted}, found {found}"))
    }

    /// Makes a node, unless its tree becomes too high.
    fn node(&self, start: usize, depth: usize, kind: SyntaxKind) -> Result<Syntax, Problem> {
        let at = (start, self.last_end());
        if depth > limits::EXPRESSION_DEPTH {
            return Err(Problem::new(at, "the expression is too deeply nested or has too many terms")
                .help("split it: derived parameters can name its parts"));
        }
        Ok(Syntax { at, depth, kind })
    }

    fn binary(&self, op: Operator, a: Syntax, b: Syntax) -> Result<Syntax, Problem> {
        let depth = 1 + a.depth.max(b.depth);
        self.node(a.at.0, depth, SyntaxKind::Binary(op, Box::new(a), Box::new(b)))
    }

    fn sum(&mut self) -> Result<Syntax, Problem> {
        self.nesting += 1;
        if self.nesting > limits::EXPRESSION_NESTING {
            return Err(Problem::new(self.place(), "the expression is too deeply nested")
                .help("split it: derived parameters can name its parts"));
        }
        let mut a = self.product()?;
        loop {
            let op = match self.peek() {
                Token::Sign('+') => Operator::Add,
                Token::Sign('-') => Operator::Subtract,
                _ => break,
            };
            self.next += 1;
            let b = self.product()?;
            a = self.binary(op, a, b)?;
        }
        self.nesting -= 1;
        Ok(a)
    }

    fn product(&mut self) -> Result<Syntax, Problem> {
        let mut a = self.factor()?;
        loop {
            let op = match self.peek() {
                Token::Sign('*') => Operator::Multiply,
                Token::Sign('/') => Operator::Divide,
                _ => return Ok(a),
            };
            self.next += 1;
            let b = self.factor()?;
            a = self.binary(op, a, b)?;
        }
    }

    fn factor(&mut self) -> Result<Syntax, Problem> {
        let start = self.place().0;
        // A run of signs is one sign: no recursion for `- - - -a`.
        let mut negative = false;
        while let Token::Sign(sign @ ('+' | '-')) = *self.peek() {
            negative ^= sign == '-';
            self.next += 1;
        }
        let a = self.power()?;
        if !negative {
            return Ok(a);
        }
        let depth = a.depth + 1;
        self.node(start, depth, SyntaxKind::Negate(Box::new(a)))
    }

    fn power(&mut self) -> Result<Syntax, Problem> {
        let a = self.postfix()?;
        if !self.take('^') {
            return Ok(a);
        }
        self.nesting += 1;
        if self.nesting > limits::EXPRESSION_NESTING {
            return Err(Problem::new(self.place(), "the expression is too deeply nested"));
        }
        let b = self.factor()?;
        self.nesting -= 1;
        self.binary(Operator::Power, a, b)
    }

    fn postfix(&mut self) -> Result<Syntax, Problem> {
        let mut a = self.primary()?;
        while self.take('.') {
            let axis = match self.peek() {
                Token::Name("x") => 0,
                Token::Name("y") => 1,
                Token::Name("z") => 2,
                _ => return Err(self.unexpected("a component `x`, `y` or `z`")),
            };
            self.next += 1;
            let (start, depth) = (a.at.0, a.depth + 1);
            a = self.node(start, depth, SyntaxKind::Component(Box::new(a), axis))?;
        }
        Ok(a)
    }

    fn primary(&mut self) -> Result<Syntax, Problem> {
        let start = self.place().0;
        match self.peek().clone() {
            Token::Number(x) => {
                self.next += 1;
                self.node(start, 1, SyntaxKind::Number(x))
            }
            Token::Name(name) => {
                self.next += 1;
                self.named(start, name)
            }
            Token::Sign('(') => {
                self.next += 1;
                let mut a = self.sum()?;
                self.expect(')')?;
                a.at = (start, self.last_end());
                Ok(a)
            }
            Token::Sign('[') => {
                self.next += 1;
                let items = self.items(']', false)?;
                let depth = 1 + items.iter().map(|i| i.depth).max().unwrap_or(0);
                self.node(start, depth, SyntaxKind::List(items))
            }
            _ => Err(self.unexpected("a value")),
        }
    }

    /// What may follow a name: a call, an index or a dot.
    fn named(&mut self, start: usize, name: &str) -> Result<Syntax, Problem> {
        if self.take('(') {
            let items = self.items(')', name == "if")?;
            let depth = 1 + items.iter().map(|i| i.depth).max().unwrap_or(0);
            return self.node(start, depth, SyntaxKind::Call(name.into(), items));
        }
        if self.take('[') {
            let index = self.sum()?;
            self.expect(']')?;
            let depth = index.depth + 1;
            return self.node(start, depth, SyntaxKind::Index(name.into(), Box::new(index)));
        }
        if self.peek() == &Token::Sign('.') {
            self.next += 1;
            let Token::Name(member) = *self.peek() else {
                return Err(self.unexpected("a name"));
            };
            self.next += 1;
            return self.node(start, 1, SyntaxKind::Path(name.into(), member.into()));
        }
        self.node(start, 1, SyntaxKind::Name(name.into()))
    }

    /// Items up to a closing sign; the first may be a comparison if `compare`.
    fn items(&mut self, close: char, compare: bool) -> Result<Vec<Syntax>, Problem> {
        let mut items = Vec::new();
        if self.take(close) {
            return Ok(items);
        }
        loop {
            let item = self.sum()?;
            let item = match *self.peek() {
                Token::Relation(relation) if compare && items.is_empty() => {
                    self.next += 1;
                    let b = self.sum()?;
                    let (start, depth) = (item.at.0, 1 + item.depth.max(b.depth));
                    self.node(start, depth, SyntaxKind::Compare(relation, Box::new(item), Box::new(b)))?
                }
                _ => item,
            };
            items.push(item);
            if self.take(close) {
                return Ok(items);
            }
            if !self.take(',') {
                return Err(self.unexpected(&format!("`,` or `{close}`")));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fully bracketed form, to see how operators bind.
    fn show(s: &Syntax) -> String {
        let list = |items: &[Syntax]| items.iter().map(show).collect::<Vec<_>>().join(" ");
        match &s.kind {
            SyntaxKind::Number(x) => x.to_string(),
            SyntaxKind::Name(n) => n.clone(),
            SyntaxKind::Path(a, b) => format!("{a}.{b}"),
            SyntaxKind::Index(a, i) => format!("{a}[{}]", show(i)),
            SyntaxKind::Call(f, items) => format!("({f} {})", list(items)),
            SyntaxKind::Negate(a) => format!("(- {})", show(a)),
            SyntaxKind::Binary(op, a, b) => format!("({op:?} {} {})", show(a), show(b)),
            SyntaxKind::Compare(op, a, b) => format!("({op:?} {} {})", show(a), show(b)),
            SyntaxKind::List(items) => format!("[{}]", list(items)),
            SyntaxKind::Component(a, i) => format!("{}.{i}", show(a)),
        }
    }

    fn parsed(text: &str) -> String {
        show(&parse(text).expect("an expression"))
    }

    #[test]
    fn operators_bind_as_in_mathematics() {
        assert_eq!(parsed("a - b - c"), "(Subtract (Subtract a b) c)");
        assert_eq!(parsed("-a^2"), "(- (Power a 2))");
        assert_eq!(parsed("2^-3^2"), "(Power 2 (- (Power 3 2)))");
        assert_eq!(parsed("a*-b"), "(Multiply a (- b))");
        assert_eq!(parsed("--a"), "a");
        assert_eq!(parsed("1e-3*.5"), "(Multiply 0.001 0.5)");
        assert_eq!(parsed("pos(a.b).z"), "(pos a.b).2");
        assert_eq!(parsed("if(a <= b, 1, y[2])"), "(if (LessEqual a b) 1 y[2])");
        assert_eq!(parsed("[1, a, (b)].x"), "[1 a b].0");
    }

    #[test]
    fn depth_is_bounded_and_nothing_panics() {
        assert!(parse(&"(".repeat(4000)).is_err());
        assert!(parse(&"a^".repeat(2000)).is_err());
        assert!(parse(&"-".repeat(4000)).is_err());
        assert!(parse(&"sin(".repeat(1000)).is_err());
        assert!(parse(&format!("1{}", "+1".repeat(1000))).is_err());
        assert!(parse(&format!("1{}", "+1".repeat(100))).is_ok());
        for text in [
            "", " ", ".", "1.", "1..x", "a..b", "a.", "a.1", "1e", "1e+", "é", "a[", "f(", "f(,)", "<", "a<b",
        ] {
            let _ = parse(text);
        }
    }
}
