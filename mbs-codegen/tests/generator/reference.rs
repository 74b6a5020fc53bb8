//! The schema file and the reference stay in step with the reader.

use std::collections::BTreeSet;
use std::path::Path;

use mbs_codegen::model::shape::COLOURS;
use mbs_codegen::model::{Formulation, JointKind};
use mbs_codegen::yaml::{keys, limits};
use serde_json::Value;

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)).unwrap()
}

fn schema() -> Value {
    serde_json::from_str(&read("schema/mbs-1.schema.json")).unwrap()
}

#[test]
fn the_schema_has_the_keys_of_the_reader() {
    let schema = schema();
    for (name, table) in keys::ALL {
        let definition = if name == "model" { &schema } else { &schema["definitions"][name] };
        let properties =
            definition["properties"].as_object().unwrap_or_else(|| panic!("no definition of {name}"));
        let found: BTreeSet<&str> = properties.keys().map(String::as_str).collect();
        let expected: BTreeSet<&str> = table.keys.iter().copied().collect();
        assert_eq!(found, expected, "{name}");
        assert_eq!(definition["additionalProperties"], Value::Bool(false), "{name}");
        for (key, property) in properties {
            let described = property["description"].is_string() || property["$ref"].is_string();
            assert!(described, "{name}.{key} has no description");
        }
    }
}

#[test]
fn the_schema_has_the_words_of_the_reader() {
    let schema = schema();
    let words = |value: &Value| -> Vec<String> {
        value["enum"].as_array().unwrap().iter().map(|w| w.as_str().unwrap().to_string()).collect()
    };
    let mut kinds: Vec<String> = JointKind::ALL.iter().map(|k| k.keyword().to_string()).collect();
    kinds.push("shared".into());
    assert_eq!(words(&schema["definitions"]["joint"]["properties"]["type"]), kinds);
    let formulations: Vec<String> = Formulation::ALL.iter().map(|f| f.keyword().to_string()).collect();
    assert_eq!(words(&schema["definitions"]["simulation"]["properties"]["formulation"]), formulations);
    let colours: Vec<String> = COLOURS.iter().map(|(name, _)| name.to_string()).collect();
    assert_eq!(words(&schema["definitions"]["colour"]["anyOf"][0]), colours);
    for union in ["any_force", "any_constraint", "any_shape"] {
        for one in schema["definitions"][union]["anyOf"].as_array().unwrap() {
            let name = one["$ref"].as_str().unwrap().rsplit('/').next().unwrap();
            assert_eq!(schema["definitions"][name]["properties"]["type"]["const"], name);
        }
    }
    let length = limits::NAME_CHARS - 1;
    let pattern = schema["definitions"]["name"]["pattern"].as_str().unwrap();
    assert_eq!(pattern, format!("^[A-Za-z_][A-Za-z0-9_]{{0,{length}}}$"));
    assert_eq!(schema["definitions"]["sensitivity"]["maxItems"], limits::SENSITIVITY);
}

/// Every reference `#/definitions/…` of the schema leads somewhere.
#[test]
fn the_schema_has_no_dangling_references() {
    fn visit(value: &Value, schema: &Value) {
        match value {
            Value::Object(map) => {
                if let Some(Value::String(target)) = map.get("$ref") {
                    let name = target.strip_prefix("#/definitions/").unwrap();
                    assert!(schema["definitions"][name].is_object(), "{target}");
                }
                map.values().for_each(|v| visit(v, schema));
            }
            Value::Array(items) => items.iter().for_each(|v| visit(v, schema)),
            _ => {}
        }
    }
    let schema = schema();
    visit(&schema, &schema);
}

#[test]
fn the_reference_names_every_key() {
    let text = read("docs/model-reference.md");
    for (name, table) in keys::ALL {
        for key in table.keys.iter().chain(table.later) {
            assert!(text.contains(&format!("`{key}`")), "`{key}` of {name} is not in the reference");
        }
    }
    for kind in JointKind::ALL {
        for word in [kind.keyword()]
            .iter()
            .chain(kind.coordinates())
            .chain(kind.velocities())
            .chain(kind.closure_rows())
        {
            assert!(text.contains(&format!("`{word}`")), "`{word}` is not in the reference");
        }
    }
}

#[test]
fn every_model_in_the_reference_reads_clean() {
    let text = read("docs/model-reference.md");
    let mut blocks = 0;
    for (i, part) in text.split("```").enumerate() {
        let Some(yaml) = part.strip_prefix("yaml\n").filter(|_| i % 2 == 1) else {
            continue;
        };
        let diagnostics = match mbs_codegen::read("reference.yaml", yaml) {
            Ok((_, warnings)) => warnings,
            Err(errors) => errors,
        };
        assert!(diagnostics.is_empty(), "{}", diagnostics.render("reference.yaml", yaml));
        blocks += 1;
    }
    assert!(blocks >= 8, "only {blocks} blocks");
}
