//! What an expression can be: the node kinds and their operations.

use super::kernel::Kernel;
use crate::symbols::Group;
use std::hash::{Hash, Hasher};

/// An expression of a [`super::Graph`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExprId(pub(crate) u32);

/// An array of expressions, for gathers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ArrayId(pub(crate) u32);

/// A call of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId(pub(crate) u32);

impl ExprId {
    /// Place in the graph; operands always have a smaller one.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl ArrayId {
    /// Place in the graph's table of arrays.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl CallId {
    /// Place in the graph's table of calls.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A node; operands are ids of earlier nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    /// A finite constant, by its bits (so that it can be hashed; −0 is stored as 0).
    Constant(u64),
    /// A scalar of an argument group.
    Symbol(Group, u32),
    /// f(a)
    Unary(UnaryOp, ExprId),
    /// f(a, b)
    Binary(BinaryOp, ExprId, ExprId),
    /// `if a CMP b { x } else { y }`, operands a, b, x, y
    Select(Comparison, [ExprId; 4]),
    /// `array[index]`, the index floored and clamped to the array
    Gather(ArrayId, ExprId),
    /// The interval of sorted knots in which x lies: the largest i in 0..=n−2 with `knots[i]` ≤ x, or 0
    Locate(ArrayId, ExprId),
    /// One output of a kernel call.
    Output(CallId, u32),
}

impl Hash for Node {
    /// Two words instead of one per field: most of a model's generation is looking up nodes.
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let kind = |number: u32, operation: u8| number | u32::from(operation) << 8;
        let words = match *self {
            Node::Constant(bits) => [0, bits],
            Node::Symbol(group, index) => [pair(kind(1, group as u8), index), 0],
            Node::Unary(op, a) => [pair(kind(2, op as u8), a.0), 0],
            Node::Binary(op, a, b) => [u64::from(kind(3, op as u8)), pair(a.0, b.0)],
            Node::Select(comparison, [a, b, x, y]) => {
                let tests = pair(a.0, b.0).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                [u64::from(kind(4, comparison as u8)) ^ tests, pair(x.0, y.0)]
            }
            Node::Gather(array, index) => [5, pair(array.0, index.0)],
            Node::Locate(array, x) => [6, pair(array.0, x.0)],
            Node::Output(call, index) => [7, pair(call.0, index)],
        };
        words.into_iter().for_each(|word| state.write_u64(word));
    }
}

/// A kernel applied to arguments.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    /// Which kernel.
    pub kernel: Kernel,
    /// Its arguments, as many as [`Kernel::inputs`] says.
    pub arguments: Vec<ExprId>,
}

macro_rules! operations {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$vdoc])* $variant,)* }

        impl $name {
            /// All of them.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// The word in the textual form, and the function's name in the runtime's `math` module.
            pub fn name(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }
        }
    };
}

operations! {
    /// Operations of one operand.
    UnaryOp {
        /// −a
        Neg = "neg",
        /// √a
        Sqrt = "sqrt",
        /// sin a
        Sin = "sin",
        /// cos a
        Cos = "cos",
        /// tan a
        Tan = "tan",
        /// arcsin a
        Asin = "asin",
        /// arccos a
        Acos = "acos",
        /// arctan a
        Atan = "atan",
        /// eᵃ
        Exp = "exp",
        /// ln a
        Ln = "ln",
        /// sinh a
        Sinh = "sinh",
        /// cosh a
        Cosh = "cosh",
        /// tanh a
        Tanh = "tanh",
        /// |a|
        Abs = "abs",
        /// −1, 0 or 1
        Sign = "sign",
    }
}

operations! {
    /// Operations of two operands.
    BinaryOp {
        /// a + b
        Add = "add",
        /// a − b
        Sub = "sub",
        /// a b
        Mul = "mul",
        /// a / b
        Div = "div",
        /// a ^ b for positive a
        Pow = "powf",
        /// The angle of (b, a): atan2(y, x)
        Atan2 = "atan2",
        /// The smaller
        Min = "min",
        /// The larger
        Max = "max",
    }
}

operations! {
    /// Comparisons of a select.
    Comparison {
        /// a < b
        Less = "select_lt",
        /// a ≤ b
        LessEqual = "select_le",
        /// a = b
        Equal = "select_eq",
    }
}
