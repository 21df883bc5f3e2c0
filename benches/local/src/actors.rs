//! The same actor twice: plain actix, and virtual.

use std::sync::atomic::{AtomicU64, Ordering};

use archipelago::prelude::*;

/// Adds and answers with the sum.
#[remote(u64)]
pub(crate) struct Add(pub(crate) u64);

/// Adds and answers nothing.
#[remote]
pub(crate) struct Note(pub(crate) u64);

/// A counter, used as a plain actor and as a virtual one.
#[derive(Default, VirtualActor)]
#[virtual_actor(handles(Add, Note))]
pub(crate) struct Counter {
    sum: u64,
}

impl Actor for Counter {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        // As roomy as the inbox, so that no contestant waits for room.
        ctx.set_mailbox_capacity(1024);
    }
}

impl Handler<Add> for Counter {
    type Result = u64;

    fn handle(&mut self, add: Add, _: &mut Context<Self>) -> u64 {
        self.sum += add.0;
        self.sum
    }
}

impl Handler<Note> for Counter {
    type Result = ();

    fn handle(&mut self, note: Note, _: &mut Context<Self>) {
        self.sum += note.0;
    }
}

/// Does nothing: one of a million.
#[derive(Default, VirtualActor)]
#[virtual_actor(handles(Note))]
pub(crate) struct Idler {
    noted: u64,
}

impl Idler {
    /// How many have gone since the process began.
    pub(crate) fn gone() -> u64 {
        GONE.load(Ordering::Relaxed)
    }
}

impl Drop for Idler {
    fn drop(&mut self) {
        GONE.fetch_add(1, Ordering::Relaxed);
    }
}

static GONE: AtomicU64 = AtomicU64::new(0);

impl Actor for Idler {
    type Context = Context<Self>;
}

impl Handler<Note> for Idler {
    type Result = ();

    fn handle(&mut self, note: Note, _: &mut Context<Self>) {
        self.noted += note.0;
    }
}
