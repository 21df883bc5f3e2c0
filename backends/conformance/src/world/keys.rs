//! What nodes do with keys, by the rules that bind them: ONE-FLIGHT, STOP-FIRST, RECAS and GRANT.

use std::sync::Arc;

use archipelago_protocol::contract::{DirectoryError, OwnerRecord, PlacementDecision};
use archipelago_protocol::identity::{NodeId, OwnedKey, Placement};
use archipelago_protocol::session::{ObserverEvent, Session};

use super::World;
use super::node::TTL;
use super::task::Answer;

impl World {
    /// A node wants a key it does not serve, or lets one go that it does.
    pub(super) fn want(&mut self) {
        let n = self.rng.index(self.nodes.len());
        let key = self.keys[self.rng.index(self.keys.len())].clone();
        let Some(session) = self.nodes[n].session() else { return };
        if self.nodes[n].is_paused(self.now) || self.nodes[n].in_flight.contains(&key) {
            return;
        }
        if let Some(record) = self.nodes[n].doubtful.remove(&key) {
            return self.reassert(n, session, record);
        }
        match self.nodes[n].serving.get(&key) {
            None => self.claim(n, session, key),
            Some(_) if self.rng.chance(700) => {}
            Some(_) => self.give_away(n, session, &key),
        }
    }

    pub(super) fn want_calmly(&mut self) {
        let n = self.rng.index(self.nodes.len());
        let key = self.keys[self.rng.index(self.keys.len())].clone();
        let Some(session) = self.nodes[n].session() else { return };
        if !self.nodes[n].in_flight.contains(&key) && !self.nodes[n].serving.contains_key(&key) {
            self.claim(n, session, key);
        }
    }

    fn claim(&mut self, n: usize, session: Session, key: OwnedKey) {
        self.nodes[n].in_flight.insert(key.clone());
        let (directory, look) = (Arc::clone(&self.directory), self.rng.chance(500));
        let unanswered = Answer::Claimed { key: key.clone(), decision: None };
        self.spawn(n, session.id, unanswered, async move {
            let seen = if look { directory.lookup(&key).await.ok().flatten() } else { None };
            let decision = directory.claim(&key, session, seen).await.ok();
            Answer::Claimed { key, decision }
        });
    }

    /// STOP-FIRST: the node stops serving, then sends.
    fn give_away(&mut self, n: usize, session: Session, key: &OwnedKey) {
        let Some(record) = self.nodes[n].serving.remove(key) else { return };
        self.nodes[n].in_flight.insert(key.clone());
        let to = self.rng.index(self.nodes.len());
        let to = self.nodes[to].session().filter(|_| self.rng.chance(500));
        let directory = Arc::clone(&self.directory);
        let unanswered = Answer::GivenAway { record: record.clone(), refused: false, answered: false };
        self.spawn(n, session.id, unanswered, async move {
            let result = match to {
                Some(to) => directory.transfer(&record.placement, to, None).await.map(drop),
                None => directory.release(&record.placement).await,
            };
            let refused = matches!(result, Err(DirectoryError::Unavailable { .. }));
            let answered = !matches!(result, Err(DirectoryError::Unknown { .. }));
            Answer::GivenAway { record, refused, answered }
        });
    }

    /// "The key stays" after an unanswered hand-over: only by a second write that makes the first impossible.
    fn reassert(&mut self, n: usize, session: Session, record: OwnerRecord) {
        let key = record.key().clone();
        self.nodes[n].in_flight.insert(key.clone());
        let directory = Arc::clone(&self.directory);
        let unanswered = Answer::Reasserted { key: key.clone(), record: None };
        self.spawn(n, session.id, unanswered, async move {
            Answer::Reasserted { key, record: directory.reassert(&record).await.ok() }
        });
    }

    /// An answer reaches the node. Those of an earlier session say nothing about the present one; only GRANT hears them.
    pub(super) fn take(&mut self, n: usize, session: NodeId, answer: Answer) {
        if self.nodes[n].session().is_none_or(|present| present.id != session) {
            return self.take_late(n, answer);
        }
        match answer {
            Answer::Holder(event) => self.holder_event(n, event),
            Answer::Observer(event) => self.observer_event(n, event),
            Answer::Claimed { key, decision } => self.claimed(n, &key, decision),
            Answer::GivenAway { record, refused, answered } => self.given_away(n, record, refused, answered),
            Answer::Reasserted { key, record } => self.reasserted(n, &key, record),
            Answer::Nothing => {}
        }
    }

    fn take_late(&mut self, n: usize, answer: Answer) {
        match answer {
            Answer::Claimed { decision: Some(PlacementDecision::Placed(placement)), .. } => {
                self.serve(n, owner_record(placement));
            }
            Answer::Reasserted { record: Some(record), .. } => self.serve(n, record),
            _ => {}
        }
    }

    fn claimed(&mut self, n: usize, key: &OwnedKey, decision: Option<PlacementDecision>) {
        self.nodes[n].in_flight.remove(key);
        match decision {
            Some(PlacementDecision::Placed(placement)) => self.serve(n, owner_record(placement)),
            Some(PlacementDecision::AlreadyPlaced(record) | PlacementDecision::Raced { winner: record }) => {
                self.observer_event(n, ObserverEvent::Blocked(record.session()));
            }
            None => {}
        }
    }

    fn reasserted(&mut self, n: usize, key: &OwnedKey, record: Option<OwnerRecord>) {
        self.nodes[n].in_flight.remove(key);
        if let Some(record) = record {
            self.summary.reasserted += 1;
            self.serve(n, record);
        }
    }

    /// GRANT.
    fn serve(&mut self, n: usize, record: OwnerRecord) {
        if self.nodes[n].grants(self.now, &record.placement) {
            self.summary.granted += 1;
            let before = self.last_owner.insert(record.key().clone(), record.placement.node);
            let taken = before.filter(|&before| before != record.placement.node);
            self.summary.takeovers += u32::from(taken.is_some_and(|before| self.checker.has_ended(before)));
            self.nodes[n].serving.insert(record.key().clone(), record);
        } else {
            self.summary.refused_grants += 1;
        }
    }

    fn given_away(&mut self, n: usize, record: OwnerRecord, refused: bool, answered: bool) {
        self.nodes[n].in_flight.remove(record.key());
        self.summary.transfers += u32::from(answered && !refused);
        if refused {
            self.serve(n, record);
        } else if !answered {
            self.nodes[n].doubtful.insert(record.key().clone(), record);
        }
    }
}

fn owner_record(placement: Placement) -> OwnerRecord {
    OwnerRecord { since: placement.generation, placement, ttl: TTL, moved: None }
}
