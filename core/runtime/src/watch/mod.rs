//! Watching actors: being told when an activation ends, a named actor stops, or the node they are on goes. Every decision
//! is [`WatchBook`]'s.
//!
//! Whoever watches an actor of another node asks that node over the control lane to tell, and is told by it; the end of that
//! node's membership or session counts as the end of everything on it.

mod here;
mod there;

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use archipelago_protocol::call::{CallError, Queue};
use archipelago_protocol::identity::NodeId;
use archipelago_protocol::watch::{OwnWatch, Termination, TooManyWatches, WatchBook, WatchId};
use metrics::gauge;
use tokio::sync::oneshot;

pub(crate) use here::Watchers;
pub(crate) use there::{WatchWord, hear};

use crate::node::NodeShared;

/// What is watched.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) enum WatchTarget {
    /// A virtual actor, by kind and key.
    Actor(String, String),
    /// A named one, by its path without a node.
    Named(String),
}

/// How a watch begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) enum Begun {
    /// It is watched; the end will be told.
    Watching,
    /// There is nothing to watch.
    NotActive,
    /// Its shard is not served on the node that was asked.
    NotHere,
}

type Waiter = oneshot::Sender<Termination>;

/// The watches of one life of a node.
pub(crate) struct Watches(Mutex<WatchBook<Waiter, oneshot::Sender<()>>>);

impl Watches {
    pub(crate) fn new(bound: usize) -> Self {
        Self(Mutex::new(WatchBook::new(bound)))
    }

    /// A node is gone for ever.
    pub(crate) fn node_gone(&self, node: NodeId) {
        let waiters = self.change(|book| book.node_gone(node));
        tell_all(waiters, Termination::NodeGone { node });
    }

    /// This life of the node, `node`, is over.
    pub(crate) fn close(&self, node: NodeId) {
        let waiters = self.change(WatchBook::close);
        tell_all(waiters, Termination::NodeGone { node });
    }

    /// Ends a watch of this node because `by` says so: this node if none.
    fn end(&self, id: WatchId, by: Option<NodeId>, how: Termination) {
        let waiter = self.change(|book| book.end(id, by));
        tell_all(waiter, how);
    }

    fn change<T>(&self, change: impl FnOnce(&mut WatchBook<Waiter, oneshot::Sender<()>>) -> T) -> T {
        let mut book = self.lock();
        let changed = change(&mut book);
        gauge!("archipelago_watches").set(book.len() as f64);
        changed
    }

    fn lock(&self) -> MutexGuard<'_, WatchBook<Waiter, oneshot::Sender<()>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn tell_all(waiters: impl IntoIterator<Item = Waiter>, how: Termination) {
    for waiter in waiters {
        // It may have been dropped.
        let _ = waiter.send(how);
    }
}

fn too_many(full: TooManyWatches) -> CallError {
    CallError::Overloaded { queue: Queue::Watches, bound: u32::try_from(full.bound).unwrap_or(u32::MAX) }
}

/// A watch on one activation, or on one registration of a named actor: a future that is ready, once, with how it ended.
///
/// It keeps nothing alive and activates nothing. Dropping it ends it. It belongs to the present life of its node: if that
/// node loses its session, the watch ends with [`Termination::NodeGone`] and the node's own id.
#[must_use = "nobody is told otherwise"]
pub struct Watch {
    id: WatchId,
    node: Arc<NodeShared>,
    told: oneshot::Receiver<Termination>,
}

impl Watch {
    /// Begins to watch. Once this returns, the end cannot be missed.
    pub(crate) async fn begin(
        node: &Arc<NodeShared>,
        target: WatchTarget,
        at: At,
    ) -> Result<Self, CallError> {
        let (waiter, told) = oneshot::channel();
        let id = node.watches().change(|book| book.open(waiter)).map_err(too_many)?;
        let watch = Self { id, node: Arc::clone(node), told };
        let begun =
            crate::env::within(node.env(), node.settings().call_timeout, there::place(node, id, target, at));
        match begun.await {
            Some(Ok(Begun::Watching)) => Ok(watch),
            Some(Ok(Begun::NotActive)) => {
                let waiter = node.watches().change(|book| book.give_up(id)).map(|own| own.waiter);
                tell_all(waiter, Termination::NotActive);
                Ok(watch)
            }
            Some(Ok(Begun::NotHere)) => {
                Err(CallError::NoRoute { reason: "nobody says who serves it".into() })
            }
            Some(Err(error)) => Err(error),
            None => Err(CallError::Timeout { started: false }),
        }
    }
}

/// Where what is watched may be.
pub(crate) enum At {
    /// Wherever its shard is served.
    Shard(crate::remote::Shard),
    /// On this node.
    Here,
    /// On the node at this address.
    Address(archipelago_protocol::identity::NodeAddress),
}

impl Future for Watch {
    type Output = Termination;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Termination> {
        let told = Pin::new(&mut self.told).poll(cx);
        // Nobody can tell any more: the life of the node is over.
        told.map(|how| how.unwrap_or(Termination::NodeGone { node: self.node.id() }))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let given_up = self.node.watches().change(|book| book.give_up(self.id));
        if let Some(OwnWatch { asked: Some(node), .. }) = given_up {
            there::unwatch(&self.node, node, self.id);
        }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("id", &self.id).finish_non_exhaustive()
    }
}
