//! What can be set, and why it is what it is.

use std::time::Duration;

use archipelago_protocol::contract::TransportError;

/// The settings of a [`QuicTransport`](crate::QuicTransport). Both sides of a connection should have the same.
///
/// What is measured is said so, with what came out; the rest are bounds on memory and on waiting, not tuning. The congestion
/// controller is quinn's default, CUBIC, which shares a path with others as TCP does, and cannot be chosen: BBR, which quinn
/// calls experimental, was not measured. Datagrams are off, since nothing uses them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuicSettings {
    /// How long somebody who dials may take until he has proven himself. 5 s: a handshake takes two round trips, so
    /// this leaves room for the loss of several packets between continents.
    pub handshake_limit: Duration,
    /// How long [`dial`](archipelago_protocol::contract::Endpoint::dial) tries. 5 s, as the handshake limit. UDP does
    /// not say that nobody listens: dialling a dead node takes this long.
    pub dial_limit: Duration,
    /// How long a peer may be silent before the connection counts as lost. 10 s; a sign of life is sent after a quarter
    /// of it, so a frozen process is noticed but a pause of some seconds is not.
    pub silence_limit: Duration,
    /// How long a close waits for what was sent before it to arrive. 3 s: the windows hold it, so on a working network
    /// it takes a few round trips.
    pub close_limit: Duration,
    /// How many bytes one stream, or the lane, may carry that its reader has not read. 256 KiB: as much of a large message
    /// may be on the way before a small one. Beside a transfer of 64 MiB over loopback the slowest hundredth of small calls
    /// took 2.4 to 3.9 times as long as without it, with 512 KiB 6.2 times. It is 2.5 MB/s per stream at 100 ms round
    /// trip: far away, more is better.
    pub stream_window: u32,
    /// How many streams beside the lane the other side may have open. 64, a bound: each is one message larger than a frame,
    /// and with the lane they hold 65 windows of memory at most; more large messages wait for their turn.
    pub max_streams: u16,
    /// The largest UDP payload that is tried. 6,550: a batch of ten (quinn's largest) must stay under the 64 KB that
    /// one `sendmsg` takes, or the batch fails and the packet size collapses. Discovery finds what the path carries.
    /// With the 1,452 of Ethernet the same calls over loopback took 1.5 times the CPU time.
    pub max_packet: u16,
    /// Whether the kernel cuts large sends into packets (GSO). On: without it the same calls took 1.45 times the CPU
    /// time.
    pub segmentation_offload: bool,
    /// The size asked for the send and the receive buffer of the socket. 4 MB: a burst of some windows fits, and what
    /// does not fit is lost. Over loopback with little loss it made no difference. The system may give less.
    pub socket_buffer: usize,
    /// How many packets the other side may let pass before it acknowledges them; 0 leaves that to it (every second
    /// one). 0: with 2, 10 and 40 the CPU time of the same calls stayed within the noise, and acknowledging less often
    /// finds losses later.
    pub ack_every: u32,
    /// How many strangers may be shaking hands at one time; more are turned away until one is done. 256, a bound: the nodes
    /// of a cluster of some hundred may all come back at once, and a flood of strangers holds no more memory than that.
    pub max_handshakes: usize,
    /// How many connections, or failures to connect, wait for `accept`. 64, a bound: for moments in which the arbiter is busy.
    pub accept_queue: usize,
}

impl QuicSettings {
    /// How many unread bytes a whole connection may carry: a full window for the lane and for every stream.
    ///
    /// It follows from the other two, so that streams which nobody reads can never take what the lane needs.
    pub fn connection_window(&self) -> u32 {
        self.stream_window.saturating_mul(u32::from(self.max_streams) + 1)
    }

    /// How long a connection may be idle as QUIC counts it. QUIC starts to count anew with the first packet sent after
    /// the last one received, so the sign of life must be added to it to stay within the silence limit.
    pub(crate) fn idle_limit(&self) -> Duration {
        self.silence_limit - self.sign_of_life()
    }

    /// When a sign of life is sent.
    pub(crate) fn sign_of_life(&self) -> Duration {
        self.silence_limit / 4
    }

    /// Finds values that cannot work.
    pub(crate) fn check(&self) -> Result<(), TransportError> {
        let positive = [
            ("handshake_limit", !self.handshake_limit.is_zero()),
            ("dial_limit", !self.dial_limit.is_zero()),
            ("silence_limit", self.silence_limit >= SHORTEST_SILENCE),
            ("stream_window", self.stream_window >= SMALLEST_WINDOW),
            ("max_streams", self.max_streams > 0),
            ("max_packet", self.max_packet >= SMALLEST_PACKET),
            ("max_handshakes", self.max_handshakes > 0),
            ("accept_queue", self.accept_queue > 0),
        ];
        match positive.iter().find(|(_, fits)| !fits) {
            None => Ok(()),
            Some((name, _)) => Err(invalid(name)),
        }
    }
}

impl Default for QuicSettings {
    fn default() -> Self {
        Self {
            handshake_limit: Duration::from_secs(5),
            dial_limit: Duration::from_secs(5),
            silence_limit: Duration::from_secs(10),
            close_limit: Duration::from_secs(3),
            stream_window: 256 << 10,
            max_streams: 64,
            max_packet: 6_550,
            segmentation_offload: true,
            socket_buffer: 4 << 20,
            ack_every: 0,
            max_handshakes: 256,
            accept_queue: 64,
        }
    }
}

fn invalid(name: &str) -> TransportError {
    TransportError::Invalid { what: format!("the QUIC setting {name} is too small"), source: None }
}

/// Below this, ordinary delays of a busy machine would look like silence.
const SHORTEST_SILENCE: Duration = Duration::from_millis(100);
/// A window must hold some packets.
const SMALLEST_WINDOW: u32 = 64 << 10;
/// QUIC does not work with smaller packets.
const SMALLEST_PACKET: u16 = 1_200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_valid() {
        assert!(QuicSettings::default().check().is_ok());
    }

    #[test]
    fn a_value_that_cannot_work_is_named() {
        let settings = QuicSettings { max_packet: 500, ..QuicSettings::default() };
        let error = settings.check().unwrap_err();
        assert!(
            matches!(&error, TransportError::Invalid { what, .. } if what.contains("max_packet")),
            "{error}"
        );
    }

    #[test]
    fn idle_limit_and_sign_of_life_add_up_to_the_silence_limit() {
        let settings = QuicSettings::default();
        assert_eq!(settings.idle_limit() + settings.sign_of_life(), settings.silence_limit);
    }

    #[test]
    fn the_lane_keeps_a_window_of_its_own_when_all_streams_are_full() {
        let settings = QuicSettings::default();
        let streams = settings.stream_window * u32::from(settings.max_streams);
        assert_eq!(settings.connection_window() - streams, settings.stream_window);
    }
}
