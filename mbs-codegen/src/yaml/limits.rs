//! Limits against files that are hostile, or simply not a model. Each is far above what a real model needs.

/// Bytes of a model file.
pub const FILE_BYTES: usize = 4 << 20;
/// Nesting of lists and mappings.
pub const NESTING: usize = 32;
/// Weight of the document after aliases are followed: one per node, and one per 16 bytes of its text.
pub const NODES: usize = 1_000_000;
/// Characters of one name.
pub const NAME_CHARS: usize = 64;
/// Bytes of one expression.
pub const EXPRESSION_BYTES: usize = 4096;
/// Nesting of parentheses, brackets and signs in one expression.
pub const EXPRESSION_NESTING: usize = 48;
/// Height of one expression's tree: a sum of this many terms is the longest.
pub const EXPRESSION_DEPTH: usize = 160;
/// Height of an expression's tree after arguments and definitions are substituted.
pub const TREE_DEPTH: usize = 320;
/// Elements inside elements.
pub const ELEMENT_DEPTH: usize = 8;
/// Operations of all expressions together, after elements are expanded.
pub const OPERATIONS: usize = 500_000;
/// Entries of one kind (bodies, joints, forces, parameters, …), after elements are expanded.
pub const ENTRIES: usize = 10_000;
/// Points or vectors of one body; arguments of one element.
pub const PARTS: usize = 1_000;
/// Points or vectors that two bodies share, of each.
pub const SHARED: usize = 16;
/// Modes, after elements are expanded.
pub const MODES: usize = 100;
/// States of one mode.
pub const STATES: usize = 32;
/// After this many errors no nearest names are looked for.
pub const SUGGESTIONS: usize = 100;
/// Instances of elements.
pub const INSTANCES: usize = 2_000;
/// Values of one array parameter or of one list in an expression's table.
pub const ARRAY_VALUES: usize = 100_000;
/// Values and inputs a model is differentiated by, arrays flattened.
pub const SENSITIVITY: usize = 1_000;
/// Cases; every parameter is evaluated anew for each.
pub const CASES: usize = 500;
/// Problems of optimisation.
pub const PROBLEMS: usize = 100;
/// Starts of one problem.
pub const STARTS: usize = 1_000;
