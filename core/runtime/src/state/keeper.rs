//! The state of one activation: loads it once, and saves it in the order in which it was taken, one write at a time.
//!
//! What is written, and what follows a failure, is decided by [`SaveOrder`] and [`LastSave`].

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use archipelago_protocol::activation::{AfterFailure, LastSave, SaveOrder, SaveStep, SaveTicket};
use archipelago_protocol::contract::{StateStore, StateStoreError, StoredState};
use archipelago_protocol::identity::{ActorId, Generation};
use archipelago_protocol::time::Millis;
use futures_core::future::BoxFuture;
use futures_util::future::{Either, select};
use metrics::counter;
use tokio::sync::Semaphore;

use super::StateError;
use crate::events::Event;
use crate::node::NodeShared;

/// The way of one activation to its stored state.
pub(crate) struct StateKeeper {
    node: Arc<NodeShared>,
    store: Arc<dyn StateStore>,
    actor: ActorId,
    generation: Generation,
    order: Mutex<SaveOrder>,
    /// One write at a time.
    turn: Semaphore,
}

/// A state as it was taken from the actor; `None` if there is nothing to keep.
type Taken = Option<StoredState>;

impl StateKeeper {
    pub(crate) fn new(
        node: &Arc<NodeShared>,
        store: &Arc<dyn StateStore>,
        actor: ActorId,
        generation: Generation,
    ) -> Self {
        let (node, store) = (Arc::clone(node), Arc::clone(store));
        Self { node, store, actor, generation, order: Mutex::default(), turn: Semaphore::new(1) }
    }

    /// Fences whoever owned the actor before, and reads its state.
    pub(crate) async fn load(&self) -> Result<Option<StoredState>, StateError> {
        let loaded = self.store.load(&self.actor, self.generation).await;
        if let Ok(state) = &loaded {
            *self.lock() = SaveOrder::loaded(state.is_some());
        }
        let loaded = loaded.map_err(StateError::from);
        self.count("archipelago_state_loads_total", loaded.as_ref().err());
        loaded
    }

    /// Saves a state that is taken now.
    pub(crate) fn save(self: &Arc<Self>, taken: Result<Taken, StateError>) -> Saving {
        let (ticket, keeper) = (self.lock().take(), Arc::clone(self));
        let limit = self.node.settings().call_timeout;
        Saving(Box::pin(async move {
            let saved = keeper.write(ticket, &taken?, limit).await;
            keeper.count("archipelago_state_saves_total", saved.as_ref().err());
            saved
        }))
    }

    /// Saves the state of the actor that goes, again and again within the budget of a farewell. A failure is told by an event: nobody waits for the outcome.
    pub(crate) async fn save_last(self: Arc<Self>, taken: Result<Taken, StateError>) {
        let ticket = self.lock().take();
        let saved = match taken {
            Ok(state) => self.write_last(ticket, &state).await,
            Err(error) => Err(error),
        };
        self.count("archipelago_state_saves_total", saved.as_ref().err());
        if let Err(error) = saved {
            tracing::error!(actor = %self.actor, %error, "the state of an actor that went was not saved");
            let (actor, reason) = (self.actor.to_string(), error.to_string());
            self.node.events().publish(Event::StateNotSaved { actor, reason });
        }
    }

    /// Whether anything was, or may have been, written that this activation has made.
    pub(crate) fn has_saved(&self) -> bool {
        self.lock().has_written()
    }

    /// Nothing is saved any more: the activation is over.
    pub(crate) fn end(&self) {
        self.lock().end();
    }

    async fn write_last(&self, ticket: SaveTicket, state: &Taken) -> Result<(), StateError> {
        let env = self.node.env();
        let mut last = LastSave::new(env.now(), self.node.settings().deactivate_timeout);
        loop {
            let error = match self.write(ticket, state, last.remaining(env.now())).await {
                Err(StateError::Store(error)) => error,
                ended => return ended,
            };
            match last.failed(env.now(), &error, env.random()) {
                AfterFailure::RetryAfter(wait) => env.sleep(wait).await,
                AfterFailure::GiveUp => return Err(error.into()),
            }
        }
    }

    /// Writes a state when its turn comes, if it is still worth it. No answer within `limit` counts as unknown.
    async fn write(&self, ticket: SaveTicket, state: &Taken, limit: Millis) -> Result<(), StateError> {
        let work = std::pin::pin!(self.write_in_turn(ticket, state));
        match select(work, self.node.env().sleep(limit)).await {
            Either::Left((written, _)) => written,
            Either::Right(_) => Err(unanswered(limit)),
        }
    }

    async fn write_in_turn(&self, ticket: SaveTicket, state: &Taken) -> Result<(), StateError> {
        // Never closed.
        let _turn = self.turn.acquire().await.map_err(|_| StateError::Ended)?;
        let step = self.lock().turn(ticket, state.is_some());
        match step {
            SaveStep::Covered => return Ok(()),
            SaveStep::Ended => return Err(StateError::Ended),
            SaveStep::Write => {}
        }
        match state {
            Some(state) => self.store.save(&self.actor, self.generation, state).await?,
            None => self.store.delete(&self.actor, self.generation).await?,
        }
        self.lock().wrote(ticket);
        Ok(())
    }

    fn count(&self, metric: &'static str, error: Option<&StateError>) {
        let outcome = error.map_or("ok", StateError::label);
        counter!(metric, "kind" => self.actor.kind().as_str().to_owned(), "outcome" => outcome).increment(1);
    }

    fn lock(&self) -> MutexGuard<'_, SaveOrder> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A save under way. The state was taken when it was made; dropped, it may or may not be written.
#[must_use = "a save that is not awaited may not be written"]
pub struct Saving(BoxFuture<'static, Result<(), StateError>>);

impl Saving {
    /// One that fails.
    pub(crate) fn refused(error: StateError) -> Self {
        Self(Box::pin(std::future::ready(Err(error))))
    }

    /// The same, and `fenced` is called if another node has the actor by now.
    pub(crate) fn or_if_fenced(self, fenced: impl FnOnce() + Send + 'static) -> Self {
        Self(Box::pin(async move {
            let saved = self.0.await;
            if saved.as_ref().is_err_and(StateError::is_fenced) {
                fenced();
            }
            saved
        }))
    }
}

impl Future for Saving {
    type Output = Result<(), StateError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(cx)
    }
}

impl fmt::Debug for Saving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Saving")
    }
}

fn unanswered(limit: Millis) -> StateError {
    let source = format!("no answer within {limit}").into();
    StateStoreError::Unknown { backend: "the state store", source }.into()
}
