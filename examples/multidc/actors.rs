//! What lives in the datacenters.

use archipelago::prelude::*;
use serde::{Deserialize, Serialize};

/// Counts, and answers with the count and with who has counted.
#[remote(Answer)]
pub(crate) struct Touch;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Answer {
    pub(crate) count: u64,
    pub(crate) node: String,
}

#[derive(VirtualActor)]
#[virtual_actor(handles(Touch))]
pub(crate) struct Ledger {
    count: u64,
    node: String,
}

impl Ledger {
    /// A ledger on the node of that name.
    pub(crate) fn on(node: &str) -> Self {
        Self { count: 0, node: node.to_owned() }
    }
}

impl Actor for Ledger {
    type Context = Context<Self>;
}

impl Handler<Touch> for Ledger {
    type Result = MessageResult<Touch>;

    fn handle(&mut self, _: Touch, _: &mut Context<Self>) -> Self::Result {
        self.count += 1;
        MessageResult(Answer { count: self.count, node: self.node.clone() })
    }
}
