//! A node's session: the lease that lets it own keys, kept by its holder and judged by everybody else.
//!
//! Pure machines and the rules they share. [`SessionHolder`] opens a session, beats it and knows until when
//! its node may serve; [`LeaseObserver`] counts how long the leases of others have stood still and says which
//! may be ended; [`Collector`] says when ended leases go; [`Claim`] takes one key for a session; [`RoleHolder`] holds a role of the
//! cluster and gives back what it does not hold; [`FenceWatch`] sees to it that nothing runs past the fence; [`ClockWatch`]
//! notices a clock that stood still. None does I/O or reads a clock: a shell feeds them events and carries out their actions.
//!
//! Invariant: what an observer may end has stopped serving before, by its own clock ([`times`] has the margins).
//! The rules named in capitals (CONFIRM, LOST, PIN, …) are those of the session protocol.

mod claim;
mod collector;
mod fence;
mod holder;
mod jump;
mod lease;
mod monitors;
mod observer;
mod role;
pub mod times;

pub use claim::{Claim, ClaimAction, ClaimEvent};
pub use collector::{Collector, CollectorAction, CollectorEvent};
pub use fence::{FenceAction, FenceSight, FenceWatch, LATE_GRACE, OnStuck, STUCK_GRACE};
pub use holder::{Gate, HolderAction, HolderEvent, LostReason, SessionHolder};
pub use jump::ClockWatch;
pub use lease::{Beat, EndReason, Lease, LeaseAnswer, LeaseOutcome, LeaseSeen, LeaseVersion, Session};
pub use monitors::{MONITOR_COUNT, is_monitor};
pub use observer::{LeaseObserver, ObserverAction, ObserverEvent};
pub use role::{RoleAction, RoleClaim, RoleEvent, RoleHolder, RoleSight};
