//! A run of a model as one HTML page that opens from disk and makes no network requests.
//!
//! Input: names, curves, tables and a [`Scene`]. Output: the text of the page ([`Report::html`]): a 3-D animation, plots
//! with hover and zoom, tables. The drawing library is plotly.js from the `plotly` crate; the page's own script and style
//! are in `assets/`. This crate does not access files.

mod text;

mod shapes;

pub mod scene;

mod page;

pub use scene::Scene;
pub use shapes::Mesh;

/// Contents of a page.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The model's name.
    pub title: String,
    /// Description of the model; may be empty.
    pub description: String,
    /// The run and its settings, in one line.
    pub run: String,
    /// Why the run failed, if it did.
    pub trouble: Option<String>,
    /// The mechanism in motion.
    pub scene: Option<Scene>,
    /// Times of curves, s; charts refer to them by index.
    pub times: Vec<Vec<f64>>,
    /// Plots over time.
    pub charts: Vec<Chart>,
    /// Tables.
    pub tables: Vec<Table>,
}

/// Curves over time, or over something else, in one diagram, or several sets of them to select from.
#[derive(Clone, Debug, Default)]
pub struct Chart {
    /// Title.
    pub title: String,
    /// How curves are drawn.
    pub kind: Kind,
    /// Label of the vertical axis.
    pub axis: String,
    /// Whether the vertical axis is logarithmic.
    pub logarithmic: bool,
    /// Index of its times in [`Report::times`].
    pub times: usize,
    /// Label of the horizontal axis, if these are no times.
    pub abscissa: Option<String>,
    /// Sets of curves by name; one is shown at a time.
    pub sets: Vec<(String, Vec<Curve>)>,
}

/// How the curves of a chart are drawn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// As lines.
    #[default]
    Lines,
    /// As points.
    Points,
    /// As bars, one for each of these names; a curve has as many values.
    Bars(Vec<String>),
    /// As polylines over these names, in parallel coordinates: the values of a curve are those of one polyline after the other.
    Parallel(Vec<String>),
    /// As paths in the plane, both axes logarithmic: the values of a curve are x and y in turns.
    Paths,
}

/// A curve over time.
#[derive(Clone, Debug)]
pub struct Curve {
    /// Its name in the legend.
    pub name: String,
    /// Its values, as many as times.
    pub values: Vec<f64>,
}

/// A table.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Title.
    pub title: String,
    /// Column headers; a column whose header begins with `>` is right-aligned.
    pub heads: Vec<String>,
    /// Rows of cells.
    pub rows: Vec<Vec<String>>,
}

impl Report {
    /// The page.
    pub fn html(&self) -> String {
        page::html(self)
    }
}
