//! Limits against malicious or unsuitable files. Each is far above the needs of a real robot.

/// Bytes of a file.
pub const FILE_BYTES: usize = 8 << 20;
/// Attributes of one tag: the parser compares every pair.
pub const ATTRIBUTES: usize = 1000;
/// Declarations of namespaces: an element with one copies those of its ancestors.
pub const NAMESPACES: usize = 1000;
/// Elements, texts and comments together.
pub const NODES: u32 = 1_000_000;
/// Undeclared prefixes that are ignored.
pub const PREFIXES: usize = 20;
/// Links, and joints.
pub const LINKS: usize = 5000;
/// Numbers read from one attribute.
pub const NUMBERS: usize = 16;
/// After this many errors reading stops.
pub const ERRORS: usize = 200;
