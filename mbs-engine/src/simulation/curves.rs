//! Curves over time, of which no more samples are kept than a drawing shows.

/// Samples kept; past it, every other one is forgotten.
const KEPT: usize = 4096;

/// Curves over a common time.
#[derive(Clone, Debug)]
pub struct Curves {
    times: Vec<f64>,
    values: Vec<Vec<f64>>,
    range: Vec<(f64, f64)>,
    stride: usize,
    seen: usize,
}

impl Curves {
    /// So many curves, empty.
    pub fn new(count: usize) -> Curves {
        Curves {
            times: Vec::new(),
            values: vec![Vec::new(); count],
            range: vec![(f64::INFINITY, f64::NEG_INFINITY); count],
            stride: 1,
            seen: 0,
        }
    }

    /// Takes a sample of each curve.
    pub fn sample(&mut self, t: f64, values: &[f64]) {
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
    pub fn times(&self) -> &[f64] {
        &self.times
    }

    /// The values of a curve that were kept.
    pub fn values(&self, curve: usize) -> &[f64] {
        &self.values[curve]
    }

    /// Smallest and largest value of a curve.
    pub fn range(&self, curve: usize) -> (f64, f64) {
        self.range[curve]
    }

    /// The value at a part of the time, between samples on a straight line.
    pub fn at(&self, curve: usize, part: f64) -> Option<f64> {
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
    fn few_samples_keep_the_range_and_the_shape() {
        let mut curves = Curves::new(2);
        for i in 0..=100_000 {
            curves.sample(f64::from(i), &[f64::from(i), 7.0]);
        }
        assert!(curves.times.len() <= KEPT);
        assert_eq!(curves.range(0), (0.0, 100_000.0));
        assert_eq!([curves.at(0, 0.5), curves.at(1, 0.5)], [Some(50_000.0), Some(7.0)]);
        assert_eq!(Curves::new(1).at(0, 0.5), None, "nothing is empty");
    }
}
