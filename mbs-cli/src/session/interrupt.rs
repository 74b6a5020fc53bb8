//! Interrupts: the first ends a run at its next node, so that its results are kept; the second
//! ends the program at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

static WANTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Installs the handler once; without it interrupts end the program. No effect on systems without interrupts.
pub(crate) fn install_handler() {
    let mut first = false;
    let wanted = WANTED.get_or_init(|| {
        first = true;
        Arc::default()
    });
    if !first {
        return;
    }
    // In this order: the first interrupt finds the flag down.
    let _ =
        signal_hook::flag::register_conditional_shutdown(signal_hook::consts::SIGINT, 130, wanted.clone());
    let _ = signal_hook::flag::register(signal_hook::consts::SIGINT, wanted.clone());
}

/// Whether an interrupt came.
pub(crate) fn is_wanted() -> bool {
    WANTED.get().is_some_and(|wanted| wanted.load(Ordering::Relaxed))
}
