//! Random mechanisms run: constraints hold on three levels, results converge with second order.

use super::violation;
use crate::mechanisms;
use mbs_codegen::program::BundleKind;
use mbs_engine::Interpreted;
use mbs_runtime::formulation::{Ali3p, State};
use mbs_runtime::{StepError, System};
use mbs_tests::closed;
use mbs_tests::random_closed::{Shape, random_closed};

/// What 0.2 s by ALI3-P come to.
fn run(model: &Interpreted, start: &[f64], h: f64) -> Result<Vec<f64>, String> {
    let d = model.dims();
    let mut state = start.to_vec();
    let mut scratch = vec![0.0; Ali3p::scratch_len(&d)];
    let mut worst = violation(model, &mut state);
    for step in 1..=(0.2 / h).round() as usize {
        Ali3p::DEFAULT
            .step(model, &mut model.input_signals(), &mut state, h, &mut scratch)
            .map_err(|error| closed::said(model, error))?;
        if step % 20 == 0 {
            worst = worst.max(violation(model, &mut state));
        }
    }
    if worst > 1e-9 {
        return Err(format!("constraints at {worst:e}"));
    }
    let view = State::of(&d, &mut state).expect("length");
    Ok([&*view.z, view.zd].concat())
}

#[test]
fn random_mechanisms_run_with_second_order() {
    let (mut ran, mut rows) = (0, 0);
    for seed in 0..mechanisms(20) {
        let shape = Shape {
            bodies: 2 + (seed % 3) as usize,
            closures: 1,
            constraints: (seed / 2 % 3) as usize,
            nonholonomic: false,
            runs: true,
        };
        let text = random_closed(5000 + seed, shape);
        let model = closed::with_bundles(&text, &BundleKind::COORDINATE_FORM);
        // Nothing is to be seen of a mechanism that cannot move, whether or not it is driven against its constraints.
        let (start, statistics) = match closed::start(&model, 0.0) {
            Err(StepError::Inconsistent { .. }) => continue,
            started => {
                started.unwrap_or_else(|error| panic!("seed {seed}: {}\n{text}", closed::said(&model, error)))
            }
        };
        if statistics.rank == model.dims().nq {
            continue;
        }
        let h = 1e-3;
        let [a, b, c] = [h, h / 2.0, h / 4.0].map(|h| {
            run(&model, &start, h).unwrap_or_else(|error| panic!("seed {seed}, h = {h}: {error}\n{text}"))
        });
        let change = [closed::distance(&a, &b), closed::distance(&b, &c)];
        let ratio = change[0] / change[1];
        println!(
            "seed {seed}: {} of {} rows, {change:?}, ratio {ratio:.3}",
            statistics.rank, statistics.rows
        );
        assert!((ratio - 4.0).abs() < 1.0, "seed {seed}: {change:?}\n{text}");
        (ran, rows) = (ran + 1, rows + statistics.rank);
        if ran == mechanisms(10) {
            break;
        }
    }
    assert!(ran >= 10 && rows > 20, "{ran} ran, with {rows} rows");
}
