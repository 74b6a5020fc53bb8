//! Expressions of the format: typed as they should be, mostly, and with extreme numbers, now and then.

use super::numbers::number;
use crate::random_model::Random;

/// What an expression may name.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Scalar parameters and inputs.
    pub scalars: Vec<String>,
    /// Array parameters.
    pub arrays: Vec<String>,
    /// `joint.coordinate`, and variables.
    pub coordinates: Vec<String>,
    /// Variables alone.
    pub variables: Vec<String>,
    /// `body.point`
    pub points: Vec<String>,
    /// `body.vector`
    pub vectors: Vec<String>,
    /// Bodies.
    pub bodies: Vec<String>,
    /// Joints.
    pub joints: Vec<String>,
    /// Equations of constraints, and of joints that may be cut.
    pub equations: Vec<String>,
}

/// Where an expression stands: what it may depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Parameters.
    Parameters,
    /// Parameters and time.
    Signal,
    /// Positions, coordinates, time and parameters, as smooth as a constraint must be.
    Position,
    /// Everything but accelerations.
    Force,
    /// Everything but multipliers and reactions.
    Output,
    /// Everything.
    Objective,
}

const FUNCTIONS: [(&str, usize); 19] = [
    ("sqrt", 1),
    ("sin", 1),
    ("cos", 1),
    ("tan", 1),
    ("asin", 1),
    ("acos", 1),
    ("atan", 1),
    ("exp", 1),
    ("ln", 1),
    ("sinh", 1),
    ("cosh", 1),
    ("tanh", 1),
    ("abs", 1),
    ("sign", 1),
    ("atan2", 2),
    ("min", 2),
    ("max", 2),
    ("hypot", 2),
    ("step", 5),
];

/// Writes expressions.
pub struct Expressions<'a> {
    /// Source of all choices.
    pub r: &'a mut Random,
    /// What may be named.
    pub names: &'a Names,
    /// Where they stand.
    pub place: Place,
    /// Probability of an extreme number.
    pub extreme: f64,
}

impl Expressions<'_> {
    fn one_of(&mut self, names: &[String]) -> Option<String> {
        (!names.is_empty()).then(|| names[self.r.below(names.len())].clone())
    }

    fn leaf(&mut self) -> String {
        let names = self.names;
        let name = match (self.r.below(10), self.place) {
            (0..=2, _) => self.one_of(&names.scalars),
            (3, place) => {
                // A number beyond the end is refused; an expression beyond it is not.
                let changes = place >= Place::Signal && place != Place::Position;
                let time = if changes { "9*t - 2" } else { "0*pi" };
                let index = if self.r.chance(0.5) { "0" } else { time };
                self.one_of(&names.arrays).map(|array| format!("{array}[{index}]"))
            }
            (4, place) if place >= Place::Signal => Some("t".into()),
            (5, place) if place >= Place::Position => self.one_of(&names.coordinates),
            (6, place) if place >= Place::Force => {
                self.one_of(&names.coordinates).map(|c| format!("rate({c})"))
            }
            (7, place) if place >= Place::Output => {
                self.one_of(&names.coordinates).map(|c| format!("accel({c})"))
            }
            (8, Place::Objective) => self.one_of(&names.equations).map(|e| format!("multiplier({e})")),
            (8, _) => Some("pi".into()),
            _ => None,
        };
        name.unwrap_or_else(|| number(self.r, self.extreme))
    }

    /// An expression whose value is a number.
    pub fn scalar(&mut self, depth: usize) -> String {
        if depth == 0 || self.r.chance(0.15) {
            return self.leaf();
        }
        let depth = depth - 1;
        match self.r.below(14) {
            0..=4 => {
                let sign = ["+", "-", "*", "/", "^", " - -"][self.r.below(6)];
                format!("({}{sign}{})", self.scalar(depth), self.scalar(depth))
            }
            5 => format!("-{}", self.scalar(depth)),
            6 | 7 => {
                let (name, count) = FUNCTIONS[self.r.below(FUNCTIONS.len())];
                let arguments: Vec<String> = (0..count).map(|_| self.scalar(depth)).collect();
                format!("{name}({})", arguments.join(", "))
            }
            8 => {
                let comparison = ["<", "<=", ">", ">=", "=="][self.r.below(5)];
                let [a, b, x, y] = std::array::from_fn(|_| self.scalar(depth));
                format!("if({a} {comparison} {b}, {x}, {y})")
            }
            9 => self.curve(depth),
            10 => format!("norm({})", self.vector(depth)),
            11 => format!("dot({}, {})", self.vector(depth), self.vector(depth)),
            12 => format!("({}).{}", self.vector(depth), ["x", "y", "z"][self.r.below(3)]),
            // A long sum, a tall tower.
            _ => {
                let term = self.leaf();
                let sign = ["+", "*", "^", "/"][self.r.below(4)];
                vec![term; 2 + self.r.below(40)].join(sign)
            }
        }
    }

    /// A table or a spline over lists or array parameters.
    fn curve(&mut self, depth: usize) -> String {
        let kind =
            if self.place == Place::Position { "spline" } else { ["table", "spline"][self.r.below(2)] };
        let n = 2 + self.r.below(5);
        let array = |this: &mut Self, increasing: bool| {
            if this.r.chance(this.extreme)
                && let Some(name) = this.one_of(&this.names.arrays)
            {
                return name;
            }
            let values: Vec<String> = (0..n)
                .map(|i| {
                    if increasing && !this.r.chance(this.extreme) {
                        i.to_string()
                    } else {
                        number(this.r, this.extreme)
                    }
                })
                .collect();
            format!("[{}]", values.join(", "))
        };
        let (x, knots, values) = (self.scalar(depth), array(self, true), array(self, false));
        format!("{kind}({x}, {knots}, {values})")
    }

    /// An expression whose value is a vector.
    pub fn vector(&mut self, depth: usize) -> String {
        let names = self.names;
        if depth == 0 || self.r.chance(0.3) {
            let name = match (self.r.below(7), self.place) {
                (0, place) if place >= Place::Position => {
                    self.one_of(&names.points).map(|p| format!("pos({p})"))
                }
                (1, place) if place >= Place::Force => {
                    self.one_of(&names.points).map(|p| format!("vel({p})"))
                }
                (2, place) if place >= Place::Output => {
                    self.one_of(&names.points).map(|p| format!("acc({p})"))
                }
                (3, place) if place >= Place::Force => {
                    self.one_of(&names.bodies).map(|b| format!("omega({b})"))
                }
                (4, place) if place >= Place::Position => {
                    self.one_of(&names.vectors).map(|v| format!("dir({v})"))
                }
                (5, place) if place >= Place::Output => {
                    self.one_of(&names.bodies).map(|b| format!("alpha({b})"))
                }
                (6, Place::Objective) => {
                    let what = ["force", "torque"][self.r.below(2)];
                    self.one_of(&names.joints).map(|j| format!("reaction_{what}({j})"))
                }
                _ => None,
            };
            return name.unwrap_or_else(|| {
                let [a, b, c] = std::array::from_fn(|_| self.leaf());
                format!("[{a}, {b}, {c}]")
            });
        }
        let depth = depth - 1;
        match self.r.below(7) {
            0 => format!("({} + {})", self.vector(depth), self.vector(depth)),
            1 => format!("({} - {})", self.vector(depth), self.vector(depth)),
            2 => format!("{}*({})", self.leaf(), self.vector(depth)),
            3 => format!("({})/{}", self.vector(depth), self.leaf()),
            4 => format!("cross({}, {})", self.vector(depth), self.vector(depth)),
            5 => format!("unit({})", self.vector(depth)),
            _ => match (self.place >= Place::Position).then(|| self.one_of(&names.bodies)).flatten() {
                Some(body) => format!("{}({body}, {})", ["in", "from"][self.r.below(2)], self.vector(depth)),
                None => format!("-({})", self.vector(depth)),
            },
        }
    }
}
