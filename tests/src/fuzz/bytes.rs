//! Arbitrary bytes made into text.

use crate::random_model::Random;

/// Bytes that mean something to a reader of YAML.
const SIGNS: &[u8] = b"{}[]:,-?&*#|>!%@`'\"\n\n\n    \t\r~<=0123456789abcdefe.+_()^/";

/// Text of a few or of some thousand characters: uniform bytes, signs of YAML, or scalar values of Unicode.
pub fn text(r: &mut Random) -> String {
    let len = [8, 40, 200, 2000][r.below(4)];
    let len = r.below(len) + 1;
    let mut out = String::from(if r.chance(0.5) { "mbs: 1\n" } else { "" });
    match r.below(3) {
        0 => {
            let bytes: Vec<u8> = (0..len).map(|_| r.bits() as u8).collect();
            out.push_str(&String::from_utf8_lossy(&bytes));
        }
        1 => out.extend((0..len).map(|_| char::from(SIGNS[r.below(SIGNS.len())]))),
        _ => out.extend((0..len).filter_map(|_| char::from_u32((r.bits() % 0x11_0000) as u32))),
    }
    out
}
