//! Many membership machines, and the heartbeats of each, in one simulated network and one simulated directory, without threads or clocks.
//!
//! Frames are encoded and decoded on their way, delayed, lost and cut off as told; the same seed gives the same run.
#![allow(dead_code, unreachable_pub)]

use std::collections::{BTreeMap, BTreeSet};

use archipelago_protocol::identity::{NodeId, NodeInfo};
use archipelago_protocol::membership::{
    HeartbeatAction, HeartbeatEvent, HeartbeatMachine, MemberEvent, MemberStatus, Membership,
    MembershipAction, MembershipEvent, MembershipFrame, MembershipSettings,
};
use archipelago_protocol::time::Millis;

/// A simulated cluster; nodes are named by their place.
pub struct Cluster {
    pub now: Millis,
    pub nodes: Vec<Node>,
    pub settings: MembershipSettings,
    /// How many of a thousand frames are lost.
    pub loss_permille: u64,
    /// The longest delay of a frame.
    pub max_delay: u64,
    /// Whether the directory tells nodes of each other.
    pub discovery: bool,
    /// How long after a death or a revocation a session counts as ended.
    pub session_end: Millis,
    /// Whether nodes remember what they were told.
    pub keeps_events: bool,
    places: BTreeMap<NodeId, usize>,
    cut: BTreeSet<(usize, usize)>,
    random: u64,
    due: BTreeMap<(Millis, u64), Due>,
    sequence: u64,
}

pub struct Node {
    pub info: NodeInfo,
    pub membership: Membership,
    pub heartbeat: HeartbeatMachine,
    pub is_running: bool,
    pub events: Vec<(Millis, MemberEvent)>,
    pub revoked: BTreeSet<NodeId>,
    pub is_down: bool,
    pub has_left: bool,
    pub bytes_sent: u64,
    pub frames_sent: u64,
    paused_until: Millis,
    wakes_at: Millis,
    beats_at: Millis,
    has_session: bool,
}

enum Due {
    Wake(usize),
    Beat(usize),
    Frame { from: usize, to: usize, bytes: Vec<u8> },
    Tell { to: usize, event: MembershipEvent },
    EndSession(usize),
}

impl Cluster {
    pub fn new(seed: u64) -> Self {
        Self {
            now: Millis(1_000),
            nodes: Vec::new(),
            settings: MembershipSettings::default(),
            loss_permille: 0,
            max_delay: 20,
            discovery: true,
            session_end: Millis(6_500),
            keeps_events: true,
            places: BTreeMap::new(),
            cut: BTreeSet::new(),
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            due: BTreeMap::new(),
            sequence: 0,
        }
    }

    /// A cluster of `count` nodes that has found together.
    pub fn formed(seed: u64, count: usize) -> Self {
        let mut cluster = Self::new(seed);
        (0..count).for_each(|_| _ = cluster.start());
        assert!(cluster.run_until(120_000, Cluster::agrees), "{count} nodes did not find together");
        cluster.nodes.iter_mut().for_each(|node| node.events.clear());
        cluster
    }

    /// Starts another node with a session; answers its place.
    pub fn start(&mut self) -> usize {
        let place = self.nodes.len();
        self.start_at(&format!("node-{place:05}:4710"))
    }

    pub fn start_at(&mut self, address: &str) -> usize {
        let place = self.nodes.len();
        let info = NodeInfo {
            id: NodeId::new(self.draw()),
            name: format!("node-{place}"),
            address: address.parse().expect("a plain address"),
            roles: BTreeSet::new(),
            version: "0.1.0".into(),
            kinds: Default::default(),
        };
        let (membership, actions) = Membership::new(self.now, info.clone(), self.settings.clone());
        self.places.insert(info.id, place);
        self.nodes.push(Node {
            info: info.clone(),
            membership,
            heartbeat: HeartbeatMachine::new(self.now, info.id, self.settings.heartbeat),
            is_running: true,
            events: Vec::new(),
            revoked: BTreeSet::new(),
            is_down: false,
            has_left: false,
            bytes_sent: 0,
            frames_sent: 0,
            paused_until: Millis::ZERO,
            wakes_at: Millis::ZERO,
            beats_at: Millis::ZERO,
            has_session: true,
        });
        if self.discovery {
            for other in (0..place).filter(|other| self.nodes[*other].has_session).collect::<Vec<_>>() {
                self.tell_soon(other, MembershipEvent::Announced(info.clone()));
                let known = self.nodes[other].info.clone();
                self.tell_soon(place, MembershipEvent::Listed(known));
            }
            self.schedule(Millis(250), Due::Tell { to: place, event: MembershipEvent::DirectoryListed });
        }
        self.carry_out(place, actions);
        place
    }

    /// The process is gone from one moment to the next; its session ends later.
    pub fn kill(&mut self, place: usize) {
        self.nodes[place].is_running = false;
        self.schedule(self.session_end, Due::EndSession(place));
    }

    /// The process stands still for a while; what reaches it waits.
    pub fn pause(&mut self, place: usize, length: u64) {
        self.nodes[place].paused_until = self.now + Millis(length);
    }

    pub fn leave(&mut self, place: usize) {
        self.tell(place, MembershipEvent::LeaveRequested);
        self.tell(place, MembershipEvent::HandedOff);
    }

    /// Nothing gets from one node to the other any more; the way back is not touched.
    pub fn cut_one_way(&mut self, from: usize, to: usize) {
        self.cut.insert((from, to));
    }

    /// Nothing gets from one side to the other.
    pub fn split(&mut self, ours: &[usize]) {
        for a in 0..self.nodes.len() {
            for b in (0..self.nodes.len()).filter(|b| ours.contains(&a) != ours.contains(b)) {
                self.cut.insert((a, b));
            }
        }
    }

    pub fn heal(&mut self) {
        self.cut.clear();
    }

    pub fn tell(&mut self, place: usize, event: MembershipEvent) {
        let actions = self.nodes[place].membership.handle(self.now, event);
        self.carry_out(place, actions);
    }

    pub fn run(&mut self, length: u64) {
        let end = self.now + Millis(length);
        while let Some(entry) = self.due.first_entry().filter(|entry| entry.key().0 <= end) {
            let ((at, _), due) = entry.remove_entry();
            self.now = self.now.max(at);
            self.take(due);
        }
        self.now = end;
    }

    /// Runs until the condition holds, for at most `length`; whether it does.
    pub fn run_until(&mut self, length: u64, holds: impl Fn(&Self) -> bool) -> bool {
        let end = self.now + Millis(length);
        while self.now < end && !holds(self) {
            self.run(250);
        }
        holds(self)
    }

    pub fn running(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| node.is_running)
    }

    pub fn id(&self, place: usize) -> NodeId {
        self.nodes[place].info.id
    }

    /// Whether all who run have the same view, hold each other up, suspect nobody and know that they agree.
    pub fn agrees(&self) -> bool {
        let expected: BTreeSet<NodeId> = self.running().map(|node| node.info.id).collect();
        self.running().all(|node| {
            let machine = &node.membership;
            machine.is_converged()
                && machine.members().map(|member| member.id()).eq(expected.iter().copied())
                && machine.members().all(|member| member.status == MemberStatus::Up)
                && machine.reachable() == expected
        })
    }

    /// Whether every running node but `place` itself has told this.
    pub fn all_told(&self, wanted: impl Fn(&MemberEvent) -> bool) -> bool {
        self.running().all(|node| node.events.iter().any(|(_, event)| wanted(event)))
    }

    pub fn any_told(&self, wanted: impl Fn(&MemberEvent) -> bool) -> bool {
        self.running().any(|node| node.events.iter().any(|(_, event)| wanted(event)))
    }

    pub fn draw(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn take(&mut self, due: Due) {
        let (place, random) = match &due {
            Due::Wake(place) if self.nodes[*place].wakes_at > self.now => return,
            Due::Beat(place) if self.nodes[*place].beats_at > self.now => return,
            Due::Wake(place) | Due::Beat(place) => (*place, self.draw()),
            Due::Frame { to, .. } | Due::Tell { to, .. } => (*to, 0),
            Due::EndSession(place) => return self.end_session(*place),
        };
        let node = &self.nodes[place];
        if !node.is_running {
            return;
        }
        // Whoever stands still gets it when it moves again.
        if node.paused_until > self.now {
            return self.schedule(node.paused_until.since(self.now), due);
        }
        match due {
            Due::Wake(place) => self.tell(place, MembershipEvent::Wake { random }),
            Due::Beat(place) => self.beat(place, HeartbeatEvent::Wake { random }),
            Due::Frame { from, to, bytes } => {
                let frame = MembershipFrame::decode(&bytes).expect("what a machine made can be read");
                self.hear(to, self.id(from), frame);
            }
            Due::Tell { to, event } => self.tell(to, event),
            Due::EndSession(_) => {}
        }
    }

    fn hear(&mut self, place: usize, from: NodeId, frame: MembershipFrame) {
        let heartbeat = HeartbeatEvent::of_frame(from, &frame);
        let is_gossip = matches!(heartbeat, HeartbeatEvent::Life(_));
        self.beat(place, heartbeat);
        if is_gossip {
            self.tell(place, MembershipEvent::Received { from, frame });
        }
    }

    fn beat(&mut self, place: usize, event: HeartbeatEvent) {
        for action in self.nodes[place].heartbeat.handle(self.now, event) {
            if let Some((to, frame)) = action.frame() {
                self.send_to(place, to, &frame);
                continue;
            }
            match action {
                HeartbeatAction::WakeAt(at) => {
                    self.nodes[place].beats_at = at;
                    self.schedule(at.since(self.now), Due::Beat(place));
                }
                HeartbeatAction::StrangerAsks(from) => {
                    self.tell(place, MembershipEvent::Received { from, frame: MembershipFrame::Heartbeat });
                }
                _ => {
                    let unreachable = self.nodes[place].heartbeat.unreachable();
                    self.tell(place, MembershipEvent::Unreachable(unreachable));
                }
            }
        }
    }

    fn end_session(&mut self, place: usize) {
        if !std::mem::take(&mut self.nodes[place].has_session) {
            return;
        }
        let id = self.id(place);
        for other in 0..self.nodes.len() {
            self.tell_soon(other, MembershipEvent::SessionEnded(id));
        }
    }

    fn carry_out(&mut self, place: usize, actions: Vec<MembershipAction>) {
        for action in actions {
            match action {
                MembershipAction::Send { to, frame } => self.send_to(place, to, &frame),
                MembershipAction::SendToAddress { to, frame } => {
                    let to = self.nodes.iter().position(|node| node.is_running && node.info.address == to);
                    to.into_iter().for_each(|to| self.send(place, to, &frame));
                }
                MembershipAction::Revoke(id) => {
                    self.nodes[place].revoked.insert(id);
                    if let Some(&subject) = self.places.get(&id) {
                        self.schedule(self.session_end, Due::EndSession(subject));
                    }
                }
                MembershipAction::Publish(event) if self.keeps_events => {
                    self.nodes[place].events.push((self.now, event));
                }
                MembershipAction::Publish(_) | MembershipAction::Reachable(_) => {}
                MembershipAction::Watch { present, suspected } => {
                    self.beat(place, HeartbeatEvent::Nodes { present, suspected });
                }
                MembershipAction::SelfDown => {
                    (self.nodes[place].is_running, self.nodes[place].is_down) = (false, true);
                }
                MembershipAction::SelfLeft => {
                    (self.nodes[place].is_running, self.nodes[place].has_left) = (false, true);
                    self.end_session(place);
                }
                MembershipAction::WakeAt(at) => {
                    self.nodes[place].wakes_at = at;
                    self.schedule(at.since(self.now), Due::Wake(place));
                }
            }
        }
    }

    fn send_to(&mut self, from: usize, to: NodeId, frame: &MembershipFrame) {
        if let Some(&to) = self.places.get(&to) {
            self.send(from, to, frame);
        }
    }

    fn send(&mut self, from: usize, to: usize, frame: &MembershipFrame) {
        let bytes = frame.encode().expect("a machine makes no frame that is too long");
        self.nodes[from].bytes_sent += bytes.len() as u64;
        self.nodes[from].frames_sent += 1;
        let is_lost = self.draw() % 1_000 < self.loss_permille;
        if !is_lost && !self.cut.contains(&(from, to)) {
            let delay = Millis(1 + self.draw() % self.max_delay);
            self.schedule(delay, Due::Frame { from, to, bytes });
        }
    }

    fn tell_soon(&mut self, to: usize, event: MembershipEvent) {
        let delay = Millis(10 + self.draw() % 200);
        self.schedule(delay, Due::Tell { to, event });
    }

    fn schedule(&mut self, wait: Millis, due: Due) {
        self.sequence += 1;
        self.due.insert((self.now + wait, self.sequence), due);
    }
}
