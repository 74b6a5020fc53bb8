//! Bundles over several samples: every lane has the bits of the scalar function.

use mbs_runtime::system::At;
use mbs_runtime::{
    AccelerationDerivatives, ForwardDynamics, ForwardDynamicsDerivatives, ForwardDynamicsRecursive,
    InverseDynamics, InverseDynamicsDerivatives, MassMatrix, Outputs,
};
use sampled::batch::{self, L, WIDTH};
use sampled::{NQ, NU, NV};

mbs_macros::model_solver! {
    mod sampled = "models/batch.yaml" {
        bundles: [inverse_dynamics, mass_matrix, forward_dynamics, forward_dynamics_recursive, outputs],
        lanes: 4,
    }
}

mbs_macros::model_solver! {
    mod rolled = "models/batch.yaml" {
        bundles: [mass_matrix, inverse_dynamics_derivatives, forward_dynamics_derivatives],
        lanes: 4,
        pairs: rolled,
    }
}

/// Samples whose positions are on both sides of every branch and in several intervals of the spline.
fn samples<const N: usize>(scale: f64, shift: f64) -> [L; N] {
    let wave = |i: usize, k: usize| scale * (7.3 * i as f64 + 2.1 * k as f64 + shift).sin();
    core::array::from_fn(|i| batch::L { 0: core::array::from_fn(|k| wave(i, k)) })
}

fn lane<const N: usize>(all: &[L; N], k: usize) -> [f64; N] {
    core::array::from_fn(|i| all[i].0[k])
}

#[test]
fn every_lane_has_the_scalar_bits() {
    let model = sampled::Model::default();
    let t: L = mbs_runtime::batch::Lanes([0.05, 0.3, 1.0, 2.0]);
    let (z, v): ([L; NQ], [L; NV]) = (samples(0.9, 0.4), samples(2.0, 1.3));
    let (vd, u): ([L; NV], [L; NU]) = (samples(5.0, 2.2), samples(1.0, 0.7));
    let nan = L::of(f64::NAN);
    // Workspaces of any content.
    let (mut tau, mut m, mut reach) = ([nan; NV], [nan; NV * NV], [nan; 1]);
    let mut zd = [[nan; NQ]; 2];
    let mut accelerations = [[nan; NV]; 2];
    let mut pivots = [[nan; NV]; 2];
    batch::inverse_dynamics(&model, t, &z, &v, &vd, &u, &mut [nan; _], &mut tau);
    batch::mass_matrix(&model, &z, &mut [nan; _], &mut m);
    batch::outputs(&model, t, &z, &v, &vd, &u, &mut [nan; _], &mut reach);
    let good = [
        batch::forward_dynamics(
            &model,
            t,
            &z,
            &v,
            &u,
            &mut [nan; _],
            &mut zd[0],
            &mut accelerations[0],
            &mut pivots[0],
        ),
        batch::forward_dynamics_recursive(
            &model,
            t,
            &z,
            &v,
            &u,
            &mut [nan; _],
            &mut zd[1],
            &mut accelerations[1],
            &mut pivots[1],
        ),
    ];
    assert_eq!(good, [[true; WIDTH]; 2]);
    for k in 0..WIDTH {
        let (z, v, u) = (lane(&z, k), lane(&v, k), lane(&u, k));
        let vd = lane(&vd, k);
        let at = At { t: t.0[k], z: &z, v: &v, x: &[], u: &u };
        let mut w = [0.0; sampled::WORKSPACE];
        let mut expected = [0.0; NV];
        model.inverse_dynamics(at, &vd, &mut w, &mut expected).expect("torques");
        assert_eq!(lane(&tau, k), expected, "inverse dynamics, sample {k}");
        let mut expected = [0.0; NV * NV];
        model.mass_matrix(at, &mut w, &mut expected).expect("a mass matrix");
        assert_eq!(lane(&m, k), expected, "mass matrix, sample {k}");
        let mut expected = [0.0; 1];
        model.outputs(at, &vd, &mut w, &mut expected).expect("outputs");
        assert_eq!(lane(&reach, k), expected, "outputs, sample {k}");
        let (mut rates, mut expected) = ([0.0; NQ], [0.0; NV]);
        model.forward_dynamics(at, &mut w, &mut rates, &mut expected, &mut []).expect("accelerations");
        assert_eq!((lane(&zd[0], k), lane(&accelerations[0], k)), (rates, expected), "sample {k}");
        model
            .forward_dynamics_recursive(at, &mut w, &mut rates, &mut expected, &mut [])
            .expect("accelerations");
        assert_eq!((lane(&zd[1], k), lane(&accelerations[1], k)), (rates, expected), "sample {k}");
    }
}

/// Loops too.
#[test]
fn loops_have_the_scalar_bits_in_every_lane() {
    const SQUARE: usize = NV * NV;
    let model = rolled::Model::default();
    let t: L = mbs_runtime::batch::Lanes([0.05, 0.3, 1.0, 2.0]);
    let (z, v): ([L; NQ], [L; NV]) = (samples(0.9, 0.4), samples(2.0, 1.3));
    let (vd, tau): ([L; NV], [L; NV]) = (samples(5.0, 2.2), samples(3.0, 0.1));
    let u: [L; NU] = samples(1.0, 0.7);
    let nan = L::of(f64::NAN);
    let mut m = [nan; SQUARE];
    let mut inverse = [[nan; SQUARE]; 3];
    let (mut accelerations, mut forward, mut pivots) = ([nan; NV], [[nan; SQUARE]; 3], [nan; NV]);
    rolled::batch::mass_matrix(&model, &z, &mut [nan; _], &mut m);
    let [tau_z, tau_v, mass] = &mut inverse;
    rolled::batch::inverse_dynamics_derivatives(
        &model,
        t,
        &z,
        &v,
        &vd,
        &u,
        &mut [nan; _],
        tau_z,
        tau_v,
        mass,
    );
    let [vd_z, vd_v, vd_tau] = &mut forward;
    let good = rolled::batch::forward_dynamics_derivatives(
        &model,
        t,
        &z,
        &v,
        &u,
        &tau,
        &mut [nan; _],
        &mut accelerations,
        vd_z,
        vd_v,
        vd_tau,
        &mut [],
        &mut pivots,
    );
    assert_eq!(good, [true; WIDTH]);
    for k in 0..WIDTH {
        let (z, v, u, vd, tau) = (lane(&z, k), lane(&v, k), lane(&u, k), lane(&vd, k), lane(&tau, k));
        let at = At { t: t.0[k], z: &z, v: &v, x: &[], u: &u };
        let mut w = [0.0; rolled::WORKSPACE];
        let mut all = [[0.0; SQUARE]; 3];
        model.mass_matrix(at, &mut w, &mut all[0]).expect("a mass matrix");
        assert_eq!(lane(&m, k), all[0], "mass matrix, sample {k}");
        let [a, b, c] = &mut all;
        model.inverse_dynamics_derivatives(at, &vd, &mut w, a, b, c).expect("lengths");
        assert_eq!(inverse.each_ref().map(|lanes| lane(lanes, k)), all, "inverse dynamics, sample {k}");
        let mut expected = [0.0; NV];
        let [vd_z, vd_v, vd_tau] = &mut all;
        let to = AccelerationDerivatives { vd: &mut expected, vd_z, vd_v, vd_tau, vd_rho: &mut [] };
        model.forward_dynamics_derivatives(at, &tau, &mut w, to).expect("lengths");
        assert_eq!(forward.each_ref().map(|lanes| lane(lanes, k)), all, "forward dynamics, sample {k}");
        assert_eq!(lane(&accelerations, k), expected, "accelerations, sample {k}");
    }
}

/// A sample without a solution is told, and leaves the others alone.
#[test]
fn a_bad_sample_is_told() {
    let model = sampled::Model::default();
    let (mut z, v): ([L; NQ], [L; NV]) = (samples(0.9, 0.4), samples(2.0, 1.3));
    let u: [L; NU] = samples(1.0, 0.7);
    z[1].0[2] = f64::NAN;
    let nan = L::of(f64::NAN);
    let (mut zd, mut vd, mut pivots) = ([nan; NQ], [nan; NV], [nan; NV]);
    let t = L::of(0.3);
    let good = batch::forward_dynamics(&model, t, &z, &v, &u, &mut [nan; _], &mut zd, &mut vd, &mut pivots);
    assert_eq!(good, [true, true, false, true]);
    assert!(vd.iter().all(|a| a.0[0].is_finite() && a.0[1].is_finite() && a.0[3].is_finite()));
}
