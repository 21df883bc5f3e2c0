//! `[admin]`: the admin API on a port of its own.
//!
//! The keys are there in every build, so that one file serves all of them; only a build with the cargo feature `admin` can
//! use them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::leaf::{Leaf, Shape};
use super::optional;
use super::settings::count;

/// `[admin]`: the admin API, which shows what the node does and lets whoever knows its token change something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct AdminSettings {
    /// Whether the node serves it on a port of its own. A web application of yours may serve it in any case.
    pub serve: bool,
    /// Where it is served.
    pub bind: SocketAddr,
    /// Whether others than this machine may reach it.
    pub expose: bool,
    /// The file that holds the token of those who may change something; without one nobody may.
    #[serde(with = "optional")]
    pub token_file: Option<PathBuf>,
    /// Whether the token is needed to see anything, too.
    pub guard_reads: bool,
    /// Whether the process counts for Prometheus, which `/metrics` shows.
    pub metrics: bool,
    /// Requests a second that are answered.
    pub rate: NonZeroU32,
    /// How many may follow the events at the same time.
    pub event_streams: NonZeroU32,
}

impl Default for AdminSettings {
    fn default() -> Self {
        Self {
            serve: false,
            bind: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 4780),
            expose: false,
            token_file: None,
            guard_reads: false,
            metrics: false,
            rate: count::<200>(),
            event_streams: count::<16>(),
        }
    }
}

impl Leaf for SocketAddr {
    const SHAPE: Shape = Shape::Text;

    fn expected() -> String {
        r#"an IP address with a port, such as "127.0.0.1:4780""#.to_owned()
    }
}
