//! Named actors: plain actix actors that are registered under a path.

use std::time::Duration;

use actix::ResponseFuture;
use archipelago::prelude::*;

use crate::actors::{Echo, Left, LongNote, Note, Notes, Secret, Sleep};

/// The note is sent on to whoever is named in it; the reply is what that one answers.
#[remote(Result<u64, CallError>)]
pub struct PassOn {
    /// Whom to send the note to.
    pub to: NamedRef<Desk>,
    /// The note.
    pub note: u64,
}

/// Goes from a virtual actor to a desk and back to the same virtual actor.
#[remote(Result<u64, CallError>)]
pub struct Circle(pub ActorRef<Circler>);

/// Keeps a desk busy: its thread sleeps.
#[remote]
pub struct Block(pub u64);

/// Makes a desk panic.
#[remote]
pub struct Panic;

/// Takes its messages as the plain actor it is.
#[derive(Default, NamedActor)]
#[named_actor(handles(Echo, Note, LongNote, Notes, Sleep, Secret, Left, PassOn, Circle, Block, Panic))]
pub struct Desk {
    notes: Vec<u64>,
}

impl Actor for Desk {
    type Context = Context<Self>;
}

impl Handler<Echo> for Desk {
    type Result = Vec<u8>;
    fn handle(&mut self, Echo(bytes): Echo, _: &mut Context<Self>) -> Vec<u8> {
        bytes
    }
}

impl Handler<Note> for Desk {
    type Result = u64;
    fn handle(&mut self, Note(note): Note, _: &mut Context<Self>) -> u64 {
        self.notes.push(note);
        self.notes.len() as u64
    }
}

impl Handler<LongNote> for Desk {
    type Result = u64;
    fn handle(&mut self, LongNote(note, _): LongNote, _: &mut Context<Self>) -> u64 {
        self.notes.push(note);
        self.notes.len() as u64
    }
}

impl Handler<Notes> for Desk {
    type Result = Vec<u64>;
    fn handle(&mut self, _: Notes, _: &mut Context<Self>) -> Vec<u64> {
        self.notes.clone()
    }
}

impl Handler<Sleep> for Desk {
    type Result = ResponseFuture<u64>;
    fn handle(&mut self, Sleep(millis): Sleep, _: &mut Context<Self>) -> Self::Result {
        Box::pin(async move {
            actix::clock::sleep(Duration::from_millis(millis)).await;
            millis
        })
    }
}

impl Handler<Secret> for Desk {
    type Result = u64;
    fn handle(&mut self, _: Secret, _: &mut Context<Self>) -> u64 {
        7
    }
}

impl Handler<Left> for Desk {
    type Result = u64;
    fn handle(&mut self, _: Left, _: &mut Context<Self>) -> u64 {
        archipelago::remaining().map_or(0, |left| u64::try_from(left.as_millis()).unwrap_or(u64::MAX))
    }
}

impl Handler<PassOn> for Desk {
    type Result = ResponseFuture<Result<u64, CallError>>;
    fn handle(&mut self, PassOn { to, note }: PassOn, _: &mut Context<Self>) -> Self::Result {
        Box::pin(to.send(Note(note)))
    }
}

impl Handler<Circle> for Desk {
    type Result = ResponseFuture<Result<u64, CallError>>;
    fn handle(&mut self, Circle(back): Circle, _: &mut Context<Self>) -> Self::Result {
        Box::pin(back.send(Note(1)))
    }
}

impl Handler<Block> for Desk {
    type Result = ();
    fn handle(&mut self, Block(millis): Block, _: &mut Context<Self>) {
        std::thread::sleep(Duration::from_millis(millis));
    }
}

impl Handler<Panic> for Desk {
    type Result = ();
    fn handle(&mut self, _: Panic, _: &mut Context<Self>) {
        panic!("as it was told");
    }
}

/// Asks a desk that asks it back.
#[remote(Result<u64, CallError>)]
pub struct GoRound {
    /// The desk.
    pub by: NamedRef<Desk>,
    /// Itself.
    pub me: ActorRef<Circler>,
}

/// A virtual actor that calls named ones.
#[derive(Default, VirtualActor)]
#[virtual_actor(handles(GoRound, Note))]
pub struct Circler;

impl Actor for Circler {
    type Context = Context<Self>;
}

impl Handler<GoRound> for Circler {
    type Result = ResponseFuture<Result<u64, CallError>>;
    fn handle(&mut self, GoRound { by, me }: GoRound, _: &mut Context<Self>) -> Self::Result {
        let round = by.send(Circle(me));
        Box::pin(async move { round.await? })
    }
}

impl Handler<Note> for Circler {
    type Result = u64;
    fn handle(&mut self, Note(note): Note, _: &mut Context<Self>) -> u64 {
        note
    }
}

/// An actor on threads of its own, which could not be virtual.
#[derive(NamedActor)]
#[named_actor(handles(Echo))]
pub struct Clerk;

impl Actor for Clerk {
    type Context = SyncContext<Self>;
}

impl Handler<Echo> for Clerk {
    type Result = Vec<u8>;
    fn handle(&mut self, Echo(mut bytes): Echo, _: &mut SyncContext<Self>) -> Vec<u8> {
        bytes.reverse();
        bytes
    }
}
