//! How far a long act is: a bar on a terminal, a line for each step elsewhere. It goes to the error output, so that answers stay
//! answers.

use std::io::{IsTerminal, Write, stderr};

use crate::screen::clean;

/// What is shown while something goes on.
pub(crate) struct Progress {
    terminal: bool,
    shown: String,
}

impl Progress {
    pub(crate) fn new() -> Self {
        Self { terminal: stderr().is_terminal(), shown: String::new() }
    }

    /// Shows that `done` of `total` are done, unless that is what stands there.
    pub(crate) fn show(&mut self, done: u64, total: u64, words: &str) {
        let line = if self.terminal {
            format!("[{}] {done}/{total} {}", bar(done, total), clean(words))
        } else {
            format!("{done}/{total} {}", clean(words))
        };
        if line == self.shown {
            return;
        }
        // Who does not look needs no progress.
        let _ = if self.terminal { write!(stderr(), "\r\x1b[K{line}") } else { writeln!(stderr(), "{line}") };
        self.shown = line;
    }

    /// Leaves the line to whoever speaks next.
    pub(crate) fn end(&mut self) {
        if self.terminal && !self.shown.is_empty() {
            let _ = writeln!(stderr());
        }
        self.shown.clear();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.end();
    }
}

fn bar(done: u64, total: u64) -> String {
    let full = if total == 0 { WIDTH } else { (done.min(total) * WIDTH).checked_div(total).unwrap_or(WIDTH) };
    (0..WIDTH).map(|at| if at < full { '=' } else { ' ' }).collect()
}

/// How wide a bar is.
const WIDTH: u64 = 24;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_never_longer_than_it_is() {
        assert_eq!(bar(1, 2), format!("{}{}", "=".repeat(12), " ".repeat(12)));
        for (done, total) in [(0, 0), (5, 5), (9, 5)] {
            assert_eq!(bar(done, total), "=".repeat(24));
        }
    }
}
