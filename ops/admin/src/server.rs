//! The admin API on a port of its own.
//!
//! At the loopback interface it answers only requests to `localhost` or to an address: a page of somebody else that a browser on this
//! machine shows can let a name of its own lead here, and would otherwise read whatever the API shows.

use std::net::{IpAddr, SocketAddr};
use std::pin::pin;

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header;
use actix_web::middleware::{Condition, Next, from_fn};
use actix_web::{App, Error, HttpServer, ResponseError};
use archipelago_runtime::Node;
use futures_util::future::{Either, select};

use crate::host::spawn;
use crate::refusal::Refusal;
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
    let is_local = at.ip().is_loopback();
    let app =
        move || App::new().wrap(Condition::new(is_local, from_fn(local_hosts))).service(admin(&of_node));
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

async fn local_hosts<B: MessageBody + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B>>, Error> {
    let host = request.headers().get(header::HOST).map(|host| host.to_str().unwrap_or_default());
    if host.is_none_or(is_local_host) {
        return Ok(next.call(request).await?.map_into_left_body());
    }
    tracing::warn!(host, "a request to a name of others was refused");
    let refused = Refusal::wrong_host().error_response();
    Ok(request.into_response(refused).map_into_right_body())
}

/// Whether a `Host`, with or without a port, is `localhost` or an address.
fn is_local_host(host: &str) -> bool {
    let without_port = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let name = without_port.trim_end_matches('.').to_ascii_lowercase();
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(&name);
    name == "localhost" || name.ends_with(".localhost") || address.parse::<IpAddr>().is_ok()
}

/// Threads that answer: operators are few.
const WORKERS: usize = 1;

/// Connections that are open at the same time.
const MOST_CONNECTIONS: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_localhost_and_addresses_are_local_hosts() {
        for local in [
            "localhost",
            "LocalHost:4780",
            "a.localhost:1",
            "127.0.0.1:4780",
            "10.1.2.3",
            "[::1]:4780",
            "[::1]",
        ] {
            assert!(is_local_host(local), "{local}");
        }
        for foreign in [
            "",
            "evil.example",
            "evil.example:4780",
            "localhost.evil.example",
            "127.0.0.1.evil.example:80",
            "::1.x",
        ] {
            assert!(!is_local_host(foreign), "{foreign}");
        }
    }
}
