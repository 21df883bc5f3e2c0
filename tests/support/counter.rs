//! A counter that says where it is.

use archipelago::identity::{ActorId, NodeId};
use archipelago::prelude::*;

/// Adds something; answers with the sum and the node.
#[remote((u64, u64))]
pub struct Add(pub u64);

/// Counts, and forgets with its activation.
#[derive(VirtualActor)]
#[virtual_actor(handles(Add))]
pub struct Counter {
    node: NodeId,
    sum: u64,
}

impl Counter {
    pub fn made(_: &ActorId, node: &Node) -> Self {
        Self { node: node.id(), sum: 0 }
    }
}

impl Actor for Counter {
    type Context = Context<Self>;
}

impl Handler<Add> for Counter {
    type Result = MessageResult<Add>;
    fn handle(&mut self, Add(amount): Add, _: &mut Context<Self>) -> MessageResult<Add> {
        self.sum += amount;
        MessageResult((self.sum, self.node.as_u64()))
    }
}
