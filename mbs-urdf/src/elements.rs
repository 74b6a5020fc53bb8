//! Elements and attributes by name, numbers in them, and a count of those that are not read.

use crate::frame::{Angles, Frame, Vec3};
use crate::limits;
use crate::source::{Source, one_line};
use mbs_codegen::diagnostics::{Diagnostics, Span, nearest};
use roxmltree::{Attribute, Node};
use std::collections::BTreeMap;

/// Known attributes and children of an element.
pub(crate) struct Tag {
    /// Its attributes.
    pub(crate) attributes: &'static [&'static str],
    /// Child elements that are read.
    pub(crate) children: &'static [&'static str],
    /// Child elements that URDF defines and the import ignores.
    pub(crate) passed: &'static [&'static str],
}

pub(crate) const ROBOT: Tag = Tag {
    attributes: &["name", "version"],
    children: &["link", "joint"],
    passed: &["material", "transmission", "gazebo", "sensor", "ros2_control", "visual", "group"],
};
pub(crate) const LINK: Tag =
    Tag { attributes: &["name"], children: &["inertial"], passed: &["visual", "collision", "contact"] };
pub(crate) const INERTIAL: Tag =
    Tag { attributes: &[], children: &["origin", "mass", "inertia"], passed: &[] };
pub(crate) const JOINT: Tag = Tag {
    attributes: &["name", "type"],
    children: &["parent", "child", "origin", "axis", "limit", "dynamics", "mimic"],
    passed: &["calibration", "safety_controller"],
};
pub(crate) const ORIGIN: Tag = leaf(&["xyz", "rpy"]);
pub(crate) const MASS: Tag = leaf(&["value"]);
pub(crate) const INERTIA: Tag = leaf(&["ixx", "ixy", "ixz", "iyy", "iyz", "izz"]);
pub(crate) const SIDE: Tag = leaf(&["link"]);
pub(crate) const AXIS: Tag = leaf(&["xyz"]);
pub(crate) const LIMIT: Tag = leaf(&["lower", "upper", "velocity", "effort"]);
pub(crate) const DYNAMICS: Tag = leaf(&["damping", "friction"]);
pub(crate) const MIMIC: Tag = leaf(&["joint", "multiplier", "offset"]);

const fn leaf(attributes: &'static [&'static str]) -> Tag {
    Tag { attributes, children: &[], passed: &[] }
}

/// An error that was already reported.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reported;

/// The state of reading one file.
pub(crate) struct Elements<'s, 't> {
    pub(crate) source: &'s Source<'t>,
    pub(crate) diagnostics: &'s mut Diagnostics,
    /// How often each element or attribute was skipped.
    pub(crate) skipped: BTreeMap<String, usize>,
    pub(crate) angles: Angles,
}

impl Elements<'_, '_> {
    /// The place of an element's name.
    pub(crate) fn place(&self, node: Node<'_, '_>) -> Span {
        let start = node.range().start;
        self.source.span(start..start + 1 + node.tag_name().name().len())
    }

    /// The place of an attribute's value.
    pub(crate) fn value_place(&self, attribute: &Attribute<'_, '_>) -> Span {
        self.source.span(attribute.range_value())
    }

    /// Reports an error with its remedy.
    pub(crate) fn error(
        &mut self,
        span: Span,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Reported {
        self.diagnostics.error(span, message).help(help);
        Reported
    }

    /// Counts attributes and children that are not read, and warns of probable misspellings.
    pub(crate) fn count_unread(&mut self, node: Node<'_, '_>, tag: &Tag) {
        let name = node.tag_name().name();
        for attribute in node.attributes().filter(|a| !tag.attributes.contains(&a.name())) {
            let span = self.source.span(attribute.range_qname());
            self.warn_misspelling(span, "attribute", attribute.name(), tag.attributes);
            self.count_skipped(format!("{name}@{}", attribute.name()));
        }
        let inside = node.children().filter(Node::is_element);
        for child in inside.filter(|child| !tag.children.contains(&child.tag_name().name())) {
            let inner = child.tag_name().name();
            if tag.passed.contains(&inner) {
                self.count_skipped(inner.to_string());
            } else {
                self.warn_misspelling(self.place(child), "element", inner, tag.children);
                self.count_skipped(if name == "robot" {
                    inner.to_string()
                } else {
                    format!("{name}/{inner}")
                });
            }
        }
    }

    /// Counts an element or attribute that is not read.
    pub(crate) fn count_skipped(&mut self, what: String) {
        *self.skipped.entry(one_line(&what)).or_default() += 1;
    }

    fn warn_misspelling(&mut self, span: Span, what: &str, name: &str, known: &[&'static str]) {
        if let Some(near) = nearest(name, known.iter().copied()) {
            self.diagnostics
                .warning(span, format!("unknown {what} `{}`", one_line(name)))
                .help(format!("did you mean `{near}`?"));
        }
    }

    /// The only element of this name inside another; a second one is reported.
    pub(crate) fn child<'a, 'i>(
        &mut self,
        node: Node<'a, 'i>,
        name: &str,
        tag: &Tag,
    ) -> Result<Option<Node<'a, 'i>>, Reported> {
        let mut named = node.children().filter(|child| child.is_element() && child.tag_name().name() == name);
        let Some(first) = named.next() else { return Ok(None) };
        if let Some(second) = named.next() {
            let message = format!("`<{name}>` is given twice in this `<{}>`", node.tag_name().name());
            return Err(self.error(self.place(second), message, "remove one of them"));
        }
        self.count_unread(first, tag);
        Ok(Some(first))
    }

    /// A required element.
    pub(crate) fn required_child<'a, 'i>(
        &mut self,
        node: Node<'a, 'i>,
        name: &str,
        tag: &Tag,
        example: &str,
    ) -> Result<Node<'a, 'i>, Reported> {
        match self.child(node, name, tag)? {
            Some(child) => Ok(child),
            None => {
                let message = format!("this `<{}>` has no `<{name}>`", node.tag_name().name());
                Err(self.error(self.place(node), message, format!("add `{example}`")))
            }
        }
    }

    /// A required attribute, trimmed.
    pub(crate) fn required<'a>(
        &mut self,
        node: Node<'a, '_>,
        name: &str,
    ) -> Result<(&'a str, Span), Reported> {
        match node.attribute_node(name) {
            Some(attribute) if !attribute.value().trim().is_empty() => {
                Ok((attribute.value().trim(), self.value_place(&attribute)))
            }
            Some(attribute) => {
                let message = format!("`{name}` is empty");
                Err(self.error(self.value_place(&attribute), message, "give it a value"))
            }
            None => {
                let tag = node.tag_name().name();
                let message = format!("this `<{}>` has no `{name}`", one_line(tag));
                Err(self.error(self.place(node), message, format!("add `{name}=\"…\"`")))
            }
        }
    }

    /// `N` numbers in an optional attribute.
    pub(crate) fn numbers<const N: usize>(
        &mut self,
        node: Node<'_, '_>,
        name: &str,
    ) -> Result<Option<[f64; N]>, Reported> {
        let Some(attribute) = node.attribute_node(name) else { return Ok(None) };
        let (span, text) = (self.value_place(&attribute), attribute.value());
        if text.contains("${") || text.contains("$(") {
            let message = format!("`{}` is a xacro expression, not a number", one_line(text.trim()));
            return Err(self.error(span, message, "expand the file first: `xacro FILE.xacro > ROBOT.urdf`"));
        }
        let words: Vec<&str> = text.split_ascii_whitespace().take(limits::NUMBERS).collect();
        if words.len() != N {
            let wanted = if N == 1 { "a number".into() } else { format!("{N} numbers") };
            let found = match words.len() {
                0 => "nothing".into(),
                limits::NUMBERS => "many".into(),
                _ if N == 1 => "several".into(),
                n => n.to_string(),
            };
            let help = if N == 1 { String::new() } else { "separate them by blanks, without commas".into() };
            return Err(self.error(span, format!("`{name}` needs {wanted}, found {found}"), help));
        }
        let mut values = [0.0; N];
        for (slot, word) in values.iter_mut().zip(words) {
            match word.parse::<f64>() {
                Ok(x) if x.is_finite() => *slot = x,
                Ok(_) => {
                    let message = format!("`{}` is not a finite number", one_line(word));
                    return Err(self.error(span, message, ""));
                }
                Err(_) => {
                    let message = format!("`{}` is not a number", one_line(word));
                    let help =
                        if word.contains(',') { "separate numbers by blanks, without commas" } else { "" };
                    return Err(self.error(span, message, help));
                }
            }
        }
        Ok(Some(values))
    }

    /// A limit in an optional attribute, if it is a limit.
    pub(crate) fn limit(&mut self, node: Node<'_, '_>, name: &str) -> Result<Option<f64>, Reported> {
        let is_infinite = |text: &str| text.trim().parse::<f64>().is_ok_and(f64::is_infinite);
        if node.attribute(name).is_some_and(is_infinite) { Ok(None) } else { self.number(node, name) }
    }

    /// One number in an optional attribute.
    pub(crate) fn number(&mut self, node: Node<'_, '_>, name: &str) -> Result<Option<f64>, Reported> {
        Ok(self.numbers::<1>(node, name)?.map(|[x]| x))
    }

    /// One number in a required attribute.
    pub(crate) fn required_number(&mut self, node: Node<'_, '_>, name: &str) -> Result<f64, Reported> {
        self.required(node, name)?;
        self.number(node, name)?.ok_or(Reported)
    }

    /// Three numbers; zeros if absent.
    pub(crate) fn vector(&mut self, node: Node<'_, '_>, name: &str) -> Result<Vec3, Reported> {
        Ok(self.numbers::<3>(node, name)?.unwrap_or([0.0; 3]))
    }

    /// The `<origin>` in an element.
    pub(crate) fn origin(&mut self, node: Node<'_, '_>) -> Result<Frame, Reported> {
        let Some(origin) = self.child(node, "origin", &ORIGIN)? else {
            return Ok(Frame::IDENTITY);
        };
        let (xyz, rpy) = (self.vector(origin, "xyz"), self.vector(origin, "rpy"));
        Ok(Frame::new(xyz?, rpy?, &mut self.angles))
    }
}
