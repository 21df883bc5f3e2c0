//! From `[backend.foundationdb]` to a store in FoundationDB.

use std::sync::Arc;

use archipelago_directory::Timer;
use archipelago_foundationdb::{
    FoundationDbConfig, FoundationDbConfigError, FoundationDbError, FoundationDbStore,
};

use super::{Backing, identity_in};
use crate::Error;
use crate::config::{BackendKind, Fault, FoundationDbSettings, Origins, Settings};

/// Connects to FoundationDB. Its client has a thread of its own, so nothing needs a home here.
pub(super) async fn backing(
    settings: &Settings,
    origins: &Origins,
    timer: Arc<dyn Timer>,
) -> Result<Backing, Error> {
    let config = config(&settings.backend.foundationdb);
    // Nodes may have different copies of the cluster file, so only the place within the database tells clusters apart.
    let identity = identity_in(settings, || format!("foundationdb {}", config.prefix));
    let connected = FoundationDbStore::connect(&config, Arc::clone(&timer)).await;
    let store = connected.map_err(|error| refused(error, origins))?;
    Ok(Backing::outside(Arc::new(store), timer, identity))
}

fn config(settings: &FoundationDbSettings) -> FoundationDbConfig {
    let FoundationDbSettings { cluster_file, prefix, connect_timeout, request_timeout, watch_poll, history } =
        settings.clone();
    FoundationDbConfig { cluster_file, prefix, connect_timeout, request_timeout, watch_poll, history }
}

/// A setting that cannot be used is said with the place where it stands.
fn refused(error: FoundationDbError, origins: &Origins) -> Error {
    let (setting, message) = match error {
        FoundationDbError::Config(FoundationDbConfigError::Invalid { setting, problem }) => {
            (setting, problem)
        }
        FoundationDbError::Config(FoundationDbConfigError::Unreadable { setting, path, source }) => {
            (setting, format!("cannot read {}: {source}", path.display()))
        }
        other => return Error::Backend { kind: BackendKind::FoundationDb, source: Box::new(other) },
    };
    let key = format!("backend.foundationdb.{setting}");
    origins.refuse(&[&key], Fault::Refused { message }).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_store() {
        assert_eq!(config(&FoundationDbSettings::default()), FoundationDbConfig::default());
    }
}
