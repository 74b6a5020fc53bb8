//! Every shipped model reads without a problem; the mirrored one moves as it should.

use std::path::Path;

use mbs_codegen::bundle::Bundle;
use mbs_codegen::bundle::interpret::{Arguments, run, scratch_len};
use mbs_codegen::program::{BundleKind, Options, Program};
use mbs_codegen::symbols::Group;
use mbs_codegen::yaml::keys;

#[test]
fn every_shipped_model_reads_clean() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../models");
    let mut count = 0;
    let mut entries: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    entries.sort();
    for path in entries.into_iter().filter(|p| p.extension().is_some_and(|e| e == "yaml")) {
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let (model, warnings) = mbs_codegen::read(&name, &text)
            .unwrap_or_else(|errors| panic!("{}", errors.render(&name, &text)));
        assert!(warnings.is_empty(), "{}", warnings.render(&name, &text));
        assert_eq!(format!("{}.yaml", model.name), name);
        count += 1;
    }
    assert!(count >= 8);
}

/// Every key of some models, one at a time with two of its letters swapped: the file is refused, with the line of the typo and,
/// where the key is one of the format, with the key that was meant.
#[test]
fn a_typo_in_any_key_is_found_where_it_is() {
    let known: Vec<&str> = keys::ALL.iter().flat_map(|(_, table)| table.keys).copied().collect();
    let (mut typos, mut suggested, mut renamed) = (0, 0, Vec::new());
    for name in
        ["pendulum", "cart_pole", "spinning_top", "torque_free_top", "five_bar", "mirrored", "whipple"]
    {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../models/{name}.yaml"));
        let text = std::fs::read_to_string(path).unwrap();
        let mut start = 0;
        for (number, line) in text.lines().enumerate() {
            let code = line.split('#').next().unwrap_or(line);
            for (at, _) in code.match_indices(':') {
                let word = code[..at].rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("");
                // Free texts may contain anything.
                if word.len() < 3 || !known.contains(&word) || code[..at].contains("description") {
                    continue;
                }
                let begin = start + at - word.len();
                let letters: Vec<char> = word.chars().collect();
                let Some(k) = (1..letters.len() - 1).find(|&k| letters[k] != letters[k + 1]) else {
                    continue;
                };
                let mut swapped = letters;
                swapped.swap(k, k + 1);
                let swapped: String = swapped.into_iter().collect();
                let typo = format!("{}{swapped}{}", &text[..begin], &text[begin + word.len()..]);
                let place = format!("{name}:{}: {word} → {swapped}", number + 1);
                let diagnostics = mbs_codegen::yaml::read(name, &typo).1;
                typos += 1;
                if !diagnostics.has_errors() {
                    renamed.push(place);
                    continue;
                }
                let printed = diagnostics.render(name, &typo);
                let here = diagnostics.iter().any(|d| d.span.line as usize == number + 1);
                assert!(here || printed.contains(&swapped), "{place}:\n{printed}");
                suggested += usize::from(printed.contains(&format!("did you mean `{word}`?")));
            }
            start += line.len() + 1;
        }
    }
    assert!(typos > 200, "{typos}");
    // An output may have any name that is not used twice.
    assert!(renamed.len() <= 3, "{renamed:#?}");
    // The others are names that happen to be keys: of bodies and parameters, for which the typo is the only name there is.
    assert!(suggested * 20 > typos * 19, "{suggested} of {typos}");
}

/// Where both wheels meet the same bump at the same time, the mirror image of the left arm moves as the left arm,
/// and the frame heaves without rolling.
#[test]
fn the_mirrored_suspension_stays_upright() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../models/mirrored.yaml");
    let text = std::fs::read_to_string(path).unwrap();
    let (model, _) = mbs_codegen::read("mirrored.yaml", &text).unwrap();
    let case = model.cases.iter().find(|c| c.name == "together");
    let options = Options { freeze: true, bundles: vec![BundleKind::ForwardDynamics], ..Options::default() };
    let program = Program::new(&model, case, &options).expect("a program of moderate size");
    let dynamics = program.bundle("forward_dynamics").unwrap();
    let place = |names: &[String], name: &str| names.iter().position(|n| n == name).unwrap();
    let (nq, nv) = (program.coordinates.len(), program.velocities.len());

    let prepared = evaluate(program.bundle("prepare").unwrap(), &Arguments::new()).concat();
    let start =
        evaluate(program.bundle("start").unwrap(), &Arguments::new().with(Group::Prepared, &prepared));
    let mut y = start.concat();
    let rates = |t: f64, y: &[f64]| {
        let time = [t];
        let arguments = Arguments::new()
            .with(Group::Time, &time)
            .with(Group::Z, &y[..nq])
            .with(Group::V, &y[nq..])
            .with(Group::Prepared, &prepared);
        let results = evaluate(dynamics, &arguments);
        let named = |name| dynamics.results.iter().position(|r| r.name == name).unwrap();
        [results[named("zd")].clone(), results[named("vd")].clone()].concat()
    };
    let h = 1e-3;
    let mut heave = (f64::MAX, f64::MIN);
    for step in 0..1500 {
        let t = step as f64 * h;
        let at = |k: &[f64], c: f64| y.iter().zip(k).map(|(y, k)| y + c * h * k).collect::<Vec<f64>>();
        let k1 = rates(t, &y);
        let k2 = rates(t + h / 2.0, &at(&k1, 0.5));
        let k3 = rates(t + h / 2.0, &at(&k2, 0.5));
        let k4 = rates(t + h, &at(&k3, 1.0));
        for i in 0..nq + nv {
            y[i] += h / 6.0 * (k1[i] + 2.0 * k2[i] + 2.0 * k3[i] + k4[i]);
        }
        let z = y[place(&program.coordinates, "ride.heave")];
        heave = (heave.0.min(z), heave.1.max(z));
        let left = y[place(&program.coordinates, "left_hinge.angle")];
        let right = y[place(&program.coordinates, "right_hinge.angle")];
        assert!((left - right).abs() < 1e-9, "t = {t}: {left} and {right}");
        assert!(y[place(&program.coordinates, "ride.roll")].abs() < 1e-9, "t = {t}");
        assert!(y[place(&program.coordinates, "ride.sway")].abs() < 1e-9, "t = {t}");
    }
    // It rides over the bump of 50 mm without leaving the realm of the plausible.
    assert!(heave.1 - heave.0 > 0.02 && heave.0 > 0.2 && heave.1 < 0.7, "{heave:?}");
}

fn evaluate(bundle: &Bundle, arguments: &Arguments<'_, f64>) -> Vec<Vec<f64>> {
    let mut results: Vec<Vec<f64>> = bundle.results.iter().map(|r| vec![0.0; r.len as usize]).collect();
    let mut slices: Vec<&mut [f64]> = results.iter_mut().map(Vec::as_mut_slice).collect();
    run(bundle, arguments, &mut vec![0.0; scratch_len(bundle)], &mut slices).unwrap();
    results
}
