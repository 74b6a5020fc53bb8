//! What must hold of generated text without parsing it: brackets match outside of literals and comments, nothing of
//! a free text stands there, and no character turns the direction of the text anywhere.

/// Characters that make text read otherwise than it compiles; rustc refuses them even in comments.
const BIDIRECTIONAL: [char; 9] = [
    '\u{202a}', '\u{202b}', '\u{202c}', '\u{202d}', '\u{202e}', '\u{2066}', '\u{2067}', '\u{2068}',
    '\u{2069}',
];

/// Checks a module's text; an error says what is wrong, and in which line.
pub fn check(code: &str, never: &str) -> Result<(), String> {
    let unwanted = |c: &char| match c.is_ascii() {
        true => c.is_ascii_control() && *c != '\n',
        false => BIDIRECTIONAL.contains(c) || c.is_control(),
    };
    if let Some(c) = code.chars().find(unwanted) {
        return Err(format!("the code contains {c:?}"));
    }
    let bytes = code.as_bytes();
    let mut open = Vec::new();
    let mut plain = String::new();
    let line = |at: usize| bytes[..at].iter().filter(|&&b| b == b'\n').count() + 1;
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        // Most bytes begin nothing: they are told by themselves.
        let skip = match (rest[0], rest.get(1)) {
            (b'/', Some(b'/')) => rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len()),
            (b'/', Some(b'*')) => {
                block_comment(rest).ok_or_else(|| format!("line {}: a comment does not end", line(at)))?
            }
            (b'"', _) => string(rest).ok_or_else(|| format!("line {}: a string does not end", line(at)))?,
            (b'r', Some(b'"' | b'#')) if rest.starts_with(b"r\"") || rest.starts_with(b"r#\"") => {
                return Err(format!("line {}: a raw string, which the generator does not print", line(at)));
            }
            (b, _) => {
                match b {
                    b'(' | b'[' | b'{' => open.push(b),
                    b')' | b']' | b'}' => {
                        let matches = match open.pop() {
                            Some(b'(') => b == b')',
                            Some(b'[') => b == b']',
                            Some(_) => b == b'}',
                            None => false,
                        };
                        if !matches {
                            return Err(format!("line {}: `{}` closes nothing", line(at), char::from(b)));
                        }
                    }
                    b if !b.is_ascii() => {
                        return Err(format!("line {}: not ASCII outside of literals", line(at)));
                    }
                    _ => {}
                }
                plain.push(char::from(b));
                1
            }
        };
        at += skip;
    }
    if !open.is_empty() {
        return Err("a bracket is not closed".into());
    }
    if plain.contains(never) {
        return Err(format!("`{never}` stands outside of literals and comments"));
    }
    Ok(())
}

/// Length of a block comment; they nest.
fn block_comment(bytes: &[u8]) -> Option<usize> {
    let (mut depth, mut at) = (0usize, 0);
    loop {
        match bytes.get(at..at + 2)? {
            b"/*" => {
                depth += 1;
                at += 2;
            }
            b"*/" => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => at += 1,
        }
    }
}

/// Length of a string literal.
fn string(bytes: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        match bytes.get(at)? {
            b'\\' => at += 2,
            b'"' => return Some(at + 1),
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn finds_what_escapes() {
        assert_eq!(check("// x {\nmod a { /* x /* } */ */ const B: &str = \"x \\\" }\"; }\n", "x"), Ok(()));
        assert!(check("mod a { const x: u8 = 0; }", "x").is_err());
        assert!(check("mod a { \"x\" \" }", "x").is_err());
        assert!(check("mod a { (} )", "x").is_err());
        assert!(check("mod a { } }", "x").is_err());
        assert!(check("mod a {", "x").is_err());
        assert!(check("// \u{202e}", "x").is_err());
        assert!(check("/* ", "x").is_err());
    }
}
