//! The kinds a node was built with.

use std::any::TypeId;
use std::marker::PhantomData;
use std::sync::Arc;

use archipelago_protocol::hash::HashPrefix;
use archipelago_protocol::identity::{Kind, Namespace};
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
}

/// How to make catalogs of a kind.
pub(crate) trait KindSpec: Send + Sync {
    fn name(&self) -> &'static str;
    fn catalog(&self, shared: &Arc<KindShared>) -> Box<dyn AnyKind>;
    fn messages(&self) -> Vec<MessageEntry>;
    /// Whether this node is to host actors of the kind.
    fn hosted(&self) -> bool;
    /// Whether its actors keep their state between activations.
    fn persistent(&self) -> bool;
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

    fn persistent(&self) -> bool {
        A::PERSISTENCE.is_some()
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
        Self { index, name, prefix, idle_after, spec }
    }

    /// Whether this node may own shards of it.
    pub(crate) fn is_hosted(&self) -> bool {
        self.spec.hosted()
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
