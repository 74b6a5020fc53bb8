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
    /// Keys one might look for that do not exist, and what to do instead.
    pub hints: &'static [(&'static str, &'static str)],
}

const fn keys(what: &'static str, keys: &'static [&'static str]) -> Keys {
    Keys { what, keys, later: &[], hints: &[] }
}

/// The file itself.
pub const MODEL: Keys = Keys {
    what: "a model",
    keys: &[
        "mbs",
        "name",
        "description",
        "coordinates",
        "gravity",
        "parameters",
        "inputs",
        "modes",
        "switches",
        "definitions",
        "outputs",
        "bodies",
        "joints",
        "variables",
        "forces",
        "constraints",
        "objectives",
        "events",
        "sensitivity",
        "elements",
        "instances",
        "simulation",
        "cases",
        "optimisation",
    ],
    later: &["states"],
    hints: &[(
        "loops",
        "closed loops are found from the joints; `cut: true` or `cut: false` at a joint chooses where they are cut",
    )],
};
/// An entry of `parameters`.
pub const PARAMETER: Keys = keys("a parameter", &["value", "values", "min", "max", "unit", "description"]);
/// An entry of `inputs`.
pub const INPUT: Keys = keys("an input", &["default", "hold", "unit", "description"]);
/// An entry of `outputs`.
pub const OUTPUT: Keys = keys("an output", &["value", "unit", "description"]);
/// An entry of `bodies`.
pub const BODY: Keys =
    keys("a body", &["kind", "mass", "com", "inertia", "points", "vectors", "shape", "description"]);
/// The entry `ground` of `bodies`.
pub const GROUND: Keys = keys("the ground", &["points", "vectors", "shape", "description"]);
/// A shape of type `box`.
pub const BOX: Keys = keys("a box", &["type", "size", "at", "colour"]);
/// A shape of type `ellipsoid`.
pub const ELLIPSOID: Keys = keys("an ellipsoid", &["type", "size", "at", "colour"]);
/// A shape of type `sphere`.
pub const SPHERE: Keys = keys("a sphere", &["type", "radius", "at", "colour"]);
/// A shape of type `cylinder`.
pub const CYLINDER: Keys =
    keys("a cylinder", &["type", "radius", "from", "to", "axis", "length", "at", "colour"]);
/// A shape of type `capsule`.
pub const CAPSULE: Keys =
    keys("a capsule", &["type", "radius", "from", "to", "axis", "length", "at", "colour"]);
/// The `inertia` of a body.
pub const INERTIA: Keys = keys("an inertia", &["xx", "yy", "zz", "xy", "xz", "yz", "frame", "unphysical"]);
/// The `frame` of an inertia.
pub const FRAME: Keys = keys("an inertia's frame", &["axis", "reference"]);
/// An entry of `joints`.
pub const JOINT: Keys = keys(
    "a joint",
    &[
        "type",
        "parent",
        "child",
        "axis",
        "axes",
        "reference",
        "dh",
        "points",
        "vectors",
        "aligned",
        "coplanar",
        "perpendicular",
        "zero",
        "names",
        "start",
        "cut",
        "description",
    ],
);
/// The `dh` of a joint.
pub const DH: Keys = keys("Denavit–Hartenberg parameters", &["theta", "d", "a", "alpha"]);
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
pub const SPRING: Keys = keys(
    "a spring",
    &["type", "from", "to", "stiffness", "damping", "natural_length", "law", "in", "description"],
);
/// An entry of `forces` of type `torsional_spring`.
pub const TORSIONAL_SPRING: Keys = keys(
    "a torsional spring",
    &["type", "coordinate", "stiffness", "damping", "natural_angle", "law", "in", "description"],
);
/// An entry of `forces` of type `force`.
pub const FORCE: Keys = keys("a force", &["type", "at", "value", "frame", "reaction", "in", "description"]);
/// An entry of `forces` of type `torque`.
pub const TORQUE: Keys = keys("a torque", &["type", "on", "value", "frame", "reaction", "in", "description"]);
/// An entry of `forces` of type `joint_force`.
pub const JOINT_FORCE: Keys = keys("a joint force", &["type", "coordinate", "value", "in", "description"]);
/// An entry of `variables`.
pub const VARIABLE: Keys = keys("a variable", &["value", "rate", "hold", "unit", "description"]);
/// An entry of `constraints` of type `distance`.
pub const DISTANCE: Keys = keys("a distance", &["type", "from", "to", "value", "in", "description"]);
/// An entry of `constraints` of type `angle`.
pub const ANGLE: Keys = keys("an angle", &["type", "from", "to", "value", "in", "description"]);
/// An entry of `constraints` of type `coincident`.
pub const COINCIDENT: Keys = keys("a coincidence", &["type", "from", "to", "in", "description"]);
/// An entry of `constraints` of type `point_on_line`.
pub const POINT_ON_LINE: Keys = keys("a point on a line", &["type", "point", "line", "in", "description"]);
/// The `line` of a point on a line.
pub const LINE: Keys = keys("a line", &["point", "direction", "reference"]);
/// An entry of `constraints` of type `point_on_plane`.
pub const POINT_ON_PLANE: Keys = keys("a point on a plane", &["type", "point", "plane", "in", "description"]);
/// The `plane` of a point on a plane.
pub const PLANE: Keys = keys("a plane", &["point", "normal"]);
/// An entry of `constraints` of type `aligned`.
pub const ALIGNED: Keys = keys("an alignment", &["type", "points", "reference", "in", "description"]);
/// An entry of `constraints` of type `coupling`.
pub const COUPLING: Keys = keys("a coupling", &["type", "value", "in", "description"]);
/// An entry of `constraints` of type `motion`.
pub const MOTION: Keys = Keys {
    what: "a motion",
    keys: &["type", "coordinate", "point", "value", "axes", "in", "description"],
    later: &[],
    hints: &[("marker", "the point is given by `point: body.point`")],
};
/// An entry of `constraints` of type `equation`.
pub const EQUATION: Keys = keys("an equation", &["type", "value", "in", "description"]);
/// An entry of `constraints` of type `nonholonomic`.
pub const NONHOLONOMIC: Keys = keys("a nonholonomic constraint", &["type", "value", "in", "description"]);
/// An entry of `events`.
pub const EVENT: Keys = Keys {
    what: "an event",
    keys: &["when", "direction", "in", "armed", "then", "minimum_interval", "priority", "description"],
    later: &[],
    hints: &[
        ("mode", "`in: mode.state` says where it counts, `then: {mode: mode.state}` where it leads"),
        ("record", "an event is always recorded; leave `then` out to change nothing"),
        ("stop", "actions stand under `then`: `then: {stop: true}`"),
        ("impact", "actions stand under `then`"),
        ("reset", "actions stand under `then`"),
        ("set", "actions stand under `then`"),
    ],
};
/// The `then` of an event.
pub const ACTIONS: Keys = Keys {
    what: "the actions of an event",
    keys: &["record", "impact", "reset", "set", "mode", "stop"],
    later: &[],
    hints: &[],
};
/// The `impact` of an event.
pub const IMPACT: Keys = Keys {
    what: "an impact",
    keys: &["restitution", "gap", "friction", "slip", "law"],
    later: &[],
    hints: &[("at", "the impact acts along `gap`, a function of positions such as `pos(body.point).y`")],
};
/// An entry of the `reset` of an event.
pub const RESET: Keys = keys("a reset", &["rate", "position", "to"]);
/// An entry of `objectives`.
pub const OBJECTIVE: Keys = keys("an objective", &["integrand", "terminal", "at", "unit", "description"]);
/// The `at` of an objective, or an entry of it.
pub const AT_EVENT: Keys = keys("a term at an event", &["event", "value", "which"]);
/// An entry of `elements`.
pub const ELEMENT: Keys = Keys {
    what: "an element",
    keys: &[
        "arguments",
        "parameters",
        "modes",
        "definitions",
        "bodies",
        "joints",
        "variables",
        "forces",
        "constraints",
        "outputs",
        "objectives",
        "events",
        "instances",
        "description",
    ],
    later: &["elements"],
    hints: &[(
        "sensitivity",
        "name the parameters of instances, such as `left_stiffness`, under the model's own `sensitivity`",
    )],
};
/// An entry of `instances`.
pub const INSTANCE: Keys = keys("an instance", &["element", "arguments", "mirror", "description"]);
/// `simulation`, in a model or a case.
pub const SIMULATION: Keys = keys(
    "a simulation",
    &[
        "begin",
        "end",
        "step",
        "output_step",
        "formulation",
        "independent",
        "integrator",
        "beta",
        "gamma",
        "spectral_radius",
        "penalty",
        "projection",
        "newton",
        "tolerance",
        "max_step",
        "max_steps",
        "max_rejected",
        "objectives_in_error",
        "gradient",
    ],
);
/// The `newton` of a simulation.
pub const NEWTON: Keys = keys("the Newton iteration", &["tolerance", "iterations", "tangent"]);
/// The `tolerance` of a simulation.
pub const TOLERANCE: Keys = keys("a tolerance", &["relative", "absolute"]);
/// An entry of `cases`.
pub const CASE: Keys =
    keys("a case", &["description", "parameters", "start", "modes", "inputs", "sensitivity", "simulation"]);
/// An entry of `optimisation`.
pub const PROBLEM: Keys = Keys {
    what: "a problem",
    keys: &[
        "description",
        "minimise",
        "over",
        "subject_to",
        "cases",
        "starts",
        "method",
        "tolerance",
        "iterations",
    ],
    later: &[],
    hints: &[("maximise", "minimise it with a negative weight: `minimise: {psi: -1}`")],
};
/// An entry of `minimise`.
pub const TERM: Keys = keys("a term", &["weight", "case", "sharpness"]);
/// An entry of `over`.
pub const UNKNOWN: Keys = keys("an unknown", &["min", "max", "scale", "history", "knots", "start"]);
/// An entry of `subject_to`.
pub const LIMIT: Keys = keys("a constraint on an objective", &["min", "max", "equal", "case", "sharpness"]);

/// All tables, by the name of their definition in the schema file.
pub const ALL: [(&str, &Keys); 53] = [
    ("model", &MODEL),
    ("parameter", &PARAMETER),
    ("input", &INPUT),
    ("output", &OUTPUT),
    ("body", &BODY),
    ("ground", &GROUND),
    ("box", &BOX),
    ("ellipsoid", &ELLIPSOID),
    ("sphere", &SPHERE),
    ("cylinder", &CYLINDER),
    ("capsule", &CAPSULE),
    ("inertia", &INERTIA),
    ("frame", &FRAME),
    ("joint", &JOINT),
    ("dh", &DH),
    ("side", &SIDE),
    ("start", &START),
    ("start_spherical", &START_SPHERICAL),
    ("start_floating", &START_FLOATING),
    ("spring", &SPRING),
    ("torsional_spring", &TORSIONAL_SPRING),
    ("force", &FORCE),
    ("torque", &TORQUE),
    ("joint_force", &JOINT_FORCE),
    ("variable", &VARIABLE),
    ("distance", &DISTANCE),
    ("angle", &ANGLE),
    ("coincident", &COINCIDENT),
    ("point_on_line", &POINT_ON_LINE),
    ("line", &LINE),
    ("point_on_plane", &POINT_ON_PLANE),
    ("plane", &PLANE),
    ("aligned", &ALIGNED),
    ("coupling", &COUPLING),
    ("motion", &MOTION),
    ("equation", &EQUATION),
    ("nonholonomic", &NONHOLONOMIC),
    ("objective", &OBJECTIVE),
    ("at_event", &AT_EVENT),
    ("event", &EVENT),
    ("actions", &ACTIONS),
    ("impact", &IMPACT),
    ("reset", &RESET),
    ("element", &ELEMENT),
    ("instance", &INSTANCE),
    ("simulation", &SIMULATION),
    ("newton", &NEWTON),
    ("tolerance", &TOLERANCE),
    ("case", &CASE),
    ("problem", &PROBLEM),
    ("term", &TERM),
    ("unknown", &UNKNOWN),
    ("limit", &LIMIT),
];
