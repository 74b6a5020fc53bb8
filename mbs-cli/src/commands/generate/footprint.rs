//! What a generated module takes: operations and constants of its bundles, memory of its simulation and of its gradient.

use super::code::Code;
use crate::output::number::count;
use mbs_codegen::bundle::{Bundle, Operand, Segment};
use mbs_codegen::emission::{self, MemoryKind};
use mbs_codegen::model::Integrator;
use mbs_codegen::program::{Exists, Program, ScalarType};
use mbs_engine::Interpreted;
use mbs_runtime::simulation::{
    EventMemory, Explicit, ExplicitMemory, GradientMemory, ImplicitMemory, IndependentMemory, Newmark,
    StiffIndependentMemory, in_independent, in_independent_stages, in_stages,
};
use mbs_runtime::{Adaptive, Dims, Dop853, Rk4, Sdirk4, System};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Bytes of a simulation beside its numbers: settings, clock, statistics, the method's own.
const REST: usize = 768;

/// Memory of a module, in bytes.
pub(super) struct Footprint {
    /// Of parameters and what depends on them alone.
    pub(super) parameters: usize,
    /// Of the state, and of what is known of the present.
    pub(super) state: usize,
    /// Of the scratch of a step.
    pub(super) scratch: usize,
    /// Of a differentiated run.
    pub(super) gradient: Option<usize>,
}

impl Footprint {
    /// Of a program; none if its module has no simulation.
    pub(super) fn of(program: &Program) -> Option<Footprint> {
        let (kinds, differentiated) = emission::memory(program)?;
        let dims = Interpreted::<f64>::new(program.clone()).dims();
        let [events, conditions, settings, partials] = emission::event_counts(program);
        let largest = |all: [usize; 3], (kind, integrator): (MemoryKind, Integrator)| {
            let mut one = match integrator {
                Integrator::Rk4 => lengths::<Rk4>(kind, &dims),
                Integrator::DormandPrince => lengths::<Adaptive>(kind, &dims),
                Integrator::Dop853 => lengths::<Adaptive<Dop853>>(kind, &dims),
                Integrator::Sdirk4 => lengths::<Adaptive<Sdirk4>>(kind, &dims),
                _ => lengths::<Newmark>(kind, &dims),
            };
            if events > 0 {
                let memory = EventMemory { events, conditions, settings, partials };
                let inner = match kind {
                    MemoryKind::StiffTree | MemoryKind::StiffProjected => in_stages(&dims),
                    MemoryKind::Independent => in_independent(&dims),
                    MemoryKind::StiffIndependent => in_independent_stages(&dims),
                    _ => dims,
                };
                let [state, scratch, gradient] = one;
                one = [
                    memory.state_len(state, &dims),
                    memory.scratch_len(scratch, &inner),
                    memory.gradient_len(gradient, &inner),
                ];
            }
            [all[0].max(one[0]), all[1].max(one[1]), all[2].max(one[2])]
        };
        let [state, scratch, gradient] = kinds.into_iter().fold([0; 3], largest);
        let present =
            3 * dims.nq + 2 * dims.nv + dims.nu + program.holonomic.len() + program.nonholonomic.len();
        let prepared = program.bundle("prepare").map_or(0, |bundle| bundle.results[0].len as usize);
        let size = bytes(program);
        Some(Footprint {
            parameters: size * (program.parameter_names().len() + prepared),
            state: size * (state + present),
            scratch: size * scratch,
            gradient: differentiated.then_some(size * gradient),
        })
    }

    /// Of a simulation as a whole, at most.
    pub(super) fn simulation(&self) -> usize {
        self.parameters + self.state + self.scratch + REST
    }
}

/// Lengths of state, scratch and memory of a gradient; `T` is what integrates accelerations.
fn lengths<T: Explicit>(kind: MemoryKind, dims: &Dims) -> [usize; 3] {
    let state = match kind {
        MemoryKind::Implicit => ImplicitMemory::state_len(dims),
        MemoryKind::Independent => IndependentMemory::state_len(dims),
        MemoryKind::StiffIndependent => StiffIndependentMemory::state_len(dims),
        _ => ExplicitMemory::state_len(dims),
    };
    let (scratch, gradient) = match kind {
        MemoryKind::Implicit => (ImplicitMemory::scratch_len(dims), GradientMemory::implicit_len(dims)),
        MemoryKind::Tree => {
            (ExplicitMemory::tree_scratch_len::<T>(dims), GradientMemory::tree_len::<T>(dims))
        }
        MemoryKind::Projected => {
            (ExplicitMemory::projected_scratch_len::<T>(dims), GradientMemory::projected_len::<T>(dims))
        }
        MemoryKind::StiffTree => {
            (ExplicitMemory::stiff_tree_scratch_len::<T>(dims), GradientMemory::stiff_tree_len::<T>(dims))
        }
        MemoryKind::StiffProjected => (
            ExplicitMemory::stiff_projected_scratch_len::<T>(dims),
            GradientMemory::stiff_projected_len::<T>(dims),
        ),
        MemoryKind::Independent => {
            (IndependentMemory::scratch_len::<T>(dims), GradientMemory::independent_len::<T>(dims))
        }
        MemoryKind::StiffIndependent => (
            IndependentMemory::stiff_scratch_len::<T>(dims),
            GradientMemory::stiff_independent_len::<T>(dims),
        ),
    };
    [state, scratch, gradient]
}

/// Bytes of a number.
fn bytes(program: &Program) -> usize {
    match program.options.scalar {
        ScalarType::F64 => 8,
        ScalarType::F32 => 4,
    }
}

/// What steps under constraints are made of, as the generator has chosen; nothing without constraints.
pub(super) fn steps(program: &Program) -> String {
    if program.holonomic.is_empty() && program.nonholonomic.is_empty() {
        return String::new();
    }
    let fused = program.kinds.iter().filter(|kind| kind.entry().exists == Exists::Fused);
    let fused: Vec<&str> = fused.map(|kind| kind.name()).collect();
    match fused.is_empty() {
        true => ", separate steps".into(),
        false => format!(", fused steps ({})", fused.join(", ")),
    }
}

/// Which bundles compute two numbers at a time; nothing if there are none.
pub(super) fn packed(program: &Program) -> String {
    let packed = program.bundles.iter().filter(|bundle| bundle.packed.is_some());
    let names: Vec<&str> = packed.map(|bundle| bundle.name).collect();
    match names.is_empty() {
        true => String::new(),
        false => format!(", packed ({})", names.join(", ")),
    }
}

/// The report of a module, with its code in a linked program if there is one.
pub(super) fn report(program: &Program, code: Option<&Code>) -> String {
    let mut out = format!(
        "{}: {}, fma: {}{}{}\n\n",
        program.name,
        program.options.scalar.name(),
        program.options.fma.name(),
        steps(program),
        packed(program)
    );
    out.push_str("| bundle | operations | workspace, bytes | constants, bytes |");
    out.push_str(if code.is_some() {
        " code, bytes |\n|---|---|---|---|---|\n"
    } else {
        "\n|---|---|---|---|\n"
    });
    for bundle in &program.bundles {
        let own = match code.map(|code| code.bundles.get(bundle.name)) {
            Some(Some(bytes)) => format!(" {bytes} |"),
            Some(None) => " – |".into(),
            None => String::new(),
        };
        let _ = writeln!(
            out,
            "| `{}` | {} | {} | {} |{own}",
            bundle.name,
            bundle.counts.total(),
            bytes(program) * bundle.slots as usize,
            bytes(program) * constants(bundle)
        );
    }
    if let Some(code) = code {
        out.push_str(
            "\nA dash: not in the program, or part of its callers.\n\n| program | bytes |\n|---|---|\n",
        );
        let bundles = code.bundles.values().sum();
        let [initialised, zeroed] = code.memory;
        let rest = code.all.saturating_sub(bundles + code.module + code.runtime + code.functions);
        for (what, bytes) in [
            ("code of bundles", bundles),
            ("other code of the module", code.module),
            ("the runtime for it", code.runtime),
            ("elementary functions", code.functions),
            ("other code", rest),
            ("constants", code.constants),
            ("static memory with initial values", initialised),
            ("other static memory", zeroed),
        ] {
            let _ = writeln!(out, "| {what} | {bytes} |");
        }
    }
    if let Some(footprint) = Footprint::of(program) {
        out.push_str("\n| memory | bytes |\n|---|---|\n");
        let rows = [
            ("parameters and what depends on them alone", Some(footprint.parameters)),
            ("state and present values", Some(footprint.state)),
            ("scratch of a step", Some(footprint.scratch)),
            ("a simulation, at most", Some(footprint.simulation())),
            ("a differentiated run", footprint.gradient),
        ];
        for (what, bytes) in rows {
            if let Some(bytes) = bytes {
                let _ = writeln!(out, "| {what} | {bytes} |");
            }
        }
        out.push_str(&format!("\n{}\n", bound(program)));
    }
    out
}

/// What bounds the work of a step of the file's method.
fn bound(program: &Program) -> String {
    match program.simulation.integrator {
        Integrator::Rk4 => "A step of `rk4` evaluates the accelerations four times.".into(),
        integrator if integrator.controls_steps() => {
            let name = integrator.keyword();
            format!(
                "A step of `{name}` takes as many evaluations as its tolerance asks for: there is no bound."
            )
        }
        _ if program.simulation.solves_stages(!program.holonomic.is_empty() || !program.nonholonomic.is_empty()) => {
            "A step takes at most 20 iterations, with at most one tangent each; then it fails with `NotConverged`.".into()
        }
        _ => {
            let iterations = count(program.simulation.newton_iterations as usize, "iteration");
            format!(
                "A step takes at most {iterations}, with at most one tangent and two residuals each; then it fails with `NotConverged`."
            )
        }
    }
}

/// Different numbers that a bundle is printed with, tables included.
fn constants(bundle: &Bundle) -> usize {
    let mut found: BTreeSet<u64> = BTreeSet::new();
    for segment in &bundle.segments {
        if let Segment::Flat(statements) = segment {
            for statement in statements {
                statement.operands(|operand| {
                    if let Operand::Constant(value) = operand {
                        found.insert(value.to_bits());
                    }
                });
            }
        }
    }
    found.len() + bundle.tables.iter().map(Vec::len).sum::<usize>()
}
