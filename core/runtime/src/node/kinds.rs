//! The kinds a node was built with.

use std::any::TypeId;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use archipelago_protocol::hash::HashPrefix;
use archipelago_protocol::identity::{Generation, Kind, Namespace, NodeId};
use archipelago_protocol::message::WireId;
use archipelago_protocol::time::Millis;

use crate::catalog::{AnyKind, Factory, KindCatalog, MessageTable};
use crate::message::VirtualActor;

/// A kind as all arbiters of the node see it.
pub(crate) struct KindShared {
    index: u32,
    name: Kind,
    /// The hash of namespace and kind, to be continued with a key.
    prefix: HashPrefix,
    idle_after: Millis,
    spec: Arc<dyn KindSpec>,
    generation: AtomicU64,
    /// The node that owns the kind if it is not this one; zero if it is.
    elsewhere: AtomicU64,
    /// False until it is known that this node owns the kind.
    here: AtomicBool,
}

/// How to make catalogs of a kind.
pub(crate) trait KindSpec: Send + Sync {
    fn name(&self) -> &'static str;
    fn catalog(&self, shared: &Arc<KindShared>) -> Box<dyn AnyKind>;
    fn messages(&self) -> Vec<MessageEntry>;
    /// Whether this node is to host actors of the kind.
    fn hosted(&self) -> bool;
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
    factory: Option<Factory<A>>,
    messages: Arc<MessageTable<A>>,
    actor: PhantomData<fn() -> A>,
}

impl<A: VirtualActor> TypedKind<A> {
    pub(crate) fn new(factory: Factory<A>) -> Self {
        Self { factory: Some(factory), messages: Arc::new(MessageTable::of_actor()), actor: PhantomData }
    }

    /// A kind that other nodes host.
    pub(crate) fn elsewhere() -> Self {
        Self { factory: None, messages: Arc::new(MessageTable::of_actor()), actor: PhantomData }
    }
}

impl<A: VirtualActor> KindSpec for TypedKind<A> {
    fn name(&self) -> &'static str {
        A::KIND
    }

    fn catalog(&self, shared: &Arc<KindShared>) -> Box<dyn AnyKind> {
        let factory = self.factory.clone().unwrap_or_else(|| Arc::new(|_, _| Err("not hosted here".into())));
        Box::new(KindCatalog::new(Arc::clone(shared), factory, Arc::clone(&self.messages)))
    }

    fn messages(&self) -> Vec<MessageEntry> {
        self.messages.entries()
    }

    fn hosted(&self) -> bool {
        self.factory.is_some()
    }
}

impl KindShared {
    pub(crate) fn new(
        index: u32,
        (namespace, name): (&Namespace, Kind),
        idle_after: Millis,
        spec: Arc<dyn KindSpec>,
    ) -> Self {
        let prefix = HashPrefix::of(&[namespace.as_str(), name.as_str()]);
        let nobody = AtomicU64::new(0);
        let (generation, here) = (AtomicU64::new(0), AtomicBool::new(false));
        Self { index, name, prefix, idle_after, spec, generation, elsewhere: nobody, here }
    }

    /// This node owns the kind at `generation`.
    pub(crate) fn owned_here(&self, generation: Generation) {
        self.generation.store(generation.as_u64(), Ordering::Release);
        self.elsewhere.store(0, Ordering::Release);
        self.here.store(true, Ordering::Release);
    }

    /// This node does not own the kind; who does is to be found out.
    pub(crate) fn not_here(&self) {
        self.here.store(false, Ordering::Release);
    }

    /// Whether this node owns the kind.
    pub(crate) fn is_here(&self) -> bool {
        self.here.load(Ordering::Acquire)
    }

    /// Another node owns the kind.
    pub(crate) fn owned_by(&self, node: NodeId, generation: Generation) {
        self.generation.store(generation.as_u64(), Ordering::Release);
        self.elsewhere.store(node.as_u64(), Ordering::Release);
        self.not_here();
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

    /// The stable hash of the actor with this key.
    pub(crate) fn hash_of(&self, key: &str) -> u64 {
        self.prefix.and(key)
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
