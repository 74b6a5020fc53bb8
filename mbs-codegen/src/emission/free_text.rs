//! Free text of a model, escaped for comments.

/// Whether a character is not allowed in a comment: it ends lines, is invisible, or changes the direction of the text
/// (which rustc refuses).
fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// On one line, and as it reads.
pub(super) fn one_line(text: &str) -> String {
    text.chars().map(|c| if is_invisible(c) { ' ' } else { c }).collect()
}

/// In a doc comment: on one line, and nothing in it that rustdoc takes for markup.
pub(super) fn prose(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            c if is_invisible(c) || c.is_whitespace() => {
                if !out.ends_with(' ') {
                    out.push(' ');
                }
            }
            '<' | '>' | '[' | ']' | '`' | '*' | '_' | '\\' | '|' | '#' | '~' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out.trim().into()
}

#[cfg(test)]
mod tests {
    use super::{one_line, prose};

    #[test]
    fn nothing_breaks_the_line_or_its_direction() {
        assert_eq!(one_line("a\nb\u{202e}c\u{2028}d"), "a b c d");
        assert_eq!(prose(" a\r\n\u{2066}b\t*/ "), "a b \\*/");
    }
}
