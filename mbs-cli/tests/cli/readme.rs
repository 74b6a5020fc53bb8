//! What the README says of the command is true: its model runs, commands and options it names are there. Its blocks are tests of
//! `guide.rs`.

use crate::command::{Folder, command};

const README: &str = include_str!("../../../README.md");

/// Runs the command in a folder with the shipped models.
fn run(arguments: &[&str]) -> String {
    let folder = Folder::with_models();
    let output = command(arguments).current_dir(folder.path("")).output().expect("the command runs");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn the_model_that_is_shown_runs() {
    let folder = Folder::new();
    let shown = README.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a model");
    let model = folder.file("five_bar.yaml", shown);
    let printed = run(&["simulate", &model, "--end", "1"]);
    assert!(printed.contains("start    2 guesses moved; 2 equations, 2 degrees of freedom"), "{printed}");
}

#[test]
fn commands_in_the_text_are_right() {
    let folder = Folder::new();
    let model = crate::command::shipped("crank_rocker");
    run(&["kinematics", &model, "--out", &folder.path("result.csv")]);
    let mut seen = Vec::new();
    // Code between single quotes of the text outside of blocks.
    for text in README.split("```").step_by(2) {
        for code in text.split('`').skip(1).step_by(2).filter(|code| code.starts_with("mbs ")) {
            let words: Vec<String> = code
                .split(' ')
                .skip(1)
                .map(|word| match word {
                    "MODEL" => model.clone(),
                    "ROBOT" => format!("{}/../tests/urdf/every_joint.urdf", env!("CARGO_MANIFEST_DIR")),
                    "RESULT.csv" => folder.path("result.csv"),
                    "NAME" => folder.path("name"),
                    "SHELL" => "bash".into(),
                    word if word == "FILE" || word.ends_with(".rs") => folder.path("module.rs"),
                    word => word.into(),
                })
                .collect();
            // A command that is only named has no arguments.
            if words.len() > 1 {
                run(&words.iter().map(String::as_str).collect::<Vec<_>>());
                seen.push(words[0].clone());
            }
        }
    }
    for name in [
        "run",
        "check",
        "generate",
        "simulate",
        "kinematics",
        "gradient",
        "verify",
        "compare",
        "equilibrium",
        "modes",
        "import",
        "plot",
        "new",
    ] {
        assert!(seen.iter().any(|seen| seen == name), "{name} is not among {seen:?}");
    }
    // Options, named one by one.
    let help: String =
        ["simulate", "kinematics", "gradient", "modes"].map(|command| run(&[command, "--help"])).concat();
    for code in README.split('`').filter(|code| code.starts_with("--") && *code != "--check") {
        let option = code.split(' ').next().expect("a word");
        assert!(help.contains(option), "`{code}` is no option of simulate, kinematics, gradient or modes");
    }
}
