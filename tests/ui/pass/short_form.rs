//! `#[remote]`: one attribute per message, one word per pair of actor and message.

use archipelago::prelude::*;
use archipelago::{Codec, Interleave};

use crate::support::builder;

#[remote(i64)]
struct Deposit(i64);

#[remote(Result<Statement, Closed>)]
enum Ask {
    Balance,
    Since { at: u64 },
}

#[remote(Option<u8>)]
#[derive(Clone, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "UPPERCASE")]
struct HasOwnDerives {
    value: u8,
}

#[remote]
#[derive(Debug, serde::Serialize)]
struct HasHalfOfThem;

#[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
struct Statement {
    balance: i64,
}

#[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
struct Closed;

mod moved {
    pub(super) mod deeper {
        #[archipelago::remote]
        pub(in super::super) struct Close;
    }
}

#[derive(Default, VirtualActor)]
#[virtual_actor(handles(Deposit, Ask, HasOwnDerives, HasHalfOfThem, moved::deeper::Close))]
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

impl Handler<Ask> for Account {
    type Result = Result<Statement, Closed>;
    fn handle(&mut self, message: Ask, _: &mut Context<Self>) -> Self::Result {
        match message {
            Ask::Balance => Ok(Statement { balance: self.balance }),
            Ask::Since { at: _ } => Err(Closed),
        }
    }
}

impl Handler<HasOwnDerives> for Account {
    type Result = Option<u8>;
    fn handle(&mut self, message: HasOwnDerives, _: &mut Context<Self>) -> Option<u8> {
        Some(message.clone().value)
    }
}

impl Handler<HasHalfOfThem> for Account {
    type Result = ();
    fn handle(&mut self, _: HasHalfOfThem, _: &mut Context<Self>) {}
}

impl Handler<moved::deeper::Close> for Account {
    type Result = ();
    fn handle(&mut self, _: moved::deeper::Close, _: &mut Context<Self>) {}
}

#[actix::test]
async fn a_short_declaration_is_all_a_call_needs() {
    let node = builder().actor::<Account>().start().await.unwrap();
    let alice = node.actor::<Account>("alice");
    assert_eq!(alice.send(Deposit(10)).await.unwrap(), 10);
    assert_eq!(alice.send(Ask::Balance).await.unwrap(), Ok(Statement { balance: 10 }));
    assert_eq!(alice.send(Ask::Since { at: 3 }).await.unwrap(), Err(Closed));
    alice.send(HasHalfOfThem).await.unwrap();
    node.stop().await.unwrap();
}

/// Proves: C46
#[test]
fn the_name_is_crate_and_type_wherever_the_type_stands() {
    assert_eq!(Deposit::NAME, "archipelago.Deposit");
    assert_eq!(moved::deeper::Close::NAME, "archipelago.Close");
    assert_eq!(Account::KIND, "Account");
    assert_eq!(Account::INTERLEAVE, Interleave::Never);
}

/// Proves: R105, R106
#[actix::test]
async fn the_name_alone_finds_the_type() {
    let node = builder().actor::<Account>().start().await.unwrap();
    let alice = node.actor::<Account>("alice").untyped();
    let reply = alice.send_encoded("archipelago.Deposit", Codec::Json, "7").await.unwrap();
    assert_eq!(reply, "7");
    // The user's own serde attributes are in force.
    let reply = alice.send_encoded("archipelago.HasOwnDerives", Codec::Json, r#"{"VALUE":1}"#).await.unwrap();
    assert_eq!(reply, "1");
    let error = alice.send_encoded("archipelago.Withdraw", Codec::Json, "7").await.unwrap_err();
    assert!(matches!(error, CallError::UnknownMessage { .. }), "{error}");
    node.stop().await.unwrap();
}
