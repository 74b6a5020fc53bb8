//! Euler parameters back to unit norm after a step.

use crate::scalar::Scalar;
use crate::system::System;

/// p = p / |p| for every block of Euler parameters of `z`, or of a state that begins with it.
///
/// A step leaves |p| = 1 + O(h^(order + 1)); the equations hold for any |p|, but drift would accumulate. Being a part
/// of the discrete map it is analytic in p, so that derivatives of the map contain it. A block of zeros becomes NaN,
/// which the check that ends every step reports.
#[inline(always)]
pub fn renormalise<M: System>(system: &M, z: &mut [M::S]) {
    for &offset in system.euler_parameters() {
        if let Some(p) = z.get_mut(offset..).and_then(|p| p.first_chunk_mut::<4>()) {
            let ([e0, e1, e2, e3], norm) = (*p, norm(*p));
            *p = [e0 / norm, e1 / norm, e2 / norm, e3 / norm];
        }
    }
}

/// The same for a state in coordinate form: pd = pd / |p| with the old |p|, so that the angular velocity 2 E pd / |p|² stays.
pub(crate) fn renormalise_with_rates<M: System>(system: &M, z: &mut [M::S], zd: &mut [M::S]) {
    for &offset in system.euler_parameters() {
        let (p, pd) = (z.get(offset..), zd.get_mut(offset..));
        if let (Some(p), Some(pd)) =
            (p.and_then(|p| p.first_chunk()), pd.and_then(|pd| pd.first_chunk_mut::<4>()))
        {
            let norm = norm(*p);
            for rate in pd {
                *rate /= norm;
            }
        }
    }
    renormalise(system, z);
}

/// |p|
#[inline(always)]
fn norm<S: Scalar>([e0, e1, e2, e3]: [S; 4]) -> S {
    (e0 * e0 + e1 * e1 + e2 * e2 + e3 * e3).sqrt()
}
