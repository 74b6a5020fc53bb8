//! Which operations become one pack.
//!
//! Partners are of the same kind and the same depth (the longest path from an argument), so that neither depends on the other, and packs
//! have no cycle. First come operations whose whole expressions have the same shape, results before others, then those with the same shape a few
//! levels down. The operands of partners become partners, in the order that fits better. Of n alike, number i goes with
//! i + n/2: the corners of a car are written one after the other.

use super::{Lane, VectorOp};
use crate::bundle::{Bundle, Operand, Operation, Statement, ValueId};
use crate::graph::{BinaryOp, UnaryOp};
use hashbrown::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Levels of operands that are compared where whole expressions differ.
const LEVELS: usize = 3;

/// The partner of each value, and which of the two it is.
pub(super) struct Partners(Vec<Option<(ValueId, Lane)>>);

impl Partners {
    pub(super) fn of(&self, value: ValueId) -> Option<(ValueId, Lane)> {
        self.0[value.0 as usize]
    }

    /// Whether these two stand side by side in this order.
    pub(super) fn are(&self, a: Operand, b: Operand) -> bool {
        let (Operand::Value(a), Operand::Value(b)) = (a, b) else { return false };
        self.of(a) == Some((b, Lane::First))
    }

    /// The operands of the second of two operations in the order in which more of them are partners of the first one's.
    pub(super) fn in_order(&self, x: &Operation, y: &Operation) -> Operation {
        let fits =
            |y: &Operation| operands(x).zip(operands(y)).filter(|&(a, b)| a == b || self.are(a, b)).count();
        exchanged(y).filter(|exchanged| fits(exchanged) > fits(y)).unwrap_or(*y)
    }
}

/// Its operands in order.
pub(super) fn operands(operation: &Operation) -> impl Iterator<Item = Operand> + use<> {
    let (mut all, mut count) = ([Operand::Constant(0.0); 4], 0);
    operation.operands(|operand| {
        all[count] = operand;
        count += 1;
    });
    all.into_iter().take(count)
}

/// The same with the first two operands exchanged, where that gives the same bits.
pub(super) fn exchanged(operation: &Operation) -> Option<Operation> {
    Some(match *operation {
        Operation::Binary(op @ (BinaryOp::Add | BinaryOp::Mul), a, b) => Operation::Binary(op, b, a),
        Operation::MulAdd(a, b, c) => Operation::MulAdd(b, a, c),
        Operation::MulSub(a, b, c) => Operation::MulSub(b, a, c),
        Operation::NegMulAdd(a, b, c) => Operation::NegMulAdd(b, a, c),
        _ => return None,
    })
}

/// The same for operations that do the same.
fn kind(operation: &Operation) -> &'static str {
    match operation {
        Operation::MulSub(..) => "mul_sub",
        Operation::NegMulAdd(..) => "neg_mul_add",
        _ => operation.kind(),
    }
}

/// What is known of each value.
struct Shapes {
    operations: Vec<Option<Operation>>,
    /// Of its whole expression.
    whole: Vec<u64>,
    /// Of a few levels.
    near: Vec<u64>,
    depth: Vec<u32>,
}

fn hash(what: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

/// Of an operation with operands of these shapes.
fn shape(operation: &Operation, of: impl Fn(ValueId) -> u64) -> u64 {
    let mut shapes = [0; 4];
    for (shape, operand) in shapes.iter_mut().zip(operands(operation)) {
        *shape = match operand {
            Operand::Constant(_) => 1,
            Operand::Argument(group, _) => 2 + group as u64,
            Operand::Value(value) => of(value),
        };
    }
    if exchanged(operation).is_some() && shapes[1] < shapes[0] {
        shapes.swap(0, 1);
    }
    hash((kind(operation), shapes))
}

impl Shapes {
    fn new(bundle: &Bundle, flat: &[Statement]) -> Shapes {
        let n = bundle.values as usize;
        let mut shapes =
            Shapes { operations: vec![None; n], whole: vec![0; n], near: vec![0; n], depth: vec![0; n] };
        let mut order = Vec::with_capacity(n);
        let mut add = |value: ValueId, operation: Operation| {
            let index = value.0 as usize;
            let mut below = 0;
            operation.operands(|operand| {
                if let Operand::Value(value) = operand {
                    below = below.max(shapes.depth[value.0 as usize]);
                }
            });
            shapes.depth[index] = below + 1;
            shapes.whole[index] = shape(&operation, |value| shapes.whole[value.0 as usize]);
            shapes.near[index] = hash(kind(&operation));
            shapes.operations[index] = Some(operation);
            order.push(index);
        };
        for statement in flat {
            match *statement {
                Statement::Compute(value, operation) => add(value, operation),
                Statement::SinCos(sine, cosine, angle) => {
                    add(sine, Operation::Unary(UnaryOp::Sin, angle));
                    add(cosine, Operation::Unary(UnaryOp::Cos, angle));
                }
                _ => {}
            }
        }
        for _ in 0..LEVELS {
            let before = shapes.near.clone();
            for &index in &order {
                if let Some(operation) = &shapes.operations[index] {
                    shapes.near[index] = shape(operation, |value| before[value.0 as usize]);
                }
            }
        }
        shapes
    }
}

/// Finds the partners.
pub(super) fn find(bundle: &Bundle, flat: &[Statement]) -> Partners {
    let shapes = Shapes::new(bundle, flat);
    let mut search = Search { partners: Partners(vec![None; bundle.values as usize]), shapes };
    let mut values = Vec::new();
    let mut wanted = vec![false; bundle.values as usize];
    for statement in flat {
        statement.assigns(|value| values.push(value));
        if let Statement::Result { value: Operand::Value(value), .. } = *statement {
            wanted[value.0 as usize] = true;
        }
    }
    let results: Vec<ValueId> = values.iter().copied().filter(|value| wanted[value.0 as usize]).collect();
    for whole in [true, false] {
        for candidates in [&results, &values] {
            search.alike(candidates, whole);
        }
    }
    let Search { mut partners, shapes } = search;
    for (partner, operation) in partners.0.iter_mut().zip(&shapes.operations) {
        if operation.as_ref().and_then(VectorOp::of).is_none() {
            *partner = None;
        }
    }
    partners
}

struct Search {
    partners: Partners,
    shapes: Shapes,
}

impl Search {
    /// Pairs candidates of the same shape, the last shapes first.
    fn alike(&mut self, candidates: &[ValueId], whole: bool) {
        let mut number = HashMap::new();
        let mut groups: Vec<Vec<ValueId>> = Vec::new();
        for &value in candidates {
            let index = value.0 as usize;
            let key = if whole {
                (self.shapes.whole[index], 0)
            } else {
                (self.shapes.near[index], self.shapes.depth[index])
            };
            let group = *number.entry(key).or_insert(groups.len());
            if group == groups.len() {
                groups.push(Vec::new());
            }
            groups[group].push(value);
        }
        for mut group in groups.into_iter().rev() {
            group.retain(|&value| self.partners.of(value).is_none());
            let half = group.len() / 2;
            for (&a, &b) in group[..half].iter().zip(&group[half..]) {
                self.pair(a, b);
            }
        }
    }

    /// Pairs two operations, their operands, and so on.
    fn pair(&mut self, a: ValueId, b: ValueId) {
        let mut stack = vec![(a, b)];
        while let Some((a, b)) = stack.pop() {
            let [x, y] = [a, b].map(|value| self.shapes.operations[value.0 as usize]);
            let (Some(x), Some(mut y)) = (x, y) else { continue };
            let free = self.partners.of(a).is_none() && self.partners.of(b).is_none();
            if a == b || !free || !self.fit(a, b) {
                continue;
            }
            self.partners.0[a.0 as usize] = Some((b, Lane::First));
            self.partners.0[b.0 as usize] = Some((a, Lane::Second));
            let likeness =
                |y: &Operation| operands(&x).zip(operands(y)).map(|(a, b)| self.likeness(a, b)).sum::<u32>();
            if let Some(exchanged) = exchanged(&y)
                && likeness(&exchanged) > likeness(&y)
            {
                y = exchanged;
            }
            for pair in operands(&x).zip(operands(&y)) {
                if let (Operand::Value(a), Operand::Value(b)) = pair {
                    stack.push((a, b));
                }
            }
        }
    }

    /// Whether two values may be partners.
    fn fit(&self, a: ValueId, b: ValueId) -> bool {
        let kinds = [a, b].map(|value| self.shapes.operations[value.0 as usize].as_ref().map(kind));
        kinds[0] == kinds[1] && self.shapes.depth[a.0 as usize] == self.shapes.depth[b.0 as usize]
    }

    /// How well two operands go together.
    fn likeness(&self, a: Operand, b: Operand) -> u32 {
        let (Operand::Value(x), Operand::Value(y)) = (a, b) else {
            let values = [a, b].iter().filter(|operand| matches!(operand, Operand::Value(_))).count();
            return if a == b { 2 } else { u32::from(values == 0) };
        };
        let same = |of: &[u64]| of[x.0 as usize] == of[y.0 as usize];
        if x == y {
            2
        } else if self.partners.of(x).is_some_and(|(partner, _)| partner == y) {
            5
        } else if same(&self.shapes.whole) {
            4
        } else if same(&self.shapes.near) {
            3
        } else {
            2 * u32::from(self.fit(x, y))
        }
    }
}
