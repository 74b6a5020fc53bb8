//! Signals: tables, splines and smooth steps, as expressions.

use crate::graph::{ArrayId, BinaryOp, Comparison, ExprId, Graph, Kernel};
use crate::model::Outside;

/// y0 before x0, y1 after x1, and y0 + (y1 − y0)(3s² − 2s³) between, s = (x − x0)/(x1 − x0).
/// Arguments x, x0, y0, x1, y1. Once continuously differentiable.
pub(super) fn smooth_step(g: &mut Graph, [x, x0, y0, x1, y1]: [ExprId; 5]) -> ExprId {
    let (from, span) = (g.sub(x, x0), g.sub(x1, x0));
    let s = g.div(from, span);
    let s = clamp(g, s);
    let (two, three) = (g.constant(2.0), g.constant(3.0));
    let twice = g.mul(two, s);
    let rest = g.sub(three, twice);
    let square = g.square(s);
    let shape = g.mul(square, rest);
    let rise = g.sub(y1, y0);
    let risen = g.mul(rise, shape);
    g.add(y0, risen)
}

/// 0 ≤ s ≤ 1
fn clamp(g: &mut Graph, s: ExprId) -> ExprId {
    let (zero, one) = (g.zero(), g.one());
    let s = g.binary(BinaryOp::Min, s, one);
    g.binary(BinaryOp::Max, s, zero)
}

/// The interval's ends: (x0, x1) of knots and the gathered (y0, y1) of each array.
struct Interval {
    index: ExprId,
    next: ExprId,
    x0: ExprId,
    x1: ExprId,
}

impl Interval {
    fn find(g: &mut Graph, x: ExprId, knots: ArrayId) -> Interval {
        let index = g.locate(knots, x);
        let one = g.one();
        let next = g.add(index, one);
        let (x0, x1) = (g.gather(knots, index), g.gather(knots, next));
        Interval { index, next, x0, x1 }
    }

    fn ends(&self, g: &mut Graph, values: ArrayId) -> (ExprId, ExprId) {
        (g.gather(values, self.index), g.gather(values, self.next))
    }
}

/// Piecewise linear, constant beyond the ends.
pub(super) fn table(g: &mut Graph, x: ExprId, knots: ArrayId, values: ArrayId) -> ExprId {
    let interval = Interval::find(g, x, knots);
    let (y0, y1) = interval.ends(g, values);
    let (from, span) = (g.sub(x, interval.x0), g.sub(interval.x1, interval.x0));
    let s = g.div(from, span);
    let s = clamp(g, s);
    let rise = g.sub(y1, y0);
    let risen = g.mul(rise, s);
    g.add(y0, risen)
}

/// Natural cubic spline, and what it is beyond its ends, x_c being x within them: S(x_c), S(x_c) + S'(x_c) (x − x_c), S(x), or
/// S(x) divided by zero.
pub(super) fn spline(g: &mut Graph, x: ExprId, knots: ArrayId, values: ArrayId, outside: Outside) -> ExprId {
    let ends = g.array(knots);
    let (first, last) = (ends[0], ends[ends.len() - 1]);
    match outside {
        Outside::Cubic => natural_spline(g, x, knots, values)[0],
        Outside::Clamp | Outside::Linear => {
            let within = g.binary(BinaryOp::Max, x, first);
            let within = g.binary(BinaryOp::Min, within, last);
            let [value, slope] = natural_spline(g, within, knots, values);
            if outside == Outside::Clamp {
                return value;
            }
            let beyond = g.sub(x, within);
            let rise = g.mul(slope, beyond);
            g.add(value, rise)
        }
        Outside::Error => {
            let value = natural_spline(g, x, knots, values)[0];
            let (zero, one) = (g.zero(), g.one());
            let below = g.select(Comparison::Less, last, x, zero, one);
            let inside = g.select(Comparison::Less, x, first, zero, below);
            g.div(value, inside)
        }
    }
}

/// With m the second derivatives at the knots, h the interval, a = (x1 − x)/h, b = (x − x0)/h, the value is
/// a y0 + b y1 + ((a³ − a) m0 + (b³ − b) m1) h²/6 and the slope (y1 − y0)/h + ((3b² − 1) m1 − (3a² − 1) m0) h/6.
fn natural_spline(g: &mut Graph, x: ExprId, knots: ArrayId, values: ArrayId) -> [ExprId; 2] {
    let second = second_derivatives(g, knots, values);
    let interval = Interval::find(g, x, knots);
    let (y0, y1) = interval.ends(g, values);
    let (m0, m1) = interval.ends(g, second);
    let h = g.sub(interval.x1, interval.x0);
    let (to, from) = (g.sub(interval.x1, x), g.sub(x, interval.x0));
    let (a, b) = (g.div(to, h), g.div(from, h));
    let bend = |g: &mut Graph, s: ExprId, m: ExprId| {
        let square = g.square(s);
        let cube = g.mul(square, s);
        let shape = g.sub(cube, s);
        g.mul(shape, m)
    };
    let (bend0, bend1) = (bend(g, a, m0), bend(g, b, m1));
    let bends = g.add(bend0, bend1);
    let square = g.square(h);
    let sixth = g.constant(1.0 / 6.0);
    let scale = g.mul(sixth, square);
    let curved = g.mul(scale, bends);
    let (line0, line1) = (g.mul(a, y0), g.mul(b, y1));
    let line = g.add(line0, line1);
    let value = g.add(line, curved);
    let (three, one) = (g.constant(3.0), g.one());
    let tilt = |g: &mut Graph, s: ExprId, m: ExprId| {
        let square = g.square(s);
        let triple = g.mul(three, square);
        let shape = g.sub(triple, one);
        g.mul(shape, m)
    };
    let (tilt0, tilt1) = (tilt(g, a, m0), tilt(g, b, m1));
    let tilts = g.sub(tilt1, tilt0);
    let scale = g.mul(sixth, h);
    let curved = g.mul(scale, tilts);
    let rise = g.sub(y1, y0);
    let chord = g.div(rise, h);
    let slope = g.add(chord, curved);
    [value, slope]
}

/// m₀ = m_{n−1} = 0 and, inside, h_{i−1} m_{i−1} + 2(h_{i−1} + h_i) m_i + h_i m_{i+1}
/// = 6 ((y_{i+1} − y_i)/h_i − (y_i − y_{i−1})/h_{i−1}).
fn second_derivatives(g: &mut Graph, knots: ArrayId, values: ArrayId) -> ArrayId {
    let (x, y) = (g.array(knots).to_vec(), g.array(values).to_vec());
    let n = x.len().min(y.len());
    let zero = g.zero();
    if n < 3 {
        return g.new_array(vec![zero; n.max(1)]);
    }
    let h: Vec<ExprId> = x.windows(2).map(|w| g.sub(w[1], w[0])).collect();
    let slope: Vec<ExprId> = (0..n - 1)
        .map(|i| {
            let rise = g.sub(y[i + 1], y[i]);
            g.div(rise, h[i])
        })
        .collect();
    let (two, six) = (g.constant(2.0), g.constant(6.0));
    let unknowns = n - 2;
    let off: Vec<ExprId> = h[1..unknowns].to_vec();
    let mut arguments = off.clone();
    for i in 0..unknowns {
        let sum = g.add(h[i], h[i + 1]);
        arguments.push(g.mul(two, sum));
    }
    arguments.extend(off);
    for i in 0..unknowns {
        let change = g.sub(slope[i + 1], slope[i]);
        arguments.push(g.mul(six, change));
    }
    let inner = g.call_kernel(Kernel::SolveTridiagonal { n: unknowns as u32 }, arguments);
    let mut m = vec![zero];
    m.extend(inner);
    m.push(zero);
    g.new_array(m)
}
