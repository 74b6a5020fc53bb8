//! `mbs import`: from a robot in URDF to a model file.

use crate::arguments::Import;
use crate::output::json::pretty;
use crate::output::json::problems;
use crate::session::failure::Failure;
use crate::session::files::{self, Text};
use crate::session::model::show_warnings;
use mbs_codegen::diagnostics::Diagnostics;
use mbs_urdf::{Imported, Options};
use serde_json::json;
use std::path::Path;

/// Writes the model, and says what was changed and left out.
pub(crate) fn import(arguments: &Import) -> Result<(), Failure> {
    if let Some(output) = &arguments.output {
        files::refuse_overwriting("-o", output, "the robot", &arguments.robot)?;
    }
    let file = files::read(&arguments.robot)?;
    let options = Options {
        floating_base: arguments.floating_base,
        loops: arguments.loops.clone(),
        snap: arguments.snap,
        dissipation: !arguments.no_friction,
        mimicry: !arguments.no_mimic,
    };
    let imported = match mbs_urdf::import(&file.name, &file.text, &options) {
        Ok(imported) => imported,
        Err(diagnostics) => return Err(refuse(&file.name, &file.text, &diagnostics, arguments.json)?),
    };
    let Some(path) = &arguments.output else {
        show_warnings(&file, &imported.warnings);
        files::print(&imported.yaml)?;
        files::complain(&imported.report.to_string());
        return examine("model", &imported.yaml, false);
    };
    files::write_whole(path, &imported.yaml)?;
    let name = path.display().to_string();
    if arguments.json {
        // First whether it can be used: one object is printed, not two.
        examine(&name, &imported.yaml, true)?;
        return files::print(&json_report(&file, path, &imported));
    }
    show_warnings(&file, &imported.warnings);
    files::print(&format!("wrote {name}\n{}", imported.report))?;
    examine(&name, &imported.yaml, false)
}

/// Shows the problems of a file.
fn refuse(name: &str, text: &str, diagnostics: &Diagnostics, json: bool) -> Result<Failure, Failure> {
    if json {
        let problems = json!({"file": name, "valid": false, "problems": problems(diagnostics)});
        files::print(&(pretty(&problems) + "\n"))?;
    } else {
        files::complain(&diagnostics.render(name, text));
    }
    Ok(Failure::said())
}

/// What the robot lacks to be simulated shows in the model.
fn examine(name: &str, yaml: &str, json: bool) -> Result<(), Failure> {
    match mbs_codegen::read(name, yaml) {
        Ok((_, warnings)) => {
            if !json {
                files::complain(&warnings.render(name, yaml));
            }
            Ok(())
        }
        Err(diagnostics) => {
            refuse(name, yaml, &diagnostics, json)?;
            Err(Failure::error("the robot is imported, but cannot be simulated as it is"))
        }
    }
}

fn json_report(file: &Text, path: &Path, imported: &Imported) -> String {
    let report = &imported.report;
    let (angles, change) = report.angles;
    let renamed = report.renamed.iter().map(|(what, from, to)| json!({"what": what, "from": from, "to": to}));
    let object = json!({
        "file": file.name,
        "valid": true,
        "model": path.display().to_string(),
        "links": report.links,
        "bodies": report.bodies,
        "joints": report.joints,
        "couplings": report.couplings,
        "loops": report.loops,
        "mass": report.mass,
        "mass_on_ground": report.grounded,
        "limits": report.limits,
        "renamed": renamed.collect::<Vec<_>>(),
        "locked": report.locked,
        "skipped": report.skipped,
        "angles": {"snapped": angles, "largest_change": change},
        "problems": problems(&imported.warnings),
    });
    pretty(&object) + "\n"
}
