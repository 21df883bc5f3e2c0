//! What a sender knows about the place of one shard, and the messages that wait for it.
//!
//! [`RouteEntry`] decides where the next message goes and when it may go there. It follows these rules. SWITCH: a new
//! owner gets messages only after the old one has settled, or its lane is lost. OUTCOME: a message that was given to
//! a lane is out of our hands unless it comes back. FLUSH: what came back goes first, then what was kept, then what is
//! new. And when nobody needs it any more, FORGET: an entry may be dropped only while nothing waits in it and nothing of
//! ours is out. Lanes, calls and their deadlines, look-ups and timers it leaves to the shell. The owner may be this node
//! itself.
//!
//! Invariants: while the route is open nothing waits in it; every message that went in comes out exactly once.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::events::{RouteAction, RouteEvent, RouteRefusal, RouteState};
use crate::identity::{Generation, NodeId};
use crate::link::Hint;
use crate::time::Millis;

/// The route of one sender to one shard.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RouteEntry<M> {
    state: RouteState,
    /// Something was sent to the owner since the last time that nothing of ours was there.
    dirty: bool,
    /// The newest place that we know of and have not acted upon.
    view: Option<Hint>,
    /// What came back, in order.
    returned: VecDeque<M>,
    /// What was never sent, in order; all of it is newer than what came back.
    kept: VecDeque<M>,
    bound: usize,
    wake_at: Option<Millis>,
    recheck: Millis,
    opened_at: Millis,
    /// How many times in a row the route was opened and messages came back.
    rounds: u32,
    /// Not opened before this time.
    resume_at: Millis,
}

impl<M> RouteEntry<M> {
    /// How many messages wait for a shard at most, by default; what came back is not counted.
    pub const BOUND: usize = 1_000;
    /// How long an owner may take to settle without a sign of life. One that has work which can neither start nor go back yet
    /// says so: its lane carries the calls of other shards.
    pub const SETTLE_LIMIT: Millis = Millis(1_000);
    /// The first and the longest distance between two look-ups.
    pub const RECHECK: (Millis, Millis) = (Millis(50), Millis(1_000));
    /// How often messages may come back before the route pauses.
    pub const FREE_ROUNDS: u32 = 3;
    /// The first and the longest pause of a route whose messages keep coming back.
    pub const PAUSE: (Millis, Millis) = (Millis(5), Millis(200));
    /// A route that was open for this long without a return starts counting anew.
    pub const CALM: Millis = Millis(1_000);

    /// A route to a shard whose place is not known, that keeps at most `bound` messages.
    pub const fn new(bound: usize) -> Self {
        Self {
            state: RouteState::Waiting { generation: Generation::new(0), on: None },
            dirty: false,
            view: None,
            returned: VecDeque::new(),
            kept: VecDeque::new(),
            bound,
            wake_at: None,
            recheck: Self::RECHECK.0,
            opened_at: Millis::ZERO,
            rounds: 0,
            resume_at: Millis::ZERO,
        }
    }

    /// Takes one event at time `now` and returns what to do about it, in order. `is_over` says whether a message is not
    /// worth sending any more because its call has ended.
    pub fn handle(
        &mut self,
        now: Millis,
        event: RouteEvent<M>,
        is_over: impl Fn(&M) -> bool,
    ) -> Vec<RouteAction<M>> {
        let mut out = Vec::new();
        match event {
            RouteEvent::Send(message) => self.on_send(now, message, &is_over, &mut out),
            RouteEvent::Learn(hint) | RouteEvent::LookedUp(Some(hint)) => {
                self.on_learn(now, hint, &is_over, &mut out);
            }
            RouteEvent::Returned { from, message, local_only, reason: _ } => {
                self.keep_returned(message, local_only, &is_over, &mut out);
                self.on_returned(now, from, &is_over, &mut out);
            }
            RouteEvent::Settled { from, generation, hint } => {
                if self.state == (RouteState::Settling { owner: from, generation }) {
                    self.on_settled(now, from, hint, &is_over, &mut out);
                }
            }
            RouteEvent::LaneLost { node, unsent } => self.on_lane_lost(now, node, unsent, &is_over, &mut out),
            RouteEvent::Bye(node) => self.on_bye(now, node, &mut out),
            RouteEvent::LookedUp(None) => {}
            RouteEvent::LaneChecked { node, alive } => self.on_lane_checked(now, node, alive, &mut out),
            RouteEvent::WokeUp => self.on_woke_up(now, &is_over, &mut out),
        }
        out
    }

    /// Where to send a message right now, if the route is open; whoever asks sends it there. This is
    /// [`Send`](RouteEvent::Send) for the usual case, without a list of actions.
    pub const fn direct(&mut self) -> Option<Hint> {
        match self.state {
            RouteState::Open { owner, generation } => {
                self.dirty = true;
                Some(Hint { owner, generation })
            }
            _ => None,
        }
    }

    /// Takes the messages that wait and are not worth sending any more.
    pub fn take_ended(&mut self, is_over: impl Fn(&M) -> bool) -> Vec<M> {
        let mut ended = Vec::new();
        for queue in [&mut self.returned, &mut self.kept] {
            if queue.iter().any(&is_over) {
                let (over, rest): (Vec<M>, _) = queue.drain(..).partition(&is_over);
                *queue = rest.into();
                ended.extend(over);
            }
        }
        ended
    }

    /// Takes everything that waits, in order: the sender stops.
    pub fn take_all(&mut self) -> Vec<M> {
        self.returned.drain(..).chain(self.kept.drain(..)).collect()
    }

    /// Where it stands.
    pub const fn state(&self) -> RouteState {
        self.state
    }

    /// Whether nothing of ours is at `node`, nor goes there: as far as this route is concerned, it may leave.
    pub fn is_clear_of(&self, node: NodeId) -> bool {
        match self.state {
            RouteState::Open { owner, .. } | RouteState::Settling { owner, .. } => owner != node,
            RouteState::Waiting { .. } => true,
        }
    }

    /// Whether nothing waits here and nothing of ours is out: a new entry in its place could only be slower (FORGET).
    pub fn may_be_forgotten(&self) -> bool {
        self.waiting() == 0 && !self.dirty && !matches!(self.state, RouteState::Settling { .. })
    }

    /// How many messages wait.
    pub fn waiting(&self) -> usize {
        self.returned.len() + self.kept.len()
    }

    fn on_send(
        &mut self,
        now: Millis,
        message: M,
        is_over: &impl Fn(&M) -> bool,
        out: &mut Vec<RouteAction<M>>,
    ) {
        if let Some(Hint { owner, generation }) = self.direct() {
            out.push(RouteAction::Deliver { owner, generation, message });
            return;
        }
        if self.kept.len() >= self.bound {
            self.drop_ended(is_over, out);
        }
        if self.kept.len() >= self.bound {
            let why = RouteRefusal::Full { bound: self.bound };
            out.push(RouteAction::Refuse { message, why });
            return;
        }
        self.kept.push_back(message);
        self.ask(now, out);
    }

    fn on_learn(
        &mut self,
        now: Millis,
        hint: Hint,
        is_over: &impl Fn(&M) -> bool,
        out: &mut Vec<RouteAction<M>>,
    ) {
        match self.state {
            RouteState::Open { owner, generation } if hint.generation > generation => {
                if owner == hint.owner || !self.dirty {
                    let Hint { owner, generation } = hint;
                    self.state = RouteState::Open { owner, generation };
                } else {
                    self.note(hint);
                    self.settle(now, owner, generation, out);
                }
            }
            RouteState::Settling { .. } => self.note(hint),
            RouteState::Waiting { generation, .. } if hint.generation >= generation => {
                self.note(hint);
                self.reopen(now, is_over, out);
            }
            RouteState::Open { .. } | RouteState::Waiting { .. } => {}
        }
    }

    /// Also a message that goes no further means that its owner refuses what follows, until it has settled.
    fn on_returned(
        &mut self,
        now: Millis,
        from: NodeId,
        is_over: &impl Fn(&M) -> bool,
        out: &mut Vec<RouteAction<M>>,
    ) {
        match self.state {
            RouteState::Open { owner, generation } if owner == from => {
                let calm = now.since(self.opened_at) >= Self::CALM;
                self.rounds = if calm { 1 } else { self.rounds.saturating_add(1) };
                self.settle(now, owner, generation, out);
            }
            // A lane gives nothing back after it has settled; should one, the message goes on as well as it can.
            RouteState::Open { owner, generation } => self.flush(owner, generation, is_over, out),
            RouteState::Settling { .. } => {}
            RouteState::Waiting { .. } => self.ask(now, out),
        }
    }

    /// Nothing of ours is at `owner` any more: the best that is known decides. What was known before counts only if
    /// it is newer than what turned out to be wrong.
    fn on_settled(
        &mut self,
        now: Millis,
        owner: NodeId,
        hint: Option<Hint>,
        is_over: &impl Fn(&M) -> bool,
        out: &mut Vec<RouteAction<M>>,
    ) {
        self.wait(Some(owner));
        if let Some(hint) = hint.filter(|hint| hint.generation >= self.generation()) {
            self.note(hint);
        }
        if self.rounds >= Self::FREE_ROUNDS {
            self.resume_at = now + self.pause();
            out.push(RouteAction::LookUp);
        }
        self.reopen(now, is_over, out);
    }

    fn on_lane_lost(
        &mut self,
        now: Millis,
        node: NodeId,
        unsent: Vec<M>,
        is_over: &impl Fn(&M) -> bool,
        out: &mut Vec<RouteAction<M>>,
    ) {
        // Behind what came back: it was sent after that. Before what was kept: that was never sent.
        for message in unsent {
            self.keep_returned(message, false, is_over, out);
        }
        match self.state {
            RouteState::Open { owner, .. } | RouteState::Settling { owner, .. } if owner == node => {
                self.wait(None);
                self.reopen(now, is_over, out);
            }
            RouteState::Waiting { generation, on: Some(on) } if on == node => {
                self.state = RouteState::Waiting { generation, on: None };
                self.wake_at = None;
                self.ask(now, out);
            }
            RouteState::Open { owner, generation } => self.flush(owner, generation, is_over, out),
            RouteState::Settling { .. } => {}
            RouteState::Waiting { .. } => self.ask(now, out),
        }
    }

    /// Also what was only known of the leaver is forgotten: after a pause the route would open to it again.
    fn on_bye(&mut self, now: Millis, node: NodeId, out: &mut Vec<RouteAction<M>>) {
        let misled = self.view.take_if(|view| view.owner == node).is_some();
        match self.state {
            RouteState::Open { owner, generation } if owner == node && self.dirty => {
                self.settle(now, owner, generation, out);
            }
            RouteState::Open { owner, .. } if owner == node => self.wait(None),
            RouteState::Waiting { generation, on } if on == Some(node) || misled => {
                // It has nothing to tell any more.
                let on = on.filter(|on| *on != node);
                self.state = RouteState::Waiting { generation, on };
                self.wake_at = None;
                self.ask(now, out);
            }
            _ => {}
        }
    }

    fn on_woke_up(&mut self, now: Millis, is_over: &impl Fn(&M) -> bool, out: &mut Vec<RouteAction<M>>) {
        match self.wake_at {
            Some(at) if now < at => return out.push(RouteAction::WakeAt(at)),
            Some(_) => self.wake_at = None,
            None => return,
        }
        match self.state {
            RouteState::Open { .. } => {}
            RouteState::Settling { owner, .. } => out.push(RouteAction::CheckLane { owner }),
            RouteState::Waiting { .. } if self.view.is_some() => self.reopen(now, is_over, out),
            RouteState::Waiting { .. } => self.look_again(now, is_over, out),
        }
    }

    fn on_lane_checked(&mut self, now: Millis, node: NodeId, alive: bool, out: &mut Vec<RouteAction<M>>) {
        match self.state {
            RouteState::Settling { owner, .. } if owner != node => {}
            RouteState::Settling { .. } if alive => self.wake(now + Self::SETTLE_LIMIT, out),
            RouteState::Settling { owner, .. } => out.push(RouteAction::CloseLane { owner }),
            RouteState::Open { .. } | RouteState::Waiting { .. } => {}
        }
    }

    fn settle(&mut self, now: Millis, owner: NodeId, generation: Generation, out: &mut Vec<RouteAction<M>>) {
        self.state = RouteState::Settling { owner, generation };
        out.push(RouteAction::SendSettle { owner, generation });
        self.wake(now + Self::SETTLE_LIMIT, out);
    }

    /// Nothing of ours is at the owner any more.
    fn wait(&mut self, on: Option<NodeId>) {
        let generation = self.generation();
        self.dirty = false;
        self.view = self.view.filter(|view| view.generation > generation);
        self.state = RouteState::Waiting { generation, on };
        self.wake_at = None;
        self.recheck = Self::RECHECK.0;
    }

    /// Opens the route to the place that is known, if there is one and no pause is due; else looks for one.
    fn reopen(&mut self, now: Millis, is_over: &impl Fn(&M) -> bool, out: &mut Vec<RouteAction<M>>) {
        match self.view {
            Some(_) if now < self.resume_at => self.wake(self.resume_at, out),
            Some(Hint { owner, generation }) => {
                self.view = None;
                self.wake_at = None;
                self.opened_at = now;
                self.state = RouteState::Open { owner, generation };
                self.flush(owner, generation, is_over, out);
            }
            None => self.ask(now, out),
        }
    }

    fn flush(
        &mut self,
        owner: NodeId,
        generation: Generation,
        is_over: &impl Fn(&M) -> bool,
        out: &mut Vec<RouteAction<M>>,
    ) {
        for message in self.take_all() {
            if is_over(&message) {
                out.push(RouteAction::Over(message));
            } else {
                self.dirty = true;
                out.push(RouteAction::Deliver { owner, generation, message });
            }
        }
    }

    /// Asks for the place if something waits for it and nobody has been asked yet. A node that promised a notice is
    /// given the time of one recheck.
    fn ask(&mut self, now: Millis, out: &mut Vec<RouteAction<M>>) {
        let RouteState::Waiting { on, .. } = self.state else { return };
        if self.waiting() == 0 || self.wake_at.is_some() {
            return;
        }
        if on.is_none() {
            out.push(RouteAction::LookUp);
        }
        self.wake(now + self.recheck, out);
    }

    fn look_again(&mut self, now: Millis, is_over: &impl Fn(&M) -> bool, out: &mut Vec<RouteAction<M>>) {
        self.drop_ended(is_over, out);
        if self.waiting() == 0 {
            return;
        }
        self.recheck = Millis(self.recheck.0 * 2).min(Self::RECHECK.1);
        out.push(RouteAction::LookUp);
        self.wake(now + self.recheck, out);
    }

    fn keep_returned(
        &mut self,
        message: M,
        local_only: bool,
        is_over: &impl Fn(&M) -> bool,
        out: &mut Vec<RouteAction<M>>,
    ) {
        if is_over(&message) {
            out.push(RouteAction::Over(message));
        } else if local_only {
            out.push(RouteAction::Refuse { message, why: RouteRefusal::LocalOnly });
        } else {
            self.returned.push_back(message);
        }
    }

    fn drop_ended(&mut self, is_over: &impl Fn(&M) -> bool, out: &mut Vec<RouteAction<M>>) {
        out.extend(self.take_ended(is_over).into_iter().map(RouteAction::Over));
    }

    fn note(&mut self, hint: Hint) {
        if self.view.is_none_or(|view| view.generation <= hint.generation) {
            self.view = Some(hint);
        }
    }

    fn wake(&mut self, at: Millis, out: &mut Vec<RouteAction<M>>) {
        self.wake_at = Some(at);
        out.push(RouteAction::WakeAt(at));
    }

    fn pause(&self) -> Millis {
        let factor = 1_u64.checked_shl(self.rounds - Self::FREE_ROUNDS).unwrap_or(u64::MAX);
        Millis(Self::PAUSE.0.0.saturating_mul(factor)).min(Self::PAUSE.1)
    }

    const fn generation(&self) -> Generation {
        match self.state {
            RouteState::Open { generation, .. }
            | RouteState::Settling { generation, .. }
            | RouteState::Waiting { generation, .. } => generation,
        }
    }
}

impl<M> Default for RouteEntry<M> {
    fn default() -> Self {
        Self::new(Self::BOUND)
    }
}

#[cfg(test)]
mod tests;
