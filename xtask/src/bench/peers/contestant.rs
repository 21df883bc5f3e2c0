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
    /// The crate whose version counts; none for ours.
    pub(super) library: Option<&'static str>,
    /// What the bytes go over.
    pub(super) wire: &'static str,
    /// The settings chosen.
    pub(super) settings: &'static str,
}

impl Contestant {
    pub(super) const ALL: &[Self] = &[
        ours("archipelago-tcp", &["tcp"], "plain TCP"),
        ours("archipelago-tls", &["tls"], "TCP, TLS 1.3 both ways"),
        ours("archipelago-quic", &["quic"], "QUIC, TLS 1.3 both ways"),
        Self {
            name: "elfo",
            package: "peer-elfo",
            words: &[],
            library: Some("elfo"),
            wire: "plain TCP",
            settings: "mailboxes of 10,000, no compression, no dumping, no logger, no telemeter; nodelay on",
        },
        Self {
            name: "coerce",
            package: "peer-coerce",
            words: &[],
            library: Some("coerce"),
            wire: "plain TCP",
            settings: "messages as bare bytes instead of JSON, no metrics; tokio-util held at 0.7.19, the last one \
                       that 0.8.11 builds with; nodelay cannot be set",
        },
        Self {
            name: "actix-telepathy",
            package: "peer-telepathy",
            words: &[],
            library: Some("actix-telepathy"),
            wire: "plain TCP",
            settings: "has no ask: an ask is a tell each way, matched by a number; nodelay cannot be set",
        },
        Self {
            name: "rio-rs",
            package: "peer-rio",
            words: &[],
            library: Some("rio-rs"),
            wire: "plain TCP",
            settings: "one client and connection per caller, since a client asks one at a time; membership and \
                       placement in memory; nodelay cannot be set",
        },
    ];

    pub(super) const fn is_ours(&self) -> bool {
        self.library.is_none()
    }
}

const fn ours(name: &'static str, words: &'static [&'static str], wire: &'static str) -> Contestant {
    let settings = "the defaults, one arbiter for data on each side; nodelay on";
    Contestant { name, package: "peer-archipelago", words, library: None, wire, settings }
}

/// The packages, in groups that agree on the features of their dependencies: ours has none that another asks for.
pub(super) const BUILT_TOGETHER: [&[&str]; 2] =
    [&["peer-archipelago"], &["peer-elfo", "peer-coerce", "peer-telepathy", "peer-rio"]];

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
