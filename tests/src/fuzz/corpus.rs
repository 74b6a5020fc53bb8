//! Good files to damage: the shipped models and random mechanisms.

use crate::random_model::{Random, Shape, random_model};

const SHIPPED: [&str; 8] = [
    include_str!("../../../models/pendulum.yaml"),
    include_str!("../../../models/double_pendulum.yaml"),
    include_str!("../../../models/cart_pole.yaml"),
    include_str!("../../../models/spinning_top.yaml"),
    include_str!("../../../models/torque_free_top.yaml"),
    include_str!("../../../models/mirrored.yaml"),
    include_str!("../../../models/arm7.yaml"),
    include_str!("../../../models/tree20.yaml"),
];

/// A good file, mostly a small one.
pub fn good_file(r: &mut Random) -> String {
    match r.below(100) {
        // The two large ones cost as much as all others together.
        0 => SHIPPED[6 + r.below(2)].into(),
        1..40 => SHIPPED[r.below(6)].into(),
        _ => {
            let bodies = if r.chance(0.02) { 6 } else { 1 + r.below(2) };
            random_model(r.bits() % 10_000, Shape { bodies, dissipative: r.chance(0.8) })
        }
    }
}
