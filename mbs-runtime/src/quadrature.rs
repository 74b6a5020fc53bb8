//! Integrals over time along the nodes of a run: the composite trapezoidal rule, which is of the order of the implicit steps.
//!
//! ψ = Σ_n (t_n+1 − t_n)/2 (g_n + g_n+1), from the first node on; a derivative of the nodes' times is part of it.

use crate::scalar::Scalar;

/// Sums in a slice of the caller; every node must be given, so observe every step.
#[derive(Debug)]
pub struct Trapezoid<'a, S> {
    sums: &'a mut [S],
    last: &'a mut [S],
    t: Option<S>,
}

impl<'a, S: Scalar> Trapezoid<'a, S> {
    /// For as many integrands as half the slice holds.
    pub fn new(memory: &'a mut [S]) -> Self {
        memory.fill(S::ZERO);
        let (sums, last) = memory.split_at_mut(memory.len() / 2);
        Self { sums, last, t: None }
    }

    /// Adds the node at `t` with the integrands `g`.
    pub fn add(&mut self, t: S, g: &[S]) {
        let half = self.t.map_or(S::ZERO, |before| S::from_f64(0.5) * (t - before));
        for ((sum, last), &g) in self.sums.iter_mut().zip(self.last.iter_mut()).zip(g) {
            *sum += half * (*last + g);
            *last = g;
        }
        self.t = Some(t);
    }

    /// The integrals so far.
    pub fn integrals(&self) -> &[S] {
        self.sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_integrated_exactly_and_a_parabola_to_order_2() {
        let error = |n: usize| {
            let mut memory = [7.0; 4];
            let mut sum = Trapezoid::new(&mut memory);
            for k in 0..=n {
                let t = 1.0 + 2.0 * k as f64 / n as f64;
                sum.add(t, &[3.0 * t - 1.0, t * t]);
            }
            let [line, parabola] = [sum.integrals()[0], sum.integrals()[1]];
            assert!((line - 10.0).abs() < 1e-14);
            parabola - 26.0 / 3.0
        };
        assert!((error(10) / error(20) - 4.0).abs() < 1e-9);
    }
}
