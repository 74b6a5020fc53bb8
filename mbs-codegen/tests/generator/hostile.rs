//! No input makes the reader panic, hang or take memory without bound.

use std::path::Path;
use std::time::{Duration, Instant};

fn random(seed: &mut u64) -> usize {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    (*seed >> 16) as usize
}

/// Reads a text within a time no honest file comes near, and prints what is wrong with it.
fn survive(what: &str, text: &str) {
    let begin = Instant::now();
    let (model, diagnostics) = mbs_codegen::yaml::read("hostile.yaml", text);
    assert_eq!(model.is_some(), !diagnostics.has_errors(), "{what}");
    let printed = diagnostics.render("hostile.yaml", text);
    let time = begin.elapsed();
    if std::env::var_os("MBS_TIMES").is_some() {
        println!("{time:?} {what}");
    }
    assert!(time < Duration::from_secs(20), "{what} took {time:?}");
    assert!(printed.len() < 1 << 20, "{what} printed {} bytes", printed.len());
}

fn seeds() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<_> = ["../models", "tests/diagnostics"]
        .iter()
        .flat_map(|folder| std::fs::read_dir(root.join(folder)).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "yaml"))
        .collect();
    files.sort();
    files.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

/// Files with a few characters changed, cut, doubled or swapped for others.
#[test]
fn damaged_files() {
    let rounds: usize = std::env::var("MBS_FUZZ").ok().and_then(|n| n.parse().ok()).unwrap_or(20);
    let pieces = [
        "{",
        "}",
        "[",
        "]",
        ":",
        ": ",
        ", ",
        "- ",
        "\n",
        "\n  ",
        "\"",
        "'",
        "|",
        "&a ",
        "*a",
        "!t ",
        "? ",
        "#",
        "<<: *a",
        "(",
        ")",
        "^",
        "*",
        "/",
        "-",
        ".",
        "t",
        "1e308",
        "-0",
        "1e-320",
        ".nan",
        "~",
        "\t",
        "\u{0}",
        "é",
        "\u{202e}",
        "mirror: y",
        "ground",
        "origin",
        "angle",
        "rate",
        "if(",
        "<",
        "==",
        "spline(t, ",
        "pos(",
        ".x",
        "e0",
        "arguments",
        "names: [a]",
    ];
    let mut seed = 0x9e3779b97f4a7c15u64;
    for text in seeds() {
        for _ in 0..rounds {
            let mut chars: Vec<char> = text.chars().take(20_000).collect();
            for _ in 0..1 + random(&mut seed) % 4 {
                let at = random(&mut seed) % (chars.len() + 1);
                let end = (at + random(&mut seed) % 12).min(chars.len());
                match random(&mut seed) % 4 {
                    0 => drop(chars.drain(at..end)),
                    1 => {
                        let copy: Vec<char> = chars[at..end].to_vec();
                        chars.splice(at..at, copy);
                    }
                    _ => drop(chars.splice(at..at, pieces[random(&mut seed) % pieces.len()].chars())),
                }
            }
            survive("a damaged file", &chars.into_iter().collect::<String>());
        }
    }
}

/// Files made to hurt.
#[test]
fn files_made_to_hurt() {
    let head = "mbs: 1\n";
    let body = "bodies:\n  arm: {}\njoints:\n  j: {type: fixed, parent: ground, child: arm}\n";
    survive("brackets", &"[".repeat(1 << 20));
    survive("braces", &"{a: ".repeat(1 << 18));
    survive("dashes", &"- ".repeat(1 << 20));
    survive("questions", &"? ".repeat(1 << 20));
    survive("indentation", &(0..1500).map(|i| " ".repeat(i) + "a:\n").collect::<String>());
    survive("a huge file", &"a".repeat(5 << 20));
    survive("a long key", &("a".repeat(4 << 20) + ": 1"));
    survive("a long scalar", &format!("{head}name: {}", "a".repeat(3 << 20)));
    survive("a long number", &format!("{head}{body}parameters: {{a: {}}}", "9".repeat(3 << 20)));
    survive("many keys", &(0..200_000).map(|i| format!("k{i}: 1\n")).collect::<String>());
    survive(
        "many bad keys",
        &format!("{head}{}", (0..200_000).map(|i| format!("k{i}: 1\n")).collect::<String>()),
    );
    let many = |n: usize, f: &dyn Fn(usize) -> String| (0..n).map(f).collect::<String>();
    survive("many bodies", &format!("{head}bodies:\n{}", many(100_000, &|i| format!("  b{i}: {{}}\n"))));
    survive(
        "many parameters in a chain",
        &format!(
            "{head}{body}parameters:\n  p0: 1\n{}",
            many(9_999, &|i| format!("  p{}: p{i} + 1\n", i + 1))
        ),
    );
    survive(
        "many parameters in a backward chain",
        &format!(
            "{head}{body}parameters:\n{}  p9999: 1\n",
            many(9_999, &|i| format!("  p{i}: p{} + 1\n", i + 1))
        ),
    );
    survive(
        "many circles",
        &format!("{head}{body}parameters:\n{}", many(9_999, &|i| format!("  p{i}: p{i}\n"))),
    );
    survive(
        "many unknown names",
        &format!("{head}{body}parameters:\n{}", many(9_999, &|i| format!("  p{i}: q{i} + 1\n"))),
    );
    let chain = many(9_000, &|i| format!("  j{i}: {{type: fixed, parent: b{i}, child: b{}}}\n", i + 1));
    let bodies = many(9_001, &|i| format!("  b{i}: {{}}\n"));
    survive(
        "a long chain that closes",
        &format!(
            "{head}bodies:\n{bodies}joints:\n  r: {{type: fixed, parent: ground, child: b0}}\n{chain}  c: {{type: fixed, parent: ground, child: b9000}}\n"
        ),
    );
    let doubled = many(4_000, &|i| format!("  l{i}: {{type: fixed, parent: ground, child: b{i}}}\n"));
    survive(
        "many loops",
        &format!(
            "{head}bodies:\n{bodies}joints:\n  r: {{type: fixed, parent: ground, child: b0}}\n{chain}{doubled}"
        ),
    );
    let kinds = ["fixed", "spherical", "revolute", "floating"];
    let dense = many(9_900, &|i| {
        let (kind, parent, child) = (kinds[i * 7 % 4], i * 31 % 101, i * 17 % 99 + 1);
        let axis = if kind == "revolute" { ", axis: [0, 0, 1]" } else { "" };
        format!("  l{i}: {{type: {kind}, parent: b{parent}, child: b{child}{axis}, start: 0}}\n")
    });
    survive(
        "many joints between few bodies",
        &format!("{head}bodies:\n{bodies}joints:\n  r: {{type: fixed, parent: ground, child: b0}}\n{dense}"),
    );
    let dense = dense.replace(", start: 0", "");
    let few = many(101, &|i| format!("  b{i}: {{}}\n"));
    survive(
        "many loops through few bodies",
        &format!("{head}bodies:\n{few}joints:\n  r: {{type: fixed, parent: ground, child: b0}}\n{dense}"),
    );
    let kept = many(5_000, &|i| {
        format!("  l{i}: {{type: fixed, parent: ground, child: b{i}, cut: {}}}\n", i % 2 == 0)
    });
    survive(
        "many loops that cannot be cut",
        &format!("{head}bodies:\n{bodies}joints:\n{}{kept}", chain.replace('}', ", cut: false}")),
    );
    let long = format!("[t{}, 1, 0]", "+t".repeat(150));
    let points = "arm, ground, ".repeat(490);
    survive(
        "aligned points along long expressions",
        &format!(
            "{head}{body}constraints:\n{}",
            many(500, &|i| format!(
                "  c{i}: {{type: aligned, points: [{points}arm], reference: '{long}'}}\n"
            ))
        ),
    );
    survive(
        "many equations of long vectors",
        &format!(
            "{head}{body}constraints:\n{}",
            many(9_999, &|i| format!("  c{i}: {{type: equation, value: 'pos(arm) - {long}'}}\n"))
        ),
    );
    survive(
        "many variables in no constraint",
        &format!("{head}{body}variables:\n{}", many(20_000, &|i| format!("  v{i}: 1\n"))),
    );
    survive(
        "joints cut along long axes",
        &format!(
            "{head}parameters: {{a: 1}}\n{body}{}",
            many(2_000, &|i| {
                let axis = format!("[1{}, 0, 0]", "+a".repeat(150));
                format!("  k{i}: {{type: revolute, parent: ground, child: arm, axis: '{axis}'}}\n")
            })
        ),
    );
    let numbers = many(9_000, &|i| format!("  p{i}: {i}\n"));
    let derived = many(500, &|i| {
        format!(
            "  d{i}: {}\n",
            (0..150).map(|k| format!("p{}", 60 * k + i % 60)).collect::<Vec<_>>().join("+")
        )
    });
    let all = format!("  d: {}\n", (0..150).map(|i| format!("d{}", 3 * i)).collect::<Vec<_>>().join("+"));
    let parameters = format!("{head}{body}parameters:\n{numbers}{derived}{all}");
    survive(
        "a parameter of many, listed often",
        &format!("{parameters}sensitivity: [{}]\n", "d, ".repeat(200_000)),
    );
    let listed = (0..990).map(|i| format!("p{i}")).collect::<Vec<_>>().join(", ");
    survive(
        "a long list in many cases",
        &format!(
            "{parameters}cases:\n  c: {{sensitivity: &list [{listed}]}}\n{}",
            many(499, &|i| format!("  c{i}: {{sensitivity: *list}}\n"))
        ),
    );
    let ones = "1, ".repeat(450);
    survive(
        "arrays listed often",
        &format!(
            "{head}{body}parameters: {{a: [{ones}], b: [{ones}]}}\ncases:\n  c: {{sensitivity: &list [{}]}}\n{}",
            "a, b, ".repeat(490),
            many(499, &|i| format!("  c{i}: {{sensitivity: *list}}\n"))
        ),
    );
    survive(
        "many cases",
        &format!(
            "{parameters}cases:\n{}",
            many(100_000, &|i| format!("  c{i}: {{parameters: {{p1: 2}}}}\n"))
        ),
    );
    survive(
        "objectives of many multipliers",
        &format!(
            "{head}{body}constraints:\n{}objectives:\n{}",
            many(9_999, &|i| format!("  k{i}: {{type: equation, value: pos(arm).x - {i}}}\n")),
            many(2_000, &|i| format!(
                "  o{i}: {}\n",
                format!("multiplier(k{i})+").repeat(100) + "norm(reaction_force(j))"
            ))
        ),
    );
    let element = format!(
        "elements:\n  e:\n    arguments: {{a: scalar}}\n    bodies:\n      b:\n        points:\n{}\n    joints:\n      j: {{type: fixed, parent: ground, child: b}}\n",
        many(900, &|i| format!("          p{i}: [a, a, a]\n"))
    );
    let instances =
        many(2_000, &|i| format!("  i{i}: {{element: e, arguments: {{a: {}}}}}\n", "1+".repeat(100) + "1"));
    survive("many instances", &format!("{head}{element}instances:\n{instances}"));
    let sum = format!("a{}", "+a".repeat(150));
    survive(
        "arguments that grow",
        &format!(
            "{head}{body}elements:\n  e:\n    arguments: {{a: scalar}}\n    outputs:\n{}\ninstances:\n{}",
            many(500, &|i| format!("      o{i}: {sum}\n")),
            many(500, &|i| format!("  i{i}: {{element: e, arguments: {{a: {}}}}}\n", "t+".repeat(150) + "t"))
        ),
    );
    let bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n".to_string()
        + &('b'..='z')
            .map(|c| {
                let p = (c as u8 - 1) as char;
                format!("{c}: &{c} [*{p}, *{p}, *{p}, *{p}, *{p}, *{p}, *{p}, *{p}, *{p}]\n")
            })
            .collect::<String>();
    survive("an alias bomb", &bomb);
    survive(
        "a long aliased scalar",
        &format!("a: &a '{}'\nb: [{}]\n", "x".repeat(1 << 20), "*a, ".repeat(200_000)),
    );
    survive("an array of a million", &format!("{head}{body}parameters: {{a: [{}]}}", "1, ".repeat(900_000)));
    let deep = "a: &x0 [1]\n".to_string()
        + &(0..200).map(|i| format!("k{i}: &x{} [*x{i}]\n", i + 1)).collect::<String>();
    survive("aliases that nest", &deep);
    for open in ["(", "sin(", "-(", "[", "a[", "if(", "2^", "- - ", "max(1,"] {
        survive(
            "a deep expression",
            &format!("{head}{body}outputs:\n  o: \"{}\"\n", open.repeat(4000 / open.len())),
        );
    }
    survive(
        "nested maxima",
        &format!("{head}{body}outputs:\n  o: \"{}1{}\"\n", "max(1,1,1,1,".repeat(40), ")".repeat(40)),
    );
}

/// The deepest and largest expressions that are allowed are dropped, cloned and evaluated on a small stack.
#[test]
fn the_deepest_expressions_fit_a_small_stack() {
    let sum = |x: &str| format!("{x}{}", format!("+{x}").repeat(155));
    let text = format!(
        "mbs: 1\nbodies:\n  arm: {{mass: 1}}\njoints:\n  j: {{type: floating, parent: ground, child: arm}}\nparameters:\n  a: 1\n  b: {}\ndefinitions:\n  d: {}\noutputs:\n  o: {}\n  p: d{}\n",
        sum("a"),
        sum("t"),
        sum("t"),
        "+t".repeat(155)
    );
    let worker = std::thread::Builder::new().stack_size(512 << 10).spawn(move || {
        let (model, diagnostics) = mbs_codegen::yaml::read("deep.yaml", &text);
        let model = model.unwrap_or_else(|| panic!("{}", diagnostics.render("deep.yaml", &text)));
        let values = mbs_codegen::model::evaluate::Values::defaults(&model.clone());
        drop(model);
        values
    });
    worker.unwrap().join().unwrap();
}
