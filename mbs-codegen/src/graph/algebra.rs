//! Vectors and matrices of three expressions, in which the mathematics is written. The graph itself has
//! scalars only.

use super::{ExprId, Graph};
use std::ops::Index;

/// Three expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vec3(pub [ExprId; 3]);

/// Nine expressions, by rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mat3(pub [[ExprId; 3]; 3]);

impl Index<usize> for Vec3 {
    type Output = ExprId;
    fn index(&self, i: usize) -> &ExprId {
        &self.0[i]
    }
}

impl Mat3 {
    /// Column j.
    pub fn column(&self, j: usize) -> Vec3 {
        Vec3([self.0[0][j], self.0[1][j], self.0[2][j]])
    }

    /// The matrix with these columns.
    pub fn from_columns(columns: [Vec3; 3]) -> Mat3 {
        Mat3(std::array::from_fn(|i| std::array::from_fn(|j| columns[j][i])))
    }

    /// Mᵀ
    pub fn transposed(&self) -> Mat3 {
        Mat3(std::array::from_fn(|i| std::array::from_fn(|j| self.0[j][i])))
    }
}

impl Graph {
    /// A constant vector.
    pub fn vector(&mut self, v: [f64; 3]) -> Vec3 {
        Vec3(v.map(|x| self.constant(x)))
    }

    /// The zero vector.
    pub fn zero_vector(&mut self) -> Vec3 {
        self.vector([0.0; 3])
    }

    /// Whether all components are the constant zero.
    pub fn is_zero_vector(&self, v: Vec3) -> bool {
        v.0.iter().all(|&x| self.is(x, 0.0))
    }

    /// a + b
    pub fn add3(&mut self, a: Vec3, b: Vec3) -> Vec3 {
        Vec3(std::array::from_fn(|i| self.add(a[i], b[i])))
    }

    /// a − b
    pub fn sub3(&mut self, a: Vec3, b: Vec3) -> Vec3 {
        Vec3(std::array::from_fn(|i| self.sub(a[i], b[i])))
    }

    /// −a
    pub fn neg3(&mut self, a: Vec3) -> Vec3 {
        Vec3(a.0.map(|x| self.neg(x)))
    }

    /// s a
    pub fn scale3(&mut self, s: ExprId, a: Vec3) -> Vec3 {
        Vec3(a.0.map(|x| self.mul(s, x)))
    }

    /// a · b
    pub fn dot3(&mut self, a: Vec3, b: Vec3) -> ExprId {
        let products: [ExprId; 3] = std::array::from_fn(|i| self.mul(a[i], b[i]));
        self.sum(&products)
    }

    /// a × b
    pub fn cross3(&mut self, a: Vec3, b: Vec3) -> Vec3 {
        Vec3(std::array::from_fn(|i| {
            let (j, k) = ((i + 1) % 3, (i + 2) % 3);
            let (p, q) = (self.mul(a[j], b[k]), self.mul(a[k], b[j]));
            self.sub(p, q)
        }))
    }

    /// |a|
    pub fn norm3(&mut self, a: Vec3) -> ExprId {
        let square = self.dot3(a, a);
        self.sqrt(square)
    }

    /// a / |a|
    pub fn unit3(&mut self, a: Vec3) -> Vec3 {
        let norm = self.norm3(a);
        Vec3(a.0.map(|x| self.div(x, norm)))
    }

    /// A constant matrix.
    pub fn matrix(&mut self, m: [[f64; 3]; 3]) -> Mat3 {
        Mat3(m.map(|row| row.map(|x| self.constant(x))))
    }

    /// The unit matrix.
    pub fn identity(&mut self) -> Mat3 {
        self.matrix([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    }

    /// M a
    pub fn apply(&mut self, m: Mat3, a: Vec3) -> Vec3 {
        Vec3(m.0.map(|row| self.dot3(Vec3(row), a)))
    }

    /// Mᵀ a
    pub fn apply_transposed(&mut self, m: Mat3, a: Vec3) -> Vec3 {
        self.apply(m.transposed(), a)
    }

    /// A B
    pub fn product(&mut self, a: Mat3, b: Mat3) -> Mat3 {
        Mat3(std::array::from_fn(|i| std::array::from_fn(|j| self.dot3(Vec3(a.0[i]), b.column(j)))))
    }

    /// A + B
    pub fn add33(&mut self, a: Mat3, b: Mat3) -> Mat3 {
        Mat3(std::array::from_fn(|i| std::array::from_fn(|j| self.add(a.0[i][j], b.0[i][j]))))
    }

    /// ã, the matrix of a ×
    pub fn skew(&mut self, a: Vec3) -> Mat3 {
        let zero = self.zero();
        let n = a.0.map(|x| self.neg(x));
        Mat3([[zero, n[2], a[1]], [a[2], zero, n[0]], [n[1], a[0], zero]])
    }

    /// The right-handed frame whose z is along `axis` and whose x is along `reference`, made orthogonal to
    /// it. Columns are x, y, z.
    pub fn frame(&mut self, axis: Vec3, reference: Vec3) -> Mat3 {
        let z = self.unit3(axis);
        let along = self.dot3(reference, z);
        let parallel = self.scale3(along, z);
        let across = self.sub3(reference, parallel);
        let x = self.unit3(across);
        let y = self.cross3(z, x);
        Mat3::from_columns([x, y, z])
    }
}
