//! A message that the actor does not declare is refused at the call, as is another message than that of a message ref.

use archipelago::prelude::*;

#[remote(i64)]
struct Deposit(i64);

#[remote(i64)]
struct Withdraw(i64);

#[remote]
struct Close;

#[derive(Default, VirtualActor)]
#[virtual_actor(handles(Deposit, Close))]
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

impl Handler<Close> for Account {
    type Result = ();
    fn handle(&mut self, _: Close, _: &mut Context<Self>) {}
}

async fn send(account: ActorRef<Account>) {
    let _ = account.send(Withdraw(1)).await;
    let deposits: MessageRef<Deposit> = account.message_ref();
    let _ = deposits.send(Withdraw(1)).await;
    account.message_ref::<Withdraw>();
}

fn main() {}
