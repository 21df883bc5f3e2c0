//! Where in the stream a record lives: one subject per key.
//!
//! `{prefix}.{space}.{key}`, the key as one token in which everything that NATS might misread is written as `%` and two
//! hex digits. Spaces are lower-case, so `{prefix}.META.` is free for what is no record.

use archipelago_directory::{RecordId, Space, StoreError};

use crate::config::SubjectPrefix;

/// The subjects of one cluster.
#[derive(Clone, Debug)]
pub(crate) struct Subjects {
    prefix: String,
}

impl Subjects {
    pub(crate) fn new(prefix: &SubjectPrefix) -> Self {
        Self { prefix: prefix.as_str().to_owned() }
    }

    /// Everything.
    pub(crate) fn all(&self) -> String {
        format!("{}.>", self.prefix)
    }

    /// All records of a space.
    pub(crate) fn space(&self, space: Space) -> String {
        format!("{}.{space}.*", self.prefix)
    }

    /// Where a listing marks the end of what it must have read.
    pub(crate) fn barrier(&self) -> String {
        format!("{}.META.barrier", self.prefix)
    }

    /// Where it is written down that the stream has gone back.
    pub(crate) fn set_back(&self) -> String {
        format!("{}.META.setback", self.prefix)
    }

    pub(crate) fn record(&self, id: &RecordId) -> Result<String, StoreError> {
        if id.key.len() > MAX_KEY || id.key.chars().any(char::is_control) {
            let source = format!("{:?} is no key: at most {MAX_KEY} bytes, no control characters", id.key);
            return Err(StoreError::Fatal { source: source.into() });
        }
        Ok(format!("{}.{}.{}", self.prefix, id.space, escape(&id.key)))
    }

    /// The record of `space` that lives on `subject`.
    pub(crate) fn parse(&self, space: Space, subject: &str) -> Option<RecordId> {
        let rest = subject.strip_prefix(&self.prefix)?.strip_prefix('.')?;
        let key = rest.strip_prefix(space.as_str())?.strip_prefix('.')?;
        unescape(key).map(|key| RecordId::new(space, key))
    }
}

/// Makes one token of any text, also of none.
pub(crate) fn escape(text: &str) -> String {
    if text.is_empty() {
        return EMPTY.to_owned();
    }
    let mut token = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || PLAIN.contains(&byte) {
            token.push(char::from(byte));
        } else {
            token.push('%');
            token.extend([byte >> 4, byte & 15].map(|digit| char::from(HEX[usize::from(digit)])));
        }
    }
    token
}

/// The text of a token; `None` if [`escape`] did not write it.
pub(crate) fn unescape(token: &str) -> Option<String> {
    if token == EMPTY {
        return Some(String::new());
    }
    let mut text = Vec::with_capacity(token.len());
    let mut bytes = token.bytes();
    while let Some(byte) = bytes.next() {
        text.push(match byte {
            b'%' => hex(bytes.next()?)? << 4 | hex(bytes.next()?)?,
            plain => plain,
        });
    }
    String::from_utf8(text).ok()
}

fn hex(digit: u8) -> Option<u8> {
    HEX.iter().position(|&known| known == digit).and_then(|value| u8::try_from(value).ok())
}

const MAX_KEY: usize = 1_024;
const EMPTY: &str = "%";
const HEX: &[u8; 16] = b"0123456789ABCDEF";
const PLAIN: &[u8] = b"-_/:@+=,";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_is_one_token_and_reads_back() {
        let texts =
            ["", "k1", "a.b", "*", ">", "a b", "%", "%41", "ns::Kind/key", "ä €", "..", "\u{7f}", "$JS"];
        for text in texts {
            let token = escape(text);
            assert!(token.bytes().all(|byte| byte.is_ascii_graphic() && !b".*>$".contains(&byte)), "{token}");
            assert_eq!(unescape(&token).as_deref(), Some(text));
        }
    }

    #[test]
    fn different_keys_live_on_different_subjects() {
        let subjects = Subjects::new(&SubjectPrefix::default());
        let id = |key: &str| RecordId::new(Space::OWNERS, key);
        assert_ne!(subjects.record(&id("a.b")).unwrap(), subjects.record(&id("a%2Eb")).unwrap());
        let subject = subjects.record(&id("shard:Account/1")).unwrap();
        assert_eq!(subject, "archipelago.own.shard:Account/1");
        assert_eq!(subjects.parse(Space::OWNERS, &subject), Some(id("shard:Account/1")));
        assert_eq!(subjects.parse(Space::NODES, &subject), None);
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let subjects = Subjects::new(&SubjectPrefix::default());
        for key in ["a\nb".to_owned(), "x".repeat(1_025)] {
            let refused = subjects.record(&RecordId::new(Space::OWNERS, key));
            assert!(matches!(refused, Err(StoreError::Fatal { .. })), "{refused:?}");
        }
        assert!(subjects.record(&RecordId::new(Space::OWNERS, "€".repeat(341))).unwrap().len() < 3_300);
    }

    #[test]
    fn foreign_tokens_are_no_keys() {
        for token in ["%4", "%zz", "%ff%", "%FF"] {
            assert_eq!(unescape(token), None, "{token}");
        }
    }
}
