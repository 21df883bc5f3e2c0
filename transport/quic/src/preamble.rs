//! What the two sides say before a connection counts.
//!
//! The dialler opens the lane and sends eight bytes, the other side checks them and sends its own. This shows the lane
//! to the other side, tells versions apart in words, and is how the dialler learns that it was let in: in TLS 1.3 its
//! own certificate is checked when it already considers the handshake done.

use archipelago_protocol::contract::{CloseCode, CloseReason};
use quinn::{Connection, ReadError, ReadExactError, RecvStream, SendStream, WriteError};

use crate::errors::{Failure, close_code};

/// The two halves of a lane.
pub(crate) type Lane = (SendStream, RecvStream);

/// Opens the lane on a connection that this side dialled.
pub(crate) async fn greet(connection: &Connection) -> Result<Lane, Failure> {
    let (mut send, mut recv) = connection.open_bi().await?;
    say(&mut send).await?;
    check(connection, &mut recv).await?;
    Ok((send, recv))
}

/// Takes the lane of a connection that the other side dialled.
pub(crate) async fn answer(connection: &Connection) -> Result<Lane, Failure> {
    let (mut send, mut recv) = connection.accept_bi().await?;
    check(connection, &mut recv).await?;
    say(&mut send).await?;
    Ok((send, recv))
}

async fn say(send: &mut SendStream) -> Result<(), Failure> {
    // Small things first: a stream beside the lane must not delay it.
    let _ = send.set_priority(LANE_PRIORITY);
    send.write_all(&preamble()).await.map_err(|error| match error {
        WriteError::ConnectionLost(error) => error.into(),
        other => Failure::Absent(other.to_string()),
    })
}

async fn check(connection: &Connection, recv: &mut RecvStream) -> Result<(), Failure> {
    let mut said = [0; LENGTH];
    match recv.read_exact(&mut said).await {
        Ok(()) => {}
        Err(ReadExactError::ReadError(ReadError::ConnectionLost(error))) => return Err(error.into()),
        Err(_) => return Err(turn_away(connection, "it sent no preamble")),
    }
    match wrong_with(&said) {
        None => Ok(()),
        Some(text) => Err(turn_away(connection, &text)),
    }
}

fn turn_away(connection: &Connection, text: &str) -> Failure {
    let reason = CloseReason::new(CloseCode::Mismatch, format!("the peer does not fit: {text}"));
    connection.close(close_code(&reason), reason.text.as_bytes());
    Failure::Refused(reason.text)
}

fn wrong_with(said: &[u8; LENGTH]) -> Option<String> {
    let own = preamble();
    if said[..MAGIC.len()] != MAGIC {
        return Some("it speaks another protocol".into());
    }
    let version = u16::from_be_bytes([said[6], said[7]]);
    (*said != own).then(|| format!("it speaks version {version} of this transport, this side {VERSION}"))
}

fn preamble() -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    bytes[..MAGIC.len()].copy_from_slice(&MAGIC);
    bytes[MAGIC.len()..].copy_from_slice(&VERSION.to_be_bytes());
    bytes
}

const MAGIC: [u8; 6] = *b"archip";
const VERSION: u16 = 1;
const LENGTH: usize = MAGIC.len() + 2;
/// Above that of the streams beside it, which is 0.
const LANE_PRIORITY: i32 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_side_accepts_its_own_preamble() {
        assert_eq!(wrong_with(&preamble()), None);
    }

    #[test]
    fn another_version_is_named_and_another_protocol_is_told_apart() {
        let mut other = preamble();
        other[7] = 9;
        assert!(wrong_with(&other).is_some_and(|text| text.contains("version 9")));
        assert!(wrong_with(b"GET / HT").is_some_and(|text| text.contains("another protocol")));
    }
}
