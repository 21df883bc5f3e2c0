//! Rules that can be broken.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mutant {
    /// A claim without an answer counts as refused.
    ForgetsUnanswered,
    /// A look that does not show the node's own record ends its doubts.
    LooksOnce,
    /// A node that finds itself in the record holds the role.
    AdoptsByReading,
    /// A release deletes whatever record the node has.
    ReleasesAnything,
    /// A release without an answer counts as done.
    ReleasesOnce,
}
