//! The holder's side of one session: when to beat, what a beat proved, and until when the node may serve.
//!
//! [`SessionHolder`] lives from one attempt to open to the loss of that session; after a loss the shell draws a
//! new id and starts another. It decides by CONFIRM (only the attempt *in the record* counts, from when it was
//! sent), LOST (anything else in the record ends it at once) and OPEN-ONCE (an unanswered open is read back,
//! never repeated). It leaves sending, time-outs, clocks and stopping activations to the shell.
//!
//! Invariant: `serve_until` never lies beyond T(1−ε) − T/10 after the sending of a beat that the record showed.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use super::lease::{Beat, Lease, LeaseOutcome, LeaseSeen, LeaseVersion, Session};
use super::times;
use crate::identity::{NodeId, Placement};
use crate::time::Millis;

/// The machine of one session, from its opening to its loss.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SessionHolder {
    session: Session,
    phase: Phase,
    confirmed: Option<Confirmed>,
    /// Attempts that may still show up in the record.
    attempts: BTreeMap<u64, Attempt>,
    next_seq: u64,
    next_beat: Millis,
    period: Millis,
    /// Beats sent before this prove nothing: the machine may have stood still (see [`HolderEvent::ClockJumped`]).
    trusted_from: Millis,
    announced: bool,
    /// Deliberately wrong: a beat counts from its answer.
    from_answers: bool,
}

/// What reaches the machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HolderEvent {
    /// The time asked for by [`HolderAction::WakeAt`] has come; `nonce` is fresh random for a beat.
    Wake {
        /// Random number for the attempt that may follow.
        nonce: u64,
    },
    /// The open was answered, or given up waiting for (`Unknown`).
    OpenAnswered(LeaseOutcome),
    /// Attempt `seq` was answered, or given up waiting for (`Unknown`).
    BeatAnswered {
        /// Which attempt.
        seq: u64,
        /// What became of it.
        outcome: LeaseOutcome,
    },
    /// A read or a watch shows the session's own lease record; `None` = absent.
    Seen(Option<LeaseSeen>),
    /// A read-back got no answer.
    ReadFailed,
    /// The node's poster record stands.
    Announced,
    /// Wall time ran ahead of the node's clock: the whole machine may have been stopped (see
    /// [`ClockWatch`](super::ClockWatch)). Nothing sent before counts.
    ClockJumped {
        /// Random number for the beat that follows at once.
        nonce: u64,
    },
    /// Every handler has ended and the session is to be closed (STOP-FIRST). Answered by [`HolderAction::SendClose`], or by
    /// [`HolderAction::Lost`] if the open was never confirmed.
    Close,
}

/// What the shell does about it, in order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HolderAction {
    /// Write the lease record for the first time; answer with [`HolderEvent::OpenAnswered`].
    SendOpen {
        /// The session to open.
        session: Session,
        /// The open's random number.
        nonce: u64,
    },
    /// Send this beat; answer with [`HolderEvent::BeatAnswered`].
    SendBeat(Beat),
    /// Read the lease record, linearizable; answer with [`HolderEvent::Seen`] or [`HolderEvent::ReadFailed`].
    ReadBack(NodeId),
    /// Put the poster record; answer with [`HolderEvent::Announced`] once it stands. Asked for again if need be.
    Announce,
    /// The gate moved; it also moves shut.
    Gate(Gate),
    /// Close the session in the store. It is dead for this node whatever the answer.
    SendClose(Session),
    /// The session is gone for ever: stop everything by `fence_at`, then start another under a new id.
    Lost {
        /// Why.
        reason: LostReason,
        /// By when nothing may run any more; zero if others may have taken over already.
        fence_at: Millis,
    },
    /// Wake the machine at this time; replaces any earlier wish.
    WakeAt(Millis),
}

/// Until when a node may act for what it owns; the shell keeps the latest where every job can read it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Gate {
    /// Nothing new is taken from here on.
    pub serve_until: Millis,
    /// Nothing leaves the node from here on.
    pub fence_at: Millis,
}

/// Why a session was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LostReason {
    /// The open was not applied, nobody can say, or it was not waited for; the id is thrown away.
    OpenFailed,
    /// No beat was confirmed in time.
    Fenced,
    /// The record is absent.
    Gone,
    /// Somebody pinned it as missing.
    Missing,
    /// The membership resolver revoked it.
    Revoked,
    /// It was ended.
    Ended,
    /// The record holds a beat that this holder did not send, or an older one than it confirmed.
    Foreign,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    Opening,
    Live,
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Attempt {
    nonce: u64,
    sent_at: Millis,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Confirmed {
    version: LeaseVersion,
    sent_at: Millis,
}

impl SessionHolder {
    /// Starts to open `session` at `now`; `session.id` and `nonce` are fresh random numbers.
    pub fn open(now: Millis, session: Session, nonce: u64) -> (Self, Vec<HolderAction>) {
        let holder = Self {
            session,
            phase: Phase::Opening,
            confirmed: None,
            attempts: BTreeMap::from([(0, Attempt { nonce, sent_at: now })]),
            next_seq: 1,
            next_beat: now + times::beat_period(session.ttl),
            period: times::beat_period(session.ttl),
            trusted_from: Millis::ZERO,
            announced: false,
            from_answers: false,
        };
        let actions = vec![HolderAction::SendOpen { session, nonce }, holder.wake(now)];
        (holder, actions)
    }

    /// Beats every `period`, which is never longer than a third of the time to live.
    #[must_use]
    pub fn beating_every(mut self, period: Millis) -> Self {
        self.period = period.max(Millis(1)).min(times::beat_period(self.session.ttl));
        self
    }

    /// Breaks CONFIRM, to see that it is found: a beat counts from when its answer came, and not from when it was sent.
    #[cfg(feature = "mutants")]
    #[must_use]
    pub fn counting_from_answers(mut self) -> Self {
        self.from_answers = true;
        self
    }

    /// Takes one event at time `now` and returns what to do about it, in order.
    pub fn handle(&mut self, now: Millis, event: HolderEvent) -> Vec<HolderAction> {
        if self.phase == Phase::Over {
            return Vec::new();
        }
        if event != HolderEvent::Close && now >= self.deadline() {
            return self.lose(LostReason::Fenced);
        }
        match event {
            HolderEvent::Wake { nonce } => self.on_wake(now, nonce),
            HolderEvent::OpenAnswered(outcome) => self.on_open_answered(now, outcome),
            HolderEvent::BeatAnswered { seq, outcome } => self.on_beat_answered(now, seq, outcome),
            HolderEvent::Seen(seen) => self.on_seen(now, seen),
            HolderEvent::ReadFailed => self.retry_soon(now),
            HolderEvent::Announced => self.on_announced(),
            HolderEvent::ClockJumped { nonce } => self.on_clock_jumped(now, nonce),
            HolderEvent::Close => self.on_close(),
        }
    }

    /// The session this machine holds, or held.
    pub fn session(&self) -> Session {
        self.session
    }

    /// Whether the gate is open at `now`.
    pub fn serving(&self, now: Millis) -> bool {
        now < self.gate().serve_until
    }

    /// Whether the answer to an own claim lets this node serve (GRANT): its session is the present one, and the
    /// gate is open. Otherwise do nothing and claim again later.
    pub fn grants(&self, now: Millis, placement: &Placement) -> bool {
        placement.node == self.session.id && self.serving(now)
    }

    /// The gate as it stands: zero before the open is confirmed and after a loss. After a jump of the clock nothing new is
    /// taken; what runs is left alone, since a wall clock that was set forward is no proof of anything.
    pub fn gate(&self) -> Gate {
        let Some(beat) = self.confirmed.filter(|_| self.phase == Phase::Live) else { return Gate::default() };
        let trusted = beat.sent_at >= self.trusted_from;
        let serve_until = times::serve_until(beat.sent_at, self.session.ttl);
        Gate {
            serve_until: if trusted { serve_until } else { Millis::ZERO },
            fence_at: times::fence_at(beat.sent_at, self.session.ttl),
        }
    }

    /// Whether the session is lost or closed: nothing will come of it any more.
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    fn on_wake(&mut self, now: Millis, nonce: u64) -> Vec<HolderAction> {
        if now < self.next_beat {
            return vec![self.wake(now)];
        }
        self.next_beat = now + self.period;
        match self.confirmed {
            Some(confirmed) => self.beat(now, nonce, confirmed.version),
            None => vec![HolderAction::ReadBack(self.session.id), self.wake(now)],
        }
    }

    fn beat(&mut self, now: Millis, nonce: u64, expect: LeaseVersion) -> Vec<HolderAction> {
        let seq = self.next_seq;
        self.next_seq += 1;
        self.attempts.insert(seq, Attempt { nonce, sent_at: now });
        let beat = Beat { session: self.session, seq, nonce, expect };
        vec![HolderAction::SendBeat(beat), self.wake(now)]
    }

    fn on_open_answered(&mut self, now: Millis, outcome: LeaseOutcome) -> Vec<HolderAction> {
        if self.phase != Phase::Opening {
            return Vec::new();
        }
        match outcome {
            LeaseOutcome::Applied(version) => self.confirm(now, 0, version),
            LeaseOutcome::Found(found) => self.on_seen(now, found),
            LeaseOutcome::Unavailable => self.lose(LostReason::OpenFailed),
            LeaseOutcome::Unknown => vec![HolderAction::ReadBack(self.session.id)],
        }
    }

    fn on_beat_answered(&mut self, now: Millis, seq: u64, outcome: LeaseOutcome) -> Vec<HolderAction> {
        match outcome {
            LeaseOutcome::Applied(version) if self.attempts.contains_key(&seq) => {
                self.confirm(now, seq, version)
            }
            LeaseOutcome::Applied(_) => Vec::new(),
            LeaseOutcome::Found(found) => self.on_seen(now, found),
            LeaseOutcome::Unavailable => {
                self.attempts.remove(&seq);
                self.retry_soon(now)
            }
            LeaseOutcome::Unknown => self.retry_soon(now),
        }
    }

    /// Judges the record as shown by an answer, a read or a watch. An older version than the confirmed one is
    /// the past, not news: versions only grow.
    fn on_seen(&mut self, now: Millis, seen: Option<LeaseSeen>) -> Vec<HolderAction> {
        let Some(seen) = seen else {
            return self.lose(if self.confirmed.is_some() {
                LostReason::Gone
            } else {
                LostReason::OpenFailed
            });
        };
        if self.confirmed.is_some_and(|confirmed| seen.version <= confirmed.version) {
            return Vec::new();
        }
        match seen.lease {
            Lease::Live { seq, nonce, .. } if self.sent(seq, nonce) => self.confirm(now, seq, seen.version),
            Lease::Live { .. } => self.lose(LostReason::Foreign),
            Lease::Missing { .. } => self.lose(LostReason::Missing),
            Lease::Revoked { .. } => self.lose(LostReason::Revoked),
            Lease::Ended { .. } => self.lose(LostReason::Ended),
        }
    }

    fn on_announced(&mut self) -> Vec<HolderAction> {
        self.announced = true;
        Vec::new()
    }

    fn on_clock_jumped(&mut self, now: Millis, nonce: u64) -> Vec<HolderAction> {
        self.trusted_from = now;
        self.next_beat = now;
        let mut actions = vec![HolderAction::Gate(self.gate())];
        actions.extend(self.on_wake(now, nonce));
        actions
    }

    /// A session whose open was never confirmed is not closed but thrown away: an end written before a late open lands,
    /// and collected, would let the open bring the id back.
    fn on_close(&mut self) -> Vec<HolderAction> {
        if self.phase == Phase::Opening {
            return self.lose(LostReason::OpenFailed);
        }
        self.phase = Phase::Over;
        vec![HolderAction::Gate(Gate::default()), HolderAction::SendClose(self.session)]
    }

    /// Attempt `seq` is in the record at `version`: the gate moves by the time *that* attempt was sent (CONFIRM).
    fn confirm(&mut self, now: Millis, seq: u64, version: LeaseVersion) -> Vec<HolderAction> {
        let Some(attempt) = self.attempts.get(&seq).copied() else { return Vec::new() };
        self.attempts = self.attempts.split_off(&(seq + 1));
        let sent_at = if self.from_answers { now } else { attempt.sent_at };
        self.confirmed = Some(Confirmed { version, sent_at });
        self.phase = Phase::Live;
        let mut actions = vec![HolderAction::Gate(self.gate())];
        if !self.announced {
            actions.push(HolderAction::Announce);
        }
        actions.push(self.wake(now));
        actions
    }

    fn lose(&mut self, reason: LostReason) -> Vec<HolderAction> {
        // Of a session that has ended, or that somebody else holds, nothing is certain. Whatever else was found is itself
        // waited for by observers, and longer than the holder needs.
        let trusted = !matches!(reason, LostReason::Ended | LostReason::Foreign);
        let confirmed = self.confirmed.filter(|_| trusted);
        let fence_at = confirmed.map_or(Millis::ZERO, |c| times::fence_at(c.sent_at, self.session.ttl));
        self.phase = Phase::Over;
        self.attempts.clear();
        vec![HolderAction::Gate(Gate::default()), HolderAction::Lost { reason, fence_at }]
    }

    fn retry_soon(&mut self, now: Millis) -> Vec<HolderAction> {
        self.next_beat = self.next_beat.min(now + times::retry_delay(self.session.ttl));
        vec![self.wake(now)]
    }

    /// Whether this holder sent attempt `seq`, and it is newer than the confirmed one.
    fn sent(&self, seq: u64, nonce: u64) -> bool {
        self.attempts.get(&seq).is_some_and(|attempt| attempt.nonce == nonce)
    }

    /// When the session is over if nothing more is confirmed; while opening, as if the open were confirmed.
    fn deadline(&self) -> Millis {
        let sent_at = self.confirmed.map(|c| c.sent_at).or_else(|| self.attempts.get(&0).map(|a| a.sent_at));
        sent_at.map_or(Millis::ZERO, |sent_at| times::serve_until(sent_at, self.session.ttl))
    }

    fn wake(&self, now: Millis) -> HolderAction {
        HolderAction::WakeAt(self.next_beat.min(self.deadline()).max(now))
    }
}

#[cfg(test)]
mod tests;
