//! From a YAML mechanism to flat Rust.
//!
//! The modules stand in the order in which data flows through them; each imports only what stands before
//! it: `yaml` reads a `model`, whose tree `topology` finds; `lowering`, `kinematics`, `elements` and
//! `dynamics` write its equations into one `graph`; `bundle` orders them; `program` collects them under
//! their names; `emission` prints them. The interpreter in [`graph`] and the one in [`bundle`] run the same
//! equations without printing, and are every test's oracle.
//!
//! ```
//! let model = "
//! mbs: 1
//! name: pendulum
//! gravity: [0, -9.81, 0]
//! parameters: {m: 1.0, L: 1.0}
//! bodies:
//!   rod: {mass: m, com: [0, -L/2, 0], inertia: [0, 0, m*L^2/12]}
//! joints:
//!   hinge: {type: revolute, parent: ground, child: rod, axis: [0, 0, 1], start: 0.3}
//! ";
//! let generated = mbs_codegen::generate("pendulum.yaml", model, &Default::default()).expect("a valid model");
//! assert!(generated.code.contains("pub mod pendulum"));
//! ```

pub mod diagnostics;
pub mod model;
pub mod topology;
pub mod absolute;
pub mod yaml;
pub mod symbols;
pub mod graph;
pub mod sparse;
pub mod lowering;
pub mod kinematics;
pub mod elements;
pub mod dynamics;
pub mod derivatives;
pub mod constrained;
pub mod analysis;
pub mod conditions;
pub mod check;
pub mod bundle;
pub mod watch;
pub mod corners;
pub mod program;
pub mod emission;
pub mod build;

use absolute::in_absolute_coordinates;
use analysis::Analysed;
use diagnostics::Diagnostics;
use emission::{Source, Target};
use model::{Case, Coordinates, Model};
use program::{Options, Program, ProgramError};

/// What to generate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// How the model becomes a program.
    pub options: Options,
    /// How the program becomes a module.
    pub target: Target,
    /// Which case's parameters, start values and inputs become the defaults.
    pub case: Option<String>,
}

/// A generated module.
#[derive(Clone, Debug)]
pub struct Generated {
    /// The module's text.
    pub code: String,
    /// What it was printed from.
    pub program: Program,
    /// What the reader noticed.
    pub warnings: Diagnostics,
}

/// Reads a model and checks everything that can be checked without running it.
pub fn read(file: &str, text: &str) -> Result<(Model, Diagnostics), Diagnostics> {
    analyse(file, text).map(|(analysed, diagnostics)| (analysed.model, diagnostics))
}

/// The same, with what the checks have found of the model.
pub fn analyse(file: &str, text: &str) -> Result<(Analysed, Diagnostics), Diagnostics> {
    analyse_in(file, text, None)
}

/// The same in these coordinates, whichever the file wants.
pub fn analyse_in(
    file: &str,
    text: &str,
    coordinates: Option<Coordinates>,
) -> Result<(Analysed, Diagnostics), Diagnostics> {
    let (model, mut diagnostics) = yaml::read(file, text);
    let model = model.map(|mut model| {
        model.coordinates = coordinates.unwrap_or(model.coordinates);
        // A model with problems has those of its own coordinates.
        let absolute = model.coordinates == Coordinates::Absolute && !diagnostics.has_errors();
        Analysed::of(if absolute { in_absolute_coordinates(&model) } else { model })
    });
    if let Some(model) = &model {
        check::equations(model, &mut diagnostics);
    }
    match model {
        Some(model) if !diagnostics.has_errors() => Ok((model, diagnostics)),
        _ => Err(diagnostics),
    }
}

/// From the text of a model file to the text of a Rust module. `file` is for the header and for messages.
pub fn generate(file: &str, text: &str, request: &Request) -> Result<Generated, Diagnostics> {
    let (model, warnings) = analyse(file, text)?;
    let case = find_case(&model, request.case.as_deref())?;
    let program = match case {
        Some(_) => Program::of(&model, case, &request.options),
        None => Program::with_cases(&model, &request.options),
    };
    let refused = |error: ProgramError| {
        let mut diagnostics = Diagnostics::new();
        diagnostics.error(Default::default(), error.to_string());
        diagnostics
    };
    let mut program = program.map_err(refused)?;
    refuse_absent(&program)?;
    program.refuse_in_single_precision()?;
    program.pack().map_err(refused)?;
    let base = file.rsplit(['/', '\\']).next().unwrap_or(file);
    let code = emission::emit(&program, &Source { file: base, text }, &request.target);
    Ok(Generated { code, program, warnings })
}

/// Bundles that were asked for by name are there, or are refused by name.
fn refuse_absent(program: &Program) -> Result<(), Diagnostics> {
    let mut diagnostics = Diagnostics::new();
    let rows: Vec<&String> = program.holonomic.iter().chain(&program.nonholonomic).collect();
    let why = match rows.as_slice() {
        [] => "it has variables".to_string(),
        [row] => format!("its motion is constrained by `{row}`"),
        [row, others @ ..] => format!("its motion is constrained by `{row}` and {} more", others.len()),
    };
    for kind in program.absent() {
        let (name, model) = (kind.name(), &program.name);
        diagnostics
            .error(Default::default(), format!("bundle `{name}` does not exist for model `{model}`: {why}"))
            .help(
                "it solves with the mass matrix of an open tree; under constraints `constrained_dynamics` gives accelerations \
                 and `joint_linearise` their derivatives. `all` means the bundles that exist",
            );
    }
    if diagnostics.has_errors() { Err(diagnostics) } else { Ok(()) }
}

/// The case with this name.
pub fn find_case<'a>(model: &'a Model, name: Option<&str>) -> Result<Option<&'a Case>, Diagnostics> {
    let Some(name) = name else {
        return Ok(None);
    };
    if let Some(case) = model.cases.iter().find(|case| case.name == name) {
        return Ok(Some(case));
    }
    let mut diagnostics = Diagnostics::new();
    let names: Vec<&str> = model.cases.iter().map(|c| c.name.as_str()).collect();
    let problem =
        diagnostics.error(Default::default(), format!("model `{}` has no case `{name}`", model.name));
    match diagnostics::nearest(name, names.iter().copied()) {
        Some(near) => problem.help(format!("did you mean `{near}`?")),
        None if names.is_empty() => problem.help("the file has no `cases`"),
        None => problem.help(format!("its cases are: {}", names.join(", "))),
    };
    Err(diagnostics)
}
