//! One error for programs that only want to say what went wrong.

use archipelago_protocol::call::CallError;
use archipelago_runtime::{BoxError, NameError, StartError, StopError};

use crate::config::{BackendKind, ConfigError};

/// Anything that can go wrong with a node and the calls through it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The store behind the directory cannot be reached or refuses the node. Nothing runs; another attempt may succeed.
    #[error("the backend {kind} cannot be used: {source}")]
    Backend {
        /// Which one.
        kind: BackendKind,
        /// Where it was looked for, and why it cannot be used.
        source: BoxError,
    },
    /// The node did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A call failed.
    #[error(transparent)]
    Call(#[from] CallError),
    /// A named actor could not be registered or found.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The node stopped, but not everything ended well.
    #[error(transparent)]
    Stop(#[from] StopError),
}
