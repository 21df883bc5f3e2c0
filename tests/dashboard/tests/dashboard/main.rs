//! The dashboard of a running cluster in a real browser. Without chromium and chromedriver these tests are skipped, and say so.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stdout,
    reason = "tests of a page in a browser"
)]

mod changes;
mod example;
mod files;
mod hands;
mod hostile;
mod pictures;
mod screens;
mod token;

use archipelago_dashboard_tests::{Browser, Cluster, Wanted};

/// A cluster and a browser that looks at its dashboard; nothing without a browser.
async fn opened(wanted: Wanted) -> Option<(Cluster, Browser)> {
    let browser = Browser::start().await?;
    let cluster = Cluster::start(wanted).await;
    browser.open(&format!("{}/dashboard", cluster.url)).await;
    Some((cluster, browser))
}

/// The ids of all screens, in the order of their keys.
const SCREENS: [&str; 10] = [
    "overview",
    "members",
    "shards",
    "actors",
    "messages",
    "datacenters",
    "peers",
    "letters",
    "events",
    "config",
];
