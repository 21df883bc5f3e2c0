//! What a peer with good papers says over QUIC: the preamble of the lane, and the first byte of a stream.

use std::cell::OnceCell;
use std::net::SocketAddr;
use std::time::Duration;

use archipelago_protocol::contract::{Endpoint, Transport, TransportError};
use archipelago_quic::tuning::Tuned;
use archipelago_quic::{QuicSettings, QuicTransport};
use archipelago_tls::DevelopmentAuthority;
use tokio::runtime::Runtime;

use crate::talk::listen;

/// The first byte says where the rest is cut: what is before goes on the lane, what is behind on a stream.
pub(crate) fn quic(bytes: &[u8]) -> bool {
    let Some((cut, rest)) = bytes.split_first() else { return false };
    let (lane, stream) = rest.split_at(usize::from(*cut).min(rest.len()));
    RIG.with(|rig| rig.get_or_init(Rig::new).hear(lane, stream))
}

/// What peers could say.
pub(crate) fn talks() -> Vec<Vec<u8>> {
    vec![
        b"\x0darchip\x00\x01hello\x01stream".to_vec(),
        b"\x08archip\x00\x01".to_vec(),
        b"\x08archip\x00\x09".to_vec(),
        b"\x03arc".to_vec(),
        b"\x10GET / HTTP/1.1\r\n\x02".to_vec(),
        b"\x09archip\x00\x01x\x07other".to_vec(),
    ]
}

thread_local! {
    static RIG: OnceCell<Rig> = const { OnceCell::new() };
}

struct Rig {
    runtime: Runtime,
    endpoint: Box<dyn Endpoint>,
    at: SocketAddr,
    stranger: quinn::Endpoint,
}

impl Rig {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let papers = DevelopmentAuthority::in_memory().and_then(|authority| authority.credentials(NAME));
        let (papers, settings) = (papers.expect("papers can be made"), QuicSettings::default());
        let (endpoint, stranger) = runtime.block_on(async {
            let at = "127.0.0.1:0".parse().expect("an address");
            let endpoint = QuicTransport::new(settings.clone(), papers.clone()).open(&at).await;
            let tuned = Tuned::new(&settings, &papers).expect("the defaults are valid");
            let mut stranger = tuned.endpoint(([127, 0, 0, 1], 0).into()).expect("loopback");
            stranger.set_default_client_config(tuned.client.clone());
            (endpoint.expect("loopback can be listened at"), stranger)
        });
        let at = endpoint.address().to_string().parse().expect("an IP address");
        Self { runtime, endpoint, at, stranger }
    }

    #[expect(clippy::disallowed_methods, reason = "a real transport is tested against real time")]
    fn hear(&self, lane: &[u8], stream: &[u8]) -> bool {
        let both = async { tokio::join!(self.say(lane, stream), listen(&*self.endpoint)) };
        let limited = self.runtime.block_on(async { tokio::time::timeout(LIMIT, both).await });
        let (told, (heard, end)) = limited.expect("a talk comes to its end");
        let good = lane.starts_with(PREAMBLE);
        assert_eq!(good, !matches!(end, TransportError::Refused { .. }), "{end}");
        // The preamble and the byte that says what a stream is are not the reader's.
        let most = (lane.len() + stream.len().saturating_sub(1)).saturating_sub(PREAMBLE.len());
        assert!(heard <= if good { most } else { 0 }, "{heard} bytes of {most}");
        assert!(good || told.contains("does not fit"), "not told: {told}");
        good
    }

    /// Says everything, and answers how the connection ended.
    async fn say(&self, lane: &[u8], stream: &[u8]) -> String {
        let connection = self.stranger.connect(self.at, NAME).expect("it can be dialled").await;
        let connection = connection.expect("the papers are good");
        let (mut send, _recv) = connection.open_bi().await.expect("a lane can be opened");
        let _ = send.write_all(lane).await;
        let _ = send.finish();
        if let Ok(mut beside) = connection.open_uni().await {
            let _ = beside.write_all(stream).await;
            let _ = beside.finish();
            let _ = beside.stopped().await;
        }
        let _ = send.stopped().await;
        if lane.starts_with(PREAMBLE) {
            connection.close(0_u32.into(), b"done");
        }
        connection.closed().await.to_string()
    }
}

const NAME: &str = "corpus.test";
const PREAMBLE: &[u8] = b"archip\x00\x01";
const LIMIT: Duration = Duration::from_secs(10);
