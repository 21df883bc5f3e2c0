//! Datacenters of member processes that know each other from a registry in a real store.

use std::time::{Duration, Instant};

use archipelago::datacenter::DataCenterState;
use tempfile::TempDir;

use crate::abroad::Report;
use crate::journal::Journals;
use crate::member::{MemberProcess, Settings};
use crate::store::{Scale, Store};

/// How long a datacenter counts as active after its last heartbeat, in these tests.
pub const LEASE: Duration = Duration::from_secs(6);

/// The nodes of one datacenter, each in a process of its own.
pub struct DataCenter {
    /// Its name and id.
    pub name: &'static str,
    /// Its nodes that run.
    pub nodes: Vec<MemberProcess>,
    /// How many more nodes it has, outside of these processes, that never lead.
    pub others: usize,
    program: String,
    settings: Settings,
    environment: Settings,
    folder: TempDir,
}

/// What nodes are told so that they are one datacenter, whose directory is in `directory` and whose registry in `registry`.
pub fn settings_of(name: &str, directory: &Store, registry: &Store) -> Settings {
    let scale = Scale { long: false, ..Scale::of_this_run() };
    let mut settings = directory.settings_apart(name, scale);
    settings.extend(registry.registry_settings());
    settings.extend(plain_settings(name));
    settings
}

/// What nodes of a datacenter are told, wherever its directory and its registry are.
pub fn plain_settings(name: &str) -> Settings {
    let own = [
        ("namespace", "shop"),
        ("membership.leader", "oldest"),
        ("datacenter.name", name),
        ("datacenter.heartbeat", "2s"),
        ("datacenter.refresh", "2s"),
        ("datacenter.leader_check", "300ms"),
        ("datacenter.max_staleness", "4s"),
        ("control_plane.lease_ttl", "6s"),
    ];
    own.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec()
}

impl DataCenter {
    /// Starts so many nodes, one after the other, and waits until they see each other. The first leads, and speaks for all.
    ///
    /// # Panics
    ///
    /// If they do not within 30 s.
    pub fn start(program: &str, name: &'static str, settings: &Settings, nodes: usize) -> Self {
        Self::start_in(&Vec::new(), program, name, settings, nodes)
    }

    /// The same, with these variables in the environment of each node.
    ///
    /// # Panics
    ///
    /// If they do not see each other within 30 s.
    pub fn start_in(
        environment: &Settings,
        program: &str,
        name: &'static str,
        settings: &Settings,
        nodes: usize,
    ) -> Self {
        let folder = tempfile::Builder::new().prefix("archipelago-test-").tempdir();
        let folder = folder.expect("the temporary folder can be written");
        let (program, settings, environment) = (program.to_owned(), settings.clone(), environment.clone());
        let mut datacenter =
            Self { name, nodes: Vec::new(), others: 0, program, settings, environment, folder };
        datacenter.add();
        until("the first node speaks for its datacenter", Duration::from_secs(30), || {
            datacenter.sees(name, DataCenterState::Active)
        });
        (1..nodes).for_each(|_| datacenter.add());
        until("the nodes of a datacenter see each other", Duration::from_secs(30), || datacenter.is_whole());
        datacenter
    }

    /// Starts one more node.
    ///
    /// # Panics
    ///
    /// If it does not serve.
    pub fn add(&mut self) {
        self.add_with(&Settings::new());
    }

    /// Starts one more node, with settings of its own besides those of all.
    ///
    /// # Panics
    ///
    /// If it does not serve.
    pub fn add_with(&mut self, own: &Settings) {
        let settings = [&self.settings[..], own].concat();
        let folder = self.folder.path();
        let node = MemberProcess::start_in(&self.environment, &self.program, &settings, folder);
        self.nodes.push(node);
    }

    /// Whether its nodes that run see each other and nobody else, and one of them leads.
    pub fn is_whole(&mut self) -> bool {
        let ids: Vec<_> = self.nodes.iter_mut().map(MemberProcess::present_id).collect();
        let count = ids.len() + self.others;
        self.all(|report| report.members == count && report.leader.is_some_and(|one| ids.contains(&one)))
    }

    /// Whether this holds of all its nodes.
    pub fn all(&mut self, holds: impl Fn(&Report) -> bool) -> bool {
        self.nodes.iter_mut().all(|node| holds(&node.report()))
    }

    /// Whether all its nodes see a datacenter stand there.
    pub fn sees(&mut self, datacenter: &str, standing: DataCenterState) -> bool {
        self.all(|report| report.standing(datacenter) == Some(standing))
    }

    /// Takes its leader out, still running.
    ///
    /// # Panics
    ///
    /// If nobody leads.
    pub fn take_leader(&mut self) -> MemberProcess {
        let leader = self.nodes[0].report().leader;
        let at = self.nodes.iter_mut().position(|node| Some(node.present_id()) == leader);
        self.nodes.remove(at.expect("one of the nodes leads"))
    }

    /// Kills all nodes at once.
    pub fn kill(&mut self) {
        self.nodes.iter_mut().for_each(MemberProcess::kill);
    }

    /// What its nodes have noted so far.
    pub fn journals(&self) -> Journals {
        Journals::read(self.folder.path())
    }
}

/// Waits until `holds`, and says how long that took.
///
/// # Panics
///
/// If it takes longer than `limit`.
pub fn until(what: &str, limit: Duration, mut holds: impl FnMut() -> bool) -> Duration {
    let since = Instant::now();
    while !holds() {
        assert!(since.elapsed() < limit, "not within {limit:?}: {what}");
        std::thread::sleep(LOOK);
    }
    since.elapsed()
}

const LOOK: Duration = Duration::from_millis(20);
