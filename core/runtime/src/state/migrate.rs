//! What an actor says about the state that goes along when its shard moves.

use std::panic::{AssertUnwindSafe, catch_unwind};

use archipelago_protocol::handoff::StateBytes;
use archipelago_protocol::message::Codec;
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::message::VirtualActor;

/// An actor whose state in memory goes along when its shard moves to another node.
///
/// It declares `#[virtual_actor(migrate)]` and implements this. When the shard moves, by order, for balance or because its node
/// stops, the state is taken after the last handler and the call of `on_deactivate`, and the activation on the other node
/// gets it before `on_activate`. If the shard stays after all, the next activation here gets it.
///
/// This is a convenience and no promise: a crash, a shard with more than 64 MiB of state, a target that does not answer within a
/// second, and every other end of an activation start the actor without it. What must not be lost is for
/// [`Persistent`](super::Persistent); an actor may be both, and then gets the stored state first and this one after it.
///
/// The state travels as JSON, so nodes of two versions understand each other if fields are added with `#[serde(default)]`; for
/// other changes raise [`VERSION`](Self::VERSION), and the actor starts without it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no state that goes along",
    note = "`migrate` was given to `#[virtual_actor(..)]`: implement `Migrate` for `{Self}`, or remove the word"
)]
pub trait Migrate: VirtualActor {
    /// What goes along.
    type Carried: Serialize + DeserializeOwned;

    /// The number of its layout.
    const VERSION: u32 = 1;

    /// The state to send; `None` if there is nothing to send. The instance ends after this.
    fn dehydrate(&mut self) -> Option<Self::Carried>;

    /// Takes the state in. Not called if none came along.
    fn rehydrate(&mut self, state: Self::Carried);
}

/// A state as bytes, with the number of its layout.
pub(crate) type Packed = (u32, Bytes);

/// How the states of actors of type `A` go along. `#[virtual_actor(migrate)]` makes it.
#[derive(Debug)]
pub struct Migration<A> {
    pub(crate) dehydrate: fn(&mut A) -> Result<Option<Packed>, NotCarried>,
    pub(crate) rehydrate: fn(&mut A, &StateBytes) -> Result<(), NotCarried>,
}

impl<A: Migrate> Migration<A> {
    /// That of an actor with state that goes along.
    pub const fn of_actor() -> Self {
        Self { dehydrate: dehydrate::<A>, rehydrate: rehydrate::<A> }
    }
}

/// Why a state did not go along.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotCarried {
    #[error("dehydrate() panicked")]
    DehydratePanicked,
    #[error("the state cannot be written: {0}")]
    Unwritable(String),
    #[error("the state is of version {found}, and this actor reads {expected}")]
    OtherVersion { found: u32, expected: u32 },
    #[error("the state cannot be read: {0}")]
    Unreadable(String),
    #[error("rehydrate() panicked")]
    RehydratePanicked,
    #[error("there is no room for more states that wait")]
    NoRoom,
}

impl NotCarried {
    /// Whether the actor may have taken in a part of it.
    pub(crate) const fn is_half_done(&self) -> bool {
        matches!(self, Self::RehydratePanicked)
    }

    /// As a label of a metric.
    pub(crate) const fn label(&self) -> &'static str {
        match self {
            Self::DehydratePanicked | Self::RehydratePanicked => "panicked",
            Self::Unwritable(_) => "unwritable",
            Self::OtherVersion { .. } => "other_version",
            Self::Unreadable(_) => "unreadable",
            Self::NoRoom => "no_room",
        }
    }
}

fn dehydrate<A: Migrate>(actor: &mut A) -> Result<Option<(u32, Bytes)>, NotCarried> {
    // An actor that goes must go on going, whatever its own code does.
    let taken = catch_unwind(AssertUnwindSafe(|| actor.dehydrate()));
    let Some(state) = taken.map_err(|_| NotCarried::DehydratePanicked)? else { return Ok(None) };
    match Codec::Json.encode(&state) {
        Ok(bytes) => Ok(Some((A::VERSION, bytes.into()))),
        Err(error) => Err(NotCarried::Unwritable(error.to_string())),
    }
}

fn rehydrate<A: Migrate>(actor: &mut A, carried: &StateBytes) -> Result<(), NotCarried> {
    if carried.version != A::VERSION {
        return Err(NotCarried::OtherVersion { found: carried.version, expected: A::VERSION });
    }
    let decoded = Codec::Json.decode(&carried.bytes);
    let state = decoded.map_err(|error| NotCarried::Unreadable(error.to_string()))?;
    let taken = catch_unwind(AssertUnwindSafe(|| actor.rehydrate(state)));
    taken.map_err(|_| NotCarried::RehydratePanicked)
}
