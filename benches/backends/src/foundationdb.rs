//! FoundationDB: our store on its engine in memory, and on a cluster where one is named.
//!
//! The engine in memory keeps FoundationDB's rules but is no server: its figures say what the store itself costs, transactions,
//! log and index included, and nothing of what a cluster would add. There is no plain client to compare either with yet, so no
//! bar is printed. A cluster takes the cargo feature `foundationdb-client`, which links `libfdb_c`; `cargo xtask bench` sets it
//! when `ARCHIPELAGO_TEST_FDB` names a cluster file.

use std::sync::Arc;

use archipelago_directory::Store;
use archipelago_foundationdb::{Breakage, FoundationDbConfig, FoundationDbStore, MemoryEngine};

use crate::contestant::RealTimer;

/// What the figures of the engine in memory are called.
pub(crate) const IN_MEMORY: &str = "foundationdb (engine in memory, not a server)";
/// What those of a cluster are called.
pub(crate) const CLUSTER: &str = "foundationdb (cluster)";

/// Our store on an empty engine in memory.
pub(crate) async fn in_memory() -> Arc<dyn Store> {
    let engine = Arc::new(MemoryEngine::new(0, Breakage::default()));
    Arc::new(
        FoundationDbStore::open(engine, &FoundationDbConfig::default(), RealTimer::start()).await.unwrap(),
    )
}

/// The cluster file that the environment names.
pub(crate) fn cluster_file() -> Option<String> {
    std::env::var("ARCHIPELAGO_TEST_FDB").ok().filter(|file| !file.is_empty())
}

/// Our store on the cluster of this file, below a prefix that nobody has used.
#[cfg(feature = "foundationdb-client")]
pub(crate) async fn on_cluster(cluster_file: &str) -> Result<Arc<dyn Store>, String> {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    static NEXT: AtomicU32 = AtomicU32::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_err(|error| error.to_string())?.as_nanos();
    let config = FoundationDbConfig {
        cluster_file: Some(cluster_file.into()),
        prefix: format!("archipelago-bench-{now}-{}", NEXT.fetch_add(1, Ordering::Relaxed)),
        request_timeout: Duration::from_secs(20),
        ..FoundationDbConfig::default()
    };
    let store = FoundationDbStore::connect(&config, RealTimer::start()).await;
    Ok(Arc::new(store.map_err(|error| error.to_string())?))
}

/// This build has no client.
#[cfg(not(feature = "foundationdb-client"))]
pub(crate) async fn on_cluster(cluster_file: &str) -> Result<Arc<dyn Store>, String> {
    Err(format!("{cluster_file} cannot be reached: built without the cargo feature foundationdb-client"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::contestant::{Contestant, Ours};

    #[tokio::test]
    async fn the_engine_in_memory_does_every_kind_of_work() {
        let contestant = Ours::new(in_memory().await).await;
        let mut watch = contestant.watch().await;
        contestant.claim(7).await;
        contestant.lookup(7).await;
        contestant.renew(3).await;
        let told = tokio::time::timeout(Duration::from_secs(10), futures_util::StreamExt::next(&mut watch));
        assert_eq!(told.await, Ok(Some(7)));
        assert!(IN_MEMORY.contains("not a server"));
    }

    #[cfg(not(feature = "foundationdb-client"))]
    #[tokio::test]
    async fn a_cluster_that_this_build_cannot_reach_is_said_to_be_so() {
        let error = on_cluster("/etc/fdb.cluster").await.err().expect("has no client");
        assert!(error.contains("/etc/fdb.cluster") && error.contains("foundationdb-client"), "{error}");
    }
}
