//! Tables in Markdown with aligned columns, so that the same text serves a terminal and a document.

/// A table under construction: its heading, then row after row.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(heading: impl IntoIterator<Item = impl Into<String>>) -> Table {
        let mut table = Table { rows: Vec::new() };
        table.push(heading);
        table
    }

    /// Adds a row with as many cells as the heading has.
    pub(crate) fn push(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) {
        let cells: Vec<String> = cells.into_iter().map(Into::into).collect();
        if let Some(heading) = self.rows.first() {
            assert_eq!(cells.len(), heading.len(), "a row that does not fit");
        }
        self.rows.push(cells);
    }

    /// The first column is aligned to the left, all others to the right.
    pub(crate) fn markdown(&self) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().map(|row| row[column].chars().count());
            cells.max().unwrap_or(0).max(4)
        };
        let widths: Vec<usize> = (0..self.rows[0].len()).map(width).collect();
        let line = |cells: &[String]| {
            let cells = cells.iter().zip(&widths).enumerate();
            let cells = cells.map(|(column, (cell, width))| match column {
                0 => format!(" {cell:<width$} |"),
                _ => format!(" {cell:>width$} |"),
            });
            format!("|{}\n", cells.collect::<String>())
        };
        let rule: Vec<String> = widths
            .iter()
            .enumerate()
            .map(|(column, width)| match column {
                0 => "-".repeat(*width),
                _ => format!("{}:", "-".repeat(width - 1)),
            })
            .collect();
        let (heading, rows) = self.rows.split_first().expect("a table has a heading");
        let rows: String = rows.iter().map(|row| line(row)).collect();
        line(heading) + &line(&rule) + &rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(["row", "ours"]);
        table.push(["async1", "±1"]);
        assert_eq!(
            table.markdown(),
            "| row    | ours |\n| ------ | ---: |\n| async1 |   ±1 |\n"
        );
    }

    #[test]
    #[should_panic(expected = "does not fit")]
    fn a_row_has_as_many_cells_as_the_heading() {
        Table::new(["one", "two"]).push(["one"]);
    }
}
