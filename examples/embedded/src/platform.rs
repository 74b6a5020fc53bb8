//! What the scenario asks of the machine it runs on.

/// What the scenario needs of its surroundings.
pub trait Platform {
    /// Writes text.
    fn print(&mut self, text: &str);

    /// Instructions since some time in the past; none where they are not counted.
    fn instructions(&mut self) -> Option<u64>;

    /// Waits for the next period. Whether it was still to come: `false` if the deadline was missed.
    fn wait(&mut self) -> bool;

    /// Forgets how deep the stack was.
    fn paint_stack(&mut self);

    /// Bytes of stack used since then; none where they are not measured.
    fn stack(&mut self) -> Option<usize>;

    /// Bytes of stack of the whole program so far; none where they are not measured.
    fn deepest_stack(&mut self) -> Option<usize> {
        None
    }
}
