//! Two links and the network between them, over thousands of schedules drawn from a seed.
//!
//! What one end of a connection says reaches the other in order, after any delay; different connections do not wait for
//! each other. While there are faults, hellos and welcomes get lost and connections break, noticed by each end in its
//! own time.

use alloc::collections::BTreeMap;

use super::*;

/// What is on its way.
#[derive(Clone, Copy, Debug)]
enum Parcel {
    /// A hello reaches the side that was dialled.
    Hello(usize),
    /// A welcome reaches the side that dialled.
    Welcome(usize, AttemptId),
    /// Anything else, for this side.
    Event(usize, LinkEvent),
    /// A connection breaks.
    Break(usize),
}

struct Wire {
    dialler: usize,
    attempt: AttemptId,
    /// Which ends are open, and when the last parcel from each arrives.
    open: [bool; 2],
    last: [u64; 2],
    used: [bool; 2],
}

struct World {
    links: [PeerLink; 2],
    wake: [Option<u64>; 2],
    wires: Vec<Wire>,
    parcels: BTreeMap<(u64, u64), Parcel>,
    now: u64,
    seed: u64,
    random: u64,
    sent: u64,
    slowest: u64,
    faults_until: u64,
    /// Whether what this side dials gets through at all.
    reaches: [bool; 2],
    dials: [u32; 2],
    dropped_in_use: u32,
}

impl World {
    fn new(seed: u64, slowest: u64, faults_until: u64) -> Self {
        Self {
            links: [low(), high()],
            wake: [None, None],
            wires: Vec::new(),
            parcels: BTreeMap::new(),
            now: 1,
            seed,
            random: seed,
            sent: 0,
            slowest,
            faults_until,
            reaches: [true, true],
            dials: [0, 0],
            dropped_in_use: 0,
        }
    }

    /// Splitmix64.
    fn draw(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn chance(&mut self, of: u64) -> bool {
        self.draw().is_multiple_of(of)
    }

    fn fault(&mut self) -> bool {
        self.now < self.faults_until && self.chance(4)
    }

    fn post(&mut self, at: u64, parcel: Parcel) {
        self.sent += 1;
        self.parcels.insert((at, self.sent), parcel);
    }

    /// Sends on `wire` away from `side`: in order, after any delay.
    fn send(&mut self, wire: usize, side: usize, parcel: Parcel) {
        let at = (self.now + 1 + self.draw() % self.slowest).max(self.wires[wire].last[side]);
        self.wires[wire].last[side] = at;
        self.post(at, parcel);
    }

    fn event(&mut self, side: usize, event: LinkEvent) {
        if let LinkEvent::Lost { connection } | LinkEvent::Closed { connection, .. } = event {
            self.wires[connection.0 as usize].open[side] = false;
        }
        let random = self.draw();
        for action in self.links[side].handle(Millis(self.now), random, event) {
            self.act(side, action);
        }
        let used = self.links[side].connection().map(|c| self.wires[c.0 as usize].open[side]);
        assert_ne!(used, Some(false), "seed {}: a dead connection is in use", self.seed);
    }

    fn act(&mut self, side: usize, action: LinkAction) {
        match action {
            LinkAction::Dial { attempt } => self.dial(side, attempt),
            LinkAction::Abandon { attempt } => {
                let wire = self.wires.iter().position(|w| w.dialler == side && w.attempt == attempt);
                self.end(wire.expect("it was dialled"), side, None);
            }
            LinkAction::Accept { connection } => self.accept(connection.0 as usize, side),
            LinkAction::Refuse { connection, why } => {
                let wire = connection.0 as usize;
                let attempt = self.wires[wire].attempt;
                let event = LinkEvent::DialFailed { attempt, failure: why.dial_failure() };
                self.send(wire, side, Parcel::Event(1 - side, event));
            }
            LinkAction::Use { connection } => self.wires[connection.0 as usize].used[side] = true,
            LinkAction::Drop { connection, code } => {
                let wire = connection.0 as usize;
                self.dropped_in_use += u32::from(self.wires[wire].used[side]);
                self.end(wire, side, Some(code));
            }
            LinkAction::WakeAt(at) => self.wake[side] = Some(at.0.max(self.now)),
            LinkAction::Report(_) => {}
        }
    }

    fn dial(&mut self, side: usize, attempt: AttemptId) {
        self.dials[side] += 1;
        let wire = self.wires.len();
        self.wires.push(Wire { dialler: side, attempt, open: [false; 2], last: [0; 2], used: [false; 2] });
        if !self.reaches[side] || self.fault() {
            let event = LinkEvent::DialFailed { attempt, failure: DialFailure::Unreachable };
            self.send(wire, side, Parcel::Event(side, event));
        } else {
            self.send(wire, side, Parcel::Hello(wire));
        }
    }

    fn accept(&mut self, wire: usize, side: usize) {
        self.wires[wire].open[side] = true;
        if self.fault() {
            let (connection, attempt) = (ConnectionId(wire as u64), self.wires[wire].attempt);
            let failed = LinkEvent::DialFailed { attempt, failure: DialFailure::Unreachable };
            self.send(wire, side, Parcel::Event(1 - side, failed));
            self.send(wire, 1 - side, Parcel::Event(side, LinkEvent::Lost { connection }));
        } else {
            let newest = self.links[side].newest_attempt();
            self.send(wire, side, Parcel::Welcome(wire, newest));
        }
    }

    /// `side` leaves a connection; the other side notices after everything sent before.
    fn end(&mut self, wire: usize, side: usize, code: Option<CloseCode>) {
        self.wires[wire].open[side] = false;
        let connection = ConnectionId(wire as u64);
        let event = match code {
            Some(code) => LinkEvent::Closed { connection, code },
            None => LinkEvent::Lost { connection },
        };
        self.send(wire, side, Parcel::Event(1 - side, event));
    }

    fn deliver(&mut self, parcel: Parcel) {
        match parcel {
            Parcel::Hello(wire) => {
                let Wire { dialler, attempt, .. } = self.wires[wire];
                let connection = ConnectionId(wire as u64);
                self.event(1 - dialler, LinkEvent::Hello { connection, peer_attempt: attempt });
            }
            Parcel::Welcome(wire, peer_attempt) => {
                let Wire { dialler, attempt, .. } = self.wires[wire];
                let connection = ConnectionId(wire as u64);
                self.wires[wire].open[dialler] = true;
                self.event(dialler, LinkEvent::Dialled { attempt, connection, peer_attempt });
                if self.fault() {
                    let at = self.now + self.draw() % 20_000;
                    self.post(at, Parcel::Break(wire));
                }
            }
            Parcel::Event(side, event) => self.event(side, event),
            Parcel::Break(wire) => {
                let event = LinkEvent::Lost { connection: ConnectionId(wire as u64) };
                for side in [0, 1] {
                    self.send(wire, 1 - side, Parcel::Event(side, event));
                }
            }
        }
    }

    /// Runs until nothing is on its way and nobody waits.
    fn run(&mut self) {
        loop {
            let parcel = self.parcels.first_key_value().map(|(&(at, _), _)| at);
            let timer = (0..2).filter_map(|side| self.wake[side].map(|at| (at, side))).min();
            assert!(self.now < 1_000_000, "seed {}: it never comes to rest, {:?}", self.seed, self.links);
            match (parcel, timer) {
                (None, None) => break,
                (Some(at), timer) if timer.is_none_or(|(timer, _)| at <= timer) => {
                    self.now = self.now.max(at);
                    let (_, parcel) = self.parcels.pop_first().expect("one is there");
                    self.deliver(parcel);
                }
                (_, Some((at, side))) => {
                    self.now = self.now.max(at);
                    self.wake[side] = None;
                    self.event(side, LinkEvent::WokeUp);
                }
                (Some(_), None) => unreachable!("a parcel is delivered if no timer is set"),
            }
        }
    }

    /// At rest: both use the same connection, and no other is open at either end.
    fn check_rest(&self) {
        let used = [self.links[0].connection(), self.links[1].connection()];
        assert!(used[0].is_some(), "seed {}: not connected, {:?}", self.seed, self.links);
        assert_eq!(used[0], used[1], "seed {}: two connections are in use", self.seed);
        for (number, wire) in self.wires.iter().enumerate() {
            let in_use = used[0] == Some(ConnectionId(number as u64));
            assert_eq!(wire.open, [in_use; 2], "seed {}: connection {number} is left over", self.seed);
        }
    }

    fn want(&mut self) {
        let both = !self.chance(3);
        let first = (self.draw() % 2) as usize;
        self.post(1 + self.random % 50, Parcel::Event(first, LinkEvent::Wanted));
        if both {
            let at = 1 + self.draw() % (2 * self.slowest);
            self.post(at, Parcel::Event(1 - first, LinkEvent::Wanted));
        }
    }
}

/// Proves: R119, R127
#[test]
fn two_that_dial_at_once_agree_on_one_connection_and_keep_it() {
    for seed in 0..20_000 {
        let mut world = World::new(seed, 200, 0);
        world.want();
        world.run();
        world.check_rest();
        assert_eq!(world.dropped_in_use, 0, "seed {seed}: a connection in use was dropped");
        assert!(world.dials.iter().all(|&dials| dials <= 1), "seed {seed}: dialled again");
    }
}

/// Proves: R119
#[test]
fn however_slow_the_network_no_connection_in_use_is_dropped() {
    for seed in 0..20_000 {
        let mut world = World::new(seed, 3_000, 0);
        world.want();
        world.run();
        world.check_rest();
        assert_eq!(world.dropped_in_use, 0, "seed {seed}: a connection in use was dropped");
    }
}

/// Proves: R119, R120
#[test]
fn after_the_faults_both_use_one_connection_and_none_is_left_over() {
    for seed in 0..20_000 {
        let mut world = World::new(seed, 500 + seed % 4_000, 60_000);
        world.want();
        world.run();
        world.check_rest();
    }
}

#[test]
fn it_is_enough_that_one_of_the_two_can_reach_the_other() {
    for seed in 0..2_000 {
        for side in [0, 1] {
            let mut world = World::new(seed, 4_000, 0);
            world.reaches[side] = false;
            (0..2).for_each(|side| world.post(1, Parcel::Event(side, LinkEvent::Wanted)));
            world.run();
            world.check_rest();
        }
    }
}
