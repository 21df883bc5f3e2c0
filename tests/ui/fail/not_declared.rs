//! A handler alone is not enough: the pair must be declared, or other nodes could not call it.

use archipelago::prelude::*;

#[remote(i64)]
struct Deposit(i64);

#[remote(i64)]
struct Withdraw(i64);

#[derive(Default, VirtualActor)]
#[virtual_actor(handles(Deposit))]
struct Account;

impl Actor for Account {
    type Context = Context<Self>;
}

impl Handler<Deposit> for Account {
    type Result = i64;
    fn handle(&mut self, message: Deposit, _: &mut Context<Self>) -> i64 {
        message.0
    }
}

impl Handler<Withdraw> for Account {
    type Result = i64;
    fn handle(&mut self, message: Withdraw, _: &mut Context<Self>) -> i64 {
        message.0
    }
}

async fn send(account: ActorRef<Account>) {
    let _ = account.tell(Withdraw(1));
}

fn main() {}
