//! The side that listens: takes everything a stranger says over a transport.

use std::future::poll_fn;

use archipelago_protocol::contract::{Connection, Endpoint, RecvStream, TransportError};
use bytes::BytesMut;

/// Takes everything that comes, and says how much it was and how it ended.
pub(crate) async fn listen(endpoint: &dyn Endpoint) -> (usize, TransportError) {
    match endpoint.accept().await {
        Err(error) => (0, error),
        Ok(Connection { mut incoming, streams, outgoing, .. }) => {
            let beside = async {
                let mut heard = 0;
                while let Ok(mut stream) = streams.next().await {
                    heard += drain(&mut *stream).await.0;
                }
                heard
            };
            let ((heard, end), beside) = tokio::join!(drain(&mut *incoming), beside);
            drop(outgoing);
            (heard + beside, end.expect("a lane ends with its connection"))
        }
    }
}

async fn drain(from: &mut dyn RecvStream) -> (usize, Option<TransportError>) {
    let (mut heard, mut into) = (0, BytesMut::new());
    loop {
        match poll_fn(|cx| from.poll_recv(cx, &mut into)).await {
            Ok(0) => return (heard, None),
            Ok(count) => heard += count,
            Err(error) => return (heard, Some(error)),
        }
        into.clear();
    }
}
