//! What a model is differentiated by, from names that a person wrote: `k`, `knots[3]`, all of `knots`, an input.

use mbs_codegen::diagnostics::nearest;
use mbs_codegen::model::{InputId, Model, ParameterId, ParameterValue, SensitivityRef};
use std::fmt;

/// Why a model cannot be differentiated by a name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameError {
    /// No parameter and no input has this name.
    Unknown {
        /// As it was given.
        name: String,
        /// The nearest name there is.
        nearest: Option<String>,
    },
    /// A parameter that follows others.
    Dependent {
        /// As it was given.
        name: String,
        /// The independent parameters it is made of.
        made_of: Vec<String>,
    },
    /// An index beyond the end, or of something that is no array.
    Index {
        /// As it was given.
        name: String,
        /// How many values the array has; none if it is no array.
        len: Option<usize>,
    },
    /// Named before.
    Repeated {
        /// As it was given.
        name: String,
    },
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NameError::Unknown { name, nearest } => {
                write!(f, "there is no parameter or input `{name}`")?;
                nearest.iter().try_for_each(|near| write!(f, "; did you mean `{near}`?"))
            }
            NameError::Dependent { name, made_of } => {
                write!(
                    f,
                    "parameter `{name}` follows others and has no value of its own; differentiate by what it is made of"
                )?;
                for (i, one) in made_of.iter().enumerate() {
                    write!(f, "{} `{one}`", if i == 0 { ":" } else { "," })?;
                }
                Ok(())
            }
            NameError::Index { name, len: Some(len) } => {
                write!(f, "there is no `{name}`: the array has {len} values, numbered from 0")
            }
            NameError::Index { name, len: None } => write!(f, "there is no `{name}`: it is no array"),
            NameError::Repeated { name } => write!(f, "`{name}` is named twice"),
        }
    }
}

impl std::error::Error for NameError {}

/// What the names stand for, in their order; arrays are flattened.
pub fn by_names<'n>(
    model: &Model,
    names: impl IntoIterator<Item = &'n str>,
) -> Result<Vec<SensitivityRef>, NameError> {
    let mut all = Vec::new();
    for name in names {
        for one in by_name(model, name)? {
            if all.contains(&one) {
                return Err(NameError::Repeated { name: name.into() });
            }
            all.push(one);
        }
    }
    Ok(all)
}

fn by_name(model: &Model, name: &str) -> Result<Vec<SensitivityRef>, NameError> {
    let (base, index) = match name.trim_end().strip_suffix(']').and_then(|rest| rest.split_once('[')) {
        Some((base, index)) => (base.trim(), Some(index.trim())),
        None => (name.trim(), None),
    };
    let wrong = |len| NameError::Index { name: name.into(), len };
    if let Some(place) = model.inputs.iter().position(|input| input.name == base) {
        let one = SensitivityRef::Input(InputId(place as u32));
        return if index.is_none() { Ok(vec![one]) } else { Err(wrong(None)) };
    }
    let Some(place) = model.parameters.iter().position(|parameter| parameter.name == base) else {
        let independent = model.parameters.iter().filter(|p| !matches!(p.value, ParameterValue::Derived(_)));
        let names = independent.map(|p| p.name.as_str()).chain(model.inputs.iter().map(|i| i.name.as_str()));
        return Err(NameError::Unknown {
            name: base.into(),
            nearest: nearest(base, names).map(String::from),
        });
    };
    let id = ParameterId(place as u32);
    let one = |element| SensitivityRef::Parameter { id, element };
    match (&model.parameters[place].value, index) {
        (ParameterValue::Derived(_), _) => {
            Err(NameError::Dependent { name: base.into(), made_of: made_of(model, id) })
        }
        (ParameterValue::Number(_), None) => Ok(vec![one(0)]),
        (ParameterValue::Number(_), Some(_)) => Err(wrong(None)),
        (ParameterValue::Array(values), None) => Ok((0..values.len()).map(one).collect()),
        (ParameterValue::Array(values), Some(index)) => {
            let element = index.parse().ok().filter(|&element: &usize| element < values.len());
            element.map(|element| vec![one(element)]).ok_or(wrong(Some(values.len())))
        }
    }
}

/// Names of the independent parameters that a parameter is made of, in the order of the model.
fn made_of(model: &Model, id: ParameterId) -> Vec<String> {
    let mut seen = vec![false; model.parameters.len()];
    let mut open = vec![id];
    while let Some(id) = open.pop() {
        let Some(seen) = seen.get_mut(id.index()).filter(|seen| !**seen) else { continue };
        *seen = true;
        if let ParameterValue::Derived(value) = &model.parameters[id.index()].value {
            value.for_each_parameter(&mut |p| open.push(p));
        }
    }
    let found = model.parameters.iter().zip(seen).filter(|(_, seen)| *seen).map(|(parameter, _)| parameter);
    let independent = found.filter(|parameter| !matches!(parameter.value, ParameterValue::Derived(_)));
    independent.map(|parameter| parameter.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODEL: &str = "
mbs: 1
name: m
parameters: {mass: 1, length: 2, both: mass*length, knots: [1, 2, 3]}
inputs: {push: 0}
bodies: {b: {mass: mass}}
joints: {j: {type: prismatic, parent: ground, child: b, axis: [1, 0, 0]}}
forces: {f: {type: force, at: b, value: [\"push*both*knots[0]\", 0, 0]}}
";

    fn asked(names: &[&str]) -> Result<Vec<String>, String> {
        let (model, _) =
            mbs_codegen::read("m.yaml", MODEL).unwrap_or_else(|e| panic!("{}", e.render("m", MODEL)));
        let found = by_names(&model, names.iter().copied()).map_err(|error| error.to_string())?;
        Ok(model.sensitivity_names(&found))
    }

    #[test]
    fn names_stand_for_parameters_elements_and_inputs() {
        let found = asked(&["length", "knots[1]", "push"]).expect("names");
        assert_eq!(found, ["length", "knots[1]", "push"]);
        assert_eq!(asked(&["knots"]).expect("names"), ["knots[0]", "knots[1]", "knots[2]"]);
    }

    #[test]
    fn other_names_are_refused_with_a_remedy() {
        for (names, words) in [
            (&["lenght"][..], "did you mean `length`?"),
            (&["both"], "made of: `mass`, `length`"),
            (&["knots[3]"], "3 values, numbered from 0"),
            (&["mass[0]"], "it is no array"),
            (&["push[0]"], "it is no array"),
            (&["knots", "knots[1]"], "named twice"),
        ] {
            let error = asked(names).expect_err("an error");
            assert!(error.contains(words), "{names:?}: {error}");
        }
    }
}
