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
///
/// # Steps
///
/// A mechanism with closed loops starts from guesses, which assembly makes consistent. A step is a function of the state, which is one
/// slice; copy it to step again. Everything lives in arrays of known length.
///
/// ```
/// use mbs_runtime::{Ali3p, Assembly, State};
/// mbs_macros::model_solver! { mod slider_crank = "../models/slider_crank.yaml"; }
/// use slider_crank::{DIMS, Model, coordinate};
///
/// let model = Model::default();
/// let mut inputs = model.signals();
/// let mut state = [0.0; State::<f64>::len(&DIMS)];
/// let mut scratch = [0.0; Assembly::scratch_len(&DIMS)];
/// Assembly::DEFAULT.begin(&model, &mut inputs, 0.0, &mut state, &mut scratch).expect("bars that reach");
///
/// let mut scratch = [0.0; Ali3p::scratch_len(&DIMS)];
/// for _ in 0..1000 {
///     let done = Ali3p::DEFAULT.step(&model, &mut inputs, &mut state, 1e-3, &mut scratch).expect("a small step");
///     assert!(done.iterations <= 3);
/// }
/// let now = State::of(&DIMS, &mut state).expect("a state of this length");
/// assert!((*now.t - 1.0).abs() < 1e-12 && (now.z[coordinate::SLIDE_DISPLACEMENT] - 1.001).abs() < 1e-3);
/// ```
///
/// # Gradients
///
/// A model with `objectives` and a `sensitivity` list has their derivatives: of the whole run, its start included, in one run.
///
/// ```
/// use core::ops::ControlFlow;
/// use mbs_runtime::{Ali3p, Assembly, Differentiated, Fixed, Gradient, Output, Span, State, StateDerivatives};
/// mbs_macros::model_solver! { mod slider_crank = "../models/slider_crank.yaml"; }
/// use slider_crank::{DIMS, Model};
///
/// let model = Model::default();
/// let mut inputs = model.signals();
/// let mut state = [0.0; State::<f64>::len(&DIMS)];
/// let mut derivatives = [0.0; StateDerivatives::<f64>::len(&DIMS)];
/// let run = Differentiated(Fixed { method: Ali3p::DEFAULT, h: 1e-2 });
/// let mut scratch = vec![0.0; run.scratch_len(&DIMS).max(Assembly::differentiated_scratch_len(&DIMS))];
/// Assembly::DEFAULT
///     .begin_differentiated(&model, &mut inputs, 0.0, &mut state, &mut derivatives, &mut scratch)
///     .expect("bars that reach");
///
/// let span = Span { start: 0.0, end: 10.0, output: Output::Steps };
/// let mut values = [0.0; Gradient::<f64>::len(&DIMS)];
/// run.run(&model, &mut inputs, &mut state, &mut derivatives, &span, &mut values, &mut scratch, |_| ControlFlow::Continue(()))
///     .expect("a small step");
/// let found = Gradient::of(&DIMS, &values).expect("a gradient of this length");
/// // By k and c; the example idasSlCrank of SUNDIALS prints 3.3366, 0.33345 and -0.36375.
/// let expected = [(found.objectives[0], 3.3366), (found.derivatives[0], 0.33345), (found.derivatives[1], -0.36375)];
/// assert!(expected.iter().all(|(value, known)| (value - known).abs() < 1e-3));
/// ```
///
/// # Single functions, and many samples at once
///
/// Every bundle is a method of a trait of `mbs-runtime`; with `lanes`, a function over several samples, too.
///
/// ```
/// use mbs_runtime::{At, MassMatrix};
/// mbs_macros::model_solver! {
///     mod arm = "../models/double_pendulum.yaml" { bundles: [mass_matrix], lanes: 4 }
/// }
/// use arm::{DIMS, Model, NQ, NV, batch::{self, L}};
///
/// let model = Model::default();
/// let at = At { t: 0.0, z: &[0.3, 0.1], v: &[0.0; NV], x: &[], u: &[] };
/// let mut matrix = [0.0; NV * NV];
/// model.mass_matrix(at, &mut [0.0; DIMS.workspace], &mut matrix).expect("lengths that fit");
///
/// let z: [L; NQ] = [mbs_runtime::batch::Lanes([0.3, 0.6, 0.9, 1.2]), L::of(0.1)];
/// let mut matrices = [L::ZERO; NV * NV];
/// batch::mass_matrix(&model, &z, &mut [L::ZERO; _], &mut matrices);
/// assert_eq!(matrices.map(|entry| entry.0[0]), matrix);
/// ```
#[proc_macro]
pub fn model_solver(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    // Cargo sets it for every build; another build system may not.
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| ".".into());
    expand::expand(input.into(), std::path::Path::new(&folder)).into()
}
