//! What every request has to pass: the rate, the size of its body, and the token.
//!
//! Whoever has shown the token has a rate of his own, so that nobody else can lock him out. What changes something goes on to its end,
//! also if whoever asked for it is gone meanwhile.

use actix_web::body::BoxBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::{Method, header};
use actix_web::middleware::Next;
use actix_web::{Error, HttpMessage, HttpRequest, web};
use archipelago_runtime::Node;

use crate::host::to_the_end;
use crate::refusal::Refusal;
use crate::routes::Admin;
use crate::state::{AdminState, Asker};
use crate::weight;

/// Lets a request through, or refuses it before anything of it is looked at.
pub(crate) async fn pass(
    admin: web::Data<Admin>,
    request: ServiceRequest,
    next: Next<BoxBody>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let proven = Proven(shows_token(&admin.state, request.request()));
    may_pass(&admin.node, &admin.state, &request, proven)?;
    request.extensions_mut().insert(proven);
    if acts(&request) {
        let done = to_the_end(next.call(request)).await;
        return done.unwrap_or_else(|| Err(Refusal::broken_off().into()));
    }
    next.call(request).await
}

/// Whether the token came with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Proven(pub(crate) bool);

fn acts(request: &ServiceRequest) -> bool {
    !matches!(*request.method(), Method::GET | Method::HEAD)
}

fn may_pass(
    node: &Node,
    state: &AdminState,
    request: &ServiceRequest,
    Proven(proven): Proven,
) -> Result<(), Refusal> {
    let asker = if proven { Asker::Operator } else { Asker::Anybody };
    let path = request.match_info().unprocessed();
    state.admit(node, asker, weight::of(path, node.members().len())).map_err(Refusal::too_many)?;
    let acts = acts(request);
    if !proven && (acts || state.guards_reads()) {
        return Err(without_token(node, state, request.request(), acts));
    }
    let length = request.headers().get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > LONGEST_BODY as u64) { Err(Refusal::too_large()) } else { Ok(()) }
}

/// Whether the metrics may be shown.
#[cfg(feature = "prometheus")]
pub(crate) fn may_scrape(node: &Node, state: &AdminState, request: &HttpRequest) -> Result<(), Refusal> {
    // Whoever may not look takes nothing away from those who may.
    if state.guards_reads() && !shows_token(state, request) {
        state.admit(node, Asker::Anybody, 1).map_err(Refusal::too_many)?;
        return Err(without_token(node, state, request, false));
    }
    state.admit_scrape(node).map_err(Refusal::too_many)
}

fn shows_token(state: &AdminState, request: &HttpRequest) -> bool {
    let given = request.headers().get(header::AUTHORIZATION).map(header::HeaderValue::as_bytes);
    let given = given.and_then(|given| {
        let (scheme, token) = given.split_at_checked(BEARER.len())?;
        scheme.eq_ignore_ascii_case(BEARER).then_some(token)
    });
    given.zip(state.token()).is_some_and(|(given, token)| token.is(given))
}

fn without_token(node: &Node, state: &AdminState, request: &HttpRequest, acts: bool) -> Refusal {
    if acts && state.token().is_none() {
        return Refusal::acts_are_off();
    }
    let from = request.peer_addr().map(|peer| peer.to_string()).unwrap_or_default();
    tracing::warn!(node = %node.id(), from, path = request.path(), "a request without the admin token was refused");
    Refusal::no_token()
}

const BEARER: &[u8] = b"Bearer ";

/// The longest body that is read, in bytes.
pub(crate) const LONGEST_BODY: usize = 16 << 10;
