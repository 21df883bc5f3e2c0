//! Accounts between which money moves: nested calls, deadlocks among them, and the outcome of every call matters.

use std::sync::Arc;
use std::time::Duration;

use archipelago::prelude::*;
use archipelago::{CallOptions, identity::ActorId};

use super::subject::key_of;
use super::truth::{Span, Truth};
use crate::common::Home;
use crate::sometimes;

/// Moves money from this account to another.
#[remote(u64)]
pub(crate) struct Transfer {
    pub(crate) ticket: u64,
    pub(crate) to: u64,
    pub(crate) amount: i64,
    /// How long the other account may take.
    pub(crate) millis: u64,
}

/// Takes the money of a transfer in.
#[remote(u64)]
pub(crate) struct Credit {
    ticket: u64,
    transfer: usize,
}

#[derive(VirtualActor)]
#[virtual_actor(handles(Transfer, Credit))]
pub(crate) struct Account {
    span: Arc<Span>,
    node: Node,
}

impl Account {
    pub(crate) fn new(truth: &Arc<Truth>, home: &Home, id: &ActorId, node: &Node) -> Self {
        Self { span: truth.activation(key_of(id.key().as_str()), home, node.id()), node: node.clone() }
    }
}

impl Actor for Account {
    type Context = Context<Self>;
}

impl Handler<Transfer> for Account {
    type Result = ResponseFuture<u64>;

    fn handle(&mut self, message: Transfer, _: &mut Context<Self>) -> ResponseFuture<u64> {
        let Transfer { ticket, to, amount, millis } = message;
        let truth = Arc::clone(self.span.truth());
        let running = truth.started(ticket, &self.span);
        let (span, node) = (Arc::clone(&self.span), self.node.clone());
        Box::pin(in_call(async move {
            let transfer = truth.bank().debit(span.at().actor.key, amount);
            let nested = truth.sending(to, None, false);
            let options = CallOptions::new().timeout(Duration::from_millis(millis));
            let credit = Credit { ticket: nested, transfer };
            let answer = node.actor::<Account>(account_key(to)).send_with(credit, options).await;
            span.goes_on();
            match &answer {
                Ok(_) => sometimes!("transfer settled"),
                Err(error) if error.is_not_started() => {
                    sometimes!("transfer refunded");
                    truth.bank().refund(transfer);
                }
                // Whether the money arrived is the other account's to know.
                Err(_) => {}
            }
            truth.answered(nested, &answer, false);
            add_one(&span);
            drop(running);
            ticket
        }))
    }
}

impl Handler<Credit> for Account {
    type Result = u64;

    fn handle(&mut self, Credit { ticket, transfer }: Credit, _: &mut Context<Self>) -> u64 {
        let truth = self.span.truth();
        let _running = truth.started(ticket, &self.span);
        truth.bank().credit(self.span.at().actor.key, transfer);
        add_one(&self.span);
        ticket
    }
}

/// Every handled message counts, as with the subjects.
fn add_one(span: &Span) {
    let key = span.at().actor.key;
    span.truth().save(key, span.truth().load(key) + 1);
}

/// The key of the account with this number.
pub(crate) fn account_key(number: u64) -> String {
    format!("a{number}")
}
