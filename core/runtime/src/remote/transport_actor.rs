//! The actor of one arbiter's endpoint: lets peers in, and finds out who is at an address.

use std::rc::Rc;
use std::sync::Arc;

use actix::{
    Actor, ActorFutureExt, AsyncContext, Context, Handler, Message, MessageResult, Recipient, ResponseFuture,
    WrapFuture,
};
use archipelago_protocol::call::CallError;
use archipelago_protocol::contract::{CloseCode, CloseReason, Connection, TransportError};
use archipelago_protocol::identity::{NodeAddress, NodeId};
use archipelago_protocol::link::{Frame, Refused};
use archipelago_protocol::peer::{
    AttemptId, Hello, LaneEnds, PeerKind, Refusal, RefusalReason, Seat, negotiate,
};
use archipelago_protocol::time::Millis;
use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::control::RequestWaiter;
use super::envelopes::InboundMessage;
use super::handshake::{self, MeetError, Met};
use super::peer::Peer;
use super::peer_actor::Called;
use super::seat::SeatLocal;
use super::unanswered::Unanswered;
use super::waiter::Waiter;
use crate::env::within;
use crate::events::Event;
use crate::inspect::LookAtLanes;
use crate::node::NodeShared;

// ---- messages ----

/// Finds out who is at an address, connects to it for good, and says who it is.
#[derive(Debug)]
pub(crate) struct MeetAt(pub(crate) NodeAddress);

impl Message for MeetAt {
    type Result = Result<Arc<Peer>, String>;
}

/// Asks a service of another node.
pub(crate) struct Ask {
    pub(crate) peer: Arc<Peer>,
    pub(crate) service: u16,
    pub(crate) payload: Bytes,
    pub(crate) timeout: Millis,
    /// Whoever waits for the answer; once that is closed, the request is cancelled on the wire.
    pub(crate) answer: oneshot::Sender<Result<Bytes, Unanswered>>,
}

impl Message for Ask {
    type Result = ();
}

/// The session of a node has ended: its links are given up.
pub(super) struct PartFrom {
    pub(super) gone: NodeId,
    /// See [`NodeShared::part_from`].
    pub(super) at_once: bool,
}

impl Message for PartFrom {
    type Result = ();
}

/// Somebody has dialled us and said who it is. Until it is answered it is one of those who may talk to us at once.
struct Heard(Result<Met, MeetError>, OwnedSemaphorePermit);

impl Message for Heard {
    type Result = ();
}

// ---- state ----

/// The endpoint of one arbiter. That of the control arbiter takes [`SendRemote`](super::SendRemote) and
/// [`SubscribeInbound`](super::SubscribeInbound).
pub struct TransportActor {
    seat: Rc<SeatLocal>,
    /// Who may introduce itself.
    greetings: Arc<Semaphore>,
    pub(super) subscribers: Vec<Recipient<InboundMessage>>,
}

impl TransportActor {
    pub(super) fn new(seat: Rc<SeatLocal>) -> Self {
        Self { seat, greetings: Arc::new(Semaphore::new(MOST_GREETINGS)), subscribers: Vec::new() }
    }

    pub(super) fn node(&self) -> &Arc<NodeShared> {
        self.seat.node()
    }

    /// Waits for the next dialler; this goes on for as long as the endpoint does.
    fn accept_next(&self, ctx: &mut Context<Self>) {
        let endpoint = Arc::clone(self.seat.endpoint());
        let next = async move { endpoint.accept().await };
        ctx.spawn(next.into_actor(self).map(|accepted, actor, ctx| match accepted {
            Ok(connection) => {
                actor.listen_to(connection, ctx);
                actor.accept_next(ctx);
            }
            Err(TransportError::Ended) => tracing::debug!(seat = %actor.seat.seat(), "endpoint closed"),
            Err(error) => {
                tracing::warn!(seat = %actor.seat.seat(), %error, "a dialler was not let in");
                actor.publish_refusal(None, &error.to_string());
                actor.accept_next(ctx);
            }
        }));
    }

    /// Hears who has dialled us. Whoever comes while too many talk already is sent away, and comes again.
    fn listen_to(&self, connection: Connection, ctx: &mut Context<Self>) {
        let Ok(greeting) = Arc::clone(&self.greetings).try_acquire_owned() else {
            connection.streams.close(CloseReason::new(CloseCode::Done, TOO_MANY));
            return self.publish_refusal(None, TOO_MANY);
        };
        let env = Arc::clone(self.seat.node().env());
        let limit = self.seat.node().settings().remote.handshake_limit;
        let heard = async move { handshake::listen(&env, limit, connection).await };
        ctx.spawn(heard.into_actor(self).map(|heard, _, ctx| ctx.notify(Heard(heard, greeting))));
    }

    /// Says something to somebody who may not listen.
    fn answer<T: 'static>(
        &self,
        greeting: OwnedSemaphorePermit,
        words: impl Future<Output = T> + 'static,
    ) -> impl Future<Output = Option<T>> + 'static {
        let env = Arc::clone(self.seat.node().env());
        let limit = self.seat.node().settings().remote.handshake_limit;
        async move {
            let said = within(&env, limit, words).await;
            drop(greeting);
            said
        }
    }

    fn publish_refusal(&self, address: Option<NodeAddress>, reason: &str) {
        metrics::counter!("archipelago_peers_refused_total").increment(1);
        let refused = Event::PeerRefused { address, reason: reason.to_owned() };
        self.seat.node().events().publish(refused);
    }

    /// Somebody only wants to know who we are.
    fn answer_probe(&self, mut met: Met, greeting: OwnedSemaphorePermit, ctx: &mut Context<Self>) {
        let node = self.seat.node();
        let kind = node.kind_in_answer(&met.hello);
        let ours = node.hello(met.hello.lane.mirrored(), AttemptId::default(), (None, kind));
        let answer = async move {
            let welcomed = handshake::welcome(&mut met, ours).await;
            (met.hello, met.connection.peer, welcomed)
        };
        let answer = self.answer(greeting, answer);
        ctx.spawn(answer.into_actor(self).map(|answered, actor, _| match answered {
            // Of clients only those are known that stay.
            Some((hello, _, Ok(()))) if hello.kind == PeerKind::Client => {}
            Some((hello, proven, Ok(()))) => {
                // Another one may have come in between.
                if actor.seat.node().believe(&hello, &proven).is_ok() {
                    actor.seat.node().remoting().book().learn(hello, &proven);
                }
            }
            Some((hello, _, Err(error))) => {
                actor.publish_refusal(Some(hello.node.address), &error.to_string());
            }
            None => actor.publish_refusal(None, &MeetError::TooSlow.to_string()),
        }));
    }
}

impl TransportActor {
    fn our_hello(&self, met: &Met) -> Hello {
        let ends = LaneEnds { from: self.seat.seat(), to: met.hello.lane.from };
        let (node, kind) = (self.seat.node(), self.seat.node().kind_in_answer(&met.hello));
        node.hello(ends, AttemptId::default(), (Some(met.hello.node.id), kind))
    }

    fn has_room_for(&self, met: &Met) -> bool {
        let node = self.seat.node();
        let has_room = node.remoting().book().has_room_for(&met.hello, node.settings().remote.clients);
        if !has_room {
            metrics::counter!("archipelago_clients_refused_total").increment(1);
        }
        has_room
    }

    /// Nothing is kept of a peer that does not fit: it could say that it is anybody, at any address.
    fn turn_away(&self, met: Met, refusal: Refusal, greeting: OwnedSemaphorePermit, ctx: &mut Context<Self>) {
        tracing::warn!(peer = %met.hello.node.id, %refusal, "a peer does not fit");
        self.publish_refusal(Some(met.hello.node.address.clone()), &refusal.to_string());
        let told = self.answer(greeting, async move { handshake::turn_away(met, &refusal).await });
        ctx.spawn(told.into_actor(self).map(|_, _, _| ()));
    }
}

impl std::fmt::Debug for TransportActor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TransportActor").field("seat", &self.seat.seat()).finish_non_exhaustive()
    }
}

impl Actor for TransportActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        self.accept_next(ctx);
    }
}

// ---- handlers ----

impl Handler<Heard> for TransportActor {
    type Result = ();

    fn handle(&mut self, Heard(heard, greeting): Heard, ctx: &mut Context<Self>) {
        let heard = heard.map(|met| (self.seat.node().believe(&met.hello, &met.connection.peer), met));
        match heard {
            Ok((Err(refusal), met)) => self.turn_away(met, refusal, greeting, ctx),
            Ok((Ok(()), met)) if !self.has_room_for(&met) => {
                self.turn_away(met, RefusalReason::Clients.into(), greeting, ctx);
            }
            Ok((Ok(()), met)) if met.hello.attempt == AttemptId::default() => {
                self.answer_probe(met, greeting, ctx);
            }
            Ok((Ok(()), met)) => {
                if let Err(refusal) = negotiate(&self.our_hello(&met), &met.hello) {
                    return self.turn_away(met, refusal, greeting, ctx);
                }
                let peer = self.seat.node().remoting().book().learn(met.hello.clone(), &met.connection.peer);
                let link = self.seat.link_to(&peer, met.hello.lane.from);
                link.actor.do_send(Called(met));
            }
            Err(error) => {
                tracing::warn!(seat = %self.seat.seat(), %error, "a handshake failed");
                self.publish_refusal(None, &error.to_string());
            }
        }
    }
}

impl Handler<MeetAt> for TransportActor {
    type Result = ResponseFuture<Result<Arc<Peer>, String>>;

    fn handle(&mut self, MeetAt(address): MeetAt, _: &mut Context<Self>) -> Self::Result {
        let seat = Rc::clone(&self.seat);
        Box::pin(async move {
            let met = meet(&seat, &address).await;
            match met {
                Ok(met) if met.hello.kind == PeerKind::Client => Err("a light client is there".to_owned()),
                Ok(met) => {
                    let peer = seat.node().remoting().book().learn(met.hello.clone(), &met.connection.peer);
                    seat.node().remoting().book().met_at(address, &peer);
                    // From now on the link stays connected by itself.
                    seat.lane_to(&peer, Seat::Control);
                    Ok(peer)
                }
                Err(error) => {
                    let refused = Event::PeerRefused { address: Some(address), reason: error.to_string() };
                    seat.node().events().publish(refused);
                    Err(error.to_string())
                }
            }
        })
    }
}

impl Handler<Ask> for TransportActor {
    type Result = ();

    fn handle(&mut self, ask: Ask, _: &mut Context<Self>) {
        if ask.answer.is_closed() {
            return;
        }
        let lane = self.seat.lane_to(&ask.peer, Seat::Control);
        let deadline = self.seat.node().env().now() + ask.timeout;
        let waiter = Waiter::Other(Box::new(RequestWaiter(ask.answer)));
        let asked = lane.ask::<Refused>(deadline, waiter, |out, call| {
            let (ttl, service) = (ask.timeout, ask.service);
            Frame::Service { call, ttl, service, payload: &ask.payload }.encode(out);
            Ok(())
        });
        if let Err((waiter, error)) = asked {
            waiter.fail(CallError::NoRoute { reason: error.to_string().into() });
        }
        self.seat.call_pending();
    }
}

impl Handler<LookAtLanes> for TransportActor {
    type Result = MessageResult<LookAtLanes>;

    fn handle(&mut self, _: LookAtLanes, _: &mut Context<Self>) -> Self::Result {
        MessageResult(self.seat.look_at_lanes())
    }
}

impl Handler<PartFrom> for TransportActor {
    type Result = ();

    fn handle(&mut self, PartFrom { gone, at_once }: PartFrom, _: &mut Context<Self>) {
        self.seat.part_from(gone, at_once);
    }
}

/// Diallers of one arbiter that may be between their first word and ours at once.
const MOST_GREETINGS: usize = 256;
const TOO_MANY: &str = "too many peers introduce themselves at once";

/// Asks who is at `address`.
async fn meet(seat: &Rc<SeatLocal>, address: &NodeAddress) -> Result<Met, MeetError> {
    let node = seat.node();
    let limit = node.settings().remote.handshake_limit;
    let lane = LaneEnds { from: Seat::Control, to: Seat::Control };
    let ours = node.hello(lane, AttemptId::default(), (None, node.kind_in_probe()));
    let dialled = within(node.env(), limit, seat.endpoint().dial(address)).await;
    let connection = dialled.ok_or(MeetError::TooSlow)??;
    let met = handshake::introduce(node.env(), limit, connection, &ours).await?;
    // One of our own datacenter is a member, and has to fit as such.
    let kind = node.kind_towards(&met.hello.datacenter);
    negotiate(&Hello { kind, ..ours }, &met.hello).map_err(MeetError::Refused)?;
    handshake::believed(node, met)
}
