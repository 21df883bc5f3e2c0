//! Which messages a node is busy with, and which take long.

use std::time::Duration;

use archipelago_protocol::time::Millis;

use super::{Gathered, look_at_all};
use crate::catalog::{Tallied, Times};
use crate::node::Node;

/// What a node has counted of one message of a kind since its present life began.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MessageView {
    /// The kind whose actors handled it.
    pub kind: String,
    /// The message.
    pub message: &'static str,
    /// How many were started: each is counted.
    pub started: u64,
    /// How many of those that have ended were measured: about one in 64.
    pub sampled: u64,
    /// How long these took on average, from the start of the handler to the reply; zero if there is none.
    pub mean: Duration,
    /// How long the slowest of them took.
    pub slowest: Duration,
    /// How many of them took up to each of [`MESSAGE_BOUNDS`] and longer than the one before; at last how many took longer than
    /// all.
    pub buckets: Vec<u64>,
}

impl Node {
    /// What was counted of every message that the kinds of this node list, in that order. Of arbiters that are silent nothing is
    /// counted.
    pub async fn messages(&self) -> Gathered<MessageView> {
        let node = self.shared();
        let counted = look_at_all(node, |local| {
            local.all_kinds().map(|kind| kind.tallies().all().collect::<Vec<_>>()).collect()
        });
        let Gathered { items, silent } = counted.await;
        let kinds = node.kinds();
        let mut of_kinds: Vec<Vec<Tallied>> = vec![Vec::new(); kinds.len()];
        // Each arbiter has shown all kinds in their order.
        for (index, tallied) in items.into_iter().enumerate() {
            if let Some(of_kind) = of_kinds.get_mut(index % kinds.len().max(1)) {
                add(of_kind, tallied);
            }
        }
        let named = kinds.iter().zip(of_kinds);
        let views = named
            .flat_map(|(kind, of_kind)| of_kind.into_iter().map(|tallied| view_of(kind.name(), tallied)));
        Gathered { items: views.collect(), silent }
    }

    /// How long the node has been in its present life: since it started, or rejoined.
    pub fn uptime(&self) -> Millis {
        let node = self.shared();
        node.env().now().since(node.born())
    }
}

fn add(of_kind: &mut Vec<Tallied>, more: Vec<Tallied>) {
    if of_kind.is_empty() {
        *of_kind = more;
        return;
    }
    for (own, more) in of_kind.iter_mut().zip(more) {
        own.started += more.started;
        own.times.merge(&more.times);
    }
}

fn view_of(kind: &str, Tallied { message, started, times }: Tallied) -> MessageView {
    let mean = times.mean();
    let Times { sampled, slowest, buckets, .. } = times;
    MessageView { kind: kind.to_owned(), message, started, sampled, mean, slowest, buckets: buckets.to_vec() }
}

/// The bounds of the lengths of time that [`MessageView::buckets`] counts, ascending.
pub const MESSAGE_BOUNDS: [Duration; 16] = [
    Duration::from_micros(1),
    Duration::from_micros(3),
    Duration::from_micros(10),
    Duration::from_micros(30),
    Duration::from_micros(100),
    Duration::from_micros(300),
    Duration::from_millis(1),
    Duration::from_millis(3),
    Duration::from_millis(10),
    Duration::from_millis(30),
    Duration::from_millis(100),
    Duration::from_millis(300),
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(10),
    Duration::from_secs(30),
];
