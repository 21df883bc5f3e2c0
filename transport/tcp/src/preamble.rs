//! The first bytes of a connection, in both directions: who speaks, which version, and how much each side takes.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::settings::TcpSettings;

/// What one side allows the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    pub(crate) lane_window: u32,
    pub(crate) stream_window: u32,
    pub(crate) max_streams: u32,
}

/// Why there is no connection.
#[derive(Debug)]
pub(crate) enum PreambleError {
    /// The other side does not speak this transport.
    Foreign(String),
    /// The socket failed.
    Io(io::Error),
}

impl Offer {
    pub(crate) const fn of(settings: &TcpSettings) -> Self {
        Self {
            lane_window: settings.lane_window.get(),
            stream_window: settings.stream_window.get(),
            max_streams: settings.max_streams.get(),
        }
    }

    fn encode(self) -> [u8; PREAMBLE] {
        let mut bytes = [0; PREAMBLE];
        bytes[..6].copy_from_slice(&MAGIC);
        bytes[6..8].copy_from_slice(&VERSION.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.lane_window.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.stream_window.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.max_streams.to_le_bytes());
        bytes
    }

    /// Reads the numbers behind magic and version.
    fn decode(bytes: &[u8; PREAMBLE]) -> Result<Self, PreambleError> {
        let number =
            |at: usize| bytes[at..].first_chunk().map_or(0, |number: &[u8; 4]| u32::from_le_bytes(*number));
        let offer = Self { lane_window: number(8), stream_window: number(12), max_streams: number(16) };
        if offer.lane_window == 0 || offer.stream_window == 0 || offer.max_streams == 0 {
            return Err(PreambleError::Foreign("the peer takes no data at all".into()));
        }
        Ok(offer)
    }
}

/// Says what this side allows, and reads what the other side does.
///
/// With TLS 1.3 a dialler learns only from its first read that its certificate was refused. So reading goes on when
/// writing has failed: the reason may be waiting there.
pub(crate) async fn exchange<S>(socket: &mut S, ours: Offer) -> Result<Offer, PreambleError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let written = async {
        socket.write_all(&ours.encode()).await?;
        socket.flush().await
    }
    .await;
    let theirs = read(socket).await?;
    written.map_err(PreambleError::Io)?;
    Ok(theirs)
}

/// Refuses at the first wrong byte: who speaks something else may never send as many bytes as a preamble has.
async fn read<S: AsyncRead + Unpin>(socket: &mut S) -> Result<Offer, PreambleError> {
    let (mut bytes, mut have) = ([0; PREAMBLE], 0);
    while have < PREAMBLE {
        let count = socket.read(&mut bytes[have..]).await.map_err(PreambleError::Io)?;
        if count == 0 {
            return Err(PreambleError::Io(io::ErrorKind::UnexpectedEof.into()));
        }
        have += count;
        check(&bytes[..have])?;
    }
    Offer::decode(&bytes)
}

fn check(bytes: &[u8]) -> Result<(), PreambleError> {
    let magic = bytes.len().min(MAGIC.len());
    if bytes[..magic] != MAGIC[..magic] {
        let reason = format!("the peer does not speak this transport (it began with {:?})", shown(bytes));
        return Err(PreambleError::Foreign(reason));
    }
    let version = bytes.get(6..8).and_then(|version| version.first_chunk());
    match version.map(|version| u16::from_le_bytes(*version)) {
        Some(version) if version != VERSION => Err(PreambleError::Foreign(format!(
            "the peer speaks version {version} of this transport, this node version {VERSION}"
        ))),
        _ => Ok(()),
    }
}

fn shown(bytes: &[u8]) -> String {
    bytes[..bytes.len().min(8)].escape_ascii().to_string()
}

const MAGIC: [u8; 6] = *b"\xa7rchip";
const VERSION: u16 = 1;
const PREAMBLE: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    const OFFER: Offer = Offer { lane_window: 1, stream_window: 2, max_streams: 3 };

    fn decode(bytes: &[u8]) -> Result<Offer, PreambleError> {
        check(bytes)?;
        Offer::decode(bytes.try_into().unwrap())
    }

    #[test]
    fn an_offer_survives_the_wire() {
        assert_eq!(decode(&OFFER.encode()).unwrap(), OFFER);
    }

    #[test]
    fn another_protocol_is_refused_at_its_first_byte() {
        assert!(check(b"\xa7").is_ok());
        let Err(PreambleError::Foreign(reason)) = check(b"G") else { panic!("took a G") };
        assert!(reason.contains("does not speak this transport"), "{reason}");
    }

    #[test]
    fn another_version_is_named() {
        let mut bytes = OFFER.encode();
        bytes[6] = 9;
        let Err(PreambleError::Foreign(reason)) = check(&bytes[..8]) else { panic!("took version 9") };
        assert!(reason.contains("version 9"), "{reason}");
    }

    #[test]
    fn a_peer_that_takes_nothing_is_refused() {
        assert!(decode(&Offer { lane_window: 0, ..OFFER }.encode()).is_err());
        assert!(decode(&Offer { stream_window: 0, ..OFFER }.encode()).is_err());
        assert!(decode(&Offer { max_streams: 0, ..OFFER }.encode()).is_err());
    }
}
