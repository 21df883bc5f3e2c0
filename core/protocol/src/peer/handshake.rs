//! The bytes of the handshake: the first thing on every connection, in both directions.
//!
//! # Layout
//!
//! Numbers are little-endian: the bytes `ARCH`, format (u16), length (u32, of what follows, at most 256 KiB), tag (u8),
//! body. The layout of everything up to the tag, and of a refusal (reason u16, the rest is its text in UTF-8), is the
//! same in every format, for ever: so peers of any two versions can tell each other why they do not talk. The other
//! bodies are postcard of [`Hello`] and [`Welcome`]; bytes after them are ignored.

use alloc::string::String;
use alloc::vec::Vec;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use serde::de::DeserializeOwned;

use super::hello::{Hello, Welcome};
use super::refusal::{Refusal, RefusalReason};

/// One message of the handshake.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Handshake {
    /// The node that dialled says who it is.
    Hello(Hello),
    /// The other one lets it in, and says who it is itself.
    Welcome(Welcome),
    /// The other one does not.
    Refusal(Refusal),
}

impl Handshake {
    /// The longest message, in bytes after the length.
    pub const MAX_BYTES: usize = 256 * 1024;
    /// The longest list of kinds, and of the messages of a kind.
    pub const MAX_ENTRIES: usize = u16::MAX as usize;

    /// Its bytes.
    ///
    /// # Errors
    ///
    /// `TooLarge`: a hello with so many names that it does not fit.
    pub fn encode(&self) -> Result<Bytes, HandshakeError> {
        let (tag, body) = match self {
            Self::Hello(hello) => (HELLO, written(hello)?),
            Self::Welcome(welcome) => (WELCOME, written(welcome)?),
            Self::Refusal(refusal) => (REFUSAL, refusal_body(refusal)),
        };
        if let Some(hello) = self.hello() {
            check_entries(hello)?;
        }
        let len = check_len(body.len() as u64 + 1)?;
        let mut out = BytesMut::with_capacity(PREFIX + body.len() + 1);
        out.put_slice(&MAGIC);
        out.put_u16_le(FORMAT);
        out.put_u32_le(len);
        out.put_u8(tag);
        out.put_slice(&body);
        Ok(out.freeze())
    }

    /// Takes one message off the front of `bytes`; none, and nothing taken, if it has not come whole yet.
    ///
    /// # Errors
    ///
    /// [`HandshakeError`], as soon as the bytes show it; nothing was allocated for a length that is not allowed.
    pub fn take(bytes: &mut BytesMut) -> Result<Option<Self>, HandshakeError> {
        let seen = bytes.len().min(MAGIC.len());
        if bytes[..seen] != MAGIC[..seen] {
            return Err(HandshakeError::NotOurs);
        }
        let Some(mut prefix) = bytes.get(MAGIC.len()..PREFIX) else { return Ok(None) };
        let (format, len) = (prefix.get_u16_le(), prefix.get_u32_le());
        let len = check_len(u64::from(len))? as usize;
        if bytes.len() < PREFIX + len {
            return Ok(None);
        }
        bytes.advance(PREFIX);
        Self::decode(format, &bytes.split_to(len)).map(Some)
    }

    fn decode(format: u16, message: &[u8]) -> Result<Self, HandshakeError> {
        let (&tag, body) = message.split_first().ok_or(HandshakeError::Malformed)?;
        match tag {
            REFUSAL => refusal(body).map(Self::Refusal),
            _ if format != FORMAT => Err(HandshakeError::UnknownFormat { format }),
            HELLO => read(body).map(Self::Hello)?.checked(),
            WELCOME => read(body).map(Self::Welcome)?.checked(),
            _ => Err(HandshakeError::Malformed),
        }
    }

    fn checked(self) -> Result<Self, HandshakeError> {
        if let Some(hello) = self.hello() {
            check_entries(hello)?;
        }
        Ok(self)
    }

    const fn hello(&self) -> Option<&Hello> {
        match self {
            Self::Hello(hello) => Some(hello),
            Self::Welcome(welcome) => Some(&welcome.hello),
            Self::Refusal(_) => None,
        }
    }
}

/// Why bytes are no message of the handshake. The connection they came by is of no use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HandshakeError {
    /// Whoever is on the other side does not speak this protocol.
    #[error("the other side does not speak this protocol")]
    NotOurs,
    /// The other side speaks a handshake that this version cannot read. It is to be told so.
    #[error("the other side uses handshake format {format}, this node reads format {FORMAT}")]
    UnknownFormat {
        /// The format found.
        format: u16,
    },
    /// The message, or a list in it, is longer than allowed.
    #[error("the handshake has {len} bytes or entries where at most {max} are allowed")]
    TooLarge {
        /// The length found.
        len: u64,
        /// The longest allowed.
        max: usize,
    },
    /// The message cannot be read.
    #[error("the handshake cannot be read")]
    Malformed,
}

impl From<&HandshakeError> for Refusal {
    /// What to answer a peer whose handshake cannot be read.
    fn from(error: &HandshakeError) -> Self {
        let reason = match error {
            HandshakeError::UnknownFormat { .. } => RefusalReason::Version,
            _ => RefusalReason::Malformed,
        };
        Self::new(reason, alloc::format!("{error}"))
    }
}

fn written<T: serde::Serialize>(value: &T) -> Result<Vec<u8>, HandshakeError> {
    postcard::to_allocvec(value).map_err(|_| HandshakeError::Malformed)
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, HandshakeError> {
    postcard::from_bytes(body).map_err(|_| HandshakeError::Malformed)
}

fn refusal_body(refusal: &Refusal) -> Vec<u8> {
    let mut body = refusal.reason.as_u16().to_le_bytes().to_vec();
    body.extend_from_slice(refusal.text.as_bytes());
    body
}

/// A refusal is shown to people whatever it is: what is no UTF-8 in it, or would upset a log, is replaced.
fn refusal(body: &[u8]) -> Result<Refusal, HandshakeError> {
    let (reason, text) = body.split_first_chunk().ok_or(HandshakeError::Malformed)?;
    let reason = RefusalReason::from_u16(u16::from_le_bytes(*reason));
    let shown = |character: char| if character.is_control() { ' ' } else { character };
    let text: String = String::from_utf8_lossy(text).chars().map(shown).collect();
    Ok(Refusal::new(reason, text))
}

fn check_len(len: u64) -> Result<u32, HandshakeError> {
    let max = Handshake::MAX_BYTES;
    u32::try_from(len).ok().filter(|&len| len as usize <= max).ok_or(HandshakeError::TooLarge { len, max })
}

/// Frames name kinds and messages by 16 bits.
fn check_entries(hello: &Hello) -> Result<(), HandshakeError> {
    let longest = hello.kinds.iter().map(|kind| kind.messages.len()).chain([hello.kinds.len()]).max();
    let (len, max) = (longest.unwrap_or(0), Handshake::MAX_ENTRIES);
    if len > max { Err(HandshakeError::TooLarge { len: len as u64, max }) } else { Ok(()) }
}

const MAGIC: [u8; 4] = *b"ARCH";
const FORMAT: u16 = 1;
const PREFIX: usize = MAGIC.len() + 2 + 4;
const HELLO: u8 = 1;
const WELCOME: u8 = 2;
const REFUSAL: u8 = 3;

#[cfg(test)]
mod tests;
