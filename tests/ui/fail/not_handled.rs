//! A message that the actor does not declare is refused at the call, as is another message than that of a message ref.
//! The actor has one message only: that is where a compiler is tempted to guess the type.

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

async fn send(account: ActorRef<Account>) {
    let _ = account.send(Withdraw(1)).await;
    let deposits: MessageRef<Deposit> = account.message_ref();
    let _ = deposits.send(Withdraw(1)).await;
    account.message_ref::<Withdraw>();
}

fn main() {}
