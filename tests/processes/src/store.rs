//! The real stores that the clusters of these tests stand on, and how long a run takes.

use std::net::IpAddr;
use std::time::Duration;

use archipelago_test_servers::ServerProcess;
use archipelago_test_servers::etcd::EtcdServer;
use archipelago_test_servers::nats;
use archipelago_test_servers::process::LOOPBACK;

use crate::member::Settings;

/// A real store of one server that may be hurt.
pub enum Store {
    /// etcd 3.4.
    Etcd(EtcdServer),
    /// NATS JetStream, whose acknowledged writes are on disk.
    Nats(ServerProcess),
}

impl Store {
    /// An etcd; none if there is no program, which has been said.
    pub fn etcd() -> Option<Self> {
        EtcdServer::to_hurt().map(Self::Etcd)
    }

    /// A NATS server; none if there is no program, which has been said.
    pub fn nats() -> Option<Self> {
        nats::program().map(|program| Self::Nats(nats::start_durable_at(program, LOOPBACK)))
    }

    /// An etcd at an address of this namespace; none if there is no program, which has been said.
    pub fn etcd_at(host: IpAddr) -> Option<Self> {
        EtcdServer::to_hurt_at(host).map(Self::Etcd)
    }

    /// A NATS server at an address of this namespace; none if there is no program, which has been said.
    pub fn nats_at(host: IpAddr) -> Option<Self> {
        nats::program().map(|program| Self::Nats(nats::start_durable_at(program, host)))
    }

    /// How a node is told to use it, with sessions of 3 s or, in a [long run](Scale), as long as the backend has them.
    pub fn settings(&self, scale: Scale) -> Settings {
        let own = match self {
            Self::Etcd(server) => vec![
                ("backend.kind", "etcd".to_owned()),
                ("backend.etcd.endpoints", format!("[\"{}\"]", server.address())),
                ("backend.etcd.prefix", "/faults".to_owned()),
            ],
            Self::Nats(server) => vec![
                ("backend.kind", "nats".to_owned()),
                ("backend.nats.urls", format!("[\"{}\"]", nats::url(server))),
                ("backend.nats.replicas", "1".to_owned()),
                ("backend.nats.settle", if scale.long { "15s" } else { "3500ms" }.to_owned()),
            ],
        };
        let brief = [("session.ttl", "3s".to_owned()), ("session.heartbeat", "900ms".to_owned())];
        let session = brief.into_iter().filter(|_| !scale.long);
        own.into_iter().chain(session).map(|(key, value)| (key.to_owned(), value)).collect()
    }

    /// The same, in a place of its own: for clusters that share the server.
    pub fn settings_apart(&self, place: &str, scale: Scale) -> Settings {
        let mut settings = self.settings(scale);
        settings.extend(match self {
            Self::Etcd(_) => vec![("backend.etcd.prefix".to_owned(), format!("/{place}"))],
            Self::Nats(_) => vec![
                ("backend.nats.stream".to_owned(), place.to_owned()),
                ("backend.nats.prefix".to_owned(), place.to_owned()),
            ],
        });
        settings
    }

    /// How a node is told that the registry of datacenters is here.
    pub fn registry_settings(&self) -> Settings {
        let own = match self {
            Self::Etcd(server) => vec![
                ("control_plane.kind", "etcd".to_owned()),
                ("control_plane.etcd.endpoints", format!("[\"{}\"]", server.address())),
                ("control_plane.etcd.prefix", format!("/{REGISTRY}")),
            ],
            Self::Nats(server) => vec![
                ("control_plane.kind", "nats".to_owned()),
                ("control_plane.nats.urls", format!("[\"{}\"]", nats::url(server))),
                ("control_plane.nats.stream", REGISTRY.to_owned()),
                ("control_plane.nats.prefix", REGISTRY.to_owned()),
                ("control_plane.nats.replicas", "1".to_owned()),
                ("control_plane.nats.settle", "3500ms".to_owned()),
            ],
        };
        own.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }

    /// How long a session lasts with these settings.
    pub fn ttl(&self, scale: Scale) -> Duration {
        Duration::from_secs(match self {
            _ if !scale.long => 3,
            Self::Etcd(_) => 6,
            Self::Nats(_) => 12,
        })
    }

    /// What it is called in figures.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Etcd(_) => "etcd",
            Self::Nats(_) => "nats",
        }
    }

    /// The server, to hurt it.
    pub fn server(&mut self) -> &mut ServerProcess {
        match self {
            Self::Etcd(server) => server,
            Self::Nats(server) => server,
        }
    }
}

/// Where in a store the registry of datacenters is.
pub(crate) const REGISTRY: &str = "registry";

/// How much is asked of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Whether it is part of a soak: sessions last as long as users have them.
    pub long: bool,
    /// How often what is repeated is.
    pub repetitions: u32,
    /// How long a cluster is kept busy.
    pub busy: Duration,
}

impl Scale {
    /// That of every change; `ARCHIPELAGO_TEST_SOAK=<repetitions>` makes it long: half a minute of work for each.
    ///
    /// # Panics
    ///
    /// If the variable is not a number.
    pub fn of_this_run() -> Self {
        match std::env::var("ARCHIPELAGO_TEST_SOAK") {
            Ok(text) if !text.is_empty() => {
                let repetitions: u32 = text.parse().expect("ARCHIPELAGO_TEST_SOAK is a number");
                Self { long: true, repetitions, busy: Duration::from_secs(30) * repetitions }
            }
            _ => Self { long: false, repetitions: 3, busy: Duration::from_secs(60) },
        }
    }
}

/// Shows a line that a soak keeps. On stderr, where it begins a line of its own.
pub fn figure(name: &str, value: impl std::fmt::Display) {
    eprintln!("figure {name} {value}");
}
