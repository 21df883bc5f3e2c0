//! The actors under test, of three kinds that do the same: answer, take their time, call each other across nodes.

use std::sync::Arc;
use std::time::Duration;

use archipelago::prelude::*;
use archipelago::{CallOptions, identity::ActorId};
use archipelago_protocol::time::Millis;
use archipelago_runtime::env::Environment;
use archipelago_runtime::{AcceptedBy, MessageTable, NodeBuilder, ViaHandler, remaining};

use super::plan::{NODES, SWEEP};
use super::truth::{Letter, More, Running, Span, Truth};
use crate::clock::TrueClock;
use crate::common::{ActorNumber, Ground, Home, Reported, Shared, allowance, check_end, known};
use crate::sometimes;

// ---- messages ----

/// Is answered at once.
#[remote(u64)]
pub(crate) struct Quick {
    pub(crate) ticket: u64,
    pub(crate) pad: Vec<u8>,
}

/// Is answered after a while.
#[remote(u64)]
pub(crate) struct Slow {
    pub(crate) ticket: u64,
    pub(crate) millis: u64,
    pub(crate) pad: Vec<u8>,
}

/// Goes on along `hops` before it is answered; each one may take `millis`.
#[remote(u64)]
pub(crate) struct Relay {
    pub(crate) ticket: u64,
    pub(crate) hops: Vec<(u8, u64)>,
    pub(crate) millis: u64,
    /// How many tells go to the next hop before the call.
    pub(crate) tells: u8,
}

/// Brings a ref along, which is asked before this is answered.
#[remote(u64)]
pub(crate) struct Through {
    pub(crate) ticket: u64,
    pub(crate) friend: MessageRef<Quick>,
    pub(crate) kind: u8,
    pub(crate) key: u64,
    pub(crate) millis: u64,
}

/// Is answered with so many bytes, of which the first eight are the ticket.
#[remote(Vec<u8>)]
pub(crate) struct Fetch {
    pub(crate) ticket: u64,
    pub(crate) len: usize,
}

// ---- the actor ----

/// An actor of kind number `N`.
pub(crate) struct Island<const N: usize> {
    span: Arc<Span>,
    home: Home,
    node: Node,
}

impl<const N: usize> Island<N> {
    fn new(truth: &Arc<Truth>, home: &Home, id: &ActorId, node: &Node) -> Self {
        let key = id.key().as_str().parse().unwrap_or(u64::MAX);
        let span = truth.activation(ActorNumber { kind: N, key }, home, node.id());
        Self { span, home: home.clone(), node: node.clone() }
    }

    fn begin(&self, ticket: u64) -> Task {
        let running = self.span.truth().started(ticket, &self.span);
        Task {
            span: Arc::clone(&self.span),
            home: self.home.clone(),
            node: self.node.clone(),
            _running: running,
        }
    }
}

impl<const N: usize> Actor for Island<N> {
    type Context = Context<Self>;
}

impl<const N: usize> VirtualActor for Island<N> {
    const KIND: &'static str = KINDS[N];

    fn messages(table: &mut MessageTable<Self>) {
        table.add::<Quick>();
        table.add::<Slow>();
        table.add::<Relay>();
        table.add::<Through>();
        table.add::<Fetch>();
    }
}

impl<const N: usize> Lifecycle for Island<N> {
    const HOOKS: bool = false;
}

impl<const N: usize> AcceptedBy<Island<N>> for Quick {
    type Via = ViaHandler;
}

impl<const N: usize> AcceptedBy<Island<N>> for Slow {
    type Via = ViaHandler;
}

impl<const N: usize> AcceptedBy<Island<N>> for Relay {
    type Via = ViaHandler;
}

impl<const N: usize> AcceptedBy<Island<N>> for Through {
    type Via = ViaHandler;
}

impl<const N: usize> AcceptedBy<Island<N>> for Fetch {
    type Via = ViaHandler;
}

// ---- handlers ----

impl<const N: usize> Handler<Quick> for Island<N> {
    type Result = u64;

    fn handle(&mut self, Quick { ticket, .. }: Quick, _: &mut Context<Self>) -> u64 {
        let _task = self.begin(ticket);
        ticket
    }
}

impl<const N: usize> Handler<Slow> for Island<N> {
    type Result = ResponseFuture<u64>;

    fn handle(&mut self, Slow { ticket, millis, .. }: Slow, _: &mut Context<Self>) -> ResponseFuture<u64> {
        let task = self.begin(ticket);
        Box::pin(async move {
            TrueClock::sleep(Duration::from_millis(millis)).await;
            task.goes_on();
            ticket
        })
    }
}

impl<const N: usize> Handler<Relay> for Island<N> {
    type Result = ResponseFuture<u64>;

    fn handle(&mut self, relay: Relay, _: &mut Context<Self>) -> ResponseFuture<u64> {
        let task = self.begin(relay.ticket);
        Box::pin(in_call(async move {
            let ticket = relay.ticket;
            task.relay(relay).await;
            ticket
        }))
    }
}

impl<const N: usize> Handler<Through> for Island<N> {
    type Result = ResponseFuture<u64>;

    fn handle(&mut self, through: Through, _: &mut Context<Self>) -> ResponseFuture<u64> {
        let task = self.begin(through.ticket);
        Box::pin(in_call(async move {
            let Through { ticket, friend, kind, key, millis } = through;
            let to = ActorNumber { kind: usize::from(kind), key };
            let nested = task.sending(to, false);
            let options = CallOptions::new().timeout(Duration::from_millis(millis));
            let call = friend.send_with(Quick { ticket: nested, pad: Vec::new() }, options);
            if task.wait(nested, to, call, millis).await {
                sometimes!("ref in a message used");
            }
            ticket
        }))
    }
}

impl<const N: usize> Handler<Fetch> for Island<N> {
    type Result = Vec<u8>;

    fn handle(&mut self, Fetch { ticket, len }: Fetch, _: &mut Context<Self>) -> Vec<u8> {
        let _task = self.begin(ticket);
        let mut reply = ticket.to_le_bytes().to_vec();
        reply.resize(len.max(8), 7);
        reply
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
    fn goes_on(&self) {
        self.span.goes_on();
    }

    fn sending(&self, to: ActorNumber, tell: bool) -> u64 {
        let sender = Some(self.span.at().sender);
        self.span.truth().ledger().sending(Letter { to, sender, tell, more: More::default() })
    }

    async fn relay(&self, relay: Relay) {
        let Relay { mut hops, millis, tells, .. } = relay;
        if hops.is_empty() {
            return;
        }
        let (kind, key) = hops.remove(0);
        let to = ActorNumber { kind: usize::from(kind), key };
        for _ in 0..tells {
            let ticket = self.sending(to, true);
            let told = tell(&self.node, to, Quick { ticket, pad: Vec::new() });
            self.span.truth().ledger().reported(ticket, Reported::told(&told));
        }
        let nested = self.sending(to, false);
        let options = CallOptions::new().timeout(Duration::from_millis(millis));
        let call = ask(&self.node, to, Relay { ticket: nested, hops, millis, tells: 0 }, options);
        self.wait(nested, to, call, millis).await;
    }

    /// Waits for a call that this handler has made; true if it was answered.
    async fn wait(&self, ticket: u64, to: ActorNumber, call: Call<u64>, millis: u64) -> bool {
        let left = remaining().map_or(Millis(millis), |left| Millis::from_duration(left).min(Millis(millis)));
        let sent = self.home.env.now();
        let answer = call.await;
        tracing::debug!(ticket, ?answer, "nested call ended");
        self.goes_on();
        let truth = self.span.truth();
        check_end(truth.ledger(), ticket, &self.home.env, (sent, left, allowance(left, SWEEP)), &answer);
        let far = truth.owner(to.kind).is_some_and(|owner| owner != self.span.at().index);
        match &answer {
            Ok(_) if far => sometimes!("nested call across nodes answered"),
            Err(CallError::CallCycle) if far => sometimes!("call cycle across nodes found"),
            _ => {}
        }
        truth.answered(ticket, &answer);
        answer.is_ok()
    }
}

// ---- by number ----

/// Asks an actor of any kind.
pub(crate) fn ask<M>(node: &Node, to: ActorNumber, message: M, options: CallOptions) -> Call<M::Result>
where
    M: AcceptedBy<Island<0>> + AcceptedBy<Island<1>> + AcceptedBy<Island<2>>,
{
    let key = to.key.to_string();
    match to.kind {
        0 => node.actor::<Island<0>>(key).send_with(message, options),
        1 => node.actor::<Island<1>>(key).send_with(message, options),
        _ => node.actor::<Island<2>>(key).send_with(message, options),
    }
}

/// Tells an actor of any kind.
pub(crate) fn tell<M>(node: &Node, to: ActorNumber, message: M) -> Result<(), CallError>
where
    M: AcceptedBy<Island<0>> + AcceptedBy<Island<1>> + AcceptedBy<Island<2>>,
{
    let key = to.key.to_string();
    match to.kind {
        0 => node.actor::<Island<0>>(key).tell(message),
        1 => node.actor::<Island<1>>(key).tell(message),
        _ => node.actor::<Island<2>>(key).tell(message),
    }
}

/// A ref to an actor of any kind that hides the kind.
pub(crate) fn friend(node: &Node, to: ActorNumber) -> MessageRef<Quick> {
    let key = to.key.to_string();
    match to.kind {
        0 => node.actor::<Island<0>>(key).message_ref(),
        1 => node.actor::<Island<1>>(key).message_ref(),
        _ => node.actor::<Island<2>>(key).message_ref(),
    }
}

/// Makes a node host kind `N`, or only know it.
pub(crate) fn with_kind<const N: usize>(
    builder: NodeBuilder,
    hosted: bool,
    truth: &Shared<Truth>,
    home: &Home,
) -> NodeBuilder {
    if !hosted {
        return builder.remote_actor::<Island<N>>();
    }
    let (truth, home) = (Arc::clone(truth), home.clone());
    builder.actor_with(move |id, node| Island::<N>::new(known(&truth), &home, id, node))
}

const KINDS: [&str; NODES] = ["Amrum", "Borkum", "Cuba"];
