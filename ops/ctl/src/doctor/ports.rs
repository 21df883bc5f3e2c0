//! Whether the node can listen where it is told to, or does already.

use std::io::ErrorKind;
use std::net::SocketAddr;

use archipelago::config::{Settings, TransportKind};
use serde_json::Value;

use super::Finding;
use crate::host;

/// Looks at the ports of the transport and of the admin API. `node` is what answers at `api`, if anything does.
pub(super) fn look(settings: &Settings, node: Option<&Value>, api: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    if matches!(settings.transport.kind, TransportKind::Quic | TransportKind::Tcp) {
        found.extend(of_transport(settings, node));
    }
    if settings.admin.serve && settings.admin.bind.port() != 0 {
        let bind = settings.admin.bind;
        let running = node.is_some() && api.ends_with(&format!(":{}", bind.port()));
        found.push(one("admin port", bind, host::try_tcp(bind), "admin.bind", running));
    }
    found
}

fn of_transport(settings: &Settings, node: Option<&Value>) -> Vec<Finding> {
    let bind = &settings.transport.bind;
    if bind.port() == 0 {
        return vec![Finding::ok(CHECK, "the system chooses")];
    }
    let addresses = match host::addresses(bind.host(), bind.port()) {
        Ok(addresses) => addresses,
        Err(error) => {
            let words = format!("nobody knows the host of {bind}: {error}");
            return vec![Finding::fail(CHECK, words, "set transport.bind to an address of this machine")];
        }
    };
    let Some(first) = addresses.first().copied() else { return Vec::new() };
    let running = node.is_some_and(|node| {
        node["address"].as_str().is_some_and(|at| at.ends_with(&format!(":{}", bind.port())))
    });
    let is_udp = settings.transport.kind == TransportKind::Quic;
    let arbiters = settings.node.data_arbiters.map_or_else(usual_arbiters, u16::from);
    // The control arbiter is at the first port, the others follow.
    let ports = (0..=arbiters).filter_map(|more| bind.port().checked_add(more));
    let each = ports.map(|port| {
        let at = SocketAddr::new(first.ip(), port);
        let tried = if is_udp { host::try_udp(at) } else { host::try_tcp(at) };
        one(CHECK, at, tried, "transport.bind", running)
    });
    let each: Vec<Finding> = each.collect();
    match each.iter().find(|finding| finding.advice.is_some()) {
        Some(broken) => vec![broken.clone()],
        None if running => vec![Finding::ok(
            CHECK,
            format!("{first} and the {arbiters} after it are held by the node that runs"),
        )],
        None => vec![Finding::ok(CHECK, format!("{first} and the {arbiters} after it are free"))],
    }
}

fn one(check: &'static str, at: SocketAddr, tried: std::io::Result<()>, key: &str, running: bool) -> Finding {
    let Err(error) = tried else { return Finding::ok(check, format!("{at} is free")) };
    match error.kind() {
        ErrorKind::AddrInUse if running => Finding::ok(check, format!("{at} is held by the node that runs")),
        ErrorKind::AddrInUse => {
            let advice = format!("see who: `ss -lntup sport = :{}`; end that, or change {key}", at.port());
            Finding::fail(check, format!("{at} is taken by another program"), &advice)
        }
        ErrorKind::AddrNotAvailable => {
            let advice = format!(
                "set {key} to an address of this machine, and transport.advertise to what others dial"
            );
            Finding::fail(check, format!("{} is no address of this machine", at.ip()), &advice)
        }
        ErrorKind::PermissionDenied => Finding::fail(
            check,
            format!("{at} may not be listened at by this user"),
            &format!("take a port above 1023 in {key}"),
        ),
        _ => Finding::fail(check, format!("{at} cannot be listened at: {error}"), &format!("change {key}")),
    }
}

/// How many arbiters a node has that was not told.
fn usual_arbiters() -> u16 {
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    u16::try_from(cores / 2).unwrap_or(u16::MAX).max(1)
}

const CHECK: &str = "ports";
