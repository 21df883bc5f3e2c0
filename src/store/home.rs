//! Where the client of a store outside this process lives.
//!
//! Its tasks read and write connections, so they must not wait behind anybody's code: a node whose beats are late loses its
//! session. They run on an arbiter of their own, which the environment starts: a thread, unless the node was told to run on
//! the current arbiter. It ends when the last user of the store is gone.

use std::future::Future;
use std::sync::Arc;

use archipelago_directory::{
    CasAnswer, Expect, Guard, Position, Read, Record, RecordId, Records, Space, Store, StoreError,
    StoreWatch, Write,
};
use archipelago_runtime::StartError;
use archipelago_runtime::env::{ArbiterMain, ArbiterRole, Environment};
use async_trait::async_trait;
use tokio::sync::oneshot;

use crate::Error;
use crate::config::BackendKind;

/// Connects on a new arbiter, and keeps it for what the client does there. The inner error is the client's.
pub(super) async fn connect<S, E, Connecting>(
    kind: BackendKind,
    env: &Arc<dyn Environment>,
    connecting: impl FnOnce() -> Connecting + Send + 'static,
) -> Result<Result<Arc<Housed<S>>, E>, Error>
where
    S: Store,
    E: Send + 'static,
    Connecting: Future<Output = Result<S, E>> + 'static,
{
    let (tell, told) = oneshot::channel();
    let main = move || async move {
        let (key, given_back) = oneshot::channel::<()>();
        let store = connecting().await.map(|store| Arc::new(Housed { store, _key: key }));
        if tell.send(store).is_ok() {
            // Never sent, only dropped.
            given_back.await.unwrap_or_default();
        }
    };
    env.start_arbiter(ArbiterRole::Control, ArbiterMain::new(|| Box::pin(main())))
        .map_err(StartError::from)?;
    told.await.map_err(|_| Error::Backend { kind, source: "the thread of its client ended".into() })
}

/// A store and the key to the arbiter that its client lives on.
pub(super) struct Housed<S> {
    store: S,
    /// Dropped, it ends the arbiter.
    _key: oneshot::Sender<()>,
}

#[async_trait]
impl<S: Store> Store for Housed<S> {
    fn name(&self) -> &'static str {
        self.store.name()
    }

    fn checks_guards(&self) -> bool {
        self.store.checks_guards()
    }

    fn max_value(&self) -> usize {
        self.store.max_value()
    }

    async fn get(&self, id: &RecordId, read: Read) -> Result<Option<Record>, StoreError> {
        self.store.get(id, read).await
    }

    async fn cas(
        &self,
        id: &RecordId,
        expect: Expect,
        write: Write,
        guard: Option<Guard>,
    ) -> Result<CasAnswer, StoreError> {
        self.store.cas(id, expect, write, guard).await
    }

    async fn list(&self, space: Space, tag: Option<&str>) -> Result<Records, StoreError> {
        self.store.list(space, tag).await
    }

    async fn watch(&self, space: Space, after: Position) -> Result<StoreWatch, StoreError> {
        self.store.watch(space, after).await
    }

    async fn delete_all(&self, records: &[Record]) -> Result<usize, StoreError> {
        self.store.delete_all(records).await
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test waits on the real clock")]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use archipelago_embedded::EmbeddedStore;
    use archipelago_runtime::env::{HostEnvironment, Threads};

    use super::*;

    /// Says when the arbiter that holds it is gone.
    struct Resident(Arc<AtomicBool>);

    impl Drop for Resident {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }

    #[expect(clippy::disallowed_methods, reason = "stands for a task of a client")]
    fn settle_down(resident: Resident) {
        actix::spawn(async move {
            let _stays = resident;
            std::future::pending::<()>().await;
        });
    }

    #[actix::test]
    async fn client_lives_on_a_thread_of_its_own_that_ends_with_the_store() {
        let env: Arc<dyn Environment> = Arc::new(HostEnvironment::new(Threads::Own));
        let gone = Arc::new(AtomicBool::new(false));
        let (resident, own) = (Resident(Arc::clone(&gone)), std::thread::current().id());
        let connecting = move || async move {
            assert_ne!(std::thread::current().id(), own);
            settle_down(resident);
            Ok::<_, ()>(EmbeddedStore::default())
        };
        let store = connect(BackendKind::Embedded, &env, connecting).await.unwrap().unwrap();
        actix::clock::sleep(Duration::from_millis(50)).await;
        assert!(!gone.load(Ordering::SeqCst), "the thread stays while the store is used");
        drop(store);
        for _ in 0..1_000 {
            if gone.load(Ordering::SeqCst) {
                return;
            }
            actix::clock::sleep(Duration::from_millis(5)).await;
        }
        panic!("the thread does not end with the store");
    }

    #[actix::test]
    async fn refusal_reaches_the_caller() {
        let env: Arc<dyn Environment> = Arc::new(HostEnvironment::new(Threads::Own));
        let connecting = || async { Err::<EmbeddedStore, _>("away") };
        let refused = connect(BackendKind::Embedded, &env, connecting).await.unwrap();
        assert_eq!(refused.err(), Some("away"));
    }
}
