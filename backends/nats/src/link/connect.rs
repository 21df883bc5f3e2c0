//! How a connection is made: who we are, what we trust, and how patiently we come back.

use std::path::{Path, PathBuf};
use std::time::Duration;

use async_nats::{Client, ConnectError, ConnectErrorKind, ConnectOptions, ServerAddr};
use rustls::crypto::{CryptoProvider, ring};

use super::events::Events;
use crate::clock::Deadline;
use crate::config::{NatsConfig, NatsTls};
use crate::error::StartError;

pub(super) async fn connect(config: &NatsConfig, events: &Events) -> Result<Client, StartError> {
    let told = events.clone();
    let longest = config.max_reconnect_delay;
    let options = credentials(config)?
        .name("archipelago")
        .connection_timeout(config.connect_timeout)
        .request_timeout(Some(config.request_timeout))
        .ping_interval(PING_INTERVAL)
        .subscription_capacity(SUBSCRIPTION_CAPACITY)
        .client_capacity(CLIENT_CAPACITY)
        .reconnect_delay_callback(move |attempts| reconnect_delay(attempts, longest))
        .event_callback(move |event| {
            told.handle(&event);
            std::future::ready(())
        });
    let options = trust(options, config.tls.as_ref())?;
    let addresses = addresses(config)?;
    let connected = Deadline::after(config.connect_timeout).limit(options.connect(addresses)).await;
    let endpoints = config.endpoints();
    match connected {
        Some(connected) => connected.map_err(|error| failed(endpoints, error)),
        None => {
            let source = format!("timed out after {:?}", config.connect_timeout).into();
            Err(StartError::Unreachable { endpoints, source })
        }
    }
}

fn failed(endpoints: String, error: ConnectError) -> StartError {
    match error.kind() {
        ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => {
            StartError::Unauthorized { endpoints, source: Box::new(error) }
        }
        _ => StartError::Unreachable { endpoints, source: Box::new(error) },
    }
}

fn addresses(config: &NatsConfig) -> Result<Vec<ServerAddr>, StartError> {
    if config.urls.is_empty() {
        return Err(StartError::Settings { why: "no server in `urls`" });
    }
    let parsed: Result<Vec<ServerAddr>, _> = config.urls.iter().map(|url| url.as_str().parse()).collect();
    parsed.map_err(|error| StartError::Unreachable { endpoints: config.endpoints(), source: Box::new(error) })
}

fn credentials(config: &NatsConfig) -> Result<ConnectOptions, StartError> {
    let options = ConnectOptions::new();
    let NatsConfig { user, password_file, token_file, nkey_seed_file, credentials_file, .. } = config;
    match (user, password_file, token_file, nkey_seed_file, credentials_file) {
        (None, None, None, None, None) => Ok(options),
        (Some(user), Some(path), None, None, None) => {
            Ok(options.user_and_password(user.clone(), secret("the password file", path)?))
        }
        (None, None, Some(path), None, None) => Ok(options.token(secret("the token file", path)?)),
        (None, None, None, Some(path), None) => Ok(options.nkey(secret("the nkey seed file", path)?)),
        (None, None, None, None, Some(path)) => {
            let what = "the credentials file";
            options.credentials(&secret(what, path)?).map_err(|error| unreadable(what, path, error))
        }
        _ => Err(StartError::Settings {
            why: "give `user` with `password_file`, or one of `token_file`, `nkey_seed_file`, `credentials_file`",
        }),
    }
}

fn trust(mut options: ConnectOptions, tls: Option<&NatsTls>) -> Result<ConnectOptions, StartError> {
    // The client takes the process's provider, and panics if two are built in and none was chosen.
    if CryptoProvider::get_default().is_none() {
        drop(ring::default_provider().install_default());
    }
    let Some(NatsTls { ca_file, cert_file, key_file }) = tls else { return Ok(options) };
    options = options.require_tls(true);
    if let Some(path) = ca_file {
        secret("the authority's certificate", path)?;
        options = options.add_root_certificates(path.clone());
    }
    match (cert_file, key_file) {
        (None, None) => Ok(options),
        (Some(cert), Some(key)) => {
            secret("the certificate", cert)?;
            secret("the key", key)?;
            Ok(options.add_client_certificate(cert.clone(), key.clone()))
        }
        _ => Err(StartError::Settings { why: "`cert_file` and `key_file` belong together" }),
    }
}

/// The text of a file, without the line end that editors leave.
fn secret(what: &'static str, path: &Path) -> Result<String, StartError> {
    let text = std::fs::read_to_string(path).map_err(|error| unreadable(what, path, error))?;
    Ok(text.trim_end().to_owned())
}

fn unreadable(what: &'static str, path: &Path, source: std::io::Error) -> StartError {
    StartError::Unreadable { what, path: PathBuf::from(path), source: Box::new(source) }
}

/// At once, then twice as long each time, up to `longest`: a server that is away costs next to nothing.
fn reconnect_delay(attempts: usize, longest: Duration) -> Duration {
    if attempts <= 1 {
        return Duration::ZERO;
    }
    let doublings = u32::try_from(attempts - 2).unwrap_or(u32::MAX).min(MAX_DOUBLINGS);
    (FIRST_DELAY * 2u32.pow(doublings)).min(longest.max(FIRST_DELAY))
}

const FIRST_DELAY: Duration = Duration::from_millis(20);
const MAX_DOUBLINGS: u32 = 16;
/// Two of them unanswered, and the connection counts as dead.
const PING_INTERVAL: Duration = Duration::from_secs(5);
/// Messages that a watch may be behind before the client drops some, which breaks the watch.
const SUBSCRIPTION_CAPACITY: usize = 16_384;
/// Requests that wait for the client to take them.
const CLIENT_CAPACITY: usize = 2_048;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_stays_away_is_asked_less_and_less_often() {
        let longest = Duration::from_secs(2);
        let delays: Vec<Duration> = (0..100).map(|attempts| reconnect_delay(attempts, longest)).collect();
        assert_eq!(delays[1], Duration::ZERO);
        assert!(delays.is_sorted());
        assert!(delays[9..].iter().all(|delay| *delay == longest));
        assert_eq!(reconnect_delay(usize::MAX, longest), longest);
    }

    #[test]
    fn settings_that_contradict_are_refused() {
        let both = NatsConfig {
            user: Some("me".into()),
            token_file: Some("/token".into()),
            ..NatsConfig::default()
        };
        assert!(matches!(credentials(&both), Err(StartError::Settings { .. })));
        let half = NatsTls { cert_file: Some("/cert".into()), ..NatsTls::default() };
        assert!(matches!(trust(ConnectOptions::new(), Some(&half)), Err(StartError::Settings { .. })));
        let nowhere = NatsConfig { urls: Vec::new(), ..NatsConfig::default() };
        assert!(matches!(addresses(&nowhere), Err(StartError::Settings { .. })));
    }

    #[test]
    fn a_missing_secret_is_named() {
        let config = NatsConfig { token_file: Some("/no/such/token".into()), ..NatsConfig::default() };
        let error = credentials(&config).err().unwrap();
        assert!(error.to_string().contains("/no/such/token"), "{error}");
    }
}
