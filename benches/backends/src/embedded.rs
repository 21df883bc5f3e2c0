//! The embedded backend: in memory, so there is no server and no client to compare it with.

use std::sync::Arc;

use archipelago_directory::Store;
use archipelago_embedded::EmbeddedStore;

pub(crate) fn store() -> Arc<dyn Store> {
    Arc::new(EmbeddedStore::default())
}
