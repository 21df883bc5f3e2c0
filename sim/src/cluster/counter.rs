//! The actors under test: counters that every node hosts. What they count begins anew with each activation; what those of
//! the first kind remember besides goes along when their shard moves.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use archipelago::prelude::*;
use archipelago::{CallOptions, identity::ActorId};
use archipelago_directory::{RecordId, owner_id};
use archipelago_protocol::identity::OwnedKey;
use archipelago_protocol::placement::KindLayout;
use archipelago_protocol::time::Millis;
use archipelago_runtime::env::Environment;
use archipelago_runtime::{
    AcceptedBy, MessageTable, Migration, NodeBuilder, Sharding, ViaHandler, remaining,
};

use super::memory::Memory;
use super::plan::{KINDS, SWEEP};
use super::truth::{From, Letter, Running, Span, Truth};
use crate::clock::TrueClock;
use crate::common::{ActorNumber, Ground, Home, Shared, allowance, check_end, known};

// ---- messages ----

/// Adds one, takes `millis`, and adds one to another counter before it is answered.
#[remote(Tally)]
pub(crate) struct Add {
    pub(crate) ticket: u64,
    pub(crate) millis: u64,
    /// The key of the other counter, which is of the next kind.
    pub(crate) then: Option<u64>,
}

/// The answer to an [`Add`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Tally {
    pub(crate) ticket: u64,
    /// Which activation has counted.
    pub(crate) activation: u64,
    pub(crate) value: u64,
}

// ---- the actor ----

/// A counter of kind number `N`.
pub(crate) struct Counter<const N: usize> {
    span: Arc<Span>,
    home: Home,
    node: Node,
    value: u64,
    /// Its handlers change it as well, as long as they run.
    memory: Rc<Cell<Memory>>,
}

impl<const N: usize> Counter<N> {
    fn new(truth: &Arc<Truth>, home: &Home, id: &ActorId, (node, layout): (&Node, KindLayout)) -> Self {
        let key = id.key().as_str().parse().unwrap_or(u64::MAX);
        let span = truth.activation(ActorNumber { kind: N, key }, record_of(id, layout), home, node.id());
        Self { span, home: home.clone(), node: node.clone(), value: 0, memory: Rc::default() }
    }
}

impl<const N: usize> Actor for Counter<N> {
    type Context = Context<Self>;
}

impl<const N: usize> VirtualActor for Counter<N> {
    const KIND: &'static str = NAMES[N];
    const MIGRATION: Option<Migration<Self>> = if N == 0 { Some(Migration::of_actor()) } else { None };

    fn messages(table: &mut MessageTable<Self>) {
        table.add::<Add>();
    }
}

impl<const N: usize> AcceptedBy<Counter<N>> for Add {
    type Via = ViaHandler;
}

impl<const N: usize> Lifecycle for Counter<N> {
    async fn on_activate(&mut self, here: Activation) -> Result<(), BoxError> {
        self.span.truth().granted(&self.span, here.generation());
        Ok(())
    }
}

impl<const N: usize> Migrate for Counter<N> {
    type Carried = Memory;

    fn dehydrate(&mut self) -> Option<Memory> {
        self.span.truth().packed(&self.span);
        Some(self.memory.get())
    }

    fn rehydrate(&mut self, memory: Memory) {
        self.span.truth().rehydrated(&self.span, memory);
        self.memory.set(memory);
    }
}

impl<const N: usize> Handler<Add> for Counter<N> {
    type Result = ResponseFuture<Tally>;

    fn handle(&mut self, add: Add, _: &mut Context<Self>) -> ResponseFuture<Tally> {
        let Add { ticket, millis, then } = add;
        self.value += 1;
        self.memory.set(Memory { begun: self.memory.get().begun + 1, ..self.memory.get() });
        let running = self.span.truth().started(ticket, self.value, &self.span);
        let tally = Tally { ticket, activation: self.span.at().activation, value: self.value };
        let task = Task {
            span: Arc::clone(&self.span),
            home: self.home.clone(),
            node: self.node.clone(),
            _running: running,
        };
        let memory = Rc::clone(&self.memory);
        Box::pin(in_call(async move {
            if millis > 0 {
                TrueClock::sleep(Duration::from_millis(millis)).await;
                task.span.goes_on();
            }
            if let Some(key) = then {
                task.add_to(ActorNumber { kind: (N + 1) % KINDS, key }).await;
            }
            memory.set(Memory { ended: memory.get().ended + 1, ..memory.get() });
            task.span.truth().ended(&task.span);
            tally
        }))
    }
}

/// A handler at work.
struct Task {
    span: Arc<Span>,
    home: Home,
    node: Node,
    _running: Running,
}

impl Task {
    async fn add_to(&self, to: ActorNumber) {
        let (truth, at) = (self.span.truth(), self.span.at());
        let more = From { index: at.index, life: at.life, inside: true, leaving: false };
        let ticket = truth.ledger().sending(Letter { to, sender: Some(at.sender), tell: false, more });
        let left = remaining().map_or(Millis(5_000), Millis::from_duration);
        let sent = self.home.env.now();
        let options = CallOptions::new().timeout(left.to_duration());
        let answer = ask(&self.node, to, Add { ticket, millis: 0, then: None }, options).await;
        self.span.goes_on();
        check_end(truth.ledger(), ticket, &self.home.env, (sent, left, allowance(left, SWEEP)), &answer);
        truth.answered(ticket, &answer);
    }
}

// ---- by number ----

/// Asks a counter of any kind.
pub(crate) fn ask(node: &Node, to: ActorNumber, add: Add, options: CallOptions) -> Call<Tally> {
    let key = to.key.to_string();
    match to.kind {
        0 => node.actor::<Counter<0>>(key).send_with(add, options),
        _ => node.actor::<Counter<1>>(key).send_with(add, options),
    }
}

/// Tells a counter of any kind.
pub(crate) fn tell(node: &Node, to: ActorNumber, add: Add) -> Result<(), CallError> {
    let key = to.key.to_string();
    match to.kind {
        0 => node.actor::<Counter<0>>(key).tell(add),
        _ => node.actor::<Counter<1>>(key).tell(add),
    }
}

/// The name of a kind.
pub(crate) const fn kind_name(kind: usize) -> &'static str {
    NAMES[kind]
}

/// The shard of a counter.
pub(crate) fn shard_of(node: &Node, counter: ActorNumber) -> u32 {
    let actor = node.actor_ref(kind_name(counter.kind), &counter.key.to_string());
    actor.id().map_or(u32::MAX, |id| u32::try_from(id.stable_hash() % SHARDS).unwrap_or(u32::MAX))
}

/// Makes a node host kind `N`.
pub(crate) fn with_kind<const N: usize>(
    builder: NodeBuilder,
    truth: &Shared<Truth>,
    home: &Home,
    layout: KindLayout,
) -> NodeBuilder {
    let (truth, home) = (Arc::clone(truth), home.clone());
    let made = move |id: &ActorId, node: &Node| Counter::<N>::new(known(&truth), &home, id, (node, layout));
    builder.shard(Sharding::new(made).divided(layout))
}

/// The record that says who owns a counter: that of its shard, or its own.
fn record_of(id: &ActorId, layout: KindLayout) -> RecordId {
    if layout.is_by_actor() {
        return owner_id(&OwnedKey::Actor(id.clone()));
    }
    let shard = u32::try_from(id.stable_hash() % SHARDS).unwrap_or(u32::MAX);
    owner_id(&OwnedKey::shard(id.kind().clone(), shard))
}

const NAMES: [&str; KINDS] = ["Ebb", "Flood"];
/// Into how many shards a kind is divided.
const SHARDS: u64 = 256;
