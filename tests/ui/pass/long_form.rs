//! `#[derive(Message, RemoteMessage, Serialize, Deserialize)]`: for those who write out what they use.

use archipelago::prelude::*;
use serde::{Deserialize, Serialize};

use crate::support::builder;

#[derive(Message, RemoteMessage, Serialize, Deserialize)]
#[rtype(result = "i64")]
struct Deposit(i64);

#[derive(Message, RemoteMessage, Serialize, Deserialize)]
#[rtype(result = "()")]
#[remote_message(name = "bank.close.v2", read_only, local_only)]
struct Close;

#[derive(Default, VirtualActor)]
#[virtual_actor(handles(Deposit, Close))]
struct Account {
    balance: i64,
}

impl Actor for Account {
    type Context = Context<Self>;
}

impl Handler<Deposit> for Account {
    type Result = i64;
    fn handle(&mut self, message: Deposit, _: &mut Context<Self>) -> i64 {
        self.balance += message.0;
        self.balance
    }
}

impl Handler<Close> for Account {
    type Result = ();
    fn handle(&mut self, _: Close, _: &mut Context<Self>) {}
}

#[actix::test]
async fn the_long_form_works_like_the_short_one() {
    let node = builder().actor::<Account>().start().await.unwrap();
    let alice = node.actor::<Account>("alice");
    assert_eq!(alice.send(Deposit(10)).await.unwrap(), 10);
    alice.send(Close).await.unwrap();
    node.stop().await.unwrap();
}

/// Proves: C46
#[test]
fn the_long_form_has_the_same_names_and_options() {
    assert_eq!(Deposit::NAME, "archipelago.Deposit");
    assert!(Deposit::FLAGS.is_empty());
    assert_eq!(Close::NAME, "bank.close.v2");
    assert_eq!(Close::FLAGS, MessageFlags::READ_ONLY | MessageFlags::IS_LOCAL_ONLY);
}
