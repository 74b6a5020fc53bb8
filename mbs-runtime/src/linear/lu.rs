//! Dense LU with partial pivoting, P A = L U, in place [Golub, Van Loan, Matrix Computations, Algorithm 3.4.1].
//!
//! Input: an n × n matrix, column-major. Output: its factors in its place, and in `pivots` for each column the row that was
//! exchanged into the diagonal. Pivots are chosen by real part; the transpose does not conjugate.

use crate::scalar::Scalar;

/// Exchanges two entries; nothing where one does not exist.
#[inline(always)]
fn exchange<S: Copy>(x: &mut [S], i: usize, j: usize) {
    if let (Some(&a), Some(&b)) = (x.get(i), x.get(j)) {
        if let Some(x) = x.get_mut(i) {
            *x = b;
        }
        if let Some(x) = x.get_mut(j) {
            *x = a;
        }
    }
}

/// x_i for i > k, and x_k.
#[inline(always)]
fn split_after<S: Copy>(x: &mut [S], k: usize) -> Option<(S, &mut [S])> {
    let (&mut x_k, below) = x.get_mut(k..)?.split_first_mut()?;
    Some((x_k, below))
}

/// Factors `a` in place. The error is the first column in which no pivot is left, or one that is not finite.
pub fn factor<S: Scalar>(n: usize, a: &mut [S], pivots: &mut [S]) -> Result<(), usize> {
    for (k, pivot_row) in (0..n).zip(pivots.iter_mut()) {
        // The largest of a_ik, i ≥ k.
        let Some(column) = a.get(k * n..) else { return Err(k) };
        let (mut row, mut size) = (k, 0.0);
        for (i, entry) in column.iter().enumerate().take(n).skip(k) {
            let magnitude = entry.real().abs();
            if magnitude > size {
                (row, size) = (i, magnitude);
            }
        }
        if !(size > 0.0 && size < f64::INFINITY) {
            return Err(k);
        }
        *pivot_row = S::from_f64(row as f64);
        if row != k {
            for column in a.chunks_exact_mut(n) {
                exchange(column, k, row);
            }
        }
        let Some((column, later)) = a.get_mut(k * n..).and_then(|a| a.split_at_mut_checked(n)) else {
            return Err(k);
        };
        let Some((pivot, below)) = split_after(column, k) else { return Err(k) };
        // l_ik = a_ik / u_kk
        for l in below.iter_mut() {
            *l /= pivot;
        }
        // a_ij = a_ij − l_ik u_kj
        for column in later.chunks_exact_mut(n) {
            if let Some((u, rest)) = split_after(column, k)
                && u != S::ZERO
            {
                for (a, &l) in rest.iter_mut().zip(below.iter()) {
                    *a -= l * u;
                }
            }
        }
    }
    Ok(())
}

/// Solves A x = b in place with the factors.
pub fn solve<S: Scalar>(n: usize, factors: &[S], pivots: &[S], x: &mut [S]) {
    for (k, row) in (0..n).zip(pivots) {
        exchange(x, k, row.real() as usize);
    }
    // L y = P b
    for (k, column) in factors.chunks_exact(n.max(1)).enumerate() {
        if let (Some((x_k, below)), Some(l)) = (split_after(x, k), column.get(k + 1..)) {
            for (x, &l) in below.iter_mut().zip(l) {
                *x -= l * x_k;
            }
        }
    }
    // U x = y
    for (k, column) in factors.chunks_exact(n.max(1)).enumerate().rev() {
        let Some((above, rest)) = x.split_at_mut_checked(k) else { continue };
        if let (Some(x_k), Some(&pivot)) = (rest.first_mut(), column.get(k)) {
            *x_k /= pivot;
            let x_k = *x_k;
            for (x, &u) in above.iter_mut().zip(column) {
                *x -= u * x_k;
            }
        }
    }
}

/// Solves Aᵀ x = b in place with the factors.
pub fn solve_transposed<S: Scalar>(n: usize, factors: &[S], pivots: &[S], x: &mut [S]) {
    // Uᵀ y = b
    for (k, column) in factors.chunks_exact(n.max(1)).enumerate() {
        let Some((above, rest)) = x.split_at_mut_checked(k) else { continue };
        if let (Some(x_k), Some(&pivot)) = (rest.first_mut(), column.get(k)) {
            for (&x, &u) in above.iter().zip(column) {
                *x_k -= u * x;
            }
            *x_k /= pivot;
        }
    }
    // Lᵀ P x = y
    for (k, column) in factors.chunks_exact(n.max(1)).enumerate().rev() {
        if let (Some((x_k, below)), Some(l)) =
            (x.get_mut(k..).and_then(|x| x.split_first_mut()), column.get(k + 1..))
        {
            for (&x, &l) in below.iter().zip(l) {
                *x_k -= l * x;
            }
        }
    }
    for (k, row) in (0..n).zip(pivots).rev() {
        exchange(x, k, row.real() as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Complex64;

    /// Numbers in (−1, 1), the same each time.
    fn numbers(count: usize, seed: u64) -> std::vec::Vec<f64> {
        let mut state = seed;
        let next = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
        };
        core::iter::repeat_with(next).take(count).collect()
    }

    fn check<S: Scalar>(n: usize, turn: impl Fn(f64, f64) -> S) {
        let (re, im) = (numbers(n * n + n, 7), numbers(n * n + n, 11));
        let values: std::vec::Vec<S> = re.iter().zip(&im).map(|(re, im)| turn(*re, *im)).collect();
        let (a, exact) = values.split_at(n * n);
        let mut factors = a.to_vec();
        // A zero in the first diagonal: without pivoting there is no factorisation.
        let mut a = a.to_vec();
        if n > 1 {
            a[0] = S::ZERO;
            factors[0] = S::ZERO;
        }
        let mut pivots = std::vec![S::ZERO; n];
        factor(n, &mut factors, &mut pivots).unwrap();
        for transposed in [false, true] {
            let mut x: std::vec::Vec<S> = (0..n)
                .map(|i| {
                    (0..n).fold(S::ZERO, |sum, j| {
                        sum + if transposed { a[i * n + j] } else { a[j * n + i] } * exact[j]
                    })
                })
                .collect();
            if transposed {
                solve_transposed(n, &factors, &pivots, &mut x);
            } else {
                solve(n, &factors, &pivots, &mut x);
            }
            let error = x.iter().zip(exact).map(|(x, y)| (*x - *y).abs().real()).fold(0.0, f64::max);
            assert!(error < 1e-10, "{n} {transposed} {error}");
        }
    }

    #[test]
    fn solutions_and_transposed_solutions() {
        for n in [1, 2, 3, 7, 20] {
            check(n, |re, _| re);
            check(n, Complex64::new);
        }
        // Nothing to solve.
        assert_eq!(factor::<f64>(0, &mut [], &mut []), Ok(()));
        solve::<f64>(0, &[], &[], &mut []);
    }

    #[test]
    fn a_singular_matrix_names_its_column() {
        let mut a = [1.0, 2.0, 3.0, 2.0, 4.0, 6.0, 0.0, 1.0, 5.0];
        assert_eq!(factor(3, &mut a, &mut [0.0; 3]), Err(1));
        let mut a = [f64::INFINITY, 1.0, 1.0, 1.0];
        assert_eq!(factor(2, &mut a, &mut [0.0; 2]), Err(0));
    }
}
