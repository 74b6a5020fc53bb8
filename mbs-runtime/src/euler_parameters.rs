//! From coordinate form to joint form and back, where Euler parameters stand in z.
//!
//! z and v run in parallel: a block of Euler parameters is four values in z and three in v, every other coordinate one in both.
//!
//! | symbol | meaning |
//! |---|---|
//! | p | Euler parameters, scalar first, of any length |
//! | ω | angular velocity in the frame of the body |
//! | Ḡ(p) | 3 × 4: rows (−e1, e0, e3, −e2), (−e2, −e3, e0, e1), (−e3, e2, −e1, e0) |
//! | N, L | zd = N v, v = L zd |
//!
//! ```text
//! ω  = 2 Ḡ pd/|p|²                              pd  = Ḡᵀ ω/2
//! ωd = 2 Ḡ pdd/|p|² − 2 (p·pd)/|p|² ω           pdd = Ḡᵀ ωd/2 + Ḡ(pd)ᵀ ω/2
//! ```

use crate::error::EvalError;
use crate::scalar::Scalar;
use crate::system::System;

/// 2 Ḡ(p) x
#[inline(always)]
fn twice<S: Scalar>([e0, e1, e2, e3]: [S; 4], [x0, x1, x2, x3]: [S; 4]) -> [S; 3] {
    let two = S::from_f64(2.0);
    [
        two * (e0 * x1 - e1 * x0 + e3 * x2 - e2 * x3),
        two * (e0 * x2 - e2 * x0 + e1 * x3 - e3 * x1),
        two * (e0 * x3 - e3 * x0 + e2 * x1 - e1 * x2),
    ]
}

/// 2 Ḡ(p) x/|p|²
#[inline(always)]
pub(crate) fn angular<S: Scalar>([e0, e1, e2, e3]: [S; 4], [x0, x1, x2, x3]: [S; 4]) -> [S; 3] {
    let factor = S::from_f64(2.0) / (e0 * e0 + e1 * e1 + e2 * e2 + e3 * e3);
    [
        factor * (e0 * x1 - e1 * x0 + e3 * x2 - e2 * x3),
        factor * (e0 * x2 - e2 * x0 + e1 * x3 - e3 * x1),
        factor * (e0 * x3 - e3 * x0 + e2 * x1 - e1 * x2),
    ]
}

/// Ḡ(p)ᵀ ω/2
#[inline(always)]
pub(crate) fn parameters<S: Scalar>([e0, e1, e2, e3]: [S; 4], [a, b, c]: [S; 3]) -> [S; 4] {
    let half = S::from_f64(0.5);
    [
        half * (-e1 * a - e2 * b - e3 * c),
        half * (e0 * a - e3 * b + e2 * c),
        half * (e3 * a + e0 * b - e1 * c),
        half * (-e2 * a + e1 * b + e0 * c),
    ]
}

fn dot<S: Scalar>(a: [S; 4], b: [S; 4]) -> S {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3]
}

/// A part of z: one coordinate, or a block of Euler parameters; with its offsets in z and in v.
enum Part {
    One(usize, usize),
    Block(usize, usize),
}

/// The parts of z in their order.
fn parts<M: System>(system: &M) -> impl Iterator<Item = Part> {
    let nq = system.dims().nq;
    let blocks = system.euler_parameters();
    let (mut i, mut k) = (0, 0);
    core::iter::from_fn(move || {
        if i >= nq {
            return None;
        }
        if blocks.contains(&i) {
            (i, k) = (i + 4, k + 3);
            Some(Part::Block(i - 4, k - 3))
        } else {
            (i, k) = (i + 1, k + 1);
            Some(Part::One(i - 1, k - 1))
        }
    })
}

/// The blocks of Euler parameters: their offsets in z and in v.
pub(crate) fn blocks<M: System>(system: &M) -> impl Iterator<Item = (usize, usize)> {
    parts(system).filter_map(|part| match part {
        Part::One(..) => None,
        Part::Block(i, k) => Some((i, k)),
    })
}

/// The velocities in their order, each with a coordinate: its own, or the first of its block of Euler parameters; and the first velocity of that block.
pub(crate) fn velocity_columns<M: System>(system: &M) -> impl Iterator<Item = (usize, usize, Option<usize>)> {
    parts(system).flat_map(|part| {
        let (first, count, i, block) = match part {
            Part::One(i, k) => (k, 1, i, None),
            Part::Block(i, k) => (k, 3, i, Some(k)),
        };
        (first..first + count).map(move |j| (j, i, block))
    })
}

/// The unit of a velocity, without that of time.
pub(crate) fn velocity_unit<M: System>(system: &M, velocity: usize) -> f64 {
    velocity_columns(system)
        .nth(velocity)
        .map_or(1.0, |(_, coordinate, _)| system.units().coordinate(coordinate))
}

/// `N` values from `offset`; a slice that ends before is an error.
#[inline(always)]
pub(crate) fn read<const N: usize, S: Copy>(
    what: &'static str,
    x: &[S],
    offset: usize,
) -> Result<[S; N], EvalError> {
    let wrong = EvalError::Length { what, expected: offset + N, found: x.len() };
    x.get(offset..).and_then(|x| x.first_chunk()).copied().ok_or(wrong)
}

#[inline(always)]
pub(crate) fn write<const N: usize, S: Copy>(
    what: &'static str,
    x: &mut [S],
    offset: usize,
    values: [S; N],
) -> Result<(), EvalError> {
    let wrong = EvalError::Length { what, expected: offset + N, found: x.len() };
    *x.get_mut(offset..).and_then(|x| x.first_chunk_mut()).ok_or(wrong)? = values;
    Ok(())
}

/// v = L(z) zd
pub fn velocities<M: System>(system: &M, z: &[M::S], zd: &[M::S], v: &mut [M::S]) -> Result<(), EvalError> {
    for part in parts(system) {
        match part {
            Part::One(i, k) => write("v", v, k, read::<1, _>("zd", zd, i)?)?,
            Part::Block(i, k) => write("v", v, k, angular(read("z", z, i)?, read("zd", zd, i)?))?,
        }
    }
    Ok(())
}

/// vd = L zdd + Ld zd
pub fn accelerations<M: System>(
    system: &M,
    z: &[M::S],
    zd: &[M::S],
    zdd: &[M::S],
    vd: &mut [M::S],
) -> Result<(), EvalError> {
    for part in parts(system) {
        match part {
            Part::One(i, k) => write("vd", vd, k, read::<1, _>("zdd", zdd, i)?)?,
            Part::Block(i, k) => {
                let (p, pd): ([_; 4], [_; 4]) = (read("z", z, i)?, read("zd", zd, i)?);
                let (omega, [a, b, c]) = (angular(p, pd), angular(p, read("zdd", zdd, i)?));
                // Ld pd = −2 (p·pd)/|p|² ω
                let stretch = M::S::from_f64(-2.0) * dot(p, pd) / dot(p, p);
                let [x, y, z] = omega;
                write("vd", vd, k, [a + stretch * x, b + stretch * y, c + stretch * z])?;
            }
        }
    }
    Ok(())
}

/// zd = N(z) v
pub fn coordinate_rates<M: System>(
    system: &M,
    z: &[M::S],
    v: &[M::S],
    zd: &mut [M::S],
) -> Result<(), EvalError> {
    for part in parts(system) {
        match part {
            Part::One(i, k) => write("zd", zd, i, read::<1, _>("v", v, k)?)?,
            Part::Block(i, k) => write("zd", zd, i, parameters(read("z", z, i)?, read("v", v, k)?))?,
        }
    }
    Ok(())
}

/// Row i of a matrix with this many columns.
#[inline(always)]
fn row<'a, S>(what: &'static str, x: &'a [S], i: usize, columns: usize) -> Result<&'a [S], EvalError> {
    let wrong = EvalError::Length { what, expected: (i + 1) * columns, found: x.len() };
    x.get(i * columns..(i + 1) * columns).ok_or(wrong)
}

/// Writes row i of a matrix.
#[inline(always)]
fn put_row<S: Copy>(
    what: &'static str,
    x: &mut [S],
    i: usize,
    columns: usize,
    values: &[S],
) -> Result<(), EvalError> {
    let wrong = EvalError::Length { what, expected: (i + 1) * columns, found: x.len() };
    let to = x.get_mut(i * columns..(i + 1) * columns).ok_or(wrong)?;
    for (to, &value) in to.iter_mut().zip(values) {
        *to = value;
    }
    Ok(())
}

/// N values of column k, from row i on.
#[inline(always)]
pub(crate) fn column<const N: usize, S: Scalar>(
    what: &'static str,
    x: &[S],
    i: usize,
    k: usize,
    columns: usize,
) -> Result<[S; N], EvalError> {
    let wrong = EvalError::Length { what, expected: (i + N) * columns, found: x.len() };
    let rows = x.get(i * columns..(i + N) * columns).ok_or(wrong)?;
    let mut values = [S::ZERO; N];
    for (to, row) in values.iter_mut().zip(rows.chunks_exact(columns.max(1))) {
        *to = *row.get(k).ok_or(wrong)?;
    }
    Ok(values)
}

#[inline(always)]
pub(crate) fn put_column<const N: usize, S: Scalar>(
    what: &'static str,
    x: &mut [S],
    i: usize,
    k: usize,
    columns: usize,
    values: [S; N],
) -> Result<(), EvalError> {
    let wrong = EvalError::Length { what, expected: (i + N) * columns, found: x.len() };
    let rows = x.get_mut(i * columns..(i + N) * columns).ok_or(wrong)?;
    for (value, row) in values.into_iter().zip(rows.chunks_exact_mut(columns.max(1))) {
        *row.get_mut(k).ok_or(wrong)? = value;
    }
    Ok(())
}

/// Adds to N values of column k, from row i on.
#[inline(always)]
pub(crate) fn add_column<const N: usize, S: Scalar>(
    what: &'static str,
    x: &mut [S],
    i: usize,
    k: usize,
    columns: usize,
    values: [S; N],
) -> Result<(), EvalError> {
    let wrong = EvalError::Length { what, expected: (i + N) * columns, found: x.len() };
    let rows = x.get_mut(i * columns..(i + N) * columns).ok_or(wrong)?;
    for (value, row) in values.into_iter().zip(rows.chunks_exact_mut(columns.max(1))) {
        *row.get_mut(k).ok_or(wrong)? += value;
    }
    Ok(())
}

/// For the columns of changes z′: θ′ = L(z) z′.
#[inline(always)]
pub(crate) fn tangents<M: System>(
    system: &M,
    z: &[M::S],
    columns: usize,
    change: &[M::S],
    theta: &mut [M::S],
) -> Result<(), EvalError> {
    if system.euler_parameters().is_empty() {
        let entries = system.dims().nq * columns;
        return put_row("theta", theta, 0, entries, row("z'", change, 0, entries)?);
    }
    for part in parts(system) {
        match part {
            Part::One(i, j) => {
                put_row("theta", theta, j, columns, row("z'", change, i, columns)?)?;
            }
            Part::Block(i, j) => {
                let p = read("z", z, i)?;
                for k in 0..columns {
                    let omega = angular(p, column("z'", change, i, k, columns)?);
                    put_column("theta", theta, j, k, columns, omega)?;
                }
            }
        }
    }
    Ok(())
}

/// For the columns of changes z′, v′: zd′ = N(z) v′ + N(z′) v.
#[inline(always)]
pub(crate) fn rates<M: System>(
    system: &M,
    z: &[M::S],
    v: &[M::S],
    columns: usize,
    change: &[M::S],
    v_change: &[M::S],
    zd_change: &mut [M::S],
) -> Result<(), EvalError> {
    if system.euler_parameters().is_empty() {
        let entries = system.dims().nq * columns;
        return put_row("zd'", zd_change, 0, entries, row("v'", v_change, 0, entries)?);
    }
    for part in parts(system) {
        match part {
            Part::One(i, j) => {
                put_row("zd'", zd_change, i, columns, row("v'", v_change, j, columns)?)?;
            }
            Part::Block(i, j) => {
                let (p, omega) = (read("z", z, i)?, read("v", v, j)?);
                for k in 0..columns {
                    let mut sum = parameters(p, column("v'", v_change, j, k, columns)?);
                    let turned = parameters(column("z'", change, i, k, columns)?, omega);
                    for (sum, turned) in sum.iter_mut().zip(turned) {
                        *sum += turned;
                    }
                    put_column("zd'", zd_change, i, k, columns, sum)?;
                }
            }
        }
    }
    Ok(())
}

/// For the columns of changes: z′ = K⁻¹ z′ with K = 1 − α N(·) v, the derivative of an implicit stage z = base + α N(z) v. Of a block
/// N(p) ω = Ω p with Ω² = −|ω|²/4 and Ωᵀ = −Ω, so K⁻¹ = (1 + αΩ)/(1 + α²|ω|²/4), and K⁻ᵀ is the same with −α.
pub(crate) fn solve_rates<M: System>(
    system: &M,
    v: &[M::S],
    alpha: M::S,
    columns: usize,
    change: &mut [M::S],
) -> Result<(), EvalError> {
    for part in parts(system) {
        if let Part::Block(i, j) = part {
            let omega = read("v", v, j)?;
            let [a, b, c] = omega;
            let quarter = M::S::from_f64(0.25);
            let scale = M::S::ONE + quarter * alpha * alpha * (a * a + b * b + c * c);
            for k in 0..columns {
                let mut x: [M::S; 4] = column("z'", change, i, k, columns)?;
                let turned = parameters(x, omega);
                for (x, turned) in x.iter_mut().zip(turned) {
                    *x = (*x + alpha * turned) / scale;
                }
                put_column("z'", change, i, k, columns, x)?;
            }
        }
    }
    Ok(())
}

/// For the columns of changes: z′ = z′ + α N(z) v′.
pub(crate) fn add_rates<M: System>(
    system: &M,
    z: &[M::S],
    alpha: M::S,
    columns: usize,
    v_change: &[M::S],
    change: &mut [M::S],
) -> Result<(), EvalError> {
    for part in parts(system) {
        match part {
            Part::One(i, j) => {
                for k in 0..columns {
                    let [x]: [M::S; 1] = column("v'", v_change, j, k, columns)?;
                    add_column("z'", change, i, k, columns, [alpha * x])?;
                }
            }
            Part::Block(i, j) => {
                let p = read("z", z, i)?;
                for k in 0..columns {
                    let turned = parameters(p, column("v'", v_change, j, k, columns)?);
                    add_column("z'", change, i, k, columns, turned.map(|x| alpha * x))?;
                }
            }
        }
    }
    Ok(())
}

/// The transpose of [`add_rates`]: v̄ = v̄ + α N(z)ᵀ z̄.
pub(crate) fn add_rates_to_velocities<M: System>(
    system: &M,
    z: &[M::S],
    alpha: M::S,
    columns: usize,
    z_bar: &[M::S],
    v_bar: &mut [M::S],
) -> Result<(), EvalError> {
    let quarter = M::S::from_f64(0.25);
    for part in parts(system) {
        match part {
            Part::One(i, j) => {
                for k in 0..columns {
                    let [x]: [M::S; 1] = column("z̄", z_bar, i, k, columns)?;
                    add_column("v̄", v_bar, j, k, columns, [alpha * x])?;
                }
            }
            Part::Block(i, j) => {
                let p = read("z", z, i)?;
                for k in 0..columns {
                    // Nᵀ = Ḡ/2
                    let turned = twice(p, column("z̄", z_bar, i, k, columns)?);
                    add_column("v̄", v_bar, j, k, columns, turned.map(|x| alpha * quarter * x))?;
                }
            }
        }
    }
    Ok(())
}

/// zdd = N(z) vd + N(zd) v with zd = N(z) v, times α: z̃ = z̃ + α zdd. Of a block N(N(p) ω) ω = −|ω|²/4 p.
pub(crate) fn add_turns<M: System>(
    system: &M,
    z: &[M::S],
    v: &[M::S],
    vd: &[M::S],
    alpha: M::S,
    to: &mut [M::S],
) -> Result<(), EvalError> {
    add_rates(system, z, alpha, 1, vd, to)?;
    for (i, j) in blocks(system) {
        let (p, omega): ([M::S; 4], _) = (read("z", z, i)?, read("v", v, j)?);
        let scale = alpha * quarter_square(omega);
        add_column("zdd", to, i, 0, 1, p.map(|p| -(scale * p)))?;
    }
    Ok(())
}

/// Its columns of changes, with vd + c for vd; c may be nothing. In this order: z, v, vd, c.
pub(crate) fn add_turns_change<M: System>(
    system: &M,
    columns: usize,
    [z, v, vd, c]: [&[M::S]; 4],
    [z_change, v_change, vd_change, c_change]: [&[M::S]; 4],
    alpha: M::S,
    to: &mut [M::S],
) -> Result<(), EvalError> {
    add_rates(system, z, alpha, columns, vd_change, to)?;
    if !c_change.is_empty() {
        add_rates(system, z, alpha, columns, c_change, to)?;
    }
    let half = M::S::from_f64(0.5);
    for (i, j) in blocks(system) {
        let (p, omega): ([M::S; 4], [M::S; 3]) = (read("z", z, i)?, read("v", v, j)?);
        let acceleration = with_excess(vd, c, j)?;
        let square = quarter_square(omega);
        for k in 0..columns {
            let p_change: [M::S; 4] = column("z'", z_change, i, k, columns)?;
            let omega_change: [M::S; 3] = column("v'", v_change, j, k, columns)?;
            let product =
                half * omega.iter().zip(&omega_change).fold(M::S::ZERO, |sum, (&a, &b)| sum + a * b);
            let mut sum = parameters(p_change, acceleration);
            for (sum, (&p, &p_change)) in sum.iter_mut().zip(p.iter().zip(&p_change)) {
                *sum = alpha * (*sum - square * p_change - product * p);
            }
            add_column("zdd'", to, i, k, columns, sum)?;
        }
    }
    Ok(())
}

/// Its transpose as far as z and v go: z̄ and v̄ take what weights of α zdd make of them.
pub(crate) fn add_turns_transposed<M: System>(
    system: &M,
    columns: usize,
    [z, v, vd, c]: [&[M::S]; 4],
    alpha: M::S,
    bar: &[M::S],
    z_bar: &mut [M::S],
    v_bar: &mut [M::S],
) -> Result<(), EvalError> {
    let half = M::S::from_f64(0.5);
    for (i, j) in blocks(system) {
        let (p, omega): ([M::S; 4], [M::S; 3]) = (read("z", z, i)?, read("v", v, j)?);
        let acceleration = with_excess(vd, c, j)?;
        let square = quarter_square(omega);
        for k in 0..columns {
            let x: [M::S; 4] = column("zdd", bar, i, k, columns)?;
            let mut turned = parameters(x, acceleration);
            for (turned, &x) in turned.iter_mut().zip(&x) {
                *turned = -(alpha * (*turned + square * x));
            }
            add_column("z̄", z_bar, i, k, columns, turned)?;
            let along = alpha * half * dot(p, x);
            add_column("v̄", v_bar, j, k, columns, omega.map(|omega| -(along * omega)))?;
        }
    }
    Ok(())
}

/// The angular acceleration of a block, and what is carried beside it.
fn with_excess<S: Scalar>(vd: &[S], c: &[S], j: usize) -> Result<[S; 3], EvalError> {
    let mut sum: [S; 3] = read("vd", vd, j)?;
    if !c.is_empty() {
        let c: [S; 3] = read("c", c, j)?;
        for (sum, c) in sum.iter_mut().zip(c) {
            *sum += c;
        }
    }
    Ok(sum)
}

/// |ω|²/4
fn quarter_square<S: Scalar>([a, b, c]: [S; 3]) -> S {
    S::from_f64(0.25) * (a * a + b * b + c * c)
}

/// For the columns of changes z′, zd′: v′ = L(z) zd′ + (L zd)_z z′. With ω = 2 Ḡ(p) pd/|p|², which is bilinear but for the norm,
/// ω′ = 2 Ḡ(p) pd′/|p|² + 2 Ḡ(p′) pd/|p|² − 2 (p·p′)/|p|² ω.
pub(crate) fn velocities_change<M: System>(
    system: &M,
    z: &[M::S],
    zd: &[M::S],
    columns: usize,
    change: &[M::S],
    zd_change: &[M::S],
    v_change: &mut [M::S],
) -> Result<(), EvalError> {
    for part in parts(system) {
        match part {
            Part::One(i, j) => {
                put_row("v'", v_change, j, columns, row("zd'", zd_change, i, columns)?)?;
            }
            Part::Block(i, j) => {
                let (p, pd): ([_; 4], [_; 4]) = (read("z", z, i)?, read("zd", zd, i)?);
                let (square, omega) = (dot(p, p), angular(p, pd));
                for k in 0..columns {
                    let (p_change, pd_change): ([_; 4], [_; 4]) =
                        (column("z'", change, i, k, columns)?, column("zd'", zd_change, i, k, columns)?);
                    let turned = angular(p, pd_change);
                    let across = twice(p_change, pd).map(|x| x / square);
                    let stretch = M::S::from_f64(-2.0) * dot(p, p_change) / square;
                    let mut sum = turned;
                    for ((sum, across), omega) in sum.iter_mut().zip(across).zip(omega) {
                        *sum += across + stretch * omega;
                    }
                    put_column("v'", v_change, j, k, columns, sum)?;
                }
            }
        }
    }
    Ok(())
}

/// For the columns of changes of z: what they become by the normalisation of all Euler parameters, p′/|p| − p (p·p′)/|p|³. `z`
/// is not normalised yet.
#[inline(always)]
pub(crate) fn normalised<M: System>(
    system: &M,
    z: &[M::S],
    columns: usize,
    change: &mut [M::S],
) -> Result<(), EvalError> {
    for &offset in system.euler_parameters() {
        let p: [M::S; 4] = read("z", z, offset)?;
        let square = dot(p, p);
        let norm = square.sqrt();
        for k in 0..columns {
            let mut to: [M::S; 4] = column("z'", change, offset, k, columns)?;
            let part = dot(p, to) / square;
            for (to, p) in to.iter_mut().zip(p) {
                *to = (*to - part * p) / norm;
            }
            put_column("z'", change, offset, k, columns, to)?;
        }
    }
    Ok(())
}

/// The transpose of [`tangents`]: z̄ = z̄ + L(z)ᵀ θ̄.
pub(crate) fn add_tangents_transposed<M: System>(
    system: &M,
    z: &[M::S],
    columns: usize,
    theta: &[M::S],
    change: &mut [M::S],
) -> Result<(), EvalError> {
    for part in parts(system) {
        match part {
            Part::One(i, j) => {
                for k in 0..columns {
                    add_column("z'", change, i, k, columns, column::<1, _>("theta", theta, j, k, columns)?)?;
                }
            }
            Part::Block(i, j) => {
                let p = read("z", z, i)?;
                // (2 Ḡ/|p|²)ᵀ
                let factor = M::S::from_f64(4.0) / dot(p, p);
                for k in 0..columns {
                    let sum = parameters(p, column("theta", theta, j, k, columns)?).map(|x| factor * x);
                    add_column("z'", change, i, k, columns, sum)?;
                }
            }
        }
    }
    Ok(())
}

/// The transpose of [`rates`]: z̄ = z̄ + (N(z′) v)ᵀ z̄d, v̄ = v̄ + Nᵀ z̄d. Ḡ(p)ᵀ ω is antisymmetric in p.
pub(crate) fn add_rates_transposed<M: System>(
    system: &M,
    z: &[M::S],
    v: &[M::S],
    columns: usize,
    zd_change: &[M::S],
    change: &mut [M::S],
    v_change: &mut [M::S],
) -> Result<(), EvalError> {
    let quarter = M::S::from_f64(0.25);
    for part in parts(system) {
        match part {
            Part::One(i, j) => {
                for k in 0..columns {
                    add_column(
                        "v'",
                        v_change,
                        j,
                        k,
                        columns,
                        column::<1, _>("zd'", zd_change, i, k, columns)?,
                    )?;
                }
            }
            Part::Block(i, j) => {
                let (p, omega) = (read("z", z, i)?, read("v", v, j)?);
                for k in 0..columns {
                    let bar = column("zd'", zd_change, i, k, columns)?;
                    add_column("v'", v_change, j, k, columns, twice(p, bar).map(|x| quarter * x))?;
                    add_column("z'", change, i, k, columns, parameters(bar, omega).map(|x| -x))?;
                }
            }
        }
    }
    Ok(())
}

/// The transpose of [`velocities_change`]: z̄ = z̄ + ((L zd)_z)ᵀ v̄, z̄d = z̄d + Lᵀ v̄. Ḡ(p) pd is antisymmetric in p and pd.
pub(crate) fn add_velocities_transposed<M: System>(
    system: &M,
    z: &[M::S],
    zd: &[M::S],
    columns: usize,
    v_change: &[M::S],
    change: &mut [M::S],
    zd_change: &mut [M::S],
) -> Result<(), EvalError> {
    for part in parts(system) {
        match part {
            Part::One(i, j) => {
                for k in 0..columns {
                    let bar = column::<1, _>("v'", v_change, j, k, columns)?;
                    add_column("zd'", zd_change, i, k, columns, bar)?;
                }
            }
            Part::Block(i, j) => {
                let (p, pd): ([_; 4], [_; 4]) = (read("z", z, i)?, read("zd", zd, i)?);
                let (square, omega) = (dot(p, p), angular(p, pd));
                let factor = M::S::from_f64(4.0) / square;
                for k in 0..columns {
                    let bar: [M::S; 3] = column("v'", v_change, j, k, columns)?;
                    let turned = parameters(p, bar).map(|x| factor * x);
                    add_column("zd'", zd_change, i, k, columns, turned)?;
                    let mut sum = parameters(pd, bar).map(|x| -factor * x);
                    let along = omega[0] * bar[0] + omega[1] * bar[1] + omega[2] * bar[2];
                    let stretch = M::S::from_f64(-2.0) * along / square;
                    for (sum, p) in sum.iter_mut().zip(p) {
                        *sum += stretch * p;
                    }
                    add_column("z'", change, i, k, columns, sum)?;
                }
            }
        }
    }
    Ok(())
}

/// zdd = N vd + Nd v
pub fn coordinate_accelerations<M: System>(
    system: &M,
    z: &[M::S],
    v: &[M::S],
    vd: &[M::S],
    zdd: &mut [M::S],
) -> Result<(), EvalError> {
    for part in parts(system) {
        match part {
            Part::One(i, k) => write("zdd", zdd, i, read::<1, _>("vd", vd, k)?)?,
            Part::Block(i, k) => {
                let (p, omega): ([_; 4], [_; 3]) = (read("z", z, i)?, read("v", v, k)?);
                let turned = parameters(p, read("vd", vd, k)?);
                // Nd v = Ḡ(pd)ᵀ ω/2
                let turning = parameters(parameters(p, omega), omega);
                let mut sum = turned;
                for (sum, turning) in sum.iter_mut().zip(turning) {
                    *sum += turning;
                }
                write("zdd", zdd, i, sum)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::Dims;

    /// A coordinate, a block, another coordinate.
    struct Mixed;

    impl System for Mixed {
        type S = f64;
        fn dims(&self) -> Dims {
            Dims { nq: 6, nv: 5, ..Dims::ZERO }
        }
        fn euler_parameters(&self) -> &[usize] {
            &[1]
        }
    }

    #[test]
    fn there_and_back() {
        let z = [0.3, 0.9, -0.4, 0.5, 0.2, 7.0];
        let (v, vd) = ([1.5, 0.7, -1.1, 0.4, -2.0], [0.2, 3.0, 0.1, -0.8, 1.0]);
        let (mut zd, mut zdd, mut back, mut back_d) = ([0.0; 6], [0.0; 6], [0.0; 5], [0.0; 5]);
        coordinate_rates(&Mixed, &z, &v, &mut zd).unwrap();
        coordinate_accelerations(&Mixed, &z, &v, &vd, &mut zdd).unwrap();
        velocities(&Mixed, &z, &zd, &mut back).unwrap();
        accelerations(&Mixed, &z, &zd, &zdd, &mut back_d).unwrap();
        for i in 0..5 {
            assert!((back[i] - v[i]).abs() < 1e-14, "{back:?} {v:?}");
            assert!((back_d[i] - vd[i]).abs() < 1e-14, "{back_d:?} {vd:?}");
        }
        // N v is tangent to the sphere of p.
        assert!((1..5).map(|i| z[i] * zd[i]).sum::<f64>().abs() < 1e-15);
        assert!(velocities(&Mixed, &z, &zd, &mut [0.0; 4]).is_err());
    }

    /// ⟨v̄, v′⟩ = ⟨transposed(v̄), (z′, zd′)⟩
    #[test]
    fn changes_of_velocities_are_transposed() {
        let (z, zd) = ([0.3, 0.9, -0.4, 0.5, 0.2, 7.0], [1.0, 0.4, 0.8, -0.3, 1.2, 2.0]);
        let (z_change, zd_change) = ([0.1, 0.7, -0.2, 0.3, 0.9, 1.1], [0.5, -0.6, 0.2, 1.4, 0.3, -0.7]);
        let bar = [0.4, 1.3, -0.8, 0.6, 2.1];
        let (mut v_change, mut z_bar, mut zd_bar) = ([0.0; 5], [0.0; 6], [0.0; 6]);
        velocities_change(&Mixed, &z, &zd, 1, &z_change, &zd_change, &mut v_change).unwrap();
        add_velocities_transposed(&Mixed, &z, &zd, 1, &bar, &mut z_bar, &mut zd_bar).unwrap();
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let (forward, back) = (dot(&bar, &v_change), dot(&z_bar, &z_change) + dot(&zd_bar, &zd_change));
        assert!((forward - back).abs() < 1e-14 * forward.abs().max(1.0), "{forward} {back}");
    }

    /// vd is the rate of v, also where |p| changes.
    #[test]
    fn accelerations_are_rates_of_velocities() {
        let at = |t: f64| {
            let z = [t * t, 1.0 + t, 0.5 * t * t - 0.3, 0.2 + 2.0 * t, t * t * t, -t];
            let zd = [2.0 * t, 1.0, t, 2.0, 3.0 * t * t, -1.0];
            let zdd = [2.0, 0.0, 1.0, 0.0, 6.0 * t, 0.0];
            (z, zd, zdd)
        };
        let v = |t: f64| {
            let (z, zd, _) = at(t);
            let mut v = [0.0; 5];
            velocities(&Mixed, &z, &zd, &mut v).unwrap();
            v
        };
        let (t, h) = (0.4, 1e-5);
        let (z, zd, zdd) = at(t);
        let mut vd = [0.0; 5];
        accelerations(&Mixed, &z, &zd, &zdd, &mut vd).unwrap();
        let (before, after) = (v(t - h), v(t + h));
        for i in 0..5 {
            // Central differences: h² and rounding/h.
            assert!((vd[i] - (after[i] - before[i]) / (2.0 * h)).abs() < 1e-8);
        }
    }
}
