//! Deliberate bugs, to see that the simulator finds them.
//!
//! Each [`Mutant`] breaks one rule at the one place that keeps it. Without the feature `mutants` none can be switched on.

use archipelago_protocol::identity::NodeId;
use archipelago_protocol::session::{EndReason, Lease, LeaseSeen, LeaseVersion};

/// A rule that can be broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(not(feature = "mutants"), expect(unreachable_pub, reason = "exported with the feature only"))]
pub enum Mutant {
    /// PIN: a lease that the store does not have is taken for one that has ended.
    AbsenceTakenForDeath,
    /// EVIDENCE: a claim replaces the record of another without a look at its session.
    ClaimAsksNobody,
    /// Every delete names a version: what an ended session has left is deleted whoever has it by now.
    DeletesByKey,
    /// The same for a release: it deletes whatever stands there, and is repeated until it is answered.
    ReleasesByKey,
}

/// What a claim is told about the lease of the present owner.
pub(crate) fn bent(id: NodeId, seen: Option<LeaseSeen>) -> Option<LeaseSeen> {
    if broken(Mutant::ClaimAsksNobody) { Some(ended(id)) } else { seen }
}

/// What whoever reads a lease is told.
pub(crate) fn bent_if_absent(id: NodeId, seen: Option<LeaseSeen>) -> Option<LeaseSeen> {
    if broken(Mutant::AbsenceTakenForDeath) { seen.or_else(|| Some(ended(id))) } else { seen }
}

fn ended(id: NodeId) -> LeaseSeen {
    LeaseSeen { id, version: LeaseVersion(u64::MAX), lease: Lease::Ended { why: EndReason::Silent, by: id } }
}

#[cfg(feature = "mutants")]
mod switch {
    use std::cell::Cell;

    use super::Mutant;

    thread_local! {
        static ACTIVE: Cell<Option<Mutant>> = const { Cell::new(None) };
    }

    /// Breaks one rule, or none, on this thread from now on.
    pub fn set_mutant(mutant: Option<Mutant>) {
        ACTIVE.set(mutant);
    }

    /// True if this rule is broken.
    pub(crate) fn broken(rule: Mutant) -> bool {
        ACTIVE.get() == Some(rule)
    }
}

#[cfg(not(feature = "mutants"))]
mod switch {
    use super::Mutant;

    /// True if this rule is broken: never.
    pub(crate) const fn broken(_: Mutant) -> bool {
        false
    }
}

pub(crate) use switch::broken;
#[cfg(feature = "mutants")]
pub use switch::set_mutant;
