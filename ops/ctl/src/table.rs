//! Tables for people: columns as wide as what is in them, numbers to the right.

use unicode_width::UnicodeWidthStr;

use crate::screen::clean;

/// Rows under names of columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
    /// Lines that follow.
    notes: Vec<String>,
}

impl Table {
    pub(crate) fn new(columns: &[&str]) -> Self {
        let columns = columns.iter().map(|&name| name.to_owned()).collect();
        Self { columns, rows: Vec::new(), notes: Vec::new() }
    }

    /// Adds a row.
    pub(crate) fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.rows.push(cells.into_iter().map(|cell| clean(&cell.into()).into_owned()).collect());
    }

    /// Adds a line below.
    pub(crate) fn note(&mut self, words: impl Into<String>) {
        self.notes.push(clean(&words.into()).into_owned());
    }

    /// Appends the rows and notes of another with the same columns, `first` before each row.
    pub(crate) fn append(&mut self, first: &str, other: Self) {
        for mut row in other.rows {
            row.insert(0, clean(first).into_owned());
            self.rows.push(row);
        }
        self.notes.extend(other.notes.into_iter().map(|note| format!("{}: {note}", clean(first))));
    }

    /// The same columns with one more before them, and no rows.
    pub(crate) fn under(&self, first: &str) -> Self {
        let columns = std::iter::once(first.to_owned()).chain(self.columns.iter().cloned()).collect();
        Self { columns, rows: Vec::new(), notes: Vec::new() }
    }

    /// What is shown.
    pub(crate) fn lines(&self) -> Vec<String> {
        let widths: Vec<usize> = (0..self.columns.len()).map(|column| self.width(column)).collect();
        let numeric: Vec<bool> = (0..self.columns.len()).map(|column| self.is_numeric(column)).collect();
        let line = |cells: &[String]| {
            let cells = cells.iter().zip(&widths).zip(&numeric);
            let padded: Vec<String> = cells.map(|((cell, width), right)| pad(cell, *width, *right)).collect();
            padded.join("  ").trim_end().to_owned()
        };
        let names: Vec<String> = self.columns.iter().map(|name| name.to_uppercase()).collect();
        let mut lines: Vec<String> =
            std::iter::once(line(&names)).chain(self.rows.iter().map(|row| line(row))).collect();
        if self.rows.is_empty() {
            lines.push("none".to_owned());
        }
        lines.extend(self.notes.iter().cloned());
        lines
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width());
        cells.chain([self.columns[column].width()]).max().unwrap_or(0)
    }

    fn is_numeric(&self, column: usize) -> bool {
        let number =
            |cell: &String| cell == "-" || cell.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let mut cells = self.rows.iter().filter_map(|row| row.get(column));
        !self.rows.is_empty() && cells.all(number)
    }
}

fn pad(cell: &str, width: usize, right: bool) -> String {
    let room = " ".repeat(width.saturating_sub(cell.width()));
    if right { format!("{room}{cell}") } else { format!("{cell}{room}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_what_is_in_them_and_numbers_stand_to_the_right() {
        let mut table = Table::new(&["name", "count"]);
        table.row(["a", "7"]);
        table.row(["\u{4e2d}\u{6587}\u{4e2d}", "1234567"]);
        table.note("that is all");
        let expected =
            ["NAME      COUNT", "a             7", "\u{4e2d}\u{6587}\u{4e2d}  1234567", "that is all"];
        assert_eq!(table.lines(), expected);
    }

    #[test]
    fn a_hostile_cell_stays_in_its_row() {
        let mut table = Table::new(&["key"]);
        table.row(["a\nb\u{1b}[31m"]);
        assert_eq!(table.lines(), ["KEY", "a\\u{a}b\\u{1b}[31m"]);
        assert_eq!(Table::new(&["key"]).lines(), ["KEY", "none"]);
    }
}
