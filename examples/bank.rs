//! A bank: accounts are virtual actors, tellers move money between them, and the sum of all balances never changes.
//!
//! `cargo run --example bank`
#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "an example prints, and pauses between two days")]

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use archipelago::prelude::*;
use futures_util::future::join_all;
use serde::{Deserialize, Serialize};

/// Why a transfer did not happen. A reply like any other, so it travels.
#[derive(Debug, Serialize, Deserialize, thiserror::Error)]
enum Refused {
    #[error("the account holds only {balance}")]
    InsufficientFunds { balance: i64 },
    #[error(transparent)]
    Call(#[from] CallError),
}

#[remote(i64)]
struct Deposit(i64);

#[remote(Result<i64, Refused>)]
struct Withdraw(i64);

#[remote(i64, read_only)]
struct Balance;

#[remote(Result<(), Refused>)]
struct Transfer {
    from: ActorRef<Account>,
    to: ActorRef<Account>,
    amount: i64,
}

/// Stands for a database: what must outlive an activation is kept here.
#[derive(Default)]
struct Vault(Mutex<BTreeMap<String, i64>>);

impl Vault {
    fn balances(&self) -> MutexGuard<'_, BTreeMap<String, i64>> {
        self.0.lock().expect("nothing panics while it holds the vault")
    }
}

#[derive(VirtualActor)]
#[virtual_actor(handles(Deposit, Withdraw, Balance), lifecycle)]
struct Account {
    owner: String,
    balance: i64,
    vault: Arc<Vault>,
}

impl Account {
    /// Every change is written at once: a crash must not undo what a caller was told.
    fn set(&mut self, balance: i64) -> i64 {
        self.balance = balance;
        self.vault.balances().insert(self.owner.clone(), balance);
        balance
    }
}

impl Actor for Account {
    type Context = Context<Self>;
}

impl Lifecycle for Account {
    async fn on_activate(&mut self, _: Activation) -> Result<(), BoxError> {
        self.balance = *self.vault.balances().get(&self.owner).ok_or("there is no such account")?;
        Ok(())
    }
}

impl Handler<Deposit> for Account {
    type Result = i64;

    fn handle(&mut self, Deposit(amount): Deposit, _: &mut Context<Self>) -> i64 {
        self.set(self.balance + amount)
    }
}

impl Handler<Withdraw> for Account {
    type Result = Result<i64, Refused>;

    fn handle(&mut self, Withdraw(amount): Withdraw, _: &mut Context<Self>) -> Self::Result {
        if amount > self.balance {
            return Err(Refused::InsufficientFunds { balance: self.balance });
        }
        Ok(self.set(self.balance - amount))
    }
}

impl Handler<Balance> for Account {
    type Result = i64;

    fn handle(&mut self, _: Balance, _: &mut Context<Self>) -> i64 {
        self.balance
    }
}

#[derive(Default, VirtualActor)]
#[virtual_actor(handles(Transfer))]
struct Teller;

impl Actor for Teller {
    type Context = Context<Self>;
}

impl Handler<Transfer> for Teller {
    type Result = ResponseFuture<Result<(), Refused>>;

    fn handle(&mut self, Transfer { from, to, amount }: Transfer, _: &mut Context<Self>) -> Self::Result {
        // The calls inside share the deadline of the transfer.
        Box::pin(in_call(async move {
            from.send(Withdraw(amount)).await??;
            match to.send(Deposit(amount)).await {
                Ok(_) => Ok(()),
                Err(error) if error.is_not_started() => {
                    // The money goes back by a tell: it has no deadline, so it is not cut short by the caller's.
                    from.tell(Deposit(amount))?;
                    Err(error.into())
                }
                // Unknown: paying back could double the money. A real bank would ask again with a transfer number.
                Err(error) => Err(error.into()),
            }
        }))
    }
}

/// What a run of the bank came to.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) done: usize,
    pub(crate) insufficient: usize,
    pub(crate) paid_back: usize,
    pub(crate) unclear: usize,
    /// Accounts that were active more than once: they had been idle, and went, and came back.
    pub(crate) reactivations: usize,
    pub(crate) before: i64,
    pub(crate) after: i64,
}
