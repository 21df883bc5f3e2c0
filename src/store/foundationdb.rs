//! From `[backend.foundationdb]`, or `[control_plane.foundationdb]`, to a store in FoundationDB.

use std::sync::Arc;

use archipelago_directory::{Store, Timer};
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
    let own = &settings.backend.foundationdb;
    // Nodes may have different copies of the cluster file, so only the place within the database tells clusters apart.
    let identity = identity_in(settings, || format!("foundationdb {}", own.prefix));
    let store = connect(own, "backend.foundationdb", origins, &timer).await?;
    Ok(Backing::outside(store, timer, identity))
}

/// Connects to the database that `section` of the configuration names.
pub(super) async fn connect(
    settings: &FoundationDbSettings,
    section: &str,
    origins: &Origins,
    timer: &Arc<dyn Timer>,
) -> Result<Arc<dyn Store>, Error> {
    let connected = FoundationDbStore::connect(&config(settings), Arc::clone(timer)).await;
    let store = connected.map_err(|error| refused(error, section, origins))?;
    Ok(Arc::new(store))
}

fn config(settings: &FoundationDbSettings) -> FoundationDbConfig {
    let FoundationDbSettings { cluster_file, prefix, connect_timeout, request_timeout, watch_poll, history } =
        settings.clone();
    FoundationDbConfig { cluster_file, prefix, connect_timeout, request_timeout, watch_poll, history }
}

/// A setting that cannot be used is said with the place where it stands.
fn refused(error: FoundationDbError, section: &str, origins: &Origins) -> Error {
    let (setting, message) = match error {
        FoundationDbError::Config(FoundationDbConfigError::Invalid { setting, problem }) => {
            (setting, problem)
        }
        FoundationDbError::Config(FoundationDbConfigError::Unreadable { setting, path, source }) => {
            (setting, format!("cannot read {}: {source}", path.display()))
        }
        other => return Error::Backend { kind: BackendKind::FoundationDb, source: Box::new(other) },
    };
    let key = format!("{section}.{setting}");
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
