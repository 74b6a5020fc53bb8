//! `mbs generate`: writes modules, or checks that existing ones are up to date.

mod c_library;
mod code;
mod footprint;

use crate::arguments::Generate;
use crate::output::number::count;
use crate::session::failure::Failure;
use crate::session::files;
use crate::session::model::{find_case, show_warnings};
use crate::session::progress::Ticker;
use mbs_codegen::emission::{Target, identifier};
use mbs_codegen::program::Options;
use mbs_codegen::{Generated, Request};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Writes the modules, or checks them.
pub(crate) fn generate(arguments: &Generate) -> Result<(), Failure> {
    if arguments.module.is_some() && arguments.models.len() > 1 {
        return Err(Failure::usage("`--module` names one module, but several models are given"));
    }
    let request = Request {
        options: Options {
            reference: arguments.reference.into(),
            freeze: arguments.freeze,
            bundles: arguments.bundles.iter().flat_map(|bundles| bundles.0.iter().copied()).collect(),
            pairs: arguments.pairs.into(),
            scalar: arguments.scalar.into(),
            fma: arguments.fma.into(),
            steps: arguments.steps.into(),
            simd: arguments.simd.into(),
            ..Options::default()
        },
        target: Target {
            module: arguments.module.clone(),
            lanes: arguments.lanes.map(usize::from),
            ..Target::default()
        },
        case: arguments.case.clone(),
    };

    // All are generated before any is written, so that an error leaves everything as it was.
    let mut modules = Vec::new();
    let all = arguments.models.len();
    for (i, path) in arguments.models.iter().enumerate() {
        let _ticker = Ticker::new(format!("generating {}, {} of {all}", path.display(), i + 1));
        modules.push((path, generate_one(path, &request)?));
    }
    if let Some(folder) = &arguments.c_header {
        let [(_, generated)] = modules.as_slice() else {
            return Err(Failure::usage("`--c-header` writes one library, but several models are given"));
        };
        return files::print(&c_library::write(folder, arguments.module.as_deref(), generated)?);
    }
    if arguments.report {
        let report = |(_, one): &(&PathBuf, Generated)| {
            let module = identifier(arguments.module.as_deref().unwrap_or(&one.program.name));
            let bundles: Vec<&str> = one.program.bundles.iter().map(|bundle| bundle.name).collect();
            let read = |path: &PathBuf| code::Code::read(path, &module, &bundles);
            Ok(footprint::report(&one.program, arguments.program.as_ref().map(read).transpose()?.as_ref()))
        };
        let all = modules.iter().map(report).collect::<Result<Vec<String>, Failure>>()?;
        return files::print(&all.join("\n"));
    }
    let Some(output) = &arguments.output else {
        let all: Vec<&str> = modules.iter().map(|(_, generated)| generated.code.as_str()).collect();
        return files::print(&all.join("\n"));
    };
    let targets = targets(arguments, output, &modules)?;
    if arguments.check { check(&targets) } else { write(&targets) }
}

fn generate_one(path: &Path, request: &Request) -> Result<Generated, Failure> {
    let file = files::read(path)?;
    if let Some(name) = &request.case {
        // A wrong name is the command line's fault; other errors are the file's.
        if let Ok((model, _)) = mbs_codegen::read(&file.name, &file.text) {
            find_case(&model, Some(name))?;
        }
    }
    match mbs_codegen::generate(&file.name, &file.text, request) {
        Ok(generated) => {
            show_warnings(&file, &generated.warnings);
            Ok(generated)
        }
        Err(diagnostics) => {
            files::complain(&diagnostics.render(&file.name, &file.text));
            Err(Failure::said())
        }
    }
}

/// A file and what belongs into it.
struct Module<'a> {
    path: PathBuf,
    model: &'a Path,
    generated: &'a Generated,
}

/// Which file each module belongs into.
fn targets<'a>(
    arguments: &Generate,
    output: &Path,
    modules: &'a [(&PathBuf, Generated)],
) -> Result<Vec<Module<'a>>, Failure> {
    let many = modules.len() > 1;
    let directory = many || output.is_dir() || output.to_string_lossy().ends_with(std::path::is_separator);
    if directory && output.is_file() {
        let output = output.display();
        return Err(Failure::usage(format!("`{output}` is a file; several models need a directory")));
    }
    let mut taken: HashMap<PathBuf, &Path> = HashMap::new();
    let mut targets = Vec::new();
    for (model, generated) in modules {
        let name = identifier(arguments.module.as_deref().unwrap_or(&generated.program.name));
        let path = if directory { output.join(format!("{name}.rs")) } else { output.into() };
        if let Some(other) = taken.insert(path.clone(), model.as_path()) {
            return Err(Failure::error(format!(
                "`{}` and `{}` both have the name `{name}`, and would both be written to `{}`",
                other.display(),
                model.display(),
                path.display()
            )));
        }
        targets.push(Module { path, model, generated });
    }
    // Also through links: a module over a model, or two modules in one file.
    for (i, module) in targets.iter().enumerate() {
        for model in &arguments.models {
            files::refuse_overwriting("-o", &module.path, &format!("`{}`", model.display()), model)?;
        }
        for other in &targets[..i] {
            let [a, b] = [module, other].map(|module| module.path.display().to_string());
            files::refuse_twice((&a, &module.path), (&b, &other.path))?;
        }
    }
    Ok(targets)
}

fn write(targets: &[Module<'_>]) -> Result<(), Failure> {
    let mut said = String::new();
    for module in targets {
        let path = module.path.display();
        let text = &module.generated.code;
        let fresh = files::holds(&module.path, text).unwrap_or(false);
        if !fresh {
            if let Some(parent) = module.path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
                fs::create_dir_all(parent).map_err(|error| {
                    let parent = parent.display();
                    Failure::error(format!("cannot make the directory `{parent}`: {}", files::reason(&error)))
                })?;
            }
            files::write_whole(&module.path, text)?;
        }
        let bundles = &module.generated.program.bundles;
        let operations = bundles.iter().map(|bundle| bundle.counts.total()).sum();
        said.push_str(&format!(
            "{} {path}: {}, {}, {}{}\n",
            if fresh { "kept" } else { "wrote" },
            count(bundles.len(), "bundle"),
            count(operations, "operation"),
            count(text.lines().count(), "line"),
            footprint::steps(&module.generated.program),
        ));
    }
    files::print(&said)
}

fn check(targets: &[Module<'_>]) -> Result<(), Failure> {
    let mut stale = Vec::new();
    for module in targets {
        let (path, model) = (module.path.display(), module.model.display());
        match files::holds(&module.path, &module.generated.code) {
            Ok(true) => {}
            Ok(false) => stale.push(format!("`{path}` is stale: it is not what `{model}` generates now")),
            Err(error) => stale.push(format!("`{path}` cannot be read: {}", files::reason(&error))),
        }
    }
    if stale.is_empty() {
        return files::print(&format!("{} up to date\n", count(targets.len(), "file")));
    }
    Err(Failure::usage(stale.join("\nerror: ") + "\nrun the same command without `--check` to write it"))
}
