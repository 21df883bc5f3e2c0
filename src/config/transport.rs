//! `[transport]`: how this node reaches others, and what the two sides prove to each other.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use archipelago_protocol::identity::{NodeAddress, NodeAddressError};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use super::conflict::Conflict;
use super::optional;

/// `[transport]`: how this node reaches others. Paths are relative to the working directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct TransportSettings {
    /// Over what, if at all.
    pub kind: TransportKind,
    /// Where the node listens; the arbiters that run actors listen at the ports that follow. Port 0 lets the system
    /// choose.
    pub bind: NodeAddress,
    /// The host that other nodes are told to dial, if it is not that of `bind`.
    #[serde(with = "optional")]
    pub advertise: Option<Host>,
    /// Plain TCP: nothing is encrypted and anybody can be any node. For a network that nobody else can reach.
    pub insecure: bool,
    /// The certificates of the authorities that are believed.
    #[serde(with = "optional")]
    pub ca: Option<PathBuf>,
    /// The certificate of this node.
    #[serde(with = "optional")]
    pub certificate: Option<PathBuf>,
    /// The private key of this node.
    #[serde(with = "optional")]
    pub key: Option<PathBuf>,
    /// The name that the certificate of every node carries.
    pub server_name: String,
    /// A directory with an authority for development, made there if it is not; instead of the three files.
    #[serde(with = "optional")]
    pub development: Option<PathBuf>,
}

impl TransportSettings {
    /// True if `address` leads to this node.
    pub(crate) fn is_own(&self, address: &NodeAddress) -> bool {
        let advertised = self.advertise.as_ref().map(Host::as_str);
        address.port() == self.bind.port()
            && (address.host() == self.bind.host() || Some(address.host()) == advertised)
    }

    /// What the two sides of a connection prove to each other; none without a transport.
    ///
    /// # Errors
    ///
    /// The rule between the keys that is broken.
    pub(crate) fn security(&self) -> Result<Option<Security<'_>>, Conflict> {
        let proof = self.proof()?;
        match (self.kind, self.insecure, proof) {
            (TransportKind::None | TransportKind::Own, ..) => Ok(None),
            (TransportKind::Quic, true, _) => Err(Conflict::InsecureQuic),
            (TransportKind::Tcp, true, Some(_)) => Err(Conflict::InsecureWithCertificates),
            (TransportKind::Tcp, true, None) => Ok(Some(Security::Plain)),
            (kind, false, None) => Err(Conflict::NoCertificates { kind }),
            (_, false, Some(proof)) => Ok(Some(Security::Proven(proof))),
        }
    }

    /// True if `bind` is every address of the machine, which is none that others could dial.
    pub(super) fn hides(&self) -> bool {
        let everywhere = self.bind.host().parse().is_ok_and(|host: IpAddr| host.is_unspecified());
        self.kind != TransportKind::None && everywhere && self.advertise.is_none()
    }

    fn proof(&self) -> Result<Option<Proof<'_>>, Conflict> {
        let files = [("ca", &self.ca), ("certificate", &self.certificate), ("key", &self.key)];
        let missing = files.iter().filter(|(_, path)| path.is_none()).map(|(name, _)| *name).collect();
        match (&self.ca, &self.certificate, &self.key, &self.development) {
            (None, None, None, development) => Ok(development.as_deref().map(Proof::Development)),
            (_, _, _, Some(_)) => Err(Conflict::DevelopmentWithFiles),
            (Some(ca), Some(certificate), Some(key), None) => Ok(Some(Proof::Files { ca, certificate, key })),
            _ => Err(Conflict::CertificatesIncomplete { missing }),
        }
    }
}

impl Default for TransportSettings {
    fn default() -> Self {
        Self {
            kind: TransportKind::None,
            bind: NodeAddress::new("127.0.0.1", 4710).expect("a plain address is valid"),
            advertise: None,
            insecure: false,
            ca: None,
            certificate: None,
            key: None,
            server_name: "archipelago".to_owned(),
            development: None,
        }
    }
}

/// Over what a node reaches others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum TransportKind {
    /// It reaches none.
    None,
    /// QUIC: TLS 1.3, both sides prove themselves. The cargo feature `quic`.
    Quic,
    /// TCP, with TLS 1.3 unless it is told to go without. The cargo feature `tcp`.
    Tcp,
    /// One of your own, which [`Builder::transport`](crate::Builder::transport) is given.
    Own,
}

impl TransportKind {
    pub(super) const fn in_this_build(self) -> bool {
        match self {
            Self::None | Self::Own => true,
            Self::Quic => cfg!(feature = "quic"),
            Self::Tcp => cfg!(feature = "tcp"),
        }
    }
}

impl fmt::Display for TransportKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Quic => "quic",
            Self::Tcp => "tcp",
            Self::Own => "own",
        })
    }
}

/// A host without a port: a DNS name or an IP address, IPv6 without brackets.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Host(String);

impl Host {
    /// The host.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Host {
    type Err = NodeAddressError;

    fn from_str(text: &str) -> Result<Self, NodeAddressError> {
        NodeAddress::new(text, 0).map(|address| Self(address.host().to_owned()))
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Host {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Host {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// What the two sides of a connection prove to each other.
#[cfg_attr(not(any(feature = "quic", feature = "tcp")), allow(dead_code, reason = "transports read it"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Security<'a> {
    /// Nothing.
    Plain,
    /// That they are nodes of the cluster.
    Proven(Proof<'a>),
}

/// What a node proves itself with.
#[cfg_attr(not(any(feature = "quic", feature = "tcp")), allow(dead_code, reason = "transports read it"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proof<'a> {
    Files { ca: &'a Path, certificate: &'a Path, key: &'a Path },
    Development(&'a Path),
}
