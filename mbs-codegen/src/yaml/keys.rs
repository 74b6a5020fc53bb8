//! The keys of every mapping in a model file. The schema file and the reference are tested against these tables.

/// The keys of one kind of mapping.
#[derive(Clone, Copy, Debug)]
pub struct Keys {
    /// What the mapping is, with its article.
    pub what: &'static str,
    /// The keys it may have.
    pub keys: &'static [&'static str],
    /// Keys kept for later versions.
    pub later: &'static [&'static str],
}

const fn keys(what: &'static str, keys: &'static [&'static str]) -> Keys {
    Keys { what, keys, later: &[] }
}

/// The file itself.
pub const MODEL: Keys = Keys {
    what: "a model",
    keys: &[
        "mbs",
        "name",
        "description",
        "gravity",
        "parameters",
        "inputs",
        "outputs",
        "bodies",
        "joints",
        "forces",
        "elements",
        "instances",
        "simulation",
        "cases",
    ],
    later: &["constraints", "loops", "variables", "states", "objectives", "sensitivity", "events", "modes"],
};
/// An entry of `parameters`.
pub const PARAMETER: Keys = keys("a parameter", &["value", "values", "min", "max", "unit", "description"]);
/// An entry of `inputs`.
pub const INPUT: Keys = keys("an input", &["default", "hold", "unit", "description"]);
/// An entry of `outputs`.
pub const OUTPUT: Keys = keys("an output", &["value", "unit", "description"]);
/// An entry of `bodies`.
pub const BODY: Keys =
    keys("a body", &["kind", "mass", "com", "inertia", "points", "vectors", "description"]);
/// The entry `ground` of `bodies`.
pub const GROUND: Keys = keys("the ground", &["points", "vectors", "description"]);
/// The `inertia` of a body.
pub const INERTIA: Keys = keys("an inertia", &["xx", "yy", "zz", "xy", "xz", "yz", "frame"]);
/// The `frame` of an inertia.
pub const FRAME: Keys = keys("an inertia's frame", &["axis", "reference"]);
/// An entry of `joints`.
pub const JOINT: Keys = Keys {
    what: "a joint",
    keys: &["type", "parent", "child", "axis", "axes", "reference", "names", "start", "description"],
    later: &["cut"],
};
/// The `parent` or `child` of a joint.
pub const SIDE: Keys = keys("a joint's side", &["body", "point", "axis", "reference"]);
/// The start of one coordinate.
pub const START: Keys = keys("a start value", &["value", "rate", "hold"]);
/// The start of a spherical joint.
pub const START_SPHERICAL: Keys =
    keys("the start of a spherical joint", &["orientation", "angular_velocity", "hold"]);
/// The start of a floating joint, beside the names of its first three coordinates.
pub const START_FLOATING: Keys = keys(
    "the start of a floating joint",
    &["orientation", "angular_velocity", "position", "velocity", "hold"],
);
/// An entry of `forces` of type `spring`.
pub const SPRING: Keys =
    keys("a spring", &["type", "from", "to", "stiffness", "damping", "natural_length", "law", "description"]);
/// An entry of `forces` of type `torsional_spring`.
pub const TORSIONAL_SPRING: Keys = keys(
    "a torsional spring",
    &["type", "coordinate", "stiffness", "damping", "natural_angle", "law", "description"],
);
/// An entry of `forces` of type `force`.
pub const FORCE: Keys = keys("a force", &["type", "at", "value", "frame", "reaction", "description"]);
/// An entry of `forces` of type `torque`.
pub const TORQUE: Keys = keys("a torque", &["type", "on", "value", "frame", "reaction", "description"]);
/// An entry of `forces` of type `joint_force`.
pub const JOINT_FORCE: Keys = keys("a joint force", &["type", "coordinate", "value", "description"]);
/// An entry of `elements`.
pub const ELEMENT: Keys = Keys {
    what: "an element",
    keys: &["arguments", "parameters", "bodies", "joints", "forces", "outputs", "description"],
    later: &["elements", "instances"],
};
/// An entry of `instances`.
pub const INSTANCE: Keys = keys("an instance", &["element", "arguments", "mirror", "description"]);
/// `simulation`, in a model or a case.
pub const SIMULATION: Keys =
    keys("a simulation", &["begin", "end", "step", "output_step", "integrator", "tolerance"]);
/// The `tolerance` of a simulation.
pub const TOLERANCE: Keys = keys("a tolerance", &["relative", "absolute"]);
/// An entry of `cases`.
pub const CASE: Keys = keys("a case", &["description", "parameters", "start", "inputs", "simulation"]);

/// All tables, by the name of their definition in the schema file.
pub const ALL: [(&str, &Keys); 23] = [
    ("model", &MODEL),
    ("parameter", &PARAMETER),
    ("input", &INPUT),
    ("output", &OUTPUT),
    ("body", &BODY),
    ("ground", &GROUND),
    ("inertia", &INERTIA),
    ("frame", &FRAME),
    ("joint", &JOINT),
    ("side", &SIDE),
    ("start", &START),
    ("start_spherical", &START_SPHERICAL),
    ("start_floating", &START_FLOATING),
    ("spring", &SPRING),
    ("torsional_spring", &TORSIONAL_SPRING),
    ("force", &FORCE),
    ("torque", &TORQUE),
    ("joint_force", &JOINT_FORCE),
    ("element", &ELEMENT),
    ("instance", &INSTANCE),
    ("simulation", &SIMULATION),
    ("tolerance", &TOLERANCE),
    ("case", &CASE),
];
