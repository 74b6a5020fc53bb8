//! From syntax to typed expressions: names are looked up, types and contexts checked.

use super::{Operator, Problem, Relation, Syntax, SyntaxKind};
use crate::diagnostics::nearest;
use crate::model::evaluate::Values;
use crate::model::{
    ArrayRef, BinaryOp, BodyId, Comparison, CoordinateRef, Function, JointId, MarkerRef, Multiplier, Outside,
    PointRef, Scalar, Vector, VelocityRef,
};
use crate::yaml::limits;
use crate::yaml::load::shorten;
use crate::yaml::mirror::{coordinate_flips, mirror, negate, velocity_flips};
use crate::yaml::names::{CONSTANTS, FUNCTIONS, SPECIAL_FUNCTIONS, is_function};
use crate::yaml::scope::{Extent, Scope, Symbol, Symbols, Thing, Uses};

/// The context of an expression, which decides what it may depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::yaml) enum Context {
    /// A plain number: bounds, array values, simulation settings.
    Constant,
    /// Derived parameters, mass, geometry, start values.
    Parameters,
    /// The signal of an input in a case: time and parameters.
    Signal,
    /// A force: anything but accelerations.
    Force,
    /// The law of a spring: a force that also knows its length and rate.
    Law,
    /// A holonomic constraint: positions, coordinates, time and parameters.
    Holonomic,
    /// A nonholonomic constraint: velocities too.
    Nonholonomic,
    /// A prescribed motion: time and parameters, as smooth as a constraint must be.
    Motion,
    /// A gap along which bodies collide: positions, coordinates, time and parameters.
    Gap,
    /// A rate that an event sets: velocities too, and no accelerations.
    Rate,
    /// An output: everything but multipliers and reactions.
    Output,
    /// The function of an event: everything but multipliers of projections.
    When,
    /// An objective: everything.
    Objective,
}

/// A typed expression.
#[derive(Debug)]
pub(in crate::yaml) enum Typed {
    Scalar(Scalar),
    Vector(Vector),
}

type Found<T> = Result<T, Problem>;

/// Resolves one expression.
pub(in crate::yaml) struct Resolver<'a> {
    pub(in crate::yaml) symbols: &'a Symbols,
    pub(in crate::yaml) scope: &'a Scope,
    pub(in crate::yaml) context: Context,
    /// Whether to look for the nearest valid name.
    suggests: bool,
    /// What the expression turned out to depend on.
    pub(in crate::yaml) uses: Uses,
    /// How many operations it has, those of arguments and definitions included.
    pub(in crate::yaml) size: usize,
    /// Height of the highest argument or definition that is substituted.
    pub(in crate::yaml) inserted: usize,
    /// Knots whose order is to be checked once all parameters have values.
    pub(in crate::yaml) knots: Vec<((usize, usize), ArrayRef)>,
    /// Joints whose multipliers are named: they must turn out to be cut.
    pub(in crate::yaml) cuts: Vec<((usize, usize), JointId)>,
}

impl<'a> Resolver<'a> {
    pub(in crate::yaml) fn new(
        symbols: &'a Symbols,
        scope: &'a Scope,
        context: Context,
        suggests: bool,
    ) -> Self {
        Resolver {
            symbols,
            scope,
            context,
            suggests,
            uses: Uses::default(),
            size: 0,
            inserted: 0,
            knots: Vec::new(),
            cuts: Vec::new(),
        }
    }

    /// A scalar; an error if it is a vector.
    pub(in crate::yaml) fn scalar(&mut self, e: &Syntax) -> Found<Scalar> {
        match self.typed(e)? {
            Typed::Scalar(s) => Ok(s),
            Typed::Vector(_) => Err(Problem::new(e.at, "a number is expected here, but this is a vector")
                .help("take a component (`.x`, `.y`, `.z`), `norm(…)` or `dot(…, …)`")),
        }
    }

    /// A vector; an error if it is a scalar.
    pub(in crate::yaml) fn vector(&mut self, e: &Syntax) -> Found<Vector> {
        if let Some((name, written)) = self.axis_by_letter(e) {
            let message = format!("unknown name `{name}`, where a vector is expected");
            return Err(Problem::new(e.at, message).help(format!("write `{written}`")));
        }
        match self.typed(e)? {
            Typed::Vector(v) => Ok(v),
            Typed::Scalar(_) => Err(Problem::new(e.at, "a vector is expected here, but this is a number")
                .help("write `[x, y, z]`")),
        }
    }

    /// The vector that is meant by `x`, `y`, `z` or one of them with a minus, where no such name is declared.
    fn axis_by_letter<'e>(&self, e: &'e Syntax) -> Option<(&'e str, &'static str)> {
        let (name, negative) = match &e.kind {
            SyntaxKind::Name(name) => (name, false),
            SyntaxKind::Negate(inner) => match &inner.kind {
                SyntaxKind::Name(name) => (name, true),
                _ => return None,
            },
            _ => return None,
        };
        let written = match (&**name, negative) {
            ("x", false) => "[1, 0, 0]",
            ("y", false) => "[0, 1, 0]",
            ("z", false) => "[0, 0, 1]",
            ("x", true) => "[-1, 0, 0]",
            ("y", true) => "[0, -1, 0]",
            ("z", true) => "[0, 0, -1]",
            _ => return None,
        };
        let declared = self.scope.symbol(name).is_some() || self.scope.thing(name).is_some();
        (!declared).then_some((&**name, written))
    }

    pub(in crate::yaml) fn typed(&mut self, e: &Syntax) -> Found<Typed> {
        self.size += 1;
        if self.size > limits::OPERATIONS {
            return Err(Problem::new(e.at, "the expression becomes too large when its arguments are put in"));
        }
        match &e.kind {
            SyntaxKind::Number(x) => Ok(Typed::Scalar(Scalar::Number(*x))),
            SyntaxKind::Name(name) => self.name(e, name),
            SyntaxKind::Path(head, member) => self.path(e, head, member),
            SyntaxKind::Index(name, index) => self.index(e, name, index).map(Typed::Scalar),
            SyntaxKind::Call(name, arguments) => self.call(e, name, arguments),
            SyntaxKind::Negate(a) => Ok(match self.typed(a)? {
                Typed::Scalar(s) => Typed::Scalar(negate(s)),
                Typed::Vector(v) => Typed::Vector(Vector::Negate(Box::new(v))),
            }),
            SyntaxKind::Binary(op, a, b) => self.binary(e, *op, a, b),
            SyntaxKind::Compare(..) => Err(Problem::new(
                e.at,
                "a comparison may stand only as the first argument of `if(a < b, x, y)`",
            )),
            SyntaxKind::List(items) => {
                let [x, y, z] = items.as_slice() else {
                    let n = items.len();
                    return Err(Problem::new(
                        e.at,
                        format!("a vector has three components, this list has {n}"),
                    ));
                };
                let c = [self.scalar(x)?, self.scalar(y)?, self.scalar(z)?];
                Ok(Typed::Vector(Vector::Components(Box::new(c))))
            }
            SyntaxKind::Component(a, i) => {
                let a = self.typed(a)?;
                self.component(e, a, *i)
            }
        }
    }

    fn component(&self, e: &Syntax, a: Typed, i: u8) -> Found<Typed> {
        match a {
            Typed::Vector(v) => Ok(Typed::Scalar(Scalar::Component(Box::new(v), i))),
            Typed::Scalar(_) => Err(Problem::new(e.at, "only a vector has components, but this is a number")),
        }
    }

    fn binary(&mut self, e: &Syntax, op: Operator, a: &Syntax, b: &Syntax) -> Found<Typed> {
        use Typed::{Scalar as S, Vector as V};
        let (a, b) = (self.typed(a)?, self.typed(b)?);
        let scalar = |op, a, b| Ok(S(Scalar::Binary(op, Box::new(a), Box::new(b))));
        match (op, a, b) {
            (Operator::Add, S(a), S(b)) => scalar(BinaryOp::Add, a, b),
            (Operator::Subtract, S(a), S(b)) => scalar(BinaryOp::Subtract, a, b),
            (Operator::Multiply, S(a), S(b)) => scalar(BinaryOp::Multiply, a, b),
            (Operator::Divide, S(a), S(b)) => scalar(BinaryOp::Divide, a, b),
            (Operator::Power, S(a), S(b)) => scalar(BinaryOp::Power, a, b),
            (Operator::Add, V(a), V(b)) => Ok(V(Vector::Add(Box::new(a), Box::new(b)))),
            (Operator::Subtract, V(a), V(b)) => Ok(V(Vector::Subtract(Box::new(a), Box::new(b)))),
            (Operator::Multiply, S(s), V(v)) | (Operator::Multiply, V(v), S(s)) => {
                Ok(V(Vector::Scale(Box::new(s), Box::new(v))))
            }
            (Operator::Divide, V(v), S(s)) => Ok(V(Vector::Divide(Box::new(v), Box::new(s)))),
            (Operator::Add | Operator::Subtract, ..) => {
                Err(Problem::new(e.at, "a number and a vector cannot be added or subtracted"))
            }
            (Operator::Multiply, V(_), V(_)) => {
                Err(Problem::new(e.at, "two vectors cannot be multiplied with `*`")
                    .help("use `dot(a, b)` or `cross(a, b)`"))
            }
            (Operator::Divide, ..) => Err(Problem::new(e.at, "nothing can be divided by a vector")),
            (Operator::Power, ..) => {
                Err(Problem::new(e.at, "a vector has no powers").help("use `dot(a, a)` or `norm(a)^2`"))
            }
        }
    }

    // Names.

    fn name(&mut self, e: &Syntax, name: &str) -> Found<Typed> {
        if let Some(law) = self.law_symbol(e, name)? {
            return Ok(Typed::Scalar(law));
        }
        match name {
            "t" => {
                self.allow(e, Uses { time: true, ..Uses::default() }, "time `t`")?;
                return Ok(Typed::Scalar(Scalar::Time));
            }
            "pi" => return Ok(Typed::Scalar(Scalar::Number(std::f64::consts::PI))),
            _ => {}
        }
        match self.scope.symbol(name).cloned() {
            Some(Symbol::Parameter(id)) => {
                self.allow(e, Uses { parameters: true, ..Uses::default() }, &format!("parameter `{name}`"))?;
                match self.symbols.parameters.get(id.index()).and_then(|p| p.array) {
                    None => Ok(Typed::Scalar(Scalar::Parameter(id))),
                    // Three values are a vector.
                    Some(3) => {
                        self.grow(e, 3)?;
                        let element = |i| Scalar::Element(id, Box::new(Scalar::Number(i)));
                        Ok(Typed::Vector(Vector::Components(Box::new([0.0, 1.0, 2.0].map(element)))))
                    }
                    Some(n) => Err(Problem::new(e.at, format!("`{name}` is an array of {n} values")).help(
                        format!("name one of them, from `{name}[0]` to `{name}[{}]`", n.saturating_sub(1)),
                    )),
                }
            }
            Some(Symbol::Input(id)) => {
                self.allow(e, Uses { inputs: true, ..Uses::default() }, &format!("input `{name}`"))?;
                Ok(Typed::Scalar(Scalar::Input(id)))
            }
            Some(Symbol::Scalar(a)) => {
                self.allow(e, a.uses, &format!("{} `{name}`", a.what))?;
                self.insert(e, a.extent)?;
                Ok(Typed::Scalar(a.value.clone()))
            }
            Some(Symbol::Vector(a)) => {
                self.allow(e, a.uses, &format!("{} `{name}`", a.what))?;
                self.insert(e, a.extent)?;
                Ok(Typed::Vector(a.value.clone()))
            }
            None => match self.scope.thing(name) {
                Some(Thing::Coordinate(c)) => self.coordinate_value(e, c, name),
                Some(Thing::Broken) => Err(Problem::reported()),
                Some(thing) => Err(self.thing_is_no_value(e, name, thing)),
                None => Err(self.unknown_name(e, name)),
            },
        }
    }

    fn insert(&mut self, e: &Syntax, extent: Extent) -> Found<()> {
        self.inserted = self.inserted.max(extent.depth);
        self.grow(e, extent.size)
    }

    fn grow(&mut self, e: &Syntax, size: usize) -> Found<()> {
        self.size = self.size.saturating_add(size);
        if self.size > limits::OPERATIONS {
            return Err(Problem::new(e.at, "the expression becomes too large when its arguments are put in"));
        }
        Ok(())
    }

    /// `length`, `angle` and `rate` in the law of a spring.
    fn law_symbol(&self, e: &Syntax, name: &str) -> Found<Option<Scalar>> {
        let symbol = match name {
            "length" | "angle" => Scalar::Length,
            "rate" => Scalar::LengthRate,
            _ => return Ok(None),
        };
        if self.context != Context::Law {
            return Ok(None);
        }
        if self.scope.symbol(name).is_some() || matches!(self.scope.thing(name), Some(Thing::Coordinate(_))) {
            return Err(Problem::new(
                e.at,
                format!("`{name}` is ambiguous here: the spring's own, or what the model gives that name"),
            )
            .help("rename the parameter, input or argument of that name"));
        }
        Ok(Some(symbol))
    }

    fn thing_is_no_value(&self, e: &Syntax, name: &str, thing: Thing) -> Problem {
        match thing {
            Thing::Joint(id) => {
                let first = self.symbols.joints.get(id.index()).and_then(|j| j.coordinates.first());
                let problem = Problem::new(e.at, format!("`{name}` is a joint, not a value"));
                match first {
                    Some(c) => problem.help(format!("name one of its coordinates: `{name}.{c}`")),
                    None => problem,
                }
            }
            Thing::Constraint(_) => Problem::new(e.at, format!("`{name}` is a constraint, not a value"))
                .help("in objectives `multiplier(…)` is the Lagrange multiplier of one of its equations"),
            Thing::Mode(_) => Problem::new(e.at, format!("`{name}` is a mode, not a value"))
                .help(format!("`{name}.state` is one while that state holds, and zero otherwise")),
            Thing::Point(_) => Problem::new(e.at, format!("`{name}` is a point, not a value"))
                .help(format!("write `pos({name})`, `vel({name})` or `acc({name})`")),
            _ => Problem::new(e.at, format!("`{name}` is a body, not a value"))
                .help(format!("write `pos({name}.origin)`, `vel(…)` or `omega({name})`")),
        }
    }

    fn unknown_name(&self, e: &Syntax, name: &str) -> Problem {
        if is_function(name) {
            return Problem::new(e.at, format!("`{name}` is a function")).help(format!("write `{name}(…)`"));
        }
        if matches!(name, "length" | "angle") {
            return Problem::new(e.at, format!("unknown name `{name}`"))
                .help("the length and rate of a spring may stand only in its `law`");
        }
        if self.symbols.outputs.contains(name) {
            return an_output(e, name);
        }
        let problem = Problem::new(e.at, format!("unknown name `{}`", shorten(name)));
        if !self.suggests {
            return problem;
        }
        let mut names = self.scope.symbol_names();
        names.extend(self.scope.thing_names(|thing| matches!(thing, Thing::Coordinate(_))));
        names.extend(CONSTANTS);
        if self.context == Context::Law {
            names.extend(["length", "angle", "rate"]);
        }
        match nearest(name, names) {
            Some(near) => problem.help(format!("did you mean `{near}`?")),
            None if self.context == Context::Constant => {
                problem.help("only numbers and constant expressions may stand here")
            }
            None => problem.help("declare it under `parameters`, `inputs` or `definitions`"),
        }
    }

    /// `joint.coordinate`, `joint.velocity`, or a component of a vector argument or definition.
    fn path(&mut self, e: &Syntax, head: &str, member: &str) -> Found<Typed> {
        if self.scope.is_vector(head) {
            let axis = match member {
                "x" => 0,
                "y" => 1,
                "z" => 2,
                _ => return Err(Problem::new(e.at, "a vector has the components `x`, `y` and `z`")),
            };
            let a = self.name(e, head)?;
            return self.component(e, a, axis);
        }
        match self.scope.thing(head) {
            Some(Thing::Joint(id)) => {
                let joint = &self.symbols.joints[id.index()];
                let Some(kind) = joint.kind else {
                    return Err(Problem::reported());
                };
                if let Some(i) = joint.coordinates.iter().position(|c| c == member) {
                    let coordinate = CoordinateRef::Joint { joint: id, index: i as u32 };
                    return self.coordinate_value(e, coordinate, &format!("{head}.{member}"));
                }
                if let Some(i) = joint.velocities.iter().position(|v| v == member) {
                    self.allow_velocity(e, &format!("velocity `{head}.{member}`"))?;
                    let v = Scalar::Velocity(VelocityRef { joint: id, index: i as u32 });
                    let flips = self.scope.mirror.is_some_and(|n| velocity_flips(kind, i, n));
                    return Ok(Typed::Scalar(if flips { negate(v) } else { v }));
                }
                Err(self.unknown_coordinate(e, head, member))
            }
            Some(Thing::Body(id)) => {
                let body = &self.symbols.bodies[id.index()];
                let whole = format!("{head}.{member}");
                if body.point(member).is_some() {
                    Err(Problem::new(e.at, format!("`{whole}` is a point, not a value"))
                        .help(format!("write `pos({whole})`, `vel({whole})` or `acc({whole})`")))
                } else if body.vector(member).is_some() {
                    Err(Problem::new(e.at, format!("`{whole}` is a vector of a body, not a value"))
                        .help(format!("write `dir({whole})` for its direction in the world")))
                } else {
                    Err(self.unknown_point(e, id, head, member))
                }
            }
            Some(Thing::Mode(mode)) => match self.symbols.state(mode, member) {
                Some(id) => {
                    let uses = Uses { inputs: true, ..Uses::default() };
                    self.allow(e, uses, &format!("state `{head}.{member}`"))?;
                    Ok(Typed::Scalar(Scalar::Input(id)))
                }
                None => Err(self.unknown_state(e, mode, head, member)),
            },
            Some(Thing::Broken) => Err(Problem::reported()),
            Some(Thing::Point(_) | Thing::Coordinate(_) | Thing::Constraint(_)) => {
                Err(Problem::new(e.at, format!("`{head}` has no part `{}`", shorten(member))))
            }
            None if self.scope.symbol(head).is_some() => {
                Err(Problem::new(e.at, format!("`{head}` is a number and has no part `{}`", shorten(member))))
            }
            None if self.symbols.outputs.contains(head) => Err(an_output(e, head)),
            None => Err(self.unknown_thing(e, head, "joint", |t| matches!(t, Thing::Joint(_)))),
        }
    }

    fn coordinate_value(&mut self, e: &Syntax, c: CoordinateRef, shown: &str) -> Found<Typed> {
        self.allow_state(e, &format!("coordinate `{shown}`"))?;
        Ok(Typed::Scalar(self.signed(Scalar::Coordinate(c), c)))
    }

    /// A coordinate as seen in the mirror, if there is one.
    pub(in crate::yaml) fn signed(&self, s: Scalar, c: CoordinateRef) -> Scalar {
        let CoordinateRef::Joint { joint, index } = c else { return s };
        let kind = self.symbols.joints.get(joint.index()).and_then(|j| j.kind);
        match (self.scope.mirror, kind) {
            (Some(normal), Some(kind)) if coordinate_flips(kind, index as usize, normal) => negate(s),
            _ => s,
        }
    }

    fn unknown_coordinate(&self, e: &Syntax, head: &str, member: &str) -> Problem {
        let joint = match self.scope.thing(head) {
            Some(Thing::Joint(id)) => &self.symbols.joints[id.index()],
            _ => return Problem::reported(),
        };
        let names = || joint.coordinates.iter().chain(&joint.velocities).map(String::as_str);
        let problem = Problem::new(e.at, format!("joint `{head}` has no coordinate `{}`", shorten(member)));
        match nearest(member, names()) {
            Some(near) => problem.help(format!("did you mean `{head}.{near}`?")),
            None if joint.coordinates.is_empty() => problem.help("a fixed joint has no coordinates"),
            None => problem.help(format!("it has {}", list(names()))),
        }
    }

    fn unknown_state(&self, e: &Syntax, mode: usize, head: &str, member: &str) -> Problem {
        let states = self.symbols.modes.get(mode).map_or(&[][..], |mode| &mode.states);
        let problem = Problem::new(e.at, format!("mode `{head}` has no state `{}`", shorten(member)));
        problem.help(format!("it has {}", list(states.iter().map(String::as_str))))
    }

    fn unknown_point(&self, e: &Syntax, body: BodyId, head: &str, member: &str) -> Problem {
        let body = &self.symbols.bodies[body.index()];
        let names = ["origin", "com"].into_iter().chain(body.points.iter().map(String::as_str));
        let problem = Problem::new(e.at, format!("body `{head}` has no point `{}`", shorten(member)));
        match nearest(member, names) {
            Some(near) => problem.help(format!("did you mean `{head}.{near}`?")),
            None => problem.help(format!("declare it under `points` of `{head}`")),
        }
    }

    pub(super) fn unknown_thing(
        &self,
        e: &Syntax,
        name: &str,
        what: &str,
        fits: impl Fn(Thing) -> bool + Copy,
    ) -> Problem {
        let problem = Problem::new(e.at, format!("unknown {what} `{}`", shorten(name)));
        if !self.suggests {
            return problem;
        }
        match nearest(name, self.scope.thing_names(fits)) {
            Some(near) => problem.help(format!("did you mean `{near}`?")),
            None => problem,
        }
    }

    /// What a part of the expression depends on by itself.
    fn apart<T>(&mut self, f: impl FnOnce(&mut Self) -> Found<T>) -> Found<(T, Uses)> {
        let outside = std::mem::take(&mut self.uses);
        let found = f(self);
        let uses = self.uses;
        self.uses = outside.and(uses);
        found.map(|value| (value, uses))
    }

    // Dependencies that the context allows.

    fn allow_state(&mut self, e: &Syntax, shown: &str) -> Found<()> {
        self.allow(e, Uses { state: true, ..Uses::default() }, shown)
    }

    fn allow_velocity(&mut self, e: &Syntax, shown: &str) -> Found<()> {
        self.allow(e, Uses { state: true, velocities: true, ..Uses::default() }, shown)
    }

    fn allow_acceleration(&mut self, e: &Syntax, shown: &str) -> Found<()> {
        self.allow(e, Uses { accelerations: true, ..Uses::default() }, shown)
    }

    pub(super) fn allow(&mut self, e: &Syntax, uses: Uses, shown: &str) -> Found<()> {
        let ok = match self.context {
            Context::Objective => true,
            Context::When => !uses.projections,
            _ if uses.reactions => false,
            Context::Constant => uses == Uses::default(),
            Context::Parameters => !(uses.time || uses.inputs || uses.state || uses.accelerations),
            Context::Signal => !(uses.inputs || uses.state || uses.accelerations),
            Context::Force | Context::Law => !uses.accelerations,
            Context::Rate => !(uses.inputs || uses.accelerations || uses.jumps),
            Context::Gap => !(uses.inputs || uses.velocities || uses.accelerations || uses.jumps),
            Context::Holonomic => {
                !(uses.inputs || uses.velocities || uses.accelerations || uses.bends || uses.jumps)
            }
            Context::Nonholonomic => !(uses.inputs || uses.accelerations || uses.jumps),
            Context::Motion => !(uses.inputs || uses.state || uses.accelerations || uses.bends || uses.jumps),
            Context::Output => true,
        };
        if ok {
            self.uses = self.uses.and(uses);
            return Ok(());
        }
        let mut help = "";
        let rule = match self.context {
            _ if uses.projections => "multipliers of projections may stand in objectives only",
            _ if uses.reactions => {
                if self.context == Context::Output {
                    help = "results list multipliers, and reactions if asked for";
                }
                "multipliers and reactions may stand in objectives only"
            }
            Context::Holonomic | Context::Nonholonomic | Context::Motion if uses.inputs => {
                help = "write an expression of time `t`";
                "a constraint needs the value, the rate and the acceleration of what drives it"
            }
            Context::Holonomic | Context::Nonholonomic | Context::Motion if uses.jumps => {
                help = "use `spline(…)`";
                "it jumps, and a constraint must be smooth"
            }
            Context::Holonomic | Context::Motion if uses.bends => {
                help = "use `spline(…)`";
                "it bends, and a constraint needs a second derivative"
            }
            Context::Holonomic if uses.velocities => {
                help = "a constraint on velocities has the type `nonholonomic`";
                "this constraint is one on positions"
            }
            Context::Holonomic | Context::Nonholonomic => {
                "accelerations may stand in outputs and objectives only"
            }
            Context::Motion => {
                help = "a constraint of type `equation` may name positions and coordinates";
                "a prescribed motion depends on time and parameters only"
            }
            Context::Gap => {
                help = "give the impact a `gap` of positions: `impact: {gap: …, restitution: …}`";
                "an impact acts along a gap, a smooth function of positions and time"
            }
            Context::Rate => "the rate that an event sets is a smooth function, linear in velocities",
            Context::Constant => "only numbers and constant expressions may",
            Context::Parameters => "parameters, mass, geometry and start values depend on parameters only",
            Context::Signal => "an input's signal depends on time and parameters only",
            Context::Force | Context::Law | Context::Output | Context::When | Context::Objective => {
                "accelerations may stand in outputs and objectives only"
            }
        };
        Err(Problem::new(e.at, format!("{shown} may not stand here: {rule}")).help(help))
    }

    // Arrays.

    fn index(&mut self, e: &Syntax, name: &str, index: &Syntax) -> Found<Scalar> {
        let Some(Symbol::Parameter(id)) = self.scope.symbol(name).cloned() else {
            if self.scope.symbol(name).is_some() || self.scope.thing(name).is_some() {
                return Err(Problem::new(e.at, format!("`{name}` is not an array")));
            }
            return Err(self.unknown_name(e, name));
        };
        let Some(len) = self.symbols.parameters.get(id.index()).and_then(|p| p.array) else {
            return Err(Problem::new(e.at, format!("parameter `{name}` is a number, not an array")));
        };
        self.allow(e, Uses { parameters: true, ..Uses::default() }, &format!("parameter `{name}`"))?;
        let (i, uses) = self.apart(|r| r.scalar(index))?;
        if uses.changes() {
            self.allow(
                e,
                Uses { jumps: true, ..Uses::default() },
                &format!("`{name}[…]` of a changing index"),
            )?;
        }
        if let Scalar::Number(x) = i
            && !(x >= 0.0 && x < len as f64 && x.fract() == 0.0)
        {
            return Err(Problem::new(index.at, format!("index {x} is outside the array `{name}`"))
                .help(format!("indices are whole numbers from 0 to {}", len.saturating_sub(1))));
        }
        Ok(Scalar::Element(id, Box::new(i)))
    }

    /// The knots or values of a table: an array parameter or a list of scalars of parameters. Also its length.
    fn array(&mut self, e: &Syntax) -> Found<(ArrayRef, usize)> {
        match &e.kind {
            SyntaxKind::Name(name) => match self.scope.symbol(name) {
                Some(Symbol::Parameter(id)) => {
                    match self.symbols.parameters.get(id.index()).and_then(|p| p.array) {
                        Some(len) => {
                            let id = *id;
                            self.allow(
                                e,
                                Uses { parameters: true, ..Uses::default() },
                                &format!("parameter `{name}`"),
                            )?;
                            Ok((ArrayRef::Parameter(id), len))
                        }
                        None => {
                            Err(Problem::new(e.at, format!("parameter `{name}` is a number, not an array")))
                        }
                    }
                }
                Some(_) => Err(Problem::new(e.at, format!("`{name}` is not an array parameter"))),
                None => Err(self.unknown_name(e, name)),
            },
            SyntaxKind::List(items) => {
                let outer = self.context;
                // The entries must not change during a run, in any context.
                if self.context != Context::Constant {
                    self.context = Context::Parameters;
                }
                let entries: Found<Vec<Scalar>> = items.iter().map(|i| self.scalar(i)).collect();
                self.context = outer;
                Ok((ArrayRef::Literal(entries?), items.len()))
            }
            _ => Err(Problem::new(e.at, "an array parameter or a list `[…]` is expected here")),
        }
    }

    fn interpolation(&mut self, e: &Syntax, name: &str, arguments: &[Syntax]) -> Found<Scalar> {
        let (at, knots, values, outside) = match arguments {
            [at, knots, values] => (at, knots, values, Outside::default()),
            [at, knots, values, outside] if name == "spline" => (at, knots, values, outside_of(outside)?),
            _ => return Err(arity(e, name, 3, arguments.len())),
        };
        let (at, uses) = self.apart(|r| r.scalar(at))?;
        if (name == "table" || outside == Outside::Clamp) && uses.changes() {
            let what = if name == "table" { "`table(…)`" } else { "`spline(…, clamp)`" };
            self.allow(e, Uses { bends: true, ..Uses::default() }, what)?;
        }
        let at = Box::new(at);
        let (knots_array, n) = self.array(knots)?;
        let (values_array, m) = self.array(values)?;
        if n != m {
            return Err(Problem::new(e.at, format!("`{name}` has {n} knots but {m} values")));
        }
        if n < 2 {
            return Err(Problem::new(e.at, format!("`{name}` needs at least two knots")));
        }
        // Its equations are as many as its knots.
        self.grow(e, n)?;
        self.knots.push((knots.at, knots_array.clone()));
        let (knots, values) = (knots_array, values_array);
        Ok(if name == "table" {
            Scalar::Table { at, knots, values }
        } else {
            Scalar::Spline { at, knots, values, outside }
        })
    }

    // Calls.

    fn call(&mut self, e: &Syntax, name: &str, arguments: &[Syntax]) -> Found<Typed> {
        if let Some((_, function)) = FUNCTIONS.iter().find(|(f, _)| *f == name) {
            return self.function(e, name, *function, arguments).map(Typed::Scalar);
        }
        let one = || match arguments {
            [a] => Ok(a),
            _ => Err(arity(e, name, 1, arguments.len())),
        };
        let two = || match arguments {
            [a, b] => Ok((a, b)),
            _ => Err(arity(e, name, 2, arguments.len())),
        };
        match name {
            "if" => self.select(e, arguments).map(Typed::Scalar),
            "table" | "spline" => self.interpolation(e, name, arguments).map(Typed::Scalar),
            "rate" => self.rate(e, one()?),
            "accel" => {
                let c = self.coordinate(one()?)?;
                self.allow_acceleration(e, "`accel(…)`")?;
                Ok(Typed::Scalar(self.signed(Scalar::Acceleration(c), c)))
            }
            "pos" => {
                let marker = self.marker(one()?)?;
                self.allow_state(e, "`pos(…)`")?;
                Ok(self.seen(Vector::Position(marker), false))
            }
            "vel" => {
                let marker = self.marker(one()?)?;
                self.allow_velocity(e, "`vel(…)`")?;
                Ok(self.seen(Vector::PointVelocity(marker), false))
            }
            "acc" => {
                let marker = self.marker(one()?)?;
                self.allow_acceleration(e, "`acc(…)`")?;
                Ok(self.seen(Vector::PointAcceleration(marker), false))
            }
            "dir" => {
                let (body, index) = self.body_vector(one()?)?;
                self.allow_state(e, "`dir(…)`")?;
                Ok(self.seen(Vector::Direction(body, index), false))
            }
            "omega" => {
                let body = self.body(one()?)?;
                self.allow_velocity(e, "`omega(…)`")?;
                Ok(self.seen(Vector::AngularVelocity(body), true))
            }
            "alpha" => {
                let body = self.body(one()?)?;
                self.allow_acceleration(e, "`alpha(…)`")?;
                Ok(self.seen(Vector::AngularAcceleration(body), true))
            }
            "in" | "from" => {
                let (frame, v) = two()?;
                let body = self.body(frame)?;
                self.allow_state(e, &format!("`{name}(…)`"))?;
                let v = self.vector(v)?;
                Ok(Typed::Vector(self.turned(body, v, name == "in")))
            }
            "dot" => {
                let (a, b) = two()?;
                Ok(Typed::Scalar(Scalar::Dot(Box::new(self.vector(a)?), Box::new(self.vector(b)?))))
            }
            "cross" => {
                let (a, b) = two()?;
                Ok(Typed::Vector(Vector::Cross(Box::new(self.vector(a)?), Box::new(self.vector(b)?))))
            }
            "multiplier" => self.multiplier(e, Multiplier::Force, one()?).map(Typed::Scalar),
            "projection_impulse" => {
                self.multiplier(e, Multiplier::ProjectionImpulse, one()?).map(Typed::Scalar)
            }
            "projection_force" => self.multiplier(e, Multiplier::ProjectionForce, one()?).map(Typed::Scalar),
            "reaction_force" | "reaction_torque" => {
                let joint = self.reacting_joint(e, name, one()?)?;
                Ok(match name {
                    "reaction_force" => self.seen(Vector::ReactionForce(joint), false),
                    _ => self.seen(Vector::ReactionTorque(joint), true),
                })
            }
            "norm" => Ok(Typed::Scalar(Scalar::Norm(Box::new(self.vector(one()?)?)))),
            "unit" => Ok(Typed::Vector(Vector::Unit(Box::new(self.vector(one()?)?)))),
            _ => Err(self.unknown_function(e, name)),
        }
    }

    fn unknown_function(&self, e: &Syntax, name: &str) -> Problem {
        let all = FUNCTIONS.iter().map(|(f, _)| *f).chain(SPECIAL_FUNCTIONS);
        let problem =
            Problem::new((e.at.0, e.at.0 + name.len()), format!("unknown function `{}`", shorten(name)));
        match (name, nearest(name, all)) {
            ("log", _) => problem.help("the natural logarithm is `ln(…)`"),
            ("pow", _) => problem.help("a power is written `a^b`"),
            ("position", _) => problem.help("the position of a point is `pos(body.point)`"),
            ("velocity", _) => problem.help("the velocity of a point is `vel(body.point)`"),
            ("reaction", _) => {
                problem.help("what a joint transmits is `reaction_force(joint)` and `reaction_torque(joint)`")
            }
            ("lambda", _) => problem.help("a Lagrange multiplier is `multiplier(name)`"),
            ("acceleration", _) => problem.help("the acceleration of a point is `acc(body.point)`"),
            (_, Some(near)) => problem.help(format!("did you mean `{near}(…)`?")),
            _ if self.scope.symbol(name).is_some() => problem.help("a product is written with `*`"),
            _ => problem,
        }
    }

    /// `rate(…)` of a coordinate, or of an expression of positions, time and parameters.
    fn rate(&mut self, e: &Syntax, of: &Syntax) -> Found<Typed> {
        self.refuse_two_meanings(of)?;
        let addressed = match &of.kind {
            SyntaxKind::Name(name) => {
                self.scope.symbol(name).is_none() && !CONSTANTS.contains(&name.as_str())
            }
            SyntaxKind::Path(head, _) => self.scope.symbol(head).is_none(),
            _ => false,
        };
        if addressed {
            let c = self.coordinate(of)?;
            self.allow_velocity(e, "`rate(…)`")?;
            return Ok(Typed::Scalar(self.signed(Scalar::Rate(c), c)));
        }
        let outer = self.context;
        // The length of a spring is not known by its rate here.
        if self.context == Context::Law {
            self.context = Context::Force;
        }
        let before = self.size;
        let found = self.apart(|r| r.typed(of));
        self.context = outer;
        let (of_value, uses) = found?;
        if uses.velocities || uses.accelerations || uses.inputs || uses.reactions || uses.jumps {
            return Err(Problem::new(
                of.at,
                "`rate(…)` takes a coordinate, or an expression of positions, time and parameters",
            ));
        }
        // What bends has a rate that jumps.
        let bent = Uses { state: true, velocities: true, jumps: uses.bends, ..Uses::default() };
        self.allow(e, bent, "`rate(…)`")?;
        let size = self.size - before;
        let rate = |s: Scalar| Scalar::Derivative(Box::new(s));
        Ok(match of_value {
            Typed::Scalar(s) => Typed::Scalar(rate(s)),
            Typed::Vector(v) => {
                self.grow(e, 2 * size)?;
                let part = |i| rate(v.clone().component(i));
                Typed::Vector(Vector::Components(Box::new([part(0), part(1), part(2)])))
            }
        })
    }

    /// An error where a name is both a joint with one coordinate and a value: the rate of a parameter is zero, which nobody asks for.
    fn refuse_two_meanings(&self, of: &Syntax) -> Found<()> {
        if let SyntaxKind::Name(name) = &of.kind
            && self.scope.symbol(name).is_some()
            && let Some(Thing::Joint(id)) = self.scope.thing(name)
            && let [coordinate] = &self.symbols.joints[id.index()].coordinates[..]
        {
            let message = format!("`{name}` is a joint and also a parameter, an input or a definition");
            let remedy = format!("write `rate({name}.{coordinate})` for the joint, or rename one of the two");
            return Err(Problem::new(of.at, message).help(remedy));
        }
        Ok(())
    }

    fn function(
        &mut self,
        e: &Syntax,
        name: &str,
        function: Function,
        arguments: &[Syntax],
    ) -> Found<Scalar> {
        let n = function.arity();
        if matches!(function, Function::Min | Function::Max) && arguments.len() > 2 {
            // In pairs, so that the tree stays low.
            let values: Found<Vec<Scalar>> = arguments.iter().map(|a| self.scalar(a)).collect();
            let mut values = values?;
            while values.len() > 1 {
                let mut pairs = values.into_iter();
                let mut next = Vec::new();
                while let Some(a) = pairs.next() {
                    next.push(match pairs.next() {
                        Some(b) => Scalar::Call(function, vec![a, b]),
                        None => a,
                    });
                }
                values = next;
            }
            return values.pop().ok_or_else(|| arity(e, name, n, 0));
        }
        if arguments.len() != n {
            return Err(arity(e, name, n, arguments.len()));
        }
        let values: Found<Vec<Scalar>> = arguments.iter().map(|a| self.scalar(a)).collect();
        let values = values?;
        if let (Function::SmoothStep, [_, x0, _, x1, _]) = (function, values.as_slice()) {
            let constants = Values::of(&[], &[]);
            if let (Ok(x0), Ok(x1)) = (constants.scalar(x0), constants.scalar(x1))
                && x0 == x1
            {
                let message = format!("`step` begins and ends at {x0}: it has no value there");
                return Err(Problem::new(e.at, message)
                    .help("let x1 differ from x0; for a jump write `if(x < x0, y0, y1)`"));
            }
        }
        Ok(Scalar::Call(function, values))
    }

    fn select(&mut self, e: &Syntax, arguments: &[Syntax]) -> Found<Scalar> {
        let [condition, x, y] = arguments else {
            return Err(arity(e, "if", 3, arguments.len()));
        };
        let SyntaxKind::Compare(relation, a, b) = &condition.kind else {
            return Err(Problem::new(condition.at, "the first argument of `if` must be a comparison")
                .help("write `if(a < b, x, y)`"));
        };
        let (a, b) = (self.scalar(a)?, self.scalar(b)?);
        let (x, y) = (self.scalar(x)?, self.scalar(y)?);
        let (comparison, a, b) = match relation {
            Relation::Less => (Comparison::Less, a, b),
            Relation::LessEqual => (Comparison::LessEqual, a, b),
            Relation::Greater => (Comparison::Less, b, a),
            Relation::GreaterEqual => (Comparison::LessEqual, b, a),
            Relation::Equal => (Comparison::Equal, a, b),
        };
        Ok(Scalar::Select(comparison, Box::new([a, b, x, y])))
    }

    // Bodies, points and coordinates as arguments.

    fn seen(&self, v: Vector, axial: bool) -> Typed {
        Typed::Vector(self.scope.seen(v, axial))
    }

    /// `in(body, v)` or `from(body, v)`. In the mirror a body's orientation is S A S, so v is reflected, turned and
    /// reflected back; the signs of axial vectors cancel.
    pub(in crate::yaml) fn turned(&self, body: BodyId, v: Vector, into: bool) -> Vector {
        let turn = |v: Vector| {
            if into { Vector::InFrame(body, Box::new(v)) } else { Vector::FromFrame(body, Box::new(v)) }
        };
        match self.scope.mirror {
            Some(normal) => mirror(turn(mirror(v, normal, false)), normal, false),
            None => turn(v),
        }
    }

    /// A body by its name.
    pub(in crate::yaml) fn body(&self, e: &Syntax) -> Found<BodyId> {
        let SyntaxKind::Name(name) = &e.kind else {
            return Err(Problem::new(e.at, "the name of a body is expected here"));
        };
        match self.scope.thing(name) {
            Some(Thing::Body(id)) => Ok(id),
            Some(Thing::Broken) => Err(Problem::reported()),
            Some(_) => Err(Problem::new(e.at, format!("`{name}` is not a body"))),
            None => Err(self.unknown_thing(e, name, "body", |t| matches!(t, Thing::Body(_)))),
        }
    }

    /// A point: `body.point`, `body` for its origin, or a point argument.
    pub(in crate::yaml) fn marker(&self, e: &Syntax) -> Found<MarkerRef> {
        match &e.kind {
            SyntaxKind::Name(name) => {
                match self.scope.thing(name) {
                    Some(Thing::Point(m)) => Ok(m),
                    Some(Thing::Body(body)) => Ok(MarkerRef { body, point: PointRef::Origin }),
                    Some(Thing::Broken) => Err(Problem::reported()),
                    Some(_) => Err(Problem::new(e.at, format!("`{name}` is not a point"))
                        .help("a point is addressed `body.point`")),
                    None => Err(self
                        .unknown_thing(e, name, "body", |t| matches!(t, Thing::Body(_) | Thing::Point(_)))),
                }
            }
            SyntaxKind::Path(head, member) => match self.scope.thing(head) {
                Some(Thing::Body(body)) => match self.symbols.bodies[body.index()].point(member) {
                    Some(point) => Ok(MarkerRef { body, point }),
                    None => Err(self.unknown_point(e, body, head, member)),
                },
                Some(Thing::Broken) => Err(Problem::reported()),
                Some(_) => Err(Problem::new(e.at, format!("`{head}` is not a body"))),
                None => Err(self.unknown_thing(e, head, "body", |t| matches!(t, Thing::Body(_)))),
            },
            _ => Err(Problem::new(e.at, "a point `body.point` is expected here")),
        }
    }

    /// A named vector of a body.
    pub(in crate::yaml) fn body_vector(&self, e: &Syntax) -> Found<(BodyId, u32)> {
        let SyntaxKind::Path(head, member) = &e.kind else {
            return Err(Problem::new(e.at, "a vector `body.vector` is expected here"));
        };
        match self.scope.thing(head) {
            Some(Thing::Body(id)) => {
                let body = &self.symbols.bodies[id.index()];
                if let Some(index) = body.vector(member) {
                    return Ok((id, index));
                }
                let problem =
                    Problem::new(e.at, format!("body `{head}` has no vector `{}`", shorten(member)));
                Err(match nearest(member, body.vectors.iter().map(String::as_str)) {
                    Some(near) => problem.help(format!("did you mean `{head}.{near}`?")),
                    None => problem.help(format!("declare it under `vectors` of `{head}`")),
                })
            }
            Some(Thing::Broken) => Err(Problem::reported()),
            Some(_) => Err(Problem::new(e.at, format!("`{head}` is not a body"))),
            None => Err(self.unknown_thing(e, head, "body", |t| matches!(t, Thing::Body(_)))),
        }
    }

    /// A coordinate: `joint.coordinate`, a joint with one coordinate, or a coordinate argument.
    pub(in crate::yaml) fn coordinate(&self, e: &Syntax) -> Found<CoordinateRef> {
        match &e.kind {
            SyntaxKind::Name(name) => match self.scope.thing(name) {
                Some(Thing::Coordinate(c)) => Ok(c),
                Some(Thing::Joint(id)) => {
                    let joint = &self.symbols.joints[id.index()];
                    if joint.kind.is_none() {
                        return Err(Problem::reported());
                    }
                    if joint.coordinates.len() == 1 {
                        return Ok(CoordinateRef::Joint { joint: id, index: 0 });
                    }
                    let n = joint.coordinates.len();
                    let problem = Problem::new(e.at, format!("joint `{name}` has {n} coordinates"));
                    Err(match joint.coordinates.first() {
                        Some(c) => problem.help(format!("name one of them, for example `{name}.{c}`")),
                        None => problem,
                    })
                }
                Some(Thing::Broken) => Err(Problem::reported()),
                Some(_) => Err(Problem::new(e.at, format!("`{name}` is not a joint"))),
                None => Err(self.unknown_thing(e, name, "joint", |t| {
                    matches!(t, Thing::Joint(_) | Thing::Coordinate(_))
                })),
            },
            SyntaxKind::Path(head, member) => match self.scope.thing(head) {
                Some(Thing::Joint(id)) => {
                    let joint = &self.symbols.joints[id.index()];
                    if joint.kind.is_none() {
                        return Err(Problem::reported());
                    }
                    match joint.coordinates.iter().position(|c| c == member) {
                        Some(i) => Ok(CoordinateRef::Joint { joint: id, index: i as u32 }),
                        None if joint.velocities.iter().any(|v| v == member) => Err(Problem::new(
                            e.at,
                            format!("`{head}.{member}` is a velocity, not a coordinate"),
                        )),
                        None => Err(self.unknown_coordinate(e, head, member)),
                    }
                }
                Some(Thing::Broken) => Err(Problem::reported()),
                Some(_) => Err(Problem::new(e.at, format!("`{head}` is not a joint"))),
                None => Err(self.unknown_thing(e, head, "joint", |t| matches!(t, Thing::Joint(_)))),
            },
            _ => Err(Problem::new(e.at, "a coordinate `joint.coordinate` is expected here")),
        }
    }
}

/// Outputs are results; what other expressions share is a definition.
fn an_output(e: &Syntax, name: &str) -> Problem {
    let name = shorten(name);
    Problem::new(e.at, format!("`{name}` is an output, not a value"))
        .help(format!("make it a definition; the output is then `{name}: {name}`"))
}

/// What a spline is beyond its ends, by its word.
fn outside_of(e: &Syntax) -> Found<Outside> {
    let found = match &e.kind {
        SyntaxKind::Name(word) => Outside::WORDS.iter().find(|(own, _)| own == word),
        _ => None,
    };
    found.map(|&(_, outside)| outside).ok_or_else(|| {
        Problem::new(e.at, "what a spline is beyond its ends is `clamp`, `linear`, `cubic` or `error`")
    })
}

fn arity(e: &Syntax, name: &str, wanted: usize, found: usize) -> Problem {
    let s = if wanted == 1 { "" } else { "s" };
    let are = if found == 1 { "is" } else { "are" };
    Problem::new(e.at, format!("`{name}` takes {wanted} argument{s}, but {found} {are} given"))
}

/// Names in a sentence.
pub(in crate::yaml) fn list<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    let mut out = String::new();
    for (i, name) in names.iter().enumerate() {
        if i >= 20 {
            out.push_str(&format!(" and {} more", names.len() - i));
            break;
        }
        if i > 0 {
            out.push_str(if i + 1 == names.len() { " and " } else { ", " });
        }
        out.push('`');
        out.push_str(name);
        out.push('`');
    }
    out
}
