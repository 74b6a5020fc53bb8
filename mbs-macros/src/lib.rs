//! `model_solver!`: a multibody solver from a YAML file at compile time.
//!
//! Enters: the macro's tokens. Leaves: the module that `mbs_codegen::generate` prints for the file, the same text
//! that the build-script door and the command print, or a `compile_error!` at the file's name with every problem in
//! it. No mathematics here.

mod expand;
mod request;

/// Puts the solver of a model file into a module.
///
/// The file's path is relative to the package's directory (where its `Cargo.toml` is). A change of the file
/// makes Cargo build the crate again. The crate needs `mbs-runtime` among its dependencies, since the module
/// implements the traits of that crate:
///
/// ```toml
/// [dependencies]
/// mbs-macros = { path = "../mbs/mbs-macros" }
/// mbs-runtime = { path = "../mbs/mbs-runtime" }
/// ```
///
/// ```
/// use core::ops::ControlFlow;
/// use mbs_macros::model_solver;
/// use mbs_runtime::{Fixed, Integrator, Output, Rk4, Span};
///
/// model_solver! {
///     /// A rod on a hinge.
///     pub mod pendulum = "../models/pendulum.yaml";
/// }
///
/// let model = pendulum::Model::new(pendulum::Parameters { L: 0.5, ..Default::default() });
/// let mut y = model.start_state();
/// let mut scratch = [0.0; Rk4::scratch_len(&pendulum::DIMS)];
/// let span = Span { start: 0.0, end: 1.0, output: Output::Steps };
/// Fixed { method: Rk4, h: 1e-3 }
///     .simulate(&model, &mut model.signals(), &mut y, &span, &mut scratch, |_| ControlFlow::Continue(()))
///     .expect("the rod has mass");
/// assert!(y[pendulum::coordinate::HINGE_ANGLE].abs() < 1.1);
/// ```
///
/// # Form
///
/// One or more modules, each with attributes (documentation), a visibility (none, `pub` or `pub(crate)`), and
/// perhaps settings in braces instead of the semicolon:
///
/// ```
/// # use mbs_macros::model_solver;
/// model_solver! {
///     mod slow = "../models/double_pendulum.yaml";
///
///     pub mod fast = "../models/double_pendulum.yaml" {
///         freeze,
///         reference: com,
///         bundles: [mass_matrix, forward_dynamics],
///     }
///
///     pub(crate) mod pushed = "../models/cart_pole.yaml" { case: "shaken", bundles: all }
/// }
/// # assert_eq!(slow::NP, 6);
/// # assert_eq!(fast::NP, 0);
/// # assert_eq!(pushed::NU, 1);
/// ```
///
/// | setting | meaning | otherwise |
/// |---|---|---|
/// | `freeze` | parameters become constants | they are fields of `Parameters` |
/// | `reference: com` or `origin` | where velocities and forces of bodies are referred to | `origin` |
/// | `bundles: [a, b]`, `all` or `standard` | which bundles of equations are emitted | `standard` |
/// | `case: "name"` | a case's parameters, start values and inputs become the defaults | the model's own |
/// | `lanes: 4` | a module `batch` with functions for as many samples at once | none |
/// | `pairs: flat` or `rolled` | entries for pairs of joints as flat code or as loops over tables | whichever is quicker |
///
/// The shortest form takes the module's name from the model, and makes it `pub`:
///
/// ```
/// mbs_macros::model_solver!("../models/pendulum.yaml");
/// # assert_eq!(pendulum::NQ, 1);
/// ```
#[proc_macro]
pub fn model_solver(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    // Cargo sets it for every build; another build system may not.
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| ".".into());
    expand::expand(input.into(), std::path::Path::new(&folder)).into()
}
