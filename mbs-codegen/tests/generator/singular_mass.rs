//! A mass matrix that is singular where it must not be is reported by the joint's name and place.

fn read(bodies: &str, elbow: &str) -> Result<String, String> {
    let text = format!(
        "mbs: 1\nname: arm\nbodies:\n{bodies}joints:\n  shoulder: {{type: revolute, parent: ground, child: upper, \
         axis: [0, 0, 1]}}\n  elbow: {{type: revolute, parent: upper.elbow, child: lower, axis: [0, 0, 1]{elbow}}}\n"
    );
    match mbs_codegen::read("arm.yaml", &text) {
        Ok((_, warnings)) => Ok(warnings.render("arm.yaml", &text)),
        Err(errors) => Err(errors.render("arm.yaml", &text)),
    }
}

const UPPER: &str = "  upper: {mass: 1, com: [0.5, 0, 0], points: {elbow: [1, 0, 0]}}\n";

#[test]
fn a_massless_end_is_an_error() {
    let message = read(&format!("{UPPER}  lower: {{}}\n"), "").expect_err("nothing resists the elbow");
    assert!(message.contains("arm.yaml:8:3: error: no inertia along `elbow.angle_rate`"), "{message}");
    assert!(message.contains("give body `lower`"), "{message}");
}

#[test]
fn a_massless_link_between_is_fine() {
    let lower = "  lower: {mass: 2, com: [0, -1, 0]}\n";
    let upper = "  upper: {points: {elbow: [1, 0, 0]}}\n";
    assert_eq!(read(&format!("{upper}{lower}"), ", start: 0.4"), Ok(String::new()));
}

/// A single point mass on two links has one direction too few where the links are in line.
#[test]
fn a_singular_start_is_a_warning() {
    let upper = "  upper: {points: {elbow: [1, 0, 0]}}\n";
    let lower = "  lower: {mass: 2, com: [1, 0, 0]}\n";
    let message = read(&format!("{upper}{lower}"), "").expect("regular elsewhere");
    assert!(
        message.contains("warning: the mass matrix is singular along `shoulder.angle_rate` at the start"),
        "{message}"
    );
}
