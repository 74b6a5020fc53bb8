//! Gradients by the continuous adjoint of ALI3-P: the adjoint of the equations of motion and of both projections, derived in continuous
//! time and then discretised by itself. It converges to the same gradient as the discrete one with order two, but is not the derivative of
//! the numbers that a run computes: use it for comparison.
//!
//! | symbol | meaning |
//! |---|---|
//! | M, C, K, r_ρ | r_zdd, r_zd, r_z, r_ρ of the residual r = M zdd + Bᵀλ − Q |
//! | B, G_z, G_v, G_ρ | (Φ_z; A) and the derivatives of (Φdd; Ψd) by z, zd, ρ |
//! | R_z, R_ρ | the derivatives of (Φd; Ψ) by z, ρ |
//! | μ_Φdd = (s₂, t₂), μ_Φd = (s₁, t₁) | adjoints of the projections of accelerations and of velocities, with their multipliers |
//! | μ₁, μ₂, ν | adjoints of zd − v = 0, of r = 0, of (Φdd; Ψd) = 0 |
//!
//! With the integrand g and the symmetric matrix P = [M Bᵀ; B 0], at every instant
//!
//! ```text
//! P (s₂, t₂) = (g_zdd, g_λ)       P (s₁, t₁) = (g_zd − G_vᵀ t₂, 0)
//! a_z = g_z − G_zᵀ t₂ − R_zᵀ t₁   a_v = M s₁   a_vd = M s₂   a_ρ = g_ρ − G_ρᵀ t₂ − R_ρᵀ t₁
//! P (μ₂, ν) = (x_v + a_vd, g_λ)
//! −dμ₁/dt = a_z − Kᵀ μ₂ − G_zᵀ ν
//! −dx_v/dt = μ₁ + a_v − Cᵀ μ₂ − G_vᵀ ν
//! ψ_ρ = ∫ (a_ρ − r_ρᵀ μ₂ − G_ρᵀ ν) dt + μ₁ᵀ z_ρ + x_vᵀ zd_ρ at the start + what the terminal term leaves
//! ```
//!
//! López Varela has μ_Φ of Φ = 0 where ν of Φdd = 0 stands here; both have the same μ₂, and integrating twice by parts gives μ_Φ = d²ν/dt² and
//! x_v − Bᵀν = M μ₂ − a_vd. That form is a differential-algebraic system of index three in (μ₁, μ₂, μ_Φ), which needs time derivatives of M and
//! of μ_Φdd and consistent values at the end (his η); this one is a system of differential equations and needs neither. At the end, with
//! P (s, t) = (w_zdd, w_λ) of the terminal term, μ₁ = w_z − Kᵀ s − G_zᵀ t, x_v = w_zd − Cᵀ s − G_vᵀ t, and w_ρ − r_ρᵀ s − G_ρᵀ t is left.
//!
//! Both are integrated backward over the nodes of the run by the trapezoidal rule, with the matrix of the implicit step transposed:
//! [Wᵀ Gᵀ; B 0] with W = M + h/2 C + h²/4 K and G = B + h/2 G_v + h²/4 G_z.
//!
//! That of matrix R is one of independent coordinates, in the runtime: [`ContinuousAdjoint`].

use super::products::{counting, has_events, span};
use super::{Effort, Found, Start};
use crate::Interpreted;
use crate::dynamics::Dynamics;
use crate::method::{Damping, Method};
use mbs_codegen::model::Simulation;
use mbs_runtime::adjoint::ContinuousAdjoint;
use mbs_runtime::linear::blocks::holonomic_rows;
use mbs_runtime::sensitivity::{MotionValues, ObjectiveValues, ProjectionValues};
use mbs_runtime::{
    Adjoint, AdjointIntegrator, AdjointNode, AdjointStatistics, Constrained, Dims, Fixed, Gradient, Implicit,
    Impulses, Motion, ObjectiveDerivatives, Quantity, Sensitivities, StepError, Stiff, System, Trapezoidal,
};
use nalgebra::DMatrix;
use std::ops::ControlFlow;

type Dense = DMatrix<f64>;

/// A node of the run, kept for the way back.
struct KeptNode {
    t: f64,
    z: Vec<f64>,
    zd: Vec<f64>,
    zdd: Vec<f64>,
    lambda: Vec<f64>,
    u: Vec<f64>,
}

impl KeptNode {
    fn motion(&self) -> Motion<'_, f64> {
        Motion { t: self.t, z: &self.z, zd: &self.zd, zdd: &self.zdd, u: &self.u }
    }
}

/// The gradient of a run by the continuous adjoint, in at most this many bytes: all nodes are kept. The observer sees every step and every
/// node of the way back; where it breaks, the gradient is meaningless.
pub fn run(
    model: &Interpreted,
    method: &Method,
    simulation: &Simulation,
    start: Start,
    memory: usize,
    observe: &mut dyn FnMut(AdjointNode<'_, f64>) -> ControlFlow<()>,
) -> Result<Found, StepError> {
    if has_events(model) {
        let what = "the continuous adjoint does not go through events: choose `adjoint`";
        return Err(StepError::NotDifferentiable { what });
    }
    if model.dims().n_projected > 0 {
        let what = "the continuous equations have no multipliers of projections, which objectives name: choose `adjoint`";
        return Err(StepError::NotDifferentiable { what });
    }
    let method = match *method {
        Method::Ali3p(method) => method,
        Method::Trapezoidal(damping)
            if damping.and_then(|damping| damping.matrix_r) == Some(Implicit::TRAPEZOIDAL) =>
        {
            return independent(model, method, damping, simulation, start, memory, observe);
        }
        _ => {
            let what = "the continuous adjoint is that of ALI3-P with an implicit integrator, or of `matrix_r` with `trapezoidal`: choose one of those, or `adjoint`";
            return Err(StepError::NotDifferentiable { what });
        }
    };
    if method.max_projections == 0 {
        let what = "the continuous adjoint is that of projected motions: leave `projection: none` out, or choose `adjoint`";
        return Err(StepError::NotDifferentiable { what });
    }
    if start.redundant() {
        let what =
            "the continuous adjoint needs constraints that do not depend on each other: choose `adjoint`";
        return Err(StepError::NotDifferentiable { what });
    }
    model.begin_run();
    let dims = model.dims();
    let ali3p = Method::Ali3p(method);
    let (mut state, changes) = start.run_from(model, &ali3p)?;
    let (span, fixed) = (span::<f64>(simulation), Fixed { method, h: simulation.step });
    let steps = Adjoint(fixed).schedule(&dims, &span, usize::MAX)?;
    let each = 1 + 3 * dims.nq + dims.rows() + dims.nu;
    let (needed, numbers) = ((steps.steps + 1).saturating_mul(each), memory / size_of::<f64>());
    if needed > numbers {
        let error = StepError::Length { what: "memory", expected: needed, found: numbers };
        return Err(counting(0, numbers, error));
    }
    let mut nodes: Vec<KeptNode> = Vec::with_capacity(steps.steps + 1);
    let mut scratch = vec![0.0; mbs_runtime::Ali3p::scratch_len(&dims)];
    let statistics =
        fixed.run(model, &mut model.input_signals(), &mut state, &span, &mut scratch, |node| {
            let Motion { t, z, zd, zdd, u } = node.motion;
            let [z, zd, zdd, u, lambda] = [z, zd, zdd, u, node.lambda].map(<[f64]>::to_vec);
            nodes.push(KeptNode { t, z, zd, zdd, lambda, u });
            let (Some(node), number) = (nodes.last(), nodes.len() - 1) else { return ControlFlow::Break(()) };
            match number {
                0 => ControlFlow::Continue(()),
                _ => observe(AdjointNode::Forward { number, t, again: false, z: &node.z, rates: &node.zd }),
            }
        })?;
    let mut sweep = Sweep::new(&dims);
    if !statistics.stopped {
        for (number, node) in nodes.iter().enumerate().rev() {
            let later = nodes.get(number + 1).map(|later| later.t);
            let before = number.checked_sub(1).map(|before| nodes[before].t);
            sweep.node(model, node, before, later)?;
            if sweep.show(node.t, number, observe).is_break() {
                break;
            }
        }
    }
    let p = dims.sensitivity.parameters;
    let [z_rho, zd_rho] = [0, dims.nq]
        .map(|first| Dense::from_row_slice(dims.nq, p, &changes[first * p..(first + dims.nq) * p]));
    // ψ_ρ = ρ̄ + z_ρᵀ μ₁ + zd_ρᵀ x_v
    let gradient = sweep.rho + z_rho.transpose() * sweep.mu + zd_rho.transpose() * sweep.x_v;
    if let Some(bad) = gradient.iter().position(|x| !x.is_finite()).filter(|_| !statistics.stopped) {
        let (t, index) = (simulation.end, bad / p.max(1));
        return Err(StepError::NotFinite { t, h: 0.0, quantity: Quantity::Objective, index });
    }
    Ok(Found {
        objectives: sweep.objectives,
        // By columns: objective after objective.
        derivatives: gradient.as_slice().to_vec(),
        end: state,
        effort: Effort::Implicit(statistics),
        adjoint: Some(AdjointStatistics { run: statistics, recomputed: 0, schedule: steps }),
        events: Vec::new(),
        parameters: p,
    })
}

/// That of a run in independent coordinates.
fn independent(
    model: &Interpreted,
    method: &Method,
    damping: Option<Damping>,
    simulation: &Simulation,
    start: Start,
    memory: usize,
    observe: &mut dyn FnMut(AdjointNode<'_, f64>) -> ControlFlow<()>,
) -> Result<Found, StepError> {
    model.begin_run();
    let (dims, span) = (model.dims(), span::<f64>(simulation));
    let (mut y, changes) = start.run_from(model, method)?;
    let mut choice = model.no_choice();
    let dynamics = &Stiff(&Dynamics::new(model, damping, &mut choice));
    let run = ContinuousAdjoint(Fixed { method: Trapezoidal, h: simulation.step });
    let own = run.gradient_scratch_len(dynamics);
    let all = memory / size_of::<f64>();
    let plan = run.schedule(&dynamics.dims(), &span, all.saturating_sub(own));
    let plan = plan.map_err(|error| counting(own, all, error))?;
    let mut memory = vec![0.0; plan.map_or(0, |plan| plan.memory_len())];
    let (mut scratch, mut gradient) = (vec![0.0; own], vec![0.0; Gradient::<f64>::len(&dims)]);
    let (inputs, seen) = (&mut model.input_signals(), |node: AdjointNode<'_, f64>| observe(node));
    let found = run.gradient(
        dynamics,
        inputs,
        &mut y,
        &changes,
        &span,
        &mut gradient,
        &mut memory,
        &mut scratch,
        seen,
    )?;
    let derivatives = gradient.split_off(dims.n_objectives);
    Ok(Found {
        objectives: gradient,
        derivatives,
        end: y,
        effort: Effort::Explicit(found.run),
        adjoint: Some(found),
        events: Vec::new(),
        parameters: dims.sensitivity.parameters,
    })
}

/// The matrices of an instant.
struct Matrices {
    mass: Dense,
    c: Dense,
    k: Dense,
    b: Dense,
    g_z: Dense,
    g_v: Dense,
    r_z: Dense,
    r_rho: Dense,
    g_rho: Dense,
    rate_rho: Dense,
}

/// A dense matrix of entries at places, with rows from `first` on.
fn put(to: &mut Dense, first: usize, places: &[(u32, u32)], values: &[f64], factor: f64) {
    for (&(i, j), value) in places.iter().zip(values) {
        to[(first + i as usize, j as usize)] += factor * value;
    }
}

impl Matrices {
    fn of(model: &Interpreted, node: &KeptNode) -> Result<Self, mbs_runtime::EvalError> {
        let dims = model.dims();
        let (nq, rows, p, psi) = (dims.nq, dims.rows(), dims.sensitivity.parameters, holonomic_rows(&dims));
        let mut w = vec![0.0; dims.workspace];
        let (mut motion, mut projections) =
            (vec![0.0; dims.sensitivity.newton], vec![0.0; dims.sensitivity.projections]);
        model.linearise(node.motion(), &node.lambda, &mut w, &mut motion)?;
        // Along the motion itself projections change nothing.
        let [none, no_rows] = [nq, rows].map(|len| vec![0.0; len]);
        let impulses = Impulses {
            velocity: &none,
            velocity_multipliers: &no_rows,
            acceleration: &none,
            acceleration_multipliers: &no_rows,
        };
        model.linearise_projections(node.motion(), impulses, &mut w, &mut projections)?;
        let (pattern, places) = (model.pattern(), model.parameter_places());
        let values = MotionValues::of(&pattern, &places, &motion)?;
        let rates = ProjectionValues::of(&pattern, &places, &projections)?;
        let new = Dense::zeros;
        let mut all = Self {
            mass: new(nq, nq),
            c: new(nq, nq),
            k: new(nq, nq),
            b: new(rows, nq),
            g_z: new(rows, nq),
            g_v: new(rows, nq),
            r_z: new(rows, nq),
            r_rho: new(nq, p),
            g_rho: new(rows, p),
            rate_rho: new(rows, p),
        };
        let (tangent, phi, nonholonomic) = (pattern.tangent, pattern.holonomic, pattern.nonholonomic);
        put(&mut all.mass, 0, tangent, values.mass, 1.0);
        put(&mut all.c, 0, tangent, values.by_velocity, 1.0);
        put(&mut all.k, 0, tangent, values.by_position, 1.0);
        put(&mut all.b, 0, phi, values.holonomic, 1.0);
        put(&mut all.b, psi, nonholonomic, values.nonholonomic, 1.0);
        put(&mut all.g_z, 0, phi, rates.accelerations_z, 1.0);
        put(&mut all.g_z, psi, nonholonomic, rates.nonholonomic_rates_z, 1.0);
        // Φdd_zd = 2 Φd_z
        put(&mut all.g_v, 0, phi, rates.rates_z, 2.0);
        put(&mut all.g_v, psi, nonholonomic, rates.nonholonomic_rates_zd, 1.0);
        put(&mut all.r_z, 0, phi, rates.rates_z, 1.0);
        put(&mut all.r_z, psi, nonholonomic, rates.nonholonomic_z, 1.0);
        put(&mut all.r_rho, 0, places.residual, values.residual, 1.0);
        put(&mut all.g_rho, 0, places.accelerations, rates.accelerations, 1.0);
        put(&mut all.rate_rho, 0, places.rates, rates.rates, 1.0);
        Ok(all)
    }

    /// Solves [upper-left, lower-leftᵀ; B, 0] (x, y) = (top, bottom).
    fn solve(
        &self,
        w: &Dense,
        g: &Dense,
        top: &Dense,
        bottom: &Dense,
        t: f64,
    ) -> Result<[Dense; 2], StepError> {
        let (nq, rows, columns) = (self.mass.nrows(), self.b.nrows(), top.ncols());
        let mut matrix = Dense::zeros(nq + rows, nq + rows);
        matrix.view_mut((0, 0), (nq, nq)).copy_from(&w.transpose());
        matrix.view_mut((0, nq), (nq, rows)).copy_from(&g.transpose());
        matrix.view_mut((nq, 0), (rows, nq)).copy_from(&self.b);
        let mut x = Dense::zeros(nq + rows, columns);
        x.view_mut((0, 0), (nq, columns)).copy_from(top);
        x.view_mut((nq, 0), (rows, columns)).copy_from(bottom);
        if !matrix.lu().solve_mut(&mut x) || x.iter().any(|x| !x.is_finite()) {
            let error = mbs_runtime::EvalError::SingularLeading { quantity: Quantity::Coordinate, index: 0 };
            return Err(error.in_step(t, 0.0));
        }
        Ok([x.rows(0, nq).into_owned(), x.rows(nq, rows).into_owned()])
    }

    /// Solves with P.
    fn project(&self, top: &Dense, bottom: &Dense, t: f64) -> Result<[Dense; 2], StepError> {
        self.solve(&self.mass, &self.b, top, bottom, t)
    }
}

/// Derivatives of integrands or terminal terms, a column for each objective.
struct Partials {
    values: Vec<f64>,
    z: Dense,
    zd: Dense,
    zdd: Dense,
    lambda: Dense,
    rho: Dense,
}

impl Partials {
    fn of(model: &Interpreted, node: &KeptNode, terminal: bool) -> Result<Self, mbs_runtime::EvalError> {
        let dims = model.dims();
        let (nq, rows, p, m) = (dims.nq, dims.rows(), dims.sensitivity.parameters, dims.n_objectives);
        let mut w = vec![0.0; dims.workspace];
        let [integrands, terminals] = model.objective_places();
        let (places, mut values) = match terminal {
            true => (terminals, vec![0.0; dims.sensitivity.terminals]),
            false => (integrands, vec![0.0; dims.sensitivity.integrands]),
        };
        match terminal {
            true => model.terminal_derivatives(node.motion(), &node.lambda, &mut w, &mut values)?,
            false => model.integrand_derivatives(node.motion(), &node.lambda, &mut w, &mut values)?,
        }
        let list = ObjectiveValues::of(&dims, places, &values)?;
        let mut all = Dense::zeros(3 * nq + rows + p, m);
        for (&(i, j), &value) in places.iter().zip(list.derivatives) {
            all[(j as usize, i as usize)] += value;
        }
        let bad = |i: usize| !list.values[i].is_finite() || all.column(i).iter().any(|x| !x.is_finite());
        if let Some(index) = (0..m).find(|&i| bad(i)) {
            return Err(mbs_runtime::EvalError::NotFinite { quantity: Quantity::Objective, index });
        }
        let part = |first: usize, len: usize| all.rows(first, len).into_owned();
        Ok(Self {
            values: list.values.to_vec(),
            z: part(0, nq),
            zd: part(nq, nq),
            zdd: part(2 * nq, nq),
            lambda: part(3 * nq, rows),
            rho: part(3 * nq + rows, p),
        })
    }
}

/// The way back.
struct Sweep {
    objectives: Vec<f64>,
    /// μ₁ and x_v at the node that has been reached, a column for each objective.
    mu: Dense,
    x_v: Dense,
    /// −dμ₁/dt and −dx_v/dt there.
    rates: [Dense; 2],
    /// Weights of the parameters, of all nodes and of the last one.
    rho: Dense,
    now: Dense,
    state_rows: usize,
}

impl Sweep {
    fn new(dims: &Dims) -> Self {
        let (nq, p, m) = (dims.nq, dims.sensitivity.parameters, dims.n_objectives);
        let state = || Dense::zeros(nq, m);
        Self {
            objectives: vec![0.0; m],
            mu: state(),
            x_v: state(),
            rates: [state(), state()],
            rho: Dense::zeros(p, m),
            now: Dense::zeros(p, m),
            state_rows: mbs_runtime::adjoint::state_rows(dims),
        }
    }

    /// Goes to a node: the last one if there is no later.
    fn node(
        &mut self,
        model: &Interpreted,
        node: &KeptNode,
        before: Option<f64>,
        later: Option<f64>,
    ) -> Result<(), StepError> {
        let fail = |error: mbs_runtime::EvalError| error.in_step(node.t, 0.0);
        let at = Matrices::of(model, node).map_err(fail)?;
        let g = Partials::of(model, node, false).map_err(fail)?;
        // Weights of the trapezoidal rule.
        let q = 0.5 * (later.unwrap_or(node.t) - before.unwrap_or(node.t));
        for (objective, value) in self.objectives.iter_mut().zip(&g.values) {
            *objective += q * value;
        }
        let [s2, t2] = at.project(&g.zdd, &g.lambda, node.t)?;
        let none = Dense::zeros(g.lambda.nrows(), g.lambda.ncols());
        let [s1, t1] = at.project(&(&g.zd - at.g_v.transpose() * &t2), &none, node.t)?;
        let a_z = &g.z - at.g_z.transpose() * &t2 - at.r_z.transpose() * &t1;
        let (a_v, a_vd) = (&at.mass * s1, &at.mass * s2);
        let a_rho = &g.rho - at.g_rho.transpose() * &t2 - at.rate_rho.transpose() * &t1;

        let mut left = None;
        let [mu2, nu] = match later {
            None => {
                let w = Partials::of(model, node, true).map_err(fail)?;
                for (objective, value) in self.objectives.iter_mut().zip(&w.values) {
                    *objective += value;
                }
                let [s, t] = at.project(&w.zdd, &w.lambda, node.t)?;
                self.mu = &w.z - at.k.transpose() * &s - at.g_z.transpose() * &t;
                self.x_v = &w.zd - at.c.transpose() * &s - at.g_v.transpose() * &t;
                left = Some(&w.rho - at.r_rho.transpose() * &s - at.g_rho.transpose() * &t);
                at.project(&(&self.x_v + &a_vd), &g.lambda, node.t)?
            }
            Some(later) => {
                let half = 0.5 * (later - node.t);
                let (mu, x_v) = (&self.mu + &self.rates[0] * half, &self.x_v + &self.rates[1] * half);
                let w = &at.mass + &at.c * half + &at.k * (half * half);
                let rows = &at.b + &at.g_v * half + &at.g_z * (half * half);
                let top = &x_v + &a_vd + (&a_v + &mu + &a_z * half) * half;
                let solution = at.solve(&w, &rows, &top, &g.lambda, node.t)?;
                let [mu2, nu] = &solution;
                self.mu = mu + (&a_z - at.k.transpose() * mu2 - at.g_z.transpose() * nu) * half;
                self.x_v = x_v + (&self.mu + &a_v - at.c.transpose() * mu2 - at.g_v.transpose() * nu) * half;
                solution
            }
        };
        self.rates = [
            &a_z - at.k.transpose() * &mu2 - at.g_z.transpose() * &nu,
            &self.mu + &a_v - at.c.transpose() * &mu2 - at.g_v.transpose() * &nu,
        ];
        self.now = (a_rho - at.r_rho.transpose() * &mu2 - at.g_rho.transpose() * &nu) * q;
        if let Some(left) = left {
            self.now += left;
        }
        self.rho += &self.now;
        Ok(())
    }

    /// Shows a node, its weights in the layout of a state's derivatives.
    fn show(
        &self,
        t: f64,
        number: usize,
        observe: &mut dyn FnMut(AdjointNode<'_, f64>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let columns = self.mu.ncols();
        let mut state = vec![0.0; self.state_rows * columns];
        let by_rows = |matrix: &Dense| matrix.transpose().as_slice().to_vec();
        let weights = [by_rows(&self.mu), by_rows(&self.x_v)].concat();
        state[..weights.len()].copy_from_slice(&weights);
        observe(AdjointNode::Backward { number, t, state: &state, rho: &by_rows(&self.now), step: &[] })
    }
}
