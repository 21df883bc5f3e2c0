//! The embedded backend: in memory, so there is no server and no client to compare it with.

use std::sync::Arc;

use archipelago_directory::Store;
use archipelago_embedded::EmbeddedStore;

use crate::contestant::{Contestant, Ours};

pub(crate) async fn contestant() -> Arc<dyn Contestant> {
    Arc::new(Ours::new(Arc::new(EmbeddedStore::default())).await)
}

pub(crate) fn store() -> Arc<dyn Store> {
    Arc::new(EmbeddedStore::default())
}
