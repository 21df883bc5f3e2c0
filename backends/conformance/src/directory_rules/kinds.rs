//! The rule about how kinds are divided.

use archipelago_protocol::identity::Kind;
use archipelago_protocol::placement::{KindLayout, ShardCount};
use futures_util::future::join_all;

use super::Fixture;

/// Of several layouts that are brought at the same time one stands, everybody is answered with that one, and nothing that
/// comes later changes it. Kinds do not touch each other.
pub async fn layout_is_settled_once(f: Fixture) {
    for round in 0..5 {
        let kind = Kind::new(&format!("Kind{round}")).expect("a valid kind");
        let brought = [layout(16), layout(100), layout(256), layout(100)];
        let answers = join_all(brought.map(|layout| f.directory.settle_layout(&kind, layout))).await;
        let answers: Vec<KindLayout> = answers.into_iter().map(|answer| answer.expect("answers")).collect();
        assert!(answers.iter().all(|answer| *answer == answers[0]), "round {round}: {answers:?}");
        assert!(brought.contains(&answers[0]), "round {round}: {answers:?}");
        let late = f.directory.settle_layout(&kind, layout(7)).await.expect("answers");
        assert_eq!(late, answers[0], "round {round}");
    }
    let other = Kind::new("Other").expect("a valid kind");
    assert_eq!(f.directory.settle_layout(&other, layout(7)).await.expect("answers"), layout(7));
}

fn layout(shards: u16) -> KindLayout {
    KindLayout::sharded(ShardCount::new(shards).expect("a valid number"))
}
