//! The chunks that a connection is divided into.
//!
//! A chunk is a header and its payload. The header is the kind (1 byte), the stream (4 bytes; 0 is the lane) and the
//! length of the payload (4 bytes), all little endian. Streams go one way, from the side that opened them; each side
//! counts the streams it opens from 1.

use archipelago_protocol::contract::{CloseCode, CloseReason};

/// How long a header is.
pub(crate) const HEADER: usize = 9;

/// The longest payload of a chunk that is not data.
pub(crate) const MAX_CONTROL: usize = 2 + CloseReason::MAX_TEXT;

/// What a chunk is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Bytes of the lane.
    Lane = 1,
    /// A stream begins.
    Open = 2,
    /// Bytes of a stream.
    Data = 3,
    /// A stream ends in good order.
    End = 4,
    /// The sender gives a stream up.
    Reset = 5,
    /// The receiver is done with a stream, whole or not: its place is free again.
    Released = 6,
    /// The receiver can take so many more bytes (4 bytes, little endian).
    Credit = 7,
    /// Asks for an answer.
    Ping = 8,
    /// The answer.
    Pong = 9,
    /// The connection ends: a code (2 bytes, little endian) and a text.
    Close = 10,
}

/// The beginning of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    pub(crate) stream: u32,
    pub(crate) len: u32,
}

/// Bytes that no peer of this transport sends, and what is wrong with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) &'static str);

impl Header {
    pub(crate) fn encode(self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[0] = self.kind as u8;
        bytes[1..5].copy_from_slice(&self.stream.to_le_bytes());
        bytes[5..9].copy_from_slice(&self.len.to_le_bytes());
        bytes
    }

    /// Reads a header, and refuses one that cannot be.
    pub(crate) fn decode(bytes: &[u8; HEADER]) -> Result<Self, Malformed> {
        let [kind, s0, s1, s2, s3, l0, l1, l2, l3] = *bytes;
        let kind = Kind::from_byte(kind).ok_or(Malformed("a chunk of an unknown kind"))?;
        let stream = u32::from_le_bytes([s0, s1, s2, s3]);
        let len = u32::from_le_bytes([l0, l1, l2, l3]);
        if !kind.fits_stream(stream) {
            return Err(Malformed("a chunk with a stream number that it cannot have"));
        }
        if !kind.fits_len(len as usize) {
            return Err(Malformed("a chunk with a length that it cannot have"));
        }
        Ok(Self { kind, stream, len })
    }

    /// True if the payload is passed on as it comes, false if it is looked at as a whole.
    pub(crate) const fn is_data(self) -> bool {
        matches!(self.kind, Kind::Lane | Kind::Data)
    }
}

impl Kind {
    const fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Lane,
            2 => Self::Open,
            3 => Self::Data,
            4 => Self::End,
            5 => Self::Reset,
            6 => Self::Released,
            7 => Self::Credit,
            8 => Self::Ping,
            9 => Self::Pong,
            10 => Self::Close,
            _ => return None,
        })
    }

    const fn fits_stream(self, stream: u32) -> bool {
        match self {
            Self::Lane | Self::Ping | Self::Pong | Self::Close => stream == 0,
            Self::Open | Self::Data | Self::End | Self::Reset | Self::Released => stream != 0,
            Self::Credit => true,
        }
    }

    const fn fits_len(self, len: usize) -> bool {
        match self {
            Self::Lane | Self::Data => len > 0,
            Self::Open | Self::End | Self::Reset | Self::Released | Self::Ping | Self::Pong => len == 0,
            Self::Credit => len == 4,
            Self::Close => len >= 2 && len <= MAX_CONTROL,
        }
    }
}

/// The payload of a close.
pub(crate) fn encode_close(reason: &CloseReason) -> Vec<u8> {
    let mut payload = reason.code.as_u16().to_le_bytes().to_vec();
    payload.extend_from_slice(reason.text.as_bytes());
    // The fields of a reason are open: somebody may have put in a longer text than `CloseReason::new` allows.
    payload.truncate(MAX_CONTROL);
    payload
}

/// Reads the payload of a close; text that is not UTF-8 is mended.
pub(crate) fn decode_close(payload: &[u8]) -> Result<CloseReason, Malformed> {
    let (code, text) = payload.split_first_chunk().ok_or(Malformed("a close without a code"))?;
    let text = String::from_utf8_lossy(text).into_owned();
    Ok(CloseReason::new(CloseCode::from_u16(u16::from_le_bytes(*code)), text))
}

/// Reads the payload of a credit.
pub(crate) fn decode_credit(payload: &[u8]) -> Result<u32, Malformed> {
    let amount = payload.try_into().map_err(|_| Malformed("a credit without an amount"))?;
    Ok(u32::from_le_bytes(amount))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_good_header_survives_the_wire() {
        for (kind, stream, len) in [
            (Kind::Lane, 0, 1),
            (Kind::Lane, 0, u32::MAX),
            (Kind::Open, 1, 0),
            (Kind::Data, u32::MAX, 65_536),
            (Kind::End, 3, 0),
            (Kind::Reset, 3, 0),
            (Kind::Released, 3, 0),
            (Kind::Credit, 0, 4),
            (Kind::Ping, 0, 0),
            (Kind::Pong, 0, 0),
            (Kind::Close, 0, 2),
        ] {
            let header = Header { kind, stream, len };
            assert_eq!(Header::decode(&header.encode()), Ok(header));
        }
    }

    #[test]
    fn a_header_that_cannot_be_is_refused() {
        for bad in [
            [0, 0, 0, 0, 0, 1, 0, 0, 0],
            [11, 0, 0, 0, 0, 1, 0, 0, 0],
            [1, 1, 0, 0, 0, 1, 0, 0, 0],
            [1, 0, 0, 0, 0, 0, 0, 0, 0],
            [2, 0, 0, 0, 0, 0, 0, 0, 0],
            [3, 0, 0, 0, 0, 1, 0, 0, 0],
            [7, 0, 0, 0, 0, 5, 0, 0, 0],
            [8, 0, 0, 0, 0, 1, 0, 0, 0],
            [10, 0, 0, 0, 0, 1, 0, 0, 0],
            [10, 0, 0, 0, 0, 3, 1, 0, 0],
            [0xff; HEADER],
        ] {
            assert!(Header::decode(&bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_close_survives_the_wire_and_bad_text_is_mended() {
        let reason = CloseReason::new(CloseCode::Other(999), "f\u{fc}r immer");
        assert_eq!(decode_close(&encode_close(&reason)), Ok(reason));
        assert_eq!(decode_close(&[0, 0, 0xff, b'x']).unwrap().text, "\u{fffd}x");
        assert!(decode_close(&[1]).is_err());
    }

    #[test]
    fn a_reason_with_a_text_that_is_too_long_still_fits() {
        let reason = CloseReason { code: CloseCode::Done, text: "x".repeat(10_000) };
        assert_eq!(encode_close(&reason).len(), MAX_CONTROL);
    }
}
