//! The five-bar linkage differentiated by any number of parameters.

/// Numbers of parameters that are measured.
pub const PARAMETERS: [usize; 3] = [1, 20, 100];

/// Numbers of the bicycle's spline values that are measured.
pub const SPLINE_VALUES: [usize; 2] = [32, 1000];

/// The model's text, `text`, differentiated by `count` parameters that all change the first spring's stiffness.
#[allow(dead_code, unreachable_pub, reason = "the build script uses it")]
pub fn differentiated(text: &str, count: usize) -> String {
    let names: Vec<String> = (0..count).map(|i| format!("e{i}")).collect();
    let declared: String = names.iter().map(|name| format!("  {name}: 0\n")).collect();
    let sum = names.join(" + ");
    let list = text.find("sensitivity:").map_or("", |at| &text[at..]);
    let list = &list[..list.find('\n').unwrap_or(list.len())];
    text.replacen("parameters:\n", &format!("parameters:\n{declared}"), 1)
        .replacen("stiffness: k_1", &format!("stiffness: k_1 + {sum}"), 1)
        .replacen(list, &format!("sensitivity: [{}]", names.join(", ")), 1)
}
