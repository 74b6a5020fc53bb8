//! The simulations of generated modules: with their own memory, values by name.

use core::hint::black_box;

use mbs_generated::{cart_pole, five_bar, spinning_top};

/// An open tree with an input, by the classical method.
pub(crate) fn the_cart_follows_its_push() -> Option<()> {
    use cart_pole::{Inputs, Parameters, Simulation};
    let mut sim = Simulation::new(Parameters { theta0: black_box(0.05), ..Parameters::default() }).ok()?;
    while sim.t() < 0.5 {
        sim.step(&Inputs { push: black_box(2.0) }).ok()?;
    }
    let (position, tip) = (sim.output().position, sim.marker_positions().pole_tip);
    let refused =
        Simulation::new(Parameters { cart_mass: black_box(-1.0), ..Parameters::default() }).is_err();
    (sim.t() == 0.5 && position == sim.z().rail && position > 0.05 && tip[0] != position && refused)
        .then_some(())
}

/// A case of the model, as it is and with another parameter.
pub(crate) fn the_cart_swings_up() -> Option<()> {
    use cart_pole::{Case, Parameters, Setup, Simulation};
    let mut sim = Simulation::of_case(Case::swing_up).ok()?;
    let heavier = Parameters { cart_mass: black_box(2.0), ..Case::swing_up.parameters() };
    let mut other = Simulation::with(Setup { parameters: heavier, ..Setup::of_case(Case::swing_up) }).ok()?;
    sim.run_to(0.4).ok()?;
    other.run_to(0.4).ok()?;
    // The push of the case moves both, the heavier cart less; the pole hangs at the start.
    (sim.z().rail > other.z().rail && other.z().rail > 0.1 && other.output().angle > 2.0).then_some(())
}

/// Step control, and a copy of the state from which the same bits follow.
pub(crate) fn the_top_can_be_set_back() -> Option<()> {
    let mut sim = spinning_top::Simulation::new(black_box(Default::default())).ok()?;
    sim.run_to(0.1).ok()?;
    let (state, energy) = (sim.state(), sim.energy().total());
    sim.run_to(0.2).ok()?;
    let first = sim.v().to_array();
    sim.restore(state);
    sim.run_to(0.2).ok()?;
    (first == sim.v().to_array() && (sim.energy().total() - energy).abs() < 1e-6 * energy.abs()).then_some(())
}

/// A closed loop by the augmented Lagrangian formulation, and its gradient.
pub(crate) fn the_five_bar_knows_its_gradient() -> Option<()> {
    let parameters = black_box(five_bar::Parameters::default());
    let mut sim = five_bar::Simulation::new(parameters).ok()?;
    sim.run_to(0.1).ok()?;
    let reaction = sim.reactions().P2.force;
    // The cut joint transmits its multipliers.
    let transmitted = (sim.lambda().P2_x.abs() - reaction[0].abs()).abs() < 1e-9;
    let found = five_bar::gradient(&parameters).ok()?;
    // [Lopez Varela, Dopico, Luaces 2023, Table 7]
    let known = (found.psi1.value - 0.72688).abs() < 5e-6 && (found.psi1.by.L_s1 + 4.2288).abs() < 5e-5;
    (transmitted && known).then_some(())
}
