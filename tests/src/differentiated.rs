//! Models that are differentiated by everything they can be, and have more of that.

use crate::random_model::Random;
use mbs_codegen::model::{InputId, Model, ParameterId, ParameterValue, SensitivityRef};

/// The same model with up to `count` of the numbers in its vectors (points, axes, centres of mass, inertias, gravity,
/// constants of constraints) and start values turned into parameters.
pub fn parametrised(text: &str, count: usize, random: &mut Random) -> String {
    let mut out = String::new();
    let mut parameters = String::new();
    let mut rest = text;
    let mut taken = 0;
    while let Some(at) = rest.find(['[', ',', ':']) {
        let (before, after) = rest.split_at(at + 1);
        out.push_str(before);
        rest = after;
        let number = after.trim_start_matches(' ');
        let len = number.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '-').unwrap_or(0);
        let ends = number[len..].starts_with([']', ',', '}']);
        let value: f64 = number[..len].parse().unwrap_or(0.0);
        let plain = number[..len].contains('.') && (0.01..0.99).contains(&value.abs());
        // Parameters and knots are no expressions.
        let structure = out.contains("bodies:");
        if ends && plain && structure && taken < count && random.chance(0.3) {
            parameters.push_str(&format!("  free{taken}: {}\n", &number[..len]));
            out.push_str(&format!(" free{taken}"));
            rest = &number[len..];
            taken += 1;
        }
    }
    out.push_str(rest);
    out.replacen("parameters:\n", &format!("parameters:\n{parameters}"), 1)
}

/// All parameters, elements of arrays and inputs.
pub fn everything(model: &Model) -> Vec<SensitivityRef> {
    let mut all = Vec::new();
    for (i, parameter) in model.parameters.iter().enumerate() {
        let count = match &parameter.value {
            ParameterValue::Number(_) => 1,
            ParameterValue::Array(values) => values.len(),
            ParameterValue::Derived(_) => 0,
        };
        let id = ParameterId(i as u32);
        all.extend((0..count).map(|element| SensitivityRef::Parameter { id, element }));
    }
    all.extend((0..model.inputs.len()).map(|i| SensitivityRef::Input(InputId(i as u32))));
    all
}
