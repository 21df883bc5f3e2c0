//! From `[backend.nats]`, or `[control_plane.nats]`, to a store in NATS JetStream.

use std::path::Path;
use std::sync::Arc;

use archipelago_directory::{Store, Timer};
use archipelago_nats::{InvalidName, NatsConfig, NatsStore, NatsTls, ServerUrl, StartError};
use archipelago_protocol::time::Millis;
use archipelago_runtime::env::Environment;

use super::{Backing, Settling, home, identity_in};
use crate::Error;
use crate::config::{BackendKind, ConfigError, Fault, NatsSettings, Origins, Settings};

/// Connects to NATS.
pub(super) async fn backing(
    settings: &Settings,
    origins: &Origins,
    env: &Arc<dyn Environment>,
    timer: Arc<dyn Timer>,
) -> Result<Backing, Error> {
    let own = &settings.backend.nats;
    // Servers may be reached by different addresses, so only the place within NATS tells clusters apart.
    let identity = identity_in(settings, || format!("nats {} {}", own.stream, own.prefix));
    let store = connect(own, "backend.nats", origins, env).await?;
    let settling = Settling::new(Arc::clone(&store), Arc::clone(&timer), Millis::from_duration(own.settle));
    Ok(Backing::outside(store, timer, identity).settling(settling))
}

/// Connects to the NATS that `section` of the configuration names.
pub(super) async fn connect(
    own: &NatsSettings,
    section: &str,
    origins: &Origins,
    env: &Arc<dyn Environment>,
) -> Result<Arc<dyn Store>, Error> {
    let config = config(own).map_err(|(key, error)| refuse(origins, section, key, error.to_string()))?;
    let connecting = move || async move { NatsStore::connect(config).await };
    let connected = home::connect(BackendKind::Nats, env, connecting).await?;
    let store = connected.map_err(|error| refused(error, own, section, origins))?;
    Ok(store)
}

/// What the store takes; else the key whose value it does not take.
fn config(settings: &NatsSettings) -> Result<NatsConfig, (&'static str, InvalidName)> {
    let of = |key: &'static str| move |error: InvalidName| (key, error);
    let own = settings.clone();
    let urls = own.urls.into_iter().map(ServerUrl::try_from).collect::<Result<_, _>>();
    let mut config = NatsConfig::default();
    config.urls = urls.map_err(of("urls"))?;
    config.stream = own.stream.try_into().map_err(of("stream"))?;
    config.prefix = own.prefix.try_into().map_err(of("prefix"))?;
    config.replicas = own.replicas.try_into().map_err(of("replicas"))?;
    config.create_stream = own.create_stream;
    config.connect_timeout = own.connect_timeout;
    config.request_timeout = own.request_timeout;
    config.list_timeout = own.list_timeout;
    config.max_reconnect_delay = own.max_reconnect_delay;
    config.history = own.history;
    config.settle = own.settle;
    config.user = own.user;
    config.password_file = own.password_file;
    config.token_file = own.token_file;
    config.nkey_seed_file = own.nkey_seed_file;
    config.credentials_file = own.credentials_file;
    let mut tls = NatsTls::default();
    tls.ca_file = own.tls.ca_file;
    tls.cert_file = own.tls.certificate_file;
    tls.key_file = own.tls.key_file;
    config.tls = (tls != NatsTls::default()).then_some(tls);
    Ok(config)
}

/// A setting that cannot be used is said with the place where it stands.
fn refused(error: StartError, settings: &NatsSettings, section: &str, origins: &Origins) -> Error {
    match error {
        StartError::Unreadable { ref path, .. } => {
            refuse(origins, section, key_of(settings, path), error.to_string()).into()
        }
        StartError::Settings { why } => {
            let fault = Fault::Refused { message: why.to_owned() };
            origins.refuse(&[section], fault).into()
        }
        other => Error::Backend { kind: BackendKind::Nats, source: Box::new(other) },
    }
}

fn refuse(origins: &Origins, section: &str, key: &str, message: String) -> ConfigError {
    let key = format!("{section}.{key}");
    origins.refuse(&[&key], Fault::Refused { message })
}

/// The key that names this file.
fn key_of(settings: &NatsSettings, path: &Path) -> &'static str {
    let files = [
        ("password_file", &settings.password_file),
        ("token_file", &settings.token_file),
        ("nkey_seed_file", &settings.nkey_seed_file),
        ("credentials_file", &settings.credentials_file),
        ("tls.ca_file", &settings.tls.ca_file),
        ("tls.certificate_file", &settings.tls.certificate_file),
        ("tls.key_file", &settings.tls.key_file),
    ];
    let named = files.into_iter().find(|(_, file)| file.as_deref() == Some(path));
    named.map_or("urls", |(key, _)| key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_store() {
        assert_eq!(config(&NatsSettings::default()).unwrap(), NatsConfig::default());
    }

    #[test]
    fn a_value_that_the_store_does_not_take_is_refused_with_its_key() {
        let stream = NatsSettings { stream: "a b".to_owned(), ..NatsSettings::default() };
        assert_eq!(config(&stream).unwrap_err().0, "stream");
        let urls = NatsSettings { urls: vec!["http://a".to_owned()], ..NatsSettings::default() };
        assert_eq!(config(&urls).unwrap_err().0, "urls");
    }

    #[test]
    fn certificates_reach_the_store() {
        let mut settings = NatsSettings::default();
        settings.tls.certificate_file = Some("/certificate".into());
        let tls = config(&settings).unwrap().tls.unwrap();
        assert_eq!((tls.ca_file, tls.cert_file), (None, Some("/certificate".into())));
        assert_eq!(key_of(&settings, Path::new("/certificate")), "tls.certificate_file");
    }
}
