//! `lifecycle` and `impl Lifecycle` go together.

use archipelago::prelude::*;

#[derive(VirtualActor)]
#[virtual_actor(handles(), lifecycle)]
struct Promised;

impl Actor for Promised {
    type Context = Context<Self>;
}

#[derive(VirtualActor)]
#[virtual_actor(handles())]
struct Unannounced;

impl Actor for Unannounced {
    type Context = Context<Self>;
}

impl Lifecycle for Unannounced {}

fn main() {}
