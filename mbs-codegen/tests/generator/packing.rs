//! Packed bundles have the bits of the bundles themselves, and their check finds whatever is changed in them.

use mbs_codegen::bundle::interpret::{self, Arguments};
use mbs_codegen::bundle::packing::{Lane, PackId, PackOperation, Step, VectorOp, verify::verify};
use mbs_codegen::bundle::{Bundle, Operand, Operation, Packed, Segment, Statement, ValueId};
use mbs_codegen::graph::{BinaryOp, UnaryOp};
use mbs_codegen::program::{BundleKind, Options, Program};

fn bundles(file: &str) -> Vec<Bundle> {
    let path = format!("{}/../models/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("a shipped model");
    let (model, _) = mbs_codegen::read(file, &text).expect("valid");
    let options = Options { bundles: vec![BundleKind::Linearise], ..Options::default() };
    Program::new(&model, None, &options).expect("small").bundles
}

#[test]
fn large_bundles_of_like_corners_are_packed() {
    let mut found = Vec::new();
    for bundle in bundles("buggy.yaml") {
        if let Some(packed) = Packed::of(&bundle) {
            verify(&bundle, &packed).expect("sound");
            found.push((bundle.name, 100 * packed.paired / bundle.counts.total()));
        }
    }
    let linearise = found.iter().find(|(name, _)| *name == "linearise").expect("packed");
    // benches/README.md has 88 %; of a mechanism without symmetry far fewer have a partner of the same shape.
    assert!(linearise.1 >= 75, "{found:?}");
    // Small bundles and those that would gain little are left as they are.
    let left = |file| bundles(file).iter().filter(|bundle| Packed::of(bundle).is_none()).count();
    assert_eq!(left("pendulum.yaml"), bundles("pendulum.yaml").len());
    assert!(left("five_bar.yaml") > 0);
}

/// A packed form as statements about single numbers: two values for each pack.
fn unpacked(bundle: &Bundle, packed: &Packed) -> Bundle {
    let lane = |pack: PackId, lane: Lane| ValueId(bundle.values + 2 * pack.0 + lane as u32);
    let both = |pack| [Lane::First, Lane::Second].map(|which| lane(pack, which));
    let moved = packed.slots;
    let mut last = 0;
    let mut segments = Vec::new();
    for steps in &packed.segments {
        let mut flat = Vec::new();
        for step in steps {
            match *step {
                Step::One(statement) => flat.push(statement),
                Step::Load(pack, slot) => {
                    flat.extend((slot..).zip(both(pack)).map(|(slot, value)| Statement::Load(value, slot)));
                }
                Step::Store(slot, pack) => {
                    let store = |(slot, value)| Statement::Store(slot, Operand::Value(value));
                    flat.extend((slot..).zip(both(pack)).map(store));
                }
                Step::Join(pack, operands) => {
                    last = last.max(pack.0);
                    for (value, operand) in both(pack).into_iter().zip(operands) {
                        flat.extend([Statement::Store(moved, operand), Statement::Load(value, moved)]);
                    }
                }
                Step::Compute(pack, _, operation) => {
                    last = last.max(pack.0);
                    for which in [Lane::First, Lane::Second] {
                        let read = |pack| Operand::Value(lane(pack, which));
                        flat.push(Statement::Compute(lane(pack, which), single(operation, read)));
                    }
                }
                Step::Extract(value, pack, which) => {
                    let operand = Operand::Value(lane(pack, which));
                    flat.extend([Statement::Store(moved, operand), Statement::Load(value, moved)]);
                }
            }
        }
        segments.push(Segment::Flat(flat));
    }
    Bundle { segments, values: bundle.values + 2 * (last + 1), slots: moved + 1, ..bundle.clone() }
}

fn single(operation: PackOperation, read: impl Fn(PackId) -> Operand) -> Operation {
    let [a, b, c] = operation.operands.map(read);
    match operation.op {
        VectorOp::Neg => Operation::Unary(UnaryOp::Neg, a),
        VectorOp::Add => Operation::Binary(BinaryOp::Add, a, b),
        VectorOp::Sub => Operation::Binary(BinaryOp::Sub, a, b),
        VectorOp::Mul => Operation::Binary(BinaryOp::Mul, a, b),
        VectorOp::Div => Operation::Binary(BinaryOp::Div, a, b),
        VectorOp::MulAdd => Operation::MulAdd(a, b, c),
        VectorOp::MulSub => Operation::MulSub(a, b, c),
        VectorOp::NegMulAdd => Operation::NegMulAdd(a, b, c),
    }
}

/// Bits of all results, at arguments without a meaning.
fn bits(bundle: &Bundle) -> Vec<u64> {
    let value = |i: u32| 0.3 + 0.7 * f64::from(i).sin();
    let arguments: Vec<(_, Vec<f64>)> = bundle
        .arguments
        .iter()
        .map(|&(group, len)| (group, (0..len).map(|i| value(i + 31 * group as u32)).collect()))
        .collect();
    let arguments = arguments.iter().fold(Arguments::new(), |all, (group, values)| all.with(*group, values));
    let mut results: Vec<Vec<f64>> =
        bundle.results.iter().map(|result| vec![0.0; result.len as usize]).collect();
    let mut slices: Vec<&mut [f64]> = results.iter_mut().map(Vec::as_mut_slice).collect();
    let mut scratch = vec![0.0; interpret::scratch_len(bundle)];
    interpret::run(bundle, &arguments, &mut scratch, &mut slices).expect("lengths");
    results.iter().flatten().map(|value| value.to_bits()).collect()
}

#[test]
fn packed_bundles_have_the_bits_of_single_operations() {
    let (mut packed_operations, mut operations) = (0, 0);
    for file in ["buggy.yaml", "five_bar.yaml", "human43.yaml", "governor.yaml", "andrews.yaml"] {
        for bundle in bundles(file) {
            let Some(packed) = Packed::of_any(&bundle) else { continue };
            let (found, expected) = (bits(&unpacked(&bundle, &packed)), bits(&bundle));
            assert!(found == expected, "{file}: {}", bundle.name);
            packed_operations += packed.paired;
            operations += bundle.counts.total();
        }
    }
    assert!(2 * packed_operations > operations, "{packed_operations} of {operations}");
}

/// Changes of one step, each of which changes what is computed.
fn changes(step: Step) -> Vec<Step> {
    let other = |pack: PackId| PackId(if pack.0 == 0 { 1 } else { pack.0 - 1 });
    match step {
        Step::One(Statement::Store(slot, operand)) => vec![Step::One(Statement::Store(slot + 1, operand))],
        Step::One(Statement::Load(value, slot)) => vec![Step::One(Statement::Load(value, slot + 1))],
        Step::One(Statement::Compute(value, operation)) => {
            vec![Step::One(Statement::Compute(ValueId(value.0 + 1), operation))]
        }
        Step::One(Statement::Result { result, index, value }) => vec![
            Step::One(Statement::Result { result, index: index + 1, value }),
            Step::One(Statement::Result { result, index, value: Operand::Constant(0.125) }),
        ],
        Step::One(Statement::SinCos(sine, cosine, angle)) => {
            vec![Step::One(Statement::SinCos(cosine, sine, angle))]
        }
        Step::Load(pack, slot) => vec![Step::Load(pack, slot + 1), Step::Load(other(pack), slot)],
        Step::Store(slot, pack) => vec![Step::Store(slot + 1, pack), Step::Store(slot, other(pack))],
        Step::Join(pack, [a, b]) if a != b => vec![Step::Join(pack, [b, a])],
        Step::Join(pack, [a, _]) => vec![Step::Join(pack, [a, Operand::Constant(0.125)])],
        Step::Compute(pack, [a, b], operation) => {
            let mut changed = vec![Step::Compute(pack, [b, a], operation)];
            let mut other_op = operation;
            other_op.op = if operation.op == VectorOp::Sub { VectorOp::Div } else { VectorOp::Sub };
            if operation.op == VectorOp::Neg {
                other_op.operands[1] = operation.operands[0];
            }
            changed.push(Step::Compute(pack, [a, b], other_op));
            changed
        }
        Step::Extract(value, pack, lane) => {
            let other = if lane == Lane::First { Lane::Second } else { Lane::First };
            vec![Step::Extract(value, pack, other)]
        }
    }
}

#[test]
fn every_changed_step_is_found() {
    let (mut tried, mut equal) = (0, 0);
    for bundle in bundles("five_bar.yaml").iter().filter(|bundle| bundle.counts.total() > 100) {
        let Some(packed) = Packed::of_any(bundle) else { continue };
        verify(bundle, &packed).expect("sound");
        let expected = bits(bundle);
        for (i, segment) in packed.segments.iter().enumerate() {
            for (j, &step) in segment.iter().enumerate() {
                let mut without = packed.clone();
                without.segments[i].remove(j);
                let changed = changes(step).into_iter().map(|changed| {
                    let mut other = packed.clone();
                    other.segments[i][j] = changed;
                    other
                });
                for other in changed.chain([without]) {
                    tried += 1;
                    if verify(bundle, &other).is_ok() {
                        equal += 1;
                        let what = || format!("{}: {step:?}, {:?}", bundle.name, other.segments[i].get(j));
                        assert!(bits(&unpacked(bundle, &other)) == expected, "{}", what());
                    }
                }
            }
        }
    }
    // A change without a consequence: another slot that has the same number.
    assert!(tried > 5000 && 1000 * equal < tried, "{equal} of {tried}");
}
