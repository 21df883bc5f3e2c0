//! Actors that the user started and registered under a path.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use actix::dev::ToEnvelope;
use actix::{Actor, Addr, Handler, MailboxError};
use archipelago_protocol::call::{CallError, Queue};
use archipelago_protocol::identity::{ActorPath, ActorPathError};
use futures_util::future::{Either, select};

use crate::message::AcceptedBy;
use crate::node::{Node, NodeShared};

/// The named actors of a node, by path.
#[derive(Default)]
pub(crate) struct NamedActors {
    by_path: RwLock<BTreeMap<String, Arc<dyn Any + Send + Sync>>>,
}

impl NamedActors {
    fn insert(&self, path: &str, addr: Arc<dyn Any + Send + Sync>) -> bool {
        let mut by_path = self.by_path.write().unwrap_or_else(PoisonError::into_inner);
        if by_path.contains_key(path) {
            return false;
        }
        by_path.insert(path.to_owned(), addr);
        true
    }

    fn remove(&self, path: &str) -> bool {
        self.by_path.write().unwrap_or_else(PoisonError::into_inner).remove(path).is_some()
    }

    fn find<A: Actor>(&self, path: &str) -> Option<Addr<A>> {
        let by_path = self.by_path.read().unwrap_or_else(PoisonError::into_inner);
        by_path.get(path)?.downcast_ref::<Addr<A>>().cloned()
    }

    fn contains(&self, path: &str) -> bool {
        self.by_path.read().unwrap_or_else(PoisonError::into_inner).contains_key(path)
    }
}

/// A named actor could not be registered or found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// The path is not a valid one.
    #[error("invalid path: {0}")]
    Path(#[from] ActorPathError),
    /// An actor is registered there already.
    #[error("an actor is registered at {path} already")]
    Taken {
        /// The path.
        path: String,
    },
    /// An actor of another type is registered there.
    #[error("the actor at {path} is not a {wanted}")]
    OtherType {
        /// The path.
        path: String,
        /// The type asked for.
        wanted: &'static str,
    },
    /// The path is on another node, and this node has no transport.
    #[error("{path} is on another node")]
    Elsewhere {
        /// The path.
        path: String,
    },
}

impl Node {
    /// Registers an actor under a path such as `/greeter`, so that it can be found and addressed by it.
    ///
    /// # Errors
    ///
    /// [`NameError`]: the path is invalid or taken; nothing changed.
    pub fn register<A: Actor>(&self, path: &str, addr: Addr<A>) -> Result<NamedRef<A>, NameError> {
        let path = self.path(path)?;
        if !self.shared().named().insert(path.path(), Arc::new(addr)) {
            return Err(NameError::Taken { path: path.to_uri() });
        }
        Ok(NamedRef { path, node: Arc::clone(self.shared()), actor: std::marker::PhantomData })
    }

    /// Takes a registration back; false if there was none. The actor itself goes on.
    pub fn unregister(&self, path: &str) -> bool {
        self.path(path).is_ok_and(|path| self.shared().named().remove(path.path()))
    }

    /// The actor of type `A` at a path. Whether there is one shows when something is sent.
    ///
    /// # Errors
    ///
    /// [`NameError`]: the path is invalid, or an actor of another type is there.
    pub fn named<A: Actor>(&self, path: &str) -> Result<NamedRef<A>, NameError> {
        self.resolve(&self.path(path)?)
    }

    /// The actor of type `A` at a full address.
    ///
    /// # Errors
    ///
    /// [`NameError`]: the address is on another node, or an actor of another type is there.
    pub fn resolve<A: Actor>(&self, path: &ActorPath) -> Result<NamedRef<A>, NameError> {
        if !path.is_local() || path.system() != self.namespace().as_str() {
            return Err(NameError::Elsewhere { path: path.to_uri() });
        }
        let named = self.shared().named();
        if named.contains(path.path()) && named.find::<A>(path.path()).is_none() {
            return Err(NameError::OtherType { path: path.to_uri(), wanted: std::any::type_name::<A>() });
        }
        Ok(NamedRef { path: path.clone(), node: Arc::clone(self.shared()), actor: std::marker::PhantomData })
    }

    fn path(&self, path: &str) -> Result<ActorPath, ActorPathError> {
        ActorPath::local(self.namespace().as_str(), path)
    }
}

/// An actor registered under a path.
pub struct NamedRef<A> {
    path: ActorPath,
    node: Arc<NodeShared>,
    actor: std::marker::PhantomData<fn() -> A>,
}

impl<A: Actor> NamedRef<A> {
    /// Asks: sends a message and waits for its reply, for as long as the node's `calls.timeout` says.
    ///
    /// # Errors
    ///
    /// [`CallError::NoSuchActor`] if nobody is registered there; the message becomes a dead letter too.
    pub async fn send<M>(&self, message: M) -> Result<M::Result, CallError>
    where
        M: AcceptedBy<A>,
        A: Handler<M>,
        A::Context: ToEnvelope<A, M>,
    {
        let Some(addr) = self.node.named().find::<A>(self.path.path()) else {
            return Err(self.dead::<M>());
        };
        let limit = self.node.env().sleep(self.node.settings().call_timeout);
        match select(std::pin::pin!(addr.send(message)), limit).await {
            Either::Left((Ok(reply), _)) => Ok(reply),
            Either::Left((Err(MailboxError::Closed), _)) => Err(CallError::NoReply),
            Either::Left((Err(MailboxError::Timeout), _)) | Either::Right(_) => {
                Err(CallError::Timeout { started: true })
            }
        }
    }

    /// Tells: sends a message and waits for nothing. If nobody is registered there it becomes a dead letter, which
    /// is no error.
    ///
    /// # Errors
    ///
    /// [`CallError::Overloaded`] if the actor's mailbox is full.
    pub fn tell<M>(&self, message: M) -> Result<(), CallError>
    where
        M: AcceptedBy<A>,
        A: Handler<M>,
        A::Context: ToEnvelope<A, M>,
    {
        let Some(addr) = self.node.named().find::<A>(self.path.path()) else {
            self.dead::<M>();
            return Ok(());
        };
        match addr.try_send(message) {
            Ok(()) => Ok(()),
            Err(actix::prelude::SendError::Full(_)) => {
                Err(CallError::Overloaded { queue: Queue::Mailbox, bound: 0 })
            }
            Err(actix::prelude::SendError::Closed(_)) => {
                self.dead::<M>();
                Ok(())
            }
        }
    }

    /// Its address.
    pub const fn path(&self) -> &ActorPath {
        &self.path
    }

    fn dead<M: AcceptedBy<A>>(&self) -> CallError {
        let error = CallError::NoSuchActor { path: self.path.to_uri().into() };
        self.node.dead_letter(self.path.to_uri(), M::NAME, &error);
        error
    }
}

impl<A> Clone for NamedRef<A> {
    fn clone(&self) -> Self {
        Self { path: self.path.clone(), node: Arc::clone(&self.node), actor: std::marker::PhantomData }
    }
}

impl<A> fmt::Debug for NamedRef<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NamedRef({})", self.path.to_uri())
    }
}
