//! Stopping a node: finish the work, let the actors go, give back what it owned.

use archipelago_protocol::time::Millis;
use futures_util::future::join_all;
use tokio::sync::oneshot;

use super::{Node, NodeShared, StopError};
use crate::arbiter::{Drained, Entry, Survey};
use crate::cluster::Plan;
use crate::datacenter;
use crate::env::{ArbiterMain, ArbiterRole, within};
use crate::events::Event;
use crate::placement::hand_everything_over;
use crate::session::{self, SessionState};

impl Node {
    /// Hands its shards over to other nodes, takes no new work, finishes what is under way within the budget, deactivates every actor with its hook
    /// run, and gives the node's session back. Run it to its end: a stop that is dropped half-way stays half-way.
    ///
    /// # Errors
    ///
    /// [`StopError::Unfinished`] counts what the budget was too short for; the node has stopped all the same.
    /// [`StopError::SystemStopped`] says that the node had no arbiters any more.
    pub async fn stop(&self) -> Result<(), StopError> {
        if !self.shared().lives().begin_stop() {
            return Err(StopError::Twice);
        }
        // There is no further life from here on.
        let node = self.shared();
        node.events().publish(Event::NodeStopping { node: node.id() });
        node.members().plan(Plan::Leave);
        datacenter::leaving(node).await;
        let until = node.env().now() + node.settings().stop_budget;
        let headless = has_lost_its_arbiters(node);
        hand_everything_over(node, node.env().now() + Millis(node.settings().stop_budget.0 / 2)).await;
        let arbiters = node.data_arbiters();
        let reports = join_all(arbiters.clone().map(|index| ask_to_drain(node, index, until))).await;
        wait_until_all_are_quiet(node, until).await;
        let drained = join_all(reports.into_iter().map(|report| report_of(node, report, until))).await;
        let stuck = drained.contains(&None);
        if stuck {
            // A handler still runs and cannot be stopped: what it works on must not be given away. The session
            // runs out by itself.
            node.give_up("a handler blocks its arbiter");
        } else {
            datacenter::left(node).await;
            node.members().plan(Plan::HandedOff);
            // With the session everything that the node owns becomes free at once.
            session::close(node).await;
        }
        let limit = if stuck { Millis::ZERO } else { PART_LIMIT };
        part(node, limit).await;
        node.watches().close(node.id());
        if !node.lives().keeper_over(node.env(), PART_LIMIT).await {
            tracing::warn!(node = %node.id(), "what was begun to rejoin has not ended in time");
        }
        node.lives().stop_is_over();
        if headless { Err(StopError::SystemStopped) } else { summed_up(node, drained) }
    }
}

impl Node {
    /// Begins to stop, as [`stop`](Self::stop) does, and answers at once: the stop goes on when whoever asked has gone.
    /// [`run`](Self::run) and [`stopped`](Self::stopped) end with it.
    ///
    /// # Errors
    ///
    /// [`StopError::Twice`] if that was asked for before, [`StopError::NoSystem`] if there is no runtime to stop it on.
    pub fn begin_stop(&self) -> Result<(), StopError> {
        let node = self.shared();
        if node.is_stopping() {
            return Err(StopError::Twice);
        }
        let this = self.clone();
        let main = ArbiterMain::among_others(move || {
            Box::pin(async move {
                if let Err(error) = this.stop().await {
                    tracing::warn!(%error, "a node did not stop in good order");
                }
            })
        });
        node.env().start_arbiter(ArbiterRole::Keeper, main).map_err(|_| StopError::NoSystem)
    }

    /// Waits until the node has stopped, whoever stopped it.
    pub async fn stopped(&self) {
        self.shared().lives().stopped().await;
    }
}

/// Somebody stopped the actix system under the node. Arbiters whose session is lost end by themselves: that is another matter.
fn has_lost_its_arbiters(node: &NodeShared) -> bool {
    let is_fenced = node.session().read(|state| matches!(state, SessionState::Lost(_)));
    let ended = |index| node.arbiter(index).ingress().is_closed();
    let lost = !is_fenced && node.data_arbiters().any(ended);
    if lost {
        tracing::error!(node = %node.id(), "the actix system was stopped before the node: nothing can be handed over");
    }
    lost
}

fn summed_up(node: &NodeShared, drained: Vec<Option<Drained>>) -> Result<(), StopError> {
    let one_of_each = Drained { jobs: 1, actors: 1 };
    let rest = drained.into_iter().map(|one| one.unwrap_or(one_of_each));
    let (jobs, actors) = rest.fold((0, 0), |(jobs, actors), one| (jobs + one.jobs, actors + one.actors));
    tracing::info!(node = %node.id(), jobs, actors, "node stopped");
    if (jobs, actors) == (0, 0) { Ok(()) } else { Err(StopError::Unfinished { jobs, actors }) }
}

/// Lets the arbiters say goodbye and end. One that has ended need not know; one whose way in is full ends by itself.
async fn part(node: &NodeShared, limit: Millis) {
    let parted = (0_u16..).zip(&node.arbiters).map(|(index, _)| async move {
        let (done, is_done) = oneshot::channel();
        if node.enter(index, Entry::Part(done)).is_ok() {
            // An error says that it has ended.
            let _ = is_done.await;
        }
    });
    if within(node.env(), limit, join_all(parted)).await.is_none() {
        tracing::info!(node = %node.id(), "not every arbiter has ended in time");
    }
}

type Report = oneshot::Receiver<Drained>;

/// Asks one arbiter to drain; `None` if it does not even take the request.
async fn ask_to_drain(node: &NodeShared, index: u16, until: Millis) -> Option<Report> {
    let (done, report) = oneshot::channel();
    // Waits for room: a full way in is no reason not to stop.
    let asked = node.arbiter(index).ingress().send(Entry::Drain { until, done });
    within(node.env(), left(node, until), asked).await?.ok();
    Some(report)
}

/// What an arbiter could not finish; `None` if it does not say, because a handler blocks it.
async fn report_of(node: &NodeShared, report: Option<Report>, until: Millis) -> Option<Drained> {
    let report = within(node.env(), left(node, until), report?).await?;
    // An arbiter that is gone has nothing left.
    Some(report.unwrap_or_default())
}

/// Waits until no arbiter has work left, and tells them all. What one has finished may still send to another, so
/// two surveys in a row must find no work, and none that came in between.
async fn wait_until_all_are_quiet(node: &NodeShared, until: Millis) {
    let mut before = None;
    while node.env().now() < until {
        let surveys =
            join_all((0_u16..).zip(&node.arbiters).map(|(index, _)| survey(node, index, until))).await;
        let accepted: u64 = surveys.iter().fold(0, |sum, survey| sum.wrapping_add(survey.accepted));
        let quiet = surveys.iter().all(|survey| survey.open == 0);
        if quiet && before == Some(accepted) {
            break;
        }
        before = quiet.then_some(accepted);
        if !quiet {
            node.env().sleep(SURVEY_PAUSE).await;
        }
    }
    for (index, _) in (0_u16..).zip(&node.arbiters) {
        // An arbiter that has ended need not know; one whose way in is full ends by its deadline.
        let _ = node.enter(index, Entry::AllQuiet);
    }
}

/// How much an arbiter has to do; one that is gone has nothing.
async fn survey(node: &NodeShared, index: u16, until: Millis) -> Survey {
    let (answer, survey) = oneshot::channel();
    let ask = async {
        node.arbiter(index).ingress().send(Entry::Survey(answer)).await.ok()?;
        survey.await.ok()
    };
    let stuck = Survey { open: 1, accepted: 0 };
    let limit = until.since(node.env().now());
    within(node.env(), limit, ask).await.map_or(stuck, Option::unwrap_or_default)
}

fn left(node: &NodeShared, until: Millis) -> Millis {
    until.since(node.env().now()) + STUCK_AFTER
}

/// How long after its deadline an arbiter may still report.
const STUCK_AFTER: Millis = Millis(1_000);

/// How long arbiters may take to say goodbye: somewhat longer than they do.
const PART_LIMIT: Millis = Millis(3_000);

/// How long to wait between two surveys that found work.
const SURVEY_PAUSE: Millis = Millis(2);
