//! From an expression's text to tokens.

use super::{Problem, Relation};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'s> {
    Number(f64),
    Name(&'s str),
    Relation(Relation),
    /// One of `+ - * / ^ ( ) [ ] , .`
    Sign(char),
    End,
}

/// A token and the bytes it covers.
pub(super) type Placed<'s> = (Token<'s>, (usize, usize));

/// The tokens with the bytes they cover; the last one is [`Token::End`].
pub(super) fn tokens(text: &str) -> Result<Vec<Placed<'_>>, Problem> {
    let bytes = text.as_bytes();
    let at = |i: usize| bytes.get(i).copied().unwrap_or(0);
    let mut out = Vec::new();
    let mut i = 0;
    while i < bytes.len() {
        let start = i;
        let b = bytes[i];
        match b {
            b' ' | b'\t' | b'\n' | b'\r' => {
                i += 1;
                continue;
            }
            b'0'..=b'9' => {
                i = number_end(bytes, i);
                out.push((number(text, start, i)?, (start, i)));
            }
            b'.' if at(i + 1).is_ascii_digit() && !follows_value(&out) => {
                i = number_end(bytes, i);
                out.push((number(text, start, i)?, (start, i)));
            }
            b'A'..=b'Z' | b'a'..=b'z' | b'_' => {
                while at(i).is_ascii_alphanumeric() || at(i) == b'_' {
                    i += 1;
                }
                out.push((Token::Name(&text[start..i]), (start, i)));
            }
            b'*' if at(i + 1) == b'*' => {
                return Err(Problem::new((i, i + 2), "unexpected `**`").help("a power is written `a^b`"));
            }
            b'+' | b'-' | b'*' | b'/' | b'^' | b'(' | b')' | b'[' | b']' | b',' | b'.' => {
                i += 1;
                out.push((Token::Sign(char::from(b)), (start, i)));
            }
            b'<' | b'>' | b'=' | b'!' => {
                let (relation, len) = match (b, at(i + 1)) {
                    (b'<', b'=') => (Relation::LessEqual, 2),
                    (b'<', _) => (Relation::Less, 1),
                    (b'>', b'=') => (Relation::GreaterEqual, 2),
                    (b'>', _) => (Relation::Greater, 1),
                    (b'=', b'=') => (Relation::Equal, 2),
                    _ => {
                        return Err(Problem::new((i, i + 1), format!("unexpected `{}`", char::from(b)))
                            .help("comparisons are `<`, `<=`, `>`, `>=` and `==`"));
                    }
                };
                i += len;
                out.push((Token::Relation(relation), (start, i)));
            }
            _ => {
                let c = text[i..].chars().next().unwrap_or('\u{fffd}');
                let shown = if c.is_control() { '\u{fffd}' } else { c };
                let problem = Problem::new((i, i + c.len_utf8()), format!("unexpected character `{shown}`"));
                return Err(match c {
                    '−' | '–' | '—' => problem.help("write the minus sign as `-`"),
                    '·' | '×' => problem.help("write the product as `*`"),
                    '%' | '°' => problem.help("numbers carry no units; angles are in radians"),
                    'π' => problem.help("write `pi`"),
                    _ => problem,
                });
            }
        }
    }
    out.push((Token::End, (bytes.len(), bytes.len())));
    Ok(out)
}

/// Whether the last token ends a value, so that `.` after it selects and does not start a number.
fn follows_value(tokens: &[Placed<'_>]) -> bool {
    matches!(tokens.last(), Some((Token::Name(_) | Token::Number(_) | Token::Sign(')' | ']'), _)))
}

fn number_end(bytes: &[u8], start: usize) -> usize {
    let at = |i: usize| bytes.get(i).copied().unwrap_or(0);
    let mut i = start;
    while at(i).is_ascii_digit() {
        i += 1;
    }
    if at(i) == b'.' {
        i += 1;
        while at(i).is_ascii_digit() {
            i += 1;
        }
    }
    if matches!(at(i), b'e' | b'E') {
        let mut j = i + 1;
        if matches!(at(j), b'+' | b'-') {
            j += 1;
        }
        if at(j).is_ascii_digit() {
            while at(j).is_ascii_digit() {
                j += 1;
            }
            i = j;
        }
    }
    i
}

/// What to say where a name follows a number.
pub(super) const MISSING_OPERATOR: &str = "write products with `*`; numbers carry no units";

fn number<'s>(text: &str, start: usize, end: usize) -> Result<Token<'s>, Problem> {
    let goes_on = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    if text[end..].starts_with(goes_on) {
        let rest = text[end..].find(|c: char| !goes_on(c));
        let stop = rest.map_or(text.len(), |r| end + r);
        return Err(Problem::new(
            (start, stop),
            format!("`{}` is neither a number nor a name", &text[start..stop]),
        )
        .help(MISSING_OPERATOR));
    }
    match text[start..end].parse::<f64>() {
        Ok(x) if x.is_finite() => Ok(Token::Number(x)),
        _ => Err(Problem::new((start, end), "the number is too large")),
    }
}
