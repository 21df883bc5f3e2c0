//! Every key there is, what it holds, and the variable that sets it.
//!
//! Serde stops at the first mistake and knows no lines. This table lets each layer be checked key by key before
//! the merge; a test keeps it equal to the fields of [`Settings`](super::Settings).

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;

use archipelago_protocol::datacenter::DataCenterId;
use archipelago_protocol::identity::{ActorKey, Namespace, NodeAddress};
use archipelago_protocol::placement::ShardCount;
use archipelago_protocol::session::OnStuck;
use figment::value::Value;

use super::backend::BackendKind;
use super::control_plane::ControlPlaneKind;
use super::datacenter::{DataCenterPlacement, Gateways, LabelValue, OnSilence, OnStale, PlaceName};
use super::etcd::{Endpoints, KeyPrefix};
use super::foundationdb::TuplePrefix;
use super::lanes::Overflow;
use super::leaf::{Arbiters, Dialled, Leaf, Optional, Room, Shape, Text};
use super::membership::{Leader, Placement, SplitBrain};
use super::nats::{Replicas, ServerUrls, StreamName, SubjectPrefix};
use super::placement::Divided;
use super::reach::Reach;
use super::sharding::Strategy;
use super::span::{Idle, Pause, Span};
use super::transport::{Host, TransportKind};

/// One key: its path, where `*` stands for a name the user chooses, and the type of its value.
pub(super) struct Key {
    path: &'static [&'static str],
    shape: Shape,
    expected: fn() -> String,
    fits: fn(&Value) -> bool,
}

/// What stands at a path.
pub(super) enum Found {
    /// A key with a value.
    Key(&'static Key),
    /// A table of further keys.
    Section,
    /// Nothing; these names would be known in its place.
    Unknown(Vec<&'static str>),
}

impl Key {
    const fn of<T: Leaf>(path: &'static [&'static str]) -> Self {
        Self { path, shape: T::SHAPE, expected: T::expected, fits: |value| value.deserialize::<T>().is_ok() }
    }

    /// The value that the text of a variable or of a builder call stands for.
    pub(super) fn read(&self, text: &str) -> Value {
        self.shape.read(text)
    }

    pub(super) fn fits(&self, value: &Value) -> bool {
        (self.fits)(value)
    }

    pub(super) fn expected(&self) -> String {
        (self.expected)()
    }
}

/// Looks a path up as it is written in a file or in a builder call.
pub(super) fn find(path: &[String]) -> Found {
    let under = |key: &&Key| key.path.len() >= path.len() && matches(key.path, path);
    match KEYS.iter().find(under) {
        Some(key) if key.path.len() == path.len() => Found::Key(key),
        Some(_) => Found::Section,
        None => Found::Unknown(beside(path)),
    }
}

/// The path that the segments of a variable's name mean: names of ours regardless of case, names that the user
/// chooses as they are. Without a matching key, all in lower case.
pub(super) fn path_of_variable(segments: &[&str]) -> Vec<String> {
    let same = |(ours, theirs): (&&str, &&str)| *ours == ANY || ours.eq_ignore_ascii_case(theirs);
    let key =
        KEYS.iter().find(|key| key.path.len() == segments.len() && key.path.iter().zip(segments).all(same));
    let segment = |(at, theirs): (usize, &&str)| match key {
        Some(key) if key.path[at] == ANY => (*theirs).to_owned(),
        _ => theirs.to_ascii_lowercase(),
    };
    segments.iter().enumerate().map(segment).collect()
}

/// The variable that sets the key at `path`; none where there is no key.
pub(super) fn variable_of(path: &[String]) -> Option<String> {
    let Found::Key(key) = find(path) else { return None };
    let segment = |(ours, theirs): (&&str, &String)| match *ours {
        ANY => theirs.clone(),
        _ => theirs.to_ascii_uppercase(),
    };
    let segments: Vec<String> = key.path.iter().zip(path).map(segment).collect();
    let section = if segments.len() == 1 { "_" } else { "" };
    Some(format!("{PREFIX}{section}{}", segments.join("__")))
}

/// The variable that was probably meant by one that lacks the double underscore: `ARCHIPELAGO_NAMESPACE`.
pub(super) fn variable_meant_by(name: &str) -> Option<String> {
    let own: Vec<String> = KEYS.iter().filter_map(|key| variable_of(&owned(key.path))).collect();
    own.into_iter().find(|variable| variable.replace("__", "_") == name)
}

/// What all our variables begin with.
pub(super) const PREFIX: &str = "ARCHIPELAGO_";

fn matches(pattern: &[&str], path: &[String]) -> bool {
    pattern.iter().zip(path).all(|(ours, theirs)| *ours == ANY || ours == theirs)
}

fn beside(path: &[String]) -> Vec<&'static str> {
    let parent = &path[..path.len().saturating_sub(1)];
    let siblings = KEYS.iter().filter(|key| key.path.len() > parent.len() && matches(key.path, parent));
    let names: BTreeSet<&str> =
        siblings.map(|key| key.path[parent.len()]).filter(|name| *name != ANY).collect();
    names.into_iter().collect()
}

fn owned(path: &[&str]) -> Vec<String> {
    path.iter().map(|segment| (*segment).to_owned()).collect()
}

const ANY: &str = "*";

static KEYS: [Key; 179] = [
    Key::of::<Namespace>(&["namespace"]),
    Key::of::<Text>(&["node", "name"]),
    Key::of::<BTreeSet<String>>(&["node", "roles"]),
    Key::of::<Optional<Text>>(&["node", "version"]),
    Key::of::<Arbiters>(&["node", "data_arbiters"]),
    Key::of::<Span>(&["node", "stop_budget"]),
    Key::of::<Span>(&["calls", "timeout"]),
    Key::of::<Span>(&["actors", "activate_timeout"]),
    Key::of::<Span>(&["actors", "deactivate_timeout"]),
    Key::of::<NonZeroU32>(&["calls", "inbox"]),
    Key::of::<NonZeroU32>(&["calls", "interleaved"]),
    Key::of::<NonZeroU32>(&["calls", "pending"]),
    Key::of::<NonZeroU32>(&["calls", "ingress"]),
    Key::of::<Idle>(&["actors", "idle_after"]),
    Key::of::<Idle>(&["actors", "kinds", ANY, "idle_after"]),
    Key::of::<NonZeroU32>(&["actors", "max_active"]),
    Key::of::<Placement>(&["actors", "placement"]),
    Key::of::<NonZeroU32>(&["actors", "cache", "entries"]),
    Key::of::<Span>(&["actors", "cache", "idle"]),
    Key::of::<bool>(&["actors", "cache", "watch"]),
    Key::of::<Optional<Reach>>(&["actors", "reach"]),
    Key::of::<Reach>(&["actors", "kinds", ANY, "reach"]),
    Key::of::<Placement>(&["actors", "kinds", ANY, "placement"]),
    Key::of::<Strategy>(&["actors", "kinds", ANY, "strategy"]),
    Key::of::<Divided>(&["actors", "kinds", ANY, "divided"]),
    Key::of::<ShardCount>(&["actors", "kinds", ANY, "shards"]),
    Key::of::<BTreeSet<ActorKey>>(&["actors", "kinds", ANY, "split_at"]),
    Key::of::<BTreeSet<String>>(&["actors", "kinds", ANY, "roles"]),
    Key::of::<bool>(&["sharding", "rebalance"]),
    Key::of::<Strategy>(&["sharding", "strategy"]),
    Key::of::<NonZeroU32>(&["sharding", "moves_per_round"]),
    Key::of::<Span>(&["membership", "gossip"]),
    Key::of::<Span>(&["membership", "heartbeat"]),
    Key::of::<NonZeroU32>(&["membership", "suspicion"]),
    Key::of::<Pause>(&["membership", "acceptable_pause"]),
    Key::of::<Span>(&["membership", "stable_after"]),
    Key::of::<SplitBrain>(&["membership", "split_brain"]),
    Key::of::<NonZeroU32>(&["membership", "quorum"]),
    Key::of::<Leader>(&["membership", "leader"]),
    Key::of::<NonZeroU32>(&["events", "subscriber_queue"]),
    Key::of::<NonZeroU32>(&["events", "watches"]),
    Key::of::<Span>(&["session", "ttl"]),
    Key::of::<Span>(&["session", "heartbeat"]),
    Key::of::<bool>(&["session", "rejoin"]),
    Key::of::<OnStuck>(&["fence", "on_stuck"]),
    Key::of::<BackendKind>(&["backend", "kind"]),
    Key::of::<bool>(&["backend", "embedded", "serve"]),
    Key::of::<Optional<Dialled>>(&["backend", "embedded", "join"]),
    Key::of::<Endpoints>(&["backend", "etcd", "endpoints"]),
    Key::of::<KeyPrefix>(&["backend", "etcd", "prefix"]),
    Key::of::<Span>(&["backend", "etcd", "connect_timeout"]),
    Key::of::<Span>(&["backend", "etcd", "request_timeout"]),
    Key::of::<Span>(&["backend", "etcd", "watch_idle"]),
    Key::of::<Optional<Text>>(&["backend", "etcd", "user"]),
    Key::of::<Optional<PathBuf>>(&["backend", "etcd", "password_file"]),
    Key::of::<Optional<PathBuf>>(&["backend", "etcd", "tls", "ca_file"]),
    Key::of::<Optional<PathBuf>>(&["backend", "etcd", "tls", "certificate_file"]),
    Key::of::<Optional<PathBuf>>(&["backend", "etcd", "tls", "key_file"]),
    Key::of::<Optional<Text>>(&["backend", "etcd", "tls", "server_name"]),
    Key::of::<ServerUrls>(&["backend", "nats", "urls"]),
    Key::of::<StreamName>(&["backend", "nats", "stream"]),
    Key::of::<SubjectPrefix>(&["backend", "nats", "prefix"]),
    Key::of::<Replicas>(&["backend", "nats", "replicas"]),
    Key::of::<bool>(&["backend", "nats", "create_stream"]),
    Key::of::<Span>(&["backend", "nats", "connect_timeout"]),
    Key::of::<Span>(&["backend", "nats", "request_timeout"]),
    Key::of::<Span>(&["backend", "nats", "list_timeout"]),
    Key::of::<Span>(&["backend", "nats", "max_reconnect_delay"]),
    Key::of::<Span>(&["backend", "nats", "history"]),
    Key::of::<Span>(&["backend", "nats", "settle"]),
    Key::of::<Optional<Text>>(&["backend", "nats", "user"]),
    Key::of::<Optional<PathBuf>>(&["backend", "nats", "password_file"]),
    Key::of::<Optional<PathBuf>>(&["backend", "nats", "token_file"]),
    Key::of::<Optional<PathBuf>>(&["backend", "nats", "nkey_seed_file"]),
    Key::of::<Optional<PathBuf>>(&["backend", "nats", "credentials_file"]),
    Key::of::<Optional<PathBuf>>(&["backend", "nats", "tls", "ca_file"]),
    Key::of::<Optional<PathBuf>>(&["backend", "nats", "tls", "certificate_file"]),
    Key::of::<Optional<PathBuf>>(&["backend", "nats", "tls", "key_file"]),
    Key::of::<Optional<PathBuf>>(&["backend", "foundationdb", "cluster_file"]),
    Key::of::<TuplePrefix>(&["backend", "foundationdb", "prefix"]),
    Key::of::<Span>(&["backend", "foundationdb", "connect_timeout"]),
    Key::of::<Span>(&["backend", "foundationdb", "request_timeout"]),
    Key::of::<Span>(&["backend", "foundationdb", "watch_poll"]),
    Key::of::<Span>(&["backend", "foundationdb", "history"]),
    Key::of::<Optional<DataCenterId>>(&["datacenter", "id"]),
    Key::of::<PlaceName>(&["datacenter", "name"]),
    Key::of::<Optional<PlaceName>>(&["datacenter", "region"]),
    Key::of::<Optional<PlaceName>>(&["datacenter", "zone"]),
    Key::of::<LabelValue>(&["datacenter", "labels", ANY]),
    Key::of::<Vec<Dialled>>(&["datacenter", "endpoints"]),
    Key::of::<Gateways>(&["datacenter", "gateways"]),
    Key::of::<Span>(&["datacenter", "heartbeat"]),
    Key::of::<Span>(&["datacenter", "refresh"]),
    Key::of::<Span>(&["datacenter", "leader_check"]),
    Key::of::<Span>(&["datacenter", "max_staleness"]),
    Key::of::<Span>(&["datacenter", "request_timeout"]),
    Key::of::<bool>(&["datacenter", "watch"]),
    Key::of::<Span>(&["datacenter", "max_backoff"]),
    Key::of::<DataCenterPlacement>(&["datacenter", "placement"]),
    Key::of::<OnSilence>(&["datacenter", "on_silence"]),
    Key::of::<OnStale>(&["datacenter", "on_stale", "lookup"]),
    Key::of::<OnStale>(&["datacenter", "on_stale", "placement"]),
    Key::of::<ControlPlaneKind>(&["control_plane", "kind"]),
    Key::of::<Optional<Span>>(&["control_plane", "lease_ttl"]),
    Key::of::<bool>(&["control_plane", "embedded", "serve"]),
    Key::of::<Optional<Dialled>>(&["control_plane", "embedded", "join"]),
    Key::of::<Endpoints>(&["control_plane", "etcd", "endpoints"]),
    Key::of::<KeyPrefix>(&["control_plane", "etcd", "prefix"]),
    Key::of::<Span>(&["control_plane", "etcd", "connect_timeout"]),
    Key::of::<Span>(&["control_plane", "etcd", "request_timeout"]),
    Key::of::<Span>(&["control_plane", "etcd", "watch_idle"]),
    Key::of::<Optional<Text>>(&["control_plane", "etcd", "user"]),
    Key::of::<Optional<PathBuf>>(&["control_plane", "etcd", "password_file"]),
    Key::of::<Optional<PathBuf>>(&["control_plane", "etcd", "tls", "ca_file"]),
    Key::of::<Optional<PathBuf>>(&["control_plane", "etcd", "tls", "certificate_file"]),
    Key::of::<Optional<PathBuf>>(&["control_plane", "etcd", "tls", "key_file"]),
    Key::of::<Optional<Text>>(&["control_plane", "etcd", "tls", "server_name"]),
    Key::of::<ServerUrls>(&["control_plane", "nats", "urls"]),
    Key::of::<StreamName>(&["control_plane", "nats", "stream"]),
    Key::of::<SubjectPrefix>(&["control_plane", "nats", "prefix"]),
    Key::of::<Replicas>(&["control_plane", "nats", "replicas"]),
    Key::of::<bool>(&["control_plane", "nats", "create_stream"]),
    Key::of::<Span>(&["control_plane", "nats", "connect_timeout"]),
    Key::of::<Span>(&["control_plane", "nats", "request_timeout"]),
    Key::of::<Span>(&["control_plane", "nats", "list_timeout"]),
    Key::of::<Span>(&["control_plane", "nats", "max_reconnect_delay"]),
    Key::of::<Span>(&["control_plane", "nats", "history"]),
    Key::of::<Span>(&["control_plane", "nats", "settle"]),
    Key::of::<Optional<Text>>(&["control_plane", "nats", "user"]),
    Key::of::<Optional<PathBuf>>(&["control_plane", "nats", "password_file"]),
    Key::of::<Optional<PathBuf>>(&["control_plane", "nats", "token_file"]),
    Key::of::<Optional<PathBuf>>(&["control_plane", "nats", "nkey_seed_file"]),
    Key::of::<Optional<PathBuf>>(&["control_plane", "nats", "credentials_file"]),
    Key::of::<Optional<PathBuf>>(&["control_plane", "nats", "tls", "ca_file"]),
    Key::of::<Optional<PathBuf>>(&["control_plane", "nats", "tls", "certificate_file"]),
    Key::of::<Optional<PathBuf>>(&["control_plane", "nats", "tls", "key_file"]),
    Key::of::<Optional<PathBuf>>(&["control_plane", "foundationdb", "cluster_file"]),
    Key::of::<TuplePrefix>(&["control_plane", "foundationdb", "prefix"]),
    Key::of::<Span>(&["control_plane", "foundationdb", "connect_timeout"]),
    Key::of::<Span>(&["control_plane", "foundationdb", "request_timeout"]),
    Key::of::<Span>(&["control_plane", "foundationdb", "watch_poll"]),
    Key::of::<Span>(&["control_plane", "foundationdb", "history"]),
    Key::of::<Text>(&["cluster", "name"]),
    Key::of::<Vec<Dialled>>(&["cluster", "peers"]),
    Key::of::<Vec<Dialled>>(&["cluster", "contacts"]),
    Key::of::<NonZeroU32>(&["cluster", "clients"]),
    Key::of::<Dialled>(&["cluster", "placed", ANY]),
    Key::of::<TransportKind>(&["transport", "kind"]),
    Key::of::<NodeAddress>(&["transport", "bind"]),
    Key::of::<Optional<Host>>(&["transport", "advertise"]),
    Key::of::<bool>(&["transport", "insecure"]),
    Key::of::<Optional<PathBuf>>(&["transport", "ca"]),
    Key::of::<Optional<PathBuf>>(&["transport", "certificate"]),
    Key::of::<Optional<PathBuf>>(&["transport", "key"]),
    Key::of::<Text>(&["transport", "server_name"]),
    Key::of::<Optional<PathBuf>>(&["transport", "development"]),
    Key::of::<Room>(&["lanes", "bytes"]),
    Key::of::<NonZeroU32>(&["lanes", "calls"]),
    Key::of::<NonZeroU32>(&["lanes", "waiting"]),
    Key::of::<Room>(&["lanes", "window"]),
    Key::of::<Room>(&["lanes", "answers"]),
    Key::of::<Room>(&["lanes", "frame"]),
    Key::of::<Room>(&["lanes", "largest"]),
    Key::of::<Room>(&["lanes", "stream_window"]),
    Key::of::<Span>(&["lanes", "tell_ttl"]),
    Key::of::<Overflow>(&["lanes", "overflow"]),
    Key::of::<NonZeroU32>(&["lanes", "parked"]),
    Key::of::<Room>(&["lanes", "parked_bytes"]),
    Key::of::<NonZeroU32>(&["lanes", "parked_total"]),
    Key::of::<Room>(&["lanes", "parked_total_bytes"]),
    Key::of::<Span>(&["lanes", "handshake_limit"]),
    Key::of::<bool>(&["admin", "serve"]),
    Key::of::<SocketAddr>(&["admin", "bind"]),
    Key::of::<bool>(&["admin", "expose"]),
    Key::of::<Optional<PathBuf>>(&["admin", "token_file"]),
    Key::of::<bool>(&["admin", "guard_reads"]),
    Key::of::<bool>(&["admin", "metrics"]),
    Key::of::<NonZeroU32>(&["admin", "rate"]),
    Key::of::<NonZeroU32>(&["admin", "event_streams"]),
];

#[cfg(test)]
mod tests {
    use super::super::settings::{KindSettings, Settings};
    use super::*;

    fn leaves(value: &Value, path: &mut Vec<String>, found: &mut Vec<(String, bool)>) {
        if let Some(dict) = value.as_dict().filter(|dict| !dict.is_empty()) {
            for (name, value) in dict {
                path.push(name.clone());
                leaves(value, path, found);
                path.pop();
            }
            return;
        }
        let fits = matches!(find(path), Found::Key(key) if key.fits(value));
        found.push((path.join("."), fits));
    }

    #[test]
    fn every_field_of_the_settings_is_a_key_that_its_own_default_fits() {
        let mut settings = Settings::default();
        let own = KindSettings {
            idle_after: Some(Idle::Never),
            placement: Some(Placement::Local),
            strategy: Some(Strategy::LeastShards),
            divided: Some(Divided::Shards),
            shards: Some(ShardCount::ONE),
            split_at: Some(BTreeSet::new()),
            roles: Some(BTreeSet::new()),
            reach: Some(Reach::Local),
        };
        settings.actors.kinds.insert(ANY.to_owned(), own);
        settings.datacenter.labels.insert(ANY.to_owned(), "prod".to_owned());
        settings.cluster.placed.insert(ANY.to_owned(), "host:1".parse().unwrap());
        let mut found = Vec::new();
        leaves(&Value::serialize(&settings).unwrap(), &mut Vec::new(), &mut found);
        let misfits: Vec<_> = found.iter().filter(|(_, fits)| !fits).collect();
        assert!(misfits.is_empty(), "{misfits:?}");
        let fields: BTreeSet<String> = found.into_iter().map(|(path, _)| path).collect();
        let keys: BTreeSet<String> = KEYS.iter().map(|key| key.path.join(".")).collect();
        assert_eq!(fields, keys);
    }

    #[test]
    fn variable_of_a_key_leads_back_to_it() {
        for key in &KEYS {
            let path: Vec<String> = key.path.iter().map(|name| (*name).replace(ANY, "BankAccount")).collect();
            let variable = variable_of(&path).unwrap();
            let rest = variable.strip_prefix(PREFIX).unwrap();
            let segments: Vec<&str> = rest.trim_start_matches('_').split("__").collect();
            assert_eq!(path_of_variable(&segments), path);
        }
    }

    #[test]
    fn variable_with_one_underscore_too_few_is_recognised() {
        assert_eq!(variable_meant_by("ARCHIPELAGO_NAMESPACE").as_deref(), Some("ARCHIPELAGO__NAMESPACE"));
        assert_eq!(
            variable_meant_by("ARCHIPELAGO_CALLS_TIMEOUT").as_deref(),
            Some("ARCHIPELAGO_CALLS__TIMEOUT")
        );
        assert_eq!(variable_meant_by("ARCHIPELAGO_PROFILE"), None);
    }
}
