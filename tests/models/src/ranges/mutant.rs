//! The rules that can be broken.

/// One broken rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mutant {
    /// 40: a manager takes office without sealing what it reads.
    NoSeal,
    /// 41: a save does not name the version it replaces.
    NoVersion,
    /// 42: a partition is claimed before its parents are retired.
    NoParents,
    /// 43: parents are dropped from the table before they are retired.
    NoRetireCheck,
    /// 44: a save without an answer counts as done.
    UnknownIsDone,
}
