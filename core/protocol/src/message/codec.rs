//! How messages become bytes.
//!
//! The envelope carries a [`CodecId`] and knows no codec, so a new one changes neither the envelope nor the wire format. Each
//! type of message names its codec, a [`PayloadCodec`]; [`Codec`] lists the built-in ones for code that has but bytes.

mod payload;

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use bytes::BytesMut;
pub use payload::{Json, PayloadCodec, Postcard};
use postcard::ser_flavors::Flavor;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};

/// The codecs that every node knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Codec {
    /// Compact and fast, but not self-describing: a changed layout needs a new message name. The default.
    #[default]
    Postcard,
    /// Readable; its payloads are checked to be JSON.
    Json,
}

impl Codec {
    /// The codec with this id.
    ///
    /// # Errors
    ///
    /// `Unknown`: it is none of the built-in ones.
    pub const fn from_id(id: CodecId) -> Result<Self, CodecError> {
        match id {
            CodecId::POSTCARD => Ok(Self::Postcard),
            CodecId::JSON => Ok(Self::Json),
            _ => Err(CodecError::Unknown { id }),
        }
    }

    /// The number that stands for this codec in the envelope.
    pub const fn id(self) -> CodecId {
        match self {
            Self::Postcard => CodecId::POSTCARD,
            Self::Json => CodecId::JSON,
        }
    }

    /// Writes `value`.
    ///
    /// # Errors
    ///
    /// `Encode`: the value has no form in this codec.
    pub fn encode<T: Serialize + ?Sized>(self, value: &T) -> Result<Vec<u8>, CodecError> {
        let encoded = match self {
            Self::Postcard => postcard::to_allocvec(value).map_err(|error| error.to_string()),
            Self::Json => serde_json::to_vec(value).map_err(|error| error.to_string()),
        };
        encoded.map_err(|reason| CodecError::Encode { codec: self.id(), reason })
    }

    /// Appends `value` to `out`, at most `limit` bytes. On an error `out` is as before.
    ///
    /// postcard writes straight into `out`; JSON is written beside it first.
    ///
    /// # Errors
    ///
    /// `Encode`: the value has no form in this codec. `TooLarge`: it needs more than `limit` bytes.
    pub fn encode_into<T: Serialize + ?Sized>(
        self,
        value: &T,
        out: &mut BytesMut,
        limit: usize,
    ) -> Result<(), CodecError> {
        match self {
            Self::Postcard => append_postcard(value, out, limit),
            Self::Json => Json::encode_into(value, out, limit),
        }
    }

    /// Reads a whole value.
    ///
    /// # Errors
    ///
    /// `Decode`: the bytes are no `T`. `TrailingBytes`: they are one, and more.
    pub fn decode<T: DeserializeOwned>(self, bytes: &[u8]) -> Result<T, CodecError> {
        match self {
            Self::Postcard => decode_postcard(bytes),
            Self::Json => decode_json(bytes),
        }
    }

    /// Checks that a JSON payload is JSON; nothing can be said about postcard without the type.
    ///
    /// # Errors
    ///
    /// `Decode`: it is not JSON. `TrailingBytes`: it is, and more.
    pub fn validate(self, bytes: &[u8]) -> Result<(), CodecError> {
        match self {
            Self::Postcard => Ok(()),
            Self::Json => validate_json(bytes),
        }
    }
}

fn append_postcard<T: Serialize + ?Sized>(
    value: &T,
    out: &mut BytesMut,
    limit: usize,
) -> Result<(), CodecError> {
    let start = out.len();
    let written = postcard::serialize_with_flavor(value, Appending { room: limit, out });
    written.map_err(|error| {
        out.truncate(start);
        match error {
            // Only our own flavor says so: `Serialize` itself can but give a text.
            postcard::Error::SerializeBufferFull => CodecError::TooLarge { limit },
            error => CodecError::Encode { codec: CodecId::POSTCARD, reason: error.to_string() },
        }
    })
}

/// Lets postcard write to the end of a buffer, at most `room` bytes.
struct Appending<'a> {
    out: &'a mut BytesMut,
    room: usize,
}

impl Flavor for Appending<'_> {
    type Output = ();

    #[inline]
    fn try_extend(&mut self, data: &[u8]) -> postcard::Result<()> {
        self.room = self.room.checked_sub(data.len()).ok_or(postcard::Error::SerializeBufferFull)?;
        self.out.extend_from_slice(data);
        Ok(())
    }

    #[inline]
    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.try_extend(&[byte])
    }

    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}

fn decode_postcard<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        Ok(_) => Err(CodecError::TrailingBytes { codec: CodecId::POSTCARD }),
        Err(error) => Err(CodecError::Decode { codec: CodecId::POSTCARD, reason: error.to_string() }),
    }
}

fn decode_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError> {
    let codec = CodecId::JSON;
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let value =
        T::deserialize(&mut json).map_err(|error| CodecError::Decode { codec, reason: error.to_string() })?;
    json.end().map_err(|_| CodecError::TrailingBytes { codec })?;
    Ok(value)
}

fn validate_json(bytes: &[u8]) -> Result<(), CodecError> {
    // serde_json skips ignored strings without looking at their encoding.
    let text = core::str::from_utf8(bytes)
        .map_err(|error| CodecError::Decode { codec: CodecId::JSON, reason: error.to_string() })?;
    decode_json::<IgnoredAny>(text.as_bytes()).map(|_| ())
}

/// The number of a codec in the envelope.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CodecId(pub u8);

impl CodecId {
    /// [`Codec::Postcard`].
    pub const POSTCARD: Self = Self(1);
    /// [`Codec::Json`].
    pub const JSON: Self = Self(2);
    /// The first number for codecs of applications; the smaller ones are ours.
    pub const FIRST_CUSTOM: Self = Self(128);

    /// Whether the number is free for codecs of applications.
    pub const fn is_custom(self) -> bool {
        self.0 >= Self::FIRST_CUSTOM.0
    }
}

impl From<Codec> for CodecId {
    fn from(codec: Codec) -> Self {
        codec.id()
    }
}

impl fmt::Display for CodecId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::POSTCARD => f.write_str("postcard"),
            Self::JSON => f.write_str("json"),
            Self(other) => write!(f, "codec {other}"),
        }
    }
}

impl fmt::Debug for CodecId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CodecId({})", self.0)
    }
}

/// A payload could not be written or read. The reasons are text, because such errors travel to the sender.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// This node does not know the codec.
    #[error("unknown codec {}", id.0)]
    Unknown {
        /// Its number.
        id: CodecId,
    },
    /// The value has no form in this codec.
    #[error("the value cannot be written as {codec}: {reason}")]
    Encode {
        /// The codec.
        codec: CodecId,
        /// What the codec says.
        reason: String,
    },
    /// The value needs more bytes than there may be.
    #[error("the value needs more than {limit} bytes")]
    TooLarge {
        /// How many there may be.
        limit: usize,
    },
    /// The bytes are not a value of the expected type.
    #[error("the payload cannot be read as {codec}: {reason}")]
    Decode {
        /// The codec.
        codec: CodecId,
        /// What the codec says.
        reason: String,
    },
    /// Bytes are left over behind the value.
    #[error("more bytes follow the {codec} value")]
    TrailingBytes {
        /// The codec.
        codec: CodecId,
    },
}

#[cfg(test)]
mod tests;
