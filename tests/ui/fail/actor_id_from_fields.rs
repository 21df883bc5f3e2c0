//! An actor's id comes from its namespace or from its text. Its fields are the library's own.

use archipelago::identity::{ActorId, ActorKey, Kind, Namespace};

fn id(namespace: Namespace, kind: Kind, key: ActorKey) -> ActorId {
    ActorId { namespace, kind, key }
}

fn main() {}
