//! Closed mechanisms: published solutions, orders of convergence, every formulation, what happens where there is no solution.
//! One program, since each would compile the runtime for the interpreter again.

mod andrews;
mod bricard;
mod crank_rocker;
mod errors;
mod five_bar;
mod formulations;
mod four_bar;
mod governor;
mod matrix_r;
mod reactions;
mod slider_crank;
mod two_point_masses;
