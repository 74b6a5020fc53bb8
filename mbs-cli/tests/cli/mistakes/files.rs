//! Files are safe: what is there stays until something better takes its place, nothing is written over what is read, and what a file
//! contains is never obeyed.

use super::super::command::{Folder, done, fails, mbs, shipped, text};

const EARLIER: &str = "what an earlier run wrote\n";

/// Runs the command, which must fail with this code, and leave a file of an earlier run as it was.
fn leaves(folder: &Folder, name: &str, code: i32, words: &[&str], arguments: &[&str]) {
    let file = folder.file(name, EARLIER);
    fails(code, words, &[arguments, &[&file]].concat());
    assert_eq!(text(&file), EARLIER, "{arguments:?}");
    assert_eq!(folder.names(), [name], "{arguments:?}: nothing half-written stays");
}

#[test]
fn a_run_that_cannot_start_leaves_an_earlier_file() {
    let folder = Folder::new();
    let model = shipped("five_bar");
    let unassembled = ["simulate", &model, "--set", "L_A1=5", "--out"];
    leaves(&folder, "run.csv", 1, &["cannot be assembled", "run.csv` is left as it was"], &unassembled);
    leaves(&folder, "run.csv", 2, &["the step"], &["simulate", &model, "--step", "-1", "--out"]);
    leaves(&folder, "run.csv", 2, &["multiple"], &["simulate", &model, "--output-step", "0.0033", "--out"]);
    leaves(&folder, "run.csv", 2, &["cannot set"], &["simulate", &model, "--set", "x=1", "--out"]);
    leaves(&folder, "run.csv", 2, &["the step"], &["gradient", &model, "--step", "-1", "--trajectories"]);
    let differentiated = ["gradient", &model, "--set", "L_A1=5", "--trajectories"];
    leaves(&folder, "run.csv", 1, &["cannot be assembled"], &differentiated);
    leaves(&Folder::new(), "run.html", 2, &["the step"], &["run", &model, "--step", "-1", "--report"]);
    // One that is not there is not made.
    let new = folder.path("new.csv");
    fails(1, &["new.csv` is not written"], &["simulate", &model, "--set", "L_A1=5", "--out", &new]);
    assert!(!std::path::Path::new(&new).exists());
    // One that succeeds takes its place.
    let file = folder.file("run.csv", EARLIER);
    done(&["simulate", &model, "--end", "0.01", "--out", &file]);
    assert_eq!(text(&file).lines().count(), 12);
}

#[test]
fn nothing_is_written_over_what_is_read() {
    let folder = Folder::new();
    let pendulum = text(&shipped("pendulum"));
    let model = folder.file("model.yaml", &pendulum);
    let linked = folder.path("linked.yaml");
    std::fs::hard_link(&model, &linked).expect("a hard link");
    for out in [&model, &linked] {
        fails(2, &["would overwrite"], &["generate", &model, "-o", out]);
        fails(2, &["would overwrite the model"], &["simulate", &model, "--out", out]);
        fails(2, &["would overwrite the model"], &["run", &model, "--report", out]);
        fails(2, &["would overwrite the model"], &["gradient", &model, "--trajectories", out]);
    }
    assert_eq!(text(&model), pendulum);
    let robot = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/urdf/every_joint.urdf");
    let urdf = text(robot);
    let robot = folder.file("robot.urdf", &urdf);
    let linked = folder.path("robot.yaml");
    std::fs::hard_link(&robot, &linked).expect("a hard link");
    for out in [&robot, &linked] {
        fails(2, &["would overwrite the robot"], &["import", &robot, "-o", out]);
    }
    assert_eq!(text(&robot), urdf);
    let results = folder.file("results.svg", "t,x\n0,1\n1,2\n");
    fails(2, &["would overwrite the results"], &["plot", &results, "-o", &results]);
    assert_eq!(text(&results), "t,x\n0,1\n1,2\n");
}

#[test]
fn one_file_is_not_named_twice() {
    let folder = Folder::new();
    let model = shipped("pendulum");
    let both = folder.path("both");
    fails(2, &["`--out` and `--report` both name"], &["run", &model, "--out", &both, "--report", &both]);
    let (a, b) = (folder.file("a", EARLIER), folder.path("b"));
    std::fs::hard_link(&a, &b).expect("a hard link");
    fails(2, &["both name"], &["run", &model, "--out", &a, "--report", &b]);
    assert_eq!(text(&a), EARLIER);
    // Two models, whose modules would go to one file.
    let modules = folder.path("modules");
    std::fs::create_dir(&modules).expect("a folder");
    let pendulum = folder.file("modules/pendulum.rs", EARLIER);
    std::fs::hard_link(&pendulum, folder.path("modules/cart_pole.rs")).expect("a hard link");
    fails(2, &["both name"], &["generate", &model, &shipped("cart_pole"), "-o", &modules]);
    assert_eq!(text(&pendulum), EARLIER);
}

/// A pendulum with an output whose unit is any text, in quotes of YAML.
fn with_unit(unit: &str) -> String {
    let height = "height: {value: pos(rod.tip).z, unit: m}";
    let model = text(&shipped("pendulum"));
    assert!(model.contains(height), "the pendulum has an output");
    model.replace(height, &format!("height: {{value: pos(rod.tip).z, unit: \"{unit}\"}}"))
}

#[test]
fn heads_and_cells_follow_the_standard() {
    let folder = Folder::new();
    let model = folder.file("model.yaml", with_unit("a,\\\"b"));
    let file = folder.path("run.csv");
    done(&["simulate", &model, "--end", "0.01", "--out", &file, "--units"]);
    let rows = text(&file);
    let head = rows.lines().next().expect("a head");
    assert!(head.contains(r#","height [a,""b]","#), "{head}");
    // What is written is read.
    let drawn = done(&["plot", &file, "--columns", "height"]);
    assert!(drawn.contains("height [a,\"b]"), "{drawn}");
    let quoted = folder.file("quoted.csv", "t,\"x, y\"\n0,\"1\"\n1,\"2\"\n");
    assert!(done(&["plot", &quoted]).contains("x, y"));
}

#[test]
fn sequences_in_data_are_not_obeyed() {
    let folder = Folder::new();
    let model = folder.file("model.yaml", with_unit("\\x1b[2J"));
    let shown = [done(&["simulate", &model, "--end", "0.01"]), done(&["check", &model])];
    for text in shown {
        assert!(!text.contains('\x1b') && text.contains(r"\u{1b}[2J"), "{text}");
    }
    let results = folder.file("results.csv", "t,\x1b[2J\u{9b}x\n0,1\n1,2\n");
    let drawn = done(&["plot", &results]);
    assert!(!drawn.contains(['\x1b', '\u{9b}']) && drawn.contains(r"\u{1b}[2J\u{9b}x"), "{drawn}");
    // Lines of a file that a problem is shown in.
    let wrong = folder.file("wrong.yaml", "mbs: 1\nname: x\njoint: \x1b[31m\n");
    let outcome = mbs(&["check", &wrong]);
    assert!(outcome.code == Some(1) && !outcome.err.contains('\x1b'), "{outcome:?}");
}

#[test]
fn a_name_of_any_length_is_drawn() {
    let folder = Folder::new();
    let results = folder.file("results.csv", format!("t,{}\n0,1\n1,2\n", "x".repeat(70_000)));
    let drawn = done(&["plot", &results]);
    assert!(drawn.lines().all(|line| line.chars().count() < 200), "{drawn}");
    done(&["plot", &results, "-o", &folder.path("picture.svg")]);
    done(&["plot", &results, "-o", &folder.path("picture.png")]);
}

#[test]
fn a_new_crate_names_any_folder() {
    let folder = Folder::new();
    let odd = folder.path("a \"b\" c");
    std::fs::create_dir_all(format!("{odd}/mbs-runtime")).expect("a folder");
    std::fs::write(format!("{odd}/mbs-runtime/Cargo.toml"), "").expect("a file");
    let new = folder.path("newcrate");
    done(&["new", &new, "--crates", &odd]);
    let manifest = text(&format!("{new}/Cargo.toml"));
    assert!(manifest.contains(r#"a \"b\" c/mbs-runtime", features"#), "{manifest}");
}
