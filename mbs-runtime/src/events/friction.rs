//! Impulses of an impact with friction along one direction, as functions of seven numbers, with their derivatives.
//!
//! | symbol | meaning |
//! |---|---|
//! | c, s | rates of the gap and of the slip before the impact |
//! | a, b, d | what impulses change them by: c⁺ = c + a p + b q, s⁺ = s + b p + d q |
//! | e, μ | restitution, friction |
//! | p, q | impulses along gap and slip |
//!
//! The impact is a process in p: the slip opposes friction, dq/dp = −μ sign(s), until it stops. Then it sticks, dq/dp = −b/d, if |b| ≤ μ d, and
//! slips the other way, dq/dp = μ sign(s), if not. So the rate of the gap is a broken line, compression ends where it is zero, and
//! the impact where the gap has given back e² of the work W_c that compression took (Stronge's energetic law):
//!
//! ```text
//! ∫ c dp from p_c to p = −e² W_c,   W_c = ∫ c dp from 0 to p_c
//! ```
//!
//! The gap has taken (1 − e²) of the work, and friction takes some: no energy is created. Newton's law gives c⁺ = −e c instead, with s⁺ = 0 if
//! |q| ≤ μ |p| then, and q = −μ sign(s) |p| if not; it may create energy.

use core::ops::{Add, Div, Mul, Neg, Sub};

use crate::scalar::Scalar;
use mbs_bundles::ImpactLaw;

/// How many numbers the impulses are functions of.
pub(crate) const NUMBERS: usize = 7;

/// A part of the impulse below which it is not told on which side of a branch it is.
const BETWEEN: f64 = 1e-9;

/// A number with its derivatives.
#[derive(Clone, Copy)]
struct Dual<S> {
    x: S,
    by: [S; NUMBERS],
}

impl<S: Scalar> Dual<S> {
    fn with(self, x: S, slope: S) -> Self {
        Self { x, by: self.by.map(|by| slope * by) }
    }

    fn number(x: f64) -> Self {
        Self { x: S::from_f64(x), by: [S::ZERO; NUMBERS] }
    }

    fn times(self, x: f64) -> Self {
        self * Self::number(x)
    }

    fn sqrt(self) -> Self {
        let root = self.x.sqrt();
        // The root of nothing does not move: where it is taken, what it is multiplied by is nothing, too.
        let slope = if root == S::ZERO { S::ZERO } else { S::from_f64(0.5) / root };
        self.with(root, slope)
    }

    fn real(self) -> f64 {
        self.x.real()
    }
}

impl<S: Scalar> Add for Dual<S> {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        let mut by = self.by;
        by.iter_mut().zip(other.by).for_each(|(by, other)| *by += other);
        Self { x: self.x + other.x, by }
    }
}

impl<S: Scalar> Neg for Dual<S> {
    type Output = Self;
    fn neg(self) -> Self {
        self.with(-self.x, -S::ONE)
    }
}

impl<S: Scalar> Sub for Dual<S> {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl<S: Scalar> Mul for Dual<S> {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        let x = self.x * other.x;
        self.with(x, other.x) + Self { x: S::ZERO, by: other.by.map(|by| self.x * by) }
    }
}

impl<S: Scalar> Div for Dual<S> {
    type Output = Self;
    fn div(self, other: Self) -> Self {
        let inverse = S::ONE / other.x;
        self * other.with(inverse, -inverse * inverse)
    }
}

/// Impulses of an impact.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Impulses<S> {
    /// p and q
    pub(crate) values: [S; 2],
    /// Their derivatives by c, s, a, b, d, e, μ.
    pub(crate) by: [[S; NUMBERS]; 2],
    /// Whether it lies between sticking and slipping, or between two ways to slip, where it has no derivative.
    pub(crate) between: bool,
}

/// The impulses from c, s, a, b, d, e, μ; none if no impulse stops the gap.
pub(crate) fn impulses<S: Scalar>(law: ImpactLaw, numbers: [S; NUMBERS]) -> Option<Impulses<S>> {
    let mut number = 0;
    let [c, s, a, b, d, e, mu] = numbers.map(|x| {
        let mut by = [S::ZERO; NUMBERS];
        if let Some(by) = by.get_mut(number) {
            *by = S::ONE;
        }
        number += 1;
        Dual { x, by }
    });
    if c.real() == 0.0 {
        let by = [[S::ZERO; NUMBERS]; 2];
        return Some(Impulses { values: [S::ZERO; 2], by, between: mu.real() != 0.0 });
    }
    // A gap that opens upward: p is positive.
    let sign = if c.real() < 0.0 { 1.0 } else { -1.0 };
    let (p, q, between) = match law {
        ImpactLaw::Newton => newton(c.times(sign), s, a, b.times(sign), d, e, mu)?,
        ImpactLaw::Plain | ImpactLaw::Stronge => stronge(c.times(sign), s, a, b.times(sign), d, e, mu)?,
    };
    let p = p.times(sign);
    Some(Impulses { values: [p.x, q.x], by: [p.by, q.by], between })
}

type Found<S> = (Dual<S>, Dual<S>, bool);

#[allow(clippy::many_single_char_names, reason = "those of the equations")]
fn stronge<S: Scalar>(
    c: Dual<S>,
    s: Dual<S>,
    a: Dual<S>,
    b: Dual<S>,
    d: Dual<S>,
    e: Dual<S>,
    mu: Dual<S>,
) -> Option<Found<S>> {
    let sticks = b.real().abs() <= mu.real() * d.real();
    // Where nothing slips yet, what the normal impulse makes of it.
    let way = if s.real() != 0.0 { sign(s.real()) } else { sign(b.real()) };
    let before = mu.times(-way);
    let after = if sticks { -(b / d) } else { mu.times(way) };
    let (slope, slope_after) = (a + b * before, a + b * after);
    let slowing = b + d * before;
    // p where the slip stops
    let stop = (slowing.real() * way < 0.0).then(|| -(s / slowing));
    let stop = if s.real() == 0.0 && sticks { Some(Dual::number(0.0)) } else { stop };
    let half = |x: Dual<S>| x.times(0.5);
    // p, W at the end of compression, and whether it still slips as before
    let compressed = (slope.real() > 0.0).then(|| -(c / slope));
    let slips = |p: Dual<S>| stop.is_none_or(|stop| p.real() < stop.real());
    let (p_c, work, first) = match (compressed.filter(|&p| slips(p)), stop) {
        (Some(p), _) => (p, half(c * p), true),
        (None, Some(stop)) => {
            let there = c + slope * stop;
            // Not less, so that what is not a number stops nothing.
            let stops = slope_after.real() > 0.0;
            if !stops {
                return None;
            }
            let further = -(there / slope_after);
            (stop + further, half((c + there) * stop + there * further), false)
        }
        (None, None) => return None,
    };
    let back = |slope: Dual<S>| e * (-(work + work) / slope).sqrt();
    let (p, q, slipped) = match stop.filter(|_| first) {
        _ if !first => {
            let (p, stop) = (p_c + back(slope_after), stop?);
            (p, before * stop + after * (p - stop), stop)
        }
        None => {
            let p = p_c + back(slope);
            return Some((p, before * p, false));
        }
        Some(stop) => {
            let p = p_c + back(slope);
            if p.real() <= stop.real() {
                (p, before * p, stop)
            } else {
                // ½ (slope after) x² + (rate there) x = what is left to give back
                let (way, there) = (stop - p_c, slope * (stop - p_c));
                let left = -(e * e * work) - half(there * way);
                let x = ((there * there + (slope_after * left).times(2.0)).sqrt() - there) / slope_after;
                (stop + x, before * stop + after * x, stop)
            }
        }
    };
    let near = |x: f64, size: f64| x.abs() <= BETWEEN * size;
    // Slip that stops right at the end, or that sticking hardly holds, or that turns round from nothing.
    let between = near((p - slipped).real(), p.real())
        || (slipped.real() < p.real() && near(b.real().abs() - mu.real() * d.real(), mu.real() * d.real()))
        || (!sticks && near(slipped.real(), p.real()));
    Some((p, q, between))
}

#[allow(clippy::many_single_char_names, reason = "those of the equations")]
fn newton<S: Scalar>(
    c: Dual<S>,
    s: Dual<S>,
    a: Dual<S>,
    b: Dual<S>,
    d: Dual<S>,
    e: Dual<S>,
    mu: Dual<S>,
) -> Option<Found<S>> {
    let change = -(c + e * c);
    // a p + b q = change, b p + d q = −s
    let determinant = a * d - b * b;
    let p = (change * d + b * s) / determinant;
    let q = -((s + b * p) / d);
    let limit = mu.real() * p.real();
    let between = (q.real().abs() - limit).abs() <= BETWEEN * limit;
    if determinant.real() > 0.0 && q.real().abs() <= limit {
        return Some((p, q, between));
    }
    let way = if s.real() != 0.0 { sign(s.real()) } else { -sign(q.real()) };
    let direction = mu.times(-way);
    let slope = a + b * direction;
    let stops = slope.real() > 0.0;
    if !stops {
        return None;
    }
    let p = change / slope;
    Some((p, direction * p, between || s.real() == 0.0))
}

fn sign(x: f64) -> f64 {
    if x < 0.0 { -1.0 } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The process in small steps, by the definition.
    fn in_small_steps([c, s, a, b, d, e, mu]: [f64; NUMBERS]) -> [f64; 2] {
        let (mut p, mut q, mut work, mut compressed) = (0.0, 0.0, 0.0, None::<f64>);
        let h = 1e-5;
        loop {
            let (gap, slip) = (c + a * p + b * q, s + b * p + d * q);
            if gap >= 0.0 && compressed.is_none() {
                compressed = Some(work);
            }
            if compressed.is_some_and(|taken| work - taken >= -e * e * taken) {
                return [p, q];
            }
            let sticking = -b / d;
            let slope = if slip.abs() < 1e-4 { sticking.clamp(-mu, mu) } else { -mu * slip.signum() };
            let middle = gap + 0.5 * h * (a + b * slope);
            (p, q, work) = (p + h, q + slope * h, work + middle * h);
        }
    }

    /// Sliding on, sticking, turning round, in compression and in restitution, and sliding from nothing.
    const CASES: [[f64; NUMBERS]; 9] = [
        [-1.0, 2.0, 1.0, 0.3, 2.0, 0.7, 0.1],
        [-1.0, 0.2, 1.0, 0.3, 2.0, 0.7, 0.6],
        [-1.0, -0.2, 1.0, -0.3, 2.0, 0.7, 0.6],
        [-1.0, 1.0, 1.0, -0.4, 1.5, 0.8, 0.7],
        [-1.0, 0.3, 2.0, -1.2, 1.5, 0.8, 0.4],
        [-1.0, 1.3, 2.0, -1.2, 1.5, 0.8, 0.4],
        [-1.0, -0.3, 2.0, 1.2, 1.5, 0.0, 0.4],
        [-1.0, 0.5, 1.0, 0.9, 1.5, 1.0, 1.5],
        [-1.0, 0.0, 2.0, 1.2, 1.5, 0.8, 0.4],
    ];

    #[test]
    fn it_is_what_small_steps_make_of_it() {
        for numbers in CASES {
            let found = impulses(ImpactLaw::Stronge, numbers).expect("impulses");
            let expected = in_small_steps(numbers);
            for (found, expected) in found.values.into_iter().zip(expected) {
                assert!((found - expected).abs() < 3e-4, "{numbers:?}: {found} against {expected}");
            }
        }
    }

    #[test]
    fn derivatives_are_those_of_the_impulses_and_a_gap_may_open_either_way() {
        for law in [ImpactLaw::Stronge, ImpactLaw::Newton] {
            for numbers in CASES.into_iter().filter(|numbers| numbers[1] != 0.0) {
                let found = impulses(law, numbers).expect("impulses");
                assert!(!found.between, "{numbers:?}");
                for k in 0..NUMBERS {
                    let at = |by: f64| {
                        let mut moved = numbers;
                        moved[k] += by;
                        impulses(law, moved).expect("impulses").values
                    };
                    let (low, high) = (at(-1e-6), at(1e-6));
                    for i in 0..2 {
                        let difference = (high[i] - low[i]) / 2e-6;
                        let slope = found.by[i][k];
                        // A restitution of zero has one side.
                        let sided = numbers[5] == 0.0 && k == 5;
                        assert!(
                            sided || (slope - difference).abs() < 1e-7,
                            "{law:?} {numbers:?} {i} by {k}: {slope}, {difference}"
                        );
                    }
                }
                let [c, s, a, b, d, e, mu] = numbers;
                let other = impulses(law, [-c, s, a, -b, d, e, mu]).expect("impulses").values;
                assert!(
                    (other[0] + found.values[0]).abs() < 1e-15 && (other[1] - found.values[1]).abs() < 1e-15
                );
            }
        }
    }

    /// Neither sticking nor sliding creates energy; Newton's law does where slip turns round.
    #[test]
    fn the_energetic_law_creates_no_energy() {
        let gained = |law, numbers: [f64; NUMBERS]| {
            let [c, s, a, b, d, ..] = numbers;
            let [p, q] = impulses(law, numbers).expect("impulses").values;
            c * p + s * q + 0.5 * (a * p * p + 2.0 * b * p * q + d * q * q)
        };
        let mut most: f64 = 0.0;
        for i in 0..7 {
            for j in 0..7 {
                for k in 1..9 {
                    for e in [0.0, 0.5, 1.0] {
                        let (s, b, mu) =
                            (-1.5 + 0.5 * f64::from(i), -1.2 + 0.4 * f64::from(j), 0.2 * f64::from(k));
                        let numbers = [-1.0, s, 1.3, b, 1.6, e, mu];
                        let gain = gained(ImpactLaw::Stronge, numbers);
                        assert!(gain < 1e-14, "{numbers:?}: {gain}");
                        most = most.max(gained(ImpactLaw::Newton, numbers));
                    }
                }
            }
        }
        assert!(most > 0.05, "{most}");
    }
}
