//! `mbs gradient` and `mbs verify`: numbers, names, and every shipped model.

mod command;

use command::{done, fails, shipped};
use serde_json::Value;

#[test]
fn the_json_report_has_objectives_and_gradients() {
    let text = done(&["gradient", &shipped("five_bar"), "--json"]);
    let report: Value = serde_json::from_str(&text).expect("JSON");
    // López Varela, Dopico, Luaces 2023, Table 7; at 1 ms four of its digits.
    for (objective, parameter, published) in
        [("psi1", "L_s1", -4.2288), ("psi2", "L_A1", -27.359), ("psi3", "m_A1", -32.497)]
    {
        let of = &report["objectives"][objective];
        let found = of["gradient"][parameter].as_f64().unwrap_or(f64::NAN);
        assert!((found / published - 1.0).abs() < 1e-4, "{objective} by {parameter}: {found}");
        assert!(of["value"].is_f64());
    }
}

#[test]
fn a_list_on_the_command_line_takes_the_place_of_the_models() {
    let out = done(&["gradient", &shipped("five_bar"), "--end", "0.1", "--sensitivity", "k_1,k_2"]);
    assert!(out.contains("k_1") && out.contains("k_2") && !out.contains("L_s1"), "{out}");
    fails(2, &["`k_3`", "did you mean `k_1`?"], &["gradient", &shipped("five_bar"), "--sensitivity", "k_3"]);
}

#[test]
fn every_shipped_model_is_verified() {
    let folder = std::fs::read_dir(format!("{}/../models", env!("CARGO_MANIFEST_DIR"))).expect("models");
    let mut verified = 0;
    for file in folder {
        let path = file.expect("a readable folder").path();
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        // A free body needs a while before its motion is more than rounding.
        let end = if name == "torque_free_top" { "1" } else { "0.02" };
        let out = done(&["verify", &shipped(&name), "--end", end]);
        assert!(out.lines().last().is_some_and(|line| line.starts_with("PASS")), "{name}\n{out}");
        verified += 1;
    }
    assert!(verified >= 17, "{verified}");
}
