//! The handle to a node that user code holds.

use std::fmt;
use std::sync::Arc;

use actix::Addr;
use archipelago_protocol::call::CallError;
use archipelago_protocol::identity::{Namespace, NodeAddress, NodeId};

use super::NodeShared;
use crate::cluster::ClusterMember;
use crate::events::EventStream;
use crate::message::VirtualActor;
use crate::refs::{ActorRef, UntypedRef};
use crate::remote::TransportActor;
use crate::settings::NodeSettings;

/// A running node. Cheap to clone; it stops when [`stop`](Node::stop) is called, not when handles are dropped.
///
/// A node that loses its session stops serving at once and comes back by itself under a new id, as soon as nothing of its
/// earlier life runs any more. Handles, refs, registrations and subscriptions stay good; what is sent in between is
/// answered with [`CallError::NotServing`].
#[derive(Clone)]
pub struct Node {
    shared: Arc<NodeShared>,
}

impl Node {
    pub(crate) const fn of(shared: Arc<NodeShared>) -> Self {
        Self { shared }
    }

    /// The actor of type `A` with this key. Costs nothing but the ref: the actor comes to life with its first
    /// message. An invalid key shows when something is sent; [`try_actor`](Self::try_actor) tells early.
    pub fn actor<A: VirtualActor>(&self, key: impl AsRef<str>) -> ActorRef<A> {
        ActorRef::on(self.shared(), key.as_ref())
    }

    /// The actor of type `A` with this key, if the key can be one and the node hosts such actors.
    ///
    /// # Errors
    ///
    /// [`CallError::InvalidId`] or [`CallError::UnknownKind`]: what every message to it would be answered with.
    pub fn try_actor<A: VirtualActor>(&self, key: impl AsRef<str>) -> Result<ActorRef<A>, CallError> {
        let actor = self.actor(key);
        actor.usable()?;
        Ok(actor)
    }

    /// The actor of a kind that is only known by name.
    pub fn actor_ref(&self, kind: &str, key: &str) -> UntypedRef {
        UntypedRef::on(self.shared(), kind, key)
    }

    /// Runs a task beside an actor, on its arbiter: calls between the two cross no thread. The task ends with the
    /// node.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the ref cannot be used or the arbiter takes no more; nothing runs then.
    pub fn spawn_beside<A, F>(
        &self,
        actor: &ActorRef<A>,
        task: impl FnOnce() -> F + Send + 'static,
    ) -> Result<(), CallError>
    where
        A: VirtualActor,
        F: Future<Output = ()> + 'static,
    {
        let node = self.shared();
        let arbiter = actor.arbiter_of(node)?;
        // Always through the queue: on the present arbiter, too, the task must belong to the node.
        node.enter_work(arbiter, move |local| {
            if !local.is_closed() {
                local.node().env().spawn(Box::pin(async move { task().await }));
            }
        })
    }

    /// The node's id, drawn when it started and when it rejoined.
    pub fn id(&self) -> NodeId {
        self.shared().id()
    }

    /// Where other nodes reach it; port 0 without a transport.
    pub fn address(&self) -> NodeAddress {
        self.shared().info().address
    }

    /// The namespace of its actors.
    pub fn namespace(&self) -> &Namespace {
        self.shared.namespace()
    }

    /// The actor of the node's transport; `None` without one.
    pub fn transport(&self) -> Option<Addr<TransportActor>> {
        self.shared().remoting().transport().cloned()
    }

    /// The nodes of the cluster as this one sees them, itself included, in the order of their ids.
    pub fn members(&self) -> Vec<ClusterMember> {
        self.shared().members().view().members.values().cloned().collect()
    }

    /// The node that leads the cluster, as this one sees it; none without a transport.
    pub fn leader(&self) -> Option<NodeId> {
        self.shared().members().view().leader
    }

    /// What happens in the node.
    pub fn events(&self) -> &EventStream {
        self.shared.events()
    }

    /// The numbers it runs with.
    pub fn settings(&self) -> &NodeSettings {
        self.shared.settings()
    }

    /// Its present life.
    pub(crate) fn shared(&self) -> &Arc<NodeShared> {
        self.shared.present()
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node")
            .field("id", &self.shared().id())
            .field("namespace", self.shared.namespace())
            .finish()
    }
}
