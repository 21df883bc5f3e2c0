//! Pages that are divided by ranges of keys and write down what reaches them, and what must be true of all that was written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use archipelago::identity::{ActorId, ActorKey};
use archipelago::prelude::*;
use archipelago::{KnownTable, Sharding};
use archipelago_protocol::time::Millis;
use archipelago_runtime::env::from_outside;
use archipelago_runtime::{NodeBuilder, NodeSettings};
use archipelago_sim::{Simulation, World};

/// Writes a number down, for a life of a node; answers with the node that did.
#[remote(u64)]
pub(super) struct Put {
    pub(super) from: u64,
    pub(super) number: u32,
}

/// What a page has written, in the order in which it was written anywhere.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) activation: u64,
    pub(super) from: u64,
    pub(super) number: u32,
}

/// What all pages have written, by key.
pub(super) type Book = Arc<Mutex<BTreeMap<String, Vec<Line>>>>;

#[derive(VirtualActor)]
#[virtual_actor(handles(Put))]
pub(super) struct Page {
    key: String,
    node: u64,
    activation: u64,
    book: Book,
}

impl Actor for Page {
    type Context = Context<Self>;
}

impl Handler<Put> for Page {
    type Result = u64;

    fn handle(&mut self, Put { from, number }: Put, _: &mut Context<Self>) -> u64 {
        let line = Line { activation: self.activation, from, number };
        self.book.lock().unwrap().entry(self.key.clone()).or_default().push(line);
        self.node
    }
}

pub(super) fn key(text: &str) -> ActorKey {
    ActorKey::new(text).expect("a plain key")
}

pub(super) fn settings() -> NodeSettings {
    let mut settings = NodeSettings::default();
    settings.data_arbiters = Some(2);
    settings.session_ttl = Millis(3_000);
    settings.idle_after = Millis(2_000);
    settings
}

/// Has a node host pages, divided at these keys at first.
pub(super) fn pages(
    cuts: &'static [&'static str],
    book: &Book,
) -> impl Fn(NodeBuilder) -> NodeBuilder + Clone + 'static {
    let (book, made) = (Arc::clone(book), Arc::new(Mutex::new(0)));
    move |node| {
        let (book, made) = (Arc::clone(&book), Arc::clone(&made));
        let page = move |id: &ActorId, node: &Node| {
            let mut activation = made.lock().unwrap();
            *activation += 1;
            let (key, book) = (id.key().as_str().to_owned(), Arc::clone(&book));
            Page { key, node: node.id().as_u64(), activation: *activation, book }
        };
        node.shard(Sharding::new(page).ranges(cuts.iter().map(|cut| key(cut))))
    }
}

/// Three nodes that host pages.
pub(super) fn three(seed: u64, cuts: &'static [&'static str], book: &Book) -> Simulation {
    Simulation::new(seed).nodes(3, &settings(), pages(cuts, book))
}

pub(super) fn node(world: &World, index: usize) -> Node {
    world.node(index).expect("the node is up")
}

pub(super) async fn put(world: &World, index: usize, key: &str, number: u32) -> Result<u64, CallError> {
    let node = node(world, index);
    let (page, from) = (node.actor::<Page>(key), node.id().as_u64());
    let options = CallOptions::new().timeout(Duration::from_secs(8));
    from_outside(|| page.send_with(Put { from, number }, options)).await
}

pub(super) async fn met(world: &World) {
    world.advance(Duration::from_secs(12)).await;
}

pub(super) fn table(world: &World, index: usize) -> Arc<KnownTable> {
    node(world, index).ranges("Page").expect("a table is known")
}

/// Which nodes should own ranges.
pub(super) fn owners(world: &World, index: usize) -> BTreeSet<u64> {
    table(world, index).table.entries().iter().map(|entry| entry.owner.node.as_u64()).collect()
}

/// Once an activation of a key has written, none before it writes again: no two were ever active at once.
pub(super) fn one_at_a_time(book: &Book) {
    for (key, lines) in book.lock().unwrap().iter() {
        let mut order: Vec<u64> = lines.iter().map(|line| line.activation).collect();
        order.dedup();
        let distinct: BTreeSet<u64> = order.iter().copied().collect();
        assert_eq!(order.len(), distinct.len(), "{key} was active twice at once: {order:?}");
    }
}

/// What each sender has sent to each key was written in the order in which it was sent.
pub(super) fn in_order(book: &Book) {
    for (key, lines) in book.lock().unwrap().iter() {
        let senders: BTreeSet<u64> = lines.iter().map(|line| line.from).collect();
        for from in senders {
            let numbers: Vec<u32> =
                lines.iter().filter(|line| line.from == from).map(|line| line.number).collect();
            assert!(numbers.is_sorted(), "{key} from {from}: {numbers:?}");
        }
    }
}

pub(super) const KEYS: [&str; 8] = ["a", "c", "f", "k", "p", "s", "w", "z"];
