//! From `[backend.etcd]`, or `[control_plane.etcd]`, to a store in etcd.

use std::sync::Arc;

use archipelago_directory::{Store, Timer};
use archipelago_etcd::{EtcdConfig, EtcdConfigError, EtcdError, EtcdStore, EtcdTls};
use archipelago_runtime::env::Environment;

use super::{Backing, home, identity_in};
use crate::Error;
use crate::config::{BackendKind, EtcdSettings, Fault, Origins, Settings};

/// Connects to etcd.
pub(super) async fn backing(
    settings: &Settings,
    origins: &Origins,
    env: &Arc<dyn Environment>,
    timer: Arc<dyn Timer>,
) -> Result<Backing, Error> {
    let own = &settings.backend.etcd;
    // Members may be reached by different addresses, so only the place within etcd tells clusters apart.
    let identity = identity_in(settings, || format!("etcd {}", own.prefix.trim_end_matches('/')));
    let store = connect(own, "backend.etcd", origins, env, &timer).await?;
    Ok(Backing::outside(store, timer, identity))
}

/// Connects to the etcd that `section` of the configuration names.
pub(super) async fn connect(
    settings: &EtcdSettings,
    section: &str,
    origins: &Origins,
    env: &Arc<dyn Environment>,
    timer: &Arc<dyn Timer>,
) -> Result<Arc<dyn Store>, Error> {
    let (config, clock) = (config(settings), Arc::clone(timer));
    let connecting = move || async move { EtcdStore::connect(&config, clock).await };
    let connected = home::connect(BackendKind::Etcd, env, connecting).await?;
    let store = connected.map_err(|error| refused(error, section, origins))?;
    Ok(store)
}

fn config(settings: &EtcdSettings) -> EtcdConfig {
    let EtcdSettings { endpoints, prefix, user, password_file, tls, .. } = settings.clone();
    let certificates = |ca_file| EtcdTls {
        ca_file,
        certificate_file: tls.certificate_file,
        key_file: tls.key_file,
        server_name: tls.server_name,
    };
    EtcdConfig {
        endpoints,
        prefix,
        connect_timeout: settings.connect_timeout,
        request_timeout: settings.request_timeout,
        watch_idle: settings.watch_idle,
        user,
        password_file,
        tls: tls.ca_file.map(certificates),
    }
}

/// A setting that cannot be used is said with the place where it stands.
fn refused(error: EtcdError, section: &str, origins: &Origins) -> Error {
    let (setting, message) = match error {
        EtcdError::Config(EtcdConfigError::Invalid { setting, problem }) => (setting, problem),
        EtcdError::Config(EtcdConfigError::Unreadable { setting, path, source }) => {
            (setting, format!("cannot read {}: {source}", path.display()))
        }
        other => return Error::Backend { kind: BackendKind::Etcd, source: Box::new(other) },
    };
    let key = format!("{section}.{setting}");
    origins.refuse(&[&key], Fault::Refused { message }).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_store() {
        assert_eq!(config(&EtcdSettings::default()), EtcdConfig::default());
    }

    #[test]
    fn every_setting_reaches_the_store() {
        let mut settings = EtcdSettings {
            endpoints: vec!["https://a:1".into(), "https://b:2".into()],
            prefix: "/shop".into(),
            user: Some("node".into()),
            password_file: Some("/password".into()),
            ..EtcdSettings::default()
        };
        settings.tls.ca_file = Some("/ca".into());
        settings.tls.certificate_file = Some("/certificate".into());
        settings.tls.key_file = Some("/key".into());
        settings.tls.server_name = Some("etcd".into());
        let tls = EtcdTls {
            ca_file: "/ca".into(),
            certificate_file: Some("/certificate".into()),
            key_file: Some("/key".into()),
            server_name: Some("etcd".into()),
        };
        let expected = EtcdConfig {
            endpoints: settings.endpoints.clone(),
            prefix: "/shop".into(),
            user: Some("node".into()),
            password_file: Some("/password".into()),
            tls: Some(tls),
            ..EtcdConfig::default()
        };
        assert_eq!(config(&settings), expected);
    }
}
