//! Text in aligned columns.

/// Rows of cells under a head; columns of numbers are aligned to the right.
pub(crate) struct Table {
    right: Vec<bool>,
    rows: Vec<Vec<String>>,
}

/// Distance between columns, and from the margin.
const GAP: &str = "  ";

impl Table {
    /// Column heads; one that begins with `>` is aligned to the right.
    pub(crate) fn new(heads: &[&str]) -> Table {
        Table {
            right: heads.iter().map(|head| head.starts_with('>')).collect(),
            rows: vec![heads.iter().map(|head| head.trim_start_matches('>').to_string()).collect()],
        }
    }

    /// Adds a row.
    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.into());
    }

    /// Adds a row of any length.
    pub(crate) fn cells(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Whether there are no rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.len() < 2
    }

    /// The text. Columns without any content are left out.
    pub(crate) fn print(&self) -> String {
        let columns = self.right.len();
        let body = &self.rows[1..];
        let shown: Vec<usize> = (0..columns)
            .filter(|&c| body.iter().any(|row| row.get(c).is_some_and(|cell| !cell.is_empty())))
            .collect();
        let cell = |row: &Vec<String>, c: usize| row.get(c).cloned().unwrap_or_default();
        let width = |c: usize| self.rows.iter().map(|row| cell(row, c).chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = shown.iter().map(|&c| width(c)).collect();
        let mut out = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (&c, &width) in shown.iter().zip(&widths) {
                let (text, fill) = (cell(row, c), " ".repeat(width - cell(row, c).chars().count()));
                line.push_str(GAP);
                line.push_str(&if self.right[c] { fill + &text } else { text + &fill });
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_align_and_empty_ones_vanish() {
        let mut table = Table::new(&["name", "unit", ">value"]);
        table.row(["α".into(), String::new(), "1.5".into()]);
        table.row(["length".into(), String::new(), "10".into()]);
        assert_eq!(table.print(), "  name    value\n  α         1.5\n  length     10\n");
    }
}
