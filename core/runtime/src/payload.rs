//! Payloads that have come in: read by the codec of their message, and counted if their codec is unknown.

use archipelago_protocol::message::{CodecError, CodecId, PayloadCodec};
use metrics::counter;
use serde::de::DeserializeOwned;

/// Reads what came in the codec with this id and belongs to a message whose own codec is `C`.
///
/// # Errors
///
/// As [`CodecId::decode`].
#[inline]
pub(crate) fn read<C: PayloadCodec, T: DeserializeOwned>(
    codec: CodecId,
    bytes: &[u8],
) -> Result<T, CodecError> {
    codec.decode::<C, T>(bytes).inspect_err(count)
}

#[cold]
fn count(error: &CodecError) {
    if matches!(error, CodecError::Unknown { .. }) {
        counter!("archipelago_unknown_codecs_total").increment(1);
    }
}
