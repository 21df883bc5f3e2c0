//! The rules of [`Homes`], each as a function that panics when it is broken.

use std::sync::Arc;

use archipelago_directory::{Read, Store, StoreHomes, home_id};
use archipelago_protocol::contract::{DirectoryError, HomeStamp, Homes, SettledHome};
use archipelago_protocol::datacenter::DataCenterId;
use archipelago_protocol::identity::ActorId;
use futures_util::FutureExt;
use futures_util::future::join_all;

/// Homes without a record, and the store underneath.
#[derive(Clone)]
pub struct HomesFixture {
    /// The homes under test.
    pub homes: Arc<dyn Homes>,
    /// The store underneath.
    pub store: Arc<dyn Store>,
}

impl HomesFixture {
    /// The homes above `store`.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { homes: Arc::new(StoreHomes::new(Arc::clone(&store))), store }
    }

    async fn home(&self, actor: &str) -> Option<DataCenterId> {
        self.homes.home_of(&id(actor)).await.expect("reads")
    }

    async fn settle(&self, actor: &str, home: &str) -> DataCenterId {
        self.try_settle(actor, home).await.expect("settles").home
    }

    /// Settles a home that has none.
    async fn make(&self, actor: &str, home: &str) -> HomeStamp {
        self.try_settle(actor, home).await.expect("settles").made.expect("it had none")
    }

    async fn try_settle(&self, actor: &str, home: &str) -> Result<SettledHome, DirectoryError> {
        self.homes.settle_home(&id(actor), &dc(home)).await
    }

    async fn forget(&self, actor: &str, made: HomeStamp) -> bool {
        self.homes.forget_home(&id(actor), made).await.expect("forgets")
    }
}

/// An actor that nobody placed has no home, and nothing is forgotten of it.
pub async fn no_record_is_none(f: HomesFixture) {
    assert_eq!(f.home(ALICE).await, None);
    assert!(!f.forget(ALICE, HomeStamp(1)).await);
}

/// The first to settle wins, and is told so again; everybody else is told who won.
pub async fn home_is_settled_once(f: HomesFixture) {
    assert_eq!(f.settle(ALICE, "north").await, dc("north"));
    assert_eq!(f.settle(ALICE, "south").await, dc("north"));
    assert_eq!(f.settle(ALICE, "north").await, dc("north"));
    assert_eq!(f.home(ALICE).await, Some(dc("north")));
}

/// Of several that settle at the same time one wins, and all are told the same.
pub async fn settling_has_one_winner(f: HomesFixture) {
    for round in 0..8 {
        let actor = format!("bank::Account/{round}");
        let names = ["north", "south", "east", "west"];
        let told = join_all(names.iter().map(|name| f.settle(&actor, name))).await;
        assert!(told.iter().all(|home| *home == told[0]), "{told:?}");
        assert_eq!(f.home(&actor).await, Some(told[0].clone()));
    }
}

/// Whoever wrote a home down first can take it back, once; then another can be settled.
pub async fn maker_takes_back(f: HomesFixture) {
    let north = f.make(ALICE, "north").await;
    assert_eq!(f.try_settle(ALICE, "south").await.expect("settles").made, None, "it has another home");
    assert!(f.forget(ALICE, north).await);
    assert_eq!(f.home(ALICE).await, None);
    let south = f.make(ALICE, "south").await;
    assert!(!f.forget(ALICE, north).await, "that was another one");
    assert_eq!(f.home(ALICE).await, Some(dc("south")));
    assert!(f.forget(ALICE, south).await);
}

/// A home that somebody else relies on is not taken back from under him.
pub async fn joined_home_stays(f: HomesFixture) {
    let north = f.make(ALICE, "north").await;
    let joined = f.try_settle(ALICE, "north").await.expect("settles");
    assert_eq!(joined, SettledHome { home: dc("north"), made: None });
    assert!(!f.forget(ALICE, north).await);
    assert_eq!(f.home(ALICE).await, Some(dc("north")));
}

/// Nothing that happens to one actor's record is seen in another's.
pub async fn homes_are_apart(f: HomesFixture) {
    let others = ["bank::Account/bob", "bank::Account/alice2", "shop::Account/alice", "bank::Cart/alice"];
    let north = f.make(ALICE, "north").await;
    for other in others {
        assert_eq!(f.home(other).await, None, "{other}");
        assert_eq!(f.settle(other, "south").await, dc("south"));
    }
    assert!(f.forget(ALICE, north).await);
    for other in others {
        assert_eq!(f.home(other).await, Some(dc("south")), "{other}");
    }
}

/// People can read what the store holds.
pub async fn home_record_is_json(f: HomesFixture) {
    f.settle(ALICE, "a.eu.north").await;
    let record = f.store.get(&home_id(&id(ALICE)), Read::Linearizable).await.expect("reads");
    let value = record.expect("is there").value;
    assert_eq!(value, r#"{"datacenter":"a.eu.north"}"#.as_bytes());
}

/// A dropped future may or may not have written; what stands is one of the two.
pub async fn homes_are_cancel_safe(f: HomesFixture) {
    drop(f.try_settle(ALICE, "north").now_or_never());
    let told = f.settle(ALICE, "south").await;
    assert!(told == dc("north") || told == dc("south"), "{told}");
    assert_eq!(f.home(ALICE).await, Some(told));
}

fn id(actor: &str) -> ActorId {
    actor.parse().expect("an id")
}

fn dc(name: &str) -> DataCenterId {
    DataCenterId::new(name).expect("an id")
}

const ALICE: &str = "bank::Account/alice";
