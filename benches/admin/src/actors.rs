//! An actor that is asked, and one of a million that are not.

use std::net::SocketAddr;

use archipelago::Builder;
use archipelago::prelude::*;

use crate::BoxError;

/// Adds and answers with the sum.
#[remote(u64)]
pub(crate) struct Add(pub(crate) u64);

#[derive(Default, VirtualActor)]
#[virtual_actor(handles(Add))]
pub(crate) struct Counter {
    sum: u64,
}

impl Actor for Counter {
    type Context = Context<Self>;
}

impl Handler<Add> for Counter {
    type Result = u64;

    fn handle(&mut self, add: Add, _: &mut Context<Self>) -> u64 {
        self.sum += add.0;
        self.sum
    }
}

/// A node whose actors run on one thread of their own, with an admin API that answers so many requests a second.
pub(crate) async fn node(rate: u32) -> Result<(Node, SocketAddr), BoxError> {
    let builder: Builder = Node::builder()
        .set("node.data_arbiters", "1")
        .set("admin.serve", "true")
        .set("admin.bind", "127.0.0.1:0")
        .set("admin.metrics", "true")
        .set("admin.rate", &rate.to_string());
    let node = builder.actor::<Counter>().start().await?;
    let at = archipelago_admin::served_at(&node).ok_or("the admin API is served")?;
    Ok((node, at))
}
