//! The gradient of an objective as a table.

use super::number::{short, significant};
use super::table::Table;
use mbs_codegen::symbols::Group;
use mbs_engine::Interpreted;
use mbs_engine::gradient::Found;

/// One objective's gradient: what it is by, its value, unit, the derivative and the relative one.
pub(crate) fn rows(model: &Interpreted, found: &Found, objective: usize) -> Vec<[String; 5]> {
    let program = model.program();
    let value = found.objectives[objective];
    let rounding = found.is_rounding(model, objective);
    let shown = found.of_objective(objective).iter().zip(rounding);
    let shown = shown.map(|(&derivative, is_rounding)| if is_rounding { 0.0 } else { derivative });
    let all = program.sensitivity.iter().zip(shown).zip(&program.seeds);
    let row = |((name, derivative), &(group, place)): ((&String, f64), &(Group, u32))| {
        // An input has no value of its own: the derivative is by a constant added to its signal.
        let parameter = (group == Group::Parameters).then(|| model.parameters()[place as usize]);
        let relative = parameter.map(|p| p * derivative / value).filter(|x| x.is_finite());
        [
            name.clone(),
            parameter.map_or(String::new(), short),
            unit(model, group, place as usize).into(),
            significant(derivative, 9),
            relative.map_or(String::new(), |x| significant(x, 4)),
        ]
    };
    all.map(row).collect()
}

/// Note below a table in which derivatives that are rounding are shown as zero.
const ROUNDING: &str =
    "  a derivative of 0 may stand for rounding, less than 1e-14 of the objective; `--json` has the number\n";

/// One objective's gradient as text.
pub(crate) fn table(model: &Interpreted, found: &Found, objective: usize) -> String {
    let mut table = Table::new(&["by", ">value", "unit", ">derivative", ">relative"]);
    rows(model, found, objective).into_iter().for_each(|row| table.row(row));
    let note = if found.is_rounding(model, objective).contains(&true) { ROUNDING } else { "" };
    table.print() + note
}

/// Events that a table shows; `--json` has all.
const EVENTS: usize = 12;
/// Most parameters in a table of events.
const COLUMNS: usize = 6;

/// Times of events, and their derivatives where they are known; nothing for a run without events.
pub(crate) fn events(model: &Interpreted, found: &Found) -> String {
    let program = model.program();
    if found.events.is_empty() {
        return String::new();
    }
    let known = found.events.iter().all(|event| !event.derivatives.is_empty());
    let by = program.sensitivity.iter().take(if known { COLUMNS } else { 0 });
    let heads: Vec<String> = by.map(|name| format!(">by {name}")).collect();
    let heads: Vec<&str> = ["event", ">t [s]"].into_iter().chain(heads.iter().map(String::as_str)).collect();
    let mut table = Table::new(&heads);
    for event in found.events.iter().take(EVENTS) {
        let slopes = event.derivatives.iter().take(heads.len() - 2).map(|&slope| significant(slope, 6));
        let first = [program.events.names[event.event].clone(), significant(event.t, 12)];
        table.cells(first.into_iter().chain(slopes));
    }
    let more = found.events.len().saturating_sub(EVENTS);
    let more = if more > 0 { format!("  and {more} more, in `--json`\n") } else { String::new() };
    format!("\n{}{more}", table.print())
}

/// The unit of a parameter or an input.
fn unit(model: &Interpreted, group: Group, place: usize) -> &str {
    let program = model.program();
    if group == Group::U {
        return &program.inputs[place].unit;
    }
    let mut units = program.parameters.iter().flat_map(|p| p.defaults.iter().map(move |_| &p.unit));
    units.nth(place).map_or("", String::as_str)
}
