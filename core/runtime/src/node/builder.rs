//! Putting a node together and starting it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use archipelago_protocol::contract::{Directory, StateStore};
use archipelago_protocol::identity::{ActorId, Kind, Namespace};
use archipelago_protocol::message::WireId;

use super::kinds::MessageEntry;
use super::spec::Spec;
use super::{KindShared, KindSpec, Node, StartError, TypedKind, keeper};
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
    locator: Option<Arc<dyn Locator>>,
    services: Services,
    connectors: Vec<Connector>,
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
            locator: None,
            services: Services::new(),
            connectors: Vec::new(),
        }
    }

    /// Keeps the states of persistent actors in `states`.
    #[must_use]
    pub fn state_store(mut self, states: Arc<dyn StateStore>) -> Self {
        self.states = Some(states);
        self
    }

    /// Finds out through `locator` where actors live that this node does not own; otherwise the directory says it.
    #[must_use]
    pub fn locator(mut self, locator: Arc<dyn Locator>) -> Self {
        self.locator = Some(locator);
        self
    }

    /// Answers requests of other nodes with this number. The last five numbers are the library's own.
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

    fn checked(self) -> Result<Spec, StartError> {
        let namespace = Namespace::new(&self.namespace).map_err(StartError::Namespace)?;
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
            services: self.services,
            connectors: self.connectors,
            settings: self.settings,
            env: self.env,
            directory: self.directory,
            states: self.states,
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
            kinds.push(Arc::new(KindShared::new(index, (namespace, name), &self.settings, Arc::clone(spec))));
        }
        Ok(kinds)
    }
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
