//! A message in `handles(..)` needs a handler.

use archipelago::prelude::*;

#[remote(i64)]
struct Deposit(i64);

#[derive(Default, VirtualActor)]
#[virtual_actor(handles(Deposit))]
struct Account;

impl Actor for Account {
    type Context = Context<Self>;
}

#[derive(NamedActor)]
#[named_actor(handles(Deposit))]
struct Greeter;

impl Actor for Greeter {
    type Context = Context<Self>;
}

fn main() {}
