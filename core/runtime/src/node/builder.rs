//! Putting a node together and starting it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use archipelago_protocol::contract::{ControlPlane, Directory, Homes, RoutingTable, StateStore};
use archipelago_protocol::datacenter::{DataCenterId, DataCenterMap};
use archipelago_protocol::identity::{ActorId, Kind, Namespace, NodeAddress};
use archipelago_protocol::message::WireId;
use archipelago_protocol::ranges::TableSource;

use super::kinds::MessageEntry;
use super::spec::Spec;
use super::{KindShared, KindSpec, Node, StartError, TypedKind, keeper};
use crate::call::TraceBridge;
use crate::client::{ContactList, ContactLocator, NoDirectory};
use crate::datacenter::Maps;
use crate::env::Environment;
use crate::events::{Event, EventStream};
use crate::message::{BoxError, VirtualActor};
use crate::remote::{Connector, DirectoryLocator, Locator, Service, Services, StaticLocator};
use crate::settings::NodeSettings;
use crate::sharding::Sharding;

/// A node in the making.
pub struct NodeBuilder {
    namespace: String,
    settings: NodeSettings,
    env: Arc<dyn Environment>,
    directory: Arc<dyn Directory>,
    kinds: Vec<Arc<dyn KindSpec>>,
    states: Option<Arc<dyn StateStore>>,
    tables: Option<Arc<dyn TableSource>>,
    routing_table: Option<Arc<dyn RoutingTable>>,
    locator: Option<Arc<dyn Locator>>,
    services: Services,
    connectors: Vec<Connector>,
    datacenters: DataCenterMap,
    homes: Option<Arc<dyn Homes>>,
    control_plane: Option<Arc<dyn ControlPlane>>,
    traces: Option<Arc<dyn TraceBridge>>,
}

impl NodeBuilder {
    /// A node without actors that will reach the world through `env` and own things through `directory`.
    pub fn new(env: Arc<dyn Environment>, directory: Arc<dyn Directory>) -> Self {
        let settings = NodeSettings::default();
        Self {
            namespace: "default".to_owned(),
            settings,
            env,
            directory,
            kinds: Vec::new(),
            states: None,
            tables: None,
            routing_table: None,
            locator: None,
            services: Services::new(),
            connectors: Vec::new(),
            datacenters: DataCenterMap::default(),
            homes: None,
            control_plane: None,
            traces: None,
        }
    }

    /// A node without a directory, which can only be a light client: see [`client`](Self::client).
    pub fn without_directory(env: Arc<dyn Environment>) -> Self {
        Self::new(env, Arc::new(NoDirectory))
    }

    /// Makes the node a light client of the cluster that the nodes at `contacts` belong to: it is no member, hosts nothing,
    /// opens no session and never uses the directory. Its kinds are those of [`remote_actor`](Self::remote_actor).
    #[must_use]
    pub fn client(mut self, contacts: impl IntoIterator<Item = NodeAddress>) -> Self {
        self.settings.remote.contacts = contacts.into_iter().collect();
        self
    }

    /// Keeps the states of persistent actors in `states`.
    #[must_use]
    pub fn state_store(mut self, states: Arc<dyn StateStore>) -> Self {
        self.states = Some(states);
        self
    }

    /// Learns the tables of range-partitioned kinds from `tables`, a watch of the store, and passes them on while it leads.
    #[must_use]
    pub fn tables(mut self, tables: Arc<dyn TableSource>) -> Self {
        self.tables = Some(tables);
        self
    }

    /// Writes the tables of range-partitioned kinds there while it has that duty.
    #[must_use]
    pub fn routing_table(mut self, tables: Arc<dyn RoutingTable>) -> Self {
        self.routing_table = Some(tables);
        self
    }

    /// Begins with this map of datacenters; whoever reads a control plane replaces it later. Only a node whose first map
    /// names its own datacenter ever looks for actors in others.
    #[must_use]
    pub fn datacenters(mut self, map: DataCenterMap) -> Self {
        self.datacenters = map;
        self
    }

    /// Takes part in a world of several datacenters, which this control plane knows.
    #[must_use]
    pub fn control_plane(mut self, plane: Arc<dyn ControlPlane>) -> Self {
        self.control_plane = Some(plane);
        self
    }

    /// Joins the spans of the program with the traces that messages carry.
    #[must_use]
    pub fn traces(mut self, bridge: Arc<dyn TraceBridge>) -> Self {
        self.traces = Some(bridge);
        self
    }

    /// Owns things through `directory` instead of the one it was made with.
    #[must_use]
    pub fn directory(mut self, directory: Arc<dyn Directory>) -> Self {
        self.directory = directory;
        self
    }

    /// Finds out through `homes` which actors were placed in another datacenter.
    #[must_use]
    pub fn homes(mut self, homes: Arc<dyn Homes>) -> Self {
        self.homes = Some(homes);
        self
    }

    /// Finds out through `locator` where actors live that this node does not own; otherwise the directory says it.
    #[must_use]
    pub fn locator(mut self, locator: Arc<dyn Locator>) -> Self {
        self.locator = Some(locator);
        self
    }

    /// Answers requests of other nodes with this number. The last hundred numbers are the library's own.
    #[must_use]
    pub fn service(mut self, number: u16, service: Arc<dyn Service>) -> Self {
        self.services.insert(number, service);
        self
    }

    /// The namespace of all its actors, the same on every node of the cluster.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// Its numbers.
    #[must_use]
    pub fn settings(mut self, settings: NodeSettings) -> Self {
        self.settings = settings;
        self
    }

    pub(crate) const fn settings_mut(&mut self) -> &mut NodeSettings {
        &mut self.settings
    }

    /// Lets `connector` use the node's way to other nodes.
    #[must_use]
    pub fn connector(mut self, connector: Connector) -> Self {
        self.connectors.push(connector);
        self
    }

    /// Hosts actors of type `A`, each made by `Default`.
    #[must_use]
    pub fn actor<A: VirtualActor + Default>(self) -> Self {
        self.actor_with(|_, _| A::default())
    }

    /// Hosts actors of type `A`, each made by `factory` from its id and the node.
    #[must_use]
    pub fn actor_with<A: VirtualActor>(
        self,
        factory: impl Fn(&ActorId, &Node) -> A + Send + Sync + 'static,
    ) -> Self {
        self.try_actor_with(move |id, node| Ok(factory(id, node)))
    }

    /// Hosts actors of type `A`, each made by a `factory` that may fail: then the callers get its error.
    #[must_use]
    pub fn try_actor_with<A: VirtualActor>(
        mut self,
        factory: impl Fn(&ActorId, &Node) -> Result<A, BoxError> + Send + Sync + 'static,
    ) -> Self {
        self.kinds.push(Arc::new(TypedKind::<A>::new(Arc::new(factory))));
        self
    }

    /// Hosts actors of type `A` as `sharding` says.
    #[must_use]
    pub fn shard<A: VirtualActor>(mut self, sharding: Sharding<A>) -> Self {
        let factory = sharding.settle(&mut self.settings);
        self.kinds.push(Arc::new(TypedKind::<A>::new(factory)));
        self
    }

    /// Hosts the one actor of type `A` that the cluster is to have, made by `Default`: it lives on one of the nodes that
    /// are told this, without being asked, and moves to another if that one goes. [`Node::singleton`] sends to it.
    #[must_use]
    pub fn singleton<A: VirtualActor + Default>(self) -> Self {
        self.singleton_with(|_, _| A::default())
    }

    /// The same for an actor that `factory` makes.
    #[must_use]
    pub fn singleton_with<A: VirtualActor>(
        mut self,
        factory: impl Fn(&ActorId, &Node) -> A + Send + Sync + 'static,
    ) -> Self {
        let factory = Arc::new(move |id: &ActorId, node: &Node| Ok(factory(id, node)));
        self.kinds.push(Arc::new(TypedKind::<A>::singleton(factory)));
        self
    }

    /// Knows the one actor of type `A` that the cluster has, but hosts it never.
    #[must_use]
    pub fn remote_singleton<A: VirtualActor>(mut self) -> Self {
        self.kinds.push(Arc::new(TypedKind::<A>::singleton_elsewhere()));
        self
    }

    /// Knows actors of type `A`, but hosts none: messages go to the node that does.
    #[must_use]
    pub fn remote_actor<A: VirtualActor>(mut self) -> Self {
        self.kinds.push(Arc::new(TypedKind::<A>::elsewhere()));
        self
    }

    /// Opens the node's session and starts its arbiters. While the store gives no session it is asked again, for a little
    /// longer than a session lasts.
    ///
    /// # Errors
    ///
    /// [`StartError`]; nothing of the node runs then.
    pub async fn start(self) -> Result<Node, StartError> {
        let spec = self.checked()?;
        let (first, unfinished) = spec.begin_first().await?;
        let node = Arc::clone(&first.node);
        keeper::start(spec, first)?;
        unfinished.finish();
        tracing::info!(node = %node.id, namespace = %node.namespace, "node started");
        node.events.publish(Event::NodeStarted { node: node.id });
        Ok(Node::of(node))
    }

    /// What a light client has in place of a directory.
    fn with_contacts(mut self) -> Result<(Self, Option<Arc<ContactList>>), StartError> {
        let addresses = self.settings.remote.contacts.clone();
        if addresses.is_empty() {
            return Ok((self, None));
        }
        if let Some(kind) = self.kinds.iter().find(|kind| kind.hosted()) {
            return Err(StartError::ClientHosts { kind: kind.name().to_owned() });
        }
        if self.env.transport().is_none() {
            return Err(StartError::Transport { reason: "a light client needs a transport".to_owned() });
        }
        let contacts = Arc::new(ContactList::new(addresses, self.env.random()));
        let connector = Connector::new();
        self.locator = Some(Arc::new(ContactLocator::new(Arc::clone(&contacts), connector.clone())));
        self.directory = Arc::new(NoDirectory);
        self.connectors.push(connector);
        Ok((self, Some(contacts)))
    }

    fn checked(self) -> Result<Spec, StartError> {
        let (this, contacts) = self.with_contacts()?;
        this.checked_with(contacts)
    }

    fn checked_with(self, contacts: Option<Arc<ContactList>>) -> Result<Spec, StartError> {
        let namespace = Namespace::new(&self.namespace).map_err(StartError::Namespace)?;
        let own = self.control_plane.as_ref().map(|_| self.settings.datacenter.info.id().clone());
        let kinds = self.checked_kinds(&namespace)?;
        check_messages(&self.kinds)?;
        self.check_states()?;
        Ok(Spec {
            namespace,
            kinds,
            data_arbiters: self.settings.data_arbiters.unwrap_or_else(half_the_cores).max(1),
            locator: self.locator.unwrap_or_else(|| locator(&self.settings, &self.directory)),
            events: EventStream::new(self.settings.event_queue),
            named: Arc::default(),
            datacenters: Arc::new(Maps::new(first_map(self.datacenters, own))),
            homes: self.homes,
            control_plane: self.control_plane,
            traces: self.traces,
            services: self.services,
            connectors: self.connectors,
            settings: self.settings,
            env: self.env,
            directory: self.directory,
            states: self.states,
            tables: self.tables,
            routing_table: self.routing_table,
            contacts,
        })
    }

    fn check_states(&self) -> Result<(), StartError> {
        let needy = self.kinds.iter().find(|kind| kind.hosted() && kind.persistent());
        match needy {
            Some(kind) if self.states.is_none() => {
                Err(StartError::NoStateStore { kind: kind.name().to_owned() })
            }
            _ => Ok(()),
        }
    }

    fn checked_kinds(&self, namespace: &Namespace) -> Result<Vec<Arc<KindShared>>, StartError> {
        let mut kinds: Vec<Arc<KindShared>> = Vec::new();
        for (index, spec) in (0_u32..).zip(&self.kinds) {
            let name = Kind::new(spec.name())
                .map_err(|source| StartError::Kind { kind: spec.name().to_owned(), source })?;
            if kinds.iter().any(|known| *known.kind() == name) {
                return Err(StartError::KindTwice { kind: spec.name().to_owned() });
            }
            self.check_reach(&**spec)?;
            kinds.push(Arc::new(KindShared::new(index, (namespace, name), &self.settings, Arc::clone(spec))));
        }
        Ok(kinds)
    }

    /// Actors that have records of their own, and those of ranges, are found in their own directory alone.
    fn check_reach(&self, spec: &dyn KindSpec) -> Result<(), StartError> {
        let (kind, layout) = (spec.name(), self.settings.layout_of(spec.name()));
        if spec.singleton() || !layout.is_by_actor() || !self.settings.wants_abroad(kind) {
            return Ok(());
        }
        Err(StartError::ReachNotLocal { kind: kind.to_owned(), layout })
    }
}

/// With a control plane a node knows which datacenter is its own before it knows any other.
fn first_map(map: DataCenterMap, own: Option<DataCenterId>) -> DataCenterMap {
    DataCenterMap { own: map.own.or(own), ..map }
}

/// Refuses two message types with one wire id, wherever in the registry they are.
fn check_messages(kinds: &[Arc<dyn KindSpec>]) -> Result<(), StartError> {
    let mut known: BTreeMap<WireId, MessageEntry> = BTreeMap::new();
    for message in kinds.iter().flat_map(|kind| kind.messages()) {
        let first = *known.entry(message.id).or_insert(message);
        if first.type_id != message.type_id {
            return Err(StartError::MessageClash {
                first: first.name.to_owned(),
                second: message.name.to_owned(),
            });
        }
    }
    Ok(())
}

/// Asks the directory for owners, except for the kinds whose place is fixed by configuration.
fn locator(settings: &NodeSettings, directory: &Arc<dyn Directory>) -> Arc<dyn Locator> {
    let others = DirectoryLocator::new(Arc::clone(directory));
    Arc::new(StaticLocator::new(settings.remote.placed.clone(), Box::new(others)))
}

fn half_the_cores() -> u16 {
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    u16::try_from(cores / 2).unwrap_or(u16::MAX).max(1)
}

impl fmt::Debug for NodeBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: Vec<_> = self.kinds.iter().map(|kind| kind.name()).collect();
        f.debug_struct("NodeBuilder")
            .field("namespace", &self.namespace)
            .field("kinds", &kinds)
            .finish_non_exhaustive()
    }
}
