//! Rules about what is kept.

use archipelago_protocol::contract::{Schema, StateStoreError, StoredState};
use archipelago_protocol::identity::Generation;
use bytes::Bytes;
use futures_util::FutureExt;

use super::{ALICE, BOB, StateStoreFixture, id, state};

/// An actor without a state is no error, however often it is loaded.
///
/// Proves: R493
pub async fn load_of_nothing_is_none(f: StateStoreFixture) {
    for generation in [1, 1, 7] {
        assert_eq!(f.load(ALICE, generation).await, None);
    }
}

/// What was saved is what the next load shows, whoever loads, with its name, its version and all its bytes.
///
/// Proves: R493, R494
pub async fn load_shows_the_last_save(f: StateStoreFixture) {
    f.load(ALICE, 1).await;
    f.save(ALICE, 1, "first").await;
    f.save(ALICE, 1, "second").await;
    assert_eq!(f.load(ALICE, 1).await, Some(state("second")));
    assert_eq!(f.load(ALICE, 2).await, Some(state("second")));
    let bytes = Bytes::from_static(b"\n\0\xff{}\r\n");
    for bytes in [bytes, Bytes::new()] {
        let odd = StoredState { schema: Schema::new("b\u{e4}nk.\"x\" y", u32::MAX), bytes };
        f.states.save(&id(ALICE), Generation::new(2), &odd).await.expect("saves");
        assert_eq!(f.load(ALICE, 2).await, Some(odd));
    }
}

/// Nothing that happens to one actor's state is seen in another's.
pub async fn actors_are_apart(f: StateStoreFixture) {
    let others =
        [BOB, "bank::Account/alice2", "bank::Account/alic", "shop::Account/alice", "bank::Cart/alice"];
    f.load(ALICE, 9).await;
    f.save(ALICE, 9, "of alice").await;
    for other in others {
        assert_eq!(f.load(other, 1).await, None, "{other}");
        f.save(other, 1, other).await;
    }
    f.try_delete(BOB, 1).await.expect("deletes");
    assert_eq!(f.load(ALICE, 9).await, Some(state("of alice")));
    for other in &others[1..] {
        assert_eq!(f.load(other, 1).await, Some(state(other)));
    }
}

/// A state that the store cannot hold is refused, and the one before stays.
pub async fn too_large_is_refused_before_it_is_sent(f: StateStoreFixture) {
    f.load(ALICE, 1).await;
    f.save(ALICE, 1, "small").await;
    let bytes = vec![b'x'; f.too_large].into();
    let large = StoredState { schema: Schema::new("Account", 1), bytes };
    let refused = f.states.save(&id(ALICE), Generation::new(1), &large).await;
    let Err(StateStoreError::TooLarge { size, limit }) = refused else { panic!("taken: {refused:?}") };
    assert!(size > limit && size >= f.too_large, "{size} {limit}");
    assert_eq!(f.load(ALICE, 1).await, Some(state("small")));
}

/// A dropped future may or may not have written; it corrupts nothing.
pub async fn state_store_is_cancel_safe(f: StateStoreFixture) {
    f.load(ALICE, 1).await;
    f.save(ALICE, 1, "kept").await;
    drop(f.try_load(ALICE, 1).now_or_never());
    drop(f.try_save(ALICE, 1, "perhaps").now_or_never());
    let found = f.load(ALICE, 1).await;
    assert!(found == Some(state("kept")) || found == Some(state("perhaps")), "{found:?}");
    drop(f.try_delete(ALICE, 1).now_or_never());
    let found_again = f.load(ALICE, 2).await;
    assert!(found_again.is_none() || found_again == found, "{found_again:?}");
    f.save(ALICE, 2, "new").await;
    assert_eq!(f.load(ALICE, 2).await, Some(state("new")));
}
