//! The observer's side: which leases have stood still for so long that they may be ended.
//!
//! [`LeaseObserver`] stamps each version of a lease when it is *received* and asks for its end one W later, by a
//! compare-and-swap that names that version (END-ON-LEASE). It may be wrong about everything: the write loses
//! against a later beat, so stale reads, missed events and too many observers cost time, never safety. It
//! decides whether its node watches all leases (MONITORS) or only those that stand in its way (BLOCKED); reading,
//! watching and writing are the shell's.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec;
use alloc::vec::Vec;

use super::lease::{EndReason, Lease, LeaseOutcome, LeaseSeen, LeaseVersion, Session};
use super::monitors::is_monitor;
use super::times;
use crate::identity::NodeId;
use crate::time::Millis;

/// The machine that judges the leases of others.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LeaseObserver {
    me: NodeId,
    monitoring: bool,
    /// Leases watched because a claim of this node waits for them.
    blocked: BTreeSet<NodeId>,
    leases: BTreeMap<NodeId, Watched>,
}

/// What reaches the machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ObserverEvent {
    /// The nodes deemed reachable and not ended, whenever that changes.
    Reachable(BTreeSet<NodeId>),
    /// A lease record was received, by read, listing or watch. Handed in *after* the answer came.
    Seen(LeaseSeen),
    /// The lease record is absent; proves nothing.
    Gone(NodeId),
    /// A watch was opened anew: these leases there are, and no others.
    Listed(BTreeSet<NodeId>),
    /// A claim was stopped by this session, which has not ended; its record may be absent.
    Blocked(Session),
    /// The watch broke, or reads were missed: counting starts anew with the next answer.
    Interrupted,
    /// A [`ObserverAction::ReadOrPin`] came to nothing.
    Unread(NodeId),
    /// An end was answered, or given up waiting for (`Unknown`).
    EndAnswered {
        /// Whose lease it was about.
        id: NodeId,
        /// The version that it named.
        version: LeaseVersion,
        /// What became of the write.
        outcome: LeaseOutcome,
    },
    /// The time asked for has come.
    Wake,
}

/// What the shell does about it, in order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ObserverAction {
    /// Watch all leases from now on, or no more.
    WatchAll(bool),
    /// Read one lease and, if it is absent, write that down (PIN); then hand in [`ObserverEvent::Seen`] with what
    /// stands there, or [`ObserverEvent::Unread`].
    ReadOrPin(Session),
    /// End the lease if it still is at `version`; answer with [`ObserverEvent::EndAnswered`].
    End {
        /// Whose lease.
        id: NodeId,
        /// The version that stood still.
        version: LeaseVersion,
        /// Why, for people.
        why: EndReason,
    },
    /// The session has ended, for ever: its keys may be taken, its records evicted.
    Ended(NodeId),
    /// Wake the machine at this time; replaces any earlier wish.
    WakeAt(Millis),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Watched {
    version: LeaseVersion,
    state: State,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum State {
    /// Not ended when received; may be ended at `due`, or counts anew when received again.
    Counting {
        due: Option<Millis>,
        ttl: Millis,
        why: EndReason,
    },
    /// Absent, and had not ended; that is to be written down, again at `due` if it is not by then.
    Gone {
        due: Millis,
        ttl: Millis,
    },
    Ended,
}

impl LeaseObserver {
    /// An observer at node `me` that watches nothing yet.
    pub fn new(me: NodeId) -> Self {
        Self { me, monitoring: false, blocked: BTreeSet::new(), leases: BTreeMap::new() }
    }

    /// Takes one event at time `now` and returns what to do about it, in order.
    pub fn handle(&mut self, now: Millis, event: ObserverEvent) -> Vec<ObserverAction> {
        let mut actions = match event {
            ObserverEvent::Reachable(nodes) => self.on_reachable(&nodes),
            ObserverEvent::Seen(seen) => self.on_seen(now, seen),
            ObserverEvent::Gone(id) => self.on_gone(now, id),
            ObserverEvent::Listed(ids) => self.on_listed(now, &ids),
            ObserverEvent::Blocked(session) => self.on_blocked(session),
            ObserverEvent::Unread(id) => self.on_unread(id),
            ObserverEvent::Interrupted => self.on_interrupted(),
            ObserverEvent::EndAnswered { id, version, outcome } => {
                self.on_end_answered(now, id, version, outcome)
            }
            ObserverEvent::Wake => self.on_wake(now),
        };
        actions.extend(self.next_due().map(|due| ObserverAction::WakeAt(due.max(now))));
        actions
    }

    /// Whether this node watches all leases.
    pub fn is_monitoring(&self) -> bool {
        self.monitoring
    }

    /// Whether the session is known to have ended. `false` means only "not known".
    pub fn has_ended(&self, id: NodeId) -> bool {
        self.leases.get(&id).is_some_and(|watched| watched.state == State::Ended)
    }

    fn on_reachable(&mut self, nodes: &BTreeSet<NodeId>) -> Vec<ObserverAction> {
        let monitoring = is_monitor(self.me, nodes);
        if monitoring == self.monitoring {
            return Vec::new();
        }
        self.monitoring = monitoring;
        vec![ObserverAction::WatchAll(monitoring)]
    }

    fn on_seen(&mut self, now: Millis, seen: LeaseSeen) -> Vec<ObserverAction> {
        if seen.id == self.me {
            return Vec::new();
        }
        match self.leases.get(&seen.id) {
            Some(known) if seen.version < known.version => return Vec::new(),
            Some(known) if seen.version == known.version && !known.waits_for_an_answer() => {
                return Vec::new();
            }
            Some(known) if seen.version > known.version && matches!(seen.lease, Lease::Live { .. }) => {
                // It beats: whoever is still blocked by it will say so again.
                self.blocked.remove(&seen.id);
            }
            _ => {}
        }
        self.count(now, seen)
    }

    fn count(&mut self, now: Millis, seen: LeaseSeen) -> Vec<ObserverAction> {
        let why = seen.lease.end_reason();
        let Some(ttl) = seen.lease.ttl() else { return self.on_ended(seen.id, seen.version) };
        let state = State::Counting { due: Some(now + times::observer_wait(ttl)), ttl, why };
        self.leases.insert(seen.id, Watched { version: seen.version, state });
        Vec::new()
    }

    fn on_ended(&mut self, id: NodeId, version: LeaseVersion) -> Vec<ObserverAction> {
        self.blocked.remove(&id);
        self.leases.insert(id, Watched { version, state: State::Ended });
        vec![ObserverAction::Ended(id)]
    }

    /// The absence of a lease that had not ended is written down (PIN), so that it can be counted from: its holder may be
    /// dead, and then nobody else would ever end it. Should that not work, it is tried again with the next look.
    fn on_gone(&mut self, now: Millis, id: NodeId) -> Vec<ObserverAction> {
        let Some(watched) = self.leases.get_mut(&id) else { return Vec::new() };
        let (State::Counting { ttl, .. } | State::Gone { ttl, .. }) = watched.state else {
            self.leases.remove(&id);
            return Vec::new();
        };
        watched.state = State::Gone { due: now, ttl };
        if self.monitoring { watched.act_if_due(now, id).into_iter().collect() } else { Vec::new() }
    }

    fn on_listed(&mut self, now: Millis, ids: &BTreeSet<NodeId>) -> Vec<ObserverAction> {
        let missing: Vec<NodeId> = self.leases.keys().filter(|id| !ids.contains(id)).copied().collect();
        missing.into_iter().flat_map(|id| self.on_gone(now, id)).collect()
    }

    fn on_blocked(&mut self, session: Session) -> Vec<ObserverAction> {
        if session.id == self.me || self.has_ended(session.id) || !self.blocked.insert(session.id) {
            return Vec::new();
        }
        vec![ObserverAction::ReadOrPin(session)]
    }

    fn on_interrupted(&mut self) -> Vec<ObserverAction> {
        for watched in self.leases.values_mut() {
            watched.wait_for_an_answer();
        }
        Vec::new()
    }

    /// Whoever is blocked will say so again when its next claim fails.
    fn on_unread(&mut self, id: NodeId) -> Vec<ObserverAction> {
        self.blocked.remove(&id);
        Vec::new()
    }

    fn on_end_answered(
        &mut self,
        now: Millis,
        id: NodeId,
        named: LeaseVersion,
        outcome: LeaseOutcome,
    ) -> Vec<ObserverAction> {
        match outcome {
            LeaseOutcome::Applied(version) => self.on_ended(id, version),
            LeaseOutcome::Found(Some(seen)) => self.on_seen(now, seen),
            LeaseOutcome::Found(None) => {
                self.blocked.remove(&id);
                self.on_gone(now, id)
            }
            LeaseOutcome::Unavailable | LeaseOutcome::Unknown => self.retry(now, id, named),
        }
    }

    /// A version received meanwhile has its own count: only the one that the attempt named is asked for again.
    fn retry(&mut self, now: Millis, id: NodeId, named: LeaseVersion) -> Vec<ObserverAction> {
        let watched = self.leases.get_mut(&id).filter(|watched| watched.version == named);
        if let Some(Watched { state: State::Counting { due, ttl, .. }, .. }) = watched {
            *due = Some(now + times::retry_delay(*ttl));
        }
        Vec::new()
    }

    fn on_wake(&mut self, now: Millis) -> Vec<ObserverAction> {
        let Self { monitoring, blocked, leases, .. } = self;
        let observed = leases.iter_mut().filter(|(id, _)| *monitoring || blocked.contains(id));
        observed.filter_map(|(id, watched)| watched.act_if_due(now, *id)).collect()
    }

    fn next_due(&self) -> Option<Millis> {
        let observed = self.leases.iter().filter(|(id, _)| self.monitoring || self.blocked.contains(id));
        observed.filter_map(|(_, watched)| watched.due()).min()
    }
}

impl Watched {
    fn due(&self) -> Option<Millis> {
        match self.state {
            State::Counting { due, .. } => due,
            State::Gone { due, .. } => Some(due),
            State::Ended => None,
        }
    }

    /// Whether the version that is known counts anew when it is received again: after a break, and if it was said to be gone.
    fn waits_for_an_answer(&self) -> bool {
        matches!(self.state, State::Counting { due: None, .. } | State::Gone { .. })
    }

    fn wait_for_an_answer(&mut self) {
        if let State::Counting { due, .. } = &mut self.state {
            *due = None;
        }
    }

    /// Asks for what is due, and again one beat period later unless an answer comes first.
    fn act_if_due(&mut self, now: Millis, id: NodeId) -> Option<ObserverAction> {
        match &mut self.state {
            State::Counting { due: Some(due), ttl, why } if now >= *due => {
                *due = now + times::beat_period(*ttl);
                Some(ObserverAction::End { id, version: self.version, why: *why })
            }
            State::Gone { due, ttl } if now >= *due => {
                *due = now + times::beat_period(*ttl);
                Some(ObserverAction::ReadOrPin(Session { id, ttl: *ttl }))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
