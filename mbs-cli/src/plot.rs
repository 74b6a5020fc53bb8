//! A curve in a few lines of a terminal, drawn with braille dots: two a character across, four down.

/// Samples kept for a plot; past it, every other one is forgotten.
const KEPT: usize = 4096;

/// Curves over a common time.
#[derive(Clone, Debug)]
pub(crate) struct Curves {
    times: Vec<f64>,
    values: Vec<Vec<f64>>,
    range: Vec<(f64, f64)>,
    stride: usize,
    seen: usize,
}

impl Curves {
    /// So many curves, empty.
    pub(crate) fn new(count: usize) -> Curves {
        Curves {
            times: Vec::new(),
            values: vec![Vec::new(); count],
            range: vec![(f64::INFINITY, f64::NEG_INFINITY); count],
            stride: 1,
            seen: 0,
        }
    }

    /// Takes a sample of each curve.
    pub(crate) fn sample(&mut self, t: f64, values: &[f64]) {
        for ((low, high), &value) in self.range.iter_mut().zip(values) {
            (*low, *high) = (low.min(value), high.max(value));
        }
        if self.seen.is_multiple_of(self.stride) {
            if self.times.len() == KEPT {
                keep_even(&mut self.times);
                self.values.iter_mut().for_each(keep_even);
                self.stride *= 2;
            }
            if self.seen.is_multiple_of(self.stride) {
                self.times.push(t);
                self.values.iter_mut().zip(values).for_each(|(kept, &value)| kept.push(value));
            }
        }
        self.seen += 1;
    }

    /// The times that were kept.
    pub(crate) fn times(&self) -> &[f64] {
        &self.times
    }

    /// The values of a curve that were kept.
    pub(crate) fn values(&self, curve: usize) -> &[f64] {
        &self.values[curve]
    }

    /// Smallest and largest value of a curve.
    pub(crate) fn range(&self, curve: usize) -> (f64, f64) {
        self.range[curve]
    }

    /// A curve as lines of `width` characters.
    pub(crate) fn draw(&self, curve: usize, width: usize, lines: usize) -> Vec<String> {
        let (low, high) = self.range[curve];
        let (columns, rows) = (2 * width, 4 * lines);
        let row_of = |value: f64| {
            let part = if high > low { (value - low) / (high - low) } else { 0.5 };
            (((1.0 - part) * (rows - 1) as f64).round() as usize).min(rows - 1)
        };
        let mut dots = vec![vec![0_u8; width]; lines];
        let mut previous = None;
        for column in 0..columns {
            let Some(value) = self.at(curve, column as f64 / (columns - 1) as f64) else {
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

    /// The value at a part of the time, between samples on a straight line.
    fn at(&self, curve: usize, part: f64) -> Option<f64> {
        let (&first, &last) = (self.times.first()?, self.times.last()?);
        let t = first + part * (last - first);
        let after = self.times.partition_point(|&time| time < t).clamp(0, self.times.len() - 1);
        let before = after.saturating_sub(1);
        let (t0, t1) = (self.times[before], self.times[after]);
        let (y0, y1) = (self.values[curve][before], self.values[curve][after]);
        let s = if t1 > t0 { ((t - t0) / (t1 - t0)).clamp(0.0, 1.0) } else { 1.0 };
        Some(y0 + s * (y1 - y0))
    }
}

/// The bits of a braille character, by row and column.
const DOTS: [[u8; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];

fn keep_even(values: &mut Vec<f64>) {
    let mut index = 0;
    values.retain(|_| {
        index += 1;
        index % 2 == 1
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ramp_rises_from_left_to_right() {
        let mut curves = Curves::new(2);
        for i in 0..=100_000 {
            curves.sample(f64::from(i), &[f64::from(i), 7.0]);
        }
        assert!(curves.times.len() <= KEPT);
        assert_eq!(curves.range(0), (0.0, 100_000.0));
        assert_eq!(curves.draw(0, 4, 2), ["⠀⠀⡠⠊", "⡠⠊⠀⠀"]);
        assert_eq!(curves.draw(1, 2, 1), ["⠤⠤"], "a constant lies in the middle");
        assert_eq!(Curves::new(1).draw(0, 2, 1), ["⠀⠀"], "nothing is empty");
    }
}
