//! Limits against files that are hostile, or simply no robot. Each is far above what a real robot needs.

/// Bytes of a file.
pub const FILE_BYTES: usize = 8 << 20;
/// Attributes of one tag: the parser compares each with each.
pub const ATTRIBUTES: usize = 1000;
/// Declarations of name spaces: an element with one copies those around it.
pub const NAMESPACES: usize = 1000;
/// Elements, texts and comments together.
pub const NODES: u32 = 1_000_000;
/// Prefixes without a declaration that are overlooked.
pub const PREFIXES: usize = 20;
/// Links, and joints.
pub const LINKS: usize = 5000;
/// Numbers of one attribute are looked at up to here.
pub const NUMBERS: usize = 16;
/// After this many errors reading stops.
pub const ERRORS: usize = 200;
