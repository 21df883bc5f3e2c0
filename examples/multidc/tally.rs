//! Calls, by how far they went.

use std::time::Duration;

use crate::actors::Answer;
use crate::node::Failed;
use crate::running::Running;

/// What came of all calls.
#[derive(Default)]
pub(crate) struct Tally {
    local: Row,
    nearby: Row,
    abroad: Row,
}

/// Calls that went equally far.
#[derive(Default)]
pub(crate) struct Row {
    times: Vec<Duration>,
    pub(crate) failures: usize,
}

impl Tally {
    /// Touches a ledger from a node. A call that fails counts as one that went abroad, since nobody knows where it went.
    pub(crate) async fn touch(&mut self, from: &Running, key: &str) -> Result<Answer, Failed> {
        let (answer, took) = from.touch(key).await;
        match &answer {
            Ok(answer) => self.row(&from.name, &answer.node).times.push(took),
            Err(_) => self.abroad.failures += 1,
        }
        answer
    }

    fn row(&mut self, from: &str, to: &str) -> &mut Row {
        let town = |node: &str| node.split('-').next().unwrap_or_default().to_owned();
        match (from == to, town(from) == town(to)) {
            (true, _) => &mut self.local,
            (false, true) => &mut self.nearby,
            (false, false) => &mut self.abroad,
        }
    }

    pub(crate) fn rows(&self) -> [(&'static str, &Row); 3] {
        [("local", &self.local), ("in-DC", &self.nearby), ("cross-DC", &self.abroad)]
    }
}

impl Row {
    pub(crate) fn calls(&self) -> usize {
        self.times.len() + self.failures
    }

    /// The time that so many percent of the calls did not exceed.
    pub(crate) fn quantile(&self, percent: usize) -> Option<Duration> {
        let mut times = self.times.clone();
        times.sort_unstable();
        let last = times.len().checked_sub(1)?;
        times.get(last * percent / 100).copied()
    }
}
