//! Where a node is reached.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use core::fmt;
use core::net::{Ipv6Addr, SocketAddr};
use core::str::FromStr;

use super::text::serde_as_text;

/// A host and a port. Immutable.
///
/// The host is a DNS name or an IPv4 address, kept in lower case, or an IPv6 address without its brackets, kept in
/// its canonical form; so addresses that are written differently but mean the same are equal. Text: `host:port`,
/// `[::1]:80` for IPv6; serialised as that text. Port 0 ("any free port") is allowed: it makes sense for binding.
///
/// # Order
///
/// By host, compared byte by byte as text (so `10.0.0.10` comes before `10.0.0.9`), then by port as a number. The
/// order has no meaning beyond being the same on every node, which is what leader and tie rules need.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeAddress {
    host: Arc<str>,
    port: u16,
}

impl NodeAddress {
    /// Checks `host`: a DNS name, an IPv4 address, or an IPv6 address without brackets.
    ///
    /// # Errors
    ///
    /// `EmptyHost`, `HostTooLong` or `InvalidHost`.
    pub fn new(host: &str, port: u16) -> Result<Self, NodeAddressError> {
        let host = if host.contains(':') { ipv6(host)? } else { name(host)? };
        Ok(Self { host: host.into(), port })
    }

    /// The host, IPv6 without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    pub const fn port(&self) -> u16 {
        self.port
    }
}

/// Why a text is not a node address.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum NodeAddressError {
    /// There is no `:port` at the end.
    #[error("an address is written host:port, the port is missing")]
    MissingPort,
    /// The port is not a number from 0 to 65535.
    #[error("the port is not a number from 0 to 65535")]
    InvalidPort,
    /// There is nothing before the port.
    #[error("the host is empty")]
    EmptyHost,
    /// The host is longer than a DNS name can be.
    #[error("the host has {len} bytes, at most {MAX_HOST} are allowed")]
    HostTooLong {
        /// Its length in bytes.
        len: usize,
    },
    /// The host is neither a DNS name nor an IP address.
    #[error(
        "the host is not a name of letters, digits, '.', '_' and '-', nor an IP address (IPv6: [::1]:80)"
    )]
    InvalidHost,
}

fn ipv6(host: &str) -> Result<String, NodeAddressError> {
    let address: Ipv6Addr = host.parse().map_err(|_| NodeAddressError::InvalidHost)?;
    Ok(address.to_string())
}

fn name(host: &str) -> Result<String, NodeAddressError> {
    if host.is_empty() {
        return Err(NodeAddressError::EmptyHost);
    }
    if host.len() > MAX_HOST {
        return Err(NodeAddressError::HostTooLong { len: host.len() });
    }
    if !host.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-')) {
        return Err(NodeAddressError::InvalidHost);
    }
    Ok(host.to_ascii_lowercase())
}

impl FromStr for NodeAddress {
    type Err = NodeAddressError;

    fn from_str(text: &str) -> Result<Self, NodeAddressError> {
        let (host, port) = text.rsplit_once(':').ok_or(NodeAddressError::MissingPort)?;
        let bracketed = host.strip_prefix('[').map(|host| host.strip_suffix(']'));
        let host = match bracketed {
            None if host.contains(':') => return Err(NodeAddressError::InvalidHost),
            None => name(host)?,
            Some(Some(host)) => ipv6(host)?,
            Some(None) => return Err(NodeAddressError::MissingPort),
        };
        // `u16::from_str` would take "+80" as well.
        let digits = port.bytes().all(|b| b.is_ascii_digit());
        let port = port.parse().ok().filter(|_| digits).ok_or(NodeAddressError::InvalidPort)?;
        Ok(Self { host: host.into(), port })
    }
}

impl From<SocketAddr> for NodeAddress {
    fn from(address: SocketAddr) -> Self {
        Self { host: address.ip().to_string().into(), port: address.port() }
    }
}

serde_as_text!(NodeAddress, "an address host:port");

impl fmt::Display for NodeAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Debug for NodeAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeAddress({self})")
    }
}

/// The longest DNS name.
const MAX_HOST: usize = 253;

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;
    use crate::identity::arbitrary::node_address;

    fn address(text: &str) -> NodeAddress {
        text.parse().unwrap()
    }

    #[test]
    fn spellings_of_one_address_are_equal() {
        assert_eq!(address("LOCALHOST:80"), address("localhost:80"));
        assert_eq!(address("[0:0:0:0:0:0:0:1]:80"), address("[::1]:80"));
        assert_eq!(address("[::1]:80").host(), "::1");
        assert_eq!(NodeAddress::from("[::1]:80".parse::<SocketAddr>().unwrap()), address("[::1]:80"));
    }

    #[test]
    fn each_fault_has_its_error() {
        use NodeAddressError::*;
        let refused = [
            ("localhost", MissingPort),
            ("[::1]", MissingPort),
            ("::1:80", InvalidHost),
            (":80", EmptyHost),
            ("a b:80", InvalidHost),
            ("[localhost]:80", InvalidHost),
            ("a:", InvalidPort),
            ("a:+80", InvalidPort),
            ("a:65536", InvalidPort),
        ];
        for (text, error) in refused {
            assert_eq!(text.parse::<NodeAddress>(), Err(error), "{text}");
        }
        assert_eq!(NodeAddress::new(&"a".repeat(254), 1), Err(HostTooLong { len: 254 }));
    }

    /// Proves: R54, C11
    #[test]
    fn order_is_host_as_text_then_port_as_number() {
        let mut map = BTreeMap::new();
        for (n, text) in ["b:1", "10.0.0.9:1", "a:10", "a:9", "10.0.0.10:1"].into_iter().enumerate() {
            map.insert(address(text), n);
        }
        let sorted: Vec<_> = map.keys().map(ToString::to_string).collect();
        assert_eq!(sorted, ["10.0.0.10:1", "10.0.0.9:1", "a:9", "a:10", "b:1"]);
        assert_eq!(map[&address("A:9")], 3);
    }

    proptest! {
        /// Proves: R54
        #[test]
        fn an_address_survives_text_and_serde(address in node_address()) {
            prop_assert_eq!(address.to_string().parse(), Ok(address.clone()));
            prop_assert_eq!(NodeAddress::new(address.host(), address.port()), Ok(address.clone()));
            let json = serde_json::to_string(&address).unwrap();
            prop_assert_eq!(&json, &alloc::format!("\"{}\"", address));
            prop_assert_eq!(serde_json::from_str::<NodeAddress>(&json).unwrap(), address.clone());
            let bytes = postcard::to_allocvec(&address).unwrap();
            prop_assert_eq!(postcard::from_bytes::<NodeAddress>(&bytes).unwrap(), address);
        }

        #[test]
        fn parsing_any_text_as_address_never_panics(text in any::<String>(), near in "[a\\[\\]:0-9+]{0,12}") {
            let _ = text.parse::<NodeAddress>();
            let _ = near.parse::<NodeAddress>();
        }
    }
}
