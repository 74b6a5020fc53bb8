//! Corners in time: where a condition of time alone changes over, such as a knot of a table or the end of a pulse.
//!
//! Input: conditions as functions of time, of which each says on which side it is. Output: the first [`Stop`] in a span, so that a step of
//! controlled size does not go over it.
//!
//! A span is searched in cells that shrink until every function in a cell is the cubic that its ends predict; what two
//! points inside it confirm has no other turns. So a pulse is found however short it is against the span, as long as its condition is
//! a function whose slope leads to it (`abs(t - 3) < 1e-6`); a narrow peak on a flat function is not.

use crate::inputs::Stop;

/// How the sides of a condition follow from its function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sides {
    /// It changes where the function is zero.
    Sign,
    /// It changes where the function passes any of several values.
    Levels,
}

/// A condition of time alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corner {
    /// How its sides follow from its function.
    pub sides: Sides,
    /// Whether steps keep off the corner, each on one side: something jumps there, or the corner moves with a parameter of a derivative.
    pub apart: bool,
}

/// Points of a cell: its ends and two points inside, which no period divides.
const POINTS: [f64; 4] = [0.0, 0.381_966_011_250_105, 0.723_606_797_749_979, 1.0];
/// Values of a condition at a point: function, rate, side.
const VALUES: usize = 3;
/// Against the variation of a function in a cell, how well the cubic predicts it.
const PREDICTED: f64 = 0.02;
/// The same of its rate.
const RATE_PREDICTED: f64 = 0.1;
/// Distance of a stop from a corner that steps keep off, in units of rounding of the time.
const APART: f64 = 16.0;
/// Evaluations of one search; beyond them steps end where it has come to.
const EVALUATIONS: usize = 6000;
/// Parts of the span in which levels are told apart.
const PARTS: f64 = 256.0;

/// Length of the memory of a search.
pub const fn memory_len(corners: usize) -> usize {
    POINTS.len() * VALUES * corners
}

/// The first stop after `from` and not after `to`. `evaluate` writes at a time all functions, then all rates, then all sides; `memory` has
/// [`memory_len`] values.
pub fn next_stop(
    corners: &[Corner],
    from: f64,
    to: f64,
    memory: &mut [f64],
    mut evaluate: impl FnMut(f64, &mut [f64]),
) -> Option<Stop> {
    let n = corners.len();
    if n == 0 || !(from < to && (to - from).is_finite()) {
        return None;
    }
    let (first, rest) = memory.split_at_mut_checked(VALUES * n)?;
    let (second, rest) = rest.split_at_mut_checked(VALUES * n)?;
    let (third, rest) = rest.split_at_mut_checked(VALUES * n)?;
    let (fourth, _) = rest.split_at_mut_checked(VALUES * n)?;
    let rounding = APART * f64::EPSILON * from.abs().max(to.abs());
    let mut evaluations = 1;
    let (mut a, mut b) = (from, to);
    evaluate(a, first);
    loop {
        let width = b - a;
        let times = POINTS.map(|part| if part == 1.0 { b } else { a + part * width });
        evaluate(times[1], second);
        evaluate(times[2], third);
        evaluate(times[3], fourth);
        evaluations += 3;
        let cell = [&*first, second, third, fourth];
        let smallest = width <= rounding;
        if !smallest
            && !corners.iter().enumerate().all(|(i, corner)| settled(corner, n, i, width, to - from, cell))
        {
            if evaluations > EVALUATIONS {
                let t = if a > from { a } else { b };
                return Some(Stop { before: t, after: t });
            }
            b = a + 0.5 * width;
            continue;
        }
        let changed = (1..POINTS.len()).find(|&k| cell.get(k).is_some_and(|there| differ(n, first, there)));
        if let Some(k) = changed {
            let (mut low, mut high) = (times[k - 1], times[k]);
            loop {
                let middle = low + 0.5 * (high - low);
                if !(low < middle && middle < high) {
                    break;
                }
                evaluate(middle, second);
                if differ(n, first, second) {
                    high = middle;
                } else {
                    low = middle;
                }
            }
            evaluate(high, second);
            let sides = first.iter().zip(&*second).skip(2 * n);
            let apart = sides.zip(corners).any(|((a, b), corner)| corner.apart && a != b);
            return Some(match apart {
                true => Stop { before: low - rounding, after: high + rounding },
                false => Stop { before: high, after: high },
            });
        }
        if b >= to {
            return None;
        }
        first.copy_from_slice(fourth);
        (a, b) = (b, (b + 2.0 * width).min(to));
    }
}

/// Whether a condition is on another side.
fn differ(n: usize, a: &[f64], b: &[f64]) -> bool {
    a.iter().zip(b).skip(2 * n).any(|(a, b)| a != b && !(a.is_nan() && b.is_nan()))
}

/// Whether a condition changes in a cell only where its points show it.
fn settled(corner: &Corner, n: usize, i: usize, width: f64, span: f64, cell: [&[f64]; 4]) -> bool {
    let at = |offset: usize| cell.map(|values| values.get(offset + i).copied().unwrap_or(f64::NAN));
    let (f, r) = (at(0), at(n));
    let monotone = r.iter().all(|&r| r >= 0.0) || r.iter().all(|&r| r <= 0.0);
    let extreme =
        |values: [f64; 4], choose: fn(f64, f64) -> f64| values.into_iter().reduce(choose).unwrap_or(f64::NAN);
    let nearest = extreme(f.map(f64::abs), f64::min);
    let steepest = extreme(r.map(f64::abs), f64::max);
    let one_sign = f.iter().all(|&f| f > 0.0) || f.iter().all(|&f| f < 0.0);
    if corner.sides == Sides::Sign && one_sign && nearest > 2.0 * width * steepest && steepest > 0.0 {
        return true;
    }
    // p(s) = f_a + s² (3 − 2s) (f_b − f_a) + w s (1 − s) ((1 − s) r_a − s r_b)
    let cubic = |s: f64| {
        let bend = width * s * (1.0 - s) * ((1.0 - s) * r[0] - s * r[3]);
        f[0] + s * s * (3.0 - 2.0 * s) * (f[3] - f[0]) + bend
    };
    let size = extreme(f, f64::max) - extreme(f, f64::min) + 0.5 * width * (r[0].abs() + r[3].abs());
    let rounding = 8.0 * f64::EPSILON * extreme(f.map(f64::abs), f64::max);
    // w p′ = 6 s (1 − s) (f_b − f_a) + w ((1 − s)(1 − 3s) r_a − s (2 − 3s) r_b)
    let slope = |s: f64| {
        let bend = width * ((1.0 - s) * (1.0 - 3.0 * s) * r[0] - s * (2.0 - 3.0 * s) * r[3]);
        6.0 * s * (1.0 - s) * (f[3] - f[0]) + bend
    };
    let predicted = [1, 2].iter().all(|&k| {
        let off = (cubic(POINTS[k]) - f[k]).abs();
        let rate_off = (slope(POINTS[k]) - width * r[k]).abs();
        off <= PREDICTED * size + rounding && rate_off <= RATE_PREDICTED * size + rounding
    });
    if !predicted {
        return false;
    }
    if monotone {
        return true;
    }
    match corner.sides {
        Sides::Levels => width <= span / PARTS,
        // The cubic keeps away from zero.
        Sides::Sign => {
            let least =
                (0..=16).map(|k| cubic(f64::from(k) / 16.0) * f[0].signum()).fold(f64::INFINITY, f64::min);
            one_sign && least > 2.0 * PREDICTED * size
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stops(corner: Corner, from: f64, to: f64, f: impl Fn(f64) -> (f64, f64, f64)) -> ([f64; 16], usize) {
        let (mut memory, mut found, mut count, mut t) = ([0.0; memory_len(1)], [0.0; 16], 0, from);
        while let Some(stop) = next_stop(&[corner], t, to, &mut memory, |t, out| {
            let (f, rate, side) = f(t);
            out.copy_from_slice(&[f, rate, side]);
        }) {
            assert!(stop.after > t && stop.before <= stop.after);
            t = stop.after;
            found[count] = t;
            count += 1;
        }
        (found, count)
    }

    const SIGN: Corner = Corner { sides: Sides::Sign, apart: false };

    fn below(f: f64) -> f64 {
        if f < 0.0 { 1.0 } else { 0.0 }
    }

    #[test]
    fn a_line_has_one_corner() {
        let (found, count) = stops(SIGN, 0.0, 10.0, |t| (t - 3.0, 1.0, below(t - 3.0)));
        assert_eq!((found[0], count), (3.0, 1));
    }

    #[test]
    fn a_short_pulse_is_found() {
        for (width, place) in [1e-3, 1e-6, 1e-9].into_iter().flat_map(|w| (1..200).map(move |k| (w, k))) {
            let middle = 0.0361 * f64::from(place);
            let (found, count) = stops(SIGN, 0.0, 7.3, |t| {
                let f = (t - middle).abs() - width;
                (f, if t < middle { -1.0 } else { 1.0 }, below(f))
            });
            assert_eq!(count, 2, "{width} at {middle}: {found:?}");
            assert!((found[0] - middle + width).abs() < 1e-14 && (found[1] - middle - width).abs() < 1e-14);
        }
    }

    /// Also where the span is a multiple of the period.
    #[test]
    fn every_half_period_is_found() {
        let w = core::f64::consts::TAU;
        let wave = |t: f64| {
            let f = crate::math::sin(w * t);
            (f, w * crate::math::cos(w * t), below(f))
        };
        let (found, count) = stops(SIGN, 0.1, 7.0, wave);
        assert_eq!(count, 13);
        assert!(
            found[..13].iter().enumerate().all(|(i, t)| (t - 0.5 * (i + 1) as f64).abs() < 1e-14),
            "{found:?}"
        );
    }

    #[test]
    fn levels_are_passed_one_by_one() {
        let levels = Corner { sides: Sides::Levels, apart: false };
        let (found, count) = stops(levels, 0.2, 5.5, |t| (t, 1.0, f64::from(t as i32)));
        assert_eq!((&found[..count], count), ([1.0, 2.0, 3.0, 4.0, 5.0].as_slice(), 5));
    }

    #[test]
    fn steps_keep_off_a_jump() {
        let mut memory = [0.0; memory_len(1)];
        let corner = Corner { apart: true, ..SIGN };
        let evaluate = |t: f64, out: &mut [f64]| out.copy_from_slice(&[t - 3.0, 1.0, below(t - 3.0)]);
        let stop = next_stop(&[corner], 0.0, 5.0, &mut memory, evaluate).unwrap();
        assert!(stop.before < 3.0 && stop.after > 3.0 && stop.after - stop.before < 1e-13, "{stop:?}");
    }
}
