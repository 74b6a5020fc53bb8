//! Kernels: named functions of many inputs and outputs with declared exact derivatives.
//!
//! A kernel declares its forward and reverse derivatives as graph
//! expressions (which may call kernels again), so derivatives of every order are exact.

use super::number::Number;
use super::{ExprId, Graph};

/// The kernels there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kernel {
    /// Solves a tridiagonal system of n ≥ 1 equations by elimination without pivoting (for diagonally
    /// dominant systems such as a spline's). Inputs: lower (n−1), diagonal (n), upper (n−1), right-hand
    /// side (n); outputs: x (n).
    SolveTridiagonal {
        /// Number of equations.
        n: u32,
    },
}

impl Kernel {
    /// Name in the textual form and in the runtime's `math` module.
    pub fn name(self) -> &'static str {
        match self {
            Kernel::SolveTridiagonal { .. } => "solve_tridiagonal",
        }
    }

    /// The kernel with this name and size.
    pub fn from_name(name: &str, size: u32) -> Option<Kernel> {
        match name {
            "solve_tridiagonal" if size >= 1 => Some(Kernel::SolveTridiagonal { n: size }),
            _ => None,
        }
    }

    /// The size, which identifies the kernel together with its name.
    pub fn size(self) -> u32 {
        match self {
            Kernel::SolveTridiagonal { n } => n,
        }
    }

    /// The lengths of its input arrays.
    pub fn input_runs(self) -> Vec<usize> {
        match self {
            Kernel::SolveTridiagonal { n } => {
                let n = n as usize;
                vec![n - 1, n, n - 1, n]
            }
        }
    }

    /// Number of inputs.
    pub fn inputs(self) -> usize {
        self.input_runs().iter().sum()
    }

    /// Number of outputs.
    pub fn outputs(self) -> usize {
        match self {
            Kernel::SolveTridiagonal { n } => n as usize,
        }
    }

    /// Number of scratch slots of the runtime's function.
    pub fn scratch(self) -> usize {
        match self {
            Kernel::SolveTridiagonal { n } => n as usize,
        }
    }

    /// The value.
    pub fn evaluate<N: Number>(self, inputs: &[N], outputs: &mut [N]) {
        match self {
            Kernel::SolveTridiagonal { n } => {
                let n = n as usize;
                let (lower, rest) = inputs.split_at(n - 1);
                let (diagonal, rest) = rest.split_at(n);
                let (upper, rhs) = rest.split_at(n - 1);
                solve_tridiagonal(lower, diagonal, upper, rhs, outputs);
            }
        }
    }

    /// Tangents of the outputs from tangents of the inputs.
    pub fn forward(
        self,
        graph: &mut Graph,
        inputs: &[ExprId],
        outputs: &[ExprId],
        d: &[ExprId],
    ) -> Vec<ExprId> {
        match self {
            // A x = b  ⇒  A dx = db − dA x
            Kernel::SolveTridiagonal { n } => {
                let n = n as usize;
                let (d_lower, rest) = d.split_at(n - 1);
                let (d_diagonal, rest) = rest.split_at(n);
                let (d_upper, d_rhs) = rest.split_at(n - 1);
                let mut arguments = inputs[..3 * n - 2].to_vec();
                for i in 0..n {
                    let mut terms = vec![graph.mul(d_diagonal[i], outputs[i])];
                    if i > 0 {
                        terms.push(graph.mul(d_lower[i - 1], outputs[i - 1]));
                    }
                    if i + 1 < n {
                        terms.push(graph.mul(d_upper[i], outputs[i + 1]));
                    }
                    let product = graph.sum(&terms);
                    arguments.push(graph.sub(d_rhs[i], product));
                }
                graph.solve(self, arguments)
            }
        }
    }

    /// Adjoints of the inputs from adjoints of the outputs.
    pub fn reverse(
        self,
        graph: &mut Graph,
        inputs: &[ExprId],
        outputs: &[ExprId],
        adjoint: &[ExprId],
    ) -> Vec<ExprId> {
        match self {
            // Aᵀ y = x̄,  b̄ = y,  Ā = −y xᵀ
            Kernel::SolveTridiagonal { n } => {
                let n = n as usize;
                let (lower, rest) = inputs.split_at(n - 1);
                let (diagonal, rest) = rest.split_at(n);
                let (upper, _) = rest.split_at(n - 1);
                let transposed = [upper, diagonal, lower, adjoint].concat();
                let y = graph.solve(self, transposed);
                let mut product = |i: usize, j: usize| {
                    let p = graph.mul(y[i], outputs[j]);
                    graph.neg(p)
                };
                let lower_bar: Vec<ExprId> = (1..n).map(|i| product(i, i - 1)).collect();
                let diagonal_bar: Vec<ExprId> = (0..n).map(|i| product(i, i)).collect();
                let upper_bar: Vec<ExprId> = (1..n).map(|i| product(i - 1, i)).collect();
                [lower_bar, diagonal_bar, upper_bar, y].concat()
            }
        }
    }
}

impl Graph {
    /// A linear solve whose last run is the right-hand side: zero when that is zero.
    fn solve(&mut self, kernel: Kernel, arguments: Vec<ExprId>) -> Vec<ExprId> {
        let n = kernel.outputs();
        let rhs = &arguments[arguments.len() - n..];
        if rhs.iter().all(|&b| self.is(b, 0.0)) {
            return vec![self.zero(); n];
        }
        self.call_kernel(kernel, arguments)
    }
}

/// Elimination without pivoting. The runtime's function of the same name does the same operations in the
/// same order, so that both give the same bits.
fn solve_tridiagonal<N: Number>(lower: &[N], diagonal: &[N], upper: &[N], rhs: &[N], x: &mut [N]) {
    let n = diagonal.len();
    // c_i = upper_i / pivot_i
    let mut c = Vec::with_capacity(n);
    for i in 0..n {
        let (pivot, b) = if i == 0 {
            (diagonal[0], rhs[0])
        } else {
            (diagonal[i] - lower[i - 1] * c[i - 1], rhs[i] - lower[i - 1] * x[i - 1])
        };
        c.push(if i + 1 < n { upper[i] / pivot } else { N::default() });
        x[i] = b / pivot;
    }
    for i in (0..n - 1).rev() {
        x[i] = x[i] - c[i] * x[i + 1];
    }
}
