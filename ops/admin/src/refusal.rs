//! What a request is answered that cannot be granted: a status, a word for programs and a sentence for people.

use std::fmt;

use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderValue};
use actix_web::{HttpResponse, ResponseError};
use archipelago_protocol::call::CallError;
use archipelago_runtime::{NoSuchPlace, RangeError, StopError};
use metrics::counter;
use serde::Serialize;

use crate::rate::Wait;

/// Why a request is not granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    status: StatusCode,
    code: &'static str,
    message: String,
    /// Seconds.
    retry_after: Option<u64>,
}

#[derive(Serialize)]
struct Body<'a> {
    error: Said<'a>,
}

#[derive(Serialize)]
struct Said<'a> {
    code: &'a str,
    message: &'a str,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), retry_after: None }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request", message)
    }

    pub(crate) fn no_such_path() -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "no_such_path",
            "there is nothing at this path; see /v1/openapi.json",
        )
    }

    pub(crate) fn wrong_method() -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "wrong_method",
            "the path has no such method; see /v1/openapi.json",
        )
    }

    pub(crate) fn no_token() -> Self {
        let message =
            "the request needs the header Authorization: Bearer <token>, with the node's admin token";
        Self::new(StatusCode::UNAUTHORIZED, "wrong_token", message)
    }

    pub(crate) fn acts_are_off() -> Self {
        let message = "nothing can be changed through this API: the node has no admin token";
        Self::new(StatusCode::FORBIDDEN, "acts_are_off", message)
    }

    pub(crate) fn wrong_host() -> Self {
        let message = "this port answers requests to localhost or to an address, not to a name of others";
        Self::new(StatusCode::MISDIRECTED_REQUEST, "wrong_host", message)
    }

    pub(crate) fn broken_off() -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "failed",
            "the request was broken off by an error of ours",
        )
    }

    pub(crate) fn too_large() -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", "the body is too large")
    }

    pub(crate) fn too_many(Wait(wait): Wait) -> Self {
        let message = "more requests than the configured rate allows";
        let refusal = Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", message);
        Self { retry_after: Some(wait.0.div_ceil(1_000).max(1)), ..refusal }
    }

    pub(crate) fn too_many_streams() -> Self {
        let message = "as many follow the events as may";
        let refusal = Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_streams", message);
        Self { retry_after: Some(10), ..refusal }
    }

    /// The same with more to say.
    pub(crate) fn and(mut self, more: &str) -> Self {
        self.message.push_str(more);
        self
    }

    /// The word for programs.
    pub(crate) const fn code(&self) -> &'static str {
        self.code
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl ResponseError for Refusal {
    fn status_code(&self) -> StatusCode {
        self.status
    }

    fn error_response(&self) -> HttpResponse {
        counter!("archipelago_admin_refused_total", "code" => self.code).increment(1);
        let body = Body { error: Said { code: self.code, message: &self.message } };
        let mut response = HttpResponse::build(self.status);
        if let Some(seconds) = self.retry_after {
            response.insert_header((header::RETRY_AFTER, seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            response.insert_header((header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer")));
        }
        response.insert_header((header::CACHE_CONTROL, "no-store")).json(body)
    }
}

impl From<CallError> for Refusal {
    fn from(error: CallError) -> Self {
        let (status, code) = match &error {
            CallError::InvalidId { .. } => (StatusCode::BAD_REQUEST, "invalid_id"),
            CallError::UnknownKind { .. } => (StatusCode::NOT_FOUND, "unknown_kind"),
            CallError::NotServing { .. } => (StatusCode::SERVICE_UNAVAILABLE, "not_serving"),
            CallError::Overloaded { .. } => (StatusCode::SERVICE_UNAVAILABLE, "overloaded"),
            CallError::NoRoute { .. } | CallError::ConnectionLost { .. } => {
                (StatusCode::BAD_GATEWAY, "no_route")
            }
            CallError::Timeout { .. } => (StatusCode::GATEWAY_TIMEOUT, "timeout"),
            CallError::Stopped => (StatusCode::SERVICE_UNAVAILABLE, "stopped"),
            _ => (StatusCode::INTERNAL_SERVER_ERROR, "failed"),
        };
        Self::new(status, code, error.to_string())
    }
}

impl From<NoSuchPlace> for Refusal {
    fn from(error: NoSuchPlace) -> Self {
        let (status, code) = match &error {
            NoSuchPlace::Kind { .. } => (StatusCode::NOT_FOUND, "unknown_kind"),
            _ => (StatusCode::SERVICE_UNAVAILABLE, "arbiter_silent"),
        };
        Self::new(status, code, error.to_string())
    }
}

impl From<RangeError> for Refusal {
    fn from(error: RangeError) -> Self {
        let (status, code) = match &error {
            RangeError::NotDivided { .. } => (StatusCode::NOT_FOUND, "no_ranges"),
            RangeError::Refused(_) => (StatusCode::CONFLICT, "range_refused"),
            RangeError::Unknown => (StatusCode::GATEWAY_TIMEOUT, "outcome_unknown"),
            RangeError::NobodyDecides { .. } | RangeError::NotYet => {
                (StatusCode::SERVICE_UNAVAILABLE, "nobody_decides")
            }
            _ => (StatusCode::BAD_REQUEST, "invalid_id"),
        };
        Self::new(status, code, error.to_string())
    }
}

impl From<StopError> for Refusal {
    fn from(error: StopError) -> Self {
        let (status, code) = match &error {
            StopError::Twice => (StatusCode::CONFLICT, "stopping_already"),
            _ => (StatusCode::INTERNAL_SERVER_ERROR, "failed"),
        };
        Self::new(status, code, error.to_string())
    }
}
