//! The arguments of an element's instance, resolved in the scope of the instance.
//!
//! Points, bodies and coordinates are real ones. Scalars and vectors are read as if they stood in the element: in a
//! mirrored instance they are seen in the mirror too.

use std::rc::Rc;

use super::declare::{Argument, ArgumentKind};
use super::expression::resolve::{Context, Typed};
use super::reader::Reader;
use super::scope::{Named, Scope, Symbol, Thing};

impl<'t> Reader<'t> {
    /// Adds the arguments to the instance's scope. `around` is the enclosing scope: the file, or the instance of another
    /// element.
    pub(super) fn read_arguments(
        &mut self,
        arguments: &[Argument<'t>],
        scope: &mut Scope,
        around: &Rc<Scope>,
    ) {
        let outside = Scope { mirror: scope.mirror, outer: Some(Rc::clone(around)), ..Scope::default() };
        for argument in arguments {
            let name = argument.name.clone();
            match argument.node.and_then(|node| self.read_argument(argument.kind, node, &outside)) {
                Some(Meaning::Symbol(symbol)) => {
                    scope.symbols.insert(name, symbol);
                }
                Some(Meaning::Thing(thing)) => {
                    scope.things.insert(name, thing);
                }
                None => {
                    scope.things.insert(name, Thing::Broken);
                }
            }
        }
    }

    fn read_argument(
        &mut self,
        kind: ArgumentKind,
        node: &'t super::node::Node,
        outside: &Scope,
    ) -> Option<Meaning> {
        let context = Context::Objective;
        Some(match kind {
            ArgumentKind::Scalar | ArgumentKind::Vector => {
                let resolved = self.either(node, outside, context)?;
                let (what, uses, extent) = ("argument", resolved.uses, resolved.extent);
                match (kind, resolved.value) {
                    (ArgumentKind::Scalar, Typed::Scalar(value)) => {
                        Meaning::Symbol(Symbol::Scalar(Rc::new(Named { what, value, uses, extent })))
                    }
                    (ArgumentKind::Vector, Typed::Vector(value)) => {
                        Meaning::Symbol(Symbol::Vector(Rc::new(Named { what, value, uses, extent })))
                    }
                    (ArgumentKind::Scalar, _) => {
                        self.diagnostics
                            .error(node.span, "this argument must be a number, but it is a vector");
                        return None;
                    }
                    _ => {
                        self.diagnostics
                            .error(node.span, "this argument must be a vector, but it is a number");
                        return None;
                    }
                }
            }
            ArgumentKind::Point => {
                let (marker, ..) =
                    self.resolve(node, outside, context, "a point `body.point`", |r, e| r.marker(e))?;
                Meaning::Thing(Thing::Point(marker))
            }
            ArgumentKind::Body => {
                let (body, ..) =
                    self.resolve(node, outside, context, "the name of a body", |r, e| r.body(e))?;
                Meaning::Thing(Thing::Body(body))
            }
            ArgumentKind::Coordinate => {
                let wanted = "a coordinate `joint.coordinate`";
                let (c, ..) = self.resolve(node, outside, context, wanted, |r, e| r.coordinate(e))?;
                Meaning::Thing(Thing::Coordinate(c))
            }
        })
    }
}

enum Meaning {
    Symbol(Symbol),
    Thing(Thing),
}
