//! What FoundationDB takes at most, what we let it have, and what is said to more.
//!
//! A key has at most 10,000 bytes, a value 100,000, a transaction 10,000,000 with all that it reads and must not have
//! changed, and it may last five seconds. What archipelago sends stays below: names and values are refused before they are sent,
//! and whatever handles many records does it in parts, each in a transaction of its own, which are made smaller when one was too much
//! after all.

use std::sync::atomic::{AtomicUsize, Ordering};

use archipelago_directory::{RecordId, StoreError, Write};
use archipelago_protocol::time::Millis;

use crate::code::Code;

/// The longest key or tag: a zero takes two bytes in the tuple layer, and the key of the index holds both.
pub(crate) const LONGEST_NAME: usize = 2 << 10;
/// The longest value: below the 100,000 bytes that FoundationDB takes, with key, tag and all else in the log.
pub(crate) const LONGEST_VALUE: usize = 90_000;

/// Something is longer than archipelago lets FoundationDB have. Nothing was sent; repeating will not help.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a {what} of {length} bytes; FoundationDB holds at most {most}")]
pub struct TooLarge {
    /// What is: `key`, `tag` or `value`.
    pub what: &'static str,
    /// How long it is.
    pub length: usize,
    /// How long it may be.
    pub most: usize,
}

/// No answer came in time, with all attempts. Trying later may help.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("FoundationDB gave no answer within {within}{}", because(*.last))]
pub struct TooLate {
    /// How long was tried.
    pub within: Millis,
    /// Why the last attempt failed that did.
    pub last: Option<Code>,
}

fn because(last: Option<Code>) -> String {
    last.map_or_else(String::new, |code| format!("; the last attempt: {code}"))
}

/// What is too long is refused before anything is asked.
pub(crate) fn check_sizes(id: &RecordId, write: &Write) -> Result<(), StoreError> {
    let (tag, value) = match write {
        Write::Put { tag, value, .. } => (tag.as_ref().map_or(0, String::len), value.len()),
        Write::Delete => (0, 0),
    };
    for (what, length, most) in
        [("key", id.key.len(), LONGEST_NAME), ("tag", tag, LONGEST_NAME), ("value", value, LONGEST_VALUE)]
    {
        if length > most {
            return Err(StoreError::Fatal { source: TooLarge { what, length, most }.into() });
        }
    }
    Ok(())
}

/// Whether it was too much for one transaction, and certainly nothing of it was applied: then less may go well.
pub(crate) fn was_too_much(error: &StoreError) -> bool {
    match error {
        StoreError::Unavailable { source } | StoreError::Fatal { source } => {
            source.downcast_ref::<Code>().is_some_and(|code| code.asks_for_less())
        }
        _ => false,
    }
}

/// How much is read at once: half as much after every transaction that became too old over it.
#[derive(Debug)]
pub(crate) struct PageSize {
    most: usize,
    now: AtomicUsize,
}

impl PageSize {
    pub(crate) const fn new(most: usize) -> Self {
        Self { most, now: AtomicUsize::new(most) }
    }

    pub(crate) fn now(&self) -> usize {
        self.now.load(Ordering::Relaxed)
    }

    /// An attempt failed with `code`.
    pub(crate) fn failed(&self, code: Code) {
        if code.asks_for_less() {
            self.now.store((self.now() / 2).max(1), Ordering::Relaxed);
        }
    }

    /// There is little to read again.
    pub(crate) fn caught_up(&self) {
        self.now.store(self.most, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use archipelago_directory::Space;
    use bytes::Bytes;

    use super::*;

    #[test]
    fn what_is_too_long_is_refused_by_name() {
        let put = |tag: usize, value: usize| Write::Put {
            tag: Some("t".repeat(tag)),
            value: Bytes::from(vec![0; value]),
            ttl: None,
        };
        let said =
            |key: usize, write| match check_sizes(&RecordId::new(Space::OWNERS, "k".repeat(key)), &write) {
                Err(StoreError::Fatal { source }) => source.to_string(),
                other => format!("{other:?}"),
            };
        assert_eq!(said(LONGEST_NAME, put(LONGEST_NAME, LONGEST_VALUE)), "Ok(())");
        assert_eq!(said(1, put(1, 90_001)), "a value of 90001 bytes; FoundationDB holds at most 90000");
        assert!(said(3_000, Write::Delete).starts_with("a key of 3000 bytes"));
        assert!(said(1, put(3_000, 0)).starts_with("a tag of 3000 bytes"));
    }

    #[test]
    fn a_page_is_halved_until_one_row_is_left_and_whole_again_afterwards() {
        let page = PageSize::new(5);
        let sizes = [1007, 1020, 1007, 1007, 1007].map(|code| {
            page.failed(Code(code));
            page.now()
        });
        assert_eq!(sizes, [2, 2, 1, 1, 1], "a conflict says nothing about the size");
        page.caught_up();
        assert_eq!(page.now(), 5);
    }

    #[test]
    fn what_came_too_late_says_why_where_that_is_known() {
        let within = Millis(2_000);
        let silent = TooLate { within, last: None };
        assert_eq!(silent.to_string(), "FoundationDB gave no answer within 2000ms");
        let old = TooLate { within, last: Some(Code::TRANSACTION_TOO_OLD) };
        assert!(old.to_string().ends_with("FoundationDB error 1007 (transaction_too_old)"), "{old}");
    }
}
