//! What lives in the cluster.

use archipelago::prelude::*;

/// Greets, and is answered how often the guest was greeted.
#[remote(u32)]
pub struct Greet;

/// Its kind is divided into shards.
#[derive(Default, VirtualActor)]
#[virtual_actor(handles(Greet))]
pub struct Guest {
    greeted: u32,
}

impl Actor for Guest {
    type Context = Context<Self>;
}

impl Handler<Greet> for Guest {
    type Result = u32;

    fn handle(&mut self, _: Greet, _: &mut Context<Self>) -> u32 {
        self.greeted += 1;
        self.greeted
    }
}

/// Its kind is divided by ranges of keys.
#[derive(Default, VirtualActor)]
#[virtual_actor(handles(Greet))]
pub struct Shelf;

impl Actor for Shelf {
    type Context = Context<Self>;
}

impl Handler<Greet> for Shelf {
    type Result = u32;

    fn handle(&mut self, _: Greet, _: &mut Context<Self>) -> u32 {
        1
    }
}

/// Is registered nowhere: whatever one is told is a dead letter.
#[derive(NamedActor)]
#[named_actor(handles(Greet))]
pub struct Porter;

impl Actor for Porter {
    type Context = Context<Self>;
}

impl Handler<Greet> for Porter {
    type Result = u32;

    fn handle(&mut self, _: Greet, _: &mut Context<Self>) -> u32 {
        0
    }
}
