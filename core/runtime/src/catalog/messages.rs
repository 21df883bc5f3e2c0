//! Which messages a kind takes, found by their number on the wire.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::fmt;

use archipelago_protocol::call::CallError;
use archipelago_protocol::message::{CodecId, MessageFlags, WireId};

use super::job::{Job, JobHead, Queued, TypedJob, WayBack};
use crate::message::{AcceptedBy, VirtualActor};
use crate::node::MessageEntry;
use crate::payload::read;

/// The messages of one kind. `#[derive(VirtualActor)]` fills it.
pub struct MessageTable<A: VirtualActor> {
    /// In the order of the declaration, which is the order on the wire.
    entries: Vec<Entry<A>>,
    by_id: BTreeMap<WireId, usize>,
    listed: Vec<MessageEntry>,
}

/// How to make a job of one message for actors of type `A`.
pub(crate) struct Entry<A: VirtualActor> {
    pub(crate) name: &'static str,
    pub(crate) flags: MessageFlags,
    pub(crate) type_id: TypeId,
    decode: DecodeJob<A>,
    unwrap: UnwrapJob<A>,
}

pub(super) type DecodeJob<A> =
    fn(JobHead, &[u8], CodecId, &mut WayBack, Option<Queued<A>>) -> Result<Queued<A>, CallError>;
type UnwrapJob<A> = fn(Box<dyn Any + Send>) -> Option<Queued<A>>;

impl<A: VirtualActor> MessageTable<A> {
    pub(crate) fn of_actor() -> Self {
        let mut table = Self { entries: Vec::new(), by_id: BTreeMap::new(), listed: Vec::new() };
        A::messages(&mut table);
        table
    }

    /// Adds a message.
    pub fn add<M>(&mut self)
    where
        M: AcceptedBy<A>,
    {
        let entry = Entry {
            name: M::NAME,
            flags: M::FLAGS,
            type_id: TypeId::of::<M>(),
            decode: decode::<A, M>,
            unwrap: unwrap::<A, M>,
        };
        self.by_id.insert(M::WIRE_ID, self.entries.len());
        self.entries.push(entry);
        self.listed.push(MessageEntry { id: M::WIRE_ID, name: M::NAME, type_id: TypeId::of::<M>() });
    }

    /// Every message that was added, also if two have the same number.
    pub(crate) fn entries(&self) -> Vec<MessageEntry> {
        self.listed.clone()
    }

    /// The types of the messages, with their names.
    pub(super) fn types(&self) -> impl Iterator<Item = (TypeId, &'static str)> + '_ {
        self.entries.iter().map(|entry| (entry.type_id, entry.name))
    }

    pub(crate) fn get(&self, id: WireId) -> Option<&Entry<A>> {
        self.at(*self.by_id.get(&id)?)
    }

    /// The place of a message in the list, which is its number on the wire.
    pub(crate) fn place_of(&self, id: WireId) -> Option<u16> {
        u16::try_from(*self.by_id.get(&id)?).ok()
    }

    /// The message with this place in the list.
    pub(crate) fn at(&self, place: usize) -> Option<&Entry<A>> {
        self.entries.get(place)
    }
}

impl<A: VirtualActor> Entry<A> {
    /// Makes a job of an encoded message; its reply is encoded the same way. Takes the way back only if it succeeds. The job is
    /// made in the memory of `kept`, if that was of the same message.
    pub(crate) fn decode(
        &self,
        head: JobHead,
        bytes: &[u8],
        codec: CodecId,
        way_back: &mut WayBack,
        kept: Option<Queued<A>>,
    ) -> Result<Queued<A>, CallError> {
        (self.decode)(head, bytes, codec, way_back, kept)
    }

    /// What makes a job of an encoded message, for use on another thread.
    pub(super) const fn decoder(&self) -> DecodeJob<A> {
        self.decode
    }

    /// Makes a job of a boxed [`Job`] of this message.
    pub(crate) fn unwrap(&self, job: Box<dyn Any + Send>) -> Option<Queued<A>> {
        (self.unwrap)(job)
    }
}

fn decode<A, M>(
    head: JobHead,
    bytes: &[u8],
    codec: CodecId,
    way_back: &mut WayBack,
    kept: Option<Queued<A>>,
) -> Result<Queued<A>, CallError>
where
    M: AcceptedBy<A>,
    A: VirtualActor,
{
    let message: M = read::<M::Codec, M>(codec, bytes).map_err(|error| CallError::Codec {
        reason: format!("{}: {error}", M::NAME).into(),
        started: false,
    })?;
    Ok(TypedJob::within(kept, head, message, way_back.take(codec)))
}

fn unwrap<A, M>(job: Box<dyn Any + Send>) -> Option<Queued<A>>
where
    M: AcceptedBy<A>,
    A: VirtualActor,
{
    job.downcast::<Job<TypedJob<M>>>().ok().map(|job| job as Queued<A>)
}

impl<A: VirtualActor> fmt::Debug for MessageTable<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.listed.iter().map(|message| message.name)).finish()
    }
}
