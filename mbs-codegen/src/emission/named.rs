//! Structs whose fields are the names of a model.
//!
//! The order of the values is that of the slices. A name becomes a field by one rule: characters that no identifier has, dots among them,
//! become `_`. Three things are shorter: the only coordinate of a joint, and its only velocity, go by the joint's name; an array, or the
//! three components of a vector, are one field; a marker is a vector, and what a joint transmits is a wrench.

use super::face::{count, ident};
use super::free_text::prose;
use super::names::fields;
use crate::program::{InputInfo, Program};
use proc_macro2::{Ident, TokenStream};
use quote::quote;

/// A field: name, type, how many values it has, what it is.
struct Field {
    name: String,
    kind: TokenStream,
    len: usize,
    doc: String,
}

impl Field {
    fn number(name: &str, doc: String) -> Field {
        Field { name: name.into(), kind: quote!(S), len: 1, doc }
    }

    fn array(name: &str, len: usize, doc: String) -> Field {
        let n = count(len);
        Field { name: name.into(), kind: quote!([S; #n]), len, doc }
    }
}

/// Names and lengths of the fields of each struct.
pub(super) struct Lists {
    pub(super) parameters: Vec<(String, usize)>,
    pub(super) inputs: Vec<(String, usize)>,
    pub(super) coordinates: Vec<(String, usize)>,
    pub(super) velocities: Vec<(String, usize)>,
    pub(super) multipliers: Vec<(String, usize)>,
    pub(super) derivatives: Vec<(String, usize)>,
    pub(super) objectives: Vec<(String, usize)>,
}

/// The fields of all structs.
pub(super) fn lists(program: &Program) -> Lists {
    let list = |fields: Vec<Field>| fields.into_iter().map(|field| (field.name, field.len)).collect();
    Lists {
        parameters: list(parameter_fields(program)),
        inputs: list(input_fields(program)),
        coordinates: list(of_joints(&program.coordinates, program)),
        velocities: list(of_joints(&program.velocities, program)),
        multipliers: list(multiplier_fields(program)),
        derivatives: list(derivative_fields(program)),
        objectives: list(objective_fields(program)),
    }
}

/// A struct and its connection with the slices; the type that stands for it where there are no values.
pub(super) struct Named {
    pub(super) kind: TokenStream,
    pub(super) definition: TokenStream,
}

fn define(name: &str, doc: &str, list: &[Field]) -> Named {
    if list.is_empty() {
        return Named { kind: quote!(rt::named::Nothing), definition: quote!() };
    }
    let name = ident(name);
    let idents: Vec<Ident> =
        fields(list.iter().map(|field| field.name.as_str())).iter().map(|f| ident(f)).collect();
    let declared = list.iter().zip(&idents).map(|(field, ident)| {
        let (doc, kind) = (&field.doc, &field.kind);
        quote! { #[doc = #doc] pub #ident: #kind }
    });
    let len = count(list.iter().map(|field| field.len).sum());
    let doc = format!(" {doc}.");
    let definition = quote! {
        #[doc = #doc]
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct #name { #(#declared,)* }
        rt::fields!(#name[S; #len] { #(#idents),* });
    };
    Named { kind: quote!(#name), definition }
}

/// Coordinates or velocities.
fn of_joints(names: &[String], program: &Program) -> Vec<Field> {
    let joint = |name: &str| {
        let (joint, _) = name.rsplit_once('.')?;
        program.joints.iter().any(|other| other == joint).then(|| joint.to_string())
    };
    let joints: Vec<Option<String>> = names.iter().map(|name| joint(name)).collect();
    let field = |(name, joint): (&String, &Option<String>)| {
        let doc = format!(" `{name}`.");
        match joint {
            Some(joint) if joints.iter().flatten().filter(|other| *other == joint).count() == 1 => {
                Field::number(joint, doc)
            }
            _ => Field::number(name, doc),
        }
    };
    names.iter().zip(&joints).map(field).collect()
}

pub(super) fn coordinates(program: &Program) -> Named {
    let list = of_joints(&program.coordinates, program);
    define("Coordinates", "Coordinates z, or their rates, or their accelerations", &list)
}

pub(super) fn velocities(program: &Program) -> Named {
    let list = of_joints(&program.velocities, program);
    define("Velocities", "Velocities v, or accelerations vd", &list)
}

fn input_fields(program: &Program) -> Vec<Field> {
    let describe = |input: &InputInfo| described("Input", &input.name, &input.description, &input.unit);
    program.inputs.iter().map(|i| Field::number(&i.name, describe(i))).collect()
}

pub(super) fn inputs(program: &Program) -> Named {
    define("Inputs", "Inputs u", &input_fields(program))
}

/// What a field is, from the model's own words.
pub(super) fn described(what: &str, name: &str, description: &str, unit: &str) -> String {
    let mut doc = String::from(" ");
    doc.push_str(&if description.is_empty() { format!("{what} `{name}`") } else { prose(description) });
    if !unit.is_empty() {
        doc.push_str(&format!(", in {}", prose(unit)));
    }
    doc.push('.');
    doc
}

pub(super) fn outputs(program: &Program) -> Named {
    let mut list = Vec::new();
    let mut rest = program.outputs.as_slice();
    while let Some(((name, unit), others)) = rest.split_first() {
        let vector = name.strip_suffix(".x").filter(|vector| {
            let others: Vec<&str> = others.iter().take(2).map(|(name, _)| name.as_str()).collect();
            others == [format!("{vector}.y"), format!("{vector}.z")]
        });
        if let Some(vector) = vector {
            list.push(Field::array(vector, 3, described("Output", vector, "", unit)));
            rest = rest.get(3..).unwrap_or_default();
        } else {
            list.push(Field::number(name, described("Output", name, "", unit)));
            rest = others;
        }
    }
    define("Outputs", "Outputs", &list)
}

fn multiplier_fields(program: &Program) -> Vec<Field> {
    let rows = program.holonomic.iter().chain(&program.nonholonomic);
    rows.map(|row| Field::number(row, format!(" Of `{row}`."))).collect()
}

pub(super) fn multipliers(program: &Program) -> Named {
    define("Multipliers", "Multipliers of the constraints", &multiplier_fields(program))
}

pub(super) fn markers(program: &Program) -> Named {
    let list: Vec<Field> =
        program.markers.iter().map(|name| Field::array(name, 3, format!(" Of `{name}`."))).collect();
    define("Markers", "A vector for each marker, in the world frame", &list)
}

pub(super) fn reactions(program: &Program) -> Named {
    let wrench = |name: &String| Field {
        name: name.clone(),
        kind: quote!(rt::named::Wrench<S>),
        len: 6,
        doc: format!(" Through `{name}`."),
    };
    let list: Vec<Field> = program.joints.iter().map(wrench).collect();
    define("Reactions", "What each joint transmits from its parent to its child", &list)
}

/// What the model is differentiated by. An array whose elements are all there, in order, is one field.
fn derivative_fields(program: &Program) -> Vec<Field> {
    let mut list = Vec::new();
    let mut rest = program.sensitivity.as_slice();
    while let Some((name, others)) = rest.split_first() {
        let array = program.parameters.iter().find(|p| {
            let elements = (0..p.defaults.len()).map(|i| format!("{}[{i}]", p.name));
            p.is_array && !p.defaults.is_empty() && elements.eq(rest.iter().take(p.defaults.len()).cloned())
        });
        if let Some(array) = array {
            let len = array.defaults.len();
            list.push(Field::array(&array.name, len, format!(" By `{}`.", array.name)));
            rest = rest.get(len..).unwrap_or_default();
        } else {
            list.push(Field::number(name.trim_end_matches(']'), format!(" By `{name}`.")));
            rest = others;
        }
    }
    list
}

pub(super) fn derivatives(program: &Program) -> Named {
    define("Derivatives", "Derivatives by what the model is differentiated by", &derivative_fields(program))
}

fn objective_fields(program: &Program) -> Vec<Field> {
    let field = |(name, unit): &(String, String)| Field {
        name: name.clone(),
        kind: quote!(rt::named::Objective<Derivatives, S>),
        len: 1 + program.sensitivity.len(),
        doc: described("Objective", name, "", unit),
    };
    program.objectives.iter().map(field).collect()
}

/// The objectives with their derivatives.
pub(super) fn gradient(program: &Program) -> Named {
    define("Gradient", "Objectives of a run and their derivatives", &objective_fields(program))
}

fn parameter_fields(program: &Program) -> Vec<Field> {
    let field = |p: &crate::program::ParameterInfo| {
        let doc = described("Parameter", &p.name, &p.description, &p.unit);
        match p.is_array {
            true => Field::array(&p.name, p.defaults.len(), doc),
            false => Field::number(&p.name, doc),
        }
    };
    program.parameters.iter().map(field).collect()
}

/// The independent parameters.
pub(super) fn parameters(program: &Program) -> TokenStream {
    let list = parameter_fields(program);
    let about = "Independent parameters; [`Default`] gives the model's values";
    match list.is_empty() {
        true => quote! {
            #[doc = " Independent parameters: there are none."]
            #[derive(Clone, Copy, Debug, PartialEq)]
            pub struct Parameters {}
            rt::fields!(Parameters[S; 0] {});
        },
        false => define("Parameters", about, &list).definition,
    }
}
