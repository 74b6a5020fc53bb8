//! `model_solver!`: a multibody solver from a YAML file at compile time.
//!
//! Input: the macro's tokens. Output: the module that `mbs_codegen::generate` prints for the file, the same text
//! that the build script and the command print, or a `compile_error!` at the file's name with every problem in
//! it. No mathematics here.

mod request;

mod expand;

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
/// mbs_macros::model_solver! {
///     /// A rod on a hinge.
///     pub mod pendulum = "../models/pendulum.yaml";
/// }
/// use pendulum::{Parameters, Simulation};
///
/// # fn main() -> Result<(), pendulum::Error> {
/// let mut sim = Simulation::new(Parameters { L: 0.5, ..Parameters::default() })?;
/// while sim.t() < 1.0 {
///     sim.step()?;
///     assert!(sim.z().hinge.abs() < 1.1);
/// }
/// # Ok(())
/// # }
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
/// | `scalar: f32` | single precision | `f64` |
/// | `fma: never` | the same bits on every target: nothing is fused, functions are those of `libm` | `target`: fused where the target has the instruction |
/// | `steps: separate` | no bundles that do the work of several: less text, for little flash | `fused`, where a model is small |
/// | `simd: never` or `always` | nowhere two operations at a time, or wherever two are alike; the bits are the same | `auto`: in large bundles where it pays |
/// | `pairs: flat` or `rolled` | entries for pairs of joints as flat code or as loops over tables | whichever is quicker |
///
/// The shortest form takes the module's name from the model, and makes it `pub`:
///
/// ```
/// mbs_macros::model_solver!("../models/pendulum.yaml");
/// # assert_eq!(pendulum::NQ, 1);
/// ```
///
/// # Simulation
///
/// `Simulation::new(parameters)` is the start of the file's simulation: bounds of parameters checked, loops closed, velocities, accelerations and
/// multipliers consistent. Method, step and tolerances are those of the file. `step()` takes one step, `run_to(t)` as many as it needs; after an error
/// it is as before. All memory is in it, of constant size.
///
/// ```
/// mbs_macros::model_solver! { mod slider_crank = "../models/slider_crank.yaml"; }
/// use slider_crank::{Parameters, Simulation};
///
/// # fn main() -> Result<(), slider_crank::Error> {
/// let mut sim = Simulation::new(Parameters::default())?;
/// sim.run_to(0.5)?;
/// let state = sim.state();
/// sim.run_to(1.0)?;
/// assert!((sim.z().slide - 1.001).abs() < 1e-3 && sim.statistics().max_iterations <= 3);
///
/// // The same steps from the same state give the same bits.
/// let (force, energy) = (sim.reactions().pivot.force, sim.energy());
/// sim.restore(state);
/// sim.run_to(1.0)?;
/// assert_eq!((sim.reactions().pivot.force, sim.energy()), (force, energy));
///
/// // What the model does not allow is refused by name.
/// let refused = Simulation::new(Parameters { k: f64::NAN, ..Parameters::default() }).err().expect("no number");
/// assert_eq!(refused.to_string(), "parameter `k` must be finite, not NaN");
/// # Ok(())
/// # }
/// ```
///
/// Values are structs with a field for each name, in the order of the slices that the traits of `mbs-runtime` work on; `to_array` and `from_array` lead
/// from one to the other. A dot becomes `_`; the only coordinate of a joint goes by the joint's name; arrays, vectors and markers are arrays.
///
/// Inputs are given by name, constant over a step; `step_by_signals` takes the model's own, `step_with` any function of time:
///
/// ```
/// mbs_macros::model_solver! { mod cart_pole = "../models/cart_pole.yaml"; }
/// use cart_pole::{Inputs, Simulation};
///
/// # fn main() -> Result<(), cart_pole::Error> {
/// let mut sim = Simulation::new(Default::default())?;
/// while sim.t() < 1.0 {
///     let push = 40.0 * sim.z().pivot + 8.0 * sim.v().pivot;
///     sim.step(&Inputs { push })?;
/// }
/// assert!(sim.output().angle.abs() < 0.1 && sim.marker_positions().pole_tip[2] > 0.9);
/// # Ok(())
/// # }
/// ```
///
/// # Gradients
///
/// A model with `objectives` and a `sensitivity` list has their derivatives: of the whole run, its start included, in one run.
///
/// ```
/// mbs_macros::model_solver! { mod slider_crank = "../models/slider_crank.yaml"; }
///
/// # fn main() -> Result<(), slider_crank::Error> {
/// let found = slider_crank::gradient(&Default::default())?;
/// // The example idasSlCrank of SUNDIALS prints 3.3366, 0.33345 and -0.36375.
/// let energy = found.G;
/// let expected = [(energy.value, 3.3366), (energy.by.k, 0.33345), (energy.by.c, -0.36375)];
/// assert!(expected.iter().all(|(value, known)| (value - known).abs() < 1e-3));
/// # Ok(())
/// # }
/// ```
///
/// # Memory of the caller
///
/// Beneath, everything works on slices: a step is a function of the state, which is one slice, for loops that keep time and for methods that the file does
/// not name.
///
/// ```
/// use mbs_runtime::{Ali3p, Assembly, Quantity, State};
/// mbs_macros::model_solver! { mod slider_crank = "../models/slider_crank.yaml"; }
/// use slider_crank::{DIMS, Model, NAMES};
///
/// let model = Model::default();
/// let mut inputs = model.signals();
/// let mut state = [0.0; State::<f64>::len(&DIMS)];
/// let mut scratch = [0.0; Assembly::scratch_len(&DIMS)];
/// Assembly::DEFAULT.begin(&model, &mut inputs, 0.0, &mut state, &mut scratch).expect("bars that reach");
///
/// let mut scratch = [0.0; Ali3p::scratch_len(&DIMS)];
/// for _ in 0..1000 {
///     Ali3p::DEFAULT.step(&model, &mut inputs, &mut state, 1e-3, &mut scratch).expect("a small step");
/// }
/// let now = State::of(&DIMS, &mut state).expect("a state of this length");
/// const SLIDE: usize = NAMES.index(Quantity::Coordinate, "slide.displacement").unwrap();
/// assert!((now.z[SLIDE] - 1.001).abs() < 1e-3);
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
