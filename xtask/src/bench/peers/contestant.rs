//! Who is compared, and what must be known to read the figures.

/// One row of the table.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Contestant {
    /// Its name in tables.
    pub(super) name: &'static str,
    /// The package, and the binary, in `benches/peers`.
    pub(super) package: &'static str,
    /// What the binary is told before the case.
    pub(super) words: &'static [&'static str],
    /// Whose it is.
    pub(super) side: Side,
    /// What the bytes go over.
    pub(super) wire: &'static str,
    /// The settings chosen.
    pub(super) settings: &'static str,
}

/// Whose a contestant is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Side {
    /// Archipelago.
    Ours,
    /// The bare transport, without actors and serialisation: what no framework can be faster than.
    Raw,
    /// Another framework: the crate whose version counts.
    Peer(&'static str),
}

impl Contestant {
    pub(super) const ALL: &[Self] = &[
        raw("raw-tcp", &["raw-tcp"], "plain TCP"),
        raw("raw-tls", &["raw-tls"], "TCP, TLS 1.3 both ways"),
        raw("raw-quic", &["raw-quic"], "QUIC, TLS 1.3 both ways"),
        ours("archipelago-tcp", &["tcp"], "plain TCP"),
        ours("archipelago-tls", &["tls"], "TCP, TLS 1.3 both ways"),
        ours("archipelago-quic", &["quic"], "QUIC, TLS 1.3 both ways"),
        Self {
            name: "elfo",
            package: "peer-elfo",
            words: &[],
            side: Side::Peer("elfo"),
            wire: "plain TCP",
            settings: "mailboxes of 10,000, no compression, no dumping, no logger, no telemeter; nodelay on",
        },
        Self {
            name: "coerce",
            package: "peer-coerce",
            words: &[],
            side: Side::Peer("coerce"),
            wire: "plain TCP",
            settings: "messages as bare bytes instead of JSON, no metrics; tokio-util held at 0.7.19, the last one \
                       that 0.8.11 builds with; nodelay cannot be set",
        },
        Self {
            name: "actix-telepathy",
            package: "peer-telepathy",
            words: &[],
            side: Side::Peer("actix-telepathy"),
            wire: "plain TCP",
            settings: "has no ask: an ask is a tell each way, matched by a number; nodelay cannot be set",
        },
        Self {
            name: "rio-rs",
            package: "peer-rio",
            words: &[],
            side: Side::Peer("rio-rs"),
            wire: "plain TCP",
            settings: "one client and connection per caller, since a client asks one at a time; membership and \
                       placement in memory; nodelay cannot be set",
        },
        Self {
            name: "kameo",
            package: "peer-kameo",
            words: &[],
            side: Side::Peer("kameo"),
            wire: "TCP, noise, yamux (libp2p)",
            settings: "a swarm of its own on loopback, found by address; up to 4,096 streams, since each message has one; \
                       tells are acknowledged, 64 at a time: without that they are dropped; nodelay on",
        },
        Self {
            name: "ractor",
            package: "peer-ractor",
            words: &[],
            side: Side::Peer("ractor_cluster"),
            wire: "plain TCP",
            settings: "messages as bare bytes; targets found through process groups; nodelay cannot be set",
        },
    ];

    pub(super) const fn is_peer(&self) -> bool {
        matches!(self.side, Side::Peer(_))
    }

    /// The package whose version counts.
    pub(super) const fn library(&self) -> &'static str {
        match self.side {
            Side::Ours => "archipelago",
            Side::Raw => "archipelago-bench-raw",
            Side::Peer(library) => library,
        }
    }
}

const fn ours(name: &'static str, words: &'static [&'static str], wire: &'static str) -> Contestant {
    let settings = "the defaults, one arbiter for data on each side; nodelay on";
    Contestant { name, package: "peer-archipelago", words, side: Side::Ours, wire, settings }
}

const fn raw(name: &'static str, words: &'static [&'static str], wire: &'static str) -> Contestant {
    let settings = "the bare stream of tokio or quinn, with a caller for each ask in flight; no actor, nothing is serialised";
    Contestant { name, package: "peer-archipelago", words, side: Side::Raw, wire, settings }
}

/// The packages, in groups that agree on the features of their dependencies: ours has none that another asks for.
pub(super) const BUILT_TOGETHER: [&[&str]; 4] = [
    &["peer-archipelago"],
    &["peer-elfo", "peer-coerce", "peer-telepathy", "peer-rio"],
    &["peer-kameo"],
    &["peer-ractor"],
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_contestant_is_built_once() {
        let mut packages: Vec<&str> = Contestant::ALL.iter().map(|contestant| contestant.package).collect();
        packages.dedup();
        assert_eq!(packages, BUILT_TOGETHER.concat());
    }
}
