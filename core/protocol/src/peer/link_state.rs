//! One link to a peer: when to dial, and which of two connections lives.
//!
//! A link is the connection between one seat here and one seat there. Both sides may dial, so both may dial at once.
//! [`PeerLink`] then decides by the node ids: the dial of the lower one counts. It also decides how long to wait after a
//! failure. Dialling, the handshake, timers and what travels on a connection it leaves to the shell.
//!
//! Invariants: at most one connection is in use; every connection that was accepted or dialled and is not used is
//! dropped; without a fault a connection in use stays in use.

use alloc::vec;
use alloc::vec::Vec;

use super::backoff::{Backoff, jittered};
use super::hello::AttemptId;
use super::link_events::{ConnectionId, DialFailure, LinkAction, LinkEvent, LinkReport, LinkState};
use super::refusal::RefusalReason;
use crate::contract::CloseCode;
use crate::identity::NodeId;
use crate::time::Millis;

/// The machine of one link. Peers are known by their node id, so a peer that comes back has a link of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PeerLink {
    ours: NodeId,
    theirs: NodeId,
    state: LinkState,
    backoff: Backoff,
    /// Our newest dial.
    newest: AttemptId,
    /// The newest dial of the peer that is known to be over or in use.
    settled: AttemptId,
    wanted: bool,
    /// The next loss is answered by a dial at once.
    quick: bool,
    up_since: Millis,
    /// When the wait before the next dial began.
    failed_at: Millis,
    /// The peer has departed: when its connection is closed at the latest.
    parting: Option<Millis>,
}

impl PeerLink {
    /// How long a dial may take, handshake included.
    pub const DIAL_LIMIT: Millis = Millis(10_000);
    /// How long the dial of a peer is waited for, at most.
    pub const RACE_WAIT: Millis = Millis(1_000);
    /// How long a connection must have held for its loss to be answered by a dial at once.
    pub const STEADY: Millis = Millis(10_000);
    /// How long a connection must have held for the waits to begin anew after it: whoever breaks sooner is no better than one who
    /// cannot be reached.
    pub const HELD: Millis = Millis(1_000);
    /// How long a peer that has departed may keep its connection to say goodbye.
    pub const PARTING: Millis = Millis(10_000);

    /// A link of the node `ours` to the node `theirs`, not connected.
    pub fn new(ours: NodeId, theirs: NodeId) -> Self {
        Self {
            ours,
            theirs,
            state: LinkState::Idle,
            backoff: Backoff::default(),
            newest: AttemptId(0),
            settled: AttemptId(0),
            wanted: false,
            quick: true,
            up_since: Millis::ZERO,
            failed_at: Millis::ZERO,
            parting: None,
        }
    }

    /// The same with other waits.
    #[must_use]
    pub fn with_backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// Takes one event at time `now` and returns what to do about it, in order; `random` is any number.
    pub fn handle(&mut self, now: Millis, random: u64, event: LinkEvent) -> Vec<LinkAction> {
        match event {
            LinkEvent::Wanted => self.on_wanted(now),
            LinkEvent::Dialled { attempt, connection, peer_attempt } => {
                self.on_dialled(now, attempt, connection, peer_attempt)
            }
            LinkEvent::DialFailed { attempt, failure } => self.on_failed(now, random, attempt, failure),
            LinkEvent::Hello { connection, peer_attempt } => self.on_hello(now, connection, peer_attempt),
            LinkEvent::Lost { connection } => self.on_end(now, random, connection, None),
            LinkEvent::Closed { connection, code } => self.on_end(now, random, connection, Some(code)),
            LinkEvent::PeerReached { at } => self.on_peer_reached(now, at),
            LinkEvent::Departed { at_once } => self.on_departed(now, at_once),
            LinkEvent::WokeUp => self.on_woke_up(now, random),
            LinkEvent::Stop => self.on_stop(),
        }
    }

    /// Where it stands.
    pub const fn state(&self) -> LinkState {
        self.state
    }

    /// The connection in use.
    pub const fn connection(&self) -> Option<ConnectionId> {
        match self.state {
            LinkState::Up { connection, .. } => Some(connection),
            _ => None,
        }
    }

    /// The number of our newest dial, for our side's hello.
    pub const fn newest_attempt(&self) -> AttemptId {
        self.newest
    }

    fn on_wanted(&mut self, now: Millis) -> Vec<LinkAction> {
        self.wanted = true;
        match self.state {
            LinkState::Idle => self.dial(now),
            _ => Vec::new(),
        }
    }

    fn on_dialled(
        &mut self,
        now: Millis,
        attempt: AttemptId,
        connection: ConnectionId,
        peer_attempt: AttemptId,
    ) -> Vec<LinkAction> {
        if !self.is_dialing(attempt) {
            let code = if self.state == LinkState::Gone { CloseCode::Stopping } else { CloseCode::Replaced };
            return vec![LinkAction::Drop { connection, code }];
        }
        // What the peer dialled before it welcomed us, it has given up; it may still arrive.
        self.settled = self.settled.max(peer_attempt);
        self.up(now, connection, true)
    }

    fn on_failed(
        &mut self,
        now: Millis,
        random: u64,
        attempt: AttemptId,
        failure: DialFailure,
    ) -> Vec<LinkAction> {
        if !self.is_dialing(attempt) {
            return Vec::new();
        }
        match failure {
            DialFailure::Unreachable => {
                let wait = self.backoff.next(random);
                self.retry_after(now, wait)
            }
            DialFailure::Refused => self.refused(now, random),
            DialFailure::Race => {
                let until = now + jittered(Self::RACE_WAIT, random);
                self.state = LinkState::Waiting { until };
                vec![LinkAction::WakeAt(until)]
            }
        }
    }

    /// Both may dial at once; the dial of the lower node counts, on both sides. A peer that is connected never dials, so
    /// a new dial while we believe to be connected means that the peer has lost its side.
    fn on_hello(
        &mut self,
        now: Millis,
        connection: ConnectionId,
        peer_attempt: AttemptId,
    ) -> Vec<LinkAction> {
        let why = match self.state {
            LinkState::Gone => Some(RefusalReason::Stopping),
            LinkState::Dialing { .. } if self.our_dial_counts() => Some(RefusalReason::Race),
            _ if peer_attempt <= self.settled => Some(RefusalReason::Race),
            _ => None,
        };
        if let Some(why) = why {
            return vec![LinkAction::Refuse { connection, why }];
        }
        self.settled = peer_attempt;
        let mut actions = self.leave_the_old(now);
        actions.push(LinkAction::Accept { connection });
        actions.extend(self.up(now, connection, false));
        actions
    }

    fn on_end(
        &mut self,
        now: Millis,
        random: u64,
        connection: ConnectionId,
        code: Option<CloseCode>,
    ) -> Vec<LinkAction> {
        if self.connection() != Some(connection) {
            return Vec::new();
        }
        if self.parting.is_some() {
            return self.on_stop();
        }
        self.look_back(now);
        match code {
            _ if !self.wanted => self.idle(),
            Some(CloseCode::Mismatch | CloseCode::Protocol) => self.refused(now, random),
            Some(CloseCode::Stopping) => self.retry_after(now, self.backoff.at_the_cap(random)),
            _ if self.quick => self.redial(now),
            _ => {
                let wait = self.backoff.next(random);
                self.retry_after(now, wait)
            }
        }
    }

    /// What is known to be reachable need not be waited for; once, until the next failure.
    fn on_peer_reached(&mut self, now: Millis, at: Millis) -> Vec<LinkAction> {
        match self.state {
            LinkState::Backoff { .. } if at > self.failed_at => self.dial(now),
            _ => Vec::new(),
        }
    }

    /// Node ids never come back: without a connection there is nothing to wait for.
    fn on_departed(&mut self, now: Millis, at_once: bool) -> Vec<LinkAction> {
        if at_once || self.connection().is_none() {
            return self.on_stop();
        }
        vec![LinkAction::WakeAt(*self.parting.get_or_insert(now + Self::PARTING))]
    }

    fn on_woke_up(&mut self, now: Millis, random: u64) -> Vec<LinkAction> {
        match self.state {
            LinkState::Up { .. } => match self.parting {
                Some(until) if now < until => vec![LinkAction::WakeAt(until)],
                Some(_) => self.on_stop(),
                None => Vec::new(),
            },
            LinkState::Dialing { until, .. }
            | LinkState::Waiting { until }
            | LinkState::Backoff { until }
                if now < until =>
            {
                vec![LinkAction::WakeAt(until)]
            }
            LinkState::Dialing { attempt, .. } => {
                let mut actions = vec![LinkAction::Abandon { attempt }];
                actions.extend(self.on_failed(now, random, attempt, DialFailure::Unreachable));
                actions
            }
            LinkState::Waiting { .. } | LinkState::Backoff { .. } => self.dial(now),
            LinkState::Idle | LinkState::Gone => Vec::new(),
        }
    }

    fn on_stop(&mut self) -> Vec<LinkAction> {
        if self.state == LinkState::Gone {
            return Vec::new();
        }
        let end = match self.state {
            LinkState::Dialing { attempt, .. } => Some(LinkAction::Abandon { attempt }),
            LinkState::Up { connection, .. } => {
                Some(LinkAction::Drop { connection, code: CloseCode::Stopping })
            }
            _ => None,
        };
        self.state = LinkState::Gone;
        end.into_iter().chain([LinkAction::Report(LinkReport::Gone)]).collect()
    }

    /// The numbers follow the clock, so that they also grow if this machine is made anew.
    fn dial(&mut self, now: Millis) -> Vec<LinkAction> {
        let attempt = AttemptId(self.newest.0.saturating_add(1).max(now.0));
        let until = now + Self::DIAL_LIMIT;
        self.newest = attempt;
        self.state = LinkState::Dialing { attempt, until };
        vec![
            LinkAction::Report(LinkReport::Connecting),
            LinkAction::Dial { attempt },
            LinkAction::WakeAt(until),
        ]
    }

    /// Only once until a connection has held for a while: one that breaks again and again is not to be dialled in a
    /// tight circle.
    fn redial(&mut self, now: Millis) -> Vec<LinkAction> {
        self.quick = false;
        let mut actions = vec![LinkAction::Report(LinkReport::Disconnected { retry_at: Some(now) })];
        actions.extend(self.dial(now));
        actions
    }

    /// The connection in use ends. Only one that has held for a while shows that the link is sound: a peer that shakes hands and
    /// breaks again and again is dialled ever more rarely.
    fn look_back(&mut self, now: Millis) {
        let held = now.since(self.up_since);
        self.quick |= held >= Self::STEADY;
        if held >= Self::HELD {
            self.backoff.reset();
        }
    }

    fn up(&mut self, now: Millis, connection: ConnectionId, dialled_by_us: bool) -> Vec<LinkAction> {
        self.state = LinkState::Up { connection, dialled_by_us };
        self.up_since = now;
        vec![LinkAction::Use { connection }, LinkAction::Report(LinkReport::Connected)]
    }

    fn idle(&mut self) -> Vec<LinkAction> {
        self.state = LinkState::Idle;
        vec![LinkAction::Report(LinkReport::Disconnected { retry_at: None })]
    }

    fn retry_after(&mut self, now: Millis, wait: Millis) -> Vec<LinkAction> {
        let until = now + wait;
        self.failed_at = now;
        self.state = LinkState::Backoff { until };
        vec![
            LinkAction::Report(LinkReport::Disconnected { retry_at: Some(until) }),
            LinkAction::WakeAt(until),
        ]
    }

    fn refused(&mut self, now: Millis, random: u64) -> Vec<LinkAction> {
        let mut actions = vec![LinkAction::Report(LinkReport::Refused)];
        actions.extend(self.retry_after(now, self.backoff.at_the_cap(random)));
        actions
    }

    /// What ends because the peer's connection takes its place.
    fn leave_the_old(&mut self, now: Millis) -> Vec<LinkAction> {
        match self.state {
            LinkState::Dialing { attempt, .. } => vec![LinkAction::Abandon { attempt }],
            LinkState::Up { connection, .. } => {
                self.look_back(now);
                vec![
                    LinkAction::Drop { connection, code: CloseCode::Replaced },
                    LinkAction::Report(LinkReport::Disconnected { retry_at: None }),
                ]
            }
            _ => Vec::new(),
        }
    }

    fn is_dialing(&self, which: AttemptId) -> bool {
        matches!(self.state, LinkState::Dialing { attempt, .. } if attempt == which)
    }

    fn our_dial_counts(&self) -> bool {
        self.ours < self.theirs
    }
}

#[cfg(test)]
mod tests;
