//! The kinds a node was built with.

use std::any::TypeId;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use archipelago_protocol::identity::{Generation, Kind, NodeId};
use archipelago_protocol::message::WireId;
use archipelago_protocol::time::Millis;

use crate::catalog::{AnyKind, Factory, KindCatalog, MessageTable};
use crate::message::VirtualActor;

/// A kind as all arbiters of the node see it.
pub(crate) struct KindShared {
    index: u32,
    name: Kind,
    idle_after: Millis,
    spec: Arc<dyn KindSpec>,
    generation: AtomicU64,
    /// The node that owns the kind if it is not this one; zero if it is.
    elsewhere: AtomicU64,
}

/// How to make catalogs of a kind.
pub(crate) trait KindSpec: Send + Sync {
    fn name(&self) -> &'static str;
    fn catalog(&self, shared: &Arc<KindShared>) -> Box<dyn AnyKind>;
    fn messages(&self) -> Vec<MessageEntry>;
}

/// One message of a kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageEntry {
    pub(crate) id: WireId,
    pub(crate) name: &'static str,
    pub(crate) type_id: TypeId,
}

/// The kind of actors of type `A`.
pub(crate) struct TypedKind<A: VirtualActor> {
    factory: Factory<A>,
    messages: Arc<MessageTable<A>>,
    actor: PhantomData<fn() -> A>,
}

impl<A: VirtualActor> TypedKind<A> {
    pub(crate) fn new(factory: Factory<A>) -> Self {
        Self { factory, messages: Arc::new(MessageTable::of_actor()), actor: PhantomData }
    }
}

impl<A: VirtualActor> KindSpec for TypedKind<A> {
    fn name(&self) -> &'static str {
        A::KIND
    }

    fn catalog(&self, shared: &Arc<KindShared>) -> Box<dyn AnyKind> {
        Box::new(KindCatalog::new(Arc::clone(shared), Arc::clone(&self.factory), Arc::clone(&self.messages)))
    }

    fn messages(&self) -> Vec<MessageEntry> {
        self.messages.entries()
    }
}

impl KindShared {
    pub(crate) fn new(index: u32, name: Kind, idle_after: Millis, spec: Arc<dyn KindSpec>) -> Self {
        let nobody = AtomicU64::new(0);
        Self { index, name, idle_after, spec, generation: AtomicU64::new(0), elsewhere: nobody }
    }

    /// This node owns the kind at `generation`.
    pub(crate) fn owned_here(&self, generation: Generation) {
        self.generation.store(generation.as_u64(), Ordering::Release);
        self.elsewhere.store(0, Ordering::Release);
    }

    /// Another node owns the kind.
    pub(crate) fn owned_by(&self, node: NodeId) {
        self.elsewhere.store(node.as_u64(), Ordering::Release);
    }

    pub(crate) fn generation(&self) -> Generation {
        Generation::new(self.generation.load(Ordering::Acquire))
    }

    pub(crate) fn elsewhere(&self) -> Option<NodeId> {
        match self.elsewhere.load(Ordering::Acquire) {
            0 => None,
            node => Some(NodeId::new(node)),
        }
    }

    pub(crate) fn name(&self) -> &str {
        self.name.as_str()
    }

    pub(crate) const fn kind(&self) -> &Kind {
        &self.name
    }

    pub(crate) const fn index(&self) -> u32 {
        self.index
    }

    pub(crate) const fn idle_after(&self) -> Millis {
        self.idle_after
    }

    pub(crate) fn spec(&self) -> &dyn KindSpec {
        &*self.spec
    }
}
