//! `docs/bundles.md` says what the table says. `MBS_UPDATE=1` renews it.

use mbs_bundles::{Argument, BundleKind, Entry, Exists, Family, Pivots, ResultEntry, Sections, Written};
use std::fmt::Write;
use std::path::Path;

const BEGIN: &str = "<!-- From the table of bundles; renew with MBS_UPDATE=1 cargo test -p mbs-bundles -->\n";
const END: &str = "<!-- End of the table of bundles -->\n";

const FAMILIES: [(Family, &str, &str); 12] = [
    (Family::Tree, "The tree", "In joint form, of the mechanism without its constraints."),
    (
        Family::Robotics,
        "Identification, control, optimisation",
        "In joint form, of the mechanism without its constraints.",
    ),
    (
        Family::CoordinateForm,
        "Coordinate form",
        "For implicit integrators: one trait, `Constrained`, all bundles together. `at` is t, z, zd, zdd and the inputs.",
    ),
    (
        Family::FusedSteps,
        "Parts of an implicit step",
        "With the coordinate form of small models: what a usual step needs, with everything in common computed once.",
    ),
    (Family::JointForm, "Constraints in joint form", "For explicit integrators, and what joints transmit."),
    (Family::MatrixR, "Independent coordinates", "For the formulation `matrix_r`, beside the joint form."),
    (Family::Judged, "Objectives", ""),
    (Family::Start, "Derivatives of the start", "With either of the next two."),
    (
        Family::Sensitivities,
        "Sensitivities of implicit runs",
        "All together, with the coordinate form. `at` is t, z, zd, zdd and the inputs.",
    ),
    (Family::JointSensitivities, "Sensitivities of explicit runs", "All together."),
    (Family::Events, "Events", "For models that have some, with every run of theirs."),
    (Family::EventSensitivities, "Derivatives of events", "With either family of sensitivities."),
];

fn arguments(entry: &Entry) -> String {
    let word = |&(name, what): &(&str, Argument)| match what {
        Argument::At | Argument::Motion => None,
        _ => Some(format!("`{name}`")),
    };
    let others: Vec<String> = entry.arguments.iter().filter_map(word).collect();
    let has_instant = entry.arguments.iter().any(|(_, what)| matches!(what, Argument::At | Argument::Motion));
    match (has_instant, others.is_empty()) {
        (true, _) => others.join(", "),
        (false, true) => "(no `at`)".into(),
        (false, false) => format!("{} (no `at`)", others.join(", ")),
    }
}

fn results(entry: &Entry) -> String {
    let one = |result: &ResultEntry| format!("`{}` ({}): {}", result.name, result.shape, result.doc);
    let all: Vec<String> = entry.results.iter().filter(|result| result.is_computed()).map(one).collect();
    let (before, after) = match entry.written {
        Written::InPlace => (String::new(), ", in the place of the right-hand side"),
        Written::Fields { name, of } => (format!("`{name}: {of}` with "), ""),
        Written::Slices | Written::Array => (String::new(), ""),
    };
    let failure = match entry.pivots {
        Pivots::None => "",
        Pivots::Positive => ". An error where the mass matrix is singular",
        Pivots::Leading | Pivots::Joint => ". An error where the elimination fails",
    };
    let exists = match entry.exists {
        Exists::Always => "",
        Exists::Unconstrained => ". Not for models with constraints",
        Exists::Events | Exists::Fused => "",
        Exists::Tangent => ". Only for projections with the matrix of the tangent",
        Exists::Cheaper => ". Only where it takes fewer operations than products with the lists",
        Exists::Replaced => {
            ". With constraints, the coordinate form and the constraints in joint form take its place"
        }
    };
    format!("{before}{}{after}{failure}{exists}", all.join("; "))
}

fn table() -> String {
    let mut page = String::from(BEGIN);
    for (family, title, text) in FAMILIES {
        let _ = write!(page, "\n## {title}\n\n");
        if !text.is_empty() {
            let _ = write!(page, "{text}\n\n");
        }
        page.push_str("| bundle | arguments beside `at`, `w` | what | writes |\n|---|---|---|---|\n");
        let members =
            BundleKind::ALL.map(BundleKind::entry).into_iter().filter(|entry| entry.family == family);
        for entry in members.clone() {
            let (taken, written) = (arguments(entry), results(entry));
            let _ = writeln!(page, "| `{}` | {taken} | {} | {written} |", entry.name, entry.doc);
        }
        for entry in members {
            if let Sections::Of { result, list, sections } = entry.sections {
                let _ = write!(page, "\nSections of `{result}` of `{}`, cut by `{list}`:\n\n", entry.name);
                page.push_str("| section | what | length |\n|---|---|---|\n");
                for section in sections {
                    let _ = writeln!(page, "| `{}` | {} | `{}` |", section.name, section.doc, section.len);
                }
            }
            if let Sections::Like(other) = entry.sections {
                let _ = write!(page, "\n`{}` has the sections of `{}`.\n", entry.name, other.name());
            }
        }
    }
    page.push('\n');
    page.push_str(END);
    page
}

#[test]
fn page_says_what_the_table_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/bundles.md");
    let page = std::fs::read_to_string(&path).expect("the page");
    let (before, rest) = page.split_once(BEGIN).expect("where the table begins");
    let (_, after) = rest.split_once(END).expect("where the table ends");
    let fresh = format!("{before}{}{after}", table());
    if std::env::var_os("MBS_UPDATE").is_some() {
        std::fs::write(&path, fresh).expect("writable");
    } else {
        assert!(
            page == fresh,
            "docs/bundles.md is stale; run this test with MBS_UPDATE=1 and commit the result"
        );
    }
}

#[test]
fn every_bundle_is_on_the_page() {
    let families = FAMILIES.map(|(family, ..)| family);
    let missing: Vec<&str> = BundleKind::ALL
        .into_iter()
        .filter(|kind| !families.contains(&kind.entry().family))
        .map(BundleKind::name)
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn entries_hold_together() {
    for (place, kind) in BundleKind::ALL.into_iter().enumerate() {
        let entry = kind.entry();
        assert_eq!((kind as usize, entry.kind, BundleKind::from_name(entry.name)), (place, kind, Some(kind)));
        assert!(entry.doc.ends_with('.'), "{}: {}", entry.name, entry.doc);
        // Functions take their arguments in the order of the groups.
        assert!(entry.reads.is_sorted(), "{}", entry.name);
        for (name, what) in entry.arguments {
            if let Argument::Slice(group) = what {
                assert_eq!(group.identifier(), *name, "{}", entry.name);
                assert!(entry.reads.contains(group), "{} takes {name} and does not read it", entry.name);
            }
        }
        if let Some((result, sections)) = kind.sections() {
            assert!(entry.results.iter().any(|one| one.name == result), "{}", entry.name);
            assert!(sections.len() > 1, "{}", entry.name);
        }
    }
    assert_eq!(BundleKind::COORDINATE_FORM.len(), 8);
    assert!(BundleKind::SENSITIVITIES.contains(&BundleKind::StartDerivatives));
    assert!(BundleKind::JOINT_SENSITIVITIES.contains(&BundleKind::StartDerivatives));
}
