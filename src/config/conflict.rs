//! Values that are sound one by one and cannot be used together.

use std::net::SocketAddr;
use std::time::Duration;

use archipelago_protocol::identity::NodeAddress;
use archipelago_protocol::session::times;
use archipelago_protocol::time::Millis;
use humantime_serde::re::humantime::format_duration;

use super::backend::{BackendKind, Presence};
use super::control_plane::ControlPlaneKind;
use super::lanes::{SMALLEST_FRAME, STREAM_WINDOWS};
use super::placement::Divided;
use super::reach::Reach;
use super::settings::{KindSettings, Settings};
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
    /// The backend is not in this build. Switch its cargo feature on.
    #[error("{:?} needs archipelago's cargo feature `{feature}`", kind.to_string())]
    BackendNotBuilt {
        /// Which one.
        kind: BackendKind,
        /// The feature.
        feature: &'static str,
    },
    /// The control plane is in a store that is not in this build. Switch its cargo feature on.
    #[error("{:?} needs archipelago's cargo feature `{feature}`", kind.to_string())]
    ControlPlaneNotBuilt {
        /// Which one.
        kind: BackendKind,
        /// The feature.
        feature: &'static str,
    },
    /// How long a datacenter counts as active has to be said: there is no value that is right everywhere.
    #[error(
        "a control plane in {kind} has to be told how long the lease of a datacenter is, such as \"30s\""
    )]
    LeaseMissing {
        /// The store.
        kind: BackendKind,
    },
    /// One or two late heartbeats would end the lease.
    #[error(
        "a lease of {} is shorter than 3 heartbeats of {}: at least {} is needed",
        format_duration(*ttl),
        format_duration(*heartbeat),
        format_duration(heartbeat.saturating_mul(3))
    )]
    LeaseTooShort {
        /// The lease of a datacenter.
        ttl: Duration,
        /// The time between two heartbeats.
        heartbeat: Duration,
    },
    /// A control plane is served or joined.
    #[error("a node serves its own control plane or joins that of another: leave out one of serve and join")]
    ControlPlaneServeAndJoin,
    /// Only the embedded store is served and joined; others are reached by all nodes anyway.
    #[error("only the embedded store can be served, joined or handed over, and backend.kind is {:?}", kind.to_string())]
    EmbeddedOnly {
        /// The key.
        key: &'static str,
        /// The backend.
        kind: BackendKind,
    },
    /// So short a lease ends with every pause of a machine, a network or a store.
    #[error("a ttl of {} is too short: at least {} is needed", format_duration(*ttl), format_duration(MIN_SESSION))]
    SessionTooShort {
        /// The lease of a node.
        ttl: Duration,
    },
    /// A new stream would grant what a node of an earlier one still holds.
    #[error(
        "a new stream must grant nothing for at least {}, because session.ttl is {}",
        format_duration(*needed),
        format_duration(*ttl)
    )]
    SettleTooShort {
        /// The lease of a node.
        ttl: Duration,
        /// The shortest time that is safe with it.
        needed: Duration,
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
    /// A light client is no member.
    #[error(
        "a light client is no member: leave out this or cluster.contacts (ARCHIPELAGO_CLUSTER__CONTACTS)"
    )]
    NotForClients {
        /// The key, or the call of the builder.
        key: &'static str,
    },
    /// The transport is to be one of your own, and the builder was given none.
    #[error("the transport is to come from code: call Builder::transport, or choose \"quic\" or \"tcp\"")]
    TransportNotGiven,
    /// A node that serves its store cannot use that of another.
    #[error("a node serves its own store or joins that of another: leave out one of serve and join")]
    ServeAndJoin,
    /// A kind has shards, or its actors have records of their own.
    #[error("kind {kind} is not divided into shards, which excludes actors.kinds.{kind}.shards")]
    SinglesHaveNoShards {
        /// The kind.
        kind: String,
    },
    /// Single actors and those of ranges are found in their own datacenter alone.
    #[error(
        "kind {kind} is divided into {divided}, which no other datacenter finds: \
         actors.kinds.{kind}.reach can only be \"local\""
    )]
    ReachNotLocal {
        /// The kind.
        kind: String,
        /// What it is divided into.
        divided: Divided,
    },
    /// Ordinary messages would not fit into a frame.
    #[error("a frame of {frame} is too small: at least {SMALLEST_FRAME} is needed")]
    FrameTooSmall {
        /// The frame.
        frame: Size,
    },
    /// Streams would stand still, or their windows could not be counted.
    #[error("a stream's window of {window} is not within {} and {}", STREAM_WINDOWS.start(), STREAM_WINDOWS.end())]
    StreamWindow {
        /// The window.
        window: Size,
    },
    /// The admin API is not in this build. Switch its cargo feature on.
    #[error("needs archipelago's cargo feature `admin`")]
    AdminNotBuilt,
    /// The metrics for Prometheus are not in this build. Switch their cargo feature on.
    #[error("needs archipelago's cargo feature `prometheus`")]
    MetricsNotBuilt,
    /// Others would reach the admin API, and nobody said that they may.
    #[error(
        "{bind} can be reached from other machines, over plain HTTP: bind to 127.0.0.1, or set admin.expose \
         (ARCHIPELAGO_ADMIN__EXPOSE) to true"
    )]
    AdminExposed {
        /// Where it would be served.
        bind: SocketAddr,
    },
    /// Reads are to be guarded, and there is no token.
    #[error(
        "nobody could read anything without a token: set admin.token_file (ARCHIPELAGO_ADMIN__TOKEN_FILE)"
    )]
    AdminGuardedWithoutToken,
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
            Self::in_backend(settings),
            Self::in_session(settings),
            Self::in_settle(settings),
            settings.transport.security().err(),
            Self::in_bind(settings),
            Self::in_embedded(settings),
            Self::in_lanes(settings),
            Self::in_kinds(settings),
            Self::in_admin(settings),
        ];
        let more = Self::in_control_plane(settings).into_iter().chain(Self::embedded_only(settings));
        let more = more.chain(Self::in_reach(settings));
        let more = more.chain(Self::without_transport(settings)).chain(Self::in_client(settings));
        rules.into_iter().flatten().chain(more).collect()
    }

    /// The keys between which the rule holds, the likeliest mistake first.
    pub(super) fn keys(&self) -> Vec<&'static str> {
        match self {
            Self::NotBuilt { .. } | Self::NoCertificates { .. } | Self::TransportNotGiven => {
                vec!["transport.kind"]
            }
            Self::BackendNotBuilt { .. } => vec!["backend.kind"],
            Self::ControlPlaneNotBuilt { .. } => vec!["control_plane.kind"],
            Self::LeaseMissing { .. } => vec!["control_plane.lease_ttl"],
            Self::LeaseTooShort { .. } => vec!["control_plane.lease_ttl", "datacenter.heartbeat"],
            Self::ControlPlaneServeAndJoin => vec!["control_plane.embedded.join"],
            Self::EmbeddedOnly { key, .. } => vec![*key],
            Self::SessionTooShort { .. } => vec!["session.ttl"],
            Self::SettleTooShort { .. } => vec!["backend.nats.settle", "session.ttl"],
            Self::InsecureQuic | Self::InsecureWithCertificates => vec!["transport.insecure"],
            Self::CertificatesIncomplete { .. } => {
                vec!["transport.ca", "transport.certificate", "transport.key"]
            }
            Self::DevelopmentWithFiles => vec!["transport.development"],
            Self::AdvertiseNeeded { .. } => vec!["transport.bind"],
            Self::NeedsTransport { key } | Self::NotForClients { key } => vec![*key],
            Self::ServeAndJoin => vec!["backend.embedded.join"],
            Self::SinglesHaveNoShards { .. } | Self::ReachNotLocal { .. } => vec!["actors.kinds"],
            Self::FrameTooSmall { .. } => vec!["lanes.frame"],
            Self::StreamWindow { .. } => vec!["lanes.stream_window"],
            Self::LargestBelowFrame { .. } => vec!["lanes.largest", "lanes.frame"],
            Self::AdminNotBuilt => vec!["admin.serve"],
            Self::MetricsNotBuilt => vec!["admin.metrics"],
            Self::AdminExposed { .. } => vec!["admin.bind"],
            Self::AdminGuardedWithoutToken => vec!["admin.guard_reads"],
        }
    }

    fn in_backend(settings: &Settings) -> Option<Self> {
        let kind = settings.backend.kind;
        match kind.presence() {
            Presence::BuiltIn | Presence::Built(_) => None,
            Presence::NotBuilt(feature) => Some(Self::BackendNotBuilt { kind, feature }),
        }
    }

    fn in_control_plane(settings: &Settings) -> Vec<Self> {
        let plane = &settings.control_plane;
        let ControlPlaneKind::In(kind) = plane.kind else { return Vec::new() };
        let feature = match kind.presence() {
            Presence::BuiltIn | Presence::Built(_) => None,
            Presence::NotBuilt(feature) => Some(feature),
        };
        let embedded = kind == BackendKind::Embedded;
        let (ttl, heartbeat) = (plane.lease(), settings.datacenter.heartbeat);
        let both = plane.embedded.serve && plane.embedded.join.is_some();
        let rules = [
            feature.map(|feature| Self::ControlPlaneNotBuilt { kind, feature }),
            (!embedded && plane.lease_ttl.is_none()).then_some(Self::LeaseMissing { kind }),
            (ttl < heartbeat.saturating_mul(3)).then_some(Self::LeaseTooShort { ttl, heartbeat }),
            (embedded && both).then_some(Self::ControlPlaneServeAndJoin),
        ];
        rules.into_iter().flatten().collect()
    }

    fn in_session(settings: &Settings) -> Option<Self> {
        let ttl = settings.session.ttl();
        (ttl < MIN_SESSION).then_some(Self::SessionTooShort { ttl })
    }

    fn in_settle(settings: &Settings) -> Option<Self> {
        let (backend, ttl) = (&settings.backend, settings.session.ttl());
        let needed = times::observer_wait(Millis::from_duration(ttl)).to_duration();
        let broken = backend.kind == BackendKind::Nats && backend.nats.settle < needed;
        broken.then_some(Self::SettleTooShort { ttl, needed })
    }

    fn embedded_only(settings: &Settings) -> Vec<Self> {
        let (kind, embedded) = (settings.backend.kind, &settings.backend.embedded);
        if kind == BackendKind::Embedded {
            return Vec::new();
        }
        let keys =
            [("backend.embedded.serve", embedded.serve), ("backend.embedded.join", embedded.join.is_some())];
        let broken = keys.into_iter().filter(|(_, used)| *used);
        broken.map(|(key, _)| Self::EmbeddedOnly { key, kind }).collect()
    }

    fn in_bind(settings: &Settings) -> Option<Self> {
        let transport = &settings.transport;
        // Nobody dials a client.
        let hides = transport.hides() && !settings.cluster.is_client();
        hides.then(|| Self::AdvertiseNeeded { bind: transport.bind.clone() })
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
        let window = settings.lanes.stream_window;
        if !STREAM_WINDOWS.contains(&window) {
            return Some(Self::StreamWindow { window });
        }
        (largest < frame).then_some(Self::LargestBelowFrame { largest, frame })
    }

    fn in_kinds(settings: &Settings) -> Option<Self> {
        let unsharded = |own: &KindSettings| matches!(own.divided, Some(Divided::Actors | Divided::Ranges));
        let both = |own: &KindSettings| unsharded(own) && own.shards.is_some();
        let (kind, _) = settings.actors.kinds.iter().find(|(_, own)| both(own))?;
        Some(Self::SinglesHaveNoShards { kind: kind.clone() })
    }

    /// What a kind has if nothing is said about its reach is no wish, so it is not refused.
    fn in_reach(settings: &Settings) -> Vec<Self> {
        let by_home = settings.actors.reach == Some(Reach::Home);
        let broken = settings.actors.kinds.iter().filter_map(|(kind, own)| {
            let divided = own.divided.filter(|divided| *divided != Divided::Shards)?;
            let abroad = own.reach.map_or(by_home, |reach| reach != Reach::Local);
            abroad.then(|| Self::ReachNotLocal { kind: kind.clone(), divided })
        });
        broken.collect()
    }

    fn in_admin(settings: &Settings) -> Option<Self> {
        let admin = &settings.admin;
        if admin.guard_reads && admin.token_file.is_none() {
            return Some(Self::AdminGuardedWithoutToken);
        }
        if admin.metrics && cfg!(not(feature = "prometheus")) {
            return Some(Self::MetricsNotBuilt);
        }
        if !admin.serve {
            return None;
        }
        if cfg!(not(feature = "admin")) {
            return Some(Self::AdminNotBuilt);
        }
        let outside = !admin.bind.ip().is_loopback() && !admin.expose;
        outside.then_some(Self::AdminExposed { bind: admin.bind })
    }

    fn in_client(settings: &Settings) -> Vec<Self> {
        let (cluster, embedded) = (&settings.cluster, &settings.backend.embedded);
        let members_only = [
            ("cluster.peers", !cluster.peers.is_empty()),
            ("cluster.placed", !cluster.placed.is_empty()),
            ("backend.embedded.serve", embedded.serve),
            ("backend.embedded.join", embedded.join.is_some()),
        ];
        let broken = members_only.into_iter().filter(|(_, used)| *used && cluster.is_client());
        broken.map(|(key, _)| Self::NotForClients { key }).collect()
    }

    fn without_transport(settings: &Settings) -> Vec<Self> {
        if settings.transport.kind != TransportKind::None {
            return Vec::new();
        }
        let (cluster, embedded) = (&settings.cluster, &settings.backend.embedded);
        let needing = [
            ("cluster.peers", !cluster.peers.is_empty()),
            ("cluster.placed", !cluster.placed.is_empty()),
            ("cluster.contacts", cluster.is_client()),
            ("backend.embedded.serve", embedded.serve),
            ("backend.embedded.join", embedded.join.is_some()),
            ("control_plane.kind", settings.control_plane.kind != ControlPlaneKind::None),
        ];
        let broken = needing.into_iter().filter(|(_, used)| *used);
        broken.map(|(key, _)| Self::NeedsTransport { key }).collect()
    }
}

/// The shortest lease that a configuration may ask for.
const MIN_SESSION: Duration = times::MIN_TTL.to_duration();

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
