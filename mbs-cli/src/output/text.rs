//! The result of a run as a person reads it.

use super::number::{count, duration, grouped, short, significant};
use super::plot::{draw, label};
use super::shown::Shown;
use super::table::Table;
use mbs_codegen::model::Formulation;
use mbs_codegen::program::Program;
use mbs_engine::simulation::{Analysis, Curves, Effort, Settings};
use std::fmt::Write;

/// Coordinates beyond these are not plotted.
const PLOTTED: usize = 16;
/// Characters of a plot across.
const PLOT_WIDTH: usize = 56;
/// Equations and joints beyond these are not listed; the file has them all.
const LISTED: usize = 24;

/// The whole report.
pub(crate) fn report(shown: &Shown<'_>) -> String {
    let program = shown.model.program();
    let mut out = head(program, shown.settings, shown.record.seen.now.t);
    out.push_str(&with(shown.set));
    let tables = [
        states(shown),
        outputs(shown),
        events(shown),
        objectives(shown),
        multipliers(shown),
        reactions(shown),
    ];
    for table in tables {
        if !table.is_empty() {
            out.push('\n');
            out.push_str(&table);
        }
    }
    out.push('\n');
    out.push_str(&plots(program, &shown.record.seen.curves));
    out.push('\n');
    out.push_str(&start(shown));
    if shown.settings.analysis == Analysis::Dynamics {
        out.push_str(&energy(shown));
    }
    if let Some(norms) = &shown.record.seen.norms {
        let [z, zd, zdd] = [norms.position, norms.velocity, norms.acceleration].map(|x| significant(x, 2));
        let _ = writeln!(
            out,
            "  norms    of constraints: {z} in positions, {zd} in velocities, {zdd} in accelerations"
        );
    }
    out.push_str(&effort(shown));
    if let Some(written) = &shown.written {
        let _ = writeln!(
            out,
            "  results  {}: {}, {}",
            written.file.display(),
            count(written.rows, "row"),
            count(written.columns, "column")
        );
    }
    out
}

/// The parameters of the command line.
pub(crate) fn with(set: &[(String, f64)]) -> String {
    set.iter().map(|(name, value)| format!("  with {name} = {}\n", short(*value))).collect()
}

/// What was run, to time t, and how.
pub(crate) fn head(program: &Program, settings: &Settings, t: f64) -> String {
    let simulation = &settings.simulation;
    let mut out = program.name.clone();
    if let Some(case) = &program.case {
        let _ = write!(out, ", case {case}");
    }
    let _ = write!(out, ": t = {} to {} s ", short(simulation.begin), short(t));
    let step = format!("step {} s", short(simulation.step));
    if settings.analysis == Analysis::Kinematics {
        let _ = writeln!(out, "as its drives prescribe, {step}");
        return out;
    }
    let integrator = simulation.integrator.keyword();
    let method = match simulation.formulation {
        _ if !settings.constrained => integrator.to_string(),
        Formulation::MatrixR => format!("{integrator} in independent coordinates"),
        formulation if settings.is_runge_kutta() => {
            format!("{integrator} of {}, projected", formulation.keyword())
        }
        Formulation::Ali3p => format!("ali3p with {integrator}"),
        formulation => format!("{} with {integrator}", formulation.keyword()),
    };
    let control = if settings.is_adaptive() {
        let [r, a] = [simulation.relative_tolerance, simulation.absolute_tolerance].map(short);
        let largest =
            simulation.max_step.map_or(String::new(), |h| format!(", steps of at most {} s", short(h)));
        let judged = !program.objectives.is_empty() && !simulation.objectives_in_error;
        let judged = if judged { ", objectives not in the error" } else { "" };
        format!("tolerance {r} relative, {a} absolute{largest}{judged}")
    } else {
        step
    };
    let recursive = if settings.recursive { ", recursive" } else { "" };
    let _ = writeln!(out, "by {method}, {control}{recursive}");
    out
}

fn states(shown: &Shown<'_>) -> String {
    let (program, record) = (shown.model.program(), shown.record);
    let mut table = Table::new(&["state", ">guess", ">at the start", ">at the end", ">smallest", ">largest"]);
    let names = program.coordinates.iter().chain(&program.velocities);
    let now = &record.seen.now;
    let ends = now.z.iter().chain(&now.v);
    for (i, ((name, &start), &end)) in names.zip(&record.start).zip(ends).enumerate() {
        let range = (i < program.coordinates.len()).then(|| record.seen.curves.range(i));
        let [low, high] = match range {
            Some((low, high)) => [short(low), short(high)],
            None => [String::new(), String::new()],
        };
        let guess = shown.moved().find(|moved| moved.0 == i).map_or(String::new(), |moved| short(moved.1));
        table.row([name.clone(), guess, short(start), significant(end, 9), low, high]);
    }
    table.print()
}

fn outputs(shown: &Shown<'_>) -> String {
    let program = shown.model.program();
    let mut table = Table::new(&["output", ">at the end", "unit"]);
    for ((name, unit), &value) in program.outputs.iter().zip(&shown.record.seen.outputs) {
        table.row([name.clone(), significant(value, 9), unit.clone()]);
    }
    if table.is_empty() { String::new() } else { table.print() }
}

/// Events that a table shows; of more, the first and the last.
const EVENTS: usize = 24;

fn events(shown: &Shown<'_>) -> String {
    let (program, events) = (shown.model.program(), &shown.record.seen.events);
    let mut table = Table::new(&["event", ">t [s]", "enters", ">impulses"]);
    for (i, event) in events.iter().enumerate() {
        if events.len() > EVENTS && (EVENTS / 2..events.len() - EVENTS / 2).contains(&i) {
            if i == EVENTS / 2 {
                let more = format!("… {} more", grouped(events.len() - EVENTS));
                table.row([more, String::new(), String::new(), String::new()]);
            }
            continue;
        }
        let mut impulses: Vec<String> = event.impulses.iter().map(|&impulse| short(impulse)).collect();
        if program.events.entries[event.event].adds_rows {
            let rows = program.holonomic.iter().chain(&program.nonholonomic).zip(&event.row_impulses);
            let acting = rows.filter(|(_, impulse)| **impulse != 0.0);
            impulses.extend(acting.map(|(name, impulse)| format!("{name} {}", short(*impulse))));
        }
        let enters = program.events.enters[event.event].join(", ");
        let name = program.events.names[event.event].clone();
        table.row([name, significant(event.t, 12), enters, impulses.join(", ")]);
    }
    if program.events.names.is_empty() {
        String::new()
    } else if table.is_empty() {
        "  no event happened\n".into()
    } else {
        table.print()
    }
}

fn objectives(shown: &Shown<'_>) -> String {
    let program = shown.model.program();
    let mut table = Table::new(&["objective", ">value", "unit"]);
    for ((name, unit), value) in program.objectives.iter().zip(shown.record.seen.objectives()) {
        table.row([name.clone(), significant(value, 9), unit.clone()]);
    }
    if table.is_empty() {
        return String::new();
    }
    let settings = shown.settings;
    let how = match (settings.is_adaptive(), settings.simulation.objectives_in_error) {
        (true, true) => "the integrator, within its tolerance",
        (true, false) => "the integrator, whose tolerance leaves them out",
        (false, _) if settings.is_runge_kutta() => "the integrator",
        (false, _) => "the trapezoidal rule over the steps",
    };
    table.print() + &format!("  integrated by {how}\n")
}

fn multipliers(shown: &Shown<'_>) -> String {
    let (program, seen) = (shown.model.program(), &shown.record.seen);
    if shown.settings.analysis == Analysis::Kinematics {
        return String::new();
    }
    let mut table = Table::new(&["equation", ">multiplier at the end", ">largest"]);
    let rows = program.holonomic.iter().chain(&program.nonholonomic);
    let values = seen.now.lambda.iter().zip(&seen.largest_multipliers);
    for (name, (&end, &largest)) in rows.zip(values).take(LISTED) {
        table.row([name.clone(), significant(end, 9), short(largest)]);
    }
    if table.is_empty() { String::new() } else { table.print() + &further(seen.now.lambda.len(), "equation") }
}

fn reactions(shown: &Shown<'_>) -> String {
    let (program, seen) = (shown.model.program(), &shown.record.seen);
    let mut table = Table::new(&["joint", ">largest force [N]", ">largest torque [N m]"]);
    for (name, &(force, torque)) in program.joints.iter().zip(&seen.largest_reactions).take(LISTED) {
        table.row([name.clone(), short(force), short(torque)]);
    }
    if table.is_empty() {
        String::new()
    } else {
        table.print() + &further(seen.largest_reactions.len(), "joint")
    }
}

/// How many did not fit.
fn further(n: usize, word: &str) -> String {
    match n.saturating_sub(LISTED) {
        0 => String::new(),
        n => format!("  and {}\n", count(n, &format!("further {word}"))),
    }
}

fn plots(program: &Program, curves: &Curves) -> String {
    let shown = program.coordinates.len().min(PLOTTED);
    let lines = match shown {
        0..=3 => 4,
        4..=8 => 2,
        _ => 1,
    };
    let names: Vec<String> = program.coordinates[..shown].iter().map(|name| label(name)).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for (i, name) in names.iter().enumerate() {
        let (low, high) = curves.range(i);
        let drawn = draw(curves, i, PLOT_WIDTH, lines);
        for (k, line) in drawn.iter().enumerate() {
            let label = if k == 0 { name.as_str() } else { "" };
            let scale = match k {
                _ if lines == 1 => format!("{} to {}", significant(low, 3), significant(high, 3)),
                0 => significant(high, 4),
                k if k + 1 == lines => significant(low, 4),
                _ => String::new(),
            };
            let _ = writeln!(out, "{}", format!("  {label:<width$}  {line}  {scale}").trim_end());
        }
    }
    if program.coordinates.len() > shown {
        let _ = writeln!(out, "  and {}", count(program.coordinates.len() - shown, "further coordinate"));
    }
    out
}

/// How the mechanism was put together, and what is known of its equations.
fn start(shown: &Shown<'_>) -> String {
    let program = shown.model.program();
    let Some(found) = shown.record.assembly.as_ref().filter(|_| shown.settings.constrained) else {
        return dropped(program);
    };
    let statistics = &found.statistics;
    let mut out = String::new();
    let changed = match shown.moved().count() {
        0 => "the guesses fit".into(),
        n => format!("{} moved", count(n, "guess").replace("guesss", "guesses")),
    };
    let rows = program.holonomic.len() + program.nonholonomic.len();
    let freedom = program.coordinates.len().saturating_sub(statistics.rank);
    let freedom = if freedom == 1 { "1 degree".into() } else { format!("{freedom} degrees") };
    let _ = writeln!(out, "  start    {changed}; {}, {freedom} of freedom", count(rows, "equation"));
    let dependent = match statistics.rows.saturating_sub(statistics.rank) {
        0 => None,
        1 => Some("1 equation follows from the others".into()),
        n => Some(format!("{n} equations follow from the others")),
    };
    if let Some(dependent) = dependent {
        let _ = writeln!(out, "  rank     {dependent}: multipliers are those of least norm");
    }
    out.push_str(&dropped(program));
    let damping = shown.record.damping.filter(|damping| damping.frequency > 0.0);
    let mut method = Vec::new();
    method.extend(damping.map(|d| format!("violations damped critically at {} rad/s", short(d.frequency))));
    method.extend(shown.record.damping.and_then(|d| d.penalty).map(|p| format!("penalty {}", short(p))));
    if !method.is_empty() {
        let _ = writeln!(out, "  method   {}", method.join(", "));
    }
    out
}

/// Rows that are not computed.
fn dropped(program: &Program) -> String {
    if program.dropped_rows.is_empty() {
        return String::new();
    }
    let names = &program.dropped_rows[..program.dropped_rows.len().min(LISTED)];
    let more = if names.len() < program.dropped_rows.len() { ", …" } else { "" };
    let text = format!("{}{more}: 0 = 0 in every position", names.join(", "));
    format!("  dropped  {}\n", wrapped(&text, "           "))
}

/// Characters of a line of text.
const WIDTH: usize = 100;

/// Words in lines; further ones begin with the indent, as the first is expected to.
fn wrapped(text: &str, indent: &str) -> String {
    let (mut out, mut column) = (String::new(), indent.chars().count());
    for word in text.split(' ') {
        let length = word.chars().count();
        if !out.is_empty() {
            if column + 1 + length > WIDTH {
                out.push('\n');
                out.push_str(indent);
                column = indent.chars().count();
            } else {
                out.push(' ');
                column += 1;
            }
        }
        out.push_str(word);
        column += length;
    }
    out
}

fn energy(shown: &Shown<'_>) -> String {
    let balance = &shown.record.seen.balance;
    let largest = format!("the largest kinetic energy, {} J", short(balance.largest_kinetic));
    let mut out = String::new();
    let error = match balance.relative_error() {
        Some(relative) => format!("{} of {largest}", significant(relative, 2)),
        None => {
            balance.error().map_or("unknown: held inputs jump".into(), |e| format!("{} J", significant(e, 2)))
        }
    };
    if !shown.record.seen.events.is_empty() {
        let _ = writeln!(out, "  events   changed the energy by {} J", short(balance.at_events));
    }
    let [change, work, drives] = [balance.change, balance.work, balance.work_of_drives].map(short);
    let works = match (balance.driven, balance.prescribed) {
        (false, false) => {
            let _ = writeln!(out, "  energy   drift {error}");
            return out;
        }
        (true, false) => format!("work of driving and damping forces about {work} J"),
        (false, true) => format!("work of prescribed motions about {drives} J"),
        (true, true) => format!("work of forces about {work} J, of prescribed motions {drives} J"),
    };
    let _ = writeln!(out, "  energy   changed by {change} J, {works}");
    let _ = writeln!(out, "  balance  error {error}");
    out
}

fn effort(shown: &Shown<'_>) -> String {
    let record = shown.record;
    let what = match &record.effort {
        Effort::Unknown => return String::new(),
        Effort::Explicit(statistics) => {
            let rejected = match statistics.rejected {
                0 => String::new(),
                n => format!(" and {} rejected", grouped(n)),
            };
            let (steps, evaluations) =
                (count(statistics.steps, "step"), count(statistics.evaluations, "evaluation"));
            format!("{steps}{rejected}, {evaluations}")
        }
        Effort::Implicit(statistics) => count(statistics.steps, "step"),
    };
    let span = record.seen.now.t - shown.settings.simulation.begin;
    let mut out = format!(
        "  effort   {what} in {}: {} times real time\n",
        duration(record.seconds),
        significant(span / record.seconds, 3)
    );
    if let Effort::Implicit(statistics) = &record.effort {
        let (all, most) = (count(statistics.iterations, "iteration"), statistics.max_iterations);
        let _ = write!(out, "  newton   {all}, at most {most} in a step");
        if statistics.projections > 0 {
            let _ = write!(out, "; {}", count(statistics.projections, "projection"));
        }
        if statistics.fallbacks > 0 {
            let _ = write!(out, "; {} with pivoting", count(statistics.fallbacks, "factorisation"));
        }
        out.push('\n');
    }
    out
}
