//! The expression graph: every operation's derivative, forward and reverse, first and second, against
//! complex steps; the textual form; the verifier; folding keeps values.

use mbs_codegen::graph::{
    ArrayId, BinaryOp, Comparison, Complex, ExprId, Graph, Interpreter, Kernel, Number, Tangents, UnaryOp,
    gradient, text, verify,
};
use mbs_codegen::symbols::Group;

const SYMBOLS: u32 = 4;
const STEP: f64 = 1e-30;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

/// A value between −1 and 1, whatever the operand: keeps random towers of functions tame.
fn squash(g: &mut Graph, a: ExprId) -> ExprId {
    g.unary(UnaryOp::Tanh, a)
}

/// A random expression over all operations, smooth near the sample points with probability one.
fn random_expression(g: &mut Graph, r: &mut Random, depth: usize) -> ExprId {
    if depth == 0 {
        return if r.below(4) == 0 {
            let value = r.uniform(-2.0, 2.0);
            g.constant(value)
        } else {
            g.symbol(
                if r.below(2) == 0 { Group::Z } else { Group::Parameters },
                r.below(SYMBOLS as usize) as u32,
            )
        };
    }
    let mut operand = |g: &mut Graph| random_expression(g, r, depth - 1);
    let (a, b) = (operand(g), operand(g));
    let two = g.constant(2.0);
    match r.below(21) {
        0 => g.add(a, b),
        1 => g.sub(a, b),
        2 => g.mul(a, b),
        3 => {
            let square = g.square(b);
            let below = g.add(two, square);
            g.div(a, below)
        }
        4 => g.neg(a),
        5 => {
            let square = g.square(a);
            let inside = g.add(two, square);
            g.sqrt(inside)
        }
        6 => g.sin(a),
        7 => g.cos(a),
        8 => {
            let s = squash(g, a);
            g.unary(UnaryOp::Tan, s)
        }
        9 | 10 => {
            let s = squash(g, a);
            let half = g.constant(0.9);
            let inside = g.mul(half, s);
            g.unary(if r.below(2) == 0 { UnaryOp::Asin } else { UnaryOp::Acos }, inside)
        }
        11 => g.unary(UnaryOp::Atan, a),
        12 => {
            let s = squash(g, a);
            g.unary([UnaryOp::Exp, UnaryOp::Sinh, UnaryOp::Cosh][r.below(3)], s)
        }
        13 => {
            let square = g.square(a);
            let inside = g.add(two, square);
            g.unary(UnaryOp::Ln, inside)
        }
        14 => g.abs(a),
        15 => {
            let sign = g.unary(UnaryOp::Sign, a);
            g.mul(sign, b)
        }
        16 => {
            let square = g.square(a);
            let base = g.add(two, square);
            let exponent = squash(g, b);
            g.pow(base, exponent)
        }
        17 => {
            let three = g.constant(3.0);
            let x = g.add(three, b);
            g.binary(BinaryOp::Atan2, a, x)
        }
        18 => g.binary(if r.below(2) == 0 { BinaryOp::Min } else { BinaryOp::Max }, a, b),
        19 => {
            let comparison = Comparison::ALL[r.below(2)];
            let (x, y) = (operand_of(g, r, depth), operand_of(g, r, depth));
            g.select(comparison, a, b, x, y)
        }
        _ => {
            let elements: Vec<ExprId> = (0..4).map(|_| operand_of(g, r, depth)).collect();
            let array = g.new_array(elements);
            let square = g.square(a);
            g.gather(array, square)
        }
    }
}

fn operand_of(g: &mut Graph, r: &mut Random, depth: usize) -> ExprId {
    random_expression(g, r, depth - 1)
}

fn symbols(g: &mut Graph) -> Vec<ExprId> {
    [Group::Z, Group::Parameters]
        .into_iter()
        .flat_map(|group| (0..SYMBOLS).map(move |i| (group, i)))
        .map(|(group, i)| g.symbol(group, i))
        .collect()
}

fn interpreter<N: Number>(values: &[N]) -> Interpreter<N> {
    let mut interpreter = Interpreter::new();
    let (z, p) = values.split_at(SYMBOLS as usize);
    interpreter.set_all(Group::Z, z);
    interpreter.set_all(Group::Parameters, p);
    interpreter
}

/// ∂/∂(symbol k) of each root by complex step.
fn complex_step(g: &Graph, roots: &[ExprId], at: &[f64], k: usize) -> Vec<f64> {
    let values: Vec<Complex> =
        at.iter().enumerate().map(|(i, &x)| Complex::new(x, if i == k { STEP } else { 0.0 })).collect();
    interpreter(&values).evaluate(g, roots).into_iter().map(|c| c.im / STEP).collect()
}

fn close(a: f64, b: f64, scale: f64) -> bool {
    (a - b).abs() <= 1e-12 * (1.0 + scale)
}

#[test]
fn derivatives_of_random_expressions_are_exact_in_both_modes() {
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..800 {
        let mut r = Random(seed);
        let mut g = Graph::new();
        let root = random_expression(&mut g, &mut r, 4);
        let at: Vec<f64> = (0..2 * SYMBOLS).map(|_| r.uniform(-1.5, 1.5)).collect();
        let symbols = symbols(&mut g);
        let one = g.one();
        let reverse = gradient(&mut g, &[(root, one)], &symbols);
        let forward: Vec<ExprId> = symbols
            .iter()
            .map(|&symbol| Tangents::with_respect_to(&mut g, symbol).of(&mut g, root))
            .collect();
        // second derivatives along the first symbol: forward over reverse
        let second: Vec<ExprId> = {
            let mut tangents = Tangents::with_respect_to(&mut g, symbols[0]);
            reverse.iter().map(|&d| tangents.of(&mut g, d)).collect()
        };
        verify::verify(&g).expect("a valid graph");
        seen.extend(g.count(&[root]).kinds().map(|(kind, _)| kind));

        let real = interpreter(&at);
        let (f, b, s) =
            (real.evaluate(&g, &forward), real.evaluate(&g, &reverse), real.evaluate(&g, &second));
        let scale = f.iter().fold(0.0f64, |m, x| m.max(x.abs()));
        for k in 0..symbols.len() {
            let expected = complex_step(&g, &[root], &at, k)[0];
            assert!(close(f[k], expected, scale), "seed {seed}, forward: {} for {expected}", f[k]);
            assert!(close(b[k], expected, scale), "seed {seed}, reverse: {} for {expected}", b[k]);
        }
        let expected = complex_step(&g, &reverse, &at, 0);
        let scale = expected.iter().fold(0.0f64, |m, x| m.max(x.abs()));
        for k in 0..symbols.len() {
            assert!(close(s[k], expected[k], scale), "seed {seed}, second: {} for {}", s[k], expected[k]);
        }
    }
    // The sample must have exercised every operation, or the test shows less than it says.
    let missing: Vec<&str> = UnaryOp::ALL
        .iter()
        .filter(|op| !matches!(op, UnaryOp::Sin | UnaryOp::Cos))
        .map(|op| op.name())
        .chain(BinaryOp::ALL.iter().map(|op| op.name()))
        .chain(["sin_cos", "select", "gather"])
        .filter(|name| !seen.contains(name))
        .collect();
    assert!(missing.is_empty(), "never sampled: {missing:?}");
}

#[test]
fn text_parses_back_to_the_same_graph() {
    for seed in 0..200 {
        let mut g = Graph::new();
        let root = random_expression(&mut g, &mut Random(seed), 4);
        let (zero, one) = (g.zero(), g.one());
        let knots = g.new_array(vec![zero, one, root]);
        g.locate(knots, root);
        let rhs = g.add(root, one);
        g.call_kernel(Kernel::SolveTridiagonal { n: 2 }, vec![zero, one, one, zero, root, rhs]);
        let printed = text::print(&g);
        let parsed = text::parse(&printed).unwrap_or_else(|e| panic!("{e}\n{printed}"));
        assert_eq!(text::print(&parsed), printed);
        assert_eq!(parsed.len(), g.len());
        let at: Vec<f64> = (0..2 * SYMBOLS).map(|i| 0.3 + f64::from(i)).collect();
        let before = interpreter(&at).evaluate(&g, &[root])[0];
        assert_eq!(interpreter(&at).evaluate(&parsed, &[root])[0].to_bits(), before.to_bits());
    }
}

#[test]
fn broken_text_is_refused_with_its_line() {
    for (source, line, part) in [
        ("%0 = z[0]\n%1 = sin %7", 2, "no node"),
        ("%0 = z[0]\n%2 = sin %0", 2, "expected `%1`"),
        ("%0 = const inf", 1, "finite"),
        ("%0 = foo %0", 1, "unknown operation"),
        ("%0 = q[0]", 1, "unknown group"),
        ("%0 = z[0]\n%1 = add %0", 2, "2 operands"),
        ("%0 = z[0]\n%1 = z[0]", 2, "stands earlier"),
        ("@0 = array", 1, "at least one"),
        ("%0 = z[0]\n%1 = gather @0 %0", 2, "no array"),
        ("$0 = call solve_tridiagonal 4294967295 %0", 1, "no node"),
        ("%0 = z[0]\n$0 = call solve_tridiagonal 2 %0", 2, "arguments"),
        ("%0 = z[0]\n%1 = output $0 0", 2, "no call"),
        ("nonsense", 1, "expected `=`"),
    ] {
        let error = text::parse(source).expect_err(source);
        assert_eq!(error.line, line, "{source}: {error}");
        assert!(error.message.contains(part), "{source}: {error}");
    }
}

#[test]
fn identities_fold() {
    let mut g = Graph::new();
    let (a, b) = (g.symbol(Group::Z, 0), g.symbol(Group::Z, 1));
    let p = g.symbol(Group::Parameters, 0);
    let (sa, ca, sb, cb) = (g.sin(a), g.cos(a), g.sin(b), g.cos(b));
    // sin² + cos² = 1, also under a common known factor in any grouping
    let (s2, c2) = (g.mul(sa, sa), g.mul(ca, ca));
    let sum = g.add(s2, c2);
    assert!(g.is(sum, 1.0));
    let (psa, pca) = (g.mul(p, sa), g.mul(p, ca));
    let (l, r) = (g.mul(psa, psa), g.mul(pca, pca));
    let p2 = g.mul(p, p);
    assert_eq!(g.add(l, r), p2);
    // parallel axes: the product of two rotations is one rotation by the sum
    let (x, y) = (g.mul(ca, cb), g.mul(sa, sb));
    let angle = g.add(a, b);
    let (cosine, sine) = (g.cos(angle), g.sin(angle));
    assert_eq!(g.sub(x, y), cosine);
    let (x, y) = (g.mul(sa, cb), g.mul(ca, sb));
    assert_eq!(g.add(x, y), sine);
    // signs, zeros, ones
    let (na, zero, one) = (g.neg(a), g.zero(), g.one());
    assert_eq!(g.neg(na), a);
    assert_eq!(g.add(a, zero), a);
    assert_eq!(g.mul(one, a), a);
    assert_eq!(g.mul(zero, a), zero);
    assert_eq!(g.sub(a, a), zero);
    assert_eq!(g.div(a, a), one);
    assert_eq!(g.add(a, b), g.add(b, a));
    let (nb, product) = (g.neg(b), g.mul(a, b));
    assert_eq!(g.mul(na, nb), product);
    // what is not finite is not folded
    let pole = g.div(one, zero);
    assert_eq!(g.constant_value(pole), None);
}

#[test]
fn kernel_derivatives_are_exact() {
    // T(p) x = r(p), tridiagonal and diagonally dominant
    let n = 5u32;
    let mut r = Random(7);
    let mut g = Graph::new();
    let symbols = symbols(&mut g);
    let mut argument = |g: &mut Graph, shift: f64| {
        let (a, b) = (symbols[r.below(symbols.len())], symbols[r.below(symbols.len())]);
        let (product, shift) = (g.mul(a, b), g.constant(shift));
        g.add(product, shift)
    };
    let arguments: Vec<ExprId> = (0..4 * n - 2)
        .map(|i| argument(&mut g, if (n - 1..2 * n - 1).contains(&i) { 9.0 } else { 0.5 }))
        .collect();
    let x = g.call_kernel(Kernel::SolveTridiagonal { n }, arguments);
    let products: Vec<ExprId> = x.windows(2).map(|w| g.mul(w[0], w[1])).collect();
    let root = g.sum(&products);
    let one = g.one();
    let reverse = gradient(&mut g, &[(root, one)], &symbols);
    let second: Vec<ExprId> = {
        let mut tangents = Tangents::with_respect_to(&mut g, symbols[2]);
        reverse.iter().map(|&d| tangents.of(&mut g, d)).collect()
    };
    verify::verify(&g).expect("a valid graph");
    let at: Vec<f64> = (0..2 * SYMBOLS).map(|i| 0.2 + 0.1 * f64::from(i)).collect();
    let values = interpreter(&at).evaluate(&g, &[reverse.clone(), second].concat());
    let (first, second) = values.split_at(symbols.len());
    let expected_second = complex_step(&g, &reverse, &at, 2);
    for (k, &symbol) in symbols.iter().enumerate() {
        let forward = Tangents::with_respect_to(&mut g, symbol).of(&mut g, root);
        let expected = complex_step(&g, &[root], &at, k)[0];
        assert!(close(interpreter(&at).evaluate(&g, &[forward])[0], expected, 0.0));
        assert!(close(first[k], expected, 0.0));
        assert!(close(second[k], expected_second[k], 0.0), "{} {}", second[k], expected_second[k]);
    }
}

#[test]
fn gather_and_locate_take_any_index() {
    let mut g = Graph::new();
    let x = g.symbol(Group::Z, 0);
    let elements: Vec<ExprId> = (0..4).map(|i| g.symbol(Group::Parameters, i)).collect();
    let array: ArrayId = g.new_array(elements);
    let (gathered, located) = (g.gather(array, x), g.locate(array, x));
    let knots = [1.0, 2.0, 4.0, 8.0];
    for (x, element, interval) in [
        (-3.0, 1.0, 0.0),
        (0.5, 1.0, 0.0),
        (1.99, 2.0, 0.0),
        (2.0, 4.0, 1.0),
        (5.0, 8.0, 2.0),
        (1e300, 8.0, 2.0),
        (f64::NAN, 1.0, 0.0),
        (f64::NEG_INFINITY, 1.0, 0.0),
    ] {
        let mut interpreter = Interpreter::new();
        interpreter.set(Group::Z, 0, x);
        interpreter.set_all(Group::Parameters, &knots);
        assert_eq!(interpreter.evaluate(&g, &[gathered, located]), [element, interval], "{x}");
    }
}

/// Numbers that overflow are not folded, and the rules that gather known factors must not pass them round.
#[test]
fn products_that_overflow_are_finite_work() {
    let mut g = Graph::new();
    let big = g.constant(1e308);
    let t = g.symbol(Group::Time, 0);
    let mut product = g.mul(big, big);
    for _ in 0..10 {
        product = g.mul(big, product);
        product = g.mul(product, product);
        product = g.mul(product, t);
        let sum = g.add(product, big);
        product = g.sub(sum, product);
        product = g.mul(product, big);
    }
    assert_eq!(verify::verify(&g), Ok(()));
    assert!(g.len() < 200, "{}", g.len());
}

/// A kernel of numbers is its numbers; one whose result is not finite stays a call.
#[test]
fn kernels_of_constants_fold() {
    let mut g = Graph::new();
    let kernel = Kernel::SolveTridiagonal { n: 2 };
    let arguments = |g: &mut Graph, values: [f64; 6]| values.map(|x| g.constant(x)).to_vec();
    let regular = arguments(&mut g, [1.0, 2.0, 3.0, 1.0, 3.0, 4.0]);
    let outputs = g.call_kernel(kernel, regular);
    assert_eq!(outputs.iter().map(|&x| g.constant_value(x)).collect::<Vec<_>>(), [Some(1.0), Some(1.0)]);
    let singular = arguments(&mut g, [1.0, 0.0, 3.0, 1.0, 3.0, 4.0]);
    let outputs = g.call_kernel(kernel, singular);
    assert_eq!(g.constant_value(outputs[0]), None);
    assert_eq!(verify::verify(&g), Ok(()));
}
