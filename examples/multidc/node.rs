//! One node: how it is told to be part of its datacenter, and what is asked of it.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use archipelago::datacenter::{DataCenterId, DataCenterMap, DataCenterState, NoCandidate};
use archipelago::identity::NodeAddress;
use archipelago::prelude::*;
use archipelago::{Builder, Event, Notice, PlaceError};
use serde::{Deserialize, Serialize};

use crate::actors::{Answer, Ledger, Touch};

/// Keys of the configuration and their values.
pub(crate) type Settings = Vec<(String, String)>;

/// What a touch came to, and how long it took.
pub(crate) type Touched = (Result<Answer, Failed>, Duration);

/// A touch that came to nothing.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Failed {
    /// The error is one of those that say that nobody answers there.
    pub(crate) out_of_reach: bool,
    pub(crate) said: String,
}

/// Where an actor was placed, or why not.
pub(crate) type Placed = Result<String, Refused>;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Refused {
    pub(crate) why: Why,
    pub(crate) said: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Why {
    /// Whoever fits takes nothing new.
    NotActive,
    /// The map is old.
    Stale,
    Another,
}

impl From<CallError> for Failed {
    fn from(error: CallError) -> Self {
        let out_of_reach = matches!(
            error,
            CallError::Unreachable { .. }
                | CallError::NoRoute { .. }
                | CallError::ConnectionLost { .. }
                | CallError::Timeout { .. }
        );
        Self { out_of_reach, said: error.to_string() }
    }
}

/// What a node sees of the datacenters, and has seen.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) map: DataCenterMap,
    /// Where others are told to reach it.
    pub(crate) address: Option<NodeAddress>,
    /// How often it has begun to speak for its datacenter.
    pub(crate) takeovers: usize,
    /// Those that it has ever found to be down, in order.
    pub(crate) downs: Vec<String>,
}

impl Report {
    /// Whether a datacenter is active and reached at exactly these addresses.
    pub(crate) fn reaches(&self, name: &str, addresses: &[NodeAddress]) -> bool {
        let id = DataCenterId::new(name).ok();
        id.and_then(|id| self.map.get(&id)).is_some_and(|entry| {
            let told = entry.info.endpoints();
            let same = told.len() == addresses.len() && told.iter().all(|one| addresses.contains(one));
            same && entry.standing == DataCenterState::Active
        })
    }

    /// Where a datacenter stands.
    pub(crate) fn standing(&self, name: &str) -> Option<DataCenterState> {
        DataCenterId::new(name).ok().and_then(|id| self.map.get(&id).map(|entry| entry.standing))
    }
}

/// What every node is told, wherever its directory is.
pub(crate) fn settings(town: &str, tier: &str, node: &str, certificates: &Path) -> Settings {
    let certificates = certificates.display().to_string();
    let own = [
        ("namespace", "atlas"),
        ("node.name", node),
        ("transport.kind", "quic"),
        ("transport.bind", "127.0.0.1:0"),
        ("transport.development", &certificates),
        ("datacenter.name", town),
        ("datacenter.labels.tier", tier),
        ("control_plane.lease_ttl", "6s"),
        ("datacenter.heartbeat", "2s"),
        ("datacenter.refresh", "2s"),
        ("datacenter.leader_check", "300ms"),
        ("datacenter.max_staleness", "4s"),
        ("session.ttl", "3s"),
        ("session.heartbeat", "900ms"),
        ("membership.leader", "oldest"),
    ];
    own.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// A node in the making.
pub(crate) fn builder(settings: &[(String, String)]) -> Builder {
    let name = settings.iter().find(|(key, _)| key == "node.name");
    let name = name.map_or_else(String::new, |(_, name)| name.clone());
    let builder = settings.iter().fold(Node::builder(), |builder, (key, value)| builder.set(key, value));
    builder.actor_with(move |_, _| Ledger::on(&name))
}

/// A node that runs, and what it has noticed.
#[derive(Clone)]
pub(crate) struct Watched {
    pub(crate) node: Node,
    noticed: Arc<Mutex<Report>>,
}

impl Watched {
    /// Listens to the node from now on, on the thread of the caller.
    pub(crate) fn new(node: Node) -> Self {
        let noticed = Arc::<Mutex<Report>>::default();
        actix::spawn(listen(node.clone(), Arc::clone(&noticed)));
        Self { node, noticed }
    }

    pub(crate) async fn touch(&self, key: &str) -> Touched {
        let began = Instant::now();
        let answer = self.node.actor::<Ledger>(key).send(Touch).await;
        (answer.map_err(Failed::from), began.elapsed())
    }

    pub(crate) async fn place(&self, target: &str, key: &str) -> Placed {
        let placed = self.node.spawn_in(target, Ledger::KIND, key).await;
        placed.map(|placed| placed.datacenter.to_string()).map_err(|error| Refused {
            why: match &error {
                PlaceError::NoCandidate(NoCandidate::NotActive { .. }) => Why::NotActive,
                PlaceError::NoCandidate(NoCandidate::Stale) => Why::Stale,
                _ => Why::Another,
            },
            said: error.to_string(),
        })
    }

    pub(crate) fn report(&self) -> Report {
        let mut report = self.noticed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        report.map = DataCenterMap::clone(&self.node.datacenters());
        report.address = Some(self.node.address());
        report
    }
}

async fn listen(node: Node, noticed: Arc<Mutex<Report>>) {
    let mut events = node.events().subscribe();
    while let Some(notice) = events.next().await {
        let mut noticed = noticed.lock().unwrap_or_else(PoisonError::into_inner);
        match notice {
            Notice::Event(Event::ControllerTaken { .. }) => noticed.takeovers += 1,
            Notice::Event(Event::DataCenterDown { datacenter }) => noticed.downs.push(datacenter.to_string()),
            _ => {}
        }
    }
}
