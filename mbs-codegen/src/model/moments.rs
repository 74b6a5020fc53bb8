//! Principal moments of an inertia, and whether any body has them.

use std::fmt;

/// Why no body has an inertia.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Impossible {
    /// A principal moment is negative.
    Negative(f64),
    /// The largest principal moment exceeds the sum of the others; ascending.
    Unbalanced([f64; 3]),
}

impl Impossible {
    /// What to look at.
    pub fn help(self) -> &'static str {
        match self {
            Impossible::Negative(_) => "entries are tensor elements: xy is −∫xy dm",
            Impossible::Unbalanced(_) => "entries are about the centre of mass, in kg m²",
        }
    }
}

impl fmt::Display for Impossible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Impossible::Negative(moment) => write!(f, "a principal moment is {}", short(*moment)),
            Impossible::Unbalanced(moments) => {
                let [least, middle, largest] = moments.map(short);
                write!(
                    f,
                    "its principal moments are {least}, {middle} and {largest}, and the largest exceeds the sum of \
                     the others"
                )
            }
        }
    }
}

/// Why no body has the inertia xx, yy, zz, xy, xz, yz, if none has it.
///
/// Written numbers are rounded: a thin rod's smallest moment may come out a little below zero, and the moments of
/// a plate may miss their sum in the third digit. One moment alone is how planar models are written, and rotors.
pub fn impossible(inertia: [f64; 6]) -> Option<Impossible> {
    let [least, middle, largest] = principal_moments(inertia);
    let size = largest.abs().max(least.abs());
    if least < -1e-6 * size {
        Some(Impossible::Negative(least))
    } else if middle > 1e-6 * size && largest > least + middle + 1e-3 * size {
        Some(Impossible::Unbalanced([least, middle, largest]))
    } else {
        None
    }
}

/// A number with four digits.
fn short(x: f64) -> String {
    let rounded: f64 = format!("{x:.3e}").parse().unwrap_or(x);
    if (1e-4..1e6).contains(&rounded.abs()) { format!("{rounded}") } else { format!("{rounded:e}") }
}

/// Eigenvalues of a symmetric matrix given as xx, yy, zz, xy, xz, yz, ascending, by Jacobi rotations.
pub fn principal_moments(j: [f64; 6]) -> [f64; 3] {
    let mut a = [[j[0], j[3], j[4]], [j[3], j[1], j[5]], [j[4], j[5], j[2]]];
    // Quadratic convergence: six sweeps leave rounding only.
    for _ in 0..8 {
        for (p, q) in [(0, 1), (0, 2), (1, 2)] {
            if a[p][q] == 0.0 {
                continue;
            }
            let theta = (a[q][q] - a[p][p]) / (2.0 * a[p][q]);
            let t = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
            let c = 1.0 / (t * t + 1.0).sqrt();
            let s = t * c;
            for row in &mut a {
                let (x, y) = (row[p], row[q]);
                (row[p], row[q]) = (c * x - s * y, s * x + c * y);
            }
            let (x, y) = (a[p], a[q]);
            a[p] = std::array::from_fn(|k| c * x[k] - s * y[k]);
            a[q] = std::array::from_fn(|k| s * x[k] + c * y[k]);
        }
    }
    let mut moments = [a[0][0], a[1][1], a[2][2]];
    moments.sort_by(f64::total_cmp);
    moments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn principal_moments_of_a_turned_tensor() {
        // diag(1, 2, 4) turned by a rotation with the quaternion (2, 1, −1, 3)/√15.
        let (e0, e1, e2, e3) = (2.0, 1.0, -1.0, 3.0);
        let n: f64 = 15.0;
        let r = [
            [e0 * e0 + e1 * e1 - e2 * e2 - e3 * e3, 2.0 * (e1 * e2 - e0 * e3), 2.0 * (e1 * e3 + e0 * e2)],
            [2.0 * (e1 * e2 + e0 * e3), e0 * e0 - e1 * e1 + e2 * e2 - e3 * e3, 2.0 * (e2 * e3 - e0 * e1)],
            [2.0 * (e1 * e3 - e0 * e2), 2.0 * (e2 * e3 + e0 * e1), e0 * e0 - e1 * e1 - e2 * e2 + e3 * e3],
        ];
        let d = [1.0, 2.0, 4.0];
        let j = |a: usize, b: usize| (0..3).map(|k| r[a][k] * d[k] * r[b][k]).sum::<f64>() / (n * n);
        let m = principal_moments([j(0, 0), j(1, 1), j(2, 2), j(0, 1), j(0, 2), j(1, 2)]);
        for (m, d) in m.iter().zip(d) {
            assert!((m - d).abs() < 1e-14, "{m} {d}");
        }
        assert_eq!(principal_moments([3.0, 1.0, 2.0, 0.0, 0.0, 0.0]), [1.0, 2.0, 3.0]);
    }
}
