//! `mbs equilibrium` and `mbs modes`: where a model stays at rest, and how it moves near a motion.

use crate::arguments::{Equilibrium, Modes, Of};
use crate::output::json as report_json;
use crate::output::number::{short, significant};
use crate::output::table::Table;
use crate::session::failure::Failure;
use crate::session::{files, model as session};
use mbs_codegen::program::BundleKind;
use mbs_engine::Interpreted;
use mbs_engine::equilibrium::{self, Equilibrium as Found};
use mbs_engine::modes::{Linearisation, Mode, linearise};
use mbs_engine::simulation::{Analysis, InstanceError, assemble, interpret, simulation};
use mbs_engine::verify::Instant;
use mbs_runtime::{Inputs, Names, Quantity, State, System};
use serde_json::{Value, json};
use std::fmt::Write;

/// Finds an equilibrium from the model's start and shows it.
pub(crate) fn equilibrium(arguments: &Equilibrium) -> Result<(), Failure> {
    let (model, t) = read(&arguments.of)?;
    let found = find(&model, t)?;
    if let Some(moving) = moving(&model, &found.instant)? {
        files::complain(&format!("note: time stands still: {moving}\n"));
    }
    let names = Named(&model);
    let text = if arguments.of.json {
        let coordinates = names.map(Quantity::Coordinate, &found.instant.z);
        let rows = names.rows(&found.instant.lambda);
        let value = json!({
            "model": model.program().name,
            "case": model.program().case,
            "t": t,
            "steps": found.steps,
            "residual": found.residual,
            "coordinates": coordinates,
            "multipliers": rows,
        });
        report_json::pretty(&value) + "\n"
    } else {
        let mut out = names.head("equilibrium");
        let _ = writeln!(out, "  after {} steps, {:.1e} left\n", found.steps, found.residual);
        let begin = model.start_state();
        let mut table = Table::new(&["coordinate", ">start", ">equilibrium"]);
        for (i, z) in found.instant.z.iter().enumerate() {
            table.row([names.of(Quantity::Coordinate, i), short(begin[i]), significant(*z, 12)]);
        }
        out + &table.print()
    };
    files::print(&text)
}

/// Shows the modes about the start or the equilibrium.
pub(crate) fn modes(arguments: &Modes) -> Result<(), Failure> {
    let (model, t) = read(&arguments.of)?;
    let instant = if arguments.equilibrium { find(&model, t)?.instant } else { begin(&model, t)? };
    if arguments.equilibrium
        && let Some(moving) = moving(&model, &instant)?
    {
        return Err(Failure::error(format!(
            "there is no rest: {moving}; without `--equilibrium` the modes are those about the start, which may be a steady motion"
        )));
    }
    let linearisation =
        linearise(&model, &instant).map_err(|error| Failure::error(error.describe(&model)))?;
    if !linearisation.is_steady() {
        let why = match linearisation.accelerating() {
            Some(i) => format!("`{}` accelerates", Named(&model).of(Quantity::Coordinate, i)),
            None => "small changes of it do not stay on the constraints, which change along it".into(),
        };
        let remedy = if arguments.equilibrium { "" } else { "; `--equilibrium` looks for rest first" };
        files::complain(&format!(
            "warning: the motion is not steady, {why}: these are the modes of one instant{remedy}\n"
        ));
    }
    let shown = linearisation.modes();
    let names = Named(&model);
    let text = if arguments.of.json {
        let modes: Vec<Value> = shown.iter().map(|mode| names.mode(mode)).collect();
        let value = json!({
            "model": model.program().name,
            "case": model.program().case,
            "t": t,
            "about": if arguments.equilibrium { "equilibrium" } else { "start" },
            "states": linearisation.matrix.nrows(),
            "cyclic": names.cyclic(&linearisation),
            "drift": linearisation.drift,
            "modes": modes,
        });
        report_json::pretty(&value) + "\n"
    } else {
        names.table(&linearisation, &shown, arguments.equilibrium)
    };
    files::print(&text)
}

/// The model with the bundles of coordinate form, and the time its runs begin at.
fn read(of: &Of) -> Result<(Interpreted, f64), Failure> {
    let model = session::read(&of.model, of.coordinates)?;
    let case = session::find_case(&model, of.case.as_deref())?;
    let begin = simulation(&model, case).begin;
    let bundles = BundleKind::COORDINATE_FORM.to_vec();
    let interpreted = session::write_equations(&model, || interpret(&model, case, &of.set, bundles))?;
    if interpreted.program().coordinates.is_empty() {
        return Err(session::explain(&model, &InstanceError::NothingMoves));
    }
    Ok((interpreted, begin))
}

fn find(model: &Interpreted, t: f64) -> Result<Found, Failure> {
    let nq = model.dims().nq;
    equilibrium::find(model, t, &model.start_state()[..nq])
        .map_err(|error| Failure::error(error.describe(model)))
}

/// What moves by itself in a position of rest.
fn moving(model: &Interpreted, at: &Instant) -> Result<Option<String>, Failure> {
    let moving = equilibrium::moving_constraints(model, at)
        .map_err(|error| Failure::error(error.describe(model).to_string()))?;
    let named: Vec<String> =
        moving.iter().map(|(name, rate)| format!("`{name}` at the rate {}", short(*rate))).collect();
    Ok((!named.is_empty()).then(|| format!("constraints move with time, {}", named.join(", "))))
}

/// The model's consistent start.
fn begin(model: &Interpreted, t: f64) -> Result<Instant, Failure> {
    let failed = |error: mbs_runtime::StepError| {
        Failure::error(format!("the start cannot be assembled: {}", error.describe(model)))
    };
    let mut state = assemble(model, t, Analysis::Dynamics).map_err(failed)?.state;
    let dims = model.dims();
    let mut u = vec![0.0; dims.nu];
    model.input_signals().at(t, &mut u);
    let view = State::of(&dims, &mut state).map_err(failed)?;
    Ok(Instant {
        t,
        z: view.z.to_vec(),
        zd: view.zd.to_vec(),
        zdd: view.zdd.to_vec(),
        u,
        lambda: view.lambda.to_vec(),
    })
}

/// A model that names its parts.
struct Named<'a>(&'a Interpreted);

impl Named<'_> {
    fn of(&self, quantity: Quantity, i: usize) -> String {
        self.0.name(quantity, i).unwrap_or("?").to_owned()
    }

    fn map(&self, quantity: Quantity, values: &[f64]) -> Value {
        values.iter().enumerate().map(|(i, x)| (self.of(quantity, i), json!(x))).collect()
    }

    /// Multipliers of holonomic and nonholonomic rows.
    fn rows(&self, lambda: &[f64]) -> Value {
        let dims = self.0.dims();
        let holonomic = (0..dims.n_holonomic).map(|i| (self.of(Quantity::Holonomic, i), json!(lambda[i])));
        let behind = dims.n_holonomic + dims.n_normalisation;
        let nonholonomic =
            (0..dims.n_nonholonomic).map(|i| (self.of(Quantity::Nonholonomic, i), json!(lambda[behind + i])));
        holonomic.chain(nonholonomic).collect()
    }

    fn cyclic(&self, linearisation: &Linearisation) -> Vec<String> {
        linearisation.cyclic.iter().map(|&j| self.of(Quantity::Coordinate, j)).collect()
    }

    fn head(&self, what: &str) -> String {
        let program = self.0.program();
        let case = program.case.as_ref().map(|case| format!(", case {case}")).unwrap_or_default();
        format!("{what} of {}{case}\n", program.name)
    }

    fn mode(&self, mode: &Mode) -> Value {
        let shape: Value = (mode.shape.iter().enumerate())
            .filter(|(_, x)| x.norm() > 1e-9)
            .map(|(j, x)| (self.of(Quantity::Coordinate, j), json!([x.re, x.im])))
            .collect();
        json!({
            "real": mode.eigenvalue.re,
            "imaginary": mode.eigenvalue.im,
            "frequency": mode.frequency(),
            "damping_ratio": mode.damping_ratio(),
            "shape": shape,
        })
    }

    fn table(&self, linearisation: &Linearisation, modes: &[Mode], equilibrium: bool) -> String {
        let mut out = self.head("modes");
        let about = if equilibrium { "its equilibrium" } else { "its start" };
        let _ = writeln!(out, "  about {about}, {} states", linearisation.matrix.nrows());
        let cyclic = self.cyclic(linearisation);
        if !cyclic.is_empty() {
            let _ = writeln!(out, "  nothing depends on {}", cyclic.join(", "));
        }
        if modes.is_empty() {
            out.push_str("  there are no free motions: the constraints prescribe all of them\n");
            return out;
        }
        out.push('\n');
        let mut table =
            Table::new(&[">real 1/s", ">imaginary 1/s", ">frequency Hz", ">damping ratio", "shape"]);
        for mode in modes {
            let mut parts: Vec<(usize, f64)> =
                mode.shape.iter().enumerate().map(|(j, x)| (j, x.norm())).collect();
            parts.sort_by(|a, b| b.1.total_cmp(&a.1));
            let shape: Vec<String> = (parts.iter().take(4).filter(|part| part.1 > 0.01))
                .map(|&(j, size)| {
                    let x = mode.shape[j];
                    let angle = if mode.eigenvalue.im > 0.0 {
                        format!("∠{:.0}°", x.arg().to_degrees())
                    } else {
                        String::new()
                    };
                    let size = if mode.eigenvalue.im > 0.0 { size } else { x.re };
                    format!("{} {}{angle}", self.of(Quantity::Coordinate, j), significant(size, 2))
                })
                .collect();
            let oscillates = mode.eigenvalue.im > 0.0;
            table.row([
                significant(mode.eigenvalue.re, 9),
                if oscillates { significant(mode.eigenvalue.im, 9) } else { String::new() },
                if oscillates { significant(mode.frequency(), 4) } else { String::new() },
                if oscillates { significant(mode.damping_ratio(), 3) } else { String::new() },
                shape.join(", "),
            ]);
        }
        out + &table.print()
    }
}
