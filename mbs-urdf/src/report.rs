//! Changes by an import that the model's text does not show.

use std::collections::BTreeMap;
use std::fmt;

/// More names than this are counted, not printed.
const SHOWN: usize = 12;

/// What became of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Links of the file.
    pub links: usize,
    /// Bodies of the model, ground not counted.
    pub bodies: usize,
    /// Joints of the model that move, the floating base among them.
    pub joints: usize,
    /// Couplings made from mimicking joints.
    pub couplings: usize,
    /// Joints that close loops.
    pub loops: usize,
    /// Mass of all bodies, kg.
    pub mass: f64,
    /// Mass of the links fixed to ground, which plays no part, kg.
    pub grounded: f64,
    /// Names that had to change: what, from, to.
    pub renamed: Vec<(&'static str, String, String)>,
    /// Joints that move no mass and are locked at zero.
    pub locked: Vec<String>,
    /// Elements and attributes that the model cannot represent, and how often the file has them.
    pub skipped: BTreeMap<String, usize>,
    /// Joints of which the limits are kept as text.
    pub limits: usize,
    /// Angles taken for a multiple of π/2, and the largest change, rad.
    pub angles: (usize, f64),
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { links, bodies, joints, .. } = self;
        let mass = short(self.mass);
        writeln!(
            f,
            "  links     {links}: {} of {mass} kg moved by {}",
            count_of(*bodies, "body"),
            count_of(*joints, "joint")
        )?;
        if self.grounded > 0.0 {
            writeln!(f, "  ground    {} kg fixed to it play no part", short(self.grounded))?;
        }
        if self.couplings > 0 {
            writeln!(f, "  mimic     {}", count_of(self.couplings, "coupling"))?;
        }
        if self.loops > 0 {
            writeln!(f, "  loops     {} cut", count_of(self.loops, "joint"))?;
        }
        if !self.locked.is_empty() {
            writeln!(
                f,
                "  locked    {}, moving no mass: {}",
                count_of(self.locked.len(), "joint"),
                shortened(&self.locked)
            )?;
        }
        if self.limits > 0 {
            writeln!(f, "  limits    of {}, kept as descriptions", count_of(self.limits, "joint"))?;
        }
        let (angles, change) = self.angles;
        if angles > 0 {
            let multiples = "taken for multiples of π/2, which changes them by at most";
            writeln!(f, "  angles    {} {multiples} {change:.1e} rad", count_of(angles, "angle"))?;
        }
        if !self.renamed.is_empty() {
            let renamed: Vec<String> =
                self.renamed.iter().map(|(what, from, to)| format!("{what} `{from}` → {to}")).collect();
            writeln!(f, "  renamed   {}", shortened(&renamed))?;
        }
        if !self.skipped.is_empty() {
            let skipped: Vec<String> = self.skipped.iter().map(|(what, n)| format!("{n} {what}")).collect();
            writeln!(f, "  skipped   {}", shortened(&skipped))?;
        }
        Ok(())
    }
}

/// A number with at most seven digits.
fn short(x: f64) -> String {
    format!("{x:.6e}").parse::<f64>().unwrap_or(x).to_string()
}

fn count_of(n: usize, what: &str) -> String {
    match (n, what.strip_suffix('y')) {
        (1, _) => format!("1 {what}"),
        (n, Some(stem)) => format!("{n} {stem}ies"),
        (n, None) => format!("{n} {what}s"),
    }
}

fn shortened(list: &[String]) -> String {
    let more = list.len().saturating_sub(SHOWN);
    let shown = list[..list.len() - more].join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}
