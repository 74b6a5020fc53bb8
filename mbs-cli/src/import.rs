//! `mbs import`: from a robot in URDF to a model file.

use crate::arguments::Import;
use crate::check::show_warnings;
use crate::failure::Failure;
use crate::files;
use mbs_urdf::Options;

/// Writes the model, and says what was changed and left out.
pub(crate) fn import(arguments: &Import) -> Result<(), Failure> {
    let file = files::read(&arguments.robot)?;
    let options = Options {
        floating_base: arguments.floating_base,
        loops: arguments.loops.clone(),
        snap: arguments.snap,
        dissipation: !arguments.no_friction,
        mimicry: !arguments.no_mimic,
    };
    let imported = mbs_urdf::import(&file.name, &file.text, &options).map_err(|diagnostics| {
        files::complain(&diagnostics.render(&file.name, &file.text));
        Failure::said()
    })?;
    show_warnings(&file, &imported.warnings);
    let target = match &arguments.output {
        Some(path) => {
            files::write_whole(path, &imported.yaml)?;
            let path = path.display().to_string();
            files::print(&format!("wrote {path}\n{}", imported.report))?;
            path
        }
        None => {
            files::print(&imported.yaml)?;
            files::complain(&imported.report.to_string());
            "model".into()
        }
    };
    // What the robot lacks to be simulated shows in the model.
    match mbs_codegen::read(&target, &imported.yaml) {
        Ok((_, warnings)) => {
            files::complain(&warnings.render(&target, &imported.yaml));
            Ok(())
        }
        Err(diagnostics) => {
            files::complain(&diagnostics.render(&target, &imported.yaml));
            Err(Failure::error("the robot is imported, but cannot be simulated as it is"))
        }
    }
}
