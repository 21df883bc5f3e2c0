//! Values that are sound one by one and cannot be used together.

use archipelago_protocol::identity::NodeAddress;

use super::lanes::SMALLEST_FRAME;
use super::settings::Settings;
use super::size::Size;
use super::transport::TransportKind;

/// A rule between keys that is broken. Nothing was started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Conflict {
    /// The transport is not in this build. Switch its cargo feature on.
    #[error("the transport {kind} is not in this build: switch on the cargo feature `{kind}` of archipelago")]
    NotBuilt {
        /// Which one.
        kind: TransportKind,
    },
    /// QUIC cannot go without TLS.
    #[error(
        "QUIC is never insecure: set transport.insecure to false, or transport.kind to \"tcp\" \
         (ARCHIPELAGO_TRANSPORT__KIND)"
    )]
    InsecureQuic,
    /// Plain TCP shows no certificate: one of the two is a mistake.
    #[error(
        "insecure TCP shows no certificate: set transport.insecure to false, or leave out transport.ca, \
         transport.certificate, transport.key and transport.development"
    )]
    InsecureWithCertificates,
    /// Some of the three files are named and some are not.
    #[error(
        "transport.ca, transport.certificate and transport.key go together; not set: {}",
        each_with_variable(missing)
    )]
    CertificatesIncomplete {
        /// The names of the keys that are not set.
        missing: Vec<&'static str>,
    },
    /// Two ways to prove oneself.
    #[error(
        "transport.development excludes transport.ca, transport.certificate and transport.key: leave out one or \
         the other"
    )]
    DevelopmentWithFiles,
    /// Nothing to prove oneself with.
    #[error(
        "{kind} needs certificates: set {}; or, for development, {}{}",
        each_with_variable(&["ca", "certificate", "key"]),
        each_with_variable(&["development"]),
        plain(*kind)
    )]
    NoCertificates {
        /// Which transport.
        kind: TransportKind,
    },
    /// Others would be told an address that nobody can dial.
    #[error(
        "nobody can dial {bind}: set transport.advertise (ARCHIPELAGO_TRANSPORT__ADVERTISE) to the host that \
         others reach this node by"
    )]
    AdvertiseNeeded {
        /// Where the node would listen.
        bind: NodeAddress,
    },
    /// The key is about other nodes, and there is no way to them.
    #[error("needs a transport: set transport.kind (ARCHIPELAGO_TRANSPORT__KIND) to \"quic\" or \"tcp\"")]
    NeedsTransport {
        /// The key.
        key: &'static str,
    },
    /// A node that serves its store cannot use that of another.
    #[error("a node serves its own store or joins that of another: leave out one of serve and join")]
    ServeAndJoin,
    /// Ordinary messages would not fit into a frame.
    #[error("a frame of {frame} is too small: at least {SMALLEST_FRAME} is needed")]
    FrameTooSmall {
        /// The frame.
        frame: Size,
    },
    /// Messages that fit into a frame would be refused.
    #[error("the largest message, {largest}, is smaller than a frame of {frame}")]
    LargestBelowFrame {
        /// The largest message.
        largest: Size,
        /// The frame.
        frame: Size,
    },
}

impl Conflict {
    /// Every rule that `settings` break.
    pub(super) fn all_in(settings: &Settings) -> Vec<Self> {
        let kind = settings.transport.kind;
        let rules = [
            (!kind.in_this_build()).then_some(Self::NotBuilt { kind }),
            settings.transport.security().err(),
            Self::in_bind(settings),
            Self::in_embedded(settings),
            Self::in_lanes(settings),
        ];
        rules.into_iter().flatten().chain(Self::without_transport(settings)).collect()
    }

    /// The keys between which the rule holds, the likeliest mistake first.
    pub(super) fn keys(&self) -> Vec<&'static str> {
        match self {
            Self::NotBuilt { .. } | Self::NoCertificates { .. } => vec!["transport.kind"],
            Self::InsecureQuic | Self::InsecureWithCertificates => vec!["transport.insecure"],
            Self::CertificatesIncomplete { .. } => {
                vec!["transport.ca", "transport.certificate", "transport.key"]
            }
            Self::DevelopmentWithFiles => vec!["transport.development"],
            Self::AdvertiseNeeded { .. } => vec!["transport.bind"],
            Self::NeedsTransport { key } => vec![*key],
            Self::ServeAndJoin => vec!["backend.embedded.join"],
            Self::FrameTooSmall { .. } => vec!["lanes.frame"],
            Self::LargestBelowFrame { .. } => vec!["lanes.largest", "lanes.frame"],
        }
    }

    fn in_bind(settings: &Settings) -> Option<Self> {
        let transport = &settings.transport;
        transport.hides().then(|| Self::AdvertiseNeeded { bind: transport.bind.clone() })
    }

    fn in_embedded(settings: &Settings) -> Option<Self> {
        let embedded = &settings.backend.embedded;
        (embedded.serve && embedded.join.is_some()).then_some(Self::ServeAndJoin)
    }

    fn in_lanes(settings: &Settings) -> Option<Self> {
        let (frame, largest) = (settings.lanes.frame, settings.lanes.largest);
        if frame < SMALLEST_FRAME {
            return Some(Self::FrameTooSmall { frame });
        }
        (largest < frame).then_some(Self::LargestBelowFrame { largest, frame })
    }

    fn without_transport(settings: &Settings) -> Vec<Self> {
        if settings.transport.kind != TransportKind::None {
            return Vec::new();
        }
        let (cluster, embedded) = (&settings.cluster, &settings.backend.embedded);
        let needing = [
            ("cluster.peers", !cluster.peers.is_empty()),
            ("cluster.placed", !cluster.placed.is_empty()),
            ("backend.embedded.serve", embedded.serve),
            ("backend.embedded.join", embedded.join.is_some()),
        ];
        let broken = needing.into_iter().filter(|(_, used)| *used);
        broken.map(|(key, _)| Self::NeedsTransport { key }).collect()
    }
}

/// Keys of `[transport]`, each with its variable.
fn each_with_variable(keys: &[&str]) -> String {
    let shown = keys.iter().map(|key| {
        let variable = key.to_ascii_uppercase();
        format!("transport.{key} (ARCHIPELAGO_TRANSPORT__{variable})")
    });
    shown.collect::<Vec<_>>().join(", ")
}

fn plain(kind: TransportKind) -> &'static str {
    match kind {
        TransportKind::Tcp => {
            "; or, on a network that nobody else can reach, transport.insecure = true \
             (ARCHIPELAGO_TRANSPORT__INSECURE)"
        }
        _ => "",
    }
}
