//! The kinds a node was built with.

use std::any::TypeId;
use std::marker::PhantomData;
use std::sync::Arc;

use archipelago_protocol::hash::HashPrefix;
use archipelago_protocol::identity::{Kind, Namespace};
use archipelago_protocol::message::WireId;
use archipelago_protocol::placement::{KindLayout, ShardCount};
use archipelago_protocol::time::Millis;

use crate::catalog::{AnyKind, Factory, KindCatalog, MessageTable};
use crate::message::VirtualActor;
use crate::settings::NodeSettings;

/// A kind as all arbiters of the node see it.
pub(crate) struct KindShared {
    index: u32,
    name: Kind,
    /// The hash of namespace and kind, to be continued with a key.
    prefix: HashPrefix,
    idle_after: Millis,
    layout: KindLayout,
    hosted: bool,
    spec: Arc<dyn KindSpec>,
}

/// How to make catalogs of a kind.
pub(crate) trait KindSpec: Send + Sync {
    fn name(&self) -> &'static str;
    fn catalog(&self, shared: &Arc<KindShared>) -> Box<dyn AnyKind>;
    fn messages(&self) -> Vec<MessageEntry>;
    /// Whether this node is to host actors of the kind.
    fn hosted(&self) -> bool;
    /// Whether a cluster has one actor of the kind.
    fn singleton(&self) -> bool;
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
    singleton: bool,
    messages: Arc<MessageTable<A>>,
    actor: PhantomData<fn() -> A>,
}

impl<A: VirtualActor> TypedKind<A> {
    pub(crate) fn new(factory: Factory<A>) -> Self {
        Self { factory: Some(factory), singleton: false, ..Self::elsewhere() }
    }

    /// A kind of which a cluster has one actor, which other nodes host.
    pub(crate) fn singleton_elsewhere() -> Self {
        Self { singleton: true, ..Self::elsewhere() }
    }

    /// A kind of which a cluster has one actor.
    pub(crate) fn singleton(factory: Factory<A>) -> Self {
        Self { singleton: true, ..Self::new(factory) }
    }

    /// A kind that other nodes host.
    pub(crate) fn elsewhere() -> Self {
        let messages = Arc::new(MessageTable::of_actor());
        Self { factory: None, singleton: false, messages, actor: PhantomData }
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

    fn singleton(&self) -> bool {
        self.singleton
    }

    fn persistent(&self) -> bool {
        A::PERSISTENCE.is_some()
    }
}

impl KindShared {
    pub(crate) fn new(
        index: u32,
        (namespace, name): (&Namespace, Kind),
        settings: &NodeSettings,
        spec: Arc<dyn KindSpec>,
    ) -> Self {
        let prefix = HashPrefix::of(&[namespace.as_str(), name.as_str()]);
        let (idle_after, layout) = if spec.singleton() {
            (Millis::MAX, KindLayout::sharded(ShardCount::ONE))
        } else {
            (settings.idle_after(name.as_str()), settings.layout_of(name.as_str()))
        };
        let hosted = spec.hosted() && settings.may_host(name.as_str());
        Self { index, name, prefix, idle_after, layout, hosted, spec }
    }

    /// Whether this node may own shards of it.
    pub(crate) fn is_hosted(&self) -> bool {
        self.hosted
    }

    /// Whether the cluster has one actor of it.
    pub(crate) fn is_singleton(&self) -> bool {
        self.spec.singleton()
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

    /// How its actors are divided.
    pub(crate) const fn layout(&self) -> KindLayout {
        self.layout
    }

    /// The shard of the actor with this hash.
    #[inline]
    pub(crate) const fn shard_of(&self, hash: u64) -> u16 {
        self.layout.shards().shard_of(hash)
    }

    pub(crate) const fn idle_after(&self) -> Millis {
        self.idle_after
    }

    pub(crate) fn spec(&self) -> &dyn KindSpec {
        &*self.spec
    }
}
