//! The textual form of a graph: printed for people and tests, parsed back to the same graph.
//!
//! ```text
//! %0 = z[0]
//! %1 = sin %0
//! %2 = const 0.5
//! %3 = mul %2 %1
//! @0 = array %1 %3
//! %4 = gather @0 %0
//! $0 = call solve_tridiagonal 2 %2 %0 %1 %2 %3 %4
//! %5 = output $0 0
//! ```

use super::{ArrayId, verify};
use super::{BinaryOp, Call, CallId, Comparison, ExprId, Graph, Kernel, Node, UnaryOp};
use crate::symbols::Group;
use std::fmt::Write;

/// Prints a graph.
pub fn print(graph: &Graph) -> String {
    let mut out = String::new();
    let (mut arrays, mut calls) = (0, 0);
    for (id, node) in graph.nodes() {
        match node {
            Node::Gather(array, _) | Node::Locate(array, _) => {
                print_arrays(graph, &mut arrays, array.index() + 1, &mut out);
            }
            Node::Output(call, _) => print_calls(graph, &mut calls, call.index() + 1, &mut out),
            _ => {}
        }
        let _ = write!(out, "%{} = ", id.index());
        let _ = match node {
            Node::Constant(bits) => writeln!(out, "const {:?}", f64::from_bits(bits)),
            Node::Symbol(group, index) => writeln!(out, "{}[{index}]", group.identifier()),
            Node::Unary(op, a) => writeln!(out, "{} %{}", op.name(), a.index()),
            Node::Binary(op, a, b) => writeln!(out, "{} %{} %{}", op.name(), a.index(), b.index()),
            Node::Select(comparison, operands) => {
                writeln!(out, "{}{}", comparison.name(), ids(&operands))
            }
            Node::Gather(array, index) => writeln!(out, "gather @{} %{}", array.index(), index.index()),
            Node::Locate(array, x) => writeln!(out, "locate @{} %{}", array.index(), x.index()),
            Node::Output(call, index) => writeln!(out, "output ${} {index}", call.index()),
        };
    }
    print_arrays(graph, &mut arrays, graph.array_count(), &mut out);
    print_calls(graph, &mut calls, graph.call_count(), &mut out);
    out
}

fn ids(list: &[ExprId]) -> String {
    list.iter().map(|id| format!(" %{}", id.index())).collect()
}

/// Arrays and calls are numbered in the order of their creation, so all that precede a used one are complete.
fn print_arrays(graph: &Graph, printed: &mut usize, until: usize, out: &mut String) {
    while *printed < until {
        let elements = graph.array(ArrayId(*printed as u32));
        let _ = writeln!(out, "@{} = array{}", *printed, ids(elements));
        *printed += 1;
    }
}

fn print_calls(graph: &Graph, printed: &mut usize, until: usize, out: &mut String) {
    while *printed < until {
        let call = graph.call(CallId(*printed as u32));
        let arguments = ids(&call.arguments);
        let _ =
            writeln!(out, "${} = call {} {}{arguments}", *printed, call.kernel.name(), call.kernel.size());
        *printed += 1;
    }
}

/// Why a text is not a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Line, from 1.
    pub line: usize,
    /// What is wrong.
    pub message: String,
}

impl std::fmt::Display for ParseError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for ParseError {}

/// Parses what [`print()`] prints. The result is verified.
pub fn parse(text: &str) -> Result<Graph, ParseError> {
    let mut graph = Graph::new();
    for (i, line) in text.lines().enumerate() {
        if !line.trim().is_empty() {
            parse_line(&mut graph, line).map_err(|message| ParseError { line: i + 1, message })?;
        }
    }
    let lines = text.lines().count();
    verify::verify(&graph).map_err(|v| ParseError { line: lines, message: v.to_string() })?;
    Ok(graph)
}

fn parse_line(graph: &mut Graph, line: &str) -> Result<(), String> {
    let (target, definition) = line.split_once('=').ok_or("expected `=`")?;
    let mut words = definition.split_whitespace();
    let head = words.next().ok_or("expected an operation")?;
    let words: Vec<&str> = words.collect();
    let target = target.trim();
    let expected = |sigil: char, count: usize| {
        let want = format!("{sigil}{count}");
        if target == want { Ok(()) } else { Err(format!("expected `{want}`, found `{target}`")) }
    };
    match head {
        "array" => {
            expected('@', graph.array_count())?;
            let elements = words.iter().map(|w| expr(graph, w)).collect::<Result<Vec<_>, _>>()?;
            if elements.is_empty() {
                return Err("an array has at least one element".into());
            }
            let before = graph.array_count();
            graph.new_array(elements);
            if graph.array_count() == before { Err("the same array stands earlier".into()) } else { Ok(()) }
        }
        "call" => {
            expected('$', graph.call_count())?;
            let [name, size, arguments @ ..] = &words[..] else {
                return Err("expected a kernel and its size".into());
            };
            let size = number(size)?;
            let kernel = Kernel::from_name(name, size).ok_or_else(|| format!("no kernel `{name}`"))?;
            let arguments = arguments.iter().map(|w| expr(graph, w)).collect::<Result<Vec<_>, _>>()?;
            // Compared before any sum of large sizes is formed.
            if arguments.len() < size as usize || arguments.len() != kernel.inputs() {
                return Err(format!("`{name} {size}` got {} arguments", arguments.len()));
            }
            let call = Call { kernel, arguments };
            graph.call_ids.insert(call.clone(), CallId(graph.calls.len() as u32));
            graph.push_call(call);
            Ok(())
        }
        _ => {
            expected('%', graph.len())?;
            let node = parse_node(graph, head, &words)?;
            let before = graph.len();
            graph.intern(node);
            if graph.len() == before { Err("the same node stands earlier".into()) } else { Ok(()) }
        }
    }
}

fn parse_node(graph: &Graph, head: &str, words: &[&str]) -> Result<Node, String> {
    let operands = |n: usize| -> Result<Vec<ExprId>, String> {
        if words.len() != n {
            return Err(format!("`{head}` takes {n} operands"));
        }
        words.iter().map(|w| expr(graph, w)).collect()
    };
    if let Some(op) = UnaryOp::ALL.iter().find(|op| op.name() == head) {
        return Ok(Node::Unary(*op, operands(1)?[0]));
    }
    if let Some(op) = BinaryOp::ALL.iter().find(|op| op.name() == head) {
        let operands = operands(2)?;
        return Ok(Node::Binary(*op, operands[0], operands[1]));
    }
    if let Some(comparison) = Comparison::ALL.iter().find(|c| c.name() == head) {
        let o = operands(4)?;
        return Ok(Node::Select(*comparison, [o[0], o[1], o[2], o[3]]));
    }
    match (head, words) {
        ("const", [value]) => {
            let value: f64 = value.parse().map_err(|_| format!("bad number `{value}`"))?;
            if !value.is_finite() {
                return Err("constants are finite".into());
            }
            Ok(Node::Constant((value + 0.0).to_bits()))
        }
        ("gather" | "locate", [array, index]) => {
            let array = sigil('@', array)?;
            if array as usize >= graph.array_count() {
                return Err(format!("no array `@{array}` yet"));
            }
            let (array, index) = (ArrayId(array), expr(graph, index)?);
            Ok(if head == "gather" { Node::Gather(array, index) } else { Node::Locate(array, index) })
        }
        ("output", [call, index]) => {
            let (call, index) = (sigil('$', call)?, number(index)?);
            if call as usize >= graph.call_count() {
                return Err(format!("no call `${call}` yet"));
            }
            Ok(Node::Output(CallId(call), index))
        }
        (symbol, []) => {
            let (group, index) =
                symbol.split_once('[').ok_or_else(|| format!("unknown operation `{symbol}`"))?;
            let index = index.strip_suffix(']').ok_or("expected `]`")?;
            let group = Group::from_identifier(group).ok_or_else(|| format!("unknown group `{group}`"))?;
            Ok(Node::Symbol(group, number(index)?))
        }
        _ => Err(format!("unknown operation `{head}` with {} operands", words.len())),
    }
}

fn number(word: &str) -> Result<u32, String> {
    word.parse().map_err(|_| format!("bad number `{word}`"))
}

fn sigil(sigil: char, word: &str) -> Result<u32, String> {
    number(word.strip_prefix(sigil).ok_or_else(|| format!("expected `{sigil}…`, found `{word}`"))?)
}

fn expr(graph: &Graph, word: &str) -> Result<ExprId, String> {
    let index = sigil('%', word)?;
    if (index as usize) < graph.len() { Ok(ExprId(index)) } else { Err(format!("no node `{word}` yet")) }
}
