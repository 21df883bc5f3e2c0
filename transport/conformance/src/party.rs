//! One side of a connection, as the rules use it.

use std::time::Duration;

use archipelago_protocol::contract::{
    Connection, Endpoint, PeerIdentity, RecvStream, SendStream, Streams, TransportError,
};
use archipelago_protocol::identity::NodeAddress;
use bytes::{Bytes, BytesMut};
use futures_util::future::join;

use crate::io::{finish, recv_exact, recv_some, recv_until_end, send_all};
use crate::time::within;

/// One side of a connection, with what it has received but not looked at.
pub struct Party {
    /// Who is on the other side.
    pub peer: PeerIdentity,
    /// The lane to the other side.
    pub outgoing: Box<dyn SendStream>,
    /// The lane from the other side.
    pub incoming: Box<dyn RecvStream>,
    /// What has come over the lane and was not asked for yet.
    pub rest: BytesMut,
    /// Streams beside the lane.
    pub streams: Box<dyn Streams>,
}

impl Party {
    /// The side that has this connection.
    pub fn new(connection: Connection) -> Self {
        let Connection { peer, outgoing, incoming, streams } = connection;
        Self { peer, outgoing, incoming, rest: BytesMut::new(), streams }
    }

    /// Sends on the lane.
    ///
    /// # Errors
    ///
    /// As [`SendStream::poll_send`].
    pub async fn say(&mut self, data: Bytes) -> Result<(), TransportError> {
        send_all(&mut *self.outgoing, data).await
    }

    /// Receives exactly `len` bytes from the lane.
    ///
    /// # Errors
    ///
    /// As [`RecvStream::poll_recv`].
    pub async fn hear(&mut self, len: usize) -> Result<Bytes, TransportError> {
        let bytes = recv_exact(&mut *self.incoming, &mut self.rest, len).await?;
        assert_eq!(bytes.len(), len, "a lane does not end before its connection");
        Ok(bytes)
    }

    /// Reads the lane until the connection ends: what came, and why it ended.
    pub async fn end(&mut self) -> (Bytes, TransportError) {
        let (bytes, end) = recv_until_end(&mut *self.incoming).await;
        let all = [std::mem::take(&mut self.rest).freeze(), bytes].concat();
        (all.into(), end.expect_err("a lane ends only with its connection"))
    }

    /// What each operation answers now that the connection has ended.
    pub(crate) async fn every_answer(&mut self) -> Vec<(&'static str, TransportError)> {
        let what = "every operation on an ended connection answers";
        within(Duration::from_secs(5), what, async {
            let mut into = BytesMut::new();
            vec![
                ("poll_recv", recv_some(&mut *self.incoming, &mut into).await.err()),
                ("poll_send", self.say(Bytes::from_static(b"late")).await.err()),
                ("poll_finish", finish(&mut *self.outgoing).await.err()),
                ("open", self.streams.open().await.err()),
                ("next", self.streams.next().await.err()),
            ]
        })
        .await
        .into_iter()
        .map(|(name, error)| (name, error.unwrap_or_else(|| panic!("{name} goes on after the end"))))
        .collect()
    }
}

/// Connects `from` to `accepting` by dialling `to`.
///
/// # Panics
///
/// If that fails or takes longer than a few seconds.
pub async fn connect(from: &dyn Endpoint, to: &NodeAddress, accepting: &dyn Endpoint) -> (Party, Party) {
    let dial = async { from.dial(to).await.unwrap_or_else(|error| panic!("dialling {to} failed: {error}")) };
    let both = join(dial, accept_good(accepting));
    let (dialled, accepted) = within(CONNECT_LIMIT, "two endpoints connect", both).await;
    (Party::new(dialled), accepted)
}

/// The next connection that somebody has made, whatever became of diallers before.
///
/// # Panics
///
/// If the endpoint ends.
pub async fn accept_good(endpoint: &dyn Endpoint) -> Party {
    loop {
        match endpoint.accept().await {
            Ok(connection) => return Party::new(connection),
            Err(TransportError::Refused { .. } | TransportError::Lost { .. }) => {}
            Err(error) => panic!("accept has no more to say than that: {error}"),
        }
    }
}

/// Sends bytes both ways and back, so that the connection is known to work.
pub(crate) async fn greet(a: &mut Party, b: &mut Party) {
    within(CONNECT_LIMIT, "a greeting and its answer", async {
        for (n, len) in [1, 1_000].into_iter().enumerate() {
            let sent = Bytes::from(vec![n as u8 + 1; len]);
            a.say(sent.clone()).await.expect("the dialler sends");
            assert_eq!(b.hear(len).await.expect("the acceptor receives"), sent);
            b.say(sent.clone()).await.expect("the acceptor sends");
            assert_eq!(a.hear(len).await.expect("the dialler receives"), sent);
        }
    })
    .await;
}

/// How long connecting and a few bytes may take.
pub(crate) const CONNECT_LIMIT: Duration = Duration::from_secs(10);
