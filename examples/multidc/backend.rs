//! Where the datacenters keep their directories and their registry, as the command line says.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

use crate::composed::Containers;
use crate::dashboard;
use crate::node::Settings;

/// Where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Backend {
    /// In the memory of this process; each node is a thread.
    Embedded,
    /// In a store that runs already; each node is a process.
    Outside(Outside),
    /// In a store per datacenter, and one for the registry; each node is a container that waits to be told.
    Containers(Containers),
}

/// A store that runs already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outside {
    pub(crate) kind: Kind,
    pub(crate) endpoint: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Etcd,
    Nats,
    FoundationDb,
}

impl Backend {
    /// What the arguments ask for.
    pub(crate) fn asked_for(arguments: &[String]) -> Result<Self, String> {
        let (mut kind, mut endpoint, mut containers) = (None, None, None);
        let mut rest = arguments.iter().map(String::as_str);
        while let Some(option) = rest.next() {
            if option == dashboard::OPTION {
                continue;
            }
            let value = rest.next().ok_or_else(|| format!("{option} needs a value\n{USAGE}"))?;
            match option {
                "--backend" => kind = Some(value),
                "--endpoint" => endpoint = Some(value.to_owned()),
                "--containers" => containers = Some(value),
                _ => return Err(format!("there is no {option}\n{USAGE}")),
            }
        }
        if let Some(folder) = containers {
            return Containers::in_folder(folder).map(Self::Containers);
        }
        let kind = match kind {
            None if endpoint.is_some() => return Err(format!("--endpoint needs --backend\n{USAGE}")),
            None | Some("embedded") => return Ok(Self::Embedded),
            Some("etcd") => Kind::Etcd,
            Some("nats") => Kind::Nats,
            Some("foundationdb") => Kind::FoundationDb,
            Some(other) => return Err(format!("there is no backend {other:?}\n{USAGE}")),
        };
        let outside =
            Outside { kind, endpoint: endpoint.unwrap_or_else(|| kind.usual_endpoint().to_owned()) };
        outside.check()?;
        Ok(Self::Outside(outside))
    }

    /// How many chapters the story has there.
    pub(crate) const fn chapters(&self) -> usize {
        match self {
            Self::Embedded | Self::Outside(_) => 7,
            // Only there are networks to be cut.
            Self::Containers(_) => 8,
        }
    }

    /// Where all nodes find their certificates.
    pub(crate) fn certificates(&self) -> PathBuf {
        match self {
            Self::Containers(containers) => containers.certificates(),
            _ => std::env::temp_dir().join(format!("{PREFIX}-{}", std::process::id())),
        }
    }
}

impl Outside {
    /// Whether this build can use it, and somebody answers.
    fn check(&self) -> Result<(), String> {
        let name = self.kind.name();
        if !self.kind.is_built() {
            let how = format!("cargo run --features {name} --example multidc -- --backend {name}");
            return Err(format!("this build cannot use {name}; one that can:\n\n  {how}"));
        }
        if self.kind == Kind::FoundationDb {
            let there = std::fs::exists(&self.endpoint).is_ok_and(|there| there);
            return if there { Ok(()) } else { Err(format!("there is no cluster file {}", self.endpoint)) };
        }
        let connected = self.server().and_then(|server| {
            TcpStream::connect_timeout(&server, Duration::from_secs(2)).map_err(|error| error.to_string())
        });
        connected.map(drop).map_err(|error| {
            let how = format!("docker compose -f config/compose.yaml --profile {name} up -d");
            format!(
                "no {name} answers at {}: {error}\nstart one, or name it with --endpoint:\n\n  {how}",
                self.endpoint
            )
        })
    }

    /// The address behind the endpoint.
    fn server(&self) -> Result<SocketAddr, String> {
        let address = self.endpoint.split_once("://").map_or(self.endpoint.as_str(), |(_, address)| address);
        let resolved = address.trim_end_matches('/').to_socket_addrs().map_err(|error| error.to_string())?;
        resolved.into_iter().next().ok_or_else(|| format!("{address} is no address"))
    }

    /// The address to which a road can lead; none where certificates or the store's own idea of addresses forbid it.
    pub(crate) fn plain_server(&self) -> Option<SocketAddr> {
        let plain = self.endpoint.starts_with("http://") || self.endpoint.starts_with("nats://");
        if plain { self.server().ok() } else { None }
    }

    /// What a node of `town` is told, with the registry at this address if it is not in the same server.
    pub(crate) fn settings(&self, town: &str, registry: Option<&str>) -> Settings {
        let scheme = self.endpoint.split_once("://").map_or("", |(scheme, _)| scheme);
        let registry =
            registry.map_or_else(|| self.endpoint.clone(), |address| format!("{scheme}://{address}"));
        let mut settings = self.place("backend", &self.endpoint, town);
        settings.extend(self.place("control_plane", &registry, "registry"));
        settings
    }

    /// A place within the store.
    fn place(&self, section: &str, endpoint: &str, name: &str) -> Settings {
        let kind = self.kind.name();
        let own = match self.kind {
            Kind::Etcd => {
                vec![("endpoints", format!("[\"{endpoint}\"]")), ("prefix", format!("/{PREFIX}/{name}"))]
            }
            Kind::Nats => vec![
                ("urls", format!("[\"{endpoint}\"]")),
                ("stream", format!("{PREFIX}-{name}")),
                ("prefix", format!("{PREFIX}-{name}")),
                ("replicas", "1".to_owned()),
                ("settle", "3500ms".to_owned()),
            ],
            Kind::FoundationDb => {
                vec![("cluster_file", endpoint.to_owned()), ("prefix", format!("{PREFIX}-{name}"))]
            }
        };
        let keyed = own.into_iter().map(|(key, value)| (format!("{section}.{kind}.{key}"), value));
        std::iter::once((format!("{section}.kind"), kind.to_owned())).chain(keyed).collect()
    }
}

impl Kind {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::Nats => "nats",
            Self::FoundationDb => "foundationdb",
        }
    }

    const fn usual_endpoint(self) -> &'static str {
        match self {
            Self::Etcd => "http://127.0.0.1:2379",
            Self::Nats => "nats://127.0.0.1:4222",
            Self::FoundationDb => "/etc/foundationdb/fdb.cluster",
        }
    }

    const fn is_built(self) -> bool {
        match self {
            Self::Etcd => cfg!(feature = "etcd"),
            Self::Nats => cfg!(feature = "nats"),
            Self::FoundationDb => cfg!(feature = "foundationdb"),
        }
    }
}

/// What everything that the example writes into a store begins with.
pub(crate) const PREFIX: &str = "archipelago-multidc";

const USAGE: &str = "usage: multidc [--dashboard] [--backend etcd|nats|foundationdb [--endpoint URL]]";
