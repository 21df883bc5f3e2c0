//! A job that does nothing but bring its actor to life.

use std::any::Any;
use std::task::{Context as TaskContext, Poll};

use actix::Context;
use archipelago_protocol::call::CallError;

use super::job::{JobBody, Ran, Reply, Unsent};
use super::tally::Tallies;
use crate::arbiter::ArbiterLocal;
use crate::call::{AnswerSender, NearSender};
use crate::message::VirtualActor;
use crate::remote::{Incoming, Origin};

/// Waits until an actor is alive.
pub(super) struct Summons(pub(super) Option<AnswerSender<()>>);

impl Summons {
    fn end(&mut self, answer: Result<(), CallError>) {
        if let Some(caller) = self.0.take() {
            caller.send(answer);
        }
    }
}

impl<A: VirtualActor> JobBody<A> for Summons {
    fn run(&mut self, _: &mut A, _: &mut Context<A>, _: Option<&Tallies>) -> Ran {
        Ran::Done
    }

    fn name(&self) -> &'static str {
        "summons"
    }

    fn goes_back(&self, _: &ArbiterLocal) -> bool {
        false
    }

    fn came_by(&self, _: &Incoming, _: &ArbiterLocal) -> bool {
        false
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }

    fn unsend(&mut self, _: Origin) -> Option<Unsent> {
        None
    }
}

impl Reply for Summons {
    fn poll_reply(&mut self, _: &mut TaskContext<'_>) -> Poll<()> {
        Poll::Ready(())
    }

    fn release(&mut self, _: &ArbiterLocal) -> Option<NearSender> {
        self.end(Ok(()));
        None
    }

    fn collect(&mut self, _: &mut dyn Any) {}

    fn fail(&mut self, error: CallError, _: &ArbiterLocal) {
        self.end(Err(error));
    }

    fn is_abandoned(&self, _: &ArbiterLocal) -> bool {
        self.0.as_ref().is_some_and(AnswerSender::is_closed)
    }

    fn clear(&mut self) {
        self.0 = None;
    }
}
