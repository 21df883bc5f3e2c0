//! Everything on this machine that the start of a node would refuse, found without starting one.
//!
//! The rules between keys are [`Conflict`](crate::config::Conflict)'s. Here follow those about the files that keys name: the
//! certificates are loaded as a node loads them, a token is read, and what a store is to be told is complete. Nothing is written,
//! nobody is asked, and no store need be in this build.

use std::path::{Path, PathBuf};

use crate::config::{
    BackendKind, ControlPlaneKind, EtcdSettings, Fault, NatsSettings, Origins, Problem, Settings,
    TransportKind,
};
use crate::{admin, network};

/// What was found out about a configuration.
#[derive(Debug)]
#[non_exhaustive]
pub struct Inspection {
    /// What it says; none if a layer of it cannot be understood.
    pub settings: Option<Settings>,
    /// Why a node would not start with it, weakest layer first.
    pub problems: Vec<Problem>,
}

/// Looks at what the layers have said.
pub(crate) fn inspect(settings: Settings, origins: &Origins) -> Inspection {
    let mut problems = origins.check(&settings).err().map_or_else(Vec::new, |error| error.into_problems());
    if settings.transport.security().is_ok() && !is_made_at_the_start(&settings) {
        let loaded = network::transport(&settings, origins, None);
        // A transport that is not in this build was said already.
        let files = loaded.err().map_or_else(Vec::new, |error| error.into_problems());
        problems.extend(files.into_iter().filter(|problem| !problem.is_about_the_build()));
    }
    let mut refuse = |key: &str, message: String| {
        problems.extend(origins.refuse(&[key], Fault::Refused { message }).into_problems());
    };
    if let Err(error) = crate::node_settings::node_settings(&settings, String::new()) {
        refuse("datacenter.name", error.to_string());
    }
    if let Some(error) = admin::token_fault(&settings) {
        refuse("admin.token_file", error);
    }
    for (key, message) in in_stores(&settings) {
        refuse(&key, message);
    }
    Inspection { settings: Some(settings), problems }
}

/// Whether the start of a node would make the certificates, or takes a transport from code.
fn is_made_at_the_start(settings: &Settings) -> bool {
    let own = &settings.transport;
    let missing = |directory: &PathBuf| {
        ["ca.key", "ca.pem", "node.key", "node.pem"].iter().any(|name| !directory.join(name).exists())
    };
    own.kind == TransportKind::Own || own.development.as_ref().is_some_and(missing)
}

/// What is wrong with what the stores are told, each with its key.
fn in_stores(settings: &Settings) -> Vec<(String, String)> {
    if settings.cluster.is_client() {
        return Vec::new();
    }
    let (backend, plane) = (&settings.backend, &settings.control_plane);
    let mut found = of_store("backend", backend.kind, &backend.etcd, &backend.nats);
    found.extend(cluster_file("backend", backend.kind, backend.foundationdb.cluster_file.as_deref()));
    if let ControlPlaneKind::In(kind) = plane.kind {
        found.extend(of_store("control_plane", kind, &plane.etcd, &plane.nats));
        found.extend(cluster_file("control_plane", kind, plane.foundationdb.cluster_file.as_deref()));
    }
    found
}

fn of_store(
    section: &str,
    kind: BackendKind,
    etcd: &EtcdSettings,
    nats: &NatsSettings,
) -> Vec<(String, String)> {
    let found = match kind {
        BackendKind::Etcd => in_etcd(etcd),
        BackendKind::Nats => in_nats(nats),
        _ => Vec::new(),
    };
    found.into_iter().map(|(key, message)| (format!("{section}.{kind}.{key}"), message)).collect()
}

fn cluster_file(section: &str, kind: BackendKind, file: Option<&Path>) -> Option<(String, String)> {
    let file = file.filter(|_| kind == BackendKind::FoundationDb)?;
    Some((format!("{section}.{kind}.cluster_file"), unreadable(file)?))
}

fn in_etcd(own: &EtcdSettings) -> Vec<(&'static str, String)> {
    let tls = &own.tls;
    let https = own.endpoints.iter().any(|endpoint| endpoint.starts_with("https://"));
    let plain = own.endpoints.iter().any(|endpoint| endpoint.starts_with("http://"));
    let mut found = Vec::new();
    if https && tls.ca_file.is_none() {
        found.push(("tls.ca_file", "is missing, though an endpoint is https".to_owned()));
    }
    if plain && tls.ca_file.is_some() {
        found.push(("endpoints", "must begin with https://, because tls.ca_file is set".to_owned()));
    }
    found.extend(pair(("user", own.user.is_some()), ("password_file", own.password_file.is_some())));
    found.extend(secret("password_file", own.password_file.as_deref()));
    found.extend(certificates(&tls.ca_file, &tls.certificate_file, &tls.key_file));
    found
}

fn in_nats(own: &NatsSettings) -> Vec<(&'static str, String)> {
    let ways = [
        own.password_file.is_some() || own.user.is_some(),
        own.token_file.is_some(),
        own.nkey_seed_file.is_some(),
        own.credentials_file.is_some(),
    ];
    let mut found = Vec::new();
    if ways.into_iter().filter(|way| *way).count() > 1 {
        found.push(("urls", "more than one way to log in is set: leave all but one out".to_owned()));
    }
    found.extend(pair(("user", own.user.is_some()), ("password_file", own.password_file.is_some())));
    let secrets = [
        ("password_file", &own.password_file),
        ("token_file", &own.token_file),
        ("nkey_seed_file", &own.nkey_seed_file),
        ("credentials_file", &own.credentials_file),
    ];
    found.extend(secrets.into_iter().filter_map(|(key, file)| secret(key, file.as_deref())));
    let tls = &own.tls;
    found.extend(certificates(&tls.ca_file, &tls.certificate_file, &tls.key_file));
    found
}

/// Two keys that are of no use without each other.
fn pair(one: (&'static str, bool), other: (&'static str, bool)) -> Option<(&'static str, String)> {
    match (one, other) {
        ((there, true), (missing, false)) | ((missing, false), (there, true)) => {
            Some((missing, format!("is missing, though {there} is set")))
        }
        _ => None,
    }
}

fn certificates(
    ca: &Option<PathBuf>,
    certificate: &Option<PathBuf>,
    key: &Option<PathBuf>,
) -> Vec<(&'static str, String)> {
    let halves = pair(("tls.certificate_file", certificate.is_some()), ("tls.key_file", key.is_some()));
    let files = [
        ("tls.ca_file", ca, "CERTIFICATE"),
        ("tls.certificate_file", certificate, "CERTIFICATE"),
        ("tls.key_file", key, "PRIVATE KEY"),
    ];
    let found =
        files.into_iter().filter_map(|(name, file, what)| Some((name, no_pem(file.as_deref()?, what)?)));
    halves.into_iter().chain(found).collect()
}

fn secret(key: &'static str, file: Option<&Path>) -> Option<(&'static str, String)> {
    unreadable(file?).map(|message| (key, message))
}

fn no_pem(file: &Path, what: &str) -> Option<String> {
    let text = match std::fs::read(file) {
        Ok(text) => text,
        Err(error) => return Some(cannot_read(file, &error)),
    };
    let text = String::from_utf8_lossy(&text);
    let begins = text.lines().any(|line| line.starts_with("-----BEGIN ") && line.contains(what));
    (!begins).then(|| format!("{} holds no PEM {what}", file.display()))
}

fn unreadable(file: &Path) -> Option<String> {
    std::fs::read(file).err().map(|error| cannot_read(file, &error))
}

fn cannot_read(file: &Path, error: &std::io::Error) -> String {
    format!("cannot read {}: {error}", file.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Loader;

    fn found(keys: &[(&str, &str)]) -> Vec<String> {
        let none: [(&str, &str); 0] = [];
        let loader = Loader::new().directory("/nowhere").environment(none);
        let loader = keys.iter().fold(loader, |loader, (key, value)| loader.set(*key, value));
        let problems = loader.inspect().problems;
        problems.iter().filter(|one| !one.is_about_the_build()).map(ToString::to_string).collect()
    }

    fn names(keys: &[(&str, &str)], key: &str, word: &str) {
        let found = found(keys);
        assert!(
            found.iter().any(|line| line.contains(key) && line.contains(word)),
            "{key} {word}: {found:?}"
        );
    }

    #[test]
    fn the_defaults_and_a_store_that_is_not_in_this_build_are_in_order() {
        assert_eq!(found(&[]), Vec::<String>::new());
        assert_eq!(found(&[("backend.kind", "etcd")]), Vec::<String>::new());
        assert_eq!(found(&[("backend.kind", "foundationdb")]), Vec::<String>::new());
    }

    #[test]
    fn files_that_are_not_there_are_named_with_their_keys() {
        names(&[("admin.token_file", "/no/token")], "admin.token_file", "/no/token");
        let etcd =
            [("backend.kind", "etcd"), ("backend.etcd.user", "me"), ("backend.etcd.password_file", "/no/p")];
        names(&etcd, "backend.etcd.password_file", "/no/p");
        let nats = [("backend.kind", "nats"), ("backend.nats.tls.ca_file", "/no/ca")];
        names(&nats, "backend.nats.tls.ca_file", "/no/ca");
        let database = [("backend.kind", "foundationdb"), ("backend.foundationdb.cluster_file", "/no/fdb")];
        names(&database, "backend.foundationdb.cluster_file", "/no/fdb");
        let tcp = [
            ("transport.kind", "tcp"),
            ("transport.ca", "/no/ca"),
            ("transport.certificate", "/no/node"),
            ("transport.key", "/no/key"),
        ];
        #[cfg(feature = "tcp")]
        names(&tcp, "transport.ca", "/no/ca");
        #[cfg(not(feature = "tcp"))]
        assert_eq!(found(&tcp), Vec::<String>::new());
    }

    #[test]
    fn what_goes_together_must_be_together() {
        names(
            &[("backend.kind", "etcd"), ("backend.etcd.user", "me")],
            "backend.etcd.password_file",
            "missing",
        );
        let https = [("backend.kind", "etcd"), ("backend.etcd.endpoints", r#"["https://a:1"]"#)];
        names(&https, "backend.etcd.tls.ca_file", "missing");
        let two = [
            ("backend.kind", "nats"),
            ("backend.nats.token_file", "/t"),
            ("backend.nats.nkey_seed_file", "/s"),
        ];
        names(&two, "backend.nats.urls", "more than one");
        names(&[("backend.embedded.join", "a:1")], "backend.embedded.join", "needs a transport");
    }

    #[test]
    fn a_layer_that_cannot_be_understood_is_all_there_is_to_say() {
        let none: [(&str, &str); 0] = [];
        let inspection = Loader::new().environment(none).set("calls.timeoot", "1s").inspect();
        assert!(inspection.settings.is_none());
        assert_eq!(inspection.problems.len(), 1);
    }

    #[cfg(feature = "tcp")]
    #[test]
    fn an_authority_for_development_that_is_not_there_is_made_by_the_start_and_not_by_a_look() {
        let keys = [("transport.kind", "tcp"), ("transport.development", "/nowhere/certs")];
        assert_eq!(found(&keys), Vec::<String>::new());
        assert!(!Path::new("/nowhere/certs").exists());
    }
}
