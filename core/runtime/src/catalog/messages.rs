//! Which messages a kind takes, found by their number on the wire.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use actix::Handler;
use archipelago_protocol::call::CallError;
use archipelago_protocol::message::{Codec, MessageFlags, WireId};
use bytes::Bytes;

use super::job::{JobBody, ReplyTo, TypedJob};
use crate::call::CallCell;
use crate::message::{AcceptedBy, RemoteMessage, VirtualActor};
use crate::node::MessageEntry;

/// The messages of one kind. `#[derive(VirtualActor)]` fills it.
pub struct MessageTable<A: VirtualActor> {
    entries: BTreeMap<WireId, Entry<A>>,
    listed: Vec<MessageEntry>,
}

/// How to make a job of one message for actors of type `A`.
pub(crate) struct Entry<A: VirtualActor> {
    pub(crate) flags: MessageFlags,
    decode: DecodeJob<A>,
    unwrap: UnwrapJob<A>,
}

type DecodeJob<A> = fn(&[u8], Codec, Option<Arc<CallCell<Bytes>>>) -> Result<Box<dyn JobBody<A>>, CallError>;
type UnwrapJob<A> = fn(Box<dyn Any + Send>) -> Option<Box<dyn JobBody<A>>>;

impl<A: VirtualActor> MessageTable<A> {
    pub(crate) fn of_actor() -> Self {
        let mut table = Self { entries: BTreeMap::new(), listed: Vec::new() };
        A::messages(&mut table);
        table
    }

    /// Adds a message.
    pub fn add<M>(&mut self)
    where
        M: AcceptedBy<A>,
        A: Handler<M>,
    {
        let entry = Entry { flags: M::FLAGS, decode: decode::<A, M>, unwrap: unwrap::<A, M> };
        self.entries.insert(M::WIRE_ID, entry);
        self.listed.push(MessageEntry { id: M::WIRE_ID, name: M::NAME, type_id: TypeId::of::<M>() });
    }

    /// Every message that was added, also if two have the same number.
    pub(crate) fn entries(&self) -> Vec<MessageEntry> {
        self.listed.clone()
    }

    pub(crate) fn get(&self, id: WireId) -> Option<&Entry<A>> {
        self.entries.get(&id)
    }
}

impl<A: VirtualActor> Entry<A> {
    /// Makes a job of an encoded message; its reply is encoded the same way.
    pub(crate) fn decode(
        &self,
        bytes: &[u8],
        codec: Codec,
        reply_to: Option<Arc<CallCell<Bytes>>>,
    ) -> Result<Box<dyn JobBody<A>>, CallError> {
        (self.decode)(bytes, codec, reply_to)
    }

    /// Makes a job of a boxed [`TypedJob`] of this message.
    pub(crate) fn unwrap(&self, job: Box<dyn Any + Send>) -> Option<Box<dyn JobBody<A>>> {
        (self.unwrap)(job)
    }
}

fn decode<A, M>(
    bytes: &[u8],
    codec: Codec,
    reply_to: Option<Arc<CallCell<Bytes>>>,
) -> Result<Box<dyn JobBody<A>>, CallError>
where
    M: RemoteMessage,
    A: VirtualActor + Handler<M>,
{
    let message: M = codec
        .decode(bytes)
        .map_err(|error| CallError::Codec { reason: format!("{}: {error}", M::NAME), started: false })?;
    let reply_to = reply_to.map_or(ReplyTo::Nobody, |cell| ReplyTo::Encoded(cell, codec));
    Ok(Box::new(TypedJob { message, reply_to }))
}

fn unwrap<A, M>(job: Box<dyn Any + Send>) -> Option<Box<dyn JobBody<A>>>
where
    M: RemoteMessage,
    A: VirtualActor + Handler<M>,
{
    job.downcast::<TypedJob<M>>().ok().map(|job| job as Box<dyn JobBody<A>>)
}

impl<A: VirtualActor> fmt::Debug for MessageTable<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.listed.iter().map(|message| message.name)).finish()
    }
}
