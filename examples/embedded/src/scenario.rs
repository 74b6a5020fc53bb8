//! A control loop, a run with an event, free runs, and gradients.
//!
//! Input: a [`Platform`]. Output: lines of text. A line that begins with `#` says what something costs on this platform; all
//! others are numbers, as hexadecimal bits, and are the same on every platform: `expected.txt`. Firmware, host and a test of the
//! workspace run this file.

pub use super::platform::Platform;

use super::models::{cart_pole, five_bar, five_bar_bouncing, pendulum, single};
use core::hint::black_box;
use core::ops::ControlFlow;
use mbs_runtime::formulation::Node;
use mbs_runtime::simulation::{Differentiable, DifferentiableMethod, Error, Setup, Simulated, gradient_with};
use mbs_runtime::{
    Ali3p, Assembly, Differentiated, Fixed, Gradient, Output, Scalar, Sight, Simulation, Span, State,
    StateDerivatives,
};

/// Steps of every run.
const STEPS: usize = 1000;
/// A line of states after as many steps.
const LINE: usize = 100;
/// Steps of the runs that are differentiated.
const DIFFERENTIATED: usize = 100;

/// Numbers of scratch of runs with events.
const SCRATCH: usize = 4096;

/// Everything. Whether no step failed.
pub fn run(platform: &mut impl Platform) -> bool {
    functions(platform);
    let success = control_loop(platform).is_some() & bouncing(platform).is_some() & table(platform).is_some();
    if let Some(deepest) = platform.deepest_stack() {
        Line::new("# stack").number(deepest as u64).print(platform);
    }
    success
}

/// Elementary functions of both precisions at a thousand arguments each, as one sum.
fn functions(platform: &mut impl Platform) {
    use mbs_runtime::portable as m;
    let (mut double, mut single) = (Checksum::new(), Checksum::new());
    for k in 1..1000_u32 {
        let (x, unit, base) = (0.0137 * f64::from(k) - 4.2, 0.002 * f64::from(k) - 1.0, 0.01 * f64::from(k));
        let of_x =
            [m::sin(x), m::cos(x), m::tan(x), m::atan(x), m::exp(x), m::sinh(x), m::cosh(x), m::tanh(x)];
        let others =
            [m::asin(unit), m::acos(unit), m::atan2(x, base), m::ln(base), m::powf(base, x), m::sqrt(base)];
        of_x.iter().chain(&others).for_each(|value| double.add(value.to_bits()));
        let (x, unit, base) = (x as f32, unit as f32, base as f32);
        let of_x =
            [m::sin(x), m::cos(x), m::tan(x), m::atan(x), m::exp(x), m::sinh(x), m::cosh(x), m::tanh(x)];
        let others =
            [m::asin(unit), m::acos(unit), m::atan2(x, base), m::ln(base), m::powf(base, x), m::sqrt(base)];
        of_x.iter().chain(&others).for_each(|value| single.add(u64::from(value.to_bits())));
    }
    Line::new("functions").hexadecimal(double.0).hexadecimal(single.0).print(platform);
}

/// The pole is balanced at 1 kHz: each period measures, decides on the push, and takes the model a step further.
fn control_loop(platform: &mut impl Platform) -> Option<()> {
    use cart_pole::{Inputs, Parameters, Simulation};
    let mut simulation = Simulation::new(Parameters::default()).ok()?;
    let (mut sum, mut late) = (Checksum::new(), 0);
    for step in 1..=STEPS {
        let (z, v) = (simulation.z(), simulation.v());
        let push = z.rail + 30.0 * z.pivot + 2.0 * v.rail + 6.0 * v.pivot;
        // A step that fails leaves the state as it was: a controller would go on with the last good one, and say so.
        simulation.step(&Inputs { push }).ok()?;
        if !platform.wait() {
            late += 1;
        }
        record(platform, "control", step, &simulation, &mut sum);
    }
    Line::new("# control late").number(late).print(platform);
    Some(())
}

/// The five-bar linkage falls on the ground: a run of ALI3-P with an event, and the gradient through it. Events have no face yet, so
/// this is the interface over slices; a run that needs more memory than it gets says so.
fn bouncing(platform: &mut impl Platform) -> Option<()> {
    use five_bar_bouncing::{DIMS, Model, Parameters};
    let model = Model::new(Parameters::default());
    let mut inputs = model.signals();
    let mut state = [0.0; State::<f64>::len(&DIMS)];
    let mut scratch = [0.0; SCRATCH];
    let steps = Fixed { method: Ali3p::DEFAULT, h: 1e-3 };
    let span = Span { start: 0.0, end: 1.0, output: Output::Steps };
    Assembly::DEFAULT.begin(&model, &mut inputs, span.start, &mut state, &mut scratch).ok()?;
    let (mut sum, mut nodes) = (Checksum::new(), 0);
    let observe = |sight: Sight<'_, Node<'_, f64>, f64>| {
        match sight {
            Sight::Node(node, _) => {
                let motion = node.motion;
                motion.z.iter().chain(motion.zd).for_each(|value| sum.add(value.to_bits()));
                if usize::is_multiple_of(nodes, LINE) {
                    let mut line = Line::new("bouncing").number(nodes as u64).hexadecimal(sum.0);
                    for value in motion.z.iter().chain(motion.zd) {
                        line = line.bits(*value);
                    }
                    line.print(platform);
                }
                nodes += 1;
            }
            Sight::Event(event) => {
                let mut line = Line::new("bouncing event").number(event.event as u64).bits(event.t);
                for impulse in event.impulses {
                    line = line.bits(*impulse);
                }
                line.print(platform);
            }
        }
        ControlFlow::Continue(())
    };
    steps.run_implicit_with_events(&model, &mut inputs, &mut state, &span, &mut scratch, observe).ok()?;

    let mut derivatives = [0.0; StateDerivatives::<f64>::len(&DIMS)];
    let mut gradient = [0.0; Gradient::<f64>::len(&DIMS)];
    let assembly = Assembly::DEFAULT;
    assembly
        .begin_differentiated(&model, &mut inputs, span.start, &mut state, &mut derivatives, &mut scratch)
        .ok()?;
    let observe = |sight: Sight<'_, Node<'_, f64>, f64>| {
        if let Sight::Event(event) = sight {
            let mut line = Line::new("bouncing event by parameters");
            for value in event.t_rho {
                line = line.bits(*value);
            }
            line.print(platform);
        }
        ControlFlow::Continue(())
    };
    let (state, derivatives, found) = (&mut state, &mut derivatives, &mut gradient);
    Differentiated(steps)
        .run_implicit_with_events(
            &model,
            &mut inputs,
            state,
            derivatives,
            &span,
            found,
            &mut scratch,
            observe,
        )
        .ok()?;
    let mut line = Line::new("bouncing gradient");
    for value in gradient {
        line = line.bits(value);
    }
    line.print(platform);
    Some(())
}

/// Free runs and gradients of the small models in both precisions.
fn table(platform: &mut impl Platform) -> Option<()> {
    macro_rules! rows {
        ($($name:literal $($module:ident)::+;)+) => {
            $(
                {
                    use $($module)::+::{Model, Parameters, Simulation};
                    free_run(platform, $name, Simulation::new(Parameters::default()).ok()?)?;
                    gradient::<Model>(platform, $name, &Parameters::default())?;
                }
            )+
        };
    }
    rows! {
        "pendulum f64" pendulum;
        "pendulum f32" single::pendulum;
        "cart_pole f64" cart_pole;
        "cart_pole f32" single::cart_pole;
        "five_bar f64" five_bar;
        "five_bar f32" single::five_bar;
    }
    Some(())
}

#[inline(never)]
fn free_run<M: Simulated, U>(
    platform: &mut impl Platform,
    name: &str,
    mut simulation: Simulation<M, U>,
) -> Option<()> {
    let mut sum = Checksum::new();
    let (mut all, mut most) = (0, 0);
    platform.paint_stack();
    for step in 1..=STEPS {
        let before = platform.instructions();
        simulation.step_by_signals().ok()?;
        if let (Some(before), Some(after)) = (before, platform.instructions()) {
            all += after - before;
            most = most.max(after - before);
        }
        record(platform, name, step, &simulation, &mut sum);
    }
    if let Some(stack) = platform.stack() {
        Line::new("# ").text(name).text(" step stack").number(stack as u64).print(platform);
    }
    if platform.instructions().is_some() {
        let mean = all / STEPS as u64;
        Line::new("# ").text(name).text(" step instructions").number(mean).number(most).print(platform);
    }
    let iterations = simulation.statistics().max_iterations as u64;
    Line::new("# ").text(name).text(" step iterations").number(iterations).print(platform);
    Some(())
}

#[inline(never)]
fn gradient<M: Differentiable>(
    platform: &mut impl Platform,
    name: &str,
    parameters: &M::Parameters,
) -> Option<()>
where
    M::Method: DifferentiableMethod<M>,
{
    let mut setup = Setup::<M>::new(*parameters);
    setup.settings.end = setup.settings.begin + DIFFERENTIATED as f64 * setup.settings.step;
    let mut memory = <M::Memory as mbs_runtime::named::Memory>::ZERO;
    platform.paint_stack();
    let before = platform.instructions();
    let found: Result<M::Gradient, Error<M>> = gradient_with(&setup, black_box(&mut memory));
    let after = platform.instructions();
    let found = mbs_runtime::named::Fields::<M::S>::to_values(&found.ok()?);
    let mut line = Line::new(name).text(" gradient");
    for value in mbs_runtime::named::Memory::values(&found) {
        line = line.bits(*value);
    }
    line.print(platform);
    if let Some(stack) = platform.stack() {
        let bytes = size_of::<M::Memory>() as u64;
        Line::new("# ").text(name).text(" gradient stack").number(stack as u64).number(bytes).print(platform);
    }
    if let (Some(before), Some(after)) = (before, after) {
        let each = (after - before) / DIFFERENTIATED as u64;
        Line::new("# ").text(name).text(" gradient instructions").number(each).print(platform);
    }
    Some(())
}

/// Adds the state to the sum; now and then prints both.
fn record<M: Simulated, U>(
    platform: &mut impl Platform,
    name: &str,
    step: usize,
    simulation: &Simulation<M, U>,
    sum: &mut Checksum,
) {
    let at = simulation.at();
    for value in at.z.iter().chain(at.v) {
        sum.add(value.real().to_bits());
    }
    if step.is_multiple_of(LINE) {
        let mut line = Line::new(name).text(" step").number(step as u64).hexadecimal(sum.0);
        for value in at.z.iter().chain(at.v) {
            line = line.bits(*value);
        }
        line.print(platform);
    }
}

/// FNV-1a over the bits of all states: equal sums mean equal states at every step.
struct Checksum(u64);

impl Checksum {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, bits: u64) {
        for byte in bits.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

/// A line of text in memory of constant size; what does not fit is cut off. Formatting by `core::fmt` could panic.
struct Line {
    text: [u8; 512],
    length: usize,
}

impl Line {
    fn new(text: &str) -> Self {
        Self { text: [0; 512], length: 0 }.text(text)
    }

    fn byte(&mut self, byte: u8) {
        if let Some(place) = self.text.get_mut(self.length) {
            *place = byte;
            self.length += 1;
        }
    }

    fn text(mut self, text: &str) -> Self {
        for byte in text.bytes() {
            self.byte(byte);
        }
        self
    }

    /// In decimal, after a space.
    fn number(mut self, number: u64) -> Self {
        self.byte(b' ');
        // 64 bits have at most twenty digits.
        let (mut digits, mut rest) = ([0; 20], number);
        for digit in digits.iter_mut().rev() {
            *digit = (rest % 10) as u8;
            rest /= 10;
        }
        let mut leads = true;
        for (place, digit) in digits.into_iter().enumerate() {
            leads &= digit == 0 && place < 19;
            if !leads {
                self.byte(b'0' + digit);
            }
        }
        self
    }

    /// In hexadecimal, after a space.
    fn hexadecimal(mut self, bits: u64) -> Self {
        self.byte(b' ');
        for place in (0..16).rev() {
            let digit = (bits >> (4 * place) & 15) as u8;
            self.byte(if digit < 10 { b'0' + digit } else { b'a' - 10 + digit });
        }
        self
    }

    /// The bits of a number, as a double: exact for both precisions.
    fn bits<S: Scalar>(self, number: S) -> Self {
        self.hexadecimal(number.real().to_bits())
    }

    fn print(mut self, platform: &mut impl Platform) {
        self.byte(b'\n');
        let text = self.text.get(..self.length).unwrap_or_default();
        platform.print(str::from_utf8(text).unwrap_or_default());
    }
}
