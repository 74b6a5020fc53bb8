//! Going back over a run in bounded memory: records of all steps where they fit, binomial checkpoints where they do not
//! [Griewank, Walther, Algorithm 799: revolve, ACM TOMS 26, 2000].
//!
//! A run of N steps is cut into L segments of R steps; the last may be shorter. The memory holds the records of one segment and up to
//! s states at the start of segments. To go back over a segment its steps are made again from its state, recorded, and reversed. A
//! range of l segments whose first state is known, with s places for states (that one included), is cut after m segments: they are
//! advanced over, the state reached is kept, the l − m segments behind it are reversed with s − 1 places, then the m before it with s.
//!
//! ```text
//! β(s, r) = (s + r)!/(s! r!)                    segments that s places reverse if none is advanced over more than r times
//! β(s, r − 1) < l ≤ β(s, r)                     r of a range
//! m = min(β(s, r − 1), l − β(s − 1, r − 1))     an optimal cut
//! t(l, s) = r l − β(s + 1, r − 1)               segments advanced over in all
//! ```
//!
//! The first pass over each segment is the run itself, so that R t(L, s) steps are recomputed: none if all records fit (L = 1). States
//! are all that a step knows, so recomputed steps give the same bits.

use core::ops::ControlFlow;

use crate::error::StepError;
use crate::linear::copy;
use crate::scalar::Scalar;

/// How the memory is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Steps of the run, N.
    pub steps: usize,
    /// Steps of a segment, R: as many records are kept.
    pub segment: usize,
    /// States kept at most, s.
    pub states: usize,
    /// Numbers of a record, and of a state.
    record_len: usize,
    state_len: usize,
}

/// Growth of the numbers of segments that are tried.
const GROWTH: usize = 16;

impl Schedule {
    /// The schedule with the fewest recomputed steps that fits `memory` numbers; an error that says how many are needed, if that is less
    /// than a record and a state for each doubling of the run.
    pub(crate) fn new(
        steps: usize,
        record_len: usize,
        state_len: usize,
        memory: usize,
    ) -> Result<Self, StepError> {
        // A state with the number of its segment.
        let place = state_len + 1;
        let mut best: Option<Self> = None;
        let mut segments = 1;
        loop {
            let segment = steps.max(1).div_ceil(segments);
            let number = steps.max(1).div_ceil(segment);
            let left = memory.saturating_sub(segment.saturating_mul(record_len));
            // Where a state is advanced over again and again, that of the segment at hand has a place of its own.
            let own = usize::from(number > 1);
            let states = (left / place).saturating_sub(own).min(number);
            if states >= least_states(number) {
                let found = Self { steps, segment, states, record_len, state_len };
                if best.is_none_or(|best| found.recomputed() < best.recomputed()) {
                    best = Some(found);
                }
            }
            if segments >= steps.max(1) || best.is_some_and(|best| best.recomputed() == 0) {
                break;
            }
            segments = (segments + segments / GROWTH + 1).min(steps);
        }
        let least = record_len + (least_states(steps.max(1)) + usize::from(steps > 1)) * place;
        best.ok_or(StepError::Length { what: "memory", expected: least, found: memory })
    }

    /// Number of segments, L.
    pub fn segments(&self) -> usize {
        self.steps.div_ceil(self.segment.max(1))
    }

    /// Steps that are made again on the way back; saturates.
    pub fn recomputed(&self) -> usize {
        advanced(self.segments(), self.states).saturating_mul(self.segment)
    }

    /// Numbers of the memory that are used.
    pub fn memory_len(&self) -> usize {
        let places = self.states + usize::from(self.segments() > 1);
        self.segment * self.record_len + places * (self.state_len + 1)
    }
}

/// The list of a run's steps at the beginning of the memory, and what is left to go back over them; an error that says how much both need.
pub(crate) fn behind_list<S>(
    memory: &mut [S],
    listed: usize,
    steps: usize,
    record_len: usize,
    state_len: usize,
) -> Result<(&mut [S], &mut [S]), StepError> {
    let found = memory.len();
    let counting = |least: usize| StepError::Length { what: "memory", expected: least, found };
    match Schedule::new(steps, record_len, state_len, found.saturating_sub(listed)) {
        Err(StepError::Length { expected, .. }) => return Err(counting(expected.saturating_add(listed))),
        plan => plan?,
    };
    memory.split_at_mut_checked(listed).ok_or(counting(listed))
}

/// Places for states below which going back is not sensible: one for each doubling, and one.
fn least_states(segments: usize) -> usize {
    let doublings = usize::BITS - segments.saturating_sub(1).leading_zeros();
    (doublings as usize).max(1)
}

/// β(s, r), for r from 0 on, until it is at least `length`: r, and β(s, r), β(s, r − 1), β(s − 1, r − 1).
fn range(length: usize, states: usize) -> (usize, u128, u128, u128) {
    let (length, s) = (length as u128, states as u128);
    // β(s, 0) = 1
    let (mut r, mut beta, mut before) = (0_u128, 1_u128, 0_u128);
    while beta < length {
        r += 1;
        before = beta;
        // β(s, r) = β(s, r − 1) (s + r)/r, and length is at most 2^64: no overflow.
        beta = beta * (s + r) / r;
    }
    // β(s − 1, r − 1) = β(s, r − 1) s/(s + r − 1)
    let inner = if r == 0 { 0 } else { before * s / (s + r - 1) };
    (r as usize, beta, before, inner)
}

/// m for a range of l > 1 segments with s places.
fn cut(length: usize, states: usize) -> usize {
    let (_, _, before, inner) = range(length, states);
    // With one state everything before the last segment is advanced over.
    let m = if states <= 1 { length as u128 - 1 } else { before.min(length as u128 - inner) };
    (m as usize).clamp(1, length - 1)
}

/// t(l, s); saturates.
fn advanced(length: usize, states: usize) -> usize {
    if length <= 1 {
        return 0;
    }
    if states <= 1 {
        return length.saturating_mul(length - 1) / 2;
    }
    let (r, _, before, _) = range(length, states);
    // β(s + 1, r − 1) = β(s, r − 1) (s + r)/(s + 1)
    let outer = before * (states as u128 + r as u128) / (states as u128 + 1);
    let all = (r as u128) * (length as u128) - outer;
    usize::try_from(all).unwrap_or(usize::MAX)
}

/// A run that can be gone over backward.
pub(crate) trait Reversible {
    /// Its scalar.
    type S: Scalar;

    /// Makes the step with this number, from 1, on `state`. `again`: not for the first time.
    fn advance(
        &mut self,
        number: usize,
        again: bool,
        state: &mut [Self::S],
    ) -> Result<ControlFlow<()>, StepError>;

    /// The same, and fills the record of the step.
    fn record(
        &mut self,
        number: usize,
        again: bool,
        state: &mut [Self::S],
        record: &mut [Self::S],
    ) -> Result<ControlFlow<()>, StepError>;

    /// Reverses the step with this number. `before`: the record of the step before it, or the state at the start of this one.
    fn reverse(
        &mut self,
        number: usize,
        record: &mut [Self::S],
        before: Before<'_, Self::S>,
    ) -> Result<ControlFlow<()>, StepError>;
}

/// What is known of the node at the start of a step.
pub(crate) enum Before<'a, S> {
    /// The record of the step that ends there.
    Record(&'a mut [S]),
    /// The state.
    State(&'a mut [S]),
}

/// What going back took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Swept {
    /// Steps made again.
    pub(crate) recomputed: usize,
    /// Whether it was stopped.
    pub(crate) stopped: bool,
}

/// Makes all steps from `state` and reverses them. `end` gets the state after the last step; `state` is used up.
pub(crate) fn sweep<R: Reversible>(
    schedule: &Schedule,
    run: &mut R,
    state: &mut [R::S],
    end: &mut [R::S],
    memory: &mut [R::S],
) -> Result<Swept, StepError> {
    let Schedule { steps, segment, states, record_len, state_len } = *schedule;
    let wrong = |found| StepError::Length { what: "memory", expected: schedule.memory_len(), found };
    let found = memory.len();
    let (records, places) = memory.split_at_mut_checked(segment * record_len).ok_or(wrong(found))?;
    let place = |places: &mut [R::S], index: usize| -> Option<usize> {
        let number = places.get(index * (state_len + 1))?;
        Some(number.real() as usize)
    };
    let mut swept = Swept::default();
    // Segments not yet reversed, the last place in use, steps that have been made.
    let (mut open, mut top, mut made) = (schedule.segments(), 0, 0);
    keep(places, 0, 0, state_len, state).ok_or(wrong(found))?;
    while open > 0 {
        let from = place(places, top).ok_or(wrong(found))?;
        let kept = places.get_mut(top * (state_len + 1) + 1..).and_then(|kept| kept.get_mut(..state_len));
        let kept = kept.ok_or(wrong(found))?;
        copy(state, kept);
        if open - from > 1 {
            let segments = cut(open - from, states.saturating_sub(top).max(1));
            for number in from * segment + 1..=(from + segments) * segment {
                let again = number <= made;
                swept.recomputed += usize::from(again);
                if run.advance(number, again, state)?.is_break() {
                    return Ok(Swept { stopped: true, ..swept });
                }
                made = made.max(number);
            }
            top += 1;
            keep(places, top, from + segments, state_len, state).ok_or(wrong(found))?;
            continue;
        }
        let (first, last) = (from * segment, ((from + 1) * segment).min(steps));
        for number in first + 1..=last {
            let again = number <= made;
            swept.recomputed += usize::from(again);
            // Of length zero where nothing moves.
            let at = (number - first - 1) * record_len;
            let record = records.get_mut(at..at + record_len).ok_or(wrong(found))?;
            if run.record(number, again, state, record)?.is_break() {
                return Ok(Swept { stopped: true, ..swept });
            }
            made = made.max(number);
        }
        if last == steps {
            copy(end, state);
        }
        for number in (first + 1..=last).rev() {
            let index = number - first - 1;
            let (earlier, later) = records.split_at_mut_checked(index * record_len).ok_or(wrong(found))?;
            let record = later.get_mut(..record_len).ok_or(wrong(found))?;
            let before = match earlier.len().checked_sub(record_len).filter(|_| index > 0) {
                Some(at) => Before::Record(earlier.get_mut(at..).ok_or(wrong(found))?),
                None => Before::State(kept),
            };
            if run.reverse(number, record, before)?.is_break() {
                return Ok(Swept { stopped: true, ..swept });
            }
        }
        open = from;
        top = top.saturating_sub(1);
    }
    Ok(swept)
}

/// Keeps a state and the number of its segment.
fn keep<S: Scalar>(places: &mut [S], index: usize, number: usize, len: usize, state: &[S]) -> Option<()> {
    let place = places.get_mut(index * (len + 1)..)?.get_mut(..len + 1)?;
    let (first, rest) = place.split_first_mut()?;
    *first = S::from_f64(number as f64);
    copy(rest, state);
    // Numbers that the scalar cannot tell apart would be confused.
    (first.real() as usize == number).then_some(())
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec;
    use std::vec::Vec;

    /// Counts: the state is the number of steps made.
    struct Counting {
        steps: usize,
        expected: usize,
        again: usize,
    }

    impl Reversible for Counting {
        type S = f64;
        fn advance(
            &mut self,
            number: usize,
            again: bool,
            state: &mut [f64],
        ) -> Result<ControlFlow<()>, StepError> {
            assert_eq!(state[0], (number - 1) as f64);
            state[0] += 1.0;
            self.again += usize::from(again);
            Ok(ControlFlow::Continue(()))
        }
        fn record(
            &mut self,
            number: usize,
            again: bool,
            state: &mut [f64],
            record: &mut [f64],
        ) -> Result<ControlFlow<()>, StepError> {
            record.fill(number as f64);
            self.advance(number, again, state)
        }
        fn reverse(
            &mut self,
            number: usize,
            record: &mut [f64],
            before: Before<'_, f64>,
        ) -> Result<ControlFlow<()>, StepError> {
            assert_eq!((number, record[0]), (self.expected, number as f64));
            match before {
                Before::Record(record) => assert_eq!(record[0], (number - 1) as f64),
                Before::State(state) => assert_eq!(state[0], (number - 1) as f64),
            }
            self.expected -= 1;
            Ok(ControlFlow::Continue(()))
        }
    }

    fn check(schedule: Schedule) {
        let mut run = Counting { steps: schedule.steps, expected: schedule.steps, again: 0 };
        let (mut state, mut end) = ([0.0], [-1.0]);
        let mut memory = vec![0.0; schedule.memory_len()];
        let swept = sweep(&schedule, &mut run, &mut state, &mut end, &mut memory).unwrap();
        assert_eq!((run.expected, end[0]), (0, run.steps as f64), "{schedule:?}");
        assert_eq!(swept.recomputed, schedule.recomputed(), "{schedule:?}");
        assert_eq!(run.again, swept.recomputed);
    }

    #[test]
    fn every_step_is_reversed_once_with_as_many_recomputed_as_predicted() {
        for steps in (1_usize..40).chain([97, 1000, 1024, 3001]) {
            for segment in [1, 2, 3, 7, steps] {
                let segments = steps.div_ceil(segment);
                for states in 1..12.min(segments + 1) {
                    check(Schedule { steps, segment, states, record_len: 2, state_len: 1 });
                }
            }
        }
    }

    /// t(l, s) is the least there is.
    #[test]
    fn cuts_are_optimal() {
        let (most, places) = (60, 6);
        let mut least: Vec<Vec<usize>> = vec![vec![0; places + 1]; most + 1];
        for length in 2..=most {
            for s in 1..=places {
                least[length][s] = match s {
                    1 => length * (length - 1) / 2,
                    _ => (1..length).map(|m| m + least[length - m][s - 1] + least[m][s]).min().unwrap(),
                };
                assert_eq!(advanced(length, s), least[length][s], "{length} {s}");
                let m = cut(length, s);
                if s > 1 {
                    assert_eq!(m + least[length - m][s - 1] + least[m][s], least[length][s]);
                }
            }
        }
    }

    #[test]
    fn memory_decides() {
        // Everything fits: nothing is made again.
        let all = Schedule::new(1000, 10, 7, 10 * 1000 + 8).unwrap();
        assert_eq!((all.recomputed(), all.segments()), (0, 1));
        // A tenth: each step twice.
        let tenth = Schedule::new(1000, 10, 7, 1000).unwrap();
        assert!(tenth.recomputed() <= 1000 && tenth.memory_len() <= 1000, "{tenth:?}");
        for memory in [98, 100, 200, 400, 800, 1600, 3200] {
            let schedule = Schedule::new(1000, 10, 7, memory).unwrap();
            assert!(schedule.memory_len() <= memory);
            check(schedule);
        }
        let error = Schedule::new(1000, 10, 7, 80).unwrap_err();
        assert_eq!(error, StepError::Length { what: "memory", expected: 10 + 11 * 8, found: 80 });
        assert!(Schedule::new(1000, 10, 7, 98).is_ok());
        assert!(Schedule::new(0, 10, 7, 18).is_ok());
    }
}
