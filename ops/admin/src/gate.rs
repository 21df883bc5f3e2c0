//! What every request has to pass: the rate, the size of its body, and the token.

use actix_web::body::BoxBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::{Method, header};
use actix_web::middleware::Next;
use actix_web::{Error, HttpRequest, web};
use archipelago_runtime::Node;

use crate::refusal::Refusal;
use crate::routes::Admin;
use crate::state::AdminState;

/// Lets a request through, or refuses it before anything of it is looked at.
pub(crate) async fn pass(
    admin: web::Data<Admin>,
    request: ServiceRequest,
    next: Next<BoxBody>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    may_pass(&admin.node, &admin.state, &request)?;
    next.call(request).await
}

fn may_pass(node: &Node, state: &AdminState, request: &ServiceRequest) -> Result<(), Refusal> {
    state.admit(node).map_err(Refusal::too_many)?;
    let acts = !matches!(*request.method(), Method::GET | Method::HEAD);
    if acts || state.guards_reads() {
        check_token(node, state, request.request(), acts)?;
    }
    let length = request.headers().get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > LONGEST_BODY as u64) { Err(Refusal::too_large()) } else { Ok(()) }
}

/// Whether the metrics may be shown.
#[cfg(feature = "prometheus")]
pub(crate) fn may_scrape(node: &Node, state: &AdminState, request: &HttpRequest) -> Result<(), Refusal> {
    state.admit_scrape(node).map_err(Refusal::too_many)?;
    if state.guards_reads() { check_token(node, state, request, false) } else { Ok(()) }
}

fn check_token(node: &Node, state: &AdminState, request: &HttpRequest, acts: bool) -> Result<(), Refusal> {
    let Some(token) = state.token() else {
        return Err(if acts { Refusal::acts_are_off() } else { Refusal::no_token() });
    };
    let given = request.headers().get(header::AUTHORIZATION).map(header::HeaderValue::as_bytes);
    let given = given.and_then(|given| given.strip_prefix(b"Bearer "));
    if given.is_some_and(|given| token.is(given)) {
        return Ok(());
    }
    let from = request.peer_addr().map(|peer| peer.to_string()).unwrap_or_default();
    tracing::warn!(node = %node.id(), from, path = request.path(), "a request without the admin token was refused");
    Err(Refusal::no_token())
}

/// The longest body that is read, in bytes.
pub(crate) const LONGEST_BODY: usize = 16 << 10;
