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
#[virtual_actor(handles(Touch), migrate)]
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

/// The count goes along when the ledger moves to another node of its datacenter.
impl Migrate for Ledger {
    type Carried = u64;

    fn dehydrate(&mut self) -> Option<u64> {
        Some(self.count)
    }

    fn rehydrate(&mut self, count: u64) {
        self.count = count;
    }
}

impl Handler<Touch> for Ledger {
    type Result = MessageResult<Touch>;

    fn handle(&mut self, _: Touch, _: &mut Context<Self>) -> Self::Result {
        self.count += 1;
        MessageResult(Answer { count: self.count, node: self.node.clone() })
    }
}
