//! Whether packets of QUIC fit through the network interface.

use std::fs::read_to_string;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use archipelago::config::{Settings, TransportKind};

use super::Finding;
use crate::host;

/// Looks at the interface that the node's address belongs to; at all of them if it is every address. `root` is where `/proc` and
/// `/sys` are.
pub(super) fn look(settings: &Settings, root: &Path) -> Vec<Finding> {
    let kind = settings.transport.kind;
    if !matches!(kind, TransportKind::Quic | TransportKind::Tcp) {
        return Vec::new();
    }
    let bind = &settings.transport.bind;
    let Some(at) = host::addresses(bind.host(), bind.port()).ok().and_then(|all| all.first().copied()) else {
        return vec![Finding::skip(CHECK, format!("nobody knows the host of {bind}"))];
    };
    let interfaces =
        if at.ip().is_unspecified() { all(root) } else { interface_of(at.ip(), root).into_iter().collect() };
    let sizes = interfaces.into_iter().filter_map(|name| Some((mtu_of(&name, root)?, name)));
    let Some((mtu, name)) = sizes.min() else {
        return vec![Finding::skip(CHECK, format!("the interface of {} is not known", at.ip()))];
    };
    let words = format!("{mtu} at {name}");
    let advice =
        format!("raise it to 1500 or more: `ip link set {name} mtu 1500`, and on the tunnel below it");
    vec![match (mtu, kind) {
        (LEAST.., _) => Finding::ok(CHECK, words),
        (_, TransportKind::Quic) => Finding::fail(CHECK, format!("{words}: QUIC needs {LEAST}"), &advice),
        _ => Finding::warn(CHECK, format!("{words} is small"), &advice),
    }]
}

fn mtu_of(interface: &str, root: &Path) -> Option<u32> {
    read_to_string(root.join("sys/class/net").join(interface).join("mtu")).ok()?.trim().parse().ok()
}

/// The interfaces that are not switched off.
fn all(root: &Path) -> Vec<String> {
    let folder = root.join("sys/class/net");
    let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let is_on = |name: &String| {
        read_to_string(folder.join(name).join("operstate")).is_ok_and(|state| state.trim() != "down")
    };
    names.filter(is_on).collect()
}

fn interface_of(address: IpAddr, root: &Path) -> Option<String> {
    match address {
        address if address.is_loopback() => Some("lo".to_owned()),
        IpAddr::V4(address) => route_of(address, &read_to_string(root.join("proc/net/route")).ok()?),
        IpAddr::V6(address) => {
            let hex: String = address.octets().iter().map(|byte| format!("{byte:02x}")).collect();
            let table = read_to_string(root.join("proc/net/if_inet6")).ok()?;
            let line = table.lines().find(|line| line.starts_with(&hex))?;
            line.split_whitespace().nth(5).map(str::to_owned)
        }
    }
}

/// The interface of the narrowest network that the address is in; the way to everywhere is none of them.
fn route_of(address: Ipv4Addr, table: &str) -> Option<String> {
    // Written as the processor keeps it.
    let number =
        |hex: &str| u32::from_str_radix(hex, 16).ok().map(|number| u32::from_be_bytes(number.to_ne_bytes()));
    let wanted = u32::from(address);
    let routes = table.lines().skip(1).filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (network, mask) = (number(words.get(1)?)?, number(words.get(7)?)?);
        let name = (*words.first()?).to_owned();
        (mask != 0 && wanted & mask == network).then_some((mask, name))
    });
    routes.max_by_key(|(mask, _)| *mask).map(|(_, name)| name)
}

const CHECK: &str = "MTU";

/// What every interface with IPv6 must carry, and every packet of QUIC fits into.
const LEAST: u32 = 1_280;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_belongs_to_the_interface_of_its_narrowest_network() {
        let table = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
                     eth0\t00000000\t0100A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n\
                     eth0\t0000A8C0\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n\
                     wg0\t0005A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n";
        let of = |text: &str| route_of(text.parse().unwrap(), table);
        assert_eq!(of("192.168.5.9").as_deref(), Some("wg0"));
        assert_eq!(of("192.168.1.9").as_deref(), Some("eth0"));
        assert_eq!(of("10.0.0.1"), None);
        assert_eq!(route_of(Ipv4Addr::LOCALHOST, "nonsense\nmore nonsense here"), None);
    }
}
