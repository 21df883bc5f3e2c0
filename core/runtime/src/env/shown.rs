//! A value that is shown to whoever follows it.
//!
//! It is what `tokio::sync::watch` is for, which wakes those who wait in an order of its own chance, that no seed governs: the
//! simulator could not do the same twice. Here they are woken in the order in which they began to wait.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The value, in the hands of the one who shows it.
#[derive(Debug)]
pub(crate) struct Shown<T> {
    board: Arc<Board<T>>,
}

/// Follows a value: sees it as it is, and is told when it has changed.
#[derive(Debug)]
pub struct Follower<T> {
    board: Arc<Board<T>>,
    /// The version that was seen last.
    seen: u64,
}

#[derive(Debug)]
struct Board<T> {
    post: Mutex<Post<T>>,
    changed: Notify,
}

#[derive(Debug)]
struct Post<T> {
    value: T,
    version: u64,
    /// Nobody shows it any more.
    over: bool,
}

impl<T> Shown<T> {
    pub(crate) fn new(value: T) -> Self {
        let post = Mutex::new(Post { value, version: 0, over: false });
        Self { board: Arc::new(Board { post, changed: Notify::new() }) }
    }

    /// Looks at the value, which does not change meanwhile.
    pub(crate) fn read<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        look(&self.board.lock().value)
    }

    /// Changes the value, and tells the followers if `change` says that it did; whether it did.
    pub(crate) fn modify(&self, change: impl FnOnce(&mut T) -> bool) -> bool {
        let mut post = self.board.lock();
        let changed = change(&mut post.value);
        post.version += u64::from(changed);
        drop(post);
        if changed {
            self.board.changed.notify_waiters();
        }
        changed
    }

    pub(crate) fn set(&self, value: T) {
        self.modify(|shown| {
            *shown = value;
            true
        });
    }

    /// Somebody who has seen the value as it is now.
    pub(crate) fn follow(&self) -> Follower<T> {
        let seen = self.board.lock().version;
        Follower { board: Arc::clone(&self.board), seen }
    }
}

impl<T> Drop for Shown<T> {
    fn drop(&mut self) {
        self.board.lock().over = true;
        self.board.changed.notify_waiters();
    }
}

impl<T> Follower<T> {
    /// The value as it is now.
    pub fn newest(&self) -> T
    where
        T: Clone,
    {
        self.board.lock().value.clone()
    }

    /// Waits until the value has changed since it was seen last; false if nobody shows it any more. Whoever drops the future
    /// misses nothing.
    pub async fn changed(&mut self) -> bool {
        loop {
            // Before the look, so that no change comes between the two.
            let mut change = pin!(self.board.changed.notified());
            change.as_mut().enable();
            let (version, over) = {
                let post = self.board.lock();
                (post.version, post.over)
            };
            if version != self.seen {
                self.seen = version;
                return true;
            }
            if over {
                return false;
            }
            change.await;
        }
    }

    /// Waits until something is found in the value; none if nobody shows it any more.
    pub(crate) async fn find<R>(&mut self, mut found: impl FnMut(&T) -> Option<R>) -> Option<R> {
        loop {
            let result = {
                let post = self.board.lock();
                self.seen = post.version;
                found(&post.value)
            };
            if result.is_some() || !self.changed().await {
                return result;
            }
        }
    }
}

impl<T> Clone for Follower<T> {
    fn clone(&self) -> Self {
        Self { board: Arc::clone(&self.board), seen: self.seen }
    }
}

impl<T> Board<T> {
    fn lock(&self) -> MutexGuard<'_, Post<T>> {
        self.post.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream::FuturesUnordered;
    use futures_util::{FutureExt, StreamExt};

    use super::*;

    #[actix::test]
    async fn a_follower_is_told_of_a_change_once_and_of_the_end() {
        let shown = Shown::new(1);
        let mut follower = shown.follow();
        shown.set(2);
        shown.set(3);
        assert!(follower.changed().await);
        assert_eq!(follower.newest(), 3, "only the newest value counts");
        assert!(!shown.modify(|_| false), "what has not changed is not told");
        drop(shown);
        assert!(!follower.changed().await);
    }

    #[actix::test]
    async fn something_is_found_when_it_comes_or_never() {
        let shown = Shown::new(1);
        let mut follower = shown.follow();
        let seven = |value: &i32| (*value == 7).then_some("seven");
        let changes = async {
            shown.set(3);
            shown.set(7);
        };
        let (found, ()) = futures_util::future::join(follower.find(seven), changes).await;
        assert_eq!(found, Some("seven"));
        shown.set(8);
        drop(shown);
        assert_eq!(follower.find(seven).await, None);
    }

    /// The order of tokio's `watch` differs from run to run.
    #[actix::test]
    async fn those_who_wait_are_woken_in_the_order_in_which_they_began_to() {
        let shown = Shown::new(());
        let wait = |place: usize| {
            let mut follower = shown.follow();
            async move {
                follower.changed().await;
                place
            }
        };
        // It polls what was woken in the order in which that was woken.
        let mut waiting: FuturesUnordered<_> = (0..16).map(wait).collect();
        assert_eq!(waiting.next().now_or_never(), None);
        shown.set(());
        let woken: Vec<usize> = waiting.collect().await;
        assert_eq!(woken, (0..16).collect::<Vec<_>>());
    }
}
