//! The actor that the host serves.

use std::time::Duration;

use actix::ResponseFuture;
use archipelago::prelude::*;

/// Comes back as it is.
#[remote(Vec<u8>)]
pub struct Echo(pub Vec<u8>);

/// Is written down; the reply is how many have been.
#[remote(u64)]
pub struct Note(pub u64);

/// Is written down like a note, and is as large as its padding.
#[remote(u64)]
pub struct LongNote(pub u64, pub Vec<u8>);

/// What has been written down, in order.
#[remote(Vec<u64>)]
pub struct Notes;

/// How often the process of the actor has asked for memory.
#[remote(u64)]
pub struct Allocated;

/// Takes its time.
#[remote(u64)]
pub struct Sleep(pub u64);

/// May not leave its node.
#[remote(u64, local_only)]
pub struct Secret;

/// How many milliseconds the call may still take, as its handler sees it.
#[remote(u64)]
pub struct Left;

/// Is passed on to whoever is named in it.
#[remote(u64)]
pub struct Forward {
    /// Whom to send the note to.
    pub to: MessageRef<Note>,
    /// The note.
    pub note: u64,
}

/// Goes to the mirror with this key and comes back to the scribe with the same key.
#[remote(Result<u64, CallError>)]
pub struct Ping(pub String);

/// Answers what it is asked, and remembers what it is told.
#[derive(Default, VirtualActor)]
#[virtual_actor(handles(Echo, Note, LongNote, Notes, Allocated, Sleep, Secret, Left, Ping))]
pub struct Scribe {
    notes: Vec<u64>,
    node: Option<Node>,
}

impl Scribe {
    /// A scribe that knows its node.
    pub fn on(node: &Node) -> Self {
        Self { notes: Vec::new(), node: Some(node.clone()) }
    }
}

impl Actor for Scribe {
    type Context = Context<Self>;
}

impl Handler<Echo> for Scribe {
    type Result = Vec<u8>;
    fn handle(&mut self, Echo(bytes): Echo, _: &mut Context<Self>) -> Vec<u8> {
        bytes
    }
}

impl Handler<Note> for Scribe {
    type Result = u64;
    fn handle(&mut self, Note(note): Note, _: &mut Context<Self>) -> u64 {
        self.notes.push(note);
        self.notes.len() as u64
    }
}

impl Handler<LongNote> for Scribe {
    type Result = u64;
    fn handle(&mut self, LongNote(note, _): LongNote, _: &mut Context<Self>) -> u64 {
        self.notes.push(note);
        self.notes.len() as u64
    }
}

impl Handler<Notes> for Scribe {
    type Result = Vec<u64>;
    fn handle(&mut self, _: Notes, _: &mut Context<Self>) -> Vec<u64> {
        self.notes.clone()
    }
}

impl Handler<Allocated> for Scribe {
    type Result = u64;
    fn handle(&mut self, _: Allocated, _: &mut Context<Self>) -> u64 {
        crate::allocations::allocated()
    }
}

impl Handler<Sleep> for Scribe {
    type Result = ResponseFuture<u64>;
    fn handle(&mut self, Sleep(millis): Sleep, _: &mut Context<Self>) -> Self::Result {
        Box::pin(async move {
            actix::clock::sleep(Duration::from_millis(millis)).await;
            millis
        })
    }
}

impl Handler<Secret> for Scribe {
    type Result = u64;
    fn handle(&mut self, _: Secret, _: &mut Context<Self>) -> u64 {
        7
    }
}

impl Handler<Left> for Scribe {
    type Result = u64;
    fn handle(&mut self, _: Left, _: &mut Context<Self>) -> u64 {
        archipelago::remaining().map_or(0, |left| u64::try_from(left.as_millis()).unwrap_or(u64::MAX))
    }
}

impl Handler<Ping> for Scribe {
    type Result = ResponseFuture<Result<u64, CallError>>;
    fn handle(&mut self, Ping(key): Ping, _: &mut Context<Self>) -> Self::Result {
        let Some(node) = &self.node else { return Box::pin(async { Ok(0) }) };
        let there = node.actor::<Mirror>(&key).send(Ping(key));
        Box::pin(async move { there.await? })
    }
}

/// An actor of another kind, which lives on another node.
#[derive(VirtualActor)]
#[virtual_actor(handles(Forward, Ping))]
pub struct Mirror {
    node: Node,
}

impl Mirror {
    /// A mirror on `node`.
    pub fn new(node: &Node) -> Self {
        Self { node: node.clone() }
    }
}

impl Actor for Mirror {
    type Context = Context<Self>;
}

impl Handler<Forward> for Mirror {
    type Result = ResponseFuture<u64>;
    fn handle(&mut self, Forward { to, note }: Forward, _: &mut Context<Self>) -> Self::Result {
        let sent = to.send(Note(note));
        Box::pin(async move { sent.await.unwrap_or(0) })
    }
}

impl Handler<Ping> for Mirror {
    type Result = ResponseFuture<Result<u64, CallError>>;
    fn handle(&mut self, Ping(key): Ping, _: &mut Context<Self>) -> Self::Result {
        let back = self.node.actor::<Scribe>(&key).send(Ping(key));
        Box::pin(async move { back.await? })
    }
}
