//! Impacts of random mechanisms.

use crate::mechanisms;
use mbs_codegen::analysis::Analysed;
use mbs_codegen::model::{Integrator, Model};
use mbs_engine::simulation::{self, Instance, Overrides, Silent};
use mbs_tests::random_model::{self, random_model};

fn read(text: &str) -> Model {
    let read = mbs_codegen::read("model.yaml", text);
    read.unwrap_or_else(|problems| panic!("{}\n{text}", problems.render("model.yaml", text))).0
}

/// A frictionless impact with e ≤ 1 creates no energy where constraints stand still, and loses (1 − e²) of what moves along the gap.
#[test]
fn impacts_of_random_mechanisms_create_no_energy() {
    let mut lost = 0;
    for seed in 0..mechanisms(24) {
        let mut text = random_model(
            300 + seed,
            random_model::Shape { bodies: 1 + (seed % 4) as usize, dissipative: seed % 2 == 0 },
        );
        let e = [0.0, 0.3, 0.8, 1.0][seed as usize / 4 % 4];
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&format!(
            "events:
  first: {{when: t - 0.0113, direction: rising, then: {{impact: {{gap: pos(b0.tip).x, restitution: {e}}}}}}}
  second: {{when: t - 0.0271, direction: rising, then: {{impact: {{gap: \"norm(pos(b0.tip) - [0.3, 0.2, -0.7])\", restitution: {e}}}}}}}
",
        ));
        let overrides = Overrides {
            integrator: Some(Integrator::Rk4),
            end: Some(0.04),
            step: Some(2e-3),
            ..Overrides::default()
        };
        let analysed = Analysed::of(read(&text));
        let Ok(Instance { model, settings }) = Instance::of_dynamics(&analysed, None, &[], &overrides) else {
            continue;
        };
        let record = simulation::run(&model, &settings, &mut Silent);
        if record.failure.is_some() {
            continue;
        }
        assert_eq!(record.seen.events.len(), 2, "seed {seed}\n{text}");
        let balance = &record.seen.balance;
        assert!(balance.at_events < 1e-11, "seed {seed}, e = {e}: {}\n{text}", balance.at_events);
        if e == 1.0 {
            assert!(balance.at_events > -1e-9, "seed {seed}: {}", balance.at_events);
        } else {
            lost += usize::from(balance.at_events < -1e-9);
        }
    }
    assert!(lost >= 6, "{lost} impacts lost energy");
}
