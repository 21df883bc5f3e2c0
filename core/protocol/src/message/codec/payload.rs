//! What a codec is, and which one reads and writes the payloads of a message.
//!
//! Sender and receiver both know the type of a message, and the type names its codec. So nothing is looked up: the compiler
//! builds the codec into the code of each message, and the id in the frame only says whether it is that codec or, from whoever
//! does not know the type, a built-in one ([`CodecId::encode`], [`CodecId::decode`]).

use alloc::vec::Vec;

use bytes::BytesMut;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Codec, CodecError, CodecId};

/// A codec: writes payloads and reads them. A message names its own, and the compiler builds it in.
///
/// # Every implementation
///
/// - *round_trip*: `decode(encode(value))` gives an equal value.
/// - *whole*: `decode` refuses bytes left over behind the value, or else a truncated header could pass unnoticed.
/// - *total*: no input makes `decode` panic, nor allocate more than a small multiple of its length.
/// - *stable*: `ID` never changes its meaning; another layout is another codec.
///
/// It need not be able to write every type: what has no form in it is an `Encode` error.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a codec",
    label = "this is not a codec",
    note = "implement `PayloadCodec` for `{Self}`, or name a built-in codec: `codec = \"json\"`"
)]
pub trait PayloadCodec: 'static {
    /// The number that stands for this codec in the envelope: [`CodecId::FIRST_CUSTOM`] or greater.
    const ID: CodecId;

    /// Writes `value`.
    ///
    /// # Errors
    ///
    /// `Encode`: the value has no form in this codec.
    fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, CodecError>;

    /// Appends `value` to `out`, at most `limit` bytes. On an error `out` is as before.
    ///
    /// By default it is written beside `out` first; a codec that can write to the end of a buffer saves the copy.
    ///
    /// # Errors
    ///
    /// `Encode`: the value has no form in this codec. `TooLarge`: it needs more than `limit` bytes.
    fn encode_into<T: Serialize + ?Sized>(
        value: &T,
        out: &mut BytesMut,
        limit: usize,
    ) -> Result<(), CodecError> {
        let bytes = Self::encode(value)?;
        if bytes.len() > limit {
            return Err(CodecError::TooLarge { limit });
        }
        out.extend_from_slice(&bytes);
        Ok(())
    }

    /// Reads a whole value.
    ///
    /// # Errors
    ///
    /// `Decode`: the bytes are no `T`. `TrailingBytes`: they are one, and more.
    fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError>;
}

impl CodecId {
    /// Writes a payload of a message whose own codec is `C` in the codec with this id.
    ///
    /// # Errors
    ///
    /// `Unknown`: it is neither `C` nor built in. `Encode`: the value has no form in it.
    pub fn encode<C: PayloadCodec, T: Serialize + ?Sized>(self, value: &T) -> Result<Vec<u8>, CodecError> {
        if self == C::ID { C::encode(value) } else { Codec::from_id(self)?.encode(value) }
    }

    /// Appends a payload of a message whose own codec is `C` to `out`, at most `limit` bytes. On an error `out` is as
    /// before.
    ///
    /// # Errors
    ///
    /// As [`encode`](Self::encode). `TooLarge`: it needs more than `limit` bytes.
    #[inline]
    pub fn encode_into<C: PayloadCodec, T: Serialize + ?Sized>(
        self,
        value: &T,
        out: &mut BytesMut,
        limit: usize,
    ) -> Result<(), CodecError> {
        if self == C::ID {
            C::encode_into(value, out, limit)
        } else {
            Codec::from_id(self)?.encode_into(value, out, limit)
        }
    }

    /// Reads a payload of a message whose own codec is `C`, written in the codec with this id.
    ///
    /// # Errors
    ///
    /// `Unknown`: it is neither `C` nor built in. `Decode`, `TrailingBytes`: the bytes are not one `T`.
    #[inline]
    pub fn decode<C: PayloadCodec, T: DeserializeOwned>(self, bytes: &[u8]) -> Result<T, CodecError> {
        if self == C::ID { C::decode(bytes) } else { Codec::from_id(self)?.decode(bytes) }
    }
}

/// [`Codec::Postcard`] as a type: what messages that say nothing use.
#[derive(Clone, Copy, Debug)]
pub struct Postcard;

impl PayloadCodec for Postcard {
    const ID: CodecId = CodecId::POSTCARD;

    #[inline]
    fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, CodecError> {
        Codec::Postcard.encode(value)
    }

    #[inline]
    fn encode_into<T: Serialize + ?Sized>(
        value: &T,
        out: &mut BytesMut,
        limit: usize,
    ) -> Result<(), CodecError> {
        Codec::Postcard.encode_into(value, out, limit)
    }

    #[inline]
    fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError> {
        Codec::Postcard.decode(bytes)
    }
}

/// [`Codec::Json`] as a type.
#[derive(Clone, Copy, Debug)]
pub struct Json;

impl PayloadCodec for Json {
    const ID: CodecId = CodecId::JSON;

    fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, CodecError> {
        Codec::Json.encode(value)
    }

    fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError> {
        Codec::Json.decode(bytes)
    }
}
