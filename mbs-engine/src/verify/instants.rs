//! Instants at which derivatives are compared: on the run, and off it.

use super::Instant;
use crate::gradient::Node;

/// A node is taken for an instant if it is within this fraction of the span.
const ROUNDING: f64 = 1e-12;

/// Picks instants from the nodes of a run: the first, and those at equal distances from it to the last.
#[derive(Clone, Debug)]
pub struct Visited {
    begin: f64,
    end: f64,
    wanted: usize,
    /// The selected instants.
    pub instants: Vec<Instant>,
}

impl Visited {
    /// For a run over this span: the start, and this many instants after it.
    pub fn new(begin: f64, end: f64, wanted: usize) -> Self {
        Visited { begin, end, wanted, instants: Vec::new() }
    }

    /// Whether the node at `t` is selected; nodes come in the order of time.
    pub fn due(&self, t: f64) -> bool {
        let (number, count) = (self.instants.len(), self.wanted.max(1));
        let due = self.begin + (self.end - self.begin) * (number as f64 / count as f64 - ROUNDING);
        number <= self.wanted && (t >= due || t == self.end)
    }

    /// Records a node.
    pub fn note(&mut self, node: &Node<'_>) {
        let at = node.motion;
        let [z, zd, zdd, u] = [at.z, at.zd, at.zdd, at.u].map(<[f64]>::to_vec);
        self.instants.push(Instant { t: at.t, z, zd, zdd, u, lambda: node.lambda.to_vec() });
    }
}

/// Distance of a disturbed instant from the original one, in units of one and of its own size.
const DISTURBANCE: f64 = 0.05;

/// The instant with all quantities changed a little: off the constraints, Euler parameters not of unit length, rates and multipliers nowhere
/// zero. Always the same for the same instant and number.
pub fn disturbed(at: &Instant, number: u64) -> Instant {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(number + 1);
    let mut moved = |values: &[f64]| -> Vec<f64> {
        let largest = values.iter().fold(1.0, |m: f64, x| m.max(x.abs()));
        let mut part = || {
            // xorshift [Marsaglia 2003], to −1 … 1
            for shift in [13, -7, 17] {
                state ^= if shift > 0 { state << shift } else { state >> -shift };
            }
            (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        };
        values.iter().map(|x| x + DISTURBANCE * largest * part()).collect()
    };
    let [z, zd, zdd, u, lambda] = [&at.z, &at.zd, &at.zdd, &at.u, &at.lambda].map(|values| moved(values));
    Instant { t: at.t, z, zd, zdd, u, lambda }
}
