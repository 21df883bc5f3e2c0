//! Which messages a named actor takes from other nodes, found by their number on the wire.

use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use archipelago_protocol::call::{CallError, UnknownMessage};
use archipelago_protocol::identity::ActorPath;
use archipelago_protocol::message::{CodecId, Envelope, MessageFlags, WireId};
use archipelago_protocol::time::Millis;

use super::job::Body;
use super::{Arrival, Begun, Door, NamedHead, TypedBody};
use crate::arbiter::ArbiterLocal;
use crate::call::CallScope;
use crate::env::COARSE_LAG;
use crate::message::{AcceptedBy, NamedActor, RemoteMessage};
use crate::payload;
use crate::refs::decoding;
use crate::remote::LaneWay;

/// The messages of one type of named actor. `#[derive(NamedActor)]` fills it.
pub struct NamedTable<A: NamedActor> {
    by_id: BTreeMap<WireId, Entry<A>>,
}

/// How to take one message.
struct Entry<A: NamedActor> {
    name: &'static str,
    arrive: Arrive<A>,
}

/// Takes a message that came from another node, or gives it back with the reason.
type Arrive<A> = fn(&Arc<Door<A>>, Arrival, &Rc<ArbiterLocal>) -> Result<(), Box<(Arrival, CallError)>>;

impl<A: NamedActor> NamedTable<A> {
    pub(super) fn of_actor() -> Self {
        let mut table = Self { by_id: BTreeMap::new() };
        A::messages(&mut table);
        table
    }

    /// Adds a message.
    pub fn add<M>(&mut self)
    where
        M: AcceptedBy<A>,
    {
        self.by_id.insert(M::WIRE_ID, Entry { name: M::NAME, arrive: arrive::<A, M> });
    }

    pub(super) fn arrive(
        &self,
        door: &Arc<Door<A>>,
        arrival: Arrival,
        on: &Rc<ArbiterLocal>,
    ) -> Result<(), Box<(Arrival, CallError)>> {
        match self.by_id.get(&arrival.envelope.message) {
            Some(entry) => (entry.arrive)(door, arrival, on),
            None => {
                let unknown = unknown_message(&arrival);
                Err(Box::new((arrival, unknown)))
            }
        }
    }
}

fn unknown_message(arrival: &Arrival) -> CallError {
    let (kind, message) = (arrival.path.to_uri().into(), name_of(&arrival.envelope).into());
    CallError::UnknownMessage(Box::new(UnknownMessage { kind, message }))
}

/// The name of the message in an envelope, or its number.
pub(crate) fn name_of(envelope: &Envelope) -> String {
    envelope.type_hint.as_ref().map_or_else(|| envelope.message.to_string(), |hint| hint.as_str().to_owned())
}

fn arrive<A, M>(
    door: &Arc<Door<A>>,
    arrival: Arrival,
    on: &Rc<ArbiterLocal>,
) -> Result<(), Box<(Arrival, CallError)>>
where
    A: NamedActor,
    M: AcceptedBy<A>,
{
    match read::<M>(&arrival, on) {
        Ok((message, codec)) => {
            take(door, message, codec, arrival, on);
            Ok(())
        }
        Err(error) => Err(Box::new((arrival, error))),
    }
}

fn read<M: RemoteMessage>(arrival: &Arrival, on: &Rc<ArbiterLocal>) -> Result<(M, CodecId), CallError> {
    let Arrival { envelope, .. } = arrival;
    on.may_enter(!envelope.chain.is_empty())?;
    if (envelope.flags | M::FLAGS).contains(MessageFlags::IS_LOCAL_ONLY) {
        return Err(CallError::NotLocal);
    }
    let codec = envelope.codec;
    let message = decoding(on.node(), || payload::read::<M::Codec, M>(codec, &envelope.payload));
    let message = message.map_err(|error| CallError::Codec {
        reason: format!("{}: {error}", M::NAME).into(),
        started: false,
    })?;
    Ok((message, codec))
}

/// Puts a message through the door; its reply goes back over the connection it came by.
fn take<A, M>(door: &Arc<Door<A>>, message: M, codec: CodecId, arrival: Arrival, on: &Rc<ArbiterLocal>)
where
    A: NamedActor,
    M: AcceptedBy<A>,
{
    let Arrival { envelope, path, way_back } = arrival;
    let mut head = head_of(&envelope, path, on);
    match way_back {
        Some(way_back) if way_back.asks() => ask(door, message, head, (codec, way_back), on),
        way_back => {
            // From another node come as many as the window of the connection lets in: then the sender has to wait.
            let bound = if way_back.is_some() { usize::MAX } else { on.node().settings().inbox };
            head.held = way_back.map(LaneWay::into_held);
            refuse_if(door.push(Box::new(TypedBody::tell(message, head)), bound));
        }
    }
}

fn ask<A, M>(
    door: &Arc<Door<A>>,
    message: M,
    head: NamedHead,
    (codec, way_back): (CodecId, LaneWay),
    on: &Rc<ArbiterLocal>,
) where
    A: NamedActor,
    M: AcceptedBy<A>,
{
    let Some(call) = way_back.call() else { return };
    let lane = way_back.lane_index();
    let ticket = on.named_calls().open(lane, call);
    let (body, begins) = TypedBody::ask(message, head, Arc::clone(&ticket));
    on.job_accepted();
    let local = Rc::clone(on);
    on.node().env().spawn(Box::pin(async move {
        let answer = Begun::answer(begins).await;
        local.named_calls().close(lane, call, &ticket);
        match answer {
            Ok(reply) => way_back.reply::<M::Codec, _>(codec, reply, &local),
            Err(error) => way_back.fail(error, &local),
        }
        local.job_over();
    }));
    refuse_if(door.push(Box::new(body), on.node().settings().inbox));
}

fn refuse_if<A: NamedActor>(pushed: Result<(), (Box<dyn Body<A>>, CallError)>) {
    if let Err((body, error)) = pushed {
        body.refuse(error);
    }
}

fn head_of(envelope: &Envelope, path: ActorPath, on: &ArbiterLocal) -> NamedHead {
    let deadline = envelope.ttl().map_or(Millis::MAX, |ttl| on.coarse() + COARSE_LAG + ttl);
    let brings = !envelope.chain.is_empty() || envelope.trace.is_some();
    let scope = brings.then(|| {
        let limit = (deadline < Millis::MAX).then_some(deadline);
        Arc::new(CallScope { deadline: limit, trace: envelope.trace, chain: envelope.chain })
    });
    NamedHead { node: Arc::clone(on.node()), path, deadline, scope, held: None }
}

impl<A: NamedActor> fmt::Debug for NamedTable<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.by_id.values().map(|entry| entry.name)).finish()
    }
}
