//! Whether the process lives, and whether the node takes work: for whatever restarts the one and sends requests to the other.

use actix_web::{HttpResponse, web};
use serde::Serialize;

use crate::routes::Admin;

#[derive(Serialize)]
struct Health {
    ok: bool,
}

/// The process answers.
pub(crate) async fn live() -> HttpResponse {
    HttpResponse::Ok().json(Health { ok: true })
}

/// The node's session is live and it does not stop: it may own actors and handles messages.
pub(crate) async fn ready(admin: web::Data<Admin>) -> HttpResponse {
    let ok = admin.node.session().is_ready();
    let mut response = if ok { HttpResponse::Ok() } else { HttpResponse::ServiceUnavailable() };
    response.json(Health { ok })
}
