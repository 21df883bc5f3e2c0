//! The tables of range-partitioned kinds, pushed by the leader to the other nodes and to light clients.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use archipelago::identity::{Kind, NodeAddress, NodeId};
use archipelago::prelude::*;
use archipelago_protocol::contract::{Epoch, RoutingTableError, TableVersion};
use archipelago_protocol::identity::PartitionName;
use archipelago_protocol::ranges::{KnownTable, OwnerStatus, RangeTable, RouteOwner, TableNews, TableSource};
use archipelago_protocol::time::Millis;
use archipelago_runtime::NodeSettings;
use archipelago_sim::{Simulation, World};
use async_trait::async_trait;
use futures_util::{FutureExt, StreamExt, stream};
use tokio::sync::watch;

/// What the store would tell, and how many watch it.
struct Told {
    newest: watch::Sender<Option<KnownTable>>,
    watches: AtomicUsize,
}

impl Told {
    fn new() -> Arc<Self> {
        Arc::new(Self { newest: watch::channel(None).0, watches: AtomicUsize::new(0) })
    }

    fn save(&self, version: u64) {
        self.newest.send_replace(Some(table(version)));
    }

    fn watches(&self) -> usize {
        self.watches.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl TableSource for Told {
    async fn watch_tables(&self, _: &Kind) -> Result<TableNews, RoutingTableError> {
        self.watches.fetch_add(1, Ordering::SeqCst);
        let newest = self.newest.subscribe();
        Ok(Box::pin(stream::unfold((newest, TableVersion(0)), |(mut newest, told)| async move {
            let is_newer =
                |known: &Option<KnownTable>| known.as_ref().is_some_and(|known| known.version > told);
            let known = newest.wait_for(is_newer).await.ok()?.clone()?;
            let version = known.version;
            Some((Ok(known), (newest, version)))
        })))
    }
}

fn table(version: u64) -> KnownTable {
    let address = NodeAddress::new("node-0", 7_000).expect("a plain address");
    let owner = RouteOwner { node: NodeId::new(version), address, status: OwnerStatus::Up };
    let table = RangeTable::whole(PartitionName::new("all").expect("a plain name"), owner);
    KnownTable { version: TableVersion(version), epoch: Epoch(1), table }
}

fn address(index: usize) -> NodeAddress {
    NodeAddress::new(&format!("node-{index}"), 7_000).expect("a plain address")
}

fn settings(index: usize) -> NodeSettings {
    let mut settings = NodeSettings::default();
    settings.data_arbiters = Some(1);
    settings.session_ttl = Millis(3_000);
    settings.remote.bind = address(index);
    settings
}

/// Three members that could all watch the store, and a client that knows the last two.
fn world(told: &Arc<Told>) -> Simulation {
    let mut simulation = Simulation::new(5).with_network().without_observer();
    for index in 0..3 {
        let told = Arc::clone(told);
        simulation = simulation.node(move |builder| {
            builder.settings(settings(index)).tables(Arc::clone(&told) as Arc<dyn TableSource>)
        });
    }
    simulation.node(|builder| builder.settings(settings(3)).client([address(1), address(2)]))
}

fn kind() -> Kind {
    Kind::new("Ledger").expect("a plain name")
}

async fn listen(world: &World, index: usize) -> TableNews {
    let node: Node = world.node(index).expect("the node is up");
    node.pushed_tables().watch_tables(&kind()).await.expect("a watch begins")
}

/// The versions that a listener has been told since the last look.
fn heard(news: &mut TableNews) -> Vec<u64> {
    let mut versions = Vec::new();
    while let Some(Some(known)) = news.next().now_or_never() {
        versions.push(known.expect("a table").version.0);
    }
    versions
}

async fn settle(world: &World) {
    world.advance(Duration::from_secs(8)).await;
}

/// Listens until the world has stood still for a while.
async fn hear(world: &World, news: &mut [TableNews]) -> Vec<Vec<u64>> {
    let mut all = vec![Vec::new(); news.len()];
    for _ in 0..160 {
        for (versions, news) in all.iter_mut().zip(&mut *news) {
            versions.extend(heard(news));
        }
        world.advance(Duration::from_millis(50)).await;
    }
    all
}

/// Proves: R332, R333, R334, R501, C38
#[test]
fn one_watch_of_the_store_serves_every_node_and_every_client() {
    let told = Told::new();
    world(&told).run(async |world| {
        settle(&world).await;
        let mut news = Vec::new();
        for index in [0, 1, 2, 3, 3, 3] {
            news.push(listen(&world, index).await);
        }
        assert_eq!(hear(&world, &mut news).await, vec![Vec::<u64>::new(); 6], "there is no table yet");
        told.save(4);
        assert_eq!(hear(&world, &mut news).await, vec![vec![4]; 6]);
        told.save(5);
        let mut late = vec![listen(&world, 3).await];
        assert_eq!(hear(&world, &mut late).await, [[5]], "who comes late is told what stands there first");
        told.save(6);
        let all = hear(&world, &mut news).await;
        assert!(all.iter().all(|versions| *versions == [5, 6] || *versions == [6]), "{all:?}");
        assert_eq!(told.watches(), 1, "only the leader watches, and once");
    });
}

#[test]
fn a_listener_that_is_slow_is_told_only_the_newest() {
    let told = Told::new();
    world(&told).run(async |world| {
        settle(&world).await;
        let mut news = vec![listen(&world, 3).await];
        told.save(1);
        assert_eq!(hear(&world, &mut news).await, [[1]]);
        for version in 2..=50 {
            told.save(version);
            world.advance(Duration::from_millis(20)).await;
        }
        let [versions] = &hear(&world, &mut news).await[..] else { panic!("one listener") };
        assert_eq!(versions.last(), Some(&50));
        assert!(versions.len() <= 2, "nothing is kept for it: {versions:?}");
    });
}

#[test]
fn listeners_follow_the_leader_when_it_dies() {
    let told = Told::new();
    world(&told).run(async |world| {
        settle(&world).await;
        let leader = world.node(0).expect("the node is up").leader().expect("somebody leads");
        let index = (0..3).find(|index| world.node(*index).expect("up").id() == leader).expect("a member");
        let others: Vec<usize> = (0..4).filter(|other| *other != index).collect();
        let mut news = Vec::new();
        for other in &others {
            news.push(listen(&world, *other).await);
        }
        told.save(1);
        assert_eq!(hear(&world, &mut news).await, vec![vec![1]; 3]);
        world.crash(index).await;
        told.save(2);
        for _ in 0..3 {
            settle(&world).await;
        }
        let mut all = hear(&world, &mut news).await;
        for (versions, more) in all.iter_mut().zip(hear(&world, &mut news).await) {
            versions.extend(more);
        }
        assert_eq!(all, vec![vec![2]; 3]);
        assert_eq!(told.watches(), 2, "one by each leader");
    });
}
