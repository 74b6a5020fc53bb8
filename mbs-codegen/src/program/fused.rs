//! Parts of an implicit step and stages of a differentiated run, each as one bundle: everything that two of the separate bundles have in common is
//! computed once (kinematics, sines and cosines, M and Φ_z), and matrices and right-hand sides do not go through memory. Products and solutions
//! with a column for each parameter are written out: their zeros cost nothing.
//!
//! Input: equations and lists of derivatives. Output: specifications, or none if the model is large: its separate bundles are needed
//! for whatever is not usual (rows that are not active or depend on each other, pivots that fail, other directions than the parameters), so that
//! the text would grow by half, and what could be saved is small against the tangent.

use super::equations::Equations;
use super::{BundleKind, ProgramError};
use crate::bundle::Specification;
use crate::constrained::{
    CoordinateDerivatives, CoordinateForm, Correction, JointDerivatives, JointForm, JointPlaces,
    LeadingMatrix, ParameterPlaces, Pattern, Sections, Solution, Sparse,
};
use crate::graph::{BinaryOp, ExprId, Graph, Node, Tangents};
use crate::sparse::Factors;
use crate::symbols::Group;
use hashbrown::HashMap;

/// Most nodes of the graph under Newton's matrix of steps that are fused: a bound of the text.
const MOST_NODES: usize = 6000;

/// Most nodes of the graph under a bundle of derivatives: lists, factors, and the work for all columns.
const MOST_NODES_OF_DERIVATIVES: usize = 9000;

impl Equations<'_, '_, '_> {
    /// The bundles of the family, if they pay.
    pub(super) fn fused_steps(
        &mut self,
        form: &CoordinateForm,
        leading: &LeadingMatrix,
    ) -> Result<Vec<Specification>, ProgramError> {
        let g = &mut *self.g;
        if g.reachable(&form.newton).len() > MOST_NODES {
            return Ok(Vec::new());
        }
        let rows = form.constraints.len();
        let holonomic = rows - self.rows.nonholonomic();
        let small: Vec<ExprId> = (0..rows as u32).map(|k| g.symbol(Group::Compliance, k)).collect();

        // [W Φ_zᵀ Aᵀ; Φ_z −E; A' −E'] x = −(r, Φ/(βh²), Ψ/(γh))
        let newton = leading.factor(g, &form.newton, &small);
        let mut rhs: Vec<ExprId> = form.residual.iter().map(|&r| g.neg(r)).collect();
        let [by_velocity, by_position] = [0, 1].map(|i| {
            let (one, weight) = (g.one(), g.symbol(Group::Weights, i));
            g.div(one, weight)
        });
        for (k, &value) in form.constraints.iter().enumerate() {
            let scaled = g.mul(value, if k < holonomic { by_position } else { by_velocity });
            rhs.push(g.neg(scaled));
        }
        let x = newton.solve(g, rhs.clone());
        let corrected = leading.again.solve(g, rhs);

        // [M B^T; B −E] (d, σ) = (0, −(Φd, Ψ)), refined; then alike for accelerations at the velocities found.
        let mass = leading.factor(g, &form.projection, &small);
        let b = projection_rows(form, holonomic);
        let (velocity, phid) = projected(g, &mass, &small, &b, &form.rates);
        let moved = moved(g, Group::Zd, &velocity[..form.residual.len()]);
        let accelerations = g.substitute(&form.accelerations, &moved);
        let (acceleration, phidd) = projected(g, &mass, &small, &b, &accelerations);

        let phi = form.constraints.clone();
        let newton_step = vec![phi.clone(), form.newton.clone(), newton.values(), x, newton.pivots()];
        let project_step = vec![velocity, acceleration, phid, phidd, mass.pivots()];
        let fused = [
            (BundleKind::NewtonStep, newton_step),
            (BundleKind::CorrectStep, vec![phi, corrected]),
            (BundleKind::ProjectStep, project_step),
        ];
        let cost: usize = fused.iter().map(|(_, results)| cost(g, &results.concat())).sum();
        let of_separate = cost_of_separate(g, form, leading);
        if 10 * cost > 9 * of_separate {
            return Ok(Vec::new());
        }
        fused.into_iter().map(|(kind, results)| self.specify(kind, results)).collect()
    }
}

/// What a bundle costs: operations, values that it reads, and values that it writes.
fn cost(g: &Graph, results: &[ExprId]) -> usize {
    let reads = |&id: &ExprId| matches!(g.node(id), Node::Symbol(group, _) if group != Group::Parameters);
    g.operations_per_call(results)
        + g.reachable(results).iter().filter(|id| reads(id)).count()
        + results.len()
}

/// What a step of two iterations costs by separate bundles: a tangent, two residuals, and both projections, each refined once. Fused bundles are to
/// save a tenth of it, or their text is not worth it.
fn cost_of_separate(g: &Graph, form: &CoordinateForm, leading: &LeadingMatrix) -> usize {
    let of = |roots: &[&[ExprId]]| cost(g, &roots.concat());
    let (residual, constraints) = (&form.residual[..], &form.constraints[..]);
    of(&[residual, constraints, &form.newton])
        + of(&[residual, constraints])
        + of(&[&form.projection])
        + of(&[&form.rates])
        + of(&[&form.accelerations])
        + 2 * of(&[&leading.factors])
        + 6 * of(&[&leading.solution])
}

/// Right-hand sides by rows: a row has a value for each column, and an operation stands side by side for all columns.
struct Columns<'g> {
    g: &'g mut Graph,
    b: Vec<Vec<ExprId>>,
}

impl<'g> Columns<'g> {
    fn new(g: &'g mut Graph, rows: usize, columns: usize) -> Self {
        let b = vec![vec![g.zero(); columns]; rows];
        Columns { g, b }
    }

    /// b −= B x, or b += B x, in the rows from `first` on.
    fn add(
        &mut self,
        minus: bool,
        first: usize,
        places: &[(u32, u32)],
        values: &[ExprId],
        x: &[Vec<ExprId>],
    ) {
        for (&(i, j), &value) in places.iter().zip(values) {
            for (b, &x) in self.b[first + i as usize].iter_mut().zip(&x[j as usize]) {
                let product = self.g.mul(value, x);
                *b = if minus { self.g.sub(*b, product) } else { self.g.add(*b, product) };
            }
        }
    }

    /// b −= Bᵀ y, or b += Bᵀ y.
    fn add_transposed(&mut self, minus: bool, places: &[(u32, u32)], values: &[ExprId], y: &[Vec<ExprId>]) {
        let turned: Vec<(u32, u32)> = places.iter().map(|&(i, j)| (j, i)).collect();
        self.add(minus, 0, &turned, values, y);
    }

    /// b −= (derivatives by the parameters), a column for each.
    fn subtract_parameters(&mut self, first: usize, places: &[(u32, u32)], values: &[ExprId]) {
        for (&(i, k), &value) in places.iter().zip(values) {
            let b = &mut self.b[first + i as usize][k as usize];
            *b = self.g.sub(*b, value);
        }
    }
}

/// The symbols of a matrix that comes in, by rows.
fn given(g: &mut Graph, group: Group, rows: usize, columns: usize) -> Vec<Vec<ExprId>> {
    let row =
        |i: usize, g: &mut Graph| (0..columns).map(|k| g.symbol(group, (i * columns + k) as u32)).collect();
    (0..rows).map(|i| row(i, g)).collect()
}

/// x + a y, by rows.
fn moved_by(g: &mut Graph, x: &[Vec<ExprId>], a: ExprId, y: &[Vec<ExprId>]) -> Vec<Vec<ExprId>> {
    let mut sums = x.to_vec();
    for (sums, y) in sums.iter_mut().zip(y) {
        for (sum, &y) in sums.iter_mut().zip(y) {
            let change = g.mul(a, y);
            *sum = g.add(*sum, change);
        }
    }
    sums
}

/// A bordered system with its upper right part (Φ_zᵀ, Aᵀ) and its lower left part at the places of a pattern.
struct System<'a> {
    pattern: &'a Pattern,
    tangent: &'a [ExprId],
    upper: [&'a [ExprId]; 2],
    lower: [&'a [ExprId]; 2],
    /// Whether the tangent is to be read by columns.
    transposed: bool,
}

impl System<'_> {
    /// What solutions leave of each equation, columns added up, and the size of what it adds up, where all coordinates count as the largest of
    /// them: what the runtime's `residual` asks of solutions by lists.
    fn left(
        &self,
        g: &mut Graph,
        nq: usize,
        holonomic: usize,
        b: &[Vec<ExprId>],
        x: &[Vec<ExprId>],
    ) -> [Vec<ExprId>; 2] {
        let Self { pattern, tangent, upper, lower, transposed } = self;
        let mut sum = |rows: &[Vec<ExprId>]| rows.iter().map(|row| g.sum(row)).collect::<Vec<_>>();
        let (b, x) = (sum(b), sum(x));
        let magnitudes: Vec<ExprId> = x.iter().map(|&x| g.abs(x)).collect();
        let first = magnitudes[..nq].iter().copied().reduce(|a, b| g.binary(BinaryOp::Max, a, b));
        let largest = first.unwrap_or_else(|| g.zero());
        let (mut left, mut by_coordinates) = (b.clone(), vec![g.zero(); b.len()]);
        let mut by_multipliers = vec![g.zero(); b.len()];
        for (&(i, j), &value) in pattern.tangent.iter().zip(*tangent) {
            let (i, j) = if *transposed { (j as usize, i as usize) } else { (i as usize, j as usize) };
            let (product, size) = (g.mul(value, x[j]), g.abs(value));
            left[i] = g.sub(left[i], product);
            by_coordinates[i] = g.add(by_coordinates[i], size);
        }
        let places = [(nq, &pattern.holonomic), (nq + holonomic, &pattern.nonholonomic)];
        for ((first, places), (upper, lower)) in places.into_iter().zip(upper.iter().zip(lower)) {
            for (&(k, j), (&upper, &lower)) in places.iter().zip(upper.iter().zip(*lower)) {
                let (k, j) = (first + k as usize, j as usize);
                let (product, size) = (g.mul(upper, x[k]), g.abs(upper));
                let size = g.mul(size, magnitudes[k]);
                left[j] = g.sub(left[j], product);
                by_multipliers[j] = g.add(by_multipliers[j], size);
                let (product, size) = (g.mul(lower, x[j]), g.abs(lower));
                left[k] = g.sub(left[k], product);
                by_coordinates[k] = g.add(by_coordinates[k], size);
            }
        }
        let sizes = by_coordinates.into_iter().zip(by_multipliers).map(|(coordinates, multipliers)| {
            let product = g.mul(largest, coordinates);
            g.add(product, multipliers)
        });
        let sizes = sizes.collect();
        [left, sizes]
    }
}

/// What the derivative of a step and its transpose have in common: lists at the accepted instant, the projections' with what these did, and both
/// matrices with their factors.
struct StepLists<'a> {
    pattern: &'a Pattern,
    places: &'a ParameterPlaces,
    motion: &'a Sections,
    projections: Sections,
    /// W = M + γh C + βh² K, A' = A + (βh/γ) Ψ_z
    w: Vec<ExprId>,
    a_newton: Vec<ExprId>,
    newton: Factors,
    mass: Factors,
    /// Φdd_zd = 2 Φd_z
    doubled: Vec<ExprId>,
    /// γh, βh²
    velocity: ExprId,
    position: ExprId,
    nq: usize,
    /// First nonholonomic row, among all equations.
    psi: usize,
    rows: usize,
}

impl<'a> StepLists<'a> {
    fn new(
        g: &mut Graph,
        form: &'a CoordinateForm,
        leading: &LeadingMatrix,
        derivatives: &'a CoordinateDerivatives,
        nonholonomic: usize,
    ) -> Self {
        let CoordinateDerivatives { newton: motion, projections, places, .. } = derivatives;
        let (nq, rows) = (form.residual.len(), form.constraints.len());
        let small: Vec<ExprId> = (0..rows as u32).map(|k| g.symbol(Group::Compliance, k)).collect();
        let [velocity, position, ratio] = [0, 1, 2].map(|i| g.symbol(Group::Weights, i));

        // Projections are differentiated at zd = zd* + d, zdd = zdd* + e.
        let mut instant = HashMap::new();
        for (group, impulse) in
            [(Group::Zd, Group::VelocityImpulse), (Group::Zdd, Group::AccelerationImpulse)]
        {
            let changes: Vec<ExprId> = (0..nq as u32).map(|i| g.symbol(impulse, i)).collect();
            instant.extend(moved(g, group, &changes));
        }
        let mut projections = projections.clone();
        projections.substitute(g, &instant);

        let [m, c, k] = ["mass", "by_velocity", "by_position"].map(|name| motion.of(name));
        let [phi_z, a, psi_z] = ["holonomic", "nonholonomic", "nonholonomic_z"].map(|name| motion.of(name));
        let mut w = Vec::new();
        for ((&m, &c), &k) in m.iter().zip(c).zip(k) {
            let (by_velocity, by_position) = (g.mul(velocity, c), g.mul(position, k));
            let sum = g.add(m, by_velocity);
            w.push(g.add(sum, by_position));
        }
        let mut a_newton = Vec::new();
        for (&a, &psi_z) in a.iter().zip(psi_z) {
            let product = g.mul(ratio, psi_z);
            a_newton.push(g.add(a, product));
        }
        let newton = leading.factor(g, &[&w[..], phi_z, a, &a_newton].concat(), &small);
        let mass = leading.factor(g, &[m, phi_z, a, a].concat(), &small);
        let two = g.constant(2.0);
        let doubled = projections.of("rates_z").iter().map(|&value| g.mul(two, value)).collect();
        let psi = nq + rows - nonholonomic;
        let pattern = &form.pattern;
        Self {
            pattern,
            places,
            motion,
            projections,
            w,
            a_newton,
            newton,
            mass,
            doubled,
            velocity,
            position,
            nq,
            psi,
            rows,
        }
    }

    /// Multiplies the rows of constraints, from the first one on, by 1/(βh²) and 1/(γh).
    fn scale_rows(&self, g: &mut Graph, rows: &mut [Vec<ExprId>]) {
        let one = g.one();
        let [by_position, by_velocity] = [self.position, self.velocity].map(|weight| g.div(one, weight));
        for (row, values) in (self.nq..).zip(rows) {
            for value in values {
                *value = g.mul(*value, if row < self.psi { by_position } else { by_velocity });
            }
        }
    }

    /// [W Φ_zᵀ Aᵀ; Φ_z; A'] or its transpose.
    fn newton_system(&self, transposed: bool) -> System<'_> {
        let [phi_z, a] = ["holonomic", "nonholonomic"].map(|name| self.motion.of(name));
        let (above, below) = ([phi_z, a], [phi_z, &self.a_newton[..]]);
        let (upper, lower) = if transposed { (below, above) } else { (above, below) };
        System { pattern: self.pattern, tangent: &self.w, upper, lower, transposed }
    }

    /// [M Bᵀ; B]
    fn mass_system(&self) -> System<'_> {
        let [m, phi_z, a] = ["mass", "holonomic", "nonholonomic"].map(|name| self.motion.of(name));
        let border = [phi_z, a];
        System { pattern: self.pattern, tangent: m, upper: border, lower: border, transposed: false }
    }

    /// z', zd', zdd', λ' and δ for all parameters from p' and q', and what the solutions leave: the equations of the runtime's
    /// `sensitivity/step.rs`.
    fn derivative(&self, g: &mut Graph, parameters: usize) -> Vec<Vec<ExprId>> {
        let Self { pattern, places, motion, projections, nq, psi, rows, .. } = self;
        let (nq, psi, rows) = (*nq, *psi, *rows);
        let [m, c, k] = ["mass", "by_velocity", "by_position"].map(|name| motion.of(name));
        let [phi_z, a, psi_z] = ["holonomic", "nonholonomic", "nonholonomic_z"].map(|name| motion.of(name));
        let p = given(g, Group::PositionColumns, nq, parameters);
        let q = given(g, Group::VelocityColumns, nq, parameters);

        // −K p − C q − r_ρ, −(Φ_z p + Φ_ρ)/(βh²), −(A q + Ψ_z p + Ψ_ρ)/(γh)
        let mut columns = Columns::new(g, nq + rows, parameters);
        columns.add(true, 0, &pattern.tangent, k, &p);
        columns.add(true, 0, &pattern.tangent, c, &q);
        columns.subtract_parameters(0, &places.residual, motion.of("residual"));
        columns.add(true, nq, &pattern.holonomic, phi_z, &p);
        columns.add(true, psi, &pattern.nonholonomic, a, &q);
        columns.add(true, psi, &pattern.nonholonomic, psi_z, &p);
        columns.subtract_parameters(nq, &places.constraints, motion.of("constraints"));
        let Columns { g, mut b } = columns;
        self.scale_rows(g, &mut b[nq..]);
        let x = self.newton.solve_columns(g, b.clone());
        let [left, sizes] = self.newton_system(false).left(g, nq, psi - nq, &b, &x);
        let (delta, lambda) = x.split_at(nq);
        let z = moved_by(g, &p, self.position, delta);
        let zd = moved_by(g, &q, self.velocity, delta);

        // M zd*' − (M d + Bᵀσ)_z z' − (M d + Bᵀσ)_ρ, −(Φd; Ψ)_z z' − (Φd; Ψ)_ρ
        let mut columns = Columns::new(g, nq + rows, parameters);
        columns.add(false, 0, &pattern.tangent, m, &zd);
        columns.add(true, 0, &pattern.tangent, projections.of("velocity_impulse"), &z);
        columns.subtract_parameters(0, &places.impulse, projections.of("velocity_impulse_rho"));
        columns.add(true, nq, &pattern.holonomic, projections.of("rates_z"), &z);
        columns.add(true, psi, &pattern.nonholonomic, projections.of("nonholonomic_z"), &z);
        columns.subtract_parameters(nq, &places.rates, projections.of("rates"));
        let Columns { g, b } = columns;
        let mut zd = self.mass.solve_columns(g, b.clone());
        let [left_of_projection, sizes_of_projection] = self.mass_system().left(g, nq, psi - nq, &b, &zd);
        zd.truncate(nq);

        // M zdd*' − (M e + Bᵀκ)_z z' − (M e + Bᵀκ)_ρ, −(Φdd; Ψd)_z z' − (Φdd; Ψd)_zd zd' − (Φdd; Ψd)_ρ
        let mut columns = Columns::new(g, nq + rows, parameters);
        columns.add(false, 0, &pattern.tangent, m, delta);
        columns.add(true, 0, &pattern.tangent, projections.of("acceleration_impulse"), &z);
        columns.subtract_parameters(0, &places.impulse, projections.of("acceleration_impulse_rho"));
        columns.add(true, nq, &pattern.holonomic, projections.of("accelerations_z"), &z);
        columns.add(true, nq, &pattern.holonomic, &self.doubled, &zd);
        columns.add(true, psi, &pattern.nonholonomic, projections.of("nonholonomic_rates_z"), &z);
        columns.add(true, psi, &pattern.nonholonomic, projections.of("nonholonomic_rates_zd"), &zd);
        columns.subtract_parameters(nq, &places.accelerations, projections.of("accelerations"));
        let Columns { g, b } = columns;
        let y = self.mass.solve_columns(g, b);
        let (zdd, kappa) = y.split_at(nq);
        let one = g.one();
        let lambda = moved_by(g, lambda, one, kappa);

        let mut results: Vec<Vec<ExprId>> =
            [&z[..], &zd, zdd, &lambda, delta].iter().map(|rows| rows.concat()).collect();
        results.push([left, left_of_projection].concat());
        results.push([sizes, sizes_of_projection].concat());
        results.push(self.newton.pivots());
        results
    }

    /// The same map transposed, stages in reverse: p̄, q̄, ρ̄ from the weights of z, zd, zdd, λ and δ in a column for each objective, and what the
    /// solutions leave.
    fn transposed(&self, g: &mut Graph, parameters: usize, objectives: usize) -> Vec<Vec<ExprId>> {
        let Self { pattern, places, motion, projections, nq, psi, rows, .. } = self;
        let (nq, psi, rows) = (*nq, *psi, *rows);
        let [m, c, k] = ["mass", "by_velocity", "by_position"].map(|name| motion.of(name));
        let [phi_z, a, psi_z] = ["holonomic", "nonholonomic", "nonholonomic_z"].map(|name| motion.of(name));
        let z = given(g, Group::PositionWeights, nq, objectives);
        let zd = given(g, Group::VelocityWeights, nq, objectives);
        let zdd = given(g, Group::AccelerationWeights, nq, objectives);
        let lambda = given(g, Group::MultiplierWeights, rows, objectives);
        let delta = given(g, Group::CorrectionWeights, nq, objectives);

        // [M Bᵀ; B] (y, η) = (zdd̄, λ̄)
        let last = [&zdd[..], &lambda].concat();
        let y_last = self.mass.solve_columns(g, last.clone());
        let (y, eta) = y_last.split_at(nq);
        let (phi, eta_psi) = eta.split_at(psi - nq);
        // zd̄ − Φdd_zdᵀ η − Ψd_zdᵀ η'
        let mut columns = Columns { g, b: zd };
        columns.add_transposed(true, &pattern.holonomic, &self.doubled, phi);
        columns.add_transposed(true, &pattern.nonholonomic, projections.of("nonholonomic_rates_zd"), eta_psi);
        let Columns { g, b: zd } = columns;

        // [M Bᵀ; B] (x, ξ) = (zd̄, 0)
        let mut first = zd;
        first.extend(vec![vec![g.zero(); objectives]; rows]);
        let x_first = self.mass.solve_columns(g, first.clone());
        let (x, xi) = x_first.split_at(nq);
        let (xi_phi, xi_psi) = xi.split_at(psi - nq);
        let both = |first: &[Vec<ExprId>], last: &[Vec<ExprId>]| -> Vec<Vec<ExprId>> {
            first.iter().zip(last).map(|(first, last)| [&first[..], last].concat()).collect()
        };
        let (b, both) = (both(&first, &last), both(&x_first, &y_last));
        let [left_of_projections, sizes_of_projections] = self.mass_system().left(g, nq, psi - nq, &b, &both);

        // z̄ − (M e + Bᵀκ)_zᵀ y − (Φdd; Ψd)_zᵀ η − (M d + Bᵀσ)_zᵀ x − (Φd; Ψ)_zᵀ ξ
        let mut columns = Columns { g, b: z };
        columns.add_transposed(true, &pattern.tangent, projections.of("acceleration_impulse"), y);
        columns.add_transposed(true, &pattern.holonomic, projections.of("accelerations_z"), phi);
        columns.add_transposed(true, &pattern.nonholonomic, projections.of("nonholonomic_rates_z"), eta_psi);
        columns.add_transposed(true, &pattern.tangent, projections.of("velocity_impulse"), x);
        columns.add_transposed(true, &pattern.holonomic, projections.of("rates_z"), xi_phi);
        columns.add_transposed(true, &pattern.nonholonomic, projections.of("nonholonomic_z"), xi_psi);
        let Columns { g, b: z } = columns;
        // zd*̄ = Mᵀ x, δ̄ + Mᵀ y + γh zd*̄ + βh² z̄
        let mut columns = Columns::new(g, nq, objectives);
        columns.add_transposed(false, &pattern.tangent, m, x);
        let Columns { g, b: zd_star } = columns;
        let mut columns = Columns { g, b: delta };
        columns.add_transposed(false, &pattern.tangent, m, y);
        let Columns { g, b: delta } = columns;
        let delta = moved_by(g, &delta, self.velocity, &zd_star);
        let delta = moved_by(g, &delta, self.position, &z);

        // [W Φ_zᵀ Aᵀ; Φ_z; A']ᵀ (u, μ) = (δ̄, λ̄)
        let b = [delta, lambda].concat();
        let mut u = self.newton.solve_transposed_columns(g, b.clone());
        let [left, sizes] = self.newton_system(true).left(g, nq, psi - nq, &b, &u);
        self.scale_rows(g, &mut u[nq..]);
        let (u, mu) = u.split_at(nq);
        let (mu_phi, mu_psi) = mu.split_at(psi - nq);
        // p̄ = z̄ − Kᵀ u − Φ_zᵀ μ − Ψ_zᵀ μ'
        let mut columns = Columns { g, b: z };
        columns.add_transposed(true, &pattern.tangent, k, u);
        columns.add_transposed(true, &pattern.holonomic, phi_z, mu_phi);
        columns.add_transposed(true, &pattern.nonholonomic, psi_z, mu_psi);
        let Columns { g, b: p } = columns;
        // q̄ = zd*̄ − Cᵀ u − Aᵀ μ'
        let mut columns = Columns { g, b: zd_star };
        columns.add_transposed(true, &pattern.tangent, c, u);
        columns.add_transposed(true, &pattern.nonholonomic, a, mu_psi);
        let Columns { g, b: q } = columns;
        // ρ̄ = −(derivatives by ρ)ᵀ (weights of their equations)
        let mut columns = Columns::new(g, parameters, objectives);
        let impulses = [("acceleration_impulse_rho", y), ("velocity_impulse_rho", x)];
        for (name, weights) in impulses {
            columns.add_transposed(true, &places.impulse, projections.of(name), weights);
        }
        columns.add_transposed(true, &places.accelerations, projections.of("accelerations"), eta);
        columns.add_transposed(true, &places.rates, projections.of("rates"), xi);
        columns.add_transposed(true, &places.residual, motion.of("residual"), u);
        columns.add_transposed(true, &places.constraints, motion.of("constraints"), mu);
        let rho = columns.b;

        let mut results: Vec<Vec<ExprId>> = [p, q, rho].iter().map(|rows| rows.concat()).collect();
        results.push([left, left_of_projections].concat());
        results.push([sizes, sizes_of_projections].concat());
        results.push(self.newton.pivots());
        results
    }
}

impl Equations<'_, '_, '_> {
    /// The derivative of a step with both projections for all parameters, and its transpose for all objectives, as far as they pay.
    pub(super) fn derivative_of_step(
        &mut self,
        derivatives: &CoordinateDerivatives,
    ) -> Result<Vec<Specification>, ProgramError> {
        let (parameters, objectives) = (self.seeds.len(), self.mechanism.model.objectives.len());
        // In runs past events the size of a step has derivatives, too: they are made of lists.
        let usual = parameters > 0 && self.mechanism.model.events.is_empty();
        // Nor do they know what objectives may read of the projections.
        let usual = usual && !self.structure.judges_projections;
        let form = match &self.coordinate_form {
            Some(form) if self.fuses && usual => form.clone(),
            _ => return Ok(Vec::new()),
        };
        let leading = form.leading.as_ref().ok_or(ProgramError::Singular)?;
        let pattern = &form.pattern;
        let g = &mut *self.g;
        let constraints = pattern.holonomic.len() + pattern.nonholonomic.len();
        let column = 10 * pattern.tangent.len() + 12 * constraints + 6 * leading.factors.len();
        let lists = [&derivatives.newton.expressions[..], &derivatives.projections.expressions].concat();
        let room = MOST_NODES_OF_DERIVATIVES.saturating_sub(g.reachable(&lists).len());
        if g.reachable(&form.newton).len() > MOST_NODES {
            return Ok(Vec::new());
        }
        let nonholonomic = self.rows.nonholonomic();
        let lists = StepLists::new(g, &form, leading, derivatives, nonholonomic);
        let mut all = Vec::new();
        if parameters * column <= room {
            all.push((BundleKind::DifferentiateStep, lists.derivative(g, parameters)));
        }
        if objectives > 0 && objectives * column <= room {
            all.push((BundleKind::TransposeStep, lists.transposed(g, parameters, objectives)));
        }
        all.into_iter().map(|(kind, results)| self.specify(kind, results)).collect()
    }

    /// Accelerations and integrands with their derivatives for all parameters, and the transposed derivatives for all objectives, as far as they
    /// pay. `integrands`: values and derivatives by θ, v, vd, λ, ρ.
    pub(super) fn derivative_of_rate(
        &mut self,
        form: &JointForm,
        derivatives: &JointDerivatives,
        integrands: &(Vec<ExprId>, Sparse),
    ) -> Result<Vec<Specification>, ProgramError> {
        let (parameters, objectives) = (self.seeds.len(), self.mechanism.model.objectives.len());
        let rows = self.rows.kept.len();
        // Pivots of a tree's mass matrix are judged by their sign, where forward dynamics leaves them.
        let judged = self.structure.judges_projections;
        if !self.fuses || parameters == 0 || rows == 0 || judged {
            return Ok(Vec::new());
        }
        let JointDerivatives { values, places, factors, .. } = derivatives;
        let column = 4 * (places.tangent.len() + places.rows.len()) + 4 * factors.len();
        let lists = [&values.expressions[..], factors, &integrands.1.entries].concat();
        let room = MOST_NODES_OF_DERIVATIVES.saturating_sub(self.g.reachable(&lists).len());
        let mut all = Vec::new();
        if parameters * column <= room {
            all.push((
                BundleKind::DifferentiateRate,
                self.differentiated_rate(form, derivatives, integrands),
            ));
        }
        // On the way back past events the size of a step has weights, too.
        let usual = objectives > 0 && self.mechanism.model.events.is_empty();
        if usual && objectives * column <= room {
            all.push((BundleKind::TransposeRate, self.transposed_rate(form, derivatives, integrands)));
        }
        all.into_iter().map(|(kind, results)| self.specify(kind, results)).collect()
    }

    fn differentiated_rate(
        &mut self,
        form: &JointForm,
        JointDerivatives { values, places, .. }: &JointDerivatives,
        integrands: &(Vec<ExprId>, Sparse),
    ) -> Vec<Vec<ExprId>> {
        let (parameters, nv, rows) = (self.seeds.len(), self.mechanism.tree.nv, self.rows.kept.len());
        // As they are without derivatives, and with the same bits.
        let Solution { accelerations, multipliers, pivots, .. } = form.solution.clone();
        let rates = self.coordinate_rates();
        let g = &mut *self.g;
        let mut known = HashMap::new();
        for (group, values) in [(Group::Vd, &accelerations), (Group::Lambda, &multipliers)] {
            known.extend(values.iter().zip(0..).map(|(&value, i)| (g.symbol(group, i), value)));
        }
        let mut values = values.clone();
        values.substitute(g, &known);
        let objectives = g.substitute(&integrands.0, &known);
        let partials = g.substitute(&integrands.1.entries, &known);

        let theta = given(g, Group::PositionColumns, nv, parameters);
        let v = given(g, Group::VelocityColumns, nv, parameters);
        // −(tau_θ θ' + tau_v v' + tau_ρ), −(c_θ θ' + c_v v' + c_ρ)
        let mut columns = Columns::new(g, nv + rows, parameters);
        columns.add(true, 0, &places.tangent, values.of("force_theta"), &theta);
        columns.add(true, 0, &places.tangent, values.of("force_v"), &v);
        columns.subtract_parameters(0, &places.force, values.of("force_rho"));
        columns.add(true, nv, &places.rows, values.of("rows_theta"), &theta);
        columns.add(true, nv, &places.rows, values.of("rows_v"), &v);
        columns.subtract_parameters(nv, &places.row, values.of("rows_rho"));
        let Columns { g, b } = columns;
        let x = form.solve_columns(g, b);
        let accelerations_rho = x[..nv].concat();
        // g_θ θ' + g_v v' + g_vd vd' + g_λ λ' + g_ρ
        let changes = [&theta[..], &v, &x].concat();
        let mut columns = Columns::new(g, objectives.len(), parameters);
        for (&(i, j), &partial) in integrands.1.places.iter().zip(&partials) {
            let (i, j) = (i as usize, j as usize);
            if j < changes.len() {
                columns.add(false, 0, &[(i as u32, j as u32)], &[partial], &changes);
            } else {
                let b = &mut columns.b[i][j - changes.len()];
                *b = columns.g.add(*b, partial);
            }
        }
        let objectives_rho = columns.b.concat();
        vec![rates, accelerations, multipliers, accelerations_rho, objectives, objectives_rho, pivots]
    }

    /// With the weights v̄d of accelerations and ψ̄_k of objective k, in a column for each: s, σ from the symmetric matrix of the
    /// accelerations, and
    ///
    /// ```text
    /// [ M Φ_vᵀ; Φ_v −e ] (s, σ) = (v̄d + g_vdᵀ ψ̄, g_λᵀ ψ̄)
    /// θ̄ = g_θᵀ ψ̄ − tau_θᵀ s − c_θᵀ σ      v̄ = g_vᵀ ψ̄ − tau_vᵀ s − c_vᵀ σ      ρ̄ = g_ρᵀ ψ̄ − tau_ρᵀ s − c_ρᵀ σ
    /// ```
    fn transposed_rate(
        &mut self,
        form: &JointForm,
        JointDerivatives { values, places, .. }: &JointDerivatives,
        integrands: &(Vec<ExprId>, Sparse),
    ) -> Vec<Vec<ExprId>> {
        let (parameters, objectives) = (self.seeds.len(), self.mechanism.model.objectives.len());
        let (nv, rows) = (self.mechanism.tree.nv, self.rows.kept.len());
        let g = &mut *self.g;
        let mut bars = vec![vec![g.zero(); objectives]; 3 * nv + rows + parameters];
        for (&(i, j), &partial) in integrands.1.places.iter().zip(&integrands.1.entries) {
            let weight = g.symbol(Group::ObjectiveWeights, i);
            bars[j as usize][i as usize] = g.mul(weight, partial);
        }
        let rho = bars.split_off(3 * nv + rows);
        let rhs = bars.split_off(2 * nv);
        let v = bars.split_off(nv);
        let (theta, mut rhs) = (bars, rhs);
        let given = given(g, Group::AccelerationWeights, nv, objectives);
        for (rhs, given) in rhs.iter_mut().zip(given) {
            for (rhs, given) in rhs.iter_mut().zip(given) {
                *rhs = g.add(*rhs, given);
            }
        }
        let x = form.solve_columns(g, rhs);
        let (s, sigma) = x.split_at(nv);
        let parts = [
            (theta, &places.tangent, "force_theta", &places.rows, "rows_theta"),
            (v, &places.tangent, "force_v", &places.rows, "rows_v"),
            (rho, &places.force, "force_rho", &places.row, "rows_rho"),
        ];
        let mut results = vec![integrands.0.clone()];
        for (b, top, force, below, row) in parts {
            let mut columns = Columns { g: &mut *g, b };
            columns.add_transposed(true, top, values.of(force), s);
            columns.add_transposed(true, below, values.of(row), sigma);
            results.push(columns.b.concat());
        }
        results.push(form.solution.pivots.clone());
        results
    }
}

/// Rounding of a residual, in units of ε Σ |a_ij| |x_j|, as the runtime judges it: elimination in a fixed order loses some digits.
const ROUNDING: f64 = 64.0;

/// What is linear in (vd, λ, a, b) of the lists in joint form, along a direction of these.
struct LinearPart {
    force_theta: Vec<ExprId>,
    force_rho: Vec<ExprId>,
    rows_theta: Vec<ExprId>,
    rows_v: Vec<ExprId>,
    rows_rho: Vec<ExprId>,
}

/// The corrections dθ and dv onto the constraints with their multipliers σ, and the derivatives of their equations. Since tau = M vd + Bᵀλ − Q
/// and c = Φdd + a Φd + b Φ (for nonholonomic rows Ψd + a Ψ), the derivatives of
///
/// ```text
/// M dθ + Bᵀσ, B dθ + (Φ; 0)     are the part along vd = dθ, λ = σ, b = 1
/// M dv + Bᵀσ, B dv + (Φd; Ψ)    are the part along vd = dv, λ = σ, a = 1
/// ```
struct CorrectionLists<'a> {
    form: &'a JointForm,
    places: &'a JointPlaces,
    mass: &'a [ExprId],
    /// B at the places of rows.
    border: Vec<ExprId>,
    positions: LinearPart,
    velocities: LinearPart,
    nv: usize,
    rows: usize,
    limit: f64,
}

impl<'a> CorrectionLists<'a> {
    fn new(
        g: &mut Graph,
        form: &'a JointForm,
        JointDerivatives { values, places, .. }: &'a JointDerivatives,
        [nv, rows]: [usize; 2],
        epsilon: f64,
    ) -> Self {
        let symbols = |g: &mut Graph, group, count: usize| -> Vec<ExprId> {
            (0..count as u32).map(|i| g.symbol(group, i)).collect()
        };
        let unknowns = [symbols(g, Group::Vd, nv), symbols(g, Group::Lambda, rows)].concat();
        let gains = symbols(g, Group::Stabilisation, 3);
        let (zero, one) = (g.zero(), g.one());
        let still: HashMap<ExprId, ExprId> =
            unknowns.iter().chain(&gains).map(|&symbol| (symbol, zero)).collect();
        let [turn, push] = &form.correction.impulses;
        let mut part = |impulse: &[ExprId], gain: ExprId| {
            let mut direction: Vec<_> = unknowns.iter().copied().zip(impulse.iter().copied()).collect();
            direction.push((gain, one));
            let mut tangents = Tangents::along(&direction);
            let mut of = |name| {
                let changes: Vec<ExprId> =
                    values.of(name).iter().map(|&value| tangents.of(g, value)).collect();
                g.substitute(&changes, &still)
            };
            LinearPart {
                force_theta: of("force_theta"),
                force_rho: of("force_rho"),
                rows_theta: of("rows_theta"),
                rows_v: of("rows_v"),
                rows_rho: of("rows_rho"),
            }
        };
        let (positions, velocities) = (part(turn, gains[1]), part(push, gains[0]));
        let entry = |&(k, j): &(u32, u32)| form.jacobian[j as usize * rows + k as usize];
        let border = places.rows.iter().map(entry).collect();
        let limit = ROUNDING * epsilon;
        Self { form, places, mass: values.of("mass"), border, positions, velocities, nv, rows, limit }
    }

    /// All that it has.
    fn expressions(&self) -> Vec<ExprId> {
        let [positions, velocities] = [&self.positions, &self.velocities].map(|part| {
            let LinearPart { force_theta, force_rho, rows_theta, rows_v, rows_rho } = part;
            [&force_theta[..], force_rho, rows_theta, rows_v, rows_rho].concat()
        });
        [positions, velocities].concat()
    }

    /// The solution x of [M Bᵀ; B 0] x = b, and what it leaves of each equation beyond rounding: of all columns the most of
    /// |b − A x| − limit (|b| + |A| |x|), so that no unit of a column, an unknown or an equation counts.
    fn solve(&self, g: &mut Graph, b: Vec<Vec<ExprId>>) -> [Vec<Vec<ExprId>>; 2] {
        let x = self.form.correct_columns(g, b.clone());
        let mut abs = |rows: &[Vec<ExprId>]| -> Vec<Vec<ExprId>> {
            rows.iter().map(|row| row.iter().map(|&x| g.abs(x)).collect()).collect()
        };
        let (sizes, magnitudes) = (abs(&b), abs(&x));
        let columns = b.first().map_or(0, Vec::len);
        let (mut left, mut sizes) = (Columns { g: &mut *g, b }, sizes);
        let below: Vec<(u32, u32)> = self.places.rows.iter().map(|&(k, j)| (k + self.nv as u32, j)).collect();
        let above: Vec<(u32, u32)> = below.iter().map(|&(k, j)| (j, k)).collect();
        for (places, values) in
            [(&self.places.tangent, self.mass), (&below, &self.border), (&above, &self.border)]
        {
            left.add(true, 0, places, values, &x);
            let values: Vec<ExprId> = values.iter().map(|&value| left.g.abs(value)).collect();
            let mut sums = Columns { g: &mut *left.g, b: sizes };
            sums.add(false, 0, places, &values, &magnitudes);
            sizes = sums.b;
        }
        let Columns { g, b: left } = left;
        let limit = g.constant(self.limit);
        let mut beyond = Vec::new();
        for (left, sizes) in left.iter().zip(&sizes) {
            let mut excess = |k: usize| {
                let (left, rounding) = (g.abs(left[k]), g.mul(limit, sizes[k]));
                g.sub(left, rounding)
            };
            let all: Vec<ExprId> = (0..columns).map(&mut excess).collect();
            let most = all.into_iter().reduce(|a, b| g.binary(BinaryOp::Max, a, b));
            beyond.push(vec![most.unwrap_or_else(|| g.zero())]);
        }
        [x, beyond]
    }

    /// With K = [M Bᵀ; B 0], of both corrections,
    ///
    /// ```text
    /// K (dθ', ·) = −((M dθ + Bᵀσ)_θ θ' + (M dθ + Bᵀσ)_ρ, (B dθ + Φ)_θ θ' + (B dθ + Φ)_ρ)
    /// K (dv', ·) = −((M dv + Bᵀσ)_θ θ' + (M dv + Bᵀσ)_ρ, (B dv + Φd)_θ θ' + B v' + (B dv + Φd)_ρ)
    /// ```
    fn derivative(&self, g: &mut Graph, parameters: usize) -> Vec<Vec<ExprId>> {
        let Self { places, nv, rows, .. } = *self;
        let theta = given(g, Group::PositionColumns, nv, parameters);
        let v = given(g, Group::VelocityColumns, nv, parameters);
        let Correction { position, velocity, values, rates, .. } = self.form.correction.clone();
        let (mut results, mut left) = (vec![position, velocity, values, rates], Vec::new());
        for part in [&self.positions, &self.velocities] {
            let mut columns = Columns::new(g, nv + rows, parameters);
            columns.add(true, 0, &places.tangent, &part.force_theta, &theta);
            columns.subtract_parameters(0, &places.force, &part.force_rho);
            columns.add(true, nv, &places.rows, &part.rows_theta, &theta);
            columns.add(true, nv, &places.rows, &part.rows_v, &v);
            columns.subtract_parameters(nv, &places.row, &part.rows_rho);
            let b = columns.b;
            let [x, beyond] = self.solve(g, b);
            results.push(x[..nv].concat());
            left.extend(beyond.concat());
        }
        results.extend([left, self.form.correcting_pivots()]);
        results
    }

    /// The transpose: K is symmetric.
    fn transposed(&self, g: &mut Graph, parameters: usize, objectives: usize) -> Vec<Vec<ExprId>> {
        let Self { places, nv, rows, .. } = *self;
        let [mut theta_bar, mut v_bar, mut rho_bar] =
            [nv, nv, parameters].map(|rows| Columns::new(g, rows, objectives).b);
        let mut left = Vec::new();
        for (part, weights) in
            [(&self.positions, Group::PositionWeights), (&self.velocities, Group::VelocityWeights)]
        {
            let mut b = given(g, weights, nv, objectives);
            b.extend(vec![vec![g.zero(); objectives]; rows]);
            let [x, beyond] = self.solve(g, b);
            left.extend(beyond.concat());
            let (s, xi) = x.split_at(nv);
            let mut columns = Columns { g: &mut *g, b: theta_bar };
            columns.add_transposed(true, &places.tangent, &part.force_theta, s);
            columns.add_transposed(true, &places.rows, &part.rows_theta, xi);
            theta_bar = columns.b;
            let mut columns = Columns { g: &mut *g, b: v_bar };
            columns.add_transposed(true, &places.rows, &part.rows_v, xi);
            v_bar = columns.b;
            let mut columns = Columns { g: &mut *g, b: rho_bar };
            columns.add_transposed(true, &places.force, &part.force_rho, s);
            columns.add_transposed(true, &places.row, &part.rows_rho, xi);
            rho_bar = columns.b;
        }
        let mut results: Vec<_> = [theta_bar, v_bar, rho_bar].iter().map(|rows| rows.concat()).collect();
        results.extend([left, self.form.correcting_pivots()]);
        results
    }
}

impl Equations<'_, '_, '_> {
    /// The derivative of a correction onto the constraints for all parameters, and its transpose for all objectives, as far as they are small.
    pub(super) fn derivative_of_correction(
        &mut self,
        form: &JointForm,
        derivatives: &JointDerivatives,
    ) -> Result<Vec<Specification>, ProgramError> {
        let (parameters, objectives) = (self.seeds.len(), self.mechanism.model.objectives.len());
        let (nv, rows) = (self.mechanism.tree.nv, self.rows.kept.len());
        if !self.corrections || !self.fuses || parameters == 0 || rows == 0 {
            return Ok(Vec::new());
        }
        let g = &mut *self.g;
        let lists = CorrectionLists::new(g, form, derivatives, [nv, rows], self.epsilon);
        let JointDerivatives { places, factors, .. } = derivatives;
        // Two systems, each solved twice and checked.
        let column = 12 * (places.tangent.len() + 2 * places.rows.len()) + 8 * factors.len();
        let room = MOST_NODES_OF_DERIVATIVES.saturating_sub(g.reachable(&lists.expressions()).len());
        let mut all = Vec::new();
        if parameters * column <= room {
            all.push((BundleKind::DifferentiateCorrection, lists.derivative(g, parameters)));
        }
        if objectives > 0 && objectives * column <= room {
            let transposed = lists.transposed(g, parameters, objectives);
            all.push((BundleKind::TransposeCorrection, transposed));
        }
        all.into_iter().map(|(kind, results)| self.specify(kind, results)).collect()
    }
}

/// The entries of B = (Φ_z; A): (row, coordinate, entry).
fn projection_rows(form: &CoordinateForm, holonomic: usize) -> Vec<(usize, usize, ExprId)> {
    let pattern = &form.pattern;
    let first = pattern.nonholonomic.iter().map(|&(k, j)| (holonomic + k as usize, j as usize));
    let places = pattern.holonomic.iter().map(|&(k, j)| (k as usize, j as usize)).chain(first);
    let entries = form.projection.iter().skip(pattern.tangent.len());
    places.zip(entries).map(|((k, j), &entry)| (k, j, entry)).collect()
}

/// The solution for (0, −residuals), its correction for what E leaves, which is (0, −E σ), and what is then left of the residuals: residuals + B d.
fn projected(
    g: &mut Graph,
    factors: &Factors,
    small: &[ExprId],
    b: &[(usize, usize, ExprId)],
    residuals: &[ExprId],
) -> (Vec<ExprId>, Vec<ExprId>) {
    let n = factors.size() - residuals.len();
    let mut rhs = vec![g.zero(); n];
    rhs.extend(residuals.iter().map(|&residual| g.neg(residual)));
    let mut x = factors.solve(g, rhs);
    let mut rhs = vec![g.zero(); n];
    for (&small, &sigma) in small.iter().zip(&x[n..]) {
        let product = g.mul(small, sigma);
        rhs.push(g.neg(product));
    }
    for (x, change) in x.iter_mut().zip(factors.solve(g, rhs)) {
        *x = g.add(*x, change);
    }
    let mut left = residuals.to_vec();
    for &(k, j, entry) in b {
        let product = g.mul(entry, x[j]);
        left[k] = g.add(left[k], product);
    }
    (x, left)
}

/// Symbols of a group plus a change of each.
fn moved(g: &mut Graph, group: Group, changes: &[ExprId]) -> HashMap<ExprId, ExprId> {
    let mut moved = HashMap::new();
    for (&change, i) in changes.iter().zip(0..) {
        let symbol = g.symbol(group, i);
        moved.insert(symbol, g.add(symbol, change));
    }
    moved
}
