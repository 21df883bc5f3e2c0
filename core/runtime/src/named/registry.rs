//! Which actors are registered, and how they are found.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use actix::Addr;
use archipelago_protocol::identity::{ActorPath, ActorPathError, NodeAddress};

use super::{AnyDoor, Door, NamedRef, NamedTable};
use crate::message::NamedActor;
use crate::node::{Node, NodeShared};

/// The named actors of a node, by path.
#[derive(Default)]
pub(crate) struct NamedActors {
    by_path: RwLock<BTreeMap<String, Arc<dyn AnyDoor>>>,
}

impl NamedActors {
    fn insert(&self, path: &str, door: Arc<dyn AnyDoor>) -> bool {
        let mut by_path = self.by_path.write().unwrap_or_else(PoisonError::into_inner);
        if by_path.contains_key(path) {
            return false;
        }
        by_path.insert(path.to_owned(), door);
        true
    }

    fn remove(&self, path: &str) -> bool {
        self.by_path.write().unwrap_or_else(PoisonError::into_inner).remove(path).is_some()
    }

    /// The door of whoever is registered at a path.
    pub(crate) fn door(&self, path: &str) -> Option<Arc<dyn AnyDoor>> {
        self.by_path.read().unwrap_or_else(PoisonError::into_inner).get(path).cloned()
    }

    /// The door of the actor at a path, if it is of type `A`.
    pub(super) fn find<A: NamedActor>(&self, path: &str) -> Option<Arc<Door<A>>> {
        self.door(path)?.into_any().downcast().ok()
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
    #[error("{path} is on another node, and this node has no transport")]
    Elsewhere {
        /// The path.
        path: String,
    },
    /// The path is in another system than this node: messages never go there.
    #[error("{path} is in another system than {ours}")]
    OtherSystem {
        /// The path.
        path: String,
        /// The namespace of this node, which is the system of its paths.
        ours: String,
    },
}

impl Node {
    /// Registers an actor under a path such as `/greeter`, so that it can be found and addressed by it, from this node and
    /// from others.
    ///
    /// # Errors
    ///
    /// [`NameError`]: the path is invalid or taken; nothing changed.
    pub fn register<A: NamedActor>(&self, path: &str, addr: Addr<A>) -> Result<NamedRef<A>, NameError> {
        self.register_door(path, addr, Some(NamedTable::of_actor()))
    }

    /// Registers an actor for this node only: other nodes do not find it, and what they send to it fails with
    /// [`NotLocal`](archipelago_protocol::call::CallError::NotLocal).
    ///
    /// # Errors
    ///
    /// As [`register`](Self::register).
    pub fn register_local<A: NamedActor>(&self, path: &str, addr: Addr<A>) -> Result<NamedRef<A>, NameError> {
        self.register_door(path, addr, None)
    }

    fn register_door<A: NamedActor>(
        &self,
        path: &str,
        addr: Addr<A>,
        table: Option<NamedTable<A>>,
    ) -> Result<NamedRef<A>, NameError> {
        let path = self.path(path)?;
        if !self.shared().named().insert(path.path(), Door::new(path.clone(), addr, table)) {
            return Err(NameError::Taken { path: path.to_uri() });
        }
        Ok(NamedRef::on(Some(Arc::clone(self.shared())), path))
    }

    /// Takes a registration back; false if there was none. The actor itself goes on.
    pub fn unregister(&self, path: &str) -> bool {
        self.path(path).is_ok_and(|path| self.shared().named().remove(path.path()))
    }

    /// The actor of type `A` at a path of this node. Whether there is one shows when something is sent.
    ///
    /// # Errors
    ///
    /// [`NameError`]: the path is invalid, or an actor of another type is there.
    pub fn named<A: NamedActor>(&self, path: &str) -> Result<NamedRef<A>, NameError> {
        self.resolve(&self.path(path)?)
    }

    /// The actor of type `A` at a full address, on this node or another. Whether there is one shows when something is
    /// sent.
    ///
    /// # Errors
    ///
    /// [`NameError`]: the address can never be reached from this node, or an actor of another type is there.
    pub fn resolve<A: NamedActor>(&self, path: &ActorPath) -> Result<NamedRef<A>, NameError> {
        let node = self.shared();
        if path.system() != self.namespace().as_str() {
            let ours = self.namespace().to_string();
            return Err(NameError::OtherSystem { path: path.to_uri(), ours });
        }
        let here = path.address().is_none_or(|address| node.is_own_address(address));
        if !here && node.env().transport().is_none() {
            return Err(NameError::Elsewhere { path: path.to_uri() });
        }
        let other = || node.named().door(path.path()).is_some_and(|door| !door.into_any().is::<Door<A>>());
        if here && other() {
            return Err(NameError::OtherType { path: path.to_uri(), wanted: std::any::type_name::<A>() });
        }
        Ok(NamedRef::on(Some(Arc::clone(node)), path.clone()))
    }

    fn path(&self, path: &str) -> Result<ActorPath, ActorPathError> {
        ActorPath::local(self.namespace().as_str(), path)
    }
}

impl NodeShared {
    /// Whether an address is that of this node.
    pub(crate) fn is_own_address(&self, address: &NodeAddress) -> bool {
        let own = self.address();
        let bind = self.settings().remote.bind.host();
        address.port() == own.port() && (address == &own || address.host() == bind)
    }

    /// A path as other nodes know it: with the address of this one, if it can be reached.
    pub(crate) fn path_from_outside(&self, path: &ActorPath) -> ActorPath {
        if !path.is_local() || self.env().transport().is_none() {
            return path.clone();
        }
        // Only the system and the path could be invalid, and they are those of a valid path.
        ActorPath::remote(path.system(), self.address(), path.path()).unwrap_or_else(|_| path.clone())
    }
}
