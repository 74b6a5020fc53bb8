//! What a differentiated run with events needs beside its parameters: its steps end where events happen, so their times have derivatives.
//!
//! Laws that name the time name `t + clock` instead: the derivative by the input `clock`, which is zero, is that by the time. It is a column of
//! the gradient: by the clock of the laws.

use super::expression::{BinaryOp, Scalar};
use super::walk::Part;
use super::{EventCondition, Hold, Input, InputId, Model, SensitivityRef};
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
        let put_clock = |e: &mut Scalar| {
            let is_time = matches!(e, Scalar::Time);
            if is_time {
                *e = Scalar::Binary(BinaryOp::Add, Box::new(Scalar::Time), Box::new(Scalar::Input(clock)));
            }
            is_time
        };
        self.for_each_law_scalar_mut(&mut |e| found |= put_clock(e));
        if found {
            // Events use the same clock.
            for event in &mut self.events {
                let values = event.settings.iter_mut().map(|(_, value)| value);
                let values = values.chain(event.placements.iter_mut().map(|(_, value)| value));
                let conditions = event.conditions.iter_mut().flat_map(EventCondition::expressions_mut);
                for e in values.chain(conditions).chain([&mut event.when]) {
                    e.for_each_scalar_mut(&mut |e| {
                        put_clock(e);
                    });
                }
            }
        }
        found
    }
}
