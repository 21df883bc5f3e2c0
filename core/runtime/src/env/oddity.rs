//! Things that may happen at any time and hardly ever do, which an environment can make happen.

/// A place where something rare but allowed can be made to happen. Nothing that the library promises may depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Oddity {
    /// The answer to a claim is lost: nobody knows whether it was applied.
    ClaimUnanswered,
    /// The answer to a beat is lost.
    BeatUnanswered,
    /// An actor takes a while before it is activated.
    SlowActivation,
    /// The state of a shard that moves is held up on its way.
    SlowParcel,
    /// A watch breaks and has to be opened again.
    WatchBreaks,
}
