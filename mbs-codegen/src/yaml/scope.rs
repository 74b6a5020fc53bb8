//! What names mean: the tables of declared things, and the scopes expressions see them through.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::mirror::mirror;
use crate::diagnostics::Span;
use crate::model::{
    BodyId, ConstraintId, CoordinateRef, InputId, JointId, JointKind, MarkerRef, ParameterId, PointRef,
    Scalar, Vector,
};

/// Everything declared, before its contents are read.
#[derive(Default)]
pub(super) struct Symbols {
    pub(super) parameters: Vec<ParameterSymbol>,
    pub(super) inputs: Vec<String>,
    pub(super) modes: Vec<ModeSymbol>,
    /// Names of outputs, with and without those of their elements: no expression can use them.
    pub(super) outputs: HashSet<String>,
    pub(super) bodies: Vec<BodySymbol>,
    pub(super) joints: Vec<JointSymbol>,
    /// How many variables there are.
    pub(super) variables: usize,
    /// By constraint.
    pub(super) rows: Vec<RowNames>,
}

/// Suffixes of the names of a constraint's rows; that of a single row may be empty.
pub(super) enum RowNames {
    /// Constraints are not read yet.
    Unread,
    /// It could not be read, which is reported.
    Broken,
    Known(Vec<String>),
}

pub(super) struct ModeSymbol {
    pub(super) name: String,
    /// Names of its states.
    pub(super) states: Vec<String>,
    /// States of the modes before it.
    pub(super) before: u32,
    pub(super) span: Span,
}

impl Symbols {
    /// The input of a state; inputs of states follow all others.
    pub(super) fn state(&self, mode: usize, state: &str) -> Option<InputId> {
        let mode = self.modes.get(mode)?;
        let place = mode.states.iter().position(|name| name == state)?;
        Some(InputId(self.inputs.len() as u32 + mode.before + place as u32))
    }
}

pub(super) struct ParameterSymbol {
    /// Length, if it is an array.
    pub(super) array: Option<usize>,
}

pub(super) struct BodySymbol {
    pub(super) name: String,
    pub(super) points: Vec<String>,
    pub(super) vectors: Vec<String>,
}

impl BodySymbol {
    pub(super) fn point(&self, name: &str) -> Option<PointRef> {
        match name {
            "origin" => Some(PointRef::Origin),
            "com" => Some(PointRef::Com),
            _ => self.points.iter().position(|p| p == name).map(|i| PointRef::Named(i as u32)),
        }
    }

    pub(super) fn vector(&self, name: &str) -> Option<u32> {
        self.vectors.iter().position(|v| v == name).map(|i| i as u32)
    }
}

pub(super) struct JointSymbol {
    pub(super) name: String,
    /// `None` if the file does not say it in a way that can be read; that is reported where it is read.
    pub(super) kind: Option<JointKind>,
    pub(super) coordinates: Vec<String>,
    pub(super) velocities: Vec<String>,
}

/// What a name means as a value.
#[derive(Clone)]
pub(super) enum Symbol {
    Parameter(ParameterId),
    Input(InputId),
    /// A scalar argument of an element, or a definition.
    Scalar(Rc<Named<Scalar>>),
    /// A vector argument of an element, or a definition.
    Vector(Rc<Named<Vector>>),
}

/// A named expression.
pub(super) struct Named<T> {
    /// `argument` or `definition`.
    pub(super) what: &'static str,
    pub(super) value: T,
    pub(super) uses: Uses,
    pub(super) extent: Extent,
}

/// The size of an expression after names are substituted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Extent {
    /// Operations.
    pub(super) size: usize,
    /// Height of the tree, at most.
    pub(super) depth: usize,
}

/// What a name means where a body, joint or part of one is addressed.
#[derive(Clone, Copy)]
pub(super) enum Thing {
    Body(BodyId),
    Joint(JointId),
    /// A point argument of an element.
    Point(MarkerRef),
    /// A coordinate argument of an element.
    Coordinate(CoordinateRef),
    Constraint(ConstraintId),
    /// States of which one holds at a time, by its place.
    Mode(usize),
    /// Declared, but what it is could not be read; reported already.
    Broken,
}

/// What an expression depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Uses {
    pub(super) parameters: bool,
    pub(super) time: bool,
    pub(super) inputs: bool,
    /// Positions, coordinates or velocities.
    pub(super) state: bool,
    pub(super) velocities: bool,
    pub(super) accelerations: bool,
    /// Multipliers or reactions.
    pub(super) reactions: bool,
    /// Multipliers of projections.
    pub(super) projections: bool,
    /// It bends where it changes: a table.
    pub(super) bends: bool,
    /// It jumps where it changes: an element of an array by a changing index.
    pub(super) jumps: bool,
}

impl Uses {
    /// What either depends on.
    pub(super) fn and(self, other: Uses) -> Uses {
        Uses {
            parameters: self.parameters || other.parameters,
            time: self.time || other.time,
            inputs: self.inputs || other.inputs,
            state: self.state || other.state,
            velocities: self.velocities || other.velocities,
            accelerations: self.accelerations || other.accelerations,
            reactions: self.reactions || other.reactions,
            projections: self.projections || other.projections,
            bends: self.bends || other.bends,
            jumps: self.jumps || other.jumps,
        }
    }

    /// Whether the value changes during a run.
    pub(super) fn changes(self) -> bool {
        self.time || self.inputs || self.state || self.accelerations || self.reactions
    }
}

/// The names visible at one place: those of an element's instance, then those of the file.
#[derive(Default)]
pub(super) struct Scope {
    pub(super) symbols: HashMap<String, Symbol>,
    pub(super) things: HashMap<String, Thing>,
    /// The axis normal to the mirror the scope's contents are seen in.
    pub(super) mirror: Option<u8>,
    pub(super) outer: Option<Rc<Scope>>,
}

impl Scope {
    pub(super) fn symbol(&self, name: &str) -> Option<&Symbol> {
        self.symbols.get(name).or_else(|| self.outer.as_ref()?.symbol(name))
    }

    /// Whether a name before a dot is that of a vector: the nearest of this name is one.
    pub(super) fn is_vector(&self, name: &str) -> bool {
        match (self.symbols.get(name), &self.outer) {
            (Some(symbol), _) => matches!(symbol, Symbol::Vector(_)),
            (None, Some(outer)) if !self.things.contains_key(name) => outer.is_vector(name),
            _ => false,
        }
    }

    pub(super) fn thing(&self, name: &str) -> Option<Thing> {
        self.things.get(name).copied().or_else(|| self.outer.as_ref()?.thing(name))
    }

    /// A real vector as the scope sees it: in the mirror, if there is one.
    pub(super) fn seen(&self, v: Vector, axial: bool) -> Vector {
        match self.mirror {
            Some(normal) => mirror(v, normal, axial),
            None => v,
        }
    }

    /// Names of the visible symbols, sorted.
    pub(super) fn symbol_names(&self) -> Vec<&str> {
        self.collect(|s| s.symbols.keys().map(String::as_str).collect())
    }

    /// Names of the visible things that fit, sorted.
    pub(super) fn thing_names(&self, fits: impl Fn(Thing) -> bool + Copy) -> Vec<&str> {
        self.collect(|s| s.things.iter().filter(|(_, t)| fits(**t)).map(|(n, _)| n.as_str()).collect())
    }

    fn collect<'s>(&'s self, names: impl Fn(&'s Scope) -> Vec<&'s str>) -> Vec<&'s str> {
        let mut all = names(self);
        let mut outer = &self.outer;
        while let Some(scope) = outer {
            all.extend(names(scope));
            outer = &scope.outer;
        }
        all.sort_unstable();
        all.dedup();
        all
    }
}
