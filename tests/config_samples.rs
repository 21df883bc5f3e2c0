//! The samples in `config/` load, and the full one says what the defaults are.

use std::collections::BTreeSet;
use std::path::PathBuf;

use archipelago::config::{BackendKind, EtcdSettings, Loader, NatsSettings, Settings};
use figment::value::Value;

#[test]
fn full_sample_says_exactly_the_defaults() {
    assert_eq!(load("archipelago.toml"), Settings::default());
}

#[test]
fn full_sample_shows_every_key_with_its_variable() {
    let text = std::fs::read_to_string(path("archipelago.toml")).unwrap();
    let mut shown = BTreeSet::new();
    let mut section = String::new();
    let mut above = "";
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = format!("{name}.");
        } else if let Some((key, _)) = line.split_once(" = ").filter(|_| !line.starts_with('#')) {
            let key = format!("{section}{key}");
            let in_section = if section.is_empty() { "_" } else { "" };
            let variable = format!("ARCHIPELAGO_{in_section}{}", key.replace('.', "__").to_uppercase());
            assert!(above.ends_with(&format!(" {variable}")), "{variable} is not named above {line}");
            shown.insert(key);
        }
        above = line;
    }
    assert_eq!(shown, keys_of(&Settings::default()));
}

#[cfg(all(feature = "quic", feature = "tcp"))]
#[test]
fn every_sample_loads() {
    let mut seen = Vec::new();
    for entry in std::fs::read_dir(path("")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.ends_with(".toml") {
            if in_this_build(&name) {
                load(&name);
            }
            seen.push(name);
        }
    }
    seen.sort();
    let known = [
        "archipelago.toml",
        "embedded.toml",
        "etcd.toml",
        "foundationdb.toml",
        "multidc.toml",
        "nats.toml",
        "quic.toml",
        "tcp-insecure.toml",
    ];
    assert_eq!(seen, known, "name a new sample here and test what it says");
}

#[test]
fn embedded_sample_chooses_the_embedded_backend() {
    let settings = load("embedded.toml");
    assert_eq!(settings.backend.kind, BackendKind::Embedded);
    assert_eq!((settings.namespace.as_str(), settings.node.name.as_str()), ("shop", "shop-1"));
}

#[cfg(all(feature = "etcd", feature = "tcp"))]
#[test]
fn etcd_sample_differs_from_the_defaults_of_its_backend_only_in_names() {
    let settings = load("etcd.toml");
    assert_eq!(settings.session, Settings::of_backend(BackendKind::Etcd).session);
    let mut expected = Settings::default().backend;
    expected.kind = BackendKind::Etcd;
    expected.etcd.prefix = "/shop".to_owned();
    assert_eq!(settings.backend, expected);
}

/// Proves: R426
#[cfg(all(feature = "etcd", feature = "tcp"))]
#[test]
fn multidc_sample_keeps_directory_and_registry_apart_and_says_its_lease() {
    use archipelago::config::{ControlPlaneKind, DataCenterPlacement};
    let settings = load("multidc.toml");
    let plane = &settings.control_plane;
    assert_eq!(plane.kind, ControlPlaneKind::In(BackendKind::Etcd));
    assert_eq!(plane.lease_ttl, Some(std::time::Duration::from_secs(30)));
    assert_eq!(plane.etcd.endpoints, ["http://127.0.0.1:2379"]);
    assert_ne!(plane.etcd.prefix, settings.backend.etcd.prefix);
    assert_eq!(settings.datacenter.labels.get("tier").map(String::as_str), Some("prod"));
    assert_eq!(settings.datacenter.placement, DataCenterPlacement::Region);
}

/// The type is the store's own: a key of another store is no key of it, nor of the control plane at large.
///
/// Proves: R428
#[test]
fn what_only_one_store_understands_is_said_in_its_own_section_of_the_control_plane() {
    let with = |key: &str, value: &str| {
        let variables: [(&str, &str); 0] = [];
        Loader::new().environment(variables).set(key, value).load()
    };
    let (endpoints, urls) = (r#"["http://a:2379"]"#, r#"["nats://a:4222"]"#);
    let etcd: EtcdSettings = with("control_plane.etcd.endpoints", endpoints).unwrap().control_plane.etcd;
    let nats: NatsSettings = with("control_plane.nats.urls", urls).unwrap().control_plane.nats;
    assert_eq!((etcd.endpoints, nats.urls), (vec!["http://a:2379".into()], vec!["nats://a:4222".into()]));
    for (key, value) in [
        ("control_plane.etcd.urls", urls),
        ("control_plane.nats.endpoints", endpoints),
        ("control_plane.endpoints", endpoints),
    ] {
        let error = with(key, value).unwrap_err().to_string();
        assert!(error.contains(key), "{error}");
    }
}

/// Everything in it but the feature is right, also in a build that cannot use it.
#[cfg(feature = "tcp")]
#[test]
fn foundationdb_sample_differs_from_the_defaults_of_its_backend_only_in_names() {
    let sample = std::fs::read_to_string(path("foundationdb.toml")).unwrap();
    assert!(sample.contains("\nkind = \"foundationdb\"\n"));
    let settings = if cfg!(feature = "foundationdb") {
        load("foundationdb.toml")
    } else {
        let variables: [(&str, &str); 0] = [];
        let loader = Loader::new().file(path("foundationdb.toml")).environment(variables);
        loader.set("backend.kind", "embedded").load().expect("the sample loads")
    };
    let mut expected = Settings::default().backend;
    expected.kind = settings.backend.kind;
    expected.foundationdb.prefix = "shop".to_owned();
    expected.foundationdb.cluster_file = Some("/etc/foundationdb/fdb.cluster".into());
    assert_eq!(settings.backend, expected);
    assert_eq!(settings.session, Settings::of_backend(BackendKind::FoundationDb).session);
}

#[cfg(all(feature = "nats", feature = "tcp"))]
#[test]
fn nats_sample_is_for_one_server_and_otherwise_as_its_backend_is_by_default() {
    let settings = load("nats.toml");
    assert_eq!(settings.session, Settings::of_backend(BackendKind::Nats).session);
    let mut expected = Settings::default().backend;
    expected.kind = BackendKind::Nats;
    expected.nats.stream = "shop".to_owned();
    expected.nats.prefix = "shop".to_owned();
    expected.nats.replicas = 1;
    assert_eq!(settings.backend, expected);
}

#[cfg(all(feature = "quic", feature = "tcp"))]
#[test]
fn quic_sample_proves_itself_with_files_and_says_where_it_is_reached() {
    let settings = load("quic.toml");
    let transport = &settings.transport;
    assert_eq!((transport.kind, transport.insecure), (archipelago::config::TransportKind::Quic, false));
    assert!(transport.ca.is_some() && transport.certificate.is_some() && transport.key.is_some());
    assert_eq!(transport.advertise.as_ref().map(archipelago::config::Host::as_str), Some("10.0.0.1"));
    assert_eq!(settings.cluster.peers.len(), 2);
}

#[cfg(all(feature = "quic", feature = "tcp"))]
#[test]
fn tcp_sample_is_insecure_in_so_many_words_and_stays_on_loopback() {
    let settings = load("tcp-insecure.toml");
    let transport = &settings.transport;
    assert_eq!((transport.kind, transport.insecure), (archipelago::config::TransportKind::Tcp, true));
    assert_eq!(transport.bind.host(), "127.0.0.1");
    assert_eq!(settings.cluster.placed.get("Account"), Some(&transport.bind));
}

#[cfg(all(feature = "quic", feature = "tcp"))]
fn in_this_build(sample: &str) -> bool {
    let optional = [
        ("etcd.toml", cfg!(feature = "etcd")),
        ("multidc.toml", cfg!(feature = "etcd")),
        ("foundationdb.toml", cfg!(feature = "foundationdb")),
        ("nats.toml", cfg!(feature = "nats")),
    ];
    optional.iter().all(|(name, built)| *name != sample || *built)
}

fn load(sample: &str) -> Settings {
    let variables: [(&str, &str); 0] = [];
    Loader::new().file(path(sample)).environment(variables).load().expect("the sample loads")
}

/// The dotted names of all fields that hold a value.
fn keys_of(settings: &Settings) -> BTreeSet<String> {
    fn collect(prefix: &str, value: &Value, keys: &mut BTreeSet<String>) {
        let Some(dict) = value.as_dict() else {
            keys.insert(prefix.trim_start_matches('.').to_owned());
            return;
        };
        for (name, value) in dict {
            collect(&format!("{prefix}.{name}"), value, keys);
        }
    }
    let mut keys = BTreeSet::new();
    collect("", &Value::serialize(settings).expect("settings are serialisable"), &mut keys);
    keys
}

fn path(sample: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("config").join(sample)
}
