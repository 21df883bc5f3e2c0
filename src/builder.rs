//! From configuration and actor types to a running node.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use archipelago_embedded::EmbeddedStore;
use archipelago_protocol::contract::Directory;
use archipelago_protocol::identity::ActorId;
use archipelago_protocol::time::Millis;
use archipelago_runtime::env::{Environment, EnvironmentTimer, HostEnvironment, Threads};
use archipelago_runtime::{BoxError, Node, NodeBuilder, NodeSettings, VirtualActor};

use crate::Error;
use crate::config::{BackendKind, Idle, Loader, Settings};

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
    threads: Option<Threads>,
    kinds: Vec<AddKind>,
}

type AddKind = Box<dyn FnOnce(NodeBuilder) -> NodeBuilder>;

impl Builder {
    fn new() -> Self {
        Self { loader: Loader::new(), settings: None, store: None, threads: None, kinds: Vec::new() }
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

    /// Uses these settings and reads neither files nor variables.
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = Some(settings);
        self
    }

    /// Shares an embedded store with other nodes of this process; without it the node has one of its own.
    #[must_use]
    pub fn embedded_store(mut self, store: Arc<EmbeddedStore>) -> Self {
        self.store = Some(store);
        self
    }

    /// Runs the actors on the arbiter that starts the node, instead of on threads of their own: calls from that
    /// arbiter cross no thread, and code that blocks it blocks them too.
    #[must_use]
    pub fn on_current_arbiter(mut self) -> Self {
        self.threads = Some(Threads::Current);
        self
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

    /// Reads the configuration and starts the node.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the configuration cannot be used, [`Error::Start`] if the node cannot start; nothing
    /// runs then.
    pub async fn start(self) -> Result<Node, Error> {
        let settings = match self.settings {
            Some(settings) => settings,
            None => self.loader.load()?,
        };
        let env: Arc<dyn Environment> = Arc::new(HostEnvironment::new(self.threads.unwrap_or(Threads::Own)));
        let directory = directory(&settings, self.store, &env);
        let builder = NodeBuilder::new(env, directory)
            .namespace(settings.namespace.as_str())
            .settings(node_settings(&settings));
        let builder = self.kinds.into_iter().fold(builder, |builder, add| add(builder));
        Ok(builder.start().await?)
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

fn directory(
    settings: &Settings,
    store: Option<Arc<EmbeddedStore>>,
    env: &Arc<dyn Environment>,
) -> Arc<dyn Directory> {
    let timer = Arc::new(EnvironmentTimer(Arc::clone(env)));
    match settings.backend.kind {
        BackendKind::Embedded => Arc::new(archipelago_embedded::directory(store.unwrap_or_default(), timer)),
    }
}

fn node_settings(settings: &Settings) -> NodeSettings {
    let mut node = NodeSettings::default();
    node.name.clone_from(&settings.node.name);
    node.roles = settings.node.roles.iter().cloned().collect();
    node.data_arbiters = settings.node.data_arbiters.map(u16::from);
    node.stop_budget = Millis::from_duration(settings.node.stop_budget);
    node.call_timeout = Millis::from_duration(settings.calls.timeout);
    node.inbox = bound(settings.calls.inbox.get());
    node.pending_calls = bound(settings.calls.pending.get());
    node.ingress = bound(settings.calls.ingress.get());
    node.idle_after = idle(settings.actors.idle_after);
    node.idle_after_by_kind = settings
        .actors
        .kinds
        .iter()
        .filter_map(|(kind, own)| Some((kind.clone(), idle(own.idle_after?))))
        .collect();
    node.event_queue = bound(settings.events.subscriber_queue.get());
    node.session_ttl = Millis::from_duration(settings.session.ttl());
    node.session_heartbeat = Millis::from_duration(settings.session.heartbeat());
    node.activate_timeout = Millis::from_duration(settings.actors.activate_timeout);
    node.deactivate_timeout = Millis::from_duration(settings.actors.deactivate_timeout);
    node
}

fn bound(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

fn idle(after: Idle) -> Millis {
    match after {
        Idle::After(length) => Millis::from_duration(length),
        Idle::Never => Millis::MAX,
    }
}
