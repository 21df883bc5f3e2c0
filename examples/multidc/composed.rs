//! What the story knows of the containers of `config/compose.yaml` (profile `multidc`): where they wait for orders, where their
//! stores are, and which cable leads where. Nobody in a container can pull a cable, so the story says how docker is told to.

use std::path::{Path, PathBuf};

use crate::backend::{Kind, Outside};
use crate::node::Settings;

/// The containers that wait in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Containers {
    pub(crate) folder: PathBuf,
    cables: Vec<Cable>,
}

/// What ties a container to the network between the datacenters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cable {
    name: String,
    container: String,
    network: String,
    address: String,
}

impl Containers {
    /// Those that the environment of this container tells of.
    pub(crate) fn in_folder(folder: &str) -> Result<Self, String> {
        let read = |name: &str| std::env::var(name).map_err(|error| format!("{name}: {error}"));
        Ok(Self { folder: folder.into(), cables: cables(&read(PROJECT)?, &read(WAN)?)? })
    }

    /// The cables of these containers.
    pub(crate) fn cables(&self, names: &[&str]) -> Vec<Cable> {
        self.cables.iter().filter(|cable| names.contains(&cable.name.as_str())).cloned().collect()
    }

    /// Where all nodes find their certificates.
    pub(crate) fn certificates(&self) -> PathBuf {
        Path::join(&self.folder, "certificates")
    }

    /// What a node is told about its network and the stores: those names mean something to every container.
    pub(crate) fn settings(&self, town: &str, node: &str) -> Settings {
        let store = Outside { kind: Kind::Nats, endpoint: "nats://store:4222".to_owned() };
        let mut settings = store.settings(town, Some("registry:4222"));
        let own = [("transport.bind", "0.0.0.0:0"), ("transport.advertise", node)];
        settings.extend(own.map(|(key, value)| (key.to_owned(), value.to_owned())));
        settings
    }
}

impl Cable {
    /// How it is pulled.
    pub(crate) fn pull(&self) -> String {
        format!("docker network disconnect {} {}", self.network, self.container)
    }

    /// How it is put back: the container gets its old address.
    pub(crate) fn plug(&self) -> String {
        format!("docker network connect --ip {} {} {}", self.address, self.network, self.container)
    }
}

/// Reads `north-1=10.0.0.11 north-2=10.0.0.12`.
fn cables(project: &str, addresses: &str) -> Result<Vec<Cable>, String> {
    let cable = |text: &str| {
        let (name, address) = text.split_once('=')?;
        Some(Cable {
            name: name.to_owned(),
            container: format!("{project}-{name}"),
            network: format!("{project}_wan"),
            address: address.to_owned(),
        })
    };
    let cables: Option<Vec<Cable>> = addresses.split_whitespace().map(cable).collect();
    cables.ok_or_else(|| format!("{WAN}: {addresses:?} is not a list of NAME=ADDRESS"))
}

/// What the names of containers and networks begin with: how compose calls the whole.
const PROJECT: &str = "MULTIDC_PROJECT";
/// The addresses on the network between the datacenters.
const WAN: &str = "MULTIDC_WAN";
