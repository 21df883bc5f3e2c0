//! The datacenters as they stand, and what all chapters do with them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use archipelago::datacenter::{ControlPlane, DataCenterState};
use archipelago::embedded::{EmbeddedStore, control_plane};
use archipelago::prelude::*;

use crate::backend::{Backend, Outside, PREFIX};
use crate::composed::{Cable, Containers};
use crate::container::reach;
use crate::dashboard::Dashboard;
use crate::node::{Settings, builder, settings};
use crate::plane::Switched;
use crate::process::NodeProcess;
use crate::road::Road;
use crate::running::{Body, Running, Town};
use crate::tally::Tally;
use crate::thread::NodeThread;
use crate::view::View;

pub(crate) struct Stage<'a> {
    pub(crate) view: &'a mut View,
    pub(crate) tally: Tally,
    pub(crate) registry: Registry,
    pub(crate) towns: Vec<Town>,
    /// What ties the west to the others; nothing where they share one machine.
    pub(crate) cables: Vec<Cable>,
    /// Those that have been out of reach, so that others may say so.
    pub(crate) excused: Vec<&'static str>,
    /// How long anything may take.
    pub(crate) patience: Duration,
    certificates: PathBuf,
    dashboard: Option<Dashboard>,
}

/// The way to the control plane.
pub(crate) enum Registry {
    /// It is in this process.
    Ours(Arc<Switched>),
    /// It is in somebody's server, at the end of this road.
    Along(Road),
    /// It is in a container, on the network between the datacenters.
    Cabled(Vec<Cable>),
    /// It is in somebody's server, and nodes go there by themselves.
    Theirs,
}

impl<'a> Stage<'a> {
    /// Starts all nodes.
    pub(crate) async fn set(
        view: &'a mut View,
        backend: Backend,
        dashboard: Option<Dashboard>,
    ) -> Result<Self, BoxError> {
        let certificates = backend.certificates();
        std::fs::create_dir_all(&certificates)?;
        let registry = Registry::of(&backend)?;
        introduce(&backend);
        view.chapter("three datacenters register");
        let run = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let mut towns = Vec::new();
        for (name, tier) in [("north", "silver"), ("south", "silver"), ("west", "gold")] {
            view.line(&format!("{name} starts two nodes"));
            let found =
                Founding { name, tier, certificates: &certificates, registry: &registry, run, dashboard };
            towns.push(match &backend {
                Backend::Embedded => found.threads().await?,
                Backend::Outside(outside) => found.processes(outside).await?,
                Backend::Containers(containers) => found.containers(containers).await?,
            });
            if let Some(dashboard) = dashboard.filter(|_| towns.len() == 1) {
                view.line(&format!("the dashboard is at {}", dashboard.url()));
            }
        }
        let (cables, patience) = match &backend {
            Backend::Containers(containers) => (containers.cables(&["west-1", "west-2"]), PERSONS_PATIENCE),
            _ => (Vec::new(), PATIENCE),
        };
        let (tally, excused) = (Tally::default(), Vec::new());
        Ok(Self { view, tally, registry, towns, cables, excused, patience, certificates, dashboard })
    }

    /// All chapters.
    pub(crate) async fn play(&mut self) {
        self.register().await;
        self.call().await;
        self.place().await;
        if !self.cut_off().await {
            return;
        }
        self.lose_a_leader().await;
        self.lose_a_datacenter().await;
        self.lose_the_control_plane().await;
        self.drain().await;
        if let Some(dashboard) = self.dashboard {
            dashboard.stay(self.view, &self.nodes().collect::<Vec<_>>()).await;
        }
        for running in std::mem::take(&mut self.towns).into_iter().flat_map(|town| town.nodes) {
            let stopped = running.stop().await;
            self.view.promise(stopped.is_ok(), "a node that is left stops in good order");
        }
        // Nobody needs them any more.
        drop(std::fs::remove_dir_all(&self.certificates));
    }

    pub(crate) fn nodes(&self) -> impl Iterator<Item = &Running> {
        self.towns.iter().flat_map(|town| &town.nodes)
    }

    pub(crate) fn town(&self, name: &str) -> Option<&Town> {
        self.towns.iter().find(|town| town.name == name)
    }

    pub(crate) fn take_town(&mut self, name: &str) -> Option<Town> {
        let at = self.towns.iter().position(|town| town.name == name)?;
        Some(self.towns.remove(at))
    }

    pub(crate) fn all_see(&self, name: &str, standing: DataCenterState) -> bool {
        self.nodes().all(|one| one.sees(name, standing))
    }

    /// Who has found whom to be down, those aside that have been.
    pub(crate) fn downs(&self) -> Vec<String> {
        let of = |one: &Running| {
            let downs = one.report().downs.into_iter().filter(|name| !self.excused.contains(&name.as_str()));
            downs.map(|down| format!("{} has found {down} to be down", one.name)).collect::<Vec<_>>()
        };
        self.nodes().flat_map(of).collect()
    }

    /// Says who, if anybody has.
    pub(crate) fn tell_downs(&self) {
        self.downs().iter().for_each(|line| self.view.line(line));
    }

    pub(crate) fn show(&self, town: &str) {
        if let Some(running) = self.town(town).and_then(|town| town.nodes.first()) {
            self.view.map(&running.name, &running.report());
        }
    }

    /// Waits until `holds`, as long as patience lasts; how long it took.
    pub(crate) async fn until(&self, what: &str, mut holds: impl FnMut(&Self) -> bool) -> Option<Duration> {
        let began = Instant::now();
        while !holds(self) {
            if began.elapsed() > self.patience {
                self.view.waited();
                return None;
            }
            self.view.waiting(what, began);
            actix::clock::sleep(Duration::from_millis(50)).await;
        }
        self.view.waited();
        Some(began.elapsed())
    }
}

impl Registry {
    fn of(backend: &Backend) -> Result<Self, BoxError> {
        Ok(match backend {
            Backend::Embedded => {
                Self::Ours(Switched::new(control_plane(Arc::new(EmbeddedStore::default()), LEASE)))
            }
            Backend::Outside(outside) => match outside.plain_server() {
                Some(server) => Self::Along(Road::to(server)?),
                None => Self::Theirs,
            },
            Backend::Containers(containers) => Self::Cabled(containers.cables(&["registry"])),
        })
    }

    /// Takes it away; whether that is possible.
    pub(crate) fn away(&self, view: &View) -> bool {
        match self {
            Self::Cabled(cables) => cables.iter().for_each(|cable| view.ask(&cable.pull())),
            Self::Ours(plane) => plane.switch(false),
            Self::Along(road) => road.cut(),
            Self::Theirs => return false,
        }
        true
    }

    /// Brings it back.
    pub(crate) fn back(&self, view: &View) {
        match self {
            Self::Cabled(cables) => cables.iter().for_each(|cable| view.ask(&cable.plug())),
            Self::Ours(plane) => plane.switch(true),
            Self::Along(road) => road.mend(),
            Self::Theirs => {}
        }
    }
}

/// Says what is about to be seen.
fn introduce(backend: &Backend) {
    match backend {
        Backend::Embedded => println!("archipelago: three datacenters of two nodes each, in one process"),
        Backend::Outside(outside) => {
            println!("archipelago: three datacenters of two nodes each, a process per node");
            println!("directories and registry are in {} at {},", outside.kind.name(), outside.endpoint);
            println!("where all names begin with {PREFIX}; what is there stays for the next run");
        }
        Backend::Containers(_) => {
            println!("archipelago: three datacenters of two nodes each, a container per node");
            println!(
                "each datacenter has a network and a NATS server of its own; another network leads from each to"
            );
            println!(
                "each and to the registry. What begins with \"do\" is for you: nothing in here can pull a cable"
            );
        }
    }
    println!("leases of 6 s and heartbeats every 2 s (by default they are 30 s and 10 s), sessions of 3 s,");
    println!("QUIC with certificates made just now");
}

/// A datacenter that is about to be.
struct Founding<'a> {
    name: &'static str,
    tier: &'static str,
    certificates: &'a Path,
    registry: &'a Registry,
    run: u64,
    dashboard: Option<Dashboard>,
}

impl Founding<'_> {
    /// Starts the nodes as threads, one after the other: the first leads.
    async fn threads(self) -> Result<Town, BoxError> {
        let Registry::Ours(plane) = self.registry else { return Err("the registry is elsewhere".into()) };
        let (store, mut nodes) = (Arc::new(EmbeddedStore::default()), Vec::new());
        for node in self.names() {
            let settings = self.settings(&node);
            let (plane, store) = (Arc::clone(plane) as Arc<dyn ControlPlane>, Arc::clone(&store));
            let build = move || {
                let builder = builder(&settings).set("control_plane.kind", "embedded");
                let builder = builder.set("fence.on_stuck", "report").on_current_arbiter();
                builder.embedded_store(store).control_plane(plane)
            };
            let body = Body::Thread(NodeThread::start(&node, build).await?);
            nodes.push(self.settled(Running { name: node, body, run: self.run }).await);
        }
        Ok(Town { name: self.name, tier: self.tier, nodes })
    }

    /// The same as processes.
    async fn processes(self, outside: &Outside) -> Result<Town, BoxError> {
        let road = match self.registry {
            Registry::Along(road) => Some(road.address.to_string()),
            _ => None,
        };
        let places = outside.settings(self.name, road.as_deref());
        let start = |_: &str, settings: Settings| {
            NodeProcess::start(&[settings, places.clone()].concat()).map(Body::Process)
        };
        self.each(start).await
    }

    /// The same in containers, which wait for it.
    async fn containers(self, containers: &Containers) -> Result<Town, BoxError> {
        let start = |node: &str, settings: Settings| {
            let settings = [settings, containers.settings(self.name, node)].concat();
            reach(&containers.folder, node, &settings).map(Body::Container)
        };
        self.each(start).await
    }

    async fn each(&self, start: impl Fn(&str, Settings) -> Result<Body, BoxError>) -> Result<Town, BoxError> {
        let mut nodes = Vec::new();
        for node in self.names() {
            let settings = self.settings(&node);
            let body = start(&node, settings).map_err(|error| format!("{node} does not start: {error}"))?;
            nodes.push(self.settled(Running { name: node, body, run: self.run }).await);
        }
        Ok(Town { name: self.name, tier: self.tier, nodes })
    }

    /// Waits until the datacenter of a node is up for it, so that the first node is the one that speaks for it.
    async fn settled(&self, running: Running) -> Running {
        let began = Instant::now();
        while !running.sees(self.name, DataCenterState::Active) && began.elapsed() < PATIENCE {
            actix::clock::sleep(Duration::from_millis(20)).await;
        }
        running
    }

    fn settings(&self, node: &str) -> Settings {
        let of_dashboard = self.dashboard.map(|dashboard| dashboard.settings(node)).unwrap_or_default();
        [settings(self.name, self.tier, node, self.certificates), of_dashboard].concat()
    }

    fn names(&self) -> [String; 2] {
        [1, 2].map(|number| format!("{}-{number}", self.name))
    }
}

pub(crate) const LEASE: Duration = Duration::from_secs(6);
const PATIENCE: Duration = Duration::from_secs(20);
/// Where somebody may have to type.
const PERSONS_PATIENCE: Duration = Duration::from_secs(60);
