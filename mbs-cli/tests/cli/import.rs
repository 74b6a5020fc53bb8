//! `mbs import`: the model is written, what it leaves out is said, and it runs.

use crate::command::{Folder, done, fails, mbs, text};

fn robot(name: &str) -> String {
    format!("{}/../tests/urdf/{name}.urdf", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn a_robot_becomes_a_model_that_runs() {
    let folder = Folder::new();
    let model = folder.path("robot.yaml");
    let said = done(&["import", &robot("every_joint"), "-o", &model, "--floating-base", "--no-friction"]);
    assert!(said.starts_with("wrote ") && said.contains("8 bodies of 15.55 kg moved by 8 joints"), "{said}");
    assert!(said.contains("skipped   1 collision, 2 gazebo, 1 material, 1 transmission, 1 visual"), "{said}");
    assert!(!text(&model).contains("damping"));
    let summary = done(&["check", &model]);
    assert!(summary.contains("floating_base") && summary.contains("grip_mimic"), "{summary}");
    done(&["simulate", &model, "--end", "0.01"]);

    let outcome = mbs(&["import", &robot("every_joint"), "--floating-base", "--no-friction"]);
    assert_eq!((outcome.code, outcome.out), (Some(0), text(&model)), "the same on standard output");
    assert!(outcome.err.contains("renamed   link `fore-arm` → fore_arm"), "{}", outcome.err);
}

#[test]
fn one_json_object_says_everything() {
    let folder = Folder::new();
    let model = folder.path("robot.yaml");
    let printed = done(&["import", &robot("every_joint"), "-o", &model, "--json"]);
    let report: serde_json::Value = serde_json::from_str(&printed).expect("JSON");
    assert_eq!(
        (&report["valid"], &report["joints"], &report["locked"][0]),
        (&true.into(), &7.into(), &"dangle".into())
    );
    assert_eq!(report["renamed"][0]["to"], "fore_arm");
    assert_eq!(report["skipped"]["gazebo"], 2);

    let bad = folder.file("bad.urdf", "<robot/>");
    let outcome = fails(1, &[], &["import", &bad, "-o", &model, "--json"]);
    let report: serde_json::Value = serde_json::from_str(&outcome.out).expect("JSON");
    assert_eq!((&report["valid"], &report["problems"][0]["line"]), (&false.into(), &1.into()));
    fails(2, &["--output"], &["import", &bad, "--json"]);
}

#[test]
fn a_loop_is_closed_and_stays_closed() {
    let folder = Folder::new();
    let model = folder.path("four_bar.yaml");
    let close = "C=revolute:coupler@0.5,0,0:rocker_end:0,0,1";
    assert!(done(&["import", &robot("four_bar"), "-o", &model, "--loop", close]).contains("1 joint cut"));
    let report = done(&["simulate", &model, "--end", "1"]);
    assert!(report.contains("2 equations, 1 degree of freedom"), "{report}");
}

#[test]
fn problems_are_told() {
    let folder = Folder::new();
    let bad = folder.file(
        "bad.urdf",
        "<robot name=\"r\">\n  <link name=\"a\"/>\n  <joint name=\"j\" type=\"bend\"/>\n</robot>\n",
    );
    let model = folder.path("bad.yaml");
    fails(
        1,
        &["bad.urdf:3:25: error: unknown type of joint `bend`", "3 errors"],
        &["import", &bad, "-o", &model],
    );
    assert_eq!(folder.names(), ["bad.urdf"], "nothing is written");
    fails(2, &["did you mean `revolute`?"], &["import", &bad, "--loop", "a=revolut:b:c"]);
    fails(2, &["not an angle"], &["import", &bad, "--snap", "1"]);
    fails(1, &["no such file"], &["import", &folder.path("none.urdf")]);

    // A point mass on its own axis has no inertia about it.
    let point = folder.file(
        "point.urdf",
        "<robot name=\"r\"><link name=\"a\"/><link name=\"b\"><inertial><mass value=\"1\"/>\
         <inertia ixx=\"0\" iyy=\"0\" izz=\"0\"/></inertial></link>\
         <joint name=\"j\" type=\"revolute\"><parent link=\"a\"/><child link=\"b\"/></joint></robot>",
    );
    fails(
        1,
        &["no inertia along `j.angle_rate`", "cannot be simulated as it is"],
        &["import", &point, "-o", &model],
    );
    assert!(text(&model).contains("mass: 1"));
}
