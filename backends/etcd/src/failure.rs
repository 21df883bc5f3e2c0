//! Why etcd did not do what was asked, sorted by whether it may have been done.
//!
//! The client shows a refusal by the server and a connection that broke in one type. [`Failure::sort`] tells them apart:
//! a request counts as not applied only if it never left, or if the server said one of the things that it says before it
//! proposes a write to its peers. In doubt it may have been applied.

use std::error::Error;

use archipelago_directory::StoreError;
use archipelago_protocol::contract::BoxError;
use archipelago_protocol::time::Millis;
use tonic::{Code, Status};

/// Why a request has no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// No connection: it never left.
    #[error("cannot reach etcd at {endpoint}: {cause}")]
    NotSent { endpoint: String, cause: String },
    /// The server refused it before doing anything; another time, or at another member, it may be taken.
    #[error("etcd at {endpoint} refused: {cause}")]
    Refused { endpoint: String, cause: String },
    /// Our proof of who we are has become old: it was not done, and needs a new one.
    #[error("etcd at {endpoint} wants a new login: {cause}")]
    LoginAgain { endpoint: String, cause: String },
    /// The engine lease that it names is gone: it was not done.
    #[error("the lease is gone at {endpoint}")]
    LeaseGone { endpoint: String },
    /// The connection broke, or the server gave up: it may have been done.
    #[error("etcd at {endpoint} gave no answer: {cause}")]
    Broken { endpoint: String, cause: String },
    /// The time is up: it may have been done.
    #[error("etcd at {endpoint} gave no answer within {within}")]
    TooLate { endpoint: String, within: Millis },
    /// The history does not reach back so far.
    #[error("the history has been compacted")]
    Compacted,
    /// Repeating will not help.
    #[error("etcd at {endpoint} will not do this: {cause}")]
    Fatal { endpoint: String, denied: bool, cause: String },
}

impl Failure {
    pub(crate) fn sort(endpoint: &str, error: &etcd_client::Error) -> Self {
        let endpoint = endpoint.to_owned();
        let cause = cause(error);
        match error {
            etcd_client::Error::GRpcStatus(status) => Self::of_status(endpoint, status),
            etcd_client::Error::TransportError(error) if never_left(error) => {
                Self::NotSent { endpoint, cause }
            }
            etcd_client::Error::InvalidArgs(_)
            | etcd_client::Error::InvalidUri(_)
            | etcd_client::Error::InvalidMetadataValue(_) => Self::Fatal { endpoint, denied: false, cause },
            _ => Self::Broken { endpoint, cause },
        }
    }

    fn of_status(endpoint: String, status: &Status) -> Self {
        let cause = cause(status);
        if let Some(source) = status.source() {
            // Made by the client's own transport.
            let unsent = never_left(source);
            return if unsent { Self::NotSent { endpoint, cause } } else { Self::Broken { endpoint, cause } };
        }
        let said = status.message();
        match status.code() {
            Code::OutOfRange if said.contains("compacted") => Self::Compacted,
            Code::NotFound if said.contains("lease not found") => Self::LeaseGone { endpoint },
            Code::Unauthenticated => Self::LoginAgain { endpoint, cause },
            Code::InvalidArgument if said.contains("auth store is old") => {
                Self::LoginAgain { endpoint, cause }
            }
            Code::ResourceExhausted => Self::Refused { endpoint, cause },
            Code::Unavailable if said == NO_LEADER => Self::Refused { endpoint, cause },
            Code::PermissionDenied => Self::Fatal { endpoint, denied: true, cause },
            Code::InvalidArgument
            | Code::FailedPrecondition
            | Code::Unimplemented
            | Code::NotFound
            | Code::AlreadyExists
            | Code::OutOfRange
            | Code::DataLoss => Self::Fatal { endpoint, denied: false, cause },
            _ => Self::Broken { endpoint, cause },
        }
    }

    /// Whether another member may do it, without doing it twice.
    pub(crate) const fn may_go_elsewhere(&self) -> bool {
        matches!(self, Self::NotSent { .. } | Self::Refused { .. })
    }

    /// What this means to somebody who wrote.
    pub(crate) fn of_write(self) -> StoreError {
        match self {
            Self::Broken { .. } | Self::TooLate { .. } => StoreError::Unknown { source: self.into() },
            _ => self.of_read(),
        }
    }

    /// What this means to somebody who changes nothing: all that counts is whether asking again may help.
    pub(crate) fn of_read(self) -> StoreError {
        match self {
            Self::Compacted => StoreError::Compacted,
            Self::Fatal { .. } => StoreError::Fatal { source: self.into() },
            _ => StoreError::Unavailable { source: self.into() },
        }
    }
}

/// Whether the chain of causes has a connection that was never made.
fn never_left(error: &(dyn Error + 'static)) -> bool {
    chain(error).any(|error| error.is::<tonic::ConnectError>())
}

/// The whole chain of causes in one line; the client's own texts say little without what is underneath.
pub(crate) fn cause(error: &(dyn Error + 'static)) -> String {
    let mut said: Vec<String> = Vec::new();
    for error in chain(error) {
        let text = match error.downcast_ref::<Status>() {
            Some(status) => status.message().to_owned(),
            None => error.to_string(),
        };
        let says_nothing = text.is_empty() || text == "transport error";
        if !says_nothing && !said.iter().any(|before| before.contains(&text)) {
            said.push(text);
        }
    }
    said.join(": ")
}

/// The client's error hides its cause from `source`; here it counts.
fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    let inner: &'a (dyn Error + 'static) = match error.downcast_ref::<etcd_client::Error>() {
        Some(etcd_client::Error::GRpcStatus(status)) => status,
        Some(etcd_client::Error::TransportError(error)) => error,
        _ => error,
    };
    std::iter::successors(Some(inner), |error: &&'a (dyn Error + 'static)| (*error).source())
}

/// A failure that is not about a request.
pub(crate) fn unavailable(why: impl Into<BoxError>) -> StoreError {
    StoreError::Unavailable { source: why.into() }
}

/// Said by a member that knows no leader, before it looks at the request.
const NO_LEADER: &str = "etcdserver: no leader";

#[cfg(test)]
mod tests {
    use super::*;

    fn said(code: Code, message: &str) -> Failure {
        Failure::sort("http://a", &etcd_client::Error::GRpcStatus(Status::new(code, message)))
    }

    fn unsent() -> Status {
        Status::from_error(Box::new(tonic::ConnectError("connection refused".into())))
    }

    #[test]
    fn a_connection_that_was_never_made_applied_nothing() {
        let failure = Failure::sort("http://a", &etcd_client::Error::GRpcStatus(unsent()));
        assert!(failure.may_go_elsewhere());
        assert_eq!(failure.to_string(), "cannot reach etcd at http://a: connection refused");
        assert!(matches!(failure.of_write(), StoreError::Unavailable { .. }));
    }

    #[test]
    fn a_connection_that_broke_may_have_applied_it() {
        let broken = Status::from_error(Box::new(std::io::Error::other("reset")));
        let failure = Failure::sort("http://a", &etcd_client::Error::GRpcStatus(broken));
        assert!(!failure.may_go_elsewhere());
        assert!(matches!(failure.of_write(), StoreError::Unknown { .. }));
    }

    /// A member says these after it has proposed the write: it may be applied later.
    #[test]
    fn a_server_that_gave_up_may_have_applied_it() {
        for message in [
            "etcdserver: request timed out",
            "etcdserver: request timed out, possibly due to previous leader failure",
            "etcdserver: server stopped",
            "etcdserver: leader changed",
        ] {
            assert!(
                matches!(said(Code::Unavailable, message).of_write(), StoreError::Unknown { .. }),
                "{message}"
            );
        }
        for code in [Code::Unknown, Code::Internal, Code::Cancelled, Code::DeadlineExceeded, Code::Aborted] {
            assert!(matches!(said(code, "").of_write(), StoreError::Unknown { .. }), "{code:?}");
        }
    }

    #[test]
    fn refusals_applied_nothing() {
        for (code, message) in [
            (Code::Unavailable, "etcdserver: no leader"),
            (Code::ResourceExhausted, "etcdserver: too many requests"),
            (Code::ResourceExhausted, "etcdserver: mvcc: database space exceeded"),
            (Code::Unauthenticated, "etcdserver: invalid auth token"),
            (Code::InvalidArgument, "etcdserver: revision of auth store is old"),
            (Code::NotFound, "etcdserver: requested lease not found"),
        ] {
            let failure = said(code, message);
            assert!(matches!(failure.of_write(), StoreError::Unavailable { .. }), "{message}");
        }
    }

    #[test]
    fn what_repeating_cannot_mend_is_fatal() {
        for (code, message) in [
            (Code::PermissionDenied, "etcdserver: permission denied"),
            (Code::InvalidArgument, "etcdserver: authentication failed, invalid user ID or password"),
            (Code::InvalidArgument, "etcdserver: request is too large"),
        ] {
            assert!(matches!(said(code, message).of_write(), StoreError::Fatal { .. }), "{message}");
        }
        let compacted = said(Code::OutOfRange, "etcdserver: mvcc: required revision has been compacted");
        assert!(matches!(compacted.of_read(), StoreError::Compacted));
    }

    #[test]
    fn a_read_without_an_answer_is_only_unavailable() {
        let late = Failure::TooLate { endpoint: "http://a".into(), within: Millis(10) };
        assert!(matches!(late.of_read(), StoreError::Unavailable { .. }));
    }
}
