//! What a request for bundles means for a model.

use crate::model::{Formulation, GradientMethod, Simulation};
use mbs_bundles::{BundleKind, Exists, Family};

/// Forward dynamics under constraints is the constrained families, what solves with the tree's mass matrix alone does not exist there,
/// all of [`BundleKind::STANDARD`] or of [`BundleKind::GRADIENT`] brings what the methods of the file and its cases need, of a model that is differentiated the derivatives of its
/// dynamics, too, and one bundle of a family that comes together brings the others. Neither the order of a request nor its repetitions matter.
pub(super) fn resolve(
    requested: &[BundleKind],
    only: bool,
    simulations: &[&Simulation],
    constrained: bool,
    differentiated: bool,
    has_events: bool,
) -> Vec<BundleKind> {
    let mut kinds = Vec::new();
    for &kind in requested {
        match kind.entry().exists {
            Exists::Replaced if constrained && only => {}
            Exists::Replaced if constrained => {
                kinds.extend([&BundleKind::COORDINATE_FORM[..], &BundleKind::JOINT_FORM].concat());
            }
            Exists::Unconstrained if constrained => {}
            Exists::Events if !has_events => {}
            // Bundles that do the work of several come with those, if the generator chooses them.
            Exists::Fused => match kind.entry().family {
                Family::Sensitivities => kinds.extend(BundleKind::SENSITIVITIES),
                Family::JointSensitivities => {
                    kinds.extend(BundleKind::JOINT_SENSITIVITIES);
                    kinds.push(kind);
                }
                _ => kinds.extend(BundleKind::COORDINATE_FORM),
            },
            _ => kinds.push(kind),
        }
    }
    let all_of = |kinds: &[BundleKind]| kinds.iter().all(|kind| requested.contains(kind));
    if !only && (all_of(&BundleKind::STANDARD) || all_of(&BundleKind::GRADIENT)) {
        for simulation in simulations {
            let explicit = simulation.is_in_joint_form(constrained);
            // Starts under constraints are found in coordinate form.
            if constrained || !explicit {
                kinds.extend(BundleKind::COORDINATE_FORM);
            }
            if explicit {
                kinds.push(if constrained {
                    BundleKind::ConstrainedDynamics
                } else {
                    BundleKind::ForwardDynamics
                });
            }
            if simulation.corrects_steps(constrained) {
                kinds.push(BundleKind::ConstraintCorrection);
            }
            if differentiated && (constrained || !explicit) {
                kinds.extend(BundleKind::SENSITIVITIES);
                if simulation.projects_with_tangent() {
                    kinds.push(BundleKind::TangentProduct);
                }
                if matches!(simulation.gradient, GradientMethod::Adjoint | GradientMethod::Auto) {
                    kinds.extend(BundleKind::PRODUCTS);
                }
            }
            // Implicit stages are solved with derivatives of accelerations.
            if differentiated && (!constrained || explicit) || simulation.solves_stages(constrained) {
                kinds.extend(BundleKind::JOINT_SENSITIVITIES);
            }
            if differentiated && simulation.corrects_steps(constrained) {
                kinds.extend(BundleKind::DERIVATIVES_OF_CORRECTIONS);
            }
            if constrained && simulation.formulation == Formulation::MatrixR {
                kinds.push(BundleKind::ConstraintRows);
            }
        }
    }
    if BundleKind::PRODUCTS.iter().any(|kind| kinds.contains(kind)) {
        kinds.extend(BundleKind::PRODUCTS);
    }
    let has = |kinds: &[BundleKind], family| kinds.iter().any(|kind| kind.entry().family == family);
    if has(&kinds, Family::Sensitivities) {
        kinds.extend(BundleKind::SENSITIVITIES);
        kinds.extend(BundleKind::COORDINATE_FORM);
        kinds.extend([BundleKind::DifferentiateStep, BundleKind::TransposeStep]);
    }
    if has(&kinds, Family::JointSensitivities) {
        kinds.extend(BundleKind::JOINT_SENSITIVITIES);
        kinds.extend([BundleKind::DifferentiateRate, BundleKind::TransposeRate]);
    }
    if BundleKind::DERIVATIVES_OF_CORRECTIONS.iter().any(|kind| kinds.contains(kind)) {
        kinds.extend(BundleKind::DERIVATIVES_OF_CORRECTIONS);
    }
    if has(&kinds, Family::CoordinateForm) {
        kinds.extend(BundleKind::COORDINATE_FORM);
        kinds.extend(BundleKind::FUSED_STEPS);
    }
    if has_events {
        // Every run of the model meets its events.
        let runs = [BundleKind::ForwardDynamics, BundleKind::ConstrainedDynamics, BundleKind::Residual];
        if has(&kinds, Family::Events) || runs.iter().any(|kind| kinds.contains(kind)) {
            kinds.extend(BundleKind::EVENTS);
        }
        let families = [Family::Sensitivities, Family::JointSensitivities, Family::EventSensitivities];
        if families.iter().any(|&family| has(&kinds, family)) {
            kinds.extend(BundleKind::EVENT_SENSITIVITIES);
        }
    }
    kinds.sort();
    kinds.dedup();
    kinds
}
