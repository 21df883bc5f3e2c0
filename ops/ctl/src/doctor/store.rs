//! Whether the store behind the directory answers, and whether it is new enough. It is asked as everybody may ask: nobody logs in.

use std::net::SocketAddr;

use archipelago::config::{
    BackendKind, ControlPlaneKind, EmbeddedSettings, EtcdSettings, FoundationDbSettings, NatsSettings,
    Settings, TransportKind,
};

use super::Finding;
use super::store_answers::{Nats, coordinators, etcd_version, http_date, is_at_least};
use crate::api::agent;
use crate::host;

/// Somebody who has said what time it is, and how far this machine is ahead of it, in seconds.
pub(super) struct Dated {
    pub(super) who: String,
    pub(super) off_by: i64,
}

/// Looks at the store, and at that of the control plane. Whoever says what time it is goes into `dates`.
pub(super) fn look(settings: &Settings, dates: &mut Vec<Dated>) -> Vec<Finding> {
    if !settings.cluster.contacts.is_empty() {
        return vec![Finding::skip(STORE, "a light client needs none")];
    }
    let (own, plane) = (&settings.backend, &settings.control_plane);
    let mut found = match own.kind {
        BackendKind::Embedded => vec![embedded(STORE, &own.embedded, settings)],
        kind => outside(STORE, kind, (&own.etcd, &own.nats, &own.foundationdb), dates),
    };
    if let ControlPlaneKind::In(kind) = plane.kind {
        found.extend(match kind {
            BackendKind::Embedded => vec![embedded(PLANE, &plane.embedded, settings)],
            kind => outside(PLANE, kind, (&plane.etcd, &plane.nats, &plane.foundationdb), dates),
        });
    }
    found
}

fn embedded(check: &'static str, own: &EmbeddedSettings, settings: &Settings) -> Finding {
    let Some(join) = &own.join else { return Finding::ok(check, "in the memory of the node") };
    if settings.transport.kind != TransportKind::Tcp {
        return Finding::skip(
            check,
            format!("whether a node serves its store at {join} only a node can ask"),
        );
    }
    match reach(join.host(), join.port()) {
        Ok(at) => Finding::ok(check, format!("somebody accepts connections at {at}")),
        Err(why) => Finding::fail(
            check,
            format!("nobody serves a store at {join}: {why}"),
            "start the node that serves it first",
        ),
    }
}

fn outside(
    check: &'static str,
    kind: BackendKind,
    (etcd, nats, foundationdb): (&EtcdSettings, &NatsSettings, &FoundationDbSettings),
    dates: &mut Vec<Dated>,
) -> Vec<Finding> {
    match kind {
        BackendKind::Etcd => {
            of_many(check, "etcd", &etcd.endpoints, |endpoint| ask_etcd(check, endpoint, dates))
        }
        BackendKind::Nats => of_many(check, "NATS", &nats.urls, |url| ask_nats(check, url)),
        BackendKind::FoundationDb => vec![ask_foundationdb(check, foundationdb)],
        _ => vec![Finding::skip(check, format!("how to ask {kind} is not known here"))],
    }
}

/// Asks all servers. One that answers is enough; that others do not is worth knowing.
fn of_many(
    check: &'static str,
    name: &str,
    servers: &[String],
    mut ask: impl FnMut(&str) -> Result<Finding, String>,
) -> Vec<Finding> {
    let (mut found, mut silent) = (Vec::new(), Vec::new());
    for server in servers {
        match ask(server) {
            Ok(finding) => found.push(finding),
            Err(why) => silent.push(format!("{name} at {server} does not answer: {why}")),
        }
    }
    let none = found.is_empty();
    let advice = "start it, correct the address, or open the way through the firewall";
    found.extend(silent.into_iter().map(|words| {
        if none { Finding::fail(check, words, advice) } else { Finding::warn(check, words, advice) }
    }));
    found
}

fn ask_etcd(check: &'static str, endpoint: &str, dates: &mut Vec<Dated>) -> Result<Finding, String> {
    if let Some(rest) = endpoint.strip_prefix("https://") {
        let at = reach_authority(rest, 2_379)?;
        return Ok(Finding::ok(
            check,
            format!("etcd accepts connections at {at}; its version is not asked over TLS"),
        ));
    }
    let address = format!("{}/version", endpoint.trim_end_matches('/'));
    let mut response = agent(host::PATIENCE, None).get(&address).call().map_err(|error| error.to_string())?;
    let date = response.headers().get("date").and_then(|date| http_date(date.to_str().ok()?));
    dates.extend(
        date.map(|date| Dated { who: format!("etcd at {endpoint}"), off_by: host::unix_seconds() - date }),
    );
    let text = response.body_mut().with_config().limit(LONGEST).read_to_string();
    let version = etcd_version(&text.map_err(|error| error.to_string())?);
    Ok(judged(check, format!("etcd at {endpoint}"), version.as_deref(), (3, 4)))
}

fn ask_nats(check: &'static str, url: &str) -> Result<Finding, String> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let (server, port) = split(rest, 4_222)?;
    let greeting = at_first(&server, port, |at| host::greeting(at, LONGEST))?;
    let Some(Nats { version, jetstream }) = Nats::from_greeting(&greeting) else {
        return Err("whoever listens there is no NATS server, or wants TLS first".to_owned());
    };
    if !jetstream {
        let words = format!("NATS at {url} has no JetStream");
        return Ok(Finding::fail(
            check,
            words,
            "start it with JetStream (`-js`, or `jetstream {}` in its file)",
        ));
    }
    Ok(judged(check, format!("NATS at {url}"), Some(&version), (2, 11)))
}

fn ask_foundationdb(check: &'static str, own: &FoundationDbSettings) -> Finding {
    let file = own.cluster_file.clone().unwrap_or_else(|| "/etc/foundationdb/fdb.cluster".into());
    let advice = "copy the cluster file of the database there, or set cluster_file";
    let text = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) => {
            return Finding::fail(check, format!("cannot read {}: {error}", file.display()), advice);
        }
    };
    let Some(all) = coordinators(&text) else {
        return Finding::fail(check, format!("{} is no cluster file", file.display()), advice);
    };
    let reached = all.iter().find_map(|at| reach_authority(at, 4_500).ok());
    match reached {
        Some(at) => Finding::ok(check, format!("a coordinator of FoundationDB accepts connections at {at}")),
        None => {
            let words = format!("no coordinator of FoundationDB answers, of {}", all.join(", "));
            Finding::fail(check, words, "start it, or correct the cluster file")
        }
    }
}

fn judged(check: &'static str, who: String, version: Option<&str>, least: (u64, u64)) -> Finding {
    match version {
        None => Finding::warn(
            check,
            format!("{who} answers and says no version"),
            "make sure that it is what it should be",
        ),
        Some(version) if is_at_least(version, least) => {
            Finding::ok(check, format!("{who} answers, version {version}"))
        }
        Some(version) => {
            let words = format!("{who} has version {version}, {}.{} is needed", least.0, least.1);
            Finding::fail(check, words, "upgrade it")
        }
    }
}

fn reach_authority(text: &str, usual: u16) -> Result<SocketAddr, String> {
    let (server, port) = split(text, usual)?;
    reach(&server, port)
}

fn reach(server: &str, port: u16) -> Result<SocketAddr, String> {
    at_first(server, port, |at| host::reach(at).map(|()| at))
}

/// Does something at the first address of a name where it can be done.
fn at_first<T>(server: &str, port: u16, act: impl Fn(SocketAddr) -> std::io::Result<T>) -> Result<T, String> {
    let addresses =
        host::addresses(server, port).map_err(|error| format!("nobody knows {server}: {error}"))?;
    let mut why = format!("{server} has no address");
    for at in addresses {
        match act(at) {
            Ok(done) => return Ok(done),
            Err(error) => why = error.to_string(),
        }
    }
    Err(why)
}

/// The host and the port of `host:port/path`.
fn split(text: &str, usual: u16) -> Result<(String, u16), String> {
    let authority = text.split('/').next().unwrap_or(text);
    let bare = |host: &str| host.trim_start_matches('[').trim_end_matches(']').to_owned();
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => {
            let port = port.parse().map_err(|_| format!("{port:?} is no port"))?;
            Ok((bare(host), port))
        }
        _ => Ok((bare(authority), usual)),
    }
}

const STORE: &str = "store";
const PLANE: &str = "control plane";

/// The most that is read of an answer, in bytes.
const LONGEST: u64 = 64 << 10;
