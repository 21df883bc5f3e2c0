//! From configuration and actor types to a running node.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use archipelago_embedded::EmbeddedStore;
use archipelago_protocol::contract::{ControlPlane, StateStore, Transport};
use archipelago_protocol::datacenter::{ChooseDataCenter, DataCenterMap};
use archipelago_protocol::handoff::AllocateShards;
use archipelago_protocol::identity::ActorId;
use archipelago_protocol::membership::{LeaderProvider, LeaderRule, SplitBrain, SplitStrategy};
use archipelago_protocol::placement::ChooseNode;
use archipelago_runtime::env::{Environment, HostEnvironment, Threads};
use archipelago_runtime::{BoxError, Node, NodeBuilder, Reach, Sharding, TraceBridge, VirtualActor};

use crate::admin::AdminPart;
use crate::config::{ConfigError, Fault, Loader, Origins, Settings, TransportKind};
use crate::node_settings::node_settings;
use crate::store::{Backing, Plane};
use crate::{Error, network};

/// Gives [`Node`] its `builder`. In the prelude.
pub trait BuildNode {
    /// A node that is told what it needs by `archipelago.toml`, by `ARCHIPELAGO_*` variables, and by code.
    fn builder() -> Builder {
        Builder::new()
    }
}

impl BuildNode for Node {}

/// A node in the making: configuration and the actors it hosts.
pub struct Builder {
    loader: Loader,
    settings: Option<Settings>,
    store: Option<Arc<EmbeddedStore>>,
    plane_store: Option<Arc<EmbeddedStore>>,
    plane: Option<Arc<dyn ControlPlane>>,
    states: Option<Arc<dyn StateStore>>,
    threads: Option<Threads>,
    split_brain: Option<SplitStrategy>,
    leader: Option<LeaderRule>,
    placement: Option<Arc<dyn ChooseNode>>,
    datacenter_placement: Option<Arc<dyn ChooseDataCenter>>,
    transport: Option<Arc<dyn Transport>>,
    allocation: Option<Arc<dyn AllocateShards>>,
    kinds: Vec<AddKind>,
}

type AddKind = Box<dyn FnOnce(NodeBuilder) -> NodeBuilder>;

impl Builder {
    fn new() -> Self {
        Self {
            loader: Loader::new(),
            settings: None,
            store: None,
            plane_store: None,
            plane: None,
            states: None,
            threads: None,
            split_brain: None,
            leader: None,
            placement: None,
            datacenter_placement: None,
            transport: None,
            allocation: None,
            kinds: Vec::new(),
        }
    }

    /// Reads this file, which must exist, instead of `archipelago.toml`.
    #[must_use]
    pub fn config_file(mut self, path: impl AsRef<Path>) -> Self {
        self.loader = self.loader.file(path.as_ref());
        self
    }

    /// Uses this profile: `archipelago.<profile>.toml` is read too.
    #[must_use]
    pub fn profile(mut self, profile: &str) -> Self {
        self.loader = self.loader.profile(profile);
        self
    }

    /// Sets one key of the configuration, over everything that files and variables say: `("calls.timeout", "1s")`.
    #[must_use]
    pub fn set(mut self, key: &str, value: &str) -> Self {
        self.loader = self.loader.set(key, value);
        self
    }

    /// The namespace of all actors; the same as `set("namespace", ..)`.
    #[must_use]
    pub fn namespace(self, namespace: &str) -> Self {
        self.set("namespace", namespace)
    }

    /// Makes the node a light client of the cluster that the nodes at these addresses, `"host:port"`, belong to; the same as
    /// `set("cluster.contacts", ..)`. It hosts nothing, is no member and needs no store: kinds are declared with
    /// [`remote_actor`](Self::remote_actor), and everything that sends works as on any node.
    #[must_use]
    pub fn client<C: AsRef<str>>(self, contacts: impl IntoIterator<Item = C>) -> Self {
        let contacts: Vec<String> = contacts.into_iter().map(|contact| contact.as_ref().to_owned()).collect();
        self.set("cluster.contacts", &contacts.join(", "))
    }

    /// Uses these settings and reads neither files nor variables.
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = Some(settings);
        self
    }

    /// Shares an embedded store with other nodes of this process; without it the node has one of its own. For no other
    /// backend.
    #[must_use]
    pub fn embedded_store(mut self, store: Arc<EmbeddedStore>) -> Self {
        self.store = Some(store);
        self
    }

    /// Shares an embedded control plane with nodes of other datacenters in this process; for `control_plane.kind = "embedded"`
    /// alone. Without it the node has one of its own, in which no other datacenter is.
    #[must_use]
    pub fn embedded_control_plane(mut self, store: Arc<EmbeddedStore>) -> Self {
        self.plane_store = Some(store);
        self
    }

    /// Knows the other datacenters through a control plane of your own, instead of one in the store that `control_plane.kind`
    /// names. The same in all datacenters.
    #[must_use]
    pub fn control_plane(mut self, plane: Arc<dyn ControlPlane>) -> Self {
        self.plane = Some(plane);
        self
    }

    /// Keeps the states of persistent actors in `states` instead of in the store that `backend.kind` chose. The same on all
    /// nodes of a cluster.
    #[must_use]
    pub fn state_store(mut self, states: Arc<dyn StateStore>) -> Self {
        self.states = Some(states);
        self
    }

    /// Runs the actors on the arbiter that starts the node, instead of on threads of their own: calls from that
    /// arbiter cross no thread, and code that blocks it blocks them too.
    #[must_use]
    pub fn on_current_arbiter(mut self) -> Self {
        self.threads = Some(Threads::Current);
        self
    }

    /// Lets a strategy of your own say which side of a split keeps its sessions, instead of `membership.split_brain`. The same
    /// on all nodes of a cluster.
    #[must_use]
    pub fn split_brain(mut self, strategy: impl SplitBrain) -> Self {
        self.split_brain = Some(SplitStrategy::own(strategy));
        self
    }

    /// Lets a rule of your own say who leads, instead of `membership.leader`. The same on all nodes of a cluster.
    #[must_use]
    pub fn leader(mut self, rule: impl LeaderProvider) -> Self {
        self.leader = Some(LeaderRule::own(rule));
        self
    }

    /// Lets a rule of your own say which node is asked first to own a shard, instead of `actors.placement`. What
    /// `actors.kinds.<Kind>.placement` or [`Sharding::placement`] say about a kind goes before it.
    #[must_use]
    pub fn placement(mut self, rule: impl ChooseNode) -> Self {
        self.placement = Some(Arc::new(rule));
        self
    }

    /// Lets a policy of your own say which of several datacenters takes an actor that this node places ([`Node::spawn_in`],
    /// [`Node::send_in`]), instead of `datacenter.placement`.
    #[must_use]
    pub fn datacenter_placement(mut self, policy: impl ChooseDataCenter) -> Self {
        self.datacenter_placement = Some(Arc::new(policy));
        self
    }

    /// Reaches other nodes over a transport of your own: `transport.kind` is "own" then, `transport.bind` and
    /// `transport.advertise` count as ever. The same on all nodes of a cluster.
    #[must_use]
    pub fn transport(mut self, transport: Arc<dyn Transport>) -> Self {
        self.transport = Some(transport);
        self.set("transport.kind", "own")
    }

    /// Lets a strategy of your own say where the shards of all kinds should be, instead of `sharding.strategy`; a kind that has
    /// one of its own keeps it ([`Sharding::allocation`]). The same on all nodes of a cluster.
    #[must_use]
    pub fn allocation(mut self, strategy: impl AllocateShards) -> Self {
        self.allocation = Some(Arc::new(strategy));
        self
    }

    /// Begins with this map of datacenters, `datacenter.name` being its own, for deployments without a control plane;
    /// [`Node::show_datacenters`] replaces it.
    #[must_use]
    pub fn datacenters(self, map: DataCenterMap) -> Self {
        self.add(|builder| builder.datacenters(map))
    }

    /// Says in which datacenters actors of type `A` may live, if there is more than one. Default: wherever they are found.
    #[must_use]
    pub fn reach<A: VirtualActor>(self, reach: Reach) -> Self {
        self.add(|builder| builder.reach::<A>(reach))
    }

    /// Joins the spans of the program with the traces that messages carry: a handler's span is then a child of the span that its
    /// message was sent in, on whatever node that was.
    #[must_use]
    pub fn traces(self, bridge: impl TraceBridge) -> Self {
        self.add(|builder| builder.traces(Arc::new(bridge)))
    }

    /// Hosts actors of type `A`, each made by `Default`.
    #[must_use]
    pub fn actor<A: VirtualActor + Default>(self) -> Self {
        self.add(NodeBuilder::actor::<A>)
    }

    /// Hosts actors of type `A`, each made by `factory` from its id and the node.
    #[must_use]
    pub fn actor_with<A: VirtualActor>(
        self,
        factory: impl Fn(&ActorId, &Node) -> A + Send + Sync + 'static,
    ) -> Self {
        self.add(|builder| builder.actor_with(factory))
    }

    /// Hosts actors of type `A`, each made by a `factory` that may fail: then the callers get its error.
    #[must_use]
    pub fn try_actor_with<A: VirtualActor>(
        self,
        factory: impl Fn(&ActorId, &Node) -> Result<A, BoxError> + Send + Sync + 'static,
    ) -> Self {
        self.add(|builder| builder.try_actor_with(factory))
    }

    /// Hosts actors of type `A` as `sharding` says: how many shards, when they go, on which roles they live. That goes
    /// before the configuration.
    #[must_use]
    pub fn shard<A: VirtualActor>(self, sharding: Sharding<A>) -> Self {
        self.add(|builder| builder.shard(sharding))
    }

    /// Hosts the one actor of type `A` that the cluster is to have, made by `Default`: it lives on one of the nodes that
    /// are told this, without being asked, and on another if that one goes. [`Node::singleton`] sends to it.
    #[must_use]
    pub fn singleton<A: VirtualActor + Default>(self) -> Self {
        self.add(NodeBuilder::singleton::<A>)
    }

    /// The same for an actor that `factory` makes.
    #[must_use]
    pub fn singleton_with<A: VirtualActor>(
        self,
        factory: impl Fn(&ActorId, &Node) -> A + Send + Sync + 'static,
    ) -> Self {
        self.add(|builder| builder.singleton_with(factory))
    }

    /// Knows the one actor of type `A` that the cluster has, but hosts it never.
    #[must_use]
    pub fn remote_singleton<A: VirtualActor>(self) -> Self {
        self.add(NodeBuilder::remote_singleton::<A>)
    }

    /// Knows actors of type `A` that other nodes host: messages go there.
    #[must_use]
    pub fn remote_actor<A: VirtualActor>(self) -> Self {
        self.add(NodeBuilder::remote_actor::<A>)
    }

    /// Reads the configuration and starts the node. On a store that has just begun and grants nothing yet, one that a node
    /// serves or a NATS stream that was created now, that takes until it does: 6.4 s with the defaults, 15 s with NATS.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the configuration cannot be used, [`Error::Backend`] if the store behind the directory
    /// cannot be reached, [`Error::Start`] if the node cannot start; nothing runs then.
    pub async fn start(self) -> Result<Node, Error> {
        let members_only = self.members_only();
        let (settings, origins) = settled(self.settings, self.loader, self.transport.is_some())?;
        let env = HostEnvironment::new(self.threads.unwrap_or(Threads::Own));
        let env: Arc<dyn Environment> = match network::transport(&settings, &origins, self.transport)? {
            Some(transport) => Arc::new(env.with_transport(transport)),
            None => Arc::new(env),
        };
        let admin = AdminPart::before(&settings, &origins)?;
        let settings_on = |store: String| {
            node_settings(&settings, store).map_err(|error| {
                let fault = Fault::Refused { message: error.to_string() };
                origins.refuse(&["datacenter.name", "datacenter.labels"], fault)
            })
        };
        if settings.cluster.is_client() {
            if !members_only.is_empty() {
                return Err(ConfigError::not_for_clients(members_only).into());
            }
            let builder = NodeBuilder::without_directory(env)
                .namespace(settings.namespace.as_str())
                .settings(settings_on(String::new())?);
            let builder = self.kinds.into_iter().fold(builder, |builder, add| add(builder));
            let node = builder.start().await?;
            return admin.begin(node, &settings, &origins).await;
        }
        let mut backing = Backing::new(&settings, &origins, self.store, &env).await?;
        let plane = match self.plane {
            Some(plane) => Plane::given(plane),
            None => Plane::new(&settings, &origins, self.plane_store, &env).await?,
        };
        let mut node = settings_on(backing.identity.clone())?;
        node.remote.serves_store = backing.is_served();
        node.membership.strategy = self.split_brain.unwrap_or(node.membership.strategy);
        node.membership.leader = self.leader.unwrap_or(node.membership.leader);
        node.placement = self.placement.unwrap_or(node.placement);
        node.datacenter.placement = self.datacenter_placement.unwrap_or(node.datacenter.placement);
        node.sharding.strategy = self.allocation.unwrap_or(node.sharding.strategy);
        let builder = NodeBuilder::new(env, Arc::clone(&backing.directory))
            .namespace(settings.namespace.as_str())
            .tables(Arc::clone(&backing.tables))
            .routing_table(Arc::clone(&backing.routing_table))
            .state_store(self.states.unwrap_or_else(|| Arc::clone(&backing.states)))
            .settings(node);
        let settling = backing.settling.take();
        let homes = plane.is_some().then(|| Arc::clone(&backing.homes));
        let builder = admin.take_part(plane.take_part(backing.take_part(builder)));
        let builder = match homes {
            Some(homes) => builder.homes(homes),
            None => builder,
        };
        let builder = self.kinds.into_iter().fold(builder, |builder, add| add(builder));
        let node = builder.start().await?;
        if let Some(settling) = settling {
            settling.wait().await;
        }
        admin.begin(node, &settings, &origins).await
    }

    /// The calls that say something about a member of a cluster, by name.
    fn members_only(&self) -> Vec<&'static str> {
        let calls = [
            ("embedded_store", self.store.is_some()),
            ("embedded_control_plane", self.plane_store.is_some()),
            ("control_plane", self.plane.is_some()),
            ("state_store", self.states.is_some()),
            ("split_brain", self.split_brain.is_some()),
            ("leader", self.leader.is_some()),
            ("placement", self.placement.is_some()),
            ("datacenter_placement", self.datacenter_placement.is_some()),
        ];
        calls.into_iter().filter(|(_, given)| *given).map(|(call, _)| call).collect()
    }

    fn add(mut self, kind: impl FnOnce(NodeBuilder) -> NodeBuilder + 'static) -> Self {
        self.kinds.push(Box::new(kind));
        self
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("kinds", &self.kinds.len()).finish_non_exhaustive()
    }
}

/// The settings that hold, and who set what.
fn settled(
    given: Option<Settings>,
    loader: Loader,
    own_transport: bool,
) -> Result<(Settings, Origins), ConfigError> {
    let Some(mut settings) = given else { return loader.load_with_origins() };
    if own_transport {
        settings.transport.kind = TransportKind::Own;
    }
    let origins = Origins::of_code();
    origins.check(&settings)?;
    Ok((settings, origins))
}
