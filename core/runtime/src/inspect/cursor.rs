//! Where a listing of actors goes on.

use std::fmt;
use std::str::FromStr;

/// A place in the listing of the actors of one node. Its text is for that node alone, and good for as long as it runs: what
/// begins or ends meanwhile may be missed or not, what stays is shown once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActorCursor {
    pub(super) arbiter: u16,
    pub(super) kind: u32,
    pub(super) table: u32,
    /// The last actor of the table that was looked at.
    pub(super) after: Option<(u64, String)>,
}

/// The text is no place in a listing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the cursor is not one that a page has given")]
pub struct BadCursor;

impl ActorCursor {
    pub(super) fn next_table(&mut self) {
        (self.table, self.after) = (self.table.saturating_add(1), None);
    }

    pub(super) fn next_kind(&mut self) {
        (self.kind, self.table, self.after) = (self.kind.saturating_add(1), 0, None);
    }

    pub(super) fn next_arbiter(&mut self) {
        *self = Self { arbiter: self.arbiter.saturating_add(1), ..Self::default() };
    }
}

impl fmt::Display for ActorCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.arbiter, self.kind, self.table)?;
        match &self.after {
            Some((hash, key)) => write!(f, ".{hash:016x}.{key}"),
            None => Ok(()),
        }
    }
}

impl FromStr for ActorCursor {
    type Err = BadCursor;

    fn from_str(text: &str) -> Result<Self, BadCursor> {
        let mut parts = text.splitn(5, '.');
        let mut next = || parts.next().ok_or(BadCursor);
        let arbiter = next()?.parse().map_err(|_| BadCursor)?;
        let kind = next()?.parse().map_err(|_| BadCursor)?;
        let table = next()?.parse().map_err(|_| BadCursor)?;
        let after = match next() {
            Ok(hash) => Some((u64::from_str_radix(hash, 16).map_err(|_| BadCursor)?, next()?.to_owned())),
            Err(BadCursor) => None,
        };
        Ok(Self { arbiter, kind, table, after })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_survives_its_text_whatever_the_key() {
        let after = |key: &str| Some((0xabc, key.to_owned()));
        for after in [None, after("alice"), after("a.b.c"), after(""), after("ü %?#")] {
            let cursor = ActorCursor { arbiter: 3, kind: 1, table: 255, after };
            assert_eq!(cursor.to_string().parse(), Ok(cursor));
        }
    }

    #[test]
    fn other_text_is_no_cursor() {
        for text in ["", "1", "1.2", "1.2.x", "1.2.3.zz.key", "1.2.3.00ff", "-1.0.0", "99999999999.0.0"] {
            assert_eq!(text.parse::<ActorCursor>(), Err(BadCursor), "{text}");
        }
    }
}
