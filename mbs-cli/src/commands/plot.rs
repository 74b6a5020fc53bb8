//! `mbs plot`: results from a CSV file, in the terminal or as a picture.

use crate::arguments::Plot;
use crate::output::csv::is_stdout;
use crate::output::number::{count, significant};
use crate::output::picture::{self, Curve, Frame};
use crate::output::plot::{draw, label};
use crate::session::choices::suggestion;
use crate::session::failure::Failure;
use crate::session::files;
use csv::{ReaderBuilder, StringRecord};
use mbs_engine::simulation::Curves;
use std::fmt::Write;
use std::io::Read;
use std::path::Path;

/// Columns that are drawn if none are named.
const SOME: usize = 16;
/// Characters of a plot across.
const WIDTH: usize = 56;

/// Draws results.
pub(crate) fn plot(arguments: &Plot) -> Result<(), Failure> {
    let drawn = arguments.output.as_deref().map(kind).transpose()?;
    let (name, text) = read(&arguments.result)?;
    let table = parse(&name, &text)?;
    let chosen = choose(&table, arguments)?;
    let Some((file, kind)) = arguments.output.as_deref().zip(drawn) else {
        return files::print(&in_terminal(&table, &chosen));
    };
    let left = table.heads.len() - 1 - chosen.len();
    if arguments.columns.is_none() && left > 0 {
        files::complain(&format!(
            "note: {} left out; name those you want: `--columns {},…`\n",
            count(left, "column"),
            bare(&table.heads[chosen[0]])
        ));
    }
    if !is_stdout(&arguments.result) {
        files::refuse_overwriting("-o", file, "the results", &arguments.result)?;
    }
    let frames = frames(&table, &chosen, arguments.together);
    let size = (arguments.width, arguments.height);
    match kind {
        Kind::Svg => files::write_whole(file, &picture::svg(&frames, &table.heads[0], size)),
        Kind::Png => {
            let picture = picture::png(&frames, &table.heads[0], size);
            let cannot = |error| Failure::error(format!("cannot make the picture: {error}"));
            files::write_bytes(file, &picture.map_err(cannot)?)
        }
    }
}

/// What a picture's name asks for.
#[derive(Clone, Copy)]
enum Kind {
    Svg,
    Png,
}

fn kind(file: &Path) -> Result<Kind, Failure> {
    match file.extension().and_then(|end| end.to_str()).map(str::to_lowercase).as_deref() {
        Some("svg") => Ok(Kind::Svg),
        Some("png") => Ok(Kind::Png),
        _ => {
            Err(Failure::usage(format!("`{}` is no picture: end its name with .svg or .png", file.display())))
        }
    }
}

fn read(path: &Path) -> Result<(String, String), Failure> {
    if !is_stdout(path) {
        return files::read(path).map(|file| (file.name, file.text));
    }
    let mut text = String::new();
    std::io::stdin()
        .lock()
        .read_to_string(&mut text)
        .map_err(|error| Failure::error(format!("cannot read standard input: {}", files::reason(&error))))?;
    Ok(("standard input".into(), text))
}

/// Columns of numbers under their names.
struct Table {
    heads: Vec<String>,
    columns: Vec<Vec<f64>>,
}

/// The table of a file whose first line names the columns.
fn parse(name: &str, text: &str) -> Result<Table, Failure> {
    let mut reader = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
    let mut records = reader.records().filter(|record| !record.as_ref().is_ok_and(is_blank));
    let unreadable = |error: csv::Error| Failure::error(format!("cannot read `{name}`: {error}"));
    let Some(head) = records.next().transpose().map_err(unreadable)? else {
        return Err(Failure::error(format!("cannot read `{name}`: it is empty")));
    };
    let heads: Vec<String> = head.iter().map(|head| head.trim().into()).collect();
    let mut columns = vec![Vec::new(); heads.len()];
    for record in records {
        let record = record.map_err(unreadable)?;
        let line = record.position().map_or(0, |position| position.line());
        let fail = |what: String| Failure::error(format!("cannot read `{name}`, line {line}: {what}"));
        if record.len() != heads.len() {
            let (found, wanted) = (count(record.len(), "value"), count(heads.len(), "column"));
            return Err(fail(format!("{found} under {wanted}")));
        }
        for (column, cell) in columns.iter_mut().zip(&record) {
            column.push(cell.trim().parse().map_err(|_| fail(format!("`{}` is not a number", cell.trim())))?);
        }
    }
    if heads.len() < 2 || columns[0].is_empty() {
        return Err(Failure::error(format!(
            "`{name}` has nothing to draw: a column of times, and others, with rows"
        )));
    }
    Ok(Table { heads, columns })
}

/// A line of blanks.
fn is_blank(record: &StringRecord) -> bool {
    record.len() == 1 && record[0].trim().is_empty()
}

/// A name without its unit.
fn bare(head: &str) -> &str {
    head.rfind(" [").filter(|_| head.ends_with(']')).map_or(head, |at| &head[..at])
}

/// Whether a name is one that a pattern means.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((before, after)) => name.strip_prefix(before).is_some_and(|rest| {
            (0..=rest.len()).any(|at| rest.is_char_boundary(at) && fits(after, &rest[at..]))
        }),
    }
}

/// Places of the columns that are wanted.
fn choose(table: &Table, arguments: &Plot) -> Result<Vec<usize>, Failure> {
    let all = 1..table.heads.len();
    let Some(wanted) = &arguments.columns else { return Ok(all.take(SOME).collect()) };
    let mut chosen = Vec::new();
    for name in wanted.iter().map(|name| name.trim()).filter(|name| !name.is_empty()) {
        let is_meant = |i: &usize| fits(name, &table.heads[*i]) || fits(name, bare(&table.heads[*i]));
        let found: Vec<usize> = all.clone().filter(is_meant).collect();
        if found.is_empty() {
            let axis = &table.heads[0];
            if [axis, bare(axis)].contains(&name) {
                return Err(Failure::usage(format!(
                    "`{name}` is the horizontal axis of every plot; name columns to draw over it"
                )));
            }
            let others = table.heads[1..].iter().map(|head| bare(head));
            return Err(Failure::usage(format!("there is no column `{name}`{}", suggestion(name, others))));
        }
        chosen.extend(found.into_iter().filter(|i| !chosen.contains(i)).collect::<Vec<_>>());
    }
    if chosen.is_empty() { Err(Failure::usage("no columns are named")) } else { Ok(chosen) }
}

fn in_terminal(table: &Table, chosen: &[usize]) -> String {
    let mut curves = Curves::new(chosen.len());
    for (row, &t) in table.columns[0].iter().enumerate() {
        curves.sample(t, &chosen.iter().map(|&i| table.columns[i][row]).collect::<Vec<f64>>());
    }
    let lines = if chosen.len() <= 4 { 4 } else { 2 };
    let labels: Vec<String> = chosen.iter().map(|&i| label(&table.heads[i])).collect();
    let axis = label(&table.heads[0]);
    let width = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for (k, head) in labels.iter().enumerate() {
        let (low, high) = curves.range(k);
        for (line, drawn) in draw(&curves, k, WIDTH, lines).iter().enumerate() {
            let label = if line == 0 { head.as_str() } else { "" };
            let scale = match line {
                0 => significant(high, 4),
                line if line + 1 == lines => significant(low, 4),
                _ => String::new(),
            };
            let _ = writeln!(out, "{}", format!("  {label:<width$}  {drawn}  {scale}").trim_end());
        }
    }
    let times = &table.columns[0];
    let [first, last] = [times[0], times[times.len() - 1]].map(|t| significant(t, 4));
    let fill = " ".repeat((WIDTH).saturating_sub(first.chars().count() + last.chars().count()));
    let _ = writeln!(out, "  {axis:<width$}  {first}{fill}{last}");
    out
}

/// A frame a column, or one for all.
fn frames(table: &Table, chosen: &[usize], together: bool) -> Vec<Frame> {
    let curve = |&i: &usize| {
        let points = table.columns[0].iter().zip(&table.columns[i]).map(|(&x, &y)| [x, y]).collect();
        Curve { name: table.heads[i].clone(), points }
    };
    let curves = chosen.iter().map(curve);
    if together {
        return vec![Frame { curves: curves.collect() }];
    }
    curves.map(|curve| Frame { curves: vec![curve] }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_patterns() {
        assert!(fits("energy.*", "energy.kinetic") && fits("*", "") && fits("*.x*", "P.x.y"));
        assert!(!fits("energy.*", "energy") && !fits("a*b", "abc") && !fits("a", "ab"));
        assert_eq!([bare("A.angle [rad]"), bare("a[1]"), bare("t")], ["A.angle", "a[1]", "t"]);
    }
}
