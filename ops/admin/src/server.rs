//! The admin API on a port of its own.

use std::net::SocketAddr;
use std::pin::pin;

use actix_web::{App, HttpServer};
use archipelago_runtime::Node;
use futures_util::future::{Either, select};

use crate::host::spawn;
use crate::routes::admin;

/// Where to listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listen(SocketAddr);

/// The address can be reached from other machines, and nobody said that it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} can be reached from other machines")]
pub struct NotLoopback(pub SocketAddr);

/// The API could not be served.
#[derive(Debug, thiserror::Error)]
#[error("the admin API cannot listen at {at}")]
pub struct ServeError {
    /// Where.
    pub at: SocketAddr,
    /// Why.
    pub source: std::io::Error,
}

impl Listen {
    /// At an address that only this machine reaches.
    ///
    /// # Errors
    ///
    /// [`NotLoopback`] if others reach it.
    pub fn on_loopback(at: SocketAddr) -> Result<Self, NotLoopback> {
        if at.ip().is_loopback() { Ok(Self(at)) } else { Err(NotLoopback(at)) }
    }

    /// At an address that others may reach. The API speaks plain HTTP: whoever reads along learns the token.
    pub const fn exposed(at: SocketAddr) -> Self {
        Self(at)
    }
}

/// Serves the admin API of a node on a port of its own, until the node has stopped, and says where. Call it inside an actix
/// system.
///
/// # Errors
///
/// The address cannot be listened at.
pub fn serve(node: &Node, Listen(at): Listen) -> Result<SocketAddr, ServeError> {
    let refused = |source| ServeError { at, source };
    let of_node = node.clone();
    let app = move || App::new().service(admin(&of_node));
    let server = HttpServer::new(app).workers(WORKERS).max_connections(MOST_CONNECTIONS).disable_signals();
    let server = server.shutdown_timeout(1).bind(at).map_err(refused)?;
    let at = server.addrs().first().copied().unwrap_or(at);
    tracing::info!(node = %node.id(), %at, "the admin API is served");
    node.attached(|| ServedAt(at));
    let (server, node) = (server.run(), node.clone());
    spawn(async move {
        let handle = server.handle();
        let over = async {
            select(pin!(node.stopped()), pin!(node.session_lost())).await;
        };
        match select(server, pin!(over)).await {
            Either::Left((ended, _)) => tracing::warn!(?ended, "the admin API is served no longer"),
            Either::Right(((), server)) => {
                let stopped = handle.stop(false);
                // Whatever it answers, it serves no longer.
                drop(futures_util::future::join(stopped, server).await);
            }
        }
    });
    Ok(at)
}

/// Where the admin API of a node is served on a port of its own, if it is; of several ports the first.
pub fn served_at(node: &Node) -> Option<SocketAddr> {
    node.attachment::<ServedAt>().map(|served| served.0)
}

struct ServedAt(SocketAddr);

/// Threads that answer: operators are few.
const WORKERS: usize = 1;

/// Connections that are open at the same time.
const MOST_CONNECTIONS: usize = 256;
