//! Converts a URDF robot into a model file.
//!
//! Input: the text of a URDF file. Output: the text of a model file that `mbs-codegen` reads, with a report of everything that was left out;
//! or all problems of the file with their places. The steps: `source` and `elements` give the XML tree with places,
//! `read` the robot, `tree` the order of its joints, `merge` the bodies, `write` the text.
//! Guarantee: no input makes this panic, hang or use unbounded memory ([`limits`]).
//!
//! ```
//! let urdf = r#"
//! <robot name="arm">
//!   <link name="base"/>
//!   <link name="rod">
//!     <inertial>
//!       <origin xyz="0 0 -0.5"/>
//!       <mass value="2"/>
//!       <inertia ixx="0.2" iyy="0.2" izz="0.01" ixy="0" ixz="0" iyz="0"/>
//!     </inertial>
//!   </link>
//!   <joint name="hinge" type="continuous">
//!     <parent link="base"/>
//!     <child link="rod"/>
//!     <origin xyz="0 0 1"/>
//!     <axis xyz="0 1 0"/>
//!   </joint>
//! </robot>"#;
//! let imported = mbs_urdf::import("arm.urdf", urdf, &Default::default()).expect("a robot");
//! let (model, _) = mbs_codegen::read("arm.yaml", &imported.yaml).expect("a valid model");
//! assert_eq!(model.joints[0].name, "hinge");
//! ```
//!
//! | URDF | model |
//! |---|---|
//! | `link` | a body with the link's frame; mass, centre of mass and inertia with its own axes from `inertial` |
//! | root link | part of ground, or, with a floating base, a body on a floating joint |
//! | `fixed` joint | none: the child link is merged into the parent's body; a point with its name remains and, if it is rotated, vectors `NAME_x`, `NAME_z` |
//! | `revolute`, `continuous`, `prismatic`, `floating`, `planar` | joints with the same frames. A planar joint has its x along the coordinate axis that follows the one nearest to its normal, x → y → z → x |
//! | `mimic` | a coupling |
//! | `damping` | a torsional spring's damping |
//! | `friction` f | a joint force −f tanh(rate/r) with a parameter r |
//! | `limit` | the joint's description |
//! | joints that move no mass | none: locked at zero, since nothing determines their acceleration |
//! | visual, collision, transmission, … | nothing; counted in the [`Report`] |

pub mod limits;

mod frame;

mod source;

mod elements;

mod robot;

mod read;

mod tree;

mod loops;
mod merge;
mod names;

mod report;
mod write;

pub use loops::Loop;
pub use report::Report;

use elements::Elements;
use frame::Angles;
use mbs_codegen::diagnostics::{Diagnostics, Span, nearest};
use mbs_codegen::model::moments::impossible;
use merge::Bodies;
use names::{Scope, valid_name};
use robot::{JointId, Robot};
use source::{Source, one_line};
use tree::Tree;
use write::{Closure, ModelWriter};

/// Options of an import.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The root link floats; otherwise it is part of ground.
    pub floating_base: bool,
    /// Joints that close loops.
    pub loops: Vec<Loop>,
    /// Angles within this distance of a multiple of π/2 are rounded to it, rad.
    pub snap: f64,
    /// Damping and friction of joints become forces.
    pub dissipation: bool,
    /// Joints that mimic others are coupled with them; otherwise they move independently.
    pub mimicry: bool,
}

impl Default for Options {
    /// A fixed base, no loops; damping, friction and mimic joints are kept. Files write π/2 with twelve digits, an error of 5e-12.
    fn default() -> Self {
        Options { floating_base: false, loops: Vec::new(), snap: 1e-11, dissipation: true, mimicry: true }
    }
}

/// A model file converted from a robot.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The text of the model file.
    pub yaml: String,
    /// Warnings.
    pub warnings: Diagnostics,
    /// What was changed and skipped.
    pub report: Report,
}

/// Converts the text of a URDF file into that of a model file. `file_name` names the model, if the robot has no name, and appears in a comment.
pub fn import(file_name: &str, text: &str, options: &Options) -> Result<Imported, Diagnostics> {
    let mut diagnostics = Diagnostics::new();
    match import_into(file_name, text, options, &mut diagnostics) {
        Some((yaml, report)) if !diagnostics.has_errors() => {
            Ok(Imported { yaml, warnings: diagnostics, report })
        }
        _ => Err(diagnostics),
    }
}

fn import_into(
    file_name: &str,
    text: &str,
    options: &Options,
    diagnostics: &mut Diagnostics,
) -> Option<(String, Report)> {
    let readable = source::readable(text, diagnostics)?;
    let document = source::parse(&readable)?;
    let places = Source::new(text);
    let mut elements = Elements {
        source: &places,
        diagnostics,
        skipped: Default::default(),
        angles: Angles::new(options.snap.clamp(0.0, 0.1)),
    };
    let robot = read::read(&document, options.mimicry, &mut elements).ok()?;
    let (skipped, mut angles) = (elements.skipped, elements.angles);
    let tree = Tree::of(&robot, diagnostics)?;
    let bodies = merge::merge(&robot, &tree, options.floating_base);
    check_bodies(&robot, &bodies, diagnostics)?;

    let base = file_name.rsplit(['/', '\\']).next().unwrap_or("");
    let mut names = Names::of(&robot, &bodies);
    let closures = resolve_loops(&robot, &bodies, options, &mut names, &mut angles, diagnostics)?;
    let coupling_names = names.couplings(&robot, &bodies);
    let stem = base.split('.').next().unwrap_or("");
    let writing = ModelWriter {
        robot: &robot,
        bodies: &bodies,
        closures: &closures,
        name: valid_name(robot.name.as_deref().unwrap_or(stem)),
        file: base,
        body_names: names.bodies,
        joint_names: names.joints,
        base_name: names.base,
        coupling_names,
        dissipation: options.dissipation,
    };
    let yaml = writing.yaml();
    let limited = |id: &&JointId| {
        let limits = robot.joints[id.0].limits;
        [limits.lower, limits.upper, limits.velocity, limits.effort].iter().any(Option::is_some)
    };
    let report = Report {
        links: robot.links.len(),
        bodies: bodies.bodies.len() - 1,
        joints: bodies.joints.len() + usize::from(bodies.floats),
        couplings: writing.coupling_names.len(),
        loops: closures.len(),
        mass: bodies.bodies[1..].iter().map(|body| body.mass).sum(),
        grounded: bodies.bodies[0].mass,
        renamed: names.renamed,
        locked: bodies.locked.iter().map(|id| one_line(&robot.joints[id.0].name)).collect(),
        skipped,
        limits: bodies.joints.iter().filter(limited).count(),
        angles: (angles.count, angles.largest),
    };
    Some((yaml, report))
}

/// Reports bodies that cannot be in a model, and inertias that no body can have.
fn check_bodies(robot: &Robot, bodies: &Bodies, diagnostics: &mut Diagnostics) -> Option<()> {
    if bodies.bodies.len() == 1 {
        let help = if bodies.locked.is_empty() {
            "with `--floating-base` the root link is a body of its own"
        } else {
            "its joints move no mass; give its links an `<inertial>`"
        };
        diagnostics.error(robot.span, "nothing of the robot moves").help(help);
        return None;
    }
    for body in &bodies.bodies[1..] {
        let heaviest = body.links.iter().map(|(link, _)| &robot.links[link.0]).max_by(|a, b| {
            let mass = |link: &robot::Link| link.inertial.map_or(0.0, |inertial| inertial.mass);
            mass(a).total_cmp(&mass(b))
        });
        let Some(link) = heaviest else { continue };
        let span = link.inertial.map_or(link.span, |inertial| inertial.span);
        if !body.is_finite() {
            let message = format!("the numbers of link `{}` are too large", one_line(&link.name));
            diagnostics.error(span, message).help("lengths are in m, masses in kg");
        } else if let Some(why) = impossible(body.inertia) {
            let together = if body.links.len() > 1 { " and what is fixed to it" } else { "" };
            let message =
                format!("no body has the inertia of link `{}`{together}: {why}", one_line(&link.name));
            diagnostics.warning(span, message).help("it is kept, and marked `unphysical`");
        }
    }
    (!diagnostics.has_errors()).then_some(())
}

/// The names of the model.
struct Names {
    scope: Scope,
    bodies: Vec<String>,
    joints: Vec<Option<String>>,
    base: String,
    renamed: Vec<(&'static str, String, String)>,
}

impl Names {
    /// Joints first: where a link and a joint have the same name, the joint keeps it.
    fn of(robot: &Robot, bodies: &Bodies) -> Names {
        let mut scope = Scope::with(&["ground"]);
        let mut renamed = Vec::new();
        let mut take = |what: &'static str, name: &str| {
            let taken = scope.unique_name(name, what);
            if taken != name {
                renamed.push((what, one_line(name), taken.clone()));
            }
            taken
        };
        let mut joints = vec![None; robot.joints.len()];
        for id in &bodies.joints {
            joints[id.0] = Some(take("joint", &robot.joints[id.0].name));
        }
        let mut body_names = vec!["ground".to_string()];
        for body in &bodies.bodies[1..] {
            let name = body.links.first().map_or("", |(link, _)| &robot.links[link.0].name);
            body_names.push(take("link", name));
        }
        let base = if bodies.floats { scope.unique_name("floating_base", "joint") } else { String::new() };
        Names { scope, bodies: body_names, joints, base, renamed }
    }

    /// A coupling for every joint that moves and mimics.
    fn couplings(&mut self, robot: &Robot, bodies: &Bodies) -> Vec<(JointId, String)> {
        let mimicking = bodies.joints.iter().filter(|id| robot.joints[id.0].mimic.is_some());
        mimicking
            .filter_map(|id| Some((*id, self.joints[id.0].as_deref()?)))
            .map(|(id, joint)| (id, self.scope.unique_name(&format!("{joint}_mimic"), "coupling")))
            .collect()
    }
}

/// The loops with their links resolved.
fn resolve_loops<'o>(
    robot: &Robot,
    bodies: &Bodies,
    options: &'o Options,
    names: &mut Names,
    angles: &mut Angles,
    diagnostics: &mut Diagnostics,
) -> Option<Vec<Closure<'o>>> {
    let mut closures = Vec::new();
    for of in &options.loops {
        let mut side = |side: &loops::Side| {
            let Some(link) = robot.links.iter().position(|link| link.name == side.link) else {
                let message = format!(
                    "there is no link `{}` for the loop `{}`",
                    one_line(&side.link),
                    one_line(&of.name)
                );
                let problem = diagnostics.error(Span::default(), message);
                if let Some(near) = nearest(&side.link, robot.links.iter().map(|link| link.name.as_str())) {
                    problem.help(format!("did you mean `{}`?", one_line(near)));
                }
                return None;
            };
            let (body, frame) = &bodies.place[link];
            Some((*body, frame.compose(&side.frame(angles))))
        };
        let (parent, child) = (side(&of.parent), side(&of.child));
        let (Some(parent), Some(child)) = (parent, child) else { continue };
        if parent.0 == child.0 {
            let message = format!(
                "the loop `{}` connects `{}` and `{}`, which are parts of one body",
                one_line(&of.name),
                one_line(&of.parent.link),
                one_line(&of.child.link)
            );
            diagnostics.error(Span::default(), message).help("a loop goes through joints that move");
            continue;
        }
        let name = names.scope.unique_name(&of.name, "loop");
        if name != of.name {
            names.renamed.push(("loop", one_line(&of.name), name.clone()));
        }
        closures.push(Closure { of, name, parent, child });
    }
    (!diagnostics.has_errors()).then_some(closures)
}
