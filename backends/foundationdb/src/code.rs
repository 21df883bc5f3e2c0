//! The error codes of FoundationDB, sorted by what they mean to a write and to a read.
//!
//! A commit counts as not applied only if its code is one of those that FoundationDB gives before, or instead of, applying
//! it. In doubt it may have been applied.

use archipelago_directory::StoreError;

/// An error code of FoundationDB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
#[error("FoundationDB error {code}{name}", code = .0, name = shown(*.0))]
pub struct Code(pub i32);

impl Code {
    /// The read version is too old: the transaction took longer than five seconds.
    pub const TRANSACTION_TOO_OLD: Self = Self(1007);
    /// A server has not come to the read version yet.
    pub const FUTURE_VERSION: Self = Self(1009);
    /// Something that was read has changed.
    pub const NOT_COMMITTED: Self = Self(1020);
    /// Committed or not: nobody knows.
    pub const COMMIT_UNKNOWN_RESULT: Self = Self(1021);
    /// The transaction ran into a time limit set on the client.
    pub const TRANSACTION_TIMED_OUT: Self = Self(1031);
    /// There are too many watches on this client.
    pub const TOO_MANY_WATCHES: Self = Self(1032);
    /// The servers were replaced by others meanwhile.
    pub const CLUSTER_VERSION_CHANGED: Self = Self(1039);
    /// The client has given the request up.
    pub const OPERATION_CANCELLED: Self = Self(1101);
    /// The transaction writes, and reads without allowing changes, more than ten million bytes.
    pub const TRANSACTION_TOO_LARGE: Self = Self(2101);
    /// A key is longer than 10 000 bytes.
    pub const KEY_TOO_LARGE: Self = Self(2102);
    /// A value is longer than 100 000 bytes.
    pub const VALUE_TOO_LARGE: Self = Self(2103);

    /// Whether a commit that ended so certainly is not applied, now or later.
    pub const fn certainly_not_committed(self) -> bool {
        matches!(self.0, 1007 | 1009 | 1020 | 1037 | 1038 | 1042 | 1051 | 1078 | 1213 | 1223)
            || self.is_of_the_client()
    }

    /// Whether a transaction that ended so is worth repeating.
    pub const fn is_retryable(self) -> bool {
        matches!(self.0, 1007 | 1009 | 1020 | 1021 | 1037 | 1038 | 1039 | 1042 | 1051 | 1078 | 1213 | 1223)
    }

    /// Whether a transaction that does less may succeed where this one did not.
    pub const fn asks_for_less(self) -> bool {
        matches!(self, Self::TRANSACTION_TOO_OLD | Self::TRANSACTION_TOO_LARGE)
    }

    /// What this means to somebody who changed nothing: all that counts is whether asking again may help.
    pub fn of_read(self) -> StoreError {
        let source = self.into();
        if self.is_of_the_client() {
            StoreError::Fatal { source }
        } else {
            StoreError::Unavailable { source }
        }
    }

    /// Found by the client before it asked anybody: what is asked for, or how it is set up, is wrong.
    const fn is_of_the_client(self) -> bool {
        self.0 >= 2000 && self.0 < 3000
    }
}

fn shown(code: i32) -> &'static str {
    match code {
        1007 => " (transaction_too_old)",
        1009 => " (future_version)",
        1020 => " (not_committed)",
        1021 => " (commit_unknown_result)",
        1025 => " (transaction_cancelled)",
        1031 => " (transaction_timed_out)",
        1032 => " (too_many_watches)",
        1038 => " (database_locked)",
        1039 => " (cluster_version_changed)",
        1101 => " (operation_cancelled)",
        1515 => " (no_cluster_file_found)",
        2101 => " (transaction_too_large)",
        2102 => " (key_too_large)",
        2103 => " (value_too_large)",
        2104 => " (connection_string_invalid)",
        2203 => " (api_version_not_supported)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_have_been_committed_is_never_called_not_committed() {
        for code in [1021, 1039, 1025, 1031, 1101, 4100, 1, -1] {
            assert!(!Code(code).certainly_not_committed(), "{code}");
        }
        for code in [1020, 1007, 2101, 2103] {
            assert!(Code(code).certainly_not_committed(), "{code}");
        }
    }

    #[test]
    fn a_request_that_can_never_be_served_is_fatal_and_others_may_be_repeated() {
        assert!(matches!(Code::VALUE_TOO_LARGE.of_read(), StoreError::Fatal { .. }));
        for code in [Code::FUTURE_VERSION, Code::TRANSACTION_TIMED_OUT, Code(4100)] {
            assert!(matches!(code.of_read(), StoreError::Unavailable { .. }), "{code}");
        }
    }

    #[test]
    fn what_is_too_large_is_fatal_and_what_is_too_old_is_worth_repeating() {
        for code in [Code::KEY_TOO_LARGE, Code::VALUE_TOO_LARGE, Code::TRANSACTION_TOO_LARGE] {
            assert!(matches!(code.of_read(), StoreError::Fatal { .. }) && !code.is_retryable(), "{code}");
        }
        let old = Code::TRANSACTION_TOO_OLD;
        assert!(matches!(old.of_read(), StoreError::Unavailable { .. }) && old.is_retryable());
        let less = [1007, 1020, 1021, 2101, 2102, 2103].map(|code| Code(code).asks_for_less());
        assert_eq!(less, [true, false, false, true, false, false]);
    }

    #[test]
    fn a_code_is_shown_with_its_name_where_it_is_known() {
        assert_eq!(Code::NOT_COMMITTED.to_string(), "FoundationDB error 1020 (not_committed)");
        assert_eq!(Code(1).to_string(), "FoundationDB error 1");
    }
}
