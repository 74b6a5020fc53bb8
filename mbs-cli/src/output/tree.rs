//! The tree of a model as branches, drawn with letters, and the pattern of its mass matrix.

use super::number::{count, grouped};
use mbs_codegen::model::Model;
use mbs_codegen::topology::{Branch, Tree, are_coupled, branches};
use serde_json::{Value, json};
use std::fmt::Write;

/// Joints of a branch are written to about this column.
const WIDTH: usize = 96;
/// Largest pattern that is drawn.
const DRAWN: usize = 48;

/// `ground` and its branches, then which of them share entries of the mass matrix.
pub(crate) fn text(model: &Model, tree: &Tree) -> String {
    let branches = branches(tree);
    let deepest = tree.depths().into_iter().max().unwrap_or(0);
    let mut out = format!(
        "{}: {}, {}, at most {deepest} on the way to ground\n\nground\n",
        model.name,
        plural(branches.len(), "branch", "branches"),
        plural(tree.nv, "velocity", "velocities"),
    );
    draw(&mut out, model, tree, &branches);
    for cut in &tree.cuts {
        let joint = &model.joints[cut.index()];
        let [parent, child] = [&joint.parent, &joint.child].map(|side| &model.bodies[side.body.index()].name);
        let _ = writeln!(out, "cut: {} ({}) from {parent} to {child}", joint.name, joint.kind.keyword());
    }
    for variable in &model.variables {
        let _ = writeln!(out, "variable: {}", variable.name);
    }
    out + &pattern(tree, &branches)
}

/// The branches, each before those that grow on it.
fn draw(out: &mut String, model: &Model, tree: &Tree, branches: &[Branch]) {
    let mut grown: Vec<Vec<usize>> = vec![Vec::new(); branches.len()];
    let mut on_ground = Vec::new();
    for (b, branch) in branches.iter().enumerate() {
        branch.parent.map_or(&mut on_ground, |parent| &mut grown[parent]).push(b);
    }
    // What is still to be drawn, the next one last: branch, indentation, whether it is the last of its fork.
    let fork = |branches: &[usize], indent: &str| -> Vec<(usize, String, bool)> {
        let outward = branches.iter().rev().enumerate();
        outward.map(|(k, &branch)| (branch, indent.to_owned(), k == 0)).collect()
    };
    let mut ahead = fork(&on_ground, "");
    while let Some((b, indent, last)) = ahead.pop() {
        let (corner, bar) = if last { ("`-- ", "    ") } else { ("+-- ", "|   ") };
        let head = format!("{} ({})", b + 1, plural(branches[b].velocities, "velocity", "velocities"));
        let _ = writeln!(out, "{indent}{corner}{head}");
        let below = format!("{indent}{bar}");
        let margin = format!("{below}{}", if grown[b].is_empty() { "    " } else { "|   " });
        joints(out, model, tree, &branches[b], &margin);
        ahead.extend(fork(&grown[b], &below));
    }
}

/// The joints of a branch with their types, in lines of moderate length.
fn joints(out: &mut String, model: &Model, tree: &Tree, branch: &Branch, margin: &str) {
    let mut line = String::new();
    for &link in &branch.links {
        let joint = &model.joints[tree.links[link].joint.index()];
        let word = format!("{} {}", joint.name, joint.kind.keyword());
        let long = margin.len() + line.chars().count() + word.chars().count() + 2 > WIDTH;
        if long && !line.is_empty() {
            let _ = writeln!(out, "{margin}{line},");
            line.clear();
        }
        line += if line.is_empty() { "" } else { ", " };
        line += &word;
    }
    let _ = writeln!(out, "{margin}{line}");
}

/// A letter for each pair of branches.
fn pattern(tree: &Tree, branches: &[Branch]) -> String {
    let n = branches.len();
    // Σ over velocities: itself, and the entries with those before it, both triangles.
    let parents = tree.v_parents();
    let mut depth = vec![0usize; tree.nv];
    for k in 0..tree.nv {
        depth[k] = parents[k].map_or(0, |p| depth[p] + 1);
    }
    let entries: usize = depth.iter().map(|d| 2 * d + 1).sum::<usize>() - (tree.nv - tree.variables_v);
    let mut out =
        format!("\nmass matrix: {} of {} entries not zero\n", grouped(entries), grouped(tree.nv * tree.nv));
    if n > DRAWN {
        let _ = writeln!(out, "  {} are too many to draw", count(n, "row"));
        return out;
    }
    let label = n.to_string().len();
    let head: Vec<String> = (1..=n).map(|b| format!("{b:>label$}")).collect();
    let _ = writeln!(out, "  {:label$} {}", "", head.join(" "));
    for a in 0..n {
        let mark = |b| if are_coupled(branches, a, b) { "#" } else { "." };
        let row: Vec<String> = (0..n).map(|b| format!("{:>label$}", mark(b))).collect();
        let _ = writeln!(out, "  {:>label$} {}", a + 1, row.join(" "));
    }
    out
}

/// The branches as JSON.
pub(crate) fn json(model: &Model, tree: &Tree) -> Value {
    let branches = branches(tree);
    let name = |&link: &usize| &model.joints[tree.links[link].joint.index()].name;
    let one = |branch: &Branch| {
        json!({
            "parent": branch.parent,
            "joints": branch.links.iter().map(name).collect::<Vec<_>>(),
            "velocities": branch.velocities,
        })
    };
    branches.iter().map(one).collect()
}

fn plural(n: usize, one: &str, many: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{} {many}", grouped(n)) }
}
