//! A place in a model file.

/// A stretch of a model file. The default one is "nowhere" (line 0) and is printed without a place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// Byte offset of the first character.
    pub offset: usize,
    /// Length in bytes.
    pub len: usize,
    /// Line of the first character, from 1.
    pub line: u32,
    /// Column of the first character, in characters from 1.
    pub column: u32,
}

impl Span {
    /// Whether the span names a place at all.
    pub fn is_known(self) -> bool {
        self.line > 0
    }
}
