//! What is said of events beside their equations.

/// Which crossings of zero count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From negative to positive.
    Rising,
    /// From positive to negative.
    Falling,
    /// Both.
    Both,
}

impl Direction {
    /// All of them.
    pub const ALL: [Direction; 3] = [Direction::Rising, Direction::Falling, Direction::Both];

    /// The word for it in a model file.
    pub const fn keyword(self) -> &'static str {
        match self {
            Direction::Rising => "rising",
            Direction::Falling => "falling",
            Direction::Both => "both",
        }
    }

    /// The variant's name.
    pub const fn name(self) -> &'static str {
        match self {
            Direction::Rising => "Rising",
            Direction::Falling => "Falling",
            Direction::Both => "Both",
        }
    }
}

/// How impulses of an impact follow from velocities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ImpactLaw {
    /// Conditions on velocities tell: no friction.
    #[default]
    Plain,
    /// With friction: the gap gives back e² of the work that compression takes.
    Stronge,
    /// With friction: the rate of the gap comes back e times; may create energy.
    Newton,
}

impl ImpactLaw {
    /// The words for those with friction in a model file.
    pub const WORDS: [(&'static str, ImpactLaw); 2] =
        [("stronge", ImpactLaw::Stronge), ("newton", ImpactLaw::Newton)];

    /// The variant's name.
    pub const fn name(self) -> &'static str {
        match self {
            ImpactLaw::Plain => "Plain",
            ImpactLaw::Stronge => "Stronge",
            ImpactLaw::Newton => "Newton",
        }
    }
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EventEntry {
    /// Which crossings count.
    pub direction: Direction,
    /// Least time from one occurrence to the next that counts, s.
    pub minimum_interval: f64,
    /// Whether the run ends with it.
    pub stop: bool,
    /// Whether the bundle knows the rate of its function: it depends on neither accelerations nor multipliers.
    pub has_rate: bool,
    /// Its conditions on velocities: the first one, and the one after the last.
    pub conditions: (usize, usize),
    /// Whether the first of its conditions is the gap of an impact, which comes back from 0 to 1 times.
    pub impact: bool,
    /// Whether this gap is its own function, which then stays on its side.
    pub stops: bool,
    /// With friction its conditions are the gap and the slip, and their targets are restitution and friction.
    pub law: ImpactLaw,
    /// Whether it enters a state in which constraints act that may not have acted before.
    pub adds_rows: bool,
    /// The input that always is the side of its function, if it is the switch of a branch.
    pub switch: Option<u32>,
    /// The inputs it sets: the first one, and the one after the last.
    pub settings: (usize, usize),
    /// Whether an objective has no value unless it happens.
    pub judged: bool,
}

impl EventEntry {
    /// Whether it does more than being recorded.
    pub const fn acts(&self) -> bool {
        self.stop || self.conditions.0 < self.conditions.1 || self.settings.0 < self.settings.1
    }
}

/// The events of a model; of simultaneous ones the first acts first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EventTable<'a> {
    /// One for each.
    pub events: &'a [EventEntry],
    /// How many conditions on velocities they have in all.
    pub conditions: usize,
    /// What they set, one for each setting: an input, or, from the number of inputs on, a coordinate.
    pub inputs: &'a [u32],
    /// For each setting the column of derivatives by its input, if some event gives that input a value that has derivatives.
    pub columns: &'a [Option<u32>],
    /// The column of derivatives by the clock, if laws name the time: they name t + clock.
    pub clock: Option<u32>,
    /// Whether signals of inputs do not name the time.
    pub autonomous: bool,
}

impl EventTable<'_> {
    /// Whether derivatives of inputs by the parameters change along a run: those of the clock, or of inputs that events set.
    pub fn moves_inputs(&self) -> bool {
        self.clock.is_some() || self.columns.iter().any(Option::is_some)
    }
}
