//! Who belongs to the cluster: the machines that spread views, suspect the silent, and name a leader.
//!
//! Gossip and heartbeats only *suspect*: they stop nobody and own nothing. A member is down when its session in the
//! directory has ended; the most that these machines do about a silent node is to ask for its session to be
//! revoked ([`MembershipAction::Revoke`]).
//!
//! Two machines are driven by a shell each and tell each other what they find: [`Membership`] (the view, gossip, the
//! leader's duties) and [`HeartbeatMachine`] (who answers). Their parts can be used and tested alone: [`GossipState`] (the
//! view, a lattice), [`PhiAccrual`] (suspicion), [`LeaderProvider`], [`SplitBrain`] and [`SplitWatch`] (splits).

mod duties;
mod events;
mod fingerprint;
mod forgotten;
mod frame;
mod gossip_state;
mod heartbeat;
mod leader;
mod machine;
mod member;
mod normal_tail;
mod phi;
mod plugged;
mod published;
pub mod ring;
mod rounds;
mod settings;
mod split_brain;
mod stability;
mod status;
mod vector_clock;

pub use events::{MemberEvent, MembershipAction, MembershipEvent};
pub use frame::{Delta, Digest, MemberWord, MembershipFrame, MembershipFrameError};
pub use gossip_state::{Entered, GossipState};
pub use heartbeat::{HeartbeatAction, HeartbeatEvent, HeartbeatMachine, HeartbeatSettings};
pub use leader::{LeaderProvider, LeaderRule, LowestAddress, Oldest, leader_among};
pub use machine::Membership;
pub use member::{Member, NodeLoad};
pub use phi::{PhiAccrual, PhiSettings};
pub use plugged::Plugged;
pub use settings::MembershipSettings;
pub use split_brain::{KeepMajority, KeepOldest, Sides, SplitBrain, SplitStrategy, StaticQuorum};
pub use stability::{SplitPicture, SplitWatch};
pub use status::{IllegalStep, MemberStatus};
pub use vector_clock::{ClockOrder, VectorClock};

#[cfg(test)]
mod samples;
