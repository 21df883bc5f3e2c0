//! Why a store could not be opened, and why a request brought no answer.

use std::path::PathBuf;

use archipelago_directory::StoreError;
use archipelago_protocol::contract::BoxError;

/// Why a [`NatsStore`](crate::NatsStore) could not be opened. Nothing was started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// No server could be reached. Check addresses, network and TLS.
    #[error("cannot connect to NATS at {endpoints}: {source}")]
    Unreachable {
        /// The servers tried.
        endpoints: String,
        /// What went wrong with the last one.
        source: BoxError,
    },
    /// A server refused the credentials.
    #[error("NATS at {endpoints} refuses the credentials: {source}")]
    Unauthorized {
        /// The servers tried.
        endpoints: String,
        /// What the server said.
        source: BoxError,
    },
    /// A file with a secret, a certificate or a key cannot be used.
    #[error("cannot use {what} {path}: {source}", path = path.display())]
    Unreadable {
        /// What it should hold.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: BoxError,
    },
    /// The settings contradict themselves.
    #[error("the settings of NATS cannot be used: {why}")]
    Settings {
        /// What is wrong.
        why: &'static str,
    },
    /// The server is too old: it would silently ignore the time to live of a message.
    #[error("the NATS server at {endpoints} has version {found}; message TTLs need 2.11 or newer")]
    TooOld {
        /// The servers.
        endpoints: String,
        /// The version of the one that answered.
        found: String,
    },
    /// The server runs without JetStream.
    #[error("the NATS server at {endpoints} runs without JetStream")]
    NoJetStream {
        /// The servers.
        endpoints: String,
    },
    /// There is no such stream, and it must not be created.
    #[error("there is no stream {stream}, and `create_stream` is off")]
    NoStream {
        /// Its name.
        stream: String,
    },
    /// The server refused to create or show the stream.
    #[error("NATS refuses {what} the stream {stream}: {description} ({code})")]
    Refused {
        /// What was asked.
        what: &'static str,
        /// The stream.
        stream: String,
        /// What the server said.
        description: String,
        /// The server's code for it.
        code: u64,
    },
    /// The stream is set up in a way that breaks the promises of a store.
    #[error("the stream {stream} cannot be used: {why}")]
    Unsuitable {
        /// Its name.
        stream: String,
        /// What is wrong with it.
        why: String,
    },
    /// The stream was restored from a backup or created anew, so its sequences have gone back. With all nodes stopped,
    /// raise its base ([`raise_base`](crate::raise_base)).
    #[error(
        "the stream {stream} has gone back: a node has seen version {highest}, which it would give again. \
         Stop all nodes and raise its base"
    )]
    SetBack {
        /// Its name.
        stream: String,
        /// The highest version that is known to have been given.
        highest: u64,
    },
    /// The server was reached but did not answer in time.
    #[error("NATS at {endpoints} does not answer: {source}")]
    NoAnswer {
        /// The servers.
        endpoints: String,
        /// What the client said.
        source: BoxError,
    },
}

/// Why a request brought no answer, sorted by whether it can have had an effect.
#[derive(Debug)]
pub(crate) enum LinkError {
    /// Nothing was sent, or nobody took it.
    NotTaken(BoxError),
    /// It may have had an effect, or may still have.
    NoAnswer(BoxError),
    /// It was refused for good.
    Refused(BoxError),
}

impl LinkError {
    pub(crate) fn into_source(self) -> BoxError {
        match self {
            Self::NotTaken(source) | Self::NoAnswer(source) | Self::Refused(source) => source,
        }
    }
}

impl From<LinkError> for StoreError {
    fn from(error: LinkError) -> Self {
        match error {
            LinkError::NotTaken(source) => Self::Unavailable { source },
            LinkError::NoAnswer(source) => Self::Unknown { source },
            LinkError::Refused(source) => Self::Fatal { source },
        }
    }
}

/// What an error means where nothing was to be changed: whatever became of the request, it had no effect.
pub(crate) fn of_a_read(error: StoreError) -> StoreError {
    match error {
        StoreError::Unknown { source } => StoreError::Unavailable { source },
        error => error,
    }
}

/// What the server said instead of doing what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize, thiserror::Error)]
#[error("{description} ({err_code})")]
pub(crate) struct ApiError {
    #[serde(default)]
    pub(crate) err_code: u64,
    #[serde(default)]
    pub(crate) description: String,
}
