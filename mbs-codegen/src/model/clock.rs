//! What a differentiated run with events needs beside its parameters: its steps end where events happen, so their times have derivatives.
//!
//! Laws that name the time name `t + clock` instead: the derivative by the input `clock`, which is zero, is that by the time. It is a column of
//! the gradient: by the clock of the laws.

use super::expression::{BinaryOp, Scalar};
use super::switches::{PartMut, for_each_part_mut, for_each_part_of_vector};
use super::walk::Part;
use super::{ForceKind, Hold, Input, InputId, Model, SensitivityRef, SpringLaw};
use crate::diagnostics::Span;

impl Model {
    /// Adds the clock, if there are events and laws that name the time.
    pub(crate) fn add_clock(&mut self) {
        let clock = InputId(self.inputs.len() as u32);
        if self.events.is_empty() || !self.name_clock(clock) {
            return;
        }
        self.inputs.push(Input {
            name: "clock.lead".into(),
            description: "by how much the clock of laws that name the time is ahead".into(),
            unit: "s".into(),
            default: 0.0,
            hold: Hold::Zero,
            span: Span::default(),
        });
        self.clock = Some(clock);
    }

    /// What a model with events must be differentiated by, beside what is asked for: the clock, and inputs to which events give values that
    /// have derivatives.
    pub(crate) fn further_columns(&self) -> Vec<SensitivityRef> {
        let mut columns: Vec<SensitivityRef> = self.clock.map(SensitivityRef::Input).into_iter().collect();
        let settings = || self.events.iter().flat_map(|event| &event.settings);
        let set: Vec<InputId> = settings().map(|&(id, _)| id).collect();
        // A value that names an input with a column has derivatives, too.
        loop {
            let moves = |value: &Scalar, columns: &[SensitivityRef]| {
                let mut moves = false;
                value.for_each_part(&mut |part| {
                    moves |= match part {
                        Part::Scalar(Scalar::Input(id)) => {
                            let input = SensitivityRef::Input(*id);
                            !set.contains(id) || columns.contains(&input)
                        }
                        Part::Scalar(part) => !matches!(
                            part,
                            Scalar::Number(_)
                                | Scalar::Binary(..)
                                | Scalar::Negate(_)
                                | Scalar::Call(..)
                                | Scalar::Select(..)
                        ),
                        Part::Vector(_) => true,
                    };
                });
                moves
            };
            let next = settings()
                .find(|(id, value)| !columns.contains(&SensitivityRef::Input(*id)) && moves(value, &columns));
            match next {
                Some(&(id, _)) => columns.push(SensitivityRef::Input(id)),
                None => break,
            }
        }
        columns.retain(|one| !self.sensitivity.contains(one));
        columns
    }

    /// t + clock in the place of t, in forces, constraints and objectives, and then in events. Whether there was a t in a law.
    fn name_clock(&mut self, clock: InputId) -> bool {
        let mut found = false;
        let mut scalar = |e: &mut Scalar| put_clock(e, clock, &mut found);
        for force in &mut self.forces {
            match &mut force.kind {
                ForceKind::Spring { law, .. } | ForceKind::TorsionalSpring { law, .. } => match law {
                    SpringLaw::Linear { stiffness, damping, natural } => {
                        [stiffness, damping, natural].into_iter().for_each(&mut scalar);
                    }
                    SpringLaw::Expression(law) => scalar(law),
                },
                ForceKind::JointForce { value, .. } => scalar(value),
                ForceKind::Force { .. } | ForceKind::Torque { .. } => {}
            }
        }
        for row in self.constraints.iter_mut().flat_map(|constraint| &mut constraint.rows) {
            scalar(&mut row.value);
        }
        for objective in &mut self.objectives {
            scalar(&mut objective.integrand);
            scalar(&mut objective.terminal);
        }
        for force in &mut self.forces {
            if let ForceKind::Force { value, .. } | ForceKind::Torque { value, .. } = &mut force.kind {
                for_each_part_of_vector(value, &mut |part| put_in_part(part, clock, &mut found));
            }
        }
        if found {
            // Events go by the same clock.
            for event in &mut self.events {
                put_clock(&mut event.when, clock, &mut found);
                for (_, value) in &mut event.settings {
                    put_clock(value, clock, &mut found);
                }
                for (_, value) in &mut event.placements {
                    put_clock(value, clock, &mut found);
                }
                for condition in &mut event.conditions {
                    for e in condition.expressions_mut() {
                        put_clock(e, clock, &mut found);
                    }
                }
            }
        }
        found
    }
}

fn put_clock(e: &mut Scalar, clock: InputId, found: &mut bool) {
    match e {
        Scalar::Time => {
            *found = true;
            *e = Scalar::Binary(BinaryOp::Add, Box::new(Scalar::Time), Box::new(Scalar::Input(clock)));
        }
        Scalar::Derivative(of) => put_clock(of, clock, found),
        _ => for_each_part_mut(e, &mut |part| put_in_part(part, clock, found)),
    }
}

fn put_in_part(part: PartMut<'_>, clock: InputId, found: &mut bool) {
    match part {
        PartMut::Scalar(part) => put_clock(part, clock, found),
        PartMut::Vector(part) => for_each_part_of_vector(part, &mut |part| put_in_part(part, clock, found)),
    }
}
