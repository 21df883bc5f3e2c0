//! What the workloads share: the book of messages and activations, clients, the hands on the world, and the end of a run.
//!
//! A workload has a truth of its own, a [`Ground`], with the facts that only it knows; everything that holds for any message
//! and any activation is checked by its [`Ledger`].

mod client;
mod hand;
mod ledger;
mod lives;
mod outcome;
mod pending;
mod settle;
mod span;

pub(crate) use client::{Client, Desk, send_rounds};
pub(crate) use hand::{Hand, StoreTrouble, switched_on};
pub(crate) use ledger::{ActorNumber, Ground, Ledger, Letter, Reported};
pub(crate) use lives::TTL;
pub use outcome::Outcome;
pub(crate) use outcome::{Shared, known, run_judged};
pub(crate) use pending::{Ended, Pending, allowance, check_end};
pub(crate) use settle::{is_quiet, reach, stop_all};
pub(crate) use span::{Home, Place, Running, Span};
