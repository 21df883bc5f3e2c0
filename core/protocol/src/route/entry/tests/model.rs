//! One sender, two owners with a lane each way, and a shard that moves between them, over thousands of schedules drawn
//! from a seed.
//!
//! Lanes are in order; everything else (lanes among each other, the watch, look-ups, timers, handlers) comes in any order.
//! Owners hold what arrives while they hand the shard over, at most [`HOLD`] of it. With faults, lanes break: a
//! suffix of what is on them was never sent, the rest and what comes back is lost.

use super::*;
use crate::link::ShardRef;
use crate::route::{LaneId, Place, Refusals, Verdict};

const SHARD: ShardRef = ShardRef { kind: 0, number: 0 };
const HOLD: usize = 2;

enum Down {
    Data { message: u32, generation: u64 },
    Settle { generation: u64 },
}

enum Up {
    Return(u32),
    Settled { generation: u64, hint: Option<Hint> },
    Notice(Hint),
}

#[derive(Clone, Copy, PartialEq)]
enum Serves {
    No,
    /// From the first to the second generation.
    Yes(u64, u64),
    /// Hands over: takes, but starts nothing.
    Seals(u64, u64),
}

struct Owner {
    id: NodeId,
    serves: Serves,
    refusals: Refusals,
    lane: LaneId,
    jobs: VecDeque<(LaneId, u32)>,
    known: Option<Hint>,
    down: VecDeque<Down>,
    up: VecDeque<Up>,
}

struct World {
    seed: u64,
    random: u64,
    now: u64,
    entry: Entry,
    owners: [Owner; 2],
    /// The record in the store.
    record: Hint,
    /// What the watch has not shown to the sender yet.
    watch: VecDeque<Hint>,
    /// What a look-up saw when it was asked for; some get no answer.
    lookups: VecDeque<Hint>,
    wake: Option<u64>,
    sent: u32,
    started: Vec<u32>,
    lost: Vec<u32>,
    moves: u32,
    breaks: u32,
    lanes: u64,
}

impl World {
    fn new(seed: u64, breaks: u32) -> Self {
        let owner = |id, serves, lane| Owner {
            id,
            serves,
            refusals: Refusals::new(),
            lane: LaneId(lane),
            jobs: VecDeque::new(),
            known: None,
            down: VecDeque::new(),
            up: VecDeque::new(),
        };
        Self {
            seed,
            random: seed,
            now: 0,
            entry: Entry::default(),
            owners: [owner(A, Serves::Yes(10, 10), 0), owner(B, Serves::No, 1)],
            record: hint(A, 10),
            // The first place is a wrong one.
            watch: VecDeque::from([hint(B, 9), hint(A, 10)]),
            lookups: VecDeque::new(),
            wake: None,
            sent: 0,
            started: Vec::new(),
            lost: Vec::new(),
            moves: 3,
            breaks,
            lanes: 2,
        }
    }

    /// Splitmix64, below `bound`.
    fn draw(&mut self, bound: usize) -> usize {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }

    fn event(&mut self, event: RouteEvent<u32>) {
        for action in self.entry.handle(Millis(self.now), event, |_| false) {
            match action {
                RouteAction::Deliver { owner, generation, message } => {
                    let generation = generation.as_u64();
                    self.owners[index(owner)].down.push_back(Down::Data { message, generation });
                }
                RouteAction::SendSettle { owner, generation } => {
                    let generation = generation.as_u64();
                    self.owners[index(owner)].down.push_back(Down::Settle { generation });
                }
                RouteAction::CheckLane { owner } => {
                    let alive = self.draw(2) == 0;
                    self.event(RouteEvent::LaneChecked { node: owner, alive });
                }
                RouteAction::CloseLane { owner } => self.break_lane(index(owner)),
                RouteAction::LookUp => self.lookups.push_back(self.record),
                RouteAction::WakeAt(at) => self.wake = Some(at.0),
                RouteAction::Refuse { .. } | RouteAction::Over(_) => panic!("seed {}: refused", self.seed),
            }
        }
    }

    /// One step of the owner at `at`: the next frame of its lane.
    fn owner_reads(&mut self, at: usize) {
        let owner = &mut self.owners[at];
        match owner.down.pop_front() {
            Some(Down::Data { message, generation }) => owner.take(message, generation),
            Some(Down::Settle { generation }) => owner.settle(generation),
            None => {}
        }
    }

    fn sender_reads(&mut self, at: usize) {
        let from = self.owners[at].id;
        match self.owners[at].up.pop_front() {
            Some(Up::Return(message)) => {
                let stray = self.entry.is_clear_of(from);
                assert!(!stray, "seed {}: {message} comes back from a settled lane", self.seed);
                self.event(back(from, message));
            }
            Some(Up::Settled { generation, hint }) => self.event(settled(from, generation, hint)),
            Some(Up::Notice(hint)) => self.event(RouteEvent::Learn(hint)),
            None => {}
        }
    }

    fn start_one(&mut self, at: usize) {
        let owner = &mut self.owners[at];
        if !matches!(owner.serves, Serves::Yes(..)) {
            return;
        }
        if let Some((_, message)) = owner.jobs.pop_front() {
            let last = self.started.last().copied().unwrap_or(0);
            assert!(last < message, "seed {}: {message} starts after {last}", self.seed);
            self.started.push(message);
        }
    }

    /// The shard goes one step further: sealed, then either kept or transferred, then seen by the new owner.
    fn shard_step(&mut self) {
        let (at, generation) = (index(self.record.owner), self.record.generation.as_u64());
        match self.owners[at].serves {
            Serves::Yes(since, until) if self.moves > 0 => {
                self.moves -= 1;
                self.owners[at].serves = Serves::Seals(since, until);
            }
            Serves::Seals(since, until) => {
                if self.draw(3) == 0 {
                    let place = hint(self.owners[at].id, until);
                    self.owners[at].serve(since, until, place);
                } else {
                    self.record = hint(self.owners[1 - at].id, generation + 1);
                    self.watch.push_back(self.record);
                    self.owners[at].let_go(self.record);
                }
            }
            Serves::No => self.owners[at].serve(generation, generation, self.record),
            Serves::Yes(..) => {}
        }
    }

    /// A suffix of what is on the lane never left; the rest, and what comes back, is gone.
    fn break_lane(&mut self, at: usize) {
        self.lanes += 1;
        let node = self.owners[at].id;
        let mut given: Vec<u32> =
            self.owners[at].down.drain(..).filter_map(|frame| frame.message()).collect();
        let keep = self.draw(given.len() + 1);
        let unsent = given.split_off(keep);
        self.lost.extend(given);
        self.lost.extend(self.owners[at].up.drain(..).filter_map(|frame| frame.message()));
        let owner = &mut self.owners[at];
        owner.refusals.lane_lost(owner.lane);
        owner.lane = LaneId(self.lanes);
        if owner.serves == Serves::No {
            self.lost.extend(owner.jobs.drain(..).map(|(_, message)| message));
        } else {
            // Orphans: started if the owner serves on, and then not lost; for the sender they are.
            self.lost.extend(owner.jobs.iter().map(|&(_, message)| message));
        }
        self.event(RouteEvent::LaneLost { node, unsent });
    }

    fn step(&mut self) {
        match self.draw(12) {
            0 if self.sent < 30 => {
                self.sent += 1;
                self.event(RouteEvent::Send(self.sent));
            }
            choice @ 1..=4 => {
                let at = choice % 2;
                if choice < 3 { self.owner_reads(at) } else { self.sender_reads(at) }
            }
            choice @ 5..=6 => self.start_one(choice % 2),
            7 if self.draw(3) == 0 => self.shard_step(),
            8 => {
                if let Some(hint) = self.watch.pop_front() {
                    self.event(RouteEvent::Learn(hint));
                }
            }
            9 => {
                if let Some(hint) = self.lookups.pop_front() {
                    let answered = self.draw(8) > 0;
                    self.event(RouteEvent::LookedUp(answered.then_some(hint)));
                }
            }
            10 => self.now += 1,
            11 if self.breaks > 0 && self.draw(20) == 0 => {
                self.breaks -= 1;
                let at = self.draw(2);
                self.break_lane(at);
            }
            _ => {}
        }
        if self.wake.is_some_and(|at| at <= self.now) {
            self.wake = None;
            self.event(RouteEvent::WokeUp);
        }
    }

    /// A busy time with moves, then a quiet one in which everything must end.
    fn run(&mut self) {
        for _ in 0..600 {
            self.step();
        }
        (self.moves, self.breaks) = (0, 0);
        for _ in 0..60_000 {
            self.step();
            if self.is_done() {
                return;
            }
        }
        panic!("seed {}: it does not end: {:?}, started {:?}", self.seed, self.entry, self.started);
    }

    fn is_done(&self) -> bool {
        let idle = |owner: &Owner| owner.jobs.is_empty() && owner.down.is_empty() && owner.up.is_empty();
        self.sent == 30 && self.entry.waiting() == 0 && self.owners.iter().all(idle)
    }

    /// Every message was started, or was on a lane when it broke.
    fn check(&self) {
        for message in 1..=self.sent {
            let accounted = self.started.contains(&message) || self.lost.contains(&message);
            assert!(accounted, "seed {}: {message} is lost", self.seed);
        }
    }
}

impl Owner {
    fn take(&mut self, message: u32, generation: u64) {
        let takes = match self.serves {
            Serves::No => false,
            Serves::Yes(since, until) | Serves::Seals(since, until) => (since..=until).contains(&generation),
        };
        let verdict = self.refusals.on_data(self.lane, SHARD, takes);
        let full = matches!(self.serves, Serves::Seals(..)) && self.jobs.len() >= HOLD;
        if verdict == Verdict::Take && !full {
            self.jobs.push_back((self.lane, message));
            return;
        }
        if verdict == Verdict::Take {
            self.give_back();
        }
        self.refusals.refuse(self.lane, SHARD);
        self.up.push_back(Up::Return(message));
    }

    fn settle(&mut self, generation: u64) {
        self.give_back();
        let place = match self.serves {
            Serves::Yes(_, until) => Place::Here(hint(self.id, until)),
            _ => Place::Elsewhere(self.known),
        };
        let hint = self.refusals.on_settle(self.lane, SHARD, Generation::new(generation), place);
        self.up.push_back(Up::Settled { generation, hint });
    }

    /// Returns every unstarted job of the lane, in order; jobs of a lane that broke stay.
    fn give_back(&mut self) {
        let lane = self.lane;
        let (ours, orphans) = self.jobs.drain(..).partition(|&(by, _)| by == lane);
        self.jobs = orphans;
        let ours: VecDeque<(LaneId, u32)> = ours;
        if !ours.is_empty() {
            self.refusals.refuse(lane, SHARD);
        }
        self.up.extend(ours.into_iter().map(|(_, message)| Up::Return(message)));
    }

    fn serve(&mut self, since: u64, until: u64, place: Hint) {
        self.serves = Serves::Yes(since, until);
        self.notify(place);
    }

    fn let_go(&mut self, place: Hint) {
        self.serves = Serves::No;
        self.known = Some(place);
        self.give_back();
        self.jobs.clear();
        self.notify(place);
    }

    fn notify(&mut self, place: Hint) {
        let lanes = self.refusals.notices_due(SHARD, place);
        self.up.extend(lanes.into_iter().map(|_| Up::Notice(place)));
    }
}

impl Down {
    const fn message(&self) -> Option<u32> {
        match self {
            Self::Data { message, .. } => Some(*message),
            Self::Settle { .. } => None,
        }
    }
}

impl Up {
    const fn message(&self) -> Option<u32> {
        match self {
            Self::Return(message) => Some(*message),
            _ => None,
        }
    }
}

const fn index(node: NodeId) -> usize {
    node.as_u64() as usize - 1
}

/// Proves: R236, R241, R452
#[test]
fn moves_lose_nothing_repeat_nothing_and_keep_the_order() {
    let mut returned_or_held = 0;
    for seed in 0..20_000 {
        let mut world = World::new(seed, 0);
        world.run();
        assert!(world.lost.is_empty(), "seed {seed}: a lane broke without a fault");
        world.check();
        returned_or_held += u32::from(world.record.generation.as_u64() > 10);
    }
    assert!(returned_or_held > 10_000, "too few schedules move the shard");
}

/// Proves: R101
#[test]
fn broken_lanes_keep_the_order_and_lose_only_what_was_on_them() {
    for seed in 0..20_000 {
        let mut world = World::new(seed, 3);
        world.run();
        world.check();
    }
}
