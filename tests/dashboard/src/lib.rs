//! A cluster, a browser, and what both are asked by tests of the dashboard.
//!
//! The nodes run on threads of their own in this process, so that one can be killed; the browser is a real one without a window,
//! driven over WebDriver. Both are gone when they are dropped.
//!
//! This crate is for tests, so it panics where a library would answer an error.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests start processes and threads, and wait for them in real time"
)]

mod actors;
mod browser;
mod cluster;
mod driver;
mod http;

pub use actors::{Greet, Guest, Porter, Shelf};
pub use browser::Browser;
pub use cluster::{Cluster, TOKEN, Wanted};
pub use http::Answer;
