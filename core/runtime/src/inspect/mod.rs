//! What a node shows of itself to whoever operates it: snapshots that cost little and are bounded.
//!
//! What lives on an arbiter is looked at there, in a turn of its own; nobody waits for one whose actor blocks it. So a look never
//! holds work up for longer than it takes to copy one page, and a page says what it does not know.

mod actors;
mod cursor;
mod kinds;
mod lanes;
mod letters;
mod members;
mod messages;
mod owners;
mod session;

pub use actors::{ActorPage, ActorQuery, ActorView, NoSuchPlace, Whereabouts};
pub(crate) use actors::{Listed, Wanted};
pub use cursor::{ActorCursor, BadCursor};
pub use kinds::KindView;
pub(crate) use lanes::LookAtLanes;
pub use lanes::{LaneView, PeerView};
pub use letters::KeptLetter;
pub(crate) use letters::Letters;
pub use members::Suspicion;
pub use messages::{MESSAGE_BOUNDS, MessageView};
pub use owners::{MoveView, OwnerView};
pub use session::{SessionStanding, SessionView};

use std::rc::Rc;
use std::sync::Arc;

use archipelago_protocol::time::Millis;
use futures_util::future::join_all;
use tokio::sync::oneshot;

use crate::arbiter::ArbiterLocal;
use crate::env::within;
use crate::node::{Node, NodeShared};

/// What the arbiters of a node have answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gathered<T> {
    /// What they have shown.
    pub items: Vec<T>,
    /// Those that did not answer in time: an actor keeps them from their work, or they have ended.
    pub silent: Vec<String>,
}

impl Node {
    /// The clock that the node runs by: milliseconds that count while the machine sleeps. For lengths of time only.
    pub fn clock(&self) -> Millis {
        self.shared().env().now()
    }
}

/// Looks at one arbiter, in its turn; nothing if it does not answer in time.
async fn look_at<T: Send + 'static>(
    node: &Arc<NodeShared>,
    index: u16,
    look: impl FnOnce(&Rc<ArbiterLocal>) -> T + Send + 'static,
) -> Option<T> {
    let (answer, answered) = oneshot::channel();
    let asked = node.enter_work(index, move |local| {
        if !local.is_closed() {
            // Whoever asked may have given up.
            let _ = answer.send(look(local));
        }
    });
    asked.ok()?;
    within(node.env(), PATIENCE, answered).await?.ok()
}

/// Looks at all data arbiters at the same time.
async fn look_at_all<T: Send + 'static>(
    node: &Arc<NodeShared>,
    look: impl Fn(&Rc<ArbiterLocal>) -> Vec<T> + Clone + Send + 'static,
) -> Gathered<T> {
    let all = node.data_arbiters().map(|index| look_at(node, index, look.clone()));
    let mut gathered = Gathered { items: Vec::new(), silent: Vec::new() };
    for (index, items) in join_all(all).await.into_iter().enumerate() {
        match items {
            Some(items) => gathered.items.extend(items),
            None => gathered.silent.push(format!("data-{index}")),
        }
    }
    gathered
}

/// How long an arbiter has to answer.
const PATIENCE: Millis = Millis(1_000);
