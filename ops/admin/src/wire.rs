//! How values of the library look in the answers.
//!
//! Ids are text. So are generations, which may be greater than the numbers that JavaScript can tell apart. Lengths of time are
//! milliseconds, and their names end in `_ms`.

use actix_web::HttpResponse;
use actix_web::http::header;
use archipelago_protocol::identity::{Generation, NodeId};
use serde::{Serialize, Serializer};

use crate::refusal::Refusal;

/// What a handler answers.
pub(crate) type Answer = Result<HttpResponse, Refusal>;

/// A good answer. None of them may be kept: they are out of date at once.
pub(crate) fn show(value: impl Serialize) -> Answer {
    Ok(HttpResponse::Ok().insert_header((header::CACHE_CONTROL, "no-store")).json(value))
}

/// A node's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Id(pub(crate) NodeId);

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// A generation as text.
pub(crate) fn generation(generation: Generation) -> String {
    generation.as_u64().to_string()
}

/// The node with this id.
pub(crate) fn node_id(text: &str) -> Result<NodeId, Refusal> {
    text.parse()
        .map_err(|error: archipelago_protocol::identity::NodeIdError| Refusal::invalid(error.to_string()))
}
