//! A node of the world: the real machines, and the rules that bind whoever uses them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use archipelago_directory::{carry_out_holder, carry_out_observer};
use archipelago_protocol::contract::{Entry, EntryId, OwnerRecord, WatchEvent, WatchScope, WatchStream};
use archipelago_protocol::identity::{NodeId, OwnedKey, Placement};
use archipelago_protocol::session::{
    HolderAction, HolderEvent, LeaseObserver, LeaseOutcome, LostReason, ObserverAction, ObserverEvent,
    Session, SessionHolder, times,
};
use archipelago_protocol::time::Millis;
use futures_util::{FutureExt, StreamExt};

use super::World;
use super::task::{Answer, Task};
use crate::Rng;
use crate::directory_rules::info;

/// Short, so that a world sees many sessions.
pub(super) const TTL: Millis = times::MIN_TTL;

pub(super) struct Node {
    /// The clock: where it started, and its rate in thousandths.
    offset: u64,
    rate: u64,
    holder: Option<SessionHolder>,
    holder_wake: Millis,
    observer: LeaseObserver,
    observer_wake: Millis,
    watch: Option<WatchStream>,
    /// What the node's own writes gave it, and it has not stopped.
    pub(super) serving: BTreeMap<OwnedKey, OwnerRecord>,
    /// Keys with a write that the node waits for.
    pub(super) in_flight: BTreeSet<OwnedKey>,
    /// Keys given away by a write that was not answered.
    pub(super) doubtful: BTreeMap<OwnedKey, OwnerRecord>,
    pub(super) paused_until: Millis,
    pub(super) mail: VecDeque<(NodeId, Answer)>,
}

impl Node {
    pub(super) fn draw(rng: &mut Rng) -> Self {
        Self {
            offset: rng.below(1_000_000),
            rate: 980 + rng.below(41),
            holder: None,
            holder_wake: Millis::ZERO,
            observer: LeaseObserver::new(NodeId::new(0)),
            observer_wake: Millis::MAX,
            watch: None,
            serving: BTreeMap::new(),
            in_flight: BTreeSet::new(),
            doubtful: BTreeMap::new(),
            paused_until: Millis::ZERO,
            mail: VecDeque::new(),
        }
    }

    /// The placement under which the node's gate on `key` is open at true time `now`.
    pub(super) fn gate_open(&self, now: Millis, key: &OwnedKey) -> Option<&Placement> {
        let placement = &self.serving.get(key)?.placement;
        self.grants(now, placement).then_some(placement)
    }

    pub(super) fn session(&self) -> Option<Session> {
        self.holder.as_ref().filter(|holder| !holder.is_over()).map(SessionHolder::session)
    }

    pub(super) fn is_paused(&self, now: Millis) -> bool {
        now < self.paused_until
    }

    pub(super) fn grants(&self, now: Millis, placement: &Placement) -> bool {
        self.holder.as_ref().is_some_and(|holder| holder.grants(self.clock(now), placement))
    }

    fn clock(&self, now: Millis) -> Millis {
        Millis(self.offset + now.0 * self.rate / 1_000)
    }

    fn forget_everything(&mut self) {
        self.serving.clear();
        self.in_flight.clear();
        self.doubtful.clear();
    }
}

impl World {
    pub(super) fn wake(&mut self, n: usize) {
        let now = self.nodes[n].clock(self.now);
        if self.nodes[n].session().is_none() {
            return self.open(n);
        }
        if now >= self.nodes[n].holder_wake {
            let nonce = self.rng.bits();
            self.holder_event(n, HolderEvent::Wake { nonce });
        }
        if now >= self.nodes[n].observer_wake {
            self.observer_event(n, ObserverEvent::Wake);
        }
    }

    /// A new session, always under a new id.
    fn open(&mut self, n: usize) {
        let session = Session { id: NodeId::new(self.rng.bits()), ttl: TTL };
        let now = self.nodes[n].clock(self.now);
        let (holder, actions) = SessionHolder::open(now, session, self.rng.bits());
        let node = &mut self.nodes[n];
        node.forget_everything();
        node.holder = Some(holder);
        node.observer = LeaseObserver::new(session.id);
        (node.observer_wake, node.watch) = (Millis::MAX, None);
        self.carry_out_holder(n, actions);
        // Some nodes believe in three lower ones that are not there: they observe only what blocks them.
        let lower =
            if self.rng.chance(500) { BTreeSet::from([0, 1, 2].map(NodeId::new)) } else { BTreeSet::new() };
        self.observer_event(n, ObserverEvent::Reachable(lower));
    }

    pub(super) fn crash(&mut self, n: usize) {
        self.nodes[n].forget_everything();
        self.nodes[n].holder = None;
        self.nodes[n].mail.clear();
        self.tasks.retain(|task| task.node != n);
    }

    /// STOP-FIRST: everything stops, then the close is sent.
    pub(super) fn close(&mut self, n: usize) {
        if !self.nodes[n].is_paused(self.now) && self.nodes[n].session().is_some() {
            self.nodes[n].forget_everything();
            self.holder_event(n, HolderEvent::Close);
        }
    }

    pub(super) fn revoke(&mut self, n: usize) {
        let Some(session) = self.nodes[n].session() else { return };
        let directory = Arc::clone(&self.directory);
        self.spawn(n, session.id, Answer::Nothing, async move {
            if let Ok(Some(seen)) = directory.lease(session.id).await {
                drop(directory.revoke(&seen, NodeId::new(7)).await);
            }
            Answer::Nothing
        });
    }

    pub(super) fn holder_event(&mut self, n: usize, event: HolderEvent) {
        let now = self.nodes[n].clock(self.now);
        let Some(holder) = &mut self.nodes[n].holder else { return };
        let actions = holder.handle(now, event);
        self.carry_out_holder(n, actions);
    }

    fn carry_out_holder(&mut self, n: usize, actions: Vec<HolderAction>) {
        for action in actions {
            match action {
                HolderAction::WakeAt(at) => self.nodes[n].holder_wake = at,
                HolderAction::Gate(_) => {}
                HolderAction::Lost { reason, .. } => {
                    self.summary.lost += u32::from(reason != LostReason::OpenFailed);
                    self.nodes[n].forget_everything();
                }
                action => self.send_for_holder(n, action),
            }
        }
    }

    fn send_for_holder(&mut self, n: usize, action: HolderAction) {
        let Some(session) = self.nodes[n].holder.as_ref().map(|holder| holder.session().id) else { return };
        let unanswered = match &action {
            HolderAction::SendOpen { .. } => Answer::Holder(HolderEvent::OpenAnswered(LeaseOutcome::Unknown)),
            HolderAction::SendBeat(beat) => {
                Answer::Holder(HolderEvent::BeatAnswered { seq: beat.seq, outcome: LeaseOutcome::Unknown })
            }
            HolderAction::ReadBack(_) => Answer::Holder(HolderEvent::ReadFailed),
            _ => Answer::Nothing,
        };
        let (directory, info) = (Arc::clone(&self.directory), info(session.as_u64()));
        self.spawn(n, session, unanswered, async move {
            carry_out_holder(&*directory, &info, &action).await.map_or(Answer::Nothing, Answer::Holder)
        });
    }

    pub(super) fn observer_event(&mut self, n: usize, event: ObserverEvent) {
        let now = self.nodes[n].clock(self.now);
        for action in self.nodes[n].observer.handle(now, event) {
            match action {
                ObserverAction::WakeAt(at) => self.nodes[n].observer_wake = at,
                ObserverAction::WatchAll(true) => {
                    let watch = self.directory.watch(WatchScope::Leases, None).now_or_never();
                    self.nodes[n].watch = watch.and_then(Result::ok);
                }
                ObserverAction::WatchAll(false) => self.nodes[n].watch = None,
                ObserverAction::Ended(id) => self.tidy_up(n, id),
                action => self.send_for_observer(n, action),
            }
        }
    }

    fn send_for_observer(&mut self, n: usize, action: ObserverAction) {
        let Some(me) = self.nodes[n].session().map(|session| session.id) else { return };
        let unanswered = match &action {
            ObserverAction::End { id, version, .. } => {
                let outcome = LeaseOutcome::Unknown;
                Answer::Observer(ObserverEvent::EndAnswered { id: *id, version: *version, outcome })
            }
            ObserverAction::ReadOrPin(session) => Answer::Observer(ObserverEvent::Unread(session.id)),
            _ => Answer::Nothing,
        };
        let directory = Arc::clone(&self.directory);
        self.spawn(n, me, unanswered, async move {
            carry_out_observer(&*directory, me, &action).await.map_or(Answer::Nothing, Answer::Observer)
        });
    }

    fn tidy_up(&mut self, n: usize, ended: NodeId) {
        self.summary.ended += 1;
        let Some(me) = self.nodes[n].session().map(|session| session.id) else { return };
        if self.rng.chance(500) {
            let directory = Arc::clone(&self.directory);
            self.spawn(n, me, Answer::Nothing, async move {
                drop(directory.evict(ended).await);
                drop(directory.collect(ended).await);
                Answer::Nothing
            });
        }
    }

    pub(super) fn poll_watch(&mut self) {
        let n = self.rng.index(self.nodes.len());
        for _ in 0..8 {
            if self.nodes[n].is_paused(self.now) {
                return;
            }
            let Some(watch) = &mut self.nodes[n].watch else { return };
            match watch.next().now_or_never() {
                Some(Some(Ok(event))) => self.watched(n, event),
                Some(_) => return self.nodes[n].watch = None,
                None => return,
            }
        }
    }

    fn watched(&mut self, n: usize, event: WatchEvent) {
        match event {
            WatchEvent::Snapshot { entries, .. } => {
                entries.into_iter().for_each(|entry| self.lease_seen(n, entry))
            }
            WatchEvent::Put { entry, .. } => self.lease_seen(n, entry),
            WatchEvent::Gone { id: EntryId::Lease(id), .. } => {
                self.observer_event(n, ObserverEvent::Gone(id))
            }
            WatchEvent::Gone { .. } => {}
        }
    }

    fn lease_seen(&mut self, n: usize, entry: Entry) {
        if let Entry::Lease(seen) = entry {
            self.observer_event(n, ObserverEvent::Seen(seen));
        }
    }

    pub(super) fn spawn(
        &mut self,
        n: usize,
        session: NodeId,
        unanswered: Answer,
        future: impl Future<Output = Answer> + Send + 'static,
    ) {
        self.tasks.push(Task::new(n, session, unanswered, future));
    }
}
