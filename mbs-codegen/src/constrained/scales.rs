//! Natural scales of a model, from its data at default parameters: what numbers of its coordinates and of its constraint rows are large or
//! small against.
//!
//! | scale | from |
//! |---|---|
//! | length | largest coordinate of a point or a centre of mass in its body |
//! | mass | largest mass |
//! | time | a thousand steps of its simulation |
//! | of a coordinate | the length, or one for angles; of a variable, which has no unit, the one of these two that its start value is nearer to |
//! | of a row | what random coordinates change of its value; if they do not, the size of its terms ([`Graph::sizes`](crate::graph::Graph::sizes)); where the length is one, a power of 2¹⁶, at least one |
//!
//! They are powers of 2⁸ (of 2³² for mass and time), so that dividing by them rounds nothing, and that they are one for a model whose numbers are within a
//! sixteenth and sixteen of one: such a model is computed as if there were no scales.

use super::rows::{is_length, length_scale};
use crate::model::Model;
use crate::model::evaluate::Values;
use crate::topology::Tree;

/// Steps in the time in which a mechanism of default settings moves by its own length.
const STEPS: f64 = 1e3;

/// Scales of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Scales {
    /// Of length, m.
    pub length: f64,
    /// Of mass, kg.
    pub mass: f64,
    /// Of time, s.
    pub time: f64,
    /// Of each coordinate z.
    pub coordinates: Vec<f64>,
    /// Of each velocity v, times the time.
    pub velocities: Vec<f64>,
    /// Of each kept row.
    pub rows: Vec<f64>,
}

impl Default for Scales {
    fn default() -> Self {
        let [coordinates, velocities, rows] = [(); 3].map(|()| Vec::new());
        Scales { length: 1.0, mass: 1.0, time: 1.0, coordinates, velocities, rows }
    }
}

impl Scales {
    /// Of a model; `sizes` are those of its kept rows.
    pub(super) fn new(model: &Model, tree: &Tree, sizes: &[f64]) -> Scales {
        let values = Values::defaults(model);
        let length = power(length_scale(model), 8);
        let masses = model.bodies.iter().filter_map(|body| values.scalar(&body.mass).ok());
        let mass = power(masses.fold(0.0, f64::max), 32);
        let time = power(STEPS * model.simulation.step, 32);
        let (mut coordinates, mut velocities) = (vec![1.0; tree.nq], vec![1.0; tree.nv]);
        for link in &tree.links {
            let lengths = link.kind.coordinates().iter().take_while(is_length).count();
            coordinates[link.z..link.z + lengths].fill(length);
            velocities[link.v..link.v + lengths].fill(length);
        }
        for of in [&mut coordinates, &mut velocities] {
            scale_variables(model, length, of);
        }
        // Where the length is one, so are rows, unless something makes them much larger. Small ones stay: what hardly moves is rounding of what does.
        let own = |size: &f64| if length == 1.0 { power(*size, 16).max(1.0) } else { power(*size, 8) };
        let rows = sizes.iter().map(own).collect();
        Scales { length, mass, time, coordinates, velocities, rows }
    }

    /// λ of a row: an energy over the unit of the row.
    pub(super) fn multiplier(&self, row: usize) -> f64 {
        let rate = self.length / self.time;
        self.mass * rate * rate / self.rows.get(row).copied().unwrap_or(1.0)
    }

    /// The scale of a velocity, times the time.
    pub(super) fn velocity(&self, v: usize) -> f64 {
        self.velocities.get(v).copied().unwrap_or(1.0)
    }

    /// The scale of a coordinate.
    pub(super) fn coordinate(&self, z: usize) -> f64 {
        self.coordinates.get(z).copied().unwrap_or(1.0)
    }
}

/// Multiplies numbers of coordinates, or of velocities, by the scales of the variables, which are the last.
pub(super) fn scale_variables(model: &Model, length: f64, of: &mut [f64]) {
    let values = Values::defaults(model);
    for (x, variable) in of.iter_mut().rev().zip(model.variables.iter().rev()) {
        let start = values.scalar(&variable.value).map_or(0.0, f64::abs);
        let nearer = start > 0.0 && (start / length).log2().abs() < start.log2().abs();
        *x *= if nearer { length } else { 1.0 };
    }
}

/// The power of 2^`bits` that is nearest to a number; one if it is not positive.
fn power(x: f64, bits: i32) -> f64 {
    if x > 0.0 && x.is_finite() {
        let exponent = bits * (x.log2() / f64::from(bits)).round() as i32;
        2f64.powi(exponent.clamp(-1000, 1000))
    } else {
        1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constrained::Rows;
    use crate::topology;

    /// A point mass on a slide, held at a distance, and an equation of squared lengths.
    fn scales(length: f64) -> Scales {
        let text = format!(
            "mbs: 1
bodies: {{a: {{mass: 1, com: [{length:?}, 0, 0], inertia: [1, 1, 1]}}, b: {{mass: 1}}}}
joints:
  h: {{type: revolute, parent: ground, child: a, axis: [0, 0, 1]}}
  s: {{type: prismatic, parent: ground, child: b, axis: [1, 0, 0], start: {length:?}}}
variables: {{reach: {length:?}, turn: 0.7}}
constraints:
  rod: {{type: distance, from: a.com, to: b, value: reach}}
  square: {{type: equation, value: \"dot(pos(a.com) - pos(b), pos(a.com) - pos(b)) - reach^2\"}}
  gear: {{type: coupling, value: turn - 2*h.angle}}
"
        );
        let (model, _) = crate::read("scales.yaml", &text).expect("a model");
        Rows::of(&model, &topology::span(&model)).scales
    }

    #[test]
    fn scales_follow_lengths() {
        let one = scales(1.0);
        assert_eq!(one.coordinates, [1.0; 4]);
        assert_eq!(one.rows, [1.0; 3]);
        let small = 2f64.powi(-24);
        let tiny = scales(small);
        assert_eq!((tiny.length, tiny.coordinates), (small, vec![1.0, small, small, 1.0]));
        assert_eq!(tiny.rows, [small, small * small, 1.0]);
        // Whatever a row is multiplied by.
        let text = "mbs: 1\nbodies: {a: {mass: 1}, b: {mass: 1}}\njoints:\n  \
             x: {type: prismatic, parent: ground, child: a, axis: [1, 0, 0]}\n  \
             y: {type: prismatic, parent: ground, child: b, axis: [0, 1, 0]}\n\
             constraints: {row: {type: coupling, value: 1e5*(x.displacement - y.displacement)}}\n";
        let (model, _) = crate::read("row.yaml", text).expect("a model");
        assert_eq!(Rows::of(&model, &topology::span(&model)).scales.rows, [65536.0]);
    }
}
