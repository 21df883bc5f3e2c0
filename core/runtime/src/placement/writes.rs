//! What a node writes into the directory about its shards, and what the answers show. Nothing is waited for for ever.

use std::rc::Rc;
use std::sync::Arc;

use archipelago_protocol::contract::{DirectoryError, Move, OwnerRecord, PlacementDecision};
use archipelago_protocol::handoff::{HandoffLimits, HostEvent, Owned};
use archipelago_protocol::identity::{Generation, OwnedKey, Placement};
use archipelago_protocol::link::Hint;
use archipelago_protocol::placement::ClaimOutcome;
use archipelago_protocol::session::{Session, times};
use archipelago_protocol::time::Millis;
use metrics::counter;

use super::hosting::NoJob;
use crate::arbiter::ArbiterLocal;
use crate::env::{Oddity, within};
use crate::mutants::{Mutant, broken};
use crate::node::NodeShared;
use crate::ranges::Grant;
use crate::remote::Shard;

impl ArbiterLocal {
    pub(super) fn claim(self: &Rc<Self>, shard: Shard) {
        if self.is_of_range(shard) {
            return self.ask_directory(shard, async move |node, key| {
                Some(HostEvent::Claimed(granted(&node, shard.kind, &key).await))
            });
        }
        self.ask_directory(shard, async |node, key| Some(HostEvent::Claimed(claimed(&node, &key).await)));
    }

    pub(super) fn look_at_record(self: &Rc<Self>, shard: Shard) {
        if self.is_of_range(shard) {
            // Nobody writes records for it: whoever wants it here asks for it.
            return self.ask_directory(shard, async |_, _| Some(HostEvent::LookedUp(None)));
        }
        self.ask_directory(shard, async |node, key| {
            let limit = times::attempt_timeout(node.settings().session_ttl);
            let found = within(node.env(), limit, node.directory().lookup(&key)).await;
            let record = found.and_then(Result::ok).flatten();
            Some(HostEvent::LookedUp(record.as_ref().map(Owned::from)))
        });
    }

    pub(super) fn reassert(self: &Rc<Self>, shard: Shard, record: Owned) {
        self.ask_directory(shard, async move |node, key| {
            let Session { id, ttl } = session_of(&node);
            let placement = Placement { key, node: id, generation: record.hint.generation };
            let base = OwnerRecord { placement, since: record.since, ttl, moved: record.moved };
            let attempt = node.directory().reassert(&base);
            match within(node.env(), times::attempt_timeout(ttl), attempt).await? {
                Ok(record) => Some(HostEvent::Seen(Owned::from(&record))),
                Err(error) => conflicting(record.hint.generation, &error),
            }
        });
    }

    pub(super) fn transfer(self: &Rc<Self>, shard: Shard, generation: Generation, to: Session, moved: Move) {
        let on = Rc::downgrade(self);
        self.ask_directory(shard, async move |node, key| {
            let placement = Placement { key, node: node.id(), generation };
            let attempt = node.directory().transfer(&placement, to, Some(moved));
            let answer = within(node.env(), HandoffLimits::DEFAULT.transfer, attempt).await;
            if let (Some(Ok(placement)), Some(on)) = (&answer, on.upgrade()) {
                on.point_out(shard, to.id, placement.generation);
            }
            Some(match answer {
                Some(Ok(Placement { node: owner, generation, .. })) => {
                    let hint = Hint { owner, generation };
                    HostEvent::Seen(Owned { hint, since: generation, moved: Some(moved) })
                }
                other => gave_no_answer(generation, moved.id, other.and_then(Result::err)),
            })
        });
    }

    pub(super) fn release(self: &Rc<Self>, shard: Shard, generation: Generation, move_id: u64) {
        if self.is_of_range(shard) {
            // The record is that of its range, and stays.
            return self.ask_directory(shard, async move |_, _| Some(HostEvent::SeenGone(generation)));
        }
        self.ask_directory(shard, async move |node, key| {
            let placement = Placement { key, node: node.id(), generation };
            let attempt = node.directory().release(&placement);
            Some(match within(node.env(), HandoffLimits::DEFAULT.transfer, attempt).await {
                Some(Ok(())) => {
                    counter!("archipelago_records_given_up_total").increment(1);
                    HostEvent::SeenGone(generation)
                }
                other => gave_no_answer(generation, move_id, other.and_then(Result::err)),
            })
        });
    }

    /// Runs one request beside the arbiter's other work and feeds what came of it to the machine.
    fn ask_directory<F>(self: &Rc<Self>, shard: Shard, ask: F)
    where
        F: AsyncFnOnce(Arc<NodeShared>, OwnedKey) -> Option<HostEvent<NoJob>> + 'static,
    {
        let Some(key) = self.key_of(shard) else { return };
        let (on, node) = (Rc::downgrade(self), Arc::clone(self.node()));
        self.node().env().spawn(Box::pin(async move {
            let event = ask(node, key.clone()).await;
            let Some(on) = on.upgrade() else { return };
            // A single actor that was forgotten meanwhile may have made room for another with its hash.
            if let Some(event) = event.filter(|_| on.key_of(shard) == Some(key)) {
                on.host(shard, event);
            }
        }));
    }
}

/// What a write without success says. Only what was certainly not applied leaves everything as it was.
fn gave_no_answer(generation: Generation, move_id: u64, error: Option<DirectoryError>) -> HostEvent<NoJob> {
    match error {
        Some(DirectoryError::Unavailable { .. } | DirectoryError::Invalid { .. }) => {
            HostEvent::TransferUnapplied { move_id }
        }
        Some(DirectoryError::Unknown { .. }) if broken(Mutant::UnsealAfterUnknown) => {
            HostEvent::TransferUnapplied { move_id }
        }
        Some(error) => conflicting(generation, &error).unwrap_or(HostEvent::TransferUnknown { move_id }),
        None if broken(Mutant::UnsealAfterUnknown) => HostEvent::TransferUnapplied { move_id },
        None => HostEvent::TransferUnknown { move_id },
    }
}

/// What stands in the directory in place of the record that was to be written over.
fn conflicting(generation: Generation, error: &DirectoryError) -> Option<HostEvent<NoJob>> {
    match error {
        DirectoryError::Conflict { current: Some(record) } => Some(HostEvent::Seen(Owned::from(&**record))),
        DirectoryError::Conflict { current: None } => Some(HostEvent::SeenGone(generation)),
        _ => None,
    }
}

/// Claims a key once.
async fn claimed(node: &Arc<NodeShared>, key: &OwnedKey) -> ClaimOutcome {
    let session = session_of(node);
    let attempt = node.directory().claim(key, session, None);
    let answer = within(node.env(), times::attempt_timeout(session.ttl), attempt).await;
    match answer.filter(|_| !node.env().oddly(Oddity::ClaimUnanswered)) {
        Some(Ok(PlacementDecision::Placed(placement))) => {
            counter!("archipelago_placements_total", "decision" => "placed").increment(1);
            ClaimOutcome::Placed(placement.generation)
        }
        Some(Ok(PlacementDecision::AlreadyPlaced(record))) => {
            counter!("archipelago_placements_total", "decision" => "already_placed").increment(1);
            if node.is_doubtful(record.placement.node) {
                node.members().blocked_by(record.session());
            }
            ClaimOutcome::Taken(Owned::from(&record).hint)
        }
        Some(Ok(PlacementDecision::Raced { winner })) => {
            counter!("archipelago_placements_total", "decision" => "raced").increment(1);
            if broken(Mutant::RaceLostServesAnyway) {
                return ClaimOutcome::Placed(winner.placement.generation);
            }
            ClaimOutcome::Taken(Owned::from(&winner).hint)
        }
        Some(Err(DirectoryError::SessionLost { .. })) => ClaimOutcome::SessionLost,
        unanswered => {
            tracing::debug!(%key, ?unanswered, "claim unanswered");
            if broken(Mutant::ServeWithoutGrant) {
                return ClaimOutcome::Placed(Generation::new(u64::MAX));
            }
            ClaimOutcome::Unanswered
        }
    }
}

/// Whether this node may run an actor of a range, because the range is its own. A range that is about to come is waited for.
///
/// Nothing is waited for between the answer of the ranges and the end of this: whoever closes a range and then looks at the
/// arbiters finds all actors that were granted before.
async fn granted(node: &Arc<NodeShared>, kind: u32, key: &OwnedKey) -> ClaimOutcome {
    let OwnedKey::Actor(actor) = key else { return ClaimOutcome::NotHere };
    let until = node.env().now() + GRANT_WITHIN;
    let mut changes = node.ranges().changes();
    loop {
        match node.ranges().grant(kind, actor.key().as_str(), node.id()) {
            Grant::Held(generation) => {
                counter!("archipelago_placements_total", "decision" => "granted").increment(1);
                return ClaimOutcome::Placed(generation);
            }
            Grant::Elsewhere => return ClaimOutcome::NotHere,
            Grant::Coming => {}
        }
        let left = until.since(node.env().now());
        let waited = within(node.env(), left, changes.changed()).await;
        if left == Millis::ZERO || waited != Some(true) {
            return ClaimOutcome::NotHere;
        }
    }
}

pub(crate) fn session_of(node: &NodeShared) -> Session {
    Session { id: node.id(), ttl: node.settings().session_ttl }
}

/// How long an actor waits for its range to come here.
const GRANT_WITHIN: Millis = Millis(1_000);
