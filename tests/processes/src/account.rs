//! The actor that is hurt: what it was told is kept in the [vault](crate::vault), and what it does is in the
//! [journal](crate::journal).

use std::path::Path;

use archipelago::prelude::*;
use archipelago_protocol::identity::{ActorId, NodeId};
use serde::{Deserialize, Serialize};

use crate::journal::{Deed, Stamp, note};
use crate::vault::{Drawer, Saved, Vault};

/// Is counted, and answered with who counts.
#[remote(Visited)]
pub struct Visit;

/// Where a visit was counted, and the how-manieth it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Visited {
    /// The actor and its generation.
    pub stamp: Stamp,
    /// The node.
    pub node: NodeId,
    /// All visits so far, also to earlier activations.
    pub visits: u64,
}

/// One half of a transfer; what was posted already is not posted again.
#[remote(Stated)]
pub struct Post {
    /// Who moves the money.
    pub caller: u8,
    /// The number of the transfer, which grows.
    pub number: u64,
    /// What comes, or goes.
    pub amount: i64,
}

/// Asks for the state.
#[remote(Stated)]
pub struct State;

/// What an account holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stated {
    /// The actor and its generation.
    pub stamp: Stamp,
    /// All visits so far.
    pub visits: u64,
    /// The money.
    pub balance: i64,
}

/// Counts its visits and keeps money, for as long as its vault does.
#[derive(VirtualActor)]
#[virtual_actor(handles(Visit, Post, State), lifecycle)]
pub struct Account {
    vault: Vault,
    open: Option<Open>,
}

/// An account that is active.
struct Open {
    stamp: Stamp,
    node: NodeId,
    saved: Saved,
    drawer: Drawer,
}

impl Account {
    /// An account whose vault is in `folder`.
    pub fn kept_in(folder: &Path) -> Self {
        Self { vault: Vault::within(folder), open: None }
    }

    /// A job starts: what it changes is saved before it is answered.
    fn work(&mut self, change: impl FnOnce(&mut Saved)) -> &Open {
        let open = self.open.as_mut().expect("it was activated");
        note(Deed::Start, &open.stamp);
        change(&mut open.saved);
        open.drawer.save(&open.saved).expect("the vault can be written");
        open
    }
}

impl Actor for Account {
    type Context = Context<Self>;
}

impl Lifecycle for Account {
    async fn on_activate(&mut self, here: Activation) -> Result<(), BoxError> {
        let stamp = Stamp { actor: number(here.id())?, generation: here.generation() };
        let (saved, drawer) = self.vault.load(stamp.actor, stamp.generation)?;
        self.open = Some(Open { stamp, node: here.node_id(), saved, drawer });
        Ok(())
    }
}

impl Handler<Visit> for Account {
    type Result = actix::MessageResult<Visit>;

    fn handle(&mut self, _: Visit, _: &mut Context<Self>) -> Self::Result {
        let Open { stamp, node, saved, .. } = self.work(|saved| saved.visits += 1);
        actix::MessageResult(Visited { stamp: *stamp, node: *node, visits: saved.visits })
    }
}

impl Handler<Post> for Account {
    type Result = actix::MessageResult<Post>;

    fn handle(&mut self, Post { caller, number, amount }: Post, _: &mut Context<Self>) -> Self::Result {
        let open = self.work(|saved| {
            let last = &mut saved.posted[usize::from(caller)];
            if number > *last {
                *last = number;
                saved.balance += amount;
            }
        });
        actix::MessageResult(open.stated())
    }
}

impl Handler<State> for Account {
    type Result = actix::MessageResult<State>;

    fn handle(&mut self, _: State, _: &mut Context<Self>) -> Self::Result {
        actix::MessageResult(self.work(|_| {}).stated())
    }
}

impl Open {
    fn stated(&self) -> Stated {
        Stated { stamp: self.stamp, visits: self.saved.visits, balance: self.saved.balance }
    }
}

fn number(id: &ActorId) -> Result<u64, BoxError> {
    Ok(id.key().as_str().parse()?)
}
