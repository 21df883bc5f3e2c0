//! Why a request to the service of another node has no answer, as far as this node can know.

use std::fmt;

use archipelago_protocol::call::CallError;

/// Why a request has no answer, sorted by what may have become of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// It never left this node, and never will.
    NotSent(CallError),
    /// It may have arrived.
    Silent(CallError),
    /// It has arrived, and this is the answer.
    Refused(CallError),
}

impl Unanswered {
    /// A request that this node itself gave up.
    pub(crate) const fn by_us(error: CallError) -> Self {
        if error.is_not_started() { Self::NotSent(error) } else { Self::Silent(error) }
    }

    /// Whether it certainly never left this node.
    pub(crate) const fn is_not_sent(&self) -> bool {
        matches!(self, Self::NotSent(_))
    }

    /// Whether the other node has answered.
    pub(crate) const fn is_refused(&self) -> bool {
        matches!(self, Self::Refused(_))
    }
}

impl From<Unanswered> for CallError {
    fn from(unanswered: Unanswered) -> Self {
        match unanswered {
            Unanswered::NotSent(error) | Unanswered::Silent(error) | Unanswered::Refused(error) => error,
        }
    }
}

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSent(error) | Self::Silent(error) | Self::Refused(error) => error.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use archipelago_protocol::identity::NodeId;

    use super::*;

    #[test]
    fn what_was_given_to_a_connection_may_have_arrived() {
        let lost = CallError::ConnectionLost { node: NodeId::new(1) };
        for error in [CallError::Timeout { started: true }, lost, CallError::Stopped] {
            assert!(!Unanswered::by_us(error).is_not_sent());
        }
        for error in [CallError::Timeout { started: false }, CallError::NoRoute { reason: "none".into() }] {
            assert!(Unanswered::by_us(error.clone()).is_not_sent());
            assert!(
                !Unanswered::Refused(error).is_not_sent(),
                "the same words from the other side prove nothing"
            );
        }
    }
}
