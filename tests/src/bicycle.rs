//! The bicycle with any number of values of its splines, as a model file.
//!
//! `models/bicycle.yaml` has 32 of them, sixteen for each torque; [`yaml`] puts others in their place.

/// The shipped model.
const SHIPPED: &str = include_str!("../../models/bicycle.yaml");

/// The model file with `p` values of both splines together: knots equally spaced over 10 s.
pub fn yaml(p: usize) -> String {
    let n = p / 2;
    let last = n - 1;
    let knots = array(n, |i| format!("10*{i}/{last}"));
    let steer = array(n, |i| format!("-0.3*cos(2*pi*{i}/{last} - 0.3)"));
    let drive = array(n, |_| "0.5".to_owned());
    let mut text = SHIPPED.to_owned();
    for (name, values) in [("knots", knots), ("steer", steer), ("drive", drive)] {
        let begin = format!("  {name}:\n    values: [");
        if let Some(at) = text.find(&begin)
            && let Some(len) = text[at..].find(']')
        {
            text.replace_range(at + begin.len()..at + len, &values);
        }
    }
    text
}

/// Values separated by commas, four on a line.
fn array(n: usize, value: impl Fn(usize) -> String) -> String {
    let values: Vec<String> = (0..n).map(value).collect();
    let lines: Vec<String> = values.chunks(4).map(|line| line.join(", ")).collect();
    lines.join(",\n      ")
}
