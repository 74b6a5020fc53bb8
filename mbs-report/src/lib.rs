//! A run of a model as one HTML page that opens from disk and asks for nothing over the network.
//!
//! Enters: names, curves, tables and a [`Scene`]. Leaves: the text of the page ([`Report::html`]): a 3-D animation, plots
//! with hover and zoom, tables. The drawing library is plotly.js, which the `plotly` crate carries; the page's own script and style
//! are in `assets/`. Files are the caller's.

mod page;
pub mod scene;
mod shapes;
mod text;

pub use scene::Scene;
pub use shapes::Mesh;

/// Everything a page shows.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The model's name.
    pub title: String,
    /// What the model is; may be empty.
    pub description: String,
    /// What was run, and how; a line.
    pub run: String,
    /// Why the run did not come to its end, if it did not.
    pub trouble: Option<String>,
    /// The mechanism in motion.
    pub scene: Option<Scene>,
    /// Times of curves, s; charts name them by place.
    pub times: Vec<Vec<f64>>,
    /// Plots over time.
    pub charts: Vec<Chart>,
    /// Tables of words and numbers.
    pub tables: Vec<Table>,
}

/// Curves over time in one frame, or several sets of them to choose from.
#[derive(Clone, Debug, Default)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// Label of the vertical axis.
    pub axis: String,
    /// Whether the vertical axis is logarithmic.
    pub logarithmic: bool,
    /// The place of its times among [`Report::times`].
    pub times: usize,
    /// Sets of curves by name; one is shown at a time.
    pub sets: Vec<(String, Vec<Curve>)>,
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
    /// What it shows.
    pub title: String,
    /// Heads of columns; one that begins with `>` is aligned to the right.
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
