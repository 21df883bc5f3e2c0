//! What an actor says about the state that it keeps.

use std::panic::{AssertUnwindSafe, catch_unwind};

use archipelago_protocol::contract::{Schema, StoredState};
use archipelago_protocol::message::Codec;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::StateError;
use crate::message::VirtualActor;

/// An actor whose state outlives its activations.
///
/// It declares `#[virtual_actor(persistent)]` and implements this. The state is loaded before `on_activate` and before any
/// message; it is saved when the actor goes (idle, on request, evicted, or with its node), and whenever a handler asks for it
/// with [`Activation::save`](crate::Activation::save). What was not saved is lost when the node crashes, when it loses its
/// session, and when a handler panics.
///
/// The state is stored as JSON, so fields can be added with `#[serde(default)]`; other changes take a new
/// [`VERSION`](Self::VERSION), and [`upgrade`](Self::upgrade) to read the old ones.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no state to keep",
    note = "`persistent` was given to `#[virtual_actor(..)]`: implement `Persistent` for `{Self}`, or remove the word"
)]
pub trait Persistent: VirtualActor {
    /// What is kept.
    type State: Serialize + DeserializeOwned;

    /// The name of the state, 1 to 200 bytes. By default the kind.
    const SCHEMA: &'static str = <Self as VirtualActor>::KIND;

    /// The number of its layout.
    const VERSION: u32 = 1;

    /// The state to keep; `None` if there is nothing to keep: then what is stored is deleted.
    fn state(&self) -> Option<Self::State>;

    /// Takes the stored state in. Not called if nothing is stored.
    fn restore(&mut self, state: Self::State);

    /// Reads a stored state of another name or version.
    ///
    /// # Errors
    ///
    /// [`StateError::UnknownSchema`] by default, or any other: the activation is given up, its callers get the error, and
    /// what is stored stays.
    fn upgrade(stored: &StoredState) -> Result<Self::State, StateError> {
        Err(StateError::UnknownSchema { stored: stored.schema.clone(), expected: schema_of::<Self>() })
    }
}

/// How the states of actors of type `A` become bytes and come back. `#[virtual_actor(persistent)]` makes it.
#[derive(Debug)]
pub struct Persistence<A> {
    pub(crate) take: fn(&A) -> Result<Option<StoredState>, StateError>,
    pub(crate) restore: fn(&mut A, &StoredState) -> Result<(), StateError>,
}

impl<A: Persistent> Persistence<A> {
    /// That of a persistent actor.
    pub const fn of_actor() -> Self {
        Self { take: take::<A>, restore: restore::<A> }
    }
}

fn schema_of<A: Persistent>() -> Schema {
    Schema::new(A::SCHEMA, A::VERSION)
}

fn take<A: Persistent>(actor: &A) -> Result<Option<StoredState>, StateError> {
    let schema = schema_of::<A>();
    // An actor that goes must go on going, whatever its own code does.
    let state = match catch_unwind(AssertUnwindSafe(|| actor.state())) {
        Ok(Some(state)) => state,
        Ok(None) => return Ok(None),
        Err(_) => return Err(StateError::Unwritable { schema, reason: "state() panicked".to_owned() }),
    };
    match Codec::Json.encode(&state) {
        Ok(bytes) => Ok(Some(StoredState { schema, bytes: bytes.into() })),
        Err(error) => Err(StateError::Unwritable { schema, reason: error.to_string() }),
    }
}

fn restore<A: Persistent>(actor: &mut A, stored: &StoredState) -> Result<(), StateError> {
    let schema = schema_of::<A>();
    let state = if stored.schema == schema {
        let decoded = Codec::Json.decode(&stored.bytes);
        decoded.map_err(|error| StateError::Unreadable { schema, reason: error.to_string() })?
    } else {
        A::upgrade(stored)?
    };
    actor.restore(state);
    Ok(())
}
