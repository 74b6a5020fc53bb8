//! Which expressions the bundles of derivatives want.

use super::equations::{Equations, Results, at_origin};
use super::{BundleKind, Products, ProgramError};
use crate::bundle::Specification;
use crate::constrained::{
    CoordinateDerivatives, JointDerivatives, Sections, Sparse, TransposedProducts, joint_to_coordinate_form,
    tangent_product,
};
use crate::dynamics::body_inertias;
use crate::graph::{ExprId, Graph, Vec3, gradient};
use crate::kinematics::euler_parameter_rates;
use crate::symbols::Group;
use crate::topology::Tree;
use mbs_bundles::Form;

impl Equations<'_, '_, '_> {
    /// Signals of inputs that depend on what the model is differentiated by: (input, parameter).
    pub(super) fn differentiated_signals(&mut self, signals: &[ExprId]) -> Vec<(u32, u32)> {
        Sparse::by(self.g, signals, self.seeds).places
    }

    pub(super) fn start_derivatives(&mut self) -> Result<Results, ProgramError> {
        let start = self.start_values();
        let mut list = Sections::default();
        for ((name, values), places) in
            ["z", "v"].into_iter().zip(start).zip(&mut self.structure.derivatives.start)
        {
            let sparse = Sparse::by(self.g, &values, self.seeds);
            *places = sparse.places;
            list.push(name, sparse.entries);
        }
        Ok(vec![self.list(BundleKind::StartDerivatives, list)?])
    }

    /// All bundles of derivatives in coordinate form.
    pub(super) fn linearised(&mut self) -> Result<Vec<Specification>, ProgramError> {
        let derivatives = {
            let form = self.coordinate_form.as_ref().ok_or(ProgramError::Singular)?;
            let mut mechanism = at_origin(self.g, self.mechanism);
            let inertias = body_inertias(self.g, &mechanism);
            CoordinateDerivatives::new(
                self.g,
                &mut mechanism,
                &inertias,
                &self.forces,
                self.rows,
                form,
                self.seeds,
            )
        };
        let products = self.products.and_then(|when| self.transposed_products(when, &derivatives));
        let at_once = self.derivative_of_step(&derivatives)?;
        self.structure.derivatives.parameters = derivatives.places;
        let newton = self.list(BundleKind::Linearise, derivatives.newton)?;
        let projections = self.list(BundleKind::LineariseProjections, derivatives.projections)?;
        let mut all = vec![
            self.specify(BundleKind::Linearise, vec![newton])?,
            self.specify(BundleKind::LineariseProjections, vec![projections])?,
        ];
        all.extend(at_once);
        if let Some(TransposedProducts { mut newton, acceleration, mut projection, table, .. }) = products {
            for (which, rho) in [&mut newton[2], &mut projection[1]].into_iter().enumerate() {
                let Sparse { places, entries } = sparse_rows(self.g, &[std::mem::take(rho)]);
                self.structure.derivatives.products[which] = places;
                *rho = entries;
            }
            if self.structure.derivatives.product_columns > 0 {
                all.push(self.specify(BundleKind::NewtonProduct, newton.to_vec())?);
            }
            all.push(self.specify(BundleKind::AccelerationProduct, vec![acceleration])?);
            all.push(self.specify(BundleKind::ProjectionProduct, projection.to_vec())?);
            all.push(self.specify(BundleKind::TableProduct, vec![table])?);
        }
        if self.tangent_product {
            let form = self.coordinate_form.as_ref().ok_or(ProgramError::Singular)?;
            let product = tangent_product(self.g, form, self.rows.in_coordinate_form(), self.seeds);
            all.push(self.specify(BundleKind::TangentProduct, product.to_vec())?);
        }

        // Objectives see v = L zd, vd = L zdd + h, and their multipliers among those of all rows.
        let mut replacements = joint_to_coordinate_form(self.g, self.mechanism.tree);
        for k in 0..self.rows.kept.len() {
            let place = self.rows.place(k) as u32;
            // λ, σ, κ
            for which in 0..3 {
                let (joint, rows) = (self.rows.kept.len() as u32, self.rows.in_coordinate_form() as u32);
                let from = self.g.symbol(Group::Lambda, which * joint + k as u32);
                replacements.insert(from, self.g.symbol(Group::Lambda, which * rows + place));
            }
        }
        let (nq, rows) = (self.mechanism.tree.nq, self.judged_rows(Form::Coordinate));
        let sections = [(Group::Z, nq), (Group::Zd, nq), (Group::Zdd, nq), (Group::Lambda, rows)];
        let unknowns = symbols(self.g, &sections, self.seeds);
        let expressions = self.objective_expressions();
        let kinds = [BundleKind::IntegrandDerivatives, BundleKind::TerminalDerivatives];
        for (which, (kind, expressions)) in kinds.into_iter().zip(expressions).enumerate() {
            let values = self.g.substitute(&expressions, &replacements);
            let rows = gradients(self.g, &values, &unknowns);
            let sparse = sparse_rows(self.g, &rows);
            self.structure.derivatives.objectives[which] = sparse.places;
            all.push(self.specify_objectives(kind, values, sparse.entries)?);
        }
        Ok(all)
    }

    /// The transposed products, and in the structure for how many columns; none where lists are cheaper even for one.
    fn transposed_products(
        &mut self,
        when: Products,
        derivatives: &CoordinateDerivatives,
    ) -> Option<TransposedProducts> {
        let form = self.coordinate_form.as_ref()?;
        let products = TransposedProducts::new(self.g, form, &derivatives.impulses, self.seeds);
        let [all, projections] = match when {
            Products::Cheaper => [
                products.columns(self.g, form, derivatives),
                products.projection_columns(self.g, derivatives),
            ],
            Products::Always => [TransposedProducts::MOST; 2],
        };
        let some = all > 0 || projections > 0;
        let structure = &mut self.structure.derivatives;
        (structure.product_columns, structure.projection_columns) = (all, projections);
        structure.table_values = if some { products.table_values } else { 0 };
        some.then_some(products)
    }

    /// All bundles of derivatives in joint form.
    pub(super) fn joint_linearised(&mut self) -> Result<Vec<Specification>, ProgramError> {
        let form = self.joint_form()?.clone();
        let derivatives = {
            let mut mechanism = at_origin(self.g, self.mechanism);
            let inertias = body_inertias(self.g, &mechanism);
            JointDerivatives::new(
                self.g,
                &mut mechanism,
                &inertias,
                &self.forces,
                self.rows,
                &form,
                self.seeds,
            )
        };
        let expressions = self.objective_expressions();
        let mut objectives = Vec::new();
        let (nq, nv, rows) = (self.mechanism.tree.nq, self.mechanism.tree.nv, self.judged_rows(Form::Joint));
        let sections = [(Group::Z, nq), (Group::V, nv), (Group::Vd, nv), (Group::Lambda, rows)];
        let unknowns = symbols(self.g, &sections, self.seeds);
        for values in expressions {
            let mut rows = gradients(self.g, &values, &unknowns);
            for row in &mut rows {
                let along = along_tangent(self.g, self.mechanism.tree, &row[..nq]);
                row.splice(..nq, along);
            }
            objectives.push((values, sparse_rows(self.g, &rows)));
        }
        let mut at_once = self.derivative_of_rate(&form, &derivatives, &objectives[0])?;
        at_once.extend(self.derivative_of_correction(&form, &derivatives)?);
        let JointDerivatives { values, places, factors, pivots, columns, solution } = derivatives;
        self.structure.derivatives.joint = places;
        self.structure.joint_columns = columns;
        self.factors = factors.len();
        let values = self.list(BundleKind::JointLinearise, values)?;
        let mut all = vec![
            self.specify(BundleKind::JointLinearise, vec![values, factors, pivots])?,
            self.specify(BundleKind::JointSolve, vec![solution])?,
        ];
        all.extend(at_once);
        let kinds = [BundleKind::JointIntegrandDerivatives, BundleKind::JointTerminalDerivatives];
        for (which, (kind, (values, sparse))) in kinds.into_iter().zip(objectives).enumerate() {
            self.structure.derivatives.joint_objectives[which] = sparse.places;
            all.push(self.specify_objectives(kind, values, sparse.entries)?);
        }
        Ok(all)
    }

    fn specify_objectives(
        &mut self,
        kind: BundleKind,
        values: Vec<ExprId>,
        derivatives: Vec<ExprId>,
    ) -> Result<Specification, ProgramError> {
        let mut list = Sections::default();
        list.push("values", values);
        list.push("derivatives", derivatives);
        let list = self.list(kind, list)?;
        self.specify(kind, vec![list])
    }
}

/// The symbols of some groups, then the seeds.
pub(super) fn symbols(g: &mut Graph, sections: &[(Group, usize)], seeds: &[ExprId]) -> Vec<ExprId> {
    let mut all = Vec::new();
    for &(group, count) in sections {
        all.extend((0..count as u32).map(|i| g.symbol(group, i)));
    }
    all.extend(seeds);
    all
}

pub(super) fn gradients(g: &mut Graph, values: &[ExprId], unknowns: &[ExprId]) -> Vec<Vec<ExprId>> {
    let one = g.one();
    values.iter().map(|&value| gradient(g, &[(value, one)], unknowns)).collect()
}

pub(super) fn sparse_rows(g: &mut Graph, rows: &[Vec<ExprId>]) -> Sparse {
    let mut sparse = Sparse::default();
    for (i, row) in rows.iter().enumerate() {
        for (j, &entry) in row.iter().enumerate() {
            if !g.is(entry, 0.0) {
                sparse.places.push((i as u32, j as u32));
                sparse.entries.push(entry);
            }
        }
    }
    sparse
}

/// g_θ = g_z N(z)
fn along_tangent(g: &mut Graph, tree: &Tree, by_z: &[ExprId]) -> Vec<ExprId> {
    let (zero, one) = (g.zero(), g.one());
    let mut along = vec![zero; tree.nv];
    for link in &tree.links {
        let euler = link.euler_parameters();
        for z in link.z_range().filter(|&z| euler.is_none_or(|(first, _)| z < first)) {
            along[link.v + z - link.z] = by_z[z];
        }
        let Some((first, v)) = euler else { continue };
        let p = std::array::from_fn(|k| g.symbol(Group::Z, (first + k) as u32));
        for k in 0..3 {
            let unit = Vec3(std::array::from_fn(|i| if i == k { one } else { zero }));
            let rates = euler_parameter_rates(g, p, unit);
            let terms: Vec<ExprId> = (0..4).map(|i| g.mul(by_z[first + i], rates[i])).collect();
            along[v + k] = g.sum(&terms);
        }
    }
    for k in 0..tree.nq - tree.variables_z {
        along[tree.variables_v + k] = by_z[tree.variables_z + k];
    }
    along
}
