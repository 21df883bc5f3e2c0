//! Everything that the services of a node read from its peers, for the fuzz targets; no part of the interface.
//!
//! The words of a service are known to its own file only. Each of those lists what it reads, and a fuzz target gives all of
//! them any bytes.

use archipelago_protocol::message::Codec;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{client, datacenter, ranges, remote, tables};

/// What reads one kind of words.
#[derive(Clone, Copy, Debug)]
pub struct Reader {
    /// What they are.
    pub name: &'static str,
    /// Reads them, and writes them again; or says why they cannot be read.
    pub read: fn(&[u8]) -> Result<Vec<u8>, String>,
}

impl Reader {
    pub(crate) const fn json<T: Serialize + DeserializeOwned>(name: &'static str) -> Self {
        Self { name, read: |bytes| again::<T>(Codec::Json, bytes) }
    }

    pub(crate) const fn postcard<T: Serialize + DeserializeOwned>(name: &'static str) -> Self {
        Self { name, read: |bytes| again::<T>(Codec::Postcard, bytes) }
    }
}

/// All of them.
pub fn readers() -> Vec<Reader> {
    let of_services = [client::readers(), datacenter::readers(), tables::readers(), ranges::readers()];
    of_services.into_iter().flatten().chain(remote::readers()).collect()
}

fn again<T: Serialize + DeserializeOwned>(codec: Codec, bytes: &[u8]) -> Result<Vec<u8>, String> {
    let words: T = codec.decode(bytes).map_err(|error| error.to_string())?;
    codec.encode(&words).map_err(|error| format!("what was read cannot be written: {error}"))
}
