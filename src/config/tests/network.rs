//! `[cluster]`, `[transport]`, `[lanes]` and `[backend.embedded]`, from files and from variables.

use std::path::PathBuf;
use std::time::Duration;

use archipelago_protocol::identity::NodeAddress;

use super::super::{Host, Overflow, Size, TransportKind};
use super::{Directory, Loader, Settings, said_about, said_about_variable};

fn address(text: &str) -> NodeAddress {
    text.parse().unwrap()
}

#[test]
fn a_node_meets_nobody_unless_it_is_told_to() {
    let settings = Settings::default();
    assert_eq!(settings.transport.kind, TransportKind::None);
    assert_eq!(settings.transport.bind, address("127.0.0.1:4710"));
    assert!(!settings.transport.insecure && !settings.backend.embedded.serve);
    assert!(settings.cluster.peers.is_empty() && settings.cluster.placed.is_empty());
}

#[test]
fn sections_about_other_nodes_are_read_from_a_file() {
    let text = r#"
        [cluster]
        name = "shop"
        peers = ["10.0.0.1:4710", "[::1]:4710"]
        [cluster.placed]
        Account = "10.0.0.2:4710"
        [datacenter]
        name = "east"
        [transport]
        kind = "quic"
        bind = "0.0.0.0:5000"
        advertise = "node-1.example.org"
        ca = "ca.pem"
        certificate = "node.pem"
        key = "node.key"
        server_name = "shop"
        [lanes]
        frame = "512 KiB"
        overflow = "drop-oldest"
        tell_ttl = "1s"
    "#;
    let settings = Directory::new("net-file").with("archipelago.toml", text).loader().load().unwrap();
    assert_eq!((settings.cluster.name.as_str(), settings.datacenter.name.as_str()), ("shop", "east"));
    assert_eq!(settings.cluster.peers, [address("10.0.0.1:4710"), address("[::1]:4710")]);
    assert_eq!(settings.cluster.placed, [("Account".to_owned(), address("10.0.0.2:4710"))].into());
    assert_eq!(settings.transport.kind, TransportKind::Quic);
    assert_eq!(settings.transport.advertise.as_ref().map(Host::as_str), Some("node-1.example.org"));
    assert_eq!(settings.transport.key, Some(PathBuf::from("node.key")));
    assert_eq!(settings.lanes.frame, Size::from_bytes(512 << 10));
    assert_eq!(settings.lanes.overflow, Overflow::DropOldest);
    assert_eq!(settings.lanes.tell_ttl, Duration::from_secs(1));
}

#[test]
fn sections_about_other_nodes_are_read_from_variables() {
    let variables = [
        ("ARCHIPELAGO_CLUSTER__PEERS", "a:1, [::1]:2"),
        ("ARCHIPELAGO_CLUSTER__PLACED__Account", "b:3"),
        ("ARCHIPELAGO_TRANSPORT__KIND", "tcp"),
        ("ARCHIPELAGO_TRANSPORT__DEVELOPMENT", "certs"),
        ("ARCHIPELAGO_LANES__OVERFLOW", "wait"),
        ("ARCHIPELAGO_LANES__WAITING", "6"),
        ("ARCHIPELAGO_LANES__BYTES", "1 MiB"),
        ("ARCHIPELAGO_LANES__PARKED", "5"),
        ("ARCHIPELAGO_BACKEND__EMBEDDED__SERVE", "true"),
    ];
    let settings = Loader::new().directory("/nowhere").environment(variables).load().unwrap();
    assert_eq!(settings.cluster.peers, [address("a:1"), address("[::1]:2")]);
    assert_eq!(settings.cluster.placed.get("Account"), Some(&address("b:3")), "the kind keeps its case");
    assert_eq!(settings.transport.development, Some(PathBuf::from("certs")));
    assert_eq!((settings.lanes.overflow, settings.lanes.waiting.get()), (Overflow::Wait, 6));
    assert_eq!((settings.lanes.bytes, settings.lanes.parked.get()), (Size::from_bytes(1 << 20), 5));
    assert!(settings.backend.embedded.serve);
}

#[test]
fn empty_text_takes_away_what_a_weaker_layer_set() {
    let text = "[transport]\nkind = 'tcp'\ndevelopment = 'certs'\nadvertise = 'a'\n";
    let directory = Directory::new("net-empty").with("archipelago.toml", text);
    let variables = [("ARCHIPELAGO_TRANSPORT__DEVELOPMENT", ""), ("ARCHIPELAGO_TRANSPORT__INSECURE", "true")];
    let transport = directory.loader().environment(variables).load().unwrap().transport;
    assert_eq!((transport.development, transport.insecure), (None, true));
    assert_eq!(transport.advertise.as_ref().map(Host::as_str), Some("a"));
}

// ---- what is refused, and in which words ----

#[test]
fn bad_addresses_are_refused() {
    assert_eq!(
        said_about("net-peer", "[cluster]\npeers = ['a:1', 'b']\n"),
        "archipelago.toml:2: cluster.peers = ['a:1', 'b']: \
         expected a list of addresses of nodes such as [\"10.0.0.1:4710\", \"10.0.0.2:4710\"] \
         (environment variable ARCHIPELAGO_CLUSTER__PEERS)"
    );
    assert_eq!(
        said_about_variable("ARCHIPELAGO_CLUSTER__PLACED__Account", "a:0"),
        "environment variable ARCHIPELAGO_CLUSTER__PLACED__Account: cluster.placed.Account = \"a:0\": \
         expected the address of a node such as \"10.0.0.1:4710\""
    );
    assert_eq!(
        said_about_variable("ARCHIPELAGO_TRANSPORT__BIND", "4710"),
        "environment variable ARCHIPELAGO_TRANSPORT__BIND: transport.bind = \"4710\": \
         expected an address such as \"127.0.0.1:4710\""
    );
    assert_eq!(
        said_about_variable("ARCHIPELAGO_TRANSPORT__ADVERTISE", "a:1"),
        "environment variable ARCHIPELAGO_TRANSPORT__ADVERTISE: transport.advertise = \"a:1\": \
         expected a host without a port such as \"10.0.0.1\" or \"node-1.example.org\", or \"\" for none"
    );
    assert_eq!(
        said_about_variable("ARCHIPELAGO_BACKEND__EMBEDDED__JOIN", "a"),
        "environment variable ARCHIPELAGO_BACKEND__EMBEDDED__JOIN: backend.embedded.join = \"a\": \
         expected the address of a node such as \"10.0.0.1:4710\", or \"\" for none"
    );
}

#[test]
fn words_outside_a_choice_are_refused_with_the_choice() {
    assert_eq!(
        said_about_variable("ARCHIPELAGO_TRANSPORT__KIND", "carrier-pigeon"),
        "environment variable ARCHIPELAGO_TRANSPORT__KIND: transport.kind = \"carrier-pigeon\": \
         expected \"none\", \"quic\" (cargo feature `quic`), \"tcp\" (cargo feature `tcp`) or \"own\""
    );
    assert_eq!(
        said_about_variable("ARCHIPELAGO_LANES__OVERFLOW", "drop"),
        "environment variable ARCHIPELAGO_LANES__OVERFLOW: lanes.overflow = \"drop\": \
         expected \"fail\", \"wait\" or \"drop-oldest\""
    );
    assert_eq!(
        said_about_variable("ARCHIPELAGO_TRANSPORT__INSECURE", "yes"),
        "environment variable ARCHIPELAGO_TRANSPORT__INSECURE: transport.insecure = \"yes\": \
         expected true or false"
    );
}

#[test]
fn sizes_without_room_are_refused() {
    for bad in ["0 B", "8"] {
        assert_eq!(
            said_about_variable("ARCHIPELAGO_LANES__WINDOW", bad),
            format!(
                "environment variable ARCHIPELAGO_LANES__WINDOW: lanes.window = {bad:?}: \
                 expected a size above zero such as \"512 KiB\" or \"8 MiB\""
            )
        );
    }
}
