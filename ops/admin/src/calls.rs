//! One message to an actor, for debugging: found by its name, written as JSON, whatever codec its type names.
//!
//! The node that hosts the actor reads the JSON, because it alone must know the message. The call costs what every call costs and
//! ends by its deadline at the latest; a reply that is too long to show is not shown.

use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::web;
use archipelago_protocol::call::{CallError, Outcome};
use archipelago_protocol::message::Codec;
use archipelago_runtime::CallOptions;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::acts::noted;
use crate::refusal::Refusal;
use crate::routes::Admin;
use crate::wire::Answer;

/// What to ask.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Question {
    /// The name of the message, as `/v1/kinds` lists it.
    message: String,
    /// The message; `null` for one without fields.
    #[serde(default)]
    body: Option<Box<RawValue>>,
    /// How long the reply is waited for; none is `calls.timeout`.
    deadline_ms: Option<u64>,
}

#[derive(Serialize)]
struct Reply {
    reply: Box<RawValue>,
}

/// Asks an actor, wherever it lives, and answers what it replies.
pub(crate) async fn call(
    admin: web::Data<Admin>,
    path: web::Path<(String, String)>,
    question: web::Json<Question>,
) -> Answer {
    let (kind, key) = path.into_inner();
    let Question { message, body, deadline_ms } = question.into_inner();
    let subject = format!("{message:?} of {kind:?} / {key:?}");
    let asked = async {
        let options = options(deadline_ms)?;
        let body = body.map_or_else(|| "null".to_owned(), |body| body.get().to_owned());
        let actor = admin.node.actor_ref(&kind, &key);
        let reply = actor.send_encoded_with(&message, Codec::Json, body.into_bytes(), options).await;
        shown(&reply.map_err(refusal)?)
    };
    let outcome = asked.await.map(|reply| {
        let words = format!("answered, {} bytes", reply.reply.get().len());
        (StatusCode::OK, reply, words)
    });
    noted(&admin, "call", &subject, outcome)
}

fn options(deadline_ms: Option<u64>) -> Result<CallOptions, Refusal> {
    let Some(deadline) = deadline_ms else { return Ok(CallOptions::new()) };
    if deadline == 0 || deadline > LONGEST_MS {
        return Err(Refusal::invalid(format!("deadline_ms is from 1 to {LONGEST_MS}")));
    }
    Ok(CallOptions::new().timeout(Duration::from_millis(deadline)))
}

fn shown(reply: &[u8]) -> Result<Reply, Refusal> {
    if reply.len() > LONGEST_REPLY {
        let message = format!("the actor answered {} bytes; {LONGEST_REPLY} at most are shown", reply.len());
        return Err(Refusal::new(StatusCode::BAD_GATEWAY, "reply_too_large", message));
    }
    let reply = serde_json::from_slice(reply).map_err(|error| {
        Refusal::new(StatusCode::BAD_GATEWAY, "reply_not_json", format!("the reply: {error}"))
    })?;
    Ok(Reply { reply })
}

/// What an actor's call can fail with beside what every act can; and whether the handler may have run, which is what the caller
/// must know before calling again.
fn refusal(error: CallError) -> Refusal {
    match (&error, error.outcome()) {
        (CallError::UnknownMessage(_), _) => {
            Refusal::new(StatusCode::NOT_FOUND, "unknown_message", error.to_string())
        }
        (CallError::Codec { started: false, .. }, _) => {
            Refusal::new(StatusCode::BAD_REQUEST, "bad_message", error.to_string())
        }
        (CallError::NotLocal, _) => Refusal::new(StatusCode::CONFLICT, "elsewhere", error.to_string()),
        (_, Outcome::Unknown) => Refusal::from(error).and(": the handler may have run"),
        (_, Outcome::NotStarted) => error.into(),
    }
}

/// The longest deadline of a call, in milliseconds: nobody debugs for longer than five minutes at a time.
const LONGEST_MS: u64 = 300_000;

/// The longest reply that is shown, in bytes.
const LONGEST_REPLY: usize = 1 << 20;
