//! An actor's id comes from its namespace or from its text. The constructor is the library's own.

use archipelago::identity::{ActorId, ActorIdError, ActorKey, Kind, Namespace};

fn id(namespace: Namespace, kind: Kind, key: ActorKey) -> Result<ActorId, ActorIdError> {
    ActorId::from_parts(namespace, kind, key)
}

fn main() {}
