//! Values that cannot be used together are refused, with the key and the layer to blame.

use super::super::{Conflict, Fault, Size, TransportKind};
use super::{Directory, said_about};

/// The rules that a file with this text breaks.
fn broken_by(test: &str, text: &str) -> Vec<Conflict> {
    let directory = Directory::new(test).with("archipelago.toml", text);
    let error = directory.loader().load().unwrap_err();
    let rule = |fault: &Fault| match fault {
        Fault::Conflict(rule) => rule.clone(),
        other => panic!("{other}"),
    };
    error.problems().iter().map(|problem| rule(&problem.fault)).collect()
}

#[cfg(feature = "quic")]
#[test]
fn quic_without_certificates_is_refused_with_every_way_to_get_some() {
    assert_eq!(
        said_about("no-certificates", "[transport]\nkind = 'quic'\n"),
        "archipelago.toml:2: transport.kind: quic needs certificates: \
         set transport.ca (ARCHIPELAGO_TRANSPORT__CA), \
         transport.certificate (ARCHIPELAGO_TRANSPORT__CERTIFICATE), \
         transport.key (ARCHIPELAGO_TRANSPORT__KEY); \
         or, for development, transport.development (ARCHIPELAGO_TRANSPORT__DEVELOPMENT) \
         (environment variable ARCHIPELAGO_TRANSPORT__KIND)"
    );
}

#[cfg(feature = "tcp")]
#[test]
fn tcp_without_certificates_is_refused_unless_it_is_told_to_be_insecure() {
    let said = said_about("tcp-no-certificates", "[transport]\nkind = 'tcp'\n");
    let third = "or, on a network that nobody else can reach, transport.insecure = true \
                 (ARCHIPELAGO_TRANSPORT__INSECURE)";
    assert!(said.contains("tcp needs certificates: set transport.ca ") && said.contains(third), "{said}");
}

#[cfg(feature = "quic")]
#[test]
fn insecure_quic_is_refused() {
    assert_eq!(
        said_about("insecure-quic", "[transport]\nkind = 'quic'\ninsecure = true\n"),
        "archipelago.toml:3: transport.insecure: QUIC is never insecure: set transport.insecure to false, \
         or transport.kind to \"tcp\" (ARCHIPELAGO_TRANSPORT__KIND) \
         (environment variable ARCHIPELAGO_TRANSPORT__INSECURE)"
    );
}

#[cfg(feature = "tcp")]
#[test]
fn insecure_tcp_with_certificates_is_refused() {
    let text = "[transport]\nkind = 'tcp'\ninsecure = true\ndevelopment = 'certs'\n";
    assert_eq!(broken_by("insecure-certificates", text), [Conflict::InsecureWithCertificates]);
}

#[test]
fn some_of_the_three_files_are_refused_with_the_missing_ones() {
    assert_eq!(
        said_about("incomplete", "[transport]\ncertificate = 'node.pem'\n"),
        "archipelago.toml:2: transport.certificate: \
         transport.ca, transport.certificate and transport.key go together; \
         not set: transport.ca (ARCHIPELAGO_TRANSPORT__CA), transport.key (ARCHIPELAGO_TRANSPORT__KEY) \
         (environment variable ARCHIPELAGO_TRANSPORT__CERTIFICATE)"
    );
}

#[test]
fn development_beside_files_is_refused() {
    let text = "[transport]\ndevelopment = 'certs'\nca = 'ca.pem'\n";
    assert_eq!(broken_by("development-files", text), [Conflict::DevelopmentWithFiles]);
}

#[cfg(feature = "tcp")]
#[test]
fn listening_everywhere_needs_a_host_to_tell_others() {
    let text = "[transport]\nkind = 'tcp'\ninsecure = true\nbind = '0.0.0.0:4710'\n";
    assert_eq!(
        said_about("everywhere", text),
        "archipelago.toml:4: transport.bind: nobody can dial 0.0.0.0:4710: \
         set transport.advertise (ARCHIPELAGO_TRANSPORT__ADVERTISE) to the host that others reach this node by \
         (environment variable ARCHIPELAGO_TRANSPORT__BIND)"
    );
}

#[test]
fn what_is_about_other_nodes_needs_a_transport() {
    let text = "cluster.peers = ['a:1']\ncluster.placed.Account = 'a:1'\n[backend.embedded]\nserve = true\n";
    let keys = ["cluster.peers", "cluster.placed", "backend.embedded.serve"];
    assert_eq!(broken_by("no-transport", text), keys.map(|key| Conflict::NeedsTransport { key }));
    assert_eq!(
        said_about("join-no-transport", "[backend.embedded]\njoin = 'a:1'\n"),
        "archipelago.toml:2: backend.embedded.join: \
         needs a transport: set transport.kind (ARCHIPELAGO_TRANSPORT__KIND) to \"quic\" or \"tcp\" \
         (environment variable ARCHIPELAGO_BACKEND__EMBEDDED__JOIN)"
    );
    assert_eq!(
        said_about("placed-no-transport", "[cluster.placed]\nAccount = 'a:1'\n"),
        "archipelago.toml:2: cluster.placed: \
         needs a transport: set transport.kind (ARCHIPELAGO_TRANSPORT__KIND) to \"quic\" or \"tcp\""
    );
}

#[cfg(feature = "tcp")]
#[test]
fn what_is_for_members_is_refused_to_a_light_client() {
    let text = "transport = { kind = 'tcp', insecure = true, bind = '0.0.0.0:1' }\n\
                [cluster]\ncontacts = ['a:1']\npeers = ['a:1']\nplaced = { Account = 'a:1' }\n\
                [backend.embedded]\nserve = true\n";
    let keys = ["cluster.peers", "cluster.placed", "backend.embedded.serve"];
    assert_eq!(broken_by("client-keys", text), keys.map(|key| Conflict::NotForClients { key }));
    let transport = broken_by("client-transport", "[cluster]\ncontacts = ['a:1']\n");
    assert_eq!(transport, [Conflict::NeedsTransport { key: "cluster.contacts" }]);
}

#[cfg(feature = "tcp")]
#[test]
fn serving_and_joining_at_once_is_refused() {
    let text =
        "transport = { kind = 'tcp', insecure = true }\n[backend.embedded]\nserve = true\njoin = 'a:1'\n";
    assert_eq!(
        said_about("serve-join", text),
        "archipelago.toml:4: backend.embedded.join: \
         a node serves its own store or joins that of another: leave out one of serve and join \
         (environment variable ARCHIPELAGO_BACKEND__EMBEDDED__JOIN)"
    );
}

#[test]
fn kinds_that_no_other_datacenter_finds_reach_no_further_than_their_own() {
    for (divided, words) in [("actors", "actors with records of their own"), ("ranges", "ranges of keys")] {
        for reach in ["discover", "home"] {
            let text = format!("[actors.kinds.Cart]\ndivided = '{divided}'\nreach = '{reach}'\n");
            let said = said_about(&format!("{divided}-{reach}"), &text);
            let expected = format!(
                "archipelago.toml:3: actors.kinds: kind Cart is divided into {words}, which no other datacenter finds: \
                 actors.kinds.Cart.reach can only be \"local\""
            );
            assert!(said.starts_with(&expected), "{said}");
        }
        let by_default = format!("[actors]\nreach = 'home'\n[actors.kinds.Cart]\ndivided = '{divided}'\n");
        let broken = broken_by(&format!("{divided}-by-default"), &by_default);
        assert!(
            matches!(&broken[..], [Conflict::ReachNotLocal { kind, .. }] if kind == "Cart"),
            "{broken:?}"
        );
        for sound in [
            format!("{by_default}reach = 'local'\n"),
            format!("[actors]\nreach = 'discover'\n[actors.kinds.Cart]\ndivided = '{divided}'\n"),
            format!("[actors.kinds.Cart]\ndivided = '{divided}'\n"),
            "[actors.kinds.Cart]\ndivided = 'shards'\nreach = 'home'\n".to_owned(),
        ] {
            let directory = Directory::new(&format!("{divided}-sound")).with("archipelago.toml", &sound);
            directory.loader().load().unwrap_or_else(|error| panic!("{sound}: {error}"));
        }
    }
}

#[test]
fn frames_that_are_too_small_or_larger_than_the_largest_message_are_refused() {
    assert_eq!(
        said_about("frame", "[lanes]\nframe = '4095 B'\n"),
        "archipelago.toml:2: lanes.frame: a frame of 4095 B is too small: at least 4 KiB is needed \
         (environment variable ARCHIPELAGO_LANES__FRAME)"
    );
    assert_eq!(
        said_about("largest", "[lanes]\nlargest = '512 KiB'\n"),
        "archipelago.toml:2: lanes.largest: the largest message, 512 KiB, is smaller than a frame of 1 MiB \
         (environment variable ARCHIPELAGO_LANES__LARGEST)"
    );
    for window in ["65535 B", "65 MiB"] {
        let found = broken_by("window", &format!("[lanes]\nstream_window = '{window}'\n"));
        assert_eq!(found, [Conflict::StreamWindow { window: window.parse().unwrap() }], "{window}");
    }
    let (largest, frame) = (Size::from_bytes(64 << 20), Size::from_bytes(1 << 30));
    let text = "[lanes]\nframe = '1 GiB'\n";
    assert_eq!(broken_by("frame-largest", text), [Conflict::LargestBelowFrame { largest, frame }]);
}

#[test]
fn a_session_of_less_than_three_seconds_is_refused() {
    assert_eq!(
        said_about("brief-session", "[session]\nttl = '300ms'\nheartbeat = '100ms'\n"),
        "archipelago.toml:2: session.ttl: a ttl of 300ms is too short: at least 3s is needed \
         (environment variable ARCHIPELAGO_SESSION__TTL)"
    );
    let directory = Directory::new("shortest-session");
    let directory = directory.with("archipelago.toml", "[session]\nttl = '3s'\nheartbeat = '1s'\n");
    assert_eq!(directory.loader().load().unwrap().session.ttl().as_secs(), 3);
}

#[test]
fn all_broken_rules_are_reported_at_once() {
    let text = "[transport]\nca = 'a'\n[lanes]\nframe = '1 B'\n[cluster]\npeers = ['a:1']\n";
    assert_eq!(broken_by("all-conflicts", text).len(), 3);
}

#[test]
fn transport_that_is_not_in_this_build_is_refused_with_its_feature() {
    let rule = Conflict::NotBuilt { kind: TransportKind::Quic };
    assert_eq!(
        rule.to_string(),
        "the transport quic is not in this build: switch on the cargo feature `quic` of archipelago"
    );
    #[cfg(not(feature = "quic"))]
    assert!(broken_by("not-built", "[transport]\nkind = 'quic'\ndevelopment = 'd'\n").contains(&rule));
}

/// Proves: R395, R425, C49
#[cfg(all(feature = "tcp", feature = "etcd"))]
#[test]
fn the_lease_of_a_datacenter_has_to_be_said_and_to_last_three_heartbeats() {
    use std::time::Duration;

    use super::super::BackendKind;
    let with = |plane: &str| {
        format!(
            "[transport]\nkind = 'tcp'\ninsecure = true\nbind = '127.0.0.1:4710'\n[control_plane]\n{plane}"
        )
    };
    let missing = broken_by("no-lease", &with("kind = 'etcd'\n"));
    assert_eq!(missing, [Conflict::LeaseMissing { kind: BackendKind::Etcd }]);
    let said = said_about("no-lease-said", &with("kind = 'etcd'\n"));
    assert!(said.contains("control_plane.lease_ttl: a control plane in etcd has to be told"), "{said}");
    let (ttl, heartbeat) = (Duration::from_secs(29), Duration::from_secs(10));
    let short = broken_by("short-lease", &with("kind = 'embedded'\nlease_ttl = '29s'\n"));
    assert_eq!(short, [Conflict::LeaseTooShort { ttl, heartbeat }]);
    let embedded = Directory::new("own-lease").with("archipelago.toml", &with("kind = 'embedded'\n"));
    assert_eq!(embedded.loader().load().unwrap().control_plane.lease(), Duration::from_secs(30));
}

#[test]
fn a_control_plane_needs_a_transport() {
    let broken = broken_by("plane-alone", "[control_plane]\nkind = 'embedded'\n");
    assert_eq!(broken, [Conflict::NeedsTransport { key: "control_plane.kind" }]);
}

#[cfg(feature = "admin")]
#[test]
fn an_admin_api_that_others_reach_is_refused_unless_it_is_said() {
    for bind in ["0.0.0.0:4780", "192.0.2.1:4780", "[::]:4780"] {
        let text = format!("[admin]\nserve = true\nbind = '{bind}'\n");
        let bind = bind.parse().unwrap();
        assert_eq!(broken_by("admin-exposed", &text), [Conflict::AdminExposed { bind }]);
        let said = Directory::new("admin-said").with("archipelago.toml", &format!("{text}expose = true\n"));
        assert!(said.loader().load().is_ok());
    }
}

#[cfg(not(feature = "prometheus"))]
#[test]
fn metrics_that_are_not_in_this_build_are_refused() {
    let said = said_about("metrics-not-built", "[admin]\nmetrics = true\n");
    assert!(
        said.starts_with("archipelago.toml:2: admin.metrics: needs archipelago's cargo feature `prometheus`"),
        "{said}"
    );
}

#[cfg(not(feature = "admin"))]
#[test]
fn an_admin_api_that_is_not_in_this_build_is_refused() {
    assert_eq!(broken_by("admin-not-built", "[admin]\nserve = true\n"), [Conflict::AdminNotBuilt]);
}

#[test]
fn reads_are_not_guarded_without_a_token() {
    let said = said_about("admin-guarded", "[admin]\nguard_reads = true\n");
    assert!(said.starts_with("archipelago.toml:2: admin.guard_reads: nobody could read anything"), "{said}");
}
