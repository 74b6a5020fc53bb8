//! When a bundle becomes machine code.
//!
//! A tape runs at once; machine code runs faster (a whole simulation of the buggy in half the processor time), but takes as long to write as the tape takes for some hundreds of
//! evaluations. Who does not know how many will come does best to begin on the tape and to compile when it has run for as long as compiling
//! takes: this is never worse than twice the better of the two. Results have the same bits either way, so nobody can tell.

use mbs_jit::{Compiled, Fusing, Refusal};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

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
    /// After how many evaluations; never, if there is no number.
    pub after: Option<u32>,
    pub fusing: Fusing,
}

impl Policy {
    /// `expected`: how many evaluations of a bundle will come, where that is known.
    pub(crate) fn new(engine: Engine, expected: Option<usize>, fusing: Fusing) -> Policy {
        let after = match (engine, expected) {
            (Engine::Tape, _) => None,
            (Engine::Jit, _) => Some(0),
            // A bundle that only the start or the end evaluates stays on the tape.
            (Engine::Auto, Some(expected)) if expected > BREAK_EVEN as usize => Some(2),
            (Engine::Auto, _) => Some(BREAK_EVEN),
        };
        Policy { after, fusing }
    }
}

/// The machine code of a bundle, and how often the bundle was evaluated before there was any.
#[derive(Debug, Default)]
pub(crate) struct Native {
    evaluations: AtomicU32,
    /// None where it was refused: the tape runs on.
    compiled: OnceLock<Option<Arc<Compiled>>>,
}

impl Clone for Native {
    fn clone(&self) -> Self {
        let evaluations = AtomicU32::new(self.evaluations.load(Ordering::Relaxed));
        Native { evaluations, compiled: self.compiled.clone() }
    }
}

impl Native {
    /// The code, where there is some.
    #[inline]
    pub(crate) fn get(&self) -> Option<&Compiled> {
        self.compiled.get().and_then(|compiled| compiled.as_deref())
    }

    /// Forgets the code, and how often the bundle was evaluated.
    pub(crate) fn reset(&mut self) {
        *self = Native::default();
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
            (compiled.memory() <= memory).then(|| Arc::new(compiled))
        });
    }
}
