//! When a bundle becomes machine code.
//!
//! A tape runs at once; machine code runs faster (a whole simulation of the buggy in half the processor time), but takes as long to write as the tape takes for some hundreds of
//! evaluations. A run of known length has its code written before it begins, or not at all, so that no step allocates. Who does not know how many
//! evaluations will come does best to begin on the tape and to compile when it has run for as long as compiling takes: this is never worse
//! than twice the better of the two. Results have the same bits either way.

use mbs_jit::{Compiled, Fusing, Refusal};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// How bundles are run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// By the tape, always.
    Tape,
    /// As machine code, from the first evaluation on. The tape runs where there can be none ([`mbs_jit::availability`] says why).
    Jit,
    /// As machine code where a bundle is evaluated often enough for it to pay.
    #[default]
    Auto,
}

/// After as many evaluations the tape has taken as long as compiling takes: 0.35 µs against 1.2 ns an operation, for the bundles of the buggy.
pub const BREAK_EVEN: u32 = 300;

/// When bundles are compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Policy {
    /// After how many evaluations, none before a run begins; never, if there is no number.
    pub after: Option<u32>,
    pub fusing: Fusing,
}

impl Policy {
    /// `expected`: how many evaluations of a bundle will come, where that is known.
    pub(crate) fn new(engine: Engine, expected: Option<usize>, fusing: Fusing) -> Policy {
        let after = match (engine, expected) {
            (Engine::Tape, _) => None,
            (Engine::Jit, _) => Some(0),
            (Engine::Auto, Some(expected)) => (expected > BREAK_EVEN as usize).then_some(0),
            (Engine::Auto, None) => Some(BREAK_EVEN),
        };
        Policy { after, fusing }
    }
}

/// The machine code of a bundle, and how often the bundle was evaluated before there was any.
#[derive(Debug, Default)]
pub(crate) struct Native {
    evaluations: AtomicU32,
    /// None where it was refused: the tape runs on.
    compiled: OnceLock<Option<Compiled>>,
}

impl Native {
    /// The code, where there is some.
    #[inline]
    pub(crate) fn get(&self) -> Option<&Compiled> {
        self.compiled.get().and_then(Option::as_ref)
    }

    /// Counts an evaluation to come; compiles if it is time. Code that needs more than `memory` is refused.
    #[inline]
    pub(crate) fn count(
        &self,
        policy: Policy,
        memory: usize,
        compile: impl FnOnce(Fusing) -> Option<Result<Compiled, Refusal>>,
    ) {
        let Some(after) = policy.after else { return };
        if self.compiled.get().is_some() {
            return;
        }
        // Several threads may lose counts to each other: then it is compiled a little later.
        let evaluations = self.evaluations.load(Ordering::Relaxed);
        if evaluations < after {
            self.evaluations.store(evaluations + 1, Ordering::Relaxed);
            return;
        }
        self.compile(memory, || compile(policy.fusing));
    }

    #[cold]
    fn compile(&self, memory: usize, compile: impl FnOnce() -> Option<Result<Compiled, Refusal>>) {
        self.compiled.get_or_init(|| {
            let compiled = compile()?.ok()?;
            (compiled.memory() <= memory).then_some(compiled)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Interpreted;
    use mbs_codegen::program::{Options, Program};
    use mbs_jit::{Lacking, pretend};
    use mbs_runtime::{At, ForwardDynamics, System};

    fn accelerations(model: &Interpreted) -> Vec<u64> {
        let d = model.dims();
        let (y, u) = (model.start_state(), vec![0.1; d.nu]);
        let (mut w, mut zd, mut vd) = (vec![0.0; d.workspace], vec![0.0; d.nq], vec![0.0; d.nv]);
        let at = At::of_state(&d, 0.0, &y, &u).expect("a state");
        model.forward_dynamics(at, &mut w, &mut zd, &mut vd, &mut []).expect("accelerations");
        vd.iter().map(|x| x.to_bits()).collect()
    }

    #[test]
    fn without_what_machine_code_needs_the_tape_runs() {
        let text = include_str!("../../models/cart_pole.yaml");
        let (model, _) = mbs_codegen::read("cart_pole.yaml", text).expect("a valid model");
        let program = Program::new(&model, None, &Options::default()).expect("a program");
        let mut tape: Interpreted = Interpreted::new(program);
        tape.set_engine(Engine::Tape, None, Fusing::AsCompiled);
        let expected = accelerations(&tape);
        for (lacking, why) in [
            (Lacking::Avx, "machine code is written for x86-64 with AVX only"),
            (Lacking::ExecutableMemory, "the system gives no executable memory: permission denied"),
        ] {
            pretend(Some(lacking));
            for engine in [Engine::Jit, Engine::Auto] {
                let mut model = tape.clone();
                model.set_engine(engine, Some(1_000_000), Fusing::AsCompiled);
                assert_eq!(model.compile(), 0, "{lacking:?}");
                assert_eq!(accelerations(&model), expected, "{lacking:?}");
            }
            let refused = mbs_jit::availability(Fusing::AsCompiled).expect_err("nothing can be run");
            if cfg!(target_arch = "x86_64") {
                assert_eq!(refused.to_string(), why);
            }
            pretend(None);
        }
        if mbs_jit::availability(Fusing::AsCompiled).is_err() {
            return;
        }
        // Fused operations are asked for, or not there.
        pretend(Some(Lacking::Fma));
        assert_eq!(mbs_jit::availability(Fusing::Fused), Err(Refusal::Fusing));
        let counts = [Fusing::Fused, Fusing::AsCompiled].map(|fusing| {
            let mut model = tape.clone();
            model.set_engine(Engine::Jit, None, fusing);
            let count = model.compile();
            assert_eq!(accelerations(&model), expected, "{fusing:?}");
            count
        });
        pretend(None);
        assert_eq!(counts[0], 0);
        assert_eq!(counts[1] > 0, !cfg!(target_feature = "fma"));
    }

    #[test]
    fn a_run_of_known_length_is_compiled_before_it_begins_or_never() {
        let after = |engine, expected| Policy::new(engine, expected, Fusing::AsCompiled).after;
        assert_eq!(after(Engine::Auto, Some(BREAK_EVEN as usize)), None);
        assert_eq!(after(Engine::Auto, Some(BREAK_EVEN as usize + 1)), Some(0));
        assert_eq!(after(Engine::Auto, None), Some(BREAK_EVEN));
        assert_eq!([after(Engine::Jit, Some(1)), after(Engine::Tape, Some(1_000_000))], [Some(0), None]);
    }

    #[test]
    fn copies_of_a_model_share_machine_code() {
        let text = include_str!("../../models/cart_pole.yaml");
        let (model, _) = mbs_codegen::read("cart_pole.yaml", text).expect("a valid model");
        let program = Program::new(&model, None, &Options::default()).expect("a program");
        let mut first: Interpreted = Interpreted::new(program);
        first.set_engine(Engine::Jit, None, Fusing::AsCompiled);
        let copy = first.clone();
        let compiled = first.compile();
        assert_eq!(copy.compiled(), compiled);
    }
}
