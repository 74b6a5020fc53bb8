//! Vectors, matrices and truncated Taylor series in time: all that the oracle computes with.

use std::ops::{Add, Mul, Neg, Sub};

pub(super) type V3<T = f64> = [T; 3];
/// By rows.
pub(super) type M3<T = f64> = [[T; 3]; 3];

/// What the oracle's geometry is written in: numbers, or numbers that move.
pub(super) trait Number:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Neg<Output = Self>
{
    fn of(x: f64) -> Self;
}

impl Number for f64 {
    fn of(x: f64) -> Self {
        x
    }
}

/// c₀ + c₁ τ + c₂ τ², τ the time from now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Series(pub [f64; 3]);

impl Number for Series {
    fn of(x: f64) -> Self {
        Series([x, 0.0, 0.0])
    }
}

impl Add for Series {
    type Output = Self;
    fn add(self, o: Self) -> Self {
        Series(std::array::from_fn(|i| self.0[i] + o.0[i]))
    }
}

impl Sub for Series {
    type Output = Self;
    fn sub(self, o: Self) -> Self {
        self + -o
    }
}

impl Neg for Series {
    type Output = Self;
    fn neg(self) -> Self {
        Series(self.0.map(|x| -x))
    }
}

impl Mul for Series {
    type Output = Self;
    fn mul(self, o: Self) -> Self {
        let (a, b) = (self.0, o.0);
        Series([a[0] * b[0], a[0] * b[1] + a[1] * b[0], a[0] * b[2] + a[1] * b[1] + a[2] * b[0]])
    }
}

impl Series {
    /// f(self) from f, f′, f″ at its value.
    fn of_function(self, [f, d, dd]: [f64; 3]) -> Self {
        let [_, x1, x2] = self.0;
        Series([f, d * x1, d * x2 + 0.5 * dd * x1 * x1])
    }

    pub(super) fn sqrt(self) -> Self {
        let root = self.0[0].sqrt();
        self.of_function([root, 0.5 / root, -0.25 / (root * self.0[0])])
    }

    pub(super) fn sin(self) -> Self {
        let (s, c) = self.0[0].sin_cos();
        self.of_function([s, c, -s])
    }

    fn recip(self) -> Self {
        let x = self.0[0];
        self.of_function([1.0 / x, -1.0 / (x * x), 2.0 / (x * x * x)])
    }

    /// The angle of (x, y) = (self, y), by its rate (x ẏ − y ẋ)/(x² + y²).
    pub(super) fn angle_to(self, y: Self) -> Self {
        let x = self;
        let rate = (x * y.rate() - y * x.rate()) * (x * x + y * y).recip();
        Series([y.0[0].atan2(x.0[0]), rate.0[0], 0.5 * rate.0[1]])
    }

    /// Its derivative by time; what it says of τ² is not known.
    pub(super) fn rate(self) -> Self {
        Series([self.0[1], 2.0 * self.0[2], 0.0])
    }
}

pub(super) fn dot<T: Number>(a: V3<T>, b: V3<T>) -> T {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

pub(super) fn cross<T: Number>(a: V3<T>, b: V3<T>) -> V3<T> {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

pub(super) fn add<T: Number>(a: V3<T>, b: V3<T>) -> V3<T> {
    std::array::from_fn(|i| a[i] + b[i])
}

pub(super) fn sub<T: Number>(a: V3<T>, b: V3<T>) -> V3<T> {
    std::array::from_fn(|i| a[i] - b[i])
}

pub(super) fn scale<T: Number>(s: T, a: V3<T>) -> V3<T> {
    a.map(|x| s * x)
}

pub(super) fn norm(a: V3) -> f64 {
    dot(a, a).sqrt()
}

pub(super) fn unit(a: V3) -> V3 {
    scale(1.0 / norm(a), a)
}

/// A a
pub(super) fn apply<T: Number>(a: M3<T>, x: V3<T>) -> V3<T> {
    a.map(|row| dot(row, x))
}

pub(super) fn transposed<T: Number>(a: M3<T>) -> M3<T> {
    std::array::from_fn(|i| std::array::from_fn(|j| a[j][i]))
}

pub(super) fn product<T: Number>(a: M3<T>, b: M3<T>) -> M3<T> {
    let columns = transposed(b);
    std::array::from_fn(|i| std::array::from_fn(|j| dot(a[i], columns[j])))
}

pub(super) fn lift<T: Number>(a: V3) -> V3<T> {
    a.map(T::of)
}

pub(super) fn lift_matrix<T: Number>(a: M3) -> M3<T> {
    a.map(lift)
}

/// a × as a matrix.
pub(super) fn skew(a: V3) -> M3 {
    [[0.0, -a[2], a[1]], [a[2], 0.0, -a[0]], [-a[1], a[0], 0.0]]
}

/// Rotation by an angle about z.
pub(super) fn about_z(angle: f64) -> M3 {
    let (s, c) = angle.sin_cos();
    [[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]
}

/// Rotation of a unit quaternion, scalar first.
pub(super) fn of_quaternion([w, x, y, z]: [f64; 4]) -> M3 {
    [
        [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)],
        [2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)],
        [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)],
    ]
}
