//! Reads the robot from the tree of elements.
//!
//! Input: the XML tree. Output: a [`Robot`], if every link and joint could be read; otherwise all problems.
//! Holds afterwards: names of links and of joints are unique, masses are not negative, axes are not zero, every
//! link and joint that is named exists. Whether the joints form a tree is checked later.

use crate::elements::{
    AXIS, DYNAMICS, Elements, INERTIA, INERTIAL, JOINT, LIMIT, LINK, MASS, MIMIC, ROBOT, Reported, SIDE,
};
use crate::limits;
use crate::robot::{Inertial, Joint, JointId, Kind, Limits, Link, LinkId, Mimic, Robot};
use crate::source::{one_line, report_xacro};
use mbs_codegen::diagnostics::{Span, nearest};
use roxmltree::{Document, Node};
use std::collections::HashMap;

/// A `mimic` before names are resolved: the name of the other joint and its place.
struct MimicReference {
    joint: String,
    span: Span,
    multiplier: f64,
    offset: f64,
}

/// Reads the robot; without `mimicry`, `mimic` is ignored.
pub(crate) fn read(
    document: &Document<'_>,
    mimicry: bool,
    e: &mut Elements<'_, '_>,
) -> Result<Robot, Reported> {
    let root = document.root_element();
    check_root(document, e)?;
    e.count_unread(root, &ROBOT);
    let name = root.attribute("name").map(str::trim).filter(|name| !name.is_empty()).map(String::from);
    let named = |tag: &'static str| {
        root.children().filter(move |n| n.is_element() && n.tag_name().name() == tag).take(limits::LINKS + 1)
    };
    for tag in ["link", "joint"] {
        if let Some(excess) = named(tag).nth(limits::LINKS) {
            let message = format!("there are more than {} {tag}s", limits::LINKS);
            return Err(e.error(e.place(excess), message, ""));
        }
    }

    let mut links = Vec::new();
    let mut link_names: HashMap<String, LinkId> = HashMap::new();
    let mut complete = true;
    for node in named("link") {
        let link = read_link(node, e);
        let Ok((name, span)) =
            unique(node, "link", &mut link_names, links.len(), LinkId, |id| links_span(&links, id), e)
        else {
            complete = false;
            continue;
        };
        complete &= link.is_ok();
        links.push(Link { name, span, inertial: link.unwrap_or(None) });
        if e.diagnostics.error_count() > limits::ERRORS {
            return Err(Reported);
        }
    }
    if links.is_empty() && complete {
        let help = "describe its parts by `<link name=\"…\">` and `<joint …>`";
        return Err(e.error(e.place(root), "the robot has no links", help));
    }

    let mut joints: Vec<Joint> = Vec::new();
    let mut joint_names: HashMap<String, JointId> = HashMap::new();
    let mut mimic_references: Vec<Option<MimicReference>> = Vec::new();
    // A joint with errors still has a name that others may refer to.
    let mut broken: Vec<String> = Vec::new();
    for node in named("joint") {
        let joint = read_joint(node, &link_names, e);
        match unique(node, "joint", &mut joint_names, joints.len(), JointId, |id| joints_span(&joints, id), e)
        {
            Ok((name, span)) => match joint {
                Ok((joint, mimic_reference)) => {
                    joints.push(Joint { name, span, ..joint });
                    mimic_references.push(mimic_reference);
                }
                Err(Reported) => {
                    complete = false;
                    joint_names.remove(&name);
                    broken.push(name);
                }
            },
            Err(Reported) => complete = false,
        }
        if e.diagnostics.error_count() > limits::ERRORS {
            return Err(Reported);
        }
    }
    for (number, mimic_reference) in mimic_references.into_iter().enumerate() {
        let Some(mimic_reference) = mimic_reference else { continue };
        if !mimicry {
            e.count_skipped("mimic".into());
            continue;
        }
        if let Some(&joint) = joint_names.get(&mimic_reference.joint) {
            let MimicReference { multiplier, offset, .. } = mimic_reference;
            joints[number].mimic = Some(Mimic { joint, multiplier, offset });
        } else if !broken.contains(&mimic_reference.joint) {
            let message = format!("there is no joint `{}` to mimic", one_line(&mimic_reference.joint));
            let help = suggestion(&mimic_reference.joint, joint_names.keys().chain(&broken));
            e.error(
                mimic_reference.span,
                message,
                format!("{help} (`--no-mimic` lets every joint move by itself)"),
            );
            complete = false;
        }
    }
    check_mimics(&joints, e)?;
    let robot = Robot { name, span: e.place(root), links, joints };
    if complete { Ok(robot) } else { Err(Reported) }
}

fn links_span(links: &[Link], id: LinkId) -> Span {
    links.get(id.0).map_or(Span::default(), |link| link.span)
}

fn joints_span(joints: &[Joint], id: JointId) -> Span {
    joints.get(id.0).map_or(Span::default(), |joint| joint.span)
}

/// The file must be URDF without xacro macros.
fn check_root(document: &Document<'_>, e: &mut Elements<'_, '_>) -> Result<(), Reported> {
    let root = document.root_element();
    let is_macro = |n: &Node<'_, '_>| {
        n.is_element() && n.tag_name().namespace().is_some_and(|uri| uri.contains("xacro"))
    };
    if let Some(node) = document.descendants().find(is_macro) {
        report_xacro(e.place(node), e.diagnostics);
        return Err(Reported);
    }
    let name = root.tag_name().name();
    if name == "robot" {
        return Ok(());
    }
    let what = match name {
        "sdf" | "gazebo" => "this is an SDF file",
        "mujoco" => "this is a MuJoCo file",
        "COLLADA" => "this is a COLLADA file, a mesh",
        _ => "this is not a URDF file",
    };
    let message = format!("{what}: its element is `<{}>`", one_line(name));
    Err(e.error(e.place(root), message, "a URDF file is one element `<robot name=\"…\">`"))
}

/// The name of a link or a joint, if no other has it.
fn unique<Id: Copy>(
    node: Node<'_, '_>,
    what: &str,
    names: &mut HashMap<String, Id>,
    next: usize,
    id: impl Fn(usize) -> Id,
    place_of: impl Fn(Id) -> Span,
    e: &mut Elements<'_, '_>,
) -> Result<(String, Span), Reported> {
    let (name, span) = e.required(node, "name")?;
    if let Some(&other) = names.get(name) {
        let line = place_of(other).line;
        let before = if line > 0 { format!(", as at line {line}") } else { String::new() };
        let message = format!("two {what}s are called `{}`{before}", one_line(name));
        return Err(e.error(span, message, "rename one of them"));
    }
    names.insert(name.to_string(), id(next));
    Ok((name.to_string(), span))
}

fn read_link(node: Node<'_, '_>, e: &mut Elements<'_, '_>) -> Result<Option<Inertial>, Reported> {
    e.count_unread(node, &LINK);
    let Some(inertial) = e.child(node, "inertial", &INERTIAL)? else { return Ok(None) };
    let frame = e.origin(inertial);
    let mass = e.required_child(inertial, "mass", &MASS, "<mass value=\"…\"/>").and_then(|mass| {
        let value = e.required_number(mass, "value")?;
        if value >= 0.0 {
            return Ok(value);
        }
        let span = mass.attribute_node("value").map_or(e.place(mass), |a| e.value_place(&a));
        Err(e.error(
            span,
            format!("the mass is negative: {value}"),
            "a link without mass has no `<inertial>`",
        ))
    });
    let example = "<inertia ixx=\"…\" ixy=\"0\" ixz=\"0\" iyy=\"…\" iyz=\"0\" izz=\"…\"/>";
    let inertia = e.required_child(inertial, "inertia", &INERTIA, example).and_then(|inertia| {
        let moments = ["ixx", "iyy", "izz"].map(|name| e.required_number(inertia, name));
        let products = ["ixy", "ixz", "iyz"].map(|name| e.number(inertia, name));
        let [xx, yy, zz] = moments;
        let [xy, xz, yz] = products;
        let or_zero = |x: Result<Option<f64>, Reported>| x.map(|x| x.unwrap_or(0.0));
        Ok([xx?, yy?, zz?, or_zero(xy)?, or_zero(xz)?, or_zero(yz)?])
    });
    Ok(Some(Inertial { frame: frame?, mass: mass?, inertia: inertia?, span: e.place(inertial) }))
}

/// A joint without its name, and its `mimic`.
fn read_joint(
    node: Node<'_, '_>,
    links: &HashMap<String, LinkId>,
    e: &mut Elements<'_, '_>,
) -> Result<(Joint, Option<MimicReference>), Reported> {
    e.count_unread(node, &JOINT);
    let kind = e.required(node, "type").and_then(|(word, span)| {
        if let Some((_, kind)) = Kind::ALL.iter().find(|(name, _)| *name == word) {
            return Ok(*kind);
        }
        let names = Kind::ALL.map(|(name, _)| name);
        let help = match nearest(word, names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the types are {}", names.join(", ")),
        };
        Err(e.error(span, format!("unknown type of joint `{}`", one_line(word)), help))
    });
    let parent = read_side(node, "parent", links, e);
    let child = read_side(node, "child", links, e);
    let origin = e.origin(node);
    let axis = read_axis(node, e);
    let limits = read_limits(node, e);
    let dynamics = e.child(node, "dynamics", &DYNAMICS).and_then(|dynamics| {
        let Some(dynamics) = dynamics else { return Ok([0.0, 0.0]) };
        let [damping, friction] = ["damping", "friction"].map(|name| e.number(dynamics, name));
        let both = [damping?.unwrap_or(0.0), friction?.unwrap_or(0.0)];
        if both.iter().any(|x| *x < 0.0) {
            let help = "it would drive the joint; make it positive";
            e.diagnostics
                .warning(e.source.span(dynamics.range()), "the damping or friction is negative")
                .help(help);
        }
        Ok(both)
    });
    let mimic_reference = read_mimic(node, e);
    let (kind, parent, child) = (kind?, parent?, child?);
    let axis = match axis? {
        (_, None) if !kind.has_one_coordinate() && kind != Kind::Planar => [1.0, 0.0, 0.0],
        (span, None) => {
            let message = "the axis of the joint is zero";
            return Err(e.error(span, message, "give it a direction, or make the joint `fixed`"));
        }
        (_, Some(axis)) => axis,
    };
    let [damping, friction] = dynamics?;
    let mimic_reference = mimic_reference?;
    let (origin, limits) = (origin?, limits?);
    if parent == child {
        return Err(e.error(
            e.place(node),
            "the joint connects a link to itself",
            "give it another parent or child",
        ));
    }
    let span = e.place(node);
    let (name, mimic) = (String::new(), None);
    Ok((
        Joint { name, span, kind, parent, child, origin, axis, limits, damping, friction, mimic },
        mimic_reference,
    ))
}

/// The link at one side of a joint.
fn read_side(
    node: Node<'_, '_>,
    side: &str,
    links: &HashMap<String, LinkId>,
    e: &mut Elements<'_, '_>,
) -> Result<LinkId, Reported> {
    let element = e.required_child(node, side, &SIDE, &format!("<{side} link=\"…\"/>"))?;
    let (name, span) = e.required(element, "link")?;
    match links.get(name) {
        Some(&link) => Ok(link),
        None => {
            let message = format!("there is no link `{}`", one_line(name));
            Err(e.error(span, message, suggestion(name, links.keys())))
        }
    }
}

fn suggestion<'n>(name: &str, names: impl Iterator<Item = &'n String>) -> String {
    // Sorted by name: the order of a hash table changes from run to run.
    let mut names: Vec<&str> = names.map(String::as_str).collect();
    names.sort_unstable();
    match nearest(name, names) {
        Some(near) => format!("did you mean `{}`?", one_line(near)),
        None => "describe it in this file, or name another".into(),
    }
}

/// The axis and its place; `None` for a zero vector.
fn read_axis(node: Node<'_, '_>, e: &mut Elements<'_, '_>) -> Result<(Span, Option<[f64; 3]>), Reported> {
    let Some(axis) = e.child(node, "axis", &AXIS)? else {
        return Ok((Span::default(), Some([1.0, 0.0, 0.0])));
    };
    let Some(attribute) = axis.attribute_node("xyz") else {
        return Ok((e.place(axis), Some([1.0, 0.0, 0.0])));
    };
    let v = e.vector(axis, "xyz")?;
    let length = v.iter().fold(0.0, |sum: f64, x| sum.hypot(*x));
    let usable = length > 0.0 && length.is_finite();
    Ok((e.value_place(&attribute), usable.then(|| v.map(|x| x / scale(length)))))
}

/// Only axes of extreme length are scaled.
fn scale(length: f64) -> f64 {
    if (1e-6..1e6).contains(&length) { 1.0 } else { length }
}

fn read_limits(node: Node<'_, '_>, e: &mut Elements<'_, '_>) -> Result<Limits, Reported> {
    let Some(limit) = e.child(node, "limit", &LIMIT)? else { return Ok(Limits::default()) };
    let [lower, upper, velocity, effort] =
        ["lower", "upper", "velocity", "effort"].map(|name| e.limit(limit, name));
    let limits = Limits { lower: lower?, upper: upper?, velocity: velocity?, effort: effort? };
    if let (Some(lower), Some(upper)) = (limits.lower, limits.upper)
        && lower > upper
    {
        let message = format!("the lower limit {lower} is above the upper limit {upper}");
        e.diagnostics.warning(e.place(limit), message).help("swap them");
    }
    Ok(limits)
}

fn read_mimic(node: Node<'_, '_>, e: &mut Elements<'_, '_>) -> Result<Option<MimicReference>, Reported> {
    let Some(mimic) = e.child(node, "mimic", &MIMIC)? else { return Ok(None) };
    let joint = e.required(mimic, "joint").map(|(name, span)| (name.to_string(), span));
    let [multiplier, offset] = ["multiplier", "offset"].map(|name| e.number(mimic, name));
    let (joint, span) = joint?;
    Ok(Some(MimicReference {
        joint,
        span,
        multiplier: multiplier?.unwrap_or(1.0),
        offset: offset?.unwrap_or(0.0),
    }))
}

/// Only joints with one coordinate may mimic each other, without cycles, in which positions would be undetermined.
fn check_mimics(joints: &[Joint], e: &mut Elements<'_, '_>) -> Result<(), Reported> {
    let mut outcome = Ok(());
    let follows = |kind: Kind| kind.has_one_coordinate() || kind == Kind::Fixed;
    for joint in joints {
        let Some(mimic) = joint.mimic else { continue };
        if !follows(joint.kind) || !follows(joints[mimic.joint.0].kind) {
            let message = format!(
                "joint `{}` cannot mimic `{}`",
                one_line(&joint.name),
                one_line(&joints[mimic.joint.0].name)
            );
            let help = "only revolute, continuous and prismatic joints mimic each other";
            outcome = Err(e.error(joint.span, message, help));
        }
    }
    // By joint: the traversal that visited it first, if any.
    let mut seen: Vec<Option<usize>> = vec![None; joints.len()];
    for walk in 0..joints.len() {
        let mut at = walk;
        while seen[at].is_none() {
            seen[at] = Some(walk);
            let Some(mimic) = joints[at].mimic else { break };
            at = mimic.joint.0;
            if seen[at] == Some(walk) {
                let name = one_line(&joints[at].name);
                let message = format!("joint `{name}` mimics itself, through others or at once");
                outcome = Err(e.error(joints[at].span, message, "let one of the joints mimic nobody"));
            }
        }
    }
    outcome
}
