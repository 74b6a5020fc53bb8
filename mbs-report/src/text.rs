//! Text and numbers, escaped for the page.

/// Text between tags or in an attribute.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// A JSON string that is safe in a script element: `<` is escaped.
pub(crate) fn string(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\u{0}'..='\u{1f}' => {
                out.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A JSON list.
pub(crate) fn list(items: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", items.into_iter().collect::<Vec<_>>().join(","))
}

/// A JSON list of numbers with seven digits; values that are not finite are null.
pub(crate) fn numbers(values: &[f64]) -> String {
    list(values.iter().map(|&value| match value as f32 {
        x if !x.is_finite() => "null".into(),
        x if x == x.trunc() && x.abs() < 1e6 => format!("{x}").replace("-0", "0"),
        x => format!("{x:?}"),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_ends_the_element_it_stands_in() {
        assert_eq!(escape("<a href='x'>\"&"), "&lt;a href=&#39;x&#39;&gt;&quot;&amp;");
        assert_eq!(string("</script>\n\"\\"), r#""\u003c/script\u003e\u000a\"\\""#);
    }

    #[test]
    fn numbers_are_json() {
        assert_eq!(numbers(&[0.0, -0.0, 1.5, -2.0, 1e-20, f64::NAN, 1e300]), "[0,0,1.5,-2,1e-20,null,null]");
        assert_eq!(numbers(&[-10.0, 100_000.0]), "[-10,100000]");
    }
}
