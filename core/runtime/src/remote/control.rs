//! What comes over the lanes between control arbiters: requests to the node itself.

use std::collections::BTreeMap;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use archipelago_protocol::call::{CallError, Queue};
use archipelago_protocol::identity::{CorrelationId, NodeId};
use archipelago_protocol::link::{Frame, Refused};
use archipelago_protocol::message::{Codec, CodecId};
use archipelago_protocol::time::Millis;
use bytes::Bytes;
use futures_core::future::BoxFuture;
use tokio::sync::oneshot;

use super::drive::{FrameSink, Violation};
use super::incoming::Incoming;
use super::inquiries::{self, is_for_clients, is_for_members, is_inquiry};
use super::lane::Lane;
use super::large_in::Brought;
use super::requests::{NotLetIn, Requests};
use super::seat::SeatLocal;
use super::unanswered::Unanswered;
use super::waiter::{Payload, Waiting};
use crate::arbiter::not_serving;
use crate::env::within;
use crate::node::NodeShared;

/// Answers requests of other nodes, away from all actors: for what nodes need of each other.
pub trait Service: Send + Sync + 'static {
    /// Answers one request of node `from`. Dropped when its sender waits no longer.
    fn serve(&self, from: NodeId, request: Bytes) -> BoxFuture<'static, Result<Bytes, CallError>>;
}

/// The services of a node, by number.
pub(crate) type Services = BTreeMap<u16, Arc<dyn Service>>;

/// Takes what comes to the control arbiter.
pub(crate) struct ControlSink {
    node: Arc<NodeShared>,
    seat: std::cell::OnceCell<Weak<SeatLocal>>,
    requests: Requests,
}

impl ControlSink {
    pub(crate) fn new(node: Arc<NodeShared>) -> Rc<Self> {
        Rc::new(Self { node, seat: std::cell::OnceCell::new(), requests: Requests::default() })
    }

    /// Tells the sink whose frames it takes.
    pub(crate) fn sits_at(&self, seat: &Rc<SeatLocal>) {
        // Set once, when the seat opens.
        let _ = self.seat.set(Rc::downgrade(seat));
    }

    fn serve(&self, lane: &Rc<Lane>, incoming: &Arc<Incoming>, request: Request) -> Result<(), Violation> {
        if lane.peer().is_client() && !is_for_clients(request.service) {
            let reason = "clients are not served this".into();
            answer(lane, incoming, request.call, Err(CallError::NoRoute { reason }));
            return Ok(());
        }
        if is_for_members(request.service) && self.node.is_abroad(lane.peer()) {
            let refused = not_serving("only members of its own datacenter may ask this");
            answer(lane, incoming, request.call, Err(refused));
            return Ok(());
        }
        if is_inquiry(request.service) {
            let (node, from) = (Arc::clone(&self.node), lane.peer().id());
            let (service, payload) = (request.service, request.payload.clone());
            return self.answer_with(lane, incoming, request, || async move {
                inquiries::answer(&node, from, service, payload).await
            });
        }
        let Some(service) = self.node.services().get(&request.service).cloned() else {
            let reason = format!("the node has no service {}", request.service);
            answer(lane, incoming, request.call, Err(CallError::NoRoute { reason: reason.into() }));
            return Ok(());
        };
        let (from, payload) = (lane.peer().id(), request.payload.clone());
        self.answer_with(lane, incoming, request, || {
            let served = service.serve(from, payload);
            async move { Some(served.await) }
        })
    }

    /// Answers a request with what comes of `work`, unless its time is over or its sender waits no longer: then the work is
    /// dropped. One that would be too much is refused.
    ///
    /// # Errors
    ///
    /// Two requests of the connection have one number.
    fn answer_with<F: Future<Output = Option<Result<Bytes, CallError>>> + 'static>(
        &self,
        lane: &Rc<Lane>,
        incoming: &Arc<Incoming>,
        request: Request,
        work: impl FnOnce() -> F,
    ) -> Result<(), Violation> {
        let begun = match self.requests.begin(incoming.connection(), request.call, request.payload.len()) {
            Ok(begun) => begun,
            Err(NotLetIn::SameNumber) => {
                return Err(Violation::Meaning("two requests have one number".to_owned()));
            }
            Err(NotLetIn::TooMany(bound) | NotLetIn::TooHeavy(bound)) => {
                let bound = u32::try_from(bound).unwrap_or(u32::MAX);
                let full = CallError::Overloaded { queue: Queue::Lane, bound };
                answer(lane, incoming, request.call, Err(full));
                return Ok(());
            }
        };
        let (lane, incoming, node) = (Rc::clone(lane), Arc::clone(incoming), Arc::clone(&self.node));
        let work = work();
        self.node.env().spawn(Box::pin(async move {
            let work = within(node.env(), request.ttl, work);
            let answered = begun.unless_cancelled(work).await;
            if let Some(answered) = answered.flatten().flatten() {
                answer(&lane, &incoming, request.call, answered);
            }
        }));
        Ok(())
    }
}

struct Request {
    call: CorrelationId,
    ttl: Millis,
    service: u16,
    payload: Bytes,
}

impl FrameSink for ControlSink {
    fn take(
        &self,
        lane: &Rc<Lane>,
        incoming: &Arc<Incoming>,
        frame: &[u8],
        _: Millis,
    ) -> Result<(), Violation> {
        let frame = Frame::decode(frame)?;
        let Some(seat) = self.seat.get().and_then(Weak::upgrade) else { return Ok(()) };
        match frame {
            Frame::Service { call, ttl, service, payload } => {
                let payload = Bytes::copy_from_slice(payload);
                self.serve(lane, incoming, Request { call, ttl, service, payload })?;
            }
            Frame::Reply { call, codec, payload } => {
                lane.end_with_reply(call, codec, Payload::Small(payload), seat.node())
            }
            Frame::Fail { call, error } => lane.end_with_failure(call, error),
            Frame::Cancel { call } => self.requests.cancel(incoming.connection(), call),
            Frame::Void => {}
            other => {
                return Err(Violation::Meaning(format!("not for a control arbiter: {}", name_of(&other))));
            }
        }
        Ok(())
    }

    fn take_large(&self, _: &Rc<Lane>, _: &Arc<Incoming>, _: u64, _: Brought) -> Result<(), Violation> {
        Err(Violation::Meaning("a control arbiter takes no large messages".to_owned()))
    }

    /// What was not given to the connection waits for the next one.
    fn lost(&self, lane: &Rc<Lane>, incoming: &Incoming) {
        self.requests.connection_lost(incoming.connection());
        self.end_given(lane);
    }
}

impl ControlSink {
    fn end_given(&self, lane: &Lane) {
        let now = self.node.env().now();
        let unknown = lane.outbox().borrow_mut().lost(now);
        for waiter in unknown {
            waiter.fail(CallError::ConnectionLost { node: lane.peer().id() });
        }
    }
}

fn answer(lane: &Lane, incoming: &Incoming, call: CorrelationId, answered: Result<Bytes, CallError>) {
    let written = lane.answer::<Refused>(incoming, |out| {
        match &answered {
            Ok(payload) => Frame::Reply { call, codec: RAW, payload }.encode(out),
            Err(error) => Frame::Fail { call, error: error.clone() }.encode(out),
        }
        Ok(())
    });
    if let Err(error) = written {
        tracing::warn!(%error, "an answer of a service is too large");
        let error = CallError::Codec { reason: error.to_string().into(), started: true };
        lane.say(&Frame::Fail { call, error });
    }
}

fn name_of(frame: &Frame<'_>) -> &'static str {
    match frame {
        Frame::Ask(_) => "ask",
        Frame::Tell(_) => "tell",
        Frame::Return(_) => "return",
        Frame::Envelope(_) => "envelope",
        _ => "a frame about shards",
    }
}

/// Waits for the answer to a request to another node's service.
pub(super) struct RequestWaiter(pub(super) oneshot::Sender<Result<Bytes, Unanswered>>);

impl Waiting for RequestWaiter {
    fn reply(self: Box<Self>, _: CodecId, payload: Payload<'_>, _: &Arc<NodeShared>) {
        let _ = self.0.send(Ok(payload.into_bytes()));
    }

    fn fail(self: Box<Self>, error: CallError) {
        let _ = self.0.send(Err(Unanswered::by_us(error)));
    }

    fn fail_there(self: Box<Self>, error: CallError) {
        let _ = self.0.send(Err(Unanswered::Refused(error)));
    }

    fn is_abandoned(&self) -> bool {
        self.0.is_closed()
    }
}

/// Services speak bytes; the codec's number has no meaning for them.
const RAW: CodecId = Codec::Postcard.id();
