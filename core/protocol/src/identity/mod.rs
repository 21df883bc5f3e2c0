//! Who and where: the names of actors, nodes, owners and calls.
//!
//! Every type here is a value that was checked when it was made, also when it was decoded: whoever holds an
//! [`ActorId`] or a [`NodeAddress`] need not check it again. What the names mean (who owns a key, which node
//! lives) is decided elsewhere.
//!
//! Invariant: the text and the binary form of every identity decode to an equal value, and types whose text is
//! used as a key of a store ([`ActorId`], [`OwnedKey`], [`NodeId`]) have exactly one text per value.

mod activation_record;
mod actor_id;
mod actor_path;
mod correlation_id;
mod error;
mod generation;
mod names;
mod node;
mod node_address;
mod owned_key;
pub(crate) mod text;

pub use activation_record::{ActivationRecord, Placement};
pub use actor_id::ActorId;
pub use actor_path::{ActorPath, ActorPathError};
pub use correlation_id::CorrelationId;
pub use error::{ActorIdError, FormatFault, IdField};
pub use generation::Generation;
pub use names::{ActorKey, Kind, Namespace, PartitionName, RoleName};
pub use node::{NodeId, NodeIdError, NodeInfo};
pub use node_address::{NodeAddress, NodeAddressError};
pub use owned_key::{OwnedKey, OwnedKeyError};

#[cfg(test)]
pub(crate) mod arbitrary;
