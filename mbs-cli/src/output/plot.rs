//! A curve in a few lines of a terminal, drawn with braille dots: two a character across, four down.

use mbs_engine::simulation::Curves;

/// Letters of a name beside its curve.
const LABEL: usize = 48;

/// The label of a curve: a long name loses its middle.
pub(crate) fn label(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= LABEL {
        return name.into();
    }
    let (begin, end) = (&letters[..LABEL / 2], &letters[letters.len() - LABEL / 2 + 1..]);
    begin.iter().chain(&['…']).chain(end).collect()
}

/// A curve as lines of `width` characters.
pub(crate) fn draw(curves: &Curves, curve: usize, width: usize, lines: usize) -> Vec<String> {
    let (low, high) = curves.range(curve);
    let (columns, rows) = (2 * width, 4 * lines);
    let row_of = |value: f64| {
        let part = if high > low { (value - low) / (high - low) } else { 0.5 };
        (((1.0 - part) * (rows - 1) as f64).round() as usize).min(rows - 1)
    };
    let mut dots = vec![vec![0_u8; width]; lines];
    let mut previous = None;
    for column in 0..columns {
        let Some(value) = curves.at(curve, column as f64 / (columns - 1) as f64) else {
            continue;
        };
        let row = row_of(value);
        // From the neighbour's height to this one, so that a steep curve stays one.
        let (from, to) = match previous {
            Some(before) if before < row => (before + 1, row),
            Some(before) if before > row => (row, before - 1),
            _ => (row, row),
        };
        for r in from..=to {
            dots[r / 4][column / 2] |= DOTS[r % 4][column % 2];
        }
        previous = Some(row);
    }
    let braille = |bits: u8| char::from_u32(0x2800 + u32::from(bits)).unwrap_or(' ');
    dots.iter().map(|line| line.iter().map(|&bits| braille(bits)).collect()).collect()
}

/// The bits of a braille character, by row and column.
const DOTS: [[u8; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ramp_rises_from_left_to_right() {
        let mut curves = Curves::new(2);
        for i in 0..=100_000 {
            curves.sample(f64::from(i), &[f64::from(i), 7.0]);
        }
        assert_eq!(draw(&curves, 0, 4, 2), ["⠀⠀⡠⠊", "⡠⠊⠀⠀"]);
        assert_eq!(draw(&curves, 1, 2, 1), ["⠤⠤"], "a constant lies in the middle");
        assert_eq!(draw(&Curves::new(1), 0, 2, 1), ["⠀⠀"], "nothing is empty");
    }
}
