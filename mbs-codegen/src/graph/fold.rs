//! The constructors of the graph: each folds constants, absorbs zeros and ones, moves signs outward, orders
//! commutative operands and recognises sin² + cos² and the sums of angles that parallel axes make.
//!
//! Every rule is an identity for finite real operands; none looks at a run-time value.

use super::node::{ArrayId, BinaryOp, Comparison, ExprId, Node, UnaryOp};
use super::number::{self, Number};
use super::{Graph, Kernel};

impl Graph {
    /// A finite constant. The callers that read files refuse values that are not finite; here they are a
    /// programming error.
    pub fn constant(&mut self, value: f64) -> ExprId {
        assert!(value.is_finite(), "constants are finite");
        // −0 and 0 are one constant.
        self.intern(Node::Constant((value + 0.0).to_bits()))
    }

    /// 0
    pub fn zero(&mut self) -> ExprId {
        self.constant(0.0)
    }

    /// 1
    pub fn one(&mut self) -> ExprId {
        self.constant(1.0)
    }

    /// The folded constant, if the result is finite.
    fn fold(&mut self, value: f64) -> Option<ExprId> {
        value.is_finite().then(|| self.constant(value))
    }

    #[inline]
    fn as_neg(&self, id: ExprId) -> Option<ExprId> {
        match self.node(id) {
            Node::Unary(UnaryOp::Neg, a) => Some(a),
            _ => None,
        }
    }

    #[inline]
    fn as_binary(&self, op: BinaryOp, id: ExprId) -> Option<(ExprId, ExprId)> {
        match self.node(id) {
            Node::Binary(o, a, b) if o == op => Some((a, b)),
            _ => None,
        }
    }

    #[inline]
    fn as_unary(&self, op: UnaryOp, id: ExprId) -> Option<ExprId> {
        match self.node(id) {
            Node::Unary(o, a) if o == op => Some(a),
            _ => None,
        }
    }

    /// Order of evaluation of an operand: constants, then parameters, then the rest. Early ones are grouped so
    /// that they fold or are hoisted out of the step.
    #[inline]
    fn known(&self, id: ExprId) -> u8 {
        let depends = self.depends(id);
        if depends.is_empty() {
            0
        } else if depends.is_parameters_only() {
            1
        } else {
            2
        }
    }

    #[inline]
    fn ordered(&self, a: ExprId, b: ExprId) -> (ExprId, ExprId) {
        if (self.known(a), a) <= (self.known(b), b) { (a, b) } else { (b, a) }
    }

    /// −a
    pub fn neg(&mut self, a: ExprId) -> ExprId {
        if let Some(value) = self.constant_value(a) {
            return self.constant(-value);
        }
        match self.node(a) {
            Node::Unary(UnaryOp::Neg, b) => b,
            Node::Binary(BinaryOp::Sub, x, y) => self.sub(y, x),
            // A constant factor takes the sign.
            Node::Binary(BinaryOp::Mul, x, y) if self.constant_value(x).is_some() => {
                let x = self.neg(x);
                self.mul(x, y)
            }
            _ => self.intern(Node::Unary(UnaryOp::Neg, a)),
        }
    }

    /// a + b
    pub fn add(&mut self, a: ExprId, b: ExprId) -> ExprId {
        let (a, b) = self.ordered(a, b);
        match (self.constant_value(a), self.constant_value(b)) {
            (Some(x), Some(y)) => {
                if let Some(folded) = self.fold(x + y) {
                    return folded;
                }
            }
            (Some(0.0), None) => return b,
            _ => {}
        }
        match (self.as_neg(a), self.as_neg(b)) {
            (Some(x), Some(y)) => {
                let sum = self.add(x, y);
                return self.neg(sum);
            }
            (Some(x), None) => return self.sub(b, x),
            (None, Some(y)) => return self.sub(a, y),
            _ => {}
        }
        if a == b {
            let two = self.constant(2.0);
            return self.mul(two, a);
        }
        // a + (x − a) = x
        for (p, q) in [(a, b), (b, a)] {
            if let Some((x, y)) = self.as_binary(BinaryOp::Sub, q)
                && y == p
            {
                return x;
            }
        }
        if let Some(folded) = self.angle_sum(a, b, false) {
            return folded;
        }
        // p1 + (p2 + x) = (p1 + p2) + x where p1, p2 are known before the step
        if self.known(a) < 2
            && let Some((p, x)) = self.as_binary(BinaryOp::Add, b)
            && self.known(p) < 2
            && self.known(x) == 2
        {
            let known = self.add(a, p);
            return self.add(known, x);
        }
        self.intern(Node::Binary(BinaryOp::Add, a, b))
    }

    /// a − b
    pub fn sub(&mut self, a: ExprId, b: ExprId) -> ExprId {
        if a == b {
            return self.zero();
        }
        match (self.constant_value(a), self.constant_value(b)) {
            (Some(x), Some(y)) => {
                if let Some(folded) = self.fold(x - y) {
                    return folded;
                }
            }
            (Some(0.0), None) => return self.neg(b),
            (None, Some(0.0)) => return a,
            (None, Some(y)) => {
                let y = self.constant(-y);
                return self.add(y, a);
            }
            _ => {}
        }
        if let Some(y) = self.as_neg(b) {
            return self.add(a, y);
        }
        if let Some(x) = self.as_neg(a) {
            let sum = self.add(x, b);
            return self.neg(sum);
        }
        // a − (a − x) = x and (b + x) − b = x
        if let Some((x, y)) = self.as_binary(BinaryOp::Sub, b)
            && x == a
        {
            return y;
        }
        if let Some((x, y)) = self.as_binary(BinaryOp::Add, a) {
            if x == b {
                return y;
            }
            if y == b {
                return x;
            }
        }
        if let Some(folded) = self.angle_sum(a, b, true) {
            return folded;
        }
        self.intern(Node::Binary(BinaryOp::Sub, a, b))
    }

    /// a b
    pub fn mul(&mut self, a: ExprId, b: ExprId) -> ExprId {
        let (a, b) = self.ordered(a, b);
        match (self.constant_value(a), self.constant_value(b)) {
            (Some(x), Some(y)) => {
                if let Some(folded) = self.fold(x * y) {
                    return folded;
                }
            }
            (Some(0.0), None) => return a,
            (Some(1.0), None) => return b,
            (Some(-1.0), None) => return self.neg(b),
            _ => {}
        }
        match (self.as_neg(a), self.as_neg(b)) {
            (Some(x), Some(y)) => return self.mul(x, y),
            (Some(x), None) => {
                let product = self.mul(x, b);
                return self.neg(product);
            }
            (None, Some(y)) => {
                if let Some(c) = self.constant_value(a) {
                    let c = self.constant(-c);
                    return self.mul(c, y);
                }
                let product = self.mul(a, y);
                return self.neg(product);
            }
            _ => {}
        }
        // p1 (p2 x) = (p1 p2) x where p1, p2 are known before the step and x is not, or where p1 p2 is a
        // number. For factors that are all known, and overflow as numbers, the rule would not terminate.
        if self.known(a) < 2
            && let Some((p, x)) = self.as_binary(BinaryOp::Mul, b)
            && self.known(p) < 2
            && (self.known(x) == 2 || self.has_constant_product(a, p))
        {
            let known = self.mul(a, p);
            return self.mul(known, x);
        }
        self.intern(Node::Binary(BinaryOp::Mul, a, b))
    }

    fn has_constant_product(&self, a: ExprId, b: ExprId) -> bool {
        self.constant_value(a).zip(self.constant_value(b)).is_some_and(|(x, y)| (x * y).is_finite())
    }

    /// a / b
    pub fn div(&mut self, a: ExprId, b: ExprId) -> ExprId {
        match (self.constant_value(a), self.constant_value(b)) {
            (Some(x), Some(y)) => {
                if let Some(folded) = self.fold(x / y) {
                    return folded;
                }
            }
            (_, Some(1.0)) => return a,
            (_, Some(-1.0)) => return self.neg(a),
            (_, Some(y)) if y != 0.0 && (1.0 / y).is_finite() => {
                let reciprocal = self.constant(1.0 / y);
                return self.mul(reciprocal, a);
            }
            (Some(0.0), None) => return a,
            _ => {}
        }
        if a == b && self.constant_value(a).is_none() {
            return self.one();
        }
        match (self.as_neg(a), self.as_neg(b)) {
            (Some(x), Some(y)) => return self.div(x, y),
            (Some(x), None) => {
                let quotient = self.div(x, b);
                return self.neg(quotient);
            }
            (None, Some(y)) => {
                let quotient = self.div(a, y);
                return self.neg(quotient);
            }
            _ => {}
        }
        // x / p with p known before the step: one reciprocal in `prepare`, a product in the step
        if self.known(b) == 1 && self.known(a) == 2 {
            let one = self.one();
            let reciprocal = self.div(one, b);
            return self.mul(reciprocal, a);
        }
        self.intern(Node::Binary(BinaryOp::Div, a, b))
    }

    /// The products of sines and cosines that make one function of a sum of angles:
    /// p cos a cos b ∓ p sin a sin b = p cos(a ± b) and p sin a cos b ± p cos a sin b = p sin(a ± b), where
    /// p is any product known before the step; with a = b these contain sin² + cos² = 1.
    fn angle_sum(&mut self, p: ExprId, q: ExprId, subtract: bool) -> Option<ExprId> {
        // Most sums end here.
        self.as_binary(BinaryOp::Mul, q)?;
        let (p, q) = (self.trigonometric_product(p)?, self.trigonometric_product(q)?);
        if p.known != q.known {
            return None;
        }
        use UnaryOp::{Cos, Sin};
        let is = |a: (UnaryOp, ExprId), b: (UnaryOp, ExprId)| q.functions == [a, b] || q.functions == [b, a];
        let [(f, a), (g, b)] = p.functions;
        let sum = match (f, g) {
            // cos a cos b ± sin a sin b
            (Cos, Cos) if is((Sin, a), (Sin, b)) => {
                let angle = if subtract { self.add(a, b) } else { self.sub(a, b) };
                self.cos(angle)
            }
            // sin a sin b ± cos a cos b
            (Sin, Sin) if is((Cos, a), (Cos, b)) => {
                let angle = if subtract { self.add(a, b) } else { self.sub(a, b) };
                let cosine = self.cos(angle);
                if subtract { self.neg(cosine) } else { cosine }
            }
            // sin a cos b ± cos a sin b, for p in either order
            (Sin, Cos) | (Cos, Sin) => {
                let (a, b) = if f == Sin { (a, b) } else { (b, a) };
                if a == b || !is((Cos, a), (Sin, b)) {
                    return None;
                }
                let angle = if subtract { self.sub(a, b) } else { self.add(a, b) };
                self.sin(angle)
            }
            _ => return None,
        };
        let mut known = self.one();
        for factor in p.known {
            known = self.mul(known, factor);
        }
        Some(self.mul(known, sum))
    }

    /// A product of exactly two sines or cosines and otherwise of factors known before the step.
    fn trigonometric_product(&self, id: ExprId) -> Option<TrigonometricProduct> {
        self.as_binary(BinaryOp::Mul, id)?;
        const FUNCTIONS: usize = 2;
        const KNOWN: usize = 4;
        let (mut known, mut functions, mut count) = (Vec::new(), [(UnaryOp::Sin, id); FUNCTIONS], 0);
        // A factor that waits has at least one in it, so there are never more than all together.
        let (mut waiting, mut len) = ([id; FUNCTIONS + KNOWN], 1);
        while len > 0 {
            len -= 1;
            let factor = waiting[len];
            match self.node(factor) {
                _ if self.known(factor) < 2 => known.push(factor),
                Node::Binary(BinaryOp::Mul, x, y) => {
                    waiting.get_mut(len..len + 2)?.copy_from_slice(&[x, y]);
                    len += 2;
                }
                Node::Unary(op @ (UnaryOp::Sin | UnaryOp::Cos), angle) => {
                    *functions.get_mut(count)? = (op, angle);
                    count += 1;
                }
                _ => return None,
            }
            if known.len() > KNOWN {
                return None;
            }
        }
        known.sort();
        (count == FUNCTIONS).then_some(TrigonometricProduct { known, functions })
    }

    /// An operation of one operand.
    pub fn unary(&mut self, op: UnaryOp, a: ExprId) -> ExprId {
        if op == UnaryOp::Neg {
            return self.neg(a);
        }
        if let Some(value) = self.constant_value(a)
            && let Some(folded) = self.fold(f64::unary(op, value))
        {
            return folded;
        }
        use UnaryOp::{Abs, Asin, Atan, Cos, Cosh, Exp, Ln, Sign, Sin, Sinh, Sqrt, Tan, Tanh};
        if let Some(b) = self.as_neg(a) {
            match op {
                // odd functions
                Sin | Tan | Asin | Atan | Sinh | Tanh | Sign => {
                    let f = self.unary(op, b);
                    return self.neg(f);
                }
                // even functions
                Cos | Cosh | Abs => return self.unary(op, b),
                _ => {}
            }
        }
        // Odd and even functions of a difference: one order of its operands.
        if let Some((x, y)) = self.as_binary(BinaryOp::Sub, a)
            && matches!(op, Sin | Cos)
            && x > y
        {
            let turned = self.sub(y, x);
            let f = self.intern(Node::Unary(op, turned));
            return if op == Sin { self.neg(f) } else { f };
        }
        if op == Ln
            && let Some(b) = self.as_unary(Exp, a)
        {
            return b;
        }
        if op == Abs && self.is_never_negative(a) {
            return a;
        }
        // √x² = |x|
        if op == Sqrt
            && let Some((x, y)) = self.as_binary(BinaryOp::Mul, a)
            && x == y
        {
            return self.abs(x);
        }
        self.intern(Node::Unary(op, a))
    }

    fn is_never_negative(&self, a: ExprId) -> bool {
        match self.node(a) {
            Node::Unary(UnaryOp::Abs | UnaryOp::Sqrt | UnaryOp::Exp | UnaryOp::Cosh, _) => true,
            Node::Binary(BinaryOp::Mul, x, y) => x == y,
            _ => false,
        }
    }

    /// An operation of two operands.
    pub fn binary(&mut self, op: BinaryOp, a: ExprId, b: ExprId) -> ExprId {
        match op {
            BinaryOp::Add => self.add(a, b),
            BinaryOp::Sub => self.sub(a, b),
            BinaryOp::Mul => self.mul(a, b),
            BinaryOp::Div => self.div(a, b),
            BinaryOp::Pow => self.pow(a, b),
            BinaryOp::Atan2 | BinaryOp::Min | BinaryOp::Max => {
                if let (Some(x), Some(y)) = (self.constant_value(a), self.constant_value(b))
                    && let Some(folded) = self.fold(f64::binary(op, x, y))
                {
                    return folded;
                }
                if a == b && op != BinaryOp::Atan2 {
                    return a;
                }
                self.intern(Node::Binary(op, a, b))
            }
        }
    }

    /// a ^ b. A small integer exponent becomes products, ½ a square root; anything else is the real power,
    /// for which a must be positive.
    pub fn pow(&mut self, a: ExprId, b: ExprId) -> ExprId {
        if let Some(exponent) = self.constant_value(b) {
            if let Some(base) = self.constant_value(a)
                && let Some(folded) = self.fold(base.powf(exponent))
            {
                return folded;
            }
            if exponent == 0.5 {
                return self.sqrt(a);
            }
            if exponent.fract() == 0.0 && exponent.abs() <= 64.0 {
                let power = self.integer_power(a, exponent.abs() as u32);
                if exponent >= 0.0 {
                    return power;
                }
                let one = self.one();
                return self.div(one, power);
            }
        }
        self.intern(Node::Binary(BinaryOp::Pow, a, b))
    }

    /// aⁿ by squaring.
    fn integer_power(&mut self, a: ExprId, n: u32) -> ExprId {
        match n {
            0 => self.one(),
            1 => a,
            _ => {
                let half = self.integer_power(a, n / 2);
                let square = self.mul(half, half);
                if n.is_multiple_of(2) { square } else { self.mul(square, a) }
            }
        }
    }

    /// √a
    pub fn sqrt(&mut self, a: ExprId) -> ExprId {
        self.unary(UnaryOp::Sqrt, a)
    }

    /// sin a
    pub fn sin(&mut self, a: ExprId) -> ExprId {
        self.unary(UnaryOp::Sin, a)
    }

    /// cos a
    pub fn cos(&mut self, a: ExprId) -> ExprId {
        self.unary(UnaryOp::Cos, a)
    }

    /// |a|
    pub fn abs(&mut self, a: ExprId) -> ExprId {
        self.unary(UnaryOp::Abs, a)
    }

    /// a²
    pub fn square(&mut self, a: ExprId) -> ExprId {
        self.mul(a, a)
    }

    /// Sum of many, left to right.
    pub fn sum(&mut self, terms: &[ExprId]) -> ExprId {
        let mut total = self.zero();
        for &term in terms {
            total = self.add(total, term);
        }
        total
    }

    /// `if a CMP b { x } else { y }`
    pub fn select(&mut self, comparison: Comparison, a: ExprId, b: ExprId, x: ExprId, y: ExprId) -> ExprId {
        if x == y {
            return x;
        }
        if let (Some(p), Some(q)) = (self.constant_value(a), self.constant_value(b)) {
            return if number::compare(comparison, p, q) { x } else { y };
        }
        if a == b {
            return if comparison == Comparison::Less { y } else { x };
        }
        self.intern(Node::Select(comparison, [a, b, x, y]))
    }

    /// array\[index\], the index floored and clamped to the array.
    pub fn gather(&mut self, array: ArrayId, index: ExprId) -> ExprId {
        let elements = self.array(array);
        if let Some(value) = self.constant_value(index) {
            return elements[number::gather_index(value, elements.len())];
        }
        let first = elements[0];
        if elements.iter().all(|&e| e == first) {
            return first;
        }
        self.intern(Node::Gather(array, index))
    }

    /// The interval of sorted knots in which x lies.
    pub fn locate(&mut self, knots: ArrayId, x: ExprId) -> ExprId {
        if self.array(knots).len() <= 2 {
            return self.zero();
        }
        if let Some(x) = self.constant_value(x)
            && let Some(values) = self.constant_values(self.array(knots))
        {
            let interval = number::locate(&values, x);
            return self.constant(interval as f64);
        }
        self.intern(Node::Locate(knots, x))
    }

    fn constant_values(&self, expressions: &[ExprId]) -> Option<Vec<f64>> {
        expressions.iter().map(|&e| self.constant_value(e)).collect()
    }

    /// The outputs of a kernel whose arguments are numbers, if all are finite.
    pub(super) fn fold_kernel(&mut self, kernel: Kernel, arguments: &[ExprId]) -> Option<Vec<ExprId>> {
        let inputs = self.constant_values(arguments)?;
        let mut outputs = vec![0.0; kernel.outputs()];
        kernel.evaluate(&inputs, &mut outputs);
        outputs.iter().map(|&value| self.fold(value)).collect()
    }
}

/// known₁ known₂ … f(a) g(b), the known factors sorted.
struct TrigonometricProduct {
    known: Vec<ExprId>,
    functions: [(UnaryOp, ExprId); 2],
}
