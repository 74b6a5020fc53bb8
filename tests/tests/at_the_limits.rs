//! The largest files the reader accepts, and the largest programs the generator makes: each is answered within a
//! bounded time and a bounded memory, be it by a module or by diagnostics.

use mbs_codegen::program::{BundleKind, Options};
use mbs_codegen::{Request, generate};
use std::fmt::Write;
use std::time::{Duration, Instant};

/// Time that one answer may take in an optimised build on a slow, shared machine.
const TIME: Duration = Duration::from_secs(30);
/// Bytes that it may hold at one time.
const MEMORY: u64 = 1 << 30;

/// Generates under both limits; gives whether there is a module.
fn answer(what: &str, text: &str, bundles: &[BundleKind]) -> bool {
    let request = Request {
        options: Options { bundles: bundles.to_vec(), ..Options::default() },
        ..Request::default()
    };
    let begin = Instant::now();
    let mut answer = String::new();
    let mut accepted = false;
    let memory = allocation_counter::measure(|| {
        answer = match generate("limit.yaml", text, &request) {
            Ok(generated) => {
                accepted = true;
                let operations: usize = generated.program.bundles.iter().map(|b| b.counts.total()).sum();
                format!("{} KiB of code, {operations} operations", generated.code.len() >> 10)
            }
            Err(diagnostics) => {
                let printed = diagnostics.render("limit.yaml", text);
                printed.lines().next().unwrap_or_default().chars().take(120).collect()
            }
        }
    })
    .bytes_max;
    let time = begin.elapsed();
    println!("{what}: {:.2} s, {} MiB; {answer}", time.as_secs_f64(), memory >> 20);
    assert!(memory < MEMORY, "{what} held {} MiB", memory >> 20);
    assert!(time < TIME, "{what} took {time:?}");
    accepted
}

fn many(n: usize, mut line: impl FnMut(usize) -> String) -> String {
    let mut out = String::new();
    for i in 0..n {
        let _ = writeln!(out, "{}", line(i));
    }
    out
}

/// n bodies in general position, one after the other (or all on ground), by joints of one type.
fn bodies(n: usize, joint: &str, chain: bool) -> String {
    let bodies = many(n, |i| {
        format!("  b{i}: {{mass: 1, com: [0.1, 0.2, 0.3], inertia: [0.2, 0.3, 0.4, 0.01, 0.02, 0.03]}}")
    });
    let axis = |x: &str| format!("axis: {x}, reference: [0.1, 1, 0.3]");
    let joints = many(n, |i| {
        let parent = if i == 0 || !chain { "ground".into() } else { format!("b{}", i - 1) };
        let (a, b) = (axis("[1, 0.2, 0.3]"), axis("[0.3, 0.1, 1]"));
        format!(
            "  j{i}: {{type: {joint}, parent: {{body: {parent}, point: [0.3, 0.2, 0.1], {a}}}, child: {{body: b{i}, point: [0.1, 0, 0.2], {b}}}}}"
        )
    });
    format!("mbs: 1\ngravity: [0, 0, -9.81]\nbodies:\n{bodies}joints:\n{joints}")
}

const ONE_BODY: &str = "mbs: 1\nbodies:\n  b: {mass: 1, inertia: [1, 1, 1]}\njoints:\n  j: {type: revolute, parent: ground, child: b, axis: [0, 0, 1]}\n";

#[test]
fn chains() {
    assert!(answer("a chain of 40", &bodies(40, "revolute", true), &BundleKind::TREE));
    assert!(answer("a chain of 200", &bodies(200, "revolute", true), &[BundleKind::ForwardDynamics]));
    answer("a chain of 220", &bodies(220, "revolute", true), &BundleKind::STANDARD);
    answer("a chain of 3000", &bodies(3000, "revolute", true), &[BundleKind::ForwardDynamicsRecursive]);
    answer("a chain of 10000", &bodies(9_999, "revolute", true), &BundleKind::STANDARD);
    answer("a chain of 10000 fixed", &bodies(9_999, "fixed", true), &BundleKind::STANDARD);
}

#[test]
fn stars() {
    answer("300 floating bodies", &bodies(300, "floating", false), &BundleKind::TREE);
    answer("3300 floating bodies", &bodies(3300, "floating", false), &BundleKind::STANDARD);
    answer("10000 floating bodies", &bodies(9_999, "floating", false), &BundleKind::STANDARD);
}

#[test]
fn arrays() {
    let list =
        |n: usize, f: fn(usize) -> f64| (0..n).map(|i| f(i).to_string()).collect::<Vec<_>>().join(", ");
    let (knots, values) = (|n| list(n, |i| i as f64), |n| list(n, |i| (i % 7) as f64));
    for n in [1_000, 20_000, 100_000] {
        for kind in ["table", "spline"] {
            let text = format!(
                "{ONE_BODY}parameters:\n  x: [{}]\n  y: [{}]\nforces:\n  f: {{type: joint_force, coordinate: j, value: \"{kind}(t, x, y)\"}}\n",
                knots(n),
                values(n)
            );
            answer(&format!("a {kind} of {n}"), &text, &BundleKind::STANDARD);
        }
    }
    let arrays = many(9, |i| format!("  a{i}: [{}]", values(100_000)));
    answer("nine arrays of 100000", &format!("{ONE_BODY}parameters:\n{arrays}"), &[]);
    let arrays = many(2, |i| format!("  a{i}: [{}]", values(50_000)));
    answer("two arrays of 50000", &format!("{ONE_BODY}parameters:\n{arrays}"), &[]);
    let splines = many(40, |i| {
        format!("  f{i}: {{type: joint_force, coordinate: j, value: \"spline(t + {i}, x, y)\"}}")
    });
    let text = format!(
        "{ONE_BODY}parameters:\n  x: [{}]\n  y: [{}]\nforces:\n{splines}",
        knots(10_000),
        values(10_000)
    );
    answer("forty readers of one spline", &text, &BundleKind::STANDARD);
}

#[test]
fn expressions() {
    let sum = |x: &str| vec![x; 150].join("+");
    let outputs = many(9_999, |i| format!("  o{i}: {}", sum(&format!("sin(t*{i})"))));
    answer(
        "long outputs",
        &format!("{ONE_BODY}outputs:\n{}", &outputs[..outputs.len().min(3 << 20)]),
        &BundleKind::STANDARD,
    );
    let terms = |i: usize| (0..60).map(|k| format!("t*{}", 97 * i + k)).collect::<Vec<_>>().join("+");
    let outputs = many(2_000, |i| format!("  o{i}: {}", terms(i)));
    answer(
        "outputs without anything in common",
        &format!("{ONE_BODY}outputs:\n{outputs}"),
        &BundleKind::STANDARD,
    );
    let vectors = many(3_000, |i| {
        let mut v = format!("[t, {i}, j.angle]");
        for k in 0..20 {
            v = format!("cross([{k}, t, {i}], {v})");
        }
        format!("  o{i}: \"{v}\"")
    });
    answer("vectors of many products", &format!("{ONE_BODY}outputs:\n{vectors}"), &BundleKind::STANDARD);
    let backward = many(9_998, |i| format!("  p{i}: {}", vec![format!("p{}", i + 1); 40].join("+")));
    answer(
        "derived parameters backwards",
        &format!("{ONE_BODY}parameters:\n{backward}  p9998: 1\n"),
        &BundleKind::STANDARD,
    );
    let guards = (0..40).fold("sqrt(t)".to_string(), |inner, k| format!("if(t < {k}, sqrt({inner}), ln(t))"));
    answer("guards in guards", &format!("{ONE_BODY}outputs:\n  o: \"{guards}\"\n"), &BundleKind::STANDARD);
    let coordinates = many(6_000, |i| {
        format!(
            "  o{i}: {}",
            (0..30).map(|k| format!("j{}.angle", (i * 31 + k) % 3000)).collect::<Vec<_>>().join("+")
        )
    });
    answer(
        "coordinates of many joints",
        &format!("{}outputs:\n{coordinates}", bodies(3000, "revolute", false)),
        &[BundleKind::Outputs],
    );
}

#[test]
fn points() {
    let points = |n: usize| many(n, |i| format!("        p{i}: [1, 2, {i}]"));
    let element = |n: usize| {
        format!(
            "elements:\n  e:\n    arguments: {{a: scalar}}\n    bodies:\n      b:\n        mass: 1\n        inertia: [1, 1, 1]\n        points:\n{}    joints:\n      j: {{type: revolute, parent: ground, child: b, axis: [0, 0, 1]}}\n",
            points(n).replace("        p", "          p")
        )
    };
    let instances = |n: usize| many(n, |i| format!("  i{i}: {{element: e, arguments: {{a: 1}}}}"));
    for (n, m) in [(900, 30), (900, 2000)] {
        let text = format!("mbs: 1\n{}instances:\n{}", element(n), instances(m));
        answer(&format!("{m} bodies of {n} points"), &text, &BundleKind::STANDARD);
        answer(&format!("{m} bodies of {n} points without their motion"), &text, &[BundleKind::Energy]);
    }
}

#[test]
fn forces() {
    let springs = many(9_999, |i| {
        format!("  f{i}: {{type: spring, from: ground, to: b{}, stiffness: {i}, natural_length: 1}}", i % 200)
    });
    let text = format!("{}forces:\n{springs}", bodies(200, "revolute", true));
    answer("springs on a chain", &text, &[BundleKind::ForwardDynamicsRecursive, BundleKind::Energy]);
    let laws = many(9_999, |i| {
        format!(
            "  f{i}: {{type: force, at: b{}, value: \"vel(b{})*{i}\", reaction: b{}}}",
            i % 1000,
            (i * 7) % 1000,
            (i * 13) % 1000
        )
    });
    let text = format!("{}forces:\n{laws}", bodies(1000, "spherical", true));
    answer("forces between the bodies of a long chain", &text, &[BundleKind::ForwardDynamicsRecursive]);
}
