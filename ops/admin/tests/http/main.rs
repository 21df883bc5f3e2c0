//! The admin API over HTTP, on real nodes.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests of a web server"
)]

mod acts;
mod answers;
mod calls;
mod cluster;
mod events;
mod hostile;
mod messages;
mod paging;
mod schema;
mod server;
mod support;
