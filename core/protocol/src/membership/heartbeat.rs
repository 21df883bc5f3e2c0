//! Whom a node beats, whom it suspects, and when it says so.
//!
//! [`HeartbeatMachine`] sends a heartbeat to each node it watches once in a period; answers feed that node's detector,
//! anything else that comes from it counts as life. When a detector says that the silence is too long, two other
//! nodes are asked to probe before anybody is called unreachable: one broken way between two nodes is not a dead
//! node. A machine that is woken late was itself away, and excuses the others for as long. It does no I/O.
//!
//! Invariant: a node is called unreachable only after a full probe time in which neither it nor anybody for it
//! gave a sign of life.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec;
use alloc::vec::Vec;

use super::{MembershipFrame, PhiAccrual, PhiSettings, ring};
use crate::identity::NodeId;
use crate::time::Millis;

/// The numbers of heartbeats and probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HeartbeatSettings {
    /// Time between two heartbeats to one node.
    pub period: Millis,
    /// Time between two looks at the detectors.
    pub check_period: Millis,
    /// How long probes have to bring a sign of life.
    pub probe_timeout: Millis,
    /// How many others are asked to probe.
    pub helpers: usize,
    /// The detector.
    pub phi: PhiSettings,
}

impl Default for HeartbeatSettings {
    fn default() -> Self {
        Self {
            period: Millis(1_000),
            check_period: Millis(250),
            probe_timeout: Millis(1_000),
            helpers: 2,
            phi: PhiSettings::default(),
        }
    }
}

/// The machine that watches others.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HeartbeatMachine {
    me: NodeId,
    settings: HeartbeatSettings,
    present: BTreeSet<NodeId>,
    watched: BTreeMap<NodeId, Watched>,
    /// Those who wait for a sign of life of a node, and until when.
    asked: BTreeMap<(NodeId, NodeId), Millis>,
    next_beat: Millis,
    woken_at: Option<Millis>,
    asked_to_wake: Option<Millis>,
    /// How late this node itself has been of late; others are excused for as long.
    lateness: Millis,
}

/// What reaches the machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HeartbeatEvent {
    /// The nodes that are present, this one among them, and those that the view suspects.
    Nodes {
        /// Everybody who should be there.
        present: BTreeSet<NodeId>,
        /// Those of them who are suspected, by whomever.
        suspected: BTreeSet<NodeId>,
    },
    /// The time asked for has come.
    Wake {
        /// A fresh random number, for the choice of helpers.
        random: u64,
    },
    /// A node asks whether this one is there.
    Asked(NodeId),
    /// A node answered a heartbeat.
    Answered(NodeId),
    /// Anything else came from a node.
    Life(NodeId),
    /// Another node asks for a probe.
    ProbeRequested {
        /// Who asks.
        by: NodeId,
        /// About whom.
        subject: NodeId,
    },
    /// Somebody vouches for a node.
    ProbeAnswered {
        /// Who does.
        by: NodeId,
        /// For whom.
        subject: NodeId,
    },
}

impl HeartbeatEvent {
    /// What a frame of `from` means to the heartbeats; whatever it is, its sender lives.
    pub const fn of_frame(from: NodeId, frame: &MembershipFrame) -> Self {
        match frame {
            MembershipFrame::Heartbeat => Self::Asked(from),
            MembershipFrame::HeartbeatAnswer => Self::Answered(from),
            MembershipFrame::ProbeRequest { subject } => Self::ProbeRequested { by: from, subject: *subject },
            MembershipFrame::ProbeAnswer { subject } => Self::ProbeAnswered { by: from, subject: *subject },
            _ => Self::Life(from),
        }
    }
}

/// What the shell does about it, in order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HeartbeatAction {
    /// Send a heartbeat.
    SendHeartbeat(NodeId),
    /// Tell a node that asked that this one is there.
    AnswerHeartbeat(NodeId),
    /// Somebody who is not among those present asks: whoever keeps the view answers
    /// ([`MembershipEvent::Received`](super::MembershipEvent::Received)).
    StrangerAsks(NodeId),
    /// Ask a node to probe another.
    AskProbe {
        /// Whom to ask.
        helper: NodeId,
        /// About whom.
        subject: NodeId,
    },
    /// Tell whoever asked that a node is there.
    AnswerProbe {
        /// Who asked.
        to: NodeId,
        /// About whom.
        subject: NodeId,
    },
    /// A node gives no sign of life.
    Unreachable(NodeId),
    /// It does again.
    ReachableAgain(NodeId),
    /// Wake the machine at this time; replaces any earlier wish.
    WakeAt(Millis),
}

impl HeartbeatAction {
    /// What is sent to whom, if something is.
    pub const fn frame(&self) -> Option<(NodeId, MembershipFrame)> {
        match self {
            Self::SendHeartbeat(to) => Some((*to, MembershipFrame::Heartbeat)),
            Self::AnswerHeartbeat(to) => Some((*to, MembershipFrame::HeartbeatAnswer)),
            Self::AskProbe { helper, subject } => {
                Some((*helper, MembershipFrame::ProbeRequest { subject: *subject }))
            }
            Self::AnswerProbe { to, subject } => {
                Some((*to, MembershipFrame::ProbeAnswer { subject: *subject }))
            }
            Self::StrangerAsks(_) | Self::Unreachable(_) | Self::ReachableAgain(_) | Self::WakeAt(_) => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Watched {
    detector: PhiAccrual,
    standing: Standing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Standing {
    Reachable,
    Probed { until: Millis },
    Unreachable,
}

impl HeartbeatMachine {
    /// The most probes that are under way for others; further requests are dropped, and the asker hears nothing.
    pub const MAX_ASKED: usize = 256;

    /// A machine of node `me` that watches nobody yet.
    pub fn new(now: Millis, me: NodeId, settings: HeartbeatSettings) -> Self {
        Self {
            me,
            settings,
            present: BTreeSet::from([me]),
            watched: BTreeMap::new(),
            asked: BTreeMap::new(),
            next_beat: now,
            woken_at: None,
            asked_to_wake: None,
            lateness: Millis::ZERO,
        }
    }

    /// Takes one event at time `now` and returns what to do about it, in order.
    pub fn handle(&mut self, now: Millis, event: HeartbeatEvent) -> Vec<HeartbeatAction> {
        match event {
            HeartbeatEvent::Nodes { present, suspected } => self.on_nodes(now, present, &suspected),
            HeartbeatEvent::Wake { random } => self.on_wake(now, random),
            HeartbeatEvent::Asked(node) => self.on_asked(now, node),
            HeartbeatEvent::Answered(node) => self.on_answered(now, node),
            HeartbeatEvent::Life(node) => self.on_life(now, node),
            HeartbeatEvent::ProbeRequested { by, subject } => self.on_probe_requested(now, by, subject),
            HeartbeatEvent::ProbeAnswered { by, subject } => {
                let mut actions = self.on_life(now, by);
                actions.extend(self.on_life(now, subject));
                actions
            }
        }
    }

    /// Those whom this node does not reach, not even through others.
    pub fn unreachable(&self) -> BTreeSet<NodeId> {
        let unreachable =
            self.watched.iter().filter(|(_, watched)| watched.standing == Standing::Unreachable);
        unreachable.map(|(node, _)| *node).collect()
    }

    /// Whom this node watches.
    pub fn watched(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.watched.keys().copied()
    }

    /// How suspicious the silence of those is whom this node watches, and whether they are reachable.
    pub fn suspicions(&self, now: Millis) -> impl Iterator<Item = (NodeId, f64, bool)> + '_ {
        self.watched.iter().map(move |(node, watched)| {
            let reachable = watched.standing != Standing::Unreachable;
            (*node, watched.detector.phi(now, self.lateness), reachable)
        })
    }

    /// How long this node excuses others for, because it was late itself.
    pub const fn lateness(&self) -> Millis {
        self.lateness
    }

    /// Whoever was called unreachable stays watched until it is heard of or gone, whatever the ring says.
    fn on_nodes(
        &mut self,
        now: Millis,
        present: BTreeSet<NodeId>,
        suspected: &BTreeSet<NodeId>,
    ) -> Vec<HeartbeatAction> {
        let targets = ring::watched_by(self.me, &present, suspected);
        self.watched.retain(|node, watched| {
            targets.contains(node) || present.contains(node) && watched.standing == Standing::Unreachable
        });
        let mut actions = Vec::new();
        for node in targets {
            self.watched.entry(node).or_insert_with(|| {
                actions.push(HeartbeatAction::SendHeartbeat(node));
                Watched { detector: PhiAccrual::new(now, self.settings.phi), standing: Standing::Reachable }
            });
        }
        self.asked.retain(|(subject, by), _| present.contains(subject) && present.contains(by));
        self.present = present;
        if self.asked_to_wake.is_none() {
            actions.push(self.wake_next(now));
        }
        actions
    }

    fn on_wake(&mut self, now: Millis, random: u64) -> Vec<HeartbeatAction> {
        self.note_lateness(now);
        let mut actions = self.beat(now);
        actions.extend(self.check(now, random));
        self.asked.retain(|_, until| now < *until);
        actions.push(self.wake_next(now));
        actions
    }

    fn on_asked(&mut self, now: Millis, node: NodeId) -> Vec<HeartbeatAction> {
        if !self.present.contains(&node) {
            return vec![HeartbeatAction::StrangerAsks(node)];
        }
        let mut actions = self.on_life(now, node);
        actions.push(HeartbeatAction::AnswerHeartbeat(node));
        actions
    }

    fn on_answered(&mut self, now: Millis, node: NodeId) -> Vec<HeartbeatAction> {
        if let Some(watched) = self.watched.get_mut(&node) {
            watched.detector.heartbeat(now);
        }
        let mut actions = self.on_life(now, node);
        // Only an answer proves that the way there and back is open; other traffic may be old.
        let waiting: Vec<NodeId> =
            self.asked.keys().filter(|(subject, _)| *subject == node).map(|(_, by)| *by).collect();
        self.asked.retain(|(subject, _), _| *subject != node);
        actions.extend(waiting.into_iter().map(|to| HeartbeatAction::AnswerProbe { to, subject: node }));
        actions
    }

    fn on_life(&mut self, now: Millis, node: NodeId) -> Vec<HeartbeatAction> {
        let Some(watched) = self.watched.get_mut(&node) else { return Vec::new() };
        watched.detector.alive(now);
        match core::mem::replace(&mut watched.standing, Standing::Reachable) {
            Standing::Unreachable => vec![HeartbeatAction::ReachableAgain(node)],
            Standing::Reachable | Standing::Probed { .. } => Vec::new(),
        }
    }

    fn on_probe_requested(&mut self, now: Millis, by: NodeId, subject: NodeId) -> Vec<HeartbeatAction> {
        let mut actions = self.on_life(now, by);
        let is_known = self.present.contains(&subject) && self.present.contains(&by) && subject != by;
        if subject != self.me && is_known && self.asked.len() < Self::MAX_ASKED {
            self.asked.insert((subject, by), now + self.settings.probe_timeout);
            actions.push(HeartbeatAction::SendHeartbeat(subject));
        }
        actions
    }

    /// A wake that comes late means that answers may lie unread: the silence is ours.
    fn note_lateness(&mut self, now: Millis) {
        let late = self.asked_to_wake.map_or(Millis::ZERO, |asked| now.since(asked));
        let tolerated = Millis(self.settings.check_period.0 / 4);
        let since_last = self.woken_at.map_or(Millis::ZERO, |last| now.since(last));
        let faded = self.lateness - Millis(since_last.0 / FADING);
        self.lateness = if late > tolerated { faded.max(late) } else { faded };
        self.woken_at = Some(now);
    }

    fn beat(&mut self, now: Millis) -> Vec<HeartbeatAction> {
        if now < self.next_beat {
            return Vec::new();
        }
        self.next_beat = now + self.settings.period;
        self.watched.keys().map(|node| HeartbeatAction::SendHeartbeat(*node)).collect()
    }

    fn check(&mut self, now: Millis, random: u64) -> Vec<HeartbeatAction> {
        let (lateness, timeout) = (self.lateness, self.settings.probe_timeout);
        let mut actions = Vec::new();
        let mut silent = Vec::new();
        for (node, watched) in &mut self.watched {
            match watched.standing {
                Standing::Reachable if !watched.detector.is_available(now, lateness) => {
                    watched.standing = Standing::Probed { until: now + timeout + lateness };
                    silent.push(*node);
                }
                Standing::Probed { until } if now >= until => {
                    watched.standing = Standing::Unreachable;
                    actions.push(HeartbeatAction::Unreachable(*node));
                }
                _ => {}
            }
        }
        silent.iter().for_each(|subject| actions.extend(self.probe(*subject, random)));
        actions
    }

    /// Asks the subject once more, and others about it.
    fn probe(&self, subject: NodeId, random: u64) -> Vec<HeartbeatAction> {
        let mut actions = vec![HeartbeatAction::SendHeartbeat(subject)];
        let helpers = self.helpers(subject, random);
        actions.extend(helpers.into_iter().map(|helper| HeartbeatAction::AskProbe { helper, subject }));
        actions
    }

    /// Nodes next to each other in the order of ids, from a random one on: those not in doubt here come first.
    fn helpers(&self, subject: NodeId, random: u64) -> Vec<NodeId> {
        let in_doubt = |node: &NodeId| {
            self.watched.get(node).is_some_and(|watched| watched.standing != Standing::Reachable)
        };
        let others = self.present.iter().copied().filter(|node| *node != self.me && *node != subject);
        let mut others: Vec<NodeId> = others.filter(|node| !in_doubt(node)).collect();
        if others.is_empty() {
            return others;
        }
        let start = ((random ^ subject.as_u64()) % others.len() as u64) as usize;
        others.rotate_left(start);
        others.truncate(self.settings.helpers);
        others
    }

    fn wake_next(&mut self, now: Millis) -> HeartbeatAction {
        let at = self.next_beat.min(now + self.settings.check_period);
        self.asked_to_wake = Some(at);
        HeartbeatAction::WakeAt(at)
    }
}

/// One millisecond of lateness is forgotten in so many.
const FADING: u64 = 4;

#[cfg(test)]
mod tests;
