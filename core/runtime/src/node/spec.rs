//! What a node is built from, and beginning a life of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

use archipelago_protocol::contract::{ControlPlane, Directory, Homes, RoutingTable, StateStore};
use archipelago_protocol::handoff::{HandoffLimits, ParcelRoom};
use archipelago_protocol::identity::{Kind, Namespace, NodeId};
use archipelago_protocol::ranges::TableSource;
use archipelago_protocol::session::times;
use tokio::sync::{mpsc, oneshot};

use super::{Gate, KindShared, Lives, NodeShared, StartError, guard, layouts};
use crate::arbiter::{self, ArbiterShared, Entry, Presence};
use crate::call::TraceBridge;
use crate::client::{self, ContactList};
use crate::cluster::Members;
use crate::datacenter::{Maps, RoundTrips, Searches};
use crate::env::{ArbiterMain, ArbiterRole, Departure, Environment, Shown, Stay, within};
use crate::events::EventStream;
use crate::named::NamedActors;
use crate::ranges::Ranges;
use crate::remote::{Connector, Locator, Remoting, Services};
use crate::session::{self, SessionState};
use crate::settings::NodeSettings;
use crate::tables::TableBoard;
use crate::watch::Watches;

/// Everything that outlives the lives of a node.
pub(super) struct Spec {
    pub(super) namespace: Namespace,
    pub(super) settings: NodeSettings,
    pub(super) data_arbiters: u16,
    pub(super) env: Arc<dyn Environment>,
    pub(super) traces: Option<Arc<dyn TraceBridge>>,
    pub(super) directory: Arc<dyn Directory>,
    pub(super) states: Option<Arc<dyn StateStore>>,
    pub(super) tables: Option<Arc<dyn TableSource>>,
    pub(super) routing_table: Option<Arc<dyn RoutingTable>>,
    /// Of a light client.
    pub(super) contacts: Option<Arc<ContactList>>,
    pub(super) kinds: Vec<Arc<KindShared>>,
    pub(super) locator: Arc<dyn Locator>,
    pub(super) services: Services,
    pub(super) connectors: Vec<Connector>,
    pub(super) events: EventStream,
    pub(super) named: Arc<NamedActors>,
    pub(super) datacenters: Arc<Maps>,
    pub(super) homes: Option<Arc<dyn Homes>>,
    pub(super) control_plane: Option<Arc<dyn ControlPlane>>,
}

/// One life of a node.
pub(super) struct Life {
    pub(super) node: Arc<NodeShared>,
    /// Complete once nothing of it runs.
    pub(super) departure: Departure,
    /// What it needs to begin.
    birth: Option<(Vec<mpsc::Receiver<Entry>>, Stay)>,
}

impl Spec {
    /// A life under a new id that has not begun. If the configuration leaves the choice of ports to the machine, it takes
    /// `ports` when they are free: those of the life before.
    pub(super) fn life(&self, lives: &Arc<Lives>, ports: Vec<u16>) -> Life {
        let new = |_| ArbiterShared::new(self.settings.ingress);
        let (arbiters, entries) = (0..self.data_arbiters).map(new).unzip();
        let by_name = |kind: &Arc<KindShared>| -> (Kind, u32) { (kind.kind().clone(), kind.index()) };
        let node = Arc::new(NodeShared {
            id: NodeId::new(self.env.random().max(1)),
            namespace: self.namespace.clone(),
            kinds_by_name: self.kinds.iter().map(by_name).collect::<BTreeMap<_, _>>(),
            kinds: self.kinds.clone(),
            arbiters,
            gate: Gate::default(),
            session: Shown::new(SessionState::Opening),
            events: self.events.clone(),
            named: Arc::clone(&self.named),
            remoting: Remoting::new(Arc::clone(&self.locator), usize::from(self.data_arbiters), ports),
            members: Members::default(),
            watches: Watches::new(self.settings.watches),
            parcels: Mutex::new(ParcelRoom::new(HandoffLimits::DEFAULT.parcel_room)),
            services: self.services.clone(),
            settings: self.settings.clone(),
            env: Arc::clone(&self.env),
            born: self.env.now(),
            traces: self.traces.clone(),
            directory: Arc::clone(&self.directory),
            states: self.states.clone(),
            contacts: self.contacts.clone(),
            tables: TableBoard::new(self.tables.clone()),
            ranges: Ranges::new(self.routing_table.clone()),
            datacenters: Arc::clone(&self.datacenters),
            searches: Searches::new(self.settings.discovery),
            round_trips: RoundTrips::new(&self.settings, &self.kinds),
            homes: self.homes.clone(),
            control_plane: self.control_plane.clone(),
            controller: OnceLock::new(),
            coordinator: OnceLock::new(),
            lives: Arc::clone(lives),
            successor: OnceLock::new(),
        });
        self.connectors.iter().for_each(|connector| connector.belongs_to(&node));
        let (stay, departure) = Stay::begin();
        Life { node, departure, birth: Some((entries, stay)) }
    }
}

impl Spec {
    /// Begins the first life. A store that gives no session yet is asked again, each time under a new id, for as long as a
    /// session that stands in the way may last.
    pub(super) async fn begin_first(&self) -> Result<(Life, Unfinished), StartError> {
        let (lives, ttl) = (Arc::new(Lives::new()), self.settings.session_ttl);
        let until = self.env.now() + times::observer_wait(ttl);
        let mut life = self.life(&lives, Vec::new());
        loop {
            let error = match life.begin().await {
                Ok(unfinished) => return Ok((life, unfinished)),
                Err(error) => error,
            };
            let left = until.since(self.env.now());
            let may_help = matches!(error, StartError::Session { .. }) && left > times::retry_delay(ttl);
            // Two lives of a node never run at once.
            if !may_help || within(&self.env, left, life.departure.complete()).await.is_none() {
                return Err(error);
            }
            tracing::warn!(%error, %left, "the node has no session yet and tries again");
            self.env.sleep(times::retry_delay(ttl)).await;
            life = self.life(&lives, life.node.remoting().ports());
        }
    }
}

impl Life {
    /// Opens the session and starts the arbiters. Dropping this, or what it returns, ends them again.
    pub(super) async fn begin(&mut self) -> Result<Unfinished, StartError> {
        let unfinished = Unfinished(Some(Arc::clone(&self.node)));
        let (entries, stay) = self.birth.take().unwrap_or_else(|| (Vec::new(), Stay::begin().0));
        session::start(&self.node, &stay).await?;
        session::opened(&self.node).await?;
        let settled = match self.node.contacts() {
            Some(contacts) => client::adopt_layouts(&self.node, contacts).await,
            None => layouts::settle(&self.node).await,
        };
        if let Err(error) = settled {
            session::close(&self.node).await;
            return Err(error);
        }
        for (index, entries) in (0_u16..).zip(entries) {
            if let Err(error) = start_arbiter(&self.node, index, entries, &stay).await {
                session::close(&self.node).await;
                return Err(error);
            }
        }
        // Nobody takes over from a client, so nothing has to end in time.
        if !self.node.is_client() {
            guard::stand_guard(&self.node)?;
        }
        Ok(unfinished)
    }
}

/// A start under way. If it is dropped, the session is given back: otherwise it would beat on for a node that nobody
/// has.
pub(super) struct Unfinished(Option<Arc<NodeShared>>);

impl Unfinished {
    /// Somebody has the node.
    pub(super) fn finish(mut self) {
        self.0 = None;
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(node) = &self.0 {
            session::begin_close(node);
        }
    }
}

async fn start_arbiter(
    node: &Arc<NodeShared>,
    index: u16,
    entries: mpsc::Receiver<Entry>,
    stay: &Stay,
) -> Result<(), StartError> {
    let role = ArbiterRole::Data(index);
    let (ready, is_ready) = oneshot::channel::<Result<(), StartError>>();
    let shared = Arc::clone(node);
    let main = ArbiterMain::new(move || Box::pin(arbiter::run(shared, index, entries, ready)));
    node.env().start_arbiter(role, main.holding(stay.clone()).holding(Presence::begin(node, index)))?;
    is_ready.await.unwrap_or_else(|_| Err(StartError::Arbiter { role: role.to_string() }))
}
