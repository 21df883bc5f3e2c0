//! Which backend, and what it is told.

use std::time::Duration;

use super::super::{BackendKind, Conflict, Fault, Settings};
use super::{Directory, said_about};

#[cfg(not(feature = "etcd"))]
#[test]
fn backend_that_is_not_in_this_build_is_refused_with_its_feature() {
    assert_eq!(
        said_about("etcd-not-built", "[backend]\nkind = 'etcd'\n"),
        "archipelago.toml:2: backend.kind: \"etcd\" needs archipelago's cargo feature `etcd` \
         (environment variable ARCHIPELAGO_BACKEND__KIND)"
    );
}

#[cfg(not(feature = "nats"))]
#[test]
fn nats_that_is_not_in_this_build_is_refused_with_its_feature() {
    let said = said_about("nats-not-built", "[backend]\nkind = 'nats'\n");
    assert!(said.contains("\"nats\" needs archipelago's cargo feature `nats`"), "{said}");
}

#[cfg(not(feature = "foundationdb"))]
#[test]
fn foundationdb_that_is_not_in_this_build_is_refused_with_its_feature() {
    let said = said_about("foundationdb-not-built", "[backend]\nkind = 'foundationdb'\n");
    assert!(said.contains("\"foundationdb\" needs archipelago's cargo feature `foundationdb`"), "{said}");
}

#[test]
fn sections_of_backends_that_are_not_chosen_may_stay() {
    let text = "[backend.etcd]\nprefix = '/shop'\n[backend.nats]\nreplicas = 1\n[backend.nats.tls]\nca_file = 'ca'\n";
    let settings = Directory::new("not-chosen").with("archipelago.toml", text).loader().load().unwrap();
    assert_eq!(settings.backend.kind, BackendKind::Embedded);
    assert_eq!((settings.backend.etcd.prefix.as_str(), settings.backend.nats.replicas), ("/shop", 1));
}

#[test]
fn wrong_keys_and_values_in_the_sections_are_refused_with_file_line_key_and_variable() {
    assert_eq!(
        said_about("etcd-key", "[backend.etcd]\nendpoint = 'http://a'\n"),
        "archipelago.toml:2: backend.etcd.endpoint: unknown key; known here are connect_timeout, endpoints, \
         password_file, prefix, request_timeout, tls, user, watch_idle"
    );
    assert_eq!(
        said_about("etcd-endpoints", "[backend.etcd]\nendpoints = ['a:2379']\n"),
        "archipelago.toml:2: backend.etcd.endpoints = ['a:2379']: expected a list of addresses such as \
         [\"http://127.0.0.1:2379\"], each http:// or https:// \
         (environment variable ARCHIPELAGO_BACKEND__ETCD__ENDPOINTS)"
    );
    let misfits = [
        ("backend.etcd.endpoints", "[]"),
        ("backend.etcd.endpoints", "['https://']"),
        ("backend.etcd.prefix", "'/'"),
        ("backend.nats.urls", "['nats://me:secret@host']"),
        ("backend.nats.urls", "['http://host']"),
        ("backend.nats.stream", "'a.b'"),
        ("backend.nats.prefix", "'a..b'"),
        ("backend.nats.replicas", "0"),
        ("backend.nats.replicas", "6"),
        ("backend.nats.create_stream", "'yes'"),
        ("backend.foundationdb.prefix", "''"),
        ("backend.foundationdb.history", "300"),
    ];
    for (key, value) in misfits {
        let directory = Directory::new("misfit").with("archipelago.toml", &format!("{key} = {value}\n"));
        let error = directory.loader().load().unwrap_err();
        let problem = &error.problems()[0];
        let misfit = matches!(problem.fault, Fault::Misfit { .. });
        assert!(!error.to_string().contains("secret"), "{error}");
        assert!(misfit && problem.key.as_deref() == Some(key), "{key} = {value}: {error}");
    }
}

#[test]
fn a_variable_reaches_a_section_of_a_section() {
    let variables = [
        ("ARCHIPELAGO_BACKEND__ETCD__TLS__CA_FILE", "/ca.pem"),
        ("ARCHIPELAGO_BACKEND__NATS__URLS", "nats://a:1, tls://b:2"),
    ];
    let settings = Directory::new("variables").loader().environment(variables).load().unwrap();
    assert_eq!(settings.backend.etcd.tls.ca_file, Some("/ca.pem".into()));
    assert_eq!(settings.backend.nats.urls, ["nats://a:1", "tls://b:2"]);
}

#[test]
fn serving_or_joining_goes_with_the_embedded_backend_only() {
    let text = "transport = { kind = 'tcp', insecure = true }\nbackend.kind = 'foundationdb'\n\
                [backend.embedded]\nserve = true\n";
    let directory = Directory::new("embedded-only").with("archipelago.toml", text);
    let error = directory.loader().load().unwrap_err();
    let said: Vec<String> = error.problems().iter().map(ToString::to_string).collect();
    let expected = "archipelago.toml:4: backend.embedded.serve: only the embedded store can be served, joined or \
                    handed over, and backend.kind is \"foundationdb\" \
                    (environment variable ARCHIPELAGO_BACKEND__EMBEDDED__SERVE)";
    assert!(said.iter().any(|line| line.ends_with(expected)), "{said:?}");
}

#[test]
fn sessions_last_as_long_as_suits_the_backend() {
    let ttl = |kind| Settings::of_backend(kind).session.ttl();
    assert_eq!(ttl(BackendKind::Embedded), Duration::from_secs(6));
    assert_eq!(ttl(BackendKind::Etcd), Duration::from_secs(6));
    assert_eq!(ttl(BackendKind::Nats), Duration::from_secs(12));
    assert_eq!(ttl(BackendKind::FoundationDb), Duration::from_secs(6));
    assert_eq!(Settings::of_backend(BackendKind::Embedded), Settings::default());
}

#[cfg(feature = "nats")]
#[test]
fn the_backend_decides_about_the_session_only_where_nobody_else_does() {
    let session = |test: &str, text: &str| {
        let directory = Directory::new(test).with("archipelago.toml", text);
        directory.loader().set("backend.kind", "nats").load().unwrap().session
    };
    let of = |ttl, heartbeat| {
        crate::config::SessionSettings::new(Duration::from_secs(ttl), Duration::from_secs(heartbeat)).unwrap()
    };
    assert_eq!(session("nats-session", ""), of(12, 2));
    assert_eq!(session("nats-heartbeat", "[session]\nheartbeat = '4s'\n"), of(12, 4));
    assert_eq!(session("nats-ttl", "[session]\nttl = '6s'\n"), of(6, 2));
}

#[cfg(feature = "nats")]
#[test]
fn new_stream_that_grants_before_old_sessions_have_ended_is_refused() {
    assert_eq!(
        said_about("settle", "backend.kind = 'nats'\n[session]\nttl = '30s'\n"),
        "archipelago.toml:3: session.ttl: a new stream must grant nothing for at least 30s 900ms, \
         because session.ttl is 30s (environment variable ARCHIPELAGO_SESSION__TTL)"
    );
}

#[test]
fn the_words_for_a_backend_that_is_not_built_name_its_feature() {
    let rule = Conflict::BackendNotBuilt { kind: BackendKind::Etcd, feature: "etcd" };
    assert_eq!(rule.to_string(), "\"etcd\" needs archipelago's cargo feature `etcd`");
}
