//! Steps of mechanisms with closed loops: the five-bar linkage, alone and beside other tools, and the N four-bar mechanism
//! for N from 1 to 40, all at h = 1 ms.

use mbs_benches::{
    Timing, WINDOWS, five_bar, five_bar_frozen, four_bar_1, four_bar_2, four_bar_5, four_bar_10, four_bar_20,
    four_bar_40, per_call,
};
use mbs_runtime::formulation::{Ali3p, Assembly, Index1, OnConstraints, State, Tangent};
use mbs_runtime::inputs::NoInputs;
use mbs_runtime::integrator::FixedStep;
use mbs_runtime::{
    At, Constrained, ConstrainedDynamics, ConstraintCorrection, Dims, Motion, Rk4, Stabilisation, Start,
    Weights,
};
use std::hint::black_box;

/// Of the five-bar linkage: its whole run.
const STEPS: usize = 5000;
/// Of the four-bar mechanisms: a second and a half from upright, before their bars lie flat.
const FEW: usize = 500;
const H: f64 = 1e-3;

fn started<M: Constrained<S = f64> + Start>(model: &M) -> Vec<f64> {
    let dims = model.dims();
    let mut state = vec![0.0; State::<f64>::len(&dims)];
    let mut scratch = vec![0.0; Assembly::scratch_len(&dims)];
    Assembly::DEFAULT.begin(model, &mut NoInputs, 0.0, &mut state, &mut scratch).expect("assembles");
    state
}

fn ali3p<M: Constrained<S = f64> + Start>(model: &M, settings: &Ali3p, steps: usize) -> Timing {
    let dims = model.dims();
    let start = started(model);
    let mut scratch = vec![0.0; Ali3p::scratch_len(&dims)];
    per_call(steps, || {
        let mut state = start.clone();
        for _ in 0..steps {
            settings.step(model, &mut NoInputs, &mut state, H, &mut scratch).expect("converges");
        }
        black_box(&state);
    })
}

fn rk4<M, T>(model: &M, system: &T) -> Timing
where
    M: Constrained<S = f64> + Start,
    T: mbs_runtime::ForwardDynamics<S = f64>,
{
    let dims = model.dims();
    let mut state = started(model);
    let view = State::of(&dims, &mut state).expect("length");
    let start = [&*view.z, &*view.zd].concat();
    let mut scratch = vec![0.0; Rk4::scratch_len(&system.dims())];
    per_call(STEPS, || {
        let (mut t, mut y) = (0.0, start.clone());
        for _ in 0..STEPS {
            Rk4.step(system, &mut NoInputs, &mut t, &mut y, H, &mut scratch).expect("regular");
        }
        black_box(&y);
    })
}

fn show(what: &str, timing: Timing) {
    println!("  {what:<44} {:>8.0} ns {:>8.0} ns", timing.best, timing.median);
}

fn bundles<M>(model: &M)
where
    M: Constrained<S = f64> + Start + ConstrainedDynamics + ConstraintCorrection,
{
    let dims: Dims = model.dims();
    let mut state = started(model);
    let view = State::of(&dims, &mut state).expect("length");
    let at = Motion { t: 0.0, z: view.z, zd: view.zd, zdd: view.zdd, u: &[] };
    let weights = Weights { velocity: H / 2.0, position: H * H / 4.0, ratio: H / 2.0 };
    let n = dims.nq + dims.rows();
    let (mut w, mut r, mut phi) = (vec![0.0; dims.workspace], vec![0.0; dims.nq], vec![0.0; dims.rows()]);
    let (mut matrix, mut factors, mut x) =
        (vec![1e-6; dims.n_matrix], vec![0.0; dims.n_factors], vec![1.0; n]);
    const CALLS: usize = 1000;
    let mut time = |what: &str, call: &mut dyn FnMut(&mut [f64])| {
        show(what, per_call(CALLS, || (0..CALLS).for_each(|_| call(&mut w))));
    };
    time("newton", &mut |w| {
        model.newton(black_box(at), view.lambda, weights, w, &mut r, &mut phi, &mut matrix).expect("lengths");
    });
    time("residual", &mut |w| {
        model.residual(black_box(at), view.lambda, w, &mut r, &mut phi).expect("lengths");
    });
    time("projection", &mut |w| {
        model.projection(0.0, black_box(at.z), &[], w, &mut matrix).expect("lengths");
    });
    time("constraint_rates", &mut |w| model.constraint_rates(black_box(at), w, &mut phi).expect("lengths"));
    time("constraint_accelerations", &mut |w| {
        model.constraint_accelerations(black_box(at), w, &mut phi).expect("lengths");
    });
    time("factor", &mut |w| model.factor(black_box(&matrix), w, &mut factors).expect("regular"));
    time("solve", &mut |w| {
        x.fill(1.0);
        model.solve(black_box(&factors), w, &mut x).expect("lengths");
    });
    let (mut zd, mut vd, mut lambda) = (vec![0.0; dims.nq], vec![0.0; dims.nv], vec![0.0; dims.joint_rows()]);
    let instant = At { t: 0.0, z: view.z, v: view.zd, x: &[], u: &[] };
    let exact = Stabilisation { rate: 0.0, value: 0.0, compliance: 0.0 };
    time("constrained_dynamics", &mut |w| {
        model
            .constrained_dynamics(black_box(instant), exact, w, &mut zd, &mut vd, &mut [], &mut lambda)
            .expect("regular");
    });
    let (mut values, mut rates) = (vec![0.0; dims.n_holonomic], vec![0.0; dims.joint_rows()]);
    time("constraint_correction", &mut |w| {
        model
            .constraint_correction(black_box(instant), w, &mut zd, &mut vd, &mut values, &mut rates)
            .expect("lengths");
    });
}

/// Time against N: t ~ N^exponent between neighbours.
fn scaling() {
    let step = &Ali3p::DEFAULT;
    let times = [
        ali3p(&four_bar_1::Model::default(), step, FEW),
        ali3p(&four_bar_2::Model::default(), step, FEW),
        ali3p(&four_bar_5::Model::default(), step, FEW),
        ali3p(&four_bar_10::Model::default(), step, FEW),
        ali3p(&four_bar_20::Model::default(), step, FEW),
        ali3p(&four_bar_40::Model::default(), step, FEW),
    ];
    println!("four_bar_n, ALI3-P, per step");
    for (i, (windows, timing)) in WINDOWS.iter().zip(times).enumerate() {
        show(&format!("N = {windows}"), timing);
        if i > 0 {
            let ratio =
                (timing.best / times[i - 1].best).ln() / (*windows as f64 / WINDOWS[i - 1] as f64).ln();
            println!("  {:>44} exponent {ratio:.2}", "");
        }
    }
}

/// Other tools on the same five-bar linkage, if `benches/peers/install.sh` was run: microseconds a step, and our factor.
fn peers(ours: [(&str, Timing); 2]) {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let python = format!("{root}/target/peers/bin/python");
    if !std::path::Path::new(&python).exists() {
        println!("other tools: not installed; benches/peers/install.sh does it");
        return;
    }
    println!("other tools on five_bar, h = 1 ms, per step");
    for tool in ["exudyn", "mujoco", "pinocchio", "casadi"] {
        let script = format!("{root}/benches/peers/five_bar_{tool}.py");
        if !std::path::Path::new(&script).exists() {
            continue;
        }
        let output = std::process::Command::new(&python).arg(&script).output();
        let line = output.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default();
        let time = line
            .split("\"us_per_step_processor\":")
            .nth(1)
            .and_then(|rest| rest.trim_start().split([',', '}']).next()?.trim().parse::<f64>().ok());
        match time {
            Some(us) => {
                let factors =
                    ours.map(|(what, t)| format!("{what} is {:.1} times faster", 1e3 * us / t.best));
                println!("  {tool:<44} {us:>8.2} µs   {}", factors.join(", "));
            }
            None => println!("  {tool:<44} did not run"),
        }
    }
}

fn main() {
    let model = five_bar::Model::default();
    let frozen = five_bar_frozen::Model::default();
    let exact = Ali3p { tangent: Tangent::Exact, ..Ali3p::DEFAULT };
    println!("five_bar, h = 1 ms, per step                        best   median");
    let implicit = ali3p(&model, &Ali3p::DEFAULT, STEPS);
    show("ALI3-P, to 1e-10, one tangent a step", implicit);
    show("ALI3-P, to 1e-10, exact tangents", ali3p(&model, &exact, STEPS));
    show("ALI3-P, frozen parameters", ali3p(&frozen, &Ali3p::DEFAULT, STEPS));
    let explicit = rk4(&model, &Index1::new(&model));
    show("RK4 on index 1", explicit);
    show("RK4 on index 1, projected", rk4(&model, &OnConstraints(Index1::new(&model))));
    show("RK4 on index 1, frozen parameters", rk4(&frozen, &Index1::new(&frozen)));
    println!("five_bar, per call");
    bundles(&model);
    scaling();
    peers([("ALI3-P", implicit), ("RK4", explicit)]);
}
