//! A list of steps: each is run, timed and reported, and the failure of one does not hide the next.

use std::fmt;
use std::time::{Duration, Instant};

use crate::workspace::Workspace;

/// One named piece of work.
pub(crate) struct Step {
    name: String,
    vital: bool,
    run: Box<dyn Fn(&mut Workspace) -> Outcome>,
}

/// How a step ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// As it should; with lines worth repeating at the end.
    Ok(Vec<String>),
    /// Not as it should, and why; with lines worth repeating at the end.
    Failed(String, Vec<String>),
    /// Not done, and why.
    Skipped(String),
}

/// What became of every step.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) entries: Vec<Entry>,
}

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) time: Duration,
    pub(crate) outcome: Outcome,
}

impl Step {
    /// A step after whose failure the others still run.
    pub(crate) fn new(name: impl Into<String>, run: impl Fn(&mut Workspace) -> Outcome + 'static) -> Self {
        Self { name: name.into(), vital: false, run: Box::new(run) }
    }

    /// A step after whose failure no other can succeed.
    pub(crate) fn vital(name: impl Into<String>, run: impl Fn(&mut Workspace) -> Outcome + 'static) -> Self {
        Self { vital: true, ..Self::new(name, run) }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

/// Runs the steps in order.
pub(crate) fn run_all(steps: &[Step], workspace: &mut Workspace) -> Report {
    run_each(steps, workspace, |_| {})
}

/// Runs the steps in order, and shows what became of them so far after each.
pub(crate) fn run_each(steps: &[Step], workspace: &mut Workspace, mut show: impl FnMut(&Report)) -> Report {
    let mut report = Report::default();
    let mut broken: Option<&str> = None;
    for step in steps {
        let started = Instant::now();
        let outcome = match broken {
            Some(vital) => Outcome::Skipped(format!("{vital} failed")),
            None => {
                println!("\n== {} ==", step.name);
                (step.run)(workspace)
            }
        };
        let time = started.elapsed();
        if broken.is_none() {
            println!("== {}: {outcome} after {:.1} s ==", step.name, time.as_secs_f64());
        }
        if step.vital && matches!(outcome, Outcome::Failed(..)) {
            broken = Some(&step.name);
        }
        report.entries.push(Entry { name: step.name.clone(), time, outcome });
        show(&report);
    }
    report
}

impl Report {
    /// Nothing failed. A skipped step is no failure: what must not be skipped fails by itself.
    pub(crate) fn succeeded(&self) -> bool {
        !self.entries.iter().any(|entry| matches!(entry.outcome, Outcome::Failed(..)))
    }

    /// Prints the table, then the lines worth repeating, then the verdict.
    pub(crate) fn print(&self) {
        println!("\n{self}");
        for entry in &self.entries {
            for line in entry.outcome.lines() {
                println!("{}", line.trim());
            }
        }
        let failed: Vec<&str> = self
            .entries
            .iter()
            .filter(|entry| matches!(entry.outcome, Outcome::Failed(..)))
            .map(|entry| entry.name.as_str())
            .collect();
        match failed.as_slice() {
            [] => println!("ok"),
            failed => println!("failed: {}", failed.join(", ")),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<18} {:>8}  result", "step", "seconds")?;
        for entry in &self.entries {
            writeln!(f, "{:<18} {:>8.1}  {}", entry.name, entry.time.as_secs_f64(), entry.outcome)?;
        }
        let total: Duration = self.entries.iter().map(|entry| entry.time).sum();
        writeln!(f, "{:<18} {:>8.1}", "all", total.as_secs_f64())
    }
}

impl Outcome {
    /// Ok without anything to repeat.
    pub(crate) const fn ok() -> Self {
        Self::Ok(Vec::new())
    }

    /// Failed without anything to repeat.
    pub(crate) fn failed(why: impl Into<String>) -> Self {
        Self::Failed(why.into(), Vec::new())
    }

    pub(crate) fn lines(&self) -> &[String] {
        match self {
            Self::Ok(lines) | Self::Failed(_, lines) => lines,
            Self::Skipped(_) => &[],
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ok(_) => f.write_str("ok"),
            Self::Failed(why, _) => write!(f, "FAILED ({why})"),
            Self::Skipped(why) => write!(f, "skipped ({why})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(steps: &[Step]) -> (Vec<String>, bool) {
        let report = run_all(steps, &mut Workspace::at(".".into()));
        let shown = report.entries.iter().map(|entry| entry.outcome.to_string()).collect();
        (shown, report.succeeded())
    }

    #[test]
    fn later_steps_run_after_a_failure_but_not_after_a_vital_one() {
        let fails = |_: &mut Workspace| Outcome::failed("no");
        let works = |_: &mut Workspace| Outcome::ok();
        let steps =
            [Step::new("a", fails), Step::new("b", works), Step::vital("c", fails), Step::new("d", works)];
        let (shown, succeeded) = outcomes(&steps);
        assert_eq!(shown, ["FAILED (no)", "ok", "FAILED (no)", "skipped (c failed)"]);
        assert!(!succeeded);
    }

    #[test]
    fn skipped_step_alone_is_no_failure() {
        let (_, succeeded) = outcomes(&[Step::new("a", |_| Outcome::Skipped("nothing there".to_owned()))]);
        assert!(succeeded);
    }
}
