//! Two messages of one actor must not have the same name on the wire.

use archipelago::prelude::*;

#[remote(name = "bank.close")]
struct Close;

#[remote(name = "bank.close")]
struct CloseAgain;

#[derive(Default, VirtualActor)]
#[virtual_actor(handles(Close, CloseAgain))]
struct Account;

impl Actor for Account {
    type Context = Context<Self>;
}

impl Handler<Close> for Account {
    type Result = ();
    fn handle(&mut self, _: Close, _: &mut Context<Self>) {}
}

impl Handler<CloseAgain> for Account {
    type Result = ();
    fn handle(&mut self, _: CloseAgain, _: &mut Context<Self>) {}
}

fn main() {}
