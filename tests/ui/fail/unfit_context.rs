//! Only an actor with a plain context can be virtual.

use archipelago::prelude::*;

#[derive(VirtualActor)]
#[virtual_actor(handles())]
struct Worker;

impl Actor for Worker {
    type Context = SyncContext<Self>;
}

fn main() {}
