//! The kinds a node was built with.

use std::any::TypeId;
use std::marker::PhantomData;
use std::sync::{Arc, OnceLock};

use archipelago_protocol::hash::HashPrefix;
use archipelago_protocol::identity::{Kind, Namespace};
use archipelago_protocol::message::WireId;
use archipelago_protocol::placement::{KindLayout, ShardCount};
use archipelago_protocol::time::Millis;

use crate::catalog::{AnyKind, Factory, KindCatalog, MessageTable};
use crate::datacenter::Reach;
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
    /// How the cluster divides it, as a light client has learnt.
    adopted: OnceLock<KindLayout>,
    hosted: bool,
    reach: Reach,
    spec: Arc<dyn KindSpec>,
}

/// How to make catalogs of a kind.
pub(crate) trait KindSpec: Send + Sync {
    fn name(&self) -> &'static str;
    /// `abroad` if there may be other datacenters.
    fn catalog(&self, shared: &Arc<KindShared>, abroad: bool) -> Box<dyn AnyKind>;
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

    fn catalog(&self, shared: &Arc<KindShared>, abroad: bool) -> Box<dyn AnyKind> {
        let factory = self.factory.clone().unwrap_or_else(|| Arc::new(|_, _| Err("not hosted here".into())));
        // Single actors are known to their own datacenter alone.
        let stays = matches!(shared.reach(), Reach::Local) || shared.layout().is_by_actor();
        let reaches = abroad && !stays;
        Box::new(KindCatalog::new(Arc::clone(shared), factory, Arc::clone(&self.messages), reaches))
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
        // The one actor of a cluster is that of its own cluster, and single actors are found in their own directory alone.
        let stays = spec.singleton() || layout.is_by_actor();
        let reach = if stays { Reach::Local } else { settings.reach_of(name.as_str()).clone() };
        Self { index, name, prefix, idle_after, layout, adopted: OnceLock::new(), hosted, reach, spec }
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
    #[inline]
    pub(crate) fn layout(&self) -> KindLayout {
        *self.adopted.get().unwrap_or(&self.layout)
    }

    /// Divides the kind as the cluster does. The layout of a kind never changes, so what was learnt first holds.
    pub(crate) fn adopt(&self, layout: KindLayout) {
        if *self.adopted.get_or_init(|| layout) != layout {
            tracing::error!(kind = self.name(), %layout, "contacts of different clusters");
        }
    }

    /// The part of the kind that the actor with this hash belongs to.
    #[inline]
    pub(crate) fn shard_of(&self, hash: u64) -> u64 {
        self.layout().part_of(hash)
    }

    /// In which datacenters its actors may live.
    pub(crate) const fn reach(&self) -> &Reach {
        &self.reach
    }

    pub(crate) const fn idle_after(&self) -> Millis {
        self.idle_after
    }

    pub(crate) fn spec(&self) -> &dyn KindSpec {
        &*self.spec
    }
}
