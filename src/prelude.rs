//! Everything a program with virtual actors usually needs, actix's own prelude included.

pub use actix::prelude::*;

pub use crate::{
    Activation, ActorRef, BoxError, BuildNode, Call, CallError, CallOptions, DeactivateReason, Lifecycle,
    MessageFlags, MessageRef, Migrate, NamedActor, NamedRef, Node, Persistent, RemoteMessage, StateError,
    UntypedRef, VirtualActor, in_call, remote,
};
