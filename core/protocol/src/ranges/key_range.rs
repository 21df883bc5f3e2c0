//! A range of keys.

use core::fmt;

use crate::identity::ActorKey;

/// The keys from `start` on, up to but without `end`, compared byte by byte. `None` = no bound on that side.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct KeyRange {
    start: Option<ActorKey>,
    end: Option<ActorKey>,
}

impl KeyRange {
    /// Every key.
    pub const ALL: Self = Self { start: None, end: None };

    /// The range between these bounds; `None` if it would be empty.
    pub fn new(start: Option<ActorKey>, end: Option<ActorKey>) -> Option<Self> {
        let is_empty = matches!((&start, &end), (Some(start), Some(end)) if start >= end);
        (!is_empty).then_some(Self { start, end })
    }

    /// The first key; `None` = the least of all.
    pub const fn start(&self) -> Option<&ActorKey> {
        self.start.as_ref()
    }

    /// The first key beyond; `None` = there is none.
    pub const fn end(&self) -> Option<&ActorKey> {
        self.end.as_ref()
    }

    /// Whether `key` lies in the range.
    pub fn contains(&self, key: &str) -> bool {
        self.starts_by(key) && self.end.as_ref().is_none_or(|end| key < end.as_str())
    }

    /// Whether the range starts at `key` or before it.
    pub fn starts_by(&self, key: &str) -> bool {
        self.start.as_ref().is_none_or(|start| start.as_str() <= key)
    }

    /// Whether some key lies in both ranges.
    pub fn overlaps(&self, other: &Self) -> bool {
        is_before(self.start(), other.end()) && is_before(other.start(), self.end())
    }

    /// The two parts before `at` and from it on; `None` if one of them would be empty.
    pub fn split(&self, at: &ActorKey) -> Option<(Self, Self)> {
        let lower = Self::new(self.start.clone(), Some(at.clone()))?;
        let upper = Self::new(Some(at.clone()), self.end.clone())?;
        Some((lower, upper))
    }
}

/// Whether there can be a key between a start and an end.
fn is_before(start: Option<&ActorKey>, end: Option<&ActorKey>) -> bool {
    match (start, end) {
        (Some(start), Some(end)) => start < end,
        _ => true,
    }
}

impl fmt::Display for KeyRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [start, end] = [self.start(), self.end()].map(|bound| bound.map_or("", ActorKey::as_str));
        write!(f, "[{}..{})", start.escape_debug(), end.escape_debug())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(text: &str) -> Option<ActorKey> {
        ActorKey::new(text).ok()
    }

    fn range(start: &str, end: &str) -> Option<KeyRange> {
        KeyRange::new(key(start), key(end))
    }

    /// Proves: R112, R324
    #[test]
    fn no_end_is_no_upper_bound() {
        let tail = range("m", "").unwrap();
        assert!(tail.contains("m") && tail.contains("zzz") && tail.contains("\u{10ffff}"));
        assert!(!tail.contains("lzzz"));
        assert!(KeyRange::ALL.contains(""));
        assert_eq!(range("m", "m"), None);
        assert_eq!(range("n", "m"), None);
        assert_eq!(tail.split(&key("m").unwrap()), None);
    }

    proptest! {
        #[test]
        fn ranges_overlap_if_and_only_if_they_share_a_key(
            (a, b, c, d) in ("[a-c]{0,2}", "[a-c]{0,2}", "[a-c]{0,2}", "[a-c]{0,2}"),
        ) {
            let (Some(one), Some(other)) = (range(&a, &b), range(&c, &d)) else { return Ok(()) };
            // If two ranges share a key, they share the later of their starts.
            let later = a.max(c);
            prop_assert_eq!(one.overlaps(&other), one.contains(&later) && other.contains(&later));
        }
    }
}
