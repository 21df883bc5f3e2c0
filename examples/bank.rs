//! A bank: accounts are virtual actors, tellers move money between them, and the sum of all balances never changes.
#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "it prints, and sleeps between two days")]

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use archipelago::prelude::*;
use futures_util::future::join_all;
use serde::{Deserialize, Serialize};

/// Books an amount, negative to withdraw, and answers with the new balance.
#[remote(Result<i64, Refused>)]
struct Book(i64);

#[remote(Result<(), Refused>)]
struct Transfer {
    from: ActorRef<Account>,
    to: ActorRef<Account>,
    amount: i64,
}

/// Why money did not move. A part of the reply, so it travels like any other message.
#[derive(Debug, Serialize, Deserialize, thiserror::Error)]
enum Refused {
    #[error("the account holds only {balance}")]
    InsufficientFunds { balance: i64 },
    #[error(transparent)]
    Call(#[from] CallError),
}

/// Stands for a database: what is to outlive an activation is kept here.
type Vault = Arc<Mutex<BTreeMap<String, i64>>>;

#[derive(VirtualActor)]
#[virtual_actor(handles(Book), lifecycle)]
struct Account {
    owner: String,
    balance: i64,
    vault: Vault,
}

impl Actor for Account {
    type Context = Context<Self>;
}

impl Lifecycle for Account {
    async fn on_activate(&mut self, _: Activation) -> Result<(), BoxError> {
        let vault = self.vault.lock().expect("nobody panics with the lock");
        self.balance = *vault.get(&self.owner).ok_or("there is no such account")?;
        Ok(())
    }
}

impl Handler<Book> for Account {
    type Result = Result<i64, Refused>;

    fn handle(&mut self, Book(amount): Book, _: &mut Context<Self>) -> Self::Result {
        if self.balance + amount < 0 {
            return Err(Refused::InsufficientFunds { balance: self.balance });
        }
        self.balance += amount;
        // Written before the answer leaves: no crash can undo what a caller was told.
        self.vault.lock().expect("nobody panics with the lock").insert(self.owner.clone(), self.balance);
        Ok(self.balance)
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
        Box::pin(in_call(async move {
            from.send(Book(-amount)).await??;
            let Err(error) = to.send(Book(amount)).await else { return Ok(()) };
            // Only if the deposit certainly never ran may the money go back. A tell has no deadline to miss.
            if error.is_not_started() {
                from.tell(Book(amount))?;
            }
            Err(error.into())
        }))
    }
}

/// What became of the transfers, and the sum of all balances before and after.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) done: usize,
    pub(crate) insufficient: usize,
    pub(crate) failed: usize,
    pub(crate) activations: usize,
    pub(crate) before: i64,
    pub(crate) after: i64,
}

pub(crate) async fn run() -> Result<Report, archipelago::Error> {
    let vault: Vault = Arc::new(Mutex::new((0..ACCOUNTS).map(|n| (format!("a{n}"), 100)).collect()));
    let mut report = Report { before: 100 * ACCOUNTS, ..Report::default() };
    let activations = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&activations);
    let node = Node::builder()
        .set("actors.kinds.Account.idle_after", "20ms")
        .actor_with(move |id, _| {
            counter.fetch_add(1, Ordering::Relaxed);
            Account { owner: id.key().to_string(), balance: 0, vault: Arc::clone(&vault) }
        })
        .actor::<Teller>()
        .start()
        .await?;
    let account = |n: i64| node.actor::<Account>(format!("a{n}"));
    for day in 0..DAYS {
        let transfers = (0..500).map(|n| {
            // Account number ACCOUNTS does not exist: what was withdrawn for it must come back.
            let (from, to) = (account(n * 7 % ACCOUNTS), account((n * 5 + day) % (ACCOUNTS + 1)));
            node.actor::<Teller>(format!("t{}", n % 8)).send(Transfer { from, to, amount: n * 13 % 90 })
        });
        for transfer in join_all(transfers).await {
            match transfer? {
                Ok(()) => report.done += 1,
                Err(Refused::InsufficientFunds { .. }) => report.insufficient += 1,
                Err(Refused::Call(_)) => report.failed += 1,
            }
        }
        // Long enough for every account to be deactivated; the next day brings them back.
        actix::clock::sleep(Duration::from_millis(200)).await;
    }
    for n in 0..ACCOUNTS {
        report.after += account(n).send(Book(0)).await?.unwrap_or_default();
    }
    node.stop().await?;
    report.activations = activations.load(Ordering::Relaxed);
    Ok(report)
}

#[actix::main]
async fn main() -> Result<ExitCode, archipelago::Error> {
    let report = run().await?;
    println!("{report:#?}");
    if report.before != report.after {
        println!("money was lost or made");
        return Ok(ExitCode::FAILURE);
    }
    println!("the sum of all balances is still {}", report.after);
    Ok(ExitCode::SUCCESS)
}

const ACCOUNTS: i64 = 20;
const DAYS: i64 = 4;
