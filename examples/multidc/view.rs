//! What the person who runs the example sees. Colours and progress only on a terminal.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use archipelago::datacenter::DataCenterState;

use crate::node::Report;
use crate::tally::Tally;

/// The screen, and what was promised so far.
pub(crate) struct View {
    terminal: bool,
    colours: bool,
    began: Instant,
    chapter: usize,
    chapters: usize,
    broken: Vec<String>,
    kept: usize,
    skipped: usize,
}

impl View {
    /// A screen for so many chapters.
    pub(crate) fn new(chapters: usize) -> Self {
        let terminal = std::io::stdout().is_terminal();
        let colours = terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self {
            terminal,
            colours,
            began: Instant::now(),
            chapter: 0,
            chapters,
            broken: Vec::new(),
            kept: 0,
            skipped: 0,
        }
    }

    pub(crate) fn chapter(&mut self, title: &str) {
        self.chapter += 1;
        let (number, all) = (self.chapter, self.chapters);
        let at = self.began.elapsed().as_secs_f32();
        let bar = format!("{}{}", "#".repeat(number), ".".repeat(all.saturating_sub(number)));
        println!(
            "\n{} {} {}",
            self.paint("36", &format!("[{bar}]")),
            self.paint("1;36", &format!("{number}/{all} {title}")),
            self.paint("2", &format!("({at:.1} s)"))
        );
    }

    pub(crate) fn line(&self, text: &str) {
        println!("      {text}");
    }

    /// Something that takes time is under way. The line is written over by the next.
    pub(crate) fn waiting(&self, what: &str, since: Instant) {
        if self.terminal {
            let elapsed = since.elapsed();
            let wheel = ["|", "/", "-", "\\"][usize::try_from(elapsed.as_millis() / 100).unwrap_or(0) % 4];
            let text = format!("{wheel} {what} ({:.1} s)", elapsed.as_secs_f32());
            print!("\r      {}\x1b[K", self.paint("2", &text));
            // A screen that cannot be written shows no progress.
            drop(std::io::stdout().flush());
        }
    }

    pub(crate) fn waited(&self) {
        if self.terminal {
            print!("\r\x1b[K");
        }
    }

    /// Something that only the person at the screen can do, or who acts for it.
    pub(crate) fn ask(&self, command: &str) {
        println!("{} {command}", self.paint("1;33", "do   "));
    }

    /// Something that was promised happened, or did not.
    pub(crate) fn promise(&mut self, kept: bool, what: &str) {
        let mark = if kept { self.paint("1;32", "  ok ") } else { self.paint("1;31", "FAIL ") };
        println!("{mark} {what}");
        if kept {
            self.kept += 1;
        } else {
            self.broken.push(what.to_owned());
        }
    }

    /// A chapter that cannot be told here.
    pub(crate) fn skip(&mut self, why: &str) {
        println!("{} {why}", self.paint("1;33", "skip "));
        self.skipped += 1;
    }

    /// The datacenters as a node sees them.
    pub(crate) fn map(&self, of: &str, report: &Report) {
        let stale = if report.map.stale { self.paint("33", " (stale)") } else { String::new() };
        println!("      {} sees{stale}:", self.paint("1", of));
        for entry in &report.map.entries {
            let colour = match entry.standing {
                DataCenterState::Active => "32",
                DataCenterState::Registered | DataCenterState::Draining => "33",
                DataCenterState::Inactive => "31",
            };
            let tier = entry.info.labels().get("tier").map_or("", String::as_str);
            let standing = self.paint(colour, &format!("{:<9}", entry.standing.to_string()));
            let count = entry.info.endpoints().len();
            println!("        {:<6} {standing} tier={tier:<7} endpoints: {count}", entry.id().as_str());
        }
    }

    /// The last words; whether everything promised has happened.
    pub(crate) fn end(&self, tally: &Tally) -> bool {
        println!("\n{}", self.paint("1;36", "summary"));
        println!("      {:<10} {:>7} {:>9} {:>10} {:>10}", "calls", "count", "failures", "p50", "p99");
        for (name, row) in tally.rows() {
            let (p50, p99) = (shown(row.quantile(50)), shown(row.quantile(99)));
            println!("      {name:<10} {:>7} {:>9} {p50:>10} {p99:>10}", row.calls(), row.failures);
        }
        let took = self.began.elapsed().as_secs_f32();
        let skipped =
            if self.skipped > 0 { format!(", {} chapter skipped", self.skipped) } else { String::new() };
        let (kept, broken) = (self.kept, self.broken.len());
        println!("      {kept} promises kept, {broken} broken{skipped}, in {took:.1} s");
        for broken in &self.broken {
            println!("      {} {broken}", self.paint("1;31", "broken:"));
        }
        self.broken.is_empty()
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.colours { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

fn shown(time: Option<Duration>) -> String {
    time.map_or_else(|| "-".to_owned(), |time| format!("{:.2} ms", time.as_secs_f64() * 1_000.0))
}
