//! One member of etcd, and the connection to it.
//!
//! A connection is made when it is first needed and dials again by itself when it breaks. One that has gone silent
//! without breaking is given up by whoever notices ([`Endpoint::doubt`]); the next request gets a new one. The login
//! belongs to the connection.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use etcd_client::{Channel, Client, ConnectOptions, KvClient, LeaseClient, WatchClient};
use futures_util::FutureExt;
use tokio::runtime::Handle;
use tokio::sync::OnceCell;
use tonic::transport::{Certificate, ClientTlsConfig, Identity};

use crate::config::{Checked, EtcdConfigError, TlsText, invalid};

/// One member.
pub(crate) struct Endpoint {
    pub(crate) address: String,
    dial: tonic::transport::Endpoint,
    user: Option<(String, String)>,
    /// Where the connection's own tasks run, whoever asks.
    home: Handle,
    current: Mutex<Current>,
}

#[derive(Default)]
struct Current {
    connection: Option<Connection>,
    /// Counts the connections.
    made: u64,
}

/// A connection, shared by all who use it.
#[derive(Clone)]
pub(crate) struct Connection {
    pub(crate) kv: KvClient,
    pub(crate) lease: LeaseClient,
    pub(crate) watch: WatchClient,
    pub(crate) number: u64,
    client: Arc<Client>,
    user: Option<(String, String)>,
    logged_in: Arc<OnceCell<()>>,
}

impl Endpoint {
    /// The member at `address`. Its connections live on the runtime of the caller.
    pub(crate) fn new(
        address: &str,
        checked: &Checked,
        dial_timeout: Duration,
        home: Handle,
    ) -> Result<Self, EtcdConfigError> {
        let bad = |error: &dyn std::fmt::Display| invalid("endpoints", format!("{address:?}: {error}"));
        let dial =
            tonic::transport::Endpoint::from_shared(address.to_owned()).map_err(|error| bad(&error))?;
        let mut dial = dial
            .connect_timeout(dial_timeout)
            .http2_keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_TIMEOUT)
            .keep_alive_while_idle(false);
        if let Some(tls) = &checked.tls {
            let refused = |error| invalid("tls", crate::failure::cause(&error));
            dial = dial.tls_config(tls_settings(tls)).map_err(refused)?;
        }
        let (address, user) = (address.to_owned(), checked.user.clone());
        Ok(Self { address, dial, user, home, current: Mutex::default() })
    }

    /// The connection to use now.
    pub(crate) fn connection(&self) -> Result<Connection, etcd_client::Error> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(connection) = &current.connection {
            return Ok(connection.clone());
        }
        current.made += 1;
        let connection = self.connect(current.made)?;
        current.connection = Some(connection.clone());
        Ok(connection)
    }

    /// Gives up connection `number`, if it is the current one. Those who wait on it may go on waiting.
    pub(crate) fn doubt(&self, number: u64) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        current.connection.take_if(|connection| connection.number == number);
    }

    fn connect(&self, number: u64) -> Result<Connection, etcd_client::Error> {
        let channel = {
            let _home = self.home.enter();
            Channel::Tonic(self.dial.connect_lazy())
        };
        // No user yet: with one, this would go to the server at once, and hang with it.
        let options = ConnectOptions::new().with_auto_token_refresh(true).with_require_leader(true);
        let client = Client::from_channel(channel, Some(options)).now_or_never();
        let client = client.ok_or_else(|| etcd_client::Error::Internal("the client waited".into()))??;
        Ok(Connection {
            kv: client.kv_client().max_decoding_message_size(MAX_ANSWER),
            lease: client.lease_client(),
            watch: client.watch_client().max_decoding_message_size(MAX_ANSWER),
            number,
            client: Arc::new(client),
            user: self.user.clone(),
            logged_in: Arc::default(),
        })
    }
}

impl Connection {
    /// Logs in, once per connection, where there is a user. The client renews the login when it expires.
    pub(crate) async fn log_in(&self) -> Result<(), etcd_client::Error> {
        let Some(user) = &self.user else { return Ok(()) };
        let mut client = Client::clone(&self.client);
        self.logged_in.get_or_try_init(|| client.update_user(Some(user.clone()))).await.map(|_| ())
    }
}

fn tls_settings(text: &TlsText) -> ClientTlsConfig {
    let mut tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(&text.ca));
    if let Some((certificate, key)) = &text.identity {
        tls = tls.identity(Identity::from_pem(certificate, key));
    }
    match &text.server_name {
        Some(name) => tls.domain_name(name),
        None => tls,
    }
}

/// etcd hangs up on clients that ping more often than every 5 s.
const PING_INTERVAL: Duration = Duration::from_secs(10);
const PING_TIMEOUT: Duration = Duration::from_secs(3);
/// One answer is at most a page of a listing, or the changes that a watch missed.
const MAX_ANSWER: usize = 64 << 20;
