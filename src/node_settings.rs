//! From configuration to the numbers that the runtime takes.

use std::sync::Arc;

use archipelago_protocol::datacenter::DataCenterInfoError;
use archipelago_protocol::identity::NodeAddress;
use archipelago_protocol::placement::{self, ChooseNode};
use archipelago_protocol::time::Millis;
use archipelago_runtime::{DataCenterSettings, NodeSettings, RemoteSettings};

use crate::config::{Host, Idle, KindSettings, Placement, Settings, Size, TransportSettings};

/// What the runtime is told. `store` says which store the node's directory stands on.
///
/// # Errors
///
/// What is said about the datacenter is too much.
pub(crate) fn node_settings(settings: &Settings, store: String) -> Result<NodeSettings, DataCenterInfoError> {
    let mut node = NodeSettings::default();
    node.name.clone_from(&settings.node.name);
    node.roles = settings.node.roles.iter().cloned().collect();
    node.version = settings.node.version.clone().unwrap_or(node.version);
    node.data_arbiters = settings.node.data_arbiters.map(u16::from);
    node.stop_budget = Millis::from_duration(settings.node.stop_budget);
    node.call_timeout = Millis::from_duration(settings.calls.timeout);
    node.inbox = bound(settings.calls.inbox.get());
    node.interleaved = settings.calls.interleaved.get();
    node.pending_calls = bound(settings.calls.pending.get());
    node.ingress = bound(settings.calls.ingress.get());
    node.idle_after = idle(settings.actors.idle_after);
    node.idle_after_by_kind = settings
        .actors
        .kinds
        .iter()
        .filter_map(|(kind, own)| Some((kind.clone(), idle(own.idle_after?))))
        .collect();
    node.max_active = bound(settings.actors.max_active.get());
    node.watches = bound(settings.events.watches.get());
    node.event_queue = bound(settings.events.subscriber_queue.get());
    node.session_ttl = Millis::from_duration(settings.session.ttl());
    node.session_heartbeat = Millis::from_duration(settings.session.heartbeat());
    node.session_rejoin = settings.session.rejoins();
    node.fence_on_stuck = settings.fence.on_stuck;
    node.activate_timeout = Millis::from_duration(settings.actors.activate_timeout);
    node.deactivate_timeout = Millis::from_duration(settings.actors.deactivate_timeout);
    node.membership = (&settings.membership).into();
    node.placement = strategy(settings.actors.placement);
    let own = |(kind, own): (&String, &KindSettings)| Some((kind.clone(), strategy(own.placement?)));
    node.placement_by_kind = settings.actors.kinds.iter().filter_map(own).collect();
    let layout = |(kind, own): (&String, &KindSettings)| Some((kind.clone(), own.layout()?));
    node.layout_by_kind = settings.actors.kinds.iter().filter_map(layout).collect();
    let cuts = |(kind, own): (&String, &KindSettings)| {
        Some((kind.clone(), own.split_at.as_ref()?.iter().cloned().collect()))
    };
    node.cuts_by_kind = settings.actors.kinds.iter().filter_map(cuts).collect();
    node.placement_cache = (&settings.actors.cache).into();
    let roles = |(kind, own): (&String, &KindSettings)| {
        Some((kind.clone(), own.roles.as_ref()?.iter().cloned().collect()))
    };
    node.roles_by_kind = settings.actors.kinds.iter().filter_map(roles).collect();
    node.sharding = (&settings.sharding).into();
    let allocation = |(kind, own): (&String, &KindSettings)| Some((kind.clone(), own.strategy?.into()));
    node.sharding.strategy_by_kind = settings.actors.kinds.iter().filter_map(allocation).collect();
    node.datacenter = datacenter_settings(settings)?;
    node.discovery.on_stale = settings.datacenter.on_stale.lookup.into();
    node.discovery.on_silence = settings.datacenter.on_silence.into();
    node.remote = remote_settings(settings, &node.datacenter, store);
    node.reach = settings.actors.reach.map_or(node.reach, Into::into);
    let reach = |(kind, own): (&String, &KindSettings)| Some((kind.clone(), own.reach?.into()));
    node.reach_by_kind = settings.actors.kinds.iter().filter_map(reach).collect();
    Ok(node)
}

fn strategy(placement: Placement) -> Arc<dyn ChooseNode> {
    match placement {
        Placement::Spread => Arc::new(placement::Spread),
        Placement::Local => Arc::new(placement::Local),
        Placement::Random => Arc::new(placement::Random),
        Placement::LeastLoaded => Arc::new(placement::LeastLoaded),
    }
}

fn datacenter_settings(settings: &Settings) -> Result<DataCenterSettings, DataCenterInfoError> {
    let own = &settings.datacenter;
    let mut datacenter = DataCenterSettings::default();
    datacenter.info = own.info()?;
    datacenter.gateways = own.gateways.into();
    datacenter.controller = own.controller(settings.control_plane.lease());
    datacenter.stale_placement = own.on_stale.placement.into();
    datacenter.placement = own.placement.into();
    Ok(datacenter)
}

/// A node passes over entries with its own address, so that all nodes can have the same list.
fn remote_settings(settings: &Settings, datacenter: &DataCenterSettings, store: String) -> RemoteSettings {
    let (cluster, transport, lanes) = (&settings.cluster, &settings.transport, &settings.lanes);
    let placed = cluster.placed.iter().filter(|(_, address)| !transport.is_own(address));
    let mut remote = RemoteSettings::default();
    remote.cluster.clone_from(&cluster.name);
    remote.datacenter = datacenter.info.id().to_string();
    remote.bind = transport.bind.clone();
    if cluster.is_client() && transport.bind == TransportSettings::default().bind {
        // A client is dialled by nobody; several may run on one machine.
        remote.bind = anywhere();
    }
    remote.contacts.clone_from(&cluster.contacts);
    remote.clients = bound(cluster.clients.get());
    remote.advertise = transport.advertise.as_ref().map(Host::to_string);
    remote.peers = cluster.peers.iter().filter(|address| !transport.is_own(address)).cloned().collect();
    remote.placed = placed.map(|(kind, address)| (kind.clone(), address.clone())).collect();
    remote.store = store;
    remote.lane_bytes = bytes(lanes.bytes);
    remote.lane_calls = bound(lanes.calls.get());
    remote.lane_waiting = bound(lanes.waiting.get());
    remote.window_bytes = bytes(lanes.window);
    remote.answer_bytes = bytes(lanes.answers);
    remote.frame = bytes(lanes.frame);
    remote.largest = bytes(lanes.largest);
    remote.tell_ttl = Millis::from_duration(lanes.tell_ttl);
    remote.overflow = lanes.overflow.into();
    remote.handshake_limit = Millis::from_duration(lanes.handshake_limit);
    remote.parked = bound(lanes.parked.get());
    remote.parked_bytes = bytes(lanes.parked_bytes);
    remote.parked_total = bound(lanes.parked_total.get());
    remote.parked_total_bytes = bytes(lanes.parked_total_bytes);
    remote
}

/// A port that the machine chooses, reached by all ways.
fn anywhere() -> NodeAddress {
    NodeAddress::new("0.0.0.0", 0).expect("a plain address is valid")
}

fn bound(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

fn bytes(size: Size) -> usize {
    usize::try_from(size.bytes()).unwrap_or(usize::MAX)
}

fn idle(after: Idle) -> Millis {
    match after {
        Idle::After(length) => Millis::from_duration(length),
        Idle::Never => Millis::MAX,
    }
}

#[cfg(test)]
#[cfg(feature = "tcp")]
mod tests {
    use archipelago_protocol::identity::NodeAddress;
    use archipelago_protocol::link::Overflow;
    use archipelago_protocol::membership::{LeaderRule, SplitStrategy};
    use archipelago_protocol::placement::{KindLayout, ShardCount};

    use super::*;
    use crate::config::Loader;

    fn loaded(values: &[(&str, &str)]) -> Settings {
        let variables: [(&str, &str); 0] = [];
        let loader = Loader::new().directory("/nowhere").environment(variables);
        values.iter().fold(loader, |loader, (key, value)| loader.set(*key, value)).load().unwrap()
    }

    #[test]
    fn the_defaults_are_those_of_the_runtime_but_for_the_port() {
        let mut node = node_settings(&Settings::default(), String::new()).unwrap();
        assert_eq!(node.remote.bind, NodeAddress::new("127.0.0.1", 4710).unwrap());
        node.remote.bind = RemoteSettings::default().bind;
        assert_eq!(format!("{node:?}"), format!("{:?}", NodeSettings::default()));
    }

    /// Proves: R439
    #[test]
    fn membership_and_placement_reach_the_runtime() {
        let settings = loaded(&[
            ("membership.gossip", "2s"),
            ("membership.heartbeat", "300ms"),
            ("membership.suspicion", "12"),
            ("membership.acceptable_pause", "4s"),
            ("membership.stable_after", "7s"),
            ("membership.split_brain", "static-quorum"),
            ("membership.quorum", "3"),
            ("membership.leader", "oldest"),
            ("actors.placement", "least-loaded"),
            ("actors.kinds.Cart.placement", "local"),
            ("actors.kinds.Guest.divided", "actors"),
            ("actors.cache.entries", "7"),
            ("actors.cache.idle", "9s"),
            ("actors.cache.watch", "true"),
            ("actors.kinds.Cart.shards", "100"),
            ("actors.kinds.Cart.roles", "shop, web"),
            ("node.roles", "web"),
        ]);
        let mut node = node_settings(&settings, String::new()).unwrap();
        let membership = &node.membership;
        assert_eq!((membership.gossip_period, membership.stable_after), (Millis(2_000), Millis(7_000)));
        let heartbeat = membership.heartbeat;
        assert_eq!((heartbeat.period, heartbeat.phi.threshold_permille), (Millis(300), 12_000));
        assert_eq!(heartbeat.phi.acceptable_heartbeat_pause, Millis(4_000));
        assert_eq!(membership.strategy, SplitStrategy::StaticQuorum(3));
        assert_eq!(membership.leader, LeaderRule::Oldest);
        assert_eq!(format!("{:?}", node.placement_of("Account")), "LeastLoaded");
        assert_eq!(format!("{:?}", node.placement_of("Cart")), "Local");
        assert_eq!(node.layout_of("Cart"), KindLayout::sharded(ShardCount::new(100).unwrap()));
        assert_eq!(node.layout_of("Guest"), KindLayout::Actor);
        assert_eq!(
            (node.placement_cache.limits.entries, node.placement_cache.limits.idle),
            (7, Millis(9_000))
        );
        assert!(node.placement_cache.watch);
        assert_eq!(node.layout_of("Account"), KindLayout::default());
        assert!(node.may_host("Cart") && node.may_host("Account"));
        node.roles.clear();
        assert!(!node.may_host("Cart") && node.may_host("Account"));
    }

    #[test]
    fn what_is_said_about_shards_reaches_the_runtime() {
        let settings = loaded(&[
            ("sharding.rebalance", "false"),
            ("sharding.strategy", "weigh-load"),
            ("sharding.moves_per_round", "3"),
            ("actors.kinds.Desk.strategy", "least-shards"),
            ("node.version", "2.7"),
        ]);
        let node = node_settings(&settings, String::new()).unwrap();
        assert_eq!(node.version, "2.7");
        let sharding = node.sharding;
        assert_eq!(format!("{:?}", sharding.strategy_of("Desk")), "LeastShards");
        assert_eq!((sharding.rebalance, sharding.limits.per_round), (false, 3));
        assert_eq!(format!("{:?}", sharding.strategy_of("Cart")), "WeighLoad { slack: 25 }");
    }

    #[test]
    fn everything_about_other_nodes_reaches_the_runtime() {
        let settings = loaded(&[
            ("transport.kind", "tcp"),
            ("transport.insecure", "true"),
            ("transport.bind", "0.0.0.0:5000"),
            ("transport.advertise", "node-1"),
            ("cluster.name", "shop"),
            ("datacenter.name", "east"),
            ("datacenter.region", "eu"),
            ("lanes.bytes", "1 MiB"),
            ("lanes.calls", "2"),
            ("lanes.waiting", "4"),
            ("lanes.window", "3 MiB"),
            ("lanes.answers", "5 MiB"),
            ("lanes.frame", "4 KiB"),
            ("lanes.largest", "5 MiB"),
            ("lanes.tell_ttl", "6s"),
            ("lanes.overflow", "drop-oldest"),
            ("lanes.parked", "7"),
            ("lanes.parked_bytes", "8 MiB"),
            ("lanes.parked_total", "9"),
            ("lanes.parked_total_bytes", "10 MiB"),
            ("lanes.handshake_limit", "8s"),
        ]);
        let mut expected = RemoteSettings::default();
        expected.cluster = "shop".to_owned();
        expected.datacenter = "eu.east".to_owned();
        expected.bind = "0.0.0.0:5000".parse().unwrap();
        expected.advertise = Some("node-1".to_owned());
        expected.store = "s".to_owned();
        expected.lane_bytes = 1 << 20;
        expected.lane_calls = 2;
        expected.lane_waiting = 4;
        expected.window_bytes = 3 << 20;
        expected.answer_bytes = 5 << 20;
        expected.frame = 4 << 10;
        expected.largest = 5 << 20;
        expected.tell_ttl = Millis(6_000);
        expected.overflow = Overflow::DropOldest;
        expected.parked = 7;
        expected.parked_bytes = 8 << 20;
        expected.parked_total = 9;
        expected.parked_total_bytes = 10 << 20;
        expected.handshake_limit = Millis(8_000);
        assert_eq!(node_settings(&settings, "s".to_owned()).unwrap().remote, expected);
    }

    #[test]
    fn entries_with_the_nodes_own_address_are_passed_over() {
        let settings = loaded(&[
            ("transport.kind", "tcp"),
            ("transport.insecure", "true"),
            ("transport.bind", "0.0.0.0:4710"),
            ("transport.advertise", "node-1"),
            ("cluster.peers", "node-1:4710, node-2:4710, node-1:4711"),
            ("cluster.placed.Account", "node-1:4710"),
            ("cluster.placed.Cart", "node-2:4710"),
        ]);
        let remote = node_settings(&settings, String::new()).unwrap().remote;
        let address = |text: &str| text.parse::<NodeAddress>().unwrap();
        assert_eq!(remote.peers, [address("node-2:4710"), address("node-1:4711")]);
        assert_eq!(remote.placed, [("Cart".to_owned(), address("node-2:4710"))].into());
    }

    #[test]
    fn what_is_said_about_the_datacenter_reaches_the_runtime() {
        let settings = loaded(&[
            ("transport.kind", "tcp"),
            ("transport.insecure", "true"),
            ("transport.bind", "127.0.0.1:5000"),
            ("datacenter.id", "north"),
            ("datacenter.labels.tier", "prod"),
            ("datacenter.endpoints", "gate:4710"),
            ("datacenter.gateways", "leader"),
            ("datacenter.heartbeat", "2s"),
            ("datacenter.on_silence", "fail"),
            ("datacenter.on_stale.lookup", "fail"),
            ("datacenter.on_stale.placement", "proceed"),
            ("datacenter.placement", "nearest"),
            ("control_plane.kind", "embedded"),
            ("control_plane.lease_ttl", "6s"),
            ("actors.kinds.Cart.reach", "home"),
        ]);
        let node = node_settings(&settings, String::new()).unwrap();
        let own = &node.datacenter;
        assert_eq!((own.info.id().as_str(), node.remote.datacenter.as_str()), ("north", "north"));
        assert_eq!(own.info.labels().get("tier").map(String::as_str), Some("prod"));
        assert_eq!(own.info.endpoints(), ["gate:4710".parse::<NodeAddress>().unwrap()]);
        assert_eq!(own.gateways, archipelago_runtime::Gateways::Leader);
        assert_eq!((own.controller.heartbeat, own.controller.lease_ttl), (Millis(2_000), Millis(6_000)));
        use archipelago_protocol::datacenter::{OnSilence, OnStale};
        assert_eq!(node.discovery.on_silence, OnSilence::Fail);
        assert_eq!((node.discovery.on_stale, own.stale_placement), (OnStale::Fail, OnStale::Proceed));
        assert_eq!(format!("{:?}", own.placement), "NearestFirst");
        let reaches = ["Cart", "Account"].map(|kind| format!("{:?}", node.reach_of(kind)));
        assert_eq!(reaches, ["Home(HomeByKey)", "Discover"]);
    }
}
