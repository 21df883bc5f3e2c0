//! What a node says of itself, waited for.

use std::time::Duration;

use archipelago_runtime::{Event, Notice, Subscription};

/// The first event that `find` finds something in.
///
/// # Panics
///
/// If none comes for half a minute.
pub async fn event<T>(events: &mut Subscription, find: impl Fn(Event) -> Option<T>) -> T {
    let found = async {
        loop {
            match events.next().await {
                Some(Notice::Event(event)) => match find(event) {
                    Some(found) => return found,
                    None => continue,
                },
                Some(_) => {}
                None => panic!("the node says nothing any more"),
            }
        }
    };
    actix::clock::timeout(LIMIT, found).await.expect("it did not happen")
}

const LIMIT: Duration = Duration::from_secs(30);
