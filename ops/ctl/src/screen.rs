//! What people and programs are shown.
//!
//! Names and keys come from the network. Invariant: none of their characters reaches a terminal that it would take for an order:
//! control characters and those that turn the direction of a text are written as what they are.

use std::borrow::Cow;
use std::io::{self, BufWriter, Stdout, Write};

use serde_json::Value;

use crate::table::Table;

/// Where the answer goes.
pub(crate) struct Screen {
    out: BufWriter<Stdout>,
    json: bool,
}

impl Screen {
    pub(crate) fn new(json: bool) -> Self {
        Self { out: BufWriter::new(io::stdout()), json }
    }

    /// Whether programs read it.
    pub(crate) const fn is_for_programs(&self) -> bool {
        self.json
    }

    /// Shows JSON to programs, and to people what `table` makes of it.
    pub(crate) fn show(&mut self, value: &Value, table: impl FnOnce(&Value) -> Table) -> io::Result<()> {
        if self.json { self.json(value) } else { self.table(&table(value)) }
    }

    /// Shows a table.
    pub(crate) fn table(&mut self, table: &Table) -> io::Result<()> {
        for line in table.lines() {
            writeln!(self.out, "{line}")?;
        }
        self.out.flush()
    }

    /// Shows one line at once.
    pub(crate) fn line(&mut self, words: &str) -> io::Result<()> {
        writeln!(self.out, "{}", clean(words))?;
        self.out.flush()
    }

    /// Shows JSON for programs, on several lines.
    pub(crate) fn json(&mut self, value: &Value) -> io::Result<()> {
        writeln!(self.out, "{}", escaped(&format!("{value:#}")))?;
        self.out.flush()
    }

    /// Shows JSON on one line.
    pub(crate) fn json_line(&mut self, value: &Value) -> io::Result<()> {
        writeln!(self.out, "{}", escaped(&value.to_string()))?;
        self.out.flush()
    }

    /// Writes bytes that this command has made itself.
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.out.flush()
    }
}

/// The text without characters that a terminal takes for orders; they are written as `\u{1b}`.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    if !text.contains(is_order) {
        return Cow::Borrowed(text);
    }
    let shown = |c: char| if is_order(c) { format!("\\u{{{:x}}}", u32::from(c)) } else { c.to_string() };
    Cow::Owned(text.chars().map(shown).collect())
}

/// JSON in which such characters, which can only be in its texts, are escaped.
fn escaped(json: &str) -> Cow<'_, str> {
    let in_text = |c: char| is_order(c) && c != '\n';
    if !json.contains(in_text) {
        return Cow::Borrowed(json);
    }
    let shown = |c: char| if in_text(c) { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() };
    Cow::Owned(json.chars().map(shown).collect())
}

/// Control characters, ends of lines and paragraphs, and what turns or hides text. None is beyond the first plane.
fn is_order(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_takes_for_an_order_is_written_as_what_it_is() {
        let hostile = "a\u{1b}[2J\u{9b}31m\u{202e}b\r\n\u{7f}\u{200b}";
        let shown = clean(hostile);
        assert!(!shown.contains(is_order), "{shown:?}");
        assert_eq!(clean("\u{1b}[2J"), "\\u{1b}[2J");
        assert_eq!(clean("Ada \u{e9} \u{4e2d} \u{1f600}"), "Ada \u{e9} \u{4e2d} \u{1f600}", "letters stay");
    }

    #[test]
    fn json_with_such_characters_stays_the_same_json() {
        let hostile = "a\u{1b}[2J\u{9b}31m\u{202e}b\r\n\u{7f}\"\\";
        let value = Value::from(hostile);
        let shown = escaped(&value.to_string()).into_owned();
        assert!(!shown.contains(is_order), "{shown:?}");
        assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), value);
    }
}
