//! A kind of actor and everything that its nodes agree on about it.

use std::fmt;
use std::sync::Arc;

use archipelago_protocol::handoff::AllocateShards;
use archipelago_protocol::identity::{ActorId, ActorKey};
use archipelago_protocol::placement::{ChooseNode, KindLayout, ShardCount};
use archipelago_protocol::time::Millis;

use crate::catalog::Factory;
use crate::message::{BoxError, VirtualActor};
use crate::node::Node;
use crate::settings::NodeSettings;

/// How actors of type `A` are made and shared out, for [`NodeBuilder::shard`](crate::NodeBuilder::shard). What is not said
/// here is as the settings of the node have it; what is said here goes before them.
#[must_use]
pub struct Sharding<A: VirtualActor> {
    factory: Factory<A>,
    layout: Option<KindLayout>,
    passivate_after: Option<Millis>,
    roles: Option<Vec<String>>,
    placement: Option<Arc<dyn ChooseNode>>,
    allocation: Option<Arc<dyn AllocateShards>>,
    cuts: Option<Vec<ActorKey>>,
}

impl<A: VirtualActor> Sharding<A> {
    /// Actors that `factory` makes from their id and the node.
    pub fn new(factory: impl Fn(&ActorId, &Node) -> A + Send + Sync + 'static) -> Self {
        Self::fallible(move |id, node| Ok(factory(id, node)))
    }

    /// Actors made by a `factory` that may fail: then the callers get its error.
    pub fn fallible(
        factory: impl Fn(&ActorId, &Node) -> Result<A, BoxError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            factory: Arc::new(factory),
            layout: None,
            passivate_after: None,
            roles: None,
            placement: None,
            allocation: None,
            cuts: None,
        }
    }

    /// Divides the kind into so many shards: on all nodes the same, for as long as the cluster's directory lives.
    pub fn shards(self, shards: ShardCount) -> Self {
        self.divided(KindLayout::sharded(shards))
    }

    /// Divides the kind in another way than into shards, [`KindLayout::Actor`] for instance: on all nodes the same, for as
    /// long as the cluster's directory lives.
    pub fn divided(mut self, layout: KindLayout) -> Self {
        self.layout = Some(layout);
        self
    }

    /// Divides the kind by ranges of keys ([`KindLayout::Range`]), at first at these keys: each begins a range. From then on
    /// ranges change by [`Node::split_range`] and [`Node::merge_range`]; these keys count only while the cluster has no
    /// table of the kind.
    pub fn ranges(mut self, cuts: impl IntoIterator<Item = ActorKey>) -> Self {
        self.cuts = Some(cuts.into_iter().collect());
        self.divided(KindLayout::Range)
    }

    /// Deactivates an actor that has been idle for so long; [`Millis::MAX`] keeps it.
    pub fn passivate_after(mut self, idle: Millis) -> Self {
        self.passivate_after = Some(idle);
        self
    }

    /// Lets the kind live only on nodes that have one of these roles; others know it and send to it.
    pub fn roles<R: Into<String>>(mut self, roles: impl IntoIterator<Item = R>) -> Self {
        self.roles = Some(roles.into_iter().map(Into::into).collect());
        self
    }

    /// Says which nodes are asked first to own shards of the kind.
    pub fn placement(mut self, strategy: Arc<dyn ChooseNode>) -> Self {
        self.placement = Some(strategy);
        self
    }

    /// Says where shards of the kind should be that have an owner, and who gets those of a dead one. The same on all nodes.
    pub fn allocation(mut self, strategy: Arc<dyn AllocateShards>) -> Self {
        self.allocation = Some(strategy);
        self
    }

    /// Writes what was said into the settings, and gives the factory out.
    pub(crate) fn settle(self, settings: &mut NodeSettings) -> Factory<A> {
        let kind = || A::KIND.to_owned();
        settings.layout_by_kind.extend(self.layout.map(|layout| (kind(), layout)));
        settings.idle_after_by_kind.extend(self.passivate_after.map(|idle| (kind(), idle)));
        settings.roles_by_kind.extend(self.roles.map(|roles| (kind(), roles)));
        settings.cuts_by_kind.extend(self.cuts.map(|cuts| (kind(), cuts)));
        settings.placement_by_kind.extend(self.placement.map(|strategy| (kind(), strategy)));
        settings.sharding.strategy_by_kind.extend(self.allocation.map(|strategy| (kind(), strategy)));
        self.factory
    }
}

impl<A: VirtualActor> fmt::Debug for Sharding<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sharding")
            .field("kind", &A::KIND)
            .field("layout", &self.layout)
            .field("passivate_after", &self.passivate_after)
            .field("roles", &self.roles)
            .field("placement", &self.placement)
            .field("allocation", &self.allocation)
            .field("cuts", &self.cuts)
            .finish_non_exhaustive()
    }
}
