//! Everything at one instant: the store, the nodes with their machines, the senders with theirs, and the lanes between.

use std::collections::VecDeque;

use archipelago_protocol::contract::Move;
use archipelago_protocol::handoff::{HandoffLimits, HostEvent, HostedShard, Job, Moment, Owned};
use archipelago_protocol::identity::{Generation, NodeId};
use archipelago_protocol::link::{Hint, ShardRef};
use archipelago_protocol::placement::ClaimOutcome;
use archipelago_protocol::route::{LaneId, RouteEntry, RouteEvent};
use archipelago_protocol::time::Millis;

use super::Config;

pub(crate) type Message = u8;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    /// Every record that the shard ever had; the last one stands.
    pub(crate) records: Vec<Record>,
    pub(crate) writes: Vec<Write>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) senders: Vec<Sender>,
    pub(crate) lanes: Vec<Lane>,
    /// An order of the coordinator on its way.
    pub(crate) order: Option<Order>,
    pub(crate) parcels: Vec<Parcel>,
    pub(crate) acks: Vec<(usize, u64)>,
    pub(crate) messages: Vec<Fate>,
    /// Messages in the order in which they started.
    pub(crate) started: Vec<Message>,
    pub(crate) left: Left,
    pub(crate) marks: Marks,
}

/// What is left of everything that may happen only so often.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Left {
    pub(crate) moves: u8,
    pub(crate) cancels: u8,
    pub(crate) unanswered: u8,
    pub(crate) lost_orders: u8,
    pub(crate) breaks: u8,
    pub(crate) crashes: u8,
    pub(crate) fences: u8,
    pub(crate) pauses: u8,
    pub(crate) deadlines: u8,
    pub(crate) passivations: u8,
    pub(crate) leaves: u8,
}

/// What has happened, for the properties.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Marks {
    pub(crate) faulted: bool,
    pub(crate) moved: bool,
    pub(crate) returned: bool,
    pub(crate) held_at_new_owner: bool,
    pub(crate) stray: bool,
    pub(crate) twice: bool,
    pub(crate) disorder: bool,
    pub(crate) twin: bool,
    pub(crate) incomplete: bool,
    pub(crate) next_move: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Record {
    /// None if it was deleted.
    pub(crate) owned: Option<Owned>,
    pub(crate) generation: u64,
    /// What the actors' state contained when it was sent ahead.
    pub(crate) state: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Write {
    pub(crate) by: usize,
    /// Whether somebody waits for the answer.
    pub(crate) awaited: bool,
    pub(crate) what: What,
    pub(crate) answer: Option<Answer>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum What {
    Claim { expect: u64 },
    Reassert(Owned),
    Transfer { expect: u64, to: NodeId, moved: Move, state: u32 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Answer {
    Seen(Owned),
    Claimed(ClaimOutcome),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Life {
    Up,
    Paused,
    Leaving,
    Dead,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Slot {
    Empty,
    Valid,
    Deactivating,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Node {
    pub(crate) life: Life,
    /// Whether its session still lets it serve.
    pub(crate) lease: bool,
    pub(crate) ended: bool,
    pub(crate) host: HostedShard<Message>,
    pub(crate) inbox: Vec<VecDeque<Job<Message>>>,
    pub(crate) running: Vec<Option<Job<Message>>>,
    pub(crate) slots: Vec<Slot>,
    pub(crate) stopping: Option<u64>,
    pub(crate) lookup: Lookup,
    pub(crate) seen: usize,
    /// Which messages the state of the actors contains.
    pub(crate) state: u32,
    pub(crate) parcel: Option<(u64, u32)>,
    /// How many have acknowledged its goodbye; none before it was said.
    pub(crate) bye: Option<usize>,
    /// Whether it serves, as far as it knows: the gate before every handler.
    pub(crate) gate: bool,
    /// Jobs that a mutant keeps out of the machine's hands.
    pub(crate) aside: Vec<Job<Message>>,
    /// What a refused lane counts as, for the mutants that forget refusals.
    pub(crate) aliases: Vec<(LaneId, LaneId)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Lookup {
    None,
    Asked,
    Read(Option<Owned>),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Sender {
    pub(crate) route: RouteEntry<Message>,
    pub(crate) plan: Vec<Message>,
    pub(crate) lookup: bool,
    /// A pause of the route that is to end.
    pub(crate) wake: Option<u64>,
    pub(crate) seen: usize,
    /// Who said goodbye, and whether that was acknowledged.
    pub(crate) byes: Vec<Option<bool>>,
    /// Messages that were given to a lane before.
    pub(crate) tried: Vec<Message>,
}

/// The lane of one sender to one node. Frames of a broken incarnation may still be read, for a while.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Lane {
    pub(crate) incarnation: u64,
    pub(crate) old: VecDeque<Down>,
    /// Whether the node has not yet closed the last incarnation.
    pub(crate) old_open: bool,
    pub(crate) down: VecDeque<Down>,
    pub(crate) up: VecDeque<Up>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Down {
    Data { message: Message, generation: u64 },
    Settle { generation: u64 },
    ByeAck,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Up {
    Return(Message),
    Settled { generation: u64, hint: Option<Hint> },
    Notice(Hint),
    Bye,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Order {
    pub(crate) generation: u64,
    pub(crate) from: usize,
    pub(crate) to: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Parcel {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) move_id: u64,
    pub(crate) state: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Fate {
    /// Not sent yet, or in the route.
    Waiting,
    /// Given to the lane of a node.
    Given(usize),
    Done,
    Unknown,
    NotStarted,
}

impl World {
    pub(crate) fn new(config: &Config) -> Self {
        let hosts = config.hosts;
        let record = Record { owned: Some(owned(0, 1, 1)), generation: 1, state: 0 };
        let mut world = Self {
            records: vec![record],
            writes: vec![],
            nodes: (0..hosts).map(|node| Node::new(node, config)).collect(),
            senders: vec![],
            lanes: vec![Lane::default(); config.plans.len() * hosts],
            order: None,
            parcels: vec![],
            acks: vec![],
            messages: vec![],
            started: vec![],
            left: config.left,
            marks: Marks { next_move: 1, ..Marks::default() },
        };
        let mut number = 0;
        for plan in config.plans {
            let messages: Vec<Message> = (number..number + plan.len() as Message).collect();
            number += plan.len() as Message;
            world.senders.push(Sender::new(messages, hosts));
        }
        world.messages = vec![Fate::Waiting; number as usize];
        world
    }

    pub(crate) fn record(&self) -> Record {
        *self.records.last().expect("there is always a record")
    }

    /// Who owns the shard as the store tells, if its session has not ended.
    pub(crate) fn live_owner(&self) -> Option<Owned> {
        self.record().owned.filter(|owned| !self.nodes[index_of(owned.hint.owner)].ended)
    }

    pub(crate) fn lane(&self, sender: usize, node: usize) -> usize {
        sender * self.nodes.len() + node
    }

    /// The lane of a job, if its incarnation is the present one.
    pub(crate) fn lane_of(&self, node: usize, lane: LaneId) -> Option<usize> {
        let at = self.nodes[node].aliases.iter().rev().find(|(_, alias)| *alias == lane);
        let LaneId(number) = at.map_or(lane, |(real, _)| *real);
        let at = self.lane(usize::try_from(number / 100).ok()?, node);
        self.lanes.get(at).is_some_and(|lane| lane.incarnation == number % 10).then_some(at)
    }
}

impl Node {
    fn new(node: usize, config: &Config) -> Self {
        let limits = HandoffLimits { hold_jobs: config.hold, ..HandoffLimits::DEFAULT };
        let mut host = HostedShard::new(id(node), SHARD, limits);
        host.handle(moment(true), HostEvent::Seen(owned(0, 1, 1)));
        if node == 0 {
            host = HostedShard::new(id(node), SHARD, limits);
            host.handle(moment(true), HostEvent::Asked);
            let placed = ClaimOutcome::Placed(Generation::new(1));
            host.handle(moment(true), HostEvent::Claimed(placed));
        }
        Self {
            life: Life::Up,
            lease: true,
            ended: false,
            host,
            inbox: vec![VecDeque::new(); config.actors],
            running: vec![None; config.actors],
            slots: vec![Slot::Empty; config.actors],
            stopping: None,
            lookup: Lookup::None,
            seen: 1,
            state: 0,
            parcel: None,
            bye: None,
            gate: node == 0,
            aside: vec![],
            aliases: vec![],
        }
    }

    pub(crate) fn is_awake(&self) -> bool {
        matches!(self.life, Life::Up | Life::Leaving)
    }
}

impl Sender {
    fn new(plan: Vec<Message>, hosts: usize) -> Self {
        let mut route = RouteEntry::new(8);
        route.handle(Millis(0), RouteEvent::Learn(owned(0, 1, 1).hint), |_| false);
        Self { route, plan, lookup: false, wake: None, seen: 1, byes: vec![None; hosts], tried: vec![] }
    }
}

pub(crate) fn moment(lease: bool) -> Moment {
    let serve_until = if lease { Millis::MAX } else { Millis::ZERO };
    Moment { now: Millis(0), serve_until, room: usize::MAX }
}

pub(crate) fn owned(node: usize, generation: u64, since: u64) -> Owned {
    let hint = Hint { owner: id(node), generation: Generation::new(generation) };
    Owned { hint, since: Generation::new(since), moved: None }
}

pub(crate) fn id(node: usize) -> NodeId {
    NodeId::new(node as u64 + 1)
}

pub(crate) fn index_of(id: NodeId) -> usize {
    usize::try_from(id.as_u64()).expect("a small number") - 1
}

pub(crate) fn lane_id(sender: usize, incarnation: u64) -> LaneId {
    LaneId(sender as u64 * 100 + incarnation)
}

/// The lane of calls inside the shard: none.
pub(crate) const INNER: LaneId = LaneId(9_999);
pub(crate) const SHARD: ShardRef = ShardRef { kind: 0, number: 0 };
